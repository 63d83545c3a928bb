// Owns the quick planner of offsets: fills the lowest valley of the skyline, O(n log n) in practice, scratch reusable.
#ifndef DNNOPT_MEMORY_OFFSETS_QUICK_OFFSETS_HPP
#define DNNOPT_MEMORY_OFFSETS_QUICK_OFFSETS_HPP

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include <dnnopt/memory/timeline.hpp>
#include <dnnopt/memory/usage.hpp>

namespace dnnopt::memory {

/// Which buffer is put into a valley when several fit.
enum class valley_priority : std::uint8_t {
  area,             ///< sections spanned * size
  total_then_area,  ///< the largest live sum of its life, then area
  size,             ///< size, then sections spanned
  sections,         ///< sections spanned, then size
  total_then_size,  ///< the largest live sum of its life, then size
};

namespace detail {

/// Intervals in a k-d tree over (begin, end) that answers: of those inside [begin, end) and not yet taken, which has
/// the highest priority?
class interval_tree {
 public:
  static constexpr std::uint32_t none = std::numeric_limits<std::uint32_t>::max();

  /// Arranges the intervals; O(n log n). The ranges must outlive the tree.
  void build(std::span<const axis_range> ranges) {
    ranges_ = ranges;
    const std::size_t count = ranges.size();
    leaves_ = std::bit_ceil(std::max<std::size_t>(1, (count + bucket - 1) / bucket));
    items_.resize(count);
    places_.resize(count);
    std::iota(items_.begin(), items_.end(), 0U);
    nodes_.assign(2 * leaves_, node{});
    arrange(1, 0, count, false);
    for (std::size_t i = 0; i < count; ++i) places_[items_[i]] = static_cast<std::uint32_t>(i);
  }

  /// Puts all intervals back, with new priorities (>= 0), one per interval. O(n).
  void restore(std::span<const float> priorities) {
    priorities_ = priorities;
    taken_.assign(items_.size(), 0);
    for (std::size_t k = 2 * leaves_; k-- > 1;) refresh(k);
  }

  void take(std::uint32_t interval) {
    taken_[interval] = 1;
    const std::size_t place = places_[interval];
    std::size_t k = 1;
    while (k < leaves_) k = place < nodes_[2 * k].end ? 2 * k : 2 * k + 1;
    for (; k > 0; k /= 2) refresh(k);
  }

  /// The interval of highest priority inside [begin, end), or `none`.
  [[nodiscard]] std::uint32_t best_inside(std::uint32_t begin, std::uint32_t end) const {
    std::uint32_t best = none;
    float best_priority = -1.0F;
    visit(1, begin, end, best, best_priority);
    return best;
  }

 private:
  static constexpr std::size_t bucket = 8;
  struct node {
    std::size_t begin = 0;
    std::size_t end = 0;
    std::uint32_t latest_begin = 0;
    std::uint32_t earliest_end = 0;
    float priority = -1.0F;
  };

  void arrange(std::size_t k, std::size_t begin, std::size_t end, bool by_end) {
    nodes_[k].begin = begin;
    nodes_[k].end = end;
    if (k >= leaves_) return;
    const std::size_t middle = begin + (end - begin) / 2;
    const auto at = [&](std::size_t i) { return items_.begin() + static_cast<std::ptrdiff_t>(i); };
    std::nth_element(at(begin), at(middle), at(end), [&](std::uint32_t a, std::uint32_t b) {
      const axis_range left = ranges_[a];
      const axis_range right = ranges_[b];
      const auto key_a = by_end ? left.end : left.begin;
      const auto key_b = by_end ? right.end : right.begin;
      return key_a != key_b ? key_a < key_b : a < b;
    });
    arrange(2 * k, begin, middle, !by_end);
    arrange(2 * k + 1, middle, end, !by_end);
  }

