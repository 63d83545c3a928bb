// Owns the kernel of convolutions on devices with wide vectors that stages the image once and reads it shifted.
#ifndef DNNOPT_BACKEND_CODEGEN_FRAMES_CONVOLUTIONS_EMIT_SHIFTS_HPP
#define DNNOPT_BACKEND_CODEGEN_FRAMES_CONVOLUTIONS_EMIT_SHIFTS_HPP

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <dnnopt/backend/codegen/frames/convolutions/choose_shifts.hpp>
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
  b.define("DNNOPT_ROWS", chosen["rows"]);
  b.define("DNNOPT_VECTOR", chosen["vector"]);
  b.define("DNNOPT_VECTORS", chosen["vectors"]);
  b.define("DNNOPT_BLOCK_ROWS", chosen["block_rows"]);
  b.define("DNNOPT_BLOCK_COLUMNS", chosen["block_columns"]);
  b.define("DNNOPT_BLOCK_CHANNELS", chosen["block_channels"]);
  b.define("DNNOPT_SPAN", chosen["span"]);
  b.define("DNNOPT_ROW_VECTORS", chosen["row_vectors"]);
  b.define("DNNOPT_COLUMNS_APART", chosen["columns_apart"]);
  define_windows(b, c);
  define_image_load(b, s, c);
  define_packed_weights(result, b, site, c, chosen["rows"]);
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
  plan.global = {chosen["blocks"], blocks_of(c.outputs.constant(), chosen["block_rows"]), c.batch * c.group};
  plan.local = {1, 1, 1};
  plan.tuning = chosen.tuning;
  plan.flops = c.batch * c.group * c.outputs * c.positions() * c.channels * c.window() * 2;
  result.kernels.push_back(std::move(plan));
  return result;
}

}  // namespace dnnopt::codegen

#endif  // DNNOPT_BACKEND_CODEGEN_FRAMES_CONVOLUTIONS_EMIT_SHIFTS_HPP
