// Owns the parameters of the frame of products of bytes.
#ifndef DNNOPT_BACKEND_CODEGEN_FRAMES_DOTS_PARAMETERS_HPP
#define DNNOPT_BACKEND_CODEGEN_FRAMES_DOTS_PARAMETERS_HPP

#include <array>
#include <string_view>

#include <dnnopt/backend/codegen/builder/frame.hpp>
#include <dnnopt/backend/codegen/frames/products/parameters.hpp>

namespace dnnopt::kernels {

inline constexpr std::string_view dot_panels =
    "#ifdef __cplusplus\n"
#include <dnnopt/backend/codegen/frames/dots/dot_operands.cl>
    "#endif\n"
    "#ifdef __cplusplus\n"
#include <dnnopt/backend/codegen/frames/dots/dot_panels.cl>
    "#endif\n";

}  // namespace dnnopt::kernels

namespace dnnopt::codegen {

inline constexpr std::array dot_panels_parameters = joined(
    patch_parameters,
    std::array{
        rows_parameter,
        columns_parameter,
        site_extent("DNNOPT_K", "inner elements, which are summed over").otherwise(""),
        site_extent("DNNOPT_CHANNELS", "channels of a convolution's image, in a group").otherwise(""),
        site_extent("DNNOPT_QUADS", "inner elements in fours"),
        chosen_number("DNNOPT_ROWS", 1, 12, "rows of the register tile"),
        chosen_number("DNNOPT_VECTOR", 4, 16, "ints of a vector"),
        chosen_number("DNNOPT_VECTORS", 1, 4, "vectors of the register tile's columns"),
        chosen_number("DNNOPT_BLOCK_ROWS", 1, no_bound, "rows of a work-item, whole register tiles"),
        chosen_number("DNNOPT_BLOCK_COLUMNS", 1, no_bound, "columns of a work-item, whole register tiles"),
        chosen_number("DNNOPT_STEP_ROWS", 1, no_bound, "rows from a block to the next").otherwise("DNNOPT_BLOCK_ROWS"),
        chosen_number("DNNOPT_STEP_COLUMNS", 1, no_bound, "columns from a block to the next")
            .otherwise("DNNOPT_BLOCK_COLUMNS"),
        chosen_number("DNNOPT_BLOCK_INNER", 0, no_bound, "quads that are packed at a time"),
        site_number("DNNOPT_ONE_INNER_BLOCK", 0, 1, "whether all quads are packed at once"),
    },
    packed_operand_parameters,
    std::array{
        site_flag("DNNOPT_B_INNER_FIRST", "whether neighbours of the second operand are inner elements"),
        site_flag("DNNOPT_WHOLE_PANELS", "whether all columns are in whole panels"),
        site_flag("DNNOPT_CONVOLUTION", "whether the second operand is patches of an image"),
        chosen_number("DNNOPT_IMAGE_ROWS", 0, no_bound,
                      "rows of the image that a work-item keeps as quads; 0: patches are read from the image")
            .otherwise("0"),
        chosen_number("DNNOPT_IMAGE_WIDTH", 0, no_bound, "quads of such a row").otherwise(""),
        site_number("DNNOPT_A_NATURAL", 0, 1, "whether the first operand's bytes count as 0 .. 255"),
        site_number("DNNOPT_A_FLIP", 0, 128, "bits that turn bytes of the first operand over: 0 or 128"),
        site_number("DNNOPT_B_FLIP", 0, 128, "the same of the second one"),
        site_flag("DNNOPT_A_ZERO", "whether the first operand may have a zero point other than 0"),
        site_flag("DNNOPT_B_ZERO", "the same of the second one"),
        site_flag("DNNOPT_B_ZERO_EACH", "whether the zero points of columns differ"),
    });

inline constexpr kernel_frame dot_panels_frame{"dot_panels", kernels::dot_panels, dot_panels_parameters};

}  // namespace dnnopt::codegen

#endif  // DNNOPT_BACKEND_CODEGEN_FRAMES_DOTS_PARAMETERS_HPP
