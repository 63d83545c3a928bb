// Selections whose sizes data decide, against the reference: their kernels are given the sizes that it finds.
#include "kernel_fixture.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <string>
#include <vector>

using namespace dnnopt;
using namespace dnnopt::testing;

namespace {

struct selections : kernel_bench {
  void check(const node_case& c, std::initializer_list<device_form> forms = {device_form::vectors}) {
    const std::vector<tensor> want = expect(c);
    for (const device_form form : forms) {
      const kernel_run got = run(c, form, want);
      for (std::size_t o = 0; o < want.size(); ++o)
        CHECK(std::equal(got.outputs[o].bytes().begin(), got.outputs[o].bytes().end(), want[o].bytes().begin(),
                         want[o].bytes().end()));
    }
  }
};

/// Every `nth` element stays, the others are zero.
tensor sparse(dtype type, dim_list dims, std::int64_t nth) {
  tensor t = random_tensor(type, std::move(dims), 3);
  const std::size_t size = size_of(type);
  for (std::int64_t i = 0; i < t.size(); ++i)
    if (i % nth != 0)
      std::fill_n(t.mutable_bytes().begin() + static_cast<std::ptrdiff_t>(static_cast<std::size_t>(i) * size), size,
                  std::byte{0});
  return t;
}

}  // namespace

TEST_CASE_METHOD(selections, "NonZero finds elements in their order, of any rank and type") {
  for (const std::int64_t nth : {1, 3, 1000})
    for (const dim_list& dims : {dim_list{1}, dim_list{64}, dim_list{5, 13, 7}}) {
      CAPTURE(nth, dims);
      check({"NonZero", {sparse(dtype::float32, dims, nth)}, {}, {}, 1});
      check({"NonZero", {sparse(dtype::int8, dims, nth)}, {}, {}, 1});
    }
}

TEST_CASE_METHOD(selections, "Compress keeps slices of an axis, or elements") {
  for (const std::int64_t axis : {0, 1, -1, 7})
    for (const std::int64_t length : {3, 5}) {
      CAPTURE(axis, length);
      tensor conditions(dtype::boolean, {length});
      for (std::size_t i = 0; i < conditions.mutable_data<bool>().size(); ++i)
        conditions.mutable_data<bool>()[i] = i % 2 == 0;
      node_case c{"Compress", {random_tensor(dtype::float32, {5, 6, 7}, 1), conditions}, {}, {}, 1};
      if (axis != 7) c.attributes.set("axis", axis);
      check(c);
    }
}

TEST_CASE_METHOD(selections, "Unique gives distinct slices, where they stand first, inverse indices and counts") {
  for (const std::int64_t sorted : {0, 1}) {
    for (const dtype type : {dtype::int64, dtype::uint8}) {
      node_case c{"Unique", {random_tensor(type, {3, 29}, 5)}, {}, {}, 4};
      c.attributes.set("sorted", sorted);
      check(c);
    }
    node_case c{"Unique", {random_tensor(dtype::float32, {2, 9, 3}, 5)}, {}, {}, 4};
    auto x = c.inputs[0].mutable_data<float>();
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i / 3 % 9 % 4);
    x[4] = x[13] = std::numeric_limits<float>::quiet_NaN();
    c.attributes.set("sorted", sorted);
    c.attributes.set("axis", std::int64_t{1});
    check(c);
  }
}

TEST_CASE_METHOD(selections, "NonMaxSuppression takes the best boxes that do not overlap, per image and class") {
  const std::int64_t count = 37;
  tensor boxes(dtype::float32, {2, count, 4});
  auto b = boxes.mutable_data<float>();
  for (std::size_t i = 0; i < b.size() / 4; ++i) {
    const auto at = static_cast<float>(i * 7 % 20);
    b[4 * i] = at;
    b[4 * i + 1] = at / 2;
    b[4 * i + 2] = at + 3 + static_cast<float>(i % 3);
    b[4 * i + 3] = at / 2 + 4;
  }
  tensor scores = random_tensor(dtype::float32, {2, 3, count}, 9);
  // Some scores are equal.
  auto s = scores.mutable_data<float>();
  for (std::size_t i = 0; i < s.size(); i += 5) s[i] = 0.5F;
  for (const std::int64_t most : {0, 1, 100})
    for (const std::int64_t centered : {0, 1})
      for (const bool limited : {false, true}) {
        CAPTURE(most, centered, limited);
        node_case c{"NonMaxSuppression",
                    {boxes, scores, tensor::of<std::int64_t>({1}, std::vector<std::int64_t>{most}),
                     tensor::scalar<float>(0.3F)},
                    {},
                    {},
                    1};
        if (limited) c.inputs.push_back(tensor::scalar<float>(0.4F));
        c.attributes.set("center_point_box", centered);
        check(c, {device_form::vectors, device_form::groups});
      }
}

TEST_CASE_METHOD(selections,
                 "NonMaxSuppression of more boxes than a work-group has work-items, with scores of any kind") {
  const std::int64_t count = 600;
  tensor boxes = random_tensor(dtype::float32, {1, count, 4}, 21);
  auto b = boxes.mutable_data<float>();
  for (std::size_t i = 0; i < b.size(); i += 4) {
    const auto place = static_cast<float>(i / 4);
    b[i] = std::fmod(place * 37, 101.0F);
    b[i + 1] = std::fmod(place * 53, 97.0F);
    b[i + 2] = b[i] + 4 + std::fabs(b[i + 2]);
    b[i + 3] = b[i + 1] + 4 + std::fabs(b[i + 3]);
  }
  // One box has no corner.
  b[4 * 30] = std::numeric_limits<float>::quiet_NaN();
  tensor scores = random_tensor(dtype::float32, {1, 2, count}, 22);
  auto s = scores.mutable_data<float>();
  for (std::size_t i = 0; i < s.size(); i += 7) s[i] = i % 2 == 0 ? 0.0F : -0.0F;
  s[5] = s[700] = std::numeric_limits<float>::quiet_NaN();
  s[6] = std::numeric_limits<float>::infinity();
  s[8] = -std::numeric_limits<float>::infinity();
  for (const std::int64_t most : {3, 1000})
    for (const bool limited : {false, true}) {
      CAPTURE(most, limited);
      node_case c{
          "NonMaxSuppression",
          {boxes, scores, tensor::of<std::int64_t>({1}, std::vector<std::int64_t>{most}), tensor::scalar<float>(0.2F)},
          {},
          {},
          1};
      if (limited) c.inputs.push_back(tensor::scalar<float>(-0.1F));
      CHECK(expect(c)[0].dims()[0] >= 2 * std::min<std::int64_t>(most, 100));
      check(c, {device_form::vectors, device_form::groups});
    }
}
