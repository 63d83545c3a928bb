// Owns the table of contrib operators that are expanded into standard ones at import.
#ifndef DNNOPT_ONNX_CONTRIB_TABLE_HPP
#define DNNOPT_ONNX_CONTRIB_TABLE_HPP

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <span>
#include <string>
#include <string_view>

#include <dnnopt/error.hpp>
#include <dnnopt/onnx/contrib/activation.hpp>
#include <dnnopt/onnx/contrib/alias.hpp>
#include <dnnopt/onnx/contrib/attention.hpp>
#include <dnnopt/onnx/contrib/block_quantization.hpp>
#include <dnnopt/onnx/contrib/convolution.hpp>
#include <dnnopt/onnx/contrib/expansion.hpp>
#include <dnnopt/onnx/contrib/group_query_attention.hpp>
#include <dnnopt/onnx/contrib/integer_product.hpp>
#include <dnnopt/onnx/contrib/ml.hpp>
#include <dnnopt/onnx/contrib/normalization.hpp>
#include <dnnopt/onnx/contrib/preview.hpp>
#include <dnnopt/onnx/contrib/product.hpp>
#include <dnnopt/onnx/contrib/quantized.hpp>
#include <dnnopt/onnx/contrib/recurrent.hpp>
#include <dnnopt/onnx/contrib/refusal.hpp>
#include <dnnopt/onnx/contrib/rotary.hpp>
#include <dnnopt/onnx/node_emitter.hpp>

namespace dnnopt::onnx {

namespace contrib {

/// All families.
inline constexpr std::span<const contrib_row> families[] = {
    activation_rows,      alias_rows,
    attention_rows,       block_quantization_rows,
    convolution_rows,     group_query_attention_rows,
    integer_product_rows, ml_rows,
    normalization_rows,   preview_rows,
    product_rows,         quantized_rows,
    recurrent_rows,       rotary_rows,
};

/// Errors: bad_arity.
inline void check_arity(const contrib_row& row, const pending_node& n) {
  const auto check = [](const char* what, std::size_t given, unsigned least, unsigned most) {
    if (given < least || given > most)
      throw error(errc::bad_arity, std::to_string(given) + " " + what + " where " + std::to_string(least) + " to " +
                                       (most == variadic ? std::string("any number") : std::to_string(most)) +
                                       " are taken");
  };
  check("inputs", n.inputs.size(), row.arity.least_inputs, row.arity.most_inputs);
  check("outputs", n.outputs.size(), row.arity.least_outputs, row.arity.most_outputs);
}

}  // namespace contrib

/// Whether an operator has an expansion, or a reason why it has none.
[[nodiscard]] inline bool has_contrib(std::string_view domain, std::string_view op_type) {
  for (const std::span<const contrib::contrib_row> family : contrib::families)
    for (const contrib::contrib_row& row : family)
      if (row.domain == domain && row.op_type == op_type) return true;
  return domain == "com.microsoft" && std::any_of(std::begin(contrib::refusals), std::end(contrib::refusals),
                                                  [&](const auto& row) { return row.op_type == op_type; });
}

/// Adds standard nodes in the place of `n` where its operator is of ONNX Runtime's or of a preview domain and has an
/// expansion; false where it is not known. Errors: bad_arity, bad_attribute, unsupported for forms and operators
/// without an expansion (each names what it is), and those of the nodes.
inline bool expand_contrib(const pending_node& n, node_emitter& emitter) {
  for (const std::span<const contrib::contrib_row> family : contrib::families)
    for (const contrib::contrib_row& row : family) {
      if (row.domain != n.domain || row.op_type != n.op_type) continue;
      contrib::check_arity(row, n);
      contrib::expansion x(n, emitter);
      row.expand(x);
      return true;
    }
  if (n.domain == "com.microsoft")
    for (const contrib::refusal_row& row : contrib::refusals)
      if (row.op_type == n.op_type)
        throw error(errc::unsupported, "com.microsoft's " + n.op_type + ": " + std::string(row.reason));
  return false;
}

}  // namespace dnnopt::onnx

#endif  // DNNOPT_ONNX_CONTRIB_TABLE_HPP
