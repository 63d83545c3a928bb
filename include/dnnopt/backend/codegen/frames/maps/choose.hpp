// Owns what is decided about blocks whose elements are expressions: how many elements a work-item computes, and how
// they are read.
#ifndef DNNOPT_BACKEND_CODEGEN_FRAMES_MAPS_CHOOSE_HPP
#define DNNOPT_BACKEND_CODEGEN_FRAMES_MAPS_CHOOSE_HPP

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include <dnnopt/backend/codegen/choice.hpp>
#include <dnnopt/backend/codegen/frames/maps/transposed_tiles.hpp>
#include <dnnopt/backend/codegen/lowering_row.hpp>

namespace dnnopt::codegen {

/// An element expression of one anchor inside that of another would compute the inner one once for each use.
[[nodiscard]] inline std::string reject_map(const lowering_site& site) {
  std::size_t anchors = 0;
  for (const node_id id : site.block.members) {
    const op_info& op = *site.block.g.node_at(id).op;
    anchors += is_element_kind(op.kind) || op.element_cost != 0 ? 0 : 1;
  }
  return anchors > 1 ? "more than one member needs a frame" : "";
}

/// Elements for each work-item. Several, a work-group apart, where even so all of a device that runs work-items in step
/// is busy, so that more reads are under way at a time: sizes `many`, from how many elements on, and `group`.
[[nodiscard]] inline choice_or_reason choose_map(const lowering_site& site) {
  if (std::string why = reject_map(site); !why.empty()) return why;
  choice made("map");
  const device_info* const device = site.options.device;
  if (device == nullptr || site.prefers_vectors() || device->max_work_group_size < 32) return made;
  made.with("many", 4 * site.busy_items());
  made.with("group",
            static_cast<std::int64_t>(std::bit_floor(std::min<std::size_t>(device->max_work_group_size, 256))));
  return made;
}

/// Rows of a work-group of the row map: few, so that the compute units get equal shares of small outputs.
inline constexpr std::int64_t row_map_group = 8;

/// The first axis of the longest rows of an element-wise block's output along which every operand is either as long as
/// the output or has one element, where an element's operands would be found by dividing by extents that only a run
/// tells. 0 where nothing is divided by, or a member is no element-wise operator. Precondition: the block has one
/// output, of at least one axis.
[[nodiscard]] inline std::size_t axis_of_shared_rows(const lowering_site& site) {
  const graph& g = site.block.g;
  const shape& out = *g.facts(site.block.outputs.front()).dims;
  if (std::all_of(out.begin() + 1, out.end(), [](const index_expr& d) { return d.is_constant(); })) return 0;
  std::size_t axis = 1;
  bool divides = false;
  for (const node_id id : site.block.members) {
    const node& n = g.node_at(id);
    if (n.op->kind != computation_kind::element_wise) return 0;
    for (const value_id v : n.inputs) {
      if (v == no_value) continue;
      const std::optional<shape>& dims = g.facts(v).dims;
      if (!dims || dims->size() > out.size()) return 0;
      const std::size_t missing = out.size() - dims->size();
      const auto is_one = [&](std::size_t k) { return k < missing || (*dims)[k - missing] == index_expr(1); };
      const auto is_whole = [&](std::size_t k) { return k >= missing && (*dims)[k - missing] == out[k]; };
      std::size_t ones = out.size();
      std::size_t whole = out.size();
      while (ones > 0 && is_one(ones - 1)) --ones;
      while (whole > 0 && is_whole(whole - 1)) --whole;
      axis = std::max(axis, std::min(ones, whole));
      divides = divides || (ones > 0 && whole > 0);
    }
  }
  return divides && axis < out.size() ? axis : 0;
}

/// Where an element expression interpolates, or divides by sizes that a run tells, most of it depends on the row alone,
/// and the rest is a loop that vectorizes. Of a work-item per element a compiler for processors makes neither.
[[nodiscard]] inline choice_or_reason choose_row_map(const lowering_site& site) {
  if (!site.prefers_vectors()) return "the device runs work-items in step";
  if (std::string why = reject_map(site); !why.empty()) return why;
  const graph& g = site.block.g;
  const auto& members = site.block.members;
  if (site.block.outputs.size() != 1) return "more than one output";
  const value_facts& out = g.facts(site.block.outputs.front());
  if (out.texels) return "the output holds texels";
  if (out.dims->size() < 2) return "the output has no rows";
  if (std::none_of(members.begin(), members.end(),
                   [&](node_id id) { return g.node_at(id).op->kind == computation_kind::resampling; })) {
    const std::size_t axis = axis_of_shared_rows(site);
    if (axis == 0) return "nothing interpolates, and nothing is divided by sizes that a run tells";
    std::int64_t least = 1;
    for (std::size_t k = 0; k < axis; ++k) least *= (*out.dims)[k].as_constant().value_or(1);
    if (least < 2 * site.compute_units()) return "too few rows are certain";
    return choice("map_rows").with("group", row_map_group).with("axis", static_cast<std::int64_t>(axis));
  }
  const auto last = out.dims->back().as_constant();
  if (last && *last < 8) return "rows are shorter than a vector";
  const auto rows = element_count(shape(out.dims->begin(), out.dims->end() - 1)).as_constant();
  if (rows && *rows < 2 * site.compute_units()) return "too few rows";
  return choice("map_rows").with("group", row_map_group);
}

/// Tiles suit devices that run work-items in step, where an operand is read across.
[[nodiscard]] inline choice_or_reason choose_transposed_map(const lowering_site& site) {
  const device_info* const device = site.options.device;
  if (device == nullptr || site.prefers_vectors() || device->max_work_group_size < 32)
    return "the device has no large work-groups in step";
  for (const node_id id : site.block.members) {
    const computation_kind kind = site.block.g.node_at(id).op->kind;
    if (kind != computation_kind::element_wise && kind != computation_kind::view)
      return "a member is more than an element-wise operator or a view";
  }
  std::string why;
  const std::optional<transposed_tiles> tiles = transposed_tiles_of(site, why);
  if (!tiles) return why;
  choice made("map_transposed");
  made.with("group",
            static_cast<std::int64_t>(std::min<std::size_t>(std::bit_floor(device->max_work_group_size), 256)));
  made.local_bytes = tiles->staged.size() * static_cast<std::size_t>(transposed_side * (transposed_side + 1)) * 4;
  return made;
}

}  // namespace dnnopt::codegen

#endif  // DNNOPT_BACKEND_CODEGEN_FRAMES_MAPS_CHOOSE_HPP
