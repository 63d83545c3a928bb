// Owns the recognition of products of quantized operands, which are products of integers.
#ifndef DNNOPT_PASSES_RECOGNITION_RECOGNIZE_INTEGER_PRODUCTS_HPP
#define DNNOPT_PASSES_RECOGNITION_RECOGNIZE_INTEGER_PRODUCTS_HPP

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dnnopt/graph.hpp>
#include <dnnopt/ops/arithmetic.hpp>
#include <dnnopt/ops/conversion.hpp>
#include <dnnopt/ops/convolution.hpp>
#include <dnnopt/ops/matrix_product.hpp>
#include <dnnopt/ops/permute.hpp>
#include <dnnopt/ops/reshape.hpp>
#include <dnnopt/passes/pass.hpp>
#include <dnnopt/passes/remove_dead.hpp>
#include <dnnopt/passes/rewriting/constants.hpp>
#include <dnnopt/passes/rewriting/edit.hpp>

namespace dnnopt {

/// Before: y = Conv(DequantizeLinear(x), DequantizeLinear(w), b), or MatMul or Gemm of such operands, of eight bits; or
/// QLinearConv, QLinearMatMul.
/// After:  y = Cast(ConvInteger(x, w)) * scales + b, or MatMulInteger; quantized again by QuantizeLinear where it was.
///
/// A sum of products of (x - zero point) * scale is the scales' product times an integer sum, which has no rounding
/// (Jacob et al., "Quantization and Training of Neural Networks for Efficient Integer-Arithmetic-Only Inference", CVPR
/// 2018, section 2.2). Everything after the sum stays one operator each, which fusion puts into the product's kernel.
/// Conditions: the first operand has one scale, the second one or one for each output channel, all constant; results in
/// float32; so few products in a sum that it fits int32; a convolution has weights that are constant, and no thin
/// groups, whose few products are as fast in floats.
struct recognize_integer_products {
  static constexpr std::string_view name = "recognize_integer_products";
  node_evaluator evaluate = nullptr;  ///< folds weights that the model quantizes itself; null: those stay

  pass_result run(graph& g) const {
    pass_result result;
    for (const node_id id : g.topological_order())
      if (!g.node_at(id).removed && rewrite(g, id)) ++result.edits;
    if (result.edits != 0) (void)remove_dead{}.run(g);
    return result;
  }

 private:
  /// An operand of eight bits with constant scales and zero points.
  struct quantized {
    value_id bytes = no_value;
    value_id scale = no_value;
    value_id zero = no_value;  ///< or nothing: 0
    std::int64_t axis = 1;     ///< of scales that are more than one
  };

  static bool is_byte(const graph& g, value_id id) { return dnnopt::is_byte(g.facts(id).type); }
  static std::int64_t count_of(const graph& g, value_id constant) { return g.facts(constant).constant.size(); }

  /// Weights that the model itself quantizes become constant.
  void fold_quantized_constant(graph& g, value_id id) const {
    const node_id producer = g.value_at(id).producer;
    if (producer == no_node || evaluate == nullptr || g.facts(id).is_constant()) return;
    const node& n = g.node_at(producer);
    if (n.op != &op_row<ops::quantize_linear_op>) return;
    std::vector<tensor> inputs;
    for (const value_id in : n.inputs) {
      if (in != no_value && !g.facts(in).is_constant()) return;
      inputs.push_back(in == no_value ? tensor() : g.facts(in).constant);
    }
    std::vector<tensor> made = evaluate(g, producer, inputs);
    g.remove_node(producer);
    g.make_constant(id, std::move(made[0]));
  }

  /// The operand that a DequantizeLinear makes a value of, or nothing.
  [[nodiscard]] std::optional<quantized> quantized_operand(graph& g, value_id id) const {
    const node* made = rewriting::made_by(g, id, op_row<ops::dequantize_linear_op>);
    if (made == nullptr || g.facts(id).type != dtype::float32 || made->attributes.get_int("block_size", 0) != 0)
      return std::nullopt;
    quantized found{made->inputs[0], made->inputs[1], made->inputs.size() > 2 ? made->inputs[2] : no_value,
                    made->attributes.get_int("axis", 1)};
    fold_quantized_constant(g, found.bytes);
    return has_constant_scales(g, found) ? std::optional(found) : std::nullopt;
  }

