// Execution orders: the networks' proven optima, brute force on random graphs, in-place storages, barriers, packing.
#include <catch2/catch.hpp>
#include <map>

#include "dnnopt/memory/order/exact_order.hpp"
#include "dnnopt/memory/order/schedule_memory.hpp"
#include "dnnopt/memory/plan_check.hpp"
#include "memory_data.hpp"

using namespace dnnopt::memory;

namespace {

order_graph graph_of(const std::string& name) {
  const auto document = memory_data::json_of(memory_data::folder() / "graphs" / (name + ".json"));
  std::vector<simple_operation> operations;
  for (const auto& node : document.at("nodes")) {
    operations.push_back(
        {node.at("inputs").get<std::vector<std::uint32_t>>(), node.at("out_bytes").get<std::int64_t>()});
  }
  return make_order_graph(operations);
}

/// The least peak over all orders, by dynamic programming over executed sets and by definition of liveness alone.
std::int64_t least_peak(const order_graph& graph) {
  const std::size_t count = graph.operations.size();
  std::vector<std::uint32_t> before(count, 0);
  std::vector<std::uint32_t> users(graph.bytes.size(), 0);
  for (std::size_t op = 0; op < count; ++op) {
    for (const auto other : graph.operations[op].after) before[op] |= 1U << other;
    for (const auto storage : graph.operations[op].storages) users[storage] |= 1U << op;
  }
  constexpr std::int64_t never = std::numeric_limits<std::int64_t>::max();
  std::vector<std::int64_t> least(std::size_t{1} << count, never);
  least[0] = 0;
  for (std::uint32_t set = 0; set + 1 < least.size(); ++set) {
    if (least[set] == never) continue;
    for (std::uint32_t op = 0; op < count; ++op) {
      const std::uint32_t bit = 1U << op;
      if ((set & bit) != 0 || (before[op] & ~set) != 0) continue;
      std::int64_t live = 0;
      const auto alive = [&](std::size_t s) { return (users[s] & (set | bit)) != 0 && (users[s] & ~set) != 0; };
      for (std::size_t s = 0; s < users.size(); ++s) live += alive(s) ? graph.bytes[s] : 0;
      std::vector<std::uint32_t> used;
      for (const auto pair : graph.operations[op].in_place) {
        const bool dies = (users[pair.from] & set) != 0 && (users[pair.from] & ~(set | bit)) == 0;
        const bool born = (users[pair.to] & set) == 0;
        const bool taken =
            std::count(used.begin(), used.end(), pair.from) + std::count(used.begin(), used.end(), pair.to) > 0;
        if (!dies || !born || taken || graph.bytes[pair.from] != graph.bytes[pair.to]) continue;
        used.push_back(pair.from);
        used.push_back(pair.to);
        live -= graph.bytes[pair.to];
      }
      least[set | bit] = std::min(least[set | bit], std::max(least[set], live));
    }
  }
  return least.back();
}

/// A random graph of one output per operation; with `aliases` some outputs are views and some operations may write in
/// place.
order_graph random_graph(std::size_t count, unsigned seed, bool aliases) {
  std::mt19937 random(seed);
  std::vector<simple_operation> operations(count);
  const auto density = 1 + random() % 3;
  for (std::uint32_t op = 0; op < count; ++op) {
    operations[op].out_bytes = 1 + static_cast<std::int64_t>(random() % (aliases ? 4 : 20));
    for (std::uint32_t k = 0; k < density && op > 0; ++k) {
      const auto input = static_cast<std::uint32_t>(random() % op);
      auto& inputs = operations[op].inputs;
      if (std::find(inputs.begin(), inputs.end(), input) == inputs.end() && random() % 4 != 0) inputs.push_back(input);
    }
  }
  auto graph = make_order_graph(operations);
  if (!aliases) return graph;
  for (std::uint32_t op = 0; op < count; ++op) {
    auto& operation = graph.operations[op];
    if (operation.after.empty()) continue;
    const std::uint32_t input = operation.after[random() % operation.after.size()];
    if (random() % 4 == 0) {  // the output is a view of the input's storage
      for (auto& other : graph.operations) {
        for (auto& storage : other.storages)
          storage = storage == op ? graph.operations[input].storages.back() : storage;
        std::vector<std::uint32_t> once;
        for (const auto storage : other.storages) {
          if (std::find(once.begin(), once.end(), storage) == once.end()) once.push_back(storage);
        }
        other.storages = once;
        other.in_place.clear();
      }
    }
  }
  for (auto& operation : graph.operations) {
    for (const auto from : operation.storages) {
      for (const auto to : operation.storages) {
        if (from != to && random() % 2 == 0) operation.in_place.push_back({from, to});
      }
    }
  }
  validate(graph);
  return graph;
}

const std::map<std::string, std::pair<std::int64_t, std::vector<std::int64_t>>> networks{
    {"amoebanet_cifar_n6_f36", {1474560, {1622016, 1916928, 2064384, 1806336, 1622016}}},
    {"amoebanet_imagenet_n4_f12.5", {4741632, {5092864, 7651840, 5218304, 5130496, 6033664}}},
    {"darts_cifar_n6_f36", {1622016, {2064384, 2211840, 2064384, 2396160, 1769472}}},
    {"darts_imagenet_n4_f12", {4616192, {5318656, 4816896, 5218304, 5117952, 4716544}}},
    {"densenet121", {7225344, {7225344, 7225344, 7225344, 7225344, 7225344}}},
    {"inception_v3", {8297856, {8297856, 8297856, 8297856, 8297856, 8297856}}},
    {"mobilenet_v1", {4816896, {4816896, 4816896, 4816896, 4816896, 4816896}}},
    {"mobilenet_v2", {6021120, {6021120, 6021120, 6021120, 6021120, 6021120}}},
    {"nasnet_cifar_n6_f32", {2031616, {2621440, 2883584, 2752512, 2686976, 2228224}}},
    {"nasnet_imagenet_n4_f11", {4591104, {5143040, 8354304, 5218304, 5281024, 5419008}}},
    {"pnas_cifar_n3_f44", {2342912, {3063808, 3063808, 3108864, 3649536, 2568192}}},
    {"randwire_ws32_4_75_c78_seed0", {3669120, {6359808, 6849024, 4647552, 5625984, 5381376}}},
    {"randwire_ws32_4_75_c78_seed1", {3424512, {3669120, 4402944, 4402944, 3669120, 3913728}}},
    {"randwire_ws32_4_75_c78_seed2", {3913728, {5625984, 6849024, 5381376, 4892160, 5625984}}},
    {"randwire_ws32_4_75_c78_seed3", {4647552, {6115200, 6849024, 6115200, 5625984, 6115200}}},
    {"randwire_ws32_4_75_c78_seed4", {3179904, {4402944, 4892160, 4402944, 3913728, 4402944}}},
    {"resnet50", {9633792, {9633792, 9633792, 9633792, 9633792, 9633792}}},
};

}  // namespace

