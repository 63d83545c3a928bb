// Owns means of few samples each: what lies far above a series' usual times is shared by all of them.
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
/// plus four deviations (Winsor; the deviation from the quartiles), and of what was cut off an equal share for each
/// sample of all series. A launch that takes ten times as long as usual is the host's or the driver's doing and may
/// hit any kernel, so that all series together tell how often it happens better than one; the weighted sum over all
/// series stays what it was. Of a kernel that is slow now and then by itself, a part of that is booked on the others.
/// @pre each series has `least_pooled_samples` or more. O(samples' bins).
[[nodiscard]] inline std::vector<pooled_mean> pooled_means(const std::vector<const series*>& all) {
  struct cut {
    double mean = 0.0;
    double variance = 0.0;
    double effective = 1.0;
  };
  std::vector<cut> cuts;
  double weight = 0.0, above = 0.0, above_squares = 0.0, effective = 0.0;
  for (const series* one : all) {
    const double median = one->quantile(0.5);
    const double deviation = std::max((one->quantile(0.75) - one->quantile(0.25)) / 1.349, 0.02 * median);
    const double limit = median + 4.0 * deviation;
    double over = 0.0, sum = 0.0, squares = 0.0;
    one->each([&](double value, double of) {
      const double beyond = std::max(value - limit, 0.0);
      over += of * beyond;
      above_squares += of * beyond * beyond;
      sum += of * (value - beyond);
      squares += of * (value - beyond) * (value - beyond);
    });
    cut here;
    // The bins err by a percent alike for both sums, so that the moments' own mean is the better start.
    here.mean = one->moments().mean() - over / one->weight();
    const double mean = sum / one->weight();
    const double samples = static_cast<double>(one->count());
    here.variance = std::max(0.0, squares / one->weight() - mean * mean) * samples / (samples - 1.0);
    here.effective = one->moments().effective();
    cuts.push_back(here);
    weight += one->weight();
    above += over;
    effective += here.effective;
  }
  const double shared = weight > 0.0 ? above / weight : 0.0;
  const double shared_variance =
      weight > 0.0 ? std::max(0.0, above_squares / weight - shared * shared) / effective : 0.0;
  std::vector<pooled_mean> means;
  for (const cut& one : cuts) {
    const double half = 1.959964 * std::sqrt(one.variance / one.effective + shared_variance);
    const double mean = one.mean + shared;
    means.push_back({mean, {mean - half, mean + half}});
  }
  return means;
}

}  // namespace dnnopt::profile

#endif  // DNNOPT_PROFILE_POOLED_MEANS_HPP
