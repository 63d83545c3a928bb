// What fusion plans for pairs of operators that nearly are those that it joins.
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <catch2/catch.hpp>

#include <dnnopt/ops/standard.hpp>
#include <dnnopt/passes/fuse.hpp>
#include <dnnopt/passes/rdp.hpp>
#include <dnnopt/passes/rewriting/edit.hpp>
#include <dnnopt/passes/verify.hpp>

#include "../support/noise.hpp"

TEST_CASE("a normalization before a sum of one operand is a block of its own") {
  using namespace dnnopt;
  // Einsum is a product of matrices by its kind, also where it has no second one.
  const std::string equation = GENERATE("bij->jb", "bij->bj", "bij,jk->bik");
  CAPTURE(equation);
  const op_set ops = standard_ops();
  graph g;
  const value_id x = g.add_input("x", dtype::float32, shape{3, 4, 6});
  const value_id normalized = rewriting::append(g, ops.at("", "LayerNormalization"), "normalized",
                                                {x, g.add_constant("scale", dnnopt::testing::noise({6}, 1))});
  std::vector<value_id> read{normalized};
  const bool product = equation.find(',') != std::string::npos;
  if (product) read.push_back(g.add_constant("weights", dnnopt::testing::noise({6, 5}, 2)));
  attribute_map attributes;
  attributes.set("equation", equation);
  g.add_output(rewriting::append(g, ops.at("", "Einsum"), "sum", read, std::move(attributes)));
  (void)rdp{}.run(g);
  (void)fuse_blocks{}.run(g);
  CHECK(g.blocks().size() == (product ? 1 : 2));
  CHECK_NOTHROW(verify(g, fuse_blocks::name));
}

TEST_CASE("blocks with members from far apart do not wait for each other") {
  using namespace dnnopt;
  // The first product takes the first sum, which needs the second product; `rows` stands between the products and needs
  // the first one. So the second product cannot take a sum that reads `rows`, though that comes before all of it.
  const op_set ops = standard_ops();
  graph g;
  const value_id x = g.add_input("x", dtype::float32, shape{4, 4});
  const auto product = [&](const char* name, value_id read, std::uint32_t seed) {
    return rewriting::append(g, ops.at("", "MatMul"), name,
                             {read, g.add_constant(std::string(name) + ".w", dnnopt::testing::noise({4, 4}, seed))});
  };
  const value_id first = product("first", x, 1);
  const value_id rows = rewriting::append(g, ops.at("", "Softmax"), "rows", {first});
  const value_id second = product("second", x, 2);
  const value_id means = rewriting::append(g, ops.at("", "ReduceMean"), "means",
                                           {second, g.add_constant("axes", tensor::of<std::int64_t>({1}, {1}))});
  g.add_output(rewriting::append(g, ops.at("", "Add"), "first.sum", {first, means}));
  g.add_output(rewriting::append(g, ops.at("", "Add"), "second.sum", {second, rows}));
  (void)rdp{}.run(g);
  (void)fuse_blocks{}.run(g);
  CHECK_NOTHROW(verify(g, fuse_blocks::name));
}
