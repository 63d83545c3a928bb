// Clones of sessions: one copy of weights and programs, and everything that an inference writes for each of them.
#include <catch2/catch.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <dnnopt/backend/measure/opened_device.hpp>
#include <dnnopt/backend/opencl/context.hpp>
#include <dnnopt/backend/run/executor.hpp>
#include <dnnopt/dnnopt.hpp>

#include "../support/flow_network.hpp"
#include "../support/shared_device.hpp"
#include "../support/small_network.hpp"
#include "optimized_kernels.hpp"
#include "runtime_fixture.hpp"

using namespace dnnopt;
using dnnopt::opencl::testing::code;
using dnnopt::opencl::testing::code_of;
using dnnopt::opencl::testing::wait_for_optimized;
using dnnopt::testing::flow_scope;
using dnnopt::testing::flow_value;
using dnnopt::testing::network;
using dnnopt::testing::ramp;
using dnnopt::testing::shared_device;

namespace {

/// Weights that are packed, of more than a megabyte, and dims that a run tells.
model with_weights() {
  network n;
  const index_expr rows = n.g.expressions().symbol("rows");
  const value_id hidden = n.node("Relu", {n.node("MatMul", {n.input("x", {rows, 300}), n.weights({300, 900})})});
  return n.finish(n.node("Softmax", {n.node("MatMul", {hidden, n.weights({900, 20})})}));
}

session on_device(const model& m, std::shared_ptr<opened_device> device = shared_device(),
                  std::string passes = "default") {
  compile_options options;
  options.opened = std::move(device);
  options.passes = std::move(passes);
  return compile(m, options);
}

void check_same(const named_tensors& got, const named_tensors& want) {
  REQUIRE(got.size() == want.size());
  for (std::size_t i = 0; i < got.size(); ++i) CHECK(are_same(got[i], want[i]));
}

std::uint64_t live_bytes(const opened_device& device) { return device.context.memory().figures().live_bytes; }

}  // namespace

TEST_CASE("a clone uses the weights and programs that are there, and memory of its own") {
  const model m = with_weights();
  const auto device = shared_device();
  std::optional<session> origin = on_device(m);
  const std::uint64_t weights = origin->executor()->weight_bytes();
  REQUIRE(weights > (1U << 20U));
  const std::uint64_t builds = device->programs.figures().builds;
  const std::uint64_t before = live_bytes(*device);
  session clone = origin->clone();
  session second = clone.clone();
  CHECK(live_bytes(*device) == before);
  CHECK(device->programs.figures().builds == builds);
  CHECK(clone.report().builds == 0);
  CHECK(clone.executor()->weight_bytes() == weights);
  for (const std::int64_t rows : {3, 7, 1, 3}) {
    const named_tensors inputs{{"x", ramp({rows, 300})}};
    const named_tensors want = origin->run(inputs);
    check_same(clone.run(inputs), want);
  }
  // What each of them has is an arena and memory for inputs and outputs.
  CHECK(live_bytes(*device) < before + weights / 2);
  const named_tensors inputs{{"x", ramp({4, 300})}};
  const named_tensors want = origin->run(inputs);
  origin.reset();
  check_same(clone.run(inputs), want);
  check_same(second.run(inputs), want);
  clone = std::move(second);
  check_same(clone.run(inputs), want);
}

TEST_CASE("the device's memory is given back with the last of a session and its clones") {
  opencl::program_cache_options programs;
  programs.on_disk = false;
  const auto device = std::make_shared<opened_device>("opencl", programs);
  const named_tensors inputs{{"x", ramp({4, 300})}};
  {
    session first = on_device(with_weights(), device);
    session clone = first.clone();
    (void)clone.run(inputs);
    (void)first.run(inputs);
    first = on_device(with_weights(), device);
    (void)clone.run(inputs);
  }
  CHECK(live_bytes(*device) == 0);
}

TEST_CASE("a session and its clones run at the same time in threads of their own") {
  session origin = on_device(with_weights());
  std::vector<session> sessions;
  for (int i = 0; i < 3; ++i) sessions.push_back(origin.clone());
  sessions.push_back(std::move(origin));
  std::vector<named_tensors> inputs;
  std::vector<named_tensors> want;
  session judge = on_device(with_weights());
  for (std::int64_t rows = 1; rows <= 4; ++rows) {
    inputs.push_back({{"x", ramp({rows * 5, 300})}});
    want.push_back(judge.run(inputs.back()));
  }
  std::vector<std::size_t> wrong(sessions.size(), 0);
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < sessions.size(); ++t)
    threads.emplace_back([&, t] {
      for (std::size_t run = 0; run < 40; ++run) {
        const std::size_t i = (run + t) % inputs.size();
        const named_tensors got = sessions[t].run(inputs[i]);
        wrong[t] += are_same(got[0], want[i][0]) ? 0 : 1;
      }
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == std::vector<std::size_t>(sessions.size(), 0));
}

