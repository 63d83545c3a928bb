// Owns the memory of one binding of a program's symbols: which value lies where in the arena, and what lies outside it.
#ifndef DNNOPT_BACKEND_RUN_MEMORY_HPP
#define DNNOPT_BACKEND_RUN_MEMORY_HPP

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <dnnopt/backend/program.hpp>
#include <dnnopt/passes/memory/bounds.hpp>
#include <dnnopt/passes/memory/plan.hpp>
#include <dnnopt/passes/memory/usage.hpp>

namespace dnnopt {

/// A value (or scratch of a step, where `held` is no_value) with its memory.
struct planned_value {
  value_id held = no_value;
  std::size_t step = 0;     ///< of scratch
  std::size_t scratch = 0;  ///< which scratch buffer of the step
  std::size_t offset = 0;   ///< bytes from the start of the arena
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

/// The memory of one binding.
struct run_memory {
  std::vector<planned_value> planned;   ///< intermediates and scratch in the arena
  std::vector<planned_value> separate;  ///< graph inputs and outputs on the device: the caller's side
  std::size_t arena_bytes = 0;
  std::size_t lower_bound_bytes = 0;  ///< the largest sum of bytes alive at one step
  std::size_t naive_bytes = 0;        ///< one buffer per intermediate
  std::string strategy;
  bool proved = false;  ///< no plan of this order needs fewer bytes
  double seconds = 0;

  /// The records and the plan of `planned`, for drawing and checking.
  std::vector<memory::buffer_usage> usages;
  memory::offset_plan plan;

  /// Whether sizes or arguments of the step depend on what a host operator computes during the run.
  [[nodiscard]] bool is_late(std::size_t step) const { return step < late.size() && late[step]; }
  /// Values made during the run that nothing reads after the step.
  [[nodiscard]] std::span<const value_id> released_after(std::size_t step) const {
    return step < released.size() ? std::span<const value_id>(released[step]) : std::span<const value_id>();
  }

