// Owns a kernel that is ready to launch: its object, its arguments set once, its sizes checked against its limits.
#ifndef DNNOPT_BACKEND_OPENCL_KERNEL_LAUNCH_HPP
#define DNNOPT_BACKEND_OPENCL_KERNEL_LAUNCH_HPP

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <dnnopt/backend/opencl/command_queue.hpp>
#include <dnnopt/backend/opencl/device.hpp>
#include <dnnopt/backend/opencl/device_memory.hpp>
#include <dnnopt/backend/opencl/loader.hpp>
#include <dnnopt/backend/opencl/status.hpp>
#include <dnnopt/device_info.hpp>
#include <dnnopt/error.hpp>

namespace dnnopt::opencl {

/// What a built kernel reports for one device.
struct kernel_limits {
  std::size_t max_work_group_size = 0;               ///< work-items per work-group with the registers it needs
  std::size_t preferred_multiple = 0;                ///< of the work-group size: the device's wave
  std::array<std::size_t, 3> required_work_group{};  ///< reqd_work_group_size, zeros when the source states none
  std::array<std::size_t, 3> max_work_item_sizes{};  ///< the device's
  std::uint64_t local_bytes = 0;                     ///< local memory of the source, without local arguments
  std::uint64_t private_bytes = 0;
};

/// The largest work-group that the kernel may have and that is at most `wanted`: a required size when it has one, else
/// each dimension cut to the device's, then the largest dimension halved until the product fits. Never 0.
[[nodiscard]] inline std::array<std::size_t, 3> fit_work_group(std::array<std::size_t, 3> wanted,
                                                               const kernel_limits& limits) noexcept {
  if (limits.required_work_group[0] != 0) return limits.required_work_group;
  for (std::size_t i = 0; i < 3; ++i)
    wanted[i] = std::clamp<std::size_t>(wanted[i], 1, std::max<std::size_t>(1, limits.max_work_item_sizes[i]));
  const std::size_t most = std::max<std::size_t>(1, limits.max_work_group_size);
  while (wanted[0] * wanted[1] * wanted[2] > most) {
    auto largest = std::max_element(wanted.begin(), wanted.end());
    *largest = (*largest + 1) / 2;
  }
  return wanted;
}

/// `items` work-items in work-groups of `local`: the global size rounded up to whole work-groups, as OpenCL 1.2 wants
/// it; the kernel guards its borders. No items are no work-groups.
[[nodiscard]] constexpr launch_size cover(const std::array<std::size_t, 3>& items,
                                          const std::array<std::size_t, 3>& local) noexcept {
  launch_size size;
  size.dimensions = items[2] > 1 || local[2] > 1 ? 3 : items[1] > 1 || local[1] > 1 ? 2 : 1;
  for (std::size_t i = 0; i < 3; ++i) {
    size.local[i] = local[i] == 0 ? 1 : local[i];
    size.global[i] = (items[i] + size.local[i] - 1) / size.local[i] * size.local[i];
  }
  return size;
}

/// One launch: a kernel object of its own, so that its arguments stay set while other launches of the same kernel have
/// theirs. Move-only. Memory given as argument must outlive the launches (OpenCL does not retain it). One thread at a
/// time.
class prepared_launch {
 public:
  prepared_launch() = default;
  prepared_launch(prepared_launch&&) noexcept = default;
  prepared_launch& operator=(prepared_launch&&) noexcept = default;

  /// The kernel `entry` of a built program. `name` is for the profile, the entry's own when empty; `tag` is the
  /// caller's number, handed to event sinks. Errors: kernel_build, with the kernels that there are, when there is
  /// no such kernel. Mali compiles here.
  prepared_launch(const cl::Program& program, const device& where, std::string_view entry, std::string_view name = {},
                  std::uint64_t tag = 0)
      : name_(name.empty() ? entry : name), tag_(tag) {
    const std::string entry_name(entry);
    cl_int status = CL_SUCCESS;
    kernel_ = cl::Kernel(::clCreateKernel(program(), entry_name.c_str(), &status), false);
    if (status == CL_INVALID_KERNEL_NAME) {
      const std::string present = detail::query_text(
          [&](cl_uint which, std::size_t size, void* value, std::size_t* returned) {
            return ::clGetProgramInfo(program(), which, size, value, returned);
          },
          CL_PROGRAM_KERNEL_NAMES);
      throw error(errc::kernel_build, "the program has no kernel '" + entry_name + "', it has: " + present);
    }
    check(status, "clCreateKernel", [&] { return "kernel '" + entry_name + "'"; });
    limits_.max_work_item_sizes = where.info.max_work_item_sizes;
    limits_.max_work_group_size = query<std::size_t>(where, CL_KERNEL_WORK_GROUP_SIZE);
    limits_.preferred_multiple = query<std::size_t>(where, CL_KERNEL_PREFERRED_WORK_GROUP_SIZE_MULTIPLE);
    limits_.required_work_group = query<std::array<std::size_t, 3>>(where, CL_KERNEL_COMPILE_WORK_GROUP_SIZE);
    limits_.local_bytes = query<cl_ulong>(where, CL_KERNEL_LOCAL_MEM_SIZE);
    limits_.private_bytes = query<cl_ulong>(where, CL_KERNEL_PRIVATE_MEM_SIZE);
  }

  [[nodiscard]] const kernel_limits& limits() const noexcept { return limits_; }
  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  [[nodiscard]] std::uint64_t tag() const noexcept { return tag_; }
  [[nodiscard]] const launch_size& size() const noexcept { return size_; }
  [[nodiscard]] const cl::Kernel& kernel() const noexcept { return kernel_; }

