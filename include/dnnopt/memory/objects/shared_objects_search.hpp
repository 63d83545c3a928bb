// Owns the search for shared objects of least total size: a beam over assignments in order of time.
#ifndef DNNOPT_MEMORY_OBJECTS_SHARED_OBJECTS_SEARCH_HPP
#define DNNOPT_MEMORY_OBJECTS_SHARED_OBJECTS_SEARCH_HPP

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <unordered_set>
#include <utility>
#include <vector>

#include <dnnopt/memory/bounds.hpp>
#include <dnnopt/memory/objects/shared_objects.hpp>
#include <dnnopt/memory/timeline.hpp>
#include <dnnopt/memory/usage.hpp>

namespace dnnopt::memory {

namespace detail {

/// Partial assignments of the buffers met so far, one layer per buffer.
class object_beam {
 public:
  object_beam(std::span<const buffer_usage> usages, std::size_t width)
      : usages_(usages), width_(width), maxima_(positional_maxima(usages)) {}

  /// Fills `plan` when its result is below `known` bytes. Returns whether every assignment that could have led below
  /// min(known, the result) was kept, so that this minimum is optimal.
  bool run(std::int64_t known, object_plan& plan) {
    const auto order = order_by_begin_then_size();
    std::vector<partial> layer(1);
    std::vector<partial> next;
    bool complete = true;
    layer_starts_.assign(1, 0);
    choices_.assign(1, choice{});
    for (const std::uint32_t buffer : order) {
      next.clear();
      for (std::uint32_t i = 0; i < layer.size(); ++i) extend(layer[i], i, buffer, known, next);
      drop_equals(next, usages_[buffer].lower);
      if (next.size() > width_) {
        std::nth_element(next.begin(), next.begin() + static_cast<std::ptrdiff_t>(width_), next.end(),
                         [](const partial& a, const partial& b) { return a.score < b.score; });
        next.resize(width_);
        complete = false;
      }
      if (next.empty()) return complete;
      std::sort(next.begin(), next.end(), [](const partial& a, const partial& b) { return a.score < b.score; });
      layer_starts_.push_back(choices_.size());
      for (const partial& p : next) choices_.push_back(p.made);
      std::swap(layer, next);
    }
    // The first of the last layer has the least total size, for there the bound is the size itself.
    const partial& best = layer.front();
    plan.object_ids.assign(usages_.size(), 0);
    plan.object_sizes.clear();
    for (const object& o : best.objects) plan.object_sizes.push_back(o.bytes);
    std::size_t at = 0;
    for (std::size_t level = order.size(); level > 0; --level) {
      const choice made = choices_[layer_starts_[level] + at];
      plan.object_ids[order[level - 1]] = made.object;
      at = made.parent;
    }
    plan.bytes = best.score.first;
    return complete;
  }

 private:
  struct object {
    std::int64_t bytes;
    std::int64_t until;
    friend auto operator<=>(const object&, const object&) = default;
  };
  struct choice {
    std::uint32_t parent = 0;
    std::uint32_t object = 0;
  };
  struct partial {
    std::vector<object> objects;
    std::pair<std::int64_t, std::int64_t> score{0, 0};  // bound of the total, bytes opened so far
    choice made;
  };

  [[nodiscard]] std::vector<std::uint32_t> order_by_begin_then_size() const {
    auto order = order_by_size(usages_);
    std::stable_sort(order.begin(), order.end(),
                     [&](std::uint32_t a, std::uint32_t b) { return usages_[a].lower < usages_[b].lower; });
    return order;
  }

  /// The objects, by size, must in the end reach every positional maximum.
  [[nodiscard]] std::pair<std::int64_t, std::int64_t> score_of(const std::vector<object>& objects) {
    sizes_.clear();
    for (const object& o : objects) sizes_.push_back(o.bytes);
    std::sort(sizes_.begin(), sizes_.end(), std::greater<>());
    std::int64_t bound = 0;
    std::int64_t opened = 0;
    for (std::size_t k = 0; k < std::max(sizes_.size(), maxima_.size()); ++k) {
      const std::int64_t size = k < sizes_.size() ? sizes_[k] : 0;
      bound += std::max(size, k < maxima_.size() ? maxima_[k] : 0);
      opened += size;
    }
    return {bound, opened};
  }

