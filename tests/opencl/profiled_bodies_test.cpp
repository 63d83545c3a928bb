// Profiles of control flow: the commands of bodies are timed like those of the model's own nodes.
#include <catch2/catch.hpp>

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>

#include <dnnopt/backend/measure/profiled_run.hpp>
#include <dnnopt/backend/run/executor.hpp>
#include <dnnopt/dnnopt.hpp>
#include <dnnopt/profile/profiler.hpp>

#include "../support/flow_network.hpp"
#include "../support/shared_device.hpp"
#include "../support/small_network.hpp"

using namespace dnnopt;
using dnnopt::testing::flow_scope;
using dnnopt::testing::flow_value;
using dnnopt::testing::flow_values;
using dnnopt::testing::ramp;

namespace {

/// A loop of `trips` turns over x with a branch in it that the state decides, behind a product.
model loop_with_branch() {
  flow_scope main;
  const flow_value trips = main.input(dtype::int64, shape{}, "trips");
  const flow_value x = main.input(dtype::float32, shape{4, 4}, "x");
  const flow_value product = main.node("MatMul", {x, x});
  const flow_values made = main.loop(trips, {}, {product}, 1, [&](flow_scope& b) {
    (void)b.input(dtype::int64, shape{});
    const flow_value go = b.input(dtype::boolean, shape{});
    const flow_value state = b.input();
    attribute_map flat;
    flat.set("keepdims", std::int64_t{0});
    const flow_value large = b.node("Greater", {b.node("ReduceMax", {state}, flat), b.scalar(4)});
    const flow_value next = b.branches(
        large, 1, [&](flow_scope& then) { then.output(then.node("Sqrt", {then.node("Abs", {state})})); },
        [&](flow_scope& other) {
          other.output(other.node("Softplus", {other.node("Add", {state, state})}));
        })[0];
    b.output(go);
    b.output(next);
  });
  main.output(made[0]);
  return main.finish();
}

/// The bodies that a launch's name begins with, without the numbers of their nodes.
std::string bodies_of(std::string name) {
  const std::size_t end = name.rfind('/');
  name.resize(end == std::string::npos ? 0 : end);
  std::erase_if(name, [](char c) { return c >= '0' && c <= '9'; });
  return name;
}

}  // namespace

TEST_CASE("a profile has the kernels of bodies, as often as they ran", "[opencl][profile][control_flow]") {
  const model m = loop_with_branch();
  for (const kernel_form form : {kernel_form::vectors, kernel_form::groups}) {
    compile_options options;
    options.opened = dnnopt::testing::shared_device();
    options.form = form;
    options.require_device = true;
    session s = compile(m, options);
    const named_tensors inputs{{"trips", tensor::scalar(std::int64_t{8})}, {"x", ramp({4, 4})}};
    (void)s.run(inputs);
    profile::profiler profiler;
    profiled_run observer(profiler, s.executor()->executed());
    constexpr std::size_t runs = 3;
    std::uint64_t timed = 0;
    for (std::size_t i = 0; i < runs; ++i) {
      observer.begin();
      (void)s.run(inputs, &observer);
      observer.end();
    }
    const profile::profile_report report = profiler.report();
    std::map<std::string, std::size_t> counts;
    for (const profile::kernel_event& event : report.events)
      if (event.kind == profile::event_kind::kernel) {
        ++timed;
        ++counts[bodies_of(report.launches[event.launch].name)];
      }
    // Every launch of a run is timed, those of bodies included.
    CHECK(timed == runs * s.kernels());
    CHECK(counts[""] > 0);
    CHECK(counts["Loop.body"] >= runs * 8);
    CHECK(counts["Loop.body/If.then_branch"] > 0);
    CHECK(counts["Loop.body/If.else_branch"] > 0);
    CHECK(counts["Loop.body/If.then_branch"] + counts["Loop.body/If.else_branch"] >= runs * 8);
    CHECK(std::any_of(report.by_kernel.begin(), report.by_kernel.end(),
                      [](const auto& row) { return bodies_of(row.name) == "Loop.body/If.else_branch"; }));
  }
}
