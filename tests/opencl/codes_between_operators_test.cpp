// What becomes of codes between operators: where they are only moved they stay codes, and functions of one code become
// tables, with the same results on every form of kernels, and in a file for other engines.
#include <catch2/catch.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dnnopt/backend/run/executor.hpp>
#include <dnnopt/dnnopt.hpp>
#include <dnnopt/onnx/export.hpp>
#include <dnnopt/passes/cancel_quantization.hpp>
#include <dnnopt/passes/look_up_codes.hpp>
#include <dnnopt/passes/rdp.hpp>
#include <dnnopt/passes/verify.hpp>
#include <dnnopt/reference/evaluate_node.hpp>
#include <dnnopt/reference/evaluator.hpp>

#include "../support/shared_device.hpp"
#include "../support/small_network.hpp"

using namespace dnnopt;
using dnnopt::testing::network;
using dnnopt::testing::shared_device;

namespace {

tensor byte(dtype type, int code) {
  tensor held(type, {});
  held.mutable_bytes()[0] = static_cast<std::byte>(code);
  return held;
}

struct coded_network : network {
  explicit coded_network(dtype held) : type(held) {}
  dtype type;
  int zero = 119;

  value_id quantize(value_id of, float scale) { return node("QuantizeLinear", with_scale(of, scale)); }
  value_id dequantize(value_id of, float scale) { return node("DequantizeLinear", with_scale(of, scale)); }
  value_id again(value_id of, float scale) { return dequantize(quantize(of, scale), scale); }
  std::vector<value_id> with_scale(value_id of, float scale) {
    const std::string name = std::to_string(g.value_count());
    return {of, g.add_constant("s" + name, tensor::scalar(scale)), g.add_constant("z" + name, byte(type, zero))};
  }
  value_id number(float held) { return g.add_constant("n" + std::to_string(g.value_count()), tensor::scalar(held)); }
  value_id codes_input(const shape& dims) { return g.add_input("x", type, dims); }
  [[nodiscard]] static std::size_t count(const graph& of, std::string_view op) {
    std::size_t found = 0;
    for (const node_id id : of.nodes()) found += of.node_at(id).op->name == op ? 1 : 0;
    return found;
  }
};

/// Every code that a byte has, again and again.
tensor all_codes(dtype type, dim_list dims) {
  tensor made(type, std::move(dims));
  std::uint8_t next = 7;
  for (std::byte& code : made.mutable_bytes())
    code = static_cast<std::byte>(next = static_cast<std::uint8_t>(next + 37));
  return made;
}

bool same_bytes(const tensor& a, const tensor& b) {
  return a.type() == b.type() && a.dims() == b.dims() && std::ranges::equal(a.bytes(), b.bytes());
}

/// Runs the model on the device and compares every byte with the reference on the graph as it was written.
void check_codes(const model& m, const tensor& x, kernel_form form, std::string_view steps) {
  compile_options options;
  options.opened = shared_device();
  options.form = form;
  options.matrix_steps = std::string(steps);
  options.require_device = true;
  session s = compile(m, options);
  const tensor want = reference::evaluate(m.main, std::vector{x})[0];
  CHECK(same_bytes(s.run({{"x", x}})[0], want));
}

graph propagated(graph g) {
  (void)rdp{}.run(g);
  return g;
}

/// A Gelu as quantizers write it.
value_id coded_gelu(coded_network& n, value_id x) {
  const value_id erf = n.again(n.node("Erf", {n.node("Div", {x, n.number(1.4142135F)})}), 1.0F / 119);
  const value_id sum = n.again(n.node("Add", {erf, n.number(1)}), 2.0F / 119);
  const value_id product = n.again(n.node("Mul", {x, sum}), 0.04F);
  return n.quantize(n.node("Mul", {product, n.number(0.5F)}), 0.02F);
}

}  // namespace

