// Owns what a rewriting rule is: one line of a table, and its parsed form.
#ifndef DNNOPT_PASSES_REWRITING_RULE_HPP
#define DNNOPT_PASSES_REWRITING_RULE_HPP

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dnnopt/error.hpp>
#include <dnnopt/ops/op_info.hpp>
#include <dnnopt/passes/rewriting/pattern.hpp>

namespace dnnopt::rewriting {

/// The families of rules: DNNFusion's three (section 4.2, Table 4) and what exporters make necessary.
enum class rule_family : std::uint8_t { associative, distributive, commutative, canonicalization, recognition };

/// Whether a rule keeps every result, apart from rounding, or may change overflow, infinities or NaN.
enum class meaning : std::uint8_t { kept, changed };

/// Why a rule cannot fire for ever: it lowers the work, or brings the graph nearer to a normal form at equal work.
enum class progress : std::uint8_t { lowers_work, normal_form };

/// One rule. Texts are as parse_term and parse_conditions take them.
///
/// `example` names operands for which the rule fires, `counterexample` operands of the same pattern for which it must
/// not; both are "variable=operand ..." with operands such as "3x4" (a float input of that shape), "+3x4" (above 0),
/// "i3x4", "u3x4" and "b3x4" (integers, unsigned, booleans), "#3x4" (a constant), "#=0.5" (a constant number), "#[1,
/// 2]" (an int64 constant), and "label.attribute=number", "=[...]" or "=#=number" (a tensor) for attributes. A variable
/// that is not named is a float input of shape 3x4, an optional one is absent.
struct rewrite_rule {
  std::string_view name;
  rule_family family;
  std::string_view property;     ///< the law that makes both sides equal
  std::string_view pattern;      ///< what is replaced
  std::string_view replacement;  ///< by what; its variables occur in the pattern
  std::string_view condition;    ///< the domain: a list of conditions, empty where the law always holds
  std::string_view example{};
  std::string_view counterexample{};
  meaning floating_point = meaning::kept;
  progress ends = progress::lowers_work;
  /// Whether the replacement may tell dims that the replaced node leaves to its data, by the law itself. Of all other
  /// rules equal dims are a part of the domain: `Expand(x, s)` is `x` only where both have its shape.
  bool tells_dims = false;
};

/// The same rule, whose replacement tells dims that data decide.
[[nodiscard]] constexpr rewrite_rule with_told_dims(rewrite_rule rule) noexcept {
  rule.tells_dims = true;
  return rule;
}

[[nodiscard]] constexpr std::string_view name_of(rule_family family) noexcept {
  constexpr std::string_view names[] = {"associative", "distributive", "commutative", "canonicalization",
                                        "recognition"};
  return names[static_cast<unsigned>(family)];
}

namespace detail {
constexpr rewrite_rule associative(std::string_view name, std::string_view pattern, std::string_view replacement,
                                   std::string_view condition = "", std::string_view example = "",
                                   std::string_view counterexample = "", meaning floating_point = meaning::kept) {
  return {name,    rule_family::associative, "associativity", pattern, replacement, condition,
          example, counterexample,           floating_point};
}
constexpr rewrite_rule distributive(std::string_view name, std::string_view pattern, std::string_view replacement,
                                    std::string_view condition = "", std::string_view example = "",
                                    std::string_view counterexample = "", meaning floating_point = meaning::kept) {
  return {name,
          rule_family::distributive,
          "distributivity",
          pattern,
          replacement,
          condition,
          example,
          counterexample,
          floating_point};
}
constexpr rewrite_rule commutative(std::string_view name, std::string_view pattern, std::string_view replacement,
                                   std::string_view condition = "", std::string_view example = "",
                                   std::string_view counterexample = "", meaning floating_point = meaning::kept,
                                   progress ends = progress::lowers_work) {
  return {name,    rule_family::commutative, "commutativity", pattern, replacement, condition,
          example, counterexample,           floating_point,  ends};
}
constexpr rewrite_rule canonical(std::string_view name, std::string_view property, std::string_view pattern,
                                 std::string_view replacement, std::string_view condition = "",
                                 std::string_view example = "", std::string_view counterexample = "",
                                 progress ends = progress::lowers_work, meaning floating_point = meaning::kept) {
  return {name,           rule_family::canonicalization,
          property,       pattern,
          replacement,    condition,
          example,        counterexample,
          floating_point, ends};
}
constexpr rewrite_rule recognition(std::string_view name, std::string_view pattern, std::string_view replacement,
                                   std::string_view condition = "", std::string_view example = "",
                                   std::string_view counterexample = "", meaning floating_point = meaning::kept) {
  return {name,    rule_family::recognition, "definition",  pattern, replacement, condition,
          example, counterexample,           floating_point};
}
}  // namespace detail

/// A rule ready to match: its terms parsed, its operators found.
struct compiled_rule {
  const rewrite_rule* rule = nullptr;
  term pattern;
  term replacement;
  std::vector<condition_term> conditions;
  std::vector<const op_info*> pattern_ops;      ///< by node of the pattern; null for variables and numbers
  std::vector<const op_info*> replacement_ops;  ///< by node of the replacement
};

namespace detail {
[[nodiscard]] inline std::vector<const op_info*> find_ops(const term& t, const op_set& ops) {
  std::vector<const op_info*> rows;
  for (const term_node& n : t.nodes)
    rows.push_back(n.kind == term_node::form::operation ? &ops.at("", n.name) : nullptr);
  return rows;
}
}  // namespace detail

/// Parses a table's rules. Errors: invalid_argument for bad text or a replacement with a variable that the pattern
/// lacks, naming the rule; unknown_operator. Precondition: the table outlives the result.
[[nodiscard]] inline std::vector<compiled_rule> compile_rules(std::span<const rewrite_rule> table, const op_set& ops) {
  std::vector<compiled_rule> result;
  result.reserve(table.size());
  for (const rewrite_rule& rule : table) {
    compiled_rule one;
    one.rule = &rule;
    one.pattern = parse_term(rule.pattern);
    one.replacement = parse_term(rule.replacement);
    one.conditions = parse_conditions(rule.condition);
    one.pattern_ops = detail::find_ops(one.pattern, ops);
    one.replacement_ops = detail::find_ops(one.replacement, ops);
    if (one.pattern.nodes.back().kind != term_node::form::operation)
      throw error(errc::invalid_argument, "rule '" + std::string(rule.name) + "' matches every value");
    for (const term_node& n : one.replacement.nodes) {
      if (n.kind != term_node::form::variable) continue;
      bool known = false;
      for (const term_node& p : one.pattern.nodes)
        known = known || (p.kind == term_node::form::variable && p.name == n.name) ||
                (p.kind == term_node::form::operation && p.label == n.name);
      if (!known)
        throw error(errc::invalid_argument,
                    "rule '" + std::string(rule.name) + "' has no '" + std::string(n.name) + "' in its pattern");
    }
    result.push_back(std::move(one));
  }
  return result;
}

}  // namespace dnnopt::rewriting

#endif  // DNNOPT_PASSES_REWRITING_RULE_HPP
