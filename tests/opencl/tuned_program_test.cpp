// What is tuned is what runs: tune looks at the kernels that compile makes, in every storage.
#include <catch2/catch.hpp>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include <dnnopt/backend/run/executor.hpp>
#include <dnnopt/model.hpp>
#include <dnnopt/session.hpp>
#include <dnnopt/tune.hpp>

using namespace dnnopt;

namespace {

/// Entry and source of each launch of a program by the node of its step.
std::map<node_id, std::vector<std::string>> launches_of(const program& p) {
  std::map<node_id, std::vector<std::string>> launches;
  for (const placed_node& step : p.steps)
    for (const auto* plans : {&step.lowered.prepare, &step.lowered.kernels})
      for (const codegen::kernel_plan& plan : *plans)
        launches[step.id].push_back(plan.version + "\n" + std::string(plan.source));
  return launches;
}

}  // namespace

TEST_CASE("tune and compile choose the same kernel for every launch", "[opencl]") {
  compile_options options;
  const bool small = GENERATE(false, true);
  options.precision = small ? precision::fp16 : precision::fp32;
  options.memory_objects = small ? memory_objects::packed : memory_objects::automatic;
  options.form = small ? kernel_form::groups : kernel_form::native;
  opencl::program_cache_options programs;
  programs.on_disk = false;
  options.opened = std::make_shared<opened_device>("opencl", programs);
  const model m = load(std::string(DNNOPT_SOURCE_DIR) + "/bench/light/light_squeezenet.onnx");
  const session s = compile(m, options);
  compile_report report;
  const auto optimized = std::make_shared<const graph>(optimize(m, options, report));
  const detail::placed_graph tuned(*options.opened, optimized, options, nullptr, options.require_device);
  CHECK(launches_of(tuned.maker->placed()).size() > 10);
  CHECK(launches_of(tuned.maker->placed()) == launches_of(s.executor()->executed()));
}
