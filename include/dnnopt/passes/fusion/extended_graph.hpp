// Owns DNNFusion's extended computational graph: what fusion and rewriting ask of each node, as a value.
#ifndef DNNOPT_PASSES_FUSION_EXTENDED_GRAPH_HPP
#define DNNOPT_PASSES_FUSION_EXTENDED_GRAPH_HPP

#include <cstddef>
#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

#include <dnnopt/graph.hpp>
#include <dnnopt/ops/mapping_table.hpp>
#include <dnnopt/passes/graph_views.hpp>

namespace dnnopt::fusion {

/// What the extended computational graph holds of a node beside operator and edges (DNNFusion section 3.1, Fig. 1).
struct extended_node {
  node_id id = no_node;
  mapping_type mapping = mapping_type::one_to_one;  ///< of the node: the most complex of its inputs (footnote 1)
  std::vector<std::optional<mapping_type>> input_mappings;  ///< towards output 0; nothing for an input that is absent
  std::optional<index_expr> result_bytes;  ///< of all outputs: IRS_size; nothing where dims are unknown
  /// Whether the results need not be stored: no output is the graph's, and Table 3 is red for no reader (IR_removable).
  bool removable = false;
  algebra properties = algebra::none;
};

/// The extended computational graph, in topological order. Precondition: rdp has run. Errors: graph_cycle. O(V + E).
[[nodiscard]] inline std::vector<extended_node> extended_graph(const graph& g) {
  const std::unordered_set<value_id> outputs(g.outputs().begin(), g.outputs().end());
  const auto mapping_at = [&](node_id id) {
    const facts_of_node facts(g, id);
    return node_mapping(*g.node_at(id).op, *facts);
  };
  std::vector<extended_node> nodes;
  for (const node_id id : g.topological_order()) {
    const node& n = g.node_at(id);
    const facts_of_node facts(g, id);
    extended_node made;
    made.id = id;
    made.mapping = mapping_at(id);
    for (std::size_t i = 0; i < n.inputs.size(); ++i)
      made.input_mappings.push_back(n.inputs[i] == no_value ? std::nullopt
                                                            : std::optional(mapping_of(*n.op, *facts, i, 0)));
    made.properties = n.op->properties;
    made.result_bytes = index_expr(0);
    std::size_t readers = 0;
    made.removable = true;
    for (const value_id out : n.outputs) {
      if (out == no_value) continue;
      const value_facts& result = g.facts(out);
      if (!result.dims)
        made.result_bytes.reset();
      else if (made.result_bytes)
        *made.result_bytes += element_count(*result.dims) * static_cast<std::int64_t>(size_of(result.type));
      made.removable = made.removable && !outputs.contains(out);
      for (const value_use& use : g.value_at(out).uses) {
        ++readers;
        made.removable =
            made.removable && dnnopt::fuse(made.mapping, mapping_at(use.node)).verdict != fusion_verdict::never;
      }
    }
    made.removable = made.removable && readers > 0;
    nodes.push_back(std::move(made));
  }
  return nodes;
}

/// "associative, commutative, distributive", or those that hold.
[[nodiscard]] inline std::string properties_text(algebra properties) {
  std::string text;
  const auto add = [&](algebra one, const char* name) {
    if (has(properties, one)) text += (text.empty() ? "" : ", ") + std::string(name);
  };
  add(algebra::associative, "associative");
  add(algebra::commutative, "commutative");
  add(algebra::distributive, "distributive");
  return text;
}

}  // namespace dnnopt::fusion

#endif  // DNNOPT_PASSES_FUSION_EXTENDED_GRAPH_HPP
