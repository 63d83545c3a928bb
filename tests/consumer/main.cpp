// Uses the whole installed package.
#if __has_include(<dnnopt/dnnopt.hpp>)
#include <dnnopt/dnnopt.hpp>
#endif
#include <dnnopt/version.hpp>

int main() { return dnnopt::version.minor_number >= 1 ? 0 : 1; }
