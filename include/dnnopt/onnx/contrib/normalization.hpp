// Owns the expansions of layer and group normalizations with a residual sum, an embedding or an activation.
#ifndef DNNOPT_ONNX_CONTRIB_NORMALIZATION_HPP
#define DNNOPT_ONNX_CONTRIB_NORMALIZATION_HPP

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include <dnnopt/onnx/contrib/expansion.hpp>

namespace dnnopt::onnx::contrib {

/// Writes 1 / sqrt(mean(v * v) + epsilon) over the dims from `axis` on.
inline void add_inverse_root_mean_square(expansion& x, value_id v, std::int64_t axis, float epsilon, value_id target) {
  std::vector<std::int64_t> axes;
  const auto rank = static_cast<std::int64_t>(x.rank(v, "X"));
  for (std::int64_t a = axis < 0 ? axis + rank : axis; a < rank; ++a) axes.push_back(a);
  const value_id mean = x.add("ReduceMean", {x.add("Mul", {v, v}), x.integers(axes)});
  const value_id sum = x.add("Add", {mean, x.number(mean, static_cast<double>(epsilon))});
  x.add("Reciprocal", {x.add("Sqrt", {sum})}, {}, target);
}

/// Outputs: the normalized tensor in the type of the scale, and the inverse root mean square in float32.
inline void expand_simplified_layer_normalization(expansion& x) {
  const std::int64_t axis = x.attributes().get_int("axis", -1);
  const float epsilon = x.attributes().get_float("epsilon", 1e-5F);
  const bool mixed = x.type(x.in(0)) != x.type(x.in(1)) && x.type(x.in(1)) != dtype::undefined;
  const value_id data = mixed ? x.cast(x.in(0), x.type(x.in(1))) : x.in(0);
  x.give(0, "RMSNormalization", {data, x.in(1)}, with({{"axis", axis}, {"epsilon", epsilon}}));
  if (x.out(1) != no_value) add_inverse_root_mean_square(x, x.cast(x.in(0), dtype::float32), axis, epsilon, x.out(1));
}

/// The sum of input, skip and bias (input `bias_slot`) in at least float32; written to output 3 in its own type.
inline value_id add_residual(expansion& x, std::size_t bias_slot) {
  const value_id target = x.widened(x.in(0)) == x.in(0) ? x.out(3) : no_value;
  const bool biased = x.has(bias_slot);
  value_id sum = x.add("Add", {x.widened(x.in(0)), x.widened(x.in(1))}, {}, biased ? no_value : target);
  if (biased) sum = x.add("Add", {sum, x.widened(x.in(bias_slot))}, {}, target);
  if (x.out(3) != no_value && target == no_value) x.cast(sum, x.type(x.in(0)), x.out(3));
  return sum;
}

inline void expand_skip_layer_normalization(expansion& x) {
  const value_id sum = add_residual(x, 4);
  const bool wide = x.type(sum) == x.type(x.in(0));
  const value_id beta = x.has(3) ? x.widened(x.in(3)) : no_value;
  std::vector<value_id> outputs{wide ? x.out(0) : no_value};
  if (x.out(1) != no_value || x.out(2) != no_value) outputs.insert(outputs.end(), {x.out(1), x.out(2)});
  const value_id result = x.add_many(
      "LayerNormalization", {sum, x.widened(x.in(2)), beta},
      with({{"axis", std::int64_t{-1}}, {"epsilon", x.attributes().get_float("epsilon", 1e-12F)}}), outputs)[0];
  if (!wide) x.cast(result, x.type(x.in(0)), x.out(0));
}

inline void expand_skip_simplified_layer_normalization(expansion& x) {
  const value_id sum = add_residual(x, 3);
  const float epsilon = x.attributes().get_float("epsilon", 1e-12F);
  const bool wide = x.type(sum) == x.type(x.in(0));
  const value_id result = x.add("RMSNormalization", {sum, x.widened(x.in(2))},
                                with({{"axis", std::int64_t{-1}}, {"epsilon", epsilon}}), wide ? x.out(0) : no_value);
  if (!wide) x.cast(result, x.type(x.in(0)), x.out(0));
  if (x.out(1) != no_value) x.refuse("output 'mean', which this normalization does not compute");
  if (x.out(2) != no_value) add_inverse_root_mean_square(x, sum, -1, epsilon, x.out(2));
}

/// Outputs: the normalized sum of embeddings, how many words of each row the mask keeps, and the sum. Where
/// `quantized`, the tables, gamma and beta are codes whose scales are the inputs 6 behind them, with zero points 11
/// behind.
inline void add_embed_layer_normalization(expansion& x, bool quantized) {
  const auto real = [&](value_id v, std::size_t slot) {
    return quantized ? x.add("DequantizeLinear", {v, x.in(slot + 6), x.in(slot + 11)}) : v;
  };
  const auto look_up = [&](std::size_t table, std::size_t ids) {
    return real(x.add("Gather", {x.in(table), x.in(ids)}, with({{"axis", std::int64_t{0}}})), table);
  };
  if (x.has(1) != x.has(4)) x.refuse("segment_ids and segment_embedding are given together or not at all");
  const value_id words = look_up(2, 0);
  value_id positions = no_value;
  if (!quantized && x.has(8))
    positions = look_up(3, 8);
  else
    positions = real(x.add("Slice", {x.in(3), x.integers({0}), x.dim(x.in(0), 1), x.integers({0})}), 3);
  const value_id two = x.add("Add", {words, positions}, {}, x.has(1) ? no_value : x.out(2));
  const value_id sum = x.has(1) ? x.add("Add", {two, look_up(4, 1)}, {}, x.out(2)) : two;
  x.give(0, "LayerNormalization", {sum, real(x.in(5), 5), real(x.in(6), 6)},
         with({{"axis", std::int64_t{-1}}, {"epsilon", x.attributes().get_float("epsilon", 1e-12F)}}));
  if (x.out(1) == no_value) return;
  if (x.has(7)) {
    const value_id kept = x.cast(x.add("Equal", {x.in(7), x.number(x.in(7), 1)}), dtype::int32);
    x.give(1, "ReduceSum", {kept, x.integers({1})}, with({{"keepdims", std::int64_t{0}}}));
  } else {
    x.give(1, "Expand", {x.number(x.in(0), 0), x.dim(x.in(0), 0)});
  }
}
inline void expand_embed_layer_normalization(expansion& x) { add_embed_layer_normalization(x, false); }
inline void expand_quantized_embed_layer_normalization(expansion& x) { add_embed_layer_normalization(x, true); }

/// Group normalization of `v` in its layout, then SiLU where the attribute says so.
inline void add_group_normalization(expansion& x, value_id v) {
  const bool last = x.attributes().get_int("channels_last", 1) != 0;
  const std::int64_t activation = x.attributes().require<std::int64_t>("activation");
  if (activation != 0 && activation != 1) x.refuse("activation = " + std::to_string(activation));
  const dtype own = x.type(v);
  value_id t = x.widened(v);
  if (last) t = x.channels_first(t, "X");
  t = x.add(
      "GroupNormalization", {t, x.cast(x.in(1), x.type(t)), x.cast(x.in(2), x.type(t))},
      with({{"num_groups", x.count_attribute("groups")}, {"epsilon", x.attributes().get_float("epsilon", 1e-5F)}}));
  if (activation == 1) t = x.add("Swish", {t});
  const bool narrow = x.type(t) != own;
  if (last)
    t = x.channels_last(t, "X", narrow ? no_value : x.out(0));
  else if (!narrow)
    x.give(0, "Identity", {t});
  if (narrow) x.cast(t, own, x.out(0));
}
inline void expand_group_norm(expansion& x) { add_group_normalization(x, x.in(0)); }

/// Outputs: the normalized sum of X, skip and bias, and the sum. skip may be [N, C] or have ones for height and width.
inline void expand_skip_group_norm(expansion& x) {
  const bool last = x.attributes().get_int("channels_last", 1) != 0;
  const std::size_t rank = x.rank(x.in(0), "X");
  const auto spread = [&](value_id v, bool has_batch) {
    std::vector<std::int64_t> axes;
    if (!has_batch && last) return v;
    for (std::size_t a = 0; a + 2 < rank; ++a)
      axes.push_back(static_cast<std::int64_t>(a + (last ? 1 : has_batch ? 2 : 1)));
    return x.unsqueeze(v, axes);
  };
  const value_id skip = x.rank(x.in(3), "skip") == 2 ? spread(x.in(3), true) : x.in(3);
  value_id sum = x.add("Add", {x.in(0), skip}, {}, x.has(4) ? no_value : x.out(1));
  if (x.has(4)) sum = x.add("Add", {sum, spread(x.in(4), false)}, {}, x.out(1));
  add_group_normalization(x, sum);
}

inline constexpr std::array normalization_rows{
    contrib_row{"", "SimplifiedLayerNormalization", {2, 2, 1, 2}, expand_simplified_layer_normalization},
    contrib_row{"com.microsoft", "EmbedLayerNormalization", {7, 9, 1, 3}, expand_embed_layer_normalization},
    contrib_row{"com.microsoft", "GroupNorm", {3, 3}, expand_group_norm},
    contrib_row{
        "com.microsoft", "QEmbedLayerNormalization", {18, 18, 1, 2}, expand_quantized_embed_layer_normalization},
    contrib_row{"com.microsoft", "SimplifiedLayerNormalization", {2, 2, 1, 2}, expand_simplified_layer_normalization},
    contrib_row{"com.microsoft", "SkipGroupNorm", {4, 5, 1, 2}, expand_skip_group_norm},
    contrib_row{"com.microsoft", "SkipLayerNormalization", {3, 5, 1, 4}, expand_skip_layer_normalization},
    contrib_row{
        "com.microsoft", "SkipSimplifiedLayerNormalization", {3, 4, 1, 4}, expand_skip_simplified_layer_normalization},
};

}  // namespace dnnopt::onnx::contrib

#endif  // DNNOPT_ONNX_CONTRIB_NORMALIZATION_HPP
