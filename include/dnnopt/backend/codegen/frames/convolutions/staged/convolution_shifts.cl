#ifdef __cplusplus
R"CLC(
#endif
// Convolution on devices whose work-items run one after the other with wide vectors (CPUs): one work-item per block of
// the result, as in matrix_panels.cl, but without a copy of the image for each element of the window. A work-item stages
// the part of the padded image that its block reads, once per channel, elements of equal remainder by the stride (a phase)
// side by side. What an element of the window reads is a staged phase shifted by a number of elements, for a vector whose
// positions lie in one row. Positions count along rows as long as a phase's, where vectors run from a row into the next, or
// along rows of DNNOPT_ROW_VECTORS whole vectors, where that leaves less between rows. The positions between the end of an
// output row and the start of the next are computed too, and not stored.
//
//   result(z, m, o) = sum over c, k of weight(z, m, c, k) * x(z, c, o * stride + k * dilation - pad)
//
// Hooks: dnnopt_load_x(z, c, d, h, w) with z = (batch, group), dnnopt_store(z, m, position, result). The weights lie packed
// at DNNOPT_A, panels of DNNOPT_ROWS output channels, (channel, window element) in each.

#ifndef DNNOPT_PARAMETERS
// Stand-alone: 3 x 3, padding of one, weights of one panel.
#define DNNOPT_PARAMETERS __global const float* b0, __global const float* b1, __global float* b2, const int p0, const int p1
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
#define DNNOPT_IH 8
#define DNNOPT_IW 8
#define DNNOPT_OD 1
#define DNNOPT_OH 8
#define DNNOPT_OW 8
#define DNNOPT_A b1
#define DNNOPT_A_BATCH 0
static inline float dnnopt_load_x(DNNOPT_PARAMETERS, const int z, const int c, const int d, const int h, const int w) { return b0[((z * 4 + c) * 8 + h) * 8 + w]; }
static inline void dnnopt_store(DNNOPT_PARAMETERS, const int z, const int m, const int n, float value) { b2[(z * 8 + m) * 64 + n] = value; }
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
// Output channels and padded positions per work-item, and channels staged at a time.
#ifndef DNNOPT_BLOCK_ROWS
#define DNNOPT_BLOCK_ROWS 8
#endif
#ifndef DNNOPT_BLOCK_COLUMNS
#define DNNOPT_BLOCK_COLUMNS 32
#endif
#ifndef DNNOPT_BLOCK_CHANNELS
#define DNNOPT_BLOCK_CHANNELS 4
#endif

// Planes are reduced as well: dnnopt_store returns what is taken, and dnnopt_store_total(z, m, value) ends a plane. Then
// a block holds all positions.
#ifndef DNNOPT_TOTALS
#define DNNOPT_TOTALS 0
#endif
// Stores `count` elements of row m from column n on.
#if DNNOPT_TOTALS
// What is taken of a row runs in lanes side by side, so that the loop vectorizes.
#define DNNOPT_STORE_RUN(z, m, n, count, values) \
  for (int whole = 0; whole < (count); whole += 16) \
    for (int lane = 0; lane < min(16, (count) - whole); ++lane) { \
      const float x = dnnopt_store(DNNOPT_ARGUMENTS, z, m, (n) + whole + lane, (values)[whole + lane]); \
      const float a = totals[((m) - m_begin) * 16 + lane]; \
      totals[((m) - m_begin) * 16 + lane] = DNNOPT_TAKE(a, x); \
    }
#elif DNNOPT_EPILOGUE
// What is read of the memory that is written is read before: a loop that does both is not taken as vectors.
#define DNNOPT_STORE_RUN(z, m, n, count, values) \
  do { \
    for (int lane = 0; lane < (count); ++lane) (values)[lane] = dnnopt_epilogue(DNNOPT_ARGUMENTS, z, m, (n) + lane, (values)[lane]); \
    for (int lane = 0; lane < (count); ++lane) dnnopt_put(DNNOPT_ARGUMENTS, z, m, (n) + lane, (values)[lane]); \
  } while (0)
