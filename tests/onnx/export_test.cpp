// Exported models read back as the same graphs; blocks become functions; constants stay in their files.
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include <unistd.h>

#include <catch2/catch.hpp>

#include <dnnopt/graph_io.hpp>
#include <dnnopt/onnx/export.hpp>
#include <dnnopt/onnx/import.hpp>
#include <dnnopt/ops/standard.hpp>
#include <dnnopt/passes/verify.hpp>

#include <support/onnx_writer.hpp>

namespace {

using namespace dnnopt;
namespace w = dnnopt_tests;

struct folder {
  std::filesystem::path path = std::filesystem::temp_directory_path() / ("dnnopt_export_" + std::to_string(::getpid()));
  folder() { std::filesystem::create_directories(path); }
  folder(const folder&) = delete;
  folder& operator=(const folder&) = delete;
  ~folder() { std::filesystem::remove_all(path); }
};

import_options options() {
  import_options o;
  o.ops = standard_ops();
  return o;
}

graph round_trip(const graph& g, const folder& f) {
  export_onnx(g, f.path / "out.onnx");
  graph back = import_onnx(f.path / "out.onnx", options());
  verify(back, "import");
  return back;
}

std::string content(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// A fused block as passes make it.
struct block_op {
  static constexpr std::string_view domain = "dnnopt";
  static constexpr std::string_view name = "Block";
  static constexpr op_arity arity{0, variadic, 1, variadic};
  static constexpr mapping_type mapping = mapping_type::many_to_many;
  static constexpr layout_class layout = layout_class::ild_variable;
  static constexpr dynamism_class dynamism = dynamism_class::isdos;
  static constexpr computation_kind kind = computation_kind::other;
  static void infer(const node_facts&, std::span<value_facts>) {}
};

}  // namespace

TEST_CASE("a graph with bodies, captures, small types and attributes comes back as it was", "[export]") {
  const folder f;
  const w::message then_branch = w::graph({w::node("Add", {"a", "w"}, {"t"})}, {}, {w::untyped("t")});
  const w::message else_branch = w::graph({}, {}, {w::untyped("a")});  // gives out what it captures
  const w::message m = w::model(w::graph(
      {w::node("Abs", {"x"}, {"a"}),
       w::node("If", {"c"}, {"y"},
               {w::graph_attribute("then_branch", then_branch), w::graph_attribute("else_branch", else_branch)}),
       w::node("Clip", {"x", "", "top"}, {"z"}), w::node("DequantizeLinear", {"q", "scale"}, {"d"}),
       w::node("Pad", {"x", "pads"}, {"p"}, {w::string_attribute("mode", "edge")})},
      {w::info("x", 1, {"n", "2"}), w::info("c", 9, {})},
      {w::untyped("y"), w::untyped("z"), w::untyped("d"), w::untyped("p")},
      {w::float_tensor("w", {2}, {1, 2}), w::float_tensor("top", {}, {6}),
       w::tensor_of("q", 22, {3}).text(9, "\x2F\x01"), w::float_tensor("scale", {}, {0.5f}),
       w::int_tensor("pads", {0, 1, 0, 1})}));
  const graph g = import_onnx(m.bytes(), {}, options());
  const graph back = round_trip(g, f);
  // The body's output that was captured is copied in the body, as ONNX wants it.
  std::string expected = to_string(g);
  const std::string bare = "        return %a\n";
  REQUIRE(expected.find(bare) != std::string::npos);
  expected.replace(expected.find(bare), bare.size(),
                   "        %a_output float32[n, 2] = Identity(%a)\n        return %a_output\n");
  CHECK(to_string(back) == expected);
  CHECK(to_string(round_trip(back, f)) == to_string(back));
}

TEST_CASE("a block becomes a function with its large constants as arguments", "[export]") {
  const folder f;
  const op_set ops = standard_ops();
  graph g;
  const value_id x = g.add_input("x", dtype::float32, shape{2, 32});
  auto body = std::make_shared<graph>(g.shared_expressions());
  const value_id in = body->add_input("x", dtype::float32, shape{2, 32});
  const value_id half = body->add_constant("half", tensor::scalar(0.5f));
  const value_id table = body->add_constant("table", tensor(dtype::float32, {32}));
  const value_id scaled = body->add_value("scaled");
  const value_id sum = body->add_value("sum");
  body->add_node(ops.at("", "Mul"), "", {in, half}, {scaled});
  body->add_node(ops.at("", "Add"), "", {scaled, table}, {sum});
  body->add_output(sum);
  const value_id y = g.add_value("y", dtype::float32, shape{2, 32});
  attribute_map attributes;
  attributes.set("body", subgraph(body));
  g.add_node(op_row<block_op>, "fused", {x}, {y}, attributes);
  g.add_output(y);
  const graph back = round_trip(g, f);
  CHECK(to_string(back) ==
        "graph \"graph\" (%x float32[2, 32])\n"
        "  %fused/half = constant float32 scalar [0.5]\n"
        "  %fused/scaled float32[2, 32] = Mul(%x, %fused/half)\n"
        "  %fused/table = constant float32 32\n"
        "  %y float32[2, 32] = Add(%fused/scaled, %fused/table)\n"
        "  return %y\n");
  CHECK_THAT(content(f.path / "out.onnx"), Catch::Contains("Block_0_Mul_Add"));
}

TEST_CASE("unchanged constants stay in their file, new large ones go to one of their own", "[export]") {
  const folder f;
  std::ofstream(f.path / "w.bin", std::ios::binary) << std::string(4096, '\x3f');
  const w::message m =
      w::model(w::graph({w::node("Add", {"x", "w"}, {"y"})}, {w::info("x", 1, {"1024"})}, {w::info("y", 1, {"1024"})},
                        {w::external_tensor("w", {1024}, {w::entry("location", "w.bin")})}));
  imported_model model = import_model(m.bytes(), f.path, options());
  export_options e;
  e.files = model.files;
  e.references = model.references;
  e.folder = f.path;
  export_onnx(model.main, f.path / "same.onnx", e);
  CHECK(std::filesystem::file_size(f.path / "same.onnx") < 1000);
  CHECK_FALSE(std::filesystem::exists(f.path / "same.onnx.data"));

  const auto values = [](const graph& g) {
    const auto data = g.facts(g.node_at(0).inputs[1]).constant.data<float>();
    return std::vector<float>(data.begin(), data.end());
  };
  const std::vector<float> before = values(model.main);
  CHECK(values(import_onnx(f.path / "same.onnx", options())) == before);

  // In another folder the file cannot be named, so the data travels along.
  std::filesystem::create_directories(f.path / "other");
  e.largest_inline = 1000;
  export_onnx(model.main, f.path / "other" / "far.onnx", e);
  CHECK(std::filesystem::file_size(f.path / "other" / "far.onnx.data") == 4096);
  CHECK(values(import_onnx(f.path / "other" / "far.onnx", options())) == before);

  // A changed constant is written anew.
  tensor changed = model.main.facts(model.main.node_at(0).inputs[1]).constant;
  changed.mutable_data<float>()[3] = 42;
  model.main.facts(model.main.node_at(0).inputs[1]).constant = changed;
  e.largest_inline = std::size_t{1} << 20;
  export_onnx(model.main, f.path / "changed.onnx", e);
  CHECK(values(import_onnx(f.path / "changed.onnx", options()))[3] == 42);
  CHECK_THROWS_AS(export_onnx(model.main, f.path / "none" / "x.onnx"), error);
}

TEST_CASE("the stated opset is the oldest that knows the graph's forms", "[export]") {
  const auto opset_of = [](const w::message& body) {
    const graph g = import_onnx(w::model(body, 28).bytes(), {}, options());
    return onnx::opset_to_export(g);
  };
  const w::message x = w::info("x", 1, {"2"});
  CHECK(opset_of(w::graph({w::node("Relu", {"x"}, {"y"})}, {x}, {w::untyped("y")})) == 21);
  CHECK(opset_of(w::graph({w::node("Swish", {"x"}, {"y"})}, {x}, {w::untyped("y")})) == 24);
  CHECK(opset_of(w::graph({w::node("Cast", {"x"}, {"y"}, {w::int_attribute("to", 25)})}, {x}, {w::untyped("y")})) ==
        25);
  CHECK(onnx::ir_version_of(21) == 10);
  CHECK(onnx::ir_version_of(28) == 14);
}

TEST_CASE("a mask of keys alone is spread over queries before it is written", "[export]") {
  const folder f;
  const auto written = [&](const std::string& queries, const std::vector<std::string>& mask) {
    const w::message q = w::info("q", 1, {"2", "3", queries, "8"});
    const w::message kv = w::info("kv", 1, {"2", "3", "5", "8"});
    const graph g = import_onnx(w::model(w::graph({w::node("Attention", {"q", "kv", "kv", "mask"}, {"y"})},
                                                  {q, kv, w::info("mask", 1, mask)}, {w::untyped("y")}),
                                         23)
                                    .bytes(),
                                {}, options());
    return to_string(round_trip(g, f));
  };
  // Known extents are a constant, others are read from the queries' shape.
  CHECK_THAT(written("4", {"2", "1", "1", "5"}),
             Catch::Contains("%mask_spread float32[2, 1, 4, 5] = Expand(%mask, %mask_extents)") &&
                 Catch::Contains("= Attention(%q, %kv, %kv, %mask_spread)"));
  CHECK_THAT(written("4", {"5"}), Catch::Contains("%mask_spread float32[4, 5] = Expand(%mask, %mask_extents)"));
  CHECK_THAT(written("n", {"2", "1", "1", "5"}),
             Catch::Contains("%mask_spread float32[2, 1, n, 5] = Expand(%mask, %mask_extents)") &&
                 Catch::Contains("= Attention(%q, %kv, %kv, %mask_spread)"));
  for (const std::string& whole : {written("4", {"4", "5"}), written("1", {"2", "1", "1", "5"})})
    CHECK_THAT(whole, !Catch::Contains("Expand"));
}
