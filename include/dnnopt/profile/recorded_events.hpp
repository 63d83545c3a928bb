// Owns what a profiler keeps of the events it is given: clocks, sums per launch and operator, the newest events.
#ifndef DNNOPT_PROFILE_RECORDED_EVENTS_HPP
#define DNNOPT_PROFILE_RECORDED_EVENTS_HPP

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <dnnopt/error.hpp>
#include <dnnopt/profile/clocks/clock_sync.hpp>
#include <dnnopt/profile/events.hpp>
#include <dnnopt/profile/report/report.hpp>
#include <dnnopt/profile/report/report_rows.hpp>
#include <dnnopt/profile/statistics.hpp>
#include <dnnopt/profile/waiting/command_arrival.hpp>
#include <dnnopt/profile/waiting/waiting_fit.hpp>

namespace dnnopt::profile {

/// Launch numbers of what is no launch: the end of an inference, an empty kernel for the clock, one for arrivals.
inline constexpr std::uint32_t run_launch = std::numeric_limits<std::uint32_t>::max();
inline constexpr std::uint32_t probe_launch = run_launch - 1;
inline constexpr std::uint32_t arrival_launch = run_launch - 2;

/// What observers are told of one event.
struct delivery {
  bool is_run = false;
  kernel_event event{};
  run_event run{};
  const launch_info* info = nullptr;
};

/// Events and runs that are kept; statistics cover all.
struct kept_limits {
  std::size_t events = std::size_t{1} << 16;
  std::size_t runs = 4096;
};

/// What was recorded so far. Not for several threads at once.
class recorded_events {
 public:
  recorded_events(profile_mode mode, const clock_sync_options& clock, kept_limits limits)
      : mode_(mode), limits_(limits), bias_(clock.bias), clock_(clock), waiting_(clock.bias) {}

  /// Registers what stays the same of a launch and returns its number; an equal description gets the number it had.
  /// Errors: invalid_argument where the anchor is none of its operators.
  [[nodiscard]] std::uint32_t describe(launch_info info) {
    if (!info.ops.empty() && info.anchor >= info.ops.size())
      throw error(errc::invalid_argument, "launch '" + info.name + "' has anchor " + std::to_string(info.anchor) +
                                              " of " + std::to_string(info.ops.size()) + " operators");
    std::string key = info.name;
    for (const operator_ref& op : info.ops) key += '\x1f' + op.name;
    key += '\x1e' + info.attributes + '\x1e' + info.shapes + '\x1e' + info.layout;
    const auto [found, added] =
        launch_numbers_.try_emplace(std::move(key), static_cast<std::uint32_t>(launches_.size()));
    if (added) launches_.emplace_back().info = std::move(info);
    return found->second;
  }

  /// Lets the clock of the host be read anew, between batches of events.
  void refresh_clock() { clock_.refresh(); }

