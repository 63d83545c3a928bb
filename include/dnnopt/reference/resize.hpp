// Owns the reference evaluation of the resampling operators: Resize, Upsample.
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
#include <dnnopt/ops/resize_coordinates.hpp>
#include <dnnopt/reference/element_copy.hpp>
#include <dnnopt/reference/elements.hpp>
#include <dnnopt/reference/parallel.hpp>
#include <dnnopt/reference/reference_row.hpp>

namespace dnnopt::reference {

namespace resampling {

/// The input elements that one output index along an axis reads, and their weights; none: the extrapolation value.
struct taps {
  std::vector<std::int64_t> at;
  std::vector<float> weights;
  bool outside = false;
};

/// The attributes of Resize that hold for all axes.
struct resize_mode {
  std::string interpolation;  ///< nearest, linear, cubic
  std::string coordinates;
  std::string nearest;
  float cubic = -0.75F;
  bool exclude_outside = false;
  bool antialias = false;
};

using ops::nearest_position;
using ops::resize_axis;

/// Keys' cubic kernel.
[[nodiscard]] inline float cubic_weight(float distance, float a) {
  const float x = std::fabs(distance);
  if (x <= 1.0F) return ((a + 2.0F) * x - (a + 3.0F)) * x * x + 1.0F;
  if (x < 2.0F) return ((a * x - 5.0F * a) * x + 8.0F * a) * x - 4.0F * a;
  return 0.0F;
}

[[nodiscard]] inline taps axis_taps(const resize_mode& mode, const resize_axis& axis, std::int64_t index) {
  const float x = ops::source_coordinate(mode.coordinates, axis, index);
  const auto within = [&](float position) {
    return static_cast<std::int64_t>(std::clamp(position, 0.0F, static_cast<float>(axis.from - 1)));
  };
  taps result;
  if (mode.coordinates == "tf_crop_and_resize" && (x < 0.0F || x > static_cast<float>(axis.from - 1))) {
    result.outside = true;
    return result;
  }
  if (mode.interpolation == "nearest") {
    result.at.push_back(within(nearest_position(mode.nearest, x)));
    result.weights.push_back(1.0F);
    return result;
  }
  const bool cubic = mode.interpolation == "cubic";
  if (!cubic && mode.interpolation != "linear")
    throw error(errc::bad_attribute, "Resize: mode '" + mode.interpolation + "'");
  if (!cubic && !mode.antialias) {
    // Each neighbour weighs as far as the other is away, which has no rounding where 1 - distance would have one.
    const float inside = std::clamp(x, 0.0F, static_cast<float>(axis.from - 1));
    const float low = std::floor(inside);
    const float high = std::min(low + 1.0F, static_cast<float>(axis.from - 1));
    result.at = {within(low), within(high)};
    result.weights = {low == high ? 0.5F : high - inside, low == high ? 0.5F : inside - low};
    return result;
  }
  // The kernel's support grows where antialiasing scales down.
  const float shrink = mode.antialias ? std::min(axis.scale, 1.0F) : 1.0F;
  const float radius = (cubic ? 2.0F : 1.0F) / shrink;
  const auto first = static_cast<std::int64_t>(std::floor(x - radius)) + 1;
  const auto last = static_cast<std::int64_t>(std::ceil(x + radius)) - 1;
  float total = 0.0F;
  for (std::int64_t at = first; at <= last; ++at) {
    const float distance = (static_cast<float>(at) - x) * shrink;
    float weight = cubic ? cubic_weight(distance, mode.cubic) : std::max(0.0F, 1.0F - std::fabs(distance));
    if (mode.exclude_outside && (at < 0 || at >= axis.from)) weight = 0.0F;
    total += weight;
    result.at.push_back(std::clamp<std::int64_t>(at, 0, axis.from - 1));
    result.weights.push_back(weight);
  }
  if (mode.exclude_outside || mode.antialias)
    for (float& weight : result.weights) weight /= total;
  return result;
}

/// Whether the axis keeps its elements as they are, in whichever mode.
[[nodiscard]] inline bool is_unchanged(const resize_mode& mode, const resize_axis& axis) {
  return axis.from == axis.to && axis.scale == 1.0F && mode.coordinates != "tf_crop_and_resize";
}

/// The nearest element for each output element.
[[nodiscard]] inline tensor take_nearest(const tensor& x, const dim_list& dims,
                                         const std::vector<std::vector<taps>>& all, double outside) {
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

/// The weighted sums along one axis of elements of dims `current`, which becomes the axis's new length.
inline void interpolate_axis(std::vector<double>& values, dim_list& current, std::size_t axis,
                             const std::vector<taps>& along) {
  std::int64_t outer = 1;
  std::int64_t inner = 1;
  for (std::size_t a = 0; a < axis; ++a) outer *= current[a];
  for (std::size_t a = axis + 1; a < current.size(); ++a) inner *= current[a];
  const std::int64_t from = current[axis];
  const auto to = static_cast<std::int64_t>(along.size());
  std::vector<double> next(static_cast<std::size_t>(outer * to * inner), 0.0);
  parallel_ranges(outer * to, 1 + 65536 / std::max<std::int64_t>(inner, 1), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      const taps& tap = along[static_cast<std::size_t>(row % to)];
      double* out = next.data() + row * inner;
      for (std::size_t t = 0; t < tap.at.size(); ++t) {
        const double* in = values.data() + (row / to * from + tap.at[t]) * inner;
        const auto weight = static_cast<double>(tap.weights[t]);
        for (std::int64_t i = 0; i < inner; ++i) out[i] += weight * in[i];
      }
    }
  });
  values = std::move(next);
  current[axis] = to;
}

/// The weighted sums of elements, one axis after the other from the last one on. Those of integers are antialiased, and
/// round after each axis.
inline void interpolate_axes(std::vector<double>& values, dim_list current, std::span<const resize_axis> axes,
                             const resize_mode& mode, const std::vector<std::vector<taps>>& all, bool rounds) {
  for (std::size_t axis = current.size(); axis-- > 0;) {
    if (is_unchanged(mode, axes[axis])) continue;
    interpolate_axis(values, current, axis, all[axis]);
    if (rounds)
      for (double& v : values) v = std::round(v);
  }
}

/// The weighted sums of integer elements, in single precision over all products of taps, the innermost axis's weight
/// first: where a sum comes close to an integer its rounding decides what is cut off.
inline void interpolate_integers(std::vector<double>& values, const tensor& x, const dim_list& dims,
                                 const std::vector<std::vector<taps>>& all) {
  const dim_list strides = row_major_strides(x.dims());
  std::vector<double> next(static_cast<std::size_t>(element_count(dims)));
  struct product {
    std::int64_t position;
    float weight;
  };
  for (std::size_t k = 0; k < next.size(); ++k) {
    auto rest = static_cast<std::int64_t>(k);
    std::vector<product> products{{0, 1.0F}};
    for (std::size_t axis = dims.size(); axis-- > 0; rest /= dims[axis]) {
      const taps& tap = all[axis][static_cast<std::size_t>(rest % dims[axis])];
      std::vector<product> longer;
      for (std::size_t t = 0; t < tap.at.size(); ++t)
        for (const product& p : products)
          longer.push_back({p.position + tap.at[t] * strides[axis], p.weight * tap.weights[t]});
      products = std::move(longer);
    }
    float sum = 0.0F;
    for (const product& p : products)
      sum += p.weight * static_cast<float>(values[static_cast<std::size_t>(p.position)]);
    next[k] = static_cast<double>(sum);
  }
  values = std::move(next);
}

/// Resamples all axes. `outside` is what positions outside the input become.
[[nodiscard]] inline tensor resample(const tensor& x, std::span<const resize_axis> axes, const resize_mode& mode,
                                     double outside) {
  std::vector<std::vector<taps>> all;
  dim_list dims;
  for (const resize_axis& axis : axes) {
    dims.push_back(axis.to);
    if (axis.to > 0 && axis.from == 0)
      throw error(errc::shape_mismatch, "Resize: an axis without elements becomes " + std::to_string(axis.to));
  }
  const bool crops = mode.coordinates == "tf_crop_and_resize";
  if (dims == x.dims() && !crops) return x;
  for (const resize_axis& axis : axes) {
    std::vector<taps> own;
    for (std::int64_t index = 0; index < axis.to; ++index)
      own.push_back(is_unchanged(mode, axis) ? taps{{index}, {1.0F}, false} : axis_taps(mode, axis, index));
    all.push_back(std::move(own));
  }
  if (mode.interpolation == "nearest") return take_nearest(x, dims, all, outside);
  std::vector<double> values = load_all<double>(x);
  if (is_floating(x.type()) || mode.antialias)
    interpolate_axes(values, x.dims(), axes, mode, all, !is_floating(x.type()));
  else
    interpolate_integers(values, x, dims, all);
  if (crops)
    for (std::size_t k = 0; k < values.size(); ++k) {
      auto rest = static_cast<std::int64_t>(k);
      for (std::size_t axis = dims.size(); axis-- > 0; rest /= dims[axis])
        if (all[axis][static_cast<std::size_t>(rest % dims[axis])].outside) values[k] = outside;
    }
  return store_all<double>(x.type(), dims, values);
}

/// The lengths and scales that the input `sizes` asks for.
inline void apply_sizes(std::vector<resize_axis>& axes, std::span<const std::int64_t> chosen, const tensor& given,
                        const std::string& policy) {
  const std::vector<std::int64_t> sizes = integers_of(given);
  if (sizes.size() != chosen.size())
    throw error(errc::shape_mismatch,
                "Resize: " + std::to_string(sizes.size()) + " sizes for " + std::to_string(chosen.size()) + " axes");
  std::optional<float> common;
  for (std::size_t k = 0; k < chosen.size(); ++k) {
    resize_axis& axis = axes[axis_at(chosen[k], axes.size())];
    axis.to = sizes[k];
    axis.scale = static_cast<float>(axis.to) / static_cast<float>(axis.from);
    common = !common                  ? axis.scale
             : policy == "not_larger" ? std::min(*common, axis.scale)
                                      : std::max(*common, axis.scale);
  }
  if (policy == "stretch") return;
  for (const std::int64_t at : chosen) {
    resize_axis& axis = axes[axis_at(at, axes.size())];
    axis.scale = *common;
    axis.to = ops::whole_dim(std::round(*common * static_cast<float>(axis.from)));
  }
}

inline void resize(const attribute_map& attributes, std::span<const tensor> inputs, std::span<tensor> outputs) {
  const tensor& x = inputs[0];
  resize_mode mode;
  mode.interpolation = attributes.get_string("mode", "nearest");
  mode.coordinates = attributes.get_string("coordinate_transformation_mode", "half_pixel");
  mode.nearest = attributes.get_string("nearest_mode", "round_prefer_floor");
  mode.cubic = attributes.get_float("cubic_coeff_a", -0.75F);
  mode.exclude_outside = attributes.get_int("exclude_outside", 0) != 0;
  mode.antialias = attributes.get_int("antialias", 0) != 0;
  std::vector<std::int64_t> chosen(x.rank());
  for (std::size_t k = 0; k < chosen.size(); ++k) chosen[k] = static_cast<std::int64_t>(k);
  if (attributes.contains("axes")) chosen = attributes.get_ints("axes");
  std::vector<resize_axis> axes;
  for (const std::int64_t dim : x.dims()) axes.push_back({dim, dim, 1.0F});
  if (mode.coordinates == "tf_crop_and_resize" && has_input(inputs, 1) && inputs[1].size() != 0) {
    const std::vector<double> roi = load_all<double>(inputs[1]);
    if (roi.size() != 2 * chosen.size())
      throw error(errc::shape_mismatch, "Resize: the region has " + std::to_string(roi.size()) + " bounds");
    for (std::size_t k = 0; k < chosen.size(); ++k) {
      resize_axis& axis = axes[axis_at(chosen[k], x.rank())];
      axis.roi_start = static_cast<float>(roi[k]);
      axis.roi_end = static_cast<float>(roi[chosen.size() + k]);
    }
  }
  if (has_input(inputs, 3) && inputs[3].size() != 0) {
    apply_sizes(axes, chosen, inputs[3], attributes.get_string("keep_aspect_ratio_policy", "stretch"));
  } else {
    if (!has_input(inputs, 2)) throw error(errc::bad_arity, "Resize: neither scales nor sizes are given");
    const std::vector<double> scales = load_all<double>(inputs[2]);
    if (scales.size() != chosen.size())
      throw error(errc::shape_mismatch, "Resize: " + std::to_string(scales.size()) + " scales for " +
                                            std::to_string(chosen.size()) + " axes");
    for (std::size_t k = 0; k < chosen.size(); ++k) {
      resize_axis& axis = axes[axis_at(chosen[k], x.rank())];
      axis.scale = static_cast<float>(scales[k]);
      axis.to = ops::whole_dim(static_cast<float>(axis.from) * axis.scale);
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
    const auto scale = static_cast<float>(scales[k]);
    axes.push_back({dim, ops::whole_dim(static_cast<float>(dim) * scale), scale});
  }
  outputs[0] = resample(inputs[0], axes, mode, 0.0);
}

}  // namespace resampling

inline constexpr std::array resize_rows{
    reference_row{"", "Resize", resampling::resize},
    reference_row{"", "Upsample", resampling::upsample},
};

}  // namespace dnnopt::reference

#endif  // DNNOPT_REFERENCE_RESIZE_HPP
