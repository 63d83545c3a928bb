// Checks where the reference samples: coordinates in single precision, whole lengths, padding by each tap.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <catch2/catch.hpp>

#include <dnnopt/reference/resize.hpp>
#include <dnnopt/reference/sampling_grid.hpp>

namespace {

using dnnopt::attribute;
using dnnopt::tensor;
using named_attributes = std::vector<std::pair<std::string, attribute>>;

tensor run(dnnopt::evaluate_function f, const std::vector<tensor>& inputs, const named_attributes& named) {
  dnnopt::attribute_map attributes;
  for (const auto& [name, value] : named) attributes.set(name, value);
  std::vector<tensor> outputs(1);
  f(attributes, inputs, outputs);
  return outputs[0];
}
template <class T>
tensor row(const std::vector<T>& values) {
  return tensor::of<T>({static_cast<std::int64_t>(values.size())}, values);
}
tensor counted(std::int64_t n) {
  std::vector<float> values;
  for (std::int64_t i = 0; i < n; ++i) values.push_back(static_cast<float>(i));
  return row(values);
}
std::vector<float> values(const tensor& t) { return {t.data<float>().begin(), t.data<float>().end()}; }
std::vector<float> resized(std::int64_t from, const named_attributes& named, const tensor& scales,
                           const tensor& sizes = {}) {
  return values(run(dnnopt::reference::resampling::resize, {counted(from), tensor(), scales, sizes}, named));
}
const std::string coordinates = "coordinate_transformation_mode";

}  // namespace

TEST_CASE("Resize: the output has a whole length, by which corners are aligned and halves are pixels") {
  // 5 * 0.7 is 3.5: three elements.
  CHECK(resized(5, {{"mode", std::string("linear")}, {coordinates, std::string("align_corners")}},
                row<float>({0.7F})) == std::vector<float>{0, 2, 4});
  CHECK(resized(3, {{"mode", std::string("linear")}, {coordinates, std::string("pytorch_half_pixel")}}, {},
                row<std::int64_t>({1})) == std::vector<float>{0});
}

TEST_CASE("Resize: the scale rounds to single precision before the nearest element is chosen") {
  for (const std::int64_t from : {5, 10, 20})
    for (const float scale : {0.6F, 0.7F, 1.3F, 2.6F}) {
      const auto got = resized(from, {}, row<float>({scale}));
      for (std::size_t i = 0; i < got.size(); ++i) {
        const float x = (static_cast<float>(i) + 0.5F) / scale - 0.5F;
        const float low = std::floor(x);
        CHECK(got[i] == std::clamp(x - low > 0.5F ? low + 1.0F : low, 0.0F, static_cast<float>(from - 1)));
      }
    }
}

TEST_CASE("Resize: a scale that keeps every length keeps every element") {
  CHECK(resized(2, {{coordinates, std::string("asymmetric")}, {"nearest_mode", std::string("floor")}},
                row<float>({1.4F})) == std::vector<float>{0, 1});
}

TEST_CASE("Resize: an interpolated integer is cut off") {
  const tensor x = row<std::int32_t>({0, 3, -3});
  const tensor y = run(dnnopt::reference::resampling::resize, {x, tensor(), tensor(), row<std::int64_t>({6})},
                       {{"mode", std::string("linear")}});
  // 0, 0.75, 2.25, 1.5, -1.5, -3
  CHECK(std::vector<std::int32_t>(y.data<std::int32_t>().begin(), y.data<std::int32_t>().end()) ==
        std::vector<std::int32_t>{0, 0, 2, 1, -1, -3});
}

TEST_CASE("GridSample: each tap of a cubic is padded by itself") {
  const tensor x = tensor::of<float>({1, 1, 1, 4}, std::vector<float>{1, 2, 4, 8});
  // The coordinate is -1: taps -2 to 1, of which those below 0 read element 0; all weight lies on tap -1.
  const tensor grid = tensor::of<float>({1, 1, 1, 2}, std::vector<float>{-1.25F, 0});
  const named_attributes cubic{{"mode", std::string("cubic")}, {"padding_mode", std::string("border")}};
  CHECK(values(run(dnnopt::reference::resampling::grid_sample, {x, grid}, cubic)) == std::vector<float>{1});
  // At -0.75 the farthest tap, 1.75 away, reads element 1: it would weigh nothing, were the coordinate clamped to 0.
  const tensor beyond = tensor::of<float>({1, 1, 1, 2}, std::vector<float>{-1.125F, 0});
  CHECK(values(run(dnnopt::reference::resampling::grid_sample, {x, beyond}, cubic))[0] == Approx(1 - 0.03515625F));
}

TEST_CASE("AffineGrid: the only element of an axis with aligned corners lies at its start") {
  const tensor theta = tensor::of<float>({1, 2, 3}, std::vector<float>{1, 0, 0, 0, 1, 0});
  CHECK(values(run(dnnopt::reference::resampling::affine_grid, {theta, row<std::int64_t>({1, 1, 1, 2})},
                   {{"align_corners", std::int64_t{1}}})) == std::vector<float>{-1, -1, 1, -1});
}
