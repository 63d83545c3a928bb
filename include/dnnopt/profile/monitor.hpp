// Owns the sampler that times a rotating, unbiased share of launches within an overhead budget.
#ifndef DNNOPT_PROFILE_MONITOR_HPP
#define DNNOPT_PROFILE_MONITOR_HPP

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace dnnopt::profile {

/// Which launches of one run are timed: systematic sampling from a random start, so each launch has the same
/// probability in every run whatever its position. A call to `take` is one addition and one comparison.
class launch_sample {
 public:
  launch_sample() = default;
  /// @pre 0 <= probability <= 1 and 0 <= start < 1; `weight` is what a sample stands for.
  launch_sample(double probability, double start, float weight) noexcept
      : probability_(probability), level_(start), weight_(weight) {}

  /// True where the next launch is to be timed.
  [[nodiscard]] bool take() noexcept {
    if (probability_ >= 1.0) return true;
    level_ += probability_;
    if (level_ < 1.0) return false;
    level_ -= 1.0;
    return true;
  }
  [[nodiscard]] double probability() const noexcept { return probability_; }
  /// What a sample stands for: the inverse of the probability with which it was drawn.
  [[nodiscard]] float weight() const noexcept { return weight_; }

 private:
  double probability_ = 1.0;
  double level_ = 0.0;
  float weight_ = 1.0F;
};

/// Settings of `monitor_sampler`.
struct monitor_options {
  double budget = 0.0025;         ///< share of the inference's time that timing may cost
  double event_cost_ns = 8000.0;  ///< first guess of what an event costs, until measured
  double run_cost_ns = 300.0;     ///< fixed cost of a monitored run: two clock reads and a record
  double most_probability = 1.0;
  std::uint64_t seed = 1;
};

/// Decides the share of timed launches per run from the measured cost of an event. That cost is learned from the runs
/// themselves: some runs, at random, carry twice the events and some none, and the slope of run time over events is the
/// cost, which also counts what a direct measurement of the enqueue call misses (driver threads, flushes, lost
/// overlap).
class monitor_sampler {
 public:
  explicit monitor_sampler(monitor_options options = {}) : options_(options), state_(options.seed * 2 + 1) {
    cost_ = options_.event_cost_ns;
  }

  /// A direct measurement of an event's cost (the same launches with and without events), as a start or a correction.
  void set_event_cost(double nanoseconds) noexcept { cost_ = std::max(nanoseconds, 1.0); }

  /// Draws the sample of the next run.
  [[nodiscard]] launch_sample next_run() noexcept {
    const double base = probability();
    if (base * 2.0 >= options_.most_probability) {
      const double high = std::min(base, options_.most_probability);
      return {high, uniform(), static_cast<float>(1.0 / high)};
    }
    // Half of the runs at none and half at double keep the mean; both arms are needed for the slope.
    return {uniform() < 0.5 ? 0.0 : base * 2.0, uniform(), static_cast<float>(1.0 / base)};
  }

  /// Takes a finished run: its time, its launches, and how many of them were timed. Constant time.
  void observe(double run_ns, std::size_t launches, std::size_t timed) noexcept {
    ++runs_;
    const double rate = std::max(1.0 / static_cast<double>(runs_), 1e-3);
    run_ns_ += (run_ns - run_ns_) * rate;
    launches_ += (static_cast<double>(launches) - launches_) * rate;
    // Runs far above the usual (another process) would drown the slope.
    if (runs_ > 32 && run_ns > 1.5 * run_ns_) return;
    const double x = static_cast<double>(timed) - mean_timed_;
    mean_timed_ += x * rate;
    mean_ns_ += (run_ns - mean_ns_) * rate;
    const double y = run_ns - mean_ns_;
    sxx_ += (x * x - sxx_) * rate;
    sxy_ += (x * y - sxy_) * rate;
    if (runs_ < 200 || sxx_ <= 0.0) return;
    // The slope is noisy where runs are: it moves the estimate slowly and never by more than a factor of four from it.
    const double slope = std::clamp(sxy_ / sxx_, cost_ / 4.0, cost_ * 4.0);
    cost_ += (slope - cost_) * 1e-3;
  }

  /// Mean probability with which a launch is timed.
  [[nodiscard]] double probability() const noexcept {
    if (runs_ == 0 || launches_ <= 0.0) return options_.most_probability * 0.02;
    const double left = options_.budget * run_ns_ - options_.run_cost_ns;
    return std::clamp(left / (cost_ * launches_), 1e-5, options_.most_probability);
  }
  /// Estimated cost of one event in nanoseconds.
  [[nodiscard]] double event_cost_ns() const noexcept { return cost_; }
  /// Estimated share of run time that monitoring costs.
  [[nodiscard]] double overhead() const noexcept {
    return runs_ == 0 || run_ns_ <= 0.0 ? 0.0 : (probability() * launches_ * cost_ + options_.run_cost_ns) / run_ns_;
  }
  [[nodiscard]] std::uint64_t runs() const noexcept { return runs_; }

 private:
  /// SplitMix64: one multiply chain per draw; statistical quality is ample for sampling.
  [[nodiscard]] double uniform() noexcept {
    state_ += 0x9E3779B97F4A7C15ULL;
    std::uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
    z ^= z >> 31;
    return static_cast<double>(z >> 11) * 0x1.0p-53;
  }

  monitor_options options_;
  std::uint64_t state_;
  std::uint64_t runs_ = 0;
  double cost_ = 0.0;
  double run_ns_ = 0.0;
  double launches_ = 0.0;
  double mean_timed_ = 0.0;
  double mean_ns_ = 0.0;
  double sxx_ = 0.0;
  double sxy_ = 0.0;
};

}  // namespace dnnopt::profile

#endif  // DNNOPT_PROFILE_MONITOR_HPP
