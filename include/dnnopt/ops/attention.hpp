// Owns the traits of ONNX's attention operators and rotary embedding.
#ifndef DNNOPT_OPS_ATTENTION_HPP
#define DNNOPT_OPS_ATTENTION_HPP

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <dnnopt/ops/element_wise.hpp>

namespace dnnopt::ops {

struct attention_classes {
  static constexpr mapping_type mapping = mapping_type::many_to_many;
  static constexpr layout_class layout = layout_class::ild_variable;
  static constexpr dynamism_class dynamism = dynamism_class::isdos;
  static constexpr computation_kind kind = computation_kind::attention;
};

/// Scaled dot product attention. Inputs: query, key, value, mask, past key, past value, lengths without padding; each
/// of the first three is [batch, head, position, size] or [batch, position, head * size]. Outputs: result, present key,
/// present value, and scores at one of four stages.
struct attention_op : attention_classes {
  static constexpr std::string_view name = "Attention";
  static constexpr int since = 25;
  static constexpr op_arity arity{3, 7, 1, 4};

  /// The extents of a node; shapes of inputs 0 to 2 are known.
  struct extents {
    index_expr batch, query_heads, key_heads, queries, keys, size, value_size;
  };
  static extents extents_of(const node_facts& facts) {
    const shape& q = *facts.dims(0);
    const shape& k = *facts.dims(1);
    const shape& v = *facts.dims(2);
    const bool packed = q.size() == 3;
    if ((q.size() != 3 && q.size() != 4) || k.size() != q.size() || v.size() != q.size())
      throw error(errc::shape_mismatch, "Attention of " + to_string(q) + ", " + to_string(k) + ", " + to_string(v));
    extents e;
    e.batch = q[0];
    if (packed) {
      const auto heads = [&](const char* name) {
        const auto count = facts.attributes->require<std::int64_t>(name);
        if (count < 1)
          throw error(errc::bad_attribute, "attribute '" + std::string(name) + "' is " + std::to_string(count));
        return index_expr(count);
      };
      e.query_heads = heads("q_num_heads");
      e.key_heads = heads("kv_num_heads");
      e.queries = q[1];
      e.keys = k[1];
      e.size = floordiv(q[2], e.query_heads);
      e.value_size = floordiv(v[2], e.key_heads);
    } else {
      e.query_heads = q[1];
      e.key_heads = k[1];
      e.queries = q[2];
      e.keys = k[2];
      e.size = q[3];
      e.value_size = v[3];
    }
    for (const std::size_t slot : {std::size_t{4}, std::size_t{5}})
      if (const shape* past = facts.dims(slot); past != nullptr && past->size() != 4)
        throw error(errc::shape_mismatch, "Attention with a past of " + to_string(*past));
    if (const shape* past = facts.dims(4)) e.keys += (*past)[2];
    return e;
  }
  static bool shapes_are_known(const node_facts& facts) {
    return facts.dims(0) != nullptr && facts.dims(1) != nullptr && facts.dims(2) != nullptr &&
           (!facts.has(4) || facts.dims(4) != nullptr);
  }
  static void infer(const node_facts& facts, std::span<value_facts> outputs) {
    outputs[0].type = facts.type(0);
    if (outputs.size() > 1) outputs[1].type = facts.type(1);
    if (outputs.size() > 2) outputs[2].type = facts.type(2);
    if (outputs.size() > 3) outputs[3].type = facts.type(0);
    if (!shapes_are_known(facts)) return;
    const extents e = extents_of(facts);
    require_fitting(facts, e);
    const bool packed = facts.dims(0)->size() == 3;
    outputs[0].dims = packed ? shape{e.batch, e.queries, e.query_heads * e.value_size}
                             : shape{e.batch, e.query_heads, e.queries, e.value_size};
    if (outputs.size() > 1) outputs[1].dims = shape{e.batch, e.key_heads, e.keys, e.size};
    if (outputs.size() > 2) outputs[2].dims = shape{e.batch, e.key_heads, e.keys, e.value_size};
    if (outputs.size() > 3) outputs[3].dims = shape{e.batch, e.query_heads, e.queries, e.keys};
  }
  /// Errors: shape_mismatch where keys, values, past and mask do not fit the queries and each other.
  static void require_fitting(const node_facts& facts, const extents& e) {
    const shape& q = *facts.dims(0);
    const shape& k = *facts.dims(1);
    const shape& v = *facts.dims(2);
    const bool packed = q.size() == 3;
    facts.require(guard_relation::equal, k[0], q[0], "batches of Attention's keys and queries");
    facts.require(guard_relation::equal, v[0], q[0], "batches of Attention's values and queries");
    facts.require(guard_relation::equal, k[packed ? 1 : 2], v[packed ? 1 : 2],
                  "positions of Attention's keys and values");
    facts.require(guard_relation::multiple, e.query_heads, e.key_heads, "heads of Attention's queries and keys");
    if (packed) {
      facts.require(guard_relation::equal, q[2], e.size * e.query_heads, "elements of Attention's queries and heads");
      facts.require(guard_relation::equal, k[2], e.size * e.key_heads, "elements of Attention's keys and queries");
      facts.require(guard_relation::equal, v[2], e.value_size * e.key_heads,
                    "elements of Attention's values and heads");
    } else {
      facts.require(guard_relation::equal, v[1], k[1], "heads of Attention's values and keys");
      facts.require(guard_relation::equal, k[3], q[3], "elements of Attention's keys and queries");
    }
    if (const shape* mask = facts.dims(3)) {
      const std::array<index_expr, 4> whole{e.batch, e.query_heads, e.queries, e.keys};
      // The spec pads a mask of fewer keys: its last dim is at most the keys.
      for (std::size_t back = 1; back <= std::min<std::size_t>(mask->size(), 4); ++back)
        facts.require(back == 1 ? guard_relation::at_least : guard_relation::expands,
                      back == 1 ? whole[4 - back] : (*mask)[mask->size() - back],
                      back == 1 ? (*mask)[mask->size() - back] : whole[4 - back], "dims of Attention's mask");
    }
    for (const std::size_t slot : {std::size_t{4}, std::size_t{5}}) {
      const shape* past = facts.dims(slot);
      if (past == nullptr) continue;
      facts.require(guard_relation::equal, (*past)[0], e.batch, "batches of Attention's past and queries");
      facts.require(guard_relation::equal, (*past)[1], e.key_heads, "heads of Attention's past and keys");
      facts.require(guard_relation::equal, (*past)[3], slot == 4 ? e.size : e.value_size,
                    "elements of Attention's past");
      if (slot == 5 && facts.dims(4) != nullptr)
        facts.require(guard_relation::equal, (*past)[2], (*facts.dims(4))[2], "positions of Attention's past");
    }
  }
  static index_expr macs(const node_facts& facts) {
    if (!shapes_are_known(facts)) return 0;
    const extents e = extents_of(facts);
    return e.batch * e.query_heads * e.queries * e.keys * (e.size + e.value_size);
  }
};

/// Attention as a recurrence over positions. Inputs: query, key, value [batch, position, head * size], past state
/// [batch, head, key size, value size], decay, beta. Outputs: result and present state.
struct linear_attention_op : attention_classes {
  static constexpr std::string_view name = "LinearAttention";
  static constexpr int since = 27;
  static constexpr op_arity arity{3, 6, 2, 2};

