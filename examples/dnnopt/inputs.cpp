// The inputs of a run: given as .npy files, or generated.
#include <cmath>

#include <dnnopt/npy.hpp>

#include "support.hpp"

namespace tool {

namespace {

/// A counter-based generator (splitmix64): the same numbers on every machine.
double uniform(std::uint64_t seed, std::uint64_t i) {
  std::uint64_t z = seed * 0x9e3779b97f4a7c15ULL + i * 0xbf58476d1ce4e5b9ULL + 0x94d049bb133111ebULL;
  z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27U)) * 0x94d049bb133111ebULL;
  return static_cast<double>((z ^ (z >> 31U)) >> 11U) * 0x1.0p-53;
}

dnnopt::tensor generated_input(const dnnopt::graph& g, dnnopt::value_id id, std::uint64_t seed) {
  const dnnopt::value& v = g.value_at(id);
  dnnopt::dim_list dims;
  for (const dnnopt::index_expr& d : *v.facts.dims) dims.push_back(d.is_constant() ? d.constant() : 1);
  dnnopt::tensor t(v.facts.type, dims);
  const auto count = static_cast<std::size_t>(t.size());
  if (v.facts.type == dnnopt::dtype::float32) {
    auto data = t.mutable_data<float>();
    for (std::size_t i = 0; i < count; ++i) data[i] = static_cast<float>((uniform(seed, 2 * i) + uniform(seed, 2 * i + 1) - 1.0) * 2.449);
  } else if (v.facts.type == dnnopt::dtype::int64) {
    auto data = t.mutable_data<std::int64_t>();
    const bool mask = v.name.find("mask") != std::string::npos;
    for (std::size_t i = 0; i < count; ++i) data[i] = mask ? 1 : 1 + static_cast<std::int64_t>(uniform(seed, i) * 998.0);
  }
  return t;
}

}  // namespace

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
  dnnopt::named_tensors result;
  for (const dnnopt::value_id id : g.inputs()) {
    const dnnopt::value& v = g.value_at(id);
    if (const auto found = given.find(v.name); found != given.end())
      result.add(v.name, found->second);
    else
      result.add(v.name, generated_input(g, id, o.seed));
  }
  return result;
}

}  // namespace tool
