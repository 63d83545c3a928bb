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
#include <algorithm>
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
  std::vector<warning> warnings{};                        ///< what the user should know about the model
};

/// The names that a `--passes` argument stands for: "default", "none", "epilogue", or names separated by commas, of
/// passes or "repeat"; "default,-NAME" is the default order without a pass. What a pass needs before it is put in where
/// the list lacks it, so that every order is legal. Errors: unknown_pass, listing the names there are.
/// Passes of `own` can be named too, and must not have the name of one of the others. Errors: invalid_argument.
[[nodiscard]] std::vector<std::string> pass_names(std::string_view list, const own_passes& own = {});

/// Runs passes in order; at the name "repeat" what stands before it (from the one before on) runs again while a pass
/// edits nodes, ten times at most. A pass that found nothing to do is asked again only once another one edited the
/// graph; until then its reports are empty. `after` (where given) sees the graph and the report after each, for
/// verifiers and observers.
[[nodiscard]] std::vector<pass_report> run_passes(
    graph& g, const std::vector<std::string>& names, const pass_environment& environment,
    const std::function<void(const graph&, const pass_report&)>& after = {});

#if DNNOPT_IMPLEMENT_PASSES
namespace detail {

[[nodiscard]] inline bool is_pass(std::string_view name) {
  return name == repeat_passes ||
         std::any_of(pass_table.begin(), pass_table.end(), [&](const pass_row& row) { return row.name == name; });
}

/// The list with what its passes need put before them; without any pass that needs shapes they are found at the end,
/// for running needs them too.
[[nodiscard]] inline std::vector<std::string> with_needs(const std::vector<std::string>& wanted) {
  std::vector<std::string> names;
  bool current = false;  // rdp is the only pass that others need
  for (const std::string& name : wanted) {
    const auto row =
        std::find_if(pass_table.begin(), pass_table.end(), [&](const pass_row& one) { return one.name == name; });
    const bool is_own = row == pass_table.end() && name != repeat_passes;
    if ((is_own || (row != pass_table.end() && !row->needs.empty())) && !current) {
      names.emplace_back(is_own ? rdp::name : row->needs);
      current = true;
    }
    names.push_back(name);
    if (is_own) current = false;
    if (row != pass_table.end()) current = row->only_learns || (current && row->plans);
  }
  if (!current) names.emplace_back(rdp::name);
  return names;
}

}  // namespace detail

DNNOPT_BODY std::vector<std::string> pass_names(std::string_view list, const own_passes& own) {
  for (const auto& [name, run] : own)
    if (detail::is_pass(name) || name.empty() || name.find(',') != std::string::npos || name.front() == '-')
      throw error(errc::invalid_argument, "a pass of one's own cannot have the name '" + name + "'");
  if (list.empty() || list == "default") return {default_passes.begin(), default_passes.end()};
  // Without passes shapes are still needed to run.
  if (list == "none") return {std::string(rdp::name)};
  if (list == "epilogue")
    return {std::string(rdp::name), std::string(fold_constants::name), std::string(remove_dead::name),
            std::string(rdp::name), std::string(fuse_epilogue::name)};
  std::vector<std::string> wanted;
  bool first = true;
  for (std::string_view rest = list; !rest.empty() || first; first = false) {
    const std::size_t comma = std::min(rest.find(','), rest.size());
    const std::string_view one = rest.substr(0, comma);
    rest.remove_prefix(std::min(comma + 1, rest.size()));
    if (first && one == "default") {
      wanted.assign(default_passes.begin(), default_passes.end());
    } else if (one.starts_with('-') && detail::is_pass(one.substr(1))) {
      std::erase(wanted, one.substr(1));
    } else if (detail::is_pass(one) || own.contains(one)) {
      wanted.emplace_back(one);
    } else {
      std::string all = " " + std::string(repeat_passes);
      for (const pass_row& row : pass_table) all += " " + std::string(row.name);
      for (const auto& [name, run] : own) all += " " + name;
      throw error(errc::unknown_pass, "no pass '" + std::string(one) + "'; there are:" + all);
    }
  }
  return detail::with_needs(wanted);
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
  // Edits so far, and for each pass that found nothing to do how many there had been: passes are functions of the
  // graph.
  std::size_t edits = 0;
  std::map<std::string_view, std::size_t> idle_at;
  const auto run_one = [&](const std::string& wanted) {
    for (const pass_row& row : pass_table) {
      if (row.name != wanted) continue;
      const auto begin = std::chrono::steady_clock::now();
      const auto idle = idle_at.find(row.name);
      pass_result result;
      if (idle == idle_at.end() || idle->second != edits) {
        result = row.run(g, known);
        edits += result.edits;
        if (result.edits == 0 && result.remarks.empty() && !row.plans) idle_at[row.name] = edits;
      }
      const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
      reports.push_back({wanted, result.edits, took.count(), std::move(result.remarks), std::move(result.rules),
                         std::move(result.warnings)});
      if (after) after(g, reports.back());
      return result.edits != 0 && !row.only_learns;
    }
    if (known.own == nullptr || !known.own->contains(wanted)) return false;
    const auto begin = std::chrono::steady_clock::now();
    pass_result result = known.own->find(wanted)->second(g);
    edits += result.edits;
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    reports.push_back({wanted, result.edits, took.count(), std::move(result.remarks), std::move(result.rules),
                       std::move(result.warnings)});
    if (after) after(g, reports.back());
    return result.edits != 0;
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
