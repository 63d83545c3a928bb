// Owns the strategies that share objects of several dimensions (images) among tensors never alive together.
#ifndef DNNOPT_MEMORY_OBJECTS_SHARED_IMAGES_HPP
#define DNNOPT_MEMORY_OBJECTS_SHARED_IMAGES_HPP

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <list>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dnnopt/memory/objects/shared_objects.hpp>
#include <dnnopt/memory/usage.hpp>

namespace dnnopt::memory {

/// Extents of an object in elements along each dimension.
template <std::size_t Rank>
using extents = std::array<std::int64_t, Rank>;

/// One tensor that lives in an object of `Rank` dimensions: lifetime half-open as in buffer_usage.
template <std::size_t Rank>
struct image_usage {
  std::int64_t lower = 0;
  std::int64_t upper = 0;
  extents<Rank> size{};
  std::array<bool, Rank> ends{};  ///< along these dimensions the object must end where the tensor does
};

/// Which object every tensor gets, in the order of the records, and the extents of every object.
template <std::size_t Rank>
struct image_plan {
  std::vector<std::size_t> object_ids;
  std::vector<extents<Rank>> object_sizes;
  std::int64_t elements = 0;  ///< sum of the products of the extents
};

/// Strategies for objects of several dimensions: an image cannot grow in one direction without wasting the other, so
/// these never grow an object.
enum class image_strategy {
  naive,            ///< an object per tensor
  equality,         ///< reuse the object of equal extents that was freed last (TensorFlow Lite, hashable sizes)
  equality_lowest,  ///< reuse the object of equal extents of the lowest index (TensorFlow Lite, uint2 and uint3)
  greedy_in_order,  ///< reuse the free object that covers the tensor with the fewest elements to spare
  greedy_by_size,   ///< tensors by decreasing number of elements, each into the covering object of fewest elements
  best              ///< the fewest elements of all of the above
};

/// The strategy for images that a strategy for shared objects of one dimension corresponds to, by the latter's name;
/// the best of all where there is none of that kind.
[[nodiscard]] constexpr image_strategy image_strategy_of(std::string_view name) noexcept {
  constexpr std::pair<object_strategy, image_strategy> alike[] = {
      {object_strategy::naive, image_strategy::naive},
      {object_strategy::equality, image_strategy::equality},
      {object_strategy::greedy_in_order, image_strategy::greedy_in_order},
      {object_strategy::greedy_by_size, image_strategy::greedy_by_size}};
  for (const auto& [objects, images] : alike)
    if (to_string(objects) == name) return images;
  return image_strategy::best;
}

/// Number of elements of extents.
template <std::size_t Rank>
[[nodiscard]] constexpr std::int64_t element_count(const extents<Rank>& size) noexcept {
  std::int64_t count = 1;
  for (const std::int64_t extent : size) count *= extent;
  return count;
}

/// Whether an object of extents `object` holds a tensor.
template <std::size_t Rank>
[[nodiscard]] constexpr bool covers(const extents<Rank>& object, const image_usage<Rank>& tensor) noexcept {
  for (std::size_t d = 0; d < Rank; ++d) {
    if (object[d] < tensor.size[d] || (tensor.ends[d] && object[d] != tensor.size[d])) return false;
  }
  return true;
}

namespace detail {

template <std::size_t Rank>
[[nodiscard]] std::vector<buffer_usage> lifetimes_of(std::span<const image_usage<Rank>> usages) {
  std::vector<buffer_usage> result;
  for (const auto& usage : usages) result.push_back({usage.lower, usage.upper, element_count(usage.size), 1});
  validate(result);
  return result;
}

/// Walks tensors in order of begin; `choose(pool, tensor)` returns the position in the pool of free objects to reuse,
/// or its end.
template <std::size_t Rank, class Choose>
[[nodiscard]] image_plan<Rank> images_in_order(std::span<const image_usage<Rank>> usages, Choose&& choose) {
  image_plan<Rank> plan;
  plan.object_ids.resize(usages.size());
  std::list<std::size_t> pool;  // in the order in which objects became free
  dying_objects in_use;
  const auto records = lifetimes_of(usages);
  for (const std::uint32_t tensor : order_by_begin(records)) {
    in_use.before(usages[tensor].lower, [&](std::size_t object) { pool.push_back(object); });
    const auto chosen = choose(pool, plan.object_sizes, usages[tensor]);
    std::size_t object = plan.object_sizes.size();
    if (chosen == pool.end()) {
      plan.object_sizes.push_back(usages[tensor].size);
    } else {
      object = *chosen;
      pool.erase(chosen);
    }
    plan.object_ids[tensor] = object;
    in_use.hold(usages[tensor].upper, object);
  }
  return plan;
}

}  // namespace detail

/// Shares objects of several dimensions. Errors: invalid_argument or overflow from validate (the size of
/// a record being its number of elements). O(n * objects).
template <std::size_t Rank>
[[nodiscard]] image_plan<Rank> plan_images(std::span<const image_usage<Rank>> usages, image_strategy strategy) {
  using sizes = std::vector<extents<Rank>>;
  using free_list = std::list<std::size_t>;
  using usage = image_usage<Rank>;
  image_plan<Rank> plan;
  switch (strategy) {
    case image_strategy::naive:
      for (const auto& one : usages) {
        plan.object_ids.push_back(plan.object_ids.size());
        plan.object_sizes.push_back(one.size);
      }
      break;
    case image_strategy::equality:
    case image_strategy::equality_lowest:
      plan = detail::images_in_order(usages, [&](free_list& pool, const sizes& object_sizes, const usage& tensor) {
        auto chosen = pool.end();
        for (auto at = pool.begin(); at != pool.end(); ++at) {
          if (object_sizes[*at] != tensor.size) continue;
          if (chosen == pool.end() || strategy == image_strategy::equality || *at < *chosen) chosen = at;
        }
        return chosen;
      });
      break;
    case image_strategy::greedy_in_order:
      plan = detail::images_in_order(usages, [](free_list& pool, const sizes& object_sizes, const usage& tensor) {
        auto chosen = pool.end();
        std::int64_t spare = std::numeric_limits<std::int64_t>::max();
        for (auto at = pool.begin(); at != pool.end(); ++at) {
          if (!covers(object_sizes[*at], tensor)) continue;
          const std::int64_t more = element_count(object_sizes[*at]) - element_count(tensor.size);
          if (more < spare) {
            spare = more;
            chosen = at;
          }
        }
        return chosen;
      });
      break;
    case image_strategy::greedy_by_size: {
      const auto records = detail::lifetimes_of(usages);
      detail::object_table table(records);
      plan.object_ids.resize(usages.size());
      for (const std::uint32_t tensor : order_by_size(records)) {
        std::size_t chosen = detail::object_table::none;
        for (std::size_t object = 0; object < table.size(); ++object) {
          if (!covers(plan.object_sizes[object], usages[tensor]) || !table.suits(object, tensor)) continue;
          if (chosen == detail::object_table::none || table.bytes_of(object) < table.bytes_of(chosen)) chosen = object;
        }
        if (chosen == detail::object_table::none) {
          chosen = table.open(tensor);
          plan.object_sizes.push_back(usages[tensor].size);
        } else {
          table.put(chosen, tensor);
        }
        plan.object_ids[tensor] = chosen;
      }
      break;
    }
    case image_strategy::best:
      plan = plan_images<Rank>(usages, image_strategy::equality);
      for (const auto other : {image_strategy::greedy_in_order, image_strategy::greedy_by_size}) {
        auto next = plan_images<Rank>(usages, other);
        if (next.elements < plan.elements) plan = std::move(next);
      }
      return plan;
  }
  for (const auto& size : plan.object_sizes) plan.elements += element_count(size);
  return plan;
}

}  // namespace dnnopt::memory

#endif  // DNNOPT_MEMORY_OBJECTS_SHARED_IMAGES_HPP
