// Forms of older opsets become the newest form: one case per row of the adapter table.
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include <dnnopt/graph_io.hpp>
#include <dnnopt/onnx/import.hpp>
#include <dnnopt/ops/standard.hpp>
#include <dnnopt/passes/verify.hpp>

#include <support/onnx_writer.hpp>

namespace {

using namespace dnnopt_tests;

struct adapted {
  const char* name;
  std::int64_t opset;
  message body;
  std::vector<const char*> lines;  // that the printed graph holds
};

message one(const message& n, const std::vector<message>& inputs, const std::vector<message>& initializers = {},
            const char* output = "y") {
  return graph({n}, inputs, {untyped(output)}, initializers);
}
const std::vector<std::string> image{"1", "4", "8", "8"};

/// Opsets 1 to 6, and operators that ONNX gave up.
std::vector<adapted> first_opsets() {
  const message x = info("x", 1, image);
  const message channels = info("s", 1, {"4"});
  return {
      {"Relu 1", 5, one(node("Relu", {"x"}, {"y"}, {ints_attribute("consumed_inputs", {0})}), {x}), {"= Relu(%x)\n"}},
      {"Add 6 along an axis",
       6,
       one(node("Add", {"x", "s"}, {"y"}, {int_attribute("broadcast", 1), int_attribute("axis", 1)}), {x, channels}),
       {"constant int64 2 [1, 2]", "= Add(%x, %y/Unsqueeze)\n"}},
      {"Mul 1 along the last axes",
       1,
       one(node("Mul", {"x", "s"}, {"y"}, {int_attribute("broadcast", 1)}), {x, info("s", 1, {"8"})}),
       {"= Mul(%x, %s)\n"}},
      {"Pow 1 with an axis from behind",
       6,
       one(node("Pow", {"x", "s"}, {"y"}, {int_attribute("broadcast", 1), int_attribute("axis", -3)}), {x, channels}),
       {"= Pow(%x, %y/Unsqueeze)\n"}},
      {"PRelu 6 of channels", 6, one(node("PRelu", {"x", "s"}, {"y"}), {x, channels}), {"= PRelu(%x, %y/Unsqueeze)\n"}},
      {"Gemm 6",
       6,
       one(node("Gemm", {"a", "b", "c"}, {"y"}, {int_attribute("broadcast", 1)}),
           {info("a", 1, {"2", "3"}), info("b", 1, {"3", "4"}), info("c", 1, {"4"})}),
       {"float32[2, 4] = Gemm(%a, %b, %c)\n"}},
      {"BatchNormalization 6",
       6,
       one(node("BatchNormalization", {"x", "s", "b", "m", "v"}, {"y"}, {int_attribute("is_test", 1)}),
           {x, channels, info("b", 1, {"4"}), info("m", 1, {"4"}), info("v", 1, {"4"})}),
       {"= BatchNormalization(%x, %s, %b, %m, %v)\n"}},
      {"BatchNormalization 7 of every element",
       7,
       one(node("BatchNormalization", {"x", "s", "b", "m", "v"}, {"y"}, {int_attribute("spatial", 0)}),
           {info("x", 1, {"2", "3"}), info("s", 1, {"3"}), info("b", 1, {"3"}), info("m", 1, {"3"}),
            info("v", 1, {"3"})}),
       {"= Sqrt(", "= Div(%s, ", "= Sub(%x, %m)", "= Add(%y/Mul, %b)\n"}},
      {"Cast 1", 5, one(node("Cast", {"x"}, {"y"}, {string_attribute("to", "DOUBLE")}), {x}), {"= Cast(%x) {to=11}\n"}},
      {"Cast 1 to a half", 1, one(node("Cast", {"x"}, {"y"}, {string_attribute("to", "FLOAT16")}), {x}), {"{to=10}\n"}},
      {"Concat 1", 3, one(node("Concat", {"x", "x"}, {"y"}), {x}), {"float32[1, 8, 8, 8] = Concat(%x, %x) {axis=1}\n"}},
      {"Dropout 6", 6, one(node("Dropout", {"x"}, {"y"}, {int_attribute("is_test", 1)}), {x}), {"= Dropout(%x)\n"}},
      {"LpPool 1",
       1,
       one(node("LpPool", {"x"}, {"y"}, {float_attribute("p", 3), ints_attribute("kernel_shape", {2, 2})}), {x}),
       {"p=3"}},
      {"Pad 1",
       1,
       one(node("Pad", {"x"}, {"y"}, {ints_attribute("paddings", {0, 0, 1, 1, 0, 0, 1, 1})}), {x}),
       {"float32[1, 4, 10, 10] = Pad(%x, %y/pads)\n"}},
      {"Reshape 1",
       4,
       one(node("Reshape", {"x"}, {"y"}, {ints_attribute("shape", {4, -1})}), {x}),
       {"float32[4, 64] = Reshape(%x, %y/shape)\n"}},
      {"Tile 1",
       5,
       one(node("Tile", {"x", "n", "a"}, {"y"}), {x}, {int_tensor("n", {3}), int_tensor("a", {1})}),
       {"constant int64 4 [1, 3, 1, 1]", "float32[1, 12, 8, 8] = Tile(%x, %y/repeats)\n"}},
      {"Upsample 1",
       6,
       one(node("Upsample", {"x"}, {"y"}, {float_attribute("width_scale", 2), float_attribute("height_scale", 3)}),
           {x}),
       {"constant float32 4 [1, 1, 3, 2]", "= Resize("}},
      {"RNN 1",
       6,
       one(node("RNN", {"x", "w", "r"}, {"y"}, {int_attribute("output_sequence", 1), int_attribute("hidden_size", 2)}),
           {info("x", 1, {"3", "1", "4"}), info("w", 1, {"1", "2", "4"}), info("r", 1, {"1", "2", "2"})}),
       {"= RNN(%x, %w, %r) {hidden_size=2}\n"}},
      {"MeanVarianceNormalization 1", 8, one(node("MeanVarianceNormalization", {"x"}, {"y"}), {x}), {"axes=[0, 2, 3]"}},
      {"Affine",
       8,
       one(node("Affine", {"x"}, {"y"}, {float_attribute("alpha", 2)}), {x}),
       {"= Mul(%x, %y/alpha)", "= Add(%y/Mul, %y/beta)\n"}},
      {"ImageScaler",
       8,
       one(node("ImageScaler", {"x"}, {"y"}, {float_attribute("scale", 2), floats_attribute("bias", {1, 2, 3, 4})}),
           {x}),
       {"constant float32 4x1x1 [1, 2, 3, 4]", "= Add(%y/Mul, %y/bias)\n"}},
      {"Crop",
       8,
       one(node("Crop", {"x"}, {"y"}, {ints_attribute("border", {1, 2, 0, 1})}), {x}),
       {"float32[1, 4, 5, 7] = Slice("}},
  };
}

std::vector<adapted> cases() {
  const message x = info("x", 1, image);
  const message m = info("x", 1, {"2", "3", "4"});
  std::vector<adapted> all{
      {"Clip 6",
       10,
       one(node("Clip", {"x"}, {"y"}, {float_attribute("min", 0), float_attribute("max", 6)}), {x}),
       {"constant float32 scalar [6]", "= Clip(%x, %y/min, %y/max)\n"}},
      {"Clip 6 with one bound",
       7,
       one(node("Clip", {"x"}, {"y"}, {float_attribute("max", 6)}), {x}),
       {"= Clip(%x, -, %y/max)\n"}},
      {"Pad 2",
       7,
       one(node("Pad", {"x"}, {"y"}, {ints_attribute("pads", {0, 0, 1, 1, 0, 0, 1, 1}), float_attribute("value", 3)}),
           {x}),
       {"constant int64 8 [0, 0, 1, 1, 0, 0, 1, 1]", "float32[1, 4, 10, 10] = Pad(%x, %y/pads, %y/value)\n"}},
      {"Slice 1",
       9,
       one(node("Slice", {"x"}, {"y"},
                {ints_attribute("starts", {1}), ints_attribute("ends", {3}), ints_attribute("axes", {1})}),
           {x}),
       {"float32[1, 2, 8, 8] = Slice(%x, %y/starts, %y/ends, %y/axes)\n"}},
      {"Split 2",
       12,
       graph({node("Split", {"x"}, {"y", "z"}, {ints_attribute("split", {1, 3}), int_attribute("axis", 1)})}, {x},
             {untyped("y"), untyped("z")}),
       {"= Split(%x, %y/split) {axis=1}"}},
      {"Split 13 without sizes",
       13,
       graph({node("Split", {"x"}, {"y", "z"}, {int_attribute("axis", 1)})}, {x}, {untyped("y"), untyped("z")}),
       {"= Split(%x) {axis=1, num_outputs=2}"}},
      {"Squeeze 1",
       12,
       one(node("Squeeze", {"x"}, {"y"}, {ints_attribute("axes", {0})}), {x}),
       {"float32[4, 8, 8] = Squeeze(%x, %y/axes)\n"}},
      {"Squeeze 1 of every 1", 12, one(node("Squeeze", {"x"}, {"y"}), {x}), {"float32[4, 8, 8] = Squeeze(%x)\n"}},
      {"Unsqueeze 1",
       12,
       one(node("Unsqueeze", {"x"}, {"y"}, {ints_attribute("axes", {0})}), {x}),
       {"= Unsqueeze(%x, %y/axes)\n"}},
      {"ReduceSum 11",
       12,
       one(node("ReduceSum", {"x"}, {"y"}, {ints_attribute("axes", {1}), int_attribute("keepdims", 0)}), {x}),
       {"= ReduceSum(%x, %y/axes) {keepdims=0}"}},
      {"TopK 1",
       9,
       graph({node("TopK", {"x"}, {"y", "z"}, {int_attribute("k", 2)})}, {x}, {untyped("y"), untyped("z")}),
       {"constant int64 1 [2]", "= TopK(%x, %y/k)\n"}},
      {"Dropout 7 with its mask",
       9,
       graph({node("Dropout", {"x"}, {"y", "z"}, {float_attribute("ratio", 0.25f)})}, {x},
             {untyped("y"), untyped("z")}),
       {"= Dropout(%x, %y/ratio)\n", "%z float32[1, 4, 8, 8] = Cast(%y/mask) {to=1}"}},
      {"BatchNormalization 7",
       8,
       one(node("BatchNormalization", {"x", "s", "b", "m", "v"}, {"y"}, {int_attribute("spatial", 1)}),
           {x, info("s", 1, {"4"}), info("b", 1, {"4"}), info("m", 1, {"4"}), info("v", 1, {"4"})}),
       {"= BatchNormalization(%x, %s, %b, %m, %v)\n"}},
      {"BatchNormalization 9 in training",
       9,
       graph({node("BatchNormalization", {"x", "s", "b", "m", "v"}, {"y", "p", "q"})},
             {x, info("s", 1, {"4"}), info("b", 1, {"4"}), info("m", 1, {"4"}), info("v", 1, {"4"})}, {untyped("y")}),
       {"{training_mode=1}"}},
      {"Softmax 1 over one axis",
       12,
       one(node("Softmax", {"x"}, {"y"}, {int_attribute("axis", 2)}), {m}),
       {"= Softmax(%x) {axis=2}"}},
      {"Softmax 1 over an axis before dims of 1",
       12,
       one(node("Softmax", {"x"}, {"y"}), {info("x", 1, {"2", "5", "1", "1"})}),
       {"= Softmax(%x) {axis=1}"}},
      {"Softmax 1 over several axes",
       12,
       one(node("Softmax", {"x"}, {"y"}), {m}),
       {"= Flatten(%x) {axis=1}", "{axis=-1}", "float32[2, 3, 4] = Reshape("}},
      {"LogSoftmax 11 of unknown rank",
       11,
       one(node("LogSoftmax", {"x"}, {"y"}, {int_attribute("axis", -1)}),
           {message{}.text(1, "x").with(2, message{}.with(1, message{}.number(1, 1)))}),
       {"= Flatten(%x) {axis=-1}", "= LogSoftmax("}},
      {"Hardmax 1", 7, one(node("Hardmax", {"x"}, {"y"}), {m}), {"= Hardmax("}},
      {"DFT 17",
       17,
       one(node("DFT", {"x"}, {"y"}, {int_attribute("axis", 2)}), {info("x", 1, {"1", "8", "8", "1"})}),
       {"constant int64 scalar [2]", "= DFT(%x, -, %y/axis)\n"}},
      {"GridSample 16",
       16,
       one(node("GridSample", {"x", "g"}, {"y"}, {string_attribute("mode", "bicubic")}),
           {x, info("g", 1, {"1", "2", "2", "2"})}),
       {"mode=\"cubic\""}},
      {"GroupNormalization 18",
       18,
       one(node("GroupNormalization", {"x", "s", "b"}, {"y"}, {int_attribute("num_groups", 2)}),
           {x, info("s", 1, {"2"}), info("b", 1, {"2"})}),
       {"= Expand(", "= GroupNormalization(%x, "}},
      {"RoiAlign 10",
       10,
       one(node("RoiAlign", {"x", "r", "i"}, {"y"}), {x, info("r", 1, {"3", "4"}), info("i", 7, {"3"})}),
       {"\"output_half_pixel\""}},
      {"Scatter 9",
       10,
       one(node("Scatter", {"x", "i", "u"}, {"y"}), {info("x", 1, {"4"}), info("i", 7, {"2"}), info("u", 1, {"2"})}),
       {"= ScatterElements(%x, %i, %u)"}},
      {"Resize 10 enlarging",
       10,
       one(node("Resize", {"x", "s"}, {"y"}), {x}, {float_tensor("s", {4}, {1, 1, 2, 2})}),
       {"float32[1, 4, 16, 16] = Resize(%x, -, %s)", "\"asymmetric\"", "nearest_mode=\"floor\""}},
      {"Resize 10 shrinking",
       10,
       one(node("Resize", {"x", "s"}, {"y"}), {x}, {float_tensor("s", {4}, {1, 1, 0.5f, 0.5f})}),
       {"nearest_mode=\"ceil\""}},
      {"Resize 10 doing both",
       10,
       one(node("Resize", {"x", "s"}, {"y"}), {x}, {float_tensor("s", {4}, {1, 1, 0.5f, 2})}),
       {"nearest_mode=\"ceil\"", "nearest_mode=\"floor\"", "float32[1, 4, 4, 16] = Resize("}},
      {"Resize 10 linear",
       10,
       one(node("Resize", {"x", "s"}, {"y"}, {string_attribute("mode", "linear")}), {x},
           {float_tensor("s", {4}, {1, 1, 2, 2})}),
       {"mode=\"linear\""}},
      {"Resize 11 with empty inputs",
       11,
       one(node("Resize", {"x", "r", "e", "s"}, {"y"}), {x},
           {float_tensor("r", {0}, {}), float_tensor("e", {0}, {}), int_tensor("s", {1, 4, 3, 5})}),
       {"float32[1, 4, 3, 5] = Resize(%x, -, -, %s)"}},
      {"Upsample 7",
       8,
       one(node("Upsample", {"x"}, {"y"}, {floats_attribute("scales", {1, 1, 2, 2})}), {x}),
       {"float32[1, 4, 16, 16] = Resize(%x, -, %y/scales)", "\"asymmetric\""}},
      {"Upsample 9",
       9,
       one(node("Upsample", {"x", "s"}, {"y"}, {string_attribute("mode", "bilinear")}), {x},
           {float_tensor("s", {4}, {1, 1, 2, 2})}),
       {"= Resize(%x, -, %s)", "mode=\"linear\""}},
      {"newest forms stay",
       28,
       one(node("Split", {"x"}, {"y"}, {int_attribute("num_outputs", 1)}), {x}),
       {"= Split(%x) {num_outputs=1}"}},
  };
  for (const char* reduction : {"ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax", "ReduceMean",
                                "ReduceMin", "ReduceProd", "ReduceSumSquare"})
    all.push_back({reduction,
                   17,
                   one(node(reduction, {"x"}, {"y"}, {ints_attribute("axes", {2, 3})}), {x}),
                   {"float32[1, 4, 1, 1] = ", "(%x, %y/axes)\n"}});
  for (adapted& c : first_opsets()) all.push_back(std::move(c));
  return all;
}

}  // namespace

