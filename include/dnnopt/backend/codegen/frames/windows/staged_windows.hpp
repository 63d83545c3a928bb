// Owns how a convolution's frame reduces windows of what it reads: each column of pooled elements is computed once,
// when it is packed.
#ifndef DNNOPT_BACKEND_CODEGEN_FRAMES_WINDOWS_STAGED_WINDOWS_HPP
#define DNNOPT_BACKEND_CODEGEN_FRAMES_WINDOWS_STAGED_WINDOWS_HPP

#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <dnnopt/backend/codegen/elements/pooling.hpp>
#include <dnnopt/backend/codegen/frames/products/matrix_frame.hpp>
#include <dnnopt/backend/codegen/frames/rows/plane_totals.hpp>
#include <dnnopt/backend/codegen/frames/windows/window_axes.hpp>
#include <dnnopt/backend/codegen/frames/windows/window_totals.hpp>

namespace dnnopt::codegen {

/// The member of a block that reduces windows of planes which the convolution that is the site's anchor reads; no_node
/// where there is none.
[[nodiscard]] inline node_id staged_windows_in(const lowering_site& site) {
  const value_id read = site.anchor_node().inputs[0];
  for (const node_id id : site.block.members) {
    const node& n = site.block.g.node_at(id);
    if (!n.op->window_reduction.empty() && stands_behind(site.block, read, n.outputs[0])) return id;
  }
  return no_node;
}

/// Why no frame reduces windows that a convolution reads; empty where panels may.
[[nodiscard]] inline std::string reject_staged_windows(const lowering_site& site, node_id pool) {
  kernel_builder b(site.block, site.options.emitters);
  const element_site s(b, pool, 0, {});
  return s.input_compute() != compute_type::real || s.compute() != compute_type::real ? "the frame reduces floats" : "";
}

/// Defines what the panel frame calls to fill columns with what member `pool` reduces: DNNOPT_STAGED, its windows as
/// define_axes with prefix DNNOPT_POOL_, what define_taking defines, dnnopt_load_window(z, c, d, h, w), the element of
/// its planes, and dnnopt_finish_window(z, c, od, oh, ow, value), the element that the anchor reads there, made from
/// the reduced `value`; z counts images. Errors: unsupported where more than element-wise operators lies between the
/// pool and the anchor.
inline void define_staged_windows(kernel_builder& b, const kernel_frame& frame, node_id pool, node_id anchor) {
  const element_site s(b, pool, 0, {});
  const shape x = s.dims(0);
  const std::vector<window_axis> own = pool_windows(s);
  const three_axes axes = brought_to_three(own, s.out_dims());
  b.define("DNNOPT_STAGED", 1);
  define_axes(b, frame, axes, "DNNOPT_POOL_");
  define_taking(b, frame, s.n().op->window_reduction, axes[0].kernel * axes[1].kernel * axes[2].kernel);
  const std::vector<index_expr> plane{b.index("z", x[0]), b.index("c", x[1])};
  const auto placed = [&](const std::array<index_expr, 3>& position) {
    std::vector<index_expr> at = plane;
    at.insert(at.end(), position.end() - static_cast<std::ptrdiff_t>(own.size()), position.end());
    return at;
  };
  b.define_load("dnnopt_load_window", s.n().inputs[0],
                placed({b.index("d", axes[0].input), b.index("h", axes[1].input), b.index("w", axes[2].input)}),
                std::vector<std::string>{"z", "c", "d", "h", "w"});
  b.define_scalar_function(
      "dnnopt_finish_window", std::vector<std::string>{"z", "c", "od", "oh", "ow"}, compute_type::real, [&] {
        const std::vector<index_expr> at =
            placed({b.index("od", axes[0].output), b.index("oh", axes[1].output), b.index("ow", axes[2].output)});
        const std::string count = "(float)(" + pooled_count(s, own, std::span(at).subspan(2)) + ")";
        const reduction_row& reduction = *find_reduction(s.n().op->window_reduction);
        b.bind(s.n().outputs[0], at, b.let(compute_type::real, fill_reduction(reduction.finish, "value", "", count)));
        return b.emit(b.node_at(anchor).inputs[0], at);
      });
}

}  // namespace dnnopt::codegen

#endif  // DNNOPT_BACKEND_CODEGEN_FRAMES_WINDOWS_STAGED_WINDOWS_HPP
