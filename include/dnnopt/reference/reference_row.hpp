// Owns the row type of the reference backend: an operator's identity and the function that computes it on the host.
#ifndef DNNOPT_REFERENCE_REFERENCE_ROW_HPP
#define DNNOPT_REFERENCE_REFERENCE_ROW_HPP

#include <string_view>

#include <dnnopt/ops/op_info.hpp>

namespace dnnopt {

/// One operator of the reference backend. Each reference header of an operator family ends with a constexpr array of
/// these; an operator that states its own `evaluate` (op_info) needs none.
///
/// `evaluate` reads an absent optional input as `tensor{}` (empty() is true), may be given fewer inputs than the
/// arity's most, and finds `outputs` sized to the node's number of outputs; it may compute outputs that nobody reads.
struct reference_row {
  std::string_view domain;  ///< "" is ai.onnx
  std::string_view name;    ///< ONNX's name, newest form
  evaluate_function evaluate = nullptr;
};

}  // namespace dnnopt

#endif  // DNNOPT_REFERENCE_REFERENCE_ROW_HPP
