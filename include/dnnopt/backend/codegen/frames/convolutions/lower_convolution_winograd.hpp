// Owns the kernel of convolutions by Winograd's minimal filtering on devices with wide vectors.
#ifndef DNNOPT_BACKEND_CODEGEN_FRAMES_CONVOLUTIONS_LOWER_CONVOLUTION_WINOGRAD_HPP
#define DNNOPT_BACKEND_CODEGEN_FRAMES_CONVOLUTIONS_LOWER_CONVOLUTION_WINOGRAD_HPP

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <dnnopt/backend/codegen/frames/convolutions/lower_convolution_shifts.hpp>
#include <dnnopt/backend/codegen/frames/convolutions/winograd_shape.hpp>

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

[[nodiscard]] inline std::string reject_convolution_winograd(const lowering_site& site) {
  if (std::string why = reject_convolution_panels(site); !why.empty()) return why;
  kernel_builder b(site.block, site.options.emitters);
  const element_site s(b, site.anchor, 0, {});
  const convolution_shape c = convolution_of(s);
  if (std::string why = reject_winograd(site, c); !why.empty()) return why;
  if (!keeps_weights_small(site, winograd_tiles.front())) return "the memory limit has no room for transformed weights";
  return choose_winograd(site, c).tile == 0 ? "shifts are expected to end first, or were chosen" : "";
}

/// A kernel that writes G w G^T of the weights once: [panel][point][channel][output channel of the panel], zero beyond
/// the last output channel.
[[nodiscard]] inline kernel_plan transform_weights(const lowering_site& site, const convolution_shape& shape_of,
                                                   const winograd_sizes& sizes) {
  kernel_builder b(site.block, site.options.emitters);
  const std::int64_t width = sizes.columns();
  const std::int64_t channels = shape_of.channels.constant();
  const std::int64_t outputs = shape_of.outputs.constant();
  const index_expr count = blocks_of(outputs, width) * channels * width;
  const index_expr i = b.index("i", count);
  b.begin();
  const index_expr row = mod(i, width) + floordiv(i, width * channels) * width;
  const index_expr channel = mod(floordiv(i, width), channels);
  const element_site s(b, site.anchor, 0, {});
  b.line("float w[9] = {0, 0, 0, 0, 0, 0, 0, 0, 0};");
  s.when(kernel_builder::within(row, outputs), [&] {
    const index_expr own = b.define_index("r", row, outputs);
    for (std::int64_t k = 0; k < 9; ++k)
      b.line("w[" + std::to_string(k) +
             "] = " + b.emit(site.anchor_node().inputs[1], {own, channel, index_expr(k / 3), index_expr(k % 3)}) + ";");
  });
  // Row x of G is (1, x, x^2) over the product of x's distances from the other points, and (0, 0, 1) at infinity.
  b.line(sizes.tile == 4
             ? "const float g[6][3] = {{64.0f / 81.0f, 0, 0}, {-128.0f / 243.0f, -96.0f / 243.0f, -72.0f / 243.0f}, "
               "{-128.0f / 243.0f, 96.0f / 243.0f, -72.0f / 243.0f}, {32.0f / 243.0f, 48.0f / 243.0f, 72.0f / 243.0f}, "
               "{32.0f / 243.0f, -48.0f / 243.0f, 72.0f / 243.0f}, {0, 0, 1}};"
             : "const float g[4][3] = {{1, 0, 0}, {0.5f, 0.5f, 0.5f}, {0.5f, -0.5f, 0.5f}, {0, 0, 1}};");
  const std::string side = std::to_string(sizes.tile + 2);
  b.open("for (int p = 0; p < " + side + "; ++p) {");
  for (const char* const j : {"0", "1", "2"})
    b.line(std::string("const float t") + j + " = fma(g[p][0], w[" + j + "], fma(g[p][1], w[3 + " + j +
           "], g[p][2] * w[6 + " + j + "]));");
  b.open("for (int q = 0; q < " + side + "; ++q) {");
  b.line(b.scratch(0, dtype::float32, true) + "[" +
         index_source(floordiv(i, width * channels) * (winograd_points(sizes.tile) * channels * width) +
                      mod(i, width * channels)) +
         " + (p * " + side + " + q) * " + std::to_string(channels * width) +
         "] = fma(g[q][0], t0, fma(g[q][1], t1, g[q][2] * t2));");
  b.close();
  b.close();
  const std::string statements = b.take();
  return b.finish_items(kernels::prelude, statements, i, count, "pack");
}

[[nodiscard]] inline lowered_node lower_convolution_winograd(const lowering_site& site) {
  const node& n = site.anchor_node();
  kernel_builder b(site.block, site.options.emitters);
  const element_site s(b, site.anchor, 0, {});
  const convolution_shape c = convolution_of(s);
  const std::optional<window_total> windows = window_total_in(site);
  const winograd_sizes sizes = choose_winograd(site, c);
  b.define("DNNOPT_M", c.outputs);
  b.define("DNNOPT_C", c.channels);
  b.define("DNNOPT_TILE", sizes.tile);
  b.define("DNNOPT_ROWS", sizes.rows);
  b.define("DNNOPT_VECTOR", sizes.vector);
  b.define("DNNOPT_VECTORS", sizes.vectors);
  b.define("DNNOPT_BLOCK_ROWS", sizes.block_rows);
  b.define("DNNOPT_TILES_HIGH", sizes.tiles_high);
  b.define("DNNOPT_TILES_WIDE", sizes.tiles_wide);
  b.define("DNNOPT_BLOCK_CHANNELS", sizes.block_channels);
  b.define("DNNOPT_STAGE_ROWS", sizes.stage_rows());
  define_windows(b, c);
  define_image_load(b, s, c);
  lowered_node result;
  const std::int64_t padded = round_up(c.outputs.constant(), sizes.columns());
  result.scratch.push_back({winograd_points(sizes.tile) * c.channels * padded * 4, true});
  result.prepare.push_back(transform_weights(site, c, sizes));
  b.define("DNNOPT_A", b.scratch(0, dtype::float32, false));
  const std::vector<index_expr> at = output_index(b, s, c, b.index("m", c.outputs), b.index("n", c.positions()));
  const std::vector<std::string> names{"z", "m", "n"};
  const auto finish = [&] { return biased(b, s, at[1]); };
  if (windows)
    define_window_total(b, *windows, n.outputs[0], at, names, finish);
  else
    b.define_store("dnnopt_store", n.outputs[0], at, names, compute_type::real, finish);
  kernel_plan plan = b.finish(kernels::prelude, kernels::convolution_winograd, "convolution_winograd");
  const std::int64_t down = blocks_of(c.axes[1].output.constant(), sizes.tile);
  const std::int64_t across = blocks_of(c.axes[2].output.constant(), sizes.tile);
  plan.global = {blocks_of(down, sizes.tiles_high) * blocks_of(across, sizes.tiles_wide),
                 blocks_of(c.outputs.constant(), sizes.block_rows), c.batch};
  plan.local = {1, 1, 1};
  plan.tuning = shape_of_winograd(c);
  plan.flops = c.batch * c.outputs * c.channels * (down * across * winograd_points(sizes.tile) * 2);
  result.kernels.push_back(std::move(plan));
  return result;
}

}  // namespace dnnopt::codegen

#endif  // DNNOPT_BACKEND_CODEGEN_FRAMES_CONVOLUTIONS_LOWER_CONVOLUTION_WINOGRAD_HPP
