// Owns the list of everything that the reference backend computes, and the look-up of an operator in it.
#ifndef DNNOPT_REFERENCE_TABLE_HPP
#define DNNOPT_REFERENCE_TABLE_HPP

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dnnopt/detail/implementation.hpp>
#include <dnnopt/ops/op_info.hpp>
#include <dnnopt/reference/reference_row.hpp>

#if DNNOPT_IMPLEMENT_REFERENCE
#include <dnnopt/reference/arithmetic.hpp>
#include <dnnopt/reference/attention.hpp>
#include <dnnopt/reference/conversion.hpp>
#include <dnnopt/reference/convolution.hpp>
#include <dnnopt/reference/generator.hpp>
#include <dnnopt/reference/indexing.hpp>
#include <dnnopt/reference/matrix_product.hpp>
#include <dnnopt/reference/ml/encoder.hpp>
#include <dnnopt/reference/ml/support_vectors.hpp>
#include <dnnopt/reference/ml/tree_ensemble.hpp>
#include <dnnopt/reference/normalization.hpp>
#include <dnnopt/reference/pooling.hpp>
#include <dnnopt/reference/random.hpp>
#include <dnnopt/reference/recurrent.hpp>
#include <dnnopt/reference/reduction.hpp>
#include <dnnopt/reference/resize.hpp>
#include <dnnopt/reference/sampling_grid.hpp>
#include <dnnopt/reference/selection.hpp>
#include <dnnopt/reference/signal.hpp>
#include <dnnopt/reference/text.hpp>
#include <dnnopt/reference/unary_math.hpp>
#include <dnnopt/reference/view.hpp>
#endif

namespace dnnopt::reference {

/// The function that computes an operator on tensors, or null. An operator's own `evaluate` (op_info) goes before the
/// table. O(rows).
[[nodiscard]] evaluate_function find_evaluation(const op_info& op);

#if DNNOPT_IMPLEMENT_REFERENCE
/// The rows of all operator families.
[[nodiscard]] inline auto reference_families() {
  return std::array{
      std::span<const reference_row>(arithmetic_rows),
      std::span<const reference_row>(attention_rows),
      std::span<const reference_row>(conversion_rows),
      std::span<const reference_row>(convolution_rows),
      std::span<const reference_row>(generator_rows),
      std::span<const reference_row>(indexing_rows),
      std::span<const reference_row>(matrix_product_rows),
      std::span<const reference_row>(normalization_rows),
      std::span<const reference_row>(pooling_rows),
      std::span<const reference_row>(random_rows),
      std::span<const reference_row>(recurrent_rows),
      std::span<const reference_row>(reduction_rows),
      std::span<const reference_row>(resize_rows),
      std::span<const reference_row>(sampling_grid_rows),
      std::span<const reference_row>(selection_rows),
      std::span<const reference_row>(signal_rows),
      std::span<const reference_row>(text_rows),
      std::span<const reference_row>(unary_math_rows),
      std::span<const reference_row>(view_rows),
      std::span<const reference_row>(ml::encoder_rows),
      std::span<const reference_row>(ml::support_vector_rows),
      std::span<const reference_row>(ml::tree_ensemble_rows),
  };
}

DNNOPT_BODY evaluate_function find_evaluation(const op_info& op) {
  if (op.evaluate != nullptr) return op.evaluate;
  for (const std::span<const reference_row> family : reference_families())
    for (const reference_row& row : family)
      if (row.name == op.name && row.domain == op.domain) return row.evaluate;
  return nullptr;
}
#endif

/// The outputs of one operator on tensors: constant folding, tests, host parts of a device run.
/// Absent optional inputs are tensor{}. Errors: unsupported where the reference backend does not compute the operator;
/// what the operator reports.
[[nodiscard]] inline std::vector<tensor> evaluate_operator(const op_info& op, const attribute_map& attributes,
                                                           std::span<const tensor> inputs, std::size_t output_count) {
  const evaluate_function evaluate = find_evaluation(op);
  if (evaluate == nullptr)
    throw error(errc::unsupported, "the reference backend does not compute operator '" + std::string(op.name) +
                                       "' of domain '" + std::string(op.domain) + "'");
  if (inputs.size() < op.arity.least_inputs)
    throw error(errc::bad_arity, "operator '" + std::string(op.name) + "' has " + std::to_string(inputs.size()) +
                                     " inputs, needs " + std::to_string(op.arity.least_inputs));
  std::vector<tensor> outputs(output_count);
  evaluate(attributes, inputs, outputs);
  return outputs;
}

}  // namespace dnnopt::reference

#endif  // DNNOPT_REFERENCE_TABLE_HPP
