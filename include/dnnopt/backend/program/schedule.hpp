// Owns the execution order of a program's steps for least memory: searched where sizes are known, compared as
// expressions where they are not.
#ifndef DNNOPT_BACKEND_PROGRAM_SCHEDULE_HPP
#define DNNOPT_BACKEND_PROGRAM_SCHEDULE_HPP

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dnnopt/backend/program/memory_options.hpp>
#include <dnnopt/backend/program/storages.hpp>
#include <dnnopt/expr_symbols.hpp>
#include <dnnopt/memory/order/schedule_memory.hpp>
#include <dnnopt/memory/plan_store.hpp>

namespace dnnopt {

/// What scheduling a program may use.
struct program_schedule_options {
  double budget = 0.25;                 ///< seconds of wall time for order and offsets together
  std::size_t alignment = 1;            ///< of every offset, in bytes
  std::int64_t limit = 0;               ///< an arena of at most this many bytes will do; 0: the least
  memory::plan_store* store = nullptr;  ///< orders and plans kept from before; receives the new ones
};

namespace detail {

/// Puts the steps of a program into an order of their indices.
inline void reorder_steps(program& p, std::span<const std::uint32_t> order) {
  std::vector<placed_node> steps;
  steps.reserve(order.size());
  for (const std::uint32_t i : order) steps.push_back(std::move(p.steps[i]));
  p.steps = std::move(steps);
}

/// Values of the symbols that sizes depend on, for comparing orders: all small, middling and large within their ranges,
/// then each of the first few symbols alone large.
[[nodiscard]] inline std::vector<symbol_values> size_scenarios(const program& p, const program_storages& s) {
  std::set<std::uint32_t> symbols;
  for (const program_storage& storage : s.all)
    if (storage.bytes) collect_symbols(*storage.bytes, symbols);
  const expr_context& context = p.g->expressions();
  const auto clipped = [&](std::uint32_t symbol, std::int64_t value) {
    const expr_range range = context.symbol_at(symbol).range();
    return std::clamp(value, std::max<std::int64_t>(range.low, 1), std::max<std::int64_t>(range.high, 1));
  };
  std::vector<symbol_values> scenarios;
  const auto add = [&](auto&& value_of) {
    symbol_values values;
    for (std::uint32_t symbol = 0; symbol < context.symbol_count(); ++symbol) values.bind(symbol, 1);
    for (const std::uint32_t symbol : symbols) values.bind(symbol, clipped(symbol, value_of(symbol)));
    scenarios.push_back(std::move(values));
  };
  constexpr std::int64_t small = 1;
  constexpr std::int64_t middling = 24;
  constexpr std::int64_t large = 384;
  constexpr std::size_t most_alone = 4;
  add([&](std::uint32_t) { return middling; });
  if (symbols.empty()) return scenarios;
  add([&](std::uint32_t) { return small; });
  add([&](std::uint32_t) { return large; });
  if (symbols.size() > 1) {
    std::size_t alone = 0;
    for (const std::uint32_t one : symbols) {
      if (alone++ == most_alone) break;
      add([&](std::uint32_t symbol) { return symbol == one ? large : small; });
    }
  }
  return scenarios;
}

/// The live sums at the steps of an order as expressions, each once. Sizes of unknown rank count nothing.
[[nodiscard]] inline std::vector<index_expr> live_expressions(const program_storages& s,
                                                              const memory::order_graph& graph,
                                                              std::span<const std::uint32_t> order) {
  const auto ranges = memory::detail::touches(graph, order);
  std::vector<std::vector<std::uint32_t>> begin(order.size());
  std::vector<std::vector<std::uint32_t>> end(order.size());
  for (std::uint32_t i = 0; i < ranges.size(); ++i) {
    if (ranges[i].first < 0 || !s.all[i].bytes) continue;
    begin[static_cast<std::size_t>(ranges[i].first)].push_back(i);
    end[static_cast<std::size_t>(ranges[i].last)].push_back(i);
  }
  std::vector<index_expr> result;
  index_expr live = 0;
  for (std::size_t step = 0; step < order.size(); ++step) {
    for (const std::uint32_t i : begin[step]) live += *s.all[i].bytes;
    index_expr shared = 0;
    memory::detail::for_each_in_place(
        graph, graph.operations[order[step]],
        [&](std::uint32_t x) { return ranges[x].first == static_cast<std::int64_t>(step); },
        [&](std::uint32_t x) { return ranges[x].last == static_cast<std::int64_t>(step); },
        [&](std::uint32_t, std::uint32_t to) { shared += s.all[to].bytes ? *s.all[to].bytes : index_expr(0); });
    const index_expr now = live - shared;
    if (std::find(result.begin(), result.end(), now) == result.end()) result.push_back(now);
    for (const std::uint32_t i : end[step]) live -= *s.all[i].bytes;
  }
  return result;
}

/// Whether the largest of `a` is at most the largest of `b` for all values of the symbols, as far as ranges tell: each
/// of `a` is at most one of `b`.
[[nodiscard]] inline bool never_above(const std::vector<index_expr>& a, const std::vector<index_expr>& b) {
  return std::all_of(a.begin(), a.end(), [&](const index_expr& x) {
    return std::any_of(b.begin(), b.end(), [&](const index_expr& y) { return (y - x).range().low >= 0; });
  });
}

/// Whether every entry of `b` is the same multiple of `a`'s.
[[nodiscard]] inline bool proportional(const std::vector<std::int64_t>& a, const std::vector<std::int64_t>& b) {
  const auto first = std::find_if(a.begin(), a.end(), [](std::int64_t x) { return x != 0; });
  if (first == a.end()) return false;
  const auto at = static_cast<std::size_t>(first - a.begin());
  for (std::size_t i = 0; i < a.size(); ++i)
    if (static_cast<wide_int>(a[i]) * b[at] != static_cast<wide_int>(b[i]) * a[at]) return false;
  return true;
}

}  // namespace detail

/// Orders the steps of a program for the least memory of its intermediates within a budget. Host steps stay where they
/// are and part the rest (order_graph_of).
///
/// Where all sizes are known, order and offsets are searched together (memory::plan_schedule) and the plan goes to
/// `store`. Where they hold symbols, the best orders of several values of the symbols are compared with the graph's own
/// as expressions: one whose every live sum is at most some live sum of each other candidate is taken; when there is
/// none, the one whose worst ratio over the values is least (SoD2 section 4.3: symbolic comparison).
/// Errors: those of memory::validate.
inline program_schedule schedule_program(program& p, const program_schedule_options& options = {}) {
  const auto start = std::chrono::steady_clock::now();
  program_schedule result;
  const program_storages storages = storages_of(p);
  const std::vector<symbol_values> scenarios = detail::size_scenarios(p, storages);
  const memory::order_graph graph = order_graph_of(p, storages, scenarios.front());
  std::vector<std::uint32_t> own(p.steps.size());
  for (std::uint32_t i = 0; i < own.size(); ++i) own[i] = i;
  result.peak_before = memory::cost_of_order(graph, own).peak;
  std::vector<std::uint32_t> chosen = own;
  const auto finish = [&] {
    result.peak = memory::cost_of_order(graph, chosen).peak;
    if (chosen == own)
      result.decision = order_decision::kept;
    else
      detail::reorder_steps(p, chosen);
    result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    return result;
  };
  if (p.steps.empty()) return finish();

  const bool known = scenarios.size() == 1;
  if (const auto kept = options.store == nullptr ? std::nullopt : options.store->find(graph)) {
    const std::int64_t peak = memory::cost_of_order(graph, kept->order).peak;
    if (peak <= result.peak_before && (options.limit == 0 || peak <= options.limit)) {
      chosen = kept->order;
      result.decision = known ? order_decision::searched : order_decision::scenarios;
      result.proved = kept->proved;
      result.lower_bound = kept->proved ? peak : 0;
      return finish();
    }
  }
  if (known) {
    memory::schedule_options search;
    search.budget = options.budget;
    search.alignment = static_cast<std::int64_t>(std::max<std::size_t>(options.alignment, 1));
    search.limit = options.limit;
    memory::schedule_plan plan = memory::plan_schedule(graph, search);
    // The search counts sizes rounded up to the alignment.
    if (memory::cost_of_order(graph, plan.order.order).peak <= result.peak_before) chosen = plan.order.order;
    result.decision = order_decision::searched;
    result.lower_bound = plan.order.lower_bound;
    result.proved = plan.order.proved;
    const bool planned = chosen == plan.order.order;
    (void)finish();
    if (options.store != nullptr) {
      options.store->add(graph, chosen, result.proved);
      const program_records records = records_of(p, storages_of(p), scenarios.front(), options.alignment);
      memory::offset_plan offsets;
      for (std::size_t r = 0; planned && r < plan.records.usages.size(); ++r)
        if (plan.records.usages[r].size != 0) offsets.offsets.push_back(plan.offsets.offsets[r]);
      if (planned && offsets.offsets.size() == records.usages.size()) {
        offsets.strategy = plan.offsets.strategy;
        offsets.bytes = memory::arena_bytes(records.usages, offsets.offsets);
        // Sizes were rounded up to the alignment, which the topmost buffer need not be.
        if (offsets.bytes > memory::largest_live_sum(records.usages))
          options.store->add(records.usages, memory::plan_offsets_exactly(records.usages, {0.2 * options.budget}));
        options.store->add(records.usages, offsets);
      }
    }
    return result;
  }

  // Values that only scale all sizes need no look of their own.
  std::vector<std::vector<std::int64_t>> bytes;
  for (const symbol_values& values : scenarios) {
    std::vector<std::int64_t> sizes = planned_bytes(storages, values);
    const bool told =
        std::any_of(bytes.begin(), bytes.end(), [&](const auto& other) { return detail::proportional(other, sizes); });
    if (!told) bytes.push_back(std::move(sizes));
  }
  std::vector<std::vector<std::uint32_t>> candidates{own};
  std::vector<memory::order_graph> graphs;
  std::vector<std::int64_t> best;
  memory::order_options searching;
  searching.budget = options.budget / static_cast<double>(bytes.size());
  bool proved = true;
  for (const auto& sizes : bytes) {
    graphs.push_back(graph);
    graphs.back().bytes = sizes;
    const memory::order_plan plan = memory::plan_order(graphs.back(), searching);
    best.push_back(plan.peak);
    proved = proved && plan.proved;
    if (std::find(candidates.begin(), candidates.end(), plan.order) == candidates.end())
      candidates.push_back(plan.order);
  }
  std::vector<std::vector<index_expr>> live;
  for (const auto& order : candidates) live.push_back(detail::live_expressions(storages, graph, order));
  std::size_t taken = candidates.size();
  for (std::size_t i = 0; i < candidates.size() && taken == candidates.size(); ++i) {
    bool least = true;
    for (std::size_t k = 0; k < candidates.size() && least; ++k)
      least = k == i || detail::never_above(live[i], live[k]);
    if (least) taken = i;
  }
  result.decision = order_decision::symbolic;
  if (taken == candidates.size()) {
    result.decision = order_decision::scenarios;
    double least = 0;
    for (std::size_t i = 0; i < candidates.size(); ++i) {
      double worst = 1;
      for (std::size_t k = 0; k < graphs.size(); ++k)
        worst = std::max(worst, static_cast<double>(memory::cost_of_order(graphs[k], candidates[i]).peak) /
                                    std::max(1.0, static_cast<double>(best[k])));
      // The graph's own order comes first, and is left for a gain of a hundredth at least.
      if (taken == candidates.size() || worst < (taken == 0 ? 0.99 : 1.0) * least) {
        taken = i;
        least = worst;
      }
    }
  }
  chosen = candidates[taken];
  // One set of sizes up to scale: what is best for it is best for all.
  result.proved = bytes.size() == 1 && proved;
  if (result.proved) result.lower_bound = memory::cost_of_order(graph, chosen).peak;
  if (options.store != nullptr) options.store->add(graph, chosen, result.proved);
  return finish();
}

}  // namespace dnnopt

#endif  // DNNOPT_BACKEND_PROGRAM_SCHEDULE_HPP
