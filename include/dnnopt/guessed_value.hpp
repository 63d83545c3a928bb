// Owns the values of expressions under sizes that nobody asked for.
#ifndef DNNOPT_GUESSED_VALUE_HPP
#define DNNOPT_GUESSED_VALUE_HPP

#include <cstdint>
#include <optional>

#include <dnnopt/error.hpp>
#include <dnnopt/index_expr.hpp>

namespace dnnopt {

/// The value of `e` under guessed sizes, which plans are compared by: nothing where a symbol is unbound, a divisor is
/// 0, or the value exceeds 64 bits. Sizes of a network need not fit together under a guess (a window of a window of an
/// image, all of the same side), and what a guess makes of them must not refuse it.
[[nodiscard]] inline std::optional<std::int64_t> guessed_value(const index_expr& e, const symbol_values& guess) {
  try {
    return e.try_evaluate(guess);
  } catch (const error& failure) {
    if (failure.code() != errc::overflow) throw;
    return std::nullopt;
  }
}

}  // namespace dnnopt

#endif  // DNNOPT_GUESSED_VALUE_HPP
