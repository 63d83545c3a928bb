// Owns the joins of two anchors: those that DNNFusion's table calls red, each a rule with a condition of its own.
#ifndef DNNOPT_PASSES_FUSION_ANCHOR_JOINS_HPP
#define DNNOPT_PASSES_FUSION_ANCHOR_JOINS_HPP

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <unordered_map>
#include <vector>

#include <dnnopt/graph.hpp>
#include <dnnopt/ops/window.hpp>
#include <dnnopt/passes/fusion/join_rules.hpp>
#include <dnnopt/passes/fusion/planner.hpp>

namespace dnnopt::fusion {

/// Joins blocks that both have an anchor. Frames that cannot take such a block refuse it, and the placer splits it.
class anchor_joins {
 public:
  /// `anchored` holds the values that an anchor's result made, with the last view on the way; joined ones leave it.
  anchor_joins(const graph& graph_, planner& plan, std::unordered_map<value_id, node_id>& anchored)
      : g(graph_), p(plan), derived(anchored) {}

  /// Applies all rules and gives the number of joins. O(blocks * readers).
  std::size_t run() {
    join_normalizations();
    join_plane_reductions();
    join_window_reductions();
    join_vector_products();
    return joins;
  }

 private:
  /// A normalization of rows joins the product that alone reads it: the frame takes two numbers per row first.
  void join_normalizations() {
    for (block_id b = 0; b < p.block_count(); ++b) {
      const planner::block& block = p.at(b);
      if (!block.alive || block.fixed || block.anchor == no_node || block.members.size() != 1) continue;
      const node& n = g.node_at(block.anchor);
      const shape& dims = *g.facts(n.outputs[0]).dims;
      if (!n.op->normalizes_rows || normalize_axis(n.attributes.get_int("axis", -1), dims.size()) + 1 != dims.size())
        continue;
      bool alone = !p.reaches_output(n.outputs[0]);
      for (std::size_t i = 1; i < n.outputs.size(); ++i)
        alone = alone && (n.outputs[i] == no_value || g.value_at(n.outputs[i]).uses.empty());
      std::vector<node_id> nodes;
      p.readers(n.outputs[0], nodes);
      if (!alone || nodes.empty()) continue;
      const node_id reader = nodes[0];
      if (std::any_of(nodes.begin(), nodes.end(), [&](node_id other) { return other != reader; })) continue;
      const block_id to = p.owner(reader);
      if (to == no_block || p.at(to).fixed || p.at(to).anchor != reader || !p.at(to).before.empty()) continue;
      const node& product = g.node_at(reader);
      if (product.op->kind != computation_kind::matrix_product) continue;
      if (moved_from(product.inputs[0]) != n.outputs[0]) continue;
      const shape& rows = *g.facts(product.inputs[0]).dims;
      if (rows.empty() || !(rows.back() == dims.back()) || !g.facts(product.inputs[1]).is_constant()) continue;
      for (const value_id out : n.outputs) derived.erase(out);
      p.merge(b, to);
      ++joins;
    }
  }

  /// A reduction of whole planes joins the convolution that computes them: each plane is finished by one work-group,
  /// which knows all its elements.
  void join_plane_reductions() {
    for (block_id b = 0; b < p.block_count(); ++b) {
      const planner::block& block = p.at(b);
      if (!block.alive || block.fixed || block.anchor == no_node || block.members.size() != 1) continue;
      const node& n = g.node_at(block.anchor);
      if (!reduces_planes(block.anchor)) continue;
      const value_id planes = n.inputs[0];
      const block_id to = p.owner_of_value(planes);
      if (to == no_block || p.at(to).fixed || p.at(to).anchor == no_node || !p.at(to).after.empty()) continue;
      const node& anchor = g.node_at(p.at(to).anchor);
      if (anchor.op->kind != computation_kind::convolution || !derived.contains(planes) ||
          derived.at(planes) != no_node)
        continue;
      const shape& dims = *g.facts(planes).dims;
      const auto plane = element_count(shape(dims.begin() + 2, dims.end())).as_constant();
      const shape& weights = *g.facts(anchor.inputs[1]).dims;
      const bool single = weights.size() > 1 && weights[1] == index_expr(1);
      if (plane ? *plane == 0 || (!single && *plane > largest_reduced_plane) : !single) continue;
      for (const value_id out : n.outputs) derived.erase(out);
      p.append(b, to);
      ++joins;
    }
  }

  /// A pool whose windows do not overlap joins the convolution that computes its planes, with what follows it: a
  /// work-group computes whole windows, and the planes are never stored.
  void join_window_reductions() {
    for (block_id b = 0; b < p.block_count(); ++b) {
      const planner::block& block = p.at(b);
      if (!block.alive || block.fixed || block.anchor == no_node || !block.before.empty() || !block.after.empty())
        continue;
      if (!tiles_planes(block.anchor)) continue;
      const value_id planes = g.node_at(block.anchor).inputs[0];
      const block_id to = p.owner_of_value(planes);
      if (to == no_block || to == b || p.at(to).fixed || p.at(to).anchor == no_node || !p.at(to).after.empty())
        continue;
      if (g.node_at(p.at(to).anchor).op->kind != computation_kind::convolution || !derived.contains(planes) ||
          derived.at(planes) != no_node || p.reaches_output(planes))
        continue;
      std::vector<node_id> nodes;
      p.readers(planes, nodes);
      if (nodes.size() != 1 || p.depends_on(p.sources(b), to)) continue;
      for (const node_id id : block.members)
        for (const value_id out : g.node_at(id).outputs) derived.erase(out);
      p.append(b, to);
      ++joins;
    }
  }

