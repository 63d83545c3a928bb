// Owns the reference evaluation of attention, linear attention and rotary embedding.
#ifndef DNNOPT_REFERENCE_ATTENTION_HPP
#define DNNOPT_REFERENCE_ATTENTION_HPP

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <dnnopt/ops/facts.hpp>
#include <dnnopt/reference/broadcast.hpp>
#include <dnnopt/reference/dense_product.hpp>
#include <dnnopt/reference/normalization.hpp>
#include <dnnopt/reference/reference_row.hpp>

namespace dnnopt::reference {

namespace attention {
using inputs = std::span<const tensor>;
using outputs = std::span<tensor>;

/// A tensor of heads as [batch, head, position, size] in double, from that layout or from [batch, position, head *
/// size].
struct heads {
  std::int64_t batch, head, position, size;
  std::vector<double> data;

  /// The row-major matrix [position, size] of one head.
  [[nodiscard]] const double* matrix(std::int64_t b, std::int64_t h) const {
    return data.data() + (b * head + h) * position * size;
  }
  [[nodiscard]] dim_list dims() const { return {batch, head, position, size}; }
};
[[nodiscard]] inline heads split_heads(const tensor& t, std::int64_t count) {
  const dim_list& d = t.dims();
  if (t.rank() == 4) return {d[0], d[1], d[2], d[3], load_all<double>(t)};
  if (t.rank() != 3 || count < 1 || d[2] % count != 0)
    throw error(errc::shape_mismatch, to_string(d) + " does not split into " + std::to_string(count) + " heads");
  heads result{d[0], count, d[1], d[2] / count, std::vector<double>(static_cast<std::size_t>(t.size()))};
  const std::vector<double> packed = load_all<double>(t);
  for (std::int64_t b = 0; b < d[0]; ++b)
    for (std::int64_t p = 0; p < d[1]; ++p)
      for (std::int64_t h = 0; h < count; ++h)
        std::copy_n(packed.begin() + ((b * d[1] + p) * count + h) * result.size, result.size,
                    result.data.begin() + ((b * count + h) * d[1] + p) * result.size);
  return result;
}
/// The inverse of split_heads for rank 3.
[[nodiscard]] inline std::vector<double> pack_heads(const heads& x) {
  std::vector<double> packed(x.data.size());
  for (std::int64_t b = 0; b < x.batch; ++b)
    for (std::int64_t h = 0; h < x.head; ++h)
      for (std::int64_t p = 0; p < x.position; ++p)
        std::copy_n(x.data.begin() + ((b * x.head + h) * x.position + p) * x.size, x.size,
                    packed.begin() + ((b * x.position + p) * x.head + h) * x.size);
  return packed;
}
/// Positions of the past followed by the present ones.
[[nodiscard]] inline heads join_past(const heads& past, const heads& x) {
  if (past.batch != x.batch || past.head != x.head || past.size != x.size)
    throw error(errc::shape_mismatch, "a past of " + to_string(past.dims()) + " before " + to_string(x.dims()));
  heads result{x.batch, x.head, past.position + x.position, x.size, {}};
  for (std::int64_t i = 0; i < x.batch * x.head; ++i) {
    const auto append = [&](const heads& from) {
      const auto first = from.data.begin() + i * from.position * from.size;
      result.data.insert(result.data.end(), first, first + from.position * from.size);
    };
    append(past);
    append(x);
  }
  return result;
}

/// The additive bias [batch, head, query, key] of the mask input; keys beyond the mask's length are masked.
[[nodiscard]] inline std::vector<double> mask_bias(const tensor& mask, const dim_list& dims) {
  const double masked = -std::numeric_limits<double>::infinity();
  std::vector<double> result(static_cast<std::size_t>(element_count(dims)), 0.0);
  if (mask.empty()) return result;
  dim_list covered = dims;
  if (mask.rank() > 0 && mask.dims().back() != 1) covered.back() = std::min(dims.back(), mask.dims().back());
  std::vector<double> values(static_cast<std::size_t>(element_count(covered)));
  (void)broadcast_dims(covered, mask.dims());
  broadcast_reader<double>(mask, covered).read(0, values.size(), values.data());
  const std::int64_t keys = dims.back();
  for (std::int64_t row = 0; row < static_cast<std::int64_t>(result.size()) / std::max<std::int64_t>(1, keys); ++row)
    for (std::int64_t k = 0; k < keys; ++k) {
      double& to = result[static_cast<std::size_t>(row * keys + k)];
      if (k >= covered.back()) {
        to = masked;
        continue;
      }
      const double v = values[static_cast<std::size_t>(row * covered.back() + k)];
      to = mask.type() == dtype::boolean ? (v != 0 ? 0.0 : masked) : v;
    }
  return result;
}

/// The heads of queries, and those of keys and values with their past before them.
struct attention_operands {
  heads q;
  heads k;
  heads v;
  std::int64_t past = 0;  ///< positions of the past
};

/// The operands of Attention. Errors: missing_input, shape_mismatch where they do not fit each other.
[[nodiscard]] inline attention_operands operands_of(const attribute_map& attributes, inputs x) {
  attention_operands result{split_heads(x[0], attributes.get_int("q_num_heads", 0)),
                            split_heads(x[1], attributes.get_int("kv_num_heads", 0)),
                            split_heads(x[2], attributes.get_int("kv_num_heads", 0))};
  auto& [q, k, v, past] = result;
  if (has_input(x, 4) != has_input(x, 5))
    throw error(errc::missing_input, "Attention needs past key and past value together");
  if (has_input(x, 4)) {
    past = x[4].dims().at(2);
    k = join_past(split_heads(x[4], 0), k);
    v = join_past(split_heads(x[5], 0), v);
  }
  if (k.head == 0 || q.head % k.head != 0 || q.size != k.size || v.position != k.position || k.batch != q.batch ||
      v.batch != q.batch || v.head != k.head)
    throw error(errc::shape_mismatch,
                "Attention of " + to_string(q.dims()) + ", " + to_string(k.dims()) + ", " + to_string(v.dims()));
  return result;
}

/// Makes of `count` numbers their softmax, in place. Precondition: there is a number.
inline void softmax_row(double* row, std::int64_t count) {
  const double greatest = *std::max_element(row, row + count);
  double total = 0;
  for (std::int64_t j = 0; j < count; ++j) total += row[j] = std::exp(row[j] - greatest);
  for (std::int64_t j = 0; j < count; ++j) row[j] /= total;
}

/// How products of queries and keys become the weights of values.
struct score_rules {
  dim_list dims;  ///< of the scores: [batch, head, query, key]
  std::int64_t past;
  std::vector<double> bias;           ///< of those dims
  std::vector<std::int64_t> lengths;  ///< by batch, how many keys count; empty where all do
  double scale;
  double softcap;  ///< 0: none
  bool causal;
  std::int64_t left;   ///< how many keys before its own position a query sees; negative: all
  std::int64_t right;  ///< the same for keys after it
  std::int64_t mode;   ///< which scores are an output: 0 scaled, 1 capped, 2 masked, 3 weights

