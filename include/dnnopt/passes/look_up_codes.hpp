// Owns the replacement of functions of one code by tables of what they give.
#ifndef DNNOPT_PASSES_LOOK_UP_CODES_HPP
#define DNNOPT_PASSES_LOOK_UP_CODES_HPP

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dnnopt/graph.hpp>
#include <dnnopt/ops/look_up.hpp>
#include <dnnopt/passes/fusion/roles.hpp>
#include <dnnopt/passes/pass.hpp>
#include <dnnopt/passes/remove_dead.hpp>
#include <dnnopt/passes/rewriting/edit.hpp>

namespace dnnopt {

/// Before: y = QuantizeLinear(f(DequantizeLinear(x))) with codes x and y of one byte, where f is made of element-wise
/// operators, pairs of QuantizeLinear and DequantizeLinear among them, and of x and constants of one element alone.
/// After:  y = LookUp(x, table), the table evaluated for all 256 codes by the reference backend.
/// Conditions: f costs more than looking up does, which is stated, for processors compute f by vectors and look up one
/// by one; scales and zero points are one constant each; y has the dims of x. Codes are those of the reference backend.
/// Source: TensorFlow Lite's kernels for quantized activations. O(V + E) and 256 evaluations of each operator.
struct look_up_codes {
  static constexpr std::string_view name = "look_up_codes";
  node_evaluator evaluate = nullptr;  ///< null: nothing is looked up
  int least_cost = 24;                ///< of f for an element, next to an addition

  pass_result run(graph& g) const {
    pass_result result;
    if (evaluate == nullptr) return result;
    std::map<value_id, function_of_code> known;
    const std::vector<node_id> order = g.topological_order();
    for (const node_id id : order) {
      const node& n = g.node_at(id);
      if (!n.op->quantizes || !is_byte(g.facts(n.outputs[0]).type)) continue;
      if (std::optional<function_of_code> f = function_at(g, id, known)) known.emplace(n.outputs[0], std::move(*f));
    }
    for (const node_id id : order) {
      const value_id out = g.node_at(id).outputs.empty() ? no_value : g.node_at(id).outputs[0];
      const auto found = known.find(out);
      if (found == known.end() || found->second.cost < least_cost) continue;
      const std::string node_name = g.node_at(id).name;
      g.remove_node(id);
      const value_id table = g.add_constant(rewriting::fresh_value_name(g, node_name), found->second.table);
      g.add_node(op_row<ops::look_up_op>, node_name, {found->second.code, table}, {out});
      ++result.edits;
    }
    if (result.edits != 0) (void)remove_dead{}.run(g);
    return result;
  }

 private:
  /// What a value of codes is made of.
  struct function_of_code {
    value_id code = no_value;
    tensor table;  ///< of 256 elements, by the bits of the code
    int cost = 0;
  };
  static constexpr std::size_t most_nodes = 64;
  /// A division and what rounds, next to an addition.
  static constexpr int quantizing_cost = 8;

  static bool is_number(const value_facts& facts) { return facts.is_constant() && facts.constant.size() == 1; }
  static tensor all_codes(dtype type) {
    tensor made(type, {ops::look_up_op::table_size});
    std::uint8_t next = 0;
    for (std::byte& code : made.mutable_bytes()) code = static_cast<std::byte>(next++);
    return made;
  }

  /// The function that node `id`, which quantizes, computes of one value of codes; nothing where it does not.
  std::optional<function_of_code> function_at(const graph& g, node_id id,
                                              const std::map<value_id, function_of_code>& known) const {
    function_of_code f;
    std::set<node_id> members;
    if (!collect(g, id, known, members, f) || f.code == no_value) return std::nullopt;
    const auto& from = g.facts(f.code).dims;
    const auto& to = g.facts(g.node_at(id).outputs[0]).dims;
    if (!from || !to || !(*from == *to)) return std::nullopt;
    std::map<value_id, tensor> values;
    values[f.code] = all_codes(g.facts(f.code).type);
    const auto value_of = [&](value_id v) -> tensor {
      if (v == no_value) return {};
      if (is_number(g.facts(v))) return g.facts(v).constant.reshaped({});
      const auto made = known.find(v);
      if (made != known.end() && !values.contains(v)) return made->second.table;
      return values.at(v);
    };
    try {
      compute(g, id, members, values, value_of);
    } catch (const error&) {
      // An operator that wants other ranks than those of a table and of single numbers is left as it is.
      return std::nullopt;
    }
    f.table = values.at(g.node_at(id).outputs[0]);
    if (f.table.size() != ops::look_up_op::table_size) return std::nullopt;
    return f;
  }

  /// Members that make the inputs of node `id`, and the codes that they begin with.
  bool collect(const graph& g, node_id id, const std::map<value_id, function_of_code>& known,
               std::set<node_id>& members, function_of_code& f) const {
    if (!members.insert(id).second) return true;
    const node& n = g.node_at(id);
    if (members.size() > most_nodes || n.outputs.size() != 1 || n.op->random) return false;
    f.cost += n.op->quantizes ? quantizing_cost : fusion::element_cost(*n.op);
    const bool begins = n.op->dequantizes;
    for (std::size_t i = 0; i < n.inputs.size(); ++i) {
      const value_id in = n.inputs[i];
      if (in == no_value || is_number(g.facts(in))) continue;
      if (begins) {
        if (i != 0 || !is_byte(g.facts(in).type) || g.facts(in).is_constant()) return false;
        const auto made = known.find(in);
        const value_id code = made == known.end() ? in : made->second.code;
        if (f.code != no_value && f.code != code) return false;
        f.code = code;
        if (made != known.end()) f.cost += made->second.cost;
        continue;
      }
      const node_id producer = g.value_at(in).producer;
      if (producer == no_node) return false;
      const op_info& op = *g.node_at(producer).op;
      if (op.kind != computation_kind::element_wise || op.quantizes || !collect(g, producer, known, members, f))
        return false;
    }
    return true;
  }

  template <class ValueOf>
  void compute(const graph& g, node_id id, const std::set<node_id>& members, std::map<value_id, tensor>& values,
               const ValueOf& value_of) const {
    const node& n = g.node_at(id);
    if (values.contains(n.outputs[0])) return;
    for (const value_id in : n.inputs)
      if (in != no_value && !is_number(g.facts(in)) && !n.op->dequantizes)
        compute(g, g.value_at(in).producer, members, values, value_of);
    std::vector<tensor> inputs;
    for (const value_id in : n.inputs) inputs.push_back(value_of(in));
    values[n.outputs[0]] = evaluate(g, id, inputs).at(0);
  }
};

static_assert(Pass<look_up_codes>);

}  // namespace dnnopt

#endif  // DNNOPT_PASSES_LOOK_UP_CODES_HPP
