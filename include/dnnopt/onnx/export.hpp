// Owns the writing of graphs as standard ONNX models: operators as nodes, fused blocks as model-local functions.
#ifndef DNNOPT_ONNX_EXPORT_HPP
#define DNNOPT_ONNX_EXPORT_HPP

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <variant>
#include <vector>

#include <protozero/pbf_writer.hpp>

#include <dnnopt/error.hpp>
#include <dnnopt/graph.hpp>
#include <dnnopt/onnx/export_messages.hpp>
#include <dnnopt/onnx/export_opset.hpp>
#include <dnnopt/onnx/export_spread.hpp>
#include <dnnopt/onnx/external_data.hpp>
#include <dnnopt/ops/look_up.hpp>
#include <dnnopt/shape.hpp>
#include <dnnopt/tensor.hpp>

namespace dnnopt {

/// How a model is written.
struct export_options {
  /// Data files of the model that the graph came from; constants that still are their content refer to them, where the
  /// new model lies in `folder` too.
  std::vector<onnx::external_file> files;
  std::vector<onnx::external_reference> references;
  std::filesystem::path folder;
  /// Constants that together exceed this many bytes go to a file of their own beside the model, `<name>.data`.
  std::size_t largest_inline = std::size_t{64} << 20;
};

namespace onnx::detail {

class exporter {
 public:
  exporter(const graph& g, std::filesystem::path path, const export_options& options)
      : graph_(g), path_(std::move(path)), options_(options) {
    std::error_code failed;
    const auto same = [&](const std::filesystem::path& a, const std::filesystem::path& b) {
      const auto here = [](const std::filesystem::path& p) { return p.empty() ? std::filesystem::path(".") : p; };
      return std::filesystem::equivalent(here(a), here(b), failed) && !failed;
    };
    if (!options.references.empty() && same(options.folder, path_.parent_path()))
      for (const external_reference& r : options.references)
        if (!r.data.empty() && !options.files[r.file].missing) by_data_.emplace(r.data.data(), &r);
    external_own_ = own_bytes(g) > options.largest_inline;
  }

  void run() {
    const std::int64_t opset = opset_to_export(graph_);
    opsets_[""] = opset;
    // Names of the main graph are the file's interface and come first.
    names_in scope;
    for (const value_id id : graph_.inputs()) (void)name(graph_, id, scope);
    for (const value_id id : graph_.outputs()) (void)name(graph_, id, scope);
    std::string main;
    write_graph(main, graph_, scope, true);
    std::string model;
    protozero::pbf_writer out(model);
    out.add_int64(1, ir_version_of(opset));
    out.add_string(2, "dnnopt");
    out.add_message(7, main);
    for (const auto& [domain, version] : opsets_) out.add_message(8, opset_entry(domain, version));
    for (const auto& [key, held] : graph_.metadata) {
      std::string entry;
      protozero::pbf_writer fields(entry);
      fields.add_string(1, key);
      fields.add_string(2, held);
      out.add_message(14, entry);
    }
    for (const std::string& f : functions_) out.add_message(25, f);
    if (!data_.empty()) write_file(data_path(), data_);
    write_file(path_, {model});
  }

 private:
  // Exported names by value of one graph.
  using names_in = std::unordered_map<value_id, std::string>;

  [[nodiscard]] std::filesystem::path data_path() const {
    std::filesystem::path p = path_;
    p += ".data";
    return p;
  }

  [[nodiscard]] const external_reference* unchanged(const tensor& t) const {
    if (t.empty() || t.type() == dtype::string || t.byte_size() == 0) return nullptr;
    const auto found = by_data_.find(t.bytes().data());
    return found != by_data_.end() && found->second->data.size() == t.byte_size() ? found->second : nullptr;
  }
  [[nodiscard]] std::size_t own_bytes(const graph& g) const {
    std::size_t bytes = 0;
    for (value_id id = 0; id < g.value_count(); ++id) {
      const tensor& t = g.facts(id).constant;
      if (!t.empty() && !g.value_at(id).uses.empty() && unchanged(t) == nullptr) bytes += t.byte_size();
    }
    for (const node_id id : g.nodes())
      for (const auto& [key, held] : g.node_at(id).attributes)
        if (const auto* body = std::get_if<subgraph>(&held); body != nullptr && *body) bytes += own_bytes(**body);
    return bytes;
  }