  void refresh(std::size_t k) {
    node& n = nodes_[k];
    if (k < leaves_) {
      const node& left = nodes_[2 * k];
      const node& right = nodes_[2 * k + 1];
      n.latest_begin = std::max(left.latest_begin, right.latest_begin);
      n.earliest_end = std::min(left.earliest_end, right.earliest_end);
      n.priority = std::max(left.priority, right.priority);
      return;
    }
    n.latest_begin = 0;
    n.earliest_end = none;
    n.priority = -1.0F;
    for (std::size_t i = n.begin; i < n.end; ++i) {
      const std::uint32_t item = items_[i];
      if (taken_[item] != 0) continue;
      n.latest_begin = std::max(n.latest_begin, ranges_[item].begin);
      n.earliest_end = std::min(n.earliest_end, ranges_[item].end);
      n.priority = std::max(n.priority, priorities_[item]);
    }
  }

  void visit(std::size_t k, std::uint32_t begin, std::uint32_t end, std::uint32_t& best, float& best_priority) const {
    const node& n = nodes_[k];
    if (n.priority <= best_priority || n.latest_begin < begin || n.earliest_end > end) return;
    if (k < leaves_) {
      const bool left_first = nodes_[2 * k].priority >= nodes_[2 * k + 1].priority;
      visit(2 * k + (left_first ? 0 : 1), begin, end, best, best_priority);
      visit(2 * k + (left_first ? 1 : 0), begin, end, best, best_priority);
      return;
    }
    for (std::size_t i = n.begin; i < n.end; ++i) {
      const std::uint32_t item = items_[i];
      if (taken_[item] != 0 || priorities_[item] <= best_priority) continue;
      if (ranges_[item].begin < begin || ranges_[item].end > end) continue;
      best = item;
      best_priority = priorities_[item];
    }
  }

  std::span<const axis_range> ranges_;
  std::span<const float> priorities_;
  std::size_t leaves_ = 1;
  std::vector<std::uint32_t> items_;
  std::vector<std::uint32_t> places_;
  std::vector<node> nodes_;
  std::vector<char> taken_;
};

}  // namespace detail

/// Plans offsets by filling valleys: of the skyline of what is placed take the lowest stretch; the buffer of highest
/// priority that lives within it goes to its bottom; a stretch into which nothing fits rises to its lower neighbour.
/// (Burke, Kendall and Whitwell's best fit for strip packing, with the horizontal positions given.) Every buffer is
/// placed once and every rise joins two stretches, so there are O(n) steps of O(log n) plus one query of a k-d tree.
/// The object keeps its scratch: planning again for no more buffers allocates nothing.
class quick_planner {
 public:
  /// Reads the records (validated by the caller), computes sections and the bound. The records must stay alive until
  /// the last call of place. O(n log n).
  void prepare(std::span<const buffer_usage> usages) {
    usages_ = usages;
    events_.clear();
    records_.clear();
    ranges_.clear();
    for (std::uint32_t i = 0; i < usages.size(); ++i) {
      if (usages[i].size == 0) continue;
      const auto buffer = static_cast<std::uint32_t>(records_.size());
      records_.push_back(i);
      events_.push_back({usages[i].lower, 1, buffer});
      events_.push_back({usages[i].upper, 0, buffer});
    }
    std::sort(events_.begin(), events_.end(),
              [](const event& a, const event& b) { return a.time != b.time ? a.time < b.time : a.begins < b.begins; });
    ranges_.resize(records_.size());
    sections_ = 0;
    bool grew = false;
    for (const event& e : events_) {
      if (e.begins != 0) {
        ranges_[e.buffer].begin = sections_;
      } else {
        sections_ += grew ? 1U : 0U;
        ranges_[e.buffer].end = sections_;
      }
      grew = e.begins != 0;
    }
    sums_.assign(sections_ + 1, 0);
    for (std::size_t b = 0; b < records_.size(); ++b) {
      sums_[ranges_[b].begin] += usages[records_[b]].size;
      sums_[ranges_[b].end] -= usages[records_[b]].size;
    }
    std::partial_sum(sums_.begin(), sums_.end(), sums_.begin());
    bound_ = sums_.empty() ? 0 : *std::max_element(sums_.begin(), sums_.end());
    tree_.build(ranges_);
    largest_in_life();
  }

  /// The largest live sum of the records, without alignment.
  [[nodiscard]] std::int64_t bound() const { return bound_; }

