// What latency tables predict: every kernel of some models is profiled by itself, and the table's prediction of each
// model is held against its measured end-to-end latency.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <dnnopt/backend/lone_kernels.hpp>
#include <dnnopt/profile/latency_table.hpp>

#include "profile_model.hpp"

namespace measure {

int prediction(const std::vector<std::string>& arguments) {
  using namespace dnnopt;
  if (arguments.size() < 2) throw std::invalid_argument("prediction DEVICE [SWEEP_MB] MODEL...");
  const auto device = std::make_shared<opened_device>(arguments[0]);
  std::printf("device: %s, driver %s\n", device->context.info().name.c_str(),
              device->context.info().driver_version.c_str());
  std::printf("%-34s %8s %6s %12s %12s %12s %8s\n", "model", "launches", "new", "kernels us", "predicted us",
              "measured us", "error %");
  profile::latency_table table;
  lone_kernel_options lone;
  std::size_t first = 1;
  if (arguments[1].find_first_not_of("0123456789") == std::string::npos) {
    lone.sweep_bytes = std::stoul(arguments[1]) << 20;
    ++first;
  }
  {
    opencl::command_queue queue = device->context.make_queue({true, 0});
    profile::kernel_injector injector(device->context.handle(), device->context.where().handle());
    lone.event_bias_ns = injector.measure_event_bias(queue);
  }
  std::printf("an event is %.0f ns too long\n", lone.event_bias_ns);
  std::vector<double> errors;
  for (std::size_t m = first; m < arguments.size(); ++m) {
    prepared_model model(arguments[m], device);
    const program& executed = model.session.executor()->executed();
    const auto run = [&](run_observer* observer) { (void)model.session.run(model.inputs, observer); };
    run(nullptr);
    const std::size_t before = table.size();
    table.launches = measure_launches(device->context, executed, run);
    measure_lone_kernels(device->context, executed, run, table, lone);
    const profile::latency_table::prediction predicted =
        table.predict(launch_keys(executed, device->context.info().name));
    std::vector<double> times;
    const std::int64_t until = profile::host_now_ns() + 3'000'000'000;
    for (int i = 0; i < 500 && (i < 20 || profile::host_now_ns() < until); ++i) {
      const std::int64_t begin = profile::host_now_ns();
      run(nullptr);
      if (i >= 5) times.push_back(static_cast<double>(profile::host_now_ns() - begin));
    }
    const double measured = median_of(times).median;
    const double error = predicted.e2e_ns / measured - 1.0;
    errors.push_back(std::abs(error));
    std::printf("%-34s %8zu %6zu %12.1f %12.1f %12.1f %+8.2f%s\n", model.name().c_str(), model.session.kernels(),
                table.size() - before, predicted.kernels_ns * 1e-3, predicted.e2e_ns * 1e-3, measured * 1e-3,
                100.0 * error, predicted.missing.empty() ? "" : "  (keys missing)");
    const profile::launch_model& l = table.launches;
    std::printf("  us: prologue %.1f, enqueue %.2f, gap %.2f, epilogue %.1f; host operators %zu\n",
                l.prologue_ns * 1e-3, l.enqueue_ns * 1e-3, l.gap_ns * 1e-3, l.epilogue_ns * 1e-3,
                model.session.host_ops());
    std::fflush(stdout);
  }
  std::printf("error of %zu models: median %.2f%%, worst %.2f%%\n", errors.size(), 100.0 * median_of(errors).median,
              100.0 * *std::max_element(errors.begin(), errors.end()));
  return 0;
}

}  // namespace measure
