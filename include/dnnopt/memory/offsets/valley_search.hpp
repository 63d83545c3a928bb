// Owns the exact depth-first search for offsets below a given height: one branching section at a time.
#ifndef DNNOPT_MEMORY_OFFSETS_VALLEY_SEARCH_HPP
#define DNNOPT_MEMORY_OFFSETS_VALLEY_SEARCH_HPP

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include <dnnopt/memory/offsets/search_instance.hpp>

namespace dnnopt::memory::detail {

/// How the search chooses the section to branch on; every choice is complete.
enum class section_rule : std::uint8_t {
  tightest,         ///< among the lowest sections the one with the least room to waste
  fewest,           ///< among the lowest sections the one with the fewest ways to continue
  fewest_anywhere,  ///< among all sections that may be decided, the one with the fewest ways to continue
};

/// One way to walk the tree.
struct search_walk {
  section_rule rule = section_rule::fewest_anywhere;
  bool weighted = false;                    ///< prefer sections that failed often
  std::span<const std::uint32_t> priority;  ///< rank of every buffer, lower is tried first
  std::uint64_t nodes = 0;                  ///< gives up after this many
};

enum class search_outcome : std::uint8_t { found, exhausted, gave_up };

/// States from which the rest cannot be placed, kept over walks: a failure holds whatever the walk, and for every
/// smaller height. Lossy: a new state overwrites an old one in its slot. Grows with the number of states up to a limit.
class failed_states {
 public:
  struct key {
    std::uint64_t first = 0;
    std::uint64_t second = 0;
    friend bool operator==(const key&, const key&) = default;
  };

  explicit failed_states(std::size_t log2_most) : slots_(64), most_(std::size_t{1} << log2_most) {}

  /// Whether the state failed at `height` or above.
  [[nodiscard]] bool contains(key k, std::int64_t height) const {
    const slot& s = slots_[k.first & (slots_.size() - 1)];
    return s.state == k && s.height >= height;
  }

  void insert(key k, std::int64_t height) {
    if (++inserted_ > slots_.size() / 2 && slots_.size() < most_) grow();
    slots_[k.first & (slots_.size() - 1)] = {k, height};
  }

 private:
  struct slot {
    key state;
    std::int64_t height = -1;
  };

  void grow() {
    std::vector<slot> larger(4 * slots_.size());
    for (const slot& s : slots_) {
      if (s.height >= 0) larger[s.state.first & (larger.size() - 1)] = s;
    }
    slots_ = std::move(larger);
  }

  std::vector<slot> slots_;
  std::size_t most_;
  std::size_t inserted_ = 0;
};

/// Searches an arena of a given height. Every buffer has a *floor*, the lowest offset that it can still take; every
/// section has one too, the lowest among its unplaced buffers. A section can be decided when no unplaced neighbour of
/// its lowest buffers lies lower still (the section is in a valley of the skyline). Then either one of them rests on
/// its floor, or all of them are pushed up by a neighbour, which must begin inside the room that the pushed buffer
/// would take, or the buffer could drop (the layout would not be left-justified). Since every section can be chosen,
/// the one with the fewest ways to continue is (fail first). Pruned when floor + unplaced sizes of a section exceed
/// the height; independent parts of the time axis are searched apart; equal buffers are tried once; states that failed
/// are remembered. From MiniMalloc (Moffitt 2023) come sections, their inference, canonical placements and dynamic
/// decomposition; branching on sections, pushing and the memory of failures are ours.
class valley_search {
 public:
  explicit valley_search(const search_instance& instance)
      : problem_(instance), failed_(20), failures_(instance.sections(), 0) {
    const std::size_t n = instance.buffers();
    floors_.resize(n);
    supports_.resize(n);
    offsets_.resize(n);
    keys_.resize(n);
    std::uint64_t seed = 0x9E3779B97F4A7C15ULL;
    for (auto& k : keys_) {
      k.first = seed = mix(seed + 1);
      k.second = seed = mix(seed + 2);
    }
  }

