#ifdef __cplusplus
R"CLC(
#endif
// Product of few rows with a constant matrix on devices whose work-items run in step: what decoders do for each token.
// The matrix is read once, from memory to registers, so that its bytes are what the time is spent on.
//
//   result(m, n) = sum over k of a(m, k) * b(k, n);   dnnopt_store(z, m, n, result)
//
// The matrix lies at DNNOPT_B in words of 32 bits, [panel][word][column], DNNOPT_WORDS for each column, and a panel has
// 4 * DNNOPT_LANES columns. An element takes DNNOPT_BITS bits of a word: reals of 16 or 32, or codes of 2, 4 or 8, of
// which an element is (code - zero(k, n)) * scale(k, n). A work-group takes the columns of a panel: each work-item four
// neighbours of them, and DNNOPT_UNIT inner elements at a time, one of DNNOPT_ITEMS / DNNOPT_LANES shares of the sum,
// which are added up in local memory. Rows of a pass through local memory, DNNOPT_CHUNK inner elements at a time: all, or
// a multiple of what the shares take at once.
//
// Hooks: dnnopt_load_a(z, m, k), dnnopt_store(z, m, n, value), of codes dnnopt_scale(k, n), and with DNNOPT_ZEROS
// dnnopt_zero(k, n); DNNOPT_MIDDLE is what was added to codes and is taken from them.

#ifndef DNNOPT_PARAMETERS
// Stand-alone: codes of four bits with a scale for each column.
#define DNNOPT_PARAMETERS __global const float* b0, __global const uint* b1, __global const float* b2, __global float* b3, const int p0, const int p1, const int p2
#define DNNOPT_KERNEL_PARAMETERS DNNOPT_PARAMETERS
#define DNNOPT_ARGUMENTS b0, b1, b2, b3, p0, p1, p2
#define DNNOPT_M p0
#define DNNOPT_N p1
#define DNNOPT_K p2
#define DNNOPT_B b1
#ifndef DNNOPT_BITS
#define DNNOPT_BITS 4
#endif
#define DNNOPT_MIDDLE 8
#define DNNOPT_WORDS ((p2 + 31) / 32 * 4)
static inline float dnnopt_load_a(DNNOPT_PARAMETERS, const int z, const int m, const int k) { return b0[m * p2 + k]; }
static inline float dnnopt_scale(DNNOPT_PARAMETERS, const int k, const int n) { return b2[n]; }
static inline void dnnopt_store(DNNOPT_PARAMETERS, const int z, const int m, const int n, float value) { b3[m * p1 + n] = value; }
#endif
#ifndef DNNOPT_ROWS
#define DNNOPT_ROWS 1
#endif
#ifndef DNNOPT_LANES
#define DNNOPT_LANES 8
#endif
#ifndef DNNOPT_ITEMS
#define DNNOPT_ITEMS 256
#endif
#ifndef DNNOPT_UNIT
#define DNNOPT_UNIT 32
#endif
#ifndef DNNOPT_CHUNK
#define DNNOPT_CHUNK 1024
#endif
#ifndef DNNOPT_ROWS_AT_ONCE
#define DNNOPT_ROWS_AT_ONCE 1
#endif
#ifndef DNNOPT_ZEROS
#define DNNOPT_ZEROS 0
#endif
// Whether elements are scaled rather than sums of each unit, which costs less where there are many rows, and what the
// type of elements rounds them to.
#ifndef DNNOPT_SCALE_FIRST
#define DNNOPT_SCALE_FIRST 0
#endif
#ifndef DNNOPT_ROUND4
#define DNNOPT_ROUND4(x) (x)
#endif

#define DNNOPT_SHARES (DNNOPT_ITEMS / DNNOPT_LANES)
#define DNNOPT_PANEL (4 * DNNOPT_LANES)
#define DNNOPT_OF_WORD (32 / DNNOPT_BITS)
#define DNNOPT_UNIT_WORDS (DNNOPT_UNIT / DNNOPT_OF_WORD)