TEST_CASE("older forms become the newest one", "[import]") {
  dnnopt::import_options options;
  options.ops = dnnopt::standard_ops();
  for (const adapted& c : cases()) {
    INFO(c.name);
    std::string text;
    try {
      const dnnopt::graph g = dnnopt::import_onnx(model(c.body, c.opset).bytes(), {}, options);
      dnnopt::verify(g, "import");
      text = dnnopt::to_string(g);
    } catch (const dnnopt::error& e) {
      FAIL_CHECK(e.what());
    }
    INFO(text);
    for (const char* line : c.lines) CHECK_THAT(text, Catch::Contains(line));
  }
}

TEST_CASE("forms that have no newer one are refused", "[import]") {
  dnnopt::import_options options;
  options.ops = dnnopt::standard_ops();
  const message x = info("x", 1, image);
  const std::vector<message> statistics{x, info("s", 1, {"4"}), info("b", 1, {"4"}), info("m", 1, {"4"}),
                                        info("v", 1, {"4"})};
  const std::vector<std::string> five{"x", "s", "b", "m", "v"};
  const std::vector<std::pair<std::int64_t, message>> refused{
      {8, one(node("BatchNormalization", five, {"y", "a", "b2"}, {int_attribute("spatial", 0)}), statistics)},
      {6, one(node("BatchNormalization", five, {"y"}), statistics)},
      {6, one(node("Add", {"x", "s"}, {"y"}, {int_attribute("broadcast", 1), int_attribute("axis", 4)}),
              {x, info("s", 1, {"4"})})},
      {4, one(node("Reshape", {"x"}, {"y"}), {x})},
      {5, one(node("Cast", {"x"}, {"y"}, {string_attribute("to", "NUMBER")}), {x})},
      {1, one(node("LpPool", {"x"}, {"y"}, {float_attribute("p", 1.5F), ints_attribute("kernel_shape", {2, 2})}), {x})},
      {9, one(node("BatchNormalization", five, {"y", "a", "b2", "c", "d"}), statistics)},
      {8, one(node("Scan", {"", "x"}, {"y"}, {int_attribute("num_scan_inputs", 2)}), {x})},
      {9, one(node("Slice", {"x"}, {"y"}, {ints_attribute("starts", {1})}), {x})},
      {7, one(node("Pad", {"x"}, {"y"}), {x})},
      {12, one(node("Unsqueeze", {"x"}, {"y"}), {x})},
      {18, one(node("GroupNormalization", {"x", "s", "b"}, {"y"}, {int_attribute("num_groups", 0)}),
               {x, info("s", 1, {"2"}), info("b", 1, {"2"})})},
  };
  for (const auto& [version, body] : refused)
    CHECK_THROWS_AS(dnnopt::import_onnx(model(body, version).bytes(), {}, options), dnnopt::error);
}
