// Owns the kernels of convolutions of thin groups: rows of an output channel, and four channels of a position in
// texels.
#ifndef DNNOPT_BACKEND_CODEGEN_FRAMES_CONVOLUTIONS_EMIT_THIN_HPP
#define DNNOPT_BACKEND_CODEGEN_FRAMES_CONVOLUTIONS_EMIT_THIN_HPP

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <dnnopt/backend/codegen/frames/convolutions/choose.hpp>
#include <dnnopt/backend/codegen/frames/convolutions/parameters.hpp>
#include <dnnopt/backend/codegen/frames/convolutions/texel_patches.hpp>
#include <dnnopt/backend/codegen/frames/sources.hpp>

namespace dnnopt::codegen {

[[nodiscard]] inline lowered_node emit_convolution_rows(const lowering_site& site, const choice& chosen) {
  const node& n = site.anchor_node();
  kernel_builder b(site.block, site.options.emitters);
  const element_site s(b, site.anchor, 0, {});
  const convolution_shape c = convolution_of(s);
  b.define("DNNOPT_C", c.channels);
  define_windows(b, convolution_rows_frame, c);
  const index_expr rows = c.axes[0].output * c.axes[1].output;
  b.define("DNNOPT_RUN", chosen["run"]);
  const std::optional<plane_total> total = plane_total_in(site.block);
  const std::optional<std::int64_t> own_rows = chosen.find("rows");
  const index_expr item_rows = own_rows ? index_expr(*own_rows) : max(rows, 1);
  b.define("DNNOPT_ROWS", item_rows);
  define_image_load(b, s, c);
  const index_expr z = b.index("z", c.batch * c.group);
  const index_expr m = b.index("m", c.outputs);
  const index_expr channel = mod(z, c.group) * c.outputs + m;
  define_plane_weights(b, s, c);
  const std::vector<index_expr> at = plane_element(b, s, c, z, channel);
  b.define_store(
      "dnnopt_store", n.outputs[0], at, std::vector<std::string>{"z", "m", "od", "oh", "ow"}, compute_type::real,
      [&] { return biased(b, s, channel); }, total ? total->result : no_value, total ? total->planes : no_value);
  if (total) define_plane_total(b, convolution_rows_frame, *total, at, std::vector<std::string>{"z", "m"});
  kernel_plan plan = b.finish(kernels::prelude, convolution_rows_frame, "convolution_rows");
  plan.global = {total ? index_expr(1) : ceildiv(rows, item_rows), c.outputs, c.batch * c.group};
  plan.local = {1, 1, 1};
  plan.flops = c.batch * c.group * c.outputs * c.positions() * c.channels * c.window() * 2;
  lowered_node result;
  result.kernels.push_back(std::move(plan));
  return result;
}

[[nodiscard]] inline lowered_node emit_convolution_texels(const lowering_site& site, const choice& chosen) {
  const node& n = site.anchor_node();
  kernel_builder b(site.block, site.options.emitters);
  const element_site s(b, site.anchor, 0, {});
  const convolution_shape c = convolution_of(s);
  const std::int64_t window = c.window().constant();
  const index_expr quarters = ceildiv(c.group, texel_width);
  const index_expr positions = c.positions();
  lowered_node result;
  const index_expr z = b.index("z", c.batch);
  const index_expr quarter = b.index("quarter", quarters);
  const index_expr k = b.index("k", window);
  const index_expr position = b.index("n", positions);
  (void)define_texel_constant(
      result, b, site, {n.inputs[1], 1, c.group, window}, "dnnopt_load4_w", std::vector<std::string>{"quarter", "k"}, 0,
      quarter * texel_width, k,
      [&](kernel_builder& own, const index_expr&, const index_expr& channel, const index_expr& inner) {
        const element_site own_site(own, site.anchor, 0, {});
        std::vector<index_expr> at{channel, 0};
        const shape& w = own_site.dims(1);
        for (const index_expr& i : own.index_at(shape(w.begin() + 2, w.end()), inner)) at.push_back(i);
        return own.emit(n.inputs[1], at);
      });
  const std::vector<std::string> names{"z", "quarter", "k", "n"};
  b.begin();
  emit_texel_patch(b, s, c, {z, 0, quarter * texel_width, c.group}, position,
                   b.index_at(shape{c.axes[0].kernel, c.axes[1].kernel, c.axes[2].kernel}, k));
  b.line("return four;");
  b.add_function(
      "static inline float4 dnnopt_load4_x(DNNOPT_PARAMETERS, const int z, const int quarter, const int k, const int "
      "n) "
      "{\n" +
      b.take() + "}\n");
  const shape& out = s.out_dims();
  four_results four;
  for (std::int64_t j = 0; j < texel_width; ++j) {
    const index_expr channel = quarter * texel_width + j;
    std::vector<index_expr> at{z, channel};
    for (const index_expr& i : b.index_at(shape(out.begin() + 2, out.end()), position)) at.push_back(i);
    four.at[static_cast<std::size_t>(j)] = std::move(at);
    four.within[static_cast<std::size_t>(j)] = kernel_builder::within(channel, c.group);
  }
  b.define_store4("dnnopt_store4", n.outputs[0], four, std::vector<std::string>{"z", "quarter", "n"},
                  [&](std::size_t j) { return biased(b, s, four.at[j][1]); });
  const texel_grid grid = texel_grid_of(site, c);
  const grid_size group{chosen["group_columns"], chosen["group_rows"], chosen["group_slices"]};
  b.define("DNNOPT_QUARTERS", quarters);
  b.define("DNNOPT_COLUMNS", grid.columns);
  b.define("DNNOPT_ROWS", grid.rows);
  b.define("DNNOPT_SLICES", quarters * c.batch);
  b.define("DNNOPT_WINDOW", window);
  // What the kernel object allows is at least what the source requires.
  b.define("DNNOPT_GROUP", "__attribute__((reqd_work_group_size(" + std::to_string(group[0]) + ", " +
                               std::to_string(group[1]) + ", " + std::to_string(group[2]) + ")))");
  kernel_plan plan = b.finish(kernels::prelude, convolution_texels_frame, "convolution_texels");
  const std::array<index_expr, 3> items{grid.columns, grid.rows, quarters * c.batch};
  for (std::size_t d = 0; d < 3; ++d) {
    plan.global[d] = ceildiv(items[d], group[d]) * group[d];
    plan.local[d] = static_cast<std::size_t>(group[d]);
  }
  plan.flops = c.batch * c.group * positions * window * 2;
  result.kernels.push_back(std::move(plan));
  return result;
}

}  // namespace dnnopt::codegen

#endif  // DNNOPT_BACKEND_CODEGEN_FRAMES_CONVOLUTIONS_EMIT_THIN_HPP
