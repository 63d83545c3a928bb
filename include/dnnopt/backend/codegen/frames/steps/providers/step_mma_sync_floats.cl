#ifdef __cplusplus
R"CLC(
#endif
// Provider of matrix steps of floats: `mma.sync` of the PTX ISA in tf32, which has the range of float and 11 bits, of
// NVIDIA's devices from compute capability 8.0 on. A float is the sum of its upper 11 bits and of what they leave, of which
// tf32 holds the upper 11 of 13; three of the four products of the parts are summed, for the fourth is below what
// float tells apart (NVIDIA's CUTLASS, "3xTF32"). A step of 8 inner elements is two columns of m16n8k8. Units cut what they
// add, so the sums of each tile begin at zero and are added in float, which rounds to nearest (Ootomo and Yokota,
// "Recovering single precision accuracy from Tensor Cores", 2022). Where DNNOPT_STEP_PRODUCTS is 1, operands are rounded to
// tf32.

#ifndef dnnopt_element
// Stand-alone.
#include "elements_floats.cl"
#include "step_ptx.cl"
#endif
#ifndef DNNOPT_STEP_PRODUCTS
#define DNNOPT_STEP_PRODUCTS 3
#endif
// Of an infinite operand the lower part is none.
#define DNNOPT_STEP_WANTS_FINITE 1
// Work-items with few steps wait for the sums of one before the next: they keep those of the lower parts by themselves.
#define DNNOPT_STEP_CUTS(rows, columns) ((rows) * (columns) <= 2 ? 2 : 1)

static inline uint dnnopt_step_word(const uint tiles, const int base, const int line, const int along, const int chunks) {
  uint v;
  const uint address = tiles + 4 * (uint)((base + dnnopt_chunk_across(line, along / 4, chunks)) * 4 + along % 4);
  __asm__ volatile("ld.shared.b32 %0, [%1];" : "=r"(v) : "r"(address) : "memory");
  return v;
}
static inline uint4 dnnopt_step_a_across(const dnnopt_tiles tiles, const int base, const int line, const int chunk, const int chunks, const int lane) {
  const int r = chunk * 4 + lane / 4;
  const int c = line + lane % 4;
  return (uint4)(dnnopt_step_word(tiles, base, c, r, chunks), dnnopt_step_word(tiles, base, c, r + 8, chunks),
                 dnnopt_step_word(tiles, base, c + 4, r, chunks), dnnopt_step_word(tiles, base, c + 4, r + 8, chunks));
}
static inline uint4 dnnopt_step_b_across(const dnnopt_tiles tiles, const int base, const int line, const int chunk, const int chunks, const int lane) {
  const int r = chunk * 4 + lane / 4;
  const int c = line + lane % 4;
  return (uint4)(dnnopt_step_word(tiles, base, c, r, chunks), dnnopt_step_word(tiles, base, c + 4, r, chunks),
                 dnnopt_step_word(tiles, base, c, r + 8, chunks), dnnopt_step_word(tiles, base, c + 4, r + 8, chunks));
}

#define DNNOPT_STEP_PART(part, a, b0, b1)                                                                                \
  __asm__("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};" \
          : "+f"((part)[0]), "+f"((part)[1]), "+f"((part)[2]), "+f"((part)[3])                                          \
          : "r"((a).x), "r"((a).y), "r"((a).z), "r"((a).w), "r"(b0), "r"(b1));
// One product of the parts of all steps: those that follow each other wait for no other's sums.
#define DNNOPT_STEP_PARTS(sum, from_a, from_b, rows, columns)               \
  _Pragma("unroll") for (int i = 0; i < (rows); ++i) {                      \
    _Pragma("unroll") for (int j = 0; j < (columns); ++j) {                 \
      DNNOPT_STEP_PART(sum[i][j], from_a[i], from_b[j].x, from_b[j].y)      \
      DNNOPT_STEP_PART(sum[i][j] + 4, from_a[i], from_b[j].z, from_b[j].w)  \
    }                                                                       \
  }
// Units ignore what lies below a word's upper 19 bits.
#define DNNOPT_STEP_LOWER(x) as_uint4(as_float4(x) - as_float4((x) & 0xffffe000u))
#if DNNOPT_STEP_PRODUCTS == 1
// Half of the last bit that is left is added, but not to infinity and NaN, whose bits that would carry out of.
static inline uint4 dnnopt_step_rounded(const uint4 x) { return select(x + 0x1000u, x, (x & 0x7f800000u) == 0x7f800000u); }
#define DNNOPT_MULTIPLY_STEPS(sum, a, b, rows, columns)                            \
  {                                                                                \
    uint4 rounded_a[rows];                                                         \
    uint4 rounded_b[columns];                                                      \
    _Pragma("unroll") for (int i = 0; i < (rows); ++i) rounded_a[i] = dnnopt_step_rounded(a[i]); \
    _Pragma("unroll") for (int j = 0; j < (columns); ++j) rounded_b[j] = dnnopt_step_rounded(b[j]); \
    DNNOPT_STEP_PARTS(sum[0], rounded_a, rounded_b, rows, columns)                 \
  }
#else
#define DNNOPT_MULTIPLY_STEPS(sum, a, b, rows, columns)                            \
  {                                                                                \
    uint4 lower_a[rows];                                                           \
    uint4 lower_b[columns];                                                        \
    _Pragma("unroll") for (int i = 0; i < (rows); ++i) lower_a[i] = DNNOPT_STEP_LOWER(a[i]); \
    _Pragma("unroll") for (int j = 0; j < (columns); ++j) lower_b[j] = DNNOPT_STEP_LOWER(b[j]); \
    DNNOPT_STEP_PARTS(sum[DNNOPT_STEP_CUTS(rows, columns) - 1], lower_a, b, rows, columns) \
    DNNOPT_STEP_PARTS(sum[0], a, b, rows, columns)                                 \
    DNNOPT_STEP_PARTS(sum[DNNOPT_STEP_CUTS(rows, columns) - 1], a, lower_b, rows, columns) \
  }
#endif
#ifdef __cplusplus
)CLC"
#endif
