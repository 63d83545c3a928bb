// Owns an in-order command queue: every command that dnnopt gives a device goes through it and is counted there.
//
// A command makes an event only when the caller passes an event_sink; without one OpenCL is asked for none. The queue
// must be used by one thread at a time; several queues of one context may be used by several threads.
#ifndef DNNOPT_BACKEND_OPENCL_COMMAND_QUEUE_HPP
#define DNNOPT_BACKEND_OPENCL_COMMAND_QUEUE_HPP

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include <dnnopt/backend/opencl/commands.hpp>
#include <dnnopt/backend/opencl/device_memory.hpp>
#include <dnnopt/backend/opencl/loader.hpp>
#include <dnnopt/backend/opencl/status.hpp>
#include <dnnopt/error.hpp>
#include <dnnopt/wait_mode.hpp>

namespace dnnopt::opencl {

/// An in-order queue. Move-only; destroying it neither blocks nor throws (OpenCL finishes what was enqueued).
class command_queue {
 public:
  command_queue() = default;
  command_queue(command_queue&&) noexcept = default;
  command_queue& operator=(command_queue&&) noexcept = default;

  /// Takes over `queue`, which must be in-order; context::make_queue() makes one. After every `flush_interval`
  /// commands clFlush is called, 0 leaves that to flush(), finish() and the driver.
  command_queue(cl::CommandQueue queue, bool profiling, std::uint32_t flush_interval)
      : queue_(std::move(queue)), profiling_(profiling), flush_interval_(flush_interval) {}

  [[nodiscard]] cl_command_queue handle() const noexcept { return queue_(); }
  /// Events of this queue carry times.
  [[nodiscard]] bool profiling() const noexcept { return profiling_; }
  [[nodiscard]] const command_counts& counts() const noexcept { return counts_; }

  /// Enqueues a kernel whose arguments are set. `name` is for errors and the sink. Errors: out_of_device_memory or
  /// opencl_call with name and sizes. No work-items enqueue nothing.
  void launch(cl_kernel kernel, const launch_size& size, std::string_view name = {}, event_sink* sink = nullptr,
              std::uint64_t tag = 0) {
    if (size.empty()) return;
    const std::size_t* local = size.local[0] == 0 ? nullptr : size.local.data();
    const auto call = [&](cl_event* event) {
      return ::clEnqueueNDRangeKernel(queue_(), kernel, size.dimensions, nullptr, size.global.data(), local, 0, nullptr,
                                      event);
    };
    if (sink == nullptr) {
      if (const cl_int status = call(nullptr); status != CL_SUCCESS) launch_failed(status, size, name);
    } else {
      command_record record;
      record.name = name;
      for (cl_uint i = 0; i < 3; ++i) {
        record.global[i] = i < size.dimensions ? size.global[i] : 1;
        record.local[i] = local == nullptr ? 0 : i < size.dimensions ? size.local[i] : 1;
      }
      record.tag = tag;
      if (const cl_int status = observed(call, record, *sink); status != CL_SUCCESS) launch_failed(status, size, name);
    }
    ++counts_.kernels;
    enqueued();
  }

  /// Host memory to `target` from byte `offset`. Not blocking: the bytes must stay until finish(). Errors:
  /// invalid_argument when the range does not fit. Zero bytes enqueue nothing.
  void upload(const device_buffer& target, std::span<const std::byte> bytes, std::size_t offset = 0,
              bool blocking = false, event_sink* sink = nullptr) {
    within(target, offset, bytes.size(), "upload");
    if (bytes.empty()) return;
    transfer(command_kind::upload, "clEnqueueWriteBuffer", bytes.size(), blocking, sink, [&](cl_event* event) {
      if (target.address() != nullptr)
        return move(blocking, target.address() + offset, bytes.data(), bytes.size(), event);
      return ::clEnqueueWriteBuffer(queue_(), target.handle(), blocking ? CL_TRUE : CL_FALSE, offset, bytes.size(),
                                    bytes.data(), 0, nullptr, event);
    });
    ++counts_.uploads;
  }

