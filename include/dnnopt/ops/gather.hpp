// Owns the operators that read elements at indices held in a tensor: Gather, GatherElements, GatherND.
#ifndef DNNOPT_OPS_GATHER_HPP
#define DNNOPT_OPS_GATHER_HPP

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dnnopt/ops/structure_transfer.hpp>

namespace dnnopt::ops {

/// The range of an index along `dim` before negative ones are wrapped.
[[nodiscard]] inline expr_range index_range(const index_expr& dim) {
  const std::int64_t high = dim.range().high;
  return {high >= unbounded ? -unbounded : -high, high >= unbounded ? unbounded : high - 1};
}

/// Errors: type_mismatch where indices are of another type than integers.
inline void require_indices(const node_facts& facts, std::size_t input, std::string_view op) {
  const dtype type = facts.type(input);
  if (type != dtype::undefined && type != dtype::int64 && type != dtype::int32)
    throw error(errc::type_mismatch,
                std::string(op) + ": indices are " + std::string(name_of(type)) + ", not int32 or int64");
}

/// States what indices into `dims` must meet: input `input` holds tuples of as many indices as there are dims. Constant
/// ones are inside of their dims; where a run computes them, there is a place that they can name, and kernels keep them
/// inside. Errors: shape_mismatch where that can never hold. O(elements of a constant).
inline void require_inside(const node_facts& facts, std::size_t input, std::span<const index_expr> dims) {
  const tensor* held = facts.constant(input);
  if (held == nullptr) {
    if (const shape* indices = facts.dims(input))
      for (const index_expr& dim : dims)
        facts.require(guard_relation::at_least, dim, min(element_count(*indices), 1),
                      "an indexed dim and one, where there are indices");
    return;
  }
  const std::vector<std::int64_t> values = integers_of(*held);
  for (std::size_t d = 0; d < dims.size() && d < values.size(); ++d) {
    std::int64_t least = values[d];
    std::int64_t most = values[d];
    for (std::size_t k = d; k < values.size(); k += dims.size()) {
      least = std::min(least, values[k]);
      most = std::max(most, values[k]);
    }
    // No dim is as large as these limits.
    facts.require(guard_relation::at_least, dims[d], std::min(most, unbounded - 1) + 1,
                  "an indexed dim and what its greatest index needs");
    if (least < 0)
      facts.require(guard_relation::at_least, dims[d], -std::max(least, -unbounded),
                    "an indexed dim and what its least index, counted from the end, needs");
  }
}

/// Gather: slices of `axis` at the indices of input 1.
struct gather_op {
  static constexpr std::string_view name = "Gather";
  static constexpr int since = 13;
  static constexpr op_arity arity{2, 2};
  static constexpr mapping_type mapping = mapping_type::one_to_many;
  static constexpr layout_class layout = layout_class::ili_fixed;
  static constexpr dynamism_class dynamism = dynamism_class::isdos;
  static constexpr computation_kind kind = computation_kind::indexed_read;

  static void infer(const node_facts& facts, std::span<value_facts> outputs) {
    set_type(outputs, 0, facts.type(0));
    require_indices(facts, 1, name);
    const shape* dims = facts.dims(0);
    const shape* indices = facts.dims(1);
    if (dims == nullptr || indices == nullptr) return;
    const auto axis = static_cast<std::ptrdiff_t>(axis_of(facts.attributes->get_int("axis", 0), dims->size(), name));
    require_inside(facts, 1, std::span(*dims).subspan(static_cast<std::size_t>(axis), 1));
    shape result(dims->begin(), dims->begin() + axis);
    result.insert(result.end(), indices->begin(), indices->end());
    result.insert(result.end(), dims->begin() + axis + 1, dims->end());
    set_dims(outputs, 0, std::move(result));
    carry_elements(facts, outputs, &gather_op::view);
  }
  static void infer_backward(const node_facts&, std::span<const value_facts> outputs, std::span<value_facts> inputs) {
    if (inputs[0].type == dtype::undefined) inputs[0].type = outputs[0].type;
  }
  static void view(view_builder& builder, const node_facts& facts, std::size_t, std::span<const index_expr> index) {
    const shape& dims = viewed_dims(facts, 0, name);
    const std::size_t rank = viewed_dims(facts, 1, name).size();
    const std::size_t axis = axis_of(facts.attributes->get_int("axis", 0), dims.size(), name);
    const index_expr at = builder.load(1, index.subspan(axis, rank), index_range(dims[axis]));
    std::vector<index_expr> source(index.begin(), index.begin() + static_cast<std::ptrdiff_t>(axis));
    source.push_back(builder.wrap_negative(at, dims[axis]));
    source.insert(source.end(), index.begin() + static_cast<std::ptrdiff_t>(axis + rank), index.end());
    builder.piece(0, std::move(source));
  }
};

/// GatherElements: the element whose index along `axis` input 1 holds at the same position.
struct gather_elements_op {
  static constexpr std::string_view name = "GatherElements";
  static constexpr int since = 13;
  static constexpr op_arity arity{2, 2};
  static constexpr mapping_type mapping = mapping_type::one_to_many;
  static constexpr layout_class layout = layout_class::ili_fixed;
  static constexpr dynamism_class dynamism = dynamism_class::isdos;
  static constexpr computation_kind kind = computation_kind::indexed_read;