  // --- names ---

  std::string unique(std::string wanted) {
    if (wanted.empty()) wanted = "value";
    if (taken_.insert(wanted).second) return wanted;
    for (std::size_t i = 1;; ++i) {
      std::string numbered = wanted + "_" + std::to_string(i);
      if (taken_.insert(numbered).second) return numbered;
    }
  }
  const std::string& name(const graph& g, value_id id, names_in& scope) {
    const auto [at, added] = scope.try_emplace(id);
    if (added) at->second = unique(g.value_at(id).name);
    return at->second;
  }

  // --- tensors ---

  std::string tensor_message(const tensor& t, const std::string& tensor_name) {
    std::string message;
    protozero::pbf_writer out(message);
    out.add_packed_int64(1, t.dims().begin(), t.dims().end());
    out.add_int32(2, static_cast<std::int32_t>(t.type()));
    if (t.type() == dtype::string) {
      for (const std::string& s : t.strings()) out.add_bytes(6, s);
      out.add_string(8, tensor_name);
      return message;
    }
    out.add_string(8, tensor_name);
    const auto external = [&](const std::string& location, std::size_t offset, std::size_t length) {
      for (const auto& [key, held] : {std::pair<std::string, std::string>("location", location),
                                      {"offset", std::to_string(offset)},
                                      {"length", std::to_string(length)}}) {
        std::string entry;
        protozero::pbf_writer fields(entry);
        fields.add_string(1, key);
        fields.add_string(2, held);
        out.add_message(13, entry);
      }
      out.add_int32(14, 1);
    };
    if (const external_reference* r = unchanged(t)) {
      external(options_.files[r->file].location, r->offset, r->data.size());
    } else if (external_own_ && t.byte_size() >= 1024) {
      const auto [place, added] = own_places_.try_emplace(t.bytes().data(), data_size_);
      if (added) {
        data_.push_back(file_bytes_of(t));
        data_.back().resize((data_.back().size() + 63) / 64 * 64);
        data_size_ += data_.back().size();
      }
      external(data_path().filename().string(), place->second, file_size_of(t));
    } else {
      out.add_bytes(9, file_bytes_of(t));
    }
    return message;
  }

  // --- attributes ---

  std::string attribute_message(const node& n, const std::string& key, const attribute& held, const graph& g,
                                names_in& scope) {
    std::string message;
    protozero::pbf_writer out(message);
    out.add_string(1, key);
    const auto typed = [&](std::int32_t type) { out.add_int32(20, type); };
    if (const auto* v = std::get_if<std::int64_t>(&held)) {
      out.add_int64(3, *v);
      typed(2);
    } else if (const auto* f = std::get_if<float>(&held)) {
      out.add_float(2, *f);
      typed(1);
    } else if (const auto* s = std::get_if<std::string>(&held)) {
      if (key == "type" && n.op->kind == computation_kind::container) {
        out.add_message(14, type_message(*s));
        typed(13);
      } else {
        out.add_bytes(4, *s);
        typed(3);
      }
    } else if (const auto* t = std::get_if<tensor>(&held)) {
      const bool was = std::exchange(external_own_, false);
      out.add_message(5, tensor_message(*t, ""));
      external_own_ = was;
      typed(4);
    } else if (const auto* body = std::get_if<subgraph>(&held)) {
      names_in inner;
      const std::size_t captured = n.inputs.size() - n.formal_inputs();
      const std::size_t formal = (*body)->inputs().size() - captured;
      for (std::size_t i = 0; i < captured; ++i)
        inner.emplace((*body)->inputs()[formal + i], name(g, n.inputs[n.formal_inputs() + i], scope));
      std::string content;
      write_graph(content, **body, inner, false, formal);
      out.add_message(6, content);
      typed(5);
    } else if (const auto* is = std::get_if<std::vector<std::int64_t>>(&held)) {
      for (const std::int64_t i : *is) out.add_int64(8, i);
      typed(7);
    } else if (const auto* fs = std::get_if<std::vector<float>>(&held)) {
      for (const float f1 : *fs) out.add_float(7, f1);
      typed(6);
    } else if (const auto* ss = std::get_if<std::vector<std::string>>(&held)) {
      for (const std::string& s1 : *ss) out.add_bytes(9, s1);
      typed(8);
    } else if (const auto* ts = std::get_if<std::vector<tensor>>(&held)) {
      for (const tensor& t1 : *ts) out.add_message(10, tensor_message(t1, ""));
      typed(9);
    }
    return message;
  }

