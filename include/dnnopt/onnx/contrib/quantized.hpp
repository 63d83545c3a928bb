// Owns the expansions of operators on quantized tensors: dequantized, computed in float, quantized again.
#ifndef DNNOPT_ONNX_CONTRIB_QUANTIZED_HPP
#define DNNOPT_ONNX_CONTRIB_QUANTIZED_HPP

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <dnnopt/onnx/contrib/expansion.hpp>

namespace dnnopt::onnx::contrib {

/// Inputs `slot` to `slot + 2`: a tensor, its scale and its zero point.
inline value_id dequantized(expansion& x, std::size_t slot) {
  return x.add("DequantizeLinear", {x.in(slot), x.in(slot + 1), x.in(slot + 2)});
}
/// Writes `v` quantized by scale and zero point `slot` and `slot + 1`; without a zero point in the type of input
/// `like`.
inline void give_quantized(expansion& x, value_id v, std::size_t slot, std::size_t like = 0) {
  attribute_map a;
  if (!x.has(slot + 1)) a.set("output_dtype", static_cast<std::int64_t>(x.type(x.in(like))));
  x.give(0, "QuantizeLinear", {v, x.in(slot), x.in(slot + 1)}, std::move(a));
}

/// Writes `v` rounded, halves to even, in the type of `zero_point` or else of input 0; `zero_point` is added behind
/// the rounding, and absent where `v` has it already.
inline void give_rounded(expansion& x, value_id v, value_id zero_point) {
  attribute_map a;
  if (zero_point == no_value) a.set("output_dtype", static_cast<std::int64_t>(x.type(x.in(0))));
  x.give(0, "QuantizeLinear", {v, x.constant("one", tensor::scalar(1.0F)), zero_point}, std::move(a));
}

/// Inputs: A, its scale and zero point, B, its scale and zero point, and those of the result, whose zero point is added
/// before the rounding, as ONNX Runtime does: halves round to even results.
inline void expand_quantized_add(expansion& x) {
  const auto real = [&](std::size_t slot) { return x.cast(x.in(slot), dtype::float32); };
  value_id sum = no_value;
  const auto add_up = [&](value_id v) { sum = sum == no_value ? v : x.add("Add", {sum, v}); };
  value_id fixed = x.has(7) ? real(7) : no_value;
  for (const std::size_t slot : {std::size_t{0}, std::size_t{3}}) {
    const value_id ratio = x.add("Div", {x.in(slot + 1), x.in(6)});
    add_up(x.add("Mul", {real(slot), ratio}));
    if (!x.has(slot + 2)) continue;
    const value_id shift = x.add("Mul", {ratio, real(slot + 2)});
    fixed = fixed == no_value ? x.add("Neg", {shift}) : x.add("Sub", {fixed, shift});
  }
  if (fixed != no_value) add_up(fixed);
  give_rounded(x, sum, no_value);
}
/// The same operands; the product of the integers is exact before it is scaled.
inline void expand_quantized_mul(expansion& x) {
  const auto real = [&](std::size_t slot) { return x.cast(x.in(slot), dtype::float32); };
  const auto centered = [&](std::size_t slot) {
    return x.has(slot + 2) ? x.add("Sub", {real(slot), real(slot + 2)}) : real(slot);
  };
  const value_id ratio = x.add("Div", {x.add("Mul", {x.in(1), x.in(4)}), x.in(6)});
  value_id product = x.add("Mul", {x.add("Mul", {centered(0), centered(3)}), ratio});
  if (x.has(7)) product = x.add("Add", {product, real(7)});
  give_rounded(x, product, no_value);
}

inline void expand_quantized_sigmoid(expansion& x) { give_quantized(x, x.add("Sigmoid", {dequantized(x, 0)}), 3); }
inline void expand_quantized_leaky_relu(expansion& x) {
  const float alpha = x.attributes().get_float("alpha", 0.01F);
  give_quantized(x, x.add("LeakyRelu", {dequantized(x, 0)}, with({{"alpha", alpha}})), 3);
}
/// What ONNX Runtime divides a softmax by: it multiplies with the whole number below 1 / scale, 254 for the scale 1 /
/// 255 that its quantizer writes, which moves up to a fifth of the codes by one.
inline value_id softmax_scale(expansion& x) {
  const value_id given = x.in(3);
  if (!x.facts(given).is_constant() || x.type(given) != dtype::float32)
    return x.add("Reciprocal", {x.add("Floor", {x.add("Reciprocal", {given})})});
  const tensor& scale = x.facts(given).constant;
  tensor whole(dtype::float32, scale.dims());
  std::transform(scale.data<float>().begin(), scale.data<float>().end(), whole.mutable_data<float>().begin(),
                 [](float s) { return 1.0F / std::floor(1.0F / s); });
  return x.constant("scale", std::move(whole));
}
/// Softmax over one axis, or over all from it on where attribute opset is below 13.
inline void expand_quantized_softmax(expansion& x) {
  const auto give = [&](value_id v) { x.give(0, "QuantizeLinear", {v, softmax_scale(x), x.in(4)}); };
  const std::int64_t axis = x.attributes().get_int("axis", -1);
  const value_id v = dequantized(x, 0);
  const auto last = static_cast<std::int64_t>(x.rank(x.in(0), "X")) - 1;
  if (x.attributes().require<std::int64_t>("opset") >= 13 || axis == -1 || axis == last) {
    give(x.add("Softmax", {v}, with({{"axis", axis}})));
    return;
  }
  const value_id matrix = x.add("Flatten", {v}, with({{"axis", axis}}));
  const value_id rows = x.add("Softmax", {matrix}, with({{"axis", std::int64_t{-1}}}));
  const value_id back = x.add("Reshape", {rows, x.add("Shape", {v})}, with({{"allowzero", std::int64_t{1}}}));
  give(back);
}
/// The sum of the integers is exact before it is scaled.
inline void expand_quantized_global_average_pool(expansion& x) {
  const bool last = x.attributes().get_int("channels_last", 0) != 0;
  const std::size_t rank = x.rank(x.in(0), "X", 2);
  std::vector<std::int64_t> axes;
  value_id count = x.one_integer(1);
  for (std::size_t a = last ? 1 : 2; a < (last ? rank - 1 : rank); ++a) {
    axes.push_back(static_cast<std::int64_t>(a));
    count = x.add("Mul", {count, x.dim(x.in(0), a)});
  }
  const value_id centered = x.add("Sub", {x.cast(x.in(0), dtype::int32), x.cast(x.in(2), dtype::int32)});
  const value_id sums = x.cast(x.add("ReduceSum", {centered, x.integers(axes)}), dtype::float32);
  const value_id divisor = x.add("Mul", {x.in(3), x.reshape(x.cast(count, dtype::float32), {})});
  give_rounded(x, x.add("Mul", {sums, x.add("Div", {x.in(1), divisor})}), x.in(4));
}
/// Places beyond the padding, which ceil_mode adds to the last windows, count as zeros where padding counts; ONNX's own
/// AveragePool leaves them out. So the padding is made wide enough for windows of whole strides, and the result is cut
/// to the size that ceil_mode gives.
inline value_id pool_whole_windows(expansion& x, value_id v, attribute_map a) {
  const std::size_t spatial = x.rank(v, "X", 2) - 2;
  const value_id size = x.add("Shape", {x.add("AveragePool", {v}, a)});
  const std::vector<std::int64_t> given = a.get_ints("pads", std::vector<std::int64_t>(2 * spatial, 0));
  const std::vector<std::int64_t> strides = a.get_ints("strides", std::vector<std::int64_t>(spatial, 1));
  if (given.size() != 2 * spatial || strides.size() != spatial)
    throw error(errc::bad_attribute, "pads or strides of another number of dims than X has");
  std::vector<std::int64_t> pads(2 * (spatial + 2), 0);
  for (std::size_t d = 0; d < spatial; ++d) {
    pads[2 + d] = given[d];
    pads[spatial + 4 + d] = given[spatial + d] + strides[d] - 1;
  }
  for (const char* name : {"pads", "ceil_mode"}) a.erase(name);
  const value_id pooled = x.add("AveragePool", {x.add("Pad", {v, x.integers(pads)})}, std::move(a));
  return x.add("Slice", {pooled, x.integers(std::vector<std::int64_t>(spatial + 2, 0)), size});
}
/// Whether one window without padding is known to be the whole of X.
inline bool pools_all(const expansion& x, const attribute_map& a, bool last) {
  const std::size_t rank = x.rank(x.in(0), "X");
  const std::vector<std::int64_t> kernel = a.get_ints("kernel_shape");
  const std::vector<std::int64_t> pads = a.get_ints("pads");
  bool all = kernel.size() + 2 == rank && std::all_of(pads.begin(), pads.end(), [](std::int64_t p) { return p == 0; });
  for (std::size_t d = 0; all && d < kernel.size(); ++d) all = x.dim_is(x.in(0), d + (last ? 1 : 2), kernel[d]);
  return all;
}
/// A window over all of X is pooled as by QLinearGlobalAveragePool, whose halves fall otherwise, as in ONNX Runtime.
inline void expand_quantized_average_pool(expansion& x) {
  attribute_map a = x.attributes();
  const bool last = a.get_int("channels_last", 0) != 0;
  if (pools_all(x, a, last)) return expand_quantized_global_average_pool(x);
  a.erase("channels_last");
  value_id v = dequantized(x, 0);
  if (last) v = x.channels_first(v, "X");
  const bool whole = a.get_int("ceil_mode", 0) != 0 && a.get_int("count_include_pad", 0) != 0 &&
                     a.get_string("auto_pad", "NOTSET") == "NOTSET";
  value_id pooled = whole ? pool_whole_windows(x, v, std::move(a)) : x.add("AveragePool", {v}, std::move(a));
  if (last) pooled = x.channels_last(pooled, "X", no_value);
  // The zero point is added before the rounding, as ONNX Runtime does, which takes up the rounding of a mean that lies
  // on a half: means of four codes with one scale often do.
  value_id codes = x.add("Div", {pooled, x.in(3)});
  if (x.has(4)) codes = x.add("Add", {codes, x.cast(x.in(4), dtype::float32)});
  give_rounded(x, codes, no_value);
}
inline void expand_quantized_reduce_mean(expansion& x) {
  const value_id axes = x.integers(x.attributes().require<std::vector<std::int64_t>>("axes"));
  const std::int64_t keeps = x.attributes().get_int("keepdims", 1);
  give_quantized(x, x.add("ReduceMean", {dequantized(x, 0), axes}, with({{"keepdims", keeps}})), 3);
}
/// Inputs: scale and zero point of the result, then a tensor, its scale and its zero point for each part.
inline void expand_quantized_concat(expansion& x) {
  if ((x.input_count() - 2) % 3 != 0)
    throw error(errc::bad_arity, std::to_string(x.input_count()) + " inputs are no triples behind two");
  std::vector<value_id> parts;
  for (std::size_t i = 2; i < x.input_count(); i += 3) parts.push_back(dequantized(x, i));
  const value_id all =
      x.add("Concat", std::move(parts), with({{"axis", x.attributes().require<std::int64_t>("axis")}}));
  give_quantized(x, all, 0, 2);
}
inline void expand_quantized_where(expansion& x) {
  const value_id yes = dequantized(x, 1);
  give_quantized(x, x.add("Where", {x.in(0), yes, dequantized(x, 4)}), 7, 1);
}

/// QuantizeLinear and DequantizeLinear of any integer type: per tensor unless attribute axis is given.
inline void expand_quantize_linear(expansion& x) {
  x.give(0, "QuantizeLinear", {x.in(0), x.in(1), x.in(2)}, x.attributes());
}
inline void expand_dequantize_linear(expansion& x) {
  x.give(0, "DequantizeLinear", {x.in(0), x.in(1), x.in(2)}, x.attributes());
}

inline constexpr std::array quantized_rows{
    contrib_row{"com.microsoft", "DequantizeLinear", {2, 3}, expand_dequantize_linear},
    contrib_row{"com.microsoft", "QLinearAdd", {7, 8}, expand_quantized_add},
    contrib_row{"com.microsoft", "QLinearAveragePool", {4, 5}, expand_quantized_average_pool},
    contrib_row{"com.microsoft", "QLinearConcat", {5, variadic}, expand_quantized_concat},
    contrib_row{"com.microsoft", "QLinearGlobalAveragePool", {5, 5}, expand_quantized_global_average_pool},
    contrib_row{"com.microsoft", "QLinearLeakyRelu", {4, 5}, expand_quantized_leaky_relu},
    contrib_row{"com.microsoft", "QLinearMul", {7, 8}, expand_quantized_mul},
    contrib_row{"com.microsoft", "QLinearReduceMean", {4, 5}, expand_quantized_reduce_mean},
    contrib_row{"com.microsoft", "QLinearSigmoid", {4, 5}, expand_quantized_sigmoid},
    contrib_row{"com.microsoft", "QLinearSoftmax", {5, 5}, expand_quantized_softmax},
    contrib_row{"com.microsoft", "QLinearWhere", {9, 9}, expand_quantized_where},
    contrib_row{"com.microsoft", "QuantizeLinear", {2, 3}, expand_quantize_linear},
};

}  // namespace dnnopt::onnx::contrib

#endif  // DNNOPT_ONNX_CONTRIB_QUANTIZED_HPP
