// Owns the kernel of element expressions that interpolate, on processors: a work-item goes along a row of the output.
#ifndef DNNOPT_BACKEND_CODEGEN_FRAMES_MAPS_LOWER_ROW_MAP_HPP
#define DNNOPT_BACKEND_CODEGEN_FRAMES_MAPS_LOWER_ROW_MAP_HPP

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <dnnopt/backend/codegen/frames/maps/lower_map.hpp>

namespace dnnopt::codegen {

/// Rows of a work-group of the row map: few, so that the compute units get equal shares of small outputs.
inline constexpr std::int64_t row_map_group = 8;

/// Where an element expression interpolates, most of it depends on the row alone, and the rest is a loop that
/// vectorizes. Of a work-item per element a compiler for processors makes neither.
[[nodiscard]] inline std::string reject_row_map(const lowering_site& site) {
  if (!site.prefers_vectors()) return "the device runs work-items in step";
  if (std::string why = reject_map(site); !why.empty()) return why;
  const graph& g = site.block.g;
  const auto& members = site.block.members;
  if (std::none_of(members.begin(), members.end(),
                   [&](node_id id) { return g.node_at(id).op->kind == computation_kind::resampling; }))
    return "nothing interpolates";
  if (site.block.outputs.size() != 1) return "more than one output";
  const value_facts& out = g.facts(site.block.outputs.front());
  if (out.texels) return "the output holds texels";
  if (out.dims->size() < 2) return "the output has no rows";
  const auto last = out.dims->back().as_constant();
  if (last && *last < 8) return "rows are shorter than a vector";
  const auto rows = element_count(shape(out.dims->begin(), out.dims->end() - 1)).as_constant();
  return rows && *rows < 2 * static_cast<std::int64_t>(site.options.device->compute_units) ? "too few rows" : "";
}

/// Lowers such a block. Errors: unsupported where a member has no element expression.
[[nodiscard]] inline lowered_node lower_row_map(const lowering_site& site) {
  lowered_node result;
  kernel_builder b(site.block, site.options.emitters);
  const value_id out = site.block.outputs.front();
  const shape dims = b.dims(out);
  if (element_count(dims) == index_expr(0)) return result;
  const index_expr extent = dims.back();
  const index_expr rows = element_count(shape(dims.begin(), dims.end() - 1));
  const index_expr row = b.index("i", rows);
  b.begin();
  const index_expr x = b.open_loop("x", extent);
  const index_expr offset = row * extent + x;
  std::vector<index_expr> at = b.index_at(shape(dims.begin(), dims.end() - 1), row);
  at.push_back(x);
  const std::string element = b.emit(out, at);
  b.store(out, offset, element);
  b.close();
  const std::string statements = b.take();
  const std::string group = std::to_string(row_map_group);
  kernel_plan plan =
      b.finish(kernels::prelude,
               "__kernel __attribute__((reqd_work_group_size(" + group +
                   ", 1, 1))) void dnnopt_kernel(DNNOPT_PARAMETERS) {\n  const " +
                   (fits_int(row.range()) ? "int i = (int)" : "long i = ") +
                   "get_global_id(0);\n  if (i >= " + index_source(rows) + ") return;\n" + statements + "}\n",
               "map_rows");
  plan.global[0] = ceildiv(rows, row_map_group) * row_map_group;
  plan.local = {static_cast<std::size_t>(row_map_group), 1, 1};
  result.kernels.push_back(std::move(plan));
  return result;
}

}  // namespace dnnopt::codegen

#endif  // DNNOPT_BACKEND_CODEGEN_FRAMES_MAPS_LOWER_ROW_MAP_HPP
