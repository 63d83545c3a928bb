// Owns the order of a graph's nodes as the file lists them: by what they read, and which of them lead to an output.
#ifndef DNNOPT_ONNX_NODE_ORDER_HPP
#define DNNOPT_ONNX_NODE_ORDER_HPP

#include <cstddef>
#include <functional>
#include <queue>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include <dnnopt/error.hpp>
#include <dnnopt/onnx/model_proto.hpp>

namespace dnnopt::onnx {

/// A node as messages name it: its name or first output, operator and byte of the file.
[[nodiscard]] inline std::string where(const node_proto& n) {
  std::string text = "node '" + std::string(n.name) + "' (" + (n.domain.empty() ? "" : std::string(n.domain) + ".") +
                     std::string(n.op_type) + ")";
  if (n.name.empty() && !n.outputs.empty()) text += " of output '" + std::string(n.outputs[0]) + "'";
  return text + " at byte " + std::to_string(n.position);
}

namespace detail {
inline void read_names(const node_proto& n, std::vector<std::string_view>& out);

// The names that a body reads from the graphs around it.
inline void free_names(const graph_proto& g, std::vector<std::string_view>& out) {
  std::unordered_set<std::string_view> own;
  for (const auto& t : g.initializers) own.insert(t.name);
  for (const auto& t : g.sparse_initializers) own.insert(t.values.name);
  for (const auto& v : g.inputs) own.insert(v.name);
  for (const auto& n : g.nodes) own.insert(n.outputs.begin(), n.outputs.end());
  std::vector<std::string_view> read;
  for (const auto& n : g.nodes) read_names(n, read);
  for (const auto& v : g.outputs) read.push_back(v.name);
  for (const std::string_view name : read)
    if (!own.contains(name)) out.push_back(name);
}
inline void read_names(const node_proto& n, std::vector<std::string_view>& out) {
  out.insert(out.end(), n.inputs.begin(), n.inputs.end());
  for (const attribute_proto& a : n.attributes)
    if (a.g) free_names(*a.g, out);
}
}  // namespace detail

/// Indices of `nodes`, producers first; of several ready nodes the first of the file. `is_taken` tells which names the
/// graph defines besides. Errors: duplicate_name, graph_cycle. O(nodes log nodes + names).
template <class IsTaken>
[[nodiscard]] std::vector<std::size_t> order_of(std::span<const node_proto> nodes, const IsTaken& is_taken) {
  std::unordered_map<std::string_view, std::size_t> producer;
  for (std::size_t i = 0; i < nodes.size(); ++i)
    for (const std::string_view name : nodes[i].outputs)
      if (!name.empty() && (is_taken(name) || !producer.emplace(name, i).second))
        throw error(errc::duplicate_name, where(nodes[i]) + ": value '" + std::string(name) + "' is defined twice");
  std::vector<std::vector<std::size_t>> readers(nodes.size());
  std::vector<std::size_t> pending(nodes.size(), 0);
  std::vector<std::string_view> read;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    read.clear();
    detail::read_names(nodes[i], read);
    for (const std::string_view name : read)
      if (const auto found = producer.find(name); found != producer.end()) {
        readers[found->second].push_back(i);
        ++pending[i];
      }
  }
  std::priority_queue<std::size_t, std::vector<std::size_t>, std::greater<>> ready;
  for (std::size_t i = 0; i < nodes.size(); ++i)
    if (pending[i] == 0) ready.push(i);
  std::vector<std::size_t> order;
  while (!ready.empty()) {
    const std::size_t i = ready.top();
    ready.pop();
    order.push_back(i);
    for (const std::size_t r : readers[i])
      if (--pending[r] == 0) ready.push(r);
  }
  if (order.size() != nodes.size())
    for (std::size_t i = 0; i < nodes.size(); ++i)
      if (pending[i] != 0)
        throw error(errc::graph_cycle, where(nodes[i]) + " depends on itself or on a node that does");
  return order;
}

/// Which of `nodes` lead to a name of `wanted`. O(nodes + names).
[[nodiscard]] inline std::vector<bool> live_nodes(std::span<const node_proto> nodes,
                                                  std::span<const std::string_view> wanted) {
  std::unordered_map<std::string_view, std::size_t> producer;
  for (std::size_t i = 0; i < nodes.size(); ++i)
    for (const std::string_view name : nodes[i].outputs)
      if (!name.empty()) producer.emplace(name, i);
  std::vector<bool> live(nodes.size(), false);
  std::vector<std::string_view> open(wanted.begin(), wanted.end());
  while (!open.empty()) {
    const auto found = producer.find(open.back());
    open.pop_back();
    if (found == producer.end() || live[found->second]) continue;
    live[found->second] = true;
    detail::read_names(nodes[found->second], open);
  }
  return live;
}

}  // namespace dnnopt::onnx

#endif  // DNNOPT_ONNX_NODE_ORDER_HPP
