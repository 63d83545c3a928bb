// Owns the reference evaluation of broadcasting arithmetic, comparisons, logical and bitwise operators, and Where.
#ifndef DNNOPT_REFERENCE_ARITHMETIC_HPP
#define DNNOPT_REFERENCE_ARITHMETIC_HPP

#include <array>
#include <cmath>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include <dnnopt/reference/broadcast.hpp>
#include <dnnopt/reference/reference_row.hpp>

namespace dnnopt::reference {

namespace arithmetic {
using inputs = std::span<const tensor>;
using outputs = std::span<tensor>;

/// Two's complement results where signed arithmetic would overflow.
template <class T, class F>
[[nodiscard]] T wrapping(T a, T b, F f) {
  if constexpr (std::is_floating_point_v<T>)
    return f(a, b);
  else
    return static_cast<T>(f(static_cast<std::uint64_t>(a), static_cast<std::uint64_t>(b)));
}

/// The quotient towards zero; 0 where the divisor is 0.
template <class T>
[[nodiscard]] T quotient(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    return a / b;
  } else {
    if (b == 0) return 0;
    if constexpr (std::is_signed_v<T>)
      if (b == -1) return static_cast<T>(0ULL - static_cast<std::uint64_t>(a));
    return a / b;
  }
}

/// The remainder with the dividend's sign (`truncated`) or the divisor's; integers by 0 give 0.
template <class T>
[[nodiscard]] T remainder(T a, T b, bool truncated) {
  if constexpr (std::is_floating_point_v<T>) {
    const T r = std::fmod(a, b);
    if (truncated) return r;
    if (r == 0) return std::copysign(T(0), b);
    return (r < 0) != (b < 0) ? r + b : r;
  } else {
    if (b == 0 || static_cast<std::int64_t>(b) == -1) return std::is_signed_v<T> || b == 0 ? T(0) : a % b;
    const T r = a % b;
    return !truncated && r != 0 && (r < 0) != (b < 0) ? r + b : r;
  }
}

/// Base to the power of an integer by squaring; a negative exponent gives the truncated reciprocal.
[[nodiscard]] inline std::int64_t integer_power(std::int64_t base, std::int64_t exponent) {
  if (exponent < 0) return base == 1 ? 1 : base == -1 ? (exponent % 2 != 0 ? -1 : 1) : 0;
  std::uint64_t result = 1;
  auto square = static_cast<std::uint64_t>(base);
  for (auto rest = static_cast<std::uint64_t>(exponent); rest != 0; rest >>= 1U) {
    if ((rest & 1U) != 0) result *= square;
    square *= square;
  }
  return static_cast<std::int64_t>(result);
}

inline void add(const attribute_map&, inputs x, outputs y) {
  y[0] = map_numbers(x[0].type(), std::array{&x[0], &x[1]},
                     [](auto a, auto b) { return wrapping(a, b, [](auto p, auto q) { return p + q; }); });
}
inline void sub(const attribute_map&, inputs x, outputs y) {
  y[0] = map_numbers(x[0].type(), std::array{&x[0], &x[1]},
                     [](auto a, auto b) { return wrapping(a, b, [](auto p, auto q) { return p - q; }); });
}
inline void mul(const attribute_map&, inputs x, outputs y) {
  y[0] = map_numbers(x[0].type(), std::array{&x[0], &x[1]},
                     [](auto a, auto b) { return wrapping(a, b, [](auto p, auto q) { return p * q; }); });
}
inline void div(const attribute_map&, inputs x, outputs y) {
  y[0] = map_numbers(x[0].type(), std::array{&x[0], &x[1]}, [](auto a, auto b) { return quotient(a, b); });
}
inline void mod(const attribute_map& attributes, inputs x, outputs y) {
  const bool truncated = attributes.get_int("fmod", 0) != 0;
  y[0] = map_numbers(x[0].type(), std::array{&x[0], &x[1]},
                     [truncated](auto a, auto b) { return remainder(a, b, truncated); });
}
inline void pow(const attribute_map&, inputs x, outputs y) {
  const dim_list dims = broadcast_dims(x[0].dims(), x[1].dims());
  const std::array operands{&x[0], &x[1]};
  if (is_floating(x[0].type()) || is_floating(x[1].type()))
    y[0] = map_scalars<double>(x[0].type(), dims, operands, [](double a, double b) { return std::pow(a, b); });
  else
    y[0] = map_scalars<std::int64_t>(x[0].type(), dims, operands,
                                     [](std::int64_t a, std::int64_t b) { return integer_power(a, b); });
}

/// Folds all operands from the left with a function generic over double, int64 and uint64.
template <class F>
[[nodiscard]] tensor fold(inputs x, const F& f) {
  const dim_list dims = broadcast_dims(x);
  std::vector<const tensor*> operands;
  for (const tensor& t : x) {
    if (t.type() != x[0].type())
      throw error(errc::type_mismatch,
                  "operands of types " + std::string(name_of(x[0].type())) + " and " + std::string(name_of(t.type())));
    operands.push_back(&t);
  }
  struct state_type {
    const F* f;
    std::size_t count;
  } const state{&f, operands.size()};
  const auto run = [&]<class C>(type_tag<C>) {
    const block_function<C> function{&state, [](const void* raw, std::size_t count, const C* const* in, C* out) {
                                       const auto& s = *static_cast<const state_type*>(raw);
                                       for (std::size_t i = 0; i < count; ++i) {
                                         C total = in[0][i];
                                         for (std::size_t k = 1; k < s.count; ++k)
                                           total = static_cast<C>((*s.f)(total, in[k][i]));
                                         out[i] = total;
                                       }
                                     }};
    return map_blocks<C>(x[0].type(), dims, operands, function);
  };
  if (is_floating(x[0].type())) return run(type_tag<double>{});
  if (x[0].type() == dtype::uint64) return run(type_tag<std::uint64_t>{});
  return run(type_tag<std::int64_t>{});
}

inline void max(const attribute_map&, inputs x, outputs y) {
  y[0] = fold(x, [](auto a, auto b) { return a > b || a != a ? a : b; });
}
inline void min(const attribute_map&, inputs x, outputs y) {
  y[0] = fold(x, [](auto a, auto b) { return a < b || a != a ? a : b; });
}
inline void sum(const attribute_map&, inputs x, outputs y) {
  y[0] = fold(x, [](auto a, auto b) { return wrapping(a, b, [](auto p, auto q) { return p + q; }); });
}
inline void mean(const attribute_map&, inputs x, outputs y) {
  const double count = static_cast<double>(x.size());
  std::vector<const tensor*> operands;
  for (const tensor& t : x) operands.push_back(&t);
  struct state_type {
    double count;
  } const state{count};
  const block_function<double> function{&state,
                                        [](const void* raw, std::size_t block, const double* const* in, double* out) {
                                          const double divisor = static_cast<const state_type*>(raw)->count;
                                          for (std::size_t i = 0; i < block; ++i) {
                                            double total = 0;
                                            for (std::size_t k = 0; k < static_cast<std::size_t>(divisor); ++k)
                                              total += in[k][i];
                                            out[i] = total / divisor;
                                          }
                                        }};
  y[0] = map_blocks<double>(x[0].type(), broadcast_dims(x), operands, function);
}

/// Compares text element by element.
template <class F>
[[nodiscard]] tensor compare_strings(const tensor& a, const tensor& b, const F& f) {
  tensor result(dtype::boolean, broadcast_dims(a.dims(), b.dims()));
  const auto out = result.mutable_data<bool>();
  // Positions within the smaller tensors are found by broadcasting a tensor of positions.
  const auto positions = [&](const tensor& t) {
    std::vector<std::int64_t> own(static_cast<std::size_t>(t.size()));
    for (std::size_t i = 0; i < own.size(); ++i) own[i] = static_cast<std::int64_t>(i);
    const tensor source = tensor::of<std::int64_t>(t.dims(), own);
    std::vector<std::int64_t> all(out.size());
    broadcast_reader<std::int64_t>(source, result.dims()).read(0, all.size(), all.data());
    return all;
  };
  const auto at_a = positions(a);
  const auto at_b = positions(b);
  for (std::size_t i = 0; i < out.size(); ++i)
    out[i] = f(a.strings()[static_cast<std::size_t>(at_a[i])], b.strings()[static_cast<std::size_t>(at_b[i])]);
  return result;
}

inline void equal(const attribute_map&, inputs x, outputs y) {
  if (x[0].type() == dtype::string)
    y[0] = compare_strings(x[0], x[1], [](const std::string& a, const std::string& b) { return a == b; });
  else
    y[0] = map_numbers(dtype::boolean, std::array{&x[0], &x[1]}, [](auto a, auto b) { return a == b; });
}
inline void greater(const attribute_map&, inputs x, outputs y) {
  y[0] = map_numbers(dtype::boolean, std::array{&x[0], &x[1]}, [](auto a, auto b) { return a > b; });
}
inline void greater_or_equal(const attribute_map&, inputs x, outputs y) {
  y[0] = map_numbers(dtype::boolean, std::array{&x[0], &x[1]}, [](auto a, auto b) { return a >= b; });
}
inline void less(const attribute_map&, inputs x, outputs y) {
  y[0] = map_numbers(dtype::boolean, std::array{&x[0], &x[1]}, [](auto a, auto b) { return a < b; });
}
inline void less_or_equal(const attribute_map&, inputs x, outputs y) {
  y[0] = map_numbers(dtype::boolean, std::array{&x[0], &x[1]}, [](auto a, auto b) { return a <= b; });
}
inline void logical_and(const attribute_map&, inputs x, outputs y) {
  y[0] = map_integers(dtype::boolean, std::array{&x[0], &x[1]}, [](auto a, auto b) { return a != 0 && b != 0; });
}
inline void logical_or(const attribute_map&, inputs x, outputs y) {
  y[0] = map_integers(dtype::boolean, std::array{&x[0], &x[1]}, [](auto a, auto b) { return a != 0 || b != 0; });
}
inline void logical_xor(const attribute_map&, inputs x, outputs y) {
  y[0] = map_integers(dtype::boolean, std::array{&x[0], &x[1]}, [](auto a, auto b) { return (a != 0) != (b != 0); });
}
inline void logical_not(const attribute_map&, inputs x, outputs y) {
  y[0] = map_integers(dtype::boolean, std::array{&x[0]}, [](auto a) { return a == 0; });
}
inline void bitwise_and(const attribute_map&, inputs x, outputs y) {
  y[0] = map_integers(x[0].type(), std::array{&x[0], &x[1]}, [](auto a, auto b) { return a & b; });
}
inline void bitwise_or(const attribute_map&, inputs x, outputs y) {
  y[0] = map_integers(x[0].type(), std::array{&x[0], &x[1]}, [](auto a, auto b) { return a | b; });
}
inline void bitwise_xor(const attribute_map&, inputs x, outputs y) {
  y[0] = map_integers(x[0].type(), std::array{&x[0], &x[1]}, [](auto a, auto b) { return a ^ b; });
}
inline void bitwise_not(const attribute_map&, inputs x, outputs y) {
  y[0] = map_integers(x[0].type(), std::array{&x[0]}, [](auto a) { return ~a; });
}
inline void bit_shift(const attribute_map& attributes, inputs x, outputs y) {
  const std::string& direction = attributes.require<std::string>("direction");
  if (direction != "LEFT" && direction != "RIGHT")
    throw error(errc::bad_attribute, "attribute 'direction' is '" + direction + "'");
  const bool left = direction == "LEFT";
  const std::uint64_t bits = row_of(x[0].type()).packed_bits;
  y[0] = map_integers(x[0].type(), std::array{&x[0], &x[1]}, [left, bits]<class T>(T a, T amount) -> T {
    if (amount < 0 || static_cast<std::uint64_t>(amount) >= bits) return !left && a < 0 ? static_cast<T>(-1) : T(0);
    return left ? static_cast<T>(static_cast<std::uint64_t>(a) << amount) : static_cast<T>(a >> amount);
  });
}
inline void is_nan(const attribute_map&, inputs x, outputs y) {
  y[0] = map_scalars<double>(dtype::boolean, x[0].dims(), std::array{&x[0]}, [](double v) { return std::isnan(v); });
}
inline void is_inf(const attribute_map& attributes, inputs x, outputs y) {
  const bool positive = attributes.get_int("detect_positive", 1) != 0;
  const bool negative = attributes.get_int("detect_negative", 1) != 0;
  y[0] = map_scalars<double>(dtype::boolean, x[0].dims(), std::array{&x[0]},
                             [=](double v) { return std::isinf(v) && (v > 0 ? positive : negative); });
}
inline void where(const attribute_map&, inputs x, outputs y) {
  if (x[1].type() != x[2].type())
    throw error(errc::type_mismatch,
                "Where of " + std::string(name_of(x[1].type())) + " and " + std::string(name_of(x[2].type())));
  const dim_list dims = broadcast_dims(x);
  const std::array operands{&x[0], &x[1], &x[2]};
  const auto choose = [](auto condition, auto a, auto b) { return condition != 0 ? a : b; };
  if (x[1].type() == dtype::string) {
    tensor result(dtype::string, dims);
    const auto positions = [&](const tensor& t) {
      std::vector<std::int64_t> own(static_cast<std::size_t>(t.size()));
      for (std::size_t i = 0; i < own.size(); ++i) own[i] = static_cast<std::int64_t>(i);
      return tensor::of<std::int64_t>(t.dims(), own);
    };
    const tensor at_a = positions(x[1]);
    const tensor at_b = positions(x[2]);
    std::vector<std::int64_t> condition(static_cast<std::size_t>(result.size()));
    std::vector<std::int64_t> a(condition.size());
    std::vector<std::int64_t> b(condition.size());
    broadcast_reader<std::int64_t>(x[0], dims).read(0, condition.size(), condition.data());
    broadcast_reader<std::int64_t>(at_a, dims).read(0, a.size(), a.data());
    broadcast_reader<std::int64_t>(at_b, dims).read(0, b.size(), b.data());
    for (std::size_t i = 0; i < condition.size(); ++i)
      result.mutable_strings()[i] = condition[i] != 0 ? x[1].strings()[static_cast<std::size_t>(a[i])]
                                                      : x[2].strings()[static_cast<std::size_t>(b[i])];
    y[0] = std::move(result);
  } else if (is_floating(x[1].type())) {
    y[0] = map_scalars<double>(x[1].type(), dims, operands, choose);
  } else {
    // Selection moves bits: 64-bit unsigned values pass through int64 unchanged.
    y[0] = map_scalars<std::int64_t>(x[1].type(), dims, operands, choose);
  }
}
}  // namespace arithmetic

