#define DNNOPT_IMPLEMENTATION
#include "every_header.hpp"

int second_unit_version();

int main() { return second_unit_version() == dnnopt::version.minor_number ? 0 : 1; }