TEST_CASE("codes that are only moved stay codes") {
  const dtype type = GENERATE(dtype::uint8, dtype::int8);
  CAPTURE(name_of(type));
  coded_network n(type);
  constexpr float scale = 0.037F;
  const value_id x = n.dequantize(n.codes_input(shape{4, 6, 8}), scale);
  attribute_map turned;
  turned.set("perm", std::vector<std::int64_t>{0, 2, 1});
  value_id y = n.again(n.node("Transpose", {x}, turned), scale);
  const value_id dims = n.g.add_constant("dims", tensor::of<std::int64_t>({2}, std::vector<std::int64_t>{32, 6}));
  y = n.quantize(n.node("Reshape", {y, dims}), scale);
  const model m = n.finish(y);
  graph moved = propagated(m.main);
  CHECK(cancel_quantization{}.run(moved).edits == 2);
  verify(moved, cancel_quantization::name);
  CHECK(coded_network::count(moved, "QuantizeLinear") == 0);
  CHECK(coded_network::count(moved, "DequantizeLinear") == 0);
  CHECK(cancel_quantization{}.run(moved).edits == 0);
  const tensor codes = all_codes(type, {4, 6, 8});
  CHECK(same_bytes(reference::evaluate(moved, std::vector{codes})[0],
                   reference::evaluate(m.main, std::vector{codes})[0]));
  for (const kernel_form form : {kernel_form::vectors, kernel_form::groups}) check_codes(m, codes, form, "none");
}

TEST_CASE("a pair of the same scale gives the codes back, whatever they are") {
  const dtype type = GENERATE(dtype::uint8, dtype::int8);
  const float scale = GENERATE(1.1e-30F, 0.1F, 3.0F, 9e29F);
  CAPTURE(name_of(type), scale);
  coded_network n(type);
  const value_id x = n.codes_input(shape{256});
  const value_id pair = n.quantize(n.dequantize(x, scale), scale);
  const model m = n.finish(n.quantize(n.node("Relu", {n.dequantize(pair, scale)}), scale));
  graph without = propagated(m.main);
  CHECK(cancel_quantization{}.run(without).edits == 1);
  const tensor codes = all_codes(type, {256});
  CHECK(same_bytes(reference::evaluate(without, std::vector{codes})[0],
                   reference::evaluate(m.main, std::vector{codes})[0]));
}

TEST_CASE("zero points that are no one constant keep their pair") {
  coded_network n(dtype::uint8);
  const value_id x = n.codes_input(shape{4, 6});
  const value_id zero = n.g.add_input("zero", dtype::uint8, shape{});
  const value_id meant = n.node("DequantizeLinear", {x, n.number(0.1F), zero});
  graph kept =
      propagated(n.finish(n.node("QuantizeLinear", {n.node("Transpose", {meant}), n.number(0.1F), zero})).main);
  CHECK(cancel_quantization{}.run(kept).edits == 0);
}

TEST_CASE("codes of another scale, zero point or size, and those that others read as floats, are quantized anew") {
  const int kind = GENERATE(0, 1, 2, 3, 4);
  CAPTURE(kind);
  coded_network n(dtype::uint8);
  const value_id x = n.codes_input(shape{4, 6});
  const float scale = kind == 0 ? 1e-31F : 0.1F;
  const value_id meant = n.dequantize(x, scale);
  const value_id turned = n.node("Transpose", {meant});
  if (kind == 1) n.zero = 118;
  value_id y = n.quantize(turned, kind == 2 ? 0.2F : scale);
  if (kind == 3) n.g.add_output(turned);
  if (kind == 4) y = n.node("QuantizeLinear", {turned, n.number(scale)});
  graph kept = propagated(n.finish(y).main);
  CHECK(cancel_quantization{}.run(kept).edits == 0);
}

TEST_CASE("a Split of codes is one where each part is quantized as it was") {
  const bool all = GENERATE(false, true);
  CAPTURE(all);
  coded_network n(dtype::uint8);
  const value_id x = n.dequantize(n.codes_input(shape{4, 6}), 0.1F);
  const value_id first = n.g.add_value("first");
  const value_id second = n.g.add_value("second");
  attribute_map two;
  two.set("axis", std::int64_t{1});
  two.set("num_outputs", std::int64_t{2});
  n.g.add_node(standard_ops().at("", "Split"), "parts", {x}, {first, second}, two);
  const value_id a = n.quantize(first, 0.1F);
  const value_id b = n.quantize(second, all ? 0.1F : 0.3F);
  const model m = n.finish(n.node("Equal", {a, b}));
  graph moved = propagated(m.main);
  CHECK(cancel_quantization{}.run(moved).edits == (all ? 1 : 0));
  verify(moved, cancel_quantization::name);
  const tensor codes = all_codes(dtype::uint8, {4, 6});
  CHECK(same_bytes(reference::evaluate(moved, std::vector{codes})[0],
                   reference::evaluate(m.main, std::vector{codes})[0]));
}

