// Owns the collection of OpenCL event times.
#ifndef DNNOPT_BACKEND_MEASURE_EVENT_TIMER_HPP
#define DNNOPT_BACKEND_MEASURE_EVENT_TIMER_HPP

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <dnnopt/backend/opencl/command_queue.hpp>
#include <dnnopt/backend/opencl/loader.hpp>
#include <dnnopt/backend/opencl/status.hpp>
#include <dnnopt/error.hpp>
#include <dnnopt/profile/clocks/clock_anchored.hpp>
#include <dnnopt/profile/clocks/clock_sync.hpp>
#include <dnnopt/profile/events.hpp>
#include <dnnopt/profile/profiler.hpp>

namespace dnnopt::profile {

/// How event times are fetched.
enum class event_collection : std::uint8_t {
  blocking,  ///< the executing thread reads them after the queue is finished
  callback,  ///< the driver's completion callback reads them on a thread of the driver
};

/// Reads the four stamps of a finished event of a profiling queue. Errors: opencl_call when the driver has none.
inline void read_event_stamps(const cl::Event& event, raw_event& into) {
  const auto stamp = [&](cl_profiling_info what) {
    cl_ulong value = 0;
    opencl::check(::clGetEventProfilingInfo(event(), what, sizeof(value), &value, nullptr), "clGetEventProfilingInfo");
    return static_cast<std::int64_t>(value);
  };
  into.queued_ns = stamp(CL_PROFILING_COMMAND_QUEUED);
  into.submit_ns = stamp(CL_PROFILING_COMMAND_SUBMIT);
  into.start_ns = stamp(CL_PROFILING_COMMAND_START);
  into.end_ns = stamp(CL_PROFILING_COMMAND_END);
}

/// Receives the events of a queue's commands and hands their times to a profiler. Used by the thread that enqueues:
///
///     command_timer timer(profile, event_collection::blocking);
///     run_recorder run = profile.begin_run();
///     queue.launch(kernel, size, name, timer.watch(run, event_kind::kernel, number, bytes, flops));
///     queue.finish();
///     run.end();        // reading stamps is no part of the inference
///     timer.collect();
///
/// Events are released as soon as they are read; with nothing to time, `watch` returns null and the queue makes no
/// event.
class command_timer final : public opencl::event_sink {
 public:
  explicit command_timer(profiler& into, event_collection how = event_collection::blocking, std::uint8_t queue = 0)
      : into_(&into), how_(how), queue_(queue) {}
  command_timer(const command_timer&) = delete;
  command_timer& operator=(const command_timer&) = delete;
  /// Waits for callbacks that are under way; the queue must be finished, or be going to finish.
  ~command_timer() override { wait_for_callbacks(); }

  /// Announces the next command of `run`: this sink where it is timed, null where not. `launch` is the number from
  /// profiler::describe; `bytes` and `flops` of this launch.
  [[nodiscard]] opencl::event_sink* watch(run_recorder& run, event_kind kind, std::uint32_t launch,
                                          std::uint64_t bytes = 0, std::uint64_t flops = 0) noexcept {
    if (!run.timed(kind)) return nullptr;
    next_ = {};
    next_.launch = launch;
    next_.run = run.run();
    next_.kind = kind;
    next_.weight = run.weight();
    next_.queue = queue_;
    next_.bytes = bytes;
    next_.flops = flops;
    return this;
  }

  /// The interval of a launch repeated `times` back to back, whose last command is the next one watched: only commands
  /// of an in-order queue may be repeated so. Set after `watch` and before the command.
  void repeat(std::uint16_t times) noexcept { next_.repeats = times; }

  void on_command(const opencl::command_record& record, cl::Event event) override {
    raw_event raw = next_;
    for (std::size_t i = 0; i < 3; ++i) {
      raw.gws[i] = record.global[i];
      raw.lws[i] = record.local[i];
    }
    if (raw.bytes == 0) raw.bytes = record.bytes;
    raw.host_begin_ns = nanoseconds(record.host_begin);
    raw.host_end_ns = nanoseconds(record.host_end);
    if (how_ == event_collection::blocking) {
      pending_.push_back({raw, std::move(event)});
      return;
    }
    auto context = std::make_unique<callback_context>(callback_context{raw, into_, this});
    under_way_.fetch_add(1, std::memory_order_relaxed);
    const cl_int status = ::clSetEventCallback(event(), CL_COMPLETE, &command_timer::completed, context.get());
    if (status != CL_SUCCESS) {
      under_way_.fetch_sub(1, std::memory_order_relaxed);
      opencl::check(status, "clSetEventCallback");
    }
    static_cast<void>(context.release());
  }

