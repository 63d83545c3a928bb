// Owns the choice of the opset that an exported model states: the oldest one that knows every form in the graph.
#ifndef DNNOPT_ONNX_EXPORT_OPSET_HPP
#define DNNOPT_ONNX_EXPORT_OPSET_HPP

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>
#include <variant>

#include <dnnopt/graph.hpp>

namespace dnnopt::onnx {

/// The opset since which the graph's forms of all older operators hold, and the IR version that states it.
inline constexpr std::int64_t base_export_opset = 21;

namespace detail {

/// What opsets after base_export_opset brought: operators (no attribute), attributes, element types.
struct newer_operator {
  std::string_view name;
  std::string_view attribute;
  std::int64_t since;
};
inline constexpr newer_operator newer_operators[] = {
    {"RotaryEmbedding", "", 23},
    {"RMSNormalization", "", 23},
    {"Attention", "", 23},
    {"Swish", "", 24},
    {"TensorScatter", "", 24},
    {"CumProd", "", 26},
    {"BitCast", "", 26},
    {"LinearAttention", "", 27},
    {"CausalConvWithState", "", 27},
    {"SwiGLU", "", 28},
    {"QuantizeLinear", "precision", 23},
    {"DequantizeLinear", "output_dtype", 23},
    {"Cast", "round_mode", 24},
    {"CastLike", "round_mode", 24},
    {"Attention", "left_window_size", 25},
    {"Attention", "right_window_size", 25},
    {"Range", "stash_type", 27},
    {"SpaceToDepth", "mode", 28},
};

inline std::int64_t opset_of_type(dtype type) {
  switch (type) {
    case dtype::float4e2m1:
      return 23;
    case dtype::float8e8m0:
      return 24;
    case dtype::int2:
    case dtype::uint2:
      return 25;
    default:
      return base_export_opset;
  }
}

}  // namespace detail

/// The opset of ai.onnx that `g` and the graphs in it need. O(nodes + values).
[[nodiscard]] inline std::int64_t opset_to_export(const graph& g) {
  std::int64_t opset = base_export_opset;
  for (value_id id = 0; id < g.value_count(); ++id) opset = std::max(opset, detail::opset_of_type(g.facts(id).type));
  for (const node_id id : g.nodes()) {
    const node& n = g.node_at(id);
    if (n.op->domain.empty())
      for (const detail::newer_operator& row : detail::newer_operators)
        if (row.name == n.op->name && (row.attribute.empty() || n.attributes.contains(row.attribute)))
          opset = std::max(opset, row.since);
    // The seventh input of Attention came a version after the operator.
    if (n.op->name == "Attention" && n.op->domain.empty() && n.inputs.size() > 6)
      opset = std::max<std::int64_t>(opset, 24);
    for (const auto& [key, held] : n.attributes)
      if (const auto* body = std::get_if<subgraph>(&held); body != nullptr && *body)
        opset = std::max(opset, opset_to_export(**body));
  }
  return opset;
}

/// The IR version of the ONNX release that brought the opset.
[[nodiscard]] constexpr std::int64_t ir_version_of(std::int64_t opset) {
  return opset <= 22 ? 10 : opset == 23 ? 11 : opset == 24 ? 12 : opset <= 27 ? 13 : 14;
}

}  // namespace dnnopt::onnx

#endif  // DNNOPT_ONNX_EXPORT_OPSET_HPP
