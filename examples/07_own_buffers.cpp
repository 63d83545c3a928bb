// Runs a session and its clone in two threads, then has an inference read and write OpenCL buffers of its own.
//   07_own_buffers [MODEL.onnx] [DEVICE]
#include <dnnopt/backend/measure/opened_device.hpp>
#include <dnnopt/dnnopt.hpp>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <thread>
#include <vector>

int main(int count, char** arguments) {
  const auto model = dnnopt::load(count > 1 ? arguments[1] : "bench/light/light_squeezenet.onnx");
  // One context and one set of compiled programs for all sessions that are given it.
  const auto device = std::make_shared<dnnopt::opened_device>(count > 2 ? arguments[2] : "opencl");
  auto session = dnnopt::compile(model, {.opened = device});

  // A session belongs to one thread at a time. A clone has the same weights, and memory of its own to compute in.
  auto clone = session.clone();
  const auto classify = [](dnnopt::session& own, float brightness, std::vector<float>& scores) {
    dnnopt::tensor image(dnnopt::dtype::float32, {1, 3, 224, 224});
    std::ranges::fill(image.mutable_data<float>(), brightness);
    const auto outputs = own.run({{"data_0", image}});
    scores.assign(outputs[0].data<float>().begin(), outputs[0].data<float>().end());
  };
  std::vector<float> grey;
  std::vector<float> white;
  std::thread other([&] { classify(clone, 1.0F, white); });
  classify(session, 0.5F, grey);
  other.join();
  std::printf("two threads: %zu and %zu scores\n", grey.size(), white.size());

  // Buffers of the session's own context take the place of an input and an output: nothing is uploaded or downloaded.
  const cl::Context context(device->context.handle(), true);
  const cl::Buffer image(context, CL_MEM_READ_WRITE, 3 * 224 * 224 * sizeof(float));
  const cl::Buffer scores(context, CL_MEM_READ_WRITE, grey.size() * sizeof(float));
  session.bind("data_0", image);
  const auto bound = session.bind("softmaxout_1", scores);
  std::printf("the output is used %s%s\n", std::string(dnnopt::name_of(bound.use)).c_str(), bound.reason.c_str());

  // What is enqueued on a bound buffer must be done before run(), which returns when its own work is done.
  const cl::CommandQueue queue(context, cl::Device(device->context.where().handle(), true));
  queue.enqueueFillBuffer(image, 0.5F, 0, 3 * 224 * 224 * sizeof(float));
  queue.finish();
  (void)session.run({});
  std::vector<float> result(grey.size());
  queue.enqueueReadBuffer(scores, CL_TRUE, 0, result.size() * sizeof(float), result.data());
  std::printf("the same scores: %s\n", result == grey ? "yes" : "no");
}
