// Owns the value of the reference backend during evaluation: a tensor, a sequence of tensors, or an optional of either.
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
  value_kind element = value_kind::tensor;  ///< of an optional: what it holds
  bool present = true;                      ///< of an optional: whether it holds anything
  tensor content;                      ///< of a tensor, or of an optional tensor; empty() stands for an absent input
  std::vector<tensor> items;           ///< of a sequence, or of an optional sequence
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
