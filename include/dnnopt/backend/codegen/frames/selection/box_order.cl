#ifdef __cplusplus
R"CLC(
#endif
// The order in which non-maximum suppression looks at boxes.

// A number that is greater where a score is; NaN comes last, and zeros are equal.
static inline uint dnnopt_order_key(const float score) {
  if (score != score) return 0;
  const uint bits = as_uint(score == 0.0f ? 0.0f : score);
  return (bits & 0x80000000u) != 0 ? ~bits : bits | 0x80000000u;
}
#ifdef __cplusplus
)CLC"
#endif
