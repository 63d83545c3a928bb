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

/// Lifetimes over the program's steps and the arena for all sizes that `symbols` decide. Values and scratch whose size
/// only the run tells stay outside and are allocated when a step comes to them. Every plan is checked: no live value
/// may be overwritten. `storages` are those of the program, which hold for all symbols. Errors: what memory::check_plan
/// throws. Complexity: that of `planner` beyond O(V + E).
[[nodiscard]] inline run_memory plan_run_memory(const program& p, const program_storages& storages,
                                                const symbol_values& symbols, std::size_t alignment,
                                                const offset_planner& planner = plan_by_default) {
  const graph& g = *p.g;
  run_memory result;
  result.late.assign(p.steps.size(), false);
  result.released.resize(p.steps.size());
  result.late_scratch.resize(p.steps.size());
  result.homes.resize(g.value_count());
  for (value_id v = 0; v < g.value_count(); ++v) result.homes[v] = v;

  program_records records = records_of(p, storages, symbols, alignment);
  const auto known_bytes = [&](const std::optional<index_expr>& bytes) -> std::optional<std::size_t> {
    const auto value = bytes ? bytes->try_evaluate(symbols) : std::nullopt;
    return value ? std::optional(static_cast<std::size_t>(std::max<std::int64_t>(*value, 1))) : std::nullopt;
  };
  std::vector<bool> in_arena(g.value_count(), false);
  std::vector<value_id> first_of(records.usages.size(), no_value);
  for (value_id v = 0; v < g.value_count(); ++v) {
    const std::uint32_t index = storages.of_value[v];
    if (p.roots[v] != v || index == program_storages::none) continue;
    const program_storage& storage = storages.all[index];
    planned_value planned;
    planned.held = v;
    // A whole is there from its first part on.
    planned.first_step = storages.touched[v].first;
    planned.last_step = storages.touched[v].last;
    const auto bytes = storage.handed ? std::nullopt : known_bytes(detail::bytes_of(g.facts(v)));
    const std::uint32_t record = records.of_storage[index];
    if (!bytes || (storage.role != storage_role::caller && record == program_storages::none)) {
      if (storage.role != storage_role::caller && planned.last_step >= 0)
        result.released[static_cast<std::size_t>(planned.last_step)].push_back(v);
      continue;
    }
    planned.bytes = *bytes;
    if (storage.role == storage_role::caller) {
      result.separate.push_back(planned);
      continue;
    }
    in_arena[v] = true;
    planned.record = record;
    planned.offset = detail::offset_in_storage(p, v);
    if (storage.role == storage_role::whole_run) result.whole_run.push_back(v);
    if (storage.held == v) {
      if (first_of[record] == no_value) first_of[record] = v;
      result.homes[v] = first_of[record];
    }
    result.naive_bytes += storage.held == v ? planned.bytes : 0;
    result.planned.push_back(planned);
  }
  std::vector<std::size_t> step_of(g.node_limit(), 0);
  for (std::size_t step = 0; step < p.steps.size(); ++step) step_of[p.steps[step].id] = step;
  for (std::uint32_t i = 0; i < storages.all.size(); ++i) {
    const program_storage& storage = storages.all[i];
    if (storage.role != storage_role::scratch) continue;
    const auto bytes = known_bytes(storage.bytes);
    if (!bytes) {
      result.late[step_of[storage.scratch_of]] = true;
      result.late_scratch[step_of[storage.scratch_of]].push_back(storage.scratch);
      continue;
    }
    planned_value planned;
    planned.step = step_of[storage.scratch_of];
    planned.scratch = storage.scratch;
    planned.record = records.of_storage[i];
    planned.bytes = *bytes;
    planned.first_step = planned.last_step = static_cast<std::int64_t>(planned.step);
    result.naive_bytes += planned.bytes;
    result.planned.push_back(planned);
  }
  for (std::size_t s = 0; s < p.steps.size(); ++s)
    for (const codegen::kernel_plan& plan : p.steps[s].lowered.kernels) {
      for (const index_expr& e : plan.parameters) result.late[s] = result.late[s] || !e.try_evaluate(symbols);
      for (const codegen::pointer_argument& a : plan.pointers) {
        if (a.held == no_value) continue;
        const value_id root = p.roots[a.held];
        const value_facts& facts = g.facts(root);
        const std::int64_t first = storages.touched[root].first;
        const bool from_host = first >= 0 && is_on_host(p.steps[static_cast<std::size_t>(first)].where);
        if (facts.elements)
          for (const index_expr& e : *facts.elements) result.late[s] = result.late[s] || !e.try_evaluate(symbols);
        const std::uint32_t storage = storages.of_value[root];
        const bool handed = storage != program_storages::none && storages.all[storage].handed;
        if ((from_host && !in_arena[root]) || handed || !known_bytes(detail::bytes_of(facts))) result.late[s] = true;
      }
    }
  if (records.usages.empty()) return result;
  result.plan = planner(records.usages);
  // Cheap beside planning, and a planner may be the application's own.
  memory::check_plan(records.usages, result.plan);
  for (planned_value& planned : result.planned)
    planned.offset += static_cast<std::size_t>(result.plan.offsets[planned.record]);
  result.arena_bytes = static_cast<std::size_t>(result.plan.bytes);
  result.lower_bound_bytes = static_cast<std::size_t>(result.plan.lower_bound);
  result.strategy = result.plan.strategy;
  result.proved = result.plan.proved;
  result.seconds = result.plan.seconds;
  result.usages = std::move(records.usages);
  return result;
}

/// The same for a program that is planned once.
[[nodiscard]] inline run_memory plan_run_memory(const program& p, const symbol_values& symbols, std::size_t alignment,
                                                const offset_planner& planner = plan_by_default) {
  return plan_run_memory(p, storages_of(p), symbols, alignment, planner);
}

}  // namespace dnnopt

#endif  // DNNOPT_BACKEND_PROGRAM_RUN_MEMORY_HPP
