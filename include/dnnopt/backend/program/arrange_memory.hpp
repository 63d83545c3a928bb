// Owns the composition of memory decisions for a program: writing in place, execution order, planners, the limit.
#ifndef DNNOPT_BACKEND_PROGRAM_ARRANGE_MEMORY_HPP
#define DNNOPT_BACKEND_PROGRAM_ARRANGE_MEMORY_HPP

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include <dnnopt/backend/program/memory_limit.hpp>
#include <dnnopt/backend/program/memory_options.hpp>
#include <dnnopt/backend/program/parts.hpp>
#include <dnnopt/backend/program/run_memory.hpp>
#include <dnnopt/backend/program/schedule.hpp>
#include <dnnopt/memory/objects/min_cost_flow.hpp>
#include <dnnopt/memory/objects/object_offsets.hpp>
#include <dnnopt/memory/plan.hpp>

namespace dnnopt {

/// The planner that shares whole objects by the strategy of a name (plan_objects_named, "objects_min_cost_flow"), or
/// nothing.
[[nodiscard]] inline offset_planner object_planner_of(const std::string& name) {
  if (name == "objects_min_cost_flow")
    return [](std::span<const memory::buffer_usage> usages) {
      return memory::offsets_in_objects(usages, memory::plan_objects_by_flow(usages));
    };
  if (!memory::plan_objects_named({}, name)) return nullptr;
  return [name](std::span<const memory::buffer_usage> usages) {
    return memory::offsets_in_objects(usages, memory::plan_objects_named(usages, name).value());
  };
}

/// The planner that the options name. Errors: usage for an unknown name, with all names.
[[nodiscard]] inline offset_planner planner_of(const memory_options& options) {
  offset_planner planner;
  if (options.strategy == "default") {
    // What was known when the order was made is in the store already.
    planner = planner_at_run_time();
  } else if (const auto strategy = memory::find_offset_strategy(options.strategy)) {
    planner = planner_of(*strategy, options.budget);
  } else if (offset_planner objects = object_planner_of(options.strategy)) {
    planner = std::move(objects);
  } else {
    std::string names = "default";
    for (const auto& [strategy_of, name] : memory::offset_strategies) names += ", " + std::string(name);
    for (const std::string_view name : memory::object_strategy_names) names += ", " + std::string(name);
    throw error(errc::usage, "no memory strategy '" + options.strategy + "'; there are " + names);
  }
  return options.store && options.strategy == "default" ? remembering(std::move(planner), options.store) : planner;
}

/// Decides which kernels write in place and the order of the steps, and refuses what exceeds `limit` (bytes of device
/// memory in all; 0: none) as far as sizes are known: first the least memory within the budget, then within ten seconds
/// any order and plan that fit. `alignment` is that of offsets in bytes. With `options.store` the plan of known sizes
/// is kept there. Errors: memory_limit naming what is alive at the peak; usage for an unknown strategy.
inline memory_report arrange_memory(program& p, std::size_t alignment, const memory_options& options,
                                    std::int64_t limit = 0) {
  memory_report report;
  p.image_strategy = memory::image_strategy_of(options.strategy);
  symbol_values sizes;
  for (std::uint32_t symbol = 0; symbol < p.g->expressions().symbol_count(); ++symbol) sizes.bind(symbol, 24);
  if (options.write_in_place) report.parts = place_parts(p, sizes, alignment);
  const bool by_default = options.strategy == "default";
  program_schedule_options scheduling{options.budget, alignment, 0, by_default ? options.store.get() : nullptr};
  if (options.reorder) report.schedule = schedule_program(p, scheduling);
  const offset_planner planner =
      by_default ? remembering(planner_of(memory::offset_strategy::exact, options.budget),
                               options.store ? options.store : std::make_shared<memory::plan_store>())
                 : planner_of(options);
  const program_storages storages = storages_of(p);
  const symbol_values none;
  const bool known = std::all_of(storages.all.begin(), storages.all.end(), [&](const program_storage& s) {
    return s.bytes && s.bytes->try_evaluate(none).has_value();
  });
  if (!known) {
    require_weights(p, static_cast<std::uint64_t>(limit));
    return report;
  }
  // Keeps the plan for the runs, and answers whether it fits.
  run_memory memory = plan_run_memory(p, none, alignment, planner);
  if (limit == 0) return report;
  const device_share share = share_of(p, memory);
  const std::int64_t room = limit - static_cast<std::int64_t>(share.weights + share.caller);
  if (static_cast<std::int64_t>(memory.arena_bytes) > room && room > 0 && options.reorder &&
      report.schedule.lower_bound <= room) {
    constexpr double patience = 10.0;
    scheduling.budget = std::max(options.budget, patience);
    scheduling.limit = room;
    report.schedule = schedule_program(p, scheduling);
    memory = plan_run_memory(p, none, alignment, planner);
  }
  require_memory(p, memory, static_cast<std::uint64_t>(limit), report.schedule.lower_bound);
  return report;
}

}  // namespace dnnopt

#endif  // DNNOPT_BACKEND_PROGRAM_ARRANGE_MEMORY_HPP
