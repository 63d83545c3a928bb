// The bodies of <dnnopt/reference/table.hpp>.
#define DNNOPT_IMPLEMENT_REFERENCE 1
#include <dnnopt/reference/table.hpp>
