// Owns what an OpenCL event's START to END has too much: of commands that were there, and of those waited for.
#ifndef DNNOPT_PROFILE_EVENT_BIAS_HPP
#define DNNOPT_PROFILE_EVENT_BIAS_HPP

#include <algorithm>
#include <cstdint>
#include <optional>

#include <dnnopt/profile/host_clock.hpp>

namespace dnnopt::profile {

/// When a command begins that the device waits for: START is stamped when its first part has arrived, and it runs when
/// the enqueue call has handed over the last one. The delay from call to END holds for the offset of the clocks that it
/// was measured with, which no enqueue tells to a microsecond; so that offset is kept beside it.
struct event_arrival {
  double after_call_ns = 0.0;  ///< from the call's return to END, the command's execution taken off
  host_clock_anchor anchor{};  ///< the host's clocks at a moment
  std::int64_t device_ns = 0;  ///< and the device's at the same moment
};

/// What an event's START to END has too much, in nanoseconds; zeros where events cost nothing.
struct event_bias {
  double busy_ns = 0.0;     ///< of a command that was there when the one before it ended
  double starved_ns = 0.0;  ///< of one that the device had to wait for; never less than busy_ns
  double pause_ns = 0.0;    ///< from END to START of two commands that were there; more means that the device waited
  double deep_ns = 0.0;     ///< of a command that was there and had `depth` commands or more behind it when it ended
  std::int32_t depth = 0;   ///< 0 where what is behind a command makes no difference
  double launch_ns = 0.0;   ///< an empty kernel's slope, which the figures above were measured with
  /// Tells each command's part where the device's clock is one of the host's clocks and a constant.
  std::optional<event_arrival> arrival{};

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
  /// The part of an event of `whole` nanoseconds from START to END whose enqueue call returned `late` nanoseconds after
  /// START (negative: before it), by the offset of the clocks that `arrival` has. Where a call returned when the
  /// command had already run, the host was interrupted on its way back, and the pause decides.
  /// @pre arrival is not empty.
  [[nodiscard]] constexpr double of(double whole, double pause, std::int32_t behind, double late) const noexcept {
    const double waited = late + arrival->after_call_ns;
    // A call's return varies, so that a short kernel may seem to end before it began.
    if (waited > whole + 0.25 * starved_ns) return of(pause, behind);
    return std::max(waited, present(behind));
  }
  /// Whether `part`, which `of` answered, is that of a command that the device waited for.
  [[nodiscard]] constexpr bool waited(double part) const noexcept { return part > std::max(busy_ns, deep_ns) + 1.0; }

 private:
  /// The part of a command that was there when the one before it ended.
  [[nodiscard]] constexpr double present(std::int32_t behind) const noexcept {
    return deep(behind) ? deep_ns : busy_ns;
  }
};

/// What is left of an event's START to END in nanoseconds when its own part is taken off: never less than a tenth or
/// half a microsecond, for something ran. On a busy device this holds for kernels far shorter than the event's own
/// part.
[[nodiscard]] constexpr double without_bias(double whole_ns, double bias_ns) noexcept {
  return std::max(whole_ns - bias_ns, std::min(0.1 * whole_ns, 500.0));
}

}  // namespace dnnopt::profile

#endif  // DNNOPT_PROFILE_EVENT_BIAS_HPP
