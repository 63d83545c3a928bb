// Owns the clock synchronizations that read clocks side by side: the driver's device timer, and known host clocks.
#ifndef DNNOPT_PROFILE_CLOCKS_CLOCK_ANCHORED_HPP
#define DNNOPT_PROFILE_CLOCKS_CLOCK_ANCHORED_HPP

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <dnnopt/profile/clocks/clock_map.hpp>
#include <dnnopt/profile/clocks/host_clock.hpp>
#include <dnnopt/profile/line_moments.hpp>

namespace dnnopt::profile {

/// Reads the device's clock now, in nanoseconds (the device half of clGetDeviceAndHostTimer); empty where the driver
/// cannot.
using device_timer = std::function<std::optional<std::int64_t>()>;

/// Reads the device timer between two host reads `tries` times and keeps the tightest bracket: the error of its middle
/// is at most half its width (Cristian 1989). Empty where the timer is.
[[nodiscard]] inline std::optional<clock_pair> read_bracketed(const device_timer& timer, int tries = 5) {
  std::optional<clock_pair> best;
  for (int i = 0; i < tries && timer; ++i) {
    const std::int64_t before = host_now_ns();
    const std::optional<std::int64_t> device = timer();
    const std::int64_t after = host_now_ns();
    if (!device) return std::nullopt;
    if (!best || after - before < best->host_end_ns - best->host_begin_ns) best = clock_pair{before, after, *device};
  }
  return best;
}

/// Follows the device clock by anchors from the driver's own timer: offset and drift by least squares over the anchors,
/// older ones fading. The stamps of enqueues are not used.
class bracketed_timer final : public clock_method {
 public:
  [[nodiscard]] std::string_view name() const noexcept override { return "bracketed device timer"; }
  void add(const clock_pair&) override {}

  /// Takes an anchor from `read_bracketed`.
  void add_anchor(const clock_pair& anchor) {
    if (anchors_ == 0) {
      origin_device_ = anchor.device_ns;
      origin_offset_ = anchor.host_middle_ns() - anchor.device_ns;
    }
    ++anchors_;
    const double x = static_cast<double>(anchor.device_ns - origin_device_);
    const double y = static_cast<double>(anchor.host_middle_ns() - anchor.device_ns - origin_offset_);
    // A tight bracket weighs more: its error is bounded by its width.
    const double width = static_cast<double>(std::max<std::int64_t>(anchor.host_end_ns - anchor.host_begin_ns, 100));
    line_.fade(0.9);
    line_.add(x, y, 1e4 / (width * width));
  }
  [[nodiscard]] bool ready() const noexcept override { return anchors_ > 0; }
  [[nodiscard]] affine_clock_map map() const noexcept override {
    return {origin_device_, origin_offset_, line_.slope(), line_.mean_y - line_.slope() * line_.mean_x};
  }

 private:
  std::uint64_t anchors_ = 0;
  std::int64_t origin_device_ = 0;
  std::int64_t origin_offset_ = 0;
  line_moments line_;
};

/// Supposes that the device's clock is one of the host's clocks plus a constant. Each enqueue bounds the constant from
/// both sides, for the stamp lies inside the call; the bounds' intersection is the estimate, and pairs that would empty
/// it speak against the supposition. Zero, where it is possible, is taken: the driver then reads that very clock.
class known_clock_offset final : public clock_method {
 public:
  explicit known_clock_offset(known_clock clock, std::int64_t tick_ns = 1)
      : clock_(clock), tick_ns_(std::max<std::int64_t>(tick_ns, 1)), name_(std::string(to_string(clock))) {}

  /// The clock's name; " + constant" is added once zero is excluded.
  [[nodiscard]] std::string_view name() const noexcept override { return name_; }

  /// Takes a reading of the host's clocks. Needed before the first pair, and then now and then, for the raw clock and
  /// the wall clock wander against the steady one.
  void add_anchor(const host_clock_anchor& anchor) {
    former_ = anchors_ == 0 ? anchor : latest_;
    latest_ = anchor;
    ++anchors_;
  }

  void add(const clock_pair& pair) override {
    if (anchors_ == 0) return;
    ++pairs_;
    const double shift = other_minus_host(pair.host_middle_ns());
    const auto whole = static_cast<std::int64_t>(shift);
    const std::int64_t lower = pair.host_begin_ns + whole - pair.device_ns - tick_ns_ - slack_ns;
    const std::int64_t upper = pair.host_end_ns + whole - pair.device_ns + slack_ns;
    if (std::max(lower, lower_) > std::min(upper, upper_)) {
      ++outliers_;
      // A first pair that was itself wrong must not reject all that follow.
      if (outliers_ * 2 > pairs_ && pairs_ >= 8) {
        lower_ = lower;
        upper_ = upper;
      }
      return;
    }
    lower_ = std::max(lower, lower_);
    upper_ = std::min(upper, upper_);
    if (lower_ > 0 || upper_ < 0) name_ = std::string(to_string(clock_)) + " + constant";
  }

  /// Ready when anchors and pairs exist and at most a twentieth of the pairs contradicts.
  [[nodiscard]] bool ready() const noexcept override {
    return anchors_ > 0 && pairs_ > outliers_ && outliers_ * 20 <= pairs_;
  }
  [[nodiscard]] std::uint64_t outliers() const noexcept override { return outliers_; }

  [[nodiscard]] bool exact() const noexcept override { return constant_ns() == 0; }

  /// Known clock minus device: zero, or the middle of what is possible.
  [[nodiscard]] std::int64_t constant_ns() const noexcept {
    if (lower_ <= 0 && upper_ >= 0) return 0;
    return lower_ + (upper_ - lower_) / 2;
  }

  [[nodiscard]] affine_clock_map map() const noexcept override {
    const std::int64_t anchored = latest_.clock_ns[static_cast<std::size_t>(clock_)] - constant_ns();
    // Half a tick: a stamp is cut to whole ticks, the event happened somewhere within the tick.
    return {anchored, latest_.host_ns - anchored, -rate(), 0.5 * static_cast<double>(tick_ns_ - 1) + 0.5};
  }

 private:
  static constexpr std::int64_t slack_ns = 200;

  [[nodiscard]] std::int64_t difference(const host_clock_anchor& anchor) const noexcept {
    return anchor.clock_ns[static_cast<std::size_t>(clock_)] - anchor.host_ns;
  }
  /// Gain of the known clock on the steady clock per nanosecond; the steady clock has none on itself.
  [[nodiscard]] double rate() const noexcept {
    if (clock_ == known_clock::monotonic || latest_.host_ns - former_.host_ns < 10'000'000) return 0.0;
    return static_cast<double>(difference(latest_) - difference(former_)) /
           static_cast<double>(latest_.host_ns - former_.host_ns);
  }
  [[nodiscard]] double other_minus_host(std::int64_t host_ns) const noexcept {
    return static_cast<double>(difference(latest_)) + rate() * static_cast<double>(host_ns - latest_.host_ns);
  }

  known_clock clock_;
  std::int64_t tick_ns_;
  std::string name_;
  host_clock_anchor former_{};
  host_clock_anchor latest_{};
  std::uint64_t anchors_ = 0;
  std::uint64_t pairs_ = 0;
  std::uint64_t outliers_ = 0;
  std::int64_t lower_ = std::numeric_limits<std::int64_t>::min() / 2;
  std::int64_t upper_ = std::numeric_limits<std::int64_t>::max() / 2;
};

}  // namespace dnnopt::profile

#endif  // DNNOPT_PROFILE_CLOCKS_CLOCK_ANCHORED_HPP