#else
#define DNNOPT_STORE_RUN(z, m, n, count, values) \
  for (int lane = 0; lane < (count); ++lane) dnnopt_store(DNNOPT_ARGUMENTS, z, m, (n) + lane, (values)[lane])
#endif

// Positions are reduced in windows that lie side by side, DNNOPT_WINDOW_ROWS high and DNNOPT_WINDOW_COLUMNS wide, of
// DNNOPT_RUN_WIDTH positions in each row and DNNOPT_RUN_ROWS windows above one another: dnnopt_store returns what is taken,
// and dnnopt_store_window(z, m, window, value) ends one. Then a block holds DNNOPT_SPAN positions, whole rows of windows.
#ifndef DNNOPT_WINDOW_COLUMNS
#define DNNOPT_WINDOW_COLUMNS 0
#endif
#ifndef DNNOPT_SPAN
#define DNNOPT_SPAN DNNOPT_BLOCK_COLUMNS
#endif
// Vectors of a row of positions, whose rows begin with a vector then, and blocks with a row; 0: rows follow one another as
// they are staged.
#ifndef DNNOPT_ROW_VECTORS
#define DNNOPT_ROW_VECTORS 0
#endif
// Each column of the window has a phase of its own, in rows as long as the result's.
#ifndef DNNOPT_COLUMNS_APART
#define DNNOPT_COLUMNS_APART 0
#endif

#define DNNOPT_JOIN_(a, b) a##b
#define DNNOPT_JOIN(a, b) DNNOPT_JOIN_(a, b)
#define DNNOPT_FLOATS DNNOPT_JOIN(float, DNNOPT_VECTOR)
#define DNNOPT_LOAD_FLOATS DNNOPT_JOIN(vload, DNNOPT_VECTOR)
#define DNNOPT_STORE_FLOATS DNNOPT_JOIN(vstore, DNNOPT_VECTOR)
#define DNNOPT_COLUMNS (DNNOPT_VECTOR * DNNOPT_VECTORS)
#define DNNOPT_WINDOW (DNNOPT_KD * DNNOPT_KH * DNNOPT_KW)
// Phases along each dim, of which one element of the window reads one.
#define DNNOPT_PHASES_D (DNNOPT_KD > 1 ? DNNOPT_SD : 1)
#define DNNOPT_PHASES_H (DNNOPT_KH > 1 ? DNNOPT_SH : 1)
#define DNNOPT_PHASES_W (DNNOPT_KW > 1 ? (DNNOPT_COLUMNS_APART ? DNNOPT_KW : DNNOPT_SW) : 1)
#define DNNOPT_PHASES (DNNOPT_PHASES_D * DNNOPT_PHASES_H * DNNOPT_PHASES_W)
// Rows of a phase, of which its plane has DNNOPT_PITCH_ROWS, and what a window element is shifted by within its phase.
#define DNNOPT_PITCH (DNNOPT_OW + (DNNOPT_COLUMNS_APART ? 0 : (DNNOPT_KW - 1) * DNNOPT_DW / DNNOPT_SW))
#define DNNOPT_PITCH_ROWS (DNNOPT_OH + (DNNOPT_KH - 1) * DNNOPT_DH / DNNOPT_SH)
#define DNNOPT_SHIFT(kd, kh, kw) (((kd) * DNNOPT_DD / DNNOPT_SD * DNNOPT_PITCH_ROWS + (kh) * DNNOPT_DH / DNNOPT_SH) * DNNOPT_PITCH + (DNNOPT_COLUMNS_APART ? 0 : (kw) * DNNOPT_DW / DNNOPT_SW))
#define DNNOPT_REACH DNNOPT_SHIFT(DNNOPT_KD - 1, DNNOPT_KH - 1, DNNOPT_KW - 1)
#define DNNOPT_PHASE(kd, kh, kw) (((kd) * DNNOPT_DD % DNNOPT_SD * DNNOPT_PHASES_H + (kh) * DNNOPT_DH % DNNOPT_SH) * DNNOPT_PHASES_W + (DNNOPT_COLUMNS_APART ? (kw) : (kw) * DNNOPT_DW % DNNOPT_SW))
// Positions from a row to the next, and the last position that is stored, plus one.
#define DNNOPT_ROW_COLUMNS (DNNOPT_ROW_VECTORS > 0 ? DNNOPT_ROW_VECTORS * DNNOPT_VECTOR : DNNOPT_PITCH)
#define DNNOPT_POSITIONS (((DNNOPT_OD - 1) * DNNOPT_PITCH_ROWS + DNNOPT_OH - 1) * DNNOPT_ROW_COLUMNS + DNNOPT_OW)
// Where position n of a block, the first of a vector, is staged; those beyond the block's span are not stored.
#define DNNOPT_STAGED_AT(n) (DNNOPT_ROW_VECTORS > 0 ? min(n, DNNOPT_SPAN - DNNOPT_VECTOR) / DNNOPT_ROW_COLUMNS * DNNOPT_PITCH + min(n, DNNOPT_SPAN - DNNOPT_VECTOR) % DNNOPT_ROW_COLUMNS : (n))
#define DNNOPT_STAGED_END (DNNOPT_ROW_VECTORS > 0 ? (DNNOPT_SPAN / DNNOPT_ROW_COLUMNS - 1) * DNNOPT_PITCH + DNNOPT_ROW_COLUMNS : DNNOPT_BLOCK_COLUMNS)
// Staged elements per channel and phase: an odd number of vectors, so that channels do not share the sets of a cache.
#define DNNOPT_STAGED ((((DNNOPT_STAGED_END + DNNOPT_REACH + DNNOPT_VECTOR - 1) / DNNOPT_VECTOR) | 1) * DNNOPT_VECTOR)

