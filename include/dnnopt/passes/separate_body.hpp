// Owns a body of control flow as a graph that runs by itself: constants inside, slices read where they lie.
#ifndef DNNOPT_PASSES_SEPARATE_BODY_HPP
#define DNNOPT_PASSES_SEPARATE_BODY_HPP

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <dnnopt/expr_symbols.hpp>
#include <dnnopt/graph.hpp>
#include <dnnopt/ops/gather.hpp>
#include <dnnopt/passes/derive_guards.hpp>
#include <dnnopt/passes/enter_body.hpp>
#include <dnnopt/passes/rdp.hpp>

namespace dnnopt {

/// A body of a node that is a graph of its own.
struct separate_body {
  graph g;
  /// For each input of `g`, which argument of the body it is: those of body_layout in their order (a scanned value as a
  /// whole), then for Scan the number of the slice from the front and from the back.
  std::vector<std::size_t> arguments;
};

namespace detail {

/// Lets a Scan's body read its slices out of the whole values, so that nobody has to copy them: the whole takes the
/// place of the slice among the inputs, and Gather reads slice number `turn`, counted from the front or from the back.
inline void read_slices(const graph& outer, const node& n, const body_layout& l, const body_entry& entry, graph& body) {
  const std::vector<std::int64_t> axes = scan_numbers(n, "scan_input_axes", l.scanned);
  const std::vector<std::int64_t> backwards = scan_numbers(n, "scan_input_directions", l.scanned);
  const value_id from_front = body.add_input(n.name + "/turn", dtype::int64, shape{});
  const value_id from_back = body.add_input(n.name + "/turn_from_back", dtype::int64, shape{});
  std::vector<value_id> inputs = body.inputs();
  for (std::size_t k = 0; k < l.scanned; ++k) {
    const value_id slice = inputs.at(l.carried + k);
    const value_id whole = body.add_value(body.value_at(slice).name + "/whole");
    value_facts facts = captured_facts(outer.facts(n.inputs[l.carried + k]));
    if (entry.is_exact()) facts = exact_facts(std::move(facts), entry, l.carried + k);
    if (const auto& slice_dims = body.facts(slice).dims; !facts.dims && slice_dims) {
      // The length along the axis is all that the slice does not tell.
      shape dims = *slice_dims;
      dims.insert(
          dims.begin() + static_cast<std::ptrdiff_t>(ops::axis_of(axes[k], dims.size() + 1, "Scan")),
          body.expressions().symbol(body.value_at(slice).name + ".length", {0, unbounded}, symbol_kind::body_dim));
      facts.dims = std::move(dims);
    }
    body.facts(whole) = std::move(facts);
    inputs[l.carried + k] = whole;
    attribute_map attributes;
    attributes.set("axis", axes[k]);
    body.add_node(op_row<ops::gather_op>, body.value_at(slice).name + "/slice",
                  {whole, backwards[k] != 0 ? from_back : from_front}, {slice}, std::move(attributes));
  }
  body.set_inputs(std::move(inputs));
}

/// Whether a size depends on a symbol, here or, as far as can be told, in a body of a node here.
[[nodiscard]] inline bool sizes_depend_on(const graph& g, std::uint32_t symbol) {
  const auto is_in = [&](const index_expr& e) { return symbols_of(e).contains(symbol); };
  for (const node_id id : g.nodes()) {
    const node& n = g.node_at(id);
    for (const value_id v : n.outputs)
      if (v != no_value && g.facts(v).dims && std::any_of(g.facts(v).dims->begin(), g.facts(v).dims->end(), is_in))
        return true;
    if (n.op->flow == flow_form::none) continue;
    for (const value_id v : n.inputs)
      if (v != no_value && g.facts(v).elements &&
          std::any_of(g.facts(v).elements->begin(), g.facts(v).elements->end(), is_in))
        return true;
  }
  return false;
}

}  // namespace detail

/// The body in attribute `key` of node `id`, as it is entered with what `entry` says. Guards state what its operators
/// need of dims. Errors: bad_attribute where there is no body; those of enter_body and RDP.
[[nodiscard]] inline separate_body make_separate_body(const graph& outer, node_id id, std::string_view key,
                                                      const body_entry& entry) {
  const node& n = outer.node_at(id);
  const subgraph& held = n.attributes.require<subgraph>(key);
  if (!held) throw error(errc::bad_attribute, "attribute '" + std::string(key) + "' holds no graph");
  const body_layout l = layout_of_bodies(n);
  const std::size_t given = l.counters + l.carried + l.scanned + n.inputs.size() - l.captured_begin;
  if (held->inputs().size() != given)
    throw error(errc::bad_arity, "body '" + std::string(key) + "' takes " + std::to_string(held->inputs().size()) +
                                     " inputs, " + std::to_string(given) + " are given");
  const auto settle = [](graph& g) { (void)rdp{}.run(g); };
  entered_body entered = enter_body(outer, id, *held, settle, entry);
  // A symbol is a binding of its own for each turn, which is worth its cost only where sizes need it.
  if (entered.turn && !detail::sizes_depend_on(entered.g, *entered.turn))
    entered = enter_body(outer, id, *held, settle, {entry.ranks, entry.dims, entry.elements, false});
  separate_body result{std::move(entered.g), {}};
  graph& g = result.g;
  if (l.scanned != 0) detail::read_slices(outer, n, l, entry, g);
  g.name = n.name + "/" + std::string(key);
  std::vector<value_id> left;
  for (std::size_t i = 0; i < g.inputs().size(); ++i) {
    if (g.facts(g.inputs()[i]).is_constant()) continue;
    left.push_back(g.inputs()[i]);
    result.arguments.push_back(i);
  }
  g.set_inputs(std::move(left));
  (void)rdp{}.run(g);
  g.set_guards(derive_guards(g));
  return result;
}

}  // namespace dnnopt

#endif  // DNNOPT_PASSES_SEPARATE_BODY_HPP
