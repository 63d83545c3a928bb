// Products that multiply in halves: near the reference, and refused where the device cannot. No device of CI has
// cl_khr_fp16, so that floats rounded after each step stand for halves there (matrix_tiles.cl).
#include "kernel_fixture.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <dnnopt/dnnopt.hpp>

#include "../support/small_network.hpp"

using namespace dnnopt;
using namespace dnnopt::testing;

namespace {

struct products_in_halves : kernel_bench {
  products_in_halves() { work_group = 256; }
  /// Whether a kernel of the last run multiplied in halves.
  [[nodiscard]] bool multiplied_halves() const {
    return std::any_of(plans.begin(), plans.end(), [](const codegen::kernel_plan& plan) { return plan.half_products; });
  }
  /// The difference to the reference with products in halves, and by how much that changes what floats give.
  std::pair<double, double> errors(const node_case& c) {
    const std::vector<tensor> want = expect(c);
    half_products = false;
    const tensor wide = run(c, device_form::groups, want).outputs[0];
    CHECK_FALSE(multiplied_halves());
    half_products = true;
    const tensor half = run(c, device_form::groups, want).outputs[0];
    return {relative_difference(half, want[0]), relative_difference(half, wide)};
  }
};

tensor f16(dim_list dims, std::uint32_t seed) { return random_tensor(dtype::float16, std::move(dims), seed); }

/// Sums of sixteen products at most are in halves, each rounded to 2^-11 of the sum so far.
constexpr double most = 4e-3;

}  // namespace

TEST_CASE_METHOD(products_in_halves, "matrix products in halves are near the reference, however long their sums") {
  const std::vector<std::pair<dim_list, dim_list>> shapes{
      {{3, 13}, {13, 33}},    {{13, 7}, {7, 1}},      {{68, 64}, {64, 132}},     {{2, 36, 20}, {2, 20, 68}},
      {{25, 700}, {700, 37}}, {{7, 4099}, {4099, 5}}, {{3, 1, 5, 7}, {2, 7, 5}},
  };
  bool differs = false;
  for (const auto& [a, b] : shapes)
    for (const bool constant : {false, true}) {
      if (left_out(a.back() > 64)) continue;
      CAPTURE(a, b, constant);
      const auto [error, change] = errors({"MatMul", {f16(a, 1), f16(b, 2)}, {false, constant}, {}, 1});
      CHECK(multiplied_halves());
      CHECK(error <= most);
      differs = differs || change > 0;
    }
  CHECK(differs);
}

TEST_CASE_METHOD(products_in_halves, "convolutions in halves are near the reference") {
  const std::vector<std::pair<dim_list, dim_list>> shapes{
      {{1, 16, 9, 11}, {20, 16, 1, 1}}, {{2, 5, 13, 13}, {25, 5, 3, 3}}, {{1, 64, 7, 7}, {16, 64, 3, 3}}};
  for (const auto& [x, w] : shapes) {
    CAPTURE(x, w);
    node_case c{"Conv", {f16(x, 1), f16(w, 2)}, {false, true}, {}, 1};
    const std::int64_t pad = w[2] / 2;
    c.attributes.set("pads", std::vector<std::int64_t>{pad, pad, pad, pad});
    const auto [error, change] = errors(c);
    CHECK(multiplied_halves());
    CHECK(error <= most);
  }
}

TEST_CASE_METHOD(products_in_halves, "products multiply in floats where an operand is one, and in panels") {
  const node_case mixed{"MatMul",
                        {random_tensor(dtype::float32, {20, 24}, 1), random_tensor(dtype::float32, {24, 28}, 2)},
                        {false, true},
                        {},
                        1};
  CHECK(errors(mixed).second == 0.0);
  CHECK_FALSE(multiplied_halves());
  const node_case halves{"MatMul", {f16({20, 24}, 1), f16({24, 28}, 2)}, {false, true}, {}, 1};
  const std::vector<tensor> want = expect(halves);
  half_products = true;
  const kernel_run panels = run(halves, device_form::vectors, want);
  CHECK(relative_difference(panels.outputs[0], want[0]) <= tolerance_of(dtype::float16));
  CHECK_FALSE(multiplied_halves());
}

TEST_CASE("arithmetic in fp16 is refused by name where the device has none") {
  network n;
  const value_id x = n.input("x", shape{8, 64});
  const model m = n.finish(n.node(
      "MatMul", {n.node("Relu", {n.node("MatMul", {x, n.weights({64, 64}, 0.2F)})}), n.weights({64, 32}, 0.2F)}));
  const tensor in = ramp({8, 64});
  compile_options options;
  options.programs.on_disk = false;
  const tensor wide = compile(m, options).run({{"x", in}})[0];
  options.precision = precision::fp16_arithmetic;
  const device_info here = compile(m, compile_options{}).context()->info();
  if (here.fp16) {
    session s = compile(m, options);
    CHECK(relative_difference(s.run({{"x", in}})[0], wide) <= 0.02);
    CHECK(s.report().storage.product_kernels >= s.report().storage.half_products);
    return;
  }
  try {
    (void)compile(m, options);
    FAIL("compiled");
  } catch (const error& e) {
    CHECK(e.code() == errc::unsupported);
    CHECK_THAT(std::string(e.what()), Catch::Contains(here.name) && Catch::Contains("cl_khr_fp16"));
  }
}

TEST_CASE("precisions have the command line's names") {
  for (const precision one : {precision::fp32, precision::fp16, precision::fp16_arithmetic})
    CHECK(find_precision(name_of(one)) == one);
  CHECK_FALSE(find_precision("fp8"));
  CHECK_FALSE(stores_halves(precision::fp32));
  CHECK(stores_halves(precision::fp16_arithmetic));
}
