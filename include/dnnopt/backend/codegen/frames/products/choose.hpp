// Owns the sizes of the kernels of matrix products: blocks and how far apart they are, tiles, and what of two products
// stays in local memory.
#ifndef DNNOPT_BACKEND_CODEGEN_FRAMES_PRODUCTS_CHOOSE_HPP
#define DNNOPT_BACKEND_CODEGEN_FRAMES_PRODUCTS_CHOOSE_HPP

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>

#include <dnnopt/backend/codegen/choice.hpp>
#include <dnnopt/backend/codegen/frames/codes/coded_operand.hpp>
#include <dnnopt/backend/codegen/frames/products/chains.hpp>
#include <dnnopt/backend/codegen/frames/products/contraction.hpp>
#include <dnnopt/backend/codegen/frames/products/normalized_rows.hpp>
#include <dnnopt/backend/codegen/frames/products/tile_frame.hpp>

namespace dnnopt::codegen {

/// Distances from a block to the next, at most a block's own size. Where extents are symbols a run's blocks are even,
/// and smaller than they could be where cores would have none otherwise: along the packed operand last, for blocks side
/// by side along it each pack the other one again.
struct panel_steps {
  index_expr rows;
  index_expr columns;
};
[[nodiscard]] inline panel_steps steps_of_panels(const lowering_site& site, const panel_sizes& p,
                                                 const product_extents& e, bool a_packed) {
  // More matrices than one leave no core without a block of it.
  if (e.rows.is_constant() && e.columns.is_constant()) return {p.block_rows, p.block_columns};
  const auto some = [](const index_expr& count) { return max(count, 1); };
  const std::int64_t wanted = 3 * site.compute_units();
  index_expr down = some(ceildiv(e.rows, p.block_rows));
  index_expr across = some(ceildiv(e.columns, p.block_columns));
  const index_expr batch = some(e.batch);
  const auto divide = [&](index_expr& blocks, const index_expr& extent, std::int64_t least, const index_expr& others) {
    blocks = max(blocks, min(ceildiv(extent, least), ceildiv(wanted, batch * others)));
  };
  if (a_packed) {
    divide(across, e.columns, 2 * p.columns(), down);
    divide(down, e.rows, p.rows, across);
  } else {
    divide(down, e.rows, 2 * p.rows, across);
    divide(across, e.columns, p.columns(), down);
  }
  const auto even = [&](const index_expr& extent, const index_expr& blocks, std::int64_t unit) {
    return some(ceildiv(ceildiv(extent, unit), blocks)) * unit;
  };
  return {even(e.rows, down, p.rows), even(e.columns, across, p.columns())};
}

/// Defines the steps of blocks where they are no blocks' sizes.
inline void define_steps(kernel_builder& b, const panel_steps& steps, const panel_sizes& p) {
  if (!(steps.rows == index_expr(p.block_rows))) b.define("DNNOPT_STEP_ROWS", steps.rows);
  if (!(steps.columns == index_expr(p.block_columns))) b.define("DNNOPT_STEP_COLUMNS", steps.columns);
}
inline void launch_panels(kernel_plan& plan, const panel_steps& steps, const product_extents& e) {
  plan.global = {ceildiv(e.columns, steps.columns), ceildiv(e.rows, steps.rows), e.batch};
  plan.local = {1, 1, 1};
  plan.flops = e.batch * e.rows * e.columns * e.inner * 2;
}

/// Rows up to which a product that only a run tells to have so few takes smaller register tiles: with fewer than these
/// the largest multiply rows that are not there most of the time.
inline constexpr std::int64_t few_rows = 4;

/// The most elements of a result's matrix.
[[nodiscard]] inline std::string reject_large_result(const product_extents& e) {
  return !fits_int((e.rows * e.columns).range()) && e.rows.is_constant() && e.columns.is_constant()
             ? "the result has more elements than 32 bits count"
             : "";
}

/// Adds a version in smaller register tiles where `rows`, in the graph's symbols, may be as few as they have. The
/// second operand is in the same form for both: packed, or not (`b_packed`).
inline void add_version_of_few_rows(choice& made, const panel_sizes& sizes, const product_extents& e,
                                    const index_expr& rows, bool b_packed) {
  if (rows.is_constant() || sizes.rows <= few_rows || least_extent(rows) > few_rows) return;
  panel_sizes small = sizes;
  small.rows = small.block_rows = few_rows;
  choice version(made.version);
  settle_panels(version, small, e, false, b_packed);
  version.taken = made.taken;
  version.kept_bytes = made.kept_bytes;
  version.weight_growth = made.weight_growth;
  version.guards.push_back({few_rows - rows, "more rows than a small register tile has"});
  made.narrower.push_back(std::move(version));
}

/// Blocks of a product for processors. A constant operand is packed once; the second one where both are. Codes stay
/// codes, which a block dequantizes where it reads them.
[[nodiscard]] inline choice_or_reason choose_product_panels(const lowering_site& site) {
  if (!site.prefers_vectors()) return "the device does not prefer wide vectors";
  if (std::string why = reject_matrix_product(site); !why.empty()) return why;
  const node& n = site.anchor_node();
  kernel_builder b(site.block, site.options.emitters);
  const framed_product p = product_of(b, site, true);
  if (std::string why = reject_large_result(p.e); !why.empty()) return why;
  const auto packable = [&](std::size_t which, const index_expr& extent) {
    return packs_constant(site.block, p.operand(n, which)) && extent.is_constant() && p.e.inner.is_constant();
  };
  std::optional<coded_operand> codes = coded_operand_of(site, p, false);
  // What each element is rounded to, it is rounded to once, for that takes longer than to read it.
  if (codes && codes->rounds) codes.reset();
  const bool a_packed = packable(0, p.e.rows) && p.batch_of(0).is_constant() && !packable(1, p.e.columns);
  const bool b_packed = !codes && packable(1, p.e.columns) && p.batch_of(1).is_constant();
  if (a_packed && row_normalization_in(site.block) != no_node) return "constants are normalized before execution";
  const panel_sizes sizes = choose_panels(site, p.e, a_packed, b_packed);
  choice made(codes ? "matrix_panels_codes" : a_packed || b_packed ? "matrix_panels_packed" : "matrix_panels");
  settle_panels(made, sizes, p.e, a_packed, b_packed);
  made.tuning = shape_of_panels(p.e, a_packed, b_packed);
  if (a_packed || b_packed) {
    const std::size_t which = b_packed ? 1 : 0;
    const std::int64_t extent = (b_packed ? p.e.columns : p.e.rows).constant();
    const std::int64_t padded = round_up(extent, b_packed ? sizes.columns() : sizes.rows);
    made.taken.push_back({p.c.slots[which], operand_form::packed});
    settle_kept(made, p.batch_of(which).constant() * p.e.inner.constant(), extent, padded);
  }
  if (codes) {
    made.taken.push_back({p.c.slots[1], operand_form::codes});
    made.kept_bytes = static_cast<std::uint64_t>(
        bytes_of_words(p.e.columns.constant(), codes->words(p.e.inner.constant(), codes->per_word()), sizes.columns()));
  }
  if (b_packed || codes) add_version_of_few_rows(made, sizes, p.e, b.translate_back(p.e.rows), b_packed);
  return made;
}

/// A product in these tiles: where results are stored from, and which constant is packed as texels.
[[nodiscard]] inline choice product_in_tiles(const lowering_site& site, const framed_product& p,
                                             const tile_sizes& tiles) {
  const node& n = site.anchor_node();
  const auto in_texels = [&](std::size_t which, const index_expr& extent) {
    const value_id id = p.operand(n, which);
    return site.packs_texels() && is_constant_in(site.block, id) && extent.is_constant() && p.e.inner.is_constant() &&
           p.batch_of(which).is_constant() && is_floating(site.block.g.facts(id).type);
  };
  choice made("matrix_tiles");
  settle_tiles(made, tiles);
  made.with("row_direction", static_cast<std::int64_t>(direction_of_rows(tiles, p.e)));
  if (in_texels(0, p.e.rows))
    made.taken.push_back({p.c.slots[0], operand_form::texels});
  else if (in_texels(1, p.e.columns))
    made.taken.push_back({p.c.slots[1], operand_form::texels});
  return made;
}

/// Tiles of a product for devices that run work-items in step.
[[nodiscard]] inline choice_or_reason choose_product_tiles(const lowering_site& site) {
  if (std::string why = reject_matrix_product(site); !why.empty()) return why;
  kernel_builder b(site.block, site.options.emitters);
  const framed_product p = product_of(b, site, false);
  if (std::string why = reject_large_result(p.e); !why.empty()) return why;
  if (row_normalization_in(site.block) != no_node) return "tiles do not normalize rows";
  return choice_of_tiles(
      site, p.e, [&](const index_expr& e) { return b.translate_back(e); },
      [&](const tile_sizes& tiles) { return product_in_tiles(site, p, tiles); });
}

/// Two products of matrices whose result between is small: it stays in local memory. A work-group in step would leave
/// most of its work-items idle over a matrix that small. Where there are fewer matrices than cores, several work-items
/// share the columns of one: size `share`, in columns.
[[nodiscard]] inline choice_or_reason choose_product_chain(const lowering_site& site) {
  if (!site.prefers_vectors()) return "the device does not prefer wide vectors";
  kernel_builder b(site.block, site.options.emitters);
  product_chain chain;
  if (std::string why = read_product_chain(b, site, chain); !why.empty()) return why;
  const chain_extents e = chain.extents();
  panel_sizes p = choose_panels(site, {e.matrices, e.rows, e.columns, e.inner}, false, false);
  if (e.inner.constant() <= p.vector) p.vectors = 1;
  const std::int64_t pitch = round_up(e.inner.constant(), p.columns());
  std::int64_t block = std::min<std::int64_t>(e.length.as_constant().value_or(128), 128);
  const auto bytes = [&] {
    return static_cast<std::uint64_t>(4 * (round_up(e.rows.constant(), p.rows) * pitch + p.rows * block +
                                           pitch * block + e.inner.constant() * p.columns()));
  };
  while (bytes() > site.local_memory()) {
    if (block <= 16) return "the small result takes more than the local memory";
    block /= 2;
  }
  const std::int64_t units = site.compute_units();
  const std::int64_t each = std::max<std::int64_t>(e.matrices.as_constant().value_or(units), 1);
  choice made("product_chain");
  made.with("rows", p.rows).with("vector", p.vector).with("vectors", p.vectors);
  made.with("block_inner", std::max<std::int64_t>(block, 1));
  if (e.columns.is_constant() && units > each)
    if (const std::int64_t share = round_up(ceildiv(e.columns, units / each).constant(), p.columns()); share > 0)
      made.with("share", share);
  made.local_bytes = bytes();
  return made;
}

/// Two products of one vector by one work-group, whose result between stays in local memory.
[[nodiscard]] inline choice_or_reason choose_vector_chain(const lowering_site& site) {
  vector_chain chain;
  if (std::string why = read_vector_chain(site, chain); !why.empty()) return why;
  // Where many work-groups run at once, the one of a vector reads all weights alone: beyond some size that takes longer
  // than a second launch, whose products all work-groups share.
  constexpr std::int64_t most_weights = 128 * 1024;
  const std::int64_t weights = 4 * chain.first.results * (chain.first.length + chain.second.results);
  if (!site.prefers_vectors() && weights > most_weights)
    return "one work-group would read " + std::to_string(weights) + " bytes of weights alone";
  choice made("vector_chain");
  made.local_bytes = static_cast<std::uint64_t>(4 * (chain.first.length + chain.first.results)) + 4096;
  if (made.local_bytes > site.local_memory()) return "the vectors take more than the local memory";
  const std::size_t group = site.prefers_vectors() ? 1 : std::min<std::size_t>(1024, std::bit_floor(site.work_group()));
  made.with("group", static_cast<std::int64_t>(group));
  made.with("team", static_cast<std::int64_t>(std::min<std::size_t>(group, 32)));
  return made;
}

}  // namespace dnnopt::codegen

#endif  // DNNOPT_BACKEND_CODEGEN_FRAMES_PRODUCTS_CHOOSE_HPP