  /// Sets argument `index`; a value equal to the one set before costs no call. Errors: opencl_call with kernel
  /// name and index when the driver refuses it.
  void set(cl_uint index, const device_buffer& buffer) {
    if (buffer.address() == nullptr) return set_object(index, buffer.handle());
    forget(index);
    check(buffer.set_as_argument(kernel_(), index), "clSetKernelArgSVMPointer",
          [&] { return "argument " + std::to_string(index) + ", kernel '" + name_ + "'"; });
  }
  void set(cl_uint index, const device_image& image) { set_object(index, image.handle()); }
  void set(cl_uint index, const cl::Sampler& sampler) {
    const cl_sampler handle = sampler();
    set_bytes(index, &handle, sizeof(handle));
  }
  /// A scalar or vector of OpenCL's own types (cl_int, cl_float4, ...): its size must be the parameter's.
  template <class T>
  requires(std::is_trivially_copyable_v<T> && !std::is_pointer_v<T>) void set(cl_uint index, const T& value) {
    set_bytes(index, &value, sizeof(value));
  }
  /// `bytes` of local memory.
  void set_local(cl_uint index, std::size_t bytes) {
    forget(index);
    set_argument(index, nullptr, bytes);
  }

  /// Sets the sizes of the launch. Errors: invalid_argument when the work-group is larger than the kernel object
  /// allows, is not the one that its source requires, or does not divide the global size, which may be zero.
  void set_size(const launch_size& size) {
    check_size(size);
    size_ = size;
  }

  /// Enqueues it unless it is a launch over nothing; errors as command_queue::launch().
  void enqueue(command_queue& queue, event_sink* sink = nullptr) const {
    queue.launch(kernel_(), size_, name_, sink, tag_);
  }

 private:
  template <class T>
  T query(const device& where, cl_kernel_work_group_info parameter) const {
    T value{};
    check(::clGetKernelWorkGroupInfo(kernel_(), where.handle(), parameter, sizeof(value), &value, nullptr),
          "clGetKernelWorkGroupInfo", [&] { return "kernel '" + name_ + "'"; });
    return value;
  }

  void set_object(cl_uint index, cl_mem handle) { set_bytes(index, &handle, sizeof(handle)); }

  struct argument {
    std::uint8_t bytes = 0;  ///< 0: not known
    std::array<std::byte, 32> value{};
  };

  void forget(cl_uint index) {
    if (index < arguments_.size()) arguments_[index].bytes = 0;
  }

  void set_bytes(cl_uint index, const void* value, std::size_t bytes) {
    if (index >= arguments_.size()) arguments_.resize(index + 1);
    argument& known = arguments_[index];
    if (known.bytes == bytes && std::memcmp(known.value.data(), value, bytes) == 0) return;
    known.bytes = 0;
    set_argument(index, value, bytes);
    if (bytes <= known.value.size()) {
      std::memcpy(known.value.data(), value, bytes);
      known.bytes = static_cast<std::uint8_t>(bytes);
    }
  }

  void set_argument(cl_uint index, const void* value, std::size_t bytes) {
    check(::clSetKernelArg(kernel_(), index, bytes, value), "clSetKernelArg", [&] {
      return "argument " + std::to_string(index) + " of " + std::to_string(bytes) + " bytes, kernel '" + name_ + "'";
    });
  }

  static std::string text_of(const std::array<std::size_t, 3>& sizes) {
    return std::to_string(sizes[0]) + " x " + std::to_string(sizes[1]) + " x " + std::to_string(sizes[2]);
  }

  void check_size(const launch_size& size) const {
    if (size.dimensions < 1 || size.dimensions > 3) {
      throw error(errc::invalid_argument, "kernel '" + name_ + "': " + std::to_string(size.dimensions) + " dimensions");
    }
    std::array<std::size_t, 3> global{1, 1, 1};
    std::array<std::size_t, 3> local{1, 1, 1};
    const bool chosen = size.local[0] != 0;
    for (cl_uint i = 0; i < size.dimensions; ++i) {
      global[i] = size.global[i];
      if (chosen) local[i] = size.local[i];
    }
    std::string fault;
    for (std::size_t i = 0; i < 3; ++i) {
      if (local[i] == 0 || global[i] % local[i] != 0) {
        fault = "the work-group does not divide the global size";
      } else if (chosen && local[i] > limits_.max_work_item_sizes[i]) {
        fault = "the device allows " + text_of(limits_.max_work_item_sizes);
      }
    }
    if (chosen && fault.empty()) {
      if (local[0] * local[1] * local[2] > limits_.max_work_group_size) {
        fault = "the kernel allows " + std::to_string(limits_.max_work_group_size) + " work-items";
      } else if (limits_.required_work_group[0] != 0 && local != limits_.required_work_group) {
        fault = "the source requires " + text_of(limits_.required_work_group);
      }
    }
    if (!fault.empty()) {
      throw error(errc::invalid_argument, "kernel '" + name_ + "' of global size " + text_of(global) +
                                              " in work-groups of " + text_of(local) + ": " + fault);
    }
  }

  cl::Kernel kernel_;
  std::string name_;
  std::uint64_t tag_ = 0;
  kernel_limits limits_;
  launch_size size_;
  std::vector<argument> arguments_;
};

}  // namespace dnnopt::opencl

#endif  // DNNOPT_BACKEND_OPENCL_KERNEL_LAUNCH_HPP
