// Owns the derivation of guards: what a graph needs of its symbols beyond what shape propagation proves.
#ifndef DNNOPT_PASSES_DERIVE_GUARDS_HPP
#define DNNOPT_PASSES_DERIVE_GUARDS_HPP

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include <dnnopt/graph.hpp>
#include <dnnopt/guard.hpp>
#include <dnnopt/passes/exact_sizes.hpp>
#include <dnnopt/passes/rdp.hpp>

namespace dnnopt {

namespace detail {

/// Whether a dim of a value is no constant.
[[nodiscard]] inline bool has_symbols(const graph& g) {
  for (value_id v = 0; v < g.value_count(); ++v)
    if (const auto& dims = g.facts(v).dims; dims && !is_static(*dims)) return true;
  return false;
}

}  // namespace detail

/// The conditions on symbols under which every node that leads to an output of `g` is lawful: what each operator's
/// shape transfer requires (node_facts::require) and could not prove, and that no dim is negative. Each is listed once,
/// for the first node that needs it. Precondition: RDP has settled. Nodes in bodies of control flow state none: their
/// evaluation checks them where a body is entered. Errors: those of shape transfer. O(nodes).
[[nodiscard]] inline std::vector<guard> derive_guards(const graph& g) {
  std::vector<bool> wanted(g.node_limit(), false);
  std::vector<value_id> waiting(g.outputs().begin(), g.outputs().end());
  while (!waiting.empty()) {
    const node_id producer = g.value_at(waiting.back()).producer;
    waiting.pop_back();
    if (producer == no_node || wanted[producer]) continue;
    wanted[producer] = true;
    for (const value_id in : g.node_at(producer).inputs)
      if (in != no_value) waiting.push_back(in);
  }
  std::vector<guard> result;
  std::unordered_multimap<std::size_t, std::size_t> listed;
  const auto list = [&](guard&& found) {
    const std::size_t hash = hash_value(found.left) * 31 + hash_value(found.right);
    const auto [first, last] = listed.equal_range(hash);
    if (std::any_of(first, last, [&](const auto& row) { return result[row.second] == found; })) return;
    listed.emplace(hash, result.size());
    result.push_back(std::move(found));
  };
  for (const node_id id : g.topological_order()) {
    if (!wanted[id]) continue;
    const node& n = g.node_at(id);
    const facts_of_node held(g, id);
    node_facts facts = *held;
    std::vector<guard> found;
    facts.guards = &found;
    std::vector<value_facts> outputs(n.outputs.size());
    n.op->infer(facts, outputs);
    std::vector<guard> of_sizes = bounds_of_sizes(g, id);
    found.insert(found.end(), std::make_move_iterator(of_sizes.begin()), std::make_move_iterator(of_sizes.end()));
    for (const value_id out : n.outputs) {
      if (out == no_value || !g.facts(out).dims) continue;
      for (const index_expr& dim : *g.facts(out).dims)
        if (dim.range().low < 0)
          found.push_back({guard_relation::at_least, dim, 0, "a dim of '" + g.value_at(out).name + "'", {}});
    }
    for (guard& one : found) {
      one.node = detail::describe(n);
      list(std::move(one));
    }
  }
  return result;
}

/// Whether a graph may have conditions that derive_guards cannot state yet: a body of control flow may become part of
/// the graph, and a node whose operands have no known rank may come to know it. Precondition: RDP has settled.
/// O(nodes).
[[nodiscard]] inline bool hides_conditions(const graph& g) {
  for (const node_id id : g.nodes()) {
    const node& n = g.node_at(id);
    if (n.op->flow != flow_form::none) return true;
    for (const value_id out : n.outputs)
      if (out != no_value && g.facts(out).kind == value_kind::tensor && !g.facts(out).dims) return true;
  }
  return false;
}

/// Adds to the guards of `g` those of its nodes as they are now. Errors: those of shape transfer. O(nodes) beside
/// comparing guards.
inline void add_derived_guards(graph& g) {
  (void)rdp{}.run(g);
  std::vector<guard> all = g.guards();
  for (guard& one : derive_guards(g))
    if (std::find(all.begin(), all.end(), one) == all.end()) all.push_back(std::move(one));
  g.set_guards(std::move(all));
}

}  // namespace dnnopt

#endif  // DNNOPT_PASSES_DERIVE_GUARDS_HPP
