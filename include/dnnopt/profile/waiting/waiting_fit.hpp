// Owns what events of commands that the device waited for have too much, learned from kernels seen both ways.
#ifndef DNNOPT_PROFILE_WAITING_WAITING_FIT_HPP
#define DNNOPT_PROFILE_WAITING_WAITING_FIT_HPP

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <dnnopt/profile/line_moments.hpp>
#include <dnnopt/profile/waiting/event_bias.hpp>

namespace dnnopt::profile {

/// What an event has too much whose command the device waited for.
struct waiting_line {
  double at_usual_ns = 0.0;  ///< where its enqueue call returned as late after START as is usual
  double slope = 1.0;        ///< more for each nanosecond that it returned later

  /// The part of a command whose call returned `late_ns` later than usual.
  [[nodiscard]] constexpr double part(double late_ns) const noexcept { return at_usual_ns + slope * late_ns; }
};

/// Learns that line while a profile goes on: a kernel takes as long whether the device waited for it or not, so what
/// its events have more where it was waited for, over lateness, is the line. `event_bias` says where to start from; it
/// was measured between empty calls, whose code and data are in the host's caches. Within an inference a call takes
/// longer to return after the command has gone out: in five calls on two hosts of an H200 the same lateness was worth
/// 0.24 to 0.38 us less there, and another nanosecond of it 0.52 to 0.80. Least squares over all kernels, each less its
/// own mean of commands that were there, with `event_bias` as one more sample. Memory is constant per launch.
class waiting_fit {
 public:
  waiting_fit() = default;
  explicit waiting_fit(const event_bias& bias)
      : line_{bias.starved_ns, 1.0}, prior_(line_), scale_ns_(bias.starved_ns - std::max(bias.busy_ns, bias.deep_ns)) {}

  /// The line as it is known now. Constant time.
  [[nodiscard]] const waiting_line& line() const noexcept { return line_; }
  /// Commands that it was learned from when it was last solved for: those of launches that were in time as well.
  [[nodiscard]] std::uint64_t samples() const noexcept { return samples_; }

  /// Takes a command of `launch` that was certainly there in time: its START to END less its part.
  void add_present(std::size_t launch, double time_ns) {
    sums& of = sums_of(launch);
    ++of.present;
    of.present_ns += time_ns;
  }

  /// Takes a command of `launch` that was waited for: how late it was, its START to END, and how long the launch takes
  /// as far as that is known. What lies far from either says nothing of the line. Amortised constant time.
  void add_waited(std::size_t launch, double late_ns, double whole_ns, double usual_ns) {
    if (std::abs(late_ns) > 2.0 * scale_ns_) return;
    sums& of = sums_of(launch);
    if (of.present > 0) usual_ns = of.present_ns / static_cast<double>(of.present);
    if (std::abs(whole_ns - usual_ns - line_.part(late_ns)) > scale_ns_) return;
    of.waited.add(late_ns, whole_ns);
    ++waited_;
    if (std::has_single_bit(waited_) || waited_ % solve_every == 0) solve();
  }

  /// Notes that `part_ns` was taken off a time that counts `weight` in the launch's mean, by the line as known then.
  void note(std::size_t launch, double late_ns, double part_ns, double weight) {
    sums& of = sums_of(launch);
    of.weight += weight;
    of.weighted_late += weight * late_ns;
    of.weighted_part += weight * part_ns;
  }

  /// Solves for what is known by now. O(launches).
  void solve() {
    // One sample's noise and the start's own uncertainty are both about a quarter of what waiting adds.
    const double reach = 0.25 * scale_ns_ / slope_uncertainty;
    line_moments all{1.0, 0.0, prior_.at_usual_ns, reach * reach, reach * reach * prior_.slope};
    samples_ = 0;
    for (const sums& of : launches_) {
      if (of.present == 0) continue;
      line_moments more = of.waited;
      samples_ += static_cast<std::uint64_t>(more.weight);
      more.mean_y -= of.present_ns / static_cast<double>(of.present);
      // The launch's own time is as uncertain as few commands leave it; those that were there scatter half as much.
      more.fade(1.0 / (1.0 + 0.25 / static_cast<double>(of.present)));
      all.merge(more);
    }
    if (samples_ == 0) return;
    // A call that returns later never means less waiting, nor much more than it is later.
    line_.slope = std::clamp(all.slope(), 0.0, 1.5);
    line_.at_usual_ns = all.mean_y - line_.slope * all.mean_x;
  }

  /// Nanoseconds by which the mean of a launch whose samples weigh `weight` in all changes when the line as it is known
  /// now is taken for all of them.
  [[nodiscard]] double correction(std::size_t launch, double weight) const noexcept {
    if (launch >= launches_.size() || !(weight > 0.0)) return 0.0;
    const sums& of = launches_[launch];
    return (of.weighted_part - line_.at_usual_ns * of.weight - line_.slope * of.weighted_late) / weight;
  }

 private:
  struct sums {
    std::uint64_t present = 0;
    double present_ns = 0.0;
    line_moments waited;  // START to END over lateness
    double weight = 0.0;
    double weighted_late = 0.0;
    double weighted_part = 0.0;
  };
  static constexpr std::uint64_t solve_every = 256;
  static constexpr double slope_uncertainty = 0.4;

  [[nodiscard]] sums& sums_of(std::size_t launch) {
    if (launch >= launches_.size()) launches_.resize(launch + 1);
    return launches_[launch];
  }

  waiting_line line_{};
  waiting_line prior_{};
  double scale_ns_ = 0.0;
  std::vector<sums> launches_;
  std::uint64_t waited_ = 0;
  std::uint64_t samples_ = 0;
};

}  // namespace dnnopt::profile

#endif  // DNNOPT_PROFILE_WAITING_WAITING_FIT_HPP
