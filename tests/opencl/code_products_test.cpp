// Products of dequantized operands in matrix steps of halves or of bytes: codes are multiplied, and their sums scaled.
// Results that are quantized are stored four at once.
#include <catch2/catch.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dnnopt/backend/run/executor.hpp>
#include <dnnopt/dnnopt.hpp>
#include <dnnopt/reference/evaluator.hpp>

#include "../support/largest_difference.hpp"
#include "../support/shared_device.hpp"
#include "../support/small_network.hpp"
#include "../support/unoptimized_kernels.hpp"

using namespace dnnopt;
using dnnopt::testing::largest_difference;
using dnnopt::testing::network;
using dnnopt::testing::shared_device;
using dnnopt::testing::unoptimized_kernels;

namespace {

/// Codes of all values that the type has.
tensor codes(dtype type, dim_list dims, std::uint32_t step) {
  tensor t(type, std::move(dims));
  std::uint32_t next = 3;
  for (std::size_t i = 0; i < static_cast<std::size_t>(t.size()); ++i) {
    next = (next + step) % 256;
    if (type == dtype::uint8) t.mutable_data<std::uint8_t>()[i] = static_cast<std::uint8_t>(next);
    if (type == dtype::int8) t.mutable_data<std::int8_t>()[i] = static_cast<std::int8_t>(static_cast<int>(next) - 128);
  }
  return t;
}

struct quantized_network : network {
  /// What codes mean: by one scale, or by one for each element along `axis`; `zero` may be 0 codes.
  value_id dequantize(value_id of, dtype type, std::vector<float> scales, bool zeros, std::int64_t axis = 1) {
    const auto count = static_cast<std::int64_t>(scales.size());
    const dim_list dims = count == 1 ? dim_list{} : dim_list{count};
    std::vector<value_id> in{of,
                             g.add_constant("s" + std::to_string(g.value_count()), tensor::of<float>(dims, scales))};
    if (zeros) in.push_back(g.add_constant("z" + std::to_string(g.value_count()), codes(type, dims, 61)));
    attribute_map along;
    along.set("axis", axis);
    return node("DequantizeLinear", std::move(in), along);
  }
  /// Codes of what `of` means by one scale.
  value_id quantize(value_id of, dtype type, float scale, bool zeros) {
    std::vector<value_id> in{of, g.add_constant("s" + std::to_string(g.value_count()), tensor::scalar<float>(scale))};
    if (zeros || type == dtype::int8)
      in.push_back(g.add_constant("z" + std::to_string(g.value_count()), codes(type, {}, zeros ? 61 : 125)));
    return node("QuantizeLinear", std::move(in));
  }
  value_id codes_input(std::string name, dtype type, const dim_list& dims) {
    return g.add_input(std::move(name), type, shape(dims.begin(), dims.end()));
  }
  value_id codes_constant(dtype type, dim_list dims) {
    return g.add_constant("c" + std::to_string(g.value_count()), codes(type, std::move(dims), 37));
  }
};

std::vector<float> scales(std::int64_t count) {
  std::vector<float> made;
  for (std::int64_t i = 0; i < count; ++i) made.push_back(0.003F + 0.0017F * static_cast<float>(i % 7));
  return made;
}

/// Runs the model with a provider of plain steps and compares it with the reference; `steps`: whether it takes them.
void check_with(const std::string& provider, const model& m, const std::vector<std::pair<std::string, tensor>>& inputs,
                precision stored, bool steps, double most) {
  CAPTURE(provider);
  compile_options options;
  options.opened = shared_device();
  options.form = kernel_form::groups;
  options.matrix_steps = provider;
  options.precision = stored;
  options.require_device = true;
  session s = compile(m, options);
  bool in_steps = false;
  for (const auto& step : s.executor()->executed().steps)
    for (const codegen::kernel_plan& plan : step.lowered.kernels) in_steps = in_steps || !plan.step.empty();
  CHECK(in_steps == steps);
  std::vector<tensor> in_order;
  for (const auto& [name, held] : inputs) in_order.push_back(held);
  const tensor want = reference::evaluate(m.main, in_order)[0];
  const tensor got = s.run(named_tensors(inputs))[0];
  REQUIRE(got.dims() == want.dims());
  CHECK(largest_difference(got, want) <= most);
}

void check(const model& m, const std::vector<std::pair<std::string, tensor>>& inputs, precision stored, bool steps,
           double most) {
  for (const char* const provider : {"plain", "plain_tiles"}) check_with(provider, m, inputs, stored, steps, most);
}

}  // namespace

