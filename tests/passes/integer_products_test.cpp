// The pass that makes products of integers of products of quantized operands, and the fusion that stores their bytes.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <catch2/catch.hpp>

#include <dnnopt/ops/standard.hpp>
#include <dnnopt/passes/folding/fold_constants.hpp>
#include <dnnopt/passes/fuse.hpp>
#include <dnnopt/passes/rdp.hpp>
#include <dnnopt/passes/recognition/recognize_integer_products.hpp>
#include <dnnopt/passes/rewriting/edit.hpp>
#include <dnnopt/passes/verify.hpp>
#include <dnnopt/reference/evaluate_node.hpp>

#include "../support/noise.hpp"

namespace {

using namespace dnnopt;
using dnnopt::testing::noise;

/// A graph of quantized operators under construction, with the tensors of its inputs.
struct quantized_graph {
  op_set ops = standard_ops();
  graph g;
  std::vector<tensor> inputs;

  value_id constant(tensor content) {
    return g.add_constant("c" + std::to_string(g.value_count()), std::move(content));
  }
  value_id number(float v) { return constant(tensor::scalar(v)); }
  /// Whole numbers of bytes, from their first to their last.
  value_id bytes(dtype type, dim_list dims, std::uint32_t seed) {
    tensor t(type, std::move(dims));
    std::mt19937 engine(seed);
    for (std::byte& one : t.mutable_bytes()) one = static_cast<std::byte>(engine() & 255U);
    return constant(std::move(t));
  }
  /// Positive numbers of a vector.
  value_id scales(std::int64_t count, std::uint64_t seed) {
    tensor t = noise({count}, seed);
    for (float& one : t.mutable_data<float>()) one = 0.01F + std::abs(one) * 0.02F;
    return constant(std::move(t));
  }
  value_id node(const char* op, std::vector<value_id> read, std::vector<std::pair<const char*, attribute>> given = {}) {
    attribute_map attributes;
    for (auto& [key, held] : given) attributes.set(key, held);
    return rewriting::append(g, ops.at("", op), op, std::move(read), std::move(attributes));
  }
  /// An input in floats, quantized.
  value_id quantized_input(dim_list dims, value_id scale, value_id zero) {
    inputs.push_back(noise(dims, inputs.size() + 1));
    const value_id x = g.add_input("x" + std::to_string(inputs.size()), dtype::float32, to_shape(dims));
    return node("QuantizeLinear", {x, scale, zero});
  }
  value_id floats(value_id read, value_id scale, value_id zero, std::int64_t axis = 1) {
    return node("DequantizeLinear", {read, scale, zero}, {{"axis", axis}});
  }
  std::size_t count(const char* op) const {
    std::size_t n = 0;
    for (const node_id id : g.nodes()) n += g.node_at(id).op->name == op ? 1 : 0;
    return n;
  }
  /// Runs the pass; outputs in floats must stay as they were but for the last digits, bytes but for one step.
  std::size_t run() {
    const std::vector<tensor> before = reference::evaluate(g, inputs);
    const std::size_t edits = recognize_integer_products{&reference::evaluate_node}.run(g).edits;
    verify(g, recognize_integer_products::name);
    const std::vector<tensor> after = reference::evaluate(g, inputs);
    for (std::size_t o = 0; o < before.size(); ++o) {
      REQUIRE(before[o].dims() == after[o].dims());
      REQUIRE(before[o].type() == after[o].type());
      if (before[o].type() == dtype::float32) {
        float worst = 0;
        float most = 0;
        for (std::size_t i = 0; i < before[o].data<float>().size(); ++i) {
          worst = std::max(worst, std::abs(before[o].data<float>()[i] - after[o].data<float>()[i]));
          most = std::max(most, std::abs(before[o].data<float>()[i]));
        }
        CHECK(worst <= 2e-6F * most);
      } else {
        for (std::size_t i = 0; i < before[o].bytes().size(); ++i)
          CHECK(std::abs(static_cast<int>(before[o].bytes()[i]) - static_cast<int>(after[o].bytes()[i])) <= 1);
      }
    }
    return edits;
  }
};

using ints = std::vector<std::int64_t>;

}  // namespace

