// Owns the kernels of matrix products: MatMul, Gemm and two-operand Einsum, in panels and in tiles.
#ifndef DNNOPT_BACKEND_CODEGEN_FRAMES_PRODUCTS_EMIT_HPP
#define DNNOPT_BACKEND_CODEGEN_FRAMES_PRODUCTS_EMIT_HPP

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dnnopt/backend/codegen/frames/products/choose.hpp>
#include <dnnopt/backend/codegen/frames/products/parameters.hpp>
#include <dnnopt/backend/codegen/frames/sources.hpp>

namespace dnnopt::codegen {

inline const std::vector<std::string> product_names_a{"z", "m", "k"};
inline const std::vector<std::string> product_names_b{"z", "k", "n"};
inline const std::vector<std::string> product_names_store{"z", "m", "n"};
inline const std::vector<std::string> product_names_store_panel{"z", "m", "panel", "lane"};

/// Packs a constant operand once in panels, and defines where the frame reads it.
inline void define_packed_operand(lowered_node& result, kernel_builder& b, const lowering_site& site,
                                  const framed_product& p, const panel_sizes& sizes, std::size_t which) {
  const std::int64_t extent = (which == 1 ? p.e.columns : p.e.rows).constant();
  const std::int64_t width = which == 1 ? sizes.columns() : sizes.rows;
  const std::int64_t batch = p.batch_of(which).constant();
  result.scratch.push_back({batch * round_up(extent, width) * p.e.inner.constant() * 4, true});
  result.prepare.push_back(pack_kernel(
      site, 0, batch, extent, p.e.inner.constant(), width,
      [&](kernel_builder& own, const index_expr& pz, const index_expr& i, const index_expr& pk) {
        const framed_product again = product_of(own, site, true);
        return own.emit(again.operand(site.anchor_node(), which), again.c.operand_index(own, which, pz, i, pk));
      }));
  const std::string pointer = b.scratch(0, dtype::float32, false);
  b.define(which == 1 ? "DNNOPT_B_PACKED" : "DNNOPT_A_PACKED", 1);
  b.define(which == 1 ? "DNNOPT_B" : "DNNOPT_A", pointer);
  b.define(which == 1 ? "DNNOPT_B_BATCH" : "DNNOPT_A_BATCH", batch == 1 ? "0" : "z");
}

/// Defines dnnopt_store(z, m, n, value) of a product in panels, or dnnopt_store(z, m, panel, lane, value) where all
/// panels are whole: n < N says no more than the ranges of both numbers do.
inline void define_panel_store(kernel_builder& b, const lowering_site& site, const panel_sizes& sizes) {
  const framed_product p = product_of(b, site, true);
  const index_expr& columns = p.e.columns;
  const bool by_panel = columns.is_constant() && columns.constant() % sizes.columns() == 0;
  if (by_panel) b.define("DNNOPT_STORE_BY_PANEL", 1);
  index_expr column = b.index(by_panel ? "lane" : "n", by_panel ? index_expr(sizes.columns()) : columns);
  if (by_panel) column = b.index("panel", columns.constant() / sizes.columns()) * sizes.columns() + column;
  const index_expr z = b.index("z", p.e.batch);
  const index_expr row = b.index("m", p.e.rows);
  const std::vector<index_expr> at = p.c.output_index(b, z, row, column);
  b.define_store("dnnopt_store", site.anchor_node().outputs[0], at,
                 by_panel ? product_names_store_panel : product_names_store, compute_type::real,
                 [&] { return finished_product(b, site, at); });
}

/// Errors: unsupported where a member that normalizes rows can't stand before the product.
[[nodiscard]] inline lowered_node emit_product_panels(const lowering_site& site, const choice& chosen) {
  const node& n = site.anchor_node();
  kernel_builder b(site.block, site.options.emitters);
  const framed_product p = product_of(b, site, true);
  const panel_sizes sizes = panels_of(chosen);
  const index_expr z = b.index("z", p.e.batch);
  const index_expr m = b.index("m", p.e.rows);
  const index_expr k = b.index("k", p.e.inner);
  const index_expr column = b.index("n", p.e.columns);
  lowered_node result;
  const bool a_packed = chosen.form_of(p.c.slots[0]) == operand_form::packed;
  const bool b_packed = chosen.form_of(p.c.slots[1]) == operand_form::packed;
  if (a_packed || b_packed) define_packed_operand(result, b, site, p, sizes, b_packed ? 1 : 0);
  define_panels(b, sizes, p.e);
  const panel_steps steps = steps_of_panels(site, sizes, p.e, a_packed);
  define_steps(b, steps, sizes);
  b.define("DNNOPT_B_INNER_FIRST", inner_first(p.c, 1) ? 1 : 0);
  if (const node_id norm = row_normalization_in(site.block); norm != no_node)
    define_normalized_rows(b, norm, p.operand(n, 0), p.c.operand_index(b, 0, z, m, k), k, product_names_a);
  else if (!a_packed)
    b.define_load("dnnopt_load_a", p.operand(n, 0), p.c.operand_index(b, 0, z, m, k), product_names_a);
  if (chosen.form_of(p.c.slots[1]) == operand_form::codes)
    define_unpacked_codes(result, b, site, p, coded_operand_of(site, p, false).value(), sizes.columns());
  else if (!b_packed)
    b.define_load("dnnopt_load_b", p.operand(n, 1), p.c.operand_index(b, 1, z, column, k), product_names_b);
  define_panel_store(b, site, sizes);
  kernel_plan plan = b.finish(kernels::prelude, matrix_panels_frame, chosen.version);
  launch_panels(plan, steps, p.e);
  plan.tuning = chosen.tuning;
  result.kernels.push_back(std::move(plan));
  return result;
}

/// An operand of a product in tiles: rows of the first one or columns of the second, `outer` of them, by elements of k.
struct tile_operand {
  std::size_t which = 0;
  value_id id = no_value;
  index_expr outer;   ///< the index of its row or column
  index_expr extent;  ///< how many there are
  bool texels = false;
  bool bits = false;  ///< whether its halves are fetched as bits

