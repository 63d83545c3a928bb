// Owns the exchange of halves: inputs and outputs of a model that the caller gives and gets as float16.
#ifndef DNNOPT_HALF_IO_HPP
#define DNNOPT_HALF_IO_HPP

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <dnnopt/model.hpp>

namespace dnnopt {

namespace detail {

/// A Cast of `from` to `type` that makes the value `to`.
inline void add_cast(model& m, value_id from, value_id to, dtype type) {
  attribute_map attributes;
  attributes.set("to", static_cast<std::int64_t>(type));
  const op_info& cast = m.ops.at("", "Cast");
  m.main.add_node(cast, m.main.value_at(to).name + "/Cast", {from}, {to}, std::move(attributes));
}

}  // namespace detail

/// Makes every float32 input and output of a model float16, as converters to half precision do that do not keep the
/// types of what is exchanged (onnxconverter-common's keep_io_types=False): a Cast behind each such input and before
/// each such output, which fusion joins with what stands there. Types are those that the model declares. Nothing else
/// of the model changes: what is stored and computed in halves is compile_options::precision's to say. An output beyond
/// 65504 is an infinity, as Cast makes it. Returns the names of the inputs, then of the outputs, that it changed.
/// O(values + nodes).
inline std::vector<std::string> exchange_halves(model& m) {
  graph& g = m.main;
  const auto is_float = [&](value_id v) {
    return g.facts(v).type == dtype::float32 && g.facts(v).kind == value_kind::tensor;
  };
  std::vector<std::string> changed;
  std::vector<value_id> outputs = g.outputs();
  for (const value_id v : std::vector<value_id>(g.inputs())) {
    if (!is_float(v)) continue;
    const value_id wide = g.add_value(g.value_at(v).name + "/float32", dtype::float32, g.facts(v).dims);
    g.replace_uses(v, wide);
    g.facts(v).type = dtype::float16;
    detail::add_cast(m, v, wide, dtype::float32);
    changed.push_back(g.value_at(v).name);
  }
  // An input that is an output too is passed on as it is.
  std::vector<std::pair<value_id, value_id>> narrowed;
  for (value_id& out : outputs) {
    if (!is_float(out)) continue;
    const auto made =
        std::find_if(narrowed.begin(), narrowed.end(), [&](const auto& pair) { return pair.first == out; });
    if (made != narrowed.end()) {
      out = made->second;
      continue;
    }
    const std::string name = g.value_at(out).name;
    const value_id half = g.add_value(name, dtype::float16, g.facts(out).dims);
    g.rename_value(out, name + "/float32");
    detail::add_cast(m, out, half, dtype::float16);
    narrowed.emplace_back(out, half);
    changed.push_back(name);
    out = half;
  }
  g.set_outputs(std::move(outputs));
  return changed;
}

}  // namespace dnnopt

#endif  // DNNOPT_HALF_IO_HPP
