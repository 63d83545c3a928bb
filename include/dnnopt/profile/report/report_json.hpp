// Owns the report as JSON with the keys of the command line's contract, for use with nlohmann::json.
#ifndef DNNOPT_PROFILE_REPORT_REPORT_JSON_HPP
#define DNNOPT_PROFILE_REPORT_REPORT_JSON_HPP

#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include <dnnopt/profile/report/report.hpp>
#include <dnnopt/profile/report/roofline.hpp>

namespace dnnopt::profile {

/// Statistics of one row, in microseconds; an unknown interval of the mean is the range that was seen.
[[nodiscard]] inline nlohmann::json to_json(const statistic_row& row) {
  const bool known =
      row.mean_interval_ns.upper > row.mean_interval_ns.lower && std::isfinite(row.mean_interval_ns.upper);
  return {{"name", row.name},
          {"type", row.type},
          {"ops", row.ops},
          {"work", std::string(to_string(row.work))},
          {"count", row.count},
          {"calls", row.calls},
          {"first_us", row.first_ns * 1e-3},
          {"avg_us", row.mean_ns * 1e-3},
          {"mean_low_us", (known ? row.mean_interval_ns.lower : row.min_ns) * 1e-3},
          {"mean_high_us", (known ? row.mean_interval_ns.upper : row.max_ns) * 1e-3},
          {"min_us", row.min_ns * 1e-3},
          {"max_us", row.max_ns * 1e-3},
          {"p50_us", row.p50_ns * 1e-3},
          {"p90_us", row.p90_ns * 1e-3},
          {"total_us", row.total_ns * 1e-3},
          {"percent", row.share * 100.0},
          {"cumulative_percent", row.cumulative * 100.0},
          {"flops_per_second", row.flops_per_second},
          {"bytes_per_second", row.bytes_per_second}};
}

[[nodiscard]] inline nlohmann::json to_json(const clock_report& clock) {
  return {{"method", clock.method},
          {"offset_ns", clock.offset_ns},
          {"drift_ppm", clock.drift_ppm},
          {"residual_p50_ns", clock.residual_p50_ns},
          {"residual_p90_ns", clock.residual_p90_ns},
          {"pairs", clock.pairs},
          {"outliers", clock.outliers},
          {"violations", clock.violations},
          {"violations_as_stamped", clock.violations_as_stamped},
          {"moved_most_ns", clock.moved_most_ns}};
}

/// The roofline: ceilings, one row per kernel in the order of `kernel_rows`, and what all of them make of the ceilings.
/// `share` is of the ceiling named beside it and null where there is none.
[[nodiscard]] inline nlohmann::json to_json(const roofline& roof) {
  using nlohmann::json;
  json rows = json::array();
  for (const roofline_row& row : roof.rows) {
    const bool bounded = row.nearest != ceiling::none;
    rows.push_back({{"name", row.name},
                    {"type", row.type},
                    {"calls", row.calls},
                    {"flops", row.flops},
                    {"bytes", row.bytes},
                    {"us", row.time_ns * 1e-3},
                    {"flops_per_second", row.flops_per_second},
                    {"bytes_per_second", row.bytes_per_second},
                    {"least_us", row.least_ns * 1e-3},
                    {"share", bounded ? json(row.share) : json()},
                    {"ceiling", bounded ? json(std::string(to_string(row.nearest))) : json()}});
  }
  return {{"flops_per_second", roof.ceilings.flops_per_second},
          {"bytes_per_second", roof.ceilings.bandwidth()},
          {"ridge", roof.ceilings.ridge()},
          {"us", roof.time_ns * 1e-3},
          {"least_us", roof.least_ns * 1e-3},
          {"share", roof.share()},
          {"rows", std::move(rows)}};
}

/// The whole report: the contract's keys `e2e_ms kernels operators[] kernel_events[] clock{} dropped`, and beside them
/// the split of time, the other tables, and where ceilings were measured the roofline. `kernel_events` holds the
/// commands that `kernels` counts; transfers, waits and host operators are in `other_events`. Times are microseconds
/// from the origin, host clock.
[[nodiscard]] inline nlohmann::json to_json(const profile_report& report) {
  using nlohmann::json;
  const auto rows = [](const std::vector<statistic_row>& all) {
    json list = json::array();
    for (const statistic_row& row : all) list.push_back(to_json(row));
    return list;
  };
  const auto us = [&](std::int64_t at) { return static_cast<double>(at - report.origin_ns) * 1e-3; };
  json result;
  result["model"] = report.model;
  result["device"] = report.device;
  result["created"] = report.created;
  result["mode"] = std::string(to_string(report.mode));
  result["runs"] = report.runs;
  result["e2e_ms"] = report.e2e.mean_ns * 1e-6;
  result["e2e"] = to_json(report.e2e);
  result["kernels"] = report.kernels;
  result["arena_bytes"] = report.arena_bytes;
  result["arena_lower_bound_bytes"] = report.arena_lower_bound_bytes;
  result["intermediate_device_bytes"] = report.arena_allocated_bytes;
  result["operators"] = rows(report.by_operator);
  result["kernel_rows"] = rows(report.by_kernel);
  result["other_rows"] = rows(report.by_other);
  result["types"] = rows(report.by_type);
  result["work"] = rows(report.by_work);
  json kernels = json::array();
  json others = json::array();
  for (const kernel_event& event : report.events) {
    const launch_info& info = report.launches.at(event.launch);
    std::vector<std::string> ops;
    for (const operator_ref& op : info.ops) ops.push_back(op.name);
    json one = {{"run", event.run},
                {"name", info.name},
                {"ops", ops},
                {"queued_us", us(event.queued_ns)},
                {"submit_us", us(event.submit_ns)},
                {"start_us", us(event.start_ns)},
                {"end_us", us(event.end_ns)},
                {"gws", event.gws},
                {"lws", event.lws},
                {"bytes", event.bytes},
                {"flops", event.flops},
                {"kernel_us", event.duration_ns() * 1e-3},
                {"enqueue_begin_us", us(event.host_begin_ns)},
                {"enqueue_end_us", us(event.host_end_ns)},
                {"repeats", event.repeats}};
    if (!counts_as_kernel(event.kind)) one["kind"] = std::string(to_string(event.kind));
    (counts_as_kernel(event.kind) ? kernels : others).push_back(std::move(one));
  }
  result["kernel_events"] = std::move(kernels);
  result["other_events"] = std::move(others);
  const time_split& split = report.split;
  result["split_us"] = {{"e2e", split.e2e_ns * 1e-3},
                        {"gpu", split.gpu_ns * 1e-3},
                        {"copy", split.copy_ns * 1e-3},
                        {"host_operators", split.host_operator_ns * 1e-3},
                        {"enqueue", split.enqueue_ns * 1e-3},
                        {"wait", split.wait_ns * 1e-3},
                        {"unexplained", split.unexplained_ns * 1e-3},
                        {"enqueue_overlapped", split.enqueue_overlapped_ns * 1e-3}};
  result["clock"] = to_json(report.clock);
  result["clock"]["candidates"] = json::array();
  for (const clock_report& candidate : report.clock_candidates)
    result["clock"]["candidates"].push_back(to_json(candidate));
  result["dropped"] = report.dropped;
  result["discarded"] = report.discarded;
  result["event_cost_us"] = report.event_cost_ns * 1e-3;
  result["event_bias_us"] = report.bias.busy_ns * 1e-3;
  result["starved_event_bias_us"] = report.bias.starved_ns * 1e-3;
  result["deep_event_bias_us"] = report.bias.deep_ns * 1e-3;
  result["starved"] = report.starved;
  result["learned_starved_event_bias_us"] = report.waiting.at_usual_ns * 1e-3;
  result["learned_starved_slope"] = report.waiting.slope;
  result["learned_starved_samples"] = report.waiting_samples;
  result["arrival_measured"] = report.bias.arrival_ns.has_value();
  result["overhead"] = report.overhead;
  if (const roofline roof = roofline_of(report); roof.measured()) result["roofline"] = to_json(roof);
  return result;
}

}  // namespace dnnopt::profile

#endif  // DNNOPT_PROFILE_REPORT_REPORT_JSON_HPP
