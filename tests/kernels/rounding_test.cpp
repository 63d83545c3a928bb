// Kernels whose rounding decides an element: coordinates, quantization and conversions agree with the reference
// exactly, on devices that divide correctly and on those that do not.
#include "kernel_fixture.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <dnnopt/backend/codegen/frames/sources.hpp>

using namespace dnnopt;
using namespace dnnopt::testing;

namespace {

struct rounding : kernel_bench {
  /// All outputs are equal to the reference's, bit by bit where they are integers.
  void check(const node_case& c) {
    const std::vector<tensor> want = expect(c);
    const kernel_run got = run(c, device_form::vectors, want);
    for (std::size_t k = 0; k < want.size(); ++k) {
      if (is_floating(want[k].type()))
        CHECK(relative_difference(got.outputs[k], want[k]) <= tolerance_of(want[k].type()));
      else
        CHECK(std::equal(want[k].bytes().begin(), want[k].bytes().end(), got.outputs[k].bytes().begin()));
    }
  }
  /// The last kernel divides with one rounding. A device whose plain division has one too shows no other numbers, so
  /// that the text is looked at.
  void check_quotient() const {
    const std::string& text = plans.at(0).source;
    const std::size_t prelude = text.find(kernels::prelude);
    REQUIRE(prelude != std::string::npos);
    CHECK(text.find("dnnopt_quotient(", prelude + kernels::prelude.size()) != std::string::npos);
  }
};

tensor counted(dim_list dims) {
  tensor t(dtype::int32, std::move(dims));
  std::int32_t next = 0;
  for (std::int32_t& v : t.mutable_data<std::int32_t>()) v = next++;
  return t;
}
template <class T>
tensor row(const std::vector<T>& values) {
  return tensor::of<T>({static_cast<std::int64_t>(values.size())}, values);
}
node_case sized(const tensor& x, std::int64_t to) {
  return {"Resize", {x, tensor(), tensor(), row<std::int64_t>({1, to})}, {false, true, true, true}, {}, 1};
}

}  // namespace

