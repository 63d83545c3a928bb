// Owns the empty and spinning kernels that start clock synchronization and tell what an event costs and hides.
#ifndef DNNOPT_BACKEND_MEASURE_KERNEL_INJECTOR_HPP
#define DNNOPT_BACKEND_MEASURE_KERNEL_INJECTOR_HPP

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <random>
#include <utility>
#include <vector>

#include <dnnopt/backend/measure/event_timer.hpp>
#include <dnnopt/backend/opencl/command_queue.hpp>
#include <dnnopt/backend/opencl/loader.hpp>
#include <dnnopt/backend/opencl/status.hpp>
#include <dnnopt/profile/clocks/clock_map.hpp>
#include <dnnopt/profile/clocks/host_clock.hpp>
#include <dnnopt/profile/injected_copies.hpp>
#include <dnnopt/profile/profiler.hpp>
#include <dnnopt/profile/statistics.hpp>
#include <dnnopt/profile/waiting/event_bias.hpp>

namespace dnnopt::profile {

/// An empty kernel on a profiling queue: nnPerf's injector, and the measure of what an event costs.
class kernel_injector {
 public:
  /// Builds the kernel. Errors: opencl_call.
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

  /// Shows the profiler when an empty kernel arrives that the device waits for, if it wants to see one; of three in a
  /// row the middle one, for a call may be interrupted. To be called while the device is idle. Takes some 50 us.
  void inject_arrival(opencl::command_queue& queue, profiler& into) {
    if (!into.wants_arrival()) return;
    const raw_event seen = probe_arrival(queue);
    into.record_arrival(seen.host_end_ns, seen.end_ns);
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
    measure_starved_bias(queue, long_rounds, rounds_of, least_ns, found);
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
      for (int round = 0; round < 8; ++round) {
        const std::vector<raw_event> events = stream_events(queue, long_rounds, rounds);
        append_times(events, times);
        for (std::size_t i = 1; i < events.size(); ++i)
          pauses.push_back(static_cast<double>(events[i].start_ns - events[i - 1].end_ns));
      }
      launches.push_back(launch);
      excess.push_back(middle_mean(times) - slope + launch);
    }
    std::sort(excess.begin(), excess.end());
    found.deep_ns = found.busy_ns = excess[turns / 2];
    found.launch_ns = exact_quantile(launches, 0.5);
    found.pause_ns = exact_quantile(pauses, 0.5);
    return found.deep_ns > excess[turns - 2] - excess[1] && found.deep_ns < most_ns;
  }

  /// The part of `measure_event_bias` of commands that the device waits for. Measured up to four times, all of them
  /// taken together, until it is certain: a host that is interrupted now needs not be a moment later.
  template <class Rounds>
  void measure_starved_bias(opencl::command_queue& queue, cl_int long_rounds, const Rounds& rounds_of, double least_ns,
                            event_bias& found) {
    constexpr std::array<double, 3> shares{0.03, 0.06, 0.12};
    std::array<std::vector<double>, shares.size()> held, alone;
    std::vector<double> arrivals;
    for (int attempt = 0; attempt < 4 && !found.arrival_ns; ++attempt) {
      std::vector<double> more;
      for (std::size_t i = 0; i < shares.size(); ++i) {
        const cl_int rounds = rounds_of(shares[i] * least_ns);
        for (int round = 0; round < 8; ++round) {
          append_times(stream_events(queue, long_rounds, rounds), held[i]);
          const std::vector<raw_event> apart = stream_events(queue, 0, rounds, static_cast<std::int64_t>(least_ns));
          append_times(apart, alone[i]);
          arrivals.push_back(arrival_of(apart, probe_arrival(queue)));
        }
        more.push_back(middle_mean(alone[i]) - middle_mean(held[i]));
      }
      std::sort(more.begin(), more.end());
      // What differs by as much from length to length is no constant.
      const bool certain = more.front() > 0.0 && more.back() - more.front() < more[1];
      found.starved_ns = std::max(found.busy_ns, found.deep_ns + (certain ? more[1] : 0.0));
      if (certain && median_uncertainty(arrivals) < 0.25 * more[1]) found.arrival_ns = middle_mean(arrivals);
    }
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
      append_times(stream_events(queue, long_rounds, rounds, 0, stream_length + stream_tail, 0), times);
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

  /// The events of `count` spinning kernels: behind one of `long_rounds`, unless that is 0, at least `apart_ns` from
  /// one enqueue to the next, and with `tail` more kernels behind them.
  [[nodiscard]] std::vector<raw_event> stream_events(opencl::command_queue& queue, cl_int long_rounds, cl_int rounds,
                                                     std::int64_t apart_ns = 0, int count = stream_length,
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
    return stamps_of(sink);
  }

  /// Adds START to END of all events but the first.
  static void append_times(const std::vector<raw_event>& events, std::vector<double>& to) {
    for (std::size_t i = 1; i < events.size(); ++i)
      to.push_back(static_cast<double>(events[i].end_ns - events[i].start_ns));
  }

  /// `event_bias::arrival_ns` by kernels enqueued far apart and an empty kernel of the same moment. @pre two or more.
  [[nodiscard]] static double arrival_of(const std::vector<raw_event>& apart, const raw_event& empty) {
    std::vector<double> sums;
    for (std::size_t i = 1; i < apart.size(); ++i)
      sums.push_back(static_cast<double>(apart[i].host_end_ns - apart[i].start_ns + empty.end_ns - empty.host_end_ns));
    return middle_mean(sums);
  }

  /// Of three empty kernels that the device waits for the one whose END came the middle time after its call's return.
  [[nodiscard]] raw_event probe_arrival(opencl::command_queue& queue) {
    constexpr std::int64_t apart_ns = 20'000;  // longer than a call and the kernel behind it take
    pair_sink sink;
    std::int64_t last_began = host_now_ns() - apart_ns;
    for (int i = 0; i < 3; ++i) {
      while (host_now_ns() < last_began + apart_ns) {
      }
      last_began = host_now_ns();
      queue.launch(kernel_(), {}, "dnnopt_empty", &sink);
    }
    queue.finish();
    std::vector<raw_event> seen = stamps_of(sink);
    std::nth_element(seen.begin(), seen.begin() + 1, seen.end(), [](const raw_event& a, const raw_event& b) {
      return a.end_ns - a.host_end_ns < b.end_ns - b.host_end_ns;
    });
    return seen[1];
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

  /// Of finished commands.
  [[nodiscard]] static std::vector<raw_event> stamps_of(pair_sink& sink) {
    std::vector<raw_event> stamps;
    for (auto& [raw, event] : sink.events) {
      read_event_stamps(event, raw);
      stamps.push_back(raw);
    }
    return stamps;
  }

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

#endif  // DNNOPT_BACKEND_MEASURE_KERNEL_INJECTOR_HPP
