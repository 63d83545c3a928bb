// Passes that recognise attention and rotary embedding, merge products of one input and merge equal nodes.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <catch2/catch.hpp>

#include <dnnopt/ops/standard.hpp>
#include <dnnopt/passes/folding/fold_batch_normalization.hpp>
#include <dnnopt/passes/folding/fold_padding.hpp>
#include <dnnopt/passes/merge_equal.hpp>
#include <dnnopt/passes/merge_siblings.hpp>
#include <dnnopt/passes/recognition/recognize_attention.hpp>
#include <dnnopt/passes/recognition/recognize_rotary.hpp>
#include <dnnopt/passes/remove_dead.hpp>
#include <dnnopt/passes/rewriting/edit.hpp>
#include <dnnopt/passes/verify.hpp>
#include <dnnopt/reference/evaluate_node.hpp>

#include "../support/noise.hpp"

namespace {

using namespace dnnopt;
using dnnopt::testing::noise;
using rewriting::append;

/// A graph under construction, with the tensors of its inputs.
struct builder {
  op_set ops = standard_ops();
  graph g;
  std::vector<tensor> inputs;

  value_id input(const std::string& name, dim_list dims) {
    inputs.push_back(noise(dims, inputs.size() + 1));
    return g.add_input(name, dtype::float32, to_shape(dims));
  }
  value_id constant(dim_list dims, std::uint64_t seed) {
    return g.add_constant("c" + std::to_string(g.value_count()), noise(std::move(dims), seed));
  }
  value_id constant(tensor content) {
    return g.add_constant("c" + std::to_string(g.value_count()), std::move(content));
  }
  value_id number(float v) { return constant(tensor::scalar(v)); }
  value_id integers(std::vector<std::int64_t> v) { return rewriting::add_integers(g, "i", v); }
  value_id node(const char* op, std::vector<value_id> read, std::vector<std::pair<const char*, attribute>> given = {}) {
    attribute_map attributes;
    for (auto& [key, held] : given) attributes.set(key, held);
    return append(g, ops.at("", op), op, std::move(read), std::move(attributes));
  }
  std::size_t count(const char* op) const {
    std::size_t n = 0;
    for (const node_id id : g.nodes()) n += g.node_at(id).op->name == op ? 1 : 0;
    return n;
  }
};

using perm = std::vector<std::int64_t>;

/// Runs a pass; outputs must stay as they were.
template <class P>
std::size_t run_and_compare(builder& b, const P& pass) {
  const std::vector<tensor> before = reference::evaluate(b.g, b.inputs);
  const std::size_t edits = pass.run(b.g).edits;
  verify(b.g, P::name);
  const std::vector<tensor> after = reference::evaluate(b.g, b.inputs);
  REQUIRE(before.size() == after.size());
  for (std::size_t o = 0; o < before.size(); ++o) {
    REQUIRE(before[o].dims() == after[o].dims());
    const auto x = before[o].data<float>();
    const auto y = after[o].data<float>();
    float worst = 0;
    for (std::size_t i = 0; i < x.size(); ++i) worst = std::max(worst, std::abs(x[i] - y[i]));
    CHECK(worst < 1e-4F);
  }
  return edits;
}

tensor causal(std::int64_t n, float hidden) {
  tensor t(dtype::float32, {1, 1, n, n});
  auto data = t.mutable_data<float>();
  for (std::int64_t i = 0; i < n; ++i)
    for (std::int64_t j = i + 1; j < n; ++j) data[static_cast<std::size_t>(i * n + j)] = hidden;
  return t;
}

}  // namespace

