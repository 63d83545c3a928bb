// Owns the operators that write updates at indices into a copy of a tensor: ScatterElements, ScatterND, TensorScatter,
// Scatter.
#ifndef DNNOPT_OPS_SCATTER_HPP
#define DNNOPT_OPS_SCATTER_HPP

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dnnopt/ops/gather.hpp>

namespace dnnopt::ops {

/// What the scatter operators share: the output has type and dims of input 0. Updates at equal indices meet in one
/// element, so the pairs are Many-to-Many.
struct scatter_traits {
  static constexpr op_arity arity{3, 3};
  static constexpr mapping_type mapping = mapping_type::many_to_many;
  static constexpr layout_class layout = layout_class::ili_fixed;
  static constexpr dynamism_class dynamism = dynamism_class::isdos;
  static constexpr computation_kind kind = computation_kind::indexed_write;

  static void infer(const node_facts& facts, std::span<value_facts> outputs) {
    set_type(outputs, 0, facts.type(0) != dtype::undefined ? facts.type(0) : facts.type(2));
    if (facts.type(0) != dtype::undefined && facts.type(2) != dtype::undefined && facts.type(0) != facts.type(2))
      throw error(errc::type_mismatch, "updates of " + std::string(name_of(facts.type(2))) + " go into " +
                                           std::string(name_of(facts.type(0))));
    require_indices(facts, 1, "scatter");
    if (const shape* dims = facts.dims(0)) set_dims(outputs, 0, *dims);
  }
  static void infer_backward(const node_facts&, std::span<const value_facts> outputs, std::span<value_facts> inputs) {
    if (inputs[0].type == dtype::undefined) inputs[0].type = outputs[0].type;
    if (!inputs[0].dims) inputs[0].dims = outputs[0].dims;
  }
};

/// ScatterElements: each update goes to its own position with the coordinate along `axis` replaced by its index.
struct scatter_elements_op : scatter_traits {
  static constexpr std::string_view name = "ScatterElements";
  static constexpr int since = 18;

  static void infer(const node_facts& facts, std::span<value_facts> outputs) {
    scatter_traits::infer(facts, outputs);
    const shape* dims = facts.dims(0);
    const shape* indices = facts.dims(1);
    const shape* updates = facts.dims(2);
    if (dims == nullptr || indices == nullptr || updates == nullptr) return;
    if (indices->size() != dims->size() || updates->size() != dims->size())
      throw error(errc::shape_mismatch, "updates " + to_string(*updates) + " at indices " + to_string(*indices) +
                                            " into " + to_string(*dims));
    const std::size_t axis = axis_of(facts.attributes->get_int("axis", 0), dims->size(), name);
    require_inside(facts, 1, std::span(*dims).subspan(axis, 1));
    for (std::size_t k = 0; k < dims->size(); ++k) {
      facts.require(guard_relation::equal, (*updates)[k], (*indices)[k],
                    "dims of ScatterElements' updates and indices");
      if (k != axis)
        facts.require(guard_relation::at_least, (*dims)[k], (*indices)[k], "dims of ScatterElements' data and indices");
    }
  }
};

/// Scatter: the deprecated name of ScatterElements without reduction.
struct scatter_op : scatter_elements_op {
  static constexpr std::string_view name = "Scatter";
  static constexpr int since = 11;
};

/// ScatterND: slices of updates go to the index tuples in the last axis of input 1.
struct scatter_nd_op : scatter_traits {
  static constexpr std::string_view name = "ScatterND";
  static constexpr int since = 18;

  static void infer(const node_facts& facts, std::span<value_facts> outputs) {
    scatter_traits::infer(facts, outputs);
    const shape* dims = facts.dims(0);
    const shape* indices = facts.dims(1);
    const shape* updates = facts.dims(2);
    if (indices != nullptr && indices->empty()) throw error(errc::shape_mismatch, "ScatterND: indices have rank 0");
    if (dims == nullptr || indices == nullptr || updates == nullptr) return;
    const auto tuple = indices->back().as_constant();
    if (!tuple) return;
    const std::size_t leading = indices->size() - 1;
    if (*tuple < 0 || static_cast<std::size_t>(*tuple) > dims->size() ||
        updates->size() != leading + dims->size() - static_cast<std::size_t>(*tuple))
      throw error(errc::shape_mismatch, "ScatterND: updates " + to_string(*updates) + " at indices " +
                                            to_string(*indices) + " into " + to_string(*dims));
    require_inside(facts, 1, std::span(*dims).first(static_cast<std::size_t>(*tuple)));
    for (std::size_t k = 0; k < updates->size(); ++k)
      facts.require(guard_relation::equal, (*updates)[k],
                    k < leading ? (*indices)[k] : (*dims)[static_cast<std::size_t>(*tuple) + k - leading],
                    "dims of ScatterND's updates");
  }
};

/// TensorScatter: a cache whose elements from write_indices[batch] on along `axis` are replaced by the update; in
/// `circular` mode positions wrap around.
struct tensor_scatter_op {
  static constexpr std::string_view name = "TensorScatter";
  static constexpr int since = 24;
  static constexpr op_arity arity{2, 3};
  static constexpr mapping_type mapping = mapping_type::one_to_one;
  static constexpr layout_class layout = layout_class::ili_fixed;
  static constexpr dynamism_class dynamism = dynamism_class::isdos;
  static constexpr computation_kind kind = computation_kind::indexed_write;

  static mapping_type mapping_of(const node_facts&, std::size_t input, std::size_t) {
    return input < 2 ? mapping : mapping_type::one_to_many;
  }
  static void infer(const node_facts& facts, std::span<value_facts> outputs) {
    set_type(outputs, 0, facts.type(0));
    const shape* dims = facts.dims(0);
    if (dims == nullptr) return;
    if (const shape* update = facts.dims(1); update != nullptr && update->size() != dims->size())
      throw error(errc::shape_mismatch,
                  "TensorScatter: an update " + to_string(*update) + " of a cache " + to_string(*dims));
    if (const shape* update = facts.dims(1)) {
      const std::size_t axis = axis_of(facts.attributes->get_int("axis", -2), dims->size(), name);
      for (std::size_t k = 0; k < dims->size(); ++k)
        facts.require(k == axis ? guard_relation::at_least : guard_relation::equal, (*dims)[k], (*update)[k],
                      "dims of TensorScatter's cache and update");
    }
    set_dims(outputs, 0, *dims);
  }
  static void infer_backward(const node_facts&, std::span<const value_facts> outputs, std::span<value_facts> inputs) {
    if (inputs[0].type == dtype::undefined) inputs[0].type = outputs[0].type;
    if (!inputs[0].dims) inputs[0].dims = outputs[0].dims;
  }
  static void view(view_builder& builder, const node_facts& facts, std::size_t, std::span<const index_expr> index) {
    const shape& dims = viewed_dims(facts, 0, name);
    const shape& update = viewed_dims(facts, 1, name);
    const std::size_t axis = axis_of(facts.attributes->get_int("axis", -2), dims.size(), name);
    const index_expr start =
        facts.has(2) ? builder.load(2, index.first(1), {0, dims[axis].range().high}) : index_expr(0);
    index_expr at = index[axis] - start;
    if (facts.attributes->get_string("mode", "linear") == "circular") at = mod(at, dims[axis]);
    std::vector<index_expr> source(index.begin(), index.end());
    source[axis] = at;
    builder.piece(1, std::move(source), {{at, 0, update[axis]}});
    builder.piece(0, {index.begin(), index.end()});
  }
};

}  // namespace dnnopt::ops

#endif  // DNNOPT_OPS_SCATTER_HPP
