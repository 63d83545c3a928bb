// Owns layout selection: along which dim each intermediate tensor is packed, by the reduction dims of those who read
// it.
//
// SmartMem sections 3.2.2 and 3.3: the producer writes what the consumer reads; a reader without a reduction dim
// follows the tensors that it takes together; the anchor of a fused block decides for it (DNNFusion section 4.4.2); as
// many reduction dims are served as memory has directions of direct access, and what others would need is reported.
#ifndef DNNOPT_BACKEND_STORAGE_SELECT_LAYOUTS_HPP
#define DNNOPT_BACKEND_STORAGE_SELECT_LAYOUTS_HPP

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <dnnopt/backend/storage/reduction_dims.hpp>
#include <dnnopt/graph.hpp>
#include <dnnopt/inexpressible.hpp>
#include <dnnopt/layout.hpp>
#include <dnnopt/ops/state_view.hpp>
#include <dnnopt/passes/graph_views.hpp>
#include <dnnopt/passes/remove_identity.hpp>

namespace dnnopt {

/// What layout selection sees of a kernel: the nodes that it computes and the values that it stores.
struct layout_block {
  std::vector<node_id> members;
  std::vector<value_id> outputs;
  node_id anchor = no_node;
};

/// One tensor's layout.
struct layout_choice {
  value_id held = no_value;
  std::size_t packed = 0;
  bool asked = false;  ///< a reader reduces along it; else it follows tensors that are read or written together
  std::vector<std::size_t> unserved;  ///< reduction dims of readers beyond the directions of direct access
  std::uint64_t copy_bytes = 0;  ///< that copies in the layouts that `unserved` need would take; 0 of symbolic dims
};

namespace detail {

/// For each dim of an output of a node, the dim of input `slot` that counts on with it one by one.
using dim_map = std::vector<std::optional<std::size_t>>;

/// Records the pieces of a view that read one input.
class pieces_of_input final : public view_builder {
 public:
  explicit pieces_of_input(std::size_t slot) : slot_(slot) {}
  void piece(std::size_t input, std::vector<index_expr> indices, std::vector<condition>) override {
    if (input == slot_) pieces.push_back(std::move(indices));
  }
  void fill_from(std::size_t) override {}
  void fill(double) override {}
  index_expr load(std::size_t, std::span<const index_expr>, expr_range) override {
    throw inexpressible("indices that are read");
  }
  index_expr wrap_negative(const index_expr& index, const index_expr&) override { return index; }

  std::vector<std::vector<index_expr>> pieces;

