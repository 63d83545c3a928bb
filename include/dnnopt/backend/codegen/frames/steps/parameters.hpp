// Owns the parameters of matrix_steps.cl: what each means, what it may be, and which of them a tuner chooses.
#ifndef DNNOPT_BACKEND_CODEGEN_FRAMES_STEPS_PARAMETERS_HPP
#define DNNOPT_BACKEND_CODEGEN_FRAMES_STEPS_PARAMETERS_HPP

#include <array>
#include <cstdint>
#include <string_view>

#include <dnnopt/backend/codegen/builder/frame.hpp>
#include <dnnopt/backend/codegen/matrix_step.hpp>

namespace dnnopt::kernels {

inline constexpr std::string_view matrix_steps =
    "#ifdef __cplusplus\n"
#include <dnnopt/backend/codegen/frames/steps/step_operands.cl>
    "#endif\n"
    "#ifdef __cplusplus\n"
#include <dnnopt/backend/codegen/frames/steps/byte_operands.cl>
    "#endif\n"
    "#ifdef __cplusplus\n"
#include <dnnopt/backend/codegen/frames/steps/matrix_steps.cl>
    "#endif\n";

inline constexpr std::string_view attention_steps =
    "#ifdef __cplusplus\n"
#include <dnnopt/backend/codegen/frames/steps/attention_steps.cl>
    "#endif\n";

}  // namespace dnnopt::kernels

