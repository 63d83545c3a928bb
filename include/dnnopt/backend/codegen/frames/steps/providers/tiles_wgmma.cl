#ifdef __cplusplus
R"CLC(
#endif
// Provider of matrix steps that read whole tiles: `wgmma.mma_async` of the PTX ISA, of NVIDIA's devices of compute
// capability 9.0. Four waves multiply 64 rows by up to 128 columns at once, both operands from local memory, where lines of
// 128, 64 or 32 bytes lie exchanged as dnnopt_chunk exchanges them. The text of step_mma_sync.cl stands before this one:
// copies are its.
//
// Compilers of OpenCL C name a target that lacks these instructions. So they stand between /*+ and +*/, and the build's
// option -DDNNOPT_REVEALED_FOR=sm_90a has them revealed (backend/opencl/revealed_text.hpp).

static inline void dnnopt_show_tiles(void) { __asm__ volatile("fence.proxy.async.shared::cta;" : : : "memory"); }
static inline void dnnopt_begin_tile_steps(void) { __asm__ volatile("/*+ wgmma.fence.sync.aligned; +*/" : : : "memory"); }
static inline void dnnopt_end_tile_steps(void) { __asm__ volatile("/*+ wgmma.commit_group.sync.aligned; +*/" : : : "memory"); }
static inline void dnnopt_await_tile_steps(void) { __asm__ volatile("/*+ wgmma.wait_group.sync.aligned 0; +*/" : : : "memory"); }

// What an instruction is told of an operand: where it begins, how far panels and groups of eight lines lie apart (in
// chunks), and how lines of `chunks` (2, 4 or 8) are exchanged.
static inline ulong dnnopt_tile_operand(const uint address, const int chunks, const int panel) {
  return (ulong)((address & 0x3ffffu) >> 4) | (ulong)panel << 16 | (ulong)(chunks * 8) << 32 | (ulong)(chunks == 8 ? 1 : chunks == 4 ? 2 : 3) << 62;
}

#define DNNOPT_TILE_SUMS(t) "+f"((t)[0]), "+f"((t)[1]), "+f"((t)[2]), "+f"((t)[3]), "+f"((t)[4]), "+f"((t)[5]), "+f"((t)[6]), "+f"((t)[7])
#define DNNOPT_TILE_STEP_1(sum, a, b)                                                                                 \
  __asm__ volatile("{ .reg .pred p; setp.ne.b32 p, %10, 0; /*+ wgmma.mma_async.sync.aligned.m64n16k16.f32.f16.f16 {"  \
                   "%0, %1, %2, %3, %4, %5, %6, %7"                                                                   \
                   "}, %8, %9, p, 1, 1, %11, %12; +*/ }"                                                              \
                   : DNNOPT_TILE_SUMS((sum)[0])                                                                       \
                   : "l"(a), "l"(b), "r"(1), "n"(1 - DNNOPT_A_INNER_FIRST), "n"(1 - DNNOPT_B_INNER_FIRST));
#define DNNOPT_TILE_STEP_2(sum, a, b)                                                                                 \
  __asm__ volatile("{ .reg .pred p; setp.ne.b32 p, %18, 0; /*+ wgmma.mma_async.sync.aligned.m64n32k16.f32.f16.f16 {"  \
                   "%0, %1, %2, %3, %4, %5, %6, %7, "                                                                 \
                   "%8, %9, %10, %11, %12, %13, %14, %15"                                                             \
                   "}, %16, %17, p, 1, 1, %19, %20; +*/ }"                                                            \
                   : DNNOPT_TILE_SUMS((sum)[0]), DNNOPT_TILE_SUMS((sum)[1])                                           \
                   : "l"(a), "l"(b), "r"(1), "n"(1 - DNNOPT_A_INNER_FIRST), "n"(1 - DNNOPT_B_INNER_FIRST));
#define DNNOPT_TILE_STEP_4(sum, a, b)                                                                                  \
  __asm__ volatile("{ .reg .pred p; setp.ne.b32 p, %34, 0; /*+ wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 {"   \
                   "%0, %1, %2, %3, %4, %5, %6, %7, "                                                                  \
                   "%8, %9, %10, %11, %12, %13, %14, %15, "                                                            \
                   "%16, %17, %18, %19, %20, %21, %22, %23, "                                                          \
                   "%24, %25, %26, %27, %28, %29, %30, %31"                                                            \
                   "}, %32, %33, p, 1, 1, %35, %36; +*/ }"                                                             \
                   : DNNOPT_TILE_SUMS((sum)[0]), DNNOPT_TILE_SUMS((sum)[1]), DNNOPT_TILE_SUMS((sum)[2]), DNNOPT_TILE_SUMS((sum)[3]) \
                   : "l"(a), "l"(b), "r"(1), "n"(1 - DNNOPT_A_INNER_FIRST), "n"(1 - DNNOPT_B_INNER_FIRST));
