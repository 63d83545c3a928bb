// Owns the expansions of attention over whole sequences: Attention, QAttention, MultiHeadAttention and its decoding
// form.
#ifndef DNNOPT_ONNX_CONTRIB_ATTENTION_HPP
#define DNNOPT_ONNX_CONTRIB_ATTENTION_HPP

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <dnnopt/onnx/contrib/expansion.hpp>
#include <dnnopt/onnx/contrib/integer_product.hpp>

namespace dnnopt::onnx::contrib {

/// What ONNX's Attention is given. query, key and value are all [batch, position, heads * size] or all [batch, head,
/// position, size]; other values may be absent.
struct attention_operands {
  value_id query, key, value;
  value_id past_key = no_value, past_value = no_value;
  value_id padding = no_value;  ///< which keys count, as ONNX Runtime's operators take it (int32)
  value_id bias = no_value;     ///< added to scores, [1 or batch, 1 or head, query, key]
  value_id lengths = no_value;  ///< how many keys of each sequence count, int64 [batch]
};

/// The number of keys with those of the past, as int64 of one element.
inline value_id key_count(expansion& x, const attention_operands& o) {
  const value_id present = x.dim(o.key, x.rank(o.key, "key") == 3 ? 1 : 2);
  return o.past_key == no_value ? present : x.add("Add", {present, x.dim(o.past_key, 2)});
}

/// 0 for keys that count, mask_filter_value for others: of [batch, key] or [batch, query, key] those above 0, of
/// [batch] those before the given end, of [2 * batch] (ends, then starts) those between both.
inline value_id padding_scores(expansion& x, const attention_operands& o) {
  const shape& dims = x.dims(o.padding, "mask_index");
  const value_id filter =
      x.number(o.query, static_cast<double>(x.attributes().get_float("mask_filter_value", -10000.0F)));
  const value_id zero = x.number(o.query, 0);
  if (dims.size() == 2 || dims.size() == 3) {
    const value_id spread =
        x.unsqueeze(o.padding, dims.size() == 2 ? std::vector<std::int64_t>{1, 2} : std::vector<std::int64_t>{1});
    return x.add("Where", {x.add("Greater", {spread, x.number(o.padding, 0)}), zero, filter});
  }
  if (dims.size() != 1) x.refuse("a mask of shape " + to_string(dims));
  const index_expr batch = x.extent(o.query, 0, "query");
  const bool ends_alone = dims[0] == batch;
  if (!ends_alone && !(dims[0] == batch * 2))
    x.refuse("a mask of shape " + to_string(dims) + " for batch " + to_string(batch));
  const value_id keys = x.cast(x.counting(key_count(x, o)), x.type(o.padding));
  const auto limit = [&](value_id v) { return x.reshape(v, {-1, 1, 1, 1}); };
  if (ends_alone) return x.add("Where", {x.add("Less", {keys, limit(o.padding)}), zero, filter});
  const std::vector<value_id> halves = x.split(o.padding, 0, 2);
  const value_id before = x.add("Less", {keys, limit(halves[0])});
  const value_id behind = x.add("GreaterOrEqual", {keys, limit(halves[1])});
  return x.add("Where", {x.add("And", {before, behind}), zero, filter});
}

/// Adds Attention of `heads` heads with the node's attributes scale, unidirectional and mask_filter_value; gives the
/// result, the present keys and values [batch, head, key, size] and the masked scores, which are written to `to` where
/// that holds values.
inline std::vector<value_id> add_attention(expansion& x, const attention_operands& o, std::int64_t heads,
                                           std::vector<value_id> to) {
  attribute_map a;
  if (const float scale = x.attributes().get_float("scale", 0.0F); scale != 0.0F) a.set("scale", scale);
  const std::size_t rank = x.rank(o.query, "query");
  if (rank == 3) {
    a.set("q_num_heads", heads);
    a.set("kv_num_heads", heads);
  }
  if (x.attributes().get_int("unidirectional", 0) != 0) {
    // One query sees all keys; several see those up to their own position behind the past. Over another number of new
    // keys ONNX Runtime hides them for all queries but the last.
    const std::size_t along = rank == 3 ? 1 : 2;
    const index_expr queries = x.extent(o.query, along, "query");
    const index_expr keys = x.extent(o.key, along, "key");
    const bool one = queries == index_expr(1);
    if (!one && !(queries == keys))
      x.refuse("unidirectional with " + to_string(queries) + " queries over " + to_string(keys) + " keys");
    if (!one) a.set("is_causal", std::int64_t{1});
  }
  value_id mask = o.padding == no_value ? no_value : padding_scores(x, o);
  if (o.bias != no_value) mask = mask == no_value ? o.bias : x.add("Add", {o.bias, mask});
  while (to.size() > 1 && to.back() == no_value) to.pop_back();
  if (to.size() > 3) a.set("qk_matmul_output_mode", std::int64_t{2});
  return x.add_many("Attention", {o.query, o.key, o.value, mask, o.past_key, o.past_value, o.lengths}, std::move(a),
                    std::move(to));
}

/// Attention of projected queries, keys and values behind each other along the last axis; `past` and output 1 hold keys
/// and values as [2, batch, head, position, size].
inline void add_packed_attention(expansion& x, value_id projected, value_id sizes, value_id padding, value_id past,
                                 value_id bias) {
  const std::vector<value_id> parts = x.split(projected, -1, 3, sizes);
  attention_operands o{parts[0], parts[1], parts[2]};
  if (past != no_value) {
    o.past_key = x.pick(past, 0, 0);
    o.past_value = x.pick(past, 0, 1);
  }
  o.padding = padding;
  o.bias = bias;
  const bool shows_present = x.out(1) != no_value;
  const std::vector<value_id> made = add_attention(
      x, o, x.count_attribute("num_heads"),
      shows_present ? std::vector<value_id>{x.out(0), x.add_value(), x.add_value()} : std::vector<value_id>{x.out(0)});
  if (shows_present)
    x.give(1, "Concat", {x.unsqueeze(made[1], {0}), x.unsqueeze(made[2], {0})}, with({{"axis", std::int64_t{0}}}));
}

inline void refuse_other_attention(const expansion& x) {
  x.refuse_attribute("do_rotary", 0);
  x.refuse_attribute("past_present_share_buffer", 0);
}
inline void expand_attention(expansion& x) {
  refuse_other_attention(x);
  x.refuse_input(6, "past_sequence_length");
  value_id projected = x.add("MatMul", {x.in(0), x.in(1)});
  if (x.has(2)) projected = x.add("Add", {projected, x.in(2)});
  const std::vector<std::int64_t> sizes = x.attributes().get_ints("qkv_hidden_sizes");
  if (!sizes.empty() && sizes.size() != 3)
    throw error(errc::bad_attribute, "qkv_hidden_sizes has " + std::to_string(sizes.size()) + " elements");
  add_packed_attention(x, projected, sizes.empty() ? no_value : x.integers(sizes), x.in(3), x.in(4), x.in(5));
}

inline void expand_quantized_attention(expansion& x) {
  refuse_other_attention(x);
  const value_id projected =
      add_integer_product(x, {x.in(0), x.in(1), x.in(6), x.in(7)}, {x.in(3), x.in(4)}, x.in(2), no_value);
  add_packed_attention(x, projected, no_value, x.in(5), x.in(8), no_value);
}

/// [batch, position, heads * size] as [batch, head, position, size].
inline value_id split_heads(expansion& x, value_id v, std::int64_t heads) {
  const std::int64_t hidden = x.fixed_dim(v, 2, "query");
  return x.transpose(x.reshape(v, {0, 0, heads, hidden / heads}), {0, 2, 1, 3});
}
/// The inverse of split_heads.
inline value_id join_heads(expansion& x, value_id v, value_id target) {
  const std::int64_t hidden = x.fixed_dim(v, 1, "result") * x.fixed_dim(v, 3, "result");
  return x.reshape(x.transpose(v, {0, 2, 1, 3}), {0, 0, hidden}, target);
}

/// Queries, keys and values of a node whose inputs 0 to 2 are those three, or hold several behind each other as
/// [batch, position, head, 3 or 2, size].
inline attention_operands unpack_operands(expansion& x, std::int64_t heads) {
  const auto part = [&](value_id packed, std::int64_t index) {
    const std::int64_t size = x.fixed_dim(packed, 4, "packed input");
    return x.reshape(x.pick(packed, 3, index), {0, 0, heads * size});
  };
  if (!x.has(1)) {
    if (x.rank(x.in(0), "query") == 5) return {part(x.in(0), 0), part(x.in(0), 1), part(x.in(0), 2)};
    const std::vector<value_id> parts = x.split(x.in(0), -1, 3);
    return {parts[0], parts[1], parts[2]};
  }
  if (x.rank(x.in(1), "key") == 5) return {x.in(0), part(x.in(1), 0), part(x.in(1), 1)};
  if (!x.has(2)) x.refuse("a key without a value");
  return {x.in(0), x.in(1), x.in(2)};
}

/// Adds the parts of `bias` for queries, keys and values.
inline void add_projection_bias(expansion& x, attention_operands& o, value_id bias) {
  if (bias == no_value) return;
  const std::vector<value_id> parts =
      x.split(bias, 0, 3, x.list({x.dim(o.query, 2), x.dim(o.key, 2), x.dim(o.value, 2)}));
  o.query = x.add("Add", {o.query, parts[0]});
  o.key = x.add("Add", {o.key, parts[1]});
  o.value = x.add("Add", {o.value, parts[2]});
}

/// Attention of `o` whose queries are [batch, position, heads * size]; keys and values may be [batch, head, position,
/// size]. Outputs: as add_attention.
inline void give_attention(expansion& x, attention_operands o, std::int64_t heads) {
  const std::vector<value_id> to{x.out(0), x.out(1), x.out(2), x.out(3)};
  const bool four = x.rank(o.key, "key") == 4;
  if (!four) {
    add_attention(x, o, heads, to);
    return;
  }
  o.query = split_heads(x, o.query, heads);
  const std::vector<value_id> made = add_attention(x, o, heads, {no_value, to[1], to[2], to[3]});
  join_heads(x, made[0], x.out(0));
}

inline void expand_multi_head_attention(expansion& x) {
  x.refuse_input(8, "past_sequence_length");
  x.refuse_input(9, "cache_indirection");
  const std::int64_t heads = x.count_attribute("num_heads");
  attention_operands o = unpack_operands(x, heads);
  add_projection_bias(x, o, x.in(3));
  o.padding = x.in(4);
  o.bias = x.in(5);
  o.past_key = x.in(6);
  o.past_value = x.in(7);
  give_attention(x, o, heads);
}

/// One query per sequence, whose key and value are written behind the past_sequence_length rows of a cache; or over
/// keys given as [batch, head, position, size]. Keys that beams gather are refused.
inline void expand_decoder_attention(expansion& x) {
  x.refuse_input(8, "beam_width");
  x.refuse_input(9, "cache_indirection");
  const std::int64_t heads = x.count_attribute("num_heads");
  attention_operands o = unpack_operands(x, heads);
  add_projection_bias(x, o, x.in(10));
  o.padding = x.in(3);
  o.bias = x.in(4);
  if (!x.has(5) || !x.has(6)) {
    give_attention(x, o, heads);
    return;
  }
  if (x.attributes().get_int("past_present_share_buffer", 0) == 0 || !x.has(7))
    x.refuse("a past that present keys and values do not share");
  if (x.out(3) != no_value) x.refuse("output 'qk' over a cache");
  const value_id past = x.cast(x.reshape(x.in(7), {1}), dtype::int64);
  const value_id begin = x.add("Expand", {past, x.dim(o.query, 0)});
  const auto updated = [&](std::size_t slot, value_id fresh, std::size_t output) {
    return x.add("TensorScatter", {x.in(slot), split_heads(x, fresh, heads), begin}, with({{"axis", std::int64_t{2}}}),
                 x.out(output));
  };
  o.query = split_heads(x, o.query, heads);
  o.key = updated(5, o.key, 1);
  o.value = updated(6, o.value, 2);
  o.lengths = x.add("Add", {begin, x.one_integer(1)});
  join_heads(x, add_attention(x, o, heads, {no_value})[0], x.out(0));
}

inline constexpr std::array attention_rows{
    contrib_row{"com.microsoft", "Attention", {2, 7, 1, 2}, expand_attention},
    contrib_row{"com.microsoft", "DecoderMaskedMultiHeadAttention", {1, 11, 1, 4}, expand_decoder_attention},
    contrib_row{"com.microsoft", "MultiHeadAttention", {1, 10, 1, 4}, expand_multi_head_attention},
    contrib_row{"com.microsoft", "QAttention", {5, 9, 1, 2}, expand_quantized_attention},
};

}  // namespace dnnopt::onnx::contrib

#endif  // DNNOPT_ONNX_CONTRIB_ATTENTION_HPP