  /// Hands over the times of finished commands; to be called after the queue is finished. With callbacks the driver
  /// hands them over, and this does nothing. Errors: opencl_call when a command has no times.
  void collect() {
    for (timed_command& command : pending_) read_event_stamps(command.event, command.raw);
    std::size_t last = 0;
    for (std::size_t i = 0; i < pending_.size(); ++i) {
      last = std::max(last, i);
      while (last + 1 < pending_.size() && pending_[last + 1].raw.queued_ns <= pending_[i].raw.end_ns) ++last;
      pending_[i].raw.behind = static_cast<std::int32_t>(last - i);
      into_->record(pending_[i].raw);
    }
    pending_.clear();
  }

  /// Waits until all callbacks have come; the driver calls them soon after the queue has finished.
  void wait_for_callbacks() noexcept {
    for (std::uint32_t left = under_way_.load(std::memory_order_acquire); left != 0;
         left = under_way_.load(std::memory_order_acquire))
      under_way_.wait(left, std::memory_order_acquire);
  }

  /// Commands whose event brought no times (a failed command).
  [[nodiscard]] std::uint64_t failed() const noexcept { return failed_.load(std::memory_order_relaxed); }

 private:
  struct timed_command {
    raw_event raw;
    cl::Event event;
  };
  struct callback_context {
    raw_event raw;
    profiler* into;
    command_timer* timer;
  };

  [[nodiscard]] static std::int64_t nanoseconds(std::chrono::steady_clock::time_point at) noexcept {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(at.time_since_epoch()).count();
  }

  static void CL_CALLBACK completed(cl_event event, cl_int status, void* data) noexcept {
    const std::unique_ptr<callback_context> context(static_cast<callback_context*>(data));
    command_timer& timer = *context->timer;
    bool read = status == CL_COMPLETE;
    if (read) {
      try {
        read_event_stamps(cl::Event(event, true), context->raw);
      } catch (const error&) {
        read = false;
      }
    }
    if (read)
      context->into->record(context->raw);
    else
      timer.failed_.fetch_add(1, std::memory_order_relaxed);
    // Once the count is zero the timer may be destroyed by the thread that waits: the notification is its last use
    // here, and only the address is used by it.
    if (timer.under_way_.fetch_sub(1, std::memory_order_release) == 1) timer.under_way_.notify_all();
  }

  profiler* into_;
  event_collection how_;
  std::uint8_t queue_;
  raw_event next_{};
  std::vector<timed_command> pending_;
  std::atomic<std::uint32_t> under_way_{0};
  std::atomic<std::uint64_t> failed_{0};
};

/// The device clock as OpenCL tells it: resolution, and the timer of clGetDeviceAndHostTimer where the driver has it.
[[nodiscard]] inline clock_sync_options clock_options_of(cl_device_id device) {
  clock_sync_options options;
  std::size_t resolution = 0;
  opencl::check(
      ::clGetDeviceInfo(device, CL_DEVICE_PROFILING_TIMER_RESOLUTION, sizeof(resolution), &resolution, nullptr),
      "clGetDeviceInfo");
  options.tick_ns = std::max<std::int64_t>(1, static_cast<std::int64_t>(resolution));
#ifdef CL_VERSION_2_1
  cl_ulong device_time = 0;
  cl_ulong host_time = 0;
  if (::clGetDeviceAndHostTimer(device, &device_time, &host_time) == CL_SUCCESS)
    options.timer = [device]() -> std::optional<std::int64_t> {
      cl_ulong on_device = 0;
      cl_ulong on_host = 0;
      if (::clGetDeviceAndHostTimer(device, &on_device, &on_host) != CL_SUCCESS) return std::nullopt;
      return static_cast<std::int64_t>(on_device);
    };
#endif
  return options;
}

}  // namespace dnnopt::profile

#endif  // DNNOPT_BACKEND_MEASURE_EVENT_TIMER_HPP
