// Owns the table of operators that work on rows, by the numbers that the kernels know them by.
#ifndef DNNOPT_BACKEND_CODEGEN_FRAMES_ROWS_ROW_OPERATORS_HPP
#define DNNOPT_BACKEND_CODEGEN_FRAMES_ROWS_ROW_OPERATORS_HPP

#include <array>
#include <cstdint>
#include <string_view>

namespace dnnopt::codegen {

/// The numbers that the row kernels know families by (DNNOPT_FAMILY).
enum class row_family : std::uint8_t {
  softmax = 0,
  log_softmax = 1,
  centered = 2,
  root_mean_square = 3,
  norm = 4,
  reduction = 5
};

/// Which dims of input 0 a row spans, by operator.
enum class row_span : std::uint8_t { axis, from_axis, spatial, group, listed };

/// An operator that works on rows; `finish` is its element over "value" (normalized or reduced), `s0` and `s1` (its
/// second and third input at the element), as far as it has them.
struct row_operator {
  std::string_view name;
  row_family family;
  row_span span;
  std::string_view reduction;  ///< name of the reduction_table's row
};

inline constexpr std::array row_operators{
    row_operator{"Softmax", row_family::softmax, row_span::axis, ""},
    row_operator{"LogSoftmax", row_family::log_softmax, row_span::axis, ""},
    row_operator{"LayerNormalization", row_family::centered, row_span::from_axis, ""},
    row_operator{"RMSNormalization", row_family::root_mean_square, row_span::from_axis, ""},
    row_operator{"InstanceNormalization", row_family::centered, row_span::spatial, ""},
    row_operator{"GroupNormalization", row_family::centered, row_span::group, ""},
    row_operator{"LpNormalization", row_family::norm, row_span::axis, ""},
    row_operator{"GlobalAveragePool", row_family::reduction, row_span::spatial, "ReduceMean"},
    row_operator{"GlobalMaxPool", row_family::reduction, row_span::spatial, "ReduceMax"},
    row_operator{"ReduceSum", row_family::reduction, row_span::listed, "ReduceSum"},
    row_operator{"ReduceMean", row_family::reduction, row_span::listed, "ReduceMean"},
    row_operator{"ReduceMax", row_family::reduction, row_span::listed, "ReduceMax"},
    row_operator{"ReduceMin", row_family::reduction, row_span::listed, "ReduceMin"},
    row_operator{"ReduceProd", row_family::reduction, row_span::listed, "ReduceProd"},
    row_operator{"ReduceL1", row_family::reduction, row_span::listed, "ReduceL1"},
    row_operator{"ReduceL2", row_family::reduction, row_span::listed, "ReduceL2"},
    row_operator{"ReduceSumSquare", row_family::reduction, row_span::listed, "ReduceSumSquare"},
    row_operator{"ReduceLogSum", row_family::reduction, row_span::listed, "ReduceLogSum"},
};

[[nodiscard]] constexpr const row_operator* find_row_operator(std::string_view domain, std::string_view name) noexcept {
  if (!domain.empty()) return nullptr;
  for (const row_operator& row : row_operators)
    if (row.name == name) return &row;
  return nullptr;
}

}  // namespace dnnopt::codegen

#endif  // DNNOPT_BACKEND_CODEGEN_FRAMES_ROWS_ROW_OPERATORS_HPP
