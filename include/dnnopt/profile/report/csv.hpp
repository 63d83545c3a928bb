// Owns the profile's CSV: one row per event.
#ifndef DNNOPT_PROFILE_REPORT_CSV_HPP
#define DNNOPT_PROFILE_REPORT_CSV_HPP

#include <array>
#include <cstddef>
#include <cstdint>
#include <ostream>
#include <string>

#include <dnnopt/profile/events.hpp>
#include <dnnopt/profile/report/report.hpp>
#include <dnnopt/profile/report/text.hpp>

namespace dnnopt::profile {

/// First line of the CSV. Times are microseconds from the report's origin on the host clock; device_* are nanoseconds
/// as the device stamped them; `kernel_us` is the time of one command (the interval over `repeats`).
inline constexpr const char* csv_header =
    "run,kind,name,ops,work,queue,queued_us,submit_us,start_us,end_us,kernel_us,enqueue_begin_us,enqueue_end_us,"
    "device_start_ns,device_end_ns,gws,lws,bytes,flops,repeats,weight,layout,shapes,attributes\n";

/// "a x b x c" without spaces.
[[nodiscard]] inline std::string work_size_text(const std::array<std::uint64_t, 3>& size) {
  return std::to_string(size[0]) + "x" + std::to_string(size[1]) + "x" + std::to_string(size[2]);
}

/// One event as a line of the CSV; operators are joined by '+'.
[[nodiscard]] inline std::string csv_line(const kernel_event& event, const launch_info& info, std::int64_t origin_ns) {
  const auto us = [&](std::int64_t at) { return text::fixed(static_cast<double>(at - origin_ns) * 1e-3, 3); };
  std::string ops;
  for (const operator_ref& op : info.ops) {
    if (!ops.empty()) ops += '+';
    ops += op.name;
  }
  std::string line = std::to_string(event.run);
  for (const std::string& field : {std::string(to_string(event.kind)),
                                   info.name,
                                   ops,
                                   std::string(to_string(info.work)),
                                   std::to_string(event.queue),
                                   us(event.queued_ns),
                                   us(event.submit_ns),
                                   us(event.start_ns),
                                   us(event.end_ns),
                                   text::fixed(event.duration_ns() * 1e-3, 3),
                                   us(event.host_begin_ns),
                                   us(event.host_end_ns),
                                   std::to_string(event.device_start_ns),
                                   std::to_string(event.device_end_ns),
                                   work_size_text(event.gws),
                                   work_size_text(event.lws),
                                   std::to_string(event.bytes),
                                   std::to_string(event.flops),
                                   std::to_string(event.repeats),
                                   text::shortest(static_cast<double>(event.weight)),
                                   info.layout,
                                   info.shapes,
                                   info.attributes})
    line += "," + text::csv_field(field);
  return line + "\n";
}

/// Writes all kept events.
inline void write_csv(std::ostream& out, const profile_report& report) {
  out << csv_header;
  for (const kernel_event& event : report.events)
    out << csv_line(event, report.launches.at(event.launch), report.origin_ns);
}

/// Streams events as they finish, from the writer thread. The stream must outlive the observer.
class csv_observer final : public observer {
 public:
  explicit csv_observer(std::ostream& out, std::int64_t origin_ns) : out_(out), origin_ns_(origin_ns) {
    out_ << csv_header;
  }
  void on_kernel(const kernel_event& event, const launch_info& info) override {
    out_ << csv_line(event, info, origin_ns_);
  }
  void on_run(const run_event&) override { out_.flush(); }

 private:
  std::ostream& out_;
  std::int64_t origin_ns_;
};

}  // namespace dnnopt::profile

#endif  // DNNOPT_PROFILE_REPORT_CSV_HPP
