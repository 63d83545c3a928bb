// Owns means of few samples each: what lies far from a series' usual times is shared where series do not differ in it.
#ifndef DNNOPT_PROFILE_POOLED_MEANS_HPP
#define DNNOPT_PROFILE_POOLED_MEANS_HPP

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>
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

namespace detail {

/// What of samples lies beyond a limit.
struct cut_off {
  double mean = 0.0;      // per sample of the series; negative beyond a lower limit
  double variance = 0.0;  // of one sample
};

/// A series whose samples are cut off at limits, and what was cut off.
struct cut_series {
  double mean = 0.0;
  double variance = 0.0;
  cut_off above;
  cut_off below;
  double effective = 1.0;
  double weight = 0.0;
};

/// What all series have beyond one of their limits, as a multiple of a size that each has; its variance is as large a
/// multiple (an event that happens in proportion to the size, and lasts as long in each).
class shared_excess {
 public:
  template <class Size>
  shared_excess(const std::vector<cut_series>& cuts, cut_off cut_series::*side, const Size& size_of)
      : side_(side), size_of_(size_of) {
    double beyond = 0.0, sizes = 0.0, within = 0.0;
    for (const cut_series& one : cuts) {
      beyond += one.weight * own(one);
      sizes += one.weight * size_of_(one);
      within += (one.*side_).variance * one.effective;
      effective_ += size_of_(one) * one.effective;
    }
    rate_ = sizes > 0.0 ? beyond / sizes : 0.0;
    variance_ = effective_ > 0.0 ? within / effective_ : 0.0;
    if (cuts.size() < 2) return;
    double squares = 0.0, errors = 0.0;
    for (const cut_series& one : cuts) {
      const double away = own(one) - of(one);
      const double size = size_of_(one);
      between_ += away * away;
      if (size <= 0.0) continue;
      squares += away * away / (size * size);
      errors += error(one) / (size * size);
    }
    const double count = static_cast<double>(cuts.size());
    differ_ = std::max(0.0, squares / (count - 1.0) - errors / count);
    // So that the sum over all series stays what it was.
    double left = 0.0, sizes_left = 0.0;
    for (const cut_series& one : cuts) {
      const double others = one.weight * (1.0 - own_part(one));
      left += others * own(one);
      sizes_left += others * size_of_(one);
    }
    if (sizes_left > 0.0) rate_ = left / sizes_left;
  }

  /// Of a series per sample.
  [[nodiscard]] double own(const cut_series& one) const { return (one.*side_).mean; }
  /// Of a series per sample, if it were like the others.
  [[nodiscard]] double of(const cut_series& one) const { return rate_ * size_of_(one); }
  /// Sum of squares of what series have beside that.
  [[nodiscard]] double between() const noexcept { return between_; }
  /// How much of its own excess a series keeps, from 0 to 1.
  [[nodiscard]] double own_part(const cut_series& one) const {
    const double differs = differ_ * size_of_(one) * size_of_(one);
    const double err = error(one);
    return err > 0.0 ? differs / (differs + err) : 0.0;
  }
  /// Of one sample of a series.
  [[nodiscard]] double variance(const cut_series& one) const { return (one.*side_).variance; }
  /// Variance of `of`.
  [[nodiscard]] double uncertainty(const cut_series& one) const {
    return effective_ > 0.0 ? variance_ * size_of_(one) * size_of_(one) / effective_ : 0.0;
  }

 private:
  /// Variance of a series' own excess.
  [[nodiscard]] double error(const cut_series& one) const { return variance_ * size_of_(one) / one.effective; }

  cut_off cut_series::*side_;
  double (*size_of_)(const cut_series&);
  double rate_ = 0.0;
  double variance_ = 0.0;  // of one sample, over its size
  double effective_ = 0.0;
  double between_ = 0.0;
  double differ_ = 0.0;  // variance between series, over the size's square
};

/// What all series have beyond one of their limits: once in a while or by the microsecond, whichever leaves less
/// between series.
[[nodiscard]] inline shared_excess share(const std::vector<cut_series>& cuts, cut_off cut_series::*side) {
  const shared_excess by_call(cuts, side, [](const cut_series&) { return 1.0; });
  const shared_excess by_length(cuts, side, [](const cut_series& one) { return one.mean; });
  return by_length.between() < by_call.between() ? by_length : by_call;
}

}  // namespace detail

