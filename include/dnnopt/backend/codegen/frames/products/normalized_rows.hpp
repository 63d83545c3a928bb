// Owns how a product in panels normalizes the rows of its first operand as it reads them.
#ifndef DNNOPT_BACKEND_CODEGEN_FRAMES_PRODUCTS_NORMALIZED_ROWS_HPP
#define DNNOPT_BACKEND_CODEGEN_FRAMES_PRODUCTS_NORMALIZED_ROWS_HPP

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <dnnopt/backend/codegen/elements/element_site.hpp>
#include <dnnopt/backend/codegen/frames/rows/row_operators.hpp>
#include <dnnopt/inexpressible.hpp>

namespace dnnopt::codegen {

/// The member that normalizes rows before an operand of the anchor; no_node where there is none.
[[nodiscard]] inline node_id row_normalization_in(const block_view& block) {
  for (const node_id id : block.members)
    if (id != block.anchor && block.g.node_at(id).op->normalizes_rows) return id;
  return no_node;
}

/// Defines the load of rows that are normalized first: dnnopt_load_a(z, m, k, moments) and dnnopt_row_load(z, m, k),
/// the element before normalization, from which the frame takes the moments of a row once. Errors: unsupported where a
/// row of the product is no row of the normalization.
inline void define_normalized_rows(kernel_builder& b, node_id norm, value_id operand, std::span<const index_expr> index,
                                   const index_expr& k, std::span<const std::string> names) {
  const node& n = b.node_at(norm);
  const auto refuse = [&](std::string_view why) {
    return inexpressible("node '" + n.name + "' can't stand before the product: " + std::string(why));
  };
  const shape d = b.dims(n.inputs[0]);
  if (normalize_axis(n.attributes.get_int("axis", -1), d.size()) + 1 != d.size())
    throw refuse("it spans more than the last dim");
  const row_operator* row = find_row_operator(n.op->domain, n.op->name);
  if (row == nullptr || (row->family != row_family::centered && row->family != row_family::root_mean_square))
    throw refuse("the frame knows no moments of its rows");
  b.bind_moments(norm, "moments.x", "moments.y");
  b.define_load("dnnopt_load_a", operand, index, names, ", const float2 moments");
  std::vector<index_expr> at = b.row_asked();
  if (at.empty()) throw refuse("the first operand does not read it");
  if (!(at.back() == k)) throw refuse("what is summed over is not its row");
  const std::uint32_t summed = *k.as_symbol();
  for (std::size_t i = 0; i + 1 < at.size(); ++i) {
    bool foreign = false;
    (void)substitute(at[i], [&](const index_expr& symbol) {
      const std::string& held = b.expressions().symbol_name(*symbol.as_symbol());
      const bool own = std::find(names.begin(), names.end(), held) != names.end() || held.front() == 'p';
      foreign = foreign || *symbol.as_symbol() == summed || !own;
      return symbol;
    });
    if (foreign) throw refuse("its rows depend on more than the row of the product");
    // Rows in padding are read nowhere, but their moments are computed.
    if (!kernel_builder::always_within(at[i], d[i])) at[i] = max(index_expr(0), min(at[i], d[i] - 1));
  }
  b.define_load("dnnopt_row_load", n.inputs[0], at, names);
  b.define("DNNOPT_ROW_MOMENTS", row->family == row_family::centered ? 1 : 2);
  b.define("DNNOPT_EPSILON",
           literal(compute_type::real, static_cast<double>(n.attributes.get_float("epsilon", 1e-5f))));
}

}  // namespace dnnopt::codegen

#endif  // DNNOPT_BACKEND_CODEGEN_FRAMES_PRODUCTS_NORMALIZED_ROWS_HPP
