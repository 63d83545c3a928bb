// What latency tables predict: every kernel of some models is profiled by itself, and the table's prediction of each
// model is held against its measured end-to-end latency. On request all that could tell why it errs is written out.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <dnnopt/backend/measure/kernel_injector.hpp>
#include <dnnopt/backend/measure/lone_kernels.hpp>
#include <dnnopt/profile/report/latency_table.hpp>
#include <dnnopt/profile/report/latency_table_json.hpp>
#include <nlohmann/json.hpp>

#include "profile_model.hpp"

namespace measure {

namespace {

using namespace dnnopt;

/// An unobserved inference but for the host's clock before each enqueue.
class stamped_run final : public run_observer {
 public:
  void clear() { enqueued_.clear(); }
  [[nodiscard]] bool wants_events() const override { return false; }
  [[nodiscard]] opencl::event_sink* kernel(std::size_t, std::size_t, std::uint64_t, std::uint64_t) override {
    enqueued_.push_back(profile::host_now_ns());
    return nullptr;
  }
  [[nodiscard]] std::int64_t now() const override { return profile::host_now_ns(); }
  void waited(std::int64_t begin) override { waits_at_ = begin; }

  [[nodiscard]] const std::vector<std::int64_t>& enqueued() const noexcept { return enqueued_; }
  [[nodiscard]] std::int64_t waits_at() const noexcept { return waits_at_; }

 private:
  std::vector<std::int64_t> enqueued_;
  std::int64_t waits_at_ = 0;
};

/// A whole inference whose kernels wait behind a long one, so that the host does not show in their times; optionally
/// only some of them carry events.
class held_run final : public run_observer, private opencl::event_sink {
 public:
  held_run(profile::kernel_injector& injector, std::size_t kernels) : injector_(&injector), kernels_(kernels) {}
  void begin(bool all) {
    all_ = all;
    seen_ = 0;
    events_.clear();
  }
  void before(std::size_t, std::size_t, opencl::command_queue& queue) override {
    if (seen_ != 0 || !events_.empty()) return;
    injector_->hold(queue, this);
    held_ns_ = profile::host_now_ns();
  }
  [[nodiscard]] opencl::event_sink* kernel(std::size_t, std::size_t, std::uint64_t, std::uint64_t) override {
    last_ns_ = profile::host_now_ns();
    return ++seen_ == kernels_ || all_ ? this : nullptr;
  }

  /// Nanoseconds that the host took from the long kernel to the last one.
  [[nodiscard]] std::int64_t host_ns() const noexcept { return last_ns_ - held_ns_; }
  /// START and END of each event after the long kernel's, as from its END; device nanoseconds.
  [[nodiscard]] std::vector<std::pair<std::int64_t, std::int64_t>> stamps() const {
    std::vector<std::pair<std::int64_t, std::int64_t>> result;
    profile::raw_event held, raw;
    profile::read_event_stamps(events_.at(0), held);
    for (std::size_t i = 1; i < events_.size(); ++i) {
      profile::read_event_stamps(events_[i], raw);
      result.emplace_back(raw.start_ns - held.end_ns, raw.end_ns - held.end_ns);
    }
    return result;
  }

 private:
  void on_command(const opencl::command_record&, cl::Event event) override { events_.push_back(std::move(event)); }