/// Means of kernels that were sampled some twenty times: of each series the mean with its samples cut off at the median
/// plus and less four deviations (Winsor; the deviation from the quartiles), and of what was cut off a part of its own
/// and a part of what all series have per sample. A launch that takes ten times as long as usual is the host's or the
/// driver's doing and may hit any kernel, so that twenty samples of all series tell how often it happens better than
/// those of one; what is shared is as long for each kernel, or in proportion to its length (on a processor what
/// is interrupted most is what runs longest), whichever leaves less between kernels. One that takes a tenth of the
/// usual was not quicker: too much was taken off its event, because its enqueue call was interrupted after the command
/// had gone out, which may hit any kernel too (one in a hundred on one of two hosts of an H200). Where there are enough
/// samples to see that kernels differ in it, each keeps its own. How much, is the share of the variance between series
/// in that and their own errors' (Efron and Morris 1975, "Data analysis using Stein's estimator"). The sum of all
/// series stays what it was.
/// @pre each series has `least_pooled_samples` or more. O(samples' bins).
[[nodiscard]] inline std::vector<pooled_mean> pooled_means(const std::vector<const series*>& all) {
  std::vector<detail::cut_series> cuts;
  for (const series* one : all) {
    const double median = one->quantile(0.5);
    const double deviation = std::max((one->quantile(0.75) - one->quantile(0.25)) / 1.349, 0.02 * median);
    const double samples = static_cast<double>(one->count());
    const double unbiased = samples / (samples - 1.0);
    // Of a sum of values by weight and of their squares.
    const auto moments_of = [&](double sum, double squares) {
      const double mean = sum / one->weight();
      return detail::cut_off{mean, std::max(0.0, squares / one->weight() - mean * mean) * unbiased};
    };
    const auto beyond_limits = [&](double value) {
      return std::pair(std::max(value - (median + 4.0 * deviation), 0.0),
                       std::min(value - (median - 4.0 * deviation), 0.0));
    };
    struct sums {
      double values = 0.0;
      double squares = 0.0;
      void add(double of, double value) {
        values += of * value;
        squares += of * value * value;
      }
    } over, under, kept;
    one->each([&](double value, double of) {
      const auto [above, below] = beyond_limits(value);
      over.add(of, above);
      under.add(of, below);
      kept.add(of, value - above - below);
    });
    detail::cut_series here;
    here.above = moments_of(over.values, over.squares);
    here.below = moments_of(under.values, under.squares);
    here.variance = moments_of(kept.values, kept.squares).variance;
    // The bins err by a percent alike for all sums, so that the moments' own mean is the better start.
    here.mean = one->moments().mean() - here.above.mean - here.below.mean;
    here.effective = one->moments().effective();
    here.weight = one->weight();
    cuts.push_back(here);
  }
  const detail::shared_excess shared[] = {detail::share(cuts, &detail::cut_series::above),
                                          detail::share(cuts, &detail::cut_series::below)};
  std::vector<pooled_mean> means;
  for (const detail::cut_series& one : cuts) {
    double mean = one.mean;
    double variance = one.variance / one.effective;
    for (const detail::shared_excess& beyond : shared) {
      const double own = beyond.own_part(one);
      mean += own * beyond.own(one) + (1.0 - own) * beyond.of(one);
      variance += own * beyond.variance(one) / one.effective + (1.0 - own) * beyond.uncertainty(one);
    }
    const double half = 1.959964 * std::sqrt(variance);
    means.push_back({mean, {mean - half, mean + half}});
  }
  return means;
}

}  // namespace dnnopt::profile

#endif  // DNNOPT_PROFILE_POOLED_MEANS_HPP