TEST_CASE("a product of dequantized operands multiplies their codes in steps of halves") {
  const unoptimized_kernels quickly;
  const dtype type = GENERATE(dtype::int8, dtype::uint8);
  const bool zeros = GENERATE(false, true);
  const bool each = GENERATE(false, true);
  const bool constant = GENERATE(false, true);
  // Neighbours that are loaded four at a time, along either dim, and such that cannot be.
  const std::int64_t inner = GENERATE(70, 72);
  const std::int64_t columns = GENERATE(23, 24);
  CAPTURE(name_of(type), zeros, each, constant, inner, columns);
  quantized_network n;
  const dim_list a{19, inner};
  const dim_list b{inner, columns};
  std::vector<std::pair<std::string, tensor>> inputs{{"a", codes(type, a, 91)}};
  const value_id x = n.dequantize(n.codes_input("a", type, a), type, {0.011F}, zeros);
  if (!constant) inputs.emplace_back("b", codes(dtype::int8, b, 37));
  const value_id kept = constant ? n.codes_constant(dtype::int8, b) : n.codes_input("b", dtype::int8, b);
  const value_id w = n.dequantize(kept, dtype::int8, scales(each ? columns : 1), zeros);
  const model m = n.finish(n.node("Relu", {n.node("MatMul", {x, w})}));
  // What halves cannot hold is kept: codes are exact, so that sums are as good as those of floats.
  check(m, inputs, precision::fp32, true, 1e-6);
  // Steps of bytes want one zero point; tests/kernels/byte_steps_test.cpp has more of them.
  if (inner == 72 && columns == 24) check_with("plain_bytes", m, inputs, precision::fp32, !(zeros && each), 1e-6);
}

TEST_CASE("a convolution of dequantized operands multiplies their codes in steps of halves") {
  const unoptimized_kernels quickly;
  const precision stored = GENERATE(precision::fp32, precision::fp16);
  const std::int64_t kernel = GENERATE(1, 3);
  const bool zeros = GENERATE(false, true);
  const std::int64_t side = GENERATE(7, 8);
  CAPTURE(static_cast<int>(stored), kernel, zeros, side);
  quantized_network n;
  const dim_list image{2, 12, 9, side};
  const value_id codes_of_image = n.codes_input("x", dtype::uint8, image);
  // The sum of a residual reads what the convolution reads too, with its scale.
  const value_id x = n.dequantize(codes_of_image, dtype::uint8, {0.02F}, zeros);
  const value_id w =
      n.dequantize(n.codes_constant(dtype::int8, {12, 12, kernel, kernel}), dtype::int8, scales(12), false, 0);
  attribute_map padded;
  padded.set("pads", std::vector<std::int64_t>(4, kernel / 2));
  const value_id y = n.node("Conv", {x, w, n.weights({12})}, padded);
  const model m = n.finish(n.node("Add", {y, x}));
  const std::vector<std::pair<std::string, tensor>> inputs{{"x", codes(dtype::uint8, image, 91)}};
  const double most = stored == precision::fp32 ? 1e-6 : 2e-3;
  check(m, inputs, stored, true, most);
  if (side == 8) check_with("plain_bytes", m, inputs, stored, true, most);
}

TEST_CASE("where scales change along the sum, or one operand is of floats, codes are scaled first") {
  quantized_network n;
  const dim_list a{19, 70};
  const value_id x = n.dequantize(n.codes_input("a", dtype::int8, a), dtype::int8, scales(70), false, 1);
  const value_id w = n.dequantize(n.codes_constant(dtype::int8, {70, 23}), dtype::int8, {0.01F}, false);
  check(n.finish(n.node("MatMul", {x, w})), {{"a", codes(dtype::int8, a, 91)}}, precision::fp32, false, 1e-6);

  quantized_network mixed;
  const value_id y = mixed.input("a", shape{19, 70});
  const value_id v = mixed.dequantize(mixed.codes_constant(dtype::int8, {70, 23}), dtype::int8, {0.01F}, false);
  check(mixed.finish(mixed.node("MatMul", {y, v})), {{"a", dnnopt::testing::ramp(a)}}, precision::fp32, false, 1e-6);
}

