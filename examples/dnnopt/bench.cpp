// dnnopt bench and dnnopt profile
#include <algorithm>
#include <chrono>
#include <fstream>
#include <memory>
#include <numeric>

#include <sys/resource.h>
#include <unistd.h>

#include <dnnopt/backend/measure/check_kernels.hpp>
#include <dnnopt/backend/measure/facts/stored_facts.hpp>
#include <dnnopt/backend/measure/profile_runs.hpp>
#include <dnnopt/profile/report/chrome_trace.hpp>
#include <dnnopt/profile/report/csv.hpp>
#include <dnnopt/profile/report/html_report.hpp>
#include <dnnopt/profile/report/latency_table.hpp>
#include <dnnopt/profile/report/latency_table_json.hpp>
#include <dnnopt/profile/report/perfetto_trace.hpp>
#include <dnnopt/profile/report/report_json.hpp>
#include <dnnopt/profile/report/roofline.hpp>
#include <dnnopt/profile/report/table.hpp>

#include "support.hpp"

namespace tool {

namespace {

using clock = std::chrono::steady_clock;

double milliseconds_since(clock::time_point begin) {
  return std::chrono::duration<double, std::milli>(clock::now() - begin).count();
}

/// The value below which a share of sorted numbers lies (nearest rank).
double percentile(const std::vector<double>& sorted, double share) {
  const auto rank = static_cast<std::size_t>(std::max(1.0, std::ceil(share * static_cast<double>(sorted.size()))));
  return sorted[std::min(rank, sorted.size()) - 1];
}

double median(const std::vector<double>& sorted) {
  const std::size_t half = sorted.size() / 2;
  return sorted.size() % 2 == 1 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2;
}

/// Largest resident size of the process in bytes.
std::int64_t peak_host_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<std::int64_t>(usage.ru_maxrss) * 1024;
}

/// Device memory besides weights and the caller's inputs and outputs, as the allocator counts it at the API.
std::uint64_t intermediate_device_bytes(const dnnopt::session& session) {
  if (session.executor() == nullptr) return 0;
  return session.context()->memory().figures().live_bytes - session.executor()->weight_bytes() -
         session.executor()->caller_bytes();
}

/// Runs with every command timed and returns what the profiler tells of them.
dnnopt::profile::profile_report observed(dnnopt::session& session, const dnnopt::named_tensors& inputs,
                                         std::size_t runs, dnnopt::profile::profile_mode mode) {
  return dnnopt::profile_runs(
      *session.context(), session.executor()->executed(),
      [&](dnnopt::run_observer* observer) { (void)session.run(inputs, observer); }, runs, mode);
}

std::string checked_rows(const std::vector<dnnopt::checked_kernel>& rows) {
  text_table table({"", "in situ us", "held us", "copies us", "by slope us", "+- us", "pairs", "launch us", "error us",
                    "error %", ""});
  for (const dnnopt::checked_kernel& row : rows)
    table.add({row.name, fixed(row.in_situ_ns * 1e-3, 2), row.held_ns == 0.0 ? "" : fixed(row.held_ns * 1e-3, 2),
               fixed(row.profiled_ns * 1e-3, 2), fixed(row.truth_ns * 1e-3, 2), fixed(row.half_ns * 1e-3, 2),
               std::to_string(row.pairs), fixed(row.launch_ns * 1e-3, 2), fixed(row.error_ns() * 1e-3, 2),
               fixed(100.0 * row.error_ns() / std::max(row.truth_ns, 1.0), 2),
               row.wrong()    ? "WRONG"
               : !row.right() ? "uncertain"
                              : "right"});
  return table.str();
}

json checked_json(const std::vector<dnnopt::checked_kernel>& rows) {
  json list = json::array();
  for (const dnnopt::checked_kernel& row : rows)
    list.push_back({{"name", row.name},
                    {"in_situ_us", row.in_situ_ns * 1e-3},
                    {"held_us", row.held_ns * 1e-3},
                    {"profiled_us", row.profiled_ns * 1e-3},
                    {"slope_us", row.truth_ns * 1e-3},
                    {"slope_low_us", (row.truth_ns - row.half_ns) * 1e-3},
                    {"slope_high_us", (row.truth_ns + row.half_ns) * 1e-3},
                    {"slope_half_us", row.half_ns * 1e-3},
                    {"pairs", row.pairs},
                    {"launch_us", row.launch_ns * 1e-3},
                    {"allowed_us", row.allowed_ns() * 1e-3},
                    {"right", row.right()},
                    {"wrong", row.wrong()}});
  return list;
}

/// Holds the profiler's times against injected copies. Whether no kernel and no operator is certainly wrong.
bool check_profiler(dnnopt::session& session, const dnnopt::named_tensors& inputs, const options& o, json& result) {
  progress_line busy(o);
  dnnopt::check_kernels_options settings;
  settings.profiled = std::max<std::size_t>(o.runs, 1);
  settings.seconds = o.check_seconds;
  const dnnopt::kernel_check check = dnnopt::check_kernels(
      *session.context(), session.executor()->executed(),
      [&](dnnopt::run_observer* observer) { (void)session.run(inputs, observer); }, settings,
      [&](const dnnopt::checked_kernel& row) { busy.show(row.name); });
  busy.clear();
  std::string text = "kernels by events, in the inference and of copies of them, and by the slope over 1 to " +
                     std::to_string(settings.most_copies) +
                     " copies, the launch taken off (an empty kernel's slope: " + fixed(check.empty_ns * 1e-3, 2) +
                     " us; an event's own part: " + fixed(check.bias.busy_ns * 1e-3, 2) + " us, " +
                     fixed(check.bias.starved_ns * 1e-3, 2) + " us where the device waited, " +
                     fixed(check.bias.deep_ns * 1e-3, 2) + " us with " + std::to_string(check.bias.depth) +
                     " commands or more behind it)\n" + checked_rows(check.kernels) + "\noperators\n" +
                     checked_rows(check.operators);
  bool right = true;
  for (const auto* rows : {&check.kernels, &check.operators}) {
    std::size_t certain = 0, wrong = 0;
    std::size_t in_situ_within = 0, held_within = 0;
    const dnnopt::checked_kernel* worst = nullptr;
    const auto share = [](const dnnopt::checked_kernel& row) { return std::abs(row.error_ns()) / row.allowed_ns(); };
    for (const dnnopt::checked_kernel& row : *rows) {
      certain += row.right() ? 1 : 0;
      wrong += row.wrong() ? 1 : 0;
      in_situ_within += std::abs(row.in_situ_ns - row.truth_ns) <= row.allowed_ns() ? 1 : 0;
      held_within += row.held_ns > 0.0 && std::abs(row.held_ns - row.truth_ns) <= row.allowed_ns() ? 1 : 0;
      if (worst == nullptr || share(row) > share(*worst)) worst = &row;
    }
    right = right && wrong == 0;
    if (worst == nullptr) continue;
    text += std::string(rows == &check.kernels ? "\nkernels" : "operators") + ": " + std::to_string(certain) + " of " +
            std::to_string(rows->size()) + " certainly within the larger of 1 us and 5%, " + std::to_string(wrong) +
            " wrong; worst " + worst->name + ", " + fixed(worst->error_ns() * 1e-3, 2) + " us, " +
            fixed(share(*worst), 2) +
            " of what is allowed (in the inference, where caches may be colder than a copy's: " +
            std::to_string(in_situ_within) +
            (worst->held_ns > 0.0 ? ", behind a long kernel: " + std::to_string(held_within) : "") + ")\n";
  }
  if (check.by_device)
    text += "slopes by the device's stamps of the first and the last command; by the host's clock a copy is " +
            fixed(check.host_excess.value * 1e-3, 2) + " us [" + fixed(check.host_excess.low * 1e-3, 2) + ", " +
            fixed(check.host_excess.high * 1e-3, 2) +
            "] longer; pauses between kernels behind a long one: " + fixed(check.bias.pause_ns * 1e-3, 2) +
            " us, 99% of the program's own at most " + fixed(check.held_pause_p99_ns * 1e-3, 2) + " us\n";
  text += "checked in " + fixed(check.seconds, 1) + " s\n";
  const dnnopt::profile::time_split& split = check.split;
  const double whole = std::max(split.e2e_ns, 1.0) * 1e-2;
  text += "end to end " + fixed(split.e2e_ns * 1e-3, 1) + " us: enqueue " + fixed(split.enqueue_ns / whole, 2) +
          "%, GPU " + fixed(split.gpu_ns / whole, 2) + "%, wait " + fixed(split.wait_ns / whole, 2) + "%, copy " +
          fixed(split.copy_ns / whole, 2) + "%, host operators " + fixed(split.host_operator_ns / whole, 2) +
          "%, unexplained " + fixed(split.unexplained_ns / whole, 2) + "%\n\n";
  say(o, text);
  result["check"] = {{"kernels", checked_json(check.kernels)},
                     {"operators", checked_json(check.operators)},
                     {"empty_us", check.empty_ns * 1e-3},
                     {"event_bias_us", check.bias.busy_ns * 1e-3},
                     {"starved_event_bias_us", check.bias.starved_ns * 1e-3},
                     {"deep_event_bias_us", check.bias.deep_ns * 1e-3},
                     {"unexplained", split.unexplained_ns / std::max(split.e2e_ns, 1.0)}};
  return right;
}

}  // namespace

