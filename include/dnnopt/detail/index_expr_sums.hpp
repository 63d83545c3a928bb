// Owns the canonical forms of sums and products, and how these are taken apart.
#ifndef DNNOPT_DETAIL_INDEX_EXPR_SUMS_HPP
#define DNNOPT_DETAIL_INDEX_EXPR_SUMS_HPP

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <dnnopt/detail/index_expr_numbers.hpp>
#include <dnnopt/index_expr.hpp>

namespace dnnopt {

namespace detail {

// Nested minima and maxima share operands; those that are longer, written out in full, are not searched.
inline constexpr std::uint32_t largest_searched = 64;

/// Whether `holds` is true of every operand of the nested `e.op` (min or max) that `e` is made of.
template <class Predicate>
bool all_operands(const expr_node& e, Predicate&& holds) {
  const auto side = [&](const expr_node* n, std::int64_t constant) {
    return n != nullptr && n->op == e.op ? all_operands(*n, holds) : holds(index_expr::from_node(n, constant));
  };
  return side(e.left, e.left_constant) && side(e.right, e.right_constant);
}

/// Whether a product that holds `factors` is 0 wherever `e` is.
inline bool zero_with(const index_expr& e, std::span<const expr_node* const> factors) {
  const linear_view view = linear_of(e);
  if (view.constant != 0 || view.terms.size() != 1) return false;
  const expr_node* const atom = view.terms[0].atom;
  const auto given = [&](const expr_node* f) { return std::find(factors.begin(), factors.end(), f) != factors.end(); };
  return atom->op == expr_op::product ? std::all_of(atom->factors.begin(), atom->factors.end(), given) : given(atom);
}

/// Whether `e` is 0 or 1, and 0 only where what it is multiplied by is 0 too, as min(x, 1) is beside x: `zero` tells
/// of an operand whether the other factors are 0 with it.
template <class Predicate>
bool is_idle_factor(const expr_node& e, Predicate&& zero) {
  return e.op == expr_op::min && e.size <= largest_searched && e.range.low >= 0 && e.range.high <= 1 &&
         all_operands(e, [&](const index_expr& x) { return x.is_constant() ? x.constant() == 1 : zero(x); });
}

/// Whether an operand of the nested min `e` is `x` or, where that is a max, an operand of it.
inline bool shares_operand(const expr_node& e, const index_expr& x) {
  const auto other = [&](const index_expr& operand) {
    if (x.op() != expr_op::max) return !(operand == x);
    return all_operands(*x.node(), [&](const index_expr& part) { return part.is_constant() || !(part == operand); });
  };
  return !all_operands(e, other);
}

/// The terms of a sum without term `i` and those of `part`; nothing where one of these is not there.
inline std::optional<std::vector<linear_term>> without(std::span<const linear_term> terms, std::size_t i,
                                                       const index_expr& part) {
  const linear_view taken = linear_of(part);
  std::vector<linear_term> rest;
  for (std::size_t j = 0; j < terms.size(); ++j)
    if (j != i && std::find(taken.terms.begin(), taken.terms.end(), terms[j]) == taken.terms.end())
      rest.push_back(terms[j]);
  if (rest.size() + 1 + taken.terms.size() != terms.size()) return std::nullopt;
  return rest;
}

/// The bounds of a sum from its terms, where x - min(x, y) and max(x, y) - x count as what they are: not negative.
inline expr_range range_of_sum(std::int64_t constant, std::span<const linear_term> terms) {
  const auto bounds = [&](expr_op subtracted, expr_op added) {
    std::vector<linear_term> left(terms.begin(), terms.end());
    for (linear_term& m : left) {
      if ((m.atom->op != subtracted && m.atom->op != added) || m.atom->size > largest_searched) continue;
      const bool wanted = m.atom->op == subtracted ? m.coefficient < 0 : m.coefficient > 0;
      for (linear_term& x : left) {
        if (!wanted || m.coefficient == 0 || x.coefficient == 0 || (x.coefficient < 0) == (m.coefficient < 0)) continue;
        const auto other = [&](const index_expr& operand) { return operand.node() != x.atom; };
        if (all_operands(*m.atom, other)) continue;
        const std::int64_t both = std::min(std::abs(m.coefficient), std::abs(x.coefficient));
        m.coefficient += m.coefficient < 0 ? both : -both;
        x.coefficient += x.coefficient < 0 ? both : -both;
      }
    }
    expr_range range{constant, constant};
    for (const linear_term& t : left)
      range = add_ranges(range, multiply_ranges({t.coefficient, t.coefficient}, t.atom->range));
    return range;
  };
  return {bounds(expr_op::min, expr_op::max).low, bounds(expr_op::max, expr_op::min).high};
}

}  // namespace detail

DNNOPT_BODY index_expr expr_context::make_sum(std::int64_t constant, std::vector<detail::linear_term> terms) {
  std::sort(terms.begin(), terms.end(),
            [](const auto& x, const auto& y) { return detail::precedes(*x.atom, *y.atom); });
  std::vector<detail::linear_term> merged;
  for (const auto& t : terms) {
    if (!merged.empty() && merged.back().atom == t.atom)
      merged.back().coefficient = detail::checked_add(merged.back().coefficient, t.coefficient);
    else
      merged.push_back(t);
  }
  std::erase_if(merged, [](const auto& t) { return t.coefficient == 0; });
  // x mod c and c * (x floordiv c) in one sum are x: the law that defines mod. floordiv is asked for the quotient's
  // canonical form, so that nested divisions recombine too.
  for (std::size_t i = 0; i < merged.size(); ++i) {
    const detail::expr_node* m = merged[i].atom;
    if (m->op != expr_op::mod || m->right != nullptr || m->left == nullptr || merged.size() < 2) continue;
    const index_expr x = index_expr::from_node(m->left);
    const index_expr quotient = floordiv(x, index_expr(m->right_constant));
    if (quotient.is_constant() || quotient.op() == expr_op::sum) continue;
    const std::int64_t k = merged[i].coefficient;
    const std::int64_t wanted = detail::checked_multiply(k, m->right_constant);
    for (std::size_t j = 0; j < merged.size(); ++j) {
      if (j == i || merged[j].coefficient != wanted) continue;
      index_expr whole = x;
      if (const detail::expr_node* digit = merged[j].atom; digit != quotient.node()) {
        // A digit of the quotient: x mod c and c * ((x floordiv c) mod d) are x mod (c * d).
        if (digit->op != expr_op::mod || digit->right != nullptr || digit->right_constant <= 0 ||
            digit->left != quotient.node() || m->right_constant <= 0)
          continue;
        whole = mod(x, index_expr(detail::checked_multiply(m->right_constant, digit->right_constant)));
      }
      merged.erase(merged.begin() + static_cast<std::ptrdiff_t>(std::max(i, j)));
      merged.erase(merged.begin() + static_cast<std::ptrdiff_t>(std::min(i, j)));
      return make_sum(constant, std::move(merged)) + index_expr(k) * whole;
    }
  }
  // The same law of the other two of the three: x - x mod c is c * (x floordiv c), x - c * (x floordiv c) is x mod c.
  for (std::size_t i = 0; i < merged.size() && merged.size() > 1; ++i) {
    const detail::expr_node* atom = merged[i].atom;
    const std::int64_t c = atom->right_constant;
    if ((atom->op != expr_op::mod && atom->op != expr_op::floordiv) || atom->right != nullptr || c <= 0) continue;
    const bool quotient = atom->op == expr_op::floordiv;
    const std::int64_t coefficient = merged[i].coefficient;
    if (quotient && coefficient % c != 0) continue;
    const std::int64_t times = quotient ? -(coefficient / c) : -coefficient;
    const index_expr x = index_expr::from_node(atom->left);
    const auto rest = detail::without(merged, i, x * index_expr(times));
    if (!rest) continue;
    const std::int64_t left_constant = detail::linear_of(x * index_expr(times)).constant;
    const index_expr left = make_sum(detail::checked_add(constant, -left_constant), *rest);
    return quotient ? left + mod(x, index_expr(c)) * index_expr(times)
                    : left + floordiv(x, index_expr(c)) * index_expr(detail::checked_multiply(times, c));
  }
  // x - min(x, c) is what is left of x behind the first c: max(x - c, 0).
  for (std::size_t i = 0; i < merged.size() && merged.size() > 1; ++i) {
    const detail::expr_node* atom = merged[i].atom;
    if (atom->op != expr_op::min || atom->right != nullptr || atom->right_constant <= 0) continue;
    const index_expr x = index_expr::from_node(atom->left);
    const index_expr times = index_expr(0) - index_expr(merged[i].coefficient);
    const auto rest = detail::without(merged, i, x * times);
    if (!rest) continue;
    const std::int64_t left = detail::checked_add(constant, -detail::linear_of(x * times).constant);
    return make_sum(left, *rest) + max(x - index_expr(atom->right_constant), 0) * times;
  }
  // max(x - c, d) + c is max(x, d + c).
  if (merged.size() == 1 && merged[0].coefficient == 1 && constant != 0 && merged[0].atom->op == expr_op::max &&
      merged[0].atom->right == nullptr) {
    const index_expr x = index_expr::from_node(merged[0].atom->left);
    if (detail::linear_of(x).constant == -constant)
      return max(x + index_expr(constant), index_expr(detail::checked_add(merged[0].atom->right_constant, constant)));
  }
  if (merged.empty()) return constant;
  if (merged.size() == 1 && constant == 0 && merged[0].coefficient == 1) return index_expr::from_node(merged[0].atom);
  detail::expr_node node;
  node.op = expr_op::sum;
  node.value = constant;
  node.range = detail::range_of_sum(constant, merged);
  node.terms = std::move(merged);
  return index_expr::from_node(intern(std::move(node)));
}

DNNOPT_BODY index_expr expr_context::make_product(std::vector<const detail::expr_node*> factors) {
  std::vector<const detail::expr_node*> flat;
  for (const auto* f : factors) {
    if (f->op == expr_op::product)
      flat.insert(flat.end(), f->factors.begin(), f->factors.end());
    else
      flat.push_back(f);
  }
  std::sort(flat.begin(), flat.end(), [](const auto* x, const auto* y) { return detail::precedes(*x, *y); });
  // max(x, 1) * min(x, 1) is x * min(x, 1), and that is x: what dims that may be broadcast are full of.
  for (std::size_t i = 0; i < flat.size(); ++i) {
    const auto limited = [&](const detail::expr_node* f) {
      return f->op == expr_op::max && f->right == nullptr && f->right_constant == 1 &&
             detail::shares_operand(*flat[i], index_expr::from_node(f->left));
    };
    if (!detail::is_idle_factor(*flat[i], [](const index_expr&) { return true; })) continue;
    const auto found = std::find_if(flat.begin(), flat.end(), limited);
    if (found == flat.end()) continue;
    const index_expr whole = index_expr::from_node((*found)->left);
    flat.erase(found);
    return make_product(std::move(flat)) * whole;
  }
  for (std::size_t i = 0; i < flat.size() && flat.size() > 1;) {
    std::vector<const detail::expr_node*> others = flat;
    others.erase(others.begin() + static_cast<std::ptrdiff_t>(i));
    const bool twice = std::find(others.begin(), others.end(), flat[i]) != others.end();
    const auto zero = [&](const index_expr& e) { return twice || detail::zero_with(e, others); };
    if (detail::is_idle_factor(*flat[i], zero))
      flat = std::move(others), i = 0;
    else
      ++i;
  }
  if (flat.size() == 1) return index_expr::from_node(flat[0]);
  detail::expr_node node;
  node.op = expr_op::product;
  node.range = {1, 1};
  for (const auto* f : flat) node.range = detail::multiply_ranges(node.range, f->range);
  node.factors = std::move(flat);
  return index_expr::from_node(intern(std::move(node)));
}

DNNOPT_BODY index_expr expr_context::make_binary(expr_op op, const index_expr& a, const index_expr& b) {
  detail::expr_node node;
  node.op = op;
  node.left = a.node();
  node.right = b.node();
  node.left_constant = a.is_constant() ? a.constant() : 0;
  node.right_constant = b.is_constant() ? b.constant() : 0;
  const expr_range x = a.range();
  expr_range y = b.range();
  // A division by 0 has no value, so that the others alone bound it.
  if ((op == expr_op::floordiv || op == expr_op::mod) && y.low == 0 && y.high > 0) y.low = 1;
  if (op == expr_op::min) {
    node.range = {std::min(x.low, y.low), std::min(x.high, y.high)};
  } else if (op == expr_op::max) {
    node.range = {std::max(x.low, y.low), std::max(x.high, y.high)};
  } else if (op == expr_op::floordiv && y.low > 0) {
    const auto divide = [](std::int64_t v, std::int64_t by) {
      return v <= -unbounded || v >= unbounded ? v : detail::floor_divide(v, by);
    };
    node.range = {x.low >= 0 ? (y.high >= unbounded ? 0 : divide(x.low, y.high)) : divide(x.low, y.low),
                  x.high >= 0 ? divide(x.high, y.low) : (y.high >= unbounded ? 0 : divide(x.high, y.high))};
  } else if (op == expr_op::mod && y.low > 0) {
    node.range = {0, std::min(y.high >= unbounded ? unbounded : y.high - 1, x.low >= 0 ? x.high : unbounded)};
  }
  return index_expr::from_node(intern(std::move(node)));
}

DNNOPT_BODY index_expr operator+(const index_expr& a, const index_expr& b) {
  if (a.is_constant() && b.is_constant()) return detail::checked_add(a.constant(), b.constant());
  if (a.is_constant() && a.constant() == 0) return b;
  if (b.is_constant() && b.constant() == 0) return a;
  expr_context& context = detail::context_of(a, b);
  detail::linear_view left = detail::linear_of(a);
  const detail::linear_view right = detail::linear_of(b);
  left.terms.insert(left.terms.end(), right.terms.begin(), right.terms.end());
  return context.make_sum(detail::checked_add(left.constant, right.constant), std::move(left.terms));
}

DNNOPT_BODY index_expr operator*(const index_expr& a, const index_expr& b) {
  if (a.is_constant() && b.is_constant()) return detail::checked_multiply(a.constant(), b.constant());
  if (a.is_constant()) return b * a;
  if (b.is_constant()) {
    const std::int64_t k = b.constant();
    if (k == 0) return 0;
    if (k == 1) return a;
    detail::linear_view view = detail::linear_of(a);
    for (auto& t : view.terms) t.coefficient = detail::checked_multiply(t.coefficient, k);
    return a.context()->make_sum(detail::checked_multiply(view.constant, k), std::move(view.terms));
  }
  expr_context& context = detail::context_of(a, b);
  const detail::linear_view x = detail::linear_of(a);
  const detail::linear_view y = detail::linear_of(b);
  const auto idle_beside = [](const detail::linear_view& factor, const index_expr& e) {
    return factor.constant == 0 && factor.terms.size() == 1 &&
           detail::is_idle_factor(*factor.terms[0].atom, [&](const index_expr& operand) { return operand == e; });
  };
  if (idle_beside(y, a)) return a * index_expr(y.terms[0].coefficient);
  if (idle_beside(x, b)) return b * index_expr(x.terms[0].coefficient);
  if ((x.terms.size() + 1) * (y.terms.size() + 1) > detail::largest_distribution)
    return context.make_product({a.node(), b.node()});
  std::vector<detail::linear_term> terms;
  for (const auto& s : x.terms)
    for (const auto& t : y.terms) {
      const index_expr product = context.make_product({s.atom, t.atom});
      terms.push_back({detail::checked_multiply(s.coefficient, t.coefficient), product.node()});
    }
  if (y.constant != 0)
    for (const auto& s : x.terms) terms.push_back({detail::checked_multiply(s.coefficient, y.constant), s.atom});
  if (x.constant != 0)
    for (const auto& t : y.terms) terms.push_back({detail::checked_multiply(t.coefficient, x.constant), t.atom});
  return context.make_sum(detail::checked_multiply(x.constant, y.constant), std::move(terms));
}

DNNOPT_BODY index_expr operator-(const index_expr& a, const index_expr& b) { return a + b * index_expr(-1); }

namespace detail {

DNNOPT_BODY std::pair<index_expr, index_expr> split_multiples(const index_expr& e, std::int64_t by) {
  const linear_view view = linear_of(e);
  linear_view multiple;
  linear_view rest;
  for (const auto& t : view.terms) {
    if (t.coefficient % by == 0)
      multiple.terms.push_back({t.coefficient / by, t.atom});
    else
      rest.terms.push_back(t);
  }
  multiple.constant = floor_divide(view.constant, by);
  rest.constant = view.constant - multiple.constant * by;
  expr_context& context = *e.context();
  return {context.make_sum(multiple.constant, std::move(multiple.terms)),
          context.make_sum(rest.constant, std::move(rest.terms))};
}

DNNOPT_BODY std::optional<index_expr> exact_quotient(const index_expr& e, const index_expr& divisor) {
  const linear_view d = linear_of(divisor);
  if (d.constant != 0 || d.terms.size() != 1) {
    if (e == divisor) return index_expr(1);
    // A sum divides a scaled copy of itself.
    const linear_view x = linear_of(e);
    if (x.terms.size() != d.terms.size() || x.terms.empty() || x.terms[0].coefficient % d.terms[0].coefficient != 0)
      return std::nullopt;
    const std::int64_t k = x.terms[0].coefficient / d.terms[0].coefficient;
    return divisor * index_expr(k) == e ? std::optional(index_expr(k)) : std::nullopt;
  }
  std::vector<const expr_node*> wanted{d.terms[0].atom};
  if (d.terms[0].atom->op == expr_op::product) wanted = d.terms[0].atom->factors;
  const linear_view view = linear_of(e);
  if (view.constant != 0) return std::nullopt;
  index_expr quotient = 0;
  for (const auto& t : view.terms) {
    if (t.coefficient % d.terms[0].coefficient != 0) return std::nullopt;
    std::vector<const expr_node*> factors{t.atom};
    if (t.atom->op == expr_op::product) factors = t.atom->factors;
    for (const auto* w : wanted) {
      const auto found = std::find(factors.begin(), factors.end(), w);
      if (found == factors.end()) return std::nullopt;
      factors.erase(found);
    }
    const std::int64_t k = t.coefficient / d.terms[0].coefficient;
    quotient += factors.empty() ? index_expr(k) : e.context()->make_product(std::move(factors)) * index_expr(k);
  }
  return quotient;
}

}  // namespace detail

}  // namespace dnnopt

#endif  // DNNOPT_DETAIL_INDEX_EXPR_SUMS_HPP
