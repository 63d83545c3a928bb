// Owns the operators that select regions of a tensor: Slice, Split, CenterCropPad, Trilu, Compress.
#ifndef DNNOPT_OPS_SLICE_HPP
#define DNNOPT_OPS_SLICE_HPP

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dnnopt/ops/structure_transfer.hpp>

namespace dnnopt::ops {

/// What Slice takes from one axis: the elements start + k * step for k in [0, length).
struct slice_range {
  index_expr start;
  std::int64_t step = 1;
  index_expr length;
};

/// Slice's bounds along an axis of `dim` elements, clamped as ONNX says. Exporters write "to the end" as the largest
/// 32-bit or 64-bit integer, so bounds at or beyond 2^31 - 1 mean the end of any axis. Errors: shape_mismatch for step
/// 0.
[[nodiscard]] inline slice_range bounded_slice(const index_expr& dim, const index_expr& start, const index_expr& end,
                                               std::int64_t step) {
  if (step == 0) throw error(errc::shape_mismatch, "Slice: a step is 0");
  constexpr std::int64_t far = std::numeric_limits<std::int32_t>::max();
  const auto clamped = [&dim](const index_expr& bound, const index_expr& low, const index_expr& high) {
    if (bound.is_constant()) {
      const std::int64_t b = bound.constant();
      if (b >= far) return high;
      if (b <= -far) return low;
      return b < 0 ? max(dim + b, low) : min(bound, high);
    }
    index_expr at = wrapped(bound, dim);
    if ((at - low).range().low < 0) at = max(at, low);
    if ((high - at).range().low < 0) at = min(at, high);
    return at;
  };
  // No dim reaches `far`, so that a step of that size takes one element as any larger one does.
  step = std::clamp(step, -far, far);
  slice_range result;
  result.step = step;
  if (step > 0) {
    result.start = clamped(start, 0, dim);
    result.length = ceildiv(clamped(end, 0, dim) - result.start, step);
  } else {
    result.start = clamped(start, 0, dim - 1);
    result.length = ceildiv(result.start - clamped(end, -1, dim - 1), -step);
  }
  result.length = max(result.length, 0);
  // Backwards from the last of no elements there is nothing.
  if (step < 0 && dim.range().low <= 0) result.length = min(result.length, dim);
  return result;
}

/// Slice: a range with a step along each of some axes.
struct slice_op {
  static constexpr std::string_view name = "Slice";
  static constexpr input_set structural_inputs{1, 2, 3, 4};
  static constexpr int since = 13;
  static constexpr op_arity arity{3, 5};
  static constexpr mapping_type mapping = mapping_type::one_to_one;
  static constexpr layout_class layout = layout_class::ili_fixed;
  static constexpr dynamism_class dynamism = dynamism_class::isvdos;
  static constexpr computation_kind kind = computation_kind::view;

  static dynamism_class dynamism_of(const node_facts& facts) { return determined_by(facts, {1, 2, 3, 4}); }

  static void infer(const node_facts& facts, std::span<value_facts> outputs) {
    set_type(outputs, 0, facts.type(0));
    const shape* dims = facts.dims(0);
    if (dims == nullptr) return;
    const auto axes = sliced_axes(facts, dims->size());
    if (!axes) {
      set_dims(outputs, 0, data_dims(facts, 0, dims->size()));
      return;
    }
    const auto starts = facts.elements(1);
    const auto ends = facts.elements(2);
    const auto steps = steps_of(facts, axes->size());
    shape result = *dims;
    for (std::size_t k = 0; k < axes->size(); ++k) {
      const std::size_t axis = (*axes)[k];
      result[axis] = starts && ends && steps
                         ? bounded_slice((*dims)[axis], starts->at(k), ends->at(k), (*steps)[k]).length
                         : facts.data_dim(0, axis, {0, (*dims)[axis].range().high});
    }
    set_dims(outputs, 0, std::move(result));
    carry_elements(facts, outputs, &slice_op::view);
  }
  static void infer_backward(const node_facts&, std::span<const value_facts> outputs, std::span<value_facts> inputs) {
    if (inputs[0].type == dtype::undefined) inputs[0].type = outputs[0].type;
  }
  static void view(view_builder& builder, const node_facts& facts, std::size_t, std::span<const index_expr> index) {
    const shape& dims = viewed_dims(facts, 0, name);
    const auto axes = sliced_axes(facts, dims.size());
    if (!axes) no_view(name, "its axes are not known");
    const auto steps = steps_of(facts, axes->size());
    if (!steps) no_view(name, "its steps are not known");
    std::vector<index_expr> source(index.begin(), index.end());
    for (std::size_t k = 0; k < axes->size(); ++k) {
      const std::size_t axis = (*axes)[k];
      const index_expr start = element_of(builder, facts, 1, k);
      // The end bounds the output's dim only; any end gives the same start.
      source[axis] = bounded_slice(dims[axis], start, dims[axis], (*steps)[k]).start + index[axis] * (*steps)[k];
    }
    builder.piece(0, std::move(source));
  }

