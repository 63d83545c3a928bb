// Owns the operators that regroup dims and keep the row-major order of elements: Reshape, Flatten, Squeeze, Unsqueeze,
// Identity.
#ifndef DNNOPT_OPS_RESHAPE_HPP
#define DNNOPT_OPS_RESHAPE_HPP

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dnnopt/ops/structure_transfer.hpp>
#include <dnnopt/row_major.hpp>

namespace dnnopt::ops {

/// Whether b is a multiple of a for all values of their symbols (as far as their forms tell).
[[nodiscard]] inline bool divides(const index_expr& a, const index_expr& b) {
  if (a == b || a == index_expr(1)) return true;
  if (a == index_expr(0) || b == index_expr(0)) return false;
  if (a.is_constant() && b.is_constant()) return b.constant() % a.constant() == 0;
  if (b.is_constant()) return false;
  if (!a.is_constant()) return dnnopt::detail::exact_quotient(b, a).has_value();
  const auto [multiple, rest] = dnnopt::detail::split_multiples(b, a.constant());
  return rest == index_expr(0);
}

/// Indices into a row-major tensor of dims `from` of the element that row-major dims `to` have at `index`.
///
/// Dims are cut into the smallest groups with equal products on both sides (identity, split and merge of SmartMem
/// section 3.2), so that only the dims of one group are linearized together; dims of 1 take no part. Beside a dim of 0
/// there is no element, and all indices are 0. Precondition: both shapes have the same number of elements. O(rank)
/// expressions.
[[nodiscard]] inline std::vector<index_expr> regrouped(const shape& from, const shape& to,
                                                       std::span<const index_expr> index) {
  std::vector<index_expr> result(from.size(), index_expr(0));
  const auto is_empty = [](const shape& dims) {
    return std::find(dims.begin(), dims.end(), index_expr(0)) != dims.end();
  };
  if (is_empty(from) || is_empty(to)) return result;
  std::vector<std::size_t> source;
  std::vector<std::size_t> target;
  for (std::size_t i = 0; i < from.size(); ++i)
    if (!(from[i] == index_expr(1))) source.push_back(i);
  for (std::size_t j = 0; j < to.size(); ++j)
    if (!(to[j] == index_expr(1))) target.push_back(j);
  std::size_t i = 0;
  std::size_t j = 0;
  while (i < source.size() || j < target.size()) {
    const std::size_t first_source = i;
    const std::size_t first_target = j;
    index_expr source_count = i < source.size() ? from[source[i++]] : index_expr(1);
    index_expr target_count = j < target.size() ? to[target[j++]] : index_expr(1);
    while (!(source_count == target_count) && (i < source.size() || j < target.size())) {
      const bool more_source = i < source.size();
      const bool more_target = j < target.size();
      bool grow_source = more_source;
      if (more_source && more_target) {
        if (source_count.is_constant() && target_count.is_constant())
          grow_source = source_count.constant() < target_count.constant();
        else
          grow_source = divides(source_count, target_count) || !divides(target_count, source_count);
      }
      if (grow_source)
        source_count *= from[source[i++]];
      else
        target_count *= to[target[j++]];
    }
    shape own;
    std::vector<index_expr> at;
    for (std::size_t t = first_target; t < j; ++t) {
      own.push_back(to[target[t]]);
      at.push_back(index[target[t]]);
    }
    const index_expr linear = row_major_offset(own, at);
    index_expr stride = 1;
    for (std::size_t s = i; s-- > first_source;) {
      const index_expr& dim = from[source[s]];
      const index_expr above = stride == index_expr(1) ? linear : floordiv(linear, stride);
      result[source[s]] = s == first_source ? above : mod(above, dim);
      stride *= dim;
    }
  }
  return result;
}

/// Identity: its input.
struct identity_op {
  static constexpr std::string_view name = "Identity";
  static constexpr int since = 25;
  static constexpr op_arity arity{1, 1};
  static constexpr mapping_type mapping = mapping_type::one_to_one;
  static constexpr layout_class layout = layout_class::ili_variable;
  static constexpr dynamism_class dynamism = dynamism_class::isdos;
  static constexpr computation_kind kind = computation_kind::view;

