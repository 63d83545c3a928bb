// Owns deciding execution order and offsets together, orders for several sizes at once, and barriers in the order.
#ifndef DNNOPT_MEMORY_ORDER_SCHEDULE_MEMORY_HPP
#define DNNOPT_MEMORY_ORDER_SCHEDULE_MEMORY_HPP

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <dnnopt/memory/offsets/exact_offsets.hpp>
#include <dnnopt/memory/order/exact_order.hpp>
#include <dnnopt/memory/order/order_graph.hpp>
#include <dnnopt/memory/usage.hpp>

namespace dnnopt::memory {

/// Limits of plan_schedule.
struct schedule_options {
  double budget = 10.0;        ///< seconds of wall time for order and offsets together
  std::size_t threads = 1;     ///< of the offset search
  std::int64_t alignment = 1;  ///< of every offset; sizes are counted rounded up to it
  std::int64_t limit = 0;      ///< an arena of at most this many bytes will do; 0: the least
};

/// An execution order with its usage records and their offsets.
struct schedule_plan {
  order_plan order;
  order_usages records;  ///< usages in the order's steps; record_of_storage maps the graph's storages to them
  offset_plan offsets;   ///< of records.usages
  bool proved = false;   ///< no order and offsets need fewer bytes
};

/// Orders the operations for the least peak and packs that order; while the packing misses the peak, other orders of
/// the same peak are drawn and packed until the budget ends. The arena is never above what the best heuristic order
/// and the quick planner give. Errors: those of validate. `proved` when the arena equals the proved least peak.
[[nodiscard]] inline schedule_plan plan_schedule(const order_graph& graph, const schedule_options& options = {}) {
  const auto start = std::chrono::steady_clock::now();
  const auto left = [&] {
    const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - start;
    return std::max(0.0, options.budget - spent.count());
  };
  order_graph rounded = graph;
  for (std::int64_t& bytes : rounded.bytes) bytes = align_up(bytes, options.alignment);
  schedule_plan best;
  best.offsets.bytes = std::numeric_limits<std::int64_t>::max();
  order_options ordering;
  ordering.enough = options.limit;
  for (std::uint64_t draw = 0;; ++draw) {
    ordering.seed = draw;
    ordering.budget = draw == 0 ? 0.7 * left() : left();
    schedule_plan plan;
    plan.order = plan_order(rounded, ordering);
    if (draw == 0) ordering.enough = std::max(options.limit, plan.order.peak);
    plan.records = usages_of_order(rounded, plan.order.order);
    for (buffer_usage& usage : plan.records.usages) usage.alignment = options.alignment;
    exact_options packing;
    // A single hard packing must not eat the time in which another order might pack at once.
    packing.budget = draw == 0 ? 0.5 * left() : 0.2 * left();
    packing.threads = options.threads;
    packing.capacity = options.limit;
    plan.offsets = plan_offsets_exactly(plan.records.usages, packing);
    if (draw == 0) {
      plan.proved = plan.order.proved && plan.offsets.bytes == plan.order.peak;
    } else {
      plan.proved = best.order.proved && plan.offsets.bytes == best.order.peak;
      plan.order.lower_bound = best.order.lower_bound;
      plan.order.proved = plan.order.peak == plan.order.lower_bound;
    }
    if (plan.offsets.bytes < best.offsets.bytes) best = std::move(plan);
    const bool fits = options.limit > 0 && best.offsets.bytes <= options.limit;
    if (best.proved || fits || best.offsets.bytes <= best.order.peak || left() <= 0.0) return best;
  }
}

/// One order for several sizes of the storages, for sizes that are expressions over symbols: each scenario holds the
/// bytes of every storage under one binding. Every scenario's own best order is judged under all of them; the one whose
/// worst ratio of peak to the scenario's best peak is least wins. The budget is shared evenly. Errors:
/// invalid_argument when no scenario is given or one has another number of storages.
[[nodiscard]] inline order_plan plan_order_for_scenarios(const order_graph& graph,
                                                         std::span<const std::vector<std::int64_t>> scenarios,
                                                         const order_options& options = {}) {
  if (scenarios.empty()) throw error(errc::invalid_argument, "an order for no scenario");
  std::vector<order_graph> graphs;
  std::vector<order_plan> plans;
  order_options each = options;
  each.budget = options.budget / static_cast<double>(scenarios.size());
  for (const auto& bytes : scenarios) {
    if (bytes.size() != graph.bytes.size()) {
      throw error(errc::invalid_argument, "a scenario of " + std::to_string(bytes.size()) + " storages for " +
                                              std::to_string(graph.bytes.size()));
    }
    graphs.push_back(graph);
    graphs.back().bytes = bytes;
    plans.push_back(plan_order(graphs.back(), each));
  }
  std::size_t best = 0;
  double best_ratio = std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < plans.size(); ++i) {
    double worst = 1.0;
    for (std::size_t k = 0; k < graphs.size(); ++k) {
      const auto peak = static_cast<double>(cost_of_order(graphs[k], plans[i].order).peak);
      worst = std::max(worst, peak / std::max(1.0, static_cast<double>(plans[k].peak)));
    }
    if (worst < best_ratio) {
      best_ratio = worst;
      best = i;
    }
  }
  return std::move(plans[best]);
}

/// Makes `operation` a barrier: those of smaller index run before it, those of larger index after it. Used where the
/// size of what follows is only known once the operation has run (SoD2 section 4.3 partitions there). The order by
/// index must be an execution order. O(nodes).
inline void add_barrier(order_graph& graph, std::uint32_t operation) {
  if (operation >= graph.operations.size()) {
    throw error(errc::invalid_argument,
                "barrier at operation " + std::to_string(operation) + " of " + std::to_string(graph.operations.size()));
  }
  for (std::uint32_t op = 0; op < graph.operations.size(); ++op) {
    auto& after = graph.operations[op].after;
    if (op < operation) {
      graph.operations[operation].after.push_back(op);
    } else if (op > operation) {
      after.push_back(operation);
    }
  }
  for (order_operation& op : graph.operations) {
    std::sort(op.after.begin(), op.after.end());
    op.after.erase(std::unique(op.after.begin(), op.after.end()), op.after.end());
  }
}

}  // namespace dnnopt::memory

#endif  // DNNOPT_MEMORY_ORDER_SCHEDULE_MEMORY_HPP
