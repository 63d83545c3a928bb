// Owns the JSON forms of usage records and of memory plans.
#ifndef DNNOPT_MEMORY_MEMORY_IO_HPP
#define DNNOPT_MEMORY_MEMORY_IO_HPP

#include <cstddef>
#include <cstdint>
#include <exception>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dnnopt/detail/json_integer.hpp>
#include <dnnopt/memory/memory_csv.hpp>
#include <dnnopt/memory/plan_store.hpp>
#include <dnnopt/memory/usage.hpp>

namespace dnnopt::memory {

/// Reads usage records: an array of records or an object with the array under `usage_records` (and an optional
/// `alignment` of all). A record is `{"size", "first_task", "last_task"}` with both tasks inclusive (TensorFlow Lite)
/// or `{"size", "lower", "upper"}` half-open; `id`, `alignment` and `offset` are optional. Errors: bad_file
/// naming the record; records are validated.
[[nodiscard]] inline named_usages usages_from_json(const nlohmann::json& document) {
  named_usages result;
  try {
    const bool wrapped = document.is_object();
    const nlohmann::json& records = wrapped ? document.at("usage_records") : document;
    const auto integer = [&](const nlohmann::json& number) {
      const std::string where = "usage JSON: record " + std::to_string(result.usages.size());
      return dnnopt::detail::integer_of<std::int64_t>(number, where);
    };
    const auto alignment_of = [&](const nlohmann::json& from, std::int64_t otherwise) {
      return from.contains("alignment") ? integer(from["alignment"]) : otherwise;
    };
    const std::int64_t alignment = wrapped ? alignment_of(document, 1) : 1;
    if (!records.is_array()) throw error(errc::bad_file, "usage JSON: the records are not an array");
    for (const nlohmann::json& record : records) {
      buffer_usage usage;
      usage.size = integer(record.at("size"));
      usage.alignment = alignment_of(record, alignment);
      if (record.contains("first_task")) {
        usage.lower = integer(record.at("first_task"));
        const auto last = integer(record.at("last_task"));
        if (last == std::numeric_limits<std::int64_t>::max())
          throw error(errc::bad_file, "usage JSON: an endless task");
        usage.upper = last + 1;
      } else {
        usage.lower = integer(record.at("lower"));
        usage.upper = integer(record.at("upper"));
      }
      std::string id = std::to_string(result.usages.size());
      if (record.contains("id")) id = record["id"].is_string() ? record["id"].get<std::string>() : record["id"].dump();
      result.ids.push_back(std::move(id));
      result.usages.push_back(usage);
      if (record.contains("offset")) result.offsets.push_back(integer(record["offset"]));
    }
  } catch (const nlohmann::json::exception& fault) {
    throw error(errc::bad_file,
                "usage JSON: record " + std::to_string(result.usages.size()) + ": " + std::string(fault.what()));
  }
  if (!result.offsets.empty() && result.offsets.size() != result.usages.size()) {
    throw error(errc::bad_file, "usage JSON: " + std::to_string(result.offsets.size()) + " of " +
                                    std::to_string(result.usages.size()) + " records have an offset");
  }
  validate(result.usages);
  return result;
}

/// Writes records in the half-open form that usages_from_json reads.
[[nodiscard]] inline nlohmann::json usages_to_json(const named_usages& records) {
  nlohmann::json array = nlohmann::json::array();
  for (std::size_t i = 0; i < records.usages.size(); ++i) {
    const buffer_usage& usage = records.usages[i];
    nlohmann::json record{{"id", i < records.ids.size() ? records.ids[i] : std::to_string(i)},
                          {"lower", usage.lower},
                          {"upper", usage.upper},
                          {"size", usage.size}};
    if (usage.alignment != 1) record["alignment"] = usage.alignment;
    if (!records.offsets.empty()) record["offset"] = records.offsets[i];
    array.push_back(std::move(record));
  }
  return nlohmann::json{{"usage_records", std::move(array)}};
}

/// Reads records from the text of a file: JSON when its first character other than white space is `{` or `[`, else
/// CSV. Errors: bad_file.
[[nodiscard]] inline named_usages read_usages(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) throw error(errc::bad_file, "usage records: the file is empty");
  if (text[first] != '{' && text[first] != '[') return read_usages_csv(text);
  nlohmann::json document;
  try {
    document = nlohmann::json::parse(text);
  } catch (const nlohmann::json::exception& fault) {
    throw error(errc::bad_file, "usage JSON: " + std::string(fault.what()));
  }
  return usages_from_json(document);
}