  [[nodiscard]] std::string_view load() const { return which == 0 ? "dnnopt_load_a" : "dnnopt_load_b"; }
  [[nodiscard]] std::string_view load4() const { return which == 0 ? "dnnopt_load4_a" : "dnnopt_load4_b"; }
  [[nodiscard]] const std::vector<std::string>& names() const { return which == 0 ? product_names_a : product_names_b; }
};

/// Defines the load of four elements of an operand, and returns how many are loaded at once: 4, or 1 where only single
/// ones are. A constant in texels is packed before.
[[nodiscard]] inline int define_tile_load4(lowered_node& result, kernel_builder& b, const lowering_site& site,
                                           const framed_product& p, tile_operand& o) {
  const index_expr z = b.index("z", p.e.batch);
  const index_expr k = b.index("k", p.e.inner);
  if (o.texels) {
    const std::int64_t batch = p.batch_of(o.which).constant();
    o.bits = define_texel_constant(
        result, b, site, {o.id, batch, o.extent.constant(), p.e.inner.constant()}, o.load4(), o.names(),
        batch == 1 ? index_expr(0) : z, o.outer, k,
        [&](kernel_builder& own, const index_expr& pz, const index_expr& i, const index_expr& pk) {
          const contraction again = contraction_of(own, site).value();
          return own.emit(o.id, again.operand_index(own, o.which, pz, i, pk));
        },
        !multiplies_halves(site, b));
    return 4;
  }
  const bool by_inner = inner_first(p.c, o.which);
  const index_expr& extent = by_inner ? p.e.inner : o.extent;
  if (reads_texels(site.block, o.id))
    return define_emitted_load4(b, o.load4(), o.id,
                                by_inner       ? "k"
                                : o.which == 0 ? "m"
                                               : "n",
                                extent, o.names(), [&](const index_expr& i) {
                                  return p.c.operand_index(b, o.which, z, by_inner ? o.outer : i, by_inner ? i : k);
                                });
  return define_load4_of_run(b, o.load4(), o.id, b.offset_of(o.id, p.c.operand_index(b, o.which, z, o.outer, k)),
                             by_inner ? k : o.outer, extent, o.names(), o.bits);
}

/// Defines the store of a product in tiles in the symbols of `own`, and returns the extents in them.
[[nodiscard]] inline product_extents define_tile_store(kernel_builder& own, const lowering_site& site,
                                                       store_direction along) {
  const value_id out = site.anchor_node().outputs[0];
  const framed_product p = product_of(own, site, false);
  if (along != store_direction::single) {
    const four_results four =
        results_along(own, along, p.e.rows, p.e.columns, [&](const index_expr& row, const index_expr& column) {
          return p.c.output_index(own, own.index("z", p.e.batch), row, column);
        });
    own.define_store4("dnnopt_store4", out, four, names_of_store4(along),
                      [&](std::size_t j) { return finished_product(own, site, four.at[j]); });
    return p.e;
  }
  const index_expr column = own.index("n", p.e.columns);
  const std::vector<index_expr> at = p.c.output_index(own, own.index("z", p.e.batch), own.index("m", p.e.rows), column);
  own.define_store("dnnopt_store", out, at, product_names_store, compute_type::real,
                   [&] { return finished_product(own, site, at); });
  return p.e;
}

/// Errors: unsupported where an output's texels are no four results of the frame.
[[nodiscard]] inline lowered_node emit_product_tiles(const lowering_site& site, const choice& chosen) {
  const node& n = site.anchor_node();
  kernel_builder b(site.block, site.options.emitters);
  const framed_product p = product_of(b, site, false);
  const index_expr z = b.index("z", p.e.batch);
  const index_expr m = b.index("m", p.e.rows);
  const index_expr k = b.index("k", p.e.inner);
  const index_expr column = b.index("n", p.e.columns);
  lowered_node result;
  const auto in_texels = [&](std::size_t which) { return chosen.form_of(p.c.slots[which]) == operand_form::texels; };
  std::array<tile_operand, 2> operands{tile_operand{0, p.operand(n, 0), m, p.e.rows, in_texels(0)},
                                       tile_operand{1, p.operand(n, 1), column, p.e.columns, in_texels(1)}};
  for (tile_operand& o : operands) o.bits = !o.texels && fetches_bits(site, b, o.id);
  for (const tile_operand& o : operands) {
    b.load_halves_as_bits(o.bits);
    if (!o.texels) b.define_load(o.load(), o.id, p.c.operand_index(b, o.which, z, o.outer, k), o.names());
  }
  b.load_halves_as_bits(false);
  b.define("DNNOPT_A_INNER_FIRST", inner_first(p.c, 0) && !operands[0].texels ? 1 : 0);
  b.define("DNNOPT_B_INNER_FIRST", inner_first(p.c, 1) && !operands[1].texels ? 1 : 0);
  b.define("DNNOPT_A_WIDTH", define_tile_load4(result, b, site, p, operands[0]));
  b.define("DNNOPT_B_WIDTH", define_tile_load4(result, b, site, p, operands[1]));
  b.define("DNNOPT_A_BITS", operands[0].bits ? 1 : 0);
  b.define("DNNOPT_B_BITS", operands[1].bits ? 1 : 0);
  store_direction along = direction_of_texels(
      b, site.block, n.outputs[0], p.e.rows, p.e.columns,
      [&](const index_expr& row, const index_expr& at_column) { return p.c.output_index(b, z, row, at_column); });
  if (along == store_direction::single) along = static_cast<store_direction>(chosen["row_direction"]);
  finish_tiles(
      result, b, site, tiles_of(chosen), p.e, "matrix_tiles",
      [&](kernel_builder& own) { return define_tile_store(own, site, along); }, along);
  return result;
}

}  // namespace dnnopt::codegen

#endif  // DNNOPT_BACKEND_CODEGEN_FRAMES_PRODUCTS_EMIT_HPP
