// What the importer makes of good files: names, order, bodies, functions, constants, symbols and tensor encodings.
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <unistd.h>

#include <catch2/catch.hpp>

#include <dnnopt/graph_io.hpp>
#include <dnnopt/mapped_file.hpp>
#include <dnnopt/onnx/adapt_opset.hpp>
#include <dnnopt/onnx/import.hpp>
#include <dnnopt/ops/standard.hpp>
#include <dnnopt/passes/verify.hpp>

#include <support/onnx_writer.hpp>

namespace {

using namespace dnnopt_tests;
using dnnopt::dtype;

dnnopt::import_options options() {
  dnnopt::import_options o;
  o.ops = dnnopt::standard_ops();
  return o;
}
dnnopt::imported_model import(const message& m) {
  dnnopt::imported_model made = dnnopt::import_model(m.bytes(), {}, options());
  dnnopt::verify(made.main, "import");
  return made;
}
std::string text(const message& m) { return dnnopt::to_string(import(m).main); }

/// The initializer of a model that reads it.
dnnopt::tensor initializer(const message& t, bool sparse = false) {
  message g = graph({node("Identity", {"t"}, {"y"})}, {}, {untyped("y")});
  g.with(sparse ? 15 : 5, t);
  const dnnopt::graph made = import(model(g, 25)).main;
  return made.facts(made.node_at(0).inputs[0]).constant;
}
std::string printed(const message& t, bool sparse = false) { return dnnopt::to_string(initializer(t, sparse)); }

}  // namespace

TEST_CASE("nodes may stand in any order", "[import]") {
  CHECK(text(model(graph({node("Relu", {"a"}, {"y"}), node("Abs", {"x"}, {"a"})}, {info("x")}, {info("y")}))) ==
        "graph \"test\" (%x float32[2])\n"
        "  %a float32[2] = Abs(%x)\n"
        "  %y float32[2] = Relu(%a)\n"
        "  return %y\n");
}

TEST_CASE("dims are numbers, named symbols or symbols of their own", "[import]") {
  const dnnopt::graph g = import(model(graph({node("Add", {"a", "b"}, {"y"})},
                                             {info("a", 1, {"n", "3"}), info("b", 1, {"n", "?"})}, {untyped("y")})))
                              .main;
  const auto& a = *g.facts(g.inputs()[0]).dims;
  const auto& b = *g.facts(g.inputs()[1]).dims;
  CHECK(a[0] == b[0]);
  CHECK(dnnopt::to_string(a) == "[n, 3]");
  CHECK(b[1].as_symbol().has_value());
  CHECK_FALSE(b[1] == b[0]);
  CHECK(dnnopt::to_string(*g.facts(g.outputs()[0]).dims) == "[n, 3]");
}

TEST_CASE("an input with an initializer is a constant by default", "[import]") {
  const auto made = import(model(
      graph({node("Add", {"x", "w"}, {"y"})}, {info("x"), info("w")}, {info("y")}, {float_tensor("w", {2}, {1, 2})})));
  CHECK(made.default_inputs == std::vector<std::string>{"w"});
  REQUIRE(made.main.inputs().size() == 1);
  CHECK(made.main.value_at(made.main.inputs()[0]).name == "x");
}

TEST_CASE("Constant nodes become constants", "[import]") {
  const auto made = import(model(
      graph({node("Constant", {}, {"a"}, {float_attribute("value_float", 2)}),
             node("Constant", {}, {"b"}, {floats_attribute("value_floats", {1, 2})}),
             node("Constant", {}, {"c"}, {int_attribute("value_int", 3)}),
             node("Constant", {}, {"d"}, {ints_attribute("value_ints", {4, 5})}),
             node("Constant", {}, {"e"}, {string_attribute("value_string", "s")}),
             node("Constant", {}, {"f"}, {tensor_attribute("value", int_tensor("", {6}))}),
             node("Constant", {}, {"g"}, {message{}.text(1, "value_strings").text(9, "p").text(9, "q").number(20, 8)})},
            {}, {untyped("a"), untyped("b"), untyped("c"), untyped("d"), untyped("e"), untyped("f"), untyped("g")})));
  CHECK(made.constant_nodes == 7);
  CHECK(made.main.node_count() == 0);
  std::string all;
  for (const auto id : made.main.outputs()) all += dnnopt::to_string(made.main.facts(id).constant) + "; ";
  CHECK(all ==
        "float32 scalar [2]; float32 2 [1, 2]; int64 scalar [3]; int64 2 [4, 5]; string scalar [\"s\"]; int64 1 [6]; "
        "string 2 [\"p\", \"q\"]; ");
}

