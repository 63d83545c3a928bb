// Owns the topological heuristics for execution orders: Kahn, reverse post-order, demand-driven and greedy.
#ifndef DNNOPT_MEMORY_ORDER_ORDER_HEURISTICS_HPP
#define DNNOPT_MEMORY_ORDER_ORDER_HEURISTICS_HPP

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include <dnnopt/memory/order/order_graph.hpp>

namespace dnnopt::memory {

/// Heuristics that choose an execution order without search.
enum class order_strategy {
  program,             ///< as given, where that is an order (repaired by smallest index first)
  breadth_first,       ///< Kahn's queue
  reverse_post_order,  ///< of a depth-first walk along consumers
  demand_depth_first,  ///< from the outputs: inputs just before who needs them, those of larger memory first
  greedy               ///< the ready operation with the least growth of live bytes, then the least transient
};

/// Name of a strategy.
[[nodiscard]] constexpr std::string_view to_string(order_strategy strategy) noexcept {
  switch (strategy) {
    case order_strategy::program:
      return "program";
    case order_strategy::breadth_first:
      return "breadth_first";
    case order_strategy::reverse_post_order:
      return "reverse_post_order";
    case order_strategy::demand_depth_first:
      return "demand_depth_first";
    case order_strategy::greedy:
      return "greedy";
  }
  return "unknown";
}

namespace detail {

[[nodiscard]] inline std::vector<std::vector<std::uint32_t>> consumers_of(const order_graph& graph) {
  std::vector<std::vector<std::uint32_t>> consumers(graph.operations.size());
  for (std::uint32_t op = 0; op < consumers.size(); ++op) {
    for (const std::uint32_t before : graph.operations[op].after) consumers[before].push_back(op);
  }
  return consumers;
}

/// Kahn's algorithm; `pick(ready)` returns the position in the list of ready operations to run next.
template <class Pick>
[[nodiscard]] std::vector<std::uint32_t> kahn(const order_graph& graph, Pick&& pick) {
  const auto consumers = consumers_of(graph);
  std::vector<std::uint32_t> waiting(graph.operations.size());
  std::vector<std::uint32_t> ready;
  std::vector<std::uint32_t> order;
  for (std::uint32_t op = 0; op < waiting.size(); ++op) {
    waiting[op] = static_cast<std::uint32_t>(graph.operations[op].after.size());
    if (waiting[op] == 0) ready.push_back(op);
  }
  while (!ready.empty()) {
    const auto at = static_cast<std::ptrdiff_t>(pick(ready));
    const std::uint32_t op = ready[static_cast<std::size_t>(at)];
    ready.erase(ready.begin() + at);
    order.push_back(op);
    for (const std::uint32_t next : consumers[op]) {
      if (--waiting[next] == 0) ready.push_back(next);
    }
  }
  return order;
}

/// Depth-first walk with an own stack; `neighbours` yields where to go on, the result is the post-order.
template <class Neighbours>
[[nodiscard]] std::vector<std::uint32_t> post_order(std::size_t count, const std::vector<std::uint32_t>& starts,
                                                    Neighbours&& neighbours) {
  std::vector<char> seen(count, 0);
  std::vector<std::uint32_t> order;
  std::vector<std::pair<std::uint32_t, std::size_t>> stack;
  for (const std::uint32_t start : starts) {
    if (seen[start] != 0) continue;
    seen[start] = 1;
    stack.emplace_back(start, 0);
    while (!stack.empty()) {
      auto& [op, next] = stack.back();
      const auto& around = neighbours(op);
      if (next == around.size()) {
        order.push_back(op);
        stack.pop_back();
        continue;
      }
      const std::uint32_t to = around[next++];
      if (seen[to] == 0) {
        seen[to] = 1;
        stack.emplace_back(to, 0);
      }
    }
  }
  return order;
}

/// Live bytes under a set of executed operations, kept up to date while operations run or are taken back in any order:
/// a storage is alive when some but not all of the operations that touch it have run, whatever their order.
class running_memory {
 public:
  explicit running_memory(const order_graph& graph)
      : graph_(graph), users_(graph.bytes.size(), 0), touched_(graph.bytes.size(), 0) {
    for (const order_operation& operation : graph.operations) {
      for (const std::uint32_t storage : operation.storages) ++users_[storage];
    }
  }

  struct effect {
    std::int64_t transient = 0;  ///< live bytes while the operation runs
    std::int64_t after = 0;      ///< live bytes behind it
  };

  [[nodiscard]] std::int64_t live() const { return live_; }

