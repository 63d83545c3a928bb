// Owns the partition of a program at tensors that only execution determines, and how many execution plans the sizes of
// each part can call for (SoD2 section 4.3).
#ifndef DNNOPT_BACKEND_PROGRAM_SUBGRAPHS_HPP
#define DNNOPT_BACKEND_PROGRAM_SUBGRAPHS_HPP

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <numeric>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include <dnnopt/backend/program/schedule.hpp>
#include <dnnopt/backend/program/storages.hpp>
#include <dnnopt/memory/order/exact_order.hpp>

namespace dnnopt {

/// What rank and dimension propagation knows of a part's sizes.
enum class subgraph_class : std::uint8_t {
  known,  ///< constants all of them: one plan, made before a run
  mixed,  ///< expressions over symbols, of inputs or of parts before this one
  nac,    ///< steps whose results' sizes only running them tells
};

/// A part of a program that is planned as one.
struct program_subgraph {
  subgraph_class sizes = subgraph_class::known;
  std::vector<std::uint32_t> steps;  ///< ascending
  std::size_t launches = 0;          ///< device commands
  /// Execution orders that are needed so that each considered value of the symbols has one of least memory; 0 for nac.
  std::size_t versions = 1;
};

/// How many parts of each kind a program has, in SoD2's five groups (Fig. 8).
struct subgraph_counts {
  std::size_t known = 0;
  std::size_t mixed_1 = 0;
  std::size_t mixed_2_4 = 0;
  std::size_t mixed_5_8 = 0;  ///< and more, of which there have been none
  std::size_t nac = 0;
};

namespace detail {

/// Sets that join.
class joined_steps {
 public:
  explicit joined_steps(std::size_t count) : parent_(count) { std::iota(parent_.begin(), parent_.end(), 0U); }
  [[nodiscard]] std::uint32_t find(std::uint32_t x) {
    while (parent_[x] != x) x = parent_[x] = parent_[parent_[x]];
    return x;
  }
  void join(std::uint32_t a, std::uint32_t b) {
    a = find(a);
    b = find(b);
    parent_[std::max(a, b)] = std::min(a, b);
  }

