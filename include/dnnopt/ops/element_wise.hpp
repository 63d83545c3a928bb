// Owns what element-wise operators share: their classes, and the transfer of types, shapes and integer values.
#ifndef DNNOPT_OPS_ELEMENT_WISE_HPP
#define DNNOPT_OPS_ELEMENT_WISE_HPP

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <dnnopt/ops/op_info.hpp>

namespace dnnopt::ops {

/// The shape of all inputs broadcast together; nothing while the rank of one is unknown.
/// Errors: shape_mismatch.
[[nodiscard]] inline std::optional<shape> broadcast_of_inputs(const node_facts& facts) {
  std::optional<shape> result;
  for (std::size_t i = 0; i < facts.inputs.size(); ++i) {
    if (!facts.has(i)) continue;
    const shape* dims = facts.dims(i);
    if (dims == nullptr) return std::nullopt;
    result = result ? facts.broadcast_shapes(*result, *dims) : *dims;
  }
  return result;
}

/// Whether each element of a tensor of `dims` is read by one element of a result of `result_dims` at most, where the
/// tensor is broadcast to the result.
[[nodiscard]] inline bool broadcast_keeps(const shape& dims, const shape& result_dims) {
  if (dims.size() > result_dims.size()) return false;
  const std::size_t offset = result_dims.size() - dims.size();
  for (std::size_t i = 0; i < result_dims.size(); ++i)
    if (!(result_dims[i] == (i < offset ? index_expr(1) : dims[i - offset]))) return false;
  return true;
}

/// One-to-Many where input `input` is broadcast (DNNFusion Table 2, "Elementwise w/ broadcast"), else One-to-One.
/// While shapes are unknown the answer is One-to-One.
[[nodiscard]] inline mapping_type broadcast_mapping(const node_facts& facts, std::size_t input) {
  const shape* dims = facts.dims(input);
  if (dims == nullptr) return mapping_type::one_to_one;
  const std::optional<shape> result = broadcast_of_inputs(facts);
  return !result || broadcast_keeps(*dims, *result) ? mapping_type::one_to_one : mapping_type::one_to_many;
}

/// Errors: type_mismatch where two of the given inputs from `first` to before `last` are known to differ in type.
inline void require_one_type(const node_facts& facts, std::size_t first, std::size_t last) {
  dtype seen = dtype::undefined;
  for (std::size_t i = first; i < last && i < facts.inputs.size(); ++i) {
    const dtype type = facts.type(i);
    if (type == dtype::undefined) continue;
    if (seen != dtype::undefined && type != seen)
      throw error(errc::type_mismatch, "inputs of one type are needed, got " + std::string(name_of(seen)) + " and " +
                                           std::string(name_of(type)));
    seen = type;
  }
}

/// The first known element type among inputs from `first` to before `last`.
[[nodiscard]] inline dtype common_type(const node_facts& facts, std::size_t first, std::size_t last) {
  for (std::size_t i = first; i < last && i < facts.inputs.size(); ++i)
    if (facts.type(i) != dtype::undefined) return facts.type(i);
  return dtype::undefined;
}

/// The values that a type represents, where it is an integer type of fewer than 64 bits or boolean; else no limit.
[[nodiscard]] inline expr_range values_of(dtype type) {
  if (type == dtype::boolean) return {0, 1};
  if (!is_integer(type)) return {};
  const int bits = row_of(type).packed_bits;
  if (bits >= 64) return {};
  if (kind_of(type) == dtype_kind::unsigned_integer) return {0, (std::int64_t{1} << bits) - 1};
  return {-(std::int64_t{1} << (bits - 1)), (std::int64_t{1} << (bits - 1)) - 1};
}

/// Sets the elements of `output` from those of the inputs: `rule` maps one element of each input to an element, or to
/// nothing where it cannot tell. Elements stay unknown where one element is, or where a constant leaves the output
/// type. Precondition: output type and dims are set. Complexity: elements of the output times inputs.
template <class Rule>
void infer_elements(const node_facts& facts, value_facts& output, Rule rule) {
  if (!(is_integer(output.type) || output.type == dtype::boolean) || !output.dims) return;
  const auto dims = static_dims(*output.dims);
  if (!dims) return;
  const std::int64_t count = element_count(*dims);
  if (count > largest_symbolic_value) return;
  std::vector<std::vector<index_expr>> operands;
  std::vector<std::vector<std::int64_t>> operand_dims;
  for (std::size_t i = 0; i < facts.inputs.size(); ++i) {
    auto elements = facts.elements(i);
    const shape* operand_shape = facts.dims(i);
    if (!elements || operand_shape == nullptr) return;
    auto static_operand_dims = static_dims(*operand_shape);
    if (!static_operand_dims) return;
    operands.push_back(std::move(*elements));
    operand_dims.push_back(std::move(*static_operand_dims));
  }
  const expr_range limits = values_of(output.type);
  std::vector<index_expr> result;
  std::vector<index_expr> arguments(operands.size());
  for (std::int64_t flat = 0; flat < count; ++flat) {
    for (std::size_t i = 0; i < operands.size(); ++i) {
      std::int64_t rest = flat;
      std::int64_t offset = 0;
      std::int64_t stride = 1;
      for (std::size_t back = 0; back < operand_dims[i].size(); ++back) {
        const std::int64_t extent = (*dims)[dims->size() - 1 - back];
        const std::int64_t own = operand_dims[i][operand_dims[i].size() - 1 - back];
        if (own != 1) offset += rest % extent * stride;
        rest /= extent;
        stride *= own;
      }
      arguments[i] = operands[i][static_cast<std::size_t>(offset)];
    }
    std::optional<index_expr> value;
    try {
      value = rule(std::span<const index_expr>(arguments));
    } catch (const error& e) {
      // What the host cannot represent stays unknown; execution decides what it means.
      if (e.code() != errc::overflow && e.code() != errc::division_by_zero) throw;
    }
    if (!value) return;
    if (value->is_constant() && (value->constant() < limits.low || value->constant() > limits.high)) return;
    result.push_back(*value);
  }
  output.elements = std::move(result);
}

/// Type and broadcast shape of an element-wise result.
inline void infer_broadcast(const node_facts& facts, value_facts& output, dtype type) {
  output.type = type;
  if (auto dims = broadcast_of_inputs(facts)) output.dims = std::move(dims);
}

/// Inputs of unknown rank get the output's shape where every other input is a scalar: nothing else can have made it.
inline void infer_broadcast_backward(const node_facts& facts, std::span<const value_facts> outputs,
                                     std::span<value_facts> inputs) {
  if (outputs.empty() || !outputs[0].dims) return;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!facts.has(i) || inputs[i].dims) continue;
    bool others_are_scalars = true;
    for (std::size_t j = 0; j < inputs.size(); ++j)
      if (j != i && facts.has(j) && !(inputs[j].dims && inputs[j].dims->empty())) others_are_scalars = false;
    if (others_are_scalars) inputs[i].dims = outputs[0].dims;
  }
}

