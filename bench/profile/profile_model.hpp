// Owns what the measurements of the profiler on whole models share: a model made ready, medians with intervals.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <dnnopt/backend/measure/event_timer.hpp>
#include <dnnopt/backend/measure/opened_device.hpp>
#include <dnnopt/backend/run/executor.hpp>
#include <dnnopt/backend/run/observer.hpp>
#include <dnnopt/dnnopt.hpp>
#include <dnnopt/profile/clocks/host_clock.hpp>
#include <dnnopt/profile/statistics.hpp>
#include <dnnopt/zoo/generate_inputs.hpp>

namespace measure {

/// A model compiled for a device, with generated inputs; symbolic dims are 1.
struct prepared_model {
  dnnopt::model source;
  dnnopt::session session;
  dnnopt::named_tensors inputs;

  prepared_model(const std::string& path, std::shared_ptr<dnnopt::opened_device> device)
      : source(dnnopt::load(path)), session(dnnopt::compile(source, options_of(std::move(device)))) {
    const dnnopt::graph& g = source.main;
    dnnopt::symbol_values ones;
    for (std::uint32_t symbol = 0; symbol < g.expressions().symbol_count(); ++symbol) ones.bind(symbol, 1);
    const std::vector<dnnopt::tensor> generated = dnnopt::generate_inputs(g, 0, ones);
    for (std::size_t i = 0; i < g.inputs().size(); ++i) inputs.add(g.value_at(g.inputs()[i]).name, generated.at(i));
  }

  /// Name of the file without its folder and ending.
  [[nodiscard]] std::string name() const { return source.path.stem().string(); }

 private:
  static dnnopt::compile_options options_of(std::shared_ptr<dnnopt::opened_device> device) {
    dnnopt::compile_options options;
    options.opened = std::move(device);
    return options;
  }
};

/// A median and its distribution-free 95% interval (order statistics).
struct median_interval {
  double median = 0.0;
  double low = 0.0;
  double high = 0.0;
  [[nodiscard]] double width() const noexcept { return high - low; }
};

/// @pre values is not empty. O(n log n).
[[nodiscard]] inline median_interval median_of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const double n = static_cast<double>(values.size());
  const auto at = [&](double rank) { return values[static_cast<std::size_t>(std::clamp(rank, 0.0, n - 1.0))]; };
  return {at(n / 2.0), at(n / 2.0 - 0.98 * std::sqrt(n)), at(n / 2.0 + 0.98 * std::sqrt(n))};
}

/// Sees a run without timing anything: its commands go to the profiling queue and make no event.
class silent_observer : public dnnopt::run_observer {
 public:
  dnnopt::opencl::event_sink* kernel(std::size_t, std::size_t, std::uint64_t, std::uint64_t) override {
    return nullptr;
  }
};

int overhead(const std::vector<std::string>& arguments);
int prediction(const std::vector<std::string>& arguments);

}  // namespace measure
