#ifdef __cplusplus
R"CLC(
#endif
// What every kernel may call: floored integer division, conversions of storage types, and what scalar expressions name.
// Macros where an argument may be of more than one type; they take expressions without side effects.

static inline long dnnopt_floordiv(long a, long b) {
  long q = a / b;
  return (a % b != 0 && ((a < 0) != (b < 0))) ? q - 1 : q;
}

static inline long dnnopt_floormod(long a, long b) { return a - b * dnnopt_floordiv(a, b); }

// Quotient and remainder of numbers that are not negative by a divisor whose reciprocal the host has told
// (reciprocal_of): no division, which neither costs as one nor traps behind a test.
static inline int dnnopt_over(int n, long reciprocal) {
  return (int)(mul_hi((uint)n << 1, (uint)reciprocal) >> (uint)(reciprocal >> 32));
}

static inline int dnnopt_rest(int n, int divisor, long reciprocal) { return n - dnnopt_over(n, reciprocal) * divisor; }

// The correctly rounded quotient, of which OpenCL promises 2.5 ulp: where a program is built so that division rounds
// correctly it is that, else the device's is mended by its exact remainder (Markstein's theorem), within a range where no
// step overflows or loses digits.
#ifdef DNNOPT_ROUNDED_DIVISION
#define dnnopt_quotient(a, b) ((a) / (b))
#else
static inline float dnnopt_mended_quotient(float a, float b) {
  const float q = a / b;
  const float size = fabs(a);
  const float divisor = fabs(b);
  if (!(size > 1.0e-18f && size < 1.0e18f && divisor > 1.0e-18f && divisor < 1.0e18f)) return q;
  const float y = 1.0f / b;
  const float inverse = fma(fma(-b, y, 1.0f), y, y);
  const float once = fma(fma(-b, q, a), inverse, q);
  return fma(fma(-b, once, a), inverse, once);
}
#define dnnopt_quotient(a, b) (sizeof((a) / (b)) == 4 ? dnnopt_mended_quotient(a, b) : (a) / (b))
#endif

// The quotient of many numbers by one, whose inverse is taken once: correctly rounded (Markstein's theorem) as far as it is
// below 131072, beyond that as large. Codes of at most 16 bits are rounded of it.
static inline float dnnopt_quotient_of_codes(float a, float b) {
  if (!(b > 1.0e-18f && b < 1.0e18f)) return dnnopt_quotient(a, b);
  const float limit = 131072.0f * b;
  const float inverse = dnnopt_quotient(1.0f, b);
  const float within = clamp(a, -limit, limit);
  const float q = within * inverse;
  const float once = fma(fma(-b, q, within), inverse, q);
  return fma(fma(-b, once, within), inverse, once);
}

// The same where the inverse was taken before, and between two products of the divisor, within which no step overflows: one
// clamp serves for the quotient and for what codes may be. Codes are rounded of it.
static inline float dnnopt_clamped_quotient(float a, float b, float inverse, float low, float high) {
  const float within = clamp(a, low, high);
  const float q = within * inverse;
  const float once = fma(fma(-b, q, within), inverse, q);
  return fma(fma(-b, once, within), inverse, once);
}

// a * b + c with both roundings, which no compiler makes one.
static inline float dnnopt_rounded_product_sum(float a, float b, float c) {
#pragma OPENCL FP_CONTRACT OFF
  const float product = a * b;
  return product + c;
}

// Numbers cut to integers as x86 processors and ONNX Runtime do: what the integer cannot hold, and NaN, is its least.
#define dnnopt_to_int(x) ((x) >= -2147483648.0f && (x) < 2147483648.0f ? (long)(int)(x) : -2147483648L)
#define dnnopt_to_long(x) ((x) >= -9223372036854775808.0f && (x) < 9223372036854775808.0f ? (long)(x) : LONG_MIN)
#define dnnopt_to_ulong(x)                                                                                    \
  ((x) >= 18446744073709551616.0f ? 0UL : (x) >= 9223372036854775808.0f ? (ulong)(x) : (ulong)dnnopt_to_long(x))

// An index that data gave into a dim: negative ones count from its end, and what is outside is the nearest place inside, so
// that no kernel touches memory that is not its own.
static inline int dnnopt_wrapped_index(int index, int dim) {
  index = index < 0 ? index + dim : index;
  return index < 0 ? 0 : index < dim ? index : dim > 0 ? dim - 1 : 0;
}
static inline long dnnopt_wrapped_index_long(long index, long dim) {
  index = index < 0 ? index + dim : index;
  return index < 0 ? 0 : index < dim ? index : dim > 0 ? dim - 1 : 0;
}

