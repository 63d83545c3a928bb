// The inputs of a run: given as .npy files, or generated.
#include <dnnopt/npy.hpp>
#include <dnnopt/zoo/generate_inputs.hpp>

#include "support.hpp"

namespace tool {

dnnopt::named_tensors inputs_of(const dnnopt::model& m, const options& o) {
  const dnnopt::compile_options compiling = compile_options_of(o);
  dnnopt::graph g = m.main;
  dnnopt::bind_dims(g, compiling.dims);
  for (const auto& [input, dims] : compiling.shapes) dnnopt::bind_input_shape(g, input, dims);
  std::map<std::string, dnnopt::tensor> given;
  for (const std::string& text : o.inputs) {
    const auto [name, file] = parse_pair(text);
    bool known = false;
    for (const dnnopt::value_id id : g.inputs()) known = known || g.value_at(id).name == name;
    if (!known) throw dnnopt::error(dnnopt::errc::missing_input, "the model has no input '" + name + "'");
    given[name] = dnnopt::read_npy(file);
    dnnopt::bind_input_shape(g, name, given[name].dims());
  }
  // What is still symbolic counts as 1 in generated inputs.
  dnnopt::symbol_values ones;
  for (std::uint32_t symbol = 0; symbol < g.expressions().symbol_count(); ++symbol) ones.bind(symbol, 1);
  const std::vector<dnnopt::tensor> generated = dnnopt::generate_inputs(g, o.seed, ones);
  dnnopt::named_tensors result;
  for (std::size_t i = 0; i < g.inputs().size(); ++i) {
    const std::string& name = g.value_at(g.inputs()[i]).name;
    const auto found = given.find(name);
    result.add(name, found != given.end() ? found->second : generated.at(i));
  }
  return result;
}

}  // namespace tool
