// Owns the making of graph nodes during import: a node in the file's form, and the emitter that adds nodes with
// inference.
#ifndef DNNOPT_ONNX_NODE_EMITTER_HPP
#define DNNOPT_ONNX_NODE_EMITTER_HPP

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <variant>
#include <vector>

#include <dnnopt/error.hpp>
#include <dnnopt/graph.hpp>
#include <dnnopt/shape.hpp>
#include <dnnopt/warning.hpp>

namespace dnnopt::onnx {

/// The text of an error without its code, so that it can be raised again with more context.
[[nodiscard]] inline std::string text_of(const error& e) {
  const std::string_view what = e.what();
  const std::size_t end = what.find("] ");
  return std::string(end == std::string_view::npos ? what : what.substr(end + 2));
}

/// No value has more elements than this, and no integer attribute of an operator is larger, or shape arithmetic of a
/// hostile file would overflow; attributes of operators with windows have a smaller limit, for they multiply dims.
inline constexpr std::int64_t largest_element_count = std::int64_t{1} << 40;
inline constexpr std::int64_t largest_window_attribute = std::int64_t{1} << 22;

/// Errors: overflow where the constant dims of `dims` multiply to more than largest_element_count.
inline void check_element_count(const std::string& name, const shape& dims) {
  std::int64_t count = 1;
  for (const index_expr& dim : dims) {
    const std::int64_t size = std::max<std::int64_t>(dim.as_constant().value_or(1), 1);
    if (__builtin_mul_overflow(count, size, &count) || count > largest_element_count)
      throw error(errc::overflow,
                  "value '" + name + "' of shape " + to_string(dims) + " has more elements than any memory holds");
  }
}

/// A node of the file whose inputs and outputs are values of the graph, on its way to the newest opset.
struct pending_node {
  std::string domain;
  std::string op_type;
  std::string name;
  std::vector<value_id> inputs;
  std::vector<value_id> outputs;
  attribute_map attributes;
  std::uint32_t captured_begin = std::numeric_limits<std::uint32_t>::max();
  std::int64_t version = 0;  ///< the opset of its domain whose form it has

  [[nodiscard]] value_id input(std::size_t i) const { return i < inputs.size() ? inputs[i] : no_value; }
  void set_input(std::size_t i, value_id v) {
    if (inputs.size() <= i) inputs.resize(i + 1, no_value);
    inputs[i] = v;
  }
};

/// Adds nodes to a graph, checks their arity, and infers what their outputs are.
class node_emitter {
 public:
  /// All arguments outlive the emitter. At most `nodes_left` nodes are added. In a `body`, which may never run, shapes
  /// that contradict each other are a warning.
  node_emitter(const op_set& ops, graph& target, std::size_t& nodes_left, std::vector<warning>& warnings,
               bool body = false)
      : ops_(ops), graph_(target), nodes_left_(nodes_left), warnings_(warnings), body_(body) {}

  /// An emitter for the body of a node, under the same limits.
  [[nodiscard]] node_emitter for_body(graph& body) { return node_emitter(ops_, body, nodes_left_, warnings_, true); }

  [[nodiscard]] graph& target() const noexcept { return graph_; }
  [[nodiscard]] const op_set& ops() const noexcept { return ops_; }
  [[nodiscard]] const value_facts& facts(value_id id) const { return graph_.facts(id); }
  /// The facts of input `i`, or null where it is absent.
  [[nodiscard]] const value_facts* facts_of(const pending_node& n, std::size_t i) const {
    return n.input(i) == no_value ? nullptr : &graph_.facts(n.input(i));
  }
  /// The rank of input `i` where it is known.
  [[nodiscard]] std::optional<std::size_t> rank_of(const pending_node& n, std::size_t i) const {
    const value_facts* f = facts_of(n, i);
    return f != nullptr && f->dims ? std::optional(f->dims->size()) : std::nullopt;
  }

  /// Takes `name`, or with a number behind it where it is taken.
  [[nodiscard]] std::string unique_name(std::string name) {
    if (names_.insert(name).second) return name;
    for (std::size_t i = 1;; ++i) {
      std::string numbered = name + "_" + std::to_string(i);
      if (names_.insert(numbered).second) return numbered;
    }
  }

