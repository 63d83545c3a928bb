// Owns the list of all frames whose parameters stand in tables.
#ifndef DNNOPT_BACKEND_CODEGEN_FRAMES_ALL_FRAMES_HPP
#define DNNOPT_BACKEND_CODEGEN_FRAMES_ALL_FRAMES_HPP

#include <array>

#include <dnnopt/backend/codegen/frames/rows/parameters.hpp>
#include <dnnopt/backend/codegen/frames/steps/parameters.hpp>

namespace dnnopt::codegen {

inline constexpr std::array all_frames{
    &row_items_frame,
    &row_groups_frame,
    &matrix_steps_frame,
    &attention_steps_frame,
};

}  // namespace dnnopt::codegen

#endif  // DNNOPT_BACKEND_CODEGEN_FRAMES_ALL_FRAMES_HPP