TEST_CASE("attention is recognised with its scale, whichever operand carries it") {
  builder b;
  const value_id q = b.input("q", {2, 3, 5, 4});
  const value_id k = b.input("k", {2, 3, 7, 4});
  const value_id v = b.input("v", {2, 3, 7, 6});
  value_id left = q;
  value_id right = b.node("Transpose", {k}, {{"perm", perm{0, 1, 3, 2}}});
  const value_id half = b.number(0.5F);
  const int where = GENERATE(0, 1, 2, 3);
  if (where == 0) left = b.node("Mul", {left, half});
  if (where == 1) right = b.node("Mul", {half, right});
  value_id scores = b.node("MatMul", {left, right});
  if (where == 2) scores = b.node("Mul", {scores, half});
  if (where == 3) scores = b.node("Div", {scores, b.number(2)});
  b.g.add_output(b.node("MatMul", {b.node("Softmax", {scores}, {{"axis", std::int64_t{-1}}}), v}));
  CHECK(run_and_compare(b, recognize_attention{}) == 1);
  REQUIRE(b.g.node_count() == 1);
  const node& made = b.g.node_at(b.g.nodes()[0]);
  CHECK(made.op->name == "Attention");
  CHECK(made.attributes.get_float("scale", 0) == 0.5F);
  CHECK(made.inputs == std::vector<value_id>{q, k, v});
}

TEST_CASE("masks of attention") {
  builder b;
  const value_id q = b.input("q", {1, 2, 6, 4});
  const value_id k = b.input("k", {1, 2, 6, 4});
  const value_id v = b.input("v", {1, 2, 6, 4});
  value_id scores = b.node("MatMul", {q, b.node("Transpose", {k}, {{"perm", perm{0, 1, 3, 2}}})});
  const auto finish = [&] {
    b.g.add_output(b.node("MatMul", {b.node("Softmax", {scores}, {{"axis", std::int64_t{3}}}), v}));
    CHECK(run_and_compare(b, recognize_attention{}) == 1);
    CHECK(b.count("Softmax") == 0);
    for (const node_id id : b.g.nodes())
      if (b.g.node_at(id).op->name == "Attention") return b.g.node_at(id);
    FAIL("no attention");
    return node{};
  };
  SECTION("a sum is a mask of its own") {
    const value_id bias = b.input("bias", {1, 2, 6, 6});
    scores = b.node("Add", {bias, scores});
    const node made = finish();
    REQUIRE(made.inputs.size() == 4);
    CHECK(made.inputs[3] == bias);
  }
  SECTION("a constant triangle is an attribute") {
    scores = b.node("Add", {scores, b.constant(causal(6, -3e38F))});
    const node made = finish();
    CHECK(made.inputs.size() == 3);
    CHECK(made.attributes.get_int("is_causal", 0) == 1);
  }
  SECTION("a mask of zeros is none") {
    scores = b.node("Add", {scores, b.constant(tensor(dtype::float32, {1, 1, 6, 6}))});
    CHECK(finish().inputs.size() == 3);
  }
  SECTION("zeros by head are a learned bias that happens to be zero") {
    scores = b.node("Add", {scores, b.constant(tensor(dtype::float32, {1, 2, 6, 6}))});
    CHECK(finish().inputs.size() == 4);
  }
  SECTION("a choice of minus infinity is a boolean mask") {
    tensor shown(dtype::boolean, {6, 6});
    auto data = shown.mutable_data<bool>();
    for (std::size_t i = 0; i < data.size(); ++i) data[i] = i % 6 <= 3 || i % 6 == i / 6;
    scores = b.node("Where", {b.constant(shown), scores, b.number(-std::numeric_limits<float>::infinity())});
    const node made = finish();
    REQUIRE(made.inputs.size() == 4);
    CHECK(b.g.facts(made.inputs[3]).type == dtype::boolean);
  }
}

TEST_CASE("what is no attention stays") {
  builder b;
  const value_id q = b.input("q", {1, 2, 6, 4});
  const value_id k = b.input("k", {1, 2, 6, 4});
  const value_id v = b.input("v", {1, 2, 6, 4});
  value_id scores = b.node("MatMul", {q, b.node("Transpose", {k}, {{"perm", perm{0, 1, 3, 2}}})});
  std::int64_t axis = -1;
  SECTION("weights that something else reads") { b.g.add_output(scores); }
  SECTION("a softmax over queries") { axis = 2; }
  SECTION("a mask that is scaled with the scores") {
    scores = b.node("Mul", {b.node("Add", {scores, b.input("m", {6, 6})}), b.number(0.5F)});
  }
  b.g.add_output(b.node("MatMul", {b.node("Softmax", {scores}, {{"axis", axis}}), v}));
  CHECK(run_and_compare(b, recognize_attention{}) == 0);
}

