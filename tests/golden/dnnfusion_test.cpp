// The worked figures of DNNFusion (PLDI 2021): how a block grows in Fig. 3, the data-flow tree with a common subtree in
// Fig. 4, and the product that is divided and transposed of section 4.4.1.
#include "figure.hpp"

#include <dnnopt/graph_io.hpp>
#include <dnnopt/ops/mapping_table.hpp>
#include <dnnopt/passes/fuse_published.hpp>
#include <dnnopt/passes/fusion/extended_graph.hpp>

#include <catch2/catch.hpp>

#include <memory>
#include <string>
#include <vector>

using namespace dnnopt;
using namespace dnnopt::testing;

namespace {

/// The result of blocks that grow operator by operator (Table 3), from the first of `types` on.
fused_mapping grown(const std::vector<mapping_type>& types) {
  fused_mapping at{fusion_verdict::through, types.front()};
  for (std::size_t i = 1; i < types.size() && at.verdict != fusion_verdict::never; ++i) at = fuse(at.result, types[i]);
  return at;
}

/// GEMM, Add, Conv, then Relu and Mul side by side, then Sub. `whole` leaves the product out.
figure figure_3(bool product) {
  figure f;
  const value_id x = f.input("x", {1, 4, 6, 8});
  const value_id before = product ? f.node("MatMul", {x, f.weights({8, 8})}) : x;
  const value_id sum = f.node("Add", {before, f.weights({1, 4, 1, 1})});
  const value_id filtered =
      f.node("Conv", {sum, f.weights({4, 4, 3, 3})}, with("pads", std::vector<std::int64_t>{1, 1, 1, 1}));
  const value_id positive = f.node("Relu", {filtered});
  const value_id scaled = f.node("Mul", {filtered, f.weights({1, 4, 1, 1})});
  f.g.add_output(f.node("Sub", {positive, scaled}));
  return f;
}

}  // namespace

TEST_CASE("DNNFusion Fig. 3: a block grows from its seed up to a red pair", "[golden]") {
  constexpr auto o2o = mapping_type::one_to_one;
  constexpr auto m2m = mapping_type::many_to_many;
  // The seed Add, then its successors Conv, Relu, Mul and Sub: one Many-to-Many operator without a yellow pair.
  const fused_mapping successors = grown({o2o, m2m, o2o, o2o, o2o});
  CHECK(successors.verdict == fusion_verdict::through);
  CHECK(successors.result == m2m);
  // Then the predecessor: two Many-to-Many operators are never one.
  CHECK(fuse(m2m, successors.result).verdict == fusion_verdict::never);

  // The block of the figure, where nothing else may take the seed.
  const figure block = figure_3(false);
  CHECK(launches_of(placed(block.g)) == std::vector<std::vector<std::string>>{{"Add", "Conv", "Relu", "Mul", "Sub"}});

  // With the product before it there are two launches, as in the figure. The seed goes with the product, not with the
  // convolution: as an epilogue it is computed once for each element, as a prologue once for each tap of the window.
  const figure whole = figure_3(true);
  CHECK(launches_of(placed(whole.g)) ==
        std::vector<std::vector<std::string>>{{"MatMul", "Add"}, {"Conv", "Relu", "Mul", "Sub"}});
}

TEST_CASE("DNNFusion Listing 1: the published planner makes the block of Fig. 3", "[golden]") {
  // The product stays out: two Many-to-Many operators are red.
  figure whole = figure_3(true);
  rdp{}.run(whole.g);
  CHECK(fuse_published{}.run(whole.g).edits == 4);
  const program p = make_program(std::make_shared<const graph>(whole.g), codegen::default_lower_options(), false);
  CHECK(launches_of(p) == std::vector<std::vector<std::string>>{{"MatMul"}, {"Add", "Conv", "Relu", "Mul", "Sub"}});
  // The drawing has a frame around the block, named after its anchor.
  CHECK(to_dot(whole.g).find("\" { label=\"Conv") != std::string::npos);
}

TEST_CASE("DNNFusion Listing 1: yellow pairs join where nothing is computed again", "[golden]") {
  // A product and a Transpose are yellow, and so are two operators that spread; One-to-One before one is green.
  figure f;
  const value_id x = f.input("x", {8, 16});
  const value_id positive = f.node("Relu", {f.node("MatMul", {x, f.weights({16, 16})})});
  f.g.add_output(f.node("Neg", {f.node("Transpose", {positive}, with("perm", std::vector<std::int64_t>{1, 0}))}));
  const value_id spread = f.node("Expand", {f.node("Tanh", {x}), f.numbers({4, 8, 16})});
  f.g.add_output(f.node("Exp", {f.node("Expand", {f.node("Sin", {spread}), f.numbers({2, 4, 8, 16})})}));
  rdp{}.run(f.g);
  fuse_published{}.run(f.g);
  const program p = make_program(std::make_shared<const graph>(f.g), codegen::default_lower_options(), false);
  CHECK(launches_of(p) == std::vector<std::vector<std::string>>{
                              {"MatMul", "Relu", "Transpose", "Neg"}, {"Tanh", "Expand", "Sin"}, {"Expand", "Exp"}});
}

