// The bodies of <dnnopt/session.hpp>.
#define DNNOPT_IMPLEMENT_SESSION 1
#include <dnnopt/session.hpp>
