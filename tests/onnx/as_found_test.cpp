// Files that contradict themselves, or hold what takes no part: run as ONNX Runtime runs them, with a warning that
// names the place; what only a body that never runs gets wrong is no error.
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include <dnnopt/dnnopt.hpp>
#include <dnnopt/graph_io.hpp>
#include <dnnopt/passes/rdp.hpp>
#include <dnnopt/passes/verify.hpp>
#include <dnnopt/reference/evaluator.hpp>

#include <support/onnx_writer.hpp>

namespace {

using namespace dnnopt_tests;
using dnnopt::tensor;
using dnnopt::warning_code;

constexpr std::int64_t bool_type = 9;

dnnopt::imported_model import(const message& m, const std::vector<std::string>& overridden = {}) {
  dnnopt::import_options o;
  o.ops = dnnopt::standard_ops();
  o.overridden_inputs = overridden;
  dnnopt::imported_model made = dnnopt::import_model(m.bytes(), {}, o);
  dnnopt::verify(made.main, "import");
  return made;
}
dnnopt::model as_model(dnnopt::imported_model made) {
  dnnopt::model m;
  m.main = std::move(made.main);
  m.ops = dnnopt::standard_ops();
  m.default_inputs = std::move(made.default_inputs);
  m.warnings = std::move(made.warnings);
  return m;
}
tensor floats(dnnopt::dim_list dims, const std::vector<float>& values) {
  return tensor::of<float>(std::move(dims), values);
}

/// The only warning, whose text must hold `text`.
void check_warning(const std::vector<dnnopt::warning>& warnings, warning_code code, const std::string& node,
                   const std::string& text) {
  REQUIRE(warnings.size() == 1);
  CHECK(warnings[0].code == code);
  CHECK(warnings[0].node == node);
  CHECK_THAT(warnings[0].text, Catch::Contains(text));
}
void check_runs(const message& m, const std::vector<tensor>& inputs, const std::vector<std::string>& outputs) {
  const dnnopt::model loaded = as_model(import(m));
  for (const char* device : {"reference", "opencl"}) {
    INFO(device);
    dnnopt::compile_options options;
    options.device = device;
    dnnopt::session session = dnnopt::compile(loaded, options);
    dnnopt::named_tensors named;
    for (std::size_t i = 0; i < inputs.size(); ++i)
      named.add(loaded.main.value_at(loaded.main.inputs()[i]).name, inputs[i]);
    std::vector<std::string> got;
    for (const auto& [name, content] : session.run(named)) got.push_back(name + " " + dnnopt::to_string(content));
    CHECK(got == outputs);
  }
}

message chain(const message& output, const std::vector<message>& values = {}) {
  return model(
      graph({node("Relu", {"x"}, {"a"}), node("Neg", {"a"}, {"y"})}, {info("x", 1, {"2"})}, {output}, {}, values));
}

message branch(const std::string& op, const std::vector<std::string>& inputs) {
  return graph({node(op, inputs, {"r"})}, {}, {untyped("r")});
}
/// If whose then_branch multiplies x [2, 3] with itself, which no shape allows.
message doubtful(const std::vector<std::string>& dims) {
  return model(graph({node("If", {"c"}, {"y"},
                           {graph_attribute("then_branch", branch("MatMul", {"x", "x"})),
                            graph_attribute("else_branch", branch("Relu", {"x"}))})},
                     {info("x", 1, dims), info("c", bool_type, {})}, {untyped("y")}));
}

}  // namespace

TEST_CASE("what operators compute wins over declared dims", "[as found]") {
  const message output = chain(info("y", 1, {"3"}));
  check_warning(import(output).warnings, warning_code::stale_shape, "y", "declared [3], but Neg computes [2]");
  check_runs(output, {floats({2}, {1, -1})}, {"y float32 2 [-1, -0]"});

  const message inner = chain(untyped("y"), {info("a", 1, {"4", "1"}), info("nowhere", 1, {"7"})});
  check_warning(import(inner).warnings, warning_code::stale_shape, "a", "declared [4, 1], but Relu computes [2]");
  check_runs(inner, {floats({2}, {1, -1})}, {"y float32 2 [-1, -0]"});

  CHECK(import(chain(info("y", 1, {"n"}), {info("a", 1, {"2"})})).warnings.empty());
}

