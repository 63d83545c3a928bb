// Owns the program of a graph before it meets a device: where each node runs and why, its kernels, and their order.
#ifndef DNNOPT_BACKEND_PROGRAM_HPP
#define DNNOPT_BACKEND_PROGRAM_HPP

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dnnopt/backend/codegen/lower.hpp>
#include <dnnopt/graph.hpp>
#include <dnnopt/passes/rdp.hpp>
#include <dnnopt/passes/remove_identity.hpp>

namespace dnnopt {

/// Where a node runs.
enum class placement : std::uint8_t {
  device,  ///< as kernels
  host,    ///< on the reference backend: a fallback, with a reason
  known,   ///< nowhere: RDP knows its outputs as expressions of symbols, and they are evaluated where they are read
  alias,   ///< nowhere: its output is its input's memory under another shape
  sizes,   ///< on the host, to learn a size that only data tells (a Range up to a computed limit): no fallback
};

/// Whether the host computes the node during a run.
[[nodiscard]] constexpr bool is_on_host(placement where) noexcept {
  return where == placement::host || where == placement::sizes;
}

/// "device", "host", "shape" or "alias".
[[nodiscard]] constexpr std::string_view name_of(placement where) noexcept {
  constexpr std::string_view names[] = {"device", "host", "known", "alias", "sizes"};
  return names[static_cast<unsigned>(where)];
}

/// One node with its place and, on the device, its kernels.
struct placed_node {
  node_id id = no_node;
  placement where = placement::host;
  std::string reason;  ///< why it is not on the device; empty there
  codegen::lowered_node lowered;
};

/// Nodes in execution order over a graph that must not be edited meanwhile.
struct program {
  std::shared_ptr<const graph> g;
  std::vector<placed_node> steps;
  std::vector<value_id> roots;  ///< for every value, the value whose memory holds it
  std::size_t crossings = 0;    ///< changes from device to host operators or back along the order