TEST_CASE("programs for values of inputs are cloned, and those made later are each one's own") {
  network n;
  const value_id x = n.input("x", {3, 4, 5});
  const value_id axes = n.g.add_input("axes", dtype::int64, shape{1});
  const value_id raised = n.node("Max", {x, n.weights({5})});
  const model m = n.finish(n.node("ReduceMax", {raised, axes}));
  session origin = on_device(m);
  REQUIRE(origin.report().specialized_inputs == std::vector<std::string>{"axes"});
  const auto inputs_of = [](std::int64_t axis) {
    return named_tensors{{"x", ramp({3, 4, 5})},
                         {"axes", tensor::of<std::int64_t>({1}, std::vector<std::int64_t>{axis})}};
  };
  session unused = origin.clone();
  const named_tensors first = origin.run(inputs_of(0));
  session clone = origin.clone();
  CHECK(clone.report().specialized_programs == 1);
  check_same(clone.run(inputs_of(0)), first);
  CHECK(clone.report().specialized_programs == 1);
  const named_tensors second = clone.run(inputs_of(2));
  CHECK(clone.report().specialized_programs == 2);
  CHECK(origin.report().specialized_programs == 1);
  check_same(origin.run(inputs_of(2)), second);
  check_same(unused.run(inputs_of(0)), first);
}

TEST_CASE("a clone enters bodies of control flow by programs of its own") {
  flow_scope main;
  const flow_value take = main.input(dtype::boolean, shape{}, "take");
  const flow_value x = main.input(dtype::float32, shape{3, 4}, "x");
  main.output(main.branches(
      take, 1, [&](flow_scope& b) { b.output(b.node("Tanh", {x})); },
      [&](flow_scope& b) {
        b.output(b.node("Add", {x, x}));
      })[0]);
  const model m = main.finish();
  const auto inputs_of = [](bool taken) { return named_tensors{{"take", tensor::scalar(taken)}, {"x", ramp({3, 4})}}; };
  std::optional<session> origin = on_device(m, shared_device(), "default,-inline_branches");
  const named_tensors yes = origin->run(inputs_of(true));
  session clone = origin->clone();
  const named_tensors no = clone.run(inputs_of(false));
  check_same(origin->run(inputs_of(false)), no);
  origin.reset();
  check_same(clone.run(inputs_of(true)), yes);
}

TEST_CASE("what is bound in a session is not bound in its clone") {
  session origin = on_device(with_weights());
  const named_tensors inputs{{"x", ramp({4, 300})}};
  const named_tensors want = origin.run(inputs);
  const cl::Context context(origin.context()->handle(), true);
  const cl::Buffer memory(context, CL_MEM_READ_WRITE, 4 * 300 * sizeof(float));
  origin.bind("x", memory, dim_list{4, 300});
  session clone = origin.clone();
  CHECK(clone.bindings().empty());
  check_same(clone.run(inputs), want);
  CHECK(code_of([&] { (void)clone.run({}); }) == code(errc::missing_input));
  CHECK(code_of([&] { (void)origin.run(inputs); }) == code(errc::invalid_argument));
}

TEST_CASE("a clone of quick kernels gets optimized ones, and one of optimized kernels has them") {
  const dnnopt::opencl::testing::temporary_folder folder;
  const auto device = std::make_shared<opened_device>("opencl", dnnopt::opencl::testing::kept_by_driver(folder));
  compile_options options;
  options.opened = device;
  options.first_start = first_start::quick;
  session origin = compile(with_weights(), options);
  const named_tensors inputs{{"x", ramp({4, 300})}};
  session early = origin.clone();
  (void)early.run(inputs);
  (void)origin.run(inputs);
  REQUIRE(early.executor()->figures().quick_kernels);
  REQUIRE(wait_for_optimized(origin));
  REQUIRE(wait_for_optimized(early));
  const named_tensors want = on_device(with_weights()).run(inputs);
  session late = origin.clone();
  CHECK(late.optimizing().done);
  for (session* const one : {&early, &origin, &late}) {
    check_same(one->run(inputs), want);
    CHECK_FALSE(one->executor()->figures().quick_kernels);
  }
}

TEST_CASE("a session of the reference backend has clones too") {
  compile_options options;
  options.device = "reference";
  std::optional<session> origin = compile(with_weights(), options);
  const named_tensors inputs{{"x", ramp({4, 300})}};
  const named_tensors want = origin->run(inputs);
  session clone = origin->clone();
  origin.reset();
  check_same(clone.run(inputs), want);
}
