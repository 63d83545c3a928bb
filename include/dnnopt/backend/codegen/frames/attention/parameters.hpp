// Owns the parameters of the frames of attention.
#ifndef DNNOPT_BACKEND_CODEGEN_FRAMES_ATTENTION_PARAMETERS_HPP
#define DNNOPT_BACKEND_CODEGEN_FRAMES_ATTENTION_PARAMETERS_HPP

#include <array>

#include <dnnopt/backend/codegen/builder/frame.hpp>
#include <dnnopt/backend/codegen/frames/sources.hpp>

namespace dnnopt::codegen {

/// What all frames of attention know of it.
inline constexpr std::array attention_parameters{
    site_extent("DNNOPT_KEY_COUNT", "keys of a head, with those of the past"),
    site_number("DNNOPT_SIZE", 1, 512, "elements of a query and of a key"),
    site_number("DNNOPT_VALUE_SIZE", 1, 512, "elements of a value"),
};
inline constexpr std::array attention_items_parameters =
    joined(attention_parameters,
           std::array{site_extent("DNNOPT_QUERY_COUNT", "queries of a head"),
                      chosen_number("DNNOPT_ROWS", 2, 12, "queries of a register tile"),
                      tuned_number("DNNOPT_QUERIES", 2, no_bound, "queries of a work-item, whole register tiles"),
                      tuned_number("DNNOPT_KEYS", 32, no_bound, "keys that are taken at a time, a multiple of 32")});
inline constexpr std::array attention_tiles_parameters = joined(
    attention_parameters,
    std::array{site_extent("DNNOPT_QUERY_COUNT", "queries of a head"),
               tuned_number("DNNOPT_ROWS", 16, 32, "queries of a work-group: 16 or 32"),
               tuned_number("DNNOPT_SPLITS", 1, 4, "teams of a work-group that share the keys"),
               site_number("DNNOPT_QUERY_WIDTH", 1, 4, "elements of a query that are loaded at once: 1 or 4"),
               site_number("DNNOPT_KEY_WIDTH", 1, 4, "elements of a key that are loaded at once: 1 or 4"),
               site_number("DNNOPT_VALUE_WIDTH", 1, 4, "elements of a value that are loaded at once: 1 or 4"),
               site_number("DNNOPT_STORE_WIDTH", 1, 4, "results that are stored at once: 1 or 4").otherwise("1")});

inline constexpr kernel_frame attention_items_frame{"attention_items", kernels::attention_items,
                                                    attention_items_parameters};
inline constexpr kernel_frame attention_tiles_frame{"attention_tiles", kernels::attention_tiles,
                                                    attention_tiles_parameters};

inline constexpr std::array attention_groups_parameters = joined(
    attention_parameters, std::array{chosen_number("DNNOPT_GROUP", 1, 64, "work-items for a query, a power of two")});
inline constexpr kernel_frame attention_groups_frame{"attention_groups", kernels::attention_groups,
                                                     attention_groups_parameters};

}  // namespace dnnopt::codegen

#endif  // DNNOPT_BACKEND_CODEGEN_FRAMES_ATTENTION_PARAMETERS_HPP
