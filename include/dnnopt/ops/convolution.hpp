// Owns the traits of ONNX's convolutions (Conv, ConvTranspose, DeformConv, the quantized ones) and of Col2Im.
#ifndef DNNOPT_OPS_CONVOLUTION_HPP
#define DNNOPT_OPS_CONVOLUTION_HPP

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include <dnnopt/ops/element_wise.hpp>
#include <dnnopt/ops/window.hpp>

namespace dnnopt::ops {

/// A slot that no convolution has.
inline constexpr std::size_t no_bias = 1000;

/// What convolutions share: data is input `Data`, weights [out, in / group, kernel...] are input `Weights`, and a bias
/// of the output channels may be input `Bias`.
template <std::size_t Data, std::size_t Weights, std::size_t Bias>
struct convolution_classes {
  static constexpr mapping_type mapping = mapping_type::many_to_many;
  static constexpr layout_class layout = layout_class::ild_variable;
  static constexpr dynamism_class dynamism = dynamism_class::isdos;
  static constexpr computation_kind kind = computation_kind::convolution;

  static mapping_type mapping_of(const node_facts&, std::size_t input, std::size_t) {
    return input == Data || input == Weights ? mapping_type::many_to_many : mapping_type::one_to_many;
  }
  /// The window extents: attribute kernel_shape or the weights' dims; nothing while they are unknown.
  static std::optional<std::vector<std::int64_t>> kernel(const node_facts& facts) {
    std::vector<std::int64_t> result = kernel_of(*facts.attributes);
    const shape* weights = facts.dims(Weights);
    if (!result.empty() || weights == nullptr || weights->size() < 2)
      return result.empty() ? std::nullopt : std::optional(result);
    return static_dims(shape(weights->begin() + 2, weights->end()));
  }
  /// Errors: shape_mismatch for ranks below 3, unequal ranks, or channels that do not fit groups.
  static void check(const node_facts& facts, bool transposed) {
    const shape* data = facts.dims(Data);
    const shape* weights = facts.dims(Weights);
    if (data == nullptr || weights == nullptr) return;
    if (data->size() < 3 || weights->size() != data->size())
      throw error(errc::shape_mismatch,
                  "a convolution of " + to_string(*data) + " with weights " + to_string(*weights));
    const std::int64_t group = facts.attributes->get_int("group", 1);
    if (group < 1) throw error(errc::bad_attribute, "attribute 'group' is " + std::to_string(group));
    const index_expr channels = (*weights)[transposed ? 0 : 1] * (transposed ? 1 : group);
    if (!((*data)[1] == channels))
      facts.require(guard_relation::equal, (*data)[1], channels,
                    "channels of a convolution of " + to_string(*data) + " with weights " + to_string(*weights) +
                        " in " + std::to_string(group) + " groups");
    facts.require(guard_relation::multiple, (*weights)[0], group, "channels and groups of a convolution's weights");
    if (const shape* bias = facts.dims(Bias))
      facts.require(guard_relation::equal, element_count(*bias), transposed ? (*weights)[1] * group : (*weights)[0],
                    "the bias and the output channels of a convolution");
  }
  static void infer_shape(const node_facts& facts, value_facts& output) {
    check(facts, false);
    const shape* data = facts.dims(Data);
    const shape* weights = facts.dims(Weights);
    if (data == nullptr || data->size() < 3) return;
    shape dims{(*data)[0], weights != nullptr ? (*weights)[0] : facts.data_dim(0, 1)};
    if (const auto extents = kernel(facts))
      for (const window_axis& axis : windows(*facts.attributes, std::span(*data).subspan(2), *extents)) {
        require_window(facts, axis);
        dims.push_back(axis.output);
      }
    else
      for (std::size_t i = 2; i < data->size(); ++i) dims.push_back(facts.data_dim(0, i));
    output.dims = std::move(dims);
  }
  /// Per output element, one product per weight of its output channel.
  static index_expr macs(const node_facts& facts) {
    const shape* weights = facts.dims(Weights);
    value_facts output;
    infer_shape(facts, output);
    if (weights == nullptr || !output.dims) return 0;
    return element_count(*output.dims) * element_count(shape(weights->begin() + 1, weights->end()));
  }
};

struct conv_op : convolution_classes<0, 1, 2> {
  static constexpr std::string_view name = "Conv";
  static constexpr int since = 22;
  static constexpr op_arity arity{2, 3};

  static void infer(const node_facts& facts, std::span<value_facts> outputs) {
    require_one_type(facts, 0, 3);
    outputs[0].type = common_type(facts, 0, 3);
    infer_shape(facts, outputs[0]);
  }
};

/// Weights are [in, out / group, kernel...].
struct conv_transpose_op : convolution_classes<0, 1, 2> {
  static constexpr std::string_view name = "ConvTranspose";
  static constexpr int since = 22;
  static constexpr op_arity arity{2, 3};

