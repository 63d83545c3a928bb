// Owns the memory of one binding of a program's symbols: which value lies where in the arena, and what lies outside it.
#ifndef DNNOPT_BACKEND_PROGRAM_RUN_MEMORY_HPP
#define DNNOPT_BACKEND_PROGRAM_RUN_MEMORY_HPP

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <dnnopt/backend/program/storages.hpp>
#include <dnnopt/memory/bounds.hpp>
#include <dnnopt/memory/objects/object_offsets.hpp>
#include <dnnopt/memory/plan.hpp>
#include <dnnopt/memory/plan_check.hpp>
#include <dnnopt/memory/plan_store.hpp>
#include <dnnopt/memory/usage.hpp>

namespace dnnopt {

/// A value (or scratch of a step, where `held` is no_value) with its memory.
struct planned_value {
  value_id held = no_value;
  std::size_t step = 0;     ///< of scratch
  std::size_t scratch = 0;  ///< which scratch buffer of the step
  std::size_t record = 0;   ///< index into run_memory::usages: values of one record share memory
  std::size_t offset = 0;   ///< bytes from the start of the arena, or of the first of its objects
  std::size_t bytes = 0;
  std::int64_t first_step = 0;  ///< the step that writes it
  std::int64_t last_step = 0;   ///< the last step that reads it
};

/// Places records in one arena: offsets and the size of the arena.
using offset_planner = std::function<memory::offset_plan(std::span<const memory::buffer_usage>)>;

/// The planner of a strategy with a time budget in seconds (only the exact search looks at it, and ends once proved).
[[nodiscard]] inline offset_planner planner_of(memory::offset_strategy strategy, double budget) {
  return [strategy, budget](std::span<const memory::buffer_usage> usages) {
    memory::offset_options options;
    options.strategy = strategy;
    options.budget = budget;
    return memory::plan_offsets(usages, options);
  };
}

/// The exact search within 100 ms: real networks are mostly proved within a few.
[[nodiscard]] inline memory::offset_plan plan_by_default(std::span<const memory::buffer_usage> usages) {
  return planner_of(memory::offset_strategy::exact, 0.1)(usages);
}

/// The quick planner, for shapes that come up at run time; it keeps its scratch from plan to plan.
[[nodiscard]] inline offset_planner planner_at_run_time() {
  return [quick = std::make_shared<memory::quick_planner>()](std::span<const memory::buffer_usage> usages) {
    const auto start = std::chrono::steady_clock::now();
    memory::offset_plan plan;
    quick->plan(usages, plan.offsets);
    plan.bytes = memory::arena_bytes(usages, plan.offsets);
    plan.lower_bound = memory::largest_live_sum(usages);
    plan.proved = plan.bytes == plan.lower_bound;
    plan.strategy = to_string(memory::offset_strategy::quick);
    plan.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    return plan;
  };
}

/// A planner that looks into `store` first and keeps there what it had to plan.
[[nodiscard]] inline offset_planner remembering(offset_planner planner, std::shared_ptr<memory::plan_store> store) {
  return [planner = std::move(planner), store = std::move(store)](std::span<const memory::buffer_usage> usages) {
    if (auto kept = store->find(usages)) return std::move(*kept);
    memory::offset_plan plan = planner(usages);
    store->add(usages, plan);
    return plan;
  };
}

/// The memory of one binding.
struct run_memory {
  std::vector<planned_value> planned;   ///< intermediates, scratch and expressions of dims in the arena
  std::vector<planned_value> separate;  ///< graph inputs and outputs on the device: the caller's side
  std::size_t arena_bytes = 0;
  std::size_t lower_bound_bytes = 0;  ///< the largest sum of bytes alive at one step
  std::size_t naive_bytes = 0;        ///< one buffer per intermediate
  std::string strategy;
  bool proved = false;  ///< no plan of this order needs fewer bytes
  double seconds = 0;

  /// Bytes of the arena, or of each shared object.
  [[nodiscard]] std::vector<std::size_t> object_bytes() const {
    const std::vector<std::int64_t> sizes = memory::sizes_of_objects(plan);
    return {sizes.begin(), sizes.end()};
  }
  /// The object that an offset lies in, and where in it.
  [[nodiscard]] std::pair<std::size_t, std::size_t> place_of(std::size_t offset) const {
    const auto [object, within] = memory::place_in_objects(plan, static_cast<std::int64_t>(offset));
    return {object, static_cast<std::size_t>(within)};
  }

  /// The records and the plan of `planned`, for drawing and checking.
  std::vector<memory::buffer_usage> usages;
  memory::offset_plan plan;

