// Owns the kernel of TopK of short rows: one work-item per element counts how many elements of its row come before it.
#ifndef DNNOPT_BACKEND_CODEGEN_FRAMES_INDEXED_EMIT_TOP_K_HPP
#define DNNOPT_BACKEND_CODEGEN_FRAMES_INDEXED_EMIT_TOP_K_HPP

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <dnnopt/backend/codegen/elements/element_site.hpp>
#include <dnnopt/backend/codegen/frames/indexed/choose.hpp>
#include <dnnopt/backend/codegen/frames/indexed/emit_top_k_runs.hpp>
#include <dnnopt/backend/codegen/frames/sources.hpp>

namespace dnnopt::codegen {

/// An element's place is the number of elements that come before it in the order; equal elements keep their order. Work
/// grows with the square of the row, and every place is written once.
[[nodiscard]] inline lowered_node emit_top_k(const lowering_site& site, const choice& c) {
  if (c.version == "top_k_merge") return emit_top_k_runs(site);
  const node& n = site.anchor_node();
  kernel_builder b(site.block, site.options.emitters);
  const element_site s(b, site.anchor, 0, {});
  const shape& x = s.dims(0);
  const top_k_order order(site);
  const std::size_t axis = order.axis;
  const index_expr k = b.dims(order.stored)[axis];
  const index_expr count = element_count(x);
  const index_expr i = b.index("i", count);
  b.begin({i});
  const std::vector<index_expr> own = b.index_at(x, i);
  const std::string mine = s.read(0, own);
  const std::string place = b.variable(compute_type::integer, "0");
  s.loop("r", x[axis], [&](const index_expr& r) {
    std::vector<index_expr> at = own;
    at[axis] = r;
    const std::string other = s.read(0, at);
    b.line(place + " += " + order.before(other, mine) + " || (" + index_source(r) + " < " + index_source(own[axis]) +
           " && !" + order.before(mine, other) + ") ? 1 : 0;");
  });
  b.open("if (" + place + " < " + index_source(k) + ") {");
  std::vector<index_expr> at = own;
  at[axis] = b.define_integer(
      "q", place,
      {0, k.range().high >= unbounded ? (std::int64_t{1} << 31) - 1 : std::max<std::int64_t>(k.range().high - 1, 0)});
  for (std::size_t o = 0; o < n.outputs.size(); ++o)
    if (n.outputs[o] != no_value)
      b.store(n.outputs[o], b.offset_of(n.outputs[o], at), o == 0 ? mine : index_source(own[axis]));
  b.close();
  const std::string statements = b.take();
  kernel_plan plan = b.finish_items(kernels::prelude, statements, i, count, "top_k");
  lowered_node result;
  result.kernels.push_back(std::move(plan));
  return result;
}

}  // namespace dnnopt::codegen

#endif  // DNNOPT_BACKEND_CODEGEN_FRAMES_INDEXED_EMIT_TOP_K_HPP
