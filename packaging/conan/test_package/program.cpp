// Makes a graph and runs it on the reference backend, which needs no device.
#include <dnnopt/dnnopt.hpp>

#include <cstdio>

int main() {
  dnnopt::model model;
  model.ops = dnnopt::standard_ops();
  dnnopt::graph& g = model.main;
  const auto x = g.add_input("x", dnnopt::dtype::float32, dnnopt::shape{2});
  const auto y = g.add_value("y");
  g.add_node(model.ops.at("", "Relu"), "relu", {x}, {y});
  g.add_output(y);
  auto session = dnnopt::compile(model, {.device = "reference"});
  const auto outputs = session.run({{"x", dnnopt::tensor::of<float>({2}, std::vector{-1.0F, 2.0F})}});
  const auto values = outputs[0].data<float>();
  std::printf("%.0f %.0f\n", static_cast<double>(values[0]), static_cast<double>(values[1]));
  return values[0] == 0.0F && values[1] == 2.0F ? 0 : 1;
}
