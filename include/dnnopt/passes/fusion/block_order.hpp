// Owns an order of blocks in which each comes behind those that it needs, kept while blocks are made and joined.
#ifndef DNNOPT_PASSES_FUSION_BLOCK_ORDER_HPP
#define DNNOPT_PASSES_FUSION_BLOCK_ORDER_HPP

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <limits>
#include <map>
#include <span>
#include <utility>
#include <vector>

namespace dnnopt::fusion {

/// A number of a block in a planner.
using block_id = std::uint32_t;
inline constexpr block_id no_block = std::numeric_limits<block_id>::max();

/// Blocks in a line. A search for a way between two blocks needs to look only at what lies between them, which their
/// positions in the graph's order cannot say once a block has members from far apart. Each block has a label, and
/// labels have room between them (Dietz and Sleator, "Two algorithms for maintaining order in a list", 1987, in its
/// simplest form: where there is no room left, all labels are dealt anew).
class block_order {
 public:
  /// Puts a block behind all others. Precondition: it is not in the line. O(log B).
  void append(block_id b) { place(b, by_label_.empty() ? 0 : by_label_.rbegin()->first + gap); }

  /// Puts blocks, some of which may stand elsewhere in the line, directly before `target`, in their order.
  /// Precondition: the target is in the line, and not among them; there are fewer than 2^24 blocks. O(n log B), O(B)
  /// where there is no room.
  void put_before(block_id target, std::span<const block_id> blocks) {
    if (blocks.empty()) return;
    for (const block_id b : blocks) remove(b);
    const auto count = static_cast<std::int64_t>(blocks.size());
    if (room_before(target) <= count) spread();
    const std::int64_t step = room_before(target) / (count + 1);
    std::int64_t at = labels_[target] - step * count;
    for (const block_id b : blocks) place(b, at), at += step;
  }

  /// Gives `to` the place of `from`, which leaves the line. Precondition: both are in it. O(log B).
  void take_place(block_id from, block_id to) {
    const std::int64_t label = labels_[from];
    remove(from);
    remove(to);
    place(to, label);
  }

  /// Takes a block out of the line, where it is in it. O(log B).
  void remove(block_id b) {
    if (b >= labels_.size() || labels_[b] == nowhere) return;
    by_label_.erase(labels_[b]);
    labels_[b] = nowhere;
  }

  /// Whether `a` stands before `b`. Precondition: both are in the line. O(1).
  [[nodiscard]] bool before(block_id a, block_id b) const { return labels_[a] < labels_[b]; }

 private:
  static constexpr std::int64_t gap = std::int64_t{1} << 24;
  static constexpr std::int64_t nowhere = std::numeric_limits<std::int64_t>::min();

  void place(block_id b, std::int64_t label) {
    if (b >= labels_.size()) labels_.resize(b + std::size_t{1}, nowhere);
    labels_[b] = label;
    by_label_.emplace(label, b);
  }

  /// The distance to the block before, which is at least 1.
  [[nodiscard]] std::int64_t room_before(block_id target) const {
    const auto here = by_label_.find(labels_[target]);
    return here == by_label_.begin() ? gap : here->first - std::prev(here)->first;
  }

  void spread() {
    std::map<std::int64_t, block_id> anew;
    for (const auto& [label, b] : by_label_) {
      labels_[b] = static_cast<std::int64_t>(anew.size()) * gap;
      anew.emplace_hint(anew.end(), labels_[b], b);
    }
    by_label_ = std::move(anew);
  }

  std::vector<std::int64_t> labels_;  ///< by block
  std::map<std::int64_t, block_id> by_label_;
};

}  // namespace dnnopt::fusion

#endif  // DNNOPT_PASSES_FUSION_BLOCK_ORDER_HPP