dnnopt::named_tensors first_run(const options& o, dnnopt::session& session, const dnnopt::named_tensors& inputs) {
  progress_line busy(o);
  busy.show("first inference, in which some drivers still compile");
  return session.run(inputs);
}

bool keep_programs(const options& o, dnnopt::session& session) {
  progress_line busy(o);
  busy.show("keeping the compiled kernels for the next start");
  if (session.save_programs()) return true;
  busy.clear();
  note(o, "warning: compiled kernels cannot be kept in '" + dnnopt::opencl::default_cache_folder().string() +
              "', so that the next start compiles them again; XDG_CACHE_HOME names another place");
  return false;
}

std::string smaller_work_groups_of(const dnnopt::session& session, json& result) {
  std::string text;
  for (const std::string& line : session.report().smaller_work_groups) text += line + "\n";
  if (!text.empty()) result["smaller_work_groups"] = session.report().smaller_work_groups;
  return text;
}

std::string specialization_of(const dnnopt::session& session, json& result) {
  const dnnopt::compile_report& report = session.report();
  if (report.specialized_inputs.empty() && report.decided_conditions.empty()) return "";
  if (!report.specialized_inputs.empty()) result["specialized_inputs"] = report.specialized_inputs;
  if (!report.decided_conditions.empty()) result["decided_conditions"] = report.decided_conditions;
  result["specialized_programs"] = report.specialized_programs;
  std::string text = std::to_string(report.specialized_programs) + " programs for";
  if (!report.specialized_inputs.empty()) text += " values of";
  for (const std::string& name : report.specialized_inputs) text += " '" + name + "'";
  if (const std::size_t conditions = report.decided_conditions.size(); conditions > 0)
    text += (report.specialized_inputs.empty() ? " " : " and ") + std::to_string(conditions) +
            (conditions == 1 ? " condition" : " conditions") + " on dims";
  return text + "\n";
}

