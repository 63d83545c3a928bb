// Owns the sizes of the kernels of products of bytes.
#ifndef DNNOPT_BACKEND_CODEGEN_FRAMES_DOTS_CHOOSE_HPP
#define DNNOPT_BACKEND_CODEGEN_FRAMES_DOTS_CHOOSE_HPP

#include <cstddef>
#include <cstdint>
#include <string>

#include <dnnopt/backend/codegen/choice.hpp>
#include <dnnopt/backend/codegen/frames/convolutions/choose.hpp>
#include <dnnopt/backend/codegen/frames/dots/dot_site.hpp>
#include <dnnopt/backend/codegen/frames/products/choose.hpp>

namespace dnnopt::codegen {

/// The extents of a product whose inner elements are counted in quads, which take the place of floats.
[[nodiscard]] inline product_extents in_quads(const product_extents& e) {
  return {e.batch, e.rows, e.columns, ceildiv(e.inner, quad_width)};
}

/// Lessens the quads that panels hold at a time until they fit into local memory, and returns the bytes that they take
/// then, which are too many where nothing fits. Rows are summed sixteen at a time, beyond the end of the last panel.
[[nodiscard]] inline std::uint64_t fit_quads(panel_sizes& p, const lowering_site& site, const product_extents& e,
                                             bool a_packed, bool b_packed) {
  const std::uint64_t behind = a_packed ? 0 : 16 * quad_width;
  const std::int64_t quads = e.inner.as_constant().value_or(std::int64_t{1} << 30);
  const auto bytes = [&] { return panel_bytes(p, quads, a_packed, b_packed) + behind; };
  while (bytes() > site.local_memory() && p.block_inner > 1) --p.block_inner;
  return bytes();
}

/// Blocks of a product of bytes for processors. A constant operand is packed once; the second one where both are.
[[nodiscard]] inline choice_or_reason choose_dot_panels(const lowering_site& site) {
  if (!site.prefers_vectors()) return "the device does not prefer wide vectors";
  if (std::string why = reject_bytes(site); !why.empty()) return why;
  kernel_builder b(site.block, site.options.emitters);
  const auto c = contraction_of(b, site);
  if (!c) return "no product of two operands over whole dims";
  if (c->inner.empty()) return "nothing is summed";
  const framed_product p = product_of(b, site, true);
  if (std::string why = reject_large_result(p.e); !why.empty()) return why;
  const product_extents e = in_quads(p.e);
  const node& n = site.anchor_node();
  const auto packable = [&](std::size_t which, const index_expr& extent) {
    return packs_constant(site.block, p.operand(n, which)) && extent.is_constant() && p.e.inner.is_constant() &&
           p.batch_of(which).is_constant();
  };
  const bool b_packed = packable(1, e.columns);
  const bool a_packed = !b_packed && packable(0, e.rows);
  panel_sizes sizes = choose_panels(site, e, a_packed, b_packed);
  const std::uint64_t bytes = fit_quads(sizes, site, e, a_packed, b_packed);
  if (bytes > site.local_memory()) return "panels take more than the local memory";
  choice made(a_packed || b_packed ? "dot_panels_packed" : "dot_panels");
  settle_panels(made, sizes, e, a_packed, b_packed);
  made.local_bytes = bytes;
  if (a_packed || b_packed) {
    const std::size_t which = b_packed ? 1 : 0;
    const std::int64_t extent = (b_packed ? e.columns : e.rows).constant();
    const std::int64_t padded = round_up(extent, b_packed ? sizes.columns() : sizes.rows);
    made.taken.push_back({p.c.slots[which], operand_form::packed});
    settle_kept(made, p.batch_of(which).constant() * e.inner.constant(), extent, padded);
  }
  if (b_packed) add_version_of_few_rows(made, sizes, e, b.translate_back(p.e.rows), true);
  return made;
}

/// The product of a convolution of bytes with image patches: quads are four channels of one window element.
[[nodiscard]] inline product_extents quads_of_patches(const convolution_shape& c) {
  return {c.batch * c.group, c.outputs, c.positions(), ceildiv(c.channels, quad_width) * c.window()};
}

/// Rows of an image that a work-item keeps as quads for all its positions, and quads of a row.
struct kept_image {
  std::int64_t rows = 0;  ///< 0: none, patches are read from the image
  std::int64_t width = 0;

  /// Bytes of local memory, with what vectors read and write beyond the end of rows and panels.
  [[nodiscard]] std::uint64_t bytes(const convolution_shape& c) const {
    const std::int64_t quads = (c.channels.constant() + quad_width - 1) / quad_width;
    return static_cast<std::uint64_t>(quad_width * (quads * rows * width + 16 * c.axes[2].stride + 16));
  }
};

/// Where windows of two dims overlap and their extents are known: an element of the image is in several patches then.
[[nodiscard]] inline kept_image kept_image_of(const convolution_shape& c, const panel_sizes& p) {
  const window_axis& high = c.axes[1];
  const window_axis& wide = c.axes[2];
  if (c.rank > 2 || high.kernel * wide.kernel == 1 || !c.channels.is_constant()) return {};
  for (const window_axis* axis : {&high, &wide})
    if (!axis->pad_begin.is_constant() || !axis->input.is_constant() || !axis->output.is_constant()) return {};
  const std::int64_t run = std::max<std::int64_t>(wide.output.constant(), 1);
  const std::int64_t above = std::min((p.block_columns + run - 2) / run, high.output.constant() - 1);
  const auto reach = [](const window_axis& axis, std::int64_t last) {
    return last * axis.stride + (axis.kernel - 1) * axis.dilation + 1;
  };
  return {reach(high, std::max<std::int64_t>(above, 0)), reach(wide, run - 1)};
}

/// Blocks of a convolution of bytes for processors. Weights are packed once.
[[nodiscard]] inline choice_or_reason choose_dot_convolution(const lowering_site& site) {
  if (!site.prefers_vectors()) return "the device does not prefer wide vectors";
  if (std::string why = reject_bytes(site); !why.empty()) return why;
  const auto& dims = site.input(0).dims;
  if (!dims || dims->size() < 3 || dims->size() > 5) return "other than one to three spatial dims";
  if (!packs_constant(site.block, site.anchor_node().inputs[1])) return "weights that are computed";
  if (plane_total_in(site.block) || window_total_node(site) != no_node || staged_windows_in(site) != no_node)
    return "products of bytes reduce no planes";
  kernel_builder b(site.block, site.options.emitters);
  const convolution_shape c = convolution_of(element_site(b, site.anchor, 0, {}));
  const product_extents e = quads_of_patches(c);
  if (std::string why = reject_large_result(e); !why.empty()) return why;
  panel_sizes p = choose_panels(site, e, true, false);
  share_patches(p, site, e, c);
  const std::uint64_t bytes = fit_quads(p, site, e, true, false);
  if (bytes > site.local_memory()) return "patches take more than the local memory";
  choice made("dot_convolution");
  settle_panels(made, p, e, true, false);
  if (const kept_image kept = kept_image_of(c, p); kept.rows > 0 && bytes + kept.bytes(c) <= site.local_memory()) {
    made.with("image_rows", kept.rows).with("image_width", kept.width);
    made.local_bytes = bytes + kept.bytes(c);
  }
  const std::int64_t outputs = c.outputs.constant();
  made.taken.push_back({1, operand_form::packed});
  settle_kept(made, c.group * e.inner.constant(), outputs, round_up(outputs, p.rows));
  return made;
}

}  // namespace dnnopt::codegen

#endif  // DNNOPT_BACKEND_CODEGEN_FRAMES_DOTS_CHOOSE_HPP
