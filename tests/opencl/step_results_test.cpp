// What products in matrix steps make of their results: fours that are finished before any is stored, and images that
// they ask for in texels.
#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <dnnopt/backend/run/executor.hpp>
#include <dnnopt/dnnopt.hpp>
#include <dnnopt/reference/evaluator.hpp>

#include "../support/shared_device.hpp"
#include "../support/small_network.hpp"
#include "../support/unoptimized_kernels.hpp"

using namespace dnnopt;
using dnnopt::testing::network;
using dnnopt::testing::ramp;
using dnnopt::testing::shared_device;
using dnnopt::testing::unoptimized_kernels;

namespace {

session in_steps(const model& m, std::string steps, precision stored) {
  compile_options options;
  options.opened = shared_device();
  options.form = kernel_form::groups;
  options.matrix_steps = std::move(steps);
  options.precision = stored;
  options.require_device = true;
  return compile(m, options);
}

void check(const model& m, session& s, const tensor& x, float most) {
  const tensor want = reference::evaluate(m.main, std::vector{x})[0];
  const tensor got = s.run({{"x", x}})[0];
  REQUIRE(got.dims() == want.dims());
  float largest = 0;
  float worst = 0;
  for (std::size_t i = 0; i < static_cast<std::size_t>(want.size()); ++i) {
    largest = std::max(largest, std::fabs(want.data<float>()[i]));
    const float difference = std::fabs(got.data<float>()[i] - want.data<float>()[i]);
    worst = difference <= worst ? worst : difference;
  }
  CHECK(worst <= most * largest);
}

std::size_t kernels_with(const session& s, const std::string& text) {
  std::size_t found = 0;
  for (const placed_node& step : s.executor()->executed().steps)
    for (const codegen::kernel_plan& plan : step.lowered.kernels)
      found += plan.source.str().find(text) != std::string::npos ? 1 : 0;
  return found;
}

}  // namespace

TEST_CASE("fours of results in steps are finished before any is stored over what they read", "[matrix_steps]") {
  const unoptimized_kernels quickly;
  const precision stored = GENERATE(precision::fp32, precision::fp16);
  // Tiles that end within the matrix, one that does not, and a single row.
  const auto [rows, columns] = GENERATE(std::pair{19, 72}, std::pair{130, 36}, std::pair{1, 8});
  CAPTURE(static_cast<int>(stored), rows, columns);
  network n;
  const value_id x = n.input("x", {rows, columns});
  const value_id before = n.node("Relu", {n.node("MatMul", {x, n.weights({columns, columns})})});
  const value_id product = n.node("MatMul", {before, n.weights({columns, columns}, 0.1F)});
  const value_id biased = n.node("Add", {product, n.weights({columns})});
  const value_id residual = n.node("MatMul", {x, n.weights({columns, columns})});
  const value_id sum = n.node("Relu", {n.node("Add", {biased, residual})});
  const model m = n.finish(n.node("MatMul", {sum, n.weights({columns, 4})}));
  const bool halves = stored == precision::fp16;
  session s = in_steps(m, halves ? "plain" : "plain_floats", stored);
  check(m, s, ramp({rows, columns}), halves ? 1e-2F : 1e-5F);
  const std::size_t finished = kernels_with(s, "#define DNNOPT_EPILOGUE4 1\n");
  // A row by a constant matrix is another kernel's.
  if (rows > 1) {
    CHECK(finished == 1);
    CHECK(kernels_with(s, "const float4 w") >= 1);
  } else {
    CHECK(finished <= 1);
  }
}

TEST_CASE("planes of an odd number of positions are asked for in texels by products of one position",
          "[matrix_steps]") {
  const auto [side, packed] = GENERATE(std::pair{7, true}, std::pair{8, false});
  CAPTURE(side);
  network n;
  const value_id x = n.input("x", {3, 16, side, side});
  const value_id first = n.node("Relu", {n.node("Conv", {x, n.weights({24, 16, 1, 1})})});
  const value_id second = n.node("Relu", {n.node("Conv", {first, n.weights({16, 24, 1, 1}, 0.3F)})});
  const value_id third = n.node("Add", {n.node("Conv", {second, n.weights({24, 16, 1, 1}, 0.3F)}), first});
  const model m = n.finish(n.node("Conv", {n.node("Relu", {third}), n.weights({8, 24, 1, 1}, 0.3F)}));
  session s = in_steps(m, "plain", precision::fp16);
  check(m, s, ramp({3, 16, side, side}), 1e-2F);
  CHECK((s.report().storage.packed_values > 0) == packed);
}
