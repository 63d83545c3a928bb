// Owns the operators that read only a tensor's dims: Shape, Size.
#ifndef DNNOPT_OPS_SHAPE_QUERY_HPP
#define DNNOPT_OPS_SHAPE_QUERY_HPP

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include <dnnopt/ops/structure_transfer.hpp>

namespace dnnopt::ops {

/// The part of the axes that Shape's attributes `start` and `end` select: [first, second).
[[nodiscard]] inline std::pair<std::size_t, std::size_t> selected_axes(const attribute_map& attributes,
                                                                       std::size_t rank) {
  const auto r = static_cast<std::int64_t>(rank);
  const auto bound = [r](std::int64_t v) { return std::clamp<std::int64_t>(v < 0 ? v + r : v, 0, r); };
  const std::int64_t first = bound(attributes.get_int("start", 0));
  const std::int64_t last = bound(attributes.get_int("end", r));
  return {static_cast<std::size_t>(first), static_cast<std::size_t>(std::max(first, last))};
}

/// Shape: the dims of its input. Outputs depend on no input element, so the mapping type only keeps it out of blocks.
struct shape_op {
  static constexpr std::string_view name = "Shape";
  static constexpr int since = 25;
  static constexpr op_arity arity{1, 1};
  static constexpr mapping_type mapping = mapping_type::many_to_many;
  static constexpr layout_class layout = layout_class::ili_fixed;
  static constexpr dynamism_class dynamism = dynamism_class::isdo;
  static constexpr computation_kind kind = computation_kind::shape_query;

  static void infer(const node_facts& facts, std::span<value_facts> outputs) {
    set_type(outputs, 0, dtype::int64);
    const shape* dims = facts.dims(0);
    if (dims == nullptr) return;
    const auto [first, last] = selected_axes(*facts.attributes, dims->size());
    set_dims(outputs, 0, {static_cast<std::int64_t>(last - first)});
    outputs[0].elements = std::vector<index_expr>(dims->begin() + static_cast<std::ptrdiff_t>(first),
                                                  dims->begin() + static_cast<std::ptrdiff_t>(last));
  }
};

/// Size: the number of elements of its input.
struct size_op {
  static constexpr std::string_view name = "Size";
  static constexpr int since = 25;
  static constexpr op_arity arity{1, 1};
  static constexpr mapping_type mapping = mapping_type::many_to_many;
  static constexpr layout_class layout = layout_class::ili_fixed;
  static constexpr dynamism_class dynamism = dynamism_class::isdo;
  static constexpr computation_kind kind = computation_kind::shape_query;

  static void infer(const node_facts& facts, std::span<value_facts> outputs) {
    set_type(outputs, 0, dtype::int64);
    set_dims(outputs, 0, {});
    if (const shape* dims = facts.dims(0)) outputs[0].elements = std::vector<index_expr>{element_count(*dims)};
  }
};

}  // namespace dnnopt::ops

#endif  // DNNOPT_OPS_SHAPE_QUERY_HPP
