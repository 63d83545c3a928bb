// What a tuner may choose: each value of each parameter against the reference, tables, and a search.
#include "kernel_fixture.hpp"

#include <catch2/catch.hpp>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <initializer_list>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dnnopt/backend/measure/tuner.hpp>

using namespace dnnopt;
using namespace dnnopt::testing;

namespace {

tensor f32(dim_list dims, std::uint32_t seed) { return random_tensor(dtype::float32, std::move(dims), seed); }

attribute_map attributes(std::initializer_list<std::pair<const char*, attribute>> list) {
  attribute_map map;
  for (const auto& [name, held] : list) map.set(name, held);
  return map;
}

/// A case of each family; extents are odd, prime or beyond a block.
std::vector<std::pair<std::string, node_case>> cases_of_families() {
  std::vector<std::pair<std::string, node_case>> cases;
  cases.push_back({"matrix_tiles", {"MatMul", {f32({2, 7, 83}, 1), f32({83, 131}, 2)}, {}, {}, 1}});
  cases.push_back({"matrix_panels", {"MatMul", {f32({2, 37, 67}, 1), f32({67, 131}, 2)}, {false, true}, {}, 1}});
  cases.push_back({"convolution_shifts",
                   {"Conv",
                    {f32({1, 10, 11, 17}, 1), f32({14, 5, 3, 3}, 2), f32({14}, 3)},
                    {false, true, true},
                    attributes({{"pads", std::vector<std::int64_t>{1, 1, 1, 1}}, {"group", std::int64_t{2}}}),
                    1}});
  cases.push_back({"convolution_winograd",
                   {"Conv",
                    {f32({1, 19, 11, 17}, 1), f32({37, 19, 3, 3}, 2), f32({37}, 3)},
                    {false, true, true},
                    attributes({{"pads", std::vector<std::int64_t>{1, 1, 1, 1}}}),
                    1}});
  cases.push_back({"window_planes",
                   {"Conv",
                    {f32({1, 7, 23, 19}, 1), f32({7, 1, 3, 5}, 2), f32({7}, 3)},
                    {false, true, true},
                    attributes({{"pads", std::vector<std::int64_t>{1, 2, 1, 2}},
                                {"strides", std::vector<std::int64_t>{1, 2}},
                                {"group", std::int64_t{7}}}),
                    1}});
  cases.push_back({"row_groups", {"LayerNormalization", {f32({13, 132}, 1), f32({132}, 2)}, {}, {}, 1}});
  cases.push_back({"row_items", {"Softmax", {f32({13, 131}, 1)}, {}, {}, 1}});
  cases.push_back({"attention_tiles",
                   {"Attention", {f32({1, 3, 41, 7}, 1), f32({1, 3, 67, 7}, 2), f32({1, 3, 67, 13}, 3)}, {}, {}, 1}});
  cases.push_back({"attention_items",
                   {"Attention", {f32({1, 3, 41, 7}, 1), f32({1, 3, 67, 7}, 2), f32({1, 3, 67, 13}, 3)}, {}, {}, 1}});
  return cases;
}

/// A case of the family with sizes that `random` picks: one, odd, prime, powers of two and beyond.
node_case random_case(std::string_view family, std::mt19937& random) {
  const auto one_of = [&](std::initializer_list<std::int64_t> list) { return list.begin()[random() % list.size()]; };
  const auto extent = [&] { return one_of({1, 2, 3, 5, 7, 13, 16, 17, 31, 32, 33, 47, 64, 67, 97, 128, 131}); };
  const auto few = [&] { return one_of({1, 1, 2, 3}); };
  if (family == "matrix_tiles" || family == "matrix_panels") {
    const std::int64_t inner = extent();
    return {"MatMul",
            {f32({few(), extent(), inner}, 1), f32({inner, extent()}, 2)},
            {false, family == "matrix_panels"},
            {},
            1};
  }
  if (family == "convolution_shifts") {
    const std::int64_t groups = few();
    const std::int64_t channels = one_of({1, 2, 5, 16});
    const std::int64_t high = one_of({1, 2, 3});
    const std::int64_t pad = one_of({0, 1});
    return {"Conv",
            {f32({few(), groups * channels, high + one_of({0, 1, 6, 20}), 5 + one_of({0, 7, 15, 38})}, 1),
             f32({groups * one_of({1, 3, 8, 25}), channels, high, 3}, 2)},
            {false, true},
            attributes({{"pads", std::vector<std::int64_t>{pad, pad, pad, pad}},
                        {"strides", std::vector<std::int64_t>{one_of({1, 2}), one_of({1, 1, 2})}},
                        {"dilations", std::vector<std::int64_t>{1, one_of({1, 1, 2})}},
                        {"group", groups}}),
            1};
  }
  if (family == "convolution_winograd") {
    const std::int64_t channels = one_of({1, 3, 16, 21});
    const std::int64_t pad = one_of({0, 1});
    return {"Conv",
            {f32({few(), channels, 3 + one_of({0, 1, 6, 20}), 3 + one_of({0, 4, 11, 38})}, 1),
             f32({one_of({1, 3, 16, 37}), channels, 3, 3}, 2)},
            {false, true},
            attributes({{"pads", std::vector<std::int64_t>{pad, 1, pad, 0}}}),
            1};
  }
  if (family == "window_planes") {
    const std::int64_t channels = one_of({1, 2, 5, 8, 17});
    const std::int64_t high = one_of({1, 2, 3, 5});
    const std::int64_t wide = one_of({1, 3, 4, 7});
    const std::int64_t pad = one_of({0, 1});
    return {"Conv",
            {f32({few(), channels, high + one_of({0, 1, 6, 20}), wide + one_of({0, 1, 9, 30})}, 1),
             f32({channels, 1, high, wide}, 2), f32({channels}, 3)},
            {false, true, true},
            attributes({{"pads", std::vector<std::int64_t>{pad, pad, pad, pad}},
                        {"strides", std::vector<std::int64_t>{one_of({1, 2}), one_of({1, 2, 3})}},
                        {"group", channels}}),
            1};
  }
  if (family == "row_groups" || family == "row_items") {
    const std::int64_t length = one_of({1, 2, 15, 16, 33, 64, 127, 128, 300, 1031});
    if (random() % 2 == 0) return {"Softmax", {f32({extent(), length}, 1)}, {}, {}, 1};
    return {"LayerNormalization", {f32({extent(), length}, 1), f32({length}, 2)}, {}, {}, 1};
  }
  const std::int64_t heads = few();
  const std::int64_t size = one_of({1, 4, 7, 16, 32});
  const std::int64_t keys = extent();
  const std::int64_t batch = few();
  return {"Attention",
          {f32({batch, heads, extent(), size}, 1), f32({batch, heads, keys, size}, 2),
           f32({batch, heads, keys, one_of({1, 5, 16, 33})}, 3)},
          {},
          {},
          1};
}

bool for_groups(const std::string& family) {
  return family == "matrix_tiles" || family == "row_groups" || family == "attention_tiles";
}

}  // namespace

