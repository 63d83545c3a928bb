// Owns which convolutions Winograd's minimal filtering computes, with what error, and where a tuner's choice for them
// is.
#ifndef DNNOPT_BACKEND_CODEGEN_FRAMES_CONVOLUTIONS_STAGED_WINOGRAD_SHAPE_HPP
#define DNNOPT_BACKEND_CODEGEN_FRAMES_CONVOLUTIONS_STAGED_WINOGRAD_SHAPE_HPP

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <dnnopt/backend/codegen/frames/convolutions/convolution_shape.hpp>
#include <dnnopt/backend/codegen/frames/convolutions/staged/shifted_image.hpp>

namespace dnnopt::codegen {

/// Results along each side of a tile (Lavin & Gray 2016, section 4.1: F(2x2, 3x3) and F(4x4, 3x3)).
inline constexpr std::array<std::int64_t, 2> winograd_tiles{2, 4};

/// Products of a tile per pair of channels, in place of 9 * tile * tile.
[[nodiscard]] constexpr std::int64_t winograd_points(std::int64_t tile) noexcept { return (tile + 2) * (tile + 2); }

/// What the largest error of a result is expected to be, relative to the largest result, in float arithmetic over so
/// many channels. Fitted to the largest of some thousand results of normal deviates, also offset and cut at zero, for
/// the points of convolution_winograd.cl; it grows with the root of the number of sums.
[[nodiscard]] inline double winograd_error(std::int64_t tile, std::int64_t channels) {
  const double sums = std::sqrt(static_cast<double>(channels));
  return tile == 4 ? 8e-7 + 2e-7 * sums : 1e-7 + 5e-8 * sums;
}

/// The most that winograd_error may be: half of what dnnopt's own checks allow for sums in float.
inline constexpr double most_winograd_error = 1e-5;

/// Why no tile of that size computes the site's convolution; empty where one does.
[[nodiscard]] inline std::string reject_winograd_tile(const lowering_site& site, const convolution_shape& c,
                                                      std::int64_t tile) {
  if (winograd_error(tile, c.channels.constant()) > most_winograd_error) return "errors of so many channels' sums";
  if (const auto windows = window_total_in(site); windows && tile % windows->rows != 0)
    return "windows that are reduced do not divide tiles";
  return {};
}

/// Whether transformed weights take no more memory than lower_options allows.
[[nodiscard]] inline bool keeps_weights_small(const lowering_site& site, std::int64_t tile) {
  return static_cast<double>(winograd_points(tile)) <= 9 * site.options.weight_growth;
}

/// Why Winograd's minimal filtering does not compute the site's convolution with tiles of any size; empty where it
/// does, however long that takes.
[[nodiscard]] inline std::string reject_winograd(const lowering_site& site, const convolution_shape& c) {
  const auto is_three = [](const window_axis& a) { return a.kernel == 3 && a.stride == 1 && a.dilation == 1; };
  if (c.rank != 2 || !is_three(c.axes[1]) || !is_three(c.axes[2]))
    return "windows other than 3 x 3 with stride and dilation 1";
  if (c.group != 1) return "more than one group";
  if (!packs_constant(site.block, site.anchor_node().inputs[1])) return "weights are computed or stored in fp16";
  if (!useful_positions(c)) return "extents that are not known before execution";
  if (plane_total_in(site.block)) return "planes are reduced";
  if (!fits_int((winograd_points(winograd_tiles.back()) * c.channels * round_up(c.outputs.constant(), 64)).range()))
    return "transformed weights are more than an int counts";
  std::string why;
  for (const std::int64_t tile : winograd_tiles)
    if (why = reject_winograd_tile(site, c, tile); why.empty()) return why;
  return why;
}

/// The shape class of a convolution whose image is staged.
[[nodiscard]] inline std::string shape_of_shifts(const convolution_shape& c) {
  const shifted_image image = shifted_image_of(c, false, 0, 1);
  return shape_class("convolution_shifts", std::array{c.batch * c.group, c.outputs, index_expr(image.positions),
                                                      c.channels, c.window(), index_expr(image.phases)});
}

/// The shape class of a convolution that Winograd's minimal filtering computes too.
[[nodiscard]] inline std::string shape_of_winograd(const convolution_shape& c) {
  return shape_class("convolution_winograd",
                     std::array{c.batch, c.outputs, c.axes[1].output, c.axes[2].output, c.channels});
}

/// What a tuner may choose for a convolution whose image is staged: the tile where Winograd's minimal filtering
/// computes it too, and then blocks.
struct window_tuning {
  std::string shape;                   ///< class
  std::int64_t tile = -1;              ///< that was chosen, 0 for none; -1: nothing was chosen
  std::vector<std::int64_t> blocks{};  ///< values of convolution_shifts' parameters; empty where nothing was chosen
};

[[nodiscard]] inline window_tuning window_tuning_of(const lowering_site& site, const convolution_shape& c) {
  const bool tiled = reject_winograd(site, c).empty();
  window_tuning result{tiled ? shape_of_winograd(c) : shape_of_shifts(c)};
  if (const auto* values = site.tuned(result.shape); values != nullptr) {
    result.tile = tiled ? values->front() : 0;
    result.blocks.assign(values->begin() + (tiled ? 1 : 0), values->end());
  }
  return result;
}

}  // namespace dnnopt::codegen

#endif  // DNNOPT_BACKEND_CODEGEN_FRAMES_CONVOLUTIONS_STAGED_WINOGRAD_SHAPE_HPP