TEST_CASE("bodies take what they capture as inputs, in one order, and constants as constants", "[import]") {
  const message then_branch = graph({node("Add", {"a", "w"}, {"t"})}, {}, {untyped("t")});
  // The inner If captures through two levels.
  const message inner = graph({node("Relu", {"a"}, {"i"})}, {}, {untyped("i")});
  const message else_branch =
      graph({node("If", {"c"}, {"m"}, {graph_attribute("then_branch", inner), graph_attribute("else_branch", inner)}),
             node("Mul", {"m", "b"}, {"e"})},
            {}, {untyped("e")});
  const message m =
      model(graph({node("If", {"c"}, {"y"},
                        {graph_attribute("then_branch", then_branch), graph_attribute("else_branch", else_branch)}),
                   node("Abs", {"x"}, {"a"}), node("Neg", {"x"}, {"b"})},
                  {info("x"), info("c", 9, {})}, {untyped("y")}, {float_tensor("w", {2}, {1, 2})}));
  CHECK(text(m) ==
        "graph \"test\" (%x float32[2], %c bool[])\n"
        "  %a float32[2] = Abs(%x)\n"
        "  %b float32[2] = Neg(%x)\n"
        "  %y ?[*] = If(%c; %a, %c, %b)\n"
        "    else_branch:\n"
        "      graph \"test\" (%a float32[2], %c bool[], %b float32[2])\n"
        "        %m ?[*] = If(%c; %a)\n"
        "          else_branch:\n"
        "            graph \"test\" (%a float32[2])\n"
        "              %i float32[2] = Relu(%a)\n"
        "              return %i\n"
        "          then_branch:\n"
        "            graph \"test\" (%a float32[2])\n"
        "              %i float32[2] = Relu(%a)\n"
        "              return %i\n"
        "        %e float32[*] = Mul(%m, %b)\n"
        "        return %e\n"
        "    then_branch:\n"
        "      graph \"test\" (%a float32[2], %c bool[], %b float32[2])\n"
        "        %w = constant float32 2 [1, 2]\n"
        "        %t float32[2] = Add(%a, %w)\n"
        "        return %t\n"
        "  return %y\n");
}

TEST_CASE("functions are inlined with their attributes, opsets, absent inputs and unread outputs", "[import]") {
  // F's opset has axes as an attribute; G calls F and passes its own attribute on.
  message m = model(graph({node("G", {"x"}, {"y", "z"}, {int_attribute("which", 0)}, "f")}, {info("x", 1, {"2", "3"})},
                          {untyped("y"), untyped("z")}));
  m.with(25,
         function("f", "F", {"a", "unused"}, {"s", "unread"}, {"axis", "keep"},
                  {node("Flatten", {"a"}, {"s"}, {reference("axis", "axis", 2)}),
                   node("Squeeze", {"a"}, {"unread"}, {ints_attribute("axes", {0}), reference("missing", "none", 2)})},
                  11)
             .with(11, int_attribute("axis", 1)));
  m.with(25, function("f", "G", {"p"}, {"q", "p"}, {"which"},
                      {node("F", {"p", ""}, {"q"}, {reference("axis", "which", 2)}, "f")}));
  // Squeeze of a dim that is not 1, which nobody reads
  CHECK(import(m).warnings.at(0).code == dnnopt::warning_code::dead_node);
  message good = model(graph({node("G", {"x"}, {"y", "z"}, {int_attribute("which", 0)}, "f")},
                             {info("x", 1, {"1", "3"})}, {untyped("y"), untyped("z")}));
  good.with(25, function("f", "F", {"a", "unused"}, {"s", "unread"}, {"axis"},
                         {node("Flatten", {"a"}, {"s"}, {reference("axis", "axis", 2)}),
                          node("Squeeze", {"a"}, {"unread"}, {ints_attribute("axes", {0})})},
                         11)
                    .with(11, int_attribute("axis", 1)));
  good.with(25, function("f", "G", {"p"}, {"q", "p"}, {"which"},
                         {node("F", {"p", ""}, {"q"}, {reference("axis", "which", 2)}, "f")}));
  CHECK(text(good) ==
        "graph \"test\" (%x float32[1, 3])\n"
        "  %y float32[1, 3] = Flatten(%x) {axis=0}\n"
        "  %y/unread/axes = constant int64 1 [0]\n"
        "  %y/unread float32[3] = Squeeze(%x, %y/unread/axes)\n"
        "  %z float32[1, 3] = Identity(%x)\n"
        "  return %y, %z\n");
}

