// Owns the usage record of a buffer (size and lifetime), the plans made from records, and their validation.
#ifndef DNNOPT_MEMORY_USAGE_HPP
#define DNNOPT_MEMORY_USAGE_HPP

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include <dnnopt/error.hpp>

namespace dnnopt::memory {

/// One buffer: it needs `size` bytes from time `lower` until just before time `upper` (half-open, MiniMalloc's
/// convention), at an offset divisible by `alignment`. Times are positions in an execution order; any unit will do.
struct buffer_usage {
  std::int64_t lower = 0;
  std::int64_t upper = 0;
  std::int64_t size = 0;
  std::int64_t alignment = 1;

  friend bool operator==(const buffer_usage&, const buffer_usage&) = default;
};

/// A record with inclusive first and last tasks, as TensorFlow Lite and TVM write it, turned half-open.
[[nodiscard]] inline buffer_usage usage_of_tasks(std::int64_t size, std::int64_t first_task, std::int64_t last_task,
                                                 std::int64_t alignment = 1) {
  return {first_task, last_task + 1, size, alignment};
}

/// Whether two buffers are alive at one time, so that they may not share bytes. Zero-sized buffers conflict with none.
[[nodiscard]] inline bool conflict(const buffer_usage& left, const buffer_usage& right) noexcept {
  return left.lower < right.upper && right.lower < left.upper && left.size > 0 && right.size > 0;
}

/// The least multiple of `alignment` (>= 1) that is not below `value` (>= 0).
[[nodiscard]] constexpr std::int64_t align_up(std::int64_t value, std::int64_t alignment) noexcept {
  return alignment <= 1 ? value : (value + alignment - 1) / alignment * alignment;
}

/// Offsets of every buffer in one arena, in the order of the records, or in shared objects that are counted as if they
/// lay one after the other.
struct offset_plan {
  std::vector<std::int64_t> offsets;
  std::int64_t bytes = 0;               ///< size of the arena: the largest offset + size
  std::int64_t lower_bound = 0;         ///< no arena can be smaller
  bool proved = false;                  ///< whether no smaller plan exists
  double seconds = 0.0;                 ///< wall time spent planning
  std::string strategy;                 ///< name of the strategy that was asked for
  std::vector<std::int64_t> objects{};  ///< where each shared object begins, increasing from 0; empty: one arena
};

/// Objects (whole allocations) shared by buffers that are never alive together, in the order of the records.
struct object_plan {
  std::vector<std::size_t> object_ids;     ///< for every record, the index of its object
  std::vector<std::int64_t> object_sizes;  ///< bytes of every object
  std::int64_t bytes = 0;                  ///< sum of object_sizes
  std::int64_t lower_bound = 0;            ///< sum of positional maxima
  bool proved = false;                     ///< bytes == lower_bound
  double seconds = 0.0;                    ///< wall time spent planning
  std::string strategy;                    ///< name of the strategy that was asked for
};

/// Checks every record: lower < upper, size >= 0, alignment >= 1, and a sum of aligned sizes that fits std::int64_t.
/// Errors: invalid_argument or overflow naming the record. O(n).
inline void validate(std::span<const buffer_usage> usages) {
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < usages.size(); ++i) {
    const buffer_usage& usage = usages[i];
    if (usage.lower >= usage.upper || usage.size < 0 || usage.alignment < 1) {
      throw error(errc::invalid_argument,
                  "usage record " + std::to_string(i) + ": lifetime [" + std::to_string(usage.lower) + ", " +
                      std::to_string(usage.upper) + "), size " + std::to_string(usage.size) + ", alignment " +
                      std::to_string(usage.alignment) + "; needs lower < upper, size >= 0, alignment >= 1");
    }
    constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max() / 2;
    if (usage.size > most - usage.alignment || sum > most - usage.size - usage.alignment) {
      throw error(errc::overflow, "usage record " + std::to_string(i) + ": the sizes up to size " +
                                      std::to_string(usage.size) + " do not fit 63 bits");
    }
    sum += usage.size + usage.alignment;
  }
}

/// The records with every alignment raised to a multiple of `alignment` (1 leaves them as they are).
/// Precondition: alignment >= 1; for alignments that do not divide each other the least common multiple is taken.
[[nodiscard]] inline std::vector<buffer_usage> with_alignment(std::span<const buffer_usage> usages,
                                                              std::int64_t alignment) {
  if (alignment < 1) throw error(errc::invalid_argument, "alignment " + std::to_string(alignment) + " is below 1");
  std::vector<buffer_usage> result(usages.begin(), usages.end());
  for (buffer_usage& usage : result) {
    std::int64_t a = usage.alignment;
    std::int64_t b = alignment;
    while (b != 0) {
      const std::int64_t rest = a % b;
      a = b;
      b = rest;
    }
    usage.alignment = usage.alignment / a * alignment;
  }
  return result;
}

/// The size of the arena that offsets need: the largest offset + size, 0 for none. Precondition: equal lengths.
[[nodiscard]] inline std::int64_t arena_bytes(std::span<const buffer_usage> usages,
                                              std::span<const std::int64_t> offsets) {
  std::int64_t bytes = 0;
  for (std::size_t i = 0; i < usages.size(); ++i) {
    const std::int64_t top = offsets[i] + usages[i].size;
    bytes = top > bytes ? top : bytes;
  }
  return bytes;
}

}  // namespace dnnopt::memory

#endif  // DNNOPT_MEMORY_USAGE_HPP
