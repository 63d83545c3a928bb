// Owns the recognition of scaled dot-product attention from matrix products, scale, masks and softmax.
#ifndef DNNOPT_PASSES_RECOGNITION_RECOGNIZE_ATTENTION_HPP
#define DNNOPT_PASSES_RECOGNITION_RECOGNIZE_ATTENTION_HPP

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dnnopt/graph.hpp>
#include <dnnopt/ops/arithmetic.hpp>
#include <dnnopt/ops/attention.hpp>
#include <dnnopt/ops/logic.hpp>
#include <dnnopt/ops/matrix_product.hpp>
#include <dnnopt/ops/normalization.hpp>
#include <dnnopt/ops/permute.hpp>
#include <dnnopt/ops/reshape.hpp>
#include <dnnopt/passes/pass.hpp>
#include <dnnopt/passes/remove_dead.hpp>
#include <dnnopt/passes/rewriting/constants.hpp>
#include <dnnopt/passes/rewriting/edit.hpp>

namespace dnnopt {

/// Before: y = MatMul(Softmax(s), v) with s = MatMul(q, transposed k), scaled by scalars anywhere on the way (at q, k
/// or s), plus additive masks, or with Where(condition, s, large negative number).
/// After:  y = Attention(q, k, v, mask) with attribute scale (ONNX, since opset 23).
///
/// q, k and v are [batch, head, position, size] or, with one head, [batch, position, size]; views that make them stay
/// outside. A constant mask that is lower triangular becomes is_causal, one of zeros for all heads vanishes. Masks of
/// shifted windows (Swin), which are added between two Reshapes, become masks of [window * head] heads.
/// Conditions: nothing else reads the scores; sizes are known and at most `largest_size`; equal batch and head dims.
struct recognize_attention {
  static constexpr std::string_view name = "recognize_attention";
  std::int64_t largest_size = 512;  ///< what the attention kernels take

  pass_result run(graph& g) const {
    pass_result result;
    for (const node_id id : g.topological_order())
      if (!g.node_at(id).removed && g.node_at(id).op == &op_row<ops::matmul_op> && rewrite(g, id, result))
        ++result.edits;
    if (result.edits != 0) (void)remove_dead{}.run(g);
    return result;
  }

 private:
  struct parts {
    value_id q = no_value;
    value_id k = no_value;  ///< as the product reads it: its last two dims are [size, position]
    value_id v = no_value;
    double scale = 1;
    std::vector<value_id> masks;                        ///< added to scores of rank 3 or 4
    value_id window_mask = no_value;                    ///< added to [batch, window, head, query, key]
    std::optional<shape> windows;                       ///< the dims of that sum
    std::vector<std::pair<value_id, bool>> conditions;  ///< where scores are kept (or, where false, hidden)
    std::vector<double> hidden;                         ///< by condition, the number that hidden scores become
  };

  static std::optional<double> scalar_of(const graph& g, value_id id) { return rewriting::uniform_value(g.facts(id)); }

  /// Takes a factor off a value: the value without it.
  static value_id unscaled(const graph& g, value_id id, double& scale) {
    while (true) {
      if (const node* n = rewriting::made_by(g, id, op_row<ops::mul_op>)) {
        const std::size_t at = scalar_of(g, n->inputs[1]) ? 1 : 0;
        const auto factor = scalar_of(g, n->inputs[at]);
        if (!factor || g.facts(n->inputs[1 - at]).dims != g.facts(id).dims) return id;
        scale *= *factor;
        id = n->inputs[1 - at];
      } else if (const node* d = rewriting::made_by(g, id, op_row<ops::div_op>)) {
        const auto divisor = scalar_of(g, d->inputs[1]);
        if (!divisor || *divisor == 0 || g.facts(d->inputs[0]).dims != g.facts(id).dims) return id;
        scale /= *divisor;
        id = d->inputs[0];
      } else {
        return id;
      }
    }
  }

