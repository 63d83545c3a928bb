// Owns matching: which values and nodes of a graph a rule's pattern stands for, by backtracking over commuted operands.
#ifndef DNNOPT_PASSES_REWRITING_MATCHER_HPP
#define DNNOPT_PASSES_REWRITING_MATCHER_HPP

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <dnnopt/graph.hpp>
#include <dnnopt/passes/rewriting/constants.hpp>
#include <dnnopt/passes/rewriting/rule.hpp>

namespace dnnopt::rewriting {

/// What a pattern stands for in a graph.
struct rule_match {
  std::vector<std::pair<std::string_view, value_id>> variables;
  std::vector<node_id> nodes;    ///< by node of the pattern; no_node for variables and numbers
  std::vector<value_id> values;  ///< by node of the pattern: the value that it stands for

  /// The value of a variable or the output of a labelled node. Precondition: the pattern has it.
  [[nodiscard]] value_id value_of(const compiled_rule& rule, std::string_view name) const {
    for (const auto& [key, id] : variables)
      if (key == name) return id;
    for (std::size_t i = 0; i < rule.pattern.nodes.size(); ++i)
      if (rule.pattern.nodes[i].kind == term_node::form::operation && rule.pattern.nodes[i].label == name)
        return values[i];
    throw error(errc::invalid_argument,
                "rule '" + std::string(rule.rule->name) + "' has no '" + std::string(name) + "' in its pattern");
  }
  /// The node of a label. Precondition: the pattern has it.
  [[nodiscard]] node_id node_of(const compiled_rule& rule, std::string_view label) const {
    for (std::size_t i = 0; i < rule.pattern.nodes.size(); ++i)
      if (rule.pattern.nodes[i].kind == term_node::form::operation && rule.pattern.nodes[i].label == label)
        return nodes[i];
    throw error(errc::invalid_argument,
                "rule '" + std::string(rule.rule->name) + "' has no label '" + std::string(label) + "'");
  }
};

namespace detail {

/// Whether a node's attribute is what a pattern asks for.
[[nodiscard]] inline bool attribute_fits(const node& n, const attribute_term& wanted) {
  const attribute* held = n.attributes.find(wanted.key);
  if (held == nullptr) return wanted.or_absent;
  switch (wanted.kind) {
    case attribute_term::form::integer:
      if (const auto* v = std::get_if<std::int64_t>(held)) return *v == wanted.integer;
      if (const auto* v = std::get_if<float>(held))
        return is_rounded(static_cast<double>(*v), static_cast<double>(wanted.integer), dtype::float32);
      return false;
    case attribute_term::form::real: {
      const auto* v = std::get_if<float>(held);
      return v != nullptr && is_rounded(static_cast<double>(*v), wanted.real, dtype::float32);
    }
    case attribute_term::form::text: {
      const auto* v = std::get_if<std::string>(held);
      return v != nullptr && *v == wanted.text;
    }
    case attribute_term::form::integers: {
      const auto* v = std::get_if<std::vector<std::int64_t>>(held);
      return v != nullptr && *v == wanted.integers;
    }
    case attribute_term::form::call:
      break;
  }
  return false;
}

class rule_matcher {
 public:
  /// Decides on a whole match; false lets the search go on.
  using decision = std::function<bool(const rule_match&)>;

  rule_matcher(const graph& g, const compiled_rule& rule, const decision& accept)
      : graph_(g), rule_(rule), accept_(accept) {
    found_.nodes.assign(rule.pattern.nodes.size(), no_node);
    found_.values.assign(rule.pattern.nodes.size(), no_value);
  }

  [[nodiscard]] bool run(value_id root) {
    goals_.emplace_back(rule_.pattern.root(), root);
    return solve();
  }
  [[nodiscard]] rule_match take() { return std::move(found_); }

 private:
  using goal = std::pair<std::size_t, value_id>;

  bool solve() {
    if (goals_.empty()) return accept_(found_);
    const goal next = goals_.back();
    goals_.pop_back();
    const bool solved = solve_one(next.first, next.second);
    if (!solved) goals_.push_back(next);
    return solved;
  }