TEST_CASE("all networks reach their proven optimum, order and arena", "[memory]") {
  for (const auto& [name, expected] : networks) {
    INFO(name);
    const auto graph = graph_of(name);
    for (std::size_t k = 0; k < 5; ++k) {
      const auto order = order_by(graph, static_cast<order_strategy>(k));
      CHECK(is_execution_order(graph, order));
      CHECK(cost_of_order(graph, order).peak == expected.second[k]);
    }
    schedule_options options;
    options.budget = 120.0;
    const auto plan = plan_schedule(graph, options);
    CHECK(is_execution_order(graph, plan.order.order));
    CHECK(plan.order.peak == expected.first);
    CHECK(plan.order.proved);
    CHECK(plan.offsets.bytes == expected.first);
    CHECK(plan.proved);
    CHECK_NOTHROW(check_plan(plan.records.usages, plan.offsets));
  }
}

TEST_CASE("400 random graphs: the search equals brute force", "[memory][property]") {
  std::size_t harder = 0;
  for (unsigned seed = 0; seed < 400; ++seed) {
    const auto graph = random_graph(3 + seed % 10, seed, false);
    const auto plan = plan_order(graph);
    INFO("seed " << seed);
    CHECK(is_execution_order(graph, plan.order));
    CHECK(plan.peak == least_peak(graph));
    CHECK(plan.proved);
    CHECK(cost_of_order(graph, plan.order).peak == plan.peak);
    harder += plan.states > 0 ? 1U : 0U;
  }
  CHECK(harder > 50);
}