  /// Walks from the softmax's input inwards to the product of q and k.
  static bool find_scores(const graph& g, value_id id, parts& p, bool scaled) {
    if (!rewriting::has_one_reader(g, id) || !g.facts(id).dims) return false;
    double factor = 1;
    const value_id inner = unscaled(g, id, factor);
    if (inner != id) {
      // What is inside may have been masked before it was scaled; that would need scaled masks.
      parts inside = p;
      inside.scale *= factor;
      if (!find_scores(g, inner, inside, true)) return false;
      p = std::move(inside);
      return true;
    }
    if (const node* product = rewriting::made_by(g, id, op_row<ops::matmul_op>)) {
      p.q = product->inputs[0];
      p.k = product->inputs[1];
      return true;
    }
    if (scaled) return false;
    if (const node* sum = rewriting::made_by(g, id, op_row<ops::add_op>)) {
      for (const std::size_t side : {0U, 1U}) {
        if (g.facts(sum->inputs[side]).dims != g.facts(id).dims) continue;
        parts inside = p;
        inside.masks.push_back(sum->inputs[1 - side]);
        if (!find_scores(g, sum->inputs[side], inside, false)) continue;
        p = std::move(inside);
        return true;
      }
      return false;
    }
    if (const node* choice = rewriting::made_by(g, id, op_row<ops::where_op>)) {
      for (const std::size_t side : {1U, 2U}) {
        const auto hidden = scalar_of(g, choice->inputs[3 - side]);
        // Scores vanish beside such a number, so that adding it is the same as choosing it.
        if (!hidden || *hidden > -1e9 || g.facts(choice->inputs[side]).dims != g.facts(id).dims) continue;
        parts inside = p;
        inside.conditions.emplace_back(choice->inputs[0], side == 1);
        inside.hidden.push_back(*hidden);
        if (!find_scores(g, choice->inputs[side], inside, false)) continue;
        p = std::move(inside);
        return true;
      }
      return false;
    }
    return find_windows(g, id, p);
  }

  /// Scores [batch * window, head, query, key] that become [batch, window, head, query, key] for a sum.
  static bool find_windows(const graph& g, value_id id, parts& p) {
    const node* back = rewriting::made_by(g, id, op_row<ops::reshape_op>);
    if (back == nullptr || p.windows || !p.masks.empty() || !p.conditions.empty()) return false;
    const value_id total = back->inputs[0];
    const node* sum = rewriting::made_by(g, total, op_row<ops::add_op>);
    if (sum == nullptr || !rewriting::has_one_reader(g, total) || !g.facts(total).dims) return false;
    const shape& scores = *g.facts(id).dims;
    const shape& split = *g.facts(total).dims;
    if (scores.size() != 4 || split.size() != 5 || !std::equal(scores.begin() + 1, scores.end(), split.begin() + 2) ||
        !split[1].is_constant())
      return false;
    for (const std::size_t side : {0U, 1U}) {
      const node* apart = rewriting::made_by(g, sum->inputs[side], op_row<ops::reshape_op>);
      if (apart == nullptr || g.facts(sum->inputs[side]).dims != g.facts(total).dims ||
          g.facts(apart->inputs[0]).dims != g.facts(id).dims || !rewriting::has_one_reader(g, sum->inputs[side]))
        continue;
      parts inside = p;
      inside.window_mask = sum->inputs[1 - side];
      inside.windows = split;
      if (!find_scores(g, apart->inputs[0], inside, false)) continue;
      p = std::move(inside);
      return true;
    }
    return false;
  }

