#include <catch2/catch.hpp>

#include <cmath>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include <dnnopt/backend/measure/check_kernels.hpp>
#include <dnnopt/backend/measure/kernel_injector.hpp>
#include <dnnopt/backend/measure/lone_kernels.hpp>
#include <dnnopt/backend/run/executor.hpp>
#include <dnnopt/dnnopt.hpp>

using namespace dnnopt;

namespace {

/// y = Softmax(Relu(Conv(x))): more than one kernel.
model small_model() {
  model m;
  m.ops = standard_ops();
  graph& g = m.main;
  const auto x = g.add_input("x", dtype::float32, shape{1, 4, 16, 16});
  const auto weights = g.add_constant("w", tensor::of<float>({8, 4, 3, 3}, std::vector<float>(8 * 4 * 9, 0.01F)));
  const auto conv = g.add_value("conv");
  const auto relu = g.add_value("relu");
  const auto y = g.add_value("y");
  attribute_map pads;
  pads.set("pads", std::vector<std::int64_t>{1, 1, 1, 1});
  g.add_node(m.ops.at("", "Conv"), "Conv_0", {x, weights}, {conv}, pads);
  g.add_node(m.ops.at("", "Relu"), "Relu_1", {conv}, {relu});
  g.add_node(m.ops.at("", "Softmax"), "Softmax_2", {relu}, {y});
  g.add_output(y);
  return m;
}

struct ready_model {
  session compiled = compile(small_model());
  named_tensors inputs{{"x", tensor::of<float>({1, 4, 16, 16}, std::vector<float>(1024, 0.5F))}};

  void run(run_observer* observer = nullptr) { (void)compiled.run(inputs, observer); }
  const program& executed() const { return compiled.executor()->executed(); }
};

std::size_t first_step_with_kernels(const program& p) {
  std::size_t s = 0;
  while (p.steps.at(s).lowered.kernels.empty()) ++s;
  return s;
}

}  // namespace

TEST_CASE("an observer says how often a kernel is enqueued", "[profile][opencl]") {
  ready_model ready;
  ready.run();
  const std::size_t kernels = ready.compiled.kernels();
  REQUIRE(kernels >= 2);

  copied_kernel_run copied;
  copied.choose(ready.executed().steps.size(), 0, 7);
  ready.run(&copied);
  CHECK(ready.compiled.kernels() == kernels);
  for (std::size_t s = 0; s < ready.executed().steps.size(); ++s) {
    if (ready.executed().steps[s].lowered.kernels.empty()) continue;
    copied.choose(s, 0, 7);
    ready.run(&copied);
    CHECK(ready.compiled.kernels() == kernels + 7);
    CHECK(ready.compiled.executor()->figures().events == 0);

    lone_kernel_run lone;
    lone.choose(s, 0, 2, 3);
    ready.run(&lone);
    CHECK(ready.compiled.kernels() == 5);
    CHECK(ready.compiled.executor()->figures().events == 3);
    CHECK(lone.take_times().size() == 3);
    CHECK(lone.take_times().empty());
    CHECK(lone.enqueue_times().size() == 1);
  }
}

TEST_CASE("a table of lone kernels has every launch of the program", "[profile][opencl][latency]") {
  ready_model ready;
  ready.run();
  const std::size_t kernels = ready.compiled.kernels();
  const std::string device = ready.compiled.context()->info().name;
  const auto run = [&](run_observer* observer) { ready.run(observer); };

  const bool by_events = GENERATE(true, false);
  lone_kernel_options options;
  options.by_events = by_events;
  lone_kernel_meter meter(*ready.compiled.context(), options);
  CHECK(meter.by_events() == by_events);
  profile::latency_table table;
  table.launches = meter.measure_launches(ready.executed(), run);
  CHECK(table.launches.enqueue_ns > 0.0);
  meter.measure_kernels(ready.executed(), run, 1 << 20, table);
  const auto keys = launch_keys(ready.executed(), device);
  CHECK(keys.size() == kernels);
  const auto predicted = table.predict(keys);
  CHECK(predicted.missing.empty());
  // Kernels as short as these may be lost in what a stream has besides them; an event's stamps always differ.
  if (by_events) CHECK(predicted.kernels_ns > 0.0);
  CHECK(predicted.e2e_ns >= predicted.kernels_ns + table.launches.prologue_ns + table.launches.epilogue_ns);

  // Known keys are not measured again.
  const auto before = table.entries();
  meter.measure_kernels(ready.executed(), run, 1 << 20, table);
  REQUIRE(table.entries().size() == before.size());
  for (const auto& [key, entry] : before) CHECK(table.find(key)->count == entry.count);
}

