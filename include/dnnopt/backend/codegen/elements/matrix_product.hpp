// Owns the element expressions of matrix products: MatMul, Gemm, the integer and quantized ones, Einsum, Det.
#ifndef DNNOPT_BACKEND_CODEGEN_ELEMENTS_MATRIX_PRODUCT_HPP
#define DNNOPT_BACKEND_CODEGEN_ELEMENTS_MATRIX_PRODUCT_HPP

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include <dnnopt/backend/codegen/elements/element_site.hpp>
#include <dnnopt/backend/codegen/elements/quantization.hpp>
#include <dnnopt/ops/einsum_equation.hpp>

namespace dnnopt::codegen {

/// Where a matrix product reads its operands for output element `index` and inner index `k` (numpy's matmul).
struct matmul_indices {
  std::vector<index_expr> a;
  std::vector<index_expr> b;
};

/// `index` is an index of the output, whose dims are `whole`.
[[nodiscard]] inline matmul_indices matmul_index(const shape& a, const shape& b, const shape& whole,
                                                 std::span<const index_expr> index, const index_expr& k) {
  std::size_t rank = index.size();
  const bool has_column = b.size() > 1;
  const bool has_row = a.size() > 1;
  const index_expr column = has_column ? index[--rank] : index_expr(0);
  const index_expr row = has_row ? index[--rank] : index_expr(0);
  const auto batch = [&](const shape& d) {
    std::vector<index_expr> at;
    const std::size_t own = d.size() - 2;
    for (std::size_t i = 0; i < own; ++i) {
      const std::size_t w = rank - own + i;
      at.push_back(kernel_builder::broadcast_index(d[i], whole[w], index[w]));
    }
    return at;
  };
  matmul_indices result;
  if (has_row) {
    result.a = batch(a);
    result.a.push_back(row);
  }
  result.a.push_back(k);
  if (has_column) result.b = batch(b);
  result.b.push_back(k);
  if (has_column) result.b.push_back(column);
  return result;
}

inline std::string emit_matmul(kernel_builder& b, node_id id, std::size_t output, std::span<const index_expr> index) {
  const element_site s(b, id, output, index);
  const std::string a = b.variable(s.compute(), "0");
  s.loop("k", s.dims(0).back(), [&](const index_expr& k) {
    const matmul_indices at = matmul_index(s.dims(0), s.dims(1), s.out_dims(), s.index, k);
    const std::string left = s.read(0, at.a);
    b.line(a + " += " + left + " * " + s.read(1, at.b) + ";");
  });
  return s.result(a);
}

inline std::string emit_gemm(kernel_builder& b, node_id id, std::size_t output, std::span<const index_expr> index) {
  const element_site s(b, id, output, index);
  const bool left = s.attributes().get_int("transA", 0) != 0;
  const bool right = s.attributes().get_int("transB", 0) != 0;
  const compute_type type = s.compute();
  const std::string a = b.variable(type, "0");
  s.loop("k", s.dims(0)[left ? 0 : 1], [&](const index_expr& k) {
    const std::string x = left ? s.read(0, {k, s.index[0]}) : s.read(0, {s.index[0], k});
    b.line(a + " += " + x + " * " + (right ? s.read(1, {s.index[1], k}) : s.read(1, {k, s.index[1]})) + ";");
  });
  const auto factor = [&](std::string_view name) {
    return literal(type == compute_type::real64 ? type : compute_type::real,
                   static_cast<double>(s.attributes().get_float(name, 1.0f)));
  };
  std::string text = factor("alpha") + " * " + a;
  if (s.has(2)) text += " + " + factor("beta") + " * " + s.read_broadcast(2, s.index);
  return s.result(element_site::is_real(type) ? text : "(" + std::string(name_of(type)) + ")(" + text + ")");
}

/// The zero point (or scale) in `slot` of an integer matrix operand, which is input `of`: none, one for all, or one per
/// row (left) or column (right).
[[nodiscard]] inline std::string zero_point_of(const element_site& s, std::size_t slot, std::size_t of,
                                               std::span<const index_expr> operand, bool per_row) {
  if (!s.has(slot)) return "0";
  const shape& d = s.dims(slot);
  if (element_count(d) == index_expr(1)) return s.read_scalar(slot);
  const shape& whole = s.dims(of);
  // The one row of an operand of rank 1 has one zero point.
  if (d.size() == 1 && operand.size() < 2) return s.read_scalar(slot);
  if (d.size() == 1) {
    const std::size_t along = operand.size() - (per_row ? 2 : 1);
    return s.read_one_or_each(slot, whole[along], operand[along]);
  }
  if (operand.size() < 2) throw s.refuse("a vector has one zero point, not " + to_string(d));
  std::vector<index_expr> at(operand.begin(), operand.end());
  at[at.size() - (per_row ? 1 : 2)] = 0;
  return s.read(slot, kernel_builder::broadcast_index(d, whole, at));
}

inline std::string emit_matmul_integer(kernel_builder& b, node_id id, std::size_t output,
                                       std::span<const index_expr> index) {
  const element_site s(b, id, output, index);
  const std::string a = b.variable(compute_type::integer, "0");
  s.loop("k", s.dims(0).back(), [&](const index_expr& k) {
    const matmul_indices at = matmul_index(s.dims(0), s.dims(1), s.out_dims(), s.index, k);
    const std::string x = b.let(compute_type::integer, s.read(0, at.a) + " - " + zero_point_of(s, 2, 0, at.a, true));
    const std::string y = b.let(compute_type::integer, s.read(1, at.b) + " - " + zero_point_of(s, 3, 1, at.b, false));
    b.line(a + " += " + x + " * " + y + ";");
  });
  return s.result(a);
}

inline std::string emit_qlinear_matmul(kernel_builder& b, node_id id, std::size_t output,
                                       std::span<const index_expr> index) {
  const element_site s(b, id, output, index);
  const std::string a = b.variable(compute_type::integer, "0");
  matmul_indices at;
  s.loop("k", s.dims(0).back(), [&](const index_expr& k) {
    at = matmul_index(s.dims(0), s.dims(3), s.out_dims(), s.index, k);
    const std::string x = b.let(compute_type::integer, s.read(0, at.a) + " - " + zero_point_of(s, 2, 0, at.a, true));
    const std::string y = b.let(compute_type::integer, s.read(3, at.b) + " - " + zero_point_of(s, 5, 3, at.b, false));
    b.line(a + " += " + x + " * " + y + ";");
  });
  at = matmul_index(s.dims(0), s.dims(3), s.out_dims(), s.index, 0);
  // The quotient decides what a sum becomes that lies between two codes.
  const std::string scale =
      b.let(compute_type::real, "dnnopt_quotient(" + zero_point_of(s, 1, 0, at.a, true) + " * " +
                                    zero_point_of(s, 4, 3, at.b, false) + ", " + s.read_scalar(6) + ")");
  return quantized(s, "(float)" + a + " * " + scale, s.has(7) ? s.read_scalar(7) : "0");
}

inline std::string emit_einsum(kernel_builder& b, node_id id, std::size_t output, std::span<const index_expr> index) {
  const element_site s(b, id, output, index);
  std::vector<std::size_t> ranks;
  for (std::size_t i = 0; i < s.n().inputs.size(); ++i) ranks.push_back(s.dims(i).size());
  const einsum_equation equation = parse_einsum(s.attributes().require<std::string>("equation"), ranks);
  std::map<int, index_expr> extents;
  for (std::size_t i = 0; i < ranks.size(); ++i)
    for (std::size_t d = 0; d < ranks[i]; ++d) {
      index_expr& extent = extents.emplace(equation.operands[i][d], 1).first->second;
      extent = broadcast_dim(extent, s.dims(i)[d]);
    }
  std::map<int, index_expr> at;
  for (std::size_t d = 0; d < equation.output.size(); ++d) at[equation.output[d]] = s.index[d];
  std::vector<int> summed;
  std::vector<index_expr> summed_extents;
  for (const auto& [label, extent] : extents)
    if (!at.contains(label)) {
      summed.push_back(label);
      summed_extents.push_back(extent);
    }
  const std::string a = b.variable(s.compute(), "0");
  s.loops("k", summed_extents, [&](const std::vector<index_expr>& inner) {
    for (std::size_t i = 0; i < summed.size(); ++i) at[summed[i]] = inner[i];
    std::string product;
    for (std::size_t i = 0; i < ranks.size(); ++i) {
      std::vector<index_expr> own;
      for (std::size_t d = 0; d < ranks[i]; ++d)
        own.push_back(kernel_builder::broadcast_index(s.dims(i)[d], extents.at(equation.operands[i][d]),
                                                      at[equation.operands[i][d]]));
      product += (product.empty() ? "" : " * ") + s.read(i, own);
    }
    b.line(a + " += " + product + ";");
  });
  return s.result(a);
}

/// The determinant by elimination with row exchange in private memory. Errors: unsupported beyond 16 rows.
inline std::string emit_det(kernel_builder& b, node_id id, std::size_t output, std::span<const index_expr> index) {
  const element_site s(b, id, output, index);
  const auto rows = s.dims(0).back().as_constant();
  if (!rows || *rows > 16) throw s.refuse("the matrix has more than 16 rows or an unknown number of them");
  const std::string n = std::to_string(*rows);
  const std::string m = b.fresh("m");
  const std::string type(name_of(s.compute()));
  b.line(type + " " + m + "[" + n + " * " + n + "];");
  const index_expr size = *rows;
  s.loops("r", std::vector<index_expr>{size, size}, [&](const std::vector<index_expr>& at) {
    std::vector<index_expr> own = s.index;
    own.insert(own.end(), at.begin(), at.end());
    b.line(m + "[" + index_source(at[0] * size + at[1]) + "] = " + s.read(0, own) + ";");
  });
  const std::string det = b.variable(s.compute(), "1");
  b.open("for (int p = 0; p < " + n + "; ++p) {");
  b.line("int best = p;");
  b.line("for (int r = p + 1; r < " + n + "; ++r) if (fabs(" + m + "[r * " + n + " + p]) > fabs(" + m + "[best * " + n +
         " + p])) best = r;");
  b.line("if (best != p) { " + det + " = -" + det + "; for (int c = 0; c < " + n + "; ++c) { const " + type +
         " t = " + m + "[p * " + n + " + c]; " + m + "[p * " + n + " + c] = " + m + "[best * " + n + " + c]; " + m +
         "[best * " + n + " + c] = t; } }");
  b.line(det + " *= " + m + "[p * " + n + " + p];");
  b.line("if (" + det + " == 0) break;");
  b.line("for (int r = p + 1; r < " + n + "; ++r) { const " + type + " f = " + m + "[r * " + n + " + p] / " + m +
         "[p * " + n + " + p]; for (int c = p; c < " + n + "; ++c) " + m + "[r * " + n + " + c] -= f * " + m + "[p * " +
         n + " + c]; }");
  b.close();
  return det;
}

inline constexpr std::array matrix_product_emitters{
    emitter_row{"", "MatMul", emit_matmul},
    emitter_row{"", "Gemm", emit_gemm},
    emitter_row{"", "MatMulInteger", emit_matmul_integer},
    emitter_row{"", "QLinearMatMul", emit_qlinear_matmul},
    emitter_row{"", "Einsum", emit_einsum},
    emitter_row{"", "Det", emit_det},
};

}  // namespace dnnopt::codegen

#endif  // DNNOPT_BACKEND_CODEGEN_ELEMENTS_MATRIX_PRODUCT_HPP
