// Owns the table of operators that random models of one operator are drawn from: products, windows, indices,
// resampling.
#ifndef DNNOPT_TESTS_PROPERTY_ANCHOR_OPERATOR_ROWS_HPP
#define DNNOPT_TESTS_PROPERTY_ANCHOR_OPERATOR_ROWS_HPP

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "property/operator_drawer.hpp"

namespace testing {

inline void draw_product(operator_drawer& d) {
  d.tame();
  d.op("MatMul");
  const dtype type = d.rarely(5) ? d.one_of({dtype::int32, dtype::int64}) : d.real_type();
  const std::int64_t m = d.extent(), n = d.extent(), k = d.extent();
  const dim_list batch = d.dims(d.rank(0, 3));
  dim_list a = d.broadcast_with(batch);
  dim_list b = d.coin() ? dim_list{} : d.broadcast_with(batch);
  if (!(a.empty() && d.rarely(4))) a.push_back(m);
  a.push_back(k);
  b.push_back(k);
  if (!(b.size() == 1 && d.rarely(4))) b.push_back(n);
  d.data(type, a);
  d.weights(type, b);
}
inline void draw_gemm(operator_drawer& d) {
  d.tame();
  d.op("Gemm");
  const dtype type = d.real_type();
  const std::int64_t m = d.extent(), n = d.extent(), k = d.extent();
  const bool ta = d.coin(), tb = d.coin();
  d.data(type, ta ? dim_list{k, m} : dim_list{m, k});
  d.weights(type, tb ? dim_list{n, k} : dim_list{k, n});
  if (d.coin()) {
    dim_list c{m, n};
    for (std::int64_t& e : c)
      if (d.varying(0, 2) == 0) e = 1;
    if (d.rarely(3)) c.erase(c.begin());
    d.weights(type, c);
  }
  d.set("transA", std::int64_t{ta});
  d.set("transB", std::int64_t{tb});
  d.maybe("alpha", 0.5F);
  d.maybe("beta", 2.0F);
}
inline void draw_einsum(operator_drawer& d) {
  d.tame();
  d.op("Einsum");
  const std::string equation =
      d.name_of({"ij,jk->ik", "bij,bjk->bik", "bij,jk->bik", "bhqd,bhkd->bhqk", "ij->ji", "ij->j", "i,j->ij",
                 "ij,ij->i", "...ij,...jk->...ik", "bij,bkj->ibk", "ijk->", "ii->i", "ab,bc,cd->ad"});
  d.set("equation", equation);
  const dtype type = d.one_of({dtype::float32, dtype::float32, dtype::float16, dtype::int32});
  std::array<std::int64_t, 128> extents{};
  for (std::int64_t& e : extents) e = d.extent(1);
  dim_list own;
  const auto end_operand = [&] {
    for (std::int64_t& e : own)
      if (d.varying(0, 9) == 0) e = 1;
    if (equation == "ii->i") own[1] = own[0];
    d.weights(type, own);
    own.clear();
  };
  for (const char c : equation.substr(0, equation.find('-'))) {
    if (c == ',')
      end_operand();
    else if (c != '.')
      own.push_back(extents[static_cast<std::size_t>(c)]);
    else if (own.size() < 3 && d.rarely(3))
      own.push_back(extents[0]);
  }
  end_operand();
}
inline void draw_integer_product(operator_drawer& d) {
  d.op("MatMulInteger");
  const std::int64_t m = d.extent(), n = d.extent(), k = d.extent();
  const dtype a = d.one_of({dtype::uint8, dtype::int8}), b = d.one_of({dtype::uint8, dtype::int8});
  dim_list batch = d.dims(d.rank(0, 2));
  dim_list left = d.broadcast_with(batch);
  left.insert(left.end(), {m, k});
  d.data(a, left);
  d.weights(b, {k, n});
  if (d.coin())
    d.scalar(a, d.pick(0, 3));
  else
    d.absent();
  if (d.coin()) d.weights(b, d.coin() ? dim_list{n} : dim_list{});
  while (d.made.inputs.back().content.empty()) d.made.inputs.pop_back();
}

/// kernel_shape, strides, dilations and pads, as windows have them.
inline ints draw_window(operator_drawer& d, std::size_t spatial, bool dilated = true) {
  ints kernel, strides, dilations, pads;
  for (std::size_t k = 0; k < spatial; ++k) {
    kernel.push_back(d.one_of<std::int64_t>({1, 1, 2, 3, 3, 5}));
    strides.push_back(d.rarely(3) ? d.pick(2, 3) : 1);
    dilations.push_back(dilated && d.rarely(4) ? 2 : 1);
  }
  for (std::size_t k = 0; k < 2 * spatial; ++k)
    pads.push_back(d.coin() ? d.pick(0, static_cast<int>(kernel[k % spatial]) / 2) : 0);
  d.set("kernel_shape", kernel);
  d.maybe("strides", strides);
  if (d.rarely(5)) {
    d.set("auto_pad", d.name_of({"SAME_UPPER", "SAME_LOWER", "VALID"}));
  } else {
    if (dilated) d.maybe("dilations", dilations);
    d.maybe("pads", pads);
  }
  return kernel;
}
inline void draw_convolution(operator_drawer& d) {
  d.tame();
  d.op("Conv");
  const dtype type = d.one_of({dtype::float32, dtype::float32, dtype::float32, dtype::float16});
  const std::size_t spatial = d.rank(1, 3);
  const std::int64_t group = d.rarely(3) ? d.pick(2, 4) : 1;
  const std::int64_t in = d.pick(1, 5), out = d.pick(1, 5);
  dim_list whole = d.dims(spatial + 2);
  whole[1] = group * in;
  for (std::size_t k = 2; k < whole.size(); ++k) whole[k] += d.rarely(6) ? 0 : 6;
  d.data(type, whole);
  const ints kernel = draw_window(d, spatial);
  dim_list w{group * out, d.rarely(4) && group > 1 ? in : in};
  w.insert(w.end(), kernel.begin(), kernel.end());
  d.weights(type, w);
  if (d.coin()) d.weights(type, {group * out});
  d.set("group", group);
}
inline void draw_transposed_convolution(operator_drawer& d) {
  d.tame();
  d.op("ConvTranspose");
  const dtype type = d.one_of({dtype::float32, dtype::float32, dtype::float16});
  const std::size_t spatial = d.rank(1, 2);
  const std::int64_t group = d.rarely(3) ? 2 : 1;
  const std::int64_t in = d.pick(1, 4), out = d.pick(1, 4);
  dim_list whole = d.dims(spatial + 2);
  whole[1] = group * in;
  d.data(type, whole);
  ints kernel, strides, pads, more;
  for (std::size_t k = 0; k < spatial; ++k) {
    kernel.push_back(d.pick(1, 4));
    strides.push_back(d.pick(1, 3));
    more.push_back(strides[k] > 1 ? d.pick(0, 1) : 0);
  }
  for (std::size_t k = 0; k < 2 * spatial; ++k) pads.push_back(d.pick(0, static_cast<int>(kernel[k % spatial] - 1)));
  d.set("kernel_shape", kernel);
  d.set("strides", strides);
  d.maybe("pads", pads);
  d.maybe("output_padding", more);
  d.set("group", group);
  dim_list w{group * in, out};
  w.insert(w.end(), kernel.begin(), kernel.end());
  d.weights(type, w);
  if (d.coin()) d.weights(type, {group * out});
}
inline void draw_pooling(operator_drawer& d) {
  d.tame();
  const std::size_t spatial = d.rank(1, 3);
  dim_list whole = d.dims(spatial + 2);
  const int which = d.pick(0, 4);
  const dtype type = d.one_of({dtype::float32, dtype::float32, dtype::float16});
  if (which < 3)
    for (std::size_t k = 2; k < whole.size(); ++k) whole[k] += d.rarely(6) ? 0 : 6;
  d.data(type, whole);
  if (which == 3) return d.op(d.one_of<std::string_view>({"GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool"}));
  if (which == 0) {
    d.op("MaxPool", d.rarely(4) ? 2 : 1);
    if (d.rarely(3)) d.set("storage_order", std::int64_t{0});
  } else if (which == 1) {
    d.op("LpPool");
    d.set("p", std::int64_t{d.pick(1, 3)});
  } else {
    d.op("AveragePool");
    d.maybe("count_include_pad", std::int64_t{d.pick(0, 1)});
  }
  (void)draw_window(d, spatial);
  if (d.rarely(3)) d.set("ceil_mode", std::int64_t{1});
}

inline void draw_quantization(operator_drawer& d) {
  d.tame();
  const std::size_t rank = d.rank(1, 4);
  const dim_list whole = d.dims(rank);
  const std::int64_t axis = d.axis(rank);
  const std::int64_t extent = whole[static_cast<std::size_t>(axis < 0 ? axis + static_cast<std::int64_t>(rank) : axis)];
  const dtype stored = d.one_of({dtype::uint8, dtype::int8, dtype::int16, dtype::uint16});
  const dim_list scales = d.coin() ? dim_list{} : dim_list{extent};
  const dtype type = d.one_of({dtype::float32, dtype::float32, dtype::float16});
  switch (d.pick(0, 2)) {
    case 0:
      d.op("QuantizeLinear");
      d.data(type, whole, -3, 3);
      d.weights(type, scales, 0.01, 0.1);
      d.weights(stored, scales);
      d.set("axis", axis);
      return;
    case 1:
      d.op("DequantizeLinear");
      d.data(stored, whole);
      d.weights(type, scales, 0.01, 0.1);
      if (d.coin()) d.weights(stored, scales);
      d.set("axis", axis);
      return;
    default:
      d.op("DynamicQuantizeLinear", 3);
      d.data(dtype::float32, d.dims(rank, 1));
      return;
  }
}
inline void draw_recurrent(operator_drawer& d) {
  d.tame();
  const std::string cell = d.name_of({"LSTM", "GRU", "RNN"});
  const std::int64_t gates = cell == "LSTM" ? 4 : cell == "GRU" ? 3 : 1;
  const std::string direction = d.name_of({"forward", "reverse", "bidirectional"});
  const std::int64_t ways = direction == "bidirectional" ? 2 : 1;
  const std::int64_t steps = d.extent(1), batch = d.extent(1), in = d.pick(1, 4), hidden = d.pick(1, 4);
  d.op(cell, cell == "LSTM" ? 3 : 2);
  d.data(dtype::float32, {steps, batch, in});
  d.weights(dtype::float32, {ways, gates * hidden, in});
  d.weights(dtype::float32, {ways, gates * hidden, hidden});
  if (d.coin()) {
    d.weights(dtype::float32, {ways, 2 * gates * hidden});
    if (d.coin())
      d.given(d.integers(dtype::int32, {batch}, 1, steps), 3);
    else
      d.absent();
    if (d.coin()) d.data(dtype::float32, {ways, batch, hidden});
  }
  while (d.made.inputs.back().content.empty()) d.made.inputs.pop_back();
  d.set("hidden_size", hidden);
  d.set("direction", direction);
  if (cell == "GRU") d.maybe("linear_before_reset", std::int64_t{1});
}
inline void draw_attention(operator_drawer& d) {
  d.tame();
  d.op("Attention");
  const dtype type = d.one_of({dtype::float32, dtype::float32, dtype::float16});
  const std::int64_t batch = d.extent(1), queries = d.extent(1), keys = d.extent(1),
                     head = d.one_of<std::int64_t>({1, 4, 8});
  const std::int64_t kv = d.pick(1, 2), heads = kv * d.pick(1, 2), v = d.coin() ? head : 3;
  d.data(type, {batch, heads, queries, head}, -1, 1);
  d.data(type, {batch, kv, keys, head}, -1, 1);
  d.data(type, {batch, kv, keys, v}, -1, 1);
  if (d.coin()) {
    const dim_list whole{batch, heads, queries, keys};
    dim_list mask = whole;
    for (std::size_t k = 0; k < 2; ++k)
      if (d.varying(0, 1) == 0) mask[k] = 1;
    if (d.rarely(3)) mask.erase(mask.begin(), mask.begin() + 2);
    if (d.coin())
      d.given(d.numbers(type, mask), 4);
    else
      d.given(d.integers(dtype::boolean, mask, 1, 3), 4);
  }
  if (d.coin()) d.set("is_causal", std::int64_t{1});
  d.maybe("softcap", 2.0F);
}
inline void draw_signal(operator_drawer& d) {
  d.tame();
  d.op("DFT");
  const std::int64_t length = d.extent(1);
  const bool complex = d.coin();
  dim_list whole = d.dims(d.rank(1, 2), 1);
  whole.push_back(length);
  whole.push_back(complex ? 2 : 1);
  d.data(dtype::float32, whole);
  if (d.coin()) d.scalar(dtype::int64, d.pick(1, 12));
  if (complex && d.coin())
    d.set("inverse", std::int64_t{1});
  else if (!complex && d.coin())
    d.set("onesided", std::int64_t{1});
}
inline void draw_loss(operator_drawer& d) {
  d.tame();
  const std::size_t spatial = d.rank(0, 2);
  dim_list whole = d.dims(spatial + 2, 1);
  const bool softmax = d.coin();
  d.op(softmax ? "SoftmaxCrossEntropyLoss" : "NegativeLogLikelihoodLoss", softmax && d.coin() ? 2 : 1);
  d.data(dtype::float32, whole);
  dim_list labels = whole;
  labels.erase(labels.begin() + 1);
  d.given(d.integers(dtype::int64, labels, 0, whole[1] - 1), 3);
  if (d.coin()) {
    // Quarters: products of coarse scores are exact, so that losses which cancel are zero also where a driver joins a
    // product and a sum.
    const tensor quarters = d.integers(dtype::int64, {whole[1]}, 2, 6);
    tensor weights(dtype::float32, {whole[1]});
    for (std::size_t i = 0; i < static_cast<std::size_t>(weights.size()); ++i)
      weights.mutable_data<float>()[i] = static_cast<float>(quarters.data<std::int64_t>()[i]) / 4;
    d.given(std::move(weights), 2);
  }
  d.maybe("reduction", d.name_of({"none", "mean", "sum"}));
}
inline void draw_rotary(operator_drawer& d) {
  d.tame();
  d.op("RotaryEmbedding");
  const std::int64_t batch = d.extent(1), heads = d.extent(1), steps = d.extent(1), half = d.pick(1, 4);
  d.data(dtype::float32, {batch, heads, steps, 2 * half});
  if (d.coin()) {
    const std::int64_t most = steps + d.pick(0, 3);
    d.weights(dtype::float32, {most, half});
    d.weights(dtype::float32, {most, half});
    d.given(d.integers(dtype::int64, {batch, steps}, 0, most - 1), 4);
  } else {
    d.weights(dtype::float32, {batch, steps, half});
    d.weights(dtype::float32, {batch, steps, half});
  }
  d.maybe("interleaved", std::int64_t{1});
}
inline void draw_roi(operator_drawer& d) {
  d.tame();
  const dim_list whole = d.dims(4, 1);
  const std::int64_t boxes = d.extent();
  d.op("RoiAlign");
  d.data(dtype::float32, whole);
  d.data(dtype::float32, {boxes, 4}, 0, 8);
  d.given(d.integers(dtype::int64, {boxes}, 0, whole[0] - 1), 3);
  d.maybe("output_height", std::int64_t{d.pick(1, 3)});
  d.maybe("output_width", std::int64_t{d.pick(1, 3)});
  d.maybe("sampling_ratio", std::int64_t{d.pick(0, 2)});
  d.maybe("mode", d.name_of({"avg", "max"}));
  d.maybe("coordinate_transformation_mode", d.name_of({"half_pixel", "output_half_pixel"}));
}

inline constexpr std::array anchor_operator_rows{
    operator_row{"product", 8, draw_product},
    operator_row{"gemm", 5, draw_gemm},
    operator_row{"einsum", 4, draw_einsum},
    operator_row{"integer product", 2, draw_integer_product},
    operator_row{"convolution", 8, draw_convolution},
    operator_row{"transposed convolution", 4, draw_transposed_convolution},
    operator_row{"pooling", 6, draw_pooling},
    operator_row{"quantization", 4, draw_quantization},
    operator_row{"recurrent", 3, draw_recurrent},
    operator_row{"attention", 5, draw_attention},
    operator_row{"signal", 2, draw_signal},
    operator_row{"loss", 2, draw_loss},
    operator_row{"rotary", 2, draw_rotary},
    operator_row{"roi", 1, draw_roi},
};

}  // namespace testing

#endif  // DNNOPT_TESTS_PROPERTY_ANCHOR_OPERATOR_ROWS_HPP
