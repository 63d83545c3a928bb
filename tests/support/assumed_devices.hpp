// Facts of devices that no machine has to hold: what lowering is asked for where nothing runs.
#pragma once

#include <array>

#include <dnnopt/device_info.hpp>

namespace dnnopt::testing {

/// A small device for each form of kernels.
[[nodiscard]] inline std::array<device_info, 2> assumed_devices() {
  std::array<device_info, 2> devices;
  devices[0].form = kernel_form::vectors;
  devices[1].form = kernel_form::groups;
  for (device_info& device : devices) {
    device.compute_units = 8;
    device.max_work_group_size = 256;
    device.local_memory_bytes = 32768;
  }
  return devices;
}

}  // namespace dnnopt::testing
