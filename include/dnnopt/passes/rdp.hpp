// Owns rank and dimension propagation: raises element types, shapes and symbolic values to their fixed point
// (SoD2 4.1).
#ifndef DNNOPT_PASSES_RDP_HPP
#define DNNOPT_PASSES_RDP_HPP

#include <algorithm>
#include <cstddef>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <dnnopt/error.hpp>
#include <dnnopt/graph.hpp>
#include <dnnopt/passes/enter_body.hpp>
#include <dnnopt/passes/exact_sizes.hpp>
#include <dnnopt/passes/graph_views.hpp>
#include <dnnopt/passes/pass.hpp>

namespace dnnopt {

namespace detail {

[[nodiscard]] inline std::string describe(const node& n) {
  return "node '" + n.name + "' (" + std::string(n.op->name) + ")";
}

}  // namespace detail

/// Forward and backward propagation over one graph and the subgraphs of its branches.
///
/// Lattice per dim: nothing known (no shape, or a symbol only execution binds), then known, symbolic and
/// operator-inferred expressions. Forward transfer is each operator's `infer`, backward its `infer_backward`. Ends when
/// no fact changes; at most `limit` sweeps. Dims that only the file declares, and what follows from them, are forgotten
/// then, and sweeps begin again from the rest. The first sweep visits every node forward, and backward those that read
/// something unknown; later ones only the neighbours of what changed. Linear in nodes; acyclic graphs settle in two or
/// three sweeps.
class rdp {
 public:
  static constexpr std::string_view name = "rdp";
  std::size_t limit = 16;

  /// Errors: shape_mismatch, type_mismatch or bad_attribute of an operator's transfer, naming the node; contradiction
  /// where forward and backward disagree, naming both.
  pass_result run(graph& g) const {
    pass_result result;
    sweeps state{g.topological_order(), std::vector<bool>(g.node_limit(), true), {}};
    settle(g, state, result);
    // What only the file says may be another export's: a run that finds otherwise must not have relied on it.
    if (forget_declared(g, state)) settle(g, state, result);
    return result;
  }

 private:
  /// What sweeps hand on to each other. Transfers are functions of facts, and facts only rise: a node whose facts did
  /// not change tells nothing new, and one that lacked nothing never lacks anything.
  struct sweeps {
    std::vector<node_id> order;
    std::vector<bool> due;         ///< nodes to visit forward: what they read or compute changed since their visit
    std::vector<node_id> lacking;  ///< nodes to visit backward, producers first: those that read something unknown
  };

  void settle(graph& g, sweeps& state, pass_result& result) const {
    for (std::size_t sweep = 0; sweep < limit; ++sweep) {
      const std::size_t changed =
          forward(g, state, sweep == 0, result.warnings) + (sweep + 1 < limit ? backward(g, state) : 0);
      result.edits += changed;
      if (changed == 0) break;
    }
  }

  /// Forgets dims that no operator told, and what follows from them; whether there were any. Where they are of an
  /// element of a sequence or an optional, no operator ever tells more: there the rank and the symbols stay.
  static bool forget_declared(graph& g, sweeps& state) {
    bool forgot = false;
    for (const node_id id : state.order)
      for (const auto& [slot, out] : views::present_slots(g.node_at(id).outputs))
        forgot = forget_declared_of(g, id, slot, out) || forgot;
    if (!forgot) return false;
    for (const node_id id : state.order)
      for (const auto& [slot, out] : views::present_slots(g.node_at(id).outputs)) {
        value_facts& known = g.facts(out);
        if (known.origin == dims_origin::from_declared && !known.is_constant()) forget(known);
        make_due(g, out, state);
      }
    return true;
  }

  static void forget(value_facts& known) {
    known.dims.reset();
    known.elements.reset();
    known.origin = dims_origin::computed;
  }

  static bool forget_declared_of(graph& g, node_id id, std::size_t slot, value_id out) {
    value_facts& known = g.facts(out);
    if (known.origin != dims_origin::declared || known.is_constant()) return false;
    const std::vector<value_id>& read = g.node_at(id).inputs;
    if (std::none_of(read.begin(), read.end(),
                     [&](value_id in) { return in != no_value && g.facts(in).kind != value_kind::tensor; })) {
      forget(known);
      return true;
    }
    const facts_of_node facts(g, id);
    bool changed = false;
    for (std::size_t k = 0; known.dims && k < known.dims->size(); ++k)
      if ((*known.dims)[k].is_constant()) {
        (*known.dims)[k] = facts->data_dim(slot, k);
        changed = true;
      }
    return changed;
  }

