// Owns latency lookup tables of kernels and operators, built by profiling, and the predictor that sums them.
#ifndef DNNOPT_PROFILE_REPORT_LATENCY_TABLE_HPP
#define DNNOPT_PROFILE_REPORT_LATENCY_TABLE_HPP

#include <algorithm>
#include <charconv>
#include <cmath>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <dnnopt/detail/utf8.hpp>
#include <dnnopt/error.hpp>
#include <dnnopt/profile/events.hpp>
#include <dnnopt/profile/report/report.hpp>
#include <dnnopt/profile/report/text.hpp>

namespace dnnopt::profile {

enum class latency_level : std::uint8_t {
  kernel,    ///< one launch: all operators fused in it
  operator_  ///< one operator by itself: the launches that an unfused operator takes
};

[[nodiscard]] constexpr std::string_view to_string(latency_level level) noexcept {
  return level == latency_level::kernel ? "kernel" : "operator";
}

/// What a table looks up by: equal keys cost the same on a device.
struct latency_key {
  latency_level level = latency_level::kernel;
  std::string operators;  ///< ONNX types in order, joined by '+': "Conv+Relu"
  std::string attributes;
  std::string shapes;
  std::string layout;
  std::string device;

  friend auto operator<=>(const latency_key&, const latency_key&) = default;
};

/// Nanoseconds of one call.
struct latency_entry {
  std::uint64_t count = 0;
  double mean_ns = 0.0;
  double min_ns = 0.0;
  double p50_ns = 0.0;
  double p90_ns = 0.0;
  double max_ns = 0.0;
};

/// The entry of a series of durations in nanoseconds.
[[nodiscard]] inline latency_entry entry_of(const series& seen) {
  return {seen.count(),       seen.moments().mean(), seen.moments().min(),
          seen.quantile(0.5), seen.quantile(0.9),    seen.moments().max()};
}

/// What an inference costs besides its kernels, measured on a device: how the host feeds an in-order queue.
struct launch_model {
  double enqueue_ns = 0.0;   ///< host time from one enqueue to the next, without an event
  double latency_ns = 0.0;   ///< from an enqueue call's begin to the kernel's start on an idle queue
  double gap_ns = 0.0;       ///< from one kernel's end to the next one's start when it was queued in time
  double prologue_ns = 0.0;  ///< from the inference's begin to its first kernel's enqueue (uploads)
  double epilogue_ns = 0.0;  ///< from the last kernel's end to the inference's end (waking the host, downloads)
  double input_ns = 0.0;     ///< by which inputs that are still under way keep the first kernel from its start