  /// `source` from byte `offset` to host memory; blocking unless told otherwise. Errors as upload().
  void download(const device_buffer& source, std::span<std::byte> bytes, std::size_t offset = 0, bool blocking = true,
                event_sink* sink = nullptr) {
    within(source, offset, bytes.size(), "download");
    if (bytes.empty()) return;
    transfer(command_kind::download, "clEnqueueReadBuffer", bytes.size(), blocking, sink, [&](cl_event* event) {
      if (source.address() != nullptr)
        return move(blocking, bytes.data(), source.address() + offset, bytes.size(), event);
      return ::clEnqueueReadBuffer(queue_(), source.handle(), blocking ? CL_TRUE : CL_FALSE, offset, bytes.size(),
                                   bytes.data(), 0, nullptr, event);
    });
    ++counts_.downloads;
  }

  /// Texels of the host, rows and layers without gaps, to the whole image. `bytes` must be image.bytes() long.
  void upload_image(const device_image& target, std::span<const std::byte> bytes, bool blocking = false,
                    event_sink* sink = nullptr) {
    whole_image(target, bytes.size(), "upload_image");
    const image_region region(target.shape());
    transfer(command_kind::upload, "clEnqueueWriteImage", bytes.size(), blocking, sink, [&](cl_event* event) {
      return ::clEnqueueWriteImage(queue_(), target.handle(), blocking ? CL_TRUE : CL_FALSE, region.origin.data(),
                                   region.extent.data(), 0, 0, bytes.data(), 0, nullptr, event);
    });
    ++counts_.uploads;
  }

  /// The whole image to host memory, rows and layers without gaps.
  void download_image(const device_image& source, std::span<std::byte> bytes, bool blocking = true,
                      event_sink* sink = nullptr) {
    whole_image(source, bytes.size(), "download_image");
    const image_region region(source.shape());
    transfer(command_kind::download, "clEnqueueReadImage", bytes.size(), blocking, sink, [&](cl_event* event) {
      return ::clEnqueueReadImage(queue_(), source.handle(), blocking ? CL_TRUE : CL_FALSE, region.origin.data(),
                                  region.extent.data(), 0, 0, bytes.data(), 0, nullptr, event);
    });
    ++counts_.downloads;
  }

  /// Copies bytes between buffers on the device. Ranges of one buffer must not overlap. Errors: unsupported
  /// between addressed memory and a memory object: OpenCL has no such copy.
  void copy(const device_buffer& source, std::size_t source_offset, const device_buffer& target,
            std::size_t target_offset, std::size_t bytes, event_sink* sink = nullptr) {
    within(source, source_offset, bytes, "copy from");
    within(target, target_offset, bytes, "copy to");
    if (bytes == 0) return;
    const bool addressed = source.address() != nullptr && target.address() != nullptr;
    if (!addressed) in_objects({&source, &target}, "copy");
    transfer(command_kind::copy, "clEnqueueCopyBuffer", bytes, false, sink, [&](cl_event* event) {
      if (addressed)
        return move(false, target.address() + target_offset, source.address() + source_offset, bytes, event);
      return ::clEnqueueCopyBuffer(queue_(), source.handle(), target.handle(), source_offset, target_offset, bytes, 0,
                                   nullptr, event);
    });
    ++counts_.copies;
  }

  /// A box of up to three dimensions inside a buffer: origin and pitches in bytes, origin {byte, row, slice}.
  struct rectangle {
    std::array<std::size_t, 3> origin{};
    std::size_t row_pitch = 0;
    std::size_t slice_pitch = 0;
  };

