#ifdef __cplusplus
R"CLC(
#endif
// Provider of matrix steps of bytes: `mma.sync` of the PTX ISA, of NVIDIA's devices from compute capability 8.0 on. A step is
// two instructions of m16n8k32, whose shares lie as those of 16 words of two halves do.

#ifndef dnnopt_element
// Stand-alone.
#include "elements_bytes.cl"
#include "step_ptx.cl"
#endif
#define DNNOPT_STEP_TYPE_0 "s8"
#define DNNOPT_STEP_TYPE_1 "u8"
#define DNNOPT_STEP_TYPE_OF(natural) DNNOPT_STEP_TYPE_##natural
#define DNNOPT_STEP_TYPE(natural) DNNOPT_STEP_TYPE_OF(natural)
#define DNNOPT_STEP_HALF(sum, first, a, b0, b1)                                                                         \
  __asm__("mma.sync.aligned.m16n8k32.row.col.s32." DNNOPT_STEP_TYPE(DNNOPT_A_NATURAL) "." DNNOPT_STEP_TYPE(DNNOPT_B_NATURAL) \
          ".s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"                                        \
          : "+r"((sum)[(first)]), "+r"((sum)[(first) + 1]), "+r"((sum)[(first) + 2]), "+r"((sum)[(first) + 3])          \
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
