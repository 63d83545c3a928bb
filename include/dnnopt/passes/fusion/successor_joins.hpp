// Owns the joining of element-wise nodes to the blocks that compute their operands.
#ifndef DNNOPT_PASSES_FUSION_SUCCESSOR_JOINS_HPP
#define DNNOPT_PASSES_FUSION_SUCCESSOR_JOINS_HPP

#include <algorithm>
#include <cstddef>
#include <string>
#include <unordered_map>
#include <vector>

#include <dnnopt/graph.hpp>
#include <dnnopt/ops/mapping_table.hpp>
#include <dnnopt/passes/fusion/join_rules.hpp>
#include <dnnopt/passes/fusion/planner.hpp>
#include <dnnopt/passes/fusion/roles.hpp>
#include <dnnopt/shape.hpp>

namespace dnnopt::fusion {

/// Joins element-wise nodes to the blocks that compute their operands (DNNFusion section 4.3, successor fusion).
class successor_joins {
 public:
  /// All arguments outlive this object. `derived`: for values that an anchor's result made, the last view on the way,
  /// so that equal ways mean equal indices; joins add to it.
  successor_joins(const graph& g, planner& p, std::unordered_map<value_id, node_id>& derived)
      : g_(g), p_(p), derived_(derived) {}

  /// Joins what can be joined; how many joins that were.
  std::size_t run() {
    for (const node_id id : p_.order()) {
      if (p_.role_at(id) != role::element || p_.is_virtual(id)) continue;
      if (g_.node_at(id).op->kind != computation_kind::element_wise) continue;
      join_producer(id);
    }
    return joins_;
  }

 private:
  /// Joins an element-wise node to the latest block that computes one of its operands and can go on with it.
  void join_producer(node_id id) {
    struct candidate {
      block_id b;
      planner::path way;
      std::size_t slot;
    };
    std::vector<candidate> found;
    const node& n = g_.node_at(id);
    for (std::size_t slot = 0; slot < n.inputs.size(); ++slot) {
      if (n.inputs[slot] == no_value) continue;
      const planner::path way = p_.trace(n.inputs[slot]);
      const block_id b = p_.owner_of_value(way.root);
      if (b != no_block) found.push_back({b, way, slot});
    }
    // Frames before expressions, late blocks before early ones: what comes later has all other operands at hand.
    std::stable_sort(found.begin(), found.end(), [&](const candidate& x, const candidate& y) {
      const bool anchored_x = p_.at(x.b).anchor != no_node;
      const bool anchored_y = p_.at(y.b).anchor != no_node;
      if (anchored_x != anchored_y) return anchored_x;
      return p_.at(x.b).last > p_.at(y.b).last;
    });
    for (const candidate& c : found) {
      const std::string why = reject(id, c.b, c.way, c.slot);
      if (!why.empty()) {
        p_.remark(c.b, "'" + n.name + "' (" + std::string(n.op->name) + ") does not follow: " + why);
        continue;
      }
      p_.merge(p_.owner(id), c.b);
      if (p_.at(c.b).anchor != no_node && derived_.contains(c.way.root))
        derived_.emplace(n.outputs[0], c.way.last_view != no_node ? c.way.last_view : derived_.at(c.way.root));
      ++joins_;
      return;
    }
  }

  [[nodiscard]] std::string reject(node_id id, block_id b, const planner::path& way, std::size_t slot) const {
    const planner::block& to = p_.at(b);
    const node& n = g_.node_at(id);
    if (to.fixed) return "it runs alone";
    if (!way.invertible) return "the view between has no inverse";
    const bool anchored = to.anchor != no_node;
    if (anchored && !takes_epilogue(g_.node_at(to.anchor).op->kind)) return "the frame has no epilogue";
    const facts_of_node facts(g_, id);
    const mapping_type own = mapping_of(*n.op, *facts, slot, 0);
    if (fuse_verdict(anchored ? g_.node_at(to.anchor).op->mapping : mapping_type::one_to_one, own) ==
        fusion_verdict::never)
      return "the pair of mapping types is not fused";
    if (!same_extent(n.inputs[slot], n.outputs[0])) return "it spreads the operand over more elements";
    if (!anchored && !same_count(to, n.outputs[0])) return "it has another number of elements";
    // Whatever else the node reads of this block must be at the same index.
    const node_id path_taken = way.last_view != no_node ? way.last_view : path_of(way.root);
    std::vector<block_id> others;
    for (std::size_t i = 0; i < n.inputs.size(); ++i) {
      if (n.inputs[i] == no_value) continue;
      std::vector<value_id> sources;
      p_.stored_sources(n.inputs[i], sources);
      bool from_anchor = false;
      for (const value_id v : sources) {
        const block_id owner = p_.owner_of_value(v);
        if (owner == b)
          from_anchor = from_anchor || !anchored || derived_.contains(v);
        else if (owner != no_block)
          others.push_back(owner);
      }
      if (!from_anchor) continue;
      const planner::path other = p_.trace(n.inputs[i]);
      if (!other.invertible || p_.owner_of_value(other.root) != b ||
          (other.last_view != no_node ? other.last_view : path_of(other.root)) != path_taken)
        return "it reads the block's result at two indices";
      if (!same_extent(n.inputs[i], n.outputs[0])) return "it spreads the operand over more elements";
    }
    if (anchored && !derived_.contains(way.root)) return "it reads what stands before the anchor";
    for (const block_id source : p_.size_sources_of(id)) others.push_back(source);
    if (p_.depends_on(others, b)) return "another operand depends on the block";
    return p_.reject_size(p_.owner(id), b);
  }

  [[nodiscard]] node_id path_of(value_id v) const {
    const auto found = derived_.find(v);
    return found == derived_.end() ? no_node : found->second;
  }

  static fusion_verdict fuse_verdict(mapping_type first, mapping_type second) {
    return dnnopt::fuse(first, second).verdict;
  }

  /// Whether two values have equal dims but for leading dims of 1.
  [[nodiscard]] bool same_extent(value_id from, value_id to) const {
    const shape& a = *g_.facts(from).dims;
    const shape& b = *g_.facts(to).dims;
    if (a.size() > b.size()) return false;
    const std::size_t lead = b.size() - a.size();
    for (std::size_t k = 0; k < b.size(); ++k)
      if (k < lead ? !(b[k] == index_expr(1)) : !(a[k - lead] == b[k])) return false;
    return true;
  }

  [[nodiscard]] bool same_count(const planner::block& b, value_id v) const {
    const value_id own = g_.node_at(b.members.back()).outputs[0];
    return element_count(*g_.facts(own).dims) == element_count(*g_.facts(v).dims);
  }

  const graph& g_;
  planner& p_;
  std::unordered_map<value_id, node_id>& derived_;
  std::size_t joins_ = 0;
};

}  // namespace dnnopt::fusion

#endif  // DNNOPT_PASSES_FUSION_SUCCESSOR_JOINS_HPP
