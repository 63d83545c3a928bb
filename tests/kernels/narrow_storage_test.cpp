// Storage in fp16: results near fp32's, half the memory, no infinity that fp32 does not have.
#include <catch2/catch.hpp>

#include <array>
#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <dnnopt/backend/run/executor.hpp>
#include <dnnopt/dnnopt.hpp>

#include "../support/host_operator.hpp"
#include "../support/small_network.hpp"

using namespace dnnopt;
using dnnopt::testing::network;
using dnnopt::testing::ramp;

namespace {

struct outcome {
  named_tensors outputs;
  compile_report report;
  std::uint64_t weights = 0;
  std::size_t arena = 0;
  std::size_t kernels = 0;
  bool vectors = false;  ///< whether the device's frames are those for wide vectors
};

outcome run(const model& m, precision stored, const tensor& x) {
  compile_options options;
  options.precision = stored;
  options.programs.on_disk = false;
  session s = compile(m, options);
  outcome result{s.run({{"x", x}}),
                 s.report(),
                 s.executor()->weight_bytes(),
                 s.executor()->memory().arena_bytes,
                 s.kernels(),
                 s.context()->info().type == device_type::cpu};
  return result;
}

double largest_error(const tensor& got, const tensor& want) {
  REQUIRE(got.type() == want.type());
  REQUIRE(got.dims() == want.dims());
  double error = 0;
  double magnitude = 0;
  const auto a = got.data<float>();
  const auto b = want.data<float>();
  for (std::size_t i = 0; i < a.size(); ++i) {
    REQUIRE(std::isfinite(a[i]));
    error = std::max(error, std::fabs(static_cast<double>(a[i]) - static_cast<double>(b[i])));
    magnitude = std::max(magnitude, std::fabs(static_cast<double>(b[i])));
  }
  return error / magnitude;
}

}  // namespace

TEST_CASE("storage in fp16 halves weights and the arena and changes results little") {
  network n;
  const value_id x = n.g.add_input("x", dtype::float32, shape{1, 8, 9, 9});
  value_id at = x;
  for (int i = 0; i < 3; ++i) {
    attribute_map same;
    same.set("pads", std::vector<std::int64_t>{1, 1, 1, 1});
    at = n.node("Relu", {n.node("Conv", {at, n.weights({8, 8, 3, 3}, 0.2F)}, same)});
  }
  attribute_map flat;
  flat.set("axis", std::int64_t{1});
  const model m = n.finish(
      n.node("Softmax", {n.node("MatMul", {n.node("Flatten", {at}, flat), n.weights({8 * 9 * 9, 6}, 0.05F)})}));
  const tensor in = ramp({1, 8, 9, 9});
  const outcome wide = run(m, precision::fp32, in);
  const outcome half = run(m, precision::fp16, in);
  CHECK(largest_error(half.outputs[0], wide.outputs[0]) < 0.02);
  CHECK(half.report.storage.narrowed_constants == 4);
  CHECK(half.report.storage.narrowed_intermediates >= 3);
  CHECK(wide.report.storage.narrowed_constants == 0);
  CHECK(static_cast<double>(half.weights) <= 0.55 * static_cast<double>(wide.weights));
  CHECK(static_cast<double>(half.arena) <= 0.55 * static_cast<double>(wide.arena));
}

TEST_CASE("storage in fp16: windows before a convolution, and linear attention") {
  network n;
  const value_id x = n.g.add_input("x", dtype::float32, shape{1, 8, 9, 9});
  attribute_map same;
  same.set("pads", std::vector<std::int64_t>{1, 1, 1, 1});
  attribute_map pooled;
  pooled.set("kernel_shape", std::vector<std::int64_t>{3, 3});
  pooled.set("strides", std::vector<std::int64_t>{2, 2});
  pooled.set("pads", std::vector<std::int64_t>{1, 1, 1, 1});
  const value_id planes = n.node("Relu", {n.node("Conv", {x, n.weights({12, 8, 3, 3}, 0.2F)}, same)});
  const value_id reduced = n.node("Conv", {n.node("MaxPool", {planes}, pooled), n.weights({72, 12, 1, 1}, 0.3F)});
  tensor cut(dtype::int64, {3});
  for (std::size_t i = 0; i < 3; ++i) cut.mutable_data<std::int64_t>()[i] = std::array{4, 18, 25}[i];
  const value_id parts = n.node("Reshape", {reduced, n.g.add_constant("cut", cut)});
  const auto part = [&](std::int64_t first) {
    const auto one = [&](std::int64_t number) {
      tensor t(dtype::int64, {1});
      t.mutable_data<std::int64_t>()[0] = number;
      return n.g.add_constant("i" + std::to_string(n.g.value_count()), t);
    };
    return n.node("Slice", {parts, one(first), one(first + 6), one(1)});
  };
  attribute_map across;
  across.set("perm", std::vector<std::int64_t>{0, 2, 1});
  const value_id small = n.node("MatMul", {part(0), n.node("Transpose", {part(6)}, across)});
  const model m = n.finish(n.node("MatMul", {n.node("Transpose", {part(12)}, across), small}));
  const tensor in = ramp({1, 8, 9, 9});
  const outcome wide = run(m, precision::fp32, in);
  const outcome half = run(m, precision::fp16, in);
  // Frames of work-groups take neither the windows nor two products of matrices.
  CHECK(wide.kernels == (wide.vectors ? 3U : 5U));
  CHECK(half.kernels == wide.kernels);
  CHECK(half.report.storage.narrowed_intermediates >= 2);
  CHECK(largest_error(half.outputs[0], wide.outputs[0]) < 0.02);
}

