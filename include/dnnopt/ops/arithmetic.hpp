// Owns the traits of ONNX's arithmetic with broadcasting (Add, Mul, Pow, Max, ...).
#ifndef DNNOPT_OPS_ARITHMETIC_HPP
#define DNNOPT_OPS_ARITHMETIC_HPP

#include <optional>
#include <span>
#include <string_view>

#include <dnnopt/ops/element_wise.hpp>
#include <dnnopt/ops/exact_quotient.hpp>

namespace dnnopt::ops {

/// Associative, commutative, and one side of a distributive law.
inline constexpr algebra ring_algebra = algebra::associative | algebra::commutative | algebra::distributive;

/// The quotient rounded towards zero, where signs are known well enough to write it with floordiv.
[[nodiscard]] inline std::optional<index_expr> truncated_quotient(const index_expr& a, const index_expr& b) {
  if (b == index_expr(0)) return std::nullopt;
  if (a.range().low >= 0 && b.range().low >= 0) return floordiv(a, b);
  if (b.is_constant() && b.constant() > 0) return floordiv(max(a, 0), b) - floordiv(max(0 - a, 0), b);
  if (b.is_constant()) return floordiv(max(0 - a, 0), 0 - b) - floordiv(max(a, 0), 0 - b);
  return std::nullopt;
}

struct add_op : binary<add_op> {
  static constexpr std::string_view name = "Add";
  static constexpr int since = 14;
  static constexpr algebra properties = ring_algebra;
  static constexpr std::string_view scalar = "x0 + x1";
  static std::optional<index_expr> value(const index_expr& a, const index_expr& b) { return a + b; }
  static std::optional<exact_quotient> exact(std::span<const exact_quotient> x) {
    return combined(x[0], x[1], [](const index_expr& a, const index_expr& b) { return a + b; });
  }
};

struct sub_op : binary<sub_op> {
  static constexpr std::string_view name = "Sub";
  static constexpr int since = 14;
  static constexpr algebra properties = algebra::distributive;
  static constexpr std::string_view scalar = "x0 - x1";
  static std::optional<index_expr> value(const index_expr& a, const index_expr& b) { return a - b; }
  static std::optional<exact_quotient> exact(std::span<const exact_quotient> x) {
    return combined(x[0], x[1], [](const index_expr& a, const index_expr& b) { return a - b; });
  }
};

struct mul_op : binary<mul_op> {
  static constexpr std::string_view name = "Mul";
  static constexpr int since = 14;
  static constexpr algebra properties = ring_algebra;
  static constexpr std::string_view scalar = "x0 * x1";
  static std::optional<index_expr> value(const index_expr& a, const index_expr& b) { return a * b; }
  static std::optional<exact_quotient> exact(std::span<const exact_quotient> x) { return product(x[0], x[1]); }
};

/// Integers divide towards zero.
struct div_op : binary<div_op> {
  static constexpr std::string_view name = "Div";
  static constexpr int since = 14;
  static constexpr algebra properties = algebra::distributive;
  static constexpr std::string_view scalar = "dnnopt_quotient(x0, x1)";
  static constexpr std::string_view scalar_integer = "dnnopt_integer_divide(x0, x1)";
  static std::optional<index_expr> value(const index_expr& a, const index_expr& b) { return truncated_quotient(a, b); }
  static std::optional<exact_quotient> exact(std::span<const exact_quotient> x) { return divided(x[0], x[1]); }
};

/// The result has the divisor's sign, with fmod=1 the dividend's.
struct mod_op : binary<mod_op> {
  static constexpr std::string_view name = "Mod";
  static constexpr int since = 28;
  static constexpr std::string_view scalar = "{fmod=0} ? fmod(x0, x1) : dnnopt_floor_modulo(x0, x1)";
  static constexpr std::string_view scalar_integer = "dnnopt_integer_modulo(x0, x1, {fmod=0})";

