// Owns the kernels of operators that work on rows: softmax, normalizations over whole dims, reductions, global pools.
#ifndef DNNOPT_BACKEND_CODEGEN_FRAMES_ROWS_EMIT_HPP
#define DNNOPT_BACKEND_CODEGEN_FRAMES_ROWS_EMIT_HPP

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dnnopt/backend/codegen/frames/rows/choose.hpp>
#include <dnnopt/backend/codegen/frames/rows/parameters.hpp>
#include <dnnopt/backend/codegen/frames/rows/plane_totals.hpp>

namespace dnnopt::codegen {

/// Defines what the frames call, by family.
inline void define_row_operator(kernel_builder& b, const lowering_site& site, const row_operator& op,
                                const row_layout& rows) {
  const node& n = site.anchor_node();
  const element_site s(b, site.anchor, 0, {});
  const index_expr count = element_count(rows.outer);
  const index_expr length = element_count(rows.inner);
  b.define("DNNOPT_FAMILY", static_cast<std::int64_t>(op.family));
  b.define("DNNOPT_ROWS", count);
  b.define("DNNOPT_LENGTH", length);
  const index_expr row = b.index("row", count);
  const index_expr column = b.index("column", length);
  const std::vector<std::string> both_names{"row", "column"};
  const std::vector<std::string> row_name{"row"};
  const std::vector<index_expr> at = rows.at(b, s.dims(0), row, column);
  b.define_load("dnnopt_load", n.inputs[0], at, both_names);
  // ONNX's function bodies of these operators (Sub, Exp, ReduceSum, Div) round each step to the operand's type; values
  // that are narrow only as they are stored keep fp32 here.
  const value_facts& operand = site.block.g.facts(n.inputs[0]);
  if (const std::string_view step = converted_pattern(operand.type);
      op.family == row_family::softmax && !operand.narrowed && is_floating(operand.type) && step != "$v")
    b.define("DNNOPT_STEP(x)", fill_pattern(step, "", "", "(x)"));
  if (op.family == row_family::reduction) {
    const reduction_row& r = *find_reduction(op.reduction);
    const auto macro = [&](std::string_view name, std::string_view pattern) {
      b.define(name, "(" + fill_reduction(pattern, "(a)", "(x)", "(float)" + index_source(length)) + ")");
    };
    b.define("DNNOPT_FIRST", first_of(r, dtype::float32));
    macro("DNNOPT_TAKE(a, x)", r.take);
    macro("DNNOPT_COMBINE(a, x)", r.combine);
    macro("DNNOPT_FINISH(a)", r.finish);
    const std::vector<index_expr> outer = b.index_at(rows.outer, row);
    std::vector<index_expr> out;
    const bool keeps = b.dims(n.outputs[0]).size() == rows.inside.size();
    std::size_t k = 0;
    for (const bool inside : rows.inside) {
      if (!inside)
        out.push_back(outer[k++]);
      else if (keeps)
        out.emplace_back(0);
    }
    b.define_store("dnnopt_store", n.outputs[0], out, row_name);
    return;
  }
  if (op.family == row_family::norm) {
    const bool square = n.attributes.get_int("p", 2) == 2;
    b.define("DNNOPT_NORM_TERM(x)", square ? "((x) * (x))" : "fabs(x)");
    b.define("DNNOPT_NORM_ROOT(x)", square ? "sqrt(x)" : "(x)");
  }
  if (normalizes(op))
    b.define("DNNOPT_EPSILON",
             literal(compute_type::real, static_cast<double>(n.attributes.get_float("epsilon", 1e-5f))));
  for (std::size_t o = 1; o < n.outputs.size() && o < 3; ++o) {
    if (n.outputs[o] == no_value ||
        std::find(site.block.outputs.begin(), site.block.outputs.end(), n.outputs[o]) == site.block.outputs.end())
      continue;
    const std::string function = o == 1 ? "dnnopt_store_mean" : "dnnopt_store_inverse";
    b.define_procedure(function, row_name, compute_type::real, [&] { b.store(n.outputs[o], row, "value"); });
    b.define(o == 1 ? "DNNOPT_STORE_MEAN(row, v)" : "DNNOPT_STORE_INVERSE(row, v)",
             function + "(DNNOPT_ARGUMENTS, row, v)");
  }
  b.define_store("dnnopt_store", n.outputs[0], at, both_names, compute_type::real, [&] {
    std::string text = "value";
    const auto parameter_of = [&](std::size_t slot) {
      if (op.span == row_span::from_axis) return s.read_broadcast(slot, at);
      return s.read(slot, {op.span == row_span::group ? s.group_parameter(slot, at[1], rows.inner[0]) : at[1]});
    };
    if (normalizes(op)) {
      if (s.has(1)) text += " * " + parameter_of(1);
      if (s.has(2)) text += " + " + parameter_of(2);
    }
    return text == "value" ? text : b.let(compute_type::real, text);
  });
}

[[nodiscard]] inline lowered_node emit_row_items(const lowering_site& site, const choice& chosen) {
  const node& n = site.anchor_node();
  const row_operator& op = *find_row_operator(n.op->domain, n.op->name);
  kernel_builder b(site.block, site.options.emitters);
  const row_layout rows = rows_of(element_site(b, site.anchor, 0, {}), op);
  define_row_operator(b, site, op, rows);
  define_sizes(b, row_items_frame, chosen);
  kernel_plan plan = b.finish(kernels::prelude, row_items_frame, "row_items");
  plan.tuning = chosen.tuning;
  plan.global[0] = ceildiv(element_count(rows.outer), chosen["rows_per_item"]);
  plan.local = {1, 1, 1};
  lowered_node result;
  result.kernels.push_back(std::move(plan));
  return result;
}

[[nodiscard]] inline lowered_node emit_row_groups(const lowering_site& site, const choice& chosen) {
  const node& n = site.anchor_node();
  const row_operator& op = *find_row_operator(n.op->domain, n.op->name);
  kernel_builder b(site.block, site.options.emitters);
  const row_layout rows = rows_of(element_site(b, site.anchor, 0, {}), op);
  define_row_operator(b, site, op, rows);
  if (chosen["vector"] == 4) (void)define_row_vectors(b, site, op, rows);
  define_sizes(b, row_groups_frame, chosen);
  kernel_plan plan = b.finish(kernels::prelude, row_groups_frame, "row_groups");
  const std::int64_t items = chosen["group"] * chosen["group_rows"];
  plan.global[0] = ceildiv(element_count(rows.outer), chosen["group_rows"]) * items;
  plan.local = {static_cast<std::size_t>(items), 1, 1};
  plan.tuning = chosen.tuning;
  lowered_node result;
  result.kernels.push_back(std::move(plan));
  return result;
}

}  // namespace dnnopt::codegen

#endif  // DNNOPT_BACKEND_CODEGEN_FRAMES_ROWS_EMIT_HPP
