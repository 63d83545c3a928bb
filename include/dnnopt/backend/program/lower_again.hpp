// Owns the lowering anew of steps in their places: what a program does where storage or limits are others, once it is
// placed.
#ifndef DNNOPT_BACKEND_PROGRAM_LOWER_AGAIN_HPP
#define DNNOPT_BACKEND_PROGRAM_LOWER_AGAIN_HPP

#include <algorithm>
#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include <dnnopt/backend/codegen/builder/shared_text.hpp>
#include <dnnopt/backend/codegen/lower.hpp>
#include <dnnopt/backend/program/place_units.hpp>
#include <dnnopt/backend/program/program.hpp>
#include <dnnopt/error.hpp>
#include <dnnopt/graph.hpp>

namespace dnnopt {

/// Whether a step reads or stores a value of which `holds` is true. O(operands).
template <class Predicate>
[[nodiscard]] bool touches(const graph& g, const placed_node& step, Predicate&& holds) {
  return std::any_of(step.outputs.begin(), step.outputs.end(), holds) ||
         std::any_of(step.members.begin(), step.members.end(), [&](node_id id) {
           const auto& inputs = g.node_at(id).inputs;
           return std::any_of(inputs.begin(), inputs.end(), [&](value_id in) { return in != no_value && holds(in); });
         });
}

/// Puts `g` in the place of the program's graph, of which it has the nodes and values, and lowers those steps again of
/// which `changed` is true; places and order stay. Whether that goes: no where a step has no kernel now, does not find
/// out a size that it found out before, or shared memory that it cannot share now; then the program is left as it was,
/// and `g` needs a placement of its own. Errors: those of codegen::lower but for unsupported.
template <class Changed>
[[nodiscard]] bool lower_again(program& p, std::shared_ptr<const graph> g, const codegen::lower_options& options,
                               Changed&& changed) {
  codegen::text_pool sources;
  std::vector<std::pair<std::size_t, codegen::lowered_node>> made;
  for (std::size_t s = 0; s < p.steps.size(); ++s) {
    const placed_node& step = p.steps[s];
    if (!changed(step)) continue;
    if (step.where == placement::alias) {
      if (detail::flat_source(*g, step.members, step.outputs) != step.alias_of) return false;
      continue;
    }
    if (step.where != placement::device) continue;
    codegen::lowering found = detail::lower_unit(*g, step, options);
    if (!found.made) return false;
    codegen::lowered_node& now = made.emplace_back(s, std::move(*found.made)).second;
    if (now.size.has_value() != step.lowered.size.has_value()) return false;
    detail::share_sources(now, sources);
  }
  p.g = std::move(g);
  for (auto& [s, now] : made) p.steps[s].lowered = std::move(now);
  return true;
}

}  // namespace dnnopt

#endif  // DNNOPT_BACKEND_PROGRAM_LOWER_AGAIN_HPP
