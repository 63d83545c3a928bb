// Measures the profiler on whole models.
//
//   profile_model overhead DEVICE SECONDS WIDTH INFERENCES [DUMP.csv] MODEL...   ratios of latency with the profiler on
//       and off, until monitor's 95% interval is WIDTH wide for each model or SECONDS have passed for all of them,
//       where time goes to the widest interval; then monitor's means after INFERENCES; times of all pairs into
//       DUMP.csv, the last events of those means into DUMP.MODEL.monitor.csv and DUMP.MODEL.full.csv
//   profile_model prediction DEVICE [SWEEP_MB] [DUMP.json] MODEL...   each kernel profiled by itself; the table's
//       prediction against end to end; raw times of hosts, kernels and inferences into DUMP.json
//
// DEVICE is a device specification such as opencl or opencl:NVIDIA. Models need their weights (dnnopt weights MODEL).
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "profile_model.hpp"

int main(int count, char** values) {
  const std::vector<std::string> arguments(values + 1, values + count);
  try {
    if (!arguments.empty()) {
      const std::vector<std::string> rest(arguments.begin() + 1, arguments.end());
      if (arguments[0] == "overhead") return measure::overhead(rest);
      if (arguments[0] == "prediction") return measure::prediction(rest);
    }
    std::fprintf(stderr, "usage: profile_model overhead|prediction DEVICE ...\n");
    return 2;
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "%s\n", failure.what());
    return 2;
  }
}
