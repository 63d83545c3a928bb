// Owns the published heuristics that give every buffer an offset: an order of the buffers and a rule for choosing a
// gap.
#ifndef DNNOPT_MEMORY_OFFSETS_OFFSET_HEURISTICS_HPP
#define DNNOPT_MEMORY_OFFSETS_OFFSET_HEURISTICS_HPP

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include <dnnopt/memory/timeline.hpp>
#include <dnnopt/memory/usage.hpp>

namespace dnnopt::memory {

/// Which of the gaps between the buffers placed so far takes the next buffer.
enum class gap_rule {
  best_fit,   ///< the smallest gap that is large enough, the lowest of equals
  first_fit,  ///< the lowest gap that is large enough
};

/// Places the buffers one by one in a given order, each in a gap between those buffers placed before that are alive
/// with it, else above them. The scratch is kept from call to call, so a repeated use allocates nothing.
class gap_placer {
 public:
  /// Fills `offsets` (resized to the number of records) and returns the size of the arena. `order` holds every index
  /// once. Stops early and returns the largest integer as soon as the arena would exceed `limit`. O(n^2), the inner
  /// loop over a sorted array.
  std::int64_t place(std::span<const buffer_usage> usages, std::span<const std::uint32_t> order, gap_rule rule,
                     std::vector<std::int64_t>& offsets,
                     std::int64_t limit = std::numeric_limits<std::int64_t>::max()) {
    placed_.clear();
    placed_.reserve(order.size());
    offsets.resize(usages.size());
    std::int64_t bytes = 0;
    for (const std::uint32_t buffer : order) {
      const buffer_usage& usage = usages[buffer];
      if (usage.size == 0) {
        offsets[buffer] = 0;
        continue;
      }
      std::int64_t top = 0;
      std::int64_t chosen = -1;
      std::int64_t chosen_gap = std::numeric_limits<std::int64_t>::max();
      for (const block& other : placed_) {
        if (other.upper <= usage.lower || usage.upper <= other.lower) continue;
        const std::int64_t gap = other.offset - top;
        if (gap >= usage.size && gap < chosen_gap) {
          chosen = top;
          chosen_gap = gap;
          if (rule == gap_rule::first_fit) break;
        }
        top = std::max(top, align_up(other.end, usage.alignment));
      }
      if (chosen < 0) chosen = top;
      offsets[buffer] = chosen;
      bytes = std::max(bytes, chosen + usage.size);
      if (bytes > limit) return std::numeric_limits<std::int64_t>::max();
      const block mine{usage.lower, usage.upper, chosen, chosen + usage.size};
      placed_.insert(std::upper_bound(placed_.begin(), placed_.end(), mine,
                                      [](const block& a, const block& b) { return a.offset < b.offset; }),
                     mine);
    }
    return bytes;
  }

 private:
  struct block {
    std::int64_t lower;
    std::int64_t upper;
    std::int64_t offset;
    std::int64_t end;
  };
  std::vector<block> placed_;
};

/// Buffer indices by decreasing size * lifetime; equal ones by decreasing size.
[[nodiscard]] inline std::vector<std::uint32_t> order_by_area(std::span<const buffer_usage> usages) {
  auto order = order_by_size(usages);
  const auto area = [&](std::uint32_t b) {
    return static_cast<double>(usages[b].size) * static_cast<double>(usages[b].upper - usages[b].lower);
  };
  std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) { return area(a) > area(b); });
  return order;
}

/// Buffer indices by decreasing lifetime; equal ones by decreasing size.
[[nodiscard]] inline std::vector<std::uint32_t> order_by_lifetime(std::span<const buffer_usage> usages) {
  auto order = order_by_size(usages);
  std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    return usages[a].upper - usages[a].lower > usages[b].upper - usages[b].lower;
  });
  return order;
}

/// Buffer indices by decreasing size; equal ones by decreasing lifetime (XLA GlobalDecreasingSizeBestFitHeap, spatial).
[[nodiscard]] inline std::vector<std::uint32_t> order_by_size_then_lifetime(std::span<const buffer_usage> usages) {
  auto order = order_by_lifetime(usages);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return usages[a].size > usages[b].size; });
  return order;
}

/// Buffers as SoD2 meets them (section 4.4.1): those alive at the peak first, by decreasing size, then outward in both
/// directions, those nearer to the peak first. The needed memory falls away from the peak in most graphs, so later
/// buffers find their slots among freed ones. O(n log n).
[[nodiscard]] inline std::vector<std::uint32_t> order_outward_from_peak(std::span<const buffer_usage> usages) {
  const elementary_timeline axis = make_elementary_timeline(usages);
  const auto peak = static_cast<std::uint32_t>(std::max_element(axis.live_sums.begin(), axis.live_sums.end()) -
                                               axis.live_sums.begin());
  const auto distance = [&](std::uint32_t b) {
    const axis_range life = axis.lifetimes[b];
    if (life.end <= peak) return peak - life.end + 1;
    return life.begin > peak ? life.begin - peak : 0U;
  };
  auto order = order_by_size(usages);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return distance(a) < distance(b); });
  return order;
}

}  // namespace dnnopt::memory

#endif  // DNNOPT_MEMORY_OFFSETS_OFFSET_HEURISTICS_HPP
