// Owns the step from a model's messages to a graph: names resolved, nodes ordered, functions inlined, captures
// explicit.
#ifndef DNNOPT_ONNX_BUILD_GRAPH_HPP
#define DNNOPT_ONNX_BUILD_GRAPH_HPP

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include <dnnopt/error.hpp>
#include <dnnopt/graph.hpp>
#include <dnnopt/onnx/adapt_opset.hpp>
#include <dnnopt/onnx/contrib/table.hpp>
#include <dnnopt/onnx/convert_attribute.hpp>
#include <dnnopt/onnx/expand_functions.hpp>
#include <dnnopt/onnx/graph_scope.hpp>
#include <dnnopt/onnx/import_options.hpp>
#include <dnnopt/onnx/model_proto.hpp>
#include <dnnopt/onnx/node_emitter.hpp>
#include <dnnopt/onnx/node_order.hpp>
#include <dnnopt/onnx/tensor_proto.hpp>
#include <dnnopt/warning.hpp>

namespace dnnopt::onnx {

/// What the graph does not say about the file it came from.
struct build_notes {
  std::vector<std::string> default_inputs;  ///< graph inputs with a default value; they became constants
  std::size_t constant_nodes = 0;           ///< Constant nodes; they became constants
  std::vector<dead_node> dead_nodes;        ///< nodes that lead to no output and could not be imported
  std::vector<warning> warnings;            ///< where the file contradicts itself
};

/// Turns the messages of one model into a graph in the newest opset. Used once.
class graph_builder {
 public:
  /// All arguments outlive the builder.
  graph_builder(const model_proto& model, const op_set& ops, const tensor_source& source, const import_limits& limits,
                const std::vector<std::string>& overridden_inputs)
      : model_(model),
        ops_(ops),
        source_(source),
        limits_(limits),
        overridden_(overridden_inputs),
        nodes_left_(limits.nodes) {}

  /// Errors: malformed_model, duplicate_name, missing_name, graph_cycle, unsupported_opset, unknown_operator,
  /// bad_attribute, bad_arity, type_mismatch, shape_mismatch, and those of tensors; each names its node or position.
  /// invalid_argument and missing_input for names of `overridden_inputs` that are no inputs with a default value.
  [[nodiscard]] graph build() {
    if (!model_.ir_version) throw error(errc::malformed_model, "the file has no ir_version: it is no ONNX model");
    if (!model_.graph) throw error(errc::malformed_model, "the model has no graph");
    for (const opset_proto& o : model_.opsets) check_opset(o);
    for (const function_proto& f : model_.functions) {
      for (const opset_proto& o : f.opsets) check_opset(o);
      if (!functions_.emplace(function_key(f.domain, f.name, f.overload), &f).second)
        throw error(errc::duplicate_name, "at byte " + std::to_string(f.position) + ": function '" +
                                              std::string(f.name) + "' is defined twice");
    }
    graph g;
    g.name = model_.graph->name;
    g.producer_name = model_.producer_name;
    for (const auto& [key, value] : model_.metadata) g.metadata.emplace(key, value);
    for (const opset_proto& o : model_.opsets) g.opsets[std::string(o.domain)] = o.version;
    g.opsets[""] = newest_opset;
    if (model_.opsets.empty() && *model_.ir_version < first_ir_with_opsets)
      notes_.warnings.push_back({warning_code::missing_opset, g.name,
                                 "the file has IR version " + std::to_string(*model_.ir_version) +
                                     " and states no opset; it counts as opset 1"});
    node_emitter emitter(ops_, g, nodes_left_, notes_.warnings);
    detail::scope main(emitter, nullptr);
    main.opsets = model_.opsets;
    fill(main, *model_.graph);
    for (const std::string& name : overridden_)
      if (std::find(notes_.default_inputs.begin(), notes_.default_inputs.end(), name) == notes_.default_inputs.end())
        throw error(errc::missing_input, "the model has no input '" + name + "' with a default value");
    return g;
  }

  [[nodiscard]] const build_notes& notes() const noexcept { return notes_; }

 private:
  static constexpr std::int64_t first_ir_with_opsets = 3;
  static constexpr std::int64_t first_ir_with_overridable = 4;

