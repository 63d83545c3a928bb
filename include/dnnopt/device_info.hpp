// Owns what is known of a compute device: the limits that its driver states and the facts that were measured on it.
//
// Plain structs without OpenCL, so that passes can decide by them; backend/opencl/device.hpp and
// backend/measure/facts/device_facts.hpp fill them. Zero means "unknown" or "not supported" wherever a number is one.
#ifndef DNNOPT_DEVICE_INFO_HPP
#define DNNOPT_DEVICE_INFO_HPP

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <dnnopt/kernel_form.hpp>

namespace dnnopt {

enum class device_type : std::uint8_t { cpu, gpu, accelerator, other };

/// "cpu", "gpu", "accelerator" or "other".
[[nodiscard]] constexpr std::string_view name_of(device_type type) noexcept {
  switch (type) {
    case device_type::cpu:
      return "cpu";
    case device_type::gpu:
      return "gpu";
    case device_type::accelerator:
      return "accelerator";
    case device_type::other:
      break;
  }
  return "other";
}

/// What a device says of its images; sizes in pixels (texels), not bytes.
struct image_limits {
  bool supported = false;
  bool rgba_fp32 = false;  ///< CL_RGBA with CL_FLOAT can be read and written as image2d
  bool rgba_fp16 = false;  ///< CL_RGBA with CL_HALF_FLOAT can be read and written as image2d
  std::size_t max_width_2d = 0;
  std::size_t max_height_2d = 0;
  std::size_t max_width_3d = 0;
  std::size_t max_height_3d = 0;
  std::size_t max_depth_3d = 0;
  std::size_t max_array_layers = 0;   ///< of image2d_array
  std::size_t max_buffer_texels = 0;  ///< of image1d_buffer
  std::uint32_t max_read_arguments = 0;
  std::uint32_t max_write_arguments = 0;
  std::uint32_t max_samplers = 0;
  /// image2d over a buffer: row pitch and start must be multiples of these, in pixels; pitch 0 when not supported.
  std::uint32_t buffer_pitch_alignment = 0;
  std::uint32_t buffer_base_alignment = 0;
  bool over_sub_buffer = false;  ///< an image may lie over a part of an arena (probed by context, not by the query)
};

/// Preferred number of elements in one vector of a kernel; 0 for types that the device lacks.
struct vector_widths {
  std::uint32_t char_width = 0;
  std::uint32_t short_width = 0;
  std::uint32_t int_width = 0;
  std::uint32_t long_width = 0;
  std::uint32_t half_width = 0;
  std::uint32_t float_width = 0;
  std::uint32_t double_width = 0;
};

/// What an OpenCL driver states of one device.
struct device_info {
  std::size_t index = 0;  ///< place in the list of all devices of all platforms: N of "opencl:N"
  std::string name;
  std::string vendor;
  std::string platform;
  std::string platform_version;
  std::string version;           ///< CL_DEVICE_VERSION
  std::string language_version;  ///< CL_DEVICE_OPENCL_C_VERSION
  std::string driver_version;
  std::uint32_t version_major = 0;  ///< of `version`
  std::uint32_t version_minor = 0;
  std::uint32_t vendor_id = 0;
  device_type type = device_type::other;
  kernel_form form = kernel_form::native;  ///< of the kernels that lowering makes for it; the one thing no driver says

  std::uint32_t compute_units = 0;
  std::uint32_t clock_mhz = 0;
  std::uint32_t address_bits = 0;
  std::uint64_t global_memory_bytes = 0;
  std::uint64_t max_allocation_bytes = 0;
  std::uint64_t global_cache_bytes = 0;
  std::uint32_t cache_line_bytes = 0;
  std::uint64_t local_memory_bytes = 0;
  bool dedicated_local_memory = false;  ///< local memory is memory of its own, not part of global memory
  std::uint64_t constant_memory_bytes = 0;
  std::size_t max_parameter_bytes = 0;  ///< of all arguments of one kernel
  std::size_t max_work_group_size = 0;
  std::array<std::size_t, 3> max_work_item_sizes{};
  std::uint32_t base_address_alignment_bytes = 0;  ///< a sub-buffer starts at a multiple of it
  vector_widths preferred_widths;
  vector_widths native_widths;
  image_limits images;

