// Owns the bodies of <dnnopt/graph.hpp>: edits that keep values, uses and Boost.Graph's edges in step.
#ifndef DNNOPT_DETAIL_GRAPH_BODIES_HPP
#define DNNOPT_DETAIL_GRAPH_BODIES_HPP

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <numeric>
#include <optional>
#include <queue>
#include <string>
#include <utility>
#include <vector>

#include <boost/graph/adjacency_list.hpp>

#include <dnnopt/error.hpp>
#include <dnnopt/expr_symbols.hpp>
#include <dnnopt/graph.hpp>

namespace dnnopt {

DNNOPT_BODY graph::graph() : expressions_(std::make_shared<expr_context>()) {}

DNNOPT_BODY graph::graph(std::shared_ptr<expr_context> expressions) : expressions_(std::move(expressions)) {}
DNNOPT_BODY graph::graph(const graph& other) = default;
DNNOPT_BODY graph::graph(graph&& other) = default;
DNNOPT_BODY graph& graph::operator=(const graph& other) = default;
DNNOPT_BODY graph& graph::operator=(graph&& other) = default;
DNNOPT_BODY graph::~graph() = default;

DNNOPT_BODY value_id graph::add_value(std::string value_name, dtype type, std::optional<shape> dims) {
  value v;
  v.name = std::move(value_name);
  v.facts.type = type;
  v.facts.dims = std::move(dims);
  values_.push_back(std::move(v));
  return static_cast<value_id>(values_.size() - 1);
}

DNNOPT_BODY value_id graph::add_constant(std::string value_name, tensor content) {
  const value_id id = add_value(std::move(value_name));
  make_constant(id, std::move(content));
  return id;
}

DNNOPT_BODY value_id graph::add_input(std::string value_name, dtype type, std::optional<shape> dims) {
  const value_id id = add_value(std::move(value_name), type, std::move(dims));
  inputs_.push_back(id);
  return id;
}

DNNOPT_BODY void graph::add_output(value_id id) {
  outputs_.push_back(check(id));
  // A plan holds what blocks store, which a new output inside one is not part of.
  blocks_.clear();
}

DNNOPT_BODY void graph::make_constant(value_id id, tensor content) {
  value& v = values_[check(id)];
  if (v.producer != no_node) throw error(errc::invalid_argument, "value '" + v.name + "' has a producer");
  v.facts.kind = value_kind::tensor;
  v.facts.type = content.type();
  v.facts.dims = to_shape(content.dims());
  v.facts.elements.reset();
  v.facts.constant = std::move(content);
}

DNNOPT_BODY void graph::rename_value(value_id id, std::string new_name) {
  values_[check(id)].name = std::move(new_name);
}

DNNOPT_BODY void graph::set_inputs(std::vector<value_id> ids) { inputs_ = std::move(ids); }

DNNOPT_BODY void graph::set_outputs(std::vector<value_id> ids) {
  outputs_ = std::move(ids);
  blocks_.clear();
}

DNNOPT_BODY bool graph::is_input(value_id id) const {
  return std::find(inputs_.begin(), inputs_.end(), id) != inputs_.end();
}

DNNOPT_BODY bool graph::is_output(value_id id) const {
  return std::find(outputs_.begin(), outputs_.end(), id) != outputs_.end();
}

DNNOPT_BODY node_id graph::add_node(const op_info& op, std::string node_name, std::vector<value_id> inputs,
                                    std::vector<value_id> outputs, attribute_map attributes) {
  forget_plans();
  const auto id = static_cast<node_id>(nodes_.size());
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (outputs[i] == no_value) continue;
    value& v = values_[check(outputs[i])];
    if (v.producer != no_node || v.facts.is_constant())
      throw error(errc::duplicate_name, "value '" + v.name + "' is produced twice");
    v.producer = id;
    v.output_index = static_cast<std::uint32_t>(i);
  }
  node n;
  n.op = &op;
  n.name = std::move(node_name);
  n.outputs = std::move(outputs);
  n.attributes = std::move(attributes);
  nodes_.push_back(std::move(n));
  boost::add_vertex(dependence_);
  set_node_inputs(id, std::move(inputs));
  for (const value_id out : nodes_[id].outputs)
    if (out != no_value)
      for (const value_use& use : values_[out].uses)
        if (use.node != id) boost::add_edge(id, use.node, edge_property{out, use.slot}, dependence_);
  return id;
}

DNNOPT_BODY void graph::set_node_inputs(node_id id, std::vector<value_id> inputs) {
  drop_uses(id);
  node& n = nodes_.at(id);
  n.inputs = std::move(inputs);
  for (std::size_t slot = 0; slot < n.inputs.size(); ++slot) add_use(id, static_cast<std::uint32_t>(slot));
}

DNNOPT_BODY void graph::set_node_input(node_id id, std::size_t slot, value_id read) {
  drop_use(id, static_cast<std::uint32_t>(slot));
  nodes_.at(id).inputs.at(slot) = read;
  add_use(id, static_cast<std::uint32_t>(slot));
}

