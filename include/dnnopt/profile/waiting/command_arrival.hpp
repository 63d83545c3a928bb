// Owns when a command began that the device had to wait for, and how well that is known.
#ifndef DNNOPT_PROFILE_WAITING_COMMAND_ARRIVAL_HPP
#define DNNOPT_PROFILE_WAITING_COMMAND_ARRIVAL_HPP

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>

#include <dnnopt/profile/events.hpp>
#include <dnnopt/profile/statistics.hpp>
#include <dnnopt/profile/waiting/event_bias.hpp>
#include <dnnopt/profile/waiting/waiting_fit.hpp>

namespace dnnopt::profile {

/// What is told of a command's event.
struct arrival {
  double part_ns = 0.0;             ///< what its START to END has too much
  std::optional<double> late_ns{};  ///< of one that was waited for: how much later than usual its call returned
  bool present = false;             ///< whether it was there in time for certain
  bool waited = false;              ///< whether `part_ns` is that of one that was waited for
  bool interrupted = false;         ///< whether its enqueue call took longer than calls do

  /// How much its time counts in a mean of few samples, beside one that was there when the former one ended. Of one
  /// that was waited for the call returns at varying times after the command has gone out: on an H200 such times
  /// scatter by 0.5 us, others by 0.2 to 0.4. Of a call that was interrupted nothing tells whether before or after: 1
  /// to 3 us. No more of either hangs on how long the kernel runs, so that weights do not move the mean.
  [[nodiscard]] constexpr double certainty() const noexcept { return interrupted ? 0.1 : waited ? 0.5 : 1.0; }
};

/// Tells commands that the device waited for apart from each other: START is stamped when a command's first part has
/// arrived, and it runs when its enqueue call has handed over the last one. So the later the call returned after START,
/// the more of START to END is waiting; how much more, is `waiting_fit`'s. No enqueue tells the offset of the clocks to
/// a microsecond, but an empty kernel that the device waits for ENDs a fixed time after its call has returned: seen now
/// and then (`probe`), it tells how late is usual, and several tell how fast the clocks drift apart meanwhile. Where
/// none is seen, what was usual among the last commands stands for it, which errs where calls have become slower;
/// commands of long ago say nothing, for the clocks have drifted. Used from one thread.
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
  [[nodiscard]] arrival judge(const event_bias& bias, const waiting_line& line, const raw_event& of) {
    const double present = bias.present(of.behind);
    arrival seen{.part_ns = present};
    if (bias.starved_ns <= bias.busy_ns) return seen;
    seen.interrupted = interrupted(of);
    const std::optional<double> late = later_than_usual(bias, of);
    // A call's return varies, so that a short kernel may seem to end before it began.
    const bool told = late && line.part(*late) <= static_cast<double>(of.end_ns - of.start_ns) + 0.25 * bias.starved_ns;
    if (!told) {
      seen.waited = bias.starved(static_cast<double>(of.pause_ns));
      if (seen.waited) seen.part_ns = line.at_usual_ns;
      return seen;
    }
    const double waited = bias.starved_ns + *late;
    seen.waited = waited > present;
    seen.present = waited < present - certainly_ns;
    if (!seen.waited) return seen;
    seen.late_ns = late;
    seen.part_ns = std::max(line.part(*late), present);
    return seen;
  }

 private:
  /// Whether the enqueue call of a command took a quarter longer than half of the last thousands did. To be called once
  /// for each.
  [[nodiscard]] bool interrupted(const raw_event& of) {
    const auto call = static_cast<double>(of.host_end_ns - of.host_begin_ns);
    calls_.add(call);
    ++calls_seen_;
    if (calls_seen_ % calls_between == 0 || std::has_single_bit(calls_seen_)) usual_call_ns_ = calls_.quantile(0.5);
    // A host's pace changes within seconds.
    if (calls_seen_ % (16 * calls_between) == 0) calls_.fade(0.5);
    return calls_seen_ > least && call > 1.25 * usual_call_ns_;
  }

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

  static constexpr double certainly_ns = 1000.0;
  static constexpr std::size_t kept_probes = 16;
  static constexpr std::size_t least = 16;
  static constexpr std::uint64_t calls_between = 64;
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
  quantile_sketch calls_{};  // lengths of enqueue calls
  std::uint64_t calls_seen_ = 0;
  double usual_call_ns_ = 0.0;
};

}  // namespace dnnopt::profile

#endif  // DNNOPT_PROFILE_WAITING_COMMAND_ARRIVAL_HPP
