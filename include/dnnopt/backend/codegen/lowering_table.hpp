// Owns the table of lowerings that dnnopt brings.
#ifndef DNNOPT_BACKEND_CODEGEN_LOWERING_TABLE_HPP
#define DNNOPT_BACKEND_CODEGEN_LOWERING_TABLE_HPP

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <dnnopt/backend/codegen/elements/all.hpp>
#include <dnnopt/backend/codegen/frames/attention/emit.hpp>
#include <dnnopt/backend/codegen/frames/attention/emit_linear_attention.hpp>
#include <dnnopt/backend/codegen/frames/convolutions/emit_patches.hpp>
#include <dnnopt/backend/codegen/frames/convolutions/emit_thin.hpp>
#include <dnnopt/backend/codegen/frames/convolutions/staged/emit_staged.hpp>
#include <dnnopt/backend/codegen/frames/dots/emit.hpp>
#include <dnnopt/backend/codegen/frames/gemv/emit.hpp>
#include <dnnopt/backend/codegen/frames/indexed/emit_scatter.hpp>
#include <dnnopt/backend/codegen/frames/indexed/emit_top_k.hpp>
#include <dnnopt/backend/codegen/frames/maps/emit_map.hpp>
#include <dnnopt/backend/codegen/frames/maps/emit_row_map.hpp>
#include <dnnopt/backend/codegen/frames/maps/emit_transposed_map.hpp>
#include <dnnopt/backend/codegen/frames/products/emit.hpp>
#include <dnnopt/backend/codegen/frames/products/emit_product_chain.hpp>
#include <dnnopt/backend/codegen/frames/products/emit_vector_chain.hpp>
#include <dnnopt/backend/codegen/frames/random/emit.hpp>
#include <dnnopt/backend/codegen/frames/recurrent/emit.hpp>
#include <dnnopt/backend/codegen/frames/rows/emit.hpp>
#include <dnnopt/backend/codegen/frames/selection/emit_selection.hpp>
#include <dnnopt/backend/codegen/frames/selection/emit_suppression.hpp>
#include <dnnopt/backend/codegen/frames/steps/attention.hpp>
#include <dnnopt/backend/codegen/frames/steps/emit.hpp>
#include <dnnopt/backend/codegen/frames/windows/emit.hpp>
#include <dnnopt/backend/codegen/lowering_row.hpp>

