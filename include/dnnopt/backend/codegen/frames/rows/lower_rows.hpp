// Owns the kernels of operators that work on rows: softmax, normalizations over whole dims, reductions, global pools.
#ifndef DNNOPT_BACKEND_CODEGEN_FRAMES_ROWS_LOWER_ROWS_HPP
#define DNNOPT_BACKEND_CODEGEN_FRAMES_ROWS_LOWER_ROWS_HPP

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dnnopt/backend/codegen/elements/reduction.hpp>
#include <dnnopt/backend/codegen/frames/products/matrix_frame.hpp>
#include <dnnopt/backend/codegen/frames/products/tile_frame.hpp>
#include <dnnopt/backend/codegen/frames/rows/row_operators.hpp>

namespace dnnopt::codegen {

/// Rows of input 0: `outer` counts rows, `inner` positions in a row.
struct row_layout {
  std::vector<bool> inside;  ///< whether a row spans the dim
  std::int64_t groups = 0;   ///< dim 1 is split: its groups count rows, channels of a group are in the row
  shape outer;
  shape inner;

  [[nodiscard]] std::vector<index_expr> at(kernel_builder& b, const shape& dims, const index_expr& row,
                                           const index_expr& column) const {
    const std::vector<index_expr> o = b.index_at(outer, row);
    const std::vector<index_expr> i = b.index_at(inner, column);
    std::vector<index_expr> out;
    std::size_t oi = 0;
    std::size_t ii = 0;
    for (std::size_t k = 0; k < dims.size(); ++k) {
      if (groups > 0 && k == 1)
        out.push_back(o[oi++] * inner[0] + i[ii++]);
      else
        out.push_back(inside[k] ? i[ii++] : o[oi++]);
    }
    return out;
  }
};

[[nodiscard]] inline row_layout rows_of(const element_site& s, const row_operator& op) {
  const shape& d = s.dims(0);
  row_layout rows;
  rows.inside.assign(d.size(), false);
  switch (op.span) {
    case row_span::axis:
      rows.inside[normalize_axis(s.attributes().get_int("axis", -1), d.size())] = true;
      break;
    case row_span::from_axis:
      for (std::size_t k = normalize_axis(s.attributes().get_int("axis", -1), d.size()); k < d.size(); ++k)
        rows.inside[k] = true;
      break;
    case row_span::group:
      rows.groups = s.attributes().require<std::int64_t>("num_groups");
      [[fallthrough]];
    case row_span::spatial:
      for (std::size_t k = 2; k < d.size(); ++k) rows.inside[k] = true;
      break;
    case row_span::listed:
      rows.inside = reduced_axes(s);
      break;
  }
  for (std::size_t k = 0; k < d.size(); ++k) {
    if (rows.groups > 0 && k == 1) {
      rows.outer.emplace_back(rows.groups);
      rows.inner.push_back(floordiv(d[1], rows.groups));
    } else {
      (rows.inside[k] ? rows.inner : rows.outer).push_back(d[k]);
    }
  }
  return rows;
}

[[nodiscard]] inline std::string reject_rows(const lowering_site& site) {
  const node& n = site.anchor_node();
  const row_operator* op = find_row_operator(n.op->domain, n.op->name);
  if (op == nullptr) return "the operator does not work on rows";
  if (std::string why = reject_element_types(site, op->span == row_span::listed ? 1 : n.inputs.size()); !why.empty())
    return why;
  if (op->family == row_family::norm && n.attributes.get_int("p", 2) != 1 && n.attributes.get_int("p", 2) != 2)
    return "p is neither 1 nor 2";
  kernel_builder b(site.block, site.options.emitters);
  const element_site s(b, site.anchor, 0, {});
  const row_layout rows = rows_of(s, *op);
  if (rows.inner.empty() && op->family == row_family::reduction) return "nothing is reduced";
  if (element_count(b.dims(n.outputs[0])) == index_expr(0)) return "the output is empty";
  if (op->family == row_family::reduction) {
    // Neighbours in memory had better be in one row; otherwise one work-item per result reads them side by side.
    bool trailing = true;
    for (std::size_t k = 1; k < rows.inside.size(); ++k)
      if (!rows.inside[k] && rows.inside[k - 1] && !(s.dims(0)[k] == index_expr(1))) trailing = false;
    if (!trailing) return "a row is spread in memory";
  }
  return {};
}

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
  if (op.family == row_family::centered || op.family == row_family::root_mean_square)
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
    if (op.family == row_family::centered || op.family == row_family::root_mean_square) {
      if (s.has(1)) text += " * " + parameter_of(1);
      if (s.has(2)) text += " + " + parameter_of(2);
    }
    return text == "value" ? text : b.let(compute_type::real, text);
  });
}

[[nodiscard]] inline std::string reject_row_items(const lowering_site& site) {
  return site.prefers_vectors() ? reject_rows(site) : "the device does not prefer wide vectors";
}

