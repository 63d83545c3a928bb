#ifdef __cplusplus
R"CLC(
#endif
// What every kernel may call: floored integer division and conversions of storage types.

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
#ifdef __cplusplus
)CLC"
#endif
