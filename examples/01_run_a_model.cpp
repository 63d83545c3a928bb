#include <dnnopt/dnnopt.hpp>

#include <cstdio>

int main(int count, char** arguments) {
  auto model = dnnopt::load(count > 1 ? arguments[1] : "bench/light/light_squeezenet.onnx");
  auto session = dnnopt::compile(model, {.device = "opencl"});

  dnnopt::tensor image(dnnopt::dtype::float32, {1, 3, 224, 224});
  for (float& value : image.mutable_data<float>()) value = 0.5F;
  auto outputs = session.run({{"data_0", image}});

  std::printf("%s, first %.4f\n", dnnopt::to_string(outputs[0].dims()).c_str(),
              static_cast<double>(outputs[0].data<float>()[0]));
}
