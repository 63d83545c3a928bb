// Owns the OpenCL C form of index expressions: 32-bit arithmetic where ranges allow it, unsigned division where
// possible, and multiplication by a reciprocal where a kernel's arguments divide.
#ifndef DNNOPT_BACKEND_CODEGEN_BUILDER_INDEX_SOURCE_HPP
#define DNNOPT_BACKEND_CODEGEN_BUILDER_INDEX_SOURCE_HPP

#include <algorithm>
#include <cstdint>
#include <string>
#include <unordered_set>

#include <dnnopt/index_expr.hpp>

namespace dnnopt::codegen {

/// Whether every value of the range fits in 32 signed bits.
[[nodiscard]] inline bool fits_int(expr_range range) {
  return range.low >= -(std::int64_t{1} << 31) && range.high < (std::int64_t{1} << 31);
}

/// is_of_arguments() of a node and what lies below it, but for the nodes that were `seen`.
[[nodiscard]] inline bool names_arguments_below(const detail::expr_node* n,
                                                std::unordered_set<const detail::expr_node*>& seen) {
  if (n == nullptr || !seen.insert(n).second) return true;
  if (n->op == expr_op::symbol) return n->kind == symbol_kind::argument;
  const bool divides = n->op == expr_op::floordiv || n->op == expr_op::mod;
  if (divides && index_expr::from_node(n->right, n->right_constant).range().low <= 0) return false;
  const auto below = [&](const detail::expr_node* part) { return names_arguments_below(part, seen); };
  return std::all_of(n->terms.begin(), n->terms.end(), [&](const detail::linear_term& t) { return below(t.atom); }) &&
         std::all_of(n->factors.begin(), n->factors.end(), below) && below(n->left) && below(n->right);
}

/// Whether an expression names arguments of a kernel alone and always has a value. O(nodes, shared ones once).
[[nodiscard]] inline bool is_of_arguments(const index_expr& e) {
  if (e.as_symbol()) return e.kind() == symbol_kind::argument;
  std::unordered_set<const detail::expr_node*> seen;
  return names_arguments_below(e.node(), seen);
}

/// Whether a quotient or remainder is written as a multiplication: of a number of 31 bits, by what arguments tell.
[[nodiscard]] inline bool multiplies(const detail::expr_node& n) {
  const index_expr left = index_expr::from_node(n.left, n.left_constant);
  const index_expr right = index_expr::from_node(n.right, n.right_constant);
  return left.range().low >= 0 && fits_int(left.range()) && right.range().low >= 0 && !right.is_constant() &&
         is_of_arguments(right);
}

/// The name of the argument that holds the reciprocal of a noted divisor (kernel_plan::divisors).
[[nodiscard]] inline std::string reciprocal_name(std::size_t divisor) { return "over" + std::to_string(divisor); }

/// In how many bits an expression is computed.
enum class index_width : std::uint8_t {
  by_range,  ///< what may leave 32 bits in 64
  int32      ///< sums and products in 32, for whoever asks knows that values of the whole fit
};

/// The expression in OpenCL C; symbols print as their names, which must be C identifiers of type int (or long where
/// their range needs it).
[[nodiscard]] inline std::string index_source(const index_expr& e, index_width width = index_width::by_range) {
  const auto literal = [](std::int64_t v) {
    const std::string digits = std::to_string(v) + (fits_int({v, v}) ? "" : "L");
    return v < 0 ? "(" + digits + ")" : digits;
  };
  if (e.is_constant()) return literal(e.constant());
  const detail::expr_node& n = *e.node();
  const auto operand = [width](const detail::expr_node* node, std::int64_t constant) {
    return index_source(index_expr::from_node(node, constant), width);
  };
  const bool is_long = !fits_int(n.range);
  const bool narrowed = is_long && width == index_width::int32;
  const std::string wide = is_long && !narrowed ? "(long)" : "";
  switch (n.op) {
    case expr_op::constant:
      return literal(n.value);
    case expr_op::symbol:
      return (narrowed ? "(int)" : "") + n.owner->symbol_name(static_cast<std::uint32_t>(n.value));
    case expr_op::sum: {
      std::string text;
      for (const auto& t : n.terms) {
        if (!text.empty()) text += " + ";
        if (t.coefficient == 1)
          text += wide + operand(t.atom, 0);
        else
          text += wide + operand(t.atom, 0) + " * " + literal(t.coefficient);
      }
      if (n.value != 0) text += " + " + literal(n.value);
      return "(" + text + ")";
    }
    case expr_op::product: {
      std::string text;
      for (const auto* f : n.factors) text += (text.empty() ? wide : " * ") + operand(f, 0);
      return "(" + text + ")";
    }
    case expr_op::floordiv:
    case expr_op::mod: {
      const index_expr left = index_expr::from_node(n.left, n.left_constant);
      const index_expr right = index_expr::from_node(n.right, n.right_constant);
      const std::string a = index_source(left);
      const std::string b = index_source(right);
      const std::string narrow = narrowed ? "(int)" : "";
      const char* const sign = n.op == expr_op::floordiv ? " / " : " % ";
      if (multiplies(n)) {
        const std::string over = reciprocal_name(n.owner->note_divisor(right)) + ")";
        return n.op == expr_op::floordiv ? "dnnopt_over(" + a + ", " + over
                                         : "dnnopt_rest(" + a + ", (int)" + b + ", " + over;
      }
      if (left.range().low >= 0 && right.range().low >= 0) {
        // Unsigned division by a constant compiles to one multiplication and one shift. No divisor is 0.
        if (fits_int(left.range()) && fits_int(right.range())) return "(int)((uint)" + a + sign + "(uint)" + b + ")";
        return narrow + "(long)((ulong)" + a + sign + "(ulong)" + b + ")";
      }
      return (!is_long && fits_int(left.range()) ? "(int)" : narrow) +
             (n.op == expr_op::floordiv ? "dnnopt_floordiv(" : "dnnopt_floormod(") + a + ", " + b + ")";
    }
    case expr_op::min:
    case expr_op::max: {
      const std::string type = is_long ? "(long)" : "(int)";
      return std::string(narrowed ? "(int)" : "") + (n.op == expr_op::min ? "min(" : "max(") + type +
             index_source(index_expr::from_node(n.left, n.left_constant)) + ", " + type +
             index_source(index_expr::from_node(n.right, n.right_constant)) + ")";
    }
  }
  return {};
}

/// takes_division() of a node and what lies below it, but for the nodes that were `seen`.
[[nodiscard]] inline bool divides_below(const detail::expr_node* n,
                                        std::unordered_set<const detail::expr_node*>& seen) {
  if (n == nullptr || !seen.insert(n).second) return false;
  if (n->op == expr_op::floordiv || n->op == expr_op::mod) return true;
  for (const detail::linear_term& t : n->terms)
    if (divides_below(t.atom, seen)) return true;
  for (const detail::expr_node* f : n->factors)
    if (divides_below(f, seen)) return true;
  return divides_below(n->left, seen) || divides_below(n->right, seen);
}

/// Whether a division or a remainder is in the expression: what costs more than additions. O(nodes of the expression,
/// shared ones once): written out in full, the extents of windows that follow windows are too long to be walked.
[[nodiscard]] inline bool takes_division(const index_expr& e) {
  std::unordered_set<const detail::expr_node*> seen;
  return divides_below(e.node(), seen);
}

}  // namespace dnnopt::codegen

#endif  // DNNOPT_BACKEND_CODEGEN_BUILDER_INDEX_SOURCE_HPP
