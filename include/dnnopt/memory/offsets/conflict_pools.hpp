// Owns planning over explicit conflict lists and several bounded pools: TVM USMP's two greedy orders and hill climbing.
#ifndef DNNOPT_MEMORY_OFFSETS_CONFLICT_POOLS_HPP
#define DNNOPT_MEMORY_OFFSETS_CONFLICT_POOLS_HPP

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <dnnopt/memory/random_sequence.hpp>
#include <dnnopt/memory/timeline.hpp>
#include <dnnopt/memory/usage.hpp>

namespace dnnopt::memory {

/// A buffer whose conflicts are listed instead of following from a lifetime (memory inside operators, parallel
/// branches). A list may be one-sided; then only the buffer that names the other avoids it, as in TVM.
struct conflicting_buffer {
  std::int64_t size = 0;
  std::int64_t alignment = 1;
  std::vector<std::uint32_t> conflicts;
};

/// For every buffer its pool and offset, and the bytes used of every pool.
struct pool_plan {
  std::vector<std::size_t> pools;
  std::vector<std::int64_t> offsets;
  std::vector<std::int64_t> pool_bytes;
};

/// Strategies over conflict lists (TVM unified static memory planner, greedy.cc and hill_climb.cc).
enum class conflict_strategy {
  greedy_by_size,       ///< decreasing size, above the highest conflicting buffer
  greedy_by_conflicts,  ///< decreasing number of conflicts, above the highest conflicting buffer
  hill_climb            ///< first fit, swapping a buffer below the top with a neighbour's neighbour
};

/// A capacity without limit.
inline constexpr std::int64_t unbounded = std::numeric_limits<std::int64_t>::max();

namespace detail {

/// Places one buffer after the other, each in the first pool of the list where it fits.
class pool_placer {
 public:
  pool_placer(std::span<const conflicting_buffer> buffers, std::span<const std::int64_t> capacities)
      : buffers_(buffers), capacities_(capacities) {}

  static constexpr std::size_t nowhere = static_cast<std::size_t>(-1);

  /// `gaps`: whether a buffer may go below a conflicting one where there is room, else always above all of them.
  /// Returns false and names the buffer in `misfit` when one fits no pool.
  bool place(std::span<const std::uint32_t> order, bool gaps, pool_plan& plan, std::uint32_t& misfit) {
    plan.pools.assign(buffers_.size(), nowhere);
    plan.offsets.assign(buffers_.size(), 0);
    plan.pool_bytes.assign(capacities_.size(), 0);
    for (const std::uint32_t buffer : order) {
      const conflicting_buffer& mine = buffers_[buffer];
      placed_.clear();
      for (const std::uint32_t other : mine.conflicts) {
        if (other != buffer && plan.pools[other] != nowhere) placed_.push_back(other);
      }
      std::sort(placed_.begin(), placed_.end(),
                [&](std::uint32_t a, std::uint32_t b) { return plan.offsets[a] < plan.offsets[b]; });
      std::size_t chosen = nowhere;
      std::int64_t offset = 0;
      for (std::size_t pool = 0; pool < capacities_.size() && chosen == nowhere; ++pool) {
        offset = 0;
        for (const std::uint32_t other : placed_) {
          if (plan.pools[other] != pool) continue;
          if (gaps && offset + mine.size <= plan.offsets[other]) break;
          offset = std::max(offset, align_up(plan.offsets[other] + buffers_[other].size, mine.alignment));
        }
        if (mine.size <= capacities_[pool] && offset <= capacities_[pool] - mine.size) chosen = pool;
      }
      if (chosen == nowhere) {
        misfit = buffer;
        return false;
      }
      plan.pools[buffer] = chosen;
      plan.offsets[buffer] = offset;
      plan.pool_bytes[chosen] = std::max(plan.pool_bytes[chosen], offset + mine.size);
    }
    return true;
  }

