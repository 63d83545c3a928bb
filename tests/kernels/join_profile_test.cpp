// The profile database of fusion: keys, answers that change a plan, what is measured on a device once and kept, and
// plans by whatever answers give the same results.
#include "block_fixture.hpp"

#include <algorithm>
#include <cmath>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include <dnnopt/backend/measure/join_timer.hpp>
#include <dnnopt/session.hpp>

#include "property/random_patterns.hpp"

using namespace dnnopt;
using namespace dnnopt::testing;

namespace {

using fusion::join_judge;
using fusion::join_question;
using fusion::join_times;
using fusion::profile_table;

/// A judge whose every question is answered by `times`, with a table of its own.
join_judge judge_by(join_times times) {
  return join_judge(std::make_shared<profile_table>(), [times](const join_question&) { return times; });
}
constexpr join_times one_is_faster{1, 2};
constexpr join_times apart_is_faster{2, 1};

/// The largest difference against the largest magnitude, which counts as 0.001 at least.
double largest_difference(const tensor& want, const tensor& got) {
  double largest = 0;
  double magnitude = 1e-3;
  for (std::size_t i = 0; i < static_cast<std::size_t>(want.size()); ++i) {
    const double a = codegen::number_at(want, i);
    const double b = codegen::number_at(got, i);
    if (a == b || (std::isnan(a) && std::isnan(b))) continue;
    if (!std::isfinite(a) || !std::isfinite(b)) return 1e30;
    largest = std::max(largest, std::abs(a - b));
    magnitude = std::max(magnitude, std::abs(a));
  }
  return largest / magnitude;
}

std::size_t planned(graph& g, join_judge* judge) {
  rdp{}.run(g);
  fuse_blocks{{}, judge}.run(g);
  return g.blocks().size();
}
std::string reasons(const graph& g) {
  std::string all;
  for (const fused_block& block : g.blocks())
    for (const std::string& why : block.why_not) all += why + "\n";
  return all;
}

}  // namespace

TEST_CASE_METHOD(blocks, "answers decide joins that compute elements again") {
  // By the shipped rule a tanh is stored before a convolution, a Relu is not.
  for (const bool cheap : {false, true}) {
    g = graph();
    inputs.clear();
    const value_id x = input({1, 4, 6, 6});
    g.add_output(add("Conv", {add(cheap ? "Relu" : "Tanh", {x}), constant({3, 4, 3, 3})}, window(3, 1, 1, 1)));
    CHECK(planned(g, nullptr) == (cheap ? 1 : 2));
    join_judge one = judge_by(one_is_faster);
    CHECK(planned(g, &one) == 1);
    CHECK(one.figures().asked == 1);
    CHECK(one.figures().measured == 1);
    CHECK(one.figures().against_default == (cheap ? 0 : 1));
    join_judge apart = judge_by(apart_is_faster);
    CHECK(planned(g, &apart) == 2);
    CHECK(reasons(g).find("measured: 2 us as one, 1 us apart") != std::string::npos);
    join_judge without = judge_by({join_times::no_kernel, 1});
    CHECK(planned(g, &without) == 2);
    CHECK(reasons(g).find("it has no kernel") != std::string::npos);
  }
}

TEST_CASE_METHOD(blocks, "answers decide whether a sum is computed again and whether views are stored") {
  // Many-to-Many before One-to-Many.
  const value_id x = input({2, 8, 3});
  const value_id sum = add("ReduceSum", {x, integers({-1})});
  g.add_output(add("Sub", {input({2, 8, 3}), sum}));
  CHECK(planned(g, nullptr) == 2);
  join_judge one = judge_by(one_is_faster);
  CHECK(planned(g, &one) == 1);
  join_judge apart = judge_by(apart_is_faster);
  CHECK(planned(g, &apart) == 2);
  // Shuffle before Many-to-Many.
  g = graph();
  inputs.clear();
  const value_id turned = add("Transpose", {input({24, 16})});
  g.add_output(add("MatMul", {turned, constant({24, 8})}));
  CHECK(planned(g, nullptr) == 1);
  join_judge through = judge_by(one_is_faster);
  CHECK(planned(g, &through) == 1);
  CHECK(through.figures().against_default == 0);
  join_judge stored = judge_by(apart_is_faster);
  CHECK(planned(g, &stored) == 2);
  CHECK(stored.figures().against_default == 1);
}

