// Owns the traits of ONNX's matrix products (MatMul, Gemm, Einsum, the quantized ones) and of Det.
#ifndef DNNOPT_OPS_MATRIX_PRODUCT_HPP
#define DNNOPT_OPS_MATRIX_PRODUCT_HPP

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <dnnopt/ops/einsum_equation.hpp>
#include <dnnopt/ops/element_wise.hpp>

namespace dnnopt::ops {

struct matrix_product_classes {
  static constexpr mapping_type mapping = mapping_type::many_to_many;
  static constexpr layout_class layout = layout_class::ild_variable;
  static constexpr dynamism_class dynamism = dynamism_class::isdos;
  static constexpr computation_kind kind = computation_kind::matrix_product;
};

/// The shape of numpy's matmul: batch dims broadcast; an operand of rank 1 is a row (left) or column (right) whose dim
/// is dropped. Errors: shape_mismatch.
[[nodiscard]] inline shape matmul_shape(const node_facts& facts, const shape& a, const shape& b) {
  if (a.empty() || b.empty()) throw error(errc::shape_mismatch, "a matrix product needs operands of rank 1 or more");
  facts.require(guard_relation::equal, a.back(), b.size() == 1 ? b[0] : b[b.size() - 2],
                "the inner dims of a matrix product");
  const shape batch_a(a.begin(), a.size() > 2 ? a.end() - 2 : a.begin());
  const shape batch_b(b.begin(), b.size() > 2 ? b.end() - 2 : b.begin());
  shape result = facts.broadcast_shapes(batch_a, batch_b);
  if (a.size() > 1) result.push_back(a[a.size() - 2]);
  if (b.size() > 1) result.push_back(b.back());
  return result;
}

struct matmul_op : matrix_product_classes {
  static constexpr std::string_view name = "MatMul";
  static constexpr int since = 13;
  static constexpr op_arity arity{2, 2};
  static constexpr algebra properties = algebra::associative | algebra::distributive;

  static void infer(const node_facts& facts, std::span<value_facts> outputs) {
    require_one_type(facts, 0, 2);
    outputs[0].type = common_type(facts, 0, 2);
    if (facts.dims(0) != nullptr && facts.dims(1) != nullptr)
      outputs[0].dims = matmul_shape(facts, *facts.dims(0), *facts.dims(1));
  }
  /// A matrix operand of unknown rank next to a known matrix and a known matrix result (SoD2 Fig. 3b).
  static void infer_backward(const node_facts&, std::span<const value_facts> outputs, std::span<value_facts> inputs) {
    if (!outputs[0].dims || outputs[0].dims->size() != 2) return;
    const shape& c = *outputs[0].dims;
    if (inputs[0].dims && inputs[0].dims->size() == 2 && !inputs[1].dims)
      inputs[1].dims = shape{(*inputs[0].dims)[1], c[1]};
    else if (inputs[1].dims && inputs[1].dims->size() == 2 && !inputs[0].dims)
      inputs[0].dims = shape{c[0], (*inputs[1].dims)[0]};
  }
  static index_expr macs(const node_facts& facts) {
    if (facts.dims(0) == nullptr || facts.dims(1) == nullptr) return 0;
    return element_count(matmul_shape(facts, *facts.dims(0), *facts.dims(1))) * facts.dims(0)->back();
  }
};

/// alpha * A' * B' + beta * C, where ' may transpose and C broadcasts.
struct gemm_op : matrix_product_classes {
  static constexpr std::string_view name = "Gemm";
  static constexpr int since = 13;
  static constexpr op_arity arity{2, 3};

  static mapping_type mapping_of(const node_facts&, std::size_t input, std::size_t) {
    return input == 2 ? mapping_type::one_to_many : mapping_type::many_to_many;
  }
  static bool transposes(const node_facts& facts, std::size_t input) {
    return facts.attributes->get_int(input == 0 ? "transA" : "transB", 0) != 0;
  }
  static void infer(const node_facts& facts, std::span<value_facts> outputs) {
    require_one_type(facts, 0, 3);
    outputs[0].type = common_type(facts, 0, 3);
    const shape* a = facts.dims(0);
    const shape* b = facts.dims(1);
    if (a == nullptr || b == nullptr) return;
    if (a->size() != 2 || b->size() != 2)
      throw error(errc::shape_mismatch, "Gemm needs two matrices, got " + to_string(*a) + " and " + to_string(*b));
    facts.require(guard_relation::equal, (*a)[transposes(facts, 0) ? 0 : 1], (*b)[transposes(facts, 1) ? 1 : 0],
                  "the inner dims of Gemm");
    const shape result{(*a)[transposes(facts, 0) ? 1 : 0], (*b)[transposes(facts, 1) ? 0 : 1]};
    if (const shape* c = facts.dims(2)) {
      if (c->size() > 2) throw error(errc::shape_mismatch, "Gemm adds " + to_string(*c) + " to a matrix");
      for (std::size_t back = 1; back <= c->size(); ++back)
        facts.require(guard_relation::expands, (*c)[c->size() - back], result[2 - back], "dims that Gemm's C expands");
    }
    outputs[0].dims = result;
  }
  static index_expr macs(const node_facts& facts) {
    if (facts.dims(0) == nullptr || facts.dims(1) == nullptr) return 0;
    return element_count(*facts.dims(0)) * (*facts.dims(1))[transposes(facts, 1) ? 0 : 1];
  }
};

struct einsum_op : matrix_product_classes {
  static constexpr std::string_view name = "Einsum";
  static constexpr int since = 28;
  static constexpr op_arity arity{1, variadic};