  static void infer(const node_facts& facts, std::span<value_facts> outputs) {
    if (!facts.has(0)) return;
    const value_facts& in = *facts.inputs[0];
    outputs[0].kind = in.kind;
    set_type(outputs, 0, in.type);
    if (in.kind != value_kind::tensor) return;
    if (in.dims) outputs[0].dims = in.dims;
    if (!outputs[0].elements && (is_integer(in.type) || in.type == dtype::boolean))
      outputs[0].elements = facts.elements(0);
  }
  static void infer_backward(const node_facts&, std::span<const value_facts> outputs, std::span<value_facts> inputs) {
    if (inputs[0].type == dtype::undefined) inputs[0].type = outputs[0].type;
    if (!inputs[0].dims) inputs[0].dims = outputs[0].dims;
  }
  static std::vector<index_expr> unview(const node_facts&, const shape&, std::span<const index_expr> index) {
    return {index.begin(), index.end()};
  }
  static void view(view_builder& builder, const node_facts&, std::size_t, std::span<const index_expr> index) {
    builder.piece(0, {index.begin(), index.end()});
  }
};

/// Reshape: the same elements under the dims of input 1 (0 copies a dim unless `allowzero`, -1 is what is left over).
struct reshape_op {
  static constexpr std::string_view name = "Reshape";
  static constexpr input_set structural_inputs{1};
  static constexpr int since = 25;
  static constexpr op_arity arity{2, 2};
  static constexpr mapping_type mapping = mapping_type::reorganize;
  static constexpr layout_class layout = layout_class::ild_fixed;
  static constexpr dynamism_class dynamism = dynamism_class::isvdos;
  static constexpr computation_kind kind = computation_kind::view;

  static dynamism_class dynamism_of(const node_facts& facts) { return determined_by(facts, {1}); }

  static void infer(const node_facts& facts, std::span<value_facts> outputs) {
    set_type(outputs, 0, facts.type(0));
    const auto wanted = facts.elements(1);
    if (!wanted) {
      if (const auto rank = length_of(facts, 1)) set_dims(outputs, 0, data_dims(facts, 0, *rank));
      return;
    }
    set_dims(outputs, 0, resolved(facts, *wanted));
    carry_elements(facts, outputs, &reshape_op::view);
  }
  static void infer_backward(const node_facts&, std::span<const value_facts> outputs, std::span<value_facts> inputs) {
    if (inputs[0].type == dtype::undefined) inputs[0].type = outputs[0].type;
  }
  static std::vector<index_expr> unview(const node_facts& facts, const shape& to, std::span<const index_expr> index) {
    return regrouped(to, viewed_dims(facts, 0, name), index);
  }
  static void view(view_builder& builder, const node_facts& facts, std::size_t, std::span<const index_expr> index) {
    const shape& from = viewed_dims(facts, 0, name);
    const auto wanted = facts.elements(1);
    if (wanted) {
      builder.piece(0, regrouped(from, resolved(facts, *wanted), index));
      return;
    }
    const auto rank = length_of(facts, 1);
    if (!rank) no_view(name, "the rank of the output is not known");
    builder.piece(0, regrouped(from, data_dims(facts, 0, *rank), index));
  }

