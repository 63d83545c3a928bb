// Interpolation against the reference: along rows on processors, an element per work-item elsewhere.
#include "kernel_fixture.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

using namespace dnnopt;
using namespace dnnopt::testing;

namespace {

struct resampling : kernel_bench {
  void check(const node_case& c, const std::string& on_processors) {
    const std::vector<tensor> want = expect(c);
    for (const auto& [form, version] :
         {std::pair(device_form::vectors, on_processors), std::pair(device_form::groups, std::string("map"))}) {
      const kernel_run got = run(c, form, want);
      CHECK(got.versions == std::vector<std::string>{version});
      CHECK(relative_difference(got.outputs[0], want[0]) <= tolerance_of(want[0].type()));
    }
  }
};

node_case resize(dtype type, dim_list dims, const std::vector<float>& scales, const std::string& mode) {
  node_case c{"Resize",
              {random_tensor(type, std::move(dims), 1), tensor(),
               tensor(dtype::float32, {static_cast<std::int64_t>(scales.size())})},
              {false, true, true},
              {},
              1};
  std::copy(scales.begin(), scales.end(), c.inputs[2].mutable_data<float>().begin());
  c.attributes.set("mode", mode);
  return c;
}

}  // namespace

TEST_CASE_METHOD(resampling, "interpolation along rows equals the reference, whatever the coordinates") {
  const std::vector<std::pair<dim_list, std::vector<float>>> forms{
      {{1, 3, 5, 7}, {1, 1, 2, 2}},      {{2, 1, 9, 4}, {1, 1, 1.7F, 2.5F}}, {{1, 2, 13, 37}, {1, 1, 0.6F, 0.4F}},
      {{3, 4, 8}, {1, 2, 1.3F}},         {{1, 2, 3, 4, 5}, {1, 1, 2, 3, 2}}, {{1, 1, 6, 1}, {1, 1, 2, 9}},
      {{1, 5, 4, 16}, {1, 1, 1, 1.25F}},
  };
  for (const auto& [dims, scales] : forms)
    for (const std::string mode : {"linear", "cubic"})
      for (const std::string coordinates :
           {"half_pixel", "align_corners", "asymmetric", "pytorch_half_pixel", "half_pixel_symmetric"}) {
        // The reference has no cubic form for three dims, nor has ONNX.
        if (mode == "cubic" && std::count_if(scales.begin(), scales.end(), [](float s) { return s != 1; }) > 2)
          continue;
        CAPTURE(dims, scales, mode, coordinates);
        node_case c = resize(dtype::float32, dims, scales, mode);
        c.attributes.set("coordinate_transformation_mode", coordinates);
        check(c, "map_rows");
      }
}

TEST_CASE_METHOD(resampling, "interpolation with taps outside, antialiasing, crops, halves and nearest elements") {
  for (const char* const more : {"exclude_outside", "antialias"})
    for (const std::string mode : {"linear", "cubic"}) {
      CAPTURE(more, mode);
      node_case c = resize(dtype::float32, {1, 2, 11, 23}, {1, 1, 0.7F, 0.55F}, mode);
      c.attributes.set(more, std::int64_t{1});
      check(c, "map_rows");
    }
  for (const std::string nearest : {"floor", "ceil", "round_prefer_floor", "round_prefer_ceil"}) {
    CAPTURE(nearest);
    node_case c = resize(dtype::float32, {1, 2, 7, 11}, {1, 1, 1.25F, 2.75F}, "nearest");
    c.attributes.set("nearest_mode", nearest);
    check(c, "map_rows");
  }
  check(resize(dtype::float16, {1, 3, 6, 8}, {1, 1, 2, 2}, "linear"), "map_rows");
  check(resize(dtype::float32, {1, 8, 6, 3}, {1, 1, 2, 2}, "linear"), "map");  // rows of six elements

  node_case crop = resize(dtype::float32, {1, 1, 9, 9}, {1, 1, 2, 2}, "linear");
  crop.inputs[1] = tensor(dtype::float32, {8});
  const std::vector<float> bounds{0, 0, 0.1F, -0.2F, 1, 1, 0.8F, 1.1F};
  std::copy(bounds.begin(), bounds.end(), crop.inputs[1].mutable_data<float>().begin());
  crop.attributes.set("coordinate_transformation_mode", std::string("tf_crop_and_resize"));
  crop.attributes.set("extrapolation_value", 7.5F);
  check(crop, "map_rows");
}

TEST_CASE_METHOD(resampling, "samples at a grid equal the reference") {
  for (const std::string mode : {"linear", "nearest", "cubic"})
    for (const std::string padding : {"zeros", "border", "reflection"})
      for (const std::int64_t align : {0, 1}) {
        CAPTURE(mode, padding, align);
        node_case c{"GridSample",
                    {random_tensor(dtype::float32, {2, 3, 7, 9}, 1), random_tensor(dtype::float32, {2, 5, 11, 2}, 2)},
                    {},
                    {},
                    1};
        c.attributes.set("mode", mode);
        c.attributes.set("padding_mode", padding);
        c.attributes.set("align_corners", align);
        check(c, "map_rows");
      }
}
