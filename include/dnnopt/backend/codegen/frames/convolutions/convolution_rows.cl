#ifdef __cplusplus
R"CLC(
#endif
// Convolution with few input channels per group (depthwise and thin groups) on devices with wide vectors: one work-item
// computes runs of DNNOPT_RUN output positions along a row, accumulated in a private array over window elements.
//
// Hooks: dnnopt_load_x(z, c, d, h, w) with z = (batch, group), dnnopt_load_weight(z, m, c, kd, kh, kw) and
// dnnopt_store(z, m, d, h, w, result).

#ifndef DNNOPT_PARAMETERS
// Stand-alone: depthwise, 3x3, padding of one.
#define DNNOPT_PARAMETERS __global const float* b0, __global const float* b1, __global float* b2, const int p0, const int p1
#define DNNOPT_KERNEL_PARAMETERS DNNOPT_PARAMETERS
#define DNNOPT_ARGUMENTS b0, b1, b2, p0, p1
#define DNNOPT_M 1
#define DNNOPT_C 1
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
#define DNNOPT_IH p0
#define DNNOPT_IW p1
#define DNNOPT_OD 1
#define DNNOPT_OH p0
#define DNNOPT_OW p1
static inline float dnnopt_load_x(DNNOPT_PARAMETERS, const int z, const int c, const int d, const int h, const int w) { return b0[(z * p0 + h) * p1 + w]; }
static inline float dnnopt_load_weight(DNNOPT_PARAMETERS, const int z, const int m, const int c, const int d, const int h, const int w) { return b1[(z * 3 + h) * 3 + w]; }
static inline void dnnopt_store(DNNOPT_PARAMETERS, const int z, const int m, const int d, const int h, const int w, float value) { b2[(z * p0 + h) * p1 + w] = value; }
#endif
#ifndef DNNOPT_RUN
#define DNNOPT_RUN 32
#endif
// Output rows that one work-item computes.
#ifndef DNNOPT_ROWS
#define DNNOPT_ROWS 8
#endif

// Planes are reduced as well: dnnopt_store returns what is taken, and dnnopt_store_total(z, m, value) ends a plane.
#ifndef DNNOPT_TOTALS
#define DNNOPT_TOTALS 0
#endif

__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void dnnopt_kernel(DNNOPT_KERNEL_PARAMETERS) {
  const int z = (int)get_global_id(2);
  const int m = (int)get_global_id(1);
  const int row_begin = (int)get_global_id(0) * DNNOPT_ROWS;
  const int row_end = min(row_begin + DNNOPT_ROWS, (int)(DNNOPT_OD * DNNOPT_OH));
  float weights[DNNOPT_C * DNNOPT_KD * DNNOPT_KH * DNNOPT_KW];
  for (int c = 0; c < DNNOPT_C; ++c)
    for (int kd = 0; kd < DNNOPT_KD; ++kd)
      for (int kh = 0; kh < DNNOPT_KH; ++kh)
        for (int kw = 0; kw < DNNOPT_KW; ++kw)
          weights[((c * DNNOPT_KD + kd) * DNNOPT_KH + kh) * DNNOPT_KW + kw] = dnnopt_load_weight(DNNOPT_ARGUMENTS, z, m, c, kd, kh, kw);
#if DNNOPT_TOTALS
  // Lanes side by side, so that what is taken in makes no chain.
  float totals[DNNOPT_RUN];
  for (int j = 0; j < DNNOPT_RUN; ++j) totals[j] = DNNOPT_FIRST;
#endif
  for (int row = row_begin; row < row_end; ++row) {
    const int oh = row % DNNOPT_OH;
    const int od = row / DNNOPT_OH;
    for (int begin = 0; begin < DNNOPT_OW; begin += DNNOPT_RUN) {
      const int run = min(DNNOPT_RUN, (int)(DNNOPT_OW) - begin);
      float sum[DNNOPT_RUN];
      for (int j = 0; j < DNNOPT_RUN; ++j) sum[j] = 0.0f;
      for (int c = 0; c < DNNOPT_C; ++c)
        for (int kd = 0; kd < DNNOPT_KD; ++kd) {
          const int d = od * DNNOPT_SD + kd * DNNOPT_DD - DNNOPT_PD;
          if (d < 0 || d >= DNNOPT_ID) continue;
          for (int kh = 0; kh < DNNOPT_KH; ++kh) {
            const int h = oh * DNNOPT_SH + kh * DNNOPT_DH - DNNOPT_PH;
            if (h < 0 || h >= DNNOPT_IH) continue;
            for (int kw = 0; kw < DNNOPT_KW; ++kw) {
              const int w = begin * DNNOPT_SW + kw * DNNOPT_DW - DNNOPT_PW;
              const int first = w < 0 ? min((-w + DNNOPT_SW - 1) / DNNOPT_SW, run) : 0;
              const int last = w < DNNOPT_IW ? min((DNNOPT_IW - w + DNNOPT_SW - 1) / DNNOPT_SW, run) : 0;
              const float weight = weights[((c * DNNOPT_KD + kd) * DNNOPT_KH + kh) * DNNOPT_KW + kw];
              if (first == 0 && last == DNNOPT_RUN) {
                // The common case has a constant length, so that the sums stay in registers.
                for (int j = 0; j < DNNOPT_RUN; ++j) sum[j] += weight * dnnopt_load_x(DNNOPT_ARGUMENTS, z, c, d, h, w + j * DNNOPT_SW);
              } else {
                for (int j = first; j < last; ++j) sum[j] += weight * dnnopt_load_x(DNNOPT_ARGUMENTS, z, c, d, h, w + j * DNNOPT_SW);
              }
            }
          }
        }
#if DNNOPT_TOTALS
      for (int j = 0; j < run; ++j) {
        const float x = dnnopt_store(DNNOPT_ARGUMENTS, z, m, od, oh, begin + j, sum[j]);
        totals[j] = DNNOPT_TAKE(totals[j], x);
      }
#else
      for (int j = 0; j < run; ++j) dnnopt_store(DNNOPT_ARGUMENTS, z, m, od, oh, begin + j, sum[j]);
#endif
    }
  }
#if DNNOPT_TOTALS
  float total = DNNOPT_FIRST;
  for (int j = 0; j < DNNOPT_RUN; ++j) total = DNNOPT_COMBINE(total, totals[j]);
  dnnopt_store_total(DNNOPT_ARGUMENTS, z, m, DNNOPT_FINISH(total));
#endif
}
#ifdef __cplusplus
)CLC"
#endif