// Inner element t of a unit in four columns. Codes are the upper bits of the fractions of floats from 1 to 2, which takes
// no conversion; `base` is such a float for the zero point.
#if DNNOPT_BITS == 32
#define DNNOPT_ELEMENTS(words, t) as_float4((words)[t])
#elif DNNOPT_BITS == 16
static inline float dnnopt_real(const ushort bits) { return vload_half(0, (const __private half*)&bits); }
#define DNNOPT_HALF(word, t) dnnopt_real((ushort)((word) >> ((t) % 2 * 16)))
#define DNNOPT_ELEMENTS(words, t) (float4)(DNNOPT_HALF((words)[(t) / 2].x, t), DNNOPT_HALF((words)[(t) / 2].y, t), DNNOPT_HALF((words)[(t) / 2].z, t), DNNOPT_HALF((words)[(t) / 2].w, t))
#else
#define DNNOPT_FRACTION(word, t) ((word) >> ((t) % DNNOPT_OF_WORD * DNNOPT_BITS) & ((1u << DNNOPT_BITS) - 1u)) << (23 - DNNOPT_BITS)
#define DNNOPT_DIFFERENCES(words, t) (as_float4(DNNOPT_FRACTION((words)[(t) / DNNOPT_OF_WORD], t) | 0x3f800000u) - base)
#if DNNOPT_SCALE_FIRST
#define DNNOPT_ELEMENTS(words, t) DNNOPT_ROUND4(DNNOPT_DIFFERENCES(words, t) * factor)
#else
#define DNNOPT_ELEMENTS(words, t) DNNOPT_DIFFERENCES(words, t)
#endif
#endif

// Scales and zero points of the codes that a work-item multiplies next, and their words.
#if DNNOPT_BITS < 16
#define DNNOPT_FETCH(k)                                                                                                 \
  do {                                                                                                                  \
    _Pragma("unroll") for (int w = 0; w < DNNOPT_UNIT_WORDS; ++w) words[w] = b[((k) / DNNOPT_OF_WORD + w) * DNNOPT_LANES]; \
    scale = (float4)(dnnopt_scale(DNNOPT_ARGUMENTS, k, n0), dnnopt_scale(DNNOPT_ARGUMENTS, k, n1), dnnopt_scale(DNNOPT_ARGUMENTS, k, n2), dnnopt_scale(DNNOPT_ARGUMENTS, k, n3)); \
    DNNOPT_FETCH_ZEROS(k);                                                                                              \
  } while (0)
#if DNNOPT_ZEROS
#define DNNOPT_FETCH_ZEROS(k) zero = (float4)(dnnopt_zero(DNNOPT_ARGUMENTS, k, n0), dnnopt_zero(DNNOPT_ARGUMENTS, k, n1), dnnopt_zero(DNNOPT_ARGUMENTS, k, n2), dnnopt_zero(DNNOPT_ARGUMENTS, k, n3))
#else
#define DNNOPT_FETCH_ZEROS(k)
#endif
#else
#define DNNOPT_FETCH(k) \
  _Pragma("unroll") for (int w = 0; w < DNNOPT_UNIT_WORDS; ++w) words[w] = b[((k) / DNNOPT_OF_WORD + w) * DNNOPT_LANES]
#endif

