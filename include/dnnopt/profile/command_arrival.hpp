// Owns when a command began that the device had to wait for.
#ifndef DNNOPT_PROFILE_COMMAND_ARRIVAL_HPP
#define DNNOPT_PROFILE_COMMAND_ARRIVAL_HPP

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include <dnnopt/profile/event_bias.hpp>

namespace dnnopt::profile {

/// Tells commands that the device waited for apart from each other: START is stamped when a command's first part has
/// arrived, and it runs when its enqueue call has handed over the last one. So the later the call returned after START,
/// the more of START to END is waiting, nanosecond for nanosecond; `event_bias::starved_ns` is what holds for the usual
/// one. How late is usual is followed here, for no enqueue tells the offset of the clocks to a microsecond. Used from
/// one thread.
class command_arrival {
 public:
  /// What the event of a command has too much that took `whole` nanoseconds from START to END, STARTed `pause`
  /// nanoseconds after the one before it had ended (negative: not known), had `behind` commands behind it, and whose
  /// enqueue call returned `late` nanoseconds after START, negative where before it. By the pause alone where too few
  /// commands were waited for, and where the call returned after the command had run: the host was interrupted then.
  [[nodiscard]] double part(const event_bias& bias, double whole, double pause, std::int32_t behind, double late) {
    if (bias.starved_ns <= bias.busy_ns) return bias.of(pause, behind);
    // Pauses up to twice the usual are of commands that were nearly in time.
    if (pause > 2.0 * bias.pause_ns) lates_[seen_++ % lates_.size()] = late;
    if (seen_ < least) return bias.of(pause, behind);
    const double waited = bias.starved_ns + late - usual();
    // A call's return varies, so that a short kernel may seem to end before it began.
    if (waited > whole + 0.25 * bias.starved_ns) return bias.of(pause, behind);
    return std::max(waited, bias.present(behind));
  }

 private:
  static constexpr std::size_t least = 16;
  static constexpr std::size_t most = 65;  // some inferences' worth: device and host clocks drift apart

  [[nodiscard]] double usual() const {
    std::array<double, most> sorted = lates_;
    const auto end = sorted.begin() + static_cast<std::ptrdiff_t>(std::min(seen_, most));
    const auto middle = sorted.begin() + (end - sorted.begin()) / 2;
    std::nth_element(sorted.begin(), middle, end);
    return *middle;
  }

  std::array<double, most> lates_{};
  std::size_t seen_ = 0;
};

}  // namespace dnnopt::profile

#endif  // DNNOPT_PROFILE_COMMAND_ARRIVAL_HPP
