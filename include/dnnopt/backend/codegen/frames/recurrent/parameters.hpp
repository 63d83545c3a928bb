// Owns the parameters of the frame of recurrent layers.
#ifndef DNNOPT_BACKEND_CODEGEN_FRAMES_RECURRENT_PARAMETERS_HPP
#define DNNOPT_BACKEND_CODEGEN_FRAMES_RECURRENT_PARAMETERS_HPP

#include <array>

#include <dnnopt/backend/codegen/builder/frame.hpp>
#include <dnnopt/backend/codegen/frames/sources.hpp>

namespace dnnopt::codegen {

inline constexpr std::array recurrent_groups_parameters{
    site_number("DNNOPT_GATES", 1, 4, "gates of a cell: 1 RNN, 3 GRU, 4 LSTM"),
    site_extent("DNNOPT_STEPS", "steps of the longest sequence"),
    site_extent("DNNOPT_INPUTS", "elements of an input"),
    site_number("DNNOPT_HIDDEN", 1, 2048, "hidden units"),
    site_macro("DNNOPT_BACKWARDS", "(d)", "whether direction d goes from the last step to the first"),
    site_number("DNNOPT_VARIANT", 0, 1, "GRU resets after the product, LSTM couples its gates"),
    site_macro("DNNOPT_STORE_Y", "(t, d, z, j, value)", "stores a state of a step where it is asked for"),
    site_macro("DNNOPT_STORE_STATE", "(d, z, j, value)", "stores the last state where it is asked for"),
    site_macro("DNNOPT_STORE_CELL", "(d, z, j, value)", "stores the last cell where it is asked for"),
};

inline constexpr kernel_frame recurrent_groups_frame{"recurrent_groups", kernels::recurrent_groups,
                                                     recurrent_groups_parameters};

}  // namespace dnnopt::codegen

#endif  // DNNOPT_BACKEND_CODEGEN_FRAMES_RECURRENT_PARAMETERS_HPP
