#ifdef __cplusplus
R"CLC(
#endif
// Ends a matrix product whose inner elements were shared by several work-groups: adds their sums, an element per work-item.
//
// Hooks: dnnopt_load_partial(split, z, m, n) and dnnopt_store(z, m, n, result).

#ifndef DNNOPT_PARAMETERS
// Stand-alone: sums kept as [split][m][n].
#define DNNOPT_PARAMETERS __global const float* restrict b0, __global float* restrict b1, const int p0, const int p1
#define DNNOPT_ARGUMENTS b0, b1, p0, p1
#define DNNOPT_Z 1
#define DNNOPT_M p0
#define DNNOPT_N p1
#define DNNOPT_SPLITS 4
static inline float dnnopt_load_partial(DNNOPT_PARAMETERS, const int split, const int z, const int m, const int n) { return b0[(split * p0 + m) * p1 + n]; }
static inline void dnnopt_store(DNNOPT_PARAMETERS, const int z, const int m, const int n, float value) { b1[m * p1 + n] = value; }
#endif

__kernel void dnnopt_kernel(DNNOPT_PARAMETERS) {
  const int n = (int)get_global_id(0);
  const int m = (int)get_global_id(1);
  const int z = (int)get_global_id(2);
  if (n >= DNNOPT_N) return;
  float sum = 0.0f;
  for (int split = 0; split < DNNOPT_SPLITS; ++split) sum += dnnopt_load_partial(DNNOPT_ARGUMENTS, split, z, m, n);
  dnnopt_store(DNNOPT_ARGUMENTS, z, m, n, sum);
}
#ifdef __cplusplus
)CLC"
#endif
