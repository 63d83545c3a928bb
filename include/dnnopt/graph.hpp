// Owns the graph: operators as vertices of a Boost.Graph adjacency list, named values with ordered inputs and outputs.
#ifndef DNNOPT_GRAPH_HPP
#define DNNOPT_GRAPH_HPP

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <boost/graph/adjacency_list.hpp>

#include <dnnopt/attribute.hpp>
#include <dnnopt/detail/implementation.hpp>
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
  graph();
  /// A graph whose expressions share a context with another graph (subgraphs, bodies of blocks).
  explicit graph(std::shared_ptr<expr_context> expressions);
  graph(const graph& other);
  graph(graph&& other);
  graph& operator=(const graph& other);
  graph& operator=(graph&& other);
  ~graph();

  std::string name;
  std::map<std::string, std::int64_t> opsets;  ///< opset version by domain ("" is ai.onnx)
  std::map<std::string, std::string> metadata;
  std::string producer_name;

  [[nodiscard]] expr_context& expressions() const noexcept { return *expressions_; }
  [[nodiscard]] const std::shared_ptr<expr_context>& shared_expressions() const noexcept { return expressions_; }

  // --- values: references to them, to their facts and to nodes hold until the graph is compacted or assigned ---

  /// A new value without producer. Names need not be unique here; the importer and the verifier see to it.
  value_id add_value(std::string value_name, dtype type = dtype::undefined, std::optional<shape> dims = std::nullopt);
  /// A new constant.
  value_id add_constant(std::string value_name, tensor content);
  /// A new graph input, appended to inputs().
  value_id add_input(std::string value_name, dtype type, std::optional<shape> dims);
  /// Declares a value a graph output, appended to outputs(). Forgets blocks().
  void add_output(value_id id);

  /// Turns a value without producer into a constant. Errors: invalid_argument where a node produces it.
  void make_constant(value_id id, tensor content);

  [[nodiscard]] std::size_t value_count() const noexcept { return values_.size(); }
  [[nodiscard]] const value& value_at(value_id id) const { return values_[check(id)]; }
  [[nodiscard]] value_facts& facts(value_id id) { return values_[check(id)].facts; }
  [[nodiscard]] const value_facts& facts(value_id id) const { return values_[check(id)].facts; }
  void rename_value(value_id id, std::string new_name);

  [[nodiscard]] const std::vector<value_id>& inputs() const noexcept { return inputs_; }
  [[nodiscard]] const std::vector<value_id>& outputs() const noexcept { return outputs_; }
  void set_inputs(std::vector<value_id> ids);
  void set_outputs(std::vector<value_id> ids);  ///< forgets blocks()
  [[nodiscard]] bool is_input(value_id id) const;
  [[nodiscard]] bool is_output(value_id id) const;

  // --- nodes ---

  /// A new node that reads `inputs` and produces `outputs` (values without producer; no_value where unwanted).
  /// Errors: invalid_argument where an output already has a producer or is constant. O(inputs + outputs).
  node_id add_node(const op_info& op, std::string node_name, std::vector<value_id> inputs,
                   std::vector<value_id> outputs, attribute_map attributes = {});
  /// Replaces all inputs of a node.
  void set_node_inputs(node_id id, std::vector<value_id> inputs);
  /// Replaces one input of a node. O(uses of the former value).
  void set_node_input(node_id id, std::size_t slot, value_id read);
  /// Makes every reader of `from` (nodes and graph outputs) read `to`.
  void replace_uses(value_id from, value_id to);
  /// Removes a node; its outputs lose their producer and keep their readers, which must be moved away.
  void remove_node(node_id id);
  /// Replaces the operator and attributes of a node; inputs and outputs stay.
  void set_node_op(node_id id, const op_info& op, attribute_map attributes);
  /// Gives the producer of `id` another output value in its place; `id` is left without producer.
  void move_output(value_id id, value_id replacement);
  // --- the fusion plan ---

  /// Blocks that run as one, as a pass planned them; nodes outside are blocks of one. Every edit of nodes or edges
  /// forgets the plan, for it may not hold any longer.
  [[nodiscard]] const std::vector<fused_block>& blocks() const noexcept { return blocks_; }
  void set_blocks(std::vector<fused_block> plan);

  /// Conditions that values of the graph's symbols must meet, as derive_guards finds them on the graph as it was
  /// imported; each run checks them. Edits leave them alone, for they are about inputs; who removes a node whose data
  /// decide dims tells what those are instead (learn_dims), or nothing would bind their symbols.
  [[nodiscard]] const std::vector<guard>& guards() const noexcept { return guards_; }
  void set_guards(std::vector<guard> conditions) { guards_ = std::move(conditions); }

  /// Puts what is known of the dims of value `id` into the guards, in the place of the symbols that stand for those of
  /// them that the data of its producer decided (node_facts::data_dim). Nothing where the rank is another one.
  void learn_dims(value_id id, const shape& known);

  void set_captured_begin(node_id id, std::uint32_t begin) { nodes_.at(id).captured_begin = begin; }
  [[nodiscard]] attribute_map& attributes(node_id id) { return nodes_.at(id).attributes; }
  void rename_node(node_id id, std::string new_name);

  /// Whether dims of some input of a node are only what the file declares, or follow from such dims. O(inputs).
  [[nodiscard]] bool reads_declared_dims(node_id id) const {
    const std::vector<value_id>& read = node_at(id).inputs;
    return std::any_of(read.begin(), read.end(),
                       [&](value_id v) { return v != no_value && facts(v).origin != dims_origin::computed; });
  }
  /// The number of ids given out, removed nodes included: ids are below it.
  [[nodiscard]] std::size_t node_limit() const noexcept { return nodes_.size(); }
  /// The number of live nodes.
  [[nodiscard]] std::size_t node_count() const noexcept { return nodes_.size() - removed_; }
  [[nodiscard]] const node& node_at(node_id id) const { return nodes_.at(id); }
  /// Ids of live nodes in order of creation.
  [[nodiscard]] std::vector<node_id> nodes() const;
  /// Ids of live nodes, producers before consumers; of several ready nodes the one created first comes first, so that
  /// the exporter's order is kept where it is legal. Errors: graph_cycle naming a node on a cycle. O(V + E) where ids
  /// are such an order already, else O((V + E) log V).
  [[nodiscard]] std::vector<node_id> topological_order() const;
  /// The same, kept until the next edit of nodes or edges, so that passes in a row that edit nothing find it once: then
  /// O(V).
  [[nodiscard]] std::vector<node_id> topological_order();

  /// The Boost.Graph view for its algorithms; vertex descriptors are node_ids.
  [[nodiscard]] const dependence_graph& dependence() const noexcept { return dependence_; }

  /// Renumbers nodes and values so that removed nodes and unused values (no producer, no reader, not an input, output
  /// or named constant that is read) disappear. All ids change. O(V + E).
  void compact();

 private:
  value_id check(value_id id) const {
    if (id >= values_.size()) refuse(id);
    return id;
  }
  [[noreturn]] static void refuse(value_id id);
  void add_use(node_id id, std::uint32_t slot);
  void drop_use(node_id id, std::uint32_t slot);
  void drop_uses(node_id id);
  void rebuild_edges_of(node_id producer);
  void forget_plans() noexcept;

  std::shared_ptr<expr_context> expressions_;
  // Deques, so that what is read of a value or a node stays in its place while others are added.
  std::deque<value> values_;
  std::deque<node> nodes_;
  std::size_t removed_ = 0;
  dependence_graph dependence_;
  std::vector<value_id> inputs_;
  std::vector<value_id> outputs_;
  std::vector<fused_block> blocks_;
  std::vector<guard> guards_;
  std::optional<std::vector<node_id>> order_;  ///< of nodes and edges as they are; nothing: not asked for since an edit
};

/// The facts of one node as its traits see them; holds what node_facts points to.
class facts_of_node {
 public:
  /// Precondition: `g` outlives this object and is not edited meanwhile.
  facts_of_node(const graph& g, node_id id);
  facts_of_node(const facts_of_node&) = delete;
  facts_of_node& operator=(const facts_of_node&) = delete;

  [[nodiscard]] const node_facts& operator*() const noexcept { return facts_; }
  [[nodiscard]] const node_facts* operator->() const noexcept { return &facts_; }

 private:
  std::vector<const value_facts*> pointers_;
  node_facts facts_;
};

}  // namespace dnnopt

#if DNNOPT_IMPLEMENT_GRAPH
#include <dnnopt/detail/graph_bodies.hpp>
#endif

#endif  // DNNOPT_GRAPH_HPP
