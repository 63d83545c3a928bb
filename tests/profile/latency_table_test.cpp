#include <string>
#include <vector>

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include <dnnopt/profile/report/compare.hpp>
#include <dnnopt/profile/report/latency_table.hpp>
#include <dnnopt/profile/report/latency_table_json.hpp>
#include <dnnopt/profile/report/report_json.hpp>

#include "simulated_executor.hpp"

using namespace dnnopt::profile;

namespace {

profile_report sample_report(std::size_t kernels = 6) {
  profiler profile;
  simulated_executor executor(profile, kernels);
  for (int i = 0; i < 50; ++i) executor.run();
  profile_report report = profile.report();
  report.device = "simulated";
  report.model = "toy";
  return report;
}

void check_equal(const latency_table& a, const latency_table& b) {
  REQUIRE(a.size() == b.size());
  for (const auto& [key, entry] : a.entries()) {
    const auto other = b.find(key);
    REQUIRE(other.has_value());
    CHECK(other->count == entry.count);
    CHECK(other->p50_ns == entry.p50_ns);
    CHECK(other->mean_ns == entry.mean_ns);
  }
  CHECK(a.launches.enqueue_ns == b.launches.enqueue_ns);
  CHECK(a.launches.epilogue_ns == b.launches.epilogue_ns);
  CHECK(a.launches.input_ns == b.launches.input_ns);
}

}  // namespace

TEST_CASE("an in-order queue's time is bound by the host or by its kernels", "[profile][latency]") {
  launch_model model{3000.0, 5000.0, 1000.0, 100.0, 200.0, 0.0};
  CHECK(model.predict({}) == Approx(300.0));
  CHECK(model.predict({10000.0}) == Approx(100 + 5000 + 10000 + 200));
  // Long kernels: one gap between each two.
  CHECK(model.predict({10000.0, 10000.0, 10000.0}) == Approx(100 + 5000 + 30000 + 2 * 1000 + 200));
  // Short kernels: the host's pace.
  CHECK(model.predict(std::vector<double>(10, 100.0)) == Approx(100 + 9 * 3000 + 5000 + 100 + 200));
  // Inputs under way hold up the first kernel, not the host.
  model.input_ns = 700.0;
  CHECK(model.predict({10000.0, 10000.0}) == Approx(100 + 5000 + 700 + 20000 + 1000 + 200));
  CHECK(model.predict(std::vector<double>(10, 100.0)) == Approx(100 + 9 * 3000 + 5000 + 100 + 200));
}

TEST_CASE("a table built from a profile predicts it", "[profile][latency]") {
  const profile_report report = sample_report();
  latency_table table;
  table.add(report);
  table.launches = measure_launch_model(report);
  CHECK(table.size() == 7);
  std::vector<latency_key> keys;
  for (const launch_info& info : report.launches)
    if (info.ops.size() == 2) keys.push_back(key_of(info, report.device));
  REQUIRE(keys.size() == 6);
  const auto prediction = table.predict(keys);
  CHECK(prediction.missing.empty());
  CHECK(prediction.e2e_ns == Approx(report.e2e.p50_ns).epsilon(0.1));
  CHECK(prediction.kernels_ns == Approx(4000.0 * 21).epsilon(0.03));
  keys.front().shapes = "unseen";
  CHECK(table.predict(keys).missing.size() == 1);
}

TEST_CASE("operator entries come of launches of one operator", "[profile][latency]") {
  const profile_report report = sample_report(2);
  latency_table table;
  table.add(report, latency_level::operator_);
  REQUIRE(table.size() == 1);
  CHECK(table.entries().begin()->first.operators == "Shape");
  CHECK(table.entries().begin()->first.level == latency_level::operator_);
}

TEST_CASE("tables survive CSV and JSON, and merge by count", "[profile][latency]") {
  latency_table table;
  table.add({latency_level::kernel, "Conv+Relu", "kernel=3x3, \"odd\"", "1x2", "buffer", "d"}, {3, 1.25, 1, 1.5, 2, 3});
  table.add({latency_level::operator_, "Conv", "", "", "", "d"}, {1, 10, 10, 10, 10, 10});
  table.launches = {1.5, 2.5, 3.5, 4.5, 5.5, 6.5};
  check_equal(table, latency_table_from_csv(to_csv(table)));
  check_equal(table, latency_table_from_json(nlohmann::json::parse(to_json(table).dump())));
  const latency_key key{latency_level::operator_, "Conv", "", "", "", "d"};
  table.add(key, {3, 30, 5, 30, 30, 50});
  CHECK(table.find(key)->mean_ns == 25.0);
  CHECK(table.find(key)->count == 4);
  CHECK(table.find(key)->min_ns == 5.0);
  CHECK(table.find(key)->max_ns == 50.0);
}

TEST_CASE("a malformed table names its record", "[profile][latency]") {
  const std::string header(latency_csv_header);
  CHECK_THROWS_WITH(latency_table_from_csv("a,b\n"), Catch::Contains("502"));
  CHECK_THROWS_WITH(latency_table_from_csv(header + "kernel,x\n"), Catch::Contains("record 2"));
  CHECK_THROWS_WITH(latency_table_from_csv(header + "kernel,x,,,,,1,2,3,four,5,6\n"),
                    Catch::Contains("p50_ns is 'four'"));
  CHECK_THROWS_WITH(latency_table_from_csv(header + "planet,x,,,,,1,2,3,4,5,6\n"), Catch::Contains("planet"));
  CHECK_THROWS_WITH(latency_table_from_csv(header + "launch,x,,,,,1,2,3,4,5,6\n"), Catch::Contains("launch model"));
  CHECK_THROWS_WITH(latency_table_from_csv(header + "kernel,x\xff,,,,,1,2,3,4,5,6\n"), Catch::Contains("not UTF-8"));
  CHECK_THROWS_AS(latency_table_from_json(nlohmann::json::parse("{\"entries\":[]}")), dnnopt::error);
}

TEST_CASE("two saved profiles tell what grew", "[profile][compare]") {
  const profile_report report = sample_report(4);
  const nlohmann::json before = to_json(report);
  nlohmann::json after = before;
  for (const char* list : {"operators", "kernel_rows"})
    for (auto& row : after[list])
      if (row["name"] == "Conv_1" || row["name"] == "conv_1")
        for (const char* key : {"avg_us", "total_us", "mean_low_us", "mean_high_us"})
          row[key] = row[key].get<double>() * 2.0;
  after["operators"].erase(after["operators"].size() - 1);
  const profile_comparison same = compare(saved_profile_from_json(before), saved_profile_from_json(before));
  for (const profile_change& change : same.operators) CHECK_FALSE(change.significant);
  const saved_profile a = saved_profile_from_json(before);
  const saved_profile b = saved_profile_from_json(after);
  const profile_comparison changed = compare(a, b);
  CHECK(changed.kernels.front().name == "conv_1");
  CHECK(changed.kernels.front().significant);
  CHECK(changed.kernels.front().after_ns == Approx(2.0 * changed.kernels.front().before_ns));
  CHECK(changed.operators.size() == same.operators.size());
  int gone = 0;
  for (const profile_change& change : changed.operators) gone += !change.in_after && change.significant;
  CHECK(gone == 1);
  const std::string table = to_table(changed, a, b);
  CHECK_THAT(table, Catch::Contains("gone") && Catch::Contains("conv_1") && Catch::Contains("2.000"));
  CHECK_THROWS_AS(saved_profile_from_json(nlohmann::json::parse("{}")), dnnopt::error);
}