  /// Looks for offsets with all tops at or below `height` (in units). After `found`, offsets() holds them.
  /// `stop(nodes)` is asked every 256 nodes and ends the walk (gave_up) by returning true.
  template <class Stop>
  [[nodiscard]] search_outcome run(std::int64_t height, const search_walk& walk, Stop&& stop) {
    height_ = height;
    walk_ = walk;
    nodes_ = 0;
    reset();
    for (std::size_t s = 0; s < sections_.size(); ++s) {
      if (room(s) < 0) return search_outcome::exhausted;
    }
    gave_up_ = false;
    if (descend(0, static_cast<std::uint32_t>(problem_.sections()), stop)) return search_outcome::found;
    return gave_up_ ? search_outcome::gave_up : search_outcome::exhausted;
  }

  [[nodiscard]] std::span<const std::int64_t> offsets() const { return offsets_; }
  [[nodiscard]] std::uint64_t nodes() const { return nodes_; }

  /// Forgets which sections failed often.
  void forget_failures() { std::fill(failures_.begin(), failures_.end(), 0U); }

 private:
  static constexpr std::int64_t nothing = std::numeric_limits<std::int64_t>::max() / 4;

  struct section_state {
    std::int64_t floor = 0;   // least floor of the unplaced buffers, `nothing` when all are placed
    std::uint32_t begin = 0;  // sections spanned by the buffers at that floor
    std::uint32_t end = 0;
    std::uint32_t lowest = 0;  // number of buffers at that floor
    std::uint32_t dirty = 0;   // stamp
  };
  struct change {
    enum class what : std::uint8_t { floor, support, section, placement } kind;
    std::uint32_t index;
    std::int64_t value;
    std::uint32_t begin;
    std::uint32_t end;
    std::uint32_t lowest;
  };

  [[nodiscard]] static std::uint64_t mix(std::uint64_t x) {
    x ^= x >> 30U;
    x *= 0xBF58476D1CE4E5B9ULL;
    x ^= x >> 27U;
    x *= 0x94D049BB133111EBULL;
    return x ^ (x >> 31U);
  }

  [[nodiscard]] std::int64_t room(std::size_t s) const { return height_ - sections_[s].floor - unplaced_sums_[s]; }
  [[nodiscard]] bool unplaced(std::size_t b) const { return (open_[b / 64] >> (b % 64) & 1U) != 0; }

  void reset() {
    const std::size_t n = problem_.buffers();
    std::fill(floors_.begin(), floors_.end(), 0);
    std::fill(supports_.begin(), supports_.end(), 0);
    open_.assign(problem_.neighbours.words(), 0);
    for (std::size_t b = 0; b < n; ++b) open_[b / 64] |= std::uint64_t{1} << (b % 64);
    unplaced_sums_.assign(problem_.section_sums.begin(), problem_.section_sums.end());
    crossing_.assign(problem_.sections() + 1, 0);
    for (const axis_range range : problem_.ranges) {
      for (std::uint32_t s = range.begin + 1; s < range.end; ++s) ++crossing_[s];
    }
    changes_.clear();
    dirty_.clear();
    candidates_.clear();
    stamp_ = 1;
    sections_.assign(problem_.sections(), section_state{});
    previous_lower_.resize(problem_.sections());
    for (std::uint32_t s = 0; s < sections_.size(); ++s) compute(s);
    state_ = {};
    for (std::uint32_t b = 0; b < n; ++b) toggle(b);
  }

  // The hash of a state is the exclusive or of one value per unplaced buffer; call before and after a change.
  void toggle(std::uint32_t b) {
    const auto floor = static_cast<std::uint64_t>(floors_[b]);
    const auto support = static_cast<std::uint64_t>(supports_[b]);
    state_.first ^= mix(keys_[b].first + floor * 0x9E3779B97F4A7C15ULL + support * 0xC2B2AE3D27D4EB4FULL);
    state_.second ^= mix(keys_[b].second + floor * 0x165667B19E3779F9ULL + support * 0x27D4EB2F165667C5ULL);
  }

  void compute(std::uint32_t s) {
    section_state& section = sections_[s];
    section.floor = nothing;
    section.lowest = 0;
    for_each_common(problem_.members.row(s), open_.data(), open_.size(), [&](std::size_t b) {
      if (floors_[b] > section.floor) return;
      const axis_range range = problem_.ranges[b];
      if (floors_[b] < section.floor) {
        section.floor = floors_[b];
        section.begin = range.begin;
        section.end = range.end;
        section.lowest = 1;
        return;
      }
      section.begin = std::min(section.begin, range.begin);
      section.end = std::max(section.end, range.end);
      ++section.lowest;
    });
  }

