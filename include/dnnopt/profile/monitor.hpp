// Owns the choice of the inferences that are timed within an overhead budget.
#ifndef DNNOPT_PROFILE_MONITOR_HPP
#define DNNOPT_PROFILE_MONITOR_HPP

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>

namespace dnnopt::profile {

/// Whether an inference is timed, and what each of its times stands for.
struct run_sample {
  bool taken = true;
  float weight = 1.0F;  ///< the inverse of the probability with which it was taken
};

/// Settings of `monitor_sampler`.
struct monitor_options {
  double budget = 0.0025;         ///< share of the inferences' time that timing may cost
  double event_cost_ns = 8000.0;  ///< first guess of what an event costs, until measured
  double run_cost_ns = 300.0;     ///< fixed cost of a monitored inference: two clock reads and a record
  double most_probability = 0.9;  ///< less than 1: what timing costs shows beside inferences without it
  std::uint64_t seed = 1;
};

/// Takes whole inferences, at random distances whose mean follows from the budget and the measured cost of an event.
/// Whole ones, because a queue that can give events costs more for each launch even where none is asked for (2% on one
/// driver), and because kernels are then watched exactly as in full mode: the same statistics, of fewer inferences.
/// That cost is learned from the inferences themselves, timed against those not timed just before, for a host's pace
/// changes within seconds; it also counts what a measurement of the enqueue call misses (driver threads, flushes, lost
/// overlap). Where inferences differ by far more than events cost, what was measured directly counts for as much as is
/// known better by it, and the budget is kept by one deviation of what is still unknown. All functions take constant
/// time.
class monitor_sampler {
 public:
  explicit monitor_sampler(monitor_options options = {})
      : options_(options),
        state_(options.seed * 2 + 1),
        next_(uniform()),
        direct_(options.event_cost_ns),
        cost_(options.event_cost_ns) {}

  /// A direct measurement of an event's cost (the same launches with and without events), as a start or a correction.
  void set_event_cost(double nanoseconds) noexcept {
    direct_ = std::max(nanoseconds, 1.0);
    weigh();
  }

  /// Draws the next inference's fate.
  [[nodiscard]] run_sample next_run() noexcept {
    const double share = probability();
    level_ += share;
    if (level_ < next_) return {false, 0.0F};
    level_ -= next_;
    // Neither equal distances, which could follow a period of the application, nor long runs of bad luck.
    next_ = 0.5 + uniform();
    return {true, static_cast<float>(1.0 / share)};
  }

  /// Takes a finished inference: its time, its launches (asked for only where some were timed), and how many of them
  /// were timed.
  void observe(double run_ns, std::size_t launches, std::size_t timed) noexcept {
    ++runs_;
    if (timed > 0) launches_ = static_cast<double>(launches);
    const double excess = run_ns - static_cast<double>(timed) * cost_;
    // One far above the usual (another process) says nothing about events.
    if (runs_ > 32 && excess > 1.5 * run_ns_) return;
    if (timed == 0) {
      ++plain_runs_;
      settle();
      run_ns_ += (run_ns - run_ns_) * std::max(1.0 / static_cast<double>(plain_runs_), 1e-3);
      recent_ns_ += (run_ns - recent_ns_) * std::max(1.0 / static_cast<double>(plain_runs_), 0.5);
      return;
    }
    if (plain_runs_ == 0) {
      run_ns_ = std::max(excess, 0.1 * run_ns);
      return;
    }
    if (plain_runs_ < 32) return;
    waiting_ += (run_ns - recent_ns_) / static_cast<double>(timed);
    ++waiting_runs_;
  }

  /// Takes what was done after an inference for its times alone: stamps that were read, clocks that were compared.
  void observe_collection(double nanoseconds) noexcept {
    ++collections_;
    // A call that was interrupted counts as ten usual ones at most.
    const double seen = collections_ == 1 ? nanoseconds : std::min(nanoseconds, 10.0 * collection_ns_);
    collection_ns_ += (seen - collection_ns_) * std::max(1.0 / static_cast<double>(collections_), 0.02);
  }

  /// Mean probability with which an inference is timed.
  [[nodiscard]] double probability() const noexcept {
    if (run_ns_ <= 0.0 || launches_ <= 0.0) return options_.most_probability * 0.02;
    const double left = options_.budget * run_ns_ - options_.run_cost_ns;
    return std::clamp(left / sample_cost_ns(), 1e-5, options_.most_probability);
  }
  /// Estimated cost of one event in nanoseconds.
  [[nodiscard]] double event_cost_ns() const noexcept { return cost_; }
  /// Estimated share of the inferences' time that monitoring costs.
  [[nodiscard]] double overhead() const noexcept {
    return run_ns_ <= 0.0 ? 0.0 : (probability() * sample_cost_ns() + options_.run_cost_ns) / run_ns_;
  }
  [[nodiscard]] std::uint64_t runs() const noexcept { return runs_; }

 private:
  [[nodiscard]] double sample_cost_ns() const noexcept { return cost_ * launches_ + collection_ns_; }

  /// Takes the inferences timed since the last plain one as one difference: they share what they are compared with.
  void settle() noexcept {
    if (waiting_runs_ == 0) return;
    ++differences_;
    const double gain = std::max(1.0 / static_cast<double>(differences_), slowest_gain);
    double away = waiting_ / static_cast<double>(waiting_runs_) - learned_;
    // Cut alike on either side, for what is noise has a mean of zero.
    const double most = 4.0 * std::sqrt(variance_);
    if (differences_ > 8) away = std::clamp(away, -most, most);
    if (differences_ > 1) variance_ += (away * away - variance_) * gain;
    learned_ += away * gain;
    waiting_ = 0.0;
    waiting_runs_ = 0;
    weigh();
  }

  /// Joins the direct measurement, which is as uncertain as it is large and by `elsewhere_ns` (its kernels are empty
  /// ones, a model's are not), and the mean of what was seen.
  void weigh() noexcept {
    if (differences_ < 2) {
      cost_ = direct_;
      return;
    }
    const double samples = static_cast<double>(differences_);
    const double before = (direct_ + elsewhere_ns) * (direct_ + elsewhere_ns);
    const double seen = variance_ * std::max(1.0 / samples, slowest_gain / 2.0) + before / (samples * samples);
    const double trust = before / (before + seen);
    cost_ = std::max(0.25 * direct_, direct_ + trust * (learned_ - direct_)) + std::sqrt(trust * seen);
  }
  static constexpr double elsewhere_ns = 1000.0;
  static constexpr double slowest_gain = 0.001;  // of a running mean, so that it follows a driver that changes

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
  double level_ = 0.0;
  double next_;  // the level at which the next inference is taken
  std::uint64_t runs_ = 0;
  std::uint64_t plain_runs_ = 0;
  std::uint64_t waiting_runs_ = 0;  // timed since the last plain one
  double waiting_ = 0.0;            // the sum of their differences, per event
  std::uint64_t differences_ = 0;
  double learned_ = 0.0;   // of an event, by inferences that were timed and others
  double variance_ = 0.0;  // of one such difference
  double direct_;
  double cost_;
  double run_ns_ = 0.0;     // mean of inferences that are not timed
  double recent_ns_ = 0.0;  // the last few of them
  double launches_ = 0.0;
  std::uint64_t collections_ = 0;
  double collection_ns_ = 0.0;
};

}  // namespace dnnopt::profile

#endif  // DNNOPT_PROFILE_MONITOR_HPP
