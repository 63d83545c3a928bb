// Kernels that keep partial sums in memory of their own run for sizes that only a run tells.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include <catch2/catch.hpp>

#include <dnnopt/backend/measure/opened_device.hpp>
#include <dnnopt/ops/standard.hpp>
#include <dnnopt/passes/rewriting/edit.hpp>
#include <dnnopt/session.hpp>

#include "../support/noise.hpp"

TEST_CASE("scratch memory grows with rows that data count") {
  using namespace dnnopt;
  using dnnopt::testing::noise;
  model m;
  m.ops = standard_ops();
  graph& g = m.main;
  const auto node = [&](const char* op, std::vector<value_id> read, const char* key = nullptr, attribute held = {}) {
    attribute_map attributes;
    if (key != nullptr) attributes.set(key, std::move(held));
    return rewriting::append(g, m.ops.at("", op), op, std::move(read), std::move(attributes));
  };
  const value_id x = g.add_input("x", dtype::float32, shape{3, 4});
  const value_id places = node("Cast", {node("NonZero", {x})}, "to", std::int64_t{1});
  const value_id rows = node("Transpose", {places}, "perm", std::vector<std::int64_t>{1, 0});
  // A long sum for few rows, which work-groups share.
  const value_id wide = node("Relu", {node("MatMul", {rows, g.add_constant("w", noise({2, 1024}, 1))})});
  g.add_output(node("MatMul", {wide, g.add_constant("v", noise({1024, 16}, 2))}));
  compile_options options;
  options.opened = std::make_shared<opened_device>("opencl", opencl::program_cache_options{.on_disk = false});
  options.form = kernel_form::groups;
  session on_device = compile(m, options);
  compile_options plain;
  plain.device = "reference";
  session reference = compile(m, plain);
  for (const std::size_t count : {std::size_t{2}, std::size_t{12}, std::size_t{0}, std::size_t{5}}) {
    tensor content(dtype::float32, {3, 4});
    for (std::size_t i = 0; i < count; ++i) content.mutable_data<float>()[i] = 1;
    named_tensors inputs;
    inputs.add("x", content);
    const named_tensors found = on_device.run(inputs);
    const named_tensors expected = reference.run(inputs);
    REQUIRE(found[0].dims() == expected[0].dims());
    float worst = 0;
    float most = 1;
    for (std::size_t i = 0; i < found[0].data<float>().size(); ++i) {
      worst = std::max(worst, std::abs(found[0].data<float>()[i] - expected[0].data<float>()[i]));
      most = std::max(most, std::abs(expected[0].data<float>()[i]));
    }
    CHECK(worst <= 1e-5F * most);
  }
}
