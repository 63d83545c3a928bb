// Owns the parameters of the frames that work on rows.
#ifndef DNNOPT_BACKEND_CODEGEN_FRAMES_ROWS_PARAMETERS_HPP
#define DNNOPT_BACKEND_CODEGEN_FRAMES_ROWS_PARAMETERS_HPP

#include <array>

#include <dnnopt/backend/codegen/builder/frame.hpp>
#include <dnnopt/backend/codegen/frames/sources.hpp>

namespace dnnopt::codegen {

/// What all frames that reduce know of the reduction.
inline constexpr frame_parameter first_parameter =
    site_text("DNNOPT_FIRST", "what a reduction begins with").otherwise("0.0f");
inline constexpr frame_parameter take_parameter =
    site_macro("DNNOPT_TAKE", "(a, x)", "a partial result with one element more").otherwise("((a) + (x))");
inline constexpr frame_parameter combine_parameter =
    site_macro("DNNOPT_COMBINE", "(a, x)", "one partial result of two").otherwise("((a) + (x))");
inline constexpr frame_parameter finish_parameter =
    site_macro("DNNOPT_FINISH", "(a)", "the result of a reduction").otherwise("(a)");

/// What both row frames know of the operator.
inline constexpr std::array row_operator_parameters{
    site_number("DNNOPT_FAMILY", 0, 5,
                "0 softmax, 1 its logarithm, 2 mean and deviation, 3 root mean square, 4 p-norm, 5 reduction"),
    site_extent("DNNOPT_ROWS", "rows"),
    site_extent("DNNOPT_LENGTH", "elements of a row"),
    site_macro("DNNOPT_STEP", "(x)", "what a step of softmax is rounded to").otherwise("(x)"),
    site_text("DNNOPT_EPSILON", "what a normalization adds before the root").otherwise("1e-5f"),
    site_macro("DNNOPT_NORM_TERM", "(x)", "an element's part of a p-norm").otherwise("((x) * (x))"),
    site_macro("DNNOPT_NORM_ROOT", "(x)", "the p-norm of the sum of its terms").otherwise("sqrt(x)"),
    first_parameter,
    take_parameter,
    combine_parameter,
    finish_parameter,
    site_macro("DNNOPT_STORE_MEAN", "(row, mean)", "stores a row's mean where it is asked for").otherwise(""),
    site_macro("DNNOPT_STORE_INVERSE", "(row, inverse)", "stores a row's factor where it is asked for").otherwise(""),
};

inline constexpr std::array row_items_parameters = joined(
    row_operator_parameters,
    std::array{chosen_number("DNNOPT_BLOCK", 16, 4096, "elements of a row that are kept in private memory at a time"),
               tuned_number("DNNOPT_ROWS_PER_ITEM", 1, no_bound, "rows that a work-item computes")});

inline constexpr std::array row_groups_parameters = joined(
    row_operator_parameters,
    std::array{
        tuned_number("DNNOPT_GROUP", 1, 1024, "work-items for a row, a power of two"),
        tuned_number("DNNOPT_GROUP_ROWS", 1, 1024, "rows that a work-group computes"),
        tuned_number("DNNOPT_VECTOR", 1, 4, "neighbours that a work-item reads and writes at a time: 1 or 4"),
        chosen_number("DNNOPT_OWN", 0, 16,
                      "accesses in which a work-item reads its part of a row, which it keeps; 0: it reads again")});

inline constexpr kernel_frame row_items_frame{"row_items", kernels::row_items, row_items_parameters};
inline constexpr kernel_frame row_groups_frame{"row_groups", kernels::row_groups, row_groups_parameters};

}  // namespace dnnopt::codegen

#endif  // DNNOPT_BACKEND_CODEGEN_FRAMES_ROWS_PARAMETERS_HPP