  // Sections where b was among the lowest must be computed anew; elsewhere its change is not seen.
  void touch(std::uint32_t b, std::int64_t old_floor) {
    const axis_range range = problem_.ranges[b];
    for (std::uint32_t s = range.begin; s < range.end; ++s) {
      section_state& section = sections_[s];
      if (section.floor != old_floor || section.dirty == stamp_) continue;
      section.dirty = stamp_;
      dirty_.push_back(s);
    }
  }

  void set_floor(std::uint32_t b, std::int64_t value) {
    changes_.push_back({change::what::floor, b, floors_[b], 0, 0, 0});
    touch(b, floors_[b]);
    toggle(b);
    floors_[b] = value;
    toggle(b);
  }

  void set_support(std::uint32_t b, std::int64_t value) {
    changes_.push_back({change::what::support, b, supports_[b], 0, 0, 0});
    toggle(b);
    supports_[b] = value;
    toggle(b);
  }

  /// Brings the touched sections up to date; false when one has no room left.
  [[nodiscard]] bool settle() {
    bool holds = true;
    for (const std::uint32_t s : dirty_) {
      section_state& section = sections_[s];
      changes_.push_back({change::what::section, s, section.floor, section.begin, section.end, section.lowest});
      compute(s);
      if (unplaced_sums_[s] > 0 && room(s) < 0) {
        ++failures_[s];
        holds = false;
        break;
      }
    }
    dirty_.clear();
    ++stamp_;
    return holds;
  }

  void discard_dirty() {
    dirty_.clear();
    ++stamp_;
  }

  void undo(std::size_t mark) {
    while (changes_.size() > mark) {
      const change& c = changes_.back();
      switch (c.kind) {
        case change::what::floor:
          toggle(c.index);
          floors_[c.index] = c.value;
          toggle(c.index);
          break;
        case change::what::support:
          toggle(c.index);
          supports_[c.index] = c.value;
          toggle(c.index);
          break;
        case change::what::section: {
          section_state& section = sections_[c.index];
          section.floor = c.value;
          section.begin = c.begin;
          section.end = c.end;
          section.lowest = c.lowest;
          break;
        }
        case change::what::placement: {
          const axis_range range = problem_.ranges[c.index];
          open_[c.index / 64] |= std::uint64_t{1} << (c.index % 64);
          for (std::uint32_t s = range.begin; s < range.end; ++s) unplaced_sums_[s] += problem_.sizes[c.index];
          for (std::uint32_t s = range.begin + 1; s < range.end; ++s) ++crossing_[s];
          toggle(c.index);
          break;
        }
      }
      changes_.pop_back();
    }
  }

  /// Puts b on its floor and pushes its unplaced neighbours above it; false when a section overflows.
  [[nodiscard]] bool place(std::uint32_t b) {
    const std::int64_t top = floors_[b] + problem_.sizes[b];
    const axis_range range = problem_.ranges[b];
    offsets_[b] = floors_[b];
    changes_.push_back({change::what::placement, b, 0, 0, 0, 0});
    toggle(b);
    open_[b / 64] &= ~(std::uint64_t{1} << (b % 64));
    touch(b, floors_[b]);
    for (std::uint32_t s = range.begin; s < range.end; ++s) unplaced_sums_[s] -= problem_.sizes[b];
    for (std::uint32_t s = range.begin + 1; s < range.end; ++s) --crossing_[s];
    for_each_common(problem_.neighbours.row(b), open_.data(), open_.size(), [&](std::size_t index) {
      const auto u = static_cast<std::uint32_t>(index);
      const std::int64_t above = problem_.aligned ? align_up(top, problem_.alignments[u]) : top;
      if (supports_[u] < above) set_support(u, above);
      if (floors_[u] < above) set_floor(u, above);
    });
    return settle();
  }

  /// Lifts the floor of a buffer that does not rest on its support: something unplaced must begin in the room that the
  /// buffer would take on its support. False when nothing can.
  [[nodiscard]] bool push(std::uint32_t b) {
    const std::int64_t limit = supports_[b] + problem_.sizes[b];
    std::int64_t least = nothing;
    for_each_common(problem_.neighbours.row(b), open_.data(), open_.size(), [&](std::size_t v) {
      if (floors_[v] < limit) least = std::min(least, floors_[v] + problem_.sizes[v]);
    });
    if (least == nothing) return false;
    if (problem_.aligned) least = align_up(least, problem_.alignments[b]);
    if (least > floors_[b]) set_floor(b, least);
    return true;
  }

