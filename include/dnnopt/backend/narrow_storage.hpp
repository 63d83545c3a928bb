// Owns storage in fp16: which values of a float32 graph lie in memory as halves, while kernels go on to compute in
// fp32.
#ifndef DNNOPT_BACKEND_NARROW_STORAGE_HPP
#define DNNOPT_BACKEND_NARROW_STORAGE_HPP

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include <dnnopt/backend/program.hpp>
#include <dnnopt/small_float.hpp>

namespace dnnopt {

/// A graph with narrowed values, and their number.
struct narrowed_graph {
  std::shared_ptr<const graph> g;
  std::size_t intermediates = 0;
  std::size_t constants = 0;
};

namespace detail {

/// Constants of fewer elements stay as they are: scales, limits and the like, which decide more than they weigh.
inline constexpr std::int64_t least_narrowed_elements = 256;

/// The constant as halves; empty where a finite element has no half.
[[nodiscard]] inline tensor narrowed(const tensor& wide) {
  tensor half(dtype::float16, wide.dims());
  const auto from = wide.data<float>();
  const auto to = half.mutable_data<float16>();
  for (std::size_t i = 0; i < from.size(); ++i) {
    if (std::isfinite(from[i]) && std::fabs(from[i]) > 65504.0f) return {};
    to[i] = float16(from[i]);
  }
  return half;
}

/// Roots that somebody besides kernels of `p` reads or writes: the caller's tensors and those of host operators.
[[nodiscard]] inline std::vector<bool> roots_seen_outside(const program& p) {
  const graph& g = *p.g;
  std::vector<bool> outside(g.value_count(), false);
  for (const value_id v : g.inputs()) outside[p.roots[v]] = true;
  for (const value_id v : g.outputs()) outside[p.roots[v]] = true;
  for (const placed_node& step : p.steps) {
    if (step.where == placement::device || step.where == placement::alias) continue;
    for (const node_id id : step.members)
      for (const auto* values : {&g.node_at(id).inputs, &g.node_at(id).outputs})
        for (const value_id v : *values)
          if (v != no_value) outside[p.roots[v]] = true;
  }
  return outside;
}

/// Whether an element is a sum of products of two tensors that are both computed: nothing bounds it, where weights keep
/// what they multiply in range (linear attention sums over all positions and divides afterwards).
[[nodiscard]] inline bool is_unbounded_product(const graph& g, value_id v) {
  while (true) {
    const node_id producer = g.value_at(v).producer;
    if (producer == no_node) return false;
    const node& n = g.node_at(producer);
    if (n.op->kind == computation_kind::view) {
      v = n.inputs[0];
      continue;
    }
    return n.op->kind == computation_kind::matrix_product && n.inputs.size() >= 2 &&
           !g.facts(n.inputs[0]).is_constant() && !g.facts(n.inputs[1]).is_constant();
  }
}

}  // namespace detail

/// A copy of `g` in which intermediate float32 values and float32 constants that only kernels touch are stored as
/// float16; value_facts::narrowed marks them. Sums and all else inside kernels stay in fp32 (TFLite GPU stores and
/// computes so too, section 3). What the caller or a host operator sees keeps its type, as do small constants, those
/// with elements beyond fp16's range, and products of two computed tensors. Intermediates beyond the range are stored
/// as its end, +-65504, not as infinities. Precondition: the graph has its final form (its fusion plan stays). Errors:
/// those of make_program. Complexity: one lowering of the graph, O(bytes of constants).
[[nodiscard]] inline narrowed_graph narrow_storage(const std::shared_ptr<const graph>& g,
                                                   const codegen::lower_options& options) {
  const program wide = make_program(g, options, false);
  std::vector<bool> outside = detail::roots_seen_outside(wide);
  for (const placed_node& step : wide.steps)
    for (const value_id v : step.outputs)
      if (detail::is_unbounded_product(*g, v)) outside[wide.roots[v]] = true;
  auto copy = std::make_shared<graph>(*g);
  narrowed_graph result;
  const auto may = [&](value_id v) {
    return g->facts(v).type == dtype::float32 && g->facts(v).kind == value_kind::tensor && !outside[wide.roots[v]];
  };
  for (const placed_node& step : wide.steps)
    for (const value_id v : step.outputs) {
      if (!may(v) || g->facts(v).is_constant() || copy->facts(v).narrowed) continue;
      copy->facts(v).type = dtype::float16;
      copy->facts(v).narrowed = true;
      ++result.intermediates;
    }
  for (value_id v = 0; v < g->value_count(); ++v) {
    if (!g->facts(v).is_constant() || !may(v)) continue;
    if (g->facts(v).constant.size() < detail::least_narrowed_elements || g->value_at(v).uses.empty()) continue;
    tensor half = detail::narrowed(g->facts(v).constant);
    if (half.empty()) continue;
    value_facts& facts = copy->facts(v);
    facts.constant = std::move(half);
    facts.type = dtype::float16;
    facts.narrowed = true;
    ++result.constants;
  }
  result.g = std::move(copy);
  return result;
}

}  // namespace dnnopt

#endif  // DNNOPT_BACKEND_NARROW_STORAGE_HPP
