// Owns exact quotients: what numbers of floating point stand for that are computed of integers, as sizes often are.
#ifndef DNNOPT_OPS_EXACT_QUOTIENT_HPP
#define DNNOPT_OPS_EXACT_QUOTIENT_HPP

#include <cstdint>
#include <numeric>
#include <optional>

#include <dnnopt/index_expr.hpp>

namespace dnnopt {

/// numerator / divisor, which floating point holds rounded. Where the divisor is a power of two it is exact as long as
/// the numerator is within the type's digits. Else each operation may round once, and then nothing lies on the other
/// side of an integer as long as numerators are well below these digits: two such numbers, or one and an integer,
/// differ by 1 / divisor at least.
struct exact_quotient {
  index_expr numerator = 0;
  std::int64_t divisor = 1;  ///< positive
  int rounded = 0;           ///< operations that may have rounded
};

/// The largest divisor, and the most operations that round: what is beyond is not followed.
inline constexpr std::int64_t largest_divisor = 1024;
inline constexpr int most_rounded = 6;

[[nodiscard]] inline bool is_exact(const exact_quotient& q) noexcept { return (q.divisor & (q.divisor - 1)) == 0; }

/// The same with a divisor that is a multiple of its own.
[[nodiscard]] inline exact_quotient with_divisor(const exact_quotient& q, std::int64_t divisor) {
  return {q.numerator * (divisor / q.divisor), divisor, q.rounded};
}

/// What `by(numerator, numerator)` makes of two over their common divisor; nothing where that is too large, or where
/// both were rounded.
template <class By>
[[nodiscard]] std::optional<exact_quotient> combined(const exact_quotient& a, const exact_quotient& b, By&& by) {
  const std::int64_t divisor = std::lcm(a.divisor, b.divisor);
  if (divisor > largest_divisor || (!is_exact(a) && b.divisor != 1) || (!is_exact(b) && a.divisor != 1))
    return std::nullopt;
  exact_quotient result{by(with_divisor(a, divisor).numerator, with_divisor(b, divisor).numerator), divisor,
                        a.rounded + b.rounded};
  if (!is_exact(result) && ++result.rounded > most_rounded) return std::nullopt;
  return result;
}

/// The product; nothing where a factor was rounded, for then it may come to lie on the other side of an integer.
[[nodiscard]] inline std::optional<exact_quotient> product(const exact_quotient& a, const exact_quotient& b) {
  if (!is_exact(a) || !is_exact(b) || a.divisor * b.divisor > largest_divisor) return std::nullopt;
  return exact_quotient{a.numerator * b.numerator, a.divisor * b.divisor, 0};
}

/// The quotient by a positive number; nothing for other divisors, and where the dividend was rounded.
[[nodiscard]] inline std::optional<exact_quotient> divided(const exact_quotient& a, const exact_quotient& b) {
  const auto by = b.numerator.as_constant();
  if (!by || *by <= 0 || *by > largest_divisor || !is_exact(a) || !is_exact(b)) return std::nullopt;
  const std::int64_t shared = std::gcd(b.divisor, a.divisor * *by);
  const std::int64_t divisor = a.divisor * *by / shared;
  if (divisor > largest_divisor) return std::nullopt;
  exact_quotient result{a.numerator * (b.divisor / shared), divisor, 0};
  if (!is_exact(result)) result.rounded = 1;
  return result;
}

}  // namespace dnnopt

#endif  // DNNOPT_OPS_EXACT_QUOTIENT_HPP
