// Owns the graph: operators as vertices of a Boost.Graph adjacency list, named values with ordered inputs and outputs.
#ifndef DNNOPT_GRAPH_HPP
#define DNNOPT_GRAPH_HPP

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <queue>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <boost/graph/adjacency_list.hpp>

#include <dnnopt/attribute.hpp>
#include <dnnopt/error.hpp>
#include <dnnopt/index_expr.hpp>
#include <dnnopt/ops/op_info.hpp>
#include <dnnopt/shape.hpp>

namespace dnnopt {

using node_id = std::uint32_t;
using value_id = std::uint32_t;
/// Stands for no node: the producer of graph inputs and constants.
inline constexpr node_id no_node = std::numeric_limits<node_id>::max();
/// Stands for an absent optional input or output.
inline constexpr value_id no_value = std::numeric_limits<value_id>::max();

/// One reading of a value: input `slot` of `node`.
struct value_use {
  node_id node;
  std::uint32_t slot;
  friend bool operator==(const value_use&, const value_use&) = default;
};

/// A named tensor (or container) of the graph: a graph input, a constant, or an output of a node.
struct value {
  std::string name;
  value_facts facts;
  node_id producer = no_node;
  std::uint32_t output_index = 0;  ///< which output of the producer
  std::vector<value_use> uses;     ///< readings by live nodes, in no particular order
};

/// An operator of the graph.
///
/// Operators with subgraphs (If, Loop, Scan, fused blocks) read outer values only through their inputs: the inputs from
/// `captured_begin` on are outer values that the bodies capture, and every body takes them as its last graph inputs, in
/// the same order, after its formal ones.
struct node {
  const op_info* op = nullptr;
  std::string name;
  std::vector<value_id> inputs;   ///< no_value where an optional input is absent
  std::vector<value_id> outputs;  ///< no_value where an optional output is not wanted
  attribute_map attributes;
  std::uint32_t captured_begin = std::numeric_limits<std::uint32_t>::max();
  bool removed = false;

  /// The number of inputs that the operator itself defines (without captured outer values).
  [[nodiscard]] std::size_t formal_inputs() const noexcept {
    return std::min<std::size_t>(inputs.size(), captured_begin);
  }
};

/// Nodes that run as one: the unit of DNNFusion's fusion plan. A node may be a member of several blocks, each of which
/// computes it for itself (views that are only index maps).
struct fused_block {
  std::vector<node_id> members;   ///< in topological order
  std::vector<value_id> outputs;  ///< values of members that are stored, for other blocks or as graph outputs
  node_id anchor = no_node;       ///< the member that element-wise operators and views surround; no_node: none
  std::vector<node_id> before;  ///< members that could be a block of their own before the rest, where a device needs it
  std::vector<node_id> after;   ///< the same behind the rest
  std::vector<std::string> why_not;  ///< what does not join it, and why
};

/// A value read along an edge, kept on Boost.Graph's edges.
struct edge_property {
  value_id read = no_value;
  std::uint32_t slot = 0;
};

/// The dependence graph that Boost.Graph's algorithms see: vertices are node_ids (removed ones stay as isolated
/// vertices).
using dependence_graph =
    boost::adjacency_list<boost::vecS, boost::vecS, boost::bidirectionalS, boost::no_property, edge_property>;

/// A model's graph. A value type: copies are independent, but share constants, subgraphs and the expression context.
///
/// Ids are stable until `compact`. Removed nodes stay in the numbering, are skipped by `nodes()`, and have no edges.
class graph {
 public:
  graph() : expressions_(std::make_shared<expr_context>()) {}
  /// A graph whose expressions share a context with another graph (subgraphs, bodies of blocks).
  explicit graph(std::shared_ptr<expr_context> expressions) : expressions_(std::move(expressions)) {}

  std::string name;
  std::map<std::string, std::int64_t> opsets;  ///< opset version by domain ("" is ai.onnx)
  std::map<std::string, std::string> metadata;
  std::string producer_name;

  [[nodiscard]] expr_context& expressions() const noexcept { return *expressions_; }
  [[nodiscard]] const std::shared_ptr<expr_context>& shared_expressions() const noexcept { return expressions_; }

