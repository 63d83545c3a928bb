// Owns the profiling of a program's kernels one by one, none of them in an inference, into a latency table.
#ifndef DNNOPT_BACKEND_MEASURE_LONE_KERNELS_HPP
#define DNNOPT_BACKEND_MEASURE_LONE_KERNELS_HPP

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include <dnnopt/backend/measure/event_timer.hpp>
#include <dnnopt/backend/measure/kernel_injector.hpp>
#include <dnnopt/backend/measure/profiled_run.hpp>
#include <dnnopt/backend/measure/runs/cache_sweep.hpp>
#include <dnnopt/backend/measure/runs/lone_kernel_runs.hpp>
#include <dnnopt/backend/opencl/context.hpp>
#include <dnnopt/backend/program/program.hpp>
#include <dnnopt/backend/run/observer.hpp>
#include <dnnopt/profile/clocks/host_clock.hpp>
#include <dnnopt/profile/injected_copies.hpp>
#include <dnnopt/profile/report/latency_table.hpp>
#include <dnnopt/profile/statistics.hpp>

namespace dnnopt {

/// Keys of a program's launches in order of execution: what a latency table predicts it by. Needs no device.
[[nodiscard]] inline std::vector<profile::latency_key> launch_keys(
    const program& p, const std::string& device, profile::latency_level level = profile::latency_level::kernel) {
  std::vector<profile::latency_key> keys;
  for (const placed_node& step : p.steps)
    for (std::size_t k = 0; k < step.lowered.kernels.size(); ++k)
      keys.push_back(profile::key_of(describe_launch(p, step, k), device, level));
  return keys;
}

/// How lone kernels are timed.
struct lone_kernel_options {
  std::size_t warm = 3;  ///< launches before the timed ones, where each is timed by an event
  std::size_t timed = 15;
  std::size_t rounds = 3;
  /// Other memory gone through before each launch that is timed by an event; 0: caches stay warm.
  std::size_t sweep_bytes = 0;
  profile::latency_level level = profile::latency_level::kernel;  ///< operator_ for a program without fusion
  std::optional<bool> by_events{};  ///< whether each launch is timed by its own event; what an event costs decides
};

/// Times of a stream of one kernel behind a long one.
struct kernel_stream {
  std::size_t few = 0;  ///< launches after the first
  std::size_t many = 0;
  std::vector<double> few_ns;      ///< device time from the first launch's end to the last one's
  std::vector<double> many_ns;     ///< in the same order of rounds
  std::vector<double> enqueue_ns;  ///< host time from one enqueue to the next

  /// Device nanoseconds that one more launch adds, the gap before it included.
  [[nodiscard]] double slope_ns() const {
    std::vector<double> slopes = slopes_ns();
    return profile::middle_mean(slopes);
  }
  /// The same, of each round.
  [[nodiscard]] std::vector<double> slopes_ns() const {
    std::vector<double> slopes;
    for (std::size_t i = 0; i < many_ns.size(); ++i)
      slopes.push_back((many_ns[i] - few_ns[i]) / static_cast<double>(many - few));
    return slopes;
  }
};

/// Profiles kernels one by one, and what an inference costs besides them, on one device.
///
/// Where an event costs next to nothing each launch is timed by its own. Elsewhere an event changes what it measures,
/// the more the shorter the kernel: there a kernel's time is what one more launch adds to a stream of it, by the
/// device's stamps of the first and the last, while a long kernel at the head lets the host run ahead; less the gap.
class lone_kernel_meter {
 public:
  /// Measures gap and cost of events; takes some tens of milliseconds. `where` must outlive it. Errors: opencl_call.
  explicit lone_kernel_meter(const opencl::context& where, const lone_kernel_options& options = {})
      : where_(&where),
        options_(options),
        queue_(where.make_queue({true, 0})),
        injector_(where.handle(), where.where().handle()) {
    by_events_ = options_.by_events ? *options_.by_events
                                    : injector_.measure_event_cost(queue_) < profile::kernel_injector::free_event_ns;
    gap_ns_ = injector_.measure_gap(queue_);
    if (by_events_ && options_.sweep_bytes != 0) sweep_.emplace(where, options_.sweep_bytes, sweep_access::write);
  }

  /// Whether each launch is timed by its own event.
  [[nodiscard]] bool by_events() const noexcept { return by_events_; }
  /// From a kernel's end to the start of the next one in a stream.
  [[nodiscard]] double gap_ns() const noexcept { return gap_ns_; }
  [[nodiscard]] profile::kernel_injector& injector() noexcept { return injector_; }

  /// Runs one inference of the executor that executes the program, with the observer it is given; the executor must
  /// have run once before.
  using inference = std::function<void(run_observer*)>;