  /// Copies a box of `extent` {bytes, rows, slices} between buffers on the device; OpenCL checks the ranges.
  void copy_rectangle(const device_buffer& source, const rectangle& from, const device_buffer& target,
                      const rectangle& to, const std::array<std::size_t, 3>& extent, event_sink* sink = nullptr) {
    const std::size_t bytes = extent[0] * extent[1] * extent[2];
    if (bytes == 0) return;
    in_objects({&source, &target}, "copy_rectangle");
    transfer(command_kind::copy, "clEnqueueCopyBufferRect", bytes, false, sink, [&](cl_event* event) {
      return ::clEnqueueCopyBufferRect(queue_(), source.handle(), target.handle(), from.origin.data(), to.origin.data(),
                                       extent.data(), from.row_pitch, from.slice_pitch, to.row_pitch, to.slice_pitch, 0,
                                       nullptr, event);
    });
    ++counts_.copies;
  }

  /// Texels without gaps from byte `offset` of a buffer to the whole image.
  void copy(const device_buffer& source, std::size_t offset, const device_image& target, event_sink* sink = nullptr) {
    within(source, offset, target.bytes(), "copy to an image from");
    in_objects({&source}, "copy to an image");
    const image_region region(target.shape());
    transfer(command_kind::copy, "clEnqueueCopyBufferToImage", target.bytes(), false, sink, [&](cl_event* event) {
      return ::clEnqueueCopyBufferToImage(queue_(), source.handle(), target.handle(), offset, region.origin.data(),
                                          region.extent.data(), 0, nullptr, event);
    });
    ++counts_.copies;
  }

  /// The whole image to byte `offset` of a buffer, without gaps.
  void copy(const device_image& source, const device_buffer& target, std::size_t offset, event_sink* sink = nullptr) {
    within(target, offset, source.bytes(), "copy from an image to");
    in_objects({&target}, "copy from an image");
    const image_region region(source.shape());
    transfer(command_kind::copy, "clEnqueueCopyImageToBuffer", source.bytes(), false, sink, [&](cl_event* event) {
      return ::clEnqueueCopyImageToBuffer(queue_(), source.handle(), target.handle(), region.origin.data(),
                                          region.extent.data(), offset, 0, nullptr, event);
    });
    ++counts_.copies;
  }

  /// The whole of an image to another of the same shape and texel.
  void copy(const device_image& source, const device_image& target, event_sink* sink = nullptr) {
    if (source.bytes() != target.bytes()) {
      throw error(errc::invalid_argument, "copy between images of " + std::to_string(source.bytes()) + " and " +
                                              std::to_string(target.bytes()) + " bytes");
    }
    const image_region region(source.shape());
    transfer(command_kind::copy, "clEnqueueCopyImage", source.bytes(), false, sink, [&](cl_event* event) {
      return ::clEnqueueCopyImage(queue_(), source.handle(), target.handle(), region.origin.data(),
                                  region.origin.data(), region.extent.data(), 0, nullptr, event);
    });
    ++counts_.copies;
  }

  /// Repeats `pattern` (1, 2, 4, ..., 128 bytes) over [offset, offset + bytes), both multiples of its length.
  void fill(const device_buffer& target, std::span<const std::byte> pattern, std::size_t offset, std::size_t bytes,
            event_sink* sink = nullptr) {
    within(target, offset, bytes, "fill");
    if (bytes == 0) return;
    transfer(command_kind::fill, "clEnqueueFillBuffer", bytes, false, sink, [&](cl_event* event) {
#ifdef CL_VERSION_2_0
      if (target.address() != nullptr)
        return ::clEnqueueSVMMemFill(queue_(), target.address() + offset, pattern.data(), pattern.size(), bytes, 0,
                                     nullptr, event);
#endif
      return ::clEnqueueFillBuffer(queue_(), target.handle(), pattern.data(), pattern.size(), offset, bytes, 0, nullptr,
                                   event);
    });
    ++counts_.fills;
  }