  /// A product of one vector per image joins the product of its result: a squeeze-excite block's tail is one launch.
  void join_vector_products() {
    for (block_id b = 0; b < p.block_count(); ++b) {
      const planner::block& block = p.at(b);
      if (!block.alive || block.fixed || !block.before.empty() || !block.after.empty()) continue;
      const auto own = vector_macs(block.anchor);
      if (!own) continue;
      block_id to = no_block;
      bool alone = true;
      value_id result = no_value;
      for (const node_id id : block.members)
        for (const value_id out : g.node_at(id).outputs) {
          if (out == no_value) continue;
          alone = alone && !p.reaches_output(out);
          std::vector<node_id> nodes;
          p.readers(out, nodes);
          for (const node_id reader : nodes) {
            if (p.owner(reader) == b) continue;
            alone = alone && (result == no_value || result == out) && p.owner(reader) != no_block &&
                    p.at(p.owner(reader)).anchor == reader && (to == no_block || to == p.owner(reader));
            to = p.owner(reader);
            result = out;
          }
        }
      if (!alone || to == no_block || p.at(to).fixed || !p.at(to).before.empty() || !p.at(to).after.empty()) continue;
      const auto next = vector_macs(p.at(to).anchor);
      if (!next || *own + *next > most_chained_macs) continue;
      if (g.node_at(p.at(to).anchor).inputs[0] != result || !derived.contains(result) || derived.at(result) != no_node)
        continue;
      for (const node_id id : block.members)
        for (const value_id out : g.node_at(id).outputs)
          if (out != no_value) derived.erase(out);
      p.merge(b, to);
      ++joins;
    }
  }

  /// What `v` is made of through views that no block stores, as long as each moves one value that is not known.
  [[nodiscard]] value_id moved_from(value_id v) const {
    while (true) {
      const node_id producer = g.value_at(v).producer;
      if (producer == no_node || !p.is_virtual(producer)) return v;
      value_id moved = no_value;
      for (const value_id in : g.node_at(producer).inputs) {
        if (in == no_value || g.facts(in).is_constant() || g.facts(in).elements) continue;
        if (moved != no_value) return v;
        moved = in;
      }
      if (moved == no_value) return v;
      v = moved;
    }
  }

  /// The multiply-accumulates of a product of one vector per image with constant weights; nothing where it is none.
  [[nodiscard]] std::optional<std::int64_t> vector_macs(node_id id) const {
    if (id == no_node) return std::nullopt;
    const node& n = g.node_at(id);
    const bool convolution = n.op->kind == computation_kind::convolution;
    if ((!convolution && n.op->kind != computation_kind::matrix_product) || n.inputs.size() < 2 ||
        !g.facts(n.inputs[1]).is_constant() || n.attributes.get_int("group", 1) != 1)
      return std::nullopt;
    const shape& x = *g.facts(n.inputs[0]).dims;
    const shape& y = *g.facts(n.outputs[0]).dims;
    if (x.size() < 2 || y.size() != x.size() || (!convolution && x.size() != 2)) return std::nullopt;
    for (std::size_t k = 2; k < x.size(); ++k)
      if (!(x[k] == index_expr(1)) || !(y[k] == index_expr(1))) return std::nullopt;
    if (!x[1].is_constant() || !y[1].is_constant() || !(x[0] == y[0])) return std::nullopt;
    // Rows of a matrix share weights: only few of them are better off one by one.
    if (!convolution && (!x[0].is_constant() || x[0].constant() > most_chained_rows)) return std::nullopt;
    return x[1].constant() * y[1].constant();
  }

  [[nodiscard]] bool reduces_planes(node_id id) const {
    const node& n = g.node_at(id);
    if (n.op->reduces_planes) return true;
    if (n.op->kind != computation_kind::reduction || !g.facts(n.inputs[0]).dims) return false;
    const facts_of_node facts(g, id);
    std::optional<std::vector<std::int64_t>> axes;
    if (n.attributes.contains("axes"))
      axes = n.attributes.get_ints("axes");
    else if (facts->has(1))
      axes = facts->integers(1);
    if (!axes) return false;
    const std::size_t rank = g.facts(n.inputs[0]).dims->size();
    if (rank < 3 || axes->size() != rank - 2) return false;
    std::set<std::size_t> distinct;
    for (const std::int64_t axis : *axes) distinct.insert(normalize_axis(axis, rank));
    return distinct.size() == rank - 2 && *distinct.begin() == 2;
  }

  /// Whether a node reduces windows of two dims that lie side by side, so that each element of a plane is in one.
  [[nodiscard]] bool tiles_planes(node_id id) const {
    const node& n = g.node_at(id);
    const auto& dims = g.facts(n.inputs[0]).dims;
    if (!n.op->reduces_windows || !dims || dims->size() != 4) return false;
    for (std::size_t i = 1; i < n.outputs.size(); ++i)
      if (n.outputs[i] != no_value) return false;
    const auto axes = windows(n.attributes, std::span(*dims).subspan(2),
                              n.attributes.require<std::vector<std::int64_t>>("kernel_shape"),
                              n.attributes.get_int("ceil_mode", 0) != 0);
    return std::all_of(axes.begin(), axes.end(), [](const window_axis& axis) {
      return axis.kernel == axis.stride && axis.dilation == 1 && axis.pad_begin == index_expr(0) &&
             axis.input.is_constant() && axis.output.is_constant() &&
             axis.output.constant() * axis.kernel <= axis.input.constant();
    });
  }

  const graph& g;
  planner& p;
  std::unordered_map<value_id, node_id>& derived;
  std::size_t joins = 0;
};

}  // namespace dnnopt::fusion

#endif  // DNNOPT_PASSES_FUSION_ANCHOR_JOINS_HPP
