// Owns the exact search for the execution order of least peak memory.
#ifndef DNNOPT_MEMORY_ORDER_EXACT_ORDER_HPP
#define DNNOPT_MEMORY_ORDER_EXACT_ORDER_HPP

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include <dnnopt/memory/order/order_graph.hpp>
#include <dnnopt/memory/order/order_heuristics.hpp>
#include <dnnopt/memory/random_sequence.hpp>

namespace dnnopt::memory {

/// Limits of the search for an order.
struct order_options {
  double budget = 10.0;            ///< seconds of wall time
  std::size_t states = 4'000'000;  ///< executed sets remembered
  std::int64_t enough = 0;         ///< any peak of at most this many bytes will do; 0: the least
  std::uint64_t seed = 0;          ///< draws among equally promising operations; 0: in the order of the graph
};

/// An execution order with its peak of live bytes.
struct order_plan {
  std::vector<std::uint32_t> order;
  std::int64_t peak = 0;
  std::int64_t lower_bound = 0;  ///< no order has a smaller peak
  bool proved = false;           ///< peak == lower_bound
  double seconds = 0.0;          ///< wall time
  std::size_t states = 0;        ///< executed sets visited
};

namespace detail {

/// The operations in runs between *cuts*: an operation that every other one comes before or after is a cut, so every
/// order finishes one run before it begins the next and each can be searched alone. O(n * edges / 64).
[[nodiscard]] inline std::vector<std::vector<std::uint32_t>> runs_between_cuts(const order_graph& graph,
                                                                               std::span<const std::uint32_t> order) {
  const std::size_t count = order.size();
  const auto consumers = consumers_of(graph);
  std::vector<std::size_t> comparable(count, 0);
  const std::size_t words = (count + 63) / 64;
  std::vector<std::uint64_t> reach(count * words, 0);
  const auto close = [&](std::uint32_t op, const std::vector<std::uint32_t>& around) {
    std::uint64_t* mine = reach.data() + op * words;
    std::fill(mine, mine + words, std::uint64_t{0});
    for (const std::uint32_t other : around) {
      const std::uint64_t* theirs = reach.data() + other * words;
      for (std::size_t w = 0; w < words; ++w) mine[w] |= theirs[w];
      mine[other / 64] |= std::uint64_t{1} << (other % 64);
    }
    for (std::size_t w = 0; w < words; ++w) comparable[op] += static_cast<std::size_t>(std::popcount(mine[w]));
  };
  for (const std::uint32_t op : order) close(op, graph.operations[op].after);
  for (std::size_t i = count; i-- > 0;) close(order[i], consumers[order[i]]);
  std::vector<std::vector<std::uint32_t>> runs(1);
  for (const std::uint32_t op : order) {
    runs.back().push_back(op);
    if (comparable[op] + 1 == count) runs.emplace_back();
  }
  if (runs.back().empty()) runs.pop_back();
  return runs;
}

/// Bottleneck search over the executed sets of one run of operations. The threshold is a lower bound of the peak and
/// rises only when every set that can be reached below it was visited, so the first complete order is optimal.
class order_search {
 public:
  using clock = std::chrono::steady_clock;

  order_search(const order_graph& graph, running_memory& memory, std::vector<std::uint32_t>& waiting,
               const std::vector<std::vector<std::uint32_t>>& consumers, clock::time_point deadline,
               std::size_t most_states, std::uint64_t seed)
      : memory_(memory),
        waiting_(waiting),
        consumers_(consumers),
        deadline_(deadline),
        most_states_(most_states),
        random_(seed),
        shuffled_(seed != 0),
        local_(graph.operations.size(), outside) {}

  /// Looks for an order of `run` with a peak below `known`, raising `threshold` as far as it must. Returns whether it
  /// found one (in order()); when not, either `threshold` has reached `known`, or the limits ended the search.
  /// On return memory and waiting counts are as before.
  bool search(std::span<const std::uint32_t> run, std::int64_t& threshold, std::int64_t known) {
    start(run);
    stack_.push_back({threshold, none, none});
    bool found = false;
    for (std::size_t turn = 0; !found; ++turn) {
      if (stack_.empty()) {
        if (later_.empty()) {
          threshold = known;
          break;
        }
        threshold = std::max(threshold, later_.front().key);
        if (threshold >= known) break;
        while (!later_.empty() && later_.front().key <= threshold) {
          std::pop_heap(later_.begin(), later_.end(), later_first);
          stack_.push_back(later_.back());
          later_.pop_back();
        }
      }
      if (states_.size() >= most_states_ || (turn % 64 == 63 && clock::now() >= deadline_)) {
        limited_ = true;
        break;
      }
      const entry next = stack_.back();
      stack_.pop_back();
      found = visit(next, threshold, known);
    }
    if (found) read_order();
    move_to(std::vector<std::uint64_t>(words_, 0));
    for (const std::uint32_t op : run_) local_[op] = outside;
    visited_ += states_.size();
    return found;
  }