  // --- nodes ---

  static bool is_block(const node& n) {
    return n.op->domain == "dnnopt" && n.attributes.contains("body") &&
           std::holds_alternative<subgraph>(*n.attributes.find("body"));
  }

  // Writes `n` as field `field` of `out`.
  void write_node(protozero::pbf_writer& out, protozero::pbf_tag_type field, const graph& g, const node& n,
                  names_in& scope) {
    if (n.op == &op_row<ops::look_up_op>) {
      // ONNX's Gather takes no bytes; negative indices count from the end, as the bits of negative codes do.
      const std::string code = name(g, n.inputs[0], scope);
      const std::string index =
          write_plain(out, field, "Cast", {code}, code + "_index", {{"to", static_cast<std::int64_t>(dtype::int32)}});
      out.add_message(field, plain_node("Gather", {name(g, n.inputs[1], scope), index}, name(g, n.outputs[0], scope)));
      return;
    }
    std::string message;
    protozero::pbf_writer fields(message);
    const bool block = is_block(n);
    const std::size_t shown = block ? n.inputs.size() : n.formal_inputs();
    const std::optional<whole_operand> spread = operand_to_spread(g, n);
    for (std::size_t i = 0; i < shown; ++i) {
      if (n.inputs[i] == no_value)
        fields.add_string(1, std::string());
      else if (spread && spread->input == i)
        fields.add_string(1, write_spread(out, field, g, n, *spread, scope));
      else
        fields.add_string(1, name(g, n.inputs[i], scope));
    }
    std::vector<std::string> constants;
    std::string function;
    if (block) {
      const graph& body = *std::get<subgraph>(*n.attributes.find("body"));
      function = write_function(n, body, constants);
      for (const std::string& c : constants) fields.add_string(1, c);
    }
    for (const value_id v : n.outputs) fields.add_string(2, v == no_value ? std::string() : name(g, v, scope));
    if (!n.name.empty()) fields.add_string(3, n.name);
    fields.add_string(4, block ? function : std::string(n.op->name));
    if (!n.op->domain.empty()) {
      fields.add_string(7, std::string(n.op->domain));
      const auto stated = graph_.opsets.find(std::string(n.op->domain));
      opsets_.try_emplace(std::string(n.op->domain), block || stated == graph_.opsets.end() ? 1 : stated->second);
    }
    if (!block)
      for (const auto& [key, held] : n.attributes) fields.add_message(5, attribute_message(n, key, held, g, scope));
    out.add_message(field, message);
  }

  // Writes a node of ai.onnx with one output and gives its name; its only attribute, if any, holds integers.
  std::string write_plain(protozero::pbf_writer& out, protozero::pbf_tag_type field, std::string_view op,
                          const std::vector<std::string>& inputs, std::string wanted,
                          const std::vector<std::pair<std::string, std::int64_t>>& numbers = {},
                          const std::vector<std::int64_t>& list = {}) {
    std::string made = unique(std::move(wanted));
    out.add_message(field, plain_node(op, inputs, made, numbers, list));
    return made;
  }

