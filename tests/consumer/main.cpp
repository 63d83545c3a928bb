// Uses the whole package: headers, kernel files and the loading of OpenCL, which may be absent.
#include <dnnopt/dnnopt.hpp>

int main() {
  dnnopt::model model;
  model.ops = dnnopt::standard_ops();
  const auto x = model.main.add_input("x", dnnopt::dtype::float32, dnnopt::shape{2});
  const auto y = model.main.add_value("y");
  model.main.add_node(model.ops.at("", "Relu"), "relu", {x}, {y});
  model.main.add_output(y);

  const auto input = dnnopt::tensor::of<float>({2}, std::vector{-1.0F, 2.0F});
  for (const char* device : {"reference", "opencl"}) try {
      auto session = dnnopt::compile(model, {.device = device});
      const auto outputs = session.run({{"x", input}});
      if (outputs[0].data<float>()[0] != 0.0F || outputs[0].data<float>()[1] != 2.0F) return 1;
    } catch (const dnnopt::error& problem) {
      if (problem.code() != dnnopt::errc::opencl_unavailable) return 1;
    }
}
