// Owns the tests' access to the planner's data: MiniMalloc and large CSVs, operator graphs, TensorFlow Lite and TVM
// cases.
#ifndef DNNOPT_TESTS_MEMORY_MEMORY_DATA_HPP
#define DNNOPT_TESTS_MEMORY_MEMORY_DATA_HPP

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "dnnopt/memory/memory_io.hpp"
#include "dnnopt/memory/usage.hpp"

namespace memory_data {

/// The folder bench/data/memory of the source tree.
inline std::filesystem::path folder() { return std::filesystem::path(DNNOPT_SOURCE_DIR) / "bench" / "data" / "memory"; }

inline std::string text_of(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error("cannot open " + path.string());
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

inline nlohmann::json json_of(const std::filesystem::path& path) { return nlohmann::json::parse(text_of(path)); }

inline dnnopt::memory::named_usages csv(const std::string& name) {
  return dnnopt::memory::read_usages(text_of(folder() / name));
}

/// All files of a folder below the data, sorted by name.
inline std::vector<std::filesystem::path> files(const std::string& below) {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(folder() / below)) {
    if (entry.is_regular_file()) paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

/// Random lifetimes and sizes; the same for a seed.
inline std::vector<dnnopt::memory::buffer_usage> random_usages(std::size_t count, std::int64_t times,
                                                               std::int64_t largest, unsigned seed,
                                                               bool aligned = false) {
  std::mt19937 random(seed);
  const auto below = [&](std::int64_t bound) {
    return static_cast<std::int64_t>(random() % static_cast<unsigned long>(bound));
  };
  std::vector<dnnopt::memory::buffer_usage> usages;
  for (std::size_t i = 0; i < count; ++i) {
    const std::int64_t lower = below(times);
    const std::int64_t upper = lower + 1 + below(times / 3 + 1);
    usages.push_back({lower, upper, 1 + below(largest), aligned ? std::int64_t{1} << below(5) : 1});
  }
  return usages;
}

}  // namespace memory_data

#endif  // DNNOPT_TESTS_MEMORY_MEMORY_DATA_HPP
