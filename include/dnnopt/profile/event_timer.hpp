// Owns the collection of OpenCL event times, the empty kernels that start clock synchronization, and what an event
// costs.
#ifndef DNNOPT_PROFILE_EVENT_TIMER_HPP
#define DNNOPT_PROFILE_EVENT_TIMER_HPP

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <dnnopt/backend/cl_status.hpp>
#include <dnnopt/backend/command_queue.hpp>
#include <dnnopt/backend/opencl_loader.hpp>
#include <dnnopt/error.hpp>
#include <dnnopt/profile/clock_anchored.hpp>
#include <dnnopt/profile/events.hpp>
#include <dnnopt/profile/host_clock.hpp>
#include <dnnopt/profile/injected_copies.hpp>
#include <dnnopt/profile/profiler.hpp>
#include <dnnopt/profile/statistics.hpp>

namespace dnnopt::profile {

/// How event times are fetched.
enum class event_collection : std::uint8_t {
  blocking,  ///< the executing thread reads them after the queue is finished
  callback,  ///< the driver's completion callback reads them on a thread of the driver
};

/// Reads the four stamps of a finished event of a profiling queue. Throws errc::opencl_call when the driver has none.
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
  /// hands them over, and this does nothing. Throws errc::opencl_call when a command has no times.
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

/// An empty kernel on a profiling queue: nnPerf's injector, and the measure of what an event costs.
class kernel_injector {
 public:
  /// Builds the kernel. Throws errc::opencl_call.
  kernel_injector(cl_context context, cl_device_id device) {
    const char* source =
        "__kernel void dnnopt_empty(void) {}\n"
        "__kernel void dnnopt_spin(__global float* x, int rounds) {\n"
        "  float v = x[get_global_id(0)];\n"
        "  for (int i = 0; i < rounds; ++i) v = v * 0.999f + 0.001f;\n"
        "  x[get_global_id(0)] = v;\n"
        "}\n";
    cl_int status = CL_SUCCESS;
    program_ = cl::Program(::clCreateProgramWithSource(context, 1, &source, nullptr, &status), false);
    opencl::check(status, "clCreateProgramWithSource");
    opencl::check(::clBuildProgram(program_(), 1, &device, "", nullptr, nullptr), "clBuildProgram");
    kernel_ = cl::Kernel(::clCreateKernel(program_(), "dnnopt_empty", &status), false);
    opencl::check(status, "clCreateKernel");
    spin_ = cl::Kernel(::clCreateKernel(program_(), "dnnopt_spin", &status), false);
    opencl::check(status, "clCreateKernel");
    memory_ =
        cl::Buffer(::clCreateBuffer(context, CL_MEM_READ_WRITE, spin_items * sizeof(float), nullptr, &status), false);
    opencl::check(status, "clCreateBuffer");
  }

  /// Enqueues `count` empty kernels, waits for them and returns the stamps of their enqueues.
  [[nodiscard]] std::vector<clock_pair> probe(opencl::command_queue& queue, std::size_t count) {
    pair_sink sink;
    for (std::size_t i = 0; i < count; ++i) queue.launch(kernel_(), {}, "dnnopt_empty", &sink);
    queue.finish();
    std::vector<clock_pair> pairs;
    for (auto& [raw, event] : sink.events) {
      read_event_stamps(event, raw);
      pairs.push_back({raw.host_begin_ns, raw.host_end_ns, raw.queued_ns});
    }
    return pairs;
  }

  /// Gives the stamps of `count` empty kernels to the profiler's clock; to be called before the first inference.
  void inject(opencl::command_queue& queue, profiler& into, std::size_t count) {
    for (const clock_pair& pair : probe(queue, count)) into.record_probe(pair);
  }

  /// Nanoseconds that timing one launch adds: batches of `launches` empty kernels and a finish, with and without events
  /// in turn, the difference of the medians over `rounds`. Not negative. Takes about rounds * launches * 20 us.
  [[nodiscard]] double measure_event_cost(opencl::command_queue& queue, std::size_t launches = 60,
                                          std::size_t rounds = 15) {
    std::vector<double> plain;
    std::vector<double> timed;
    for (std::size_t r = 0; r < rounds * 2; ++r) {
      const bool with_events = r % 2 == 1;
      pair_sink sink;
      const std::int64_t begin = host_now_ns();
      for (std::size_t i = 0; i < launches; ++i)
        queue.launch(kernel_(), {}, "dnnopt_empty", with_events ? &sink : nullptr);
      queue.finish();
      for (auto& [raw, event] : sink.events) read_event_stamps(event, raw);
      sink.events.clear();
      const double each = static_cast<double>(host_now_ns() - begin) / static_cast<double>(launches);
      (with_events ? timed : plain).push_back(each);
    }
    return std::max(0.0, exact_quantile(timed, 0.5) - exact_quantile(plain, 0.5));
  }

