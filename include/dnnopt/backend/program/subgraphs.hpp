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
#include <dnnopt/passes/fusion/roles.hpp>

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

/// Which steps of a program are nac, where the operands and sizes of each come from, and the parts that this makes.
class step_sources {
 public:
  /// Precondition: rdp has run on the graph of `p`, which outlives this object.
  explicit step_sources(const program& p)
      : p_(p),
        g_(*p.g),
        count_(static_cast<std::uint32_t>(p.steps.size())),
        step_of_(g_.node_limit(), nobody),
        stored_by_(g_.value_count(), nobody),
        runs_(count_, false),
        nac_(count_, false),
        sources_(count_),
        decided_by_(count_) {
    const auto late = fusion::late_symbols(g_, g_.topological_order());
    const auto tellers = fusion::size_tellers(g_, late);
    find_nac_steps(fusion::bringers_of_symbols(g_, late));
    for (std::uint32_t s = 0; s < count_; ++s) find_sources(s, tellers);
  }

  /// The parts by their first step, be it a view or a known value, which no part lists. Those that are not nac say that
  /// their sizes are known, and the versions of all are yet to be counted.
  [[nodiscard]] std::map<std::uint32_t, program_subgraph> parts() const {
    joined_steps joined(count_);
    for (std::uint32_t s = 0; s < count_; ++s)
      for (const std::uint32_t other : sources_[s])
        if (nac_[s] == nac_[other] && (nac_[s] || decided_by_[s] == decided_by_[other])) joined.join(s, other);
    std::map<std::uint32_t, program_subgraph> found;
    for (std::uint32_t s = 0; s < count_; ++s) {
      if (!runs_[s]) continue;
      program_subgraph& part = found[joined.find(s)];
      part.steps.push_back(s);
      part.launches += p_.steps[s].lowered.kernels.size();
      if (nac_[s]) part.sizes = subgraph_class::nac;
    }
    return found;
  }

 private:
  static constexpr std::uint32_t nobody = program_storages::none;

  /// Finds which steps run and where nodes and values come from; nac are those that run and bring a late symbol
  /// (`brings`, by node) or a result of unknown rank.
  void find_nac_steps(const std::vector<bool>& brings) {
    for (std::uint32_t s = 0; s < count_; ++s) {
      const placed_node& step = p_.steps[s];
      runs_[s] = step.where == placement::device || is_steered(step.where);
      for (const node_id id : step.members) {
        if (step_of_[id] == nobody) step_of_[id] = s;
        nac_[s] = nac_[s] || (runs_[s] && brings[id]);
      }
      for (const value_id out : step.outputs) {
        stored_by_[out] = s;
        nac_[s] = nac_[s] || (runs_[s] && !g_.facts(out).dims);
      }
    }
  }

  /// Finds the steps that a step's operands and sizes come from. Precondition: those of all steps before it are found.
  void find_sources(std::uint32_t s, const std::vector<std::vector<node_id>>& tellers) {
    const placed_node& step = p_.steps[s];
    for (const node_id id : step.members) {
      for (const value_id in : g_.node_at(id).inputs)
        if (in != no_value && stored_by_[in] != s) add_source(s, stored_by_[in]);
      if (!tellers.empty())
        for (const node_id source : fusion::size_sources(g_, id, tellers)) add_source(s, step_of_[source]);
    }
    if (step.where == placement::alias && step.alias_of != no_value) add_source(s, stored_by_[step.alias_of]);
  }

  /// Notes that a step depends on another one before it, and so on the nac steps that decide that one.
  void add_source(std::uint32_t s, std::uint32_t other) {
    if (other == nobody || other >= s) return;
    sources_[s].push_back(other);
    if (nac_[other])
      decided_by_[s].insert(other);
    else
      decided_by_[s].insert(decided_by_[other].begin(), decided_by_[other].end());
  }

  const program& p_;
  const graph& g_;
  std::uint32_t count_;
  std::vector<std::uint32_t> step_of_;    // by node
  std::vector<std::uint32_t> stored_by_;  // by value
  std::vector<bool> runs_;                // by step, as all that follows
  std::vector<bool> nac_;
  std::vector<std::vector<std::uint32_t>> sources_;
  std::vector<std::set<std::uint32_t>> decided_by_;  // the nac steps
};

/// Counts the execution orders that parts of a program need for several values of its symbols.
class version_counter {
 public:
  /// `p` outlives this object.
  explicit version_counter(const program& p)
      : p_(p),
        storages_(storages_of(p)),
        scenarios_(size_scenarios(p, storages_)),
        whole_(order_graph_of(p, storages_, scenarios_.front())) {
    for (const symbol_values& values : scenarios_) bytes_under_.push_back(planned_bytes(storages_, values));
  }

  /// States the versions of a part, searched within `budget` seconds, and whether it is mixed. Precondition: the part
  /// is one of step_sources::parts.
  void count(program_subgraph& part, double budget) const {
    if (part.sizes == subgraph_class::nac) {
      part.versions = 0;
    } else if (is_symbolic(part)) {
      part.sizes = subgraph_class::mixed;
      const std::vector<std::vector<std::int64_t>> sizes = sizes_of(part);
      part.versions = orders_needed(cut_out(whole_, part.steps), sizes, budget);
    }
  }

 private:
  /// Whether a dim of what a part computes is no number.
  [[nodiscard]] bool is_symbolic(const program_subgraph& part) const {
    const graph& g = *p_.g;
    return std::any_of(part.steps.begin(), part.steps.end(), [&](std::uint32_t s) {
      const std::vector<value_id>& outputs = p_.steps[s].outputs;
      return std::any_of(outputs.begin(), outputs.end(),
                         [&](value_id out) { return g.facts(out).dims && !is_static(*g.facts(out).dims); });
    });
  }

  /// The bytes of the storages that a part touches, others' 0, under those values of the symbols that do not only scale
  /// them all: such ones call for no other plan.
  [[nodiscard]] std::vector<std::vector<std::int64_t>> sizes_of(const program_subgraph& part) const {
    std::vector<bool> touched(storages_.all.size(), false);
    for (const std::uint32_t s : part.steps)
      for (const std::uint32_t storage : storages_.by_step[s]) touched[storage] = true;
    std::vector<std::vector<std::int64_t>> sizes;
    for (std::vector<std::int64_t> bytes : bytes_under_) {
      for (std::size_t i = 0; i < bytes.size(); ++i)
        if (!touched[i]) bytes[i] = 0;
      add_unless_scaled(sizes, std::move(bytes));
    }
    return sizes;
  }

  const program& p_;
  program_storages storages_;
  std::vector<symbol_values> scenarios_;
  memory::order_graph whole_;
  std::vector<std::vector<std::int64_t>> bytes_under_;  // by scenario, then by storage
};

}  // namespace detail

/// Parts of a program: maximal connected sets of steps whose sizes depend on the same nac steps, so that all of them
/// can be planned as soon as these have run; and nac steps that follow each other. Views and known values belong to
/// whoever reads them. The versions of a mixed part come from searched orders for several values of its symbols (all
/// small, middling, large; each alone large), `budget` seconds for each part.
/// Precondition: rdp has run on the graph. O(V E / 64) beside the searches.
[[nodiscard]] inline std::vector<program_subgraph> subgraphs_of(const program& p, double budget = 0.25) {
  std::map<std::uint32_t, program_subgraph> found = detail::step_sources(p).parts();
  const detail::version_counter versions(p);
  std::vector<program_subgraph> result;
  for (auto& [root, part] : found) {
    versions.count(part, budget);
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
