// Owns a model as programs hold it: the imported graph with its operators, and the binding of symbolic dims.
#ifndef DNNOPT_MODEL_HPP
#define DNNOPT_MODEL_HPP

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dnnopt/graph.hpp>
#include <dnnopt/onnx/import.hpp>
#include <dnnopt/ops/standard.hpp>

namespace dnnopt {

/// What load is told.
struct load_options {
  op_set ops = standard_ops();  ///< add rows of your own operators here
  onnx::missing_data missing_data = onnx::missing_data::fail;
  onnx::import_limits limits{};
  /// Graph inputs with a default value that runs will give: they stay inputs instead of constants (IR version 4 on).
  std::vector<std::string> overridden_inputs{};
};

/// A loaded model. A value; copies share constants.
struct model {
  graph main;
  op_set ops;
  std::filesystem::path path;
  std::vector<onnx::external_file> files;            ///< data files that the model refers to
  std::vector<onnx::external_reference> references;  ///< tensors that lie in them
  std::size_t constant_nodes = 0;                    ///< Constant nodes of the file, which became constants
  std::vector<std::string> default_inputs{};         ///< graph inputs with a default value, which became constants
  std::vector<onnx::dead_node> dead_nodes{};         ///< nodes that lead to no output and were left out
  std::vector<warning> warnings{};                   ///< where the file contradicts itself, and how it was read
};

/// Reads an .onnx file. Errors: as import_model.
[[nodiscard]] inline model load(const std::filesystem::path& path, load_options options = {}) {
  import_options import;
  import.ops = options.ops;
  import.missing_data = options.missing_data;
  import.limits = options.limits;
  import.overridden_inputs = std::move(options.overridden_inputs);
  imported_model imported = import_model(path, import);
  return {std::move(imported.main),           std::move(options.ops),         path,
          std::move(imported.files),          std::move(imported.references), imported.constant_nodes,
          std::move(imported.default_inputs), std::move(imported.dead_nodes), std::move(imported.warnings)};
}

/// Values for symbolic dims by name.
using dim_bindings = std::map<std::string, std::int64_t>;

/// Replaces symbols of the graph's facts by numbers. Errors: invalid_argument for a name that no input has.
inline void bind_dims(graph& g, const dim_bindings& bindings) {
  if (bindings.empty()) return;
  std::map<std::uint32_t, std::int64_t> by_symbol;
  for (const auto& [name, number] : bindings) {
    const auto symbol = g.expressions().find(name);
    if (!symbol) throw error(errc::invalid_argument, "the model has no symbolic dim '" + name + "'");
    by_symbol[*symbol] = number;
  }
  const auto bind = [&](const index_expr& e) {
    return substitute(e, [&](const index_expr& symbol) {
      const auto found = by_symbol.find(*symbol.as_symbol());
      return found == by_symbol.end() ? symbol : index_expr(found->second);
    });
  };
  for (value_id v = 0; v < g.value_count(); ++v) {
    value_facts& facts = g.facts(v);
    if (facts.dims)
      for (index_expr& dim : *facts.dims) dim = bind(dim);
    if (facts.elements)
      for (index_expr& e : *facts.elements) e = bind(e);
  }
}

/// Gives a graph input the shape `dims`, binding the symbols that its dims are.
/// Errors: missing_input for an unknown name; shape_mismatch where a constant dim differs or the rank does.
inline void bind_input_shape(graph& g, std::string_view input, const dim_list& dims) {
  for (const value_id id : g.inputs()) {
    const value& v = g.value_at(id);
    if (v.name != input) continue;
    if (!v.facts.dims) {
      g.facts(id).dims = to_shape(dims);
      return;
    }
    const shape declared = *v.facts.dims;
    if (declared.size() != dims.size())
      throw error(errc::shape_mismatch,
                  "input '" + v.name + "' has shape " + to_string(declared) + ", not " + to_string(dims));
    dim_bindings bindings;
    for (std::size_t k = 0; k < dims.size(); ++k) {
      if (const auto symbol = declared[k].as_symbol())
        bindings[g.expressions().symbol_name(*symbol)] = dims[k];
      else if (!(declared[k] == index_expr(dims[k])))
        throw error(errc::shape_mismatch,
                    "input '" + v.name + "' has shape " + to_string(declared) + ", not " + to_string(dims));
    }
    bind_dims(g, bindings);
    return;
  }
  throw error(errc::missing_input, "the model has no input '" + std::string(input) + "'");
}

}  // namespace dnnopt

#endif  // DNNOPT_MODEL_HPP
