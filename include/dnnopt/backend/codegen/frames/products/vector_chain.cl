#ifdef __cplusplus
R"CLC(
#endif
// Two products of one vector, the second of what the first becomes (the tail of a squeeze-excite block): one work-group
// per vector keeps the vector and the hidden one in local memory, so that no sum crosses work-groups.
//
//   hidden(h) = dnnopt_hidden(z, h, sum over k of weight_1(h, k) * x(z, k))
//   result(n) = sum over h of weight_2(n, h) * hidden(h);   dnnopt_store(z, n, result)
//
// Hooks: dnnopt_load_x(z, k), dnnopt_load_first(h, k), dnnopt_hidden(z, h, value), dnnopt_load_second(n, h), dnnopt_store.

#ifndef DNNOPT_PARAMETERS
// Stand-alone: plain row-major matrices.
#define DNNOPT_PARAMETERS __global const float* b0, __global const float* b1, __global const float* b2, __global float* b3
#define DNNOPT_KERNEL_PARAMETERS DNNOPT_PARAMETERS
#define DNNOPT_ARGUMENTS b0, b1, b2, b3
#define DNNOPT_K 64
#define DNNOPT_H 16
#define DNNOPT_N 64
static inline float dnnopt_load_x(DNNOPT_PARAMETERS, const int z, const int k) { return b0[z * 64 + k]; }
static inline float dnnopt_load_first(DNNOPT_PARAMETERS, const int h, const int k) { return b1[h * 64 + k]; }
static inline float dnnopt_hidden(DNNOPT_PARAMETERS, const int z, const int h, float value) { return value > 0.0f ? value : 0.0f; }
static inline float dnnopt_load_second(DNNOPT_PARAMETERS, const int n, const int h) { return b2[n * 16 + h]; }
static inline void dnnopt_store(DNNOPT_PARAMETERS, const int z, const int n, float value) { b3[z * 64 + n] = value; }
#endif
// Work-items of a work-group, and how many of them share a row of weights. One work-item sums in lanes instead.
#ifndef DNNOPT_GROUP
#define DNNOPT_GROUP 64
#endif
#ifndef DNNOPT_TEAM
#define DNNOPT_TEAM 16
#endif

#if DNNOPT_GROUP == 1
#define DNNOPT_SYNCHRONIZE
#define DNNOPT_PRODUCT(rows, length, load, from, FINISH)                                              \
  for (int r = 0; r < (rows); ++r) {                                                                  \
    float lanes[16];                                                                                  \
    for (int l = 0; l < 16; ++l) lanes[l] = 0.0f;                                                     \
    const int whole = (length) / 16 * 16;                                                             \
    for (int j = 0; j < whole; j += 16)                                                               \
      for (int l = 0; l < 16; ++l) lanes[l] = fma(load(DNNOPT_ARGUMENTS, r, j + l), from[j + l], lanes[l]); \
    for (int j = whole; j < (length); ++j) lanes[j - whole] = fma(load(DNNOPT_ARGUMENTS, r, j), from[j], lanes[j - whole]); \
    float sum = 0.0f;                                                                                 \
    for (int l = 0; l < 16; ++l) sum += lanes[l];                                                     \
    FINISH                                                                                            \
  }
#else
#define DNNOPT_SYNCHRONIZE barrier(CLK_LOCAL_MEM_FENCE);
// Every work-item passes every barrier: rows beyond the last are computed as the last and not kept.
#define DNNOPT_PRODUCT(rows, length, load, from, FINISH)                                              \
  for (int first = 0; first < (rows); first += DNNOPT_GROUP / DNNOPT_TEAM) {                          \
    const int own = first + item / DNNOPT_TEAM;                                                       \
    const int r = min(own, (rows) - 1);                                                               \
    const int lane = item % DNNOPT_TEAM;                                                              \
    float share = 0.0f;                                                                               \
    for (int j = lane; j < (length); j += DNNOPT_TEAM) share = fma(load(DNNOPT_ARGUMENTS, r, j), from[j], share); \
    barrier(CLK_LOCAL_MEM_FENCE);                                                                     \
    shares[item] = share;                                                                             \
    barrier(CLK_LOCAL_MEM_FENCE);                                                                     \
    if (lane == 0 && own < (rows)) {                                                                  \
      float sum = 0.0f;                                                                               \
      for (int l = 0; l < DNNOPT_TEAM; ++l) sum += shares[item + l];                                  \
      FINISH                                                                                          \
    }                                                                                                 \
  }
#endif

__kernel __attribute__((reqd_work_group_size(DNNOPT_GROUP, 1, 1))) void dnnopt_kernel(DNNOPT_KERNEL_PARAMETERS) {
  __local float x[DNNOPT_K];
  __local float hidden[DNNOPT_H];
#if DNNOPT_GROUP > 1
  __local float shares[DNNOPT_GROUP];
#endif
  const int z = (int)get_group_id(0);
  const int item = (int)get_local_id(0);
  for (int k = item; k < DNNOPT_K; k += DNNOPT_GROUP) x[k] = dnnopt_load_x(DNNOPT_ARGUMENTS, z, k);
  DNNOPT_SYNCHRONIZE
  DNNOPT_PRODUCT(DNNOPT_H, DNNOPT_K, dnnopt_load_first, x, hidden[r] = dnnopt_hidden(DNNOPT_ARGUMENTS, z, r, sum);)
  DNNOPT_SYNCHRONIZE
  DNNOPT_PRODUCT(DNNOPT_N, DNNOPT_H, dnnopt_load_second, hidden, dnnopt_store(DNNOPT_ARGUMENTS, z, r, sum);)
}
#ifdef __cplusplus
)CLC"
#endif
