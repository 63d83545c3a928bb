// Owns the sizes of the kernels that work on rows: how many rows a work-item or a work-group takes, and in what steps.
#ifndef DNNOPT_BACKEND_CODEGEN_FRAMES_ROWS_CHOOSE_HPP
#define DNNOPT_BACKEND_CODEGEN_FRAMES_ROWS_CHOOSE_HPP

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <dnnopt/backend/codegen/choice.hpp>
#include <dnnopt/backend/codegen/frames/rows/row_layout.hpp>

namespace dnnopt::codegen {

/// Why the row frames do not take a block; empty where they do.
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

/// Rows for each work-item: it is worth its launch from some thousand elements on, and every core gets a few.
[[nodiscard]] inline choice_or_reason choose_row_items(const lowering_site& site) {
  if (!site.prefers_vectors()) return "the device does not prefer wide vectors";
  if (std::string why = reject_rows(site); !why.empty()) return why;
  const node& n = site.anchor_node();
  kernel_builder b(site.block, site.options.emitters);
  const row_layout rows = rows_of(element_site(b, site.anchor, 0, {}), *find_row_operator(n.op->domain, n.op->name));
  const index_expr count = element_count(rows.outer);
  const index_expr inner = element_count(rows.inner);
  const std::int64_t length = inner.as_constant().value_or(1024);
  const std::int64_t units = site.compute_units();
  const std::int64_t all = count.as_constant().value_or(64 * units);
  choice made("row_items");
  made.tuning = shape_class("row_items", std::array{count, inner});
  const auto* values = site.tuned(made.tuning);
  made.with("block", std::clamp<std::int64_t>(round_up(length, 16), 16, 4096));
  made.with("rows_per_item", values != nullptr
                                 ? values->front()
                                 : std::clamp<std::int64_t>(4096 / std::max<std::int64_t>(length, 1), 1,
                                                            std::max<std::int64_t>(1, all / (4 * units))));
  return made;
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

/// Whether the vectors of a row can be read and written, found by writing them once for nothing.
[[nodiscard]] inline bool rows_are_vectors(const lowering_site& site, const row_operator& op) {
  kernel_builder b(site.block, site.options.emitters);
  return define_row_vectors(b, site, op, rows_of(element_site(b, site.anchor, 0, {}), op));
}

/// About eight elements per work-item keep reads in flight; rows that fit are read once and kept in registers. Where
/// there are so many rows that the device is busy anyhow, a normalization is faster with few work-items each, for then
/// fewer have to meet: they read four neighbours at a time where they can, else what caches hold twice (on an H200
/// faster by 17% at 16384 rows of 1024).
[[nodiscard]] inline choice_or_reason choose_row_groups(const lowering_site& site) {
  if (std::string why = reject_rows(site); !why.empty()) return why;
  const node& n = site.anchor_node();
  const row_operator& op = *find_row_operator(n.op->domain, n.op->name);
  kernel_builder b(site.block, site.options.emitters);
  const row_layout rows = rows_of(element_site(b, site.anchor, 0, {}), op);
  const index_expr outer = element_count(rows.outer);
  const index_expr inner = element_count(rows.inner);
  const bool known = inner.is_constant();
  const std::int64_t length = inner.as_constant().value_or(1024);
  const std::int64_t count = outer.as_constant().value_or(1);
  const std::int64_t busy = site.busy_items();
  const auto most = static_cast<std::int64_t>(site.work_group());
  choice made("row_groups");
  made.tuning = shape_class("row_groups", std::array{outer, inner});
  row_group_sizes sizes;
  if (const std::int64_t few = row_items_for_vectors(length); normalizes(op) && count * few >= busy)
    sizes = {few, std::max<std::int64_t>(1, std::min<std::int64_t>(128, most) / few), 4};
  const auto* values = site.tuned(made.tuning);
  if (values != nullptr && (*values)[0] * (*values)[1] <= most)
    sizes = {(*values)[0], (*values)[1], (*values)[2]};
  else
    values = nullptr;
  // In vectors a work-item keeps at most 32 elements.
  if (sizes.vector == 4 &&
      (!known || length > sizes.items * 32 || sizes.items * sizes.rows > most || !rows_are_vectors(site, op))) {
    sizes.vector = 1;
    if (values == nullptr) sizes.items = 0;
  }
  if (sizes.items == 0) {
    const bool crowded = normalizes(op) && length > 512 && count * 32 >= busy;
    const std::uint64_t wanted =
        crowded ? 32 : std::bit_ceil(static_cast<std::uint64_t>(std::clamp<std::int64_t>(length / 8, 32, 256)));
    sizes.items =
        static_cast<std::int64_t>(std::min<std::uint64_t>(wanted, std::bit_floor(static_cast<std::uint64_t>(most))));
    sizes.rows = crowded ? 1 : std::max<std::int64_t>(1, std::min<std::int64_t>(256, most) / sizes.items / 2);
  }
  const std::int64_t own = (length / sizes.vector + sizes.items - 1) / sizes.items;
  made.with("group", sizes.items);
  made.with("group_rows", sizes.rows);
  made.with("vector", sizes.vector);
  made.with("own", known && own <= 16 ? own : 0);
  if (sizes.vector == 4) made.taken.push_back({0, operand_form::vectors});
  made.local_bytes = static_cast<std::uint64_t>(4 * sizes.items * sizes.rows);
  return made;
}

}  // namespace dnnopt::codegen

#endif  // DNNOPT_BACKEND_CODEGEN_FRAMES_ROWS_CHOOSE_HPP
