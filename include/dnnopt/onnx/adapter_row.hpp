// Owns what adapters of older opsets share: their row type, the newest opset, and the moves from attributes to inputs.
#ifndef DNNOPT_ONNX_ADAPTER_ROW_HPP
#define DNNOPT_ONNX_ADAPTER_ROW_HPP

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include <dnnopt/onnx/node_emitter.hpp>
#include <dnnopt/small_float.hpp>
#include <dnnopt/tensor.hpp>

namespace dnnopt::onnx {

/// The opsets of ai.onnx that the importer reads.
inline constexpr std::int64_t oldest_opset = 1;
inline constexpr std::int64_t newest_opset = 28;

/// Changes `n` from the form just before a version to that version's form; may emit helper nodes in the newest form.
using node_adapter = void (*)(pending_node& n, node_emitter& emitter);

/// One change of an operator's form between two opsets.
struct adapter_row {
  std::string_view op_type;
  std::int64_t below;  ///< applies to nodes of an opset before this one
  node_adapter adapt;
};

namespace detail {

/// A scalar of `type`; float where the type is not known.
inline tensor scalar_of(dtype type, double v) {
  switch (type) {
    case dtype::float64:
      return tensor::scalar(v);
    case dtype::float16:
      return tensor::scalar(float16(static_cast<float>(v)));
    case dtype::bfloat16:
      return tensor::scalar(bfloat16(static_cast<float>(v)));
    case dtype::int64:
      return tensor::scalar(static_cast<std::int64_t>(v));
    case dtype::int32:
      return tensor::scalar(static_cast<std::int32_t>(v));
    case dtype::int16:
      return tensor::scalar(static_cast<std::int16_t>(v));
    case dtype::int8:
      return tensor::scalar(static_cast<std::int8_t>(v));
    case dtype::uint8:
      return tensor::scalar(static_cast<std::uint8_t>(v));
    default:
      return tensor::scalar(static_cast<float>(v));
  }
}
inline dtype type_of(const pending_node& n, const node_emitter& e, std::size_t input) {
  const value_facts* f = e.facts_of(n, input);
  return f == nullptr ? dtype::undefined : f->type;
}

/// Moves a list attribute to an input; absent stays absent.
inline void list_to_input(pending_node& n, node_emitter& e, const char* name, std::size_t slot) {
  if (!n.attributes.contains(name)) return;
  n.set_input(slot, e.integers(n, name, n.attributes.require<std::vector<std::int64_t>>(name)));
  n.attributes.erase(name);
}
/// Moves a float attribute to a scalar input of the type of input 0; absent stays absent.
inline void number_to_input(pending_node& n, node_emitter& e, const char* name, std::size_t slot) {
  if (!n.attributes.contains(name)) return;
  n.set_input(slot,
              e.constant(n, name, scalar_of(type_of(n, e, 0), static_cast<double>(n.attributes.require<float>(name)))));
  n.attributes.erase(name);
}
inline void axes_to_input(pending_node& n, node_emitter& e) { list_to_input(n, e, "axes", 1); }

}  // namespace detail

}  // namespace dnnopt::onnx

#endif  // DNNOPT_ONNX_ADAPTER_ROW_HPP
