// Owns the kernels of scatter operators: a copy of the data, then updates in order along what may collide.
#ifndef DNNOPT_BACKEND_CODEGEN_FRAMES_INDEXED_EMIT_SCATTER_HPP
#define DNNOPT_BACKEND_CODEGEN_FRAMES_INDEXED_EMIT_SCATTER_HPP

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <dnnopt/backend/codegen/elements/element_site.hpp>
#include <dnnopt/backend/codegen/frames/indexed/choose.hpp>
#include <dnnopt/backend/codegen/frames/sources.hpp>

namespace dnnopt::codegen {

/// The new content of an element that an update meets, or nothing for plain replacement.
[[nodiscard]] inline std::string scatter_combined(const element_site& s, const std::string& held,
                                                  const std::string& update) {
  const std::string reduction = s.attributes().get_string("reduction", "none");
  if (reduction == "none") return update;
  if (reduction == "add") return held + " + " + update;
  if (reduction == "mul") return held + " * " + update;
  if (reduction == "max") return held + " > " + update + " ? " + held + " : " + update;
  if (reduction == "min") return held + " < " + update + " ? " + held + " : " + update;
  throw s.refuse("reduction " + reduction);
}

/// Lowers a block whose only output is that of a scatter operator; its inputs may be computed by other members. Updates
/// that can meet in one element are made by one work-item, in order, so results repeat. `by_tuple` as in
/// choose_scatter.
template <bool by_tuple>
[[nodiscard]] lowered_node emit_scatter(const lowering_site& site, const choice&) {
  const node& n = site.anchor_node();
  const value_id out = n.outputs[0];
  lowered_node result;
  {
    kernel_builder b(site.block, site.options.emitters);
    const index_expr count = element_count(b.dims(out));
    const index_expr i = b.index("i", count);
    b.begin({i});
    b.store(out, i, b.emit(n.inputs[0], b.index_at(b.dims(out), i)));
    const std::string statements = b.take();
    kernel_plan plan = b.finish_items(kernels::prelude, statements, i, count, "scatter_copy");
    result.kernels.push_back(std::move(plan));
  }
  kernel_builder b(site.block, site.options.emitters);
  const element_site s(b, site.anchor, 0, {});
  const shape& data = s.dims(0);
  const shape& updates = s.dims(2);
  const shape& indices = s.dims(1);
  const auto update = [&](std::vector<index_expr> at, const std::vector<index_expr>& from) {
    const index_expr offset = b.offset_of(out, at);
    const std::string value = s.read(2, from);
    const c_type_row& type = c_type_of(b.g().facts(out).type);
    std::string held;
    if (s.attributes().get_string("reduction", "none") != "none")
      held = b.let(type.compute, fill_pattern(type.load, b.pointer(out, true), b.offset_source(out, offset), ""));
    b.store(out, offset, s.result(scatter_combined(s, held, value)));
  };
  b.begin();
  shape lanes;
  index_expr i;
  if (by_tuple) {
    const auto depth = static_cast<std::size_t>(indices.back().constant());
    lanes.assign(data.begin() + static_cast<std::ptrdiff_t>(depth), data.end());
    i = b.index("i", element_count(lanes));
    const std::vector<index_expr> lane = b.index_at(lanes, i);
    const shape tuples(indices.begin(), indices.end() - 1);
    s.loops("u", tuples, [&](const std::vector<index_expr>& u) {
      std::vector<index_expr> at;
      for (std::size_t k = 0; k < depth; ++k) {
        std::vector<index_expr> from = u;
        from.emplace_back(static_cast<std::int64_t>(k));
        at.push_back(s.read_index(1, from, data[k]));
      }
      at.insert(at.end(), lane.begin(), lane.end());
      std::vector<index_expr> from = u;
      from.insert(from.end(), lane.begin(), lane.end());
      update(std::move(at), from);
    });
  } else {
    const std::size_t axis = normalize_axis(s.attributes().get_int("axis", 0), data.size());
    lanes = indices;
    lanes[axis] = 1;
    i = b.index("i", element_count(lanes));
    const std::vector<index_expr> lane = b.index_at(lanes, i);
    s.loop("u", indices[axis], [&](const index_expr& u) {
      std::vector<index_expr> from = lane;
      from[axis] = u;
      std::vector<index_expr> at = lane;
      at[axis] = s.read_index(1, from, data[axis]);
      update(std::move(at), from);
    });
  }
  const index_expr count = element_count(lanes);
  const std::string statements = b.take();
  kernel_plan plan = b.finish_items(kernels::prelude, statements, i, count, "scatter");
  if (!(element_count(updates) == index_expr(0))) result.kernels.push_back(std::move(plan));
  return result;
}

}  // namespace dnnopt::codegen

#endif  // DNNOPT_BACKEND_CODEGEN_FRAMES_INDEXED_EMIT_SCATTER_HPP
