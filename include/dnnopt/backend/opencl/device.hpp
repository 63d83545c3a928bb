// Owns the list of OpenCL devices: enumeration, the query of their limits, and the choice of one by a specification.
#ifndef DNNOPT_BACKEND_OPENCL_DEVICE_HPP
#define DNNOPT_BACKEND_OPENCL_DEVICE_HPP

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cstddef>
#include <cstdlib>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include <dnnopt/backend/opencl/loader.hpp>
#include <dnnopt/backend/opencl/status.hpp>
#include <dnnopt/device_info.hpp>
#include <dnnopt/error.hpp>

namespace dnnopt::opencl {

/// One OpenCL device with its platform and what its driver states. Copies share the OpenCL handles.
struct device {
  cl::Platform platform;
  cl::Device handle;
  device_info info;
};

namespace detail {

/// The text of a query of `get(parameter, size, pointer, size returned)`; empty when the query is refused.
template <class Get>
std::string query_text(Get get, cl_uint parameter) {
  std::size_t size = 0;
  if (get(parameter, 0, nullptr, &size) != CL_SUCCESS || size == 0) return {};
  std::string text(size, '\0');
  if (get(parameter, size, text.data(), nullptr) != CL_SUCCESS) return {};
  while (!text.empty() && (text.back() == '\0' || text.back() == ' ')) text.pop_back();
  while (!text.empty() && text.front() == ' ') text.erase(0, 1);
  return text;
}

/// A value of type T that the device answers, `missing` when it refuses the query.
template <class T>
T query_device(cl_device_id device, cl_device_info parameter, T missing = {}) {
  T value = missing;
  const cl_int status = ::clGetDeviceInfo(device, parameter, sizeof(T), &value, nullptr);
  if (status == CL_OUT_OF_RESOURCES || status == CL_OUT_OF_HOST_MEMORY || status == CL_INVALID_DEVICE)
    check(status, "clGetDeviceInfo", [&] { return "parameter " + std::to_string(parameter); });
  if (status != CL_SUCCESS) return missing;
  return value;
}

inline std::vector<std::string> split_words(std::string_view text) {
  std::vector<std::string> words;
  std::size_t start = 0;
  while (start < text.size()) {
    const std::size_t end = std::min(text.find(' ', start), text.size());
    if (end > start) words.emplace_back(text.substr(start, end - start));
    start = end + 1;
  }
  return words;
}

inline std::string lower_case(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return lower;
}

inline vector_widths query_widths(cl_device_id device, bool native) {
  const auto width = [&](cl_device_info preferred_parameter, cl_device_info native_parameter) {
    return query_device<cl_uint>(device, native ? native_parameter : preferred_parameter);
  };
  vector_widths widths;
  widths.char_width = width(CL_DEVICE_PREFERRED_VECTOR_WIDTH_CHAR, CL_DEVICE_NATIVE_VECTOR_WIDTH_CHAR);
  widths.short_width = width(CL_DEVICE_PREFERRED_VECTOR_WIDTH_SHORT, CL_DEVICE_NATIVE_VECTOR_WIDTH_SHORT);
  widths.int_width = width(CL_DEVICE_PREFERRED_VECTOR_WIDTH_INT, CL_DEVICE_NATIVE_VECTOR_WIDTH_INT);
  widths.long_width = width(CL_DEVICE_PREFERRED_VECTOR_WIDTH_LONG, CL_DEVICE_NATIVE_VECTOR_WIDTH_LONG);
  widths.half_width = width(CL_DEVICE_PREFERRED_VECTOR_WIDTH_HALF, CL_DEVICE_NATIVE_VECTOR_WIDTH_HALF);
  widths.float_width = width(CL_DEVICE_PREFERRED_VECTOR_WIDTH_FLOAT, CL_DEVICE_NATIVE_VECTOR_WIDTH_FLOAT);
  widths.double_width = width(CL_DEVICE_PREFERRED_VECTOR_WIDTH_DOUBLE, CL_DEVICE_NATIVE_VECTOR_WIDTH_DOUBLE);
  return widths;
}

inline image_limits query_images(cl_device_id device, const device_info& info) {
  image_limits limits;
  limits.supported = query_device<cl_bool>(device, CL_DEVICE_IMAGE_SUPPORT) == CL_TRUE;
  if (!limits.supported) return limits;
  limits.max_width_2d = query_device<std::size_t>(device, CL_DEVICE_IMAGE2D_MAX_WIDTH);
  limits.max_height_2d = query_device<std::size_t>(device, CL_DEVICE_IMAGE2D_MAX_HEIGHT);
  limits.max_width_3d = query_device<std::size_t>(device, CL_DEVICE_IMAGE3D_MAX_WIDTH);
  limits.max_height_3d = query_device<std::size_t>(device, CL_DEVICE_IMAGE3D_MAX_HEIGHT);
  limits.max_depth_3d = query_device<std::size_t>(device, CL_DEVICE_IMAGE3D_MAX_DEPTH);
  limits.max_array_layers = query_device<std::size_t>(device, CL_DEVICE_IMAGE_MAX_ARRAY_SIZE);
  limits.max_buffer_texels = query_device<std::size_t>(device, CL_DEVICE_IMAGE_MAX_BUFFER_SIZE);
  limits.max_read_arguments = query_device<cl_uint>(device, CL_DEVICE_MAX_READ_IMAGE_ARGS);
  limits.max_write_arguments = query_device<cl_uint>(device, CL_DEVICE_MAX_WRITE_IMAGE_ARGS);
  limits.max_samplers = query_device<cl_uint>(device, CL_DEVICE_MAX_SAMPLERS);
  if (info.version_major >= 2 || info.has_extension("cl_khr_image2d_from_buffer")) {
    limits.buffer_pitch_alignment = query_device<cl_uint>(device, CL_DEVICE_IMAGE_PITCH_ALIGNMENT_KHR);
    limits.buffer_base_alignment = query_device<cl_uint>(device, CL_DEVICE_IMAGE_BASE_ADDRESS_ALIGNMENT_KHR);
  }
  // The formats are a property of a context; OpenCL requires both of every device with images (FULL_PROFILE), and
  // creating the image tells at last. An embedded device need not have fp32.
  const std::string profile =
      query_text([&](cl_uint parameter, std::size_t size, void* value,
                     std::size_t* returned) { return ::clGetDeviceInfo(device, parameter, size, value, returned); },
                 CL_DEVICE_PROFILE);
  limits.rgba_fp32 = true;
  limits.rgba_fp16 = true;
  if (profile == "EMBEDDED_PROFILE")
    limits.rgba_fp32 = info.has_extension("cl_khr_fp32_images") || info.version_major >= 2;
  return limits;
}

}  // namespace detail

/// Asks the driver for everything in device_info. Queries that it refuses leave zeros. No context is created.
[[nodiscard]] inline device_info query_device_info(const cl::Platform& platform, const cl::Device& handle,
                                                   std::size_t index = 0) {
  const cl_device_id id = handle();
  const auto device_text = [&](cl_uint parameter) {
    return detail::query_text(
        [&](cl_uint which, std::size_t size, void* value, std::size_t* returned) {
          return ::clGetDeviceInfo(id, which, size, value, returned);
        },
        parameter);
  };
  const auto platform_text = [&](cl_uint parameter) {
    return detail::query_text(
        [&](cl_uint which, std::size_t size, void* value, std::size_t* returned) {
          return ::clGetPlatformInfo(platform(), which, size, value, returned);
        },
        parameter);
  };
  device_info info;
  info.index = index;
  info.name = device_text(CL_DEVICE_NAME);
  info.vendor = device_text(CL_DEVICE_VENDOR);
  info.platform = platform_text(CL_PLATFORM_NAME);
  info.platform_version = platform_text(CL_PLATFORM_VERSION);
  info.version = device_text(CL_DEVICE_VERSION);
  info.language_version = device_text(CL_DEVICE_OPENCL_C_VERSION);
  info.driver_version = device_text(CL_DRIVER_VERSION);
  info.vendor_id = detail::query_device<cl_uint>(id, CL_DEVICE_VENDOR_ID);
  // "OpenCL <major>.<minor> <vendor's text>"
  if (const std::size_t digits = info.version.find_first_of("0123456789"); digits != std::string::npos) {
    const char* end = info.version.data() + info.version.size();
    const auto [dot, failure] = std::from_chars(info.version.data() + digits, end, info.version_major);
    if (failure == std::errc() && dot != end && *dot == '.') std::from_chars(dot + 1, end, info.version_minor);
  }
  const auto type = detail::query_device<cl_device_type>(id, CL_DEVICE_TYPE);
  if ((type & CL_DEVICE_TYPE_GPU) != 0) {
    info.type = device_type::gpu;
  } else if ((type & CL_DEVICE_TYPE_CPU) != 0) {
    info.type = device_type::cpu;
  } else if ((type & CL_DEVICE_TYPE_ACCELERATOR) != 0) {
    info.type = device_type::accelerator;
  }
  info.compute_units = detail::query_device<cl_uint>(id, CL_DEVICE_MAX_COMPUTE_UNITS);
  info.clock_mhz = detail::query_device<cl_uint>(id, CL_DEVICE_MAX_CLOCK_FREQUENCY);
  info.address_bits = detail::query_device<cl_uint>(id, CL_DEVICE_ADDRESS_BITS);
  info.global_memory_bytes = detail::query_device<cl_ulong>(id, CL_DEVICE_GLOBAL_MEM_SIZE);
  info.max_allocation_bytes = detail::query_device<cl_ulong>(id, CL_DEVICE_MAX_MEM_ALLOC_SIZE);
  info.global_cache_bytes = detail::query_device<cl_ulong>(id, CL_DEVICE_GLOBAL_MEM_CACHE_SIZE);
  info.cache_line_bytes = detail::query_device<cl_uint>(id, CL_DEVICE_GLOBAL_MEM_CACHELINE_SIZE);
  info.local_memory_bytes = detail::query_device<cl_ulong>(id, CL_DEVICE_LOCAL_MEM_SIZE);
  info.dedicated_local_memory =
      detail::query_device<cl_device_local_mem_type>(id, CL_DEVICE_LOCAL_MEM_TYPE) == CL_LOCAL;
  info.constant_memory_bytes = detail::query_device<cl_ulong>(id, CL_DEVICE_MAX_CONSTANT_BUFFER_SIZE);
  info.max_parameter_bytes = detail::query_device<std::size_t>(id, CL_DEVICE_MAX_PARAMETER_SIZE);
  info.max_work_group_size = detail::query_device<std::size_t>(id, CL_DEVICE_MAX_WORK_GROUP_SIZE);
  info.max_work_item_sizes = detail::query_device<std::array<std::size_t, 3>>(id, CL_DEVICE_MAX_WORK_ITEM_SIZES);
  info.base_address_alignment_bytes = detail::query_device<cl_uint>(id, CL_DEVICE_MEM_BASE_ADDR_ALIGN) / 8;
  info.preferred_widths = detail::query_widths(id, false);
  info.native_widths = detail::query_widths(id, true);
  info.extensions = detail::split_words(device_text(CL_DEVICE_EXTENSIONS));
  info.images = detail::query_images(id, info);
  info.fp16 = info.has_extension("cl_khr_fp16");
  info.fp64 = info.has_extension("cl_khr_fp64");
  info.rounded_division = (detail::query_device<cl_device_fp_config>(id, CL_DEVICE_SINGLE_FP_CONFIG) &
                           CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT) != 0;
  info.subgroups = info.has_extension("cl_khr_subgroups");
#ifdef CL_DEVICE_MAX_NUM_SUB_GROUPS
  info.subgroups = info.subgroups || detail::query_device<cl_uint>(id, CL_DEVICE_MAX_NUM_SUB_GROUPS) > 0;
#endif
  info.host_unified_memory = detail::query_device<cl_bool>(id, CL_DEVICE_HOST_UNIFIED_MEMORY) == CL_TRUE;
#ifdef CL_VERSION_2_0
  if (info.version_major >= 2)
    info.shared_virtual_memory = (detail::query_device<cl_device_svm_capabilities>(id, CL_DEVICE_SVM_CAPABILITIES) &
                                  CL_DEVICE_SVM_COARSE_GRAIN_BUFFER) != 0;
#endif
  info.profiling = (detail::query_device<cl_command_queue_properties>(id, CL_DEVICE_QUEUE_PROPERTIES) &
                    CL_QUEUE_PROFILING_ENABLE) != 0;
  info.command_buffers = info.has_extension("cl_khr_command_buffer");
  info.recordable_queues = info.has_extension("cl_qcom_recordable_queues");
  info.timer_resolution_ns = detail::query_device<std::size_t>(id, CL_DEVICE_PROFILING_TIMER_RESOLUTION);
  return info;
}

/// Every available device of every platform, in the order of the platforms. Errors: opencl_unavailable when there
/// is no OpenCL library or no platform; a platform without devices adds nothing. Can return an empty list.
[[nodiscard]] inline std::vector<device> list_devices() {
  require_library();
  // PoCL 3.1 tells a thread that asks while another's first question finds its devices that it has none.
  static std::mutex one_at_a_time;
  const std::lock_guard held(one_at_a_time);
  cl_uint platform_count = 0;
  cl_int status = ::clGetPlatformIDs(0, nullptr, &platform_count);
  if (status != CL_SUCCESS || platform_count == 0) {
    throw error(errc::opencl_unavailable,
                "the OpenCL library " + library().name + " finds no platform (clGetPlatformIDs: " +
                    std::string(status_name(status)) + "); install a driver (Debian, for the CPU: pocl-opencl-icd)");
  }
  std::vector<cl_platform_id> platforms(platform_count);
  check(::clGetPlatformIDs(platform_count, platforms.data(), nullptr), "clGetPlatformIDs");
  std::vector<device> found;
  for (cl_platform_id platform : platforms) {
    cl_uint count = 0;
    status = ::clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 0, nullptr, &count);
    if (status == CL_DEVICE_NOT_FOUND) continue;
    check(status, "clGetDeviceIDs");
    if (count == 0) continue;
    std::vector<cl_device_id> ids(count);
    check(::clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, count, ids.data(), nullptr), "clGetDeviceIDs");
    for (cl_device_id id : ids) {
      if (detail::query_device<cl_bool>(id, CL_DEVICE_AVAILABLE) != CL_TRUE) continue;
      device one{cl::Platform(platform), cl::Device(id), {}};
      one.info = query_device_info(one.platform, one.handle, found.size());
      found.push_back(std::move(one));
    }
  }
  return found;
}

