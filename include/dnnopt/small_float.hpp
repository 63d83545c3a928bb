// Owns the storage types of floating-point formats narrower than 32 bits and their conversions from and to float.
#ifndef DNNOPT_SMALL_FLOAT_HPP
#define DNNOPT_SMALL_FLOAT_HPP

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include <dnnopt/dtype.hpp>

namespace dnnopt {

/// How a format spends its largest exponent and its negative zero.
enum class float_specials : std::uint8_t {
  ieee,         ///< infinities and NaNs as IEEE 754
  finite_nan,   ///< no infinity; all bits set is NaN ("FN")
  finite_zero,  ///< no infinity, no negative zero; the code of negative zero is NaN ("FNUZ")
  finite_only,  ///< neither infinity nor NaN (float4e2m1)
};

/// A binary floating-point format of at most 16 bits held in `Storage`, converted by round to nearest even.
///
/// float(x) is exact. Conversion from float rounds to nearest even, flushes nothing, and overflows to infinity where
/// the format has it, else to NaN where it has that, else to the largest finite value; `saturated` never leaves the
/// finite range. Source: ONNX documentation, "Float stored in 8 bits" and "Float stored in 4 bits".
template <class Storage, int ExponentBits, int MantissaBits, int Bias, float_specials Specials>
struct small_float {
  static constexpr int exponent_bits = ExponentBits;
  static constexpr int mantissa_bits = MantissaBits;

  Storage bits = 0;

  small_float() = default;
  explicit small_float(float value) : bits(encode(value, false)) {}

  /// Rounds to nearest even and clamps what overflows to the largest finite value; NaN stays NaN where the format has
  /// it.
  [[nodiscard]] static small_float saturated(float value) { return from_bits(encode(value, true)); }

  /// The value with exactly these bits.
  [[nodiscard]] static constexpr small_float from_bits(Storage bits) noexcept {
    small_float result;
    result.bits = bits;
    return result;
  }

  /// The exact value.
  explicit operator float() const noexcept {
    const unsigned raw = bits;
    const bool negative = ((raw >> (ExponentBits + MantissaBits)) & 1U) != 0;
    const unsigned exponent = (raw >> MantissaBits) & exponent_mask;
    const unsigned mantissa = raw & mantissa_mask;
    if constexpr (Specials == float_specials::ieee) {
      if (exponent == exponent_mask) {
        if (mantissa != 0) return std::numeric_limits<float>::quiet_NaN();
        return negative ? -std::numeric_limits<float>::infinity() : std::numeric_limits<float>::infinity();
      }
    } else if constexpr (Specials == float_specials::finite_nan) {
      if (exponent == exponent_mask && mantissa == mantissa_mask) return std::numeric_limits<float>::quiet_NaN();
    } else if constexpr (Specials == float_specials::finite_zero) {
      if (raw == nan_bits) return std::numeric_limits<float>::quiet_NaN();
    }
    const float magnitude = exponent == 0 ? std::ldexp(static_cast<float>(mantissa), 1 - Bias - MantissaBits)
                                          : std::ldexp(static_cast<float>(mantissa | (1U << MantissaBits)),
                                                       static_cast<int>(exponent) - Bias - MantissaBits);
    return negative ? -magnitude : magnitude;
  }

  friend bool operator==(small_float, small_float) = default;

 private:
  static constexpr unsigned exponent_mask = (1U << ExponentBits) - 1U;
  static constexpr unsigned mantissa_mask = (1U << MantissaBits) - 1U;
  static constexpr unsigned sign_bit = 1U << (ExponentBits + MantissaBits);
  static constexpr unsigned infinity_bits = exponent_mask << MantissaBits;
  static constexpr unsigned nan_bits = Specials == float_specials::finite_zero ? sign_bit
                                       : Specials == float_specials::finite_nan
                                           ? infinity_bits | mantissa_mask
                                           : infinity_bits | (1U << (MantissaBits - 1));
  static constexpr unsigned largest_bits = Specials == float_specials::ieee ? infinity_bits - 1U
                                           : Specials == float_specials::finite_nan
                                               ? (infinity_bits | mantissa_mask) - 1U
                                               : infinity_bits | mantissa_mask;

