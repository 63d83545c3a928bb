// Owns symbolic shapes: dims as index expressions, broadcasting and printing of dims.
#ifndef DNNOPT_SHAPE_HPP
#define DNNOPT_SHAPE_HPP

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <dnnopt/detail/implementation.hpp>
#include <dnnopt/error.hpp>
#include <dnnopt/index_expr.hpp>
#include <dnnopt/index_expr_io.hpp>

namespace dnnopt {

/// Dims, outermost first. A tensor of unknown rank has no shape (std::optional<shape>); a dim that nothing tells is a
/// fresh symbol, so arithmetic on it stays an expression.
using shape = std::vector<index_expr>;

/// The product of dims; 1 for rank 0. Errors: overflow where constants leave 64 bits.
[[nodiscard]] index_expr element_count(const shape& dims);

/// Whether every dim is a constant.
[[nodiscard]] inline bool is_static(const shape& dims) {
  for (const index_expr& dim : dims)
    if (!dim.is_constant()) return false;
  return true;
}

/// The dims as numbers, or nothing where one is symbolic.
[[nodiscard]] std::optional<std::vector<std::int64_t>> static_dims(const shape& dims);

/// A shape of constants.
[[nodiscard]] shape to_shape(std::span<const std::int64_t> dims);

/// The dims under bindings. Errors: as index_expr::evaluate; invalid_argument for a negative dim.
[[nodiscard]] std::vector<std::int64_t> evaluate(const shape& dims, const symbol_values& values);

/// "[batch, 3, 224, 224]".
[[nodiscard]] std::string to_string(const shape& dims);

/// One dim of ONNX's multidirectional broadcasting. Where neither dim is known to be 1, equal dims stay; of two
/// different symbolic dims the result is an expression that is right for every legal binding: their maximum, or 0 where
/// one of them is 0 (beside 1).
/// Errors: shape_mismatch for two different constants that both exceed 1.
[[nodiscard]] index_expr broadcast_dim(const index_expr& a, const index_expr& b);

/// ONNX's multidirectional broadcasting. Errors: shape_mismatch naming both shapes.
[[nodiscard]] shape broadcast(const shape& a, const shape& b);

/// An axis counted from the end where negative. Errors: invalid_argument outside [-rank, rank).
[[nodiscard]] std::size_t normalize_axis(std::int64_t axis, std::size_t rank);

#if DNNOPT_IMPLEMENT_GRAPH
DNNOPT_BODY index_expr element_count(const shape& dims) {
  index_expr count = 1;
  for (const index_expr& dim : dims)
    if (dim == index_expr(0)) return 0;
  for (const index_expr& dim : dims) count *= dim;
  return count;
}

DNNOPT_BODY std::optional<std::vector<std::int64_t>> static_dims(const shape& dims) {
  std::vector<std::int64_t> result;
  for (const index_expr& dim : dims) {
    if (!dim.is_constant()) return std::nullopt;
    result.push_back(dim.constant());
  }
  return result;
}

DNNOPT_BODY shape to_shape(std::span<const std::int64_t> dims) { return shape(dims.begin(), dims.end()); }

DNNOPT_BODY std::vector<std::int64_t> evaluate(const shape& dims, const symbol_values& values) {
  std::vector<std::int64_t> result;
  result.reserve(dims.size());
  for (const index_expr& dim : dims) {
    result.push_back(dim.evaluate(values));
    if (result.back() < 0)
      throw error(errc::invalid_argument, "dim " + to_string(dim) + " evaluates to " + std::to_string(result.back()));
  }
  return result;
}

DNNOPT_BODY std::string to_string(const shape& dims) {
  std::string text = "[";
  for (std::size_t i = 0; i < dims.size(); ++i) text += (i == 0 ? "" : ", ") + to_string(dims[i]);
  return text + "]";
}

namespace detail {

/// The operands of nested `op` (min or max), without constants, in the order of their nodes.
inline void operands_of(const index_expr& e, expr_op op, std::vector<index_expr>& operands) {
  if (e.op() != op) {
    if (!e.is_constant()) operands.push_back(e);
    return;
  }
  operands_of(index_expr::from_node(e.node()->left, e.node()->left_constant), op, operands);
  operands_of(index_expr::from_node(e.node()->right, e.node()->right_constant), op, operands);
}

/// The dims that a symbolic dim was broadcast from, as broadcast_dim writes them; the dim itself where it was not.
[[nodiscard]] inline std::vector<index_expr> broadcast_parts(const index_expr& dim) {
  std::vector<index_expr> parts;
  if (dim.op() == expr_op::max) {
    operands_of(dim, expr_op::max, parts);
    for (const index_expr& part : parts)
      if (part.range().low < 1) return {dim};
    return parts;
  }
  if (dim.op() != expr_op::product || dim.node()->factors.size() != 2) return {dim};
  std::vector<index_expr> least;
  for (const expr_node* factor : dim.node()->factors) {
    const index_expr e = index_expr::from_node(factor);
    if (e.op() == expr_op::max) operands_of(e, expr_op::max, parts);
    if (e.op() == expr_op::min) operands_of(e, expr_op::min, least);
  }
  const auto by_node = [](const index_expr& x, const index_expr& y) { return x.node()->id < y.node()->id; };
  std::sort(parts.begin(), parts.end(), by_node);
  std::sort(least.begin(), least.end(), by_node);
  return parts.size() > 1 && parts == least ? parts : std::vector<index_expr>{dim};
}

/// Whether `dim` is `whole` cut to limits of which none is 0: never more than it, and 0 only where it is.
[[nodiscard]] inline bool is_cut(const index_expr& dim, const index_expr& whole) {
  if (dim.op() != expr_op::min) return false;
  bool holds_whole = false;
  std::vector<index_expr> left{dim};
  while (!left.empty()) {
    const index_expr e = left.back();
    left.pop_back();
    if (e == whole) {
      holds_whole = true;
    } else if (e.op() == expr_op::min) {
      left.push_back(index_expr::from_node(e.node()->left, e.node()->left_constant));
      left.push_back(index_expr::from_node(e.node()->right, e.node()->right_constant));
    } else if (e.range().low < 1) {
      return false;
    }
  }
  return holds_whole;
}

}  // namespace detail

DNNOPT_BODY index_expr broadcast_dim(const index_expr& a, const index_expr& b) {
  if (a == b) return a;
  if (a == index_expr(1)) return b;
  if (b == index_expr(1)) return a;
  if (a.is_constant() && b.is_constant())
    throw error(errc::shape_mismatch, "dims " + to_string(a) + " and " + to_string(b) + " do not broadcast");
  // A constant beyond 1 decides: the other dim must be 1 or equal to it.
  if (a.is_constant() && a.constant() > 1) return a;
  if (b.is_constant() && b.constant() > 1) return b;
  if (a.is_constant() || b.is_constant()) return 0;
  // A dim that is cut short, such as positions up to a table's end: where the two are lawful it is the other or 1.
  if (detail::is_cut(b, a)) return a;
  if (detail::is_cut(a, b)) return b;
  // Broadcasting is associative, commutative and idempotent: one expression for each set of dims.
  std::vector<index_expr> parts = detail::broadcast_parts(a);
  for (const index_expr& part : detail::broadcast_parts(b))
    if (std::find(parts.begin(), parts.end(), part) == parts.end()) parts.push_back(part);
  std::sort(parts.begin(), parts.end(),
            [](const index_expr& x, const index_expr& y) { return x.node()->id < y.node()->id; });
  index_expr most = parts.front();
  index_expr least = parts.front();
  for (std::size_t i = 1; i < parts.size(); ++i) most = max(most, parts[i]), least = min(least, parts[i]);
  return most * min(least, 1);
}

DNNOPT_BODY shape broadcast(const shape& a, const shape& b) {
  const shape& longer = a.size() >= b.size() ? a : b;
  const shape& shorter = a.size() >= b.size() ? b : a;
  shape result = longer;
  const std::size_t offset = longer.size() - shorter.size();
  try {
    for (std::size_t i = 0; i < shorter.size(); ++i) result[offset + i] = broadcast_dim(longer[offset + i], shorter[i]);
  } catch (const error& e) {
    if (e.code() != errc::shape_mismatch) throw;
    throw error(errc::shape_mismatch, "shapes " + to_string(a) + " and " + to_string(b) + " do not broadcast");
  }
  return result;
}

DNNOPT_BODY std::size_t normalize_axis(std::int64_t axis, std::size_t rank) {
  const std::int64_t r = static_cast<std::int64_t>(rank);
  if (axis < -r || axis >= r)
    throw error(errc::invalid_argument, "axis " + std::to_string(axis) + " is outside rank " + std::to_string(rank));
  return static_cast<std::size_t>(axis < 0 ? axis + r : axis);
}
#endif

}  // namespace dnnopt

#endif  // DNNOPT_SHAPE_HPP
