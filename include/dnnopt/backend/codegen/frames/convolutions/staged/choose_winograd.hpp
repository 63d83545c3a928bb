// Owns the sizes of the kernel of Winograd's minimal filtering, and whether it is expected to end before shifts.
#ifndef DNNOPT_BACKEND_CODEGEN_FRAMES_CONVOLUTIONS_STAGED_CHOOSE_WINOGRAD_HPP
#define DNNOPT_BACKEND_CODEGEN_FRAMES_CONVOLUTIONS_STAGED_CHOOSE_WINOGRAD_HPP

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <dnnopt/backend/codegen/frames/convolutions/staged/choose_shifts.hpp>
#include <dnnopt/backend/codegen/frames/convolutions/staged/winograd_shape.hpp>

namespace dnnopt::codegen {

/// Tiles and blocks of convolution_winograd.cl.
struct winograd_sizes {
  std::int64_t tile = 0;  ///< 0: no block fits in the local memory
  std::int64_t vector = 8;
  std::int64_t rows = 1;     ///< tiles of a register tile
  std::int64_t vectors = 1;  ///< of output channels, of a register tile
  std::int64_t block_rows = 1;
  std::int64_t tiles_high = 1;
  std::int64_t tiles_wide = 1;
  std::int64_t block_channels = 1;
  double cycles = 0;

