// Checks what ONNX's node tests leave open in the reference backend: special values, integer corners, narrow types.
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <catch2/catch.hpp>

#include <dnnopt/reference/arithmetic.hpp>
#include <dnnopt/reference/conversion.hpp>
#include <dnnopt/reference/unary_math.hpp>

namespace {

using dnnopt::attribute;
using dnnopt::dtype;
using dnnopt::tensor;

constexpr float not_a_number = std::numeric_limits<float>::quiet_NaN();
constexpr float inf = std::numeric_limits<float>::infinity();

tensor run(dnnopt::evaluate_function f, std::vector<tensor> inputs,
           const std::vector<std::pair<std::string, attribute>>& named = {}) {
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
template <class T>
std::vector<T> values(const tensor& t) {
  return {t.data<T>().begin(), t.data<T>().end()};
}

}  // namespace

TEST_CASE("activations, limits and extremes keep NaN") {
  namespace u = dnnopt::reference::unary;
  namespace a = dnnopt::reference::arithmetic;
  const tensor x = row<float>({not_a_number});
  for (const auto f : {u::relu, u::sigmoid, u::gelu, u::hard_sigmoid, u::hard_swish, u::leaky_relu, u::softplus, u::elu,
                       u::selu, u::celu, u::sign, u::swish, u::mish})
    CHECK(std::isnan(run(f, {x}).data<float>()[0]));
  CHECK(std::isnan(
      run(dnnopt::reference::conversion::clip, {x, tensor::scalar(0.0F), tensor::scalar(1.0F)}).data<float>()[0]));
  const tensor one = row<float>({1.0F});
  for (const auto f : {a::max, a::min}) {
    CHECK(std::isnan(run(f, {x, one}).data<float>()[0]));
    CHECK(std::isnan(run(f, {one, x}).data<float>()[0]));
  }
}

TEST_CASE("functions saturate without overflow") {
  namespace u = dnnopt::reference::unary;
  const tensor x = row<float>({-1e4F, 1e4F});
  CHECK(values<float>(run(u::sigmoid, {x})) == std::vector<float>{0.0F, 1.0F});
  CHECK(values<float>(run(u::softplus, {x})) == std::vector<float>{0.0F, 1e4F});
  CHECK(values<float>(run(u::tanh, {x})) == std::vector<float>{-1.0F, 1.0F});
  CHECK(values<float>(run(u::mish, {x}))[1] == 1e4F);
}

TEST_CASE("halves round to even") {
  CHECK(values<float>(run(dnnopt::reference::unary::round, {row<float>({0.5F, 1.5F, 2.5F, -0.5F, -1.5F})})) ==
        std::vector<float>{0.0F, 2.0F, 2.0F, -0.0F, -2.0F});
}

TEST_CASE("where limits cross, the upper one counts") {
  CHECK(values<float>(run(dnnopt::reference::conversion::clip,
                          {row<float>({0.0F, 5.0F}), tensor::scalar(3.0F), tensor::scalar(1.0F)})) ==
        std::vector<float>{1.0F, 1.0F});
}

TEST_CASE("integer arithmetic wraps and truncates, and a zero divisor does not trap") {
  namespace a = dnnopt::reference::arithmetic;
  constexpr std::int64_t least = std::numeric_limits<std::int64_t>::min();
  CHECK(values<std::int64_t>(run(a::div, {row<std::int64_t>({7, -7, 5, least}), row<std::int64_t>({-2, 2, 0, -1})})) ==
        std::vector<std::int64_t>{-3, -3, 0, least});
  CHECK(values<std::int64_t>(
            run(a::mod, {row<std::int64_t>({7, -7, 7, 5, least}), row<std::int64_t>({-3, 3, 3, 0, -1})})) ==
        std::vector<std::int64_t>{-2, 2, 1, 0, 0});
  CHECK(values<std::int64_t>(run(a::mod, {row<std::int64_t>({7, -7}), row<std::int64_t>({-3, 3})},
                                 {{"fmod", std::int64_t{1}}})) == std::vector<std::int64_t>{1, -1});
  CHECK(values<std::int8_t>(run(a::add, {row<std::int8_t>({127}), row<std::int8_t>({1})})) ==
        std::vector<std::int8_t>{-128});
  CHECK(values<std::int64_t>(run(a::mul, {row<std::int64_t>({least}), row<std::int64_t>({-1})})) ==
        std::vector<std::int64_t>{least});
  CHECK(values<std::uint64_t>(run(a::div, {row<std::uint64_t>({~0ULL}), row<std::uint64_t>({2})})) ==
        std::vector<std::uint64_t>{~0ULL / 2});
  CHECK(values<std::int64_t>(run(a::pow, {row<std::int64_t>({3, 2, -1, 2}), row<std::int64_t>({40, 62, -3, -1})})) ==
        std::vector<std::int64_t>{-6289078614652622815LL, std::int64_t{1} << 62, -1, 0});  // 3^40 modulo 2^64
}

TEST_CASE("unsigned 64-bit numbers beyond the signed range compare and convert exactly") {
  namespace a = dnnopt::reference::arithmetic;
  const tensor x = row<std::uint64_t>({~0ULL, 1});
  const tensor y = row<std::uint64_t>({1, ~0ULL});
  CHECK(values<bool>(run(a::greater, {x, y})) == std::vector<bool>{true, false});
  CHECK(values<std::uint64_t>(run(a::max, {x, y})) == std::vector<std::uint64_t>{~0ULL, ~0ULL});
  CHECK(values<float>(dnnopt::reference::conversion::cast(x, dtype::float32))[0] == 18446744073709551616.0F);
  CHECK(values<std::uint64_t>(dnnopt::reference::conversion::cast(row<double>({1e19}), dtype::uint64))[0] ==
        10000000000000000000ULL);
}

TEST_CASE("shifts beyond the width leave what sign extension gives") {
  namespace a = dnnopt::reference::arithmetic;
  const tensor x = row<std::int8_t>({-128, 64, -128, -1});
  const tensor amount = row<std::int8_t>({1, 1, 8, -1});
  CHECK(values<std::int8_t>(run(a::bit_shift, {x, amount}, {{"direction", std::string("RIGHT")}})) ==
        std::vector<std::int8_t>{-64, 32, -1, -1});
  CHECK(values<std::int8_t>(run(a::bit_shift, {x, amount}, {{"direction", std::string("LEFT")}})) ==
        std::vector<std::int8_t>{0, -128, 0, 0});
  CHECK_THROWS_AS(run(a::bit_shift, {x, amount}, {{"direction", std::string("UP")}}), dnnopt::error);
}

TEST_CASE("the floating remainder follows the divisor's sign, also at infinity") {
  namespace a = dnnopt::reference::arithmetic;
  const auto r =
      values<float>(run(a::mod, {row<float>({5.0F, -5.0F, 5.0F, 5.0F}), row<float>({-3.0F, 3.0F, inf, -inf})}));
  CHECK(r == std::vector<float>{-1.0F, 1.0F, 5.0F, -inf});
  CHECK(std::isnan(values<float>(run(a::mod, {row<float>({1.0F}), row<float>({0.0F})}))[0]));
}

TEST_CASE("conversions to 8-bit floating point saturate or not, as told") {
  using dnnopt::reference::conversion::cast;
  const tensor x = row<float>({1e6F, -inf, 1.0F});
  const auto as_float = [](const tensor& t) { return values<float>(cast(t, dtype::float32)); };
  CHECK(as_float(cast(x, dtype::float8e4m3fn, true)) == std::vector<float>{448.0F, -448.0F, 1.0F});
  CHECK(std::isnan(as_float(cast(x, dtype::float8e4m3fn, false))[0]));
  CHECK(as_float(cast(x, dtype::float8e5m2, true)) == std::vector<float>{57344.0F, -57344.0F, 1.0F});
  CHECK(as_float(cast(x, dtype::float8e5m2, false))[1] == -inf);
  CHECK(as_float(cast(row<float>({3.0F}), dtype::float8e8m0, true, "up"))[0] == 4.0F);
  CHECK(as_float(cast(row<float>({3.0F}), dtype::float8e8m0, true, "down"))[0] == 2.0F);
  CHECK(as_float(cast(row<float>({2.9F}), dtype::float8e8m0, true, "nearest"))[0] == 2.0F);
}

TEST_CASE("narrow integers wrap to their bits") {
  using dnnopt::reference::conversion::cast;
  CHECK(values<std::int8_t>(cast(row<std::int64_t>({7, 8, -9}), dtype::int4)) == std::vector<std::int8_t>{7, -8, 7});
  CHECK(values<std::uint8_t>(cast(row<std::int64_t>({15, 16, -1}), dtype::uint4)) ==
        std::vector<std::uint8_t>{15, 0, 15});
  CHECK(values<std::int8_t>(cast(row<std::int64_t>({1, 2, -3}), dtype::int2)) == std::vector<std::int8_t>{1, -2, 1});
}

TEST_CASE("text and numbers convert into each other") {
  using dnnopt::reference::conversion::cast;
  const tensor text = cast(row<float>({0.1F, not_a_number, -inf, 3.0F}), dtype::string);
  CHECK(text.strings() == std::vector<std::string>{"0.1", "NaN", "-INF", "3"});
  CHECK(values<float>(cast(text, dtype::float32))[0] == 0.1F);
  CHECK(std::isnan(values<float>(cast(text, dtype::float32))[1]));
  tensor number(dtype::string, {1});
  number.mutable_strings()[0] = "9223372036854775807";
  CHECK(values<std::int64_t>(cast(number, dtype::int64))[0] == std::numeric_limits<std::int64_t>::max());
  number.mutable_strings()[0] = "seven";
  CHECK_THROWS_WITH(cast(number, dtype::int64), Catch::Contains("'seven'"));
}

TEST_CASE("operands that do not fit are refused by name") {
  namespace a = dnnopt::reference::arithmetic;
  CHECK_THROWS_WITH(run(a::add, {row<float>({1, 2}), row<float>({1, 2, 3})}),
                    Catch::Contains("2") && Catch::Contains("3"));
  CHECK_THROWS_WITH(run(a::add, {row<float>({1}), row<double>({1})}),
                    Catch::Contains("float32") && Catch::Contains("float64"));
  CHECK_THROWS_WITH(run(dnnopt::reference::unary::exp, {row<std::int32_t>({1})}), Catch::Contains("int32"));
}

TEST_CASE("an empty operand gives an empty result") {
  CHECK(run(dnnopt::reference::arithmetic::add, {tensor(dtype::float32, {0, 3}), tensor(dtype::float32, {3})}).dims() ==
        dnnopt::dim_list{0, 3});
}

TEST_CASE("numbers beyond an integer type become what x86 processors and ONNX Runtime make of them") {
  const auto cast = [](double value, dtype to) {
    return dnnopt::reference::conversion::cast(tensor::scalar(value), to);
  };
  for (const double far : {1e30, -1e30, std::numeric_limits<double>::quiet_NaN(), 3e9}) {
    CHECK(cast(far, dtype::int32).data<std::int32_t>()[0] == std::numeric_limits<std::int32_t>::min());
    CHECK(cast(far, dtype::int8).data<std::int8_t>()[0] == 0);
    CHECK(cast(far, dtype::uint16).data<std::uint16_t>()[0] == 0);
  }
  CHECK(cast(3e9, dtype::uint32).data<std::uint32_t>()[0] == 3000000000U);
  CHECK(cast(1e30, dtype::int64).data<std::int64_t>()[0] == std::numeric_limits<std::int64_t>::min());
  CHECK(cast(1e19, dtype::uint64).data<std::uint64_t>()[0] == 10000000000000000000U);
  CHECK(cast(1e30, dtype::uint64).data<std::uint64_t>()[0] == 0);
  CHECK(cast(300.0, dtype::int8).data<std::int8_t>()[0] == 44);
}
