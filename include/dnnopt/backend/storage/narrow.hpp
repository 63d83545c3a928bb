// Owns storage in fp16: which values of a float32 graph lie in memory as halves, while kernels go on to compute in
// fp32.
#ifndef DNNOPT_BACKEND_STORAGE_NARROW_HPP
#define DNNOPT_BACKEND_STORAGE_NARROW_HPP

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include <dnnopt/backend/program/make_program.hpp>
#include <dnnopt/small_float.hpp>

namespace dnnopt {

/// A graph with narrowed values, and their number.
struct narrowed_graph {
  std::shared_ptr<const graph> g;
  std::size_t intermediates = 0;
  std::size_t constants = 0;
};

/// The elements of a float16 tensor as float32.
[[nodiscard]] inline tensor widened(const tensor& half) {
  tensor wide(dtype::float32, half.dims());
  const auto from = half.data<float16>();
  std::transform(from.begin(), from.end(), wide.mutable_data<float>().begin(),
                 [](float16 x) { return static_cast<float>(x); });
  return wide;
}

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

/// By root, who besides kernels of a program sees a value.
struct seen_outside {
  std::vector<bool> always;   ///< the caller, a host operator that makes it, or a body of control flow
  std::vector<bool> by_host;  ///< a host operator reads it
  [[nodiscard]] bool any(value_id root) const { return always[root] || by_host[root]; }
};

/// Linear in the program. Steps of known outputs read nothing: these are made of dims.
[[nodiscard]] inline seen_outside roots_seen_outside(const program& p) {
  const graph& g = *p.g;
  seen_outside outside{std::vector<bool>(g.value_count(), false), std::vector<bool>(g.value_count(), false)};
  for (const value_id v : g.inputs()) outside.always[p.roots[v]] = true;
  for (const value_id v : g.outputs()) outside.always[p.roots[v]] = true;
  for (const placed_node& step : p.steps) {
    if (step.where == placement::device || step.where == placement::alias) continue;
    for (const node_id id : step.members) {
      const node& n = g.node_at(id);
      for (const value_id v : n.outputs)
        if (v != no_value) outside.always[p.roots[v]] = true;
      if (!is_steered(step.where)) continue;
      std::vector<bool>& readers = step.where == placement::bodies ? outside.always : outside.by_host;
      for (const value_id v : n.inputs)
        if (v != no_value) readers[p.roots[v]] = true;
    }
  }
  return outside;
}

/// Whether float16 holds every element of a constant.
[[nodiscard]] inline bool fits_halves(const tensor& constant) {
  const auto elements = constant.data<float>();
  return std::all_of(elements.begin(), elements.end(), [](float x) { return static_cast<float>(float16(x)) == x; });
}

/// Whether a step does nothing but move and choose elements, all float32 ones from values that `narrow` stores as
/// float16 or constants that fit: to store what it makes as float16 loses nothing.
[[nodiscard]] inline bool moves_halves(const graph& narrow, const graph& wide, const placed_node& step) {
  for (const node_id id : step.members) {
    const node& n = wide.node_at(id);
    if (n.op->kind != computation_kind::view && n.op->kind != computation_kind::indexed_read && !n.op->selects)
      return false;
    for (const value_id in : n.inputs) {
      if (in == no_value || wide.facts(in).type != dtype::float32) continue;
      const node_id producer = wide.value_at(in).producer;
      const bool inside = std::find(step.members.begin(), step.members.end(), producer) != step.members.end();
      if (inside || narrow.facts(in).narrowed) continue;
      if (!wide.facts(in).is_constant() || !fits_halves(wide.facts(in).constant)) return false;
    }
  }
  return true;
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
/// computes so too, section 3). What the caller sees, what a host operator makes and what one reads keeps its type (but
/// where kernels only moved it from what is stored so: `widened` gives the host float32), as do small constants, those
/// with elements beyond fp16's range, and products of two computed tensors. Intermediates beyond the range are stored
/// as its end, +-65504, not as infinities. Precondition: the graph has its final form (its fusion plan stays). Errors:
/// those of make_program. Complexity: one lowering of the graph, O(bytes of constants).
[[nodiscard]] inline narrowed_graph narrow_storage(const program& wide) {
  const std::shared_ptr<const graph>& g = wide.g;
  detail::seen_outside seen = detail::roots_seen_outside(wide);
  std::vector<std::size_t> writers(g->value_count(), 0);
  for (const placed_node& step : wide.steps)
    for (const value_id v : step.outputs) ++writers[wide.roots[v]];
  for (const placed_node& step : wide.steps)
    for (const value_id v : step.outputs)
      if (detail::is_unbounded_product(*g, v)) seen.always[wide.roots[v]] = true;
  auto copy = std::make_shared<graph>(*g);
  narrowed_graph result;
  const auto may = [&](value_id v) {
    return g->facts(v).type == dtype::float32 && g->facts(v).kind == value_kind::tensor && !seen.always[wide.roots[v]];
  };
  const auto loses_nothing = [&](const placed_node& step, value_id v) {
    return wide.roots[v] == v && writers[v] == 1 && detail::moves_halves(*copy, *g, step);
  };
  for (const placed_node& step : wide.steps)
    for (const value_id v : step.outputs) {
      if (!may(v) || g->facts(v).is_constant() || copy->facts(v).narrowed) continue;
      if (seen.by_host[wide.roots[v]] && !loses_nothing(step, v)) continue;
      copy->facts(v).type = dtype::float16;
      copy->facts(v).narrowed = true;
      ++result.intermediates;
    }
  for (value_id v = 0; v < g->value_count(); ++v) {
    if (!g->facts(v).is_constant() || !may(v) || seen.by_host[wide.roots[v]]) continue;
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

/// The same of a graph, which it lowers first.
[[nodiscard]] inline narrowed_graph narrow_storage(const std::shared_ptr<const graph>& g,
                                                   const codegen::lower_options& options) {
  return narrow_storage(make_program(g, options, false));
}

}  // namespace dnnopt

#endif  // DNNOPT_BACKEND_STORAGE_NARROW_HPP