  /// Takes in one event and adds what observers are to be told. Not for an event that was taken in before.
  void add(const raw_event& raw, std::vector<delivery>& deliveries) {
    if (raw.launch == run_launch) {
      finish_run(raw, deliveries);
      return;
    }
    if (raw.launch == probe_launch) {
      clock_.add({raw.host_begin_ns, raw.host_end_ns, raw.queued_ns});
      return;
    }
    if (raw.launch == arrival_launch) {
      arrivals_.probe(raw.host_end_ns, clock_.beside(raw.end_ns));
      return;
    }
    if (raw.launch >= launches_.size()) {
      ++unknown_;
      return;
    }
    raw_event timed = raw;
    raw_event unwrapped = raw;
    arrival seen;
    if (has_device_stamps(raw.kind)) {
      unwrapped.queued_ns = clock_.add({raw.host_begin_ns, raw.host_end_ns, raw.queued_ns});
      unwrapped.submit_ns = clock_.beside(raw.submit_ns);
      unwrapped.start_ns = clock_.beside(raw.start_ns);
      unwrapped.end_ns = clock_.beside(raw.end_ns);
      const auto [former, first] = former_ends_.try_emplace(raw.queue, unwrapped.end_ns);
      if (!first) {
        unwrapped.pause_ns = std::max<std::int64_t>(0, unwrapped.start_ns - former->second);
        former->second = std::max(former->second, unwrapped.end_ns);
      }
      // Of commands repeated back to back one event has the last one's call, and the first one's START.
      if (counts_as_kernel(raw.kind) && raw.repeats == 1) {
        seen = arrivals_.judge(bias_, waiting_.line(), unwrapped);
        unwrapped.bias_ns = static_cast<float>(seen.part_ns);
      }
      timed.pause_ns = unwrapped.pause_ns;
      timed.bias_ns = unwrapped.bias_ns;
    }
    const kernel_event event = clock_.to_host(timed);
    recorded_launch& launch = launches_[raw.launch];
    launch.kind = raw.kind;
    const double duration = event.duration_ns();
    launch.durations.add(duration, raw.weight);
    if (counts_as_kernel(raw.kind)) {
      double weight = raw.weight;
      if (mode_ == profile_mode::monitor) {
        weight *= seen.certainty();
        launch.certain.add(duration, weight);
      }
      if (seen.late_ns) waiting_.note(raw.launch, *seen.late_ns, seen.part_ns, weight);
      learn(raw.launch, seen, static_cast<double>(unwrapped.end_ns - unwrapped.start_ns),
            launch.durations.moments().mean());
    }
    launch.flops_and_bytes[0].add(static_cast<double>(raw.flops));
    launch.flops_and_bytes[1].add(static_cast<double>(raw.bytes));
    if (!launch.info.ops.empty() && mode_ == profile_mode::full) {
      open_run& open = open_runs_[raw.run];
      open.operators[launch.info.ops[launch.info.anchor].name] += duration;
    }
    if (mode_ == profile_mode::full) {
      open_run& open = open_runs_[raw.run];
      ++open.seen;
      close_if_complete(raw.run, open);
    }
    kept_.push_back(unwrapped);
    if (kept_.size() > limits_.events) {
      kept_.pop_front();
      ++discarded_;
    }
    deliveries.push_back({false, event, {}, &launch.info});
  }

  /// Tells all that was recorded, but what the profiler knows of itself. O(events kept * log).
  [[nodiscard]] profile_report report();

 private:
  /// Sums per operator of a run whose events have not all come yet.
  struct open_run {
    std::map<std::string, double> operators;
    std::uint64_t seen = 0;
    std::uint64_t expected = std::numeric_limits<std::uint64_t>::max();
  };

  /// Tells what events of commands waited for have too much. An interrupted call says nothing of others.
  void learn(std::uint32_t launch, const arrival& seen, double whole_ns, double usual_ns) {
    if (seen.interrupted) return;
    if (seen.present) waiting_.add_present(launch, whole_ns - seen.part_ns);
    if (seen.late_ns) waiting_.add_waited(launch, *seen.late_ns, whole_ns, usual_ns);
  }

  void finish_run(const raw_event& raw, std::vector<delivery>& deliveries) {
    const run_event run{raw.run, raw.host_begin_ns, raw.host_end_ns};
    e2e_.add(static_cast<double>(run.end_ns - run.begin_ns));
    if (raw.weight > 0.0F) {  // else it was not taken and announced nothing
      kernels_ = static_cast<std::size_t>(raw.bytes);
      launches_per_run_.add(static_cast<double>(raw.bytes));
    }
    runs_.push_back(run);
    if (runs_.size() > limits_.runs) runs_.pop_front();
    if (mode_ == profile_mode::full) {
      open_run& open = open_runs_[raw.run];
      open.expected = raw.flops;
      close_if_complete(raw.run, open);
      // Drops leave runs incomplete; their sums would be too small, so they are let go.
      while (open_runs_.size() > 64) open_runs_.erase(open_runs_.begin());
    }
    deliveries.push_back({true, {}, run, nullptr});
  }

