#ifdef __cplusplus
R"CLC(
#endif
// Depthwise convolution and pooling on devices with wide vectors: one work-item computes blocks of DNNOPT_ROWS output rows
// of planes. The input rows of a block are copied once, padding included, to phase planes (one per remainder by the
// stride), so that what a window element contributes to neighbouring outputs lies side by side: output lane
// oh * PITCH + ow reads element (kh, kw) at a constant distance, and vectors run over row ends. The lanes between rows
// are computed and left out when storing.
//
// Hooks: dnnopt_load_x(z, c, d, h, w), dnnopt_load_weight(z, m, c, d, h, w) and dnnopt_store(z, m, d, h, w, result); c
// and d are 0. DNNOPT_FAMILY: 0 weighted sum, 1 greatest, 2 sum.

#ifndef DNNOPT_FAMILY
#define DNNOPT_FAMILY 0
#endif
#ifndef DNNOPT_PARAMETERS
// Stand-alone: depthwise, 3x3, padding of one, 56 x 56.
#define DNNOPT_PARAMETERS __global const float* restrict b0, __global const float* restrict b1, __global float* restrict b2, const int p0
#define DNNOPT_ARGUMENTS b0, b1, b2, p0
#define DNNOPT_Z p0
#define DNNOPT_M 1
#define DNNOPT_KH 3
#define DNNOPT_KW 3
#define DNNOPT_SH 1
#define DNNOPT_SW 1
#define DNNOPT_DH 1
#define DNNOPT_DW 1
#define DNNOPT_PH 1
#define DNNOPT_PW 1
#define DNNOPT_IH 56
#define DNNOPT_IW 56
#define DNNOPT_OH 56
#define DNNOPT_OW 56
static inline float dnnopt_load_x(DNNOPT_PARAMETERS, const int z, const int c, const int d, const int h, const int w) { return b0[(z * 56 + h) * 56 + w]; }
static inline float dnnopt_load_weight(DNNOPT_PARAMETERS, const int z, const int m, const int c, const int d, const int h, const int w) { return b1[(z * 3 + h) * 3 + w]; }
static inline void dnnopt_store(DNNOPT_PARAMETERS, const int z, const int m, const int d, const int h, const int w, float value) { b2[(z * 56 + h) * 56 + w] = value; }
#endif
// Output rows of a block, planes (z, m) of a work-item, and vectors of 16 that are accumulated at a time.
#ifndef DNNOPT_ROWS
#define DNNOPT_ROWS 8
#endif
#ifndef DNNOPT_PLANES
#define DNNOPT_PLANES 1
#endif
#ifndef DNNOPT_UNROLL
#define DNNOPT_UNROLL 4
#endif
// Blocks of rows that a work-item computes one after the other.
#ifndef DNNOPT_BLOCKS
#define DNNOPT_BLOCKS 1
#endif
// Planes are reduced as well: dnnopt_store returns what is taken, and dnnopt_store_total(z, m, value) ends a plane.
#ifndef DNNOPT_TOTALS
#define DNNOPT_TOTALS 0
#endif

#define DNNOPT_PHASES_H (DNNOPT_SH < (DNNOPT_KH - 1) * DNNOPT_DH + 1 ? DNNOPT_SH : (DNNOPT_KH - 1) * DNNOPT_DH + 1)
#define DNNOPT_PHASES_W (DNNOPT_SW < (DNNOPT_KW - 1) * DNNOPT_DW + 1 ? DNNOPT_SW : (DNNOPT_KW - 1) * DNNOPT_DW + 1)
#define DNNOPT_PITCH (DNNOPT_OW + (DNNOPT_KW - 1) * DNNOPT_DW / DNNOPT_SW)
#define DNNOPT_PHASE ((DNNOPT_ROWS + (DNNOPT_KH - 1) * DNNOPT_DH / DNNOPT_SH) * DNNOPT_PITCH)
#define DNNOPT_LANES (16 * DNNOPT_UNROLL)
// One row of input with its padding, as far as any window reaches, and what a pair of vectors reads beyond.
#define DNNOPT_LINE (DNNOPT_PITCH * DNNOPT_SW + 32)
#if DNNOPT_FAMILY == 1
#define DNNOPT_PADDING (-INFINITY)
#else
#define DNNOPT_PADDING 0.0f
#endif

