// Owns shared objects as offsets, for who places buffers in one arena or in several objects by the same plan.
#ifndef DNNOPT_MEMORY_OBJECTS_OBJECT_OFFSETS_HPP
#define DNNOPT_MEMORY_OBJECTS_OBJECT_OFFSETS_HPP

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <span>
#include <utility>
#include <vector>

#include <dnnopt/memory/usage.hpp>

namespace dnnopt::memory {

/// The objects of a plan one after the other, each at a multiple of every record's alignment: where they begin is
/// offset_plan::objects. Precondition: `plan` is one of `usages`, and each object is as large as its largest buffer.
/// O(n).
[[nodiscard]] inline offset_plan offsets_in_objects(std::span<const buffer_usage> usages, const object_plan& plan) {
  std::int64_t alignment = 1;
  for (const buffer_usage& usage : usages) alignment = std::max(alignment, usage.alignment);
  offset_plan made;
  made.lower_bound = plan.lower_bound;
  made.seconds = plan.seconds;
  made.strategy = plan.strategy;
  for (const std::int64_t size : plan.object_sizes) {
    made.objects.push_back(align_up(made.bytes, alignment));
    made.bytes = made.objects.back() + size;
  }
  for (const std::size_t object : plan.object_ids) made.offsets.push_back(made.objects[object]);
  made.proved = made.bytes == made.lower_bound;
  return made;
}

/// Bytes of each object of a plan, of which there is one where it has an arena; none where it holds nothing.
/// O(objects).
[[nodiscard]] inline std::vector<std::int64_t> sizes_of_objects(const offset_plan& plan) {
  std::vector<std::int64_t> sizes;
  for (std::size_t i = 0; i < plan.objects.size(); ++i)
    sizes.push_back((i + 1 < plan.objects.size() ? plan.objects[i + 1] : plan.bytes) - plan.objects[i]);
  if (plan.objects.empty() && plan.bytes > 0) sizes.push_back(plan.bytes);
  return sizes;
}

/// The object that an offset of a plan lies in, and the offset within it. O(log objects).
[[nodiscard]] inline std::pair<std::size_t, std::int64_t> place_in_objects(const offset_plan& plan,
                                                                           std::int64_t offset) {
  if (plan.objects.empty()) return {0, offset};
  const auto above = std::upper_bound(plan.objects.begin(), plan.objects.end(), offset);
  const auto object = static_cast<std::size_t>(std::distance(plan.objects.begin(), above)) - 1;
  return {object, offset - plan.objects[object]};
}

}  // namespace dnnopt::memory

#endif  // DNNOPT_MEMORY_OBJECTS_OBJECT_OFFSETS_HPP
