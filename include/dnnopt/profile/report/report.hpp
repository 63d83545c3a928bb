// Owns the result of profiling: statistics by operator, kernel and type, the split of end-to-end time, and the events
// kept.
#ifndef DNNOPT_PROFILE_REPORT_REPORT_HPP
#define DNNOPT_PROFILE_REPORT_REPORT_HPP

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dnnopt/profile/clocks/clock_map.hpp>
#include <dnnopt/profile/events.hpp>
#include <dnnopt/profile/statistics.hpp>
#include <dnnopt/profile/waiting/waiting_fit.hpp>

namespace dnnopt::profile {

enum class profile_mode : std::uint8_t {
  off,      ///< nothing is timed and no event is created
  full,     ///< every command of every run
  monitor,  ///< a sample of the commands within a budget
};

[[nodiscard]] constexpr std::string_view to_string(profile_mode mode) noexcept {
  switch (mode) {
    case profile_mode::off:
      return "off";
    case profile_mode::full:
      return "full";
    case profile_mode::monitor:
      return "monitor";
  }
  return "unknown";
}

/// One row of a table. Times are nanoseconds of one call; `total_ns` is per inference.
struct statistic_row {
  std::string name;
  std::string type;              ///< ONNX operator of the anchor, or the kind of command
  std::vector<std::string> ops;  ///< names of the operators fused in it
  work_class work = work_class::compute;
  std::uint64_t count = 0;  ///< samples
  double calls = 0.0;       ///< calls per inference
  double first_ns = 0.0;
  double mean_ns = 0.0;
  double min_ns = 0.0;
  double max_ns = 0.0;
  double p50_ns = 0.0;
  double p90_ns = 0.0;
  interval mean_interval_ns{};  ///< 95% confidence
  double total_ns = 0.0;
  double share = 0.0;       ///< of the sum of all rows
  double cumulative = 0.0;  ///< of rows up to this one, longest first
  double flops_per_second = 0.0;
  double bytes_per_second = 0.0;
  double flops = 0.0;  ///< mean of one call
  double bytes = 0.0;
};

/// End-to-end time of an inference split by what happened at each moment: a kernel ran; else data was copied; else the
/// host computed an operator; else it enqueued; else it waited. The parts and `unexplained_ns` add up to `e2e_ns`.
struct time_split {
  double e2e_ns = 0.0;
  double gpu_ns = 0.0;
  double copy_ns = 0.0;
  double host_operator_ns = 0.0;
  double enqueue_ns = 0.0;
  double wait_ns = 0.0;
  double unexplained_ns = 0.0;
  double enqueue_overlapped_ns = 0.0;  ///< all time in enqueue calls, also while a kernel ran
  std::size_t runs = 0;                ///< inferences averaged
};

/// A device's measured ceilings for a roofline; zeros where unknown.
struct device_ceilings {
  double flops_per_second = 0.0;
  double bytes_per_second = 0.0;
  double image_bytes_per_second = 0.0;

