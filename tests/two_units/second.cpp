#define DNNOPT_IMPLEMENTATION
#include "every_header.hpp"

int second_unit_version();

int second_unit_version() { return dnnopt::version.minor_number; }
