// Owns what matrix products and convolutions share on devices with wide vectors: block sizes, packed operands,
// launches.
#ifndef DNNOPT_BACKEND_CODEGEN_FRAMES_PRODUCTS_MATRIX_FRAME_HPP
#define DNNOPT_BACKEND_CODEGEN_FRAMES_PRODUCTS_MATRIX_FRAME_HPP

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <dnnopt/backend/codegen/elements/element_site.hpp>
#include <dnnopt/backend/codegen/frames/sources.hpp>
#include <dnnopt/backend/codegen/joined_parts.hpp>
#include <dnnopt/backend/codegen/lowering_row.hpp>

namespace dnnopt::codegen {

/// Tile and block sizes of matrix_panels.cl.
struct panel_sizes {
  std::int64_t rows = 8;
  std::int64_t vector = 8;
  std::int64_t vectors = 2;
  std::int64_t block_rows = 96;
  std::int64_t block_columns = 128;
  std::int64_t block_inner = 256;
  bool tuned = false;  ///< a tuner chose the sizes of blocks

  [[nodiscard]] std::int64_t columns() const noexcept { return vector * vectors; }
};

/// The extents of a product, where they are known; symbolic extents count as large.
struct product_extents {
  index_expr batch;
  index_expr rows;
  index_expr columns;
  index_expr inner;
};

[[nodiscard]] constexpr std::int64_t round_up(std::int64_t value, std::int64_t multiple) noexcept {
  return (value + multiple - 1) / multiple * multiple;
}

/// How many blocks cover an extent.
[[nodiscard]] constexpr std::int64_t blocks_of(std::int64_t extent, std::int64_t block) noexcept {
  return (extent + block - 1) / block;
}

/// The shape class of a product in panels.
[[nodiscard]] inline std::string shape_of_panels(const product_extents& e, bool a_packed, bool b_packed) {
  return shape_class("matrix_panels", std::array{e.batch, e.rows, e.columns, e.inner}) + (a_packed ? " a" : "") +
         (b_packed ? " b" : "");
}

/// Bytes of local memory that matrix_panels.cl takes for `inner` elements: operands that are not packed before,
/// and partial results where a block does not hold all of them.
[[nodiscard]] constexpr std::uint64_t panel_bytes(const panel_sizes& p, std::int64_t inner, bool a_packed,
                                                  bool b_packed) noexcept {
  const std::int64_t partial = p.block_inner < inner ? p.block_rows * p.block_columns : 0;
  return static_cast<std::uint64_t>(
      4 * (partial + (a_packed ? 0 : p.block_rows * p.block_inner) + (b_packed ? 0 : p.block_columns * p.block_inner)));
}

/// Floats of the vectors in panels: what the device says, or eight.
[[nodiscard]] inline std::int64_t vector_of_panels(const lowering_site& site) {
  const std::uint32_t width =
      site.options.device == nullptr
          ? 8
          : std::max(site.options.device->native_widths.float_width, site.options.device->preferred_widths.float_width);
  return width >= 16 ? 16 : width >= 8 ? 8 : 4;
}

/// Sizes for a device that prefers vectors. A register tile of 12 rows by two of the widest vectors fills the 32
/// registers of 512 bits, one of 6 rows the 16 of 256 bits; fewer rows are taken where the matrix has few, so that
/// little is padded. `reuse_columns`: the packed side is the columns (convolutions), so a block spans as many rows as
/// possible.
[[nodiscard]] inline panel_sizes choose_panels(const lowering_site& site, const product_extents& e, bool a_packed,
                                               bool b_packed) {
  panel_sizes p;
  p.vector = vector_of_panels(site);
  const std::int64_t most_rows = p.vector == 16 ? 12 : p.vector == 8 ? 6 : 4;
  const std::int64_t large = 1 << 20;
  const std::int64_t m = e.rows.as_constant().value_or(large);
  const std::int64_t n = e.columns.as_constant().value_or(large);
  const std::int64_t k = e.inner.as_constant().value_or(large);
  const std::int64_t z = e.batch.as_constant().value_or(1);
  p.rows = most_rows;
  if (m < large) {
    // The cost of a tile is about its rows plus what one pass over the columns costs by itself.
    double best = 0;
    for (std::int64_t rows = 1; rows <= most_rows; ++rows) {
      const double cost = static_cast<double>((m + rows - 1) / rows) * (static_cast<double>(rows) + 1.5);
      if (rows == 1 || cost <= best) {
        best = cost;
        p.rows = rows;
      }
    }
  }
  if (n <= p.vector) p.vectors = 1;
  if (p.rows <= 2 && n > 4 * p.vector) p.vectors = 4;
  p.block_inner = std::min<std::int64_t>(k, 256);
  if (k < large && k > 256) p.block_inner = round_up((k + (k + 255) / 256 - 1) / ((k + 255) / 256), 8);
  // A packed operand costs no packing, so a block need not be long in the other direction to make up for it.
  p.block_rows = round_up(std::min<std::int64_t>(m, a_packed ? 512 : 96), p.rows);
  p.block_columns = round_up(std::min<std::int64_t>(n, b_packed ? 512 : 128), p.columns());
  if (k <= 256 && a_packed && b_packed) p.block_inner = k;
  const auto bytes = [&] { return panel_bytes(p, k, a_packed, b_packed); };
  if (const auto* values = site.tuned(shape_of_panels(e, a_packed, b_packed)); values != nullptr) {
    const panel_sizes usual = p;
    p.rows = (*values)[0];
    p.vectors = (*values)[1];
    p.block_rows = round_up(std::min(m, (*values)[2]), p.rows);
    p.block_columns = round_up(std::min(n, (*values)[3]), p.columns());
    p.block_inner = std::min(k, (*values)[4]);
    p.tuned = bytes() <= site.local_memory();
    if (p.tuned) return p;
    p = usual;
  }
  // Enough work-groups for every core to have some, then blocks that fit in local memory.
  const std::int64_t units = site.compute_units();
  const auto groups = [&] {
    return z * ((m + p.block_rows - 1) / p.block_rows) * ((n + p.block_columns - 1) / p.block_columns);
  };
  const auto halve = [](std::int64_t& extent, std::int64_t unit) {
    if (extent <= unit) return false;
    extent = round_up(extent / 2, unit);
    return true;
  };
  while (groups() < 3 * units) {
    const bool by_columns = a_packed   ? p.block_columns > 2 * p.columns() || p.block_rows <= p.rows
                            : b_packed ? p.block_rows <= 2 * p.rows
                                       : p.block_columns > p.block_rows;
    if (!(by_columns ? halve(p.block_columns, p.columns()) || halve(p.block_rows, p.rows)
                     : halve(p.block_rows, p.rows) || halve(p.block_columns, p.columns())))
      break;
  }
  while (bytes() > site.local_memory()) {
    if (p.block_inner > 64)
      p.block_inner = std::max<std::int64_t>(64, p.block_inner / 2);
    else if (!(halve(p.block_columns, p.columns()) || halve(p.block_rows, p.rows)))
      break;
  }
  // As many blocks of one size: a core that has the large ones would be waited for.
  const auto even = [](std::int64_t extent, std::int64_t block, std::int64_t unit) {
    return round_up(blocks_of(extent, blocks_of(extent, block)), unit);
  };
  if (m > 0 && m < large) p.block_rows = even(m, p.block_rows, p.rows);
  if (n > 0 && n < large) p.block_columns = even(n, p.block_columns, p.columns());
  return p;
}

/// Register tiles of `images` results, `row_tiles` by `column_tiles` each, that `units` cores compute in blocks, one
/// for each work-item.
struct block_grid {
  std::int64_t images = 1;
  std::int64_t units = 1;
  std::int64_t row_tiles = 1;
  std::int64_t column_tiles = 1;

