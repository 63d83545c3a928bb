// Owns the composition of a pipeline from names of passes, with a report of each pass.
#ifndef DNNOPT_PASSES_PIPELINE_HPP
#define DNNOPT_PASSES_PIPELINE_HPP

#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <dnnopt/detail/implementation.hpp>
#include <dnnopt/graph.hpp>
#include <dnnopt/passes/pass.hpp>

#if DNNOPT_IMPLEMENT_PASSES
#include <chrono>
#include <utility>

#include <dnnopt/error.hpp>
#include <dnnopt/ops/standard.hpp>
#include <dnnopt/passes/pass_table.hpp>
#endif

namespace dnnopt {

/// What one pass of a pipeline did.
struct pass_report {
  std::string name;
  std::size_t edits = 0;
  double seconds = 0;
  std::vector<std::string> remarks;
  std::map<std::string, std::size_t, std::less<>> rules;  ///< how often each named rule fired
};

/// The names that a `--passes` argument stands for: "default", "none", "epilogue", or names separated by commas, of
/// passes or "repeat".
/// Errors: unknown_pass, listing the names there are.
[[nodiscard]] std::vector<std::string> pass_names(std::string_view list);

/// Runs passes in order; at the name "repeat" what stands before it (from the one before on) runs again while a pass
/// edits nodes, ten times at most. `after` (where given) sees the graph and the report after each, for verifiers and
/// observers.
[[nodiscard]] std::vector<pass_report> run_passes(
    graph& g, const std::vector<std::string>& names, const pass_environment& environment,
    const std::function<void(const graph&, const pass_report&)>& after = {});

#if DNNOPT_IMPLEMENT_PASSES
DNNOPT_BODY std::vector<std::string> pass_names(std::string_view list) {
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
    bool known = one == repeat_passes;
    std::string all = " " + std::string(repeat_passes);
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

DNNOPT_BODY std::vector<pass_report> run_passes(graph& g, const std::vector<std::string>& names,
                                                const pass_environment& environment,
                                                const std::function<void(const graph&, const pass_report&)>& after) {
  std::vector<pass_report> reports;
  pass_environment known = environment;
  op_set standard;
  if (known.ops == nullptr) {
    standard = standard_ops();
    known.ops = &standard;
  }
  const auto run_one = [&](const std::string& wanted) {
    for (const pass_row& row : pass_table) {
      if (row.name != wanted) continue;
      const auto begin = std::chrono::steady_clock::now();
      pass_result result = row.run(g, known);
      const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
      reports.push_back({wanted, result.edits, took.count(), std::move(result.remarks), std::move(result.rules)});
      if (after) after(g, reports.back());
      return result.edits != 0 && !row.only_learns;
    }
    return false;
  };
  std::size_t begin = 0;
  bool edited = false;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (names[i] != repeat_passes) {
      edited = run_one(names[i]) || edited;
      continue;
    }
    for (std::size_t round = 1; edited && round < most_rounds; ++round) {
      edited = false;
      for (std::size_t k = begin; k < i; ++k) edited = run_one(names[k]) || edited;
    }
    begin = i + 1;
    edited = false;
  }
  return reports;
}
#endif

}  // namespace dnnopt

#endif  // DNNOPT_PASSES_PIPELINE_HPP
