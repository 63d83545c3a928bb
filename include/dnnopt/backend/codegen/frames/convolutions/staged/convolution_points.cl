#ifdef __cplusplus
R"CLC(
#endif
// Convolution whose result has few positions, on devices whose work-items run one after the other with wide vectors
// (CPUs). Positions would leave most of a vector empty, so vectors run over output channels, which lie side by side in
// the packed weights, and an element of the padded image is one number for all of them. A work-item has DNNOPT_VECTORS
// panels of output channels and all positions; the weights are read once.
//
//   result(z, m, o) = sum over c, k of weight(z, m, c, k) * x(z, c, o * stride + k * dilation - pad)
//
// Hooks: dnnopt_load_x(z, c, d, h, w) with z = (batch, group), dnnopt_store(z, m, position, result). The weights lie
// packed at DNNOPT_A, panels of DNNOPT_ROWS output channels, (channel, window element) in each. Where a panel has fewer
// channels than a vector, what a vector reads beyond them is not stored; the memory goes on for a vector behind the last
// panel.

#ifndef DNNOPT_PARAMETERS
// Stand-alone: 3 x 3, padding of one, weights of one panel.
#define DNNOPT_PARAMETERS \
  __global const float* b0, __global const float* b1, __global float* b2, const int p0, const int p1
#define DNNOPT_KERNEL_PARAMETERS DNNOPT_PARAMETERS
#define DNNOPT_ARGUMENTS b0, b1, b2, p0, p1
#define DNNOPT_M 8
#define DNNOPT_C 4
#define DNNOPT_KD 1
#define DNNOPT_KH 3
#define DNNOPT_KW 3
#define DNNOPT_SD 1
#define DNNOPT_SH 1
#define DNNOPT_SW 1
#define DNNOPT_DD 1
#define DNNOPT_DH 1
#define DNNOPT_DW 1
#define DNNOPT_PD 0
#define DNNOPT_PH 1
#define DNNOPT_PW 1
#define DNNOPT_ID 1
#define DNNOPT_IH 2
#define DNNOPT_IW 2
#define DNNOPT_OD 1
#define DNNOPT_OH 2
#define DNNOPT_OW 2
#define DNNOPT_A b1
#define DNNOPT_A_BATCH 0
static inline float dnnopt_load_x(DNNOPT_PARAMETERS, const int z, const int c, const int d, const int h, const int w) {
  return b0[((z * 4 + c) * 2 + h) * 2 + w];
}
static inline void dnnopt_store(DNNOPT_PARAMETERS, const int z, const int m, const int n, float value) {
  b2[(z * 8 + m) * 4 + n] = value;
}
#endif
#ifndef DNNOPT_ROWS
#define DNNOPT_ROWS 8
#endif
#ifndef DNNOPT_VECTOR
#define DNNOPT_VECTOR 8
#endif
#ifndef DNNOPT_VECTORS
#define DNNOPT_VECTORS 2
#endif
// Positions of the register tile; a run has at most as many.
#ifndef DNNOPT_POINTS
#define DNNOPT_POINTS 4
#endif
// Elements of the padded image that are staged per channel, at most, and channels staged at a time.
#ifndef DNNOPT_STAGED
#define DNNOPT_STAGED 16
#endif
#ifndef DNNOPT_BLOCK_CHANNELS
#define DNNOPT_BLOCK_CHANNELS 4
#endif

#define DNNOPT_JOIN_(a, b) a##b
#define DNNOPT_JOIN(a, b) DNNOPT_JOIN_(a, b)
#define DNNOPT_FLOATS DNNOPT_JOIN(float, DNNOPT_VECTOR)
#define DNNOPT_LOAD_FLOATS DNNOPT_JOIN(vload, DNNOPT_VECTOR)
#define DNNOPT_STORE_FLOATS DNNOPT_JOIN(vstore, DNNOPT_VECTOR)
#define DNNOPT_WINDOW (DNNOPT_KD * DNNOPT_KH * DNNOPT_KW)
#define DNNOPT_PANEL (DNNOPT_C * DNNOPT_WINDOW * DNNOPT_ROWS)
#define DNNOPT_PANELS ((DNNOPT_M + DNNOPT_ROWS - 1) / DNNOPT_ROWS)
// Extents of the padded image as far as windows reach.
#define DNNOPT_REACHED(o, s, k, d) (((o) - 1) * (s) + ((k) - 1) * (d) + 1)

// Channels c_begin .. c_begin + count - 1 of the padded image.
static inline void dnnopt_stage(DNNOPT_PARAMETERS, __local float* staged, const int z, const int c_begin,
                                const int count, const int depth, const int height, const int width) {
  const int first = clamp((int)(DNNOPT_PW), 0, width);
  const int last = clamp((int)(DNNOPT_IW + DNNOPT_PW), first, width);
  for (int row = 0; row < depth * height; ++row) {
    const int d = row / height - DNNOPT_PD;
    const int h = row % height - DNNOPT_PH;
    const bool inside = d >= 0 && d < DNNOPT_ID && h >= 0 && h < DNNOPT_IH;
    for (int c = 0; c < count; ++c) {
      __local float* to = staged + c * DNNOPT_STAGED + row * width;
      for (int w = 0; w < (inside ? first : width); ++w) to[w] = 0.0f;
      if (!inside) continue;
      for (int w = first; w < last; ++w)
        to[w] = dnnopt_load_x(DNNOPT_ARGUMENTS, z, c_begin + c, d, h, w - DNNOPT_PW);
      for (int w = last; w < width; ++w) to[w] = 0.0f;
    }
  }
}

