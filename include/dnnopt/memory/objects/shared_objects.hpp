// Owns the strategies that share whole objects (one-dimensional) among buffers that are never alive together.
#ifndef DNNOPT_MEMORY_OBJECTS_SHARED_OBJECTS_HPP
#define DNNOPT_MEMORY_OBJECTS_SHARED_OBJECTS_HPP

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <limits>
#include <map>
#include <numeric>
#include <queue>
#include <set>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include <dnnopt/memory/bounds.hpp>
#include <dnnopt/memory/timeline.hpp>
#include <dnnopt/memory/usage.hpp>

namespace dnnopt::memory {

/// Strategies for shared objects. Minimum-cost flow has its own header (min_cost_flow.hpp).
enum class object_strategy {
  naive,                    ///< an object per buffer
  equality,                 ///< reuse only an object of equal size (TensorFlow Lite EQUALITY)
  greedy_in_order,          ///< closest size in order of execution (Lee et al. 2019, Algorithm 1)
  greedy_by_size,           ///< decreasing size, smallest suitable object, never grown (Pisarchyk and Lee, Algorithm 2)
  greedy_by_size_improved,  ///< by positional maximum, then distance (TensorFlow Lite GREEDY_BY_SIZE)
  greedy_by_breadth,        ///< decreasing breadth of times (Pisarchyk and Lee, Algorithm 1)
  best                      ///< the smallest of all of the above
};

/// Name of a strategy as the command line spells it.
[[nodiscard]] constexpr std::string_view to_string(object_strategy strategy) noexcept {
  switch (strategy) {
    case object_strategy::naive:
      return "objects_naive";
    case object_strategy::equality:
      return "objects_equality";
    case object_strategy::greedy_in_order:
      return "objects_greedy_in_order";
    case object_strategy::greedy_by_size:
      return "objects_greedy_by_size";
    case object_strategy::greedy_by_size_improved:
      return "objects_greedy_by_size_improved";
    case object_strategy::greedy_by_breadth:
      return "objects_greedy_by_breadth";
    case object_strategy::best:
      return "objects_best";
  }
  return "objects_unknown";
}

/// A relation "buffer a's memory may be given to buffer b" for graphs whose branches run in parallel: row a lists the
/// allowed b. An empty span allows all (sequential execution).
using reallocation_rows = std::span<const std::vector<std::size_t>>;

/// From the consumers of every buffer (rows of direct successors in a DAG) the pairs that may share memory under any
/// parallel execution: a and b may when every successor of one strictly leads to the other (TensorFlow Lite
/// CreateReallocationGraph). O(n * edges).
[[nodiscard]] inline std::vector<std::vector<std::size_t>> reallocation_graph(
    std::span<const std::vector<std::size_t>> successors) {
  const std::size_t count = successors.size();
  std::vector<std::vector<char>> reaches(count, std::vector<char>(count, 0));  // strictly
  for (std::size_t start = 0; start < count; ++start) {
    std::vector<std::size_t> stack(successors[start].begin(), successors[start].end());
    while (!stack.empty()) {
      const std::size_t node = stack.back();
      stack.pop_back();
      if (reaches[start][node] != 0) continue;
      reaches[start][node] = 1;
      stack.insert(stack.end(), successors[node].begin(), successors[node].end());
    }
  }
  const auto dead_before = [&](std::size_t first, std::size_t then) {
    if (successors[first].empty()) return false;
    return std::all_of(successors[first].begin(), successors[first].end(),
                       [&](std::size_t consumer) { return reaches[consumer][then] != 0; });
  };
  std::vector<std::vector<std::size_t>> rows(count);
  for (std::size_t a = 0; a < count; ++a) {
    for (std::size_t b = 0; b < count; ++b) {
      if (a != b && (dead_before(a, b) || dead_before(b, a))) rows[a].push_back(b);
    }
  }
  return rows;
}

namespace detail {

/// Objects under construction: sizes, and for every object the buffers in it keyed by begin of life.
class object_table {
 public:
  explicit object_table(std::span<const buffer_usage> usages) : usages_(usages), object_of_(usages.size(), none) {}

