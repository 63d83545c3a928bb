// Classifies the frames of a camera: while one is classified, the application makes the next one.
//   13_frames [MODEL.onnx] [DEVICE]
#include <dnnopt/async_session.hpp>
#include <dnnopt/dnnopt.hpp>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <future>
#include <utility>

namespace {

/// What a camera would give: here a grey that grows brighter.
dnnopt::tensor next_frame(int number) {
  dnnopt::tensor image(dnnopt::dtype::float32, {1, 3, 224, 224});
  std::ranges::fill(image.mutable_data<float>(), 0.1F * static_cast<float>(number));
  return image;
}

}  // namespace

int main(int count, char** arguments) {
  const auto model = dnnopt::load(count > 1 ? arguments[1] : "bench/light/light_squeezenet.onnx");

  dnnopt::async_session session(dnnopt::compile(model, {.device = count > 2 ? arguments[2] : "opencl"}));
  std::future<dnnopt::named_tensors> scores = session.begin({{"data_0", next_frame(0)}});
  for (int number = 1; number < 8; ++number) {
    const dnnopt::tensor image = next_frame(number);  // while the last one is classified
    const dnnopt::named_tensors outputs = scores.get();
    scores = session.begin({{"data_0", image}});
    std::printf("frame %d: %lld scores\n", number, static_cast<long long>(outputs[0].size()));
  }
  (void)scores.get();

  // A function in place of a future is called on the session's thread, with the outputs or with what was thrown.
  session.begin({}, [](const dnnopt::named_tensors&, const std::exception_ptr& failure) {
    std::printf("a frame without an image %s\n", failure ? "fails" : "is classified");
  });
  session.wait();
}