 private:
  static shape resolved(const node_facts& facts, const std::vector<index_expr>& wanted) {
    const shape* from = facts.dims(0);
    const bool allow_zero = facts.attributes->get_int("allowzero", 0) != 0;
    shape dims;
    std::optional<std::size_t> free;
    for (std::size_t k = 0; k < wanted.size(); ++k) {
      if (wanted[k] == index_expr(-1)) {
        if (free) throw error(errc::shape_mismatch, "Reshape: the shape has -1 twice");
        free = k;
        dims.emplace_back(1);
      } else if (wanted[k] == index_expr(0) && !allow_zero) {
        if (from == nullptr) {
          dims.push_back(facts.data_dim(0, k));
          continue;
        }
        if (k >= from->size())
          throw error(errc::shape_mismatch, "Reshape: dim " + std::to_string(k) + " is copied from an input of rank " +
                                                std::to_string(from->size()));
        dims.push_back((*from)[k]);
      } else {
        if (wanted[k].range().high < -1)
          throw error(errc::shape_mismatch, "Reshape: dim " + std::to_string(k) + " is " + to_string(wanted[k]));
        if (!allow_zero && from != nullptr) require_no_late_copy(facts, *from, k, wanted[k]);
        dims.push_back(wanted[k]);
      }
    }
    if (from == nullptr) {
      if (free) dims[*free] = facts.data_dim(0, *free);
      return dims;
    }
    if (free) {
      dims[*free] = left_over(facts, *from, dims, *free);
      return dims;
    }
    if (is_static(*from) && is_static(dims) && !(element_count(*from) == element_count(dims)))
      throw error(errc::shape_mismatch,
                  "Reshape: " + to_string(*from) + " does not have the elements of " + to_string(dims));
    facts.require(guard_relation::equal, element_count(*from), element_count(dims),
                  "elements before and after Reshape");
    return dims;
  }

  // A dim that only a run finds to be 0 would copy dim `k` of the input: it may where that is 0 as well.
  static void require_no_late_copy(const node_facts& facts, const shape& from, std::size_t k,
                                   const index_expr& wanted) {
    if (wanted.range().low > 0 || (k < from.size() && wanted == from[k])) return;
    facts.require(guard_relation::at_least, wanted, k < from.size() ? min(from[k], 1) : index_expr(1),
                  "a dim that Reshape asks for, where 0 would copy one of its input");
  }

  // Dims that both sides have cancel first, which stays exact where a symbolic dim may be zero.
  static index_expr left_over(const node_facts& facts, shape from, shape dims, std::size_t free) {
    dims.erase(dims.begin() + static_cast<std::ptrdiff_t>(free));
    for (std::size_t k = 0; k < dims.size();) {
      const auto same = std::find(from.begin(), from.end(), dims[k]);
      if (same == from.end()) {
        ++k;
        continue;
      }
      from.erase(same);
      dims.erase(dims.begin() + static_cast<std::ptrdiff_t>(k));
    }
    const index_expr total = element_count(from);
    const index_expr known = element_count(dims);
    if (known == index_expr(0)) {
      if (total == index_expr(0)) return 0;
      throw error(errc::shape_mismatch, "Reshape: -1 stands beside a dim of zero");
    }
    const index_expr result = quotient(total, known);
    if (result * known == total) return result;
    facts.require(guard_relation::at_least, known, 1, "the product of the dims beside -1 of Reshape");
    facts.require(guard_relation::multiple, total, known, "elements of Reshape's input and the dims beside -1");
    return result;
  }
};

/// Flatten: dims before `axis` merged into one, the others into a second.
struct flatten_op {
  static constexpr std::string_view name = "Flatten";
  static constexpr int since = 25;
  static constexpr op_arity arity{1, 1};
  static constexpr mapping_type mapping = mapping_type::reorganize;
  static constexpr layout_class layout = layout_class::ild_fixed;
  static constexpr dynamism_class dynamism = dynamism_class::isdos;
  static constexpr computation_kind kind = computation_kind::view;

