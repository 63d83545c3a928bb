// Owns the operators that join, repeat or frame tensors: Concat, Expand, Tile, Pad.
#ifndef DNNOPT_OPS_EXTEND_HPP
#define DNNOPT_OPS_EXTEND_HPP

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

namespace dnnopt::ops {

/// Concat: tensors one after another along an axis.
struct concat_op {
  static constexpr std::string_view name = "Concat";
  static constexpr int since = 13;
  static constexpr algebra properties = algebra::associative;
  static constexpr op_arity arity{1, variadic};
  static constexpr mapping_type mapping = mapping_type::one_to_one;
  static constexpr layout_class layout = layout_class::ili_fixed;
  static constexpr dynamism_class dynamism = dynamism_class::isdos;
  static constexpr computation_kind kind = computation_kind::view;

  static void infer(const node_facts& facts, std::span<value_facts> outputs) {
    const std::int64_t axis_attribute = facts.attributes->require<std::int64_t>("axis");
    dtype type = dtype::undefined;
    bool complete = true;
    for (std::size_t i = 0; i < facts.inputs.size(); ++i) {
      const dtype own = facts.type(i);
      if (type == dtype::undefined) type = own;
      if (own != dtype::undefined && own != type)
        throw error(errc::type_mismatch,
                    "Concat: inputs of " + std::string(name_of(type)) + " and " + std::string(name_of(own)));
      complete = complete && facts.dims(i) != nullptr;
    }
    set_type(outputs, 0, type);
    if (!complete || facts.inputs.empty()) return;
    shape result = *facts.dims(0);
    const std::size_t axis = axis_of(axis_attribute, result.size(), name);
    for (std::size_t i = 1; i < facts.inputs.size(); ++i) {
      const shape& dims = *facts.dims(i);
      const bool same = dims.size() == result.size();
      for (std::size_t k = 0; same && k < dims.size(); ++k) {
        if (k == axis) continue;
        facts.require(guard_relation::equal, dims[k], result[k], "dims of Concat's inputs beside its axis");
        if (dims[k].is_constant()) result[k] = dims[k];
      }
      if (!same)
        throw error(errc::shape_mismatch, "Concat: " + to_string(dims) + " does not fit " + to_string(*facts.dims(0)) +
                                              " along axis " + std::to_string(axis));
      result[axis] += dims[axis];
    }
    set_dims(outputs, 0, std::move(result));
    carry_elements(facts, outputs, &concat_op::view);
  }
  static void infer_backward(const node_facts& facts, std::span<const value_facts> outputs,
                             std::span<value_facts> inputs) {
    for (std::size_t i = 0; i < inputs.size(); ++i)
      if (facts.has(i) && inputs[i].type == dtype::undefined) inputs[i].type = outputs[0].type;
  }
  static void view(view_builder& builder, const node_facts& facts, std::size_t, std::span<const index_expr> index) {
    const std::size_t axis = axis_of(facts.attributes->require<std::int64_t>("axis"), index.size(), name);
    index_expr offset = 0;
    for (std::size_t i = 0; i < facts.inputs.size(); ++i) {
      const index_expr next = offset + viewed_dims(facts, i, name)[axis];
      std::vector<index_expr> source(index.begin(), index.end());
      source[axis] -= offset;
      if (i + 1 == facts.inputs.size())
        builder.piece(i, std::move(source));
      else
        builder.piece(i, std::move(source), {{index[axis], offset, next}});
      offset = next;
    }
  }
};

/// Expand: broadcast to the dims of input 1 (in both directions).
struct expand_op {
  static constexpr std::string_view name = "Expand";
  static constexpr input_set structural_inputs{1};
  static constexpr int since = 13;
  static constexpr op_arity arity{2, 2};
  static constexpr mapping_type mapping = mapping_type::one_to_many;
  static constexpr layout_class layout = layout_class::ili_fixed;
  static constexpr dynamism_class dynamism = dynamism_class::isvdos;
  static constexpr computation_kind kind = computation_kind::view;

  static dynamism_class dynamism_of(const node_facts& facts) { return determined_by(facts, {1}); }