// A number rounded to what fp16 holds.
static inline float dnnopt_rounded_half(float value) {
  ushort bits;
  vstore_half_rte(value, 0, (__private half*)&bits);
  return vload_half(0, (const __private half*)&bits);
}

// Texels of images: what lies outside is zero.
#ifdef __IMAGE_SUPPORT__
__constant sampler_t dnnopt_texels = CLK_NORMALIZED_COORDS_FALSE | CLK_ADDRESS_CLAMP | CLK_FILTER_NEAREST;
__constant sampler_t dnnopt_between_texels = CLK_NORMALIZED_COORDS_FALSE | CLK_ADDRESS_CLAMP_TO_EDGE | CLK_FILTER_LINEAR;
#endif

// Component i of a texel.
static inline float dnnopt_component(float4 texel, int i) { return (i & 2) ? ((i & 1) ? texel.w : texel.z) : ((i & 1) ? texel.y : texel.x); }

// Halves as they are stored, in the lower half of a float or four in a uint2, widened; and four rounded to nearest even.
static inline float dnnopt_widened(float bits) {
  const uint stored = as_uint(bits);
  return vload_half(0, (const __private half*)&stored);
}
static inline float4 dnnopt_widened4(uint2 bits) { return vloada_half4(0, (const __private half*)&bits); }
static inline uint2 dnnopt_narrowed4(float4 value) {
  uint2 bits;
  vstorea_half4_rte(value, 0, (__private half*)&bits);
  return bits;
}

// Four halves of memory, of which the first is number 4 * i: as one load or store of eight bytes. NVIDIA's compiler makes
// four of what OpenCL C has for this.
static inline float4 dnnopt_load_half4(size_t i, const __global half* from) { return dnnopt_widened4(((const __global uint2*)from)[i]); }
static inline void dnnopt_store_half4(float4 value, size_t i, __global half* to) { ((__global uint2*)to)[i] = dnnopt_narrowed4(value); }

static inline float dnnopt_load_bfloat16(ushort bits) { return as_float((uint)bits << 16); }

