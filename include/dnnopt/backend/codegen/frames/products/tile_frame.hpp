// Owns what matrix products and convolutions share on devices whose work-items share local memory: tiles, splits,
// loads.
#ifndef DNNOPT_BACKEND_CODEGEN_FRAMES_PRODUCTS_TILE_FRAME_HPP
#define DNNOPT_BACKEND_CODEGEN_FRAMES_PRODUCTS_TILE_FRAME_HPP

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dnnopt/backend/codegen/frames/products/parameters.hpp>
#include <dnnopt/backend/codegen/texel_operands.hpp>

namespace dnnopt::codegen {

/// Sizes of matrix_tiles.cl.
struct tile_sizes {
  std::int64_t group_rows = 16;
  std::int64_t group_columns = 16;
  std::int64_t item_rows = 4;
  std::int64_t item_columns = 4;
  std::int64_t inner = 16;
  /// Share of a compute unit's arithmetic that a full unit reaches with such tiles: what an inner element costs in
  /// reads of local memory beside its multiply-adds.
  double share = 0.5;
  double filling_items = 272;    ///< work-items on a compute unit from which on waiting is hidden
  std::int64_t teams = 1;        ///< teams that share the inner elements, each of the work-items above
  std::int64_t splits = 1;       ///< work-groups that share the inner elements of one tile
  std::int64_t split_inner = 0;  ///< inner elements of each
  double cost = 0;               ///< estimated time in multiply-adds of one compute unit
  double unit_items = 0;         ///< work-items that one compute unit gets, of all its work-groups

