// The bodies of <dnnopt/ops/standard.hpp>.
#define DNNOPT_IMPLEMENT_OPERATORS 1
#include <dnnopt/ops/standard.hpp>
