// Checks what the traits of arithmetic, products, windows and reductions infer from symbolic shapes and values.
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <catch2/catch.hpp>

#include <dnnopt/ops/arithmetic.hpp>
#include <dnnopt/ops/attention.hpp>
#include <dnnopt/ops/conversion.hpp>
#include <dnnopt/ops/convolution.hpp>
#include <dnnopt/ops/logic.hpp>
#include <dnnopt/ops/matrix_product.hpp>
#include <dnnopt/ops/normalization.hpp>
#include <dnnopt/ops/pooling.hpp>
#include <dnnopt/ops/reduction.hpp>

namespace {

using dnnopt::dtype;
using dnnopt::index_expr;
using dnnopt::shape;
using dnnopt::value_facts;
using ints = std::vector<std::int64_t>;
using namespace dnnopt::ops;

/// A node whose inputs are added one by one; index 0 is the first.
class node {
 public:
  [[nodiscard]] index_expr symbol(const std::string& name, std::int64_t low = 1) {
    return expressions_.symbol(name, {low, dnnopt::unbounded});
  }
  node& set(const std::string& name, dnnopt::attribute value) {
    attributes_.set(name, std::move(value));
    return *this;
  }
  node& of(shape dims, dtype type = dtype::float32) {
    value_facts value;
    value.type = type;
    value.dims = std::move(dims);
    values_.push_back(std::move(value));
    return *this;
  }
  /// An integer vector whose elements are known expressions.
  node& elements(std::vector<index_expr> known, dtype type = dtype::int64) {
    of({static_cast<std::int64_t>(known.size())}, type);
    values_.back().elements = std::move(known);
    return *this;
  }
  node& unknown() {
    values_.emplace_back();
    return *this;
  }
  [[nodiscard]] dnnopt::node_facts facts() {
    pointers_.clear();
    for (const value_facts& value : values_) pointers_.push_back(&value);
    dnnopt::node_facts result;
    result.attributes = &attributes_;
    result.inputs = pointers_;
    result.output_count = 1;
    result.expressions = &expressions_;
    result.scope = "node";
    return result;
  }
  template <class Op>
  [[nodiscard]] value_facts infer() {
    std::vector<value_facts> outputs(1);
    Op::infer(facts(), outputs);
    return outputs[0];
  }
  /// The inputs after one backward step from an output of these dims.
  template <class Op>
  [[nodiscard]] std::vector<value_facts> infer_backward(shape dims) {
    std::vector<value_facts> outputs(1);
    outputs[0].dims = std::move(dims);
    std::vector<value_facts> inputs = values_;
    Op::infer_backward(facts(), outputs, inputs);
    return inputs;
  }

 private:
  dnnopt::expr_context expressions_;
  dnnopt::attribute_map attributes_;
  std::vector<value_facts> values_;
  std::vector<const value_facts*> pointers_;
};

}  // namespace

TEST_CASE("shape arithmetic stays an expression") {
  node n;
  const index_expr a = n.symbol("a");
  const index_expr b = n.symbol("b");
  n.elements({a, b}).elements({2, a});
  CHECK(n.infer<add_op>().elements == std::vector<index_expr>{a + 2, a + b});
  CHECK(n.infer<mul_op>().elements == std::vector<index_expr>{2 * a, a * b});
  CHECK(n.infer<min_op>().elements == std::vector<index_expr>{min(a, 2), min(a, b)});
  CHECK(n.infer<div_op>().elements == std::vector<index_expr>{floordiv(a, 2), floordiv(b, a)});
  CHECK(n.infer<mod_op>().elements == std::vector<index_expr>{mod(a, 2), mod(b, a)});
}

