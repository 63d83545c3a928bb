// Owns the parameters of the frames of convolutions.
#ifndef DNNOPT_BACKEND_CODEGEN_FRAMES_CONVOLUTIONS_PARAMETERS_HPP
#define DNNOPT_BACKEND_CODEGEN_FRAMES_CONVOLUTIONS_PARAMETERS_HPP

#include <array>

#include <dnnopt/backend/codegen/builder/frame.hpp>
#include <dnnopt/backend/codegen/frames/rows/parameters.hpp>
#include <dnnopt/backend/codegen/frames/sources.hpp>

namespace dnnopt::codegen {

/// The windows of a convolution.
inline constexpr std::array window_parameters{
    site_extent("DNNOPT_KD", "elements of the window, depth"),
    site_extent("DNNOPT_SD", "stride, depth"),
    site_extent("DNNOPT_DD", "dilation, depth"),
    site_number("DNNOPT_PD", -no_bound, no_bound, "padding before, depth"),
    site_extent("DNNOPT_ID", "extent of the image, depth"),
    site_extent("DNNOPT_OD", "extent of the result, depth"),
    site_extent("DNNOPT_KH", "elements of the window, height"),
    site_extent("DNNOPT_SH", "stride, height"),
    site_extent("DNNOPT_DH", "dilation, height"),
    site_number("DNNOPT_PH", -no_bound, no_bound, "padding before, height"),
    site_extent("DNNOPT_IH", "extent of the image, height"),
    site_extent("DNNOPT_OH", "extent of the result, height"),
    site_extent("DNNOPT_KW", "elements of the window, width"),
    site_extent("DNNOPT_SW", "stride, width"),
    site_extent("DNNOPT_DW", "dilation, width"),
    site_number("DNNOPT_PW", -no_bound, no_bound, "padding before, width"),
    site_extent("DNNOPT_IW", "extent of the image, width"),
    site_extent("DNNOPT_OW", "extent of the result, width"),
};
/// What frames that reduce windows of their result know of them.
inline constexpr std::array window_total_parameters{
    site_extent("DNNOPT_WINDOW_ROWS", "rows of a window that is reduced").otherwise("1"),
    site_extent("DNNOPT_WINDOW_COLUMNS", "columns of a window that is reduced; 0: none is").otherwise("0"),
    site_extent("DNNOPT_RUN_ROWS", "windows above one another").otherwise("DNNOPT_OH"),
    site_extent("DNNOPT_RUN_WIDTH", "positions of a plane's row that are in windows").otherwise("DNNOPT_OW"),
};
inline constexpr std::array convolution_shifts_parameters = joined(
    window_parameters, window_total_parameters,
    std::array{first_parameter, take_parameter, combine_parameter, finish_parameter,
               site_extent("DNNOPT_M", "output channels of a group"),
               site_extent("DNNOPT_C", "input channels of a group"), site_text("DNNOPT_A", "the packed weights"),
               site_text("DNNOPT_A_BATCH", "the group of z"), site_flag("DNNOPT_TOTALS", "whether planes are reduced"),
               tuned_number("DNNOPT_ROWS", 1, 12, "output channels of the register tile"),
               chosen_number("DNNOPT_VECTOR", 4, 16, "floats of a vector"),
               tuned_number("DNNOPT_VECTORS", 1, 4, "vectors of positions of the register tile"),
               tuned_number("DNNOPT_BLOCK_ROWS", 1, no_bound, "output channels of a work-item"),
               tuned_number("DNNOPT_BLOCK_COLUMNS", 1, no_bound, "positions of a work-item, whole register tiles"),
               chosen_number("DNNOPT_BLOCK_CHANNELS", 1, no_bound, "input channels that are staged at a time"),
               chosen_number("DNNOPT_SPAN", 1, no_bound, "positions of a work-item that are stored or taken"),
               chosen_number("DNNOPT_ROW_VECTORS", 0, no_bound,
                             "vectors of a row that begins with one of its own; 0: rows follow one another"),
               chosen_number("DNNOPT_COLUMNS_APART", 0, 1, "whether columns of the window are staged apart")});
inline constexpr std::array convolution_points_parameters =
    joined(window_parameters,
           std::array{site_extent("DNNOPT_M", "output channels of a group"),
                      site_extent("DNNOPT_C", "input channels of a group"), site_text("DNNOPT_A", "the packed weights"),
                      site_text("DNNOPT_A_BATCH", "the group of z"),
                      chosen_number("DNNOPT_ROWS", 1, 16, "output channels of a panel of weights, at most a vector"),
                      chosen_number("DNNOPT_VECTOR", 4, 16, "floats of a vector of output channels"),
                      chosen_number("DNNOPT_VECTORS", 1, 8, "panels of a work-item"),
                      chosen_number("DNNOPT_POINTS", 1, 8, "positions of the register tile, at least the result's"),
                      chosen_number("DNNOPT_STAGED", 1, no_bound, "elements that are staged per channel, at most"),
                      chosen_number("DNNOPT_BLOCK_CHANNELS", 1, no_bound, "input channels that are staged at a time")});
inline constexpr std::array convolution_texels_parameters{
    site_extent("DNNOPT_QUARTERS", "texels of the channels"),
    site_extent("DNNOPT_COLUMNS", "columns of the grid"),
    site_extent("DNNOPT_ROWS", "rows of the grid"),
    site_extent("DNNOPT_SLICES", "texels of the channels of all images"),
    site_extent("DNNOPT_WINDOW", "elements of the window"),
    site_text("DNNOPT_GROUP", "the attribute that states the work-group"),
};

inline constexpr kernel_frame convolution_shifts_frame{"convolution_shifts", kernels::convolution_shifts,
                                                       convolution_shifts_parameters};
inline constexpr kernel_frame convolution_points_frame{"convolution_points", kernels::convolution_points,
                                                       convolution_points_parameters};
inline constexpr kernel_frame convolution_texels_frame{"convolution_texels", kernels::convolution_texels,
                                                       convolution_texels_parameters};

inline constexpr std::array convolution_rows_parameters =
    joined(window_parameters,
           std::array{first_parameter, take_parameter, combine_parameter, finish_parameter,
                      site_extent("DNNOPT_C", "input channels of a group"),
                      site_flag("DNNOPT_TOTALS", "whether planes are reduced"),
                      chosen_number("DNNOPT_RUN", 16, 64, "positions of a row that are computed at a time"),
                      chosen_number("DNNOPT_ROWS", 1, no_bound, "rows of a work-item; all where planes are reduced")});
inline constexpr std::array convolution_winograd_parameters = joined(
    window_total_parameters,
    std::array{
        first_parameter,
        take_parameter,
        finish_parameter,
        site_extent("DNNOPT_M", "output channels"),
        site_extent("DNNOPT_C", "input channels"),
        site_text("DNNOPT_A", "the transformed weights"),
        site_number("DNNOPT_PH", -no_bound, no_bound, "padding before, height"),
        site_number("DNNOPT_PW", -no_bound, no_bound, "padding before, width"),
        site_extent("DNNOPT_IH", "extent of the image, height"),
        site_extent("DNNOPT_IW", "extent of the image, width"),
        site_extent("DNNOPT_OH", "extent of the result, height"),
        site_extent("DNNOPT_OW", "extent of the result, width"),
        site_flag("DNNOPT_RUN_EXTENTS", "whether a run tells the extents"),
        tuned_number("DNNOPT_TILE", 2, 4, "results along a side of a tile: 2 or 4"),
        tuned_number("DNNOPT_ROWS", 1, 24, "tiles of the register tile"),
        chosen_number("DNNOPT_VECTOR", 4, 16, "floats of a vector"),
        tuned_number("DNNOPT_VECTORS", 1, 4, "vectors of output channels of the register tile"),
        tuned_number("DNNOPT_BLOCK_ROWS", 1, no_bound, "output channels of a work-item"),
        chosen_number("DNNOPT_TILES_HIGH", 1, no_bound, "tiles of a work-item above one another"),
        chosen_number("DNNOPT_TILES_WIDE", 1, no_bound, "tiles of a work-item beside each other"),
        chosen_number("DNNOPT_BLOCK_CHANNELS", 1, no_bound, "input channels that are transformed at a time"),
        chosen_number("DNNOPT_STAGE_ROWS", 1, no_bound, "rows of the image that are read before they are transposed")});

inline constexpr kernel_frame convolution_rows_frame{"convolution_rows", kernels::convolution_rows,
                                                     convolution_rows_parameters};
inline constexpr kernel_frame convolution_winograd_frame{"convolution_winograd", kernels::convolution_winograd,
                                                         convolution_winograd_parameters};

}  // namespace dnnopt::codegen

#endif  // DNNOPT_BACKEND_CODEGEN_FRAMES_CONVOLUTIONS_PARAMETERS_HPP