  [[nodiscard]] std::int64_t columns() const noexcept { return vector * vectors; }
  [[nodiscard]] std::int64_t tiles() const noexcept { return tiles_high * tiles_wide; }
  /// Elements of a row of the image that a block reads, and its rows.
  [[nodiscard]] std::int64_t image_columns() const noexcept { return tiles_wide * tile + 2; }
  [[nodiscard]] std::int64_t image_rows() const noexcept { return tiles_high * tile + 2; }
  /// Rows of the image that are read before they are transposed: what is read lies in a core's first cache.
  [[nodiscard]] std::int64_t stage_rows() const noexcept {
    return std::clamp<std::int64_t>(320 / image_columns(), 1, image_rows());
  }
  /// Bytes of local memory.
  [[nodiscard]] std::int64_t bytes(std::int64_t channels) const noexcept {
    const auto odd = [&](std::int64_t n) { return (blocks_of(n, vector) | 1) * vector; };
    const std::int64_t padded = round_up(tiles(), rows) * winograd_points(tile);
    return 4 * (padded * odd(block_channels) + padded * (block_channels < channels ? block_rows : columns()) +
                (image_rows() * image_columns() + vector) * vector + vector * odd(stage_rows() * image_columns()));
  }
  /// As many channels at a time as the local memory holds. Returns whether any are.
  [[nodiscard]] bool fit(std::int64_t channels, std::int64_t local) {
    block_channels = channels;
    while (bytes(channels) > local) {
      const std::int64_t fewer = round_up(blocks_of(channels, blocks_of(channels, block_channels) + 1), vector);
      if (fewer >= block_channels) return false;
      block_channels = fewer;
    }
    return true;
  }
  /// Cycles of the products of a panel of output channels with some tiles, whole register tiles or a share of one.
  [[nodiscard]] double cycles_of_products(double register_tiles, std::int64_t channels) const {
    const std::int64_t passes = blocks_of(channels, block_channels);
    const double step = 0.5 + 0.5 * static_cast<double>(std::max(rows * vectors, rows + vectors));
    return register_tiles * static_cast<double>(winograd_points(tile)) *
           (step * static_cast<double>(channels) + static_cast<double>(passes * rows * vectors));
  }
  /// Cycles of a block's transforms and of what is read and written.
  [[nodiscard]] double cycles_of_transforms(std::int64_t channels) const {
    const auto in = static_cast<double>(blocks_of(channels, vector));
    const auto out = static_cast<double>(block_rows / vector);
    const auto count = static_cast<double>(tiles());
    const double points = static_cast<double>(winograd_points(tile));
    return in * (count * points * 3.0 + static_cast<double>(image_rows() * vector) * 12.0 +
                 static_cast<double>(image_rows() * image_columns()) * 5.0) +
           out * count * (points * 3.0 + static_cast<double>(tile * tile * vector) * 0.4);
  }
};

/// Cycles in which a core reads a byte of weights that lie in memory, as they do at the start of each inference of a
/// model that no cache holds, and of weights that it reads again while a cache holds them.
inline constexpr double cycles_of_far_byte = 0.06;
inline constexpr double cycles_of_cached_byte = 0.005;

/// Cycles in which all cores together read weights once: `products` floats for each pair of channels.
[[nodiscard]] inline double cycles_of_weights(const lowering_site& site, const convolution_shape& c,
                                              std::int64_t products) {
  return cycles_of_far_byte * 4.0 * static_cast<double>(products * c.channels.constant() * c.outputs.constant()) /
         static_cast<double>(site.compute_units());
}

/// The sizes with tiles of `tile` that are expected to end first; a tuner's blocks where there are any. `tile` is 0
/// where nothing fits.
[[nodiscard]] inline winograd_sizes choose_winograd(const lowering_site& site, const convolution_shape& c,
                                                    std::int64_t tile, const std::vector<std::int64_t>& tuned) {
  const std::int64_t channels = c.channels.constant();
  const std::int64_t outputs = c.outputs.constant();
  const std::int64_t down = blocks_of(c.axes[1].output.constant(), tile);
  const std::int64_t across = blocks_of(c.axes[2].output.constant(), tile);
  const std::int64_t batch = c.batch.as_constant().value_or(1);
  const auto local = static_cast<std::int64_t>(site.local_memory());
  const std::optional<window_total> windows = window_total_in(site);
  const panel_sizes usual = choose_panels(site, {1, outputs, across * down, channels}, true, false);
  const std::int64_t registers = usual.vector == 16 ? 24 : usual.vector == 8 ? 12 : 8;
  const std::int64_t weight_bytes = winograd_points(tile) * channels * 4;  // of an output channel
  const bool cached = static_cast<std::uint64_t>(weight_bytes * outputs) < site.options.device->global_cache_bytes / 2;
  const double cycles_of_byte = cached ? cycles_of_cached_byte : cycles_of_far_byte / 2;
  winograd_sizes best;
  // Considers `high` rows of `wide` tiles by `panels` panels of `vectors` vectors.
  const auto consider = [&](winograd_sizes s, std::int64_t panels) {
    s.block_rows = panels * s.columns();
    if (!s.fit(channels, local)) return;
    const double groups = static_cast<double>(s.tiles()) / static_cast<double>(s.rows);
    const double row = s.cycles_of_products(static_cast<double>(s.tiles_wide) / static_cast<double>(s.rows), channels);
    const double whole = s.cycles_of_products(static_cast<double>(blocks_of(s.tiles(), s.rows)), channels);
    const double part = s.cycles_of_products(groups, channels);
    const block_grid grid{batch * blocks_of(across, s.tiles_wide), site.compute_units(),
                          blocks_of(outputs, s.columns()), down};
    const double beside = static_cast<double>(panels) * (whole - part) + s.cycles_of_transforms(channels) +
                          static_cast<double>(s.block_rows * weight_bytes) * cycles_of_byte + cycles_per_group;
    s.cycles = grid.cycles(panels, s.tiles_high, row, beside) + cycles_of_weights(site, c, winograd_points(tile));
    if (best.tile == 0 || s.cycles < best.cycles) best = s;
  };
  const auto sized = [&](std::int64_t vectors, std::int64_t wide, std::int64_t high) {
    winograd_sizes s;
    s.tile = tile;
    s.vector = usual.vector;
    s.vectors = vectors;
    s.tiles_wide = wide;
    s.tiles_high = high;
    const std::int64_t most = std::max<std::int64_t>(registers / vectors, 1);
    s.rows = blocks_of(s.tiles(), blocks_of(s.tiles(), most));
    return s;
  };
  const auto each_width = [&](auto&& visit) {
    for (std::int64_t parts = 1; parts <= across && best.tile == 0; ++parts) {
      const std::int64_t wide = blocks_of(across, parts);
      // Windows that are reduced lie in one block.
      if (parts > 1 && windows && wide * tile % windows->columns != 0) continue;
      visit(wide);
    }
  };
  if (!tuned.empty()) {
    each_width([&](std::int64_t wide) {
      const std::int64_t rows = blocks_of(tuned[3], wide * tile * tile);
      winograd_sizes s = sized(tuned[1], wide, std::clamp<std::int64_t>(rows, 1, down));
      s.rows = tuned[0];
      consider(s, std::clamp<std::int64_t>(tuned[2] / s.columns(), 1, blocks_of(outputs, s.columns())));
    });
    if (best.tile != 0) return best;
  }
  const auto next = [](std::int64_t extent, std::int64_t block) {
    return std::min(block - 1, blocks_of(extent, blocks_of(extent, block) + 1));
  };
  each_width([&](std::int64_t wide) {
    for (std::int64_t vectors = 1; vectors <= 4; ++vectors) {
      const std::int64_t all = blocks_of(outputs, usual.vector * vectors);
      for (std::int64_t high = down; high >= 1; high = next(down, high))
        for (std::int64_t panels = all; panels >= 1; panels = next(all, panels))
          consider(sized(vectors, wide, high), panels);
    }
  });
  return best;
}

/// The sizes that a tuner chose or that are expected to end first, of all tiles; `tile` is 0 where shifts are expected
/// to, or where a tuner chose these.
[[nodiscard]] inline winograd_sizes choose_winograd(const lowering_site& site, const convolution_shape& c) {
  const window_tuning tuning = window_tuning_of(site, c);
  if (tuning.tile == 0) return {};
  const auto fits = [&](std::int64_t tile) {
    return keeps_weights_small(site, tile) && reject_winograd_tile(site, c, tile).empty();
  };
  if (tuning.tile > 0 && fits(tuning.tile)) {
    const winograd_sizes s = choose_winograd(site, c, tuning.tile, tuning.blocks);
    if (s.tile != 0) return s;
  }
  winograd_sizes best;
  for (const std::int64_t tile : winograd_tiles) {
    if (!fits(tile)) continue;
    const winograd_sizes s = choose_winograd(site, c, tile, {});
    if (s.tile != 0 && (best.tile == 0 || s.cycles < best.cycles)) best = s;
  }
  if (best.tile == 0) return best;
  const shift_sizes shifts = choose_shifts(site, c, false, window_total_in(site));
  const double usual = shifts.cycles + cycles_of_weights(site, c, 9);
  return shifts.block_channels == 0 || best.cycles < 0.85 * usual ? best : winograd_sizes{};
}

/// Blocks of Winograd's tiles, where they are expected to end before shifts or a tuner chose them.
[[nodiscard]] inline choice_or_reason choose_convolution_winograd(const lowering_site& site) {
  if (!site.prefers_vectors()) return "the device does not prefer wide vectors";
  if (std::string why = reject_convolution(site); !why.empty()) return why;
  if (std::string why = reject_window_total(site); !why.empty()) return why;
  kernel_builder b(site.block, site.options.emitters);
  const convolution_shape own = convolution_of(element_site(b, site.anchor, 0, {}));
  const std::optional<convolution_shape> usual = with_usual_image(own);
  if (!usual) return "padding that is not known before execution, or an empty result";
  const convolution_shape& c = *usual;
  if (std::string why = reject_winograd(site, c); !why.empty()) return why;
  if (!keeps_weights_small(site, winograd_tiles.front())) return "the memory limit has no room for transformed weights";
  const winograd_sizes s = choose_winograd(site, c);
  if (s.tile == 0) return "shifts are expected to end first, or were chosen";
  choice made("convolution_winograd");
  made.with("tile", s.tile).with("rows", s.rows).with("vector", s.vector).with("vectors", s.vectors);
  made.with("block_rows", s.block_rows).with("tiles_high", s.tiles_high).with("tiles_wide", s.tiles_wide);
  made.with("block_channels", s.block_channels).with("stage_rows", s.stage_rows());
  const std::int64_t channels = c.channels.constant();
  made.local_bytes = static_cast<std::uint64_t>(s.bytes(channels));
  made.taken.push_back({1, operand_form::packed});
  const std::int64_t outputs = c.outputs.constant();
  settle_kept(made, winograd_points(s.tile) * channels, outputs, round_up(outputs, s.columns()));
  made.weight_growth *= static_cast<double>(winograd_points(s.tile)) / 9;
  if (useful_positions(own)) made.tuning = shape_of_winograd(own);
  return made;
}

}  // namespace dnnopt::codegen

#endif  // DNNOPT_BACKEND_CODEGEN_FRAMES_CONVOLUTIONS_STAGED_CHOOSE_WINOGRAD_HPP
