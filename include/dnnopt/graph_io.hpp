// Owns the printed forms of graphs: a readable text, the same for equal graphs, and Graphviz DOT.
#ifndef DNNOPT_GRAPH_IO_HPP
#define DNNOPT_GRAPH_IO_HPP

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <variant>
#include <vector>

#include <dnnopt/dtype.hpp>
#include <dnnopt/graph.hpp>
#include <dnnopt/shape.hpp>
#include <dnnopt/small_float.hpp>
#include <dnnopt/tensor.hpp>

namespace dnnopt {

/// Tensors of more elements than this are printed without their elements.
inline constexpr std::int64_t largest_printed_tensor = 8;

namespace detail {

/// The shortest text that reads back as the same number.
template <class T>
std::string number_text(T v) {
  std::array<char, 32> buffer{};
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), v);
  return std::string(buffer.data(), end.ptr);
}

/// `s` in quotes; quotes, backslashes and control characters are escaped.
inline std::string quoted(std::string_view s) {
  constexpr std::string_view hex = "0123456789abcdef";
  std::string text = "\"";
  for (const char c : s) {
    const auto code = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\')
      text += {'\\', c};
    else if (c == '\n')
      text += "\\n";
    else if (code < 0x20)
      text += {'\\', 'x', hex[code >> 4], hex[code & 15]};
    else
      text += c;
  }
  return text + "\"";
}

template <class T, class Print>
std::string list_text(const T& items, Print&& print) {
  std::string text = "[";
  bool first = true;
  for (const auto& item : items) {
    if (!first) text += ", ";
    first = false;
    text += print(item);
  }
  return text + "]";
}

inline std::string elements_text(const tensor& t) {
  const auto numbers = [&]<class T>(T) {
    return list_text(t.data<T>(), [](T v) {
      if constexpr (std::is_same_v<T, bool>)
        return std::string(v ? "true" : "false");
      else if constexpr (std::is_arithmetic_v<T>)
        return number_text(v);
      else
        return number_text(static_cast<float>(v));
    });
  };
  switch (t.type()) {
    case dtype::float32:
      return numbers(float{});
    case dtype::float64:
      return numbers(double{});
    case dtype::int64:
      return numbers(std::int64_t{});
    case dtype::int32:
      return numbers(std::int32_t{});
    case dtype::int16:
      return numbers(std::int16_t{});
    case dtype::int8:
    case dtype::int4:
    case dtype::int2:
      return numbers(std::int8_t{});
    case dtype::uint64:
      return numbers(std::uint64_t{});
    case dtype::uint32:
      return numbers(std::uint32_t{});
    case dtype::uint16:
      return numbers(std::uint16_t{});
    case dtype::uint8:
    case dtype::uint4:
    case dtype::uint2:
      return numbers(std::uint8_t{});
    case dtype::boolean:
      return numbers(bool{});
    case dtype::float16:
      return numbers(float16{});
    case dtype::bfloat16:
      return numbers(bfloat16{});
    case dtype::float8e4m3fn:
      return numbers(float8e4m3fn{});
    case dtype::float8e4m3fnuz:
      return numbers(float8e4m3fnuz{});
    case dtype::float8e5m2:
      return numbers(float8e5m2{});
    case dtype::float8e5m2fnuz:
      return numbers(float8e5m2fnuz{});
    case dtype::float4e2m1:
      return numbers(float4e2m1{});
    case dtype::float8e8m0:
      return numbers(float8e8m0{});
    case dtype::string:
      return list_text(t.strings(), [](const std::string& s) { return detail::quoted(s); });
    default:
      return "...";
  }
}

inline std::string type_text(const value_facts& facts) {
  std::string text(facts.type == dtype::undefined ? "?" : name_of(facts.type));
  text += facts.dims ? to_string(*facts.dims) : std::string("[*]");
  switch (facts.kind) {
    case value_kind::tensor:
      return text;
    case value_kind::sequence:
      return "sequence(" + std::string(name_of(facts.type)) + ")";
    case value_kind::optional:
      return "optional(" + std::string(name_of(facts.type)) + ")";
    case value_kind::map:
      return "map";
  }
  return text;
}

}  // namespace detail

/// "float32 2x3 [1, 2, ...]": type and dims, and the elements of small tensors.
[[nodiscard]] inline std::string to_string(const tensor& t) {
  if (t.empty()) return "absent";
  std::string text = std::string(name_of(t.type())) + " " + to_string(std::span<const std::int64_t>(t.dims()));
  if (t.size() <= largest_printed_tensor) text += " " + detail::elements_text(t);
  return text;
}

[[nodiscard]] std::string to_string(const graph& g);