  using function_key_type = std::tuple<std::string_view, std::string_view, std::string_view>;
  static function_key_type function_key(std::string_view domain, std::string_view name, std::string_view overload) {
    return {domain, name, overload};
  }

  static void check_opset(const opset_proto& o) {
    if (!o.domain.empty()) return;
    if (o.version < oldest_opset || o.version > newest_opset)
      throw error(errc::unsupported_opset, "opset " + std::to_string(o.version) + " of ai.onnx; supported are " +
                                               std::to_string(oldest_opset) + " to " + std::to_string(newest_opset));
  }

  // --- graphs ---

  void fill(detail::scope& s, const graph_proto& proto) {
    graph& g = s.emitter->target();
    const bool is_main = s.outer == nullptr;
    for (const value_info_proto& v : proto.values) s.declared.emplace(v.name, &v);
    for (const value_info_proto& v : proto.outputs) s.declared.insert_or_assign(v.name, &v);
    for (const value_info_proto& v : proto.inputs) s.declared.insert_or_assign(v.name, &v);

    add_initializers(s, proto);
    std::unordered_set<std::string_view> listed;
    for (const value_info_proto& v : proto.inputs) {
      if (v.name.empty())
        throw error(errc::missing_name, "at byte " + std::to_string(v.position) + ": a graph input has no name");
      if (!listed.insert(v.name).second)
        throw error(errc::duplicate_name, "at byte " + std::to_string(v.position) + ": graph input '" +
                                              std::string(v.name) + "' is listed twice");
      if (const auto initial = s.names.find(v.name); initial != s.names.end()) {
        detail::check_default(s, v, g.facts(initial->second));
        if (!is_main) continue;
        notes_.default_inputs.emplace_back(v.name);
        if (!is_overridden(v.name)) continue;
        s.names.erase(initial);
      }
      if (is_main && v.type.held == type_proto::kind::none)
        throw error(errc::malformed_model, "at byte " + std::to_string(v.position) + ": graph input '" +
                                               std::string(v.name) + "' has no type");
      const value_id id = detail::new_value(s, v.name);
      detail::define(s, v.name, id, v.position);
      detail::add_to_inputs(g, id);
    }
    std::vector<std::string_view> wanted;
    for (const value_info_proto& v : proto.outputs) wanted.push_back(v.name);
    add_nodes(s, proto.nodes, wanted);
    for (const value_info_proto& v : proto.outputs) {
      const std::optional<value_id> id = detail::lookup(s, v.name);
      if (!id || *id == no_value)
        throw error(errc::missing_name, "at byte " + std::to_string(v.position) + ": nothing defines graph output '" +
                                            std::string(v.name) + "'");
      g.add_output(*id);
    }
  }

  // Of several initializers of one name the last one counts, as in ONNX Runtime; nothing reads one without a name.
  void add_initializers(detail::scope& s, const graph_proto& proto) {
    std::unordered_map<std::string_view, std::size_t> last;
    std::vector<std::pair<std::string_view, std::function<tensor()>>> all;
    for (const tensor_proto& t : proto.initializers) all.emplace_back(t.name, [&] { return to_tensor(t, source_); });
    for (const sparse_tensor_proto& t : proto.sparse_initializers)
      all.emplace_back(t.values.name, [&] { return to_tensor(t, source_); });
    for (std::size_t i = 0; i < all.size(); ++i) {
      const std::string name(all[i].first);
      if (name.empty())
        s.emitter->warn(warning_code::unnamed_initializer, name, "an initializer has no name; it is left out");
      else if (!last.insert_or_assign(all[i].first, i).second)
        s.emitter->warn(warning_code::duplicate_initializer, name,
                        "two initializers are named '" + name + "'; the last one counts");
    }
    for (std::size_t i = 0; i < all.size(); ++i) {
      const auto& [name, make] = all[i];
      if (name.empty() || last.at(name) != i) continue;
      // The name stays free for the input that takes the place of a default value.
      const std::string held = std::string(name) + (s.outer == nullptr && is_overridden(name) ? "/default" : "");
      const value_id id = s.emitter->target().add_constant(s.emitter->unique_name(held), make());
      s.names.emplace(name, id);
    }
  }

