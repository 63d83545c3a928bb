// Owns the rewriting engine: in each partition of the graph the rule with the largest reduction of operations is
// applied until none fires (DNNFusion 4.2).
#ifndef DNNOPT_PASSES_REWRITING_ENGINE_HPP
#define DNNOPT_PASSES_REWRITING_ENGINE_HPP

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <queue>
#include <span>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include <range/v3/action/push_back.hpp>

#include <dnnopt/graph.hpp>
#include <dnnopt/passes/graph_views.hpp>
#include <dnnopt/passes/pass.hpp>
#include <dnnopt/passes/rewriting/conditions.hpp>
#include <dnnopt/passes/rewriting/matcher.hpp>
#include <dnnopt/passes/rewriting/replacement.hpp>
#include <dnnopt/passes/rewriting/rewrite_options.hpp>
#include <dnnopt/passes/rewriting/rule.hpp>
#include <dnnopt/passes/rewriting/work.hpp>

namespace dnnopt::rewriting {

/// Applies rules to one graph.
class engine {
 public:
  /// Precondition: `rules` outlive the engine.
  engine(std::span<const compiled_rule> rules, rewrite_options options) {
    for (const compiled_rule& rule : rules) {
      for (const op_info* op : rule.pattern_ops)
        if (op != nullptr) taking_part_.insert(op);
      if (rule.rule->floating_point == meaning::changed && !options.change_meaning) continue;
      by_root_[rule.pattern_ops.back()].push_back(&rule);
      depth_ = std::max(depth_, depth_of(rule.pattern, rule.pattern.root()));
    }
  }

  /// Rewrites `g` until no rule fires. Near-linear: each application looks again only at the nodes whose patterns can
  /// reach it. O((V + applications) log V) matches.
  pass_result run(graph& g) const {
    pass_result result;
    const symbol_values nominal = nominal_symbols(g.expressions());
    for (const std::vector<node_id>& part : partitions(g)) rewrite_part(g, part, nominal, result);
    return result;
  }

  /// How often rules match in `g` whose replacement would be lawful and does not lower the work, by their names; those
  /// of progress::normal_form aside. O(V) matches.
  [[nodiscard]] std::map<std::string, std::size_t> idle_rules(const graph& g) const {
    std::map<std::string, std::size_t> counts;
    const symbol_values nominal = nominal_symbols(g.expressions());
    for (const node_id id : g.nodes()) {
      const node& n = g.node_at(id);
      const auto rules = by_root_.find(n.op);
      if (rules == by_root_.end() || n.outputs.empty() || n.outputs[0] == no_value) continue;
      for (const compiled_rule* rule : rules->second) {
        if (rule->rule->ends == progress::normal_form || !may_match(g, *rule, n)) continue;
        const auto match = match_rule(g, *rule, n.outputs[0], [&](const rule_match& m) {
          if (!conditions_hold(g, *rule, m)) return false;
          const auto plan = plan_replacement(g, *rule, m, nominal);
          return plan && can_insert(g, *rule, m, *plan) && !(plan->added < plan->removed);
        });
        if (match) ++counts[std::string(rule->rule->name)];
      }
    }
    return counts;
  }

  /// Connected components of the operators that some rule mentions, in order of their first node: the graph is cut at
  /// operators without algebraic properties. O(V + E).
  [[nodiscard]] std::vector<std::vector<node_id>> partitions(const graph& g) const {
    std::vector<node_id> parent(g.node_limit());
    std::iota(parent.begin(), parent.end(), node_id{0});
    const auto find = [&](node_id id) {
      while (parent[id] != id) id = parent[id] = parent[parent[id]];
      return id;
    };
    const std::vector<node_id> order = g.topological_order();
    for (const node_id id : order) {
      if (!taking_part_.contains(g.node_at(id).op)) continue;
      for (const value_id in : g.node_at(id).inputs) {
        if (in == no_value || g.value_at(in).producer == no_node) continue;
        const node_id from = g.value_at(in).producer;
        if (taking_part_.contains(g.node_at(from).op)) parent[find(id)] = find(from);
      }
    }
    std::vector<std::vector<node_id>> parts;
    constexpr std::size_t none = std::numeric_limits<std::size_t>::max();
    std::vector<std::size_t> part_of(g.node_limit(), none);
    for (const node_id id : order) {
      if (!taking_part_.contains(g.node_at(id).op)) continue;
      std::size_t& part = part_of[find(id)];
      if (part == none) {
        part = parts.size();
        parts.emplace_back();
      }
      parts[part].push_back(id);
    }
    return parts;
  }

 private:
  struct candidate {
    work gain;
    node_id root = no_node;
    const compiled_rule* rule = nullptr;
    rule_match match;
    planned_replacement plan;
  };
  struct queued {
    work gain;
    node_id root;
    friend bool operator<(const queued& a, const queued& b) {
      if (a.gain < b.gain) return true;
      if (b.gain < a.gain) return false;
      return a.root > b.root;
    }
  };

  static std::size_t depth_of(const term& t, std::size_t at) {
    std::size_t deepest = 0;
    for (const std::size_t child : t.nodes[at].children) deepest = std::max(deepest, depth_of(t, child));
    return deepest + 1;
  }

