// Owns the matrix steps that kernels may be written over: what each multiplies at once, and the OpenCL C text that
// does.
//
// A *matrix step* is a product of small matrices that a group of neighbouring work-items computes together, each
// holding a share of the operands and of the sums; or of larger ones, by several such groups (waves), from tiles in
// local memory. Devices have units for it under many names; a row of the table below is one way to reach one. Which
// rows work on a device is a fact that backend/measure/facts/step_facts.hpp finds out; kernels ask for a step, never
// for a vendor.
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
#include <dnnopt/backend/codegen/frames/steps/providers/step_places.cl>
    "#endif\n";

inline constexpr std::string_view step_plain =
    "#ifdef __cplusplus\n"
#include <dnnopt/backend/codegen/frames/steps/providers/elements_halves.cl>
    "#endif\n"
    "#ifdef __cplusplus\n"
#include <dnnopt/backend/codegen/frames/steps/providers/step_exchange.cl>
    "#endif\n"
    "#ifdef __cplusplus\n"
#include <dnnopt/backend/codegen/frames/steps/providers/step_plain.cl>
    "#endif\n";

inline constexpr std::string_view step_mma_sync =
    "#ifdef __cplusplus\n"
#include <dnnopt/backend/codegen/frames/steps/providers/elements_halves.cl>
    "#endif\n"
    "#ifdef __cplusplus\n"
#include <dnnopt/backend/codegen/frames/steps/providers/step_ptx.cl>
    "#endif\n"
    "#ifdef __cplusplus\n"
#include <dnnopt/backend/codegen/frames/steps/providers/step_mma_sync.cl>
    "#endif\n";

inline constexpr std::string_view tiles_plain =
    "#ifdef __cplusplus\n"
#include <dnnopt/backend/codegen/frames/steps/providers/elements_halves.cl>
    "#endif\n"
    "#ifdef __cplusplus\n"
#include <dnnopt/backend/codegen/frames/steps/providers/step_exchange.cl>
    "#endif\n"
    "#ifdef __cplusplus\n"
#include <dnnopt/backend/codegen/frames/steps/providers/step_plain.cl>
    "#endif\n"
    "#ifdef __cplusplus\n"
#include <dnnopt/backend/codegen/frames/steps/providers/tiles_plain.cl>
    "#endif\n";

inline constexpr std::string_view tiles_wgmma =
    "#ifdef __cplusplus\n"
#include <dnnopt/backend/codegen/frames/steps/providers/elements_halves.cl>
    "#endif\n"
    "#ifdef __cplusplus\n"
#include <dnnopt/backend/codegen/frames/steps/providers/step_ptx.cl>
    "#endif\n"
    "#ifdef __cplusplus\n"
#include <dnnopt/backend/codegen/frames/steps/providers/step_mma_sync.cl>
    "#endif\n"
    "#ifdef __cplusplus\n"
#include <dnnopt/backend/codegen/frames/steps/providers/tiles_wgmma.cl>
    "#endif\n";

inline constexpr std::string_view step_plain_floats =
    "#ifdef __cplusplus\n"
#include <dnnopt/backend/codegen/frames/steps/providers/elements_floats.cl>
    "#endif\n"
    "#ifdef __cplusplus\n"
#include <dnnopt/backend/codegen/frames/steps/providers/step_exchange.cl>
    "#endif\n"
    "#ifdef __cplusplus\n"
#include <dnnopt/backend/codegen/frames/steps/providers/step_plain_floats.cl>
    "#endif\n";

inline constexpr std::string_view step_plain_bytes =
    "#ifdef __cplusplus\n"
#include <dnnopt/backend/codegen/frames/steps/providers/elements_bytes.cl>
    "#endif\n"
    "#ifdef __cplusplus\n"
#include <dnnopt/backend/codegen/frames/steps/providers/step_exchange.cl>
    "#endif\n"
    "#ifdef __cplusplus\n"
#include <dnnopt/backend/codegen/frames/steps/providers/step_plain_bytes.cl>
    "#endif\n";