 private:
  std::span<const conflicting_buffer> buffers_;
  std::span<const std::int64_t> capacities_;
  std::vector<std::uint32_t> placed_;
};

[[nodiscard]] inline std::int64_t total_bytes(const pool_plan& plan) {
  std::int64_t total = 0;
  for (const std::int64_t bytes : plan.pool_bytes) total += bytes;
  return total;
}

/// Hill climbing with a falling chance of accepting worse plans; `attempts` placements, ends at `desired` bytes.
inline pool_plan climb(std::span<const conflicting_buffer> buffers, std::span<const std::int64_t> capacities,
                       std::vector<std::uint32_t> order, std::int64_t desired, std::size_t attempts,
                       std::uint64_t seed) {
  pool_placer placer(buffers, capacities);
  random_sequence random(seed);
  std::vector<std::size_t> rank(buffers.size());
  for (std::size_t i = 0; i < order.size(); ++i) rank[order[i]] = i;
  const auto exchange = [&](std::uint32_t a, std::uint32_t b) {
    std::swap(order[rank[a]], order[rank[b]]);
    std::swap(rank[a], rank[b]);
  };
  pool_plan best;
  pool_plan current;
  pool_plan trial;
  std::int64_t best_bytes = unbounded;
  std::int64_t current_bytes = unbounded;
  std::pair<std::uint32_t, std::uint32_t> swapped{0, 0};
  std::uint32_t misfit = 0;
  std::vector<std::uint32_t> tops;
  std::vector<std::uint32_t> first_level;
  std::vector<std::uint32_t> second_level;
  for (std::size_t attempt = 0; attempt < attempts; ++attempt) {
    const bool fits = placer.place(order, true, trial, misfit);
    const std::int64_t bytes = fits ? total_bytes(trial) : unbounded;
    bool accept = current_bytes == unbounded || bytes < current_bytes;
    if (!accept && fits && attempt > 0) {
      const double worse = static_cast<double>(bytes - current_bytes) / static_cast<double>(bytes);
      accept = static_cast<double>(random.below(100)) < 50.0 * worse / static_cast<double>(attempt);
    }
    if (accept) {
      std::swap(current, trial);
      current_bytes = bytes;
      if (fits && bytes < best_bytes) {
        best = current;
        best_bytes = bytes;
        if (best_bytes <= desired) break;
      }
    } else {
      exchange(swapped.first, swapped.second);
    }
    swapped = {0, 0};
    tops.clear();
    for (std::uint32_t b = 0; b < buffers.size(); ++b) {
      const std::size_t pool = current.pools[b];
      if (pool != pool_placer::nowhere && current.offsets[b] + buffers[b].size == current.pool_bytes[pool]) {
        tops.push_back(b);
      }
    }
    if (tops.empty()) continue;
    const std::uint32_t top = tops[random.below(tops.size())];
    first_level.clear();
    second_level.clear();
    for (const std::uint32_t near : buffers[top].conflicts) {
      if (rank[near] < rank[top]) first_level.push_back(near);
      for (const std::uint32_t far : buffers[near].conflicts) {
        if (rank[far] < rank[near]) second_level.push_back(far);
      }
    }
    if (first_level.empty()) continue;
    const std::uint32_t one = first_level[random.below(first_level.size())];
    const auto& from = !second_level.empty() && random.below(100) > 25 ? second_level : first_level;
    const std::uint32_t two = from[random.below(from.size())];
    swapped = {one, two};
    exchange(one, two);
  }
  return best;
}

}  // namespace detail

/// Plans buffers with explicit conflicts into pools of given capacities, tried in order (a fast and small one first).
/// Errors: memory_limit naming the buffer when one fits no pool, invalid_argument for a conflict that
/// names no buffer. Greedy: O(n log n + conflicts log); hill climbing: 500 such placements as in TVM, deterministic
/// for a seed. `desired` ends the climb early when that few bytes suffice.
[[nodiscard]] inline pool_plan plan_pools(std::span<const conflicting_buffer> buffers,
                                          std::span<const std::int64_t> capacities, conflict_strategy strategy,
                                          std::int64_t desired = 0, std::uint64_t seed = 1) {
  std::vector<std::uint32_t> order;
  for (std::uint32_t b = 0; b < buffers.size(); ++b) {
    order.push_back(b);
    for (const std::uint32_t other : buffers[b].conflicts) {
      if (other >= buffers.size()) {
        throw error(errc::invalid_argument, "buffer " + std::to_string(b) + " conflicts with " + std::to_string(other) +
                                                " of " + std::to_string(buffers.size()));
      }
    }
  }
  std::sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    const auto size_a = buffers[a].size;
    const auto size_b = buffers[b].size;
    const auto conflicts_a = buffers[a].conflicts.size();
    const auto conflicts_b = buffers[b].conflicts.size();
    if (strategy == conflict_strategy::greedy_by_conflicts && conflicts_a != conflicts_b) {
      return conflicts_a > conflicts_b;
    }
    if (size_a != size_b) return size_a > size_b;
    if (conflicts_a != conflicts_b) return conflicts_a > conflicts_b;
    return a > b;
  });
  pool_plan plan;
  std::uint32_t misfit = 0;
  if (strategy == conflict_strategy::hill_climb) {
    plan = detail::climb(buffers, capacities, order, desired, 500, seed);
    if (plan.pools.size() == buffers.size()) return plan;
  }
  if (!detail::pool_placer(buffers, capacities).place(order, false, plan, misfit)) {
    throw error(errc::memory_limit, "buffer " + std::to_string(misfit) + " of " + std::to_string(buffers[misfit].size) +
                                        " bytes fits none of " + std::to_string(capacities.size()) + " pools");
  }
  return plan;
}

/// Conflict lists of usage records, both ways. O(n log n + conflicts).
[[nodiscard]] inline std::vector<conflicting_buffer> conflicts_of(std::span<const buffer_usage> usages) {
  std::vector<conflicting_buffer> buffers(usages.size());
  std::vector<std::uint32_t> live;
  for (std::size_t i = 0; i < usages.size(); ++i) {
    buffers[i].size = usages[i].size;
    buffers[i].alignment = usages[i].alignment;
  }
  for (const std::uint32_t buffer : order_by_begin(usages)) {
    std::erase_if(live, [&](std::uint32_t other) { return usages[other].upper <= usages[buffer].lower; });
    for (const std::uint32_t other : live) {
      if (!conflict(usages[buffer], usages[other])) continue;
      buffers[buffer].conflicts.push_back(other);
      buffers[other].conflicts.push_back(buffer);
    }
    live.push_back(buffer);
  }
  return buffers;
}

}  // namespace dnnopt::memory

#endif  // DNNOPT_MEMORY_OFFSETS_CONFLICT_POOLS_HPP
