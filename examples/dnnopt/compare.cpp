// dnnopt compare: two saved profiles, and what grew between them.
#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <sstream>

#include <dnnopt/profile/report/text.hpp>

#include "support.hpp"

namespace tool {

namespace {

/// A profile that `profile --json` wrote. Errors: file_io; bad_file where it is none.
json profile_in(const std::string& file) {
  std::ifstream in(file);
  if (!in) throw dnnopt::error(dnnopt::errc::file_io, "cannot read '" + file + "'");
  std::stringstream text;
  text << in.rdbuf();
  json read = json::parse(text.str(), nullptr, false);
  const auto is_number = [&](const char* key) { return read.contains(key) && read[key].is_number(); };
  if (read.is_discarded() || !read.is_object() || !is_number("runs") || !is_number("e2e_ms"))
    throw dnnopt::error(dnnopt::errc::bad_file, "'" + file + "' is no profile of `dnnopt profile --json`");
  for (const char* key : {"operators", "kernel_rows"})
    if (!read.contains(key) || !read[key].is_array())
      throw dnnopt::error(dnnopt::errc::bad_file, "'" + file + "' has no " + key);
  return read;
}

/// Microseconds of one inference by name, of one list of rows.
std::map<std::string, double> microseconds_of(const json& profile, const char* list) {
  std::map<std::string, double> found;
  const double runs = std::max(profile["runs"].get<double>(), 1.0);
  for (const json& row : profile[list])
    if (row.is_object() && row.contains("name") && row.contains("total_us"))
      found[row["name"].get<std::string>()] += row["total_us"].get<double>() / runs;
  return found;
}

}  // namespace

int compare(const options& o) {
  const json a = profile_in(o.model);
  const json b = profile_in(o.other);
  struct compared {
    std::string name;
    std::string level;
    double a_us = 0;
    double b_us = 0;
    [[nodiscard]] double difference() const { return b_us - a_us; }
  };
  std::vector<compared> rows;
  for (const auto& [list, level] : {std::pair{"operators", "operator"}, std::pair{"kernel_rows", "kernel"}}) {
    std::map<std::string, compared> joined;
    for (const auto& [name, us] : microseconds_of(a, list)) joined[name].a_us = us;
    for (const auto& [name, us] : microseconds_of(b, list)) joined[name].b_us = us;
    for (auto& [name, row] : joined) rows.push_back({name, level, row.a_us, row.b_us});
  }
  std::stable_sort(rows.begin(), rows.end(), [](const compared& x, const compared& y) {
    return std::abs(x.difference()) > std::abs(y.difference());
  });
  const double a_us = a["e2e_ms"].get<double>() * 1e3;
  const double b_us = b["e2e_ms"].get<double>() * 1e3;
  json result;
  for (const auto& [key, file] : {std::pair{"a", &a}, std::pair{"b", &b}})
    result[key] = {{"model", file->value("model", "")}, {"device", file->value("device", "")}};
  result["total"] = {{"a_us", a_us}, {"b_us", b_us}};
  result["rows"] = json::array();
  text_table table({"", "", "a us", "b us", "difference"});
  constexpr std::size_t shown = 20;
  std::vector<std::string> names;
  for (const compared& row : rows) names.push_back(row.name);
  names = dnnopt::profile::text::shortened(names, 48);
  for (const compared& row : rows) {
    if (result["rows"].size() < shown)
      table.add({names[result["rows"].size()], row.level, fixed(row.a_us, 2), fixed(row.b_us, 2),
                 fixed(row.difference(), 2)});
    result["rows"].push_back({{"name", row.name},
                              {"level", row.level},
                              {"a_us", row.a_us},
                              {"b_us", row.b_us},
                              {"difference_us", row.difference()}});
  }
  say(o, "a: " + a.value("model", "") + " on " + a.value("device", "") + "\nb: " + b.value("model", "") + " on " +
             b.value("device", "") + "\nend to end " + fixed(a_us, 1) + " us, then " + fixed(b_us, 1) + " us (" +
             fixed(100.0 * (b_us - a_us) / std::max(a_us, 1e-9), 1) + "%)\n" + table.str() +
             (rows.size() > shown ? std::to_string(rows.size() - shown) + " rows more in --json\n" : ""));
  write_json(o, result);
  return 0;
}

}  // namespace tool
