// An operator of the user's own: one struct states its classes, its shape transfer, its kernel and its evaluation on
// the host. It is fused, tuned and profiled like ONNX's own operators.
#include <dnnopt/dnnopt.hpp>

#include <cmath>
#include <cstdio>
#include <span>
#include <string_view>

namespace {

/// y = x * sin(frequency * x), element by element.
struct wobble {
  static constexpr std::string_view domain = "example";
  static constexpr std::string_view name = "Wobble";
  static constexpr dnnopt::op_arity arity{1, 1};
  static constexpr dnnopt::mapping_type mapping = dnnopt::mapping_type::one_to_one;
  static constexpr dnnopt::layout_class layout = dnnopt::layout_class::ili_variable;
  static constexpr dnnopt::dynamism_class dynamism = dnnopt::dynamism_class::isdos;
  static constexpr dnnopt::computation_kind kind = dnnopt::computation_kind::element_wise;

  /// The kernel: one output element in OpenCL C; {frequency=1} is the attribute or its default.
  static constexpr std::string_view scalar = "x0 * sin({frequency=1} * x0)";

  static void infer(const dnnopt::node_facts& facts, std::span<dnnopt::value_facts> outputs) {
    outputs[0].type = facts.type(0);
    if (facts.dims(0) != nullptr) outputs[0].dims = *facts.dims(0);
  }

  /// For the reference backend.
  static void evaluate(const dnnopt::attribute_map& attributes, std::span<const dnnopt::tensor> inputs,
                       std::span<dnnopt::tensor> outputs) {
    const float frequency = attributes.get_float("frequency", 1.0F);
    outputs[0] = dnnopt::tensor(dnnopt::dtype::float32, inputs[0].dims());
    const auto in = inputs[0].data<float>();
    const auto out = outputs[0].mutable_data<float>();
    for (std::size_t i = 0; i < in.size(); ++i) out[i] = in[i] * std::sin(frequency * in[i]);
  }
};
static_assert(dnnopt::Operator<wobble>);

}  // namespace

int main() {
  dnnopt::model model;
  model.ops = dnnopt::standard_ops();
  model.ops.add<wobble>();

  // y = Relu(Wobble(x)); a file that uses the domain "example" would be read with load(path, {.ops = model.ops}).
  dnnopt::graph& g = model.main;
  const auto x = g.add_input("x", dnnopt::dtype::float32, dnnopt::shape{4});
  const auto wobbled = g.add_value("wobbled");
  const auto y = g.add_value("y");
  dnnopt::attribute_map attributes;
  attributes.set("frequency", 2.0F);
  g.add_node(model.ops.at("example", "Wobble"), "wobble", {x}, {wobbled}, attributes);
  g.add_node(model.ops.at("", "Relu"), "relu", {wobbled}, {y});
  g.add_output(y);

  const auto input = dnnopt::tensor::of<float>({4}, std::vector{-1.0F, 0.5F, 1.0F, 2.0F});
  for (const char* device : {"reference", "opencl"}) {
    auto session = dnnopt::compile(model, {.device = device, .require_device = device[0] == 'o'});
    const auto outputs = session.run({{"x", input}});
    std::printf("%-9s", device);
    for (const float value : outputs["y"].data<float>()) std::printf("  %.4f", static_cast<double>(value));
    std::printf("\n");
  }
}