  /// Splits [begin, end) where no unplaced buffer crosses. 0: nothing left, 1: one part (begin and end are narrowed),
  /// 2: solved or failed part by part, the result in `solved`.
  template <class Stop>
  int split(std::uint32_t& begin, std::uint32_t& end, bool& solved, Stop& stop) {
    bool crossed = true;
    for (std::uint32_t s = begin + 1; s < end && crossed; ++s) crossed = crossing_[s] != 0;
    if (crossed) return 1;
    struct part {
      std::int64_t room;
      std::uint32_t begin;
      std::uint32_t end;
    };
    std::vector<part> parts;
    std::uint32_t from = begin;
    for (std::uint32_t s = begin + 1; s <= end; ++s) {
      if (s != end && crossing_[s] != 0) continue;
      std::int64_t least = nothing;
      for (std::uint32_t t = from; t < s; ++t) {
        if (unplaced_sums_[t] > 0) least = std::min(least, room(t));
      }
      if (least != nothing) parts.push_back({least, from, s});
      from = s;
    }
    if (parts.empty()) return 0;
    if (parts.size() == 1) {
      begin = parts[0].begin;
      end = parts[0].end;
      return 1;
    }
    std::sort(parts.begin(), parts.end(),
              [](const part& a, const part& b) { return a.room != b.room ? a.room < b.room : a.begin < b.begin; });
    solved = true;
    for (const part& p : parts) {
      // Inside a part the hash covers the part alone, so that equal parts are recognised in other surroundings.
      const failed_states::key whole = state_;
      state_ = {};
      std::vector<std::uint32_t> own;
      for (std::uint32_t b = 0; b < problem_.buffers(); ++b) {
        if (unplaced(b) && problem_.ranges[b].begin >= p.begin && problem_.ranges[b].end <= p.end) own.push_back(b);
      }
      for (const std::uint32_t b : own) toggle(b);
      const failed_states::key before = state_;
      solved = descend(p.begin, p.end, stop);
      state_ = solved ? failed_states::key{whole.first ^ before.first, whole.second ^ before.second} : whole;
      if (!solved) return 2;
    }
    return 2;
  }

  /// The section to branch on, `end` when nothing in [begin, end) is unplaced.
  [[nodiscard]] std::uint32_t choose(std::uint32_t begin, std::uint32_t end) {
    std::int64_t lowest = nothing;
    for (std::uint32_t s = begin; s < end; ++s) lowest = std::min(lowest, sections_[s].floor);
    const bool anywhere = walk_.rule == section_rule::fewest_anywhere;
    if (anywhere) {
      // previous_lower_[s]: one past the nearest section to the left with a lower floor.
      for (std::uint32_t s = begin; s < end; ++s) {
        std::uint32_t p = s;
        while (p > begin && sections_[p - 1].floor >= sections_[s].floor) p = previous_lower_[p - 1];
        previous_lower_[s] = p;
      }
    }
    std::uint32_t best = end;
    double best_score = std::numeric_limits<double>::infinity();
    for (std::uint32_t s = end; s-- > begin;) {
      const section_state& section = sections_[s];
      if (section.floor == nothing) continue;
      if (section.floor != lowest) {
        if (!anywhere || section.begin < previous_lower_[s]) continue;
        bool valley = true;
        for (std::uint32_t t = s + 1; t < section.end && valley; ++t) valley = sections_[t].floor >= section.floor;
        if (!valley) continue;
      }
      const std::int64_t space = room(s);
      double score = static_cast<double>(space) / static_cast<double>(height_ + 1);
      if (walk_.rule != section_rule::tightest) score += section.lowest + (space > 0 ? 1U : 0U);
      if (walk_.weighted) score /= 1.0 + static_cast<double>(failures_[s]);
      if (score <= best_score) {
        best_score = score;
        best = s;
      }
    }
    return best;
  }