TEST_CASE("masks of shifted windows become masks of heads") {
  builder b;
  const std::int64_t batch = GENERATE(1, 2);
  const dim_list dims{batch * 4, 3, 6, 5};
  const value_id q = b.input("q", dims);
  const value_id k = b.input("k", dims);
  const value_id v = b.input("v", dims);
  value_id scores = b.node("MatMul", {q, b.node("Transpose", {k}, {{"perm", perm{0, 1, 3, 2}}})});
  scores = b.node("Add", {scores, b.constant({1, 3, 6, 6}, 11)});
  scores = b.node("Reshape", {scores, b.integers({batch, 4, 3, 6, 6})});
  scores = b.node("Add", {scores, b.constant({1, 4, 1, 6, 6}, 12)});
  scores = b.node("Reshape", {scores, b.integers({batch * 4, 3, 6, 6})});
  b.g.add_output(b.node("MatMul", {b.node("Softmax", {scores}, {{"axis", std::int64_t{-1}}}), v}));
  CHECK(run_and_compare(b, recognize_attention{}) == 1);
  CHECK(b.count("Attention") == 1);
  CHECK(b.count("Reshape") == (batch == 1 ? 0 : 4));
}

TEST_CASE("heads without a dim of their own, and keys in another layout") {
  builder b;
  const value_id q = b.input("q", {6, 5, 4});
  const value_id k = b.input("k", {5, 6, 4});
  const value_id v = b.input("v", {6, 5, 4});
  value_id scores = b.node("MatMul", {q, b.node("Transpose", {k}, {{"perm", perm{1, 2, 0}}})});
  scores = b.node("Add", {scores, b.input("m", {6, 5, 5})});
  b.g.add_output(b.node("MatMul", {b.node("Softmax", {scores}, {{"axis", std::int64_t{-1}}}), v}));
  CHECK(run_and_compare(b, recognize_attention{}) == 1);
  CHECK(b.count("Attention") == 1);
  CHECK(b.count("Unsqueeze") == 1);
}

TEST_CASE("rotary embedding, whole and of the first elements") {
  builder b;
  const bool partial = GENERATE(false, true);
  const value_id whole = b.input("x", {1, 2, 6, partial ? 12 : 8});
  const auto slice = [&](value_id from, std::int64_t begin, std::int64_t end) {
    return b.node("Slice", {from, b.integers({begin}), b.integers({end}), b.integers({3}), b.integers({1})});
  };
  const auto table = [&](std::uint64_t seed) {
    tensor t = noise({1, 1, 6, 8}, seed);
    auto data = t.mutable_data<float>();
    for (std::size_t i = 0; i < data.size(); ++i)
      if (i % 8 >= 4) data[i] = data[i - 4];
    return b.constant(t);
  };
  const std::int64_t end = std::numeric_limits<std::int64_t>::max();
  const value_id x = partial ? slice(whole, 0, 8) : whole;
  const value_id turned =
      b.node("Concat", {b.node("Neg", {slice(x, 4, end)}), slice(x, 0, 4)}, {{"axis", std::int64_t{-1}}});
  value_id y = b.node("Add", {b.node("Mul", {x, table(21)}), b.node("Mul", {turned, table(22)})});
  if (partial) y = b.node("Concat", {y, slice(whole, 8, end)}, {{"axis", std::int64_t{-1}}});
  b.g.add_output(y);
  CHECK(run_and_compare(b, recognize_rotary{}) == 1);
  REQUIRE(b.g.node_count() == 1);
  const node& made = b.g.node_at(b.g.nodes()[0]);
  CHECK(made.op->name == "RotaryEmbedding");
  CHECK(made.attributes.get_int("rotary_embedding_dim", 0) == (partial ? 8 : 0));
}

TEST_CASE("products of one input become one product") {
  builder b;
  const value_id x = b.input("x", {2, 5, 8});
  const auto branch = [&](std::int64_t n, std::uint64_t seed, bool biased) {
    value_id y = b.node("MatMul", {x, b.constant({8, n}, seed)});
    if (biased) y = b.node("Add", {b.constant({n}, seed + 1), y});
    return y;
  };
  b.g.add_output(branch(4, 31, true));
  b.g.add_output(branch(6, 33, true));
  b.g.add_output(branch(2, 35, false));
  CHECK(run_and_compare(b, merge_siblings{}) == 2);
  CHECK(b.count("MatMul") == 1);
  CHECK(b.count("Add") == 1);
  CHECK(b.count("Split") == 1);
}

