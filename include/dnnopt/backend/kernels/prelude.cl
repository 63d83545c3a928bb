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

static inline float dnnopt_load_bfloat16(ushort bits) { return as_float((uint)bits << 16); }

// Rounds to nearest even; NaN stays a quiet NaN.
static inline ushort dnnopt_store_bfloat16(float value) {
  uint bits = as_uint(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return (ushort)((bits >> 16) | 0x0040u);
  return (ushort)((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

// min(max(x, low), high), so that `high` counts where the limits cross; NaN stays NaN.
#define dnnopt_clip(x, low, high) (((x) < (low) ? (low) : (x)) > (high) ? (high) : (x) < (low) ? (low) : (x))
#define dnnopt_softplus(x) ((x) > 0 ? (x) + log1p(exp(-(x))) : log1p(exp(x)))
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
#ifdef __cplusplus
)CLC"
#endif