  static constexpr std::size_t none = static_cast<std::size_t>(-1);

  /// Whether no buffer of the object is alive together with `buffer`. O(log members).
  [[nodiscard]] bool suits(std::size_t object, std::size_t buffer) const {
    return distance(object, buffer) != std::numeric_limits<std::int64_t>::max();
  }

  /// Time between the buffer and the nearest lifetime in the object, the largest integer when one overlaps.
  [[nodiscard]] std::int64_t distance(std::size_t object, std::size_t buffer) const {
    constexpr std::int64_t apart = std::numeric_limits<std::int64_t>::max();
    const buffer_usage& usage = usages_[buffer];
    if (usage.size == 0) return 0;
    const auto& members = members_[object];
    const auto next = members.lower_bound(usage.lower);
    std::int64_t nearest = apart;
    if (next != members.end()) {
      if (next->first < usage.upper) return apart;
      nearest = next->first - usage.upper;
    }
    if (next != members.begin()) {
      const auto previous = std::prev(next);
      if (previous->second > usage.lower) return apart;
      nearest = std::min(nearest, usage.lower - previous->second);
    }
    return nearest == apart ? 0 : nearest;
  }

  std::size_t open(std::size_t buffer) {
    sizes_.push_back(0);
    members_.emplace_back();
    put(sizes_.size() - 1, buffer);
    return sizes_.size() - 1;
  }

  /// Puts the buffer into the object, which grows if it must.
  void put(std::size_t object, std::size_t buffer) {
    object_of_[buffer] = object;
    sizes_[object] = std::max(sizes_[object], usages_[buffer].size);
    if (usages_[buffer].size > 0) members_[object].emplace(usages_[buffer].lower, usages_[buffer].upper);
  }

  [[nodiscard]] std::size_t size() const { return sizes_.size(); }
  [[nodiscard]] std::int64_t bytes_of(std::size_t object) const { return sizes_[object]; }
  [[nodiscard]] bool placed(std::size_t buffer) const { return object_of_[buffer] != none; }

  [[nodiscard]] object_plan finish() && {
    object_plan plan;
    plan.bytes = std::accumulate(sizes_.begin(), sizes_.end(), std::int64_t{0});
    plan.object_ids = std::move(object_of_);
    plan.object_sizes = std::move(sizes_);
    return plan;
  }

 private:
  std::span<const buffer_usage> usages_;
  std::vector<std::size_t> object_of_;
  std::vector<std::int64_t> sizes_;
  std::vector<std::map<std::int64_t, std::int64_t>> members_;
};

[[nodiscard]] inline object_plan objects_naive(std::span<const buffer_usage> usages) {
  object_plan plan;
  for (std::size_t i = 0; i < usages.size(); ++i) {
    plan.object_ids.push_back(i);
    plan.object_sizes.push_back(usages[i].size);
    plan.bytes += usages[i].size;
  }
  return plan;
}

/// Walks buffers in order of their begin and reports each object as its buffer dies, in order of (end, object).
class dying_objects {
 public:
  template <class Function>
  void before(std::int64_t time, Function&& freed) {
    while (!queue_.empty() && queue_.top().first <= time) {
      freed(queue_.top().second);
      queue_.pop();
    }
  }
  void hold(std::int64_t until, std::size_t object) { queue_.emplace(until, object); }