  [[nodiscard]] static bool has_constant_scales(const graph& g, const quantized& q) {
    if (!is_byte(g, q.bytes) || !g.facts(q.bytes).dims) return false;
    const value_facts& scale = g.facts(q.scale);
    if (!scale.is_constant() || scale.type != dtype::float32 || scale.constant.rank() > 1 || scale.constant.size() < 1)
      return false;
    if (q.zero == no_value) return true;
    const value_facts& zero = g.facts(q.zero);
    return zero.is_constant() && zero.type == g.facts(q.bytes).type && zero.constant.size() == scale.constant.size();
  }

  [[nodiscard]] static std::vector<double> scales_of(const graph& g, value_id constant) {
    return rewriting::numbers_of(g.facts(constant).constant).value_or(std::vector<double>{});
  }

  /// The products of one scale and of others, over another one, in float32 as the operators would multiply them, as a
  /// constant of dims `dims`.
  static value_id product_of_scales(graph& g, value_id first, value_id others, value_id over, const dim_list& dims) {
    const float one = static_cast<float>(scales_of(g, first)[0]);
    const float divisor = over == no_value ? 1.0F : static_cast<float>(scales_of(g, over)[0]);
    std::vector<double> products;
    for (const double each : scales_of(g, others))
      products.push_back(static_cast<double>(one * static_cast<float>(each) / divisor));
    return g.add_constant(rewriting::fresh_value_name(g, g.value_at(others).name),
                          rewriting::tensor_of(dtype::float32, dims, products));
  }

  [[nodiscard]] bool rewrite(graph& g, node_id id) const {
    const op_info* const op = g.node_at(id).op;
    if (op == &op_row<ops::conv_op>) return rewrite_convolution(g, id);
    if (op == &op_row<ops::matmul_op>) return rewrite_product(g, id);
    if (op == &op_row<ops::gemm_op>) return rewrite_gemm(g, id);
    if (op == &op_row<ops::qlinear_conv_op>) return rewrite_qlinear_convolution(g, id);
    if (op == &op_row<ops::qlinear_matmul_op>) return rewrite_qlinear_product(g, id);
    return false;
  }

  /// Whether int32 holds every sum of so many products of differences of bytes.
  [[nodiscard]] static bool sums_fit(const index_expr& products) {
    constexpr std::int64_t largest_product = 255 * 255;
    return products.range().high <= std::numeric_limits<std::int32_t>::max() / largest_product;
  }

  /// Whether the weights of a convolution are constant, with a scale for all or for each output channel, and its groups
  /// not thin.
  [[nodiscard]] static bool takes_weights(const graph& g, const node& n, const quantized& w) {
    const value_facts& weights = g.facts(w.bytes);
    if (!weights.is_constant() || weights.constant.rank() < 3) return false;
    const dim_list& dims = weights.constant.dims();
    const std::int64_t scales = count_of(g, w.scale);
    if (scales != 1 && (scales != dims[0] || normalize_axis(w.axis, dims.size()) != 0)) return false;
    constexpr std::int64_t thin_group = 4;
    if (!sums_fit(weights.constant.size() / std::max<std::int64_t>(dims[0], 1))) return false;
    return n.attributes.get_int("group", 1) == 1 || dims[1] >= thin_group;
  }

  /// Dims that lay numbers of output channels along dim 1 of a result of `rank`.
  [[nodiscard]] static dim_list along_channels(std::int64_t count, std::size_t rank) {
    dim_list dims(rank, 1);
    dims[1] = count;
    return dims;
  }
  [[nodiscard]] static value_id channels_of(graph& g, value_id bias, std::size_t rank) {
    std::vector<std::int64_t> dims(rank, 1);
    dims[1] = -1;
    const std::string& prefix = g.value_at(bias).name;
    return rewriting::append(g, op_row<ops::reshape_op>, prefix, {bias, rewriting::add_integers(g, prefix, dims)});
  }

  [[nodiscard]] static std::vector<value_id> integer_inputs(const quantized& a, const quantized& b) {
    std::vector<value_id> inputs{a.bytes, b.bytes};
    if (a.zero != no_value || b.zero != no_value) inputs.push_back(a.zero);
    if (b.zero != no_value) inputs.push_back(b.zero);
    return inputs;
  }

  /// The sums as float32, which the scales multiply.
  [[nodiscard]] static value_id as_floats(graph& g, value_id sums, const std::string& prefix) {
    attribute_map to;
    to.set("to", static_cast<std::int64_t>(dtype::float32));
    return rewriting::append(g, op_row<ops::cast_op>, prefix, {sums}, std::move(to));
  }

  /// Adds the last node of a replacement, which makes the value `out` that the replaced one made.
  static void end_with(graph& g, const op_info& op, const std::string& node_name, std::vector<value_id> inputs,
                       value_id out, attribute_map attributes = {}) {
    g.add_node(op, node_name, std::move(inputs), {out}, std::move(attributes));
  }