  /// The larger of the two rates at which memory is copied.
  [[nodiscard]] double bandwidth() const noexcept { return std::max(bytes_per_second, image_bytes_per_second); }
  /// Operations per byte at which both ceilings take the same time; 0 where one is unknown.
  [[nodiscard]] double ridge() const noexcept { return bandwidth() > 0.0 ? flops_per_second / bandwidth() : 0.0; }
};

/// One tensor's place in the memory plan, for drawing.
struct memory_block {
  std::string name;
  std::size_t first_step = 0;  ///< launch at which it is written
  std::size_t last_step = 0;   ///< last launch that reads it
  std::uint64_t offset = 0;    ///< bytes
  std::uint64_t size = 0;
};

/// All that a profile says. Times of events are on the host clock, from `origin_ns`.
struct profile_report {
  std::string model;
  std::string device;
  std::string created;  ///< date of the profile, ISO 8601
  profile_mode mode = profile_mode::full;
  std::int64_t origin_ns = 0;  ///< host clock at which the timeline begins
  std::size_t kernels = 0;     ///< device commands of one inference, as the contract counts them
  std::uint64_t runs = 0;      ///< inferences finished
  statistic_row e2e;           ///< of whole inferences
  std::vector<statistic_row> by_operator;
  std::vector<statistic_row> by_kernel;  ///< device commands between the transfers, and host operators
  std::vector<statistic_row> by_other;   ///< transfers, maps and waits
  std::vector<statistic_row> by_type;
  std::vector<statistic_row> by_work;
  time_split split;
  clock_report clock;
  std::vector<clock_report> clock_candidates;
  std::vector<std::pair<std::int64_t, std::int64_t>>
      clock_snapshots;          ///< host and device nanoseconds at the same moment
  std::uint64_t dropped = 0;    ///< events lost because a sink was slow
  std::uint64_t discarded = 0;  ///< oldest events no longer kept; they count in the statistics
  double event_cost_ns = 0.0;   ///< what timing one command costs, as estimated; 0 where not measured
  event_bias bias;              ///< taken off each kernel's time: what an event's START to END has too much
  waiting_line waiting;         ///< the same of kernels that the device had to wait for, as learned in this profile
  std::uint64_t waiting_samples = 0;  ///< kernels that it was learned from
  double starved = 0.0;               ///< share of the kept kernels that the device had to wait for
  double deep = 0.0;                  ///< share of the kept kernels that ran deep in the queue (event_bias::depth)
  double overhead = 0.0;              ///< estimated share of time that monitoring costs
  std::vector<launch_info> launches;
  std::vector<kernel_event> events;  ///< ordered by enqueue
  std::vector<run_event> run_events;
  std::vector<memory_block> memory;
  std::uint64_t arena_bytes = 0;              ///< planned for intermediates
  std::uint64_t arena_lower_bound_bytes = 0;  ///< no plan of this execution order needs less
  std::uint64_t arena_allocated_bytes = 0;    ///< counted by the allocator besides weights, inputs and outputs
  device_ceilings ceilings;
};

/// Sets shares and cumulative shares and sorts rows, longest first.
inline void rank_rows(std::vector<statistic_row>& rows) {
  std::stable_sort(rows.begin(), rows.end(),
                   [](const statistic_row& a, const statistic_row& b) { return a.total_ns > b.total_ns; });
  double sum = 0.0;
  for (const statistic_row& row : rows) sum += row.total_ns;
  double seen = 0.0;
  for (statistic_row& row : rows) {
    seen += row.total_ns;
    row.share = sum > 0.0 ? row.total_ns / sum : 0.0;
    row.cumulative = sum > 0.0 ? seen / sum : 0.0;
  }
}

/// A row from a series of call durations in nanoseconds.
[[nodiscard]] inline statistic_row make_row(const series& durations) {
  statistic_row row;
  row.count = durations.count();
  if (row.count == 0) return row;
  row.first_ns = durations.first();
  row.mean_ns = durations.moments().mean();
  row.min_ns = durations.moments().min();
  row.max_ns = durations.moments().max();
  row.p50_ns = durations.quantile(0.5);
  row.p90_ns = durations.quantile(0.9);
  row.mean_interval_ns = durations.moments().mean_interval();
  return row;
}

/// Splits one run's time over its events (any order, those of other runs are ignored). O(n log n).
[[nodiscard]] inline time_split split_run(const run_event& run, const std::vector<kernel_event>& events) {
  enum part : std::size_t { gpu, copy, host_operator, enqueue, wait, parts };
  struct edge {
    std::int64_t at;
    part what;
    int change;
  };
  std::vector<edge> edges;
  time_split split;
  split.e2e_ns = static_cast<double>(run.end_ns - run.begin_ns);
  split.runs = 1;
  const auto span = [&](std::int64_t begin, std::int64_t end, part what) {
    begin = std::max(begin, run.begin_ns);
    end = std::min(end, run.end_ns);
    if (end <= begin) return;
    edges.push_back({begin, what, 1});
    edges.push_back({end, what, -1});
  };
  for (const kernel_event& event : events) {
    if (event.run != run.run) continue;
    switch (event.kind) {
      case event_kind::kernel:
      case event_kind::copy:
      case event_kind::fill:
        span(event.start_ns, event.end_ns, gpu);
        span(event.host_begin_ns, event.host_end_ns, enqueue);
        split.enqueue_overlapped_ns += static_cast<double>(event.host_end_ns - event.host_begin_ns);
        break;
      case event_kind::upload:
      case event_kind::download:
      case event_kind::map:
        span(event.start_ns, event.end_ns, copy);
        span(event.host_begin_ns, event.host_end_ns, copy);
        break;
      case event_kind::host_operator:
        span(event.host_begin_ns, event.host_end_ns, host_operator);
        break;
      case event_kind::wait:
        span(event.host_begin_ns, event.host_end_ns, wait);
        break;
    }
  }
  std::sort(edges.begin(), edges.end(), [](const edge& a, const edge& b) { return a.at < b.at; });
  int open[parts] = {};
  double sums[parts] = {};
  std::int64_t at = run.begin_ns;
  for (const edge& e : edges) {
    for (std::size_t p = 0; p < parts; ++p)
      if (open[p] > 0) {
        sums[p] += static_cast<double>(e.at - at);
        break;
      }
    at = e.at;
    open[e.what] += e.change;
  }
  split.gpu_ns = sums[gpu];
  split.copy_ns = sums[copy];
  split.host_operator_ns = sums[host_operator];
  split.enqueue_ns = sums[enqueue];
  split.wait_ns = sums[wait];
  split.unexplained_ns = split.e2e_ns - (sums[gpu] + sums[copy] + sums[host_operator] + sums[enqueue] + sums[wait]);
  return split;
}

/// Mean of the splits of all runs whose events are at hand. O(n log n).
[[nodiscard]] inline time_split mean_split(const std::vector<run_event>& runs,
                                           const std::vector<kernel_event>& events) {
  std::vector<kernel_event> sorted = events;
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const kernel_event& a, const kernel_event& b) { return a.run < b.run; });
  time_split mean;
  for (const run_event& run : runs) {
    const auto from = std::lower_bound(sorted.begin(), sorted.end(), run.run,
                                       [](const kernel_event& e, std::uint32_t number) { return e.run < number; });
    const auto to = std::upper_bound(from, sorted.end(), run.run,
                                     [](std::uint32_t number, const kernel_event& e) { return number < e.run; });
    if (from == to) continue;
    const time_split one = split_run(run, std::vector<kernel_event>(from, to));
    ++mean.runs;
    const double rate = 1.0 / static_cast<double>(mean.runs);
    for (double time_split::*part : {&time_split::e2e_ns, &time_split::gpu_ns, &time_split::copy_ns,
                                     &time_split::host_operator_ns, &time_split::enqueue_ns, &time_split::wait_ns,
                                     &time_split::unexplained_ns, &time_split::enqueue_overlapped_ns})
      mean.*part += (one.*part - mean.*part) * rate;
  }
  return mean;
}

}  // namespace dnnopt::profile

#endif  // DNNOPT_PROFILE_REPORT_REPORT_HPP
