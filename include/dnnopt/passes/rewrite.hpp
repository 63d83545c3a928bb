// Owns the rewriting passes: the standard tables of rules, applied by the engine.
#ifndef DNNOPT_PASSES_REWRITE_HPP
#define DNNOPT_PASSES_REWRITE_HPP

#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include <dnnopt/graph.hpp>
#include <dnnopt/ops/op_info.hpp>
#include <dnnopt/passes/pass.hpp>
#include <dnnopt/passes/rewriting/associative_rules.hpp>
#include <dnnopt/passes/rewriting/canonicalization_rules.hpp>
#include <dnnopt/passes/rewriting/commutative_rules.hpp>
#include <dnnopt/passes/rewriting/distributive_rules.hpp>
#include <dnnopt/passes/rewriting/engine.hpp>
#include <dnnopt/passes/rewriting/linear_rules.hpp>
#include <dnnopt/passes/rewriting/recognition_rules.hpp>

namespace dnnopt {

/// Applies a table of rules: the pass for tables of one's own. A remark names each rule that matches in the result and
/// stays off because it saves nothing. Errors: invalid_argument and unknown_operator for rules whose text is wrong.
[[nodiscard]] inline pass_result apply_rules(graph& g, std::span<const rewriting::rewrite_rule> table,
                                             const op_set& ops, rewriting::rewrite_options options = {}) {
  const std::vector<rewriting::compiled_rule> rules = rewriting::compile_rules(table, ops);
  const rewriting::engine engine(rules, options);
  pass_result result = engine.run(g);
  for (const auto& [rule, matches] : engine.idle_rules(g))
    result.remarks.push_back("rule '" + rule + "' matches " + std::to_string(matches) +
                             (matches == 1 ? " time" : " times") +
                             " and lowers no work: progress::normal_form lets it fire at equal work");
  return result;
}

namespace detail {
template <class... Tables>
[[nodiscard]] std::vector<rewriting::rewrite_rule> joined(const Tables&... tables) {
  std::vector<rewriting::rewrite_rule> all;
  (all.insert(all.end(), tables.begin(), tables.end()), ...);
  return all;
}

[[nodiscard]] inline pass_result apply_standard(graph& g, std::span<const rewriting::rewrite_rule> table,
                                                const op_set& ops, rewriting::rewrite_options options) {
  const std::vector<rewriting::compiled_rule> rules = rewriting::compile_rules(table, ops);
  return rewriting::engine(rules, options).run(g);
}
}  // namespace detail

/// The rules of `recognize`: canonicalization, recognition, and operands in order.
[[nodiscard]] inline std::vector<rewriting::rewrite_rule> export_rules() {
  std::vector<rewriting::rewrite_rule> all =
      detail::joined(rewriting::canonicalization_rules, rewriting::recognition_rules);
  for (const rewriting::rewrite_rule& rule : rewriting::commutative_rules)
    if (rule.ends == rewriting::progress::normal_form) all.push_back(rule);
  return all;
}

/// The rules of `rewrite`: DNNFusion's three families.
[[nodiscard]] inline std::vector<rewriting::rewrite_rule> algebraic_rules() {
  return detail::joined(rewriting::associative_rules, rewriting::distributive_rules, rewriting::commutative_rules,
                        rewriting::linear_rules);
}

/// Brings exporters' spellings to one form and recognises the operators that they take apart.
struct recognize {
  static constexpr std::string_view name = "recognize";
  const op_set* ops = nullptr;  ///< where the rules' operators are found; never null when it runs
  rewriting::rewrite_options options{};

  pass_result run(graph& g) const { return detail::apply_standard(g, export_rules(), *ops, options); }
};

/// Lowers the work by the algebra of operators: the associative, distributive and commutative families.
struct rewrite {
  static constexpr std::string_view name = "rewrite";
  const op_set* ops = nullptr;  ///< where the rules' operators are found; never null when it runs
  rewriting::rewrite_options options{};

  pass_result run(graph& g) const { return detail::apply_standard(g, algebraic_rules(), *ops, options); }
};

static_assert(Pass<recognize> && Pass<rewrite>);

}  // namespace dnnopt

#endif  // DNNOPT_PASSES_REWRITE_HPP
