// Owns the rows of a report: kernels, operators, types and kinds of work, of what was recorded of each launch.
#ifndef DNNOPT_PROFILE_REPORT_REPORT_ROWS_HPP
#define DNNOPT_PROFILE_REPORT_REPORT_ROWS_HPP

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <deque>
#include <map>
#include <optional>
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

/// In monitor mode the pooled mean of each kernel that has samples enough; nothing of other launches.
[[nodiscard]] inline std::vector<std::optional<pooled_mean>> pooled_by_launch(
    profile_mode mode, const std::deque<recorded_launch>& launches) {
  std::vector<std::optional<pooled_mean>> means(launches.size());
  // A sample's few inferences: full mode has enough of them for each kernel's own mean.
  if (mode != profile_mode::monitor) return means;
  std::vector<const series*> sampled;
  std::vector<std::size_t> launch_of;
  for (std::size_t i = 0; i < launches.size(); ++i)
    if (counts_as_kernel(launches[i].kind) && launches[i].durations.count() >= least_pooled_samples) {
      sampled.push_back(&launches[i].certain);
      launch_of.push_back(i);
    }
  const std::vector<pooled_mean> pooled = pooled_means(sampled);
  for (std::size_t k = 0; k < launch_of.size(); ++k) means[launch_of[k]] = pooled[k];
  return means;
}

/// Moves a row's mean by `correction_ns`, as far as it stays among the samples. Gives the nanoseconds that it moved.
inline double move_mean(statistic_row& row, double correction_ns) {
  const double right = row.mean_ns + correction_ns;
  const double moved = std::clamp(right, row.min_ns, row.max_ns) - row.mean_ns;
  row.mean_ns += moved;
  row.mean_interval_ns.lower += moved;
  row.mean_interval_ns.upper += moved;
  return moved;
}

/// Sets what a row says of its launch besides the times of a call.
/// @pre The row's mean is final.
inline void describe_launch(statistic_row& row, const recorded_launch& launch, double runs) {
  row.name = launch.info.name;
  row.type = launch.info.ops.empty() ? std::string(to_string(launch.kind)) : launch.info.ops[launch.info.anchor].type;
  for (const operator_ref& op : launch.info.ops) row.ops.push_back(op.name);
  row.work = launch.info.work;
  row.calls = calls_per_run(launch.durations, runs);
  row.total_ns = row.mean_ns * row.calls;
  row.flops = launch.flops_and_bytes[0].mean();
  row.bytes = launch.flops_and_bytes[1].mean();
}

/// Sets the rates of a row whose operations and bytes take `nanoseconds`.
inline void set_rates(statistic_row& row, double nanoseconds) noexcept {
  row.flops_per_second = row.flops / nanoseconds * 1e9;
  row.bytes_per_second = row.bytes / nanoseconds * 1e9;
}

/// Texts in their order, each once.
[[nodiscard]] inline std::vector<std::string> without_repeats(std::vector<std::string> texts) {
  std::vector<std::string> unique;
  for (std::string& text : texts)
    if (std::find(unique.begin(), unique.end(), text) == unique.end()) unique.push_back(std::move(text));
  return unique;
}

/// Sums of launches' rows by operator, type and kind of work.
class row_sums {
 public:
  /// Adds a launch's row, whose mean has moved by `moved_ns` since its samples came.
  /// @pre The row has samples and no rates.
  void add(const recorded_launch& launch, const statistic_row& row, double moved_ns) {
    if (launch.kind != event_kind::wait) add_row(by_work_[std::string(to_string(row.work))], row);
    by_type_[row.type].work = row.work;
    add_row(by_type_[row.type], row);
    type_series_[row.type].merge(launch.durations);
    if (!launch.info.ops.empty()) add_to_operator(launch.info.ops[launch.info.anchor].name, row, moved_ns);
  }

  /// Adds the operators to `rows`; those that `sums_of_operators` has with the times of their inferences as a whole.
  /// @pre They were not asked for before.
  void take_operators(std::vector<statistic_row>& rows, const std::map<std::string, series>& sums_of_operators) {
    for (auto& [name, row] : operators_) {
      const auto sums = sums_of_operators.find(name);
      if (sums != sums_of_operators.end())
        take_inferences(row, make_row(sums->second), moved_[name]);
      else
        row.mean_ns = row.total_ns;
      row.ops = without_repeats(std::move(row.ops));
      set_rates_of_sum(row);
      rows.push_back(row);
    }
  }

  /// Adds the types but the host's waiting to `rows`.
  void take_types(std::vector<statistic_row>& rows) {
    for (auto& [type, row] : by_type_) {
      const statistic_row calls = make_row(type_series_[type]);
      row.name = row.type = type;
      if (type == to_string(event_kind::wait)) continue;
      row.first_ns = calls.first_ns;
      row.mean_ns = row.calls > 0.0 ? row.total_ns / row.calls : 0.0;
      row.p50_ns = calls.p50_ns;
      row.p90_ns = calls.p90_ns;
      row.mean_interval_ns = {calls.mean_interval_ns.lower + row.mean_ns - calls.mean_ns,
                              calls.mean_interval_ns.upper + row.mean_ns - calls.mean_ns};
      set_rates_of_sum(row);
      rows.push_back(row);
    }
  }