  profile::kernel_injector* injector_;
  std::size_t kernels_;
  bool all_ = false;
  std::size_t seen_ = 0;
  std::int64_t held_ns_ = 0;
  std::int64_t last_ns_ = 0;
  std::vector<cl::Event> events_;
};

/// End-to-end nanoseconds of unobserved inferences, in order.
std::vector<double> latencies(prepared_model& model, int most, double seconds) {
  std::vector<double> times;
  const std::int64_t until = profile::host_now_ns() + static_cast<std::int64_t>(seconds * 1e9);
  for (int i = 0; i < most && (i < 20 || profile::host_now_ns() < until); ++i) {
    const std::int64_t begin = profile::host_now_ns();
    (void)model.session.run(model.inputs);
    if (i >= 5) times.push_back(static_cast<double>(profile::host_now_ns() - begin));
  }
  return times;
}

nlohmann::json as_json(const kernel_stream& stream) {
  std::vector<double> enqueues = stream.enqueue_ns;
  return {{"few", stream.few},
          {"many", stream.many},
          {"few_ns", stream.few_ns},
          {"many_ns", stream.many_ns},
          {"enqueue_p50_ns", enqueues.empty() ? 0.0 : profile::exact_quantile(enqueues, 0.5)}};
}

/// All that a model shows of itself: host times of real inferences, kernels held back, kernels one by one by events, in
/// streams, and in streams with other memory in between.
nlohmann::json observed(const opencl::context& where, prepared_model& model, lone_kernel_meter& meter,
                        cache_sweep& sweep) {
  const program& executed = model.session.executor()->executed();
  const auto run = [&](run_observer* observer) { (void)model.session.run(model.inputs, observer); };
  nlohmann::json all;

  stamped_run stamped;
  nlohmann::json hosts = nlohmann::json::array();
  for (int i = 0; i < 30; ++i) {
    stamped.clear();
    const std::int64_t begin = profile::host_now_ns();
    run(&stamped);
    const std::int64_t end = profile::host_now_ns();
    std::vector<std::int64_t> at;
    for (const std::int64_t ns : stamped.enqueued()) at.push_back(ns - begin);
    if (i >= 10) hosts.push_back({{"enqueued", at}, {"waits_at", stamped.waits_at() - begin}, {"end", end - begin}});
  }
  all["hosts"] = std::move(hosts);

  opencl::command_queue queue = where.make_queue({true, 0});
  profile::kernel_injector injector(where.handle(), where.where().handle());
  const std::size_t kernels = stamped.enqueued().size();
  held_run held(injector, kernels);
  for (const bool every : {false, true}) {
    double hold_ns = 4e3 * static_cast<double>(kernels) * (every ? 4.0 : 1.5);
    injector.prepare_hold(queue, hold_ns);
    nlohmann::json runs = nlohmann::json::array();
    for (int i = 0; i < 13; ++i) {
      held.begin(every);
      run(&held);
      if (static_cast<double>(held.host_ns()) > 0.8 * hold_ns && hold_ns < 50e6)
        injector.prepare_hold(queue, hold_ns = 1.5 * static_cast<double>(held.host_ns()));
      else if (i >= 3)
        runs.push_back({{"host_ns", held.host_ns()}, {"hold_ns", hold_ns}, {"stamps", held.stamps()}});
    }
    all[every ? "held_with_events" : "held"] = std::move(runs);
  }

  nlohmann::json rows = nlohmann::json::array();
  for (std::size_t s = 0; s < executed.steps.size(); ++s)
    for (std::size_t k = 0; k < executed.steps[s].lowered.kernels.size(); ++k) {
      const profile::latency_key key =
          profile::key_of(describe_launch(executed, executed.steps[s], k), where.info().name);
      nlohmann::json row = {{"step", s},
                            {"kernel", k},
                            {"operators", key.operators},
                            {"attributes", key.attributes},
                            {"shapes", key.shapes}};
      lone_kernel_run lone;
      lone.choose(s, k, 3, 15);
      run(&lone);
      row["events_ns"] = lone.take_times();
      row["stream"] = as_json(meter.measure_stream(run, s, k));
      row["swept"] = as_json(meter.measure_stream(run, s, k, &sweep));
      rows.push_back(std::move(row));
    }
  all["kernels"] = std::move(rows);
  return all;
}

}  // namespace

int prediction(const std::vector<std::string>& arguments) {
  if (arguments.size() < 2) throw std::invalid_argument("prediction DEVICE [SWEEP_MB] [DUMP.json] MODEL...");
  const auto device = std::make_shared<opened_device>(arguments[0]);
  std::printf("device: %s, driver %s\n", device->context.info().name.c_str(),
              device->context.info().driver_version.c_str());
  lone_kernel_options options;
  std::size_t first = 1;
  if (arguments[first].find_first_not_of("0123456789") == std::string::npos)
    options.sweep_bytes = std::stoul(arguments[first++]) << 20;
  std::string dump;
  if (arguments.at(first).ends_with(".json")) dump = arguments[first++];
  lone_kernel_meter meter(device->context, options);
  std::optional<cache_sweep> sweep;
  nlohmann::json dumped;
  if (!dump.empty()) {
    sweep.emplace(device->context, std::size_t{128} << 20, sweep_access::read);
    dumped = {
        {"gap_ns", meter.gap_ns()}, {"sweep_ns", meter.measure_sweep(*sweep)}, {"models", nlohmann::json::array()}};
  }
  std::printf("kernels by %s, gap between kernels %.2f us\n", meter.by_events() ? "their events" : "streams of each",
              meter.gap_ns() * 1e-3);
  std::printf("%-34s %8s %6s %12s %12s %12s %8s  %s\n", "model", "launches", "new", "kernels us", "predicted us",
              "measured us", "error %", "of the turns");
  profile::latency_table table;
  std::vector<double> errors;
  for (std::size_t m = first; m < arguments.size(); ++m) {
    prepared_model model(arguments[m], device);
    const program& executed = model.session.executor()->executed();
    const auto run = [&](run_observer* observer) { (void)model.session.run(model.inputs, observer); };
    run(nullptr);
    const std::size_t before = table.size();
    const opencl_executor& executor = *model.session.executor();
    meter.measure_kernels(executed, run, executor.weight_bytes() + executor.memory().arena_bytes, table);
    // A host's speed changes within seconds by more than the error that is looked for. So what launches cost is
    // measured just before and just after the inferences that the prediction is held against, in turns, and the error
    // is the median of the turns' errors; none of the inferences are part of what the prediction is made of.
    std::vector<double> times, predictions, measured_in, errors_in;
    profile::latency_table::prediction predicted;
    const auto predict = [&] {
      table.launches = meter.measure_launches(executed, run);
      predicted = table.predict(launch_keys(executed, device->context.info().name));
      return predicted.e2e_ns;
    };
    double before_turn = predict();
    std::size_t launches = 0;  // of an inference, which lone kernels and launches that stand for others are not
    for (int turn = 0; turn < 9; ++turn) {
      const std::vector<double> some = latencies(model, 120, 0.5);
      measured_in.push_back(median_of(some).median);
      times.insert(times.end(), some.begin(), some.end());
      launches = model.session.kernels();
      const double after_turn = predict();
      predictions.push_back(0.5 * (before_turn + after_turn));
      errors_in.push_back(predictions.back() / measured_in.back() - 1.0);
      before_turn = after_turn;
    }
    const double measured = profile::exact_quantile(measured_in, 0.5);
    const double prediction_ns = profile::exact_quantile(predictions, 0.5);
    const double error = profile::exact_quantile(errors_in, 0.5);
    errors.push_back(std::abs(error));
    std::printf("%-34s %8zu %6zu %12.1f %12.1f %12.1f %+8.2f  %+6.1f to %+.1f%s\n", model.name().c_str(), launches,
                table.size() - before, predicted.kernels_ns * 1e-3, prediction_ns * 1e-3, measured * 1e-3,
                100.0 * error, 100.0 * *std::min_element(errors_in.begin(), errors_in.end()),
                100.0 * *std::max_element(errors_in.begin(), errors_in.end()),
                predicted.missing.empty() ? "" : "  (keys missing)");
    const profile::launch_model& l = table.launches;
    std::printf("  us: prologue %.1f, inputs %.1f, enqueue %.2f, gap %.2f, epilogue %.1f; host operators %zu\n",
                l.prologue_ns * 1e-3, l.input_ns * 1e-3, l.enqueue_ns * 1e-3, l.gap_ns * 1e-3, l.epilogue_ns * 1e-3,
                model.session.host_ops());
    std::fflush(stdout);
    if (dump.empty()) continue;
    nlohmann::json row = observed(device->context, model, meter, *sweep);
    row["model"] = model.name();
    row["launches"] = profile::to_json(table)["launches"];
    row["predicted_ns"] = predictions;
    row["measured_ns"] = measured_in;
    row["kernels_ns"] = predicted.kernels_ns;
    row["e2e_ns"] = times;
    row["e2e_after_ns"] = latencies(model, 200, 1.0);
    dumped["models"].push_back(std::move(row));
    std::ofstream(dump) << dumped.dump();
  }
  std::printf("error of %zu models: median %.2f%%, worst %.2f%%\n", errors.size(),
              100.0 * profile::exact_quantile(errors, 0.5), 100.0 * *std::max_element(errors.begin(), errors.end()));
  if (!dump.empty()) std::printf("raw times are in %s\n", dump.c_str());
  return 0;
}

}  // namespace measure
