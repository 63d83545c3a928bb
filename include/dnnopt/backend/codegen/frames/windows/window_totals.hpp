// Owns how a convolution's frame reduces windows of the planes that it computes: what it takes, and where it stores
// that.
#ifndef DNNOPT_BACKEND_CODEGEN_FRAMES_WINDOWS_WINDOW_TOTALS_HPP
#define DNNOPT_BACKEND_CODEGEN_FRAMES_WINDOWS_WINDOW_TOTALS_HPP

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <dnnopt/backend/codegen/elements/pooling.hpp>
#include <dnnopt/backend/codegen/frames/products/matrix_frame.hpp>
#include <dnnopt/backend/codegen/frames/rows/plane_totals.hpp>

namespace dnnopt::codegen {

/// A member of a block that reduces windows, side by side and without padding, of the planes which the anchor's
/// epilogue ends in.
struct window_total {
  value_id planes = no_value;  ///< what is reduced
  value_id result = no_value;
  std::string_view reduction;  ///< name of the reduction_table's row
  std::int64_t rows = 1;       ///< of a window
  std::int64_t columns = 1;
  std::int64_t run_rows = 1;   ///< windows above one another
  std::int64_t run_width = 1;  ///< positions of a plane's row that are in windows

  [[nodiscard]] std::int64_t positions() const noexcept { return run_rows * run_width; }  ///< in one row of all windows
};

/// The member that reduces windows of what a block's anchor computes; no_node where there is none.
[[nodiscard]] inline node_id window_total_node(const lowering_site& site) {
  for (const node_id id : site.block.members) {
    const node& n = site.block.g.node_at(id);
    if (!n.op->window_reduction.empty() && stands_behind(site.block, n.inputs[0], site.anchor_node().outputs[0]))
      return id;
  }
  return no_node;
}

/// Why no frame of convolutions reduces the block's windows; empty where frames may, or where there are none.
[[nodiscard]] inline std::string reject_window_total(const lowering_site& site) {
  const node_id id = window_total_node(site);
  if (id == no_node) return {};
  const block_view& block = site.block;
  const node& n = block.g.node_at(id);
  const shape& out = *block.g.facts(n.outputs[0]).dims;
  if (n.attributes.require<std::vector<std::int64_t>>("kernel_shape").size() != 2 || !out[2].is_constant() ||
      !out[3].is_constant())
    return "windows of other than two dims, or in planes whose extents are not known";
  for (const value_id stored : block.outputs)
    if (!stands_behind(block, stored, n.outputs[0])) return "what is reduced in windows is stored too";
  return {};
}

/// The reduction of windows in a block with a convolution as its anchor; nothing where there is none. Precondition:
/// reject_window_total is empty.
[[nodiscard]] inline std::optional<window_total> window_total_in(const lowering_site& site) {
  const node_id id = window_total_node(site);
  if (id == no_node) return std::nullopt;
  const node& n = site.block.g.node_at(id);
  const auto kernel = n.attributes.require<std::vector<std::int64_t>>("kernel_shape");
  const shape& out = *site.block.g.facts(n.outputs[0]).dims;
  return window_total{n.inputs[0], n.outputs[0],      n.op->window_reduction,       kernel[0],
                      kernel[1],   out[2].constant(), out[3].constant() * kernel[1]};
}

/// Makes blocks of panels hold as many columns of each row of windows, which take `local` bytes then. Returns why they
/// cannot; empty where they can.
[[nodiscard]] inline std::string cover_windows(panel_sizes& p, const lowering_site& site, const product_extents& e,
                                               bool a_packed, const window_total& windows, std::uint64_t& local) {
  if (p.columns() % windows.columns != 0) return "windows do not divide a panel of columns";
  std::int64_t span = round_up(std::min(p.block_columns / windows.rows, windows.positions()), p.columns());
  span = std::max(span, p.columns());
  const std::int64_t k = e.inner.as_constant().value_or(std::int64_t{1} << 30);
  const auto bytes = [&] {
    panel_sizes whole = p;
    whole.block_columns = span * windows.rows;
    return panel_bytes(whole, k, a_packed, false) +
           4 * static_cast<std::uint64_t>(p.block_rows * (span / windows.columns));
  };
  while (bytes() > site.local_memory()) {
    if (span > p.columns())
      span = round_up(span / 2, p.columns());
    else if (p.block_inner > 64)
      p.block_inner = std::max<std::int64_t>(64, p.block_inner / 2);
    else if (p.block_rows > p.rows)
      p.block_rows = round_up(p.block_rows / 2, p.rows);
    else
      return "windows take more than the local memory";
  }
  p.block_columns = span * windows.rows;
  local = bytes();
  return {};
}

/// Defines what the panel frame calls to reduce windows: how the windows lie, what define_taking defines,
/// dnnopt_store(names..., value), which gives the element of the planes made from the anchor's, and
/// dnnopt_store_window(z, m, window, value), which stores what the block makes of a window. `at` is the anchor's index,
/// (batch, channel, ...), and `finish()` its element made from `value`.
template <class Finish>
void define_window_total(kernel_builder& b, const kernel_frame& frame, const window_total& total, value_id anchor,
                         const std::vector<index_expr>& at, const std::vector<std::string>& names, Finish&& finish) {
  b.define("DNNOPT_WINDOW_ROWS", total.rows);
  b.define("DNNOPT_WINDOW_COLUMNS", total.columns);
  b.define("DNNOPT_RUN_ROWS", total.run_rows);
  b.define("DNNOPT_RUN_WIDTH", total.run_width);
  define_taking(b, frame, total.reduction, total.rows * total.columns);
  b.define_scalar_function("dnnopt_store", names, compute_type::real, [&] {
    b.bind(anchor, at, finish());
    return b.emit(total.planes, b.index_from_anchor(anchor, at, total.planes));
  });
  const shape& out = b.dims(total.result);
  const shape spatial(out.begin() + 2, out.end());
  const index_expr window = b.index("window", element_count(spatial));
  std::vector<index_expr> where{at[0], at[1]};
  for (const index_expr& i : b.index_at(spatial, window)) where.push_back(i);
  b.define_store("dnnopt_store_window", total.result, where, std::vector<std::string>{"z", "m", "window"});
}

}  // namespace dnnopt::codegen

#endif  // DNNOPT_BACKEND_CODEGEN_FRAMES_WINDOWS_WINDOW_TOTALS_HPP
