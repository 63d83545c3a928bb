// TopK of long rows sorts them in kernels, with the values and indices of the reference, bit by bit.
#include <catch2/catch.hpp>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include <dnnopt/dnnopt.hpp>
#include <dnnopt/reference/elements.hpp>
#include <dnnopt/reference/evaluator.hpp>

#include <support/onnx_writer.hpp>
#include <support/written_model.hpp>

#include "../support/shared_device.hpp"

using namespace dnnopt;
using dnnopt::testing::shared_device;
namespace written = dnnopt_tests;

namespace {

/// Elements in no order, among them many equal ones, and of reals both zeros, infinities and NaN.
tensor numbers(dtype type, dim_list dims) {
  std::vector<double> drawn_numbers(static_cast<std::size_t>(element_count(dims)));
  std::uint32_t state = 1;
  for (double& v : drawn_numbers) {
    state = state * 1664525U + 1013904223U;
    const std::uint32_t drawn = state >> 16U;
    v = static_cast<double>(drawn % (size_of(type) == 1 ? 101 : 3001));
    if (is_floating(type)) {
      constexpr double special[] = {0.0, -0.0, std::numeric_limits<double>::infinity(),
                                    -std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN()};
      v = drawn % 37 == 0 ? special[drawn / 37 % 5] : v * 0.03125 - 40.0;
    }
  }
  return reference::store_all<double>(type, std::move(dims), drawn_numbers);
}

struct setting {
  std::int64_t axis = -1;
  std::int64_t largest = 1;
  std::int64_t sorted = 1;
};

/// v and i of TopK along an axis of x, where k is the length of `like`, of which nothing but that counts.
model selecting(dtype type, const std::vector<std::string>& dims, const std::string& k, const setting& s) {
  return written::loaded(written::model(written::graph(
      {written::node("Shape", {"like"}, {"k"}),
       written::node("TopK", {"x", "k"}, {"v", "i"},
                     {written::int_attribute("axis", s.axis), written::int_attribute("largest", s.largest),
                      written::int_attribute("sorted", s.sorted)})},
      {written::info("x", static_cast<std::int64_t>(type), dims), written::info("like", 1, {k})},
      {written::untyped("v"), written::untyped("i")})));
}

/// A session of the form, in which nothing may run on the host.
session on_form(const model& m, kernel_form form) {
  compile_options options;
  options.opened = shared_device();
  options.form = form;
  options.require_device = true;
  return compile(m, options);
}

void check(const model& m, session& s, const tensor& x, std::int64_t k) {
  CAPTURE(x.dims(), k);
  const tensor like(dtype::float32, {k});
  const std::vector<tensor> want = reference::evaluate(m.main, std::vector{x, like});
  const named_tensors got = s.run({{"x", x}, {"like", like}});
  REQUIRE(got.size() == 2);
  for (std::size_t o = 0; o < 2; ++o) {
    INFO("output " << o);
    CHECK(got[o].dims() == want[o].dims());
    if (o == 0 && got[o].type() == dtype::float16) {
      // A driver's vstore_half may give NaN other bits.
      const auto bits = [](const tensor& t) {
        std::vector<std::uint16_t> held(static_cast<std::size_t>(t.size()));
        std::memcpy(held.data(), t.bytes().data(), t.bytes().size());
        for (std::uint16_t& one : held)
          if ((one & 0x7FFFU) > 0x7C00U) one = 0x7E00U;
        return held;
      };
      CHECK(bits(got[o]) == bits(want[o]));
    } else {
      CHECK(std::ranges::equal(got[o].bytes(), want[o].bytes()));
    }
  }
}

constexpr kernel_form forms[] = {kernel_form::vectors, kernel_form::groups};

}  // namespace

TEST_CASE("TopK of long rows of each element type is that of the reference") {
  for (const kernel_form form : forms)
    for (const dtype type :
         {dtype::float32, dtype::float16, dtype::bfloat16, dtype::float64, dtype::int64, dtype::int32, dtype::int16,
          dtype::int8, dtype::uint64, dtype::uint32, dtype::uint16, dtype::uint8}) {
      CAPTURE(static_cast<int>(form), name_of(type));
      const std::int64_t largest = type == dtype::float32 || type == dtype::int16 || type == dtype::uint64 ? 0 : 1;
      const model m = selecting(type, {"2", "1100"}, "70", {-1, largest, 1});
      session s = on_form(m, form);
      check(m, s, numbers(type, {2, 1100}), 70);
    }
}

