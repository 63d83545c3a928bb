// Owns the mutation of graphs by rewriting rules run backwards: each step puts the left side of a rule where its right
// side stands, so that the graph computes the same by other operators.
#ifndef DNNOPT_TESTS_PROPERTY_MUTATED_GRAPH_HPP
#define DNNOPT_TESTS_PROPERTY_MUTATED_GRAPH_HPP

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dnnopt/passes/rdp.hpp>
#include <dnnopt/passes/rewrite.hpp>

namespace testing {

/// The rules whose right side names every variable of the left one and can be matched: both sides exchanged. What the
/// conditions ask of labelled operators cannot be asked of the right side, so that such rules stay out, as do those
/// that hold of operands above 0 alone: run backwards they would take roots and logarithms of whatever there is.
class reversed_rules {
 public:
  explicit reversed_rules(const dnnopt::op_set& ops) {
    using namespace dnnopt::rewriting;
    std::vector<rewrite_rule> all = dnnopt::algebraic_rules();
    for (const rewrite_rule& rule : dnnopt::export_rules()) all.push_back(rule);
    for (const rewrite_rule& rule : all) {
      rewrite_rule back = rule;
      std::swap(back.pattern, back.replacement);
      try {
        if (!is_reversible(back)) continue;
        (void)compile_rules({&back, 1}, ops);
        table_.push_back(back);
      } catch (const dnnopt::error&) {
        continue;
      }
    }
    rules_ = compile_rules(table_, ops);
  }
  reversed_rules(const reversed_rules&) = delete;
  reversed_rules& operator=(const reversed_rules&) = delete;

  [[nodiscard]] std::size_t size() const { return rules_.size(); }

  /// Applies up to `steps` of them at random places; the names of those that were.
  std::vector<std::string> mutate(dnnopt::graph& g, std::mt19937& random, int steps) const {
    using namespace dnnopt::rewriting;
    std::vector<std::string> applied;
    for (int step = 0; step < steps; ++step) {
      dnnopt::rdp{}.run(g);
      const dnnopt::symbol_values nominal = nominal_symbols(g.expressions());
      std::vector<dnnopt::node_id> nodes = g.topological_order();
      std::shuffle(nodes.begin(), nodes.end(), random);
      std::vector<const compiled_rule*> order;
      for (const compiled_rule& rule : rules_) order.push_back(&rule);
      std::shuffle(order.begin(), order.end(), random);
      bool done = false;
      for (const compiled_rule* rule : order) {
        for (const dnnopt::node_id id : nodes) {
          const dnnopt::node& n = g.node_at(id);
          if (done || n.op != rule->pattern_ops.back() || n.outputs.empty() || n.outputs[0] == dnnopt::no_value ||
              (dnnopt::is_integer(g.facts(n.outputs[0]).type) && is_of_floats(*rule->rule)))
            continue;
          std::optional<planned_replacement> plan;
          const auto match = match_rule(g, *rule, n.outputs[0], [&](const rule_match& m) {
            if (!conditions_hold(g, *rule, m) || says_more(g, *rule, m)) return false;
            plan = plan_replacement(g, *rule, m, nominal);
            return plan && can_insert(g, *rule, m, *plan);
          });
          if (!match) continue;
          (void)insert_replacement(g, *rule, *match, *plan);
          applied.emplace_back(rule->rule->name);
          done = true;
        }
        if (done) break;
      }
      if (!done) break;
    }
    return applied;
  }

 private:
  /// Whether the right side has functions that integers lack.
  static bool is_of_floats(const dnnopt::rewriting::rewrite_rule& rule) {
    constexpr std::string_view functions[] = {"Sqrt(", "Exp(", "Log(", "Reciprocal(", "Sigmoid(", "Tanh(", "Erf("};
    return std::any_of(std::begin(functions), std::end(functions),
                       [&](std::string_view f) { return rule.replacement.find(f) != std::string_view::npos; });
  }
  /// Whether a matched node has attributes that the pattern does not name: a rule that makes `Swish(x)` says nothing of
  /// one with another alpha.
  static bool says_more(const dnnopt::graph& g, const dnnopt::rewriting::compiled_rule& rule,
                        const dnnopt::rewriting::rule_match& m) {
    for (std::size_t k = 0; k < m.nodes.size(); ++k)
      if (m.nodes[k] != dnnopt::no_node &&
          g.node_at(m.nodes[k]).attributes.size() > rule.pattern.nodes[k].attributes.size())
        return true;
    return false;
  }

  static bool is_reversible(const dnnopt::rewriting::rewrite_rule& back) {
    using namespace dnnopt::rewriting;
    if (back.floating_point == meaning::changed && back.example.find("=+") != std::string_view::npos) return false;
    const term pattern = parse_term(back.pattern);
    const term replacement = parse_term(back.replacement);
    const auto named = [](const term& t, std::string_view name) {
      return std::any_of(t.nodes.begin(), t.nodes.end(),
                         [&](const term_node& n) { return n.kind == term_node::form::variable && n.name == name; });
    };
    for (const term_node& n : replacement.nodes) {
      if (n.optional ||
          std::any_of(n.attributes.begin(), n.attributes.end(), [](const auto& a) { return a.or_absent; }))
        return false;
      if (n.kind == term_node::form::operation && !n.label.empty()) return false;
    }
    for (const term_node& n : pattern.nodes)
      if (n.kind == term_node::form::operation && !n.label.empty()) return false;
    for (const condition_term& one : parse_conditions(back.condition))
      for (const std::string_view argument : one.arguments)
        if (std::isalpha(static_cast<unsigned char>(argument[0])) != 0 && !named(pattern, argument)) return false;
    return true;
  }

  std::vector<dnnopt::rewriting::rewrite_rule> table_;
  std::vector<dnnopt::rewriting::compiled_rule> rules_;
};

}  // namespace testing

#endif  // DNNOPT_TESTS_PROPERTY_MUTATED_GRAPH_HPP
