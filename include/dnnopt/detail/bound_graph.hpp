// Owns what a model's graph is before it is placed: what is bound in it, and the passes over it.
#ifndef DNNOPT_DETAIL_BOUND_GRAPH_HPP
#define DNNOPT_DETAIL_BOUND_GRAPH_HPP

#include <algorithm>
#include <chrono>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include <dnnopt/backend/run/values.hpp>
#include <dnnopt/compile_options.hpp>
#include <dnnopt/compile_report.hpp>
#include <dnnopt/model.hpp>
#include <dnnopt/passes/derive_guards.hpp>
#include <dnnopt/passes/folding/fold_constants.hpp>
#include <dnnopt/passes/inline_branches.hpp>
#include <dnnopt/passes/name_deciding_inputs.hpp>
#include <dnnopt/passes/pipeline.hpp>
#include <dnnopt/passes/rdp.hpp>
#include <dnnopt/reference/evaluate_node.hpp>

namespace dnnopt {

namespace detail {

/// The model's graph with what is bound: dims, shapes of inputs, and inputs that are constants.
[[nodiscard]] inline graph bound_graph(const model& source, const compile_options& options,
                                       const std::vector<std::pair<std::string, tensor>>& fixed) {
  graph g = source.main;
  require_in_ranges(options.dims, options.ranges);
  bind_dims(g, options.dims);
  for (const auto& [input, dims] : options.shapes) require_in_ranges(bind_input_shape(g, input, dims), options.ranges);
  bind_values(g, options.values);
  bind_ranges(g, options.ranges);
  std::vector<value_id> left;
  for (const value_id id : g.inputs()) {
    const value& v = g.value_at(id);
    const auto held = std::find_if(fixed.begin(), fixed.end(), [&](const auto& one) { return one.first == v.name; });
    if (held == fixed.end()) {
      left.push_back(id);
      continue;
    }
    symbol_values symbols;
    bind_symbols(v, held->second, symbols);
    g.make_constant(id, held->second);
  }
  g.set_inputs(std::move(left));
  return g;
}

/// Whether the options' passes take branches whose condition a run states.
[[nodiscard]] inline bool takes_branches(const compile_options& options) {
  const std::vector<std::string> names = pass_names(options.passes, options.own_passes);
  return std::find(names.begin(), names.end(), inline_branches::name) != names.end();
}

/// Runs the passes that the options name; what they did. Conditions that showed only then become guards.
inline std::vector<pass_report> run_wanted_passes(graph& g, const compile_options& options) {
  const bool hidden = hides_conditions(g);
  const pass_environment environment{.evaluate = &reference::evaluate_node,
                                     .integer_products = options.integer_products,
                                     .code_products = options.code_products,
                                     .judge = options.judge.get(),
                                     .own = &options.own_passes};
  std::vector<pass_report> passes =
      run_passes(g, pass_names(options.passes, options.own_passes), environment, options.after_pass);
  g.compact();
  if (hidden) add_derived_guards(g);
  return passes;
}

/// The passes over a graph whose symbols are bound, and what they did in the report's part of the graph. What is
/// `stated` of its symbols is a guard, on which passes may rely. Errors: those of passes.
[[nodiscard]] inline graph optimize_bound(graph g, const model& source, const compile_options& options,
                                          compile_report& report, std::vector<guard> stated = {}) {
  report.nodes_imported = g.node_count() + source.constant_nodes;
  const auto begin = std::chrono::steady_clock::now();
  const bool has_named = takes_branches(options) && name_deciding_inputs(g);
  if (has_named || has_symbols(g)) {
    if (!has_named) (void)rdp{}.run(g);
    std::vector<guard> derived = derive_guards(g);
    stated.insert(stated.end(), std::make_move_iterator(derived.begin()), std::make_move_iterator(derived.end()));
    g.set_guards(std::move(stated));
  }
  report.passes = run_wanted_passes(g, options);
  report.pass_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  report.warnings = source.warnings;
  for (const pass_report& pass : report.passes) add_new_warnings(report.warnings, pass.warnings);
  for (const pass_report& pass : report.passes)
    if (pass.name == fold_constants::name) report.nodes_folded += pass.edits;
  report.nodes_folded += source.constant_nodes;
  return g;
}

}  // namespace detail

}  // namespace dnnopt

#endif  // DNNOPT_DETAIL_BOUND_GRAPH_HPP