TEST_CASE("functions of one code are looked up, alone and behind a product") {
  const dtype type = GENERATE(dtype::uint8, dtype::int8);
  const auto [form, steps] =
      GENERATE(std::pair{kernel_form::vectors, "none"}, std::pair{kernel_form::groups, "none"},
               std::pair{kernel_form::groups, "plain"}, std::pair{kernel_form::groups, "plain_bytes"});
  const bool product = GENERATE(false, true);
  CAPTURE(name_of(type), static_cast<int>(form), steps, product);
  coded_network n(type);
  n.zero = type == dtype::int8 ? 3 : 119;
  value_id x = n.dequantize(n.codes_input(shape{20, 24}), 0.05F);
  if (product) {
    // Powers of two, so that the product's sums are exact however they are taken.
    x = n.dequantize(n.g.inputs()[0], 1.0F / 32);
    tensor weights = all_codes(dtype::int8, {24, 40});
    const value_id w = n.node("DequantizeLinear", {n.g.add_constant("w", weights), n.number(1.0F / 256)});
    x = n.again(n.node("MatMul", {x, w}), 0.0625F);
  }
  const model m = n.finish(coded_gelu(n, x));
  graph looked_up = propagated(m.main);
  CHECK(look_up_codes{&reference::evaluate_node}.run(looked_up).edits > 0);
  verify(looked_up, look_up_codes::name);
  CHECK(coded_network::count(looked_up, "LookUp") == 1);
  CHECK(coded_network::count(looked_up, "Erf") == 0);
  const tensor codes = all_codes(type, {20, 24});
  CHECK(same_bytes(reference::evaluate(looked_up, std::vector{codes})[0],
                   reference::evaluate(m.main, std::vector{codes})[0]));
  check_codes(m, codes, form, steps);
}

TEST_CASE("cheap functions, and those of more than one value, are computed") {
  const bool two = GENERATE(false, true);
  coded_network n(dtype::uint8);
  const value_id x = n.dequantize(n.codes_input(shape{8, 8}), 0.05F);
  value_id y = n.node("Relu", {x});
  if (two) y = n.node("Erf", {n.node("Add", {x, n.dequantize(n.g.add_input("y", dtype::uint8, shape{8, 8}), 0.05F)})});
  graph kept = propagated(n.finish(n.quantize(y, 0.02F)).main);
  CHECK(look_up_codes{&reference::evaluate_node, 16}.run(kept).edits == 0);
  CHECK(look_up_codes{nullptr, 0}.run(kept).edits == 0);
}

TEST_CASE("what is looked up is written as Cast and Gather, and read again") {
  const dtype type = GENERATE(dtype::uint8, dtype::int8);
  coded_network n(type);
  n.zero = 3;
  const model m = n.finish(coded_gelu(n, n.dequantize(n.codes_input(shape{5, 64}), 0.05F)));
  graph looked_up = propagated(m.main);
  CHECK(look_up_codes{&reference::evaluate_node}.run(looked_up).edits > 0);
  const std::filesystem::path file =
      std::filesystem::temp_directory_path() / ("dnnopt_look_up_" + std::string(name_of(type)) + ".onnx");
  export_onnx(looked_up, file);
  const model read = load(file);
  CHECK(coded_network::count(read.main, "Gather") == 1);
  const tensor codes = all_codes(type, {5, 64});
  CHECK(same_bytes(reference::evaluate(read.main, std::vector{codes})[0],
                   reference::evaluate(m.main, std::vector{codes})[0]));
  std::filesystem::remove(file);
}

TEST_CASE("zero points along one dim are not those along another") {
  const kernel_form form = GENERATE(kernel_form::vectors, kernel_form::groups);
  const bool same = GENERATE(false, true);
  CAPTURE(static_cast<int>(form), same);
  coded_network n(dtype::uint8);
  const value_id scales = n.g.add_constant("s", tensor::of<float>({4}, std::vector<float>{0.5F, 1, 2, 4}));
  tensor zeros(dtype::uint8, {4});
  for (std::size_t i = 0; i < 4; ++i) zeros.mutable_bytes()[i] = static_cast<std::byte>(40 * i + 3);
  const value_id zero = n.g.add_constant("z", zeros);
  const auto along = [](std::int64_t axis) {
    attribute_map made;
    made.set("axis", axis);
    return made;
  };
  const value_id x = n.dequantize(n.codes_input(shape{4, 4}), 0.5F);
  const value_id codes = n.node("QuantizeLinear", {n.node("Neg", {x}), scales, zero}, along(0));
  const value_id meant = n.node("DequantizeLinear", {codes, scales, zero}, along(same ? 0 : 1));
  check_codes(n.finish(n.node("Abs", {meant})), all_codes(dtype::uint8, {4, 4}), form, "none");
}
