// Owns the value of the reference backend during evaluation: a tensor, a sequence of tensors or maps, a map, or an
// optional of these.
#ifndef DNNOPT_REFERENCE_HOST_VALUE_HPP
#define DNNOPT_REFERENCE_HOST_VALUE_HPP

#include <string>
#include <utility>
#include <vector>

#include <dnnopt/error.hpp>
#include <dnnopt/ops/facts.hpp>
#include <dnnopt/tensor.hpp>

namespace dnnopt::reference {

/// One value. Copies share tensor storage.
struct host_value {
  value_kind kind = value_kind::tensor;
  value_kind element = value_kind::tensor;  ///< of an optional or a sequence: what it holds
  bool present = true;                      ///< of an optional: whether it holds anything
  tensor content;  ///< of a tensor, or of an optional tensor; empty() stands for an absent input
  /// Of a sequence, or of an optional sequence; of a map its keys and its values; of a sequence of maps the keys and
  /// values of each.
  std::vector<tensor> items;
  dtype item_type = dtype::undefined;  ///< of a sequence, known also where it has no items

  host_value() = default;
  host_value(tensor t) : content(std::move(t)) {}  // NOLINT: a tensor is a value

  /// Whether this stands for an absent optional input of an operator.
  [[nodiscard]] bool absent() const noexcept { return kind == value_kind::tensor && content.empty(); }
  /// The tensor. Errors: type_mismatch for a container.
  [[nodiscard]] const tensor& as_tensor() const {
    if (kind != value_kind::tensor) throw error(errc::type_mismatch, "a container stands where a tensor is needed");
    return content;
  }
  /// The items of a sequence. Errors: type_mismatch for another value.
  [[nodiscard]] const std::vector<tensor>& as_sequence() const {
    if (kind != value_kind::sequence)
      throw error(errc::type_mismatch, "a value that is no sequence stands where one is needed");
    return items;
  }
  /// The keys and the values of a map. Errors: type_mismatch for another value.
  [[nodiscard]] std::pair<const tensor&, const tensor&> as_map() const {
    if (kind != value_kind::map || items.size() != 2)
      throw error(errc::type_mismatch, "a value that is no map stands where one is needed");
    return {items[0], items[1]};
  }
  /// A sequence of maps: keys, values, keys, values, ... Precondition: an even number of tensors.
  [[nodiscard]] static host_value sequence_of_maps(std::vector<tensor> keys_and_values, dtype type) {
    host_value value = sequence(std::move(keys_and_values), type);
    value.element = value_kind::map;
    return value;
  }
  /// A map from the elements of `keys` to those of `values`.
  [[nodiscard]] static host_value map(tensor keys, tensor values) {
    host_value value;
    value.kind = value_kind::map;
    value.item_type = values.type();
    value.items = {std::move(keys), std::move(values)};
    return value;
  }
  /// A sequence value.
  [[nodiscard]] static host_value sequence(std::vector<tensor> items, dtype type = dtype::undefined) {
    host_value value;
    value.kind = value_kind::sequence;
    value.item_type = type == dtype::undefined && !items.empty() ? items[0].type() : type;
    value.items = std::move(items);
    return value;
  }
  /// An optional that holds `inner`.
  [[nodiscard]] static host_value optional_of(host_value inner) {
    inner.element = inner.kind;
    inner.kind = value_kind::optional;
    return inner;
  }
  /// An optional without element.
  [[nodiscard]] static host_value empty_optional() {
    host_value value;
    value.kind = value_kind::optional;
    value.present = false;
    return value;
  }
};

}  // namespace dnnopt::reference

#endif  // DNNOPT_REFERENCE_HOST_VALUE_HPP
