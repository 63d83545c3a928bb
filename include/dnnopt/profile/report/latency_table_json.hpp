// Owns latency tables as JSON, for use with nlohmann::json.
#ifndef DNNOPT_PROFILE_REPORT_LATENCY_TABLE_JSON_HPP
#define DNNOPT_PROFILE_REPORT_LATENCY_TABLE_JSON_HPP

#include <cstdint>
#include <string>

#include <nlohmann/json.hpp>

#include <dnnopt/detail/json_integer.hpp>
#include <dnnopt/error.hpp>
#include <dnnopt/profile/report/latency_table.hpp>

namespace dnnopt::profile {

/// The table as JSON: `launches` with the launch model, `entries` with one object per key.
[[nodiscard]] inline nlohmann::json to_json(const latency_table& table) {
  const launch_model& m = table.launches;
  nlohmann::json result;
  result["launches"] = {{"enqueue_ns", m.enqueue_ns},   {"latency_ns", m.latency_ns},   {"gap_ns", m.gap_ns},
                        {"prologue_ns", m.prologue_ns}, {"epilogue_ns", m.epilogue_ns}, {"input_ns", m.input_ns}};
  result["entries"] = nlohmann::json::array();
  for (const auto& [key, entry] : table.entries())
    result["entries"].push_back({{"level", std::string(to_string(key.level))},
                                 {"operators", key.operators},
                                 {"attributes", key.attributes},
                                 {"shapes", key.shapes},
                                 {"layout", key.layout},
                                 {"device", key.device},
                                 {"count", entry.count},
                                 {"mean_ns", entry.mean_ns},
                                 {"min_ns", entry.min_ns},
                                 {"p50_ns", entry.p50_ns},
                                 {"p90_ns", entry.p90_ns},
                                 {"max_ns", entry.max_ns}});
  return result;
}

/// Reads what `to_json` wrote. Errors: bad_file for missing members or wrong types.
[[nodiscard]] inline latency_table latency_table_from_json(const nlohmann::json& json) {
  try {
    latency_table table;
    const auto& m = json.at("launches");
    table.launches = {m.at("enqueue_ns").get<double>(),  m.at("latency_ns").get<double>(),
                      m.at("gap_ns").get<double>(),      m.at("prologue_ns").get<double>(),
                      m.at("epilogue_ns").get<double>(), m.value("input_ns", 0.0)};
    for (const auto& e : json.at("entries")) {
      const std::string level = e.at("level").get<std::string>();
      if (level != "kernel" && level != "operator")
        throw error(errc::bad_file, "latency table: level is '" + level + "'");
      table.add(
          {level == "kernel" ? latency_level::kernel : latency_level::operator_, e.at("operators").get<std::string>(),
           e.at("attributes").get<std::string>(), e.at("shapes").get<std::string>(), e.at("layout").get<std::string>(),
           e.at("device").get<std::string>()},
          {dnnopt::detail::integer_of<std::uint64_t>(e.at("count"), "latency table"), e.at("mean_ns").get<double>(),
           e.at("min_ns").get<double>(), e.at("p50_ns").get<double>(), e.at("p90_ns").get<double>(),
           e.at("max_ns").get<double>()});
    }
    return table;
  } catch (const nlohmann::json::exception& failure) {
    throw error(errc::bad_file, std::string("latency table: ") + failure.what());
  }
}

}  // namespace dnnopt::profile

#endif  // DNNOPT_PROFILE_REPORT_LATENCY_TABLE_JSON_HPP