  /// Work-items of a work-group.
  [[nodiscard]] constexpr std::int64_t items() const noexcept { return group_rows * group_columns * teams; }
  [[nodiscard]] constexpr std::int64_t rows() const noexcept { return group_rows * item_rows; }
  [[nodiscard]] constexpr std::int64_t columns() const noexcept { return group_columns * item_columns; }
  [[nodiscard]] constexpr std::int64_t local_bytes() const noexcept {
    return teams * 2 * inner * (rows() + 4 + columns() + 4) * 4;
  }
};

/// The tiles that are chosen among: for fat matrices first, for thin ones last. Work-items with 64 sums have enough to
/// do between two loads that half as many of them hide waiting. Shares and filling items are fitted, with the constants
/// of choose_tiles(), to the times of 28 products and convolutions on an H200 (docs/measurements/kernels.md).
inline constexpr std::array tile_table{
    tile_sizes{16, 16, 8, 8, 8, 0.72, 144}, tile_sizes{8, 16, 8, 8, 8, 0.69, 144},
    tile_sizes{16, 8, 8, 8, 8, 0.71, 144},  tile_sizes{8, 8, 8, 8, 8, 0.57, 144},
    tile_sizes{16, 16, 4, 4, 16, 0.68},     tile_sizes{8, 8, 4, 4, 16, 0.52},
    tile_sizes{4, 16, 4, 4, 16, 0.49},      tile_sizes{16, 4, 4, 4, 16, 0.47},
    tile_sizes{4, 8, 4, 4, 16, 0.4},        tile_sizes{4, 4, 4, 4, 16, 0.3},
};
/// Work-items from which on a work-group suits devices that run them in step.
inline constexpr std::int64_t usual_items = 64;

/// The shape class of a product in tiles.
[[nodiscard]] inline std::string shape_of_tiles(const product_extents& e) {
  return shape_class("matrix_tiles", std::array{e.batch, e.rows, e.columns, e.inner});
}

/// Teams that a work-group may have: those that leave each of a work-item's four rows to one of them.
inline constexpr std::array<std::int64_t, 3> team_counts{1, 2, 4};

/// The tiles of least estimated time. A compute unit gets its share of the arithmetic once enough work-items are on it
/// to hide waiting. Teams bring more work-items, and cost one more exchange through local memory; splits of the inner
/// elements bring more work-groups, and cost another launch and the sums' traffic.
[[nodiscard]] inline tile_sizes choose_tiles(const lowering_site& site, const product_extents& e) {
  const device_info* device = site.options.device;
  const auto units = static_cast<double>(device == nullptr ? 16 : std::max<std::uint32_t>(device->compute_units, 1));
  const auto most = static_cast<std::int64_t>(
      device == nullptr || device->max_work_group_size == 0 ? 256 : device->max_work_group_size);
  const std::int64_t least =
      std::min<std::int64_t>(usual_items, static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(most))));
  const auto local = static_cast<std::int64_t>(
      device == nullptr || device->local_memory_bytes == 0 ? 16384 : device->local_memory_bytes);
  const double m = static_cast<double>(e.rows.as_constant().value_or(1024));
  const double n = static_cast<double>(e.columns.as_constant().value_or(1024));
  const double k = static_cast<double>(e.inner.as_constant().value_or(1024));
  const double z = static_cast<double>(e.batch.as_constant().value_or(1));
  const bool fixed = e.rows.is_constant() && e.columns.is_constant() && e.inner.is_constant() && e.batch.is_constant();
  const auto shared = [&](tile_sizes t, std::int64_t teams, std::int64_t splits) {
    t.teams = teams;
    t.splits = splits;
    t.split_inner = round_up(static_cast<std::int64_t>(std::ceil(k / static_cast<double>(splits))), t.inner);
    return t;
  };
  const auto fits = [&](const tile_sizes& t) {
    if (t.items() > most || t.local_bytes() > local) return false;
    if (t.group_rows * t.group_columns < least) return false;
    // Kernels with the registers of these allow no more than 256 work-items on some devices.
    return t.teams == 1 || (t.item_rows == 4 && t.item_columns == 4 && t.items() <= 256);
  };
  // In multiply-adds of one compute unit: what a launch takes, what waiting for memory costs at the start of a tile,
  // what an element of a partial sum costs that is written and read again, and what teams need to add their sums.
  constexpr double launch = 830000;
  constexpr double start = 640000;
  constexpr double partial = 0.24;
  constexpr double meeting = 95000;
  const auto estimate = [&](tile_sizes& t) {
    const double tiles =
        z * std::ceil(m / static_cast<double>(t.rows())) * std::ceil(n / static_cast<double>(t.columns()));
    const auto splits = static_cast<double>(t.splits);
    const double per_unit = std::ceil(tiles * splits / units);
    t.unit_items = per_unit * static_cast<double>(t.items());
    const double filled = std::min(1.0, t.unit_items / t.filling_items);
    t.cost = per_unit * static_cast<double>(t.rows() * t.columns()) * static_cast<double>(t.split_inner) /
                 (t.share * filled) +
             start;
    if (t.teams > 1) t.cost += meeting;
    if (t.splits > 1) t.cost += launch + partial * z * m * n * splits;
  };
  if (const auto* values = site.tuned(shape_of_tiles(e)); values != nullptr) {
    tile_sizes chosen = shared(tile_table.at(static_cast<std::size_t>((*values)[0])), (*values)[2], (*values)[1]);
    const bool splittable = chosen.splits == 1 || (fixed && k >= static_cast<double>(chosen.splits * chosen.inner));
    if (splittable && fits(chosen)) {
      estimate(chosen);
      return chosen;
    }
  }
  tile_sizes best = tile_table.back();
  for (const tile_sizes& row : tile_table) {
    for (const std::int64_t teams : team_counts) {
      for (const std::int64_t splits : {1, 2, 3, 4, 6, 8, 12, 16}) {
        tile_sizes tried = shared(row, teams, splits);
        const double shortest = static_cast<double>(splits * std::max<std::int64_t>(64, teams * 2 * row.inner));
        if (!fits(tried) || (teams * splits > 1 && (!fixed || k < shortest))) break;
        estimate(tried);
        if (best.cost == 0 || tried.cost < best.cost) best = tried;
      }
    }
  }
  return best;
}

/// The direction in which a frame of tiles stores four results at once where no output holds texels: columns, as the
/// tile holds them. Singly are stored sums of splits, which have work-items of their own, and long sums of work-items
/// with many results where a unit has more of them than can be there at once: stores have no part in such a kernel's
/// time, and with vectors, whose sums must lie in registers side by side, it took 1.1 to 1.5 times as long
/// (docs/measurements/kernels.md, 2048 and 4096).
[[nodiscard]] inline store_direction direction_of_rows(const tile_sizes& t, const product_extents& e) {
  constexpr std::int64_t long_sum = 1024;
  constexpr double crowd = 384;
  const bool crowded = t.item_rows > 4 && t.unit_items > crowd && e.inner.as_constant().value_or(0) >= long_sum;
  return t.splits == 1 && !crowded && mod(e.columns, 4) == index_expr(0) ? store_direction::columns
                                                                         : store_direction::single;
}

/// The tile frame's sizes as a choice's, and back. `split_inner` is that of splits alone.
inline void settle_tiles(choice& made, const tile_sizes& t) {
  made.with("group_rows", t.group_rows).with("group_columns", t.group_columns);
  made.with("item_rows", t.item_rows).with("item_columns", t.item_columns).with("tile_inner", t.inner);
  made.with("teams", t.teams).with("splits", t.splits).with("split_inner", t.split_inner);
  made.local_bytes = static_cast<std::uint64_t>(t.local_bytes());
}
[[nodiscard]] inline tile_sizes tiles_of(const choice& chosen) {
  tile_sizes t{chosen["group_rows"], chosen["group_columns"], chosen["item_rows"], chosen["item_columns"],
               chosen["tile_inner"]};
  t.teams = chosen["teams"];
  t.splits = chosen["splits"];
  t.split_inner = chosen["split_inner"];
  return t;
}

