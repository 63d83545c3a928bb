// Owns how element types are stored, loaded and computed with in OpenCL C.
#ifndef DNNOPT_BACKEND_CODEGEN_BUILDER_C_TYPES_HPP
#define DNNOPT_BACKEND_CODEGEN_BUILDER_C_TYPES_HPP

#include <array>
#include <string>
#include <string_view>

#include <dnnopt/dtype.hpp>
#include <dnnopt/error.hpp>
#include <dnnopt/inexpressible.hpp>

namespace dnnopt::codegen {

/// What OpenCL C type values of an element type are computed in.
enum class compute_type : unsigned char { real, real64, integer, natural };

/// "float", "double", "long" or "ulong".
[[nodiscard]] constexpr std::string_view name_of(compute_type type) noexcept {
  constexpr std::string_view names[] = {"float", "double", "long", "ulong"};
  return names[static_cast<unsigned>(type)];
}

/// One row per element type that kernels can hold; "$p" is the pointer and "$i" the index, "$v" the value.
struct c_type_row {
  dtype type;
  std::string_view storage;  ///< type of a buffer element
  compute_type compute;
  std::string_view load;    ///< expression of the compute type
  std::string_view store;   ///< statement
  std::string_view narrow;  ///< the value "$v" as the element type would hold it, in the compute type
};

inline constexpr std::array c_type_table{
    c_type_row{dtype::float32, "float", compute_type::real, "$p[$i]", "$p[$i] = $v;", "$v"},
    c_type_row{dtype::float16, "half", compute_type::real, "vload_half($i, $p)", "vstore_half_rte($v, $i, $p);",
               "dnnopt_rounded_half($v)"},
    c_type_row{dtype::bfloat16, "ushort", compute_type::real, "dnnopt_load_bfloat16($p[$i])",
               "$p[$i] = dnnopt_store_bfloat16($v);", "dnnopt_load_bfloat16(dnnopt_store_bfloat16($v))"},
    c_type_row{dtype::float64, "double", compute_type::real64, "$p[$i]", "$p[$i] = $v;", "$v"},
    c_type_row{dtype::int64, "long", compute_type::integer, "$p[$i]", "$p[$i] = $v;", "$v"},
    c_type_row{dtype::int32, "int", compute_type::integer, "(long)$p[$i]", "$p[$i] = (int)$v;", "(long)(int)($v)"},
    c_type_row{dtype::int16, "short", compute_type::integer, "(long)$p[$i]", "$p[$i] = (short)$v;",
               "(long)(short)($v)"},
    c_type_row{dtype::int8, "char", compute_type::integer, "(long)$p[$i]", "$p[$i] = (char)$v;", "(long)(char)($v)"},
    c_type_row{dtype::uint64, "ulong", compute_type::natural, "$p[$i]", "$p[$i] = $v;", "$v"},
    c_type_row{dtype::uint32, "uint", compute_type::integer, "(long)$p[$i]", "$p[$i] = (uint)$v;", "(long)(uint)($v)"},
    c_type_row{dtype::uint16, "ushort", compute_type::integer, "(long)$p[$i]", "$p[$i] = (ushort)$v;",
               "(long)(ushort)($v)"},
    c_type_row{dtype::uint8, "uchar", compute_type::integer, "(long)$p[$i]", "$p[$i] = (uchar)$v;",
               "(long)(uchar)($v)"},
    c_type_row{dtype::boolean, "uchar", compute_type::integer, "(long)$p[$i]", "$p[$i] = (uchar)($v != 0);",
               "(long)(($v) != 0)"},
    // Elements of fewer than eight bits take a byte each, as in a tensor's storage: no two work-items share one.
    c_type_row{dtype::float8e4m3fn, "uchar", compute_type::real, "dnnopt_load_float8e4m3fn($p[$i])",
               "$p[$i] = dnnopt_store_float8e4m3fn($v, 0);",
               "dnnopt_load_float8e4m3fn(dnnopt_store_float8e4m3fn($v, 0))"},
    c_type_row{dtype::float8e4m3fnuz, "uchar", compute_type::real, "dnnopt_load_float8e4m3fnuz($p[$i])",
               "$p[$i] = dnnopt_store_float8e4m3fnuz($v, 0);",
               "dnnopt_load_float8e4m3fnuz(dnnopt_store_float8e4m3fnuz($v, 0))"},
    c_type_row{dtype::float8e5m2, "uchar", compute_type::real, "dnnopt_load_float8e5m2($p[$i])",
               "$p[$i] = dnnopt_store_float8e5m2($v, 0);", "dnnopt_load_float8e5m2(dnnopt_store_float8e5m2($v, 0))"},
    c_type_row{dtype::float8e5m2fnuz, "uchar", compute_type::real, "dnnopt_load_float8e5m2fnuz($p[$i])",
               "$p[$i] = dnnopt_store_float8e5m2fnuz($v, 0);",
               "dnnopt_load_float8e5m2fnuz(dnnopt_store_float8e5m2fnuz($v, 0))"},
    c_type_row{dtype::float4e2m1, "uchar", compute_type::real, "dnnopt_load_float4e2m1($p[$i])",
               "$p[$i] = dnnopt_store_float4e2m1($v, 0);", "dnnopt_load_float4e2m1(dnnopt_store_float4e2m1($v, 0))"},
    c_type_row{dtype::float8e8m0, "uchar", compute_type::real, "dnnopt_load_float8e8m0($p[$i])",
               "$p[$i] = dnnopt_store_float8e8m0($v);", "dnnopt_load_float8e8m0(dnnopt_store_float8e8m0($v))"},
    c_type_row{dtype::int4, "char", compute_type::integer, "(long)$p[$i]", "$p[$i] = (char)dnnopt_wrap_signed($v, 4);",
               "dnnopt_wrap_signed($v, 4)"},
    c_type_row{dtype::int2, "char", compute_type::integer, "(long)$p[$i]", "$p[$i] = (char)dnnopt_wrap_signed($v, 2);",
               "dnnopt_wrap_signed($v, 2)"},
    c_type_row{dtype::uint4, "uchar", compute_type::integer, "(long)$p[$i]", "$p[$i] = (uchar)(($v) & 15);",
               "((long)($v) & 15L)"},
    c_type_row{dtype::uint2, "uchar", compute_type::integer, "(long)$p[$i]", "$p[$i] = (uchar)(($v) & 3);",
               "((long)($v) & 3L)"},
};

/// A number "$v" of floating point as an element of `type` holds it, in the compute type of `type`: integers cut it,
/// narrow floats round it. A conversion alone rounds; sums and what is fused with them keep their digits.
[[nodiscard]] constexpr std::string_view converted_pattern(dtype type) noexcept {
  switch (type) {
    case dtype::float16:
      return "dnnopt_rounded_half($v)";
    case dtype::bfloat16:
      return "dnnopt_load_bfloat16(dnnopt_store_bfloat16($v))";
    case dtype::int32:
    case dtype::int16:
    case dtype::int8:
    case dtype::uint16:
    case dtype::uint8:
      return "dnnopt_to_int($v)";
    case dtype::int64:
    case dtype::uint32:
    case dtype::int4:
    case dtype::uint4:
    case dtype::int2:
    case dtype::uint2:
      return "dnnopt_to_long($v)";
    case dtype::uint64:
      return "dnnopt_to_ulong($v)";
    default:
      return "$v";
  }
}

/// Types of which four neighbours are one access of a kernel: "$p" is the address of the first and "$v" what is stored,
/// or one of the four.
struct four_row {
  dtype type;
  std::string_view held;  ///< what holds the four
  std::string_view load;  ///< expression of `held`
  std::string_view store;
  std::string_view part;  ///< one of the four, in the compute type
  std::string_view made;  ///< the same of an element, in what `held` is made of
};

inline constexpr std::array four_table{
    four_row{dtype::float32, "float4", "*(__global const float4*)($p)", "*(__global float4*)($p) = $v;", "$v", "$v"},
    four_row{dtype::float16, "float4", "dnnopt_load_half4(0, $p)", "dnnopt_store_half4($v, 0, $p);", "$v", "$v"},
    four_row{dtype::int8, "char4", "*(__global const char4*)($p)", "*(__global char4*)($p) = $v;", "((long)$v)",
             "(char)($v)"},
    four_row{dtype::uint8, "uchar4", "*(__global const uchar4*)($p)", "*(__global uchar4*)($p) = $v;", "((long)$v)",
             "(uchar)($v)"},
};

/// The row of a type; null where its elements are accessed singly.
[[nodiscard]] constexpr const four_row* find_four(dtype type) noexcept {
  for (const four_row& row : four_table)
    if (row.type == type) return &row;
  return nullptr;
}

/// How an element of float16 is loaded as its bits, in the lower half of a float: bits of zero are zero.
inline constexpr std::string_view half_bits_load = "as_float((uint)((__global const ushort*)$p)[$i])";

/// The row of an element type, or null where kernels cannot hold it.
[[nodiscard]] constexpr const c_type_row* find_c_type(dtype type) noexcept {
  for (const c_type_row& row : c_type_table)
    if (row.type == type) return &row;
  return nullptr;
}

/// The row of an element type. Errors: unsupported naming the type.
[[nodiscard]] inline const c_type_row& c_type_of(dtype type) {
  const c_type_row* row = find_c_type(type);
  if (row == nullptr) throw inexpressible("kernels hold no elements of type " + std::string(dnnopt::name_of(type)));
  return *row;
}

/// How the bits of an element are loaded whatever they say, and made from and into a value: for operators that
/// reinterpret bits. "$v" is a ulong in `decode`; of the compute type in `encode`, whose answer may have bits above the
/// element's own.
struct bits_row {
  dtype type;
  std::string_view encode;
  std::string_view decode;
};

inline constexpr std::array bits_table{
    bits_row{dtype::float32, "as_uint($v)", "as_float((uint)($v))"},
    bits_row{dtype::float64, "as_ulong($v)", "as_double((ulong)($v))"},
    bits_row{dtype::float16, "dnnopt_store_half_bits($v)", "dnnopt_widened(as_float((uint)($v)))"},
    bits_row{dtype::bfloat16, "dnnopt_store_bfloat16($v)", "dnnopt_load_bfloat16((ushort)($v))"},
    bits_row{dtype::float8e4m3fn, "dnnopt_store_float8e4m3fn($v, 0)", "dnnopt_load_float8e4m3fn($v)"},
    bits_row{dtype::float8e4m3fnuz, "dnnopt_store_float8e4m3fnuz($v, 0)", "dnnopt_load_float8e4m3fnuz($v)"},
    bits_row{dtype::float8e5m2, "dnnopt_store_float8e5m2($v, 0)", "dnnopt_load_float8e5m2($v)"},
    bits_row{dtype::float8e5m2fnuz, "dnnopt_store_float8e5m2fnuz($v, 0)", "dnnopt_load_float8e5m2fnuz($v)"},
    bits_row{dtype::float4e2m1, "dnnopt_store_float4e2m1($v, 0)", "dnnopt_load_float4e2m1($v)"},
    bits_row{dtype::float8e8m0, "dnnopt_store_float8e8m0($v)", "dnnopt_load_float8e8m0($v)"},
};

/// The row of a floating-point type; null for integers, whose bits are their value's.
[[nodiscard]] constexpr const bits_row* find_bits(dtype type) noexcept {
  for (const bits_row& row : bits_table)
    if (row.type == type) return &row;
  return nullptr;
}

/// `pattern` with "$p", "$i" and "$v" replaced.
[[nodiscard]] inline std::string fill_pattern(std::string_view pattern, std::string_view pointer,
                                              std::string_view index, std::string_view value) {
  std::string out;
  for (std::size_t at = 0; at < pattern.size(); ++at) {
    if (pattern[at] != '$') {
      out += pattern[at];
      continue;
    }
    const char which = pattern[++at];
    out += which == 'p' ? pointer : which == 'i' ? index : value;
  }
  return out;
}

}  // namespace dnnopt::codegen

#endif  // DNNOPT_BACKEND_CODEGEN_BUILDER_C_TYPES_HPP