  /// Cycles until the last core is done with blocks of `rows` by `columns` tiles, where a tile takes `tile` and a block
  /// `beside`. Cores take equal numbers of blocks that follow one another, of which the first has all the large ones;
  /// they are not in step either, so a part of a block is waited for at the end.
  [[nodiscard]] double cycles(std::int64_t rows, std::int64_t columns, double tile, double beside) const {
    const std::int64_t across = blocks_of(column_tiles, columns);
    const std::int64_t in_image = blocks_of(row_tiles, rows) * across;
    const std::int64_t share = blocks_of(images * in_image, units);
    const std::int64_t rest = share % in_image;
    const std::int64_t rows_before = std::min(row_tiles, rest / across * rows);
    const std::int64_t tiles = share / in_image * row_tiles * column_tiles + rows_before * column_tiles +
                               std::min(rows, row_tiles - rows_before) * (rest % across) * columns;
    const double first = static_cast<double>(tiles) * tile + static_cast<double>(share) * beside;
    const auto groups = static_cast<double>(images * in_image);
    const double all = static_cast<double>(images * row_tiles * column_tiles) * tile + groups * beside;
    return std::max(first, all / static_cast<double>(units) + 0.4 * all / groups);
  }
};

/// Tiles of a block of the result, and the cycles until the last core is done with all blocks.
struct block_choice {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  double cycles = 0;
};

/// The division of a grid into blocks that is expected to end first. A tile takes `tile` cycles; `more(rows, columns)`
/// are the cycles that a block of so many tiles adds, or nothing where it does not fit. No block has fewer than
/// `least_columns` tiles beside each other. `rows` is 0 where no block fits. O(row_tiles * column_tiles) at worst, for
/// each number of blocks is tried once.
template <class More>
[[nodiscard]] block_choice choose_blocks(const block_grid& grid, std::int64_t least_columns, double tile, More&& more) {
  block_choice best;
  for (std::int64_t columns = grid.column_tiles; columns >= least_columns;
       columns = std::min(columns - 1, blocks_of(grid.column_tiles, blocks_of(grid.column_tiles, columns) + 1))) {
    for (std::int64_t rows = grid.row_tiles; rows >= 1;
         rows = std::min(rows - 1, blocks_of(grid.row_tiles, blocks_of(grid.row_tiles, rows) + 1))) {
      const std::optional<double> added = more(rows, columns);
      if (!added) continue;
      const double cycles = grid.cycles(rows, columns, tile, *added);
      if (best.rows == 0 || cycles < best.cycles) best = {rows, columns, cycles};
    }
  }
  return best;
}

/// What one work-item costs the device besides its work, in cycles.
inline constexpr double cycles_per_group = 2000;

/// Cycles of a register tile over `inner` elements: two fused multiply-adds or two loads in each, and its end. A load
/// of `b` counts twice where it lies across two lines of a cache.
[[nodiscard]] inline double cycles_of_tile(const panel_sizes& p, std::int64_t inner, bool b_across_lines) {
  const std::int64_t loads = p.rows + p.vectors * (b_across_lines ? 2 : 1);
  const double step = 0.5 + 0.5 * static_cast<double>(std::max(p.rows * p.vectors, loads));
  return step * static_cast<double>(inner) + 0.4 * static_cast<double>(p.rows * p.columns());
}

/// Defines dnnopt_row_b(z, k), where row k of the second operand begins in memory, and DNNOPT_B_STRIDE, with which the
/// frame reads the operand there. `offset` is that of an element in the symbols of index("k", ...) and index("n", ...).
/// Returns whether that can be: floats in a buffer that nothing in the block computes, neighbours in n side by side,
/// and rows at equal distances.
[[nodiscard]] inline bool define_straight_rows(kernel_builder& b, value_id id, const index_expr& offset,
                                               const index_expr& k, const index_expr& n) {
  const value_facts& facts = b.g().facts(id);
  if (b.is_member_value(id) || facts.type != dtype::float32 || facts.texels) return false;
  const auto at = [&](const index_expr& row, const index_expr& column) {
    return substitute(offset, [&](const index_expr& s) { return s == k ? row : s == n ? column : s; });
  };
  const index_expr begin = at(k, 0);
  const index_expr stride = at(1, 0) - at(0, 0);
  if (!(begin + n == offset) || !(at(0, 0) + k * stride == begin)) return false;
  b.add_function(
      "static inline __global const float* dnnopt_row_b(DNNOPT_PARAMETERS, const int z, const int k) { return " +
      b.pointer(id, false) + " + " + b.offset_source(id, begin) + "; }\n");
  b.define("DNNOPT_B_STRIDE", stride);
  b.define("DNNOPT_B_STRAIGHT", 1);
  return true;
}

/// The same for a value of dims (z, k, ...) that a view of the block joins of several along k: rows of each part lie
/// where the part does. Defines also dnnopt_part_end(k), the row behind the part that has row k, and DNNOPT_B_PARTS.
/// Returns whether that can be: parts as define_straight_rows() wants them, of constant dims; the rest does not matter.
[[nodiscard]] inline bool define_straight_parts(kernel_builder& b, value_id id, const index_expr& columns,
                                                const index_expr& z, const index_expr& k) {
  const node_id producer = b.g().value_at(id).producer;
  if (!b.is_member_value(id)) return false;
  const std::optional<joined_parts> parts = joined_parts_of(b.g(), producer);
  if (!parts || parts->axis != 1) return false;
  const std::vector<value_id>& inputs = b.g().node_at(producer).inputs;
  for (const value_id part : inputs) {
    const value_facts& facts = b.g().facts(part);
    if (b.is_member_value(part) || facts.type != dtype::float32 || facts.texels) return false;
    if (!fits_int(element_count(*facts.dims).range())) return false;
  }
  std::string row;
  std::string end;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const index_expr begin = ((z * b.dims(inputs[i])[1]) + (k - parts->begins[i])) * columns;
    const bool last = i + 1 == inputs.size();
    const std::string until = index_source(last ? b.dims(id)[1] : index_expr(parts->begins[i + 1]));
    const std::string test = last ? "" : "if (k < " + until + ") ";
    row += "  " + test + "return " + b.pointer(inputs[i], false) + " + " + index_source(begin) + ";\n";
    end += "  " + test + "return " + until + ";\n";
  }
  b.add_function("static inline __global const float* dnnopt_row_b(DNNOPT_PARAMETERS, const int z, const int k) {\n" +
                 row + "}\nstatic inline int dnnopt_part_end(const int k) {\n" + end + "}\n");
  b.define("DNNOPT_B_STRIDE", columns);
  b.define("DNNOPT_B_STRAIGHT", 1);
  b.define("DNNOPT_B_PARTS", 1);
  return true;
}

