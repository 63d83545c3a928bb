// Owns the kernel of depthwise convolutions over texels: a work-item computes four channels of one position.
#ifndef DNNOPT_BACKEND_CODEGEN_FRAMES_CONVOLUTIONS_LOWER_CONVOLUTION_TEXELS_HPP
#define DNNOPT_BACKEND_CODEGEN_FRAMES_CONVOLUTIONS_LOWER_CONVOLUTION_TEXELS_HPP

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <dnnopt/backend/codegen/frames/convolutions/lower_convolution.hpp>
#include <dnnopt/backend/codegen/work_groups.hpp>

namespace dnnopt::codegen {

/// One input and one output channel per group, read from texels.
[[nodiscard]] inline std::string reject_convolution_texels(const lowering_site& site) {
  if (std::string why = reject_convolution(site); !why.empty()) return why;
  const node& n = site.anchor_node();
  if (!reads_texels(site.block, n.inputs[0])) return "what it reads are no texels";
  const shape& w = *site.input(1).dims;
  const std::int64_t group = n.attributes.get_int("group", 1);
  if (group == 1 || w[1].constant() != 1 || w[0].constant() != group) return "no depthwise convolution";
  if (!is_constant_in(site.block, n.inputs[1])) return "weights that are computed";
  return {};
}

/// Where the work-items of a depthwise convolution over texels stand: a position is row * columns + column.
struct texel_grid {
  index_expr columns;
  index_expr rows = 1;
  grid_size group{};
};

/// Columns and rows of a plane where a work-group was published for the device, else positions in one line.
[[nodiscard]] inline texel_grid texel_grid_of(const lowering_site& site, const convolution_shape& c) {
  const device_info* const device = site.options.device;
  const index_expr quarters = ceildiv(c.group, texel_width);
  const auto both = [&](std::int64_t a, std::int64_t b) { return a == b ? a : 0; };
  if (const index_expr& down = c.axes[1].output, &across = c.axes[2].output;
      device != nullptr && c.rank == 2 && down.is_constant() && across.is_constant() && quarters.is_constant()) {
    const auto group = find_work_group(
        *device, grid_work::depthwise_convolution, both(c.axes[1].kernel, c.axes[2].kernel),
        both(c.axes[1].stride, c.axes[2].stride), {across.constant(), down.constant(), quarters.constant()}, c.group);
    if (group) return {across, down, *group};
  }
  const std::size_t most = device == nullptr || device->max_work_group_size == 0 ? 64 : device->max_work_group_size;
  return {c.positions(), 1, {static_cast<std::int64_t>(std::min<std::size_t>(most, 64)), 1, 1}};
}

[[nodiscard]] inline lowered_node lower_convolution_texels(const lowering_site& site) {
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
  const grid_size& group = grid.group;
  b.define("DNNOPT_QUARTERS", quarters);
  b.define("DNNOPT_COLUMNS", grid.columns);
  b.define("DNNOPT_ROWS", grid.rows);
  b.define("DNNOPT_SLICES", quarters * c.batch);
  b.define("DNNOPT_WINDOW", window);
  // What the kernel object allows is at least what the source requires.
  b.define("DNNOPT_GROUP", "__attribute__((reqd_work_group_size(" + std::to_string(group[0]) + ", " +
                               std::to_string(group[1]) + ", " + std::to_string(group[2]) + ")))");
  kernel_plan plan = b.finish(kernels::prelude, kernels::convolution_texels, "convolution_texels");
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

#endif  // DNNOPT_BACKEND_CODEGEN_FRAMES_CONVOLUTIONS_LOWER_CONVOLUTION_TEXELS_HPP
