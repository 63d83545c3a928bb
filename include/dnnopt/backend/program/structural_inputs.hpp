// Owns the question which of a graph's inputs would let more of it run on the device, were their values known.
#ifndef DNNOPT_BACKEND_PROGRAM_STRUCTURAL_INPUTS_HPP
#define DNNOPT_BACKEND_PROGRAM_STRUCTURAL_INPUTS_HPP

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <dnnopt/backend/program/program.hpp>
#include <dnnopt/graph.hpp>
#include <dnnopt/passes/graph_views.hpp>

namespace dnnopt {

/// A graph input of more elements is data, never structure.
inline constexpr std::int64_t largest_structural_input = 64;

namespace detail {

/// Finds the graph inputs that a value is computed from. O(nodes) for each value asked for.
class input_search {
 public:
  explicit input_search(const graph& g) : g_(g) {}

  /// The inputs (by id) whose values decide that of `v`; nothing where one of them is too large to be structure, or
  /// where chance decides.
  [[nodiscard]] std::optional<std::set<value_id>> inputs_of(value_id v) {
    std::set<value_id> found;
    std::set<value_id> seen;
    std::vector<value_id> open{v};
    while (!open.empty()) {
      const value_id at = open.back();
      open.pop_back();
      if (at == no_value || !seen.insert(at).second) continue;
      const value_facts& facts = g_.facts(at);
      // What is known of dims needs no input's value.
      if (facts.is_constant() || facts.elements) continue;
      const node_id producer = g_.value_at(at).producer;
      if (producer == no_node) {
        if (!is_small(facts) || !g_.is_input(at)) return std::nullopt;
        found.insert(at);
        continue;
      }
      const node& n = g_.node_at(producer);
      if (n.op->random) return std::nullopt;
      open.insert(open.end(), n.inputs.begin(), n.inputs.end());
    }
    return found;
  }

 private:
  [[nodiscard]] static bool is_small(const value_facts& facts) {
    if (facts.kind != value_kind::tensor || !facts.dims || facts.type == dtype::string) return false;
    const auto dims = static_dims(*facts.dims);
    return dims && element_count(*dims) <= largest_structural_input;
  }

  const graph& g_;
};

}  // namespace detail

/// The names of the graph inputs that decide the structure (op_info::structural_inputs) of nodes which `wanted(id)`
/// names, in the order of the graph's inputs. Precondition: rdp has run.
template <class Wanted>
[[nodiscard]] std::vector<std::string> structural_inputs_of(const graph& g, Wanted&& wanted) {
  detail::input_search search(g);
  std::set<value_id> found;
  for (const node_id id : g.nodes()) {
    const node& n = g.node_at(id);
    if (n.op->structural_inputs.empty() || !wanted(id)) continue;
    for (std::size_t i = 0; i < n.formal_inputs(); ++i)
      if (n.op->structural_inputs.contains(i) && n.inputs[i] != no_value)
        if (const auto inputs = search.inputs_of(n.inputs[i])) found.insert(inputs->begin(), inputs->end());
  }
  std::vector<std::string> names;
  for (const value_id in : g.inputs())
    if (found.contains(in)) names.push_back(g.value_at(in).name);
  return names;
}

/// Those of a program's nodes that fell back to the host.
[[nodiscard]] inline std::vector<std::string> structural_inputs_of_fallbacks(const program& p) {
  std::set<node_id> on_host;
  for (const placed_node& step : p.steps)
    if (step.where == placement::host) on_host.insert(step.members.begin(), step.members.end());
  return structural_inputs_of(*p.g, [&](node_id id) { return on_host.contains(id); });
}

}  // namespace dnnopt

#endif  // DNNOPT_BACKEND_PROGRAM_STRUCTURAL_INPUTS_HPP
