// Owns what a program and the bodies of its control flow hand to each other, and memory that commands under way use.
#ifndef DNNOPT_BACKEND_FLOW_HANDED_VALUE_HPP
#define DNNOPT_BACKEND_FLOW_HANDED_VALUE_HPP

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include <dnnopt/backend/opencl/device_memory.hpp>
#include <dnnopt/tensor.hpp>

namespace dnnopt {

/// What commands under way read and write, which nothing else holds any more: OpenCL keeps neither buffers nor host
/// memory alive for them. Commands to come may use the buffers again, for they run behind those under way.
struct pending_memory {
  std::vector<opencl::device_buffer> buffers;
  std::vector<opencl::device_buffer> addressed;  ///< nobody takes these again: no command copies them into an object
  std::vector<tensor> tensors;
  std::vector<std::vector<std::byte>> texels;
  std::vector<std::shared_ptr<const void>> programs;  ///< of bodies, with their memory

  /// Everything enqueued so far is done.
  void reached() noexcept {
    buffers.clear();
    addressed.clear();
    tensors.clear();
    texels.clear();
    programs.clear();
  }
};

/// A tensor where it lies: on the host or on the device. Neither stands for an absent value.
struct handed_value {
  dtype type = dtype::undefined;
  dim_list dims;
  tensor host;                                    ///< empty() where the device has it
  std::shared_ptr<opencl::device_buffer> memory;  ///< null where the host has it; may be larger than the value
  /// The executor to whose memory it belongs, which uses it for other values once its step has ended; null: the value
  /// lasts as long as anybody holds it.
  const void* lender = nullptr;

  handed_value() = default;
  explicit handed_value(tensor content) : type(content.type()), dims(content.dims()), host(std::move(content)) {}
  handed_value(dtype element, dim_list extents, std::shared_ptr<opencl::device_buffer> where)
      : type(element), dims(std::move(extents)), memory(std::move(where)) {}

  [[nodiscard]] bool absent() const noexcept { return host.empty() && !memory; }
  [[nodiscard]] std::size_t bytes() const { return static_cast<std::size_t>(element_count(dims)) * size_of(type); }
};

/// A buffer that is another one's to give back: a value of the program around.
[[nodiscard]] inline std::shared_ptr<opencl::device_buffer> lent(const opencl::device_buffer& buffer) {
  return std::make_shared<opencl::device_buffer>(buffer.share());
}

/// A buffer that goes to `pending` with its last holder. Precondition: `pending` outlives the holders.
[[nodiscard]] inline std::shared_ptr<opencl::device_buffer> handed_over(opencl::device_buffer buffer,
                                                                        pending_memory& pending) {
  return {new opencl::device_buffer(std::move(buffer)), [&pending](opencl::device_buffer* held) {
            (held->address() == nullptr ? pending.buffers : pending.addressed).push_back(std::move(*held));
            delete held;
          }};
}

}  // namespace dnnopt

#endif  // DNNOPT_BACKEND_FLOW_HANDED_VALUE_HPP
