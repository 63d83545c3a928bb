// The bodies of <dnnopt/passes/pipeline.hpp>.
#define DNNOPT_IMPLEMENT_PASSES 1
#include <dnnopt/passes/pipeline.hpp>