  static void make_due(const graph& g, value_id changed, sweeps& state) {
    const value& v = g.value_at(changed);
    if (v.producer != no_node) state.due[v.producer] = true;
    for (const value_use& use : v.uses) state.due[use.node] = true;
  }

  std::size_t forward(graph& g, sweeps& state, bool first, std::vector<warning>& warnings) const {
    std::size_t changed = 0;
    for (const node_id id : state.order) {
      if (!state.due[id]) continue;
      const node& n = g.node_at(id);
      const std::vector<value_facts> outputs = infer(g, id, warnings);
      for (const auto& [slot, out] : views::present_slots(n.outputs)) {
        if (!raise(g, out, outputs[slot], id, warnings)) continue;
        ++changed;
        make_due(g, out, state);
      }
      state.due[id] = false;
      if (first && n.op->infer_backward != nullptr && lacks_facts(g, n)) state.lacking.push_back(id);
    }
    return changed;
  }

  std::vector<value_facts> infer(const graph& g, node_id id, std::vector<warning>& warnings) const {
    const node& n = g.node_at(id);
    std::vector<value_facts> outputs(n.outputs.size());
    const facts_of_node facts(g, id);
    try {
      n.op->infer(*facts, outputs);
      if (n.op->flow != flow_form::none) follow_bodies(g, id, *facts, outputs, warnings);
      for (const value_facts& output : outputs)
        if (output.dims && std::any_of(output.dims->begin(), output.dims->end(),
                                       [](const index_expr& dim) { return dim.is_constant() && dim.constant() < 0; }))
          throw error(errc::shape_mismatch, "its result would be " + to_string(*output.dims));
    } catch (const error& e) {
      throw error(e.code(), detail::describe(n) + ": " + strip(e.what()));
    } catch (const std::out_of_range&) {
      throw error(errc::shape_mismatch, detail::describe(n) + ": it reads an element that an operand does not have");
    }
    if (n.op->converts && !outputs[0].elements) outputs[0].elements = exact_sizes(g).elements_of(id, outputs[0].type);
    return outputs;
  }

  /// What the outputs are by the bodies: of branches what all of them agree on (SoD2's Combine), and other dims become
  /// symbols that only execution binds; of Loop and Scan what holds after any number of turns. A body whose shapes
  /// contradict each other never gives outputs: whoever enters it is told so then.
  void follow_bodies(const graph& g, node_id id, const node_facts& facts, std::vector<value_facts>& outputs,
                     std::vector<warning>& warnings) const {
    const node& n = g.node_at(id);
    if (n.op->flow == flow_form::map) return;
    bool first = true;
    for (const auto& [key, held] : n.attributes) {
      const subgraph* body = std::get_if<subgraph>(&held);
      if (body == nullptr || *body == nullptr) continue;
      try {
        std::vector<warning> found;
        const entered_body entered =
            enter_body(g, id, **body, [&](graph& copy) { found = rdp{*this}.run(copy).warnings; });
        add_new_warnings(warnings, found);
        if (n.op->flow == flow_form::branches)
          merge_branch(entered.g, facts, outputs, first);
        else
          infer_turns(g, id, entered, facts, outputs);
      } catch (const error& e) {
        if (e.code() != errc::shape_mismatch && e.code() != errc::bad_attribute && e.code() != errc::contradiction)
          throw;
        warnings.push_back({warning_code::inconsistent_body, n.name,
                            detail::describe(n) + " would fail if its " + key + " ran: " + strip(e.what())});
        continue;
      }
      first = false;
    }
  }

