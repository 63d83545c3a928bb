#ifdef __cplusplus
R"CLC(
#endif
// Dequantizes panels of a constant operand of a product, for matrix_panels.cl: dnnopt_pack_b takes columns of codes, as
// words, to floats in local memory. A code is DNNOPT_CODE_BITS bits of a word; the words of the operand are
// [panel][word][column], DNNOPT_CODE_WORDS of them for each column.
//
//   element(k, n) = (code(k, n) - zero(k, n)) * scale(k, n)
//
// Scales and zero points are those of a block of DNNOPT_CODE_BLOCK inner elements. Hooks: dnnopt_scale(k, n), and with
// DNNOPT_CODE_ZEROS dnnopt_zero(k, n); DNNOPT_CODE_MIDDLE is what was added to codes and is taken from them.

#ifndef DNNOPT_PARAMETERS
// Stand-alone: codes of four bits with a scale for each column.
#define DNNOPT_PARAMETERS __global const uint* b0, __global const float* b1, const int p0, const int p1
#define DNNOPT_KERNEL_PARAMETERS DNNOPT_PARAMETERS
#define DNNOPT_ARGUMENTS b0, b1, p0, p1
#define DNNOPT_N p0
#define DNNOPT_VECTOR 16
#define DNNOPT_VECTORS 2
#define DNNOPT_CODES b0
#define DNNOPT_CODE_BITS 4
#define DNNOPT_CODE_WORDS p1
#define DNNOPT_CODE_BLOCK 32
#define DNNOPT_CODE_MIDDLE 8
static inline float dnnopt_scale(DNNOPT_PARAMETERS, const int k, const int n) { return b1[n]; }
#endif
#ifndef DNNOPT_CODE_ZEROS
#define DNNOPT_CODE_ZEROS 0
#endif

#define DNNOPT_CODE_COLUMNS (DNNOPT_VECTOR * DNNOPT_VECTORS)
#define DNNOPT_CODES_OF_WORD (32 / DNNOPT_CODE_BITS)

// Columns n_begin .. n_end - 1, the first of a panel, of inner elements k_begin .. k_begin + count - 1, k outermost.
static inline void dnnopt_pack_b(DNNOPT_PARAMETERS, __local float* packed, const int z, const int n_begin, const int n_end, const int k_begin, const int count) {
  const int k_end = k_begin + count;
  for (int n = n_begin; n < n_end; n += DNNOPT_CODE_COLUMNS) {
    __global const uint* words = (__global const uint*)DNNOPT_CODES + (size_t)(n / DNNOPT_CODE_COLUMNS) * (DNNOPT_CODE_WORDS) * DNNOPT_CODE_COLUMNS;
    __local float* to = packed + (n - n_begin) / DNNOPT_CODE_COLUMNS * (DNNOPT_CODE_COLUMNS * count);
    float scale[DNNOPT_CODE_COLUMNS];
    float zero[DNNOPT_CODE_COLUMNS];
    const int there = min(DNNOPT_CODE_COLUMNS, (int)(DNNOPT_N) - n);
    for (int j = 0; j < DNNOPT_CODE_COLUMNS; ++j) scale[j] = 0.0f;
    for (int j = 0; j < DNNOPT_CODE_COLUMNS; ++j) zero[j] = (float)DNNOPT_CODE_MIDDLE;
    for (int k = k_begin; k < k_end;) {
      const int end = min(k - k % DNNOPT_CODE_BLOCK + DNNOPT_CODE_BLOCK, k_end);
      for (int j = 0; j < there; ++j) scale[j] = dnnopt_scale(DNNOPT_ARGUMENTS, k, n + j);
#if DNNOPT_CODE_ZEROS
      for (int j = 0; j < there; ++j) zero[j] = dnnopt_zero(DNNOPT_ARGUMENTS, k, n + j) + (float)DNNOPT_CODE_MIDDLE;
#endif
      for (; k < end; ++k) {
        __global const uint* row = words + k / DNNOPT_CODES_OF_WORD * DNNOPT_CODE_COLUMNS;
        const int shift = k % DNNOPT_CODES_OF_WORD * DNNOPT_CODE_BITS;
        for (int j = 0; j < DNNOPT_CODE_COLUMNS; ++j) to[j] = ((float)(int)(row[j] >> shift & ((1u << DNNOPT_CODE_BITS) - 1u)) - zero[j]) * scale[j];
        to += DNNOPT_CODE_COLUMNS;
      }
    }
  }
}
#ifdef __cplusplus
)CLC"
#endif
