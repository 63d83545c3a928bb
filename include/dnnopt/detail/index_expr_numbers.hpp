// Owns what the bodies of <dnnopt/index_expr.hpp> share: arithmetic that does not overflow, bounds, and sums as terms.
#ifndef DNNOPT_DETAIL_INDEX_EXPR_NUMBERS_HPP
#define DNNOPT_DETAIL_INDEX_EXPR_NUMBERS_HPP

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <dnnopt/error.hpp>
#include <dnnopt/index_expr.hpp>

namespace dnnopt::detail {

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

}  // namespace dnnopt::detail

#endif  // DNNOPT_DETAIL_INDEX_EXPR_NUMBERS_HPP
