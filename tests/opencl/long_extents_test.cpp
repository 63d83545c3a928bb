// Extents that may exceed 32 bits, for a run tells them and they are products: kernels hold them in longs, and OpenCL C
// does not choose between the forms of min() and max() for arguments of two types.
#include <catch2/catch.hpp>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include <dnnopt/dnnopt.hpp>
#include <dnnopt/reference/evaluator.hpp>

#include <support/onnx_writer.hpp>
#include <support/written_model.hpp>

#include "../support/noise.hpp"
#include "../support/shared_device.hpp"

using namespace dnnopt;
using dnnopt::testing::shared_device;
namespace written = dnnopt_tests;

namespace {

constexpr kernel_form forms[] = {kernel_form::vectors, kernel_form::groups};

/// A session of the form, in which nothing may run on the host.
session on_form(const model& m, kernel_form form) {
  compile_options options;
  options.opened = shared_device();
  options.form = form;
  options.require_device = true;
  return compile(m, options);
}

}  // namespace

TEST_CASE("TopK takes rows whose length is a product of dims that a run tells") {
  // As a detector of an image of any size keeps the best of its anchors: as many as are wanted, or all.
  const model m = written::loaded(written::model(written::graph(
      {written::node("Reshape", {"x", "all"}, {"row"}), written::node("Shape", {"row"}, {"length"}),
       written::node("Min", {"length", "wanted"}, {"k"}), written::node("TopK", {"row", "k"}, {"v", "i"})},
      {written::info("x", 1, {"H", "W"})}, {written::untyped("v"), written::untyped("i")},
      {written::int_tensor("all", {-1}), written::int_tensor("wanted", {300})})));
  for (const kernel_form form : forms) {
    session s = on_form(m, form);
    for (const auto& [height, width] : {std::pair<std::int64_t, std::int64_t>{3, 5}, {40, 50}, {90, 100}, {1, 300}}) {
      CAPTURE(static_cast<int>(form), height, width);
      const tensor x = testing::noise({height, width}, 1);
      const std::vector<tensor> want = reference::evaluate(m.main, std::vector{x});
      const named_tensors got = s.run({{"x", x}});
      for (std::size_t o = 0; o < 2; ++o) {
        REQUIRE(got[o].dims() == want[o].dims());
        CHECK(std::ranges::equal(got[o].bytes(), want[o].bytes()));
      }
    }
  }
}

TEST_CASE("RoiAlign takes planes whose sides are products of dims that a run tells") {
  const model m = written::loaded(written::model(written::graph(
      {written::node("Reshape", {"x", "plane"}, {"y"}),
       written::node("RoiAlign", {"y", "boxes", "images"}, {"z"},
                     {written::int_attribute("output_height", 3), written::int_attribute("output_width", 2),
                      written::int_attribute("sampling_ratio", 2)})},
      {written::info("x", 1, {"H", "W"})}, {written::untyped("z")},
      {written::int_tensor("plane", {1, 1, -1, 4}),
       written::float_tensor("boxes", {2, 4}, {0.5F, 1.0F, 3.0F, 9.0F, -1.0F, 0.0F, 2.5F, 30.0F}),
       written::int_tensor("images", {0, 0})})));
  for (const kernel_form form : forms) {
    session s = on_form(m, form);
    for (const std::int64_t height : {5, 1}) {
      CAPTURE(static_cast<int>(form), height);
      const tensor x = testing::noise({height, 8}, 2);
      const std::vector<tensor> want = reference::evaluate(m.main, std::vector{x});
      const named_tensors got = s.run({{"x", x}});
      REQUIRE(got[0].dims() == want[0].dims());
      for (std::size_t i = 0; i < want[0].data<float>().size(); ++i)
        CHECK(got[0].data<float>()[i] == Approx(want[0].data<float>()[i]).margin(1e-5));
    }
  }
}
