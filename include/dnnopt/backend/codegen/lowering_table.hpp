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
#include <dnnopt/backend/codegen/frames/indexed/lower_scatter.hpp>
#include <dnnopt/backend/codegen/frames/indexed/lower_top_k.hpp>
#include <dnnopt/backend/codegen/frames/maps/lower_map.hpp>
#include <dnnopt/backend/codegen/frames/maps/lower_row_map.hpp>
#include <dnnopt/backend/codegen/frames/maps/lower_transposed_map.hpp>
#include <dnnopt/backend/codegen/frames/products/lower_matrix_product.hpp>
#include <dnnopt/backend/codegen/frames/products/lower_product_chain.hpp>
#include <dnnopt/backend/codegen/frames/products/lower_vector_chain.hpp>
#include <dnnopt/backend/codegen/frames/random/lower_random.hpp>
#include <dnnopt/backend/codegen/frames/recurrent/lower_recurrent.hpp>
#include <dnnopt/backend/codegen/frames/rows/emit.hpp>
#include <dnnopt/backend/codegen/frames/selection/lower_selection.hpp>
#include <dnnopt/backend/codegen/frames/selection/lower_suppression.hpp>
#include <dnnopt/backend/codegen/frames/windows/lower_windows.hpp>
#include <dnnopt/backend/codegen/lowering_row.hpp>

namespace dnnopt::codegen {

/// Work-items take several elements each where even so all of a device that runs them in step is busy.
[[nodiscard]] inline lowered_node lower_map_of_site(const lowering_site& s) {
  const device_info* device = s.options.device;
  if (device == nullptr || s.prefers_vectors() || device->max_work_group_size < 32)
    return lower_map(s.block, s.options.emitters);
  return lower_map(s.block, s.options.emitters, 4 * s.busy_items(),
                   static_cast<std::int64_t>(std::bit_floor(std::min<std::size_t>(device->max_work_group_size, 256))));
}

/// The lowerings that dnnopt brings, best first. The last one takes every block whose elements are expressions.
inline constexpr std::array lowering_table{
    lowering_row{computation_kind::matrix_product, "vector_chain", reject_vector_chain, lower_vector_chain, true},
    lowering_row{computation_kind::matrix_product, "product_chain", reject_product_chain, lower_product_chain, true},
    lowering_row{computation_kind::convolution, "vector_chain", reject_vector_chain, lower_vector_chain, true},
    lowering_row{computation_kind::matrix_product, "matrix_panels", reject_product_panels, lower_product_panels},
    lowering_row{computation_kind::matrix_product, "matrix_tiles", reject_matrix_product, lower_product_tiles},
    lowering_row{computation_kind::convolution, "window_planes", reject_window_planes, lower_window_planes},
    lowering_row{computation_kind::convolution, "convolution_rows", reject_convolution_rows, lower_convolution_rows},
    lowering_row{computation_kind::convolution, "convolution_winograd", reject_convolution_winograd,
                 lower_convolution_winograd},
    lowering_row{computation_kind::convolution, "convolution_shifts", reject_convolution_shifts,
                 lower_convolution_shifts},
    lowering_row{computation_kind::convolution, "convolution_panels", reject_convolution_panels,
                 lower_convolution_panels},
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
    lowering_row{computation_kind::pooling, "window_planes", reject_window_planes, lower_window_planes},
    chosen_row(computation_kind::pooling, "row_items", choose_row_items, emit_row_items),
    chosen_row(computation_kind::pooling, "row_groups", choose_row_groups, emit_row_groups),
    lowering_row{computation_kind::indexed_write, "scatter", reject_scatter, lower_scatter},
    lowering_row{computation_kind::sorting, "top_k", reject_top_k, lower_top_k},
    lowering_row{computation_kind::sorting, "non_zero", reject_non_zero, lower_non_zero},
    lowering_row{computation_kind::sorting, "unique", reject_unique, lower_unique},
    lowering_row{computation_kind::sorting, "suppression", reject_suppression, lower_suppression},
    lowering_row{computation_kind::sorting, "compress", reject_compress, lower_compress},
    lowering_row{computation_kind::scan, "recurrent_groups", reject_recurrent, lower_recurrent},
    lowering_row{std::nullopt, "random", reject_random, lower_random},
    lowering_row{std::nullopt, "map_transposed", reject_transposed_map, lower_transposed_map},
    lowering_row{std::nullopt, "map_rows", reject_row_map, lower_row_map},
    lowering_row{std::nullopt, "map", reject_map, lower_map_of_site},
};

}  // namespace dnnopt::codegen

#endif  // DNNOPT_BACKEND_CODEGEN_LOWERING_TABLE_HPP