  bool solve_one(std::size_t at, value_id read) {
    const term_node& wanted = rule_.pattern.nodes[at];
    found_.values[at] = read;
    switch (wanted.kind) {
      case term_node::form::variable:
        return solve_variable(wanted, read);
      case term_node::form::number: {
        if (read == no_value) return false;
        const auto number = uniform_value(graph_.facts(read));
        return number && is_rounded(*number, wanted.number, graph_.facts(read).type) && solve();
      }
      case term_node::form::integers:
        return read != no_value && graph_.facts(read).is_constant() && graph_.facts(read).type == dtype::int64 &&
               integers_of(graph_.facts(read).constant) == wanted.integers && solve();
      case term_node::form::operation:
        break;
    }
    return solve_operation(wanted, at, read);
  }

  bool solve_variable(const term_node& wanted, value_id read) {
    if (read == no_value && !wanted.optional) return false;
    for (const auto& [key, bound] : found_.variables)
      if (key == wanted.name) return same_value(graph_, bound, read) && solve();
    found_.variables.emplace_back(wanted.name, read);
    if (solve()) return true;
    found_.variables.pop_back();
    return false;
  }

  bool solve_operation(const term_node& wanted, std::size_t at, value_id read) {
    if (read == no_value) return false;
    const value& v = graph_.value_at(read);
    if (v.producer == no_node || v.output_index != 0) return false;
    const node& n = graph_.node_at(v.producer);
    if (n.op != rule_.pattern_ops[at] || n.captured_begin < n.inputs.size()) return false;
    for (std::size_t o = 1; o < n.outputs.size(); ++o)
      if (n.outputs[o] != no_value && (!graph_.value_at(n.outputs[o]).uses.empty() || graph_.is_output(n.outputs[o])))
        return false;
    if (n.inputs.size() > wanted.children.size())
      for (std::size_t i = wanted.children.size(); i < n.inputs.size(); ++i)
        if (n.inputs[i] != no_value) return false;
    for (const attribute_term& attribute : wanted.attributes)
      if (!attribute_fits(n, attribute)) return false;
    found_.nodes[at] = v.producer;
    const std::vector<value_id>& inputs = n.inputs;
    const auto input = [&](std::size_t i) { return i < inputs.size() ? inputs[i] : no_value; };
    const auto try_order = [&](bool swapped) {
      const std::size_t count = wanted.children.size();
      // The last child is met first: it often is the constant that refuses at once.
      for (std::size_t i = 0; i < count; ++i)
        goals_.emplace_back(wanted.children[i], input(swapped && i < 2 ? 1 - i : i));
      if (solve()) return true;
      goals_.resize(goals_.size() - count);
      return false;
    };
    if (try_order(false)) return true;
    if (!wanted.ordered && wanted.children.size() == 2 && has(n.op->properties, algebra::commutative) &&
        inputs.size() == 2 && inputs[0] != inputs[1] && try_order(true))
      return true;
    found_.nodes[at] = no_node;
    return false;
  }

  const graph& graph_;
  const compiled_rule& rule_;
  const decision& accept_;
  std::vector<goal> goals_;
  rule_match found_;
};

}  // namespace detail

/// The first match of a rule's pattern at the node that produces `root` for which `accept` holds, or nothing. Operands
/// of commutative operators are tried in both orders. Terms name values by producers, so a matched inner node may have
/// readers outside the match; it then stays. O(2^c) in the number c of commutative operators of the pattern.
[[nodiscard]] inline std::optional<rule_match> match_rule(const graph& g, const compiled_rule& rule, value_id root,
                                                          const std::function<bool(const rule_match&)>& accept) {
  detail::rule_matcher matcher(g, rule, accept);
  if (!matcher.run(root)) return std::nullopt;
  return matcher.take();
}

}  // namespace dnnopt::rewriting

#endif  // DNNOPT_PASSES_REWRITING_MATCHER_HPP
