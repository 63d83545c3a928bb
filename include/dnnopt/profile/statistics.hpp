// Owns the streaming statistics of the profiler: weighted moments and percentiles in constant memory, with confidence
// intervals.
#ifndef DNNOPT_PROFILE_STATISTICS_HPP
#define DNNOPT_PROFILE_STATISTICS_HPP

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace dnnopt::profile {

/// A closed interval of a statistic.
struct interval {
  double lower = 0.0;
  double upper = 0.0;
};

/// Mean and variance of weighted samples, one pass, numerically stable (West's update).
class running_moments {
 public:
  /// Adds a sample; `weight` > 0 is the inverse probability that it was picked.
  void add(double value, double weight = 1.0) noexcept {
    ++count_;
    weight_ += weight;
    weight_squares_ += weight * weight;
    const double delta = value - mean_;
    mean_ += delta * weight / weight_;
    sum_squares_ += weight * delta * (value - mean_);
    min_ = std::min(min_, value);
    max_ = std::max(max_, value);
  }

  /// Adds what another accumulator has seen.
  void merge(const running_moments& other) noexcept {
    if (other.count_ == 0) return;
    const double total = weight_ + other.weight_;
    const double delta = other.mean_ - mean_;
    sum_squares_ += other.sum_squares_ + delta * delta * weight_ * other.weight_ / total;
    mean_ += delta * other.weight_ / total;
    weight_ = total;
    weight_squares_ += other.weight_squares_;
    count_ += other.count_;
    min_ = std::min(min_, other.min_);
    max_ = std::max(max_, other.max_);
  }

  [[nodiscard]] std::uint64_t count() const noexcept { return count_; }
  [[nodiscard]] double weight() const noexcept { return weight_; }
  [[nodiscard]] double mean() const noexcept { return mean_; }
  [[nodiscard]] double min() const noexcept { return count_ == 0 ? 0.0 : min_; }
  [[nodiscard]] double max() const noexcept { return count_ == 0 ? 0.0 : max_; }

  /// Sample variance; zero for fewer than two samples.
  [[nodiscard]] double variance() const noexcept {
    const double freedom = weight_ - weight_squares_ / std::max(weight_, 1e-300);
    return count_ < 2 || freedom <= 0.0 ? 0.0 : sum_squares_ / freedom;
  }
  [[nodiscard]] double stddev() const noexcept { return std::sqrt(variance()); }

  /// How many samples of equal weight would tell the mean as well (Kish 1965).
  [[nodiscard]] double effective() const noexcept { return weight_ * weight_ / std::max(weight_squares_, 1e-300); }

  /// Confidence interval of the mean from the normal distribution; `z` = 1.96 for 95%. Infinite for one sample or none.
  [[nodiscard]] interval mean_interval(double z = 1.959964) const noexcept {
    if (count_ < 2) return {-std::numeric_limits<double>::infinity(), std::numeric_limits<double>::infinity()};
    const double half = z * std::sqrt(variance() / effective());
    return {mean_ - half, mean_ + half};
  }

 private:
  std::uint64_t count_ = 0;
  double weight_ = 0.0;
  double weight_squares_ = 0.0;
  double mean_ = 0.0;
  double sum_squares_ = 0.0;
  double min_ = std::numeric_limits<double>::infinity();
  double max_ = -std::numeric_limits<double>::infinity();
};

/// Percentiles of non-negative samples within a stated relative error, in constant memory: a histogram whose bin edges
/// grow geometrically. At 1% error the range 1e-3..1e15 needs 2,073 bins of 8 bytes, and only the span in use is
/// stored.
class quantile_sketch {
 public:
  /// @pre 0 < relative_error < 1.
  explicit quantile_sketch(double relative_error = 0.01)
      : growth_((1.0 + relative_error) / (1.0 - relative_error)), log_growth_(std::log(growth_)) {}

  /// Adds a sample; negative values count as zero. Amortised constant time.
  void add(double value, double weight = 1.0) {
    total_ += weight;
    if (!(value > smallest)) {
      zeros_ += weight;
      return;
    }
    const int bin = bin_of(std::min(value, largest));
    if (bins_.empty()) {
      first_ = bin;
      bins_.push_back(0.0);
    } else if (bin < first_) {
      bins_.insert(bins_.begin(), static_cast<std::size_t>(first_ - bin), 0.0);
      first_ = bin;
    } else if (bin >= first_ + static_cast<int>(bins_.size())) {
      bins_.resize(static_cast<std::size_t>(bin - first_) + 1, 0.0);
    }
    bins_[static_cast<std::size_t>(bin - first_)] += weight;
  }

  /// Adds what another sketch of the same relative error has seen.
  void merge(const quantile_sketch& other) {
    for (std::size_t i = 0; i < other.bins_.size(); ++i)
      if (other.bins_[i] > 0.0) add(value_of(other.first_ + static_cast<int>(i)), other.bins_[i]);
    zeros_ += other.zeros_;
    total_ += other.zeros_;
  }

  /// The value below which a share `q` in [0, 1] of the weight lies; zero when empty. Linear in the bins.
  [[nodiscard]] double quantile(double q) const noexcept {
    if (total_ <= 0.0) return 0.0;
    const double target = q * total_;
    double seen = zeros_;
    if (seen >= target && zeros_ > 0.0) return 0.0;
    for (std::size_t i = 0; i < bins_.size(); ++i) {
      seen += bins_[i];
      if (bins_[i] > 0.0 && seen >= target * (1.0 - 1e-12)) return value_of(first_ + static_cast<int>(i));
    }
    return bins_.empty() ? 0.0 : value_of(first_ + static_cast<int>(bins_.size()) - 1);
  }

  /// Calls `visit(value, weight)` for each bin that has any, with its middle.
  template <class Visit>
  void each(const Visit& visit) const {
    if (zeros_ > 0.0) visit(0.0, zeros_);
    for (std::size_t i = 0; i < bins_.size(); ++i)
      if (bins_[i] > 0.0) visit(value_of(first_ + static_cast<int>(i)), bins_[i]);
  }

  [[nodiscard]] double total_weight() const noexcept { return total_; }
  /// Bins stored, to bound memory.
  [[nodiscard]] std::size_t bins() const noexcept { return bins_.size(); }

  /// Multiplies the weight of all that was seen, so that new samples count more.
  void fade(double factor) noexcept {
    for (double& bin : bins_) bin *= factor;
    zeros_ *= factor;
    total_ *= factor;
  }

  void clear() noexcept {
    bins_.clear();
    zeros_ = total_ = 0.0;
  }

 private:
  static constexpr double smallest = 1e-3;
  static constexpr double largest = 1e15;

  [[nodiscard]] int bin_of(double value) const noexcept {
    return static_cast<int>(std::ceil(std::log(value) / log_growth_));
  }
  /// The middle of a bin: its relative distance to both edges is the sketch's error.
  [[nodiscard]] double value_of(int bin) const noexcept { return 2.0 * std::pow(growth_, bin) / (growth_ + 1.0); }

  double growth_;
  double log_growth_;
  int first_ = 0;
  double zeros_ = 0.0;
  double total_ = 0.0;
  std::vector<double> bins_;
};

/// Exact percentile of a small sample by linear interpolation between order statistics; reorders `values`.
/// @pre values is not empty and 0 <= q <= 1.
[[nodiscard]] inline double exact_quantile(std::vector<double>& values, double q) {
  const double position = q * static_cast<double>(values.size() - 1);
  const auto below = static_cast<std::size_t>(position);
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(below), values.end());
  const double low = values[below];
  if (below + 1 == values.size()) return low;
  const double high = *std::min_element(values.begin() + static_cast<std::ptrdiff_t>(below) + 1, values.end());
  return low + (position - static_cast<double>(below)) * (high - low);
}