DNNOPT_BODY void graph::replace_uses(value_id from, value_id to) {
  const std::vector<value_use> uses = values_[check(from)].uses;
  for (const value_use& use : uses) set_node_input(use.node, use.slot, to);
  std::replace(outputs_.begin(), outputs_.end(), from, to);
}

DNNOPT_BODY void graph::remove_node(node_id id) {
  node& n = nodes_.at(id);
  if (n.removed) return;
  forget_plans();
  drop_uses(id);
  for (const value_id out : n.outputs) {
    if (out == no_value) continue;
    values_[out].producer = no_node;
    values_[out].facts.elements.reset();
  }
  boost::clear_vertex(id, dependence_);
  n.inputs.clear();
  n.outputs.clear();
  n.removed = true;
  ++removed_;
}

DNNOPT_BODY void graph::set_node_op(node_id id, const op_info& op, attribute_map attributes) {
  blocks_.clear();
  nodes_.at(id).op = &op;
  nodes_.at(id).attributes = std::move(attributes);
}

DNNOPT_BODY void graph::move_output(value_id id, value_id replacement) {
  value& from = values_[check(id)];
  if (from.producer == no_node) throw error(errc::invalid_argument, "value '" + from.name + "' has no producer");
  const node_id producer = from.producer;
  const std::uint32_t index = from.output_index;
  nodes_[producer].outputs[index] = replacement;
  from.producer = no_node;
  values_[check(replacement)].producer = producer;
  values_[replacement].output_index = index;
  rebuild_edges_of(producer);
}

DNNOPT_BODY void graph::set_blocks(std::vector<fused_block> plan) { blocks_ = std::move(plan); }

DNNOPT_BODY void graph::rename_node(node_id id, std::string new_name) { nodes_.at(id).name = std::move(new_name); }

DNNOPT_BODY std::vector<node_id> graph::nodes() const {
  std::vector<node_id> ids;
  ids.reserve(node_count());
  for (node_id id = 0; id < nodes_.size(); ++id)
    if (!nodes_[id].removed) ids.push_back(id);
  return ids;
}

DNNOPT_BODY std::vector<node_id> graph::topological_order() const {
  if (order_) return *order_;
  // Nodes are visited in the order of their memory, and the edges gathered beside them: of a large graph a walk from
  // node to node would wait for memory at every step.
  struct edge {
    node_id from;
    node_id to;
  };
  std::vector<edge> edges;
  edges.reserve(boost::num_edges(dependence_));
  bool ascending = true;
  for (node_id id = 0; id < nodes_.size(); ++id)
    for (const value_id read : nodes_[id].inputs) {
      if (read == no_value || values_[read].producer == no_node) continue;
      edges.push_back({values_[read].producer, id});
      ascending = ascending && edges.back().from < id;
    }
  if (ascending) return nodes();
  std::vector<std::uint32_t> pending(nodes_.size(), 0);
  std::vector<std::uint32_t> first(nodes_.size() + 1, 0);  // where a node's readers begin
  for (const edge& e : edges) ++pending[e.to], ++first[e.from + 1];
  std::partial_sum(first.begin(), first.end(), first.begin());
  std::vector<node_id> readers(edges.size());
  std::vector<std::uint32_t> next(first.begin(), first.end() - 1);
  for (const edge& e : edges) readers[next[e.from]++] = e.to;

  std::priority_queue<node_id, std::vector<node_id>, std::greater<>> ready;
  for (node_id id = 0; id < nodes_.size(); ++id)
    if (!nodes_[id].removed && pending[id] == 0) ready.push(id);
  std::vector<node_id> order;
  order.reserve(node_count());
  while (!ready.empty()) {
    const node_id id = ready.top();
    ready.pop();
    order.push_back(id);
    for (std::uint32_t at = first[id]; at < first[id + 1]; ++at)
      if (--pending[readers[at]] == 0) ready.push(readers[at]);
  }
  if (order.size() != node_count())
    for (node_id id = 0; id < nodes_.size(); ++id)
      if (!nodes_[id].removed && pending[id] != 0)
        throw error(errc::graph_cycle,
                    "node '" + nodes_[id].name + "' (" + std::string(nodes_[id].op->name) + ") depends on itself");
  return order;
}

DNNOPT_BODY std::vector<node_id> graph::topological_order() {
  if (!order_) order_ = std::as_const(*this).topological_order();
  return *order_;
}

