// Owns the list of bodies of control flow that an executor has entered or may enter.
#ifndef DNNOPT_BACKEND_RUN_LIST_BODIES_HPP
#define DNNOPT_BACKEND_RUN_LIST_BODIES_HPP

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include <dnnopt/backend/run/executor.hpp>
#include <dnnopt/body_row.hpp>

namespace dnnopt {

/// The bodies of what an executor runs, each before those inside of it.
[[nodiscard]] inline std::vector<body_row> list_bodies(const opencl_executor& executor, std::size_t depth = 0) {
  std::vector<body_row> rows;
  const graph& g = *executor.executed().g;
  const auto& all = executor.bodies().all();
  for (const auto& [at, entry] : all) {
    const node_id id = at.first;
    const node& n = g.node_at(id);
    const auto of_node = static_cast<std::size_t>(
        std::count_if(all.begin(), all.end(), [&](const auto& other) { return other.first.first == id; }));
    rows.push_back({n.name, std::string(n.op->name), at.second, depth, of_node - 1, entry.figures.programs,
                    entry.figures.entered, entry.figures.kernels, entry.figures.host_ops});
    for (const auto& [dims, made] : entry.made) {
      if (!made.executor) continue;
      const std::vector<body_row> inside = list_bodies(*made.executor, depth + 1);
      rows.insert(rows.end(), inside.begin(), inside.end());
    }
  }
  return rows;
}

}  // namespace dnnopt

#endif  // DNNOPT_BACKEND_RUN_LIST_BODIES_HPP
