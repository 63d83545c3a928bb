#include <algorithm>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include <dnnopt/profile/report/chrome_trace.hpp>
#include <dnnopt/profile/report/csv.hpp>
#include <dnnopt/profile/report/report_json.hpp>
#include <dnnopt/profile/report/table.hpp>

#include "simulated_executor.hpp"

using namespace dnnopt::profile;

namespace {
profile_report sample_report(int runs = 5) {
  profiler profile;
  simulated_executor executor(profile);
  for (int i = 0; i < runs; ++i) executor.run();
  profile_report report = profile.report();
  report.model = "model \"quoted\", with comma";
  report.device = "simulated";
  return report;
}
}  // namespace

TEST_CASE("numbers are written alike on every machine", "[profile][text]") {
  CHECK(text::fixed(1234.5, 2) == "1234.50");
  CHECK(text::fixed(1.0 / 0.0, 2) == "-");
  CHECK(text::scaled(0.0) == "0");
  CHECK(text::scaled(999.4) == "999");
  CHECK(text::scaled(999.6) == "1.00k");
  CHECK(text::scaled(1.5e12) == "1.50T");
  CHECK(text::json_quoted("a\"b\\\n\x01") == "\"a\\\"b\\\\\\n\\u0001\"");
  CHECK(text::padded("abc", 5) == "  abc");
  CHECK(text::padded("abc", -5) == "abc  ");
  CHECK(text::padded("a_rather_long_name", -12) == "a_rat.._name");
}

TEST_CASE("CSV fields survive writing and reading", "[profile][text]") {
  const std::vector<std::string> fields{"plain", "a,b", "say \"x\"", "", "two\nlines", "end"};
  std::string line;
  for (const std::string& field : fields) line += (line.empty() ? "" : ",") + text::csv_field(field);
  const auto records = text::csv_records(line + "\r\nnext,1\n");
  REQUIRE(records.size() == 2);
  CHECK(records[0] == fields);
  CHECK(records[1] == std::vector<std::string>{"next", "1"});
  CHECK(text::csv_records("").empty());
  CHECK(text::csv_records("\"open").size() == 1);
}

TEST_CASE("the table shows every kernel, the parts and the clock", "[profile][table]") {
  const profile_report report = sample_report();
  const std::string table = to_table(report);
  for (const char* part : {"conv_0", "conv_3", "Conv_1 + Relu_1", "by operator", "by kernel", "by type", "unexplained",
                           "end to end", "clock: ", "Shape_0", "p90 us", "cdf%", "FLOP/s", "0 dropped"})
    CHECK_THAT(table, Catch::Contains(part));
  const std::string cut = to_table(report, {.rows = 2});
  CHECK_THAT(cut, Catch::Contains("(3 more)"));
}

TEST_CASE("the short table fits a screen and its names stay apart", "[profile][table]") {
  profile_report report = sample_report();
  const std::string part = "/a_long_part_of_a_path_that_many_nodes_have_in_common";
  report.by_kernel.clear();
  for (int i = 0; i < 60; ++i) {
    statistic_row row;
    row.name = "/encoder/" + std::to_string(i) + part + "/conv/Conv";
    row.type = "Conv";
    row.mean_ns = row.total_ns = 1000.0 + i;
    report.by_kernel.push_back(row);
  }
  rank_rows(report.by_kernel);
  const std::string table = to_summary(report);
  CHECK(std::count(table.begin(), table.end(), '\n') <= 26);
  CHECK_THAT(table, Catch::Contains("where the time goes: GPU") && Catch::Contains("(40 more)"));
  std::istringstream lines(table);
  std::set<std::string> names;
  for (std::string line; std::getline(lines, line);)
    if (line.find(" Conv ") != std::string::npos) {
      CHECK(line.size() <= 100);
      names.insert(line.substr(0, 34));
    }
  CHECK(names.size() == 20);
}

