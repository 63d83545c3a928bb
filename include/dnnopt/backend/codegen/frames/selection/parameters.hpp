// Owns the parameters of the frame of NonMaxSuppression.
#ifndef DNNOPT_BACKEND_CODEGEN_FRAMES_SELECTION_PARAMETERS_HPP
#define DNNOPT_BACKEND_CODEGEN_FRAMES_SELECTION_PARAMETERS_HPP

#include <array>

#include <dnnopt/backend/codegen/builder/frame.hpp>
#include <dnnopt/backend/codegen/frames/sources.hpp>

namespace dnnopt::codegen {

inline constexpr std::array suppress_boxes_parameters{
    chosen_number("DNNOPT_GROUP", 1, 256, "work-items for an image and class, a power of two"),
    site_extent("DNNOPT_BOXES", "boxes of an image"),
    site_extent("DNNOPT_CLASSES", "classes"),
    site_number("DNNOPT_CENTERED", 0, 1, "whether boxes are given by their centers"),
    site_number("DNNOPT_LIMITED", 0, 1, "whether scores have a lower limit"),
    site_text("DNNOPT_SORTED", "memory: the boxes in their order"),
    site_text("DNNOPT_TAKEN", "memory: which boxes are taken"),
    site_text("DNNOPT_FOUND", "memory: how many boxes are taken"),
    site_text("DNNOPT_MERGED", "memory: the boxes while one work-item sorts them").otherwise("DNNOPT_SORTED"),
    site_text("DNNOPT_KEPT", "memory: corners of the boxes that one work-item took").otherwise("0"),
};

inline constexpr kernel_frame suppress_boxes_frame{"suppress_boxes", kernels::suppress_boxes,
                                                   suppress_boxes_parameters};

}  // namespace dnnopt::codegen

#endif  // DNNOPT_BACKEND_CODEGEN_FRAMES_SELECTION_PARAMETERS_HPP
