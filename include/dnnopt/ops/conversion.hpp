// Owns the traits of ONNX's type conversions, quantization, and of operators that limit or drop elements (Clip,
// Dropout).
#ifndef DNNOPT_OPS_CONVERSION_HPP
#define DNNOPT_OPS_CONVERSION_HPP

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <dnnopt/ops/element_wise.hpp>

namespace dnnopt::ops {

/// The element type that an integer attribute names. Errors: bad_attribute for a number that is no element type.
[[nodiscard]] inline dtype type_attribute(const attribute_map& attributes, std::string_view name, dtype fallback) {
  const std::int64_t number = attributes.get_int(name, static_cast<std::int64_t>(fallback));
  if (number < 0 || number >= static_cast<std::int64_t>(dtype_table.size()))
    throw error(errc::bad_attribute, "attribute '" + std::string(name) + "' names element type " +
                                         std::to_string(number) + ", which is not known");
  return static_cast<dtype>(number);
}

/// Elements of an integer converted to another integer type or to boolean. Inputs behind the first have no part in it.
inline void infer_converted_elements(const node_facts& facts, value_facts& output) {
  node_facts source = facts;
  source.inputs = facts.inputs.first(1);
  infer_elements(
      source, output,
      [to_boolean = output.type == dtype::boolean](std::span<const index_expr> x) -> std::optional<index_expr> {
        const expr_range range = x[0].range();
        return to_boolean && (range.low < 0 || range.high > 1) ? 1 - is_equal(x[0], 0) : x[0];
      });
}

/// The output takes the type that attribute `to` names.
struct cast_op : element_wise_classes {
  static constexpr std::string_view name = "Cast";
  static constexpr bool converts = true;
  static constexpr int since = 28;
  static constexpr op_arity arity{1, 1};
  static constexpr std::string_view scalar = "x0";

  static void infer(const node_facts& facts, std::span<value_facts> outputs) {
    (void)facts.attributes->require<std::int64_t>("to");
    infer_broadcast(facts, outputs[0], type_attribute(*facts.attributes, "to", dtype::undefined));
    infer_converted_elements(facts, outputs[0]);
  }
};

/// The output takes the type of the second input, whose elements are not read.
struct cast_like_op : element_wise_classes {
  static constexpr std::string_view name = "CastLike";
  static constexpr bool converts = true;
  static constexpr int since = 25;
  static constexpr op_arity arity{2, 2};
  static constexpr std::string_view scalar = "x0";

  static mapping_type mapping_of(const node_facts&, std::size_t, std::size_t) { return mapping_type::one_to_one; }
  static void infer(const node_facts& facts, std::span<value_facts> outputs) {
    outputs[0].type = facts.type(1);
    if (const shape* dims = facts.dims(0)) outputs[0].dims = *dims;
    infer_converted_elements(facts, outputs[0]);
  }
  static void infer_backward(const node_facts&, std::span<const value_facts> outputs, std::span<value_facts> inputs) {
    if (outputs[0].dims && !inputs[0].dims) inputs[0].dims = outputs[0].dims;
  }
};

/// The same bits read as another type of equal width.
struct bit_cast_op : element_wise_classes {
  static constexpr std::string_view name = "BitCast";
  static constexpr int since = 26;
  static constexpr op_arity arity{1, 1};

  static void infer(const node_facts& facts, std::span<value_facts> outputs) {
    (void)facts.attributes->require<std::int64_t>("to");
    infer_broadcast(facts, outputs[0], type_attribute(*facts.attributes, "to", dtype::undefined));
    const int from = row_of(facts.type(0)).packed_bits;
    const int to = row_of(outputs[0].type).packed_bits;
    if (from != 0 && from != to)
      throw error(errc::type_mismatch, "BitCast from " + std::string(name_of(facts.type(0))) + " to " +
                                           std::string(name_of(outputs[0].type)) + " changes the width");
  }
};

/// What QuantizeLinear and DequantizeLinear share: scale and zero point for the whole tensor, per axis, or per block.
struct quantization_classes : element_wise_classes {
  static constexpr op_arity arity{2, 3};

