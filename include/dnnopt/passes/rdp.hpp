// Owns rank and dimension propagation: raises element types, shapes and symbolic values to their fixed point
// (SoD2 4.1).
#ifndef DNNOPT_PASSES_RDP_HPP
#define DNNOPT_PASSES_RDP_HPP

#include <algorithm>
#include <cstddef>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <dnnopt/error.hpp>
#include <dnnopt/graph.hpp>
#include <dnnopt/passes/graph_views.hpp>
#include <dnnopt/passes/pass.hpp>

namespace dnnopt {

namespace detail {

[[nodiscard]] inline bool same_facts(const value_facts& a, const value_facts& b) {
  return a.kind == b.kind && a.type == b.type && a.dims == b.dims && a.elements == b.elements &&
         a.is_constant() == b.is_constant();
}

[[nodiscard]] inline std::string describe(const node& n) {
  return "node '" + n.name + "' (" + std::string(n.op->name) + ")";
}

}  // namespace detail

/// Forward and backward propagation over one graph and the subgraphs of its branches.
///
/// Lattice per dim: nothing known (no shape, or a symbol only execution binds), then known, symbolic and
/// operator-inferred expressions. Forward transfer is each operator's `infer`, backward its `infer_backward`. Ends when
/// no fact changes; at most `limit` sweeps. Linear in nodes per sweep; acyclic graphs settle in two or three.
class rdp {
 public:
  static constexpr std::string_view name = "rdp";
  std::size_t limit = 16;

  /// Errors: shape_mismatch, type_mismatch or bad_attribute of an operator's transfer, naming the node; contradiction
  /// where forward and backward disagree, naming both.
  pass_result run(graph& g) const {
    pass_result result;
    for (std::size_t sweep = 0; sweep < limit; ++sweep) {
      const std::size_t changed = forward(g) + (sweep + 1 < limit ? backward(g) : 0);
      result.edits += changed;
      if (changed == 0) break;
    }
    return result;
  }

 private:
  std::size_t forward(graph& g) const {
    std::size_t changed = 0;
    for (const node_id id : g.topological_order()) {
      const node& n = g.node_at(id);
      const std::vector<value_facts> outputs = infer(g, id);
      for (const auto& [slot, out] : views::present_slots(n.outputs)) changed += raise(g, out, outputs[slot], n);
    }
    return changed;
  }

  std::vector<value_facts> infer(const graph& g, node_id id) const {
    const node& n = g.node_at(id);
    std::vector<value_facts> outputs(n.outputs.size());
    const facts_of_node facts(g, id);
    try {
      n.op->infer(*facts, outputs);
      if (n.op->branches) merge_branches(g, id, *facts, outputs);
    } catch (const error& e) {
      throw error(e.code(), detail::describe(n) + ": " + strip(e.what()));
    }
    return outputs;
  }

  /// Merge at Combine: outputs of all branches; dims that differ become symbols only execution binds.
  void merge_branches(const graph& g, node_id id, const node_facts& facts, std::vector<value_facts>& outputs) const {
    const node& n = g.node_at(id);
    bool first = true;
    for (const auto& [key, held] : n.attributes) {
      const subgraph* body = std::get_if<subgraph>(&held);
      if (body == nullptr || *body == nullptr) continue;
      graph copy = **body;
      const std::size_t formal = n.formal_inputs();
      for (std::size_t i = formal; i < n.inputs.size() && i - formal < copy.inputs().size(); ++i)
        copy.facts(copy.inputs()[i - formal]) = g.facts(n.inputs[i]);
      rdp{*this}.run(copy);
      for (std::size_t o = 0; o < outputs.size() && o < copy.outputs().size(); ++o) {
        const value_facts& branch = copy.facts(copy.outputs()[o]);
        value_facts& merged = outputs[o];
        if (first) {
          merged.kind = branch.kind;
          merged.type = branch.type;
          merged.dims = branch.dims;
        } else if (merged.dims && branch.dims && merged.dims->size() == branch.dims->size()) {
          for (std::size_t k = 0; k < merged.dims->size(); ++k)
            if (!((*merged.dims)[k] == (*branch.dims)[k])) (*merged.dims)[k] = facts.data_dim(o, k);
        } else {
          merged.dims.reset();
        }
      }
      first = false;
    }
  }

