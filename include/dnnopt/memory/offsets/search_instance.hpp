// Owns the compressed form of usage records on which the exact offset search works.
#ifndef DNNOPT_MEMORY_OFFSETS_SEARCH_INSTANCE_HPP
#define DNNOPT_MEMORY_OFFSETS_SEARCH_INSTANCE_HPP

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

#include <dnnopt/memory/bounds.hpp>
#include <dnnopt/memory/timeline.hpp>
#include <dnnopt/memory/usage.hpp>

namespace dnnopt::memory::detail {

/// Rows of bits of one width in one block.
class bit_rows {
 public:
  bit_rows() = default;
  bit_rows(std::size_t rows, std::size_t bits) : words_((bits + 63) / 64), data_(rows * words_, 0) {}

  [[nodiscard]] std::size_t words() const { return words_; }
  [[nodiscard]] const std::uint64_t* row(std::size_t r) const { return data_.data() + r * words_; }
  void set(std::size_t r, std::size_t bit) { data_[r * words_ + bit / 64] |= std::uint64_t{1} << (bit % 64); }

 private:
  std::size_t words_ = 0;
  std::vector<std::uint64_t> data_;
};

/// Calls `visit(index)` for every bit set in both rows, ascending.
template <class Visit>
inline void for_each_common(const std::uint64_t* a, const std::uint64_t* b, std::size_t words, Visit&& visit) {
  for (std::size_t w = 0; w < words; ++w) {
    for (std::uint64_t bits = a[w] & b[w]; bits != 0; bits &= bits - 1) {
      visit(w * 64 + static_cast<std::size_t>(std::countr_zero(bits)));
    }
  }
}

/// Records without the empty ones, sizes in units of their common divisor, times reduced to *sections*: the maximal
/// sets of buffers alive together. Two buffers conflict exactly when they share a section, every non-maximal live set
/// is contained in a maximal one, and so is whatever it says about the least arena.
struct search_instance {
  std::vector<std::uint32_t> records;      ///< index of the record of every buffer
  std::vector<std::int64_t> sizes;         ///< in units, rounded up to the common alignment
  std::vector<std::int64_t> alignments;    ///< in units
  std::vector<axis_range> ranges;          ///< sections that a buffer lives in
  std::vector<std::int64_t> section_sums;  ///< sum of sizes per section
  bit_rows members;                        ///< per section, the buffers in it
  bit_rows neighbours;                     ///< per buffer, those that share a section with it
  std::int64_t unit = 1;                   ///< bytes
  std::int64_t bound = 0;                  ///< the largest section sum, in units
  bool aligned = false;                    ///< whether some alignment exceeds one unit

  [[nodiscard]] std::size_t buffers() const { return sizes.size(); }
  [[nodiscard]] std::size_t sections() const { return section_sums.size(); }
};

/// Compresses validated records. O(n log n + n * live / 64) time; n^2 / 8 bytes for the conflicts.
[[nodiscard]] inline search_instance make_search_instance(std::span<const buffer_usage> usages) {
  search_instance instance;
  std::vector<std::uint32_t> buffer_of(usages.size(), 0);
  std::int64_t common = 0;
  for (std::size_t i = 0; i < usages.size(); ++i) {
    if (usages[i].size == 0) continue;
    buffer_of[i] = static_cast<std::uint32_t>(instance.records.size());
    instance.records.push_back(static_cast<std::uint32_t>(i));
    common = std::gcd(common, usages[i].alignment);
  }
  common = std::max<std::int64_t>(common, 1);
  std::int64_t unit = 0;
  for (const std::uint32_t record : instance.records) {
    unit = std::gcd(unit, align_up(usages[record].size, common));
    unit = usages[record].alignment > 1 ? std::gcd(unit, usages[record].alignment) : unit;
  }
  instance.unit = std::max<std::int64_t>(unit, 1);
  const std::size_t count = instance.records.size();
  for (const std::uint32_t record : instance.records) {
    instance.sizes.push_back(align_up(usages[record].size, common) / instance.unit);
    instance.alignments.push_back(std::max<std::int64_t>(1, usages[record].alignment / instance.unit));
    instance.aligned = instance.aligned || instance.alignments.back() > 1;
  }

  instance.ranges.resize(count);
  std::uint32_t sections = 0;
  bool grew = false;
  for (const auto& event : lifetime_events(usages)) {
    axis_range& range = instance.ranges[buffer_of[event.buffer]];
    if (event.begins) {
      range.begin = sections;
    } else {
      sections += grew ? 1U : 0U;
      range.end = sections;
    }
    grew = event.begins;
  }
  instance.members = bit_rows(sections, count);
  instance.neighbours = bit_rows(count, count);
  instance.section_sums.assign(sections, 0);
  std::vector<std::uint32_t> by_begin(count);
  std::iota(by_begin.begin(), by_begin.end(), 0U);
  std::stable_sort(by_begin.begin(), by_begin.end(), [&](std::uint32_t a, std::uint32_t b) {
    return instance.ranges[a].begin < instance.ranges[b].begin;
  });
  std::vector<std::uint32_t> live;
  for (const std::uint32_t buffer : by_begin) {
    const axis_range range = instance.ranges[buffer];
    for (std::uint32_t s = range.begin; s < range.end; ++s) {
      instance.members.set(s, buffer);
      instance.section_sums[s] += instance.sizes[buffer];
    }
    std::erase_if(live, [&](std::uint32_t other) { return instance.ranges[other].end <= range.begin; });
    for (const std::uint32_t other : live) {
      instance.neighbours.set(buffer, other);
      instance.neighbours.set(other, buffer);
    }
    live.push_back(buffer);
  }
  for (const std::int64_t sum : instance.section_sums) instance.bound = std::max(instance.bound, sum);
  return instance;
}

}  // namespace dnnopt::memory::detail

#endif  // DNNOPT_MEMORY_OFFSETS_SEARCH_INSTANCE_HPP
