// Owns dead code removal: nodes none of whose outputs is read.
#ifndef DNNOPT_PASSES_REMOVE_DEAD_HPP
#define DNNOPT_PASSES_REMOVE_DEAD_HPP

#include <string_view>
#include <unordered_set>
#include <vector>

#include <range/v3/algorithm/any_of.hpp>
#include <range/v3/view/reverse.hpp>

#include <dnnopt/graph.hpp>
#include <dnnopt/passes/graph_views.hpp>
#include <dnnopt/passes/pass.hpp>

namespace dnnopt {

/// Removes nodes without readers, transitively. O(V + E). Does not renumber: graph::compact does.
struct remove_dead {
  static constexpr std::string_view name = "remove_dead";

  pass_result run(graph& g) const {
    pass_result result;
    const std::unordered_set<value_id> wanted(g.outputs().begin(), g.outputs().end());
    const std::vector<node_id> order = g.topological_order();
    for (const node_id id : order | ranges::views::reverse) {
      const auto is_read = [&](value_id out) { return !g.value_at(out).uses.empty() || wanted.contains(out); };
      if (ranges::any_of(g.node_at(id).outputs | views::present, is_read)) continue;
      g.remove_node(id);
      ++result.edits;
    }
    return result;
  }
};

static_assert(Pass<remove_dead>);

}  // namespace dnnopt

#endif  // DNNOPT_PASSES_REMOVE_DEAD_HPP