  // Errors: invalid_argument where the file is of an IR version whose initializers are constants.
  [[nodiscard]] bool is_overridden(std::string_view name) const {
    if (std::find(overridden_.begin(), overridden_.end(), name) == overridden_.end()) return false;
    if (*model_.ir_version < first_ir_with_overridable)
      throw error(errc::invalid_argument, "input '" + std::string(name) + "' is a constant in a file of IR version " +
                                              std::to_string(*model_.ir_version) +
                                              "; versions from 4 on let it be given");
    return true;
  }

  // --- nodes ---

  // Adds `nodes`, of which those count that lead to a name of `wanted`.
  void add_nodes(detail::scope& s, std::span<const node_proto> nodes, std::span<const std::string_view> wanted) {
    const std::vector<bool> live = live_nodes(nodes, wanted);
    const auto is_taken = [&s](std::string_view name) { return s.names.contains(name); };
    for (const std::size_t i : order_of(nodes, is_taken)) {
      const node_proto& n = nodes[i];
      const node_id before = static_cast<node_id>(s.emitter->target().node_limit());
      try {
        add_node(s, n);
      } catch (const error& e) {
        if (live[i] || e.code() == errc::memory_limit) throw error(e.code(), where(n) + ": " + text_of(e));
        leave_out(s, n, before, e);
      }
    }
  }

  // Takes a node that leads to no output, and what was made for it since node `before`, out of the graph.
  void leave_out(detail::scope& s, const node_proto& n, node_id before, const error& why) {
    graph& g = s.emitter->target();
    for (auto id = static_cast<node_id>(g.node_limit()); id-- > before;) g.remove_node(id);
    for (const std::string_view name : n.outputs) s.names.erase(name);
    notes_.dead_nodes.push_back({std::string(n.name), std::string(n.op_type), std::string(n.domain), text_of(why)});
    s.emitter->warn(warning_code::dead_node, std::string(n.name),
                    where(n) + " leads to no output and is left out: " + text_of(why));
  }

  void add_node(detail::scope& s, const node_proto& proto) {
    pending_node n;
    n.domain = proto.domain;
    n.op_type = proto.op_type;
    for (const std::string_view name : proto.inputs) {
      if (name.empty()) {
        n.inputs.push_back(no_value);
        continue;
      }
      const std::optional<value_id> id = detail::lookup(s, name);
      if (!id) throw error(errc::missing_name, "nothing defines input '" + std::string(name) + "'");
      n.inputs.push_back(*id);
    }
    while (!n.inputs.empty() && n.inputs.back() == no_value) n.inputs.pop_back();
    const auto function = functions_.find(function_key(proto.domain, proto.op_type, proto.overload));
    if (function == functions_.end()) n.version = version_of(s, proto);

    std::vector<detail::open_body> bodies;
    for (const attribute_proto& a : proto.attributes) {
      if (n.attributes.contains(a.name) ||
          std::any_of(bodies.begin(), bodies.end(), [&](const auto& b) { return b.attribute == a.name; }))
        throw error(errc::bad_attribute, "attribute '" + std::string(a.name) + "' is given twice");
      if (!a.ref_attr_name.empty()) {
        const attribute* bound = s.arguments == nullptr ? nullptr : s.arguments->find(a.ref_attr_name);
        if (bound != nullptr) n.attributes.set(std::string(a.name), *bound);
      } else if (a.type == attribute_type::graph) {
        if (!a.g) throw error(errc::bad_attribute, "attribute '" + std::string(a.name) + "' holds no graph");
        bodies.push_back(read_body(s, a));
      } else {
        n.attributes.set(std::string(a.name), convert_attribute(a, source_));
      }
    }

    if (proto.op_type == "Constant" && proto.domain.empty() && function == functions_.end()) {
      add_constant(s, proto, n);
      return;
    }
    for (const std::string_view name : proto.outputs) {
      if (name.empty()) {
        n.outputs.push_back(no_value);
        continue;
      }
      const value_id id = detail::new_value(s, name);
      s.names.emplace(name, id);
      n.outputs.push_back(id);
    }
    while (!n.outputs.empty() && n.outputs.back() == no_value) n.outputs.pop_back();
    n.name = !proto.name.empty() ? s.prefix + std::string(proto.name)
             : n.outputs.empty() ? s.prefix + std::string(proto.op_type)
                                 : s.emitter->target().value_at(first_of(n.outputs)).name;
    if (function != functions_.end()) {
      if (!bodies.empty())
        throw error(errc::unsupported, "a call of a model-local function passes a graph as an attribute");
      inline_function(s, *function->second, n);
      return;
    }
    // The trip count and the condition of a Loop may be left out, which ends its list of inputs where it carries
    // nothing.
    if (const op_info* op = ops_.find(n.domain, n.op_type); op != nullptr && op->flow == flow_form::loop)
      n.inputs.resize(std::max<std::size_t>(n.inputs.size(), op->arity.least_inputs), no_value);
    detail::close_bodies(s, bodies, n);
    emit(s, std::move(n));
  }