/// Index of the device that `spec` names: "opencl" is the first, "opencl:N" the N-th, "opencl:TEXT" the first whose
/// name, vendor or platform holds TEXT without regard to case (the name is looked at first in all devices). Errors:
/// opencl_unavailable for an empty list and unknown_device, with the list, when none fits.
[[nodiscard]] inline std::size_t match_device(const std::vector<device_info>& infos, std::string_view spec) {
  const auto listing = [&] {
    std::string text;
    for (std::size_t i = 0; i < infos.size(); ++i) {
      text += (i == 0 ? " " : ", ") + ("opencl:" + std::to_string(i)) + " = " + infos[i].name + " (" +
              infos[i].platform + ")";
    }
    return text;
  };
  constexpr std::string_view prefix = "opencl";
  if (spec.substr(0, prefix.size()) != prefix || (spec.size() > prefix.size() && spec[prefix.size()] != ':')) {
    throw error(errc::unknown_device,
                "'" + std::string(spec) +
                    "' is no OpenCL device; write opencl, opencl:N or opencl:PART_OF_NAME; there is:" + listing());
  }
  if (infos.empty()) throw error(errc::opencl_unavailable, "the OpenCL platforms of this machine have no device");
  const std::string_view wanted = spec.size() > prefix.size() ? spec.substr(prefix.size() + 1) : std::string_view{};
  if (wanted.empty()) return 0;
  std::size_t number = 0;
  const auto [end, failure] = std::from_chars(wanted.data(), wanted.data() + wanted.size(), number);
  if (failure == std::errc() && end == wanted.data() + wanted.size() && number < infos.size()) return number;
  const std::string part = detail::lower_case(wanted);
  for (const auto member :
       {&device_info::name, &device_info::vendor, &device_info::platform, &device_info::platform_version}) {
    for (std::size_t i = 0; i < infos.size(); ++i) {
      if (detail::lower_case(infos[i].*member).find(part) != std::string::npos) return i;
    }
  }
  throw error(errc::unknown_device, "no OpenCL device fits '" + std::string(spec) + "'; there is:" + listing());
}

/// The device that `spec` names, see match_device() and list_devices() for the forms and the errors. What plain
/// "opencl" is, the environment variable DNNOPT_OPENCL_DEVICE may say: N, or a part of a name.
[[nodiscard]] inline device select_device(std::string_view spec) {
  std::vector<device> devices = list_devices();
  std::vector<device_info> infos;
  infos.reserve(devices.size());
  for (const device& one : devices) infos.push_back(one.info);
  std::string named(spec);
  if (const char* preferred = std::getenv("DNNOPT_OPENCL_DEVICE");
      spec == "opencl" && preferred != nullptr && *preferred != '\0')
    named += ":" + std::string(preferred);
  return std::move(devices[match_device(infos, named)]);
}

}  // namespace dnnopt::opencl

#endif  // DNNOPT_BACKEND_OPENCL_DEVICE_HPP