 private:
  std::size_t slot_;
};

/// How dims of input `slot` run on in output 0 of an element-wise operator or view; empty where nothing can be said, as
/// of views of dims that are no numbers.
[[nodiscard]] inline dim_map dims_carried(const graph& g, node_id id, std::size_t slot) {
  const node& n = g.node_at(id);
  const shape& out = *g.facts(n.outputs[0]).dims;
  const shape& in = *g.facts(n.inputs[slot]).dims;
  dim_map carried(out.size());
  if (n.op->kind == computation_kind::element_wise) {
    for (std::size_t d = 0; d < in.size(); ++d)
      if (in[d] == out[out.size() - in.size() + d]) carried[out.size() - in.size() + d] = d;
    return carried;
  }
  if (n.op->view == nullptr || !is_static(out)) return {};
  expr_context expressions;
  std::vector<const value_facts*> inputs;
  for (const value_id v : n.inputs) {
    if (v != no_value && (!g.facts(v).dims || !is_static(*g.facts(v).dims))) return {};
    inputs.push_back(v == no_value ? nullptr : &g.facts(v));
  }
  node_facts facts;
  facts.attributes = &n.attributes;
  facts.inputs = inputs;
  facts.output_count = n.outputs.size();
  facts.expressions = &expressions;
  facts.scope = n.name;
  std::vector<index_expr> index;
  for (std::size_t d = 0; d < out.size(); ++d)
    index.push_back(out[d] == index_expr(1)
                        ? index_expr(0)
                        : expressions.symbol("i" + std::to_string(d), {0, out[d].constant() - 1}, symbol_kind::index));
  const auto pieces_at = [&](std::span<const index_expr> at) {
    pieces_of_input pieces(slot);
    if (!state_view(pieces, *n.op, facts, 0, at)) pieces.pieces.clear();
    return pieces.pieces;
  };
  const auto here = pieces_at(index);
  for (std::size_t d = 0; d < out.size(); ++d) {
    std::vector<index_expr> next = index;
    next[d] += 1;
    const auto there = pieces_at(next);
    if (here.empty() || there.size() != here.size()) return {};
    std::optional<std::size_t> runs;
    for (std::size_t e = 0; e < in.size(); ++e) {
      bool one = true;
      bool none = true;
      for (std::size_t p = 0; p < here.size(); ++p) {
        one = one && there[p][e] - here[p][e] == index_expr(1);
        none = none && there[p][e] == here[p][e];
      }
      if (one && !runs)
        runs = e;
      else if (!none)
        runs = in.size();
    }
    if (runs && *runs < in.size()) carried[d] = runs;
  }
  return carried;
}

/// A dim that a reader reduces along, and how much it computes.
struct layout_need {
  std::size_t dim = 0;
  double weight = 0;
};

/// As what a dim counts that only a run tells.
inline constexpr std::int64_t usual_extent = 64;

/// The dims of `v` that a block reduces along.
inline void collect_needs(const graph& g, const layout_block& block, value_id v, std::vector<layout_need>& needs) {
  const auto is_member = [&](node_id id) {
    return std::find(block.members.begin(), block.members.end(), id) != block.members.end();
  };
  struct reached {
    value_id at;
    dim_map to_source;
  };
  dim_map own(g.facts(v).dims->size());
  for (std::size_t d = 0; d < own.size(); ++d) own[d] = d;
  std::deque<reached> open{{v, own}};
  std::vector<value_id> seen{v};
  while (!open.empty()) {
    const reached from = std::move(open.front());
    open.pop_front();
    for (const value_use& use : g.value_at(from.at).uses) {
      if (!is_member(use.node)) continue;
      const node& n = g.node_at(use.node);
      if (n.outputs.empty() || n.outputs[0] == no_value || !g.facts(n.outputs[0]).dims) continue;
      const std::vector<std::size_t> reduced = reduction_dims(g, use.node, use.slot);
      if (!reduced.empty() && reduced.back() < from.to_source.size() && from.to_source[reduced.back()]) {
        // Products outweigh what only adds up.
        double count = 1;
        for (const index_expr& extent : *g.facts(n.outputs[0]).dims)
          count *= static_cast<double>(extent.as_constant().value_or(usual_extent));
        const bool product = n.op->kind == computation_kind::convolution ||
                             n.op->kind == computation_kind::matrix_product ||
                             n.op->kind == computation_kind::attention;
        needs.push_back({*from.to_source[reduced.back()], (product ? 1e9 : 1.0) * count});
      }
      if (!reduced.empty() || std::find(seen.begin(), seen.end(), n.outputs[0]) != seen.end()) continue;
      const dim_map carried = dims_carried(g, use.node, use.slot);
      if (carried.empty()) continue;
      dim_map onward(carried.size());
      for (std::size_t d = 0; d < carried.size(); ++d)
        if (carried[d]) onward[d] = from.to_source[*carried[d]];
      seen.push_back(n.outputs[0]);
      open.push_back({n.outputs[0], std::move(onward)});
    }
  }
}

/// Whether tensor `v` may follow another one of `dims` that is packed along `packed`, both read or written by a block:
/// of the same dims, or, where the block resamples planes, of the same dims before the last two.
[[nodiscard]] inline bool follows(const graph& g, const layout_block& block, value_id v, const shape& dims,
                                  std::size_t packed) {
  const shape& own = *g.facts(v).dims;
  if (own == dims) return true;
  const bool resampled = std::any_of(block.members.begin(), block.members.end(), [&](node_id id) {
    return g.node_at(id).op->kind == computation_kind::resampling;
  });
  return resampled && own.size() == dims.size() && packed + 2 < dims.size() &&
         std::equal(own.begin(), own.end() - 2, dims.begin());
}

}  // namespace detail

/// Chooses the packed dim of each of `candidates` (values between blocks). A candidate that nobody reduces takes the
/// choice of a tensor that a block reads or writes with it (detail::follows); candidates that nothing reaches have no
/// choice. Texels have two directions of direct access, the packed dim and the last; `directions` counts those served.
/// Precondition: the dims of candidates are known, as numbers or symbols. O(uses * rank^2) beyond the views' own index
/// maps.
[[nodiscard]] inline std::vector<layout_choice> select_layouts(const graph& g, std::span<const layout_block> blocks,
                                                               std::span<const value_id> candidates,
                                                               std::size_t directions = 2) {
  std::vector<layout_choice> choices;
  std::map<value_id, std::size_t> packed;
  for (const value_id v : candidates) {
    std::vector<detail::layout_need> needs;
    for (const layout_block& block : blocks) detail::collect_needs(g, block, v, needs);
    if (needs.empty()) continue;
    std::stable_sort(needs.begin(), needs.end(), [](const auto& x, const auto& y) { return x.weight > y.weight; });
    layout_choice choice{v, needs.front().dim, true, {}, 0};
    const shape& dims = *g.facts(v).dims;
    std::vector<std::size_t> served{choice.packed};
    if (directions > 1) served.push_back(dims.size() - 1);
    for (const detail::layout_need& need : needs) {
      if (std::find(served.begin(), served.end(), need.dim) != served.end()) continue;
      served.push_back(need.dim);
      choice.unserved.push_back(need.dim);
      choice.copy_bytes +=
          static_cast<std::uint64_t>(element_count(texel_dims(dims, need.dim)).as_constant().value_or(0) * texel_width *
                                     static_cast<std::int64_t>(size_of(g.facts(v).type)));
    }
    packed.emplace(v, choice.packed);
    choices.push_back(std::move(choice));
  }
  for (bool changed = true; changed;) {
    changed = false;
    for (const value_id v : candidates) {
      if (packed.contains(v)) continue;
      for (const layout_block& block : blocks) {
        const bool writes = std::find(block.outputs.begin(), block.outputs.end(), v) != block.outputs.end();
        bool together = writes;
        std::optional<std::size_t> found;
        const auto consider = [&](value_id other) {
          const auto known = packed.find(other);
          if (!found && known != packed.end() && detail::follows(g, block, v, *g.facts(other).dims, known->second))
            found = known->second;
        };
        for (const node_id id : block.members)
          for (const value_id in : g.node_at(id).inputs | views::present) {
            together = together || in == v;
            consider(in);
          }
        for (const value_id out : block.outputs) consider(out);
        if (!together || !found) continue;
        packed.emplace(v, *found);
        choices.push_back({v, *found, false, {}, 0});
        changed = true;
        break;
      }
    }
  }
  return choices;
}

}  // namespace dnnopt

#endif  // DNNOPT_BACKEND_STORAGE_SELECT_LAYOUTS_HPP
