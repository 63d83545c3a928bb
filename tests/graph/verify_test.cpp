// The verifier: each rule broken once, named with its node or value and the pass.
#include <memory>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include <dnnopt/ops/standard.hpp>
#include <dnnopt/passes/verify.hpp>

namespace {

using namespace dnnopt;

struct built {
  op_set ops = standard_ops();
  graph g;
  value_id x = g.add_input("x", dtype::float32, shape{2, 3});
  value_id y = g.add_value("y", dtype::float32, shape{2, 3});
  node_id relu = g.add_node(ops.at("", "Relu"), "relu", {x}, {y});
  built() { g.add_output(y); }
};

std::string complaint(const graph& g) {
  try {
    verify(g, "some pass");
  } catch (const error& e) {
    CHECK(e.code() == errc::verification_failed);
    CHECK_THAT(e.what(), Catch::Contains("after pass 'some pass'"));
    return e.what();
  }
  return "nothing";
}

}  // namespace

TEST_CASE("a sound graph passes", "[verify]") {
  built b;
  CHECK(complaint(b.g) == "nothing");
  b.g.compact();
  CHECK(complaint(b.g) == "nothing");
}

TEST_CASE("what is told of a value and a node stays in its place while others are added", "[graph]") {
  const dnnopt::op_set ops = dnnopt::standard_ops();
  dnnopt::graph g;
  const dnnopt::value_id x = g.add_input("x", dnnopt::dtype::float32, dnnopt::shape{2});
  dnnopt::value_id last = g.add_value("y");
  const dnnopt::node_id first = g.add_node(ops.at("", "Relu"), "first", {x}, {last});
  const dnnopt::value_facts& facts = g.facts(x);
  const dnnopt::node& n = g.node_at(first);
  for (int k = 0; k < 1000; ++k) {
    const dnnopt::value_id out = g.add_value("v" + std::to_string(k));
    g.add_node(ops.at("", "Relu"), "n" + std::to_string(k), {last}, {out});
    last = out;
  }
  CHECK(&facts == &g.facts(x));
  CHECK(&n == &g.node_at(first));
}

TEST_CASE("each rule names what breaks it", "[verify]") {
  built b;
  graph& g = b.g;
  std::string rule;
  SECTION("inputs are defined") {
    g.set_node_input(b.relu, 0, g.add_value("z", dtype::float32, shape{2, 3}));
    rule = "inputs are defined";
  }
  SECTION("input arity") {
    g.set_node_inputs(b.relu, {b.x, b.x});
    rule = "input arity";
  }
  SECTION("output arity") {
    const value_id made = g.add_value("made");
    const value_id more = g.add_value("more");
    g.add_node(b.ops.at("", "Relu"), "two", {b.x}, {made, more});
    rule = "output arity";
  }
  SECTION("names are unique") {
    g.rename_value(b.y, "x");
    rule = "names are unique";
  }
  SECTION("values have names") {
    g.rename_value(b.y, "");
    rule = "values have names";
  }
  SECTION("dims are not negative") {
    g.facts(b.y).dims = shape{-2, 3};
    rule = "dims are not negative";
  }
  SECTION("one expression context") {
    graph other;
    g.facts(b.y).dims = shape{other.expressions().symbol("n")};
    CHECK_THAT(complaint(g), Catch::Contains("one expression context"));
    g.facts(b.y).dims = shape{2, 3};
    return;
  }
  SECTION("constants fit their facts") {
    const value_id c = g.add_constant("c", tensor::scalar(1.0f));
    g.set_node_input(b.relu, 0, c);
    CHECK(complaint(g) == "nothing");
    SECTION("type") {
      g.facts(c).type = dtype::int64;
      rule = "constants have their facts' type";
    }
    SECTION("shape") {
      g.facts(c).dims = shape{7};
      rule = "constants have their facts' shape";
    }
  }
  SECTION("constants have no producer") {
    g.facts(b.y).constant = tensor(dtype::float32, {2, 3});
    rule = "constants have no producer";
  }
  SECTION("symbolic values fit their shape") {
    g.facts(b.y).elements = std::vector<index_expr>{1, 2};
    rule = "symbolic values fit their shape";
  }
  SECTION("inputs are listed once") {
    g.set_inputs({b.x, b.x});
    rule = "inputs are listed once";
  }
  SECTION("graph inputs have no producer") {
    g.set_inputs({b.x, b.y});
    rule = "graph inputs have no producer";
  }
  SECTION("graph inputs are not constant") {
    g.set_inputs({b.x, g.add_constant("c", tensor::scalar(1.0f))});
    rule = "graph inputs are not constant";
  }
  SECTION("graph outputs are defined") {
    g.add_output(g.add_value("z"));
    rule = "graph outputs are defined";
  }
  SECTION("outputs of a removed node are defined no more") {
    g.remove_node(b.relu);
    rule = "graph outputs are defined";
  }
  SECTION("acyclic") {
    const value_id z = g.add_value("z", dtype::float32, shape{2, 3});
    g.add_node(b.ops.at("", "Relu"), "back", {b.y}, {z});
    g.set_node_input(b.relu, 0, z);
    rule = "acyclic";
  }
  SECTION("bodies take the captured values") {
    auto body = std::make_shared<graph>(g.shared_expressions());
    attribute_map attributes;
    attributes.set("then_branch", subgraph(body));
    attributes.set("else_branch", subgraph(body));
    const value_id c = g.add_input("c", dtype::boolean, shape{});
    const value_id out = g.add_value("out");
    const node_id branch = g.add_node(b.ops.at("", "If"), "branch", {c, b.x}, {out}, attributes);
    g.set_captured_begin(branch, 1);
    rule = "bodies take the captured values";
  }
  SECTION("a body has its own faults, named with the node around it") {
    auto body = std::make_shared<graph>(g.shared_expressions());
    body->add_output(body->add_value("nothing"));
    attribute_map attributes;
    attributes.set("then_branch", subgraph(body));
    const value_id c = g.add_input("c", dtype::boolean, shape{});
    g.add_node(b.ops.at("", "If"), "branch", {c}, {g.add_value("out")}, attributes);
    CHECK_THAT(complaint(g), Catch::Contains("node 'branch'") && Catch::Contains("body 'then_branch'"));
    rule = "graph outputs are defined";
  }
  SECTION("bodies exist") {
    attribute_map attributes;
    attributes.set("then_branch", subgraph());
    const value_id c = g.add_input("c", dtype::boolean, shape{});
    g.add_node(b.ops.at("", "If"), "branch", {c}, {g.add_value("out")}, attributes);
    rule = "bodies exist";
  }
  CHECK_THAT(complaint(g), Catch::Contains("breaks rule '" + rule + "'") || Catch::Contains("rule '" + rule + "'"));
}
