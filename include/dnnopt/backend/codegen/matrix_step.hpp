// Owns the matrix steps that kernels may be written over: what each multiplies at once, and the OpenCL C text that
// does.
//
// A *matrix step* is a product of small matrices that a group of neighbouring work-items computes together, each
// holding a share of the operands and of the sums. Devices have units for it under many names; a row of the table below
// is one way to reach one. Which rows work on a device is a fact that backend/measure/step_facts.hpp finds out; kernels
// ask for a step, never for a vendor.
#ifndef DNNOPT_BACKEND_CODEGEN_MATRIX_STEP_HPP
#define DNNOPT_BACKEND_CODEGEN_MATRIX_STEP_HPP

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include <dnnopt/dtype.hpp>

namespace dnnopt::kernels {

inline constexpr std::string_view step_places =
    "#ifdef __cplusplus\n"
#include <dnnopt/backend/codegen/frames/steps/step_places.cl>
    "#endif\n";

inline constexpr std::string_view step_plain =
    "#ifdef __cplusplus\n"
#include <dnnopt/backend/codegen/frames/steps/step_plain.cl>
    "#endif\n";

inline constexpr std::string_view step_mma_sync =
    "#ifdef __cplusplus\n"
#include <dnnopt/backend/codegen/frames/steps/step_mma_sync.cl>
    "#endif\n";

}  // namespace dnnopt::kernels

namespace dnnopt::codegen {

/// A provider of matrix steps: `rows` x `inner` elements times `inner` x `columns`, by `items` neighbouring work-items.
struct matrix_step {
  std::string_view name;
  dtype operands = dtype::float16;  ///< of both operands; sums are float
  std::int64_t rows = 16;
  std::int64_t columns = 16;
  std::int64_t inner = 16;
  std::int64_t items = 32;
  /// An extension that a device must list before the text is given to its compiler: some compilers end the process over
  /// instructions that they do not know. Empty: every compiler takes the text.
  std::string_view extension;
  std::string_view places;  ///< text that says which element lies where; providers of one shape share it
  std::string_view text;
  /// Bytes of local memory that a work-item needs for each operand of a step that it holds.
  std::int64_t exchange_bytes = 0;
};

/// All providers, the best first. The last is plain OpenCL C: it runs everywhere, is slow, and is what tests and the
/// probe hold the others against; no device gets it by itself.
inline constexpr std::array matrix_step_table{
    matrix_step{"mma_sync", dtype::float16, 16, 16, 16, 32, "cl_nv_compiler_options", kernels::step_places,
                kernels::step_mma_sync, 0},
    matrix_step{"plain", dtype::float16, 16, 16, 16, 32, "", kernels::step_places, kernels::step_plain, 16},
};

/// The provider in plain OpenCL C.
inline constexpr const matrix_step& plain_step = matrix_step_table.back();

/// The provider of a name, or null.
[[nodiscard]] constexpr const matrix_step* find_matrix_step(std::string_view name) noexcept {
  for (const matrix_step& step : matrix_step_table)
    if (step.name == name) return &step;
  return nullptr;
}

/// The names of all providers, each after `separator`.
[[nodiscard]] inline std::string matrix_step_names(std::string_view separator) {
  std::string names;
  for (const matrix_step& step : matrix_step_table) names += std::string(separator) + std::string(step.name);
  return names;
}

}  // namespace dnnopt::codegen

#endif  // DNNOPT_BACKEND_CODEGEN_MATRIX_STEP_HPP
