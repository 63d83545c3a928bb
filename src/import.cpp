// The bodies of <dnnopt/onnx/import.hpp> for the compiled library.
#define DNNOPT_BODIES_IMPORT 1
#include <dnnopt/onnx/import.hpp>