TEST_CASE("division truncates where signs are not known") {
  node n;
  const index_expr d = n.symbol("a") - n.symbol("b");
  n.elements({d, -7}).elements({3, 2});
  const auto found = n.infer<div_op>().elements.value();
  CHECK(found[1] == index_expr(-3));
  for (const std::int64_t a : {1, 2, 9})
    for (const std::int64_t b : {1, 5, 12}) {
      dnnopt::symbol_values values;
      values.bind(*n.symbol("a").as_symbol(), a);
      values.bind(*n.symbol("b").as_symbol(), b);
      CHECK(found[0].evaluate(values) == (a - b) / 3);
    }
}

TEST_CASE("scalars broadcast in shape arithmetic, and constants that leave the type stay unknown") {
  node n;
  const index_expr a = n.symbol("a");
  n.elements({a, 1}).of({}, dtype::int64);
  CHECK(!n.infer<add_op>().elements);
  node wide;
  wide.elements({2147483647}, dtype::int32).elements({1}, dtype::int32);
  CHECK(!wide.infer<add_op>().elements);
  node overflow;
  overflow.elements({std::int64_t{1} << 62}).elements({8});
  CHECK(!overflow.infer<mul_op>().elements);
  node zero;
  zero.elements({1}).elements({0});
  CHECK(!zero.infer<div_op>().elements);
}

TEST_CASE("comparisons are decided by ranges, and Where by conditions") {
  node n;
  const index_expr a = n.symbol("a");
  n.elements({a, a, 3}).elements({0, a, 4});
  CHECK(n.infer<greater_op>().elements == std::vector<index_expr>{1, 0, 0});
  CHECK(n.infer<less_or_equal_op>().elements == std::vector<index_expr>{0, 1, 1});
  CHECK(n.infer<equal_op>().elements == std::vector<index_expr>{0, 1, 0});
  node chosen;
  const index_expr b = chosen.symbol("b");
  chosen.elements({1, 0}, dtype::boolean).elements({b, b}).elements({5, 6});
  CHECK(chosen.infer<where_op>().elements == std::vector<index_expr>{b, 6});
}

TEST_CASE("comparisons that ranges leave open are expressions of value 0 or 1") {
  node n;
  const index_expr a = n.symbol("a", 0);
  const index_expr b = n.symbol("b", 0);
  n.elements({a}).elements({b});
  const auto value = [&](const auto& output, std::int64_t left, std::int64_t right) {
    REQUIRE(output.elements);
    const dnnopt::expr_range range = output.elements->front().range();
    CHECK((range.low >= 0 && range.high <= 1));
    dnnopt::symbol_values values;
    values.bind(*a.as_symbol(), left);
    values.bind(*b.as_symbol(), right);
    return output.elements->front().evaluate(values);
  };
  node number;
  number.elements({number.symbol("a", 0)}).set("to", std::int64_t{9});
  for (std::int64_t left = 0; left < 5; ++left) {
    dnnopt::symbol_values values;
    values.bind(*number.symbol("a").as_symbol(), left);
    CHECK(number.infer<cast_op>().elements->front().evaluate(values) == (left != 0));
    for (std::int64_t right = 0; right < 5; ++right) {
      CAPTURE(left, right);
      CHECK(value(n.infer<equal_op>(), left, right) == (left == right));
      CHECK(value(n.infer<less_op>(), left, right) == (left < right));
      CHECK(value(n.infer<less_or_equal_op>(), left, right) == (left <= right));
      CHECK(value(n.infer<greater_op>(), left, right) == (left > right));
      CHECK(value(n.infer<greater_or_equal_op>(), left, right) == (left >= right));
    }
  }
}

TEST_CASE("conversions keep integer elements and decide boolean ones") {
  node n;
  const index_expr a = n.symbol("a");
  n.elements({a, 0}).set("to", std::int64_t{6});
  CHECK(n.infer<cast_op>().elements == std::vector<index_expr>{a, 0});
  n.set("to", std::int64_t{9});
  CHECK(n.infer<cast_op>().elements == std::vector<index_expr>{1, 0});
  n.set("to", std::int64_t{1});
  CHECK(!n.infer<cast_op>().elements);
  CHECK(n.infer<cast_op>().type == dtype::float32);
  n.set("to", std::int64_t{99});
  CHECK_THROWS_AS(n.infer<cast_op>(), dnnopt::error);
}

