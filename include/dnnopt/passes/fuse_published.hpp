// Owns the fusion planner that DNNFusion publishes, beside our own: its Listing 1 with Table 3.
#ifndef DNNOPT_PASSES_FUSE_PUBLISHED_HPP
#define DNNOPT_PASSES_FUSE_PUBLISHED_HPP

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include <dnnopt/graph.hpp>
#include <dnnopt/ops/mapping_table.hpp>
#include <dnnopt/passes/fusion/join_judge.hpp>
#include <dnnopt/passes/fusion/join_rules.hpp>
#include <dnnopt/passes/fusion/planner.hpp>
#include <dnnopt/passes/graph_views.hpp>
#include <dnnopt/passes/pass.hpp>

namespace dnnopt {

/// Before: a graph of operators. After: the same graph with the fusion plan of DNNFusion's Listing 1 (section 4.3).
///
/// One-to-One nodes are seeds, those of the smallest results first, equal ones in topological order. From a seed a
/// block grows over successors, and then over predecessors of the seed: Table 3 says of the block's type and the next
/// node's whether they are fused (green), never (red), or as a profile says (yellow). A path ends where a node does not
/// join. Types are those towards inputs that nodes compute: weights come from no operator.
///
/// The paper's constraint is an empirical threshold that it does not print. Here a block must be what one of our
/// kernels can be: a bounded number of members and operands, no cycle, at most one anchor, behind it element-wise
/// operators and invertible views of its result, before it what its frame computes for itself. Yellow is asked of
/// `judge`; without one, such a pair is fused where no element is computed again.
///
/// Precondition: rdp has run. O(V M) for blocks of M members, but for the searches for cycles, of at most 256 blocks
/// each.
class fuse_published {
 public:
  static constexpr std::string_view name = "fuse_published";

  fusion::join_judge* judge = nullptr;

  pass_result run(graph& g) const {
    work w(g, judge);
    w.grow_all();
    pass_result result;
    result.edits = w.joins;
    g.set_blocks(w.p.finish());
    return result;
  }

 private:
  struct work {
    work(const graph& graph_, fusion::join_judge* judge_)
        : g(graph_), judge(judge_), p(graph_, true), place(graph_.node_limit()), taken(graph_.node_limit(), false) {
      for (std::size_t i = 0; i < p.order().size(); ++i) place[p.order()[i]] = i;
    }

    const graph& g;
    fusion::join_judge* judge;
    fusion::planner p;
    std::vector<std::size_t> place;  ///< by node: where it stands in the order
    std::vector<bool> taken;         ///< in the block that grows, or in one that is finished
    std::size_t joins = 0;
    fusion::block_id block = fusion::no_block;  ///< the one that grows
    mapping_type type = mapping_type::one_to_one;

    [[nodiscard]] bool is_free(node_id id) const {
      return p.owner(id) != fusion::no_block && !p.at(p.owner(id)).fixed && !taken[id];
    }

    [[nodiscard]] mapping_type mapping_at(node_id id) const {
      const node& n = g.node_at(id);
      const facts_of_node facts(g, id);
      mapping_type result = mapping_type::one_to_one;
      bool any = false;
      for (std::size_t i = 0; i < n.inputs.size(); ++i) {
        if (n.inputs[i] == no_value || g.facts(n.inputs[i]).is_constant()) continue;
        result = more_complex(result, mapping_of(*n.op, *facts, i, 0));
        any = true;
      }
      return any ? result : n.op->mapping;
    }

    /// Bytes of a node's results; symbolic ones come last.
    [[nodiscard]] std::int64_t result_size(node_id id) const {
      std::int64_t bytes = 0;
      for (const value_facts& facts : g.node_at(id).outputs | views::present | views::facts_in(g)) {
        const auto count = facts.dims ? element_count(*facts.dims).as_constant() : std::nullopt;
        if (!count) return std::numeric_limits<std::int64_t>::max();
        bytes += *count * static_cast<std::int64_t>(size_of(facts.type));
      }
      return bytes;
    }

    void grow_all() {
      std::vector<std::pair<std::int64_t, node_id>> seeds;
      for (const node_id id : p.order())
        if (is_free(id) && mapping_at(id) == mapping_type::one_to_one) seeds.emplace_back(result_size(id), id);
      std::stable_sort(seeds.begin(), seeds.end(), [](const auto& x, const auto& y) { return x.first < y.first; });
      for (const auto& [size, seed] : seeds) {
        if (taken[seed]) continue;
        taken[seed] = true;
        block = p.owner(seed);
        type = mapping_type::one_to_one;
        for (const node_id next : successors(seed)) join_successor(next);
        for (const node_id before : predecessors(seed)) join_predecessor(before);
      }
    }

    [[nodiscard]] std::vector<node_id> successors(node_id id) const {
      std::vector<node_id> found;
      for (const value_id out : g.node_at(id).outputs)
        if (out != no_value)
          for (const value_use& use : g.value_at(out).uses) found.push_back(use.node);
      std::sort(found.begin(), found.end());
      found.erase(std::unique(found.begin(), found.end()), found.end());
      return found;
    }
    [[nodiscard]] std::vector<node_id> predecessors(node_id id) const {
      std::vector<node_id> found;
      for (const value_id in : g.node_at(id).inputs)
        if (in != no_value && g.value_at(in).producer != no_node) found.push_back(g.value_at(in).producer);
      std::sort(found.begin(), found.end());
      found.erase(std::unique(found.begin(), found.end()), found.end());
      return found;
    }

