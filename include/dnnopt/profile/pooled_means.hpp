// Owns means of few samples each: what lies far above a series' usual times is shared where series do not differ in it.
#ifndef DNNOPT_PROFILE_POOLED_MEANS_HPP
#define DNNOPT_PROFILE_POOLED_MEANS_HPP

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include <dnnopt/profile/statistics.hpp>

namespace dnnopt::profile {

/// A mean with its 95% interval.
struct pooled_mean {
  double mean = 0.0;
  interval range{};
};

/// Series with fewer samples have no usual times.
inline constexpr std::uint64_t least_pooled_samples = 8;

/// Means of kernels that were sampled some twenty times: of each series the mean with its samples cut off at the median
/// plus four deviations (Winsor; the deviation from the quartiles), and of what was cut off a part of its own and a
/// part of what all series have per sample. A launch that takes ten times as long as usual is the host's or the
/// driver's doing and may hit any kernel, so that twenty samples of all series tell how often it happens better than
/// those of one; where there are enough samples to see that kernels differ in it (on a processor what is interrupted
/// most is what runs longest), each keeps its own. How much, is the share of the variance between series in that and
/// their own errors' (Efron and Morris 1975, "Data analysis using Stein's estimator"). Of series with equally many
/// samples the sum stays what it was.
/// @pre each series has `least_pooled_samples` or more. O(samples' bins).
[[nodiscard]] inline std::vector<pooled_mean> pooled_means(const std::vector<const series*>& all) {
  struct cut {
    double mean = 0.0;
    double variance = 0.0;
    double above = 0.0;           // per sample
    double above_variance = 0.0;  // of one sample
    double effective = 1.0;
  };
  std::vector<cut> cuts;
  double weight = 0.0, above = 0.0, within = 0.0, effective = 0.0;
  for (const series* one : all) {
    const double median = one->quantile(0.5);
    const double deviation = std::max((one->quantile(0.75) - one->quantile(0.25)) / 1.349, 0.02 * median);
    const double limit = median + 4.0 * deviation;
    double over = 0.0, over_squares = 0.0, sum = 0.0, squares = 0.0;
    one->each([&](double value, double of) {
      const double beyond = std::max(value - limit, 0.0);
      over += of * beyond;
      over_squares += of * beyond * beyond;
      sum += of * (value - beyond);
      squares += of * (value - beyond) * (value - beyond);
    });
    cut here;
    here.above = over / one->weight();
    // The bins err by a percent alike for both sums, so that the moments' own mean is the better start.
    here.mean = one->moments().mean() - here.above;
    const double mean = sum / one->weight();
    const double samples = static_cast<double>(one->count());
    const double unbiased = samples / (samples - 1.0);
    here.variance = std::max(0.0, squares / one->weight() - mean * mean) * unbiased;
    here.above_variance = std::max(0.0, over_squares / one->weight() - here.above * here.above) * unbiased;
    here.effective = one->moments().effective();
    cuts.push_back(here);
    weight += one->weight();
    above += over;
    within += here.above_variance * here.effective;
    effective += here.effective;
  }
  const double shared = weight > 0.0 ? above / weight : 0.0;
  const double one_sample = effective > 0.0 ? within / effective : 0.0;
  double between = 0.0, errors = 0.0;
  for (const cut& one : cuts) {
    between += (one.above - shared) * (one.above - shared);
    errors += one_sample / one.effective;
  }
  const double differ =
      cuts.size() < 2
          ? 0.0
          : std::max(0.0, between / static_cast<double>(cuts.size() - 1) - errors / static_cast<double>(cuts.size()));
  std::vector<pooled_mean> means;
  for (const cut& one : cuts) {
    const double error = one_sample / one.effective;
    const double own = error > 0.0 ? differ / (differ + error) : 0.0;
    const double mean = one.mean + own * one.above + (1.0 - own) * shared;
    const double half = 1.959964 * std::sqrt((one.variance + own * one.above_variance) / one.effective +
                                             (1.0 - own) * one_sample / effective);
    means.push_back({mean, {mean - half, mean + half}});
  }
  return means;
}

}  // namespace dnnopt::profile

#endif  // DNNOPT_PROFILE_POOLED_MEANS_HPP
