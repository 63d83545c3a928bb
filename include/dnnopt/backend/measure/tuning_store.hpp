// Owns what tuners chose on each device: tuning tables by device and driver, and their JSON form.
#ifndef DNNOPT_BACKEND_MEASURE_TUNING_STORE_HPP
#define DNNOPT_BACKEND_MEASURE_TUNING_STORE_HPP

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include <dnnopt/backend/codegen/tuning.hpp>
#include <dnnopt/detail/json_integer.hpp>
#include <dnnopt/device_info.hpp>
#include <dnnopt/error.hpp>

namespace dnnopt {

/// Tuning tables by device, driver and form of kernels: a time measured under one says nothing of another. Not
/// thread-safe.
class tuning_store {
 public:
  /// Name, version and driver of a device, as its driver states them, and the form of its kernels where it is not its
  /// own.
  [[nodiscard]] static std::string key_of(const device_info& info) {
    return info.name + "; " + info.version + "; " + info.driver_version +
           (info.form == kernel_form::native ? "" : "; " + std::string(name_of(info.form)));
  }
  /// The table of a device; null where nothing was tuned on it.
  [[nodiscard]] const codegen::tuning_table* find(const device_info& info) const {
    const auto found = tables_.find(key_of(info));
    return found == tables_.end() ? nullptr : &found->second;
  }
  /// The table of a device, made now where there is none.
  [[nodiscard]] codegen::tuning_table& table_of(const device_info& info) { return tables_[key_of(info)]; }
  [[nodiscard]] codegen::tuning_table& table_of(std::string_view key) { return tables_[std::string(key)]; }
  [[nodiscard]] const std::map<std::string, codegen::tuning_table, std::less<>>& tables() const noexcept {
    return tables_;
  }

 private:
  std::map<std::string, codegen::tuning_table, std::less<>> tables_;
};

/// An object of devices, each an object of shape classes with their values.
[[nodiscard]] inline nlohmann::json tuned_to_json(const tuning_store& store) {
  nlohmann::json document = nlohmann::json::object();
  for (const auto& [device, table] : store.tables())
    if (!table.rows().empty()) document[device] = table.rows();
  return document;
}

/// Adds what tuned_to_json wrote. Rows whose family or values this version does not have are left out; returns their
/// number. Errors: bad_file where the form is another.
inline std::size_t tuned_from_json(const nlohmann::json& document, tuning_store& store) {
  std::size_t left_out = 0;
  try {
    for (const auto& [device, rows] : document.items())
      for (const auto& [name, values] : rows.items()) {
        std::vector<std::int64_t> chosen = detail::integers_of<std::int64_t>(values, "kept tuning results");
        try {
          store.table_of(device).set(name, std::move(chosen));
        } catch (const error&) {
          ++left_out;
        }
      }
  } catch (const nlohmann::json::exception& fault) {
    throw error(errc::bad_file, "kept tuning results: " + std::string(fault.what()));
  }
  return left_out;
}

}  // namespace dnnopt

#endif  // DNNOPT_BACKEND_MEASURE_TUNING_STORE_HPP