/// The result of planning offsets: `strategy bytes lower_bound_bytes proved seconds offsets[]`, offsets in the order of
/// the records, `objects[]` empty.
[[nodiscard]] inline nlohmann::json plan_to_json(const offset_plan& plan) {
  return {{"strategy", plan.strategy},
          {"bytes", plan.bytes},
          {"lower_bound_bytes", plan.lower_bound},
          {"proved", plan.proved},
          {"seconds", plan.seconds},
          {"offsets", plan.offsets},
          {"objects", nlohmann::json::array()}};
}

/// The result of sharing objects: `objects[]` holds the object of every record in the order of the records,
/// `object_bytes[]` the size of every object; `offsets[]` are those of the objects laid one after another.
[[nodiscard]] inline nlohmann::json plan_to_json(const object_plan& plan) {
  nlohmann::json starts = nlohmann::json::array();
  std::int64_t top = 0;
  for (const std::int64_t size : plan.object_sizes) {
    starts.push_back(top);
    top += size;
  }
  nlohmann::json offsets = nlohmann::json::array();
  for (const std::size_t id : plan.object_ids) offsets.push_back(starts[id]);
  return {{"strategy", plan.strategy},
          {"bytes", plan.bytes},
          {"lower_bound_bytes", plan.lower_bound},
          {"proved", plan.proved},
          {"seconds", plan.seconds},
          {"offsets", std::move(offsets)},
          {"objects", plan.object_ids},
          {"object_bytes", plan.object_sizes}};
}

/// All plans of a store: `offsets{key: {offsets[], strategy, proved}}` and `orders{key: {order[], proved}}`.
[[nodiscard]] inline nlohmann::json plans_to_json(const plan_store& store) {
  nlohmann::json document{{"offsets", nlohmann::json::object()}, {"orders", nlohmann::json::object()}};
  for (const auto& [key, plan] : store.offsets())
    document["offsets"][key] = {{"offsets", plan.offsets}, {"strategy", plan.strategy}, {"proved", plan.proved}};
  for (const auto& [key, plan] : store.orders())
    document["orders"][key] = {{"order", plan.order}, {"proved", plan.proved}};
  return document;
}

/// Adds plans as plans_to_json writes them. Whether one fits is checked when it is looked up. Errors: bad_file.
inline void plans_from_json(const nlohmann::json& document, plan_store& store) {
  try {
    for (const auto& [key, plan] : document.at("offsets").items())
      store.put(key, plan_store::stored_offsets{
                         dnnopt::detail::integers_of<std::int64_t>(plan.at("offsets"), "kept memory plans"),
                         plan.at("strategy").get<std::string>(), plan.at("proved").get<bool>()});
    for (const auto& [key, plan] : document.at("orders").items())
      store.put(key, plan_store::stored_order{
                         dnnopt::detail::integers_of<std::uint32_t>(plan.at("order"), "kept memory plans"),
                         plan.at("proved").get<bool>()});
  } catch (const nlohmann::json::exception& fault) {
    throw error(errc::bad_file, "kept memory plans: " + std::string(fault.what()));
  }
}

}  // namespace dnnopt::memory

#endif  // DNNOPT_MEMORY_MEMORY_IO_HPP