inline constexpr std::string_view step_mma_sync_bytes =
    "#ifdef __cplusplus\n"
#include <dnnopt/backend/codegen/frames/steps/providers/elements_bytes.cl>
    "#endif\n"
    "#ifdef __cplusplus\n"
#include <dnnopt/backend/codegen/frames/steps/providers/step_ptx.cl>
    "#endif\n"
    "#ifdef __cplusplus\n"
#include <dnnopt/backend/codegen/frames/steps/providers/step_mma_sync_bytes.cl>
    "#endif\n";

inline constexpr std::string_view step_mma_sync_floats =
    "#ifdef __cplusplus\n"
#include <dnnopt/backend/codegen/frames/steps/providers/elements_floats.cl>
    "#endif\n"
    "#ifdef __cplusplus\n"
#include <dnnopt/backend/codegen/frames/steps/providers/step_ptx.cl>
    "#endif\n"
    "#ifdef __cplusplus\n"
#include <dnnopt/backend/codegen/frames/steps/providers/step_mma_sync_floats.cl>
    "#endif\n";

inline constexpr std::string_view step_mma_sync_tf32 =
    "#define DNNOPT_STEP_PRODUCTS 1\n"
    "#ifdef __cplusplus\n"
#include <dnnopt/backend/codegen/frames/steps/providers/elements_floats.cl>
    "#endif\n"
    "#ifdef __cplusplus\n"
#include <dnnopt/backend/codegen/frames/steps/providers/step_ptx.cl>
    "#endif\n"
    "#ifdef __cplusplus\n"
#include <dnnopt/backend/codegen/frames/steps/providers/step_mma_sync_floats.cl>
    "#endif\n";

}  // namespace dnnopt::kernels

namespace dnnopt::codegen {

/// What products in steps take, in nanoseconds, by which their tiles are chosen (docs/measurements/kernels.md).
struct step_times {
  double start = 1300;    ///< of a work-group: its first tiles, its store
  double element = 0.05;  ///< of an element that comes to a multiprocessor's local memory
  double step = 1.5;      ///< of a step on a multiprocessor that is full,
  double share = 1.3;     ///< and of an operand's share that a wave reads for it
  double late = 300;      ///< what a tile waits for that is copied only while one other is used
  double tile = 80;       ///< what a work-group by itself waits for in each tile,
  double inner = 33;      ///< and for each step along the inner elements
  double patch = 0.3;     ///< of an element of a patch that is loaded by itself, with its tests and its index
  double registers = 12;  ///< of a work-item for each of its steps
  /// Whether work-groups begin as others end: only the first ones start late, and the last ones do not leave the device
  /// half empty.
  bool staggered = false;
};

/// Of mma_sync, fitted on an H200, of wgmma, on an H100, and of mma_sync_3xtf32, on an H200.
inline constexpr step_times mma_sync_times{};
inline constexpr step_times wgmma_times{
    .start = 3020, .element = 0.0294, .step = 2.39, .share = 0, .late = 73, .tile = 195, .inner = 0, .registers = 8};
inline constexpr step_times mma_sync_floats_times{.start = 2700,
                                                  .element = 0.08,
                                                  .step = 6.14,
                                                  .share = 2.95,
                                                  .late = 116,
                                                  .tile = 296,
                                                  .inner = 0,
                                                  .patch = 0.7,
                                                  .registers = 24,
                                                  .staggered = true};

/// Of mma_sync_bytes: not fitted, but those of halves by the bytes that they move.
inline constexpr step_times mma_sync_bytes_times{.element = 0.025};

/// A provider of matrix steps: `rows` x `inner` elements times `inner` x `columns`, by `items` neighbouring work-items
/// (a wave), each with its shares of the operands. One of several `waves` multiplies `waves` x `rows` rows by some
/// steps side by side at once and reads both operands from local memory.
struct matrix_step {
  std::string_view name;
  /// Of both operands: float16 or float32, with sums in float; or int8 for bytes of either sign, with sums in int32.
  dtype operands = dtype::float16;
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
  std::int64_t waves = 1;      ///< that multiply together; more than one: from tiles in local memory
  std::string_view options{};  ///< that its programs are built with
  step_times times{};
  /// Whether operands are rounded to fewer bits than their type has. No device gets such a provider by itself.
  bool rounds = false;