__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void dnnopt_kernel(DNNOPT_PARAMETERS) {
  // The last vectors begin at the last lane at most, as far right as a window reaches.
  __local float staged[DNNOPT_PHASES_H * DNNOPT_PHASES_W * DNNOPT_PHASE + DNNOPT_LANES + (DNNOPT_KW - 1) * DNNOPT_DW / DNNOPT_SW];
  __local float result[DNNOPT_ROWS * DNNOPT_PITCH + DNNOPT_LANES];
  const int plane_begin = (int)get_global_id(1) * DNNOPT_PLANES;
  const int plane_end = min(plane_begin + DNNOPT_PLANES, (int)(DNNOPT_Z * DNNOPT_M));
  for (int plane = plane_begin; plane < plane_end; ++plane) {
    const int z = plane / DNNOPT_M;
    const int m = plane % DNNOPT_M;
#if DNNOPT_TOTALS
    // Taken in lanes side by side, so that the loop vectorizes.
    float lanes[16];
    for (int l = 0; l < 16; ++l) lanes[l] = DNNOPT_FIRST;
#endif
    for (int block = 0; block < DNNOPT_BLOCKS; ++block) {
    const int row_begin = ((int)get_global_id(0) * DNNOPT_BLOCKS + block) * DNNOPT_ROWS;
    const int rows = min(DNNOPT_ROWS, DNNOPT_OH - row_begin);
    const int in_rows = rows + (DNNOPT_KH - 1) * DNNOPT_DH / DNNOPT_SH;
    for (int ph = 0; ph < DNNOPT_PHASES_H; ++ph)
      for (int i = 0; i < in_rows; ++i) {
        const int h = (row_begin + i) * DNNOPT_SH + ph - DNNOPT_PH;
        __local float* to = staged + ph * DNNOPT_PHASES_W * DNNOPT_PHASE + i * DNNOPT_PITCH;
        if (h < 0 || h >= DNNOPT_IH) {
          for (int pw = 0; pw < DNNOPT_PHASES_W; ++pw)
            for (int j = 0; j < DNNOPT_PITCH; ++j) to[pw * DNNOPT_PHASE + j] = DNNOPT_PADDING;
          continue;
        }
#if DNNOPT_SW == 1
        const int last = min(DNNOPT_PITCH, DNNOPT_IW + DNNOPT_PW);
        for (int j = 0; j < min(DNNOPT_PW, DNNOPT_PITCH); ++j) to[j] = DNNOPT_PADDING;
        for (int j = DNNOPT_PW; j < last; ++j) to[j] = dnnopt_load_x(DNNOPT_ARGUMENTS, z, 0, 0, h, j - DNNOPT_PW);
        for (int j = last; j < DNNOPT_PITCH; ++j) to[j] = DNNOPT_PADDING;
#else
        float line[DNNOPT_LINE];
        const int last = min(DNNOPT_LINE, DNNOPT_IW + DNNOPT_PW);
        for (int j = 0; j < min(DNNOPT_PW, DNNOPT_LINE); ++j) line[j] = DNNOPT_PADDING;
        for (int j = DNNOPT_PW; j < last; ++j) line[j] = dnnopt_load_x(DNNOPT_ARGUMENTS, z, 0, 0, h, j - DNNOPT_PW);
        for (int j = last; j < DNNOPT_LINE; ++j) line[j] = DNNOPT_PADDING;
#if DNNOPT_SW == 2
        // What the last vectors write beyond the row is overwritten by the next row or lies behind the plane.
        for (int j = 0; j < DNNOPT_PITCH; j += 16) {
          const float16 a = vload16(0, line + 2 * j);
          const float16 b = vload16(0, line + min(2 * j + 16, DNNOPT_LINE - 16));
          if (j + 16 <= DNNOPT_PITCH) {
            vstore16((float16)(a.even, b.even), 0, to + j);
            if (DNNOPT_PHASES_W > 1) vstore16((float16)(a.odd, b.odd), 0, to + DNNOPT_PHASE + j);
          } else {
            for (int k = 0; k < DNNOPT_PITCH - j; ++k)
              for (int pw = 0; pw < DNNOPT_PHASES_W; ++pw) to[pw * DNNOPT_PHASE + j + k] = line[2 * (j + k) + pw];
          }
        }
#else
        for (int pw = 0; pw < DNNOPT_PHASES_W; ++pw)
          for (int j = 0; j < DNNOPT_PITCH; ++j) to[pw * DNNOPT_PHASE + j] = line[j * DNNOPT_SW + pw];
#endif
#endif
      }
#if DNNOPT_FAMILY == 0
    float weights[DNNOPT_KH * DNNOPT_KW];
    for (int kh = 0; kh < DNNOPT_KH; ++kh)
      for (int kw = 0; kw < DNNOPT_KW; ++kw) weights[kh * DNNOPT_KW + kw] = dnnopt_load_weight(DNNOPT_ARGUMENTS, z, m, 0, 0, kh, kw);
#endif
    for (int lane = 0; lane < rows * DNNOPT_PITCH; lane += DNNOPT_LANES) {
      float16 sum[DNNOPT_UNROLL];
      _Pragma("unroll") for (int u = 0; u < DNNOPT_UNROLL; ++u) sum[u] = (float16)(DNNOPT_PADDING);
      _Pragma("unroll") for (int kh = 0; kh < DNNOPT_KH; ++kh) {
        _Pragma("unroll") for (int kw = 0; kw < DNNOPT_KW; ++kw) {
          __local const float* from = staged + (kh * DNNOPT_DH % DNNOPT_SH * DNNOPT_PHASES_W + kw * DNNOPT_DW % DNNOPT_SW) * DNNOPT_PHASE + kh * DNNOPT_DH / DNNOPT_SH * DNNOPT_PITCH + kw * DNNOPT_DW / DNNOPT_SW + lane;
          _Pragma("unroll") for (int u = 0; u < DNNOPT_UNROLL; ++u) {
            const float16 x = vload16(u, from);
#if DNNOPT_FAMILY == 0
            sum[u] = fma((float16)(weights[kh * DNNOPT_KW + kw]), x, sum[u]);
#elif DNNOPT_FAMILY == 1
            sum[u] = select(sum[u], x, (x > sum[u]) | (x != x));
#else
            sum[u] += x;
#endif
          }
        }
      }
      _Pragma("unroll") for (int u = 0; u < DNNOPT_UNROLL; ++u) vstore16(sum[u], u, result + lane);
    }
    for (int r = 0; r < rows; ++r)
#if DNNOPT_TOTALS
      for (int j = 0; j < DNNOPT_OW; j += 16)
        for (int l = 0; l < min(16, DNNOPT_OW - j); ++l) {
          const float x = dnnopt_store(DNNOPT_ARGUMENTS, z, m, 0, row_begin + r, j + l, result[r * DNNOPT_PITCH + j + l]);
          lanes[l] = DNNOPT_TAKE(lanes[l], x);
        }
#else
      for (int j = 0; j < DNNOPT_OW; ++j) dnnopt_store(DNNOPT_ARGUMENTS, z, m, 0, row_begin + r, j, result[r * DNNOPT_PITCH + j]);
#endif
    }
#if DNNOPT_TOTALS
    float total = DNNOPT_FIRST;
    for (int l = 0; l < 16; ++l) total = DNNOPT_COMBINE(total, lanes[l]);
    dnnopt_store_total(DNNOPT_ARGUMENTS, z, m, DNNOPT_FINISH(total));
#endif
  }
}
#ifdef __cplusplus
)CLC"
#endif
