// Owns the bodies of <dnnopt/index_expr.hpp>: the canonical constructors and the rule tables of floordiv, mod, min and
// max.
#ifndef DNNOPT_DETAIL_INDEX_EXPR_BODIES_HPP
#define DNNOPT_DETAIL_INDEX_EXPR_BODIES_HPP

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include <dnnopt/error.hpp>
#include <dnnopt/index_expr.hpp>

namespace dnnopt {
namespace detail {

// Products of sums are distributed up to this many terms, so that polynomials have one form; longer ones stay factored.
inline constexpr std::size_t largest_distribution = 64;

inline std::int64_t checked_add(std::int64_t a, std::int64_t b) {
  std::int64_t r = 0;
  if (__builtin_add_overflow(a, b, &r))
    throw error(errc::overflow, "index arithmetic overflows: " + std::to_string(a) + " + " + std::to_string(b));
  return r;
}
inline std::int64_t checked_multiply(std::int64_t a, std::int64_t b) {
  std::int64_t r = 0;
  if (__builtin_mul_overflow(a, b, &r))
    throw error(errc::overflow, "index arithmetic overflows: " + std::to_string(a) + " * " + std::to_string(b));
  return r;
}
inline std::int64_t checked_floordiv(std::int64_t a, std::int64_t b) {
  if (b == 0) throw error(errc::division_by_zero, "index arithmetic divides " + std::to_string(a) + " by zero");
  if (b == -1) return checked_multiply(a, -1);
  return floor_divide(a, b);
}
inline std::int64_t checked_mod(std::int64_t a, std::int64_t b) {
  if (b == 0) throw error(errc::division_by_zero, "index arithmetic takes " + std::to_string(a) + " modulo zero");
  if (b == -1) return 0;
  return a - b * floor_divide(a, b);
}

inline expr_context& context_of(const index_expr& a, const index_expr& b) {
  expr_context* const left = a.context();
  expr_context* const right = b.context();
  if (left != nullptr && right != nullptr && left != right)
    throw error(errc::invalid_argument, "expressions of two contexts are combined");
  return left != nullptr ? *left : *right;
}

struct linear_view {
  std::int64_t constant = 0;
  std::vector<linear_term> terms;
};

inline linear_view linear_of(const index_expr& e) {
  if (e.is_constant()) return {e.constant(), {}};
  if (e.op() == expr_op::sum) return {e.node()->value, e.node()->terms};
  return {0, {{1, e.node()}}};
}

inline expr_range add_ranges(expr_range a, expr_range b) {
  const auto side = [](std::int64_t x, std::int64_t y, std::int64_t infinite) {
    return x == infinite || y == infinite ? infinite : clamp_bound(static_cast<wide_int>(x) + y);
  };
  return {side(a.low, b.low, -unbounded), side(a.high, b.high, unbounded)};
}
inline expr_range multiply_ranges(expr_range a, expr_range b) {
  std::array<wide_int, 4> corners{static_cast<wide_int>(a.low) * b.low, static_cast<wide_int>(a.low) * b.high,
                                  static_cast<wide_int>(a.high) * b.low, static_cast<wide_int>(a.high) * b.high};
  wide_int low = corners[0];
  wide_int high = corners[0];
  for (const wide_int c : corners) low = c < low ? c : low, high = c > high ? c : high;
  return {clamp_bound(low), clamp_bound(high)};
}

DNNOPT_BODY void refuse_constant() { throw error(errc::unbound_symbol, "an expression is not a constant"); }

}  // namespace detail

DNNOPT_BODY void symbol_values::bind(std::uint32_t symbol, std::int64_t value) {
  if (symbol >= values_.size()) values_.resize(symbol + 1);
  values_[symbol] = value;
}
DNNOPT_BODY bool operator==(const symbol_values& a, const symbol_values& b) { return a.values_ == b.values_; }

DNNOPT_BODY expr_context::expr_context() = default;
DNNOPT_BODY expr_context::~expr_context() = default;

DNNOPT_BODY index_expr expr_context::symbol(std::string_view name, expr_range range, symbol_kind kind) {
  const std::lock_guard held(lock_);
  if (const auto found = by_name_.find(name); found != by_name_.end())
    return index_expr::from_node(symbols_[found->second].node);
  return add_symbol(name, range, kind);
}
DNNOPT_BODY index_expr expr_context::data_dim(std::string_view scope, std::size_t output, std::size_t axis,
                                              expr_range range) {
  const std::lock_guard held(lock_);
  data_dim_key key{std::string(scope), output, axis};
  if (const auto found = data_dims_.find(key); found != data_dims_.end())
    return index_expr::from_node(symbols_[found->second].node);
  const std::string name = key.scope + "." + std::to_string(output) + "." + std::to_string(axis);
  const index_expr made = by_name_.contains(name) ? add_fresh(name, range, symbol_kind::data_dim)
                                                  : add_symbol(name, range, symbol_kind::data_dim);
  data_dims_.emplace(std::move(key), *made.as_symbol());
  return made;
}
DNNOPT_BODY bool expr_context::is_data_dim(const index_expr& e, std::string_view scope, std::size_t output,
                                           std::size_t axis) const {
  if (!e.as_symbol() || e.kind() != symbol_kind::data_dim) return false;
  const std::lock_guard held(lock_);
  const auto found = data_dims_.find({std::string(scope), output, axis});
  return found != data_dims_.end() && symbols_[found->second].node == e.node();
}
DNNOPT_BODY index_expr expr_context::add_symbol(std::string_view name, expr_range range, symbol_kind kind) {
  const auto number = static_cast<std::uint32_t>(symbols_.size());
  detail::expr_node node;
  node.op = expr_op::symbol;
  node.kind = kind;
  node.value = number;
  node.range = range;
  const detail::expr_node* made = add(std::move(node));
  symbols_.push_back({std::string(name), made});
  by_name_.emplace(name, number);
  return index_expr::from_node(made);
}
DNNOPT_BODY index_expr expr_context::fresh(std::string_view prefix, expr_range range) {
  const std::lock_guard held(lock_);
  return add_fresh(prefix, range, symbol_kind::dim);
}
DNNOPT_BODY index_expr expr_context::add_fresh(std::string_view prefix, expr_range range, symbol_kind kind) {
  std::string name;
  do name = std::string(prefix) + "_" + std::to_string(fresh_++);
  while (by_name_.contains(name));
  return add_symbol(name, range, kind);
}
DNNOPT_BODY index_expr expr_context::symbol_at(std::uint32_t number) const {
  const std::lock_guard held(lock_);
  return index_expr::from_node(symbols_.at(number).node);
}
DNNOPT_BODY std::optional<std::uint32_t> expr_context::find(std::string_view name) const {
  const std::lock_guard held(lock_);
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? std::nullopt : std::optional(found->second);
}
DNNOPT_BODY std::size_t expr_context::symbol_count() const {
  const std::lock_guard held(lock_);
  return symbols_.size();
}
DNNOPT_BODY const std::string& expr_context::symbol_name(std::uint32_t number) const {
  const std::lock_guard held(lock_);
  return symbols_.at(number).name;
}

DNNOPT_BODY const detail::expr_node* expr_context::add(detail::expr_node node) {
  node.id = static_cast<std::uint32_t>(nodes_.size());
  node.owner = this;
  nodes_.push_back(std::make_unique<detail::expr_node>(std::move(node)));
  return nodes_.back().get();
}

DNNOPT_BODY std::size_t expr_context::hash_of(const detail::expr_node& node) {
  std::size_t h = static_cast<std::size_t>(node.op);
  const auto mix = [&h](std::size_t v) { h ^= v + 0x9e3779b97f4a7c15ULL + (h << 6U) + (h >> 2U); };
  mix(std::hash<std::int64_t>{}(node.value));
  for (const auto& t : node.terms) mix(std::hash<std::int64_t>{}(t.coefficient)), mix(std::hash<const void*>{}(t.atom));
  for (const auto* f : node.factors) mix(std::hash<const void*>{}(f));
  mix(std::hash<const void*>{}(node.left)), mix(std::hash<const void*>{}(node.right));
  mix(std::hash<std::int64_t>{}(node.left_constant)), mix(std::hash<std::int64_t>{}(node.right_constant));
  return h;
}

DNNOPT_BODY bool expr_context::same(const detail::expr_node& a, const detail::expr_node& b) {
  return a.op == b.op && a.value == b.value && a.terms == b.terms && a.factors == b.factors && a.left == b.left &&
         a.right == b.right && a.left_constant == b.left_constant && a.right_constant == b.right_constant;
}

DNNOPT_BODY const detail::expr_node* expr_context::intern(detail::expr_node node) {
  const std::size_t h = hash_of(node);
  const std::lock_guard held(lock_);
  const auto [first, last] = interned_.equal_range(h);
  for (auto it = first; it != last; ++it)
    if (same(*it->second, node)) return it->second;
  std::uint64_t size = 1;
  for (const auto& t : node.terms) size += t.atom->size;
  for (const auto* f : node.factors) size += f->size;
  size += node.left == nullptr ? 1 : node.left->size;
  size += node.right == nullptr ? 1 : node.right->size;
  node.size = static_cast<std::uint32_t>(std::min<std::uint64_t>(size, std::numeric_limits<std::uint32_t>::max()));
  const detail::expr_node* made = add(std::move(node));
  interned_.emplace(h, made);
  return made;
}

namespace detail {

/// Below 0, 0 or above it as `a` precedes, is or follows `b`, null before all else. Equal nodes are one node, so that
/// only the first difference is followed: O(depth).
DNNOPT_BODY int order_of(const expr_node* a, const expr_node* b) {
  if (a == b) return 0;
  if (a == nullptr || b == nullptr) return a == nullptr ? -1 : 1;
  const auto first = std::tie(a->op, a->value, a->left_constant, a->right_constant);
  const auto second = std::tie(b->op, b->value, b->left_constant, b->right_constant);
  if (first != second) return first < second ? -1 : 1;
  if (a->terms.size() != b->terms.size()) return a->terms.size() < b->terms.size() ? -1 : 1;
  if (a->factors.size() != b->factors.size()) return a->factors.size() < b->factors.size() ? -1 : 1;
  for (std::size_t i = 0; i < a->terms.size(); ++i) {
    if (const int order = order_of(a->terms[i].atom, b->terms[i].atom); order != 0) return order;
    if (a->terms[i].coefficient != b->terms[i].coefficient)
      return a->terms[i].coefficient < b->terms[i].coefficient ? -1 : 1;
  }
  for (std::size_t i = 0; i < a->factors.size(); ++i)
    if (const int order = order_of(a->factors[i], b->factors[i]); order != 0) return order;
  const int order = order_of(a->left, b->left);
  return order != 0 ? order : order_of(a->right, b->right);
}
DNNOPT_BODY bool precedes(const expr_node& a, const expr_node& b) { return order_of(&a, &b) < 0; }

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
  const expr_range y = b.range();
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

}  // namespace dnnopt

#endif  // DNNOPT_DETAIL_INDEX_EXPR_BODIES_HPP