  /// Whether sizes or arguments of the step depend on what a host operator computes, or a body hands, during the run.
  [[nodiscard]] bool is_late(std::size_t step) const { return step < late.size() && late[step]; }
  /// Values made during the run that nothing reads after the step.
  [[nodiscard]] std::span<const value_id> released_after(std::size_t step) const {
    return step < released.size() ? std::span<const value_id>(released[step]) : std::span<const value_id>();
  }

  std::vector<bool> late;
  std::vector<std::vector<value_id>> released;
  std::vector<std::vector<std::size_t>> late_scratch;  ///< by step: scratch whose size only the run tells
  /// For values in the arena, the first value of the same region, whose buffer is theirs too: a kernel that writes over
  /// its input gets one buffer twice. Other values: themselves.
  std::vector<value_id> homes;
  std::vector<value_id> whole_run;  ///< expressions of dims that lie in the arena
};

namespace detail {

/// The plan of one binding's memory, put together from values, scratch, what is late, and the arena.
class run_memory_planning {
 public:
  /// `storages` are those of `p`; all but the alignment outlive this object.
  run_memory_planning(const program& p, const program_storages& storages, const symbol_values& symbols,
                      std::size_t alignment)
      : p_(p),
        g_(*p.g),
        storages_(storages),
        symbols_(symbols),
        records_(records_of(p, storages, symbols, alignment)),
        in_arena_(g_.value_count(), false),
        first_of_(records_.usages.size(), no_value) {
    result_.late.assign(p_.steps.size(), false);
    result_.released.resize(p_.steps.size());
    result_.late_scratch.resize(p_.steps.size());
    result_.homes.resize(g_.value_count());
    for (value_id v = 0; v < g_.value_count(); ++v) result_.homes[v] = v;
  }

  /// The plan with its arena by `planner`. Precondition: it was not called before. Errors: those of memory::check_plan.
  [[nodiscard]] run_memory run(const offset_planner& planner) {
    for (value_id v = 0; v < g_.value_count(); ++v)
      if (p_.roots[v] == v && storages_.of_value[v] != program_storages::none) add_value(v, storages_.of_value[v]);
    add_scratch();
    find_late_steps();
    if (!records_.usages.empty()) place_in_arena(planner);
    return std::move(result_);
  }

 private:
  /// Bytes that the symbols decide, at least one; nothing where only the run tells them.
  [[nodiscard]] std::optional<std::size_t> known_bytes(const std::optional<index_expr>& bytes) const {
    const auto value = bytes ? bytes->try_evaluate(symbols_) : std::nullopt;
    return value ? std::optional(static_cast<std::size_t>(std::max<std::int64_t>(*value, 1))) : std::nullopt;
  }

  /// Whether only the run tells an expression.
  [[nodiscard]] bool is_unknown(const index_expr& e) const { return !e.try_evaluate(symbols_); }

  /// Adds a root that lies in storage `index` to the arena's values or the caller's; where it can be in neither, says
  /// when it is released.
  void add_value(value_id v, std::uint32_t index) {
    const program_storage& storage = storages_.all[index];
    planned_value planned;
    planned.held = v;
    // A whole is there from its first part on.
    planned.first_step = storages_.touched[v].first;
    planned.last_step = storages_.touched[v].last;
    const auto bytes = storage.handed ? std::nullopt : known_bytes(bytes_of(g_.facts(v)));
    const std::uint32_t record = records_.of_storage[index];
    if (!bytes || (storage.role != storage_role::caller && record == program_storages::none)) {
      if (storage.role != storage_role::caller && planned.last_step >= 0)
        result_.released[static_cast<std::size_t>(planned.last_step)].push_back(v);
      return;
    }
    planned.bytes = *bytes;
    if (storage.role == storage_role::caller) {
      result_.separate.push_back(planned);
      return;
    }
    in_arena_[v] = true;
    planned.record = record;
    planned.offset = offset_in_storage(p_, v);
    if (storage.role == storage_role::whole_run) result_.whole_run.push_back(v);
    if (storage.held == v) {
      if (first_of_[record] == no_value) first_of_[record] = v;
      result_.homes[v] = first_of_[record];
    }
    result_.naive_bytes += storage.held == v ? planned.bytes : 0;
    result_.planned.push_back(planned);
  }

