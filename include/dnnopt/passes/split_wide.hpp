// Owns the cutting of operators with very many operands: a kernel's arguments are bounded.
#ifndef DNNOPT_PASSES_SPLIT_WIDE_HPP
#define DNNOPT_PASSES_SPLIT_WIDE_HPP

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dnnopt/graph.hpp>
#include <dnnopt/ops/arithmetic.hpp>
#include <dnnopt/passes/pass.hpp>
#include <dnnopt/small_float.hpp>

namespace dnnopt {

/// Before: y = Op(x0, ..., xn) of an associative operator with more operands than one kernel takes (Sum, Max, Min,
///         Concat), or a Mean.
/// After:  a tree of the same operator over groups of `group` operands; a Mean is the Sum, divided by the number of
///         operands.
/// Sums are added in another order. O(operands).
struct split_wide {
  static constexpr std::string_view name = "split_wide";
  /// Eight bytes each, half of what OpenCL promises for the arguments of a kernel.
  static constexpr std::size_t most_operands = 64;
  /// Few enough that what computes them still fits into the kernel that joins them.
  static constexpr std::size_t group = 32;

  pass_result run(graph& g) const {
    pass_result result;
    for (const node_id id : g.topological_order()) {
      const node& n = g.node_at(id);
      if (n.inputs.size() <= most_operands || n.op->arity.most_inputs != variadic || n.outputs.size() != 1) continue;
      if (n.op == &op_row<ops::mean_op>) {
        if (!divide_sum(g, id)) continue;
      } else if (!has(n.op->properties, algebra::associative)) {
        continue;
      }
      make_tree(g, id);
      ++result.edits;
    }
    return result;
  }

 private:
  static void make_tree(graph& g, node_id id) {
    const op_info& op = *g.node_at(id).op;
    const attribute_map attributes = g.node_at(id).attributes;
    const std::string base = g.node_at(id).name;
    const dtype type = g.facts(g.node_at(id).outputs[0]).type;
    std::vector<value_id> operands = g.node_at(id).inputs;
    for (std::size_t level = 0; operands.size() > most_operands; ++level) {
      std::vector<value_id> joined;
      for (std::size_t at = 0; at < operands.size(); at += group) {
        const std::size_t end = std::min(at + group, operands.size());
        if (end - at == 1) {
          joined.push_back(operands[at]);
          continue;
        }
        const std::string part = base + "/" + std::string(name) + std::to_string(level) + "_" + std::to_string(at);
        joined.push_back(g.add_value(part, type));
        g.add_node(
            op, part,
            {operands.begin() + static_cast<std::ptrdiff_t>(at), operands.begin() + static_cast<std::ptrdiff_t>(end)},
            {joined.back()}, attributes);
      }
      operands = std::move(joined);
    }
    g.set_node_inputs(id, std::move(operands));
  }

  [[nodiscard]] static std::optional<tensor> scalar_of(dtype type, double number) {
    switch (type) {
      case dtype::float64:
        return tensor::scalar<double>(number);
      case dtype::float32:
        return tensor::scalar<float>(static_cast<float>(number));
      case dtype::float16:
        return tensor::scalar<float16>(float16(static_cast<float>(number)));
      case dtype::bfloat16:
        return tensor::scalar<bfloat16>(bfloat16(static_cast<float>(number)));
      default:
        return std::nullopt;
    }
  }

  /// Makes a Sum of a Mean, with a division behind it; false where the element type is not known.
  static bool divide_sum(graph& g, node_id id) {
    const value_id mean = g.node_at(id).outputs[0];
    const dtype type = g.facts(mean).type;
    std::optional<tensor> count = scalar_of(type, static_cast<double>(g.node_at(id).inputs.size()));
    if (!count) return false;
    const std::string base = g.node_at(id).name;
    const value_id sum = g.add_value(base + "/sum", type);
    const value_id divisor = g.add_constant(base + "/count", std::move(*count));
    g.move_output(mean, sum);
    g.set_node_op(id, op_row<ops::sum_op>, {});
    g.add_node(op_row<ops::div_op>, base + "/divided", {sum, divisor}, {mean});
    return true;
  }
};

static_assert(Pass<split_wide>);

}  // namespace dnnopt

#endif  // DNNOPT_PASSES_SPLIT_WIDE_HPP