  /// Whether a query at position `at` of batch `b` does not see key `j`.
  [[nodiscard]] bool hides(std::int64_t b, std::int64_t at, std::int64_t j) const {
    return (causal && j > at) || (left >= 0 && j < at - left) || (right >= 0 && j > at + right) ||
           (!lengths.empty() && j >= lengths[static_cast<std::size_t>(b)]);
  }
  /// Adds the mask to the scores `row` of query `i` of head `task`, counted over all batches: whether any key is left.
  [[nodiscard]] bool mask_row(double* row, std::int64_t task, std::int64_t i) const {
    const double masked = -std::numeric_limits<double>::infinity();
    const std::int64_t b = task / dims[1];
    const std::int64_t offset = past > 0 || lengths.empty() ? past : lengths[static_cast<std::size_t>(b)] - dims[2];
    bool any = false;
    for (std::int64_t j = 0; j < dims[3]; ++j) {
      const double added =
          hides(b, offset + i, j) ? masked : bias[static_cast<std::size_t>((task * dims[2] + i) * dims[3] + j)];
      row[j] += added;
      any = any || added != masked;
    }
    return any;
  }
  /// Makes weights of the products `s` of head `task`, counted as above, and copies the scores that are an output to
  /// `shown`.
  void weigh(std::vector<double>& s, double* shown, std::int64_t task) const {
    const auto show = [&](std::int64_t wanted) {
      if (mode == wanted) std::copy(s.begin(), s.end(), shown);
    };
    for (double& value : s) value *= scale;
    show(0);
    if (softcap > 0)
      for (double& value : s) value = softcap * std::tanh(value / softcap);
    show(1);
    const std::int64_t keys = dims[3];
    for (std::int64_t i = 0; i < dims[2]; ++i) {
      double* const row = s.data() + i * keys;
      const bool any = mask_row(row, task, i);
      if (mode == 2) std::copy_n(row, keys, shown + i * keys);
      if (any)
        softmax_row(row, keys);
      else
        std::fill_n(row, keys, 0.0);
    }
    show(3);
  }
};

/// The rules of Attention. Errors: shape_mismatch where the mask or the lengths do not fit the operands.
[[nodiscard]] inline score_rules rules_of(const attribute_map& attributes, inputs x, const attention_operands& of) {
  const tensor none;
  const heads& q = of.q;
  const dim_list dims{q.batch, q.head, q.position, of.k.position};
  std::vector<double> bias = mask_bias(input_or_empty(x, 3, none), dims);
  std::vector<std::int64_t> lengths = has_input(x, 6) ? integers_of(x[6]) : std::vector<std::int64_t>{};
  if (!lengths.empty() && static_cast<std::int64_t>(lengths.size()) != q.batch)
    throw error(errc::shape_mismatch,
                "Attention has " + std::to_string(lengths.size()) + " lengths for batch " + std::to_string(q.batch));
  const double scale = attributes.contains("scale") ? static_cast<double>(attributes.get_float("scale", 1.0F))
                                                    : 1.0 / std::sqrt(static_cast<double>(q.size));
  return {dims,
          of.past,
          std::move(bias),
          std::move(lengths),
          scale,
          attributes.get_float("softcap", 0.0F),
          attributes.get_int("is_causal", 0) != 0,
          attributes.get_int("left_window_size", -1),
          attributes.get_int("right_window_size", -1),
          attributes.get_int("qk_matmul_output_mode", 0)};
}

inline void attention(const attribute_map& attributes, inputs x, outputs y) {
  const attention_operands operands = operands_of(attributes, x);
  const heads& q = operands.q;
  const heads& k = operands.k;
  const heads& v = operands.v;
  const score_rules rules = rules_of(attributes, x, operands);
  heads result{q.batch, q.head, q.position, v.size,
               std::vector<double>(static_cast<std::size_t>(q.batch * q.head * q.position * v.size))};
  std::vector<double> scores(static_cast<std::size_t>(element_count(rules.dims)));
  parallel_ranges(q.batch * q.head, 1, [&](std::int64_t begin, std::int64_t end) {
    std::vector<double> s(static_cast<std::size_t>(q.position * k.position));
    for (std::int64_t task = begin; task < end; ++task) {
      const std::int64_t b = task / q.head;
      const std::int64_t h = task % q.head / (q.head / k.head);
      const std::vector<double> keys = transposed(k.matrix(b, h), k.position, k.size);
      dense_product(q.matrix(b, task % q.head), keys.data(), s.data(), q.position, q.size, k.position);
      rules.weigh(s, scores.data() + task * q.position * k.position, task);
      dense_product(s.data(), v.matrix(b, h), result.data.data() + task * q.position * v.size, q.position, k.position,
                    v.size);
    }
  });
  const bool packed = x[0].rank() == 3;
  y[0] = packed ? store_all<double>(x[0].type(), {q.batch, q.position, q.head * v.size}, pack_heads(result))
                : store_all<double>(x[0].type(), result.dims(), result.data);
  if (y.size() > 1) y[1] = store_all<double>(x[1].type(), k.dims(), k.data);
  if (y.size() > 2) y[2] = store_all<double>(x[2].type(), v.dims(), v.data);
  if (y.size() > 3) y[3] = store_all<double>(x[0].type(), rules.dims, scores);
}

inline void linear_attention(const attribute_map& attributes, inputs x, outputs y) {
  const std::string rule = attributes.get_string("update_rule", "gated_delta");
  const bool gated = rule == "gated" || rule == "gated_delta";
  const bool delta = rule == "delta" || rule == "gated_delta";
  if (!gated && !delta && rule != "linear")
    throw error(errc::bad_attribute, "attribute 'update_rule' is '" + rule + "'");
  if (gated != has_input(x, 4) || delta != has_input(x, 5))
    throw error(errc::missing_input, "LinearAttention with update_rule '" + rule + "' needs " + (gated ? "a" : "no") +
                                         " decay and " + (delta ? "a" : "no") + " beta");
  const heads q = split_heads(x[0], attributes.require<std::int64_t>("q_num_heads"));
  const heads k = split_heads(x[1], attributes.require<std::int64_t>("kv_num_heads"));
  const heads v = split_heads(x[2], attributes.require<std::int64_t>("kv_num_heads"));
  if (q.head % k.head != 0 || q.size != k.size || q.position != k.position || v.position != k.position)
    throw error(errc::shape_mismatch,
                "LinearAttention of " + to_string(q.dims()) + ", " + to_string(k.dims()) + ", " + to_string(v.dims()));
  const double stated = attributes.get_float("scale", 0.0F);
  const double scale = stated == 0 ? 1.0 / std::sqrt(static_cast<double>(q.size)) : stated;
  std::vector<double> state(static_cast<std::size_t>(k.batch * k.head * k.size * v.size), 0.0);
  if (has_input(x, 3)) {
    if (x[3].size() != static_cast<std::int64_t>(state.size()))
      throw error(errc::shape_mismatch, "a past state of " + to_string(x[3].dims()));
    state = load_all<double>(x[3]);
  }
  const std::vector<double> decay = gated ? load_all<double>(x[4]) : std::vector<double>{};
  const std::vector<double> beta = delta ? load_all<double>(x[5]) : std::vector<double>{};
  const std::int64_t decays = gated ? x[4].dims().back() : 0;  // per head, or per head and key element
  const std::int64_t betas = delta ? x[5].dims().back() : 0;   // per head, or one
  heads result{q.batch, q.head, q.position, v.size,
               std::vector<double>(static_cast<std::size_t>(q.batch * q.head * q.position * v.size))};
  const std::int64_t share = q.head / k.head;
  for (std::int64_t b = 0; b < k.batch; ++b)
    for (std::int64_t h = 0; h < k.head; ++h) {
      double* const s = state.data() + (b * k.head + h) * k.size * v.size;
      std::vector<double> value(static_cast<std::size_t>(v.size));
      for (std::int64_t t = 0; t < k.position; ++t) {
        const auto line = static_cast<std::size_t>(b * k.position + t);
        if (gated)
          for (std::int64_t i = 0; i < k.size * v.size; ++i)
            s[i] *= std::exp(decay.at(line * static_cast<std::size_t>(decays) +
                                      static_cast<std::size_t>(decays == k.head ? h : h * k.size + i / v.size)));
        const double* const key = k.matrix(b, h) + t * k.size;
        std::copy_n(v.matrix(b, h) + t * v.size, v.size, value.begin());
        if (delta) {
          std::vector<double> known(value.size());
          dense_product(key, s, known.data(), 1, k.size, v.size);
          const double rate =
              beta.at(line * static_cast<std::size_t>(betas) + static_cast<std::size_t>(betas == 1 ? 0 : h));
          for (std::size_t i = 0; i < value.size(); ++i) value[i] = rate * (value[i] - known[i]);
        }
        for (std::int64_t i = 0; i < k.size * v.size; ++i)
          s[i] += key[i / v.size] * value[static_cast<std::size_t>(i % v.size)];
        for (std::int64_t g = h * share; g < (h + 1) * share; ++g) {
          double* const to = result.data.data() + ((b * q.head + g) * q.position + t) * v.size;
          dense_product(q.matrix(b, g) + t * q.size, s, to, 1, k.size, v.size);
          for (std::int64_t i = 0; i < v.size; ++i) to[i] *= scale;
        }
      }
    }
  y[0] = store_all<double>(x[0].type(), {q.batch, q.position, q.head * v.size}, pack_heads(result));
  if (y.size() > 1)
    y[1] = store_all<double>(has_input(x, 3) ? x[3].type() : x[0].type(), {k.batch, k.head, k.size, v.size}, state);
}

inline void rotary_embedding(const attribute_map& attributes, inputs x, outputs y) {
  heads data = split_heads(x[0], attributes.get_int("num_heads", 0));
  const std::int64_t stated = attributes.get_int("rotary_embedding_dim", 0);
  const std::int64_t rotated = stated == 0 ? data.size : stated;
  const std::int64_t half = rotated / 2;
  const bool interleaved = attributes.get_int("interleaved", 0) != 0;
  const std::vector<double> cosines = load_all<double>(x[1]);
  const std::vector<double> sines = load_all<double>(x[2]);
  const std::vector<std::int64_t> positions = has_input(x, 3) ? integers_of(x[3]) : std::vector<std::int64_t>{};
  if (x[1].rank() == 0 || x[1].dims().back() != half || x[1].dims() != x[2].dims() || rotated > data.size ||
      (!positions.empty() && static_cast<std::int64_t>(positions.size()) != data.batch * data.position))
    throw error(errc::shape_mismatch,
                "RotaryEmbedding of " + to_string(x[0].dims()) + " with angles " + to_string(x[1].dims()));
  for (std::int64_t b = 0; b < data.batch; ++b)
    for (std::int64_t p = 0; p < data.position; ++p) {
      const std::int64_t line =
          positions.empty() ? b * data.position + p : positions[static_cast<std::size_t>(b * data.position + p)];
      for (std::int64_t h = 0; h < data.head; ++h) {
        double* const row = data.data.data() + ((b * data.head + h) * data.position + p) * data.size;
        for (std::int64_t i = 0; i < half; ++i) {
          const double c = cosines.at(static_cast<std::size_t>(line * half + i));
          const double s = sines.at(static_cast<std::size_t>(line * half + i));
          double& first = row[interleaved ? 2 * i : i];
          double& second = row[interleaved ? 2 * i + 1 : half + i];
          const double real = c * first - s * second;
          second = s * first + c * second;
          first = real;
        }
      }
    }
  y[0] = store_all<double>(x[0].type(), x[0].dims(), x[0].rank() == 3 ? pack_heads(data) : data.data);
}
}  // namespace attention

/// Evaluations of attention operators and rotary embedding.
inline constexpr std::array attention_rows{
    reference_row{"", "Attention", attention::attention},
    reference_row{"", "LinearAttention", attention::linear_attention},
    reference_row{"", "RotaryEmbedding", attention::rotary_embedding},
};

}  // namespace dnnopt::reference

#endif  // DNNOPT_REFERENCE_ATTENTION_HPP
