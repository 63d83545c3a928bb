// Owns the compressed time axis of usage records: elementary intervals between events and live sums over them.
#ifndef DNNOPT_MEMORY_TIMELINE_HPP
#define DNNOPT_MEMORY_TIMELINE_HPP

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <dnnopt/memory/usage.hpp>

namespace dnnopt::memory {

/// Half-open range of positions on a compressed axis.
struct axis_range {
  std::uint32_t begin = 0;
  std::uint32_t end = 0;
};

/// Elementary intervals: between two neighbouring events the set of live buffers does not change. For every buffer the
/// range of intervals that it lives through, and for every interval the sum of live sizes.
struct elementary_timeline {
  std::vector<axis_range> lifetimes;
  std::vector<std::int64_t> live_sums;
};

/// Builds the axis from all distinct begin and end times. O(n log n).
[[nodiscard]] inline elementary_timeline make_elementary_timeline(std::span<const buffer_usage> usages) {
  std::vector<std::int64_t> times;
  times.reserve(2 * usages.size());
  for (const buffer_usage& usage : usages) {
    times.push_back(usage.lower);
    times.push_back(usage.upper);
  }
  std::sort(times.begin(), times.end());
  times.erase(std::unique(times.begin(), times.end()), times.end());
  elementary_timeline axis;
  axis.live_sums.assign(times.empty() ? 0 : times.size() - 1, 0);
  axis.lifetimes.reserve(usages.size());
  std::vector<std::int64_t> change(times.size() + 1, 0);
  for (const buffer_usage& usage : usages) {
    const auto begin = std::lower_bound(times.begin(), times.end(), usage.lower) - times.begin();
    const auto end = std::lower_bound(times.begin(), times.end(), usage.upper) - times.begin();
    axis.lifetimes.push_back({static_cast<std::uint32_t>(begin), static_cast<std::uint32_t>(end)});
    change[static_cast<std::size_t>(begin)] += usage.size;
    change[static_cast<std::size_t>(end)] -= usage.size;
  }
  std::int64_t sum = 0;
  for (std::size_t t = 0; t < axis.live_sums.size(); ++t) {
    sum += change[t];
    axis.live_sums[t] = sum;
  }
  return axis;
}

/// The position of the largest value of any range of a fixed array, the earliest of equals. Sparse table: O(n log n)
/// space, O(1) a query.
class range_maximum {
 public:
  explicit range_maximum(std::span<const std::int64_t> values) : values_(values.begin(), values.end()) {
    levels_.emplace_back(values.size());
    for (std::size_t i = 0; i < values.size(); ++i) levels_[0][i] = static_cast<std::uint32_t>(i);
    for (std::size_t width = 2; width <= values.size(); width *= 2) {
      const auto& half = levels_.back();
      std::vector<std::uint32_t> level(values.size() - width + 1);
      for (std::size_t i = 0; i < level.size(); ++i) level[i] = better(half[i], half[i + width / 2]);
      levels_.push_back(std::move(level));
    }
  }

  /// Precondition: range.begin < range.end <= size of the array.
  [[nodiscard]] std::uint32_t position(axis_range range) const {
    const std::uint32_t length = range.end - range.begin;
    const auto level = static_cast<std::size_t>(std::bit_width(length)) - 1;
    return better(levels_[level][range.begin], levels_[level][range.end - (std::uint32_t{1} << level)]);
  }

 private:
  [[nodiscard]] std::uint32_t better(std::uint32_t left, std::uint32_t right) const {
    if (values_[left] != values_[right]) return values_[left] > values_[right] ? left : right;
    return std::min(left, right);
  }

  std::vector<std::int64_t> values_;
  std::vector<std::vector<std::uint32_t>> levels_;
};

/// The order in which "by breadth" strategies meet the buffers: times by decreasing live sum (earlier first), within a
/// time buffers by decreasing size (Pisarchyk and Lee 2020, Algorithm 1). A buffer is met at the broadest time of its
/// life, so no per-time lists are needed: O(n log n).
[[nodiscard]] inline std::vector<std::uint32_t> order_by_breadth(std::span<const buffer_usage> usages) {
  const elementary_timeline axis = make_elementary_timeline(usages);
  const range_maximum broadest(axis.live_sums);
  std::vector<std::uint32_t> met(usages.size());
  std::vector<std::uint32_t> order(usages.size());
  for (std::size_t i = 0; i < usages.size(); ++i) {
    met[i] = broadest.position(axis.lifetimes[i]);
    order[i] = static_cast<std::uint32_t>(i);
  }
  std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    if (met[a] != met[b]) {
      const std::int64_t breadth_a = axis.live_sums[met[a]];
      const std::int64_t breadth_b = axis.live_sums[met[b]];
      return breadth_a != breadth_b ? breadth_a > breadth_b : met[a] < met[b];
    }
    return usages[a].size > usages[b].size;
  });
  return order;
}

/// Buffer indices by decreasing size; equal sizes stay in the order of the records.
[[nodiscard]] inline std::vector<std::uint32_t> order_by_size(std::span<const buffer_usage> usages) {
  std::vector<std::uint32_t> order(usages.size());
  for (std::size_t i = 0; i < usages.size(); ++i) order[i] = static_cast<std::uint32_t>(i);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return usages[a].size > usages[b].size; });
  return order;
}

/// Buffer indices by increasing begin of life; equal ones stay in the order of the records.
[[nodiscard]] inline std::vector<std::uint32_t> order_by_begin(std::span<const buffer_usage> usages) {
  std::vector<std::uint32_t> order(usages.size());
  for (std::size_t i = 0; i < usages.size(); ++i) order[i] = static_cast<std::uint32_t>(i);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return usages[a].lower < usages[b].lower; });
  return order;
}

}  // namespace dnnopt::memory

#endif  // DNNOPT_MEMORY_TIMELINE_HPP