  /// Whether the operators beneath a node are those that a pattern has beneath its root; most rules end here.
  static bool may_match(const graph& g, const compiled_rule& rule, const node& n) {
    const term_node& root = rule.pattern.nodes.back();
    for (std::size_t i = 0; i < root.children.size(); ++i) {
      const op_info* wanted = rule.pattern_ops[root.children[i]];
      if (wanted == nullptr) continue;
      bool found = false;
      for (std::size_t k = 0; k < n.inputs.size() && !found; ++k) {
        if (n.inputs[k] == no_value || (k != i && root.children.size() != 2)) continue;
        const node_id producer = g.value_at(n.inputs[k]).producer;
        found = producer != no_node && g.node_at(producer).op == wanted;
      }
      if (!found) return false;
    }
    return true;
  }

  /// The rule with the largest gain at a node, the first of equal ones; nothing where none fires.
  std::optional<candidate> best_at(const graph& g, node_id id, const symbol_values& nominal) const {
    const node& n = g.node_at(id);
    const auto rules = by_root_.find(n.op);
    if (rules == by_root_.end() || n.outputs.empty() || n.outputs[0] == no_value) return std::nullopt;
    std::optional<candidate> best;
    for (const compiled_rule* rule : rules->second) {
      if (!may_match(g, *rule, n)) continue;
      std::optional<planned_replacement> plan;
      auto match = match_rule(g, *rule, n.outputs[0], [&](const rule_match& m) {
        if (!conditions_hold(g, *rule, m)) return false;
        plan = plan_replacement(g, *rule, m, nominal);
        if (!plan || !can_insert(g, *rule, m, *plan)) return false;
        return rule->rule->ends == progress::normal_form ? !(plan->removed < plan->added) : plan->added < plan->removed;
      });
      if (!match) continue;
      const work gain = plan->removed - plan->added;
      if (best && !(best->gain < gain)) continue;
      best = candidate{gain, id, rule, std::move(*match), std::move(*plan)};
    }
    return best;
  }

  void rewrite_part(graph& g, const std::vector<node_id>& part, const symbol_values& nominal,
                    pass_result& result) const {
    std::priority_queue<queued> queue;
    const auto look_at = [&](node_id id) {
      if (g.node_at(id).removed) return;
      if (const auto found = best_at(g, id, nominal)) queue.push({found->gain, id});
    };
    for (const node_id id : part) look_at(id);
    // Rules lower the work or approach a normal form; the limit only guards against a user's table that does neither.
    std::size_t left = 64 * part.size() + 1024;
    while (!queue.empty()) {
      const queued next = queue.top();
      queue.pop();
      if (g.node_at(next.root).removed) continue;
      const auto found = best_at(g, next.root, nominal);
      if (!found) continue;
      if (found->gain < next.gain) {
        queue.push({found->gain, next.root});
        continue;
      }
      if (left-- == 0) {
        result.remarks.push_back("rule '" + std::string(found->rule->rule->name) + "' fires without end at '" +
                                 g.node_at(next.root).name + "'");
        return;
      }
      for (const node_id id : apply(g, *found)) look_at(id);
      ++result.edits;
      ++result.rules[std::string(found->rule->rule->name)];
    }
  }

  /// Applies a candidate; the nodes at which rules may have become able to fire.
  std::vector<node_id> apply(graph& g, const candidate& c) const {
    const value_id root = c.match.values[c.rule->pattern.root()];
    std::vector<value_id> changed{root};
    // What a removed node read has one reader fewer, which other matches may have waited for.
    for (const node_id id : c.plan.dying)
      for (const value_id in : g.node_at(id).inputs)
        if (in != no_value && !g.facts(in).is_constant()) changed.push_back(in);
    const std::vector<node_id> added = insert_replacement(g, *c.rule, c.match, c.plan);
    if (c.plan.values.back().existing != no_value) changed.push_back(c.plan.values.back().existing);
    std::vector<node_id> seen(added);
    std::vector<value_id> frontier;
    for (const value_id v : changed) frontier.push_back(v);
    std::unordered_set<node_id> known(added.begin(), added.end());
    constexpr std::size_t widest = 32;  // a value that everything reads does not make everything a candidate again
    for (std::size_t level = 0; level < depth_ && !frontier.empty(); ++level) {
      std::vector<value_id> next;
      for (const value_id v : frontier) {
        if (g.value_at(v).uses.size() > widest) continue;
        for (const value_use& use : g.value_at(v).uses) {
          if (!taking_part_.contains(g.node_at(use.node).op) || !known.insert(use.node).second) continue;
          seen.push_back(use.node);
          ranges::push_back(next, g.node_at(use.node).outputs | views::present);
        }
      }
      frontier = std::move(next);
    }
    return seen;
  }

  std::unordered_map<const op_info*, std::vector<const compiled_rule*>> by_root_;
  std::unordered_set<const op_info*> taking_part_;
  std::size_t depth_ = 1;
};

}  // namespace dnnopt::rewriting

#endif  // DNNOPT_PASSES_REWRITING_ENGINE_HPP