  /// The device commands of one inference.
  [[nodiscard]] std::size_t kernel_count() const {
    std::size_t count = 0;
    for (const placed_node& step : steps) count += step.lowered.kernels.size();
    return count;
  }
  /// Nodes that fall back to the host.
  [[nodiscard]] std::size_t host_count() const {
    return static_cast<std::size_t>(
        std::count_if(steps.begin(), steps.end(), [](const auto& s) { return s.where == placement::host; }));
  }
};

namespace detail {

/// Whether the node's only wanted output holds its first input's elements in the same row-major order and number, so
/// that it can share the input's memory.
[[nodiscard]] inline bool is_flat_view(const graph& g, node_id id) {
  const node& n = g.node_at(id);
  if (n.op->view == nullptr || n.outputs.size() != 1 || n.outputs[0] == no_value) return false;
  for (const value_id in : n.inputs)
    if (in != no_value && !g.facts(in).dims) return false;
  if (!g.facts(n.outputs[0]).dims) return false;
  const codegen::block_view block{g, {id}, {n.outputs[0]}};
  codegen::kernel_builder b(block, {});
  const shape out = b.dims(n.outputs[0]);
  const index_expr i = b.index("i", element_count(out));
  std::vector<const value_facts*> storage;
  const node_facts facts = b.facts_of(id, storage);
  single_piece view;
  if (!state_view(view, *n.op, facts, 0, b.index_at(out, i)) || !view.valid || !view.found) return false;
  const value_id source = n.inputs.at(view.found->first);
  if (source == no_value || view.found->first != 0) return false;
  if (!(element_count(b.dims(source)) == element_count(out))) return false;
  return b.offset_of(source, view.found->second) == i;
}

/// The symbols of an expression, appended.
inline void collect_symbols(const index_expr& e, std::set<std::uint32_t>& into) {
  (void)substitute(e, [&](const index_expr& symbol) {
    into.insert(*symbol.as_symbol());
    return symbol;
  });
}

[[nodiscard]] inline std::set<std::uint32_t> symbols_of(const value_facts& facts) {
  std::set<std::uint32_t> symbols;
  if (facts.dims)
    for (const index_expr& dim : *facts.dims) collect_symbols(dim, symbols);
  return symbols;
}

}  // namespace detail

/// Places every node, lowers what runs on the device, and orders nodes so that the device's share is cut into few parts
/// (TFLite GPU section 3.1: each crossing synchronizes once).
///
/// Precondition: rdp has run. With `require_device` a host fallback is errc::no_kernel naming all such nodes.
[[nodiscard]] inline program make_program(std::shared_ptr<const graph> shared, const codegen::lower_options& options,
                                          bool require_device) {
  const graph& g = *shared;
  program result;
  result.g = std::move(shared);
  result.roots.resize(g.value_count());
  for (value_id v = 0; v < g.value_count(); ++v) result.roots[v] = v;

  const std::vector<node_id> order = g.topological_order();
  std::vector<placed_node> placed(g.node_limit());
  // Symbols that are bound once the nodes before have run; who brings a new one has to run where sizes can be read.
  std::set<std::uint32_t> bound;
  for (const value_id in : g.inputs()) bound.merge(detail::symbols_of(g.facts(in)));
  std::string refused;
  for (const node_id id : order) {
    const node& n = g.node_at(id);
    placed_node& p = placed[id];
    p.id = id;
    bool known = !n.outputs.empty();
    std::vector<value_id> wanted;
    for (const value_id out : n.outputs) {
      if (out == no_value) continue;
      if (!g.value_at(out).uses.empty() || g.is_output(out)) wanted.push_back(out);
      known = known && g.facts(out).elements.has_value();
    }
    if (known) {
      p.where = placement::known;
      p.reason = "its outputs are expressions of dims";
      continue;
    }
    bool brings_symbols = false;
    for (const value_id out : n.outputs) {
      if (out == no_value) continue;
      for (const std::uint32_t symbol : detail::symbols_of(g.facts(out)))
        brings_symbols = bound.insert(symbol).second || brings_symbols;
    }
    if (brings_symbols) {
      // Integers generated or spread up to a computed limit are arithmetic of sizes.
      const bool sizes = n.op->kind == computation_kind::generator ||
                         (n.op->kind == computation_kind::view && is_integer(g.facts(n.outputs[0]).type));
      p.where = sizes ? placement::sizes : placement::host;
      p.reason = "the size of its output depends on data";
      if (p.where == placement::host) refused += "\n  " + detail::describe(n) + ": " + p.reason;
      continue;
    }
    if (detail::is_flat_view(g, id)) {
      p.where = placement::alias;
      p.reason = "its output is its input under another shape";
      result.roots[n.outputs[0]] = result.roots[n.inputs[0]];
      continue;
    }
    try {
      p.lowered = codegen::lower(codegen::block_view{g, {id}, wanted}, options);
      p.where = placement::device;
    } catch (const error& e) {
      if (e.code() != errc::unsupported && e.code() != errc::shape_mismatch && e.code() != errc::unbound_symbol) throw;
      p.where = placement::host;
      p.reason = e.what();
      refused += "\n  node '" + n.name + "' (" + std::string(n.op->name) + "): " + e.what();
    }
  }
  if (require_device && !refused.empty()) throw error(errc::no_kernel, "operators without a kernel:" + refused);

  // Kahn's algorithm with two ready sets: all that can run where the last node ran comes first.
  std::vector<std::size_t> pending(g.node_limit(), 0);
  std::set<node_id> ready_device;
  std::set<node_id> ready_host;
  const auto make_ready = [&](node_id id) { (is_on_host(placed[id].where) ? ready_host : ready_device).insert(id); };
  for (const node_id id : order) {
    pending[id] = boost::in_degree(id, g.dependence());
    if (pending[id] == 0) make_ready(id);
  }
  bool on_device = true;
  bool any_device = false;
  bool any_host = false;
  while (!ready_device.empty() || !ready_host.empty()) {
    if ((on_device ? ready_device : ready_host).empty()) on_device = !on_device;
    std::set<node_id>& from = on_device ? ready_device : ready_host;
    const node_id id = *from.begin();
    from.erase(from.begin());
    if (placed[id].where == placement::device) {
      if (any_host) ++result.crossings;
      any_device = true;
      any_host = false;
    } else if (is_on_host(placed[id].where)) {
      if (any_device) ++result.crossings;
      any_host = true;
      any_device = false;
    }
    const auto [first, last] = boost::out_edges(id, g.dependence());
    for (auto edge = first; edge != last; ++edge) {
      const auto to = static_cast<node_id>(boost::target(*edge, g.dependence()));
      if (--pending[to] == 0) make_ready(to);
    }
    result.steps.push_back(std::move(placed[id]));
  }
  return result;
}

}  // namespace dnnopt

#endif  // DNNOPT_BACKEND_PROGRAM_HPP