/// Sizes for a frame whose first operand is packed and whose second one is read where it is: no inner block is ended,
/// and blocks that no tuner chose are chosen by choose_blocks. Weights that a core's cache does not hold are read again
/// for each column of tiles.
inline void read_straight(panel_sizes& p, const lowering_site& site, const product_extents& e) {
  p.block_inner = e.inner.constant();
  if (p.tuned || !e.columns.is_constant()) return;
  const double tile = cycles_of_tile(p, p.block_inner, true);
  const block_choice blocks = choose_blocks(
      block_grid{e.batch.as_constant().value_or(1), site.compute_units(), blocks_of(e.rows.constant(), p.rows),
                 blocks_of(e.columns.constant(), p.columns())},
      1, tile, [&](std::int64_t rows, std::int64_t columns) -> std::optional<double> {
        const bool held = rows * p.rows * p.block_inner * 4 <= static_cast<std::int64_t>(site.local_memory()) / 2;
        return cycles_per_group + (held ? 0.0 : 0.2 * tile * static_cast<double>(rows * columns));
      });
  // None where the result is empty.
  if (blocks.rows == 0) return;
  p.block_rows = blocks.rows * p.rows;
  p.block_columns = blocks.columns * p.columns();
}

/// Widens blocks to all columns, for a frame that reduces whole rows of the result. Returns why they cannot be; empty
/// where they can.
[[nodiscard]] inline std::string cover_columns(panel_sizes& p, const lowering_site& site, const product_extents& e,
                                               bool a_packed, bool b_packed) {
  if (!e.columns.is_constant()) return "the extent of planes is not known before execution";
  p.block_columns = round_up(e.columns.constant(), p.columns());
  const std::int64_t k = e.inner.as_constant().value_or(std::int64_t{1} << 30);
  const auto bytes = [&] { return panel_bytes(p, k, a_packed, b_packed); };
  while (bytes() > site.local_memory()) {
    if (p.block_inner > 32)
      p.block_inner = std::max<std::int64_t>(32, p.block_inner / 2);
    else if (p.block_rows > p.rows)
      p.block_rows = round_up(p.block_rows / 2, p.rows);
    else
      return "planes take more than the local memory";
  }
  return {};
}

