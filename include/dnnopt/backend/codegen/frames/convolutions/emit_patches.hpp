// Owns the kernels of convolutions as products with image patches, in panels and in tiles.
#ifndef DNNOPT_BACKEND_CODEGEN_FRAMES_CONVOLUTIONS_EMIT_PATCHES_HPP
#define DNNOPT_BACKEND_CODEGEN_FRAMES_CONVOLUTIONS_EMIT_PATCHES_HPP

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <dnnopt/backend/codegen/frames/convolutions/choose.hpp>
#include <dnnopt/backend/codegen/frames/convolutions/staged/emit_staged.hpp>
#include <dnnopt/backend/codegen/frames/convolutions/texel_patches.hpp>
#include <dnnopt/backend/codegen/frames/products/choose.hpp>
#include <dnnopt/backend/codegen/frames/products/parameters.hpp>
#include <dnnopt/backend/codegen/frames/sources.hpp>

namespace dnnopt::codegen {

/// Defines dnnopt_store(z, m, n, value) of a convolution as a product, and what frames call where planes or windows of
/// it are reduced.
inline void define_patch_store(kernel_builder& b, const lowering_site& site, const std::optional<plane_total>& total,
                               const std::optional<window_total>& windows) {
  const node& n = site.anchor_node();
  const element_site s(b, site.anchor, 0, {});
  const convolution_shape c = convolution_of(s);
  const product_extents e = product_of_patches(c, false);
  const index_expr row = b.index("m", e.rows);
  const std::vector<index_expr> at = output_index(b, s, c, row, b.index("n", e.columns));
  const std::vector<std::string> names{"z", "m", "n"};
  const auto finish = [&] { return biased(b, s, at[1]); };
  if (windows) {
    define_window_total(b, matrix_panels_frame, *windows, n.outputs[0], at, names, finish);
    return;
  }
  b.define_store("dnnopt_store", n.outputs[0], at, names, compute_type::real, finish, total ? total->result : no_value,
                 total ? total->planes : no_value);
  if (total) define_plane_total(b, matrix_panels_frame, *total, at, std::vector<std::string>{"z", "m"});
}

[[nodiscard]] inline lowered_node emit_convolution_panels(const lowering_site& site, const choice& chosen) {
  if (chosen.find("points")) return emit_convolution_points(site, chosen);
  const node& n = site.anchor_node();
  kernel_builder b(site.block, site.options.emitters);
  const element_site s(b, site.anchor, 0, {});
  const convolution_shape c = convolution_of(s);
  const product_extents e = product_of_patches(c, false);
  const panel_sizes p = panels_of(chosen);
  const index_expr z = b.index("z", e.batch);
  const index_expr m = b.index("m", e.rows);
  const index_expr k = b.index("k", e.inner);
  const index_expr offset = offset_in_image(c, e, z, k, b.index("n", e.columns));
  lowered_node result;
  const std::optional<window_total> windows = window_total_in(site);
  if (chosen.form_of(0) == operand_form::straight) (void)define_straight_image(b, n.inputs[0], c, e, offset);
  b.define("DNNOPT_CONVOLUTION", 1);
  define_panels(b, p, {e.batch, e.rows, windows ? index_expr(windows->positions()) : e.columns, e.inner});
  // Who reduces planes or windows, or stages windows, has blocks that hold them whole.
  const node_id staged = staged_windows_in(site);
  const std::optional<plane_total> total = plane_total_in(site.block);
  const bool packed = chosen.form_of(1) == operand_form::packed;
  const panel_steps steps = total || windows || staged != no_node ? panel_steps{p.block_rows, p.block_columns}
                                                                  : steps_of_panels(site, p, e, packed);
  define_steps(b, steps, p);
  define_windows(b, matrix_panels_frame, c);
  if (staged != no_node)
    define_staged_windows(b, matrix_panels_frame, staged, site.anchor);
  else
    define_image_load(b, s, c);
  if (packed) {
    define_packed_weights(result, b, site, c, p.rows);
    b.define("DNNOPT_A_PACKED", 1);
  } else {
    b.define_load("dnnopt_load_a", n.inputs[1], weight_index(s, c, mod(z, c.group), m, k),
                  std::vector<std::string>{"z", "m", "k"});
  }
  define_patch_store(b, site, total, windows);
  kernel_plan plan = b.finish(kernels::prelude, matrix_panels_frame, chosen.version);
  launch_panels(plan, steps, e);
  plan.tuning = chosen.tuning;
  if (windows) plan.global[0] = ceildiv(windows->positions(), p.block_columns / windows->rows);
  result.kernels.push_back(std::move(plan));
  return result;
}

/// A convolution in tiles, in the symbols of a builder: the product of its weights with patches of the image.
struct tiled_patches {
  element_site s;
  convolution_shape c;
  product_extents e;
  bool joined = false;         ///< columns count the positions of all images
  bool texel_patches = false;  ///< the image is read from texels
  bool texel_weights = false;  ///< weights are packed as texels

