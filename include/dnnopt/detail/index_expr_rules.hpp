// Owns the rule tables of floordiv, mod, min and max.
#ifndef DNNOPT_DETAIL_INDEX_EXPR_RULES_HPP
#define DNNOPT_DETAIL_INDEX_EXPR_RULES_HPP

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include <dnnopt/detail/index_expr_numbers.hpp>
#include <dnnopt/error.hpp>
#include <dnnopt/index_expr.hpp>

namespace dnnopt {

namespace detail {

/// A named rewrite of `op(a, b)`; `apply` returns nothing where its condition does not hold.
struct index_rule {
  std::string_view name;
  std::optional<index_expr> (*apply)(const index_expr& a, const index_expr& b);
};

[[nodiscard]] inline bool never_zero(const index_expr& e) { return e.range().low > 0 || e.range().high < 0; }
[[nodiscard]] inline std::optional<std::int64_t> positive_constant(const index_expr& e) {
  const auto c = e.as_constant();
  return c && *c > 0 ? c : std::nullopt;
}

// Canonical order: constants fold first; each table is tried top to bottom and its result is canonical again.
inline constexpr std::array floordiv_rules{
    index_rule{"x floordiv 1 -> x",
               [](const index_expr& a, const index_expr& b) -> std::optional<index_expr> {
                 return b == index_expr(1) ? std::optional(a) : std::nullopt;
               }},
    index_rule{"0 floordiv y -> 0",
               [](const index_expr& a, const index_expr& b) -> std::optional<index_expr> {
                 return a == index_expr(0) && never_zero(b) ? std::optional(a) : std::nullopt;
               }},
    index_rule{"x floordiv y -> 0 where 0 <= x < y",
               [](const index_expr& a, const index_expr& b) -> std::optional<index_expr> {
                 return a.range().low >= 0 && b.range().low > 0 && (b - a).range().low > 0
                            ? std::optional(index_expr(0))
                            : std::nullopt;
               }},
    index_rule{"x*y floordiv y -> x where y != 0",
               [](const index_expr& a, const index_expr& b) -> std::optional<index_expr> {
                 return !b.is_constant() && never_zero(b) ? exact_quotient(a, b) : std::nullopt;
               }},
    index_rule{"(c*x + y) floordiv c -> x + y floordiv c",
               [](const index_expr& a, const index_expr& b) -> std::optional<index_expr> {
                 const auto c = positive_constant(b);
                 if (!c || a.is_constant()) return std::nullopt;
                 const auto [multiple, rest] = split_multiples(a, *c);
                 if (multiple == index_expr(0)) return std::nullopt;
                 return multiple + floordiv(rest, b);
               }},
    index_rule{"(k*x + r) floordiv (k*c) -> x floordiv c where 0 <= r < k",
               [](const index_expr& a, const index_expr& b) -> std::optional<index_expr> {
                 const auto c = positive_constant(b);
                 if (!c || a.op() != expr_op::sum) return std::nullopt;
                 for (const auto& t : a.node()->terms) {
                   const std::int64_t k = t.coefficient < 0 ? -t.coefficient : t.coefficient;
                   if (k <= 1 || *c % k != 0) continue;
                   const auto [multiple, rest] = split_multiples(a, k);
                   if (rest.range().low >= 0 && rest.range().high < k) return floordiv(multiple, index_expr(*c / k));
                 }
                 return std::nullopt;
               }},
    index_rule{"(x floordiv b) floordiv c -> x floordiv (b*c)",
               [](const index_expr& a, const index_expr& b) -> std::optional<index_expr> {
                 const auto c = positive_constant(b);
                 if (!c || a.op() != expr_op::floordiv || a.node()->right != nullptr || a.node()->right_constant <= 0)
                   return std::nullopt;
                 return floordiv(index_expr::from_node(a.node()->left, a.node()->left_constant),
                                 index_expr(checked_multiply(a.node()->right_constant, *c)));
               }},
    // Quotients inside, remainders outside: one form for what a digit of an index is.
    index_rule{"(x mod (k*c)) floordiv c -> (x floordiv c) mod k",
               [](const index_expr& a, const index_expr& b) -> std::optional<index_expr> {
                 const auto c = positive_constant(b);
                 if (!c || a.op() != expr_op::mod || a.node()->right != nullptr || a.node()->right_constant <= 0 ||
                     a.node()->right_constant % *c != 0)
                   return std::nullopt;
                 return mod(floordiv(index_expr::from_node(a.node()->left, a.node()->left_constant), b),
                            index_expr(a.node()->right_constant / *c));
               }},
};

inline constexpr std::array mod_rules{
    index_rule{"x mod 1 -> 0",
               [](const index_expr&, const index_expr& b) -> std::optional<index_expr> {
                 return b == index_expr(1) ? std::optional(index_expr(0)) : std::nullopt;
               }},
    index_rule{"x mod y -> x where 0 <= x < y",
               [](const index_expr& a, const index_expr& b) -> std::optional<index_expr> {
                 return a.range().low >= 0 && b.range().low > 0 && (b - a).range().low > 0 ? std::optional(a)
                                                                                           : std::nullopt;
               }},
    index_rule{"x*y mod y -> 0 where y != 0",
               [](const index_expr& a, const index_expr& b) -> std::optional<index_expr> {
                 return !b.is_constant() && never_zero(b) && exact_quotient(a, b) ? std::optional(index_expr(0))
                                                                                  : std::nullopt;
               }},
    index_rule{"(c*x + y) mod c -> y mod c",
               [](const index_expr& a, const index_expr& b) -> std::optional<index_expr> {
                 const auto c = positive_constant(b);
                 if (!c || a.is_constant()) return std::nullopt;
                 const auto [multiple, rest] = split_multiples(a, *c);
                 if (multiple == index_expr(0)) return std::nullopt;
                 return mod(rest, b);
               }},
    index_rule{"(x mod (k*c)) mod c -> x mod c",
               [](const index_expr& a, const index_expr& b) -> std::optional<index_expr> {
                 const auto c = positive_constant(b);
                 if (!c || a.op() != expr_op::mod || a.node()->right != nullptr || a.node()->right_constant <= 0 ||
                     a.node()->right_constant % *c != 0)
                   return std::nullopt;
                 return mod(index_expr::from_node(a.node()->left, a.node()->left_constant), b);
               }},
    index_rule{"(k*(x mod m) + y) mod c -> (k*x + y) mod c where c divides k*m",
               [](const index_expr& a, const index_expr& b) -> std::optional<index_expr> {
                 const auto c = positive_constant(b);
                 if (!c || a.op() != expr_op::sum) return std::nullopt;
                 for (const auto& t : a.node()->terms) {
                   if (t.atom->op != expr_op::mod || t.atom->right != nullptr || t.atom->right_constant <= 0) continue;
                   if (checked_multiply(t.coefficient % *c, t.atom->right_constant % *c) % *c != 0) continue;
                   const index_expr k = t.coefficient;
                   return mod(a - k * index_expr::from_node(t.atom) + k * index_expr::from_node(t.atom->left), b);
                 }
                 return std::nullopt;
               }},
    index_rule{"(k*x + r) mod (k*c) -> k*(x mod c) + r where 0 <= r < k",
               [](const index_expr& a, const index_expr& b) -> std::optional<index_expr> {
                 const auto c = positive_constant(b);
                 if (!c || a.op() != expr_op::sum) return std::nullopt;
                 for (const auto& t : a.node()->terms) {
                   const std::int64_t k = t.coefficient < 0 ? -t.coefficient : t.coefficient;
                   if (k <= 1 || *c % k != 0) continue;
                   const auto [multiple, rest] = split_multiples(a, k);
                   if (rest.range().low >= 0 && rest.range().high < k)
                     return mod(multiple, index_expr(*c / k)) * index_expr(k) + rest;
                 }
                 return std::nullopt;
               }},
};

// Whether `a`, an atom that is not negative, is at most `b` wherever it is not 0: as x and 2 * x - 1 are.
inline bool not_above_from_one(const index_expr& a, const index_expr& b) {
  const index_expr difference = b - a;
  if (difference.op() != expr_op::sum || difference.range().low <= -unbounded) return false;
  const auto& terms = difference.node()->terms;
  const auto own = std::find_if(terms.begin(), terms.end(), [&](const linear_term& t) { return t.atom == a.node(); });
  return own != terms.end() && own->coefficient > 0 && difference.range().low + own->coefficient >= 0;
}

// Whether a <= b is known: from ranges, or because a is a minimum with or b a maximum with something that decides it
// (absorption: max(x, min(x, y)) is x).
inline bool known_not_above(const index_expr& a, const index_expr& b, int depth = 4) {
  if (a == b || (b - a).range().low >= 0) return true;
  if (depth == 0) return false;
  const auto operands = [](const index_expr& e) {
    const expr_node& n = *e.node();
    return std::array{index_expr::from_node(n.left, n.left_constant), index_expr::from_node(n.right, n.right_constant)};
  };
  if (a.op() == expr_op::min || a.op() == expr_op::max) {
    const auto [x, y] = operands(a);
    const bool left = known_not_above(x, b, depth - 1);
    if (a.op() == expr_op::min ? left || known_not_above(y, b, depth - 1) : left && known_not_above(y, b, depth - 1))
      return true;
  }
  if (b.op() == expr_op::min || b.op() == expr_op::max) {
    const auto [x, y] = operands(b);
    const bool left = known_not_above(a, x, depth - 1);
    if (b.op() == expr_op::max && a.range().low == 0 && (x.range().low >= 0 || y.range().low >= 0) &&
        (not_above_from_one(a, x) || not_above_from_one(a, y)))
      return true;
    if (b.op() == expr_op::max ? left || known_not_above(a, y, depth - 1) : left && known_not_above(a, y, depth - 1))
      return true;
  }
  return false;
}

/// Whether -`e` is the form to keep of the two: `e` is never positive or, where its sign is open, a sum whose first
/// term is negative.
inline bool is_turned(const index_expr& e) {
  const expr_range range = e.range();
  return range.low < 0 && (range.high <= 0 || (e.op() == expr_op::sum && e.node()->terms.front().coefficient < 0));
}

/// -`opposite`(-a, -b) where that is the form to keep of both, or of the one beside a constant.
inline std::optional<index_expr> turned(const index_expr& a, const index_expr& b,
                                        index_expr (*opposite)(const index_expr&, const index_expr&)) {
  if (!is_turned(a) || !(b.is_constant() || is_turned(b))) return std::nullopt;
  return index_expr(0) - opposite(index_expr(0) - a, index_expr(0) - b);
}

/// The least of the factors of c * x * y beside 1, by magnitude: min(c * x * y, 1) where no factor changes its sign and
/// the whole is not negative. Nothing where it is no such product, or x alone.
inline std::optional<index_expr> least_factor_or_one(const index_expr& e) {
  const linear_view view = linear_of(e);
  if (view.constant != 0 || view.terms.size() != 1 || e.range().low < 0) return std::nullopt;
  const auto [coefficient, atom] = view.terms[0];
  const std::span<const expr_node* const> factors =
      atom->op == expr_op::product ? std::span(atom->factors) : std::span(&atom, 1);
  if (factors.size() == 1 && (coefficient == 1 || coefficient == -1)) return std::nullopt;
  std::optional<index_expr> least;
  for (const expr_node* factor : factors) {
    if (factor->range.low < 0 && factor->range.high > 0) return std::nullopt;
    const index_expr part = index_expr::from_node(factor) * index_expr(factor->range.low < 0 ? -1 : 1);
    least = least ? min(*least, part) : part;
  }
  return min(*least, 1);
}

/// `apply`(`apply`(x, y), c) of an `op` of x and c beside y: constants stand outside, where they meet.
inline std::optional<index_expr> constant_outside(expr_op op, const index_expr& a, const index_expr& b,
                                                  index_expr (*apply)(const index_expr&, const index_expr&)) {
  for (const auto& [nested, other] : {std::pair(a, b), std::pair(b, a)}) {
    if (nested.op() != op || nested.node()->right != nullptr) continue;
    const index_expr x = index_expr::from_node(nested.node()->left);
    const index_expr c = nested.node()->right_constant;
    return other.is_constant() ? apply(x, apply(c, other)) : apply(apply(x, other), c);
  }
  return std::nullopt;
}

inline constexpr std::array min_rules{
    index_rule{"min(x, y) -> x where x <= y",
               [](const index_expr& a, const index_expr& b) -> std::optional<index_expr> {
                 return known_not_above(a, b) ? std::optional(a) : std::nullopt;
               }},
    index_rule{"min(x, y) -> y where y <= x",
               [](const index_expr& a, const index_expr& b) -> std::optional<index_expr> {
                 return known_not_above(b, a) ? std::optional(b) : std::nullopt;
               }},
    index_rule{"min(c*x*y, 1) -> min(min(x, y), 1) where c*x*y >= 0",
               [](const index_expr& a, const index_expr& b) {
                 return b == index_expr(1) ? least_factor_or_one(a) : std::nullopt;
               }},
    index_rule{"min(min(x, c), y) -> min(min(x, y), c)",
               [](const index_expr& a, const index_expr& b) { return constant_outside(expr_op::min, a, b, min); }},
    index_rule{"min(-x, -y) -> -max(x, y)", [](const index_expr& a, const index_expr& b) { return turned(a, b, max); }},
};

inline constexpr std::array max_rules{
    index_rule{"max(x, y) -> x where y <= x",
               [](const index_expr& a, const index_expr& b) -> std::optional<index_expr> {
                 return known_not_above(b, a) ? std::optional(a) : std::nullopt;
               }},
    index_rule{"max(x, y) -> y where x <= y",
               [](const index_expr& a, const index_expr& b) -> std::optional<index_expr> {
                 return known_not_above(a, b) ? std::optional(b) : std::nullopt;
               }},
    index_rule{"max(max(x, c), y) -> max(max(x, y), c)",
               [](const index_expr& a, const index_expr& b) { return constant_outside(expr_op::max, a, b, max); }},
    index_rule{"max(-x, -y) -> -min(x, y)", [](const index_expr& a, const index_expr& b) { return turned(a, b, min); }},
};

inline index_expr apply_rules(std::span<const index_rule> rules, expr_op op, const index_expr& a, const index_expr& b) {
  for (const auto& rule : rules)
    if (auto result = rule.apply(a, b)) return *result;
  return context_of(a, b).make_binary(op, a, b);
}

}  // namespace detail

DNNOPT_BODY index_expr floordiv(const index_expr& a, const index_expr& b) {
  if (b == index_expr(0)) throw error(errc::division_by_zero, "an index expression divides by zero");
  if (a.is_constant() && b.is_constant()) return detail::checked_floordiv(a.constant(), b.constant());
  return detail::apply_rules(detail::floordiv_rules, expr_op::floordiv, a, b);
}

DNNOPT_BODY index_expr mod(const index_expr& a, const index_expr& b) {
  if (b == index_expr(0)) throw error(errc::division_by_zero, "an index expression takes a value modulo zero");
  if (a.is_constant() && b.is_constant()) return detail::checked_mod(a.constant(), b.constant());
  return detail::apply_rules(detail::mod_rules, expr_op::mod, a, b);
}

DNNOPT_BODY index_expr min(const index_expr& a, const index_expr& b) {
  if (a.is_constant() && b.is_constant()) return std::min(a.constant(), b.constant());
  if (!a.is_constant() && (b.is_constant() || detail::precedes(*b.node(), *a.node())))
    return b.is_constant() ? detail::apply_rules(detail::min_rules, expr_op::min, a, b) : min(b, a);
  return a.is_constant() ? min(b, a) : detail::apply_rules(detail::min_rules, expr_op::min, a, b);
}

DNNOPT_BODY index_expr max(const index_expr& a, const index_expr& b) {
  if (a.is_constant() && b.is_constant()) return std::max(a.constant(), b.constant());
  if (!a.is_constant() && (b.is_constant() || detail::precedes(*b.node(), *a.node())))
    return b.is_constant() ? detail::apply_rules(detail::max_rules, expr_op::max, a, b) : max(b, a);
  return a.is_constant() ? max(b, a) : detail::apply_rules(detail::max_rules, expr_op::max, a, b);
}

}  // namespace dnnopt

#endif  // DNNOPT_DETAIL_INDEX_EXPR_RULES_HPP