  /// End-to-end nanoseconds of kernels of these durations: each starts when it has been enqueued and arrived, and its
  /// predecessor has ended. O(n).
  [[nodiscard]] double predict(const std::vector<double>& kernels_ns) const noexcept {
    double host = prologue_ns;
    double free_at = 0.0;
    bool first = true;
    for (const double kernel : kernels_ns) {
      const double arrived = host + latency_ns;
      const double start = first ? arrived + input_ns : std::max(arrived, free_at + gap_ns);
      first = false;
      free_at = start + kernel;
      host += enqueue_ns;
    }
    return std::max(free_at, host) + epilogue_ns;
  }
};

/// Joined ONNX types of a launch.
[[nodiscard]] inline std::string operator_types(const launch_info& info) {
  std::string types;
  for (const operator_ref& op : info.ops) types += (types.empty() ? "" : "+") + op.type;
  return types.empty() ? info.name : types;
}

/// The key of a launch.
[[nodiscard]] inline latency_key key_of(const launch_info& info, std::string device,
                                        latency_level level = latency_level::kernel) {
  return {level, operator_types(info), info.attributes, info.shapes, info.layout, std::move(device)};
}

/// Measures a launch model from a full profile. Median over events, so warm-up and interruptions do not count. The cost
/// of the events themselves (`report.event_cost_ns`) is taken off the enqueue.
[[nodiscard]] inline launch_model measure_launch_model(const profile_report& report) {
  std::vector<double> enqueues, latencies, gaps, prologues, epilogues;
  std::map<std::uint32_t, run_event> runs;
  for (const run_event& run : report.run_events) runs[run.run] = run;
  const kernel_event* former = nullptr;
  const auto median = [](std::vector<double>& values) { return values.empty() ? 0.0 : exact_quantile(values, 0.5); };
  const auto end_of = [&](const kernel_event& last) {
    const auto run = runs.find(last.run);
    if (run != runs.end()) epilogues.push_back(static_cast<double>(run->second.end_ns - last.end_ns));
  };
  for (const kernel_event& event : report.events) {
    if (!counts_as_kernel(event.kind)) continue;
    const bool same_run = former != nullptr && former->run == event.run;
    if (!same_run) {
      if (former != nullptr) end_of(*former);
      const auto run = runs.find(event.run);
      if (run != runs.end()) prologues.push_back(static_cast<double>(event.host_begin_ns - run->second.begin_ns));
    }
    if (!same_run || event.host_begin_ns > former->end_ns)
      latencies.push_back(static_cast<double>(event.start_ns - event.host_begin_ns));
    if (same_run) {
      enqueues.push_back(static_cast<double>(event.host_begin_ns - former->host_begin_ns));
      if (event.host_end_ns < former->start_ns) gaps.push_back(static_cast<double>(event.start_ns - former->end_ns));
    }
    former = &event;
  }
  if (former != nullptr) end_of(*former);
  launch_model model;
  model.enqueue_ns = std::max(0.0, median(enqueues) - report.event_cost_ns);
  model.latency_ns = std::max(0.0, median(latencies));
  model.gap_ns = std::max(0.0, median(gaps));
  model.prologue_ns = std::max(0.0, median(prologues));
  model.epilogue_ns = std::max(0.0, median(epilogues));
  return model;
}

/// A table of latencies.
class latency_table {
 public:
  /// Adds the kernels of a profile, and the host operators; the same key met again is averaged by count.
  void add(const profile_report& report, latency_level level = latency_level::kernel) {
    std::map<std::uint32_t, series> durations;
    for (const kernel_event& event : report.events)
      if (counts_as_kernel(event.kind) || event.kind == event_kind::host_operator)
        durations[event.launch].add(event.duration_ns(), static_cast<double>(event.weight));
    if (level == latency_level::kernel) {
      for (const auto& [launch, seen] : durations)
        add(key_of(report.launches.at(launch), report.device), entry_of(seen));
      return;
    }
    // An operator's latency is the sum over its launches; only launches of one operator tell it.
    std::map<std::string, std::pair<latency_key, latency_entry>> operators;
    for (const auto& [launch, seen] : durations) {
      const launch_info& info = report.launches.at(launch);
      if (info.ops.size() != 1) continue;
      auto& [key, sum] = operators[info.ops.front().name];
      const latency_entry one = entry_of(seen);
      if (sum.count == 0) {
        key = key_of(info, report.device, latency_level::operator_);
        sum = one;
        continue;
      }
      sum.count = std::min(sum.count, one.count);
      sum.mean_ns += one.mean_ns;
      sum.min_ns += one.min_ns;
      sum.p50_ns += one.p50_ns;
      sum.p90_ns += one.p90_ns;
      sum.max_ns += one.max_ns;
    }
    for (const auto& [name, both] : operators) add(both.first, both.second);
  }

  /// Adds an entry; percentiles of a key met again are averaged by count, extremes kept.
  void add(const latency_key& key, const latency_entry& entry) {
    latency_entry& old = entries_[key];
    if (old.count == 0) {
      old = entry;
      return;
    }
    const double total = static_cast<double>(old.count + entry.count);
    const double share = total > 0.0 ? static_cast<double>(entry.count) / total : 0.0;
    old.mean_ns += (entry.mean_ns - old.mean_ns) * share;
    old.p50_ns += (entry.p50_ns - old.p50_ns) * share;
    old.p90_ns += (entry.p90_ns - old.p90_ns) * share;
    old.min_ns = std::min(old.min_ns, entry.min_ns);
    old.max_ns = std::max(old.max_ns, entry.max_ns);
    old.count += entry.count;
  }

  [[nodiscard]] std::optional<latency_entry> find(const latency_key& key) const {
    const auto found = entries_.find(key);
    if (found == entries_.end()) return std::nullopt;
    return found->second;
  }
  [[nodiscard]] const std::map<latency_key, latency_entry>& entries() const noexcept { return entries_; }
  [[nodiscard]] std::size_t size() const noexcept { return entries_.size(); }

  /// What the inference costs besides its kernels.
  launch_model launches{};

  /// Predicted end-to-end nanoseconds and the keys that the table lacks (they count as zero).
  struct prediction {
    double e2e_ns = 0.0;
    double kernels_ns = 0.0;  ///< sum of the medians alone
    std::vector<latency_key> missing;
  };
  /// Sums medians of the keys, in order of execution, with launch gaps. O(n log table).
  [[nodiscard]] prediction predict(const std::vector<latency_key>& keys) const {
    prediction result;
    std::vector<double> kernels;
    for (const latency_key& key : keys) {
      const auto entry = find(key);
      if (!entry) {
        result.missing.push_back(key);
        continue;
      }
      kernels.push_back(entry->p50_ns);
      result.kernels_ns += entry->p50_ns;
    }
    result.e2e_ns = launches.predict(kernels);
    return result;
  }