TEST_CASE("DNNFusion section 3.1: the extended computational graph of Fig. 3", "[golden]") {
  figure whole = figure_3(true);
  rdp{}.run(whole.g);
  const std::vector<fusion::extended_node> nodes = fusion::extended_graph(whole.g);
  REQUIRE(nodes.size() == 6);
  std::vector<std::string> ops;
  for (const fusion::extended_node& one : nodes) ops.emplace_back(whole.g.node_at(one.id).op->name);
  REQUIRE(ops == std::vector<std::string>{"MatMul", "Add", "Conv", "Relu", "Mul", "Sub"});
  // The product of matrices, of which a convolution's sum is made: red. A sum with one number for each channel spreads.
  CHECK(nodes[0].mapping == mapping_type::many_to_many);
  CHECK(nodes[0].removable);
  CHECK(nodes[1].mapping == mapping_type::one_to_many);
  CHECK(nodes[1].input_mappings[0] == mapping_type::one_to_one);
  CHECK(nodes[1].input_mappings[1] == mapping_type::one_to_many);
  CHECK_FALSE(nodes[1].removable);
  CHECK(nodes[1].properties == (algebra::associative | algebra::commutative | algebra::distributive));
  CHECK(nodes[2].removable);
  CHECK(nodes[3].mapping == mapping_type::one_to_one);
  CHECK(nodes[3].removable);
  CHECK_FALSE(nodes[5].removable);
  for (const fusion::extended_node& one : nodes) CHECK(one.result_bytes == index_expr(4 * 4 * 6 * 8));
  CHECK(fusion::properties_text(nodes[1].properties) == "associative, commutative, distributive");
  CHECK(to_dot(whole.g, {{nodes[3].id, "One-to-One"}}).find("\\nOne-to-One\",") != std::string::npos);
}

TEST_CASE("DNNFusion Fig. 4: one kernel for the data-flow tree, its common subtree once", "[golden]") {
  figure f;
  const value_id a = f.input("A", {16, 32});
  // 23 columns: frames that store four neighbours at once would write the tree four times.
  const value_id b = f.input("B", {32, 23});
  const value_id c = f.input("C", {16, 23});
  const value_id d = f.input("D", {16, 23});
  const value_id irs1 = f.node("MatMul", {a, b});
  const value_id irs2 = f.node("Mul", {irs1, c});
  const value_id irs3 = f.node("Reciprocal", {irs2});
  const value_id irs4 = f.node("Mul", {irs1, d});
  const value_id irs5 = f.node("Mul", {irs4, irs4});
  f.g.add_output(f.node("Add", {irs3, irs5}));
  const program p = placed(f.g);
  CHECK(launches_of(p) == std::vector<std::vector<std::string>>{{"MatMul", "Mul", "Reciprocal", "Mul", "Mul", "Add"}});
  std::string source;
  for (const placed_node& step : p.steps)
    for (const codegen::kernel_plan& plan : step.lowered.kernels) source += plan.source.str();
  const auto function = [&source](const std::string& name) {
    const std::string from = source.substr(source.find(" " + name + "(DNNOPT_PARAMETERS"));
    return from.substr(0, from.find("\n}"));
  };
  // Out may be written over C or D, so that the tree stands in a function of its own.
  const std::string epilogue = function("dnnopt_epilogue");
  INFO(epilogue);
  // Both products read IRS1, which is the frame's sum and not computed again; IRS4 stands in its square twice.
  CHECK(count_of(epilogue, "value *") + count_of(epilogue, "value)") + count_of(epilogue, "* value") >= 2);
  CHECK(count_of(epilogue, "for (") == 0);
  CHECK(count_of(epilogue, "const float") == 7);  // C, D, and one for each of the five operators behind the product
  CHECK(count_of(epilogue, "] = ") == 0);
  CHECK(count_of(function("dnnopt_put"), "] = ") == 1);  // nothing but Out is stored
  CHECK(count_of(function("dnnopt_store"), "dnnopt_put(") == 1);
}

TEST_CASE("DNNFusion section 4.4.1: a product is written divided and in its transposed place", "[golden]") {
  CHECK(fuse(mapping_type::one_to_one, mapping_type::shuffle).result == mapping_type::shuffle);
  CHECK(fuse(mapping_type::many_to_many, mapping_type::shuffle).result == mapping_type::many_to_many);
  figure f;
  const value_id product = f.node("MatMul", {f.input("A", {16, 32}), f.input("B", {32, 24})});
  const value_id divided = f.node("Div", {product, f.input("C", {16, 24})});
  f.g.add_output(f.node("Transpose", {divided}));
  const program p = placed(f.g);
  CHECK(launches_of(p) == std::vector<std::vector<std::string>>{{"MatMul", "Div", "Transpose"}});
}
