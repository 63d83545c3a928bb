// Holds the reference backend's blocked products and window walks to loops written as the definitions read.
#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <catch2/catch.hpp>

#include <dnnopt/reference/convolution.hpp>
#include <dnnopt/reference/matrix_product.hpp>

namespace {

using dnnopt::attribute;
using dnnopt::attribute_map;
using dnnopt::dim_list;
using dnnopt::dtype;
using dnnopt::tensor;
using ints = std::vector<std::int64_t>;

tensor reals(dim_list dims, std::mt19937& random) {
  tensor t(dtype::float32, std::move(dims));
  for (float& v : t.mutable_data<float>()) v = std::uniform_real_distribution<float>(-1.0F, 1.0F)(random);
  return t;
}
attribute_map with(std::vector<std::pair<std::string, attribute>> rows) {
  attribute_map result;
  for (auto& [name, value] : rows) result.set(name, value);
  return result;
}
tensor run(dnnopt::evaluate_function f, const attribute_map& attributes, std::vector<tensor> inputs) {
  std::vector<tensor> outputs(1);
  f(attributes, inputs, outputs);
  return outputs[0];
}
void check_close(const tensor& found, const std::vector<double>& wanted) {
  REQUIRE(static_cast<std::size_t>(found.size()) == wanted.size());
  double worst = 0;
  for (std::size_t i = 0; i < wanted.size(); ++i)
    worst = std::max(worst, std::fabs(static_cast<double>(found.data<float>()[i]) - wanted[i]));
  CHECK(worst < 1e-5);
}
std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

}  // namespace

TEST_CASE("products larger than a block equal the definition") {
  std::mt19937 random(Catch::rngSeed());
  const std::int64_t m = 300, k = 70, n = 530;
  const tensor a = reals({m, k}, random);
  const tensor b = reals({k, n}, random);
  std::vector<double> wanted(at(m * n));
  for (std::int64_t i = 0; i < m; ++i)
    for (std::int64_t j = 0; j < n; ++j)
      for (std::int64_t c = 0; c < k; ++c)
        wanted[at(i * n + j)] +=
            static_cast<double>(a.data<float>()[at(i * k + c)]) * static_cast<double>(b.data<float>()[at(c * n + j)]);
  check_close(run(dnnopt::reference::matrix::evaluate_matmul, {}, {a, b}), wanted);
  check_close(run(dnnopt::reference::matrix::evaluate_einsum, with({{"equation", std::string("ik,kj")}}), {a, b}),
              wanted);
  check_close(run(dnnopt::reference::matrix::evaluate_gemm, {}, {a, b}), wanted);
}

TEST_CASE("integer products wrap as 64-bit arithmetic does") {
  const tensor a = tensor::of<std::int64_t>({1, 2}, std::vector<std::int64_t>{std::int64_t{1} << 62, 3});
  const tensor b = tensor::of<std::int64_t>({2, 1}, std::vector<std::int64_t>{4, 5});
  CHECK(run(dnnopt::reference::matrix::evaluate_matmul, {}, {a, b}).data<std::int64_t>()[0] == 15);
}

TEST_CASE("sums between two codes become what scales in single precision make of them") {
  // 0.3f * 0.01f / 0.006f is one half in single precision, and a bit more in double.
  const std::vector<std::int8_t> sums{1, 3, 5, 7, -1, -3};
  const auto number = [](float v) { return tensor::scalar(v); };
  const auto code = [](std::int8_t v) { return tensor::scalar(v); };
  const tensor one = tensor::of<std::int8_t>({1, 1}, std::vector<std::int8_t>{1});
  const tensor product = run(dnnopt::reference::matrix::qlinear_matmul, {},
                             {tensor::of<std::int8_t>({6, 1}, sums), number(0.3F), code(0), one, number(0.01F), code(0),
                              number(0.006F), code(0)});
  const tensor convolved = run(dnnopt::reference::convolution::qlinear_conv, {},
                               {tensor::of<std::int8_t>({1, 1, 6}, sums), number(0.3F), code(0),
                                one.reshaped({1, 1, 1}), number(0.01F), code(0), number(0.006F), code(0)});
  const std::vector<int> wanted{0, 2, 2, 4, 0, -2};
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    CHECK(static_cast<int>(product.data<std::int8_t>()[i]) == wanted[i]);
    CHECK(static_cast<int>(convolved.data<std::int8_t>()[i]) == wanted[i]);
  }
}

TEST_CASE("a product over an empty inner dim is zero") {
  const tensor c = run(dnnopt::reference::matrix::evaluate_matmul, {},
                       {tensor(dtype::float32, {2, 0}), tensor(dtype::float32, {0, 3})});
  CHECK(c.dims() == dim_list{2, 3});
  for (const float v : c.data<float>()) CHECK(v == 0.0F);
}

