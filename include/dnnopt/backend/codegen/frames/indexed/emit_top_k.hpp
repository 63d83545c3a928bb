// Owns the kernel of TopK: one work-item per element counts how many elements of its row come before it.
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
#include <dnnopt/backend/codegen/frames/sources.hpp>

namespace dnnopt::codegen {

/// An element's place is the number of elements that come before it in the order; equal elements keep their order. Work
/// grows with the square of the row, and every place is written once.
[[nodiscard]] inline lowered_node emit_top_k(const lowering_site& site, const choice&) {
  const node& n = site.anchor_node();
  kernel_builder b(site.block, site.options.emitters);
  const element_site s(b, site.anchor, 0, {});
  const shape& x = s.dims(0);
  const std::size_t axis = normalize_axis(s.attributes().get_int("axis", -1), x.size());
  const bool largest = s.attributes().get_int("largest", 1) != 0;
  value_id stored = no_value;
  for (const value_id out : n.outputs)
    if (out != no_value && stored == no_value) stored = out;
  const index_expr k = b.dims(stored)[axis];
  const index_expr count = element_count(x);
  const index_expr i = b.index("i", count);
  b.begin();
  const std::vector<index_expr> own = b.index_at(x, i);
  const std::string mine = s.read(0, own);
  const std::string place = b.variable(compute_type::integer, "0");
  // NaN comes first among the largest and last among the smallest, as in numpy's order.
  const auto before = [&](const std::string& a, const std::string& c) {
    if (!element_site::is_real(s.input_compute())) return "(" + a + (largest ? " > " : " < ") + c + ")";
    return largest ? "(" + a + " > " + c + " || (" + a + " != " + a + " && " + c + " == " + c + "))"
                   : "(" + a + " < " + c + " || (" + c + " != " + c + " && " + a + " == " + a + "))";
  };
  s.loop("r", x[axis], [&](const index_expr& r) {
    std::vector<index_expr> at = own;
    at[axis] = r;
    const std::string other = s.read(0, at);
    b.line(place + " += " + before(other, mine) + " || (" + index_source(r) + " < " + index_source(own[axis]) +
           " && !" + before(mine, other) + ") ? 1 : 0;");
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
