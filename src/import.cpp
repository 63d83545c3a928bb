// The bodies of <dnnopt/onnx/import.hpp>.
#if defined(__GNUC__) && !defined(__clang__)
// g++ 12 reports these falsely on inlined std::string and std::vector code, in the target that compiles this file.
#pragma GCC diagnostic ignored "-Wrestrict"
#pragma GCC diagnostic ignored "-Wfree-nonheap-object"
#endif
#define DNNOPT_IMPLEMENT_IMPORT 1
#include <dnnopt/onnx/import.hpp>
