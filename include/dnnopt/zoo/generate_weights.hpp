// Owns the generated weights of a model whose external data is missing: made from a seed, written beside the model.
#ifndef DNNOPT_ZOO_GENERATE_WEIGHTS_HPP
#define DNNOPT_ZOO_GENERATE_WEIGHTS_HPP

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <dnnopt/counter_random.hpp>
#include <dnnopt/error.hpp>
#include <dnnopt/onnx/import.hpp>
#include <dnnopt/small_float.hpp>
#include <dnnopt/zoo/plan_weights.hpp>

namespace dnnopt {

/// How weights are generated.
struct weight_options {
  std::uint64_t seed = 0;
  bool overwrite = false;  ///< also replaces data files that exist
  onnx::weight_targets targets;
};

/// One weight of a model and how it is made.
struct planned_weight {
  std::string name;
  std::size_t file = 0;
  std::size_t offset = 0;
  dtype type = dtype::undefined;
  std::int64_t count = 0;
  onnx::weight_plan plan;
};

/// Decides by what reads a weight how it is distributed: factors of convolutions and matrix products by fan-in and by
/// the power of what they multiply, biases a tenth of what they are added to, scales around 1, stored variances as
/// large as what they divide, embedding tables of deviation 1. `all` takes files that exist as well.
///
/// The size of signals is followed from the inputs (mean 0, variance 1) by mean and variance through every operator.
/// Precondition: `model` was imported with missing_data::zeros. Errors: unsupported where a missing tensor is no float.
[[nodiscard]] inline std::vector<planned_weight> plan_weights(const imported_model& model, bool all,
                                                              const onnx::weight_targets& targets = {}) {
  std::vector<planned_weight> weights;
  std::map<std::pair<std::size_t, std::size_t>, std::size_t> by_place;
  std::map<const std::byte*, std::size_t, std::less<>> by_data;
  for (const onnx::external_reference& r : model.references) {
    if (r.data.empty() || !(all || model.files[r.file].missing)) continue;
    const auto [at, added] = by_place.emplace(std::pair(r.file, r.offset), weights.size());
    if (added) weights.push_back({r.tensor, r.file, r.offset, dtype::undefined, 0, {}});
    by_data.emplace(r.data.data(), at->second);
  }
  const onnx::detail::weight_planner::weight_lookup weight_of =
      [&](const value_facts& facts) -> std::optional<std::size_t> {
    if (facts.type == dtype::string) return std::nullopt;
    const auto found = by_data.find(facts.constant.bytes().data());
    if (found == by_data.end()) return std::nullopt;
    planned_weight& w = weights[found->second];
    w.type = facts.type;
    w.count = std::max(w.count, facts.constant.size());
    if (facts.type != dtype::float32 && facts.type != dtype::float64 && facts.type != dtype::float16 &&
        facts.type != dtype::bfloat16)
      throw error(errc::unsupported,
                  "weight '" + w.name + "' is " + std::string(name_of(facts.type)) + "; only floats can be generated");
    return found->second;
  };
  onnx::detail::weight_planner planner(model.main, weight_of, weights.size(), targets);
  const std::vector<onnx::weight_plan> plans = planner.run();
  for (std::size_t i = 0; i < weights.size(); ++i) weights[i].plan = plans[i];
  return weights;
}

namespace onnx::detail {

template <class T>
void write_elements(std::ofstream& out, const planned_weight& w, const counter_random& random) {
  constexpr std::int64_t block = 1 << 16;
  std::vector<T> buffer;
  // In double the product of two floats is exact and so are sums of them here, so that fused and separate steps agree.
  double deviation = static_cast<double>(w.plan.deviation);
  double mean = static_cast<double>(w.plan.mean);
  const auto z = [&](std::int64_t i) { return static_cast<double>(random.normal(static_cast<std::uint64_t>(i))); };
  const auto begin_row = [&](std::int64_t begin) {
    double sum = 0;
    double squares = 0;
    for (std::int64_t i = begin; i < begin + w.plan.row; ++i) {
      sum += z(i);
      squares += z(i) * z(i);
    }
    const double count = static_cast<double>(w.plan.row);
    const double center = static_cast<double>(w.plan.center);
    const double own = sum / count;
    const double left = std::max(squares / count - center * (2 - center) * own * own, 0.1);
    // Few bits, so that a fused step before does not show.
    deviation = static_cast<double>(static_cast<float>(static_cast<double>(w.plan.deviation) / std::sqrt(left)));
    mean = static_cast<double>(static_cast<float>(-center * deviation * own));
  };
  for (std::int64_t first = 0; first < w.count; first += block) {
    const std::int64_t count = std::min(block, w.count - first);
    buffer.resize(static_cast<std::size_t>(count));
    for (std::int64_t i = 0; i < count; ++i) {
      if (w.plan.row > 0 && (first + i) % w.plan.row == 0) begin_row(first + i);
      buffer[static_cast<std::size_t>(i)] = static_cast<T>(static_cast<float>(mean + deviation * z(first + i)));
    }
    out.write(reinterpret_cast<const char*>(buffer.data()), static_cast<std::streamsize>(buffer.size() * sizeof(T)));
  }
}

inline void write_weight_file(const std::filesystem::path& path, std::vector<planned_weight> weights,
                              std::uint64_t seed) {
  std::sort(weights.begin(), weights.end(),
            [](const planned_weight& a, const planned_weight& b) { return a.offset < b.offset; });
  // The file appears whole or not at all.
  std::filesystem::path partial = path;
  partial += ".partial";
  {
    std::ofstream out(partial, std::ios::binary | std::ios::trunc);
    for (const planned_weight& w : weights) {
      out.seekp(static_cast<std::streamoff>(w.offset));
      const counter_random random(seed, w.offset);
      switch (w.type) {
        case dtype::float64:
          write_elements<double>(out, w, random);
          break;
        case dtype::float16:
          write_elements<float16>(out, w, random);
          break;
        case dtype::bfloat16:
          write_elements<bfloat16>(out, w, random);
          break;
        default:
          write_elements<float>(out, w, random);
      }
    }
    out.close();
    if (!out) throw error(errc::file_io, "cannot write '" + partial.string() + "'");
  }
  std::error_code failed;
  std::filesystem::rename(partial, path, failed);
  if (failed) throw error(errc::file_io, "cannot rename '" + partial.string() + "': " + failed.message());
}

}  // namespace onnx::detail

/// Writes the external data files that the model at `path` refers to and that do not exist, and gives the bytes written
/// (0 where none is missing). The same seed gives the same bytes on every machine.
/// Errors: those of import_model; unsupported where a missing tensor is no float; file_io.
inline std::uint64_t generate_weights(const std::filesystem::path& path, import_options import,
                                      const weight_options& options = {}) {
  import.missing_data = onnx::missing_data::zeros;
  const imported_model model = import_model(path, import);
  const std::vector<planned_weight> weights = plan_weights(model, options.overwrite, options.targets);
  std::uint64_t bytes = 0;
  for (std::size_t f = 0; f < model.files.size(); ++f) {
    std::vector<planned_weight> of_file;
    for (const planned_weight& w : weights)
      if (w.file == f) of_file.push_back(w);
    if (of_file.empty()) continue;
    const std::filesystem::path target = path.parent_path() / model.files[f].location;
    onnx::detail::write_weight_file(target, std::move(of_file), options.seed);
    bytes += std::filesystem::file_size(target);
  }
  return bytes;
}

}  // namespace dnnopt

#endif  // DNNOPT_ZOO_GENERATE_WEIGHTS_HPP