[[nodiscard]] inline lowered_node lower_row_items(const lowering_site& site) {
  const node& n = site.anchor_node();
  const row_operator& op = *find_row_operator(n.op->domain, n.op->name);
  kernel_builder b(site.block, site.options.emitters);
  const row_layout rows = rows_of(element_site(b, site.anchor, 0, {}), op);
  define_row_operator(b, site, op, rows);
  const index_expr count = element_count(rows.outer);
  const std::int64_t length = element_count(rows.inner).as_constant().value_or(1024);
  b.define("DNNOPT_BLOCK", std::clamp<std::int64_t>(round_up(length, 16), 16, 4096));
  // A work-item is worth its launch from some thousand elements on; every core gets a few.
  const std::int64_t units = std::max<std::int64_t>(site.options.device->compute_units, 1);
  const std::int64_t all = count.as_constant().value_or(64 * units);
  const std::string shape_name = shape_class("row_items", std::array{count, element_count(rows.inner)});
  const auto* values = site.tuned(shape_name);
  const std::int64_t per_item = values != nullptr
                                    ? values->front()
                                    : std::clamp<std::int64_t>(4096 / std::max<std::int64_t>(length, 1), 1,
                                                               std::max<std::int64_t>(1, all / (4 * units)));
  b.define("DNNOPT_ROWS_PER_ITEM", per_item);
  kernel_plan plan = b.finish(kernels::prelude, kernels::row_items, "row_items");
  plan.tuning = shape_name;
  plan.global[0] = ceildiv(count, per_item);
  plan.local = {1, 1, 1};
  lowered_node result;
  result.kernels.push_back(std::move(plan));
  return result;
}

/// How row_groups.cl cuts its rows: work-items for each, rows of a work-group, neighbours per access (1 or 4).
struct row_group_sizes {
  std::int64_t items = 0;
  std::int64_t rows = 1;
  std::int64_t vector = 1;
};

/// Work-items for a row of `length` elements that are read as vectors: two to four vectors each.
[[nodiscard]] constexpr std::int64_t row_items_for_vectors(std::int64_t length) noexcept {
  std::int64_t items = 8;
  while (items < 256 && items * 16 < length) items *= 2;
  return items;
}

/// Whether rows can be read and written four neighbours at a time: the operand lies in memory, row by row, and nothing
/// but views stands between the anchor and the one output, nor between it and the factors and terms of a row.
[[nodiscard]] inline bool rows_hold_vectors(kernel_builder& b, const lowering_site& site, const row_operator& op,
                                            const row_layout& rows) {
  const node& n = site.anchor_node();
  const index_expr length = element_count(rows.inner);
  if (!length.is_constant() || length.constant() % 4 != 0 ||
      (op.span != row_span::axis && op.span != row_span::from_axis))
    return false;
  for (std::size_t k = 1; k < rows.inside.size(); ++k)
    if (rows.inside[k - 1] && !rows.inside[k]) return false;
  const auto plain = [&](value_id id) {
    const value_facts& facts = site.block.g.facts(id);
    return !facts.texels && (facts.type == dtype::float32 || facts.type == dtype::float16);
  };
  if (b.is_member_value(n.inputs[0]) || !plain(n.inputs[0])) return false;
  if (site.block.outputs.size() != 1 || !plain(site.block.outputs[0])) return false;
  for (const node_id id : site.block.members)
    if (id != site.anchor && site.block.g.node_at(id).op->kind != computation_kind::view) return false;
  if (op.family != row_family::centered && op.family != row_family::root_mean_square) return true;
  for (std::size_t i = 1; i < n.inputs.size() && i < 3; ++i)
    if (n.inputs[i] != no_value &&
        (b.is_member_value(n.inputs[i]) || !plain(n.inputs[i]) || !(b.dims(n.inputs[i]) == rows.inner)))
      return false;
  return true;
}

/// Defines dnnopt_load4(row, column) and dnnopt_store4(row, column, four) where rows_hold_vectors; false, and nothing
/// of use is defined, where four neighbours of a row do not stand side by side in the output.
[[nodiscard]] inline bool define_row_vectors(kernel_builder& b, const lowering_site& site, const row_operator& op,
                                             const row_layout& rows) {
  if (!rows_hold_vectors(b, site, op, rows)) return false;
  const node& n = site.anchor_node();
  const value_id out = site.block.outputs[0];
  const std::vector<std::string> names{"row", "column"};
  const index_expr length = element_count(rows.inner);
  const index_expr row = b.index("row", element_count(rows.outer));
  const index_expr column = b.index("column", length);
  const index_expr quarter = b.index("quarter", floordiv(length, 4));
  const shape dims = b.dims(n.inputs[0]);
  const auto at = [&](const index_expr& c) { return rows.at(b, dims, row, c); };
  b.begin();
  std::array<index_expr, 4> offsets;
  for (std::int64_t j = 0; j < 4; ++j) {
    const std::vector<index_expr> own = at(quarter * 4 + j);
    b.bind(n.outputs[0], own, "four.s" + std::to_string(j));
    offsets[static_cast<std::size_t>(j)] = b.offset_of(out, b.index_from_anchor(n.outputs[0], own, out));
  }
  (void)b.take();
  if (!are_four_neighbours(offsets)) return false;
  if (define_load4(b, "dnnopt_load4", n.inputs[0], b.offset_of(n.inputs[0], at(column)), column, length, names) != 4)
    return false;
  std::string statements = "  const int quarter = column >> 2;\n";
  const bool scaled = op.family == row_family::centered || op.family == row_family::root_mean_square;
  for (std::size_t i = 1; scaled && i < n.inputs.size() && i < 3; ++i) {
    if (n.inputs[i] == no_value) continue;
    const std::string name = i == 1 ? "dnnopt_factor4" : "dnnopt_term4";
    if (define_load4(b, name, n.inputs[i], column, column, length, names) != 4) return false;
    statements += std::string("  four ") + (i == 1 ? "*=" : "+=") + " " + name + "(DNNOPT_ARGUMENTS, row, column);\n";
  }
  b.begin();
  b.store_four(out, offsets, "four");
  b.add_function(
      "static inline void dnnopt_store4(DNNOPT_PARAMETERS, const int row, const int column, float4 four) {\n" +
      statements + b.take() + "}\n");
  return true;
}