TEST_CASE("declared dims that propagation contradicts only later are stale too", "[as found]") {
  // Nothing is known of x when the file is read, so that the declaration of `a` stands until the shape is bound.
  message unknown = message{}.text(1, "x").with(2, message{}.with(1, message{}.number(1, float_type)));
  dnnopt::model m = as_model(import(model(graph({node("Relu", {"x"}, {"a"}), node("Neg", {"a"}, {"y"})}, {unknown},
                                                {untyped("y")}, {}, {info("a", 1, {"5"})}))));
  CHECK(m.warnings.empty());
  dnnopt::compile_options options;
  options.device = "reference";
  options.shapes["x"] = {2};
  dnnopt::session session = dnnopt::compile(m, options);
  check_warning(session.report().warnings, warning_code::stale_shape, "a", "declared [5], but Relu computes [2]");
  CHECK(dnnopt::to_string(*session.run({{"x", floats({2}, {1, 2})}}).find("y")) == "float32 2 [-1, -2]");
}

TEST_CASE("dims that only the file tells are not relied on", "[as found]") {
  // What Squeeze without axes leaves follows from the run; Shape of it must not be the constant that is declared, and
  // what is declared of the last output must not reach back.
  const message m = model(graph({node("Squeeze", {"x"}, {"s"}), node("Shape", {"s"}, {"d"}), node("Neg", {"s"}, {"n"}),
                                 node("Relu", {"n"}, {"y"}), node("Squeeze", {"x"}, {"z"})},
                                {info("x", 1, {"a", "b"})},
                                {info("d", int64_type, {"2"}), info("y", 1, {"2", "3"}), info("z", 1, {"7"})}, {},
                                {info("s", 1, {"2", "3"})}));
  check_runs(m, {floats({2, 2}, {1, -1, 2, -2})},
             {"d int64 2 [2, 2]", "y float32 2x2 [0, 1, 0, 2]", "z float32 2x2 [1, -1, 2, -2]"});
  check_runs(m, {floats({1, 2}, {1, -1})}, {"d int64 1 [2]", "y float32 2 [0, 1]", "z float32 2 [1, -1]"});
}

TEST_CASE("constants declared of a sequence's element are not relied on either", "[as found]") {
  const message m = model(graph({node("SequenceConstruct", {"x", "x"}, {"s"}), node("SequenceAt", {"s", "i"}, {"e"}),
                                 node("Shape", {"e"}, {"d"}), node("Neg", {"e"}, {"y"})},
                                {info("x", 1, {"a", "b"})}, {untyped("d"), info("y", 1, {"2", "3"})},
                                {int_tensor("i", {1})}, {info("e", 1, {"2", "3"})}));
  check_runs(m, {floats({1, 2}, {1, -1})}, {"d int64 2 [1, 2]", "y float32 1x2 [-1, 1]"});
}

TEST_CASE("branches of other ranks than declared are taken as they are", "[as found]") {
  const message taken = graph({node("Squeeze", {"x"}, {"r"})}, {}, {info("r", 1, {"n"})});
  const message other = graph({node("Relu", {"x"}, {"r"})}, {}, {info("r", 1, {"n"})});
  const message m = model(
      graph({node("If", {"c"}, {"y"}, {graph_attribute("then_branch", taken), graph_attribute("else_branch", other)})},
            {info("x", 1, {"a", "b"}), info("c", bool_type, {})}, {info("y", 1, {"n"})}));
  const auto condition = [](bool value) { return tensor::scalar(value); };
  check_runs(m, {floats({1, 1}, {3}), condition(true)}, {"y float32 scalar [3]"});
  check_runs(m, {floats({1, 1}, {3}), condition(false)}, {"y float32 1x1 [3]"});
}

