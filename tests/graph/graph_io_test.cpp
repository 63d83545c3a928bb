// The printed forms of graphs.
#include <string>

#include <catch2/catch.hpp>

#include <dnnopt/graph_io.hpp>
#include <dnnopt/ops/standard.hpp>

namespace {

using namespace dnnopt;

graph example(bool attributes_reversed) {
  const op_set ops = standard_ops();
  graph g;
  g.name = "a \"name\"";
  const value_id x = g.add_input("x", dtype::float32, shape{g.expressions().symbol("n"), 4});
  const value_id w = g.add_constant("w", tensor::of<float>({4, 1}, {1, -2.5f, 1e-7f, 0}));
  const value_id big = g.add_constant("big", tensor(dtype::float32, {3, 3}));
  const value_id y = g.add_value("y", dtype::float32, shape{g.expressions().symbol("n"), 1});
  attribute_map attributes;
  if (attributes_reversed) attributes.set("beta", 0.5f);
  attributes.set("alpha", 2.0f);
  if (!attributes_reversed) attributes.set("beta", 0.5f);
  g.add_node(ops.at("", "Gemm"), "product", {x, w, no_value}, {y}, attributes);
  const value_id z = g.add_value("z");
  g.add_node(ops.at("", "Identity"), "copy", {big}, {z});
  g.add_output(y);
  g.add_output(z);
  return g;
}

}  // namespace

TEST_CASE("a graph prints a line per node with its types", "[print]") {
  CHECK(to_string(example(false)) ==
        "graph \"a \\\"name\\\"\" (%x float32[n, 4])\n"
        "  %w = constant float32 4x1 [1, -2.5, 1e-07, 0]\n"
        "  %y float32[n, 1] = Gemm(%x, %w, -) {alpha=2, beta=0.5}\n"
        "  %big = constant float32 3x3\n"
        "  %z ?[*] = Identity(%big)\n"
        "  return %y, %z\n");
}

TEST_CASE("neither ids nor the order of attributes show", "[print]") {
  graph removed = example(true);
  const op_set ops = standard_ops();
  removed.remove_node(removed.add_node(ops.at("", "Relu"), "gone", {removed.inputs()[0]}, {removed.add_value("t")}));
  CHECK(to_string(removed) == to_string(example(false)));
  removed.compact();
  CHECK(to_string(removed) == to_string(example(false)));
}

TEST_CASE("DOT has a box per operator and an edge per reading", "[print]") {
  CHECK(to_dot(example(false)) ==
        "digraph \"a \\\"name\\\"\" {\n"
        "  node [shape=box, style=filled, fillcolor=white];\n"
        "  \"v0\" [shape=ellipse, label=\"x\\nfloat32[n, 4]\"];\n"
        "  \"n0\" [label=\"Gemm\\nproduct\\nw: float32[4, 1]\", fillcolor=\"#cfe2ff\"];\n"
        "  \"v0\" -> \"n0\" [label=\"float32[n, 4]\"];\n"
        "  \"n1\" [label=\"Identity\\ncopy\\nbig: float32[3, 3]\", fillcolor=\"#fff3cd\"];\n"
        "  \"out0\" [shape=ellipse, label=\"y\\nfloat32[n, 1]\"];\n"
        "  \"n0\" -> \"out0\";\n"
        "  \"out1\" [shape=ellipse, label=\"z\\n?[*]\"];\n"
        "  \"n1\" -> \"out1\";\n"
        "}\n");
}

TEST_CASE("attributes of every type print", "[print]") {
  CHECK(to_string(attribute(std::int64_t{-3})) == "-3");
  CHECK(to_string(attribute(0.1f)) == "0.1");
  CHECK(to_string(attribute(std::string("a\n"))) == "\"a\\n\"");
  CHECK(to_string(attribute(std::vector<std::int64_t>{1, 2})) == "[1, 2]");
  CHECK(to_string(attribute(std::vector<float>{1, 2.5f})) == "[1, 2.5]");
  CHECK(to_string(attribute(std::vector<std::string>{"p"})) == "[\"p\"]");
  CHECK(to_string(attribute(tensor::scalar(true))) == "bool scalar [true]");
  CHECK(to_string(attribute(std::vector<tensor>{tensor::scalar(1.0f)})) == "[float32 scalar [1]]");
  CHECK(to_string(attribute(subgraph())) == "graph \"\"");
}
