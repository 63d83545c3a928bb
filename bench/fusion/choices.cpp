// Holds the default against each choice switched: choices SPEC RUNS TUNE_SECONDS MODEL [MODEL ...]
//
// SPEC is a device as the command line names one. Each model is compiled once for every row of the table below (fusion
// families and rewriting on against off by --passes, memory objects in fp32 and fp16, fp16 against fp32, and after
// TUNE_SECONDS of search, 0 for none); all take turns, run by run, in an order drawn anew each round, after ten rounds
// of warming up. Printed are medians of an inference in ms (upload and download included), launches, the ratio to the
// choice that the default made, and whether the default is the better or within 5%. What has no counterpart in the
// default (fp16, tuning), and --passes epilogue, is not counted in the share of cells that the last line gives. A row
// whose launches have the sources, arguments and work sizes of those it is held against is marked and counted apart,
// for nothing was switched, and its runs count for both: sessions of the same launches differ by up to 10% where the
// host is the bound, and the default, compiled first, need not be the usual one. With DNNOPT_ONLY=name,name,... only
// these rows are run.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include <dnnopt/backend/run/executor.hpp>
#include <dnnopt/dnnopt.hpp>
#include <dnnopt/tune.hpp>
#include <dnnopt/zoo/generate_inputs.hpp>

