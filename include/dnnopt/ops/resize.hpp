// Owns the operators that resample on another grid: Resize, Upsample, GridSample, AffineGrid.
#ifndef DNNOPT_OPS_RESIZE_HPP
#define DNNOPT_OPS_RESIZE_HPP

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dnnopt/ops/generator.hpp>

namespace dnnopt::ops {

/// A positive float as numerator / 2^exponent where both stay small, else nothing.
struct dyadic {
  std::int64_t numerator;
  std::int64_t denominator;
};
[[nodiscard]] inline std::optional<dyadic> small_dyadic(float value) {
  if (!(value > 0.0F) || !std::isfinite(value)) return std::nullopt;
  std::int64_t denominator = 1;
  float scaled = value;
  while (scaled != std::floor(scaled) && denominator <= 4096) {
    scaled *= 2.0F;
    denominator *= 2;
  }
  if (scaled != std::floor(scaled) || scaled > 65536.0F) return std::nullopt;
  return dyadic{static_cast<std::int64_t>(scaled), denominator};
}

/// The float elements of a constant `scales` input, or nothing. Errors: type_mismatch.
[[nodiscard]] inline std::optional<std::vector<float>> scales_of(const node_facts& facts, std::size_t input) {
  const tensor* held = facts.constant(input);
  if (held == nullptr || held->size() == 0) return std::nullopt;
  const auto values = held->data<float>();
  for (const float v : values)
    if (!(v > 0.0F) || !std::isfinite(v)) throw error(errc::bad_attribute, "Resize: a scale is " + std::to_string(v));
  return std::vector<float>(values.begin(), values.end());
}

/// The integer part of a computed dim. Errors: overflow for one that no tensor has, NaN included.
[[nodiscard]] inline std::int64_t whole_dim(double dim) {
  if (!(std::abs(dim) < 0x1p62)) throw error(errc::overflow, "Resize: a dim of the output is " + std::to_string(dim));
  return static_cast<std::int64_t>(std::floor(dim));
}

/// dim scaled as ONNX rounds it: floor of the product in single precision.
[[nodiscard]] inline std::optional<index_expr> scaled_dim(const index_expr& dim, float scale) {
  if (scale == 1.0F) return dim;
  if (dim.is_constant()) return index_expr(whole_dim(static_cast<double>(static_cast<float>(dim.constant()) * scale)));
  const auto ratio = small_dyadic(scale);
  if (!ratio) return std::nullopt;
  return floordiv(dim * ratio->numerator, ratio->denominator);
}

/// Resize: interpolation at the coordinates that `coordinate_transformation_mode` gives, to given scales or sizes.
struct resize_op {
  static constexpr std::string_view name = "Resize";
  static constexpr int since = 19;
  static constexpr op_arity arity{1, 4};
  static constexpr mapping_type mapping = mapping_type::one_to_many;
  static constexpr layout_class layout = layout_class::ild_variable;
  static constexpr dynamism_class dynamism = dynamism_class::isvdos;
  static constexpr computation_kind kind = computation_kind::resampling;

  // DNNFusion's class is that of the nearest mode; the others mix neighbours.
  static mapping_type mapping_of(const node_facts& facts, std::size_t input, std::size_t) {
    return input > 0 || facts.attributes->get_string("mode", "nearest") == "nearest" ? mapping
                                                                                     : mapping_type::many_to_many;
  }
  static dynamism_class dynamism_of(const node_facts& facts) { return determined_by(facts, {2, 3}); }