  static void infer(const node_facts& facts, std::span<value_facts> outputs) {
    require_one_type(facts, 0, 3);
    check(facts, true);
    outputs[0].type = common_type(facts, 0, 3);
    const shape* data = facts.dims(0);
    const shape* weights = facts.dims(1);
    if (data == nullptr || data->size() < 3) return;
    shape dims{(*data)[0],
               weights != nullptr ? (*weights)[1] * facts.attributes->get_int("group", 1) : facts.data_dim(0, 1)};
    if (const auto extents = kernel(facts))
      for (const window_axis& axis : transposed_windows(*facts.attributes, std::span(*data).subspan(2), *extents))
        dims.push_back(axis.output);
    else
      for (std::size_t i = 2; i < data->size(); ++i) dims.push_back(facts.data_dim(0, i));
    outputs[0].dims = std::move(dims);
  }
  /// Per input element, one product per weight of its input channel.
  static index_expr macs(const node_facts& facts) {
    const shape* data = facts.dims(0);
    const shape* weights = facts.dims(1);
    if (data == nullptr || weights == nullptr) return 0;
    return element_count(*data) * element_count(shape(weights->begin() + 1, weights->end()));
  }
};

/// 8-bit integers less their zero points, accumulated in int32.
struct conv_integer_op : convolution_classes<0, 1, no_bias> {
  static constexpr std::string_view name = "ConvInteger";
  static constexpr int since = 10;
  static constexpr op_arity arity{2, 4};

  static void infer(const node_facts& facts, std::span<value_facts> outputs) {
    outputs[0].type = dtype::int32;
    infer_shape(facts, outputs[0]);
  }
};

/// Inputs: x, its scale and zero point, w, its scale and zero point, the result's scale and zero point, and a bias.
struct qlinear_conv_op : convolution_classes<0, 3, 8> {
  static constexpr std::string_view name = "QLinearConv";
  static constexpr int since = 10;
  static constexpr op_arity arity{8, 9};

  static void infer(const node_facts& facts, std::span<value_facts> outputs) {
    outputs[0].type = facts.type(7);
    infer_shape(facts, outputs[0]);
  }
};

/// Each window element reads the input at an offset that input 2 gives, scaled by the mask of input 4.
struct deform_conv_op : convolution_classes<0, 1, 3> {
  static constexpr std::string_view name = "DeformConv";
  static constexpr int since = 22;
  static constexpr op_arity arity{3, 5};

  static mapping_type mapping_of(const node_facts&, std::size_t input, std::size_t) {
    return input == 3 ? mapping_type::one_to_many : mapping_type::many_to_many;
  }
  static void infer(const node_facts& facts, std::span<value_facts> outputs) {
    require_one_type(facts, 0, 5);
    outputs[0].type = common_type(facts, 0, 5);
    infer_shape(facts, outputs[0]);
  }
};

/// A depthwise convolution along the last dim that reads no later position; state carries the last positions over.
struct causal_conv_with_state_op : convolution_classes<0, 1, 2> {
  static constexpr std::string_view name = "CausalConvWithState";
  static constexpr int since = 27;
  static constexpr op_arity arity{2, 4, 2, 2};

  static mapping_type mapping_of(const node_facts&, std::size_t input, std::size_t) {
    return input == 2 ? mapping_type::one_to_many : mapping_type::many_to_many;
  }
  static void infer(const node_facts& facts, std::span<value_facts> outputs) {
    require_one_type(facts, 0, 4);
    const shape* data = facts.dims(0);
    const shape* weights = facts.dims(1);
    for (value_facts& output : outputs) output.type = common_type(facts, 0, 4);
    if (data == nullptr) return;
    outputs[0].dims = *data;
    if (outputs.size() > 1 && weights != nullptr && weights->size() == 3 && data->size() == 3)
      outputs[1].dims = shape{(*data)[0], (*data)[1], (*weights)[2] - 1};
  }
  static index_expr macs(const node_facts& facts) {
    if (facts.dims(0) == nullptr || facts.dims(1) == nullptr) return 0;
    return element_count(*facts.dims(0)) * facts.dims(1)->back();
  }
};

/// Sums columns [batch, channels * block, blocks] into the image whose dims input 1 gives; input 2 is the block's
/// shape.
struct col2im_op {
  static constexpr std::string_view name = "Col2Im";
  static constexpr input_set structural_inputs{1, 2};
  static constexpr int since = 18;
  static constexpr op_arity arity{3, 3};
  static constexpr mapping_type mapping = mapping_type::many_to_many;
  static constexpr layout_class layout = layout_class::ild_variable;
  static constexpr dynamism_class dynamism = dynamism_class::isvdos;
  static constexpr computation_kind kind = computation_kind::other;

  static dynamism_class dynamism_of(const node_facts& facts) {
    return facts.integers(1) && facts.integers(2) ? dynamism_class::isdos : dynamism_class::isvdos;
  }
  static void infer(const node_facts& facts, std::span<value_facts> outputs) {
    outputs[0].type = facts.type(0);
    const shape* data = facts.dims(0);
    const auto image = facts.elements(1);
    const auto block = facts.elements(2);
    if (data == nullptr || data->size() != 3 || !image) return;
    index_expr block_size = 1;
    if (block)
      for (const index_expr& extent : *block) block_size *= extent;
    if (block) facts.require(guard_relation::multiple, (*data)[1], block_size, "channels and blocks of Col2Im");
    shape dims{(*data)[0], block ? floordiv((*data)[1], block_size) : facts.data_dim(0, 1)};
    dims.insert(dims.end(), image->begin(), image->end());
    outputs[0].dims = std::move(dims);
  }
};

/// Adds ONNX's convolutions and Col2Im.
inline void add_convolution(op_set& set) {
  set.add<conv_op, conv_transpose_op, conv_integer_op, qlinear_conv_op, deform_conv_op, causal_conv_with_state_op,
          col2im_op>();
}

static_assert(Operator<conv_op> && Operator<conv_transpose_op> && Operator<conv_integer_op>);
static_assert(Operator<qlinear_conv_op> && Operator<deform_conv_op> && Operator<causal_conv_with_state_op>);
static_assert(Operator<col2im_op>);

}  // namespace dnnopt::ops

#endif  // DNNOPT_OPS_CONVOLUTION_HPP
