// Owns a model as programs hold it: the imported graph with its operators, and the binding of symbolic dims.
#ifndef DNNOPT_MODEL_HPP
#define DNNOPT_MODEL_HPP

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <span>
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
  std::vector<onnx::external_file> files;             ///< data files that the model refers to
  std::vector<onnx::external_reference> references;   ///< tensors that lie in them
  std::size_t constant_nodes = 0;                     ///< Constant nodes of the file, which became constants
  std::vector<std::string> default_inputs{};          ///< graph inputs with a default value, which became constants
  std::vector<onnx::dead_node> dead_nodes{};          ///< nodes that lead to no output and were left out
  std::vector<warning> warnings{};                    ///< where the file contradicts itself, and how it was read
  std::map<std::string, std::int64_t> file_opsets{};  ///< what the file states, by domain ("" is ai.onnx)
};

namespace detail {

[[nodiscard]] inline import_options import_options_of(const load_options& options) {
  import_options import;
  import.ops = options.ops;
  import.missing_data = options.missing_data;
  import.limits = options.limits;
  import.overridden_inputs = options.overridden_inputs;
  return import;
}

[[nodiscard]] inline model model_of(imported_model imported, load_options options, std::filesystem::path path) {
  return {std::move(imported.main),           std::move(options.ops),         std::move(path),
          std::move(imported.files),          std::move(imported.references), imported.constant_nodes,
          std::move(imported.default_inputs), std::move(imported.dead_nodes), std::move(imported.warnings),
          std::move(imported.file_opsets)};
}

}  // namespace detail

/// Reads an .onnx file. Errors: as import_model.
[[nodiscard]] inline model load(const std::filesystem::path& path, load_options options = {}) {
  const import_options import = detail::import_options_of(options);
  return detail::model_of(import_model(path, import), std::move(options), path);
}

/// The same for the content of an .onnx file, which is copied; data files that it names are looked for in `folder`.
[[nodiscard]] inline model load(std::span<const std::byte> content, const std::filesystem::path& folder,
                                load_options options = {}) {
  const import_options import = detail::import_options_of(options);
  return detail::model_of(import_model(content, folder, import), std::move(options), {});
}

/// Values for symbolic dims by name.
using dim_bindings = std::map<std::string, std::int64_t>;

/// What a symbolic dim may be: a multiple of `multiple` from `low` to `high`. Precondition: 0 <= low <= high, multiple
/// > 0.
struct dim_range {
  std::int64_t low = 0;
  std::int64_t high = unbounded;
  std::int64_t multiple = 1;
};

/// Ranges of symbolic dims by name.
using dim_ranges = std::map<std::string, dim_range>;

namespace detail {

/// Puts `by(number of a symbol)` in the place of symbols in all facts of a graph; nothing leaves a symbol as it is.
template <class By>
void replace_symbols(graph& g, By&& by) {
  const auto replaced = [&](const index_expr& e) {
    return substitute(e, [&](const index_expr& symbol) {
      std::optional<index_expr> other = by(*symbol.as_symbol());
      return other ? *std::move(other) : symbol;
    });
  };
  for (value_id v = 0; v < g.value_count(); ++v) {
    value_facts& facts = g.facts(v);
    if (facts.dims)
      for (index_expr& dim : *facts.dims) dim = replaced(dim);
    if (facts.elements)
      for (index_expr& e : *facts.elements) e = replaced(e);
  }
}

}  // namespace detail

namespace detail {

/// "; there are 'a', 'b'" of the names of a graph's inputs, or "; there are none".
[[nodiscard]] inline std::string list_inputs(const graph& g) {
  std::string text;
  for (const value_id id : g.inputs()) text += (text.empty() ? "'" : ", '") + g.value_at(id).name + "'";
  return text.empty() ? "; there are none" : "; there are " + text;
}

/// The same of the symbols that dims of inputs are.
[[nodiscard]] inline std::string list_symbols(const graph& g) {
  std::vector<std::string> names;
  for (const value_id id : g.inputs())
    if (const auto& dims = g.facts(id).dims)
      for (const index_expr& dim : *dims)
        if (const auto symbol = dim.as_symbol()) {
          const std::string& name = g.expressions().symbol_name(*symbol);
          if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
        }
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "'" : ", '") + name + "'";
  return text.empty() ? "; there are none" : "; there are " + text;
}

/// The number of the symbolic dim of that name. Errors: invalid_argument where the model declares none.
[[nodiscard]] inline std::uint32_t dim_of_model(const graph& g, const std::string& name) {
  const auto symbol = g.expressions().find(name);
  if (!symbol || g.expressions().symbol_at(*symbol).kind() != symbol_kind::dim)
    throw error(errc::invalid_argument, "the model has no symbolic dim '" + name + "'" + list_symbols(g));
  return *symbol;
}

}  // namespace detail

