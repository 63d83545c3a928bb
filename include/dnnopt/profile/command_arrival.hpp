// Owns when a command began that the device had to wait for.
#ifndef DNNOPT_PROFILE_COMMAND_ARRIVAL_HPP
#define DNNOPT_PROFILE_COMMAND_ARRIVAL_HPP

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include <dnnopt/profile/event_bias.hpp>
#include <dnnopt/profile/events.hpp>

namespace dnnopt::profile {

/// Tells commands that the device waited for apart from each other: START is stamped when a command's first part has
/// arrived, and it runs when its enqueue call has handed over the last one. So the later the call returned after START,
/// the more of START to END is waiting, nanosecond for nanosecond; `event_bias::starved_ns` is what holds for the usual
/// one. No enqueue tells the offset of the clocks to a microsecond, but an empty kernel that the device waits for
/// ENDs a fixed time after its call has returned: seen now and then (`probe`), it tells how late is usual, and several
/// tell how fast the clocks drift apart meanwhile. Where none is seen, what was usual among the last commands stands
/// for it, which errs where calls have become slower; commands of long ago say nothing, for the clocks have drifted.
/// Used from one thread.
class command_arrival {
 public:
  /// Takes an empty kernel that the device had waited for: when its call returned and its END, unwrapped. Constant
  /// time.
  void probe(std::int64_t host_end_ns, std::int64_t end_ns) noexcept {
    probes_[probed_++ % probes_.size()] = {host_end_ns, end_ns - host_end_ns};
    if (probed_ >= probes_.size()) drift_ = drift();
  }

  /// What the event of command `of` has too much, its stamps unwrapped. By the pause alone where too few commands were
  /// waited for lately and no probe was seen, and where the call returned after the command had run: the host was
  /// interrupted then. Constant time.
  [[nodiscard]] double part(const event_bias& bias, const raw_event& of) {
    const double by_pause = bias.of(static_cast<double>(of.pause_ns), of.behind);
    if (bias.starved_ns <= bias.busy_ns) return by_pause;
    const std::optional<double> later = later_than_usual(bias, of);
    if (!later) return by_pause;
    const double waited = bias.starved_ns + *later;
    // A call's return varies, so that a short kernel may seem to end before it began.
    if (waited > static_cast<double>(of.end_ns - of.start_ns) + 0.25 * bias.starved_ns) return by_pause;
    return std::max(waited, bias.present(of.behind));
  }

 private:
  [[nodiscard]] std::optional<double> later_than_usual(const event_bias& bias, const raw_event& of) {
    if (bias.arrival_ns && probed_ > 0) {
      const seen_probe& last = probes_[(probed_ - 1) % probes_.size()];
      return static_cast<double>(of.host_end_ns - of.start_ns + last.ahead_ns) +
             drift_ * static_cast<double>(of.host_end_ns - last.host_ns) - *bias.arrival_ns;
    }
    if (of.host_end_ns - newest_ns_ > longest_idle_ns) seen_ = 0;
    newest_ns_ = of.host_end_ns;
    if (seen_ == 0) offset_ns_ = of.host_end_ns - of.start_ns;
    const double late = static_cast<double>(of.host_end_ns - of.start_ns - offset_ns_);
    // Pauses up to twice the usual are of commands that were nearly in time.
    if (static_cast<double>(of.pause_ns) > 2.0 * bias.pause_ns) lates_[seen_++ % lates_.size()] = late;
    if (seen_ < least) return std::nullopt;
    return late - usual();
  }

  struct seen_probe {
    std::int64_t host_ns = 0;
    std::int64_t ahead_ns = 0;  // of the device's clock, and the kernel's own part
  };

  /// What `ahead_ns` gains in a nanosecond: the median of pairs that are half of the probes kept apart, for single
  /// probes are a quarter of a microsecond off.
  [[nodiscard]] double drift() const noexcept {
    std::array<double, kept_probes / 2> slopes{};
    for (std::size_t i = 0; i < slopes.size(); ++i) {
      const seen_probe& first = probes_[(probed_ + i) % probes_.size()];
      const seen_probe& second = probes_[(probed_ + i + slopes.size()) % probes_.size()];
      const std::int64_t between = second.host_ns - first.host_ns;
      slopes[i] =
          between <= 0 ? 0.0 : static_cast<double>(second.ahead_ns - first.ahead_ns) / static_cast<double>(between);
    }
    const auto middle = slopes.begin() + slopes.size() / 2;
    std::nth_element(slopes.begin(), middle, slopes.end());
    return *middle;
  }

  static constexpr std::size_t kept_probes = 16;
  static constexpr std::size_t least = 16;
  static constexpr std::size_t most = 65;  // some inferences' worth: device and host clocks drift apart
  /// Longer without a command, as between monitor's samples, and the clocks may be a microsecond further apart.
  static constexpr std::int64_t longest_idle_ns = 20'000'000;

  [[nodiscard]] double usual() const {
    std::array<double, most> sorted = lates_;
    const auto end = sorted.begin() + static_cast<std::ptrdiff_t>(std::min(seen_, most));
    const auto middle = sorted.begin() + (end - sorted.begin()) / 2;
    std::nth_element(sorted.begin(), middle, end);
    return *middle;
  }

  std::array<seen_probe, kept_probes> probes_{};
  std::size_t probed_ = 0;
  double drift_ = 0.0;
  std::int64_t newest_ns_ = 0;
  std::int64_t offset_ns_ = 0;  // of the clocks, roughly: a double has no nanoseconds since 1970
  std::array<double, most> lates_{};
  std::size_t seen_ = 0;
};

}  // namespace dnnopt::profile

#endif  // DNNOPT_PROFILE_COMMAND_ARRIVAL_HPP
