// Owns the kernel of windows that slide over single planes: depthwise convolution, maximum and average pooling.
#ifndef DNNOPT_BACKEND_CODEGEN_FRAMES_WINDOWS_EMIT_HPP
#define DNNOPT_BACKEND_CODEGEN_FRAMES_WINDOWS_EMIT_HPP

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dnnopt/backend/codegen/frames/sources.hpp>
#include <dnnopt/backend/codegen/frames/windows/choose.hpp>
#include <dnnopt/backend/codegen/frames/windows/parameters.hpp>

namespace dnnopt::codegen {

namespace detail {

/// The index of element `name` of plane z of a value whose planes are `dims` without the first two; `channel` within
/// its image.
[[nodiscard]] inline std::vector<index_expr> element_of_plane(kernel_builder& b, const convolution_shape& c,
                                                              const index_expr& z, const index_expr& channel,
                                                              const shape& dims, std::string_view name) {
  const shape plane(dims.begin() + 2, dims.end());
  std::vector<index_expr> at{floordiv(z, c.group), channel};
  for (const index_expr& one : b.index_at(plane, b.index(name, element_count(plane)))) at.push_back(one);
  return at;
}

}  // namespace detail

[[nodiscard]] inline lowered_node emit_window_planes(const lowering_site& site, const choice& chosen) {
  const node& n = site.anchor_node();
  const window_family family = find_window_operator(n.op->domain, n.op->name)->family;
  kernel_builder b(site.block, site.options.emitters);
  const element_site s(b, site.anchor, 0, {});
  const convolution_shape c = planes_of(s, family);
  b.define("DNNOPT_FAMILY", static_cast<std::int64_t>(family));
  b.define("DNNOPT_Z", c.batch * c.group);
  b.define("DNNOPT_M", c.outputs);
  define_windows(b, window_planes_frame, c);
  const bool flat = chosen.find("flat").value_or(0) != 0;
  const index_expr z = b.index("z", c.batch * c.group);
  const index_expr m = b.index("m", c.outputs);
  const index_expr channel = mod(z, c.group) * c.outputs + m;
  if (flat)
    b.define_load("dnnopt_load_flat", n.inputs[0], detail::element_of_plane(b, c, z, mod(z, c.group), s.dims(0), "i"),
                  std::vector<std::string>{"z", "i"});
  else
    define_image_load(b, s, c);
  if (family == window_family::weighted_sum) define_plane_weights(b, s, c);
  const std::optional<plane_total> total = plane_total_in(site.block);
  const std::vector<index_expr> at =
      flat ? detail::element_of_plane(b, c, z, channel, s.out_dims(), "o") : plane_element(b, s, c, z, channel);
  b.define_store(
      flat ? "dnnopt_store_flat" : "dnnopt_store", n.outputs[0], at,
      flat ? std::vector<std::string>{"z", "m", "o"} : std::vector<std::string>{"z", "m", "od", "oh", "ow"},
      compute_type::real,
      [&] {
        if (family == window_family::weighted_sum) return biased(b, s, channel);
        if (family == window_family::greatest) return std::string("value");
        return b.let(compute_type::real,
                     window_mean(s, pool_windows(s), std::span(at).subspan(2), "value", compute_type::real));
      },
      total ? total->result : no_value, total ? total->planes : no_value);
  if (total) define_plane_total(b, window_planes_frame, *total, at, std::vector<std::string>{"z", "m"});
  define_sizes(b, window_planes_frame, chosen);
  window_blocks blocks;
  if (const auto span = chosen.find("span")) {
    blocks = window_blocks_of(c, *span, chosen["capacity"], site.compute_units(), total.has_value());
    b.define("DNNOPT_ACROSS", blocks.across);
    b.define("DNNOPT_COLUMNS", blocks.columns);
    b.define("DNNOPT_ROWS", blocks.rows);
    b.define("DNNOPT_BLOCKS", total ? blocks.in_plane : index_expr(1));
    b.define("DNNOPT_PLANES", blocks.planes);
  } else {
    blocks.in_plane = blocks_of(c.axes[1].output.constant(), chosen["rows"]);
    blocks.planes = chosen["planes"];
  }
  kernel_plan plan = b.finish(kernels::prelude, window_planes_frame, "window_planes");
  plan.global = {total ? index_expr(1) : blocks.in_plane, ceildiv(c.batch * c.group * c.outputs, blocks.planes),
                 index_expr(1)};
  plan.local = {1, 1, 1};
  plan.tuning = chosen.tuning;
  plan.flops = c.batch * c.group * c.outputs * c.positions() * c.window() * 2;
  lowered_node result;
  result.kernels.push_back(std::move(plan));
  return result;
}

}  // namespace dnnopt::codegen

#endif  // DNNOPT_BACKEND_CODEGEN_FRAMES_WINDOWS_EMIT_HPP