TEST_CASE_METHOD(kernel_bench, "each value of each tunable parameter gives the reference's result") {
  std::size_t families = 0;
  for (const auto& [family, c] : cases_of_families()) {
    const codegen::tuning_space* space = codegen::find_tuning_space(family);
    REQUIRE(space != nullptr);
    ++families;
    const std::vector<tensor> want = expect(c);
    const device_form form = for_groups(family) ? device_form::groups : device_form::vectors;
    const std::string shape = run(c, form, want).tuning.back();
    REQUIRE(shape.substr(0, shape.find(' ')) == family);
    for (std::size_t p = 0; p < space->count; ++p)
      for (const std::int64_t value : space->parameters[p].choices()) {
        // Those between take a simulator a minute.
        const std::span<const std::int64_t> all = space->parameters[p].choices();
        if (left_out(value != all.front() && value != all.back())) continue;
        std::vector<std::int64_t> values;
        for (std::size_t other = 0; other < space->count; ++other)
          values.push_back(space->parameters[other].values[space->parameters[other].count / 2]);
        values[p] = value;
        codegen::tuning_table table;
        table.set(shape, values);
        tuned = &table;
        const kernel_run got = run(c, form, want);
        tuned = nullptr;
        INFO(shape << ", " << space->parameters[p].name << " = " << value);
        CHECK(relative_difference(got.outputs[0], want[0]) <= tolerance_of(dtype::float32));
      }
  }
  // Those in matrix steps are tried in matrix_steps_test.cpp, with the steps that a test alone asks for.
  for (const codegen::tuning_space& space : codegen::tuning_spaces)
    families += space.family.ends_with("_steps") ? 1 : 0;
  CHECK(families == codegen::tuning_spaces.size());
}