 private:
  static std::optional<std::vector<std::size_t>> sliced_axes(const node_facts& facts, std::size_t rank) {
    if (facts.has(3)) {
      const auto axes = facts.integers(3);
      if (!axes) return std::nullopt;
      check_length(facts, 1, axes->size());
      check_length(facts, 2, axes->size());
      return axes_of(*axes, rank, name);
    }
    const auto count = length_of(facts, 1);
    if (!count) return std::nullopt;
    check_length(facts, 2, *count);
    if (*count > rank)
      throw error(errc::shape_mismatch,
                  "Slice: " + std::to_string(*count) + " starts for rank " + std::to_string(rank));
    std::vector<std::size_t> axes(*count);
    for (std::size_t k = 0; k < axes.size(); ++k) axes[k] = k;
    return axes;
  }
  static std::optional<std::vector<std::int64_t>> steps_of(const node_facts& facts, std::size_t count) {
    if (!facts.has(4)) return std::vector<std::int64_t>(count, 1);
    auto steps = facts.integers(4);
    if (steps) check_length(facts, 4, count);
    return steps;
  }
  static void check_length(const node_facts& facts, std::size_t input, std::size_t count) {
    const auto length = length_of(facts, input);
    if (length && *length != count)
      throw error(errc::shape_mismatch, "Slice: input " + std::to_string(input) + " has " + std::to_string(*length) +
                                            " elements for " + std::to_string(count) + " axes");
  }
};

/// Split: consecutive parts of one axis, of the sizes of input 1 or of equal size.
struct split_op {
  static constexpr std::string_view name = "Split";
  static constexpr input_set structural_inputs{1};
  static constexpr int since = 18;
  static constexpr op_arity arity{1, 2, 1, variadic};
  static constexpr mapping_type mapping = mapping_type::one_to_one;
  static constexpr layout_class layout = layout_class::ili_fixed;
  static constexpr dynamism_class dynamism = dynamism_class::isdos;
  static constexpr computation_kind kind = computation_kind::view;

  static dynamism_class dynamism_of(const node_facts& facts) { return determined_by(facts, {1}); }

  static void infer(const node_facts& facts, std::span<value_facts> outputs) {
    for (std::size_t o = 0; o < outputs.size(); ++o) set_type(outputs, o, facts.type(0));
    const shape* dims = facts.dims(0);
    if (dims == nullptr) return;
    const std::size_t axis = axis_of(facts.attributes->get_int("axis", 0), dims->size(), name);
    const auto sizes = part_sizes(facts, (*dims)[axis], outputs.size());
    index_expr total = 0;
    for (std::size_t o = 0; o < outputs.size(); ++o) {
      shape part = *dims;
      part[axis] = sizes ? (*sizes)[o] : facts.data_dim(o, axis, {0, (*dims)[axis].range().high});
      total += part[axis];
      set_dims(outputs, o, std::move(part));
    }
    if (sizes && facts.has(1))
      facts.require(guard_relation::equal, total, (*dims)[axis], "the sum of Split's parts and the dim that it splits");
    carry_elements(facts, outputs, &split_op::view);
  }
  static void infer_backward(const node_facts&, std::span<const value_facts> outputs, std::span<value_facts> inputs) {
    if (inputs[0].type == dtype::undefined) inputs[0].type = outputs[0].type;
  }
  static void view(view_builder& builder, const node_facts& facts, std::size_t output,
                   std::span<const index_expr> index) {
    const shape& dims = viewed_dims(facts, 0, name);
    const std::size_t axis = axis_of(facts.attributes->get_int("axis", 0), dims.size(), name);
    const auto sizes = part_sizes(facts, dims[axis], facts.output_count);
    std::vector<index_expr> source(index.begin(), index.end());
    for (std::size_t o = 0; o < output; ++o)
      source[axis] += sizes ? (*sizes)[o] : element_of(builder, facts, 1, o, {0, dims[axis].range().high});
    builder.piece(0, std::move(source));
  }

