// Owns the execution order of a program's steps for least memory: searched where sizes are known, compared as
// expressions where they are not.
#ifndef DNNOPT_BACKEND_PROGRAM_SCHEDULE_HPP
#define DNNOPT_BACKEND_PROGRAM_SCHEDULE_HPP

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include <dnnopt/backend/program/memory_options.hpp>
#include <dnnopt/backend/program/storages.hpp>
#include <dnnopt/expr_symbols.hpp>
#include <dnnopt/memory/order/schedule_memory.hpp>
#include <dnnopt/memory/plan_store.hpp>

namespace dnnopt {

/// What scheduling a program may use.
struct program_schedule_options {
  double budget = 0.25;                 ///< seconds of wall time for order and offsets together
  std::size_t alignment = 1;            ///< of every offset, in bytes
  std::int64_t limit = 0;               ///< an arena of at most this many bytes will do; 0: the least
  memory::plan_store* store = nullptr;  ///< orders and plans kept from before; receives the new ones
};

namespace detail {

/// Puts the steps of a program into an order of their indices.
inline void reorder_steps(program& p, std::span<const std::uint32_t> order) {
  std::vector<placed_node> steps;
  steps.reserve(order.size());
  for (const std::uint32_t i : order) steps.push_back(std::move(p.steps[i]));
  p.steps = std::move(steps);
}

/// Values of the symbols that sizes depend on, for comparing orders: all small, middling and large within their ranges,
/// then each of the first few symbols alone large.
[[nodiscard]] inline std::vector<symbol_values> size_scenarios(const program& p, const program_storages& s) {
  std::set<std::uint32_t> symbols;
  for (const program_storage& storage : s.all)
    if (storage.bytes) collect_symbols(*storage.bytes, symbols);
  const expr_context& context = p.g->expressions();
  const auto clipped = [&](std::uint32_t symbol, std::int64_t value) {
    const expr_range range = context.symbol_at(symbol).range();
    return std::clamp(value, std::max<std::int64_t>(range.low, 1), std::max<std::int64_t>(range.high, 1));
  };
  std::vector<symbol_values> scenarios;
  const auto add = [&](auto&& value_of) {
    symbol_values values;
    for (std::uint32_t symbol = 0; symbol < context.symbol_count(); ++symbol) values.bind(symbol, 1);
    for (const std::uint32_t symbol : symbols) values.bind(symbol, clipped(symbol, value_of(symbol)));
    scenarios.push_back(std::move(values));
  };
  constexpr std::int64_t small = 1;
  constexpr std::int64_t middling = 24;
  constexpr std::int64_t large = 384;
  constexpr std::size_t most_alone = 4;
  add([&](std::uint32_t) { return middling; });
  if (symbols.empty()) return scenarios;
  add([&](std::uint32_t) { return small; });
  add([&](std::uint32_t) { return large; });
  if (symbols.size() > 1) {
    std::size_t alone = 0;
    for (const std::uint32_t one : symbols) {
      if (alone++ == most_alone) break;
      add([&](std::uint32_t symbol) { return symbol == one ? large : small; });
    }
  }
  return scenarios;
}

/// The live sums at the steps of an order as expressions, each once. Sizes of unknown rank count nothing.
[[nodiscard]] inline std::vector<index_expr> live_expressions(const program_storages& s,
                                                              const memory::order_graph& graph,
                                                              std::span<const std::uint32_t> order) {
  const auto ranges = memory::detail::touches(graph, order);
  std::vector<std::vector<std::uint32_t>> begin(order.size());
  std::vector<std::vector<std::uint32_t>> end(order.size());
  for (std::uint32_t i = 0; i < ranges.size(); ++i) {
    if (ranges[i].first < 0 || !s.all[i].bytes) continue;
    begin[static_cast<std::size_t>(ranges[i].first)].push_back(i);
    end[static_cast<std::size_t>(ranges[i].last)].push_back(i);
  }
  std::vector<index_expr> result;
  index_expr live = 0;
  for (std::size_t step = 0; step < order.size(); ++step) {
    for (const std::uint32_t i : begin[step]) live += *s.all[i].bytes;
    index_expr shared = 0;
    memory::detail::for_each_in_place(
        graph, graph.operations[order[step]],
        [&](std::uint32_t x) { return ranges[x].first == static_cast<std::int64_t>(step); },
        [&](std::uint32_t x) { return ranges[x].last == static_cast<std::int64_t>(step); },
        [&](std::uint32_t, std::uint32_t to) { shared += s.all[to].bytes ? *s.all[to].bytes : index_expr(0); });
    const index_expr now = live - shared;
    if (std::find(result.begin(), result.end(), now) == result.end()) result.push_back(now);
    for (const std::uint32_t i : end[step]) live -= *s.all[i].bytes;
  }
  return result;
}

/// Whether the largest of `a` is at most the largest of `b` for all values of the symbols, as far as ranges tell: each
/// of `a` is at most one of `b`.
[[nodiscard]] inline bool never_above(const std::vector<index_expr>& a, const std::vector<index_expr>& b) {
  return std::all_of(a.begin(), a.end(), [&](const index_expr& x) {
    return std::any_of(b.begin(), b.end(), [&](const index_expr& y) { return (y - x).range().low >= 0; });
  });
}

/// Whether every entry of `b` is the same multiple of `a`'s.
[[nodiscard]] inline bool proportional(const std::vector<std::int64_t>& a, const std::vector<std::int64_t>& b) {
  const auto first = std::find_if(a.begin(), a.end(), [](std::int64_t x) { return x != 0; });
  if (first == a.end()) return false;
  const auto at = static_cast<std::size_t>(first - a.begin());
  for (std::size_t i = 0; i < a.size(); ++i)
    if (static_cast<wide_int>(a[i]) * b[at] != static_cast<wide_int>(b[i]) * a[at]) return false;
  return true;
}

/// Adds sizes of storages to those of `all`, but for sizes that only scale all of another's: they call for no look of
/// their own.
inline void add_unless_scaled(std::vector<std::vector<std::int64_t>>& all, std::vector<std::int64_t> sizes) {
  const bool told = std::any_of(all.begin(), all.end(), [&](const auto& other) { return proportional(other, sizes); });
  if (!told) all.push_back(std::move(sizes));
}

/// Orders to choose from, and how far each could come down for several sizes of the storages.
struct order_candidates {
  std::vector<std::vector<std::uint32_t>> orders;  ///< each once, the graph's own first
  std::vector<memory::order_graph> graphs;         ///< one with each of the sizes
  std::vector<std::int64_t> peaks;                 ///< by graph: the least that was found
  bool proved = true;                              ///< no order of any of the graphs has a smaller peak
};

/// The graph's own order and the best one for each of `sizes`, found within `budget` seconds together.
[[nodiscard]] inline order_candidates find_candidates(const memory::order_graph& graph,
                                                      const std::vector<std::uint32_t>& own,
                                                      const std::vector<std::vector<std::int64_t>>& sizes,
                                                      double budget) {
  order_candidates found;
  found.orders.push_back(own);
  memory::order_options searching;
  searching.budget = budget / static_cast<double>(sizes.size());
  for (const auto& bytes : sizes) {
    found.graphs.push_back(graph);
    found.graphs.back().bytes = bytes;
    const memory::order_plan plan = memory::plan_order(found.graphs.back(), searching);
    found.peaks.push_back(plan.peak);
    found.proved = found.proved && plan.proved;
    if (std::find(found.orders.begin(), found.orders.end(), plan.order) == found.orders.end())
      found.orders.push_back(plan.order);
  }
  return found;
}

/// The first order that never needs more than any other, by the live sums of each; nothing where there is none.
[[nodiscard]] inline std::optional<std::size_t> order_never_above(const std::vector<std::vector<index_expr>>& live) {
  for (std::size_t i = 0; i < live.size(); ++i) {
    bool least = true;
    for (std::size_t k = 0; k < live.size() && least; ++k) least = k == i || never_above(live[i], live[k]);
    if (least) return i;
  }
  return std::nullopt;
}

/// The candidate whose worst ratio to the least peaks is least. Precondition: there is a candidate.
[[nodiscard]] inline std::size_t order_of_least_ratio(const order_candidates& candidates) {
  std::size_t taken = candidates.orders.size();
  double least = 0;
  for (std::size_t i = 0; i < candidates.orders.size(); ++i) {
    double worst = 1;
    for (std::size_t k = 0; k < candidates.graphs.size(); ++k)
      worst =
          std::max(worst, static_cast<double>(memory::cost_of_order(candidates.graphs[k], candidates.orders[i]).peak) /
                              std::max(1.0, static_cast<double>(candidates.peaks[k])));
    // The graph's own order comes first, and is left for a gain of a hundredth at least.
    if (taken == candidates.orders.size() || worst < (taken == 0 ? 0.99 : 1.0) * least) {
      taken = i;
      least = worst;
    }
  }
  return taken;
}

/// The choice of a program's order: one that is kept from before, else the search's where all sizes are known, else the
/// one that compares best for several values of the symbols.
class step_scheduler {
 public:
  /// `p` and `options` outlive this object.
  step_scheduler(program& p, const program_schedule_options& options)
      : p_(p),
        options_(options),
        storages_(storages_of(p)),
        scenarios_(size_scenarios(p, storages_)),
        graph_(order_graph_of(p, storages_, scenarios_.front())),
        own_(p.steps.size()) {
    for (std::uint32_t i = 0; i < own_.size(); ++i) own_[i] = i;
    result_.peak_before = memory::cost_of_order(graph_, own_).peak;
    chosen_ = own_;
  }

