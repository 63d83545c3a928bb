// Element expressions of every operator with every element type that ONNX allows it: the generated OpenCL C compiles.
#include "kernel_fixture.hpp"

#include <catch2/catch.hpp>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <dnnopt/backend/codegen/frames/maps/emit_map.hpp>
#include <dnnopt/backend/run/combine_sources.hpp>

using namespace dnnopt;
using namespace dnnopt::testing;

namespace {

/// An input: its dims, and its type where that is not the one under test.
struct operand {
  dim_list dims;
  dtype type = dtype::undefined;
  std::vector<std::int64_t> integers{};  ///< of a constant
};

/// A node of one operator whose element type is still open.
struct typed_case {
  std::string op;
  std::vector<operand> inputs;
  std::vector<std::pair<std::string, attribute>> attributes{};
  std::vector<dtype> results{};  ///< types of outputs where they are not the one under test
  bool integers = false;         ///< whether ONNX allows integers
};

using ints = std::vector<std::int64_t>;
const ints pair_of_two{2, 2};
const operand open_input{{1, 2, 4, 4}};

std::vector<typed_case> emitted_cases() {
  const operand channel{{2}};
  const auto byte_operand = [](dim_list dims) { return operand{std::move(dims), dtype::uint8}; };
  const operand one{{}, dtype::float32};
  std::vector<typed_case> cases{
      {"Conv", {open_input, {{2, 2, 2, 2}}, channel}},
      {"ConvTranspose", {open_input, {{2, 2, 2, 2}}, channel}},
      {"DeformConv", {open_input, {{2, 2, 2, 2}}, {{1, 8, 3, 3}}}},
      {"Range", {{{}}, {{}}, {{}}}, {}, {}, true},
      {"EyeLike", {{{3, 4}}}, {}, {}, true},
      {"Dropout", {open_input}},
      {"NegativeLogLikelihoodLoss", {{{2, 3, 4}}, {{2, 4}, dtype::int64}, {{3}}}},
      {"SoftmaxCrossEntropyLoss", {{{2, 3, 4}}, {{2, 4}, dtype::int64}, {{3}}}},
      {"DFT", {{{1, 5, 2}}}, {{"axis", std::int64_t{1}}}},
      {"STFT", {{{1, 9, 1}}, {{}, dtype::int64, {2}}, {{4}}}},
      {"MatMul", {{{2, 3, 4}}, {{4, 5}}}, {}, {}, true},
      {"Gemm", {{{3, 4}}, {{4, 5}}, {{5}}}, {{"alpha", 0.5F}}},
      {"Einsum", {{{3, 4}}, {{4, 5}}}, {{"equation", std::string("ij,jk->ik")}}, {}, true},
      {"Det", {{{2, 3, 3}}}},
      {"InstanceNormalization", {open_input, channel, channel}},
      {"GroupNormalization", {open_input, channel, channel}, {{"num_groups", std::int64_t{1}}}},
      {"BatchNormalization", {open_input, channel, channel, channel, channel}},
      {"LayerNormalization", {open_input, {{4}}, {{4}}}},
      {"RMSNormalization", {open_input, {{4}}}},
      {"LRN", {open_input}, {{"size", std::int64_t{3}}}},
      {"LpNormalization", {open_input}},
      {"MeanVarianceNormalization", {open_input}},
      {"MaxPool", {open_input}, {{"kernel_shape", pair_of_two}}},
      {"AveragePool", {open_input}, {{"kernel_shape", pair_of_two}, {"pads", ints{1, 0, 0, 1}}}},
      {"LpPool", {open_input}, {{"kernel_shape", pair_of_two}, {"p", std::int64_t{3}}}},
      {"MaxUnpool", {open_input, {{1, 2, 4, 4}, dtype::int64}}, {{"kernel_shape", pair_of_two}}},
      {"AffineGrid", {{{1, 2, 3}}, {{4}, dtype::int64, {1, 1, 3, 4}}}},
      {"RotaryEmbedding", {{{1, 2, 3, 4}}, {{3, 2}}, {{3, 2}}, {{1, 3}, dtype::int64}}},
      {"DynamicQuantizeLinear", {{{3, 4}, dtype::float32}}, {}, {dtype::uint8, dtype::float32, dtype::uint8}},
      {"QuantizeLinear", {{{3, 4}}, {{}}, byte_operand({})}, {}, {dtype::uint8}},
      {"DequantizeLinear", {byte_operand({3, 4}), {{}}, byte_operand({})}},
      {"MatMulInteger", {byte_operand({3, 4}), byte_operand({4, 5})}, {}, {dtype::int32}},
      {"QLinearMatMul",
       {byte_operand({3, 4}), one, byte_operand({}), byte_operand({4, 5}), one, byte_operand({}), one,
        byte_operand({})},
       {},
       {dtype::uint8}},
  };
  for (const std::string window : {"HannWindow", "HammingWindow", "BlackmanWindow"})
    cases.push_back({window, {{{}, dtype::int64, {8}}}});
  for (const std::string op : {"Softmax", "LogSoftmax", "Hardmax"}) cases.push_back({op, {open_input}});
  for (const std::string op : {"GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool"})
    cases.push_back({op, {open_input}});
  for (const std::string op : {"ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1",
                               "ReduceL2", "ReduceSumSquare", "ReduceLogSum", "ReduceLogSumExp"})
    cases.push_back({op, {open_input, {{1}, dtype::int64, {2}}}, {}, {}, true});
  for (const std::string op : {"ArgMax", "ArgMin"}) cases.push_back({op, {open_input}, {}, {dtype::int64}, true});
  for (const std::string op : {"CumSum", "CumProd"})
    cases.push_back({op, {open_input, {{}, dtype::int64, {1}}}, {}, {}, true});
  for (const std::string mode : {"avg", "max"})
    for (const std::int64_t ratio : {0, 2})
      cases.push_back({"RoiAlign",
                       {open_input, {{2, 4}}, {{2}, dtype::int64}},
                       {{"mode", mode}, {"sampling_ratio", ratio}, {"output_height", std::int64_t{2}}}});
  for (const std::string mode : {"nearest", "linear", "cubic"}) {
    for (const std::string coordinates : {"half_pixel", "pytorch_half_pixel", "half_pixel_symmetric", "align_corners",
                                          "asymmetric", "tf_half_pixel_for_nn"})
      cases.push_back({"Resize",
                       {open_input, {}, {}, {{4}, dtype::int64, {1, 2, 7, 5}}},
                       {{"mode", mode}, {"coordinate_transformation_mode", coordinates}},
                       {},
                       true});
    for (const std::string padding : {"zeros", "border", "reflection"})
      for (const std::int64_t corners : {0, 1})
        cases.push_back({"GridSample",
                         {open_input, {{1, 3, 5, 2}}},
                         {{"mode", mode}, {"padding_mode", padding}, {"align_corners", corners}}});
  }
  return cases;
}

class type_bench : public kernel_bench {
 public:
  /// Lowers a case to a map; it is compiled by `build`.
  void add(const typed_case& c, dtype type, const std::vector<dim_list>& results) {
    graph g;
    std::vector<value_id> in;
    for (std::size_t i = 0; i < c.inputs.size(); ++i) {
      const operand& o = c.inputs[i];
      const std::string name = "x" + std::to_string(i);
      if (o.dims.empty() && o.type == dtype::undefined && c.op == "Resize")
        in.push_back(no_value);
      else if (!o.integers.empty())
        in.push_back(g.add_constant(name, tensor::of<std::int64_t>(o.dims, o.integers)));
      else
        in.push_back(g.add_input(name, o.type == dtype::undefined ? type : o.type, to_shape(o.dims)));
    }
    std::vector<value_id> out;
    for (std::size_t k = 0; k < results.size(); ++k)
      out.push_back(
          g.add_value("y" + std::to_string(k), k < c.results.size() ? c.results[k] : type, to_shape(results[k])));
    attribute_map attributes;
    for (const auto& [name, held] : c.attributes) attributes.set(name, held);
    const node_id n = g.add_node(ops().at("", c.op), c.op, in, out, std::move(attributes));
    const codegen::block_view block{g, {n}, out};
    INFO(c.op << " of " << name_of(type));
    codegen::lowered_node made = codegen::lower_map(block, codegen::default_lower_options().emitters);
    for (codegen::kernel_plan& plan : made.kernels) plans_.push_back(std::move(plan));
  }
  /// The dims of a case's outputs, by the operator's own inference.
  [[nodiscard]] std::vector<dim_list> result_dims(const typed_case& c, dtype type) const {
    std::vector<value_facts> facts(c.inputs.size());
    std::vector<const value_facts*> given;
    attribute_map attributes;
    for (const auto& [name, held] : c.attributes) attributes.set(name, held);
    for (std::size_t i = 0; i < c.inputs.size(); ++i) {
      const operand& o = c.inputs[i];
      if (o.dims.empty() && o.type == dtype::undefined && c.op == "Resize") {
        given.push_back(nullptr);
        continue;
      }
      facts[i].type = o.type == dtype::undefined ? type : o.type;
      facts[i].dims = to_shape(o.dims);
      if (!o.integers.empty()) {
        facts[i].constant = tensor::of<std::int64_t>(o.dims, o.integers);
        facts[i].elements = std::vector<index_expr>(o.integers.begin(), o.integers.end());
      }
      given.push_back(&facts[i]);
    }
    std::vector<value_facts> out(std::max<std::size_t>(c.results.size(), 1));
    expr_context expressions;
    node_facts node;
    node.attributes = &attributes;
    node.inputs = given;
    node.output_count = out.size();
    node.expressions = &expressions;
    node.scope = "node";
    ops().at("", c.op).infer(node, out);
    std::vector<dim_list> dims;
    for (const value_facts& o : out) {
      dim_list own;
      for (const index_expr& d : o.dims.value_or(shape{2, 2, 2, 2})) own.push_back(d.as_constant().value_or(3));
      dims.push_back(std::move(own));
    }
    return dims;
  }
  void build() {
    std::vector<const codegen::kernel_plan*> all;
    for (const codegen::kernel_plan& plan : plans_) all.push_back(&plan);
    REQUIRE(!all.empty());
    opencl::program_cache_options options;
    options.on_disk = false;
    opencl::program_cache cache(where(), options);
    for (const auto& program : join_sources(all, 32).programs)
      CHECK_NOTHROW(cache.build({"element types", program.source, program.options}));
  }