 private:
  static std::optional<std::vector<index_expr>> part_sizes(const node_facts& facts, const index_expr& dim,
                                                           std::size_t count) {
    if (facts.has(1)) {
      auto sizes = facts.elements(1);
      if (sizes && sizes->size() != count)
        throw error(errc::shape_mismatch,
                    "Split: " + std::to_string(sizes->size()) + " sizes for " + std::to_string(count) + " outputs");
      return sizes;
    }
    const auto n = facts.attributes->get_int("num_outputs", static_cast<std::int64_t>(count));
    if (n < 1 || static_cast<std::size_t>(n) != count)
      throw error(errc::bad_attribute,
                  "Split: num_outputs is " + std::to_string(n) + " for " + std::to_string(count) + " outputs");
    const index_expr part = ceildiv(dim, n);
    std::vector<index_expr> sizes(count, part);
    sizes.back() = dim - part * (n - 1);
    if (sizes.back().is_constant() && sizes.back().constant() < 0)
      throw error(errc::shape_mismatch,
                  "Split: " + to_string(dim) + " elements do not fill " + std::to_string(n) + " parts");
    return sizes;
  }
};

/// CenterCropPad: cropped or zero-padded, evenly on both sides, to the dims of input 1.
struct center_crop_pad_op {
  static constexpr std::string_view name = "CenterCropPad";
  static constexpr input_set structural_inputs{1};
  static constexpr int since = 18;
  static constexpr op_arity arity{2, 2};
  static constexpr mapping_type mapping = mapping_type::one_to_one;
  static constexpr layout_class layout = layout_class::ili_fixed;
  static constexpr dynamism_class dynamism = dynamism_class::isvdos;
  static constexpr computation_kind kind = computation_kind::view;

  static dynamism_class dynamism_of(const node_facts& facts) { return determined_by(facts, {1}); }

  static void infer(const node_facts& facts, std::span<value_facts> outputs) {
    set_type(outputs, 0, facts.type(0));
    const shape* dims = facts.dims(0);
    if (dims == nullptr) return;
    const auto wanted = facts.elements(1);
    const auto axes = cropped_axes(facts, dims->size());
    if (wanted && wanted->size() != axes.size())
      throw error(errc::shape_mismatch, "CenterCropPad: " + std::to_string(wanted->size()) + " dims for " +
                                            std::to_string(axes.size()) + " axes");
    shape result = *dims;
    for (std::size_t k = 0; k < axes.size(); ++k) result[axes[k]] = wanted ? (*wanted)[k] : facts.data_dim(0, axes[k]);
    set_dims(outputs, 0, std::move(result));
    carry_elements(facts, outputs, &center_crop_pad_op::view);
  }
  static void view(view_builder& builder, const node_facts& facts, std::size_t, std::span<const index_expr> index) {
    const shape& dims = viewed_dims(facts, 0, name);
    const auto axes = cropped_axes(facts, dims.size());
    std::vector<index_expr> source(index.begin(), index.end());
    std::vector<view_builder::condition> inside;
    for (std::size_t k = 0; k < axes.size(); ++k) {
      const index_expr& dim = dims[axes[k]];
      const index_expr target = element_of(builder, facts, 1, k, {0, unbounded});
      source[axes[k]] += max(floordiv(dim - target, 2), 0) - max(floordiv(target - dim, 2), 0);
      if ((dim - target).range().low < 0) inside.push_back({source[axes[k]], 0, dim});
    }
    const bool padded = !inside.empty();
    builder.piece(0, std::move(source), std::move(inside));
    if (padded) builder.fill(0);
  }