  /// Orders the program and says how. Precondition: it was not called before.
  [[nodiscard]] program_schedule run() {
    if (p_.steps.empty() || take_kept()) {
      finish();
    } else if (sizes_are_known()) {
      search_and_finish();
    } else {
      compare_candidates();
      finish();
    }
    return result_;
  }

 private:
  /// Whether sizes hold no symbols, so that order and offsets can be searched together.
  [[nodiscard]] bool sizes_are_known() const { return scenarios_.size() == 1; }

  /// Whether the store keeps an order that is no worse than the program's own and within the limit, which is taken.
  [[nodiscard]] bool take_kept() {
    const auto kept = options_.store == nullptr ? std::nullopt : options_.store->find(graph_);
    if (!kept) return false;
    const std::int64_t peak = memory::cost_of_order(graph_, kept->order).peak;
    if (peak > result_.peak_before || (options_.limit != 0 && peak > options_.limit)) return false;
    chosen_ = kept->order;
    result_.decision = sizes_are_known() ? order_decision::searched : order_decision::scenarios;
    result_.proved = kept->proved;
    result_.lower_bound = kept->proved ? peak : 0;
    return true;
  }

  /// Puts the steps into the chosen order and completes the report.
  void finish() {
    result_.peak = memory::cost_of_order(graph_, chosen_).peak;
    if (chosen_ == own_)
      result_.decision = order_decision::kept;
    else
      reorder_steps(p_, chosen_);
    result_.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }

  /// Searches order and offsets together, finishes, and brings both to the store. Precondition: all sizes are known.
  void search_and_finish() {
    memory::schedule_options search;
    search.budget = options_.budget;
    search.alignment = static_cast<std::int64_t>(std::max<std::size_t>(options_.alignment, 1));
    search.limit = options_.limit;
    const memory::schedule_plan plan = memory::plan_schedule(graph_, search);
    // The search counts sizes rounded up to the alignment.
    if (memory::cost_of_order(graph_, plan.order.order).peak <= result_.peak_before) chosen_ = plan.order.order;
    result_.decision = order_decision::searched;
    result_.lower_bound = plan.order.lower_bound;
    result_.proved = plan.order.proved;
    finish();
    if (options_.store != nullptr) store_plan(plan);
  }

  /// Keeps the chosen order and, where it is the plan's, its offsets. Preconditions: there is a store, and the steps
  /// are in the chosen order.
  void store_plan(const memory::schedule_plan& plan) const {
    options_.store->add(graph_, chosen_, result_.proved);
    const bool planned = chosen_ == plan.order.order;
    const program_records records = records_of(p_, storages_of(p_), scenarios_.front(), options_.alignment);
    memory::offset_plan offsets;
    for (std::size_t r = 0; planned && r < plan.records.usages.size(); ++r)
      if (plan.records.usages[r].size != 0) offsets.offsets.push_back(plan.offsets.offsets[r]);
    if (!planned || offsets.offsets.size() != records.usages.size()) return;
    offsets.strategy = plan.offsets.strategy;
    offsets.bytes = memory::arena_bytes(records.usages, offsets.offsets);
    // Sizes were rounded up to the alignment, which the topmost buffer need not be.
    if (offsets.bytes > memory::largest_live_sum(records.usages))
      options_.store->add(records.usages, memory::plan_offsets_exactly(records.usages, {0.2 * options_.budget}));
    options_.store->add(records.usages, offsets);
  }

  /// Takes the best of the orders that the scenarios call for, by their live sums as expressions where these tell, else
  /// by their peaks.
  void compare_candidates() {
    std::vector<std::vector<std::int64_t>> sizes;
    for (const symbol_values& values : scenarios_) add_unless_scaled(sizes, planned_bytes(storages_, values));
    const order_candidates candidates = find_candidates(graph_, own_, sizes, options_.budget);
    std::vector<std::vector<index_expr>> live;
    for (const auto& order : candidates.orders) live.push_back(live_expressions(storages_, graph_, order));
    const std::optional<std::size_t> symbolic = order_never_above(live);
    result_.decision = symbolic ? order_decision::symbolic : order_decision::scenarios;
    chosen_ = candidates.orders[symbolic ? *symbolic : order_of_least_ratio(candidates)];
    // One set of sizes up to scale: what is best for it is best for all.
    result_.proved = sizes.size() == 1 && candidates.proved;
    if (result_.proved) result_.lower_bound = memory::cost_of_order(graph_, chosen_).peak;
    if (options_.store != nullptr) options_.store->add(graph_, chosen_, result_.proved);
  }

  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  program& p_;
  const program_schedule_options& options_;
  program_storages storages_;
  std::vector<symbol_values> scenarios_;
  memory::order_graph graph_;
  std::vector<std::uint32_t> own_;
  std::vector<std::uint32_t> chosen_;
  program_schedule result_;
};

}  // namespace detail

/// Orders the steps of a program for the least memory of its intermediates within a budget. Host steps stay where they
/// are and part the rest (order_graph_of).
///
/// Where all sizes are known, order and offsets are searched together (memory::plan_schedule) and the plan goes to
/// `store`. Where they hold symbols, the best orders of several values of the symbols are compared with the graph's own
/// as expressions: one whose every live sum is at most some live sum of each other candidate is taken; when there is
/// none, the one whose worst ratio over the values is least (SoD2 section 4.3: symbolic comparison).
/// Errors: those of memory::validate.
inline program_schedule schedule_program(program& p, const program_schedule_options& options = {}) {
  return detail::step_scheduler(p, options).run();
}

}  // namespace dnnopt

#endif  // DNNOPT_BACKEND_PROGRAM_SCHEDULE_HPP