 private:
  using entry = std::pair<std::int64_t, std::size_t>;
  std::priority_queue<entry, std::vector<entry>, std::greater<>> queue_;
};

[[nodiscard]] inline object_plan objects_equality(std::span<const buffer_usage> usages) {
  object_plan plan;
  plan.object_ids.resize(usages.size());
  std::map<std::int64_t, std::vector<std::size_t>> pool;
  dying_objects in_use;
  for (const std::uint32_t buffer : order_by_begin(usages)) {
    const buffer_usage& usage = usages[buffer];
    in_use.before(usage.lower, [&](std::size_t object) { pool[plan.object_sizes[object]].push_back(object); });
    auto& equals = pool[usage.size];
    std::size_t object = plan.object_sizes.size();
    if (equals.empty()) {
      plan.object_sizes.push_back(usage.size);
      plan.bytes += usage.size;
    } else {
      object = equals.back();
      equals.pop_back();
    }
    plan.object_ids[buffer] = object;
    in_use.hold(usage.upper, object);
  }
  return plan;
}

[[nodiscard]] inline object_plan objects_greedy_in_order(std::span<const buffer_usage> usages,
                                                         reallocation_rows reallocation) {
  object_plan plan;
  plan.object_ids.resize(usages.size());
  std::set<std::pair<std::int64_t, std::size_t>> pool;
  dying_objects in_use;
  std::vector<std::vector<std::size_t>> held;  // buffers that an object has held, for the reallocation rows
  for (const std::uint32_t buffer : order_by_begin(usages)) {
    const buffer_usage& usage = usages[buffer];
    in_use.before(usage.lower, [&](std::size_t object) { pool.emplace(plan.object_sizes[object], object); });
    const auto allowed = [&](std::size_t object) {
      if (reallocation.empty()) return true;
      const auto& row = reallocation[buffer];
      return std::all_of(held[object].begin(), held[object].end(),
                         [&](std::size_t other) { return std::find(row.begin(), row.end(), other) != row.end(); });
    };
    auto above = pool.lower_bound({usage.size, 0});
    auto below = above;
    while (above != pool.end() && !allowed(above->second)) ++above;
    bool has_below = false;
    while (below != pool.begin() && !has_below) has_below = allowed((--below)->second);
    auto chosen = above;
    if (has_below && (above == pool.end() || usage.size - below->first < above->first - usage.size)) chosen = below;
    std::size_t object = plan.object_sizes.size();
    if (chosen == pool.end()) {
      plan.object_sizes.push_back(usage.size);
      held.emplace_back();
    } else {
      object = chosen->second;
      pool.erase(chosen);
      plan.object_sizes[object] = std::max(plan.object_sizes[object], usage.size);
    }
    held[object].push_back(buffer);
    plan.object_ids[buffer] = object;
    in_use.hold(usage.upper, object);
  }
  plan.bytes = std::accumulate(plan.object_sizes.begin(), plan.object_sizes.end(), std::int64_t{0});
  return plan;
}

[[nodiscard]] inline object_plan objects_greedy_by_size(std::span<const buffer_usage> usages) {
  object_table table(usages);
  for (const std::uint32_t buffer : order_by_size(usages)) {
    std::size_t chosen = object_table::none;
    for (std::size_t object = 0; object < table.size(); ++object) {
      if (table.bytes_of(object) < usages[buffer].size || !table.suits(object, buffer)) continue;
      if (chosen == object_table::none || table.bytes_of(object) < table.bytes_of(chosen)) chosen = object;
    }
    if (chosen == object_table::none) {
      table.open(buffer);
    } else {
      table.put(chosen, buffer);
    }
  }
  return std::move(table).finish();
}

[[nodiscard]] inline object_plan objects_greedy_by_breadth(std::span<const buffer_usage> usages) {
  object_table table(usages);
  for (const std::uint32_t buffer : order_by_breadth(usages)) {
    const std::int64_t size = usages[buffer].size;
    std::size_t chosen = object_table::none;
    for (std::size_t object = 0; object < table.size(); ++object) {
      if (!table.suits(object, buffer)) continue;
      const std::int64_t bytes = table.bytes_of(object);
      if (chosen == object_table::none) {
        chosen = object;
        continue;
      }
      const std::int64_t so_far = table.bytes_of(chosen);
      if (so_far < size ? bytes > so_far : bytes >= size && bytes < so_far) chosen = object;
    }
    if (chosen == object_table::none) {
      table.open(buffer);
    } else {
      table.put(chosen, buffer);
    }
  }
  return std::move(table).finish();
}

[[nodiscard]] inline object_plan objects_greedy_by_size_improved(std::span<const buffer_usage> usages) {
  constexpr std::int64_t nowhere = std::numeric_limits<std::int64_t>::max();
  const std::vector<std::int64_t> maxima = positional_maxima(usages);
  struct candidate {
    std::uint32_t buffer;
    std::size_t position;
    std::int64_t distance;
    std::size_t object;
  };
  std::vector<candidate> waiting;
  for (std::size_t i = 0; i < usages.size(); ++i) {
    const auto above = std::partition_point(maxima.begin(), maxima.end(),
                                            [&](std::int64_t maximum) { return maximum >= usages[i].size; });
    waiting.push_back(
        {static_cast<std::uint32_t>(i), static_cast<std::size_t>(above - maxima.begin()), nowhere, object_table::none});
  }
  object_table table(usages);
  while (!waiting.empty()) {
    const auto first = std::min_element(waiting.begin(), waiting.end(), [&](const candidate& a, const candidate& b) {
      if (a.position != b.position) return a.position < b.position;
      if (a.distance != b.distance) return a.distance < b.distance;
      return usages[a.buffer].size > usages[b.buffer].size;
    });
    const candidate taken = *first;
    waiting.erase(first);
    std::size_t object = taken.object;
    if (object == object_table::none) {
      object = table.open(taken.buffer);
    } else {
      table.put(object, taken.buffer);
    }
    for (candidate& other : waiting) {
      const std::int64_t distance = table.distance(object, other.buffer);
      if (distance == nowhere && other.object == object) {
        other.distance = nowhere;
        other.object = object_table::none;
        for (std::size_t k = 0; k < table.size(); ++k) {
          const std::int64_t far = table.distance(k, other.buffer);
          if (far < other.distance) {
            other.distance = far;
            other.object = k;
          }
        }
      } else if (distance < other.distance) {
        other.distance = distance;
        other.object = object;
      }
    }
  }
  return std::move(table).finish();
}

}  // namespace detail

/// Shares objects among buffers by one strategy. `reallocation`, used by greedy_in_order alone, restricts reuse for
/// parallel execution. Alignment plays no part: objects are allocations of their own. Errors: invalid_argument or
/// overflow from validate. O(n log n) for naive, equality and greedy_in_order; O(n * objects * log n) for the
/// rest, greedy_by_size_improved O(n^2 log n).
[[nodiscard]] inline object_plan plan_objects(std::span<const buffer_usage> usages, object_strategy strategy,
                                              reallocation_rows reallocation = {}) {
  validate(usages);
  const auto start = std::chrono::steady_clock::now();
  object_plan plan;
  switch (strategy) {
    case object_strategy::naive:
      plan = detail::objects_naive(usages);
      break;
    case object_strategy::equality:
      plan = detail::objects_equality(usages);
      break;
    case object_strategy::greedy_in_order:
      plan = detail::objects_greedy_in_order(usages, reallocation);
      break;
    case object_strategy::greedy_by_size:
      plan = detail::objects_greedy_by_size(usages);
      break;
    case object_strategy::greedy_by_size_improved:
      plan = detail::objects_greedy_by_size_improved(usages);
      break;
    case object_strategy::greedy_by_breadth:
      plan = detail::objects_greedy_by_breadth(usages);
      break;
    case object_strategy::best: {
      plan = detail::objects_greedy_by_size_improved(usages);
      for (auto* other :
           {&detail::objects_greedy_by_size, &detail::objects_greedy_by_breadth, &detail::objects_equality}) {
        object_plan next = other(usages);
        if (next.bytes < plan.bytes) plan = std::move(next);
      }
      object_plan next = detail::objects_greedy_in_order(usages, {});
      if (next.bytes < plan.bytes) plan = std::move(next);
      break;
    }
  }
  plan.lower_bound = shared_objects_lower_bound(usages);
  plan.proved = plan.bytes == plan.lower_bound;
  plan.strategy = to_string(strategy);
  plan.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return plan;
}

}  // namespace dnnopt::memory

#endif  // DNNOPT_MEMORY_OBJECTS_SHARED_OBJECTS_HPP
