// Owns the growing of blocks over a graph: which node is in which block, and what a join may not break.
#ifndef DNNOPT_PASSES_FUSION_PLANNER_HPP
#define DNNOPT_PASSES_FUSION_PLANNER_HPP

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include <dnnopt/graph.hpp>
#include <dnnopt/passes/fusion/block_order.hpp>
#include <dnnopt/passes/fusion/roles.hpp>
#include <dnnopt/passes/fusion/value_ways.hpp>

namespace dnnopt::fusion {

/// Members of a block and values that it reads, at most: a kernel's arguments are bounded, and so shall be the work on
/// one source. Chains of more nodes become several kernels.
inline constexpr std::size_t most_members = 256;
inline constexpr std::size_t most_operands = 110;

/// Blocks that grow.
class planner : public value_ways {
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

  /// Every node but a view becomes a block; with `keep_views` views do too. Precondition: rdp has run. O(V + E).
  planner(const graph& g, bool keep_views) : value_ways(g), order_(g.topological_order()) {
    position_.assign(g.node_limit(), 0);
    const auto late = late_symbols(g, order_);
    tellers_ = size_tellers(g, late);
    const std::vector<bool> brings = bringers_of_symbols(g, late);
    for (std::size_t i = 0; i < order_.size(); ++i) {
      position_[order_[i]] = i;
      roles_[order_[i]] = role_of(g, order_[i], brings[order_[i]]);
    }
    for (const node_id id : order_)
      if (roles_[id] != role::known && (roles_[id] != role::view || keep_views)) line_.append(add_block(id));
  }

  [[nodiscard]] const std::vector<node_id>& order() const noexcept { return order_; }
  [[nodiscard]] const block& at(block_id b) const { return blocks_[b]; }
  [[nodiscard]] std::size_t block_count() const noexcept { return blocks_.size(); }

  /// Dissolves a block of expressions: whoever reads its values computes them for itself.
  void inline_block(block_id b) {
    for (const node_id id : blocks_[b].members) {
      owner_[id] = no_block;
      inlined_[id] = true;
    }
    blocks_[b].alive = false;
    blocks_[b].members.clear();
    line_.remove(b);
  }

  /// Leaves a node that makes each element of its first operand wider to whoever reads it, so that what is stored is
  /// the narrow one. Precondition: the node is a block by itself.
  void leave_to_readers(node_id id) {
    widens_[id] = true;
    inline_block(owner_[id]);
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

  /// Whether a block of `from` depends on block `target` through other blocks. The search is cut at `limit` blocks and
  /// then answers yes, the safe side. What stands before the target in the line of blocks cannot depend on it.
  [[nodiscard]] bool depends_on(const std::vector<block_id>& from, block_id target, std::size_t limit = 256) const {
    std::unordered_set<block_id> seen;
    std::vector<block_id> work;
    const auto push = [&](block_id b) {
      if (b != no_block && line_.before(target, b) && seen.insert(b).second) work.push_back(b);
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
    std::unordered_map<node_id, bool> known;
    for (std::size_t i = 0; i < stored.size(); ++i) {
      const node_id producer = g_.value_at(stored[i]).producer;
      if (producer == no_node || owner_[producer] == no_block || owner_[producer] == b) continue;
      if (!views_own(producer, b, known)) {
        found.push_back(owner_[producer]);
        continue;
      }
      for (const value_id in : g_.node_at(producer).inputs)
        if (in != no_value) stored_sources(in, stored);
    }
    if (!tellers_.empty())
      for (const node_id id : blocks_[b].members)
        for (const node_id source : size_sources(g_, id, tellers_))
          if (owner_[source] != no_block && owner_[source] != b) found.push_back(owner_[source]);
    return found;
  }

  /// Moves all members of block `from` into block `to`. Precondition: both alive, and no path between them leaves them.
  void merge(block_id from, block_id to) {
    const block_id earlier = line_.before(from, to) ? from : to;
    const block_id later = earlier == from ? to : from;
    // What reads the earlier block may stand between the two; else the place of the later one will do as it is.
    const bool at_later = only_read_behind(earlier, later);
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
    if ((at_later ? later : earlier) == from)
      line_.take_place(from, to);
    else
      line_.remove(from);
    if (!at_later) put_behind_sources(to);
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
    put_behind_sources(b);
  }
  /// A block of its own for a view that no block stores.
  block_id make_block(node_id id) {
    const block_id made = add_block(id);
    line_.append(made);
    block_id first = no_block;
    std::vector<node_id> found;
    for (const value_id out : g_.node_at(id).outputs)
      if (out != no_value) readers(out, found);
    for (const node_id reader : found)
      if (owner_[reader] != no_block && owner_[reader] != made &&
          (first == no_block || line_.before(owner_[reader], first)))
        first = owner_[reader];
    if (first != no_block) line_.put_before(first, std::span(&made, 1));
    put_behind_sources(made);
    return made;
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

  /// The blocks with the views that they compute for themselves and the values that they store, in the order of their
  /// last nodes, which is not always one in which they can run.
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
  block_id add_block(node_id id) {
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

  /// Whether what reads a block, `later` left out, stands behind that one. Where sizes are late the answer is no.
  [[nodiscard]] bool only_read_behind(block_id b, block_id later) const {
    if (!tellers_.empty()) return false;
    std::vector<node_id> found;
    for (const node_id id : blocks_[b].members)
      for (const value_id out : g_.node_at(id).outputs)
        if (out != no_value) readers(out, found);
    return std::all_of(found.begin(), found.end(), [&](node_id reader) {
      const block_id by = owner_[reader];
      return by == no_block || by == b || !line_.before(by, later);
    });
  }

  /// Moves what a block needs, directly or through others, before it in the line. O(blocks that move).
  void put_behind_sources(block_id b) {
    std::vector<block_id> moved;
    std::unordered_set<block_id> seen{b};
    std::vector<std::pair<block_id, bool>> work{{b, false}};
    while (!work.empty()) {
      const auto [at, done] = work.back();
      work.pop_back();
      if (done) {
        if (at != b) moved.push_back(at);
        continue;
      }
      work.emplace_back(at, true);
      for (const block_id source : sources(at))
        if (!line_.before(source, b) && seen.insert(source).second) work.emplace_back(source, false);
    }
    line_.put_before(b, moved);
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

  std::vector<node_id> order_;
  std::vector<std::size_t> position_;
  std::vector<block> blocks_;
  block_order line_;                           ///< of the blocks that are alive: each behind what it needs
  std::vector<std::vector<node_id>> tellers_;  ///< of late sizes, for each value
};

}  // namespace dnnopt::fusion

#endif  // DNNOPT_PASSES_FUSION_PLANNER_HPP
