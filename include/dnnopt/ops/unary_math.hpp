// Owns the traits of ONNX's elementary functions of one operand (Abs, Exp, Sqrt, ...).
#ifndef DNNOPT_OPS_UNARY_MATH_HPP
#define DNNOPT_OPS_UNARY_MATH_HPP

#include <optional>
#include <span>
#include <string_view>

#include <dnnopt/ops/element_wise.hpp>
#include <dnnopt/ops/exact_quotient.hpp>

namespace dnnopt::ops {

struct abs_op : unary<abs_op> {
  static constexpr std::string_view name = "Abs";
  static constexpr int since = 13;
  static constexpr algebra properties = algebra::distributive;
  static constexpr std::string_view scalar = "fabs(x0)";
  static constexpr std::string_view scalar_integer = "x0 < 0 ? -(x0) : x0";
  static std::optional<index_expr> value(const index_expr& x) { return max(x, 0 - x); }
};

struct acos_op : unary<acos_op> {
  static constexpr std::string_view name = "Acos";
  static constexpr int since = 22;
  static constexpr std::string_view scalar = "acos(x0)";
};

struct acosh_op : unary<acosh_op> {
  static constexpr std::string_view name = "Acosh";
  static constexpr int since = 22;
  static constexpr std::string_view scalar = "acosh(x0)";
};

struct asin_op : unary<asin_op> {
  static constexpr std::string_view name = "Asin";
  static constexpr int since = 22;
  static constexpr std::string_view scalar = "asin(x0)";
};

struct asinh_op : unary<asinh_op> {
  static constexpr std::string_view name = "Asinh";
  static constexpr int since = 22;
  static constexpr std::string_view scalar = "asinh(x0)";
};

struct atan_op : unary<atan_op> {
  static constexpr std::string_view name = "Atan";
  static constexpr int since = 22;
  static constexpr std::string_view scalar = "atan(x0)";
};

struct atanh_op : unary<atanh_op> {
  static constexpr std::string_view name = "Atanh";
  static constexpr int since = 22;
  static constexpr std::string_view scalar = "atanh(x0)";
};

struct ceil_op : unary<ceil_op> {
  static constexpr std::string_view name = "Ceil";
  static constexpr int since = 13;
  static constexpr std::string_view scalar = "ceil(x0)";
  static std::optional<exact_quotient> exact(std::span<const exact_quotient> x) {
    return exact_quotient{ceildiv(x[0].numerator, x[0].divisor), 1, 0};
  }
};

struct cos_op : unary<cos_op> {
  static constexpr std::string_view name = "Cos";
  static constexpr int since = 22;
  static constexpr std::string_view scalar = "cos(x0)";
};

struct cosh_op : unary<cosh_op> {
  static constexpr std::string_view name = "Cosh";
  static constexpr int since = 22;
  static constexpr std::string_view scalar = "cosh(x0)";
};

struct erf_op : unary<erf_op> {
  static constexpr std::string_view name = "Erf";
  static constexpr int since = 13;
  static constexpr std::string_view scalar = "dnnopt_erf(x0)";
};

struct exp_op : unary<exp_op> {
  static constexpr std::string_view name = "Exp";
  static constexpr int since = 13;
  static constexpr algebra properties = algebra::distributive;
  static constexpr std::string_view scalar = "dnnopt_exp(x0)";
};

struct floor_op : unary<floor_op> {
  static constexpr std::string_view name = "Floor";
  static constexpr int since = 13;
  static constexpr std::string_view scalar = "floor(x0)";
  static std::optional<exact_quotient> exact(std::span<const exact_quotient> x) {
    return exact_quotient{floordiv(x[0].numerator, x[0].divisor), 1, 0};
  }
};

struct log_op : unary<log_op> {
  static constexpr std::string_view name = "Log";
  static constexpr int since = 13;
  static constexpr std::string_view scalar = "dnnopt_log(x0)";
};

struct neg_op : unary<neg_op> {
  static constexpr std::string_view name = "Neg";
  static constexpr int since = 13;
  static constexpr algebra properties = algebra::distributive;
  static constexpr std::string_view scalar = "-(x0)";
  static std::optional<index_expr> value(const index_expr& x) { return 0 - x; }
  static std::optional<exact_quotient> exact(std::span<const exact_quotient> x) {
    return exact_quotient{0 - x[0].numerator, x[0].divisor, x[0].rounded};
  }
};

struct reciprocal_op : unary<reciprocal_op> {
  static constexpr std::string_view name = "Reciprocal";
  static constexpr int since = 13;
  static constexpr algebra properties = algebra::distributive;
  static constexpr std::string_view scalar = "dnnopt_quotient(1.0f, x0)";
};

/// Halves round to even.
struct round_op : unary<round_op> {
  static constexpr std::string_view name = "Round";
  static constexpr int since = 22;
  static constexpr std::string_view scalar = "rint(x0)";
};

/// NaN stays NaN.
struct sign_op : unary<sign_op> {
  static constexpr std::string_view name = "Sign";
  static constexpr int since = 13;
  static constexpr std::string_view scalar = "x0 > 0.0f ? 1.0f : x0 < 0.0f ? -1.0f : x0 == 0.0f ? 0.0f : x0";
  static constexpr std::string_view scalar_integer = "x0 > 0 ? 1 : x0 < 0 ? -1 : 0";
  static std::optional<index_expr> value(const index_expr& x) { return max(min(x, 1), -1); }
};

struct sin_op : unary<sin_op> {
  static constexpr std::string_view name = "Sin";
  static constexpr int since = 22;
  static constexpr std::string_view scalar = "sin(x0)";
};

struct sinh_op : unary<sinh_op> {
  static constexpr std::string_view name = "Sinh";
  static constexpr int since = 22;
  static constexpr std::string_view scalar = "sinh(x0)";
};

struct sqrt_op : unary<sqrt_op> {
  static constexpr std::string_view name = "Sqrt";
  static constexpr int since = 13;
  static constexpr algebra properties = algebra::distributive;
  static constexpr std::string_view scalar = "sqrt(x0)";
};

struct tan_op : unary<tan_op> {
  static constexpr std::string_view name = "Tan";
  static constexpr int since = 22;
  static constexpr std::string_view scalar = "tan(x0)";
};

/// Adds ONNX's elementary functions of one operand.
inline void add_unary_math(op_set& set) {
  set.add<abs_op, acos_op, acosh_op, asin_op, asinh_op, atan_op, atanh_op, ceil_op, cos_op, cosh_op, erf_op, exp_op,
          floor_op, log_op, neg_op, reciprocal_op, round_op, sign_op, sin_op, sinh_op, sqrt_op, tan_op>();
}

static_assert(Operator<abs_op> && Operator<acos_op> && Operator<acosh_op> && Operator<asin_op> && Operator<asinh_op>);
static_assert(Operator<atan_op> && Operator<atanh_op> && Operator<ceil_op> && Operator<cos_op> && Operator<cosh_op>);
static_assert(Operator<erf_op> && Operator<exp_op> && Operator<floor_op> && Operator<log_op> && Operator<neg_op>);
static_assert(Operator<reciprocal_op> && Operator<round_op> && Operator<sign_op> && Operator<sin_op> &&
              Operator<sinh_op>);
static_assert(Operator<sqrt_op> && Operator<tan_op>);

}  // namespace dnnopt::ops

#endif  // DNNOPT_OPS_UNARY_MATH_HPP