std::string wait_of(const dnnopt::session& session) {
  return session.executor() == nullptr ? "none" : std::string(dnnopt::name_of(session.executor()->waits_by()));
}

int bench(const options& o) {
  const auto init = clock::now();
  const dnnopt::model m = load_model(o);
  const dnnopt::compile_options compiling = compile_options_of(o, m);
  dnnopt::session session = dnnopt::compile(m, compiling);
  keep_profiles(o, compiling);
  const double init_ms = milliseconds_since(init);
  json result;
  const dnnopt::named_tensors generated = inputs_of(m, o, &result);
  const auto first = clock::now();
  const dnnopt::named_tensors outputs = first_run(o, session, generated);
  const double first_ms = milliseconds_since(first);
  const dnnopt::named_tensors inputs = bind_io(o, session, generated, outputs, result);
  for (std::size_t i = 1; i < o.warmup; ++i) (void)session.run(inputs);
  std::vector<double> latencies;
  for (std::size_t i = 0; i < o.runs; ++i) {
    const auto begin = clock::now();
    (void)session.run(inputs);
    latencies.push_back(milliseconds_since(begin));
  }
  std::sort(latencies.begin(), latencies.end());
  const double mean = std::accumulate(latencies.begin(), latencies.end(), 0.0) / static_cast<double>(latencies.size());

  result["device"] = session.context() == nullptr ? "reference" : session.context()->info().name;
  result["form"] = form_of(o);
  result["wait"] = wait_of(session);
  const std::string smaller =
      smaller_work_groups_of(session, result) + specialization_of(session, result) + control_flow_of(session, result);
  tell_warnings(o, m, session.report(), result);
  result["init_ms"] = init_ms;
  result["first_ms"] = first_ms;
  result["latency_ms"] = {{"min", latencies.front()},
                          {"median", median(latencies)},
                          {"mean", mean},
                          {"p90", percentile(latencies, 0.9)},
                          {"p95", percentile(latencies, 0.95)},
                          {"p99", percentile(latencies, 0.99)},
                          {"max", latencies.back()}};
  // The parts come from runs of their own with every command timed; the latencies above are without events.
  dnnopt::profile::time_split split;
  double upload_ms = 0;
  double download_ms = 0;
  result["kernels"] = session.kernels();
  result["host_ops"] = session.host_ops();
  if (session.executor() != nullptr) {
    const dnnopt::profile::profile_report report =
        observed(session, inputs, std::min<std::size_t>(o.runs, 10), dnnopt::profile::profile_mode::full);
    split = report.split;
    for (const auto& event : report.events) {
      if (event.kind == dnnopt::profile::event_kind::upload) upload_ms += event.duration_ns() * 1e-6;
      if (event.kind == dnnopt::profile::event_kind::download) download_ms += event.duration_ns() * 1e-6;
    }
    const double runs = static_cast<double>(std::max<std::size_t>(split.runs, 1));
    upload_ms /= runs;
    download_ms /= runs;
  }
  result["enqueue_ms"] = split.enqueue_overlapped_ns * 1e-6;
  result["gpu_ms"] = split.gpu_ns * 1e-6;
  result["h2d_ms"] = upload_ms;
  result["d2h_ms"] = download_ms;
  result["builds"] = session.report().builds;
  result["arena_bytes"] = session.executor() == nullptr ? 0 : session.executor()->memory().arena_bytes;
  result["arena_lower_bound_bytes"] =
      session.executor() == nullptr ? 0 : session.executor()->memory().lower_bound_bytes;
  if (session.executor() != nullptr) {
    result["memory_strategy"] = session.executor()->memory().strategy;
    result["shared_objects"] = session.executor()->memory().plan.objects.size();
  }
  result["intermediate_device_bytes"] = intermediate_device_bytes(session);
  result["weight_bytes"] = session.executor() == nullptr ? 0 : session.executor()->weight_bytes();
  result["peak_device_bytes"] = session.context() == nullptr ? 0 : session.context()->memory().figures().peak_bytes;
  result["peak_host_bytes"] = peak_host_bytes();

  say(o, "device " + result["device"].get<std::string>() + form_text(o) + ", " + std::to_string(o.warmup) +
             " warm-up and " + std::to_string(o.runs) + " measured inferences" +
             (result["wait"] == "spinning" ? ", spinning while it waits" : "") + "\n" + "init " + fixed(init_ms, 1) +
             " ms (" + std::to_string(session.report().builds) + " kernels built), first " + fixed(first_ms, 2) +
             " ms\nlatency ms: median " + fixed(median(latencies), 3) + ", min " + fixed(latencies.front(), 3) +
             ", mean " + fixed(mean, 3) + ", p90 " + fixed(percentile(latencies, 0.9), 3) + ", max " +
             fixed(latencies.back(), 3) + "\nenqueue " + fixed(split.enqueue_overlapped_ns * 1e-6, 3) +
             " ms, kernels " + fixed(split.gpu_ns * 1e-6, 3) + " ms, upload " + fixed(upload_ms, 3) + " ms, download " +
             fixed(download_ms, 3) + " ms\n" + std::to_string(session.kernels()) + " device commands, " +
             std::to_string(session.host_ops()) + " host operators, arena " + result["arena_bytes"].dump() +
             " bytes, bound " + result["arena_lower_bound_bytes"].dump() + ", allocated " +
             result["intermediate_device_bytes"].dump() + ", weights " + result["weight_bytes"].dump() + "\n" +
             smaller);
  keep_plans(o, *compiling.memory.store);
  write_json(o, result);
  keep_programs(o, session);
  return 0;
}