  /// Enqueues one empty kernel.
  void launch_empty(opencl::command_queue& queue) { queue.launch(kernel_(), {}, "dnnopt_empty"); }
  /// Makes `hold` last `least_ns` or up to twice that. Takes some hundred times as long.
  void prepare_hold(opencl::command_queue& queue, double least_ns) { calibrate_spin(queue, least_ns); }
  /// Enqueues a kernel that keeps the device busy for as long as it was prepared to: what is enqueued meanwhile runs
  /// back to back, however slow the host is. Other measurements of this object need a new preparation after them.
  void hold(opencl::command_queue& queue, opencl::event_sink* sink = nullptr) { spin(queue, sink); }

  /// What one more empty kernel adds to a stream that the device is busy with (a long kernel at its head): the part of
  /// a copy's slope that is launch and not execution. Takes some milliseconds.
  [[nodiscard]] copy_slope measure_empty_slope(opencl::command_queue& queue, double busy_ns = 400e3) {
    calibrate_spin(queue, busy_ns);
    return measure_copy_slope(
        [&](std::size_t copies) {
          const std::int64_t begin = host_now_ns();
          spin(queue, nullptr);
          for (std::size_t i = 0; i < copies; ++i) queue.launch(kernel_(), {}, "dnnopt_empty");
          queue.finish();
          return static_cast<double>(host_now_ns() - begin);
        },
        {.most_copies = 20, .rounds = 15});
  }

  /// Nanoseconds from a kernel's end to the start of the next one in a stream without events. Where an event costs next
  /// to nothing the stamps of long kernels tell it (a driver whose threads sleep while a kernel runs takes longer to
  /// start the next one than between empty kernels); elsewhere it is an empty kernel's slope.
  [[nodiscard]] double measure_gap(opencl::command_queue& queue, double least_ns = 50e3) {
    if (measure_event_cost(queue) > free_event_ns) return std::max(0.0, measure_empty_slope(queue).ns_per_copy);
    calibrate_spin(queue, least_ns);
    std::vector<double> gaps;
    for (int round = 0; round < 10; ++round) {
      pair_sink sink;
      for (int i = 0; i < 20; ++i) spin(queue, &sink);
      queue.finish();
      std::int64_t former = 0;
      for (auto& [raw, event] : sink.events) {
        read_event_stamps(event, raw);
        if (former != 0) gaps.push_back(static_cast<double>(raw.start_ns - former));
        former = raw.end_ns;
      }
    }
    return std::max(0.0, exact_quantile(gaps, 0.5));
  }
  /// An event that costs less leaves a stream of kernels as it is.
  static constexpr double free_event_ns = 1000.0;

  /// By how much an event's START to END exceeds the kernel's execution time: goes into clock_sync_options::bias. All
  /// of it against what a copy of a kernel adds to a stream without events behind a long kernel, less what an empty
  /// kernel adds (`launch_ns`), both by the device's stamps and in turns:
  ///   - of commands with others behind them, of those at the queue's end, and from how many on;
  ///   - of commands that the device waits for, which START is stamped for before they have arrived as a whole: kernels
  ///     enqueued `least_ns` apart against the same ones behind a long kernel.
  /// Kernels take an eighth of `least_ns` and less. Zeros where events cost next to nothing, and where turns differ by
  /// as much, as on a device that has other work too. Takes about half a second. Errors: opencl_call.
  [[nodiscard]] event_bias measure_event_bias(opencl::command_queue& queue, double least_ns = 30e3) {
    event_bias found;
    if (measure_event_cost(queue) <= free_event_ns) return found;
    const cl_int long_rounds = rounds_that_hold(queue, 20.0 * least_ns);
    const auto rounds_of = [&](double ns) {
      return std::max<cl_int>(1, static_cast<cl_int>(long_rounds * ns / held_ns_));
    };
    if (!measure_deep_bias(queue, long_rounds, rounds_of(0.12 * least_ns), 0.25 * least_ns, found)) return {};
    measure_depth(queue, long_rounds, rounds_of(0.12 * least_ns), found);
    std::vector<double> more;
    for (const double share : {0.03, 0.06, 0.12}) {
      std::vector<double> held, alone;
      for (int round = 0; round < 8; ++round) {
        stream_events(queue, long_rounds, rounds_of(share * least_ns), 0, held, nullptr);
        stream_events(queue, 0, rounds_of(share * least_ns), static_cast<std::int64_t>(least_ns), alone, nullptr);
      }
      more.push_back(middle_mean(alone) - middle_mean(held));
    }
    std::sort(more.begin(), more.end());
    // What differs by as much from length to length is no constant.
    const bool certain = more.front() > 0.0 && more.back() - more.front() < more[1];
    found.starved_ns = std::max(found.busy_ns, found.deep_ns + (certain ? more[1] : 0.0));
    return found;
  }