 private:
  static std::vector<std::size_t> cropped_axes(const node_facts& facts, std::size_t rank) {
    if (facts.attributes->contains("axes")) return axes_of(facts.attributes->get_ints("axes"), rank, name);
    std::vector<std::size_t> all(rank);
    for (std::size_t k = 0; k < rank; ++k) all[k] = k;
    return all;
  }
};

/// Trilu: the upper or lower triangle of matrices, zero elsewhere; input 1 shifts the diagonal.
struct trilu_op {
  static constexpr std::string_view name = "Trilu";
  static constexpr int since = 14;
  static constexpr op_arity arity{1, 2};
  static constexpr mapping_type mapping = mapping_type::one_to_one;
  static constexpr layout_class layout = layout_class::ili_fixed;
  static constexpr dynamism_class dynamism = dynamism_class::isdos;
  static constexpr computation_kind kind = computation_kind::view;

  static mapping_type mapping_of(const node_facts&, std::size_t input, std::size_t) {
    return input == 0 ? mapping : mapping_type::one_to_many;
  }
  static void infer(const node_facts& facts, std::span<value_facts> outputs) {
    set_type(outputs, 0, facts.type(0));
    const shape* dims = facts.dims(0);
    if (dims == nullptr) return;
    if (dims->size() < 2)
      throw error(errc::shape_mismatch, "Trilu: the input " + to_string(*dims) + " has rank below 2");
    set_dims(outputs, 0, *dims);
    carry_elements(facts, outputs, &trilu_op::view);
  }
  static void infer_backward(const node_facts&, std::span<const value_facts> outputs, std::span<value_facts> inputs) {
    if (inputs[0].type == dtype::undefined) inputs[0].type = outputs[0].type;
    if (!inputs[0].dims) inputs[0].dims = outputs[0].dims;
  }
  static void view(view_builder& builder, const node_facts& facts, std::size_t, std::span<const index_expr> index) {
    const index_expr shift = facts.has(1) ? element_of(builder, facts, 1, 0) : index_expr(0);
    const index_expr& row = index[index.size() - 2];
    const index_expr& column = index[index.size() - 1];
    const bool upper = facts.attributes->get_int("upper", 1) != 0;
    const index_expr kept = upper ? column - row - shift : row - column + shift;
    builder.piece(0, {index.begin(), index.end()}, {{kept, 0, kept + 1}});
    builder.fill(0);
  }
};

/// Compress: the slices of an axis (or of the flattened input) whose condition is true.
struct compress_op {
  static constexpr std::string_view name = "Compress";
  static constexpr int since = 28;
  static constexpr op_arity arity{2, 2};
  static constexpr mapping_type mapping = mapping_type::many_to_many;
  static constexpr layout_class layout = layout_class::ili_fixed;
  static constexpr dynamism_class dynamism = dynamism_class::edo;
  static constexpr computation_kind kind = computation_kind::sorting;

  // Where an element goes depends on all conditions before it; the element itself moves once.
  static mapping_type mapping_of(const node_facts&, std::size_t input, std::size_t) {
    return input == 0 ? mapping_type::one_to_one : mapping;
  }
  static void infer(const node_facts& facts, std::span<value_facts> outputs) {
    set_type(outputs, 0, facts.type(0));
    const shape* dims = facts.dims(0);
    if (!facts.attributes->contains("axis")) {
      const std::int64_t most = dims != nullptr ? element_count(*dims).range().high : unbounded;
      set_dims(outputs, 0, {facts.data_dim(0, 0, {0, most})});
      return;
    }
    if (dims == nullptr) return;
    const std::size_t axis = axis_of(facts.attributes->get_int("axis", 0), dims->size(), name);
    shape result = *dims;
    result[axis] = facts.data_dim(0, axis, {0, (*dims)[axis].range().high});
    set_dims(outputs, 0, std::move(result));
  }
};

}  // namespace dnnopt::ops

#endif  // DNNOPT_OPS_SLICE_HPP
