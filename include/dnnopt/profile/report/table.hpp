// Owns the profile's table for people.
#ifndef DNNOPT_PROFILE_REPORT_TABLE_HPP
#define DNNOPT_PROFILE_REPORT_TABLE_HPP

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dnnopt/profile/report/report.hpp>
#include <dnnopt/profile/report/text.hpp>

namespace dnnopt::profile {

/// What the table shows.
struct table_options {
  std::size_t rows = 40;  ///< of the operators and of the kernels; what is cut is summed up in a last row
  int name_width = 36;
};

/// What the short table shows.
struct summary_options {
  std::size_t rows = 20;  ///< at most; what is cut is summed up in a last row
  double share = 0.95;    ///< of the kernels' time, after which rows are cut
  std::size_t name_width = 34;
};

namespace detail {

inline std::string microseconds(double nanoseconds) { return text::fixed(nanoseconds * 1e-3, 2); }

inline void append_rows(std::string& out, std::string_view title, const std::vector<statistic_row>& rows,
                        const table_options& options) {
  if (rows.empty()) return;
  const int wide = -options.name_width;
  out += "\n" + std::string(title) + "\n";
  out += text::padded("name", wide) + text::padded(" type", -18) + text::padded("count", 8) +
         text::padded("first us", 11) + text::padded("avg us", 11) + text::padded("+-", 10) +
         text::padded("min us", 11) + text::padded("p50 us", 11) + text::padded("p90 us", 11) +
         text::padded("max us", 11) + text::padded("%", 7) + text::padded("cdf%", 7) + text::padded("FLOP/s", 9) +
         text::padded("B/s", 9) + "  operators\n";
  std::vector<std::string> names;
  for (const statistic_row& row : rows) names.push_back(row.name);
  names = text::shortened(names, static_cast<std::size_t>(options.name_width));
  double cut_ns = 0.0;
  std::size_t cut = 0;
  for (const statistic_row& row : rows) {
    if (static_cast<std::size_t>(&row - rows.data()) >= options.rows) {
      cut_ns += row.share;
      ++cut;
      continue;
    }
    const double half = (row.mean_interval_ns.upper - row.mean_interval_ns.lower) / 2.0;
    const auto known = [](double ns) { return ns > 0.0 ? microseconds(ns) : std::string("-"); };
    out += text::padded(names[static_cast<std::size_t>(&row - rows.data())], wide) + text::padded(" " + row.type, -18) +
           text::padded(std::to_string(row.count), 8) + text::padded(known(row.first_ns), 11) +
           text::padded(microseconds(row.mean_ns), 11) + text::padded(half > 0.0 ? " " + microseconds(half) : "-", 10) +
           text::padded(microseconds(row.min_ns), 11) + text::padded(known(row.p50_ns), 11) +
           text::padded(known(row.p90_ns), 11) + text::padded(microseconds(row.max_ns), 11) +
           text::padded(text::fixed(row.share * 100.0, 1), 7) +
           text::padded(text::fixed(row.cumulative * 100.0, 1), 7) +
           text::padded(text::scaled(row.flops_per_second), 9) + text::padded(text::scaled(row.bytes_per_second), 9);
    if (!row.ops.empty() && !(row.ops.size() == 1 && row.ops.front() == row.name))
      out += "  " + text::joined(row.ops, " + ");
    out += '\n';
  }
  if (cut > 0)
    out += text::padded("(" + std::to_string(cut) + " more)", wide) + text::padded("", 18 + 8 + 11 * 6 + 10) +
           text::padded(text::fixed(cut_ns * 100.0, 1), 7) + "\n";
}

/// The first lines of both forms of the report: what was profiled, and how long an inference took.
inline std::string headline(const profile_report& report) {
  std::string out = "profile";
  if (!report.model.empty()) out += " of " + report.model;
  if (!report.device.empty()) out += " on " + report.device;
  out += ", mode " + std::string(to_string(report.mode)) + ", " + std::to_string(report.runs) + " inferences of " +
         std::to_string(report.kernels) + " kernels\n";
  return out + "end to end us: first " + microseconds(report.e2e.first_ns) + "  avg " +
         microseconds(report.e2e.mean_ns) + "  min " + microseconds(report.e2e.min_ns) + "  p50 " +
         microseconds(report.e2e.p50_ns) + "  p90 " + microseconds(report.e2e.p90_ns) + "  max " +
         microseconds(report.e2e.max_ns) + "\n";
}

/// The parts of an inference by name; their sum is its time.
inline std::vector<std::pair<const char*, double>> parts_of(const time_split& split) {
  return {{"GPU", split.gpu_ns},         {"copy", split.copy_ns}, {"host operators", split.host_operator_ns},
          {"enqueue", split.enqueue_ns}, {"wait", split.wait_ns}, {"unexplained", split.unexplained_ns}};
}

}  // namespace detail

/// The report on one screen: end to end, where the time goes, and the kernels that take longest.
[[nodiscard]] inline std::string to_summary(const profile_report& report, const summary_options& options = {}) {
  std::string out = detail::headline(report);
  if (report.split.runs > 0 && report.mode == profile_mode::full) {
    out += "where the time goes:";
    for (const auto& [name, ns] : detail::parts_of(report.split))
      out += (out.back() == ':' ? " " : ", ") + std::string(name) + " " +
             text::fixed(report.split.e2e_ns > 0.0 ? 100.0 * ns / report.split.e2e_ns : 0.0, 1) + "%";
    out += "\n";
  }
  std::vector<std::string> names;
  for (const statistic_row& row : report.by_kernel) names.push_back(row.name);
  names = text::shortened(names, options.name_width);
  const int wide = -static_cast<int>(options.name_width);
  const auto line = [&](const std::string& name, const std::string& type, const std::string& mean,
                        const std::string& half, const std::string& share, const std::string& sum,
                        const std::string& flops, const std::string& bytes) {
    out += text::padded(name, wide) + text::padded(" " + type, -18) + text::padded(mean, 10) + text::padded(half, 8) +
           text::padded(share, 6) + text::padded(sum, 7) + text::padded(flops, 8) + text::padded(bytes, 8) + "\n";
  };
  out += "\n";
  line("kernel", "type", "avg us", "+-", "%", "cdf%", "FLOP/s", "B/s");
  double before = 0.0;
  std::size_t shown = 0;
  for (const statistic_row& row : report.by_kernel) {
    if (shown == options.rows || (shown > 0 && before >= options.share)) break;
    const double half = (row.mean_interval_ns.upper - row.mean_interval_ns.lower) / 2.0;
    line(names[shown++], row.type, detail::microseconds(row.mean_ns), half > 0.0 ? detail::microseconds(half) : "-",
         text::fixed(row.share * 100.0, 1), text::fixed(row.cumulative * 100.0, 1), text::scaled(row.flops_per_second),
         text::scaled(row.bytes_per_second));
    before = row.cumulative;
  }
  if (shown < report.by_kernel.size())
    line("(" + std::to_string(report.by_kernel.size() - shown) + " more)", "", "", "",
         text::fixed((1.0 - before) * 100.0, 1), "100.0", "", "");
  if (report.dropped > 0) out += std::to_string(report.dropped) + " events were dropped\n";
  return out;
}

/// The whole report as text: end to end with its split, operators, kernels, types, kinds of work, and the clock.
[[nodiscard]] inline std::string to_table(const profile_report& report, const table_options& options = {}) {
  using detail::microseconds;
  std::string out = detail::headline(report);
  if (report.split.runs > 0 && report.mode == profile_mode::full) {
    const time_split& split = report.split;
    out += "\nwhere the time goes (mean of " + std::to_string(split.runs) + " inferences)\n";
    auto parts = detail::parts_of(split);
    parts.emplace_back("end to end", split.e2e_ns);
    for (const auto& [name, ns] : parts)
      out += text::padded(name, -16) + text::padded(microseconds(ns), 12) + " us" +
             text::padded(text::fixed(split.e2e_ns > 0.0 ? 100.0 * ns / split.e2e_ns : 0.0, 2), 8) + "%\n";
    out +=
        "(enqueue calls in all, those beside running kernels included: " + microseconds(split.enqueue_overlapped_ns) +
        " us)\n";
  }
  detail::append_rows(out, "by operator (a fused kernel counts for its anchor)", report.by_operator, options);
  detail::append_rows(out, "by kernel", report.by_kernel, options);
  detail::append_rows(out, "transfers, and calls that wait (whole calls, also while kernels run)", report.by_other,
                      options);
  detail::append_rows(out, "by type", report.by_type, options);
  detail::append_rows(out, "by kind of work", report.by_work, options);

  out += "\nclock: " + report.clock.method + ", offset " + text::fixed(report.clock.offset_ns, 0) + " ns, drift " +
         text::fixed(report.clock.drift_ppm, 3) + " ppm, residual p50 " + text::fixed(report.clock.residual_p50_ns, 0) +
         " ns, p90 " + text::fixed(report.clock.residual_p90_ns, 0) + " ns, " + std::to_string(report.clock.outliers) +
         " outliers of " + std::to_string(report.clock.pairs) + " pairs, " + std::to_string(report.clock.violations) +
         " order violations";
  if (report.clock.violations > 0)
    out += " (" + std::to_string(report.clock.violations_as_stamped) + " as the device stamped them, moved by up to " +
           microseconds(static_cast<double>(report.clock.moved_most_ns)) + " us)";
  out += "\n";
  out += "events: " + std::to_string(report.events.size()) + " kept, " + std::to_string(report.discarded) +
         " older ones let go, " + std::to_string(report.dropped) + " dropped\n";
  if (report.mode == profile_mode::monitor)
    out +=
        "what lies far from a kernel's usual time counts for all kernels alike in these means where samples do not "
        "show that they differ in it, and times count less of kernels that the device had to wait for, or whose "
        "enqueue call was interrupted\n";
  if (report.bias.busy_ns != 0.0)
    out += "kernel times are events' START to END less the event's own: " + microseconds(report.bias.busy_ns) +
           " us, " + microseconds(report.bias.starved_ns) + " us of the " + text::fixed(report.starved * 100.0, 1) +
           "% that the device waited for, more or less by when their enqueue calls returned" +
           (report.waiting_samples > 0
                ? " (in this profile, by " + std::to_string(report.waiting_samples) +
                      " kernels that were in time at other times, " + microseconds(report.waiting.at_usual_ns) +
                      " us and " + text::fixed(report.waiting.slope, 2) + " us for each that a call is later)"
                : "") +
           (report.bias.starved_ns > report.bias.busy_ns && !report.bias.arrival_ns
                ? " (against what is usual in a stream: the host was too uneven to measure it)"
                : "") +
           (report.bias.depth > 0
                ? ", " + microseconds(report.bias.deep_ns) + " us of the " + text::fixed(report.deep * 100.0, 1) +
                      "% with " + std::to_string(report.bias.depth) + " commands or more behind them"
                : "") +
           "\n";
  if (report.event_cost_ns > 0.0)
    out += "timing one command costs about " + microseconds(report.event_cost_ns) + " us" +
           (report.overhead > 0.0 ? ", monitoring about " + text::fixed(report.overhead * 100.0, 3) + "% of the time"
                                  : "") +
           "\n";
  return out;
}

}  // namespace dnnopt::profile

#endif  // DNNOPT_PROFILE_REPORT_TABLE_HPP