__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void dnnopt_kernel(DNNOPT_KERNEL_PARAMETERS) {
  const int z = (int)get_global_id(1);
  const int panel = (int)get_global_id(0) * DNNOPT_VECTORS;
  const int positions = DNNOPT_OD * DNNOPT_OH * DNNOPT_OW;
  const int depth = DNNOPT_REACHED(DNNOPT_OD, DNNOPT_SD, DNNOPT_KD, DNNOPT_DD);
  const int height = DNNOPT_REACHED(DNNOPT_OH, DNNOPT_SH, DNNOPT_KH, DNNOPT_DH);
  const int width = DNNOPT_REACHED(DNNOPT_OW, DNNOPT_SW, DNNOPT_KW, DNNOPT_DW);
  __local float staged[DNNOPT_BLOCK_CHANNELS * DNNOPT_STAGED];
  int starts[DNNOPT_POINTS];
  _Pragma("unroll") for (int p = 0; p < DNNOPT_POINTS; ++p) {
    const int n = min(p, positions - 1);
    const int row = n / DNNOPT_OW / DNNOPT_OH * DNNOPT_SD * height + n / DNNOPT_OW % DNNOPT_OH * DNNOPT_SH;
    starts[p] = row * width + n % DNNOPT_OW * DNNOPT_SW;
  }
  __global const float* weights[DNNOPT_VECTORS];
  _Pragma("unroll") for (int v = 0; v < DNNOPT_VECTORS; ++v) {
    const int own = (DNNOPT_A_BATCH) * DNNOPT_PANELS + min(panel + v, DNNOPT_PANELS - 1);
    weights[v] = DNNOPT_A + own * DNNOPT_PANEL;
  }
  DNNOPT_FLOATS sum[DNNOPT_VECTORS][DNNOPT_POINTS];
  _Pragma("unroll") for (int v = 0; v < DNNOPT_VECTORS; ++v)
    _Pragma("unroll") for (int p = 0; p < DNNOPT_POINTS; ++p) sum[v][p] = (DNNOPT_FLOATS)(0.0f);
  int at = 0;
  for (int c_begin = 0; c_begin < DNNOPT_C; c_begin += DNNOPT_BLOCK_CHANNELS) {
    const int count = min(DNNOPT_BLOCK_CHANNELS, DNNOPT_C - c_begin);
    dnnopt_stage(DNNOPT_ARGUMENTS, staged, z, c_begin, count, depth, height, width);
    for (int c = 0; c < count; ++c)
      for (int k = 0; k < DNNOPT_KD * DNNOPT_KH; ++k) {
        const int shifted = k / DNNOPT_KH * DNNOPT_DD * height + k % DNNOPT_KH * DNNOPT_DH;
        __local const float* row = staged + c * DNNOPT_STAGED + shifted * width;
        for (int kw = 0; kw < DNNOPT_KW; ++kw) {
          DNNOPT_FLOATS w[DNNOPT_VECTORS];
          _Pragma("unroll") for (int v = 0; v < DNNOPT_VECTORS; ++v)
            w[v] = DNNOPT_LOAD_FLOATS(0, weights[v] + at);
          _Pragma("unroll") for (int p = 0; p < DNNOPT_POINTS; ++p) {
            const DNNOPT_FLOATS x = (DNNOPT_FLOATS)(row[starts[p] + kw * DNNOPT_DW]);
            _Pragma("unroll") for (int v = 0; v < DNNOPT_VECTORS; ++v) sum[v][p] = fma(w[v], x, sum[v][p]);
          }
          at += DNNOPT_ROWS;
        }
      }
  }
  float tile[DNNOPT_VECTORS * DNNOPT_POINTS * DNNOPT_VECTOR];
  _Pragma("unroll") for (int v = 0; v < DNNOPT_VECTORS; ++v)
    _Pragma("unroll") for (int p = 0; p < DNNOPT_POINTS; ++p)
      DNNOPT_STORE_FLOATS(sum[v][p], v * DNNOPT_POINTS + p, tile);
  for (int v = 0; v < DNNOPT_VECTORS; ++v) {
    const int m_begin = (panel + v) * DNNOPT_ROWS;
    for (int r = 0; r < min(DNNOPT_ROWS, DNNOPT_M - m_begin); ++r)
      for (int p = 0; p < positions; ++p)
        dnnopt_store(DNNOPT_ARGUMENTS, z, m_begin + r, p, tile[(v * DNNOPT_POINTS + p) * DNNOPT_VECTOR + r]);
  }
}
#ifdef __cplusplus
)CLC"
#endif
