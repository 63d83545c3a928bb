// Owns the Perfetto protobuf trace: host tracks on the host clock, device tracks in a clock domain of their own, and
// flows.
#ifndef DNNOPT_PROFILE_REPORT_PERFETTO_TRACE_HPP
#define DNNOPT_PROFILE_REPORT_PERFETTO_TRACE_HPP

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <protozero/pbf_writer.hpp>

#include <dnnopt/profile/events.hpp>
#include <dnnopt/profile/report/csv.hpp>
#include <dnnopt/profile/report/report.hpp>

namespace dnnopt::profile {

namespace detail {

/// Field numbers of perfetto/trace/perfetto_trace.proto that are written here.
namespace perfetto_field {
inline constexpr protozero::pbf_tag_type trace_packet = 1;
namespace packet {
inline constexpr protozero::pbf_tag_type clock_snapshot = 6, timestamp = 8, sequence_id = 10, track_event = 11,
                                         sequence_flags = 13, timestamp_clock_id = 58, track_descriptor = 60;
}
namespace snapshot {
inline constexpr protozero::pbf_tag_type clocks = 1, primary_trace_clock = 2;
}
namespace clock {
inline constexpr protozero::pbf_tag_type clock_id = 1, timestamp = 2;
}
namespace track {
inline constexpr protozero::pbf_tag_type uuid = 1, name = 2, process = 3, thread = 4, parent_uuid = 5, counter = 8;
}
namespace process {
inline constexpr protozero::pbf_tag_type pid = 1, name = 6;
}
namespace event {
inline constexpr protozero::pbf_tag_type debug_annotations = 4, type = 9, track_uuid = 11, categories = 22, name = 23,
                                         counter_value = 30, flow_ids = 47, terminating_flow_ids = 48;
}
namespace annotation {
inline constexpr protozero::pbf_tag_type uint_value = 3, string_value = 6, name = 10;
}
}  // namespace perfetto_field

enum class slice_type : std::int32_t { begin = 1, end = 2, counter = 4 };

/// Packets of one trace with one writer sequence.
class perfetto_packets {
 public:
  static constexpr std::uint32_t host_clock = 3;      // BUILTIN_CLOCK_MONOTONIC
  static constexpr std::uint32_t device_clock = 128;  // first number free for clocks of the trace's own

  void clocks(std::int64_t host_ns, std::int64_t device_ns) {
    packet([&](protozero::pbf_writer& out) {
      protozero::pbf_writer snapshot(out, perfetto_field::packet::clock_snapshot);
      const std::array<std::pair<std::uint32_t, std::int64_t>, 2> pair{
          {{host_clock, host_ns}, {device_clock, device_ns}}};
      for (const auto& [id, at] : pair) {
        protozero::pbf_writer clock(snapshot, perfetto_field::snapshot::clocks);
        clock.add_uint32(perfetto_field::clock::clock_id, id);
        clock.add_uint64(perfetto_field::clock::timestamp, static_cast<std::uint64_t>(at));
      }
      snapshot.add_enum(perfetto_field::snapshot::primary_trace_clock, static_cast<std::int32_t>(host_clock));
    });
  }

  void process_track(std::uint64_t uuid, std::int32_t pid, std::string_view name) {
    packet([&](protozero::pbf_writer& out) {
      protozero::pbf_writer track(out, perfetto_field::packet::track_descriptor);
      track.add_uint64(perfetto_field::track::uuid, uuid);
      protozero::pbf_writer process(track, perfetto_field::track::process);
      process.add_int32(perfetto_field::process::pid, pid);
      process.add_string(perfetto_field::process::name, name.data(), name.size());
    });
  }

  void track(std::uint64_t uuid, std::uint64_t parent, std::string_view name, bool counter = false) {
    packet([&](protozero::pbf_writer& out) {
      protozero::pbf_writer track(out, perfetto_field::packet::track_descriptor);
      track.add_uint64(perfetto_field::track::uuid, uuid);
      track.add_uint64(perfetto_field::track::parent_uuid, parent);
      track.add_string(perfetto_field::track::name, name.data(), name.size());
      if (counter) protozero::pbf_writer(track, perfetto_field::track::counter);
    });
  }

  /// An event packet; `fill` adds fields to its TrackEvent.
  template <class Fill>
  void event(std::int64_t at, std::uint32_t clock, std::uint64_t track, slice_type type, const Fill& fill) {
    packet([&](protozero::pbf_writer& out) {
      out.add_uint64(perfetto_field::packet::timestamp, static_cast<std::uint64_t>(at));
      out.add_uint32(perfetto_field::packet::timestamp_clock_id, clock);
      protozero::pbf_writer event(out, perfetto_field::packet::track_event);
      event.add_enum(perfetto_field::event::type, static_cast<std::int32_t>(type));
      event.add_uint64(perfetto_field::event::track_uuid, track);
      fill(event);
    });
  }

  static void annotate(protozero::pbf_writer& event, std::string_view name, std::string_view value) {
    protozero::pbf_writer annotation(event, perfetto_field::event::debug_annotations);
    annotation.add_string(perfetto_field::annotation::name, name.data(), name.size());
    annotation.add_string(perfetto_field::annotation::string_value, value.data(), value.size());
  }
  static void annotate(protozero::pbf_writer& event, std::string_view name, std::uint64_t value) {
    protozero::pbf_writer annotation(event, perfetto_field::event::debug_annotations);
    annotation.add_string(perfetto_field::annotation::name, name.data(), name.size());
    annotation.add_uint64(perfetto_field::annotation::uint_value, value);
  }

