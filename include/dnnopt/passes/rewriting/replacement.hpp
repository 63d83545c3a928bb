// Owns what a rule puts in a match's place: planned nodes with their facts and work, and their insertion into the
// graph.
#ifndef DNNOPT_PASSES_REWRITING_REPLACEMENT_HPP
#define DNNOPT_PASSES_REWRITING_REPLACEMENT_HPP

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dnnopt/graph.hpp>
#include <dnnopt/passes/rewriting/conditions.hpp>
#include <dnnopt/passes/rewriting/constants.hpp>
#include <dnnopt/passes/rewriting/matcher.hpp>
#include <dnnopt/passes/rewriting/rule.hpp>
#include <dnnopt/passes/rewriting/work.hpp>

namespace dnnopt::rewriting {

/// A node or value of a replacement before it is in the graph, by node of the rule's term.
struct planned_value {
  value_id existing = no_value;    ///< a value of the graph, or none where an operator makes it
  bool absent = false;             ///< an optional input that is not there
  bool folds = false;              ///< known before execution
  std::size_t same_as = SIZE_MAX;  ///< an equal planned value that comes earlier
  const op_info* op = nullptr;     ///< null for numbers and existing values
  attribute_map attributes{};
  value_facts facts{};
};

/// A replacement that fits a match.
struct planned_replacement {
  std::vector<planned_value> values;
  work added;    ///< of the new nodes
  work removed;  ///< of the nodes that lose their last reader
  std::vector<node_id> dying;
};

namespace detail {

/// An attribute that a replacement computes from a match. Errors: invalid_argument for an unknown function.
[[nodiscard]] inline std::optional<attribute> computed_attribute(const condition_site& s, std::string_view function) {
  if (function == "value") {
    const auto number = uniform_value(s.facts(0));
    return number ? std::optional<attribute>(static_cast<float>(*number)) : std::nullopt;
  }
  if (function == "reciprocal") {
    const auto number = uniform_value(s.facts(0));
    return number ? std::optional<attribute>(static_cast<float>(1.0 / *number)) : std::nullopt;
  }
  if (function == "dim") {
    const index_expr& dim = s.facts(0).dims->at(static_cast<std::size_t>(s.integer(1)));
    return dim.is_constant() ? std::optional<attribute>(dim.constant()) : std::nullopt;
  }
  if (function == "type") return attribute(static_cast<std::int64_t>(s.facts(0).type));
  if (function == "of") {
    const attribute* held = s.node_at(0).attributes.find(s.arguments[1]);
    return held == nullptr ? std::nullopt : std::optional<attribute>(*held);
  }
  throw error(errc::invalid_argument, "rule '" + std::string(s.rule.rule->name) + "' computes an attribute by '" +
                                          std::string(function) + "', which is no function");
}

inline void set_attributes(const graph& g, const compiled_rule& rule, const rule_match& match, const term_node& wanted,
                           attribute_map& attributes) {
  if (!wanted.label.empty()) attributes = g.node_at(match.node_of(rule, wanted.label)).attributes;
  for (const attribute_term& one : wanted.attributes) {
    const std::string key(one.key);
    switch (one.kind) {
      case attribute_term::form::integer:
        attributes.set(key, one.integer);
        break;
      case attribute_term::form::real:
        attributes.set(key, static_cast<float>(one.real));
        break;
      case attribute_term::form::text:
        attributes.set(key, std::string(one.text));
        break;
      case attribute_term::form::integers:
        attributes.set(key, one.integers);
        break;
      case attribute_term::form::call:
        if (auto made = computed_attribute({g, rule, match, one.arguments}, one.text)) attributes.set(key, *made);
        break;
    }
  }
}

[[nodiscard]] inline bool same_term(const term& t, std::size_t a, std::size_t b) {
  const term_node& x = t.nodes[a];
  const term_node& y = t.nodes[b];
  if (x.kind != y.kind || x.name != y.name || x.label != y.label || x.number != y.number || x.integers != y.integers ||
      x.children.size() != y.children.size() || !x.attributes.empty() || !y.attributes.empty())
    return false;
  for (std::size_t i = 0; i < x.children.size(); ++i)
    if (!same_term(t, x.children[i], y.children[i])) return false;
  return true;
}

/// Whether dims tell no more of a value, the first output of its node and of that name, than what the node left to the
/// data.
[[nodiscard]] inline bool dims_fit(const shape& made, const shape& replaced, const std::string& name) {
  if (made.size() != replaced.size()) return false;
  for (std::size_t k = 0; k < made.size(); ++k) {
    const index_expr& dim = replaced[k];
    if (made[k] == dim) continue;
    if (!dim.as_symbol() || !dim.context()->is_data_dim(dim, name, 0, k)) return false;
  }
  return true;
}

/// Plans what takes the place of a match: values in the order of the rule's term, then which nodes they let die.
class replacement_planner {
 public:
  /// All of them outlive this object.
  replacement_planner(const graph& g, const compiled_rule& rule, const rule_match& match, const symbol_values& nominal)
      : g_(g),
        rule_(rule),
        match_(match),
        nominal_(nominal),
        root_(match.values[rule.pattern.root()]),
        replaced_(g.facts(root_)) {}

