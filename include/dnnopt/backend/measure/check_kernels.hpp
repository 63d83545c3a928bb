// Owns the profiler's check of itself on a program: each kernel's profiled time against what copies of it add to an
// inference.
#ifndef DNNOPT_BACKEND_MEASURE_CHECK_KERNELS_HPP
#define DNNOPT_BACKEND_MEASURE_CHECK_KERNELS_HPP

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <dnnopt/backend/measure/event_timer.hpp>
#include <dnnopt/backend/measure/kernel_injector.hpp>
#include <dnnopt/backend/measure/profiled_run.hpp>
#include <dnnopt/backend/measure/runs/copied_kernel_run.hpp>
#include <dnnopt/backend/opencl/context.hpp>
#include <dnnopt/backend/program/program.hpp>
#include <dnnopt/backend/run/observer.hpp>
#include <dnnopt/profile/clocks/host_clock.hpp>
#include <dnnopt/profile/injected_copies.hpp>
#include <dnnopt/profile/profiler.hpp>
#include <dnnopt/profile/report/report.hpp>
#include <dnnopt/profile/statistics.hpp>

namespace dnnopt {

/// A kernel's, or an operator's, time by the profiler and by copies, in nanoseconds.
struct checked_kernel {
  std::string name;
  std::string anchor;        ///< the operator that its time is booked on
  double in_situ_ns = 0.0;   ///< middle mean of START to END in inferences, an event's own part taken off
  double held_ns = 0.0;      ///< the same of inferences that wait behind a long kernel; 0 where events cost nothing
  double profiled_ns = 0.0;  ///< the same of the copies: what the slope is the truth of, for they find warm caches
  double truth_ns = 0.0;     ///< slope of end-to-end time over copies, less the launch
  double launch_ns = 0.0;    ///< part of the slope that is launch: an empty kernel's slope, or the gap between copies
  double half_ns = 0.0;      ///< half of the truth's 95% interval
  std::size_t pairs = 0;     ///< pairs of inferences that the truth is from

  [[nodiscard]] double error_ns() const noexcept { return profiled_ns - truth_ns; }
  /// The bound: the larger of a microsecond and 5% of the truth.
  [[nodiscard]] double allowed_ns() const noexcept { return std::max(1000.0, 0.05 * truth_ns); }
  /// Whether the error exceeds the bound by more than the truth is uncertain.
  [[nodiscard]] bool wrong() const noexcept { return std::abs(error_ns()) > allowed_ns() + half_ns; }
  /// Whether the error is within the bound wherever in its interval the truth lies.
  [[nodiscard]] bool right() const noexcept { return std::abs(error_ns()) + half_ns <= allowed_ns(); }
  /// Whether more pairs would hardly change the verdict: it is looked at after each turn, so that the interval must be
  /// half as wide again.
  [[nodiscard]] bool decided() const noexcept { return std::abs(std::abs(error_ns()) - allowed_ns()) >= 1.5 * half_ns; }
};

struct check_kernels_options {
  std::size_t most_copies = 20;  ///< even
  double seconds = 120.0;        ///< for all kernels together; each has its first pairs in any case
  std::size_t profiled = 100;    ///< profiled inferences
  /// Whether inferences with copies wait behind a long kernel and end to end is by the device's stamps; what an event
  /// costs decides.
  std::optional<bool> by_device{};
};

/// The check's result.
struct kernel_check {
  std::vector<checked_kernel> kernels;    ///< in order of execution
  std::vector<checked_kernel> operators;  ///< sums over the kernels of an anchor, in order of execution
  double empty_ns = 0.0;                  ///< slope of the empty kernel
  profile::event_bias bias;               ///< what was taken off each event
  double held_pause_p99_ns = 0.0;         ///< between kernels behind a long one; 0 where events cost nothing
  bool by_device = false;                 ///< the slopes are of the device's stamps of the first and last command
  profile::location host_excess;          ///< by which the host's clock finds a copy longer than the device's, then
  double seconds = 0.0;                   ///< that the check took
  profile::time_split split;              ///< where the profiled inferences' time went
};

namespace detail {

/// Sums the kernels of each anchor. Their slopes were measured apart: the intervals' halves add as squares.
[[nodiscard]] inline std::vector<checked_kernel> sums_by_operator(const std::vector<checked_kernel>& kernels) {
  std::vector<checked_kernel> operators;
  for (const checked_kernel& row : kernels) {
    const auto sum = std::find_if(operators.begin(), operators.end(),
                                  [&](const checked_kernel& other) { return other.anchor == row.anchor; });
    if (sum == operators.end()) {
      operators.push_back(row);
      operators.back().name = row.anchor;
      continue;
    }
    sum->in_situ_ns += row.in_situ_ns;
    sum->held_ns += row.held_ns;
    sum->profiled_ns += row.profiled_ns;
    sum->truth_ns += row.truth_ns;
    sum->launch_ns += row.launch_ns;
    sum->half_ns = std::hypot(sum->half_ns, row.half_ns);
    sum->pairs = std::min(sum->pairs, row.pairs);
  }
  return operators;
}

}  // namespace detail

/// Measures the kernels of one program by events and by copies; `check_kernels` uses it.
class kernel_checker {
 public:
  using inference = std::function<void(run_observer*)>;