/// An attribute's value; a subgraph is printed by its name.
[[nodiscard]] inline std::string to_string(const attribute& a) {
  struct printer {
    std::string operator()(std::int64_t v) const { return std::to_string(v); }
    std::string operator()(float v) const { return detail::number_text(v); }
    std::string operator()(const std::string& v) const { return detail::quoted(v); }
    std::string operator()(const tensor& v) const { return to_string(v); }
    std::string operator()(const subgraph& v) const { return "graph " + detail::quoted(v ? v->name : std::string()); }
    std::string operator()(const std::vector<std::int64_t>& v) const { return detail::list_text(v, *this); }
    std::string operator()(const std::vector<float>& v) const { return detail::list_text(v, *this); }
    std::string operator()(const std::vector<std::string>& v) const { return detail::list_text(v, *this); }
    std::string operator()(const std::vector<tensor>& v) const { return detail::list_text(v, *this); }
  };
  return std::visit(printer{}, a);
}

namespace detail {

inline std::string value_text(const graph& g, value_id id) {
  if (id == no_value) return "-";
  const std::string& name = g.value_at(id).name;
  return "%" + (name.empty() ? std::to_string(id) : name);
}

// The attributes of one node, sorted by name so that their order of insertion does not show.
inline std::string attributes_text(const node& n) {
  std::vector<std::pair<std::string, std::string>> rows;
  for (const auto& [key, held] : n.attributes)
    if (!std::holds_alternative<subgraph>(held)) rows.emplace_back(key, to_string(held));
  if (rows.empty()) return "";
  std::sort(rows.begin(), rows.end());
  std::string text = " {";
  for (std::size_t i = 0; i < rows.size(); ++i) text += (i == 0 ? "" : ", ") + rows[i].first + "=" + rows[i].second;
  return text + "}";
}

// The bodies of one node, sorted by name.
inline std::vector<std::pair<std::string, subgraph>> bodies_of(const node& n) {
  std::vector<std::pair<std::string, subgraph>> bodies;
  for (const auto& [key, held] : n.attributes)
    if (const auto* body = std::get_if<subgraph>(&held); body != nullptr && *body) bodies.emplace_back(key, *body);
  std::sort(bodies.begin(), bodies.end());
  return bodies;
}

inline void print(const graph& g, const std::string& indent, std::string& out) {
  const auto typed = [&](value_id id) {
    return id == no_value ? std::string("-") : value_text(g, id) + " " + type_text(g.facts(id));
  };
  out += indent + "graph " + detail::quoted(g.name) + " (";
  for (std::size_t i = 0; i < g.inputs().size(); ++i) out += (i == 0 ? "" : ", ") + typed(g.inputs()[i]);
  out += ")\n";
  const std::vector<node_id> order = g.topological_order();
  std::vector<bool> shown(g.value_count(), false);
  const auto show_constant = [&](value_id id) {
    if (id == no_value || shown[id] || !g.facts(id).is_constant()) return;
    shown[id] = true;
    out += indent + "  " + value_text(g, id) + " = constant " + to_string(g.facts(id).constant) + "\n";
  };
  for (const node_id id : order) {
    const node& n = g.node_at(id);
    for (const value_id v : n.inputs) show_constant(v);
    out += indent + "  ";
    for (std::size_t i = 0; i < n.outputs.size(); ++i) out += (i == 0 ? "" : ", ") + typed(n.outputs[i]);
    out += (n.outputs.empty() ? "" : " = ") + (n.op->domain.empty() ? std::string() : std::string(n.op->domain) + ".") +
           std::string(n.op->name) + "(";
    for (std::size_t i = 0; i < n.inputs.size(); ++i) {
      out += i == 0 ? "" : i == n.captured_begin ? "; " : ", ";
      if (i == 0 && n.captured_begin == 0) out += "; ";
      out += value_text(g, n.inputs[i]);
    }
    out += ")" + attributes_text(n) + "\n";
    for (const auto& [key, body] : bodies_of(n)) {
      out += indent + "    " + key + ":\n";
      print(*body, indent + "      ", out);
    }
  }
  for (const value_id id : g.outputs()) show_constant(id);
  out += indent + "  return ";
  for (std::size_t i = 0; i < g.outputs().size(); ++i) out += (i == 0 ? "" : ", ") + value_text(g, g.outputs()[i]);
  out += "\n";
}

/// The colour of an operator's box in a drawing, by what it computes.
[[nodiscard]] constexpr std::string_view colour_of(computation_kind kind) noexcept {
  switch (kind) {
    case computation_kind::convolution:
    case computation_kind::matrix_product:
    case computation_kind::attention:
      return "#cfe2ff";
    case computation_kind::reduction:
    case computation_kind::softmax:
    case computation_kind::normalization:
    case computation_kind::pooling:
    case computation_kind::resampling:
    case computation_kind::scan:
    case computation_kind::sorting:
      return "#d1e7dd";
    case computation_kind::view:
    case computation_kind::indexed_read:
    case computation_kind::indexed_write:
      return "#fff3cd";
    case computation_kind::control_flow:
    case computation_kind::container:
      return "#f8d7da";
    case computation_kind::element_wise:
      return "white";
    default:
      return "#e9ecef";
  }
}

/// The blocks that a pass planned as frames around their nodes; of several blocks with a node the first one has it.
inline void print_blocks(const graph& g, const std::string& prefix, const std::string& indent, std::string& out) {
  std::unordered_set<node_id> framed;
  for (std::size_t i = 0; i < g.blocks().size(); ++i) {
    const fused_block& block = g.blocks()[i];
    if (block.members.size() < 2) continue;
    const node_id named = block.anchor != no_node ? block.anchor : block.members.back();
    out += indent + "subgraph " + detail::quoted("cluster_" + prefix + "block" + std::to_string(i)) +
           " { label=" + detail::quoted(std::string(g.node_at(named).op->name) + " " + g.node_at(named).name) +
           "; color=\"#6c757d\";";
    for (const node_id id : block.members) {
      if (framed.insert(id).second) out += " " + detail::quoted(prefix + "n" + std::to_string(id)) + ";";
    }
    out += " }\n";
  }
}

inline void print_dot(const graph& g, const std::string& prefix, const std::string& indent,
                      const std::unordered_map<node_id, std::string>& notes, std::string& out) {
  const auto value_node = [&](value_id id) { return detail::quoted(prefix + "v" + std::to_string(id)); };
  const auto node_node = [&](node_id id) { return detail::quoted(prefix + "n" + std::to_string(id)); };
  const auto source = [&](value_id id) {
    return g.value_at(id).producer == no_node ? value_node(id) : node_node(g.value_at(id).producer);
  };
  for (const value_id id : g.inputs())
    out += indent + value_node(id) +
           " [shape=ellipse, label=" + detail::quoted(g.value_at(id).name + "\n" + type_text(g.facts(id))) + "];\n";
  for (const node_id id : g.topological_order()) {
    const node& n = g.node_at(id);
    std::string label = std::string(n.op->name) + "\n" + n.name;
    for (const value_id v : n.inputs)
      if (v != no_value && g.facts(v).is_constant()) label += "\n" + g.value_at(v).name + ": " + type_text(g.facts(v));
    if (const auto note = notes.find(id); note != notes.end()) label += "\n" + note->second;
    out += indent + node_node(id) + " [label=" + detail::quoted(label) + ", fillcolor=\"" +
           std::string(colour_of(n.op->kind)) + "\"];\n";
    for (const value_id v : n.inputs)
      if (v != no_value && !g.facts(v).is_constant())
        out +=
            indent + source(v) + " -> " + node_node(id) + " [label=" + detail::quoted(type_text(g.facts(v))) + "];\n";
    for (const auto& [key, body] : bodies_of(n)) {
      const std::string inner = prefix + "n" + std::to_string(id) + "." + key + ".";
      out += indent + "subgraph " + detail::quoted("cluster_" + inner) + " {\n" + indent +
             "  label=" + detail::quoted(std::string(n.op->name) + " " + key) + ";\n";
      print_dot(*body, inner, indent + "  ", {}, out);
      out += indent + "}\n";
    }
  }
  print_blocks(g, prefix, indent, out);
  for (std::size_t i = 0; i < g.outputs().size(); ++i) {
    const value_id id = g.outputs()[i];
    const std::string sink = detail::quoted(prefix + "out" + std::to_string(i));
    out += indent + sink +
           " [shape=ellipse, label=" + detail::quoted(g.value_at(id).name + "\n" + type_text(g.facts(id))) + "];\n";
    if (g.facts(id).is_constant()) continue;
    out += indent + source(id) + " -> " + sink + ";\n";
  }
}

}  // namespace detail

/// The graph as text: one line per node in topological order, small constants with their elements, bodies indented.
/// Graphs that differ only in ids, in the order of attributes, or in unread values print alike.
/// Errors: graph_cycle. O(V + E).
[[nodiscard]] inline std::string to_string(const graph& g) {
  std::string out;
  detail::print(g, "", out);
  return out;
}

/// The graph in Graphviz DOT: operators are boxes, coloured by what they compute, those that run as one kernel stand in
/// a frame (graph::blocks), bodies are clusters, edges carry types. `notes` are further lines of boxes, not of bodies.
/// Errors: graph_cycle.
[[nodiscard]] inline std::string to_dot(const graph& g, const std::unordered_map<node_id, std::string>& notes = {}) {
  std::string out = "digraph " + detail::quoted(g.name) + " {\n  node [shape=box, style=filled, fillcolor=white];\n";
  detail::print_dot(g, "", "  ", notes, out);
  return out + "}\n";
}

}  // namespace dnnopt

#endif  // DNNOPT_GRAPH_IO_HPP
