// Owns the operator that stands for a function of one code: a table of what it gives for each.
#ifndef DNNOPT_OPS_LOOK_UP_HPP
#define DNNOPT_OPS_LOOK_UP_HPP

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

#include <dnnopt/ops/element_wise.hpp>

namespace dnnopt::ops {

/// y = table[x], element by element: x of int8 or uint8, whose bits count the 256 elements of the table. No operator of
/// ONNX's, and in no set of operators: the pass look_up_codes writes it, and export writes Cast and Gather instead.
/// Source: TensorFlow Lite's kernels for quantized activations, which look results up.
struct look_up_op : element_wise_classes {
  static constexpr std::string_view domain = "dnnopt";
  static constexpr std::string_view name = "LookUp";
  static constexpr op_arity arity{2, 2};
  static constexpr int element_cost = 2;
  static constexpr std::int64_t table_size = 256;

  static mapping_type mapping_of(const node_facts&, std::size_t input, std::size_t) {
    return input == 0 ? mapping_type::one_to_one : mapping_type::one_to_many;
  }
  static void infer_backward(const node_facts&, std::span<const value_facts> outputs, std::span<value_facts> inputs) {
    if (outputs[0].dims && !inputs[0].dims) inputs[0].dims = outputs[0].dims;
  }
  static void infer(const node_facts& facts, std::span<value_facts> outputs) {
    outputs[0].type = facts.type(1);
    if (const shape* dims = facts.dims(0)) outputs[0].dims = *dims;
  }
  static void evaluate(const attribute_map&, std::span<const tensor> inputs, std::span<tensor> outputs) {
    outputs[0] = tensor(inputs[1].type(), inputs[0].dims());
    const std::span<const std::byte> codes = inputs[0].bytes();
    const std::span<const std::byte> table = inputs[1].bytes();
    const std::span<std::byte> out = outputs[0].mutable_bytes();
    const std::size_t size = table.size() / static_cast<std::size_t>(table_size);
    for (std::size_t i = 0; i < codes.size(); ++i)
      std::memcpy(out.data() + i * size, table.data() + static_cast<std::size_t>(codes[i]) * size, size);
  }
};

}  // namespace dnnopt::ops

#endif  // DNNOPT_OPS_LOOK_UP_HPP
