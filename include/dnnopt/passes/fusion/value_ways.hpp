// Owns the ways of values through views that no block stores, back to what is stored and on to who reads.
#ifndef DNNOPT_PASSES_FUSION_VALUE_WAYS_HPP
#define DNNOPT_PASSES_FUSION_VALUE_WAYS_HPP

#include <unordered_map>
#include <unordered_set>
#include <vector>

#include <dnnopt/graph.hpp>
#include <dnnopt/passes/fusion/block_order.hpp>
#include <dnnopt/passes/fusion/roles.hpp>

namespace dnnopt::fusion {

/// Which block has which node, and how values get from block to block. Views belong to no block until one stores them:
/// whoever reads one computes it as an index map.
class value_ways {
 public:
  /// Where a value comes from through views that only move elements.
  struct path {
    value_id root = no_value;     ///< an input, a constant, or a value of a block
    node_id last_view = no_node;  ///< the view nearest to the reader
    bool invertible = true;       ///< every view on the way has an inverse
  };

  /// No block has any node. The graph outlives this object. O(V).
  explicit value_ways(const graph& g)
      : g_(g),
        owner_(g.node_limit(), no_block),
        roles_(g.node_limit(), role::alone),
        inlined_(g.node_limit(), false),
        widens_(g.node_limit(), false),
        outputs_(g.outputs().begin(), g.outputs().end()) {}

  [[nodiscard]] role role_at(node_id id) const { return roles_[id]; }
  [[nodiscard]] block_id owner(node_id id) const { return owner_[id]; }
  [[nodiscard]] block_id owner_of_value(value_id v) const {
    const node_id producer = g_.value_at(v).producer;
    return producer == no_node ? no_block : owner_[producer];
  }

  /// A view that no block stores yet, or an expression that each reader computes.
  [[nodiscard]] bool is_virtual(node_id id) const {
    return owner_[id] == no_block && (roles_[id] == role::view || inlined_[id]);
  }

  /// Follows `v` back through views that no block stores, as long as each has one input that moves.
  [[nodiscard]] path trace(value_id v) const {
    path p;
    p.root = v;
    while (true) {
      const node_id producer = g_.value_at(p.root).producer;
      if (producer == no_node || !is_virtual(producer)) return p;
      const node& n = g_.node_at(producer);
      if (widens_[producer]) {
        p.root = n.inputs[0];
        continue;
      }
      if (p.last_view == no_node) p.last_view = producer;
      if (n.op->unview == nullptr || n.outputs.size() != 1 || n.inputs.empty() || n.inputs[0] == no_value) {
        p.invertible = false;
        return p;
      }
      p.root = n.inputs[0];
    }
  }

  /// Appends the values of blocks, inputs and constants that `v` is made of through views that no block stores, each
  /// once. O(views on the way).
  void stored_sources(value_id v, std::vector<value_id>& into) const {
    std::vector<value_id> work{v};
    std::unordered_set<value_id> seen;
    while (!work.empty()) {
      const value_id at = work.back();
      work.pop_back();
      const node_id producer = g_.value_at(at).producer;
      if (producer == no_node || !is_virtual(producer)) {
        into.push_back(at);
        continue;
      }
      const auto& inputs = g_.node_at(producer).inputs;
      for (auto in = inputs.rbegin(); in != inputs.rend(); ++in)
        if (*in != no_value && seen.insert(*in).second) work.push_back(*in);
    }
  }

  /// Whether a node reads its operands: what is known never runs, such as the shape arithmetic of exporters.
  [[nodiscard]] bool reads(node_id id) const { return roles_[id] != role::known; }

  /// Appends the nodes of blocks that read `v`, directly or through views that no block stores. O(views on the way).
  void readers(value_id v, std::vector<node_id>& into) const {
    for_each_view_of(v, [&](value_id at) {
      for (const value_use& use : g_.value_at(at).uses)
        if (reads(use.node) && !is_virtual(use.node)) into.push_back(use.node);
      return true;
    });
  }
  /// Whether `v` or a view of it that no block stores is a graph output. O(views on the way).
  [[nodiscard]] bool reaches_output(value_id v) const {
    bool reached = false;
    for_each_view_of(v, [&](value_id at) {
      reached = reached || is_output(at);
      return !reached;
    });
    return reached;
  }
  [[nodiscard]] bool is_output(value_id v) const { return outputs_.contains(v); }

 protected:
  /// Whether `id` is a view of something that block `b` computes, or makes it wider element by element, and is stored
  /// elsewhere: the block cannot wait for what waits for it, so it computes that for itself. `known` holds what is
  /// known of block `b`.
  [[nodiscard]] bool views_own(node_id id, block_id b, std::unordered_map<node_id, bool>& known) const {
    if ((roles_[id] != role::view && !widens_[id]) || owner_[id] == b) return false;
    if (const auto found = known.find(id); found != known.end()) return found->second;
    bool own = false;
    for (const value_id in : g_.node_at(id).inputs) {
      if (in == no_value) continue;
      const node_id producer = g_.value_at(in).producer;
      own = own || (producer != no_node && (owner_[producer] == b || views_own(producer, b, known)));
    }
    known.emplace(id, own);
    return own;
  }

  /// Calls `look` with `v` and each value that views which no block stores make of it, once each, until it says no.
  template <class Look>
  void for_each_view_of(value_id v, Look&& look) const {
    std::vector<value_id> work{v};
    std::unordered_set<value_id> seen;
    while (!work.empty()) {
      const value_id at = work.back();
      work.pop_back();
      if (!look(at)) return;
      for (const value_use& use : g_.value_at(at).uses)
        if (is_virtual(use.node))
          for (const value_id out : g_.node_at(use.node).outputs)
            if (out != no_value && seen.insert(out).second) work.push_back(out);
    }
  }

  const graph& g_;
  std::vector<block_id> owner_;
  std::vector<role> roles_;
  std::vector<bool> inlined_;
  std::vector<bool> widens_;  ///< inlined, element by element: a way goes through it as through no view at all
  std::unordered_set<value_id> outputs_;
};

}  // namespace dnnopt::fusion

#endif  // DNNOPT_PASSES_FUSION_VALUE_WAYS_HPP
