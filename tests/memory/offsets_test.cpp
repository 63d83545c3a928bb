// Offsets in one arena: published cases of every heuristic, the exact search against brute force, properties.
#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <numeric>

#include "dnnopt/memory/plan.hpp"
#include "dnnopt/memory/plan_check.hpp"
#include "memory_data.hpp"

using namespace dnnopt::memory;

namespace {

offset_plan planned(const std::vector<buffer_usage>& usages, offset_strategy strategy, double budget = 20.0,
                    std::int64_t alignment = 1) {
  offset_options options;
  options.strategy = strategy;
  options.budget = budget;
  options.alignment = alignment;
  const auto plan = plan_offsets(usages, options);
  check_plan(with_alignment(usages, alignment), plan);
  return plan;
}

/// The least arena by trying every order of buffers, each at its lowest free offset: every left-justified layout is
/// made by some order.
std::int64_t least_arena(const std::vector<buffer_usage>& usages) {
  std::vector<std::uint32_t> order(usages.size());
  std::iota(order.begin(), order.end(), 0U);
  std::int64_t best = std::numeric_limits<std::int64_t>::max();
  gap_placer placer;
  std::vector<std::int64_t> offsets;
  do {
    best = std::min(best, placer.place(usages, order, gap_rule::first_fit, offsets));
  } while (std::next_permutation(order.begin(), order.end()));
  return best;
}

}  // namespace

TEST_CASE("offsets equal TensorFlow Lite's unit tests", "[memory]") {
  std::size_t rows = 0;
  const auto document = memory_data::json_of(memory_data::folder() / "tflite_cases.json");
  for (const auto& test : document.at("cases")) {
    if (test.at("dim") != 1) continue;
    const auto usages = usages_from_json(test).usages;
    for (const auto& [name, expected] : test.at("expected_offsets").items()) {
      INFO(test.at("name"));
      REQUIRE(name == "GREEDY_BY_SIZE");
      const auto plan = planned(usages, offset_strategy::greedy_by_size, 1.0, test.value("base_addr_align_bytes", 1));
      CHECK(plan.offsets == expected.at("offsets").get<std::vector<std::int64_t>>());
      CHECK(plan.bytes == expected.at("total_size").get<std::int64_t>());
      ++rows;
    }
  }
  CHECK(rows == 5);
}

TEST_CASE("the offsets of Pisarchyk and Lee's example", "[memory]") {
  const std::vector<buffer_usage> usages{usage_of_tasks(32, 0, 1), usage_of_tasks(28, 1, 4), usage_of_tasks(36, 2, 5),
                                         usage_of_tasks(16, 3, 5), usage_of_tasks(8, 4, 5),  usage_of_tasks(64, 5, 7),
                                         usage_of_tasks(10, 6, 8), usage_of_tasks(40, 7, 8)};
  const auto plan = planned(usages, offset_strategy::greedy_by_size);
  CHECK(plan.offsets == std::vector<std::int64_t>{0, 32, 64, 100, 116, 0, 104, 64});
  CHECK(plan.bytes == 124);
  CHECK(planned(usages, offset_strategy::greedy_by_breadth).bytes == 124);
  CHECK(planned(usages, offset_strategy::exact).proved);
}

TEST_CASE("XLA's heap simulator totals", "[memory]") {
  const std::vector<buffer_usage> all{{0, 5, 10}, {0, 5, 30}, {0, 5, 20}, {0, 5, 40}};
  CHECK(planned(all, offset_strategy::best_fit).offsets == std::vector<std::int64_t>{90, 40, 70, 0});
  const std::vector<buffer_usage> aligned{{0, 3, 10}, {1, 5, 20}, {2, 5, 50}, {3, 5, 40}};
  CHECK(planned(aligned, offset_strategy::best_fit, 1.0, 20).bytes == 120);
  const std::vector<buffer_usage> gaps{{0, 3, 10}, {1, 6, 20}, {2, 6, 40}, {3, 6, 30}, {4, 6, 50}};
  CHECK(planned(gaps, offset_strategy::best_fit).offsets == std::vector<std::int64_t>{90, 120, 50, 90, 0});
}