// The elements j of a phase's row, `run` from w on, that lie in the image, in one dim: those before `first` and from
// `last` on are padding.
static inline int2 dnnopt_inside(const int w, const int run, const int phase) {
  const int first = min(max((max(DNNOPT_PW - phase, 0) + DNNOPT_SW - 1) / DNNOPT_SW - w, 0), run);
  return (int2)(first, min(max((DNNOPT_IW + DNNOPT_PW - phase + DNNOPT_SW - 1) / DNNOPT_SW - w, first), run));
}

// Channels c_begin .. c_begin + count - 1, all phases, from position `begin` on.
static inline void dnnopt_stage(DNNOPT_PARAMETERS, __local float* staged, const int z, const int c_begin, const int count, const int begin) {
  int at = 0;
  int w = begin % DNNOPT_PITCH;
  int h = begin / DNNOPT_PITCH % DNNOPT_PITCH_ROWS;
  int d = begin / DNNOPT_PITCH / DNNOPT_PITCH_ROWS;
  while (at < DNNOPT_STAGED) {
    const int run = min(DNNOPT_PITCH - w, DNNOPT_STAGED - at);
    for (int phase = 0; phase < DNNOPT_PHASES; ++phase) {
      const int phase_w = phase % DNNOPT_PHASES_W * (DNNOPT_COLUMNS_APART ? DNNOPT_DW : 1);
      const int image_d = d * DNNOPT_SD + phase / DNNOPT_PHASES_W / DNNOPT_PHASES_H - DNNOPT_PD;
      const int image_h = h * DNNOPT_SH + phase / DNNOPT_PHASES_W % DNNOPT_PHASES_H - DNNOPT_PH;
      const int image_w = w * DNNOPT_SW + phase_w - DNNOPT_PW;
      int2 inside = dnnopt_inside(w, run, phase_w);
      if (image_d < 0 || image_d >= DNNOPT_ID || image_h < 0 || image_h >= DNNOPT_IH) inside = (int2)(run, run);
      for (int c = 0; c < count; ++c) {
        __local float* to = staged + (c * DNNOPT_PHASES + phase) * DNNOPT_STAGED + at;
        for (int j = 0; j < inside.x; ++j) to[j] = 0.0f;
        for (int j = inside.x; j < inside.y; ++j) to[j] = dnnopt_load_x(DNNOPT_ARGUMENTS, z, c_begin + c, image_d, image_h, image_w + j * DNNOPT_SW);
        for (int j = inside.y; j < run; ++j) to[j] = 0.0f;
      }
    }
    at += run;
    w = 0;
    if (++h == DNNOPT_PITCH_ROWS) {
      h = 0;
      ++d;
    }
  }
}