namespace dnnopt::codegen {

/// What the provider's text before a frame defines.
inline constexpr std::array step_provider_parameters{
    site_macro("DNNOPT_STEP_SUM_ROW", "(lane, s)", "row of a work-item's sum in a step").otherwise(""),
    site_macro("DNNOPT_STEP_SUM_COLUMN", "(lane, s)", "column of a work-item's sum in a step").otherwise(""),
    site_macro("DNNOPT_MULTIPLY_STEPS", "(sum, a, b, rows, columns)", "the steps of a wave").otherwise(""),
    site_flag("DNNOPT_STEP_EXCHANGES", "whether shares of operands pass through local memory"),
};

inline constexpr std::array matrix_steps_parameters = joined(
    step_provider_parameters,
    std::array{
        site_macro("DNNOPT_CHUNK_ELEMENTS", "", "elements of 16 bytes: 8 halves, 4 floats, 16 codes").otherwise(""),
        site_flag("DNNOPT_STEP_BYTES", "whether elements are codes of bytes, and sums whole numbers"),
        site_macro("DNNOPT_STEP_CUTS", "(rows, columns)",
                   "parts of a tile's sums, which begin at zero where a provider cuts what it adds")
            .otherwise(""),
        site_flag("DNNOPT_STEP_WANTS_FINITE", "whether a sum that is not finite is to be taken again, in floats"),
        site_macro("DNNOPT_MULTIPLY_TILES", "(sum, a_base, b_base)", "the steps of four waves from tiles")
            .otherwise(""),
        site_extent("DNNOPT_M", "rows of the result"),
        site_extent("DNNOPT_N", "columns of the result"),
        site_extent("DNNOPT_K", "inner elements, which are summed over"),
        chosen_number("DNNOPT_WAVE_ROWS", 1, 8, "waves of a work-group, one below the other"),
        chosen_number("DNNOPT_WAVE_COLUMNS", 1, 8, "waves of a work-group, side by side"),
        chosen_number("DNNOPT_ROW_STEPS", 1, 4, "steps of a wave, one below the other"),
        chosen_number("DNNOPT_COLUMN_STEPS", 1, 8, "steps of a wave, side by side"),
        chosen_number("DNNOPT_TILE_INNER", 8, 128, "inner elements of a tile"),
        chosen_number("DNNOPT_STAGES", 2, 8, "tiles of either operand that are there or on their way"),
        tuned_number("DNNOPT_SPLITS", 1, 16, "work-groups that share the inner elements of a tile"),
        chosen_number("DNNOPT_SPLIT_INNER", 16, no_bound, "inner elements of each of them").otherwise("0"),
        chosen_number("DNNOPT_A_INNER_FIRST", 0, 1,
                      "whether lines of the first operand's tile run along inner elements"),
        chosen_number("DNNOPT_B_INNER_FIRST", 0, 1, "the same of the second operand"),
        chosen_number("DNNOPT_A_COPY", 0, 16, "elements of the first operand that are copied at once; 0: single loads"),
        chosen_number("DNNOPT_B_COPY", 0, 16, "the same of the second operand"),
        chosen_number("DNNOPT_A_CODES", 0, 4, "codes of the first operand that are loaded at once; 0: none"),
        chosen_number("DNNOPT_B_CODES", 0, 4, "the same of the second operand"),
        chosen_number("DNNOPT_B_GATHERED", 0, 1, "whether such codes of the second operand have an index each"),
        site_number("DNNOPT_A_NATURAL", 0, 1,
                    "whether codes of the first operand that are loaded together are natural numbers")
            .otherwise("0"),
        site_number("DNNOPT_B_NATURAL", 0, 1, "the same of the second operand").otherwise("0"),
        site_text("DNNOPT_A_ZERO_CODE", "the zero point of the first operand's codes").otherwise("0"),
        site_text("DNNOPT_B_ZERO_CODE", "the same of the second operand").otherwise("0"),
        chosen_number(
            "DNNOPT_A_SHIFTED", 0, 1,
            "whether the zero point of the first operand's codes may be another than 0, for products of codes"),
        chosen_number("DNNOPT_B_SHIFTED", 0, 1, "the same of the second operand"),
        chosen_number("DNNOPT_A_BITS", 0, 1, "whether single loads of the first operand give the bits of halves"),
        chosen_number("DNNOPT_B_BITS", 0, 1, "the same of the second operand"),
        chosen_number("DNNOPT_A_SATURATES", 0, 1, "whether what is computed of the first operand saturates as a half"),
        chosen_number("DNNOPT_B_SATURATES", 0, 1, "the same of the second operand"),
        chosen_number("DNNOPT_B_TESTED", 0, 1, "whether dnnopt_within_b says which copies of the second operand exist"),
        chosen_number("DNNOPT_WHOLE_TILES", 0, 1, "whether the inner elements are a multiple of those of a tile"),
        site_text("DNNOPT_A_ADVANCE", "elements from one tile of the first operand to the next in memory")
            .otherwise(""),
        site_text("DNNOPT_B_ADVANCE", "the same of the second operand").otherwise(""),
        chosen_number("DNNOPT_STORE_ALONG", 0, 2, "results stored at once: one, four of a column, four of a row"),
        chosen_number("DNNOPT_FROM_TILES", 0, 1, "whether four waves together multiply from local memory"),
    });

inline constexpr std::array attention_steps_parameters =
    joined(step_provider_parameters,
           std::array{
               site_macro("DNNOPT_STEP_ALONG_ROW", "(op, x)", "what an operator makes of a row's values").otherwise(""),
               site_extent("DNNOPT_QUERY_COUNT", "rows of a head"),
               site_extent("DNNOPT_KEY_COUNT", "keys of a head"),
               site_number("DNNOPT_SIZE", 1, 128, "elements of a query and of a key"),
               site_number("DNNOPT_VALUE_SIZE", 1, 128, "elements of a value"),
               tuned_number("DNNOPT_WAVES", 1, 4, "waves of a work-group, each with 16 rows"),
               tuned_number("DNNOPT_KEYS", 32, 64, "keys of a block"),
               chosen_number("DNNOPT_QUERY_COPY", 0, 8, "halves of a query that are copied at once; 0: single loads"),
               chosen_number("DNNOPT_KEY_COPY", 0, 8, "the same of a key"),
               chosen_number("DNNOPT_VALUE_COPY", 0, 8, "the same of a value"),
               chosen_number("DNNOPT_STORE_WIDTH", 1, 4, "results stored at once: 1 or 4"),
           });

inline constexpr kernel_frame matrix_steps_frame{"matrix_steps", kernels::matrix_steps, matrix_steps_parameters};
inline constexpr kernel_frame attention_steps_frame{"attention_steps", kernels::attention_steps,
                                                    attention_steps_parameters};

/// Sizes of a work-group of matrix_steps.cl.
struct step_tile {
  std::int64_t wave_rows = 2;
  std::int64_t wave_columns = 2;
  std::int64_t row_steps = 2;
  std::int64_t column_steps = 2;
  std::int64_t inner = 32;
  std::int64_t stages = 2;
  bool from_tiles = false;          ///< of providers that multiply from tiles
  dtype operands = dtype::float16;  ///< of providers that multiply these

