// The bodies of <dnnopt/session.hpp> for the compiled library.
#define DNNOPT_BODIES_SESSION 1
#include <dnnopt/session.hpp>