  static void infer(const node_facts& facts, std::span<value_facts> outputs) {
    set_type(outputs, 0, facts.type(0));
    if (const shape* dims = facts.dims(0)) {
      set_dims(outputs, 0, flattened(facts, *dims));
      carry_elements(facts, outputs, &flatten_op::view);
    } else {
      set_dims(outputs, 0, data_dims(facts, 0, 2));
    }
  }
  static std::vector<index_expr> unview(const node_facts& facts, const shape& to, std::span<const index_expr> index) {
    return regrouped(to, viewed_dims(facts, 0, name), index);
  }
  static void view(view_builder& builder, const node_facts& facts, std::size_t, std::span<const index_expr> index) {
    const shape& dims = viewed_dims(facts, 0, name);
    builder.piece(0, regrouped(dims, flattened(facts, dims), index));
  }

 private:
  static shape flattened(const node_facts& facts, const shape& dims) {
    const std::int64_t axis = facts.attributes->get_int("axis", 1);
    const auto rank = static_cast<std::int64_t>(dims.size());
    if (axis < -rank || axis > rank)
      throw error(errc::bad_attribute,
                  "Flatten: axis " + std::to_string(axis) + " is outside rank " + std::to_string(rank));
    const auto cut = dims.begin() + (axis < 0 ? axis + rank : axis);
    return {element_count(shape(dims.begin(), cut)), element_count(shape(cut, dims.end()))};
  }
};

/// Squeeze: without the dims of 1 at the axes of input 1, or at all axes.
struct squeeze_op {
  static constexpr std::string_view name = "Squeeze";
  static constexpr input_set structural_inputs{1};
  static constexpr int since = 25;
  static constexpr op_arity arity{1, 2};
  static constexpr mapping_type mapping = mapping_type::reorganize;
  static constexpr layout_class layout = layout_class::ild_fixed;
  static constexpr dynamism_class dynamism = dynamism_class::isdos;
  static constexpr computation_kind kind = computation_kind::view;

  static dynamism_class dynamism_of(const node_facts& facts) { return determined_by(facts, {1}); }

  static void infer(const node_facts& facts, std::span<value_facts> outputs) {
    set_type(outputs, 0, facts.type(0));
    const shape* dims = facts.dims(0);
    if (dims == nullptr) return;
    const auto kept = kept_axes(facts, *dims);
    if (!kept) return;
    shape result;
    for (const std::size_t axis : *kept) result.push_back((*dims)[axis]);
    set_dims(outputs, 0, std::move(result));
    carry_elements(facts, outputs, &squeeze_op::view);
  }
  static void infer_backward(const node_facts& facts, std::span<const value_facts> outputs,
                             std::span<value_facts> inputs) {
    if (inputs[0].type == dtype::undefined) inputs[0].type = outputs[0].type;
    const auto axes = facts.integers(1);
    if (inputs[0].dims || !outputs[0].dims || !axes) return;
    const std::size_t rank = outputs[0].dims->size() + axes->size();
    shape dims(rank, index_expr(0));
    for (const std::size_t axis : axes_of(*axes, rank, name)) dims[axis] = 1;
    std::size_t from = 0;
    for (index_expr& dim : dims)
      if (!(dim == index_expr(1))) dim = (*outputs[0].dims)[from++];
    inputs[0].dims = std::move(dims);
  }
  static std::vector<index_expr> unview(const node_facts& facts, const shape& to, std::span<const index_expr> index) {
    return regrouped(to, viewed_dims(facts, 0, name), index);
  }
  static void view(view_builder& builder, const node_facts& facts, std::size_t, std::span<const index_expr> index) {
    const shape& dims = viewed_dims(facts, 0, name);
    const auto kept = kept_axes(facts, dims);
    if (!kept) no_view(name, "its axes are not known");
    std::vector<index_expr> source(dims.size(), index_expr(0));
    for (std::size_t k = 0; k < kept->size(); ++k) source[(*kept)[k]] = index[k];
    builder.piece(0, std::move(source));
  }

