// Owns a simulated device clock with every fault that a real one has, to test synchronization against a known truth.
#ifndef DNNOPT_PROFILE_CLOCKS_SIMULATED_CLOCK_HPP
#define DNNOPT_PROFILE_CLOCKS_SIMULATED_CLOCK_HPP

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include <dnnopt/profile/clocks/clock_map.hpp>

namespace dnnopt::profile {

/// A change of the device clock's rate from one host time on, as frequency scaling makes it.
struct frequency_step {
  double at_ns = 0.0;  ///< host time since the start
  double ppm = 0.0;    ///< rate from then on, relative to the nominal rate
};

/// What is wrong with a simulated clock. The defaults are a perfect clock.
struct simulated_clock_options {
  double offset_ns = 0.0;  ///< device minus host at the start
  double drift_ppm = 0.0;  ///< rate of the device clock relative to the host's
  double wander_ns = 0.0;  ///< peak-to-peak offset of a slow sine on top
  double wander_period_ns = 60e9;
  std::vector<frequency_step> steps{};
  double jitter_ns = 0.0;      ///< standard deviation of the host's stamp against the device's
  double outlier_share = 0.0;  ///< share of host stamps that are early by about `outlier_ns`
  double outlier_ns = 0.0;
  std::int64_t tick_ns = 1;  ///< the device counts in these
  std::int64_t wrap_ns = 0;  ///< device time is taken modulo this; 0 for never
  double call_ns = 2000.0;   ///< length of the host's enqueue interval
  std::uint64_t seed = 1;
};

/// A device clock as a function of true host time.
class simulated_clock {
 public:
  explicit simulated_clock(simulated_clock_options options) : options_(std::move(options)), random_(options_.seed) {}

  /// The exact device time at a host time, neither cut to ticks nor wrapped.
  [[nodiscard]] double exact(double host_ns) const noexcept {
    double device = host_ns + options_.offset_ns;
    double rate = options_.drift_ppm;
    double since = 0.0;
    for (const frequency_step& step : options_.steps) {
      if (step.at_ns >= host_ns) break;
      device += (step.at_ns - since) * rate * 1e-6;
      since = step.at_ns;
      rate = step.ppm;
    }
    device += (host_ns - since) * rate * 1e-6;
    constexpr double turn = 6.283185307179586;
    return device + 0.5 * options_.wander_ns * std::sin(turn * host_ns / options_.wander_period_ns);
  }

  /// What the device reports at a host time: whole ticks, wrapped.
  [[nodiscard]] std::int64_t stamp(double host_ns) const noexcept {
    const auto device = static_cast<std::int64_t>(std::floor(exact(host_ns)));
    const std::int64_t ticks = device - device % options_.tick_ns;
    return options_.wrap_ns > 0 ? ticks % options_.wrap_ns : ticks;
  }

  /// A command enqueued at a host time: the device's stamp within a noisy host interval.
  [[nodiscard]] clock_pair enqueue(double host_ns) {
    double error = options_.jitter_ns * normal_(random_);
    if (uniform_(random_) < options_.outlier_share) error -= options_.outlier_ns * (0.5 + uniform_(random_));
    const double middle = host_ns + error;
    return {static_cast<std::int64_t>(std::llround(middle - 0.5 * options_.call_ns)),
            static_cast<std::int64_t>(std::llround(middle + 0.5 * options_.call_ns)), stamp(host_ns)};
  }

 private:
  simulated_clock_options options_;
  std::mt19937_64 random_;
  std::normal_distribution<double> normal_{0.0, 1.0};
  std::uniform_real_distribution<double> uniform_{0.0, 1.0};
};

}  // namespace dnnopt::profile

#endif  // DNNOPT_PROFILE_CLOCKS_SIMULATED_CLOCK_HPP
