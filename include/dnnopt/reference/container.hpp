// Owns the reference evaluation of operators on sequences and optional values.
#ifndef DNNOPT_REFERENCE_CONTAINER_HPP
#define DNNOPT_REFERENCE_CONTAINER_HPP

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dnnopt/ops/generator.hpp>
#include <dnnopt/reference/host_value.hpp>
#include <dnnopt/reference/view.hpp>

namespace dnnopt::reference {

/// Computes outputs that may be containers; inputs beyond those given are absent.
using container_function = void (*)(const attribute_map& attributes, std::span<const host_value> inputs,
                                    std::span<host_value> outputs);

/// One operator on containers.
struct container_row {
  std::string_view name;
  container_function evaluate;
};

namespace container {

/// The position that input `i` names in a sequence of `count`, or `fallback` where it is absent.
/// Errors: invalid_argument outside [-count, count) (insertion: to count).
[[nodiscard]] inline std::size_t position_of(std::span<const host_value> inputs, std::size_t i, std::size_t count,
                                             std::size_t fallback, bool insertion) {
  if (i >= inputs.size() || inputs[i].absent()) return fallback;
  const std::vector<std::int64_t> given = integers_of(inputs[i].as_tensor());
  const auto n = static_cast<std::int64_t>(count);
  const std::int64_t at = given.size() == 1 ? given[0] : n + 1;
  if (at < -n || at > (insertion ? n : n - 1))
    throw error(errc::invalid_argument, "position " + std::to_string(at) + " in a sequence of " + std::to_string(n));
  return static_cast<std::size_t>(at < 0 ? at + n : at);
}

inline void sequence_construct(const attribute_map&, std::span<const host_value> inputs,
                               std::span<host_value> outputs) {
  std::vector<tensor> items;
  for (const host_value& input : inputs) items.push_back(input.as_tensor());
  outputs[0] = host_value::sequence(std::move(items));
}
inline void sequence_empty(const attribute_map& attributes, std::span<const host_value>,
                           std::span<host_value> outputs) {
  outputs[0] = host_value::sequence({}, ops::type_attribute(attributes, "dtype", dtype::float32));
}
inline void sequence_insert(const attribute_map&, std::span<const host_value> inputs, std::span<host_value> outputs) {
  std::vector<tensor> items = inputs[0].as_sequence();
  const std::size_t at = position_of(inputs, 2, items.size(), items.size(), true);
  items.insert(items.begin() + static_cast<std::ptrdiff_t>(at), inputs[1].as_tensor());
  outputs[0] = host_value::sequence(std::move(items));
}
inline void sequence_erase(const attribute_map&, std::span<const host_value> inputs, std::span<host_value> outputs) {
  std::vector<tensor> items = inputs[0].as_sequence();
  if (items.empty()) throw error(errc::invalid_argument, "SequenceErase of an empty sequence");
  const std::size_t at = position_of(inputs, 1, items.size(), items.size() - 1, false);
  items.erase(items.begin() + static_cast<std::ptrdiff_t>(at));
  outputs[0] = host_value::sequence(std::move(items), inputs[0].item_type);
}
inline void sequence_at(const attribute_map&, std::span<const host_value> inputs, std::span<host_value> outputs) {
  const std::vector<tensor>& items = inputs[0].as_sequence();
  outputs[0] = items.at(position_of(inputs, 1, items.size(), items.size(), false));
}
inline void sequence_length(const attribute_map&, std::span<const host_value> inputs, std::span<host_value> outputs) {
  outputs[0] = tensor::scalar<std::int64_t>(static_cast<std::int64_t>(inputs[0].as_sequence().size()));
}

/// Parts of one element each lose their axis unless `keepdims`; input 1 is one part size for all or a list of them.
inline void split_to_sequence(const attribute_map& attributes, std::span<const host_value> inputs,
                              std::span<host_value> outputs) {
  const tensor& x = inputs[0].as_tensor();
  const std::size_t axis = axis_at(attributes.get_int("axis", 0), x.rank());
  const std::int64_t dim = x.dims()[axis];
  std::vector<std::int64_t> sizes;
  const bool given = inputs.size() > 1 && !inputs[1].absent();
  if (!given) {
    sizes.assign(static_cast<std::size_t>(dim), 1);
  } else if (inputs[1].as_tensor().rank() == 0) {
    const std::int64_t part = integers_of(inputs[1].as_tensor())[0];
    if (part < 1) throw error(errc::invalid_argument, "SplitToSequence: parts of " + std::to_string(part));
    for (std::int64_t at = 0; at < dim; at += part) sizes.push_back(std::min(part, dim - at));
  } else {
    sizes = integers_of(inputs[1].as_tensor());
  }
  std::int64_t total = 0;
  for (const std::int64_t size : sizes) total += size;
  if (total != dim)
    throw error(errc::shape_mismatch,
                "SplitToSequence: parts of together " + std::to_string(total) + " of " + std::to_string(dim));
  const bool keep = given || attributes.get_int("keepdims", 1) != 0;
  std::vector<tensor> items;
  std::int64_t start = 0;
  for (const std::int64_t size : sizes) {
    tensor part = view::axis_part(x, axis, start, size);
    start += size;
    if (!keep) {
      dim_list dims = part.dims();
      dims.erase(dims.begin() + static_cast<std::ptrdiff_t>(axis));
      part = part.reshaped(std::move(dims));
    }
    items.push_back(std::move(part));
  }
  outputs[0] = host_value::sequence(std::move(items), x.type());
}

inline void concat_from_sequence(const attribute_map& attributes, std::span<const host_value> inputs,
                                 std::span<host_value> outputs) {
  std::vector<tensor> items = inputs[0].as_sequence();
  if (items.empty()) throw error(errc::invalid_argument, "ConcatFromSequence of an empty sequence");
  attribute_map concat;
  concat.set("axis", attributes.require<std::int64_t>("axis"));
  if (attributes.get_int("new_axis", 0) != 0)
    for (tensor& item : items) {
      dim_list dims = item.dims();
      const std::size_t axis = axis_at(attributes.require<std::int64_t>("axis"), dims.size() + 1);
      dims.insert(dims.begin() + static_cast<std::ptrdiff_t>(axis), 1);
      item = item.reshaped(std::move(dims));
    }
  tensor joined;
  view::concat(concat, items, std::span<tensor>(&joined, 1));
  outputs[0] = std::move(joined);
}

inline void optional(const attribute_map&, std::span<const host_value> inputs, std::span<host_value> outputs) {
  outputs[0] = inputs.empty() || inputs[0].absent() ? host_value::empty_optional() : host_value::optional_of(inputs[0]);
}
inline void optional_get_element(const attribute_map&, std::span<const host_value> inputs,
                                 std::span<host_value> outputs) {
  host_value value = inputs[0];
  if (value.kind == value_kind::optional) {
    if (!value.present) throw error(errc::invalid_argument, "OptionalGetElement of an optional without element");
    value.kind = value.element;
  }
  outputs[0] = std::move(value);
}
inline void optional_has_element(const attribute_map&, std::span<const host_value> inputs,
                                 std::span<host_value> outputs) {
  const bool has =
      !inputs.empty() && !inputs[0].absent() && (inputs[0].kind != value_kind::optional || inputs[0].present);
  outputs[0] = tensor::scalar(has);
}
inline void identity(const attribute_map&, std::span<const host_value> inputs, std::span<host_value> outputs) {
  outputs[0] = inputs[0];
}

}  // namespace container

inline constexpr std::array container_rows{
    container_row{"SequenceConstruct", container::sequence_construct},
    container_row{"SequenceEmpty", container::sequence_empty},
    container_row{"SequenceInsert", container::sequence_insert},
    container_row{"SequenceErase", container::sequence_erase},
    container_row{"SequenceAt", container::sequence_at},
    container_row{"SequenceLength", container::sequence_length},
    container_row{"SplitToSequence", container::split_to_sequence},
    container_row{"ConcatFromSequence", container::concat_from_sequence},
    container_row{"Optional", container::optional},
    container_row{"OptionalGetElement", container::optional_get_element},
    container_row{"OptionalHasElement", container::optional_has_element},
    container_row{"Identity", container::identity},
};

}  // namespace dnnopt::reference

#endif  // DNNOPT_REFERENCE_CONTAINER_HPP