  /// What an inference of `p` costs besides its kernels: from runs whose kernels are left out or replaced by empty ones
  /// (bound by the host) and by long ones (bound by the device), in turns until the middle is known. Errors: those of
  /// `run`; opencl_call.
  [[nodiscard]] profile::launch_model measure_launches(const program& p, const inference& run) {
    profile::launch_model found;
    found.gap_ns = gap_ns_;
    found.enqueue_ns = measure_enqueue(p, run);

    injector_.prepare_hold(queue_, 30e3);
    held_ns_ = 0.0;
    substituted_run substituted(injector_);
    double before = 0.0;
    const auto after = [&](std::size_t count, bool long_ones) {
      substituted.choose(count, long_ones);
      const std::int64_t begin = profile::host_now_ns();
      run(&substituted);
      const std::int64_t end = profile::host_now_ns();
      const std::int64_t first = substituted.first_ns() == 0 ? begin : substituted.first_ns();
      before = static_cast<double>(first - begin);
      return static_cast<double>(end - first);
    };
    std::vector<double> prologues, epilogues, inputs;
    for (int round = -1; round < most_rounds; ++round) {
      // Six of each in turn; their medians make a round's estimate.
      std::vector<double> starts, few_empty, many_empty, few_long, many_long;
      for (int i = 0; i < 6; ++i) {
        few_empty.push_back(after(few_empties, false));
        starts.push_back(before);
        many_empty.push_back(after(many_empties, false));
        few_long.push_back(after(few_longs, true));
        many_long.push_back(after(many_longs, true));
      }
      if (round < 0) continue;  // wakes the device
      const auto at_zero = [](std::vector<double>& few, std::vector<double>& many, double n, double m) {
        const double a = profile::exact_quantile(few, 0.5);
        return a - (profile::exact_quantile(many, 0.5) - a) / (m - n) * n;
      };
      const double epilogue = at_zero(few_empty, many_empty, few_empties, many_empties);
      prologues.push_back(profile::exact_quantile(starts, 0.5));
      epilogues.push_back(epilogue);
      inputs.push_back(at_zero(few_long, many_long, few_longs, many_longs) + gap_ns_ - epilogue);
      if (round + 1 < least_rounds) continue;
      const double allowed = std::max(1000.0, 0.02 * (prologues.back() + epilogue));
      if (profile::median_uncertainty(epilogues) < allowed && profile::median_uncertainty(inputs) < allowed) break;
    }
    found.prologue_ns = profile::exact_quantile(prologues, 0.5);
    found.epilogue_ns = std::max(0.0, profile::exact_quantile(epilogues, 0.5));
    found.input_ns = std::max(0.0, profile::exact_quantile(inputs, 0.5));
    return found;
  }

  /// Profiles the kernels of `p` whose keys `into` lacks, one by one. `inference_bytes` is what an inference goes
  /// through (weights and the arena): in streams as much is read between two launches of a kernel, so that it finds in
  /// the caches what it would find there in an inference, and another kernel has run before it. Kernels that wait for a
  /// host operator's sizes are timed with those of the former run. Errors: those of `run`; opencl_call.
  void measure_kernels(const program& p, const inference& run, std::size_t inference_bytes,
                       profile::latency_table& into) {
    std::optional<cache_sweep> between;
    double sweep_ns = 0.0;
    if (!by_events_) {
      between.emplace(*where_, inference_bytes, sweep_access::read);
      sweep_ns = measure_sweep(*between);
    }
    for (std::size_t s = 0; s < p.steps.size(); ++s)
      for (std::size_t k = 0; k < p.steps[s].lowered.kernels.size(); ++k) {
        // Which of several versions runs is the dims' affair, and a stream is of one that does.
        if (p.steps[s].lowered.versions > 1) continue;
        const profile::latency_key key =
            profile::key_of(describe_launch(p, p.steps[s], k), where_->info().name, options_.level);
        // Kernels of one step share its key; each adds its time to the mean that they are predicted by.
        if (k == 0 && into.find(key)) break;
        into.add(key, by_events_ ? by_own_events(run, s, k) : entry_of(measure_stream(run, s, k, &*between), sweep_ns));
      }
  }

  /// Nanoseconds that one more sweep adds to a stream of them behind a long kernel.
  [[nodiscard]] double measure_sweep(cache_sweep& sweep) {
    injector_.prepare_hold(queue_, held_ns_ = 400e3);
    const auto run = [&](std::size_t copies) {
      const std::int64_t begin = profile::host_now_ns();
      injector_.hold(queue_);
      for (std::size_t i = 0; i < copies; ++i) sweep.enqueue(queue_);
      queue_.finish();
      return static_cast<double>(profile::host_now_ns() - begin);
    };
    return profile::measure_copy_slope(run, {.most_copies = 20, .rounds = 15}).ns_per_copy;
  }

