// Owns the kernels of convolutions: image patches times weights, and rows of thin groups.
#ifndef DNNOPT_BACKEND_CODEGEN_FRAMES_CONVOLUTIONS_LOWER_CONVOLUTION_HPP
#define DNNOPT_BACKEND_CODEGEN_FRAMES_CONVOLUTIONS_LOWER_CONVOLUTION_HPP

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <dnnopt/backend/codegen/frames/convolutions/convolution_shape.hpp>
#include <dnnopt/backend/codegen/frames/convolutions/texel_patches.hpp>
#include <dnnopt/backend/codegen/frames/products/tile_frame.hpp>
#include <dnnopt/backend/codegen/frames/rows/plane_totals.hpp>
#include <dnnopt/backend/codegen/frames/windows/staged_windows.hpp>
#include <dnnopt/backend/codegen/frames/windows/window_axes.hpp>
#include <dnnopt/backend/codegen/frames/windows/window_totals.hpp>

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

/// Packs constant weights once in panels of `rows` output channels, and defines DNNOPT_A and DNNOPT_A_BATCH, where the
/// frames read them. Precondition: the numbers of channels are known, and nothing else takes scratch memory.
inline void define_packed_weights(lowered_node& result, kernel_builder& b, const lowering_site& site,
                                  const convolution_shape& c, std::int64_t rows) {
  const std::int64_t inner = c.channels.constant() * c.window().constant();
  result.scratch.push_back({c.group * round_up(c.outputs.constant(), rows) * inner * 4, true});
  result.prepare.push_back(
      pack_kernel(site, 0, c.group, c.outputs.constant(), inner, rows,
                  [&](kernel_builder& own, const index_expr& group, const index_expr& row, const index_expr& k) {
                    const element_site s(own, site.anchor, 0, {});
                    return own.emit(site.anchor_node().inputs[1], weight_index(s, convolution_of(s), group, row, k));
                  }));
  b.define("DNNOPT_A", b.scratch(0, dtype::float32, false));
  b.define("DNNOPT_A_BATCH", c.group == 1 ? std::string("0") : "(z % " + std::to_string(c.group) + ")");
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

/// The element of the patch of output `position` that is number `k` of (channel, window element), of the image and
/// group that `z` counts; `joined`: positions count those of all images. Zero in padding.
[[nodiscard]] inline std::string emit_patch_element(kernel_builder& b, const element_site& s,
                                                    const convolution_shape& c, const index_expr& z,
                                                    const index_expr& k, const index_expr& position, bool joined) {
  const std::int64_t window = c.window().constant();
  const std::vector<index_expr> window_at =
      b.index_at(shape{c.axes[0].kernel, c.axes[1].kernel, c.axes[2].kernel}, mod(k, window));
  const std::vector<index_expr> out_at = b.index_at(shape{c.axes[0].output, c.axes[1].output, c.axes[2].output},
                                                    joined ? mod(position, c.positions()) : position);
  const std::string element = b.variable(compute_type::real, "0");
  std::vector<index_expr> at{joined ? floordiv(position, c.positions()) : floordiv(z, c.group),
                             mod(z, c.group) * c.channels + floordiv(k, window)};
  std::string test;
  std::array<index_expr, 3> own;
  for (std::size_t i = 0; i < 3; ++i) {
    const window_axis& a = c.axes[i];
    own[i] = out_at[i] * a.stride + window_at[i] * a.dilation - a.pad_begin;
    test = both(std::move(test), kernel_builder::within(own[i], a.input));
  }
  s.when(test, [&] {
    for (std::size_t i = 0; i < 3; ++i) own[i] = b.define_index("x", own[i], c.axes[i].input);
    if (c.pointwise) {
      const shape& x = s.dims(0);
      for (const index_expr& i : b.index_at(shape(x.begin() + 2, x.end()), own[2])) at.push_back(i);
    } else {
      at.insert(at.end(), own.end() - static_cast<std::ptrdiff_t>(c.rank), own.end());
    }
    b.line(element + " = " + s.read(0, at) + ";");
  });
  return element;
}

/// Product of weights [outputs, channels * window] and patches [channels * window, positions], per image and group.
[[nodiscard]] inline lowered_node lower_patches(const lowering_site& site, bool panels) {
  const node& n = site.anchor_node();
  kernel_builder b(site.block, site.options.emitters);
  const element_site s(b, site.anchor, 0, {});
  const convolution_shape c = convolution_of(s);
  // Of patches in texels an inner element is (window element, channel), channels in whole texels.
  const bool texel_patches = !panels && reads_texels(site.block, n.inputs[0]);
  const index_expr slices = ceildiv(c.channels, texel_width);
  product_extents e{c.batch * c.group, c.outputs, c.positions(),
                    (texel_patches ? slices * texel_width : c.channels) * c.window()};
  const bool joined = !panels && !texel_patches && joins_images(site, c, e);
  if (joined) e = joined_images(c, e);
  const std::int64_t window = c.window().constant();
  const bool texel_weights = !panels && (site.packs_texels() || texel_patches) &&
                             is_constant_in(site.block, n.inputs[1]) && e.inner.is_constant();
  if (texel_patches && !texel_weights) throw error(errc::unsupported, "weights that are computed meet texels");
  if (texel_patches && c.group > 1 && !(mod(c.channels, texel_width) == index_expr(0)))
    throw error(errc::unsupported, "groups begin within a texel");
  const index_expr z = b.index("z", e.batch);
  const index_expr m = b.index("m", e.rows);
  const index_expr k = b.index("k", e.inner);
  const index_expr position = b.index("n", e.columns);
  lowered_node result;
  const std::optional<plane_total> total = plane_total_in(site.block);
  const std::optional<window_total> windows = window_total_in(site);
  if (windows && c.pointwise) throw error(errc::unsupported, "positions of a pointwise convolution have no rows");
  const node_id staged = staged_windows_in(site);
  if (staged != no_node && (!panels || !c.pointwise || c.group != 1 || total || windows))
    throw error(errc::unsupported, "windows are staged in panels, before a pointwise convolution alone");
  const bool packed = panels && packs_constant(site.block, n.inputs[1]);
  bool a_bits = false;
  panel_sizes p;
  if (panels) {
    p = choose_panels(site, e, packed, false);
    // Rows of a pointwise convolution's image are read where they are.
    const index_expr image_offset =
        ((floordiv(z, c.group) * c.group + mod(z, c.group)) * c.channels + k) * e.columns + position;
    const bool straight = packed && c.pointwise && e.columns.is_constant() && e.columns.constant() >= p.columns() &&
                          (define_straight_rows(b, n.inputs[0], image_offset, k, position) ||
                           (c.group == 1 && define_straight_parts(b, n.inputs[0], e.columns, z, k)));
    if (straight)
      read_straight(p, site, e);
    else if (packed && !total && !windows && staged == no_node)
      share_patches(p, site, e, c);
    if (total) cover_columns(p, site, e, packed, straight);
    if (windows) cover_windows(p, site, e, packed, *windows);
    if (staged != no_node) cover_rows(p, site, e, packed);
    b.define("DNNOPT_CONVOLUTION", 1);
    define_panels(b, p, {e.batch, e.rows, windows ? index_expr(windows->positions()) : e.columns, e.inner});
    define_windows(b, c);
    if (staged != no_node)
      define_staged_windows(b, staged, site.anchor);
    else
      define_image_load(b, s, c);
  }
  if (packed) {
    define_packed_weights(result, b, site, c, p.rows);
    b.define("DNNOPT_A_PACKED", 1);
  } else if (texel_weights) {
    a_bits = define_texel_constant(
        result, b, site, {n.inputs[1], c.group, e.rows.constant(), e.inner.constant()}, "dnnopt_load4_a",
        std::vector<std::string>{"z", "m", "k"}, mod(z, c.group), m, k,
        [&](kernel_builder& own, const index_expr& group, const index_expr& row, const index_expr& inner) {
          const element_site own_site(own, site.anchor, 0, {});
          const convolution_shape x = convolution_of(own_site);
          if (!texel_patches) return own.emit(n.inputs[1], weight_index(own_site, x, group, row, inner));
          const index_expr padded = ceildiv(x.channels, texel_width) * texel_width;
          const index_expr channel = mod(inner, padded);
          const std::string element = own.variable(compute_type::real, "0");
          own_site.when(kernel_builder::within(channel, x.channels), [&] {
            const index_expr real = own.define_index("c", channel, x.channels) * x.window() + floordiv(inner, padded);
            own.line(element + " = " + own.emit(n.inputs[1], weight_index(own_site, x, group, row, real)) + ";");
          });
          return element;
        },
        !multiplies_halves(site, b));
  } else {
    a_bits = !panels && fetches_bits(site, b, n.inputs[1]);
    b.load_halves_as_bits(a_bits);
    b.define_load("dnnopt_load_a", n.inputs[1], weight_index(s, c, mod(z, c.group), m, k),
                  std::vector<std::string>{"z", "m", "k"});
    b.load_halves_as_bits(false);
  }
  const bool b_bits = !panels && !texel_patches && fetches_bits(site, b, n.inputs[0]);
  // Of a window each element of a patch costs tests of the padding and an index, which four channels share in a texel.
  if (!panels && !texel_patches && window > 1 && is_constant_in(site.block, n.inputs[1]) && e.inner.is_constant() &&
      !b.is_member_value(n.inputs[0]) && mod(c.channels, texel_width) == index_expr(0))
    result.sooner_as_texels.push_back(n.inputs[0]);
  if (texel_patches) define_texel_patches(b, s, c, e);
  if (!panels && !texel_patches) {
    b.load_halves_as_bits(b_bits);
    b.define_function("dnnopt_load_b", compute_type::real, std::vector<std::string>{"z", "k", "n"},
                      [&] { return emit_patch_element(b, s, c, z, k, position, joined); });
    b.load_halves_as_bits(false);
  }
  const auto output_at = [joined](kernel_builder& own, const element_site& site_of, const convolution_shape& x,
                                  const index_expr& row, const index_expr& column) {
    return output_index(own, site_of, x, row, column, joined);
  };
  store_direction along = store_direction::single;
  const auto define_store = [&](kernel_builder& own) {
    const element_site site_of(own, site.anchor, 0, {});
    const convolution_shape x = convolution_of(site_of);
    product_extents extents{x.batch * x.group, x.outputs, x.positions(), x.channels * x.window()};
    if (joined) extents = joined_images(x, extents);
    if (along != store_direction::single) {
      const four_results four = results_along(
          own, along, extents.rows, extents.columns,
          [&](const index_expr& row, const index_expr& column) { return output_at(own, site_of, x, row, column); });
      own.define_store4("dnnopt_store4", n.outputs[0], four, names_of_store4(along),
                        [&](std::size_t j) { return biased(own, site_of, four.at[j][1]); });
      return extents;
    }
    const std::vector<index_expr> at =
        output_at(own, site_of, x, own.index("m", extents.rows), own.index("n", extents.columns));
    const std::vector<std::string> names{"z", "m", "n"};
    if (windows) {
      define_window_total(own, *windows, n.outputs[0], at, names, [&] { return biased(own, site_of, at[1]); });
      return extents;
    }
    own.define_store(
        "dnnopt_store", n.outputs[0], at, names, compute_type::real, [&] { return biased(own, site_of, at[1]); },
        total ? total->result : no_value, total ? total->planes : no_value);
    if (total) define_plane_total(own, *total, at, std::vector<std::string>{"z", "m"});
    return extents;
  };
  if (!panels) {
    if (total || windows) throw error(errc::unsupported, "tiles do not reduce planes");
    b.define("DNNOPT_A_INNER_FIRST", texel_weights ? 0 : 1);
    b.define("DNNOPT_B_INNER_FIRST", texel_patches ? 2 : 0);
    b.define("DNNOPT_A_BITS", a_bits ? 1 : 0);
    b.define("DNNOPT_B_BITS", b_bits ? 1 : 0);
    b.define("DNNOPT_A_WIDTH", texel_weights
                                   ? 4
                                   : define_load4(b, "dnnopt_load4_a", n.inputs[1],
                                                  b.offset_of(n.inputs[1], weight_index(s, c, mod(z, c.group), m, k)),
                                                  k, e.inner, std::vector<std::string>{"z", "m", "k"}, a_bits));
    if (texel_patches) {
      b.define("DNNOPT_B_WIDTH", 4);
    } else if (c.pointwise) {
      const shape& x = s.dims(0);
      std::vector<index_expr> at{joined ? floordiv(position, c.positions()) : floordiv(z, c.group),
                                 mod(z, c.group) * c.channels + k};
      const index_expr place = joined ? mod(position, c.positions()) : position;
      for (const index_expr& i : b.index_at(shape(x.begin() + 2, x.end()), place)) at.push_back(i);
      b.define("DNNOPT_B_WIDTH", define_load4(b, "dnnopt_load4_b", n.inputs[0], b.offset_of(n.inputs[0], at), position,
                                              e.columns, std::vector<std::string>{"z", "k", "n"}, b_bits));
    }
    along = direction_of_texels(
        b, site.block, n.outputs[0], e.rows, e.columns,
        [&](const index_expr& row, const index_expr& column) { return output_at(b, s, c, row, column); });
    const tile_sizes tiles = choose_tiles(site, e);
    if (along == store_direction::single) along = direction_of_rows(tiles, e);
    finish_tiles(result, b, site, tiles, e, "convolution_tiles", define_store, along);
    return result;
  }
  (void)define_store(b);
  kernel_plan plan =
      b.finish(kernels::prelude, kernels::matrix_panels, packed ? "convolution_panels_packed" : "convolution_panels");
  launch_panels(plan, p, e, packed, false);
  if (windows) plan.global[0] = ceildiv(windows->positions(), p.block_columns / windows->rows);
  result.kernels.push_back(std::move(plan));
  return result;
}

[[nodiscard]] inline std::string reject_convolution_panels(const lowering_site& site) {
  return site.prefers_vectors() ? reject_convolution(site) : "the device does not prefer wide vectors";
}
/// Thin groups have no tiles to speak of: an element per work-item reads its few inputs itself.
[[nodiscard]] inline std::string reject_convolution_tiles(const lowering_site& site) {
  if (std::string why = reject_convolution(site); !why.empty()) return why;
  const shape& w = *site.input(1).dims;
  const std::int64_t group = site.anchor_node().attributes.get_int("group", 1);
  if (group > 1 && w[0].constant() / group < 4) return "fewer than four output channels per group";
  return {};
}
[[nodiscard]] inline lowered_node lower_convolution_panels(const lowering_site& site) {
  return lower_patches(site, true);
}
[[nodiscard]] inline lowered_node lower_convolution_tiles(const lowering_site& site) {
  return lower_patches(site, false);
}

/// Thin groups: so little is summed per output channel that packing patches costs more than it saves.
[[nodiscard]] inline std::string reject_convolution_rows(const lowering_site& site) {
  if (std::string why = reject_convolution_panels(site); !why.empty()) return why;
  const shape& w = *site.input(1).dims;
  const std::int64_t group = site.anchor_node().attributes.get_int("group", 1);
  if (w[1].constant() != 1 || group == 1) return "more than one input channel per group";
  return {};
}
[[nodiscard]] inline lowered_node lower_convolution_rows(const lowering_site& site) {
  const node& n = site.anchor_node();
  kernel_builder b(site.block, site.options.emitters);
  const element_site s(b, site.anchor, 0, {});
  const convolution_shape c = convolution_of(s);
  b.define("DNNOPT_M", c.outputs);
  b.define("DNNOPT_C", c.channels);
  define_windows(b, c);
  const index_expr rows = c.axes[0].output * c.axes[1].output;
  const std::int64_t width = c.axes[2].output.as_constant().value_or(64);
  b.define("DNNOPT_RUN", width >= 48 ? 64 : width >= 24 ? 32 : 16);
  const std::int64_t units = std::max<std::int64_t>(site.options.device->compute_units, 1);
  const std::int64_t planes = (c.batch * c.group * c.outputs).as_constant().value_or(1);
  // A work-item takes whole planes where there are many, so that its weights serve many rows.
  std::int64_t per_item = planes >= 4 * units ? rows.as_constant().value_or(64) : 8;
  const std::optional<plane_total> total = plane_total_in(site.block);
  // Whoever reduces planes computes them whole.
  const index_expr item_rows = total ? max(rows, 1) : index_expr(std::max<std::int64_t>(per_item, 1));
  b.define("DNNOPT_ROWS", item_rows);
  define_image_load(b, s, c);
  const index_expr z = b.index("z", c.batch * c.group);
  const index_expr m = b.index("m", c.outputs);
  const index_expr channel = mod(z, c.group) * c.outputs + m;
  define_plane_weights(b, s, c);
  const std::array<index_expr, 3> o{b.index("od", c.axes[0].output), b.index("oh", c.axes[1].output),
                                    b.index("ow", c.axes[2].output)};
  std::vector<index_expr> at{floordiv(z, c.group), channel};
  if (c.pointwise) {
    const shape& out = s.out_dims();
    for (const index_expr& i : b.index_at(shape(out.begin() + 2, out.end()), o[2])) at.push_back(i);
  } else {
    at.insert(at.end(), o.end() - static_cast<std::ptrdiff_t>(c.rank), o.end());
  }
  b.define_store(
      "dnnopt_store", n.outputs[0], at, std::vector<std::string>{"z", "m", "od", "oh", "ow"}, compute_type::real,
      [&] { return biased(b, s, channel); }, total ? total->result : no_value, total ? total->planes : no_value);
  if (total) define_plane_total(b, *total, at, std::vector<std::string>{"z", "m"});
  kernel_plan plan = b.finish(kernels::prelude, kernels::convolution_rows, "convolution_rows");
  plan.global = {total ? index_expr(1) : ceildiv(rows, item_rows), c.outputs, c.batch * c.group};
  plan.local = {1, 1, 1};
  plan.flops = c.batch * c.group * c.outputs * c.positions() * c.channels * c.window() * 2;
  lowered_node result;
  result.kernels.push_back(std::move(plan));
  return result;
}

}  // namespace dnnopt::codegen

#endif  // DNNOPT_BACKEND_CODEGEN_FRAMES_CONVOLUTIONS_LOWER_CONVOLUTION_HPP