  template <class Stop>
  bool descend(std::uint32_t begin, std::uint32_t end, Stop& stop) {
    const std::size_t mark = changes_.size();
    const std::size_t first_candidate = candidates_.size();
    const std::size_t first_visited = visited_.size();
    const bool solved = walk_down(begin, end, stop);
    candidates_.resize(first_candidate);
    if (!solved) {
      discard_dirty();
      if (!gave_up_) {
        for (std::size_t i = first_visited; i < visited_.size(); ++i) failed_.insert(visited_[i], height_);
        undo(mark);
      }
    }
    visited_.resize(first_visited);
    return solved;
  }

  template <class Stop>
  bool walk_down(std::uint32_t begin, std::uint32_t end, Stop& stop) {
    for (;;) {
      if (++nodes_ > walk_.nodes || (nodes_ % 256 == 0 && stop(nodes_))) {
        gave_up_ = true;
        return false;
      }
      bool solved = false;
      const int parts = split(begin, end, solved, stop);
      if (parts != 1) return parts == 0 || solved;
      const std::uint32_t s = choose(begin, end);
      if (s == end) return true;
      if (failed_.contains(state_, height_)) return false;
      visited_.push_back(state_);
      const std::int64_t floor = sections_[s].floor;
      const std::int64_t space = room(s);
      const std::size_t first = candidates_.size();
      bool pushed = false;
      bool holds = true;
      for_each_common(problem_.members.row(s), open_.data(), open_.size(), [&](std::size_t index) {
        const auto b = static_cast<std::uint32_t>(index);
        if (floors_[b] != floor || !holds) return;
        if (supports_[b] < floor) {
          pushed = true;
          holds = push(b);
        } else {
          candidates_.push_back(b);
        }
      });
      if (!holds) return false;
      if (pushed) {
        candidates_.resize(first);
        if (!settle()) return false;
        continue;
      }
      std::sort(candidates_.begin() + static_cast<std::ptrdiff_t>(first), candidates_.end(),
                [&](std::uint32_t a, std::uint32_t b) { return walk_.priority[a] < walk_.priority[b]; });
      const std::size_t last = candidates_.size();
      const std::size_t mark = changes_.size();
      for (std::size_t i = first; i < last; ++i) {
        const std::uint32_t b = candidates_[i];
        if (seen_equal(first, i)) continue;
        if (place(b)) {
          if (descend(begin, end, stop)) return true;
          if (gave_up_) return false;
        } else {
          discard_dirty();
        }
        undo(mark);
      }
      if (space == 0) return false;
      for (std::size_t i = first; i < last; ++i) {
        if (!push(candidates_[i])) return false;
      }
      candidates_.resize(first);
      if (!settle()) return false;
    }
  }

  /// Whether an equal buffer was tried before in this list.
  [[nodiscard]] bool seen_equal(std::size_t first, std::size_t i) const {
    const std::uint32_t b = candidates_[i];
    for (std::size_t j = first; j < i; ++j) {
      const std::uint32_t other = candidates_[j];
      if (problem_.sizes[other] == problem_.sizes[b] && problem_.alignments[other] == problem_.alignments[b] &&
          problem_.ranges[other].begin == problem_.ranges[b].begin &&
          problem_.ranges[other].end == problem_.ranges[b].end) {
        return true;
      }
    }
    return false;
  }

  const search_instance& problem_;
  failed_states failed_;
  std::vector<std::uint32_t> failures_;
  std::vector<failed_states::key> keys_;
  search_walk walk_;
  std::int64_t height_ = 0;
  std::uint64_t nodes_ = 0;
  bool gave_up_ = false;
  failed_states::key state_;
  std::vector<std::int64_t> floors_;    // lowest offset that a buffer can still take
  std::vector<std::int64_t> supports_;  // highest top among its placed neighbours
  std::vector<std::int64_t> offsets_;
  std::vector<std::uint64_t> open_;  // bit set of unplaced buffers
  std::vector<section_state> sections_;
  std::vector<std::int64_t> unplaced_sums_;
  std::vector<std::uint32_t> crossing_;  // unplaced buffers alive both before and in a section
  std::vector<std::uint32_t> previous_lower_;
  std::vector<std::uint32_t> dirty_;
  std::uint32_t stamp_ = 1;
  std::vector<change> changes_;
  std::vector<std::uint32_t> candidates_;
  std::vector<failed_states::key> visited_;
};

}  // namespace dnnopt::memory::detail

#endif  // DNNOPT_MEMORY_OFFSETS_VALLEY_SEARCH_HPP
