// Owns the operators that resample on another grid: Resize, Upsample, GridSample, AffineGrid.
#ifndef DNNOPT_OPS_RESIZE_HPP
#define DNNOPT_OPS_RESIZE_HPP

#include <algorithm>
#include <array>
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
#include <dnnopt/ops/resize_coordinates.hpp>

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
  static constexpr input_set structural_inputs{1, 2, 3};
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
      for (std::size_t k = 0; k < axes.size(); ++k)
        if (auto scaled = scaled_dim((*dims)[axes[k]], (*scales)[k])) result[axes[k]] = *scaled;
    }
    set_dims(outputs, 0, std::move(result));
  }

  /// An index map for nearest interpolation without a crop, in rational arithmetic where that is proven to round as the
  /// coordinates in single precision do. Errors: unsupported otherwise: such a Resize computes values and is no view.
  static void view(view_builder& builder, const node_facts& facts, std::size_t, std::span<const index_expr> index) {
    const shape& dims = viewed_dims(facts, 0, name);
    const attribute_map& attributes = *facts.attributes;
    if (attributes.get_string("mode", "nearest") != "nearest") no_view(name, "it interpolates");
    const auto axes = resized_axes(facts, dims.size());
    const std::string coordinates = attributes.get_string("coordinate_transformation_mode", "half_pixel");
    const auto sizes = gives_sizes(facts) ? facts.elements(3) : std::nullopt;
    const auto scales = gives_sizes(facts) ? std::nullopt : scales_of(facts, 2);
    if (!sizes && !scales) no_view(name, "neither its sizes nor its scales are known");
    if (attributes.get_string("keep_aspect_ratio_policy", "stretch") != "stretch")
      no_view(name, "it keeps the aspect ratio");
    if (scales && coordinates != "tf_crop_and_resize") {
      // Where all lengths stay, all elements do, whatever the scales.
      bool stays = true;
      bool may_stay = true;
      for (std::size_t k = 0; k < axes.size(); ++k) {
        const auto scaled = scaled_dim(dims[axes[k]], (*scales)[k]);
        stays = stays && scaled && *scaled == dims[axes[k]];
        may_stay = may_stay && (scaled && scaled->is_constant() ? *scaled == dims[axes[k]]
                                                                : (*scales)[k] >= 1.0F && (*scales)[k] < 2.0F);
      }
      if (stays) return builder.piece(0, {index.begin(), index.end()});
      if (may_stay) no_view(name, "all lengths may stay as they are");
    }
    std::vector<index_expr> source(index.begin(), index.end());
    for (std::size_t k = 0; k < axes.size(); ++k) {
      const index_expr& in = dims[axes[k]];
      if (sizes ? (*sizes)[k] == in : (*scales)[k] == 1.0F) continue;
      source[axes[k]] =
          nearest_index(attributes, index[axes[k]], in, sizes ? &(*sizes)[k] : nullptr, scales ? (*scales)[k] : 0.0F);
    }
    builder.piece(0, std::move(source));
  }

 private:
  // The input index along one axis of `in` elements that becomes `size` (null: is scaled by `scale`) elements.
  static index_expr nearest_index(const attribute_map& attributes, const index_expr& x, const index_expr& in,
                                  const index_expr* size, float scale) {
    const std::string coordinates = attributes.get_string("coordinate_transformation_mode", "half_pixel");
    const std::string rounding = attributes.get_string("nearest_mode", "round_prefer_floor");
    const auto length = size != nullptr ? std::optional(*size) : scaled_dim(in, scale);
    // The output has `out` elements for `from` of the input: one over the scale is from / out.
    index_expr out = size != nullptr ? *size : index_expr(1);
    index_expr from = in;
    bool exact = coordinates == "align_corners";
    if (size == nullptr) {
      const auto ratio = small_dyadic(scale);
      const auto inverse = small_dyadic(1.0F / scale);
      if (ratio)
        out = ratio->numerator, from = ratio->denominator, exact = true;
      else if (inverse && inverse->denominator == 1 && 1.0F / static_cast<float>(inverse->numerator) == scale)
        out = 1, from = inverse->numerator;
      else
        no_view(name, "a scale is no small fraction");
    } else if (in.is_constant() && size->is_constant()) {
      scale = static_cast<float>(size->constant()) / static_cast<float>(in.constant());
      const auto ratio = small_dyadic(scale);
      exact = exact || (ratio && ratio->numerator * in.constant() == ratio->denominator * size->constant());
    }
    // The coordinate is (slope * x + offset) / denominator.
    index_expr slope = from;
    index_expr offset = 0;
    index_expr denominator = out;
    if (coordinates == "asymmetric") {
    } else if (coordinates == "half_pixel" || (coordinates == "half_pixel_symmetric" && size != nullptr) ||
               (coordinates == "pytorch_half_pixel" && length && length->range().low > 1)) {
      slope = from * 2;
      offset = from - out;
      denominator = out * 2;
    } else if (coordinates == "align_corners" && length && length->range().low > 1) {
      slope = in - 1;
      denominator = *length - 1;
    } else {
      no_view(name, "of its coordinate mode " + coordinates);
    }
    // A quotient of numbers that single precision holds rounds to the right side of each integer and each half.
    if (!exact && !rounds_alike(attributes, in, length, scale, {slope, offset, denominator}))
      no_view(name, "single precision may round its coordinates otherwise");
    index_expr nearest = nearest_quotient(rounding, slope * x + offset, denominator);
    if (nearest.range().low < 0) nearest = max(nearest, 0);
    if ((in - 1 - nearest).range().low < 0) nearest = min(nearest, in - 1);
    return nearest;
  }
  static index_expr nearest_quotient(const std::string& rounding, const index_expr& numerator,
                                     const index_expr& denominator) {
    if (rounding == "floor") return floordiv(numerator, denominator);
    if (rounding == "ceil") return ceildiv(numerator, denominator);
    if (rounding == "round_prefer_ceil") return floordiv(numerator * 2 + denominator, denominator * 2);
    return ceildiv(numerator * 2 - denominator, denominator * 2);
  }
  // Whether every index of an axis of known length has in single precision the neighbour that the quotient names.
  // O(length of the output).
  static bool rounds_alike(const attribute_map& attributes, const index_expr& in, const std::optional<index_expr>& out,
                           float scale, const std::array<index_expr, 3>& quotient) {
    constexpr std::int64_t most = 65536;
    const auto known = [](const index_expr& e) { return e.is_constant(); };
    if (!known(in) || !out || !known(*out) || out->constant() > most ||
        !std::all_of(quotient.begin(), quotient.end(), known))
      return false;
    const std::string coordinates = attributes.get_string("coordinate_transformation_mode", "half_pixel");
    const std::string rounding = attributes.get_string("nearest_mode", "round_prefer_floor");
    const resize_axis axis{in.constant(), out->constant(), scale};
    const auto within = [&](std::int64_t at) { return std::clamp<std::int64_t>(at, 0, axis.from - 1); };
    for (std::int64_t i = 0; i < axis.to; ++i) {
      const index_expr exact = nearest_quotient(rounding, quotient[0] * i + quotient[1], quotient[2]);
      const float rounded = nearest_position(rounding, source_coordinate(coordinates, axis, i));
      if (within(exact.constant()) != within(static_cast<std::int64_t>(rounded))) return false;
    }
    return true;
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
    std::optional<float> scale;
    for (std::size_t k = 0; k < axes.size(); ++k) {
      if (!sizes[k].is_constant() || !dims[axes[k]].is_constant()) return;
      const float own = static_cast<float>(sizes[k].constant()) / static_cast<float>(dims[axes[k]].constant());
      scale = !scale ? own : policy == "not_larger" ? std::min(*scale, own) : std::max(*scale, own);
    }
    for (std::size_t k = 0; k < axes.size(); ++k)
      result[axes[k]] = whole_dim(std::round(*scale * static_cast<float>(dims[axes[k]].constant())));
  }
};

/// Upsample: the deprecated form of Resize with scales only and asymmetric coordinates.
struct upsample_op {
  static constexpr std::string_view name = "Upsample";
  static constexpr input_set structural_inputs{1};
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
  static constexpr input_set structural_inputs{1};
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
      if (*length != 4 && *length != 5)
        throw error(errc::shape_mismatch, "AffineGrid: size has " + std::to_string(*length) + " elements");
      shape result = data_dims(facts, 0, *length);
      result.back() = static_cast<std::int64_t>(*length) - 2;
      set_dims(outputs, 0, std::move(result));
    }
  }
};

}  // namespace dnnopt::ops

#endif  // DNNOPT_OPS_RESIZE_HPP