/// Widens blocks to all rows, for a frame that computes each column once, when it packs it; few columns where all cores
/// would not have some otherwise. Returns why they cannot be; empty where they can.
[[nodiscard]] inline std::string cover_rows(panel_sizes& p, const lowering_site& site, const product_extents& e,
                                            bool a_packed) {
  if (!e.rows.is_constant()) return "the number of rows is not known before execution";
  p.block_rows = round_up(e.rows.constant(), p.rows);
  const std::int64_t large = std::int64_t{1} << 30;
  const std::int64_t k = e.inner.as_constant().value_or(large);
  const std::int64_t columns = (e.batch * e.columns).as_constant().value_or(large);
  const std::int64_t units = site.compute_units();
  const auto narrow = [&] {
    if (p.block_columns <= p.columns()) return false;
    p.block_columns = round_up(p.block_columns / 2, p.columns());
    return true;
  };
  while (columns < 3 * units * p.block_columns && narrow()) {
  }
  while (panel_bytes(p, k, a_packed, false) > site.local_memory()) {
    if (narrow()) continue;
    if (p.block_inner <= 32) return "all rows take more than the local memory";
    p.block_inner = std::max<std::int64_t>(32, p.block_inner / 2);
  }
  return {};
}

/// Whether a value is a constant or computed from constants alone by members of the block.
[[nodiscard]] inline bool is_constant_in(const block_view& block, value_id id) {
  const value& v = block.g.value_at(id);
  if (v.facts.is_constant()) return true;
  if (v.producer == no_node || std::find(block.members.begin(), block.members.end(), v.producer) == block.members.end())
    return false;
  for (const value_id in : block.g.node_at(v.producer).inputs)
    if (in != no_value && !is_constant_in(block, in)) return false;
  return true;
}