  /// Fills `offsets` and returns the bytes that they need; gives up and returns the largest integer once they exceed
  /// `limit`. With `spread` > 0 priorities are multiplied by a random factor within `spread` of 1 drawn from `random`.
  template <class Random>
  std::int64_t place(valley_priority priority, std::vector<std::int64_t>& offsets, std::int64_t limit, double spread,
                     Random&& random) {
    offsets.assign(usages_.size(), 0);
    if (records_.empty()) return 0;
    prioritise(priority, spread, random);
    tree_.restore(priorities_);
    stretches_.clear();
    heap_.clear();
    stretches_.push_back({0, sections_, 0, none, none, 0, true});
    enter(0);
    std::int64_t bytes = 0;
    for (std::size_t placed = 0; placed < records_.size();) {
      const std::uint32_t at = lowest();
      const stretch here = stretches_[at];
      const std::uint32_t buffer = tree_.best_inside(here.begin, here.end);
      if (buffer == detail::interval_tree::none) {
        rise(at);
        continue;
      }
      tree_.take(buffer);
      ++placed;
      const buffer_usage& usage = usages_[records_[buffer]];
      const std::int64_t offset = align_up(here.height, usage.alignment);
      offsets[records_[buffer]] = offset;
      bytes = std::max(bytes, offset + usage.size);
      if (bytes > limit) return std::numeric_limits<std::int64_t>::max();
      cover(at, ranges_[buffer], offset + usage.size);
    }
    return bytes;
  }

  /// The best of the first `orders` priorities (at most 5): fills `offsets`, returns the bytes. prepare included.
  std::int64_t plan(std::span<const buffer_usage> usages, std::vector<std::int64_t>& offsets, std::size_t orders = 5) {
    constexpr valley_priority all[] = {valley_priority::area, valley_priority::total_then_area, valley_priority::size,
                                       valley_priority::sections, valley_priority::total_then_size};
    prepare(usages);
    std::int64_t best = std::numeric_limits<std::int64_t>::max();
    for (std::size_t i = 0; i < std::min(std::max<std::size_t>(orders, 1), std::size(all)) && best > bound_; ++i) {
      const std::int64_t bytes = place(all[i], trial_, best - 1, 0.0, [] { return 0U; });
      if (bytes >= best) continue;
      best = bytes;
      std::swap(offsets, trial_);
    }
    return best;
  }

 private:
  static constexpr std::uint32_t none = std::numeric_limits<std::uint32_t>::max();
  struct event {
    std::int64_t time;
    std::uint32_t begins;
    std::uint32_t buffer;
  };
  struct stretch {
    std::uint32_t begin;
    std::uint32_t end;
    std::int64_t height;
    std::uint32_t left;  // neighbouring stretches
    std::uint32_t right;
    std::uint32_t version;
    bool alive;
  };
  struct entry {
    std::int64_t height;
    std::uint32_t begin;
    std::uint32_t stretch;
    std::uint32_t version;
    friend bool operator<(const entry& a, const entry& b) {  // the heap's top is the lowest, leftmost
      return a.height != b.height ? a.height > b.height : a.begin > b.begin;
    }
  };

  /// For every buffer the largest section sum of its life, from a sparse table.
  void largest_in_life() {
    const std::size_t count = sections_;
    const std::size_t levels = count == 0 ? 0 : static_cast<std::size_t>(std::bit_width(count));
    table_.resize(levels * count);
    for (std::size_t s = 0; s < count; ++s) table_[s] = sums_[s];
    for (std::size_t level = 1; level < levels; ++level) {
      const std::size_t half = std::size_t{1} << (level - 1);
      for (std::size_t s = 0; s + 2 * half <= count; ++s) {
        table_[level * count + s] = std::max(table_[(level - 1) * count + s], table_[(level - 1) * count + s + half]);
      }
    }
    totals_.resize(records_.size());
    for (std::size_t b = 0; b < records_.size(); ++b) {
      const axis_range range = ranges_[b];
      const std::size_t level = static_cast<std::size_t>(std::bit_width(range.end - range.begin)) - 1;
      totals_[b] =
          std::max(table_[level * count + range.begin], table_[level * count + range.end - (std::size_t{1} << level)]);
    }
  }