[[nodiscard]] inline lowered_node lower_row_groups(const lowering_site& site) {
  const node& n = site.anchor_node();
  const row_operator& op = *find_row_operator(n.op->domain, n.op->name);
  kernel_builder b(site.block, site.options.emitters);
  const row_layout rows = rows_of(element_site(b, site.anchor, 0, {}), op);
  define_row_operator(b, site, op, rows);
  const std::int64_t length = element_count(rows.inner).as_constant().value_or(1024);
  const std::size_t most = site.options.device == nullptr || site.options.device->max_work_group_size == 0
                               ? 256
                               : site.options.device->max_work_group_size;
  // About eight elements per work-item keep reads in flight; rows that fit are read once and kept in registers. Where
  // there are so many rows that the device is busy anyhow, a normalization is faster with few work-items each, for then
  // fewer have to meet: they read four neighbours at a time where they can, else what caches hold twice (on an H200
  // faster by 17% at 16384 rows of 1024).
  const std::int64_t busy = site.busy_items();
  const bool normalizes = op.family == row_family::centered || op.family == row_family::root_mean_square;
  const std::int64_t count = element_count(rows.outer).as_constant().value_or(1);
  const bool known = element_count(rows.inner).is_constant();
  const std::string shape_name =
      shape_class("row_groups", std::array{element_count(rows.outer), element_count(rows.inner)});
  row_group_sizes sizes;
  if (const std::int64_t few = row_items_for_vectors(length); normalizes && count * few >= busy)
    sizes = {few, std::max<std::int64_t>(1, std::min<std::int64_t>(128, static_cast<std::int64_t>(most)) / few), 4};
  const auto* values = site.tuned(shape_name);
  if (values != nullptr && (*values)[0] * (*values)[1] <= static_cast<std::int64_t>(most))
    sizes = {(*values)[0], (*values)[1], (*values)[2]};
  else
    values = nullptr;
  // In vectors a work-item keeps at most 32 elements.
  if (sizes.vector == 4 &&
      (!known || length > sizes.items * 32 || sizes.items * sizes.rows > static_cast<std::int64_t>(most) ||
       !define_row_vectors(b, site, op, rows))) {
    sizes.vector = 1;
    if (values == nullptr) sizes.items = 0;
  }
  if (sizes.items == 0) {
    const bool crowded = normalizes && length > 512 && count * 32 >= busy;
    const std::uint64_t wanted =
        crowded ? 32 : std::bit_ceil(static_cast<std::uint64_t>(std::clamp<std::int64_t>(length / 8, 32, 256)));
    sizes.items = static_cast<std::int64_t>(std::min<std::size_t>(wanted, std::bit_floor(most)));
    sizes.rows = crowded ? 1
                         : std::max<std::int64_t>(
                               1, static_cast<std::int64_t>(std::min<std::size_t>(256, most)) / sizes.items / 2);
  }
  const std::int64_t own = (length / sizes.vector + sizes.items - 1) / sizes.items;
  b.define("DNNOPT_GROUP", sizes.items);
  b.define("DNNOPT_GROUP_ROWS", sizes.rows);
  b.define("DNNOPT_VECTOR", sizes.vector);
  b.define("DNNOPT_OWN", known && own <= 16 ? own : 0);
  kernel_plan plan = b.finish(kernels::prelude, kernels::row_groups, "row_groups");
  plan.global[0] = ceildiv(element_count(rows.outer), sizes.rows) * (sizes.rows * sizes.items);
  plan.local = {static_cast<std::size_t>(sizes.rows * sizes.items), 1, 1};
  plan.tuning = shape_name;
  lowered_node result;
  result.kernels.push_back(std::move(plan));
  return result;
}

}  // namespace dnnopt::codegen

#endif  // DNNOPT_BACKEND_CODEGEN_FRAMES_ROWS_LOWER_ROWS_HPP