  std::vector<bool> late;
  std::vector<std::vector<value_id>> released;
};

/// Lifetimes over the program's steps and the arena for all sizes that `symbols` decide. Values whose size only the run
/// tells stay outside and are allocated when they are made.
/// Complexity: that of `planner` beyond O(V + E).
[[nodiscard]] inline run_memory plan_run_memory(const program& p, const symbol_values& symbols, std::size_t alignment,
                                                const offset_planner& planner = plan_by_default) {
  const graph& g = *p.g;
  run_memory result;
  result.late.assign(p.steps.size(), false);
  result.released.resize(p.steps.size());

  struct lifetime {
    std::int64_t first = -1;
    std::int64_t last = -1;
    bool on_device = false;
  };
  std::vector<lifetime> lives(g.value_count());
  const auto touch = [&](value_id v, std::size_t step, bool written, bool device) {
    lifetime& life = lives[p.roots[v]];
    if (written && life.first < 0) life.first = static_cast<std::int64_t>(step);
    life.last = std::max(life.last, static_cast<std::int64_t>(step));
    life.on_device = life.on_device || device;
  };
  for (std::size_t s = 0; s < p.steps.size(); ++s) {
    const placed_node& step = p.steps[s];
    if (step.where == placement::device) {
      for (const codegen::kernel_plan& plan : step.lowered.kernels)
        for (const codegen::pointer_argument& a : plan.pointers)
          if (a.held != no_value) touch(a.held, s, a.written, true);
    } else if (is_on_host(step.where)) {
      for (const value_id in : g.node_at(step.id).inputs)
        if (in != no_value) touch(in, s, false, false);
      for (const value_id out : g.node_at(step.id).outputs)
        if (out != no_value) touch(out, s, true, false);
    }
  }
  std::set<value_id> kept;
  for (const value_id v : g.inputs()) kept.insert(p.roots[v]);
  for (const value_id v : g.outputs()) kept.insert(p.roots[v]);

  std::vector<memory::buffer_usage> usages;
  const auto aligned = static_cast<std::int64_t>(std::max<std::size_t>(alignment, 1));
  for (value_id v = 0; v < g.value_count(); ++v) {
    const lifetime& life = lives[v];
    const value_facts& facts = g.facts(v);
    if (!life.on_device || facts.is_constant() || !facts.dims) continue;
    std::optional<std::int64_t> count = element_count(*facts.dims).try_evaluate(symbols);
    planned_value planned;
    planned.held = v;
    planned.first_step = life.first;
    planned.last_step = life.last;
    if (!count) {
      if (!kept.contains(v) && life.last >= 0) result.released[static_cast<std::size_t>(life.last)].push_back(v);
      continue;
    }
    planned.bytes = std::max<std::size_t>(static_cast<std::size_t>(*count) * size_of(facts.type), 1);
    if (kept.contains(v)) {
      result.separate.push_back(planned);
      continue;
    }
    // What no kernel writes (expressions of dims, results of host operators) is uploaded and lives on its own.
    if (life.first < 0 || p.steps[static_cast<std::size_t>(life.first)].where != placement::device) continue;
    result.planned.push_back(planned);
    usages.push_back({life.first, life.last + 1, static_cast<std::int64_t>(planned.bytes), aligned});
  }
  for (std::size_t s = 0; s < p.steps.size(); ++s) {
    for (std::size_t j = 0; j < p.steps[s].lowered.scratch.size(); ++j) {
      const codegen::scratch_buffer& scratch = p.steps[s].lowered.scratch[j];
      // Packed weights live as long as the weights, not as long as a run.
      if (scratch.persistent) continue;
      const auto bytes = scratch.bytes.try_evaluate(symbols);
      if (!bytes)
        throw error(errc::unsupported,
                    "scratch memory of node '" + g.node_at(p.steps[s].id).name + "' depends on data");
      planned_value planned;
      planned.step = s;
      planned.scratch = j;
      planned.bytes = static_cast<std::size_t>(std::max<std::int64_t>(*bytes, 1));
      planned.first_step = planned.last_step = static_cast<std::int64_t>(s);
      result.planned.push_back(planned);
      usages.push_back({planned.first_step, planned.last_step + 1, static_cast<std::int64_t>(planned.bytes), aligned});
    }
    for (const codegen::kernel_plan& plan : p.steps[s].lowered.kernels) {
      for (const index_expr& e : plan.parameters) result.late[s] = result.late[s] || !e.try_evaluate(symbols);
      for (const codegen::pointer_argument& a : plan.pointers) {
        if (a.held == no_value) continue;
        const value_facts& facts = g.facts(p.roots[a.held]);
        const lifetime& life = lives[p.roots[a.held]];
        const bool from_host = life.first >= 0 && is_on_host(p.steps[static_cast<std::size_t>(life.first)].where);
        if (facts.elements)
          for (const index_expr& e : *facts.elements) result.late[s] = result.late[s] || !e.try_evaluate(symbols);
        if (from_host || !facts.dims || !element_count(*facts.dims).try_evaluate(symbols)) result.late[s] = true;
      }
    }
  }
  for (const memory::buffer_usage& usage : usages) result.naive_bytes += static_cast<std::size_t>(usage.size);
  if (usages.empty()) return result;
  result.plan = planner(usages);
  for (std::size_t i = 0; i < usages.size(); ++i)
    result.planned[i].offset = static_cast<std::size_t>(result.plan.offsets[i]);
  result.arena_bytes = static_cast<std::size_t>(result.plan.bytes);
  result.lower_bound_bytes = static_cast<std::size_t>(result.plan.lower_bound);
  result.strategy = result.plan.strategy;
  result.proved = result.plan.proved;
  result.seconds = result.plan.seconds;
  result.usages = std::move(usages);
  return result;
}

}  // namespace dnnopt

#endif  // DNNOPT_BACKEND_RUN_MEMORY_HPP
