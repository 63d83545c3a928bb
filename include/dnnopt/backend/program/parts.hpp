// Owns writing in place: concatenations whose inputs are written straight into their parts of the output.
#ifndef DNNOPT_BACKEND_PROGRAM_PARTS_HPP
#define DNNOPT_BACKEND_PROGRAM_PARTS_HPP

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <dnnopt/backend/codegen/joined_parts.hpp>
#include <dnnopt/backend/program/memory_options.hpp>
#include <dnnopt/backend/program/storages.hpp>
#include <dnnopt/memory/order/exact_order.hpp>

namespace dnnopt {

namespace detail {

/// For every input of a view of constant dims, the elements before it in the output, where the output is the inputs one
/// after another in memory; nothing where it is anything else.
[[nodiscard]] inline std::optional<std::vector<std::int64_t>> offsets_of_joined(const graph& g, node_id id) {
  const std::optional<codegen::joined_parts> parts = codegen::joined_parts_of(g, id);
  if (!parts) return std::nullopt;
  const shape& out = *g.facts(g.node_at(id).outputs[0]).dims;
  // Parts along the outermost axis that is longer than 1 are contiguous.
  for (std::size_t k = 0; k < parts->axis; ++k)
    if (!(out[k] == index_expr(1))) return std::nullopt;
  std::int64_t inner = 1;
  for (std::size_t k = parts->axis + 1; k < out.size(); ++k) inner *= out[k].constant();
  if (inner == 0) return std::nullopt;
  std::vector<std::int64_t> offsets;
  for (const std::int64_t begin : parts->begins) offsets.push_back(begin * inner);
  return offsets;
}

/// Makes the parts of one joined output, or changes nothing and returns false: every input must be written by a kernel
/// into memory of its own that nothing else shares.
inline bool make_parts(program& p, std::size_t step, const std::vector<std::int64_t>& offsets, std::size_t alignment) {
  const graph& g = *p.g;
  const node& n = g.node_at(p.steps[step].id);
  const value_id out = n.outputs[0];
  const auto is_callers = [&](value_id root) {
    for (const value_id v : g.inputs())
      if (p.roots[v] == root) return true;
    for (const value_id v : g.outputs())
      if (p.roots[v] == root) return true;
    return false;
  };
  if (p.roots[out] != out || is_callers(out)) return false;
  std::map<value_id, value_part> made;
  for (std::size_t i = 0; i < n.inputs.size(); ++i) {
    const value_id root = p.roots[n.inputs[i]];
    const std::size_t at = static_cast<std::size_t>(offsets[i]) * size_of(g.facts(out).type);
    if (at % std::max<std::size_t>(alignment, 1) != 0 || is_callers(root) || p.parts.contains(root)) return false;
    if (g.facts(root).texels || g.facts(out).texels) return false;
    if (g.facts(root).is_constant() || g.facts(root).elements || g.facts(root).type != g.facts(out).type) return false;
    const auto writer = std::find_if(p.steps.begin(), p.steps.end(), [&](const placed_node& s) {
      return std::find(s.outputs.begin(), s.outputs.end(), root) != s.outputs.end();
    });
    // A joined output that is itself a part is written by its own inputs' kernels.
    const bool joined =
        std::any_of(p.parts.begin(), p.parts.end(), [&](const auto& x) { return x.second.whole == root; });
    if (writer == p.steps.end() || (writer->where != placement::device && !joined)) return false;
    if (!made.emplace(root, value_part{out, at}).second) return false;
  }
  p.parts.merge(made);
  placed_node& placed = p.steps[step];
  placed.where = placement::alias;
  placed.lowered = {};
  placed.reason = "its inputs are written in their places of its output";
  return true;
}

}  // namespace detail

/// Lets the kernels that make the inputs of a concatenation write them into its output, where the parts are contiguous,
/// begin at multiples of `alignment` bytes (sub-buffers need that) and no order found quickly needs more memory than
/// with a copy. A view is recognized by its index map, never by its name. O(joined steps * (V + E)).
inline parts_report place_parts(program& p, const symbol_values& sizes, std::size_t alignment) {
  parts_report report;
  std::optional<std::int64_t> peak;
  const auto peak_of = [&](const program& of) {
    return memory::plan_order_quickly(order_graph_of(of, storages_of(of), sizes)).peak;
  };
  for (std::size_t step = 0; step < p.steps.size(); ++step) {
    if (p.steps[step].where != placement::device || p.steps[step].members.size() != 1) continue;
    const auto offsets = detail::offsets_of_joined(*p.g, p.steps[step].id);
    if (!offsets) continue;
    if (!peak) peak = peak_of(p);
    placed_node before = p.steps[step];
    std::map<value_id, value_part> parts = p.parts;
    if (!detail::make_parts(p, step, *offsets, alignment)) continue;
    const std::int64_t now = peak_of(p);
    if (now <= *peak) {
      peak = now;
      ++report.joined;
      continue;
    }
    p.steps[step] = std::move(before);
    p.parts = std::move(parts);
    ++report.kept;
  }
  return report;
}

}  // namespace dnnopt

#endif  // DNNOPT_BACKEND_PROGRAM_PARTS_HPP
