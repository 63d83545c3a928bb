// The bodies of <dnnopt/ops/standard.hpp> for the compiled library.
#define DNNOPT_BODIES_OPERATORS 1
#include <dnnopt/ops/standard.hpp>