  bool fp16 = false;  ///< cl_khr_fp16: arithmetic on half (storage as half needs nothing)
  bool fp64 = false;
  bool rounded_division = false;       ///< programs can be built so that fp32 division and square root round correctly
  bool subgroups = false;              ///< cl_khr_subgroups, or OpenCL 3.0 with at least one sub-group per work-group
  bool host_unified_memory = false;    ///< device and host share memory
  bool shared_virtual_memory = false;  ///< at least coarse-grained: allocations of the device have addresses
  bool profiling = false;              ///< queues can record the times of commands
  bool command_buffers = false;        ///< cl_khr_command_buffer
  bool recordable_queues = false;      ///< cl_qcom_recordable_queues
  std::uint64_t timer_resolution_ns = 0;
  std::vector<std::string> extensions;

  /// Whether kernels for it are those of work-items that run one after the other, each with wide vectors, rather than
  /// those of many in step with local memory. Its own form is that of CPUs, and of what allows next to no work-items.
  [[nodiscard]] bool prefers_vectors() const noexcept {
    constexpr std::size_t few = 16;
    if (form != kernel_form::native) return form == kernel_form::vectors;
    return type == device_type::cpu || (max_work_group_size != 0 && max_work_group_size < few);
  }

  /// True when the device lists the extension of exactly that name.
  [[nodiscard]] bool has_extension(std::string_view extension) const noexcept {
    for (const std::string& one : extensions) {
      if (one == extension) return true;
    }
    return false;
  }
};

/// The device as lowering sees it when `form` is asked for; `native` leaves what `info` says.
[[nodiscard]] inline device_info with_form(device_info info, kernel_form form) {
  if (form != kernel_form::native) info.form = form;
  return info;
}

/// What the API does not tell, measured once per device and driver and kept in a file
/// (backend/measure/facts/device_facts.hpp). Times in microseconds of host time, rates in 1e9 per second; 0 where the
/// device lacks the thing measured.
struct device_facts {
  double launch_us = 0;               ///< host time of one empty kernel, of many enqueued back to back
  double launch_with_event_us = 0;    ///< the same with an event each, on a profiling queue
  double recorded_launch_us = 0;      ///< the same per kernel when a recording of many is replayed
  double round_trip_us = 0;           ///< one empty kernel, enqueued and waited for
  double buffer_copy_gbs = 0;         ///< bytes read plus bytes written, float4 copy kernel, larger than the caches
  double image_copy_fp32_gbs = 0;     ///< the same through image2d, RGBA fp32
  double image_copy_fp16_gbs = 0;     ///< the same through image2d, RGBA fp16
  double buffer_window_gbs = 0;       ///< bytes asked for by a kernel that reads a 3x3 neighbourhood from a buffer
  double image_window_gbs = 0;        ///< the same through image2d, RGBA fp32
  double buffer_window_fp16_gbs = 0;  ///< the same two for fp16 storage: four halves at once, RGBA fp16
  double image_window_fp16_gbs = 0;
  /// Bits to which CLK_FILTER_LINEAR interpolates between RGBA fp32 texels: with b of them it errs by at most 2^-b of
  /// the largest difference of neighbours (9 where the fraction has 8 bits, as in CUDA C's guide; 23 in fp32).
  double image_filter_bits_fp32 = 0;
  double image_filter_bits_fp16 = 0;  ///< the same between RGBA fp16 texels
  double cached_read_gbs = 0;         ///< bytes asked for by a kernel that reads a 128 KiB buffer over and over
  double fma_gflops = 0;              ///< float fused multiply-adds in registers, two operations each
  double upload_gbs = 0;              ///< host memory to a device buffer, blocking
  double download_gbs = 0;            ///< device buffer to host memory, blocking
  std::size_t wave_size = 0;          ///< work-items that run in step: preferred multiple of a kernel's work-group

  /// Images are worth it for storage of that precision: reads that share neighbours are at least as fast through an
  /// image as through a buffer, and a plain copy loses at most a tenth. A default for layout selection and kernels.
  [[nodiscard]] bool images_fast(bool fp16) const noexcept {
    const double window = fp16 ? image_window_fp16_gbs : image_window_gbs;
    const double copy = fp16 ? image_copy_fp16_gbs : image_copy_fp32_gbs;
    const double copy_share = fp16 ? 0.45 : 0.9;  // an fp16 texel is half the bytes of the float4 copy
    return window > 0 && window >= (fp16 ? buffer_window_fp16_gbs : buffer_window_gbs) &&
           copy >= copy_share * buffer_copy_gbs;
  }
};

}  // namespace dnnopt

#endif  // DNNOPT_DEVICE_INFO_HPP
