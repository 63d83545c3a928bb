// Kernel objects that allow fewer work-items than their kernels were lowered for.
#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <dnnopt/backend/measure/opened_device.hpp>
#include <dnnopt/backend/run/executor.hpp>
#include <dnnopt/backend/run/refused_work_groups.hpp>
#include <dnnopt/dnnopt.hpp>
#include <dnnopt/tune.hpp>

#include "../support/small_network.hpp"
#include "runtime_fixture.hpp"

using namespace dnnopt;
using dnnopt::testing::network;
using dnnopt::testing::ramp;

TEST_CASE("limits of work-groups go down or the search for one ends") {
  network n;
  const value_id x = n.input("x", shape{2, 3});
  const model m = n.finish(n.node("Relu", {x}));
  const node_id id = *m.main.nodes().begin();
  std::map<node_id, std::size_t> limits;
  std::vector<std::string> notes;
  const auto lower = [&](std::vector<refused_work_group> rows) {
    return lower_limits(limits, work_groups_refused("", std::move(rows)), m.main, notes);
  };
  CHECK(lower({{id, "tiles", 256, 200}, {id, "sums", 256, 192}}));
  CHECK(limits.at(id) == 128);
  REQUIRE(notes.size() == 2);
  CHECK(notes[0].find("'Relu0' runs in work-groups of at most 128 work-items") == 0);
  // One kernel of two had its limit from the other.
  CHECK(lower({{id, "tiles", 128, 127}, {id, "sums", 64, 32}}));
  CHECK(limits.at(id) == 32);
  // Who takes no notice of a limit would be lowered for ever.
  CHECK_FALSE(lower({{id, "tiles", 64, 32}}));
  CHECK_FALSE(lower({{id, "tiles", 32, 0}}));
}

#if !defined(DNNOPT_LINK_OPENCL) && defined(DNNOPT_LIMITED_OPENCL)

namespace {

/// What has work-groups on a GPU: tiles of a convolution and of products, a depthwise window, rows, a transposed copy,
/// products of computed operands.
model many_kernels() {
  network n;
  attribute_map window, grouped, last, swapped;
  window.set("pads", std::vector<std::int64_t>{1, 1, 1, 1});
  grouped = window;
  grouped.set("group", std::int64_t{32});
  last.set("axis", std::int64_t{-1});
  swapped.set("perm", std::vector<std::int64_t>{0, 2, 1});
  const value_id x = n.input("x", shape{1, 8, 40, 40});
  const value_id wide = n.node("Relu", {n.node("Conv", {x, n.weights({32, 8, 3, 3}, 0.2F)}, window)});
  const value_id deep = n.node("Conv", {wide, n.weights({32, 1, 3, 3}, 0.3F)}, grouped);
  const value_id rows =
      n.node("Reshape", {deep, n.g.add_constant("dims", tensor::of<std::int64_t>({3}, {1, 32, 1600}))});
  const value_id across = n.node("Softmax", {n.node("Transpose", {rows}, swapped)}, last);
  const value_id query = n.node("MatMul", {across, n.weights({32, 64}, 0.5F)});
  const value_id scores = n.node("Softmax", {n.node("MatMul", {query, n.node("Transpose", {query}, swapped)})}, last);
  const value_id mixed = n.node("MatMul", {scores, query});
  const value_id normal = n.node("LayerNormalization", {mixed, n.weights({64}), n.weights({64})}, last);
  return n.finish(n.node("MatMul", {normal, n.weights({64, 48}, 0.3F)}));
}

/// Runs the test case `name` of this executable in a process whose kernel objects allow `most` work-items.
int run_limited(int most, const std::string& name) {
  return std::system(("DNNOPT_TEST_WORK_ITEMS=" + std::to_string(most) + " DNNOPT_OPENCL_LIBRARY='" +
                      DNNOPT_LIMITED_OPENCL "' /proc/$PPID/exe '" + name + "'")
                         .c_str());
}

}  // namespace

TEST_CASE("a model runs where its kernels allow fewer work-items than the device") {
  const char* const most = std::getenv("DNNOPT_TEST_WORK_ITEMS");
  if (most == nullptr) {
    for (const int items : {64, 24, 1})
      CHECK(run_limited(items, "a model runs where its kernels allow fewer work-items than the device") == 0);
    return;
  }
  const model m = many_kernels();
  const tensor x = ramp({1, 8, 40, 40});
  compile_options reference;
  reference.device = "reference";
  const tensor want = compile(m, reference).run({{"x", x}})[0];
  opencl::device device = opencl::select_device("opencl");
  device.info.type = device_type::gpu;
  device.info.compute_units = 16;
  device.info.max_work_group_size = 256;
  opencl::program_cache_options programs;
  programs.on_disk = false;
  compile_options options;
  options.opened = std::make_shared<opened_device>(std::move(device), programs);
  options.require_device = true;
  session s = compile(m, options);
  const std::size_t allowed = std::strtoul(most, nullptr, 10);
  std::size_t kernels = 0;
  for (const placed_node& step : s.executor()->executed().steps)
    for (const auto* plans : {&step.lowered.kernels, &step.lowered.prepare})
      for (const codegen::kernel_plan& plan : *plans) {
        INFO(plan.version);
        CHECK(std::max<std::size_t>(plan.local[0], 1) * std::max<std::size_t>(plan.local[1], 1) *
                  std::max<std::size_t>(plan.local[2], 1) <=
              allowed);
        ++kernels;
      }
  CHECK(kernels > 5);
  CHECK(s.report().smaller_work_groups.size() >= 3);
  // A search times what compile would have run.
  if (allowed == 64) {
    tuning_store store;
    const tuning_result tuned = tune(m, options, {{"x", x}}, {.seconds = 0}, store);
    CHECK(tuned.tried > 0);
    CHECK(tuned.before_us > 0);
  }
  const tensor got = s.run({{"x", x}})[0];
  for (std::size_t i = 0; i < want.data<float>().size(); ++i)
    REQUIRE(std::fabs(got.data<float>()[i] - want.data<float>()[i]) <= 1e-4F);
}

#endif
