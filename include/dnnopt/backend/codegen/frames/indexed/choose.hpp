// Owns what is decided about scatter operators, which have one kernel each, and TopK, which has one or sorts.
#ifndef DNNOPT_BACKEND_CODEGEN_FRAMES_INDEXED_CHOOSE_HPP
#define DNNOPT_BACKEND_CODEGEN_FRAMES_INDEXED_CHOOSE_HPP

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include <dnnopt/backend/codegen/choice.hpp>
#include <dnnopt/backend/codegen/lowering_row.hpp>

namespace dnnopt::codegen {

/// A block that is one scatter operator whose result is stored as it is; `by_tuple` where indices come in tuples.
template <bool by_tuple>
[[nodiscard]] choice_or_reason choose_scatter(const lowering_site& site) {
  const node& n = site.anchor_node();
  if (n.op->view != nullptr) return "the operator is an index map";
  for (const emitter_row& row : site.options.emitters)
    if (row.name == n.op->name && row.domain == n.op->domain) return "the operator has an element expression";
  if (site.block.outputs.size() != 1 || site.block.outputs[0] != n.outputs[0])
    return "something follows the scatter in its block";
  if (by_tuple && !site.input(1).dims->back().is_constant())
    return "the length of index tuples is not known before execution";
  return choice("scatter");
}

/// The most elements of a row that are compared with each other: work grows with their square, which takes less than
/// the launches of a sort as long as they are few.
inline constexpr std::int64_t most_ranked_elements = 1024;

/// The greatest elements of rows, by comparing all or by sorting. Precondition: the anchor is a TopK.
[[nodiscard]] inline choice_or_reason choose_top_k(const lowering_site& site) {
  const node& n = site.anchor_node();
  for (const value_id out : site.block.outputs)
    if (out != n.outputs[0] && (n.outputs.size() < 2 || out != n.outputs[1]))
      return "something follows the selection in its block";
  choice ranked("top_k");
  const shape& x = *site.input(0).dims;
  const std::size_t axis = normalize_axis(n.attributes.get_int("axis", -1), x.size());
  const index_expr& length = x[axis];
  if (length.range().high <= most_ranked_elements) return ranked;
  choice sorted("top_k_merge");
  if (length.range().low <= most_ranked_elements) {
    ranked.guards.push_back({most_ranked_elements - length,
                             "more than " + std::to_string(most_ranked_elements) + " elements are to be compared"});
    sorted.narrower.push_back(std::move(ranked));
  }
  return sorted;
}

}  // namespace dnnopt::codegen

#endif  // DNNOPT_BACKEND_CODEGEN_FRAMES_INDEXED_CHOOSE_HPP
