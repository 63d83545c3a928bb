// Owns which symbols an expression is made of.
#ifndef DNNOPT_EXPR_SYMBOLS_HPP
#define DNNOPT_EXPR_SYMBOLS_HPP

#include <cstdint>
#include <set>

#include <dnnopt/index_expr.hpp>

namespace dnnopt {

/// Adds the numbers of the symbols in `e`, of its context, to `into`. O(size of the expression).
inline void collect_symbols(const index_expr& e, std::set<std::uint32_t>& into) {
  if (e.is_constant()) return;
  (void)substitute(e, [&](const index_expr& symbol) {
    into.insert(*symbol.as_symbol());
    return symbol;
  });
}

/// The numbers of the symbols in `e`, of its context; none for a constant.
[[nodiscard]] inline std::set<std::uint32_t> symbols_of(const index_expr& e) {
  std::set<std::uint32_t> symbols;
  collect_symbols(e, symbols);
  return symbols;
}

}  // namespace dnnopt

#endif  // DNNOPT_EXPR_SYMBOLS_HPP