  static std::string strip(std::string_view what) {
    const std::size_t at = what.find("] ");
    return std::string(at == std::string_view::npos ? what : what.substr(at + 2));
  }

  /// Whether a dim is a plain symbol that the data decides: "<value>.<output>.<axis>" or "unknown_<n>".
  static bool is_free(const index_expr& dim) {
    if (!dim.as_symbol()) return false;
    const std::string& symbol = dim.context()->symbol_name(*dim.as_symbol());
    return symbol.starts_with("unknown_");
  }

  static std::size_t raise(graph& g, value_id id, const value_facts& found, const node& n) {
    value_facts& known = g.facts(id);
    value_facts before = known;
    if (found.kind != value_kind::tensor) known.kind = found.kind;
    if (found.type != dtype::undefined) {
      if (known.type != dtype::undefined && known.type != found.type)
        throw error(errc::type_mismatch, detail::describe(n) + " computes " + std::string(name_of(found.type)) +
                                             " for '" + g.value_at(id).name + "', which is declared " +
                                             std::string(name_of(known.type)));
      known.type = found.type;
    }
    if (found.dims) {
      if (!known.dims) {
        known.dims = found.dims;
      } else if (known.dims->size() != found.dims->size()) {
        throw error(errc::contradiction, detail::describe(n) + " computes shape " + to_string(*found.dims) + " for '" +
                                             g.value_at(id).name + "', which is known as " + to_string(*known.dims));
      } else {
        for (std::size_t k = 0; k < known.dims->size(); ++k) {
          index_expr& have = (*known.dims)[k];
          const index_expr& got = (*found.dims)[k];
          if (have == got || is_free(got)) continue;
          if (have.is_constant() && got.is_constant())
            throw error(errc::contradiction, detail::describe(n) + " computes shape " + to_string(*found.dims) +
                                                 " for '" + g.value_at(id).name + "', which is known as " +
                                                 to_string(*known.dims));
          // What the operator computes is what runs; a declared or merged name gives way, a known constant stays.
          if (!have.is_constant()) have = got;
        }
      }
    }
    if (found.elements) known.elements = found.elements;
    return detail::same_facts(before, known) ? 0 : 1;
  }

  std::size_t backward(graph& g) const {
    std::size_t changed = 0;
    const std::vector<node_id> order = g.topological_order();
    for (auto at = order.rbegin(); at != order.rend(); ++at) {
      const node& n = g.node_at(*at);
      if (n.op->infer_backward == nullptr) continue;
      bool wanted = false;
      for (const value_id in : n.inputs)
        wanted = wanted || (in != no_value && (!g.facts(in).dims || has_free(*g.facts(in).dims)));
      if (!wanted) continue;
      std::vector<value_facts> outputs;
      for (const value_id out : n.outputs) outputs.push_back(out == no_value ? value_facts{} : g.facts(out));
      std::vector<value_facts> inputs;
      for (const value_id in : n.inputs) inputs.push_back(in == no_value ? value_facts{} : g.facts(in));
      const facts_of_node facts(g, *at);
      n.op->infer_backward(*facts, outputs, inputs);
      for (std::size_t i = 0; i < n.inputs.size(); ++i) {
        if (n.inputs[i] == no_value || g.facts(n.inputs[i]).is_constant() || !inputs[i].dims) continue;
        value_facts& known = g.facts(n.inputs[i]);
        if (!known.dims) {
          known.dims = inputs[i].dims;
          ++changed;
          continue;
        }
        if (known.dims->size() != inputs[i].dims->size())
          throw error(errc::contradiction, detail::describe(n) + " needs shape " + to_string(*inputs[i].dims) +
                                               " of '" + g.value_at(n.inputs[i]).name + "', which is " +
                                               to_string(*known.dims));
        for (std::size_t k = 0; k < known.dims->size(); ++k)
          if (is_free((*known.dims)[k]) && !is_free((*inputs[i].dims)[k]) &&
              !((*known.dims)[k] == (*inputs[i].dims)[k])) {
            (*known.dims)[k] = (*inputs[i].dims)[k];
            ++changed;
          }
      }
    }
    return changed;
  }

  static bool has_free(const shape& dims) {
    return std::any_of(dims.begin(), dims.end(), [](const index_expr& d) { return is_free(d); });
  }
};

static_assert(Pass<rdp>);

}  // namespace dnnopt

#endif  // DNNOPT_PASSES_RDP_HPP
