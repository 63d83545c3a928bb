// Owns the reference backend's run of a whole graph: node after node on the host, subgraphs and block bodies included.
#ifndef DNNOPT_REFERENCE_EVALUATOR_HPP
#define DNNOPT_REFERENCE_EVALUATOR_HPP

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dnnopt/graph.hpp>
#include <dnnopt/reference/container.hpp>
#include <dnnopt/reference/control_flow.hpp>
#include <dnnopt/reference/host_value.hpp>
#include <dnnopt/reference/ml/maps.hpp>
#include <dnnopt/reference/scalar_expression.hpp>
#include <dnnopt/reference/table.hpp>

namespace dnnopt::reference {

/// What an observer is told after each node.
struct node_evaluation {
  const graph& owner;  ///< the graph of the node: the model's or a body
  node_id id;
  std::span<const host_value> inputs;
  std::span<const host_value> outputs;
  std::chrono::steady_clock::time_point begin;
  std::chrono::steady_clock::time_point end;
  std::size_t depth;  ///< 0 in the model's graph, 1 in bodies of its nodes, ...
};

/// How a graph is run.
struct evaluate_options {
  /// Called after each node, in order, on the calling thread; the times include this node's bodies.
  std::function<void(const node_evaluation&)> observer;
};

/// Runs graphs on the host. Holds options only, so that one object may run several graphs, one at a time or at once.
class evaluator final : public body_runner {
 public:
  explicit evaluator(evaluate_options options = {}) : options_(std::move(options)) {}

  /// The outputs of `g`, in order, for values of its inputs, in order. An absent input whose graph value is a constant
  /// takes that constant. Dead intermediate values are freed as soon as their last reader has run.
  /// Errors: missing_input, type_mismatch, shape_mismatch for inputs that contradict their declaration; unsupported,
  /// naming node, operator and reason; what an operator reports, with node and operator put before it.
  [[nodiscard]] std::vector<host_value> run(const graph& g, std::vector<host_value> inputs) const {
    return run_at_depth(g, std::move(inputs), 0);
  }

  /// The outputs of one node for values of its inputs (captured ones last), bodies included. Errors: as run.
  [[nodiscard]] std::vector<host_value> run_node(const graph& g, node_id id, std::span<const host_value> inputs) const {
    return run_node_at_depth(g, id, inputs, 0);
  }

  [[nodiscard]] std::vector<host_value> run_body(const graph& body, std::vector<host_value> inputs) const override {
    return run_at_depth(body, std::move(inputs), 1);
  }

 private:
  // Bodies of bodies: a runner that knows how deep it is.
  class nested_runner final : public body_runner {
   public:
    nested_runner(const evaluator& owner, std::size_t depth) : owner_(&owner), depth_(depth) {}
    [[nodiscard]] std::vector<host_value> run_body(const graph& body, std::vector<host_value> inputs) const override {
      return owner_->run_at_depth(body, std::move(inputs), depth_);
    }

   private:
    const evaluator* owner_;
    std::size_t depth_;
  };

  [[nodiscard]] std::vector<host_value> run_at_depth(const graph& g, std::vector<host_value> inputs,
                                                     std::size_t depth) const {
    std::vector<host_value> values(g.value_count());
    std::vector<bool> known(g.value_count(), false);
    bind_inputs(g, std::move(inputs), values, known, depth);
    const std::vector<node_id> order = g.topological_order();
    // A value dies with its last reader; outputs and constants do not.
    std::vector<std::size_t> readers(g.value_count(), 0);
    for (const node_id id : order)
      for (const value_id v : g.node_at(id).inputs)
        if (v != no_value) ++readers[v];
    for (const value_id v : g.outputs()) ++readers[v];
    for (const node_id id : order) {
      const node& n = g.node_at(id);
      std::vector<host_value> arguments;
      arguments.reserve(n.inputs.size());
      for (const value_id v : n.inputs) {
        if (v == no_value) {
          arguments.emplace_back();
          continue;
        }
        arguments.push_back(value_of(g, v, values, known));
      }
      // What was read for the last time is freed with the arguments.
      for (const value_id v : n.inputs)
        if (v != no_value && --readers[v] == 0) values[v] = host_value();
      const auto begin = std::chrono::steady_clock::now();
      std::vector<host_value> results = run_node_at_depth(g, id, arguments, depth);
      if (options_.observer)
        options_.observer({g, id, arguments, results, begin, std::chrono::steady_clock::now(), depth});
      for (std::size_t o = 0; o < n.outputs.size(); ++o) {
        if (n.outputs[o] == no_value || readers[n.outputs[o]] == 0) continue;
        values[n.outputs[o]] = std::move(results[o]);
        known[n.outputs[o]] = true;
      }
    }
    std::vector<host_value> outputs;
    for (const value_id v : g.outputs()) outputs.push_back(value_of(g, v, values, known));
    return outputs;
  }

  static void bind_inputs(const graph& g, std::vector<host_value> inputs, std::vector<host_value>& values,
                          std::vector<bool>& known, std::size_t depth) {
    if (inputs.size() > g.inputs().size())
      throw error(errc::invalid_argument, "graph '" + g.name + "' has " + std::to_string(g.inputs().size()) +
                                              " inputs, was given " + std::to_string(inputs.size()));
    for (std::size_t i = 0; i < g.inputs().size(); ++i) {
      const value_id v = g.inputs()[i];
      const value& declared = g.value_at(v);
      if (i >= inputs.size() || (inputs[i].absent() && declared.facts.is_constant())) {
        if (declared.facts.is_constant()) continue;
        throw error(errc::missing_input, "input '" + declared.name + "' is not given");
      }
      // Bodies take absent values as their callers have them.
      if (!inputs[i].absent() && inputs[i].kind == value_kind::tensor && declared.facts.kind == value_kind::tensor)
        check_input(declared, inputs[i].content, depth);
      values[v] = std::move(inputs[i]);
      known[v] = true;
    }
  }

