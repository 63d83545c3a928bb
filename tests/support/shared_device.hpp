// One OpenCL device for all sessions of a test program: buffers are of one context, and kernels are built once.
#pragma once

#include <memory>

#include <dnnopt/backend/measure/opened_device.hpp>

namespace dnnopt::testing {

/// The first device, which keeps no program on disk.
inline std::shared_ptr<opened_device> shared_device() {
  static const std::shared_ptr<opened_device> made = [] {
    opencl::program_cache_options programs;
    programs.on_disk = false;
    return std::make_shared<opened_device>("opencl", programs);
  }();
  return made;
}

}  // namespace dnnopt::testing