  /// The plan, or nothing where it does not fit. Precondition: it was not called before.
  [[nodiscard]] std::optional<planned_replacement> run() {
    if (!replaced_.dims || replaced_.type == dtype::undefined) return std::nullopt;
    for (std::size_t i = 0; i < rule_.replacement.nodes.size(); ++i) {
      std::optional<planned_value> made = plan_term(i);
      if (!made) return std::nullopt;
      plan_.values.push_back(std::move(*made));
    }
    if (!fits()) return std::nullopt;
    find_dying();
    return std::move(plan_);
  }

 private:
  /// What stands for node `i` of the term; nothing where its operator does not suit its operands. Precondition: all
  /// before it are planned.
  [[nodiscard]] std::optional<planned_value> plan_term(std::size_t i) {
    const term_node& wanted = rule_.replacement.nodes[i];
    planned_value made;
    made.same_as = equal_before(i);
    if (made.same_as != SIZE_MAX) return made;
    switch (wanted.kind) {
      case term_node::form::number:
        made.folds = true;
        made.facts.constant = tensor_of(replaced_.type, {}, {wanted.number});
        made.facts.type = replaced_.type;
        made.facts.dims.emplace();
        break;
      case term_node::form::integers:
        made.facts.constant =
            tensor::of<std::int64_t>({static_cast<std::int64_t>(wanted.integers.size())}, wanted.integers);
        made.folds = true;
        made.facts.type = dtype::int64;
        made.facts.dims = to_shape(made.facts.constant.dims());
        break;
      case term_node::form::variable:
        made.existing = match_.value_of(rule_, wanted.name);
        made.absent = made.existing == no_value;
        if (!made.absent) {
          made.facts = g_.facts(made.existing);
          made.folds = made.facts.is_constant();
          kept_.push_back(made.existing);
        }
        break;
      case term_node::form::operation:
        return plan_node(i);
    }
    return made;
  }

  /// The first planned value that is no other's double and equals node `i` of the term; SIZE_MAX where there is none.
  [[nodiscard]] std::size_t equal_before(std::size_t i) const {
    for (std::size_t j = 0; j < i; ++j)
      if (plan_.values[j].same_as == SIZE_MAX && same_term(rule_.replacement, i, j)) return j;
    return SIZE_MAX;
  }

  /// The operator of node `i` of the term with what it makes of its operands, whose work is added to the plan's;
  /// nothing where it does not take them.
  [[nodiscard]] std::optional<planned_value> plan_node(std::size_t i) {
    const term_node& wanted = rule_.replacement.nodes[i];
    planned_value made;
    made.op = rule_.replacement_ops[i];
    set_attributes(g_, rule_, match_, wanted, made.attributes);
    std::vector<const value_facts*> inputs;
    made.folds = true;
    for (const std::size_t child : wanted.children) {
      const planned_value* read = &plan_.values[child];
      if (read->same_as != SIZE_MAX) read = &plan_.values[read->same_as];
      const bool in_graph = read->existing != no_value;
      made.folds = made.folds && (read->absent || read->folds);
      inputs.push_back(read->absent ? nullptr : in_graph ? &g_.facts(read->existing) : &read->facts);
    }
    while (!inputs.empty() && inputs.back() == nullptr) inputs.pop_back();
    node_facts facts;
    facts.attributes = &made.attributes;
    facts.inputs = inputs;
    facts.output_count = 1;
    facts.expressions = &g_.expressions();
    const std::string scope = g_.value_at(root_).name;
    facts.scope = scope;
    std::array<value_facts, 1> outputs;
    try {
      made.op->infer(facts, outputs);
    } catch (const error&) {
      return std::nullopt;  // operands of the pattern need not suit the replacement
    }
    if (!outputs[0].dims) return std::nullopt;
    plan_.added += work_of(*made.op, facts, outputs[0], nominal_, made.folds);
    made.facts = std::move(outputs[0]);
    return made;
  }

  /// Whether the last planned value has the type and dims of what it replaces. Precondition: all values are planned.
  [[nodiscard]] bool fits() const {
    const planned_value& last = plan_.values.back();
    if (last.facts.type != replaced_.type || !last.facts.dims) return false;
    return *last.facts.dims == *replaced_.dims ||
           (rule_.rule->tells_dims && dims_fit(*last.facts.dims, *replaced_.dims, g_.value_at(root_).name));
  }

  /// Finds the matched nodes that nothing reads any more, and the work that goes with them. Precondition: all values
  /// are planned.
  void find_dying() {
    // Parents come after children in a pattern, so that readers are judged before what they read.
    for (std::size_t i = match_.nodes.size(); i-- > 0;) {
      const node_id id = match_.nodes[i];
      if (id == no_node || is_dying(id)) continue;
      if (i != rule_.pattern.root() && !loses_readers(match_.values[i])) continue;
      plan_.dying.push_back(id);
      plan_.removed += work_of(g_, id, nominal_);
    }
  }

