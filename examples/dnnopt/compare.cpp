// dnnopt compare: two saved profiles, and what grew between them.
#include <algorithm>
#include <cmath>
#include <fstream>
#include <sstream>
#include <vector>

#include <dnnopt/profile/report/compare.hpp>

#include "support.hpp"

namespace tool {

namespace {

/// A profile that `profile --json` wrote. Errors: file_io; bad_file where it is none.
dnnopt::profile::saved_profile profile_in(const std::string& file) {
  std::ifstream in(file);
  if (!in) throw dnnopt::error(dnnopt::errc::file_io, "cannot read '" + file + "'");
  std::stringstream text;
  text << in.rdbuf();
  const json read = json::parse(text.str(), nullptr, false);
  const std::string no_profile = "'" + file + "' is no profile of `dnnopt profile --json`";
  if (!read.is_object()) throw dnnopt::error(dnnopt::errc::bad_file, no_profile);
  try {
    return dnnopt::profile::saved_profile_from_json(read);
  } catch (const dnnopt::error& failure) {
    throw dnnopt::error(dnnopt::errc::bad_file, no_profile + ": " + failure.what());
  }
}

}  // namespace

int compare(const options& o) {
  const dnnopt::profile::saved_profile a = profile_in(o.model);
  const dnnopt::profile::saved_profile b = profile_in(o.other);
  const dnnopt::profile::profile_comparison found = dnnopt::profile::compare(a, b);
  struct compared {
    const dnnopt::profile::profile_change* change;
    const char* level;
  };
  std::vector<compared> rows;
  for (const auto& change : found.operators) rows.push_back({&change, "operator"});
  for (const auto& change : found.kernels) rows.push_back({&change, "kernel"});
  std::stable_sort(rows.begin(), rows.end(), [](const compared& x, const compared& y) {
    return std::abs(x.change->change_ns()) > std::abs(y.change->change_ns());
  });
  const double a_us = found.e2e.before_ns * 1e-3;
  const double b_us = found.e2e.after_ns * 1e-3;
  json result;
  for (const auto& [key, side] : {std::pair{"a", &a}, std::pair{"b", &b}})
    result[key] = {{"model", side->model}, {"device", side->device}};
  result["total"] = {{"a_us", a_us}, {"b_us", b_us}, {"significant", found.e2e.significant}};
  result["rows"] = json::array();
  text_table table({"", "", "a us", "b us", "difference", ""});
  constexpr std::size_t shown = 20;
  std::vector<std::string> names;
  for (const compared& row : rows) names.push_back(row.change->name);
  names = dnnopt::profile::text::shortened(names, 48);
  for (const auto& [change, level] : rows) {
    const double before = change->before_ns * 1e-3;
    const double after = change->after_ns * 1e-3;
    if (result["rows"].size() < shown)
      table.add({names[result["rows"].size()], level, fixed(before, 2), fixed(after, 2), fixed(after - before, 2),
                 change->significant ? "*" : ""});
    result["rows"].push_back({{"name", change->name},
                              {"level", level},
                              {"a_us", before},
                              {"b_us", after},
                              {"difference_us", after - before},
                              {"significant", change->significant}});
  }
  say(o, "a: " + a.model + " on " + a.device + "\nb: " + b.model + " on " + b.device + "\nend to end " +
             fixed(a_us, 1) + " us, then " + fixed(b_us, 1) + " us (" +
             fixed(100.0 * (b_us - a_us) / std::max(a_us, 1e-9), 1) + "%)\n" + table.str() +
             (rows.size() > shown ? std::to_string(rows.size() - shown) + " rows more in --json\n" : ""));
  write_json(o, result);
  return 0;
}

}  // namespace tool
