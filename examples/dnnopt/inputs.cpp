// The inputs of a run: given as .npy files, or generated.
#include <dnnopt/npy.hpp>
#include <dnnopt/reference/parse_value.hpp>
#include <dnnopt/zoo/choose_dims.hpp>
#include <dnnopt/zoo/generate_inputs.hpp>

#include "support.hpp"

namespace tool {

namespace {

/// What was chosen for generated inputs.
struct generated_values {
  json dims = json::object();    ///< of symbols, by name
  json inputs = json::object();  ///< of inputs that are one integer, by name
};

/// Says on standard error what was chosen and which flags state something else, and puts it into `told`.
void tell_generated(const options& o, const generated_values& chosen, json* told) {
  const auto list = [](const json& values) {
    std::string text;
    for (const auto& [name, number] : values.items()) text += (text.empty() ? "" : ", ") + name + "=" + number.dump();
    return text;
  };
  if (!chosen.dims.empty()) note(o, "generated inputs have " + list(chosen.dims) + " (--dim NAME=N states others)");
  if (!chosen.inputs.empty())
    note(o, "generated inputs are " + list(chosen.inputs) + " (--input NAME=FILE.npy states others)");
  if (told == nullptr) return;
  if (!chosen.dims.empty()) (*told)["generated_dims"] = chosen.dims;
  if (!chosen.inputs.empty()) (*told)["generated_values"] = chosen.inputs;
}

/// The error of a graph for whose symbols no values were found, with the flags that state them.
dnnopt::error no_dims(const dnnopt::graph& g) {
  std::string flags;
  for (const auto& [symbol, side] : dnnopt::detail::symbols_of_inputs(g))
    flags += " --dim '" + g.expressions().symbol_name(symbol) + "=N'";
  return dnnopt::error(dnnopt::errc::usage,
                       "no sizes up to 2,048 were found that the model's shapes allow; state them:" + flags);
}

}  // namespace

dnnopt::tensor parse_value(const dnnopt::model& m, const std::string& name, const std::string& text) {
  if (text.ends_with(".npy")) return dnnopt::read_npy(text);
  for (const dnnopt::value_id id : m.main.inputs()) {
    if (m.main.value_at(id).name != name) continue;
    try {
      return dnnopt::reference::parse_value(m.main.facts(id), text);
    } catch (const dnnopt::error& e) {
      throw dnnopt::error(
          e.code(), "--value " + name + "=" + text + ": NUMBER, NUMBERS after commas or FILE.npy (" + e.what() + ")");
    }
  }
  throw dnnopt::error(dnnopt::errc::missing_input,
                      "the model has no input '" + name + "'" + dnnopt::detail::list_inputs(m.main));
}

dnnopt::named_tensors inputs_of(const dnnopt::model& m, const options& o, json* told) {
  const dnnopt::compile_options compiling = compile_options_of(o, m);
  dnnopt::graph g = bound_graph(m, compiling);
  for (const std::string& text : o.input_shapes) {
    const auto [name, dims] = parse_pair(text);
    dnnopt::bind_input_shape(g, name, parse_dims(dims));
  }
  std::map<std::string, dnnopt::tensor> given;
  for (const std::string& text : o.inputs) {
    const auto [name, file] = parse_pair(text);
    bool known = false;
    for (const dnnopt::value_id id : g.inputs()) known = known || g.value_at(id).name == name;
    if (!known)
      throw dnnopt::error(dnnopt::errc::missing_input,
                          "the model has no input '" + name + "'" + dnnopt::detail::list_inputs(g));
    given[name] = dnnopt::read_npy(file);
    dnnopt::bind_input_shape(g, name, given[name].dims());
  }
  generated_values chosen;
  const std::optional<dnnopt::dim_bindings> dims = dnnopt::choose_dims(g, compiling.ranges);
  if (!dims) throw no_dims(g);
  dnnopt::symbol_values values;
  for (const auto& [name, number] : *dims) {
    values.bind(*g.expressions().find(name), number);
    chosen.dims[name] = number;
  }
  const std::vector<dnnopt::tensor> generated = dnnopt::generate_inputs(g, o.seed, values);
  dnnopt::named_tensors result;
  for (std::size_t i = 0; i < g.inputs().size(); ++i) {
    const std::string& name = g.value_at(g.inputs()[i]).name;
    const auto found = given.find(name);
    const dnnopt::tensor& content = generated.at(i);
    const dnnopt::value_id id = g.inputs()[i];
    if (found == given.end() && dnnopt::is_integer(content.type()) && content.size() == 1 &&
        dnnopt::kind_of_input(g, id) == dnnopt::input_kind::ones)
      chosen.inputs[name] = dnnopt::generated_constant(g, id);
    result.add(name, found != given.end() ? found->second : content);
  }
  tell_generated(o, chosen, told);
  return result;
}

}  // namespace tool