  tiled_patches(kernel_builder& b, const lowering_site& site, const choice& chosen)
      : s(b, site.anchor, 0, {}),
        c(convolution_of(s)),
        joined(chosen["joins_images"] != 0),
        texel_patches(chosen.form_of(0) == operand_form::texels),
        texel_weights(chosen.form_of(1) == operand_form::texels) {
    e = product_of_patches(c, texel_patches);
    if (joined) e = joined_images(c, e);
  }
  [[nodiscard]] index_expr image(const index_expr& z, const index_expr& position) const {
    return joined ? floordiv(position, c.positions()) : floordiv(z, c.group);
  }
  [[nodiscard]] index_expr place(const index_expr& position) const {
    return joined ? mod(position, c.positions()) : position;
  }
};

/// Packs weights as texels once, and defines dnnopt_load4_a(z, m, k). Returns whether that gives bits of halves.
[[nodiscard]] inline bool define_texel_weights(lowered_node& result, kernel_builder& b, const lowering_site& site,
                                               const tiled_patches& t) {
  const value_id weights = site.anchor_node().inputs[1];
  const index_expr z = b.index("z", t.e.batch);
  const index_expr output = b.index("m", t.e.rows);
  return define_texel_constant(
      result, b, site, {weights, t.c.group, t.e.rows.constant(), t.e.inner.constant()}, "dnnopt_load4_a",
      std::vector<std::string>{"z", "m", "k"}, mod(z, t.c.group), output, b.index("k", t.e.inner),
      [&](kernel_builder& own, const index_expr& group, const index_expr& row, const index_expr& inner) {
        const element_site own_site(own, site.anchor, 0, {});
        const convolution_shape x = convolution_of(own_site);
        if (!t.texel_patches) return own.emit(weights, weight_index(own_site, x, group, row, inner));
        return emit_weight_of_texels(own, own_site, x, weights, group, row, inner);
      },
      !multiplies_halves(site, b));
}

/// Defines dnnopt_load_b(z, k, n), an element of a patch, which is 0 in padding.
inline void define_patch_load(kernel_builder& b, const tiled_patches& t) {
  const index_expr z = b.index("z", t.e.batch);
  const index_expr k = b.index("k", t.e.inner);
  const index_expr position = b.index("n", t.e.columns);
  b.define_function("dnnopt_load_b", compute_type::real, std::vector<std::string>{"z", "k", "n"},
                    [&] { return emit_patch_element(b, t.s, t.c, z, k, position, t.joined); });
}

/// Defines dnnopt_load4_b(z, k, n) where four positions of a pointwise convolution's image lie side by side; returns 4,
/// or 1 where they do not.
[[nodiscard]] inline int define_positions_load4(kernel_builder& b, const tiled_patches& t, const index_expr& position,
                                                bool bits) {
  const index_expr z = b.index("z", t.e.batch);
  const shape& x = t.s.dims(0);
  std::vector<index_expr> at{t.image(z, position), mod(z, t.c.group) * t.c.channels + b.index("k", t.e.inner)};
  for (const index_expr& i : b.index_at(shape(x.begin() + 2, x.end()), t.place(position))) at.push_back(i);
  const value_id image = t.s.n().inputs[0];
  return define_load4_of_run(b, "dnnopt_load4_b", image, b.offset_of(image, at), position, t.e.columns,
                             std::vector<std::string>{"z", "k", "n"}, bits);
}

/// Defines the store of a convolution in tiles in the symbols of `own`, and returns the extents in them.
[[nodiscard]] inline product_extents define_tiled_store(kernel_builder& own, const lowering_site& site,
                                                        const choice& chosen, store_direction along) {
  const tiled_patches t(own, site, chosen);
  const value_id out = site.anchor_node().outputs[0];
  const auto output_at = [&](const index_expr& row, const index_expr& column) {
    return output_index(own, t.s, t.c, row, column, t.joined);
  };
  // Whatever the image is read from, a store knows channels that are not padded.
  product_extents e = product_of_patches(t.c, false);
  if (t.joined) e = joined_images(t.c, e);
  if (along != store_direction::single) {
    const four_results four = results_along(own, along, e.rows, e.columns, output_at);
    own.define_store4("dnnopt_store4", out, four, names_of_store4(along),
                      [&](std::size_t j) { return biased(own, t.s, four.at[j][1]); });
    return e;
  }
  const std::vector<index_expr> at = output_at(own.index("m", e.rows), own.index("n", e.columns));
  own.define_store("dnnopt_store", out, at, std::vector<std::string>{"z", "m", "n"}, compute_type::real,
                   [&] { return biased(own, t.s, at[1]); });
  return e;
}

/// Errors: unsupported where an output's texels are no four results of the frame.
[[nodiscard]] inline lowered_node emit_convolution_tiles(const lowering_site& site, const choice& chosen) {
  const node& n = site.anchor_node();
  kernel_builder b(site.block, site.options.emitters);
  const tiled_patches t(b, site, chosen);
  const convolution_shape& c = t.c;
  const index_expr z = b.index("z", t.e.batch);
  const index_expr m = b.index("m", t.e.rows);
  const index_expr k = b.index("k", t.e.inner);
  const index_expr position = b.index("n", t.e.columns);
  lowered_node result;
  bool a_bits = false;
  if (t.texel_weights) {
    a_bits = define_texel_weights(result, b, site, t);
  } else {
    a_bits = fetches_bits(site, b, n.inputs[1]);
    b.load_halves_as_bits(a_bits);
    b.define_load("dnnopt_load_a", n.inputs[1], weight_index(t.s, c, mod(z, c.group), m, k),
                  std::vector<std::string>{"z", "m", "k"});
    b.load_halves_as_bits(false);
  }
  const bool b_bits = !t.texel_patches && fetches_bits(site, b, n.inputs[0]);
  // Of a window each element of a patch costs tests of the padding and an index, which four channels share in a texel.
  if (!t.texel_patches && c.window().constant() > 1 && may_ask_for_texels(b, site, c, t.e.inner))
    result.sooner_as_texels.push_back(n.inputs[0]);
  if (t.texel_patches) {
    define_texel_patches(b, t.s, c, t.e);
  } else {
    b.load_halves_as_bits(b_bits);
    define_patch_load(b, t);
    b.load_halves_as_bits(false);
  }
  b.define("DNNOPT_A_INNER_FIRST", t.texel_weights ? 0 : 1);
  b.define("DNNOPT_B_INNER_FIRST", t.texel_patches ? 2 : 0);
  b.define("DNNOPT_A_BITS", a_bits ? 1 : 0);
  b.define("DNNOPT_B_BITS", b_bits ? 1 : 0);
  b.define("DNNOPT_A_WIDTH",
           t.texel_weights ? 4
                           : define_load4_of_run(b, "dnnopt_load4_a", n.inputs[1],
                                                 b.offset_of(n.inputs[1], weight_index(t.s, c, mod(z, c.group), m, k)),
                                                 k, t.e.inner, std::vector<std::string>{"z", "m", "k"}, a_bits));
  if (t.texel_patches)
    b.define("DNNOPT_B_WIDTH", 4);
  else if (c.pointwise)
    b.define("DNNOPT_B_WIDTH", define_positions_load4(b, t, position, b_bits));
  store_direction along = direction_of_texels(
      b, site.block, n.outputs[0], t.e.rows, t.e.columns,
      [&](const index_expr& row, const index_expr& column) { return output_index(b, t.s, c, row, column, t.joined); });
  if (along == store_direction::single) along = static_cast<store_direction>(chosen["row_direction"]);
  finish_tiles(
      result, b, site, tiles_of(chosen), t.e, "convolution_tiles",
      [&](kernel_builder& own) { return define_tiled_store(own, site, chosen, along); }, along);
  return result;
}

}  // namespace dnnopt::codegen

#endif  // DNNOPT_BACKEND_CODEGEN_FRAMES_CONVOLUTIONS_EMIT_PATCHES_HPP
