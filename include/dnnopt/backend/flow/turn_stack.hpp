// Owns the stacking of what the turns of a Loop or Scan give, on the device.
#ifndef DNNOPT_BACKEND_FLOW_TURN_STACK_HPP
#define DNNOPT_BACKEND_FLOW_TURN_STACK_HPP

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include <dnnopt/backend/flow/handed_value.hpp>
#include <dnnopt/backend/opencl/command_queue.hpp>
#include <dnnopt/error.hpp>

namespace dnnopt {

/// Memory of at least so many bytes, which commands to come may write.
using buffer_source = std::function<opencl::device_buffer(std::size_t bytes)>;

/// Values of one shape along a new axis, each copied to its place as it comes: one copy command for each.
class turn_stack {
 public:
  /// `turns` is how many come, where that is known; else the axis is 0, and memory doubles when it is full.
  /// Preconditions: `queue` and `pending` outlive this object and its result.
  turn_stack(opencl::command_queue& queue, pending_memory& pending, buffer_source source, std::int64_t axis,
             bool backwards, std::optional<std::size_t> turns)
      : queue_(&queue),
        pending_(&pending),
        source_(std::move(source)),
        axis_(axis),
        backwards_(backwards),
        turns_(turns) {}

  /// Adds the value of the next turn. Errors: shape_mismatch for another shape or type than before; unsupported for
  /// strings.
  void add(const handed_value& item) {
    if (count_ == 0) begin(item);
    if (item.dims != dims_ || item.type != type_)
      throw error(errc::shape_mismatch, "a turn gives " + to_string(item.dims) + ", those before gave " +
                                            to_string(dims_) + ": they cannot be stacked");
    if (rows_ * row_bytes_ != 0) place(item);
    ++count_;
  }

  [[nodiscard]] std::size_t count() const noexcept { return count_; }

  /// The stack. Precondition: something was added, and as many as `turns` told.
  [[nodiscard]] handed_value result() {
    dim_list dims = dims_;
    dims.insert(dims.begin() + static_cast<std::ptrdiff_t>(at_), static_cast<std::int64_t>(count_));
    if (rows_ * row_bytes_ == 0) return handed_value(tensor(type_, std::move(dims)));
    return {type_, std::move(dims), handed_over(std::move(memory_), *pending_)};
  }

 private:
  void begin(const handed_value& item) {
    if (item.type == dtype::string) throw error(errc::unsupported, "a device stacks no strings");
    dims_ = item.dims;
    type_ = item.type;
    const auto rank = static_cast<std::int64_t>(dims_.size()) + 1;
    if (axis_ < -rank || axis_ >= rank)
      throw error(errc::bad_attribute, "axis " + std::to_string(axis_) + " is outside rank " + std::to_string(rank));
    at_ = static_cast<std::size_t>(axis_ < 0 ? axis_ + rank : axis_);
    rows_ = 1;
    row_bytes_ = size_of(type_);
    for (std::size_t k = 0; k < dims_.size(); ++k) (k < at_ ? rows_ : row_bytes_) *= static_cast<std::size_t>(dims_[k]);
    capacity_ = turns_.value_or(first_capacity);
    if (rows_ * row_bytes_ != 0) memory_ = source_(capacity_ * rows_ * row_bytes_);
  }

  void grow() {
    opencl::device_buffer larger = source_(2 * capacity_ * row_bytes_);
    queue_->copy(memory_, 0, larger, 0, count_ * row_bytes_);
    pending_->buffers.push_back(std::exchange(memory_, std::move(larger)));
    capacity_ *= 2;
  }

  void place(const handed_value& item) {
    if (count_ == capacity_) {
      if (turns_) throw error(errc::shape_mismatch, "more turns than were told");
      grow();
    }
    const std::size_t place = backwards_ ? capacity_ - 1 - count_ : count_;
    const std::size_t bytes = rows_ * row_bytes_;
    std::shared_ptr<opencl::device_buffer> from = item.memory;
    // OpenCL copies nothing from addressed memory to an object.
    const bool addressed = from && from->address() != nullptr;
    if (!from || addressed) {
      tensor content = item.host;
      if (addressed) {
        content = tensor(type_, dims_);
        queue_->download(*from, content.mutable_bytes());
      }
      from = handed_over(source_(bytes), *pending_);
      queue_->upload(*from, content.bytes(), 0, false);
      pending_->tensors.push_back(std::move(content));
    }
    if (rows_ == 1) return queue_->copy(*from, 0, memory_, place * row_bytes_, row_bytes_);
    queue_->copy_rectangle(*from, {{0, 0, 0}, row_bytes_, 0}, memory_,
                           {{place * row_bytes_, 0, 0}, capacity_ * row_bytes_, 0}, {row_bytes_, rows_, 1});
  }

  static constexpr std::size_t first_capacity = 8;

  opencl::command_queue* queue_;
  pending_memory* pending_;
  buffer_source source_;
  std::int64_t axis_;
  bool backwards_;
  std::optional<std::size_t> turns_;
  std::size_t count_ = 0;
  std::size_t capacity_ = 0;
  dim_list dims_;  // of one value
  dtype type_ = dtype::undefined;
  std::size_t at_ = 0;  // where the new axis is
  std::size_t rows_ = 0;
  std::size_t row_bytes_ = 0;
  opencl::device_buffer memory_;
};

}  // namespace dnnopt

#endif  // DNNOPT_BACKEND_FLOW_TURN_STACK_HPP
