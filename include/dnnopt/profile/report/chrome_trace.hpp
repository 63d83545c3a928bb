// Owns the Chrome JSON trace: host and device tracks, with arrows from each enqueue call to its kernel.
#ifndef DNNOPT_PROFILE_REPORT_CHROME_TRACE_HPP
#define DNNOPT_PROFILE_REPORT_CHROME_TRACE_HPP

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <ostream>
#include <string>
#include <string_view>

#include <dnnopt/profile/events.hpp>
#include <dnnopt/profile/report/csv.hpp>
#include <dnnopt/profile/report/report.hpp>
#include <dnnopt/profile/report/text.hpp>

namespace dnnopt::profile {

/// Writes the report as Chrome trace JSON (chrome://tracing, Perfetto's legacy importer). Complete events of one track
/// must nest, so inferences, host calls, waiting commands and running commands have tracks of their own, and waiting
/// commands, which overlap, are asynchronous events.
inline void write_chrome_trace(std::ostream& out, const profile_report& report) {
  constexpr int host = 1, device = 2;
  constexpr int inferences = 1, calls = 2;
  const auto us = [&](std::int64_t at) { return text::fixed(static_cast<double>(at - report.origin_ns) * 1e-3, 3); };
  const auto span = [](std::int64_t from, std::int64_t to) {
    return text::fixed(static_cast<double>(to - from) * 1e-3, 3);
  };
  out << "{\"displayTimeUnit\":\"ns\",\"otherData\":{\"model\":" << text::json_quoted(report.model)
      << ",\"device\":" << text::json_quoted(report.device) << ",\"clock\":" << text::json_quoted(report.clock.method)
      << "},\"traceEvents\":[\n";
  const auto meta = [&](std::string_view what, int process, int thread, std::string_view name, bool first = false) {
    out << (first ? "" : ",\n") << "{\"ph\":\"M\",\"name\":\"" << what << "\",\"pid\":" << process
        << ",\"tid\":" << thread << ",\"args\":{\"name\":" << text::json_quoted(name) << "}}";
  };
  meta("process_name", host, 0, "host", true);
  meta("thread_name", host, inferences, "inferences");
  meta("thread_name", host, calls, "calls");
  meta("process_name", device, 0, report.device.empty() ? "device" : report.device);
  std::map<int, bool> queues;
  for (const kernel_event& event : report.events)
    if (has_device_stamps(event.kind)) queues[event.queue] = true;
  for (const auto& [queue, used] : queues) {
    meta("thread_name", device, queue * 2 + 1, "queue " + std::to_string(queue) + " running");
    meta("thread_name", device, queue * 2 + 2, "queue " + std::to_string(queue) + " waiting");
  }
  for (const run_event& run : report.run_events) {
    if (run.begin_ns < report.origin_ns) continue;
    out << ",\n{\"ph\":\"X\",\"cat\":\"run\",\"name\":\"inference " << run.run << "\",\"pid\":" << host
        << ",\"tid\":" << inferences << ",\"ts\":" << us(run.begin_ns) << ",\"dur\":" << span(run.begin_ns, run.end_ns)
        << "}";
  }
  std::size_t id = 0;
  for (const kernel_event& event : report.events) {
    ++id;
    const launch_info& info = report.launches.at(event.launch);
    const std::string name = text::json_quoted(info.name);
    std::string ops;
    for (const operator_ref& op : info.ops) ops += (ops.empty() ? "" : ",") + text::json_quoted(op.name);
    const bool on_device = has_device_stamps(event.kind);
    out << ",\n{\"ph\":\"X\",\"cat\":\"" << (on_device ? "enqueue" : to_string(event.kind))
        << "\",\"name\":" << (on_device ? text::json_quoted("enqueue " + info.name) : name) << ",\"pid\":" << host
        << ",\"tid\":" << calls << ",\"ts\":" << us(event.host_begin_ns)
        << ",\"dur\":" << span(event.host_begin_ns, event.host_end_ns) << ",\"args\":{\"run\":" << event.run
        << ",\"ops\":[" << ops << "]}}";
    if (!on_device) continue;
    const int running = event.queue * 2 + 1;
    out << ",\n{\"ph\":\"X\",\"cat\":\"" << to_string(event.kind) << "\",\"name\":" << name << ",\"pid\":" << device
        << ",\"tid\":" << running << ",\"ts\":" << us(event.start_ns)
        << ",\"dur\":" << span(event.start_ns, event.end_ns) << ",\"args\":{\"run\":" << event.run << ",\"ops\":["
        << ops << "],\"gws\":\"" << work_size_text(event.gws) << "\",\"lws\":\"" << work_size_text(event.lws)
        << "\",\"bytes\":" << event.bytes << ",\"flops\":" << event.flops << ",\"queued_us\":" << us(event.queued_ns)
        << ",\"submit_us\":" << us(event.submit_ns) << "}}";
    for (const char phase : {'b', 'e'})
      out << ",\n{\"ph\":\"" << phase << "\",\"cat\":\"waiting\",\"name\":" << name << ",\"id\":" << id
          << ",\"pid\":" << device << ",\"tid\":" << running + 1
          << ",\"ts\":" << us(phase == 'b' ? event.queued_ns : event.start_ns) << "}";
    out << ",\n{\"ph\":\"s\",\"cat\":\"launch\",\"name\":\"launch\",\"id\":" << id << ",\"pid\":" << host
        << ",\"tid\":" << calls << ",\"ts\":" << us(event.host_begin_ns) << "}";
    out << ",\n{\"ph\":\"f\",\"bp\":\"e\",\"cat\":\"launch\",\"name\":\"launch\",\"id\":" << id << ",\"pid\":" << device
        << ",\"tid\":" << running << ",\"ts\":" << us(event.start_ns) << "}";
  }
  out << "\n]}\n";
}

}  // namespace dnnopt::profile

#endif  // DNNOPT_PROFILE_REPORT_CHROME_TRACE_HPP
