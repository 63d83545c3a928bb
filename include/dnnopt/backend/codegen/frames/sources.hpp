// Owns the hand-written kernel sources as strings; each .cl file is valid OpenCL C by itself and included here.
#ifndef DNNOPT_BACKEND_CODEGEN_FRAMES_SOURCES_HPP
#define DNNOPT_BACKEND_CODEGEN_FRAMES_SOURCES_HPP

#include <string_view>

namespace dnnopt::kernels {

inline constexpr std::string_view prelude =
    "#ifdef __cplusplus\n"
#include <dnnopt/backend/codegen/frames/prelude.cl>
    "#endif\n";

inline constexpr std::string_view matrix_panels =
    "#ifdef __cplusplus\n"
#include <dnnopt/backend/codegen/frames/products/panels/panel_packing.cl>
    "#endif\n"
    "#ifdef __cplusplus\n"
#include <dnnopt/backend/codegen/frames/products/panels/matrix_panels.cl>
    "#endif\n";

inline constexpr std::string_view matrix_tiles =
    "#ifdef __cplusplus\n"
#include <dnnopt/backend/codegen/frames/products/matrix_tiles.cl>
    "#endif\n";

inline constexpr std::string_view matrix_partials =
    "#ifdef __cplusplus\n"
#include <dnnopt/backend/codegen/frames/products/matrix_partials.cl>
    "#endif\n";

inline constexpr std::string_view convolution_texels =
    "#ifdef __cplusplus\n"
#include <dnnopt/backend/codegen/frames/convolutions/convolution_texels.cl>
    "#endif\n";

inline constexpr std::string_view convolution_rows =
    "#ifdef __cplusplus\n"
#include <dnnopt/backend/codegen/frames/convolutions/convolution_rows.cl>
    "#endif\n";

inline constexpr std::string_view convolution_shifts =
    "#ifdef __cplusplus\n"
#include <dnnopt/backend/codegen/frames/convolutions/staged/convolution_shifts.cl>
    "#endif\n";

inline constexpr std::string_view convolution_points =
    "#ifdef __cplusplus\n"
#include <dnnopt/backend/codegen/frames/convolutions/staged/convolution_points.cl>
    "#endif\n";

inline constexpr std::string_view convolution_winograd =
    "#ifdef __cplusplus\n"
#include <dnnopt/backend/codegen/frames/convolutions/staged/convolution_winograd.cl>
    "#endif\n";

inline constexpr std::string_view window_planes =
    "#ifdef __cplusplus\n"
#include <dnnopt/backend/codegen/frames/windows/window_planes.cl>
    "#endif\n";

inline constexpr std::string_view vector_chain =
    "#ifdef __cplusplus\n"
#include <dnnopt/backend/codegen/frames/products/vector_chain.cl>
    "#endif\n";

inline constexpr std::string_view product_chain =
    "#ifdef __cplusplus\n"
#include <dnnopt/backend/codegen/frames/products/product_chain.cl>
    "#endif\n";

inline constexpr std::string_view row_items =
    "#ifdef __cplusplus\n"
#include <dnnopt/backend/codegen/frames/rows/row_items.cl>
    "#endif\n";

inline constexpr std::string_view row_groups =
    "#ifdef __cplusplus\n"
#include <dnnopt/backend/codegen/frames/rows/row_groups.cl>
    "#endif\n";

inline constexpr std::string_view recurrent_groups =
    "#ifdef __cplusplus\n"
#include <dnnopt/backend/codegen/frames/recurrent/recurrent_groups.cl>
    "#endif\n";

inline constexpr std::string_view attention_items =
    "#ifdef __cplusplus\n"
#include <dnnopt/backend/codegen/frames/attention/attention_items.cl>
    "#endif\n";

inline constexpr std::string_view attention_tiles =
    "#ifdef __cplusplus\n"
#include <dnnopt/backend/codegen/frames/attention/attention_tiles.cl>
    "#endif\n";

inline constexpr std::string_view attention_groups =
    "#ifdef __cplusplus\n"
#include <dnnopt/backend/codegen/frames/attention/attention_groups.cl>
    "#endif\n";

inline constexpr std::string_view box_order =
    "#ifdef __cplusplus\n"
#include <dnnopt/backend/codegen/frames/selection/box_order.cl>
    "#endif\n";

inline constexpr std::string_view suppress_boxes =
    "#ifdef __cplusplus\n"
#include <dnnopt/backend/codegen/frames/selection/suppress_boxes.cl>
    "#endif\n";

inline constexpr std::string_view random_stream =
    "#ifdef __cplusplus\n"
#include <dnnopt/backend/codegen/frames/random/random_stream.cl>
    "#endif\n";

}  // namespace dnnopt::kernels

#endif  // DNNOPT_BACKEND_CODEGEN_FRAMES_SOURCES_HPP
