// Owns the naming of small inputs that do nothing but decide branches: RDP knows their elements as symbols.
#ifndef DNNOPT_PASSES_NAME_DECIDING_INPUTS_HPP
#define DNNOPT_PASSES_NAME_DECIDING_INPUTS_HPP

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <dnnopt/graph.hpp>
#include <dnnopt/ops/element_wise.hpp>
#include <dnnopt/passes/graph_views.hpp>
#include <dnnopt/passes/rdp.hpp>

namespace dnnopt {

namespace detail {

/// What is computed from a graph input, the input among it, where all of it ends in conditions of branches; else
/// nothing. O(what is computed from it).
[[nodiscard]] inline std::optional<std::vector<value_id>> reached_conditions(const graph& g, value_id input) {
  std::vector<value_id> reached{input};
  bool decides = false;
  for (std::size_t next = 0; next < reached.size(); ++next) {
    if (std::ranges::find(g.outputs(), reached[next]) != g.outputs().end()) return std::nullopt;
    for (const value_use& use : g.value_at(reached[next]).uses) {
      const node& reader = g.node_at(use.node);
      if (reader.op->flow == flow_form::branches && use.slot == 0) {
        decides = true;
        continue;
      }
      if (reader.op->flow != flow_form::none) return std::nullopt;
      for (const auto& [slot, out] : views::present_slots(reader.outputs))
        if (std::ranges::find(reached, out) == reached.end()) reached.push_back(out);
    }
  }
  return decides ? std::optional(reached) : std::nullopt;
}

/// Whether nothing is computed of a type's numbers but truth: sums and conversions wrap where expressions do not.
[[nodiscard]] inline bool keeps_numbers(const graph& g, const std::vector<value_id>& reached) {
  const dtype type = g.facts(reached.front()).type;
  return std::ranges::all_of(reached, [&](value_id v) {
    const value_facts& facts = g.facts(v);
    if (facts.type == dtype::boolean || !facts.elements) return true;
    return facts.type == type && std::ranges::all_of(*facts.elements, [](const index_expr& e) {
             return e.is_constant() || e.as_symbol().has_value();
           });
  });
}

/// The symbol of an input's only element. Its name is the input's, with an apostrophe for each other symbol of the name
/// before.
[[nodiscard]] inline index_expr element_symbol(expr_context& expressions, std::string name, expr_range range) {
  while (true) {
    const index_expr made = expressions.symbol(name, range, symbol_kind::element);
    if (made.kind() == symbol_kind::element && made.range() == range) return made;
    name += "'";
  }
}

}  // namespace detail

/// Makes the one element of each integer or boolean input a symbol where all that is computed from it are conditions of
/// branches (a sample rate, a decoder's use_cache_branch), so that propagation tells these as expressions, which
/// inline_branches takes where a run's answer is stated (SoD2, section 4.1: values, too, are symbolic constants).
/// Whether there was one; then RDP has run. Errors: those of RDP.
inline bool name_deciding_inputs(graph& g) {
  std::vector<std::vector<value_id>> named;
  for (const value_id in : g.inputs()) {
    value_facts& facts = g.facts(in);
    const auto dims = facts.dims ? static_dims(*facts.dims) : std::nullopt;
    const bool is_number = facts.type == dtype::boolean || (is_integer(facts.type) && facts.type != dtype::uint64);
    if (facts.kind != value_kind::tensor || !is_number || !dims || element_count(*dims) != 1 || facts.elements)
      continue;
    auto reached = detail::reached_conditions(g, in);
    if (!reached) continue;
    facts.elements = {detail::element_symbol(g.expressions(), g.value_at(in).name, ops::values_of(facts.type))};
    named.push_back(std::move(*reached));
  }
  if (named.empty()) return false;
  (void)rdp{}.run(g);
  for (const std::vector<value_id>& reached : named) {
    if (detail::keeps_numbers(g, reached)) continue;
    for (const value_id v : reached)
      if (!g.facts(v).is_constant()) g.facts(v).elements.reset();
  }
  return true;
}

}  // namespace dnnopt

#endif  // DNNOPT_PASSES_NAME_DECIDING_INPUTS_HPP