TEST_CASE("random graphs with views and in-place operations: the search equals brute force", "[memory][property]") {
  std::size_t in_place = 0;
  for (unsigned seed = 0; seed < 300; ++seed) {
    const auto graph = random_graph(3 + seed % 8, seed + 5000, true);
    const auto plan = plan_order(graph);
    INFO("seed " << seed);
    CHECK(is_execution_order(graph, plan.order));
    CHECK(plan.peak == least_peak(graph));
    CHECK(plan.proved);
    const auto records = usages_of_order(graph, plan.order);
    in_place += records.usages.size() < graph.bytes.size() ? 1U : 0U;
    auto packed = plan_offsets_exactly(records.usages);
    CHECK_NOTHROW(check_plan(records.usages, packed));
    CHECK(packed.bytes >= plan.peak);
  }
  CHECK(in_place > 50);
}

TEST_CASE("random lifetimes with views and in-place operations: nothing alive is overwritten", "[memory][property]") {
  std::size_t shared = 0;
  for (unsigned seed = 0; seed < 150; ++seed) {
    INFO("seed " << seed);
    const auto graph = random_graph(6 + seed % 20, seed, true);
    schedule_options options;
    options.budget = 5.0;
    options.alignment = seed % 3 == 0 ? 4 : 1;
    const auto plan = plan_schedule(graph, options);
    check_plan(plan.records.usages, plan.offsets);
    // Memory as it would be: operations find what they read as it was left, then write what is new.
    std::vector<std::uint32_t> memory(static_cast<std::size_t>(plan.offsets.bytes), 0);
    std::vector<bool> written(graph.bytes.size(), false);
    std::vector<std::uint32_t> records(plan.records.usages.size(), 0);
    for (std::uint32_t s = 0; s < graph.bytes.size(); ++s)
      shared += ++records[plan.records.record_of_storage[s]] == 2 ? 1U : 0U;
    const auto region = [&](std::uint32_t storage, auto&& visit) {
      const auto begin = static_cast<std::size_t>(plan.offsets.offsets[plan.records.record_of_storage[storage]]);
      for (std::size_t i = 0; i < static_cast<std::size_t>(graph.bytes[storage]); ++i) visit(memory.at(begin + i));
    };
    for (const std::uint32_t op : plan.order.order) {
      for (const std::uint32_t storage : graph.operations[op].storages)
        if (written[storage]) region(storage, [&](std::uint32_t held) { REQUIRE(held == storage + 1); });
      for (const std::uint32_t storage : graph.operations[op].storages) {
        if (written[storage]) continue;
        written[storage] = true;
        region(storage, [&](std::uint32_t& held) { held = storage + 1; });
      }
    }
  }
  CHECK(shared > 100);
}

TEST_CASE("redrawn orders are orders of no larger peak", "[memory][property]") {
  std::size_t different = 0;
  for (unsigned seed = 0; seed < 60; ++seed) {
    const auto graph = random_graph(12, seed + 900, seed % 2 == 1);
    const auto first = plan_order(graph);
    order_options options;
    options.enough = first.peak;
    for (options.seed = 1; options.seed < 4; ++options.seed) {
      const auto next = plan_order(graph, options);
      INFO("seed " << seed);
      CHECK(is_execution_order(graph, next.order));
      CHECK(next.peak <= first.peak);
      CHECK(next.lower_bound <= first.lower_bound);
      different += next.order != first.order ? 1U : 0U;
    }
    schedule_options limits;
    limits.budget = 0.05;
    limits.alignment = 1 + seed % 3;
    const auto plan = plan_schedule(graph, limits);
    CHECK(is_execution_order(graph, plan.order.order));
    CHECK_NOTHROW(check_plan(plan.records.usages, plan.offsets));
    CHECK(plan.offsets.bytes >= plan.order.lower_bound);
  }
  CHECK(different > 60);
}