  // --- values ---

  /// A new value without producer. Names need not be unique here; the importer and the verifier see to it.
  value_id add_value(std::string value_name, dtype type = dtype::undefined, std::optional<shape> dims = std::nullopt) {
    value v;
    v.name = std::move(value_name);
    v.facts.type = type;
    v.facts.dims = std::move(dims);
    values_.push_back(std::move(v));
    return static_cast<value_id>(values_.size() - 1);
  }
  /// A new constant.
  value_id add_constant(std::string value_name, tensor content) {
    const value_id id = add_value(std::move(value_name));
    make_constant(id, std::move(content));
    return id;
  }
  /// A new graph input, appended to inputs().
  value_id add_input(std::string value_name, dtype type, std::optional<shape> dims) {
    const value_id id = add_value(std::move(value_name), type, std::move(dims));
    inputs_.push_back(id);
    return id;
  }
  /// Declares a value a graph output, appended to outputs().
  void add_output(value_id id) { outputs_.push_back(check(id)); }

  /// Turns a value without producer into a constant. Errors: invalid_argument where a node produces it.
  void make_constant(value_id id, tensor content) {
    value& v = values_[check(id)];
    if (v.producer != no_node) throw error(errc::invalid_argument, "value '" + v.name + "' has a producer");
    v.facts.kind = value_kind::tensor;
    v.facts.type = content.type();
    v.facts.dims = to_shape(content.dims());
    v.facts.elements.reset();
    v.facts.constant = std::move(content);
  }

  [[nodiscard]] std::size_t value_count() const noexcept { return values_.size(); }
  [[nodiscard]] const value& value_at(value_id id) const { return values_[check(id)]; }
  [[nodiscard]] value_facts& facts(value_id id) { return values_[check(id)].facts; }
  [[nodiscard]] const value_facts& facts(value_id id) const { return values_[check(id)].facts; }
  void rename_value(value_id id, std::string new_name) { values_[check(id)].name = std::move(new_name); }

  [[nodiscard]] const std::vector<value_id>& inputs() const noexcept { return inputs_; }
  [[nodiscard]] const std::vector<value_id>& outputs() const noexcept { return outputs_; }
  void set_inputs(std::vector<value_id> ids) { inputs_ = std::move(ids); }
  void set_outputs(std::vector<value_id> ids) { outputs_ = std::move(ids); }
  [[nodiscard]] bool is_input(value_id id) const {
    return std::find(inputs_.begin(), inputs_.end(), id) != inputs_.end();
  }
  [[nodiscard]] bool is_output(value_id id) const {
    return std::find(outputs_.begin(), outputs_.end(), id) != outputs_.end();
  }

  // --- nodes ---

