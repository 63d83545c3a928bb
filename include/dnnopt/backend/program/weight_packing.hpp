// Owns the plan of packing weights for kernels: in batches, so that originals and packed ones are never all on the
// device together, and once for steps that share their weights.
#ifndef DNNOPT_BACKEND_PROGRAM_WEIGHT_PACKING_HPP
#define DNNOPT_BACKEND_PROGRAM_WEIGHT_PACKING_HPP

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include <dnnopt/backend/program/program.hpp>

namespace dnnopt {

/// Steps whose weights are packed together.
struct packing_batch {
  std::vector<std::size_t> steps;
  std::vector<value_id> originals;  ///< constants that only packing reads: on the device with this batch alone
};

/// When which weights are on the device: first constants that packing and runs read, then the batches, then the rest.
struct weight_packing {
  std::vector<std::size_t> packed_in;              ///< by step, the first step that packs the same weights the same way
  std::unordered_map<value_id, value_id> same_as;  ///< constants that runs read, to the equal one that is uploaded
  std::vector<value_id> early_constants;
  std::vector<packing_batch> batches;
  std::vector<value_id> late_constants;
  std::uint64_t constant_bytes = 0;  ///< of early and late constants
  std::uint64_t packed_bytes = 0;    ///< that packing leaves on the device
  std::uint64_t peak_bytes = 0;      ///< the most that is there at one time until all is packed
};

/// Bytes of a buffer for a constant: never 0.
[[nodiscard]] inline std::uint64_t bytes_of_constant(const graph& g, value_id v) {
  return std::max<std::uint64_t>(g.facts(v).constant.byte_size(), 1);
}

/// Bytes that packing leaves on the device for a step.
[[nodiscard]] inline std::uint64_t packed_bytes_of(const placed_node& step, const symbol_values& symbols) {
  std::uint64_t bytes = 0;
  for (const codegen::scratch_buffer& scratch : step.lowered.scratch)
    if (scratch.persistent)
      bytes += static_cast<std::uint64_t>(std::max<std::int64_t>(scratch.bytes.evaluate(symbols), 1));
  return bytes;
}

/// Finds constants of equal type, dims and bytes: layers that share weights often have copies of them, each transposed
/// or joined by itself. Bytes are compared where 64 of them, spread evenly, agree.
class equal_constants {
 public:
  /// Precondition: `g` outlives this object.
  explicit equal_constants(const graph& g) : g_(g) {}

  /// The first constant asked for that equals `v`. O(bytes) where there is one, else O(1).
  [[nodiscard]] value_id first_of(value_id v) {
    if (const auto known = first_.find(v); known != first_.end()) return known->second;
    const tensor& content = g_.facts(v).constant;
    std::string sample = std::to_string(static_cast<int>(content.type())) + to_string(content.dims());
    const std::span<const std::byte> bytes = content.bytes();
    constexpr std::size_t samples = 64;
    for (std::size_t i = 0; i < samples && !bytes.empty(); ++i)
      sample += static_cast<char>(bytes[(bytes.size() - 1) * i / (samples - 1)]);
    std::vector<value_id>& alike = by_sample_[sample];
    const auto equal = std::find_if(alike.begin(), alike.end(), [&](value_id other) {
      const std::span<const std::byte> others = g_.facts(other).constant.bytes();
      return others.data() == bytes.data() || std::equal(others.begin(), others.end(), bytes.begin(), bytes.end());
    });
    const value_id found = equal == alike.end() ? v : *equal;
    if (found == v) alike.push_back(v);
    return first_[v] = found;
  }

