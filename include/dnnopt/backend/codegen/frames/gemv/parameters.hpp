// Owns the parameters of the product of few rows with a constant matrix.
#ifndef DNNOPT_BACKEND_CODEGEN_FRAMES_GEMV_PARAMETERS_HPP
#define DNNOPT_BACKEND_CODEGEN_FRAMES_GEMV_PARAMETERS_HPP

#include <array>
#include <string_view>

#include <dnnopt/backend/codegen/builder/frame.hpp>
#include <dnnopt/backend/codegen/frames/products/parameters.hpp>

namespace dnnopt::kernels {

inline constexpr std::string_view gemv =
    "#ifdef __cplusplus\n"
#include <dnnopt/backend/codegen/frames/gemv/gemv.cl>
    "#endif\n";

}  // namespace dnnopt::kernels

namespace dnnopt::codegen {

inline constexpr std::array gemv_parameters{
    rows_parameter,
    columns_parameter,
    site_extent("DNNOPT_K", "inner elements, which are summed over"),
    site_text("DNNOPT_B", "the words of the matrix"),
    site_extent("DNNOPT_WORDS", "words of a column"),
    site_number("DNNOPT_BITS", 2, 32, "bits of an element: 2, 4 or 8 of a code, 16 or 32 of a real"),
    site_number("DNNOPT_MIDDLE", 0, 128, "what was added to codes").otherwise(""),
    site_flag("DNNOPT_ZEROS", "whether codes have zero points"),
    site_macro("DNNOPT_ROUND4", "(x)", "what the type of elements makes of four").otherwise("(x)"),
    site_flag("DNNOPT_SCALE_FIRST", "whether elements are scaled rather than sums"),
    chosen_number("DNNOPT_ROWS", 1, 8, "rows of a work-group: 1, 2, 4 or 8"),
    chosen_number("DNNOPT_LANES", 1, 8, "work-items along the columns, of which each has four; a power of two"),
    chosen_number("DNNOPT_ITEMS", 1, 1024, "work-items of a work-group, a power of two"),
    chosen_number("DNNOPT_UNIT", 4, 64, "inner elements that a work-item multiplies at a time"),
    chosen_number("DNNOPT_CHUNK", 4, no_bound, "inner elements of rows that are in local memory at a time"),
    chosen_number("DNNOPT_ROWS_AT_ONCE", 1, 8, "rows whose shares meet in local memory at once; it divides the rows"),
};

inline constexpr kernel_frame gemv_frame{"gemv", kernels::gemv, gemv_parameters};

}  // namespace dnnopt::codegen

#endif  // DNNOPT_BACKEND_CODEGEN_FRAMES_GEMV_PARAMETERS_HPP
