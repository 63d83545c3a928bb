// Owns the sizes of the kernel for convolutions whose result has few positions, and when a run's dims call for it.
#ifndef DNNOPT_BACKEND_CODEGEN_FRAMES_CONVOLUTIONS_STAGED_CHOOSE_POINTS_HPP
#define DNNOPT_BACKEND_CODEGEN_FRAMES_CONVOLUTIONS_STAGED_CHOOSE_POINTS_HPP

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include <dnnopt/backend/codegen/choice.hpp>
#include <dnnopt/backend/codegen/frames/convolutions/convolution_shape.hpp>
#include <dnnopt/backend/codegen/frames/rows/plane_totals.hpp>
#include <dnnopt/backend/codegen/frames/windows/staged_windows.hpp>
#include <dnnopt/backend/codegen/frames/windows/window_totals.hpp>

namespace dnnopt::codegen {

/// Positions up to which vectors run over output channels where extents are known: with more of them, vectors over
/// positions have most of their lanes in use, and read fewer numbers for each product.
inline constexpr std::int64_t most_points = 8;
/// And where a run tells them, for the register tile is always computed whole.
inline constexpr std::int64_t points_of_a_run = 4;

/// Sums that a processor keeps in registers beside what it reads.
inline constexpr std::int64_t point_registers = 12;
/// Bytes of the image that are staged at a time: they stay in the first-level cache beside weights that pass through
/// it.
inline constexpr std::int64_t point_stage_bytes = 16384;

/// Adds the sizes of the frame for at most `points` positions and panels of `rows` output channels, which are packed
/// like that already. Extents that are not known are as large as so few positions allow.
inline void settle_points(choice& made, const lowering_site& site, const convolution_shape& c, std::int64_t points,
                          std::int64_t rows, std::int64_t vector) {
  const std::int64_t panels = blocks_of(c.outputs.constant(), rows);
  const std::int64_t units = site.compute_units();
  std::int64_t vectors = 8;
  while (vectors > 1 && (vectors * points > point_registers || blocks_of(panels, vectors) < units)) vectors /= 2;
  std::int64_t staged = 1;
  for (const window_axis& a : c.axes) staged *= (a.output.as_constant().value_or(points) - 1) * a.stride + a.extent();
  const std::int64_t most = std::min(static_cast<std::int64_t>(site.local_memory()) / 2, point_stage_bytes) / 4;
  const std::int64_t channels = std::max<std::int64_t>(std::min(most / staged, c.channels.constant()), 1);
  made.with("rows", rows).with("vector", vector).with("vectors", vectors).with("points", points);
  made.with("staged", staged).with("block_channels", channels);
  made.local_bytes = static_cast<std::uint64_t>(4 * channels * staged);
  settle_packed_weights(made, c, rows);
}

/// Few positions: vectors over output channels, and the weights are read once.
[[nodiscard]] inline choice_or_reason choose_convolution_points(const lowering_site& site) {
  if (!site.prefers_vectors()) return "the device does not prefer wide vectors";
  if (std::string why = reject_convolution(site); !why.empty()) return why;
  if (plane_total_in(site.block) || window_total_node(site) != no_node) return "parts of the result are reduced";
  if (staged_windows_in(site) != no_node) return "windows are staged in panels, before a pointwise convolution alone";
  if (!packs_constant(site.block, site.anchor_node().inputs[1])) return "weights are computed or stored in fp16";
  kernel_builder b(site.block, site.options.emitters);
  const convolution_shape c = convolution_of(element_site(b, site.anchor, 0, {}));
  if (c.pointwise) return "a window of one element is a product of matrices";
  const std::optional<std::int64_t> points = c.positions().as_constant();
  if (!points || *points < 1) return "extents that are not known before execution";
  if (*points > most_points) return "more positions than a register tile has";
  const std::int64_t vector = vector_of_panels(site);
  if (c.outputs.constant() < vector) return "fewer output channels than a vector has elements";
  choice made("convolution_points");
  settle_points(made, site, c, *points, vector, vector);
  if (made.local_bytes > site.local_memory())
    return "what windows reach of one channel takes more than the local memory";
  return made;
}

/// Adds a version for few positions to a choice with weights in panels of `sizes.rows` output channels, which both
/// read. Along one dim alone: a stream is served in small parts, but images are seldom so small, and each version is a
/// kernel more to build. `positions` in the graph's symbols.
inline void add_version_of_few_points(choice& made, const lowering_site& site, const convolution_shape& c,
                                      const panel_sizes& sizes, const index_expr& positions) {
  if (c.rank != 1 || c.pointwise || positions.is_constant() || least_extent(positions) > points_of_a_run) return;
  if (sizes.rows > sizes.vector || c.outputs.constant() < sizes.rows || 2 * sizes.rows < sizes.vector) return;
  choice version("convolution_points");
  settle_points(version, site, c, points_of_a_run, sizes.rows, sizes.vector);
  if (version.local_bytes > site.local_memory()) return;
  version.guards.push_back({points_of_a_run - positions, "more positions than a register tile has"});
  version.guards.push_back({positions - 1, "no position"});
  made.narrower.push_back(std::move(version));
}

}  // namespace dnnopt::codegen

#endif  // DNNOPT_BACKEND_CODEGEN_FRAMES_CONVOLUTIONS_STAGED_CHOOSE_POINTS_HPP