 private:
  const graph& g_;
  std::unordered_map<std::string, std::vector<value_id>> by_sample_;
  std::unordered_map<value_id, value_id> first_;
};

/// All that decides what packing leaves for a step, as text: kernels, sizes, the constants that they read.
[[nodiscard]] inline std::string packing_key(const program& p, const placed_node& step, const symbol_values& symbols,
                                             equal_constants& equal) {
  std::string key;
  const auto add = [&](const auto& number) { key += std::to_string(number) + ' '; };
  for (const codegen::scratch_buffer& scratch : step.lowered.scratch)
    add(scratch.persistent ? scratch.bytes.evaluate(symbols) : -1);
  for (const codegen::kernel_plan& plan : step.lowered.prepare) {
    key += plan.source.str() + plan.entry + plan.options + '\n';
    for (const codegen::pointer_argument& a : plan.pointers) {
      key += a.held == no_value ? 's' : 'c';
      add(a.held == no_value ? a.scratch : equal.first_of(p.roots[a.held]));
    }
    for (const index_expr& e : plan.parameters) add(e.evaluate(symbols));
    const symbol_values own = plan.bind(symbols);
    for (const index_expr& e : plan.global) add(e.evaluate(own));
  }
  return key;
}

/// What packs weights depends on no symbol; a kernel may carry one as an argument that it does not read.
[[nodiscard]] inline symbol_values symbols_of_packing(const graph& g) {
  symbol_values ones;
  for (std::uint32_t symbol = 0; symbol < g.expressions().symbol_count(); ++symbol) ones.bind(symbol, 1);
  return ones;
}

/// The steps with the largest originals come first, when little else is there. A batch ends as soon as its originals
/// hold a sixteenth of all weights that stay: few waits. So the peak is at most a sixteenth above what stays, or what
/// one step needs for both forms of its weights. O((V + E) log V).
[[nodiscard]] inline weight_packing plan_weight_packing(const program& p) {
  const graph& g = *p.g;
  weight_packing result;
  const auto constants_of = [&](const std::vector<codegen::kernel_plan>& plans, std::set<value_id>& into) {
    for (const codegen::kernel_plan& plan : plans)
      for (const codegen::pointer_argument& a : plan.pointers)
        if (a.held != no_value && g.facts(p.roots[a.held]).is_constant()) into.insert(p.roots[a.held]);
  };
  std::set<value_id> running;
  std::set<value_id> packed;
  for (const placed_node& step : p.steps) {
    constants_of(step.lowered.kernels, running);
    constants_of(step.lowered.prepare, packed);
  }
  equal_constants equal(g);
  std::set<value_id> early;
  for (const value_id v : running) {
    const value_id first = equal.first_of(v);
    if (first != v) result.same_as.emplace(v, first);
    if (packed.contains(v)) early.insert(first);
  }
  std::uint64_t staying = 0;
  for (const value_id v : running) {
    if (result.same_as.contains(v)) continue;
    result.constant_bytes += bytes_of_constant(g, v);
    (early.contains(v) ? result.early_constants : result.late_constants).push_back(v);
    if (early.contains(v)) staying += bytes_of_constant(g, v);
  }
  const symbol_values symbols = symbols_of_packing(g);
  std::unordered_map<std::string, std::size_t> first_of;
  struct packing_step {
    std::size_t step;
    std::set<value_id> originals;
    std::uint64_t bytes;
  };
  std::vector<packing_step> steps;
  for (std::size_t s = 0; s < p.steps.size(); ++s) {
    const bool packs = !p.steps[s].lowered.prepare.empty();
    result.packed_in.push_back(packs ? first_of.emplace(packing_key(p, p.steps[s], symbols, equal), s).first->second
                                     : s);
    const std::uint64_t kept = packed_bytes_of(p.steps[s], symbols);
    if (result.packed_in[s] != s || kept == 0) continue;
    result.packed_bytes += kept;
    packing_step one{s, {}, 0};
    constants_of(p.steps[s].lowered.prepare, one.originals);
    std::erase_if(one.originals, [&](value_id v) { return running.contains(v); });
    for (const value_id v : one.originals) one.bytes += bytes_of_constant(g, v);
    steps.push_back(std::move(one));
  }
  std::stable_sort(steps.begin(), steps.end(), [](const auto& x, const auto& y) { return x.bytes > y.bytes; });

  const std::uint64_t enough = (result.constant_bytes + result.packed_bytes) / 16;
  std::uint64_t passing = 0;
  packing_batch batch;
  std::set<value_id> originals;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    batch.steps.push_back(steps[i].step);
    staying += packed_bytes_of(p.steps[steps[i].step], symbols);
    for (const value_id v : steps[i].originals)
      if (originals.insert(v).second) passing += bytes_of_constant(g, v);
    if (passing < enough && i + 1 < steps.size()) continue;
    batch.originals.assign(originals.begin(), originals.end());
    result.peak_bytes = std::max(result.peak_bytes, staying + passing);
    result.batches.push_back(std::exchange(batch, {}));
    originals.clear();
    passing = 0;
  }
  result.peak_bytes = std::max(result.peak_bytes, result.constant_bytes + result.packed_bytes);
  return result;
}

}  // namespace dnnopt

#endif  // DNNOPT_BACKEND_PROGRAM_WEIGHT_PACKING_HPP