 private:
  static constexpr int stream_length = 20;
  /// What is enqueued behind events that shall be deep in the queue.
  static constexpr int stream_tail = 28;

  /// Rounds of a spinning kernel of `least_ns` and long enough for the host to enqueue the longest stream meanwhile;
  /// its length is then held_ns_.
  [[nodiscard]] cl_int rounds_that_hold(opencl::command_queue& queue, double least_ns) {
    pair_sink sink;
    const std::int64_t begin = host_now_ns();
    for (int i = 0; i < stream_length + stream_tail; ++i) queue.launch(kernel_(), {}, "dnnopt_empty", &sink);
    const double enqueue_ns = static_cast<double>(host_now_ns() - begin);
    queue.finish();
    calibrate_spin(queue, std::max(least_ns, 1.5 * enqueue_ns));
    held_ns_ = spin_by_events(queue);
    return spin_rounds_;
  }

  /// What one more kernel of `rounds` (0: the empty one) adds to a stream behind a long kernel, in nanoseconds by the
  /// device's stamps of the long kernel's end and the last one's.
  template <class Random>
  [[nodiscard]] double held_slope(opencl::command_queue& queue, cl_int long_rounds, cl_int rounds, Random& random) {
    std::vector<double> slopes;
    const auto stream = [&](std::size_t copies) {
      pair_sink ends;
      set_spin_rounds(long_rounds);
      spin(queue, &ends);
      if (rounds > 0) set_spin_rounds(rounds);
      const std::size_t count = stream_length + copies;
      for (std::size_t i = 1; i <= count; ++i) {
        opencl::event_sink* const last = i == count ? &ends : nullptr;
        if (rounds > 0)
          spin(queue, last);
        else
          queue.launch(kernel_(), {}, "dnnopt_empty", last);
      }
      queue.finish();
      for (auto& [raw, event] : ends.events) read_event_stamps(event, raw);
      return static_cast<double>(ends.events.back().first.end_ns - ends.events.front().first.end_ns);
    };
    measure_pair_slopes(stream, 20, random, slopes);
    return pseudo_median(slopes).value;
  }

  /// The part of `measure_event_bias` of commands deep in the queue. Whether it is certain and at most `most_ns`.
  [[nodiscard]] bool measure_deep_bias(opencl::command_queue& queue, cl_int long_rounds, cl_int rounds, double most_ns,
                                       event_bias& found) {
    // Events and slopes in turns: what else the machine does changes all alike.
    constexpr std::size_t turns = 7;
    std::mt19937_64 random(1);
    std::vector<double> excess, launches, pauses;
    for (std::size_t turn = 0; turn < turns; ++turn) {
      const double launch = held_slope(queue, long_rounds, 0, random);
      const double slope = held_slope(queue, long_rounds, rounds, random);
      std::vector<double> times;
      for (int round = 0; round < 8; ++round) stream_events(queue, long_rounds, rounds, 0, times, &pauses);
      launches.push_back(launch);
      excess.push_back(middle_mean(times) - slope + launch);
    }
    std::sort(excess.begin(), excess.end());
    found.deep_ns = found.busy_ns = excess[turns / 2];
    found.launch_ns = exact_quantile(launches, 0.5);
    found.pause_ns = exact_quantile(pauses, 0.5);
    return found.deep_ns > excess[turns - 2] - excess[1] && found.deep_ns < most_ns;
  }

  /// How many commands must be behind one for its event to be as long as `found.deep_ns` says, and what the others'
  /// have too much: the last commands of a queue are stamped otherwise by some drivers. Leaves `found` as it is where
  /// no step is seen.
  void measure_depth(opencl::command_queue& queue, cl_int long_rounds, cl_int rounds, event_bias& found) {
    constexpr std::size_t positions = stream_length + stream_tail - 1;
    constexpr std::size_t last_ones = 4;
    std::array<std::vector<double>, positions> by_position;  // from the end
    for (int round = 0; round < 16; ++round) {
      std::vector<double> times;
      stream_events(queue, long_rounds, rounds, 0, times, nullptr, stream_length + stream_tail, 0);
      for (std::size_t i = 0; i < std::min(positions, times.size()); ++i)
        by_position[i].push_back(times[times.size() - 1 - i]);
    }
    const auto together = [&](std::size_t first, std::size_t last) {
      std::vector<double> all;
      for (std::size_t i = first; i < last; ++i) all.insert(all.end(), by_position[i].begin(), by_position[i].end());
      return all;
    };
    std::vector<double> at_end = together(0, last_ones);
    std::vector<double> deep = together(stream_tail, positions);
    const double step = middle_mean(deep) - middle_mean(at_end);
    if (std::abs(step) < 3.0 * (median_uncertainty(deep) + median_uncertainty(at_end))) return;
    std::size_t depth = stream_tail;
    while (depth > last_ones &&
           std::abs(middle_mean(by_position[depth - 1]) - middle_mean(deep)) < 0.5 * std::abs(step))
      --depth;
    found.depth = static_cast<std::int32_t>(depth);
    found.busy_ns = std::max(0.0, found.deep_ns - step);
  }

