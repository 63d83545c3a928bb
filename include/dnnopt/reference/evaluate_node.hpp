// Owns the evaluation of one node on tensors, as passes take it, and on all values, as executors take it.
#ifndef DNNOPT_REFERENCE_EVALUATE_NODE_HPP
#define DNNOPT_REFERENCE_EVALUATE_NODE_HPP

#include <span>
#include <utility>
#include <vector>

#include <dnnopt/error.hpp>
#include <dnnopt/graph.hpp>
#include <dnnopt/reference/evaluator.hpp>

namespace dnnopt::reference {

/// The outputs of one node for its input tensors (empty ones stand for absent inputs), bodies included: a
/// node_evaluator. Errors: those of the operator; unsupported where an output is a sequence or an optional.
[[nodiscard]] inline std::vector<tensor> evaluate_node(const graph& g, node_id id, std::span<const tensor> inputs) {
  const evaluator runner;
  const std::vector<host_value> arguments(inputs.begin(), inputs.end());
  std::vector<tensor> outputs;
  for (host_value& result : runner.run_node(g, id, arguments)) {
    if (result.kind != value_kind::tensor)
      throw error(errc::unsupported, "an output of node '" + g.node_at(id).name + "' is no tensor");
    outputs.push_back(std::move(result.content));
  }
  return outputs;
}

/// The outputs of one node for values of its inputs, sequences and optionals among them, bodies included: a
/// host_evaluator. Errors: those of the operator.
[[nodiscard]] inline std::vector<host_value> evaluate_values(const graph& g, node_id id,
                                                             std::span<const host_value> inputs) {
  return evaluator().run_node(g, id, inputs);
}

}  // namespace dnnopt::reference

#endif  // DNNOPT_REFERENCE_EVALUATE_NODE_HPP
