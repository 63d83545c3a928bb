// Owns the kernel of convolutions on devices with wide vectors that stages the image once and reads it shifted.
#ifndef DNNOPT_BACKEND_CODEGEN_LOWER_CONVOLUTION_SHIFTS_HPP
#define DNNOPT_BACKEND_CODEGEN_LOWER_CONVOLUTION_SHIFTS_HPP

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <dnnopt/backend/codegen/lower_convolution.hpp>

namespace dnnopt::codegen {

/// How the positions of a convolution count along rows of phases (kernels/convolution_shifts.cl).
struct shifted_image {
  std::int64_t pitch = 1;      ///< elements of a phase's row
  std::int64_t positions = 1;  ///< positions up to the last that is stored, plus one
  std::int64_t reach = 0;      ///< what the last window element is shifted by
  std::int64_t phases = 1;
  std::int64_t useful = 1;  ///< positions that are stored
};

/// Nothing where extents are not known or the result is empty.
[[nodiscard]] inline std::optional<shifted_image> shifted_image_of(const convolution_shape& c) {
  shifted_image s;
  for (const window_axis& a : c.axes) {
    if (!a.output.is_constant() || !a.input.is_constant() || !a.pad_begin.is_constant() || a.output.constant() < 1)
      return std::nullopt;
    s.useful *= a.output.constant();
    if (a.kernel > 1) s.phases *= a.stride;
  }
  if (!c.channels.is_constant() || !c.outputs.is_constant()) return std::nullopt;
  const auto& [depth, height, width] = c.axes;
  const auto shifts = [](const window_axis& a) { return (a.extent() - 1) / a.stride; };
  s.pitch = width.output.constant() + shifts(width);
  const std::int64_t rows = height.output.constant() + shifts(height);
  s.positions =
      ((depth.output.constant() - 1) * rows + height.output.constant() - 1) * s.pitch + width.output.constant();
  s.reach = (shifts(depth) * rows + shifts(height)) * s.pitch + shifts(width);
  return s;
}

/// The shape class of a convolution whose image is staged.
[[nodiscard]] inline std::string shape_of_shifts(const convolution_shape& c, const shifted_image& image) {
  return shape_class("convolution_shifts", std::array{c.batch * c.group, c.outputs, index_expr(image.positions),
                                                      c.channels, c.window(), index_expr(image.phases)});
}

/// Tile and block sizes of the frame.
struct shift_sizes {
  panel_sizes panels;               ///< without block_inner
  std::int64_t block_channels = 0;  ///< 0: no block fits in the local memory
  std::int64_t span = 0;            ///< positions of a block that are stored or taken
  std::int64_t blocks = 0;          ///< along the positions
};

/// What a tuner chose, else the register tile as for products, and blocks by choose_blocks, where staging the image is
/// what a block adds. A block holds whole planes where these are reduced, and whole rows of windows where those are.
[[nodiscard]] inline shift_sizes choose_shifts(const lowering_site& site, const convolution_shape& c,
                                               const shifted_image& image, bool whole_planes,
                                               const std::optional<window_total>& windows) {
  const product_extents e{c.batch * c.group, c.outputs, index_expr(image.positions), c.channels * c.window()};
  shift_sizes sizes;
  panel_sizes& p = sizes.panels;
  p = choose_panels(site, e, true, false);
  const panel_sizes usual = p;
  const auto* values = site.tuned(shape_of_shifts(c, image));
  if (values != nullptr) {
    p.rows = (*values)[0];
    p.vectors = (*values)[1];
  }
  const std::int64_t channels = c.channels.constant();
  // What a block has a whole number of: panels, or rows of windows.
  const auto unit_of = [&] { return windows ? windows->rows * image.pitch : p.columns(); };
  const auto units_of = [&] { return windows ? windows->run_rows : blocks_of(image.positions, unit_of()); };
  std::int64_t unit = unit_of();
  std::int64_t units = units_of();
  const auto local = static_cast<std::int64_t>(site.local_memory());
  const auto columns_of = [&](std::int64_t count) { return round_up(count * unit, p.columns()); };
  const auto staged_of = [&](std::int64_t count) {
    return image.phases * (columns_of(count) + image.reach + p.vector);
  };
  // As many channels at a time as half of the local memory holds, with the partial results if there are more.
  const auto channels_at = [&](std::int64_t rows, std::int64_t count) {
    std::int64_t block = channels;
    const std::int64_t taken = windows ? rows * p.rows * count * (windows->run_width / windows->columns) : 0;
    const auto bytes = [&] {
      return 4 * (block * staged_of(count) + taken + (block < channels ? rows * p.rows * columns_of(count) : 0));
    };
    while (block > 1 && bytes() > local / 2) block = blocks_of(block, 2);
    return bytes() > local / 2 ? 0 : block;
  };
  const auto take = [&](std::int64_t rows, std::int64_t count) {
    p.block_rows = rows * p.rows;
    p.block_columns = columns_of(count);
    sizes.span = count * unit;
    sizes.blocks = blocks_of(units, count);
    sizes.block_channels = channels_at(rows, count);
    return sizes.block_channels > 0;
  };
  if (values != nullptr) {
    const std::int64_t rows = std::min(blocks_of(c.outputs.constant(), p.rows), blocks_of((*values)[2], p.rows));
    const std::int64_t count = whole_planes ? units : std::min(units, blocks_of((*values)[3], unit));
    if (take(rows, count)) return sizes;
    p = usual;
    unit = unit_of();
    units = units_of();
  }
  const double tile =
      cycles_of_tile(p, e.inner.constant(), true) * static_cast<double>(unit) / static_cast<double>(p.columns());
  const block_choice blocks = choose_blocks(
      e.batch.as_constant().value_or(1), site.compute_units(), blocks_of(c.outputs.constant(), p.rows), units,
      whole_planes ? units : 1, tile, [&](std::int64_t rows, std::int64_t count) -> std::optional<double> {
        const std::int64_t block = channels_at(rows, count);
        if (block == 0) return std::nullopt;
        const auto staged = static_cast<double>(channels * staged_of(count));
        const std::int64_t passes = blocks_of(channels, block) - 1;
        return staged * ((image.phases > 1 ? 0.6 : 0.25) + 12.0 / static_cast<double>(image.pitch)) +
               0.5 * static_cast<double>(passes * rows * p.rows * columns_of(count)) + cycles_per_group;
      });
  if (blocks.rows > 0) take(blocks.rows, blocks.columns);
  return sizes;
}

[[nodiscard]] inline std::string reject_convolution_shifts(const lowering_site& site) {
  if (std::string why = reject_convolution_panels(site); !why.empty()) return why;
  if (!packs_constant(site.block, site.anchor_node().inputs[1])) return "weights are computed or stored in fp16";
  kernel_builder b(site.block, site.options.emitters);
  const element_site s(b, site.anchor, 0, {});
  const convolution_shape c = convolution_of(s);
  if (c.pointwise) return "a window of one element needs no shifts";
  const std::optional<shifted_image> image = shifted_image_of(c);
  if (!image) return "extents that are not known before execution";
  // Positions between rows are wasted, and so is what is staged beyond a block: patches are better then.
  if (image->positions > 2 * image->useful) return "padded rows are more than twice as long as rows";
  const shift_sizes sizes =
      choose_shifts(site, c, *image, plane_total_in(site.block).has_value(), window_total_in(site));
  if (sizes.block_channels == 0) return "what a block reads of the image takes more than the local memory";
  if (image->reach > 4 * sizes.panels.block_columns) return "windows reach far beyond a block of positions";
  return {};
}

[[nodiscard]] inline lowered_node lower_convolution_shifts(const lowering_site& site) {
  const node& n = site.anchor_node();
  kernel_builder b(site.block, site.options.emitters);
  const element_site s(b, site.anchor, 0, {});
  const convolution_shape c = convolution_of(s);
  const shifted_image image = shifted_image_of(c).value();
  const std::optional<plane_total> total = plane_total_in(site.block);
  const std::optional<window_total> windows = window_total_in(site);
  const shift_sizes sizes = choose_shifts(site, c, image, total.has_value(), windows);
  const panel_sizes& p = sizes.panels;
  lowered_node result;
  b.define("DNNOPT_M", c.outputs);
  b.define("DNNOPT_C", c.channels);
  b.define("DNNOPT_ROWS", p.rows);
  b.define("DNNOPT_VECTOR", p.vector);
  b.define("DNNOPT_VECTORS", p.vectors);
  b.define("DNNOPT_BLOCK_ROWS", p.block_rows);
  b.define("DNNOPT_BLOCK_COLUMNS", p.block_columns);
  b.define("DNNOPT_BLOCK_CHANNELS", sizes.block_channels);
  b.define("DNNOPT_SPAN", sizes.span);
  define_windows(b, c);
  define_image_load(b, s, c);
  define_packed_weights(result, b, site, c, p.rows);
  const std::vector<index_expr> at = output_index(b, s, c, b.index("m", c.outputs), b.index("n", c.positions()));
  const std::vector<std::string> names{"z", "m", "n"};
  if (windows) {
    define_window_total(b, *windows, n.outputs[0], at, names, [&] { return biased(b, s, at[1]); });
  } else {
    b.define_store(
        "dnnopt_store", n.outputs[0], at, names, compute_type::real, [&] { return biased(b, s, at[1]); },
        total ? total->result : no_value, total ? total->planes : no_value);
    if (total) define_plane_total(b, *total, at, std::vector<std::string>{"z", "m"});
  }
  kernel_plan plan = b.finish(kernels::prelude, kernels::convolution_shifts, "convolution_shifts");
  plan.global = {sizes.blocks, blocks_of(c.outputs.constant(), p.block_rows), c.batch * c.group};
  plan.local = {1, 1, 1};
  plan.tuning = shape_of_shifts(c, image);
  plan.flops = c.batch * c.group * c.outputs * c.positions() * c.channels * c.window() * 2;
  result.kernels.push_back(std::move(plan));
  return result;
}

}  // namespace dnnopt::codegen

#endif  // DNNOPT_BACKEND_CODEGEN_LOWER_CONVOLUTION_SHIFTS_HPP