  [[nodiscard]] std::string take() { return std::move(bytes_); }

 private:
  template <class Fill>
  void packet(const Fill& fill) {
    protozero::pbf_writer trace(bytes_);
    protozero::pbf_writer out(trace, perfetto_field::trace_packet);
    out.add_uint32(perfetto_field::packet::sequence_id, 1);
    if (first_) out.add_uint32(perfetto_field::packet::sequence_flags, 1);  // SEQ_INCREMENTAL_STATE_CLEARED
    first_ = false;
    fill(out);
  }

  std::string bytes_;
  bool first_ = true;
};

}  // namespace detail

/// The report as a Perfetto trace (bytes of a *.perfetto-trace file, for ui.perfetto.dev and trace_processor). Kernels
/// carry device stamps in clock 128; a snapshot per inference ties that clock to the host's monotonic clock. Each
/// enqueue slice starts a flow whose number is the event's place in the report, counted from 1, and which ends at its
/// kernel.
[[nodiscard]] inline std::string to_perfetto(const profile_report& report) {
  using detail::perfetto_packets;
  using detail::slice_type;
  namespace field = detail::perfetto_field::event;
  constexpr std::uint64_t host = 1, inferences = 2, calls = 3, device = 4, first_queue = 16;
  perfetto_packets out;
  for (const auto& [host_ns, device_ns] : report.clock_snapshots) out.clocks(host_ns, device_ns);
  out.process_track(host, 1, report.model.empty() ? "host" : "host: " + report.model);
  out.track(inferences, host, "inferences");
  out.track(calls, host, "calls");
  out.process_track(device, 2, report.device.empty() ? "device" : report.device);
  std::map<std::uint8_t, std::vector<std::pair<std::int64_t, int>>> waiting;
  for (const kernel_event& event : report.events)
    if (has_device_stamps(event.kind)) {
      waiting[event.queue].emplace_back(event.queued_ns, 1);
      waiting[event.queue].emplace_back(event.start_ns, -1);
    }
  const auto running_track = [](std::uint8_t queue) { return first_queue + 2ULL * queue; };
  for (const auto& [queue, changes] : waiting) {
    out.track(running_track(queue), device, "queue " + std::to_string(queue));
    out.track(running_track(queue) + 1, device, "queue " + std::to_string(queue) + ": waiting commands", true);
  }

  for (const run_event& run : report.run_events) {
    if (run.begin_ns < report.origin_ns) continue;
    out.event(run.begin_ns, perfetto_packets::host_clock, inferences, slice_type::begin, [&](protozero::pbf_writer& e) {
      e.add_string(field::categories, "run");
      e.add_string(field::name, "inference " + std::to_string(run.run));
    });
    out.event(run.end_ns, perfetto_packets::host_clock, inferences, slice_type::end, [](protozero::pbf_writer&) {});
  }

  std::uint64_t number = 0;
  for (const kernel_event& event : report.events) {
    ++number;
    const launch_info& info = report.launches.at(event.launch);
    const bool on_device = has_device_stamps(event.kind);
    std::string ops;
    for (const operator_ref& op : info.ops) ops += (ops.empty() ? "" : " + ") + op.name;
    const auto describe = [&](protozero::pbf_writer& e) {
      perfetto_packets::annotate(e, "run", std::uint64_t{event.run});
      if (!ops.empty()) perfetto_packets::annotate(e, "operators", ops);
    };
    out.event(event.host_begin_ns, perfetto_packets::host_clock, calls, slice_type::begin,
              [&](protozero::pbf_writer& e) {
                e.add_string(field::categories, on_device ? "enqueue" : std::string(to_string(event.kind)));
                e.add_string(field::name, on_device ? "enqueue " + info.name : info.name);
                describe(e);
                if (on_device) e.add_fixed64(field::flow_ids, number);
              });
    out.event(event.host_end_ns, perfetto_packets::host_clock, calls, slice_type::end, [](protozero::pbf_writer&) {});
    if (!on_device) continue;
    out.event(event.device_start_ns, perfetto_packets::device_clock, running_track(event.queue), slice_type::begin,
              [&](protozero::pbf_writer& e) {
                e.add_string(field::categories, std::string(to_string(event.kind)));
                e.add_string(field::name, info.name);
                describe(e);
                perfetto_packets::annotate(e, "global work size", work_size_text(event.gws));
                perfetto_packets::annotate(e, "local work size", work_size_text(event.lws));
                perfetto_packets::annotate(e, "bytes", event.bytes);
                perfetto_packets::annotate(e, "flops", event.flops);
                e.add_fixed64(field::terminating_flow_ids, number);
              });
    out.event(event.device_end_ns, perfetto_packets::device_clock, running_track(event.queue), slice_type::end,
              [](protozero::pbf_writer&) {});
  }

  for (auto& [queue, changes] : waiting) {
    std::sort(changes.begin(), changes.end());
    std::int64_t count = 0;
    for (std::size_t i = 0; i < changes.size(); ++i) {
      count += changes[i].second;
      if (i + 1 < changes.size() && changes[i + 1].first == changes[i].first) continue;
      out.event(changes[i].first, perfetto_packets::host_clock, running_track(queue) + 1, slice_type::counter,
                [&](protozero::pbf_writer& e) { e.add_int64(field::counter_value, count); });
    }
  }
  return out.take();
}

}  // namespace dnnopt::profile

#endif  // DNNOPT_PROFILE_REPORT_PERFETTO_TRACE_HPP
