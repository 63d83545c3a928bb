// Owns the parameters of the frame of windows over single planes.
#ifndef DNNOPT_BACKEND_CODEGEN_FRAMES_WINDOWS_PARAMETERS_HPP
#define DNNOPT_BACKEND_CODEGEN_FRAMES_WINDOWS_PARAMETERS_HPP

#include <array>

#include <dnnopt/backend/codegen/builder/frame.hpp>
#include <dnnopt/backend/codegen/frames/rows/parameters.hpp>
#include <dnnopt/backend/codegen/frames/sources.hpp>

namespace dnnopt::codegen {

inline constexpr std::array window_planes_parameters{
    site_number("DNNOPT_FAMILY", 0, 2, "0 weighted sum, 1 greatest, 2 sum"),
    site_extent("DNNOPT_Z", "planes of the image"),
    site_extent("DNNOPT_M", "planes of the result for each of the image's"),
    site_number("DNNOPT_KH", 0, no_bound, "elements of the window, height"),
    site_number("DNNOPT_SH", 0, no_bound, "stride, height"),
    site_number("DNNOPT_DH", 0, no_bound, "dilation, height"),
    site_number("DNNOPT_PH", -no_bound, no_bound, "padding before, height"),
    site_number("DNNOPT_IH", 0, no_bound, "extent of the image, height"),
    site_number("DNNOPT_OH", 0, no_bound, "extent of the result, height"),
    site_number("DNNOPT_KW", 0, no_bound, "elements of the window, width"),
    site_number("DNNOPT_SW", 0, no_bound, "stride, width"),
    site_number("DNNOPT_DW", 0, no_bound, "dilation, width"),
    site_number("DNNOPT_PW", -no_bound, no_bound, "padding before, width"),
    site_number("DNNOPT_IW", 0, no_bound, "extent of the image, width"),
    site_number("DNNOPT_OW", 0, no_bound, "extent of the result, width"),
    site_flag("DNNOPT_TOTALS", "whether planes are reduced"),
    first_parameter,
    take_parameter,
    combine_parameter,
    finish_parameter,
    tuned_number("DNNOPT_ROWS", 1, no_bound, "output rows of a block"),
    chosen_number("DNNOPT_BLOCKS", 1, no_bound, "blocks that a work-item computes one after the other"),
    tuned_number("DNNOPT_PLANES", 1, no_bound, "planes of a work-item"),
    tuned_number("DNNOPT_UNROLL", 1, 6, "vectors of 16 that are computed side by side"),
    chosen_number("DNNOPT_FLAT", 0, 1, "whether rows are loaded and finished as one run of elements").otherwise("0"),
    chosen_number("DNNOPT_SPAN", 0, no_bound, "columns of a block at most where a run tells the extents")
        .otherwise("0"),
    chosen_number("DNNOPT_CAPACITY", 1, no_bound, "elements that are staged at most, where a run tells the extents")
        .otherwise("0"),
    chosen_number("DNNOPT_ACROSS", 1, no_bound, "blocks side by side, where a run tells the extents").otherwise("1"),
    chosen_number("DNNOPT_COLUMNS", 1, no_bound, "columns of a block, where a run tells the extents")
        .otherwise("DNNOPT_OW"),
};

inline constexpr kernel_frame window_planes_frame{"window_planes", kernels::window_planes, window_planes_parameters};

}  // namespace dnnopt::codegen

#endif  // DNNOPT_BACKEND_CODEGEN_FRAMES_WINDOWS_PARAMETERS_HPP
