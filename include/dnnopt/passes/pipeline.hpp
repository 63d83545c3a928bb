// Owns the list of passes by name and the composition of a pipeline from names, with a report of each pass.
#ifndef DNNOPT_PASSES_PIPELINE_HPP
#define DNNOPT_PASSES_PIPELINE_HPP

#include <array>
#include <chrono>
#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dnnopt/detail/compiled.hpp>
#include <dnnopt/error.hpp>
#include <dnnopt/graph.hpp>
#include <dnnopt/passes/fold_batch_normalization.hpp>
#include <dnnopt/passes/fold_constants.hpp>
#include <dnnopt/passes/fold_padding.hpp>
#include <dnnopt/passes/fuse.hpp>
#include <dnnopt/passes/inline_branches.hpp>
#include <dnnopt/passes/merge_equal.hpp>
#include <dnnopt/passes/merge_siblings.hpp>
#include <dnnopt/passes/pass.hpp>
#include <dnnopt/passes/rdp.hpp>
#include <dnnopt/passes/recognize_attention.hpp>
#include <dnnopt/passes/recognize_rotary.hpp>
#include <dnnopt/passes/remove_dead.hpp>
#include <dnnopt/passes/remove_identity.hpp>
#include <dnnopt/passes/rewrite.hpp>

#if DNNOPT_BODIES_SESSION
#include <dnnopt/ops/standard.hpp>
#endif

