// Owns an OpenCL context on one device, and makes its queues and its memory.
//
// context > queue > buffer: the context object must outlive calls on it, while queues, buffers, images and programs
// keep the OpenCL context alive by themselves. Nothing is made behind the caller's back: no default context, no default
// queue. One context may serve several sessions and threads; a queue belongs to one of them.
#ifndef DNNOPT_BACKEND_OPENCL_CONTEXT_HPP
#define DNNOPT_BACKEND_OPENCL_CONTEXT_HPP

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dnnopt/backend/opencl/command_queue.hpp>
#include <dnnopt/backend/opencl/device.hpp>
#include <dnnopt/backend/opencl/device_memory.hpp>
#include <dnnopt/backend/opencl/loader.hpp>
#include <dnnopt/backend/opencl/status.hpp>
#include <dnnopt/error.hpp>

namespace dnnopt::opencl {

struct queue_options {
  bool profiling = false;            ///< events carry times; costs on some drivers even without events
  std::uint32_t flush_interval = 0;  ///< clFlush after that many commands, 0 never
};

class context {
 public:
  /// A context on `chosen` alone. Errors: opencl_call or out_of_device_memory.
  explicit context(device chosen) : device_(std::move(chosen)) {
    const cl_device_id id = device_.handle();
    const cl_context_properties properties[] = {CL_CONTEXT_PLATFORM,
                                                reinterpret_cast<cl_context_properties>(device_.platform()), 0};
    cl_int status = CL_SUCCESS;
    cl_context made = ::clCreateContext(properties, 1, &id, nullptr, nullptr, &status);
    check(status, "clCreateContext", [&] { return "device '" + device_.info.name + "'"; });
    handle_ = cl::Context(made, false);
    image_limits& images = device_.info.images;
    if (images.supported) {
      images.rgba_fp32 = supports(CL_FLOAT);
      images.rgba_fp16 = supports(CL_HALF_FLOAT);
    }
    images.over_sub_buffer = images.supported && images.rgba_fp32 && takes_sub_buffers();
    memory_.emplace(handle_, device_.info);
  }

  context(const context&) = delete;
  context& operator=(const context&) = delete;

  [[nodiscard]] const device& where() const noexcept { return device_; }
  [[nodiscard]] const device_info& info() const noexcept { return device_.info; }
  [[nodiscard]] cl_context handle() const noexcept { return handle_(); }
  /// The one allocator of this context.
  [[nodiscard]] device_memory& memory() noexcept { return *memory_; }
  [[nodiscard]] const device_memory& memory() const noexcept { return *memory_; }

  /// A new in-order queue. Errors: unsupported when profiling is asked of a device that lacks it.
  [[nodiscard]] command_queue make_queue(const queue_options& options = {}) const {
    if (options.profiling && !device_.info.profiling) {
      throw error(errc::unsupported, "device '" + device_.info.name + "' has no profiling queues");
    }
    return command_queue(make_raw_queue(options.profiling ? CL_QUEUE_PROFILING_ENABLE : 0), options.profiling,
                         options.flush_interval);
  }

  /// A queue of OpenCL with any property bits, for extensions that have their own.
  [[nodiscard]] cl::CommandQueue make_raw_queue(cl_command_queue_properties bits) const {
    cl_int status = CL_INVALID_OPERATION;
    cl_command_queue made = nullptr;
#ifdef CL_VERSION_2_0
    if (device_.info.version_major >= 2) {
      const cl_queue_properties properties[] = {CL_QUEUE_PROPERTIES, bits, 0};
      made = ::clCreateCommandQueueWithProperties(handle_(), device_.handle(), properties, &status);
    }
#endif
    if (device_.info.version_major < 2) {
#if defined(__GNUC__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
#endif
      made = ::clCreateCommandQueue(handle_(), device_.handle(), bits, &status);
#if defined(__GNUC__)
#pragma GCC diagnostic pop
#endif
    }
    check(status, "clCreateCommandQueue",
          [&] { return "properties " + std::to_string(bits) + ", device '" + device_.info.name + "'"; });
    return cl::CommandQueue(made, false);
  }

 private:
  /// True when RGBA of that channel type can be read and written as image2d.
  [[nodiscard]] bool supports(cl_channel_type type) const {
    for (const cl_mem_flags flags :
         {static_cast<cl_mem_flags>(CL_MEM_READ_ONLY), static_cast<cl_mem_flags>(CL_MEM_WRITE_ONLY)}) {
      cl_uint count = 0;
      if (::clGetSupportedImageFormats(handle_(), flags, CL_MEM_OBJECT_IMAGE2D, 0, nullptr, &count) != CL_SUCCESS) {
        return false;
      }
      std::vector<cl_image_format> formats(count);
      if (count == 0 || ::clGetSupportedImageFormats(handle_(), flags, CL_MEM_OBJECT_IMAGE2D, count, formats.data(),
                                                     nullptr) != CL_SUCCESS) {
        return false;
      }
      bool found = false;
      for (const cl_image_format& format : formats) {
        found = found || (format.image_channel_order == CL_RGBA && format.image_channel_data_type == type);
      }
      if (!found) return false;
    }
    return true;
  }

  /// True when the driver makes an image over the second half of a small buffer.
  [[nodiscard]] bool takes_sub_buffers() const {
    const std::size_t step = std::max<std::size_t>(device_.info.base_address_alignment_bytes, 64);
    cl_int status = CL_SUCCESS;
    const cl::Memory whole(::clCreateBuffer(handle_(), CL_MEM_READ_WRITE, 2 * step, nullptr, &status), false);
    if (status != CL_SUCCESS) return false;
    const cl_buffer_region region{step, step};
    const cl::Memory part(::clCreateSubBuffer(whole(), 0, CL_BUFFER_CREATE_TYPE_REGION, &region, &status), false);
    if (status != CL_SUCCESS) return false;
    const cl_image_format format{CL_RGBA, CL_FLOAT};
    cl_image_desc description{};
    description.image_type = CL_MEM_OBJECT_IMAGE1D_BUFFER;
    description.image_width = step / 16;
    description.buffer = part();
    const cl::Memory image(::clCreateImage(handle_(), 0, &format, &description, nullptr, &status), false);
    return status == CL_SUCCESS;
  }

  device device_;
  cl::Context handle_;
  std::optional<device_memory> memory_;
};

/// The plain queue of a session and, made when first asked for, its profiling queue. The two are ordered: switching
/// finishes what the other one holds.
class session_queues {
 public:
  explicit session_queues(const context& where, const queue_options& options = {})
      : where_(&where), options_(options), plain_(where.make_queue({false, options.flush_interval})) {}

  /// The plain queue, or the profiling one. Errors: unsupported when the device has no profiling. `where` of the
  /// constructor must still be alive.
  [[nodiscard]] command_queue& use(bool profiling) {
    if (profiling != profiling_in_use_) {
      (profiling_in_use_ ? *profiling_ : plain_).finish();
      if (profiling && !profiling_) profiling_.emplace(where_->make_queue({true, options_.flush_interval}));
      profiling_in_use_ = profiling;
    }
    return profiling ? *profiling_ : plain_;
  }

  [[nodiscard]] bool has_profiling_queue() const noexcept { return profiling_.has_value(); }

 private:
  const context* where_;
  queue_options options_;
  command_queue plain_;
  std::optional<command_queue> profiling_;
  bool profiling_in_use_ = false;
};

}  // namespace dnnopt::opencl

#endif  // DNNOPT_BACKEND_OPENCL_CONTEXT_HPP