TEST_CASE_METHOD(rounding, "the nearest element is the reference's in every mode, and each neighbour weighs alike") {
  for (const auto& [from, to] :
       {std::pair(9, 15), std::pair(15, 9), std::pair(7, 3), std::pair(3, 7), std::pair(11, 1)})
    for (const std::string coordinates : {"half_pixel", "pytorch_half_pixel", "half_pixel_symmetric", "align_corners",
                                          "asymmetric", "tf_half_pixel_for_nn"}) {
      for (const std::string nearest : {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"}) {
        CAPTURE(from, to, coordinates, nearest);
        node_case c = sized(counted({1, from}), to);
        c.attributes.set("coordinate_transformation_mode", coordinates);
        c.attributes.set("nearest_mode", nearest);
        check(c);
      }
      CAPTURE(from, to, coordinates);
      node_case c = sized(counted({1, from}), to);
      c.attributes.set("coordinate_transformation_mode", coordinates);
      c.attributes.set("mode", std::string("linear"));
      check(c);
    }
}

TEST_CASE_METHOD(rounding, "a scale that keeps every length keeps every element") {
  node_case c{"Resize", {counted({1, 2}), tensor(), row<float>({1.0F, 1.25F})}, {false, true, true}, {}, 1};
  for (const std::string mode : {"nearest", "linear"}) {
    c.attributes.set("mode", mode);
    check(c);
  }
}

TEST_CASE_METHOD(rounding, "quantized numbers are the reference's") {
  std::mt19937 engine(7);
  std::uniform_real_distribution<float> any(-3.0F, 3.0F);
  tensor x(dtype::float32, {is_simulated() ? 400 : 4000});
  for (float& v : x.mutable_data<float>()) v = any(engine);
  for (const float scale : {0.1F, 0.003F, 1.0F / 3.0F, 0.25F})
    check({"QuantizeLinear", {x, tensor::scalar(scale), tensor::scalar<std::uint8_t>(7)}, {}, {}, 1});
  tensor ties(dtype::float32, {101});
  for (std::size_t i = 0; i < 101; ++i) ties.mutable_data<float>()[i] = 0.05F * static_cast<float>(i);
  check({"QuantizeLinear", {ties, tensor::scalar(0.1F), tensor::scalar<std::uint8_t>(0)}, {}, {}, 1});
  node_case dynamic{"DynamicQuantizeLinear", {x}, {}, {}, 3};
  check(dynamic);
  dynamic.inputs[0] = row<float>({0.0F, 0.0F});
  check(dynamic);
}

TEST_CASE_METHOD(rounding, "codes that are rounded of a product with the scale's inverse are the reference's") {
  std::mt19937 engine(13);
  const float inf = std::numeric_limits<float>::infinity();
  struct code_type {
    tensor zero;
    int low, high;
  };
  for (const code_type& to :
       {code_type{tensor::scalar<std::uint8_t>(7), -7, 248}, code_type{tensor::scalar<std::uint8_t>(255), -255, 0},
        code_type{tensor::scalar<std::int8_t>(-128), 0, 255}, code_type{tensor::scalar<std::int8_t>(0), -128, 127},
        code_type{tensor::scalar<std::int16_t>(-300), -32468, 33067},
        code_type{tensor::scalar<std::uint16_t>(40000), -40000, 25535}})
    for (const float scale : {0.1F, 0.003F, 1.0F / 3.0F, 0.25F, 3.1e-13F, 7.7e14F}) {
      if (is_simulated() && scale != 0.1F) continue;
      // Next to ties and to the first and last codes, far beyond them, and the smallest and largest numbers.
      std::vector<float> numbers{inf, -inf, 3e38F, -3e38F, 1e-45F, -1e-45F, 0.0F, -0.0F};
      std::uniform_int_distribution<int> codes(to.low - 2, to.high + 2);
      for (int i = 0; i < 200; ++i) {
        const int code = i < 6 ? to.low - 2 + i : i < 12 ? to.high + 2 - (i - 6) : codes(engine);
        float next = (static_cast<float>(code) + 0.5F) * scale;
        for (int j = 0; j < 3; ++j) next = std::nextafter(next, -inf);
        for (int j = 0; j < 7; ++j) numbers.push_back(next = std::nextafter(next, inf));
      }
      CAPTURE(name_of(to.zero.type()), scale);
      const node_case c{"QuantizeLinear", {row(numbers), tensor::scalar(scale), to.zero}, {false, true, true}, {}, 1};
      const std::vector<tensor> want = expect(c);
      const kernel_run got = run(c, device_form::groups, want);
      CHECK(std::equal(want[0].bytes().begin(), want[0].bytes().end(), got.outputs[0].bytes().begin()));
      const std::string text(plans.at(0).source);
      CHECK(text.find("dnnopt_clamped_quotient(", text.find(kernels::prelude) + kernels::prelude.size()) !=
            std::string::npos);
    }
}

TEST_CASE_METHOD(rounding, "codes of products are the reference's where scales come as inputs") {
  std::mt19937 engine(11);
  const auto codes = [&](dim_list dims) {
    tensor t(dtype::uint8, std::move(dims));
    for (std::uint8_t& v : t.mutable_data<std::uint8_t>()) v = static_cast<std::uint8_t>(engine() % 256);
    return t;
  };
  const tensor a = codes({40, 24});
  const tensor b = codes({24, 500});
  const tensor image = codes({1, 6, 30, 30});
  const tensor weights = codes({8, 6, 3, 3});
  const tensor zero = tensor::scalar<std::uint8_t>(120);
  for (const float scale : {0.0371F, 0.0129F, 0.3F}) {
    CAPTURE(scale);
    const tensor first = tensor::scalar(scale);
    const tensor second = tensor::scalar(0.0253F);
    check({"QLinearMatMul", {a, first, zero, b, second, zero, tensor::scalar(scale * 18.606712F), zero}, {}, {}, 1});
    check_quotient();
    check(
        {"QLinearConv", {image, first, zero, weights, second, zero, tensor::scalar(scale * 22.27F), zero}, {}, {}, 1});
    check_quotient();
  }
}

TEST_CASE_METHOD(rounding, "means of codes are the reference's") {
  tensor x(dtype::float32, {2, 3, 9, 9});
  float next = 0;
  for (float& v : x.mutable_data<float>()) v = 0.02F * (next = next > 250 ? 3 : next + 7);
  node_case pool{"AveragePool", {x}, {}, {}, 1};
  pool.attributes.set("kernel_shape", std::vector<std::int64_t>{2, 2});
  const std::vector<tensor> means = expect(pool);
  const kernel_run got = run(pool, device_form::vectors, means);
  CHECK(std::equal(means[0].bytes().begin(), means[0].bytes().end(), got.outputs[0].bytes().begin()));
  check_quotient();
}

TEST_CASE_METHOD(rounding, "numbers become integers as on the host, whatever their size") {
  const float inf = std::numeric_limits<float>::infinity();
  const tensor x = row<float>({0.9F, -0.9F, 127.5F, 300.0F, -300.0F, 70000.0F, 3e9F, -3e9F, 1e19F, 3e19F, inf, -inf,
                               std::numeric_limits<float>::quiet_NaN()});
  for (const dtype to : {dtype::int8, dtype::uint8, dtype::int16, dtype::uint16, dtype::int32, dtype::uint32,
                         dtype::int64, dtype::uint64}) {
    CAPTURE(name_of(to));
    node_case c{"Cast", {x}, {}, {}, 1};
    c.attributes.set("to", static_cast<std::int64_t>(to));
    check(c);
  }
}

TEST_CASE_METHOD(rounding, "a mended quotient is the correctly rounded one") {
  // Not asked of the device: the mending in the prelude, which devices without rounded division take.
  std::mt19937 engine(11);
  std::uniform_int_distribution<std::uint32_t> mantissa(0, (1U << 23) - 1);
  std::uniform_int_distribution<std::uint32_t> exponent(127 - 40, 127 + 40);
  const auto draw = [&] { return std::bit_cast<float>((exponent(engine) << 23) | mantissa(engine)); };
  tensor a(dtype::float32, {20000});
  tensor b(dtype::float32, {20000});
  for (float& v : a.mutable_data<float>()) v = draw();
  for (float& v : b.mutable_data<float>()) v = draw();
  const node_case c{"Div", {a, b}, {}, {}, 1};
  const std::vector<tensor> want = expect(c);
  for (const bool mended : {false, true}) {
    divides_correctly = !mended && where().info().rounded_division;
    const kernel_run got = run(c, device_form::vectors, want);
    CHECK(std::equal(want[0].bytes().begin(), want[0].bytes().end(), got.outputs[0].bytes().begin()));
    CHECK(plans.at(0).options.empty() == !divides_correctly);
  }
}

TEST_CASE_METHOD(rounding, "a conversion through a narrow type inside of a kernel rounds") {
  const tensor x = row<float>({1.001F, -475.25F, 1e-9F, 70000.0F, 3.0000001e32F});
  for (const dtype through : {dtype::float16, dtype::bfloat16}) {
    graph g;
    const value_id in = g.add_input("x", dtype::float32, to_shape(x.dims()));
    const value_id narrow = g.add_value("m", through, to_shape(x.dims()));
    const value_id out = g.add_value("y", dtype::float32, to_shape(x.dims()));
    attribute_map down;
    down.set("to", static_cast<std::int64_t>(through));
    attribute_map up;
    up.set("to", static_cast<std::int64_t>(dtype::float32));
    const node_id first = g.add_node(ops().at("", "Cast"), "down", {in}, {narrow}, down);
    const node_id second = g.add_node(ops().at("", "Cast"), "up", {narrow}, {out}, up);
    std::vector<std::pair<value_id, tensor>> values{{in, x}, {out, tensor(dtype::float32, x.dims())}};
    run(codegen::block_view{g, {first, second}, {out}}, device_form::vectors, values);
    const tensor rounded = reference::evaluate_operator(ops().at("", "Cast"), down, {&x, 1}, 1)[0];
    const tensor want = reference::evaluate_operator(ops().at("", "Cast"), up, {&rounded, 1}, 1)[0];
    CHECK(std::equal(want.bytes().begin(), want.bytes().end(), values[1].second.bytes().begin()));
  }
}

TEST_CASE_METHOD(rounding, "a logarithm of softmax keeps its digits beside large elements") {
  for (const std::int64_t length : {4, 40, 4000}) {
    tensor x(dtype::float32, {2, length});
    const auto held = x.mutable_data<float>();
    for (std::size_t i = 0; i < held.size(); ++i) held[i] = 1e6F - static_cast<float>(i % 2);
    const node_case c{"LogSoftmax", {x}, {}, {}, 1};
    const std::vector<tensor> want = expect(c);
    CHECK(want[0].data<float>()[0] == Approx(std::log(1 / (1 + std::exp(-1.0)) * 2 / static_cast<double>(length))));
    for (const device_form form : {device_form::vectors, device_form::groups})
      CHECK(relative_difference(run(c, form, want).outputs[0], want[0]) <= 2e-5);
  }
}

TEST_CASE_METHOD(rounding, "scales of one dim count by blocks where the node says so") {
  node_case c{"DequantizeLinear",
              {row<std::uint8_t>({8, 7, 113, 9}), row<float>({0.5F, 0.25F}), row<std::uint8_t>({14, 13})},
              {},
              {},
              1};
  c.attributes.set("axis", std::int64_t{0});
  c.attributes.set("block_size", std::int64_t{2});
  check(c);
}

TEST_CASE_METHOD(rounding, "powers of integers by floating exponents are cut where the exact power is") {
  std::vector<std::int64_t> bases;
  std::vector<float> exponents;
  for (const std::int64_t base : {-9, -2, -1, 0, 1, 2, 3, 4, 7, 10, 15, 16, 255, 65536, 16777217})
    for (const float exponent : {0.0F, 1.0F, 2.0F, 3.0F, 4.0F, 5.0F, 13.0F, 31.0F, 40.0F, 64.0F, -1.0F, -2.0F, 0.5F,
                                 1.5F, 0.25F, -0.5F, std::numeric_limits<float>::infinity()}) {
      bases.push_back(base);
      exponents.push_back(exponent);
    }
  const std::vector<std::int32_t> narrow(bases.begin(), bases.end());
  const std::vector<double> wide(exponents.begin(), exponents.end());
  check({"Pow", {row<std::int32_t>(narrow), row<float>(exponents)}, {false, false}, {}, 1});
  check({"Pow", {row<std::int64_t>(bases), row<float>(exponents)}, {false, false}, {}, 1});
  if (where().info().fp64) check({"Pow", {row<std::int32_t>(narrow), row<double>(wide)}, {false, false}, {}, 1});
}