/// Mean of the middle half: as deaf to outliers as the median nearly, and finer than the tick of the clock that stamped
/// the values. Reorders `values`. @pre values is not empty. O(n log n).
[[nodiscard]] inline double middle_mean(std::vector<double>& values) {
  std::sort(values.begin(), values.end());
  const std::size_t first = values.size() / 4;
  const std::size_t last = values.size() - first;
  double sum = 0.0;
  for (std::size_t i = first; i < last; ++i) sum += values[i];
  return sum / static_cast<double>(last - first);
}

/// Half the width of the median's distribution-free 95% interval (order statistics); infinite below six values, of
/// which there is none. Reorders `values`. O(n log n).
[[nodiscard]] inline double median_uncertainty(std::vector<double>& values) {
  if (values.size() < 6) return std::numeric_limits<double>::infinity();
  std::sort(values.begin(), values.end());
  const double n = static_cast<double>(values.size());
  const auto below = static_cast<std::size_t>(std::max(0.0, std::floor(n / 2.0 - 0.98 * std::sqrt(n))));
  return 0.5 * (values[values.size() - 1 - below] - values[below]);
}

/// A location of a sample with the interval in which the truth lies 19 times of 20.
struct location {
  double value = 0.0;
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();
  [[nodiscard]] double width() const noexcept { return high - low; }
  [[nodiscard]] double half_width() const noexcept { return 0.5 * (high - low); }
};