TEST_CASE("broadcast shapes keep symbols") {
  node n;
  const index_expr batch = n.symbol("batch");
  const index_expr length = n.symbol("length");
  n.of({batch, 1, length}).of({4, 1});
  CHECK(n.infer<add_op>().dims == shape{batch, 4, length});
  node bad;
  bad.of({2, 3}).of({4, 3});
  CHECK_THROWS_WITH(bad.infer<add_op>(), Catch::Contains("[2, 3]") && Catch::Contains("[4, 3]"));
  node types;
  types.of({2}).of({2}, dtype::int64);
  CHECK_THROWS_WITH(types.infer<mul_op>(), Catch::Contains("float32") && Catch::Contains("int64"));
}

TEST_CASE("an operand of unknown rank beside a scalar has the result's shape") {
  node n;
  n.unknown().of({});
  const index_expr a = n.symbol("a");
  CHECK(n.infer_backward<add_op>({a, 3})[0].dims == shape{a, 3});
  node open;
  open.unknown().of({3});
  CHECK(!open.infer_backward<add_op>({2, 3})[0].dims);
}

// SoD2, Fig. 3b: S1 = [2c, 4b] from S3 = [2a, 2c] and S4 = [2a, 4b].
TEST_CASE("a matrix operand follows from the other one and the product") {
  node n;
  const index_expr a = n.symbol("a"), b = n.symbol("b"), c = n.symbol("c");
  n.of({2 * a, 2 * c}).unknown();
  CHECK(n.infer_backward<matmul_op>({2 * a, 4 * b})[1].dims == shape{2 * c, 4 * b});
}

TEST_CASE("products of symbolic shapes") {
  node n;
  const index_expr batch = n.symbol("batch");
  n.of({batch, 8, 5, 64}).of({64, 7});
  CHECK(n.infer<matmul_op>().dims == shape{batch, 8, 5, 7});
  CHECK(matmul_op::macs(n.facts()) == batch * (8 * 5 * 7 * 64));
  node vector;
  vector.of({5}).of({5});
  CHECK(vector.infer<matmul_op>().dims == shape{});
  node bad;
  bad.of({2, 3}).of({4, 5});
  CHECK_THROWS_AS(bad.infer<matmul_op>(), dnnopt::error);
  node gemm;
  gemm.of({6, batch}).of({7, 6}).set("transA", std::int64_t{1}).set("transB", std::int64_t{1});
  CHECK(gemm.infer<gemm_op>().dims == shape{batch, 7});
}

TEST_CASE("Einsum labels, repeated, summed and behind an ellipsis") {
  node n;
  const index_expr batch = n.symbol("batch");
  n.of({batch, 3, 4, 5}).of({batch, 3, 6, 5}).set("equation", std::string("...id, ...jd -> ...ij"));
  CHECK(n.infer<einsum_op>().dims == shape{batch, 3, 4, 6});
  CHECK(einsum_op::macs(n.facts()) == batch * (3 * 4 * 6 * 5));
  node implicit;
  implicit.of({2, 3}).of({3, 4}).set("equation", std::string("ba,ac"));
  CHECK(implicit.infer<einsum_op>().dims == shape{2, 4});
  node diagonal;
  diagonal.of({3, 3}).set("equation", std::string("ii->i"));
  CHECK(diagonal.infer<einsum_op>().dims == shape{3});
  node bad;
  bad.of({2, 3}).set("equation", std::string("ijk->i"));
  CHECK_THROWS_AS(bad.infer<einsum_op>(), dnnopt::error);
}

