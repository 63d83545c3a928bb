// Owns the row-major offset of an index: quotients and remainders by dims, of known sizes or not, meet again in it.
#ifndef DNNOPT_ROW_MAJOR_HPP
#define DNNOPT_ROW_MAJOR_HPP

#include <cstddef>
#include <optional>
#include <span>

#include <dnnopt/index_expr.hpp>
#include <dnnopt/shape.hpp>

namespace dnnopt {

namespace detail {

/// q floordiv d for d > 0 in one form: (x floordiv b) floordiv d is x floordiv (b * d).
[[nodiscard]] inline index_expr nested_quotient(const index_expr& q, const index_expr& d) {
  if (q.op() != expr_op::floordiv) return floordiv(q, d);
  const expr_node& n = *q.node();
  return floordiv(index_expr::from_node(n.left, n.left_constant), index_expr::from_node(n.right, n.right_constant) * d);
}

/// q where `e` is q mod d.
[[nodiscard]] inline std::optional<index_expr> remainder_of(const index_expr& e, const index_expr& d) {
  if (e.op() != expr_op::mod) return std::nullopt;
  const expr_node& n = *e.node();
  if (!(index_expr::from_node(n.right, n.right_constant) == d)) return std::nullopt;
  return index_expr::from_node(n.left, n.left_constant);
}

/// inner + d * outer where `inner` is q mod d, for d > 0: q where `outer` is q floordiv d, and q mod (d * extent) where
/// `outer` is that mod `extent` > 0; and d * rest more where `outer` is either with a `rest` added to it, as an element
/// of what was padded or cropped has. Nothing where they are no digits of one number.
[[nodiscard]] inline std::optional<index_expr> joined_digits(const index_expr& inner, const index_expr& d,
                                                             const index_expr& outer, const index_expr& extent) {
  const std::optional<index_expr> q = remainder_of(inner, d);
  if (!q) return std::nullopt;
  const auto is_quotient = [&](const index_expr& e) { return e == nested_quotient(*q, d) || e == floordiv(*q, d); };
  const auto joined = [&](const index_expr& next) -> std::optional<index_expr> {
    if (is_quotient(next)) return *q;
    const std::optional<index_expr> digit = remainder_of(next, extent);
    return digit && is_quotient(*digit) ? std::optional(mod(*q, d * extent)) : std::nullopt;
  };
  if (outer.op() != expr_op::sum) return joined(outer);
  for (const linear_term& term : outer.node()->terms) {
    if (term.coefficient != 1) continue;
    const index_expr next = index_expr::from_node(term.atom);
    if (const auto whole = joined(next)) return *whole + d * (outer - next);
  }
  return std::nullopt;
}

}  // namespace detail

/// The row-major offset of the element of a tensor of dims `dims` at `index`. There is such an element, so that no dim
/// is 0: what index_expr, which knows no more of a symbol than its range, must leave apart becomes one number here, as
/// in x mod w + w * ((x floordiv w) mod h), which is x mod (w * h). Where `index` is that of an offset, the result is
/// that offset, and costs no division; where its outermost entry is moved, that offset is moved. (A compiler would find
/// out that neighbours follow each other too, also behind a test, and PoCL's does it wrongly there: of a vector it
/// takes the place of the first work-item, whose division stands behind the test that it failed.) Precondition: `index`
/// has as many entries as `dims`. O(rank) expressions.
[[nodiscard]] inline index_expr row_major_offset(std::span<const index_expr> dims, std::span<const index_expr> index) {
  // Where all sizes are known, sums do the same.
  const bool joins = !is_static(shape(dims.begin(), dims.end()));
  index_expr offset = 0;
  index_expr stride = 1;
  // The dims taken in last, of which the offset is one number: that, their elements, and the stride of the innermost.
  index_expr run = 0;
  index_expr extent = 1;
  index_expr below = 1;
  for (std::size_t k = dims.size(); k-- > 0;) {
    if (dims[k] == index_expr(1)) continue;
    const auto joined = joins ? detail::joined_digits(run, extent, index[k], dims[k]) : std::nullopt;
    if (joined) {
      run = *joined;
      extent *= dims[k];
    } else {
      offset += run * below;
      run = index[k];
      extent = dims[k];
      below = stride;
    }
    stride *= dims[k];
  }
  return offset + run * below;
}

}  // namespace dnnopt

#endif  // DNNOPT_ROW_MAJOR_HPP