  /// Kernel `k` of step `s` in streams behind a long kernel, in rounds until the middle is known; `sweep`, where given,
  /// comes before each launch and is part of what it adds. Errors: as above.
  [[nodiscard]] kernel_stream measure_stream(const inference& run, std::size_t s, std::size_t k,
                                             cache_sweep* sweep = nullptr) {
    streamed_kernel_run lone(injector_, sweep);
    const auto once = [&](std::size_t launches) {
      for (;;) {
        if (held_ns_ == 0.0) injector_.prepare_hold(queue_, held_ns_ = 300e3);
        lone.choose(s, k, launches);
        run(&lone);
        const double ns = lone.device_ns();
        // Hidden, or so long that the host was ahead anyway.
        if (lone.host_ns() < 0.8 * held_ns_ || ns > 3.0 * lone.host_ns() || held_ns_ > 20e6) return ns;
        injector_.prepare_hold(queue_, held_ns_ = 2.0 * lone.host_ns());
      }
    };
    kernel_stream found;
    const double one = std::max(once(4) / 3.0, 100.0);
    found.many = static_cast<std::size_t>(std::clamp(2e6 / one, 5.0, 24.0));
    found.few = found.many / 5;
    for (int round = 0; round < most_rounds; ++round) {
      found.few_ns.push_back(once(found.few + 1));
      found.many_ns.push_back(once(found.many + 1));
      for (const double ns : lone.enqueue_times()) found.enqueue_ns.push_back(ns);
      if (round + 1 < least_rounds) continue;
      std::vector<double> slopes = found.slopes_ns();
      if (profile::median_uncertainty(slopes) < std::max(50.0, 0.01 * profile::middle_mean(slopes))) break;
    }
    return found;
  }

 private:
  static constexpr int least_rounds = 7;
  static constexpr int most_rounds = 25;
  static constexpr std::size_t few_copies = 17, many_copies = 256;
  static constexpr std::size_t few_empties = 8, many_empties = 40, few_longs = 4, many_longs = 12;

  /// Host time from one enqueue to the next: copies of some of the program's own kernels, without events. As many in a
  /// run as the program launches, where each is no work for the host: the first ten or so, beside the upload, were up
  /// to 1.6 times as slow as the others on the device that docs/measurements/profiler.md tells of.
  [[nodiscard]] double measure_enqueue(const program& p, const inference& run) {
    std::vector<std::size_t> steps;
    std::size_t launches = 0;
    for (std::size_t s = 0; s < p.steps.size(); ++s) {
      launches += p.steps[s].lowered.kernels.size();
      if (!p.steps[s].lowered.kernels.empty() && p.steps[s].lowered.versions == 1) steps.push_back(s);
    }
    const std::size_t copies = by_events_ ? few_copies : std::clamp(launches, few_copies, many_copies);
    std::vector<double> enqueues;
    lone_kernel_run lone;
    for (std::size_t i = 0; i < steps.size(); i += 1 + steps.size() / 12)
      for (int round = 0; round < 3; ++round) {
        lone.choose(steps[i], 0, copies, 0);
        run(&lone);
        const std::vector<double> times = lone.enqueue_times();
        if (!times.empty())
          enqueues.push_back(std::accumulate(times.begin(), times.end(), 0.0) / static_cast<double>(times.size()));
      }
    return enqueues.empty() ? 0.0 : profile::middle_mean(enqueues);
  }

  /// The stream's slope has a sweep and two gaps besides the kernel, of which the sweep's own slope has one.
  [[nodiscard]] profile::latency_entry entry_of(const kernel_stream& stream, double sweep_ns) const {
    profile::series times;
    for (const double ns : stream.slopes_ns()) times.add(std::max(0.0, ns - sweep_ns - gap_ns_));
    profile::latency_entry entry = profile::entry_of(times);
    entry.p50_ns = std::max(0.0, stream.slope_ns() - sweep_ns - gap_ns_);
    return entry;
  }

  [[nodiscard]] profile::latency_entry by_own_events(const inference& run, std::size_t s, std::size_t k) {
    lone_kernel_run lone(sweep_ ? &*sweep_ : nullptr);
    profile::series times;
    for (std::size_t round = 0; round < options_.rounds; ++round) {
      lone.choose(s, k, options_.warm, options_.timed);
      run(&lone);
      for (const double ns : lone.take_times()) times.add(ns);
    }
    return profile::entry_of(times);
  }

  const opencl::context* where_;
  lone_kernel_options options_;
  opencl::command_queue queue_;
  profile::kernel_injector injector_;
  std::optional<cache_sweep> sweep_;
  bool by_events_ = false;
  double gap_ns_ = 0.0;
  double held_ns_ = 0.0;  // that the injector is prepared for, 0: for something else
};

}  // namespace dnnopt

#endif  // DNNOPT_BACKEND_MEASURE_LONE_KERNELS_HPP