TEST_CASE("TVM's conflict graphs and interval cases", "[memory]") {
  const auto document = memory_data::json_of(memory_data::folder() / "tvm_usmp_cases.json");
  const std::map<std::string, conflict_strategy> names{{"greedy_by_size", conflict_strategy::greedy_by_size},
                                                       {"greedy_by_conflicts", conflict_strategy::greedy_by_conflicts},
                                                       {"hill_climb", conflict_strategy::hill_climb}};
  std::size_t rows = 0;
  for (const auto& test : document.at("conflict_graph_cases")) {
    std::vector<conflicting_buffer> buffers;
    for (std::size_t i = 0; i < test.at("sizes").size(); ++i) {
      buffers.push_back({test.at("sizes")[i].get<std::int64_t>(), test.at("alignment").get<std::int64_t>(),
                         test.at("conflicts")[i].get<std::vector<std::uint32_t>>()});
    }
    auto capacities = test.at("pools").get<std::vector<std::int64_t>>();
    for (auto& capacity : capacities) capacity = capacity < 0 ? unbounded : capacity;
    for (const auto& [name, expected] : test.at("expected").items()) {
      INFO(test.at("name") << " " << name);
      const auto plan = plan_pools(buffers, capacities, names.at(name), test.at("memory_pressure").get<std::int64_t>());
      CHECK(plan.pool_bytes == expected.get<std::vector<std::int64_t>>());
      ++rows;
    }
  }
  CHECK(rows == 12);
  for (const auto& test : document.at("intervals")) {
    std::vector<buffer_usage> usages;
    for (const auto& interval : test.at("intervals_inclusive")) {
      usages.push_back(usage_of_tasks(interval[2], interval[0], interval[1]));
    }
    INFO(test.at("name"));
    const auto bound = test.at("lower_bound").get<std::int64_t>();
    CHECK(largest_live_sum(usages) == bound);
    CHECK(static_cast<double>(planned(usages, offset_strategy::hill_climb).bytes) < 1.05 * static_cast<double>(bound));
    CHECK(planned(usages, offset_strategy::exact).bytes == bound);
  }
}

TEST_CASE("equal buffers keep the order of names; a buffer that fits no pool is named", "[memory]") {
  const std::vector<conflicting_buffer> three{{10, 1, {1, 2}}, {10, 1, {2, 0}}, {10, 1, {0, 1}}};
  const std::vector<std::int64_t> open{unbounded};
  const std::vector<std::int64_t> closed{10};
  for (const auto strategy : {conflict_strategy::greedy_by_size, conflict_strategy::greedy_by_conflicts}) {
    CHECK(plan_pools(three, open, strategy).offsets == std::vector<std::int64_t>{20, 10, 0});
    CHECK_THROWS_AS(plan_pools(three, closed, strategy), dnnopt::error);
  }
}

TEST_CASE("the exact search equals brute force", "[memory][property]") {
  for (unsigned seed = 0; seed < 250; ++seed) {
    const auto usages = memory_data::random_usages(4 + seed % 4, 3 + seed % 6, 9, seed);
    INFO("seed " << seed);
    const auto plan = planned(usages, offset_strategy::exact);
    CHECK(plan.bytes == least_arena(usages));
    CHECK(plan.proved);
  }
}

TEST_CASE("the exact search proves optima above the largest live sum", "[memory]") {
  // Rare among small random records: about one in 10^5. These were found by searching seeds.
  struct {
    std::size_t count;
    std::int64_t times;
    std::int64_t largest;
    unsigned seed;
  } const cases[] = {{8, 7, 2, 32390}, {8, 8, 3, 10042}, {9, 8, 3, 99}, {9, 8, 3, 19597}};
  for (const auto& c : cases) {
    const auto usages = memory_data::random_usages(c.count, c.times, c.largest, c.seed);
    const auto plan = planned(usages, offset_strategy::exact);
    CHECK(plan.proved);
    CHECK(plan.bytes == plan.lower_bound);
    CHECK(plan.bytes > largest_live_sum(usages));
    CHECK(plan.bytes == least_arena(usages));
  }
}

TEST_CASE("aligned plans are exact up to the rounding of one buffer", "[memory][property]") {
  for (unsigned seed = 0; seed < 120; ++seed) {
    const auto usages = memory_data::random_usages(4 + seed % 3, 3 + seed % 6, 40, seed, true);
    INFO("seed " << seed);
    const auto plan = planned(usages, offset_strategy::exact, 0.5);
    const auto least = least_arena(usages);
    CHECK(plan.bytes >= least);
    CHECK(plan.lower_bound <= least);
    if (plan.proved) CHECK(plan.bytes == least);
    std::int64_t common = 0;
    for (const auto& usage : usages) common = std::gcd(common, usage.alignment);
    CHECK(plan.bytes < least + std::max<std::int64_t>(common, 1));
  }
}

