// Owns where Resize reads: the coordinate of an output index in the input, and the element nearest to it.
#ifndef DNNOPT_OPS_RESIZE_COORDINATES_HPP
#define DNNOPT_OPS_RESIZE_COORDINATES_HPP

#include <cmath>
#include <cstdint>
#include <string>

#include <dnnopt/error.hpp>

namespace dnnopt::ops {

/// The integer part of a computed dim. Errors: overflow for one that no tensor has, NaN included.
[[nodiscard]] inline std::int64_t whole_dim(double dim) {
  if (!(std::abs(dim) < 0x1p62)) throw error(errc::overflow, "Resize: a dim of the output is " + std::to_string(dim));
  return static_cast<std::int64_t>(std::floor(dim));
}

/// One axis of a Resize: its lengths, the scale that the model gives or the quotient of the lengths, and the region of
/// interest.
struct resize_axis {
  std::int64_t from;
  std::int64_t to;
  float scale;
  float roi_start = 0.0F;
  float roi_end = 1.0F;
};

/// The coordinate in the input of output index `index`, as ONNX's coordinate_transformation_mode says, in single
/// precision and in the order of operations of ONNX Runtime: a rounding of it decides which element is nearest.
/// Errors: bad_attribute for an unknown mode.
[[nodiscard]] inline float source_coordinate(const std::string& mode, const resize_axis& axis, std::int64_t index) {
  const auto x = static_cast<float>(index);
  const auto from = static_cast<float>(axis.from);
  const auto to = static_cast<float>(axis.to);
  const float centre = (x + 0.5F) / axis.scale;
  if (mode == "half_pixel") return centre - 0.5F;
  if (mode == "asymmetric") return x / axis.scale;
  if (mode == "align_corners") return axis.to == 1 ? 0.0F : x * (from - 1.0F) / (to - 1.0F);
  if (mode == "pytorch_half_pixel") return axis.to > 1 ? centre - 0.5F : 0.0F;
  if (mode == "half_pixel_symmetric") {
    const float offset = from / 2.0F * (1.0F - to / (axis.scale * from));
    return offset + centre - 0.5F;
  }
  if (mode == "tf_half_pixel_for_nn") return centre;
  if (mode == "tf_crop_and_resize") {
    if (axis.to <= 1) return 0.5F * (axis.roi_start + axis.roi_end) * (from - 1.0F);
    return axis.roi_start * (from - 1.0F) + x * (axis.roi_end - axis.roi_start) * (from - 1.0F) / (to - 1.0F);
  }
  throw error(errc::bad_attribute, "Resize: coordinate_transformation_mode '" + mode + "'");
}

/// The position nearest to `x` by a nearest_mode, not yet within bounds. Errors: bad_attribute for an unknown mode.
[[nodiscard]] inline float nearest_position(const std::string& rounding, float x) {
  const float low = std::floor(x);
  if (rounding == "floor") return low;
  if (rounding == "ceil") return std::ceil(x);
  if (rounding == "round_prefer_ceil") return x - low >= 0.5F ? low + 1.0F : low;
  if (rounding == "round_prefer_floor") return x - low > 0.5F ? low + 1.0F : low;
  throw error(errc::bad_attribute, "Resize: nearest_mode '" + rounding + "'");
}

}  // namespace dnnopt::ops

#endif  // DNNOPT_OPS_RESIZE_COORDINATES_HPP
