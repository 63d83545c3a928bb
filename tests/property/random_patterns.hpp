// Owns the patterns of whole networks that random graphs grow by: attention, normalizations from primitives, gates,
// branches.
#ifndef DNNOPT_TESTS_PROPERTY_RANDOM_PATTERNS_HPP
#define DNNOPT_TESTS_PROPERTY_RANDOM_PATTERNS_HPP

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "property/random_choices.hpp"

namespace testing {

/// x cut into heads, [batch, position, heads * size] to [batch, heads, position, size].
inline drawn heads_of(random_graph& r, const drawn& x, std::int64_t heads, bool for_keys = false) {
  std::vector<reshaped_dim> dims = own_dims(x);
  dims[2].factor /= heads;
  dims.insert(dims.begin() + 2, {{}, heads});
  const drawn cut = reshape(r, x, dims, true);
  return r.add_inner("Transpose", {cut.id}, {{"perm", for_keys ? ints{0, 2, 3, 1} : ints{0, 2, 1, 3}}});
}

/// Pairs of halves turned by angles: x * cosines + (-second, first) * sines.
inline drawn rotated(random_graph& r, const drawn& x, std::int64_t positions, std::int64_t size) {
  const value_id last = r.integers({-1});
  const value_id first = r.add_inner("Slice", {x.id, r.integers({0}), r.integers({size / 2}), last}).id;
  const value_id second =
      r.add_inner("Slice", {x.id, r.integers({size / 2}), r.integers({9223372036854775807}), last}).id;
  const value_id turned =
      r.add_inner("Concat", {r.add_inner("Neg", {second}).id, first}, {{"axis", std::int64_t{-1}}}).id;
  // Both halves turn by the same angles.
  const auto table = [&] {
    dnnopt::tensor half = r.reals({1, 1, positions, size / 2}, -1.0F, 1.0F);
    dnnopt::tensor whole(dtype::float32, {1, 1, positions, size});
    for (std::int64_t p = 0; p < positions; ++p)
      for (std::int64_t k = 0; k < size; ++k)
        whole.mutable_data<float>()[static_cast<std::size_t>(p * size + k)] =
            half.data<float>()[static_cast<std::size_t>(p * (size / 2) + k % (size / 2))];
    return r.hold(std::move(whole));
  };
  const value_id with_cosine = r.add_inner("Mul", {x.id, table()}).id;
  return r.add_inner("Add", {with_cosine, r.add_inner("Mul", {turned, table()}).id});
}

inline void grow_attention(random_graph& r) {
  const auto x = rows_of_numbers(r, 3, 3);
  if (!x) return;
  const std::int64_t channels = last_dim(*x);
  const std::int64_t heads = r.pick(1, 3);
  const std::int64_t size = r.one_of<std::int64_t>({2, 3, 4, 8});
  const auto project = [&](const drawn& from) {
    const drawn made = r.add_inner("MatMul", {from.id, r.constant({last_dim(from), heads * size})});
    return r.coin() ? r.add_inner("Add", {made.id, r.constant({heads * size})}) : made;
  };
  drawn keys_from = *x;
  if (r.rarely(4))
    if (const auto other = r.find([&](const drawn& v) {
          return is_real(v) && v.dims.size() == 3 && v.dims[0] == x->dims[0] && v.dims[2].is_constant();
        }))
      keys_from = *other;
  drawn query, key, value;
  if (r.rarely(3) && keys_from.id == x->id) {
    // One product for all three.
    const drawn all = r.add_inner("MatMul", {x->id, r.constant({channels, 3 * heads * size})});
    const auto parts = r.add("Split", {all.id, r.integers({heads * size, heads * size, heads * size})},
                             {{"axis", std::int64_t{-1}}}, 3);
    query = parts[0], key = parts[1], value = parts[2];
  } else {
    query = project(*x), key = project(keys_from), value = project(keys_from);
  }
  drawn q = heads_of(r, query, heads);
  const bool rotary = r.rarely(3) && x->dims[1].is_constant() && keys_from.id == x->id && size % 2 == 0;
  const bool before = r.coin();  // the scale on the query
  const float scale = 1.0F / std::sqrt(static_cast<float>(size));
  drawn scores;
  if (rotary) {
    q = rotated(r, q, x->dims[1].constant(), size);
    const drawn k = rotated(r, heads_of(r, key, heads), x->dims[1].constant(), size);
    const drawn turned = r.add_inner("Transpose", {k.id}, {{"perm", ints{0, 1, 3, 2}}});
    scores = r.add_inner("MatMul", {q.id, turned.id});
  } else {
    const drawn k = heads_of(r, key, heads, true);
    if (before) q = r.add_inner("Mul", {q.id, r.number(scale)});
    scores = r.add_inner("MatMul", {q.id, k.id});
  }
  if (rotary || !before)
    scores = r.coin() ? r.add_inner("Mul", {scores.id, r.number(scale)})
                      : r.add_inner("Div", {scores.id, r.number(1.0F / scale)});
  if (x->dims[1].is_constant() && keys_from.dims[1].is_constant() && r.coin()) {
    const std::int64_t rows = x->dims[1].constant();
    const std::int64_t columns = keys_from.dims[1].constant();
    dnnopt::tensor mask(dtype::float32, {rows, columns});
    const bool causal = r.coin();
    for (std::int64_t i = 0; i < rows; ++i)
      for (std::int64_t j = 0; j < columns; ++j)
        mask.mutable_data<float>()[static_cast<std::size_t>(i * columns + j)] =
            causal ? (j > i ? -10000.0F : 0.0F) : static_cast<float>(r.pick(-8, 8)) / 8;
    scores = r.add_inner("Add", {scores.id, r.hold(std::move(mask))});
  } else if (const auto mask = r.find([&](const drawn& v) { return is_boolean(v) && r.spreads(v, scores); });
             mask && r.coin()) {
    scores = r.add_inner("Where", {mask->id, scores.id, r.number(-1000.0F)});
  }
  const drawn shares = r.add_inner("Softmax", {scores.id}, {{"axis", std::int64_t{r.coin() ? -1 : 3}}});
  const drawn sums = r.add_inner("MatMul", {shares.id, heads_of(r, value, heads).id});
  const drawn turned = r.add_inner("Transpose", {sums.id}, {{"perm", ints{0, 2, 1, 3}}});
  std::vector<reshaped_dim> joined = own_dims(turned);
  join(joined, 2);
  const drawn flat = reshape(r, turned, joined, true);
  if (r.coin()) {
    const drawn out = r.add_inner("MatMul", {flat.id, r.constant({heads * size, channels})});
    r.add("Add", {out.id, x->id});
  } else {
    r.add("Identity", {flat.id});
  }
}

/// The operator itself, in the forms that newer exporters write.
inline void grow_attention_operator(random_graph& r) {
  const auto x = rows_of_numbers(r, 3, 3);
  if (!x) return;
  const std::int64_t channels = last_dim(*x);
  const std::int64_t key_heads = r.pick(1, 2);
  const std::int64_t query_heads = key_heads * r.pick(1, 2);
  const std::int64_t size = r.pick(1, 4);
  const auto project = [&](std::int64_t heads) {
    return r.add_inner("MatMul", {x->id, r.constant({channels, heads * size})});
  };
  const drawn q = project(query_heads), k = project(key_heads), v = project(key_heads);
  random_graph::attribute_list attributes{{"is_causal", std::int64_t{r.pick(0, 1)}}};
  if (r.coin()) attributes.emplace_back("scale", 0.5F);
  if (r.coin()) {
    attributes.emplace_back("q_num_heads", query_heads);
    attributes.emplace_back("kv_num_heads", key_heads);
    r.add("Attention", {q.id, k.id, v.id}, attributes);
  } else {
    r.add("Attention", {heads_of(r, q, query_heads).id, heads_of(r, k, key_heads).id, heads_of(r, v, key_heads).id},
          attributes);
  }
}

inline void grow_normalization_pattern(random_graph& r) {
  const auto x = rows_of_numbers(r, 2);
  if (!x) return;
  const std::int64_t size = last_dim(*x);
  const value_id axis = r.integers({-1});
  const value_id small = r.number(1e-3F);
  const value_id factor = r.constant({size}, 0.5F, 1.5F);
  const value_id addend = r.constant({size});
  switch (r.pick(0, 3)) {
    case 0: {  // layer normalization
      const value_id mean = r.add_inner("ReduceMean", {x->id, axis}).id;
      const value_id centred = r.add_inner("Sub", {x->id, mean}).id;
      const value_id square =
          r.coin() ? r.add_inner("Pow", {centred, r.number(2)}).id : r.add_inner("Mul", {centred, centred}).id;
      const value_id variance = r.add_inner("ReduceMean", {square, axis}).id;
      const value_id deviation = r.add_inner("Sqrt", {r.add_inner("Add", {variance, small}).id}).id;
      const value_id row = r.add_inner("Div", {centred, deviation}).id;
      r.add("Add", {r.add_inner("Mul", {row, factor}).id, addend});
      return;
    }
    case 1: {  // root mean square
      const value_id square =
          r.coin() ? r.add_inner("Pow", {x->id, r.number(2)}).id : r.add_inner("Mul", {x->id, x->id}).id;
      const value_id root =
          r.add_inner("Sqrt", {r.add_inner("Add", {r.add_inner("ReduceMean", {square, axis}).id, small}).id}).id;
      const value_id row = r.coin() ? r.add_inner("Div", {x->id, root}).id
                                    : r.add_inner("Mul", {x->id, r.add_inner("Reciprocal", {root}).id}).id;
      r.add("Mul", {row, factor});
      return;
    }
    case 2: {  // softmax
      const value_id least = r.add_inner("ReduceMax", {x->id, axis}).id;
      const value_id powers = r.add_inner("Exp", {r.add_inner("Sub", {x->id, least}).id}).id;
      r.add("Div", {powers, r.add_inner("ReduceSum", {powers, axis}).id});
      return;
    }
    default: {  // unit vectors
      const value_id length = r.add_inner("ReduceL2", {x->id, axis}).id;
      r.add("Div", {x->id, r.add_inner("Clip", {length, r.number(1e-2F)}).id});
      return;
    }
  }
}

/// Groups of channels: reshaped, normalized, reshaped back, scaled.
inline void grow_group_normalization(random_graph& r) {
  const auto x = r.find([](const drawn& v) {
    return is_real(v) && v.dims.size() == 4 && v.dims[1].is_constant() && v.dims[1].constant() % 2 == 0;
  });
  if (!x) return;
  std::vector<reshaped_dim> groups = own_dims(*x);
  join(groups, 2);
  join(groups, 1);
  groups[1].factor /= 2;
  groups.insert(groups.begin() + 1, {{}, 2});
  const drawn cut = reshape(r, *x, groups, true);
  const drawn flat =
      r.add_inner("InstanceNormalization", {cut.id, r.hold(dnnopt::tensor::of<float>({2}, std::vector<float>{1, 1})),
                                            r.hold(dnnopt::tensor::of<float>({2}, std::vector<float>{0, 0}))});
  const drawn back = r.add_inner("Reshape", {flat.id, r.add_inner("Shape", {x->id}).id});
  const std::int64_t channels = x->dims[1].constant();
  r.add("Add",
        {r.add_inner("Mul", {back.id, r.constant({channels, 1, 1}, 0.5F, 1.5F)}).id, r.constant({channels, 1, 1})});
}

/// Squeeze and excite: a gate per channel from the channels' means.
inline void grow_gate(random_graph& r) {
  const auto x = r.find([](const drawn& v) { return is_real(v) && v.dims.size() == 4 && v.dims[1].is_constant(); });
  if (!x) return;
  const std::int64_t channels = x->dims[1].constant();
  const std::int64_t middle = r.pick(1, 4);
  const drawn means =
      r.coin() ? r.add_inner("GlobalAveragePool", {x->id}) : r.add_inner("ReduceMean", {x->id, r.integers({2, 3})});
  const drawn squeezed = r.add_inner("Conv", {means.id, r.constant({middle, channels, 1, 1}), r.constant({middle})});
  const drawn active = r.add_inner(r.coin() ? "Relu" : "HardSwish", {squeezed.id});
  const drawn excited = r.add_inner("Conv", {active.id, r.constant({channels, middle, 1, 1}), r.constant({channels})});
  r.add("Mul", {r.add_inner(r.coin() ? "Sigmoid" : "HardSigmoid", {excited.id}).id, x->id});
}

/// Convolutions of one value, side by side and joined.
inline void grow_branches(random_graph& r) {
  const auto x = r.find([](const drawn& v) {
    return is_real(v) && v.dims.size() == 4 && v.dims[1].is_constant() && v.dims[1].constant() <= 16;
  });
  if (!x) return;
  const std::int64_t channels = x->dims[1].constant();
  std::vector<value_id> parts;
  for (int k = r.pick(2, 3); k > 0; --k) {
    const std::int64_t outputs = r.pick(1, 6);
    const std::int64_t size = r.one_of<std::int64_t>({1, 1, 3});
    drawn made = r.add_inner("Conv", {x->id, r.constant({outputs, channels, size, size}), r.constant({outputs})},
                             {{"pads", ints(4, size / 2)}, {"kernel_shape", ints{size, size}}});
    if (r.coin()) made = r.add_inner("Relu", {made.id});
    parts.push_back(made.id);
  }
  if (r.coin())
    parts.push_back(r.add_inner("MaxPool", {x->id}, {{"kernel_shape", ints{3, 3}}, {"pads", ints{1, 1, 1, 1}}}).id);
  r.add("Concat", parts, {{"axis", std::int64_t{1}}});
}

/// An image's channels last, a product, an activation and back, as ConvNeXt has it.
inline void grow_channels_last(random_graph& r) {
  const auto x = r.find([](const drawn& v) { return is_real(v) && v.dims.size() == 4 && v.dims[1].is_constant(); });
  if (!x) return;
  const std::int64_t channels = x->dims[1].constant();
  drawn y = r.add_inner("Transpose", {x->id}, {{"perm", ints{0, 2, 3, 1}}});
  if (r.coin())
    y = r.add_inner("LayerNormalization", {y.id, r.constant({channels}, 0.5F, 1.5F), r.constant({channels})},
                    {{"epsilon", 1e-3F}});
  y = r.add_inner("Add", {r.add_inner("MatMul", {y.id, r.constant({channels, channels})}).id, r.constant({channels})});
  if (r.coin()) y = r.add_inner("Gelu", {y.id});
  y = r.add_inner("Transpose", {y.id}, {{"perm", ints{0, 3, 1, 2}}});
  if (r.coin())
    r.add("Add", {x->id, y.id});
  else
    r.add("Identity", {y.id});
}

/// A feed-forward part: product, gate or activation, product, residual.
inline void grow_feed_forward(random_graph& r) {
  const auto x = rows_of_numbers(r, 2, 4);
  if (!x) return;
  const std::int64_t size = last_dim(*x);
  const std::int64_t inner = r.one_of<std::int64_t>({4, 6, 16});
  const auto product = [&] { return r.add_inner("MatMul", {x->id, r.constant({size, inner})}); };
  drawn middle = product();
  if (r.coin()) {
    middle = r.add_inner("Mul", {r.add_inner("Swish", {middle.id}).id, product().id});
  } else {
    middle = r.add_inner("Gelu", {r.add_inner("Add", {middle.id, r.constant({inner})}).id});
  }
  r.add("Add", {x->id, r.add_inner("MatMul", {middle.id, r.constant({inner, size})}).id});
}

inline constexpr std::array pattern_rows{
    growth_row{"attention", 4, grow_attention},
    growth_row{"attention operator", 1, grow_attention_operator},
    growth_row{"normalization from primitives", 4, grow_normalization_pattern},
    growth_row{"group normalization", 1, grow_group_normalization},
    growth_row{"gate", 2, grow_gate},
    growth_row{"branches", 2, grow_branches},
    growth_row{"channels last", 2, grow_channels_last},
    growth_row{"feed forward", 2, grow_feed_forward},
};

/// A graph of 5 to 60 operators, the same for the same seed.
inline random_graph grown_graph(std::uint32_t seed) {
  random_graph r(seed);
  std::vector<growth_row> rows(element_wise_rows.begin(), element_wise_rows.end());
  rows.insert(rows.end(), layout_rows.begin(), layout_rows.end());
  rows.insert(rows.end(), anchor_rows.begin(), anchor_rows.end());
  rows.insert(rows.end(), pattern_rows.begin(), pattern_rows.end());
  // What quantizers write stands in every third graph, and there often.
  const bool rounds = r.rarely(3);
  if (rounds) rows.insert(rows.end(), quantized_rows.begin(), quantized_rows.end());
  if (rounds) rows.insert(rows.end(), quantized_rows.begin(), quantized_rows.end());
  rows.insert(rows.end(), choice_rows.begin(), choice_rows.end());
  const int weights =
      std::accumulate(rows.begin(), rows.end(), 0, [](int sum, const growth_row& row) { return sum + row.weight; });
  const int wanted = r.pick(5, 45);
  // A row may find nothing to work on.
  for (int tries = 0; tries < 1000 && r.accepted() < wanted && static_cast<int>(r.made().node_count()) < wanted + 15;
       ++tries) {
    int at = r.pick(0, weights - 1);
    std::size_t k = 0;
    while (at >= rows[k].weight) at -= rows[k++].weight;
    rows[k].grow(r);
  }
  r.finish();
  return r;
}

}  // namespace testing

#endif  // DNNOPT_TESTS_PROPERTY_RANDOM_PATTERNS_HPP
