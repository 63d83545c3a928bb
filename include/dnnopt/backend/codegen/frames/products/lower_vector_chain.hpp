// Owns the kernel of two products of one vector, one after the other: the tail of a squeeze-excite block.
#ifndef DNNOPT_BACKEND_CODEGEN_FRAMES_PRODUCTS_LOWER_VECTOR_CHAIN_HPP
#define DNNOPT_BACKEND_CODEGEN_FRAMES_PRODUCTS_LOWER_VECTOR_CHAIN_HPP

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <dnnopt/backend/codegen/frames/convolutions/lower_convolution.hpp>
#include <dnnopt/backend/codegen/frames/products/lower_matrix_product.hpp>

namespace dnnopt::codegen {

/// A product of a vector per image with constant weights: a convolution over one position, or a matrix product of rows.
struct vector_product {
  node_id id = no_node;
  std::int64_t length = 0;
  std::int64_t results = 0;
  bool convolution = false;

  [[nodiscard]] const node& n(const block_view& block) const { return block.g.node_at(id); }
  [[nodiscard]] std::vector<index_expr> input_index(const index_expr& z, const index_expr& k, std::size_t rank) const {
    std::vector<index_expr> at(rank, index_expr(0));
    at[0] = z;
    at[1] = k;
    return at;
  }
  [[nodiscard]] std::vector<index_expr> weight_index(const node& n, const index_expr& r, const index_expr& k,
                                                     std::size_t rank) const {
    std::vector<index_expr> at(rank, index_expr(0));
    const bool rows_first = convolution || n.attributes.get_int("transB", 0) != 0;
    at[0] = rows_first ? r : k;
    at[1] = rows_first ? k : r;
    return at;
  }
};

/// The product that a node is, or why it is none.
[[nodiscard]] inline std::string read_vector_product(const block_view& block, node_id id, vector_product& into) {
  const node& n = block.g.node_at(id);
  into.id = id;
  for (const value_id v : {n.inputs[0], n.inputs[1], n.outputs[0]})
    if (const c_type_row* type = find_c_type(block.g.facts(v).type);
        !block.g.facts(v).dims || type == nullptr || type->compute != compute_type::real)
      return "an operand is no float matrix";
  const shape& x = *block.g.facts(n.inputs[0]).dims;
  const shape& w = *block.g.facts(n.inputs[1]).dims;
  const shape& y = *block.g.facts(n.outputs[0]).dims;
  into.convolution = n.op->kind == computation_kind::convolution;
  if (into.convolution) {
    if (n.attributes.get_int("group", 1) != 1 || n.attributes.contains("output_padding") ||
        n.op->arity.most_inputs != 3)
      return "a grouped or transposed convolution";
    for (const shape* d : {&x, &w, &y})
      for (std::size_t k = 2; k < d->size(); ++k)
        if (!((*d)[k] == index_expr(1))) return "more than one position";
  } else if (n.op->kind != computation_kind::matrix_product || n.attributes.contains("equation") || x.size() != 2 ||
             w.size() != 2 || n.attributes.get_int("transA", 0) != 0) {
    return "no product of rows";
  }
  if (!block.g.facts(n.inputs[1]).is_constant()) return "the weights are not constant";
  if (!x[1].is_constant() || !y[1].is_constant()) return "an extent is not known before execution";
  into.length = x[1].constant();
  into.results = y[1].constant();
  return into.length < 1 || into.results < 1 ? "an empty product" : "";
}

/// The two products of a block: the one before the anchor, and the anchor.
struct vector_chain {
  vector_product first;
  vector_product second;
};

[[nodiscard]] inline std::string read_vector_chain(const lowering_site& site, vector_chain& chain) {
  node_id inner = no_node;
  for (const node_id id : site.block.members) {
    const op_info& op = *site.block.g.node_at(id).op;
    if (id == site.anchor || is_element_kind(op.kind) || op.element_cost != 0) continue;
    if (inner != no_node) return "more than two members need a frame";
    inner = id;
  }
  if (inner == no_node) return "one product only";
  if (std::string why = read_vector_product(site.block, inner, chain.first); !why.empty()) return why;
  if (std::string why = read_vector_product(site.block, site.anchor, chain.second); !why.empty()) return why;
  if (chain.first.results != chain.second.length) return "the vector between is rearranged";
  return {};
}

[[nodiscard]] inline std::string reject_vector_chain(const lowering_site& site) {
  vector_chain chain;
  if (std::string why = read_vector_chain(site, chain); !why.empty()) return why;
  // Where many work-groups run at once, the one of a vector reads all weights alone: beyond some size that takes longer
  // than a second launch, whose products all work-groups share.
  constexpr std::int64_t most_weights = 128 * 1024;
  const std::int64_t weights = 4 * chain.first.results * (chain.first.length + chain.second.results);
  if (!site.prefers_vectors() && weights > most_weights)
    return "one work-group would read " + std::to_string(weights) + " bytes of weights alone";
  return static_cast<std::uint64_t>(4 * (chain.first.length + chain.first.results)) + 4096 > site.local_memory()
             ? "the vectors take more than the local memory"
             : "";
}

/// The result of a product from the sum `value`: factors and bias.
[[nodiscard]] inline std::string finished_vector_product(kernel_builder& b, const lowering_site& site,
                                                         const vector_product& p, const std::vector<index_expr>& at) {
  const element_site s(b, p.id, 0, at);
  if (p.convolution) return biased(b, s, at[1]);
  lowering_site own{site.block, site.options, p.id};
  return finished_product(b, own, at);
}

[[nodiscard]] inline lowered_node lower_vector_chain(const lowering_site& site) {
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
  const bool lanes = site.prefers_vectors();
  const std::size_t most = site.options.device == nullptr || site.options.device->max_work_group_size == 0
                               ? 256
                               : site.options.device->max_work_group_size;
  const std::size_t group = lanes ? 1 : std::min<std::size_t>(1024, std::bit_floor(most));
  b.define("DNNOPT_GROUP", static_cast<std::int64_t>(group));
  b.define("DNNOPT_TEAM", static_cast<std::int64_t>(std::min<std::size_t>(group, 32)));
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
  kernel_plan plan = b.finish(kernels::prelude, kernels::vector_chain, "vector_chain");
  plan.global[0] = vectors * static_cast<std::int64_t>(group);
  plan.local = {group, 1, 1};
  plan.flops = vectors * (chain.first.length * chain.first.results + chain.second.length * chain.second.results) * 2;
  lowered_node result;
  result.kernels.push_back(std::move(plan));
  return result;
}

}  // namespace dnnopt::codegen

#endif  // DNNOPT_BACKEND_CODEGEN_FRAMES_PRODUCTS_LOWER_VECTOR_CHAIN_HPP
