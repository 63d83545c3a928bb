// Owns what names mean while a graph is built: values of a graph, of a function's call, and of the graphs around a
// body.
#ifndef DNNOPT_ONNX_GRAPH_SCOPE_HPP
#define DNNOPT_ONNX_GRAPH_SCOPE_HPP

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include <dnnopt/attribute.hpp>
#include <dnnopt/dtype.hpp>
#include <dnnopt/error.hpp>
#include <dnnopt/graph.hpp>
#include <dnnopt/onnx/model_proto.hpp>
#include <dnnopt/onnx/node_emitter.hpp>
#include <dnnopt/shape.hpp>
#include <dnnopt/warning.hpp>

namespace dnnopt::onnx::detail {

/// A value of the graph around a body that the body reads, and what stands for it inside.
struct capture {
  value_id outer;
  value_id inner;
};

/// The names that nodes of one graph, or of one inlined function call, may read.
struct scope {
  scope(node_emitter& e, scope* outer_scope) : emitter(&e), outer(outer_scope) {}
  node_emitter* emitter;
  scope* outer;  ///< of the graph around this body; null for the main graph and for functions
  std::unordered_map<std::string_view, value_id> names;
  std::unordered_map<std::string_view, value_id> promised;  ///< a function's outputs: values that the caller made
  std::unordered_map<std::string_view, const value_info_proto*> declared;
  std::vector<capture> captures;
  std::vector<opset_proto> opsets;
  const attribute_map* arguments = nullptr;  ///< attributes of the function call
  std::string prefix;
  std::size_t depth = 0;
};

/// A body whose inputs are not complete before its siblings' captures are known.
struct open_body {
  std::string attribute;
  std::shared_ptr<graph> body;
  std::vector<capture> captures;
};

/// Appends an input to a graph.
inline void add_to_inputs(graph& g, value_id id) {
  std::vector<value_id> inputs = g.inputs();
  inputs.push_back(id);
  g.set_inputs(std::move(inputs));
}

/// Facts from what the file declares of a value; dims that it leaves open become symbols. Errors: malformed_model for
/// what no value of a graph can be.
inline void apply_type(scope& s, value_facts& facts, const value_info_proto& info) {
  graph& g = s.emitter->target();
  const type_proto* type = &info.type;
  using kind = type_proto::kind;
  const auto bad = [&](const std::string& why) {
    throw error(errc::malformed_model,
                "at byte " + std::to_string(info.position) + ": value '" + std::string(info.name) + "' " + why);
  };
  switch (type->held) {
    case kind::none:
      return;
    case kind::tensor:
      facts.kind = value_kind::tensor;
      break;
    case kind::sequence:
      facts.kind = value_kind::sequence;
      break;
    case kind::optional:
      facts.kind = value_kind::optional;
      break;
    case kind::map:
      facts.kind = value_kind::map;
      break;
    case kind::sparse_tensor:
      bad("has a sparse type");
      break;
    case kind::opaque:
      bad("has an opaque type");
      break;
  }
  if (facts.kind == value_kind::map) return;
  while (type->element) type = type->element.get();
  if (type->held != kind::tensor) return;
  if (type->element_type < 0 || type->element_type >= static_cast<std::int64_t>(dtype_table.size()))
    bad("has unknown element type " + std::to_string(type->element_type));
  facts.type = static_cast<dtype>(type->element_type);
  if (facts.kind != value_kind::tensor || !type->dims) return;
  // Some exporters (Paddle2ONNX) name every dim that they do not know so: two of them are two dims.
  constexpr std::string_view unknown_dim = "?";
  shape dims;
  for (const dim_proto& d : *type->dims) {
    const bool negative = d.value && *d.value < 0;
    if (negative)
      s.emitter->warn(warning_code::negative_dim, std::string(info.name),
                      "'" + std::string(info.name) + "' is declared with a dim of " + std::to_string(*d.value) +
                          ", which counts as unknown");
    if (d.value && !negative)
      dims.emplace_back(*d.value);
    else if (!d.param.empty() && d.param != unknown_dim)
      dims.push_back(g.expressions().symbol(d.param));
    else
      dims.push_back(g.expressions().fresh(info.name));
  }
  facts.dims = std::move(dims);
  check_element_count(std::string(info.name), *facts.dims);
}

/// The value of that name as nodes of the scope read it; one from outside a body becomes a capture of it. Nothing where
/// no value has the name.
inline std::optional<value_id> lookup(scope& s, std::string_view name) {
  if (const auto found = s.names.find(name); found != s.names.end()) return found->second;
  if (s.outer == nullptr) return std::nullopt;
  const std::optional<value_id> outer = lookup(*s.outer, name);
  if (!outer || *outer == no_value) return outer;
  const value& captured = s.outer->emitter->target().value_at(*outer);
  graph& g = s.emitter->target();
  value_id inner = no_value;
  if (captured.facts.is_constant()) {
    inner = g.add_constant(captured.name, captured.facts.constant);
  } else {
    inner = g.add_value(captured.name);
    g.facts(inner) = captured.facts;
    s.captures.push_back({*outer, inner});
  }
  s.names.emplace(name, inner);
  return inner;
}

/// A new value of that name with what the file declares of it, or the one that the caller of a function made for it.
inline value_id new_value(scope& s, std::string_view name) {
  if (const auto found = s.promised.find(name); found != s.promised.end()) return found->second;
  graph& g = s.emitter->target();
  const value_id id = g.add_value(s.emitter->unique_name(s.prefix + std::string(name)));
  if (const auto found = s.declared.find(name); found != s.declared.end()) apply_type(s, g.facts(id), *found->second);
  return id;
}

/// Errors: duplicate_name.
inline void define(scope& s, std::string_view name, value_id id, std::size_t position) {
  if (!s.names.emplace(name, id).second)
    throw error(errc::duplicate_name,
                "at byte " + std::to_string(position) + ": value '" + std::string(name) + "' is defined twice");
}

/// Whether an initializer can be the default of the input of its name. Errors: type_mismatch, shape_mismatch.
inline void check_default(scope& s, const value_info_proto& info, const value_facts& initial) {
  value_facts stated;
  apply_type(s, stated, info);
  if (stated.type != dtype::undefined && stated.type != initial.type)
    throw error(errc::type_mismatch, "at byte " + std::to_string(info.position) + ": graph input '" +
                                         std::string(info.name) + "' is " + std::string(name_of(stated.type)) +
                                         ", its initializer " + std::string(name_of(initial.type)));
  if (stated.dims && stated.dims->size() != initial.dims->size())
    throw error(errc::shape_mismatch, "at byte " + std::to_string(info.position) + ": graph input '" +
                                          std::string(info.name) + "' is " + to_string(*stated.dims) +
                                          ", its initializer " + to_string(*initial.dims));
}

/// Gives every body the same captured inputs in the same order, and the node those values as its last inputs.
inline void close_bodies(const scope& s, std::vector<open_body>& bodies, pending_node& n) {
  if (bodies.empty()) return;
  std::vector<value_id> captured;
  for (const open_body& b : bodies)
    for (const capture& c : b.captures)
      if (std::find(captured.begin(), captured.end(), c.outer) == captured.end()) captured.push_back(c.outer);
  n.captured_begin = static_cast<std::uint32_t>(n.inputs.size());
  n.inputs.insert(n.inputs.end(), captured.begin(), captured.end());
  for (open_body& b : bodies) {
    for (const value_id outer : captured) {
      value_id inner = no_value;
      for (const capture& c : b.captures)
        if (c.outer == outer && inner == no_value) inner = c.inner;
      if (inner == no_value) {
        const value& v = s.emitter->target().value_at(outer);
        inner = b.body->add_value(v.name);
        b.body->facts(inner) = v.facts;
      }
      add_to_inputs(*b.body, inner);
    }
    // Two names of the body can stand for one outer value (a function's inputs); the first one serves both.
    for (const capture& c : b.captures)
      if (!b.body->is_input(c.inner))
        for (const capture& same : b.captures)
          if (same.outer == c.outer && b.body->is_input(same.inner)) b.body->replace_uses(c.inner, same.inner);
    n.attributes.set(b.attribute, subgraph(std::move(b.body)));
  }
}

}  // namespace dnnopt::onnx::detail

#endif  // DNNOPT_ONNX_GRAPH_SCOPE_HPP
