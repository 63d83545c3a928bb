// Owns the reference evaluation of type conversions, quantization, Clip and Dropout.
#ifndef DNNOPT_REFERENCE_CONVERSION_HPP
#define DNNOPT_REFERENCE_CONVERSION_HPP

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include <dnnopt/reference/broadcast.hpp>
#include <dnnopt/reference/reference_row.hpp>
#include <dnnopt/reference/uniform_stream.hpp>

namespace dnnopt::reference {

namespace conversion {
using inputs = std::span<const tensor>;
using outputs = std::span<tensor>;

/// A number as text: the shortest digits that read back as the same value; NaN, INF and -INF for specials.
template <class T>
[[nodiscard]] std::string text_of(T value) {
  if constexpr (std::is_floating_point_v<T>) {
    if (std::isnan(value)) return "NaN";
    if (std::isinf(value)) return value > 0 ? "INF" : "-INF";
  }
  std::array<char, 64> buffer{};
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value).ptr;
  return std::string(buffer.data(), end);
}

/// The code of the power of two for a positive number: rounded up, down, or to the nearest (ties up).
[[nodiscard]] inline float8e8m0 power_of_two(float value, bool saturate, const std::string& round_mode) {
  float8e8m0 result;
  if (std::isnan(value)) {
    result.bits = 255;
  } else if (value == 0.0F) {
    result.bits = saturate ? 0 : 255;
  } else {
    int exponent = 0;
    const float mantissa = std::isinf(value) ? 0.5F : std::frexp(std::fabs(value), &exponent);
    if (std::isinf(value)) exponent = 1000;
    const bool up = round_mode == "up" ? mantissa > 0.5F : round_mode == "nearest" ? mantissa >= 0.75F : false;
    const int code = exponent - 1 + (up ? 1 : 0) + 127;
    if (code < 0 || code > 254)
      result.bits = saturate ? (code < 0 ? 0 : 254) : 255;
    else
      result.bits = static_cast<std::uint8_t>(code);
  }
  return result;
}

template <class T>
[[nodiscard]] tensor to_strings(const tensor& x) {
  tensor result(dtype::string, x.dims());
  auto& out = result.mutable_strings();
  const auto values = x.data<T>();
  for (std::size_t i = 0; i < out.size(); ++i) {
    if constexpr (std::is_same_v<T, bool>)
      out[i] = values[i] ? "True" : "False";
    else if constexpr (std::is_arithmetic_v<T>)
      out[i] = text_of(values[i]);
    else
      out[i] = text_of(static_cast<float>(values[i]));
  }
  return result;
}

/// Text read as numbers. Errors: invalid_argument naming text that is no number.
[[nodiscard]] inline tensor from_strings(const tensor& x, dtype to) {
  const auto& text = x.strings();
  std::vector<double> numbers(text.size());
  std::vector<std::int64_t> integers(text.size());
  const bool whole = is_integer(to);
  for (std::size_t i = 0; i < text.size(); ++i) {
    char* end = nullptr;
    numbers[i] = std::strtod(text[i].c_str(), &end);
    if (text[i].empty() || *end != '\0') throw error(errc::invalid_argument, "'" + text[i] + "' is no number");
    if (whole && std::from_chars(text[i].data(), text[i].data() + text[i].size(), integers[i]).ptr !=
                     text[i].data() + text[i].size())
      integers[i] = narrow<std::int64_t>(numbers[i]);
  }
  return whole ? store_all<std::int64_t>(to, x.dims(), integers) : store_all<double>(to, x.dims(), numbers);
}

/// Elements converted one by one through float with `f`.
template <class T, class F>
[[nodiscard]] tensor through_float(const tensor& x, dtype to, F f) {
  tensor result(to, x.dims());
  const auto values = load_all<double>(x);
  const auto out = result.mutable_data<T>();
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = f(static_cast<float>(values[i]));
  return result;
}

/// The tensor converted to another element type as ONNX's Cast does. Errors: unsupported, invalid_argument.
[[nodiscard]] inline tensor cast(const tensor& x, dtype to, bool saturate = true,
                                 const std::string& round_mode = "up") {
  if (x.type() == to) return x;
  if (x.type() == dtype::string) return from_strings(x, to);
  if (to == dtype::string) return visit_type(x.type(), [&]<class T>(type_tag<T>) { return to_strings<T>(x); });
  const auto eight_bits = [&]<class T>(type_tag<T>) {
    return through_float<T>(x, to, [saturate](float v) { return saturate ? T::saturated(v) : T(v); });
  };
  switch (to) {
    case dtype::float8e4m3fn:
      return eight_bits(type_tag<float8e4m3fn>{});
    case dtype::float8e4m3fnuz:
      return eight_bits(type_tag<float8e4m3fnuz>{});
    case dtype::float8e5m2:
      return eight_bits(type_tag<float8e5m2>{});
    case dtype::float8e5m2fnuz:
      return eight_bits(type_tag<float8e5m2fnuz>{});
    case dtype::float8e8m0:
      return through_float<float8e8m0>(x, to, [&](float v) { return power_of_two(v, saturate, round_mode); });
    default:
      break;
  }
  const auto same = [](auto v) { return v; };
  if (is_floating(x.type())) return map_scalars<double>(to, x.dims(), std::array{&x}, same);
  if (x.type() == dtype::uint64) return map_scalars<std::uint64_t>(to, x.dims(), std::array{&x}, same);
  return map_scalars<std::int64_t>(to, x.dims(), std::array{&x}, same);
}

inline void evaluate_cast(const attribute_map& attributes, inputs x, outputs y) {
  y[0] = cast(x[0], static_cast<dtype>(attributes.require<std::int64_t>("to")), attributes.get_int("saturate", 1) != 0,
              attributes.get_string("round_mode", "up"));
}
inline void evaluate_cast_like(const attribute_map& attributes, inputs x, outputs y) {
  y[0] = cast(x[0], x[1].type(), attributes.get_int("saturate", 1) != 0, attributes.get_string("round_mode", "up"));
}
inline void evaluate_bit_cast(const attribute_map& attributes, inputs x, outputs y) {
  const auto to = static_cast<dtype>(attributes.require<std::int64_t>("to"));
  const int bits = row_of(to).packed_bits;
  if (bits == 0 || bits != row_of(x[0].type()).packed_bits)
    throw error(errc::type_mismatch,
                "BitCast from " + std::string(name_of(x[0].type())) + " to " + std::string(name_of(to)));
  tensor result(to, x[0].dims());
  const auto out = result.mutable_bytes();
  if (!out.empty()) std::memcpy(out.data(), x[0].bytes().data(), out.size());
  if (bits < 8) {
    const bool is_signed = kind_of(to) == dtype_kind::signed_integer;
    for (std::byte& code : out) {
      const unsigned low = static_cast<unsigned>(code) & ((1U << bits) - 1U);
      code = static_cast<std::byte>(is_signed && (low >> (bits - 1)) != 0 ? (low | (0xFFU << bits)) & 0xFFU : low);
    }
  }
  y[0] = std::move(result);
}

/// The least and greatest value of an integer type of 32 bits or fewer.
[[nodiscard]] inline std::pair<double, double> limits_of(dtype type) {
  const int bits = row_of(type).packed_bits;
  if (kind_of(type) == dtype_kind::unsigned_integer) return {0.0, std::ldexp(1.0, bits) - 1.0};
  return {-std::ldexp(1.0, bits - 1), std::ldexp(1.0, bits - 1) - 1.0};
}

/// Scale or zero point made broadcastable to `x`: per tensor, along `axis`, or repeated by blocks along it.
[[nodiscard]] inline tensor per_element(const tensor& parameter, const tensor& x, std::int64_t axis,
                                        std::int64_t block) {
  if (parameter.size() == 1 && block == 0) return parameter.reshaped({});
  const std::size_t at = normalize_axis(axis, x.rank());
  if (block == 0) {
    dim_list dims(x.rank(), 1);
    dims[at] = parameter.size();
    if (dims[at] != x.dims()[at])
      throw error(errc::shape_mismatch,
                  std::to_string(dims[at]) + " scales for an axis of " + std::to_string(x.dims()[at]));
    return parameter.reshaped(dims);
  }
  if (parameter.rank() != x.rank())
    throw error(errc::shape_mismatch, "blocked scales " + to_string(parameter.dims()) + " for " + to_string(x.dims()));
  tensor result(parameter.type(), x.dims());
  const auto out = result.mutable_bytes();
  const auto in = parameter.bytes();
  const std::size_t size = size_of(parameter.type());
  std::int64_t inner = 1;
  for (std::size_t i = at + 1; i < x.rank(); ++i) inner *= x.dims()[i];
  const std::int64_t extent = x.dims()[at];
  for (std::int64_t i = 0; i < x.size(); ++i) {
    const std::int64_t from =
        ((i / inner / extent) * parameter.dims()[at] + i / inner % extent / block) * inner + i % inner;
    std::memcpy(out.data() + static_cast<std::size_t>(i) * size, in.data() + static_cast<std::size_t>(from) * size,
                size);
  }
  return result;
}

// Divisions are in float as ONNX states them: which of two neighbours a quotient rounds to depends on it.
inline void quantize_linear(const attribute_map& attributes, inputs x, outputs y) {
  const std::int64_t axis = attributes.get_int("axis", 1);
  const std::int64_t block = attributes.get_int("block_size", 0);
  const auto named = static_cast<dtype>(attributes.get_int("output_dtype", 0));
  const dtype type = has_input(x, 2) ? x[2].type() : named != dtype::undefined ? named : dtype::uint8;
  const tensor scale = per_element(x[1], x[0], axis, block);
  if (is_floating(type)) {
    const tensor quotient = map_scalars<double>(
        dtype::float32, x[0].dims(), std::array{&x[0], &scale},
        [](double v, double s) { return static_cast<double>(static_cast<float>(v) / static_cast<float>(s)); });
    y[0] = cast(quotient, type, attributes.get_int("saturate", 1) != 0);
    return;
  }
  const tensor zero = has_input(x, 2) ? per_element(x[2], x[0], axis, block) : tensor::scalar<float>(0.0F);
  const auto [low, high] = limits_of(type);
  y[0] = map_scalars<double>(type, x[0].dims(), std::array{&x[0], &scale, &zero},
                             [low = low, high = high](double v, double s, double z) {
                               const double q = std::nearbyint(static_cast<float>(v) / static_cast<float>(s)) + z;
                               return q < low ? low : q > high ? high : std::isnan(q) ? z : q;
                             });
}
inline void dequantize_linear(const attribute_map& attributes, inputs x, outputs y) {
  const std::int64_t axis = attributes.get_int("axis", 1);
  const std::int64_t block = attributes.get_int("block_size", 0);
  const auto named = static_cast<dtype>(attributes.get_int("output_dtype", 0));
  const dtype type = named != dtype::undefined ? named : x[1].type();
  const tensor scale = per_element(x[1], x[0], axis, block);
  const tensor zero = has_input(x, 2) ? per_element(x[2], x[0], axis, block) : tensor::scalar<float>(0.0F);
  y[0] = map_scalars<double>(type, x[0].dims(), std::array{&x[0], &scale, &zero},
                             [](double v, double s, double z) { return (v - z) * s; });
}
inline void dynamic_quantize_linear(const attribute_map&, inputs x, outputs y) {
  const auto values = x[0].data<float>();
  float low = 0.0F;
  float high = 0.0F;
  for (const float v : values) low = std::min(low, v), high = std::max(high, v);
  const float scale = high == low ? 1.0F : (high - low) / 255.0F;
  const float zero = std::nearbyint(std::clamp(-low / scale, 0.0F, 255.0F));
  tensor result(dtype::uint8, x[0].dims());
  const auto out = result.mutable_data<std::uint8_t>();
  for (std::size_t i = 0; i < values.size(); ++i)
    out[i] = static_cast<std::uint8_t>(std::clamp(std::nearbyint(values[i] / scale) + zero, 0.0F, 255.0F));
  y[0] = std::move(result);
  if (y.size() > 1) y[1] = tensor::scalar<float>(scale);
  if (y.size() > 2) y[2] = tensor::scalar<std::uint8_t>(static_cast<std::uint8_t>(zero));
}

/// The least (or greatest) finite number that an element type holds, in the type that it is computed in.
template <class C>
[[nodiscard]] C finite_limit(dtype type, bool least) {
  return visit_type(type, [least]<class T>(type_tag<T>) {
    if constexpr (std::is_arithmetic_v<T>) {
      return static_cast<C>(least ? std::numeric_limits<T>::lowest() : std::numeric_limits<T>::max());
    } else if constexpr (requires { T::saturated(0.0F); }) {
      const float most = static_cast<float>(T::saturated(std::numeric_limits<float>::max()));
      return static_cast<C>(least ? -most : most);
    } else {
      throw error(errc::unsupported, "a type of powers of two alone has no limits");
      return C{};
    }
  });
}

template <class C>
[[nodiscard]] tensor clip_as(inputs x) {
  const auto bound = [&](std::size_t i, C fallback) {
    if (!has_input(x, i)) return fallback;
    C value{};
    if (x[i].size() != 1) throw error(errc::shape_mismatch, "a bound of Clip has dims " + to_string(x[i].dims()));
    loader<C>(x[i].type())(x[i].bytes().data(), 0, 1, 1, &value);
    return value;
  };
  const C low = bound(1, finite_limit<C>(x[0].type(), true));
  const C high = bound(2, finite_limit<C>(x[0].type(), false));
  return map_scalars<C>(x[0].type(), x[0].dims(), std::array{&x[0]}, [low, high](C v) {
    const C raised = v < low ? low : v;
    return raised > high ? high : raised;
  });
}
inline void clip(const attribute_map&, inputs x, outputs y) {
  if (is_floating(x[0].type()))
    y[0] = clip_as<double>(x);
  else if (x[0].type() == dtype::uint64)
    y[0] = clip_as<std::uint64_t>(x);
  else
    y[0] = clip_as<std::int64_t>(x);
}

inline void dropout(const attribute_map& attributes, inputs x, outputs y) {
  const double ratio = scalar_or(x, 1, 0.5);
  const bool training = scalar_or(x, 2, 0.0) != 0.0;
  tensor mask(dtype::boolean, x[0].dims());
  const auto kept = mask.mutable_data<bool>();
  if (!training || ratio == 0.0) {
    std::fill(kept.begin(), kept.end(), true);
    y[0] = x[0];
  } else {
    uniform_stream random(static_cast<std::uint32_t>(attributes.get_int("seed", 0)));
    for (bool& keep : kept) keep = random.next() >= ratio;
    const double scale = 1.0 / (1.0 - ratio);
    y[0] = map_scalars<double>(x[0].type(), x[0].dims(), std::array<const tensor*, 2>{&x[0], &mask},
                               [scale](double v, double keep) { return v * keep * scale; });
  }
  if (y.size() > 1) y[1] = std::move(mask);
}
}  // namespace conversion

/// Evaluations of conversions, quantization, Clip and Dropout.
inline constexpr std::array conversion_rows{
    reference_row{"", "BitCast", conversion::evaluate_bit_cast},
    reference_row{"", "Cast", conversion::evaluate_cast},
    reference_row{"", "CastLike", conversion::evaluate_cast_like},
    reference_row{"", "Clip", conversion::clip},
    reference_row{"", "DequantizeLinear", conversion::dequantize_linear},
    reference_row{"", "Dropout", conversion::dropout},
    reference_row{"", "DynamicQuantizeLinear", conversion::dynamic_quantize_linear},
    reference_row{"", "QuantizeLinear", conversion::quantize_linear},
};

}  // namespace dnnopt::reference

#endif  // DNNOPT_REFERENCE_CONVERSION_HPP
