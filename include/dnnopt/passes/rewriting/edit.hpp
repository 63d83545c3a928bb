// Owns small edits that passes share: appending a node with its facts, and reading nodes by operator.
#ifndef DNNOPT_PASSES_REWRITING_EDIT_HPP
#define DNNOPT_PASSES_REWRITING_EDIT_HPP

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <range/v3/view/drop.hpp>

#include <dnnopt/graph.hpp>
#include <dnnopt/passes/graph_views.hpp>

namespace dnnopt::rewriting {

/// The node that makes a value as its output 0 by operator `op`, or null.
[[nodiscard]] inline const node* made_by(const graph& g, value_id id, const op_info& op) {
  if (id == no_value || g.value_at(id).producer == no_node || g.value_at(id).output_index != 0) return nullptr;
  const node& n = g.node_at(g.value_at(id).producer);
  return n.op == &op ? &n : nullptr;
}

/// Whether just one node reads the value and it is no graph output.
[[nodiscard]] inline bool has_one_reader(const graph& g, value_id id) {
  return g.value_at(id).uses.size() == 1 && !g.is_output(id);
}

/// A name that no value has as long as names with "~" are left to passes.
[[nodiscard]] inline std::string fresh_value_name(const graph& g, const std::string& prefix) {
  return prefix + "~" + std::to_string(g.value_count());
}

/// A new constant of int64 numbers.
inline value_id add_integers(graph& g, const std::string& prefix, const std::vector<std::int64_t>& numbers) {
  return g.add_constant(fresh_value_name(g, prefix),
                        tensor::of<std::int64_t>({static_cast<std::int64_t>(numbers.size())}, numbers));
}

/// Infers type and shape of a node's outputs from its inputs. Errors: those of the operator's transfer.
inline void infer_outputs(graph& g, node_id id) {
  std::vector<value_facts> outputs(g.node_at(id).outputs.size());
  {
    const facts_of_node facts(g, id);
    g.node_at(id).op->infer(*facts, outputs);
  }
  for (std::size_t i = 0; i < outputs.size(); ++i)
    if (g.node_at(id).outputs[i] != no_value) g.facts(g.node_at(id).outputs[i]) = std::move(outputs[i]);
}

/// Appends a node with one new output, whose facts are inferred. The output's id.
/// Errors: those of the operator's transfer.
inline value_id append(graph& g, const op_info& op, const std::string& prefix, std::vector<value_id> inputs,
                       attribute_map attributes = {}) {
  const std::string name = fresh_value_name(g, prefix);
  const value_id out = g.add_value(name);
  infer_outputs(g, g.add_node(op, name, std::move(inputs), {out}, std::move(attributes)));
  return out;
}

/// A Slice along one axis with constant bounds and step 1, in elements from the front.
struct axis_slice {
  value_id source;
  std::size_t axis;
  std::int64_t begin;
  std::int64_t end;
};

/// The Slice that makes a value, where its bounds are known numbers, it has one axis and its step is 1.
[[nodiscard]] inline std::optional<axis_slice> slice_of(const graph& g, value_id id, const op_info& slice_row) {
  const node* n = made_by(g, id, slice_row);
  if (n == nullptr || n->inputs.size() < 4 || !g.facts(n->inputs[0]).dims) return std::nullopt;
  const shape& dims = *g.facts(n->inputs[0]).dims;
  std::array<std::int64_t, 4> numbers{0, 0, 0, 1};
  for (const auto& [slot, in] : views::present_slots(n->inputs) | ranges::views::drop(1)) {
    const tensor& given = g.facts(in).constant;
    if (given.empty() || given.size() != 1) return std::nullopt;
    numbers[slot - 1] = integers_of(given).front();
  }
  if (numbers[3] != 1) return std::nullopt;
  const std::size_t axis = normalize_axis(numbers[2], dims.size());
  const auto extent = dims[axis].as_constant();
  if (!extent) return std::nullopt;
  const auto clamp = [&](std::int64_t at) { return std::clamp<std::int64_t>(at < 0 ? at + *extent : at, 0, *extent); };
  return axis_slice{n->inputs[0], axis, clamp(numbers[0]), clamp(numbers[1])};
}

}  // namespace dnnopt::rewriting

#endif  // DNNOPT_PASSES_REWRITING_EDIT_HPP