  // Writes an Expand of operand `row.input` to the extent that operand `row.like` has, and gives its name.
  std::string write_spread(protozero::pbf_writer& out, protozero::pbf_tag_type field, const graph& g, const node& n,
                           const whole_operand& row, names_in& scope) {
    const std::string own = name(g, n.inputs[row.input], scope);
    const shape& like = *g.facts(n.inputs[row.like]).dims;
    std::vector<std::int64_t> target(row.from_end, 1);
    std::string extents;
    if (const auto extent = like[like.size() - row.from_end].as_constant()) {
      target[0] = *extent;
      extents = write_plain(out, field, "Constant", {}, own + "_extents", {}, target);
    } else {
      const auto dim = -static_cast<std::int64_t>(row.from_end);
      std::vector<std::pair<std::string, std::int64_t>> only{{"start", dim}};
      if (dim != -1) only.emplace_back("end", dim + 1);
      std::vector<std::string> parts{
          write_plain(out, field, "Shape", {name(g, n.inputs[row.like], scope)}, own + "_extent", only)};
      target.pop_back();
      if (!target.empty()) parts.push_back(write_plain(out, field, "Constant", {}, own + "_ones", {}, target));
      extents = write_plain(out, field, "Concat", parts, own + "_extents", {{"axis", 0}});
    }
    return write_plain(out, field, "Expand", {own, extents}, own + "_spread");
  }

  void write_graph(std::string& target, const graph& g, names_in& scope, bool main, std::size_t formal = 0) {
    protozero::pbf_writer out(target);
    std::string nodes;
    protozero::pbf_writer node_out(nodes);
    std::vector<bool> initialized(g.value_count(), false);
    std::string tensors;
    protozero::pbf_writer tensor_out(tensors);
    const auto initialize = [&](value_id id) {
      if (id == no_value || initialized[id] || !g.facts(id).is_constant()) return;
      initialized[id] = true;
      tensor_out.add_message(5, tensor_message(g.facts(id).constant, name(g, id, scope)));
    };
    pending_initializers_.push_back(&tensor_out);
    for (const node_id id : g.topological_order()) {
      const node& n = g.node_at(id);
      for (const value_id v : n.inputs) initialize(v);
      write_node(node_out, 1, g, n, scope);
    }
    pending_initializers_.pop_back();
    const std::size_t inputs = main ? g.inputs().size() : formal;
    std::string infos;
    protozero::pbf_writer info_out(infos);
    for (std::size_t i = 0; i < inputs; ++i)
      info_out.add_message(11, value_info(g.facts(g.inputs()[i]), name(g, g.inputs()[i], scope)));
    std::unordered_set<value_id> listed;
    for (const value_id id : g.outputs()) {
      // A body's output must be made in it, and each output has a name of its own.
      const bool copied = !listed.insert(id).second || (!main && g.value_at(id).producer == no_node);
      std::string shown = name(g, id, scope);
      initialize(id);
      if (copied) {
        const std::string copy = unique(shown + "_output");
        node_out.add_message(1, plain_node("Identity", {shown}, copy));
        shown = copy;
      }
      info_out.add_message(12, value_info(g.facts(id), shown));
    }
    target += nodes;
    out.add_string(2, g.name.empty() ? std::string("graph") : g.name);
    target += tensors;
    target += infos;
  }

  // --- fused blocks ---