namespace {

using namespace dnnopt;

/// One way to compile. `against` names the row whose choice the default is; empty: not a cell of the comparison.
struct choice {
  std::string_view name;
  std::string_view passes;
  precision stored = precision::fp32;
  memory_objects objects = memory_objects::automatic;
  bool tuned = false;
  std::string_view against = "default";
};

constexpr choice choices[] = {
    {.name = "default", .passes = "default", .against = ""},
    {.name = "no passes", .passes = "none"},
    {.name = "epilogue", .passes = "epilogue", .against = ""},
    {.name = "no fusion", .passes = "default,-fuse"},
    {.name = "epilogues alone", .passes = "default,-fuse,fuse_epilogue"},
    {.name = "operators alone", .passes = "default,-fuse,fuse_operators"},
    {.name = "no stores for readers", .passes = "default,-fuse,fuse_views"},
    {.name = "no rewriting", .passes = "default,-rewrite"},
    {.name = "no merged siblings", .passes = "default,-merge_siblings"},
    {.name = "no attention", .passes = "default,-recognize_attention"},
    {.name = "rows", .passes = "default", .objects = memory_objects::buffers},
    {.name = "packed", .passes = "default", .objects = memory_objects::packed},
    {.name = "images", .passes = "default", .objects = memory_objects::images},
    {.name = "tuned", .passes = "default", .tuned = true, .against = ""},
    {.name = "fp16", .passes = "default", .stored = precision::fp16, .against = ""},
    {.name = "fp16 rows",
     .passes = "default",
     .stored = precision::fp16,
     .objects = memory_objects::buffers,
     .against = "fp16"},
    {.name = "fp16 packed",
     .passes = "default",
     .stored = precision::fp16,
     .objects = memory_objects::packed,
     .against = "fp16"},
    {.name = "fp16 images",
     .passes = "default",
     .stored = precision::fp16,
     .objects = memory_objects::images,
     .against = "fp16"},
    {.name = "default again", .passes = "default", .against = ""},
};

struct contender {
  const choice* row;
  session compiled;
  std::vector<double> ms{};
  std::string note{};
  std::vector<std::string> launches{};
};

/// What the device is asked to run in one inference, a text per launch: source, options, arguments, work sizes. Empty
/// where symbols of the model stand in them, or nothing runs on a device.
std::vector<std::string> launches_of(const session& compiled) try {
  std::vector<std::string> all;
  if (compiled.executor() == nullptr) return all;
  for (const placed_node& step : compiled.executor()->executed().steps)
    for (const codegen::kernel_plan& kernel : step.lowered.kernels) {
      const symbol_values own = kernel.bind({});
      std::string text = kernel.source.str() + kernel.options;
      for (const index_expr& parameter : kernel.parameters) text += " " + std::to_string(parameter.evaluate({}));
      for (const index_expr& size : kernel.global) text += " " + std::to_string(size.evaluate(own));
      for (const std::size_t size : kernel.local) text += " " + std::to_string(size);
      all.push_back(std::move(text));
    }
  return all;
} catch (const error&) {
  return {};
}

double quantile(std::vector<double> values, double at) {
  std::sort(values.begin(), values.end());
  return values[static_cast<std::size_t>(at * static_cast<double>(values.size() - 1) + 0.5)];
}

bool wanted(std::string_view name) {
  const char* const only = std::getenv("DNNOPT_ONLY");
  if (only == nullptr || name == "default") return true;
  const std::string list = "," + std::string(only) + ",";
  return list.find("," + std::string(name) + ",") != std::string::npos;
}

struct count {
  std::size_t cells = 0;
  std::size_t held = 0;
  std::size_t same = 0;  ///< of the same launches as what they are held against
};

void compare(const std::string& path, const std::shared_ptr<opened_device>& device, int runs, double seconds,
             count& all) {
  const model m = load(path);
  const std::vector<tensor> inputs = generate_inputs(m.main, 1, {});
  named_tensors named;
  for (std::size_t i = 0; i < inputs.size(); ++i) named.add(m.main.value_at(m.main.inputs()[i]).name, inputs[i]);
  std::vector<contender> rows;
  std::printf("%s\n", path.c_str());
  for (const choice& row : choices) {
    if (!wanted(row.name) || (row.tuned && seconds <= 0)) continue;
    compile_options options;
    options.opened = device;
    options.passes = row.passes;
    options.precision = row.stored;
    options.memory_objects = row.objects;
    std::string note;
    try {
      if (row.tuned) {
        auto store = std::make_shared<tuning_store>();
        tuner_options search;
        search.seconds = seconds;
        note = std::to_string(tune(m, options, named, search, *store).tried) + " tried";
        options.tuned = std::move(store);
      }
      session made = compile(m, options);
      (void)made.run(named);
      std::vector<std::string> launches = launches_of(made);
      rows.push_back({&row, std::move(made), {}, std::move(note), std::move(launches)});
    } catch (const error& e) {
      std::printf("  %-22s %s\n", std::string(row.name).c_str(), e.what());
    }
  }
  using steady = std::chrono::steady_clock;
  std::mt19937 random(1);
  std::vector<std::size_t> order(rows.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  for (int round = -10; round < runs; ++round) {
    // In another order each round, so that none always follows the same one.
    std::shuffle(order.begin(), order.end(), random);
    for (const std::size_t i : order) {
      contender& one = rows[i];
      const auto begin = steady::now();
      (void)one.compiled.run(named);
      const double ms = std::chrono::duration<double, std::milli>(steady::now() - begin).count();
      if (round >= 0) one.ms.push_back(ms);
    }
  }
  for (const contender& one : rows) {
    std::printf("  %-22s %9.3f ms (%.3f to %.3f)  %4zu launches", std::string(one.row->name).c_str(),
                quantile(one.ms, 0.5), quantile(one.ms, 0.1), quantile(one.ms, 0.9), one.compiled.kernels());
    const auto base = std::find_if(rows.begin(), rows.end(), [&](const contender& other) {
      return other.row->name == (one.row->against.empty() ? std::string_view("default") : one.row->against);
    });
    if (base != rows.end()) {
      std::vector<double> of_base = base->ms;
      for (const contender& other : rows)
        if (&other != &*base && !other.launches.empty() && other.launches == base->launches)
          of_base.insert(of_base.end(), other.ms.begin(), other.ms.end());
      const double ratio = quantile(one.ms, 0.5) / quantile(of_base, 0.5);
      std::printf("  %.3f of %s", ratio, std::string(base->row->name).c_str());
      if (!one.row->against.empty() && !one.launches.empty() && one.launches == base->launches) {
        ++all.same;
        std::printf("  the same launches");
      } else if (!one.row->against.empty()) {
        ++all.cells;
        all.held += ratio >= 0.95 ? 1 : 0;
        if (ratio < 0.95) std::printf("  THE DEFAULT LOSES");
      }
    }
    std::printf("%s%s\n", one.note.empty() ? "" : "  ", one.note.c_str());
  }
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** arguments) {
  if (argc < 5) {
    std::fprintf(stderr, "usage: choices SPEC RUNS TUNE_SECONDS MODEL [MODEL ...]\n");
    return 2;
  }
  try {
    const auto device = std::make_shared<opened_device>(std::string(arguments[1]), opencl::program_cache_options{});
    const device_info& info = device->context.info();
    std::printf("%s, driver %s\n", info.name.c_str(), info.driver_version.c_str());
    count all;
    for (int i = 4; i < argc; ++i) compare(arguments[i], device, std::atoi(arguments[2]), std::atof(arguments[3]), all);
    std::printf("the default is the better or within 5%% in %zu of %zu cells; %zu more have the same launches\n",
                all.held, all.cells, all.same);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}
