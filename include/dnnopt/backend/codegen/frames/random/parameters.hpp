// Owns the parameters of the frame of random numbers.
#ifndef DNNOPT_BACKEND_CODEGEN_FRAMES_RANDOM_PARAMETERS_HPP
#define DNNOPT_BACKEND_CODEGEN_FRAMES_RANDOM_PARAMETERS_HPP

#include <array>

#include <dnnopt/backend/codegen/builder/frame.hpp>
#include <dnnopt/backend/codegen/frames/sources.hpp>

namespace dnnopt::codegen {

inline constexpr std::array random_stream_parameters{
    site_extent("DNNOPT_COUNT", "numbers that are drawn"),
    site_text("DNNOPT_SEED", "what the generator begins with"),
    site_text("DNNOPT_STREAM", "the memory of the numbers"),
};

inline constexpr kernel_frame random_stream_frame{"random_stream", kernels::random_stream, random_stream_parameters};

}  // namespace dnnopt::codegen

#endif  // DNNOPT_BACKEND_CODEGEN_FRAMES_RANDOM_PARAMETERS_HPP