__kernel __attribute__((reqd_work_group_size(DNNOPT_ITEMS, 1, 1))) void dnnopt_kernel(DNNOPT_KERNEL_PARAMETERS) {
  __local float4 held[DNNOPT_ROWS * DNNOPT_CHUNK / 4 > DNNOPT_ROWS_AT_ONCE * DNNOPT_ITEMS ? DNNOPT_ROWS * DNNOPT_CHUNK / 4 : DNNOPT_ROWS_AT_ONCE * DNNOPT_ITEMS];
  __local float* rows = (__local float*)held;
  const int item = (int)get_local_id(0);
  const int lane = item % DNNOPT_LANES;
  const int share = item / DNNOPT_LANES;
  const int n_begin = (int)get_group_id(0) * DNNOPT_PANEL;
  const int all_rows = DNNOPT_M;
  const int m_begin = all_rows <= DNNOPT_ROWS ? 0 : (int)get_group_id(1) * DNNOPT_ROWS;
  const int inner = DNNOPT_K;
  __global const uint4* b = (__global const uint4*)DNNOPT_B + (size_t)get_group_id(0) * (DNNOPT_WORDS) * DNNOPT_LANES + lane;
  float4 total[DNNOPT_ROWS];
  _Pragma("unroll") for (int r = 0; r < DNNOPT_ROWS; ++r) total[r] = (float4)(0.0f);
#if DNNOPT_BITS < 16
  const int last = (int)(DNNOPT_N) - 1;
  const int n0 = min(n_begin + lane * 4, last), n1 = min(n_begin + lane * 4 + 1, last), n2 = min(n_begin + lane * 4 + 2, last), n3 = min(n_begin + lane * 4 + 3, last);
  const float one_code = 1.0f / (float)(1u << DNNOPT_BITS);
  float4 scale = (float4)(0.0f);
  float4 zero = (float4)(0.0f);
#endif
  uint4 words[DNNOPT_UNIT_WORDS];
  // What is multiplied next is fetched while rows and what came before are on their way.
  int k = share * DNNOPT_UNIT;
  if (k < inner) DNNOPT_FETCH(k);
  for (int k_begin = 0; k_begin < inner; k_begin += DNNOPT_CHUNK) {
    if (k_begin > 0) barrier(CLK_LOCAL_MEM_FENCE);
    _Pragma("unroll 8") for (int i = item; i < DNNOPT_ROWS * DNNOPT_CHUNK; i += DNNOPT_ITEMS) {
      const int m = m_begin + i / DNNOPT_CHUNK;
      const int at = k_begin + i % DNNOPT_CHUNK;
      rows[i] = m < all_rows && at < inner ? dnnopt_load_a(DNNOPT_ARGUMENTS, 0, m, at) : 0.0f;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    const int end = min(k_begin + DNNOPT_CHUNK, inner);
    while (k < end) {
      uint4 own[DNNOPT_UNIT_WORDS];
      _Pragma("unroll") for (int w = 0; w < DNNOPT_UNIT_WORDS; ++w) own[w] = words[w];
      __local const float4* fours = held + (k - k_begin) / 4;
#if DNNOPT_BITS < 16
      const float4 factor = scale * (float)(1u << DNNOPT_BITS);
      const float4 base = (zero + (float)DNNOPT_MIDDLE) * one_code + 1.0f;
#endif
#if DNNOPT_BITS < 16 && !DNNOPT_SCALE_FIRST
      float4 sum[DNNOPT_ROWS];
      _Pragma("unroll") for (int r = 0; r < DNNOPT_ROWS; ++r) sum[r] = (float4)(0.0f);
#define DNNOPT_SUM sum
#else
#define DNNOPT_SUM total
#endif
      k += DNNOPT_SHARES * DNNOPT_UNIT;
      if (k < inner) DNNOPT_FETCH(k);
      _Pragma("unroll") for (int four = 0; four < DNNOPT_UNIT / 4; ++four) {
        const float4 e0 = DNNOPT_ELEMENTS(own, four * 4), e1 = DNNOPT_ELEMENTS(own, four * 4 + 1), e2 = DNNOPT_ELEMENTS(own, four * 4 + 2), e3 = DNNOPT_ELEMENTS(own, four * 4 + 3);
        _Pragma("unroll") for (int r = 0; r < DNNOPT_ROWS; ++r) {
          const float4 a = fours[r * (DNNOPT_CHUNK / 4) + four];
          DNNOPT_SUM[r] = fma((float4)(a.x), e0, DNNOPT_SUM[r]);
          DNNOPT_SUM[r] = fma((float4)(a.y), e1, DNNOPT_SUM[r]);
          DNNOPT_SUM[r] = fma((float4)(a.z), e2, DNNOPT_SUM[r]);
          DNNOPT_SUM[r] = fma((float4)(a.w), e3, DNNOPT_SUM[r]);
        }
      }
#if DNNOPT_BITS < 16 && !DNNOPT_SCALE_FIRST
      _Pragma("unroll") for (int r = 0; r < DNNOPT_ROWS; ++r) total[r] = fma(sum[r], factor, total[r]);
#endif
    }
  }
  // The shares of as many rows as local memory holds meet at once.
  _Pragma("unroll") for (int first = 0; first < DNNOPT_ROWS; first += DNNOPT_ROWS_AT_ONCE) {
    barrier(CLK_LOCAL_MEM_FENCE);
    _Pragma("unroll") for (int r = 0; r < DNNOPT_ROWS_AT_ONCE; ++r) held[r * DNNOPT_ITEMS + item] = total[first + r];
    for (int apart = DNNOPT_SHARES / 2; apart > 0; apart /= 2) {
      barrier(CLK_LOCAL_MEM_FENCE);
      if (share < apart) {
        _Pragma("unroll") for (int r = 0; r < DNNOPT_ROWS_AT_ONCE; ++r) held[r * DNNOPT_ITEMS + item] += held[r * DNNOPT_ITEMS + item + apart * DNNOPT_LANES];
      }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int i = item; i < DNNOPT_ROWS_AT_ONCE * DNNOPT_PANEL; i += DNNOPT_ITEMS) {
      const int m = m_begin + first + i / DNNOPT_PANEL;
      const int n = n_begin + i % DNNOPT_PANEL;
      if (n < (int)(DNNOPT_N) && m < all_rows) dnnopt_store(DNNOPT_ARGUMENTS, 0, m, n, rows[i / DNNOPT_PANEL * (4 * DNNOPT_ITEMS) + i % DNNOPT_PANEL]);
    }
  }
}
#ifdef __cplusplus
)CLC"
#endif