  [[nodiscard]] const std::vector<std::uint32_t>& order() const { return order_; }
  [[nodiscard]] bool limited() const { return limited_; }
  [[nodiscard]] std::size_t visited() const { return visited_; }

 private:
  static constexpr std::uint32_t none = static_cast<std::uint32_t>(-1);
  static constexpr std::uint32_t outside = none;

  /// A set still to visit: that of `parent` and one operation more.
  struct entry {
    std::int64_t key;  // peak needed to come here
    std::uint32_t parent;
    std::uint32_t op;
  };
  struct state {
    std::uint32_t parent;
    std::uint32_t first_move;  // moves that lead from the parent here
    std::uint32_t moves;
  };

  static bool later_first(const entry& a, const entry& b) { return a.key > b.key; }

  void start(std::span<const std::uint32_t> run) {
    run_.assign(run.begin(), run.end());
    words_ = (run.size() + 63) / 64;
    for (std::uint32_t i = 0; i < run_.size(); ++i) local_[run_[i]] = i;
    stack_.clear();
    later_.clear();
    states_.clear();
    moves_.clear();
    sets_.clear();
    known_sets_.clear();
    current_.assign(words_, 0);
    ready_.clear();
    for (const std::uint32_t op : run_) {
      if (waiting_[op] == 0) ready_.push_back(op);
    }
  }

  [[nodiscard]] bool has_run(std::uint32_t op) const {
    const std::uint32_t i = local_[op];
    return (current_[i / 64] >> (i % 64) & 1U) != 0;
  }

  void execute(std::uint32_t op) {
    const std::uint32_t i = local_[op];
    current_[i / 64] |= std::uint64_t{1} << (i % 64);
    memory_.run(op);
    for (const std::uint32_t next : consumers_[op]) --waiting_[next];
  }

  void take_back(std::uint32_t op) {
    const std::uint32_t i = local_[op];
    current_[i / 64] &= ~(std::uint64_t{1} << (i % 64));
    memory_.take_back(op);
    for (const std::uint32_t next : consumers_[op]) ++waiting_[next];
  }

  void move_to(const std::vector<std::uint64_t>& set) {
    for (std::size_t w = 0; w < words_; ++w) {
      for (std::uint64_t bits = current_[w] & ~set[w]; bits != 0; bits &= bits - 1) {
        take_back(run_[w * 64 + static_cast<std::size_t>(std::countr_zero(bits))]);
      }
    }
    for (std::size_t w = 0; w < words_; ++w) {
      for (std::uint64_t bits = set[w] & ~current_[w]; bits != 0; bits &= bits - 1) {
        execute(run_[w * 64 + static_cast<std::size_t>(std::countr_zero(bits))]);
      }
    }
  }

  /// Whether the current set is new; if so it is remembered.
  [[nodiscard]] bool remember(std::uint32_t id) {
    std::uint64_t hash = 0x9E3779B97F4A7C15ULL;
    for (const std::uint64_t word : current_) {
      hash = (hash ^ word) * 0xBF58476D1CE4E5B9ULL;
      hash ^= hash >> 29U;
    }
    const auto [from, to] = known_sets_.equal_range(hash);
    for (auto at = from; at != to; ++at) {
      if (std::equal(current_.begin(), current_.end(),
                     sets_.begin() + static_cast<std::ptrdiff_t>(at->second * words_))) {
        return false;
      }
    }
    known_sets_.emplace(hash, id);
    sets_.insert(sets_.end(), current_.begin(), current_.end());
    return true;
  }

  void collect_ready() {
    ready_.clear();
    for (const std::uint32_t op : run_) {
      if (waiting_[op] == 0 && !has_run(op)) ready_.push_back(op);
    }
  }

  void advance(std::uint32_t op) {
    execute(op);
    moves_.push_back(op);
  }

