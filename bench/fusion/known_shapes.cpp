// Compares fusion with static knowledge alone with fusion by rank and dimension propagation (SoD2 Fig. 7), and counts
// the subgraphs of what comes out (Fig. 8a): known_shapes MODEL.onnx [SYMBOL=DIM ...]
//
// Static knowledge is what each operator tells from its operands' dims without relating two unknown ones: a dim that is
// a number stays one, a dim that an operator passes on stays itself, every other dim is an unknown of its own, and no
// value of a shape is known. Every pass of the default pipeline sees that. Prints JSON: operators and bytes of stored
// intermediate results, of the imported graph and of both; bytes at the given dims, where 1 stands for other symbols
// and 100 for sizes that data decides.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <dnnopt/backend/codegen/lower.hpp>
#include <dnnopt/backend/program/make_program.hpp>
#include <dnnopt/backend/program/subgraphs.hpp>
#include <dnnopt/dnnopt.hpp>
#include <dnnopt/passes/pass_table.hpp>
#include <dnnopt/reference/evaluate_node.hpp>
#include <nlohmann/json.hpp>

namespace {

using namespace dnnopt;

/// Operators that run and bytes that they store.
struct amounts {
  std::size_t operators = 0;
  std::int64_t bytes = 0;
};

/// Values of the symbols, with a value for each that has none.
struct sizes {
  std::map<std::string, std::int64_t> given;
  symbol_values values;

  void complete(const graph& g) {
    constexpr std::int64_t of_data = 100;
    const auto late = fusion::late_symbols(g, g.topological_order());
    for (std::uint32_t s = 0; s < g.expressions().symbol_count(); ++s) {
      if (values.find(s)) continue;
      const auto found = given.find(g.expressions().symbol_name(s));
      values.bind(s, found != given.end() ? found->second : late.contains(s) ? of_data : 1);
    }
  }
  [[nodiscard]] std::int64_t bytes_of(const graph& g, value_id v) const {
    if (v == no_value || !g.facts(v).dims || g.facts(v).is_constant()) return 0;
    return element_count(*g.facts(v).dims).evaluate(values) * static_cast<std::int64_t>(size_of(g.facts(v).type));
  }
};

/// Replaces what propagation found by what static knowledge tells.
class static_knowledge {
 public:
  explicit static_knowledge(sizes& known) : sizes_(known) {}

  void apply(graph& g) {
    sizes_.complete(g);
    std::vector<std::optional<shape>> propagated(g.value_count());
    for (value_id v = 0; v < g.value_count(); ++v) propagated[v] = g.facts(v).dims;
    shape unknowns;
    const auto unknown = [&](const index_expr& was) {
      const index_expr made = g.expressions().symbol("static_" + std::to_string(count_++), {0, std::int64_t{1} << 40});
      sizes_.values.bind(*made.as_symbol(), was.evaluate(sizes_.values));
      unknowns.push_back(made);
      return made;
    };
    for (const value_id in : g.inputs())
      if (g.facts(in).dims)
        for (index_expr& dim : *g.facts(in).dims)
          if (!dim.is_constant()) dim = unknown(dim);
    for (const node_id id : g.topological_order()) {
      const node& n = g.node_at(id);
      std::vector<value_facts> told(n.outputs.size());
      try {
        const facts_of_node facts(g, id);
        n.op->infer(*facts, told);
      } catch (const error&) {
        told.assign(n.outputs.size(), value_facts{});
      }
      for (std::size_t i = 0; i < n.outputs.size(); ++i) {
        const value_id out = n.outputs[i];
        if (out == no_value) continue;
        value_facts& facts = g.facts(out);
        if (facts.elements && !all_constant(*facts.elements)) facts.elements.reset();
        if (!facts.dims) continue;
        for (std::size_t k = 0; k < facts.dims->size(); ++k) {
          index_expr& dim = (*facts.dims)[k];
          if (dim.is_constant()) continue;
          const bool passed = told[i].dims && told[i].dims->size() == facts.dims->size() && n.formal_inputs() != 0 &&
                              (*told[i].dims)[k].as_symbol() && is_operand_dim(g, n, (*told[i].dims)[k]);
          dim = passed ? (*told[i].dims)[k] : unknown(dim);
        }
      }
    }
    // No unknown counts as one that a node brings.
    std::vector<value_id> inputs;
    for (const value_id in : g.inputs())
      if (g.value_at(in).name != carrier) inputs.push_back(in);
    g.set_inputs(inputs);
    g.add_input(carrier, dtype::float32, unknowns);
  }

