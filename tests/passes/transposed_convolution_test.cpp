// Transposed convolutions become convolutions with their phases as channels.
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <catch2/catch.hpp>

#include <dnnopt/ops/standard.hpp>
#include <dnnopt/passes/pipeline.hpp>
#include <dnnopt/passes/rewriting/edit.hpp>
#include <dnnopt/passes/split_transposed_convolution.hpp>
#include <dnnopt/passes/verify.hpp>
#include <dnnopt/reference/evaluate_node.hpp>

#include "../support/noise.hpp"

namespace {

using namespace dnnopt;
using list = std::vector<std::int64_t>;
using dnnopt::testing::noise;

struct transposed {
  dim_list x, w;
  list strides, pads{}, extra{};
  std::int64_t group = 1;
};

attribute_map attributes_of(const transposed& c) {
  attribute_map a;
  a.set("strides", c.strides);
  if (!c.pads.empty()) a.set("pads", c.pads);
  if (!c.extra.empty()) a.set("output_padding", c.extra);
  a.set("group", c.group);
  return a;
}

/// Runs the pass on one node; outputs must stay as they were. Its edits.
std::size_t split(const transposed& c, attribute_map attributes, bool constant = true, bool bias = true) {
  const op_set ops = standard_ops();
  graph g;
  std::vector<tensor> inputs{noise(c.x, 1)};
  std::vector<value_id> in{g.add_input("x", dtype::float32, to_shape(c.x))};
  if (constant) {
    in.push_back(g.add_constant("w", noise(c.w, 2)));
  } else {
    in.push_back(g.add_input("w", dtype::float32, to_shape(c.w)));
    inputs.push_back(noise(c.w, 2));
  }
  if (bias) in.push_back(g.add_constant("b", noise({c.w[1] * c.group}, 3)));
  g.add_output(rewriting::append(g, ops.at("", "ConvTranspose"), "y", std::move(in), std::move(attributes)));
  const tensor before = reference::evaluate(g, inputs)[0];
  const std::size_t edits = split_transposed_convolution{}.run(g).edits;
  verify(g, split_transposed_convolution::name);
  bool left = false;
  for (const node_id id : g.nodes()) left = left || g.node_at(id).op->name == "ConvTranspose";
  CHECK(left == (edits == 0));
  const tensor after = reference::evaluate(g, inputs)[0];
  REQUIRE(before.dims() == after.dims());
  const auto a = before.data<float>();
  const auto b = after.data<float>();
  for (std::size_t i = 0; i < a.size(); ++i) REQUIRE(std::abs(a[i] - b[i]) < 1e-4F);
  return edits;
}

}  // namespace

TEST_CASE("transposed convolutions become convolutions with the same result") {
  const std::vector<transposed> cases{
      {{1, 3, 5, 7}, {3, 4, 2, 2}, {2, 2}},
      {{2, 3, 4, 3}, {3, 5, 4, 4}, {2, 2}, {1, 1, 1, 1}},
      {{1, 2, 4, 5}, {2, 3, 3, 3}, {2, 2}, {1, 1, 1, 1}, {1, 1}},
      {{1, 2, 4, 5}, {2, 3, 3, 3}, {2, 2}, {1, 1, 1, 1}},
      {{1, 2, 4, 5}, {2, 3, 3, 5}, {2, 2}, {0, 2, 1, 1}, {0, 1}},
      {{1, 2, 3, 3}, {2, 2, 5, 5}, {2, 2}, {2, 2, 2, 2}, {1, 1}},
      {{1, 2, 3, 2}, {2, 3, 3, 4}, {3, 3}},
      {{1, 2, 3, 2}, {2, 1, 8, 8}, {4, 4}, {2, 2, 2, 2}},
      {{1, 4, 3, 5}, {4, 3, 4, 4}, {2, 2}, {1, 1, 1, 1}, {}, 2},
      {{1, 6, 3, 5}, {6, 1, 2, 2}, {2, 2}, {}, {}, 6},
      {{1, 3, 6, 5}, {3, 2, 3, 3}, {1, 1}, {1, 1, 1, 1}},
      {{1, 3, 6, 5}, {3, 2, 2, 5}, {1, 1}},
      {{2, 3, 7}, {3, 4, 4}, {2}, {1, 1}},
      {{1, 3, 7}, {3, 4, 16}, {8}, {4, 4}},
      {{1, 3, 7}, {3, 4, 3}, {1}},
      {{1, 2, 3, 4, 3}, {2, 3, 3, 2, 1}, {1, 1, 1}},
      {{1, 2, 1, 1}, {2, 3, 2, 2}, {2, 2}},
  };
  for (const transposed& c : cases) {
    CAPTURE(c.x, c.w, c.strides, c.pads, c.extra);
    CHECK(split(c, attributes_of(c)) == 1);
    CHECK(split(c, attributes_of(c), true, false) == 1);
  }
}

TEST_CASE("transposed convolutions that would cost more, or cannot be said so, stay") {
  const transposed plain{{1, 3, 5, 7}, {3, 4, 3, 3}, {2, 2}};
  CHECK(split(plain, attributes_of(plain), false) == 0);
  const auto with = [&](const char* key, attribute held) {
    attribute_map a = attributes_of(plain);
    a.set(key, std::move(held));
    return a;
  };
  CHECK(split(plain, with("dilations", list{2, 2})) == 0);
  CHECK(split(plain, with("auto_pad", std::string("SAME_UPPER"))) == 0);
  CHECK(split(plain, with("output_shape", list{11, 15})) == 0);
  // Different strides; more zeros than weights; one phase short of a whole kernel beyond three dims; cropped to less.
  const std::vector<transposed> others{{{1, 2, 4, 5}, {2, 3, 3, 3}, {2, 1}},
                                       {{1, 2, 4, 5}, {2, 3, 1, 1}, {4, 4}},
                                       {{1, 2, 3, 3, 3}, {2, 2, 2, 2, 2}, {2, 2, 2}},
                                       {{1, 2, 5, 5}, {2, 2, 2, 2}, {2, 2}, {0, 0, 3, 3}}};
  for (const transposed& c : others) {
    CAPTURE(c.x, c.w, c.strides, c.pads);
    CHECK(split(c, attributes_of(c)) == 0);
  }
}

TEST_CASE("a transposed convolution of symbolic extents has the shape that it had") {
  const op_set ops = standard_ops();
  graph g;
  const index_expr height = g.expressions().symbol("height", {1, 4096});
  const index_expr width = g.expressions().symbol("width", {1, 4096});
  const value_id x = g.add_input("x", dtype::float32, shape{1, 3, height, width});
  const transposed c{{}, {3, 4, 3, 3}, {2, 2}, {1, 1, 1, 1}};
  const value_id y =
      rewriting::append(g, ops.at("", "ConvTranspose"), "y", {x, g.add_constant("w", noise(c.w, 2))}, attributes_of(c));
  g.add_output(y);
  const shape before = *g.facts(y).dims;
  CHECK(split_transposed_convolution{}.run(g).edits == 1);
  pass_environment environment;
  environment.evaluate = &reference::evaluate_node;
  (void)run_passes(g, {"rdp"}, environment);
  CHECK(*g.facts(g.outputs()[0]).dims == before);
}
