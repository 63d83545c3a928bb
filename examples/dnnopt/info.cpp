// dnnopt info
#include <map>

#include <dnnopt/backend/codegen/lower.hpp>
#include <dnnopt/backend/program/make_program.hpp>

#include "support.hpp"

namespace tool {

namespace {

json dims_of(const dnnopt::value_facts& facts) {
  json dims = json::array();
  if (facts.dims)
    for (const dnnopt::index_expr& d : *facts.dims) {
      if (d.is_constant())
        dims.push_back(d.constant());
      else
        dims.push_back(dnnopt::to_string(d));
    }
  return dims;
}

json ports(const dnnopt::graph& g, const std::vector<dnnopt::value_id>& ids) {
  json rows = json::array();
  for (const dnnopt::value_id id : ids) {
    const dnnopt::value& v = g.value_at(id);
    rows.push_back({{"name", v.name}, {"dtype", dnnopt::name_of(v.facts.type)}, {"shape", dims_of(v.facts)}});
  }
  return rows;
}

/// Elements of the floating-point constants that nodes of the graph read, single numbers aside.
std::int64_t params_of(const dnnopt::graph& g) {
  std::int64_t params = 0;
  for (dnnopt::value_id v = 0; v < g.value_count(); ++v)
    if (g.facts(v).is_constant() && dnnopt::is_floating(g.facts(v).type) && g.facts(v).constant.size() > 1 &&
        !g.value_at(v).uses.empty())
      params += g.facts(v).constant.size();
  return params;
}

/// What the bodies of control flow hold, those inside of them included.
struct body_counts {
  std::int64_t bodies = 0;
  std::int64_t nodes = 0;
  std::int64_t params = 0;
  std::map<std::string, std::int64_t> operators;
};

void count_bodies(const dnnopt::graph& g, body_counts& counts) {
  for (const dnnopt::node_id id : g.nodes())
    for (const auto& [key, held] : g.node_at(id).attributes) {
      const auto* const body = std::get_if<dnnopt::subgraph>(&held);
      if (body == nullptr || !*body) continue;
      ++counts.bodies;
      counts.nodes += static_cast<std::int64_t>((*body)->node_count());
      counts.params += params_of(**body);
      for (const dnnopt::node_id inside : (*body)->nodes())
        ++counts.operators[std::string((*body)->node_at(inside).op->name)];
      count_bodies(**body, counts);
    }
}

body_counts bodies_of(const dnnopt::graph& g) {
  body_counts counts;
  count_bodies(g, counts);
  return counts;
}

}  // namespace

int info(const options& o) {
  dnnopt::load_options loading;
  loading.missing_data = dnnopt::onnx::missing_data::zeros;
  const dnnopt::model m = load_model(o, std::move(loading));
  dnnopt::graph g = bound_graph(m, compile_options_of(o, m));
  std::vector<dnnopt::warning> warnings = m.warnings;
  dnnopt::add_new_warnings(warnings, dnnopt::rdp{}.run(g).warnings);
  say_warnings(o, warnings, m.warnings.size());

  json result;
  result["inputs"] = ports(g, g.inputs());
  result["outputs"] = ports(g, g.outputs());
  result["opset"] = g.opsets.contains("") ? g.opsets.at("") : 0;
  result["file_opsets"] = json::object();
  std::string opsets;
  for (const auto& [domain, version] : m.file_opsets) {
    result["file_opsets"][domain.empty() ? "ai.onnx" : domain] = version;
    opsets += (opsets.empty() ? "" : ", ") + (domain.empty() ? "" : domain + " ") + std::to_string(version);
  }
  result["nodes"] = static_cast<std::int64_t>(g.node_count() + m.constant_nodes);
  std::map<std::string, std::int64_t> operators;
  std::map<std::string, std::int64_t> mapping;
  std::map<std::string, std::int64_t> layout;
  std::map<std::string, std::int64_t> dynamism;
  const std::int64_t params = params_of(g);
  std::int64_t macs = 0;
  bool symbolic_macs = false;
  const dnnopt::symbol_values ones = g.expressions().all_bound_to(1);
  const body_counts bodies = bodies_of(g);
  for (const dnnopt::node_id id : g.nodes()) {
    const dnnopt::node& n = g.node_at(id);
    const dnnopt::facts_of_node facts(g, id);
    ++operators[std::string(n.op->name)];
    ++mapping[std::string(dnnopt::name_of(dnnopt::mapping_of(*n.op, *facts)))];
    ++layout[std::string(dnnopt::name_of(dnnopt::layout_of(*n.op, *facts)))];
    ++dynamism[std::string(dnnopt::name_of(dnnopt::dynamism_of(*n.op, *facts)))];
    if (n.op->macs != nullptr) {
      const dnnopt::index_expr e = n.op->macs(*facts);
      symbolic_macs = symbolic_macs || !e.is_constant();
      macs += std::max<std::int64_t>(e.try_evaluate(ones).value_or(0), 0);
    }
  }
  if (m.constant_nodes != 0) operators["Constant"] += static_cast<std::int64_t>(m.constant_nodes);
  result["operators"] = operators;
  result["unsupported"] = json::array();
  const dnnopt::program placed =
      dnnopt::make_program(std::make_shared<const dnnopt::graph>(g), dnnopt::codegen::default_lower_options(), false);
  for (const dnnopt::placed_node& step : placed.steps)
    if (step.where == dnnopt::placement::host)
      result["unsupported"].push_back(
          {{"node", g.node_at(step.id).name}, {"op", g.node_at(step.id).op->name}, {"reason", step.reason}});
  for (const dnnopt::onnx::dead_node& dead : m.dead_nodes)
    result["unsupported"].push_back({{"node", dead.name},
                                     {"op", (dead.domain.empty() ? "" : dead.domain + ".") + dead.op_type},
                                     {"reason", "leads to no output and is left out: " + dead.reason}});
  result["warnings"] = to_json(warnings);
  result["params"] = params;
  result["bodies"] = {{"count", bodies.bodies},
                      {"nodes", bodies.nodes},
                      {"params", bodies.params},
                      {"operators", json(bodies.operators)}};
  result["macs"] = macs;
  result["macs_at"] = symbolic_macs ? "symbolic dims taken as 1; bind them with --dim" : "";
  result["mapping"] = mapping;
  result["layout"] = layout;
  result["dynamism"] = dynamism;

  std::string text;
  for (const char* side : {"inputs", "outputs"})
    for (const auto& row : result[side])
      text += std::string(side).substr(0, std::string(side).size() - 1) + "  " + row["name"].get<std::string>() + "  " +
              row["dtype"].get<std::string>() + " " + row["shape"].dump() + "\n";
  text += "opset " + (opsets.empty() ? "not stated" : opsets) + " (read as " + result["opset"].dump() + "), " +
          result["nodes"].dump() + " nodes, " + fixed(static_cast<double>(params) / 1e6, 2) + " M parameters, " +
          fixed(static_cast<double>(macs) / 1e9, 3) + " G multiply-accumulates" +
          (symbolic_macs ? " (" + result["macs_at"].get<std::string>() + ")" : "") + "\n\n";
  if (bodies.bodies == 0) {
    text_table table({"operator", "nodes"});
    for (const auto& [name, count] : operators) table.add({name, std::to_string(count)});
    text += table.str() + "\n";
  } else {
    text_table table({"operator", "nodes", "in bodies"});
    std::map<std::string, std::pair<std::int64_t, std::int64_t>> both;
    for (const auto& [name, count] : operators) both[name].first = count;
    for (const auto& [name, count] : bodies.operators) both[name].second = count;
    for (const auto& [name, count] : both) table.add({name, std::to_string(count.first), std::to_string(count.second)});
    text += table.str() + std::to_string(bodies.bodies) + " bodies of control flow hold " +
            std::to_string(bodies.nodes) + " nodes and " + fixed(static_cast<double>(bodies.params) / 1e6, 2) +
            " M parameters\n\n";
  }
  for (const char* kind : {"mapping", "layout", "dynamism"}) {
    text += std::string(kind) + ":";
    for (const auto& [name, count] : result[kind].items()) text += "  " + name + " " + count.dump();
    text += "\n";
  }
  if (!result["unsupported"].empty()) {
    text += "\nwithout a kernel (they run on the host, or nowhere):\n";
    for (const auto& row : result["unsupported"])
      text += "  " + row["op"].get<std::string>() + "  " + row["node"].get<std::string>() + ": " +
              row["reason"].get<std::string>() + "\n";
  }
  say(o, text);
  write_json(o, result);
  return 0;
}

}  // namespace tool
