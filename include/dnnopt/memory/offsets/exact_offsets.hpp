// Owns the anytime planner of offsets: quick plans first, then exact searches below the best, interleaved and
// restarted.
#ifndef DNNOPT_MEMORY_OFFSETS_EXACT_OFFSETS_HPP
#define DNNOPT_MEMORY_OFFSETS_EXACT_OFFSETS_HPP

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <limits>
#include <mutex>
#include <numeric>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include <dnnopt/memory/offsets/quick_offsets.hpp>
#include <dnnopt/memory/offsets/search_instance.hpp>
#include <dnnopt/memory/offsets/valley_search.hpp>
#include <dnnopt/memory/random_sequence.hpp>
#include <dnnopt/memory/usage.hpp>

namespace dnnopt::memory {

/// Limits of the exact search.
struct exact_options {
  double budget = 60.0;       ///< seconds of wall time; it ends earlier when the plan is proved
  std::size_t threads = 1;    ///< searches that run at one time, each with its own order and seed
  std::int64_t capacity = 0;  ///< end at the first plan of at most this many bytes; 0: minimise
  std::uint64_t seed = 1;     ///< of the random orders; one thread and one seed give one sequence of searches
};

namespace detail {

/// Ranks of buffers by one of the published keys (MiniMalloc's W(idth), A(rea), T(otal) and their mixtures, size,
/// and the sum of the neighbours' sizes), each multiplied by a random factor within `spread` of 1.
class priority_orders {
 public:
  static constexpr std::size_t keys = 7;

  explicit priority_orders(const search_instance& instance) : values_(keys) {
    const std::size_t n = instance.buffers();
    for (auto& v : values_) v.resize(n);
    order_.resize(n);
    value_.resize(n);
    for (std::size_t b = 0; b < n; ++b) {
      const axis_range range = instance.ranges[b];
      const auto width = static_cast<double>(range.end - range.begin) / static_cast<double>(instance.sections() + 1);
      const auto size = static_cast<double>(instance.sizes[b]) / static_cast<double>(instance.bound + 1);
      std::int64_t most = 0;
      for (std::uint32_t s = range.begin; s < range.end; ++s) most = std::max(most, instance.section_sums[s]);
      const auto total = static_cast<double>(most) / static_cast<double>(instance.bound + 1);
      double around = 0.0;
      const std::uint64_t* row = instance.neighbours.row(b);
      for_each_common(row, row, instance.neighbours.words(),
                      [&](std::size_t v) { around += static_cast<double>(instance.sizes[v]); });
      values_[0][b] = width * 1e4 + width * size;
      values_[1][b] = total * 1e4 + width * size;
      values_[2][b] = total * 1e4 + width;
      values_[3][b] = width * size;
      values_[4][b] = size * 1e4 + width;
      values_[5][b] = total * 1e4 + size;
      values_[6][b] = around;
    }
  }

  /// Fills `rank` with the position of every buffer by decreasing key.
  void ranks(std::size_t key, double spread, random_sequence& random, std::vector<std::uint32_t>& rank) {
    ranks_by(
        [&](std::size_t b) {
          return values_[key][b] * (1.0 + spread * (static_cast<double>(random.below(2001)) / 1000.0 - 1.0));
        },
        rank);
  }

  /// Fills `rank` with the position of every buffer by decreasing `value(b)`.
  template <class Value>
  void ranks_by(Value&& value, std::vector<std::uint32_t>& rank) {
    const std::size_t n = order_.size();
    for (std::size_t b = 0; b < n; ++b) value_[b] = value(b);
    std::iota(order_.begin(), order_.end(), 0U);
    std::stable_sort(order_.begin(), order_.end(),
                     [&](std::uint32_t a, std::uint32_t b) { return value_[a] > value_[b]; });
    rank.resize(n);
    for (std::size_t i = 0; i < n; ++i) rank[order_[i]] = static_cast<std::uint32_t>(i);
  }

 private:
  std::vector<std::vector<double>> values_;
  std::vector<double> value_;
  std::vector<std::uint32_t> order_;
};

/// The best plan so far and the bound, shared by the searches.
class shared_incumbent {
 public:
  using clock = std::chrono::steady_clock;

  shared_incumbent(std::span<const buffer_usage> usages, const exact_options& options, clock::time_point start)
      : usages_(usages), options_(options) {
    const double budget = std::clamp(options.budget, 0.0, 1e7);
    deadline_ = start + std::chrono::duration_cast<clock::duration>(std::chrono::duration<double>(budget));
    lower_ = largest_live_sum(usages);
  }

  /// Heights of the searches are in units of the compressed records. Before the first search.
  void measure_in(const search_instance& instance) {
    unit_ = instance.unit;
    for (std::size_t b = 0; b < instance.buffers(); ++b) {
      rounding_ = std::max(rounding_, instance.sizes[b] * instance.unit - usages_[instance.records[b]].size);
    }
  }

