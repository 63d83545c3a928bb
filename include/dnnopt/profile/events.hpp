// Owns the plain records of what happened during compilation and inference, as the executor takes them and observers
// see them.
#ifndef DNNOPT_PROFILE_EVENTS_HPP
#define DNNOPT_PROFILE_EVENTS_HPP

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <dnnopt/profile/waiting/event_bias.hpp>

namespace dnnopt::profile {

/// What a record measures. Kinds from `kernel` to `fill` are device commands with four device stamps; the others are
/// intervals of the host clock alone.
enum class event_kind : std::uint8_t {
  kernel,         ///< a kernel launch
  copy,           ///< a device-to-device copy, rectangle or image command
  fill,           ///< a fill command
  upload,         ///< host to device
  download,       ///< device to host
  map,            ///< map or unmap of a memory object
  host_operator,  ///< an operator evaluated on the reference backend, without data preparation
  wait,           ///< the host blocked until the queue is done
};

[[nodiscard]] constexpr std::string_view to_string(event_kind kind) noexcept {
  switch (kind) {
    case event_kind::kernel:
      return "kernel";
    case event_kind::copy:
      return "copy";
    case event_kind::fill:
      return "fill";
    case event_kind::upload:
      return "upload";
    case event_kind::download:
      return "download";
    case event_kind::map:
      return "map";
    case event_kind::host_operator:
      return "host operator";
    case event_kind::wait:
      return "wait";
  }
  return "unknown";
}

/// True for the commands that the contract's `kernels` counts: launches and the copies and fills between them.
[[nodiscard]] constexpr bool counts_as_kernel(event_kind kind) noexcept {
  return kind == event_kind::kernel || kind == event_kind::copy || kind == event_kind::fill;
}

/// True for commands that the device stamps.
[[nodiscard]] constexpr bool has_device_stamps(event_kind kind) noexcept {
  return kind != event_kind::host_operator && kind != event_kind::wait;
}

/// Why the work of a launch is there: SmartMem Table 1 splits a model's time so.
enum class work_class : std::uint8_t {
  compute,       ///< computes values of the model
  layout,        ///< only moves or repeats elements, by an operator of the model
  conversion,    ///< only moves elements, put in by the compiler
  shape,         ///< shape arithmetic on the host
  not_of_model,  ///< transfers, waits, clock probes
};

[[nodiscard]] constexpr std::string_view to_string(work_class work) noexcept {
  switch (work) {
    case work_class::compute:
      return "compute";
    case work_class::layout:
      return "layout";
    case work_class::conversion:
      return "conversion";
    case work_class::shape:
      return "shape";
    case work_class::not_of_model:
      return "not of the model";
  }
  return "unknown";
}

/// An operator of the model inside a launch.
struct operator_ref {
  std::string name;  ///< the node's name, unique in the model
  std::string type;  ///< the ONNX operator
};

/// What stays the same each time a launch runs; described once, then referred to by number.
struct launch_info {
  std::string name;                 ///< kernel name, or a word such as "wait"
  std::vector<operator_ref> ops{};  ///< the operators fused in it, in topological order; empty for transfers and waits
  std::size_t anchor = 0;           ///< index into ops of the operator that its time is booked on
  work_class work = work_class::compute;
  std::string attributes{};  ///< what a latency table keys on besides the operators: "kernel=3x3 stride=2"
  std::string shapes{};      ///< "1x3x224x224,16x3x3x3->1x16x112x112"; of the last instance for dynamic shapes
  std::string layout{};      ///< "buffer", "image2d:c4"
};

/// One finished command or host interval as the executor hands it over. Trivially copyable, so that a lock-free queue
/// can carry it; device stamps are on the device's clock, host stamps are host_now_ns().
struct raw_event {
  std::uint32_t launch = 0;  ///< number that profiler::describe returned
  std::uint32_t run = 0;     ///< number of the inference, from profiler::begin_run
  event_kind kind = event_kind::kernel;
  std::uint8_t queue = 0;      ///< command queue, for tracks of a timeline
  std::uint16_t repeats = 1;   ///< commands that these stamps span: 1 in situ, N for a launch repeated back to back
  float weight = 1.0F;         ///< inverse probability that a sampler picked it
  std::int64_t queued_ns = 0;  ///< CL_PROFILING_COMMAND_QUEUED
  std::int64_t submit_ns = 0;
  std::int64_t start_ns = 0;
  std::int64_t end_ns = 0;
  std::int64_t pause_ns = -1;                 ///< device time since the queue's former command; the profiler sets it
  std::int32_t behind = -1;                   ///< timed commands enqueued behind it when it ended; -1 where unknown
  float bias_ns = -1.0F;                      ///< what the event has too much; the profiler sets it, -1 where unknown
  std::int64_t host_begin_ns = 0;             ///< host clock just before the enqueue call (or the interval's begin)
  std::int64_t host_end_ns = 0;               ///< host clock just after it returned (or the interval's end)
  std::array<std::uint64_t, 3> gws{0, 0, 0};  ///< global work size, zeros for commands without one
  std::array<std::uint64_t, 3> lws{0, 0, 0};  ///< local work size, zeros where the driver chose
  std::uint64_t bytes = 0;                    ///< bytes of all memory that a kernel is given, or that are moved
  std::uint64_t flops = 0;                    ///< floating-point operations
};

/// A finished event with its description, all four stamps on the host clock and in order.
struct kernel_event {
  std::uint32_t run = 0;
  std::uint32_t launch = 0;
  event_kind kind = event_kind::kernel;
  std::uint8_t queue = 0;
  std::uint16_t repeats = 1;
  float weight = 1.0F;
  std::int64_t queued_ns = 0;
  std::int64_t submit_ns = 0;
  std::int64_t start_ns = 0;
  std::int64_t end_ns = 0;
  std::int64_t host_begin_ns = 0;
  std::int64_t host_end_ns = 0;
  std::int64_t device_start_ns = 0;  ///< START as the device stamped it
  std::int64_t device_end_ns = 0;
  std::array<std::uint64_t, 3> gws{0, 0, 0};
  std::array<std::uint64_t, 3> lws{0, 0, 0};
  std::uint64_t bytes = 0;
  std::uint64_t flops = 0;
  float bias_ns =
      0.0F;  ///< by which END - START of one event is too long, as measured on the device; 0 where it was not

