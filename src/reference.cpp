// The bodies of <dnnopt/reference/table.hpp> for the compiled library.
#define DNNOPT_BODIES_REFERENCE 1
#include <dnnopt/reference/table.hpp>