  /// Takes offsets of the records when they need fewer bytes.
  void offer(std::span<const std::int64_t> offsets) {
    const std::int64_t bytes = arena_bytes(usages_, offsets);
    const std::lock_guard<std::mutex> lock(mutex_);
    if (bytes >= bytes_.load()) return;
    best_.assign(offsets.begin(), offsets.end());
    bytes_ = bytes;
  }

  /// Copies the best offsets unless `bytes` says that they are known.
  void read(std::vector<std::int64_t>& offsets, std::int64_t& bytes) {
    if (bytes == bytes_.load()) return;
    const std::lock_guard<std::mutex> lock(mutex_);
    offsets = best_;
    bytes = bytes_.load();
  }

  /// No layout has all (rounded) tops at or below `height` units.
  void refuted(std::int64_t height) {
    const std::lock_guard<std::mutex> lock(mutex_);
    lower_ = std::max(lower_.load(), (height + 1) * unit_ - rounding_);
  }

  /// The greatest height in units that would be an improvement.
  [[nodiscard]] std::int64_t goal() const { return (bytes_.load() - 1) / unit_; }
  /// The least height in units that is not refuted.
  [[nodiscard]] std::int64_t least() const { return (lower_.load() + unit_ - 1) / unit_; }
  [[nodiscard]] std::int64_t bytes() const { return bytes_.load(); }
  [[nodiscard]] std::int64_t lower() const { return lower_.load(); }
  [[nodiscard]] bool late(clock::duration needed = {}) const { return clock::now() + needed >= deadline_; }
  [[nodiscard]] bool done() const {
    return bytes_.load() <= lower_.load() || (options_.capacity > 0 && bytes_.load() <= options_.capacity) ||
           least() > goal();
  }
  [[nodiscard]] std::vector<std::int64_t> take() && { return std::move(best_); }

 private:
  std::span<const buffer_usage> usages_;
  exact_options options_;
  clock::time_point deadline_;
  std::int64_t unit_ = 1;
  std::int64_t rounding_ = 0;
  std::mutex mutex_;
  std::vector<std::int64_t> best_;
  std::atomic<std::int64_t> bytes_{std::numeric_limits<std::int64_t>::max()};
  std::atomic<std::int64_t> lower_{0};
};

/// One thread's sequence of short searches. Half of them aim at the bound itself, for the proof; the others at a height
/// between bound and incumbent that falls after successes and rises after failures, so that a plan is always near.
class search_sequence {
 public:
  search_sequence(std::span<const buffer_usage> usages, const search_instance& instance, shared_incumbent& incumbent,
                  std::uint64_t seed, std::size_t turn)
      : usages_(usages),
        instance_(instance),
        incumbent_(incumbent),
        orders_(instance),
        search_(instance),
        random_(seed),
        turn_(turn) {}

  void run() {
    struct choice {
      section_rule rule;
      bool weighted;
      std::size_t key;
    };
    // Walks that closed most of MiniMalloc's hard set come first; then everything at random.
    static constexpr choice first_choices[] = {
        {section_rule::tightest, false, 6},        {section_rule::fewest_anywhere, false, 6},
        {section_rule::fewest, false, 0},          {section_rule::fewest_anywhere, false, 3},
        {section_rule::tightest, false, 0},        {section_rule::fewest, false, 5},
        {section_rule::fewest_anywhere, false, 4}, {section_rule::fewest, true, 6},
    };
    constexpr std::size_t known = std::size(first_choices);
    const std::uint64_t base = 2 * instance_.buffers() + 200;
    double aim = 0.5;
    while (!incumbent_.done() && !incumbent_.late()) {
      const std::size_t round = turn_ / 2;
      choice walk_choice = first_choices[round % known];
      double spread = 0.0;
      if (round >= known) {
        constexpr section_rule rules[] = {section_rule::fewest, section_rule::fewest_anywhere, section_rule::tightest,
                                          section_rule::fewest_anywhere, section_rule::fewest};
        walk_choice = {rules[random_.below(5)], random_.below(3) == 0, random_.below(priority_orders::keys)};
        spread = 0.1 * static_cast<double>(random_.below(3));
      }
      const bool guided = round >= known && random_.below(2) == 0 && follow_incumbent();
      if (!guided) orders_.ranks(walk_choice.key, spread, random_, rank_);
      const std::int64_t least = incumbent_.least();
      const std::int64_t goal = incumbent_.goal();
      const bool at_bound = turn_ % 2 == 1;
      const std::int64_t height =
          at_bound ? least : least + static_cast<std::int64_t>(aim * static_cast<double>(goal - least));
      std::uint64_t nodes = base << std::min<std::size_t>(round / 24, 20);
      if (random_.below(8) == 0) nodes *= 8;
      const auto outcome = search_.run(height, {walk_choice.rule, walk_choice.weighted, rank_, nodes},
                                       [&](std::uint64_t) { return incumbent_.late() || incumbent_.goal() < height; });
      if (outcome == search_outcome::found) {
        publish();
        if (!at_bound) aim *= 0.6;
      } else {
        if (outcome == search_outcome::exhausted) incumbent_.refuted(height);
        if (!at_bound) aim = std::min(1.0, aim * 1.15 + 0.01);
      }
      ++turn_;
    }
  }