/// Whether a value is worth a packed copy: a constant in the block that is not stored in fp16 to save memory, of which
/// a copy in fp32 would be the opposite.
[[nodiscard]] inline bool packs_constant(const block_view& block, value_id id) {
  if (!is_constant_in(block, id)) return false;
  const value& v = block.g.value_at(id);
  if (v.facts.is_constant()) return !v.facts.narrowed;
  for (const value_id in : block.g.node_at(v.producer).inputs)
    if (in != no_value && !packs_constant(block, in)) return false;
  return true;
}

/// A kernel that writes a constant operand once in the order of its panels: [batch][panel][inner][width], zero beyond
/// `extent`. `read(b, z, i, k)` emits its element; the extents must be numbers.
template <class Read>
[[nodiscard]] kernel_plan pack_kernel(const lowering_site& site, std::size_t scratch, std::int64_t batch,
                                      std::int64_t extent, std::int64_t inner, std::int64_t width, Read&& read) {
  kernel_builder b(site.block, site.options.emitters);
  const std::int64_t panels = (extent + width - 1) / width;
  const index_expr count = batch * panels * inner * width;
  const index_expr i = b.index("i", count);
  b.begin({i});
  const index_expr row = mod(i, width) + mod(floordiv(i, width * inner), panels) * width;
  const std::string element = b.variable(compute_type::real, "0");
  const element_site s(b, site.anchor, 0, {});
  s.when(kernel_builder::within(row, extent), [&] {
    const index_expr own = b.define_index("r", row, extent);
    b.line(element + " = " + read(b, floordiv(i, width * inner * panels), own, mod(floordiv(i, width), inner)) + ";");
  });
  b.line(b.scratch(scratch, dtype::float32, true) + "[i] = " + element + ";");
  const std::string statements = b.take();
  kernel_plan plan = b.finish_items(kernels::prelude, statements, i, count, "pack");
  return plan;
}

