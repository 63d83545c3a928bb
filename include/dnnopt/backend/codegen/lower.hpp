// Owns the choice of how a block becomes kernels: a table of lowerings by computation kind and condition.
#ifndef DNNOPT_BACKEND_CODEGEN_LOWER_HPP
#define DNNOPT_BACKEND_CODEGEN_LOWER_HPP

#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include <dnnopt/backend/codegen/emitters/all.hpp>
#include <dnnopt/backend/codegen/lower_convolution.hpp>
#include <dnnopt/backend/codegen/lower_map.hpp>
#include <dnnopt/backend/codegen/lower_matrix_product.hpp>
#include <dnnopt/backend/codegen/lower_rows.hpp>
#include <dnnopt/backend/codegen/lower_scatter.hpp>
#include <dnnopt/backend/codegen/lower_top_k.hpp>
#include <dnnopt/backend/codegen/lowering_row.hpp>
#include <dnnopt/device_info.hpp>

namespace dnnopt::codegen {

/// The lowerings that dnnopt brings, best first. The last one takes every block whose elements are expressions.
inline constexpr std::array lowering_table{
    lowering_row{computation_kind::matrix_product, "matrix_panels", reject_product_panels, lower_product_panels},
    lowering_row{computation_kind::matrix_product, "matrix_tiles", reject_matrix_product, lower_product_tiles},
    lowering_row{computation_kind::convolution, "convolution_rows", reject_convolution_rows, lower_convolution_rows},
    lowering_row{computation_kind::convolution, "convolution_panels", reject_convolution_panels, lower_convolution_panels},
    lowering_row{computation_kind::convolution, "convolution_tiles", reject_convolution, lower_convolution_tiles},
    lowering_row{computation_kind::softmax, "row_items", reject_row_items, lower_row_items},
    lowering_row{computation_kind::softmax, "row_groups", reject_rows, lower_row_groups},
    lowering_row{computation_kind::normalization, "row_items", reject_row_items, lower_row_items},
    lowering_row{computation_kind::normalization, "row_groups", reject_rows, lower_row_groups},
    lowering_row{computation_kind::reduction, "row_items", reject_row_items, lower_row_items},
    lowering_row{computation_kind::reduction, "row_groups", reject_rows, lower_row_groups},
    lowering_row{computation_kind::pooling, "row_items", reject_row_items, lower_row_items},
    lowering_row{computation_kind::pooling, "row_groups", reject_rows, lower_row_groups},
    lowering_row{computation_kind::indexed_write, "scatter", reject_scatter, lower_scatter},
    lowering_row{computation_kind::sorting, "top_k", reject_top_k, lower_top_k},
    lowering_row{std::nullopt, "map", [](const lowering_site&) { return std::string(); },
                 [](const lowering_site& s) { return lower_map(s.block, s.options.emitters); }},
};

/// Defaults: dnnopt's own emitters and no lowerings besides dnnopt's own.
[[nodiscard]] inline lower_options default_lower_options(const device_info* device = nullptr) {
  lower_options options;
  options.device = device;
  options.emitters = element_emitters;
  return options;
}

/// The kernels of a block: those of the first row that fits, of `options.rows` first and then of dnnopt's own table.
/// Preconditions: shapes of all values of the block are known (symbols allowed).
/// Errors: unsupported with the reason of each row that was tried.
[[nodiscard]] inline lowered_node lower(const block_view& block, const lower_options& options = default_lower_options()) {
  const lowering_site site = make_lowering_site(block, options);
  std::string reasons;
  const auto attempt = [&](const lowering_row& row) -> std::optional<lowered_node> {
    if (row.kind && (site.anchor == no_node || block.g.node_at(site.anchor).op->kind != *row.kind)) return std::nullopt;
    std::string why = row.reject(site);
    if (why.empty()) {
      try {
        return row.lower(site);
      } catch (const error& e) {
        if (e.code() != errc::unsupported) throw;
        why = e.what();
      }
    }
    reasons += (reasons.empty() ? "" : "; ") + std::string(row.version) + ": " + why;
    return std::nullopt;
  };
  for (const lowering_row& row : options.rows)
    if (auto made = attempt(row)) return std::move(*made);
  for (const lowering_row& row : lowering_table)
    if (auto made = attempt(row)) return std::move(*made);
  throw error(errc::unsupported, "no kernel (" + reasons + ")");
}

/// Why a block has no kernels; nothing where it has. As costly as lowering it.
[[nodiscard]] inline std::optional<std::string> why_not_lowered(const block_view& block, const lower_options& options = default_lower_options()) {
  try {
    (void)lower(block, options);
  } catch (const error& e) {
    if (e.code() != errc::unsupported) throw;
    return e.what();
  }
  return std::nullopt;
}

/// Whether a block has kernels.
[[nodiscard]] inline bool can_lower(const block_view& block, const lower_options& options = default_lower_options()) {
  return !why_not_lowered(block, options);
}

}  // namespace dnnopt::codegen

#endif  // DNNOPT_BACKEND_CODEGEN_LOWER_HPP
