// Holds operators' classes to the papers' lists, and their refinements by attributes, shapes and constants.
#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include <catch2/catch.hpp>

#include <dnnopt/ops/all.hpp>
#include <dnnopt/ops/mapping_table.hpp>
#include <dnnopt/ops/standard.hpp>

namespace {

using namespace dnnopt::ops;
using dnnopt::dynamism_class;
using dnnopt::layout_class;
using dnnopt::mapping_type;

template <class... Ops>
consteval bool map_as(mapping_type type) {
  return ((Ops::mapping == type) && ...);
}
template <class... Ops>
consteval bool lay_out_as(layout_class c) {
  return ((Ops::layout == c) && ...);
}
template <class... Ops>
consteval bool vary_as(dynamism_class c) {
  return ((Ops::dynamism == c) && ...);
}

// DNNFusion, Table 2.
static_assert(map_as<add_op, asin_op, batch_normalization_op, cast_op, ceil_op, clip_op, concat_op, cos_op, erf_op,
                     exp_op, greater_op, leaky_relu_op, log_op, not_op, prelu_op, reciprocal_op, relu_op, round_op,
                     sigmoid_op, sin_op, slice_op, split_op, sqrt_op, tanh_op, where_op>(mapping_type::one_to_one));
static_assert(map_as<expand_op, gather_op, resize_op, upsample_op>(mapping_type::one_to_many));
static_assert(map_as<average_pool_op, conv_op, conv_transpose_op, cum_sum_op, einsum_op, gemm_op,
                     instance_normalization_op, max_pool_op, softmax_op, reduce_l1_op, reduce_l2_op, reduce_log_sum_op,
                     reduce_log_sum_exp_op, reduce_max_op, reduce_mean_op, reduce_min_op, reduce_prod_op, reduce_sum_op,
                     reduce_sum_square_op>(mapping_type::many_to_many));
static_assert(map_as<flatten_op, reshape_op, squeeze_op, unsqueeze_op>(mapping_type::reorganize));
static_assert(map_as<depth_to_space_op, space_to_depth_op, transpose_op>(mapping_type::shuffle));

// SmartMem, Table 3.
static_assert(lay_out_as<conv_op, matmul_op, layer_normalization_op, softmax_op>(layout_class::ild_variable));
static_assert(lay_out_as<reshape_op, transpose_op, depth_to_space_op, space_to_depth_op>(layout_class::ild_fixed));
static_assert(lay_out_as<relu_op, sigmoid_op, tanh_op, erf_op, sqrt_op, neg_op, add_op>(layout_class::ili_variable));
static_assert(lay_out_as<gather_op, slice_op>(layout_class::ili_fixed));

// SoD2, Table 2. Switch and Combine are no ONNX operators.
static_assert(vary_as<shape_op, constant_of_shape_op, eye_like_op>(dynamism_class::isdo));
static_assert(
    vary_as<add_op, average_pool_op, cast_op, concat_op, conv_op, gather_op, matmul_op, max_pool_op, relu_op, round_op,
            sigmoid_op, softmax_op, reduce_l1_op, reduce_l2_op, reduce_log_sum_op, reduce_log_sum_exp_op, reduce_max_op,
            reduce_mean_op, reduce_min_op, reduce_prod_op, reduce_sum_op, reduce_sum_square_op>(dynamism_class::isdos));
static_assert(vary_as<expand_op, max_unpool_op, one_hot_op, range_op, reshape_op, resize_op, slice_op, top_k_op,
                      upsample_op>(dynamism_class::isvdos));
static_assert(vary_as<if_op, loop_op, non_max_suppression_op, non_zero_op>(dynamism_class::edo));
// The one deviation (docs/reference/operator_classes.md): the output shape is the input shape, whatever the values.
static_assert(vary_as<group_normalization_op>(dynamism_class::isdos));

/// A node over inputs of given shapes.
struct node {
  dnnopt::attribute_map attributes;
  dnnopt::expr_context expressions;
  std::vector<dnnopt::value_facts> values;
  std::vector<const dnnopt::value_facts*> inputs;