  /// Sets every texel of an image to `color` (converted to the image's type).
  void fill(const device_image& target, const std::array<float, 4>& color, event_sink* sink = nullptr) {
    const image_region region(target.shape());
    transfer(command_kind::fill, "clEnqueueFillImage", target.bytes(), false, sink, [&](cl_event* event) {
      return ::clEnqueueFillImage(queue_(), target.handle(), color.data(), region.origin.data(), region.extent.data(),
                                  0, nullptr, event);
    });
    ++counts_.fills;
  }

  /// Maps [offset, offset + bytes) into host memory after what was enqueued before, and waits for it. `write` promises
  /// to write every byte, so that nothing is read. Errors: out_of_device_memory or opencl_call.
  [[nodiscard]] mapped_region map(const device_buffer& buffer, map_access access, std::size_t offset, std::size_t bytes,
                                  event_sink* sink = nullptr) {
    within(buffer, offset, bytes, "map");
    in_objects({&buffer}, "map");
    mapped_region region;
    if (bytes == 0) return region;
    cl_map_flags flags = CL_MAP_READ | CL_MAP_WRITE;
    if (access == map_access::read) flags = CL_MAP_READ;
    if (access == map_access::write) flags = CL_MAP_WRITE_INVALIDATE_REGION;
    void* pointer = nullptr;
    transfer(command_kind::map, "clEnqueueMapBuffer", bytes, true, sink, [&](cl_event* event) {
      cl_int status = CL_SUCCESS;
      pointer =
          ::clEnqueueMapBuffer(queue_(), buffer.handle(), CL_TRUE, flags, offset, bytes, 0, nullptr, event, &status);
      return status;
    });
    ++counts_.maps;
    region.queue_ = queue_;
    region.memory_ = cl::Memory(buffer.handle(), true);
    region.bytes_ = {static_cast<std::byte*>(pointer), bytes};
    return region;
  }

  /// Hands what was enqueued to the device without waiting.
  void flush() {
    check(::clFlush(queue_()), "clFlush");
    since_flush_ = 0;
  }

  /// Waits until everything enqueued is done. Spinning costs one event (counted). Errors: opencl_call when a
  /// command failed.
  void finish(wait_mode mode = wait_mode::blocking) {
    ++counts_.waits;
    since_flush_ = 0;
    if (mode == wait_mode::blocking) {
      check_wait(::clFinish(queue_()), "clFinish");
      return;
    }
    cl_event marker = nullptr;
    check_wait(::clEnqueueMarkerWithWaitList(queue_(), 0, nullptr, &marker), "clEnqueueMarkerWithWaitList");
    ++counts_.events;
    const cl::Event event(marker, false);
    check_wait(::clFlush(queue_()), "clFlush");
    cl_int state = CL_QUEUED;
    while (state > CL_COMPLETE) {
      check_wait(::clGetEventInfo(marker, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof(state), &state, nullptr),
                 "clGetEventInfo");
    }
    if (state < 0) check_wait(state, "a command", "its state says so");
    // Seeing the state is no synchronization point (OpenCL 1.2, section 5.9, clGetEventInfo): other queues may not see
    // what was written. This call is one, and returns at once.
    check_wait(::clWaitForEvents(1, &marker), "clWaitForEvents");
  }

  /// For layers that enqueue by functions of their own (recordings): makes the call with an event for the sink, or
  /// without any, and adds `added` to the counts.
  template <class Call>
  void enqueue(const command_record& record, std::string_view function, const command_counts& added, event_sink* sink,
               const Call& call) {
    transfer(record.kind, function, record.bytes, false, sink, call, record.name);
    counts_.kernels += added.kernels;
    counts_.copies += added.copies;
    counts_.fills += added.fills;
    counts_.recordings += added.recordings;
  }

 private:
  /// Origin and extent of a whole image as the transfer functions want them.
  struct image_region {
    explicit image_region(const image_shape& shape) : extent{shape.width, shape.height, shape.layers} {}
    std::array<std::size_t, 3> origin{0, 0, 0};
    std::array<std::size_t, 3> extent;
  };