TEST_CASE("names are shortened from the left, where they differ", "[profile][text]") {
  const auto both = text::shortened({"short", "a/path/to/a/node_1", "a/path/to/a/node_2", "a/path/to/a/node_1"}, 10);
  CHECK(both == std::vector<std::string>{"short", "..a/node_1", "..a/node_2", "..a/node_1"});
  // What differs may stand at the beginning or in the middle.
  const auto apart = text::shortened({"layer.1.attention.output.dense", "layer.2.attention.output.dense"}, 16);
  CHECK(apart[0] != apart[1]);
  CHECK_THAT(apart[0], Catch::StartsWith("..1.") && Catch::EndsWith(".dense"));
  for (const std::string& name : apart) CHECK(name.size() == 16);
  // Alike wherever they are cut.
  const std::string filler(40, 'x');
  const auto hard = text::shortened({filler + "a" + filler, filler + "b" + filler, filler + filler + "x"}, 12);
  CHECK(std::set<std::string>(hard.begin(), hard.end()).size() == 3);
}

TEST_CASE("the CSV has one row per event that reads back", "[profile][csv]") {
  const profile_report report = sample_report();
  std::ostringstream out;
  write_csv(out, report);
  const auto records = text::csv_records(out.str());
  REQUIRE(records.size() == report.events.size() + 1);
  std::map<std::string, std::size_t> column;
  for (std::size_t i = 0; i < records[0].size(); ++i) column[records[0][i]] = i;
  for (std::size_t r = 1; r < records.size(); ++r) {
    const auto& row = records[r];
    const kernel_event& event = report.events[r - 1];
    REQUIRE(row.size() == records[0].size());
    CHECK(row[column["name"]] == report.launches[event.launch].name);
    CHECK(std::stod(row[column["start_us"]]) * 1e3 ==
          Approx(static_cast<double>(event.start_ns - report.origin_ns)).margin(1));
    CHECK(std::stoll(row[column["device_end_ns"]]) == event.device_end_ns);
    CHECK(std::stod(row[column["queued_us"]]) <= std::stod(row[column["submit_us"]]));
  }
}

TEST_CASE("the CSV observer streams what the report holds", "[profile][csv]") {
  std::ostringstream out;
  {
    profiler profile;
    profile.add_observer(std::make_shared<csv_observer>(out, host_now_ns()));
    simulated_executor executor(profile);
    executor.run();
  }
  CHECK(text::csv_records(out.str()).size() == 1 + 7);
}

TEST_CASE("the Chrome trace is JSON whose events nest and whose arrows meet", "[profile][trace]") {
  const profile_report report = sample_report();
  std::ostringstream out;
  write_chrome_trace(out, report);
  const nlohmann::json trace = nlohmann::json::parse(out.str());
  std::map<std::pair<int, int>, std::vector<std::pair<double, double>>> tracks;
  std::set<std::size_t> starts, ends;
  std::size_t kernels = 0;
  for (const auto& e : trace.at("traceEvents")) {
    const std::string phase = e.at("ph");
    if (phase == "X") {
      tracks[{e.at("pid"), e.at("tid")}].emplace_back(e.at("ts"), e.at("ts").get<double>() + e.at("dur").get<double>());
      kernels += e.at("cat") == "kernel";
    }
    if (phase == "s") starts.insert(e.at("id").get<std::size_t>());
    if (phase == "f") ends.insert(e.at("id").get<std::size_t>());
  }
  CHECK(kernels == 20);
  CHECK(starts == ends);
  CHECK(starts.size() == 25);
  for (auto& [track, spans] : tracks) {
    std::sort(spans.begin(), spans.end());
    for (std::size_t i = 1; i < spans.size(); ++i) CHECK(spans[i].first >= spans[i - 1].second - 0.0015);
  }
}

TEST_CASE("the JSON has the keys of the contract", "[profile][json]") {
  const profile_report report = sample_report();
  const nlohmann::json json = to_json(report);
  CHECK(json.at("e2e_ms").get<double>() > 0.0);
  CHECK(json.at("kernels") == 4);
  CHECK(json.at("dropped") == 0);
  CHECK(json.at("operators").size() == 5);
  CHECK(json.at("kernel_events").size() == 4 * 5);
  for (const auto& event : json.at("kernel_events")) {
    for (const char* key :
         {"run", "name", "ops", "queued_us", "submit_us", "start_us", "end_us", "gws", "lws", "bytes", "flops"})
      CHECK(event.contains(key));
    CHECK(event.at("ops").size() == 2);
    CHECK(event.at("start_us") <= event.at("end_us"));
  }
  for (const char* key : {"method", "offset_ns", "drift_ppm", "residual_p50_ns", "residual_p90_ns", "violations"})
    CHECK(json.at("clock").contains(key));
}