TEST_CASE("a negative dim is an unknown one", "[as found]") {
  const message m = model(graph({node("Relu", {"x"}, {"y"})}, {info("x", 1, {"-1", "2"})}, {untyped("y")}));
  check_warning(import(m).warnings, warning_code::negative_dim, "x", "dim of -1");
  check_runs(m, {floats({1, 2}, {1, -1})}, {"y float32 1x2 [1, 0]"});
  check_runs(m, {floats({2, 2}, {1, -1, 2, 3})}, {"y float32 2x2 [1, 0, 2, 3]"});
}

TEST_CASE("dims of the name '?' are unknown, each for itself", "[as found]") {
  message dims;
  for (int k = 0; k < 2; ++k) dims.with(1, message{}.text(2, "?"));
  const message x = message{}.text(1, "x").with(2, message{}.with(1, message{}.number(1, float_type).with(2, dims)));
  const message m = model(graph({node("Relu", {"x"}, {"y"})}, {x}, {untyped("y")}));
  check_runs(m, {floats({2, 1}, {1, -1})}, {"y float32 2x1 [1, 0]"});
}

TEST_CASE("nodes that lead to no output need not be known", "[as found]") {
  const message m =
      model(graph({node("Odd", {"x"}, {"d"}, {}, "foo.bar"), node("Abs", {"d"}, {"e"}),
                   node("MatMul", {"x", "x"}, {"f"}), node("Relu", {"x"}, {"y"}), node("Neg", {"y"}, {"g"})},
                  {info("x", 1, {"2", "3"})}, {info("y", 1, {"2", "3"})}));
  const dnnopt::imported_model made = import(m);
  REQUIRE(made.dead_nodes.size() == 3);
  CHECK(made.dead_nodes[0].domain == "foo.bar");
  CHECK(made.dead_nodes[0].op_type == "Odd");
  CHECK_THAT(made.dead_nodes[0].reason, Catch::Contains("not known"));
  CHECK(made.warnings.size() == 3);
  for (const dnnopt::warning& w : made.warnings) CHECK(w.code == warning_code::dead_node);
  // A dead node that is right stays for passes to remove.
  CHECK(made.main.node_count() == 2);
  check_runs(m, {floats({2, 3}, {1, -1, 2, -2, 3, -3})}, {"y float32 2x3 [1, 0, 2, 0, 3, 0]"});

  const message live = model(graph({node("Odd", {"x"}, {"y"}, {}, "foo.bar")}, {info("x")}, {untyped("y")}));
  CHECK_THROWS_WITH(import(live), Catch::Contains("foo.bar"));
}

TEST_CASE("a dead node in a body, and one in a function, are left out too", "[as found]") {
  const message body = graph({node("Odd", {"x"}, {"d"}), node("Relu", {"x"}, {"r"})}, {}, {untyped("r")});
  message m = model(
      graph({node("If", {"c"}, {"i"}, {graph_attribute("then_branch", body), graph_attribute("else_branch", body)}),
             node("F", {"i"}, {"y"}, {}, "f")},
            {info("x"), info("c", bool_type, {})}, {untyped("y")}));
  m.with(25, function("f", "F", {"a"}, {"b", "unwanted"}, {},
                      {node("Odder", {"a"}, {"unwanted"}), node("Neg", {"a"}, {"b"})}));
  const dnnopt::imported_model made = import(m);
  CHECK(made.dead_nodes.size() == 3);
  check_runs(m, {floats({2}, {1, -1}), tensor::scalar(true)}, {"y float32 2 [-1, -0]"});
}

