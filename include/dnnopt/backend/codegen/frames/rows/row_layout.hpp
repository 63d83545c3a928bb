// Owns how the dims of an operand make rows, and how rows are read and written four neighbours at a time.
#ifndef DNNOPT_BACKEND_CODEGEN_FRAMES_ROWS_ROW_LAYOUT_HPP
#define DNNOPT_BACKEND_CODEGEN_FRAMES_ROWS_ROW_LAYOUT_HPP

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <dnnopt/backend/codegen/elements/reduction.hpp>
#include <dnnopt/backend/codegen/frames/products/tile_frame.hpp>
#include <dnnopt/backend/codegen/frames/rows/row_operators.hpp>

namespace dnnopt::codegen {

/// Rows of input 0: `outer` counts rows, `inner` positions in a row.
struct row_layout {
  std::vector<bool> inside;  ///< whether a row spans the dim
  std::int64_t groups = 0;   ///< dim 1 is split: its groups count rows, channels of a group are in the row
  shape outer;
  shape inner;

  [[nodiscard]] std::vector<index_expr> at(kernel_builder& b, const shape& dims, const index_expr& row,
                                           const index_expr& column) const {
    const std::vector<index_expr> o = b.index_at(outer, row);
    const std::vector<index_expr> i = b.index_at(inner, column);
    std::vector<index_expr> out;
    std::size_t oi = 0;
    std::size_t ii = 0;
    for (std::size_t k = 0; k < dims.size(); ++k) {
      if (groups > 0 && k == 1)
        out.push_back(o[oi++] * inner[0] + i[ii++]);
      else
        out.push_back(inside[k] ? i[ii++] : o[oi++]);
    }
    return out;
  }
};

[[nodiscard]] inline row_layout rows_of(const element_site& s, const row_operator& op) {
  const shape& d = s.dims(0);
  row_layout rows;
  rows.inside.assign(d.size(), false);
  switch (op.span) {
    case row_span::axis:
      rows.inside[normalize_axis(s.attributes().get_int("axis", -1), d.size())] = true;
      break;
    case row_span::from_axis:
      for (std::size_t k = normalize_axis(s.attributes().get_int("axis", -1), d.size()); k < d.size(); ++k)
        rows.inside[k] = true;
      break;
    case row_span::group:
      rows.groups = s.attributes().require<std::int64_t>("num_groups");
      [[fallthrough]];
    case row_span::spatial:
      for (std::size_t k = 2; k < d.size(); ++k) rows.inside[k] = true;
      break;
    case row_span::listed:
      rows.inside = reduced_axes(s);
      break;
  }
  for (std::size_t k = 0; k < d.size(); ++k) {
    if (rows.groups > 0 && k == 1) {
      rows.outer.emplace_back(rows.groups);
      rows.inner.push_back(floordiv(d[1], rows.groups));
    } else {
      (rows.inside[k] ? rows.inner : rows.outer).push_back(d[k]);
    }
  }
  return rows;
}

/// Whether an operator's rows are shifted and scaled by their moments.
[[nodiscard]] constexpr bool normalizes(const row_operator& op) noexcept {
  return op.family == row_family::centered || op.family == row_family::root_mean_square;
}

/// Whether rows can be read and written four neighbours at a time: the operand lies in memory, row by row, and nothing
/// but views stands between the anchor and the one output, nor between it and the factors and terms of a row.
[[nodiscard]] inline bool rows_hold_vectors(kernel_builder& b, const lowering_site& site, const row_operator& op,
                                            const row_layout& rows) {
  const node& n = site.anchor_node();
  const index_expr length = element_count(rows.inner);
  if (!length.is_constant() || length.constant() % 4 != 0 ||
      (op.span != row_span::axis && op.span != row_span::from_axis))
    return false;
  for (std::size_t k = 1; k < rows.inside.size(); ++k)
    if (rows.inside[k - 1] && !rows.inside[k]) return false;
  const auto plain = [&](value_id id) {
    const value_facts& facts = site.block.g.facts(id);
    return !facts.texels && (facts.type == dtype::float32 || facts.type == dtype::float16);
  };
  if (b.is_member_value(n.inputs[0]) || !plain(n.inputs[0])) return false;
  if (site.block.outputs.size() != 1 || !plain(site.block.outputs[0])) return false;
  for (const node_id id : site.block.members)
    if (id != site.anchor && site.block.g.node_at(id).op->kind != computation_kind::view) return false;
  if (!normalizes(op)) return true;
  for (std::size_t i = 1; i < n.inputs.size() && i < 3; ++i)
    if (n.inputs[i] != no_value &&
        (b.is_member_value(n.inputs[i]) || !plain(n.inputs[i]) || !(b.dims(n.inputs[i]) == rows.inner)))
      return false;
  return true;
}

/// Defines dnnopt_load4(row, column) and dnnopt_store4(row, column, four) where rows_hold_vectors; false, and nothing
/// of use is defined, where four neighbours of a row do not stand side by side in the output.
[[nodiscard]] inline bool define_row_vectors(kernel_builder& b, const lowering_site& site, const row_operator& op,
                                             const row_layout& rows) {
  if (!rows_hold_vectors(b, site, op, rows)) return false;
  const node& n = site.anchor_node();
  const value_id out = site.block.outputs[0];
  const std::vector<std::string> names{"row", "column"};
  const index_expr length = element_count(rows.inner);
  const index_expr row = b.index("row", element_count(rows.outer));
  const index_expr column = b.index("column", length);
  const index_expr quarter = b.index("quarter", floordiv(length, 4));
  const shape dims = b.dims(n.inputs[0]);
  const auto at = [&](const index_expr& c) { return rows.at(b, dims, row, c); };
  b.begin();
  std::array<index_expr, 4> offsets;
  for (std::int64_t j = 0; j < 4; ++j) {
    const std::vector<index_expr> own = at(quarter * 4 + j);
    b.bind(n.outputs[0], own, "four.s" + std::to_string(j));
    offsets[static_cast<std::size_t>(j)] = b.offset_of(out, b.index_from_anchor(n.outputs[0], own, out));
  }
  const std::string indices = b.take();
  if (!are_four_neighbours(offsets)) return false;
  if (define_load4(b, "dnnopt_load4", n.inputs[0], b.offset_of(n.inputs[0], at(column)), column, length, names) != 4)
    return false;
  std::string statements = "  const int quarter = column >> 2;\n";
  for (std::size_t i = 1; normalizes(op) && i < n.inputs.size() && i < 3; ++i) {
    if (n.inputs[i] == no_value) continue;
    const std::string name = i == 1 ? "dnnopt_factor4" : "dnnopt_term4";
    if (define_load4(b, name, n.inputs[i], column, column, length, names) != 4) return false;
    statements += std::string("  four ") + (i == 1 ? "*=" : "+=") + " " + name + "(DNNOPT_ARGUMENTS, row, column);\n";
  }
  b.begin();
  b.store_four(out, offsets, "four");
  b.add_function(
      "static inline void dnnopt_store4(DNNOPT_PARAMETERS, const int row, const int column, float4 four) {\n" +
      statements + indices + b.take() + "}\n");
  return true;
}

}  // namespace dnnopt::codegen

#endif  // DNNOPT_BACKEND_CODEGEN_FRAMES_ROWS_ROW_LAYOUT_HPP