  void close_if_complete(std::uint32_t number, open_run& open) {
    if (open.seen < open.expected) return;
    for (const auto& [name, sum] : open.operators) operators_[name].add(sum);
    open_runs_.erase(number);
  }

  profile_mode mode_;
  kept_limits limits_;
  event_bias bias_;
  clock_synchronizer clock_;
  command_arrival arrivals_;
  waiting_fit waiting_;
  std::map<std::string, std::uint32_t> launch_numbers_;
  std::deque<recorded_launch> launches_;
  std::deque<raw_event> kept_;
  std::deque<run_event> runs_;
  std::map<std::uint32_t, open_run> open_runs_;
  std::map<std::uint8_t, std::int64_t> former_ends_;  // by queue, of its latest command; unwrapped
  std::map<std::string, series> operators_;
  series e2e_;
  running_moments launches_per_run_;
  std::size_t kernels_ = 0;
  std::uint64_t discarded_ = 0;
  std::uint64_t unknown_ = 0;  // events of launches that were never described
};

inline profile_report recorded_events::report() {
  profile_report result;
  result.mode = mode_;
  result.kernels = kernels_;
  result.runs = e2e_.count();
  result.e2e = make_row(e2e_);
  result.e2e.name = "end to end";
  result.e2e.total_ns = result.e2e.mean_ns;
  result.dropped = unknown_;
  result.discarded = discarded_;
  result.bias = bias_;
  waiting_.solve();
  result.waiting = waiting_.line();
  result.waiting_samples = waiting_.samples();
  add_rows(result, launches_, operators_, waiting_);

  result.run_events.assign(runs_.begin(), runs_.end());
  std::size_t kernels = 0, starved = 0, deep = 0;
  for (const raw_event& raw : kept_) {
    result.events.push_back(clock_.place(raw, raw.queued_ns, raw.submit_ns, raw.start_ns, raw.end_ns,
                                         clock_.map_past(raw.start_ns), false));
    if (!counts_as_kernel(raw.kind)) continue;
    ++kernels;
    const bool waited = result.bias.waited(static_cast<double>(result.events.back().bias_ns));
    starved += waited ? 1 : 0;
    deep += !waited && result.bias.deep(raw.behind) ? 1 : 0;
  }
  std::stable_sort(result.events.begin(), result.events.end(),
                   [](const kernel_event& a, const kernel_event& b) { return a.host_begin_ns < b.host_begin_ns; });
  result.origin_ns =
      result.events.empty() ? (runs_.empty() ? 0 : runs_.front().begin_ns) : result.events.front().host_begin_ns;
  for (const run_event& run : result.run_events) {
    if (!result.events.empty() && run.end_ns < result.events.front().host_begin_ns) continue;
    result.origin_ns = std::min(result.origin_ns, run.begin_ns);
    break;
  }
  result.starved = static_cast<double>(starved) / static_cast<double>(std::max<std::size_t>(kernels, 1));
  result.deep = static_cast<double>(deep) / static_cast<double>(std::max<std::size_t>(kernels, 1));
  result.split = mean_split(result.run_events, result.events);
  result.clock = clock_.report();
  result.clock_candidates = clock_.candidates();
  // One snapshot per inference: readers of a trace apply the latest one and do not interpolate.
  std::uint32_t snapshot_run = std::numeric_limits<std::uint32_t>::max();
  for (const raw_event& raw : kept_) {
    if (!has_device_stamps(raw.kind) || raw.run == snapshot_run) continue;
    snapshot_run = raw.run;
    result.clock_snapshots.emplace_back(clock_.map_past(raw.queued_ns)(raw.queued_ns), raw.queued_ns);
  }
  return result;
}

}  // namespace dnnopt::profile

#endif  // DNNOPT_PROFILE_RECORDED_EVENTS_HPP
