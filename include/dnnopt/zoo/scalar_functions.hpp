// Owns what element-wise operators do to numbers and, by these, to distributions.
#ifndef DNNOPT_ZOO_SCALAR_FUNCTIONS_HPP
#define DNNOPT_ZOO_SCALAR_FUNCTIONS_HPP

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string_view>

#include <dnnopt/attribute.hpp>
#include <dnnopt/zoo/distribution.hpp>

namespace dnnopt::onnx::detail {

/// f(x) of the element-wise operators with one input; null for others.
using scalar_function = double (*)(double x, const attribute_map& attributes);
struct scalar_row {
  std::string_view name;
  scalar_function f;
};
inline double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
inline constexpr scalar_row scalar_functions[] = {
    {"Relu", [](double x, const attribute_map&) { return std::max(x, 0.0); }},
    {"LeakyRelu",
     [](double x, const attribute_map& a) { return x < 0 ? x * static_cast<double>(a.get_float("alpha", 0.01f)) : x; }},
    {"Sigmoid", [](double x, const attribute_map&) { return sigmoid(x); }},
    {"Tanh", [](double x, const attribute_map&) { return std::tanh(x); }},
    {"Erf", [](double x, const attribute_map&) { return std::erf(x); }},
    {"Exp", [](double x, const attribute_map&) { return std::exp(x); }},
    {"Log", [](double x, const attribute_map&) { return std::log(std::max(x, 1e-6)); }},
    {"Sqrt", [](double x, const attribute_map&) { return std::sqrt(std::max(x, 0.0)); }},
    {"Reciprocal", [](double x, const attribute_map&) { return 1 / (std::abs(x) < 1e-6 ? 1e-6 : x); }},
    {"Neg", [](double x, const attribute_map&) { return -x; }},
    {"Abs", [](double x, const attribute_map&) { return std::abs(x); }},
    {"Sin", [](double x, const attribute_map&) { return std::sin(x); }},
    {"Cos", [](double x, const attribute_map&) { return std::cos(x); }},
    {"Not", [](double x, const attribute_map&) { return 1 - x; }},
    {"HardSigmoid",
     [](double x, const attribute_map& a) {
       return std::clamp(
           static_cast<double>(a.get_float("alpha", 0.2f)) * x + static_cast<double>(a.get_float("beta", 0.5f)), 0.0,
           1.0);
     }},
    {"HardSwish", [](double x, const attribute_map&) { return x * std::clamp(x / 6 + 0.5, 0.0, 1.0); }},
    {"Swish",
     [](double x, const attribute_map& a) { return x * sigmoid(static_cast<double>(a.get_float("alpha", 1)) * x); }},
    {"Softplus", [](double x, const attribute_map&) { return std::log1p(std::exp(x)); }},
    {"Mish", [](double x, const attribute_map&) { return x * std::tanh(std::log1p(std::exp(x))); }},
    {"Gelu", [](double x, const attribute_map&) { return 0.5 * x * (1 + std::erf(x * 0.7071067811865476)); }},
    {"Elu",
     [](double x, const attribute_map& a) {
       return x < 0 ? static_cast<double>(a.get_float("alpha", 1)) * std::expm1(x) : x;
     }},
    {"Selu",
     [](double x, const attribute_map&) {
       return 1.0507009873554805 * (x < 0 ? 1.6732632423543772 * std::expm1(x) : x);
     }},
};
using pair_function = double (*)(double a, double b);
struct pair_row {
  std::string_view name;
  pair_function f;
};
inline constexpr pair_row pair_functions[] = {
    {"Add", [](double a, double b) { return a + b; }},
    {"Sub", [](double a, double b) { return a - b; }},
    {"Mul", [](double a, double b) { return a * b; }},
    {"Div", [](double a, double b) { return a / (std::abs(b) < 1e-6 ? 1e-6 : b); }},
    {"Pow", [](double a, double b) { return b == std::floor(b) ? std::pow(a, b) : std::pow(std::abs(a), b); }},
    {"Max", [](double a, double b) { return std::max(a, b); }},
    {"Min", [](double a, double b) { return std::min(a, b); }},
    {"Sum", [](double a, double b) { return a + b; }},
};

/// What an operator with two operands makes of two distributions; `source` names a new one.
[[nodiscard]] inline distribution combine(const distribution& a, const distribution& b, const pair_row& row,
                                          std::uint64_t source) {
  if (distribution::together(a, b)) return distribution::zip(a, b, row.f);
  const double ma = a.mean();
  const double mb = b.mean();
  const double va = a.variance();
  const double vb = b.variance();
  if (row.name == "Sub") return distribution(ma - mb, va + vb, source);
  if (row.name == "Mul") return distribution(ma * mb, va * vb + va * mb * mb + vb * ma * ma, source);
  if (row.name == "Div" || row.name == "Pow") {
    // The divisor is close to its mean (a deviation, a sum), or the quotient means nothing.
    const double by = std::abs(mb) < 1e-6 ? std::sqrt(std::max(vb, 1e-6)) : mb;
    return a.map([&](double x) { return row.f(x, by); });
  }
  if (row.name == "Max" || row.name == "Min")
    return distribution((row.name == "Max" ? 1 : -1) * 0.56 * std::sqrt((va + vb) / 2) + (ma + mb) / 2,
                        0.68 * (va + vb) / 2, source);
  return distribution(ma + mb, va + vb, source);
}

}  // namespace dnnopt::onnx::detail

#endif  // DNNOPT_ZOO_SCALAR_FUNCTIONS_HPP
