// Owns the growing of blocks over a graph: which node is in which block, and what a join may not break.
#ifndef DNNOPT_PASSES_FUSION_PLANNER_HPP
#define DNNOPT_PASSES_FUSION_PLANNER_HPP

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <set>
#include <span>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include <dnnopt/graph.hpp>
#include <dnnopt/passes/fusion/roles.hpp>

namespace dnnopt::fusion {

/// A number of a block in a planner.
using block_id = std::uint32_t;
inline constexpr block_id no_block = std::numeric_limits<block_id>::max();

/// Members of a block and values that it reads, at most: a kernel's arguments are bounded, and so shall be the work on
/// one source. Chains of more nodes become several kernels.
inline constexpr std::size_t most_members = 256;
inline constexpr std::size_t most_operands = 110;

/// Blocks that grow. Views belong to no block until one stores them: whoever reads one computes it as an index map.
class planner {
 public:
  struct block {
    std::vector<node_id> members;
    node_id anchor = no_node;
    std::size_t first = 0;  ///< positions in topological order
    std::size_t last = 0;
    bool fixed = false;  ///< joins nothing
    bool alive = true;
    int cost = 0;                 ///< of one element, without the anchor
    std::vector<node_id> before;  ///< members that were a block with an anchor of their own
    std::vector<node_id> after;   ///< the same, reading the anchor's result
    std::vector<std::string> why_not;
  };

  /// Where a value comes from through views that only move elements.
  struct path {
    value_id root = no_value;     ///< an input, a constant, or a value of a block
    node_id last_view = no_node;  ///< the view nearest to the reader
    bool invertible = true;       ///< every view on the way has an inverse
  };

  /// Every node but a view becomes a block; with `keep_views` views do too. Precondition: rdp has run. O(V + E).
  planner(const graph& g, bool keep_views) : g_(g), order_(g.topological_order()) {
    outputs_.insert(g.outputs().begin(), g.outputs().end());
    position_.assign(g.node_limit(), 0);
    owner_.assign(g.node_limit(), no_block);
    roles_.assign(g.node_limit(), role::alone);
    inlined_.assign(g.node_limit(), false);
    widens_.assign(g.node_limit(), false);
    const auto late = late_symbols(g, order_);
    tellers_ = size_tellers(g, late);
    const std::vector<bool> brings = bringers_of_symbols(g, late);
    for (std::size_t i = 0; i < order_.size(); ++i) {
      position_[order_[i]] = i;
      roles_[order_[i]] = role_of(g, order_[i], brings[order_[i]]);
    }
    for (const node_id id : order_)
      if (roles_[id] != role::known && (roles_[id] != role::view || keep_views)) make_block(id);
  }

  [[nodiscard]] const std::vector<node_id>& order() const noexcept { return order_; }
  [[nodiscard]] role role_at(node_id id) const { return roles_[id]; }
  [[nodiscard]] block_id owner(node_id id) const { return owner_[id]; }
  [[nodiscard]] block_id owner_of_value(value_id v) const {
    const node_id producer = g_.value_at(v).producer;
    return producer == no_node ? no_block : owner_[producer];
  }
  [[nodiscard]] const block& at(block_id b) const { return blocks_[b]; }
  [[nodiscard]] std::size_t block_count() const noexcept { return blocks_.size(); }

  /// A view that no block stores yet, or an expression that each reader computes.
  [[nodiscard]] bool is_virtual(node_id id) const {
    return owner_[id] == no_block && (roles_[id] == role::view || inlined_[id]);
  }
  /// Dissolves a block of expressions: whoever reads its values computes them for itself.
  void inline_block(block_id b) {
    for (const node_id id : blocks_[b].members) {
      owner_[id] = no_block;
      inlined_[id] = true;
    }
    blocks_[b].alive = false;
    blocks_[b].members.clear();
  }

