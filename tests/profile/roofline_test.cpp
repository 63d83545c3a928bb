// Launches beneath the device's ceilings: which one bounds them, by how much, and what table and JSON tell.
#include <catch2/catch.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include <dnnopt/backend/measure/profiled_run.hpp>
#include <dnnopt/backend/run/executor.hpp>
#include <dnnopt/dnnopt.hpp>
#include <dnnopt/profile/report/report_json.hpp>
#include <dnnopt/profile/report/roofline.hpp>
#include <dnnopt/profile/report/table.hpp>

#include "../support/small_network.hpp"

using namespace dnnopt::profile;

namespace {

statistic_row row(std::string name, double us, double flops, double bytes, double calls = 1) {
  statistic_row made;
  made.name = std::move(name);
  made.type = "Op";
  made.count = 4;
  made.calls = calls;
  made.mean_ns = us * 1e3;
  made.total_ns = made.mean_ns * calls;
  made.flops = flops;
  made.bytes = bytes;
  made.flops_per_second = flops / us * 1e6;
  made.bytes_per_second = bytes / us * 1e6;
  return made;
}

/// 1 TFLOP/s and 100 GB/s: the ridge is at 10 FLOP per byte.
profile_report report_of(std::vector<statistic_row> rows) {
  profile_report report;
  report.by_kernel = std::move(rows);
  report.ceilings = {1e12, 80e9, 100e9};
  return report;
}

}  // namespace

TEST_CASE("the nearer ceiling is the one whose time is longer", "[profile][roofline]") {
  const profile_report report = report_of({
      row("product", 40, 20e6, 1e6, 2),  // 20 us of arithmetic, 10 us of bytes
      row("addition", 20, 0, 1e6),       // 10 us of bytes
      row("narrow", 50, 1e6, 1e6),       // 1 us and 10 us
      row("cached", 5, 0, 1e6),          // faster than copies
      row("host", 3, 0, 0),
  });
  CHECK(report.ceilings.bandwidth() == Approx(100e9));
  CHECK(report.ceilings.ridge() == Approx(10));
  const roofline roof = roofline_of(report);
  REQUIRE(roof.rows.size() == 5);
  CHECK(roof.measured());
  const auto is = [&](std::size_t i, ceiling nearest, double share, double least_us) {
    CHECK(roof.rows[i].nearest == nearest);
    CHECK(roof.rows[i].share == Approx(share));
    CHECK(roof.rows[i].least_ns == Approx(least_us * 1e3));
  };
  is(0, ceiling::arithmetic, 0.5, 20);
  is(1, ceiling::bandwidth, 0.5, 10);
  is(2, ceiling::bandwidth, 0.2, 10);
  is(3, ceiling::bandwidth, 2.0, 10);
  is(4, ceiling::none, 0.0, 0);
  // Per inference, and without the row that has no ceiling.
  CHECK(roof.time_ns == Approx((2 * 40 + 20 + 50 + 5) * 1e3));
  CHECK(roof.least_ns == Approx((2 * 20 + 10 + 10 + 10) * 1e3));
  CHECK(roof.share() == Approx(70.0 / 155.0));
}

TEST_CASE("a share of the roof is the achieved rate over the attainable one", "[profile][roofline]") {
  // Williams et al. state it as performance = min(peak, intensity * bandwidth).
  const std::vector<std::pair<double, double>> work{{1e6, 1e6}, {1e7, 1e6}, {5e7, 1e6}, {1e9, 3e6}};
  for (const auto& [flops, bytes] : work) {
    const roofline roof = roofline_of(report_of({row("k", 123, flops, bytes)}));
    const double attainable = std::min(1e12, flops / bytes * 100e9);
    CHECK(roof.rows[0].share == Approx(roof.rows[0].flops_per_second / attainable));
    CHECK((roof.rows[0].nearest == ceiling::arithmetic) == (flops / bytes > 10 * (1 + 1e-9)));
  }
}

