// DNNFusion's code generation rules, one for each cell of Table 3 that is not red (section 4.4.1): two operators as one
// generated kernel in both forms, against the reference, and what the fusion pass makes of the pair.
#include "block_fixture.hpp"

#include <array>
#include <memory>
#include <set>
#include <string>

#include <dnnopt/backend/program/make_program.hpp>
#include <dnnopt/ops/mapping_table.hpp>

using namespace dnnopt;
using namespace dnnopt::testing;

namespace {

constexpr auto o2o = mapping_type::one_to_one;
constexpr auto reo = mapping_type::reorganize;
constexpr auto shu = mapping_type::shuffle;
constexpr auto o2m = mapping_type::one_to_many;
constexpr auto m2m = mapping_type::many_to_many;

/// Appends one operator that reads `x`.
using grow = value_id (*)(blocks&, value_id x);

// Operators over an input of dims [2, 4, 6, 6], and over what the others make of it.
value_id relu(blocks& b, value_id x) { return b.add("Relu", {x}); }
value_id tanh(blocks& b, value_id x) { return b.add("Tanh", {x}); }
value_id flatten(blocks& b, value_id x) { return b.add("Flatten", {x}, blocks::with("axis", std::int64_t{2})); }
value_id unsqueeze(blocks& b, value_id x) { return b.add("Unsqueeze", {x, b.integers({1})}); }
value_id transpose(blocks& b, value_id x) { return b.add("Transpose", {x}); }
value_id softmax(blocks& b, value_id x) { return b.add("Softmax", {x}, blocks::with("axis", std::int64_t{-1})); }
value_id product(blocks& b, value_id x) { return b.add("MatMul", {x, b.constant({6, 5})}); }
value_id wide_product(blocks& b, value_id x) { return b.add("MatMul", {x, b.constant({36, 5})}); }
value_id batch_product(blocks& b, value_id x) { return b.add("MatMul", {x, b.constant({2, 5})}); }
value_id filter(blocks& b, value_id x) {
  return b.add("Conv", {x, b.constant({3, 4, 3, 3}), b.constant({3})}, window(3, 1, 1, 1));
}
value_id largest(blocks& b, value_id x) {
  attribute_map a;
  a.set("kernel_shape", std::vector<std::int64_t>{2, 2});
  a.set("strides", std::vector<std::int64_t>{2, 2});
  return b.add("MaxPool", {x}, std::move(a));
}
value_id total(blocks& b, value_id x) { return b.add("ReduceSum", {x, b.integers({-1})}); }
value_id to_space(blocks& b, value_id x) {
  return b.add("DepthToSpace", {x}, blocks::with("blocksize", std::int64_t{2}));
}
value_id tile(blocks& b, value_id x) { return b.add("Tile", {x, b.integers({2, 1, 1, 2})}); }
value_id expand(blocks& b, value_id x) { return b.add("Expand", {x, b.integers({3, 2, 4, 6, 6})}); }
value_id expand_product(blocks& b, value_id x) { return b.add("Expand", {x, b.integers({3, 2, 4, 6, 5})}); }
value_id expand_flat(blocks& b, value_id x) { return b.add("Expand", {x, b.integers({3, 8, 36})}); }
value_id expand_last(blocks& b, value_id x) { return b.add("Expand", {x, b.integers({2, 4, 6, 7})}); }
value_id spread(blocks& b, value_id x) { return b.add("Add", {x, b.input({3, 1, 1, 1, 1})}); }
value_id nearest(blocks& b, value_id x) {
  attribute_map a;
  a.set("mode", std::string("nearest"));
  a.set("coordinate_transformation_mode", std::string("asymmetric"));
  a.set("nearest_mode", std::string("floor"));
  return b.add("Resize", {x, no_value, no_value, b.integers({2, 4, 12, 12})}, std::move(a));
}
value_id gather(blocks& b, value_id x) {
  return b.add("Gather", {x, b.integers({3, 0, 0, 1, 2, 3})}, blocks::with("axis", std::int64_t{1}));
}

struct cell {
  mapping_type first, second;
  std::string_view name;
  grow before, after;
  std::size_t launches;      ///< of the fusion pass's plan
  std::string_view why_two;  ///< part of what the plan says where it makes two
};

constexpr std::array cells{
    // Green.
    cell{o2o, o2o, "Relu, Tanh", relu, tanh, 1, ""},
    cell{o2o, reo, "Relu, Flatten", relu, flatten, 1, ""},
    cell{o2o, shu, "Relu, Transpose", relu, transpose, 1, ""},
    cell{o2o, shu, "Tanh, DepthToSpace", tanh, to_space, 1, ""},
    cell{o2o, o2m, "Relu, Expand", relu, expand, 1, ""},
    cell{o2o, o2m, "Relu, Resize", relu, nearest, 1, ""},
    cell{o2o, o2m, "Relu, Add that broadcasts", relu, spread, 1, ""},
    cell{o2o, o2m, "Tanh, Add that broadcasts", tanh, spread, 2, "computing it again costs more than storing it"},
    cell{o2o, m2m, "Relu, MatMul", relu, product, 1, ""},
    cell{o2o, m2m, "Relu, Conv", relu, filter, 1, ""},
    cell{o2o, m2m, "Tanh, Conv", tanh, filter, 2, "computing it again costs more than storing it"},
    cell{o2o, m2m, "Tanh, ReduceSum", tanh, total, 1, ""},
    cell{o2o, m2m, "Relu, Softmax", relu, softmax, 1, ""},
    cell{o2o, m2m, "Relu, MaxPool", relu, largest, 1, ""},
    cell{reo, o2o, "Flatten, Relu", flatten, relu, 1, ""},
    // The same memory under another shape: the pair has a kernel, and needs none.
    cell{reo, reo, "Unsqueeze, Flatten", unsqueeze, flatten, 0, ""},
    cell{reo, shu, "Flatten, Transpose", flatten, transpose, 1, ""},
    cell{shu, o2o, "Transpose, Relu", transpose, relu, 1, ""},
    cell{shu, reo, "Transpose, Flatten", transpose, flatten, 1, ""},
    cell{shu, shu, "DepthToSpace, Transpose", to_space, transpose, 1, ""},
    cell{o2m, o2o, "Expand, Relu", expand, relu, 1, ""},
    cell{o2m, o2o, "Add that broadcasts, Tanh", spread, tanh, 1, ""},
    cell{m2m, o2o, "MatMul, Relu", product, relu, 1, ""},
    cell{m2m, o2o, "Conv, Tanh", filter, tanh, 1, ""},
    cell{m2m, o2o, "ReduceSum, Tanh", total, tanh, 1, ""},
    cell{m2m, o2o, "Softmax, Relu", softmax, relu, 1, ""},
    cell{m2m, o2o, "MaxPool, Tanh", largest, tanh, 1, ""},
    // Yellow.
    cell{reo, o2m, "Flatten, Expand", flatten, expand_flat, 1, ""},
    cell{reo, m2m, "Flatten, MatMul", flatten, wide_product, 1, ""},
    cell{reo, m2m, "Flatten, Softmax", flatten, softmax, 1, ""},
    cell{shu, o2m, "Transpose, Tile", transpose, tile, 1, ""},
    cell{shu, m2m, "Transpose, MatMul", transpose, batch_product, 1, ""},
    cell{shu, m2m, "Transpose, ReduceSum", transpose, total, 1, ""},
    cell{o2m, o2m, "Gather, Add that broadcasts", gather, spread, 1, ""},
    cell{o2m, o2m, "Resize, Tile", nearest, tile, 2, ""},
    cell{o2m, reo, "Expand, Flatten", expand, flatten, 1, ""},
    cell{o2m, reo, "Add that broadcasts, Flatten", spread, flatten, 1, ""},
    cell{o2m, shu, "Tile, Transpose", tile, transpose, 1, ""},
    cell{o2m, shu, "Resize, DepthToSpace", nearest, to_space, 1, ""},
    cell{m2m, o2m, "ReduceSum, Expand", total, expand_last, 2, ""},
    cell{m2m, o2m, "Conv, Tile", filter, tile, 2, ""},
    cell{m2m, o2m, "Conv, Add that broadcasts", filter, spread, 2, "it spreads the operand over more elements"},
    cell{m2m, o2m, "MatMul, Expand", product, expand_product, 2, ""},
    cell{m2m, reo, "MatMul, Flatten", product, flatten, 1, ""},
    cell{m2m, reo, "Conv, Flatten", filter, flatten, 1, ""},
    cell{m2m, shu, "MatMul, Transpose", product, transpose, 1, ""},
    cell{m2m, shu, "Softmax, Transpose", softmax, transpose, 1, ""},
    cell{m2m, shu, "ReduceSum, Transpose", total, transpose, 1, ""},
};

/// Two operators over one input, with shapes.
void build(blocks& b, const cell& c) {
  b.g = graph();
  b.inputs.clear();
  b.g.add_output(c.after(b, c.before(b, b.input({2, 4, 6, 6}))));
  rdp{}.run(b.g);
}

}  // namespace