  static void within(const device_buffer& buffer, std::size_t offset, std::size_t bytes, std::string_view what) {
    if (offset > buffer.bytes() || bytes > buffer.bytes() - offset) {
      throw error(errc::invalid_argument, std::string(what) + " " + std::to_string(bytes) + " bytes at byte " +
                                              std::to_string(offset) + " of a buffer of " +
                                              std::to_string(buffer.bytes()) + " bytes");
    }
  }

  /// Bytes between addresses of the host and of shared virtual memory.
  cl_int move(bool blocking, void* target, const void* source, std::size_t bytes, cl_event* event) const {
#ifdef CL_VERSION_2_0
    return ::clEnqueueSVMMemcpy(queue_(), blocking ? CL_TRUE : CL_FALSE, target, source, bytes, 0, nullptr, event);
#else
    (void)blocking, (void)target, (void)source, (void)bytes, (void)event;
    return CL_INVALID_OPERATION;
#endif
  }

  /// OpenCL does this between memory objects only.
  static void in_objects(std::initializer_list<const device_buffer*> buffers, std::string_view what) {
    for (const device_buffer* one : buffers)
      if (one->address() != nullptr)
        throw error(errc::unsupported, std::string(what) + ": addressed memory is no memory object of OpenCL");
  }

  static void whole_image(const device_image& image, std::size_t bytes, std::string_view what) {
    if (bytes != image.bytes()) {
      throw error(errc::invalid_argument, std::string(what) + " of " + std::to_string(bytes) +
                                              " bytes for an image of " + std::to_string(image.bytes()) + " bytes");
    }
  }

  template <class Call>
  cl_int observed(const Call& call, command_record& record, event_sink& sink) {
    cl_event event = nullptr;
    record.host_begin = std::chrono::steady_clock::now();
    const cl_int status = call(&event);
    record.host_end = std::chrono::steady_clock::now();
    if (status == CL_SUCCESS) {
      ++counts_.events;
      sink.on_command(record, cl::Event(event, false));
    }
    return status;
  }

  template <class Call>
  void transfer(command_kind kind, std::string_view function, std::size_t bytes, bool blocking, event_sink* sink,
                const Call& call, std::string_view name = {}) {
    cl_int status = CL_SUCCESS;
    if (sink == nullptr) {
      status = call(nullptr);
    } else {
      command_record record;
      record.kind = kind;
      record.name = name.empty() ? name_of(kind) : name;
      record.bytes = bytes;
      status = observed(call, record, *sink);
    }
    if (blocking) ++counts_.waits;
    if (status == CL_OUT_OF_RESOURCES && blocking) check_wait(status, function);
    check(status, function, [&] { return std::string(name) + " " + std::to_string(bytes) + " bytes"; });
    enqueued();
  }

  [[noreturn]] static void launch_failed(cl_int status, const launch_size& size, std::string_view name) {
    std::string text = "kernel '" + std::string(name) + "', global size";
    for (cl_uint i = 0; i < size.dimensions; ++i) text += " " + std::to_string(size.global[i]);
    text += ", work-group size";
    for (cl_uint i = 0; i < size.dimensions; ++i) text += " " + std::to_string(size.local[i]);
    throw_status(status_code(status), status, "clEnqueueNDRangeKernel", text);
  }

  void enqueued() {
    if (flush_interval_ != 0 && ++since_flush_ >= flush_interval_) flush();
  }

  cl::CommandQueue queue_;
  bool profiling_ = false;
  std::uint32_t flush_interval_ = 0;
  std::uint32_t since_flush_ = 0;
  command_counts counts_;
};

}  // namespace dnnopt::opencl

#endif  // DNNOPT_BACKEND_OPENCL_COMMAND_QUEUE_HPP
