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
    join_staged_windows();
    join_vector_products();
    join_small_products();
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
      if (product.op->kind != computation_kind::matrix_product || product.inputs.size() < 2 || !sums_floats(reader))
        continue;
      if (moved_from(product.inputs[0]) != n.outputs[0]) continue;
      const shape& rows = *g.facts(product.inputs[0]).dims;
      if (rows.empty() || !(rows.back() == dims.back()) || !is_constant_weight(product.inputs[1])) continue;
      for (const value_id out : n.outputs) derived.erase(out);
      p.merge(b, to);
      ++joins;
    }
  }

  /// Whether a value is constant, or dequantized from what is.
  [[nodiscard]] bool is_constant_weight(value_id id) const {
    if (g.facts(id).is_constant()) return true;
    const node_id producer = g.value_at(id).producer;
    if (producer == no_node || !g.node_at(producer).op->dequantizes) return false;
    const std::vector<value_id>& from = g.node_at(producer).inputs;
    return std::all_of(from.begin(), from.end(),
                       [&](value_id in) { return in == no_value || g.facts(in).is_constant(); });
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
      if (anchor.op->kind != computation_kind::convolution || !sums_floats(p.at(to).anchor) ||
          !are_planes_of(planes, p.at(to).anchor))
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
      if (g.node_at(p.at(to).anchor).op->kind != computation_kind::convolution || !sums_floats(p.at(to).anchor) ||
          !are_planes_of(planes, p.at(to).anchor) || p.reaches_output(planes))
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
      const auto read = read_by_one_anchor(b);
      if (!read) continue;
      const auto next = vector_macs(p.at(read->to).anchor);
      if (!next || *own + *next > most_chained_macs) continue;
      if (g.node_at(p.at(read->to).anchor).inputs[0] != read->result) continue;
      put_before(b, read->to);
    }
  }

  /// A reduction of windows joins the pointwise convolution that alone reads it: a work-group reduces a column of
  /// windows once, when it packs it, and runs all output channels over it.
  void join_staged_windows() {
    for (block_id b = 0; b < p.block_count(); ++b) {
      const planner::block& block = p.at(b);
      if (!block.alive || block.fixed || block.anchor == no_node || !block.before.empty() || !block.after.empty())
        continue;
      const node& pool = g.node_at(block.anchor);
      const auto& dims = g.facts(pool.inputs[0]).dims;
      if (pool.op->window_reduction.empty() || !dims || dims->size() > 5 || gives_more_than_one(pool)) continue;
      const auto read = read_by_one_anchor(b);
      if (!read || g.node_at(p.at(read->to).anchor).inputs[0] != read->result) continue;
      const auto outputs = pointwise_outputs(p.at(read->to).anchor);
      if (!outputs || *outputs > most_staged_outputs) continue;
      put_before(b, read->to);
    }
  }

  /// A product whose result is small joins the product that alone reads it, where both are of many computed matrices
  /// (linear attention): a work-group computes the small one and then all that it is multiplied with.
  void join_small_products() {
    for (block_id b = 0; b < p.block_count(); ++b) {
      const planner::block& block = p.at(b);
      if (!block.alive || block.fixed || !block.before.empty() || !block.after.empty()) continue;
      if (!multiplies_computed(block.anchor)) continue;
      const auto read = read_by_one_anchor(b);
      if (!read || !multiplies_computed(p.at(read->to).anchor)) continue;
      const node& next = g.node_at(p.at(read->to).anchor);
      if ((next.inputs[0] == read->result) == (next.inputs[1] == read->result)) continue;
      const shape& dims = *g.facts(read->result).dims;
      if (dims.size() < 3) continue;
      std::int64_t matrices = 1;
      std::int64_t elements = 1;
      for (std::size_t k = 0; k + 2 < dims.size(); ++k) matrices *= dims[k].as_constant().value_or(1);
      for (std::size_t k = dims.size() - 2; k < dims.size(); ++k)
        elements *= std::min(dims[k].as_constant().value_or(most_small_elements + 1), most_small_elements + 1);
      if (matrices < least_small_matrices || elements > most_small_elements) continue;
      put_before(b, read->to);
    }
  }

  /// The one value of a block that others read, as the frame computes it, and the block whose anchor alone reads it.
  struct sole_reading {
    value_id result = no_value;
    block_id to = no_block;
  };
  /// Nothing where there are more, or a graph output among them, or where that block has joined another one.
  [[nodiscard]] std::optional<sole_reading> read_by_one_anchor(block_id b) const {
    sole_reading found;
    for (const node_id id : p.at(b).members)
      for (const value_id out : g.node_at(id).outputs) {
        if (out == no_value) continue;
        if (p.reaches_output(out)) return std::nullopt;
        std::vector<node_id> nodes;
        p.readers(out, nodes);
        for (const node_id reader : nodes) {
          const block_id to = p.owner(reader);
          if (to == b) continue;
          if (to == no_block || p.at(to).anchor != reader || (found.to != no_block && found.to != to) ||
              (found.result != no_value && found.result != out))
            return std::nullopt;
          found = {out, to};
        }
      }
    if (found.to == no_block || p.at(found.to).fixed || !p.at(found.to).before.empty() ||
        !p.at(found.to).after.empty() || !derived.contains(found.result) || derived.at(found.result) != no_node)
      return std::nullopt;
    return found;
  }
  /// Merges a block into the one that alone reads it.
  void put_before(block_id b, block_id to) {
    for (const node_id id : p.at(b).members)
      for (const value_id out : g.node_at(id).outputs)
        if (out != no_value) derived.erase(out);
    p.merge(b, to);
    ++joins;
  }

  /// Whether a product's result is floats: frames of integers compute one product and nothing with it that reduces.
  [[nodiscard]] bool sums_floats(node_id id) const { return is_floating(g.facts(g.node_at(id).outputs[0]).type); }

  [[nodiscard]] static bool gives_more_than_one(const node& n) {
    return std::any_of(n.outputs.begin() + 1, n.outputs.end(), [](value_id out) { return out != no_value; });
  }

  /// Whether a node is a product of two matrices, neither of which is constant: constants are packed once for frames
  /// whose work-groups share them.
  [[nodiscard]] bool multiplies_computed(node_id id) const {
    if (id == no_node || g.node_at(id).op->kind != computation_kind::matrix_product) return false;
    const node& n = g.node_at(id);
    return n.inputs.size() == 2 && sums_floats(id) && !g.facts(n.inputs[0]).is_constant() &&
           !g.facts(n.inputs[1]).is_constant() && g.facts(n.outputs[0]).dims;
  }

  /// The output channels of a convolution that sees one position at a time, in order; nothing where it is none.
  [[nodiscard]] std::optional<std::int64_t> pointwise_outputs(node_id id) const {
    const node& n = g.node_at(id);
    if (n.op->kind != computation_kind::convolution || !sums_floats(id) || n.inputs.size() < 2 ||
        n.attributes.get_int("group", 1) != 1)
      return std::nullopt;
    const shape& x = *g.facts(n.inputs[0]).dims;
    const shape& y = *g.facts(n.outputs[0]).dims;
    const shape& w = *g.facts(n.inputs[1]).dims;
    if (x.size() < 3 || w.size() != x.size() || y.size() != x.size() || !w[0].is_constant()) return std::nullopt;
    // Without padding a window of one element sees all positions exactly where as many come out.
    for (const std::int64_t pad : n.attributes.get_ints("pads"))
      if (pad != 0) return std::nullopt;
    for (std::size_t k = 2; k < x.size(); ++k)
      if (!(w[k] == index_expr(1)) || !(x[k] == y[k])) return std::nullopt;
    return w[0].constant();
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
    if ((!convolution && n.op->kind != computation_kind::matrix_product) || n.inputs.size() < 2 || !sums_floats(id) ||
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
    if (facts->has(1)) axes = facts->integers(1);
    if (!axes) return false;
    const std::size_t rank = g.facts(n.inputs[0]).dims->size();
    if (rank < 3 || axes->size() != rank - 2) return false;
    std::set<std::size_t> distinct;
    for (const std::int64_t axis : *axes) distinct.insert(normalize_axis(axis, rank));
    return distinct.size() == rank - 2 && *distinct.begin() == 2;
  }

  /// Whether a value is made element by element of a convolution's result, whose planes are its own: an operand of
  /// higher rank moves batch and channels of it, though it may have no more elements.
  [[nodiscard]] bool are_planes_of(value_id planes, node_id convolution) const {
    return derived.contains(planes) && derived.at(planes) == no_node &&
           *g.facts(planes).dims == *g.facts(g.node_at(convolution).outputs[0]).dims;
  }

  /// Whether a node reduces windows of two dims that lie side by side, so that each element of a plane is in one.
  [[nodiscard]] bool tiles_planes(node_id id) const {
    const node& n = g.node_at(id);
    const auto& dims = g.facts(n.inputs[0]).dims;
    if (n.op->window_reduction.empty() || !dims || dims->size() != 4 || gives_more_than_one(n)) return false;
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