  /// Adds the kinds of work to `rows`.
  void take_work(std::vector<statistic_row>& rows) {
    for (auto& [work, row] : by_work_) {
      row.name = row.type = work;
      row.mean_ns = row.calls > 0.0 ? row.total_ns / row.calls : 0.0;
      set_rates_of_sum(row);
      rows.push_back(row);
    }
  }

 private:
  /// Adds a launch's row to a sum. Operations and bytes of the row are those of a call, of the sum of an inference.
  static void add_row(statistic_row& sum, const statistic_row& row) {
    sum.count += row.count;
    sum.calls += row.calls;
    sum.total_ns += row.total_ns;
    sum.flops += row.flops * row.calls;
    sum.bytes += row.bytes * row.calls;
    sum.min_ns = sum.count == row.count ? row.min_ns : std::min(sum.min_ns, row.min_ns);
    sum.max_ns = std::max(sum.max_ns, row.max_ns);
  }

  /// Adds a launch's row to its operator, which keeps the times of a call while it has that launch alone.
  void add_to_operator(const std::string& name, const statistic_row& row, double moved_ns) {
    moved_[name] += moved_ns * row.calls;
    statistic_row& sum = operators_[name];
    if (sum.count == 0) {
      sum = row;
      sum.flops = row.flops * row.calls;
      sum.bytes = row.bytes * row.calls;
    } else {
      add_row(sum, row);
      sum.first_ns = sum.p50_ns = sum.p90_ns = 0.0;
      sum.ops.insert(sum.ops.end(), row.ops.begin(), row.ops.end());
    }
    sum.name = name;
    sum.type = row.type;
  }

  /// Gives an operator the times of its whole inferences, each `moved_ns` longer than was known when they ended.
  static void take_inferences(statistic_row& row, const statistic_row& exact, double moved_ns) {
    row.count = exact.count;
    row.calls = 1.0;
    row.first_ns = exact.first_ns;
    row.mean_ns = exact.mean_ns + moved_ns;
    row.min_ns = exact.min_ns;
    row.max_ns = exact.max_ns;
    row.p50_ns = exact.p50_ns;
    row.p90_ns = exact.p90_ns;
    row.mean_interval_ns = {exact.mean_interval_ns.lower + moved_ns, exact.mean_interval_ns.upper + moved_ns};
  }

  /// Sets the rates of a sum from its time per inference; none where it has no time.
  static void set_rates_of_sum(statistic_row& row) noexcept {
    if (row.total_ns <= 0.0) return;
    set_rates(row, row.total_ns);
  }

  std::map<std::string, statistic_row> by_type_;
  std::map<std::string, statistic_row> by_work_;
  std::map<std::string, statistic_row> operators_;
  std::map<std::string, series> type_series_;
  std::map<std::string, double> moved_;  // by operator, per inference
};

}  // namespace detail

/// Fills a report's rows. `sums_of_operators` has, for operators whose inferences were seen as a whole, the sums of
/// their kernels' times; `waiting` puts means right by what was learned after their samples came.
/// @pre `result` has mode and runs. O(launches * samples' bins).
inline void add_rows(profile_report& result, const std::deque<recorded_launch>& launches,
                     const std::map<std::string, series>& sums_of_operators, const waiting_fit& waiting) {
  const double runs = std::max<double>(1.0, static_cast<double>(result.runs));
  const std::vector<std::optional<pooled_mean>> pooled = detail::pooled_by_launch(result.mode, launches);
  detail::row_sums sums;
  for (std::size_t i = 0; i < launches.size(); ++i) {
    const recorded_launch& launch = launches[i];
    result.launches.push_back(launch.info);
    if (launch.durations.count() == 0) continue;
    statistic_row row = make_row(launch.durations);
    if (pooled[i].has_value()) {
      row.mean_ns = pooled[i]->mean;
      row.mean_interval_ns = pooled[i]->range;
    }
    // What was not known yet of waiting when its samples came.
    const series& counted = result.mode == profile_mode::monitor ? launch.certain : launch.durations;
    const double moved = detail::move_mean(row, waiting.correction(i, counted.weight()));
    detail::describe_launch(row, launch, runs);
    sums.add(launch, row, moved);
    if (row.mean_ns > 0.0) detail::set_rates(row, row.mean_ns);
    (counts_as_kernel(launch.kind) || launch.kind == event_kind::host_operator ? result.by_kernel : result.by_other)
        .push_back(std::move(row));
  }
  sums.take_operators(result.by_operator, sums_of_operators);
  sums.take_types(result.by_type);
  sums.take_work(result.by_work);
  rank_rows(result.by_kernel);
  rank_rows(result.by_other);
  rank_rows(result.by_operator);
  rank_rows(result.by_type);
  rank_rows(result.by_work);
}

}  // namespace dnnopt::profile

#endif  // DNNOPT_PROFILE_REPORT_REPORT_ROWS_HPP