  template <class Random>
  void prioritise(valley_priority priority, double spread, Random& random) {
    priorities_.resize(records_.size());
    const double scale = 1.0 / static_cast<double>(bound_ + 1);
    for (std::size_t b = 0; b < records_.size(); ++b) {
      const double width = static_cast<double>(ranges_[b].end - ranges_[b].begin) / static_cast<double>(sections_);
      const double size = static_cast<double>(usages_[records_[b]].size) * scale;
      const double total = static_cast<double>(totals_[b]) * scale;
      double value = 0.0;
      switch (priority) {
        case valley_priority::area:
          value = width * size;
          break;
        case valley_priority::total_then_area:
          value = total * 1e4 + width * size;
          break;
        case valley_priority::size:
          value = size * 1e4 + width;
          break;
        case valley_priority::sections:
          value = width * 1e4 + size;
          break;
        case valley_priority::total_then_size:
          value = total * 1e4 + size;
          break;
      }
      if (spread > 0.0) value *= 1.0 + spread * (static_cast<double>(random() % 2001U) / 1000.0 - 1.0);
      priorities_[b] = static_cast<float>(value);
    }
  }

  void enter(std::uint32_t at) {
    const stretch& s = stretches_[at];
    heap_.push_back({s.height, s.begin, at, s.version});
    std::push_heap(heap_.begin(), heap_.end());
  }

  [[nodiscard]] std::uint32_t lowest() {
    for (;;) {
      const entry top = heap_.front();
      std::pop_heap(heap_.begin(), heap_.end());
      heap_.pop_back();
      if (stretches_[top.stretch].alive && stretches_[top.stretch].version == top.version) return top.stretch;
    }
  }

  /// Joins a stretch with neighbours of its height and puts it back into the heap.
  void join(std::uint32_t at) {
    stretch& s = stretches_[at];
    while (s.left != none && stretches_[s.left].height == s.height) {
      stretch& l = stretches_[s.left];
      l.alive = false;
      s.begin = l.begin;
      s.left = l.left;
    }
    if (s.left != none) stretches_[s.left].right = at;
    while (s.right != none && stretches_[s.right].height == s.height) {
      stretch& r = stretches_[s.right];
      r.alive = false;
      s.end = r.end;
      s.right = r.right;
    }
    if (s.right != none) stretches_[s.right].left = at;
    ++s.version;
    enter(at);
  }

  void rise(std::uint32_t at) {
    stretch& s = stretches_[at];
    constexpr std::int64_t wall = std::numeric_limits<std::int64_t>::max();
    const std::int64_t left = s.left == none ? wall : stretches_[s.left].height;
    const std::int64_t right = s.right == none ? wall : stretches_[s.right].height;
    s.height = std::min(left, right);
    join(at);
  }

  /// Splits a stretch around `range` and sets the middle to `height`.
  void cover(std::uint32_t at, axis_range range, std::int64_t height) {
    const stretch old = stretches_[at];
    stretches_[at].begin = range.begin;
    stretches_[at].end = range.end;
    stretches_[at].height = height;
    if (old.begin < range.begin) {
      const auto piece = static_cast<std::uint32_t>(stretches_.size());
      stretches_.push_back({old.begin, range.begin, old.height, old.left, at, 0, true});
      if (old.left != none) stretches_[old.left].right = piece;
      stretches_[at].left = piece;
      enter(piece);
    }
    if (range.end < old.end) {
      const auto piece = static_cast<std::uint32_t>(stretches_.size());
      stretches_.push_back({range.end, old.end, old.height, at, old.right, 0, true});
      if (old.right != none) stretches_[old.right].left = piece;
      stretches_[at].right = piece;
      enter(piece);
    }
    join(at);
  }

  std::span<const buffer_usage> usages_;
  std::vector<std::uint32_t> records_;  // records of positive size
  std::vector<event> events_;
  std::vector<axis_range> ranges_;
  std::vector<std::int64_t> sums_;
  std::vector<std::int64_t> table_;
  std::vector<std::int64_t> totals_;
  std::vector<float> priorities_;
  std::vector<stretch> stretches_;
  std::vector<entry> heap_;
  std::vector<std::int64_t> trial_;
  detail::interval_tree tree_;
  std::uint32_t sections_ = 0;
  std::int64_t bound_ = 0;
};

}  // namespace dnnopt::memory

#endif  // DNNOPT_MEMORY_OFFSETS_QUICK_OFFSETS_HPP