  friend constexpr bool operator==(const step_tile&, const step_tile&) = default;
  [[nodiscard]] constexpr std::int64_t waves() const noexcept { return wave_rows * wave_columns; }
  [[nodiscard]] constexpr std::int64_t items(const matrix_step& s) const noexcept { return waves() * s.items; }
  [[nodiscard]] constexpr std::int64_t rows(const matrix_step& s) const noexcept {
    return wave_rows * row_steps * s.rows;
  }
  [[nodiscard]] constexpr std::int64_t columns(const matrix_step& s) const noexcept {
    return wave_columns * column_steps * s.columns;
  }
  /// Bytes of local memory: the tiles, or in their place the sums of one row of steps of each wave, and what the
  /// provider exchanges.
  [[nodiscard]] constexpr std::int64_t local_bytes(const matrix_step& s) const noexcept {
    const std::int64_t tiles = stages * inner * (rows(s) + columns(s)) * s.element_bytes();
    const std::int64_t kept = waves() * s.rows * ((column_steps < 4 ? column_steps : 4) * s.columns + 8) * 4;
    return (tiles > kept ? tiles : kept) + items(s) * (row_steps + column_steps) * s.exchange_bytes;
  }
};

/// The tiles that are chosen among, the fat ones first.
inline constexpr std::array step_tile_table{
    step_tile{2, 4, 4, 4, 32, 2},
    step_tile{2, 2, 4, 4, 32, 3},
    step_tile{2, 2, 2, 4, 32, 3},
    step_tile{2, 2, 2, 2, 32, 4},
    step_tile{2, 2, 2, 2, 64, 3},
    step_tile{2, 2, 1, 2, 64, 4},
    step_tile{2, 2, 1, 1, 64, 4},
    step_tile{1, 4, 1, 1, 64, 4},
    // Of providers that multiply from tiles.
    step_tile{8, 1, 2, 8, 32, 2, true},
    step_tile{8, 1, 1, 8, 32, 3, true},
    step_tile{4, 1, 2, 8, 32, 3, true},
    step_tile{4, 1, 1, 8, 64, 2, true},
    step_tile{4, 1, 1, 8, 32, 4, true},
    step_tile{8, 1, 1, 4, 64, 2, true},
    step_tile{4, 1, 1, 4, 64, 3, true},
    step_tile{4, 1, 1, 4, 64, 2, true},
    step_tile{4, 1, 1, 2, 64, 4, true},
    // Of providers that multiply floats.
    step_tile{4, 2, 2, 2, 32, 2, false, dtype::float32},
    step_tile{2, 2, 2, 4, 32, 2, false, dtype::float32},
    step_tile{2, 2, 2, 2, 32, 3, false, dtype::float32},
    step_tile{2, 2, 1, 2, 32, 4, false, dtype::float32},
    step_tile{2, 2, 1, 1, 32, 4, false, dtype::float32},
    step_tile{1, 4, 1, 1, 32, 4, false, dtype::float32},
    // Of providers that multiply bytes.
    step_tile{2, 4, 4, 4, 64, 2, false, dtype::int8},
    step_tile{2, 2, 4, 4, 64, 3, false, dtype::int8},
    step_tile{2, 2, 2, 4, 64, 3, false, dtype::int8},
    step_tile{2, 2, 2, 2, 64, 4, false, dtype::int8},
    step_tile{2, 2, 2, 2, 128, 2, false, dtype::int8},
    step_tile{2, 2, 1, 2, 128, 3, false, dtype::int8},
    step_tile{2, 2, 1, 1, 128, 4, false, dtype::int8},
    step_tile{1, 4, 1, 1, 128, 4, false, dtype::int8},
};

/// For devices that have no room for any of them: OpenCL promises 32 KiB of local memory.
inline constexpr step_tile small_step_tile{2, 2, 1, 1, 32, 2};
inline constexpr step_tile small_float_tile{2, 2, 1, 1, 16, 2, false, dtype::float32};
inline constexpr step_tile small_byte_tile{2, 2, 1, 1, 64, 2, false, dtype::int8};
static_assert(small_step_tile.local_bytes(plain_step) <= 32768 && small_float_tile.local_bytes(plain_floats) <= 32768 &&
              small_byte_tile.local_bytes(plain_bytes) <= 32768);

}  // namespace dnnopt::codegen

#endif  // DNNOPT_BACKEND_CODEGEN_FRAMES_STEPS_PARAMETERS_HPP
