#ifdef __cplusplus
R"CLC(
#endif
// Ends a matrix product whose inner elements were shared by several work-groups: adds their sums, an element per work-item.
//
// Hooks: dnnopt_load_partial(split, z, m, n) and dnnopt_store(z, m, n, result). DNNOPT_STORE_ALONG 1 or 2: four elements
// per work-item, and dnnopt_store4 as in matrix_tiles.cl.

#ifndef DNNOPT_PARAMETERS
// Stand-alone: sums kept as [split][m][n].
#define DNNOPT_PARAMETERS __global const float* b0, __global float* b1, const int p0, const int p1
#define DNNOPT_KERNEL_PARAMETERS DNNOPT_PARAMETERS
#define DNNOPT_ARGUMENTS b0, b1, p0, p1
#define DNNOPT_Z 1
#define DNNOPT_M p0
#define DNNOPT_N p1
#define DNNOPT_SPLITS 4
static inline float dnnopt_load_partial(DNNOPT_PARAMETERS, const int split, const int z, const int m, const int n) { return b0[(split * p0 + m) * p1 + n]; }
static inline void dnnopt_store(DNNOPT_PARAMETERS, const int z, const int m, const int n, float value) { b1[m * p1 + n] = value; }
#endif

#ifndef DNNOPT_STORE_ALONG
#define DNNOPT_STORE_ALONG 0
#endif

#if DNNOPT_STORE_ALONG
__kernel void dnnopt_kernel(DNNOPT_KERNEL_PARAMETERS) {
  const int first = (int)get_global_id(0);
  const int second = (int)get_global_id(1);
  const int z = (int)get_global_id(2);
  float sums[4] = {0.0f, 0.0f, 0.0f, 0.0f};
#if DNNOPT_STORE_ALONG == 1
  if (first >= DNNOPT_N) return;
#else
  if (4 * first >= DNNOPT_N) return;
#endif
  for (int part = 0; part < 4; ++part) {
#if DNNOPT_STORE_ALONG == 1
    const int m = 4 * second + part;
    const int n = first;
#else
    const int m = second;
    const int n = 4 * first + part;
#endif
    if (m >= DNNOPT_M || n >= DNNOPT_N) break;
    for (int split = 0; split < DNNOPT_SPLITS; ++split) sums[part] += dnnopt_load_partial(DNNOPT_ARGUMENTS, split, z, m, n);
  }
  dnnopt_store4(DNNOPT_ARGUMENTS, z, second, first, (float4)(sums[0], sums[1], sums[2], sums[3]));
}
#else
__kernel void dnnopt_kernel(DNNOPT_KERNEL_PARAMETERS) {
  const int n = (int)get_global_id(0);
  const int m = (int)get_global_id(1);
  const int z = (int)get_global_id(2);
  if (n >= DNNOPT_N) return;
  float sum = 0.0f;
  for (int split = 0; split < DNNOPT_SPLITS; ++split) sum += dnnopt_load_partial(DNNOPT_ARGUMENTS, split, z, m, n);
  dnnopt_store(DNNOPT_ARGUMENTS, z, m, n, sum);
}
#endif
#ifdef __cplusplus
)CLC"
#endif
