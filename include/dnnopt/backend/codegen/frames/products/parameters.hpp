// Owns the parameters of the frames of matrix products.
#ifndef DNNOPT_BACKEND_CODEGEN_FRAMES_PRODUCTS_PARAMETERS_HPP
#define DNNOPT_BACKEND_CODEGEN_FRAMES_PRODUCTS_PARAMETERS_HPP

#include <array>

#include <dnnopt/backend/codegen/builder/frame.hpp>
#include <dnnopt/backend/codegen/frames/rows/parameters.hpp>
#include <dnnopt/backend/codegen/frames/sources.hpp>

namespace dnnopt::codegen {

/// The extents of a product's result.
inline constexpr frame_parameter rows_parameter = site_extent("DNNOPT_M", "rows of a result");
inline constexpr frame_parameter columns_parameter = site_extent("DNNOPT_N", "columns of a result");

inline constexpr std::array matrix_tiles_parameters{
    rows_parameter,
    columns_parameter,
    site_extent("DNNOPT_K", "inner elements, which are summed over"),
    chosen_number("DNNOPT_GROUP_ROWS", 1, 64, "work-items of a team along the rows"),
    chosen_number("DNNOPT_GROUP_COLUMNS", 1, 64, "work-items of a team along the columns"),
    chosen_number("DNNOPT_ITEM_ROWS", 4, 8, "rows of a work-item: 4 or 8"),
    chosen_number("DNNOPT_ITEM_COLUMNS", 4, 8, "columns of a work-item: 4 or 8"),
    chosen_number("DNNOPT_TILE_INNER", 8, 16, "inner elements of a tile in local memory"),
    tuned_number("DNNOPT_TEAMS", 1, 4, "teams of a work-group that share the inner elements"),
    tuned_number("DNNOPT_SPLITS", 1, 16, "work-groups that share the inner elements of a tile"),
    chosen_number("DNNOPT_SPLIT_INNER", 1, no_bound, "inner elements of each of them").otherwise(""),
    site_number("DNNOPT_A_INNER_FIRST", 0, 1, "whether neighbours of the first operand are inner elements"),
    site_number("DNNOPT_B_INNER_FIRST", 0, 2, "the same of the second one; 2: in whole texels"),
    site_number("DNNOPT_A_WIDTH", 1, 4, "elements of the first operand that are loaded at once: 1 or 4"),
    site_number("DNNOPT_B_WIDTH", 1, 4, "the same of the second one").otherwise("1"),
    site_number("DNNOPT_A_BITS", 0, 1, "whether loads of the first operand give the bits of halves"),
    site_number("DNNOPT_B_BITS", 0, 1, "the same of the second one"),
    site_number("DNNOPT_STORE_ALONG", 0, 2, "results that are stored at once: 0 one, 1 four rows, 2 four columns")
        .otherwise("0"),
    site_number("DNNOPT_HALF_PRODUCTS", 0, 2, "products of halves: 1 in halves, 2 in floats that are rounded")
        .otherwise("0"),
};
inline constexpr std::array matrix_partials_parameters{
    rows_parameter,
    columns_parameter,
    chosen_number("DNNOPT_SPLITS", 1, 16, "partial sums of a result"),
    site_number("DNNOPT_STORE_ALONG", 0, 2, "as of matrix_tiles").otherwise("0"),
};
inline constexpr std::array product_chain_parameters{
    site_extent("DNNOPT_M", "rows of the small result"),
    site_extent("DNNOPT_I", "columns of the small result, over which the second product sums"),
    site_extent("DNNOPT_T", "elements over which the first product sums"),
    site_extent("DNNOPT_N", "columns of the second product"),
    chosen_number("DNNOPT_ROWS", 1, 12, "rows of the register tile"),
    chosen_number("DNNOPT_VECTOR", 4, 16, "floats of a vector"),
    chosen_number("DNNOPT_VECTORS", 1, 4, "vectors of the register tile's columns"),
    chosen_number("DNNOPT_BLOCK_INNER", 1, no_bound, "elements of the first sum at a time"),
    chosen_number("DNNOPT_SHARE", 1, no_bound, "columns of a work-item").otherwise("DNNOPT_N"),
    site_number("DNNOPT_SMALL_CHANGES", 0, 1, "whether operators stand between the products"),
    site_number("DNNOPT_T_FIRST", 0, 1, "whether neighbours of the first product's columns are summed"),
    site_number("DNNOPT_I_FIRST", 0, 1, "whether neighbours of the second product's columns are summed"),
};
inline constexpr std::array vector_chain_parameters{
    site_extent("DNNOPT_K", "elements of the vector"),
    site_extent("DNNOPT_H", "results of the first product"),
    site_extent("DNNOPT_N", "results of the second product"),
    chosen_number("DNNOPT_GROUP", 1, 1024, "work-items of a work-group, a power of two"),
    chosen_number("DNNOPT_TEAM", 1, 32, "work-items that share a result"),
};

inline constexpr kernel_frame matrix_tiles_frame{"matrix_tiles", kernels::matrix_tiles, matrix_tiles_parameters};
inline constexpr kernel_frame matrix_partials_frame{"matrix_partials", kernels::matrix_partials,
                                                    matrix_partials_parameters};
inline constexpr kernel_frame product_chain_frame{"product_chain", kernels::product_chain, product_chain_parameters};
inline constexpr kernel_frame vector_chain_frame{"vector_chain", kernels::vector_chain, vector_chain_parameters};

/// The windows that panels pack patches of, and those that they reduce while they pack.
inline constexpr std::array patch_parameters{
    site_number("DNNOPT_KD", 0, no_bound, "elements of the window, depth").otherwise(""),
    site_number("DNNOPT_SD", 0, no_bound, "stride, depth").otherwise(""),
    site_number("DNNOPT_DD", 0, no_bound, "dilation, depth").otherwise(""),
    site_number("DNNOPT_PD", -no_bound, no_bound, "padding before, depth").otherwise(""),
    site_number("DNNOPT_ID", 0, no_bound, "extent of the image, depth").otherwise(""),
    site_number("DNNOPT_KH", 0, no_bound, "elements of the window, height").otherwise(""),
    site_number("DNNOPT_SH", 0, no_bound, "stride, height").otherwise(""),
    site_number("DNNOPT_DH", 0, no_bound, "dilation, height").otherwise(""),
    site_number("DNNOPT_PH", -no_bound, no_bound, "padding before, height").otherwise(""),
    site_number("DNNOPT_IH", 0, no_bound, "extent of the image, height").otherwise(""),
    site_number("DNNOPT_OH", 0, no_bound, "extent of the result, height").otherwise(""),
    site_number("DNNOPT_KW", 0, no_bound, "elements of the window, width").otherwise(""),
    site_number("DNNOPT_SW", 0, no_bound, "stride, width").otherwise(""),
    site_number("DNNOPT_DW", 0, no_bound, "dilation, width").otherwise(""),
    site_number("DNNOPT_PW", -no_bound, no_bound, "padding before, width").otherwise(""),
    site_number("DNNOPT_IW", 0, no_bound, "extent of the image, width").otherwise(""),
    site_number("DNNOPT_OW", 0, no_bound, "extent of the result, width").otherwise(""),
};
inline constexpr std::array staged_window_parameters{
    site_number("DNNOPT_POOL_KD", 0, no_bound, "elements of the window that is reduced before, depth").otherwise(""),
    site_number("DNNOPT_POOL_SD", 0, no_bound, "stride that is reduced before, depth").otherwise(""),
    site_number("DNNOPT_POOL_DD", 0, no_bound, "dilation that is reduced before, depth").otherwise(""),
    site_number("DNNOPT_POOL_PD", -no_bound, no_bound, "padding before that is reduced before, depth").otherwise(""),
    site_number("DNNOPT_POOL_ID", 0, no_bound, "extent of the image that is reduced before, depth").otherwise(""),
    site_number("DNNOPT_POOL_KH", 0, no_bound, "elements of the window that is reduced before, height").otherwise(""),
    site_number("DNNOPT_POOL_SH", 0, no_bound, "stride that is reduced before, height").otherwise(""),
    site_number("DNNOPT_POOL_DH", 0, no_bound, "dilation that is reduced before, height").otherwise(""),
    site_number("DNNOPT_POOL_PH", -no_bound, no_bound, "padding before that is reduced before, height").otherwise(""),
    site_number("DNNOPT_POOL_IH", 0, no_bound, "extent of the image that is reduced before, height").otherwise(""),
    site_number("DNNOPT_POOL_OH", 0, no_bound, "extent of the result that is reduced before, height").otherwise(""),
    site_number("DNNOPT_POOL_KW", 0, no_bound, "elements of the window that is reduced before, width").otherwise(""),
    site_number("DNNOPT_POOL_SW", 0, no_bound, "stride that is reduced before, width").otherwise(""),
    site_number("DNNOPT_POOL_DW", 0, no_bound, "dilation that is reduced before, width").otherwise(""),
    site_number("DNNOPT_POOL_PW", -no_bound, no_bound, "padding before that is reduced before, width").otherwise(""),
    site_number("DNNOPT_POOL_IW", 0, no_bound, "extent of the image that is reduced before, width").otherwise(""),
    site_number("DNNOPT_POOL_OW", 0, no_bound, "extent of the result that is reduced before, width").otherwise(""),
};
/// Operands of a frame in panels that lie in memory in the order of panels.
inline constexpr std::array packed_operand_parameters{
    site_flag("DNNOPT_A_PACKED", "whether the first operand was packed before"),
    site_flag("DNNOPT_B_PACKED", "whether the second operand was packed before"),
    site_text("DNNOPT_A", "the packed first operand").otherwise(""),
    site_text("DNNOPT_A_BATCH", "its matrix").otherwise(""),
    site_text("DNNOPT_B", "the packed second operand").otherwise(""),
    site_text("DNNOPT_B_BATCH", "its matrix").otherwise(""),
};
inline constexpr std::array matrix_panels_parameters = joined(
    patch_parameters, staged_window_parameters,
    std::array{
        rows_parameter,
        columns_parameter,
        site_extent("DNNOPT_K", "inner elements, which are summed over"),
        tuned_number("DNNOPT_ROWS", 1, 12, "rows of the register tile"),
        chosen_number("DNNOPT_VECTOR", 4, 16, "floats of a vector"),
        tuned_number("DNNOPT_VECTORS", 1, 4, "vectors of the register tile's columns"),
        tuned_number("DNNOPT_BLOCK_ROWS", 1, no_bound, "rows of a work-item, whole register tiles"),
        tuned_number("DNNOPT_BLOCK_COLUMNS", 1, no_bound, "columns of a work-item, whole register tiles"),
        chosen_number("DNNOPT_STEP_ROWS", 1, no_bound, "rows from a block to the next").otherwise("DNNOPT_BLOCK_ROWS"),
        chosen_number("DNNOPT_STEP_COLUMNS", 1, no_bound, "columns from a block to the next").otherwise("DNNOPT_SPAN"),
        tuned_number("DNNOPT_BLOCK_INNER", 0, no_bound, "inner elements that are packed at a time"),
        site_number("DNNOPT_ONE_INNER_BLOCK", 0, 1, "whether all inner elements are packed at once"),
    },
    packed_operand_parameters,
    std::array{
        site_flag("DNNOPT_B_STRAIGHT", "whether rows of the second operand are read where they are"),
        site_extent("DNNOPT_B_STRIDE", "from one of these rows to the next").otherwise(""),
        site_flag("DNNOPT_B_PARTS", "whether these rows lie in several values"),
        site_flag("DNNOPT_B_CODES",
                  "whether panels of the second operand are dequantized by a dnnopt_pack_b of the site"),
        site_flag("DNNOPT_B_INNER_FIRST", "whether neighbours of the second operand are inner elements"),
        site_flag("DNNOPT_CONVOLUTION", "whether the second operand is patches of an image"),
        site_flag("DNNOPT_STAGED", "whether columns are reduced from windows while they are packed"),
        site_number("DNNOPT_ROW_MOMENTS", 0, 2,
                    "rows of the first operand are normalized: 1 by mean and deviation, 2 by root mean square")
            .otherwise("0"),
        site_text("DNNOPT_EPSILON", "what this normalization adds before the root").otherwise(""),
        site_flag("DNNOPT_TOTALS", "whether planes are reduced"),
        site_flag("DNNOPT_STORE_BY_PANEL", "whether columns are counted by panel and lane where they are stored"),
        site_extent("DNNOPT_WINDOW_ROWS", "rows of a window that is reduced").otherwise("1"),
        site_extent("DNNOPT_WINDOW_COLUMNS", "columns of a window that is reduced; 0: none is").otherwise("0"),
        site_extent("DNNOPT_RUN_ROWS", "windows above one another").otherwise("DNNOPT_OH"),
        site_extent("DNNOPT_RUN_WIDTH", "positions of a plane's row that are in windows").otherwise("DNNOPT_OW"),
        first_parameter, take_parameter, combine_parameter, finish_parameter});

inline constexpr kernel_frame matrix_panels_frame{"matrix_panels", kernels::matrix_panels, matrix_panels_parameters};

}  // namespace dnnopt::codegen

#endif  // DNNOPT_BACKEND_CODEGEN_FRAMES_PRODUCTS_PARAMETERS_HPP
