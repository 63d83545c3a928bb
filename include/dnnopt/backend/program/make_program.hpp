// Owns the way from a graph to its program: units are placed, lowered, and put into an order.
#ifndef DNNOPT_BACKEND_PROGRAM_MAKE_PROGRAM_HPP
#define DNNOPT_BACKEND_PROGRAM_MAKE_PROGRAM_HPP

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include <dnnopt/backend/codegen/lower.hpp>
#include <dnnopt/backend/program/place_units.hpp>
#include <dnnopt/backend/program/program.hpp>
#include <dnnopt/graph.hpp>
#include <dnnopt/passes/fusion/roles.hpp>

namespace dnnopt {

namespace detail {

/// Which units wait for which.
struct unit_dependences {
  std::vector<std::vector<std::size_t>> readers;  ///< by unit: those that wait for it
  std::vector<std::size_t> pending;               ///< by unit: how many it waits for
};

[[nodiscard]] inline unit_dependences dependences_of(const graph& g, const std::vector<placed_node>& units,
                                                     const std::unordered_map<std::uint32_t, node_id>& late) {
  std::vector<std::size_t> stored_by(g.value_count(), units.size());
  for (std::size_t u = 0; u < units.size(); ++u)
    for (const value_id out : units[u].outputs) stored_by[out] = u;
  // Whoever needs a size that only data tell runs after the node that tells it.
  const auto tellers = fusion::size_tellers(g, late);
  std::vector<std::size_t> unit_of(g.node_limit(), units.size());
  for (std::size_t u = 0; u < units.size(); ++u)
    for (const node_id id : units[u].members) unit_of[id] = u;
  unit_dependences made{std::vector<std::vector<std::size_t>>(units.size()), std::vector<std::size_t>(units.size(), 0)};
  for (std::size_t u = 0; u < units.size(); ++u) {
    std::set<std::size_t> sources;
    // What is known from dims waits for nobody's elements: a block may read the shape of what it computes itself.
    if (units[u].where != placement::known)
      for (const node_id id : units[u].members)
        for (const value_id in : g.node_at(id).inputs)
          if (in != no_value && stored_by[in] < units.size() && stored_by[in] != u) {
            const node_id producer = g.value_at(in).producer;
            // A view that the unit computes for itself may be stored by another one too.
            if (std::find(units[u].members.begin(), units[u].members.end(), producer) == units[u].members.end())
              sources.insert(stored_by[in]);
          }
    if (!tellers.empty())
      for (const node_id id : units[u].members)
        for (const node_id bringer : fusion::size_sources(g, id, tellers))
          if (unit_of[bringer] < units.size() && unit_of[bringer] != u) sources.insert(unit_of[bringer]);
    made.pending[u] = sources.size();
    for (const std::size_t source : sources) made.readers[source].push_back(u);
  }
  return made;
}

/// Moves the units into the program, producers before consumers, so that its order changes sides as seldom as it can.
/// Errors: graph_cycle.
inline void order_units(program& result, std::vector<placed_node> units,
                        const std::unordered_map<std::uint32_t, node_id>& late) {
  const graph& g = *result.g;
  auto [readers, pending] = dependences_of(g, units, late);
  // Kahn's algorithm with two ready sets: all that can run where the last unit ran comes first.
  std::set<std::size_t> ready_device;
  std::set<std::size_t> ready_host;
  const auto make_ready = [&](std::size_t u) { (is_steered(units[u].where) ? ready_host : ready_device).insert(u); };
  for (std::size_t u = 0; u < units.size(); ++u)
    if (pending[u] == 0) make_ready(u);
  bool on_device = true;
  bool any_device = false;
  bool any_host = false;
  while (!ready_device.empty() || !ready_host.empty()) {
    if ((on_device ? ready_device : ready_host).empty()) on_device = !on_device;
    std::set<std::size_t>& from = on_device ? ready_device : ready_host;
    const std::size_t u = *from.begin();
    from.erase(from.begin());
    if (units[u].where == placement::device) {
      if (any_host) ++result.crossings;
      any_device = true;
      any_host = false;
    } else if (is_steered(units[u].where)) {
      if (any_device) ++result.crossings;
      any_host = true;
      any_device = false;
    }
    for (const std::size_t to : readers[u])
      if (--pending[to] == 0) make_ready(to);
    if (units[u].where == placement::alias) result.roots[units[u].outputs[0]] = result.roots[units[u].alias_of];
    result.steps.push_back(std::move(units[u]));
  }
  if (result.steps.size() != units.size()) {
    std::string waiting;
    for (std::size_t u = 0; u < units.size(); ++u) {
      if (pending[u] == 0) continue;
      waiting += "\n ";
      for (const node_id id : units[u].members) waiting += " '" + g.node_at(id).name + "'";
    }
    throw error(errc::graph_cycle, "the fusion plan joins nodes that others between them need; these wait:" + waiting);
  }
}

}  // namespace detail

/// Places every node or fused block that something reads, lowers what runs on the device, and orders units so that the
/// device's share is cut into few parts (TFLite GPU section 3.1: each crossing synchronizes once). A block without a
/// kernel is split into its nodes, and its steps say why.
///
/// Precondition: rdp has run. With `require_device` a host fallback is errc::no_kernel naming all such nodes.
/// Errors: graph_cycle where the fusion plan is no order.
[[nodiscard]] inline program make_program(std::shared_ptr<const graph> shared, const codegen::lower_options& options,
                                          bool require_device) {
  const graph& g = *shared;
  program result;
  result.g = std::move(shared);
  result.roots.resize(g.value_count());
  for (value_id v = 0; v < g.value_count(); ++v) result.roots[v] = v;

  std::string refused;
  const std::vector<node_id> order = g.topological_order();
  const auto late = fusion::late_symbols(g, order);
  detail::placer placing(g, order, late, options);
  std::vector<placed_node> units = placing.place(refused);
  if (require_device && !refused.empty()) throw error(errc::no_kernel, "operators without a kernel:" + refused);

  // Units by the place of their last node, so that of several ready ones the exporter's first comes first.
  std::vector<std::size_t> position(g.node_limit(), 0);
  for (std::size_t i = 0; i < order.size(); ++i) position[order[i]] = i;
  std::sort(units.begin(), units.end(), [&](const placed_node& x, const placed_node& y) {
    return position[x.members.back()] < position[y.members.back()];
  });
  detail::order_units(result, std::move(units), late);
  return result;
}

}  // namespace dnnopt

#endif  // DNNOPT_BACKEND_PROGRAM_MAKE_PROGRAM_HPP
