// Owns the graph's invariants: what every pass may rely on and must leave behind.
#ifndef DNNOPT_PASSES_VERIFY_HPP
#define DNNOPT_PASSES_VERIFY_HPP

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <unordered_map>
#include <variant>
#include <vector>

#include <range/v3/action/push_back.hpp>
#include <range/v3/algorithm/none_of.hpp>

#include <dnnopt/error.hpp>
#include <dnnopt/graph.hpp>
#include <dnnopt/ops/op_info.hpp>
#include <dnnopt/passes/graph_views.hpp>
#include <dnnopt/shape.hpp>

namespace dnnopt {

namespace detail {

class verifier {
 public:
  verifier(const graph& g, std::string where) : graph_(g), where_(std::move(where)) {}

  void run() {
    check_values();
    for (const node_id id : graph_.nodes()) check_node(id);
    check_interface();
    check_names();
    try {
      (void)graph_.topological_order();
    } catch (const error& e) {
      throw error(errc::verification_failed, where_ + "rule 'acyclic': " + e.what());
    }
    check_plan();
  }

 private:
  [[noreturn]] void fail(const std::string& subject, std::string_view rule, const std::string& why) const {
    throw error(errc::verification_failed, where_ + subject + " breaks rule '" + std::string(rule) + "': " + why);
  }
  [[nodiscard]] std::string name_of_node(node_id id) const {
    const node& n = graph_.node_at(id);
    return "node '" + n.name + "' (" + (n.op == nullptr ? "?" : std::string(n.op->name)) + ", id " +
           std::to_string(id) + ")";
  }
  [[nodiscard]] std::string name_of_value(value_id id) const {
    return "value '" + graph_.value_at(id).name + "' (id " + std::to_string(id) + ")";
  }
  [[nodiscard]] bool in_range(value_id id) const { return id < graph_.value_count(); }
  [[nodiscard]] bool defined(value_id id) const {
    const value& v = graph_.value_at(id);
    return v.producer != no_node || v.facts.is_constant() || std::binary_search(inputs_.begin(), inputs_.end(), id);
  }

  static std::uint64_t order_key(node_id id, std::size_t slot) { return std::uint64_t{id} << 32 | slot; }

  void check_values() {
    uses_.resize(graph_.value_count());
    inputs_ = graph_.inputs();
    std::sort(inputs_.begin(), inputs_.end());
    for (value_id id = 0; id < graph_.value_count(); ++id) {
      const value& v = graph_.value_at(id);
      if (v.producer != no_node) {
        if (v.producer >= graph_.node_limit() || graph_.node_at(v.producer).removed)
          fail(name_of_value(id), "producers are live",
               "its producer " + std::to_string(v.producer) + " is removed or out of range");
        const auto& outputs = graph_.node_at(v.producer).outputs;
        if (v.output_index >= outputs.size() || outputs[v.output_index] != id)
          fail(name_of_value(id), "producers know their outputs", name_of_node(v.producer) + " does not list it");
        if (v.facts.is_constant())
          fail(name_of_value(id), "constants have no producer", "it has " + name_of_node(v.producer));
      }
      for (const value_use& use : v.uses)
        if (use.node >= graph_.node_limit() || graph_.node_at(use.node).removed ||
            use.slot >= graph_.node_at(use.node).inputs.size() || graph_.node_at(use.node).inputs[use.slot] != id)
          fail(name_of_value(id), "uses are readings",
               "input " + std::to_string(use.slot) + " of node " + std::to_string(use.node) + " does not read it");
      auto& keys = uses_[id];
      for (const value_use& use : v.uses) keys.push_back(order_key(use.node, use.slot));
      std::sort(keys.begin(), keys.end());
      if (std::adjacent_find(keys.begin(), keys.end()) != keys.end())
        fail(name_of_value(id), "uses are listed once", "one is listed twice");
      check_facts(id);
    }
  }

  void check_facts(value_id id) const {
    const value_facts& facts = graph_.facts(id);
    if (facts.dims)
      for (const index_expr& dim : *facts.dims) {
        if (dim.context() != nullptr && dim.context() != &graph_.expressions())
          fail(name_of_value(id), "one expression context", "dim " + to_string(dim) + " belongs to another context");
        if (dim.is_constant() && dim.constant() < 0)
          fail(name_of_value(id), "dims are not negative", "its shape is " + to_string(*facts.dims));
      }
    if (facts.is_constant()) {
      if (facts.constant.type() != facts.type)
        fail(name_of_value(id), "constants have their facts' type",
             "type " + std::string(name_of(facts.type)) + ", content " + std::string(name_of(facts.constant.type())));
      if (!facts.dims || *facts.dims != to_shape(facts.constant.dims()))
        fail(name_of_value(id), "constants have their facts' shape",
             "shape " + (facts.dims ? to_string(*facts.dims) : "unknown") + ", content " +
                 to_string(std::span<const std::int64_t>(facts.constant.dims())));
    }
    if (facts.elements && facts.dims && is_static(*facts.dims) &&
        element_count(*facts.dims) != index_expr(static_cast<std::int64_t>(facts.elements->size())))
      fail(name_of_value(id), "symbolic values fit their shape",
           std::to_string(facts.elements->size()) + " elements in shape " + to_string(*facts.dims));
  }

