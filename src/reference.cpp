// The bodies of <dnnopt/reference/table.hpp>.
#if defined(__GNUC__) && !defined(__clang__)
// g++ 12 reports these falsely on inlined std::string and std::vector code, in the target that compiles this file.
#pragma GCC diagnostic ignored "-Wrestrict"
#pragma GCC diagnostic ignored "-Wfree-nonheap-object"
#endif
#define DNNOPT_IMPLEMENT_REFERENCE 1
#include <dnnopt/reference/table.hpp>
