// Owns the profiler's check of itself on a program: each kernel's profiled time against what copies of it add to an
// inference.
#ifndef DNNOPT_BACKEND_CHECK_KERNELS_HPP
#define DNNOPT_BACKEND_CHECK_KERNELS_HPP

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <dnnopt/backend/opencl_context.hpp>
#include <dnnopt/backend/profiled_run.hpp>
#include <dnnopt/backend/program.hpp>
#include <dnnopt/backend/run_observer.hpp>
#include <dnnopt/profile/event_timer.hpp>
#include <dnnopt/profile/host_clock.hpp>
#include <dnnopt/profile/injected_copies.hpp>
#include <dnnopt/profile/profiler.hpp>
#include <dnnopt/profile/report.hpp>
#include <dnnopt/profile/statistics.hpp>

namespace dnnopt {

/// A run in which one kernel is enqueued more than once and nothing else is timed.
class copied_kernel_run final : public run_observer, private opencl::event_sink {
 public:
  /// `holding`, where given, is prepared to hold the device; each run then begins with it, so that the host, which may
  /// need longer to enqueue a short kernel than the device to run it, does not show in what a copy adds.
  explicit copied_kernel_run(profile::kernel_injector* holding = nullptr) noexcept : holding_(holding) {}
  /// Kernel `k` of step `s` is enqueued `copies` times more; where `timed`, all of them but the first carry events.
  void choose(std::size_t s, std::size_t k, std::size_t copies, bool timed = false) noexcept {
    step_ = s;
    kernel_ = k;
    copies_ = copies;
    timed_ = timed;
    begun_ns_ = last_ns_ = 0;
  }
  void before(std::size_t, std::size_t, opencl::command_queue& queue) override {
    if (holding_ == nullptr || begun_ns_ != 0) return;
    holding_->hold(queue);
    begun_ns_ = profile::host_now_ns();
  }
  [[nodiscard]] std::size_t launches(std::size_t s, std::size_t k) override {
    chosen_ = s == step_ && k == kernel_;
    first_ = true;
    return chosen_ ? 1 + copies_ : 1;
  }
  [[nodiscard]] opencl::event_sink* kernel(std::size_t, std::size_t, std::uint64_t, std::uint64_t) override {
    if (holding_ != nullptr) last_ns_ = profile::host_now_ns();
    return timed_ && chosen_ && !std::exchange(first_, false) ? this : nullptr;
  }
  [[nodiscard]] opencl::event_sink* transfer(direction) override { return nullptr; }
  [[nodiscard]] std::int64_t now() const override { return 0; }
  void host_operator(std::size_t, std::int64_t) override {}
  void waited(std::int64_t) override {}

  /// Host nanoseconds from the long kernel's enqueue to the last kernel's; 0 without a long kernel.
  [[nodiscard]] double host_ns() const noexcept { return static_cast<double>(last_ns_ - begun_ns_); }

  /// Lets the events of the former run go.
  void forget_times() noexcept { events_.clear(); }
  /// Adds START to END of the timed copies, and END to the next one's START, in nanoseconds; call after the run.
  void take_times(std::vector<double>& times, std::vector<double>& gaps) {
    profile::raw_event raw;
    for (std::size_t i = 0; i < events_.size(); ++i) {
      const std::int64_t former = raw.end_ns;
      profile::read_event_stamps(events_[i], raw);
      times.push_back(static_cast<double>(raw.end_ns - raw.start_ns));
      if (i > 0) gaps.push_back(static_cast<double>(raw.start_ns - former));
    }
    events_.clear();
  }

 private:
  void on_command(const opencl::command_record&, cl::Event event) override { events_.push_back(std::move(event)); }

