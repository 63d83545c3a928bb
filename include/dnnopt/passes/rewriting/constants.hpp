// Owns what rules ask of constants: their elements as numbers, and whether two constants are equal.
#ifndef DNNOPT_PASSES_REWRITING_CONSTANTS_HPP
#define DNNOPT_PASSES_REWRITING_CONSTANTS_HPP

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include <dnnopt/graph.hpp>
#include <dnnopt/ops/facts.hpp>

namespace dnnopt::rewriting {

/// Constants of more elements than this are not looked into by rules.
inline constexpr std::int64_t largest_examined_constant = std::int64_t{1} << 20;

/// The elements as numbers, or nothing for strings, small floats of 8 bits and below, and large constants.
[[nodiscard]] inline std::optional<std::vector<double>> numbers_of(const tensor& t) {
  if (t.empty() || t.size() > largest_examined_constant) return std::nullopt;
  std::vector<double> out;
  out.reserve(static_cast<std::size_t>(t.size()));
  const auto append = [&out](auto values) {
    for (const auto v : values) out.push_back(static_cast<double>(static_cast<float>(v)));
  };
  switch (t.type()) {
    case dtype::float64: {
      const auto values = t.data<double>();
      out.assign(values.begin(), values.end());
      return out;
    }
    case dtype::float32:
      append(t.data<float>());
      return out;
    case dtype::float16:
      append(t.data<float16>());
      return out;
    case dtype::bfloat16:
      append(t.data<bfloat16>());
      return out;
    default:
      break;
  }
  if (!is_integer(t.type()) && t.type() != dtype::boolean) return std::nullopt;
  for (const std::int64_t v : integers_of(t)) out.push_back(static_cast<double>(v));
  return out;
}

/// Larger constants are weights, which rules do not read: what fires must not depend on what a model has learned.
inline constexpr std::int64_t largest_uniform_constant = 63;

/// The number that all elements of a small constant are, or nothing.
[[nodiscard]] inline std::optional<double> uniform_value(const value_facts& facts) {
  if (!facts.is_constant() || facts.constant.size() < 1 || facts.constant.size() > largest_uniform_constant)
    return std::nullopt;
  const auto numbers = numbers_of(facts.constant);
  if (!numbers || std::any_of(numbers->begin(), numbers->end(), [&](double v) { return !(v == numbers->front()); }))
    return std::nullopt;
  return numbers->front();
}

/// Whether `number` is what a constant of `type` holds where the exact value is `exact`: that value itself where the
/// type holds it, as it holds 1 and 0.5 (a power of nearly 1 has no result for negative numbers), else one near to it,
/// for exporters round in different ways.
[[nodiscard]] inline bool is_rounded(double number, double exact, dtype type) {
  if (number == exact) return true;
  if (!is_floating(type) || !std::isfinite(exact)) return false;
  const int digits = type == dtype::float64 ? 53 : type == dtype::float32 ? 24 : type == dtype::float16 ? 11 : 8;
  int exponent = 0;
  const double digits_of_exact = std::ldexp(std::frexp(exact, &exponent), digits);
  if (digits_of_exact == std::floor(digits_of_exact)) return false;
  const double step = type == dtype::float64 ? 1e-7 : type == dtype::float32 ? 1e-6 : 4e-3;
  return std::abs(number - exact) <= step * std::abs(exact);
}

/// Whether two values hold the same: one value, or small constants of equal type, dims and bytes.
[[nodiscard]] inline bool same_value(const graph& g, value_id a, value_id b) {
  if (a == b) return true;
  if (a == no_value || b == no_value) return false;
  const tensor& x = g.facts(a).constant;
  const tensor& y = g.facts(b).constant;
  if (x.empty() || y.empty() || x.size() > largest_uniform_constant || x.type() != y.type() || x.dims() != y.dims() ||
      x.type() == dtype::string)
    return false;
  const auto left = x.bytes();
  const auto right = y.bytes();
  return left.data() == right.data() || std::equal(left.begin(), left.end(), right.begin());
}

/// A constant of any float type from numbers. Precondition: as many numbers as dims say.
[[nodiscard]] inline tensor tensor_of(dtype type, dim_list dims, const std::vector<double>& numbers) {
  tensor result(type, std::move(dims));
  const auto fill = [&](auto out) {
    using element = typename decltype(out)::value_type;
    for (std::size_t i = 0; i < numbers.size(); ++i)
      if constexpr (std::is_arithmetic_v<element>)
        out[i] = static_cast<element>(numbers[i]);
      else
        out[i] = element(static_cast<float>(numbers[i]));
  };
  switch (type) {
    case dtype::float32:
      fill(result.mutable_data<float>());
      break;
    case dtype::float64:
      fill(result.mutable_data<double>());
      break;
    case dtype::float16:
      fill(result.mutable_data<float16>());
      break;
    case dtype::bfloat16:
      fill(result.mutable_data<bfloat16>());
      break;
    case dtype::int64:
      fill(result.mutable_data<std::int64_t>());
      break;
    case dtype::int32:
      fill(result.mutable_data<std::int32_t>());
      break;
    case dtype::uint64:
      fill(result.mutable_data<std::uint64_t>());
      break;
    case dtype::uint32:
      fill(result.mutable_data<std::uint32_t>());
      break;
    case dtype::uint16:
      fill(result.mutable_data<std::uint16_t>());
      break;
    case dtype::uint8:
      fill(result.mutable_data<std::uint8_t>());
      break;
    case dtype::int16:
      fill(result.mutable_data<std::int16_t>());
      break;
    case dtype::int8:
      fill(result.mutable_data<std::int8_t>());
      break;
    case dtype::boolean:
      fill(result.mutable_data<bool>());
      break;
    default:
      throw error(errc::unsupported, "no constant of " + std::string(name_of(type)) + " is made by a rule");
  }
  return result;
}

}  // namespace dnnopt::rewriting

#endif  // DNNOPT_PASSES_REWRITING_CONSTANTS_HPP
