// Owns the choice of a planner by name: one call that gives every buffer an offset.
#ifndef DNNOPT_MEMORY_PLAN_HPP
#define DNNOPT_MEMORY_PLAN_HPP

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dnnopt/memory/bounds.hpp>
#include <dnnopt/memory/objects/shared_objects.hpp>
#include <dnnopt/memory/objects/shared_objects_search.hpp>
#include <dnnopt/memory/offsets/conflict_pools.hpp>
#include <dnnopt/memory/offsets/exact_offsets.hpp>
#include <dnnopt/memory/offsets/offset_heuristics.hpp>
#include <dnnopt/memory/offsets/quick_offsets.hpp>
#include <dnnopt/memory/usage.hpp>

namespace dnnopt::memory {

/// Strategies that give every buffer an offset in one arena.
enum class offset_strategy {
  naive,                  ///< one buffer after the other
  greedy_by_size,         ///< decreasing size, smallest gap (TensorFlow Lite; Pisarchyk and Lee, Algorithm 3)
  greedy_by_breadth,      ///< decreasing breadth of times, smallest gap (Pisarchyk and Lee)
  best_fit,               ///< XLA's heap: the better of size and lifetime order, smallest gap
  first_fit,              ///< order of execution, lowest gap
  first_fit_by_size,      ///< decreasing size, lowest gap
  first_fit_by_area,      ///< decreasing size * lifetime, lowest gap
  first_fit_by_lifetime,  ///< decreasing lifetime, lowest gap
  hill_climb,             ///< TVM's search over orders
  peak_outward,           ///< SoD2: from the peak outward, lowest gap
  quick,                  ///< valleys of the skyline, O(n log n); for plans at run time
  exact                   ///< anytime exact search
};

/// All strategies and the names under which the command line knows them.
inline constexpr std::pair<offset_strategy, std::string_view> offset_strategies[] = {
    {offset_strategy::naive, "naive"},
    {offset_strategy::greedy_by_size, "greedy_by_size"},
    {offset_strategy::greedy_by_breadth, "greedy_by_breadth"},
    {offset_strategy::best_fit, "best_fit"},
    {offset_strategy::first_fit, "first_fit"},
    {offset_strategy::first_fit_by_size, "first_fit_by_size"},
    {offset_strategy::first_fit_by_area, "first_fit_by_area"},
    {offset_strategy::first_fit_by_lifetime, "first_fit_by_lifetime"},
    {offset_strategy::hill_climb, "hill_climb"},
    {offset_strategy::peak_outward, "peak_outward"},
    {offset_strategy::quick, "quick"},
    {offset_strategy::exact, "exact"},
};

/// Name of a strategy.
[[nodiscard]] constexpr std::string_view to_string(offset_strategy strategy) noexcept {
  for (const auto& [known, name] : offset_strategies) {
    if (known == strategy) return name;
  }
  return "unknown";
}

/// The offset strategy of a name, or nothing.
[[nodiscard]] constexpr std::optional<offset_strategy> find_offset_strategy(std::string_view name) noexcept {
  for (const auto& [strategy, known] : offset_strategies) {
    if (known == name) return strategy;
  }
  return std::nullopt;
}

/// The object strategy of a name (they begin with "objects_"), or nothing.
[[nodiscard]] constexpr std::optional<object_strategy> find_object_strategy(std::string_view name) noexcept {
  for (const auto strategy : {object_strategy::naive, object_strategy::equality, object_strategy::greedy_in_order,
                              object_strategy::greedy_by_size, object_strategy::greedy_by_size_improved,
                              object_strategy::greedy_by_breadth, object_strategy::best}) {
    if (to_string(strategy) == name) return strategy;
  }
  return std::nullopt;
}

/// The names of all strategies for shared objects.
inline constexpr std::string_view object_strategy_names[] = {to_string(object_strategy::naive),
                                                             to_string(object_strategy::equality),
                                                             to_string(object_strategy::greedy_in_order),
                                                             to_string(object_strategy::greedy_by_size),
                                                             to_string(object_strategy::greedy_by_size_improved),
                                                             to_string(object_strategy::greedy_by_breadth),
                                                             to_string(object_strategy::best),
                                                             "objects_search",
                                                             "objects_min_cost_flow"};

/// Shares objects by the name of a strategy: those of find_object_strategy and "objects_search"; nothing for an unknown
/// name. ("objects_min_cost_flow" is plan_objects_by_flow, whose header needs Boost.) Errors: those of validate.
[[nodiscard]] inline std::optional<object_plan> plan_objects_named(std::span<const buffer_usage> usages,
                                                                   std::string_view name) {
  if (name == "objects_search") return plan_objects_by_search(usages);
  if (const auto strategy = find_object_strategy(name)) return plan_objects(usages, *strategy);
  return std::nullopt;
}

/// What plan_offsets may use.
struct offset_options {
  offset_strategy strategy = offset_strategy::exact;
  double budget = 60.0;        ///< seconds; the exact search alone looks at it, and ends earlier once proved
  std::size_t threads = 1;     ///< of the exact search
  std::int64_t alignment = 1;  ///< of every offset, besides the records' own
  std::int64_t capacity = 0;   ///< the exact search ends at the first plan of at most this many bytes; 0: minimise
  std::uint64_t seed = 1;      ///< of the random choices (hill_climb, exact)
};

/// Gives every buffer an offset by one strategy. The plan's `lower_bound` holds for the given alignment and `proved`
/// says that no plan needs fewer bytes; a plan above `capacity` is returned all the same and judged by the caller.
/// Errors: invalid_argument or overflow from validate. Cost: see the strategies; all but quick and exact
/// are O(n^2).
[[nodiscard]] inline offset_plan plan_offsets(std::span<const buffer_usage> usages,
                                              const offset_options& options = {}) {
  const auto start = std::chrono::steady_clock::now();
  std::vector<buffer_usage> raised;
  if (options.alignment != 1) {
    raised = with_alignment(usages, options.alignment);
    usages = raised;
  }
  validate(usages);
  offset_plan plan;
  gap_placer placer;
  const auto place = [&](std::span<const std::uint32_t> order, gap_rule rule) {
    placer.place(usages, order, rule, plan.offsets);
  };
  switch (options.strategy) {
    case offset_strategy::naive: {
      std::int64_t top = 0;
      for (const buffer_usage& usage : usages) {
        plan.offsets.push_back(align_up(top, usage.alignment));
        top = plan.offsets.back() + usage.size;
      }
      break;
    }
    case offset_strategy::greedy_by_size:
      place(order_by_size(usages), gap_rule::best_fit);
      break;
    case offset_strategy::greedy_by_breadth:
      place(order_by_breadth(usages), gap_rule::best_fit);
      break;
    case offset_strategy::best_fit: {
      std::vector<std::int64_t> temporal;
      const auto bytes = placer.place(usages, order_by_lifetime(usages), gap_rule::best_fit, temporal);
      place(order_by_size_then_lifetime(usages), gap_rule::best_fit);
      if (bytes < arena_bytes(usages, plan.offsets)) plan.offsets = std::move(temporal);
      break;
    }
    case offset_strategy::first_fit:
      place(order_by_begin(usages), gap_rule::first_fit);
      break;
    case offset_strategy::first_fit_by_size:
      place(order_by_size(usages), gap_rule::first_fit);
      break;
    case offset_strategy::first_fit_by_area:
      place(order_by_area(usages), gap_rule::first_fit);
      break;
    case offset_strategy::first_fit_by_lifetime:
      place(order_by_lifetime(usages), gap_rule::first_fit);
      break;
    case offset_strategy::hill_climb: {
      const auto conflicts = conflicts_of(usages);
      const std::int64_t pools[] = {unbounded};
      plan.offsets =
          plan_pools(conflicts, pools, conflict_strategy::hill_climb, largest_live_sum(usages), options.seed).offsets;
      break;
    }
    case offset_strategy::peak_outward:
      place(order_outward_from_peak(usages), gap_rule::first_fit);
      break;
    case offset_strategy::quick:
      quick_planner().plan(usages, plan.offsets);
      break;
    case offset_strategy::exact:
      plan = plan_offsets_exactly(usages, {options.budget, options.threads, options.capacity, options.seed});
      break;
  }
  plan.offsets.resize(usages.size(), 0);
  plan.bytes = arena_bytes(usages, plan.offsets);
  plan.lower_bound = std::max(plan.lower_bound, largest_live_sum(usages));
  plan.proved = plan.proved || plan.bytes <= plan.lower_bound;
  plan.strategy = to_string(options.strategy);
  plan.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return plan;
}

}  // namespace dnnopt::memory

#endif  // DNNOPT_MEMORY_PLAN_HPP