  profile::kernel_injector* holding_;
  std::int64_t begun_ns_ = 0;
  std::int64_t last_ns_ = 0;
  std::size_t step_ = static_cast<std::size_t>(-1);
  std::size_t kernel_ = 0;
  std::size_t copies_ = 0;
  bool timed_ = false;
  bool chosen_ = false;
  bool first_ = true;
  std::vector<cl::Event> events_;
};

/// A kernel's, or an operator's, time by the profiler and by copies, in nanoseconds.
struct checked_kernel {
  std::string name;
  std::string anchor;        ///< the operator that its time is booked on
  double in_situ_ns = 0.0;   ///< middle mean of START to END in inferences, an event's own part taken off
  double profiled_ns = 0.0;  ///< the same of the copies: what the slope is the truth of, for they find warm caches
  double truth_ns = 0.0;     ///< slope of end-to-end time over copies, less the launch
  double launch_ns = 0.0;    ///< part of the slope that is launch: an empty kernel's slope, or the gap between copies
  double low_ns = 0.0;       ///< 95% interval of the truth
  double high_ns = 0.0;

  [[nodiscard]] double error_ns() const noexcept { return profiled_ns - truth_ns; }
  /// The bound: the larger of a microsecond and 5% of the truth.
  [[nodiscard]] double allowed_ns() const noexcept { return std::max(1000.0, 0.05 * truth_ns); }
  /// Whether the error exceeds the bound by more than the truth is uncertain.
  [[nodiscard]] bool wrong() const noexcept { return std::abs(error_ns()) > allowed_ns() + (high_ns - low_ns) / 2.0; }
};

struct check_kernels_options {
  std::size_t most_copies = 20;
  std::size_t rounds = 3;      ///< inferences per number of copies at first; doubled until the slope is known
  double seconds = 120.0;      ///< for all kernels; the first rounds are measured in any case
  std::size_t profiled = 100;  ///< profiled inferences
};

/// The check's result.
struct kernel_check {
  std::vector<checked_kernel> kernels;    ///< in order of execution
  std::vector<checked_kernel> operators;  ///< sums over the kernels of an anchor, in order of execution
  double empty_ns = 0.0;                  ///< slope of the empty kernel
  double event_bias_ns = 0.0;             ///< what was taken off each event
  profile::time_split split;              ///< where the profiled inferences' time went
};

/// Measures each kernel of `p` by events, in inferences and of copies of it, and by the slope of end-to-end latency
/// over 1 to `most_copies` copies injected behind it, less the launch: an empty kernel's slope on a busy device (nnPerf
/// section 5.2) or, where events cost nothing and it is longer, the gap between copies. Where events cost more, and the
/// host may be what decides, inferences with copies begin with a long kernel. `run` is one inference of the
/// executor that executes `p`, with the observer it is given; it must have run before. `progress` is told after each
/// kernel. Profiled inferences come between the measurements of copies, so that both see the same device. Takes at
/// least kernels * most_copies * rounds inferences. Errors: those of `run`; opencl_call.
[[nodiscard]] inline kernel_check check_kernels(const opencl::context& where, const program& p,
                                                const std::function<void(run_observer*)>& run,
                                                const check_kernels_options& options = {},
                                                const std::function<void(const checked_kernel&)>& progress = {}) {
  constexpr double most_held_ns = 5e6;
  kernel_check result;
  opencl::command_queue queue = where.make_queue({true, 0});
  profile::kernel_injector injector(where.handle(), where.where().handle());
  result.empty_ns = injector.measure_empty_slope(queue).ns_per_copy;
  result.event_bias_ns = injector.measure_event_bias(queue);
  // Between kernels that let a driver's threads fall asleep more time passes than between empty ones; stamps tell it
  // where events cost nothing.
  const bool free_events = injector.measure_event_cost(queue) < profile::kernel_injector::free_event_ns;

  std::size_t launches = 0;
  for (const placed_node& step : p.steps) launches += step.lowered.kernels.size();
  profile::profiler_options settings;
  settings.clock = profile::clock_options_of(where.where().handle());
  settings.clock.event_bias_ns = result.event_bias_ns;
  profile::profiler profiler(settings);
  injector.inject(queue, profiler, profiler.probes_wanted());
  profiled_run observer(profiler, p);
  const auto profile_some = [&](std::size_t inferences) {
    for (std::size_t i = 0; i < inferences; ++i) {
      observer.begin();
      run(&observer);
      observer.end();
    }
  };
  const std::size_t between = std::max<std::size_t>(1, options.profiled / std::max<std::size_t>(1, launches));

  copied_kernel_run copied(free_events ? nullptr : &injector);
  double held_ns = 300e3;
  if (!free_events) injector.prepare_hold(queue, held_ns);
  // One inference with copies, again behind a longer kernel where the host was not ahead.
  const auto run_copied = [&](std::size_t s, std::size_t k, std::size_t copies, bool timed) {
    for (;;) {
      copied.choose(s, k, copies, timed);
      const std::int64_t begin = profile::host_now_ns();
      run(&copied);
      const double ns = static_cast<double>(profile::host_now_ns() - begin);
      if (free_events || copied.host_ns() < 0.8 * held_ns || held_ns > most_held_ns) return ns;
      injector.prepare_hold(queue, held_ns = 2.0 * copied.host_ns());
      copied.forget_times();
    }
  };
  const std::int64_t end_ns = profile::host_now_ns() + static_cast<std::int64_t>(options.seconds * 1e9);
  for (std::size_t s = 0; s < p.steps.size(); ++s)
    for (std::size_t k = 0; k < p.steps[s].lowered.kernels.size(); ++k) {
      profile_some(between);
      const auto inference = [&](std::size_t copies) { return run_copied(s, k, copies, false); };
      // What kernels before this one have left of their time is shared by those to come.
      const std::int64_t now_ns = profile::host_now_ns();
      const std::int64_t until =
          now_ns + (end_ns - now_ns) / static_cast<std::int64_t>(launches - result.kernels.size());
      profile::copy_slope slope;
      for (std::size_t rounds = options.rounds;; rounds *= 2) {
        const std::int64_t begin = profile::host_now_ns();
        slope = profile::measure_copy_slope(inference, {options.most_copies, rounds, rounds});
        const double half = (slope.high_ns - slope.low_ns) / 2.0;
        const std::int64_t now = profile::host_now_ns();
        if (half < 0.25 * std::max(1000.0, 0.05 * slope.ns_per_copy) || now + 2 * (now - begin) > until) break;
      }
      std::vector<double> times, gaps;
      for (int i = 0; i < 5; ++i) {
        (void)run_copied(s, k, options.most_copies, true);
        copied.take_times(times, gaps);
      }
      const profile::launch_info info = describe_launch(p, p.steps[s], k);
      checked_kernel row;
      row.name = info.name;
      row.anchor = info.ops.at(info.anchor).name;
      row.profiled_ns = profile::middle_mean(times);
      row.profiled_ns = profile::without_bias(row.profiled_ns, result.event_bias_ns);
      row.launch_ns = std::max(result.empty_ns, free_events ? profile::exact_quantile(gaps, 0.5) : 0.0);
      row.truth_ns = slope.ns_per_copy - row.launch_ns;
      row.low_ns = slope.low_ns - row.launch_ns;
      row.high_ns = slope.high_ns - row.launch_ns;
      result.kernels.push_back(std::move(row));
      if (progress) progress(result.kernels.back());
    }
  profile_some(between);

  const profile::profile_report report = profiler.report();
  result.split = report.split;
  for (checked_kernel& row : result.kernels) {
    std::vector<double> times;
    for (const profile::kernel_event& event : report.events)
      if (event.kind == profile::event_kind::kernel && report.launches[event.launch].name == row.name)
        times.push_back(event.duration_ns());
    if (!times.empty()) row.in_situ_ns = profile::middle_mean(times);
    auto sum = std::find_if(result.operators.begin(), result.operators.end(),
                            [&](const checked_kernel& other) { return other.anchor == row.anchor; });
    if (sum == result.operators.end()) {
      result.operators.push_back(row);
      result.operators.back().name = row.anchor;
      continue;
    }
    sum->in_situ_ns += row.in_situ_ns;
    sum->profiled_ns += row.profiled_ns;
    sum->truth_ns += row.truth_ns;
    sum->launch_ns += row.launch_ns;
    sum->low_ns += row.low_ns;
    sum->high_ns += row.high_ns;
  }
  return result;
}

}  // namespace dnnopt

#endif  // DNNOPT_BACKEND_CHECK_KERNELS_HPP