 private:
  static bool all_constant(const std::vector<index_expr>& elements) {
    for (const index_expr& e : elements)
      if (!e.is_constant()) return false;
    return true;
  }
  static bool is_operand_dim(const graph& g, const node& n, const index_expr& dim) {
    for (const value_id in : n.inputs)
      if (in != no_value && g.facts(in).dims)
        for (const index_expr& d : *g.facts(in).dims)
          if (d == dim) return true;
    return false;
  }

  static constexpr const char* carrier = "static unknowns";
  sizes& sizes_;
  std::size_t count_ = 0;
};

/// What runs after a fusion plan: blocks, each storing its outputs.
amounts amounts_of_blocks(const graph& g, const sizes& known) {
  amounts result;
  for (const fused_block& block : g.blocks()) {
    ++result.operators;
    for (const value_id out : block.outputs)
      if (!g.value_at(out).uses.empty()) result.bytes += known.bytes_of(g, out);
  }
  return result;
}

amounts amounts_of_nodes(const graph& g, const sizes& known) {
  amounts result;
  for (const node_id id : g.nodes()) {
    ++result.operators;
    for (const value_id out : g.node_at(id).outputs)
      if (out != no_value && !g.value_at(out).uses.empty()) result.bytes += known.bytes_of(g, out);
  }
  return result;
}

graph optimized(const model& source, static_knowledge* forgetting) {
  graph g = source.main;
  pass_environment environment;
  environment.evaluate = &reference::evaluate_node;
  const auto run_one = [&](std::string_view name) {
    (void)run_passes(g, {std::string(name)}, environment);
    if (forgetting != nullptr && name == rdp::name) forgetting->apply(g);
  };
  // Two rounds of what the default order repeats, one by one, so that knowledge can be forgotten in between.
  const auto repeated = std::find(default_passes.begin(), default_passes.end(), repeat_passes);
  for (int round = 0; round < 2; ++round) std::for_each(default_passes.begin(), repeated, run_one);
  std::for_each(repeated, default_passes.end(), run_one);
  g.compact();
  return g;
}

nlohmann::json measure(const std::string& file, const std::map<std::string, std::int64_t>& dims) {
  load_options loading;
  loading.missing_data = onnx::missing_data::zeros;
  const model source = load(file, std::move(loading));
  nlohmann::json result;
  const auto say = [&](const char* name, const amounts& found) {
    result[name] = {{"operators", found.operators}, {"intermediate_bytes", found.bytes}};
  };
  {
    sizes known{dims, {}};
    graph g = source.main;
    rdp{}.run(g);
    known.complete(g);
    say("imported", amounts_of_nodes(g, known));
  }
  {
    sizes known{dims, {}};
    static_knowledge forgetting(known);
    const graph g = optimized(source, &forgetting);
    say("static", amounts_of_blocks(g, known));
  }
  sizes known{dims, {}};
  const auto g = std::make_shared<const graph>(optimized(source, nullptr));
  known.complete(*g);
  say("rdp", amounts_of_blocks(*g, known));
  const program placed = make_program(g, codegen::default_lower_options(), false);
  result["kernels"] = placed.kernel_count();
  result["host_ops"] = placed.host_count();
  result["subgraphs"] = nlohmann::json::array();
  constexpr const char* classes[] = {"known", "mixed", "nac"};
  for (const program_subgraph& part : subgraphs_of(placed))
    result["subgraphs"].push_back({{"sizes", classes[static_cast<unsigned>(part.sizes)]},
                                   {"steps", part.steps.size()},
                                   {"launches", part.launches},
                                   {"versions", part.versions}});
  return result;
}

}  // namespace

int main(int count, char** arguments) {
  if (count < 2) {
    std::fprintf(stderr, "usage: known_shapes MODEL.onnx [SYMBOL=DIM ...]\n");
    return 2;
  }
  try {
    std::map<std::string, std::int64_t> dims;
    for (int i = 2; i < count; ++i) {
      const std::string text = arguments[i];
      const std::size_t equals = text.find('=');
      dims[text.substr(0, equals)] = std::stoll(text.substr(equals + 1));
    }
    std::printf("%s\n", measure(arguments[1], dims).dump().c_str());
  } catch (const std::exception& fault) {
    std::fprintf(stderr, "%s\n", fault.what());
    return 1;
  }
  return 0;
}