  /// Puts an Attention in the place of the product `id` where that is its last one: whether it did. A remark says why
  /// a product of what a softmax along the last axis gives is none.
  bool rewrite(graph& g, node_id id, pass_result& result) const {
    const value_id weights = g.node_at(id).inputs[0];
    const node* softmax = rewriting::made_by(g, weights, op_row<ops::softmax_op>);
    if (softmax == nullptr || !rewriting::has_one_reader(g, weights) || !g.facts(weights).dims) return false;
    const std::size_t rank = g.facts(weights).dims->size();
    const auto remark = [&](std::string_view why) {
      result.remarks.push_back("'" + g.node_at(id).name + "' is no attention: " + std::string(why));
      return false;
    };
    if (normalize_axis(softmax->attributes.get_int("axis", -1), rank) + 1 != rank) return false;
    parts p;
    if (!find_scores(g, softmax->inputs[0], p, false)) return remark("the scores are no scaled and masked product");
    p.v = g.node_at(id).inputs[1];
    p.q = unscaled(g, p.q, p.scale);
    p.k = unscaled(g, p.k, p.scale);
    if (rank != 3 && rank != 4) return remark("scores of rank " + std::to_string(rank));
    const own_keys keys = keys_of(g, p, rank);
    if (const std::string why = misfit_of(g, p, rank); !why.empty()) return remark(why);
    if (!is_floating(g.facts(p.q).type)) return false;

    const std::string prefix = g.value_at(g.node_at(id).outputs[0]).name;
    const shape q = *g.facts(p.q).dims;
    const shape k = *g.facts(p.k).dims;
    attribute_map attributes;
    const auto mask = make_mask(g, p, q, k, attributes, prefix);
    if (!mask) return remark("its mask does not fit");
    std::vector<value_id> inputs{p.q, as_operand(g, keys, prefix), p.v};
    attributes.set("scale", static_cast<float>(p.scale));
    if (rank == 3) {
      attributes.set("q_num_heads", std::int64_t{1});
      attributes.set("kv_num_heads", std::int64_t{1});
    }
    const bool splits_batch = p.windows && !((*p.windows)[0] == index_expr(1));
    if (splits_batch)
      for (value_id& operand : inputs) operand = with_windows_as_heads(g, operand, *p.windows, prefix);
    if (*mask != no_value) inputs.push_back(*mask);
    replace(g, id, std::move(inputs), std::move(attributes), splits_batch);
    return true;
  }

  /// The keys in their own layout, which is that before the last Transpose.
  struct own_keys {
    value_id value;
    std::vector<std::int64_t> perm;  ///< from their layout to [.., position, size]
  };

  /// The keys of `p`, whose factors go to its scale.
  static own_keys keys_of(const graph& g, parts& p, std::size_t rank) {
    std::vector<std::int64_t> perm(rank);
    for (std::size_t k = 0; k < rank; ++k) perm[k] = static_cast<std::int64_t>(k);
    value_id keys = p.k;
    if (const node* transposed = rewriting::made_by(g, keys, op_row<ops::transpose_op>)) {
      const std::vector<std::int64_t> given = transposed->attributes.get_ints("perm");
      if (given.size() == rank) {
        perm = given;
        keys = transposed->inputs[0];
        keys = unscaled(g, keys, p.scale);
      }
    }
    std::swap(perm[rank - 1], perm[rank - 2]);
    return {keys, std::move(perm)};
  }

  /// The keys as [.., position, size], which Attention reads.
  static value_id as_operand(graph& g, const own_keys& keys, const std::string& prefix) {
    if (std::is_sorted(keys.perm.begin(), keys.perm.end())) return keys.value;
    attribute_map order;
    order.set("perm", keys.perm);
    return rewriting::append(g, op_row<ops::transpose_op>, prefix, {keys.value}, std::move(order));
  }

  /// Why q, k and v cannot be operands of Attention beside scores of rank `rank`, as far as their dims tell; empty
  /// where they can.
  std::string misfit_of(const graph& g, const parts& p, std::size_t rank) const {
    for (const value_id operand : {p.q, p.k, p.v})
      if (!g.facts(operand).dims || g.facts(operand).dims->size() != rank) return "an operand of another rank";
    const shape& q = *g.facts(p.q).dims;
    const shape& k = *g.facts(p.k).dims;
    const shape& v = *g.facts(p.v).dims;
    for (std::size_t i = 0; i + 2 < rank; ++i)
      if (!(q[i] == k[i]) || !(q[i] == v[i])) return "batch or head dims differ";
    const auto size = q[rank - 1].as_constant();
    const auto value_size = v[rank - 1].as_constant();
    if (!size || !value_size || *size > largest_size || *value_size > largest_size || *size < 1 || *value_size < 1)
      return "sizes of " + to_string(q[rank - 1]) + " and " + to_string(v[rank - 1]);
    return "";
  }

  /// An operand [batch * window, head, position, size] as [batch, window * head, position, size], where `windows` are
  /// the dims [batch, window, head, query, key] of scores. Precondition: all but batch are constant.
  static value_id with_windows_as_heads(graph& g, value_id operand, const shape& windows, const std::string& prefix) {
    const shape& dims = *g.facts(operand).dims;
    const std::vector<std::int64_t> target{-1, windows[1].constant() * windows[2].constant(), dims[2].constant(),
                                           dims[3].constant()};
    return rewriting::append(g, op_row<ops::reshape_op>, prefix, {operand, rewriting::add_integers(g, prefix, target)});
  }