  static void infer(const node_facts& facts, std::span<value_facts> outputs) {
    set_type(outputs, 0, facts.type(0));
    const shape* dims = facts.dims(0);
    if (dims == nullptr) return;
    if (const auto wanted = facts.elements(1)) {
      set_dims(outputs, 0, facts.broadcast_shapes(*dims, *wanted));
      carry_elements(facts, outputs, &expand_op::view);
    } else if (const auto rank = length_of(facts, 1)) {
      set_dims(outputs, 0, data_dims(facts, 0, std::max(*rank, dims->size())));
    }
  }
  static void infer_backward(const node_facts&, std::span<const value_facts> outputs, std::span<value_facts> inputs) {
    if (inputs[0].type == dtype::undefined) inputs[0].type = outputs[0].type;
  }
  static void view(view_builder& builder, const node_facts& facts, std::size_t, std::span<const index_expr> index) {
    const shape& dims = viewed_dims(facts, 0, name);
    const auto wanted = facts.elements(1);
    const std::size_t offset = index.size() - dims.size();
    std::vector<index_expr> source(dims.size(), index_expr(0));
    for (std::size_t k = 0; k < dims.size(); ++k) {
      if (dims[k] == index_expr(1)) continue;
      const bool kept = dims[k].range().low > 1 ||
                        (wanted && offset + wanted->size() >= index.size() &&
                         wanted_at(*wanted, index.size(), offset + k) == dims[k]) ||
                        (wanted && wanted_at(*wanted, index.size(), offset + k) == index_expr(1));
      // A dim that may be 1 or the output's: its last index is the bound either way.
      source[k] = kept ? index[offset + k] : min(index[offset + k], dims[k] - 1);
    }
    builder.piece(0, std::move(source));
  }

 private:
  static index_expr wanted_at(const std::vector<index_expr>& wanted, std::size_t rank, std::size_t axis) {
    return axis + wanted.size() >= rank ? wanted[axis + wanted.size() - rank] : index_expr(1);
  }
};

/// Tile: the tensor repeated along each axis as often as input 1 says.
struct tile_op {
  static constexpr std::string_view name = "Tile";
  static constexpr input_set structural_inputs{1};
  static constexpr int since = 13;
  static constexpr op_arity arity{2, 2};
  static constexpr mapping_type mapping = mapping_type::one_to_many;
  static constexpr layout_class layout = layout_class::ili_fixed;
  static constexpr dynamism_class dynamism = dynamism_class::isvdos;
  static constexpr computation_kind kind = computation_kind::view;

  static dynamism_class dynamism_of(const node_facts& facts) { return determined_by(facts, {1}); }

  static void infer(const node_facts& facts, std::span<value_facts> outputs) {
    set_type(outputs, 0, facts.type(0));
    const shape* dims = facts.dims(0);
    if (dims == nullptr) return;
    const auto repeats = facts.elements(1);
    if (!repeats) {
      set_dims(outputs, 0, data_dims(facts, 0, dims->size()));
      return;
    }
    if (repeats->size() != dims->size())
      throw error(errc::shape_mismatch,
                  "Tile: " + std::to_string(repeats->size()) + " repeats for " + to_string(*dims));
    shape result = *dims;
    for (std::size_t k = 0; k < result.size(); ++k) result[k] *= (*repeats)[k];
    set_dims(outputs, 0, std::move(result));
    carry_elements(facts, outputs, &tile_op::view);
  }
  static void infer_backward(const node_facts&, std::span<const value_facts> outputs, std::span<value_facts> inputs) {
    if (inputs[0].type == dtype::undefined) inputs[0].type = outputs[0].type;
  }
  static void view(view_builder& builder, const node_facts& facts, std::size_t, std::span<const index_expr> index) {
    const shape& dims = viewed_dims(facts, 0, name);
    const auto repeats = facts.elements(1);
    std::vector<index_expr> source(index.begin(), index.end());
    for (std::size_t k = 0; k < source.size(); ++k)
      if (dims[k] == index_expr(0))
        source[k] = index_expr(0);  // of nothing: never read
      else if (!repeats || !((*repeats)[k] == index_expr(1)))
        source[k] = mod(index[k], dims[k]);
    builder.piece(0, std::move(source));
  }
};

/// Pad: a frame around the tensor (or, where pads are negative, a crop), filled by `mode`: constant, reflect, edge,
/// wrap.
struct pad_op {
  static constexpr std::string_view name = "Pad";
  static constexpr input_set structural_inputs{1, 3};
  static constexpr int since = 25;
  static constexpr op_arity arity{2, 4};
  static constexpr mapping_type mapping = mapping_type::one_to_many;
  static constexpr layout_class layout = layout_class::ili_fixed;
  static constexpr dynamism_class dynamism = dynamism_class::isvdos;
  static constexpr computation_kind kind = computation_kind::view;