  static mapping_type mapping_of(const node_facts&, std::size_t input, std::size_t) {
    return input == 0 ? mapping_type::one_to_one : mapping_type::one_to_many;
  }
  static void infer_backward(const node_facts&, std::span<const value_facts> outputs, std::span<value_facts> inputs) {
    if (outputs[0].dims && !inputs[0].dims) inputs[0].dims = outputs[0].dims;
  }
  /// Errors: shape_mismatch where scale and zero point are neither for the tensor, nor the axis, nor blocks of it.
  static void require_scales(const node_facts& facts) {
    const shape* dims = facts.dims(0);
    if (dims == nullptr) return;
    for (const std::size_t slot : {std::size_t{1}, std::size_t{2}}) {
      const shape* own = facts.dims(slot);
      // One number is for all elements, whatever the axis says.
      if (own == nullptr || dims->empty() || element_count(*own) == index_expr(1)) continue;
      const std::int64_t stated = facts.attributes->get_int("axis", 1);
      if (own->size() == 1 &&
          (stated >= static_cast<std::int64_t>(dims->size()) || stated < -static_cast<std::int64_t>(dims->size()))) {
        facts.require(guard_relation::equal, own->front(), 1, "scales of a tensor without the axis that is stated");
        continue;
      }
      const std::size_t axis = normalize_axis(stated, dims->size());
      const std::int64_t block = facts.attributes->get_int("block_size", 0);
      if (own->size() == 1 && (block < 1 || dims->size() != 1)) {
        facts.require(guard_relation::expands, own->front(), (*dims)[axis], "scales and the dim that is quantized");
        continue;
      }
      if (own->size() != dims->size() || block < 1) continue;
      for (std::size_t k = 0; k < dims->size(); ++k)
        facts.require(guard_relation::equal, (*own)[k], k == axis ? ceildiv((*dims)[k], block) : (*dims)[k],
                      "scales and the blocks that are quantized");
    }
  }
};

/// Saturates round(x / scale) + zero point; halves round to even.
struct quantize_linear_op : quantization_classes {
  static constexpr std::string_view name = "QuantizeLinear";
  static constexpr int since = 28;
  static constexpr bool quantizes = true;

  static void infer(const node_facts& facts, std::span<value_facts> outputs) {
    const dtype named = type_attribute(*facts.attributes, "output_dtype", dtype::undefined);
    outputs[0].type = facts.has(2) ? facts.type(2) : named != dtype::undefined ? named : dtype::uint8;
    if (const shape* dims = facts.dims(0)) outputs[0].dims = *dims;
    require_scales(facts);
  }
};

struct dequantize_linear_op : quantization_classes {
  static constexpr std::string_view name = "DequantizeLinear";
  static constexpr int since = 28;
  static constexpr bool dequantizes = true;

  static void infer(const node_facts& facts, std::span<value_facts> outputs) {
    const dtype named = type_attribute(*facts.attributes, "output_dtype", dtype::undefined);
    outputs[0].type = named != dtype::undefined ? named : facts.type(1);
    if (const shape* dims = facts.dims(0)) outputs[0].dims = *dims;
    require_scales(facts);
  }
};

/// Scale and zero point come from the least and greatest element.
struct dynamic_quantize_linear_op {
  static constexpr std::string_view name = "DynamicQuantizeLinear";
  static constexpr int since = 11;
  static constexpr op_arity arity{1, 1, 3, 3};
  static constexpr mapping_type mapping = mapping_type::many_to_many;
  static constexpr layout_class layout = layout_class::ild_variable;
  static constexpr dynamism_class dynamism = dynamism_class::isdos;
  static constexpr computation_kind kind = computation_kind::other;

