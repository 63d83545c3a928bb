// Owns what the tests of the papers' worked figures share: small graphs grown by operator name, and their programs.
#ifndef DNNOPT_TESTS_GOLDEN_FIGURE_HPP
#define DNNOPT_TESTS_GOLDEN_FIGURE_HPP

#include <dnnopt/backend/program/make_program.hpp>
#include <dnnopt/graph.hpp>
#include <dnnopt/index_expr_io.hpp>
#include <dnnopt/ops/standard.hpp>
#include <dnnopt/passes/fuse.hpp>
#include <dnnopt/passes/rdp.hpp>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace dnnopt::testing {

/// A graph under construction.
struct figure {
  op_set ops = standard_ops();
  graph g;

  index_expr operator[](std::string_view symbol) { return g.expressions().symbol(symbol, {1, 4096}); }
  value_id input(std::string name, shape dims, dtype type = dtype::float32) {
    return g.add_input(std::move(name), type, std::move(dims));
  }
  value_id numbers(const std::vector<std::int64_t>& content) {
    return g.add_constant("c" + std::to_string(g.value_count()),
                          tensor::of<std::int64_t>({static_cast<std::int64_t>(content.size())}, content));
  }
  value_id number(std::int64_t content) {
    return g.add_constant("c" + std::to_string(g.value_count()), tensor::scalar(content));
  }
  value_id weights(dim_list dims) {
    return g.add_constant("w" + std::to_string(g.value_count()), tensor(dtype::float32, std::move(dims)));
  }
  std::vector<value_id> node(std::string_view op, std::vector<value_id> inputs, std::size_t outputs,
                             attribute_map attributes = {}) {
    const std::string name = std::string(op) + std::to_string(g.node_count());
    std::vector<value_id> made;
    for (std::size_t i = 0; i < outputs; ++i) made.push_back(g.add_value(name + "." + std::to_string(i)));
    g.add_node(ops.at("", op), name, std::move(inputs), made, std::move(attributes));
    return made;
  }
  value_id node(std::string_view op, std::vector<value_id> inputs, attribute_map attributes = {}) {
    return node(op, std::move(inputs), 1, std::move(attributes)).front();
  }
  [[nodiscard]] std::string dims(value_id v) const {
    return g.facts(v).dims ? to_string(*g.facts(v).dims) : "undefined";
  }
  [[nodiscard]] std::string elements(value_id v) const {
    if (!g.facts(v).elements) return "undefined";
    std::string text;
    for (const index_expr& e : *g.facts(v).elements) text += (text.empty() ? "" : ", ") + to_string(e);
    return text;
  }
  [[nodiscard]] dynamism_class dynamism(value_id v) const {
    const node_id producer = g.value_at(v).producer;
    return dynamism_of(*g.node_at(producer).op, *facts_of_node(g, producer));
  }
  /// Symbols that only execution tells.
  [[nodiscard]] std::size_t late() const { return fusion::late_symbols(g, g.topological_order()).size(); }
};

[[nodiscard]] inline attribute_map with(std::string name, attribute held) {
  attribute_map map;
  map.set(std::move(name), std::move(held));
  return map;
}

/// Shape propagation, fusion, and the program without a device.
[[nodiscard]] inline program placed(graph g) {
  rdp{}.run(g);
  fuse_blocks{}.run(g);
  return make_program(std::make_shared<const graph>(std::move(g)), codegen::default_lower_options(), false);
}

/// The operators of each launch, in order.
[[nodiscard]] inline std::vector<std::vector<std::string>> launches_of(const program& p) {
  std::vector<std::vector<std::string>> all;
  for (const placed_node& step : p.steps)
    for (std::size_t k = 0; k < step.lowered.kernels.size(); ++k) {
      all.emplace_back();
      for (const node_id id : step.members) all.back().emplace_back(p.g->node_at(id).op->name);
    }
  return all;
}

/// How often `part` occurs in `text`.
[[nodiscard]] inline std::size_t count_of(std::string_view text, std::string_view part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string_view::npos; at = text.find(part, at + part.size())) ++count;
  return count;
}

}  // namespace dnnopt::testing

#endif  // DNNOPT_TESTS_GOLDEN_FIGURE_HPP
