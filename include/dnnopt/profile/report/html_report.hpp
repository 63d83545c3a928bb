// Owns the self-contained HTML report: the profile's data beside the page that draws it.
#ifndef DNNOPT_PROFILE_REPORT_HTML_REPORT_HPP
#define DNNOPT_PROFILE_REPORT_HTML_REPORT_HPP

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <dnnopt/profile/events.hpp>
#include <dnnopt/profile/report/csv.hpp>
#include <dnnopt/profile/report/html_page.hpp>
#include <dnnopt/profile/report/report.hpp>
#include <dnnopt/profile/report/text.hpp>

namespace dnnopt::profile {

/// What the page holds.
struct html_options {
  std::size_t events = 20000;  ///< newest events on the timeline; a page of a few megabytes opens on a phone
};

namespace detail {

/// JSON inside <script>: "</" must not appear, nor may a comment or a script open.
inline std::string script_safe(std::string json) {
  std::string result;
  result.reserve(json.size());
  for (const char c : json) {
    if (c == '<')
      result += "\\u003c";
    else
      result += c;
  }
  return result;
}

inline std::string html_text(std::string_view raw) {
  std::string result;
  for (const char c : raw) {
    if (c == '<')
      result += "&lt;";
    else if (c == '&')
      result += "&amp;";
    else
      result += c;
  }
  return result;
}

/// Builds JSON text by hand: a page of twenty thousand events is written in one pass.
class json_text {
 public:
  json_text& raw(std::string_view part) {
    text_ += part;
    return *this;
  }
  json_text& key(std::string_view name) {
    separate();
    text_ += text::json_quoted(name) + ":";
    fresh_ = true;
    return *this;
  }
  json_text& value(double number) { return part(text::shortest(number)); }
  json_text& count(std::uint64_t number) { return part(std::to_string(number)); }
  json_text& value(std::string_view word) { return part(text::json_quoted(word)); }
  /// Microseconds with three decimals.
  json_text& us(double nanoseconds) { return part(text::fixed(nanoseconds * 1e-3, 3)); }
  json_text& open(char bracket) {
    separate();
    text_ += bracket;
    fresh_ = true;
    return *this;
  }
  json_text& close(char bracket) {
    text_ += bracket;
    fresh_ = false;
    return *this;
  }
  [[nodiscard]] const std::string& str() const noexcept { return text_; }

