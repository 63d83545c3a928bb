// Owns the sizes of the kernels of convolutions as products with image patches, as rows of thin groups, and over
// texels.
#ifndef DNNOPT_BACKEND_CODEGEN_FRAMES_CONVOLUTIONS_CHOOSE_HPP
#define DNNOPT_BACKEND_CODEGEN_FRAMES_CONVOLUTIONS_CHOOSE_HPP

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include <dnnopt/backend/codegen/choice.hpp>
#include <dnnopt/backend/codegen/frames/convolutions/convolution_shape.hpp>
#include <dnnopt/backend/codegen/frames/convolutions/staged/choose_points.hpp>
#include <dnnopt/backend/codegen/frames/products/tile_frame.hpp>
#include <dnnopt/backend/codegen/frames/rows/plane_totals.hpp>
#include <dnnopt/backend/codegen/frames/windows/staged_windows.hpp>
#include <dnnopt/backend/codegen/frames/windows/window_totals.hpp>
#include <dnnopt/backend/codegen/work_groups.hpp>

namespace dnnopt::codegen {

/// The product of a convolution without groups whose columns are the positions of all images.
[[nodiscard]] inline product_extents joined_images(const convolution_shape& c, const product_extents& e) {
  return {1, e.rows, c.batch * e.columns, e.inner};
}

/// Whether tiles span images: where the positions of one fill its last tiles badly, at the cost of a division for each
/// element that is read. Decided by the estimated times, which know that tiles are rounded up.
[[nodiscard]] inline bool joins_images(const lowering_site& site, const convolution_shape& c,
                                       const product_extents& e) {
  if (c.group != 1 || !c.batch.is_constant() || c.batch.constant() < 2 || !e.columns.is_constant() ||
      !fits_int((c.batch * e.columns * e.rows).range()))
    return false;
  return choose_tiles(site, joined_images(c, e)).cost < 0.97 * choose_tiles(site, e).cost;
}

/// Blocks by choose_blocks where patches are packed for each: an element, and more where a run of neighbours begins.
/// Leaves them as they are where extents are not known.
inline void share_patches(panel_sizes& p, const lowering_site& site, const product_extents& e,
                          const convolution_shape& c) {
  if (!e.columns.is_constant() || !e.inner.is_constant() || p.tuned) return;
  const auto inner = static_cast<double>(e.inner.constant());
  const auto run = static_cast<double>(std::max<std::int64_t>(c.axes[2].output.constant(), 1));
  const block_choice blocks = choose_blocks(
      block_grid{e.batch.as_constant().value_or(1), site.compute_units(), blocks_of(e.rows.constant(), p.rows),
                 blocks_of(e.columns.constant(), p.columns())},
      1, cycles_of_tile(p, e.inner.constant(), false),
      [&](std::int64_t rows, std::int64_t columns) -> std::optional<double> {
        const std::int64_t width = columns * p.columns();
        const std::int64_t partial = p.block_inner < e.inner.constant() ? rows * p.rows * width : 0;
        if (4 * (partial + width * p.block_inner) > static_cast<std::int64_t>(site.local_memory())) return std::nullopt;
        return inner * static_cast<double>(width) * (0.4 + 20.0 / run) +
               static_cast<double>(partial) * inner / static_cast<double>(p.block_inner) * 0.5 + cycles_per_group;
      });
  if (blocks.rows == 0) return;
  p.block_rows = blocks.rows * p.rows;
  p.block_columns = blocks.columns * p.columns();
}

/// The product of a convolution with image patches: weights [outputs, channels * window] by patches [channels * window,
/// positions], for each image and group. Of patches in texels an inner element is (window element, channel), channels
/// in whole texels.
[[nodiscard]] inline product_extents product_of_patches(const convolution_shape& c, bool texel_patches) {
  const index_expr slices = ceildiv(c.channels, texel_width);
  return {c.batch * c.group, c.outputs, c.positions(),
          (texel_patches ? slices * texel_width : c.channels) * c.window()};
}

/// Where element k of a column stands in the image of a pointwise convolution.
[[nodiscard]] inline index_expr offset_in_image(const convolution_shape& c, const product_extents& e,
                                                const index_expr& z, const index_expr& k, const index_expr& column) {
  return ((floordiv(z, c.group) * c.group + mod(z, c.group)) * c.channels + k) * e.columns + column;
}

/// Defines how the frame reads rows of a pointwise convolution's image where they are; `offset` is offset_in_image.
/// Returns whether it can.
[[nodiscard]] inline bool define_straight_image(kernel_builder& b, value_id image, const convolution_shape& c,
                                                const product_extents& e, const index_expr& offset) {
  const index_expr z = b.index("z", e.batch);
  const index_expr k = b.index("k", e.inner);
  return define_straight_rows(b, image, offset, k, b.index("n", e.columns)) ||
         (c.group == 1 && define_straight_parts(b, image, e.columns, z, k));
}

/// Blocks for processors of a convolution as a product with image patches, which are packed for each block, or read
/// where they are where the window is one element. A block holds whole planes or rows of windows where these are
/// reduced, and all output channels where windows of what it reads are.
[[nodiscard]] inline choice_or_reason choose_convolution_panels(const lowering_site& site) {
  if (!site.prefers_vectors()) return "the device does not prefer wide vectors";
  if (std::string why = reject_convolution(site); !why.empty()) return why;
  if (std::string why = reject_window_total(site); !why.empty()) return why;
  const node& n = site.anchor_node();
  kernel_builder b(site.block, site.options.emitters);
  const convolution_shape c = convolution_of(element_site(b, site.anchor, 0, {}));
  const product_extents e = product_of_patches(c, false);
  const std::optional<plane_total> total = plane_total_in(site.block);
  const std::optional<window_total> windows = window_total_in(site);
  if (windows && c.pointwise) return "positions of a pointwise convolution have no rows";
  const node_id staged = staged_windows_in(site);
  if (staged != no_node) {
    if (!c.pointwise || c.group != 1 || total || windows)
      return "windows are staged in panels, before a pointwise convolution alone";
    if (std::string why = reject_staged_windows(site, staged); !why.empty()) return why;
  }
  const bool packed = packs_constant(site.block, n.inputs[1]);
  panel_sizes p = choose_panels(site, e, packed, false);
  const index_expr z = b.index("z", e.batch);
  const index_expr inner = b.index("k", e.inner);
  const index_expr column = b.index("n", e.columns);
  // Rows are read where they are if they are as long as a panel is wide, which a run may have to tell.
  const index_expr longer = b.translate_back(e.columns) - p.columns();
  const bool may_be_straight = packed && c.pointwise && longer.range().high >= 0 &&
                               define_straight_image(b, n.inputs[0], c, e, offset_in_image(c, e, z, inner, column));
  const bool straight = may_be_straight && longer.range().low >= 0;
  panel_sizes long_rows = p;
  if (straight)
    read_straight(p, site, e);
  else if (packed && !total && !windows && staged == no_node)
    share_patches(p, site, e, c);
  choice made(packed ? "convolution_panels_packed" : "convolution_panels");
  std::uint64_t with_windows = 0;
  std::string why;
  if (total) why = cover_columns(p, site, e, packed, straight);
  if (windows && why.empty()) why = cover_windows(p, site, e, packed, *windows, with_windows);
  if (staged != no_node && why.empty()) why = cover_rows(p, site, e, packed);
  if (!why.empty()) return why;
  if (straight) made.taken.push_back({0, operand_form::straight});
  if (packed) settle_packed_weights(made, c, p.rows);
  settle_panels(made, p, e, packed, straight);
  if (windows) made.local_bytes = with_windows;
  made.tuning = shape_of_panels(e, packed, false);
  if (may_be_straight && !straight && !total && !windows && staged == no_node) {
    read_straight(long_rows, site, e);
    choice version("convolution_panels_packed");
    version.taken.push_back({0, operand_form::straight});
    settle_packed_weights(version, c, long_rows.rows);
    settle_panels(version, long_rows, e, true, true);
    version.guards.push_back({longer, "rows of the image are shorter than a panel"});
    made.narrower.push_back(std::move(version));
  }
  if (packed && !total && !windows && staged == no_node)
    add_version_of_few_points(made, site, c, p, b.translate_back(e.columns));
  return made;
}

/// Why a convolution has no tiles: thin groups have none to speak of, for an element per work-item reads its few inputs
/// itself. Empty where it may have some.
[[nodiscard]] inline std::string reject_convolution_tiles(const lowering_site& site) {
  if (std::string why = reject_convolution(site); !why.empty()) return why;
  const shape& w = *site.input(1).dims;
  const std::int64_t group = site.anchor_node().attributes.get_int("group", 1);
  return group > 1 && w[0].constant() / group < 4 ? "fewer than four output channels per group" : "";
}

/// A convolution as the product that tiles make of it.
struct tiled_convolution {
  product_extents e;
  bool joined = false;         ///< tiles span images
  bool texel_patches = false;  ///< patches are read four channels at a time
  bool texel_weights = false;  ///< weights are packed as texels
};

/// That of a site that reject_convolution_tiles() does not refuse, in the symbols of `b`.
[[nodiscard]] inline tiled_convolution tiled_convolution_of(kernel_builder& b, const lowering_site& site) {
  const node& n = site.anchor_node();
  const convolution_shape c = convolution_of(element_site(b, site.anchor, 0, {}));
  tiled_convolution t;
  t.texel_patches = reads_texels(site.block, n.inputs[0]);
  t.e = product_of_patches(c, t.texel_patches);
  t.joined = !t.texel_patches && joins_images(site, c, t.e);
  if (t.joined) t.e = joined_images(c, t.e);
  t.texel_weights =
      (site.packs_texels() || t.texel_patches) && is_constant_in(site.block, n.inputs[1]) && t.e.inner.is_constant();
  return t;
}

/// A convolution in these tiles. Size `joins_images`: tiles span images.
[[nodiscard]] inline choice convolution_in_tiles(const tiled_convolution& t, const tile_sizes& tiles) {
  choice made("convolution_tiles");
  settle_tiles(made, tiles);
  made.with("row_direction", static_cast<std::int64_t>(direction_of_rows(tiles, t.e)));
  made.with("joins_images", t.joined ? 1 : 0);
  if (t.texel_patches) made.taken.push_back({0, operand_form::texels});
  if (t.texel_weights) made.taken.push_back({1, operand_form::texels});
  return made;
}

/// Tiles of a convolution as a product with image patches, for devices that run work-items in step.
[[nodiscard]] inline choice_or_reason choose_convolution_tiles(const lowering_site& site) {
  if (std::string why = reject_convolution_tiles(site); !why.empty()) return why;
  if (plane_total_in(site.block) || window_total_node(site) != no_node) return "tiles do not reduce planes";
  if (staged_windows_in(site) != no_node) return "windows are staged in panels, before a pointwise convolution alone";
  kernel_builder b(site.block, site.options.emitters);
  const tiled_convolution t = tiled_convolution_of(b, site);
  if (t.texel_patches && !t.texel_weights) return "weights that are computed meet texels";
  const convolution_shape c = convolution_of(element_site(b, site.anchor, 0, {}));
  if (t.texel_patches && c.group > 1 && !(mod(c.channels, texel_width) == index_expr(0)))
    return "groups begin within a texel";
  return choice_of_tiles(
      site, t.e, [&](const index_expr& x) { return b.translate_back(x); },
      [&](const tile_sizes& tiles) { return convolution_in_tiles(t, tiles); });
}

/// Rows of thin groups: so little is summed per output channel that packing patches costs more than it saves. A
/// work-item takes whole planes where there are many, so that its weights serve many rows, and where planes are
/// reduced; size `rows`, which is left out where it takes whole planes whatever they are.
[[nodiscard]] inline choice_or_reason choose_convolution_rows(const lowering_site& site) {
  if (!site.prefers_vectors()) return "the device does not prefer wide vectors";
  if (std::string why = reject_convolution(site); !why.empty()) return why;
  const shape& w = *site.input(1).dims;
  if (w[1].constant() != 1 || site.anchor_node().attributes.get_int("group", 1) == 1)
    return "more than one input channel per group";
  kernel_builder b(site.block, site.options.emitters);
  const convolution_shape c = convolution_of(element_site(b, site.anchor, 0, {}));
  const std::int64_t width = c.axes[2].output.as_constant().value_or(64);
  const std::int64_t planes = (c.batch * c.group * c.outputs).as_constant().value_or(1);
  choice made("convolution_rows");
  made.with("run", width >= 48 ? 64 : width >= 24 ? 32 : 16);
  if (plane_total_in(site.block)) return made;
  const index_expr rows = c.axes[0].output * c.axes[1].output;
  const std::int64_t per_item = planes >= 4 * site.compute_units() ? rows.as_constant().value_or(64) : 8;
  made.with("rows", std::max<std::int64_t>(per_item, 1));
  return made;
}

/// Where the work-items of a depthwise convolution over texels stand: a position is row * columns + column.
struct texel_grid {
  index_expr columns;
  index_expr rows = 1;
  grid_size group{};
};

/// Columns and rows of a plane where a work-group was published for the device, else positions in one line.
[[nodiscard]] inline texel_grid texel_grid_of(const lowering_site& site, const convolution_shape& c) {
  const device_info* const device = site.options.device;
  const index_expr quarters = ceildiv(c.group, texel_width);
  const auto both = [&](std::int64_t a, std::int64_t b) { return a == b ? a : 0; };
  if (const index_expr& down = c.axes[1].output, &across = c.axes[2].output;
      device != nullptr && c.rank == 2 && down.is_constant() && across.is_constant() && quarters.is_constant()) {
    const auto group = find_work_group(
        *device, grid_work::depthwise_convolution, both(c.axes[1].kernel, c.axes[2].kernel),
        both(c.axes[1].stride, c.axes[2].stride), {across.constant(), down.constant(), quarters.constant()}, c.group);
    if (group) return {across, down, *group};
  }
  const std::size_t most = device == nullptr || device->max_work_group_size == 0 ? 64 : device->max_work_group_size;
  return {c.positions(), 1, {static_cast<std::int64_t>(std::min<std::size_t>(most, 64)), 1, 1}};
}

/// Depthwise convolutions over texels: one input and one output channel per group. Sizes are those of a work-group.
[[nodiscard]] inline choice_or_reason choose_convolution_texels(const lowering_site& site) {
  if (std::string why = reject_convolution(site); !why.empty()) return why;
  const node& n = site.anchor_node();
  if (!reads_texels(site.block, n.inputs[0])) return "what it reads are no texels";
  const shape& w = *site.input(1).dims;
  const std::int64_t group = n.attributes.get_int("group", 1);
  if (group == 1 || w[1].constant() != 1 || w[0].constant() != group) return "no depthwise convolution";
  if (!is_constant_in(site.block, n.inputs[1])) return "weights that are computed";
  kernel_builder b(site.block, site.options.emitters);
  const texel_grid grid = texel_grid_of(site, convolution_of(element_site(b, site.anchor, 0, {})));
  choice made("convolution_texels");
  made.with("group_columns", grid.group[0]).with("group_rows", grid.group[1]).with("group_slices", grid.group[2]);
  made.taken = {{0, operand_form::texels}, {1, operand_form::texels}};
  return made;
}

}  // namespace dnnopt::codegen

#endif  // DNNOPT_BACKEND_CODEGEN_FRAMES_CONVOLUTIONS_CHOOSE_HPP
