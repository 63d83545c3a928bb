// Work-groups that were published for devices: the table, and kernels that run by it.
#include <catch2/catch.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <dnnopt/backend/codegen/work_groups.hpp>
#include <dnnopt/backend/measure/opened_device.hpp>
#include <dnnopt/backend/run/executor.hpp>
#include <dnnopt/dnnopt.hpp>

#include "../support/small_network.hpp"

using namespace dnnopt;
using codegen::grid_size;
using codegen::grid_work;
using dnnopt::testing::network;
using dnnopt::testing::ramp;

namespace {

device_info called(std::string language_version, std::size_t most = 1024) {
  device_info info;
  info.name = "a GPU";
  info.language_version = std::move(language_version);
  info.max_work_group_size = most;
  return info;
}

/// Two depthwise convolutions between pointwise ones, so that what they read and write are texels.
model separable() {
  network n;
  attribute_map window;
  window.set("pads", std::vector<std::int64_t>{1, 1, 1, 1});
  window.set("group", std::int64_t{37});
  attribute_map halving = window;
  halving.set("strides", std::vector<std::int64_t>{2, 2});
  const value_id x = n.input("x", shape{2, 3, 13, 17});
  const value_id wide = n.node("Relu", {n.node("Conv", {x, n.weights({37, 3, 1, 1}, 0.3F)})});
  const value_id deep = n.node("Relu", {n.node("Conv", {wide, n.weights({37, 1, 3, 3}, 0.3F)}, window)});
  const value_id half = n.node("Relu", {n.node("Conv", {deep, n.weights({37, 1, 3, 3}, 0.3F)}, halving)});
  return n.finish(n.node("Conv", {half, n.weights({8, 37, 1, 1}, 0.3F)}));
}

}  // namespace

TEST_CASE("published work-groups by device, case, and kind of work") {
  const auto find = [](const device_info& device, grid_work work, std::int64_t window, std::int64_t stride,
                       grid_size grid = {56, 56, 16}, std::int64_t channels = 64) {
    return codegen::find_work_group(device, work, window, stride, grid, channels);
  };
  const device_info pixel = called("OpenCL C 2.0 Adreno(TM) 630");
  CHECK(find(pixel, grid_work::convolution, 5, 1) == grid_size{4, 8, 4});
  CHECK(find(pixel, grid_work::convolution, 3, 2) == grid_size{8, 4, 4});
  CHECK(find(pixel, grid_work::depthwise_convolution, 3, 1) == grid_size{4, 4, 8});
  CHECK(find(pixel, grid_work::depthwise_convolution, 3, 2) == grid_size{4, 4, 4});
  // The paper prints (8, 4, 2); the source by its authors has this one.
  CHECK(find(called("OpenCL C 2.0 Adreno(TM) 509"), grid_work::depthwise_convolution, 3, 1) == grid_size{8, 8, 2});
  // Of the 540 there is no case, though one of the 510 would fit.
  CHECK(find(called("OpenCL C 2.0 Adreno(TM) 540"), grid_work::convolution, 3, 2) == grid_size{8, 2, 2});
  CHECK(find(called("OpenCL C 2.0 Adreno(TM) 510"), grid_work::convolution, 3, 2) == grid_size{8, 2, 8});
  // Few channels, and columns or rows of five: the defaults by slices.
  CHECK(find(pixel, grid_work::convolution, 5, 1, {56, 56, 7}, 28) == grid_size{16, 16, 4});
  CHECK(find(pixel, grid_work::convolution, 5, 1, {5, 56, 64}, 256) == grid_size{4, 4, 64});
  CHECK(find(called("OpenCL C 3.0 Adreno(TM) 740"), grid_work::convolution, 3, 1) == grid_size{8, 8, 16});
  CHECK(find(called("OpenCL C 2.0 v1.r19p0 Mali-G72"), grid_work::convolution, 3, 1) == grid_size{4, 2, 16});
  // A device that allows less.
  CHECK(find(called("OpenCL C 3.0 Adreno(TM) 740", 256), grid_work::convolution, 3, 1) == grid_size{4, 8, 8});
  CHECK(find(called("OpenCL C 3.0 Adreno(TM) 740", 1), grid_work::convolution, 3, 1) == grid_size{1, 1, 1});
  CHECK_FALSE(find(called("OpenCL C 1.2"), grid_work::convolution, 3, 1));
}

TEST_CASE("depthwise convolutions run in published work-groups, rounded up beyond their grids") {
  const model m = separable();
  const tensor x = ramp({2, 3, 13, 17});
  compile_options reference;
  reference.device = "reference";
  const tensor want = compile(m, reference).run({{"x", x}})[0];
  struct expected {
    std::string words;
    std::array<std::size_t, 3> first, second;
  };
  for (const expected& e :
       {expected{"", {64, 1, 1}, {64, 1, 1}}, expected{"OpenCL C 2.0 Adreno(TM) 630", {4, 4, 8}, {4, 4, 4}},
        expected{"OpenCL C 2.0 Adreno(TM) 540", {8, 8, 2}, {8, 8, 2}},
        expected{"OpenCL C 2.0 v1.r19p0 Mali-G72", {4, 4, 8}, {4, 4, 8}}}) {
    INFO(e.words);
    opencl::device device = opencl::select_device("opencl");
    device.info.type = device_type::gpu;
    device.info.max_work_group_size = std::min<std::size_t>(device.info.max_work_group_size, 256);
    if (!e.words.empty()) device.info.language_version = e.words;
    opencl::program_cache_options programs;
    programs.on_disk = false;
    compile_options options;
    options.opened = std::make_shared<opened_device>(std::move(device), programs);
    options.memory_objects = memory_objects::packed;
    session s = compile(m, options);
    std::vector<std::array<std::size_t, 3>> groups;
    for (const placed_node& step : s.executor()->executed().steps)
      for (const codegen::kernel_plan& plan : step.lowered.kernels)
        if (plan.version == "convolution_texels") groups.push_back(plan.local);
    REQUIRE(groups.size() == 2);
    CHECK(groups[0] == e.first);
    CHECK(groups[1] == e.second);
    const tensor got = s.run({{"x", x}})[0];
    for (std::size_t i = 0; i < want.data<float>().size(); ++i)
      REQUIRE(std::fabs(got.data<float>()[i] - want.data<float>()[i]) <= 1e-5F);
  }
}