TEST_CASE("products of two inputs share a bias that is joined with absent ones of other columns") {
  builder b;
  const value_id shared = b.constant({4}, 51);
  for (const bool turned : {false, true}) {
    const value_id x = b.input(turned ? "y" : "x", {2, 8});
    const auto plain = [&](std::int64_t n) { b.g.add_output(b.node("MatMul", {x, b.constant({8, n}, 53)})); };
    plain(turned ? 5 : 3);
    b.g.add_output(b.node("Add", {b.node("MatMul", {x, b.constant({8, 4}, 55)}), shared}));
    // As many columns in all for both inputs, and for a third one more.
    plain(turned ? 3 : 5);
  }
  const value_id z = b.input("z", {2, 8});
  b.g.add_output(b.node("Add", {b.node("MatMul", {z, b.constant({8, 4}, 57)}), shared}));
  b.g.add_output(b.node("MatMul", {z, b.constant({8, 6}, 59)}));
  CHECK(run_and_compare(b, merge_siblings{}) == 5);
  CHECK(b.count("MatMul") == 3);
}

TEST_CASE("Gemms of one input become one where they transpose alike") {
  builder b;
  const value_id x = b.input("x", {2, 8});
  const auto branch = [&](dim_list dims, std::int64_t n, std::uint64_t seed, std::int64_t transposed, float alpha) {
    b.g.add_output(b.node("Gemm", {x, b.constant(std::move(dims), seed), b.constant({n}, seed + 1)},
                          {{"transB", transposed}, {"alpha", alpha}}));
  };
  branch({4, 8}, 4, 31, 1, 1.0F);
  branch({6, 8}, 6, 33, 1, 1.0F);
  branch({8, 8}, 8, 35, 0, 1.0F);
  branch({8, 2}, 2, 37, 0, 1.0F);
  branch({5, 8}, 5, 39, 1, 2.0F);
  // The same weights along the other axis.
  const value_id shared = b.constant({8, 8}, 41);
  const value_id other = b.constant({8, 8}, 43);
  for (const std::int64_t transposed : {std::int64_t{0}, std::int64_t{1}})
    for (const value_id w : {shared, other})
      b.g.add_output(b.node("Gemm", {x, w}, {{"transB", transposed}, {"beta", 0.5F}}));
  CHECK(run_and_compare(b, merge_siblings{}) == 4);
  CHECK(b.count("Gemm") == 5);
  CHECK(b.count("Split") == 4);
}

TEST_CASE("products by codes become one where scales differ along the columns") {
  builder b;
  const value_id x = b.input("x", {3, 8});
  const auto codes = [&](dim_list dims, dtype type, std::uint64_t seed) {
    tensor t(type, dims);
    for (std::byte& one : t.mutable_bytes()) one = static_cast<std::byte>(seed = (seed * 5 + 3) % 16);
    return b.constant(std::move(t));
  };
  using attributes = std::vector<std::pair<const char*, attribute>>;
  const auto branch = [&](std::int64_t n, dtype type, const dim_list& scales, const attributes& along) {
    std::vector<value_id> in{codes({8, n}, type, static_cast<std::uint64_t>(n)), b.constant(scales, 7),
                             codes(scales, type, 3)};
    b.g.add_output(b.node("MatMul", {x, b.node("DequantizeLinear", std::move(in), along)}));
  };
  const attributes columns{{"axis", std::int64_t{1}}};
  const attributes blocks{{"axis", std::int64_t{0}}, {"block_size", std::int64_t{4}}};
  branch(4, dtype::uint4, {2, 4}, blocks);
  branch(6, dtype::uint4, {2, 6}, blocks);
  branch(4, dtype::uint8, {4}, columns);
  branch(5, dtype::uint8, {5}, columns);
  // One scale for all, and other codes, stay by themselves.
  branch(4, dtype::uint8, {}, {});
  branch(4, dtype::int8, {4}, columns);
  CHECK(run_and_compare(b, merge_siblings{}) == 2);
  CHECK(b.count("MatMul") == 4);
  CHECK(b.count("DequantizeLinear") == 4);
  CHECK(b.count("Split") == 2);
}