 private:
  /// Ranks buffers by their offsets in the best plan, disturbed: a search near it often needs a few changes only.
  bool follow_incumbent() {
    incumbent_.read(followed_, followed_bytes_);
    if (followed_.empty()) return false;
    const auto noise =
        0.02 * static_cast<double>(std::size_t{1} << random_.below(5)) * static_cast<double>(followed_bytes_);
    orders_.ranks_by(
        [&](std::size_t b) {
          const double offset = static_cast<double>(followed_[instance_.records[b]]);
          return -offset - noise * (static_cast<double>(random_.below(2001)) / 1000.0 - 1.0);
        },
        rank_);
    return true;
  }

  void publish() {
    offsets_.assign(usages_.size(), 0);
    const auto found = search_.offsets();
    for (std::size_t b = 0; b < found.size(); ++b) offsets_[instance_.records[b]] = found[b] * instance_.unit;
    incumbent_.offer(offsets_);
  }

  std::span<const buffer_usage> usages_;
  const search_instance& instance_;
  shared_incumbent& incumbent_;
  priority_orders orders_;
  valley_search search_;
  random_sequence random_;
  std::size_t turn_;
  std::vector<std::uint32_t> rank_;
  std::vector<std::int64_t> offsets_;
  std::vector<std::int64_t> followed_;
  std::int64_t followed_bytes_ = 0;
};

/// Repeats the quick planner with perturbed priorities until the time is over or the bound is met.
inline void perturb(quick_planner& quick, shared_incumbent& incumbent, std::vector<std::int64_t>& offsets,
                    std::uint64_t seed) {
  random_sequence random(seed);
  constexpr valley_priority priorities[] = {valley_priority::area, valley_priority::total_then_area,
                                            valley_priority::size, valley_priority::total_then_size};
  // Turns are long on many records: one that would end past the deadline is not begun.
  shared_incumbent::clock::duration longest{};
  for (std::size_t turn = 0; !incumbent.done() && !incumbent.late(longest); ++turn) {
    const auto start = shared_incumbent::clock::now();
    const double spread = 0.02 * static_cast<double>(std::size_t{1} << random.below(6));
    const std::int64_t bytes =
        quick.place(priorities[turn % std::size(priorities)], offsets, incumbent.bytes() - 1, spread, random);
    if (bytes < incumbent.bytes()) incumbent.offer(offsets);
    longest = std::max(longest, shared_incumbent::clock::now() - start);
  }
}

/// Runs one sequence of searches per thread.
inline void search(std::span<const buffer_usage> usages, shared_incumbent& incumbent, const exact_options& options) {
  const search_instance instance = make_search_instance(usages);
  incumbent.measure_in(instance);
  std::vector<std::thread> helpers;
  for (std::size_t t = 1; t < options.threads; ++t) {
    helpers.emplace_back([&, t] { search_sequence(usages, instance, incumbent, options.seed + t, 6 * t).run(); });
  }
  search_sequence(usages, instance, incumbent, options.seed, 0).run();
  for (std::thread& helper : helpers) helper.join();
}

}  // namespace detail

/// Records beyond which only the quick planner is repeated with perturbed priorities: the search holds n^2 / 4 bytes of
/// conflicts and one stack frame per placed buffer.
inline constexpr std::size_t most_searched_buffers = 4096;

/// Minimises the arena and is never told its size: the quick planner's orders, then exact searches until the plan meets
/// the proved bound, the capacity or the budget. The result has the least bytes found; `proved` says that no
/// plan has fewer, `lower_bound` is the largest live sum or what the searches refuted beyond it. Errors: those of
/// validate.
[[nodiscard]] inline offset_plan plan_offsets_exactly(std::span<const buffer_usage> usages,
                                                      const exact_options& options = {}) {
  validate(usages);
  const auto start = std::chrono::steady_clock::now();
  detail::shared_incumbent incumbent(usages, options, start);
  quick_planner quick;
  std::vector<std::int64_t> offsets;
  quick.plan(usages, offsets);
  incumbent.offer(offsets);
  if (!incumbent.done() && !incumbent.late()) {
    if (usages.size() > most_searched_buffers) {
      detail::perturb(quick, incumbent, offsets, options.seed);
    } else {
      detail::search(usages, incumbent, options);
    }
  }
  offset_plan plan;
  plan.bytes = incumbent.bytes();
  plan.lower_bound = std::min(incumbent.lower(), plan.bytes);
  plan.proved = plan.bytes <= incumbent.lower();
  plan.offsets = std::move(incumbent).take();
  plan.strategy = "exact";
  plan.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return plan;
}

}  // namespace dnnopt::memory

#endif  // DNNOPT_MEMORY_OFFSETS_EXACT_OFFSETS_HPP