  /// Measures what events and launches cost. All must outlive it. Errors: opencl_call.
  kernel_checker(const opencl::context& where, const program& p, const inference& run,
                 const check_kernels_options& options)
      : run_(&run),
        options_(options),
        queue_(where.make_queue({true, 0})),
        injector_(where.handle(), where.where().handle()),
        random_(1) {
    // Where events have a part of their own, the empty kernel's slope that it was measured with, so that the slope's
    // own error is in both sides alike.
    result_.bias = injector_.measure_event_bias(queue_);
    result_.empty_ns =
        result_.bias.launch_ns > 0.0 ? result_.bias.launch_ns : injector_.measure_empty_slope(queue_).ns_per_copy;
    free_events_ =
        !options_.by_device.value_or(injector_.measure_event_cost(queue_) >= profile::kernel_injector::free_event_ns);
    result_.by_device = !free_events_;
    for (std::size_t s = 0; s < p.steps.size(); ++s)
      for (std::size_t k = 0; k < p.steps[s].lowered.kernels.size(); ++k) {
        // Which of several versions runs is the dims' affair, and a stream is of one that does.
        if (p.steps[s].lowered.versions > 1) continue;
        const profile::launch_info info = describe_launch(p, p.steps[s], k);
        measured one;
        one.step = s;
        one.kernel = k;
        one.row.name = info.name;
        one.row.anchor = info.ops.at(info.anchor).name;
        kernels_.push_back(std::move(one));
      }
    profile::profiler_options settings;
    settings.clock = profile::clock_options_of(where.where().handle());
    settings.clock.bias = result_.bias;
    profiler_.emplace(settings);
    injector_.inject(queue_, *profiler_, profiler_->probes_wanted());
    observer_.emplace(*profiler_, p);
    observer_->follow_arrivals(injector_, queue_);
    copied_.emplace(free_events_ ? nullptr : &injector_, kernels_.size());
    if (!free_events_) injector_.prepare_hold(queue_, held_ns_);
  }

  /// Turns over all kernels, first each and then those whose verdict is open, until none is or the time is over.
  [[nodiscard]] kernel_check check(const std::function<void(const checked_kernel&)>& progress) {
    const std::int64_t begin = profile::host_now_ns();
    const auto seconds = [&] { return static_cast<double>(profile::host_now_ns() - begin) * 1e-9; };
    const std::size_t between = std::max<std::size_t>(1, options_.profiled / std::max<std::size_t>(1, kernels_.size()));
    for (measured& one : kernels_) {
      profile_some(between);
      for (std::size_t turn = 0; turn < first_turns; ++turn) take_turn(one);
      judge(one);
      if (progress) progress(one.row);
    }
    profile_some(between);
    for (bool open = true; open && seconds() < options_.seconds;) {
      open = false;
      for (measured& one : kernels_) {
        if (one.row.decided() && operator_decided(one)) continue;
        open = true;
        if (seconds() >= options_.seconds) break;
        take_turn(one);
        judge(one);
        if (progress) progress(one.row);
      }
    }
    take_held();
    finish();
    result_.seconds = seconds();
    return std::move(result_);
  }