TEST_CASE("convolutions of one input become one where windows are single elements and activations are alike") {
  builder b;
  const value_id x = b.input("x", {1, 4, 5, 6});
  const auto branch = [&](std::int64_t window, const char* activation, std::uint64_t seed) {
    const value_id y = b.node("Conv", {x, b.constant({3, 4, window, window}, seed), b.constant({3}, seed + 1)});
    b.g.add_output(b.node(activation, {y}));
  };
  branch(1, "Relu", 41);
  branch(1, "Relu", 43);
  branch(1, "Sigmoid", 45);
  branch(3, "Relu", 47);
  CHECK(run_and_compare(b, merge_siblings{}) == 1);
  CHECK(b.count("Conv") == 3);
  CHECK(b.count("Relu") == 2);
}

TEST_CASE("equal nodes and small constants are merged, random ones are not") {
  builder b;
  const value_id x = b.input("x", {3, 4});
  const auto twice = [&] { return b.node("Mul", {x, b.number(2)}); };
  const value_id y = b.node("Add", {b.node("Exp", {twice()}), b.node("Neg", {twice()})});
  b.g.add_output(y);
  b.g.add_output(b.node("RandomUniformLike", {y}));
  b.g.add_output(b.node("RandomUniformLike", {y}));
  const std::size_t before = b.count("RandomUniformLike");
  CHECK(merge_equal{}.run(b.g).edits == 2);
  verify(b.g, merge_equal::name);
  CHECK(b.count("Mul") == 1);
  CHECK(b.count("RandomUniformLike") == before);
}

TEST_CASE("a batch normalization without a convolution becomes a factor and an addend") {
  builder b;
  const value_id x = b.input("x", {2, 3, 4, 5});
  tensor variance = noise({3}, 54);
  for (float& v : variance.mutable_data<float>()) v = std::abs(v) + 0.5F;
  b.g.add_output(b.node("Relu", {b.node("BatchNormalization", {x, b.constant({3}, 51), b.constant({3}, 52),
                                                               b.constant({3}, 53), b.constant(variance)})}));
  CHECK(run_and_compare(b, fold_batch_normalization{}) == 1);
  CHECK(b.count("BatchNormalization") == 0);
}

TEST_CASE("padding is folded into the window that ignores what it fills in") {
  builder b;
  const value_id x = b.input("x", {1, 2, 7, 6});
  const value_id amounts = b.integers({0, 0, 1, 0, 0, 0, 0, 1});
  const auto pad = [&](float v) { return b.node("Pad", {x, amounts, b.number(v)}); };
  const std::vector<std::int64_t> square{3, 3};
  SECTION("a convolution ignores zeros") {
    b.g.add_output(b.node("Conv", {pad(0), b.constant({4, 2, 3, 3}, 61)}));
    CHECK(run_and_compare(b, fold_padding{}) == 1);
    CHECK(b.count("Pad") == 0);
  }
  SECTION("an average counts them") {
    b.g.add_output(b.node("AveragePool", {pad(0)}, {{"kernel_shape", square}}));
    CHECK(run_and_compare(b, fold_padding{}) == 1);
  }
  SECTION("a maximum ignores minus infinity") {
    b.g.add_output(b.node("MaxPool", {pad(-std::numeric_limits<float>::infinity())}, {{"kernel_shape", square}}));
    CHECK(run_and_compare(b, fold_padding{}) == 1);
  }
  SECTION("a maximum does not ignore zeros") {
    b.g.add_output(b.node("MaxPool", {pad(0)}, {{"kernel_shape", square}}));
    CHECK(run_and_compare(b, fold_padding{}) == 0);
  }
  SECTION("a convolution does not ignore ones") {
    b.g.add_output(b.node("Conv", {pad(1), b.constant({4, 2, 3, 3}, 61)}));
    CHECK(run_and_compare(b, fold_padding{}) == 0);
  }
}