TEST_CASE("operators without a row are expanded where they are functions", "[import]") {
  dnnopt::import_options few;
  const dnnopt::op_set all = dnnopt::standard_ops();
  for (const dnnopt::op_info* row : all.rows())
    if (row->name != "HardSwish" && row->name != "ReduceL2") few.ops.add(*row);
  const message m =
      model(graph({node("HardSwish", {"x"}, {"h"}), node("ReduceL2", {"h"}, {"y"})}, {info("x")}, {untyped("y")}));
  const std::string made = dnnopt::to_string(dnnopt::import_onnx(m.bytes(), {}, few));
  CHECK_THAT(made, Catch::Contains("HardSigmoid(%x)"));
  CHECK_THAT(made, Catch::Contains("= Mul(%x, "));
  CHECK_THAT(made, Catch::Contains("%y float32[1] = Sqrt("));
}

TEST_CASE("metadata, opset and producer are kept", "[import]") {
  message m = model(graph({node("Relu", {"x"}, {"y"})}, {info("x")}, {info("y")}), 9);
  m.text(2, "somebody").with(14, entry("key", "value")).with(8, opset(3, "com.example"));
  const dnnopt::graph g = import(m).main;
  CHECK(g.producer_name == "somebody");
  CHECK(g.metadata.at("key") == "value");
  CHECK(g.opsets.at("com.example") == 3);
  CHECK(g.opsets.at("") == dnnopt::onnx::newest_opset);
}