namespace detail {

/// Pairs i <= j of the sorted `values` whose mean is at most `limit`. Linear.
[[nodiscard]] inline double means_up_to(const std::vector<double>& values, double limit) noexcept {
  double count = 0.0;
  std::size_t end = values.size();
  for (std::size_t i = 0; i < end; ++i) {
    while (end > i && values[i] + values[end - 1] > 2.0 * limit) --end;
    count += static_cast<double>(end - std::min(i, end));
  }
  return count;
}

/// The mean of two of the sorted `values` that `rank` of all such means do not exceed, by bisection.
[[nodiscard]] inline double mean_of_rank(const std::vector<double>& values, double rank) noexcept {
  double low = values.front();
  double high = values.back();
  for (int step = 0; step < 60 && low < high; ++step) {
    const double middle = low + (high - low) / 2.0;
    (means_up_to(values, middle) < rank ? low : high) = middle;
  }
  return high;
}

}  // namespace detail

/// The pseudo-median (Hodges and Lehmann 1963): the median of the means of all pairs of values, with the 95% interval
/// that the signed-rank test gives it. For values that are symmetric about their median, as differences of two things
/// measured in random order are, it estimates that median and nearly as well as the mean does for normal values (96%;
/// the median 64%), yet outliers hardly move it. Values must be independent. The interval is infinite below six values.
/// Reorders `values`. @pre values is not empty. O(n log n), normal approximation of the ranks.
[[nodiscard]] inline location pseudo_median(std::vector<double>& values) {
  std::sort(values.begin(), values.end());
  const double n = static_cast<double>(values.size());
  const double pairs = n * (n + 1.0) / 2.0;
  location found;
  found.value = 0.5 * (detail::mean_of_rank(values, std::floor((pairs + 1.0) / 2.0)) +
                       detail::mean_of_rank(values, std::floor(pairs / 2.0) + 1.0));
  if (values.size() < 6) return found;
  const double below = pairs / 2.0 - 1.959964 * std::sqrt(n * (n + 1.0) * (2.0 * n + 1.0) / 24.0);
  const double rank = std::max(1.0, std::floor(below));
  found.low = detail::mean_of_rank(values, rank);
  found.high = detail::mean_of_rank(values, pairs + 1.0 - rank);
  return found;
}

/// Everything a row of a table says about one series of durations, in constant memory.
class series {
 public:
  void add(double value, double weight = 1.0) {
    if (moments_.count() == 0) first_ = value;
    moments_.add(value, weight);
    sketch_.add(value, weight);
  }
  /// Adds what another series has seen.
  void merge(const series& other) {
    if (other.count() == 0) return;
    if (count() == 0) first_ = other.first_;
    moments_.merge(other.moments_);
    sketch_.merge(other.sketch_);
  }
  [[nodiscard]] std::uint64_t count() const noexcept { return moments_.count(); }
  /// Estimated number of events that the samples stand for.
  [[nodiscard]] double weight() const noexcept { return moments_.weight(); }
  [[nodiscard]] double sum() const noexcept { return moments_.mean() * moments_.weight(); }
  [[nodiscard]] double first() const noexcept { return first_; }
  [[nodiscard]] const running_moments& moments() const noexcept { return moments_; }
  /// Percentile within 1%, never outside the smallest and largest sample.
  [[nodiscard]] double quantile(double q) const noexcept {
    return std::clamp(sketch_.quantile(q), moments_.min(), moments_.max());
  }
  /// Calls `visit(value, weight)` for all samples, values within 1%.
  template <class Visit>
  void each(const Visit& visit) const {
    sketch_.each(visit);
  }

 private:
  double first_ = 0.0;
  running_moments moments_;
  quantile_sketch sketch_;
};

}  // namespace dnnopt::profile

#endif  // DNNOPT_PROFILE_STATISTICS_HPP