  [[nodiscard]] bool rewrite_convolution(graph& g, node_id id) const {
    const std::vector<value_id> in = g.node_at(id).inputs;
    const auto x = quantized_operand(g, in[0]);
    const auto w = x ? quantized_operand(g, in[1]) : std::nullopt;
    if (!x || !w || count_of(g, x->scale) != 1 || !takes_weights(g, g.node_at(id), *w)) return false;
    const node n = g.node_at(id);
    const std::size_t rank = g.facts(x->bytes).dims->size();
    const value_id bias = in.size() > 2 ? in[2] : no_value;
    g.remove_node(id);
    const value_id sums =
        rewriting::append(g, op_row<ops::conv_integer_op>, n.name, integer_inputs(*x, *w), n.attributes);
    const value_id floats = as_floats(g, sums, n.name);
    const std::int64_t scales = count_of(g, w->scale);
    const value_id scale = product_of_scales(g, x->scale, w->scale, no_value, along_channels(scales, rank));
    if (bias == no_value) {
      end_with(g, op_row<ops::mul_op>, n.name, {floats, scale}, n.outputs[0]);
      return true;
    }
    const value_id scaled = rewriting::append(g, op_row<ops::mul_op>, n.name, {floats, scale});
    end_with(g, op_row<ops::add_op>, n.name, {scaled, channels_of(g, bias, rank)}, n.outputs[0]);
    return true;
  }

  /// Whether the second operand of a product has one scale, or one for each of the last dim's elements.
  [[nodiscard]] static bool takes_columns(const graph& g, const quantized& b, std::size_t axis) {
    const shape& dims = *g.facts(b.bytes).dims;
    if (dims.size() < 2 || !sums_fit(dims[dims.size() - 1 - (axis == 1 ? 1 : 0)])) return false;
    if (count_of(g, b.scale) == 1) return true;
    return dims.size() == 2 && normalize_axis(b.axis, 2) == axis && dims[axis] == index_expr(count_of(g, b.scale));
  }
  [[nodiscard]] static dim_list along_columns(const graph& g, const quantized& b) {
    const std::int64_t count = count_of(g, b.scale);
    return count == 1 ? dim_list{} : dim_list{count};
  }

  [[nodiscard]] bool rewrite_product(graph& g, node_id id) const {
    const std::vector<value_id> in = g.node_at(id).inputs;
    const auto a = quantized_operand(g, in[0]);
    const auto b = a ? quantized_operand(g, in[1]) : std::nullopt;
    if (!a || !b || count_of(g, a->scale) != 1 || g.facts(a->bytes).dims->size() < 2 || !takes_columns(g, *b, 1))
      return false;
    const node n = g.node_at(id);
    g.remove_node(id);
    const value_id sums = rewriting::append(g, op_row<ops::matmul_integer_op>, n.name, scalar_zeros(g, *a, *b));
    const value_id scale = product_of_scales(g, a->scale, b->scale, no_value, along_columns(g, *b));
    end_with(g, op_row<ops::mul_op>, n.name, {as_floats(g, sums, n.name), scale}, n.outputs[0]);
    return true;
  }

  /// The inputs of MatMulInteger: its zero points are numbers, or one for each column.
  [[nodiscard]] static std::vector<value_id> scalar_zeros(graph& g, quantized a, quantized b) {
    for (quantized* const one : {&a, &b})
      if (one->zero != no_value && count_of(g, one->zero) == 1 && g.facts(one->zero).constant.rank() != 0)
        one->zero = g.add_constant(rewriting::fresh_value_name(g, g.value_at(one->zero).name),
                                   g.facts(one->zero).constant.reshaped({}));
    return integer_inputs(a, b);
  }