/// Evaluations of arithmetic, comparisons, logical and bitwise operators, and Where.
inline constexpr std::array arithmetic_rows{
    reference_row{"", "Add", arithmetic::add},
    reference_row{"", "And", arithmetic::logical_and},
    reference_row{"", "BitShift", arithmetic::bit_shift},
    reference_row{"", "BitwiseAnd", arithmetic::bitwise_and},
    reference_row{"", "BitwiseNot", arithmetic::bitwise_not},
    reference_row{"", "BitwiseOr", arithmetic::bitwise_or},
    reference_row{"", "BitwiseXor", arithmetic::bitwise_xor},
    reference_row{"", "Div", arithmetic::div},
    reference_row{"", "Equal", arithmetic::equal},
    reference_row{"", "Greater", arithmetic::greater},
    reference_row{"", "GreaterOrEqual", arithmetic::greater_or_equal},
    reference_row{"", "IsInf", arithmetic::is_inf},
    reference_row{"", "IsNaN", arithmetic::is_nan},
    reference_row{"", "Less", arithmetic::less},
    reference_row{"", "LessOrEqual", arithmetic::less_or_equal},
    reference_row{"", "Max", arithmetic::max},
    reference_row{"", "Mean", arithmetic::mean},
    reference_row{"", "Min", arithmetic::min},
    reference_row{"", "Mod", arithmetic::mod},
    reference_row{"", "Mul", arithmetic::mul},
    reference_row{"", "Not", arithmetic::logical_not},
    reference_row{"", "Or", arithmetic::logical_or},
    reference_row{"", "Pow", arithmetic::pow},
    reference_row{"", "Sub", arithmetic::sub},
    reference_row{"", "Sum", arithmetic::sum},
    reference_row{"", "Where", arithmetic::where},
    reference_row{"", "Xor", arithmetic::logical_xor},
};

}  // namespace dnnopt::reference

#endif  // DNNOPT_REFERENCE_ARITHMETIC_HPP