#define DNNOPT_TILE_STEP_8(sum, a, b)                                                                                  \
  __asm__ volatile("{ .reg .pred p; setp.ne.b32 p, %66, 0; /*+ wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 {"  \
                   "%0, %1, %2, %3, %4, %5, %6, %7, "                                                                  \
                   "%8, %9, %10, %11, %12, %13, %14, %15, "                                                            \
                   "%16, %17, %18, %19, %20, %21, %22, %23, "                                                          \
                   "%24, %25, %26, %27, %28, %29, %30, %31, "                                                          \
                   "%32, %33, %34, %35, %36, %37, %38, %39, "                                                          \
                   "%40, %41, %42, %43, %44, %45, %46, %47, "                                                          \
                   "%48, %49, %50, %51, %52, %53, %54, %55, "                                                          \
                   "%56, %57, %58, %59, %60, %61, %62, %63"                                                            \
                   "}, %64, %65, p, 1, 1, %67, %68; +*/ }"                                                             \
                   : DNNOPT_TILE_SUMS((sum)[0]), DNNOPT_TILE_SUMS((sum)[1]), DNNOPT_TILE_SUMS((sum)[2]), DNNOPT_TILE_SUMS((sum)[3]), DNNOPT_TILE_SUMS((sum)[4]), DNNOPT_TILE_SUMS((sum)[5]), DNNOPT_TILE_SUMS((sum)[6]), DNNOPT_TILE_SUMS((sum)[7]) \
                   : "l"(a), "l"(b), "r"(1), "n"(1 - DNNOPT_A_INNER_FIRST), "n"(1 - DNNOPT_B_INNER_FIRST));
#define DNNOPT_TILE_STEP_OF(columns) DNNOPT_TILE_STEP_##columns
#define DNNOPT_TILE_STEP_WITH(columns) DNNOPT_TILE_STEP_OF(columns)
// Chunks of a panel of an operand whose lines are inner elements, and where the operands of step s begin.
#define DNNOPT_PANEL(line_chunks) ((line_chunks) < 8 ? (line_chunks) : 8)
#define DNNOPT_TILE_A(a_base, i, s)                                                                                      \
  dnnopt_tile_operand(tiles + 16 * (uint)((a_base) + (DNNOPT_A_INNER_FIRST                                               \
                          ? DNNOPT_WAVE_ROW(i) / 64 * 64 * DNNOPT_A_LINE + 2 * (s)                                      \
                          : (DNNOPT_WAVE_ROW(i) / 64 * DNNOPT_TILE_INNER + 16 * (s)) * DNNOPT_PANEL(DNNOPT_A_LINE))),    \
                      DNNOPT_PANEL(DNNOPT_A_LINE), DNNOPT_TILE_INNER * DNNOPT_PANEL(DNNOPT_A_LINE))
#define DNNOPT_TILE_B(b_base, s)                                                                                         \
  dnnopt_tile_operand(tiles + 16 * (uint)((b_base) + (DNNOPT_B_INNER_FIRST                                               \
                          ? wave_column * DNNOPT_COLUMN_STEPS * 16 * DNNOPT_B_LINE + 2 * (s)                             \
                          : (wave_column * DNNOPT_COLUMN_STEPS / 4 * DNNOPT_TILE_INNER + 16 * (s)) * DNNOPT_PANEL(DNNOPT_B_LINE))), \
                      DNNOPT_PANEL(DNNOPT_B_LINE), DNNOPT_TILE_INNER * DNNOPT_PANEL(DNNOPT_B_LINE))
#define DNNOPT_MULTIPLY_TILES(sum, a_base, b_base)                          \
  dnnopt_begin_tile_steps();                                                \
  DNNOPT_UNROLLED(s, DNNOPT_TILE_INNER / 16) {                              \
    const ulong b = DNNOPT_TILE_B(b_base, s);                               \
    DNNOPT_UNROLLED(i, DNNOPT_ROW_STEPS) {                                  \
      const ulong a = DNNOPT_TILE_A(a_base, i, s);                          \
      DNNOPT_TILE_STEP_WITH(DNNOPT_COLUMN_STEPS)(sum[i], a, b)              \
    }                                                                       \
  }                                                                         \
  dnnopt_end_tile_steps();
#ifdef __cplusplus
)CLC"
#endif
