// Owns what verify allows a quantized value: one step of its scale in few elements, where the graph says what a step
// is.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>
#include <vector>

#include <dnnopt/backend/codegen/builder/kernel_builder.hpp>
#include <dnnopt/graph.hpp>
#include <dnnopt/ops/conversion.hpp>
#include <dnnopt/ops/convolution.hpp>
#include <dnnopt/ops/extend.hpp>
#include <dnnopt/ops/matrix_product.hpp>

namespace tool {

/// The share of a quantized value's elements that may be the code next to the expected one.
inline constexpr double largest_share_of_steps = 0.01;

/// How far the outputs of a model may be, by the root of the squares' sums, whose parts are all right.
inline constexpr double largest_energy_of_steps = 0.05;

/// Whether output `i` of a node is codes that the node rounds numbers to: all but DynamicQuantizeLinear's scale.
[[nodiscard]] inline bool rounds_to_codes(const dnnopt::node& n, std::size_t i) {
  using namespace dnnopt;
  if (n.op == &op_row<ops::dynamic_quantize_linear_op>) return i != 1;
  return n.op == &op_row<ops::quantize_linear_op> || n.op == &op_row<ops::qlinear_conv_op> ||
         n.op == &op_row<ops::qlinear_matmul_op>;
}

/// What one code more is in each value: 1 where an operator that rounds to codes makes it, the scale (the largest of
/// several) behind DequantizeLinear of such codes, and the same behind operators that move elements. Nothing for other
/// values, those whose scale is no constant, and integers that count or index: they are held as floats and exactly.
[[nodiscard]] inline std::vector<std::optional<double>> rounding_steps(const dnnopt::graph& g) {
  using namespace dnnopt;
  std::vector<std::optional<double>> steps(g.value_count());
  const auto step_of = [&](const node& n, std::size_t input) {
    return input < n.inputs.size() && n.inputs[input] != no_value ? steps[n.inputs[input]] : std::nullopt;
  };
  for (const node_id id : g.topological_order()) {
    const node& n = g.node_at(id);
    std::optional<double> step;
    if (n.op == &op_row<ops::dequantize_linear_op>) {
      const value_facts& scale = g.facts(n.inputs[1]);
      if (!scale.is_constant() || !step_of(n, 0)) continue;
      step = 0;
      for (std::size_t i = 0; i < static_cast<std::size_t>(scale.constant.size()); ++i)
        step = std::max(*step, std::fabs(codegen::number_at(scale.constant, i)));
    } else if (n.op->kind == computation_kind::view || n.op->kind == computation_kind::indexed_read) {
      step = step_of(n, 0);
      for (std::size_t i = 1; step && n.op == &op_row<ops::concat_op> && i < n.inputs.size(); ++i)
        step = step_of(n, i) ? std::optional<double>(std::max(*step, *step_of(n, i))) : std::nullopt;
    }
    for (std::size_t i = 0; i < n.outputs.size(); ++i)
      if (n.outputs[i] != no_value) steps[n.outputs[i]] = rounds_to_codes(n, i) ? 1 : step;
  }
  return steps;
}

/// Elements of quantized values that differ by more than floats may.
struct step_counts {
  std::size_t elements = 0;
  std::size_t differing = 0;
  double largest = 0;  ///< difference in steps

  void add(const step_counts& other) {
    elements += other.elements;
    differing += other.differing;
    largest = std::max(largest, other.largest);
  }
  [[nodiscard]] double share() const {
    return elements == 0 ? 0 : static_cast<double>(differing) / static_cast<double>(elements);
  }
  /// No element is further off than one step, and few are: one, or the share above. A hundredth of a step is what the
  /// numbers themselves may be off by.
  [[nodiscard]] bool within() const { return largest <= 1.01 && (differing <= 1 || share() <= largest_share_of_steps); }
};

/// Codes of the graph that data decides, in execution order: what constants alone make is left out.
[[nodiscard]] inline std::vector<dnnopt::value_id> computed_codes(const dnnopt::graph& g) {
  using namespace dnnopt;
  std::vector<value_id> codes;
  std::vector<char> fixed(g.value_count());
  for (value_id v = 0; v < g.value_count(); ++v) fixed[v] = g.facts(v).is_constant() ? 1 : 0;
  for (const node_id id : g.topological_order()) {
    const node& n = g.node_at(id);
    const bool constant =
        std::all_of(n.inputs.begin(), n.inputs.end(), [&](value_id v) { return v == no_value || fixed[v] != 0; });
    for (std::size_t i = 0; i < n.outputs.size(); ++i) {
      if (n.outputs[i] == no_value) continue;
      fixed[n.outputs[i]] = constant ? 1 : 0;
      if (!constant && rounds_to_codes(n, i)) codes.push_back(n.outputs[i]);
    }
  }
  return codes;
}

}  // namespace tool
