// Owns what each node can be in a fused block, by its traits: anchor, element expression, index map, or nothing.
#ifndef DNNOPT_PASSES_FUSION_ROLES_HPP
#define DNNOPT_PASSES_FUSION_ROLES_HPP

#include <array>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string_view>
#include <unordered_map>
#include <variant>
#include <vector>

#include <range/v3/algorithm/all_of.hpp>
#include <range/v3/range/primitives.hpp>

#include <dnnopt/expr_symbols.hpp>
#include <dnnopt/graph.hpp>
#include <dnnopt/passes/graph_views.hpp>

namespace dnnopt::fusion {

/// What a node can be in a block.
enum class role : std::uint8_t {
  alone,    ///< joins nothing: sizes that only data tell, control flow, sequences, several outputs of an element kind
  known,    ///< never runs: its outputs are expressions of dims
  view,     ///< an index map: belongs to whoever reads it
  element,  ///< one expression per output element
  anchor,   ///< needs a frame of its own
};

/// What calls of OpenCL's functions in a scalar expression cost next to an addition.
struct function_cost {
  std::string_view name;
  int cost;
};
inline constexpr std::array function_costs{
    function_cost{"erf(", 16},  function_cost{"tanh(", 16}, function_cost{"exp(", 8},   function_cost{"log(", 8},
    function_cost{"pow(", 24},  function_cost{"sin(", 12},  function_cost{"cos(", 12},  function_cost{"sqrt(", 4},
    function_cost{"log1p(", 8}, function_cost{"expm1(", 8}, function_cost{"tan(", 16},  function_cost{"atan", 16},
    function_cost{"asin", 16},  function_cost{"acos", 16},  function_cost{"sinh(", 12}, function_cost{"cosh(", 12},
};

/// The cost of one element of a node next to an addition: what its scalar expression calls, 4 for a read through an
/// index tensor, 1 otherwise.
[[nodiscard]] inline int element_cost(const op_info& op) {
  if (op.element_cost != 0) return op.element_cost;
  if (op.kind == computation_kind::indexed_read) return 4;
  int cost = 1;
  for (const function_cost& row : function_costs)
    if (op.scalar.find(row.name) != std::string_view::npos) cost += row.cost;
  // Expressions that name a function of dnnopt's own prelude hold such calls inside.
  if (op.scalar.find("dnnopt_") != std::string_view::npos) cost += 8;
  return cost;
}

/// The symbols in the dims of a value.
[[nodiscard]] inline std::set<std::uint32_t> symbols_of(const value_facts& facts) {
  std::set<std::uint32_t> symbols;
  if (facts.dims)
    for (const index_expr& dim : *facts.dims) collect_symbols(dim, symbols);
  return symbols;
}

/// The symbols in the dims and elements of a value.
[[nodiscard]] inline std::set<std::uint32_t> symbols_given_by(const value_facts& facts) {
  std::set<std::uint32_t> symbols = symbols_of(facts);
  if (facts.elements)
    for (const index_expr& e : *facts.elements) collect_symbols(e, symbols);
  return symbols;
}

/// Symbols that no graph input tells (by its dims, or by elements that a body of control flow is given as expressions),
/// each with the node that first has it in an output's dims: its value is known when that node has run (SoD2's
/// execution determined output). Precondition: rdp has run. O(V + E).
[[nodiscard]] inline std::unordered_map<std::uint32_t, node_id> late_symbols(const graph& g,
                                                                             const std::vector<node_id>& order) {
  std::unordered_map<std::uint32_t, node_id> late;
  std::set<std::uint32_t> bound;
  for (const value_id in : g.inputs()) bound.merge(symbols_given_by(g.facts(in)));
  for (const node_id id : order)
    for (const value_facts& facts : g.node_at(id).outputs | views::present | views::facts_in(g))
      for (const std::uint32_t symbol : symbols_of(facts))
        if (bound.insert(symbol).second) late.emplace(symbol, id);
  return late;
}

/// For each node (by id), whether it is one of those.
[[nodiscard]] inline std::vector<bool> bringers_of_symbols(const graph& g,
                                                           const std::unordered_map<std::uint32_t, node_id>& late) {
  std::vector<bool> brings(g.node_limit(), false);
  for (const auto& [symbol, id] : late) brings[id] = true;
  return brings;
}

/// For each value (by id), the nodes that tell a late symbol of its dims or elements, in order of ids; no entries where
/// no symbol is late. Precondition: rdp has run. O(V + E) expressions, each looked through once.
[[nodiscard]] inline std::vector<std::vector<node_id>> size_tellers(
    const graph& g, const std::unordered_map<std::uint32_t, node_id>& late) {
  std::vector<std::vector<node_id>> tellers;
  if (late.empty()) return tellers;
  tellers.resize(g.value_count());
  for (value_id v = 0; v < g.value_count(); ++v) {
    std::set<node_id> of_value;
    for (const std::uint32_t symbol : symbols_given_by(g.facts(v)))
      if (const auto found = late.find(symbol); found != late.end()) of_value.insert(found->second);
    tellers[v].assign(of_value.begin(), of_value.end());
  }
  return tellers;
}

/// The nodes, `id` left out, that must have run before the sizes of a node's operands and results are known. `tellers`
/// as size_tellers gives them for the graph.
[[nodiscard]] inline std::set<node_id> size_sources(const graph& g, node_id id,
                                                    const std::vector<std::vector<node_id>>& tellers) {
  std::set<node_id> sources;
  if (tellers.empty()) return sources;
  const auto look = [&](value_id v) {
    if (v != no_value) sources.insert(tellers[v].begin(), tellers[v].end());
  };
  for (const value_id v : g.node_at(id).inputs) look(v);
  for (const value_id v : g.node_at(id).outputs) look(v);
  sources.erase(id);
  return sources;
}

/// Whether all wanted outputs of a node are expressions of dims, which are evaluated where they are read.
[[nodiscard]] inline bool is_known(const graph& g, node_id id) {
  auto outputs = g.node_at(id).outputs | views::present | views::facts_in(g);
  return !ranges::empty(outputs) &&
         ranges::all_of(outputs, [](const value_facts& facts) { return facts.elements.has_value(); });
}

/// The role of a node. Precondition: rdp has run.
[[nodiscard]] inline role role_of(const graph& g, node_id id, bool brings_symbols) {
  const node& n = g.node_at(id);
  if (is_known(g, id)) return role::known;
  if (brings_symbols || n.op->flow != flow_form::none || n.outputs.empty() || n.outputs[0] == no_value ||
      n.formal_inputs() != n.inputs.size())
    return role::alone;
  for (const auto& [name, held] : n.attributes)
    if (std::holds_alternative<subgraph>(held)) return role::alone;
  std::size_t wanted = 0;
  for (const value_facts& facts : n.outputs | views::present | views::facts_in(g)) {
    ++wanted;
    if (facts.kind != value_kind::tensor || !facts.dims || facts.type == dtype::string) return role::alone;
  }
  for (const value_facts& facts : n.inputs | views::present | views::facts_in(g))
    if (facts.kind != value_kind::tensor || !facts.dims) return role::alone;
  switch (n.op->kind) {
    case computation_kind::view:
      return n.op->view == nullptr ? role::alone : role::view;
    case computation_kind::indexed_read: {
      // Indices that are constant make it an index map.
      bool constant = n.op->view != nullptr && n.inputs.size() > 1;
      for (std::size_t i = 1; i < n.inputs.size(); ++i)
        constant = constant && n.inputs[i] != no_value && g.facts(n.inputs[i]).is_constant();
      return wanted != 1 ? role::alone : constant ? role::view : role::element;
    }
    case computation_kind::element_wise:
    case computation_kind::generator:
      return wanted != 1 || n.op->random ? role::alone : role::element;
    case computation_kind::shape_query:
      return role::alone;
    default:
      if (n.op->element_cost != 0 && wanted == 1) return role::element;
      return n.op->random ? role::alone : role::anchor;
  }
}

}  // namespace dnnopt::fusion

#endif  // DNNOPT_PASSES_FUSION_ROLES_HPP
