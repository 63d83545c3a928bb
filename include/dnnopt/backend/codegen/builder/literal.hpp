// Owns numbers in kernels: elements of constant tensors, and how OpenCL C writes them.
#ifndef DNNOPT_BACKEND_CODEGEN_BUILDER_LITERAL_HPP
#define DNNOPT_BACKEND_CODEGEN_BUILDER_LITERAL_HPP

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <span>
#include <string>

#include <dnnopt/backend/codegen/builder/c_types.hpp>
#include <dnnopt/tensor.hpp>

namespace dnnopt::codegen {

/// The least (or greatest) finite number of an element type, in OpenCL C. Integers have those of their compute type.
[[nodiscard]] inline std::string finite_limit_of(dtype type, bool least) {
  const std::string sign = least ? "(-" : "(";
  switch (type) {
    case dtype::float16:
      return sign + "65504.0f)";
    case dtype::bfloat16:
      return sign + "3.38953139e+38f)";
    case dtype::float64:
      return sign + "DBL_MAX)";
    default:
      break;
  }
  switch (c_type_of(type).compute) {
    case compute_type::integer:
      return least ? "LONG_MIN" : "LONG_MAX";
    case compute_type::natural:
      return least ? "0UL" : "ULONG_MAX";
    default:
      return sign + "FLT_MAX)";
  }
}

/// A value as a number. Errors: type_mismatch for strings and complex numbers.
[[nodiscard]] inline double number_at(const tensor& t, std::size_t i) {
  switch (t.type()) {
    case dtype::float32:
      return static_cast<double>(t.data<float>()[i]);
    case dtype::float64:
      return t.data<double>()[i];
    case dtype::float16:
      return static_cast<double>(static_cast<float>(t.data<float16>()[i]));
    case dtype::bfloat16:
      return static_cast<double>(static_cast<float>(t.data<bfloat16>()[i]));
    case dtype::float8e4m3fn:
      return static_cast<double>(static_cast<float>(t.data<float8e4m3fn>()[i]));
    case dtype::float8e4m3fnuz:
      return static_cast<double>(static_cast<float>(t.data<float8e4m3fnuz>()[i]));
    case dtype::float8e5m2:
      return static_cast<double>(static_cast<float>(t.data<float8e5m2>()[i]));
    case dtype::float8e5m2fnuz:
      return static_cast<double>(static_cast<float>(t.data<float8e5m2fnuz>()[i]));
    case dtype::float4e2m1:
      return static_cast<double>(static_cast<float>(t.data<float4e2m1>()[i]));
    case dtype::float8e8m0:
      return static_cast<double>(static_cast<float>(t.data<float8e8m0>()[i]));
    default:
      break;
  }
  if (!is_integer(t.type()) && t.type() != dtype::boolean)
    throw error(errc::type_mismatch, "no number in a " + std::string(dnnopt::name_of(t.type())) + " tensor");
  const auto bytes = t.bytes();
  switch (t.type()) {
    case dtype::int64:
      return static_cast<double>(t.data<std::int64_t>()[i]);
    case dtype::uint64:
      return static_cast<double>(t.data<std::uint64_t>()[i]);
    case dtype::int32:
      return static_cast<double>(t.data<std::int32_t>()[i]);
    case dtype::uint32:
      return static_cast<double>(t.data<std::uint32_t>()[i]);
    case dtype::int16:
      return static_cast<double>(t.data<std::int16_t>()[i]);
    case dtype::uint16:
      return static_cast<double>(t.data<std::uint16_t>()[i]);
    case dtype::int8:
    case dtype::int4:
    case dtype::int2:
      return static_cast<double>(t.data<std::int8_t>()[i]);
    default:
      return static_cast<double>(std::to_integer<unsigned>(bytes[i]));
  }
}

/// Whether all elements of a constant are one byte, as the zero points of channels mostly are. O(1) for larger ones
/// than `most`, of which it is not known.
[[nodiscard]] inline bool is_one_byte_all_over(const tensor& t) {
  constexpr std::size_t most = 1 << 16;
  const std::span<const std::byte> bytes = t.bytes();
  if (!is_byte(t.type()) || bytes.empty() || bytes.size() > most) return false;
  return std::all_of(bytes.begin(), bytes.end(), [&](std::byte one) { return one == bytes.front(); });
}

/// A number as an OpenCL C literal of a compute type.
[[nodiscard]] inline std::string literal(compute_type type, double number) {
  if (type == compute_type::integer || type == compute_type::natural)
    return "((" + std::string(name_of(type)) + ")" + std::to_string(static_cast<long long>(number)) + "L)";
  if (std::isnan(number)) return "NAN";
  if (std::isinf(number)) return number < 0 ? "(-INFINITY)" : "INFINITY";
  char text[64];
  std::snprintf(text, sizeof text, type == compute_type::real ? "%.9g" : "%.17g", number);
  std::string out(text);
  if (out.find_first_of(".e") == std::string::npos) out += ".0";
  if (type == compute_type::real) out += "f";
  return number < 0 || std::signbit(number) ? "(" + out + ")" : out;
}

}  // namespace dnnopt::codegen

#endif  // DNNOPT_BACKEND_CODEGEN_BUILDER_LITERAL_HPP