TEST_CASE("a branch whose shapes contradict each other is an error only where it is taken", "[as found]") {
  const message m = doubtful({"2", "3"});
  const dnnopt::model loaded = as_model(import(m));
  check_warning(loaded.warnings, warning_code::inconsistent_body, "r", "MatMul");
  const tensor x = floats({2, 3}, {1, -1, 2, -2, 3, -3});
  check_runs(m, {x, tensor::scalar(false)}, {"y float32 2x3 [1, 0, 2, 0, 3, 0]"});
  for (const char* device : {"reference", "opencl"}) {
    dnnopt::compile_options options;
    options.device = device;
    dnnopt::session session = dnnopt::compile(loaded, options);
    CHECK_THROWS_WITH(session.run({{"x", x}, {"c", tensor::scalar(true)}}), Catch::Contains("MatMul"));
  }
}

TEST_CASE("the same once a symbolic dim is bound, and with the condition known", "[as found]") {
  const dnnopt::model open = as_model(import(doubtful({"n", "3"})));
  CHECK(open.warnings.empty());
  dnnopt::compile_options options;
  options.device = "reference";
  options.dims["n"] = 2;
  dnnopt::session session = dnnopt::compile(open, options);
  check_warning(session.report().warnings, warning_code::inconsistent_body, "y", "then_branch");
  const tensor x = floats({2, 3}, {1, -1, 2, -2, 3, -3});
  CHECK(session.run({{"x", x}, {"c", tensor::scalar(false)}}).find("y")->dims() == dnnopt::dim_list{2, 3});

  for (const bool taken : {false, true}) {
    message body = graph({node("If", {"c"}, {"y"},
                               {graph_attribute("then_branch", branch("MatMul", {"x", "x"})),
                                graph_attribute("else_branch", branch("Relu", {"x"}))})},
                         {info("x", 1, {"2", "3"})}, {untyped("y")},
                         {tensor_of("c", bool_type, {}).text(9, std::string(1, taken ? '\1' : '\0'))});
    const dnnopt::model known = as_model(import(model(body)));
    dnnopt::compile_options plain;
    plain.device = "reference";
    if (taken)
      CHECK_THROWS_WITH(dnnopt::compile(known, plain), Catch::Contains("MatMul"));
    else
      CHECK(dnnopt::compile(known, plain).run({{"x", x}}).find("y")->dims() == dnnopt::dim_list{2, 3});
  }
}

TEST_CASE("a Loop that carries nothing may leave its condition out", "[as found]") {
  const message body = graph({node("Identity", {"go"}, {"on"}), node("Relu", {"x"}, {"part"})},
                             {info("turn", int64_type, {}), info("go", 9, {})}, {info("on", 9, {}), untyped("part")});
  const message m = model(graph({node("Loop", {"count", ""}, {"y"}, {graph_attribute("body", body)})},
                                {info("count", int64_type, {}), info("x")}, {untyped("y")}));
  check_runs(m, {tensor::scalar(std::int64_t{3}), floats({2}, {-1, 2})}, {"y float32 3x2 [0, 2, 0, 2, 0, 2]"});
}

TEST_CASE("a carried value may change its dims whatever the body declares", "[as found]") {
  const message body =
      graph({node("Concat", {"v", "v"}, {"w"}, {int_attribute("axis", 0)}), node("Identity", {"k"}, {"go"})},
            {info("i", int64_type, {}), info("k", bool_type, {}), info("v", 1, {"1"})}, {untyped("go"), untyped("w")});
  const message m = model(graph({node("Loop", {"n", "", "x"}, {"y"}, {graph_attribute("body", body)})},
                                {info("x", 1, {"1"})}, {info("y", 1, {"?"})}, {int_tensor("n", {2})}));
  check_runs(m, {floats({1}, {3})}, {"y float32 4 [3, 3, 3, 3]"});
}

TEST_CASE("of initializers of one name the last counts, and unnamed ones are left out", "[as found]") {
  const message twice = model(graph({node("Add", {"x", "w"}, {"y"})}, {info("x", 1, {"1"})}, {untyped("y")},
                                    {float_tensor("w", {1}, {1}), float_tensor("w", {1}, {2})}));
  check_warning(import(twice).warnings, warning_code::duplicate_initializer, "w", "'w'");
  check_runs(twice, {floats({1}, {1})}, {"y float32 1 [3]"});

  const message unnamed =
      model(graph({node("Relu", {"x"}, {"y"})}, {info("x", 1, {"1"})}, {untyped("y")}, {float_tensor("", {1}, {1})}));
  check_warning(import(unnamed).warnings, warning_code::unnamed_initializer, "", "no name");
  check_runs(unnamed, {floats({1}, {1})}, {"y float32 1 [1]"});
}