  node& input(std::vector<dnnopt::index_expr> dims, dnnopt::dtype type = dnnopt::dtype::float32) {
    dnnopt::value_facts value;
    value.type = type;
    value.dims = std::move(dims);
    values.push_back(std::move(value));
    return *this;
  }
  node& constant(std::vector<std::int64_t> numbers) {
    const auto count = static_cast<std::int64_t>(numbers.size());
    input({count}, dnnopt::dtype::int64);
    values.back().constant = dnnopt::tensor::of<std::int64_t>({count}, numbers);
    return *this;
  }
  dnnopt::node_facts facts() {
    inputs.clear();
    for (const auto& value : values) inputs.push_back(&value);
    dnnopt::node_facts result;
    result.attributes = &attributes;
    result.inputs = inputs;
    result.output_count = 1;
    result.expressions = &expressions;
    result.scope = "node";
    return result;
  }
};

template <class Op>
mapping_type mapping(node& n, std::size_t input) {
  return dnnopt::mapping_of(dnnopt::op_row<Op>, n.facts(), input);
}

}  // namespace

TEST_CASE("broadcasting makes an element-wise pair One-to-Many") {
  node same;
  same.input({2, 3}).input({2, 3});
  CHECK(mapping<add_op>(same, 0) == mapping_type::one_to_one);
  CHECK(mapping<add_op>(same, 1) == mapping_type::one_to_one);
  node row;
  row.input({2, 3}).input({3});
  CHECK(mapping<add_op>(row, 0) == mapping_type::one_to_one);
  CHECK(mapping<add_op>(row, 1) == mapping_type::one_to_many);
  CHECK(dnnopt::node_mapping(dnnopt::op_row<add_op>, row.facts()) == mapping_type::one_to_many);
  node leading_ones;
  leading_ones.input({1, 1, 3}).input({3});
  CHECK(mapping<add_op>(leading_ones, 1) == mapping_type::one_to_one);
  node symbolic;
  const auto n = symbolic.expressions.symbol("n");
  symbolic.input({n, 3}).input({n, 3}).input({1, 3});
  CHECK(mapping<where_op>(symbolic, 0) == mapping_type::one_to_one);
  CHECK(mapping<where_op>(symbolic, 2) == mapping_type::one_to_many);
}

TEST_CASE("training makes a batch normalization Many-to-Many and layout dependent") {
  node n;
  n.input({2, 3, 4}).input({3}).input({3}).input({3}).input({3});
  CHECK(mapping<batch_normalization_op>(n, 0) == mapping_type::one_to_one);
  CHECK(mapping<batch_normalization_op>(n, 1) == mapping_type::one_to_many);
  CHECK(dnnopt::layout_of(dnnopt::op_row<batch_normalization_op>, n.facts()) == layout_class::ili_variable);
  n.attributes.set("training_mode", std::int64_t{1});
  CHECK(mapping<batch_normalization_op>(n, 0) == mapping_type::many_to_many);
  CHECK(dnnopt::layout_of(dnnopt::op_row<batch_normalization_op>, n.facts()) == layout_class::ild_variable);
}

TEST_CASE("a constant input makes an operator less dynamic") {
  node computed;
  computed.input({2, 3}).input({1}, dnnopt::dtype::int64);
  CHECK(dnnopt::dynamism_of(dnnopt::op_row<reduce_sum_op>, computed.facts()) == dynamism_class::isvdos);
  node fixed;
  fixed.input({2, 3}).constant({1});
  CHECK(dnnopt::dynamism_of(dnnopt::op_row<reduce_sum_op>, fixed.facts()) == dynamism_class::isdos);
  node reshaped;
  reshaped.input({2, 3}).constant({3, 2});
  CHECK(dnnopt::dynamism_of(dnnopt::op_row<reshape_op>, reshaped.facts()) == dynamism_class::isdos);
}

TEST_CASE("every operator states a scalar expression or needs none") {
  const dnnopt::op_set set = dnnopt::standard_ops();
  for (const dnnopt::op_info* op : set.rows()) {
    CAPTURE(op->name);
    // A scalar expression describes one output element per index of the output: a map, nothing that aggregates.
    if (!op->scalar.empty()) CHECK(op->mapping == mapping_type::one_to_one);
    if (!op->scalar_integer.empty()) CHECK(!op->scalar.empty());
    if (op->kind == dnnopt::computation_kind::element_wise) CHECK(op->layout == layout_class::ili_variable);
  }
}
