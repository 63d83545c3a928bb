// The bodies of <dnnopt/backend/codegen/lower.hpp>.
#define DNNOPT_IMPLEMENT_LOWERING 1
#include <dnnopt/backend/codegen/lower.hpp>
