// Compares an inference with a bare loop over its own commands: host_cost RECORDING_LIBRARY DEVICE TURNS MODEL.onnx...
//
// The recording library keeps one inference's launches and transfers; the loop enqueues them again and finishes. Both
// alternate; the ratio of their medians is what the executor adds to the driver's own cost. Memory made per run (input
// binding, output tensors) counts as the executor's.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "../interposed_library.hpp"
#include "../profile/profile_model.hpp"
#include "recorded_opencl.hpp"

namespace {

using steady = std::chrono::steady_clock;

struct recorder {
  decltype(&recorded_opencl_record) record = nullptr;
  decltype(&recorded_opencl_commands) commands = nullptr;
  decltype(&recorded_opencl_replay) replay = nullptr;

  explicit recorder(const char* library) {
    const interposed_library opened(library);
    opened.find(record, "recorded_opencl_record");
    opened.find(commands, "recorded_opencl_commands");
    opened.find(replay, "recorded_opencl_replay");
  }
};

void measure_model(const recorder& bare, const std::shared_ptr<dnnopt::opened_device>& device, int turns,
                   const std::string& path) {
  measure::prepared_model model(path, device);
  for (int i = 0; i < 10; ++i) (void)model.session.run(model.inputs);
  bare.record(1);
  // Its tensors stay, for the loop reads into them.
  const dnnopt::named_tensors outputs = model.session.run(model.inputs);
  bare.record(0);
  std::vector<double> own, loop, ratios;
  const auto timed = [](auto&& call) {
    const auto begin = steady::now();
    call();
    return std::chrono::duration<double, std::micro>(steady::now() - begin).count();
  };
  for (int turn = -10; turn < turns; ++turn) {
    double session_us = 0;
    double loop_us = 0;
    const auto run_session = [&] { session_us = timed([&] { (void)model.session.run(model.inputs); }); };
    const auto run_loop = [&] {
      loop_us = timed([&] {
        if (bare.replay() != 0) throw std::runtime_error("a recorded command fails");
      });
    };
    if (turn % 2 == 0) {
      run_session();
      run_loop();
    } else {
      run_loop();
      run_session();
    }
    if (turn < 0) continue;
    own.push_back(session_us);
    loop.push_back(loop_us);
    ratios.push_back(session_us / loop_us);
  }
  const measure::median_interval ratio = measure::median_of(ratios);
  std::printf("%-32s %4zu commands, inference %9.2f us, bare loop %9.2f us, ratio %.4f [%.4f, %.4f]\n",
              model.name().c_str(), bare.commands(), measure::median_of(own).median, measure::median_of(loop).median,
              ratio.median, ratio.low, ratio.high);
  std::fflush(stdout);
}

}  // namespace

int main(int count, char** arguments) {
  if (count < 5) {
    std::fprintf(stderr, "host_cost RECORDING_LIBRARY DEVICE TURNS MODEL.onnx...\n");
    return 2;
  }
  try {
    // Before anything loads OpenCL.
    ::setenv("DNNOPT_OPENCL_LIBRARY", arguments[1], 1);
    const recorder bare(arguments[1]);
    const auto device = std::make_shared<dnnopt::opened_device>(arguments[2]);
    for (int i = 4; i < count; ++i) measure_model(bare, device, std::stoi(arguments[3]), arguments[i]);
  } catch (const std::exception& fault) {
    std::fprintf(stderr, "%s\n", fault.what());
    return 1;
  }
  return 0;
}