namespace dnnopt::codegen {

/// A row for one operator of ONNX's own domain.
[[nodiscard]] constexpr lowering_row for_operator(std::string_view op, lowering_row row) {
  row.op = op;
  return row;
}

/// The lowerings that dnnopt brings, best first. The last one takes every block whose elements are expressions.
inline constexpr std::array lowering_table{
    lowering_row{computation_kind::matrix_product, "vector_chain", choose_vector_chain, emit_vector_chain, true},
    lowering_row{computation_kind::matrix_product, "product_chain", choose_product_chain, emit_product_chain, true},
    for_operator("Conv", {computation_kind::convolution, "vector_chain", choose_vector_chain, emit_vector_chain, true}),
    lowering_row{computation_kind::matrix_product, "matrix_panels", choose_product_panels, emit_product_panels},
    lowering_row{computation_kind::matrix_product, "dot_panels", choose_dot_panels, emit_dot_panels},
    lowering_row{computation_kind::matrix_product, "gemv", choose_gemv, emit_gemv},
    lowering_row{computation_kind::matrix_product, "matrix_steps", choose_steps, emit_steps},
    lowering_row{computation_kind::matrix_product, "matrix_tiles", choose_product_tiles, emit_product_tiles},
    for_operator("Conv", {computation_kind::convolution, "window_planes", choose_window_planes, emit_window_planes}),
    for_operator("Conv",
                 {computation_kind::convolution, "convolution_rows", choose_convolution_rows, emit_convolution_rows}),
    for_operator("Conv", {computation_kind::convolution, "convolution_points", choose_convolution_points,
                          emit_convolution_points}),
    for_operator("Conv", {computation_kind::convolution, "convolution_winograd", choose_convolution_winograd,
                          emit_convolution_winograd}),
    for_operator("Conv", {computation_kind::convolution, "convolution_shifts", choose_convolution_shifts,
                          emit_convolution_shifts}),
    for_operator("Conv", {computation_kind::convolution, "convolution_panels", choose_convolution_panels,
                          emit_convolution_panels}),
    lowering_row{computation_kind::convolution, "dot_convolution", choose_dot_convolution, emit_dot_convolution},
    for_operator("Conv", {computation_kind::convolution, "convolution_steps", choose_steps, emit_steps}),
    for_operator("Conv", {computation_kind::convolution, "convolution_texels", choose_convolution_texels,
                          emit_convolution_texels}),
    for_operator(
        "Conv", {computation_kind::convolution, "convolution_tiles", choose_convolution_tiles, emit_convolution_tiles}),
    for_operator("Attention",
                 {computation_kind::attention, "attention_items", choose_attention_items, emit_attention_items}),
    for_operator("Attention",
                 {computation_kind::attention, "attention_steps", choose_attention_steps, emit_attention_steps}),
    for_operator("Attention",
                 {computation_kind::attention, "attention_tiles", choose_attention_tiles, emit_attention_tiles}),
    for_operator("Attention",
                 {computation_kind::attention, "attention_groups", choose_attention_groups, emit_attention_groups}),
    for_operator("LinearAttention",
                 {computation_kind::attention, "linear_attention", choose_linear_attention, emit_linear_attention}),
    lowering_row{computation_kind::softmax, "row_items", choose_row_items, emit_row_items},
    lowering_row{computation_kind::softmax, "row_groups", choose_row_groups, emit_row_groups},
    lowering_row{computation_kind::normalization, "row_items", choose_row_items, emit_row_items},
    lowering_row{computation_kind::normalization, "row_groups", choose_row_groups, emit_row_groups},
    lowering_row{computation_kind::reduction, "row_items", choose_row_items, emit_row_items},
    lowering_row{computation_kind::reduction, "row_groups", choose_row_groups, emit_row_groups},
    lowering_row{computation_kind::pooling, "window_planes", choose_window_planes, emit_window_planes},
    lowering_row{computation_kind::pooling, "row_items", choose_row_items, emit_row_items},
    lowering_row{computation_kind::pooling, "row_groups", choose_row_groups, emit_row_groups},
    for_operator("ScatterND", {computation_kind::indexed_write, "scatter", choose_scatter<true>, emit_scatter<true>}),
    for_operator("ScatterElements",
                 {computation_kind::indexed_write, "scatter", choose_scatter<false>, emit_scatter<false>}),
    for_operator("Scatter", {computation_kind::indexed_write, "scatter", choose_scatter<false>, emit_scatter<false>}),
    for_operator("TopK", {computation_kind::sorting, "top_k", choose_top_k, emit_top_k}),
    for_operator("NonZero", {computation_kind::sorting, "non_zero", choose_non_zero, emit_non_zero}),
    for_operator("Unique", {computation_kind::sorting, "unique", choose_unique, emit_unique}),
    for_operator("NonMaxSuppression", {computation_kind::sorting, "suppression", choose_suppression, emit_suppression}),
    for_operator("Compress", {computation_kind::sorting, "compress", choose_compress, emit_compress}),
    lowering_row{computation_kind::scan, "recurrent_groups", choose_recurrent, emit_recurrent},
    lowering_row{std::nullopt, "random", choose_random, emit_random},
    lowering_row{std::nullopt, "map_transposed", choose_transposed_map, emit_transposed_map},
    lowering_row{std::nullopt, "map_rows", choose_row_map, emit_row_map},
    lowering_row{std::nullopt, "map", choose_map, emit_map},
};

}  // namespace dnnopt::codegen

#endif  // DNNOPT_BACKEND_CODEGEN_LOWERING_TABLE_HPP
