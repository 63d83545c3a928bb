// Owns the kernels of NonMaxSuppression: boxes are taken per image and class, counted, and written as rows.
#ifndef DNNOPT_BACKEND_CODEGEN_FRAMES_SELECTION_EMIT_SUPPRESSION_HPP
#define DNNOPT_BACKEND_CODEGEN_FRAMES_SELECTION_EMIT_SUPPRESSION_HPP

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dnnopt/backend/codegen/frames/selection/parameters.hpp>
#include <dnnopt/backend/codegen/frames/selection/selected.hpp>

namespace dnnopt::codegen {

/// Pairs of image and class: without boxes nothing is found, but how many pairs there are remains. Dims of a site are
/// parameters of its builder, so each kernel asks its own, before it is finished.
[[nodiscard]] inline index_expr suppressed_pairs(const element_site& s) { return s.dims(1)[0] * s.dims(1)[1]; }

/// Memory between the kernels of a NonMaxSuppression: indices of `add_scratch`.
struct suppression_scratch {
  std::size_t sorted;  ///< int32: the boxes of each pair, the highest score first
  std::size_t taken;   ///< int32: the boxes each pair took, in their order
  std::size_t found;   ///< int32: how many each pair took, later where its rows begin
  std::size_t count;   ///< int64: how many rows there are
  std::size_t merged;  ///< int32, of one work-item: the boxes of each pair while they are sorted
  std::size_t kept;    ///< float32, of one work-item: the four corners of what each pair took
};

/// What a kernel prepends to its own text.
[[nodiscard]] inline std::string suppression_prelude() {
  return std::string(kernels::prelude) + std::string(kernels::box_order);
}

/// The kernel that writes each box where it stands in the order of its pair: behind all that have a higher score, or
/// the same and come before it. Work: for each box that may be taken, all boxes of its pair.
[[nodiscard]] inline kernel_plan emit_sorted_boxes(const lowering_site& site, const suppression_scratch& memory) {
  kernel_builder b(site.block, site.options.emitters);
  const element_site s(b, site.anchor, 0, {});
  const shape& scores = s.dims(1);
  const index_expr i = b.index("i", element_count(scores));
  b.begin({i});
  const std::vector<index_expr> at = b.index_at(scores, i);
  const std::string least = s.has(4) ? b.let(compute_type::real, s.read_scalar(4)) : std::string();
  const auto may_be_taken = [&](const std::string& score) { return least.empty() ? "1" : score + " > " + least; };
  const std::string own = b.let(compute_type::real, s.read(1, at));
  s.when(may_be_taken(own), [&] {
    const std::string rank = b.variable(compute_type::integer, "0");
    s.loop("j", scores[2], [&](const index_expr& j) {
      const std::string other = b.let(compute_type::real, s.read(1, {at[0], at[1], j}));
      const std::string keys = "dnnopt_order_key(" + other + ") > dnnopt_order_key(" + own + ") || (dnnopt_order_key(" +
                               other + ") == dnnopt_order_key(" + own + ") && " + index_source(j) + " < " +
                               index_source(at[2]) + ")";
      b.line(rank + " += " + may_be_taken(other) + " && (" + keys + ") ? 1 : 0;");
    });
    b.line(b.scratch(memory.sorted, dtype::int32, true) + "[" + index_source((at[0] * scores[1] + at[1]) * scores[2]) +
           " + " + rank + "] = (int)" + index_source(at[2]) + ";");
  });
  const std::string statements = b.take();
  return b.finish_items(suppression_prelude(), statements, i, element_count(scores), "sort_boxes");
}

/// The kernel that takes boxes, a work-group for each pair of image and class. Work: for each box that may be taken, at
/// most all that its pair took.
[[nodiscard]] inline kernel_plan emit_suppressed_boxes(const lowering_site& site, const choice& chosen,
                                                       const suppression_scratch& memory) {
  const node& n = site.anchor_node();
  kernel_builder b(site.block, site.options.emitters);
  const element_site s(b, site.anchor, 0, {});
  const index_expr z = b.index("z", s.dims(1)[0]);
  const index_expr c = b.index("c", s.dims(1)[1]);
  const index_expr i = b.index("i", s.dims(1)[2]);
  const index_expr k = b.index("k", 4);
  const auto group = static_cast<std::size_t>(chosen["group"]);
  b.define("DNNOPT_GROUP", static_cast<std::int64_t>(group));
  b.define("DNNOPT_BOXES", s.dims(1)[2]);
  b.define("DNNOPT_CLASSES", s.dims(1)[1]);
  b.define("DNNOPT_CENTERED", s.attributes().get_int("center_point_box", 0) != 0 ? 1 : 0);
  b.define("DNNOPT_LIMITED", s.has(4) ? 1 : 0);
  using names = std::vector<std::string>;
  b.define_load("dnnopt_load_box", n.inputs[0], std::vector<index_expr>{z, i, k}, names{"z", "i", "k"});
  b.define_load("dnnopt_load_score", n.inputs[1], std::vector<index_expr>{z, c, i}, names{"z", "c", "i"});
  const auto scalar = [&](std::string_view name, std::size_t input, compute_type type) {
    b.define_function(name, type, names{}, [&] { return s.has(input) ? s.read_scalar(input) : std::string("0"); });
  };
  scalar("dnnopt_most", 2, compute_type::integer);
  scalar("dnnopt_overlap", 3, compute_type::real);
  scalar("dnnopt_least", 4, compute_type::real);
  b.define("DNNOPT_SORTED", b.scratch(memory.sorted, dtype::int32, group == 1));
  b.define("DNNOPT_TAKEN", b.scratch(memory.taken, dtype::int32, true));
  b.define("DNNOPT_FOUND", b.scratch(memory.found, dtype::int32, true));
  if (group == 1) {
    b.define("DNNOPT_MERGED", b.scratch(memory.merged, dtype::int32, true));
    b.define("DNNOPT_KEPT", b.scratch(memory.kept, dtype::float32, true));
  }
  const index_expr pairs = suppressed_pairs(s);
  kernel_plan plan = b.finish(suppression_prelude(), suppress_boxes_frame, "suppress_boxes");
  plan.global[0] = pairs * static_cast<std::int64_t>(group);
  plan.local = {group, 1, 1};
  return plan;
}

/// The kernel that writes each pair's first row, and behind them the number of all rows.
[[nodiscard]] inline kernel_plan emit_suppressed_sum(const lowering_site& site, const suppression_scratch& memory) {
  kernel_builder b(site.block, site.options.emitters);
  const element_site s(b, site.anchor, 0, {});
  const index_expr i = b.index("i", 1);
  b.begin();
  const std::string rows = b.scratch(memory.found, dtype::int32, true);
  const std::string total = b.variable(compute_type::integer, "0");
  s.loop("j", suppressed_pairs(s), [&](const index_expr& j) {
    const std::string own = b.let(compute_type::integer, rows + "[" + index_source(j) + "]");
    b.line(rows + "[" + index_source(j) + "] = (int)" + total + ";");
    b.line(total + " += " + own + ";");
  });
  b.line(b.scratch(memory.count, dtype::int64, true) + "[0] = " + total + ";");
  const std::string statements = b.take();
  return b.finish_items(kernels::prelude, statements, i, 1, "suppress_sum");
}

/// The kernel that writes the rows (image, class, box) of the output. Work: for each row, all pairs.
[[nodiscard]] inline kernel_plan emit_suppressed_rows(const lowering_site& site, const suppression_scratch& memory) {
  const node& n = site.anchor_node();
  kernel_builder b(site.block, site.options.emitters);
  const element_site s(b, site.anchor, 0, {});
  const index_expr rows = s.out_dims()[0];
  const index_expr i = b.index("i", rows);
  b.begin({i});
  const std::string first = b.scratch(memory.found, dtype::int32, false);
  const std::string pair = b.variable(compute_type::integer, "0");
  // The last pair that begins at or before the row.
  s.loop("j", suppressed_pairs(s), [&](const index_expr& j) {
    b.line("if (" + first + "[" + index_source(j) + "] <= i) " + pair + " = " + index_source(j) + ";");
  });
  const std::string box =
      b.let(compute_type::integer, b.scratch(memory.taken, dtype::int32, false) + "[" + pair + " * " +
                                       index_source(s.dims(1)[2]) + " + i - " + first + "[" + pair + "]]");
  const std::string classes = index_source(s.dims(1)[1]);
  const std::vector<std::string> row{pair + " / " + classes, pair + " % " + classes, box};
  for (std::size_t k = 0; k < row.size(); ++k)
    b.store(n.outputs[0], b.offset_of(n.outputs[0], std::vector<index_expr>{i, static_cast<std::int64_t>(k)}), row[k]);
  const std::string statements = b.take();
  return b.finish_items(kernels::prelude, statements, i, rows, "suppress_rows");
}

/// The kernels of a NonMaxSuppression, whose number of rows the device finds.
[[nodiscard]] inline lowered_node emit_suppression(const lowering_site& site, const choice& chosen) {
  const node& n = site.anchor_node();
  const graph& g = site.block.g;
  lowered_node result;
  const index_expr most = *bounded_count(g, n.inputs[1]);
  const bool alone = chosen["group"] == 1;
  const std::size_t sorted = add_scratch(result, most, 4);
  const std::size_t taken = add_scratch(result, most, 4);
  // Each pair of image and class has a number of rows, also where there are no boxes.
  const std::size_t found = add_scratch(result, *bounded_count(g, n.inputs[1], 2), 4);
  suppression_scratch memory{sorted, taken, found, add_scratch(result, 1, 8), 0, 0};
  if (alone) {
    memory.merged = add_scratch(result, most, 4);
    memory.kept = add_scratch(result, most, 16);
  }
  const shape& scores = *g.facts(n.inputs[1]).dims;
  if (!alone && !(element_count(scores) == index_expr(0))) result.kernels.push_back(emit_sorted_boxes(site, memory));
  if (!(scores[0] * scores[1] == index_expr(0))) result.kernels.push_back(emit_suppressed_boxes(site, chosen, memory));
  result.kernels.push_back(emit_suppressed_sum(site, memory));
  result.size = computed_size{result.kernels.size() - 1, memory.count, {{n.outputs[0], 0}}};
  if (!((*g.facts(n.outputs[0]).dims)[0] == index_expr(0)))
    result.kernels.push_back(emit_suppressed_rows(site, memory));
  return result;
}

}  // namespace dnnopt::codegen

#endif  // DNNOPT_BACKEND_CODEGEN_FRAMES_SELECTION_EMIT_SUPPRESSION_HPP