// Rounds to nearest even; NaN stays a quiet NaN.
static inline ushort dnnopt_store_bfloat16(float value) {
  uint bits = as_uint(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return (ushort)((bits >> 16) | 0x0040u);
  return (ushort)((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

static inline uint dnnopt_store_half_bits(float value) {
  uint stored = 0;
  vstore_half_rte(value, 0, (__private half*)&stored);
  return stored;
}

// Floats of at most eight bits, by their bits of exponent and mantissa, the exponent's bias and what the largest exponent
// and negative zero stand for: 0 as IEEE 754; 1 no infinity, all bits set is NaN; 2 no infinity, negative zero is NaN;
// 3 neither infinity nor NaN. Calls have constants there, so that compilers leave little of it.
static inline float dnnopt_load_small_float(uint raw, int exponent_bits, int mantissa_bits, int bias, int specials) {
  const uint top = 1u << (exponent_bits + mantissa_bits);
  const uint magnitude = raw & (top - 1u);
  const uint sign = (raw & top) << (31 - exponent_bits - mantissa_bits);
  const uint exponent = magnitude >> mantissa_bits;
  const uint mantissa = magnitude & ((1u << mantissa_bits) - 1u);
  if (specials == 0 && exponent == (1u << exponent_bits) - 1u) return as_float(sign | 0x7f800000u | (mantissa << (23 - mantissa_bits)));
  if (specials == 1 && magnitude == top - 1u) return as_float(sign | 0x7fc00000u);
  if (specials == 2 && sign != 0u && magnitude == 0u) return NAN;
  const float value = exponent == 0u ? (float)mantissa * as_float((uint)(128 - bias - mantissa_bits) << 23)
                                     : as_float(((exponent + (uint)(127 - bias)) << 23) | (mantissa << (23 - mantissa_bits)));
  return as_float(as_uint(value) | sign);
}

// Rounds to nearest even. What overflows is the largest finite value where `saturate`, else infinity or NaN.
static inline uint dnnopt_store_small_float(float value, int exponent_bits, int mantissa_bits, int bias, int specials, int saturate) {
  const uint top = 1u << (exponent_bits + mantissa_bits);
  const uint infinity = top - (1u << mantissa_bits);
  const uint largest = specials == 0 ? infinity - 1u : specials == 1 ? top - 2u : top - 1u;
  const uint bits = as_uint(value);
  const uint size = bits & 0x7fffffffu;
  const uint sign = (bits >> 31) != 0u ? top : 0u;
  const int shift = 23 - mantissa_bits;
  if (size > 0x7f800000u) {
    const uint payload = (size >> shift) & ((1u << mantissa_bits) - 1u);
    return specials >= 2 ? top : specials == 1 ? sign | (top - 1u) : sign | infinity | (payload != 0u ? payload : 1u << (mantissa_bits - 1));
  }
  const uint code = size < (uint)(128 - bias) << 23
                        ? (uint)rint(as_float(size) * (float)(1 << (bias - 1 + mantissa_bits)))
                        : ((size + ((1u << (shift - 1)) - 1u) + ((size >> shift) & 1u)) >> shift) - ((uint)(127 - bias) << mantissa_bits);
  if (code > largest) {
    if (saturate != 0 || specials == 3) return sign | largest;
    return specials == 0 ? sign | infinity : specials == 1 ? sign | (top - 1u) : top;
  }
  return specials == 2 && code == 0u ? 0u : sign | code;
}
#define dnnopt_load_float8e4m3fn(raw) dnnopt_load_small_float((uint)(raw), 4, 3, 7, 1)
#define dnnopt_load_float8e4m3fnuz(raw) dnnopt_load_small_float((uint)(raw), 4, 3, 8, 2)
#define dnnopt_load_float8e5m2(raw) dnnopt_load_small_float((uint)(raw), 5, 2, 15, 0)
#define dnnopt_load_float8e5m2fnuz(raw) dnnopt_load_small_float((uint)(raw), 5, 2, 16, 2)
#define dnnopt_load_float4e2m1(raw) dnnopt_load_small_float((uint)(raw), 2, 1, 1, 3)
#define dnnopt_store_float8e4m3fn(value, saturate) (uchar)dnnopt_store_small_float((float)(value), 4, 3, 7, 1, saturate)
#define dnnopt_store_float8e4m3fnuz(value, saturate) (uchar)dnnopt_store_small_float((float)(value), 4, 3, 8, 2, saturate)
#define dnnopt_store_float8e5m2(value, saturate) (uchar)dnnopt_store_small_float((float)(value), 5, 2, 15, 0, saturate)
#define dnnopt_store_float8e5m2fnuz(value, saturate) (uchar)dnnopt_store_small_float((float)(value), 5, 2, 16, 2, saturate)
#define dnnopt_store_float4e2m1(value, saturate) (uchar)dnnopt_store_small_float((float)(value), 2, 1, 1, 3, saturate)

// Powers of two from 2^-127 (a subnormal float) to 2^127; 255 is NaN.
static inline float dnnopt_load_float8e8m0(uint raw) {
  return raw == 255u ? NAN : as_float(raw == 0u ? 0x00400000u : raw << 23);
}
// Of the magnitude: rounded up (2), to nearest with ties up (1), or down (0). What overflows, and zero, is the nearest end
// of the range where `saturate`, else NaN.
static inline uchar dnnopt_round_float8e8m0(float value, int rounding, int saturate) {
  uint size = as_uint(value) & 0x7fffffffu;
  if (size > 0x7f800000u) return 255;
  if (size == 0u) return saturate != 0 ? 0 : 255;
  int code = 0;
  if (size < 0x00800000u) {
    const int leading = (int)clz(size) - 8;
    size <<= leading;
    code = 1 - leading;
  } else {
    code = (int)(size >> 23);
  }
  const uint mantissa = size & 0x7fffffu;
  if (rounding == 2 ? mantissa != 0u : rounding == 1 ? mantissa >= 0x400000u : 0) ++code;
  return code < 0 || code > 254 ? (saturate != 0 ? (code < 0 ? 0 : 254) : 255) : (uchar)code;
}
static inline uchar dnnopt_store_float8e8m0(float value) {
  return value < 0.0f || value > 3.402823466e+38f ? 255 : dnnopt_round_float8e8m0(value, 1, 1);
}

// An integer as the lowest bits of it say in two's complement.
#define dnnopt_wrap_signed(value, bits) ((long)((ulong)(long)(value) << (64 - (bits))) >> (64 - (bits)))

// The nearest value that fp16 has room for; NaN stays.
static inline float dnnopt_within_half(float value) { return value > 65504.0f ? 65504.0f : value < -65504.0f ? -65504.0f : value; }

// Functions of float without branches or calls, so that loops over them vectorize (a library's erf or log is one call per
// element on CPUs). Coefficients are our own fits, least squares reweighted towards equal relative errors; beside each the
// largest relative error in float over all of its range. NaN stays NaN.

// erf(x) = x P(x^2) up to 1, and 1 - Q(|x|)^8 from there to 3.925, where that is 1; 1.7e-7. No division, and what is
// compared and chosen is little: on a GPU these take twice a multiply-add's time, a division many times.
static inline float dnnopt_erf_float(float x) {
  const float z = x * x;
  const float inner = x * fma(z, fma(z, fma(z, fma(z, fma(z, -5.631420063e-04f, 4.917551763e-03f), -2.671131305e-02f), 1.128018051e-01f), -3.761232495e-01f), 1.128379107e+00f);
  const float a = fabs(x);
  const float c = a > 3.925f ? 3.925f : a;
  const float q = fma(c, fma(c, fma(c, fma(c, fma(c, fma(c, 1.491159346e-04f, -2.462188248e-03f), 1.289436966e-02f), -1.130519342e-02f), -6.150778756e-02f), -1.450100690e-01f), 1.000821948e+00f);
  const float q2 = q * q;
  const float q4 = q2 * q2;
  const float outer = as_float(as_int(fma(-q4, q4, 1.0f)) | (as_int(x) & (int)0x80000000));
  return a < 1.0f ? inner : outer;
}

// tanh(x) = x P(x^2) / Q(x^2) up to 9, 1 beyond; 2.9e-7.
static inline float dnnopt_tanh_float(float x) {
  const float c = x > 9.0f ? 9.0f : x < -9.0f ? -9.0f : x;
  const float z = c * c;
  const float p = fma(z, fma(z, fma(z, fma(z, fma(z, 3.683642376e-11f, 1.113225140e-07f), 4.229911810e-05f), 4.426931283e-03f), 1.409994608e-01f), 1.0f);
  const float q = fma(z, fma(z, fma(z, fma(z, fma(z, 2.956623495e-09f, 2.606217808e-06f), 5.010233196e-04f), 2.920452990e-02f), 4.743327937e-01f), 1.0f);
  const float y = c * p / q;
  return y > 1.0f ? 1.0f : y < -1.0f ? -1.0f : y;
}

// exp(x) = 2^n exp(r), |r| <= log(2) / 2, n rounded by adding 1.5 * 2^23; 1.2e-7. Below -104 it is 0, above 89 infinite.
static inline float dnnopt_exp_float(float x) {
  const float c = x > 89.0f ? 89.0f : x < -104.0f ? -104.0f : x;
  const float shifted = fma(c, 1.442695041f, 12582912.0f);
  const float n = shifted - 12582912.0f;
  const float r = fma(n, -1.428606820e-06f, fma(n, -6.931457520e-01f, c));
  const float p = fma(r, fma(r, fma(r, fma(r, 1.381166078e-03f, 8.370135279e-03f), 4.166852833e-02f), 1.666650871e-01f), 4.999999263e-01f);
  const int e = as_int(shifted) - 0x4b400000;
  const int low = e >> 1;
  return fma(r * r, p, r + 1.0f) * as_float((low + 127) << 23) * as_float((e - low + 127) << 23);
}

// log(x) = e log(2) + log(1 + t), 1 + t from sqrt(1/2) to sqrt(2); 1.5e-7. -infinity of 0, NaN below.
static inline float dnnopt_log_float(float x) {
  const int tiny = x < 1.17549435e-38f;
  const int bits = as_int(tiny ? x * 8388608.0f : x);
  const int e = (bits - 0x3f3504f3) >> 23;
  const float t = as_float(bits - (e << 23)) - 1.0f;
  const float p = fma(t, fma(t, fma(t, fma(t, fma(t, fma(t, fma(t, -7.634434613e-02f, 1.276156207e-01f), -1.316019884e-01f), 1.420176114e-01f), -1.662335598e-01f), 2.000122671e-01f), -2.500082107e-01f), 3.333333171e-01f);
  const float n = (float)(tiny ? e - 23 : e);
  const float y = fma(n, 6.931471806e-01f, fma(t * t, fma(t, p, -0.5f), t));
  return x > 3.402823466e+38f || x != x ? x : x > 0.0f ? y : x == 0.0f ? -INFINITY : NAN;
}

// What 1 + x rounded away is made up for by the quotient.
static inline float dnnopt_log1p_float(float x) {
  const float u = 1.0f + x;
  const float rest = u - 1.0f;
  return rest == 0.0f || u > 3.402823466e+38f ? x : dnnopt_log_float(u) * (x / rest);
}

// For float and double alike.
#define dnnopt_erf(x) (sizeof(x) == 4 ? dnnopt_erf_float(x) : erf(x))
#define dnnopt_tanh(x) (sizeof(x) == 4 ? dnnopt_tanh_float(x) : tanh(x))
#define dnnopt_exp(x) (sizeof(x) == 4 ? dnnopt_exp_float(x) : exp(x))
#define dnnopt_log1p(x) (sizeof(x) == 4 ? dnnopt_log1p_float(x) : log1p(x))
#define dnnopt_log(x) (sizeof(x) == 4 ? dnnopt_log_float(x) : log(x))

// The largest integer that is not above x, which is within an int's range. Without the branches that some libraries' floor
// has, so that loops over it vectorize.
#define dnnopt_floor_to_int(x) ((int)(x) - ((x) < (int)(x)))
#define dnnopt_ceil_to_int(x) ((int)(x) + ((x) > (int)(x)))

// min(max(x, low), high), so that `high` counts where the limits cross; NaN stays NaN.
#define dnnopt_clip(x, low, high) (((x) < (low) ? (low) : (x)) > (high) ? (high) : (x) < (low) ? (low) : (x))
#define dnnopt_softplus(x) (((x) > 0 ? (x) : 0) + dnnopt_log1p(dnnopt_exp((x) > 0 ? -(x) : (x))))
// fmod is exact; only its sign may have to change to the divisor's.
#define dnnopt_floor_modulo(x, y) \
  (fmod(x, y) == 0 ? ((y) < 0 ? -0.0f : 0.0f) : (fmod(x, y) < 0) != ((y) < 0) ? fmod(x, y) + (y) : fmod(x, y))

// Truncated; 0 for a zero divisor. Of the most negative number and -1 nothing traps.
#define dnnopt_integer_divide(x, y) ((y) == 0 ? 0 : (y) + 1 == 0 && (x) < 0 ? -(x) : (x) / (y))
#define dnnopt_integer_remainder(x, y) ((y) == 0 || ((y) + 1 == 0 && (x) < 0) ? 0 : (x) % (y))
// With the sign of the divisor, or of the dividend where `truncated`.
#define dnnopt_integer_modulo(x, y, truncated) \
  (dnnopt_integer_remainder(x, y) != 0 && !(truncated) && ((x) < 0) != ((y) < 0) ? dnnopt_integer_remainder(x, y) + (y) \
                                                                                : dnnopt_integer_remainder(x, y))

static inline long dnnopt_integer_power(long x, long y) {
  if (y < 0) return x == 1 ? 1 : x == -1 ? (y % 2 == 0 ? 1 : -1) : 0;
  ulong result = 1;
  ulong factor = (ulong)x;
  for (; y > 0; y >>= 1) {
    if (y & 1) result *= factor;
    factor *= factor;
  }
  return (long)result;
}

#ifdef cl_khr_fp64
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
typedef double dnnopt_widest;
#else
typedef float dnnopt_widest;
#endif

// x to the power y as the nearest double is cut to 64 bits. In integers where y is one, for pow may end just below the
// result; other powers that are integers but for pow's rounding are those integers.
static inline long dnnopt_power_cut(long x, dnnopt_widest y) {
  if (y < 0 || y != floor(y)) {
    dnnopt_widest power = pow((dnnopt_widest)x, y);
    if (fabs(power - rint(power)) <= fabs(power) * (sizeof(y) == 8 ? 0x1p-46f : 0x1p-19f)) power = rint(power);
    return dnnopt_to_long(power);
  }
  const bool negative = x < 0 && fmod(y, (dnnopt_widest)2) == 1;
  const ulong base = x < 0 ? 0 - (ulong)x : (ulong)x;
  if (base <= 1) return base == 1 || y == 0 ? (negative ? -1 : 1) : 0;
  if (y >= 64) return LONG_MIN;
  ulong power = 1;
  for (int i = 0; i < (int)y; ++i) {
    if (mul_hi(power, base) != 0) return LONG_MIN;
    power *= base;
  }
  if (power >> 53 != 0) {
    const int rest = 11 - (int)clz(power);
    power = (power >> rest) + ((power >> (rest - 1) & 1) != 0 &&
                               ((power & ((1UL << (rest - 1)) - 1)) != 0 || (power >> rest & 1) != 0));
    if (power >> (63 - rest) != 0) return LONG_MIN;
    power <<= rest;
  }
  return negative ? -(long)power : (long)power;
}
#define dnnopt_cut_to_int(x) ((x) >= -2147483648L && (x) <= 2147483647L ? (x) : -2147483648L)
#ifdef __cplusplus
)CLC"
#endif