TEST_CASE("windows over symbolic extents") {
  node n;
  const index_expr batch = n.symbol("batch"), h = n.symbol("h"), w = n.symbol("w");
  n.of({batch, 3, h, w}).of({8, 3, 3, 3}).set("strides", ints{2, 2}).set("pads", ints{1, 1, 1, 1});
  const auto found = n.infer<conv_op>().dims.value();
  CHECK(found[1] == index_expr(8));
  for (const std::int64_t size : {1, 2, 7, 224}) {
    dnnopt::symbol_values values;
    values.bind(*h.as_symbol(), size);
    values.bind(*w.as_symbol(), size + 1);
    CHECK(found[2].evaluate(values) == (size - 1) / 2 + 1);
    CHECK(found[3].evaluate(values) == size / 2 + 1);
  }
  node same;
  same.of({1, 3, 7, 8}).of({8, 3, 3, 2}).set("auto_pad", std::string("SAME_UPPER")).set("strides", ints{2, 3});
  CHECK(same.infer<conv_op>().dims == shape{1, 8, 4, 3});
  node bad;
  bad.of({1, 4, 7, 8}).of({8, 3, 3, 3});
  CHECK_THROWS_WITH(bad.infer<conv_op>(), Catch::Contains("[1, 4, 7, 8]"));
  node deconvolved;
  deconvolved.of({1, 4, 5}).of({4, 2, 3}).set("strides", ints{2}).set("output_padding", ints{1});
  CHECK(deconvolved.infer<conv_transpose_op>().dims == shape{1, 2, 12});
}

TEST_CASE("a last window that would start in the end padding does not count") {
  node n;
  n.of({1, 1, 4}).set("kernel_shape", ints{1}).set("strides", ints{2}).set("ceil_mode", std::int64_t{1});
  CHECK(n.infer<max_pool_op>().dims == shape{1, 1, 2});
  node padded;
  padded.of({1, 1, 2})
      .set("kernel_shape", ints{3})
      .set("strides", ints{2})
      .set("pads", ints{1, 1})
      .set("ceil_mode", std::int64_t{1});
  CHECK(padded.infer<average_pool_op>().dims == shape{1, 1, 2});
}

TEST_CASE("reductions drop or keep dims, by known or computed axes") {
  node n;
  const index_expr a = n.symbol("a");
  n.of({a, 3, 4}).elements({-1, 0});
  CHECK(n.infer<reduce_sum_op>().dims == shape{1, 3, 1});
  n.set("keepdims", std::int64_t{0});
  CHECK(n.infer<reduce_sum_op>().dims == shape{3});
  node computed;
  computed.of({2, 3}).of({1}, dtype::int64).set("keepdims", std::int64_t{0});
  const auto found = computed.infer<reduce_sum_op>().dims.value();
  CHECK(found.size() == 1);
  CHECK(!found[0].is_constant());
  node product;
  product.elements({a, 3, 4}).set("keepdims", std::int64_t{0});
  CHECK(product.infer<reduce_prod_op>().elements == std::vector<index_expr>{12 * a});
  node outside;
  outside.of({2, 3}).elements({2});
  CHECK_THROWS_AS(outside.infer<reduce_sum_op>(), dnnopt::error);
}

TEST_CASE("attention extends keys by the past") {
  node n;
  const index_expr past = n.symbol("past"), length = n.symbol("length");
  n.of({2, length, 64}).of({2, length, 32}).of({2, length, 48}).of({length, length + past});
  n.of({2, 2, past, 16}).of({2, 2, past, 24}).set("q_num_heads", std::int64_t{4}).set("kv_num_heads", std::int64_t{2});
  std::vector<value_facts> outputs(3);
  attention_op::infer(n.facts(), outputs);
  CHECK(outputs[0].dims == shape{2, length, 96});
  CHECK(outputs[1].dims == shape{2, 2, length + past, 16});
  CHECK(outputs[2].dims == shape{2, 2, length + past, 24});
}
