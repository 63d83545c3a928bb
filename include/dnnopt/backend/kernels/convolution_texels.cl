#ifdef __cplusplus
R"CLC(
#endif
// Depthwise convolution over texels: a work-item computes four channels of one position, channels 4 * quarter and on.
//
//   result = sum over window elements k of x(z, quarter, k, n) * w(quarter, k);   dnnopt_store4(z, quarter, n, result)
//
// Hooks: dnnopt_load4_x (zero in padding), dnnopt_load4_w, dnnopt_store4.

#ifndef DNNOPT_PARAMETERS
// Stand-alone: rows of DNNOPT_N positions, windows of three without padding, stride 1.
#define DNNOPT_PARAMETERS __global const float4* restrict b0, __global const float4* restrict b1, __global float4* restrict b2, const int p0, const int p1
#define DNNOPT_ARGUMENTS b0, b1, b2, p0, p1
#define DNNOPT_QUARTERS p0
#define DNNOPT_N p1
#define DNNOPT_WINDOW 3
static inline float4 dnnopt_load4_x(DNNOPT_PARAMETERS, const int z, const int quarter, const int k, const int n) { return b0[(z * p0 + quarter) * (p1 + 2) + n + k]; }
static inline float4 dnnopt_load4_w(DNNOPT_PARAMETERS, const int quarter, const int k) { return b1[k * p0 + quarter]; }
static inline void dnnopt_store4(DNNOPT_PARAMETERS, const int z, const int quarter, const int n, float4 four) { b2[(z * p0 + quarter) * p1 + n] = four; }
#endif

__kernel void dnnopt_kernel(DNNOPT_PARAMETERS) {
  const int n = (int)get_global_id(0);
  const int quarter = (int)get_global_id(1);
  const int z = (int)get_global_id(2);
  if (n >= DNNOPT_N || quarter >= DNNOPT_QUARTERS) return;
  float4 sum = (float4)(0.0f);
  _Pragma("unroll") for (int k = 0; k < DNNOPT_WINDOW; ++k)
    sum = fma(dnnopt_load4_x(DNNOPT_ARGUMENTS, z, quarter, k, n), dnnopt_load4_w(DNNOPT_ARGUMENTS, quarter, k), sum);
  dnnopt_store4(DNNOPT_ARGUMENTS, z, quarter, n, sum);
}
#ifdef __cplusplus
)CLC"
#endif