  [[nodiscard]] bool rewrite_gemm(graph& g, node_id id) const {
    const node n = g.node_at(id);
    if (n.attributes.get_int("transA", 0) != 0) return false;
    const auto a = quantized_operand(g, n.inputs[0]);
    auto b = a ? quantized_operand(g, n.inputs[1]) : std::nullopt;
    const bool across = n.attributes.get_int("transB", 0) != 0;
    if (!a || !b || count_of(g, a->scale) != 1 || !takes_columns(g, *b, across ? 0 : 1)) return false;
    g.remove_node(id);
    if (across) {
      attribute_map turned;
      turned.set("perm", std::vector<std::int64_t>{1, 0});
      b->bytes = rewriting::append(g, op_row<ops::transpose_op>, n.name, {b->bytes}, std::move(turned));
    }
    const value_id sums = rewriting::append(g, op_row<ops::matmul_integer_op>, n.name, scalar_zeros(g, *a, *b));
    const float alpha = n.attributes.get_float("alpha", 1.0F);
    const float beta = n.attributes.get_float("beta", 1.0F);
    value_id scale = product_of_scales(g, a->scale, b->scale, no_value, along_columns(g, *b));
    if (alpha != 1.0F) scale = rewriting::append(g, op_row<ops::mul_op>, n.name, {scale, number(g, n.name, alpha)});
    const value_id floats = as_floats(g, sums, n.name);
    if (n.inputs.size() < 3 || n.inputs[2] == no_value) {
      end_with(g, op_row<ops::mul_op>, n.name, {floats, scale}, n.outputs[0]);
      return true;
    }
    const value_id scaled = rewriting::append(g, op_row<ops::mul_op>, n.name, {floats, scale});
    value_id bias = n.inputs[2];
    if (beta != 1.0F) bias = rewriting::append(g, op_row<ops::mul_op>, n.name, {bias, number(g, n.name, beta)});
    end_with(g, op_row<ops::add_op>, n.name, {scaled, bias}, n.outputs[0]);
    return true;
  }
  static value_id number(graph& g, const std::string& prefix, float value) {
    return g.add_constant(rewriting::fresh_value_name(g, prefix),
                          rewriting::tensor_of(dtype::float32, {}, {static_cast<double>(value)}));
  }

  /// Quantizes `scaled`, which the result's scale has divided already.
  static void end_quantized(graph& g, const node& n, value_id scaled, value_id zero) {
    end_with(g, op_row<ops::quantize_linear_op>, n.name, {scaled, number(g, n.name, 1.0F), zero}, n.outputs[0]);
  }

  [[nodiscard]] static bool has_one_scale(const graph& g, value_id scale) {
    const value_facts& facts = g.facts(scale);
    return facts.is_constant() && facts.type == dtype::float32 && facts.constant.size() == 1;
  }

  [[nodiscard]] bool rewrite_qlinear_convolution(graph& g, node_id id) const {
    const node n = g.node_at(id);
    const quantized x{n.inputs[0], n.inputs[1], n.inputs[2], 1};
    const quantized w{n.inputs[3], n.inputs[4], n.inputs[5], 0};
    if (!has_constant_scales(g, x) || !has_constant_scales(g, w) || count_of(g, x.scale) != 1 ||
        !takes_weights(g, n, w) || !has_one_scale(g, n.inputs[6]))
      return false;
    const std::size_t rank = g.facts(x.bytes).dims->size();
    g.remove_node(id);
    value_id sums = rewriting::append(g, op_row<ops::conv_integer_op>, n.name, integer_inputs(x, w), n.attributes);
    if (n.inputs.size() > 8 && n.inputs[8] != no_value)
      sums = rewriting::append(g, op_row<ops::add_op>, n.name, {sums, channels_of(g, n.inputs[8], rank)});
    const value_id scale =
        product_of_scales(g, x.scale, w.scale, n.inputs[6], along_channels(count_of(g, w.scale), rank));
    const value_id scaled = rewriting::append(g, op_row<ops::mul_op>, n.name, {as_floats(g, sums, n.name), scale});
    end_quantized(g, n, scaled, n.inputs[7]);
    return true;
  }

  [[nodiscard]] bool rewrite_qlinear_product(graph& g, node_id id) const {
    const node n = g.node_at(id);
    const quantized a{n.inputs[0], n.inputs[1], n.inputs[2], 1};
    const quantized b{n.inputs[3], n.inputs[4], n.inputs[5], 1};
    if (!has_constant_scales(g, a) || !has_constant_scales(g, b) || count_of(g, a.scale) != 1 ||
        g.facts(a.bytes).dims->size() < 2 || !takes_columns(g, b, 1) || !has_one_scale(g, n.inputs[6]))
      return false;
    g.remove_node(id);
    const value_id sums = rewriting::append(g, op_row<ops::matmul_integer_op>, n.name, scalar_zeros(g, a, b));
    const value_id scale = product_of_scales(g, a.scale, b.scale, n.inputs[6], along_columns(g, b));
    const value_id scaled = rewriting::append(g, op_row<ops::mul_op>, n.name, {as_floats(g, sums, n.name), scale});
    end_quantized(g, n, scaled, n.inputs[7]);
    return true;
  }
};

static_assert(Pass<recognize_integer_products>);

}  // namespace dnnopt

#endif  // DNNOPT_PASSES_RECOGNITION_RECOGNIZE_INTEGER_PRODUCTS_HPP