  [[nodiscard]] constexpr std::int64_t element_bytes() const noexcept {
    return operands == dtype::int8 ? 1 : operands == dtype::float16 ? 2 : 4;
  }
  [[nodiscard]] constexpr bool from_tiles() const noexcept { return waves > 1; }
};

/// All providers, the best of each kind first. Those in plain OpenCL C run everywhere, are slow, and are what tests and
/// the probe hold the others against; no device gets them by itself.
inline constexpr std::array matrix_step_table{
    matrix_step{"mma_sync", dtype::float16, 16, 16, 16, 32, "cl_nv_compiler_options", kernels::step_places,
                kernels::step_mma_sync, 0, 1, "", mma_sync_times},
    matrix_step{"wgmma", dtype::float16, 16, 16, 16, 32, "cl_nv_compiler_options", kernels::step_places,
                kernels::tiles_wgmma, 0, 4, "-DDNNOPT_REVEALED_FOR=sm_90a", wgmma_times},
    matrix_step{"mma_sync_3xtf32", dtype::float32, 16, 16, 8, 32, "cl_nv_compiler_options", kernels::step_places,
                kernels::step_mma_sync_floats, 0, 1, "", mma_sync_floats_times},
    matrix_step{"mma_sync_tf32", dtype::float32, 16, 16, 8, 32, "cl_nv_compiler_options", kernels::step_places,
                kernels::step_mma_sync_tf32, 0, 1, "", mma_sync_floats_times, true},
    matrix_step{"mma_sync_bytes", dtype::int8, 16, 16, 32, 32, "cl_nv_compiler_options", kernels::step_places,
                kernels::step_mma_sync_bytes, 0, 1, "", mma_sync_bytes_times},
    matrix_step{"plain_bytes", dtype::int8, 16, 16, 32, 32, "", kernels::step_places, kernels::step_plain_bytes, 16},
    matrix_step{"plain_floats", dtype::float32, 16, 16, 8, 32, "", kernels::step_places, kernels::step_plain_floats,
                16},
    matrix_step{"plain_tiles", dtype::float16, 16, 16, 16, 32, "", kernels::step_places, kernels::tiles_plain, 0, 4},
    matrix_step{"plain", dtype::float16, 16, 16, 16, 32, "", kernels::step_places, kernels::step_plain, 16},
};

/// The providers in plain OpenCL C.
inline constexpr const matrix_step& plain_step = matrix_step_table.back();
inline constexpr const matrix_step& plain_tiles = matrix_step_table[matrix_step_table.size() - 2];
inline constexpr const matrix_step& plain_floats = matrix_step_table[matrix_step_table.size() - 3];
inline constexpr const matrix_step& plain_bytes = matrix_step_table[matrix_step_table.size() - 4];

/// Whether a provider is one of plain OpenCL C.
[[nodiscard]] constexpr bool is_plain(const matrix_step& step) noexcept {
  return step.name == plain_step.name || step.name == plain_tiles.name || step.name == plain_floats.name ||
         step.name == plain_bytes.name;
}

/// What multiplies on a device in steps: halves by shares of waves, halves from tiles, and floats and bytes by shares
/// of waves. Null: nothing does.
struct step_providers {
  const matrix_step* of_waves = nullptr;
  const matrix_step* of_tiles = nullptr;
  const matrix_step* of_floats = nullptr;
  const matrix_step* of_bytes = nullptr;

  /// The place of those that a provider is one of.
  [[nodiscard]] constexpr const matrix_step*& place_of(const matrix_step& step) noexcept {
    return step.operands == dtype::float32 ? of_floats
           : step.operands == dtype::int8  ? of_bytes
           : step.from_tiles()             ? of_tiles
                                           : of_waves;
  }
  friend bool operator==(const step_providers&, const step_providers&) = default;
};

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