/// The choice that `made_of(tiles)` gives for a product. Of one whose extents are symbols the choice itself is for
/// large ones, whose sums are never split, for parts of them would take memory without a bound; versions are for
/// results that fill all of the device once, a quarter of it, and so on to a 256th, and for extents of 1 (a batch of
/// one image). Each but the last serves up to twice the extents that it was chosen for, as which the symbolic ones
/// count together. `outer(e)` gives an expression in the graph's symbols.
template <class Outer, class Made>
[[nodiscard]] choice choice_of_tiles(const lowering_site& site, const product_extents& e, Outer&& outer,
                                     Made&& made_of) {
  choice made = made_of(choose_tiles(site, e));
  index_expr symbolic = 1;
  std::int64_t known = 1;  // the elements of a result for each of what is symbolic
  for (const index_expr& extent : {e.batch, e.rows, e.columns}) {
    if (const auto number = extent.as_constant())
      known *= std::max<std::int64_t>(*number, 1);
    else
      symbolic = symbolic * extent;
  }
  if (!symbolic.is_constant() && e.inner.is_constant()) {
    const auto tiles_at = [&](std::int64_t size) {
      product_extents assumed = e;
      for (index_expr* const extent : {&assumed.rows, &assumed.columns, &assumed.batch})
        if (!extent->is_constant()) *extent = std::exchange(size, 1);
      return choose_tiles(site, assumed);
    };
    const index_expr count = outer(symbolic);
    const std::int64_t least = least_extent(count);
    constexpr std::int64_t tile = 64 * 64;  // results of a work-group that suits fat matrices
    const std::int64_t whole = std::max<std::int64_t>(site.compute_units() * tile / known, 1);
    std::int64_t before = 0;
    for (const std::int64_t part :
         {whole, std::int64_t{256}, std::int64_t{64}, std::int64_t{16}, std::int64_t{4}, std::int64_t{1}}) {
      const std::int64_t size = std::max<std::int64_t>(whole / part, 1);
      const std::int64_t serves = size == 1 ? 1 : 2 * size;
      if (serves < least || serves <= before || before >= count.range().high) continue;
      choice version = made_of(tiles_at(size));
      if (!made.narrower.empty() && made.narrower.back().sizes == version.sizes) made.narrower.pop_back();
      version.guards.push_back({serves - count, "more than " + std::to_string(serves) + " in all"});
      made.narrower.push_back(std::move(version));
      before = serves;
    }
    if (!made.narrower.empty() && made.narrower.back().sizes == made.sizes) made.narrower.pop_back();
  }
  made.tuning = shape_of_tiles(e);
  return made;
}

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

/// The row of partial sums that index "m" of matrix "z" has in part "split". Rows begin at multiples of four, so that
/// four are stored at once whatever the extent.
[[nodiscard]] inline index_expr partial_row(kernel_builder& b, const product_extents& e, std::int64_t splits) {
  const index_expr split = b.index("split", splits);
  const index_expr z = b.index("z", e.batch);
  const index_expr row = b.index("m", e.rows);
  return ((split * e.batch + z) * e.rows + row) * (ceildiv(e.columns, 4) * 4);
}

/// Adds a scratch buffer for the sums of `splits` work-groups, and defines dnnopt_store_partial4(split, z, m, quarter,
/// results), which keeps four columns of them.
inline void define_partial_store(lowered_node& result, kernel_builder& b, const product_extents& e,
                                 std::int64_t splits) {
  const std::size_t number = result.scratch.size();
  result.scratch.push_back({b.translate_back(e.batch * e.rows * (ceildiv(e.columns, 4) * 4) * splits * 4), false});
  const index_expr at = partial_row(b, e, splits) + b.index("quarter", ceildiv(e.columns, 4)) * 4;
  b.add_function(
      "static inline void dnnopt_store_partial4(DNNOPT_PARAMETERS, const int split, const int z, const int m, const "
      "int quarter, const float4 results) {\n  *(__global float4*)(" +
      b.scratch(number, dtype::float32, true) + " + " + index_source(at) + ") = results;\n}\n");
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
    const index_expr at = partial_row(last, own, splits) + last.index("n", own.columns);
    return last.let(compute_type::real,
                    last.scratch(result.scratch.size() - 1, dtype::float32, false) + "[" + index_source(at) + "]");
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