TEST_CASE("every strategy holds on random records", "[memory][property]") {
  for (unsigned seed = 0; seed < 40; ++seed) {
    auto usages = memory_data::random_usages(1 + seed, 6 + seed % 20, 50, seed, seed % 2 == 1);
    if (seed % 5 == 0) usages.front().size = 0;
    for (const auto& [strategy, name] : offset_strategies) {
      INFO("seed " << seed << " " << name);
      const auto plan = planned(usages, strategy, 0.02, seed % 3 == 0 ? 4 : 1);
      CHECK(plan.strategy == name);
      CHECK(find_offset_strategy(name) == strategy);
    }
  }
  for (const auto& [strategy, name] : offset_strategies) {
    CHECK(planned({}, strategy).bytes == 0);
    CHECK(planned({{0, 1, 0}}, strategy).bytes == 0);
    CHECK(planned({{3, 4, 7}}, strategy).bytes == 7);
  }
}

TEST_CASE("MiniMalloc's small and hard sets are solved and proved", "[memory]") {
  for (const auto& path : memory_data::files("minimalloc/small")) {
    const auto usages = read_usages(memory_data::text_of(path)).usages;
    const std::string name = path.filename().string();
    const auto plan = planned(usages, offset_strategy::exact);
    INFO(name);
    CHECK(plan.proved);
    CHECK(plan.bytes <= std::stoll(name.substr(2)));
  }
  for (const char* name : {"A", "B", "C", "E", "F", "G", "H", "I", "K"}) {
    INFO(name);
    auto usages = memory_data::csv("minimalloc/" + std::string(name) + ".1048576.csv").usages;
    const auto plan = planned(usages, offset_strategy::exact, 60.0);
    CHECK(plan.bytes == largest_live_sum(usages));
    CHECK(plan.proved);
    for (auto& usage : usages) usage = {-usage.upper, -usage.lower, usage.size, usage.alignment};
    std::mt19937 random(7);
    std::shuffle(usages.begin(), usages.end(), random);
    CHECK(planned(usages, offset_strategy::exact, 60.0).proved);
  }
}

TEST_CASE("the optimum of MiniMalloc's D is its largest live sum", "[memory]") {
  const auto usages = memory_data::csv("minimalloc/D.1048576.csv").usages;
  const auto witness = memory_data::csv("plans/D.986112.csv");
  CHECK(witness.usages == usages);
  CHECK_FALSE(find_offset_fault(usages, witness.offsets, 986112));
  CHECK(largest_live_sum(usages) == 986112);
}

TEST_CASE("large records are planned near their bounds", "[memory]") {
  const auto ratio = [](const char* name) {
    const auto usages = memory_data::csv("large/" + std::string(name) + ".csv").usages;
    return static_cast<double>(planned(usages, offset_strategy::quick).bytes) /
           static_cast<double>(largest_live_sum(usages));
  };
  CHECK(ratio("G_1") == 1.0);
  CHECK(ratio("Y_1") <= 1.0036);
  CHECK(ratio("S_1") <= 1.0139);
  CHECK(ratio("pangu_2.6B") <= 1.0076);
  CHECK(planned(memory_data::csv("large/resnet50.csv").usages, offset_strategy::exact).bytes == 1515472556);
}

TEST_CASE("capacity ends the exact search; threads agree; an unreachable capacity is no error", "[memory]") {
  const auto usages = memory_data::csv("minimalloc/D.1048576.csv").usages;
  offset_options options;
  options.capacity = 1100000;
  options.budget = 60.0;
  const auto roomy = plan_offsets(usages, options);
  CHECK(roomy.bytes <= options.capacity);
  options.threads = 2;
  options.capacity = 1048576;
  const auto tight = plan_offsets(usages, options);
  CHECK(tight.bytes <= options.capacity);
  CHECK_NOTHROW(check_plan(usages, tight));
  const std::vector<buffer_usage> two{{0, 2, 10}, {1, 3, 10}};
  options.capacity = 15;
  CHECK(plan_offsets(two, options).bytes == 20);
  CHECK(plan_offsets(two, options).proved);
}

TEST_CASE("the quick planner reuses its scratch", "[memory]") {
  quick_planner planner;
  std::vector<std::int64_t> offsets;
  for (unsigned seed = 0; seed < 30; ++seed) {
    const auto usages = memory_data::random_usages(10 + 7 * (seed % 9), 30, 64, seed, seed % 2 == 0);
    const auto bytes = planner.plan(usages, offsets);
    CHECK_FALSE(find_offset_fault(usages, offsets, bytes));
    CHECK(bytes == plan_offsets(usages, {offset_strategy::quick}).bytes);
  }
}