  // A constant frame leaves each element at one place; the other modes repeat elements.
  static mapping_type mapping_of(const node_facts& facts, std::size_t input, std::size_t) {
    return input == 0 && facts.attributes->get_string("mode", "constant") == "constant" ? mapping_type::one_to_one
                                                                                        : mapping;
  }
  static dynamism_class dynamism_of(const node_facts& facts) { return determined_by(facts, {1, 3}); }

  static void infer(const node_facts& facts, std::span<value_facts> outputs) {
    set_type(outputs, 0, facts.type(0));
    const shape* dims = facts.dims(0);
    if (dims == nullptr) return;
    const std::string mode = facts.attributes->get_string("mode", "constant");
    if (mode != "constant" && mode != "reflect" && mode != "edge" && mode != "wrap")
      throw error(errc::bad_attribute, "Pad: mode '" + mode + "'");
    const auto axes = padded_axes(facts, dims->size());
    const auto pads = facts.elements(1);
    if (!axes || !pads) {
      shape open = data_dims(facts, 0, dims->size());
      for (std::size_t a = 0; axes && a < open.size(); ++a)
        if (std::find(axes->begin(), axes->end(), a) == axes->end()) open[a] = (*dims)[a];
      set_dims(outputs, 0, std::move(open));
      return;
    }
    if (pads->size() != 2 * axes->size())
      throw error(errc::shape_mismatch,
                  "Pad: " + std::to_string(pads->size()) + " pads for " + std::to_string(axes->size()) + " axes");
    shape result = *dims;
    for (std::size_t k = 0; k < axes->size(); ++k) {
      index_expr& dim = result[(*axes)[k]];
      dim += (*pads)[k] + (*pads)[axes->size() + k];
      if (dim.range().high < 0)
        throw error(errc::shape_mismatch,
                    "Pad: axis " + std::to_string((*axes)[k]) + " gets " + to_string(dim) + " elements");
    }
    set_dims(outputs, 0, std::move(result));
    carry_elements(facts, outputs, &pad_op::view);
  }
  static void infer_backward(const node_facts&, std::span<const value_facts> outputs, std::span<value_facts> inputs) {
    if (inputs[0].type == dtype::undefined) inputs[0].type = outputs[0].type;
  }
  static void view(view_builder& builder, const node_facts& facts, std::size_t, std::span<const index_expr> index) {
    const shape& dims = viewed_dims(facts, 0, name);
    const auto axes = padded_axes(facts, dims.size());
    if (!axes) no_view(name, "its axes are not known");
    const std::string mode = facts.attributes->get_string("mode", "constant");
    std::vector<index_expr> source(index.begin(), index.end());
    std::vector<view_builder::condition> inside;
    for (std::size_t k = 0; k < axes->size(); ++k) {
      const std::size_t axis = (*axes)[k];
      const index_expr& dim = dims[axis];
      const index_expr before = element_of(builder, facts, 1, k);
      const index_expr after = element_of(builder, facts, 1, axes->size() + k);
      if (before == index_expr(0) && after == index_expr(0)) continue;
      const index_expr at = index[axis] - before;
      if (mode == "constant") {
        source[axis] = at;
        if (before.range().high > 0 || after.range().high > 0) inside.push_back({at, 0, dim});
        continue;
      }
      if (mode == "edge") {
        source[axis] = max(min(at, dim - 1), 0);
        continue;
      }
      // Negative pads crop first: the frame repeats what is left.
      const index_expr low = max(0 - before, 0);
      const index_expr left = dim - low - max(0 - after, 0);
      if (mode == "wrap") {
        source[axis] = low + mod(at - low, left);
      } else {
        const index_expr period = max((left - 1) * 2, 1);
        const index_expr phase = mod(at - low, period);
        // A single element has no neighbour to reflect.
        source[axis] = low + (left == index_expr(1) ? index_expr(0) : min(phase, period - phase));
      }
    }
    const bool framed = !inside.empty();
    builder.piece(0, std::move(source), std::move(inside));
    if (!framed) return;
    if (facts.has(2))
      builder.fill_from(2);
    else
      builder.fill(0);
  }

 private:
  static std::optional<std::vector<std::size_t>> padded_axes(const node_facts& facts, std::size_t rank) {
    if (facts.has(3)) {
      const auto axes = facts.integers(3);
      return axes ? std::optional(axes_of(*axes, rank, name)) : std::nullopt;
    }
    std::vector<std::size_t> all(rank);
    for (std::size_t k = 0; k < rank; ++k) all[k] = k;
    return all;
  }
};

}  // namespace dnnopt::ops

#endif  // DNNOPT_OPS_EXTEND_HPP
