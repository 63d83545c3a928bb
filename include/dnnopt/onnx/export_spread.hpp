// Owns which operands are spread before an exported operator: those that ONNX broadcasts and other engines want whole.
#ifndef DNNOPT_ONNX_EXPORT_SPREAD_HPP
#define DNNOPT_ONNX_EXPORT_SPREAD_HPP

#include <cstddef>
#include <optional>
#include <string_view>

#include <dnnopt/graph.hpp>
#include <dnnopt/shape.hpp>

namespace dnnopt::onnx {

/// An operand of which ONNX says that it is broadcast, and of which ONNX Runtime takes dim `from_end` only in full.
struct whole_operand {
  std::string_view name;  ///< of the operator, in ai.onnx
  std::size_t input;
  std::size_t like;      ///< the input that has the same extent in that dim
  std::size_t from_end;  ///< the dim of both, counted from the last one, which is 1
};

/// The mask of Attention "must be broadcastable" (ONNX, opsets 23 and 24), so that a mask of keys alone may have one
/// row; ONNX Runtime asks for as many rows as there are queries.
inline constexpr whole_operand whole_operands[] = {{"Attention", 3, 0, 2}};

/// The row that says which operand of `n` has to be spread; nothing where none has to be, or the rank is not known.
[[nodiscard]] inline std::optional<whole_operand> operand_to_spread(const graph& g, const node& n) {
  if (!n.op->domain.empty()) return std::nullopt;
  for (const whole_operand& row : whole_operands) {
    if (row.name != n.op->name || row.input >= n.inputs.size() || n.inputs[row.input] == no_value) continue;
    const auto& own = g.facts(n.inputs[row.input]).dims;
    const auto& like = g.facts(n.inputs[row.like]).dims;
    if (!own || !like || own->empty() || like->size() < row.from_end) continue;
    const bool one = own->size() < row.from_end || (*own)[own->size() - row.from_end] == index_expr(1);
    if (one && !((*like)[like->size() - row.from_end] == index_expr(1))) return row;
  }
  return std::nullopt;
}

}  // namespace dnnopt::onnx

#endif  // DNNOPT_ONNX_EXPORT_SPREAD_HPP
