// The bodies of <dnnopt/onnx/import.hpp>.
#define DNNOPT_IMPLEMENT_IMPORT 1
#include <dnnopt/onnx/import.hpp>
