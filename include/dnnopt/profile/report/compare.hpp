// Owns the comparison of two saved profiles: what grew, by operator and by kernel.
#ifndef DNNOPT_PROFILE_REPORT_COMPARE_HPP
#define DNNOPT_PROFILE_REPORT_COMPARE_HPP

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include <dnnopt/detail/json_integer.hpp>
#include <dnnopt/error.hpp>
#include <dnnopt/profile/report/report.hpp>
#include <dnnopt/profile/report/text.hpp>

namespace dnnopt::profile {

/// What a saved profile (the JSON of `to_json(profile_report)`) says that can be compared. Times in nanoseconds.
struct saved_profile {
  std::string model;
  std::string device;
  std::string created;
  statistic_row e2e;
  std::vector<statistic_row> operators;
  std::vector<statistic_row> kernels;
};

/// Reads a saved profile. Errors: bad_file where the JSON is none.
[[nodiscard]] inline saved_profile saved_profile_from_json(const nlohmann::json& json) {
  const auto row = [](const nlohmann::json& from) {
    statistic_row r;
    r.name = from.at("name").get<std::string>();
    r.type = from.at("type").get<std::string>();
    r.ops = from.at("ops").get<std::vector<std::string>>();
    r.count = dnnopt::detail::integer_of<std::uint64_t>(from.at("count"), "saved profile");
    r.mean_ns = from.at("avg_us").get<double>() * 1e3;
    r.p50_ns = from.at("p50_us").get<double>() * 1e3;
    r.p90_ns = from.at("p90_us").get<double>() * 1e3;
    r.total_ns = from.at("total_us").get<double>() * 1e3;
    r.mean_interval_ns = {from.at("mean_low_us").get<double>() * 1e3, from.at("mean_high_us").get<double>() * 1e3};
    return r;
  };
  try {
    saved_profile result;
    result.model = json.at("model").get<std::string>();
    result.device = json.at("device").get<std::string>();
    result.created = json.value("created", "");
    result.e2e = row(json.at("e2e"));
    for (const auto& one : json.at("operators")) result.operators.push_back(row(one));
    for (const auto& one : json.at("kernel_rows")) result.kernels.push_back(row(one));
    return result;
  } catch (const nlohmann::json::exception& failure) {
    throw error(errc::bad_file, std::string("saved profile: ") + failure.what());
  }
}

/// One name in both profiles, or in one of them.
struct profile_change {
  std::string name;
  std::string type;
  double before_ns = 0.0;  ///< per inference; 0 where absent
  double after_ns = 0.0;
  bool in_before = false;
  bool in_after = false;
  bool significant = false;  ///< the 95% intervals of the means do not meet, or one side is absent

  [[nodiscard]] double change_ns() const noexcept { return after_ns - before_ns; }
};

/// The comparison, largest change first.
struct profile_comparison {
  profile_change e2e;
  std::vector<profile_change> operators;
  std::vector<profile_change> kernels;
};

/// Compares by name. Kernels of one name are summed. O(n log n).
[[nodiscard]] inline profile_comparison compare(const saved_profile& before, const saved_profile& after) {
  const auto changes = [](const std::vector<statistic_row>& left, const std::vector<statistic_row>& right) {
    struct both {
      profile_change change;
      interval before{};
      interval after{};
    };
    std::map<std::string, both> all;
    const auto take = [&](const std::vector<statistic_row>& rows, bool is_after) {
      for (const statistic_row& row : rows) {
        both& b = all[row.name];
        b.change.name = row.name;
        b.change.type = row.type;
        (is_after ? b.change.after_ns : b.change.before_ns) += row.total_ns;
        (is_after ? b.change.in_after : b.change.in_before) = true;
        interval& range = is_after ? b.after : b.before;
        const double calls = row.mean_ns > 0.0 ? row.total_ns / row.mean_ns : 1.0;
        range.lower += row.mean_interval_ns.lower * calls;
        range.upper += row.mean_interval_ns.upper * calls;
      }
    };
    take(left, false);
    take(right, true);
    std::vector<profile_change> result;
    for (auto& [name, b] : all) {
      b.change.significant =
          b.change.in_before != b.change.in_after || b.before.upper < b.after.lower || b.after.upper < b.before.lower;
      result.push_back(std::move(b.change));
    }
    std::stable_sort(result.begin(), result.end(), [](const profile_change& a, const profile_change& b) {
      return std::abs(a.change_ns()) > std::abs(b.change_ns());
    });
    return result;
  };
  profile_comparison result;
  result.e2e = changes({before.e2e}, {after.e2e}).front();
  result.operators = changes(before.operators, after.operators);
  result.kernels = changes(before.kernels, after.kernels);
  return result;
}

/// The comparison as text; '*' marks what is significant.
[[nodiscard]] inline std::string to_table(const profile_comparison& comparison, const saved_profile& before,
                                          const saved_profile& after, std::size_t rows = 30) {
  const auto us = [](double ns) { return text::fixed(ns * 1e-3, 2); };
  std::string out = "before: " + before.model + " on " + before.device + " " + before.created +
                    "\nafter:  " + after.model + " on " + after.device + " " + after.created + "\n";
  const auto line = [&](const profile_change& c) {
    const std::string ratio = c.before_ns > 0.0 && c.in_after ? text::fixed(c.after_ns / c.before_ns, 3)
                              : c.in_after                    ? std::string("new")
                                                              : std::string("gone");
    out += text::padded(c.name, -40) + text::padded(" " + c.type, -18) + text::padded(us(c.before_ns), 12) +
           text::padded(us(c.after_ns), 12) + text::padded(us(c.change_ns()), 12) + text::padded(ratio, 8) +
           (c.significant ? " *" : "") + "\n";
  };
  const auto head = [&](const std::string& title) {
    out += "\n" + text::padded(title, -58) + text::padded("before us", 12) + text::padded("after us", 12) +
           text::padded("change us", 12) + text::padded("ratio", 8) + "\n";
  };
  head("inference");
  line(comparison.e2e);
  head("operators");
  for (std::size_t i = 0; i < std::min(rows, comparison.operators.size()); ++i) line(comparison.operators[i]);
  head("kernels");
  for (std::size_t i = 0; i < std::min(rows, comparison.kernels.size()); ++i) line(comparison.kernels[i]);
  return out;
}

}  // namespace dnnopt::profile

#endif  // DNNOPT_PROFILE_REPORT_COMPARE_HPP
