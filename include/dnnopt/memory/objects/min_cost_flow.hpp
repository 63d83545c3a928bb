// Owns sharing objects by minimum-cost flow on Boost.Graph (Lee et al. 2019, section on memory management).
#ifndef DNNOPT_MEMORY_OBJECTS_MIN_COST_FLOW_HPP
#define DNNOPT_MEMORY_OBJECTS_MIN_COST_FLOW_HPP

#include <algorithm>
#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/successive_shortest_path_nonnegative_weights.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include <dnnopt/memory/bounds.hpp>
#include <dnnopt/memory/usage.hpp>

namespace dnnopt::memory {

namespace detail {

using flow_traits = boost::adjacency_list_traits<boost::vecS, boost::vecS, boost::directedS>;
using flow_graph = boost::adjacency_list<
    boost::vecS, boost::vecS, boost::directedS, boost::no_property,
    boost::property<boost::edge_capacity_t, std::int64_t,
                    boost::property<boost::edge_residual_capacity_t, std::int64_t,
                                    boost::property<boost::edge_reverse_t, flow_traits::edge_descriptor,
                                                    boost::property<boost::edge_weight_t, std::int64_t>>>>>;

}  // namespace detail

/// Shares objects by a flow of n units of minimum cost. Vertices l_x and r_x for every buffer: source -> r_x of cost
/// size_x (a new object), source -> l_x of cost 0, l_x -> r_y of cost max(0, size_y - size_x) where x dies before y is
/// born (y takes x's object), r_x -> sink; all capacities 1. The chains of saturated l_x -> r_y become objects, each as
/// large as its largest buffer. The flow charges growth along a chain against the previous buffer and not against the
/// largest so far, so its cost bounds the sum of the objects from above and the result need not be the least.
/// Among flows of equal cost the one with the least sum of x * y wins, so that results do not depend on Boost's
/// order of edges. Errors: those of validate. O(n * E log n) with E up to n^2: meant for up to some hundred buffers.
[[nodiscard]] inline object_plan plan_objects_by_flow(std::span<const buffer_usage> usages) {
  validate(usages);
  const auto start = std::chrono::steady_clock::now();
  const std::size_t count = usages.size();
  const std::size_t source = 2 * count;
  const std::size_t sink = source + 1;
  detail::flow_graph graph(2 * count + 2);
  auto capacity = boost::get(boost::edge_capacity, graph);
  auto residual = boost::get(boost::edge_residual_capacity, graph);
  auto reverse = boost::get(boost::edge_reverse, graph);
  auto weight = boost::get(boost::edge_weight, graph);
  const auto connect = [&](std::size_t from, std::size_t to, std::int64_t cost) {
    const auto forward = boost::add_edge(from, to, graph).first;
    const auto backward = boost::add_edge(to, from, graph).first;
    capacity[forward] = 1;
    capacity[backward] = 0;
    reverse[forward] = backward;
    reverse[backward] = forward;
    weight[forward] = cost;
    weight[backward] = -cost;
  };
  std::int64_t largest = 1;
  for (const buffer_usage& usage : usages) largest = std::max(largest, usage.size);
  // Room for the tie-break below the true costs, given up where it would leave 64 bits.
  const auto many = static_cast<std::int64_t>(count) + 1;
  const bool scaled = many < 200000 && largest < std::numeric_limits<std::int64_t>::max() / 8 / many / many / many;
  const std::int64_t scale = scaled ? many * many * many : 1;
  for (std::size_t x = 0; x < count; ++x) {
    connect(source, count + x, usages[x].size * scale);
    connect(source, x, 0);
    connect(count + x, sink, 0);
    for (std::size_t y = 0; y < count; ++y) {
      if (usages[x].upper > usages[y].lower) continue;
      const std::int64_t growth = std::max<std::int64_t>(0, usages[y].size - usages[x].size);
      connect(x, count + y, growth * scale + (scaled ? static_cast<std::int64_t>(x * y) : 0));
    }
  }
  if (count > 0) boost::successive_shortest_path_nonnegative_weights(graph, source, sink);

  constexpr std::size_t none = static_cast<std::size_t>(-1);
  std::vector<std::size_t> previous(count, none);
  for (std::size_t x = 0; x < count; ++x) {
    for (auto [edge, end] = boost::out_edges(x, graph); edge != end; ++edge) {
      const std::size_t to = boost::target(*edge, graph);
      if (capacity[*edge] == 1 && residual[*edge] == 0 && to >= count && to < source) previous[to - count] = x;
    }
  }
  object_plan plan;
  plan.object_ids.assign(count, none);
  std::vector<std::size_t> in_order(count);
  std::iota(in_order.begin(), in_order.end(), std::size_t{0});
  std::stable_sort(in_order.begin(), in_order.end(),
                   [&](std::size_t a, std::size_t b) { return usages[a].lower < usages[b].lower; });
  for (const std::size_t x : in_order) {
    if (previous[x] == none) {
      plan.object_ids[x] = plan.object_sizes.size();
      plan.object_sizes.push_back(usages[x].size);
    } else {
      const std::size_t object = plan.object_ids[previous[x]];
      plan.object_ids[x] = object;
      plan.object_sizes[object] = std::max(plan.object_sizes[object], usages[x].size);
    }
  }
  plan.bytes = std::accumulate(plan.object_sizes.begin(), plan.object_sizes.end(), std::int64_t{0});
  plan.lower_bound = shared_objects_lower_bound(usages);
  plan.proved = plan.bytes == plan.lower_bound;
  plan.strategy = "objects_min_cost_flow";
  plan.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return plan;
}

}  // namespace dnnopt::memory

#endif  // DNNOPT_MEMORY_OBJECTS_MIN_COST_FLOW_HPP