  /// Whether a node is among those that were found to die.
  [[nodiscard]] bool is_dying(node_id id) const {
    return std::find(plan_.dying.begin(), plan_.dying.end(), id) != plan_.dying.end();
  }

  /// Whether neither the caller, nor the replacement, nor a node that lives on reads a value.
  [[nodiscard]] bool loses_readers(value_id out) const {
    if (g_.is_output(out) || std::find(kept_.begin(), kept_.end(), out) != kept_.end()) return false;
    const auto& uses = g_.value_at(out).uses;
    return std::all_of(uses.begin(), uses.end(), [&](const value_use& use) { return is_dying(use.node); });
  }

  const graph& g_;
  const compiled_rule& rule_;
  const rule_match& match_;
  const symbol_values& nominal_;
  value_id root_;
  const value_facts& replaced_;
  planned_replacement plan_;
  std::vector<value_id> kept_;  // values of the graph that the replacement reads
};

}  // namespace detail

/// The replacement of a match, or nothing where it does not fit: its type and shape must be those of the value that it
/// replaces, symbols included, so that broadcasting cannot change what readers see. A dim that the replaced node
/// decides by its data may become known where the rule says so (rewrite_rule::tells_dims).
[[nodiscard]] inline std::optional<planned_replacement> plan_replacement(const graph& g, const compiled_rule& rule,
                                                                         const rule_match& match,
                                                                         const symbol_values& nominal) {
  return detail::replacement_planner(g, rule, match, nominal).run();
}

/// Whether insert_replacement can put the plan in place: a graph output must keep its name, so that it cannot become
/// a graph input, a constant or another output.
[[nodiscard]] inline bool can_insert(const graph& g, const compiled_rule& rule, const rule_match& match,
                                     const planned_replacement& plan) {
  const value_id root = match.values[rule.pattern.root()];
  const value_id by = plan.values.back().existing;
  if (by == no_value || !g.is_output(root)) return true;
  return g.value_at(by).producer != no_node && !g.is_output(by) &&
         g.node_at(g.value_at(by).producer).captured_begin >= g.node_at(g.value_at(by).producer).inputs.size();
}

/// Puts a planned replacement in the place of a match: readers of the root read the new value, and matched nodes that
/// nothing reads any more are removed. The ids of the new nodes. Precondition: can_insert.
inline std::vector<node_id> insert_replacement(graph& g, const compiled_rule& rule, const rule_match& match,
                                               const planned_replacement& plan) {
  const value_id root = match.values[rule.pattern.root()];
  const std::string prefix = g.value_at(root).name;
  const std::string node_name = g.node_at(g.value_at(root).producer).name;
  std::vector<node_id> added;
  std::vector<value_id> ids(plan.values.size(), no_value);
  const auto fresh_name = [&] { return prefix + "~" + std::to_string(g.value_count()); };
  const std::size_t last = plan.values.size() - 1;
  const value_id by = plan.values[last].existing;
  const bool is_output = g.is_output(root);
  g.learn_dims(root, *plan.values[last].facts.dims);
  g.remove_node(g.value_at(root).producer);
  for (std::size_t i = 0; i < plan.values.size(); ++i) {
    const planned_value& made = plan.values[i];
    if (made.same_as != SIZE_MAX) {
      ids[i] = ids[made.same_as];
    } else if (made.absent || made.existing != no_value) {
      ids[i] = made.existing;
    } else if (made.op == nullptr) {
      ids[i] = g.add_constant(fresh_name(), made.facts.constant);
    } else {
      std::vector<value_id> inputs;
      for (const std::size_t child : rule.replacement.nodes[i].children) inputs.push_back(ids[child]);
      while (!inputs.empty() && inputs.back() == no_value) inputs.pop_back();
      if (i == last) {
        ids[i] = root;
      } else {
        ids[i] = g.add_value(fresh_name());
        g.facts(ids[i]) = made.facts;
      }
      added.push_back(g.add_node(*made.op, i == last ? node_name : node_name + "." + std::to_string(i),
                                 std::move(inputs), {ids[i]}, made.attributes));
    }
  }
  if (plan.values[last].op == nullptr) {
    if (by == no_value) {
      // A number takes the place of a computation.
      g.make_constant(root, plan.values[last].facts.constant);
    } else if (is_output) {
      g.move_output(by, root);
      g.replace_uses(by, root);
    } else {
      g.replace_uses(root, by);
    }
  }
  for (const node_id id : plan.dying)
    if (!g.node_at(id).removed) {
      bool read = false;
      for (const value_id out : g.node_at(id).outputs)
        read = read || (out != no_value && (!g.value_at(out).uses.empty() || g.is_output(out)));
      if (!read) g.remove_node(id);
    }
  return added;
}

}  // namespace dnnopt::rewriting

#endif  // DNNOPT_PASSES_REWRITING_REPLACEMENT_HPP