  /// Adds the scratch of all steps; a step with scratch of a size that only the run tells is late.
  void add_scratch() {
    std::vector<std::size_t> step_of(g_.node_limit(), 0);
    for (std::size_t step = 0; step < p_.steps.size(); ++step) step_of[p_.steps[step].id] = step;
    for (std::uint32_t i = 0; i < storages_.all.size(); ++i) {
      const program_storage& storage = storages_.all[i];
      if (storage.role != storage_role::scratch) continue;
      const auto bytes = known_bytes(storage.bytes);
      if (!bytes) {
        result_.late[step_of[storage.scratch_of]] = true;
        result_.late_scratch[step_of[storage.scratch_of]].push_back(storage.scratch);
        continue;
      }
      planned_value planned;
      planned.step = step_of[storage.scratch_of];
      planned.scratch = storage.scratch;
      planned.record = records_.of_storage[i];
      planned.bytes = *bytes;
      planned.first_step = planned.last_step = static_cast<std::int64_t>(planned.step);
      result_.naive_bytes += planned.bytes;
      result_.planned.push_back(planned);
    }
  }

  /// Finds the steps whose kernels need a number or memory that only the run brings. Precondition: all values are
  /// added.
  void find_late_steps() {
    for (std::size_t s = 0; s < p_.steps.size(); ++s)
      for (const codegen::kernel_plan& plan : p_.steps[s].lowered.kernels) {
        for (const index_expr& e : plan.parameters) result_.late[s] = result_.late[s] || is_unknown(e);
        for (const codegen::pointer_argument& a : plan.pointers) {
          if (a.held == no_value) continue;
          const value_id root = p_.roots[a.held];
          if (g_.facts(root).elements)
            for (const index_expr& e : *g_.facts(root).elements) result_.late[s] = result_.late[s] || is_unknown(e);
          if (has_late_memory(root)) result_.late[s] = true;
        }
      }
  }

  /// Whether the memory of a root comes during the run: a host operator makes it outside the arena, a body hands it, or
  /// its size is not known before.
  [[nodiscard]] bool has_late_memory(value_id root) const {
    const std::int64_t first = storages_.touched[root].first;
    const bool from_host = first >= 0 && is_on_host(p_.steps[static_cast<std::size_t>(first)].where);
    const std::uint32_t storage = storages_.of_value[root];
    const bool handed = storage != program_storages::none && storages_.all[storage].handed;
    return (from_host && !in_arena_[root]) || handed || !known_bytes(bytes_of(g_.facts(root)));
  }

  /// Plans the arena, checks the plan, and moves the values to their places. Precondition: there are records.
  void place_in_arena(const offset_planner& planner) {
    result_.plan = planner(records_.usages);
    // Cheap beside planning, and a planner may be the application's own.
    memory::check_plan(records_.usages, result_.plan);
    for (planned_value& planned : result_.planned)
      planned.offset += static_cast<std::size_t>(result_.plan.offsets[planned.record]);
    result_.arena_bytes = static_cast<std::size_t>(result_.plan.bytes);
    result_.lower_bound_bytes = static_cast<std::size_t>(result_.plan.lower_bound);
    result_.strategy = result_.plan.strategy;
    result_.proved = result_.plan.proved;
    result_.seconds = result_.plan.seconds;
    result_.usages = std::move(records_.usages);
  }

  const program& p_;
  const graph& g_;
  const program_storages& storages_;
  const symbol_values& symbols_;
  program_records records_;
  std::vector<bool> in_arena_;      // by value
  std::vector<value_id> first_of_;  // by record: the first value that lies in it
  run_memory result_;
};

}  // namespace detail

/// Lifetimes over the program's steps and the arena for all sizes that `symbols` decide. Values and scratch whose size
/// only the run tells stay outside and are allocated when a step comes to them. Every plan is checked: no live value
/// may be overwritten. `storages` are those of the program, which hold for all symbols. Errors: what memory::check_plan
/// throws. Complexity: that of `planner` beyond O(V + E).
[[nodiscard]] inline run_memory plan_run_memory(const program& p, const program_storages& storages,
                                                const symbol_values& symbols, std::size_t alignment,
                                                const offset_planner& planner = plan_by_default) {
  return detail::run_memory_planning(p, storages, symbols, alignment).run(planner);
}

/// The same for a program that is planned once.
[[nodiscard]] inline run_memory plan_run_memory(const program& p, const symbol_values& symbols, std::size_t alignment,
                                                const offset_planner& planner = plan_by_default) {
  return plan_run_memory(p, storages_of(p), symbols, alignment, planner);
}

}  // namespace dnnopt

#endif  // DNNOPT_BACKEND_PROGRAM_RUN_MEMORY_HPP