  static mapping_type mapping_of(const node_facts&, std::size_t input, std::size_t) {
    return input == 1 ? mapping_type::one_to_one : mapping;
  }
  static void infer(const node_facts& facts, std::span<value_facts> outputs) {
    set_type(outputs, 0, facts.type(0));
    require_indices(facts, 1, name);
    const shape* indices = facts.dims(1);
    if (indices == nullptr) return;
    if (facts.dims(0) != nullptr && facts.dims(0)->size() != indices->size())
      throw error(errc::shape_mismatch,
                  "GatherElements: indices " + to_string(*indices) + " into " + to_string(*facts.dims(0)));
    if (const shape* dims = facts.dims(0)) {
      const std::size_t axis = axis_of(facts.attributes->get_int("axis", 0), dims->size(), name);
      for (std::size_t k = 0; k < dims->size(); ++k)
        if (k != axis)
          facts.require(guard_relation::at_least, (*dims)[k], (*indices)[k],
                        "dims of GatherElements' data and indices");
      require_inside(facts, 1, std::span(*dims).subspan(axis, 1));
    }
    set_dims(outputs, 0, *indices);
    carry_elements(facts, outputs, &gather_elements_op::view);
  }
  static void infer_backward(const node_facts&, std::span<const value_facts> outputs, std::span<value_facts> inputs) {
    if (inputs[0].type == dtype::undefined) inputs[0].type = outputs[0].type;
    if (!inputs[1].dims) inputs[1].dims = outputs[0].dims;
  }
  static void view(view_builder& builder, const node_facts& facts, std::size_t, std::span<const index_expr> index) {
    const shape& dims = viewed_dims(facts, 0, name);
    const std::size_t axis = axis_of(facts.attributes->get_int("axis", 0), dims.size(), name);
    const index_expr at = builder.load(1, index, index_range(dims[axis]));
    std::vector<index_expr> source(index.begin(), index.end());
    source[axis] = builder.wrap_negative(at, dims[axis]);
    builder.piece(0, std::move(source));
  }
};

/// GatherND: slices at index tuples, which are the last axis of input 1; the first `batch_dims` axes go together.
struct gather_nd_op {
  static constexpr std::string_view name = "GatherND";
  static constexpr int since = 13;
  static constexpr op_arity arity{2, 2};
  static constexpr mapping_type mapping = mapping_type::one_to_many;
  static constexpr layout_class layout = layout_class::ili_fixed;
  static constexpr dynamism_class dynamism = dynamism_class::isdos;
  static constexpr computation_kind kind = computation_kind::indexed_read;

  static void infer(const node_facts& facts, std::span<value_facts> outputs) {
    set_type(outputs, 0, facts.type(0));
    require_indices(facts, 1, name);
    const shape* dims = facts.dims(0);
    const shape* indices = facts.dims(1);
    if (dims == nullptr || indices == nullptr) return;
    if (indices->empty()) throw error(errc::shape_mismatch, "GatherND: indices have rank 0");
    const auto tuple = indices->back().as_constant();
    if (!tuple) return;
    const std::int64_t batch = facts.attributes->get_int("batch_dims", 0);
    const auto rank = static_cast<std::int64_t>(dims->size());
    if (batch < 0 || batch >= rank || batch >= static_cast<std::int64_t>(indices->size()) || *tuple < 0 ||
        batch + *tuple > rank)
      throw error(errc::shape_mismatch, "GatherND: index tuples of " + std::to_string(*tuple) + " after " +
                                            std::to_string(batch) + " batch dims into " + to_string(*dims));
    for (std::size_t k = 0; k < static_cast<std::size_t>(batch); ++k)
      facts.require(guard_relation::equal, (*dims)[k], (*indices)[k], "batch dims of GatherND's data and indices");
    require_inside(facts, 1,
                   std::span(*dims).subspan(static_cast<std::size_t>(batch), static_cast<std::size_t>(*tuple)));
    shape result(indices->begin(), indices->end() - 1);
    result.insert(result.end(), dims->begin() + batch + *tuple, dims->end());
    set_dims(outputs, 0, std::move(result));
    carry_elements(facts, outputs, &gather_nd_op::view);
  }
  static void infer_backward(const node_facts&, std::span<const value_facts> outputs, std::span<value_facts> inputs) {
    if (inputs[0].type == dtype::undefined) inputs[0].type = outputs[0].type;
  }
  static void view(view_builder& builder, const node_facts& facts, std::size_t, std::span<const index_expr> index) {
    const shape& dims = viewed_dims(facts, 0, name);
    const shape& indices = viewed_dims(facts, 1, name);
    const auto tuple = indices.back().as_constant();
    if (!tuple) no_view(name, "the length of its index tuples is not known");
    const auto batch = static_cast<std::size_t>(facts.attributes->get_int("batch_dims", 0));
    std::vector<index_expr> source(index.begin(), index.begin() + static_cast<std::ptrdiff_t>(batch));
    std::vector<index_expr> at(index.begin(), index.begin() + static_cast<std::ptrdiff_t>(indices.size() - 1));
    at.emplace_back(0);
    for (std::int64_t k = 0; k < *tuple; ++k) {
      at.back() = k;
      const index_expr& dim = dims[batch + static_cast<std::size_t>(k)];
      source.push_back(builder.wrap_negative(builder.load(1, at, index_range(dim)), dim));
    }
    source.insert(source.end(), index.begin() + static_cast<std::ptrdiff_t>(indices.size() - 1), index.end());
    builder.piece(0, std::move(source));
  }
};

}  // namespace dnnopt::ops

#endif  // DNNOPT_OPS_GATHER_HPP
