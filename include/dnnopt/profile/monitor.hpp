// Owns the choice of the inferences that are timed within an overhead budget.
#ifndef DNNOPT_PROFILE_MONITOR_HPP
#define DNNOPT_PROFILE_MONITOR_HPP

#include <algorithm>
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
/// That cost is learned from the inferences themselves, timed against not timed, which also counts what a measurement
/// of the enqueue call misses (driver threads, flushes, lost overlap). All functions take constant time.
class monitor_sampler {
 public:
  explicit monitor_sampler(monitor_options options = {})
      : options_(options), state_(options.seed * 2 + 1), next_(uniform()), cost_(options.event_cost_ns) {}

  /// A direct measurement of an event's cost (the same launches with and without events), as a start or a correction.
  void set_event_cost(double nanoseconds) noexcept { cost_ = std::max(nanoseconds, 1.0); }

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
      run_ns_ += (run_ns - run_ns_) * std::max(1.0 / static_cast<double>(plain_runs_), 1e-3);
      return;
    }
    if (plain_runs_ == 0) {
      run_ns_ = std::max(excess, 0.1 * run_ns);
      return;
    }
    if (plain_runs_ < 32) return;
    ++timed_runs_;
    // Single differences are noisy: each moves the estimate a little and never by more than a factor of four.
    const double seen = std::clamp((run_ns - run_ns_) / static_cast<double>(timed), cost_ / 4.0, cost_ * 4.0);
    cost_ += (seen - cost_) * std::max(1.0 / static_cast<double>(timed_runs_ + 1), 0.02);
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
  std::uint64_t timed_runs_ = 0;
  double cost_;
  double run_ns_ = 0.0;  // mean of inferences that are not timed
  double launches_ = 0.0;
  std::uint64_t collections_ = 0;
  double collection_ns_ = 0.0;
};

}  // namespace dnnopt::profile

#endif  // DNNOPT_PROFILE_MONITOR_HPP
