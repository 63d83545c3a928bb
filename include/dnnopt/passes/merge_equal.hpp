// Owns common subexpressions: nodes that compute the same from the same, and equal small constants, become one.
#ifndef DNNOPT_PASSES_MERGE_EQUAL_HPP
#define DNNOPT_PASSES_MERGE_EQUAL_HPP

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <variant>
#include <vector>

#include <dnnopt/graph.hpp>
#include <dnnopt/graph_io.hpp>
#include <dnnopt/passes/pass.hpp>

namespace dnnopt {

/// Before: two nodes of one operator with equal attributes that read the same values.
/// After: readers of the second read the first; the second is gone. Constants of up to `largest_constant` elements
/// that are equal are merged first, and those of up to `largest_choice` elements that are only compared or chosen from;
/// others are weights, on whose values no edit may depend. Conditions: the
/// operator is deterministic and has no bodies; an output that is a graph output keeps its node. O(V + E) expected.
struct merge_equal {
  static constexpr std::string_view name = "merge_equal";
  std::int64_t largest_constant = 63;
  std::int64_t largest_choice = 4096;

  pass_result run(graph& g) const {
    pass_result result;
    merge_constants(g, result);
    std::unordered_map<std::string, node_id> seen;
    for (const node_id id : g.topological_order()) {
      const auto key = key_of(g, id);
      if (!key) continue;
      const auto [at, added] = seen.emplace(*key, id);
      if (added) continue;
      const std::vector<value_id> outputs = g.node_at(id).outputs;
      const std::vector<value_id> kept = g.node_at(at->second).outputs;
      bool possible = outputs.size() == kept.size();
      for (std::size_t i = 0; possible && i < outputs.size(); ++i)
        possible = (outputs[i] == no_value || (kept[i] != no_value && !g.is_output(outputs[i])));
      if (!possible) continue;
      for (std::size_t i = 0; i < outputs.size(); ++i)
        if (outputs[i] != no_value) g.replace_uses(outputs[i], kept[i]);
      g.remove_node(id);
      ++result.edits;
    }
    return result;
  }

 private:
  void merge_constants(graph& g, pass_result& result) const {
    std::unordered_map<std::string, value_id> seen;
    const auto count = static_cast<value_id>(g.value_count());
    for (value_id id = 0; id < count; ++id) {
      const value_facts& facts = g.facts(id);
      if (!facts.is_constant() || facts.type == dtype::string || g.value_at(id).uses.empty()) continue;
      if (g.is_output(id) || facts.constant.size() > (is_choice(g, id) ? largest_choice : largest_constant)) continue;
      const auto bytes = facts.constant.bytes();
      std::string key = std::string(name_of(facts.type)) + to_string(facts.constant.dims()) + ":";
      key.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
      const auto [at, added] = seen.emplace(std::move(key), id);
      if (added) continue;
      g.replace_uses(id, at->second);
      ++result.edits;
    }
  }

  /// Whether only element-wise operators without algebraic properties read a constant (Where, comparisons): what is
  /// learned is added or multiplied.
  static bool is_choice(const graph& g, value_id id) {
    const auto& uses = g.value_at(id).uses;
    return std::all_of(uses.begin(), uses.end(), [&](const value_use& use) {
      const op_info& op = *g.node_at(use.node).op;
      return op.kind == computation_kind::element_wise && op.properties == algebra::none;
    });
  }

  static std::optional<std::string> key_of(const graph& g, node_id id) {
    const node& n = g.node_at(id);
    if (n.op->random || n.op->kind == computation_kind::random || n.op->kind == computation_kind::control_flow)
      return std::nullopt;
    std::string key = std::to_string(reinterpret_cast<std::uintptr_t>(n.op));
    for (const value_id in : n.inputs) key += "," + std::to_string(in);
    std::vector<std::string> rows;
    for (const auto& [attribute_name, held] : n.attributes) {
      if (std::holds_alternative<subgraph>(held)) return std::nullopt;
      // The printed form of a large tensor leaves elements out.
      if (std::holds_alternative<tensor>(held) || std::holds_alternative<std::vector<tensor>>(held))
        return std::nullopt;
      rows.push_back(attribute_name + "=" + to_string(held));
    }
    std::sort(rows.begin(), rows.end());
    for (const std::string& row : rows) key += ";" + row;
    return key + "|" + std::to_string(n.outputs.size());
  }
};

static_assert(Pass<merge_equal>);

}  // namespace dnnopt

#endif  // DNNOPT_PASSES_MERGE_EQUAL_HPP