  static void merge_branch(const graph& taken, const node_facts& facts, std::vector<value_facts>& outputs, bool first) {
    for (std::size_t o = 0; o < outputs.size() && o < taken.outputs().size(); ++o) {
      const value_facts& branch = taken.facts(taken.outputs()[o]);
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
  }

  static std::string strip(std::string_view what) {
    const std::size_t at = what.find("] ");
    return std::string(at == std::string_view::npos ? what : what.substr(at + 2));
  }

  /// Replaces dims that only the file vouches for, now that the operator tells its own; whether they changed.
  static bool correct_declared(graph& g, value_id id, const value_facts& found, node_id by,
                               std::vector<warning>& warnings) {
    value_facts& known = g.facts(id);
    if (known.origin == dims_origin::computed || !found.dims) return false;
    const dims_origin before = known.origin;
    const bool differ = *known.dims != *found.dims;
    bool agree = known.dims->size() == found.dims->size();
    for (std::size_t k = 0; agree && k < found.dims->size(); ++k) {
      const auto a = (*known.dims)[k].as_constant();
      const auto b = (*found.dims)[k].as_constant();
      agree = !a || !b || *a == *b;
    }
    const std::string& subject = g.value_at(id).name;
    if (!agree && before == dims_origin::declared)
      add_new_warnings(warnings, {{warning_code::stale_shape, subject,
                                   "'" + subject + "' is declared " + to_string(*known.dims) + ", but " +
                                       std::string(g.node_at(by).op->name) + " computes " + to_string(*found.dims) +
                                       "; what is computed counts"}});
    known.origin = g.reads_declared_dims(by) ? dims_origin::from_declared : dims_origin::computed;
    known.dims = found.dims;
    return differ || known.origin != before;
  }

  /// Whether a fact changed.
  static bool raise(graph& g, value_id id, const value_facts& found, node_id by, std::vector<warning>& warnings) {
    value_facts& known = g.facts(id);
    const node& n = g.node_at(by);
    bool changed = correct_declared(g, id, found, by, warnings);
    if (found.kind != value_kind::tensor && known.kind != found.kind) {
      known.kind = found.kind;
      changed = true;
    }
    if (found.type != dtype::undefined) {
      if (known.type != dtype::undefined && known.type != found.type)
        throw error(errc::type_mismatch, detail::describe(n) + " computes " + std::string(name_of(found.type)) +
                                             " for '" + g.value_at(id).name + "', which is declared " +
                                             std::string(name_of(known.type)));
      changed = changed || known.type != found.type;
      known.type = found.type;
    }
    if (found.dims) {
      if (!known.dims) {
        known.dims = found.dims;
        changed = true;
      } else if (known.dims->size() != found.dims->size()) {
        throw error(errc::contradiction, detail::describe(n) + " computes shape " + to_string(*found.dims) + " for '" +
                                             g.value_at(id).name + "', which is known as " + to_string(*known.dims));
      } else {
        if (*known.dims != *found.dims) g.learn_dims(id, *found.dims);
        for (std::size_t k = 0; k < known.dims->size(); ++k) {
          index_expr& have = (*known.dims)[k];
          const index_expr& got = (*found.dims)[k];
          if (have == got) continue;
          if (have.is_constant() && got.is_constant())
            throw error(errc::contradiction, detail::describe(n) + " computes shape " + to_string(*found.dims) +
                                                 " for '" + g.value_at(id).name + "', which is known as " +
                                                 to_string(*known.dims));
          // What the operator computes is what runs; a declared or merged name gives way, a known constant stays.
          if (have.is_constant()) continue;
          have = got;
          changed = true;
        }
      }
    }
    if (found.elements && known.elements != found.elements) {
      known.elements = found.elements;
      changed = true;
    }
    return changed;
  }

  /// Whether a node reads something of unknown rank.
  static bool lacks_facts(const graph& g, const node& n) {
    return std::any_of(n.inputs.begin(), n.inputs.end(),
                       [&](value_id in) { return in != no_value && !g.facts(in).dims; });
  }

  std::size_t backward(graph& g, sweeps& state) const {
    std::size_t changed = 0;
    for (auto at = state.lacking.rbegin(); at != state.lacking.rend(); ++at) {
      const node& n = g.node_at(*at);
      if (!lacks_facts(g, n)) continue;
      std::vector<value_facts> outputs;
      for (const value_id out : n.outputs) {
        outputs.push_back(out == no_value ? value_facts{} : g.facts(out));
        // What only the file says of an output tells nothing of inputs.
        if (outputs.back().origin != dims_origin::computed) outputs.back().dims.reset();
      }
      std::vector<value_facts> inputs;
      for (const value_id in : n.inputs) inputs.push_back(in == no_value ? value_facts{} : g.facts(in));
      const facts_of_node facts(g, *at);
      n.op->infer_backward(*facts, outputs, inputs);
      for (std::size_t i = 0; i < n.inputs.size(); ++i) {
        if (n.inputs[i] == no_value || g.facts(n.inputs[i]).is_constant() || !inputs[i].dims) continue;
        value_facts& known = g.facts(n.inputs[i]);
        // What the file declares stands until its own operator tells.
        if (known.origin != dims_origin::computed) continue;
        if (!known.dims) {
          known.dims = inputs[i].dims;
          make_due(g, n.inputs[i], state);
          ++changed;
          continue;
        }
        if (known.dims->size() != inputs[i].dims->size())
          throw error(errc::contradiction, detail::describe(n) + " needs shape " + to_string(*inputs[i].dims) +
                                               " of '" + g.value_at(n.inputs[i]).name + "', which is " +
                                               to_string(*known.dims));
      }
    }
    return changed;
  }
};

static_assert(Pass<rdp>);

}  // namespace dnnopt

#endif  // DNNOPT_PASSES_RDP_HPP