  [[nodiscard]] value_id constant(const pending_node& near, std::string_view what, tensor content) {
    return graph_.add_constant(unique_name(near.name + "/" + std::string(what)), std::move(content));
  }
  [[nodiscard]] value_id integers(const pending_node& near, std::string_view what,
                                  const std::vector<std::int64_t>& values) {
    return constant(near, what, tensor::of<std::int64_t>({static_cast<std::int64_t>(values.size())}, values));
  }
  /// Adds an ai.onnx node in its newest form beside `near` and gives its (only) output.
  value_id emit(const pending_node& near, std::string_view op_type, std::vector<value_id> inputs,
                attribute_map attributes = {}) {
    pending_node n;
    n.op_type = op_type;
    n.name = unique_name(near.name + "/" + std::string(op_type));
    n.inputs = std::move(inputs);
    n.outputs.push_back(graph_.add_value(n.name));
    n.attributes = std::move(attributes);
    const value_id out = n.outputs[0];
    add(std::move(n));
    return out;
  }

  /// Warns about the node or value `subject`, once where the same is found twice in a row. O(1).
  void warn(warning_code code, std::string subject, std::string text) {
    warning made{code, std::move(subject), std::move(text)};
    if (warnings_.empty() || !(warnings_.back() == made)) warnings_.push_back(std::move(made));
  }

  /// Adds a node in its newest form. Errors: unknown_operator, bad_arity, what inference finds, type_mismatch where the
  /// file declares an output otherwise, memory_limit past the limit of nodes. Other dims than declared are a warning.
  void add(pending_node n) {
    const op_info& op = ops_.at(n.domain, n.op_type);
    if (nodes_left_ == 0) throw error(errc::memory_limit, "the model has more nodes than the importer's limit");
    --nodes_left_;
    check_arity(op, n);
    check_attributes(op, n.attributes);
    check_bodies(op, n);
    const std::vector<value_id> outputs = n.outputs;
    const node_id id =
        graph_.add_node(op, std::move(n.name), std::move(n.inputs), std::move(n.outputs), std::move(n.attributes));
    graph_.set_captured_begin(id, n.captured_begin);
    infer(op, id, outputs);
  }

 private:
  static void check_arity(const op_info& op, const pending_node& n) {
    const std::size_t formal = std::min<std::size_t>(n.inputs.size(), n.captured_begin);
    const auto wrong = [](const char* what, std::size_t given, unsigned least, unsigned most) {
      throw error(errc::bad_arity, std::to_string(given) + " " + what + " where " + std::to_string(least) + " to " +
                                       (most == variadic ? std::string("any number") : std::to_string(most)) +
                                       " are taken");
    };
    if (formal < op.arity.least_inputs || formal > op.arity.most_inputs)
      wrong("inputs", formal, op.arity.least_inputs, op.arity.most_inputs);
    if (n.outputs.size() < op.arity.least_outputs || n.outputs.size() > op.arity.most_outputs)
      wrong("outputs", n.outputs.size(), op.arity.least_outputs, op.arity.most_outputs);
    // Loop alone has optional inputs (its trip count and condition) before required ones.
    for (std::size_t i = 0; i < op.arity.least_inputs; ++i)
      if (n.inputs[i] == no_value && op.flow != flow_form::loop)
        throw error(errc::bad_arity, "required input " + std::to_string(i) + " is absent");
  }

  static void check_attributes(const op_info& op, const attribute_map& attributes) {
    // Ends of slices may be "as far as it goes".
    if (op.kind == computation_kind::shape_query) return;
    const bool windows = op.kind == computation_kind::convolution || op.kind == computation_kind::pooling ||
                         op.kind == computation_kind::view;
    const std::int64_t limit = windows ? largest_window_attribute : largest_element_count;
    const auto check = [&](const std::string& name, std::int64_t v) {
      if (v > limit || v < -limit) throw error(errc::bad_attribute, "attribute '" + name + "' is " + std::to_string(v));
    };
    for (const auto& [name, held] : attributes) {
      if (const auto* one = std::get_if<std::int64_t>(&held)) check(name, *one);
      if (const auto* many = std::get_if<std::vector<std::int64_t>>(&held))
        for (const std::int64_t v : *many) check(name, v);
    }
  }

