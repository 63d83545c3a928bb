#define DNNOPT_IMPLEMENTATION
#include "every_header.hpp"