  static void infer(const node_facts& facts, std::span<value_facts> outputs) {
    outputs[0].type = facts.type(0);
    if (outputs.size() > 1) outputs[1].type = facts.has(3) ? facts.type(3) : facts.type(0);
    const shape* q = facts.dims(0);
    const shape* v = facts.dims(2);
    if (q == nullptr || v == nullptr) return;
    const auto query_heads = facts.attributes->require<std::int64_t>("q_num_heads");
    const auto key_heads = facts.attributes->require<std::int64_t>("kv_num_heads");
    if (query_heads < 1 || key_heads < 1 || q->size() != 3 || v->size() != 3)
      throw error(errc::shape_mismatch, "LinearAttention of " + to_string(*q) + " and " + to_string(*v));
    const index_expr value_size = floordiv((*v)[2], key_heads);
    outputs[0].dims = shape{(*q)[0], (*q)[1], value_size * query_heads};
    if (outputs.size() > 1) outputs[1].dims = shape{(*q)[0], key_heads, floordiv((*q)[2], query_heads), value_size};
  }
};

/// Rotates pairs of elements of input 0 by the angles whose cosines and sines are inputs 1 and 2.
struct rotary_embedding_op : attention_classes {
  static constexpr std::string_view name = "RotaryEmbedding";
  static constexpr int since = 23;
  static constexpr op_arity arity{3, 4};
  static constexpr int element_cost = 4;  // two elements, a cosine and a sine
  static constexpr computation_kind kind = computation_kind::other;

  static void infer(const node_facts& facts, std::span<value_facts> outputs) {
    outputs[0].type = facts.type(0);
    const shape* dims = facts.dims(0);
    if (dims == nullptr) return;
    // Angles are those of each position of each batch, or rows that input 3 picks.
    const std::size_t rank_of_angles = facts.has(3) ? 2 : 3;
    if (dims->size() != 3 && dims->size() != 4)
      throw error(errc::shape_mismatch, "RotaryEmbedding of " + to_string(*dims));
    for (const std::size_t i : {std::size_t{1}, std::size_t{2}})
      if (const shape* angles = facts.dims(i); angles != nullptr && angles->size() != rank_of_angles)
        throw error(errc::shape_mismatch,
                    "RotaryEmbedding of " + to_string(*dims) + " with angles " + to_string(*angles));
    outputs[0].dims = *dims;
  }
};

/// Adds ONNX's attention operators and rotary embedding.
inline void add_attention(op_set& set) { set.add<attention_op, linear_attention_op, rotary_embedding_op>(); }

static_assert(Operator<attention_op> && Operator<linear_attention_op> && Operator<rotary_embedding_op>);

}  // namespace dnnopt::ops

#endif  // DNNOPT_OPS_ATTENTION_HPP
