// Owns the profile database of fusion: what joins of operators cost on devices, as one kernel and apart, and its JSON
// form.
#ifndef DNNOPT_PASSES_FUSION_PROFILE_DATABASE_HPP
#define DNNOPT_PASSES_FUSION_PROFILE_DATABASE_HPP

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include <nlohmann/json.hpp>

#include <dnnopt/error.hpp>

namespace dnnopt::fusion {

/// What the same operators take on a device, in microseconds.
struct join_times {
  double joined_us = 0;  ///< as one kernel; join_times::no_kernel where there is none
  double apart_us = 0;   ///< as the kernels that they are without the join, one after the other

  static constexpr double no_kernel = 1e12;
  /// Whether the join pays. At equal times it does: it saves memory.
  [[nodiscard]] bool pays() const noexcept { return joined_us < no_kernel && joined_us <= apart_us; }
};

/// Times by join (join_question's key: operators, attributes, shapes and how they hang together), for one device.
using profile_table = std::map<std::string, join_times, std::less<>>;

/// The database of DNNFusion section 4.3: what one model's fusion measured serves every model that has the same
/// operators side by side. A table per device and driver (tuning_store::key_of). Not thread-safe.
class profile_database {
 public:
  /// The table of a device, made now where there is none; stays where it is as long as the database.
  [[nodiscard]] profile_table& table_of(std::string_view device) { return tables_[std::string(device)]; }
  [[nodiscard]] const std::map<std::string, profile_table, std::less<>>& tables() const noexcept { return tables_; }
  /// Joins known over all devices.
  [[nodiscard]] std::size_t size() const noexcept {
    std::size_t count = 0;
    for (const auto& [device, table] : tables_) count += table.size();
    return count;
  }

 private:
  std::map<std::string, profile_table, std::less<>> tables_;
};

/// An object of devices, each an object of joins with their two times.
[[nodiscard]] inline nlohmann::json profiles_to_json(const profile_database& database) {
  nlohmann::json document = nlohmann::json::object();
  for (const auto& [device, table] : database.tables())
    for (const auto& [join, times] : table) document[device][join] = {times.joined_us, times.apart_us};
  return document;
}

/// Adds what profiles_to_json wrote; a join that is there already gets the new times.
/// Errors: bad_file where the form is another.
inline void profiles_from_json(const nlohmann::json& document, profile_database& database) {
  try {
    for (const auto& [device, table] : document.items())
      for (const auto& [join, times] : table.items())
        database.table_of(device).insert_or_assign(join,
                                                   join_times{times.at(0).get<double>(), times.at(1).get<double>()});
  } catch (const nlohmann::json::exception& fault) {
    throw error(errc::bad_file, "kept profile database: " + std::string(fault.what()));
  }
}

}  // namespace dnnopt::fusion

#endif  // DNNOPT_PASSES_FUSION_PROFILE_DATABASE_HPP
