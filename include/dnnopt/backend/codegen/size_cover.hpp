// Owns which of several candidates serves which sizes, where only a run tells the size: as few runs of neighbours as
// pay.
#ifndef DNNOPT_BACKEND_CODEGEN_SIZE_COVER_HPP
#define DNNOPT_BACKEND_CODEGEN_SIZE_COVER_HPP

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace dnnopt::codegen {

/// A candidate, and up to which size it serves.
struct size_run {
  std::size_t candidate = 0;
  std::int64_t most = 0;
};

/// The sizes at which candidates are compared, from `least` to `most`: each up to a few, then four for each factor of
/// two.
[[nodiscard]] inline std::vector<std::int64_t> compared_sizes(std::int64_t least, std::int64_t most) {
  std::vector<std::int64_t> sizes;
  for (std::int64_t size = std::max<std::int64_t>(least, 1); size < most; size += std::max<std::int64_t>(size / 5, 1))
    sizes.push_back(size);
  sizes.push_back(std::max<std::int64_t>(most, 1));
  return sizes;
}

/// Candidates for `sizes`, which ascend, each for a run of neighbours: those with the least sum of what a size costs in
/// them over what it costs in its best, and of `each` for every one of at most `most_runs` runs. `costs` are by
/// candidate and size. Preconditions: sizes and candidates are not empty, costs positive. Dynamic programming:
/// O(most_runs * sizes^2 * candidates).
[[nodiscard]] inline std::vector<size_run> cover_sizes(std::span<const std::int64_t> sizes,
                                                       std::span<const std::vector<double>> costs,
                                                       std::size_t most_runs, double each) {
  const std::size_t count = sizes.size();
  // What the sizes before one cost more than in their best, by candidate.
  std::vector<std::vector<double>> excess(costs.size(), std::vector<double>(count + 1, 0));
  for (std::size_t i = 0; i < count; ++i) {
    double best = std::numeric_limits<double>::infinity();
    for (const std::vector<double>& of_one : costs) best = std::min(best, of_one[i]);
    for (std::size_t c = 0; c < costs.size(); ++c) excess[c][i + 1] = excess[c][i] + costs[c][i] / best - 1;
  }
  // The least cost of so many runs over the sizes before one, where the last of these begins, and its candidate.
  struct covered {
    double cost = std::numeric_limits<double>::infinity();
    std::size_t begin = 0;
    std::size_t candidate = 0;
  };
  std::vector<std::vector<covered>> by_runs(most_runs + 1, std::vector<covered>(count + 1));
  by_runs[0][0].cost = 0;
  for (std::size_t runs = 1; runs <= most_runs; ++runs)
    for (std::size_t end = 1; end <= count; ++end)
      for (std::size_t begin = 0; begin < end; ++begin)
        for (std::size_t c = 0; c < costs.size(); ++c) {
          const double cost = by_runs[runs - 1][begin].cost + excess[c][end] - excess[c][begin] + each;
          if (cost < by_runs[runs][end].cost) by_runs[runs][end] = {cost, begin, c};
        }
  std::size_t runs = 1;
  for (std::size_t r = 2; r <= most_runs; ++r)
    if (by_runs[r][count].cost < by_runs[runs][count].cost) runs = r;
  std::vector<size_run> made;
  for (std::size_t end = count; runs > 0; --runs) {
    made.push_back({by_runs[runs][end].candidate, sizes[end - 1]});
    end = by_runs[runs][end].begin;
  }
  std::reverse(made.begin(), made.end());
  return made;
}

}  // namespace dnnopt::codegen

#endif  // DNNOPT_BACKEND_CODEGEN_SIZE_COVER_HPP