  /// Puts an Attention in the place of the product `id`. Where windows became heads, a Reshape gives its output the
  /// product's dims. Precondition: then all but the first of these are constant.
  static void replace(graph& g, node_id id, std::vector<value_id> inputs, attribute_map attributes, bool splits_batch) {
    const value_id out = g.node_at(id).outputs[0];
    const std::string prefix = g.value_at(out).name;
    const std::string node_name = g.node_at(id).name;
    const shape before = *g.facts(out).dims;
    g.remove_node(id);
    if (!splits_batch) {
      g.add_node(op_row<ops::attention_op>, node_name, std::move(inputs), {out}, std::move(attributes));
      return;
    }
    const value_id made =
        rewriting::append(g, op_row<ops::attention_op>, prefix, std::move(inputs), std::move(attributes));
    const value_id target =
        rewriting::add_integers(g, prefix, {-1, before[1].constant(), before[2].constant(), before[3].constant()});
    g.add_node(op_row<ops::reshape_op>, node_name, {made, target}, {out});
  }

  /// The mask input: no_value where none is needed, nothing where the masks cannot be one.
  static std::optional<value_id> make_mask(graph& g, const parts& p, const shape& q, const shape& k,
                                           attribute_map& attributes, const std::string& prefix) {
    const std::size_t rank = q.size();
    const index_expr& queries = q[rank - 2];
    const index_expr& keys = k[rank - 1];
    if (p.windows) return window_mask(g, p, prefix);
    std::vector<value_id> addends;
    for (const value_id mask : p.masks) {
      const auto& dims = g.facts(mask).dims;
      if (!dims || dims->size() > rank) return std::nullopt;
      for (std::size_t i = 1; i <= dims->size(); ++i) {
        const index_expr& dim = (*dims)[dims->size() - i];
        // Equal dims or 1; a dim that may turn out as 1 would hide keys.
        if (!(dim == index_expr(1)) && !(dim == (i == 1 ? keys : i == 2 ? queries : q[rank - i]))) return std::nullopt;
      }
      const bool for_all_heads =
          std::all_of(dims->begin(), dims->end() - static_cast<std::ptrdiff_t>(std::min<std::size_t>(dims->size(), 2)),
                      [](const index_expr& d) { return d == index_expr(1); });
      if (for_all_heads && g.facts(mask).is_constant()) {
        const auto pattern = pattern_of(g.facts(mask).constant);
        if (pattern == mask_pattern::zeros) continue;
        if (pattern == mask_pattern::causal && queries == keys) {
          attributes.set("is_causal", std::int64_t{1});
          continue;
        }
      }
      addends.push_back(mask);
    }
    const double infinity = std::numeric_limits<double>::infinity();
    for (const auto& [condition, keeps] : p.conditions) {
      const auto& dims = g.facts(condition).dims;
      if (!dims || dims->size() > rank) return std::nullopt;
      for (std::size_t i = 1; i <= dims->size(); ++i) {
        const index_expr& dim = (*dims)[dims->size() - i];
        if (!(dim == index_expr(1)) && !(dim == (i == 1 ? keys : i == 2 ? queries : q[rank - i]))) return std::nullopt;
      }
    }
    if (addends.empty() && p.conditions.size() == 1 && p.hidden[0] == -infinity) {
      value_id shown = p.conditions[0].first;
      if (!p.conditions[0].second) shown = rewriting::append(g, op_row<ops::not_op>, prefix, {shown});
      return with_heads(g, shown, q, prefix);
    }
    for (std::size_t i = 0; i < p.conditions.size(); ++i) {
      const dtype type = g.facts(p.q).type;
      const auto number = [&](double v) {
        return g.add_constant(rewriting::fresh_value_name(g, prefix), rewriting::tensor_of(type, {}, {v}));
      };
      const value_id zero = number(0);
      const value_id hidden = number(p.hidden[i]);
      const bool keeps = p.conditions[i].second;
      addends.push_back(rewriting::append(g, op_row<ops::where_op>, prefix,
                                          {p.conditions[i].first, keeps ? zero : hidden, keeps ? hidden : zero}));
    }
    if (addends.empty()) return no_value;
    value_id total = addends[0];
    for (std::size_t i = 1; i < addends.size(); ++i)
      total = rewriting::append(g, op_row<ops::add_op>, prefix, {total, addends[i]});
    return with_heads(g, total, q, prefix);
  }