  /// Runs a short chain from `op`, always on to the follower with the least memory behind it, until no more bytes are
  /// live than before it began. Every rest of such a chain frees at least what it takes, so running it now never hurts
  /// later steps (a set that was executed further never makes an operation free less). Undone when it does not get
  /// there.
  [[nodiscard]] bool run_safely(std::uint32_t op, std::int64_t threshold) {
    constexpr std::size_t longest = 24;
    const std::int64_t before = memory_.live();
    const std::size_t first = moves_.size();
    std::uint32_t next = op;
    for (std::size_t length = 0; next != none && length < longest; ++length) {
      if (memory_.of(next).transient > threshold) break;
      advance(next);
      if (memory_.live() <= before) return true;
      next = none;
      std::int64_t least = std::numeric_limits<std::int64_t>::max();
      for (std::size_t m = first; m < moves_.size(); ++m) {
        for (const std::uint32_t follower : consumers_[moves_[m]]) {
          if (local_[follower] == outside || waiting_[follower] != 0 || has_run(follower)) continue;
          const auto effect = memory_.of(follower);
          if (effect.transient <= threshold && effect.after < least) {
            least = effect.after;
            next = follower;
          }
        }
      }
    }
    while (moves_.size() > first) {
      take_back(moves_.back());
      moves_.pop_back();
    }
    return false;
  }