TEST_CASE_METHOD(blocks, "two operators of each cell run as one generated kernel") {
  std::set<std::pair<mapping_type, mapping_type>> covered;
  for (const cell& c : cells) {
    INFO(c.name);
    build(*this, c);
    const std::vector<node_id> both = g.topological_order();
    REQUIRE(both.size() == 2);
    CHECK(node_mapping(*g.node_at(both[0]).op, *facts_of_node(g, both[0])) == c.first);
    CHECK(node_mapping(*g.node_at(both[1]).op, *facts_of_node(g, both[1])) == c.second);
    REQUIRE(fuse(c.first, c.second).verdict != fusion_verdict::never);
    covered.emplace(c.first, c.second);
    const node_id anchor = c.first == m2m ? both[0] : c.second == m2m ? both[1] : no_node;
    const std::vector<tensor> all = evaluate_all();
    for (const device_form form : {device_form::vectors, device_form::groups})
      CHECK(check_block({g, both, g.outputs(), anchor}, form, all).size() == 1);
  }
  CHECK(covered.size() == 23);
}

TEST_CASE_METHOD(blocks, "the plan of each cell's pair is at most one launch, or says why not") {
  for (const cell& c : cells)
    for (const device_form form : {device_form::vectors, device_form::groups}) {
      INFO(c.name);
      build(*this, c);
      fuse_blocks{}.run(g);
      const device_info facts = info(form);
      const program p = make_program(std::make_shared<const graph>(g), codegen::default_lower_options(&facts), true);
      CHECK(p.kernel_count() == c.launches);
      std::string why;
      for (const placed_node& step : p.steps)
        for (const std::string& one : step.why_not) why += one + "\n";
      INFO(why);
      CHECK(why.find(c.why_two) != std::string::npos);
    }
}