/// The panel frame's sizes as a choice's, and back.
inline void settle_panels(choice& made, const panel_sizes& p, const product_extents& e, bool a_packed, bool b_packed) {
  made.with("rows", p.rows).with("vector", p.vector).with("vectors", p.vectors);
  made.with("block_rows", p.block_rows).with("block_columns", p.block_columns).with("block_inner", p.block_inner);
  made.local_bytes = panel_bytes(p, e.inner.as_constant().value_or(std::int64_t{1} << 30), a_packed, b_packed);
}
[[nodiscard]] inline panel_sizes panels_of(const choice& chosen) {
  return {chosen["rows"],       chosen["vector"],        chosen["vectors"],
          chosen["block_rows"], chosen["block_columns"], chosen["block_inner"]};
}
/// What a constant of `extent` rows takes that is kept as `padded` ones, of `inner` floats in all matrices together.
inline void settle_kept(choice& made, std::int64_t inner, std::int64_t extent, std::int64_t padded) {
  made.kept_bytes = static_cast<std::uint64_t>(4 * inner * padded);
  made.weight_growth = static_cast<double>(padded) / static_cast<double>(std::max<std::int64_t>(extent, 1));
}

/// Adds the definitions of the sizes of panels; `inner` counts what a panel holds along the sum.
inline void define_panel_sizes(kernel_builder& b, const panel_sizes& p, const index_expr& inner) {
  b.define("DNNOPT_ROWS", p.rows);
  b.define("DNNOPT_VECTOR", p.vector);
  b.define("DNNOPT_VECTORS", p.vectors);
  b.define("DNNOPT_BLOCK_ROWS", p.block_rows);
  b.define("DNNOPT_BLOCK_COLUMNS", p.block_columns);
  b.define("DNNOPT_BLOCK_INNER", p.block_inner);
  b.define("DNNOPT_ONE_INNER_BLOCK", inner.range().high <= p.block_inner ? 1 : 0);
}
/// Adds the definitions of the panel frame.
inline void define_panels(kernel_builder& b, const panel_sizes& p, const product_extents& e) {
  b.define("DNNOPT_M", e.rows);
  b.define("DNNOPT_N", e.columns);
  b.define("DNNOPT_K", e.inner);
  define_panel_sizes(b, p, e.inner);
}
/// Why the float frames do not take an operand: its element type. Empty also where it is left out.
[[nodiscard]] inline std::string reject_input_type(const lowering_site& site, std::size_t i) {
  if (!site.has_input(i)) return {};
  const c_type_row* row = find_c_type(site.input(i).type);
  return row == nullptr || row->compute != compute_type::real
             ? "computes in float, input " + std::to_string(i) + " is " +
                   std::string(dnnopt::name_of(site.input(i).type))
             : std::string();
}

/// Why the float frames do not take a node: element types that they do not compute in.
[[nodiscard]] inline std::string reject_element_types(const lowering_site& site, std::size_t inputs) {
  for (std::size_t i = 0; i < inputs; ++i)
    if (std::string why = reject_input_type(site, i); !why.empty()) return why;
  const c_type_row* row = find_c_type(site.output().type);
  return row == nullptr || row->compute != compute_type::real
             ? "computes in float, the output is " + std::string(dnnopt::name_of(site.output().type))
             : std::string();
}

}  // namespace dnnopt::codegen

#endif  // DNNOPT_BACKEND_CODEGEN_FRAMES_PRODUCTS_MATRIX_FRAME_HPP
