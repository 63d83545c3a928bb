// What the tool's verify allows a quantized value: which values have steps, and how many may be off.
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <catch2/catch.hpp>

#include <dnnopt/graph.hpp>
#include <dnnopt/ops/standard.hpp>

#include "dnnopt/rounding_steps.hpp"

namespace {

using namespace dnnopt;

struct described_graph {
  op_set ops = standard_ops();
  graph g;

  std::vector<value_id> nodes(const char* op, std::vector<value_id> inputs, std::size_t outputs,
                              std::vector<std::pair<const char*, attribute>> given = {}) {
    attribute_map attributes;
    for (auto& [key, held] : given) attributes.set(key, held);
    std::vector<value_id> made;
    for (std::size_t i = 0; i < outputs; ++i) made.push_back(g.add_value("v" + std::to_string(g.value_count())));
    g.add_node(ops.at("", op), "n" + std::to_string(made[0]), std::move(inputs), made, std::move(attributes));
    return made;
  }
  value_id node(const char* op, std::vector<value_id> inputs,
                std::vector<std::pair<const char*, attribute>> given = {}) {
    return nodes(op, std::move(inputs), 1, std::move(given))[0];
  }
  value_id number(float v) { return g.add_constant("c" + std::to_string(g.value_count()), tensor::scalar(v)); }
};

}  // namespace

TEST_CASE("a step of a quantized value is the scale of its codes") {
  described_graph d;
  const value_id x = d.g.add_input("x", dtype::float32, shape{4, 3});
  const value_id given = d.g.add_input("codes", dtype::uint8, shape{4, 3});
  const value_id codes = d.node("QuantizeLinear", {x, d.number(0.25F)});
  const value_id reals = d.node("DequantizeLinear", {codes, d.number(0.25F)});
  const value_id turned = d.node("Transpose", {reals}, {{"perm", std::vector<std::int64_t>{1, 0}}});
  const value_id wide = d.node("DequantizeLinear", {codes, d.number(0.5F)});
  const value_id both = d.node("Concat", {reals, wide}, {{"axis", std::int64_t{0}}});
  const value_id mixed = d.node("Concat", {reals, x}, {{"axis", std::int64_t{0}}});
  const value_id computed = d.node("Sigmoid", {reals});
  const value_id index = d.node("ArgMax", {reals});
  const value_id exact = d.node("DequantizeLinear", {given, d.number(0.5F)});
  const std::vector<value_id> dynamic = d.nodes("DynamicQuantizeLinear", {x}, 3);
  const value_id unknown = d.node("DequantizeLinear", {dynamic[0], dynamic[1], dynamic[2]});
  const auto steps = tool::rounding_steps(d.g);
  CHECK(steps[codes] == 1.0);
  CHECK(steps[reals] == 0.25);
  CHECK(steps[turned] == 0.25);
  CHECK(steps[both] == 0.5);
  CHECK(steps[dynamic[0]] == 1.0);
  CHECK(steps[dynamic[2]] == 1.0);
  for (const value_id held : {x, mixed, computed, index, exact, dynamic[1], unknown}) CHECK(!steps[held]);
}

TEST_CASE("codes are cut where data decides them") {
  described_graph d;
  const value_id x = d.g.add_input("x", dtype::float32, shape{4, 3});
  const value_id step = d.number(0.25F);
  const value_id weights = d.node("QuantizeLinear", {d.number(3.0F), step});
  const value_id codes = d.node("QuantizeLinear", {x, step});
  const value_id product =
      d.node("Mul", {d.node("DequantizeLinear", {codes, step}), d.node("DequantizeLinear", {weights, step})});
  const std::vector<value_id> dynamic = d.nodes("DynamicQuantizeLinear", {product}, 3);
  CHECK(tool::computed_codes(d.g) == std::vector<value_id>{codes, dynamic[0], dynamic[2]});
}

TEST_CASE("few elements of a quantized value may be one step off") {
  CHECK(tool::step_counts{0, 0, 0}.within());
  CHECK(tool::step_counts{10, 1, 1}.within());
  CHECK(tool::step_counts{1000, 10, 1}.within());
  CHECK_FALSE(tool::step_counts{1000, 11, 1}.within());
  CHECK_FALSE(tool::step_counts{1000, 1, 2}.within());
}
