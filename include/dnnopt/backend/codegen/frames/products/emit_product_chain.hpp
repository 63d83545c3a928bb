// Owns the kernel of two products of matrices, the second of the first one's small result: linear attention.
#ifndef DNNOPT_BACKEND_CODEGEN_FRAMES_PRODUCTS_EMIT_PRODUCT_CHAIN_HPP
#define DNNOPT_BACKEND_CODEGEN_FRAMES_PRODUCTS_EMIT_PRODUCT_CHAIN_HPP

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <dnnopt/backend/codegen/frames/products/choose.hpp>
#include <dnnopt/backend/codegen/frames/products/parameters.hpp>
#include <dnnopt/backend/codegen/frames/sources.hpp>

namespace dnnopt::codegen {

/// One work-item per matrix computes the small result in local memory and then the product with it. Where there are
/// fewer matrices than cores, several share the columns of one, and each computes the small result for itself.
/// Work: both products, the first once per share. Errors: unsupported where more than element-wise operators lies
/// between the products.
[[nodiscard]] inline lowered_node emit_product_chain(const lowering_site& site, const choice& chosen) {
  kernel_builder b(site.block, site.options.emitters);
  product_chain chain;
  (void)read_product_chain(b, site, chain);
  const lowering_site own{site.block, site.options, chain.first};
  const node& first = own.anchor_node();
  const node& second = site.anchor_node();
  const std::size_t stays = chain.rows_stay ? 0 : 1;
  const std::size_t other = 1 - chain.operand;
  const auto& groups = chain.small;
  const chain_extents extents = chain.extents();
  const auto& [matrices, small_rows, inner, length, columns] = extents;
  const index_expr z = b.index("z", matrices);
  const index_expr m = b.index("m", small_rows);
  const index_expr i = b.index("i", inner);
  const index_expr t = b.index("t", length);
  const index_expr n = b.index("n", columns);

  const std::optional<std::int64_t> share = chosen.find("share");
  const index_expr shares = share ? ceildiv(columns, *share) : index_expr(1);

  b.define("DNNOPT_M", small_rows);
  b.define("DNNOPT_I", inner);
  b.define("DNNOPT_T", length);
  b.define("DNNOPT_N", columns);
  b.define("DNNOPT_ROWS", chosen["rows"]);
  b.define("DNNOPT_VECTOR", chosen["vector"]);
  b.define("DNNOPT_VECTORS", chosen["vectors"]);
  b.define("DNNOPT_BLOCK_INNER", chosen["block_inner"]);
  if (share) b.define("DNNOPT_SHARE", *share);
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
  kernel_plan plan = b.finish(kernels::prelude, product_chain_frame, "product_chain");
  plan.global = {shares, index_expr(1), matrices};
  plan.local = {1, 1, 1};
  plan.flops = matrices * small_rows * inner * (length * shares + columns) * 2;
  lowered_node result;
  result.kernels.push_back(std::move(plan));
  return result;
}

}  // namespace dnnopt::codegen

#endif  // DNNOPT_BACKEND_CODEGEN_FRAMES_PRODUCTS_EMIT_PRODUCT_CHAIN_HPP
