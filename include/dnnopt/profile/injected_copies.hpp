// Owns the ground truth of a kernel's time: the slope of end-to-end time over injected copies of it.
#ifndef DNNOPT_PROFILE_INJECTED_COPIES_HPP
#define DNNOPT_PROFILE_INJECTED_COPIES_HPP

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <random>
#include <utility>
#include <vector>

#include <dnnopt/error.hpp>
#include <dnnopt/profile/statistics.hpp>

namespace dnnopt::profile {

/// Runs one inference with a kernel enqueued `copies` times more, and returns its end-to-end nanoseconds.
using copied_inference = std::function<double(std::size_t copies)>;

struct copy_options {
  std::size_t most_copies = 20;  ///< copies go from 0 to this
  std::size_t rounds = 15;       ///< inferences per number of copies
  std::uint64_t seed = 1;        ///< of the order of measurement
};

/// A slope with its spread.
struct copy_slope {
  double ns_per_copy = 0.0;
  double low_ns = 0.0;  ///< 95% interval, from the residuals of the line
  double high_ns = 0.0;
};

/// Time of one more copy: least squares through the medians of end-to-end time over 0, 1, ..., most_copies copies
/// (nnPerf section 5.2 takes one copy; a line over many divides the noise). Inferences are measured in random order, so
/// that a drift of the device's clock does not lean on the slope. The first point is left out: between zero and one
/// copy the device may still hide launches. Errors: invalid_argument for fewer than three copies or no round.
[[nodiscard]] inline copy_slope measure_copy_slope(const copied_inference& run, const copy_options& options = {}) {
  if (options.most_copies < 3 || options.rounds == 0)
    throw error(errc::invalid_argument, "a slope needs at least 3 copies and 1 round, not " +
                                            std::to_string(options.most_copies) + " and " +
                                            std::to_string(options.rounds));
  std::vector<std::size_t> order;
  for (std::size_t r = 0; r < options.rounds; ++r)
    for (std::size_t c = 1; c <= options.most_copies; ++c) order.push_back(c);
  std::mt19937_64 random(options.seed);
  std::shuffle(order.begin(), order.end(), random);
  static_cast<void>(run(options.most_copies));
  std::vector<std::vector<double>> times(options.most_copies + 1);
  for (const std::size_t copies : order) times[copies].push_back(run(copies));

  double n = 0.0, mean_x = 0.0, mean_y = 0.0;
  std::vector<std::pair<double, double>> points;
  for (std::size_t c = 1; c <= options.most_copies; ++c)
    points.emplace_back(static_cast<double>(c), exact_quantile(times[c], 0.5));
  for (const auto& [x, y] : points) {
    n += 1.0;
    mean_x += (x - mean_x) / n;
    mean_y += (y - mean_y) / n;
  }
  double sxx = 0.0, sxy = 0.0;
  for (const auto& [x, y] : points) {
    sxx += (x - mean_x) * (x - mean_x);
    sxy += (x - mean_x) * (y - mean_y);
  }
  const double slope = sxy / sxx;
  double residual = 0.0;
  for (const auto& [x, y] : points) residual += std::pow(y - mean_y - slope * (x - mean_x), 2);
  const double half = 1.959964 * std::sqrt(residual / (n - 2.0) / sxx);
  return {slope, slope - half, slope + half};
}

/// Slopes of end-to-end time from pairs of inferences, one with half of `most_copies` copies more than the other, so
/// that all pairs weigh the same, and each number from 1 to most_copies comes as often. Pairs come in random order, and
/// so do the two of a pair; what changes slowly is in both alike. Appends most_copies / 2 slopes; `pseudo_median` of
/// many is the time of one more copy, and its interval needs no assumption on the noise but that pairs are independent.
/// Errors: invalid_argument for an odd number of copies or none.
template <class Random>
void measure_pair_slopes(const copied_inference& run, std::size_t most_copies, Random& random,
                         std::vector<double>& slopes) {
  const std::size_t half = most_copies / 2;
  if (half == 0 || most_copies % 2 != 0)
    throw error(errc::invalid_argument,
                "pairs need an even number of copies, at least 2, not " + std::to_string(most_copies));
  std::vector<std::size_t> order(half);
  for (std::size_t i = 0; i < half; ++i) order[i] = i + 1;
  std::shuffle(order.begin(), order.end(), random);
  for (const std::size_t few : order) {
    const bool many_first = (random() >> 16) % 2 == 0;
    const double first = run(many_first ? few + half : few);
    const double second = run(many_first ? few : few + half);
    slopes.push_back((many_first ? first - second : second - first) / static_cast<double>(half));
  }
}

/// A kernel's execution time: what a copy of it adds, less what a copy of an empty kernel adds beyond nothing. For
/// kernels that hide the launch of the next the empty kernel's slope must not be taken off; `launch_hidden` says so.
[[nodiscard]] inline double true_kernel_ns(const copy_slope& kernel, const copy_slope& empty,
                                           bool launch_hidden = false) {
  return launch_hidden ? kernel.ns_per_copy : kernel.ns_per_copy - empty.ns_per_copy;
}

}  // namespace dnnopt::profile

#endif  // DNNOPT_PROFILE_INJECTED_COPIES_HPP