  // How many values an operator hands to its bodies and takes from them, as ONNX Runtime checks when it loads a model;
  // a body may give more than is taken.
  static void check_bodies(const op_info& op, const pending_node& n) {
    if (op.flow == flow_form::none) return;
    const std::size_t formal = std::min<std::size_t>(n.inputs.size(), n.captured_begin);
    const std::size_t handed = op.flow == flow_form::branches ? n.inputs.size() - formal : n.inputs.size();
    const std::size_t taken = n.outputs.size() + (op.flow == flow_form::loop ? 1 : 0);
    for (const auto& [name, held] : n.attributes) {
      const auto* body = std::get_if<subgraph>(&held);
      if (body == nullptr || *body == nullptr) continue;
      if ((*body)->inputs().size() != handed || (*body)->outputs().size() < taken)
        throw error(errc::bad_arity, "body '" + name + "' takes " + std::to_string((*body)->inputs().size()) +
                                         " values and gives " + std::to_string((*body)->outputs().size()) + " where " +
                                         std::to_string(handed) + " are handed to it and " + std::to_string(taken) +
                                         " taken");
    }
  }

  void infer(const op_info& op, node_id id, const std::vector<value_id>& outputs) {
    std::vector<value_facts> found(outputs.size());
    try {
      const facts_of_node facts(graph_, id);
      op.infer(*facts, found);
      for (std::size_t i = 0; i < outputs.size(); ++i)
        if (outputs[i] != no_value) check_dims(graph_.value_at(outputs[i]).name, found[i]);
    } catch (const error& e) {
      if (!body_ || (e.code() != errc::shape_mismatch && e.code() != errc::bad_attribute)) throw;
      const std::string& name = graph_.node_at(id).name;
      warn(warning_code::inconsistent_body, name,
           "node '" + name + "' (" + std::string(op.name) + ") would fail if its body ran: " + text_of(e));
      for (value_facts& facts : found) {
        facts.dims.reset();
        facts.elements.reset();
      }
    }
    for (std::size_t i = 0; i < outputs.size(); ++i)
      if (outputs[i] != no_value) merge(id, outputs[i], std::move(found[i]));
  }

  static void check_dims(const std::string& name, const value_facts& found) {
    if (!found.dims) return;
    for (const index_expr& dim : *found.dims)
      if (dim.range().high < 0)
        throw error(errc::shape_mismatch,
                    "output '" + name + "' is computed with a negative dim: " + to_string(*found.dims));
    check_element_count(name, *found.dims);
  }

  // What inference finds wins over what the file declares, which nobody vouches for.
  void merge(node_id id, value_id output, value_facts found) {
    value_facts& declared = graph_.facts(output);
    const std::string& name = graph_.value_at(output).name;
    if (found.type != dtype::undefined) {
      if (declared.type != dtype::undefined && declared.type != found.type)
        throw error(errc::type_mismatch, "output '" + name + "' is declared " + std::string(name_of(declared.type)) +
                                             " but computed as " + std::string(name_of(found.type)));
      declared.type = found.type;
      declared.kind = found.kind;
    }
    if (!found.dims) declared.origin = declared.dims ? dims_origin::declared : dims_origin::computed;
    if (found.dims) {
      bool agree = !declared.dims || declared.dims->size() == found.dims->size();
      for (std::size_t d = 0; declared.dims && agree && d < found.dims->size(); ++d) {
        const auto a = (*declared.dims)[d].as_constant();
        const auto b = (*found.dims)[d].as_constant();
        agree = !a || !b || *a == *b;
      }
      if (!agree)
        warn(warning_code::stale_shape, name,
             "'" + name + "' is declared " + to_string(*declared.dims) + ", but " +
                 std::string(graph_.node_at(id).op->name) + " computes " + to_string(*found.dims) +
                 "; what is computed counts");
      declared.dims = std::move(found.dims);
      declared.origin = graph_.reads_declared_dims(id) ? dims_origin::from_declared : dims_origin::computed;
    }
    declared.elements = std::move(found.elements);
  }

  const op_set& ops_;
  graph& graph_;
  std::size_t& nodes_left_;
  std::vector<warning>& warnings_;
  bool body_;
  std::unordered_set<std::string> names_;
};

}  // namespace dnnopt::onnx

#endif  // DNNOPT_ONNX_NODE_EMITTER_HPP