  /// Leaves a node that makes each element of its first operand wider to whoever reads it, so that what is stored is
  /// the narrow one. Precondition: the node is a block by itself.
  void leave_to_readers(node_id id) {
    widens_[id] = true;
    inline_block(owner_[id]);
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

  /// Why blocks are too large to be one; empty where they are not. O(members, and the views that they read).
  [[nodiscard]] std::string reject_size(block_id a, block_id b) const {
    if (blocks_[a].members.size() + blocks_[b].members.size() > most_members)
      return "together they have too many members";
    std::unordered_set<value_id> read;
    for (const block_id one : {a, b})
      for (const node_id id : blocks_[one].members)
        for (const value_id in : g_.node_at(id).inputs) {
          if (in == no_value) continue;
          const node_id producer = g_.value_at(in).producer;
          if (producer != no_node && is_virtual(producer)) {
            std::vector<value_id> stored;
            stored_sources(in, stored);
            read.insert(stored.begin(), stored.end());
          } else if (producer == no_node || (owner_[producer] != a && owner_[producer] != b)) {
            read.insert(in);
          }
        }
    return read.size() > most_operands ? "together they read too many values" : "";
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

  /// Whether a block of `from` depends on block `target` through other blocks. The search is cut at `limit` blocks and
  /// then answers yes, the safe side. Blocks wholly before the target cannot depend on it.
  [[nodiscard]] bool depends_on(const std::vector<block_id>& from, block_id target, std::size_t limit = 256) const {
    std::unordered_set<block_id> seen;
    std::vector<block_id> work;
    const auto push = [&](block_id b) {
      if (b != no_block && blocks_[b].last > blocks_[target].first && seen.insert(b).second) work.push_back(b);
    };
    for (const block_id b : from)
      if (b != target) push(b);
    while (!work.empty()) {
      const block_id b = work.back();
      work.pop_back();
      if (seen.size() > limit) return true;
      for (const block_id source : sources(b)) {
        if (source == target) return true;
        push(source);
      }
    }
    return false;
  }

  /// The blocks that tell sizes which a node needs.
  [[nodiscard]] std::vector<block_id> size_sources_of(node_id id) const {
    std::vector<block_id> found;
    for (const node_id source : size_sources(g_, id, tellers_))
      if (owner_[source] != no_block) found.push_back(owner_[source]);
    return found;
  }

  /// The blocks that a block reads or needs sizes from, itself left out.
  [[nodiscard]] std::vector<block_id> sources(block_id b) const {
    std::vector<block_id> found;
    std::vector<value_id> stored;
    for (const node_id id : blocks_[b].members)
      for (const value_id in : g_.node_at(id).inputs)
        if (in != no_value) stored_sources(in, stored);
    for (const value_id v : stored) {
      const block_id owner = owner_of_value(v);
      if (owner != no_block && owner != b) found.push_back(owner);
    }
    if (!tellers_.empty())
      for (const node_id id : blocks_[b].members)
        for (const node_id source : size_sources(g_, id, tellers_))
          if (owner_[source] != no_block && owner_[source] != b) found.push_back(owner_[source]);
    return found;
  }

  /// Moves all members of block `from` into block `to`. Precondition: both alive, and no path between them leaves them.
  void merge(block_id from, block_id to) {
    block& a = blocks_[from];
    block& b = blocks_[to];
    for (const node_id id : a.members) owner_[id] = to;
    b.members.insert(b.members.end(), a.members.begin(), a.members.end());
    b.first = std::min(a.first, b.first);
    b.last = std::max(a.last, b.last);
    b.cost += a.cost;
    if (b.anchor == no_node)
      b.anchor = a.anchor;
    else if (a.anchor != no_node)
      b.before.insert(b.before.end(), a.members.begin(), a.members.end());
    b.why_not.insert(b.why_not.end(), a.why_not.begin(), a.why_not.end());
    a.alive = false;
    a.members.clear();
  }
  /// Moves all members of block `from` behind the anchor of block `to`. Precondition as for merge.
  void append(block_id from, block_id to) {
    blocks_[to].after.insert(blocks_[to].after.end(), blocks_[from].members.begin(), blocks_[from].members.end());
    blocks_[from].anchor = no_node;
    merge(from, to);
  }
  /// Makes a view part of a block, so that the block stores it.
  void adopt(node_id view, block_id b) {
    owner_[view] = b;
    blocks_[b].members.push_back(view);
    blocks_[b].first = std::min(blocks_[b].first, position_[view]);
    blocks_[b].last = std::max(blocks_[b].last, position_[view]);
  }
  /// A block of its own for a node.
  block_id make_block(node_id id) {
    block b;
    b.members = {id};
    b.first = b.last = position_[id];
    b.fixed = roles_[id] == role::alone;
    if (roles_[id] == role::anchor) b.anchor = id;
    if (roles_[id] == role::element) b.cost = element_cost(*g_.node_at(id).op);
    blocks_.push_back(std::move(b));
    owner_[id] = static_cast<block_id>(blocks_.size() - 1);
    return owner_[id];
  }
  void remark(block_id b, std::string why) {
    if (blocks_[b].why_not.size() < 4) blocks_[b].why_not.push_back(std::move(why));
  }

  /// What blocks would be as one, with the views that they compute for themselves and the values that others read.
  [[nodiscard]] fused_block as_one(std::span<const block_id> ids) const {
    fused_block made;
    std::set<node_id> members;
    for (const block_id b : ids) {
      members.insert(blocks_[b].members.begin(), blocks_[b].members.end());
      if (made.anchor == no_node) made.anchor = blocks_[b].anchor;
    }
    for (const node_id id : members)
      for (const value_id out : g_.node_at(id).outputs) {
        if (out == no_value) continue;
        std::vector<node_id> found;
        readers(out, found);
        if (reaches_output(out) || std::any_of(found.begin(), found.end(), [&](node_id reader) {
              return std::find(ids.begin(), ids.end(), owner_[reader]) == ids.end();
            }))
          made.outputs.push_back(out);
      }
    add_views(members);
    made.members.assign(members.begin(), members.end());
    std::sort(made.members.begin(), made.members.end(),
              [&](node_id x, node_id y) { return position_[x] < position_[y]; });
    return made;
  }

  /// The blocks with the views that they compute for themselves and the values that they store, in topological order.
  [[nodiscard]] std::vector<fused_block> finish() const {
    std::vector<std::pair<std::size_t, block_id>> sorted;
    for (block_id b = 0; b < blocks_.size(); ++b)
      if (blocks_[b].alive) sorted.emplace_back(blocks_[b].last, b);
    std::sort(sorted.begin(), sorted.end());
    // A value is stored where another block reads it, or the caller does.
    std::vector<bool> stored(g_.value_count(), false);
    for (const value_id out : g_.outputs()) stored[out] = true;
    std::vector<fused_block> plan;
    for (const auto& [last, b] : sorted) {
      fused_block made;
      std::set<node_id> members(blocks_[b].members.begin(), blocks_[b].members.end());
      std::vector<node_id> work(members.begin(), members.end());
      std::unordered_map<node_id, bool> known;
      while (!work.empty()) {
        const node_id id = work.back();
        work.pop_back();
        for (const value_id in : g_.node_at(id).inputs) {
          if (in == no_value) continue;
          const node_id producer = g_.value_at(in).producer;
          if (producer == no_node) continue;
          if ((is_virtual(producer) && !blocks_[b].fixed) || views_own(producer, b, known)) {
            if (members.insert(producer).second) work.push_back(producer);
          } else if (owner_[producer] != b) {
            stored[in] = true;
          }
        }
      }
      made.members.assign(members.begin(), members.end());
      std::sort(made.members.begin(), made.members.end(),
                [&](node_id x, node_id y) { return position_[x] < position_[y]; });
      made.anchor = blocks_[b].anchor;
      made.before = blocks_[b].before;
      made.after = blocks_[b].after;
      made.why_not = blocks_[b].why_not;
      plan.push_back(std::move(made));
    }
    for (std::size_t i = 0; i < plan.size(); ++i)
      for (const node_id id : plan[i].members) {
        if (owner_[id] != sorted[i].second) continue;
        for (const value_id out : g_.node_at(id).outputs)
          if (out != no_value && stored[out]) plan[i].outputs.push_back(out);
      }
    return plan;
  }

 private:
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

  /// Adds the views and inlined expressions that `members` read.
  void add_views(std::set<node_id>& members) const {
    std::vector<node_id> work(members.begin(), members.end());
    while (!work.empty()) {
      const node_id id = work.back();
      work.pop_back();
      for (const value_id in : g_.node_at(id).inputs) {
        const node_id producer = in == no_value ? no_node : g_.value_at(in).producer;
        if (producer != no_node && is_virtual(producer) && members.insert(producer).second) work.push_back(producer);
      }
    }
  }

  const graph& g_;
  std::vector<node_id> order_;
  std::vector<std::size_t> position_;
  std::vector<block_id> owner_;
  std::vector<role> roles_;
  std::vector<bool> inlined_;
  std::vector<bool> widens_;  ///< inlined, element by element: a way goes through it as through no view at all
  std::vector<block> blocks_;
  std::vector<std::vector<node_id>> tellers_;  ///< of late sizes, for each value
  std::unordered_set<value_id> outputs_;
};

}  // namespace dnnopt::fusion

#endif  // DNNOPT_PASSES_FUSION_PLANNER_HPP
