// Owns the bodies of <dnnopt/index_expr.hpp> that keep symbols and nodes: each once, and in one order.
#ifndef DNNOPT_DETAIL_INDEX_EXPR_SYMBOLS_HPP
#define DNNOPT_DETAIL_INDEX_EXPR_SYMBOLS_HPP

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

#include <dnnopt/error.hpp>
#include <dnnopt/index_expr.hpp>

namespace dnnopt {

namespace detail {

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
DNNOPT_BODY std::size_t expr_context::note_divisor(const index_expr& divisor) {
  const std::lock_guard held(lock_);
  const auto found = std::find(divisors_.begin(), divisors_.end(), divisor);
  const auto number = static_cast<std::size_t>(found - divisors_.begin());
  if (found == divisors_.end()) divisors_.push_back(divisor);
  return number;
}
DNNOPT_BODY std::vector<index_expr> expr_context::noted_divisors() const {
  const std::lock_guard held(lock_);
  return divisors_;
}
DNNOPT_BODY symbol_values expr_context::all_bound_to(std::int64_t value) const {
  symbol_values values;
  for (auto number = static_cast<std::uint32_t>(symbol_count()); number-- > 0;) values.bind(number, value);
  return values;
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

}  // namespace detail

}  // namespace dnnopt

#endif  // DNNOPT_DETAIL_INDEX_EXPR_SYMBOLS_HPP
