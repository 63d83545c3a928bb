// Owns the judgement whether a program fits a limit of device memory, before any of it runs.
#ifndef DNNOPT_BACKEND_PROGRAM_MEMORY_LIMIT_HPP
#define DNNOPT_BACKEND_PROGRAM_MEMORY_LIMIT_HPP

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <dnnopt/backend/program/run_memory.hpp>
#include <dnnopt/backend/program/weight_packing.hpp>
#include <dnnopt/memory/bounds.hpp>

namespace dnnopt {

/// Device memory besides the arena, in bytes.
struct device_share {
  std::uint64_t weights = 0;    ///< constants that kernels read, and packed weights
  std::uint64_t preparing = 0;  ///< more than `weights` at the worst moment while they are packed
  std::uint64_t caller = 0;     ///< inputs and outputs of the graph
};

/// What a program keeps on the device besides its arena. O(V + E).
[[nodiscard]] inline device_share share_of(const program& p, const run_memory& memory) {
  const weight_packing packing = plan_weight_packing(p);
  device_share share;
  share.weights = packing.constant_bytes + packing.packed_bytes;
  share.preparing = packing.peak_bytes - share.weights;
  for (const planned_value& separate : memory.separate) share.caller += separate.bytes;
  return share;
}

/// The name of a planned value, for people.
[[nodiscard]] inline std::string name_of(const program& p, const planned_value& planned) {
  return planned.held == no_value ? "scratch of " + p.g->node_at(p.steps.at(planned.step).id).name
                                  : p.g->value_at(planned.held).name;
}

/// Names of the records of a memory plan: values that share one are joined by " = ".
[[nodiscard]] inline std::vector<std::string> record_names(const program& p, const run_memory& memory) {
  std::vector<std::string> names(memory.usages.size());
  for (const planned_value& planned : memory.planned) {
    std::string& name = names.at(planned.record);
    name += (name.empty() ? "" : " = ") + name_of(p, planned);
  }
  return names;
}

/// Errors: memory_limit with all shares, the arena, and the tensors alive at its peak by name and size.
/// `least` is a proved lower bound of the arena over all orders, or 0.
[[noreturn]] inline void refuse_memory(const program& p, const run_memory& memory, const device_share& share,
                                       std::uint64_t limit, std::int64_t least = 0) {
  const auto number = [](auto value) { return std::to_string(value); };
  std::string text =
      "the memory limit of " + number(limit) + " bytes is below the " +
      number(share.weights + std::max<std::uint64_t>(memory.arena_bytes + share.caller, share.preparing)) +
      " bytes that '" + p.g->name + "' needs: weights " + number(share.weights) + ", inputs and outputs " +
      number(share.caller) + ", intermediate tensors " + number(memory.arena_bytes);
  if (share.preparing > memory.arena_bytes + share.caller)
    text += ", and " + number(share.preparing) + " while weights are packed";
  if (least > 0) text += "; no order of its operators needs less than " + number(least) + " for these";
  const std::vector<std::size_t> peak = memory::peak_buffers(memory.usages);
  if (!peak.empty()) {
    std::int64_t when = 0;
    for (const std::size_t r : peak) when = std::max(when, memory.usages[r].lower);
    const std::vector<std::string> names = record_names(p, memory);
    text += ". Alive at their peak, in step " + number(when) + " (node '" +
            p.g->node_at(p.steps.at(static_cast<std::size_t>(when)).id).name + "'):";
    std::vector<std::size_t> largest = peak;
    std::stable_sort(largest.begin(), largest.end(),
                     [&](std::size_t a, std::size_t b) { return memory.usages[a].size > memory.usages[b].size; });
    constexpr std::size_t most = 8;
    for (std::size_t i = 0; i < std::min(most, largest.size()); ++i)
      text += (i == 0 ? " '" : ", '") + names[largest[i]] + "' " + number(memory.usages[largest[i]].size);
    if (largest.size() > most) text += " and " + number(largest.size() - most) + " more";
  }
  throw error(errc::memory_limit, text);
}

/// Errors: memory_limit where weights alone are beyond the limit: for programs whose other sizes only a run tells.
/// 0 is no limit.
inline void require_weights(const program& p, std::uint64_t limit) {
  const std::uint64_t bytes = limit == 0 ? 0 : plan_weight_packing(p).peak_bytes;
  if (bytes > limit)
    throw error(errc::memory_limit, "the memory limit of " + std::to_string(limit) + " bytes is below the " +
                                        std::to_string(bytes) + " bytes that the weights of '" + p.g->name +
                                        "' need, without what sizes known at a run add");
}

/// Refuses what cannot fit, as refuse_memory says it; 0 is no limit.
inline void require_memory(const program& p, const run_memory& memory, std::uint64_t limit, std::int64_t least = 0) {
  if (limit == 0) return;
  const device_share share = share_of(p, memory);
  const std::uint64_t most = std::max<std::uint64_t>(memory.arena_bytes + share.caller, share.preparing);
  if (share.weights + most > limit) refuse_memory(p, memory, share, limit, least);
}

}  // namespace dnnopt

#endif  // DNNOPT_BACKEND_PROGRAM_MEMORY_LIMIT_HPP
