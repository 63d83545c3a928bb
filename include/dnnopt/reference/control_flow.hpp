// Owns the reference evaluation of operators that run subgraphs: If, Loop, Scan, SequenceMap.
#ifndef DNNOPT_REFERENCE_CONTROL_FLOW_HPP
#define DNNOPT_REFERENCE_CONTROL_FLOW_HPP

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dnnopt/graph.hpp>
#include <dnnopt/reference/host_value.hpp>
#include <dnnopt/reference/view.hpp>

namespace dnnopt::reference {

/// Runs a subgraph; the evaluator implements it.
class body_runner {
 public:
  virtual ~body_runner() = default;
  /// The outputs of `body` for its inputs, in order.
  [[nodiscard]] virtual std::vector<host_value> run_body(const graph& body, std::vector<host_value> inputs) const = 0;
};

/// Runs one control-flow node. `inputs` are the node's, captured outer values last (see node::captured_begin).
using control_flow_function = void (*)(const body_runner& runner, const node& n, std::span<const host_value> inputs,
                                       std::span<host_value> outputs);

/// One control-flow operator.
struct control_flow_row {
  std::string_view name;
  control_flow_function evaluate;
};

namespace control_flow {

/// The subgraph in attribute `name`. Errors: bad_attribute.
[[nodiscard]] inline const graph& body_of(const node& n, std::string_view name) {
  const subgraph& body = n.attributes.require<subgraph>(name);
  if (!body) throw error(errc::bad_attribute, "attribute '" + std::string(name) + "' holds no graph");
  return *body;
}

[[nodiscard]] inline bool truth(const host_value& value) {
  const std::vector<std::int64_t> held = integers_of(value.as_tensor());
  if (held.size() != 1)
    throw error(errc::shape_mismatch, "a condition has " + std::to_string(held.size()) + " elements");
  return held[0] != 0;
}

/// `items` of one shape, along a new axis. Precondition: not empty.
[[nodiscard]] inline tensor stacked(std::vector<tensor> items, std::int64_t axis) {
  for (tensor& item : items) {
    dim_list dims = item.dims();
    dims.insert(dims.begin() + static_cast<std::ptrdiff_t>(axis_at(axis, dims.size() + 1)), 1);
    item = item.reshaped(std::move(dims));
  }
  attribute_map attributes;
  attributes.set("axis", axis);
  tensor result;
  view::concat(attributes, items, std::span<tensor>(&result, 1));
  return result;
}

/// The stack of no items: dims that the body does not state count 0.
[[nodiscard]] inline tensor empty_stack(const graph& body, std::size_t output, std::int64_t axis) {
  const value_facts& facts = body.facts(body.outputs().at(output));
  dim_list dims;
  if (facts.dims)
    for (const index_expr& dim : *facts.dims) dims.push_back(dim.as_constant().value_or(0));
  dims.insert(dims.begin() + static_cast<std::ptrdiff_t>(axis_at(axis, dims.size() + 1)), 0);
  return tensor(facts.type == dtype::undefined ? dtype::float32 : facts.type, std::move(dims));
}

inline void check_outputs(const std::vector<host_value>& results, std::size_t wanted) {
  if (results.size() < wanted)
    throw error(errc::bad_arity,
                "a body gives " + std::to_string(results.size()) + " outputs of " + std::to_string(wanted));
}

inline void run_if(const body_runner& runner, const node& n, std::span<const host_value> inputs,
                   std::span<host_value> outputs) {
  const std::span<const host_value> captured = inputs.subspan(n.formal_inputs());
  std::vector<host_value> results =
      runner.run_body(body_of(n, truth(inputs[0]) ? "then_branch" : "else_branch"), {captured.begin(), captured.end()});
  check_outputs(results, outputs.size());
  for (std::size_t o = 0; o < outputs.size(); ++o) outputs[o] = std::move(results[o]);
}

inline void run_loop(const body_runner& runner, const node& n, std::span<const host_value> inputs,
                     std::span<host_value> outputs) {
  const graph& body = body_of(n, "body");
  const std::size_t formal = n.formal_inputs();
  const std::size_t carried = formal - 2;
  const std::int64_t trips =
      inputs[0].absent() ? std::numeric_limits<std::int64_t>::max() : integers_of(inputs[0].as_tensor()).at(0);
  bool proceed = inputs[1].absent() || truth(inputs[1]);
  std::vector<host_value> state(inputs.begin() + 2, inputs.begin() + static_cast<std::ptrdiff_t>(formal));
  const std::size_t scans = outputs.size() > carried ? outputs.size() - carried : 0;
  std::vector<std::vector<tensor>> stacks(scans);
  for (std::int64_t trip = 0; trip < trips && proceed; ++trip) {
    std::vector<host_value> arguments;
    arguments.emplace_back(tensor::scalar(trip));
    arguments.emplace_back(tensor::scalar(proceed));
    arguments.insert(arguments.end(), state.begin(), state.end());
    arguments.insert(arguments.end(), inputs.begin() + static_cast<std::ptrdiff_t>(formal), inputs.end());
    std::vector<host_value> results = runner.run_body(body, std::move(arguments));
    check_outputs(results, 1 + carried + scans);
    proceed = truth(results[0]);
    for (std::size_t k = 0; k < carried; ++k) state[k] = std::move(results[1 + k]);
    for (std::size_t k = 0; k < scans; ++k) stacks[k].push_back(results[1 + carried + k].as_tensor());
  }
  for (std::size_t k = 0; k < carried && k < outputs.size(); ++k) outputs[k] = std::move(state[k]);
  for (std::size_t k = 0; k < scans; ++k)
    outputs[carried + k] = stacks[k].empty() ? empty_stack(body, 1 + carried + k, 0) : stacked(std::move(stacks[k]), 0);
}

inline void run_scan(const body_runner& runner, const node& n, std::span<const host_value> inputs,
                     std::span<host_value> outputs) {
  const graph& body = body_of(n, "body");
  const auto scanned = static_cast<std::size_t>(n.attributes.require<std::int64_t>("num_scan_inputs"));
  const std::size_t formal = n.formal_inputs();
  if (scanned == 0 || scanned > formal)
    throw error(errc::bad_attribute, "num_scan_inputs is " + std::to_string(scanned));
  const std::size_t states = formal - scanned;
  const std::size_t scans = outputs.size() > states ? outputs.size() - states : 0;
  const auto list = [&n](std::string_view name, std::size_t count) {
    std::vector<std::int64_t> values = n.attributes.get_ints(name, std::vector<std::int64_t>(count, 0));
    values.resize(count, 0);
    return values;
  };
  const std::vector<std::int64_t> in_axes = list("scan_input_axes", scanned);
  const std::vector<std::int64_t> in_backwards = list("scan_input_directions", scanned);
  const std::vector<std::int64_t> out_axes = list("scan_output_axes", scans);
  const std::vector<std::int64_t> out_backwards = list("scan_output_directions", scans);
  std::vector<host_value> state(inputs.begin(), inputs.begin() + static_cast<std::ptrdiff_t>(states));
  std::int64_t length = -1;
  for (std::size_t k = 0; k < scanned; ++k) {
    const tensor& x = inputs[states + k].as_tensor();
    const std::int64_t own = x.dims()[axis_at(in_axes[k], x.rank())];
    if (length >= 0 && own != length)
      throw error(errc::shape_mismatch,
                  "scanned inputs of " + std::to_string(length) + " and " + std::to_string(own) + " elements");
    length = own;
  }
  std::vector<std::vector<tensor>> stacks(scans);
  for (std::int64_t step = 0; step < length; ++step) {
    std::vector<host_value> arguments = state;
    for (std::size_t k = 0; k < scanned; ++k) {
      const tensor& x = inputs[states + k].as_tensor();
      const std::size_t axis = axis_at(in_axes[k], x.rank());
      const tensor part = view::axis_part(x, axis, in_backwards[k] != 0 ? length - 1 - step : step, 1);
      dim_list dims = part.dims();
      dims.erase(dims.begin() + static_cast<std::ptrdiff_t>(axis));
      arguments.emplace_back(part.reshaped(std::move(dims)));
    }
    arguments.insert(arguments.end(), inputs.begin() + static_cast<std::ptrdiff_t>(formal), inputs.end());
    std::vector<host_value> results = runner.run_body(body, std::move(arguments));
    check_outputs(results, states + scans);
    for (std::size_t k = 0; k < states; ++k) state[k] = std::move(results[k]);
    for (std::size_t k = 0; k < scans; ++k) stacks[k].push_back(results[states + k].as_tensor());
  }
  for (std::size_t k = 0; k < states && k < outputs.size(); ++k) outputs[k] = std::move(state[k]);
  for (std::size_t k = 0; k < scans; ++k) {
    if (out_backwards[k] != 0) std::reverse(stacks[k].begin(), stacks[k].end());
    outputs[states + k] =
        stacks[k].empty() ? empty_stack(body, states + k, out_axes[k]) : stacked(std::move(stacks[k]), out_axes[k]);
  }
}

inline void run_sequence_map(const body_runner& runner, const node& n, std::span<const host_value> inputs,
                             std::span<host_value> outputs) {
  const graph& body = body_of(n, "body");
  const std::size_t formal = n.formal_inputs();
  const std::size_t length = inputs[0].as_sequence().size();
  std::vector<std::vector<tensor>> results(outputs.size());
  for (std::size_t at = 0; at < length; ++at) {
    std::vector<host_value> arguments;
    for (std::size_t k = 0; k < inputs.size(); ++k) {
      if (k >= formal || inputs[k].kind != value_kind::sequence) {
        arguments.push_back(inputs[k]);
        continue;
      }
      if (inputs[k].items.size() != length)
        throw error(errc::shape_mismatch, "sequences of different lengths are mapped together");
      arguments.emplace_back(inputs[k].items[at]);
    }
    std::vector<host_value> step = runner.run_body(body, std::move(arguments));
    check_outputs(step, outputs.size());
    for (std::size_t o = 0; o < outputs.size(); ++o) results[o].push_back(step[o].as_tensor());
  }
  for (std::size_t o = 0; o < outputs.size(); ++o)
    outputs[o] = host_value::sequence(std::move(results[o]), body.facts(body.outputs().at(o)).type);
}

}  // namespace control_flow

inline constexpr std::array control_flow_rows{
    control_flow_row{"If", control_flow::run_if},
    control_flow_row{"Loop", control_flow::run_loop},
    control_flow_row{"Scan", control_flow::run_scan},
    control_flow_row{"SequenceMap", control_flow::run_sequence_map},
};

}  // namespace dnnopt::reference

#endif  // DNNOPT_REFERENCE_CONTROL_FLOW_HPP