    void join_successor(node_id id) {
      if (!is_free(id) || !join(id, fuse(type, mapping_at(id)), true)) return;
      for (const node_id next : successors(id)) join_successor(next);
    }
    void join_predecessor(node_id id) {
      if (!is_free(id) || !join(id, fuse(mapping_at(id), type), false)) return;
      for (const node_id before : predecessors(id)) join_predecessor(before);
    }

    bool join(node_id id, const fused_mapping& found, bool follows) {
      const fusion::block_id other = p.owner(id);
      if (found.verdict == fusion_verdict::never || closes_cycle(other, follows) || !is_one_kernel(id)) return false;
      if (found.verdict == fusion_verdict::depends && !pays(id, follows)) return false;
      taken[id] = true;
      p.merge(other, block);
      type = found.result;
      ++joins;
      return true;
    }

    [[nodiscard]] bool closes_cycle(fusion::block_id other, bool follows) const {
      const auto [from, target] = follows ? std::pair(other, block) : std::pair(block, other);
      std::vector<fusion::block_id> sources = p.sources(from);
      sources.erase(std::remove(sources.begin(), sources.end(), target), sources.end());
      return p.depends_on(sources, target);
    }

    /// Whether the block with one more node is what one kernel can be.
    [[nodiscard]] bool is_one_kernel(node_id more) const {
      if (!p.reject_size(block, p.owner(more)).empty()) return false;
      std::vector<node_id> members = p.at(block).members;
      members.push_back(more);
      const std::unordered_set<node_id> inside(members.begin(), members.end());
      std::sort(members.begin(), members.end(), [&](node_id x, node_id y) { return place[x] < place[y]; });
      node_id anchor = no_node;
      for (const node_id id : members)
        if (p.role_at(id) == fusion::role::anchor) anchor = id;
      // The last view between the anchor's result and each value that is made of it.
      std::unordered_map<value_id, node_id> path;
      std::optional<node_id> stored_path;
      std::optional<index_expr> stored_count;
      for (const node_id id : members) {
        const node& n = g.node_at(id);
        if (id == anchor) {
          for (const value_id out : n.outputs)
            if (out != no_value) path.emplace(out, no_node);
          if (feeds(members, id) && fusion::find_prologue(n.op->kind) == nullptr) return false;
        } else if (const auto found = path_behind(id, path)) {
          if (*found == refused || !fusion::takes_epilogue(g.node_at(anchor).op->kind)) return false;
          for (const value_id out : n.outputs)
            if (out != no_value) path.emplace(out, *found);
        }
        for (const value_id out : n.outputs) {
          if (out == no_value || !is_stored(out, inside)) continue;
          const auto at = path.find(out);
          if (anchor != no_node && (at == path.end() || stored_path.value_or(at->second) != at->second)) return false;
          if (anchor != no_node) stored_path = at->second;
          const index_expr count = element_count(*g.facts(out).dims);
          if (anchor == no_node && stored_count && !(*stored_count == count)) return false;
          stored_count = count;
        }
      }
      return true;
    }

    static constexpr node_id refused = no_node - 1;

    /// The path of a member's result behind the anchor; nothing where it reads nothing that the anchor made; `refused`
    /// where a frame cannot go on with it.
    [[nodiscard]] std::optional<node_id> path_behind(node_id id,
                                                     const std::unordered_map<value_id, node_id>& path) const {
      const node& n = g.node_at(id);
      std::optional<node_id> found;
      for (std::size_t i = 0; i < n.inputs.size(); ++i) {
        const auto at = n.inputs[i] == no_value ? path.end() : path.find(n.inputs[i]);
        if (at == path.end()) continue;
        if (p.role_at(id) == fusion::role::view)
          return i == 0 && n.outputs.size() == 1 && n.op->unview != nullptr && !found ? id : refused;
        if (n.op->kind != computation_kind::element_wise || found.value_or(at->second) != at->second ||
            !(*g.facts(n.inputs[i]).dims == *g.facts(n.outputs[0]).dims))
          return refused;
        found = at->second;
      }
      return found;
    }

    /// Whether one of the members computes an operand of `id`.
    [[nodiscard]] bool feeds(const std::vector<node_id>& members, node_id id) const {
      const std::vector<node_id> before = predecessors(id);
      return std::any_of(members.begin(), members.end(),
                         [&](node_id one) { return std::binary_search(before.begin(), before.end(), one); });
    }

    [[nodiscard]] bool is_stored(value_id v, const std::unordered_set<node_id>& inside) const {
      if (p.is_output(v)) return true;
      return std::any_of(g.value_at(v).uses.begin(), g.value_at(v).uses.end(),
                         [&](const value_use& use) { return p.reads(use.node) && !inside.contains(use.node); });
    }

    /// Asks of a yellow pair. By the shipped rule it is fused where the first operator's elements are computed once.
    [[nodiscard]] bool pays(node_id id, bool follows) {
      const fusion::block_id other = p.owner(id);
      bool usual = true;
      for (const node_id beside : follows ? predecessors(id) : successors(id))
        if (p.owner(beside) == block)
          usual = usual && (follows ? result_size(id) <= result_size(beside) : result_size(beside) <= result_size(id));
      if (judge == nullptr) return usual;
      std::optional<fusion::join_times> times;
      return judge->ask(
          {g, p.as_one(std::array{block, other}), {p.as_one(std::array{block}), p.as_one(std::array{other})}}, usual,
          times);
    }
  };
};

static_assert(Pass<fuse_published>);

}  // namespace dnnopt

#endif  // DNNOPT_PASSES_FUSE_PUBLISHED_HPP
