// Inputs and outputs that the caller exchanges as halves.
#include <dnnopt/half_io.hpp>

#include <catch2/catch.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <dnnopt/dnnopt.hpp>
#include <dnnopt/reference/evaluator.hpp>

#include "../support/shared_device.hpp"
#include "../support/small_network.hpp"

using namespace dnnopt;
using dnnopt::testing::network;
using dnnopt::testing::ramp;
using dnnopt::testing::shared_device;

namespace {

tensor halved(const tensor& wide) {
  tensor half(dtype::float16, wide.dims());
  for (std::size_t i = 0; i < static_cast<std::size_t>(wide.size()); ++i)
    half.mutable_data<float16>()[i] = float16(wide.data<float>()[i]);
  return half;
}

std::vector<std::string> names_of(const graph& g, const std::vector<value_id>& values) {
  std::vector<std::string> names;
  for (const value_id v : values) names.push_back(g.value_at(v).name);
  return names;
}

}  // namespace

TEST_CASE("a model that exchanges halves computes what it did of them, with as many kernels") {
  network n;
  const value_id x = n.input("x", {2, 3, 9, 9});
  attribute_map same;
  same.set("pads", std::vector<std::int64_t>(4, 1));
  const value_id y = n.node("Relu", {n.node("Conv", {x, n.weights({8, 3, 3, 3})}, same)});
  const value_id z = n.node("Conv", {y, n.weights({4, 8, 1, 1})});
  n.g.facts(z).type = dtype::float32;
  const model m = n.finish(z);
  model halves = m;
  CHECK(exchange_halves(halves) == std::vector<std::string>{"x", m.main.value_at(m.main.outputs()[0]).name});
  CHECK(names_of(halves.main, halves.main.outputs()) == names_of(m.main, m.main.outputs()));
  const tensor given = halved(ramp({2, 3, 9, 9}));
  const tensor want = reference::evaluate(halves.main, std::vector{given})[0];
  REQUIRE(want.type() == dtype::float16);
  for (const kernel_form form : {kernel_form::vectors, kernel_form::groups})
    for (const precision stored : {precision::fp32, precision::fp16}) {
      CAPTURE(static_cast<int>(form), static_cast<int>(stored));
      compile_options options;
      options.opened = shared_device();
      options.form = form;
      options.precision = stored;
      options.matrix_steps = "plain";
      options.require_device = true;
      session whole = compile(m, options);
      (void)whole.run({{"x", ramp({2, 3, 9, 9})}});
      session s = compile(halves, options);
      const tensor got = s.run({{"x", given}})[0];
      REQUIRE(got.type() == dtype::float16);
      CHECK(s.kernels() == whole.kernels());
      for (std::size_t i = 0; i < static_cast<std::size_t>(want.size()); ++i) {
        const float difference =
            std::fabs(static_cast<float>(got.data<float16>()[i]) - static_cast<float>(want.data<float16>()[i]));
        if (!(difference <= 3e-2F)) FAIL("element " << i << " differs by " << difference);
      }
      CHECK_THROWS_AS(s.run({{"x", ramp({2, 3, 9, 9})}}), error);
    }
}

TEST_CASE("what is an input and an output, an output twice or no float is exchanged once and as it is") {
  network n;
  const value_id x = n.input("x", {4});
  const value_id i = n.g.add_input("i", dtype::int64, shape{4});
  const value_id y = n.node("Relu", {x});
  n.g.facts(y).type = dtype::float32;
  n.g.add_output(x);
  n.g.add_output(i);
  n.g.add_output(y);
  model m = n.finish(y);
  CHECK(exchange_halves(m) == std::vector<std::string>{"x", m.main.value_at(m.main.outputs()[2]).name});
  REQUIRE(m.main.outputs().size() == 4);
  CHECK(m.main.outputs()[0] == x);
  CHECK(m.main.outputs()[1] == i);
  CHECK(m.main.outputs()[2] == m.main.outputs()[3]);
  const tensor given = tensor::of<float16>({4}, std::vector{float16(-1.0F), float16(0.5F), float16(2.0F), float16(0)});
  const tensor counts = tensor::of<std::int64_t>({4}, std::vector<std::int64_t>{1, 2, 3, 4});
  compile_options options;
  options.opened = shared_device();
  session s = compile(m, options);
  const named_tensors got = s.run({{"x", given}, {"i", counts}});
  CHECK(are_same(got[0], given));
  CHECK(are_same(got[1], counts));
  CHECK(static_cast<float>(got[2].data<float16>()[0]) == 0);
  CHECK(static_cast<float>(got[3].data<float16>()[2]) == 2);
  CHECK(exchange_halves(m).empty());
}