  static value_id first_of(const std::vector<value_id>& ids) {
    for (const value_id id : ids)
      if (id != no_value) return id;
    return no_value;
  }

  void emit(detail::scope& s, pending_node n) {
    if (n.domain.empty()) {
      adapt_to_newest(n, *s.emitter);
      if (ops_.find(n.domain, n.op_type) == nullptr && expand_function(n, *s.emitter)) return forget_ungiven(s, n);
    }
    if (ops_.find(n.domain, n.op_type) == nullptr && expand_contrib(n, *s.emitter)) return forget_ungiven(s, n);
    if (ops_.find(n.domain, n.op_type) == nullptr)
      throw error(errc::unknown_operator, "operator '" + n.op_type + "' of domain '" +
                                              (n.domain.empty() ? "ai.onnx" : n.domain) + "' is not known (opset " +
                                              std::to_string(n.version) + "); " + other_unknown(n) +
                                              "load_options::ops takes a row for it (docs/how_to/add_an_operator.md)");
    s.emitter->add(std::move(n));
  }

  // Outputs that the nodes in the place of `n` do not give have no name: whoever reads one is told that nothing
  // defines it.
  static void forget_ungiven(detail::scope& s, const pending_node& n) {
    for (const value_id out : n.outputs)
      if (out != no_value && s.emitter->target().value_at(out).producer == no_node)
        std::erase_if(s.names, [out](const auto& named) { return named.second == out; });
  }

  /// The other operators of domains of their own that nothing knows, with the count of their nodes: whoever adds one
  /// wants to know what else there is to add.
  [[nodiscard]] std::string other_unknown(const pending_node& first) const {
    std::map<std::pair<std::string_view, std::string_view>, std::size_t> counts;
    std::vector<const std::vector<node_proto>*> lists{&model_.graph->nodes};
    for (const auto& [key, function] : functions_) lists.push_back(&function->nodes);
    for (std::size_t i = 0; i < lists.size(); ++i)
      for (const node_proto& node : *lists[i]) {
        for (const attribute_proto& attribute : node.attributes)
          if (attribute.g) lists.push_back(&attribute.g->nodes);
        if (node.domain.empty() || node.domain == "ai.onnx" || has_contrib(node.domain, node.op_type)) continue;
        if (functions_.contains(function_key(node.domain, node.op_type, node.overload))) continue;
        if (ops_.find(node.domain, node.op_type) == nullptr) ++counts[{node.domain, node.op_type}];
      }
    counts.erase({first.domain, first.op_type});
    std::string text;
    for (const auto& [name, count] : counts)
      text += (text.empty() ? "nor are '" : ", '") + std::string(name.second) + "' of domain '" +
              std::string(name.first) + "' (" + std::to_string(count) + (count == 1 ? " node)" : " nodes)");
    return text.empty() ? "" : text + "; ";
  }

  std::int64_t version_of(const detail::scope& s, const node_proto& n) const {
    for (const auto* opsets : {&s.opsets, &model_.opsets})
      for (const opset_proto& o : *opsets)
        if (o.domain == n.domain) return o.version;
    if (n.domain.empty() && (!model_.opsets.empty() || *model_.ir_version >= first_ir_with_opsets))
      throw error(errc::unsupported_opset, "the model imports no opset of ai.onnx");
    return 1;
  }