 private:
  static constexpr std::size_t first_turns = 3;
  static constexpr double most_held_ns = 5e6;

  struct measured {
    std::size_t step = 0;
    std::size_t kernel = 0;
    std::vector<double> slopes, host_slopes, times, gaps;
    checked_kernel row{};
  };

  void profile_some(std::size_t inferences) {
    for (std::size_t i = 0; i < inferences; ++i) {
      observer_->begin();
      (*run_)(&*observer_);
      observer_->end();
    }
  }

  /// One inference with copies, again where the host was not ahead of the device; its nanoseconds on the host. When
  /// that happens twice, or by more than a hiccup, the long kernel becomes longer.
  double run_copied(const measured& one, std::size_t copies, bool timed) {
    for (int late = 0;; ++late) {
      copied_->choose(one.step, one.kernel, copies, timed);
      const std::int64_t begin = profile::host_now_ns();
      (*run_)(&*copied_);
      const double ns = static_cast<double>(profile::host_now_ns() - begin);
      if (free_events_ || copied_->host_ns() < 0.9 * held_ns_ || held_ns_ > most_held_ns) return ns;
      if (late > 0) injector_.prepare_hold(queue_, held_ns_ = std::min(1.3 * copied_->host_ns(), 2.0 * held_ns_));
      copied_->forget_times();
    }
  }

  /// Half as many pairs as there are copies and, where events cost something, one inference more whose copies carry
  /// them.
  void take_turn(measured& one) {
    std::vector<std::pair<double, double>> host;  // copies and nanoseconds
    const auto end_to_end = [&](std::size_t copies) {
      host.emplace_back(static_cast<double>(copies), run_copied(one, copies, free_events_));
      if (!free_events_) return copied_->device_ns();
      // Other kernels' times vary by more than ten short copies take.
      const double rest = host.back().second - copied_->others_ns();
      take_means(one);
      return rest;
    };
    profile::measure_pair_slopes(end_to_end, options_.most_copies, random_, one.slopes);
    for (std::size_t i = 0; i + 1 < host.size(); i += 2)
      one.host_slopes.push_back((host[i + 1].second - host[i].second) / (host[i + 1].first - host[i].first));
    if (free_events_) return;
    (void)run_copied(one, options_.most_copies, true);
    copied_->take_times(result_.bias, one.times, one.gaps);
  }

  /// Where events cost nothing the inferences of the slope carry them. Single launches are skewed to the right, and the
  /// slope is of sums of them: the means of an inference's copies and pauses are the same kind of figure.
  void take_means(measured& one) {
    std::vector<double> times, gaps;
    copied_->take_times(result_.bias, times, gaps);
    if (gaps.empty()) return;
    for (const auto& [singles, means] : {std::pair(&times, &one.times), std::pair(&gaps, &one.gaps)}) {
      profile::running_moments sum;
      for (const double single : *singles) sum.add(single);
      means->push_back(sum.mean());
    }
  }

  void judge(measured& one) {
    std::vector<double> slopes = one.slopes;
    const profile::location slope = profile::pseudo_median(slopes);
    std::vector<double> times = one.times, gaps = one.gaps;
    one.row.profiled_ns = free_events_ ? profile::pseudo_median(times).value : profile::middle_mean(times);
    // Between kernels that let a driver's threads fall asleep more time passes than between empty ones; stamps tell it
    // where events cost nothing.
    one.row.launch_ns = std::max(result_.empty_ns, free_events_ ? profile::pseudo_median(gaps).value : 0.0);
    one.row.truth_ns = slope.value - one.row.launch_ns;
    one.row.half_ns = slope.half_width();
    one.row.pairs = one.slopes.size();
  }

