#ifdef __cplusplus
R"CLC(
#endif
// Provider of matrix steps of halves: `mma.sync` of the PTX ISA, of NVIDIA's devices from compute capability 8.0 on. A step
// is two instructions of m16n8k16.

#ifndef dnnopt_tiles
// Stand-alone.
#include "step_ptx.cl"
#endif
static inline uint4 dnnopt_step_load_across(const uint address) {
  uint4 v;
  __asm__ volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];" : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "r"(address) : "memory");
  return v;
}
static inline uint4 dnnopt_step_a_across(const dnnopt_tiles tiles, const int base, const int line, const int chunk, const int chunks, const int lane) {
  return dnnopt_step_load_across(tiles + 16 * (base + line * chunks + dnnopt_chunk(lane / 16 * 8 + lane % 8, chunk + lane / 8 % 2, chunks)));
}
static inline uint4 dnnopt_step_b_across(const dnnopt_tiles tiles, const int base, const int line, const int chunk, const int chunks, const int lane) {
  return dnnopt_step_load_across(tiles + 16 * (base + line * chunks + dnnopt_chunk(lane % 16, chunk + lane / 16, chunks)));
}

#define DNNOPT_STEP_HALF(sum, first, a, b0, b1)                                                                         \
  __asm__("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};" \
          : "+f"((sum)[(first)]), "+f"((sum)[(first) + 1]), "+f"((sum)[(first) + 2]), "+f"((sum)[(first) + 3])          \
          : "r"((a).x), "r"((a).y), "r"((a).z), "r"((a).w), "r"(b0), "r"(b1));
#define DNNOPT_MULTIPLY_STEPS(sum, a, b, rows, columns)                   \
  _Pragma("unroll") for (int i = 0; i < (rows); ++i) {                    \
    _Pragma("unroll") for (int j = 0; j < (columns); ++j) {               \
      DNNOPT_STEP_HALF(sum[i][j], 0, a[i], b[j].x, b[j].y)                \
      DNNOPT_STEP_HALF(sum[i][j], 4, a[i], b[j].z, b[j].w)                \
    }                                                                     \
  }
#ifdef __cplusplus
)CLC"
#endif