TEST_CASE_METHOD(blocks, "a database serves other models with the same operators") {
  const auto model_of = [&](std::int64_t length, const std::string& name) {
    g = graph();
    inputs.clear();
    const value_id x = g.add_input(name, dtype::float32, to_shape(dim_list{1, length}));
    const value_id made = g.add_value(name + ".result");
    g.add_node(ops().at("", "Tanh"), name + ".tanh", {x}, {made});
    g.add_output(add("Add", {made, input({6, length})}));
  };
  auto database = std::make_shared<fusion::profile_database>();
  std::size_t calls = 0;
  const auto judge_of = [&] {
    return join_judge(std::shared_ptr<profile_table>(database, &database->table_of("a device")),
                      [&calls](const join_question&) {
                        ++calls;
                        return one_is_faster;
                      });
  };
  model_of(16, "first");
  join_judge first = judge_of();
  CHECK(planned(g, &first) == 1);
  CHECK(calls == 1);
  model_of(16, "second");
  join_judge second = judge_of();
  CHECK(planned(g, &second) == 1);
  CHECK(second.figures().known == 1);
  CHECK(calls == 1);
  model_of(17, "another_shape");
  join_judge third = judge_of();
  CHECK(planned(g, &third) == 1);
  CHECK(calls == 2);

  // Kept and read again.
  fusion::profile_database read;
  fusion::profiles_from_json(fusion::profiles_to_json(*database), read);
  CHECK(read.size() == 2);
  CHECK(fusion::profiles_to_json(read) == fusion::profiles_to_json(*database));
  CHECK_THROWS_AS(fusion::profiles_from_json({{"a device", {{"a join", "fast"}}}}, read), error);
}

TEST_CASE_METHOD(blocks, "a device measures both plans of a join") {
  auto device = std::make_shared<opened_device>("opencl", opencl::program_cache_options{false, {}});
  auto database = std::make_shared<fusion::profile_database>();
  const value_id x = input({1, 4, 9, 9});
  const value_id active = add("Tanh", {x});
  const value_id y = add("Conv", {active, constant({5, 4, 3, 3})}, window(3, 1, 1, 1));
  const value_id mean = add("ReduceMean", {y, integers({-1})});
  g.add_output(add("Sub", {y, mean}));
  const auto judge = make_join_judge(database, device, true);
  const std::size_t count = planned(g, judge.get());
  CHECK(judge->figures().measured > 0);
  for (const auto& [key, times] : judge->table()) {
    INFO(key);
    CHECK(times.joined_us > 0);
    CHECK(times.apart_us > 0);
    CHECK(times.apart_us < join_times::no_kernel);
  }
  const std::vector<tensor> all = evaluate_all();
  for (const fused_block& block : g.blocks())
    CHECK(check_block({g, block.members, block.outputs, block.anchor}, device_form::vectors, all).size() == 1);
  // The same plan again, without the device.
  const auto again = make_join_judge(database, device, false);
  CHECK(planned(g, again.get()) == count);
  CHECK(again->figures().known == again->figures().asked);
}

TEST_CASE_METHOD(blocks, "blocks of whatever answers run as one kernel each") {
  const std::uint32_t answers = GENERATE(range(0U, 8U));
  CAPTURE(answers);
  const value_id x = input({1, 4, 9, 9});
  const value_id active = add("Tanh", {x});
  const value_id y = add("Conv", {active, constant({5, 4, 3, 3})}, window(3, 1, 1, 1));
  g.add_output(add("Sub", {y, add("ReduceMean", {y, integers({-1})})}));
  std::uint32_t asked = 0;
  join_judge judge(std::make_shared<profile_table>(), [&](const join_question&) {
    return ((answers >> asked++) & 1U) != 0 ? one_is_faster : apart_is_faster;
  });
  planned(g, &judge);
  CHECK(asked <= 3);
  const std::vector<tensor> all = evaluate_all();
  for (const fused_block& block : g.blocks()) {
    const codegen::block_view view{g, block.members, block.outputs, block.anchor};
    CHECK(check_block(view, device_form::vectors, all).size() == 1);
    CHECK(check_block(view, device_form::groups, all).size() == 1);
  }
}

TEST_CASE("plans by arbitrary answers keep the results of random graphs") {
  for (std::uint32_t seed = 1; seed <= (is_simulated() ? 4U : 12U); ++seed) {
    INFO("seed " << seed);
    const ::testing::random_graph made = ::testing::grown_graph(seed);
    const model m = made.model();
    named_tensors given;
    for (const value_id id : m.main.inputs()) given.add(m.main.value_at(id).name, made.trials()[0].plain[id]);
    compile_options plain;
    plain.device = "reference";
    plain.passes = "none";
    const named_tensors expected = compile(m, plain).run(given);
    compile_options judged;
    judged.require_device = true;
    judged.programs.threads = 1;  // Oclgrind's compiler is not safe in several
    auto engine = std::make_shared<std::mt19937>(seed);
    judged.judge = std::make_shared<join_judge>(std::make_shared<profile_table>(), [engine](const join_question&) {
      return (*engine)() % 2 == 0 ? one_is_faster : apart_is_faster;
    });
    const named_tensors found = compile(m, judged).run(given);
    for (const auto& [name, content] : expected) {
      INFO("output " << name);
      REQUIRE(found.find(name) != nullptr);
      CHECK(largest_difference(content, *found.find(name)) < 2e-4);
    }
  }
}
