// Owns guards: conditions on dims that a model needs and that its shapes alone do not tell, so that each run checks
// them.
#ifndef DNNOPT_GUARD_HPP
#define DNNOPT_GUARD_HPP

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <dnnopt/detail/implementation.hpp>
#include <dnnopt/error.hpp>
#include <dnnopt/index_expr.hpp>
#include <dnnopt/index_expr_io.hpp>

namespace dnnopt {

/// How the two sides of a guard must stand to each other.
enum class guard_relation : std::uint8_t {
  equal,       ///< left == right
  broadcasts,  ///< left == right, or one of them is 1: ONNX's multidirectional broadcasting
  expands,     ///< left == right, or left is 1: unidirectional broadcasting of left to right
  at_least,    ///< left >= right
  multiple,    ///< left is a multiple of right; of 0 only 0 is one
};

/// A condition over symbols of the graph that values of its inputs' dims must meet.
struct guard {
  guard_relation relation = guard_relation::equal;
  index_expr left;
  index_expr right;
  std::string what;  ///< what the sides are, such as "the inner dims of a matrix product"
  std::string node;  ///< the node that needs it, as error texts name nodes

  /// Whether it holds for numbers.
  [[nodiscard]] static bool holds(guard_relation relation, std::int64_t left, std::int64_t right) noexcept;
  /// Whether it holds for all values of the symbols within their ranges (true), for none (false), or neither is proved.
  [[nodiscard]] static std::optional<bool> proved(guard_relation relation, const index_expr& left,
                                                  const index_expr& right);
  friend bool operator==(const guard& a, const guard& b) {
    return a.relation == b.relation && a.left == b.left && a.right == b.right;
  }
};

/// The condition for people, such as "batch equals 4" or "width broadcasts to 4".
[[nodiscard]] std::string to_string(const guard& g);

/// The error of a guard that does not hold: shape_mismatch with node, condition, both sides and all symbols as numbers.
[[nodiscard]] error broken_guard(const guard& g, const symbol_values& values);

/// Checks guards whose symbols are all bound; those with symbols that only data bind wait for a later call with them.
/// `checked` (as long as `guards`, or empty for none) marks those that were checked before, and is brought up to date.
/// Errors: shape_mismatch naming node, condition, and the values of its symbols. O(guards).
void check_guards(std::span<const guard> guards, const symbol_values& values, std::vector<bool>& checked);

#if DNNOPT_IMPLEMENT_GRAPH
namespace detail {

/// Whether `part` is an operand of `whole`, which is a min or max (nested ones included).
[[nodiscard]] inline bool is_operand(const index_expr& whole, expr_op op, const index_expr& part) {
  if (whole == part) return true;
  if (whole.op() != op) return false;
  return is_operand(index_expr::from_node(whole.node()->left, whole.node()->left_constant), op, part) ||
         is_operand(index_expr::from_node(whole.node()->right, whole.node()->right_constant), op, part);
}

}  // namespace detail

DNNOPT_BODY bool guard::holds(guard_relation relation, std::int64_t left, std::int64_t right) noexcept {
  switch (relation) {
    case guard_relation::equal:
      return left == right;
    case guard_relation::broadcasts:
      return left == right || left == 1 || right == 1;
    case guard_relation::expands:
      return left == right || left == 1;
    case guard_relation::at_least:
      return left >= right;
    case guard_relation::multiple:
      return right == 0 ? left == 0 : left % right == 0;
  }
  return false;
}

DNNOPT_BODY std::optional<bool> guard::proved(guard_relation relation, const index_expr& left,
                                              const index_expr& right) {
  if (left.is_constant() && right.is_constant()) return holds(relation, left.constant(), right.constant());
  const index_expr one(1);
  const auto never_equal = [&](const index_expr& a, const index_expr& b) {
    const expr_range difference = (a - b).range();
    return difference.low > 0 || difference.high < 0;
  };
  switch (relation) {
    case guard_relation::equal:
      if (left == right) return true;
      return never_equal(left, right) ? std::optional(false) : std::nullopt;
    case guard_relation::broadcasts:
      if (left == right || left == one || right == one) return true;
      return never_equal(left, right) && never_equal(left, one) && never_equal(right, one) ? std::optional(false)
                                                                                           : std::nullopt;
    case guard_relation::expands:
      if (left == right || left == one) return true;
      return never_equal(left, right) && never_equal(left, one) ? std::optional(false) : std::nullopt;
    case guard_relation::at_least: {
      if (detail::is_operand(right, expr_op::min, left) || detail::is_operand(left, expr_op::max, right)) return true;
      const expr_range difference = (left - right).range();
      if (difference.low >= 0) return true;
      return difference.high < 0 ? std::optional(false) : std::nullopt;
    }
    case guard_relation::multiple:
      if (left == right || right == one) return true;
      if (right.is_constant() && right.constant() != 0 && mod(left, right) == index_expr(0)) return true;
      return std::nullopt;
  }
  return std::nullopt;
}

DNNOPT_BODY std::string to_string(const guard& g) {
  const std::string left = to_string(g.left);
  const std::string right = to_string(g.right);
  switch (g.relation) {
    case guard_relation::equal:
      return left + " equals " + right;
    case guard_relation::broadcasts:
      return left + " equals " + right + ", or one of them is 1";
    case guard_relation::expands:
      return left + " is 1 or equals " + right;
    case guard_relation::at_least:
      return left + " is at least " + right;
    case guard_relation::multiple:
      return left + " is a multiple of " + right;
  }
  return {};
}

DNNOPT_BODY error broken_guard(const guard& g, const symbol_values& values) {
  std::map<std::string, std::int64_t> symbols;
  for (const index_expr& side : {g.left, g.right})
    (void)substitute(side, [&](const index_expr& symbol) {
      if (const auto value = values.find(*symbol.as_symbol()))
        symbols[symbol.context()->symbol_name(*symbol.as_symbol())] = *value;
      return symbol;
    });
  std::string bound;
  for (const auto& [name, value] : symbols) bound += (bound.empty() ? "" : ", ") + name + " = " + std::to_string(value);
  return error(errc::shape_mismatch, g.node + ": " + g.what + ": " + to_string(g) + " does not hold with " + bound);
}

DNNOPT_BODY void check_guards(std::span<const guard> guards, const symbol_values& values, std::vector<bool>& checked) {
  checked.resize(guards.size(), false);
  for (std::size_t i = 0; i < guards.size(); ++i) {
    if (checked[i]) continue;
    const guard& g = guards[i];
    const auto left = g.left.try_evaluate(values);
    const auto right = left ? g.right.try_evaluate(values) : std::nullopt;
    if (!right) continue;
    checked[i] = true;
    if (!guard::holds(g.relation, *left, *right)) throw broken_guard(g, values);
  }
}
#endif

}  // namespace dnnopt

#endif  // DNNOPT_GUARD_HPP
