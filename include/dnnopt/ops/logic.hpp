// Owns the traits of ONNX's comparisons, logical and bitwise operators, and of selection by a condition (Where).
#ifndef DNNOPT_OPS_LOGIC_HPP
#define DNNOPT_OPS_LOGIC_HPP

#include <optional>
#include <string_view>

#include <dnnopt/ops/element_wise.hpp>

namespace dnnopt::ops {

struct equal_op : predicate<equal_op> {
  static constexpr std::string_view name = "Equal";
  static constexpr int since = 19;
  static constexpr algebra properties = algebra::commutative;
  static constexpr std::string_view scalar = "x0 == x1";
  static std::optional<index_expr> value(const index_expr& a, const index_expr& b) { return is_equal(a, b); }
};

struct greater_op : predicate<greater_op> {
  static constexpr std::string_view name = "Greater";
  static constexpr int since = 13;
  static constexpr std::string_view scalar = "x0 > x1";
  static std::optional<index_expr> value(const index_expr& a, const index_expr& b) { return is_less(b, a); }
};

struct greater_or_equal_op : predicate<greater_or_equal_op> {
  static constexpr std::string_view name = "GreaterOrEqual";
  static constexpr int since = 16;
  static constexpr std::string_view scalar = "x0 >= x1";
  static std::optional<index_expr> value(const index_expr& a, const index_expr& b) { return 1 - is_less(a, b); }
};

struct less_op : predicate<less_op> {
  static constexpr std::string_view name = "Less";
  static constexpr int since = 13;
  static constexpr std::string_view scalar = "x0 < x1";
  static std::optional<index_expr> value(const index_expr& a, const index_expr& b) { return is_less(a, b); }
};

struct less_or_equal_op : predicate<less_or_equal_op> {
  static constexpr std::string_view name = "LessOrEqual";
  static constexpr int since = 16;
  static constexpr std::string_view scalar = "x0 <= x1";
  static std::optional<index_expr> value(const index_expr& a, const index_expr& b) { return 1 - is_less(b, a); }
};

struct and_op : predicate<and_op> {
  static constexpr std::string_view name = "And";
  static constexpr int since = 7;
  static constexpr algebra properties = algebra::associative | algebra::commutative | algebra::distributive;
  static constexpr std::string_view scalar = "x0 && x1";
  static std::optional<index_expr> value(const index_expr& a, const index_expr& b) { return min(a, b); }
};

struct or_op : predicate<or_op> {
  static constexpr std::string_view name = "Or";
  static constexpr int since = 7;
  static constexpr algebra properties = algebra::associative | algebra::commutative | algebra::distributive;
  static constexpr std::string_view scalar = "x0 || x1";
  static std::optional<index_expr> value(const index_expr& a, const index_expr& b) { return max(a, b); }
};

struct xor_op : predicate<xor_op> {
  static constexpr std::string_view name = "Xor";
  static constexpr int since = 7;
  static constexpr algebra properties = algebra::associative | algebra::commutative;
  static constexpr std::string_view scalar = "!x0 != !x1";
  static std::optional<index_expr> value(const index_expr& a, const index_expr& b) { return 1 - is_equal(a, b); }
};

struct not_op : unary<not_op> {
  static constexpr std::string_view name = "Not";
  static constexpr int since = 1;
  static constexpr std::string_view scalar = "!x0";
  static std::optional<index_expr> value(const index_expr& x) { return 1 - x; }
};

struct bitwise_and_op : binary<bitwise_and_op> {
  static constexpr std::string_view name = "BitwiseAnd";
  static constexpr int since = 18;
  static constexpr algebra properties = algebra::associative | algebra::commutative | algebra::distributive;
  static constexpr std::string_view scalar = "x0 & x1";
};

struct bitwise_or_op : binary<bitwise_or_op> {
  static constexpr std::string_view name = "BitwiseOr";
  static constexpr int since = 18;
  static constexpr algebra properties = algebra::associative | algebra::commutative | algebra::distributive;
  static constexpr std::string_view scalar = "x0 | x1";
};

struct bitwise_xor_op : binary<bitwise_xor_op> {
  static constexpr std::string_view name = "BitwiseXor";
  static constexpr int since = 18;
  static constexpr algebra properties = algebra::associative | algebra::commutative;
  static constexpr std::string_view scalar = "x0 ^ x1";
};

struct bitwise_not_op : unary<bitwise_not_op> {
  static constexpr std::string_view name = "BitwiseNot";
  static constexpr int since = 18;
  static constexpr std::string_view scalar = "~x0";
};

/// A shift by less than 0 or by the type's bits or more leaves what sign extension alone gives.
struct bit_shift_op : binary<bit_shift_op> {
  static constexpr std::string_view name = "BitShift";
  static constexpr int since = 28;
  static constexpr algebra properties = algebra::distributive;
  static constexpr std::string_view scalar =
      "x1 < 0 || x1 >= {bits} ? ({direction==RIGHT} && x0 < 0 ? -1 : 0) : {direction==LEFT} ? x0 << x1 : x0 >> x1";
};

struct is_nan_op : unary<is_nan_op> {
  static constexpr std::string_view name = "IsNaN";
  static constexpr int since = 20;
  static constexpr std::string_view scalar = "x0 != x0";
  static void infer(const node_facts& facts, std::span<value_facts> outputs) {
    infer_broadcast(facts, outputs[0], dtype::boolean);
  }
};

struct is_inf_op : unary<is_inf_op> {
  static constexpr std::string_view name = "IsInf";
  static constexpr int since = 20;
  static constexpr std::string_view scalar = "isinf(x0) && (x0 > 0.0f ? {detect_positive=1} : {detect_negative=1})";
  static void infer(const node_facts& facts, std::span<value_facts> outputs) {
    infer_broadcast(facts, outputs[0], dtype::boolean);
  }
};

/// The second operand where the condition holds, else the third.
struct where_op : element_wise_classes {
  static constexpr std::string_view name = "Where";
  static constexpr int since = 16;
  static constexpr op_arity arity{3, 3};
  static constexpr bool selects = true;
  static constexpr std::string_view scalar = "x0 != 0 ? x1 : x2";

