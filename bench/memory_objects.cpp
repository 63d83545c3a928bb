// Compares what may hold weights and intermediate tensors: memory_objects SPEC fp32|fp16 RUNS MODEL [MODEL ...]
//
// SPEC is a device as the command line names one. Each model is compiled with rows in buffers, with what is
// chosen by default, with weights alone as texels in buffers and in images, and with tensors between kernels as texels
// too. The six take turns, run by run, after ten rounds of warming up; printed are medians and the 10th and 90th
// percentile of an inference in ms (upload and download included), the kernels' own time by their events (a median of
// runs of their own), the largest difference from rows over the largest output, and what was packed. With
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

#include <dnnopt/backend/measure/event_timer.hpp>
#include <dnnopt/backend/measure/opened_device.hpp>
#include <dnnopt/backend/program/arrange_memory.hpp>
#include <dnnopt/backend/run/executor.hpp>
#include <dnnopt/backend/storage/pack.hpp>
#include <dnnopt/dnnopt.hpp>
#include <dnnopt/reference/evaluate_node.hpp>
#include <dnnopt/zoo/generate_inputs.hpp>

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
  std::string name;
  std::unique_ptr<opencl_executor> executor;
  packed_graph packed;
  std::vector<tensor> outputs{};
  std::vector<double> ms{};
  std::vector<double> kernel_ms{};
  std::map<std::string, std::vector<double>> families{};
};

/// As compile() makes it, with or without texels between kernels.
contender make(const std::shared_ptr<const graph>& g, opened_device& device, precision stored, memory_objects objects,
               bool between) {
  codegen::lower_options lowering = codegen::default_lower_options(&device.context.info());
  lowering.memory = objects;
  if (objects == memory_objects::images) lowering.facts = &device.facts();
  contender one{std::string(name_of(objects)), nullptr, {}};
  if (objects == memory_objects::packed || objects == memory_objects::images) one.name += between ? "" : " weights";
  one.packed.g = stored == precision::fp16 ? narrow_storage(g, lowering).g : g;
  if (between) one.packed = pack_storage(one.packed.g, lowering);
  auto made = std::make_shared<program>(make_program(one.packed.g, lowering, false));
  for (const placed_node& step : made->steps)
    one.packed.notes.insert(one.packed.notes.end(), step.lowered.notes.begin(), step.lowered.notes.end());
  memory_options arranging;
  arranging.store = std::make_shared<memory::plan_store>();
  (void)arrange_memory(*made, device.context.info().base_address_alignment_bytes, arranging, 0);
  one.executor = std::make_unique<opencl_executor>(device.context, device.programs, std::move(made),
                                                   &reference::evaluate_values, planner_of(arranging));
  return one;
}

double difference(const std::vector<tensor>& got, const std::vector<tensor>& want) {
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
  const std::vector<tensor> inputs = generate_inputs(m.main, 1, {});
  compile_report report;
  const auto g = std::make_shared<const graph>(optimize(m, {}, report));
  std::vector<contender> all;
  const auto add = [&](memory_objects objects, bool between) {
    all.push_back(make(g, *device, stored, objects, between));
    all.back().outputs = all.back().executor->run(inputs);
  };
  add(memory_objects::buffers, false);
  add(memory_objects::automatic, true);
  for (const bool between : {false, true})
    for (const memory_objects objects : {memory_objects::packed, memory_objects::images}) add(objects, between);
  using steady = std::chrono::steady_clock;
  for (int round = -10; round < runs; ++round)
    for (contender& one : all) {
      const auto begin = steady::now();
      (void)one.executor->run(inputs);
      const double ms = std::chrono::duration<double, std::milli>(steady::now() - begin).count();
      if (round >= 0) one.ms.push_back(ms);
    }
  kernel_times times;
  for (int round = 0; round < std::min(runs, 20); ++round)
    for (contender& one : all) {
      (void)one.executor->run(inputs, &times);
      double sum = 0;
      for (const auto& [family, ms] : times.take(one.executor->executed())) {
        one.families[family].push_back(ms);
        sum += ms;
      }
      one.kernel_ms.push_back(sum);
    }
  std::printf("%s\n", path.c_str());
  for (const contender& one : all) {
    std::printf(
        "  %-15s %8.3f ms (%.3f to %.3f)  kernels %8.3f ms  against rows %.3f  difference %.2g  launches %zu  texels "
        "%zu, images %zu of %.1f MiB  arena %.1f MiB  weights %.1f MiB\n",
        one.name.c_str(), quantile(one.ms, 0.5), quantile(one.ms, 0.1), quantile(one.ms, 0.9),
        quantile(one.kernel_ms, 0.5), quantile(all[0].kernel_ms, 0.5) / quantile(one.kernel_ms, 0.5),
        difference(one.outputs, all[0].outputs), one.executor->predicted_kernels(), one.packed.values,
        one.packed.images, static_cast<double>(one.executor->image_bytes()) / 1048576.0,
        static_cast<double>(one.executor->memory().arena_bytes) / 1048576.0,
        static_cast<double>(one.executor->weight_bytes()) / 1048576.0);
    if (std::getenv("DNNOPT_FAMILIES") != nullptr)
      for (const auto& [family, ms] : one.families)
        std::printf("            %-24s %8.3f ms\n", family.c_str(), quantile(ms, 0.5));
    if (std::getenv("DNNOPT_NOTES") != nullptr)
      for (const std::string& note : one.packed.notes) std::printf("            %s\n", note.c_str());
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
    if (std::getenv("DNNOPT_AS_GPU") != nullptr) chosen.info.form = kernel_form::groups;
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
