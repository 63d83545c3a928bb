// Owns the rows of a report: kernels, operators, types and kinds of work, of what was recorded of each launch.
#ifndef DNNOPT_PROFILE_REPORT_REPORT_ROWS_HPP
#define DNNOPT_PROFILE_REPORT_REPORT_ROWS_HPP

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <deque>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <dnnopt/profile/events.hpp>
#include <dnnopt/profile/pooled_means.hpp>
#include <dnnopt/profile/report/report.hpp>
#include <dnnopt/profile/statistics.hpp>
#include <dnnopt/profile/waiting/waiting_fit.hpp>

namespace dnnopt::profile {

/// All that is kept of a launch, in constant memory.
struct recorded_launch {
  launch_info info;
  series durations;
  series certain;  ///< of kernels in monitor mode: the same, each weighed by how certain it is
  running_moments flops_and_bytes[2];
  event_kind kind = event_kind::kernel;
};

namespace detail {

/// Calls per inference: the samples' weight over the runs. A whole number within the sample's own error is taken as
/// that number, for programs launch a kernel the same number of times in each inference.
[[nodiscard]] inline double calls_per_run(const series& durations, double runs) noexcept {
  const double calls = durations.weight() / runs;
  const double whole = std::round(calls);
  const double error = 3.0 * calls / std::sqrt(static_cast<double>(durations.count()));
  const bool sampled = durations.weight() > static_cast<double>(durations.count()) * 1.001;
  return sampled && whole >= 1.0 && std::abs(calls - whole) <= error ? whole : calls;
}

}  // namespace detail

/// Fills a report's rows. `sums_of_operators` has, for operators whose inferences were seen as a whole, the sums of
/// their kernels' times; `waiting` puts means right by what was learned after their samples came.
/// @pre `result` has mode and runs. O(launches * samples' bins).
inline void add_rows(profile_report& result, const std::deque<recorded_launch>& launches,
                     const std::map<std::string, series>& sums_of_operators, const waiting_fit& waiting) {
  const double runs = std::max<double>(1.0, static_cast<double>(result.runs));
  std::map<std::string, statistic_row> by_type;
  std::map<std::string, statistic_row> by_work;
  std::map<std::string, statistic_row> operators;
  std::map<std::string, series> type_series;
  // A sample's few inferences: full mode has enough of them for each kernel's own mean.
  std::vector<const series*> sampled;
  std::vector<std::size_t> place_of(launches.size(), 0);
  for (std::size_t i = 0; i < launches.size() && result.mode == profile_mode::monitor; ++i)
    if (counts_as_kernel(launches[i].kind) && launches[i].durations.count() >= least_pooled_samples) {
      sampled.push_back(&launches[i].certain);
      place_of[i] = sampled.size();
    }
  const std::vector<pooled_mean> pooled = pooled_means(sampled);
  std::map<std::string, double> learned_since;  // by operator, per inference
  for (std::size_t i = 0; i < launches.size(); ++i) {
    const recorded_launch& launch = launches[i];
    result.launches.push_back(launch.info);
    if (launch.durations.count() == 0) continue;
    statistic_row row = make_row(launch.durations);
    if (place_of[i] > 0) {
      row.mean_ns = pooled[place_of[i] - 1].mean;
      row.mean_interval_ns = pooled[place_of[i] - 1].range;
    }
    // What was not known yet of waiting when its samples came; a mean stays among them.
    const series& counted = result.mode == profile_mode::monitor ? launch.certain : launch.durations;
    const double right = row.mean_ns + waiting.correction(i, counted.weight());
    const double since = std::clamp(right, row.min_ns, row.max_ns) - row.mean_ns;
    row.mean_ns += since;
    row.mean_interval_ns.lower += since;
    row.mean_interval_ns.upper += since;
    row.name = launch.info.name;
    row.type = launch.info.ops.empty() ? std::string(to_string(launch.kind)) : launch.info.ops[launch.info.anchor].type;
    for (const operator_ref& op : launch.info.ops) row.ops.push_back(op.name);
    row.work = launch.info.work;
    row.calls = detail::calls_per_run(launch.durations, runs);
    row.total_ns = row.mean_ns * row.calls;
    row.flops = launch.flops_and_bytes[0].mean();
    row.bytes = launch.flops_and_bytes[1].mean();
    const auto add_to = [&](statistic_row& sum) {
      sum.count += row.count;
      sum.calls += row.calls;
      sum.total_ns += row.total_ns;
      sum.flops += row.flops * row.calls;
      sum.bytes += row.bytes * row.calls;
      sum.min_ns = sum.count == row.count ? row.min_ns : std::min(sum.min_ns, row.min_ns);
      sum.max_ns = std::max(sum.max_ns, row.max_ns);
    };
    const std::string type = row.type;
    if (launch.kind != event_kind::wait) add_to(by_work[std::string(to_string(row.work))]);
    by_type[type].work = row.work;
    add_to(by_type[type]);
    type_series[type].merge(launch.durations);
    if (!launch.info.ops.empty()) {
      const std::string& name = launch.info.ops[launch.info.anchor].name;
      learned_since[name] += since * row.calls;
      statistic_row& sum = operators[name];
      if (sum.count == 0) {
        sum = row;
        sum.flops = row.flops * row.calls;
        sum.bytes = row.bytes * row.calls;
      } else {
        add_to(sum);
        sum.first_ns = sum.p50_ns = sum.p90_ns = 0.0;
        sum.ops.insert(sum.ops.end(), row.ops.begin(), row.ops.end());
      }
      sum.name = name;
      sum.type = type;
    }
    if (row.mean_ns > 0.0) {
      row.flops_per_second = row.flops / row.mean_ns * 1e9;
      row.bytes_per_second = row.bytes / row.mean_ns * 1e9;
    }
    (counts_as_kernel(launch.kind) || launch.kind == event_kind::host_operator ? result.by_kernel : result.by_other)
        .push_back(std::move(row));
  }
  const auto rates = [](statistic_row& row) {
    if (row.total_ns <= 0.0) return;
    row.flops_per_second = row.flops / row.total_ns * 1e9;
    row.bytes_per_second = row.bytes / row.total_ns * 1e9;
  };
  for (auto& [name, row] : operators) {
    const auto sums = sums_of_operators.find(name);
    if (sums != sums_of_operators.end()) {
      const statistic_row exact = make_row(sums->second);
      row.count = exact.count;
      row.calls = 1.0;
      row.first_ns = exact.first_ns;
      row.mean_ns = exact.mean_ns + learned_since[name];
      row.min_ns = exact.min_ns;
      row.max_ns = exact.max_ns;
      row.p50_ns = exact.p50_ns;
      row.p90_ns = exact.p90_ns;
      row.mean_interval_ns = {exact.mean_interval_ns.lower + learned_since[name],
                              exact.mean_interval_ns.upper + learned_since[name]};
    } else {
      row.mean_ns = row.total_ns;
    }
    std::vector<std::string> unique;
    for (std::string& op : row.ops)
      if (std::find(unique.begin(), unique.end(), op) == unique.end()) unique.push_back(std::move(op));
    row.ops = std::move(unique);
    rates(row);
    result.by_operator.push_back(row);
  }
  for (auto& [type, row] : by_type) {
    const statistic_row calls = make_row(type_series[type]);
    row.name = row.type = type;
    if (type == to_string(event_kind::wait)) continue;
    row.first_ns = calls.first_ns;
    row.mean_ns = row.calls > 0.0 ? row.total_ns / row.calls : 0.0;
    row.p50_ns = calls.p50_ns;
    row.p90_ns = calls.p90_ns;
    row.mean_interval_ns = {calls.mean_interval_ns.lower + row.mean_ns - calls.mean_ns,
                            calls.mean_interval_ns.upper + row.mean_ns - calls.mean_ns};
    rates(row);
    result.by_type.push_back(row);
  }
  for (auto& [work, row] : by_work) {
    row.name = row.type = work;
    row.mean_ns = row.calls > 0.0 ? row.total_ns / row.calls : 0.0;
    rates(row);
    result.by_work.push_back(row);
  }
  rank_rows(result.by_kernel);
  rank_rows(result.by_other);
  rank_rows(result.by_operator);
  rank_rows(result.by_type);
  rank_rows(result.by_work);
}

}  // namespace dnnopt::profile

#endif  // DNNOPT_PROFILE_REPORT_REPORT_ROWS_HPP