 private:
  std::vector<std::uint32_t> parent_;
};

/// The order graph of some steps alone: a first operation holds what comes from outside, a last one what is read there.
[[nodiscard]] inline memory::order_graph cut_out(const memory::order_graph& whole,
                                                 std::span<const std::uint32_t> steps) {
  constexpr auto outside = std::numeric_limits<std::uint32_t>::max();
  std::vector<std::uint32_t> place(whole.operations.size(), outside);
  for (std::uint32_t i = 0; i < steps.size(); ++i) place[steps[i]] = i + 1;
  // The first and the last operation that touch each storage.
  std::vector<std::uint32_t> first(whole.bytes.size(), outside);
  std::vector<std::uint32_t> latest(whole.bytes.size(), outside);
  for (std::uint32_t op = 0; op < whole.operations.size(); ++op)
    for (const std::uint32_t storage : whole.operations[op].storages) {
      if (first[storage] == outside) first[storage] = op;
      latest[storage] = op;
    }
  memory::order_graph part;
  part.bytes = whole.bytes;
  part.operations.resize(steps.size() + 2);
  std::set<std::uint32_t> own;
  for (std::uint32_t i = 0; i < steps.size(); ++i) {
    memory::order_operation& operation = part.operations[i + 1];
    operation = whole.operations[steps[i]];
    own.insert(operation.storages.begin(), operation.storages.end());
    std::vector<std::uint32_t> waits{0};
    for (const std::uint32_t op : operation.after)
      if (place[op] != outside) waits.push_back(place[op]);
    operation.after = std::move(waits);
  }
  const auto last = static_cast<std::uint32_t>(steps.size() + 1);
  for (std::uint32_t i = 0; i < last; ++i) part.operations[last].after.push_back(i);
  for (const std::uint32_t storage : own) {
    if (place[first[storage]] == outside) part.operations[0].storages.push_back(storage);
    if (place[latest[storage]] == outside) part.operations[last].storages.push_back(storage);
  }
  return part;
}

/// The fewest orders found such that each of several sizes of one graph has one with its least peak.
[[nodiscard]] inline std::size_t orders_needed(memory::order_graph graph,
                                               const std::vector<std::vector<std::int64_t>>& sizes, double budget) {
  memory::order_options searching;
  searching.budget = budget / static_cast<double>(sizes.size());
  std::vector<std::vector<std::uint32_t>> orders;
  std::vector<std::int64_t> least;
  for (const auto& bytes : sizes) {
    graph.bytes = bytes;
    const memory::order_plan plan = memory::plan_order(graph, searching);
    least.push_back(plan.peak);
    orders.push_back(plan.order);
  }
  // Greedy cover: the order that serves most of the sizes that none serves yet.
  std::vector<std::vector<bool>> serves(orders.size(), std::vector<bool>(sizes.size()));
  for (std::size_t k = 0; k < sizes.size(); ++k) {
    graph.bytes = sizes[k];
    for (std::size_t i = 0; i < orders.size(); ++i)
      serves[i][k] = memory::cost_of_order(graph, orders[i]).peak <= least[k];
  }
  std::vector<bool> served(sizes.size(), false);
  std::size_t needed = 0;
  while (std::find(served.begin(), served.end(), false) != served.end()) {
    std::size_t best = 0;
    std::size_t most = 0;
    for (std::size_t i = 0; i < orders.size(); ++i) {
      std::size_t more = 0;
      for (std::size_t k = 0; k < sizes.size(); ++k) more += serves[i][k] && !served[k] ? 1U : 0U;
      if (more > most) best = i;
      most = std::max(most, more);
    }
    for (std::size_t k = 0; k < sizes.size(); ++k) served[k] = served[k] || serves[best][k];
    ++needed;
  }
  return needed;
}

}  // namespace detail

/// Parts of a program: maximal connected sets of steps whose sizes depend on the same nac steps, so that all of them
/// can be planned as soon as these have run; and nac steps that follow each other. Views and known values belong to
/// whoever reads them. The versions of a mixed part come from searched orders for several values of its symbols (all
/// small, middling, large; each alone large), `budget` seconds for each part.
/// Precondition: rdp has run on the graph. O(V E / 64) beside the searches.
[[nodiscard]] inline std::vector<program_subgraph> subgraphs_of(const program& p, double budget = 0.25) {
  const graph& g = *p.g;
  const auto count = static_cast<std::uint32_t>(p.steps.size());
  constexpr std::uint32_t nobody = program_storages::none;
  const std::vector<node_id> order = g.topological_order();
  const auto late = fusion::late_symbols(g, order);
  const auto tellers = fusion::size_tellers(g, late);
  const std::vector<bool> brings = fusion::bringers_of_symbols(g, late);
  std::vector<std::uint32_t> step_of(g.node_limit(), nobody);
  std::vector<std::uint32_t> stored_by(g.value_count(), nobody);
  std::vector<bool> runs(count, false);
  std::vector<bool> nac(count, false);
  for (std::uint32_t s = 0; s < count; ++s) {
    const placed_node& step = p.steps[s];
    runs[s] = step.where == placement::device || is_steered(step.where);
    for (const node_id id : step.members) {
      if (step_of[id] == nobody) step_of[id] = s;
      nac[s] = nac[s] || (runs[s] && brings[id]);
    }
    for (const value_id out : step.outputs) {
      stored_by[out] = s;
      nac[s] = nac[s] || (runs[s] && !g.facts(out).dims);
    }
  }

  // Which nac steps each step's operands and sizes come from.
  std::vector<std::vector<std::uint32_t>> sources(count);
  std::vector<std::set<std::uint32_t>> decided_by(count);
  for (std::uint32_t s = 0; s < count; ++s) {
    const auto from = [&](std::uint32_t other) {
      if (other == nobody || other >= s) return;
      sources[s].push_back(other);
      if (nac[other])
        decided_by[s].insert(other);
      else
        decided_by[s].insert(decided_by[other].begin(), decided_by[other].end());
    };
    for (const node_id id : p.steps[s].members) {
      for (const value_id in : g.node_at(id).inputs)
        if (in != no_value && stored_by[in] != s) from(stored_by[in]);
      if (!tellers.empty())
        for (const node_id source : fusion::size_sources(g, id, tellers)) from(step_of[source]);
    }
    if (p.steps[s].where == placement::alias && p.steps[s].alias_of != no_value) from(stored_by[p.steps[s].alias_of]);
  }
  detail::joined_steps parts(count);
  for (std::uint32_t s = 0; s < count; ++s)
    for (const std::uint32_t other : sources[s])
      if (nac[s] == nac[other] && (nac[s] || decided_by[s] == decided_by[other])) parts.join(s, other);

  std::map<std::uint32_t, program_subgraph> found;
  for (std::uint32_t s = 0; s < count; ++s) {
    if (!runs[s]) continue;
    program_subgraph& part = found[parts.find(s)];
    part.steps.push_back(s);
    part.launches += p.steps[s].lowered.kernels.size();
    if (nac[s]) part.sizes = subgraph_class::nac;
  }
  const program_storages storages = storages_of(p);
  const std::vector<symbol_values> scenarios = detail::size_scenarios(p, storages);
  const memory::order_graph whole = order_graph_of(p, storages, scenarios.front());
  std::vector<std::vector<std::int64_t>> bytes_under;
  for (const symbol_values& values : scenarios) bytes_under.push_back(planned_bytes(storages, values));
  std::vector<program_subgraph> result;
  for (auto& [root, part] : found) {
    if (part.sizes == subgraph_class::nac) part.versions = 0;
    std::vector<bool> touched(storages.all.size(), false);
    bool symbolic = false;
    for (const std::uint32_t s : part.steps) {
      for (const std::uint32_t storage : storages.by_step[s]) touched[storage] = true;
      for (const value_id out : p.steps[s].outputs)
        symbolic = symbolic || (g.facts(out).dims && !is_static(*g.facts(out).dims));
    }
    if (part.sizes == subgraph_class::known && symbolic) {
      part.sizes = subgraph_class::mixed;
      std::vector<std::vector<std::int64_t>> sizes;
      for (std::vector<std::int64_t> bytes : bytes_under) {
        for (std::size_t i = 0; i < bytes.size(); ++i)
          if (!touched[i]) bytes[i] = 0;
        // What only scales all sizes calls for no other plan.
        const bool told = std::any_of(sizes.begin(), sizes.end(),
                                      [&](const auto& other) { return detail::proportional(other, bytes); });
        if (!told) sizes.push_back(std::move(bytes));
      }
      part.versions = detail::orders_needed(detail::cut_out(whole, part.steps), sizes, budget);
    }
    result.push_back(std::move(part));
  }
  return result;
}

/// Counts parts by SoD2's groups.
[[nodiscard]] inline subgraph_counts count_subgraphs(std::span<const program_subgraph> parts) {
  subgraph_counts counts;
  for (const program_subgraph& part : parts) {
    if (part.sizes == subgraph_class::known)
      ++counts.known;
    else if (part.sizes == subgraph_class::nac)
      ++counts.nac;
    else
      ++(part.versions <= 1 ? counts.mixed_1 : part.versions <= 4 ? counts.mixed_2_4 : counts.mixed_5_8);
  }
  return counts;
}

}  // namespace dnnopt

#endif  // DNNOPT_BACKEND_PROGRAM_SUBGRAPHS_HPP
