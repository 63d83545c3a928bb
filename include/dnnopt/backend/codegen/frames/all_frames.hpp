// Owns the list of all frames whose parameters stand in tables.
#ifndef DNNOPT_BACKEND_CODEGEN_FRAMES_ALL_FRAMES_HPP
#define DNNOPT_BACKEND_CODEGEN_FRAMES_ALL_FRAMES_HPP

#include <array>

#include <dnnopt/backend/codegen/frames/attention/parameters.hpp>
#include <dnnopt/backend/codegen/frames/convolutions/parameters.hpp>
#include <dnnopt/backend/codegen/frames/dots/parameters.hpp>
#include <dnnopt/backend/codegen/frames/gemv/parameters.hpp>
#include <dnnopt/backend/codegen/frames/products/parameters.hpp>
#include <dnnopt/backend/codegen/frames/random/parameters.hpp>
#include <dnnopt/backend/codegen/frames/recurrent/parameters.hpp>
#include <dnnopt/backend/codegen/frames/rows/parameters.hpp>
#include <dnnopt/backend/codegen/frames/selection/parameters.hpp>
#include <dnnopt/backend/codegen/frames/steps/parameters.hpp>
#include <dnnopt/backend/codegen/frames/windows/parameters.hpp>

namespace dnnopt::codegen {

inline constexpr std::array all_frames{
    &attention_groups_frame,     &attention_items_frame,
    &attention_tiles_frame,      &convolution_rows_frame,
    &convolution_shifts_frame,   &convolution_texels_frame,
    &convolution_winograd_frame, &matrix_panels_frame,
    &matrix_partials_frame,      &matrix_tiles_frame,
    &product_chain_frame,        &random_stream_frame,
    &recurrent_groups_frame,     &row_items_frame,
    &row_groups_frame,           &suppress_boxes_frame,
    &vector_chain_frame,         &window_planes_frame,
    &matrix_steps_frame,         &attention_steps_frame,
    &dot_panels_frame,           &gemv_frame,
    &convolution_points_frame,
};

}  // namespace dnnopt::codegen

#endif  // DNNOPT_BACKEND_CODEGEN_FRAMES_ALL_FRAMES_HPP
