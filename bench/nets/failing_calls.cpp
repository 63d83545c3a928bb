// Fails every OpenCL call of a model once: failing_calls LIBRARY MODEL.onnx [--first N] [--step N] [--most N]
//
// LIBRARY is failing_opencl of the tests. Opens the device, compiles and runs twice, in both wait modes, once for each
// call that can fail, and prints a table of calls by outcome. Symbolic dims are 2. Programs come from a cache of their
// own, but for
// --build, which compiles each time. Exit status 1 where an outcome is wrong, unclear or leaked.
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

#include <unistd.h>

#include <dnnopt/zoo/generate_inputs.hpp>

#include "support/failing_calls.hpp"

int main(int count, char** texts) {
  try {
    if (count < 3)
      throw std::runtime_error("usage: failing_calls LIBRARY MODEL.onnx [--first N] [--step N] [--most N] [--build]");
    long first = 1;
    long step = 1;
    long most = 1L << 30;
    bool build = false;
    for (int i = 3; i < count; ++i) {
      const std::string flag = texts[i];
      if (flag == "--build") {
        build = true;
        continue;
      }
      if (i + 1 == count) throw std::runtime_error(flag + " wants a number");
      const long number = std::stol(texts[++i]);
      if (flag == "--first")
        first = number;
      else if (flag == "--step")
        step = number;
      else if (flag == "--most")
        most = number;
      else
        throw std::runtime_error("unknown flag " + flag);
    }
    ::setenv("DNNOPT_OPENCL_LIBRARY", texts[1], 1);
    const testing::failing_library library(texts[1]);
    const dnnopt::model m = dnnopt::load(texts[2]);
    const dnnopt::symbol_values twos = m.main.expressions().all_bound_to(2);
    dnnopt::named_tensors inputs;
    const std::vector<dnnopt::tensor> generated = dnnopt::generate_inputs(m.main, 0, twos);
    for (std::size_t i = 0; i < generated.size(); ++i)
      inputs.add(m.main.value_at(m.main.inputs()[i]).name, generated[i]);
    const std::filesystem::path folder =
        std::filesystem::temp_directory_path() / ("failing_calls_" + std::to_string(::getpid()));
    bool good = true;
    for (const dnnopt::wait_mode wait : {dnnopt::wait_mode::blocking, dnnopt::wait_mode::spinning}) {
      dnnopt::compile_options options;
      options.wait = wait;
      options.programs.on_disk = !build;
      options.programs.folder = folder;
      const testing::failing_calls trial(library, m, inputs, options);
      (void)trial.count();  // fills the cache
      const long all = trial.count();
      testing::call_table table;
      for (long n = first; n <= all && static_cast<long>(table.calls) < most; n += step) {
        std::fprintf(stderr, "\r%ld of %ld", n, all);
        trial.fail(n, table);
      }
      std::printf("%s, %ld calls, %zu of them failed once\n%s", std::string(name_of(wait)).c_str(), all, table.calls,
                  table.str().c_str());
      for (const std::string& fault : table.faults) std::printf("FAULT %s\n", fault.c_str());
      std::fflush(stdout);
      good = good && table.faults.empty();
    }
    std::filesystem::remove_all(folder);
    return good ? 0 : 1;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "failing_calls: %s\n", e.what());
    return 2;
  }
}
