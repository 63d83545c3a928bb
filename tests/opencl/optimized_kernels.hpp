// Owns how tests wait for the optimized kernels that follow quick ones.
#ifndef DNNOPT_TESTS_OPENCL_OPTIMIZED_KERNELS_HPP
#define DNNOPT_TESTS_OPENCL_OPTIMIZED_KERNELS_HPP

#include <chrono>
#include <thread>

#include <dnnopt/dnnopt.hpp>

namespace dnnopt::opencl::testing {

/// Whether all optimized kernels came within two minutes.
inline bool wait_for_optimized(const session& s) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(2);
  while (!s.optimizing().done && std::chrono::steady_clock::now() < end)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  return s.optimizing().done && s.optimizing().failure.empty();
}

}  // namespace dnnopt::opencl::testing

#endif  // DNNOPT_TESTS_OPENCL_OPTIMIZED_KERNELS_HPP