  /// A new node that reads `inputs` and produces `outputs` (values without producer; no_value where unwanted).
  /// Errors: invalid_argument where an output already has a producer or is constant. O(inputs + outputs).
  node_id add_node(const op_info& op, std::string node_name, std::vector<value_id> inputs,
                   std::vector<value_id> outputs, attribute_map attributes = {}) {
    blocks_.clear();
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
  /// Replaces all inputs of a node.
  void set_node_inputs(node_id id, std::vector<value_id> inputs) {
    drop_uses(id);
    node& n = nodes_.at(id);
    n.inputs = std::move(inputs);
    for (std::size_t slot = 0; slot < n.inputs.size(); ++slot) add_use(id, static_cast<std::uint32_t>(slot));
  }
  /// Replaces one input of a node. O(uses of the former value).
  void set_node_input(node_id id, std::size_t slot, value_id read) {
    drop_use(id, static_cast<std::uint32_t>(slot));
    nodes_.at(id).inputs.at(slot) = read;
    add_use(id, static_cast<std::uint32_t>(slot));
  }
  /// Makes every reader of `from` (nodes and graph outputs) read `to`.
  void replace_uses(value_id from, value_id to) {
    const std::vector<value_use> uses = values_[check(from)].uses;
    for (const value_use& use : uses) set_node_input(use.node, use.slot, to);
    std::replace(outputs_.begin(), outputs_.end(), from, to);
  }
  /// Removes a node; its outputs lose their producer and keep their readers, which must be moved away.
  void remove_node(node_id id) {
    node& n = nodes_.at(id);
    if (n.removed) return;
    blocks_.clear();
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
  /// Replaces the operator and attributes of a node; inputs and outputs stay.
  void set_node_op(node_id id, const op_info& op, attribute_map attributes) {
    blocks_.clear();
    nodes_.at(id).op = &op;
    nodes_.at(id).attributes = std::move(attributes);
  }
  /// Gives the producer of `id` another output value in its place; `id` is left without producer.
  void move_output(value_id id, value_id replacement) {
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
  // --- the fusion plan ---

  /// Blocks that run as one, as a pass planned them; nodes outside are blocks of one. Every edit of nodes or edges
  /// forgets the plan, for it may not hold any longer.
  [[nodiscard]] const std::vector<fused_block>& blocks() const noexcept { return blocks_; }
  void set_blocks(std::vector<fused_block> plan) { blocks_ = std::move(plan); }

  void set_captured_begin(node_id id, std::uint32_t begin) { nodes_.at(id).captured_begin = begin; }
  [[nodiscard]] attribute_map& attributes(node_id id) { return nodes_.at(id).attributes; }
  void rename_node(node_id id, std::string new_name) { nodes_.at(id).name = std::move(new_name); }

  /// The number of ids given out, removed nodes included: ids are below it.
  [[nodiscard]] std::size_t node_limit() const noexcept { return nodes_.size(); }
  /// The number of live nodes.
  [[nodiscard]] std::size_t node_count() const noexcept { return nodes_.size() - removed_; }
  [[nodiscard]] const node& node_at(node_id id) const { return nodes_.at(id); }
  /// Ids of live nodes in order of creation.
  [[nodiscard]] std::vector<node_id> nodes() const {
    std::vector<node_id> ids;
    ids.reserve(node_count());
    for (node_id id = 0; id < nodes_.size(); ++id)
      if (!nodes_[id].removed) ids.push_back(id);
    return ids;
  }
  /// Ids of live nodes, producers before consumers; of several ready nodes the one created first comes first, so that
  /// the exporter's order is kept where it is legal. Errors: graph_cycle naming a node on a cycle. O((V + E) log V).
  [[nodiscard]] std::vector<node_id> topological_order() const {
    std::vector<std::size_t> pending(nodes_.size(), 0);
    std::priority_queue<node_id, std::vector<node_id>, std::greater<>> ready;
    for (node_id id = 0; id < nodes_.size(); ++id) {
      pending[id] = boost::in_degree(id, dependence_);
      if (!nodes_[id].removed && pending[id] == 0) ready.push(id);
    }
    std::vector<node_id> order;
    order.reserve(node_count());
    while (!ready.empty()) {
      const node_id id = ready.top();
      ready.pop();
      order.push_back(id);
      const auto [first, last] = boost::out_edges(id, dependence_);
      for (auto edge = first; edge != last; ++edge) {
        const auto to = static_cast<node_id>(boost::target(*edge, dependence_));
        if (--pending[to] == 0) ready.push(to);
      }
    }
    if (order.size() != node_count())
      for (node_id id = 0; id < nodes_.size(); ++id)
        if (!nodes_[id].removed && pending[id] != 0)
          throw error(errc::graph_cycle,
                      "node '" + nodes_[id].name + "' (" + std::string(nodes_[id].op->name) + ") depends on itself");
    return order;
  }

  /// The Boost.Graph view for its algorithms; vertex descriptors are node_ids.
  [[nodiscard]] const dependence_graph& dependence() const noexcept { return dependence_; }

  /// Renumbers nodes and values so that removed nodes and unused values (no producer, no reader, not an input, output
  /// or named constant that is read) disappear. All ids change. O(V + E).
  void compact() {
    graph packed(expressions_);
    packed.name = name;
    packed.opsets = opsets;
    packed.metadata = metadata;
    packed.producer_name = producer_name;
    std::vector<value_id> moved(values_.size(), no_value);
    const auto keep = [&](value_id id) {
      if (id == no_value) return no_value;
      if (moved[id] == no_value) {
        moved[id] = packed.add_value(values_[id].name);
        packed.values_.back().facts = values_[id].facts;
      }
      return moved[id];
    };
    for (const value_id id : inputs_) packed.inputs_.push_back(keep(id));
    std::vector<node_id> moved_nodes(nodes_.size(), no_node);
    for (node_id id = 0; id < nodes_.size(); ++id) {
      const node& n = nodes_[id];
      if (n.removed) continue;
      std::vector<value_id> in;
      std::vector<value_id> out;
      for (const value_id v : n.inputs) in.push_back(keep(v));
      for (const value_id v : n.outputs) out.push_back(keep(v));
      const node_id made = packed.add_node(*n.op, n.name, std::move(in), std::move(out), n.attributes);
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
    *this = std::move(packed);
  }

 private:
  value_id check(value_id id) const {
    if (id >= values_.size())
      throw error(errc::invalid_argument, "value id " + std::to_string(id) + " is out of range");
    return id;
  }
  void add_use(node_id id, std::uint32_t slot) {
    blocks_.clear();
    const value_id read = nodes_[id].inputs[slot];
    if (read == no_value) return;
    values_[check(read)].uses.push_back({id, slot});
    if (values_[read].producer != no_node)
      boost::add_edge(values_[read].producer, id, edge_property{read, slot}, dependence_);
  }
  void drop_use(node_id id, std::uint32_t slot) {
    const value_id read = nodes_[id].inputs[slot];
    if (read == no_value) return;
    auto& uses = values_[read].uses;
    const auto found = std::find(uses.begin(), uses.end(), value_use{id, slot});
    if (found != uses.end()) {
      *found = uses.back();
      uses.pop_back();
    }
    boost::remove_in_edge_if(
        id, [&](const auto& edge) { return dependence_[edge].slot == slot; }, dependence_);
  }
  void drop_uses(node_id id) {
    for (std::size_t slot = 0; slot < nodes_[id].inputs.size(); ++slot) drop_use(id, static_cast<std::uint32_t>(slot));
  }
  void rebuild_edges_of(node_id producer) {
    blocks_.clear();
    boost::clear_out_edges(producer, dependence_);
    for (const value_id out : nodes_[producer].outputs)
      if (out != no_value)
        for (const value_use& use : values_[out].uses)
          boost::add_edge(producer, use.node, edge_property{out, use.slot}, dependence_);
  }

  std::shared_ptr<expr_context> expressions_;
  std::vector<value> values_;
  std::vector<node> nodes_;
  std::size_t removed_ = 0;
  dependence_graph dependence_;
  std::vector<value_id> inputs_;
  std::vector<value_id> outputs_;
  std::vector<fused_block> blocks_;
};

/// The facts of one node as its traits see them; holds what node_facts points to.
class facts_of_node {
 public:
  /// Precondition: `g` outlives this object and is not edited meanwhile.
  facts_of_node(const graph& g, node_id id) {
    const node& n = g.node_at(id);
    pointers_.reserve(n.inputs.size());
    for (const value_id v : n.inputs) pointers_.push_back(v == no_value ? nullptr : &g.facts(v));
    scope_ = !n.outputs.empty() && n.outputs[0] != no_value ? g.value_at(n.outputs[0]).name : n.name;
    facts_.attributes = &n.attributes;
    facts_.inputs = pointers_;
    facts_.output_count = n.outputs.size();
    facts_.expressions = &g.expressions();
    facts_.scope = scope_;
  }
  facts_of_node(const facts_of_node&) = delete;
  facts_of_node& operator=(const facts_of_node&) = delete;

  [[nodiscard]] const node_facts& operator*() const noexcept { return facts_; }
  [[nodiscard]] const node_facts* operator->() const noexcept { return &facts_; }

 private:
  std::vector<const value_facts*> pointers_;
  std::string scope_;
  node_facts facts_;
};

}  // namespace dnnopt

#endif  // DNNOPT_GRAPH_HPP