  /// Execution time of one command in nanoseconds, the event's own bias taken off.
  [[nodiscard]] double duration_ns() const noexcept {
    const double own = without_bias(static_cast<double>(end_ns - start_ns), static_cast<double>(bias_ns));
    return own / static_cast<double>(repeats == 0 ? 1 : repeats);
  }
};

/// One inference.
struct run_event {
  std::uint32_t run = 0;
  std::int64_t begin_ns = 0;  ///< host clock
  std::int64_t end_ns = 0;
};

/// One pass over the graph.
struct pass_event {
  std::string name;
  std::int64_t begin_ns = 0;  ///< host clock
  std::int64_t end_ns = 0;
  std::size_t edits = 0;
};

/// One program built, or taken from a cache.
struct compile_event {
  std::string name;
  std::int64_t begin_ns = 0;  ///< host clock
  std::int64_t end_ns = 0;
  std::size_t source_bytes = 0;
  bool from_cache = false;
};

/// Sees events while the program runs, each read-only. Calls come from one thread at a time (the profiler's writer
/// thread for runs and kernels, the compiling thread for passes and builds). An observer that throws is a programming
/// error and ends the program; one that blocks costs counted drops, never inference time.
class observer {
 public:
  observer() = default;
  observer(const observer&) = delete;
  observer& operator=(const observer&) = delete;
  virtual ~observer() = default;

  virtual void on_pass(const pass_event&) {}
  virtual void on_compile(const compile_event&) {}
  virtual void on_kernel(const kernel_event&, const launch_info&) {}
  virtual void on_run(const run_event&) {}
};

}  // namespace dnnopt::profile

#endif  // DNNOPT_PROFILE_EVENTS_HPP