  /// The dim of each label; nothing while the rank of an input is unknown. Errors: as parse_einsum; shape_mismatch.
  struct labelled_dims {
    einsum_equation equation;
    std::map<int, index_expr> dims;
  };
  static std::optional<labelled_dims> label_dims(const node_facts& facts) {
    std::vector<std::size_t> ranks;
    for (std::size_t i = 0; i < facts.inputs.size(); ++i) {
      if (facts.dims(i) == nullptr) return std::nullopt;
      ranks.push_back(facts.dims(i)->size());
    }
    labelled_dims result;
    result.equation = parse_einsum(facts.attributes->require<std::string>("equation"), ranks);
    for (std::size_t i = 0; i < ranks.size(); ++i)
      for (std::size_t d = 0; d < ranks[i]; ++d) {
        const index_expr& dim = (*facts.dims(i))[d];
        const auto [at, inserted] = result.dims.emplace(result.equation.operands[i][d], dim);
        if (!inserted) at->second = facts.broadcast_dims(at->second, dim, "dims of one label of Einsum");
      }
    return result;
  }
  static void infer(const node_facts& facts, std::span<value_facts> outputs) {
    require_one_type(facts, 0, facts.inputs.size());
    outputs[0].type = common_type(facts, 0, facts.inputs.size());
    const auto labelled = label_dims(facts);
    if (!labelled) return;
    shape dims;
    for (const int label : labelled->equation.output) dims.push_back(labelled->dims.at(label));
    outputs[0].dims = std::move(dims);
  }
  static index_expr macs(const node_facts& facts) {
    const auto labelled = label_dims(facts);
    if (!labelled) return 0;
    index_expr count = 1;
    for (const auto& [label, dim] : labelled->dims) count *= dim;
    return count;
  }
};

/// Products of 8-bit integers less their zero points, accumulated in int32.
struct matmul_integer_op : matrix_product_classes {
  static constexpr std::string_view name = "MatMulInteger";
  static constexpr int since = 10;
  static constexpr op_arity arity{2, 4};

  static mapping_type mapping_of(const node_facts&, std::size_t input, std::size_t) {
    return input >= 2 ? mapping_type::one_to_many : mapping_type::many_to_many;
  }
  static void infer(const node_facts& facts, std::span<value_facts> outputs) {
    outputs[0].type = dtype::int32;
    if (facts.dims(0) != nullptr && facts.dims(1) != nullptr)
      outputs[0].dims = matmul_shape(facts, *facts.dims(0), *facts.dims(1));
  }
  static index_expr macs(const node_facts& facts) { return matmul_op::macs(facts); }
};

/// Inputs: a, its scale and zero point, b, its scale and zero point, and the result's scale and zero point.
struct qlinear_matmul_op : matrix_product_classes {
  static constexpr std::string_view name = "QLinearMatMul";
  static constexpr int since = 21;
  static constexpr op_arity arity{8, 8};

  static mapping_type mapping_of(const node_facts&, std::size_t input, std::size_t) {
    return input == 0 || input == 3 ? mapping_type::many_to_many : mapping_type::one_to_many;
  }
  static void infer(const node_facts& facts, std::span<value_facts> outputs) {
    outputs[0].type = facts.type(7);
    if (facts.dims(0) != nullptr && facts.dims(3) != nullptr)
      outputs[0].dims = matmul_shape(facts, *facts.dims(0), *facts.dims(3));
  }
  static index_expr macs(const node_facts& facts) {
    if (facts.dims(0) == nullptr || facts.dims(3) == nullptr) return 0;
    return element_count(matmul_shape(facts, *facts.dims(0), *facts.dims(3))) * facts.dims(0)->back();
  }
};

/// The determinant of each square matrix of a batch.
struct det_op : matrix_product_classes {
  static constexpr std::string_view name = "Det";
  static constexpr int since = 22;
  static constexpr op_arity arity{1, 1};
  static constexpr computation_kind kind = computation_kind::other;

  static void infer(const node_facts& facts, std::span<value_facts> outputs) {
    outputs[0].type = facts.type(0);
    const shape* dims = facts.dims(0);
    if (dims == nullptr) return;
    if (dims->size() < 2) throw error(errc::shape_mismatch, "Det needs matrices, got " + to_string(*dims));
    facts.require(guard_relation::equal, (*dims)[dims->size() - 2], dims->back(), "the dims of Det's matrix");
    outputs[0].dims = shape(dims->begin(), dims->end() - 2);
  }
};

/// Adds ONNX's matrix products and Det.
inline void add_matrix_product(op_set& set) {
  set.add<matmul_op, gemm_op, einsum_op, matmul_integer_op, qlinear_matmul_op, det_op>();
}

static_assert(Operator<matmul_op> && Operator<gemm_op> && Operator<einsum_op> && Operator<matmul_integer_op>);
static_assert(Operator<qlinear_matmul_op> && Operator<det_op>);

}  // namespace dnnopt::ops

#endif  // DNNOPT_OPS_MATRIX_PRODUCT_HPP
