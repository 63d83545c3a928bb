// Runs a model with device memory counted at the OpenCL API: device_memory COUNTING_LIBRARY MODEL.onnx [SEED]
//
// Prints JSON: what is alive besides weights and the caller's inputs and outputs, the plan's arena, the most that is
// alive while the model is compiled, and whether a run with freed memory poisoned gives the outputs of the plain one.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <dnnopt/backend/opencl/context.hpp>
#include <dnnopt/backend/run/executor.hpp>
#include <dnnopt/dnnopt.hpp>
#include <dnnopt/zoo/generate_inputs.hpp>
#include <nlohmann/json.hpp>

#include "../interposed_library.hpp"
#include "counted_opencl.hpp"

namespace {

/// The counting library's functions.
struct counter {
  decltype(&counted_opencl_mark) mark = nullptr;
  decltype(&counted_opencl_live_bytes) live_bytes = nullptr;
  decltype(&counted_opencl_peak_bytes) peak_bytes = nullptr;
  decltype(&counted_opencl_new_objects) new_objects = nullptr;

  explicit counter(const char* library) {
    const interposed_library opened(library);
    opened.find(mark, "counted_opencl_mark");
    opened.find(live_bytes, "counted_opencl_live_bytes");
    opened.find(peak_bytes, "counted_opencl_peak_bytes");
    opened.find(new_objects, "counted_opencl_new_objects");
  }

  [[nodiscard]] std::vector<counted_object> made() const {
    std::vector<counted_object> objects(new_objects(nullptr, 0));
    objects.resize(std::min(objects.size(), new_objects(objects.data(), objects.size())));
    return objects;
  }
};

bool same_bytes(const dnnopt::named_tensors& a, const dnnopt::named_tensors& b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const auto left = a[i].bytes();
    const auto right = b[i].bytes();
    if (a[i].dims() != b[i].dims() || left.size() != right.size() ||
        std::memcmp(left.data(), right.data(), left.size()) != 0)
      return false;
  }
  return true;
}

/// Bytes of the objects made in the run that are the caller's: transferred, and as large as one of `tensors`.
std::uint64_t bytes_of_caller(const std::vector<counted_object>& made,
                              const std::vector<const dnnopt::named_tensors*>& tensors) {
  std::multimap<std::uint64_t, bool> sizes;
  for (const dnnopt::named_tensors* rows : tensors)
    for (const auto& [name, content] : *rows) sizes.emplace(std::max<std::uint64_t>(content.byte_size(), 1), true);
  std::uint64_t bytes = 0;
  for (const counted_object& object : made) {
    const auto found = object.transferred != 0 ? sizes.find(object.bytes) : sizes.end();
    if (found == sizes.end()) continue;
    bytes += object.bytes;
    sizes.erase(found);
  }
  return bytes;
}

nlohmann::json measure(const char* library, const std::string& file, std::uint64_t seed) {
  const counter counts(library);
  const dnnopt::model model = dnnopt::load(file);
  dnnopt::symbol_values ones;
  for (std::uint32_t symbol = 0; symbol < model.main.expressions().symbol_count(); ++symbol) ones.bind(symbol, 1);
  const std::vector<dnnopt::tensor> generated = dnnopt::generate_inputs(model.main, seed, ones);
  dnnopt::named_tensors inputs;
  for (std::size_t i = 0; i < model.main.inputs().size(); ++i)
    inputs.add(model.main.value_at(model.main.inputs()[i]).name, generated.at(i));

  counts.mark();
  dnnopt::session session = dnnopt::compile(model);
  const std::uint64_t weights = counts.live_bytes();
  const std::uint64_t compile_peak = counts.peak_bytes();

  counts.mark();
  const dnnopt::named_tensors outputs = session.run(inputs);
  const std::vector<counted_object> made = counts.made();
  const std::uint64_t caller = bytes_of_caller(made, {&inputs, &outputs});
  const std::uint64_t run_peak = counts.peak_bytes();
  const dnnopt::run_memory& memory = session.executor()->memory();
  bool depends_on_data = false;
  for (const auto& released : memory.released) depends_on_data = depends_on_data || !released.empty();

  session.executor()->poison_freed(true);
  const bool equal = same_bytes(outputs, session.run(inputs));

  nlohmann::json result;
  result["device"] = session.context()->info().name;
  result["weight_bytes"] = weights;
  result["compile_peak_bytes"] = compile_peak;
  result["input_output_bytes"] = caller;
  result["run_peak_bytes"] = run_peak;
  result["other_bytes"] = run_peak - weights - caller;
  result["arena_bytes"] = memory.arena_bytes;
  result["arena_lower_bound_bytes"] = memory.lower_bound_bytes;
  result["depends_on_data"] = depends_on_data;
  result["poisoned_equal"] = equal;
  return result;
}

}  // namespace

int main(int count, char** arguments) {
  if (count < 3) {
    std::fprintf(stderr, "usage: device_memory COUNTING_LIBRARY MODEL.onnx [SEED]\n");
    return 2;
  }
  try {
    // Before the first call of OpenCL, which chooses the library for the whole process.
    ::setenv("DNNOPT_OPENCL_LIBRARY", arguments[1], 1);
    const std::uint64_t seed = count > 3 ? std::stoull(arguments[3]) : 0;
    std::printf("%s\n", measure(arguments[1], arguments[2], seed).dump().c_str());
  } catch (const std::exception& fault) {
    std::fprintf(stderr, "%s\n", fault.what());
    return 1;
  }
  return 0;
}
