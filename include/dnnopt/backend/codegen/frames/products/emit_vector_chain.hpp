// Owns the kernel of two products of one vector, one after the other: the tail of a squeeze-excite block.
#ifndef DNNOPT_BACKEND_CODEGEN_FRAMES_PRODUCTS_EMIT_VECTOR_CHAIN_HPP
#define DNNOPT_BACKEND_CODEGEN_FRAMES_PRODUCTS_EMIT_VECTOR_CHAIN_HPP

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <dnnopt/backend/codegen/frames/convolutions/convolution_shape.hpp>
#include <dnnopt/backend/codegen/frames/products/choose.hpp>
#include <dnnopt/backend/codegen/frames/products/parameters.hpp>
#include <dnnopt/backend/codegen/frames/sources.hpp>

namespace dnnopt::codegen {

/// The result of a product from the sum `value`: factors and bias.
[[nodiscard]] inline std::string finished_vector_product(kernel_builder& b, const lowering_site& site,
                                                         const vector_product& p, const std::vector<index_expr>& at) {
  const element_site s(b, p.id, 0, at);
  if (p.convolution) return biased(b, s, at[1]);
  lowering_site own{site.block, site.options, p.id};
  return finished_product(b, own, at);
}

[[nodiscard]] inline lowered_node emit_vector_chain(const lowering_site& site, const choice& chosen) {
  vector_chain chain;
  (void)read_vector_chain(site, chain);
  kernel_builder b(site.block, site.options.emitters);
  const node& first = chain.first.n(site.block);
  const node& second = chain.second.n(site.block);
  const index_expr vectors = b.dims(first.inputs[0])[0];
  const index_expr z = b.index("z", vectors);
  const index_expr k = b.index("k", chain.first.length);
  const index_expr h = b.index("h", chain.first.results);
  const index_expr n = b.index("n", chain.second.results);
  b.define("DNNOPT_K", chain.first.length);
  b.define("DNNOPT_H", chain.first.results);
  b.define("DNNOPT_N", chain.second.results);
  const auto group = static_cast<std::size_t>(chosen["group"]);
  b.define("DNNOPT_GROUP", chosen["group"]);
  b.define("DNNOPT_TEAM", chosen["team"]);
  b.define_load("dnnopt_load_x", first.inputs[0], chain.first.input_index(z, k, b.dims(first.inputs[0]).size()),
                std::vector<std::string>{"z", "k"});
  b.define_load("dnnopt_load_first", first.inputs[1],
                chain.first.weight_index(first, h, k, b.dims(first.inputs[1]).size()),
                std::vector<std::string>{"h", "k"});
  b.define_scalar_function("dnnopt_hidden", std::vector<std::string>{"z", "h"}, compute_type::real, [&] {
    const std::vector<index_expr> at = chain.first.input_index(z, h, b.dims(first.outputs[0]).size());
    b.bind(first.outputs[0], at, finished_vector_product(b, site, chain.first, at));
    return b.emit(second.inputs[0], chain.second.input_index(z, h, b.dims(second.inputs[0]).size()));
  });
  b.define_load("dnnopt_load_second", second.inputs[1],
                chain.second.weight_index(second, n, h, b.dims(second.inputs[1]).size()),
                std::vector<std::string>{"n", "h"});
  const std::vector<index_expr> at = chain.second.input_index(z, n, b.dims(second.outputs[0]).size());
  b.define_store("dnnopt_store", second.outputs[0], at, std::vector<std::string>{"z", "n"}, compute_type::real,
                 [&] { return finished_vector_product(b, site, chain.second, at); });
  kernel_plan plan = b.finish(kernels::prelude, vector_chain_frame, "vector_chain");
  plan.global[0] = vectors * static_cast<std::int64_t>(group);
  plan.local = {group, 1, 1};
  plan.flops = vectors * (chain.first.length * chain.first.results + chain.second.length * chain.second.results) * 2;
  lowered_node result;
  result.kernels.push_back(std::move(plan));
  return result;
}

}  // namespace dnnopt::codegen

#endif  // DNNOPT_BACKEND_CODEGEN_FRAMES_PRODUCTS_EMIT_VECTOR_CHAIN_HPP
