// Owns the expansions of matrix products of 8-bit integers whose result is float, or quantized again.
#ifndef DNNOPT_ONNX_CONTRIB_INTEGER_PRODUCT_HPP
#define DNNOPT_ONNX_CONTRIB_INTEGER_PRODUCT_HPP

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include <dnnopt/onnx/contrib/expansion.hpp>

namespace dnnopt::onnx::contrib {

/// The operands of MatMulInteger; zero points may be absent.
struct integer_operands {
  value_id a, b;
  value_id a_zero_point = no_value, b_zero_point = no_value;
};
/// Both scales; that of b is a scalar or has an element per column.
struct product_scales {
  value_id a, b;
};

/// (a - a_zero_point) (b - b_zero_point) in integers, times both scales, plus `bias` where given; written to `target`.
inline value_id add_integer_product(expansion& x, const integer_operands& o, const product_scales& scales,
                                    value_id bias, value_id target) {
  if (x.facts(scales.a).dims && !x.facts(scales.a).dims->empty() && !x.dim_is(scales.a, 0, 1))
    x.refuse("a scale of A per row or column");
  const value_id sums = x.add("MatMulInteger", {o.a, o.b, o.a_zero_point, o.b_zero_point});
  const value_id scale = x.add("Mul", {scales.a, scales.b});
  const value_id product =
      x.add("Mul", {x.cast(sums, x.type(scales.a)), scale}, {}, bias == no_value ? target : no_value);
  return bias == no_value ? product : x.add("Add", {product, bias}, {}, target);
}

inline void expand_matmul_integer_to_float(expansion& x) {
  add_integer_product(x, {x.in(0), x.in(1), x.in(4), x.in(5)}, {x.in(2), x.in(3)}, x.in(6), x.out(0));
}

/// A is quantized by its least and greatest element.
inline void expand_dynamic_quantize_matmul(expansion& x) {
  const std::vector<value_id> a = x.add_many("DynamicQuantizeLinear", {x.in(0)}, {}, {no_value, no_value, no_value});
  add_integer_product(x, {a[0], x.in(1), a[2], x.in(3)}, {a[1], x.in(2)}, x.in(4), x.out(0));
}

/// Inputs: A, its scale and zero point, B, its scale and zero point, C in the scale of the product, and the result's
/// scale and zero point, without which it is float.
inline void expand_quantized_gemm(expansion& x) {
  const auto operand = [&](std::size_t slot, const char* flag) {
    return x.attributes().get_int(flag, 0) != 0 ? x.transpose(x.in(slot), {1, 0}) : x.in(slot);
  };
  value_id sums = x.add("MatMulInteger", {operand(0, "transA"), operand(3, "transB"), x.in(2), x.in(5)});
  if (x.has(6)) sums = x.add("Add", {sums, x.in(6)});
  value_id scale = x.add("Mul", {x.in(1), x.in(4)});
  if (const float alpha = x.attributes().get_float("alpha", 1.0F); alpha != 1.0F)
    scale = x.add("Mul", {scale, x.number(scale, static_cast<double>(alpha))});
  const bool quantized = x.has(7);
  if (quantized != x.has(8)) x.refuse("y_scale and y_zero_point are given together or not at all");
  if (quantized) scale = x.add("Div", {scale, x.in(7)});
  const value_id result = x.add("Mul", {x.cast(sums, dtype::float32), scale}, {}, quantized ? no_value : x.out(0));
  if (quantized) x.give(0, "QuantizeLinear", {result, x.constant("one", tensor::scalar(1.0F)), x.in(8)});
}

inline constexpr std::array integer_product_rows{
    contrib_row{"com.microsoft", "DynamicQuantizeMatMul", {3, 5}, expand_dynamic_quantize_matmul},
    contrib_row{"com.microsoft", "MatMulIntegerToFloat", {4, 7}, expand_matmul_integer_to_float},
    contrib_row{"com.microsoft", "QGemm", {6, 9}, expand_quantized_gemm},
};

}  // namespace dnnopt::onnx::contrib

#endif  // DNNOPT_ONNX_CONTRIB_INTEGER_PRODUCT_HPP
