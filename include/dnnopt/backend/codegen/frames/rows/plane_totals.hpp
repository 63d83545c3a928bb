// Owns how a convolution's frame reduces the planes that it computes: what it adds up, and where the result goes.
#ifndef DNNOPT_BACKEND_CODEGEN_FRAMES_ROWS_PLANE_TOTALS_HPP
#define DNNOPT_BACKEND_CODEGEN_FRAMES_ROWS_PLANE_TOTALS_HPP

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <dnnopt/backend/codegen/elements/reduction.hpp>
#include <dnnopt/backend/codegen/frames/rows/row_operators.hpp>
#include <dnnopt/backend/codegen/lowering_row.hpp>

namespace dnnopt::codegen {

/// A member of a block that reduces the planes which the anchor's epilogue ends in.
struct plane_total {
  node_id id = no_node;
  value_id planes = no_value;  ///< what is reduced
  value_id result = no_value;
  std::string_view reduction;  ///< name of the reduction_table's row
};

/// The reduction of planes in a block with a convolution as its anchor; nothing where there is none.
[[nodiscard]] inline std::optional<plane_total> plane_total_in(const block_view& block) {
  for (const node_id id : block.members) {
    const node& n = block.g.node_at(id);
    const row_operator* row = find_row_operator(n.op->domain, n.op->name);
    if (id == block.anchor || row == nullptr || row->family != row_family::reduction) continue;
    return plane_total{id, n.inputs[0], n.outputs[0], row->reduction};
  }
  return std::nullopt;
}

/// Defines how a frame reduces `length` elements: DNNOPT_FIRST, DNNOPT_TAKE, DNNOPT_FINISH and, where it reads that,
/// DNNOPT_COMBINE.
inline void define_taking(kernel_builder& b, const kernel_frame& frame, std::string_view reduction,
                          const index_expr& length) {
  const reduction_row& r = *find_reduction(reduction);
  const auto macro = [&](std::string_view name, std::string_view pattern) {
    b.define(name, "(" + fill_reduction(pattern, "(a)", "(x)", "(float)" + index_source(length)) + ")");
  };
  b.define("DNNOPT_FIRST", first_of(r, dtype::float32));
  macro("DNNOPT_TAKE(a, x)", r.take);
  if (frame.find("DNNOPT_COMBINE") != nullptr) macro("DNNOPT_COMBINE(a, x)", r.combine);
  macro("DNNOPT_FINISH(a)", r.finish);
}

/// Defines what the frames call to reduce planes: DNNOPT_TOTALS, what define_taking defines, and
/// dnnopt_store_total(names..., value); `at` is the plane's index (batch, channel).
inline void define_plane_total(kernel_builder& b, const kernel_frame& frame, const plane_total& total,
                               const std::vector<index_expr>& at, const std::vector<std::string>& names) {
  const shape& planes = b.dims(total.planes);
  b.define("DNNOPT_TOTALS", 1);
  define_taking(b, frame, total.reduction, element_count(shape(planes.begin() + 2, planes.end())));
  b.define_procedure("dnnopt_store_total", names, compute_type::real, [&] {
    const shape& out = b.dims(total.result);
    std::vector<index_expr> where(out.size(), index_expr(0));
    where[0] = at[0];
    where[1] = at[1];
    b.store(total.result, b.offset_of(total.result, where), "value");
  });
}

}  // namespace dnnopt::codegen

#endif  // DNNOPT_BACKEND_CODEGEN_FRAMES_ROWS_PLANE_TOTALS_HPP