TEST_CASE("a convolution of quantized operands is one of integers") {
  quantized_graph b;
  const bool each = GENERATE(false, true);
  const bool biased = GENERATE(false, true);
  const value_id scale = b.number(0.02F);
  const value_id zero = b.constant(tensor::scalar<std::uint8_t>(117));
  const value_id x = b.floats(b.quantized_input({2, 5, 7, 6}, scale, zero), scale, zero);
  const value_id w =
      b.floats(b.bytes(dtype::int8, {9, 5, 3, 3}, 1), each ? b.scales(9, 2) : b.number(0.01F),
               each ? b.constant(tensor(dtype::int8, {9})) : b.constant(tensor::scalar<std::int8_t>(3)), 0);
  std::vector<value_id> read{x, w};
  if (biased)
    read.push_back(
        b.floats(b.constant(tensor::of<std::int32_t>({9}, std::vector<std::int32_t>{1, 20, -3, 400, 5, 6, 7, 8, -9})),
                 b.scales(9, 3), no_value, 0));
  b.g.add_output(b.node("Conv", read, {{"pads", ints{1, 0, 1, 2}}, {"strides", ints{2, 1}}}));
  CHECK(b.run() == 1);
  CHECK(b.count("ConvInteger") == 1);
  CHECK(b.count("Conv") == 0);
}

TEST_CASE("products of quantized matrices are products of integers") {
  quantized_graph b;
  const value_id scale = b.number(0.02F);
  const value_id zero = b.constant(tensor::scalar<std::uint8_t>(100));
  const value_id x = b.floats(b.quantized_input({6, 10}, scale, zero), scale, zero);
  const int kind = GENERATE(0, 1, 2, 3);
  CAPTURE(kind);
  if (kind == 0) {  // one scale for each column
    const value_id w =
        b.floats(b.bytes(dtype::int8, {10, 4}, 1), b.scales(4, 2), b.constant(tensor(dtype::int8, {4})), 1);
    b.g.add_output(b.node("MatMul", {x, w}));
  } else if (kind == 1) {  // two that are computed
    const value_id y = b.floats(b.quantized_input({10, 3}, scale, zero), scale, zero);
    b.g.add_output(b.node("MatMul", {x, y}));
  } else if (kind == 2) {  // rows of weights, and factors
    const value_id w =
        b.floats(b.bytes(dtype::int8, {4, 10}, 1), b.scales(4, 2), b.constant(tensor(dtype::int8, {4})), 0);
    b.g.add_output(b.node("Gemm", {x, w, b.constant(noise({4}, 9))},
                          {{"transB", std::int64_t{1}}, {"alpha", 0.5F}, {"beta", 2.0F}}));
  } else {  // weights that the model quantizes itself
    const value_id own = b.number(0.03F);
    const value_id own_zero = b.constant(tensor::scalar<std::int8_t>(0));
    const value_id w = b.node("QuantizeLinear", {b.constant(noise({10, 4}, 5)), own, own_zero});
    b.g.add_output(b.node("MatMul", {x, b.floats(w, own, own_zero)}));
  }
  CHECK(b.run() == 1);
  CHECK(b.count("MatMulInteger") == 1);
  CHECK(b.count("MatMul") + b.count("Gemm") == 0);
  if (kind == 3) CHECK(b.count("QuantizeLinear") == 1);
}

TEST_CASE("what is no product of integers stays as it is") {
  quantized_graph b;
  const value_id scale = b.number(0.02F);
  const value_id zero = b.constant(tensor::scalar<std::uint8_t>(117));
  const value_id x = b.floats(b.quantized_input({1, 6, 5, 5}, scale, zero), scale, zero);
  const int kind = GENERATE(0, 1, 2, 3, 4);
  CAPTURE(kind);
  if (kind == 4) {  // more products than the sum's int32 holds: 37 x 30 x 30 bytes
    const value_id many = b.floats(b.quantized_input({1, 37, 30, 30}, scale, zero), scale, zero);
    const value_id w = b.floats(b.bytes(dtype::int8, {1, 37, 30, 30}, 1), b.number(0.01F),
                                b.constant(tensor::scalar<std::int8_t>(0)), 0);
    b.g.add_output(b.node("Conv", {many, w}));
  } else if (kind == 0) {  // a depthwise convolution, in thin groups
    const value_id w =
        b.floats(b.bytes(dtype::int8, {6, 1, 3, 3}, 1), b.number(0.01F), b.constant(tensor::scalar<std::int8_t>(0)), 0);
    b.g.add_output(b.node("Conv", {x, w}, {{"group", std::int64_t{6}}}));
  } else if (kind == 1) {  // scales along the inputs
    const value_id w =
        b.floats(b.bytes(dtype::int8, {4, 6, 1, 1}, 1), b.scales(6, 2), b.constant(tensor(dtype::int8, {6})), 1);
    b.g.add_output(b.node("Conv", {x, w}));
  } else if (kind == 2) {  // weights in floats
    b.g.add_output(b.node("Conv", {x, b.constant(noise({4, 6, 1, 1}, 7))}));
  } else {  // sixteen bits
    const value_id w = b.floats(b.constant(tensor(dtype::int16, {4, 6, 1, 1})), b.number(0.01F), no_value, 0);
    b.g.add_output(b.node("Conv", {x, w}));
  }
  CHECK(b.run() == 0);
  CHECK(b.count("Conv") == 1);
}

