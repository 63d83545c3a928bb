// Owns reduction dimensions: along which dims of an operand a node adds its elements up (SmartMem section 3.2.2).
#ifndef DNNOPT_BACKEND_STORAGE_REDUCTION_DIMS_HPP
#define DNNOPT_BACKEND_STORAGE_REDUCTION_DIMS_HPP

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include <dnnopt/graph.hpp>
#include <dnnopt/ops/einsum_equation.hpp>
#include <dnnopt/ops/reduction.hpp>

namespace dnnopt {

namespace detail {

/// Of a product: the dims of an operand whose label the output lacks.
[[nodiscard]] inline std::vector<std::size_t> summed_dims(const graph& g, const node& n, std::size_t slot) {
  if (slot >= 2) return {};
  const std::size_t rank = g.facts(n.inputs[slot]).dims->size();
  if (const std::string* equation = n.attributes.find_as<std::string>("equation")) {
    std::vector<std::size_t> ranks;
    for (const value_id in : n.inputs) {
      if (in == no_value || !g.facts(in).dims) return {};
      ranks.push_back(g.facts(in).dims->size());
    }
    const einsum_equation e = parse_einsum(*equation, ranks);
    std::vector<std::size_t> dims;
    for (std::size_t d = 0; d < rank; ++d)
      if (std::find(e.output.begin(), e.output.end(), e.operands[slot][d]) == e.output.end()) dims.push_back(d);
    return dims;
  }
  const bool transposed = n.attributes.get_int(slot == 0 ? "transA" : "transB", 0) != 0;
  if (rank == 1) return {0};
  return {(slot == 0) == transposed ? rank - 2 : rank - 1};
}

}  // namespace detail

/// The reduction dims of input `slot` of a node, the one that runs fastest in rows last; empty where its elements are
/// not added up (or compared, for a maximum). By the kind of computation and its attributes. Where axes are not known
/// before execution, nothing is said. Precondition: the rank of the input is known.
[[nodiscard]] inline std::vector<std::size_t> reduction_dims(const graph& g, node_id id, std::size_t slot) {
  const node& n = g.node_at(id);
  if (slot >= n.inputs.size() || n.inputs[slot] == no_value) return {};
  const std::size_t rank = g.facts(n.inputs[slot]).dims->size();
  const auto from = [&](std::size_t first) {
    std::vector<std::size_t> dims;
    for (std::size_t d = first; d < rank; ++d) dims.push_back(d);
    return dims;
  };
  switch (n.op->kind) {
    case computation_kind::convolution:
      return slot < 2 && rank > 2 ? std::vector<std::size_t>{1} : std::vector<std::size_t>();
    case computation_kind::matrix_product:
      return detail::summed_dims(g, n, slot);
    case computation_kind::attention:
      // Scores are sums over the features of queries and keys, results are sums over the rows of values.
      return slot < 2                 ? std::vector<std::size_t>{rank - 1}
             : slot == 2 && rank >= 2 ? std::vector<std::size_t>{rank - 2}
                                      : std::vector<std::size_t>();
    case computation_kind::softmax:
      return slot == 0 ? std::vector<std::size_t>{normalize_axis(n.attributes.get_int("axis", -1), rank)}
                       : std::vector<std::size_t>();
    case computation_kind::normalization:
      if (slot != 0) return {};
      // Planes where no axis is stated (instances, groups of channels).
      if (!n.attributes.contains("axis") && rank > 2 && !n.op->normalizes_rows) return from(2);
      return from(normalize_axis(n.attributes.get_int("axis", -1), rank));
    case computation_kind::reduction: {
      if (slot != 0) return {};
      if (n.op->reduces_planes) return rank > 2 ? from(2) : std::vector<std::size_t>();
      std::vector<std::int64_t> axes;
      if (n.inputs.size() > 1 && n.inputs[1] != no_value) {
        if (!g.facts(n.inputs[1]).is_constant()) return {};
        axes = integers_of(g.facts(n.inputs[1]).constant);
      }
      const std::vector<bool> reduced =
          ops::reduced_dims(axes, rank, n.attributes.get_int("noop_with_empty_axes", 0) != 0);
      std::vector<std::size_t> dims;
      for (std::size_t d = 0; d < rank; ++d)
        if (reduced[d]) dims.push_back(d);
      return dims;
    }
    default:
      return {};
  }
}

}  // namespace dnnopt

#endif  // DNNOPT_BACKEND_STORAGE_REDUCTION_DIMS_HPP
