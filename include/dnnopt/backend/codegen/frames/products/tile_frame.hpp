// Owns what kernels of matrix products and convolutions share on devices whose work-items share local memory: loads of
// tiles, and the sums of splits.
#ifndef DNNOPT_BACKEND_CODEGEN_FRAMES_PRODUCTS_TILE_FRAME_HPP
#define DNNOPT_BACKEND_CODEGEN_FRAMES_PRODUCTS_TILE_FRAME_HPP

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dnnopt/backend/codegen/frames/products/parameters.hpp>
#include <dnnopt/backend/codegen/frames/products/tile_choice.hpp>
#include <dnnopt/backend/codegen/texel_operands.hpp>

namespace dnnopt::codegen {

/// Four neighbours at once: `offset` in the buffer of `id` as `index` runs, where `index` (a symbol of `extent` values)
/// counts neighbours in memory that start at multiples of four. Defines `name`(names...) and returns 4, or 1. The
/// function returns a float4; of a float16 value, where `as_bits`, its elements' bits, two in each of a uint2.
[[nodiscard]] inline int define_load4(kernel_builder& b, std::string_view name, value_id id, const index_expr& offset,
                                      const index_expr& index, const index_expr& extent,
                                      std::span<const std::string> names, bool as_bits = false) {
  const dtype type = b.g().facts(id).type;
  if (b.is_member_value(id) || (type != dtype::float32 && type != dtype::float16) ||
      !(mod(extent, 4) == index_expr(0)) || !b.fits_offset(id, offset))
    return 1;
  const index_expr quarter = b.index("q_" + std::string(name), floordiv(extent, 4));
  const auto at = [&](std::int64_t j) {
    return substitute(offset, [&](const index_expr& symbol) { return symbol == index ? quarter * 4 + j : symbol; });
  };
  const index_expr first = at(0);
  if (!(mod(first, 4) == index_expr(0))) return 1;
  for (std::int64_t j = 1; j < 4; ++j)
    if (!(at(j) == first + j)) return 1;
  std::string text =
      std::string("static inline ") + (as_bits ? "uint2 " : "float4 ") + std::string(name) + "(DNNOPT_PARAMETERS";
  for (const std::string& n : names) text += ", const int " + n;
  const std::string at_first = b.pointer(id, false) + " + " + b.offset_source(id, offset);
  b.add_function(text + (as_bits                  ? ") { return *(__global const uint2*)(" + at_first + "); }\n"
                         : type == dtype::float32 ? ") { return *(__global const float4*)(" + at_first + "); }\n"
                                                  : ") { return dnnopt_load_half4(0, " + at_first + "); }\n"));
  return 4;
}

/// The same where only a run tells whether `extent` is a multiple of four: four at once where it is, else singly, those
/// that there are. Precondition: the frame asks for none of four where the first is beyond the extent.
[[nodiscard]] inline int define_load4_of_run(kernel_builder& b, std::string_view name, value_id id,
                                             const index_expr& offset, const index_expr& index,
                                             const index_expr& extent, std::span<const std::string> names,
                                             bool as_bits = false) {
  if (const int four = define_load4(b, name, id, offset, index, extent, names, as_bits); four == 4) return four;
  const dtype type = b.g().facts(id).type;
  if (b.is_member_value(id) || (type != dtype::float32 && type != dtype::float16) || extent.is_constant() ||
      !is_of_arguments(extent) || !b.fits_offset(id, offset))
    return 1;
  // Rows that begin where a multiple of the extent does begin at a multiple of four where the extent is one. There is
  // no row where a factor of it is 0.
  const auto some = [&](const index_expr& e) {
    return substitute(e, [&](const index_expr& symbol) {
      if (symbol.kind() != symbol_kind::argument || symbol.range().low > 0) return symbol;
      const std::string own = "some_" + b.expressions().symbol_name(*symbol.as_symbol());
      return b.expressions().symbol(own, {1, std::max<std::int64_t>(symbol.range().high, 1)}, symbol_kind::argument);
    });
  };
  const index_expr row = substitute(offset, [&](const index_expr& symbol) { return symbol == index ? 0 : symbol; });
  if (!(row + index == offset) || !(mod(some(row), some(extent)) == index_expr(0))) return 1;
  const std::string storage = type == dtype::float32 ? "float" : "half";
  const std::string along = b.expressions().symbol_name(*index.as_symbol());
  const auto single = [&](int j) {
    const std::string at = std::to_string(j);
    std::string read = type == dtype::float32 ? "at[" + at + "]"
                       : as_bits              ? "(uint)((__global const ushort*)at)[" + at + "]"
                                              : "vload_half(" + at + ", at)";
    return j == 0 ? read : "(" + along + " + " + at + " < extent ? " + read + " : 0)";
  };
  std::string text =
      std::string("static inline ") + (as_bits ? "uint2 " : "float4 ") + std::string(name) + "(DNNOPT_PARAMETERS";
  for (const std::string& n : names) text += ", const int " + n;
  text += ") {\n  __global const " + storage + "* const at = " + b.pointer(id, false) + " + " +
          b.offset_source(id, offset) + ";\n  const int extent = (int)" + index_source(extent) +
          ";\n  if (extent % 4 == 0) return " +
          (as_bits                  ? "*(__global const uint2*)at"
           : type == dtype::float32 ? "*(__global const float4*)at"
                                    : "dnnopt_load_half4(0, at)") +
          ";\n";
  text += as_bits
              ? "  return (uint2)(" + single(0) + " | " + single(1) + " << 16, " + single(2) + " | " + single(3) +
                    " << 16);\n}\n"
              : "  return (float4)(" + single(0) + ", " + single(1) + ", " + single(2) + ", " + single(3) + ");\n}\n";
  b.add_function(text);
  return 4;
}

/// Whether a product multiplies in halves: where that is wanted, and neither operand would lose by it. What other
/// operators compute on the way is in fp32 and has no bounds.
[[nodiscard]] inline bool multiplies_halves(const lowering_site& site, const kernel_builder& b) {
  const auto holds_halves = [&](std::size_t i) {
    return site.input(i).type == dtype::float16 && !b.is_member_value(site.anchor_node().inputs[i]);
  };
  return site.options.half_products && holds_halves(0) && holds_halves(1);
}

/// Whether tiles fetch an operand as the bits of its halves, and widen them where they are kept in local memory: one of
/// float16 that lies in rows or is a view of what does. What is on its way while another tile is used is then half as
/// long, and no conversion waits for it.
[[nodiscard]] inline bool fetches_bits(const lowering_site& site, kernel_builder& b, value_id id) {
  return b.are_stored_halves(id) && !multiplies_halves(site, b);
}

/// Where in the partial sums `column` of row "m" of matrix "z" lies in part "split". Rows begin at multiples of four,
/// so that four are stored at once whatever the extent.
[[nodiscard]] inline std::string place_of_partial(kernel_builder& b, const product_extents& e, std::int64_t splits,
                                                  const index_expr& column) {
  const index_expr split = b.index("split", splits);
  const index_expr z = b.index("z", e.batch);
  const index_expr row = b.index("m", e.rows);
  index_expr pitch = ceildiv(e.columns, 4) * 4;
  if (!pitch.is_constant()) pitch = b.argument(b.translate_back(pitch));
  const index_expr at = ((split * e.batch + z) * e.rows + row) * pitch + column;
  return index_source(at, b.width_below(at, e.batch * e.rows * pitch * splits));
}

/// Adds a scratch buffer for the sums of `splits` work-groups, and defines dnnopt_store_partial4(split, z, m, quarter,
/// results), which keeps four columns of them.
inline void define_partial_store(lowered_node& result, kernel_builder& b, const product_extents& e,
                                 std::int64_t splits) {
  const std::size_t number = result.scratch.size();
  result.scratch.push_back({b.translate_back(e.batch * e.rows * (ceildiv(e.columns, 4) * 4) * splits * 4), false});
  const std::string at = place_of_partial(b, e, splits, b.index("quarter", ceildiv(e.columns, 4)) * 4);
  b.add_function(
      "static inline void dnnopt_store_partial4(DNNOPT_PARAMETERS, const int split, const int z, const int m, const "
      "int quarter, const float4 results) {\n  *(__global float4*)(" +
      b.scratch(number, dtype::float32, true) + " + " + at + ") = results;\n}\n");
}

/// The kernel that adds the sums that define_partial_store kept in the last scratch buffer, and stores the results by
/// what `define_store` defines (finish_tiles).
template <class DefineStore>
void add_partials(lowered_node& result, const lowering_site& site, std::int64_t splits, DefineStore&& define_store,
                  store_direction along) {
  kernel_builder last(site.block, site.options.emitters);
  const product_extents own = define_store(last);
  last.define("DNNOPT_M", own.rows);
  last.define("DNNOPT_N", own.columns);
  last.define("DNNOPT_SPLITS", splits);
  last.define("DNNOPT_STORE_ALONG", static_cast<std::int64_t>(along));
  const std::vector<std::string> names{"split", "z", "m", "n"};
  last.define_function("dnnopt_load_partial", compute_type::real, names, [&] {
    const std::string at = place_of_partial(last, own, splits, last.index("n", own.columns));
    return last.let(compute_type::real,
                    last.scratch(result.scratch.size() - 1, dtype::float32, false) + "[" + at + "]");
  });
  kernel_plan sums = last.finish(kernels::prelude, matrix_partials_frame, "matrix_partials");
  const std::int64_t width =
      std::min<std::int64_t>(64, site.options.device == nullptr || site.options.device->max_work_group_size == 0
                                     ? 64
                                     : static_cast<std::int64_t>(site.options.device->max_work_group_size));
  const auto items = [&](const index_expr& extent, store_direction direction) {
    return along == direction ? ceildiv(extent, 4) : extent;
  };
  sums.global = {ceildiv(items(own.columns, store_direction::columns), width) * width,
                 items(own.rows, store_direction::rows), own.batch};
  sums.local = {static_cast<std::size_t>(width), 1, 1};
  sums.adds_partials = true;
  result.kernels.push_back(std::move(sums));
}

/// Ends a kernel of the tile frame: `define_store(builder)` defines dnnopt_store(z, m, n, value), or dnnopt_store4
/// along a direction of texels, in the symbols of that builder and returns the extents in them. Where the inner
/// elements are split, sums go to a scratch buffer, and a second kernel adds them and stores.
template <class DefineStore>
void finish_tiles(lowered_node& result, kernel_builder& b, const lowering_site& site, const tile_sizes& t,
                  const product_extents& e, std::string_view version, DefineStore&& define_store,
                  store_direction along = store_direction::single) {
  b.define("DNNOPT_M", e.rows);
  b.define("DNNOPT_N", e.columns);
  b.define("DNNOPT_K", e.inner);
  b.define("DNNOPT_GROUP_ROWS", t.group_rows);
  b.define("DNNOPT_GROUP_COLUMNS", t.group_columns);
  b.define("DNNOPT_ITEM_ROWS", t.item_rows);
  b.define("DNNOPT_ITEM_COLUMNS", t.item_columns);
  b.define("DNNOPT_TILE_INNER", t.inner);
  b.define("DNNOPT_TEAMS", t.teams);
  b.define("DNNOPT_SPLITS", t.splits);
  const bool halves = multiplies_halves(site, b);
  if (halves) b.define("DNNOPT_HALF_PRODUCTS", site.options.device == nullptr || site.options.device->fp16 ? 1 : 2);
  if (t.splits == 1) b.define("DNNOPT_STORE_ALONG", static_cast<std::int64_t>(along));
  if (t.splits > 1) {
    b.define("DNNOPT_SPLIT_INNER", t.split_inner);
    define_partial_store(result, b, e, t.splits);
  } else {
    (void)define_store(b);
  }
  kernel_plan plan = b.finish(kernels::prelude, matrix_tiles_frame, version);
  plan.global = {ceildiv(e.columns, t.columns()) * t.group_columns, ceildiv(e.rows, t.rows()) * t.group_rows,
                 e.batch * (t.splits * t.teams)};
  plan.local = {static_cast<std::size_t>(t.group_columns), static_cast<std::size_t>(t.group_rows),
                static_cast<std::size_t>(t.teams)};
  plan.tuning = shape_of_tiles(e);
  plan.half_products = halves;
  plan.flops = e.batch * e.rows * e.columns * e.inner * 2;
  result.kernels.push_back(std::move(plan));
  if (t.splits > 1) add_partials(result, site, t.splits, define_store, along);
}

}  // namespace dnnopt::codegen

#endif  // DNNOPT_BACKEND_CODEGEN_FRAMES_PRODUCTS_TILE_FRAME_HPP
