// Owns the kernels of convolutions on devices with wide vectors that stage the image: read shifted, by Winograd's
// minimal filtering, and for few positions.
#ifndef DNNOPT_BACKEND_CODEGEN_FRAMES_CONVOLUTIONS_STAGED_EMIT_STAGED_HPP
#define DNNOPT_BACKEND_CODEGEN_FRAMES_CONVOLUTIONS_STAGED_EMIT_STAGED_HPP

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <dnnopt/backend/codegen/frames/convolutions/parameters.hpp>
#include <dnnopt/backend/codegen/frames/convolutions/staged/choose_points.hpp>
#include <dnnopt/backend/codegen/frames/convolutions/staged/choose_shifts.hpp>
#include <dnnopt/backend/codegen/frames/convolutions/staged/choose_winograd.hpp>
#include <dnnopt/backend/codegen/frames/sources.hpp>

namespace dnnopt::codegen {

[[nodiscard]] inline lowered_node emit_convolution_shifts(const lowering_site& site, const choice& chosen) {
  const node& n = site.anchor_node();
  kernel_builder b(site.block, site.options.emitters);
  const element_site s(b, site.anchor, 0, {});
  const convolution_shape c = convolution_of(s);
  const std::optional<plane_total> total = plane_total_in(site.block);
  const std::optional<window_total> windows = window_total_in(site);
  lowered_node result;
  b.define("DNNOPT_M", c.outputs);
  b.define("DNNOPT_C", c.channels);
  define_sizes(b, convolution_shifts_frame, chosen);
  define_windows(b, convolution_shifts_frame, c);
  define_image_load(b, s, c);
  define_packed_weights(result, b, site, c, chosen["rows"]);
  const index_expr output = b.index("m", c.outputs);
  const std::vector<index_expr> at = output_index(b, s, c, output, b.index("n", c.positions()));
  const std::vector<std::string> names{"z", "m", "n"};
  if (windows) {
    define_window_total(b, convolution_shifts_frame, *windows, n.outputs[0], at, names,
                        [&] { return biased(b, s, at[1]); });
  } else {
    b.define_store(
        "dnnopt_store", n.outputs[0], at, names, compute_type::real, [&] { return biased(b, s, at[1]); },
        total ? total->result : no_value, total ? total->planes : no_value);
    if (total) define_plane_total(b, convolution_shifts_frame, *total, at, std::vector<std::string>{"z", "m"});
  }
  kernel_plan plan = b.finish(kernels::prelude, convolution_shifts_frame, "convolution_shifts");
  plan.global = {chosen["blocks"], blocks_of(c.outputs.constant(), chosen["block_rows"]), c.batch * c.group};
  plan.local = {1, 1, 1};
  plan.tuning = chosen.tuning;
  plan.flops = c.batch * c.group * c.outputs * c.positions() * c.channels * c.window() * 2;
  result.kernels.push_back(std::move(plan));
  return result;
}

/// The kernel of few positions: of a choice of its own, or of a version that panels have (add_version_of_few_points).
[[nodiscard]] inline lowered_node emit_convolution_points(const lowering_site& site, const choice& chosen) {
  kernel_builder b(site.block, site.options.emitters);
  const element_site s(b, site.anchor, 0, {});
  const convolution_shape c = convolution_of(s);
  b.define("DNNOPT_M", c.outputs);
  b.define("DNNOPT_C", c.channels);
  define_sizes(b, convolution_points_frame, chosen);
  define_windows(b, convolution_points_frame, c);
  define_image_load(b, s, c);
  lowered_node result;
  define_packed_weights(result, b, site, c, chosen["rows"]);
  const std::vector<index_expr> at = output_index(b, s, c, b.index("m", c.outputs), b.index("n", c.positions()));
  b.define_store("dnnopt_store", site.anchor_node().outputs[0], at, std::vector<std::string>{"z", "m", "n"},
                 compute_type::real, [&] { return biased(b, s, at[1]); });
  kernel_plan plan = b.finish(kernels::prelude, convolution_points_frame, "convolution_points");
  plan.global = {blocks_of(blocks_of(c.outputs.constant(), chosen["rows"]), chosen["vectors"]), c.batch * c.group, 1};
  plan.local = {1, 1, 1};
  plan.flops = c.batch * c.group * c.outputs * c.positions() * c.channels * c.window() * 2;
  result.kernels.push_back(std::move(plan));
  return result;
}

/// A kernel that writes G w G^T of the weights once: [panel][point][channel][output channel of the panel], zero beyond
/// the last output channel.
[[nodiscard]] inline kernel_plan transform_weights(const lowering_site& site, const convolution_shape& shape_of,
                                                   std::int64_t tile, std::int64_t width) {
  kernel_builder b(site.block, site.options.emitters);
  const std::int64_t channels = shape_of.channels.constant();
  const std::int64_t outputs = shape_of.outputs.constant();
  const index_expr count = blocks_of(outputs, width) * channels * width;
  const index_expr i = b.index("i", count);
  b.begin({i});
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
  b.line(tile == 4
             ? "const float g[6][3] = {{64.0f / 81.0f, 0, 0}, {-128.0f / 243.0f, -96.0f / 243.0f, -72.0f / 243.0f}, "
               "{-128.0f / 243.0f, 96.0f / 243.0f, -72.0f / 243.0f}, {32.0f / 243.0f, 48.0f / 243.0f, 72.0f / 243.0f}, "
               "{32.0f / 243.0f, -48.0f / 243.0f, 72.0f / 243.0f}, {0, 0, 1}};"
             : "const float g[4][3] = {{1, 0, 0}, {0.5f, 0.5f, 0.5f}, {0.5f, -0.5f, 0.5f}, {0, 0, 1}};");
  const std::string side = std::to_string(tile + 2);
  b.open("for (int p = 0; p < " + side + "; ++p) {");
  for (const char* const j : {"0", "1", "2"})
    b.line(std::string("const float t") + j + " = fma(g[p][0], w[" + j + "], fma(g[p][1], w[3 + " + j +
           "], g[p][2] * w[6 + " + j + "]));");
  b.open("for (int q = 0; q < " + side + "; ++q) {");
  b.line(b.scratch(0, dtype::float32, true) + "[" +
         index_source(floordiv(i, width * channels) * (winograd_points(tile) * channels * width) +
                      mod(i, width * channels)) +
         " + (p * " + side + " + q) * " + std::to_string(channels * width) +
         "] = fma(g[q][0], t0, fma(g[q][1], t1, g[q][2] * t2));");
  b.close();
  b.close();
  const std::string statements = b.take();
  return b.finish_items(kernels::prelude, statements, i, count, "pack");
}

[[nodiscard]] inline lowered_node emit_convolution_winograd(const lowering_site& site, const choice& chosen) {
  const node& n = site.anchor_node();
  kernel_builder b(site.block, site.options.emitters);
  const element_site s(b, site.anchor, 0, {});
  const convolution_shape c = convolution_of(s);
  const std::optional<window_total> windows = window_total_in(site);
  b.define("DNNOPT_M", c.outputs);
  b.define("DNNOPT_C", c.channels);
  define_sizes(b, convolution_winograd_frame, chosen);
  const std::int64_t tile = chosen["tile"];
  if (!useful_positions(c)) b.define("DNNOPT_RUN_EXTENTS", 1);
  define_windows(b, convolution_winograd_frame, c);
  define_image_load(b, s, c);
  lowered_node result;
  const std::int64_t width = chosen["vector"] * chosen["vectors"];
  const std::int64_t padded = round_up(c.outputs.constant(), width);
  result.scratch.push_back({winograd_points(tile) * c.channels * padded * 4, true});
  result.prepare.push_back(transform_weights(site, c, tile, width));
  b.define("DNNOPT_A", b.scratch(0, dtype::float32, false));
  const index_expr output = b.index("m", c.outputs);
  const std::vector<index_expr> at = output_index(b, s, c, output, b.index("n", c.positions()));
  const std::vector<std::string> names{"z", "m", "n"};
  const auto finish = [&] { return biased(b, s, at[1]); };
  if (windows)
    define_window_total(b, convolution_winograd_frame, *windows, n.outputs[0], at, names, finish);
  else
    b.define_store("dnnopt_store", n.outputs[0], at, names, compute_type::real, finish);
  kernel_plan plan = b.finish(kernels::prelude, convolution_winograd_frame, "convolution_winograd");
  const index_expr down = ceildiv(c.axes[1].output, tile);
  const index_expr across = ceildiv(c.axes[2].output, tile);
  plan.global = {ceildiv(down, chosen["tiles_high"]) * ceildiv(across, chosen["tiles_wide"]),
                 blocks_of(c.outputs.constant(), chosen["block_rows"]), c.batch};
  plan.local = {1, 1, 1};
  plan.tuning = chosen.tuning;
  plan.flops = c.batch * c.outputs * c.channels * (down * across * winograd_points(tile) * 2);
  result.kernels.push_back(std::move(plan));
  return result;
}

}  // namespace dnnopt::codegen

#endif  // DNNOPT_BACKEND_CODEGEN_FRAMES_CONVOLUTIONS_STAGED_EMIT_STAGED_HPP
