// Owns the measure that rewriting lowers: floating-point operations, then elements read, then nodes (DNNFusion 4.2).
#ifndef DNNOPT_PASSES_REWRITING_WORK_HPP
#define DNNOPT_PASSES_REWRITING_WORK_HPP

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include <dnnopt/graph.hpp>
#include <dnnopt/guessed_value.hpp>
#include <dnnopt/ops/op_info.hpp>

namespace dnnopt::rewriting {

/// What operators cost, by their traits. Compared in order: operations, elements read, nodes.
struct work {
  double flops = 0;
  double reads = 0;
  double nodes = 0;

  work& operator+=(const work& other) {
    flops += other.flops;
    reads += other.reads;
    nodes += other.nodes;
    return *this;
  }
  friend work operator-(const work& a, const work& b) {
    return {a.flops - b.flops, a.reads - b.reads, a.nodes - b.nodes};
  }
  friend bool operator<(const work& a, const work& b) {
    if (a.flops != b.flops) return a.flops < b.flops;
    if (a.reads != b.reads) return a.reads < b.reads;
    return a.nodes < b.nodes;
  }
};

/// The size that a symbolic dim counts as when rules are compared.
inline constexpr std::int64_t nominal_dim = 16;

/// Values for all symbols of a graph, so that symbolic work can be compared.
[[nodiscard]] inline symbol_values nominal_symbols(const expr_context& expressions) {
  return expressions.all_bound_to(nominal_dim);
}

/// The number of elements at nominal dims; 0 where the rank is not known.
[[nodiscard]] inline double elements_of(const value_facts& facts, const symbol_values& nominal) {
  if (!facts.dims) return 0;
  double count = 1;
  for (const index_expr& dim : *facts.dims) {
    const auto size = dim.is_constant() ? dim.constant() : guessed_value(dim, nominal).value_or(nominal_dim);
    count *= static_cast<double>(std::max<std::int64_t>(size, 0));
  }
  return count;
}

/// The work of one operator: twice its multiply-accumulates where its row states them, else one operation per element
/// that it aggregates or makes. Views cost no operations; what folding will compute before execution (`folds`) costs
/// nothing.
[[nodiscard]] inline work work_of(const op_info& op, const node_facts& facts, const value_facts& output,
                                  const symbol_values& nominal, bool folds) {
  if (folds) return {};
  work result;
  result.nodes = 1;
  for (std::size_t i = 0; i < facts.inputs.size(); ++i) {
    if (!facts.has(i)) continue;
    // A value that is read twice is loaded once.
    bool again = false;
    for (std::size_t j = 0; j < i; ++j) again = again || facts.inputs[j] == facts.inputs[i];
    if (!again) result.reads += elements_of(*facts.inputs[i], nominal);
  }
  if (op.kind == computation_kind::view || op.kind == computation_kind::shape_query) return result;
  if (op.macs != nullptr) {
    const index_expr macs = op.macs(facts);
    result.flops =
        2 * static_cast<double>(macs.is_constant() ? macs.constant() : guessed_value(macs, nominal).value_or(0));
    return result;
  }
  result.flops = elements_of(output, nominal);
  if (op.kind != computation_kind::element_wise && facts.has(0))
    result.flops = std::max(result.flops, elements_of(*facts.inputs[0], nominal));
  return result;
}

/// The work of a node of a graph.
[[nodiscard]] inline work work_of(const graph& g, node_id id, const symbol_values& nominal) {
  const node& n = g.node_at(id);
  if (n.outputs.empty() || n.outputs[0] == no_value) return {};
  const facts_of_node facts(g, id);
  bool folds = true;
  for (const value_id in : n.inputs) folds = folds && (in == no_value || g.facts(in).is_constant());
  return work_of(*n.op, *facts, g.facts(n.outputs[0]), nominal, folds);
}

}  // namespace dnnopt::rewriting

#endif  // DNNOPT_PASSES_REWRITING_WORK_HPP
