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
    if (n.op == &op_row<ops::quantize_linear_op> || n.op == &op_row<ops::qlinear_conv_op> ||
        n.op == &op_row<ops::qlinear_matmul_op> || n.op == &op_row<ops::dynamic_quantize_linear_op>) {
      step = 1;
    } else if (n.op == &op_row<ops::dequantize_linear_op>) {
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
    // DynamicQuantizeLinear's scale is a float as any other.
    for (std::size_t i = 0; i < n.outputs.size(); ++i)
      if (n.outputs[i] != no_value && !(i == 1 && n.op == &op_row<ops::dynamic_quantize_linear_op>))
        steps[n.outputs[i]] = step;
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

}  // namespace tool
