#ifdef __cplusplus
R"CLC(
#endif
// Depthwise convolution over texels: a work-item computes four channels of one position, channels 4 * quarter and on.
//
//   result = sum over window elements k of x(z, quarter, k, n) * w(quarter, k);   dnnopt_store4(z, quarter, n, result)
//
// Work-items: (column, row, slice), where n = row * DNNOPT_COLUMNS + column and slice = z * DNNOPT_QUARTERS + quarter; those
// beyond DNNOPT_COLUMNS, DNNOPT_ROWS and DNNOPT_SLICES return at once. DNNOPT_GROUP is the kernel's work-group, or empty.
//
// Hooks: dnnopt_load4_x (zero in padding), dnnopt_load4_w, dnnopt_store4.

#ifndef DNNOPT_PARAMETERS
// Stand-alone: rows of DNNOPT_COLUMNS positions, windows of three without padding, stride 1.
#define DNNOPT_PARAMETERS __global const float4* b0, __global const float4* b1, __global float4* b2, const int p0, const int p1, const int p2
#define DNNOPT_KERNEL_PARAMETERS DNNOPT_PARAMETERS
#define DNNOPT_ARGUMENTS b0, b1, b2, p0, p1, p2
#define DNNOPT_QUARTERS p0
#define DNNOPT_COLUMNS p1
#define DNNOPT_ROWS 1
#define DNNOPT_SLICES p2
#define DNNOPT_GROUP
#define DNNOPT_WINDOW 3
static inline float4 dnnopt_load4_x(DNNOPT_PARAMETERS, const int z, const int quarter, const int k, const int n) { return b0[(z * p0 + quarter) * (p1 + 2) + n + k]; }
static inline float4 dnnopt_load4_w(DNNOPT_PARAMETERS, const int quarter, const int k) { return b1[k * p0 + quarter]; }
static inline void dnnopt_store4(DNNOPT_PARAMETERS, const int z, const int quarter, const int n, float4 four) { b2[(z * p0 + quarter) * p1 + n] = four; }
#endif

__kernel DNNOPT_GROUP void dnnopt_kernel(DNNOPT_KERNEL_PARAMETERS) {
  const int column = (int)get_global_id(0);
  const int row = (int)get_global_id(1);
  const int slice = (int)get_global_id(2);
  if (column >= DNNOPT_COLUMNS || row >= DNNOPT_ROWS || slice >= DNNOPT_SLICES) return;
  const int n = row * DNNOPT_COLUMNS + column;
  const int z = slice / DNNOPT_QUARTERS;
  const int quarter = slice % DNNOPT_QUARTERS;
  float4 sum = (float4)(0.0f);
  _Pragma("unroll") for (int k = 0; k < DNNOPT_WINDOW; ++k)
    sum = fma(dnnopt_load4_x(DNNOPT_ARGUMENTS, z, quarter, k, n), dnnopt_load4_w(DNNOPT_ARGUMENTS, quarter, k), sum);
  dnnopt_store4(DNNOPT_ARGUMENTS, z, quarter, n, sum);
}
#ifdef __cplusplus
)CLC"
#endif