TEST_CASE("every tensor encoding gives its elements", "[import]") {
  using ints = std::vector<std::int64_t>;
  CHECK(printed(float_tensor("t", {2}, {1.5f, -2})) == "float32 2 [1.5, -2]");
  CHECK(printed(tensor_of("t", 1, {2}).packed_floats(4, {1.5f, -2})) == "float32 2 [1.5, -2]");
  CHECK(printed(tensor_of("t", 1, {2}).real(4, 1.5f).real(4, -2)) == "float32 2 [1.5, -2]");
  CHECK(printed(tensor_of("t", 11, {2}).packed_doubles(10, {0.25, -2})) == "float64 2 [0.25, -2]");
  CHECK(printed(tensor_of("t", 7, {2}).packed(7, {-1, std::int64_t{1} << 40})) == "int64 2 [-1, 1099511627776]");
  CHECK(printed(tensor_of("t", 7, {2}).number(7, -1).number(7, 5)) == "int64 2 [-1, 5]");
  CHECK(printed(tensor_of("t", 13, {1}).packed(11, {-1})) == "uint64 1 [18446744073709551615]");
  CHECK(printed(tensor_of("t", 12, {1}).packed(11, {4294967295})) == "uint32 1 [4294967295]");
  CHECK(printed(tensor_of("t", 6, {2}).packed(5, {-7, 7})) == "int32 2 [-7, 7]");
  CHECK(printed(tensor_of("t", 5, {2}).packed(5, {-7, 7})) == "int16 2 [-7, 7]");
  CHECK(printed(tensor_of("t", 3, {2}).packed(5, {-7, 7})) == "int8 2 [-7, 7]");
  CHECK(printed(tensor_of("t", 4, {1}).packed(5, {65535})) == "uint16 1 [65535]");
  CHECK(printed(tensor_of("t", 2, {2}).packed(5, {255, 0})) == "uint8 2 [255, 0]");
  CHECK(printed(tensor_of("t", 9, {2}).packed(5, {1, 0})) == "bool 2 [true, false]");
  CHECK(printed(tensor_of("t", 10, {2}).packed(5, {0x3C00, 0xC000})) == "float16 2 [1, -2]");
  CHECK(printed(tensor_of("t", 16, {2}).packed(5, {0x3F80, 0xC000})) == "bfloat16 2 [1, -2]");
  CHECK(printed(tensor_of("t", 17, {2}).packed(5, {0x38, 0xC0})) == "float8e4m3fn 2 [1, -2]");
  CHECK(printed(tensor_of("t", 18, {1}).packed(5, {0x40})) == "float8e4m3fnuz 1 [1]");
  CHECK(printed(tensor_of("t", 19, {2}).packed(5, {0x3C, 0xC0})) == "float8e5m2 2 [1, -2]");
  CHECK(printed(tensor_of("t", 20, {1}).packed(5, {0x40})) == "float8e5m2fnuz 1 [1]");
  CHECK(printed(tensor_of("t", 24, {1}).packed(5, {127})) == "float8e8m0 1 [1]");
  CHECK(printed(tensor_of("t", 21, {3}).packed(5, {0x2F, 0x01})) == "uint4 3 [15, 2, 1]");
  CHECK(printed(tensor_of("t", 22, {3}).packed(5, {0x2F, 0x01})) == "int4 3 [-1, 2, 1]");
  CHECK(printed(tensor_of("t", 22, {3}).text(9, "\x2F\x01")) == "int4 3 [-1, 2, 1]");
  CHECK(printed(tensor_of("t", 23, {2}).text(9, "\xA2")) == "float4e2m1 2 [1, -1]");
  CHECK(printed(tensor_of("t", 25, {4}).text(9, "\xE4")) == "uint2 4 [0, 1, 2, 3]");
  CHECK(printed(tensor_of("t", 26, {4}).text(9, "\xE4")) == "int2 4 [0, 1, -2, -1]");
  CHECK(printed(tensor_of("t", 8, {2}).text(6, "a").text(6, "b\"")) == "string 2 [\"a\", \"b\\\"\"]");
  CHECK(printed(tensor_of("t", 14, {1}).packed_floats(4, {1, 2})) == "complex64 1 ...");
  CHECK(printed(tensor_of("t", 15, {1}).packed_doubles(10, {1, 2})) == "complex128 1 ...");
  CHECK(printed(tensor_of("t", 1, {0, 3})) == "float32 0x3 []");
  // A byte beyond 1 is true, and no C++ bool holds it.
  CHECK(printed(tensor_of("t", 9, {3}).text(9, std::string("\x02\x00\x01", 3))) == "bool 3 [true, false, true]");
  const message values = float_tensor("t", {2}, {5, 6});
  CHECK(printed(message{}.with(1, values).with(2, int_tensor("", {3, 1})).packed(3, ints{2, 2}), true) ==
        "float32 2x2 [0, 6, 0, 5]");
  CHECK(
      printed(message{}.with(1, values).with(2, tensor_of("", 7, {2, 2}).packed(7, {0, 1, 1, 0})).packed(3, ints{2, 2}),
              true) == "float32 2x2 [0, 5, 6, 0]");
}

TEST_CASE("external data is mapped, and zeros stand in where that is asked", "[import]") {
  const auto folder = std::filesystem::temp_directory_path() / ("dnnopt_external_" + std::to_string(::getpid()));
  std::filesystem::create_directories(folder);
  const message m = model(
      graph({node("Add", {"x", "w"}, {"y"})}, {info("x")}, {info("y")},
            {external_tensor("w", {2}, {entry("location", "w.bin"), entry("offset", "4"), entry("length", "8")})}));
  dnnopt::import_options zeros = options();
  zeros.missing_data = dnnopt::onnx::missing_data::zeros;
  const auto missing = dnnopt::import_model(m.bytes(), folder, zeros);
  CHECK(missing.files.at(0).missing);
  CHECK(dnnopt::to_string(missing.main.facts(missing.main.node_at(0).inputs[1]).constant) == "float32 2 [0, 0]");

  std::ofstream(folder / "w.bin", std::ios::binary) << raw<float>({9, 1.5f, 2.5f});
  const auto found = dnnopt::import_model(m.bytes(), folder, options());
  const dnnopt::tensor& w = found.main.facts(found.main.node_at(0).inputs[1]).constant;
  CHECK(dnnopt::to_string(w) == "float32 2 [1.5, 2.5]");
  REQUIRE(found.references.size() == 1);
  CHECK(found.references[0].offset == 4);
  CHECK(found.files.at(0).file->contains(found.references[0].data));
  std::filesystem::remove_all(folder);
  // The map outlives the file's name.
  CHECK(w.data<float>()[1] == 2.5f);
}
