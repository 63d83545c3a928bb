// Owns the element types of tensors: their ONNX numbers, names, sizes and kinds.
#ifndef DNNOPT_DTYPE_HPP
#define DNNOPT_DTYPE_HPP

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace dnnopt {

/// Element types, numbered as ONNX's TensorProto.DataType.
enum class dtype : std::uint8_t {
  undefined = 0,
  float32 = 1,
  uint8 = 2,
  int8 = 3,
  uint16 = 4,
  int16 = 5,
  int32 = 6,
  int64 = 7,
  string = 8,
  boolean = 9,
  float16 = 10,
  float64 = 11,
  uint32 = 12,
  uint64 = 13,
  complex64 = 14,
  complex128 = 15,
  bfloat16 = 16,
  float8e4m3fn = 17,
  float8e4m3fnuz = 18,
  float8e5m2 = 19,
  float8e5m2fnuz = 20,
  uint4 = 21,
  int4 = 22,
  float4e2m1 = 23,
  float8e8m0 = 24,
  uint2 = 25,
  int2 = 26,
};

/// What arithmetic an element type takes part in.
enum class dtype_kind : std::uint8_t { none, floating, signed_integer, unsigned_integer, boolean, complex, text };

/// One row per element type.
struct dtype_row {
  dtype type;
  std::string_view name;     ///< ONNX's name in lower case
  std::uint8_t bytes;        ///< bytes per element in a tensor's storage; sub-byte types take one byte an element
  std::uint8_t packed_bits;  ///< bits per element in an ONNX file
  dtype_kind kind;
};

inline constexpr std::array<dtype_row, 27> dtype_table{{
    {dtype::undefined, "undefined", 0, 0, dtype_kind::none},
    {dtype::float32, "float32", 4, 32, dtype_kind::floating},
    {dtype::uint8, "uint8", 1, 8, dtype_kind::unsigned_integer},
    {dtype::int8, "int8", 1, 8, dtype_kind::signed_integer},
    {dtype::uint16, "uint16", 2, 16, dtype_kind::unsigned_integer},
    {dtype::int16, "int16", 2, 16, dtype_kind::signed_integer},
    {dtype::int32, "int32", 4, 32, dtype_kind::signed_integer},
    {dtype::int64, "int64", 8, 64, dtype_kind::signed_integer},
    {dtype::string, "string", 0, 0, dtype_kind::text},
    {dtype::boolean, "bool", 1, 8, dtype_kind::boolean},
    {dtype::float16, "float16", 2, 16, dtype_kind::floating},
    {dtype::float64, "float64", 8, 64, dtype_kind::floating},
    {dtype::uint32, "uint32", 4, 32, dtype_kind::unsigned_integer},
    {dtype::uint64, "uint64", 8, 64, dtype_kind::unsigned_integer},
    {dtype::complex64, "complex64", 8, 64, dtype_kind::complex},
    {dtype::complex128, "complex128", 16, 128, dtype_kind::complex},
    {dtype::bfloat16, "bfloat16", 2, 16, dtype_kind::floating},
    {dtype::float8e4m3fn, "float8e4m3fn", 1, 8, dtype_kind::floating},
    {dtype::float8e4m3fnuz, "float8e4m3fnuz", 1, 8, dtype_kind::floating},
    {dtype::float8e5m2, "float8e5m2", 1, 8, dtype_kind::floating},
    {dtype::float8e5m2fnuz, "float8e5m2fnuz", 1, 8, dtype_kind::floating},
    {dtype::uint4, "uint4", 1, 4, dtype_kind::unsigned_integer},
    {dtype::int4, "int4", 1, 4, dtype_kind::signed_integer},
    {dtype::float4e2m1, "float4e2m1", 1, 4, dtype_kind::floating},
    {dtype::float8e8m0, "float8e8m0", 1, 8, dtype_kind::floating},
    {dtype::uint2, "uint2", 1, 2, dtype_kind::unsigned_integer},
    {dtype::int2, "int2", 1, 2, dtype_kind::signed_integer},
}};

/// The row of a type; numbers outside the table give the row of `undefined`.
[[nodiscard]] constexpr const dtype_row& row_of(dtype type) noexcept {
  const auto index = static_cast<std::size_t>(type);
  return index < dtype_table.size() ? dtype_table[index] : dtype_table[0];
}

/// ONNX's name in lower case, for example "float32".
[[nodiscard]] constexpr std::string_view name_of(dtype type) noexcept { return row_of(type).name; }

/// Bytes per element in a tensor's storage; 0 for `undefined` and `string`.
[[nodiscard]] constexpr std::size_t size_of(dtype type) noexcept { return row_of(type).bytes; }

/// What arithmetic the type takes part in.
[[nodiscard]] constexpr dtype_kind kind_of(dtype type) noexcept { return row_of(type).kind; }

/// Whether the type is a real floating-point type of any width.
[[nodiscard]] constexpr bool is_floating(dtype type) noexcept { return kind_of(type) == dtype_kind::floating; }

/// Whether the type is a signed or unsigned integer (not boolean).
[[nodiscard]] constexpr bool is_integer(dtype type) noexcept {
  return kind_of(type) == dtype_kind::signed_integer || kind_of(type) == dtype_kind::unsigned_integer;
}

/// Whether the type's elements are integers of eight bits.
[[nodiscard]] constexpr bool is_byte(dtype type) noexcept { return type == dtype::int8 || type == dtype::uint8; }

namespace detail {
consteval bool dtype_table_is_in_order() {
  for (std::size_t i = 0; i < dtype_table.size(); ++i)
    if (static_cast<std::size_t>(dtype_table[i].type) != i) return false;
  return true;
}
static_assert(dtype_table_is_in_order(), "dtype_table is indexed by the enumerator's number");
}  // namespace detail

}  // namespace dnnopt

#endif  // DNNOPT_DTYPE_HPP