/// Replaces symbols of the graph's facts by numbers. Errors: invalid_argument for a name that no input has.
inline void bind_dims(graph& g, const dim_bindings& bindings) {
  if (bindings.empty()) return;
  std::map<std::uint32_t, std::int64_t> by_symbol;
  for (const auto& [name, number] : bindings) {
    const std::uint32_t symbol = detail::dim_of_model(g, name);
    by_symbol[symbol] = number;
  }
  detail::replace_symbols(g, [&](std::uint32_t symbol) -> std::optional<index_expr> {
    const auto found = by_symbol.find(symbol);
    return found == by_symbol.end() ? std::nullopt : std::optional(index_expr(found->second));
  });
}

/// Tells what symbolic dims may be: each becomes a symbol of that range, or a multiple of one (named as in "batch/8 in
/// 1:4"), so that shape propagation proves what holds within the range, and a run refuses what lies outside (SoD2,
/// section 3, has symbolic constants without ranges). Errors: invalid_argument for a name that no input has and for an
/// empty range.
inline void bind_ranges(graph& g, const dim_ranges& ranges) {
  if (ranges.empty()) return;
  std::map<std::uint32_t, index_expr> by_symbol;
  for (const auto& [name, range] : ranges) {
    const std::uint32_t symbol = detail::dim_of_model(g, name);
    const std::int64_t multiple = range.multiple;
    const std::string text = "the range of '" + name + "', " + std::to_string(range.low) + " to " +
                             std::to_string(range.high) + " in multiples of " + std::to_string(multiple) + ", ";
    if (range.low < 0 || multiple < 1) throw error(errc::invalid_argument, text + "is none of a dim");
    const expr_range parts{(range.low + multiple - 1) / multiple,
                           range.high >= unbounded ? unbounded : range.high / multiple};
    if (parts.low > parts.high) throw error(errc::invalid_argument, text + "holds no number");
    // A name for each range, for the expressions are shared with other sessions of the model.
    const std::string own = name + (multiple == 1 ? "" : "/" + std::to_string(multiple)) + " in " +
                            std::to_string(parts.low) + ":" + std::to_string(parts.high);
    by_symbol.emplace(symbol, g.expressions().symbol(own, parts, symbol_kind::part) * multiple);
  }
  detail::replace_symbols(g, [&](std::uint32_t symbol) -> std::optional<index_expr> {
    const auto found = by_symbol.find(symbol);
    return found == by_symbol.end() ? std::nullopt : std::optional(found->second);
  });
}

/// Refuses numbers for symbolic dims that a range stated for them does not hold. Errors: invalid_argument.
inline void require_in_ranges(const dim_bindings& bindings, const dim_ranges& ranges) {
  for (const auto& [name, number] : bindings) {
    const auto found = ranges.find(name);
    if (found == ranges.end()) continue;
    const dim_range& range = found->second;
    if (number < range.low || number > range.high || number % std::max<std::int64_t>(range.multiple, 1) != 0)
      throw error(errc::invalid_argument, "dim '" + name + "' is " + std::to_string(number) + ", its range " +
                                              std::to_string(range.low) + " to " + std::to_string(range.high) +
                                              " in multiples of " + std::to_string(range.multiple));
  }
}

/// Gives a graph input the shape `dims`, binding the symbols that its dims are, which it returns.
/// Errors: missing_input for an unknown name; shape_mismatch where a constant dim differs or the rank does.
inline dim_bindings bind_input_shape(graph& g, std::string_view input, const dim_list& dims) {
  for (const value_id id : g.inputs()) {
    const value& v = g.value_at(id);
    if (v.name != input) continue;
    if (!v.facts.dims) {
      g.facts(id).dims = to_shape(dims);
      return {};
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
    return bindings;
  }
  throw error(errc::missing_input, "the model has no input '" + std::string(input) + "'" + detail::list_inputs(g));
}

/// Makes inputs constants, which binds the symbols in their dims. Errors: missing_input, type_mismatch, shape_mismatch.
inline void bind_values(graph& g, const std::map<std::string, tensor>& values) {
  for (const auto& [name, content] : values) {
    (void)bind_input_shape(g, name, content.dims());
    std::vector<value_id> left;
    for (const value_id id : g.inputs()) {
      const value& v = g.value_at(id);
      if (v.name != name) {
        left.push_back(id);
        continue;
      }
      if (v.facts.type != dtype::undefined && content.type() != v.facts.type)
        throw error(errc::type_mismatch, "input '" + name + "' is " + std::string(name_of(v.facts.type)) + ", not " +
                                             std::string(name_of(content.type())));
      g.make_constant(id, content);
    }
    g.set_inputs(std::move(left));
  }
}

}  // namespace dnnopt

#endif  // DNNOPT_MODEL_HPP
