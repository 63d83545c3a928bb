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

#include <dnnopt/backend/codegen/elements/all.hpp>
#include <dnnopt/backend/codegen/frames/attention/lower_attention.hpp>
#include <dnnopt/backend/codegen/frames/attention/lower_linear_attention.hpp>
#include <dnnopt/backend/codegen/frames/convolutions/lower_convolution.hpp>
#include <dnnopt/backend/codegen/frames/convolutions/lower_convolution_shifts.hpp>
#include <dnnopt/backend/codegen/frames/convolutions/lower_convolution_texels.hpp>
#include <dnnopt/backend/codegen/frames/convolutions/lower_convolution_winograd.hpp>
#include <dnnopt/backend/codegen/frames/indexed/emit_scatter.hpp>
#include <dnnopt/backend/codegen/frames/indexed/emit_top_k.hpp>
#include <dnnopt/backend/codegen/frames/maps/emit_map.hpp>
#include <dnnopt/backend/codegen/frames/maps/emit_row_map.hpp>
#include <dnnopt/backend/codegen/frames/maps/emit_transposed_map.hpp>
#include <dnnopt/backend/codegen/frames/products/lower_matrix_product.hpp>
#include <dnnopt/backend/codegen/frames/products/lower_product_chain.hpp>
#include <dnnopt/backend/codegen/frames/products/lower_vector_chain.hpp>
#include <dnnopt/backend/codegen/frames/random/emit.hpp>
#include <dnnopt/backend/codegen/frames/recurrent/emit.hpp>
#include <dnnopt/backend/codegen/frames/rows/emit.hpp>
#include <dnnopt/backend/codegen/frames/selection/emit_selection.hpp>
#include <dnnopt/backend/codegen/frames/selection/emit_suppression.hpp>
#include <dnnopt/backend/codegen/frames/steps/emit.hpp>
#include <dnnopt/backend/codegen/frames/windows/emit.hpp>
#include <dnnopt/backend/codegen/lowering_row.hpp>

namespace dnnopt::codegen {

/// The lowerings that dnnopt brings, best first. The last one takes every block whose elements are expressions.
inline constexpr std::array lowering_table{
    lowering_row{computation_kind::matrix_product, "vector_chain", reject_vector_chain, lower_vector_chain, true},
    lowering_row{computation_kind::matrix_product, "product_chain", reject_product_chain, lower_product_chain, true},
    lowering_row{computation_kind::convolution, "vector_chain", reject_vector_chain, lower_vector_chain, true},
    lowering_row{computation_kind::matrix_product, "matrix_panels", reject_product_panels, lower_product_panels},
    chosen_row(computation_kind::matrix_product, "matrix_steps", choose_steps, emit_steps),
    lowering_row{computation_kind::matrix_product, "matrix_tiles", reject_matrix_product, lower_product_tiles},
    chosen_row(computation_kind::convolution, "window_planes", choose_window_planes, emit_window_planes),
    lowering_row{computation_kind::convolution, "convolution_rows", reject_convolution_rows, lower_convolution_rows},
    lowering_row{computation_kind::convolution, "convolution_winograd", reject_convolution_winograd,
                 lower_convolution_winograd},
    lowering_row{computation_kind::convolution, "convolution_shifts", reject_convolution_shifts,
                 lower_convolution_shifts},
    lowering_row{computation_kind::convolution, "convolution_panels", reject_convolution_panels,
                 lower_convolution_panels},
    chosen_row(computation_kind::convolution, "convolution_steps", choose_steps, emit_steps),
    lowering_row{computation_kind::convolution, "convolution_texels", reject_convolution_texels,
                 lower_convolution_texels},
    lowering_row{computation_kind::convolution, "convolution_tiles", reject_convolution_tiles, lower_convolution_tiles},
    lowering_row{computation_kind::attention, "attention_items", reject_attention_items, lower_attention_items},
    lowering_row{computation_kind::attention, "attention_tiles", reject_attention, lower_attention_tiles},
    lowering_row{computation_kind::attention, "attention_groups", reject_attention, lower_attention_groups},
    lowering_row{computation_kind::attention, "linear_attention", reject_linear_attention, lower_linear_attention},
    chosen_row(computation_kind::softmax, "row_items", choose_row_items, emit_row_items),
    chosen_row(computation_kind::softmax, "row_groups", choose_row_groups, emit_row_groups),
    chosen_row(computation_kind::normalization, "row_items", choose_row_items, emit_row_items),
    chosen_row(computation_kind::normalization, "row_groups", choose_row_groups, emit_row_groups),
    chosen_row(computation_kind::reduction, "row_items", choose_row_items, emit_row_items),
    chosen_row(computation_kind::reduction, "row_groups", choose_row_groups, emit_row_groups),
    chosen_row(computation_kind::pooling, "window_planes", choose_window_planes, emit_window_planes),
    chosen_row(computation_kind::pooling, "row_items", choose_row_items, emit_row_items),
    chosen_row(computation_kind::pooling, "row_groups", choose_row_groups, emit_row_groups),
    chosen_row(computation_kind::indexed_write, "scatter", choose_scatter, emit_scatter),
    chosen_row(computation_kind::sorting, "top_k", choose_top_k, emit_top_k),
    chosen_row(computation_kind::sorting, "non_zero", choose_non_zero, emit_non_zero),
    chosen_row(computation_kind::sorting, "unique", choose_unique, emit_unique),
    chosen_row(computation_kind::sorting, "suppression", choose_suppression, emit_suppression),
    chosen_row(computation_kind::sorting, "compress", choose_compress, emit_compress),
    chosen_row(computation_kind::scan, "recurrent_groups", choose_recurrent, emit_recurrent),
    chosen_row(std::nullopt, "random", choose_random, emit_random),
    chosen_row(std::nullopt, "map_transposed", choose_transposed_map, emit_transposed_map),
    chosen_row(std::nullopt, "map_rows", choose_row_map, emit_row_map),
    chosen_row(std::nullopt, "map", choose_map, emit_map),
};

}  // namespace dnnopt::codegen

#endif  // DNNOPT_BACKEND_CODEGEN_LOWERING_TABLE_HPP
