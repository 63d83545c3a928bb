// Runs one model back to back and says how its latency goes on, as TFLite GPU's Fig. 8:
// sustained_latency SPEC SECONDS MODEL [WINDOWS]
//
// SPEC is a device as the command line names one. Inferences follow one another without pause for SECONDS, which are
// cut into WINDOWS (default 20); of each are printed the number of inferences, median, 10th and 99th percentile in ms
// (upload and download included), and clock, temperature and power of the GPU, read once at its end, where the system
// tells them. The last line holds the median of the last window over that of the first.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <dnnopt/backend/measure/opened_device.hpp>
#include <dnnopt/backend/run/executor.hpp>
#include <dnnopt/dnnopt.hpp>
#include <dnnopt/profile/statistics.hpp>
#include <dnnopt/profile/telemetry.hpp>
#include <dnnopt/zoo/generate_inputs.hpp>

namespace {

using namespace dnnopt;
using steady = std::chrono::steady_clock;

std::string told(const std::optional<double>& value) {
  return value ? std::to_string(static_cast<long long>(*value + 0.5)) : "-";
}

double seconds_since(steady::time_point begin) { return std::chrono::duration<double>(steady::now() - begin).count(); }

int sustain(const std::string& spec, double seconds, const std::string& path, int windows) {
  const model m = load(path);
  compile_options options;
  options.opened = std::make_shared<opened_device>(spec, opencl::program_cache_options{});
  const device_info& info = options.opened->context.info();
  session compiled = compile(m, options);
  named_tensors named;
  const std::vector<tensor> inputs = generate_inputs(m.main, 1, {});
  for (std::size_t i = 0; i < inputs.size(); ++i) named.add(m.main.value_at(m.main.inputs()[i]).name, inputs[i]);
  for (int i = 0; i < 10; ++i) (void)compiled.run(named);

  const profile::telemetry_reader telemetry;
  std::printf("%s, driver %s, %s\n", info.name.c_str(), info.driver_version.c_str(), path.c_str());
  std::printf("%9s %11s %9s %9s %9s %8s %6s %6s\n", "until s", "inferences", "p10 ms", "median", "p99", "MHz", "C",
              "W");
  const auto begin = steady::now();
  double first = 0.0;
  double last = 0.0;
  for (int window = 0; window < windows; ++window) {
    std::vector<double> ms;
    do {
      const auto from = steady::now();
      (void)compiled.run(named);
      ms.push_back(seconds_since(from) * 1e3);
    } while (seconds_since(begin) < seconds * (window + 1) / windows);
    const profile::telemetry_sample now = telemetry.read();
    last = profile::exact_quantile(ms, 0.5);
    if (window == 0) first = last;
    std::printf("%9.1f %11zu %9.3f %9.3f %9.3f %8s %6s %6s\n", seconds_since(begin), ms.size(),
                profile::exact_quantile(ms, 0.1), last, profile::exact_quantile(ms, 0.99),
                told(now.gpu_clock_mhz).c_str(), told(now.gpu_temperature_c).c_str(), told(now.gpu_power_w).c_str());
    std::fflush(stdout);
  }
  std::printf("last window over first: %.3f\n", last / first);
  return 0;
}

}  // namespace

int main(int argc, char** arguments) {
  if (argc < 4 || std::atof(arguments[2]) <= 0 || (argc > 4 && std::atoi(arguments[4]) <= 0)) {
    std::fprintf(stderr, "usage: sustained_latency SPEC SECONDS MODEL [WINDOWS]\n");
    return 2;
  }
  try {
    return sustain(arguments[1], std::atof(arguments[2]), arguments[3], argc > 4 ? std::atoi(arguments[4]) : 20);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}