  /// Adds START to END of `count` spinning kernels but the first, and the pauses between them where wanted: behind one
  /// of `long_rounds`, unless that is 0, at least `apart_ns` from one enqueue to the next, and with `tail` more kernels
  /// behind them.
  void stream_events(opencl::command_queue& queue, cl_int long_rounds, cl_int rounds, std::int64_t apart_ns,
                     std::vector<double>& times, std::vector<double>* pauses, int count = stream_length,
                     int tail = stream_tail) {
    pair_sink sink;
    if (long_rounds > 0) {
      set_spin_rounds(long_rounds);
      spin(queue, nullptr);
    }
    set_spin_rounds(rounds);
    for (int i = 0; i < count; ++i) {
      const std::int64_t until = host_now_ns() + apart_ns;
      spin(queue, &sink);
      while (apart_ns > 0 && host_now_ns() < until) {
      }
    }
    for (int i = 0; apart_ns == 0 && i < tail; ++i) spin(queue, nullptr);
    queue.finish();
    std::int64_t former = 0;
    for (auto& [raw, event] : sink.events) {
      read_event_stamps(event, raw);
      if (former != 0) {
        times.push_back(static_cast<double>(raw.end_ns - raw.start_ns));
        if (pauses != nullptr) pauses->push_back(static_cast<double>(raw.start_ns - former));
      }
      former = raw.end_ns;
    }
  }

  static constexpr std::size_t spin_items = 4096;
  struct pair_sink final : opencl::event_sink {
    std::vector<std::pair<raw_event, cl::Event>> events;
    void on_command(const opencl::command_record& record, cl::Event event) override {
      raw_event raw;
      raw.host_begin_ns =
          std::chrono::duration_cast<std::chrono::nanoseconds>(record.host_begin.time_since_epoch()).count();
      raw.host_end_ns =
          std::chrono::duration_cast<std::chrono::nanoseconds>(record.host_end.time_since_epoch()).count();
      events.emplace_back(raw, std::move(event));
    }
  };

  void spin(opencl::command_queue& queue, opencl::event_sink* sink) {
    queue.launch(spin_(), {1, {spin_items, 1, 1}, {0, 0, 0}}, "dnnopt_spin", sink);
  }
  void set_spin_rounds(cl_int rounds) {
    const cl_mem memory = memory_();
    opencl::check(::clSetKernelArg(spin_(), 0, sizeof(memory), &memory), "clSetKernelArg");
    opencl::check(::clSetKernelArg(spin_(), 1, sizeof(rounds), &rounds), "clSetKernelArg");
    spin_rounds_ = rounds;
  }
  /// Mean of the middle half of the spinning kernel's times (a median would stop at the clock's tick).
  double spin_by_events(opencl::command_queue& queue) {
    std::vector<double> times;
    for (int round = 0; round < 3; ++round) {
      pair_sink sink;
      for (int i = 0; i < 20; ++i) spin(queue, &sink);
      queue.finish();
      for (auto& [raw, event] : sink.events) {
        read_event_stamps(event, raw);
        times.push_back(static_cast<double>(raw.end_ns - raw.start_ns));
      }
    }
    return middle_mean(times);
  }
  /// Doubles the spinning kernel's rounds until it takes `least_ns`.
  void calibrate_spin(opencl::command_queue& queue, double least_ns) {
    cl_int rounds = 64;
    set_spin_rounds(rounds);
    while (spin_by_events(queue) < least_ns && rounds < (1 << 22)) set_spin_rounds(rounds *= 2);
  }

  cl::Program program_;
  cl::Kernel kernel_;
  cl::Kernel spin_;
  cl_int spin_rounds_ = 0;
  double held_ns_ = 0.0;
  cl::Buffer memory_;
};

}  // namespace dnnopt::profile

#endif  // DNNOPT_PROFILE_EVENT_TIMER_HPP
