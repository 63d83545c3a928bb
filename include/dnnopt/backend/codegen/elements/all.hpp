// Owns the table of all element emitters that dnnopt brings.
#ifndef DNNOPT_BACKEND_CODEGEN_ELEMENTS_ALL_HPP
#define DNNOPT_BACKEND_CODEGEN_ELEMENTS_ALL_HPP

#include <array>
#include <cstddef>

#include <dnnopt/backend/codegen/elements/convolution.hpp>
#include <dnnopt/backend/codegen/elements/generator.hpp>
#include <dnnopt/backend/codegen/elements/matrix_product.hpp>
#include <dnnopt/backend/codegen/elements/normalization.hpp>
#include <dnnopt/backend/codegen/elements/pooling.hpp>
#include <dnnopt/backend/codegen/elements/quantization.hpp>
#include <dnnopt/backend/codegen/elements/reduction.hpp>
#include <dnnopt/backend/codegen/elements/resampling.hpp>
#include <dnnopt/backend/codegen/elements/rotary.hpp>
#include <dnnopt/backend/codegen/elements/sampling_grid.hpp>
#include <dnnopt/backend/codegen/elements/text.hpp>

namespace dnnopt::codegen {

namespace detail {
template <std::size_t... N>
[[nodiscard]] constexpr auto joined(const std::array<emitter_row, N>&... tables) {
  std::array<emitter_row, (N + ...)> out{};
  std::size_t at = 0;
  const auto append = [&](const auto& table) {
    for (const emitter_row& row : table) out[at++] = row;
  };
  (append(tables), ...);
  return out;
}
}  // namespace detail

/// Every operator that has an element emitter; the others have a scalar expression or a view, or no kernel.
inline constexpr auto element_emitters = detail::joined(
    reduction_emitters, normalization_emitters, matrix_product_emitters, quantization_emitters, convolution_emitters,
    pooling_emitters, resampling_emitters, sampling_grid_emitters, generator_emitters, rotary_emitters, text_emitters);

}  // namespace dnnopt::codegen

#endif  // DNNOPT_BACKEND_CODEGEN_ELEMENTS_ALL_HPP
