// Owns the kernel of two products of matrices, the second of the first one's small result: linear attention.
#ifndef DNNOPT_BACKEND_CODEGEN_FRAMES_PRODUCTS_LOWER_PRODUCT_CHAIN_HPP
#define DNNOPT_BACKEND_CODEGEN_FRAMES_PRODUCTS_LOWER_PRODUCT_CHAIN_HPP

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <dnnopt/backend/codegen/frames/products/lower_matrix_product.hpp>

namespace dnnopt::codegen {

/// Two products: the anchor's, and that of a member whose result is one of its operands.
struct product_chain {
  node_id first = no_node;
  contraction small;        ///< what the first one computes
  contraction whole;        ///< what the anchor computes
  std::size_t operand = 0;  ///< of the anchor: the small result
  bool rows_stay = true;    ///< rows of the small result are no inner elements of the anchor (else its columns are not)

  /// The anchor's result where the small result's own index is `m` and that of the other operand `n`.
  [[nodiscard]] std::vector<index_expr> output_index(kernel_builder& b, const index_expr& z, const index_expr& m,
                                                     const index_expr& n) const {
    return operand == 0 ? whole.output_index(b, z, m, n) : whole.output_index(b, z, n, m);
  }
};

/// The products of a block, or why they are none.
[[nodiscard]] inline std::string read_product_chain(kernel_builder& b, const lowering_site& site,
                                                    product_chain& chain) {
  for (const node_id id : site.block.members) {
    const op_info& op = *site.block.g.node_at(id).op;
    if (id == site.anchor || is_element_kind(op.kind) || op.element_cost != 0) continue;
    if (chain.first != no_node) return "more than two members need a frame";
    chain.first = id;
  }
  if (chain.first == no_node) return "one product only";
  const lowering_site own{site.block, site.options, chain.first};
  if (own.anchor_node().op->kind != computation_kind::matrix_product) return "no product of matrices";
  for (const lowering_site* each : {&own, &site})
    if (std::string why = reject_matrix_product(*each); !why.empty()) return why;
  chain.small = contraction_of(b, own).value();
  chain.whole = contraction_of(b, site).value();
  const value_id result = own.anchor_node().outputs[0];
  const auto& operands = site.anchor_node().inputs;
  const bool as_first = stands_behind(site.block, operands[0], result);
  if (as_first == stands_behind(site.block, operands[1], result)) return "not one operand is the other product";
  chain.operand = as_first ? 0 : 1;
  if (!(b.dims(operands[chain.operand]) == b.dims(result))) return "the matrix between is rearranged";
  // The dims of the small result that labels of a group stand for, by those of the product that computes it and of the
  // one that reads it.
  const auto places = [](const std::vector<int>& labels, const std::vector<int>& group) {
    std::vector<std::size_t> found;
    for (std::size_t d = 0; d < labels.size(); ++d)
      if (std::find(group.begin(), group.end(), labels[d]) != group.end()) found.push_back(d);
    return found;
  };
  const auto rows = places(chain.small.output, chain.small.rows);
  const auto columns = places(chain.small.output, chain.small.columns);
  const std::vector<int>& read = chain.whole.operands[chain.operand];
  const auto outer = places(read, chain.operand == 0 ? chain.whole.rows : chain.whole.columns);
  const auto inner = places(read, chain.whole.inner);
  chain.rows_stay = rows == outer && columns == inner;
  if (!chain.rows_stay && !(columns == outer && rows == inner)) return "its dims are not those of the small result";
  if (!(element_count(chain.small.extents_of(chain.small.batch)) ==
        element_count(chain.whole.extents_of(chain.whole.batch))))
    return "matrices are read more than once";
  if (!element_count(chain.small.extents_of(chain.small.rows)).is_constant() ||
      !element_count(chain.small.extents_of(chain.small.columns)).is_constant())
    return "the extents of the small result are not known before execution";
  return {};
}

[[nodiscard]] inline std::string reject_product_chain(const lowering_site& site) {
  // A work-group in step would leave most of its work-items idle over a matrix that small.
  if (!site.prefers_vectors()) return "the device does not prefer wide vectors";
  kernel_builder b(site.block, site.options.emitters);
  product_chain chain;
  return read_product_chain(b, site, chain);
}

/// One work-item per matrix computes the small result in local memory and then the product with it. Where there are
/// fewer matrices than cores, several share the columns of one, and each computes the small result for itself.
/// Work: both products, the first once per share. Errors: unsupported where the small result takes more than the local
/// memory, or more than element-wise operators lies between the products.
[[nodiscard]] inline lowered_node lower_product_chain(const lowering_site& site) {
  kernel_builder b(site.block, site.options.emitters);
  product_chain chain;
  (void)read_product_chain(b, site, chain);
  const lowering_site own{site.block, site.options, chain.first};
  const node& first = own.anchor_node();
  const node& second = site.anchor_node();
  const std::size_t stays = chain.rows_stay ? 0 : 1;
  const std::size_t other = 1 - chain.operand;
  const auto& groups = chain.small;
  const index_expr matrices = element_count(groups.extents_of(groups.batch));
  const index_expr small_rows = element_count(groups.extents_of(chain.rows_stay ? groups.rows : groups.columns));
  const index_expr inner = element_count(groups.extents_of(chain.rows_stay ? groups.columns : groups.rows));
  const index_expr length = element_count(groups.extents_of(groups.inner));
  const index_expr columns = element_count(chain.whole.extents_of(other == 0 ? chain.whole.rows : chain.whole.columns));
  const index_expr z = b.index("z", matrices);
  const index_expr m = b.index("m", small_rows);
  const index_expr i = b.index("i", inner);
  const index_expr t = b.index("t", length);
  const index_expr n = b.index("n", columns);

  panel_sizes p = choose_panels(site, {matrices, small_rows, columns, inner}, false, false);
  if (inner.constant() <= p.vector) p.vectors = 1;
  const std::int64_t pitch = round_up(inner.constant(), p.columns());
  std::int64_t block = std::min<std::int64_t>(length.as_constant().value_or(128), 128);
  const auto bytes = [&] {
    return static_cast<std::uint64_t>(4 * (round_up(small_rows.constant(), p.rows) * pitch + p.rows * block +
                                           pitch * block + inner.constant() * p.columns()));
  };
  while (bytes() > site.local_memory()) {
    if (block <= 16) throw error(errc::unsupported, "the small result takes more than the local memory");
    block /= 2;
  }
  const std::int64_t units = std::max<std::int64_t>(site.options.device->compute_units, 1);
  const std::int64_t each = std::max<std::int64_t>(matrices.as_constant().value_or(units), 1);
  const std::int64_t share =
      columns.is_constant() && units > each ? round_up(ceildiv(columns, units / each).constant(), p.columns()) : 0;
  const index_expr shares = share > 0 ? ceildiv(columns, share) : index_expr(1);

  b.define("DNNOPT_M", small_rows);
  b.define("DNNOPT_I", inner);
  b.define("DNNOPT_T", length);
  b.define("DNNOPT_N", columns);
  b.define("DNNOPT_ROWS", p.rows);
  b.define("DNNOPT_VECTOR", p.vector);
  b.define("DNNOPT_VECTORS", p.vectors);
  b.define("DNNOPT_BLOCK_INNER", std::max<std::int64_t>(block, 1));
  if (share > 0) b.define("DNNOPT_SHARE", share);
  b.define("DNNOPT_T_FIRST", inner_first(chain.small, 1 - stays) ? 1 : 0);
  b.define("DNNOPT_I_FIRST", inner_first(chain.whole, other) ? 1 : 0);
  b.define_load("dnnopt_load_rows", first.inputs[stays], chain.small.operand_index(b, stays, z, m, t),
                std::vector<std::string>{"z", "m", "t"});
  b.define_load("dnnopt_load_inner", first.inputs[1 - stays], chain.small.operand_index(b, 1 - stays, z, i, t),
                std::vector<std::string>{"z", "i", "t"});
  std::string changed;
  b.define_scalar_function("dnnopt_small", std::vector<std::string>{"z", "m", "i"}, compute_type::real, [&] {
    const std::vector<index_expr> at = groups.output_index(b, z, chain.rows_stay ? m : i, chain.rows_stay ? i : m);
    b.bind(first.outputs[0], at, finished_product(b, own, at));
    changed = b.emit(second.inputs[chain.operand], chain.whole.operand_index(b, chain.operand, z, m, i));
    return changed;
  });
  b.define("DNNOPT_SMALL_CHANGES", changed == "value" ? 0 : 1);
  b.define_load("dnnopt_load_columns", second.inputs[other], chain.whole.operand_index(b, other, z, n, i),
                std::vector<std::string>{"z", "i", "n"});
  const std::vector<index_expr> at = chain.output_index(b, z, m, n);
  b.define_store("dnnopt_store", second.outputs[0], at, std::vector<std::string>{"z", "m", "n"}, compute_type::real,
                 [&] { return finished_product(b, site, at); });
  kernel_plan plan = b.finish(kernels::prelude, kernels::product_chain, "product_chain");
  plan.global = {shares, index_expr(1), matrices};
  plan.local = {1, 1, 1};
  plan.flops = matrices * small_rows * inner * (length * shares + columns) * 2;
  lowered_node result;
  result.kernels.push_back(std::move(plan));
  return result;
}

}  // namespace dnnopt::codegen

#endif  // DNNOPT_BACKEND_CODEGEN_FRAMES_PRODUCTS_LOWER_PRODUCT_CHAIN_HPP
