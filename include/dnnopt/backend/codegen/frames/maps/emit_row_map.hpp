// Owns the kernel of element expressions on processors in which a work-item goes along a row of the output, which is
// the last axis of what interpolates, and as many as all operands share where a run tells the extents.
#ifndef DNNOPT_BACKEND_CODEGEN_FRAMES_MAPS_EMIT_ROW_MAP_HPP
#define DNNOPT_BACKEND_CODEGEN_FRAMES_MAPS_EMIT_ROW_MAP_HPP

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include <dnnopt/backend/codegen/frames/maps/choose.hpp>
#include <dnnopt/backend/codegen/frames/sources.hpp>

namespace dnnopt::codegen {

/// The kernel in which a work-item goes along a row of the output: its elements from `axis` on, the last where that is
/// not chosen. Errors: unsupported where a member has no element expression.
[[nodiscard]] inline lowered_node emit_row_map(const lowering_site& site, const choice& chosen) {
  lowered_node result;
  kernel_builder b(site.block, site.options.emitters);
  const value_id out = site.block.outputs.front();
  const shape dims = b.dims(out);
  if (element_count(dims) == index_expr(0)) return result;
  const auto axis = dims.begin() + static_cast<std::ptrdiff_t>(
                                       chosen.find("axis").value_or(static_cast<std::int64_t>(dims.size()) - 1));
  const shape outer(dims.begin(), axis);
  const shape inner(axis, dims.end());
  const index_expr extent = element_count(inner);
  const index_expr rows = element_count(outer);
  const index_expr row = b.index("i", rows);
  b.begin({row});
  const index_expr x = b.open_loop("x", extent);
  const index_expr offset = row * extent + x;
  std::vector<index_expr> at = b.index_at(outer, row);
  for (const index_expr& i : b.index_at(inner, x)) at.push_back(i);
  const std::string element = b.emit(out, at);
  b.store(out, offset, element);
  b.close();
  const std::string statements = b.take();
  const std::string group = std::to_string(chosen["group"]);
  kernel_plan plan =
      b.finish(kernels::prelude,
               "__kernel __attribute__((reqd_work_group_size(" + group +
                   ", 1, 1))) void dnnopt_kernel(DNNOPT_KERNEL_PARAMETERS) {\n  const " +
                   (fits_int(row.range()) ? "int i = (int)" : "long i = ") +
                   "get_global_id(0);\n  if (i >= " + index_source(rows) + ") return;\n" + statements + "}\n",
               "map_rows");
  plan.global[0] = ceildiv(rows, chosen["group"]) * chosen["group"];
  plan.local = {static_cast<std::size_t>(chosen["group"]), 1, 1};
  result.kernels.push_back(std::move(plan));
  return result;
}

}  // namespace dnnopt::codegen

#endif  // DNNOPT_BACKEND_CODEGEN_FRAMES_MAPS_EMIT_ROW_MAP_HPP