  /// A mask of [batch, query, key] beside operands without heads gets a head dim.
  static value_id with_heads(graph& g, value_id mask, const shape& q, const std::string& prefix) {
    const shape& dims = *g.facts(mask).dims;
    if (q.size() != 3 || dims.size() < 3 || dims[0] == index_expr(1)) return mask;
    return rewriting::append(g, op_row<ops::unsqueeze_op>, prefix, {mask, rewriting::add_integers(g, prefix, {1})});
  }

  enum class mask_pattern { zeros, causal, other };

  /// What a constant [..., query, key] whose leading dims are 1 does.
  static mask_pattern pattern_of(const tensor& mask) {
    const auto numbers = rewriting::numbers_of(mask);
    if (!numbers || numbers->empty()) return mask_pattern::other;
    const auto keys = mask.rank() == 0 ? std::size_t{1} : static_cast<std::size_t>(mask.dims().back());
    bool zeros = true;
    bool causal = mask.rank() >= 2 && mask.dims()[mask.rank() - 2] == mask.dims().back() && keys > 1;
    for (std::size_t i = 0; i < numbers->size(); ++i) {
      const double v = (*numbers)[i];
      zeros = zeros && v == 0;
      causal = causal && (i % keys > i / keys ? v <= -1e30 : v == 0);
    }
    return zeros ? mask_pattern::zeros : causal ? mask_pattern::causal : mask_pattern::other;
  }

  /// The sum of a window mask [1, window, 1 or head, query, key] and of constant masks [1, head, query, key], as
  /// [window, head, query, key] where the batch is 1, else as [1, window * head, query, key].
  static std::optional<value_id> window_mask(graph& g, const parts& p, const std::string& prefix) {
    const auto dims = static_dims(shape(p.windows->begin() + 1, p.windows->end()));
    if (!dims || !p.conditions.empty()) return std::nullopt;
    const dtype type = g.facts(p.q).type;
    std::vector<double> total(static_cast<std::size_t>(element_count(*dims)), 0.0);
    std::vector<value_id> addends = p.masks;
    addends.push_back(p.window_mask);
    for (const value_id id : addends) {
      const tensor& t = g.facts(id).constant;
      const auto numbers = rewriting::numbers_of(t);
      if (!numbers || t.type() != type || t.rank() > 5) return std::nullopt;
      // A mask of the inner sum has no window dim: [1, head, query, key] as [1, 1, head, query, key].
      dim_list own(t.dims());
      if (id != p.window_mask && own.size() == 4) {
        if (own[0] != 1) return std::nullopt;
        own.erase(own.begin());
      }
      while (own.size() < 5) own.insert(own.begin(), 1);
      if (own[0] != 1) return std::nullopt;
      for (std::size_t i = 0; i < total.size(); ++i) {
        std::size_t rest = i;
        std::size_t at = 0;
        std::size_t stride = 1;
        for (std::size_t d = 4; d >= 1; --d) {
          const auto extent = static_cast<std::size_t>((*dims)[d - 1]);
          if (own[d] != 1) at += rest % extent * stride;
          stride *= static_cast<std::size_t>(own[d]);
          rest /= extent;
        }
        total[i] += (*numbers)[at];
      }
    }
    const bool one_batch = (*p.windows)[0] == index_expr(1);
    dim_list shaped = *dims;
    if (!one_batch) shaped = {1, (*dims)[0] * (*dims)[1], (*dims)[2], (*dims)[3]};
    return g.add_constant(rewriting::fresh_value_name(g, prefix), rewriting::tensor_of(type, shaped, total));
  }
};

static_assert(Pass<recognize_attention>);

}  // namespace dnnopt

#endif  // DNNOPT_PASSES_RECOGNITION_RECOGNIZE_ATTENTION_HPP