  void check_node(node_id id) const {
    const node& n = graph_.node_at(id);
    if (n.op == nullptr) fail(name_of_node(id), "nodes have an operator", "it has none");
    const auto count_fits = [&](const char* rule, std::size_t count, unsigned least, unsigned most) {
      if (count < least || count > most)
        fail(name_of_node(id), rule,
             std::to_string(count) + " where " + std::to_string(least) + " to " +
                 (most == variadic ? std::string("any number") : std::to_string(most)) + " are taken");
    };
    count_fits("input arity", n.formal_inputs(), n.op->arity.least_inputs, n.op->arity.most_inputs);
    count_fits("output arity", n.outputs.size(), n.op->arity.least_outputs, n.op->arity.most_outputs);
    std::size_t edges = 0;
    for (std::size_t slot = 0; slot < n.inputs.size(); ++slot) {
      const value_id read = n.inputs[slot];
      if (read == no_value) {
        if (slot >= n.captured_begin)
          fail(name_of_node(id), "captured values are present", "input " + std::to_string(slot) + " is absent");
        continue;
      }
      if (!in_range(read)) fail(name_of_node(id), "inputs exist", "input " + std::to_string(slot) + " is out of range");
      if (!defined(read))
        fail(name_of_node(id), "inputs are defined",
             "input " + std::to_string(slot) + ", " + name_of_value(read) +
                 ", has no producer, is no constant and no graph input");
      if (!std::binary_search(uses_[read].begin(), uses_[read].end(), order_key(id, slot)))
        fail(name_of_node(id), "readings are uses",
             name_of_value(read) + " does not list input " + std::to_string(slot));
      edges += static_cast<std::size_t>(graph_.value_at(read).producer != no_node);
    }
    if (boost::in_degree(id, graph_.dependence()) != edges)
      fail(
          name_of_node(id), "edges are readings of produced values",
          std::to_string(boost::in_degree(id, graph_.dependence())) + " edges, " + std::to_string(edges) + " readings");
    for (const auto& [slot, made] : views::present_slots(n.outputs))
      if (!in_range(made) || graph_.value_at(made).producer != id || graph_.value_at(made).output_index != slot)
        fail(name_of_node(id), "outputs know their producer", "output " + std::to_string(slot) + " does not");
    for (const auto& [key, held] : n.attributes)
      if (const auto* body = std::get_if<subgraph>(&held)) check_body(id, key, *body);
  }

  void check_body(node_id id, const std::string& key, const subgraph& body) const {
    const node& n = graph_.node_at(id);
    if (!body) fail(name_of_node(id), "bodies exist", "attribute '" + key + "' is null");
    if (&body->expressions() != &graph_.expressions())
      fail(name_of_node(id), "one expression context", "body '" + key + "' has another one");
    const std::size_t captured = n.inputs.size() - n.formal_inputs();
    if (body->inputs().size() < captured)
      fail(name_of_node(id), "bodies take the captured values",
           "body '" + key + "' has " + std::to_string(body->inputs().size()) + " inputs, " + std::to_string(captured) +
               " are captured");
    verifier(*body, where_ + name_of_node(id) + ", body '" + key + "': ").run();
  }

  void check_interface() const {
    for (std::size_t i = 1; i < inputs_.size(); ++i)
      if (inputs_[i] == inputs_[i - 1]) fail(name_of_value(inputs_[i]), "inputs are listed once", "it is listed twice");
    for (const value_id id : inputs_) {
      if (!in_range(id)) fail("a graph input", "inputs exist", "id " + std::to_string(id) + " is out of range");
      if (graph_.value_at(id).producer != no_node)
        fail(name_of_value(id), "graph inputs have no producer",
             "it has " + name_of_node(graph_.value_at(id).producer));
      if (graph_.facts(id).is_constant()) fail(name_of_value(id), "graph inputs are not constant", "it is");
    }
    for (const value_id id : graph_.outputs()) {
      if (!in_range(id)) fail("a graph output", "outputs exist", "id " + std::to_string(id) + " is out of range");
      if (!defined(id)) fail(name_of_value(id), "graph outputs are defined", "nothing defines it");
    }
  }

  void check_names() const {
    std::unordered_map<std::string_view, value_id> seen;
    for (value_id id = 0; id < graph_.value_count(); ++id) {
      const value& v = graph_.value_at(id);
      if (v.producer == no_node && v.uses.empty() && !graph_.is_output(id) &&
          !std::binary_search(inputs_.begin(), inputs_.end(), id))
        continue;
      if (v.name.empty()) fail(name_of_value(id), "values have names", "its name is empty");
      if (const auto [at, added] = seen.emplace(v.name, id); !added)
        fail(name_of_value(id), "names are unique", "value " + std::to_string(at->second) + " has the same");
    }
  }

