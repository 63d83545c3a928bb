// Sessions whose inputs decide structure, sizes that kernels compute, and sequences, against the reference backend.
#include <catch2/catch.hpp>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <dnnopt/backend/measure/opened_device.hpp>
#include <dnnopt/backend/run/executor.hpp>
#include <dnnopt/backend/run/observer.hpp>
#include <dnnopt/dnnopt.hpp>

#include "../support/shared_device.hpp"
#include "../support/small_network.hpp"
#include "runtime_fixture.hpp"

using namespace dnnopt;
using dnnopt::opencl::testing::code;
using dnnopt::opencl::testing::code_of;
using dnnopt::testing::network;
using dnnopt::testing::ramp;
using dnnopt::testing::shared_device;

namespace {

session on_device(const model& m, bool require_device = true, std::size_t programs = 8) {
  compile_options options;
  options.opened = shared_device();
  options.require_device = require_device;
  options.specialized_programs = programs;
  return compile(m, options);
}

named_tensors expected(const model& m, const named_tensors& inputs) {
  compile_options options;
  options.device = "reference";
  return compile(m, options).run(inputs);
}

tensor integers(const std::vector<std::int64_t>& values) {
  return tensor::of<std::int64_t>({static_cast<std::int64_t>(values.size())}, values);
}

void check_same(const named_tensors& got, const named_tensors& want) {
  REQUIRE(got.size() == want.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    REQUIRE(got[i].dims() == want[i].dims());
    CHECK(std::equal(got[i].bytes().begin(), got[i].bytes().end(), want[i].bytes().begin(), want[i].bytes().end()));
  }
}

/// Max(x, 0.1) of x [3, 4, 5] reduced over the axes that an input gives.
model reduced_over_given_axes() {
  network n;
  const value_id x = n.input("x", {3, 4, 5});
  const value_id axes = n.g.add_input("axes", dtype::int64, shape{1});
  const value_id raised = n.node("Max", {x, n.weights({5})});
  return n.finish(n.node("ReduceMax", {raised, axes}));
}

}  // namespace

TEST_CASE("an input of axes gets a program for each of its values, which is kept") {
  const model m = reduced_over_given_axes();
  session s = on_device(m);
  CHECK(s.report().specialized_inputs == std::vector<std::string>{"axes"});
  CHECK(s.executor() == nullptr);
  CHECK_FALSE(s.placements().empty());
  for (const std::int64_t axis : {0, 2, 0, -1, 2}) {
    CAPTURE(axis);
    const named_tensors inputs{{"x", ramp({3, 4, 5})}, {"axes", integers({axis})}};
    check_same(s.run(inputs), expected(m, inputs));
    CHECK(s.host_ops() == 0);
  }
  CHECK(s.report().specialized_programs == 3);
  CHECK(code_of([&] { (void)s.run({{"x", ramp({3, 4, 5})}, {"axes", integers({7})}}); }) != 0);
  CHECK(code_of([&] { (void)s.run({{"x", ramp({3, 4, 5})}}); }) == code(errc::missing_input));
  CHECK(code_of([&] { (void)s.run({{"x", ramp({3, 4, 5})}, {"axes", ramp({1})}}); }) == code(errc::type_mismatch));
  CHECK(s.report().specialized_programs == 3);
}

TEST_CASE("an input whose value is known is a constant and no input") {
  const model m = reduced_over_given_axes();
  const tensor x = ramp({3, 4, 5});
  named_tensors all;
  all.add("x", x);
  all.add("axes", integers({1}));
  named_tensors rest;
  rest.add("x", x);
  for (const char* device : {"reference", "opencl"}) {
    compile_options options;
    options.device = device;
    if (options.device == "opencl") options.opened = shared_device();
    options.values["axes"] = integers({1});
    session known = compile(m, options);
    CHECK(known.report().specialized_inputs.empty());
    check_same(known.run(rest), expected(m, all));
    CHECK(code_of([&] { (void)known.run(all); }) == code(errc::missing_input));
    options.values = {{"axis", integers({1})}};
    CHECK(code_of([&] { (void)compile(m, options); }) == code(errc::missing_input));
    options.values = {{"axes", integers({1, 2})}};
    CHECK(code_of([&] { (void)compile(m, options); }) == code(errc::shape_mismatch));
    options.values = {{"axes", ramp({1})}};
    CHECK(code_of([&] { (void)compile(m, options); }) == code(errc::type_mismatch));
  }
}

TEST_CASE("a pass of one's own can be named among the others") {
  const model m = reduced_over_given_axes();
  compile_options options;
  options.device = "reference";
  std::size_t seen = 0;
  options.own_passes["mine"] = [&](graph& g) {
    seen += g.node_count();
    return pass_result{};
  };
  CHECK(code_of([&] {
          options.passes = "default,mien";
          (void)compile(m, options);
        }) == code(errc::unknown_pass));
  options.passes = "default,mine";
  const session s = compile(m, options);
  CHECK(seen >= 2);
  CHECK(std::count_if(s.report().passes.begin(), s.report().passes.end(),
                      [](const pass_report& pass) { return pass.name == "mine"; }) == 1);
  options.own_passes["rdp"] = options.own_passes["mine"];
  CHECK(code_of([&] { (void)compile(m, options); }) == code(errc::invalid_argument));
}

namespace {

/// The bytes that a run's kernels are said to move.
class moved_bytes final : public run_observer {
 public:
  [[nodiscard]] bool wants_events() const override { return false; }
  [[nodiscard]] opencl::event_sink* kernel(std::size_t, std::size_t, std::uint64_t, std::uint64_t bytes) override {
    sum += bytes;
    return nullptr;
  }
  std::uint64_t sum = 0;
};

}  // namespace