  static Storage encode(float value, bool saturate) {
    const bool negative = std::signbit(value);
    const unsigned sign = negative ? sign_bit : 0U;
    if (std::isnan(value)) {
      // ONNX leaves NaN open here; its node tests and ml_dtypes make it negative zero.
      if constexpr (Specials == float_specials::finite_only) return static_cast<Storage>(sign_bit);
      if constexpr (Specials == float_specials::finite_zero) return static_cast<Storage>(nan_bits);
      return static_cast<Storage>(sign | nan_bits);
    }
    const auto overflow = [&]() -> Storage {
      if (saturate || Specials == float_specials::finite_only) return static_cast<Storage>(sign | largest_bits);
      if constexpr (Specials == float_specials::ieee) return static_cast<Storage>(sign | infinity_bits);
      if constexpr (Specials == float_specials::finite_zero) return static_cast<Storage>(nan_bits);
      return static_cast<Storage>(sign | nan_bits);
    };
    if (std::isinf(value)) return overflow();
    const double magnitude = std::fabs(static_cast<double>(value));
    if (magnitude == 0.0) return Specials == float_specials::finite_zero ? Storage{0} : static_cast<Storage>(sign);
    int exponent = 0;
    (void)std::frexp(magnitude, &exponent);
    const int lowest = 1 - Bias;
    const int scale_exponent = exponent - 1 < lowest ? lowest : exponent - 1;
    // Round to nearest even happens in the current rounding mode, which C++ starts in.
    const double scaled = std::nearbyint(std::ldexp(magnitude, MantissaBits - scale_exponent));
    auto code = static_cast<std::uint64_t>(scaled);
    std::uint64_t raw = 0;
    if (code < (std::uint64_t{1} << MantissaBits)) {
      raw = code;
    } else {
      std::uint64_t biased = static_cast<std::uint64_t>(scale_exponent + Bias);
      if (code == (std::uint64_t{2} << MantissaBits)) {
        code >>= 1U;
        ++biased;
      }
      raw = (biased << MantissaBits) + (code - (std::uint64_t{1} << MantissaBits));
    }
    if (raw > largest_bits) return overflow();
    if (raw == 0 && Specials == float_specials::finite_zero) return Storage{0};
    return static_cast<Storage>(sign | static_cast<unsigned>(raw));
  }
};

/// IEEE 754 binary16.
using float16 = small_float<std::uint16_t, 5, 10, 15, float_specials::ieee>;
/// The upper half of IEEE 754 binary32.
using bfloat16 = small_float<std::uint16_t, 8, 7, 127, float_specials::ieee>;
using float8e4m3fn = small_float<std::uint8_t, 4, 3, 7, float_specials::finite_nan>;
using float8e4m3fnuz = small_float<std::uint8_t, 4, 3, 8, float_specials::finite_zero>;
using float8e5m2 = small_float<std::uint8_t, 5, 2, 15, float_specials::ieee>;
using float8e5m2fnuz = small_float<std::uint8_t, 5, 2, 16, float_specials::finite_zero>;
using float4e2m1 = small_float<std::uint8_t, 2, 1, 1, float_specials::finite_only>;

/// Eight exponent bits, no sign, no mantissa: powers of two from 2^-127 to 2^127, 255 is NaN; conversion takes the
/// nearest power of two, ties upwards.
struct float8e8m0 {
  std::uint8_t bits = 0;

  float8e8m0() = default;
  explicit float8e8m0(float value) {
    if (std::isnan(value) || std::isinf(value) || value < 0.0F) {
      bits = 255;
    } else if (value == 0.0F) {
      bits = 0;
    } else {
      int exponent = 0;
      const float mantissa = std::frexp(value, &exponent);
      const int rounded = exponent - 1 + (mantissa >= 0.75F ? 1 : 0) + 127;
      bits = static_cast<std::uint8_t>(rounded < 0 ? 0 : rounded > 254 ? 254 : rounded);
    }
  }

  explicit operator float() const noexcept {
    if (bits == 255) return std::numeric_limits<float>::quiet_NaN();
    return std::ldexp(1.0F, static_cast<int>(bits) - 127);
  }

  friend bool operator==(float8e8m0, float8e8m0) = default;
};

}  // namespace dnnopt

#endif  // DNNOPT_SMALL_FLOAT_HPP
