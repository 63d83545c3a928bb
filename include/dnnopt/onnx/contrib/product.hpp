// Owns the expansions of matrix products with transposed operands, factors and activations.
#ifndef DNNOPT_ONNX_CONTRIB_PRODUCT_HPP
#define DNNOPT_ONNX_CONTRIB_PRODUCT_HPP

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <dnnopt/onnx/contrib/activation.hpp>
#include <dnnopt/onnx/contrib/expansion.hpp>

namespace dnnopt::onnx::contrib {

/// An operand of a product with its last two dims exchanged (`matrix`), or with dim 0 moved behind the batch dims
/// (`batch`), which then are the first ones; first the one, then the other. A vector stays.
inline value_id transposed_operand(expansion& x, value_id v, bool matrix, bool batch, std::string_view what) {
  if (!matrix && !batch) return v;
  const std::size_t rank = x.rank(v, what);
  if (rank < 2) return v;
  std::vector<std::int64_t> perm(rank);
  for (std::size_t a = 0; a < rank; ++a) perm[a] = static_cast<std::int64_t>(a);
  if (batch) {
    for (std::size_t a = 0; a + 2 < rank; ++a) perm[a] = static_cast<std::int64_t>(a) + 1;
    perm[rank - 2] = 0;
  }
  if (matrix) std::swap(perm[rank - 1], perm[rank - 2]);
  return x.transpose(v, std::move(perm));
}

/// alpha times the product of both operands; written to `target`.
inline value_id add_scaled_product(expansion& x, value_id target) {
  const attribute_map& a = x.attributes();
  const value_id left =
      transposed_operand(x, x.in(0), a.get_int("transA", 0) != 0, a.get_int("transBatchA", 0) != 0, "A");
  const value_id right =
      transposed_operand(x, x.in(1), a.get_int("transB", 0) != 0, a.get_int("transBatchB", 0) != 0, "B");
  const float alpha = a.get_float("alpha", 1.0F);
  const value_id product = x.add("MatMul", {left, right}, {}, alpha == 1.0F ? target : no_value);
  return alpha == 1.0F ? product : x.add("Mul", {product, x.number(product, static_cast<double>(alpha))}, {}, target);
}
inline void expand_fused_matmul(expansion& x) { add_scaled_product(x, x.out(0)); }

/// The attributes activation_alpha, activation_beta, ... in their order, as far as they are given.
inline std::vector<float> activation_parameters(const expansion& x) {
  std::vector<float> result;
  for (const char* name : {"activation_alpha", "activation_beta", "activation_gamma"})
    if (x.attributes().contains(name)) result.push_back(x.attributes().get_float(name, 0.0F));
  return result;
}
inline void expand_fused_matmul_activation(expansion& x) {
  if (x.attributes().contains("activation_axis")) x.refuse("activation_axis");
  add_named_activation(x, x.attributes().get_string("activation", ""), activation_parameters(x),
                       add_scaled_product(x, no_value), x.out(0));
}
inline void expand_fused_gemm(expansion& x) {
  attribute_map a;
  for (const auto& [name, held] : x.attributes())
    if (name.rfind("activation", 0) != 0) a.set(name, held);
  const value_id product = x.add("Gemm", {x.in(0), x.in(1), x.in(2)}, std::move(a));
  add_named_activation(x, x.attributes().get_string("activation", ""), activation_parameters(x), product, x.out(0));
}
inline void expand_gemm_fast_gelu(expansion& x) {
  value_id product = x.add("MatMul", {x.in(0), x.in(1)});
  if (x.has(2)) product = x.add("Add", {product, x.in(2)});
  add_gelu(x, product, true, x.out(0));
}

inline constexpr std::array product_rows{
    contrib_row{"com.microsoft", "FusedGemm", {2, 3}, expand_fused_gemm},
    contrib_row{"com.microsoft", "FusedMatMul", {2, 2}, expand_fused_matmul},
    contrib_row{"com.microsoft", "FusedMatMulActivation", {2, 2}, expand_fused_matmul_activation},
    contrib_row{"com.microsoft", "GemmFastGelu", {2, 3}, expand_gemm_fast_gelu},
    contrib_row{"com.microsoft", "TransposeMatMul", {2, 2}, expand_fused_matmul},
};

}  // namespace dnnopt::onnx::contrib

#endif  // DNNOPT_ONNX_CONTRIB_PRODUCT_HPP
