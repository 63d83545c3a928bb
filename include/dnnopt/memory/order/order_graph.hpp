// Owns the plain graph on which execution orders are chosen, the memory that an order needs, and its usage records.
#ifndef DNNOPT_MEMORY_ORDER_ORDER_GRAPH_HPP
#define DNNOPT_MEMORY_ORDER_ORDER_GRAPH_HPP

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <dnnopt/memory/usage.hpp>

namespace dnnopt::memory {

/// Permission that an operation writes storage `to` over storage `from`: used when `from` is not needed after the
/// operation, `to` not before it, and both have the same number of bytes.
struct in_place_pair {
  std::uint32_t from = 0;
  std::uint32_t to = 0;
};

/// An operation: what must run before it and which storages it reads or writes.
struct order_operation {
  std::vector<std::uint32_t> after;     ///< indices of operations
  std::vector<std::uint32_t> storages;  ///< indices into order_graph::bytes, each once
  std::vector<in_place_pair> in_place;  ///< by preference; each storage is used in one pair at most
};

/// Operations over storages. A storage is what tensors share: a tensor and its views are one storage; the inputs of a
/// concatenation that are written in place are one storage with its output. It is alive from the first operation that
/// touches it to the last. Storages that are not to be counted (weights, the caller's inputs and outputs) have 0 bytes.
struct order_graph {
  std::vector<std::int64_t> bytes;
  std::vector<order_operation> operations;
};

/// What an order needs: the live bytes at every step and the largest of them.
struct order_cost {
  std::vector<std::int64_t> live;  ///< per step of the order, while the operation runs
  std::int64_t peak = 0;
};

/// Usage records of an order: times are steps; in-place pairs that apply are one record.
struct order_usages {
  std::vector<buffer_usage> usages;
  std::vector<std::uint32_t> record_of_storage;  ///< per storage; storages of 0 bytes or never touched have records too
};

/// Checks indices, storages named once per operation, sizes and acyclicity. Errors: invalid_argument or
/// graph_cycle, naming the operation. O(nodes + edges).
inline void validate(const order_graph& graph) {
  const std::size_t count = graph.operations.size();
  std::int64_t sum = 0;
  for (const std::int64_t bytes : graph.bytes) {
    if (bytes < 0) throw error(errc::invalid_argument, "a storage of " + std::to_string(bytes) + " bytes");
    if (sum > std::numeric_limits<std::int64_t>::max() / 4 - bytes) {
      throw error(errc::overflow, "the storages of the order graph do not fit 61 bits");
    }
    sum += bytes;
  }
  std::vector<std::uint32_t> waiting(count, 0);
  std::vector<std::vector<std::uint32_t>> consumers(count);
  std::vector<std::uint32_t> last_user(graph.bytes.size(), static_cast<std::uint32_t>(-1));
  for (std::uint32_t op = 0; op < count; ++op) {
    const auto fail = [&](const std::string& text) {
      throw error(errc::invalid_argument, "operation " + std::to_string(op) + " " + text);
    };
    for (const std::uint32_t before : graph.operations[op].after) {
      if (before >= count) fail("runs after operation " + std::to_string(before) + " of " + std::to_string(count));
      ++waiting[op];
      consumers[before].push_back(op);
    }
    for (const std::uint32_t storage : graph.operations[op].storages) {
      if (storage >= graph.bytes.size()) fail("uses storage " + std::to_string(storage));
      if (last_user[storage] == op) fail("names storage " + std::to_string(storage) + " twice");
      last_user[storage] = op;
    }
    for (const in_place_pair pair : graph.operations[op].in_place) {
      if (pair.from >= graph.bytes.size() || pair.to >= graph.bytes.size() || last_user[pair.from] != op ||
          last_user[pair.to] != op || pair.from == pair.to) {
        fail("has an in-place pair of storages that it does not use");
      }
    }
  }
  std::vector<std::uint32_t> ready;
  for (std::uint32_t op = 0; op < count; ++op) {
    if (waiting[op] == 0) ready.push_back(op);
  }
  std::size_t reached = 0;
  while (!ready.empty()) {
    const std::uint32_t op = ready.back();
    ready.pop_back();
    ++reached;
    for (const std::uint32_t next : consumers[op]) {
      if (--waiting[next] == 0) ready.push_back(next);
    }
  }
  if (reached != count) {
    const auto stuck = std::find_if(waiting.begin(), waiting.end(), [](std::uint32_t w) { return w != 0; });
    throw error(errc::graph_cycle,
                "operation " + std::to_string(stuck - waiting.begin()) + " waits for itself in the order graph");
  }
}

namespace detail {

/// First and last step at which every storage is touched; `untouched` for none.
struct touch_range {
  static constexpr std::int64_t untouched = -1;
  std::int64_t first = untouched;
  std::int64_t last = untouched;
};

[[nodiscard]] inline std::vector<touch_range> touches(const order_graph& graph, std::span<const std::uint32_t> order) {
  std::vector<touch_range> ranges(graph.bytes.size());
  for (std::size_t step = 0; step < order.size(); ++step) {
    for (const std::uint32_t storage : graph.operations[order[step]].storages) {
      touch_range& range = ranges[storage];
      if (range.first == touch_range::untouched) range.first = static_cast<std::int64_t>(step);
      range.last = static_cast<std::int64_t>(step);
    }
  }
  return ranges;
}

/// Calls `apply(from, to)` for the pairs of one operation that apply, given who is born and who dies in it.
template <class Born, class Dies, class Apply>
void for_each_in_place(const order_graph& graph, const order_operation& operation, Born&& born, Dies&& dies,
                       Apply&& apply) {
  std::vector<std::uint32_t> used;
  for (const in_place_pair pair : operation.in_place) {
    if (graph.bytes[pair.from] != graph.bytes[pair.to] || born(pair.from) || !dies(pair.from) || !born(pair.to)) {
      continue;
    }
    const auto taken = [&](std::uint32_t s) { return std::find(used.begin(), used.end(), s) != used.end(); };
    if (taken(pair.from) || taken(pair.to)) continue;
    used.push_back(pair.from);
    used.push_back(pair.to);
    apply(pair.from, pair.to);
  }
}

}  // namespace detail

/// Usage records of an order. In-place pairs whose input dies and whose output is born in the operation become one
/// record; a chain of them one record in all. Storages that no operation touches get an empty record at time 0.
/// Precondition: `order` is a permutation of the operations that respects `after`. O(n + pairs).
[[nodiscard]] inline order_usages usages_of_order(const order_graph& graph, std::span<const std::uint32_t> order) {
  const auto ranges = detail::touches(graph, order);
  std::vector<std::uint32_t> root(graph.bytes.size());
  for (std::uint32_t s = 0; s < root.size(); ++s) root[s] = s;
  for (std::size_t step = 0; step < order.size(); ++step) {
    const auto now = static_cast<std::int64_t>(step);
    detail::for_each_in_place(
        graph, graph.operations[order[step]], [&](std::uint32_t s) { return ranges[s].first == now; },
        [&](std::uint32_t s) { return ranges[s].last == now; },
        [&](std::uint32_t from, std::uint32_t to) { root[to] = root[from]; });
  }
  order_usages result;
  result.record_of_storage.assign(graph.bytes.size(), 0);
  constexpr std::uint32_t none = static_cast<std::uint32_t>(-1);
  std::vector<std::uint32_t> record(graph.bytes.size(), none);
  for (std::uint32_t s = 0; s < graph.bytes.size(); ++s) {
    const bool touched = ranges[s].first != detail::touch_range::untouched;
    const buffer_usage life{touched ? ranges[s].first : 0, touched ? ranges[s].last + 1 : 1,
                            touched ? graph.bytes[s] : 0, 1};
    if (record[root[s]] == none) {
      record[root[s]] = static_cast<std::uint32_t>(result.usages.size());
      result.usages.push_back(life);
    } else {
      buffer_usage& whole = result.usages[record[root[s]]];
      whole.lower = std::min(whole.lower, life.lower);
      whole.upper = std::max(whole.upper, life.upper);
    }
    result.record_of_storage[s] = record[root[s]];
  }
  return result;
}

/// Live bytes at every step of an order: all storages touched before and after it, and those it touches, an in-place
/// pair counted once. Precondition as usages_of_order. O(n + storages).
[[nodiscard]] inline order_cost cost_of_order(const order_graph& graph, std::span<const std::uint32_t> order) {
  order_cost cost;
  std::vector<std::int64_t> change(order.size() + 1, 0);
  for (const buffer_usage& usage : usages_of_order(graph, order).usages) {
    if (usage.size == 0) continue;
    change[static_cast<std::size_t>(usage.lower)] += usage.size;
    change[static_cast<std::size_t>(usage.upper)] -= usage.size;
  }
  std::int64_t live = 0;
  for (std::size_t step = 0; step < order.size(); ++step) {
    live += change[step];
    cost.live.push_back(live);
    cost.peak = std::max(cost.peak, live);
  }
  return cost;
}

/// Whether `order` holds every operation once and respects `after`. O(nodes + edges).
[[nodiscard]] inline bool is_execution_order(const order_graph& graph, std::span<const std::uint32_t> order) {
  constexpr std::size_t never = static_cast<std::size_t>(-1);
  if (order.size() != graph.operations.size()) return false;
  std::vector<std::size_t> step(order.size(), never);
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (order[i] >= order.size() || step[order[i]] != never) return false;
    step[order[i]] = i;
  }
  for (std::size_t op = 0; op < order.size(); ++op) {
    for (const std::uint32_t before : graph.operations[op].after) {
      if (step[before] >= step[op]) return false;
    }
  }
  return true;
}