  static void infer(const node_facts& facts, std::span<value_facts> outputs) {
    require_one_type(facts, 0, 2);
    infer_broadcast(facts, outputs[0], common_type(facts, 0, 2));
    const bool truncated = facts.attributes->get_int("fmod", 0) != 0;
    infer_elements(facts, outputs[0], [truncated](std::span<const index_expr> x) -> std::optional<index_expr> {
      if (x[1] == index_expr(0)) return std::nullopt;
      if (!truncated) return mod(x[0], x[1]);
      const auto quotient = truncated_quotient(x[0], x[1]);
      return quotient ? std::optional(x[0] - x[1] * *quotient) : std::nullopt;
    });
  }
};

/// The result has the base's type; the exponent's may differ. A square, which most powers in
/// networks are, is a product: drivers for processors call a function of their library for each power.
struct pow_op : element_wise_classes {
  static constexpr std::string_view name = "Pow";
  static constexpr int since = 15;
  static constexpr op_arity arity{2, 2};
  static constexpr std::string_view scalar = "x1 == 2 ? x0 * x0 : pow(x0, x1)";
  static constexpr std::string_view scalar_integer = "dnnopt_integer_power(x0, x1)";
  static constexpr std::string_view scalar_to_integer = "dnnopt_power_cut(x0, x1)";

  static void infer(const node_facts& facts, std::span<value_facts> outputs) {
    infer_broadcast(facts, outputs[0], facts.type(0));
  }
};

/// NaN in any operand gives NaN.
struct max_op : variadic_fold<max_op> {
  static constexpr std::string_view name = "Max";
  static constexpr int since = 13;
  static constexpr algebra properties = algebra::associative | algebra::commutative;
  static constexpr bool selects = true;
  static constexpr std::string_view scalar = "x0 > x1 || x0 != x0 ? x0 : x1";
  static constexpr std::string_view scalar_integer = "x0 > x1 ? x0 : x1";
  static std::optional<index_expr> value(const index_expr& a, const index_expr& b) { return dnnopt::max(a, b); }
  static std::optional<exact_quotient> exact(std::span<const exact_quotient> x) {
    if (x.size() != 2) return std::nullopt;
    return combined(x[0], x[1], [](const index_expr& a, const index_expr& b) { return dnnopt::max(a, b); });
  }
};

/// NaN in any operand gives NaN.
struct min_op : variadic_fold<min_op> {
  static constexpr std::string_view name = "Min";
  static constexpr int since = 13;
  static constexpr algebra properties = algebra::associative | algebra::commutative;
  static constexpr bool selects = true;
  static constexpr std::string_view scalar = "x0 < x1 || x0 != x0 ? x0 : x1";
  static constexpr std::string_view scalar_integer = "x0 < x1 ? x0 : x1";
  static std::optional<index_expr> value(const index_expr& a, const index_expr& b) { return dnnopt::min(a, b); }
  static std::optional<exact_quotient> exact(std::span<const exact_quotient> x) {
    if (x.size() != 2) return std::nullopt;
    return combined(x[0], x[1], [](const index_expr& a, const index_expr& b) { return dnnopt::min(a, b); });
  }
};

struct sum_op : variadic_fold<sum_op> {
  static constexpr std::string_view name = "Sum";
  static constexpr int since = 13;
  static constexpr algebra properties = ring_algebra;
  static constexpr std::string_view scalar = "x0 + x1";
};

/// The sum, divided in the fold's last step: a running mean would make NaN of an infinite operand.
struct mean_op : variadic_fold<mean_op> {
  static constexpr std::string_view name = "Mean";
  static constexpr int since = 13;
  static constexpr algebra properties = algebra::commutative;
  static constexpr std::string_view scalar = "{operand} + 1 == {operands} ? (x0 + x1) / {operands} : x0 + x1";
};

/// Adds ONNX's arithmetic operators.
inline void add_arithmetic(op_set& set) {
  set.add<add_op, sub_op, mul_op, div_op, mod_op, pow_op, max_op, min_op, sum_op, mean_op>();
}

static_assert(Operator<add_op> && Operator<sub_op> && Operator<mul_op> && Operator<div_op> && Operator<mod_op>);
static_assert(Operator<pow_op> && Operator<max_op> && Operator<min_op> && Operator<sum_op> && Operator<mean_op>);

}  // namespace dnnopt::ops

#endif  // DNNOPT_OPS_ARITHMETIC_HPP
