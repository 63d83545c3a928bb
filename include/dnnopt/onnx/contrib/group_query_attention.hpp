// Owns the expansion of GroupQueryAttention: attention with fewer key heads than query heads over a cache of keys and
// values.
#ifndef DNNOPT_ONNX_CONTRIB_GROUP_QUERY_ATTENTION_HPP
#define DNNOPT_ONNX_CONTRIB_GROUP_QUERY_ATTENTION_HPP

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <dnnopt/onnx/contrib/attention.hpp>
#include <dnnopt/onnx/contrib/expansion.hpp>
#include <dnnopt/onnx/contrib/rotary.hpp>

namespace dnnopt::onnx::contrib {

namespace group_query {

/// Heads of one node, and its three operands as [batch, position, heads * size].
struct operands {
  std::int64_t heads, key_heads, size;
  value_id query, key, value;
};

inline operands operands_of(expansion& x) {
  operands o{};
  o.heads = x.count_attribute("num_heads");
  o.key_heads = x.count_attribute("kv_num_heads");
  if (x.has(1) != x.has(2)) x.refuse("key and value are given together or not at all");
  const std::int64_t width = x.fixed_dim(x.in(0), 2, "query");
  const std::int64_t all = x.has(1) ? o.heads : o.heads + 2 * o.key_heads;
  if (width % all != 0 || o.heads % o.key_heads != 0)
    throw error(errc::shape_mismatch, std::to_string(width) + " elements for " + std::to_string(o.heads) + " and " +
                                          std::to_string(o.key_heads) + " heads");
  o.size = width / all;
  o.query = x.in(0);
  o.key = x.in(1);
  o.value = x.in(2);
  if (!x.has(1)) {
    const std::int64_t key_width = o.key_heads * o.size;
    const std::vector<value_id> parts = x.split(x.in(0), -1, 3, x.integers({o.heads * o.size, key_width, key_width}));
    o.query = parts[0];
    o.key = parts[1];
    o.value = parts[2];
  }
  return o;
}

/// Where the new rows of each sequence of the batch begin and end in the cache, int64 [batch].
struct places {
  value_id begin, end;
};
/// Sequences whose total length is below that of the query are padded on the right: their first row is the cache's.
inline places places_of(expansion& x, const operands& o) {
  const value_id queries = x.dim(o.query, 1);
  const value_id totals = x.add("Add", {x.cast(x.reshape(x.in(5), {-1}), dtype::int64), x.one_integer(1)});
  const value_id ends = x.add("Max", {totals, queries});
  return {x.add("Sub", {ends, queries}), ends};
}

/// The mask of scores [batch, 1 or head, query, key + 1] that shows what a causal window shows, and whose last column,
/// of a key of zeros, holds the logit that the softmax is smoothed with.
inline value_id mask_with_sink(expansion& x, const operands& o, const places& at, value_id keys, bool causal,
                               std::int64_t window) {
  const value_id key = x.counting(keys);
  const value_id query =
      x.add("Add", {x.unsqueeze(x.counting(x.dim(o.query, 1)), {1}), x.reshape(at.begin, {-1, 1, 1, 1})});
  value_id shown = x.add("Less", {key, x.reshape(at.end, {-1, 1, 1, 1})});
  if (causal) shown = x.add("And", {shown, x.add("LessOrEqual", {key, query})});
  if (window > 0) shown = x.add("And", {shown, x.add("Greater", {key, x.add("Sub", {query, x.integer(window)})})});
  const value_id bias = x.has(10) ? x.in(10) : x.number(o.query, 0);
  const value_id hidden = x.number(o.query, -std::numeric_limits<double>::infinity());
  const value_id scores = x.add("Where", {shown, bias, hidden});
  const value_id sink = x.has(11) ? x.reshape(x.in(11), {1, -1, 1, 1}) : x.reshape(x.number(o.query, 0), {1, 1, 1, 1});
  const value_id heads = x.one_integer(x.has(11) ? o.heads : 1);
  const value_id rows = x.list({x.dim(o.query, 0), heads, x.dim(o.query, 1), x.one_integer(1)});
  const value_id all_scores = x.has(11) ? x.add("Expand", {scores, x.integers({1, o.heads, 1, 1})}) : scores;
  return x.add("Concat", {all_scores, x.add("Expand", {sink, rows})}, with({{"axis", std::int64_t{-1}}}));
}

inline void refuse_other_forms(const expansion& x) {
  x.refuse_attribute("sliding_window_cache", 0);
  x.refuse_attribute("qk_output", 0);
  x.refuse_attribute("kv_cache_bit_width", 0);
  for (const char* name : {"k_quant_type", "v_quant_type"})
    if (const std::string kind = x.attributes().get_string(name, "NONE"); kind != "NONE" && !kind.empty())
      x.refuse(std::string(name) + " = " + kind);
  x.refuse_input(12, "k_scale");
  x.refuse_input(13, "v_scale");
  x.refuse_input(16, "query_seqlens");
  if (x.out(3) != no_value) x.refuse("output 'output_qk' has no expansion");
  if (x.has(3) != x.has(4)) x.refuse("past_key and past_value are given together or not at all");
  if (x.has(14) != x.has(15)) x.refuse("q_norm_weight and k_norm_weight are given together or not at all");
}

/// Root mean square normalization of each head.
inline value_id normalized_heads(expansion& x, value_id v, std::int64_t heads, std::int64_t size, value_id weight,
                                 const char* own_epsilon) {
  const float epsilon = x.attributes().get_float(own_epsilon, x.attributes().get_float("qk_norm_epsilon", 1e-6F));
  const value_id apart = x.reshape(v, {0, 0, heads, size});
  const value_id made = x.add("RMSNormalization", {apart, weight}, with({{"epsilon", epsilon}}));
  return x.reshape(made, {0, 0, heads * size});
}

inline void rotate(expansion& x, operands& o, const places& at) {
  if (x.attributes().get_int("do_rotary", 0) == 0) return;
  if (!x.has(7) || !x.has(8)) throw error(errc::missing_input, "do_rotary needs cos_cache and sin_cache");
  const bool interleaved = x.attributes().get_int("rotary_interleaved", 0) != 0;
  const value_id positions =
      x.has(9) ? x.in(9) : x.add("Add", {x.unsqueeze(at.begin, {1}), x.counting(x.dim(o.query, 1))});
  o.query = add_rotation(x, o.query, positions, x.in(7), x.in(8), o.heads, o.size, interleaved);
  o.key = add_rotation(x, o.key, positions, x.in(7), x.in(8), o.key_heads, o.size, interleaved);
}

/// Keys or values [batch, head, position, size] of the cache `past`, lengthened by zeros to `total` positions where it
/// is shorter, with `fresh` from `begin` on.
inline value_id updated_cache(expansion& x, value_id past, value_id fresh, value_id begin, value_id total,
                              value_id target) {
  const value_id missing = x.add("Max", {x.add("Sub", {total, x.dim(past, 2)}), x.integers({0})});
  const value_id cache = x.add("Pad", {past, x.list({x.one_integer(0), missing}), no_value, x.one_integer(2)});
  return x.add("TensorScatter", {cache, fresh, begin}, with({{"axis", std::int64_t{2}}}), target);
}

}  // namespace group_query

/// New keys and values go into the cache behind the seqlens_k + 1 - queries rows that each sequence has there; rows
/// behind them are what the cache held, or zeros. Attention takes how far each sequence goes as its lengths.
inline void expand_group_query_attention(expansion& x) {
  using namespace group_query;
  refuse_other_forms(x);
  operands o = operands_of(x);
  const places at = places_of(x, o);
  if (x.has(14)) {
    o.query = normalized_heads(x, o.query, o.heads, o.size, x.in(14), "q_norm_epsilon");
    o.key = normalized_heads(x, o.key, o.key_heads, o.size, x.in(15), "k_norm_epsilon");
  }
  rotate(x, o, at);
  const bool causal = x.attributes().get_int("causal", 1) != 0;
  const std::int64_t window = x.attributes().get_int("local_window_size", -1);
  const bool smooth = x.attributes().get_int("smooth_softmax", -1) == 1 || x.has(11);
  attribute_map a;
  if (const float scale = x.attributes().get_float("scale", 0.0F); scale != 0.0F) a.set("scale", scale);
  if (const float cap = x.attributes().get_float("softcap", 0.0F); cap != 0.0F) a.set("softcap", cap);

  const bool caches = x.has(3) && !x.dim_is(x.in(3), 2, 0);
  const value_id query = split_heads(x, o.query, o.heads);
  value_id key = split_heads(x, o.key, o.key_heads);
  value_id value = split_heads(x, o.value, o.key_heads);
  if (caches) {
    const value_id total = x.cast(x.reshape(x.in(6), {1}), dtype::int64);
    key = updated_cache(x, x.in(3), key, at.begin, total, x.out(1));
    value = updated_cache(x, x.in(4), value, at.begin, total, x.out(2));
  } else {
    if (x.out(1) != no_value) x.give(1, "Identity", {key});
    if (x.out(2) != no_value) x.give(2, "Identity", {value});
  }
  value_id made = no_value;
  if (smooth) {
    const value_id mask = mask_with_sink(x, o, at, x.dim(key, 2), causal, window);
    const value_id pads = x.integers({0, 0, 0, 0, 0, 0, 1, 0});
    made = x.add("Attention", {query, x.add("Pad", {key, pads}), x.add("Pad", {value, pads}), mask}, std::move(a));
  } else {
    if (causal) a.set("is_causal", std::int64_t{1});
    if (window > 0) a.set("left_window_size", window - 1);
    const value_id lengths = caches || !causal ? at.end : no_value;
    made = x.add("Attention", {query, key, value, x.in(10), no_value, no_value, lengths}, std::move(a));
  }
  join_heads(x, made, x.out(0));
}

inline constexpr std::array group_query_attention_rows{
    contrib_row{"com.microsoft", "GroupQueryAttention", {7, 17, 1, 4}, expand_group_query_attention},
};

}  // namespace dnnopt::onnx::contrib

#endif  // DNNOPT_ONNX_CONTRIB_GROUP_QUERY_ATTENTION_HPP