  // Writes the function of a block and gives its name. A function holds no initializers: small constants become
  // Constant nodes in it, larger ones inputs that the caller fills; `arguments` receives the caller's names for these.
  std::string write_function(const node& n, const graph& body, std::vector<std::string>& arguments) {
    std::string function_name = "Block_" + std::to_string(functions_.size());
    std::size_t shown = 0;
    for (const node_id id : body.topological_order()) {
      if (shown++ == 6) break;
      function_name += "_" + std::string(body.node_at(id).op->name);
    }
    const std::size_t place = functions_.size();
    functions_.emplace_back();
    // Names of a function are its own.
    std::unordered_set<std::string> outside = std::exchange(taken_, {});
    names_in scope;
    std::string message;
    protozero::pbf_writer out(message);
    out.add_string(1, function_name);
    for (const value_id v : body.inputs()) out.add_string(4, name(body, v, scope));
    std::string nodes;
    protozero::pbf_writer node_out(nodes);
    std::vector<std::pair<value_id, std::string>> large;
    std::unordered_set<value_id> seen;
    const auto constant = [&](value_id id) {
      if (id == no_value || !body.facts(id).is_constant() || !seen.insert(id).second) return;
      const tensor& t = body.facts(id).constant;
      if (t.type() != dtype::string && t.byte_size() > 64) {
        large.emplace_back(id, name(body, id, scope));
        return;
      }
      const std::string& own = name(body, id, scope);
      node_out.add_message(7, constant_node(tensor_message(t, ""), own));
    };
    for (const node_id id : body.topological_order())
      for (const value_id v : body.node_at(id).inputs) constant(v);
    for (const value_id v : body.outputs()) constant(v);
    for (const node_id id : body.topological_order()) write_node(node_out, 7, body, body.node_at(id), scope);
    for (const auto& [id, inner] : large) out.add_string(4, inner);
    std::unordered_set<value_id> listed;
    for (const value_id v : body.outputs()) {
      std::string shown_name = name(body, v, scope);
      if (!listed.insert(v).second || body.value_at(v).producer == no_node) {
        const std::string copy = unique(shown_name + "_output");
        node_out.add_message(7, plain_node("Identity", {shown_name}, copy));
        shown_name = copy;
      }
      out.add_string(5, shown_name);
    }
    taken_ = std::move(outside);
    message += nodes;
    protozero::pbf_writer rest(message);
    rest.add_message(9, opset_entry("", opsets_[""]));
    for (const auto& [domain, version] : opsets_)
      if (!domain.empty()) rest.add_message(9, opset_entry(domain, version));
    if (!opsets_.contains("dnnopt")) rest.add_message(9, opset_entry("dnnopt", 1));
    rest.add_string(10, "dnnopt");
    functions_[place] = std::move(message);
    for (const auto& [id, inner] : large) {
      arguments.push_back(unique(n.name + "/" + inner));
      pending_initializers_.back()->add_message(5, tensor_message(body.facts(id).constant, arguments.back()));
    }
    return function_name;
  }

  const graph& graph_;
  std::filesystem::path path_;
  const export_options& options_;
  std::unordered_map<const std::byte*, const external_reference*> by_data_;
  bool external_own_ = false;
  std::map<std::string, std::int64_t> opsets_;
  std::vector<std::string> functions_;
  std::unordered_set<std::string> taken_;
  std::vector<protozero::pbf_writer*> pending_initializers_;
  std::vector<std::string> data_;
  std::size_t data_size_ = 0;
  std::unordered_map<const std::byte*, std::size_t> own_places_;
};

}  // namespace onnx::detail

/// Writes `g` as a standard ONNX model. A node of domain "dnnopt" with a graph as attribute `body` (a fused block,
/// whose inputs and outputs are the body's in order) becomes a call of a model-local function, so that viewers draw it
/// and other engines run it. The model states the oldest opset (from 21) that knows every form in the graph.
///
/// Errors: file_io where a file cannot be written; graph_cycle. The written file appears whole or not at all.
inline void export_onnx(const graph& g, const std::filesystem::path& path, const export_options& options = {}) {
  onnx::detail::exporter(g, path, options).run();
}

}  // namespace dnnopt

#endif  // DNNOPT_ONNX_EXPORT_HPP
