// Owns the operators that order or select elements by their values: NonZero, TopK, Unique, NonMaxSuppression.
#ifndef DNNOPT_OPS_SELECTION_HPP
#define DNNOPT_OPS_SELECTION_HPP

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <dnnopt/ops/structure_transfer.hpp>

namespace dnnopt::ops {

/// What they share: every output element depends on many input elements.
struct selection_traits {
  static constexpr mapping_type mapping = mapping_type::many_to_many;
  static constexpr layout_class layout = layout_class::ild_fixed;
  static constexpr computation_kind kind = computation_kind::sorting;
};

/// NonZero: the indices of elements other than zero, one column each, in row-major order.
struct non_zero_op : selection_traits {
  static constexpr std::string_view name = "NonZero";
  static constexpr int since = 13;
  static constexpr op_arity arity{1, 1};
  static constexpr dynamism_class dynamism = dynamism_class::edo;

  static void infer(const node_facts& facts, std::span<value_facts> outputs) {
    set_type(outputs, 0, dtype::int64);
    const shape* dims = facts.dims(0);
    if (dims == nullptr) return;
    const index_expr count = facts.data_dim(0, 1, {0, element_count(*dims).range().high});
    set_dims(outputs, 0, {static_cast<std::int64_t>(dims->empty() ? 1 : dims->size()), count});
  }
};

/// TopK: the K largest (or smallest) elements along an axis and their indices.
struct top_k_op : selection_traits {
  static constexpr std::string_view name = "TopK";
  static constexpr input_set structural_inputs{1};
  static constexpr int since = 24;
  static constexpr op_arity arity{2, 2, 2, 2};
  static constexpr dynamism_class dynamism = dynamism_class::isvdos;

  static dynamism_class dynamism_of(const node_facts& facts) { return determined_by(facts, {1}); }

  static void infer(const node_facts& facts, std::span<value_facts> outputs) {
    set_type(outputs, 0, facts.type(0));
    set_type(outputs, 1, dtype::int64);
    const shape* dims = facts.dims(0);
    if (dims == nullptr) return;
    const std::size_t axis = axis_of(facts.attributes->get_int("axis", -1), dims->size(), name);
    const auto k = facts.elements(1);
    shape result = *dims;
    result[axis] = k && k->size() == 1 ? k->front() : facts.data_dim(0, axis, {0, (*dims)[axis].range().high});
    if (k)
      facts.require(guard_relation::at_least, (*dims)[axis], result[axis], "elements to choose from and k of TopK");
    set_dims(outputs, 0, result);
    set_dims(outputs, 1, result);
  }
};

/// Unique: distinct elements or slices; optional outputs are their first indices, the inverse indices and the counts.
struct unique_op : selection_traits {
  static constexpr std::string_view name = "Unique";
  static constexpr int since = 28;
  static constexpr op_arity arity{1, 1, 1, 4};
  static constexpr dynamism_class dynamism = dynamism_class::edo;

  static void infer(const node_facts& facts, std::span<value_facts> outputs) {
    set_type(outputs, 0, facts.type(0));
    for (std::size_t o = 1; o < outputs.size(); ++o) set_type(outputs, o, dtype::int64);
    const shape* dims = facts.dims(0);
    const bool flat = !facts.attributes->contains("axis");
    if (dims == nullptr && !flat) return;
    std::size_t axis = 0;
    index_expr length = dims != nullptr ? element_count(*dims) : facts.data_dim(2, 0);
    if (!flat) {
      axis = axis_of(facts.attributes->get_int("axis", 0), dims->size(), name);
      length = (*dims)[axis];
    }
    const index_expr found = facts.data_dim(0, axis, {0, length.range().high});
    shape result = flat ? shape{found} : *dims;
    result[axis] = found;
    set_dims(outputs, 0, std::move(result));
    set_dims(outputs, 1, {found});
    set_dims(outputs, 2, {length});
    set_dims(outputs, 3, {found});
  }
};

/// NonMaxSuppression: rows (batch, class, box) of the boxes kept.
struct non_max_suppression_op : selection_traits {
  static constexpr std::string_view name = "NonMaxSuppression";
  static constexpr int since = 11;
  static constexpr op_arity arity{2, 5};
  static constexpr dynamism_class dynamism = dynamism_class::edo;

  static void infer(const node_facts& facts, std::span<value_facts> outputs) {
    for (const std::size_t i : {std::size_t{0}, std::size_t{1}})
      if (facts.dims(i) != nullptr && facts.dims(i)->size() != 3)
        throw error(errc::shape_mismatch, "NonMaxSuppression: input " + std::to_string(i) + " " +
                                              to_string(*facts.dims(i)) + " does not have rank 3");
    set_type(outputs, 0, dtype::int64);
    if (facts.dims(0) != nullptr && facts.dims(1) != nullptr) {
      facts.require(guard_relation::equal, (*facts.dims(0))[0], (*facts.dims(1))[0], "batches of boxes and scores");
      facts.require(guard_relation::equal, (*facts.dims(0))[1], (*facts.dims(1))[2], "boxes and scores");
    }
    const shape* scores = facts.dims(1);
    const std::int64_t most = scores != nullptr ? element_count(*scores).range().high : unbounded;
    set_dims(outputs, 0, {facts.data_dim(0, 0, {0, most}), 3});
  }
};

}  // namespace dnnopt::ops

#endif  // DNNOPT_OPS_SELECTION_HPP