  [[nodiscard]] bool operator_decided(const measured& one) const {
    std::vector<checked_kernel> rows;
    for (const measured& other : kernels_)
      if (other.row.anchor == one.row.anchor) rows.push_back(other.row);
    return rows.size() == 1 || detail::sums_by_operator(rows).front().decided();
  }

  /// Kernels in their place, none of which the device has to wait for.
  void take_held() {
    if (free_events_) return;
    timed_run timed(injector_);
    std::vector<std::vector<double>> times(kernels_.size());
    std::vector<double> pauses;
    for (std::size_t i = 0; i < options_.profiled; ++i) {
      timed.clear();
      (*run_)(&timed);
      if (timed.host_ns() > 0.9 * held_ns_ && held_ns_ < most_held_ns) {
        injector_.prepare_hold(queue_, held_ns_ = 1.3 * timed.host_ns());
        continue;
      }
      const std::vector<double> taken = timed.times(result_.bias, pauses);
      for (std::size_t k = 0; k < std::min(taken.size(), times.size()); ++k) times[k].push_back(taken[k]);
    }
    for (std::size_t k = 0; k < kernels_.size(); ++k)
      if (!times[k].empty()) kernels_[k].row.held_ns = profile::middle_mean(times[k]);
    if (!pauses.empty()) result_.held_pause_p99_ns = profile::exact_quantile(pauses, 0.99);
    std::vector<double> excess;
    for (const measured& one : kernels_)
      for (std::size_t i = 0; i < one.slopes.size(); ++i) excess.push_back(one.host_slopes[i] - one.slopes[i]);
    if (!excess.empty()) result_.host_excess = profile::pseudo_median(excess);
  }

  void finish() {
    const profile::profile_report report = profiler_->report();
    result_.split = report.split;
    for (measured& one : kernels_) {
      std::vector<double> times;
      for (const profile::kernel_event& event : report.events)
        if (event.kind == profile::event_kind::kernel && report.launches[event.launch].name == one.row.name)
          times.push_back(event.duration_ns());
      if (!times.empty()) one.row.in_situ_ns = profile::middle_mean(times);
      result_.kernels.push_back(one.row);
    }
    result_.operators = detail::sums_by_operator(result_.kernels);
  }

  const inference* run_;
  check_kernels_options options_;
  opencl::command_queue queue_;
  profile::kernel_injector injector_;
  std::mt19937_64 random_;
  bool free_events_ = true;
  double held_ns_ = 600e3;
  kernel_check result_;
  std::vector<measured> kernels_;
  std::optional<profile::profiler> profiler_;
  std::optional<profiled_run> observer_;
  std::optional<copied_kernel_run> copied_;
};

/// Measures each kernel of `p` by events, in inferences and of copies of it, and by the slope of end-to-end latency
/// over 1 to `most_copies` copies injected behind it, less the launch: an empty kernel's slope on a busy device (nnPerf
/// section 5.2) or, where events cost nothing and it is longer, the gap between copies; what the other kernels took is
/// left out of the latency then, for it varies by more than copies of a short kernel add. Where events cost more, and
/// the host may be what decides, inferences with copies begin with a long kernel, and end to end is from its END to the
/// last kernel's by the device's stamps, which the host's part does not blur; the host's clock is held against them
/// over all kernels. Kernels take turns, those longer whose
/// verdict is open. `run` is one inference of the executor that executes `p`, with the observer it is given; it must
/// have run before. `progress` is told after each turn. Profiled inferences come between the measurements of copies, so
/// that both see the same device. Takes at least 60 inferences of each kernel. Errors: those of `run`; opencl_call.
[[nodiscard]] inline kernel_check check_kernels(const opencl::context& where, const program& p,
                                                const kernel_checker::inference& run,
                                                const check_kernels_options& options = {},
                                                const std::function<void(const checked_kernel&)>& progress = {}) {
  return kernel_checker(where, p, run, options).check(progress);
}

}  // namespace dnnopt

#endif  // DNNOPT_BACKEND_MEASURE_CHECK_KERNELS_HPP