 private:
  std::map<latency_key, latency_entry> entries_;
};

/// First line of a table's CSV. The launch model is in rows of level "launch".
inline constexpr std::string_view latency_csv_header =
    "level,operators,attributes,shapes,layout,device,count,mean_ns,min_ns,p50_ns,p90_ns,max_ns\n";

/// The table as CSV; `from_csv` reads back the same table.
[[nodiscard]] inline std::string to_csv(const latency_table& table) {
  std::string out(latency_csv_header);
  const auto row = [&](std::string_view level, const latency_key& key, const latency_entry& entry) {
    out += level;
    for (const std::string& field :
         {key.operators, key.attributes, key.shapes, key.layout, key.device, std::to_string(entry.count),
          text::shortest(entry.mean_ns), text::shortest(entry.min_ns), text::shortest(entry.p50_ns),
          text::shortest(entry.p90_ns), text::shortest(entry.max_ns)})
      out += "," + text::csv_field(field);
    out += "\n";
  };
  const launch_model& m = table.launches;
  for (const auto& [name, ns] : {std::pair<const char*, double>{"enqueue", m.enqueue_ns},
                                 {"latency", m.latency_ns},
                                 {"gap", m.gap_ns},
                                 {"prologue", m.prologue_ns},
                                 {"epilogue", m.epilogue_ns},
                                 {"input", m.input_ns}})
    row("launch", {latency_level::kernel, name, "", "", "", ""}, {1, ns, ns, ns, ns, ns});
  for (const auto& [key, entry] : table.entries()) row(to_string(key.level), key, entry);
  return out;
}

/// Reads a table's CSV. Errors: bad_file, with the line, for a wrong header, field count, number or level, and for text
/// that is not UTF-8.
[[nodiscard]] inline latency_table latency_table_from_csv(std::string_view csv) {
  const auto records = text::csv_records(csv);
  const auto header = text::csv_records(latency_csv_header).front();
  if (records.empty() || records.front() != header)
    throw error(errc::bad_file, "a latency table begins with '" + text::joined(header, ",") + "'");
  latency_table table;
  for (std::size_t i = 1; i < records.size(); ++i) {
    const auto& r = records[i];
    const auto wrong = [&](const std::string& why) {
      return error(errc::bad_file, "latency table, record " + std::to_string(i + 1) + ": " + why);
    };
    if (r.size() != header.size())
      throw wrong(std::to_string(r.size()) + " fields in place of " + std::to_string(header.size()));
    if (!std::all_of(r.begin(), r.end(), dnnopt::detail::is_utf8)) throw wrong("it is not UTF-8");
    const auto number = [&](std::size_t column) {
      double value = 0.0;
      const char* end = r[column].data() + r[column].size();
      const auto read = std::from_chars(r[column].data(), end, value);
      if (read.ec != std::errc{} || read.ptr != end || !std::isfinite(value) || value < 0.0)
        throw wrong(header[column] + " is '" + r[column] + "'");
      return value;
    };
    std::uint64_t count = 0;
    if (const auto [stop, failure] = std::from_chars(r[6].data(), r[6].data() + r[6].size(), count);
        failure != std::errc{} || stop != r[6].data() + r[6].size())
      throw wrong(header[6] + " is '" + r[6] + "'");
    const latency_entry entry{count, number(7), number(8), number(9), number(10), number(11)};
    if (r[0] == "launch") {
      launch_model& m = table.launches;
      double* into = r[1] == "enqueue"    ? &m.enqueue_ns
                     : r[1] == "latency"  ? &m.latency_ns
                     : r[1] == "gap"      ? &m.gap_ns
                     : r[1] == "prologue" ? &m.prologue_ns
                     : r[1] == "epilogue" ? &m.epilogue_ns
                     : r[1] == "input"    ? &m.input_ns
                                          : nullptr;
      if (into == nullptr) throw wrong("no part of the launch model is called '" + r[1] + "'");
      *into = entry.p50_ns;
      continue;
    }
    if (r[0] != "kernel" && r[0] != "operator") throw wrong("level is '" + r[0] + "'");
    table.add({r[0] == "kernel" ? latency_level::kernel : latency_level::operator_, r[1], r[2], r[3], r[4], r[5]},
              entry);
  }
  return table;
}

}  // namespace dnnopt::profile

#endif  // DNNOPT_PROFILE_REPORT_LATENCY_TABLE_HPP
