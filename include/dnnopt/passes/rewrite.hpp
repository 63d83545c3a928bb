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
#include <dnnopt/passes/rewriting/canonicalization_rules.hpp>
#include <dnnopt/passes/rewriting/engine.hpp>
#include <dnnopt/passes/rewriting/linear_rules.hpp>
#include <dnnopt/passes/rewriting/recognition_rules.hpp>

namespace dnnopt {

/// Applies a table of rules: the pass for tables of one's own. Errors: invalid_argument and unknown_operator for rules
/// whose text is wrong.
[[nodiscard]] inline pass_result apply_rules(graph& g, std::span<const rewriting::rewrite_rule> table,
                                             const op_set& ops, rewriting::rewrite_options options = {}) {
  const std::vector<rewriting::compiled_rule> rules = rewriting::compile_rules(table, ops);
  return rewriting::engine(rules, options).run(g);
}

/// Brings exporters' spellings to one form and recognises the operators that they take apart.
struct recognize {
  static constexpr std::string_view name = "recognize";
  const op_set* ops = nullptr;  ///< where the rules' operators are found; never null when it runs
  rewriting::rewrite_options options{};

  pass_result run(graph& g) const {
    std::vector<rewriting::rewrite_rule> table(rewriting::canonicalization_rules.begin(),
                                               rewriting::canonicalization_rules.end());
    table.insert(table.end(), rewriting::recognition_rules.begin(), rewriting::recognition_rules.end());
    return apply_rules(g, table, *ops, options);
  }
};

/// Lowers the work by the algebra of operators: the associative, distributive and commutative families.
struct rewrite {
  static constexpr std::string_view name = "rewrite";
  const op_set* ops = nullptr;  ///< where the rules' operators are found; never null when it runs
  rewriting::rewrite_options options{};

  pass_result run(graph& g) const { return apply_rules(g, rewriting::linear_rules, *ops, options); }
};

static_assert(Pass<recognize> && Pass<rewrite>);

}  // namespace dnnopt

#endif  // DNNOPT_PASSES_REWRITE_HPP