TEST_CASE("results that are quantized are stored four at once, also over the codes that they are added to") {
  const unoptimized_kernels quickly;
  const dtype type = GENERATE(dtype::int8, dtype::uint8);
  const bool zeros = GENERATE(false, true);
  const std::int64_t kernel = GENERATE(1, 3);
  const auto [form, provider] =
      GENERATE(std::pair{kernel_form::groups, "plain"}, std::pair{kernel_form::groups, "plain_bytes"},
               std::pair{kernel_form::groups, "none"}, std::pair{kernel_form::vectors, "none"});
  // Rows that are whole fours, planes that are, and neither.
  const auto [height, width] = GENERATE(std::pair{3, 8}, std::pair{4, 6}, std::pair{5, 7});
  // A processor's compiler takes seconds for each kernel in plain steps: these with one kind of zero point for each
  // type.
  const bool slow = std::string_view(provider).starts_with("plain");
  if (slow && (zeros != (type == dtype::int8) || width != (kernel == 3 ? 8 : 7))) return;
  CAPTURE(name_of(type), zeros, kernel, static_cast<int>(form), provider, height, width);
  // Powers of two, so that sums and quotients are exact and a tie is one everywhere.
  constexpr float scale = 1.0F / 32;
  constexpr float scale_of_weights = 1.0F / 64;
  constexpr float scale_of_results = 8;
  quantized_network n;
  const dim_list image{2, 12, height, width};
  attribute_map padded;
  padded.set("pads", std::vector<std::int64_t>(4, kernel / 2));
  const auto convolved = [&](value_id x) {
    const value_id w = n.codes_constant(dtype::int8, {12, 12, kernel, kernel});
    return n.node("Conv", {x, n.dequantize(w, dtype::int8, {scale_of_weights}, false)}, padded);
  };
  const auto coded = [&](value_id x) {
    return n.dequantize(n.quantize(x, type, scale_of_results, zeros), type, {scale_of_results}, zeros);
  };
  const value_id x = n.dequantize(n.codes_input("x", type, image), type, {scale}, zeros);
  const value_id first = coded(convolved(x));
  const value_id second = coded(n.node("Relu", {convolved(first)}));
  const value_id sum = coded(n.node("Add", {convolved(second), first}));
  const model m = n.finish(n.quantize(convolved(sum), type, scale_of_results, zeros));

  compile_options options;
  options.opened = shared_device();
  options.form = form;
  options.matrix_steps = provider;
  options.require_device = true;
  session s = compile(m, options);
  const tensor codes_of_image = codes(type, image, 91);
  const tensor want = reference::evaluate(m.main, std::vector{codes_of_image})[0];
  const tensor got = s.run({{"x", codes_of_image}})[0];
  REQUIRE(got.dims() == want.dims());
  const std::span<const std::byte> expected = want.bytes();
  const std::span<const std::byte> found = got.bytes();
  CHECK(std::equal(found.begin(), found.end(), expected.begin(), expected.end()));

  if (std::string(provider) == "none") return;
  std::size_t together = 0;
  std::size_t halved = 0;
  const std::string held = type == dtype::int8 ? "char4" : "uchar4";
  for (const auto& step : s.executor()->executed().steps) {
    for (const codegen::kernel_plan& plan : step.lowered.kernels) {
      together += plan.source.str().find("*(__global " + held + "*)(") != std::string::npos ? 1 : 0;
      halved += plan.source.str().find("#define DNNOPT_FINISHED4 " + held + "\n") != std::string::npos ? 1 : 0;
    }
  }
  CHECK(together == (height * width % 4 == 0 ? 4 : 0));
  CHECK(halved == (height * width % 4 == 0 ? 1 : 0));
}