 private:
  json_text& part(std::string_view piece) {
    separate();
    text_ += piece;
    return *this;
  }
  void separate() {
    if (!fresh_) text_ += ',';
    fresh_ = false;
  }
  std::string text_;
  bool fresh_ = true;
};

inline void add_rows(json_text& out, std::string_view name, const std::vector<statistic_row>& rows) {
  out.key(name).open('[');
  for (const statistic_row& row : rows) {
    out.open('{').key("name").value(row.name).key("type").value(row.type).key("count").count(row.count);
    out.key("first").us(row.first_ns).key("mean").us(row.mean_ns).key("min").us(row.min_ns).key("max").us(row.max_ns);
    out.key("p50").us(row.p50_ns).key("p90").us(row.p90_ns).key("total").us(row.total_ns).key("share").value(row.share);
    out.key("flops_s").value(row.flops_per_second).key("bytes_s").value(row.bytes_per_second);
    out.key("flops").value(row.flops).key("bytes").value(row.bytes).key("ops").open('[');
    for (const std::string& op : row.ops) out.value(op);
    out.close(']').close('}');
  }
  out.close(']');
}

inline void add_clock(json_text& out, const clock_report& clock) {
  out.open('{')
      .key("method")
      .value(clock.method)
      .key("offset")
      .value(clock.offset_ns)
      .key("drift")
      .value(clock.drift_ppm);
  out.key("p50").value(clock.residual_p50_ns).key("p90").value(clock.residual_p90_ns).key("pairs").count(clock.pairs);
  out.key("outliers").count(clock.outliers).key("violations").count(clock.violations).close('}');
}

/// One letter per kind, for the page's script.
[[nodiscard]] constexpr std::string_view kind_letter(event_kind kind) noexcept {
  switch (kind) {
    case event_kind::kernel:
      return "k";
    case event_kind::host_operator:
      return "h";
    case event_kind::wait:
      return "w";
    case event_kind::copy:
    case event_kind::fill:
      return "c";
    case event_kind::upload:
    case event_kind::download:
    case event_kind::map:
      return "t";
  }
  return "k";
}

/// What the profile is of, and its end-to-end times.
inline void add_summary(json_text& out, const profile_report& report) {
  out.key("model").value(report.model).key("device").value(report.device).key("created").value(report.created);
  out.key("mode").value(to_string(report.mode)).key("runs_total").count(report.runs);
  out.key("kernels").count(report.kernels).key("dropped").count(report.dropped).key("overhead").value(report.overhead);
  out.key("e2e").open('{').key("mean").us(report.e2e.mean_ns).key("p50").us(report.e2e.p50_ns);
  out.key("p90").us(report.e2e.p90_ns).key("first").us(report.e2e.first_ns).close('}');
}

/// The parts of the end-to-end time, whose sum is told where every command was timed.
inline void add_split(json_text& out, const profile_report& report) {
  const time_split& split = report.split;
  const bool whole = report.mode == profile_mode::full;
  out.key("split").open('{').key("e2e").us(whole ? split.e2e_ns : 0.0);
  out.key("gpu").us(split.gpu_ns).key("copy").us(split.copy_ns).key("host").us(split.host_operator_ns);
  out.key("enqueue").us(split.enqueue_ns).key("wait").us(split.wait_ns);
  out.key("unexplained").us(split.unexplained_ns).close('}');
}

/// What stays the same each time a launch runs; events refer to launches by number.
/// @pre Events are of launches that the report has.
inline void add_launches(json_text& out, const profile_report& report) {
  std::vector<event_kind> kinds(report.launches.size(), event_kind::kernel);
  for (const kernel_event& event : report.events) kinds.at(event.launch) = event.kind;
  out.key("launches").open('[');
  for (std::size_t i = 0; i < report.launches.size(); ++i) {
    const launch_info& launch = report.launches[i];
    out.open('{').key("name").value(launch.name).key("anchor").count(launch.anchor);
    out.key("kind").value(to_string(kinds[i])).key("shapes").value(launch.shapes).key("ops").open('[');
    for (const operator_ref& op : launch.ops) out.open('[').value(op.name).value(op.type).close(']');
    out.close(']').close('}');
  }
  out.close(']');
}

/// The newest events, and the runs since the first of them.
inline void add_timeline(json_text& out, const profile_report& report, const html_options& options) {
  const auto at = [&](std::int64_t ns) { return static_cast<double>(ns - report.origin_ns); };
  out.key("events").open('[');
  const std::size_t skipped = report.events.size() > options.events ? report.events.size() - options.events : 0;
  for (std::size_t i = skipped; i < report.events.size(); ++i) {
    const kernel_event& e = report.events[i];
    out.raw(i == skipped ? "\n" : "").open('[').count(e.run).count(e.launch).value(kind_letter(e.kind)).count(e.queue);
    for (const std::int64_t ns : {e.queued_ns, e.submit_ns, e.start_ns, e.end_ns, e.host_begin_ns, e.host_end_ns})
      out.us(at(ns));
    out.value(work_size_text(e.gws)).value(work_size_text(e.lws)).close(']');
  }
  out.close(']').key("runs").open('[');
  const std::int64_t shown_from =
      skipped < report.events.size() ? report.events[skipped].host_begin_ns : report.origin_ns;
  for (const run_event& run : report.run_events)
    if (run.end_ns >= shown_from) out.open('[').count(run.run).us(at(run.begin_ns)).us(at(run.end_ns)).close(']');
  out.close(']');
}

/// The clock that the times are on, and those that were tried beside it.
inline void add_clocks(json_text& out, const profile_report& report) {
  out.key("clock");
  add_clock(out, report.clock);
  out.key("clock_candidates").open('[');
  for (const clock_report& candidate : report.clock_candidates) add_clock(out, candidate);
  out.close(']');
}

/// The memory plan's blocks, its size and its bound.
inline void add_memory(json_text& out, const profile_report& report) {
  out.key("memory").open('[');
  for (const memory_block& block : report.memory) {
    out.open('[').value(block.name).count(block.first_step).count(block.last_step);
    out.count(block.offset).count(block.size).close(']');
  }
  out.close(']').key("arena").count(report.arena_bytes).key("bound").count(report.arena_lower_bound_bytes);
}

/// All that the page draws as one JSON object, safe inside <script>.
inline std::string html_data(const profile_report& report, const html_options& options) {
  json_text out;
  out.open('{');
  add_summary(out, report);
  add_split(out, report);
  add_rows(out, "operators", report.by_operator);
  add_rows(out, "kernel_rows", report.by_kernel);
  add_rows(out, "types", report.by_type);
  add_launches(out, report);
  add_timeline(out, report, options);
  add_clocks(out, report);
  add_memory(out, report);
  out.key("ceilings").open('{');
  out.key("flops").value(report.ceilings.flops_per_second);
  out.key("bytes").value(report.ceilings.bandwidth());
  out.close('}').close('}');
  return script_safe(out.str());
}

}  // namespace detail

/// The report as one HTML file: timeline with zoom, bars per operator and type, roofline, memory plan, fused kernels,
/// tables. It needs no network and no other file. O(events).
[[nodiscard]] inline std::string to_html(const profile_report& report, const html_options& options = {}) {
  std::string page =
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
      "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\"><title>";
  page += detail::html_text(report.model.empty() ? std::string("profile") : "profile of " + report.model);
  page += "</title><style>";
  page += html::style;
  page += "</style></head><body>";
  page += html::body;
  page += "<script type=\"application/json\" id=\"data\">";
  page += detail::html_data(report, options);
  page += "</script>\n<script>";
  page += html::script;
  page += "</script></body></html>\n";
  return page;
}

}  // namespace dnnopt::profile

#endif  // DNNOPT_PROFILE_REPORT_HTML_REPORT_HPP