TEST_CASE("outputs may be inputs, initializers, listed twice; inputs may be read by nothing", "[as found]") {
  const message m =
      model(graph({node("Relu", {"x"}, {"y"})}, {info("x", 1, {"1"}), info("unread", 1, {"3"})},
                  {untyped("y"), info("x", 1, {"1"}), untyped("w"), untyped("y")}, {float_tensor("w", {1}, {7})}));
  CHECK(import(m).warnings.empty());
  check_runs(m, {floats({1}, {-2}), floats({3}, {1, 2, 3})},
             {"y float32 1 [0]", "x float32 1 [-2]", "w float32 1 [7]", "y float32 1 [0]"});
}

TEST_CASE("an initializer that is an input is a default, which IR version 4 lets a run override", "[as found]") {
  const auto with_default = [](std::int64_t ir) {
    const message g = graph({node("Add", {"x", "w"}, {"y"})}, {info("x", 1, {"1"}), info("w", 1, {"1"})},
                            {untyped("y")}, {float_tensor("w", {1}, {10})});
    return message{}.number(1, ir).with(8, opset(9)).with(7, g);
  };
  check_runs(with_default(3), {floats({1}, {1})}, {"y float32 1 [11]"});
  const dnnopt::model fixed = as_model(import(with_default(8)));
  CHECK(fixed.default_inputs == std::vector<std::string>{"w"});
  const dnnopt::named_tensors both{{"x", floats({1}, {1})}, {"w", floats({1}, {5})}};
  CHECK_THROWS_WITH(dnnopt::compile(fixed, {.device = "reference"}).run(both), Catch::Contains("overridden_inputs"));
  const dnnopt::model open = as_model(import(with_default(8), {"w"}));
  for (const char* device : {"reference", "opencl"}) {
    dnnopt::compile_options options;
    options.device = device;
    CHECK(dnnopt::to_string(*dnnopt::compile(open, options).run(both).find("y")) == "float32 1 [6]");
  }
  CHECK_THROWS_WITH(import(with_default(3), {"w"}), Catch::Contains("IR version 3"));
  CHECK_THROWS_WITH(import(with_default(8), {"x"}), Catch::Contains("no input 'x' with a default value"));
}

TEST_CASE("names may be empty, opsets of unused domains stated, that of the first IR versions not", "[as found]") {
  message g;
  g.with(1, node("Relu", {"a"}, {"y"})).with(1, node("Abs", {"x"}, {"a"}));
  g.with(11, info("x", 1, {"1"})).with(12, untyped("y"));
  check_runs(message{}.number(1, 8).with(8, opset(13)).with(8, opset(7, "foo.bar")).with(7, g), {floats({1}, {-2})},
             {"y float32 1 [2]"});
  const dnnopt::imported_model old = import(
      message{}.number(1, 2).with(7, graph({node("Not", {"b"}, {"y"})}, {info("b", bool_type)}, {untyped("y")})));
  check_warning(old.warnings, warning_code::missing_opset, "test", "IR version 2");
}

