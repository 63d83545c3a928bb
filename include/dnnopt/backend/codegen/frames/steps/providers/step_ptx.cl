#ifdef __cplusplus
R"CLC(
#endif
// What providers of matrix steps by inline PTX share: `ldmatrix` and `cp.async` of the PTX ISA, of NVIDIA's devices from
// compute capability 8.0 on. Elements travel in words, so no arithmetic in halves is needed of the compiler. Instructions on
// local memory want addresses within it, which fit 32 bits.

#ifndef DNNOPT_STEP_SUM_ROW
// Stand-alone.
#include "step_places.cl"
#endif
#ifndef dnnopt_element
#include "elements_halves.cl"
#endif
#define dnnopt_tiles uint
static inline dnnopt_tiles dnnopt_tiles_at(__local uint4* memory) {
  ulong address;
  __asm__ volatile("cvta.to.shared.u64 %0, %1;" : "=l"(address) : "l"(memory));
  return (uint)address;
}

static inline void dnnopt_copy(const dnnopt_tiles tiles, const int place, __global const dnnopt_element* from, const int width, const bool within) {
  const int size = (int)sizeof(dnnopt_element);
  const uint to = tiles + (uint)(size * place);
  const int bytes = within ? size * width : 0;
  // Through the first cache: work-groups of one multiprocessor often read the same rows or columns.
  if (size * width == 16)
    __asm__ volatile("cp.async.ca.shared.global [%0], [%1], 16, %2;" : : "r"(to), "l"(from), "r"(bytes) : "memory");
  else if (size * width == 8)
    __asm__ volatile("cp.async.ca.shared.global [%0], [%1], 8, %2;" : : "r"(to), "l"(from), "r"(bytes) : "memory");
  else
    __asm__ volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" : : "r"(to), "l"(from), "r"(bytes) : "memory");
}
static inline void dnnopt_end_copies(void) { __asm__ volatile("cp.async.commit_group;" : : : "memory"); }
#define dnnopt_await_copies(stages) __asm__ volatile("cp.async.wait_group %0;" : : "n"(stages) : "memory")

static inline uint4 dnnopt_step_load(const uint address) {
  uint4 v;
  __asm__ volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];" : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "r"(address) : "memory");
  return v;
}
static inline uint4 dnnopt_step_a(const dnnopt_tiles tiles, const int base, const int line, const int chunk, const int chunks, const int lane) {
  return dnnopt_step_load(tiles + 16 * (base + line * chunks + dnnopt_chunk(lane % 16, chunk + lane / 16, chunks)));
}
static inline uint4 dnnopt_step_b(const dnnopt_tiles tiles, const int base, const int line, const int chunk, const int chunks, const int lane) {
  return dnnopt_step_load(tiles + 16 * (base + line * chunks + dnnopt_chunk(lane / 16 * 8 + lane % 8, chunk + lane / 8 % 2, chunks)));
}
#define DNNOPT_STEP_EXCHANGES 0
static inline float dnnopt_step_exchanged(float x, const int apart) {
  uint other;
  __asm__ volatile("shfl.sync.bfly.b32 %0, %1, %2, 0x1f, 0xffffffff;" : "=r"(other) : "r"(as_uint(x)), "r"(apart));
  return as_float(other);
}
#define DNNOPT_STEP_ALONG_ROW(op, x)      \
  {                                       \
    x = op(x, dnnopt_step_exchanged(x, 1)); \
    x = op(x, dnnopt_step_exchanged(x, 2)); \
  }
#ifdef __cplusplus
)CLC"
#endif
