// Owns what an OpenCL event's START to END has too much: of commands that were there, and of those waited for.
#ifndef DNNOPT_PROFILE_WAITING_EVENT_BIAS_HPP
#define DNNOPT_PROFILE_WAITING_EVENT_BIAS_HPP

#include <algorithm>
#include <cstdint>
#include <optional>

namespace dnnopt::profile {

/// What an event's START to END has too much, in nanoseconds; zeros where events cost nothing.
struct event_bias {
  double busy_ns = 0.0;     ///< of a command that was there when the one before it ended
  double starved_ns = 0.0;  ///< of one that the device had to wait for; never less than busy_ns
  double pause_ns = 0.0;    ///< from END to START of two commands that were there; more means that the device waited
  double deep_ns = 0.0;     ///< of a command that was there and had `depth` commands or more behind it when it ended
  std::int32_t depth = 0;   ///< 0 where what is behind a command makes no difference
  double launch_ns = 0.0;   ///< an empty kernel's slope, which the figures above were measured with
  /// From START of a command with `starved_ns` to the return of its enqueue call, and from such a return to END of an
  /// empty kernel, both by the clocks as they are: their offset is in one of the two as much as it is missing in the
  /// other. Empty where it was not certain.
  std::optional<double> arrival_ns{};

  /// Whether the device had waited for a command that started `pause` nanoseconds after the one before it had ended;
  /// not known where negative. A pause varies by some percent; beyond a quarter nothing but waiting was seen.
  [[nodiscard]] constexpr bool starved(double pause) const noexcept {
    return starved_ns > busy_ns && pause > 1.25 * pause_ns;
  }
  /// Whether a command with `behind` commands behind it counts as deep in the queue; not known where negative.
  [[nodiscard]] constexpr bool deep(std::int32_t behind) const noexcept { return depth > 0 && behind >= depth; }
  /// The part of an event after a pause of `pause` nanoseconds, with `behind` commands behind it.
  [[nodiscard]] constexpr double of(double pause, std::int32_t behind = -1) const noexcept {
    return starved(pause) ? starved_ns : present(behind);
  }
  /// The part of a command that was there when the one before it ended.
  [[nodiscard]] constexpr double present(std::int32_t behind) const noexcept {
    return deep(behind) ? deep_ns : busy_ns;
  }
  /// Whether `part`, which was taken off, is that of a command that the device waited for.
  [[nodiscard]] constexpr bool waited(double part) const noexcept { return part > std::max(busy_ns, deep_ns) + 1.0; }
};

/// What is left of an event's START to END in nanoseconds when its own part is taken off: never less than a tenth or
/// half a microsecond, for something ran. On a busy device this holds for kernels far shorter than the event's own
/// part.
[[nodiscard]] constexpr double without_bias(double whole_ns, double bias_ns) noexcept {
  return std::max(whole_ns - bias_ns, std::min(0.1 * whole_ns, 500.0));
}

}  // namespace dnnopt::profile

#endif  // DNNOPT_PROFILE_WAITING_EVENT_BIAS_HPP