 private:
  static std::optional<std::vector<std::size_t>> kept_axes(const node_facts& facts, const shape& dims) {
    std::vector<bool> dropped(dims.size(), false);
    if (facts.has(1)) {
      const auto axes = facts.integers(1);
      if (!axes) return std::nullopt;
      for (const std::size_t axis : axes_of(*axes, dims.size(), name)) {
        facts.require(guard_relation::equal, dims[axis], 1, "a dim that Squeeze drops");
        dropped[axis] = true;
      }
    } else {
      // Which dims vanish is known only where each dim is known to be 1 or not to be 1.
      for (std::size_t axis = 0; axis < dims.size(); ++axis) {
        if (!dims[axis].is_constant() && dims[axis].range().low <= 1) return std::nullopt;
        dropped[axis] = dims[axis] == index_expr(1);
      }
    }
    std::vector<std::size_t> kept;
    for (std::size_t axis = 0; axis < dims.size(); ++axis)
      if (!dropped[axis]) kept.push_back(axis);
    return kept;
  }
};

/// Unsqueeze: dims of 1 put in so that they stand at the axes of input 1.
struct unsqueeze_op {
  static constexpr std::string_view name = "Unsqueeze";
  static constexpr input_set structural_inputs{1};
  static constexpr int since = 25;
  static constexpr op_arity arity{2, 2};
  static constexpr mapping_type mapping = mapping_type::reorganize;
  static constexpr layout_class layout = layout_class::ild_fixed;
  static constexpr dynamism_class dynamism = dynamism_class::isdos;
  static constexpr computation_kind kind = computation_kind::view;

  static dynamism_class dynamism_of(const node_facts& facts) { return determined_by(facts, {1}); }

  static void infer(const node_facts& facts, std::span<value_facts> outputs) {
    set_type(outputs, 0, facts.type(0));
    const shape* dims = facts.dims(0);
    const auto axes = facts.integers(1);
    if (dims == nullptr || !axes) return;
    shape result(dims->size() + axes->size(), index_expr(-1));
    for (const std::size_t axis : axes_of(*axes, result.size(), name)) result[axis] = 1;
    std::size_t from = 0;
    for (index_expr& dim : result)
      if (dim == index_expr(-1)) dim = (*dims)[from++];
    set_dims(outputs, 0, std::move(result));
    carry_elements(facts, outputs, &unsqueeze_op::view);
  }
  static void infer_backward(const node_facts& facts, std::span<const value_facts> outputs,
                             std::span<value_facts> inputs) {
    if (inputs[0].type == dtype::undefined) inputs[0].type = outputs[0].type;
    const auto axes = facts.integers(1);
    if (inputs[0].dims || !outputs[0].dims || !axes || outputs[0].dims->size() < axes->size()) return;
    std::vector<bool> added(outputs[0].dims->size(), false);
    for (const std::size_t axis : axes_of(*axes, added.size(), name)) added[axis] = true;
    shape dims;
    for (std::size_t axis = 0; axis < added.size(); ++axis)
      if (!added[axis]) dims.push_back((*outputs[0].dims)[axis]);
    inputs[0].dims = std::move(dims);
  }
  static std::vector<index_expr> unview(const node_facts& facts, const shape& to, std::span<const index_expr> index) {
    return regrouped(to, viewed_dims(facts, 0, name), index);
  }
  static void view(view_builder& builder, const node_facts& facts, std::size_t, std::span<const index_expr> index) {
    const auto axes = facts.integers(1);
    if (!axes) no_view(name, "its axes are not known");
    std::vector<bool> added(index.size(), false);
    for (const std::size_t axis : axes_of(*axes, index.size(), name)) added[axis] = true;
    std::vector<index_expr> source;
    for (std::size_t axis = 0; axis < index.size(); ++axis)
      if (!added[axis]) source.push_back(index[axis]);
    builder.piece(0, std::move(source));
  }
};

}  // namespace dnnopt::ops

#endif  // DNNOPT_OPS_RESHAPE_HPP