/// One output per operation, as most descriptions of networks give it: `inputs` are operations whose output is read.
struct simple_operation {
  std::vector<std::uint32_t> inputs;
  std::int64_t out_bytes = 0;
};

/// The order graph of operations with one output each. The outputs of operations without inputs (graph inputs) and
/// without consumers (graph outputs) belong to the caller and are not counted. Errors: invalid_argument.
[[nodiscard]] inline order_graph make_order_graph(std::span<const simple_operation> operations) {
  order_graph graph;
  std::vector<char> consumed(operations.size(), 0);
  for (std::uint32_t op = 0; op < operations.size(); ++op) {
    order_operation operation;
    for (const std::uint32_t input : operations[op].inputs) {
      if (input >= operations.size()) {
        throw error(errc::invalid_argument, "operation " + std::to_string(op) + " reads operation " +
                                                std::to_string(input) + " of " + std::to_string(operations.size()));
      }
      consumed[input] = 1;
      operation.after.push_back(input);
    }
    std::sort(operation.after.begin(), operation.after.end());
    operation.after.erase(std::unique(operation.after.begin(), operation.after.end()), operation.after.end());
    operation.storages = operation.after;
    operation.storages.push_back(op);
    graph.operations.push_back(std::move(operation));
    graph.bytes.push_back(operations[op].out_bytes);
  }
  for (std::size_t op = 0; op < operations.size(); ++op) {
    if (operations[op].inputs.empty() || consumed[op] == 0) graph.bytes[op] = 0;
  }
  validate(graph);
  return graph;
}

}  // namespace dnnopt::memory

#endif  // DNNOPT_MEMORY_ORDER_ORDER_GRAPH_HPP