  void add_constant(detail::scope& s, const node_proto& proto, const pending_node& n) {
    if (proto.outputs.size() != 1 || proto.outputs[0].empty() || !n.inputs.empty())
      throw error(errc::bad_arity, "a Constant has no input and one output");
    tensor content = constant_content(n.attributes);
    const value_id id = detail::new_value(s, proto.outputs[0]);
    const value_facts& stated = s.emitter->facts(id);
    if (stated.type != dtype::undefined && stated.type != content.type())
      throw error(errc::type_mismatch, "the constant is declared " + std::string(name_of(stated.type)) + " but is " +
                                           std::string(name_of(content.type())));
    s.emitter->target().make_constant(id, std::move(content));
    s.names.emplace(proto.outputs[0], id);
    ++notes_.constant_nodes;
  }

  // --- bodies ---

  detail::open_body read_body(detail::scope& s, const attribute_proto& a) {
    detail::open_body made{std::string(a.name), std::make_shared<graph>(s.emitter->target().shared_expressions()), {}};
    if (s.depth >= limits_.nesting) throw error(errc::malformed_model, "graphs lie in each other too deep");
    made.body->name = a.g->name;
    node_emitter emitter(ops_, *made.body, nodes_left_, notes_.warnings, true);
    detail::scope inner(emitter, &s);
    inner.opsets = s.opsets;
    inner.arguments = s.arguments;
    inner.depth = s.depth + 1;
    fill(inner, *a.g);
    made.captures = std::move(inner.captures);
    return made;
  }

  // --- functions ---

  void inline_function(detail::scope& caller, const function_proto& f, const pending_node& call) {
    if (caller.depth >= limits_.nesting)
      throw error(errc::malformed_model,
                  "function '" + std::string(f.name) + "' calls itself, or calls lie in each other too deep");
    if (call.inputs.size() > f.inputs.size() || call.outputs.size() > f.outputs.size())
      throw error(errc::bad_arity, "function '" + std::string(f.name) + "' takes " + std::to_string(f.inputs.size()) +
                                       " inputs and gives " + std::to_string(f.outputs.size()) + " outputs");
    attribute_map arguments;
    for (const attribute_proto& a : f.attribute_defaults)
      arguments.set(std::string(a.name), convert_attribute(a, source_));
    for (const auto& [name, held] : call.attributes) arguments.set(name, held);

    detail::scope s(*caller.emitter, nullptr);
    s.opsets = f.opsets;
    s.arguments = &arguments;
    s.depth = caller.depth + 1;
    s.prefix = call.name + "/";
    for (std::size_t i = 0; i < f.inputs.size(); ++i) detail::define(s, f.inputs[i], call.input(i), f.position);
    std::vector<std::pair<value_id, value_id>> passed_through;
    std::vector<std::string_view> wanted;
    for (std::size_t i = 0; i < call.outputs.size(); ++i) {
      if (call.outputs[i] == no_value) continue;
      wanted.push_back(f.outputs[i]);
      if (const auto direct = s.names.find(f.outputs[i]); direct != s.names.end())
        passed_through.emplace_back(direct->second, call.outputs[i]);
      else if (!s.promised.emplace(f.outputs[i], call.outputs[i]).second)
        throw error(errc::duplicate_name, "function '" + std::string(f.name) + "' lists an output twice");
    }
    add_nodes(s, f.nodes, wanted);
    for (const auto& [name, id] : s.promised)
      if (!s.names.contains(name))
        throw error(errc::missing_name,
                    "nothing in function '" + std::string(f.name) + "' defines its output '" + std::string(name) + "'");
    for (const auto& [from, to] : passed_through) {
      if (from == no_value)
        throw error(errc::missing_name, "function '" + std::string(f.name) + "' gives out an absent input");
      pending_node copy;
      copy.op_type = "Identity";
      copy.name = call.name + "/Identity";
      copy.inputs = {from};
      copy.outputs = {to};
      copy.version = newest_opset;
      emit(s, std::move(copy));
    }
  }

  const model_proto& model_;
  const op_set& ops_;
  const tensor_source& source_;
  import_limits limits_;
  const std::vector<std::string>& overridden_;
  std::size_t nodes_left_;
  std::map<function_key_type, const function_proto*> functions_;
  build_notes notes_;
};

}  // namespace dnnopt::onnx

#endif  // DNNOPT_ONNX_BUILD_GRAPH_HPP
