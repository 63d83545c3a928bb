// Owns the element expressions of conversions that more than the two types decides, and of quantization.
#ifndef DNNOPT_BACKEND_CODEGEN_ELEMENTS_QUANTIZATION_HPP
#define DNNOPT_BACKEND_CODEGEN_ELEMENTS_QUANTIZATION_HPP

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <dnnopt/backend/codegen/elements/element_site.hpp>
#include <dnnopt/inexpressible.hpp>

namespace dnnopt::codegen {

/// A value as an element of a floating-point type of at most eight bits holds it by Cast's rules: attribute `saturate`,
/// and for powers of two `round_mode`.
[[nodiscard]] inline std::string converted(const element_site& s, dtype type, std::string_view value) {
  const std::string saturate = s.attributes().get_int("saturate", 1) != 0 ? "1" : "0";
  const std::string name(dnnopt::name_of(type));
  if (type != dtype::float8e8m0)
    return s.b.let(compute_type::real,
                   "dnnopt_load_" + name + "(dnnopt_store_" + name + "(" + std::string(value) + ", " + saturate + "))");
  const std::string mode = s.attributes().get_string("round_mode", "up");
  return s.b.let(compute_type::real, "dnnopt_load_" + name + "(dnnopt_round_" + name + "((float)(" +
                                         std::string(value) + "), " +
                                         (mode == "up"        ? "2"
                                          : mode == "nearest" ? "1"
                                                              : "0") +
                                         ", " + saturate + "))");
}

/// Whether the type is a float of at most eight bits.
[[nodiscard]] constexpr bool is_small_float(dtype type) noexcept { return is_floating(type) && size_of(type) == 1; }

/// Cast and CastLike.
inline std::string emit_cast(kernel_builder& b, node_id id, std::size_t output, std::span<const index_expr> index) {
  const element_site s(b, id, output, index);
  const dtype type = b.g().facts(s.n().outputs[output]).type;
  if (is_small_float(type) && s.type_of(0) != type) return converted(s, type, s.read(0, s.index));
  return b.emit_by_scalar(id, output, index);
}

/// BitCast: the bits in memory, or those that an element computed in the kernel would have there.
inline std::string emit_bit_cast(kernel_builder& b, node_id id, std::size_t output, std::span<const index_expr> index) {
  const element_site s(b, id, output, index);
  const value_id in = s.n().inputs[0];
  const bits_row* const from = find_bits(s.type_of(0));
  std::string bits;
  if (from == nullptr) {
    bits = s.read(0, s.index);
  } else if (!b.is_member_value(in) && !b.g().facts(in).is_constant()) {
    bits = b.load_bits(in, b.offset_of(in, s.index));
  } else {
    bits = fill_pattern(from->encode, "", "", s.read(0, s.index));
  }
  const c_type_row& type = c_type_of(b.g().facts(s.n().outputs[output]).type);
  if (const bits_row* const to = find_bits(type.type))
    return b.let(type.compute, fill_pattern(to->decode, "", "", bits));
  return b.let(type.compute, fill_pattern(type.narrow, "", "", "(" + bits + ")"));
}

/// What codes of an integer type of at most 32 bits may be. Errors: unsupported for wider ones, which are no codes.
struct code_limits {
  explicit code_limits(dtype type) {
    const int bits = row_of(type).packed_bits;
    if (bits > 32) throw inexpressible("codes of type " + std::string(dnnopt::name_of(type)));
    const bool natural = kind_of(type) == dtype_kind::unsigned_integer;
    low = natural ? 0 : -(std::int64_t{1} << (bits - 1));
    high = natural ? (std::int64_t{1} << bits) - 1 : (std::int64_t{1} << (bits - 1)) - 1;
  }
  std::int64_t low = 0;
  std::int64_t high = 0;
  /// `value`, which is to be rounded and be a code less `zero`, within what codes may be.
  [[nodiscard]] std::string clamped(std::string_view value, const std::string& zero) const {
    const auto bound = [&](std::int64_t of) { return "(float)(" + std::to_string(of) + " - " + zero + ")"; };
    return "clamp((float)(" + std::string(value) + "), " + bound(low) + ", " + bound(high) + ")";
  }
};

/// Whether a type is one of integers of so few bits that what rounds is a sum in whose last place ones stand.
[[nodiscard]] inline bool rounds_by_sum(dtype type) { return is_integer(type) && row_of(type).packed_bits <= 16; }

/// A quotient within what codes less `zero` may be, rounded, as a code: what rounds is a sum in whose last place ones
/// stand (1.5 * 2^23), no call of a function, which would keep compilers from vectors, and ints all the way.
[[nodiscard]] inline std::string rounded_code(const element_site& s, std::string_view within, const std::string& zero) {
  return s.b.let(s.compute(), "(long)(as_int(" + std::string(within) + " + 12582912.0f) - 1262485504 + " + zero + ")");
}

/// round(value) + zero point, clamped to the output's element type.
[[nodiscard]] inline std::string quantized(const element_site& s, std::string_view value, std::string_view zero_point) {
  const dtype type = s.b.g().facts(s.n().outputs[s.output]).type;
  if (is_small_float(type)) return converted(s, type, value);
  if (!is_integer(type)) throw s.refuse("quantizes to " + std::string(dnnopt::name_of(type)));
  const code_limits limits(type);
  // It is floats that are clamped: of clamped ints compilers make branches, and no vectors where several stand in a
  // loop. Bounds are integers, so either order gives the same.
  if (rounds_by_sum(type)) {
    const std::string zero = "(int)(" + std::string(zero_point) + ")";
    return rounded_code(s, limits.clamped(value, zero), zero);
  }
  return s.b.let(s.compute(), "clamp((long)rint(clamp((float)(" + std::string(value) +
                                  "), -2147483000.0f, 2147483000.0f)) + " + std::string(zero_point) + ", (long)(" +
                                  std::to_string(limits.low) + "), (long)" + std::to_string(limits.high) + ")");
}

/// The index of the scale (or zero point) in input `slot` that belongs to element `at`: per tensor, per axis or
/// blocked.
[[nodiscard]] inline std::vector<index_expr> scale_index(const element_site& s, std::size_t slot,
                                                         std::span<const index_expr> at) {
  const shape& d = s.dims(slot);
  if (element_count(d) == index_expr(1)) return std::vector<index_expr>(d.size(), index_expr(0));
  const std::int64_t stated = s.attributes().get_int("axis", 1);
  const auto rank = static_cast<std::int64_t>(at.size());
  // A tensor without the axis that is stated has one scale, which a guard sees to.
  if (d.size() == 1 && (stated >= rank || stated < -rank)) return {index_expr(0)};
  const std::size_t axis = normalize_axis(stated, at.size());
  const shape& whole = s.dims(0);
  const std::int64_t block = s.attributes().get_int("block_size", 0);
  // Of one dim, scales are for blocks where a block's size is stated.
  if (d.size() == 1 && (block <= 0 || at.size() != 1))
    return {kernel_builder::broadcast_index(d[0], whole[axis], at[axis])};
  if (block <= 0) throw s.refuse("scales of this rank need a block_size");
  std::vector<index_expr> own(at.begin(), at.end());
  own[axis] = floordiv(own[axis], block);
  return own;
}

/// The quotient of a number by a scale, which is rounded to a code of `type`.
[[nodiscard]] inline std::string quotient_of(const kernel_builder& b, dtype type, std::string_view value,
                                             std::string_view scale) {
  const bool once = b.block().divides_once && rounds_by_sum(type);
  return std::string(once ? "dnnopt_quotient_of_codes" : "dnnopt_quotient") + "((float)" + std::string(value) +
         ", (float)" + std::string(scale) + ")";
}

/// The one scale of a QuantizeLinear and its one zero point, where a kernel divides by the scale's inverse and both are
/// constants that leave it digits.
struct known_scale {
  float scale = 1;
  std::int64_t zero = 0;
};
[[nodiscard]] inline std::optional<known_scale> known_scale_of(const element_site& s) {
  if (!s.b.block().divides_once) return std::nullopt;
  const tensor& scale = s.b.g().facts(s.n().inputs[1]).constant;
  if (scale.size() != 1 || scale.type() != dtype::float32) return std::nullopt;
  known_scale known{scale.data<float>()[0], 0};
  if (!(known.scale > 1e-18F && known.scale < 1e18F)) return std::nullopt;
  if (!s.has(2)) return known;
  const tensor& zero = s.b.g().facts(s.n().inputs[2]).constant;
  if (zero.size() != 1) return std::nullopt;
  known.zero = static_cast<std::int64_t>(number_at(zero, 0));
  return known;
}

/// The quotient of a QuantizeLinear's input by its scale within what codes of `type` less its zero point may be. It
/// rounds to the integer that the correctly rounded quotient does: of what is beyond a bound, which is a product of the
/// scale and an integer below 2^17 with one rounding, to that integer.
[[nodiscard]] inline std::string clamped_quotient(const element_site& s, dtype type) {
  const code_limits limits(type);
  const std::string value = s.read(0, s.index);
  const std::string scale = s.read(1, scale_index(s, 1, s.index));
  if (const std::optional<known_scale> known = known_scale_of(s)) {
    const auto bound = [&](std::int64_t code) {
      return s.b.number(static_cast<float>(code - known->zero) * known->scale);
    };
    return "dnnopt_clamped_quotient((float)" + value + ", (float)" + scale + ", " + s.b.number(1 / known->scale) +
           ", " + bound(limits.low) + ", " + bound(limits.high) + ")";
  }
  const std::string zero = s.has(2) ? "(int)(" + s.read(2, scale_index(s, 2, s.index)) + ")" : "0";
  return limits.clamped(quotient_of(s.b, type, value, scale), zero);
}

inline std::string emit_quantize(kernel_builder& b, node_id id, std::size_t output, std::span<const index_expr> index) {
  const element_site s(b, id, output, index);
  const dtype type = b.g().facts(s.n().outputs[output]).type;
  const auto zero = [&] { return s.has(2) ? s.read(2, scale_index(s, 2, s.index)) : std::string("0"); };
  if (rounds_by_sum(type)) return rounded_code(s, clamped_quotient(s, type), "(int)(" + zero() + ")");
  const std::string scale = s.read(1, scale_index(s, 1, s.index));
  const std::string zero_point = zero();
  return quantized(s, quotient_of(b, type, s.read(0, s.index), scale), zero_point);
}

/// Codes less their zero point as a float, of a DequantizeLinear whose codes the kernel itself makes with that zero
/// point: what is rounded, which no conversion to integers and back adds to. Empty where it is not so.
[[nodiscard]] inline std::string rounded_difference(const element_site& s) {
  kernel_builder& b = s.b;
  const value_id codes = s.n().inputs[0];
  if (!b.is_member_value(codes) || b.is_bound(codes) || !rounds_by_sum(s.type_of(0))) return {};
  const element_site made(b, b.g().value_at(codes).producer, 0, s.index);
  const auto zero_of = [](const element_site& site) { return site.has(2) ? site.n().inputs[2] : no_value; };
  if (!made.n().op->quantizes || zero_of(made) != zero_of(s)) return {};
  // Of zero points along an axis both have to mean the same one.
  if (made.has(2) && scale_index(made, 2, s.index) != scale_index(s, 2, s.index)) return {};
  return b.let(compute_type::real, "(" + clamped_quotient(made, s.type_of(0)) + " + 12582912.0f) - 12582912.0f");
}

inline std::string emit_dequantize(kernel_builder& b, node_id id, std::size_t output,
                                   std::span<const index_expr> index) {
  const element_site s(b, id, output, index);
  const kernel_builder::code_form form = b.form_of_codes(id);
  const bool scaled = form == kernel_builder::code_form::scaled;
  const std::string scale = scaled ? s.read(1, scale_index(s, 1, s.index)) : "";
  if (form != kernel_builder::code_form::bits)
    if (const std::string difference = rounded_difference(s); !difference.empty())
      return scaled ? s.result(difference + " * " + scale) : difference;
  const std::string own = s.read(0, s.index);
  if (form == kernel_builder::code_form::bits) return b.let(compute_type::real, "as_float((int)(" + own + "))");
  const std::string zero = s.has(2) ? s.read(2, scale_index(s, 2, s.index)) : "";
  if (!scaled)
    return b.let(compute_type::real,
                 zero.empty() ? "(float)(" + own + ")" : "(float)((int)(" + own + ") - (int)(" + zero + "))");
  if (zero.empty()) return s.result("(float)(" + own + ") * " + scale);
  // Differences of few bits fit an int, of which a vector holds more.
  const bool is_short = row_of(s.type_of(0)).packed_bits <= 16 && is_integer(s.type_of(0));
  return s.result(is_short ? "(float)((int)(" + own + ") - (int)(" + zero + ")) * " + scale
                           : "(float)(" + own + " - " + zero + ") * " + scale);
}

/// LookUp: the element of the table that the code's bits count.
inline std::string emit_look_up(kernel_builder& b, node_id id, std::size_t output, std::span<const index_expr> index) {
  const element_site s(b, id, output, index);
  return s.read(1, {b.define_integer("g", "(int)(" + s.read(0, s.index) + ") & 255", {0, 255})});
}

inline std::string emit_dynamic_quantize(kernel_builder& b, node_id id, std::size_t output,
                                         std::span<const index_expr> index) {
  const element_site s(b, id, output, index);
  const std::string low = b.variable(compute_type::real, "0");
  const std::string high = b.variable(compute_type::real, "0");
  s.loops("r", s.dims(0), [&](const std::vector<index_expr>& at) {
    const std::string x = s.read(0, at);
    b.line(low + " = fmin(" + low + ", " + x + ");");
    b.line(high + " = fmax(" + high + ", " + x + ");");
  });
  const std::string scale =
      b.let(compute_type::real, high + " == " + low + " ? 1.0f : dnnopt_quotient(" + high + " - " + low + ", 255.0f)");
  if (output == 1) return scale;
  const std::string zero =
      b.let(compute_type::integer, "(long)clamp(rint(dnnopt_quotient(-" + low + ", " + scale + ")), 0.0f, 255.0f)");
  if (output == 2) return zero;
  return quantized(s, quotient_of(b, dtype::uint8, s.read(0, s.index), scale), zero);
}

inline constexpr std::array quantization_emitters{
    emitter_row{"", "Cast", emit_cast},
    emitter_row{"", "CastLike", emit_cast},
    emitter_row{"", "BitCast", emit_bit_cast},
    emitter_row{"", "QuantizeLinear", emit_quantize},
    emitter_row{"", "DequantizeLinear", emit_dequantize},
    emitter_row{"", "DynamicQuantizeLinear", emit_dynamic_quantize},
    emitter_row{"dnnopt", "LookUp", emit_look_up},
};

}  // namespace dnnopt::codegen

#endif  // DNNOPT_BACKEND_CODEGEN_ELEMENTS_QUANTIZATION_HPP
