// Owns the views over parts of a graph that passes walk through.
#ifndef DNNOPT_PASSES_GRAPH_VIEWS_HPP
#define DNNOPT_PASSES_GRAPH_VIEWS_HPP

#include <cstddef>
#include <tuple>

#include <range/v3/view/enumerate.hpp>
#include <range/v3/view/filter.hpp>
#include <range/v3/view/transform.hpp>

#include <dnnopt/graph.hpp>

namespace dnnopt::views {

/// Of a node's inputs or outputs, those that are there: ONNX leaves optional ones out. `n.outputs | views::present`.
inline constexpr auto present = ranges::views::filter([](value_id v) { return v != no_value; });

/// The same with their places among all: pairs of slot and value. `views::present_slots(n.inputs)`.
inline constexpr auto present_slots = [](const auto& values) {
  return ranges::views::enumerate(values) |
         ranges::views::filter([](const auto& slot) { return std::get<1>(slot) != no_value; });
};

/// What is known about each of some values that are there. `n.outputs | views::present | views::facts_in(g)`. The graph
/// must outlive the view.
[[nodiscard]] inline auto facts_in(const graph& g) {
  return ranges::views::transform([&g](value_id v) -> const value_facts& { return g.facts(v); });
}

}  // namespace dnnopt::views

#endif  // DNNOPT_PASSES_GRAPH_VIEWS_HPP
