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

namespace detail {

/// A series whose samples are cut off at a limit, and what was cut off.
struct cut_series {
  double mean = 0.0;
  double variance = 0.0;
  double above = 0.0;           // per sample
  double above_variance = 0.0;  // of one sample
  double effective = 1.0;
  double weight = 0.0;
};

/// What all series have above their limits, as a multiple of a size that each has; its variance is as large a multiple
/// (an event that happens in proportion to the size, and lasts as long in each).
class shared_excess {
 public:
  template <class Size>
  shared_excess(const std::vector<cut_series>& cuts, const Size& size_of) : size_of_(size_of) {
    double above = 0.0, sizes = 0.0, within = 0.0;
    for (const cut_series& one : cuts) {
      above += one.weight * one.above;
      sizes += one.weight * size_of_(one);
      within += one.above_variance * one.effective;
      effective_ += size_of_(one) * one.effective;
    }
    rate_ = sizes > 0.0 ? above / sizes : 0.0;
    variance_ = effective_ > 0.0 ? within / effective_ : 0.0;
    if (cuts.size() < 2) return;
    double squares = 0.0, errors = 0.0;
    for (const cut_series& one : cuts) {
      const double away = one.above - of(one);
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
      left += others * one.above;
      sizes_left += others * size_of_(one);
    }
    if (sizes_left > 0.0) rate_ = left / sizes_left;
  }

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
  /// Variance of `of`.
  [[nodiscard]] double uncertainty(const cut_series& one) const {
    return effective_ > 0.0 ? variance_ * size_of_(one) * size_of_(one) / effective_ : 0.0;
  }

 private:
  /// Variance of a series' own excess.
  [[nodiscard]] double error(const cut_series& one) const { return variance_ * size_of_(one) / one.effective; }

  double (*size_of_)(const cut_series&);
  double rate_ = 0.0;
  double variance_ = 0.0;  // of one sample, over its size
  double effective_ = 0.0;
  double between_ = 0.0;
  double differ_ = 0.0;  // variance between series, over the size's square
};

}  // namespace detail

/// Means of kernels that were sampled some twenty times: of each series the mean with its samples cut off at the median
/// plus four deviations (Winsor; the deviation from the quartiles), and of what was cut off a part of its own and a
/// part of what all series have per sample. A launch that takes ten times as long as usual is the host's or the
/// driver's doing and may hit any kernel, so that twenty samples of all series tell how often it happens better than
/// those of one; what is shared is as long for each kernel, or in proportion to its length (on a processor what
/// is interrupted most is what runs longest), whichever leaves less between kernels. Where there are enough samples to
/// see that kernels differ in it, each keeps its own. How much, is the share of the variance between series in that and
/// their own errors' (Efron and Morris 1975, "Data analysis using Stein's estimator"). The sum of
/// all series stays what it was.
/// @pre each series has `least_pooled_samples` or more. O(samples' bins).
[[nodiscard]] inline std::vector<pooled_mean> pooled_means(const std::vector<const series*>& all) {
  std::vector<detail::cut_series> cuts;
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
    detail::cut_series here;
    here.above = over / one->weight();
    // The bins err by a percent alike for both sums, so that the moments' own mean is the better start.
    here.mean = one->moments().mean() - here.above;
    const double mean = sum / one->weight();
    const double samples = static_cast<double>(one->count());
    const double unbiased = samples / (samples - 1.0);
    here.variance = std::max(0.0, squares / one->weight() - mean * mean) * unbiased;
    here.above_variance = std::max(0.0, over_squares / one->weight() - here.above * here.above) * unbiased;
    here.effective = one->moments().effective();
    here.weight = one->weight();
    cuts.push_back(here);
  }
  // What interrupts a kernel hits it once in a while or by the microsecond; whichever leaves less between series.
  const detail::shared_excess by_call(cuts, [](const detail::cut_series&) { return 1.0; });
  const detail::shared_excess by_length(cuts, [](const detail::cut_series& one) { return one.mean; });
  const detail::shared_excess& shared = by_length.between() < by_call.between() ? by_length : by_call;
  std::vector<pooled_mean> means;
  for (const detail::cut_series& one : cuts) {
    const double own = shared.own_part(one);
    const double mean = one.mean + own * one.above + (1.0 - own) * shared.of(one);
    const double half = 1.959964 * std::sqrt((one.variance + own * one.above_variance) / one.effective +
                                             (1.0 - own) * shared.uncertainty(one));
    means.push_back({mean, {mean - half, mean + half}});
  }
  return means;
}

}  // namespace dnnopt::profile

#endif  // DNNOPT_PROFILE_POOLED_MEANS_HPP