  static void infer(const node_facts& facts, std::span<value_facts> outputs) {
    set_type(outputs, 0, facts.type(0));
    const shape* dims = facts.dims(0);
    if (dims == nullptr) return;
    const auto axes = resized_axes(facts, dims->size());
    shape result = *dims;
    for (std::size_t k = 0; k < axes.size(); ++k) result[axes[k]] = facts.data_dim(0, axes[k]);
    if (gives_sizes(facts)) {
      if (const auto sizes = facts.elements(3)) {
        check_count(sizes->size(), axes.size());
        apply_sizes(facts, *dims, axes, *sizes, result);
      }
    } else if (const auto scales = scales_of(facts, 2)) {
      check_count(scales->size(), axes.size());
      const tensor* roi =
          facts.attributes->get_string("coordinate_transformation_mode", "half_pixel") == "tf_crop_and_resize"
              ? facts.constant(1)
              : nullptr;
      const bool cropped =
          facts.attributes->get_string("coordinate_transformation_mode", "half_pixel") == "tf_crop_and_resize";
      for (std::size_t k = 0; k < axes.size(); ++k) {
        const index_expr& dim = (*dims)[axes[k]];
        if (cropped) {
          if (roi == nullptr || !dim.is_constant() || roi->size() != static_cast<std::int64_t>(2 * axes.size()))
            continue;
          const std::vector<double> bounds = numbers_of(*roi);
          result[axes[k]] = whole_dim(static_cast<double>(dim.constant()) * (bounds[axes.size() + k] - bounds[k]) *
                                      static_cast<double>((*scales)[k]));
        } else if (auto scaled = scaled_dim(dim, (*scales)[k])) {
          result[axes[k]] = *scaled;
        }
      }
    }
    set_dims(outputs, 0, std::move(result));
  }

  /// An index map for nearest interpolation without a crop, in exact rational arithmetic. Errors: unsupported
  /// otherwise: such a Resize computes values and is no view.
  static void view(view_builder& builder, const node_facts& facts, std::size_t, std::span<const index_expr> index) {
    const shape& dims = viewed_dims(facts, 0, name);
    const attribute_map& attributes = *facts.attributes;
    if (attributes.get_string("mode", "nearest") != "nearest") no_view(name, "it interpolates");
    const auto axes = resized_axes(facts, dims.size());
    const std::string coordinates = attributes.get_string("coordinate_transformation_mode", "half_pixel");
    const std::string rounding = attributes.get_string("nearest_mode", "round_prefer_floor");
    const auto sizes = gives_sizes(facts) ? facts.elements(3) : std::nullopt;
    const auto scales = gives_sizes(facts) ? std::nullopt : scales_of(facts, 2);
    if (!sizes && !scales) no_view(name, "neither its sizes nor its scales are known");
    if (attributes.get_string("keep_aspect_ratio_policy", "stretch") != "stretch")
      no_view(name, "it keeps the aspect ratio");
    std::vector<index_expr> source(index.begin(), index.end());
    for (std::size_t k = 0; k < axes.size(); ++k) {
      const index_expr& in = dims[axes[k]];
      // The output has `out` elements for `from` of the input: one over the scale is from / out.
      index_expr out = sizes ? (*sizes)[k] : index_expr(1);
      index_expr from = in;
      if (scales) {
        if ((*scales)[k] == 1.0F) continue;
        const auto ratio = small_dyadic((*scales)[k]);
        const auto inverse = small_dyadic(1.0F / (*scales)[k]);
        if (ratio)
          out = ratio->numerator, from = ratio->denominator;
        else if (inverse && inverse->denominator == 1 && 1.0F / static_cast<float>(inverse->numerator) == (*scales)[k])
          out = 1, from = inverse->numerator;
        else
          no_view(name, "a scale is no small fraction");
      }
      if (out == from) continue;
      const index_expr& x = index[axes[k]];
      index_expr numerator = 0;
      index_expr denominator = 1;
      if (coordinates == "asymmetric") {
        numerator = x * from;
        denominator = out;
      } else if (coordinates == "half_pixel" || (coordinates == "half_pixel_symmetric" && sizes) ||
                 (coordinates == "pytorch_half_pixel" && out.range().low > 1)) {
        numerator = (x * 2 + 1) * from - out;
        denominator = out * 2;
      } else if (coordinates == "align_corners" && sizes && out.range().low > 1) {
        numerator = x * (in - 1);
        denominator = out - 1;
      } else {
        no_view(name, "of its coordinate mode " + coordinates);
      }
      index_expr nearest = 0;
      if (rounding == "floor")
        nearest = floordiv(numerator, denominator);
      else if (rounding == "ceil")
        nearest = ceildiv(numerator, denominator);
      else if (rounding == "round_prefer_ceil")
        nearest = floordiv(numerator * 2 + denominator, denominator * 2);
      else
        nearest = ceildiv(numerator * 2 - denominator, denominator * 2);
      if (nearest.range().low < 0) nearest = max(nearest, 0);
      if ((in - 1 - nearest).range().low < 0) nearest = min(nearest, in - 1);
      source[axes[k]] = nearest;
    }
    builder.piece(0, std::move(source));
  }