  void extend(const partial& from, std::uint32_t parent, std::uint32_t buffer, std::int64_t known,
              std::vector<partial>& next) {
    const buffer_usage& usage = usages_[buffer];
    const auto append = [&](std::size_t at, object changed) {
      partial p{from.objects, {}, {parent, static_cast<std::uint32_t>(at)}};
      if (at == p.objects.size()) {
        p.objects.push_back(changed);
      } else {
        p.objects[at] = changed;
      }
      p.score = score_of(p.objects);
      if (p.score.first < known) next.push_back(std::move(p));
    };
    for (std::size_t at = 0; at < from.objects.size(); ++at) {
      const object& o = from.objects[at];
      if (o.until > usage.lower) continue;
      const auto equal_before = [&](const object& other) {
        return other.until <= usage.lower && other.bytes == o.bytes;
      };
      if (std::any_of(from.objects.begin(), from.objects.begin() + static_cast<std::ptrdiff_t>(at), equal_before)) {
        continue;
      }
      append(at, {std::max(o.bytes, usage.size), usage.upper});
    }
    append(from.objects.size(), {usage.size, usage.upper});
  }

  /// Keeps one of the partial assignments that the future cannot tell apart.
  void drop_equals(std::vector<partial>& layer, std::int64_t now) {
    seen_.clear();
    std::size_t kept = 0;
    for (std::size_t i = 0; i < layer.size(); ++i) {
      canonical_ = layer[i].objects;
      for (object& o : canonical_) o.until = std::max(o.until, now);
      std::sort(canonical_.begin(), canonical_.end());
      std::uint64_t hash = canonical_.size();
      for (const object& o : canonical_) {
        for (const std::int64_t value : {o.bytes, o.until}) {
          hash = (hash ^ static_cast<std::uint64_t>(value)) * 0x9E3779B97F4A7C15ULL;
          hash ^= hash >> 31U;
        }
      }
      if (!seen_.insert(hash).second) continue;
      if (kept != i) layer[kept] = std::move(layer[i]);
      ++kept;
    }
    layer.resize(kept);
  }

  std::span<const buffer_usage> usages_;
  std::size_t width_;
  std::vector<std::int64_t> maxima_;
  std::vector<std::size_t> layer_starts_;
  std::vector<choice> choices_;
  std::vector<std::int64_t> sizes_;
  std::vector<object> canonical_;
  std::unordered_set<std::uint64_t> seen_;
};

}  // namespace detail

/// Shares objects by a beam search: buffers in order of time, each into every different free object or a new one;
/// partial assignments are judged by the total that their objects and the positional maxima force, those at or above
/// the best of the heuristics are dropped, and of the rest the `width` best are kept. `proved` when the result equals
/// the sum of positional maxima or no assignment was ever dropped for the width. Equal partial assignments are told by
/// a 64-bit hash. Errors: those of validate. O(n * width * objects^2) time, O(n * width) memory.
[[nodiscard]] inline object_plan plan_objects_by_search(std::span<const buffer_usage> usages, std::size_t width = 512) {
  const auto start = std::chrono::steady_clock::now();
  object_plan plan = plan_objects(usages, object_strategy::best);
  if (!plan.proved && !usages.empty()) {
    const std::int64_t known = plan.bytes;
    const bool complete = detail::object_beam(usages, std::max<std::size_t>(width, 1)).run(known, plan);
    plan.proved = complete || plan.bytes == plan.lower_bound;
    if (complete) plan.lower_bound = plan.bytes;
  }
  plan.strategy = "objects_search";
  plan.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return plan;
}

}  // namespace dnnopt::memory

#endif  // DNNOPT_MEMORY_OBJECTS_SHARED_OBJECTS_SEARCH_HPP
