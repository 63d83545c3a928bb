// Owns the independent check of a memory plan: no two live buffers share bytes, offsets are aligned, sizes fit.
#ifndef DNNOPT_MEMORY_PLAN_CHECK_HPP
#define DNNOPT_MEMORY_PLAN_CHECK_HPP

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <dnnopt/memory/bounds.hpp>
#include <dnnopt/memory/usage.hpp>

namespace dnnopt::memory {

/// Says what is wrong with offsets in an arena of `bytes`, or nothing when they hold: every offset is aligned and
/// inside the arena, and no two buffers that are alive together share a byte. O(n log n); shares no code with the
/// planners, so that a fault of theirs cannot hide here.
[[nodiscard]] inline std::optional<std::string> find_offset_fault(std::span<const buffer_usage> usages,
                                                                  std::span<const std::int64_t> offsets,
                                                                  std::int64_t bytes) {
  if (usages.size() != offsets.size()) {
    return std::to_string(usages.size()) + " records but " + std::to_string(offsets.size()) + " offsets";
  }
  for (std::size_t i = 0; i < usages.size(); ++i) {
    const auto place = "buffer " + std::to_string(i) + " at offset " + std::to_string(offsets[i]);
    if (offsets[i] < 0 || offsets[i] > bytes - usages[i].size) {
      return place + " of size " + std::to_string(usages[i].size) + " leaves the arena of " + std::to_string(bytes);
    }
    if (offsets[i] % usages[i].alignment != 0) {
      return place + " is not aligned to " + std::to_string(usages[i].alignment);
    }
  }
  // As long as no fault was seen, live buffers are disjoint, so a new one can only meet its two neighbours.
  std::map<std::int64_t, std::size_t> live;
  for (const auto& event : detail::lifetime_events(usages)) {
    const std::size_t buffer = event.buffer;
    if (!event.begins) {
      live.erase(offsets[buffer]);
      continue;
    }
    const auto above = live.lower_bound(offsets[buffer]);
    const auto meets = [&](std::size_t other) {
      return "buffers " + std::to_string(buffer) + " and " + std::to_string(other) + " share bytes at time " +
             std::to_string(event.time) + ": offsets " + std::to_string(offsets[buffer]) + " and " +
             std::to_string(offsets[other]) + ", sizes " + std::to_string(usages[buffer].size) + " and " +
             std::to_string(usages[other].size);
    };
    if (above != live.end() && above->first < offsets[buffer] + usages[buffer].size) return meets(above->second);
    if (above != live.begin()) {
      const auto below = std::prev(above);
      if (below->first + usages[below->second].size > offsets[buffer]) return meets(below->second);
    }
    live.emplace(offsets[buffer], buffer);
  }
  return std::nullopt;
}

/// Says what is wrong with shared objects, or nothing when they hold: every buffer fits its object and no two buffers
/// of one object are alive together. O(n log n).
[[nodiscard]] inline std::optional<std::string> find_object_fault(std::span<const buffer_usage> usages,
                                                                  std::span<const std::size_t> object_ids,
                                                                  std::span<const std::int64_t> object_sizes) {
  if (usages.size() != object_ids.size()) {
    return std::to_string(usages.size()) + " records but " + std::to_string(object_ids.size()) + " object ids";
  }
  for (std::size_t i = 0; i < usages.size(); ++i) {
    if (object_ids[i] >= object_sizes.size()) {
      return "buffer " + std::to_string(i) + " names object " + std::to_string(object_ids[i]) + " of " +
             std::to_string(object_sizes.size());
    }
    if (usages[i].size > object_sizes[object_ids[i]]) {
      return "buffer " + std::to_string(i) + " of size " + std::to_string(usages[i].size) + " does not fit object " +
             std::to_string(object_ids[i]) + " of size " + std::to_string(object_sizes[object_ids[i]]);
    }
  }
  constexpr std::size_t free_object = static_cast<std::size_t>(-1);
  std::vector<std::size_t> holder(object_sizes.size(), free_object);
  for (const auto& event : detail::lifetime_events(usages)) {
    std::size_t& held = holder[object_ids[event.buffer]];
    if (!event.begins) {
      held = free_object;
    } else if (held != free_object) {
      return "buffers " + std::to_string(held) + " and " + std::to_string(event.buffer) + " share object " +
             std::to_string(object_ids[event.buffer]) + " at time " + std::to_string(event.time);
    } else {
      held = event.buffer;
    }
  }
  return std::nullopt;
}

/// Says which buffer reaches over the end of its shared object, or nothing where none does or there is one arena.
/// Precondition: find_offset_fault finds nothing. O(n objects).
[[nodiscard]] inline std::optional<std::string> find_crossing(std::span<const buffer_usage> usages,
                                                              const offset_plan& plan) {
  for (std::size_t i = 0; i < usages.size(); ++i)
    for (const std::int64_t begin : plan.objects)
      if (plan.offsets[i] < begin && begin < plan.offsets[i] + usages[i].size)
        return "buffer " + std::to_string(i) + " at offset " + std::to_string(plan.offsets[i]) + " of size " +
               std::to_string(usages[i].size) + " reaches into the object at " + std::to_string(begin);
  return std::nullopt;
}

/// Errors: verification_failed with the text of find_offset_fault or find_crossing when a plan does not hold or its
/// bytes differ from what its offsets need.
inline void check_plan(std::span<const buffer_usage> usages, const offset_plan& plan) {
  auto fault = find_offset_fault(usages, plan.offsets, plan.bytes);
  if (!fault) fault = find_crossing(usages, plan);
  if (fault) throw error(errc::verification_failed, "memory plan (" + plan.strategy + "): " + *fault);
  if (arena_bytes(usages, plan.offsets) != plan.bytes || plan.bytes < plan.lower_bound) {
    throw error(errc::verification_failed,
                "memory plan (" + plan.strategy + "): " + std::to_string(plan.bytes) + " bytes, offsets need " +
                    std::to_string(arena_bytes(usages, plan.offsets)) + ", bound " + std::to_string(plan.lower_bound));
  }
}

/// Errors: verification_failed with the text of find_object_fault when a plan does not hold.
inline void check_plan(std::span<const buffer_usage> usages, const object_plan& plan) {
  if (const auto fault = find_object_fault(usages, plan.object_ids, plan.object_sizes)) {
    throw error(errc::verification_failed, "object plan (" + plan.strategy + "): " + *fault);
  }
}

}  // namespace dnnopt::memory

#endif  // DNNOPT_MEMORY_PLAN_CHECK_HPP