  static void infer(const node_facts& facts, std::span<value_facts> outputs) {
    require_one_type(facts, 1, 3);
    infer_broadcast(facts, outputs[0], common_type(facts, 1, 3));
    infer_elements(facts, outputs[0], [](std::span<const index_expr> x) -> std::optional<index_expr> {
      if (x[1] == x[2]) return x[1];
      if (x[0].is_constant()) return x[0].constant() != 0 ? x[1] : x[2];
      const expr_range condition = x[0].range();
      if (condition.low < 0 || condition.high > 1) return std::nullopt;
      return x[2] + x[0] * (x[1] - x[2]);
    });
  }
};

/// Adds ONNX's comparisons, logical and bitwise operators, and Where.
inline void add_logic(op_set& set) {
  set.add<equal_op, greater_op, greater_or_equal_op, less_op, less_or_equal_op, and_op, or_op, xor_op, not_op,
          bitwise_and_op, bitwise_or_op, bitwise_xor_op, bitwise_not_op, bit_shift_op, is_nan_op, is_inf_op,
          where_op>();
}

static_assert(Operator<equal_op> && Operator<greater_op> && Operator<greater_or_equal_op> && Operator<less_op>);
static_assert(Operator<less_or_equal_op> && Operator<and_op> && Operator<or_op> && Operator<xor_op> &&
              Operator<not_op>);
static_assert(Operator<bitwise_and_op> && Operator<bitwise_or_op> && Operator<bitwise_xor_op>);
static_assert(Operator<bitwise_not_op> && Operator<bit_shift_op> && Operator<is_nan_op> && Operator<is_inf_op>);
static_assert(Operator<where_op>);

}  // namespace dnnopt::ops

#endif  // DNNOPT_OPS_LOGIC_HPP
