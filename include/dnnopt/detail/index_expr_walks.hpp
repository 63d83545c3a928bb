// Owns the bodies that walk an expression: evaluation and substitution.
#ifndef DNNOPT_DETAIL_INDEX_EXPR_WALKS_HPP
#define DNNOPT_DETAIL_INDEX_EXPR_WALKS_HPP

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include <dnnopt/detail/index_expr_numbers.hpp>
#include <dnnopt/error.hpp>
#include <dnnopt/index_expr.hpp>

namespace dnnopt {

namespace detail {

// Expressions share parts: beyond this size each part is looked up before it is worked out, or the work would grow with
// the expression written out in full.
inline constexpr std::uint32_t least_remembered = 24;

/// The value of a node whose operands have the values that `operand(node, constant)` gives.
template <class Operand>
std::optional<std::int64_t> value_of(const expr_node& n, const symbol_values& values, Operand&& operand) {
  switch (n.op) {
    case expr_op::constant:
      return n.value;
    case expr_op::symbol:
      return values.find(static_cast<std::uint32_t>(n.value));
    case expr_op::sum: {
      std::int64_t total = n.value;
      for (const auto& t : n.terms) {
        const auto v = operand(t.atom, 0);
        if (!v) return std::nullopt;
        total = checked_add(total, checked_multiply(t.coefficient, *v));
      }
      return total;
    }
    case expr_op::product: {
      std::int64_t total = 1;
      for (const auto* f : n.factors) {
        const auto v = operand(f, 0);
        if (!v) return std::nullopt;
        total = checked_multiply(total, *v);
      }
      return total;
    }
    case expr_op::floordiv:
    case expr_op::mod:
    case expr_op::min:
    case expr_op::max: {
      const auto x = operand(n.left, n.left_constant);
      const auto y = operand(n.right, n.right_constant);
      if (!x || !y) return std::nullopt;
      if ((n.op == expr_op::floordiv || n.op == expr_op::mod) && *y == 0) return std::nullopt;
      if (n.op == expr_op::floordiv) return checked_floordiv(*x, *y);
      if (n.op == expr_op::mod) return checked_mod(*x, *y);
      return n.op == expr_op::min ? std::min(*x, *y) : std::max(*x, *y);
    }
  }
  return std::nullopt;
}

using known_values = std::unordered_map<const expr_node*, std::optional<std::int64_t>>;

inline std::optional<std::int64_t> evaluate_node(const expr_node* node, std::int64_t constant,
                                                 const symbol_values& values, known_values& known) {
  if (node == nullptr) return constant;
  const bool remembered = node->size >= least_remembered;
  if (remembered)
    if (const auto found = known.find(node); found != known.end()) return found->second;
  const auto value = value_of(*node, values, [&](const expr_node* operand, std::int64_t number) {
    return evaluate_node(operand, number, values, known);
  });
  if (remembered) known.emplace(node, value);
  return value;
}

}  // namespace detail

DNNOPT_BODY std::optional<std::int64_t> index_expr::try_evaluate(const symbol_values& values) const {
  detail::known_values known;
  return detail::evaluate_node(node_, constant_, values, known);
}

DNNOPT_BODY std::int64_t index_expr::evaluate(const symbol_values& values) const {
  const auto result = try_evaluate(values);
  if (!result) {
    std::string unbound;
    (void)substitute(*this, [&](const index_expr& symbol) {
      if (!values.find(*symbol.as_symbol())) unbound += " '" + symbol.context()->symbol_name(*symbol.as_symbol()) + "'";
      return symbol;
    });
    if (unbound.empty()) throw error(errc::division_by_zero, "an index expression divides by zero");
    throw error(errc::unbound_symbol, "an expression needs the value of" + unbound);
  }
  return *result;
}

namespace detail {

using symbol_replacement = std::function<index_expr(const index_expr& symbol)>;

/// A node whose operands are what `operand(node, constant)` gives.
template <class Operand>
index_expr rebuilt(const index_expr& e, const symbol_replacement& replacement, Operand&& operand) {
  const expr_node& n = *e.node();
  switch (n.op) {
    case expr_op::constant:
      return n.value;
    case expr_op::symbol:
      return replacement(e);
    case expr_op::sum: {
      index_expr total = n.value;
      for (const auto& t : n.terms) total += operand(t.atom, 0) * index_expr(t.coefficient);
      return total;
    }
    case expr_op::product: {
      index_expr total = 1;
      for (const auto* f : n.factors) total *= operand(f, 0);
      return total;
    }
    case expr_op::floordiv:
      return floordiv(operand(n.left, n.left_constant), operand(n.right, n.right_constant));
    case expr_op::mod:
      return mod(operand(n.left, n.left_constant), operand(n.right, n.right_constant));
    case expr_op::min:
      return min(operand(n.left, n.left_constant), operand(n.right, n.right_constant));
    case expr_op::max:
      return max(operand(n.left, n.left_constant), operand(n.right, n.right_constant));
  }
  return e;
}

using known_replacements = std::unordered_map<const expr_node*, index_expr>;

inline index_expr substitute_node(const expr_node* node, std::int64_t constant, const symbol_replacement& replacement,
                                  known_replacements& known) {
  const index_expr e = index_expr::from_node(node, constant);
  if (node == nullptr) return e;
  const bool remembered = node->size >= least_remembered;
  if (remembered)
    if (const auto found = known.find(node); found != known.end()) return found->second;
  const index_expr made = rebuilt(e, replacement, [&](const expr_node* operand, std::int64_t number) {
    return substitute_node(operand, number, replacement, known);
  });
  if (remembered) known.emplace(node, made);
  return made;
}

}  // namespace detail

DNNOPT_BODY index_expr substitute(const index_expr& e,
                                  const std::function<index_expr(const index_expr& symbol)>& replacement) {
  detail::known_replacements known;
  return detail::substitute_node(e.node(), e.is_constant() ? e.constant() : 0, replacement, known);
}

namespace detail {

using atom_replacement = std::function<std::optional<index_expr>(const index_expr& atom)>;

inline index_expr substitute_atoms_of(const expr_node* node, std::int64_t constant, const atom_replacement& replacement,
                                      known_replacements& known) {
  const index_expr e = index_expr::from_node(node, constant);
  if (node == nullptr) return e;
  if (const auto found = known.find(node); found != known.end()) return found->second;
  std::optional<index_expr> made;
  if (node->op != expr_op::constant && node->op != expr_op::sum && node->op != expr_op::product) made = replacement(e);
  if (!made)
    made = rebuilt(
        e, [](const index_expr& symbol) { return symbol; },
        [&](const expr_node* operand, std::int64_t number) {
          return substitute_atoms_of(operand, number, replacement, known);
        });
  known.emplace(node, *made);
  return *made;
}

inline bool has_value_always(const expr_node* node, std::unordered_set<const expr_node*>& seen) {
  if (node == nullptr || !seen.insert(node).second) return true;
  if ((node->op == expr_op::floordiv || node->op == expr_op::mod) &&
      index_expr::from_node(node->right, node->right_constant).range().low <= 0)
    return false;
  for (const linear_term& t : node->terms)
    if (!has_value_always(t.atom, seen)) return false;
  for (const expr_node* f : node->factors)
    if (!has_value_always(f, seen)) return false;
  return has_value_always(node->left, seen) && has_value_always(node->right, seen);
}

inline index_expr divided_by_one_at_least(const expr_node* node, std::int64_t constant, known_replacements& known) {
  const index_expr e = index_expr::from_node(node, constant);
  if (node == nullptr) return e;
  if (const auto found = known.find(node); found != known.end()) return found->second;
  const auto inner = [&](const expr_node* operand, std::int64_t number) {
    return divided_by_one_at_least(operand, number, known);
  };
  const bool divides = node->op == expr_op::floordiv || node->op == expr_op::mod;
  index_expr made = 0;
  if (divides && index_expr::from_node(node->right, node->right_constant).range().low == 0) {
    const index_expr left = inner(node->left, node->left_constant);
    const index_expr divisor = max(inner(node->right, node->right_constant), 1);
    made = node->op == expr_op::floordiv ? floordiv(left, divisor) : mod(left, divisor);
  } else {
    made = rebuilt(
        e, [](const index_expr& symbol) { return symbol; }, inner);
  }
  known.emplace(node, made);
  return made;
}

}  // namespace detail

DNNOPT_BODY index_expr substitute_atoms(
    const index_expr& e, const std::function<std::optional<index_expr>(const index_expr& atom)>& replacement) {
  detail::known_replacements known;
  return detail::substitute_atoms_of(e.node(), e.is_constant() ? e.constant() : 0, replacement, known);
}

DNNOPT_BODY bool always_has_value(const index_expr& e) {
  std::unordered_set<const detail::expr_node*> seen;
  return detail::has_value_always(e.node(), seen);
}

DNNOPT_BODY index_expr divided_by_one_at_least(const index_expr& e) {
  if (always_has_value(e)) return e;
  detail::known_replacements known;
  return detail::divided_by_one_at_least(e.node(), 0, known);
}

}  // namespace dnnopt

#endif  // DNNOPT_DETAIL_INDEX_EXPR_WALKS_HPP