TEST_CASE("TopK of long rows takes any axis, from the front or the end, for few elements or all") {
  for (const kernel_form form : forms)
    for (const std::int64_t largest : {0, 1})
      for (const std::int64_t k : {1, 64, 65, 300, 1500}) {
        CAPTURE(static_cast<int>(form), largest, k);
        const std::string name = std::to_string(k);
        const model middle = selecting(dtype::float32, {"2", "1500", "3"}, name, {1, largest, k == 65 ? 0 : 1});
        session s = on_form(middle, form);
        check(middle, s, numbers(dtype::float32, {2, 1500, 3}), k);
        if (k != 300) continue;
        const model first = selecting(dtype::float32, {"1500", "1", "3"}, name, {-3, largest, 1});
        session of_first = on_form(first, form);
        check(first, of_first, numbers(dtype::float32, {1500, 1, 3}), k);
        const model row = selecting(dtype::float32, {"5000"}, name, {0, largest, 1});
        session of_row = on_form(row, form);
        check(row, of_row, numbers(dtype::float32, {5000}), k);
        check(row, of_row, tensor(dtype::float32, {5000}), k);
      }
}

TEST_CASE("one program takes TopK of rows of all lengths, of as many elements as a run tells") {
  for (const kernel_form form : forms)
    for (const std::int64_t axis : {0, 1}) {
      CAPTURE(static_cast<int>(form), axis);
      const model m = selecting(dtype::float32, {"N", "M"}, "K", {axis, 1, 1});
      session s = on_form(m, form);
      for (const std::int64_t length : {0, 1, 63, 64, 65, 1024, 1025, 4096, 4097, 9000})
        for (const std::int64_t k : {std::int64_t{0}, std::min<std::int64_t>(length, 100), length})
          for (const std::int64_t rows : {1, 3, 0})
            check(m, s, numbers(dtype::float32, axis == 0 ? dim_list{length, rows} : dim_list{rows, length}), k);
    }
}

TEST_CASE("keys of TopK are what the element type holds, also where a kernel computes them with more digits") {
  // Products of halves that differ, and are one half when they are rounded.
  const model m = written::loaded(written::model(
      written::graph({written::node("Mul", {"x", "x"}, {"square"}), written::node("Shape", {"like"}, {"k"}),
                      written::node("TopK", {"square", "k"}, {"v", "i"})},
                     {written::info("x", 10, {"2000"}), written::info("like", 1, {"2000"})},
                     {written::untyped("v"), written::untyped("i")})));
  for (const kernel_form form : forms) {
    session s = on_form(m, form);
    check(m, s, numbers(dtype::float16, {2000}), 2000);
  }
}

TEST_CASE("TopK of what a selection leaves sorts where that is much") {
  // The length is known when the run comes there.
  const model m = written::loaded(written::model(
      written::graph({written::node("Compress", {"x", "kept"}, {"some"}, {written::int_attribute("axis", 0)}),
                      written::node("Shape", {"like"}, {"k"}), written::node("TopK", {"some", "k"}, {"v", "i"})},
                     {written::info("x", 1, {"N"}), written::info("kept", 9, {"N"}), written::info("like", 1, {"K"})},
                     {written::untyped("v"), written::untyped("i")})));
  for (const kernel_form form : forms) {
    session s = on_form(m, form);
    for (const std::int64_t length : {9000, 100, 5000})
      for (const std::int64_t k : {1, 30}) {
        const tensor x = numbers(dtype::float32, {length});
        tensor kept(dtype::boolean, {length});
        std::size_t at = 0;
        for (bool& v : kept.mutable_data<bool>()) v = at++ % 3 != 0;
        const tensor like(dtype::float32, {k});
        const std::vector<tensor> want = reference::evaluate(m.main, std::vector{x, kept, like});
        const named_tensors got = s.run({{"x", x}, {"kept", kept}, {"like", like}});
        for (std::size_t o = 0; o < 2; ++o) CHECK(std::ranges::equal(got[o].bytes(), want[o].bytes()));
      }
  }
}

TEST_CASE("the work of TopK grows with its elements, not with their square") {
  // A million elements, for which a search for each of them would take minutes.
  for (const std::int64_t k : {100, 500000}) {
    const model m = selecting(dtype::float32, {"1", "1000000"}, std::to_string(k), {});
    session s = on_form(m, kernel_form::native);
    check(m, s, numbers(dtype::float32, {1, 1000000}), k);
  }
}
