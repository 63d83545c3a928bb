// Owns the ways in which a first start may compile kernels that no cache has.
#ifndef DNNOPT_FIRST_START_HPP
#define DNNOPT_FIRST_START_HPP

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace dnnopt {

/// What kernels that are in no cache are compiled as: `optimized` makes the caller wait for the driver's optimizer;
/// `quick` leaves it out (-cl-opt-disable), so that the first inferences come soon and are slow, while a thread
/// compiles the optimized kernels, which take over between two inferences. The two may differ in the last bits of
/// results, because an optimizer may contract a product and a sum into one operation.
enum class first_start : std::uint8_t { optimized, quick };

/// "optimized" or "quick".
[[nodiscard]] constexpr std::string_view name_of(first_start way) noexcept {
  constexpr std::string_view names[] = {"optimized", "quick"};
  return names[static_cast<unsigned>(way)];
}

/// The way of that name; nothing for other names.
[[nodiscard]] constexpr std::optional<first_start> find_first_start(std::string_view name) noexcept {
  for (const first_start one : {first_start::optimized, first_start::quick})
    if (name_of(one) == name) return one;
  return std::nullopt;
}

/// How far a session is from optimized kernels alone.
struct optimizing_state {
  std::size_t ready = 0;  ///< kernels that are compiled
  std::size_t all = 0;    ///< kernels that a thread compiles, or has compiled; 0 where none had to be quick
  bool done = true;       ///< the next inference runs on optimized kernels, as far as there are any
  std::string failure{};  ///< why quick kernels stay; empty where none do
};

}  // namespace dnnopt

#endif  // DNNOPT_FIRST_START_HPP
