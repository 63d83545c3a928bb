// The bodies of <dnnopt/backend/codegen/lower.hpp> for the compiled library.
#define DNNOPT_BODIES_LOWERING 1
#include <dnnopt/backend/codegen/lower.hpp>