int profile(const options& o) {
  const dnnopt::model m = load_model(o);
  const dnnopt::compile_options compiling = compile_options_of(o, m);
  dnnopt::session session = dnnopt::compile(m, compiling);
  keep_profiles(o, compiling);
  if (session.context() == nullptr)
    throw dnnopt::error(dnnopt::errc::usage, "profile needs an OpenCL device; --device reference has no kernels");
  json generated = json::object();
  const dnnopt::named_tensors drawn = inputs_of(m, o, &generated);
  const dnnopt::named_tensors outputs = first_run(o, session, drawn);
  const dnnopt::named_tensors inputs = bind_io(o, session, drawn, outputs, generated);
  for (std::size_t i = 1; i < o.warmup; ++i) (void)session.run(inputs);
  json checked = json::object();
  const bool right = !o.check_kernels || check_profiler(session, inputs, o, checked);
  dnnopt::profile::profile_report report =
      observed(session, inputs, o.runs,
               o.mode == "monitor" ? dnnopt::profile::profile_mode::monitor : dnnopt::profile::profile_mode::full);
  report.model = o.model;
  report.kernels = session.kernels();
  const dnnopt::run_memory& memory = session.executor()->memory();
  const std::vector<std::string> names = dnnopt::record_names(session.executor()->executed(), memory);
  for (std::size_t r = 0; r < memory.usages.size(); ++r)
    report.memory.push_back({names[r], static_cast<std::size_t>(memory.usages[r].lower),
                             static_cast<std::size_t>(memory.usages[r].upper - 1),
                             static_cast<std::uint64_t>(memory.plan.offsets[r]),
                             static_cast<std::uint64_t>(memory.usages[r].size)});
  report.arena_bytes = memory.arena_bytes;
  report.arena_lower_bound_bytes = memory.lower_bound_bytes;
  report.arena_allocated_bytes = intermediate_device_bytes(session);
  if (!o.html.empty() || o.roofline) {
    // Kept in the cache folder, so that it is measured once per device and driver.
    progress_line busy(o);
    busy.show("measuring what the device can do, which takes some seconds the first time");
    dnnopt::opencl::context measured(dnnopt::opencl::select_device(o.device));
    const dnnopt::device_facts facts = dnnopt::opencl::facts_of(measured);
    report.ceilings = {facts.fma_gflops * 1e9, facts.buffer_copy_gbs * 1e9, facts.image_copy_fp32_gbs * 1e9};
  }
  const auto write = [](const std::string& file, const auto& call) {
    if (file.empty()) return;
    std::ofstream out(file, std::ios::binary);
    call(out);
    out.close();
    if (!out) throw dnnopt::error(dnnopt::errc::file_io, "cannot write '" + file + "'");
  };
  write(o.csv, [&](std::ostream& out) { dnnopt::profile::write_csv(out, report); });
  write(o.trace, [&](std::ostream& out) {
    if (o.trace.ends_with(".perfetto-trace"))
      out << dnnopt::profile::to_perfetto(report);
    else
      dnnopt::profile::write_chrome_trace(out, report);
  });
  write(o.html, [&](std::ostream& out) { out << dnnopt::profile::to_html(report); });
  write(o.latency_table, [&](std::ostream& out) {
    dnnopt::profile::latency_table table;
    table.add(report, dnnopt::profile::latency_level::kernel);
    table.add(report, dnnopt::profile::latency_level::operator_);
    if (o.latency_table.ends_with(".json"))
      out << dnnopt::profile::to_json(table).dump(1) << "\n";
    else
      out << dnnopt::profile::to_csv(table);
  });
  const std::string control_flow = control_flow_of(session, checked);
  const bool all = o.verbose || o.tables == "all";
  say(o,
      (all ? dnnopt::profile::to_table(report)
           : dnnopt::profile::to_summary(report) + "--tables all prints operators, transfers, types and the clock\n") +
          smaller_work_groups_of(session, checked) + control_flow);
  if (o.roofline) say(o, "\n" + dnnopt::profile::to_table(dnnopt::profile::roofline_of(report)));
  keep_plans(o, *compiling.memory.store);
  if (!o.json_target.empty()) {
    json result = json::parse(dnnopt::profile::to_json(report).dump());
    result.update(generated);
    result.update(checked);
    result["form"] = form_of(o);
    result["wait"] = wait_of(session);
    result["warnings"] = to_json(session.report().warnings);
    write_json(o, result);
  }
  keep_programs(o, session);
  return right ? 0 : 1;
}

}  // namespace tool
