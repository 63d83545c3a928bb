// Owns the traits of ONNX's activation functions (Relu, Gelu, Sigmoid, ...).
#ifndef DNNOPT_OPS_ACTIVATION_HPP
#define DNNOPT_OPS_ACTIVATION_HPP

#include <optional>
#include <string_view>

#include <dnnopt/ops/element_wise.hpp>

namespace dnnopt::ops {

struct celu_op : unary<celu_op> {
  static constexpr std::string_view name = "Celu";
  static constexpr int since = 28;
  static constexpr std::string_view scalar = "x0 > 0.0f ? x0 : {alpha=1} * expm1(x0 / {alpha=1})";
};

struct elu_op : unary<elu_op> {
  static constexpr std::string_view name = "Elu";
  static constexpr int since = 22;
  static constexpr std::string_view scalar = "x0 >= 0.0f ? x0 : {alpha=1} * expm1(x0)";
};

struct gelu_op : unary<gelu_op> {
  static constexpr std::string_view name = "Gelu";
  static constexpr int since = 20;
  // (1 + tanh(u)) / 2 = 1 / (1 + exp(-2 u)), which loses no digits where tanh is near -1.
  static constexpr std::string_view scalar =
      "{approximate==tanh} ? x0 / (1.0f + dnnopt_exp(-1.5957691216f * (x0 + 0.044715f * x0 * x0 * x0)))"
      " : 0.5f * x0 * (1.0f + dnnopt_erf(x0 * 0.7071067812f))";
};

struct hard_sigmoid_op : unary<hard_sigmoid_op> {
  static constexpr std::string_view name = "HardSigmoid";
  static constexpr int since = 22;
  static constexpr std::string_view scalar = "dnnopt_clip({alpha=0.2} * x0 + {beta=0.5}, 0.0f, 1.0f)";
};

struct hard_swish_op : unary<hard_swish_op> {
  static constexpr std::string_view name = "HardSwish";
  static constexpr int since = 22;
  static constexpr std::string_view scalar = "x0 * dnnopt_clip(x0 * 0.1666666667f + 0.5f, 0.0f, 1.0f)";
};

struct leaky_relu_op : unary<leaky_relu_op> {
  static constexpr std::string_view name = "LeakyRelu";
  static constexpr int since = 16;
  static constexpr std::string_view scalar = "x0 >= 0.0f ? x0 : {alpha=0.01} * x0";
};

struct mish_op : unary<mish_op> {
  static constexpr std::string_view name = "Mish";
  static constexpr int since = 22;
  static constexpr std::string_view scalar = "x0 * dnnopt_tanh(dnnopt_softplus(x0))";
};

/// The slope broadcasts to the input (one way only).
struct prelu_op : binary<prelu_op> {
  static constexpr std::string_view name = "PRelu";
  static constexpr int since = 16;
  static constexpr std::string_view scalar = "x0 < 0.0f ? x0 * x1 : x0";
  static constexpr std::string_view scalar_integer = "x0 < 0 ? x0 * x1 : x0";
};

/// NaN stays NaN.
struct relu_op : unary<relu_op> {
  static constexpr std::string_view name = "Relu";
  static constexpr int since = 14;
  static constexpr bool selects = true;
  static constexpr std::string_view scalar = "x0 < 0.0f ? 0.0f : x0";
  static constexpr std::string_view scalar_integer = "x0 < 0 ? 0 : x0";
  static std::optional<index_expr> value(const index_expr& x) { return max(x, 0); }
};

struct selu_op : unary<selu_op> {
  static constexpr std::string_view name = "Selu";
  static constexpr int since = 22;
  static constexpr std::string_view scalar =
      "x0 > 0.0f ? {gamma=1.05070102214813232} * x0"
      " : {gamma=1.05070102214813232} * {alpha=1.67326319217681885} * expm1(x0)";
};

/// Integer inputs are computed as floating point and truncated.
struct shrink_op : unary<shrink_op> {
  static constexpr std::string_view name = "Shrink";
  static constexpr int since = 9;
  static constexpr std::string_view scalar =
      "x0 < -({lambd=0.5}) ? x0 + {bias=0} : x0 > {lambd=0.5} ? x0 - {bias=0} : 0.0f";
};

struct sigmoid_op : unary<sigmoid_op> {
  static constexpr std::string_view name = "Sigmoid";
  static constexpr int since = 13;
  static constexpr std::string_view scalar = "1.0f / (1.0f + dnnopt_exp(-(x0)))";
};

struct softplus_op : unary<softplus_op> {
  static constexpr std::string_view name = "Softplus";
  static constexpr int since = 22;
  static constexpr std::string_view scalar = "dnnopt_softplus(x0)";
};

struct softsign_op : unary<softsign_op> {
  static constexpr std::string_view name = "Softsign";
  static constexpr int since = 22;
  static constexpr std::string_view scalar = "x0 / (1.0f + fabs(x0))";
};

/// Swish of the first operand times the second; shapes are equal, nothing is broadcast.
struct swiglu_op : binary<swiglu_op> {
  static constexpr std::string_view name = "SwiGLU";
  static constexpr int since = 28;
  static constexpr std::string_view scalar = "x0 / (1.0f + dnnopt_exp(-({alpha=1} * x0))) * x1";
};

struct swish_op : unary<swish_op> {
  static constexpr std::string_view name = "Swish";
  static constexpr int since = 24;
  static constexpr std::string_view scalar = "x0 / (1.0f + dnnopt_exp(-({alpha=1} * x0)))";
};

struct tanh_op : unary<tanh_op> {
  static constexpr std::string_view name = "Tanh";
  static constexpr int since = 13;
  static constexpr std::string_view scalar = "dnnopt_tanh(x0)";
};

struct thresholded_relu_op : unary<thresholded_relu_op> {
  static constexpr std::string_view name = "ThresholdedRelu";
  static constexpr int since = 22;
  static constexpr std::string_view scalar = "x0 > {alpha=1} ? x0 : 0.0f";
};

/// Adds ONNX's activation functions.
inline void add_activation(op_set& set) {
  set.add<celu_op, elu_op, gelu_op, hard_sigmoid_op, hard_swish_op, leaky_relu_op, mish_op, prelu_op, relu_op, selu_op,
          shrink_op, sigmoid_op, softplus_op, softsign_op, swiglu_op, swish_op, tanh_op, thresholded_relu_op>();
}

static_assert(Operator<celu_op> && Operator<elu_op> && Operator<gelu_op> && Operator<hard_sigmoid_op>);
static_assert(Operator<hard_swish_op> && Operator<leaky_relu_op> && Operator<mish_op> && Operator<prelu_op>);
static_assert(Operator<relu_op> && Operator<selu_op> && Operator<shrink_op> && Operator<sigmoid_op>);
static_assert(Operator<softplus_op> && Operator<softsign_op> && Operator<swiglu_op> && Operator<swish_op>);
static_assert(Operator<tanh_op> && Operator<thresholded_relu_op>);

}  // namespace dnnopt::ops

#endif  // DNNOPT_OPS_ACTIVATION_HPP
