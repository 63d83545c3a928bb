// Uses dnnopt::core alone: no OpenCL header may be needed.
#include <dnnopt/error.hpp>
#include <dnnopt/version.hpp>

#ifdef CL_HPP_TARGET_OPENCL_VERSION
#error "dnnopt::core must not carry OpenCL's definitions"
#endif

int main() {
  const dnnopt::error refused(dnnopt::errc::invalid_argument, "text");
  return refused.code() == dnnopt::errc::invalid_argument && dnnopt::version.minor_number >= 1 ? 0 : 1;
}
