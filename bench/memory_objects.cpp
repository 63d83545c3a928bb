// Compares what may hold weights and intermediate tensors: memory_objects SPEC fp32|fp16 RUNS MODEL [MODEL ...]
//
// SPEC is a device as the command line names one. Each model is compiled with rows in buffers, texels in buffers and
// texels in images. The three take turns, run by run, after ten rounds of warming up; printed are medians and the 10th
// and 90th percentile of an inference in ms (upload and download included), the kernels' own time by their events (a
// median of runs of their own), the largest difference from rows over the largest output, and what was packed. With
// DNNOPT_FAMILIES=1 the kernels' time stands by family too, with DNNOPT_NOTES=1 what stayed as it was and why, with
// DNNOPT_AS_GPU=1 a CPU is lowered for as a GPU (results, not times).
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <dnnopt/backend/opencl_executor.hpp>
#include <dnnopt/backend/opened_device.hpp>
#include <dnnopt/dnnopt.hpp>
#include <dnnopt/onnx/generate_inputs.hpp>
#include <dnnopt/profile/event_timer.hpp>

namespace {

using namespace dnnopt;

double quantile(std::vector<double> values, double at) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  return values[static_cast<std::size_t>(at * static_cast<double>(values.size() - 1) + 0.5)];
}

/// Keeps the event of each kernel of a run.
class kernel_times final : public run_observer, private opencl::event_sink {
 public:
  [[nodiscard]] opencl::event_sink* kernel(std::size_t s, std::size_t k, std::uint64_t, std::uint64_t) override {
    next_ = {s, k};
    return this;
  }
  [[nodiscard]] opencl::event_sink* transfer(direction) override { return nullptr; }
  [[nodiscard]] std::int64_t now() const override { return 0; }
  void host_operator(std::size_t, std::int64_t) override {}
  void waited(std::int64_t) override {}

  /// Milliseconds by kernel family, of the run that ended.
  [[nodiscard]] std::map<std::string, double> take(const program& p) {
    std::map<std::string, double> times;
    for (const auto& [where, event] : events_) {
      profile::raw_event raw;
      profile::read_event_stamps(event, raw);
      times[p.steps[where.first].lowered.kernels[where.second].version] +=
          static_cast<double>(raw.end_ns - raw.start_ns) * 1e-6;
    }
    events_.clear();
    return times;
  }

 private:
  void on_command(const opencl::command_record&, cl::Event event) override {
    events_.emplace_back(next_, std::move(event));
  }

  std::pair<std::size_t, std::size_t> next_{};
  std::vector<std::pair<std::pair<std::size_t, std::size_t>, cl::Event>> events_;
};

struct contender {
  memory_objects objects;
  session compiled;
  named_tensors outputs{};
  std::vector<double> ms{};
  std::vector<double> kernel_ms{};
  std::map<std::string, std::vector<double>> families{};
};

double difference(const named_tensors& got, const named_tensors& want) {
  double most = 0;
  double top = 1e-30;
  for (std::size_t o = 0; o < want.size(); ++o) {
    if (want[o].type() != dtype::float32) continue;
    const auto a = got[o].data<float>();
    const auto b = want[o].data<float>();
    for (std::size_t i = 0; i < b.size(); ++i) {
      if (!(std::fabs(a[i] - b[i]) < 1e30F)) return std::nan("");
      most = std::max(most, static_cast<double>(std::fabs(a[i] - b[i])));
      top = std::max(top, static_cast<double>(std::fabs(b[i])));
    }
  }
  return most / top;
}

void compare(const std::string& path, const std::shared_ptr<opened_device>& device, precision stored, int runs) {
  const model m = load(path);
  named_tensors inputs;
  const std::vector<tensor> generated = generate_inputs(m.main, 1, {});
  for (std::size_t i = 0; i < generated.size(); ++i)
    inputs.add(m.main.value_at(m.main.inputs()[i]).name, generated[i]);
  std::vector<contender> all;
  for (const memory_objects objects : {memory_objects::buffers, memory_objects::packed, memory_objects::images}) {
    compile_options options;
    options.opened = device;
    options.precision = stored;
    options.memory_objects = objects;
    all.push_back({objects, compile(m, options)});
    all.back().outputs = all.back().compiled.run(inputs);
  }
  using steady = std::chrono::steady_clock;
  for (int round = -10; round < runs; ++round)
    for (contender& one : all) {
      const auto begin = steady::now();
      (void)one.compiled.run(inputs);
      const double ms = std::chrono::duration<double, std::milli>(steady::now() - begin).count();
      if (round >= 0) one.ms.push_back(ms);
    }
  kernel_times times;
  for (int round = 0; round < std::min(runs, 20); ++round)
    for (contender& one : all) {
      (void)one.compiled.run(inputs, &times);
      double sum = 0;
      for (const auto& [family, ms] : times.take(one.compiled.executor()->executed())) {
        one.families[family].push_back(ms);
        sum += ms;
      }
      one.kernel_ms.push_back(sum);
    }
  std::printf("%s\n", path.c_str());
  for (const contender& one : all) {
    const compile_report& report = one.compiled.report();
    std::printf(
        "  %-8s  %8.3f ms (%.3f to %.3f)  kernels %8.3f ms  against rows %.3f  difference %.2g  launches %zu  texels "
        "%zu, images %zu of %.1f MiB  arena %.1f MiB  weights %.1f MiB\n",
        std::string(name_of(one.objects)).c_str(), quantile(one.ms, 0.5), quantile(one.ms, 0.1), quantile(one.ms, 0.9),
        quantile(one.kernel_ms, 0.5), quantile(all[0].kernel_ms, 0.5) / quantile(one.kernel_ms, 0.5),
        difference(one.outputs, all[0].outputs), one.compiled.executor()->predicted_kernels(), report.packed_values,
        report.image_values, static_cast<double>(one.compiled.executor()->image_bytes()) / 1048576.0,
        static_cast<double>(one.compiled.executor()->memory().arena_bytes) / 1048576.0,
        static_cast<double>(one.compiled.executor()->weight_bytes()) / 1048576.0);
    if (std::getenv("DNNOPT_FAMILIES") != nullptr)
      for (const auto& [family, ms] : one.families)
        std::printf("            %-24s %8.3f ms\n", family.c_str(), quantile(ms, 0.5));
    if (std::getenv("DNNOPT_NOTES") != nullptr)
      for (const std::string& note : report.memory_notes) std::printf("            %s\n", note.c_str());
  }
  std::fflush(stdout);
}

}  // namespace

int main(int count, char** arguments) {
  if (count < 5) {
    std::fprintf(stderr, "usage: memory_objects SPEC fp32|fp16 RUNS MODEL [MODEL ...]\n");
    return 2;
  }
  try {
    opencl::device chosen = opencl::select_device(arguments[1]);
    if (std::getenv("DNNOPT_AS_GPU") != nullptr) chosen.info.type = device_type::gpu;
    std::printf("%s, driver %s\n", chosen.info.name.c_str(), chosen.info.driver_version.c_str());
    const auto device = std::make_shared<opened_device>(std::move(chosen));
    for (int i = 4; i < count; ++i)
      compare(arguments[i], device, std::string(arguments[2]) == "fp16" ? precision::fp16 : precision::fp32,
              std::atoi(arguments[3]));
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}