  /// Goes to an entry's set, runs everything safe, remembers it and lists its successors. True at the complete set.
  bool visit(const entry& e, std::int64_t threshold, std::int64_t known) {
    std::vector<std::uint64_t> set(words_, 0);
    if (e.parent != none) {
      std::copy_n(sets_.begin() + static_cast<std::ptrdiff_t>(e.parent * words_), words_, set.begin());
    }
    if (e.op != none) set[local_[e.op] / 64] |= std::uint64_t{1} << (local_[e.op] % 64);
    move_to(set);
    const auto first_move = static_cast<std::uint32_t>(moves_.size());
    if (e.op != none) moves_.push_back(e.op);
    collect_ready();
    for (bool moved = true; moved;) {
      moved = false;
      if (shuffled_) {
        for (std::size_t i = ready_.size(); i > 1; --i) std::swap(ready_[i - 1], ready_[random_.below(i)]);
      }
      for (const std::uint32_t op : ready_) {
        if (has_run(op)) continue;
        if (run_safely(op, threshold)) moved = true;
      }
      if (moved) collect_ready();
    }
    const auto id = static_cast<std::uint32_t>(states_.size());
    if (!remember(id)) {
      moves_.resize(first_move);
      return false;
    }
    states_.push_back({e.parent, first_move, static_cast<std::uint32_t>(moves_.size()) - first_move});
    if (ready_.empty()) return true;
    const std::size_t first = stack_.size();
    after_.clear();
    for (const std::uint32_t op : ready_) {
      const auto effect = memory_.of(op);
      const std::int64_t key = std::max(e.key, effect.transient);
      if (key >= known) continue;
      if (key <= threshold) {
        after_.emplace_back(effect.after, entry{key, id, op});
      } else {
        later_.push_back({key, id, op});
        std::push_heap(later_.begin(), later_.end(), later_first);
      }
    }
    if (shuffled_) {
      for (std::size_t i = after_.size(); i > 1; --i) std::swap(after_[i - 1], after_[random_.below(i)]);
    }
    std::stable_sort(after_.begin(), after_.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
    stack_.resize(first);
    for (const auto& successor : after_) stack_.push_back(successor.second);
    return false;
  }

  void read_order() {
    order_.clear();
    std::vector<std::uint32_t> path;
    for (auto at = static_cast<std::uint32_t>(states_.size() - 1); at != none; at = states_[at].parent) {
      path.push_back(at);
    }
    for (std::size_t i = path.size(); i-- > 0;) {
      const state& s = states_[path[i]];
      order_.insert(order_.end(), moves_.begin() + s.first_move, moves_.begin() + s.first_move + s.moves);
    }
  }

  running_memory& memory_;
  std::vector<std::uint32_t>& waiting_;
  const std::vector<std::vector<std::uint32_t>>& consumers_;
  clock::time_point deadline_;
  std::size_t most_states_;
  random_sequence random_;
  bool shuffled_;
  std::size_t visited_ = 0;
  bool limited_ = false;
  std::vector<std::uint32_t> local_;  // position in the run
  std::vector<std::uint32_t> run_;
  std::size_t words_ = 0;
  std::vector<std::uint64_t> current_;
  std::vector<std::uint32_t> ready_;
  std::vector<entry> stack_;
  std::vector<entry> later_;
  std::vector<std::pair<std::int64_t, entry>> after_;
  std::vector<state> states_;
  std::vector<std::uint32_t> moves_;
  std::vector<std::uint64_t> sets_;
  std::unordered_multimap<std::uint64_t, std::uint32_t> known_sets_;
  std::vector<std::uint32_t> order_;
};

}  // namespace detail

/// The best of all heuristics: order, peak and the bound that the largest operation alone gives. O(n * ready).
[[nodiscard]] inline order_plan plan_order_quickly(const order_graph& graph) {
  validate(graph);
  const auto start = std::chrono::steady_clock::now();
  order_plan plan;
  plan.peak = std::numeric_limits<std::int64_t>::max();
  for (const auto strategy : {order_strategy::program, order_strategy::greedy, order_strategy::reverse_post_order,
                              order_strategy::demand_depth_first, order_strategy::breadth_first}) {
    auto order = order_by(graph, strategy);
    const std::int64_t peak = cost_of_order(graph, order).peak;
    if (peak < plan.peak) {
      plan.peak = peak;
      plan.order = std::move(order);
    }
  }
  for (const order_operation& operation : graph.operations) {
    std::int64_t touched = 0;
    for (const std::uint32_t storage : operation.storages) touched += graph.bytes[storage];
    std::vector<std::uint32_t> used;
    for (const in_place_pair pair : operation.in_place) {
      const auto taken = [&](std::uint32_t s) { return std::find(used.begin(), used.end(), s) != used.end(); };
      if (graph.bytes[pair.from] != graph.bytes[pair.to] || taken(pair.to)) continue;
      used.push_back(pair.to);
      touched -= graph.bytes[pair.to];
    }
    plan.lower_bound = std::max(plan.lower_bound, touched);
  }
  plan.proved = plan.peak == plan.lower_bound;
  plan.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return plan;
}

/// The order of least peak. The graph is cut where an operation is comparable with all others; in each run executed
/// sets are searched best-first by the peak that they need (those within the threshold last in, first out), sets are
/// remembered, and chains that end with no more live bytes than they began with are run at once. The result is the best
/// known when the limits end the search, with the threshold reached as its bound. Errors: those of validate.
/// Exponential in the worst case, in the number of parallel branches; memory: the states.
[[nodiscard]] inline order_plan plan_order(const order_graph& graph, const order_options& options = {}) {
  const auto start = std::chrono::steady_clock::now();
  order_plan plan = plan_order_quickly(graph);
  const double budget = std::clamp(options.budget, 0.0, 1e7);
  const auto deadline =
      start + std::chrono::duration_cast<std::chrono::steady_clock::duration>(std::chrono::duration<double>(budget));
  const bool redrawn = options.seed != 0;
  if (redrawn || (!plan.proved && plan.peak > options.enough)) {
    const auto consumers = detail::consumers_of(graph);
    detail::running_memory memory(graph);
    std::vector<std::uint32_t> waiting(graph.operations.size());
    for (std::size_t op = 0; op < waiting.size(); ++op) {
      waiting[op] = static_cast<std::uint32_t>(graph.operations[op].after.size());
    }
    detail::order_search search(graph, memory, waiting, consumers, deadline, options.states, options.seed);
    const auto live = cost_of_order(graph, plan.order).live;
    std::vector<std::uint32_t> order;
    const std::int64_t bound = plan.lower_bound;
    std::int64_t threshold = std::max(bound, options.enough);
    for (const auto& run : detail::runs_between_cuts(graph, plan.order)) {
      std::int64_t known = 0;
      for (std::size_t step = order.size(); step < order.size() + run.size(); ++step) {
        known = std::max(known, live[step]);
      }
      if (redrawn) known = std::max(known, threshold) + 1;
      const bool better = known > threshold && search.search(run, threshold, known);
      const auto& chosen = better ? search.order() : run;
      for (const std::uint32_t op : chosen) {
        memory.run(op);
        for (const std::uint32_t next : consumers[op]) --waiting[next];
      }
      order.insert(order.end(), chosen.begin(), chosen.end());
    }
    plan.lower_bound = threshold > options.enough ? threshold : bound;
    plan.order = std::move(order);
    plan.peak = cost_of_order(graph, plan.order).peak;
    plan.lower_bound = std::min(plan.lower_bound, plan.peak);
    plan.proved = plan.peak == plan.lower_bound;
    plan.states = search.visited();
  }
  plan.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return plan;
}

}  // namespace dnnopt::memory

#endif  // DNNOPT_MEMORY_ORDER_EXACT_ORDER_HPP
