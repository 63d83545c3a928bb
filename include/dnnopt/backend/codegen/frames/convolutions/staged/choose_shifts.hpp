// Owns the sizes of the kernel that stages the image once and reads it shifted: register tile, blocks, way to stage.
#ifndef DNNOPT_BACKEND_CODEGEN_FRAMES_CONVOLUTIONS_STAGED_CHOOSE_SHIFTS_HPP
#define DNNOPT_BACKEND_CODEGEN_FRAMES_CONVOLUTIONS_STAGED_CHOOSE_SHIFTS_HPP

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <dnnopt/backend/codegen/frames/convolutions/choose.hpp>
#include <dnnopt/backend/codegen/frames/convolutions/staged/winograd_shape.hpp>

namespace dnnopt::codegen {

/// Blocks of one way to stage and one register tile: what they hold of the local memory, and what they cost.
struct shift_blocks {
  shifted_image image;
  panel_sizes tile;
  position_unit unit;
  std::int64_t channels = 1;
  std::int64_t inner = 1;           ///< channels * window
  std::int64_t windows_in_row = 0;  ///< that are reduced, in a row of windows
  std::int64_t local = 0;           ///< bytes that a block may take

  [[nodiscard]] std::int64_t columns(std::int64_t units) const {
    return round_up(units * unit.positions, tile.columns());
  }
  [[nodiscard]] std::int64_t staged(std::int64_t units) const {
    return staged_elements(image, tile, units * unit.positions);
  }
  /// As many channels at a time as the local memory holds, with the partial results if there are more; 0: none.
  [[nodiscard]] std::int64_t channels_at(std::int64_t row_tiles, std::int64_t units) const {
    const std::int64_t rows = row_tiles * tile.rows;
    std::int64_t block = channels;
    const auto bytes = [&] {
      const std::int64_t partial = block < channels ? rows * columns(units) : 0;
      return 4 * (block * staged(units) + rows * units * windows_in_row + partial);
    };
    while (block > 1 && bytes() > local) block = blocks_of(block, 2);
    return bytes() > local ? 0 : block;
  }
  /// Cycles of a row of register tiles in one unit.
  [[nodiscard]] double cycles_of_unit() const {
    return cycles_of_tile(tile, inner, true) * static_cast<double>(unit.positions) /
           static_cast<double>(tile.columns());
  }
  /// Cycles that a block takes besides: staging, partial results, and what of its last panel lies beyond it. Nothing
  /// where it does not fit.
  [[nodiscard]] std::optional<double> cycles_beside(std::int64_t row_tiles, std::int64_t units) const {
    const std::int64_t block = channels_at(row_tiles, units);
    if (block == 0) return std::nullopt;
    const std::int64_t passes = blocks_of(channels, block) - 1;
    const std::int64_t beyond = columns(units) - units * unit.positions;
    return static_cast<double>(channels * staged(units)) *
               ((image.strided ? 0.6 : 0.25) + 12.0 / static_cast<double>(image.pitch)) +
           0.5 * static_cast<double>(passes * row_tiles * tile.rows * columns(units)) +
           cycles_of_tile(tile, inner, true) * static_cast<double>(row_tiles * beyond) /
               static_cast<double>(tile.columns()) +
           cycles_per_group;
  }
};

/// Tile and block sizes of the frame.
struct shift_sizes {
  panel_sizes panels;  ///< without block_inner
  shifted_image image;
  std::int64_t block_channels = 0;  ///< 0: no block fits in the local memory
  std::int64_t span = 0;            ///< positions of a block that are stored or taken
  std::int64_t blocks = 0;          ///< along the positions
  double cycles = 0;                ///< until the last core is done
};

/// What a tuner chose, else the register tile as for products and blocks by choose_blocks; the image staged in the way
/// that is expected to end first. A block holds whole planes where these are reduced, and whole rows of windows where
/// those are.
[[nodiscard]] inline shift_sizes choose_shifts(const lowering_site& site, const convolution_shape& c, bool whole_planes,
                                               const std::optional<window_total>& windows) {
  const shifted_image plain = shifted_image_of(c, false, 0, 1);
  const product_extents e{c.batch * c.group, c.outputs, index_expr(plain.positions), c.channels * c.window()};
  const panel_sizes usual = choose_panels(site, e, true, false);
  shift_sizes best;
  // Blocks of a tuner's sizes, or of those that choose_blocks finds.
  const auto consider = [&](const panel_sizes& tile, const shifted_image& image,
                            const std::vector<std::int64_t>* values) {
    const shift_blocks b{image,
                         tile,
                         position_unit_of(image, tile, windows),
                         c.channels.constant(),
                         e.inner.constant(),
                         windows ? windows->run_width / windows->columns : 0,
                         static_cast<std::int64_t>(site.local_memory()) / 2};
    const std::int64_t row_tiles = blocks_of(c.outputs.constant(), tile.rows);
    const std::int64_t least = whole_planes ? b.unit.count : 1;
    const block_grid grid{e.batch.as_constant().value_or(1), site.compute_units(), row_tiles, b.unit.count};
    block_choice chosen;
    if (values != nullptr) {
      chosen.rows = std::min(row_tiles, blocks_of((*values)[2], tile.rows));
      chosen.columns = std::clamp(blocks_of((*values)[3], b.unit.positions), least, b.unit.count);
      const std::optional<double> beside = b.cycles_beside(chosen.rows, chosen.columns);
      if (!beside) return;
      chosen.cycles = grid.cycles(chosen.rows, chosen.columns, b.cycles_of_unit(), *beside);
    } else {
      chosen = choose_blocks(grid, least, b.cycles_of_unit(),
                             [&](std::int64_t rows, std::int64_t units) { return b.cycles_beside(rows, units); });
      if (chosen.rows == 0) return;
    }
    if (best.block_channels > 0 && chosen.cycles >= best.cycles) return;
    best = {tile,
            image,
            b.channels_at(chosen.rows, chosen.columns),
            chosen.columns * b.unit.positions,
            blocks_of(b.unit.count, chosen.columns),
            chosen.cycles};
    best.panels.block_rows = chosen.rows * tile.rows;
    best.panels.block_columns = b.columns(chosen.columns);
  };
  // Blocks that were chosen for Winograd's tiles are not for shifts.
  const window_tuning tuning = window_tuning_of(site, c);
  if (const std::vector<std::int64_t>& values = tuning.blocks; tuning.tile == 0 && !values.empty()) {
    panel_sizes tile = usual;
    tile.rows = values[0];
    tile.vectors = values[1];
    consider(tile, shifted_images(c, tile.vector)[static_cast<std::size_t>(values[4])], &values);
    if (best.block_channels > 0) return best;
  }
  for (const shifted_image& image : shifted_images(c, usual.vector)) consider(usual, image, nullptr);
  return best;
}

/// Blocks over an image that is staged once and read shifted. Sizes `blocks`: along the positions.
[[nodiscard]] inline choice_or_reason choose_convolution_shifts(const lowering_site& site) {
  if (!site.prefers_vectors()) return "the device does not prefer wide vectors";
  if (std::string why = reject_convolution(site); !why.empty()) return why;
  if (std::string why = reject_window_total(site); !why.empty()) return why;
  if (!packs_constant(site.block, site.anchor_node().inputs[1])) return "weights are computed or stored in fp16";
  kernel_builder b(site.block, site.options.emitters);
  const convolution_shape c = convolution_of(element_site(b, site.anchor, 0, {}));
  if (c.pointwise) return "a window of one element needs no shifts";
  const std::optional<std::int64_t> useful = useful_positions(c);
  if (!useful) return "extents that are not known before execution";
  // Positions between rows are wasted, and so is what is staged beyond a block: patches are better then.
  if (shifted_image_of(c, false, 0, 1).positions > 2 * *useful)
    return "padded rows are more than twice as long as rows";
  const shift_sizes sizes = choose_shifts(site, c, plane_total_in(site.block).has_value(), window_total_in(site));
  if (sizes.block_channels == 0) return "what a block reads of the image takes more than the local memory";
  const panel_sizes& p = sizes.panels;
  if (sizes.image.reach > 4 * p.block_columns) return "windows reach far beyond a block of positions";
  choice made("convolution_shifts");
  made.with("rows", p.rows).with("vector", p.vector).with("vectors", p.vectors);
  made.with("block_rows", p.block_rows).with("block_columns", p.block_columns);
  made.with("block_channels", sizes.block_channels).with("span", sizes.span);
  made.with("row_vectors", sizes.image.row_vectors).with("columns_apart", sizes.image.columns_apart ? 1 : 0);
  made.with("blocks", sizes.blocks);
  made.tuning = window_tuning_of(site, c).shape;
  settle_packed_weights(made, c, p.rows);
  return made;
}

}  // namespace dnnopt::codegen

#endif  // DNNOPT_BACKEND_CODEGEN_FRAMES_CONVOLUTIONS_STAGED_CHOOSE_SHIFTS_HPP
