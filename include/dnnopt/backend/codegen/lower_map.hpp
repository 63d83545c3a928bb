// Owns the kernel of blocks without an anchor: one work-item per output element, whose value is an element expression.
#ifndef DNNOPT_BACKEND_CODEGEN_LOWER_MAP_HPP
#define DNNOPT_BACKEND_CODEGEN_LOWER_MAP_HPP

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include <dnnopt/backend/codegen/lowering_row.hpp>
#include <dnnopt/backend/kernels/sources.hpp>

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

/// Lowers a block whose outputs are all element expressions (emitters, scalar expressions, views). Outputs of as many
/// elements share a kernel; each further count gets a kernel of its own.
/// Errors: unsupported where a member has no element expression.
[[nodiscard]] inline lowered_node lower_map(const block_view& block, std::span<const emitter_row> emitters) {
  lowered_node result;
  std::vector<value_id> pending = block.outputs;
  while (!pending.empty()) {
    kernel_builder b(block, emitters);
    const shape first = b.dims(pending.front());
    const index_expr count = element_count(first);
    if (count == index_expr(0)) {
      pending.erase(pending.begin());
      continue;
    }
    const index_expr i = b.index("i", count);
    std::vector<value_id> later;
    b.begin();
    for (const value_id out : pending) {
      if (!(element_count(b.dims(out)) == count)) {
        later.push_back(out);
        continue;
      }
      const std::string element = b.emit(out, b.index_at(b.dims(out), i));
      b.store(out, i, element);
    }
    const std::string statements = b.take();
    kernel_plan plan = b.finish_items(kernels::prelude, statements, i, count, "map");
    result.kernels.push_back(std::move(plan));
    pending = std::move(later);
  }
  return result;
}

}  // namespace dnnopt::codegen

#endif  // DNNOPT_BACKEND_CODEGEN_LOWER_MAP_HPP
