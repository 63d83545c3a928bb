// Owns the reference evaluation of the resampling operators: Resize, Upsample, GridSample, AffineGrid.
#ifndef DNNOPT_REFERENCE_RESIZE_HPP
#define DNNOPT_REFERENCE_RESIZE_HPP

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <dnnopt/ops/facts.hpp>
#include <dnnopt/reference/element_copy.hpp>
#include <dnnopt/reference/elements.hpp>
#include <dnnopt/reference/parallel.hpp>
#include <dnnopt/reference/reference_row.hpp>

namespace dnnopt::reference {

namespace resampling {

/// The input elements that one output index along an axis reads, and their weights; none: the extrapolation value.
struct taps {
  std::vector<std::int64_t> at;
  std::vector<double> weights;
  bool outside = false;
};

/// The attributes of Resize that hold for all axes.
struct resize_mode {
  std::string interpolation;  ///< nearest, linear, cubic
  std::string coordinates;
  std::string nearest;
  double cubic = -0.75;
  bool exclude_outside = false;
  bool antialias = false;
};

/// One axis: its lengths, the exact quotient of output and input length, and the region of interest.
struct resize_axis {
  std::int64_t from;
  std::int64_t to;
  double scale;
  double roi_start = 0.0;
  double roi_end = 1.0;
};

/// The coordinate in the input of output index `x`, as ONNX's coordinate_transformation_mode says.
/// Errors: bad_attribute for an unknown mode.
[[nodiscard]] inline double source_coordinate(const resize_mode& mode, const resize_axis& axis, double x) {
  const auto from = static_cast<double>(axis.from);
  const double to = axis.scale * from;
  const double half_pixel = (x + 0.5) / axis.scale - 0.5;
  if (mode.coordinates == "half_pixel") return half_pixel;
  if (mode.coordinates == "asymmetric") return x / axis.scale;
  if (mode.coordinates == "align_corners") return to == 1.0 || axis.to == 1 ? 0.0 : x * (from - 1.0) / (to - 1.0);
  if (mode.coordinates == "pytorch_half_pixel") return axis.to == 1 ? -0.5 : half_pixel;
  if (mode.coordinates == "half_pixel_symmetric")
    return from / 2.0 * (1.0 - static_cast<double>(axis.to) / to) + half_pixel;
  if (mode.coordinates == "tf_half_pixel_for_nn") return (x + 0.5) / axis.scale;
  if (mode.coordinates == "tf_crop_and_resize") {
    const double extent = (axis.roi_end - axis.roi_start) * (from - 1.0);
    if (axis.to == 1) return axis.roi_start * (from - 1.0) + extent / 2.0;
    return axis.roi_start * (from - 1.0) + x * extent / (static_cast<double>(axis.to) - 1.0);
  }
  throw error(errc::bad_attribute, "Resize: coordinate_transformation_mode '" + mode.coordinates + "'");
}

/// Keys' cubic kernel.
[[nodiscard]] inline double cubic_weight(double distance, double a) {
  const double x = std::fabs(distance);
  if (x <= 1.0) return ((a + 2.0) * x - (a + 3.0)) * x * x + 1.0;
  if (x < 2.0) return ((a * x - 5.0 * a) * x + 8.0 * a) * x - 4.0 * a;
  return 0.0;
}

[[nodiscard]] inline taps axis_taps(const resize_mode& mode, const resize_axis& axis, std::int64_t index) {
  const double x = source_coordinate(mode, axis, static_cast<double>(index));
  taps result;
  if (mode.coordinates == "tf_crop_and_resize" && (x < 0.0 || x > static_cast<double>(axis.from - 1))) {
    result.outside = true;
    return result;
  }
  if (mode.interpolation == "nearest") {
    double nearest = 0.0;
    if (mode.nearest == "floor")
      nearest = std::floor(x);
    else if (mode.nearest == "ceil")
      nearest = std::ceil(x);
    else if (mode.nearest == "round_prefer_ceil")
      nearest = std::floor(x + 0.5);
    else
      nearest = std::ceil(x - 0.5);
    result.at.push_back(std::clamp<std::int64_t>(static_cast<std::int64_t>(nearest), 0, axis.from - 1));
    result.weights.push_back(1.0);
    return result;
  }
  // The kernel's support grows where antialiasing scales down.
  const double shrink = mode.antialias ? std::min(axis.scale, 1.0) : 1.0;
  const bool cubic = mode.interpolation == "cubic";
  if (!cubic && mode.interpolation != "linear")
    throw error(errc::bad_attribute, "Resize: mode '" + mode.interpolation + "'");
  const double radius = (cubic ? 2.0 : 1.0) / shrink;
  const auto first = static_cast<std::int64_t>(std::floor(x - radius)) + 1;
  const auto last = static_cast<std::int64_t>(std::ceil(x + radius)) - 1;
  double total = 0.0;
  for (std::int64_t at = first; at <= last; ++at) {
    const double distance = (static_cast<double>(at) - x) * shrink;
    double weight = cubic ? cubic_weight(distance, mode.cubic) : std::max(0.0, 1.0 - std::fabs(distance));
    if (mode.exclude_outside && (at < 0 || at >= axis.from)) weight = 0.0;
    total += weight;
    result.at.push_back(std::clamp<std::int64_t>(at, 0, axis.from - 1));
    result.weights.push_back(weight);
  }
  if (mode.exclude_outside || mode.antialias)
    for (double& weight : result.weights) weight /= total;
  return result;
}

/// Resamples every axis in turn. `outside` is what positions outside the input become.
[[nodiscard]] inline tensor resample(const tensor& x, std::span<const resize_axis> axes, const resize_mode& mode,
                                     double outside) {
  std::vector<std::vector<taps>> all;
  dim_list dims;
  for (const resize_axis& axis : axes) {
    dims.push_back(axis.to);
    if (axis.to > 0 && axis.from == 0)
      throw error(errc::shape_mismatch, "Resize: an axis without elements becomes " + std::to_string(axis.to));
    std::vector<taps> own;
    for (std::int64_t index = 0; index < axis.to; ++index) {
      // What keeps its length stays as it is, in whichever mode.
      if (axis.from == axis.to && axis.scale == 1.0 && mode.coordinates != "tf_crop_and_resize")
        own.push_back({{index}, {1.0}, false});
      else
        own.push_back(axis_taps(mode, axis, index));
    }
    all.push_back(std::move(own));
  }
  if (mode.interpolation == "nearest") {
    tensor result(x.type(), dims);
    const dim_list strides = row_major_strides(x.dims());
    std::vector<std::int64_t> positions(static_cast<std::size_t>(result.size()));
    for (std::size_t k = 0; k < positions.size(); ++k) {
      auto rest = static_cast<std::int64_t>(k);
      std::int64_t position = 0;
      for (std::size_t axis = dims.size(); axis-- > 0; rest /= dims[axis]) {
        const taps& tap = all[axis][static_cast<std::size_t>(rest % dims[axis])];
        position = tap.outside || position < 0 ? -1 : position + tap.at[0] * strides[axis];
      }
      positions[k] = position;
    }
    if (outside != 0.0 && result.size() != 0)
      fill_elements(store_all<double>(x.type(), {1}, std::vector<double>{outside}), result);
    pick_elements(x, result, positions);
    return result;
  }
  std::vector<double> values = load_all<double>(x);
  dim_list current = x.dims();
  for (std::size_t axis = 0; axis < dims.size(); ++axis) {
    if (axes[axis].from == axes[axis].to && axes[axis].scale == 1.0 && mode.coordinates != "tf_crop_and_resize")
      continue;
    std::int64_t outer = 1;
    std::int64_t inner = 1;
    for (std::size_t a = 0; a < axis; ++a) outer *= current[a];
    for (std::size_t a = axis + 1; a < current.size(); ++a) inner *= current[a];
    const std::int64_t from = axes[axis].from;
    const std::int64_t to = axes[axis].to;
    std::vector<double> next(static_cast<std::size_t>(outer * to * inner), 0.0);
    parallel_ranges(outer * to, 1 + 65536 / std::max<std::int64_t>(inner, 1),
                    [&](std::int64_t begin, std::int64_t end) {
                      for (std::int64_t row = begin; row < end; ++row) {
                        const taps& tap = all[axis][static_cast<std::size_t>(row % to)];
                        double* out = next.data() + row * inner;
                        for (std::size_t t = 0; t < tap.at.size(); ++t) {
                          const double* in = values.data() + (row / to * from + tap.at[t]) * inner;
                          for (std::int64_t i = 0; i < inner; ++i) out[i] += tap.weights[t] * in[i];
                        }
                      }
                    });
    values = std::move(next);
    current[axis] = to;
  }
  if (mode.coordinates == "tf_crop_and_resize")
    for (std::size_t k = 0; k < values.size(); ++k) {
      auto rest = static_cast<std::int64_t>(k);
      for (std::size_t axis = dims.size(); axis-- > 0; rest /= dims[axis])
        if (all[axis][static_cast<std::size_t>(rest % dims[axis])].outside) values[k] = outside;
    }
  return store_all<double>(x.type(), dims, values);
}

inline void resize(const attribute_map& attributes, std::span<const tensor> inputs, std::span<tensor> outputs) {
  const tensor& x = inputs[0];
  resize_mode mode;
  mode.interpolation = attributes.get_string("mode", "nearest");
  mode.coordinates = attributes.get_string("coordinate_transformation_mode", "half_pixel");
  mode.nearest = attributes.get_string("nearest_mode", "round_prefer_floor");
  mode.cubic = static_cast<double>(attributes.get_float("cubic_coeff_a", -0.75F));
  mode.exclude_outside = attributes.get_int("exclude_outside", 0) != 0;
  mode.antialias = attributes.get_int("antialias", 0) != 0;
  std::vector<std::int64_t> chosen(x.rank());
  for (std::size_t k = 0; k < chosen.size(); ++k) chosen[k] = static_cast<std::int64_t>(k);
  if (attributes.contains("axes")) chosen = attributes.get_ints("axes");
  std::vector<resize_axis> axes;
  for (const std::int64_t dim : x.dims()) axes.push_back({dim, dim, 1.0});
  const bool cropped = mode.coordinates == "tf_crop_and_resize";
  if (cropped && has_input(inputs, 1) && inputs[1].size() != 0) {
    const std::vector<double> roi = load_all<double>(inputs[1]);
    if (roi.size() != 2 * chosen.size())
      throw error(errc::shape_mismatch, "Resize: the region has " + std::to_string(roi.size()) + " bounds");
    for (std::size_t k = 0; k < chosen.size(); ++k) {
      resize_axis& axis = axes[axis_at(chosen[k], x.rank())];
      axis.roi_start = roi[k];
      axis.roi_end = roi[chosen.size() + k];
    }
  }
  if (has_input(inputs, 3) && inputs[3].size() != 0) {
    const std::vector<std::int64_t> sizes = integers_of(inputs[3]);
    if (sizes.size() != chosen.size())
      throw error(errc::shape_mismatch,
                  "Resize: " + std::to_string(sizes.size()) + " sizes for " + std::to_string(chosen.size()) + " axes");
    const std::string policy = attributes.get_string("keep_aspect_ratio_policy", "stretch");
    std::optional<double> common;
    for (std::size_t k = 0; k < chosen.size(); ++k) {
      resize_axis& axis = axes[axis_at(chosen[k], x.rank())];
      axis.to = sizes[k];
      axis.scale = static_cast<double>(axis.to) / static_cast<double>(axis.from);
      common = !common                  ? axis.scale
               : policy == "not_larger" ? std::min(*common, axis.scale)
                                        : std::max(*common, axis.scale);
    }
    if (policy != "stretch")
      for (const std::int64_t at : chosen) {
        resize_axis& axis = axes[axis_at(at, x.rank())];
        axis.scale = *common;
        axis.to = static_cast<std::int64_t>(std::floor(*common * static_cast<double>(axis.from) + 0.5));
      }
  } else {
    if (!has_input(inputs, 2)) throw error(errc::bad_arity, "Resize: neither scales nor sizes are given");
    const std::vector<double> scales = load_all<double>(inputs[2]);
    if (scales.size() != chosen.size())
      throw error(errc::shape_mismatch, "Resize: " + std::to_string(scales.size()) + " scales for " +
                                            std::to_string(chosen.size()) + " axes");
    for (std::size_t k = 0; k < chosen.size(); ++k) {
      resize_axis& axis = axes[axis_at(chosen[k], x.rank())];
      axis.scale = scales[k];
      // ONNX rounds the product in single precision.
      const double part = cropped ? axis.roi_end - axis.roi_start : 1.0;
      axis.to = static_cast<std::int64_t>(
          std::floor(static_cast<float>(axis.from) * static_cast<float>(part) * static_cast<float>(axis.scale)));
    }
  }
  outputs[0] = resample(x, axes, mode, static_cast<double>(attributes.get_float("extrapolation_value", 0.0F)));
}

inline void upsample(const attribute_map& attributes, std::span<const tensor> inputs, std::span<tensor> outputs) {
  resize_mode mode;
  mode.interpolation = attributes.get_string("mode", "nearest");
  mode.coordinates = "asymmetric";
  mode.nearest = "floor";
  const std::vector<double> scales = load_all<double>(inputs[1]);
  if (scales.size() != inputs[0].rank())
    throw error(errc::shape_mismatch, "Upsample: " + std::to_string(scales.size()) + " scales");
  std::vector<resize_axis> axes;
  for (std::size_t k = 0; k < scales.size(); ++k) {
    const std::int64_t dim = inputs[0].dims()[k];
    axes.push_back({dim, static_cast<std::int64_t>(std::floor(static_cast<float>(dim) * static_cast<float>(scales[k]))),
                    scales[k]});
  }
  outputs[0] = resample(inputs[0], axes, mode, 0.0);
}

/// A coordinate mirrored at both bounds until it lies between them.
[[nodiscard]] inline double reflected(double x, double low, double high) {
  const double range = high - low;
  if (range <= 0.0) return low;
  const double away = x < low ? low - x : x > high ? x - high : 0.0;
  if (away == 0.0) return x;
  const double turns = std::floor(away / range);
  const double rest = away - turns * range;
  const bool even = std::fmod(turns, 2.0) == 0.0;
  return (x < low) == even ? low + rest : high - rest;
}

inline void grid_sample(const attribute_map& attributes, std::span<const tensor> inputs, std::span<tensor> outputs) {
  const tensor& x = inputs[0];
  const tensor& grid = inputs[1];
  const std::size_t spatial = x.rank() < 3 ? 0 : x.rank() - 2;
  if (spatial == 0 || grid.rank() != x.rank() || grid.dims().back() != static_cast<std::int64_t>(spatial) ||
      grid.dims()[0] != x.dims()[0])
    throw error(errc::shape_mismatch, "GridSample: a grid " + to_string(grid.dims()) + " over " + to_string(x.dims()));
  std::string mode = attributes.get_string("mode", "linear");
  if (mode == "bilinear") mode = "linear";
  if (mode == "bicubic") mode = "cubic";
  const std::string padding = attributes.get_string("padding_mode", "zeros");
  if ((mode != "linear" && mode != "cubic" && mode != "nearest") ||
      (padding != "zeros" && padding != "border" && padding != "reflection"))
    throw error(errc::bad_attribute, "GridSample: mode '" + mode + "', padding_mode '" + padding + "'");
  const bool corners = attributes.get_int("align_corners", 0) != 0;
  const std::vector<double> values = load_all<double>(x);
  const std::vector<double> coordinates = load_all<double>(grid);
  dim_list dims{x.dims()[0], x.dims()[1]};
  dims.insert(dims.end(), grid.dims().begin() + 1, grid.dims().end() - 1);
  std::int64_t points = 1;
  for (std::size_t k = 1; k + 1 < grid.rank(); ++k) points *= grid.dims()[k];
  const dim_list strides = row_major_strides(x.dims());
  std::vector<double> result(static_cast<std::size_t>(element_count(dims)), 0.0);
  struct tap {
    std::int64_t offset;
    double weight;
  };
  for (std::int64_t n = 0; n < x.dims()[0]; ++n)
    for (std::int64_t p = 0; p < points; ++p) {
      std::vector<tap> reads{{0, 1.0}};
      for (std::size_t s = 0; s < spatial; ++s) {
        const std::size_t axis = 2 + s;
        const std::int64_t dim = x.dims()[axis];
        const auto length = static_cast<double>(dim);
        // The grid holds the innermost coordinate first.
        const double given =
            coordinates[static_cast<std::size_t>((n * points + p) * static_cast<std::int64_t>(spatial)) + spatial - 1 -
                        s];
        const double low = corners ? 0.0 : -0.5;
        const double high = corners ? length - 1.0 : length - 0.5;
        double at = corners ? (given + 1.0) / 2.0 * (length - 1.0) : ((given + 1.0) * length - 1.0) / 2.0;
        if (mode == "nearest") at = std::nearbyint(at);
        if (at < low || at > high) {
          if (padding == "border") at = std::clamp(at, 0.0, length - 1.0);
          if (padding == "reflection") at = reflected(at, low, high);
        }
        if (mode == "nearest" && padding == "reflection") at = std::nearbyint(at);
        const auto first = static_cast<std::int64_t>(std::floor(at)) - (mode == "cubic" ? 1 : 0);
        const std::int64_t count = mode == "cubic" ? 4 : mode == "linear" ? 2 : 1;
        std::vector<tap> next;
        for (std::int64_t k = first; k < first + count; ++k) {
          const double distance = static_cast<double>(k) - at;
          const double weight = mode == "cubic"    ? cubic_weight(distance, -0.75)
                                : mode == "linear" ? 1.0 - std::fabs(distance)
                                                   : 1.0;
          std::int64_t index = k;
          if (index < 0 || index >= dim) {
            if (padding == "zeros") continue;
            if (padding == "border")
              index = std::clamp<std::int64_t>(index, 0, dim - 1);
            else
              index = std::clamp<std::int64_t>(
                  static_cast<std::int64_t>(reflected(static_cast<double>(index), low, high)), 0, dim - 1);
          }
          for (const tap& read : reads) next.push_back({read.offset + index * strides[axis], read.weight * weight});
        }
        reads = std::move(next);
      }
      for (std::int64_t c = 0; c < x.dims()[1]; ++c) {
        double total = 0.0;
        for (const tap& read : reads)
          total += read.weight * values[static_cast<std::size_t>(n * strides[0] + c * strides[1] + read.offset)];
        result[static_cast<std::size_t>((n * x.dims()[1] + c) * points + p)] = total;
      }
    }
  outputs[0] = store_all<double>(x.type(), dims, result);
}

inline void affine_grid(const attribute_map& attributes, std::span<const tensor> inputs, std::span<tensor> outputs) {
  const std::vector<double> theta = load_all<double>(inputs[0]);
  const std::vector<std::int64_t> size = integers_of(inputs[1]);
  const bool corners = attributes.get_int("align_corners", 0) != 0;
  const std::size_t spatial = size.size() < 4 ? 0 : size.size() - 2;
  const auto width = static_cast<std::int64_t>(spatial);
  if ((spatial != 2 && spatial != 3) || inputs[0].dims() != dim_list{size[0], width, width + 1})
    throw error(errc::shape_mismatch,
                "AffineGrid: maps " + to_string(inputs[0].dims()) + " for size " + to_string(size));
  dim_list dims{size[0]};
  dims.insert(dims.end(), size.begin() + 2, size.end());
  const std::int64_t points = element_count(dims) / std::max<std::int64_t>(1, size[0]);
  dims.push_back(width);
  std::vector<double> result;
  for (std::int64_t n = 0; n < size[0]; ++n)
    for (std::int64_t p = 0; p < points; ++p) {
      std::vector<double> at(spatial + 1, 1.0);
      std::int64_t rest = p;
      for (std::size_t s = 0; s < spatial; ++s) {
        const std::int64_t dim = size[size.size() - 1 - s];
        const auto index = static_cast<double>(rest % dim);
        rest /= dim;
        if (corners)
          at[s] = dim == 1 ? 0.0 : 2.0 * index / static_cast<double>(dim - 1) - 1.0;
        else
          at[s] = (2.0 * index + 1.0) / static_cast<double>(dim) - 1.0;
      }
      for (std::size_t row = 0; row < spatial; ++row) {
        double total = 0.0;
        for (std::size_t k = 0; k <= spatial; ++k)
          total += theta[(static_cast<std::size_t>(n) * spatial + row) * (spatial + 1) + k] * at[k];
        result.push_back(total);
      }
    }
  outputs[0] = store_all<double>(inputs[0].type(), dims, result);
}

}  // namespace resampling

inline constexpr std::array resize_rows{
    reference_row{"", "Resize", resampling::resize},
    reference_row{"", "Upsample", resampling::upsample},
    reference_row{"", "GridSample", resampling::grid_sample},
    reference_row{"", "AffineGrid", resampling::affine_grid},
};

}  // namespace dnnopt::reference

#endif  // DNNOPT_REFERENCE_RESIZE_HPP
