#ifdef __cplusplus
R"CLC(
#endif
// Elements of matrix steps are halves. Where lines are inner elements, chunks are read whole as well, and exchanged alike.

#define dnnopt_element half
#define DNNOPT_CHUNK_ELEMENTS 8
#define dnnopt_chunk_across dnnopt_chunk
// The bits of a half, in the lower half of a float, that is a whole number below 1024: none is rounded.
static inline float dnnopt_bits_of_code(const float code) {
  const uint bits = as_uint(code);
  return as_float(code == 0.0f ? 0u : (bits >> 16 & 0x8000u) | ((bits & 0x7fffffffu) >> 13) - (112u << 10));
}
#ifdef __cplusplus
)CLC"
#endif