 private:
  static std::vector<double> numbers_of(const tensor& t) {
    std::vector<double> numbers;
    if (t.type() == dtype::float64) {
      for (const double v : t.data<double>()) numbers.push_back(v);
    } else if (t.type() == dtype::float16) {
      for (const float16 v : t.data<float16>()) numbers.push_back(static_cast<double>(float(v)));
    } else {
      for (const float v : t.data<float>()) numbers.push_back(static_cast<double>(v));
    }
    return numbers;
  }
  static std::vector<std::size_t> resized_axes(const node_facts& facts, std::size_t rank) {
    if (facts.attributes->contains("axes")) return axes_of(facts.attributes->get_ints("axes"), rank, name);
    std::vector<std::size_t> all(rank);
    for (std::size_t k = 0; k < rank; ++k) all[k] = k;
    return all;
  }
  // An empty `sizes` or `scales` tensor stands for an absent one in models of older opsets.
  static bool gives_sizes(const node_facts& facts) {
    if (!facts.has(3)) return false;
    const auto length = length_of(facts, 3);
    return !length || *length != 0;
  }
  static void check_count(std::size_t count, std::size_t axes) {
    if (count != axes)
      throw error(errc::shape_mismatch,
                  "Resize: " + std::to_string(count) + " sizes or scales for " + std::to_string(axes) + " axes");
  }
  static void apply_sizes(const node_facts& facts, const shape& dims, const std::vector<std::size_t>& axes,
                          const std::vector<index_expr>& sizes, shape& result) {
    const std::string policy = facts.attributes->get_string("keep_aspect_ratio_policy", "stretch");
    if (policy == "stretch") {
      for (std::size_t k = 0; k < axes.size(); ++k) result[axes[k]] = sizes[k];
      return;
    }
    std::optional<double> scale;
    for (std::size_t k = 0; k < axes.size(); ++k) {
      if (!sizes[k].is_constant() || !dims[axes[k]].is_constant()) return;
      const double own = static_cast<double>(sizes[k].constant()) / static_cast<double>(dims[axes[k]].constant());
      scale = !scale ? own : policy == "not_larger" ? std::min(*scale, own) : std::max(*scale, own);
    }
    for (std::size_t k = 0; k < axes.size(); ++k)
      result[axes[k]] = whole_dim(*scale * static_cast<double>(dims[axes[k]].constant()) + 0.5);
  }
};

/// Upsample: the deprecated form of Resize with scales only and asymmetric coordinates.
struct upsample_op {
  static constexpr std::string_view name = "Upsample";
  static constexpr int since = 10;
  static constexpr op_arity arity{2, 2};
  static constexpr mapping_type mapping = mapping_type::one_to_many;
  static constexpr layout_class layout = layout_class::ild_variable;
  static constexpr dynamism_class dynamism = dynamism_class::isvdos;
  static constexpr computation_kind kind = computation_kind::resampling;