TEST_CASE("a stream of one kernel waits behind a long one", "[profile][opencl][latency]") {
  ready_model ready;
  ready.run();
  lone_kernel_meter meter(*ready.compiled.context());
  const std::size_t step = first_step_with_kernels(ready.executed());
  const kernel_stream stream = meter.measure_stream([&](run_observer* observer) { ready.run(observer); }, step, 0);
  CHECK(stream.few >= 1);
  CHECK(stream.many > stream.few);
  REQUIRE(stream.many_ns.size() == stream.few_ns.size());
  REQUIRE(!stream.many_ns.empty());
  for (const double ns : stream.many_ns) CHECK(ns > 0.0);
  CHECK(std::isfinite(stream.slope_ns()));

  cache_sweep sweep(*ready.compiled.context(), std::size_t{1} << 20, sweep_access::read);
  CHECK(std::isfinite(meter.measure_sweep(sweep)));

  profile::kernel_injector& injector = meter.injector();
  opencl::command_queue queue = ready.compiled.context()->make_queue({true, 0});
  injector.prepare_hold(queue, 5e6);
  streamed_kernel_run lone(injector);
  lone.choose(step, 0, 4);
  ready.run(&lone);
  CHECK(ready.compiled.kernels() == 5);
  CHECK(ready.compiled.executor()->figures().events == 2);
  CHECK(lone.enqueue_times().size() == 1);
  CHECK(lone.device_ns() > 0.0);

  // Other memory is gone through before each launch but the first.
  streamed_kernel_run swept(injector, &sweep);
  swept.choose(step, 0, 4);
  ready.run(&swept);
  CHECK(ready.compiled.kernels() == 5 + 3);
  CHECK(ready.compiled.executor()->figures().events == 2);
}

TEST_CASE("other kernels stand for all of a program's", "[profile][opencl][latency]") {
  ready_model ready;
  ready.run();
  lone_kernel_meter meter(*ready.compiled.context());
  substituted_run substituted(meter.injector());
  for (const std::size_t count : {std::size_t{0}, std::size_t{3}}) {
    substituted.choose(count, false);
    ready.run(&substituted);
    CHECK(ready.compiled.kernels() == count);
    CHECK(ready.compiled.executor()->figures().events == 0);
    CHECK(substituted.first_ns() > 0);
  }
}

TEST_CASE("a run with copies behind a long kernel carries two events", "[profile][opencl][copies]") {
  ready_model ready;
  ready.run();
  const std::size_t kernels = ready.compiled.kernels();
  const opencl::context& where = *ready.compiled.context();
  opencl::command_queue queue = where.make_queue({true, 0});
  profile::kernel_injector injector(where.handle(), where.where().handle());
  injector.prepare_hold(queue, 2e6);
  const std::size_t step = first_step_with_kernels(ready.executed());

  copied_kernel_run copied(&injector, kernels);
  copied.choose(step, 0, 3);
  ready.run(&copied);
  CHECK(ready.compiled.kernels() == 1 + kernels + 3);
  CHECK(ready.compiled.executor()->figures().events == 2);
  CHECK(copied.device_ns() > 0.0);
  CHECK(copied.host_ns() > 0.0);

  copied.choose(step, 0, 3, true);
  ready.run(&copied);
  CHECK(ready.compiled.executor()->figures().events == 3);
  std::vector<double> times, gaps;
  copied.take_times({}, times, gaps);
  CHECK(times.size() == 3);
  CHECK(gaps.size() == 2);

  timed_run timed(injector);
  timed.clear();
  ready.run(&timed);
  CHECK(ready.compiled.executor()->figures().events == kernels);
  std::vector<double> pauses;
  CHECK(timed.times({}, pauses).size() == kernels);
  CHECK(pauses.size() == kernels - 1);
}

TEST_CASE("the profiler's check of itself has a row for every kernel", "[profile][opencl][copies]") {
  ready_model ready;
  ready.run();
  const std::size_t kernels_of_a_run = ready.compiled.kernels();
  std::size_t told = 0;
  const bool by_device = GENERATE(false, true);
  const kernel_check check = check_kernels(
      *ready.compiled.context(), ready.executed(), [&](run_observer* observer) { ready.run(observer); },
      {.most_copies = 4, .seconds = 0.0, .profiled = 4, .by_device = by_device},
      [&](const checked_kernel&) { ++told; });
  CHECK(check.by_device == by_device);
  CHECK(check.kernels.size() == kernels_of_a_run);
  CHECK(told == check.kernels.size());
  REQUIRE(!check.operators.empty());
  CHECK(check.operators.size() <= check.kernels.size());
  double kernels = 0.0, operators = 0.0;
  for (const checked_kernel& row : check.kernels) {
    CHECK(row.in_situ_ns > 0.0);
    CHECK(row.profiled_ns > 0.0);
    CHECK(row.half_ns >= 0.0);
    if (!by_device) CHECK(row.held_ns == 0.0);
    CHECK(row.pairs == 6);
    kernels += row.profiled_ns;
  }
  for (const checked_kernel& row : check.operators) operators += row.profiled_ns;
  CHECK(operators == Approx(kernels));
  CHECK(check.split.runs > 0);
}

TEST_CASE("a kernel is wrong where its error is beyond the bound and the truth's own spread", "[profile][copies]") {
  checked_kernel row;
  row.truth_ns = 10'000.0;
  row.half_ns = 100.0;
  row.profiled_ns = 11'050.0;
  CHECK(row.allowed_ns() == Approx(1000.0));
  CHECK_FALSE(row.wrong());
  CHECK_FALSE(row.right());
  CHECK_FALSE(row.decided());
  row.profiled_ns = 11'120.0;
  CHECK(row.wrong());
  CHECK_FALSE(row.decided());
  row.profiled_ns = 11'160.0;
  CHECK(row.decided());
  row.profiled_ns = 9'120.0;
  CHECK(row.right());
  CHECK_FALSE(row.decided());
  row.profiled_ns = 10'800.0;
  CHECK(row.right());
  CHECK(row.decided());
  row.truth_ns = 100'000.0;
  row.half_ns = 0.0;
  row.profiled_ns = 95'100.0;
  CHECK(row.allowed_ns() == Approx(5000.0));
  CHECK(row.right());
  row.profiled_ns = 94'900.0;
  CHECK(row.wrong());
}
