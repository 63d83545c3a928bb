// Owns the kernels of products of bytes: MatMulInteger and ConvInteger in panels.
#ifndef DNNOPT_BACKEND_CODEGEN_FRAMES_DOTS_EMIT_HPP
#define DNNOPT_BACKEND_CODEGEN_FRAMES_DOTS_EMIT_HPP

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dnnopt/backend/codegen/elements/matrix_product.hpp>
#include <dnnopt/backend/codegen/frames/dots/choose.hpp>
#include <dnnopt/backend/codegen/frames/dots/parameters.hpp>
#include <dnnopt/backend/codegen/frames/products/emit.hpp>

namespace dnnopt::codegen {

namespace detail {

/// Defines the sizes of the frame's blocks, and what the operands' bytes are.
inline void define_dot_panels(kernel_builder& b, const panel_sizes& p, const product_extents& e,
                              const byte_signs& signs) {
  b.define("DNNOPT_M", e.rows);
  b.define("DNNOPT_N", e.columns);
  b.define("DNNOPT_QUADS", e.inner);
  define_panel_sizes(b, p, e.inner);
  if (e.columns.is_constant() && e.columns.constant() % p.columns() == 0) b.define("DNNOPT_WHOLE_PANELS", 1);
  b.define("DNNOPT_A_NATURAL", signs.a_natural ? 1 : 0);
  b.define("DNNOPT_A_FLIP", signs.a_flip);
  b.define("DNNOPT_B_FLIP", signs.b_flip);
}

/// Defines `name`(z, `along`), the zero point of an operand as the frame sees it; `read(s)` emits the model's own.
template <class Read>
void define_zero(kernel_builder& b, const lowering_site& site, const byte_operand& o, std::string_view name,
                 std::string_view along, Read&& read) {
  b.define_function(name, compute_type::integer, std::vector<std::string>{"z", std::string(along)}, [&] {
    const element_site s(b, site.anchor, 0, {});
    const std::string own = site.has_input(o.zero_input) ? read(s) : std::string("0");
    return own + " + " + std::to_string(turned_zero(site.input(o.input).type, o.flip));
  });
}

/// The memory of a packed operand: quads, and as many more as a vector reads beyond the last panel.
[[nodiscard]] inline scratch_buffer packed_quads(std::int64_t ints) { return {(ints + 16) * quad_width, true}; }

}  // namespace detail

[[nodiscard]] inline lowered_node emit_dot_panels(const lowering_site& site, const choice& chosen) {
  const node& n = site.anchor_node();
  kernel_builder b(site.block, site.options.emitters);
  const framed_product p = product_of(b, site, true);
  const product_extents e = in_quads(p.e);
  const panel_sizes sizes = panels_of(chosen);
  const index_expr z = b.index("z", p.e.batch);
  const index_expr m = b.index("m", p.e.rows);
  const index_expr k = b.index("k", p.e.inner);
  const index_expr column = b.index("n", p.e.columns);
  const bool a_packed = chosen.form_of(p.c.slots[0]) == operand_form::packed;
  const bool b_packed = chosen.form_of(p.c.slots[1]) == operand_form::packed;
  const byte_signs signs = signs_of(site.input(p.c.slots[0]).type, site.input(p.c.slots[1]).type, a_packed);
  const std::array<byte_operand, 2> operands{byte_operand{p.c.slots[0], p.c.slots[0] + 2, signs.a_flip},
                                             byte_operand{p.c.slots[1], p.c.slots[1] + 2, signs.b_flip}};
  lowered_node result;
  detail::define_dot_panels(b, sizes, e, signs);
  b.define("DNNOPT_K", p.e.inner);
  const panel_steps steps = steps_of_panels(site, sizes, e, a_packed);
  define_steps(b, steps, sizes);
  b.define("DNNOPT_B_INNER_FIRST", inner_first(p.c, 1) ? 1 : 0);
  for (const std::size_t which : {std::size_t{0}, std::size_t{1}}) {
    const byte_operand& o = operands[which];
    if (!o.may_have_zero(site)) continue;
    b.define(which == 0 ? "DNNOPT_A_ZERO" : "DNNOPT_B_ZERO", 1);
    if (which == 1 && site.has_input(o.zero_input) && !(element_count(b.dims(n.inputs[o.zero_input])) == index_expr(1)))
      b.define("DNNOPT_B_ZERO_EACH", 1);
    detail::define_zero(b, site, o, which == 0 ? "dnnopt_zero_a" : "dnnopt_zero_b", which == 0 ? "m" : "n",
                        [&](const element_site& s) {
                          const auto at = p.c.operand_index(b, which, z, which == 0 ? m : column, 0);
                          return zero_point_of(s, o.zero_input, o.input, at, o.input == 0);
                        });
  }
  if (a_packed || b_packed) {
    const std::size_t which = b_packed ? 1 : 0;
    const std::int64_t extent = (which == 1 ? p.e.columns : p.e.rows).constant();
    const std::int64_t width = which == 1 ? sizes.columns() : sizes.rows;
    const std::int64_t batch = p.batch_of(which).constant();
    result.scratch.push_back(detail::packed_quads(batch * round_up(extent, width) * e.inner.constant()));
    result.prepare.push_back(pack_quads_kernel(
        site, batch, extent, e.inner.constant(), width, operands[which].flip,
        [&](const index_expr& quad, const index_expr& r) {
          return kernel_builder::within(quad * quad_width + r, p.e.inner.constant());
        },
        [&](kernel_builder& own, const index_expr& pz, const index_expr& i, const index_expr& quad,
            const index_expr& r) {
          const framed_product again = product_of(own, site, true);
          const index_expr inner = own.define_index("k", quad * quad_width + r, again.e.inner);
          return own.emit(again.operand(site.anchor_node(), which), again.c.operand_index(own, which, pz, i, inner));
        }));
    b.define(which == 1 ? "DNNOPT_B_PACKED" : "DNNOPT_A_PACKED", 1);
    b.define(which == 1 ? "DNNOPT_B" : "DNNOPT_A", b.scratch(0, dtype::int8, false));
    b.define(which == 1 ? "DNNOPT_B_BATCH" : "DNNOPT_A_BATCH", batch == 1 ? "0" : "z");
  }
  if (!a_packed) b.define_load("dnnopt_load_a", p.operand(n, 0), p.c.operand_index(b, 0, z, m, k), product_names_a);
  if (!b_packed)
    b.define_load("dnnopt_load_b", p.operand(n, 1), p.c.operand_index(b, 1, z, column, k), product_names_b);
  b.define_store("dnnopt_store", n.outputs[0], p.c.output_index(b, z, m, column), product_names_store,
                 compute_type::integer, [] { return std::string("value"); });
  kernel_plan plan =
      b.finish(std::string(kernels::prelude) + std::string(site.options.dot->text), dot_panels_frame, chosen.version);
  launch_panels(plan, steps, e);
  plan.flops = p.e.batch * p.e.rows * p.e.columns * p.e.inner * 2;
  result.kernels.push_back(std::move(plan));
  return result;
}

[[nodiscard]] inline lowered_node emit_dot_convolution(const lowering_site& site, const choice& chosen) {
  const node& n = site.anchor_node();
  kernel_builder b(site.block, site.options.emitters);
  const element_site s(b, site.anchor, 0, {});
  const convolution_shape c = convolution_of(s);
  const product_extents e = quads_of_patches(c);
  const panel_sizes p = panels_of(chosen);
  const index_expr z = b.index("z", e.batch);
  const index_expr m = b.index("m", e.rows);
  const byte_signs signs = signs_of(site.input(1).type, site.input(0).type, true);
  lowered_node result;
  b.define("DNNOPT_CONVOLUTION", 1);
  b.define("DNNOPT_CHANNELS", c.channels);
  if (const auto rows = chosen.find("image_rows")) {
    b.define("DNNOPT_IMAGE_ROWS", *rows);
    b.define("DNNOPT_IMAGE_WIDTH", chosen["image_width"]);
  }
  detail::define_dot_panels(b, p, e, signs);
  const panel_steps steps = steps_of_panels(site, p, e, true);
  define_steps(b, steps, p);
  define_windows(b, dot_panels_frame, c);
  define_image_load(b, s, c);
  const byte_operand weights{1, 3, signs.a_flip};
  const byte_operand image{0, 2, signs.b_flip};
  if (weights.may_have_zero(site)) {
    b.define("DNNOPT_A_ZERO", 1);
    detail::define_zero(b, site, weights, "dnnopt_zero_a", "m", [&](const element_site& own) {
      return own.read_one_or_each(3, own.out_dims()[1], mod(z, c.group) * c.outputs + m);
    });
  }
  if (image.may_have_zero(site)) {
    b.define("DNNOPT_B_ZERO", 1);
    detail::define_zero(b, site, image, "dnnopt_zero_b", "n",
                        [](const element_site& own) { return own.read_scalar(2); });
  }
  const std::int64_t outputs = c.outputs.constant();
  const std::int64_t channels = c.channels.constant();
  const std::int64_t window = c.window().constant();
  const std::int64_t of_element = (channels + quad_width - 1) / quad_width;
  result.scratch.push_back(detail::packed_quads(c.group * round_up(outputs, p.rows) * e.inner.constant()));
  const auto channel_of = [&](const index_expr& quad, const index_expr& r) {
    return mod(quad, of_element) * quad_width + r;
  };
  result.prepare.push_back(pack_quads_kernel(
      site, c.group, outputs, e.inner.constant(), p.rows, signs.a_flip,
      [&](const index_expr& quad, const index_expr& r) {
        return kernel_builder::within(channel_of(quad, r), channels);
      },
      [&](kernel_builder& own, const index_expr& group, const index_expr& row, const index_expr& quad,
          const index_expr& r) {
        const element_site own_site(own, site.anchor, 0, {});
        const index_expr channel = own.define_index("c", channel_of(quad, r), channels);
        return own.emit(n.inputs[1], weight_index(own_site, convolution_of(own_site), group, row,
                                                  channel * window + floordiv(quad, of_element)));
      }));
  b.define("DNNOPT_A_PACKED", 1);
  b.define("DNNOPT_A", b.scratch(0, dtype::int8, false));
  b.define("DNNOPT_A_BATCH", c.group == 1 ? std::string("0") : "(z % " + std::to_string(c.group) + ")");
  b.define_store("dnnopt_store", n.outputs[0], output_index(b, s, c, m, b.index("n", e.columns)), product_names_store,
                 compute_type::integer, [] { return std::string("value"); });
  kernel_plan plan =
      b.finish(std::string(kernels::prelude) + std::string(site.options.dot->text), dot_panels_frame, chosen.version);
  launch_panels(plan, steps, e);
  plan.flops = e.batch * e.rows * e.columns * c.channels * c.window() * 2;
  result.kernels.push_back(std::move(plan));
  return result;
}

}  // namespace dnnopt::codegen

#endif  // DNNOPT_BACKEND_CODEGEN_FRAMES_DOTS_EMIT_HPP