DNNOPT_BODY void graph::compact() {
  graph packed(expressions_);
  packed.name = std::move(name);
  packed.opsets = std::move(opsets);
  packed.metadata = std::move(metadata);
  packed.producer_name = std::move(producer_name);
  std::vector<value_id> moved(values_.size(), no_value);
  const auto keep = [&](value_id id) {
    if (id == no_value) return no_value;
    if (moved[id] == no_value) {
      moved[id] = packed.add_value(std::move(values_[id].name));
      packed.values_.back().facts = std::move(values_[id].facts);
    }
    return moved[id];
  };
  for (const value_id id : inputs_) packed.inputs_.push_back(keep(id));
  std::vector<node_id> moved_nodes(nodes_.size(), no_node);
  for (node_id id = 0; id < nodes_.size(); ++id) {
    node& n = nodes_[id];
    if (n.removed) continue;
    for (value_id& v : n.inputs) v = keep(v);
    for (value_id& v : n.outputs) v = keep(v);
    const node_id made =
        packed.add_node(*n.op, std::move(n.name), std::move(n.inputs), std::move(n.outputs), std::move(n.attributes));
    packed.nodes_[made].captured_begin = n.captured_begin;
    moved_nodes[id] = made;
  }
  for (const value_id id : outputs_) packed.outputs_.push_back(keep(id));
  for (fused_block& block : blocks_) {
    for (node_id& id : block.members) id = moved_nodes[id];
    for (node_id& id : block.before) id = moved_nodes[id];
    for (node_id& id : block.after) id = moved_nodes[id];
    for (value_id& id : block.outputs) id = moved[id];
    if (block.anchor != no_node) block.anchor = moved_nodes[block.anchor];
  }
  packed.blocks_ = std::move(blocks_);
  packed.guards_ = std::move(guards_);
  *this = std::move(packed);
}

DNNOPT_BODY void graph::learn_dims(value_id id, const shape& known) {
  const value& v = value_at(id);
  if (guards_.empty() || !v.facts.dims || v.facts.dims->size() != known.size()) return;
  if (v.producer == no_node || node_at(v.producer).outputs[0] == no_value) return;
  const std::string& scope = value_at(node_at(v.producer).outputs[0]).name;
  for (std::size_t k = 0; k < known.size(); ++k) {
    const index_expr before = (*v.facts.dims)[k];
    if (before == known[k] || !before.as_symbol()) continue;
    if (!before.context()->is_data_dim(before, scope, v.output_index, k)) continue;
    const auto told = [&](const index_expr& symbol) { return symbol == before ? known[k] : symbol; };
    std::erase_if(guards_, [&](guard& one) {
      const std::uint32_t symbol = *before.as_symbol();
      if (!symbols_of(one.left).contains(symbol) && !symbols_of(one.right).contains(symbol)) return false;
      one.left = substitute(one.left, told);
      one.right = substitute(one.right, told);
      return guard::proved(one.relation, one.left, one.right) == true;
    });
  }
}

DNNOPT_BODY void graph::add_use(node_id id, std::uint32_t slot) {
  forget_plans();
  const value_id read = nodes_[id].inputs[slot];
  if (read == no_value) return;
  values_[check(read)].uses.push_back({id, slot});
  if (values_[read].producer != no_node)
    boost::add_edge(values_[read].producer, id, edge_property{read, slot}, dependence_);
}

DNNOPT_BODY void graph::drop_use(node_id id, std::uint32_t slot) {
  const value_id read = nodes_[id].inputs[slot];
  if (read == no_value) return;
  forget_plans();
  auto& uses = values_[read].uses;
  const auto found = std::find(uses.begin(), uses.end(), value_use{id, slot});
  if (found != uses.end()) {
    *found = uses.back();
    uses.pop_back();
  }
  boost::remove_in_edge_if(
      id, [&](const auto& edge) { return dependence_[edge].slot == slot; }, dependence_);
}

DNNOPT_BODY void graph::drop_uses(node_id id) {
  for (std::size_t slot = 0; slot < nodes_[id].inputs.size(); ++slot) drop_use(id, static_cast<std::uint32_t>(slot));
}

DNNOPT_BODY void graph::rebuild_edges_of(node_id producer) {
  forget_plans();
  boost::clear_out_edges(producer, dependence_);
  for (const value_id out : nodes_[producer].outputs)
    if (out != no_value)
      for (const value_use& use : values_[out].uses)
        boost::add_edge(producer, use.node, edge_property{out, use.slot}, dependence_);
}

DNNOPT_BODY void graph::forget_plans() noexcept {
  blocks_.clear();
  order_.reset();
}

DNNOPT_BODY void graph::refuse(value_id id) {
  throw error(errc::invalid_argument, "value id " + std::to_string(id) + " is out of range");
}

DNNOPT_BODY facts_of_node::facts_of_node(const graph& g, node_id id) {
  const node& n = g.node_at(id);
  pointers_.reserve(n.inputs.size());
  for (const value_id v : n.inputs) pointers_.push_back(v == no_value ? nullptr : &g.facts(v));
  facts_.attributes = &n.attributes;
  facts_.inputs = pointers_;
  facts_.output_count = n.outputs.size();
  facts_.expressions = &g.expressions();
  facts_.scope = !n.outputs.empty() && n.outputs[0] != no_value ? g.value_at(n.outputs[0]).name : n.name;
}

}  // namespace dnnopt

#endif  // DNNOPT_DETAIL_GRAPH_BODIES_HPP