TEST_CASE("QLinearConv and QLinearMatMul are products of integers that are quantized again") {
  quantized_graph b;
  const value_id scale = b.number(0.02F);
  const value_id zero = b.constant(tensor::scalar<std::uint8_t>(100));
  const value_id out = b.number(0.3F);
  const value_id out_zero = b.constant(tensor::scalar<std::uint8_t>(90));
  const bool convolution = GENERATE(false, true);
  if (convolution)
    b.g.add_output(
        b.node("QLinearConv",
               {b.quantized_input({1, 5, 4, 4}, scale, zero), scale, zero, b.bytes(dtype::int8, {3, 5, 2, 2}, 1),
                b.scales(3, 2), b.constant(tensor(dtype::int8, {3})), out, out_zero,
                b.constant(tensor::of<std::int32_t>({3}, std::vector<std::int32_t>{100, -2000, 30}))}));
  else
    b.g.add_output(b.node("QLinearMatMul",
                          {b.quantized_input({2, 6, 8}, scale, zero), scale, zero, b.bytes(dtype::int8, {8, 5}, 1),
                           b.number(0.01F), b.constant(tensor::scalar<std::int8_t>(5)), out, out_zero}));
  CHECK(b.run() == 1);
  CHECK(b.count("QLinearConv") + b.count("QLinearMatMul") == 0);
  CHECK(b.count("ConvInteger") + b.count("MatMulInteger") == 1);
}

TEST_CASE("blocks store bytes, which each reader makes floats of") {
  quantized_graph b;
  const value_id scale = b.number(0.02F);
  const value_id zero = b.constant(tensor::scalar<std::uint8_t>(117));
  const value_id x = b.floats(b.quantized_input({1, 8, 6, 6}, scale, zero), scale, zero);
  const auto convolve = [&](value_id read, std::uint32_t seed) {
    const value_id w = b.floats(b.bytes(dtype::int8, {8, 8, 3, 3}, seed), b.number(0.01F),
                                b.constant(tensor::scalar<std::int8_t>(0)), 0);
    const value_id y = b.node("Conv", {read, w}, {{"pads", ints{1, 1, 1, 1}}});
    return b.floats(b.node("QuantizeLinear", {y, scale, zero}), scale, zero);
  };
  // A residual block: its input is read by a convolution and by a sum, which joins the convolution before it.
  const value_id first = convolve(x, 1);
  const value_id second = convolve(convolve(first, 2), 3);
  const value_id sum = b.node("QuantizeLinear", {b.node("Add", {first, second}), scale, zero});
  b.g.add_output(b.node("GlobalAveragePool", {b.floats(sum, scale, zero)}));
  // Not held against what was before: a sum that rounds otherwise moves what is quantized behind it by a step.
  CHECK(recognize_integer_products{&reference::evaluate_node}.run(b.g).edits == 3);
  (void)rdp{}.run(b.g);
  (void)fold_constants{&reference::evaluate_node}.run(b.g);
  (void)rdp{}.run(b.g);
  (void)fuse_blocks{}.run(b.g);
  REQUIRE(b.g.blocks().size() == 4);
  for (std::size_t i = 0; i < 3; ++i) {
    const fused_block& block = b.g.blocks()[i];
    REQUIRE(block.outputs.size() == 1);
    CHECK(b.g.facts(block.outputs[0]).type == dtype::uint8);
    CHECK(b.g.node_at(block.anchor).op->name == std::string("ConvInteger"));
  }
}

TEST_CASE("a block makes floats of its own bytes, though another stores them") {
  // What runs alone reads memory, so that a block of its own stores the floats; what joined the block that computes the
  // bytes must not wait for it.
  const bool moved = GENERATE(false, true);
  quantized_graph b;
  const value_id scale = b.number(0.02F);
  const value_id zero = b.constant(tensor::scalar<std::uint8_t>(117));
  value_id x = b.floats(b.quantized_input({4, 6}, scale, zero), scale, zero);
  if (moved) x = b.node("Reshape", {x, b.constant(tensor::of<std::int64_t>({3}, ints{1, 4, 6}))});
  b.g.add_output(b.node("Tanh", {x}));
  b.g.add_output(b.node("NonZero", {x}));
  (void)rdp{}.run(b.g);
  (void)fuse_blocks{}.run(b.g);
  CHECK_NOTHROW(verify(b.g, fuse_blocks::name));
}