TEST_CASE("without measured ceilings nothing is near one", "[profile][roofline]") {
  profile_report report = report_of({row("product", 40, 20e6, 1e6)});
  report.ceilings = {};
  const roofline roof = roofline_of(report);
  CHECK_FALSE(roof.measured());
  CHECK(roof.rows.at(0).nearest == ceiling::none);
  CHECK(roof.share() == 0.0);
  CHECK_FALSE(to_json(report).contains("roofline"));
  // One ceiling alone bounds what it can.
  report.ceilings = {0, 100e9, 0};
  CHECK(roofline_of(report).rows.at(0).nearest == ceiling::bandwidth);
  report.ceilings = {1e12, 0, 0};
  CHECK(roofline_of(report).rows.at(0).nearest == ceiling::arithmetic);
}

TEST_CASE("the roofline's table and JSON hold every kernel; the profile's table stays", "[profile][roofline]") {
  std::vector<statistic_row> rows;
  for (int i = 0; i < 60; ++i) rows.push_back(row("kernel_" + std::to_string(i), 40 + i, 20e6, 1e6));
  rows.push_back(row("host", 3, 0, 0));
  const profile_report report = report_of(rows);
  const std::string table = to_table(roofline_of(report));
  for (const char* part : {"kernel_0 ", "kernel_59 ", "arithmetic 1.00TFLOP/s", "bandwidth 100GB/s", "ridge at 10.00",
                           "FLOPs", "bytes", "  arithmetic\n", "20.0M", "50.0", "would do at the ceilings"})
    CHECK_THAT(table, Catch::Contains(part));
  CHECK(to_table(report).find("roof") == std::string::npos);

  const nlohmann::json roof = to_json(report).at("roofline");
  CHECK(roof.at("flops_per_second") == 1e12);
  CHECK(roof.at("bytes_per_second") == 100e9);
  CHECK(roof.at("rows").size() == 61);
  const nlohmann::json& first = roof.at("rows")[0];
  CHECK(first.at("name") == "kernel_0");
  CHECK(first.at("ceiling") == "arithmetic");
  CHECK(first.at("share").get<double>() == Approx(0.5));
  CHECK(first.at("us").get<double>() == Approx(40));
  CHECK(first.at("least_us").get<double>() == Approx(20));
  for (const char* key : {"type", "calls", "flops", "bytes", "flops_per_second", "bytes_per_second"})
    CHECK(first.contains(key));
  CHECK(roof.at("rows")[60].at("share").is_null());
  CHECK(roof.at("rows")[60].at("ceiling").is_null());
}

TEST_CASE("a launch's bytes hold its packed weights, its FLOPs two for each multiply-add",
          "[profile][roofline][opencl]") {
  using namespace dnnopt;
  dnnopt::testing::network n;
  const value_id x = n.input("x", {32, 64});
  const model m = n.finish(n.node("MatMul", {x, n.weights({64, 256})}));
  session s = compile(m);
  const named_tensors inputs{{"x", dnnopt::testing::ramp({32, 64})}};
  profiler into;
  profiled_run observer(into, s.executor()->executed());
  for (int i = 0; i < 3; ++i) {
    observer.begin();
    (void)s.run(inputs, &observer);
    observer.end();
  }
  profile_report report = into.report();
  report.ceilings = {1e12, 100e9, 0};
  double flops = 0, bytes = 0;
  for (const roofline_row& one : roofline_of(report).rows) {
    flops += one.flops * one.calls;
    bytes += one.bytes * one.calls;
    CHECK(one.nearest != ceiling::none);
    CHECK(one.share > 0.0);
  }
  CHECK(flops == 2.0 * 32 * 64 * 256);
  CHECK(bytes >= 4.0 * (32 * 64 + 64 * 256 + 32 * 256));
  CHECK(bytes < 2 * 4.0 * (32 * 64 + 64 * 256 + 32 * 256));
}
