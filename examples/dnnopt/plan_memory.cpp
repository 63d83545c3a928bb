// dnnopt plan-memory
#include <fstream>
#include <sstream>

#include <dnnopt/error.hpp>
#include <dnnopt/memory/memory_io.hpp>
#include <dnnopt/memory/objects/min_cost_flow.hpp>
#include <dnnopt/memory/plan.hpp>

#include "command.hpp"

namespace tool {

int plan_memory(const options& o) {
  std::ifstream file(o.model, std::ios::binary);
  if (!file) throw dnnopt::error(dnnopt::errc::file_not_found, "cannot open '" + o.model + "'");
  std::ostringstream content;
  content << file.rdbuf();
  const dnnopt::memory::named_usages records = dnnopt::memory::read_usages(content.str());

  json result;
  if (const auto strategy = dnnopt::memory::find_offset_strategy(o.strategy)) {
    dnnopt::memory::offset_options planning;
    planning.strategy = *strategy;
    planning.budget = o.budget;
    planning.threads = o.threads;
    planning.capacity = o.capacity;
    result = json::parse(dnnopt::memory::plan_to_json(dnnopt::memory::plan_offsets(records.usages, planning)).dump());
  } else if (const auto objects = dnnopt::memory::plan_objects_named(records.usages, o.strategy)) {
    result = json::parse(dnnopt::memory::plan_to_json(*objects).dump());
  } else if (o.strategy == "objects_min_cost_flow") {
    result = json::parse(dnnopt::memory::plan_to_json(dnnopt::memory::plan_objects_by_flow(records.usages)).dump());
  } else {
    std::string known;
    for (const auto& [strategy_of, name] : dnnopt::memory::offset_strategies) known += " " + std::string(name);
    for (const std::string_view name : dnnopt::memory::object_strategy_names) known += " " + std::string(name);
    throw dnnopt::error(dnnopt::errc::usage, "no strategy '" + o.strategy + "'; there are:" + known);
  }
  const bool fits = o.capacity == 0 || result["bytes"].get<std::int64_t>() <= o.capacity;
  say(o, result["strategy"].get<std::string>() + ": " + result["bytes"].dump() + " bytes for " +
             std::to_string(records.usages.size()) + " buffers, lower bound " + result["lower_bound_bytes"].dump() +
             (result["proved"].get<bool>() ? ", proved least" : ", not proved least") + ", " +
             result["seconds"].dump() + " s" + (fits ? "" : "; above the capacity of " + std::to_string(o.capacity)) +
             "\n");
  write_json(o, result);
  return fits ? 0 : 1;
}

}  // namespace tool