  static void check_input(const value& declared, const tensor& given, std::size_t depth) {
    if (declared.facts.type != dtype::undefined && given.type() != declared.facts.type)
      throw error(errc::type_mismatch, "input '" + declared.name + "' is " + std::string(name_of(declared.facts.type)) +
                                           ", was given " + std::string(name_of(given.type())));
    // What a body's inputs are declared as is a hint: carried values may change their dims from turn to turn.
    if (!declared.facts.dims || depth != 0) return;
    bool fits = declared.facts.dims->size() == given.rank();
    for (std::size_t k = 0; fits && k < given.rank(); ++k) {
      const auto dim = (*declared.facts.dims)[k].as_constant();
      fits = !dim || *dim == given.dims()[k];
    }
    if (!fits)
      throw error(errc::shape_mismatch, "input '" + declared.name + "' is " + to_string(*declared.facts.dims) +
                                            ", was given " + to_string(given.dims()));
  }

  static host_value value_of(const graph& g, value_id v, const std::vector<host_value>& values,
                             const std::vector<bool>& known) {
    if (known[v]) return values[v];
    const value& held = g.value_at(v);
    if (held.facts.is_constant()) return held.facts.constant;
    throw error(errc::missing_name, "value '" + held.name + "' is read before anything computes it");
  }

  [[nodiscard]] std::vector<host_value> run_node_at_depth(const graph& g, node_id id,
                                                          std::span<const host_value> inputs, std::size_t depth) const {
    const node& n = g.node_at(id);
    try {
      return dispatch(g, n, inputs, depth);
    } catch (const error& e) {
      const std::string_view text = e.what();
      const std::size_t after = text.find("] ");
      throw error(e.code(), "node '" + n.name + "' (" + std::string(n.op->name) +
                                "): " + std::string(after == std::string_view::npos ? text : text.substr(after + 2)));
    } catch (const std::out_of_range&) {
      throw error(errc::invalid_argument, "node '" + n.name + "' (" + std::string(n.op->name) +
                                              "): it reads an element that an operand does not have");
    }
  }

  [[nodiscard]] std::vector<host_value> dispatch(const graph& g, const node& n, std::span<const host_value> inputs,
                                                 std::size_t depth) const {
    std::vector<host_value> outputs(n.outputs.size());
    const nested_runner runner(*this, depth + 1);
    if (n.op->kind == computation_kind::control_flow) {
      for (const control_flow_row& row : control_flow_rows)
        if (row.name == n.op->name && n.op->domain.empty()) {
          if (n.formal_inputs() < n.op->arity.least_inputs) throw error(errc::bad_arity, "too few inputs");
          row.evaluate(runner, n, inputs, outputs);
          return outputs;
        }
      throw error(errc::unsupported, "the reference backend does not run this control flow");
    }
    // A fused block computes what its body computes.
    if (const attribute* held = n.attributes.find("body"); held != nullptr && n.op->evaluate == nullptr)
      if (const subgraph* body = std::get_if<subgraph>(held); body != nullptr && *body != nullptr) {
        std::vector<host_value> results = runner.run_body(**body, {inputs.begin(), inputs.end()});
        control_flow::check_outputs(results, outputs.size());
        for (std::size_t o = 0; o < outputs.size(); ++o) outputs[o] = std::move(results[o]);
        return outputs;
      }
    bool containers = n.op->kind == computation_kind::container;
    for (const host_value& input : inputs) containers = containers || input.kind != value_kind::tensor;
    if (containers) {
      const std::span<const container_row> rows =
          n.op->domain.empty() ? std::span<const container_row>(container_rows) : ml::map_rows;
      for (const container_row& row : rows)
        if (row.name == n.op->name && (n.op->domain.empty() || n.op->domain == "ai.onnx.ml")) {
          if (inputs.size() < n.op->arity.least_inputs) throw error(errc::bad_arity, "too few inputs");
          row.evaluate(n.attributes, inputs, outputs);
          return outputs;
        }
      throw error(errc::unsupported, "the reference backend does not compute this operator on containers");
    }
    std::vector<tensor> arguments;
    arguments.reserve(inputs.size());
    for (const host_value& input : inputs) arguments.push_back(input.content);
    if (outputs.size() == 1 && !n.op->scalar.empty() && find_evaluation(*n.op) == nullptr) {
      outputs[0] = evaluate_expression(*n.op, n.attributes, arguments, g.facts(n.outputs[0]).type);
      return outputs;
    }
    std::vector<tensor> results = evaluate_operator(*n.op, n.attributes, arguments, n.outputs.size());
    for (std::size_t o = 0; o < outputs.size(); ++o) outputs[o] = std::move(results[o]);
    return outputs;
  }

  evaluate_options options_;
};

/// The output tensors of `g`, in order, for its input tensors, in order. Errors: as evaluator::run; unsupported where
/// an output is a sequence or an optional (evaluator::run gives those).
[[nodiscard]] inline std::vector<tensor> evaluate(const graph& g, std::span<const tensor> inputs,
                                                  evaluate_options options = {}) {
  const evaluator runner(std::move(options));
  std::vector<tensor> outputs;
  for (host_value& value : runner.run(g, {inputs.begin(), inputs.end()})) {
    if (value.kind != value_kind::tensor)
      throw error(errc::unsupported, "an output of graph '" + g.name + "' is no tensor");
    outputs.push_back(std::move(value.content));
  }
  return outputs;
}

}  // namespace dnnopt::reference

#endif  // DNNOPT_REFERENCE_EVALUATOR_HPP