  static mapping_type mapping_of(const node_facts& facts, std::size_t input, std::size_t output) {
    return resize_op::mapping_of(facts, input, output);
  }
  static dynamism_class dynamism_of(const node_facts& facts) { return determined_by(facts, {1}); }

  static void infer(const node_facts& facts, std::span<value_facts> outputs) {
    set_type(outputs, 0, facts.type(0));
    const shape* dims = facts.dims(0);
    if (dims == nullptr) return;
    const auto scales = scales_of(facts, 1);
    if (scales && scales->size() != dims->size())
      throw error(errc::shape_mismatch,
                  "Upsample: " + std::to_string(scales->size()) + " scales for " + to_string(*dims));
    shape result;
    for (std::size_t k = 0; k < dims->size(); ++k) {
      const auto scaled = scales ? scaled_dim((*dims)[k], (*scales)[k]) : std::nullopt;
      result.push_back(scaled ? *scaled : facts.data_dim(0, k));
    }
    set_dims(outputs, 0, std::move(result));
  }
};

/// GridSample: the input interpolated at the normalized coordinates that input 1 holds per output position.
struct grid_sample_op {
  static constexpr std::string_view name = "GridSample";
  static constexpr int since = 22;
  static constexpr op_arity arity{2, 2};
  static constexpr mapping_type mapping = mapping_type::many_to_many;
  static constexpr layout_class layout = layout_class::ild_variable;
  static constexpr dynamism_class dynamism = dynamism_class::isdos;
  static constexpr computation_kind kind = computation_kind::resampling;

  static void infer(const node_facts& facts, std::span<value_facts> outputs) {
    set_type(outputs, 0, facts.type(0));
    const shape* dims = facts.dims(0);
    const shape* grid = facts.dims(1);
    if (dims == nullptr || grid == nullptr) return;
    if (dims->size() < 3 || grid->size() != dims->size())
      throw error(errc::shape_mismatch, "GridSample: a grid " + to_string(*grid) + " over " + to_string(*dims));
    facts.require(guard_relation::equal, (*dims)[0], grid->front(), "batches of GridSample's input and grid");
    facts.require(guard_relation::equal, grid->back(), static_cast<std::int64_t>(dims->size()) - 2,
                  "coordinates of GridSample's grid and spatial dims");
    shape result{(*dims)[0], (*dims)[1]};
    result.insert(result.end(), grid->begin() + 1, grid->end() - 1);
    set_dims(outputs, 0, std::move(result));
  }
};

/// AffineGrid: the coordinates of an output of dims `size` under the affine maps theta.
struct affine_grid_op {
  static constexpr std::string_view name = "AffineGrid";
  static constexpr int since = 20;
  static constexpr op_arity arity{2, 2};
  static constexpr mapping_type mapping = mapping_type::many_to_many;
  static constexpr layout_class layout = layout_class::ild_variable;
  static constexpr dynamism_class dynamism = dynamism_class::isvdos;
  static constexpr computation_kind kind = computation_kind::generator;

  static dynamism_class dynamism_of(const node_facts& facts) { return determined_by(facts, {1}); }

  static void infer(const node_facts& facts, std::span<value_facts> outputs) {
    set_type(outputs, 0, facts.type(0));
    const auto size = facts.elements(1);
    if (size) {
      if (size->size() != 4 && size->size() != 5)
        throw error(errc::shape_mismatch, "AffineGrid: size has " + std::to_string(size->size()) + " elements");
      shape result{size->front()};
      result.insert(result.end(), size->begin() + 2, size->end());
      result.emplace_back(static_cast<std::int64_t>(size->size()) - 2);
      set_dims(outputs, 0, std::move(result));
    } else if (const auto length = length_of(facts, 1)) {
      shape result = data_dims(facts, 0, *length);
      result.back() = static_cast<std::int64_t>(*length) - 2;
      set_dims(outputs, 0, std::move(result));
    }
  }
};

}  // namespace dnnopt::ops

#endif  // DNNOPT_OPS_RESIZE_HPP