TEST_CASE("negative pads crop before a frame repeats what is left", "[as found]") {
  // As ONNX Runtime computes them.
  struct expectation {
    const char* mode;
    std::vector<std::int64_t> pads;
    const char* result;
  };
  for (const expectation& e : std::vector<expectation>{{"wrap", {-2, 3}, "[3, 4, 3, 4, 3]"},
                                                       {"wrap", {3, -2}, "[2, 1, 2, 1, 2]"},
                                                       {"wrap", {-3, 2}, "[4, 4, 4]"},
                                                       {"reflect", {-2, 1}, "[3, 4, 3]"},
                                                       {"reflect", {1, -2}, "[2, 1, 2]"},
                                                       {"reflect", {-1, 2}, "[2, 3, 4, 3, 2]"},
                                                       {"edge", {3, -2}, "[1, 1, 1, 1, 2]"},
                                                       {"constant", {-2, 1}, "[3, 4, 0]"}}) {
    INFO(e.mode << " " << e.pads[0] << " " << e.pads[1]);
    const std::vector<message> nodes{node("Pad", {"x", "p"}, {"y"}, {string_attribute("mode", e.mode)})};
    const std::string expected = "y float32 " + std::to_string(4 + e.pads[0] + e.pads[1]) + " " + e.result;
    check_runs(model(graph(nodes, {info("x", 1, {"4"})}, {untyped("y")}, {int_tensor("p", e.pads)})),
               {floats({4}, {1, 2, 3, 4})}, {expected});
    check_runs(model(graph(nodes, {info("x", 1, {"n"}), info("p", int64_type, {"2"})}, {untyped("y")})),
               {floats({4}, {1, 2, 3, 4}), tensor::of<std::int64_t>({2}, e.pads)}, {expected});
  }
}

TEST_CASE("a slice backwards from the last of no elements is empty", "[as found]") {
  for (const char* dim : {"0", "n"}) {
    const message m =
        model(graph({node("Slice", {"x", "s", "e", "a", "t"}, {"y"})}, {info("x", 1, {dim, "3"})}, {untyped("y")},
                    {int_tensor("s", {-1}), int_tensor("e", {std::numeric_limits<std::int64_t>::min()}),
                     int_tensor("a", {0}), int_tensor("t", {-1})}));
    check_runs(m, {floats({0, 3}, {})}, {"y float32 0x3 []"});
  }
}

TEST_CASE("Scan of opset 8 has a batch dimension and sequence lengths", "[as found]") {
  const message body = graph({node("Add", {"s", "e"}, {"t"}), node("Mul", {"t", "c"}, {"o"})},
                             {info("s", 1, {"1"}), info("e", 1, {"1"})}, {untyped("t"), untyped("o")});
  const std::vector<message> scan{
      node("Neg", {"m"}, {"c"}),
      node("Scan", {"n", "x", "q"}, {"y", "z"}, {graph_attribute("body", body), int_attribute("num_scan_inputs", 1)})};
  const std::vector<message> inputs{info("x", 1, {"2", "1"}), info("q", 1, {"2", "3", "1"})};
  const std::vector<tensor> values{floats({2, 1}, {1, 10}), floats({2, 3, 1}, {1, 2, 3, 4, 5, 6})};
  const message one = float_tensor("m", {1}, {-1});
  check_runs(model(graph(scan, inputs, {untyped("y"), untyped("z")}, {int_tensor("n", {3, 1}), one}), 8), values,
             {"y float32 2x1 [7, 14]", "z float32 2x3x1 [2, 4, 7, 14, 0, 0]"});
  std::vector<message> whole = scan;
  whole[1] =
      node("Scan", {"", "x", "q"}, {"y", "z"},
           {graph_attribute("body", body), int_attribute("num_scan_inputs", 1), ints_attribute("directions", {1})});
  check_runs(model(graph(whole, inputs, {untyped("y"), untyped("z")}, {one}), 8), values,
             {"y float32 2x1 [7, 25]", "z float32 2x3x1 [4, 6, 7, 16, 21, 25]"});
}

TEST_CASE("a model keeps the opsets that its file states", "[as found]") {
  const message m = model(graph({node("Relu", {"x"}, {"y"})}, {info("x")}, {untyped("y")}), 9)
                        .with(8, message{}.text(1, "ai.onnx.ml").number(2, 2));
  const dnnopt::imported_model made = import(m);
  CHECK(made.file_opsets == std::map<std::string, std::int64_t>{{"", 9}, {"ai.onnx.ml", 2}});
  CHECK(made.main.opsets.at("") > 9);
}