/// Classes of operators whose output element is a scalar function of input elements at equal (broadcast) indices.
struct element_wise_classes {
  static constexpr mapping_type mapping = mapping_type::one_to_one;
  static constexpr layout_class layout = layout_class::ili_variable;
  static constexpr dynamism_class dynamism = dynamism_class::isdos;
  static constexpr computation_kind kind = computation_kind::element_wise;

  static mapping_type mapping_of(const node_facts& facts, std::size_t input, std::size_t) {
    return broadcast_mapping(facts, input);
  }
  static void infer_backward(const node_facts& facts, std::span<const value_facts> outputs,
                             std::span<value_facts> inputs) {
    infer_broadcast_backward(facts, outputs, inputs);
  }
};

namespace detail {
/// Calls `Op::value` with as many elements as the node has inputs, where the operator defines it.
template <class Op>
void infer_value(const node_facts& facts, value_facts& output) {
  if constexpr (requires(index_expr a) { Op::value(a); })
    infer_elements(facts, output,
                   [](std::span<const index_expr> x) -> std::optional<index_expr> { return Op::value(x[0]); });
  else if constexpr (requires(index_expr a) { Op::value(a, a); })
    infer_elements(facts, output, [](std::span<const index_expr> x) -> std::optional<index_expr> {
      std::optional<index_expr> total = x[0];
      for (std::size_t i = 1; i < x.size() && total; ++i) total = Op::value(*total, x[i]);
      return total;
    });
}
}  // namespace detail

/// One input; the output has its type and shape. `Op::value(element)`, if any, gives integer elements.
template <class Op>
struct unary : element_wise_classes {
  static constexpr op_arity arity{1, 1};

  static void infer(const node_facts& facts, std::span<value_facts> outputs) {
    infer_broadcast(facts, outputs[0], facts.type(0));
    detail::infer_value<Op>(facts, outputs[0]);
  }
};

/// Two inputs of one type, broadcast; the output has their type. `Op::value(a, b)`, if any, gives integer elements.
template <class Op>
struct binary : element_wise_classes {
  static constexpr op_arity arity{2, 2};

  static void infer(const node_facts& facts, std::span<value_facts> outputs) {
    require_one_type(facts, 0, 2);
    infer_broadcast(facts, outputs[0], common_type(facts, 0, 2));
    detail::infer_value<Op>(facts, outputs[0]);
  }
};

/// One or more inputs of one type, broadcast and combined from the left; `scalar` combines the running result x0 with
/// the next operand x1, whose number is "{operand}" of "{operands}" with x0 the first.
template <class Op>
struct variadic_fold : element_wise_classes {
  static constexpr op_arity arity{1, variadic};

  static void infer(const node_facts& facts, std::span<value_facts> outputs) {
    require_one_type(facts, 0, facts.inputs.size());
    infer_broadcast(facts, outputs[0], common_type(facts, 0, facts.inputs.size()));
    detail::infer_value<Op>(facts, outputs[0]);
  }
};

/// Two inputs of one type, broadcast; the output is boolean.
template <class Op>
struct predicate : element_wise_classes {
  static constexpr op_arity arity{2, 2};

  static void infer(const node_facts& facts, std::span<value_facts> outputs) {
    require_one_type(facts, 0, 2);
    infer_broadcast(facts, outputs[0], dtype::boolean);
    detail::infer_value<Op>(facts, outputs[0]);
  }
};

}  // namespace dnnopt::ops

#endif  // DNNOPT_OPS_ELEMENT_WISE_HPP
