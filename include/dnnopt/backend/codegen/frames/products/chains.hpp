// Owns which blocks are two products, one of the other's result: of matrices, or of one vector.
#ifndef DNNOPT_BACKEND_CODEGEN_FRAMES_PRODUCTS_CHAINS_HPP
#define DNNOPT_BACKEND_CODEGEN_FRAMES_PRODUCTS_CHAINS_HPP

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <dnnopt/backend/codegen/frames/products/contraction.hpp>

namespace dnnopt::codegen {

/// The extents of two products of matrices, in the symbols of a builder.
struct chain_extents {
  index_expr matrices;
  index_expr rows;     ///< of the small result that are rows (or columns) of the whole one
  index_expr inner;    ///< of the small result that the second product sums over
  index_expr length;   ///< that the first product sums over
  index_expr columns;  ///< of the other operand of the second product
};

/// Two products: the anchor's, and that of a member whose result is one of its operands.
struct product_chain {
  node_id first = no_node;
  contraction small;        ///< what the first one computes
  contraction whole;        ///< what the anchor computes
  std::size_t operand = 0;  ///< of the anchor: the small result
  bool rows_stay = true;    ///< rows of the small result are no inner elements of the anchor (else its columns are not)

  [[nodiscard]] chain_extents extents() const {
    const auto count = [](const contraction& c, const std::vector<int>& labels) {
      return element_count(c.extents_of(labels));
    };
    return {count(small, small.batch), count(small, rows_stay ? small.rows : small.columns),
            count(small, rows_stay ? small.columns : small.rows), count(small, small.inner),
            count(whole, operand == 1 ? whole.rows : whole.columns)};
  }
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

}  // namespace dnnopt::codegen

#endif  // DNNOPT_BACKEND_CODEGEN_FRAMES_PRODUCTS_CHAINS_HPP