TEST_CASE("views keep a storage alive; an in-place chain is one record", "[memory]") {
  // 0 -> 1 -> 2 -> 3, where 1 may write over 0's output and 2 over 1's.
  std::vector<simple_operation> chain{{{}, 0}, {{0}, 8}, {{1}, 8}, {{2}, 8}, {{3}, 0}};
  auto graph = make_order_graph(chain);
  const std::vector<std::uint32_t> order{0, 1, 2, 3, 4};
  CHECK(cost_of_order(graph, order).peak == 16);
  graph.operations[2].in_place = {{1, 2}};
  graph.operations[3].in_place = {{2, 3}};
  const auto records = usages_of_order(graph, order);
  CHECK(cost_of_order(graph, order).peak == 8);
  CHECK(records.record_of_storage[1] == records.record_of_storage[3]);
  CHECK(records.usages[records.record_of_storage[1]] == buffer_usage{1, 5, 8, 1});
  // A second reader of storage 1 after operation 2 forbids writing over it.
  graph.operations[4].storages.push_back(1);
  CHECK(cost_of_order(graph, order).peak == 16);
}

TEST_CASE("a limit ends the search early, a barrier splits the order", "[memory]") {
  const auto graph = graph_of("randwire_ws32_4_75_c78_seed4");
  order_options options;
  options.enough = 3700000;
  const auto plan = plan_order(graph, options);
  CHECK(plan.peak <= options.enough);
  CHECK(plan.lower_bound <= 3179904);
  auto split = graph;
  add_barrier(split, 200);
  validate(split);
  const auto barred = plan_order(split);
  CHECK(is_execution_order(split, barred.order));
  CHECK(barred.peak >= 3179904);
  for (std::size_t step = 0; step < barred.order.size(); ++step) CHECK((barred.order[step] < 200) == (step < 200));
}

TEST_CASE("one order for several bindings of the symbols", "[memory]") {
  // Two independent branches into one sum; which of them should run first depends on the binding.
  const std::vector<simple_operation> operations{{{}, 0},  {{0}, 10},   {{1}, 1}, {{0}, 10},
                                                 {{3}, 2}, {{2, 4}, 1}, {{5}, 0}};
  const auto graph = make_order_graph(operations);
  auto wide = graph.bytes;
  wide[3] = 40;
  const std::vector<std::vector<std::int64_t>> scenarios{graph.bytes, wide};
  const auto plan = plan_order_for_scenarios(graph, scenarios);
  CHECK(is_execution_order(graph, plan.order));
  auto second = graph;
  second.bytes = wide;
  CHECK(cost_of_order(graph, plan.order).peak <= 2 * least_peak(graph));
  CHECK(cost_of_order(second, plan.order).peak == least_peak(second));
  CHECK_THROWS_AS(plan_order_for_scenarios(graph, {}), dnnopt::error);
}

TEST_CASE("order graphs are checked", "[memory]") {
  order_graph cycle{{4, 4}, {{{1}, {0}, {}}, {{0}, {1}, {}}}};
  CHECK_THROWS_AS(validate(cycle), dnnopt::error);
  order_graph twice{{4}, {{{}, {0, 0}, {}}}};
  CHECK_THROWS_AS(validate(twice), dnnopt::error);
  order_graph far{{4}, {{{3}, {0}, {}}}};
  CHECK_THROWS_AS(validate(far), dnnopt::error);
  order_graph pair{{4, 4}, {{{}, {0}, {{0, 1}}}}};
  CHECK_THROWS_AS(validate(pair), dnnopt::error);
  CHECK(plan_order(order_graph{}).peak == 0);
  CHECK(plan_schedule(order_graph{}).offsets.bytes == 0);
}