#if DNNOPT_WINDOW_COLUMNS
#define DNNOPT_WINDOWS_WIDE (DNNOPT_RUN_WIDTH / DNNOPT_WINDOW_COLUMNS)
#define DNNOPT_WINDOWS (DNNOPT_SPAN / DNNOPT_ROW_COLUMNS / DNNOPT_WINDOW_ROWS * DNNOPT_WINDOWS_WIDE)
// Takes `width` positions of row h, from w on, into the windows of that row.
static inline void dnnopt_take_windows(DNNOPT_PARAMETERS, const int z, const int m, const int h, const int w, const int width, const float* values, __local float* taken) {
  const int position = h * DNNOPT_OW + w;
  int i = 0;
  while (i < width) {
    const int begun = (w + i) % DNNOPT_WINDOW_COLUMNS;
    const int whole = (width - i) / DNNOPT_WINDOW_COLUMNS;
    __local float* into = taken + (w + i) / DNNOPT_WINDOW_COLUMNS;
    if (begun == 0 && whole > 0) {
      for (int j = 0; j < whole; ++j) {
        float a = into[j];
        _Pragma("unroll") for (int k = 0; k < DNNOPT_WINDOW_COLUMNS; ++k) {
          const float x = dnnopt_store(DNNOPT_ARGUMENTS, z, m, position + i + j * DNNOPT_WINDOW_COLUMNS + k, values[i + j * DNNOPT_WINDOW_COLUMNS + k]);
          a = DNNOPT_TAKE(a, x);
        }
        into[j] = a;
      }
      i += whole * DNNOPT_WINDOW_COLUMNS;
    } else {
      const float a = into[0];
      const float x = dnnopt_store(DNNOPT_ARGUMENTS, z, m, position + i, values[i]);
      into[0] = DNNOPT_TAKE(a, x);
      ++i;
    }
  }
}
#endif

