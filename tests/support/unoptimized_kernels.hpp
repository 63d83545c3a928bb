// Kernels that PoCL compiles without its optimizer, for tests of results alone.
#ifndef DNNOPT_TESTS_UNOPTIMIZED_KERNELS_HPP
#define DNNOPT_TESTS_UNOPTIMIZED_KERNELS_HPP

#include <cstdlib>
#include <string>

namespace dnnopt::testing {

/// While it lives PoCL leaves its optimizer out, which takes a third of the time or less where kernels are large. Other
/// drivers do not look at the variable.
class unoptimized_kernels {
 public:
  unoptimized_kernels() {
    if (const char* const given = std::getenv(name)) before_ = given;
    ::setenv(name, (before_ + " -cl-opt-disable").c_str(), 1);
  }
  unoptimized_kernels(const unoptimized_kernels&) = delete;
  unoptimized_kernels& operator=(const unoptimized_kernels&) = delete;
  ~unoptimized_kernels() {
    if (before_.empty())
      ::unsetenv(name);
    else
      ::setenv(name, before_.c_str(), 1);
  }

 private:
  static constexpr const char* name = "POCL_EXTRA_BUILD_FLAGS";
  std::string before_;
};

}  // namespace dnnopt::testing

#endif  // DNNOPT_TESTS_UNOPTIMIZED_KERNELS_HPP