TEST_CASE(
    "a grouped, dilated, padded convolution in three dims equals the definition, and its transpose is its adjoint") {
  std::mt19937 random(Catch::rngSeed());
  const std::int64_t batch = 2, group = 2, in = 2, out = 3;  // channels per group
  const ints extent{5, 6, 7}, kernel{2, 3, 2}, stride{1, 2, 1}, dilation{2, 1, 3}, pads{1, 0, 2, 0, 1, 1};
  ints result(3);
  for (std::size_t d = 0; d < 3; ++d)
    result[d] = (extent[d] + pads[d] + pads[d + 3] - ((kernel[d] - 1) * dilation[d] + 1)) / stride[d] + 1;
  const tensor x = reals({batch, group * in, extent[0], extent[1], extent[2]}, random);
  const tensor w = reals({group * out, in, kernel[0], kernel[1], kernel[2]}, random);
  const auto attributes = with({{"group", group}, {"strides", stride}, {"dilations", dilation}, {"pads", pads}});
  std::vector<double> wanted(at(batch * group * out * result[0] * result[1] * result[2]));
  // Calls f(flat output, flat weight, flat input) for each product of the definition.
  const auto for_each_product = [&](const auto& f) {
    for (std::int64_t n = 0; n < batch; ++n)
      for (std::int64_t o = 0; o < group * out; ++o)
        for (std::int64_t p = 0; p < result[0] * result[1] * result[2]; ++p)
          for (std::int64_t c = 0; c < in; ++c)
            for (std::int64_t q = 0; q < kernel[0] * kernel[1] * kernel[2]; ++q) {
              const ints place{p / (result[1] * result[2]), p / result[2] % result[1], p % result[2]};
              const ints element{q / (kernel[1] * kernel[2]), q / kernel[2] % kernel[1], q % kernel[2]};
              std::int64_t from = n * group * in + o / out * in + c;
              bool inside = true;
              for (std::size_t d = 0; d < 3; ++d) {
                const std::int64_t i = place[d] * stride[d] + element[d] * dilation[d] - pads[d];
                inside = inside && i >= 0 && i < extent[d];
                from = from * extent[d] + i;
              }
              if (inside)
                f(at((n * group * out + o) * result[0] * result[1] * result[2] + p),
                  at((o * in + c) * kernel[0] * kernel[1] * kernel[2] + q), at(from));
            }
  };
  for_each_product([&](std::size_t o, std::size_t weight, std::size_t from) {
    wanted[o] += static_cast<double>(w.data<float>()[weight]) * static_cast<double>(x.data<float>()[from]);
  });
  const tensor y = run(dnnopt::reference::convolution::conv, attributes, {x, w});
  CHECK(y.dims() == dim_list{batch, group * out, result[0], result[1], result[2]});
  check_close(y, wanted);

  // The transposed convolution with the same weights sends each product the other way; output_padding restores the
  // extent.
  auto inverse = attributes;
  ints extra(3);
  for (std::size_t d = 0; d < 3; ++d)
    extra[d] = extent[d] - ((result[d] - 1) * stride[d] + (kernel[d] - 1) * dilation[d] + 1 - pads[d] - pads[d + 3]);
  inverse.set("output_padding", extra);
  std::vector<double> back(at(x.size()));
  for_each_product([&](std::size_t o, std::size_t weight, std::size_t from) {
    back[from] += static_cast<double>(w.data<float>()[weight]) * static_cast<double>(y.data<float>()[o]);
  });
  const tensor z = run(dnnopt::reference::convolution::conv_transpose, inverse, {y, w});
  REQUIRE(z.dims() == x.dims());
  double worst = 0;
  for (std::size_t i = 0; i < back.size(); ++i)
    worst = std::max(worst, std::fabs(static_cast<double>(z.data<float>()[i]) - back[i]));
  CHECK(worst < 1e-4);
}

TEST_CASE("shapes that do not fit are refused by their dims") {
  std::mt19937 random(1);
  CHECK_THROWS_WITH(run(dnnopt::reference::matrix::evaluate_matmul, {}, {reals({2, 3}, random), reals({4, 5}, random)}),
                    Catch::Contains("2x3") && Catch::Contains("4x5"));
  CHECK_THROWS_WITH(run(dnnopt::reference::convolution::conv, {}, {reals({1, 3, 4}, random), reals({2, 2, 3}, random)}),
                    Catch::Contains("1x3x4"));
  CHECK_THROWS_AS(run(dnnopt::reference::matrix::evaluate_einsum, with({{"equation", std::string("ij,jk->il")}}),
                      {reals({2, 3}, random), reals({3, 2}, random)}),
                  dnnopt::error);
}
