// Owns which symbols an expression is made of.
#ifndef DNNOPT_EXPR_SYMBOLS_HPP
#define DNNOPT_EXPR_SYMBOLS_HPP

#include <cstdint>
#include <set>
#include <unordered_set>

#include <dnnopt/index_expr.hpp>

namespace dnnopt {

namespace detail {

inline void collect_symbols_of(const expr_node* n, std::set<std::uint32_t>& into,
                               std::unordered_set<const expr_node*>& seen) {
  if (n == nullptr || !seen.insert(n).second) return;
  if (n->op == expr_op::symbol) into.insert(static_cast<std::uint32_t>(n->value));
  for (const linear_term& t : n->terms) collect_symbols_of(t.atom, into, seen);
  for (const expr_node* f : n->factors) collect_symbols_of(f, into, seen);
  collect_symbols_of(n->left, into, seen);
  collect_symbols_of(n->right, into, seen);
}

}  // namespace detail

/// Adds the numbers of the symbols in `e`, of its context, to `into`. O(nodes of the expression, shared ones once).
inline void collect_symbols(const index_expr& e, std::set<std::uint32_t>& into) {
  std::unordered_set<const detail::expr_node*> seen;
  detail::collect_symbols_of(e.node(), into, seen);
}

/// The numbers of the symbols in `e`, of its context; none for a constant.
[[nodiscard]] inline std::set<std::uint32_t> symbols_of(const index_expr& e) {
  std::set<std::uint32_t> symbols;
  collect_symbols(e, symbols);
  return symbols;
}

}  // namespace dnnopt

#endif  // DNNOPT_EXPR_SYMBOLS_HPP
