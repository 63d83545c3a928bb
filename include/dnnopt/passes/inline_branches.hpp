// Owns the inlining of branches whose condition is known: only the taken subgraph stays.
#ifndef DNNOPT_PASSES_INLINE_BRANCHES_HPP
#define DNNOPT_PASSES_INLINE_BRANCHES_HPP

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <range/v3/view/drop.hpp>
#include <range/v3/view/zip.hpp>

#include <dnnopt/expr_symbols.hpp>
#include <dnnopt/graph.hpp>
#include <dnnopt/guard.hpp>
#include <dnnopt/index_expr.hpp>
#include <dnnopt/ops/reshape.hpp>
#include <dnnopt/passes/graph_views.hpp>
#include <dnnopt/passes/pass.hpp>

namespace dnnopt {

namespace detail {

/// The conditions of branches that propagation knows as expressions over symbols which an inference's inputs bind, but
/// not as numbers; each once. Where a guard states one, inline_branches takes the branch. Precondition: RDP has run.
/// O(nodes).
[[nodiscard]] inline std::vector<index_expr> open_conditions(const graph& g) {
  std::vector<index_expr> found;
  for (const node_id id : g.nodes()) {
    const node& n = g.node_at(id);
    if (n.op->flow != flow_form::branches || n.inputs.empty()) continue;
    const auto& elements = g.facts(n.inputs[0]).elements;
    if (!elements || elements->size() != 1 || elements->front().is_constant()) continue;
    const index_expr& condition = elements->front();
    const bool is_bound_by_inputs = std::ranges::none_of(symbols_of(condition), [&](std::uint32_t symbol) {
      return is_decided_in_runs(condition.context()->symbol_at(symbol).kind());
    });
    if (is_bound_by_inputs && std::ranges::find(found, condition) == found.end()) found.push_back(condition);
  }
  return found;
}

/// What the guards of a graph say of a condition: they hold in every run, or it ends before anything is computed.
[[nodiscard]] inline std::optional<bool> stated_by_guards(const graph& g, const index_expr& condition) {
  for (const guard& one : g.guards())
    if (one.relation == guard_relation::equal && one.left == condition && one.right.is_constant())
      return one.right.constant() != 0;
  return std::nullopt;
}

}  // namespace detail

/// Before: y = If(condition, captured...) {then_branch, else_branch} where the condition is constant, known by RDP, or
/// stated by a guard.
/// After:  the taken branch's nodes in the place of the If; the other branch is gone (SoD2's Switch with one live
/// path). Exporters write such branches where a squeeze depends on a dim that propagation later tells.
struct inline_branches {
  static constexpr std::string_view name = "inline_branches";

  pass_result run(graph& g) const {
    pass_result result;
    for (const node_id id : g.topological_order()) {
      const node& n = g.node_at(id);
      if (n.op->flow != flow_form::branches || n.inputs.empty()) continue;
      const auto condition = known_condition(g, n.inputs[0]);
      if (!condition) continue;
      const attribute* held = n.attributes.find(*condition ? "then_branch" : "else_branch");
      const subgraph* body = held == nullptr ? nullptr : std::get_if<subgraph>(held);
      if (body == nullptr || *body == nullptr) continue;
      inline_body(g, id, *body);
      ++result.edits;
    }
    return result;
  }

 private:
  static std::optional<bool> known_condition(const graph& g, value_id id) {
    const value_facts& facts = g.facts(id);
    if (facts.is_constant() && facts.constant.type() == dtype::boolean && facts.constant.size() == 1)
      return facts.constant.data<bool>()[0];
    if (!facts.elements || facts.elements->size() != 1) return std::nullopt;
    const index_expr& element = facts.elements->front();
    return element.is_constant() ? std::optional(element.constant() != 0) : detail::stated_by_guards(g, element);
  }

  static void inline_body(graph& g, node_id id, const subgraph& body) {
    const node branch = g.node_at(id);
    std::vector<value_id> moved(body->value_count(), no_value);
    const std::size_t formal = branch.formal_inputs();
    for (const auto& [inside, outside] :
         ranges::views::zip(body->inputs(), branch.inputs | ranges::views::drop(formal)))
      moved[inside] = outside;
    g.remove_node(id);
    const auto keep = [&](value_id v) {
      if (v == no_value) return no_value;
      if (moved[v] == no_value) {
        const value& from = body->value_at(v);
        moved[v] = from.facts.is_constant() ? g.add_constant(branch.name + "/" + from.name, from.facts.constant)
                                            : g.add_value(branch.name + "/" + from.name, from.facts.type);
      }
      return moved[v];
    };
    // Outputs that the body's nodes compute keep the names that readers of the If know.
    for (const auto& [out, made] : ranges::views::zip(branch.outputs, body->outputs())) {
      if (out == no_value || body->value_at(made).producer == no_node || moved[made] != no_value) continue;
      moved[made] = out;
    }
    for (const node_id inner : body->topological_order()) {
      const node& n = body->node_at(inner);
      std::vector<value_id> inputs;
      std::vector<value_id> outputs;
      for (const value_id v : n.inputs) inputs.push_back(keep(v));
      for (const value_id v : n.outputs) outputs.push_back(keep(v));
      const node_id made =
          g.add_node(*n.op, branch.name + "/" + n.name, std::move(inputs), std::move(outputs), n.attributes);
      g.set_captured_begin(made, n.captured_begin);
    }
    for (const auto& [o, out] : views::present_slots(branch.outputs)) {
      if (g.value_at(out).producer != no_node) continue;
      const value_id source = keep(body->outputs()[o]);
      // A branch that hands a captured value or a constant through, or one value twice.
      g.add_node(op_row<ops::identity_op>, branch.name + "/output_" + std::to_string(o), {source}, {out});
    }
  }
};

static_assert(Pass<inline_branches>);

}  // namespace dnnopt

#endif  // DNNOPT_PASSES_INLINE_BRANCHES_HPP