 private:
  std::vector<codegen::kernel_plan> plans_;
};

std::vector<dtype> tested_types(bool integers) {
  std::vector<dtype> types{dtype::float32, dtype::float16, dtype::float64, dtype::bfloat16};
  if (integers) types.insert(types.end(), {dtype::int64, dtype::int32, dtype::uint8, dtype::uint64});
  return types;
}

}  // namespace

TEST_CASE_METHOD(type_bench, "element expressions compile for every element type") {
  for (const typed_case& c : emitted_cases())
    for (const dtype type : tested_types(c.integers)) {
      if (type == dtype::float64 && !where().info().fp64) continue;
      add(c, type, result_dims(c, type));
    }
  build();
}

TEST_CASE_METHOD(type_bench, "scalar expressions compile for every element type") {
  const operand x{{3, 4}};
  std::vector<typed_case> cases;
  for (const std::string op : {"Abs", "Neg", "Sign", "Identity", "Relu"}) cases.push_back({op, {x}, {}, {}, true});
  for (const std::string op :
       {"Ceil", "Floor",    "Round",           "Sqrt",        "Reciprocal", "Exp",       "Log",  "Sigmoid",   "Tanh",
        "Erf",  "Softplus", "Softsign",        "Sin",         "Cos",        "Tan",       "Asin", "Acos",      "Atan",
        "Sinh", "Cosh",     "Asinh",           "Acosh",       "Atanh",      "HardSwish", "Mish", "LeakyRelu", "Elu",
        "Selu", "Celu",     "ThresholdedRelu", "HardSigmoid", "Gelu"})
    cases.push_back({op, {x}});
  for (const std::string op : {"Add", "Sub", "Mul", "Div", "Mod", "Pow", "Max", "Min", "PRelu"})
    cases.push_back({op, {x, x}, {}, {}, true});
  for (const std::string op : {"Equal", "Less", "Greater", "LessOrEqual", "GreaterOrEqual"})
    cases.push_back({op, {x, x}, {}, {dtype::boolean}, true});
  cases.push_back({"Clip", {x, {{}}, {{}}}, {}, {}, true});
  cases.push_back({"Where", {{{3, 4}, dtype::boolean}, x, x}, {}, {}, true});
  for (const dtype to : {dtype::float32, dtype::float16, dtype::float64, dtype::bfloat16, dtype::int64, dtype::int32,
                         dtype::int8, dtype::uint8, dtype::uint32, dtype::uint64, dtype::boolean}) {
    cases.push_back({"Cast", {x}, {{"to", static_cast<std::int64_t>(to)}}, {to}, true});
    cases.push_back({"Pow", {x, {{3, 4}, to}}, {}, {}, true});
  }
  for (const typed_case& c : cases)
    for (const dtype type : tested_types(c.integers)) add(c, type, {{3, 4}});
  build();
}
