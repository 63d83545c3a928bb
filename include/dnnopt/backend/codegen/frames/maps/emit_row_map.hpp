// Owns the kernel of element expressions that interpolate, on processors: a work-item goes along a row of the output.
#ifndef DNNOPT_BACKEND_CODEGEN_FRAMES_MAPS_EMIT_ROW_MAP_HPP
#define DNNOPT_BACKEND_CODEGEN_FRAMES_MAPS_EMIT_ROW_MAP_HPP

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include <dnnopt/backend/codegen/frames/maps/choose.hpp>
#include <dnnopt/backend/codegen/frames/sources.hpp>

namespace dnnopt::codegen {

/// The kernel in which a work-item goes along a row of the output. Errors: unsupported where a member has no element
/// expression.
[[nodiscard]] inline lowered_node emit_row_map(const lowering_site& site, const choice& chosen) {
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