// DNNOPT_TUNING_COMBINATIONS asks for another number than 200.
TEST_CASE_METHOD(kernel_bench, "combinations of tunable values give the reference's result on random shapes") {
  const char* const given = std::getenv("DNNOPT_TUNING_COMBINATIONS");
  const long combinations = given == nullptr ? 200 : std::strtol(given, nullptr, 10);
  constexpr std::uint32_t seed = 20260101;
  constexpr long per_shape = 4;
  std::printf("%ld combinations, seed %u\n", combinations, seed);
  std::mt19937 random(seed);
  long done = 0;
  long elsewhere = 0;
  while (done < combinations) {
    const codegen::tuning_space& space = codegen::tuning_spaces[random() % codegen::tuning_spaces.size()];
    if (space.family.ends_with("_steps")) continue;
    const node_case c = random_case(space.family, random);
    const std::vector<tensor> want = expect(c);
    const device_form form = for_groups(std::string(space.family)) ? device_form::groups : device_form::vectors;
    const kernel_run usual = run(c, form, want);
    const std::string shape = usual.tuning.empty() ? "" : usual.tuning.back();
    INFO(space.family << ": " << c.op << " of " << to_string(c.inputs[0].dims()) << ", shape class '" << shape << "'");
    CHECK(relative_difference(usual.outputs[0], want[0]) <= tolerance_of(dtype::float32));
    // Some sizes have kernels without anything to choose.
    if (shape.substr(0, shape.find(' ')) != space.family) {
      REQUIRE(++elsewhere < 20 + combinations);
      continue;
    }
    for (long i = 0; i < per_shape && done < combinations; ++i, ++done) {
      std::vector<std::int64_t> values;
      std::string listed;
      for (const codegen::tunable_parameter& parameter : space.choices()) {
        values.push_back(parameter.choices()[random() % parameter.count]);
        listed += std::string(parameter.name) + "=" + std::to_string(values.back()) + " ";
      }
      codegen::tuning_table table;
      table.set(shape, values);
      tuned = &table;
      const kernel_run got = run(c, form, want);
      tuned = nullptr;
      INFO("with " << listed);
      CHECK(relative_difference(got.outputs[0], want[0]) <= tolerance_of(dtype::float32));
    }
  }
  CHECK(done == combinations);
}

TEST_CASE("a tuning table takes values of its families alone") {
  codegen::tuning_table table;
  table.set("row_items 13 131", {4});
  REQUIRE(table.find("row_items 13 131") != nullptr);
  CHECK(*table.find("row_items 13 131") == std::vector<std::int64_t>{4});
  CHECK(table.find("row_items 13 132") == nullptr);
  CHECK_THROWS_AS(table.set("row_items 13 131", {5}), error);
  CHECK_THROWS_AS(table.set("row_items 13 131", {4, 4}), error);
  CHECK_THROWS_AS(table.set("unknown 13 131", {4}), error);
  table.erase("row_items 13 131");
  CHECK(table.rows().empty());
}

TEST_CASE_METHOD(kernel_bench, "a search stays within its budget and keeps only what was faster") {
  graph g;
  const value_id a = g.add_input("a", dtype::float32, shape{16, 24});
  const value_id b = g.add_constant("b", f32({24, 32}, 2));
  const value_id y = g.add_value("y", dtype::float32, shape{16, 32});
  const node_id n = g.add_node(ops().at("", "MatMul"), "n", {a, b}, {y});
  const std::vector<codegen::block_view> blocks{{g, {n}, {y}}, {g, {n}, {y}}};
  const device_info facts = info(device_form::vectors);
  tuner_options options;
  options.seconds = 2;
  std::vector<tuning_progress> seen;
  options.progress = [&](const tuning_progress& p) { seen.push_back(p); };
  kernel_tuner tuner(where(), options);
  codegen::tuning_table table;
  const tuning_result result = tuner.tune(blocks, codegen::default_lower_options(&facts), {}, table);
  REQUIRE(seen.size() == 1);
  CHECK(seen[0].shape.substr(0, 14) == "matrix_panels ");
  CHECK(result.tried > 0);
  CHECK(result.before_us > 0);
  CHECK(result.after_us <= result.before_us);
  CHECK(table.rows().size() == (result.after_us < result.before_us ? 1U : 0U));
}