TEST_CASE("a profile counts of a table what a Gather reads") {
  network n;
  const value_id table = n.weights({5000, 8});
  const value_id rows = n.g.add_input("rows", dtype::int64, shape{3});
  session s = on_device(n.finish(n.node("Gather", {table, rows})));
  const named_tensors inputs{{"rows", integers({4, 0, 4999})}};
  (void)s.run(inputs);
  moved_bytes moved;
  (void)s.run(inputs, &moved);
  // Three rows of eight floats are read and written, and three indices read, in whatever integers.
  CHECK(moved.sum >= 2 * 3 * 8 * 4);
  CHECK(moved.sum <= 2 * 3 * 8 * 4 + 3 * 8);
}

TEST_CASE("beyond the programs that are kept the general one runs, or with require_device the oldest makes room") {
  const model m = reduced_over_given_axes();
  for (const bool require_device : {false, true}) {
    session s = on_device(m, require_device, 1);
    for (const std::int64_t axis : {0, 1, 0}) {
      const named_tensors inputs{{"x", ramp({3, 4, 5})}, {"axes", integers({axis})}};
      check_same(s.run(inputs), expected(m, inputs));
      CHECK((s.host_ops() == 0) == (require_device || axis == 0));
    }
    CHECK(s.report().specialized_programs == (require_device ? 3 : 1));
  }
}

TEST_CASE("a shape that is computed from several small inputs gets a program for the values of all of them") {
  // The shape that Reshape is given is one of two inputs, which a third one selects.
  network n;
  const value_id x = n.input("x", {3, 4, 5});
  const value_id first = n.g.add_input("first", dtype::int64, shape{2});
  const value_id second = n.g.add_input("second", dtype::int64, shape{2});
  const value_id which = n.g.add_input("which", dtype::boolean, shape{1});
  const value_id wanted = n.node("Where", {which, first, second});
  const model m = n.finish(n.node("Relu", {n.node("Reshape", {x, wanted})}));
  session s = on_device(m);
  tensor yes(dtype::boolean, {1});
  yes.mutable_data<bool>()[0] = true;
  for (const tensor& chosen : {yes, tensor(dtype::boolean, {1})}) {
    const named_tensors inputs{
        {"x", ramp({3, 4, 5})}, {"first", integers({12, 5})}, {"second", integers({-1, 20})}, {"which", chosen}};
    check_same(s.run(inputs), expected(m, inputs));
  }
}

TEST_CASE("kernels compute sizes that data decide, and what follows stays on the device") {
  tensor x(dtype::float32, {5, 7, 3});
  for (std::size_t i = 0; i < x.mutable_data<float>().size(); ++i)
    x.mutable_data<float>()[i] = i % 3 == 0 || i % 7 == 5 ? 0.0F : static_cast<float>(i % 11);
  for (const bool empty : {false, true}) {
    network n;
    const value_id in = n.input("x", {5, 7, 3});
    const value_id found = n.node("NonZero", {in});
    attribute_map back;
    back.set("perm", std::vector<std::int64_t>{1, 0});
    const value_id rows = n.node("Transpose", {found}, back);
    const model m = n.finish(n.node("GatherND", {in, rows}));
    session s = on_device(m);
    const named_tensors inputs{{"x", empty ? tensor(dtype::float32, {5, 7, 3}) : x}};
    check_same(s.run(inputs), expected(m, inputs));
    CHECK(s.host_ops() == 0);
  }
  network n;
  const value_id in = n.input("x", {5, 7, 3});
  const value_id conditions = n.g.add_input("conditions", dtype::boolean, shape{7});
  attribute_map axis;
  axis.set("axis", std::int64_t{1});
  const model m = n.finish(n.node("Unique", {n.node("Compress", {in, conditions}, axis)}));
  session s = on_device(m);
  tensor some(dtype::boolean, {7});
  for (const std::size_t at : {1U, 2U, 6U}) some.mutable_data<bool>()[at] = true;
  const named_tensors inputs{{"x", x}, {"conditions", some}};
  check_same(s.run(inputs), expected(m, inputs));
  CHECK(s.host_ops() == 0);
}

TEST_CASE("sequences are evaluated on the host, between operators of the device") {
  network n;
  const value_id x = n.input("x", {6, 4});
  const value_id raised = n.node("Relu", {x});
  attribute_map split;
  split.set("axis", std::int64_t{0});
  const value_id parts = n.node("SplitToSequence", {raised, n.g.add_constant("lengths", integers({1, 2, 3}))}, split);
  const value_id one = n.node("SequenceAt", {parts, n.g.add_constant("one", tensor::scalar<std::int64_t>(1))});
  const value_id more = n.node("SequenceInsert", {parts, one});
  attribute_map axis;
  axis.set("axis", std::int64_t{0});
  const value_id whole = n.node("ConcatFromSequence", {more}, axis);
  const model m = n.finish(n.node("Neg", {whole}));
  const named_tensors inputs{{"x", ramp({6, 4})}};
  session s = on_device(m, false);
  check_same(s.run(inputs), expected(m, inputs));
  // Neg as well: nothing tells the rank of a tensor that comes out of a sequence.
  CHECK(s.host_ops() == 5);
  for (const placement_row& row : s.placements()) CHECK(row.where == (row.op == "Relu" ? "device" : "host"));
  CHECK(code_of([&] { (void)on_device(m); }) == code(errc::no_kernel));
}