__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void dnnopt_kernel(DNNOPT_KERNEL_PARAMETERS) {
  const int z = (int)get_global_id(2);
  const int m_begin = (int)get_global_id(1) * DNNOPT_BLOCK_ROWS;
  const int n_begin = (int)get_global_id(0) * DNNOPT_SPAN;
  const int m_end = min(m_begin + DNNOPT_BLOCK_ROWS, (int)(DNNOPT_M));
  const int n_end = min(n_begin + DNNOPT_SPAN, (int)(DNNOPT_POSITIONS));
  __local float staged[DNNOPT_BLOCK_CHANNELS * DNNOPT_PHASES * DNNOPT_STAGED];
#if DNNOPT_BLOCK_CHANNELS < DNNOPT_C
  __local float partial[(DNNOPT_BLOCK_ROWS + DNNOPT_ROWS - 1) / DNNOPT_ROWS * DNNOPT_ROWS * DNNOPT_BLOCK_COLUMNS];
#endif
#if DNNOPT_TOTALS
  float totals[DNNOPT_BLOCK_ROWS * 16];
  for (int i = 0; i < (m_end - m_begin) * 16; ++i) totals[i] = DNNOPT_FIRST;
#endif
#if DNNOPT_WINDOW_COLUMNS
  __local float windows[DNNOPT_BLOCK_ROWS * DNNOPT_WINDOWS];
  for (int i = 0; i < DNNOPT_BLOCK_ROWS * DNNOPT_WINDOWS; ++i) windows[i] = DNNOPT_FIRST;
#endif
  float tile[DNNOPT_ROWS * DNNOPT_COLUMNS];
  for (int c_begin = 0; c_begin < DNNOPT_C; c_begin += DNNOPT_BLOCK_CHANNELS) {
    const int count = min(DNNOPT_BLOCK_CHANNELS, DNNOPT_C - c_begin);
    dnnopt_stage(DNNOPT_ARGUMENTS, staged, z, c_begin, count, n_begin / DNNOPT_ROW_COLUMNS * DNNOPT_PITCH + n_begin % DNNOPT_ROW_COLUMNS);
    // A panel of weights is read once from farther memory and then serves all positions of the block.
    for (int m = m_begin; m < m_end; m += DNNOPT_ROWS) {
      for (int n = n_begin; n < n_end; n += DNNOPT_COLUMNS) {
        __global const float* a = DNNOPT_A + ((DNNOPT_A_BATCH) * ((DNNOPT_M + DNNOPT_ROWS - 1) / DNNOPT_ROWS) + m / DNNOPT_ROWS) * (DNNOPT_C * DNNOPT_WINDOW * DNNOPT_ROWS) + c_begin * (DNNOPT_WINDOW * DNNOPT_ROWS);
        DNNOPT_FLOATS sum[DNNOPT_ROWS][DNNOPT_VECTORS];
#if DNNOPT_BLOCK_CHANNELS < DNNOPT_C
        __local float* kept = partial + (m - m_begin) * DNNOPT_BLOCK_COLUMNS + (n - n_begin) * DNNOPT_ROWS;
        if (c_begin != 0) {
          _Pragma("unroll") for (int r = 0; r < DNNOPT_ROWS; ++r)
            _Pragma("unroll") for (int v = 0; v < DNNOPT_VECTORS; ++v) sum[r][v] = DNNOPT_LOAD_FLOATS(r * DNNOPT_VECTORS + v, kept);
        } else
#endif
        {
          _Pragma("unroll") for (int r = 0; r < DNNOPT_ROWS; ++r)
            _Pragma("unroll") for (int v = 0; v < DNNOPT_VECTORS; ++v) sum[r][v] = (DNNOPT_FLOATS)(0.0f);
        }
        int starts[DNNOPT_VECTORS];
        _Pragma("unroll") for (int v = 0; v < DNNOPT_VECTORS; ++v) starts[v] = DNNOPT_STAGED_AT(n - n_begin + v * DNNOPT_VECTOR);
        __local const float* image = staged;
        for (int c = 0; c < count; ++c) {
          for (int k = 0; k < DNNOPT_KD * DNNOPT_KH; ++k) {
            __local const float* row = image + DNNOPT_SHIFT(k / DNNOPT_KH, k % DNNOPT_KH, 0) + DNNOPT_PHASE(k / DNNOPT_KH, k % DNNOPT_KH, 0) * DNNOPT_STAGED;
            _Pragma("unroll") for (int kw = 0; kw < DNNOPT_KW; ++kw) {
              DNNOPT_FLOATS column[DNNOPT_VECTORS];
              _Pragma("unroll") for (int v = 0; v < DNNOPT_VECTORS; ++v) column[v] = DNNOPT_LOAD_FLOATS(0, row + starts[v] + DNNOPT_SHIFT(0, 0, kw) + DNNOPT_PHASE(0, 0, kw) * DNNOPT_STAGED);
              _Pragma("unroll") for (int r = 0; r < DNNOPT_ROWS; ++r)
                _Pragma("unroll") for (int v = 0; v < DNNOPT_VECTORS; ++v) sum[r][v] = fma((DNNOPT_FLOATS)(a[kw * DNNOPT_ROWS + r]), column[v], sum[r][v]);
            }
            a += DNNOPT_KW * DNNOPT_ROWS;
          }
          image += DNNOPT_PHASES * DNNOPT_STAGED;
        }
#if DNNOPT_BLOCK_CHANNELS < DNNOPT_C
        if (c_begin + count < DNNOPT_C) {
          _Pragma("unroll") for (int r = 0; r < DNNOPT_ROWS; ++r)
            _Pragma("unroll") for (int v = 0; v < DNNOPT_VECTORS; ++v) DNNOPT_STORE_FLOATS(sum[r][v], r * DNNOPT_VECTORS + v, kept);
          continue;
        }
#endif
        _Pragma("unroll") for (int r = 0; r < DNNOPT_ROWS; ++r)
          _Pragma("unroll") for (int v = 0; v < DNNOPT_VECTORS; ++v) DNNOPT_STORE_FLOATS(sum[r][v], r * DNNOPT_VECTORS + v, tile);
        const int height = min(DNNOPT_ROWS, m_end - m);
        const int width = min(DNNOPT_COLUMNS, n_end - n);
        int j = 0;
        int w = n % DNNOPT_ROW_COLUMNS;
        int h = n / DNNOPT_ROW_COLUMNS % DNNOPT_PITCH_ROWS;
        int d = n / DNNOPT_ROW_COLUMNS / DNNOPT_PITCH_ROWS;
        while (j < width) {
#if DNNOPT_WINDOW_COLUMNS
          const int run = h < DNNOPT_RUN_ROWS * DNNOPT_WINDOW_ROWS ? min(DNNOPT_RUN_WIDTH - w, width - j) : 0;
          const int above = (h - n_begin / DNNOPT_ROW_COLUMNS) / DNNOPT_WINDOW_ROWS * DNNOPT_WINDOWS_WIDE;
          for (int r = 0; r < height; ++r)
            dnnopt_take_windows(DNNOPT_ARGUMENTS, z, m + r, h, w, run, tile + r * DNNOPT_COLUMNS + j, windows + (m + r - m_begin) * DNNOPT_WINDOWS + above);
#else
          const int run = h < DNNOPT_OH ? min(DNNOPT_OW - w, width - j) : 0;
          const int position = (d * DNNOPT_OH + h) * DNNOPT_OW + w;
          for (int r = 0; r < height; ++r) DNNOPT_STORE_RUN(z, m + r, position, run, tile + r * DNNOPT_COLUMNS + j);
#endif
          j += DNNOPT_ROW_COLUMNS - w;
          w = 0;
          if (++h == DNNOPT_PITCH_ROWS) {
            h = 0;
            ++d;
          }
        }
      }
    }
  }
#if DNNOPT_WINDOW_COLUMNS
  const int first_window = n_begin / DNNOPT_ROW_COLUMNS / DNNOPT_WINDOW_ROWS * DNNOPT_WINDOWS_WIDE;
  const int end_window = min(first_window + DNNOPT_WINDOWS, DNNOPT_RUN_ROWS * DNNOPT_WINDOWS_WIDE);
  for (int m = m_begin; m < m_end; ++m)
    for (int i = first_window; i < end_window; ++i) {
      const float a = windows[(m - m_begin) * DNNOPT_WINDOWS + i - first_window];
      dnnopt_store_window(DNNOPT_ARGUMENTS, z, m, i, DNNOPT_FINISH(a));
    }
#endif
#if DNNOPT_TOTALS
  for (int m = m_begin; m < m_end; ++m) {
    float total = DNNOPT_FIRST;
    for (int lane = 0; lane < 16; ++lane) total = DNNOPT_COMBINE(total, totals[(m - m_begin) * 16 + lane]);
    dnnopt_store_total(DNNOPT_ARGUMENTS, z, m, DNNOPT_FINISH(total));
  }
#endif
}
#ifdef __cplusplus
)CLC"
#endif