TEST_CASE("storage in fp16: what is beyond its range stays finite") {
  network n;
  const value_id x = n.g.add_input("x", dtype::float32, shape{4, 300});
  // A constant with a large element stays in fp32; an intermediate beyond the range is stored as the range's end, and
  // hides as well as what the model wrote.
  tensor mask(dtype::float32, {4, 300});
  for (std::size_t i = 0; i < 1200; ++i) mask.mutable_data<float>()[i] = i % 3 == 0 ? -3.4e38F : 0.0F;
  const value_id hidden = n.g.add_constant("mask", mask);
  const value_id scaled = n.node("Transpose", {n.node("Mul", {n.node("Transpose", {x}), n.weights({300, 4}, 1e6F)})});
  const model m = n.finish(n.node("Softmax", {n.node("Add", {n.node("Tanh", {scaled}), hidden})}));
  const tensor in = ramp({4, 300});
  const outcome wide = run(m, precision::fp32, in);
  const outcome half = run(m, precision::fp16, in);
  CHECK(largest_error(half.outputs[0], wide.outputs[0]) < 0.02);
  CHECK(half.report.storage.narrowed_constants == 0);
}

TEST_CASE("storage in fp16: a host operator sees fp32") {
  network n;
  n.ops.add<dnnopt::testing::host_non_zero_op>();
  const value_id x = n.g.add_input("x", dtype::float32, shape{40, 20});
  const value_id made = n.node("Relu", {n.node("MatMul", {x, n.weights({20, 30})})});
  const value_id picked = n.node("HostNonZero", {made});
  const model m = n.finish(picked);
  const tensor in = ramp({40, 20});
  const outcome wide = run(m, precision::fp32, in);
  const outcome half = run(m, precision::fp16, in);
  CHECK(half.outputs[0].type() == dtype::int64);
  REQUIRE(half.outputs[0].dims().size() == 2);
  CHECK(std::abs(half.outputs[0].dims()[1] - wide.outputs[0].dims()[1]) <= 2);
}

TEST_CASE("storage in fp16: asking for dims is not reading") {
  const tensor in = ramp({40, 20});
  const auto with = [&](bool asks, precision stored) {
    network n;
    const value_id x = n.g.add_input("x", dtype::float32, shape{40, 20});
    const value_id made = n.node("Relu", {n.node("MatMul", {x, n.weights({20, 30})})});
    const value_id picked = n.node("NonZero", {n.node("Greater", {made, n.weights({1}, 0)})});
    const value_id found = n.node("GatherND", {made, n.node("Transpose", {picked})});
    const value_id sums = n.node("CumSum", {found, n.g.add_constant("axis", tensor(dtype::int64, {1}))});
    const value_id more =
        asks ? n.node("Expand", {n.weights({1}), n.node("Shape", {found})}) : n.node("Tanh", {n.weights({1})});
    return run(n.finish(n.node("Add", {n.node("Mul", {sums, found}), more})), stored, in);
  };
  CHECK(with(true, precision::fp16).report.storage.narrowed_intermediates ==
        with(false, precision::fp16).report.storage.narrowed_intermediates);
  CHECK(largest_error(with(true, precision::fp16).outputs[0], with(true, precision::fp32).outputs[0]) < 0.02);
}

TEST_CASE("storage in fp16: a host operator is given floats of what was only moved from halves") {
  const tensor in = ramp({40, 20});
  const auto with = [&](std::string_view last, precision stored) {
    network n;
    n.ops.add<dnnopt::testing::host_non_zero_op>();
    const value_id x = n.g.add_input("x", dtype::float32, shape{40, 20});
    const value_id made = n.node("Relu", {n.node("MatMul", {x, n.weights({20, 30})})});
    const value_id picked = n.node("NonZero", {n.node("Greater", {made, n.weights({1}, 0)})});
    const value_id found = n.node("GatherND", {made, n.node("Transpose", {picked})});
    return run(n.finish(n.node("HostNonZero", {n.node(last, {found})})), stored, in);
  };
  const outcome moved = with("Clip", precision::fp16);
  const outcome computed = with("Tanh", precision::fp16);
  CHECK(moved.report.storage.narrowed_intermediates == computed.report.storage.narrowed_intermediates + 1);
  // All that was found is above zero, in halves too but for what is below their least.
  const auto counted = [](const outcome& o) { return o.outputs[0].dims().at(1); };
  CHECK(std::abs(counted(moved) - counted(with("Clip", precision::fp32))) <= 2);
  CHECK(counted(moved) > 100);
}

TEST_CASE("an output added after fusion is stored: the plan does not know it and is forgotten") {
  network n;
  const value_id x = n.g.add_input("x", dtype::float32, shape{6, 40});
  const value_id product = n.node("MatMul", {x, n.weights({40, 50})});
  model m = n.finish(n.node("Relu", {n.node("Neg", {product})}));
  compile_options options;
  options.programs.on_disk = false;
  compile_report report;
  m.main = optimize(m, options, report);
  REQUIRE(m.main.blocks().size() == 1);
  REQUIRE(m.main.node_count() == 3);
  for (const node_id id : m.main.topological_order())
    for (const value_id out : m.main.node_at(id).outputs)
      if (!m.main.is_output(out)) m.main.add_output(out);
  CHECK(m.main.blocks().empty());
  options.passes = "none";
  compile_options reference = options;
  reference.device = "reference";
  const tensor in = ramp({6, 40});
  const named_tensors got = compile(m, options).run({{"x", in}});
  const named_tensors want = compile(m, reference).run({{"x", in}});
  REQUIRE(got.size() == 3);
  for (std::size_t i = 0; i < 3; ++i) CHECK(largest_error(got[i], want[i]) < 1e-4);
}