  /// Blocks of the fusion plan store what others read of them and can run one after another.
  void check_plan() const {
    const std::vector<fused_block>& blocks = graph_.blocks();
    if (blocks.empty()) return;
    // Units are blocks, and the nodes that are in none of them.
    std::vector<std::vector<node_id>> units;
    std::vector<std::size_t> stored_by(graph_.value_count(), no_unit);
    std::vector<bool> in_block(graph_.node_limit(), false);
    for (const fused_block& block : blocks) {
      for (const node_id id : block.members) {
        if (id >= graph_.node_limit() || graph_.node_at(id).removed)
          fail("a fused block", "members are live", "node " + std::to_string(id) + " is removed or out of range");
        in_block[id] = true;
      }
      for (const value_id out : block.outputs) {
        if (!in_range(out) ||
            std::find(block.members.begin(), block.members.end(), graph_.value_at(out).producer) == block.members.end())
          fail("a fused block", "blocks store what they compute", "value " + std::to_string(out) + " is not");
        if (stored_by[out] != no_unit) fail(name_of_value(out), "values are stored once", "two blocks store it");
        stored_by[out] = units.size();
      }
      units.push_back(block.members);
    }
    const std::vector<bool> wanted = wanted_values();
    for (const node_id id : graph_.nodes()) {
      if (in_block[id]) continue;
      const auto is_wanted = [&](value_id out) { return wanted[out]; };
      auto outputs = graph_.node_at(id).outputs | views::present;
      if (ranges::none_of(outputs, is_wanted)) continue;
      for (const value_id out : outputs) stored_by[out] = units.size();
      units.push_back({id});
    }
    check_order_of(units, stored_by);
  }

  /// By value, whether its elements are needed to run the plan: what only tells shapes is not.
  [[nodiscard]] std::vector<bool> wanted_values() const {
    std::vector<bool> wanted(graph_.value_count(), false);
    std::vector<value_id> work(graph_.outputs().begin(), graph_.outputs().end());
    for (const fused_block& block : graph_.blocks()) {
      work.insert(work.end(), block.outputs.begin(), block.outputs.end());
      for (const node_id id : block.members) ranges::push_back(work, graph_.node_at(id).inputs | views::present);
    }
    while (!work.empty()) {
      const value_id v = work.back();
      work.pop_back();
      if (wanted[v] || graph_.facts(v).elements) continue;
      wanted[v] = true;
      const node_id producer = graph_.value_at(v).producer;
      if (producer != no_node) ranges::push_back(work, graph_.node_at(producer).inputs | views::present);
    }
    return wanted;
  }

  void check_order_of(const std::vector<std::vector<node_id>>& units, const std::vector<std::size_t>& stored_by) const {
    std::vector<std::vector<std::size_t>> readers(units.size());
    std::vector<std::size_t> pending(units.size(), 0);
    for (std::size_t u = 0; u < units.size(); ++u)
      for (const node_id id : units[u])
        for (const value_id in : graph_.node_at(id).inputs) {
          // What propagation knows is written into the kernels.
          if (in == no_value || graph_.facts(in).elements) continue;
          const node_id producer = graph_.value_at(in).producer;
          if (producer == no_node || std::find(units[u].begin(), units[u].end(), producer) != units[u].end()) continue;
          if (stored_by[in] == no_unit)
            fail(name_of_value(in), "what another block reads is stored", name_of_node(id) + " reads it");
          readers[stored_by[in]].push_back(u);
          ++pending[u];
        }
    std::vector<std::size_t> ready;
    for (std::size_t u = 0; u < units.size(); ++u)
      if (pending[u] == 0) ready.push_back(u);
    std::size_t done = 0;
    while (!ready.empty()) {
      const std::size_t u = ready.back();
      ready.pop_back();
      ++done;
      for (const std::size_t to : readers[u])
        if (--pending[to] == 0) ready.push_back(to);
    }
    for (std::size_t u = 0; done != units.size() && u < units.size(); ++u)
      if (pending[u] != 0)
        fail("the block of " + name_of_node(units[u].back()), "blocks can run one after another",
             "it needs a block that needs it");
  }

  static constexpr std::size_t no_unit = std::numeric_limits<std::size_t>::max();
  const graph& graph_;
  std::string where_;
  std::vector<value_id> inputs_;
  std::vector<std::vector<std::uint64_t>> uses_;  // sorted, by value
};

}  // namespace detail

/// Checks every invariant of `g` and of the bodies in it: ids, producers, uses and edges agree; what is read is
/// defined; constants fit their facts; arities hold; names are unique; captured values match the bodies' inputs; no
/// cycle; blocks of the fusion plan can run one after another, each reading what earlier ones store. Errors:
/// verification_failed naming the node or value, the rule and, where given, the pass that ran before. O(V + E log E).
inline void verify(const graph& g, std::string_view pass = {}) {
  detail::verifier(g, pass.empty() ? std::string() : "after pass '" + std::string(pass) + "': ").run();
}

}  // namespace dnnopt

#endif  // DNNOPT_PASSES_VERIFY_HPP
