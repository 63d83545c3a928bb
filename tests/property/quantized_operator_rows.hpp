// Owns the table of operators on codes that random models of one operator are drawn from: products and convolutions
// of integers, with and without scales, and scales of blocks.
#ifndef DNNOPT_TESTS_PROPERTY_QUANTIZED_OPERATOR_ROWS_HPP
#define DNNOPT_TESTS_PROPERTY_QUANTIZED_OPERATOR_ROWS_HPP

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "property/anchor_operator_rows.hpp"

namespace testing {

/// Codes from the least to the greatest: a constant in every `constant_one_in`th model.
inline void draw_codes(operator_drawer& d, dtype stored, const dim_list& of, int constant_one_in) {
  const bool constant = d.rarely(constant_one_in);
  const std::int64_t low = stored == dtype::int8 ? -128 : 0;
  d.made.inputs.push_back({d.integers(stored, of, low, low + 255, constant), constant});
}
/// A scale and a zero point for `of` places: constants of the model or inputs.
inline void draw_steps(operator_drawer& d, dtype stored, const dim_list& of, double low, double high) {
  d.weights(dtype::float32, of, low, high);
  d.weights(stored, of);
}

inline void draw_product_of_codes(operator_drawer& d) {
  const bool scaled = !d.rarely(3);
  d.op(scaled ? "QLinearMatMul" : "MatMulInteger");
  // Kernels of bytes work in panels, which only larger extents fill and leave a rest of.
  const auto wide = [&] { return d.rarely(3) ? d.one_of<std::int64_t>({31, 33, 64, 70, 129}) : d.extent(); };
  const std::int64_t m = d.extent(), n = wide(), k = wide();
  const dtype a = d.one_of({dtype::uint8, dtype::int8});
  const dtype b = d.one_of({dtype::uint8, dtype::int8});
  const dim_list batch = d.dims(d.rank(0, 2));
  dim_list left = d.broadcast_with(batch);
  dim_list right = d.coin() ? dim_list{} : d.broadcast_with(batch);
  left.insert(left.end(), {m, k});
  right.insert(right.end(), {k, n});
  const bool each = right.size() == 2 && d.coin();
  draw_codes(d, a, left, 10);
  if (!scaled) {
    draw_codes(d, b, right, 2);
    d.weights(a, {});
    d.weights(b, each ? dim_list{n} : dim_list{});
    return;
  }
  draw_steps(d, a, {}, 0.01, 0.1);
  draw_codes(d, b, right, 2);
  draw_steps(d, b, each ? dim_list{n} : dim_list{}, 0.01, 0.1);
  draw_steps(d, a, {}, 0.05, 20);
}

inline void draw_convolution_of_codes(operator_drawer& d) {
  const bool scaled = d.coin();
  d.op(scaled ? "QLinearConv" : "ConvInteger");
  const std::size_t spatial = d.rank(1, 3);
  const std::int64_t group = d.rarely(3) ? d.pick(2, 4) : 1;
  const bool wide = group == 1 && spatial < 3 && d.rarely(3);
  const std::int64_t in = wide ? d.one_of<std::int64_t>({8, 15, 16, 33}) : d.pick(1, 5);
  const std::int64_t out = wide ? d.one_of<std::int64_t>({16, 31, 32, 40}) : d.pick(1, 5);
  dim_list whole = d.dims(spatial + 2);
  whole[1] = group * in;
  for (std::size_t k = 2; k < whole.size(); ++k) whole[k] += d.rarely(6) ? 0 : 6;
  const dtype a = d.one_of({dtype::uint8, dtype::int8});
  const dtype b = scaled && a == dtype::int8 ? dtype::int8 : d.one_of({dtype::uint8, dtype::int8});
  const ints kernel = draw_window(d, spatial);
  dim_list w{group * out, in};
  w.insert(w.end(), kernel.begin(), kernel.end());
  draw_codes(d, a, whole, 10);
  d.set("group", group);
  const bool each = d.coin();
  const dim_list own = each ? dim_list{group * out} : dim_list{};
  if (!scaled) {
    draw_codes(d, b, w, 2);
    if (d.coin()) d.weights(a, {});
    if (d.made.inputs.size() == 3 && d.coin()) d.weights(b, own);
    return;
  }
  draw_steps(d, a, {}, 0.01, 0.1);
  draw_codes(d, b, w, 2);
  draw_steps(d, b, own, 0.01, 0.1);
  draw_steps(d, a, {}, 0.05, 20);
  if (d.coin()) d.weights(dtype::int32, {group * out});
}

/// Codes of 4 bits and of 8, with scales of blocks along an axis.
inline void draw_blocks(operator_drawer& d) {
  d.tame();
  const std::size_t rank = d.rank(1, 3);
  const dim_list whole = d.dims(rank);
  const std::int64_t axis = d.axis(rank);
  const auto at = static_cast<std::size_t>(axis < 0 ? axis + static_cast<std::int64_t>(rank) : axis);
  const std::int64_t block = d.pick(1, 5);
  dim_list scales = whole;
  scales[at] = (whole[at] + block - 1) / block;
  const dtype stored = d.one_of({dtype::uint8, dtype::int8});
  const bool back = d.coin();
  d.op(back ? "DequantizeLinear" : "QuantizeLinear");
  d.data(back ? stored : dtype::float32, whole, -3, 3);
  d.weights(dtype::float32, scales, 0.01, 0.1);
  d.weights(stored, scales);
  d.set("axis", axis);
  d.set("block_size", block);
}

inline constexpr std::array quantized_operator_rows{
    operator_row{"product of codes", 6, draw_product_of_codes},
    operator_row{"convolution of codes", 8, draw_convolution_of_codes},
    operator_row{"quantization by blocks", 4, draw_blocks},
};

}  // namespace testing

#endif  // DNNOPT_TESTS_PROPERTY_QUANTIZED_OPERATOR_ROWS_HPP
