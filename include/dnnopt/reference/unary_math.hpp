// Owns the reference evaluation of elementary functions and activations of one operand (and PRelu, SwiGLU).
#ifndef DNNOPT_REFERENCE_UNARY_MATH_HPP
#define DNNOPT_REFERENCE_UNARY_MATH_HPP

#include <array>
#include <cmath>
#include <limits>
#include <span>
#include <string>

#include <dnnopt/reference/broadcast.hpp>
#include <dnnopt/reference/reference_row.hpp>

namespace dnnopt::reference {

namespace unary {
using inputs = std::span<const tensor>;
using outputs = std::span<tensor>;

inline void abs(const attribute_map&, inputs x, outputs y) {
  y[0] = map_numbers(x[0].type(), std::array{&x[0]}, [](auto v) { return v < 0 ? decltype(v)(0) - v : v; });
}
inline void neg(const attribute_map&, inputs x, outputs y) {
  y[0] = map_numbers(x[0].type(), std::array{&x[0]}, []<class T>(T v) {
    if constexpr (std::is_floating_point_v<T>)
      return -v;
    else
      return static_cast<T>(0ULL - static_cast<std::uint64_t>(v));
  });
}
inline void sign(const attribute_map&, inputs x, outputs y) {
  y[0] = map_numbers(x[0].type(), std::array{&x[0]}, []<class T>(T v) {
    return v > 0 ? T(1) : v < 0 ? T(-1) : v == 0 ? T(0) : v;
  });
}
inline void acos(const attribute_map&, inputs x, outputs y) {
  y[0] = map_floating(x[0], [](double v) { return std::acos(v); });
}
inline void acosh(const attribute_map&, inputs x, outputs y) {
  y[0] = map_floating(x[0], [](double v) { return std::acosh(v); });
}
inline void asin(const attribute_map&, inputs x, outputs y) {
  y[0] = map_floating(x[0], [](double v) { return std::asin(v); });
}
inline void asinh(const attribute_map&, inputs x, outputs y) {
  y[0] = map_floating(x[0], [](double v) { return std::asinh(v); });
}
inline void atan(const attribute_map&, inputs x, outputs y) {
  y[0] = map_floating(x[0], [](double v) { return std::atan(v); });
}
inline void atanh(const attribute_map&, inputs x, outputs y) {
  y[0] = map_floating(x[0], [](double v) { return std::atanh(v); });
}
inline void ceil(const attribute_map&, inputs x, outputs y) {
  y[0] = map_floating(x[0], [](double v) { return std::ceil(v); });
}
inline void cos(const attribute_map&, inputs x, outputs y) {
  y[0] = map_floating(x[0], [](double v) { return std::cos(v); });
}
inline void cosh(const attribute_map&, inputs x, outputs y) {
  y[0] = map_floating(x[0], [](double v) { return std::cosh(v); });
}
inline void erf(const attribute_map&, inputs x, outputs y) {
  if (is_floating(x[0].type()))
    y[0] = map_floating(x[0], [](double v) { return std::erf(v); });
  else
    y[0] = map_integers(x[0].type(), std::array{&x[0]}, [](auto v) { return std::erf(static_cast<double>(v)); });
}
inline void exp(const attribute_map&, inputs x, outputs y) {
  y[0] = map_floating(x[0], [](double v) { return std::exp(v); });
}
inline void floor(const attribute_map&, inputs x, outputs y) {
  y[0] = map_floating(x[0], [](double v) { return std::floor(v); });
}
inline void log(const attribute_map&, inputs x, outputs y) {
  y[0] = map_floating(x[0], [](double v) { return std::log(v); });
}
inline void reciprocal(const attribute_map&, inputs x, outputs y) {
  y[0] = map_floating(x[0], [](double v) { return 1.0 / v; });
}
// Halves round to even in the rounding mode that C++ starts in.
inline void round(const attribute_map&, inputs x, outputs y) {
  y[0] = map_floating(x[0], [](double v) { return std::nearbyint(v); });
}
inline void sin(const attribute_map&, inputs x, outputs y) {
  y[0] = map_floating(x[0], [](double v) { return std::sin(v); });
}
inline void sinh(const attribute_map&, inputs x, outputs y) {
  y[0] = map_floating(x[0], [](double v) { return std::sinh(v); });
}
inline void sqrt(const attribute_map&, inputs x, outputs y) {
  y[0] = map_floating(x[0], [](double v) { return std::sqrt(v); });
}
inline void tan(const attribute_map&, inputs x, outputs y) {
  y[0] = map_floating(x[0], [](double v) { return std::tan(v); });
}
inline void tanh(const attribute_map&, inputs x, outputs y) {
  y[0] = map_floating(x[0], [](double v) { return std::tanh(v); });
}

[[nodiscard]] inline double logistic(double v) { return 1.0 / (1.0 + std::exp(-v)); }
/// log(1 + exp(v)) without overflow; NaN stays NaN.
[[nodiscard]] inline double soft_plus(double v) {
  return v > 0 ? v + std::log1p(std::exp(-v)) : std::log1p(std::exp(v));
}
/// min(max(v, low), high); NaN stays NaN.
[[nodiscard]] inline double limit(double v, double low, double high) {
  const double raised = v < low ? low : v;
  return raised > high ? high : raised;
}

inline void celu(const attribute_map& attributes, inputs x, outputs y) {
  const double alpha = attributes.get_float("alpha", 1.0F);
  y[0] = map_floating(x[0], [alpha](double v) { return v > 0 ? v : alpha * std::expm1(v / alpha); });
}
inline void elu(const attribute_map& attributes, inputs x, outputs y) {
  const double alpha = attributes.get_float("alpha", 1.0F);
  y[0] = map_floating(x[0], [alpha](double v) { return v >= 0 ? v : alpha * std::expm1(v); });
}
inline void gelu(const attribute_map& attributes, inputs x, outputs y) {
  if (attributes.get_string("approximate", "none") == "tanh") {
    const double factor = std::sqrt(2.0 / 3.14159265358979323846);
    y[0] = map_floating(
        x[0], [factor](double v) { return 0.5 * v * (1.0 + std::tanh(factor * (v + 0.044715 * v * v * v))); });
  } else {
    const double factor = std::sqrt(0.5);
    y[0] = map_floating(x[0], [factor](double v) { return 0.5 * v * (1.0 + std::erf(v * factor)); });
  }
}
inline void hard_sigmoid(const attribute_map& attributes, inputs x, outputs y) {
  const double alpha = attributes.get_float("alpha", 0.2F);
  const double beta = attributes.get_float("beta", 0.5F);
  y[0] = map_floating(x[0], [alpha, beta](double v) { return limit(alpha * v + beta, 0.0, 1.0); });
}
inline void hard_swish(const attribute_map&, inputs x, outputs y) {
  y[0] = map_floating(x[0], [](double v) { return v * limit(v / 6.0 + 0.5, 0.0, 1.0); });
}
inline void leaky_relu(const attribute_map& attributes, inputs x, outputs y) {
  const double alpha = attributes.get_float("alpha", 0.01F);
  y[0] = map_floating(x[0], [alpha](double v) { return v >= 0 ? v : alpha * v; });
}
inline void mish(const attribute_map&, inputs x, outputs y) {
  y[0] = map_floating(x[0], [](double v) { return v * std::tanh(soft_plus(v)); });
}
inline void prelu(const attribute_map&, inputs x, outputs y) {
  y[0] = map_numbers(x[0].type(), std::array{&x[0], &x[1]}, [](auto v, auto slope) { return v < 0 ? v * slope : v; });
}
inline void relu(const attribute_map&, inputs x, outputs y) {
  y[0] = map_numbers(x[0].type(), std::array{&x[0]}, []<class T>(T v) { return v < 0 ? T(0) : v; });
}
inline void selu(const attribute_map& attributes, inputs x, outputs y) {
  const double alpha = attributes.get_float("alpha", 1.67326319217681884765625F);
  const double gamma = attributes.get_float("gamma", 1.05070102214813232421875F);
  y[0] = map_floating(x[0], [=](double v) { return v > 0 ? gamma * v : gamma * alpha * std::expm1(v); });
}
inline void shrink(const attribute_map& attributes, inputs x, outputs y) {
  const double bias = attributes.get_float("bias", 0.0F);
  const double lambda = attributes.get_float("lambd", 0.5F);
  y[0] = map_scalars<double>(x[0].type(), x[0].dims(), std::array{&x[0]}, [=](double v) {
    return v < -lambda ? v + bias : v > lambda ? v - bias : 0.0;
  });
}
inline void sigmoid(const attribute_map&, inputs x, outputs y) {
  y[0] = map_floating(x[0], [](double v) { return logistic(v); });
}
inline void softplus(const attribute_map&, inputs x, outputs y) {
  y[0] = map_floating(x[0], [](double v) { return soft_plus(v); });
}
inline void softsign(const attribute_map&, inputs x, outputs y) {
  y[0] = map_floating(x[0], [](double v) { return v / (1.0 + std::fabs(v)); });
}
inline void swish(const attribute_map& attributes, inputs x, outputs y) {
  const double alpha = attributes.get_float("alpha", 1.0F);
  y[0] = map_floating(x[0], [alpha](double v) { return v * logistic(alpha * v); });
}
inline void swiglu(const attribute_map& attributes, inputs x, outputs y) {
  const double alpha = attributes.get_float("alpha", 1.0F);
  if (x[0].dims() != x[1].dims())
    throw error(errc::shape_mismatch, "SwiGLU of " + to_string(x[0].dims()) + " and " + to_string(x[1].dims()));
  y[0] = map_scalars<double>(x[0].type(), x[0].dims(), std::array{&x[0], &x[1]},
                             [alpha](double gate, double value) { return gate * logistic(alpha * gate) * value; });
}
inline void thresholded_relu(const attribute_map& attributes, inputs x, outputs y) {
  const double alpha = attributes.get_float("alpha", 1.0F);
  y[0] = map_floating(x[0], [alpha](double v) { return v > alpha ? v : 0.0; });
}
}  // namespace unary

/// Evaluations of elementary functions and activations.
inline constexpr std::array unary_math_rows{
    reference_row{"", "Abs", unary::abs},
    reference_row{"", "Acos", unary::acos},
    reference_row{"", "Acosh", unary::acosh},
    reference_row{"", "Asin", unary::asin},
    reference_row{"", "Asinh", unary::asinh},
    reference_row{"", "Atan", unary::atan},
    reference_row{"", "Atanh", unary::atanh},
    reference_row{"", "Ceil", unary::ceil},
    reference_row{"", "Celu", unary::celu},
    reference_row{"", "Cos", unary::cos},
    reference_row{"", "Cosh", unary::cosh},
    reference_row{"", "Elu", unary::elu},
    reference_row{"", "Erf", unary::erf},
    reference_row{"", "Exp", unary::exp},
    reference_row{"", "Floor", unary::floor},
    reference_row{"", "Gelu", unary::gelu},
    reference_row{"", "HardSigmoid", unary::hard_sigmoid},
    reference_row{"", "HardSwish", unary::hard_swish},
    reference_row{"", "LeakyRelu", unary::leaky_relu},
    reference_row{"", "Log", unary::log},
    reference_row{"", "Mish", unary::mish},
    reference_row{"", "Neg", unary::neg},
    reference_row{"", "PRelu", unary::prelu},
    reference_row{"", "Reciprocal", unary::reciprocal},
    reference_row{"", "Relu", unary::relu},
    reference_row{"", "Round", unary::round},
    reference_row{"", "Selu", unary::selu},
    reference_row{"", "Shrink", unary::shrink},
    reference_row{"", "Sigmoid", unary::sigmoid},
    reference_row{"", "Sign", unary::sign},
    reference_row{"", "Sin", unary::sin},
    reference_row{"", "Sinh", unary::sinh},
    reference_row{"", "Softplus", unary::softplus},
    reference_row{"", "Softsign", unary::softsign},
    reference_row{"", "Sqrt", unary::sqrt},
    reference_row{"", "SwiGLU", unary::swiglu},
    reference_row{"", "Swish", unary::swish},
    reference_row{"", "Tan", unary::tan},
    reference_row{"", "Tanh", unary::tanh},
    reference_row{"", "ThresholdedRelu", unary::thresholded_relu},
};

}  // namespace dnnopt::reference

#endif  // DNNOPT_REFERENCE_UNARY_MATH_HPP