  [[nodiscard]] effect of(std::uint32_t op) const {
    effect e{live_, live_};
    const order_operation& operation = graph_.operations[op];
    for (const std::uint32_t storage : operation.storages) {
      const std::int64_t bytes = graph_.bytes[storage];
      if (born(storage)) {
        e.transient += bytes;
        e.after += bytes;
      }
      if (dies(storage)) e.after -= bytes;
    }
    if (!operation.in_place.empty()) {
      for_each_in_place(
          graph_, operation, [&](std::uint32_t s) { return born(s); }, [&](std::uint32_t s) { return dies(s); },
          [&](std::uint32_t, std::uint32_t to) { e.transient -= graph_.bytes[to]; });
    }
    return e;
  }

  void run(std::uint32_t op) {
    for (const std::uint32_t storage : graph_.operations[op].storages) {
      live_ -= alive(storage) ? graph_.bytes[storage] : 0;
      ++touched_[storage];
      live_ += alive(storage) ? graph_.bytes[storage] : 0;
    }
  }

  void take_back(std::uint32_t op) {
    for (const std::uint32_t storage : graph_.operations[op].storages) {
      live_ -= alive(storage) ? graph_.bytes[storage] : 0;
      --touched_[storage];
      live_ += alive(storage) ? graph_.bytes[storage] : 0;
    }
  }

 private:
  // Seen from the next operation that touches the storage.
  [[nodiscard]] bool born(std::uint32_t storage) const { return touched_[storage] == 0; }
  [[nodiscard]] bool dies(std::uint32_t storage) const { return touched_[storage] + 1 == users_[storage]; }
  [[nodiscard]] bool alive(std::uint32_t storage) const {
    return touched_[storage] > 0 && touched_[storage] < users_[storage];
  }

  const order_graph& graph_;
  std::vector<std::uint32_t> users_;    // operations that touch a storage
  std::vector<std::uint32_t> touched_;  // of them, those that have run
  std::int64_t live_ = 0;
};

}  // namespace detail

/// An execution order by one heuristic. Precondition: a validated graph. O(nodes + edges); greedy and program
/// O(nodes * ready).
[[nodiscard]] inline std::vector<std::uint32_t> order_by(const order_graph& graph, order_strategy strategy) {
  const std::size_t count = graph.operations.size();
  const auto first = [](const std::vector<std::uint32_t>&) { return std::size_t{0}; };
  switch (strategy) {
    case order_strategy::program:
      return detail::kahn(graph, [](const std::vector<std::uint32_t>& ready) {
        return static_cast<std::size_t>(std::min_element(ready.begin(), ready.end()) - ready.begin());
      });
    case order_strategy::breadth_first:
      return detail::kahn(graph, first);
    case order_strategy::reverse_post_order: {
      const auto consumers = detail::consumers_of(graph);
      std::vector<std::uint32_t> starts;
      for (std::uint32_t op = 0; op < count; ++op) {
        if (graph.operations[op].after.empty()) starts.push_back(op);
      }
      auto order = detail::post_order(
          count, starts, [&](std::uint32_t op) -> const std::vector<std::uint32_t>& { return consumers[op]; });
      std::reverse(order.begin(), order.end());
      return order;
    }
    case order_strategy::demand_depth_first: {
      const auto consumers = detail::consumers_of(graph);
      // Largest memory that the walk below an operation holds at least: its own storages.
      std::vector<std::int64_t> touched(count, 0);
      std::vector<std::vector<std::uint32_t>> inputs(count);
      std::vector<std::uint32_t> starts;
      for (std::uint32_t op = 0; op < count; ++op) {
        for (const std::uint32_t storage : graph.operations[op].storages) touched[op] += graph.bytes[storage];
        if (consumers[op].empty()) starts.push_back(op);
      }
      for (std::uint32_t op = 0; op < count; ++op) {
        inputs[op] = graph.operations[op].after;
        std::stable_sort(inputs[op].begin(), inputs[op].end(),
                         [&](std::uint32_t a, std::uint32_t b) { return touched[a] > touched[b]; });
      }
      return detail::post_order(count, starts,
                                [&](std::uint32_t op) -> const std::vector<std::uint32_t>& { return inputs[op]; });
    }
    case order_strategy::greedy: {
      detail::running_memory memory(graph);
      return detail::kahn(graph, [&](const std::vector<std::uint32_t>& ready) {
        std::size_t best = 0;
        auto best_effect = memory.of(ready[0]);
        for (std::size_t i = 1; i < ready.size(); ++i) {
          const auto effect = memory.of(ready[i]);
          if (std::pair(effect.after, effect.transient) < std::pair(best_effect.after, best_effect.transient)) {
            best = i;
            best_effect = effect;
          }
        }
        memory.run(ready[best]);
        return best;
      });
    }
  }
  return {};
}

}  // namespace dnnopt::memory

#endif  // DNNOPT_MEMORY_ORDER_ORDER_HEURISTICS_HPP