  static void infer(const node_facts& facts, std::span<value_facts> outputs) {
    outputs[0].type = dtype::uint8;
    if (const shape* dims = facts.dims(0)) outputs[0].dims = *dims;
    if (outputs.size() > 1) outputs[1].type = dtype::float32, outputs[1].dims = shape{};
    if (outputs.size() > 2) outputs[2].type = dtype::uint8, outputs[2].dims = shape{};
  }
};

/// Limits are scalars; an absent one is the least or greatest finite number. Where the lower exceeds the upper, the
/// upper counts. NaN stays NaN.
struct clip_op : element_wise_classes {
  static constexpr std::string_view name = "Clip";
  static constexpr int since = 13;
  static constexpr op_arity arity{1, 3};
  static constexpr bool selects = true;
  static constexpr std::string_view scalar = "dnnopt_clip(x0, ({has1} ? x1 : {lowest}), ({has2} ? x2 : {highest}))";

  static mapping_type mapping_of(const node_facts&, std::size_t input, std::size_t) {
    return input == 0 ? mapping_type::one_to_one : mapping_type::one_to_many;
  }
  static void infer(const node_facts& facts, std::span<value_facts> outputs) {
    require_one_type(facts, 0, 3);
    outputs[0].type = facts.type(0);
    if (const shape* dims = facts.dims(0)) outputs[0].dims = *dims;
    auto elements = facts.elements(0);
    const auto low = facts.elements(1);
    const auto high = facts.elements(2);
    const auto unknown = [&](std::size_t i, const auto& bound) {
      return facts.has(i) && (!bound || bound->size() != 1);
    };
    if (!elements || unknown(1, low) || unknown(2, high)) return;
    for (index_expr& element : *elements) {
      if (low) element = max(element, low->front());
      if (high) element = min(element, high->front());
    }
    outputs[0].elements = std::move(elements);
  }
  static void infer_backward(const node_facts&, std::span<const value_facts> outputs, std::span<value_facts> inputs) {
    if (outputs[0].dims && !inputs[0].dims) inputs[0].dims = outputs[0].dims;
  }
};

/// The identity outside training; the second output says which elements were kept.
struct dropout_op : element_wise_classes {
  static constexpr std::string_view name = "Dropout";
  static constexpr input_set structural_inputs{1, 2};
  static constexpr int since = 22;
  static constexpr op_arity arity{1, 3, 1, 2};
  static constexpr std::string_view scalar = "x0";

  /// Whether the node is known not to be in training.
  static bool is_inference(const node_facts& facts) {
    if (!facts.has(2)) return true;
    const auto training = facts.integers(2);
    return training && training->size() == 1 && training->front() == 0;
  }
  // In training an element is dropped by chance, which no scalar expression says.
  static mapping_type mapping_of(const node_facts& facts, std::size_t, std::size_t) {
    return is_inference(facts) ? mapping_type::one_to_one : mapping_type::many_to_many;
  }
  static void infer(const node_facts& facts, std::span<value_facts> outputs) {
    outputs[0].type = facts.type(0);
    if (outputs.size() > 1) outputs[1].type = dtype::boolean;
    if (const shape* dims = facts.dims(0))
      for (value_facts& output : outputs) output.dims = *dims;
    if (is_inference(facts)) outputs[0].elements = facts.elements(0);
  }
  static void infer_backward(const node_facts&, std::span<const value_facts> outputs, std::span<value_facts> inputs) {
    if (outputs[0].dims && !inputs[0].dims) inputs[0].dims = outputs[0].dims;
  }
};

/// Adds ONNX's conversions, quantization, Clip and Dropout.
inline void add_conversion(op_set& set) {
  set.add<cast_op, cast_like_op, bit_cast_op, quantize_linear_op, dequantize_linear_op, dynamic_quantize_linear_op,
          clip_op, dropout_op>();
}

static_assert(Operator<cast_op> && Operator<cast_like_op> && Operator<bit_cast_op> && Operator<quantize_linear_op>);
static_assert(Operator<dequantize_linear_op> && Operator<dynamic_quantize_linear_op> && Operator<clip_op>);
static_assert(Operator<dropout_op>);

}  // namespace dnnopt::ops

#endif  // DNNOPT_OPS_CONVERSION_HPP