namespace dnnopt {

/// What passes may use besides the graph.
struct pass_environment {
  node_evaluator evaluate = nullptr;  ///< null: nothing is folded by evaluation
  const op_set* ops = nullptr;        ///< where rules find their operators; null: standard_ops()
  rewriting::rewrite_options rewriting{};
};

/// A pass by name.
struct pass_row {
  std::string_view name;
  pass_result (*run)(graph& g, const pass_environment& environment);
};

/// Every pass that `--passes` can name; users call pass objects themselves or hand in a table of their own.
inline constexpr std::array pass_table{
    pass_row{rdp::name, [](graph& g, const pass_environment&) { return rdp{}.run(g); }},
    pass_row{fold_constants::name,
             [](graph& g, const pass_environment& e) { return fold_constants{e.evaluate}.run(g); }},
    pass_row{inline_branches::name, [](graph& g, const pass_environment&) { return inline_branches{}.run(g); }},
    pass_row{remove_identity::name, [](graph& g, const pass_environment&) { return remove_identity{}.run(g); }},
    pass_row{fold_batch_normalization::name,
             [](graph& g, const pass_environment&) { return fold_batch_normalization{}.run(g); }},
    pass_row{fold_padding::name, [](graph& g, const pass_environment&) { return fold_padding{}.run(g); }},
    pass_row{merge_equal::name, [](graph& g, const pass_environment&) { return merge_equal{}.run(g); }},
    pass_row{recognize::name,
             [](graph& g, const pass_environment& e) {
               return recognize{e.ops, e.rewriting}.run(g);
             }},
    pass_row{recognize_rotary::name, [](graph& g, const pass_environment&) { return recognize_rotary{}.run(g); }},
    pass_row{recognize_attention::name, [](graph& g, const pass_environment&) { return recognize_attention{}.run(g); }},
    pass_row{rewrite::name,
             [](graph& g, const pass_environment& e) {
               return rewrite{e.ops, e.rewriting}.run(g);
             }},
    // The same without rules that change overflow, infinities or NaN.
    pass_row{"recognize_exact",
             [](graph& g, const pass_environment& e) {
               return recognize{e.ops, {false}}.run(g);
             }},
    pass_row{"rewrite_exact",
             [](graph& g, const pass_environment& e) {
               return rewrite{e.ops, {false}}.run(g);
             }},
    pass_row{merge_siblings::name, [](graph& g, const pass_environment&) { return merge_siblings{}.run(g); }},
    pass_row{remove_dead::name, [](graph& g, const pass_environment&) { return remove_dead{}.run(g); }},
    pass_row{fuse_blocks::name, [](graph& g, const pass_environment&) { return fuse_blocks{}.run(g); }},
    pass_row{fuse_epilogue::name, [](graph& g, const pass_environment&) { return fuse_epilogue{}.run(g); }},
};

/// The order of the passes that `default` stands for.
inline constexpr std::array default_passes{
    // Shapes and constants.
    rdp::name, fold_constants::name, inline_branches::name, rdp::name, fold_constants::name, rdp::name,
    // One form for what exporters write, whole operators for what they take apart.
    remove_identity::name, fold_batch_normalization::name, fold_padding::name, merge_equal::name, recognize::name,
    fold_constants::name, rdp::name, recognize_rotary::name, recognize_attention::name, remove_dead::name, rdp::name,
    // Fewer operations, then fewer products.
    rewrite::name, fold_constants::name, remove_identity::name, merge_siblings::name, merge_equal::name,
    remove_dead::name, rdp::name,
    // Which of what is left runs as one kernel.
    fuse_blocks::name};

/// What one pass of a pipeline did.
struct pass_report {
  std::string name;
  std::size_t edits = 0;
  double seconds = 0;
  std::vector<std::string> remarks;
  std::map<std::string, std::size_t, std::less<>> rules;  ///< how often each named rule fired
};

/// The names that a `--passes` argument stands for: "default", "none", or names separated by commas.
/// Errors: unknown_pass, listing the names there are.
[[nodiscard]] DNNOPT_INLINE std::vector<std::string> pass_names(std::string_view list);

/// Runs passes in order. `after` (where given) sees the graph and the report after each, for verifiers and observers.
[[nodiscard]] DNNOPT_INLINE std::vector<pass_report> run_passes(
    graph& g, const std::vector<std::string>& names, const pass_environment& environment,
    const std::function<void(const graph&, const pass_report&)>& after = {});

#if DNNOPT_BODIES_SESSION
DNNOPT_INLINE std::vector<std::string> pass_names(std::string_view list) {
  if (list.empty() || list == "default") return {default_passes.begin(), default_passes.end()};
  // Without passes shapes are still needed to run.
  if (list == "none") return {std::string(rdp::name)};
  std::vector<std::string> names;
  if (list == "epilogue")
    return {std::string(rdp::name), std::string(fold_constants::name), std::string(remove_dead::name),
            std::string(rdp::name), std::string(fuse_epilogue::name)};
  while (true) {
    const std::size_t comma = list.find(',');
    const std::string_view one = list.substr(0, comma);
    bool known = false;
    std::string all;
    for (const pass_row& row : pass_table) {
      known = known || row.name == one;
      all += " " + std::string(row.name);
    }
    if (!known) throw error(errc::unknown_pass, "no pass '" + std::string(one) + "'; there are:" + all);
    names.emplace_back(one);
    if (comma == std::string_view::npos) break;
    list.remove_prefix(comma + 1);
  }
  return names;
}

DNNOPT_INLINE std::vector<pass_report> run_passes(graph& g, const std::vector<std::string>& names,
                                                  const pass_environment& environment,
                                                  const std::function<void(const graph&, const pass_report&)>& after) {
  std::vector<pass_report> reports;
  pass_environment known = environment;
  op_set standard;
  if (known.ops == nullptr) {
    standard = standard_ops();
    known.ops = &standard;
  }
  for (const std::string& wanted : names) {
    for (const pass_row& row : pass_table) {
      if (row.name != wanted) continue;
      const auto begin = std::chrono::steady_clock::now();
      pass_result result = row.run(g, known);
      const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
      reports.push_back({wanted, result.edits, took.count(), std::move(result.remarks), std::move(result.rules)});
      if (after) after(g, reports.back());
      break;
    }
  }
  return reports;
}
#endif

}  // namespace dnnopt

#endif  // DNNOPT_PASSES_PIPELINE_HPP
