#ifdef __cplusplus
R"CLC(
#endif
// Matrix product on devices whose work-items run one after the other with wide vectors (CPUs): one work-item per block of
// the result. It packs panels of the operands so that the inner loop reads both one after the other, and keeps a tile of
// DNNOPT_ROWS rows by DNNOPT_VECTORS vectors in registers. Convolutions are the product of weights and image patches.
//
//   result(z, m, n) = sum over k of a(z, m, k) * b(z, k, n);   dnnopt_store(z, m, n, result)
//
// With DNNOPT_STORE_BY_PANEL n comes as two numbers, panel and lane of n = panel * DNNOPT_COLUMNS + lane: an index that
// splits n (heads of an attention) then shows the compiler which lanes lie side by side.
//
// Hooks: dnnopt_load_a(z, m, k), dnnopt_load_b(z, k, n) (or dnnopt_load_x(z, c, d, h, w) of a convolution), dnnopt_store.
// DNNOPT_A_PACKED, DNNOPT_B_PACKED: the operand lies packed in memory at DNNOPT_A or DNNOPT_B, in the order of panels.
// DNNOPT_B_STRAIGHT: rows of b lie in memory as they are, dnnopt_row_b(z, k) being the first element of one and
// DNNOPT_B_STRIDE the distance to the next; they are read there, for N is at least a panel's width. With DNNOPT_B_PARTS
// the rows lie in several places: dnnopt_part_end(k) is the row behind those that lie beside row k.

#ifndef DNNOPT_PARAMETERS
// Stand-alone: plain row-major matrices.
#define DNNOPT_PARAMETERS __global const float* b0, __global const float* b1, __global float* b2, const int p0, const int p1, const int p2
#define DNNOPT_KERNEL_PARAMETERS DNNOPT_PARAMETERS
#define DNNOPT_ARGUMENTS b0, b1, b2, p0, p1, p2
#define DNNOPT_M p0
#define DNNOPT_N p1
#define DNNOPT_K p2
static inline float dnnopt_load_a(DNNOPT_PARAMETERS, const int z, const int m, const int k) { return b0[(z * p0 + m) * p2 + k]; }
static inline float dnnopt_load_b(DNNOPT_PARAMETERS, const int z, const int k, const int n) { return b1[(z * p2 + k) * p1 + n]; }
static inline void dnnopt_store(DNNOPT_PARAMETERS, const int z, const int m, const int n, float value) { b2[(z * p0 + m) * p1 + n] = value; }
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
// Rows and columns of the result per work-item, and inner elements packed at a time.
#ifndef DNNOPT_BLOCK_ROWS
#define DNNOPT_BLOCK_ROWS 64
#endif
#ifndef DNNOPT_BLOCK_COLUMNS
#define DNNOPT_BLOCK_COLUMNS 128
#endif
#ifndef DNNOPT_BLOCK_INNER
#define DNNOPT_BLOCK_INNER 256
#endif
// Whether all inner elements fit in one block: then no partial result is kept.
#ifndef DNNOPT_ONE_INNER_BLOCK
#define DNNOPT_ONE_INNER_BLOCK 0
#endif
#ifndef DNNOPT_A_PACKED
#define DNNOPT_A_PACKED 0
#endif
#ifndef DNNOPT_B_PACKED
#define DNNOPT_B_PACKED 0
#endif
#ifndef DNNOPT_B_STRAIGHT
#define DNNOPT_B_STRAIGHT 0
#endif
#ifndef DNNOPT_B_PARTS
#define DNNOPT_B_PARTS 0
#endif
// Whether dnnopt_pack_b is given, which dequantizes panels (unpack_codes.cl).
#ifndef DNNOPT_B_CODES
#define DNNOPT_B_CODES 0
#endif
// Whether neighbours of b in memory are neighbours in k rather than in n.
#ifndef DNNOPT_B_INNER_FIRST
#define DNNOPT_B_INNER_FIRST 0
#endif
#ifndef DNNOPT_CONVOLUTION
#define DNNOPT_CONVOLUTION 0
#endif

// Columns of a convolution are what windows of planes are reduced to (DNNOPT_POOL_..., DNNOPT_TAKE):
// dnnopt_load_window(z, c, d, h, w) is an element of the planes, dnnopt_finish_window(z, c, d, h, w, value) makes what
// the convolution reads there. A block holds all rows, so that each column is computed once.
#ifndef DNNOPT_STAGED
#define DNNOPT_STAGED 0
#endif

// Rows of a are normalized first: 1 by mean and deviation, 2 by root mean square. Then dnnopt_row_load(z, m, k) is the
// element before, and dnnopt_load_a takes the moments of the row as well.
#ifndef DNNOPT_ROW_MOMENTS
#define DNNOPT_ROW_MOMENTS 0
#endif

// Rows of the result are reduced as well: dnnopt_store returns what is taken, and dnnopt_store_total(z, m, value) ends a
// row. Then a block holds all columns.
#ifndef DNNOPT_TOTALS
#define DNNOPT_TOTALS 0
#endif
#ifndef DNNOPT_STORE_BY_PANEL
#define DNNOPT_STORE_BY_PANEL 0
#endif
#if DNNOPT_STORE_BY_PANEL
#define DNNOPT_COLUMN(n, lane) (n) / DNNOPT_COLUMNS, (lane)
#else
#define DNNOPT_COLUMN(n, lane) (n) + (lane)
#endif
// Stores `count` elements of row m from column n on, which begins a panel.
#if DNNOPT_TOTALS
// What is taken of a row runs in lanes side by side, so that the loop vectorizes.
#define DNNOPT_STORE_RUN(z, m, n, count, values) \
  for (int whole = 0; whole < (count); whole += 16) \
    for (int lane = 0; lane < min(16, (count) - whole); ++lane) { \
      const float x = dnnopt_store(DNNOPT_ARGUMENTS, z, m, DNNOPT_COLUMN(n, whole + lane), (values)[whole + lane]); \
      const float a = totals[((m) - m_begin) * 16 + lane]; \
      totals[((m) - m_begin) * 16 + lane] = DNNOPT_TAKE(a, x); \
    }
#elif DNNOPT_EPILOGUE
// What is read of the memory that is written is read before: a loop that does both is not taken as vectors.
#define DNNOPT_STORE_RUN(z, m, n, count, values) \
  do { \
    for (int lane = 0; lane < (count); ++lane) (values)[lane] = dnnopt_epilogue(DNNOPT_ARGUMENTS, z, m, DNNOPT_COLUMN(n, lane), (values)[lane]); \
    for (int lane = 0; lane < (count); ++lane) dnnopt_put(DNNOPT_ARGUMENTS, z, m, DNNOPT_COLUMN(n, lane), (values)[lane]); \
  } while (0)
#else
#define DNNOPT_STORE_RUN(z, m, n, count, values) \
  for (int lane = 0; lane < (count); ++lane) dnnopt_store(DNNOPT_ARGUMENTS, z, m, DNNOPT_COLUMN(n, lane), (values)[lane])
#endif

// Positions of a convolution's result are reduced in windows that lie side by side, DNNOPT_WINDOW_ROWS high and
// DNNOPT_WINDOW_COLUMNS wide: dnnopt_store returns what is taken, and dnnopt_store_window(z, m, window, value) ends one.
// Then DNNOPT_N counts the positions in the first rows of windows, DNNOPT_RUN_WIDTH in each of DNNOPT_RUN_ROWS such
// rows, and a block holds as many positions of each of its windows' rows.
#ifndef DNNOPT_WINDOW_COLUMNS
#define DNNOPT_WINDOW_COLUMNS 0
#define DNNOPT_WINDOW_ROWS 1
#define DNNOPT_RUN_WIDTH DNNOPT_OW
#define DNNOPT_RUN_ROWS DNNOPT_OH
#endif
#define DNNOPT_SPAN (DNNOPT_BLOCK_COLUMNS / DNNOPT_WINDOW_ROWS)
// From a block to the next, in whole register tiles: less than blocks may have where extents that only a run tells would
// leave cores without one.
#ifndef DNNOPT_STEP_ROWS
#define DNNOPT_STEP_ROWS DNNOPT_BLOCK_ROWS
#endif
#ifndef DNNOPT_STEP_COLUMNS
#define DNNOPT_STEP_COLUMNS DNNOPT_SPAN
#endif

#define DNNOPT_JOIN_(a, b) a##b
#define DNNOPT_JOIN(a, b) DNNOPT_JOIN_(a, b)
#define DNNOPT_FLOATS DNNOPT_JOIN(float, DNNOPT_VECTOR)
#define DNNOPT_LOAD_FLOATS DNNOPT_JOIN(vload, DNNOPT_VECTOR)
#define DNNOPT_STORE_FLOATS DNNOPT_JOIN(vstore, DNNOPT_VECTOR)
#define DNNOPT_COLUMNS (DNNOPT_VECTOR * DNNOPT_VECTORS)
// From one inner element of a panel of b to the next.
#if DNNOPT_B_STRAIGHT
#define DNNOPT_B_STEP DNNOPT_B_STRIDE
#else
#define DNNOPT_B_STEP DNNOPT_COLUMNS
#endif
#define DNNOPT_ROW_PANELS ((DNNOPT_BLOCK_ROWS + DNNOPT_ROWS - 1) / DNNOPT_ROWS)
#define DNNOPT_COLUMN_PANELS ((DNNOPT_BLOCK_COLUMNS + DNNOPT_COLUMNS - 1) / DNNOPT_COLUMNS)

// Sixteen lanes l as one vector: left alone, compilers unroll rows of a few vectors and end them one by one.
#define DNNOPT_FOR_LANES _Pragma("clang loop unroll(disable) vectorize_width(16) interleave_count(1)") for (int l = 0; l < 16; ++l)

#if DNNOPT_ROW_MOMENTS
// The mean of row m (0 where only the root mean square counts) and the reciprocal of its deviation, in two passes. Sums
// run in lanes side by side, so that the loops vectorize.
static inline float2 dnnopt_moments(DNNOPT_PARAMETERS, const int z, const int m, const int length) {
  float lanes[16];
  float mean = 0.0f;
  const int whole = length / 16 * 16;
#if DNNOPT_ROW_MOMENTS == 1
  for (int l = 0; l < 16; ++l) lanes[l] = 0.0f;
  for (int k = 0; k < whole; k += 16)
    DNNOPT_FOR_LANES lanes[l] += dnnopt_row_load(DNNOPT_ARGUMENTS, z, m, k + l);
  for (int k = whole; k < length; ++k) lanes[k - whole] += dnnopt_row_load(DNNOPT_ARGUMENTS, z, m, k);
  for (int l = 0; l < 16; ++l) mean += lanes[l];
  mean /= (float)length;
#endif
  for (int l = 0; l < 16; ++l) lanes[l] = 0.0f;
  for (int k = 0; k < whole; k += 16)
    DNNOPT_FOR_LANES {
      const float d = dnnopt_row_load(DNNOPT_ARGUMENTS, z, m, k + l) - mean;
      lanes[l] = fma(d, d, lanes[l]);
    }
  for (int k = whole; k < length; ++k) {
    const float d = dnnopt_row_load(DNNOPT_ARGUMENTS, z, m, k) - mean;
    lanes[k - whole] = fma(d, d, lanes[k - whole]);
  }
  float squares = 0.0f;
  for (int l = 0; l < 16; ++l) squares += lanes[l];
  return (float2)(mean, 1.0f / sqrt(squares / (float)length + DNNOPT_EPSILON));
}
#define DNNOPT_LOAD_ROW(z, m, k) dnnopt_load_a(DNNOPT_ARGUMENTS, z, m, k, row_moments)
#define DNNOPT_MOMENTS_PARAMETER , const float2* moments
#define DNNOPT_MOMENTS_ARGUMENT , moments
#else
#define DNNOPT_LOAD_ROW(z, m, k) dnnopt_load_a(DNNOPT_ARGUMENTS, z, m, k)
#define DNNOPT_MOMENTS_PARAMETER
#define DNNOPT_MOMENTS_ARGUMENT
#endif

#if !DNNOPT_A_PACKED
// Rows m_begin .. m_end - 1 of inner elements k_begin .. k_begin + count - 1, in panels of DNNOPT_ROWS rows, k outermost.
static inline void dnnopt_pack_a(DNNOPT_PARAMETERS, __local float* packed, const int z, const int m_begin, const int m_end, const int k_begin, const int count DNNOPT_MOMENTS_PARAMETER) {
  for (int m = m_begin; m < m_end; m += DNNOPT_ROWS) {
    __local float* panel = packed + (m - m_begin) / DNNOPT_ROWS * (DNNOPT_ROWS * count);
    for (int r = 0; r < DNNOPT_ROWS; ++r) {
      if (m + r < m_end) {
#if DNNOPT_ROW_MOMENTS
        const float2 row_moments = moments[m + r - m_begin];
#endif
        for (int k = 0; k < count; ++k) panel[k * DNNOPT_ROWS + r] = DNNOPT_LOAD_ROW(z, m + r, k_begin + k);
      } else {
        for (int k = 0; k < count; ++k) panel[k * DNNOPT_ROWS + r] = 0.0f;
      }
    }
  }
}
#endif

#if DNNOPT_CONVOLUTION && !DNNOPT_B_STRAIGHT
// Zeros behind the last of `columns` columns, in its panel's inner element k of `count`.
static inline void dnnopt_fill_panel(__local float* packed, const int columns, const int k, const int count) {
  const int filled = columns % DNNOPT_COLUMNS;
  if (filled != 0) {
    __local float* to = packed + (columns / DNNOPT_COLUMNS * count + k) * DNNOPT_COLUMNS;
    for (int j = filled; j < DNNOPT_COLUMNS; ++j) to[j] = 0.0f;
  }
}
#endif

#if !DNNOPT_B_PACKED && !DNNOPT_B_STRAIGHT && !DNNOPT_B_CODES && !DNNOPT_CONVOLUTION
// Columns n_begin .. n_end - 1 in panels of DNNOPT_COLUMNS columns, k outermost.
static inline void dnnopt_pack_b(DNNOPT_PARAMETERS, __local float* packed, const int z, const int n_begin, const int n_end, const int k_begin, const int count) {
  for (int n = n_begin; n < n_end; n += DNNOPT_COLUMNS) {
    __local float* panel = packed + (n - n_begin) / DNNOPT_COLUMNS * (DNNOPT_COLUMNS * count);
    const int width = min(DNNOPT_COLUMNS, n_end - n);
#if DNNOPT_B_INNER_FIRST
    for (int j = 0; j < width; ++j)
      for (int k = 0; k < count; ++k) panel[k * DNNOPT_COLUMNS + j] = dnnopt_load_b(DNNOPT_ARGUMENTS, z, k_begin + k, n + j);
#else
    for (int k = 0; k < count; ++k)
      for (int j = 0; j < width; ++j) panel[k * DNNOPT_COLUMNS + j] = dnnopt_load_b(DNNOPT_ARGUMENTS, z, k_begin + k, n + j);
#endif
    for (int j = width; j < DNNOPT_COLUMNS; ++j)
      for (int k = 0; k < count; ++k) panel[k * DNNOPT_COLUMNS + j] = 0.0f;
  }
}
#endif

#if !DNNOPT_B_PACKED && DNNOPT_STAGED
// What a window of a row reaches beyond its first element, in elements of a phase (those of equal remainder by the stride).
#define DNNOPT_POOL_SHIFT ((DNNOPT_POOL_KW - 1) * DNNOPT_POOL_DW / DNNOPT_POOL_SW)
// Elements of a phase, in whole vectors.
#define DNNOPT_POOL_PHASE ((DNNOPT_BLOCK_COLUMNS + DNNOPT_POOL_SHIFT + 15) / 16 * 16 + 16)

// An element of a line: the elements of a window's column, taken together.
static inline float dnnopt_take_rows(DNNOPT_PARAMETERS, const int z, const int c, const int d, const int h, const int w) {
  float a = DNNOPT_FIRST;
  _Pragma("unroll") for (int kd = 0; kd < DNNOPT_POOL_KD; ++kd)
    _Pragma("unroll") for (int kh = 0; kh < DNNOPT_POOL_KH; ++kh) {
      const float x = dnnopt_load_window(DNNOPT_ARGUMENTS, z, c, d + kd * DNNOPT_POOL_DD, h + kh * DNNOPT_POOL_DH, w);
      a = DNNOPT_TAKE(a, x);
    }
  return a;
}

// The phases of a line, as far as `count` windows read them.
static inline void dnnopt_part_line(const float* line, float* phases, const int count) {
  for (int j = 0; j < count + DNNOPT_POOL_SHIFT; j += 16) {
#if DNNOPT_POOL_SW == 2
    const float16 a = vload16(0, line + 2 * j);
    const float16 b = vload16(0, line + 2 * j + 16);
    vstore16((float16)(a.even, b.even), 0, phases + j);
    vstore16((float16)(a.odd, b.odd), 0, phases + DNNOPT_POOL_PHASE + j);
#else
    for (int phase = 0; phase < DNNOPT_POOL_SW; ++phase)
      for (int l = 0; l < 16; ++l) phases[phase * DNNOPT_POOL_PHASE + j + l] = line[(j + l) * DNNOPT_POOL_SW + phase];
#endif
  }
}

// What windows of planes are reduced to as columns: k counts channels, n counts the windows. Per row of windows the rows
// of the plane are taken into a line, and then the elements of the line into the windows.
static inline void dnnopt_pack_b(DNNOPT_PARAMETERS, __local float* packed, const int z, const int n_begin, const int n_end, const int k_begin, const int count, const int window_row) {
  // Lanes before a line's begin are those of a short row's vector, which must lie in the plane.
  float lanes[16 + DNNOPT_POOL_PHASE * DNNOPT_POOL_SW];
  float* line = lanes + 16;
#if DNNOPT_POOL_SW > 1
  float phases[DNNOPT_POOL_PHASE * DNNOPT_POOL_SW];
#else
  const float* phases = line;
#endif
  float pooled[DNNOPT_POOL_PHASE];
  for (int n = n_begin; n < n_end;) {
    const int ow = n % DNNOPT_POOL_OW;
    const int oh = n / DNNOPT_POOL_OW % DNNOPT_POOL_OH;
    const int od = n / DNNOPT_POOL_OW / DNNOPT_POOL_OH;
    const int run = min(DNNOPT_POOL_OW - ow, n_end - n);
    const int reach = (run - 1) * DNNOPT_POOL_SW + (DNNOPT_POOL_KW - 1) * DNNOPT_POOL_DW + 1;
    const int d = od * DNNOPT_POOL_SD - DNNOPT_POOL_PD;
    const int h = oh * DNNOPT_POOL_SH - DNNOPT_POOL_PH;
    const int w = ow * DNNOPT_POOL_SW - DNNOPT_POOL_PW;
    const int first = clamp(-w, 0, reach);
    const int last = clamp(DNNOPT_POOL_IW - w, first, reach);
    // Whether the windows have all their rows in the plane.
    const int inside = d >= 0 && d + (DNNOPT_POOL_KD - 1) * DNNOPT_POOL_DD < DNNOPT_POOL_ID && h >= 0 && h + (DNNOPT_POOL_KH - 1) * DNNOPT_POOL_DH < DNNOPT_POOL_IH;
    const int vectors = DNNOPT_POOL_IW >= 16;
    for (int k = 0; k < count; ++k) {
      const int c = k_begin + k;
      if (inside && vectors && first < last) {
        // The last vector begins earlier where it would end beyond the plane's row.
        const int end = min(max(last, first + 16), DNNOPT_POOL_IW - w);
        for (int i = min(first, end - 16); i < end; i += 16) {
          const int at = min(i, end - 16);
          DNNOPT_FOR_LANES line[at + l] = dnnopt_take_rows(DNNOPT_ARGUMENTS, z, c, d, h, w + at + l);
        }
      } else {
        for (int i = first; i < last; ++i) line[i] = DNNOPT_FIRST;
        for (int id = d; id < d + DNNOPT_POOL_KD * DNNOPT_POOL_DD; id += DNNOPT_POOL_DD)
          for (int ih = h; ih < h + DNNOPT_POOL_KH * DNNOPT_POOL_DH; ih += DNNOPT_POOL_DH) {
            if (id < 0 || id >= DNNOPT_POOL_ID || ih < 0 || ih >= DNNOPT_POOL_IH) continue;
            for (int i = first; i < last; ++i) {
              const float x = dnnopt_load_window(DNNOPT_ARGUMENTS, z, c, id, ih, w + i);
              line[i] = DNNOPT_TAKE(line[i], x);
            }
          }
      }
      for (int i = 0; i < first; ++i) line[i] = DNNOPT_FIRST;
      for (int i = last; i < reach; ++i) line[i] = DNNOPT_FIRST;
#if DNNOPT_POOL_SW > 1
      dnnopt_part_line(line, phases, run);
#endif
      for (int j = 0; j < run; j += 16)
        DNNOPT_FOR_LANES {
          float a = phases[j + l];
          _Pragma("unroll") for (int kw = 1; kw < DNNOPT_POOL_KW; ++kw) {
            const float x = phases[kw * DNNOPT_POOL_DW % DNNOPT_POOL_SW * DNNOPT_POOL_PHASE + kw * DNNOPT_POOL_DW / DNNOPT_POOL_SW + j + l];
            a = DNNOPT_COMBINE(a, x);
          }
          pooled[j + l] = a;
        }
      for (int j = 0; j < run;) {
        const int column = (n - n_begin + j) % DNNOPT_COLUMNS;
        __local float* to = packed + ((n - n_begin + j) / DNNOPT_COLUMNS * count + k) * DNNOPT_COLUMNS + column;
        const int width = min(run - j, DNNOPT_COLUMNS - column);
        if (width >= 16) {
          for (int i = 0; i < width; i += 16) {
            const int at = min(i, width - 16);
            DNNOPT_FOR_LANES to[at + l] = dnnopt_finish_window(DNNOPT_ARGUMENTS, z, c, od, oh, ow + j + at + l, pooled[j + at + l]);
          }
        } else {
          for (int i = 0; i < width; ++i) to[i] = dnnopt_finish_window(DNNOPT_ARGUMENTS, z, c, od, oh, ow + j + i, pooled[j + i]);
        }
        j += width;
      }
    }
    n += run;
  }
  for (int k = 0; k < count; ++k) dnnopt_fill_panel(packed, n_end - n_begin, k, count);
}
#endif

#if !DNNOPT_B_PACKED && !DNNOPT_B_STRAIGHT && DNNOPT_CONVOLUTION && !DNNOPT_STAGED
// Image patches as columns: k counts (channel, window element), n counts output positions. Runs of positions in one
// output row read the image one after the other; what lies in the padding is zero.
static inline void dnnopt_pack_b(DNNOPT_PARAMETERS, __local float* packed, const int z, const int n_begin, const int n_end, const int k_begin, const int count, const int window_row) {
  for (int k = 0; k < count; ++k) {
    int rest = k_begin + k;
    const int kw = rest % DNNOPT_KW;
    rest /= DNNOPT_KW;
    const int kh = rest % DNNOPT_KH;
    rest /= DNNOPT_KH;
    const int kd = rest % DNNOPT_KD;
    const int c = rest / DNNOPT_KD;
    int n = n_begin;
    int ow = n % DNNOPT_RUN_WIDTH;
    int oh = n / DNNOPT_RUN_WIDTH % DNNOPT_RUN_ROWS;
    int od = n / DNNOPT_RUN_WIDTH / DNNOPT_RUN_ROWS;
    while (n < n_end) {
      const int column = (n - n_begin) % DNNOPT_COLUMNS;
      __local float* to = packed + ((n - n_begin) / DNNOPT_COLUMNS * count + k) * DNNOPT_COLUMNS + column;
      const int run = min(min(DNNOPT_RUN_WIDTH - ow, n_end - n), DNNOPT_COLUMNS - column);
      const int d = od * DNNOPT_SD + kd * DNNOPT_DD - DNNOPT_PD;
      const int h = (oh * DNNOPT_WINDOW_ROWS + window_row) * DNNOPT_SH + kh * DNNOPT_DH - DNNOPT_PH;
      const int w = ow * DNNOPT_SW + kw * DNNOPT_DW - DNNOPT_PW;
      int first = w < 0 ? min((-w + DNNOPT_SW - 1) / DNNOPT_SW, run) : 0;
      int last = w < DNNOPT_IW ? min((DNNOPT_IW - w + DNNOPT_SW - 1) / DNNOPT_SW, run) : 0;
      if (d < 0 || d >= DNNOPT_ID || h < 0 || h >= DNNOPT_IH || last < first) {
        first = run;
        last = run;
      }
      for (int j = 0; j < first; ++j) to[j] = 0.0f;
      for (int j = first; j < last; ++j) to[j] = dnnopt_load_x(DNNOPT_ARGUMENTS, z, c, d, h, w + j * DNNOPT_SW);
      for (int j = last; j < run; ++j) to[j] = 0.0f;
      n += run;
      ow += run;
      if (ow == DNNOPT_RUN_WIDTH) {
        ow = 0;
        if (++oh == DNNOPT_RUN_ROWS) {
          oh = 0;
          ++od;
        }
      }
    }
    dnnopt_fill_panel(packed, n_end - n_begin, k, count);
  }
}
#endif

#if DNNOPT_WINDOW_COLUMNS
// Takes `width` positions of one row of windows, from n on, into those windows.
static inline void dnnopt_take_windows(DNNOPT_PARAMETERS, const int z, const int m, const int n, const int window_row, const int width, const float* values, __local float* taken) {
  for (int j = 0; j < width / DNNOPT_WINDOW_COLUMNS; ++j) {
    float a = taken[j];
    _Pragma("unroll") for (int i = 0; i < DNNOPT_WINDOW_COLUMNS; ++i) {
      const int at = n + j * DNNOPT_WINDOW_COLUMNS + i;
      const int position = (at / DNNOPT_RUN_WIDTH * DNNOPT_WINDOW_ROWS + window_row) * DNNOPT_OW + at % DNNOPT_RUN_WIDTH;
      const float x = dnnopt_store(DNNOPT_ARGUMENTS, z, m, position, values[j * DNNOPT_WINDOW_COLUMNS + i]);
      a = DNNOPT_TAKE(a, x);
    }
    taken[j] = a;
  }
}
#endif

__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void dnnopt_kernel(DNNOPT_KERNEL_PARAMETERS) {
  const int z = (int)get_global_id(2);
  const int step_rows = DNNOPT_STEP_ROWS;
  const int step_columns = DNNOPT_STEP_COLUMNS;
  const int m_begin = (int)get_global_id(1) * step_rows;
  const int n_begin = (int)get_global_id(0) * step_columns;
  const int m_end = min(m_begin + step_rows, (int)(DNNOPT_M));
  const int n_end = min(n_begin + step_columns, (int)(DNNOPT_N));
  const int inner = DNNOPT_K;
#if !DNNOPT_A_PACKED
  __local float a_block[DNNOPT_ROW_PANELS * DNNOPT_ROWS * DNNOPT_BLOCK_INNER];
#endif
#if !DNNOPT_B_PACKED && !DNNOPT_B_STRAIGHT
  __local float b_block[DNNOPT_COLUMN_PANELS * DNNOPT_COLUMNS * DNNOPT_BLOCK_INNER];
#endif
#if !DNNOPT_ONE_INNER_BLOCK
  __local float partial[DNNOPT_ROW_PANELS * DNNOPT_ROWS * DNNOPT_COLUMN_PANELS * DNNOPT_COLUMNS];
#endif
  float tile[DNNOPT_ROWS * DNNOPT_COLUMNS];
#if DNNOPT_WINDOW_COLUMNS
  __local float windows[DNNOPT_ROW_PANELS * DNNOPT_ROWS * (DNNOPT_SPAN / DNNOPT_WINDOW_COLUMNS)];
  for (int i = 0; i < DNNOPT_ROW_PANELS * DNNOPT_ROWS * (DNNOPT_SPAN / DNNOPT_WINDOW_COLUMNS); ++i) windows[i] = DNNOPT_FIRST;
#endif
#if DNNOPT_TOTALS
  float totals[DNNOPT_ROW_PANELS * DNNOPT_ROWS * 16];
  for (int i = 0; i < (m_end - m_begin) * 16; ++i) totals[i] = DNNOPT_FIRST;
#endif
#if DNNOPT_ROW_MOMENTS
  float2 moments[DNNOPT_ROW_PANELS * DNNOPT_ROWS];
  for (int m = m_begin; m < m_end; ++m) moments[m - m_begin] = dnnopt_moments(DNNOPT_ARGUMENTS, z, m, inner);
#endif
  int k_begin = 0;
  do {
    const int count = min(DNNOPT_BLOCK_INNER, inner - k_begin);
#if !DNNOPT_A_PACKED
    dnnopt_pack_a(DNNOPT_ARGUMENTS, a_block, z, m_begin, m_end, k_begin, count DNNOPT_MOMENTS_ARGUMENT);
#endif
#if !DNNOPT_B_PACKED && !DNNOPT_B_STRAIGHT && DNNOPT_CONVOLUTION
    for (int window_row = 0; window_row < DNNOPT_WINDOW_ROWS; ++window_row)
      dnnopt_pack_b(DNNOPT_ARGUMENTS, b_block + window_row * DNNOPT_SPAN * count, z, n_begin, n_end, k_begin, count, window_row);
#elif !DNNOPT_B_PACKED && !DNNOPT_B_STRAIGHT
    dnnopt_pack_b(DNNOPT_ARGUMENTS, b_block, z, n_begin, n_end, k_begin, count);
#endif
    for (int window_row = 0; window_row < DNNOPT_WINDOW_ROWS; ++window_row)
    for (int n = n_begin; n < n_end; n += DNNOPT_COLUMNS) {
#if DNNOPT_B_STRAIGHT
      // The last panel begins where it still lies within the row; what it has in common with the one before is not
      // stored again.
      const int skipped = max(n + DNNOPT_COLUMNS - (int)(DNNOPT_N), 0);
      __global const float* b_panel = dnnopt_row_b(DNNOPT_ARGUMENTS, z, k_begin) + (n - skipped);
#elif DNNOPT_B_PACKED
      __global const float* b_panel = DNNOPT_B + ((DNNOPT_B_BATCH) * (((DNNOPT_N) + DNNOPT_COLUMNS - 1) / DNNOPT_COLUMNS) + n / DNNOPT_COLUMNS) * (inner * DNNOPT_COLUMNS) + k_begin * DNNOPT_COLUMNS;
#else
      __local const float* b_panel = b_block + (n - n_begin + window_row * DNNOPT_SPAN) * count;
#endif
      for (int m = m_begin; m < m_end; m += DNNOPT_ROWS) {
#if DNNOPT_A_PACKED
        __global const float* a = DNNOPT_A + ((DNNOPT_A_BATCH) * (((DNNOPT_M) + DNNOPT_ROWS - 1) / DNNOPT_ROWS) + m / DNNOPT_ROWS) * (inner * DNNOPT_ROWS) + k_begin * DNNOPT_ROWS;
#else
        __local const float* a = a_block + (m - m_begin) * count;
#endif
#if DNNOPT_B_PACKED || DNNOPT_B_STRAIGHT
        __global const float* b = b_panel;
#else
        __local const float* b = b_panel;
#endif
        DNNOPT_FLOATS sum[DNNOPT_ROWS][DNNOPT_VECTORS];
#if !DNNOPT_ONE_INNER_BLOCK
        __local float* kept = partial + (m - m_begin) * (DNNOPT_COLUMN_PANELS * DNNOPT_COLUMNS) + (n - n_begin + window_row * DNNOPT_SPAN) * DNNOPT_ROWS;
        if (k_begin != 0) {
          _Pragma("unroll") for (int r = 0; r < DNNOPT_ROWS; ++r)
            _Pragma("unroll") for (int v = 0; v < DNNOPT_VECTORS; ++v) sum[r][v] = DNNOPT_LOAD_FLOATS(r * DNNOPT_VECTORS + v, kept);
        } else
#endif
        {
          _Pragma("unroll") for (int r = 0; r < DNNOPT_ROWS; ++r)
            _Pragma("unroll") for (int v = 0; v < DNNOPT_VECTORS; ++v) sum[r][v] = (DNNOPT_FLOATS)(0.0f);
        }
#if DNNOPT_B_PARTS
        for (int part = 0, end = 0; part < count; part = end) {
        end = min(dnnopt_part_end(k_begin + part) - k_begin, count);
        b = dnnopt_row_b(DNNOPT_ARGUMENTS, z, k_begin + part) + (n - skipped);
        for (int k = part; k < end; ++k) {
#else
        {
        for (int k = 0; k < count; ++k) {
#endif
          DNNOPT_FLOATS column[DNNOPT_VECTORS];
          _Pragma("unroll") for (int v = 0; v < DNNOPT_VECTORS; ++v) column[v] = DNNOPT_LOAD_FLOATS(v, b);
          _Pragma("unroll") for (int r = 0; r < DNNOPT_ROWS; ++r)
            _Pragma("unroll") for (int v = 0; v < DNNOPT_VECTORS; ++v) sum[r][v] = fma((DNNOPT_FLOATS)(a[r]), column[v], sum[r][v]);
          a += DNNOPT_ROWS;
          b += DNNOPT_B_STEP;
        }
        }
#if !DNNOPT_ONE_INNER_BLOCK
        if (k_begin + count < inner) {
          _Pragma("unroll") for (int r = 0; r < DNNOPT_ROWS; ++r)
            _Pragma("unroll") for (int v = 0; v < DNNOPT_VECTORS; ++v) DNNOPT_STORE_FLOATS(sum[r][v], r * DNNOPT_VECTORS + v, kept);
          continue;
        }
#endif
        _Pragma("unroll") for (int r = 0; r < DNNOPT_ROWS; ++r)
          _Pragma("unroll") for (int v = 0; v < DNNOPT_VECTORS; ++v) DNNOPT_STORE_FLOATS(sum[r][v], r * DNNOPT_VECTORS + v, tile);
        const int height = min(DNNOPT_ROWS, m_end - m);
#if DNNOPT_WINDOW_COLUMNS
        __local float* taken = windows + (m - m_begin) * (DNNOPT_SPAN / DNNOPT_WINDOW_COLUMNS) + (n - n_begin) / DNNOPT_WINDOW_COLUMNS;
        if (n + DNNOPT_COLUMNS <= n_end) {
          for (int r = 0; r < height; ++r)
            dnnopt_take_windows(DNNOPT_ARGUMENTS, z, m + r, n, window_row, DNNOPT_COLUMNS, tile + r * DNNOPT_COLUMNS, taken + r * (DNNOPT_SPAN / DNNOPT_WINDOW_COLUMNS));
        } else {
          for (int r = 0; r < height; ++r)
            dnnopt_take_windows(DNNOPT_ARGUMENTS, z, m + r, n, window_row, n_end - n, tile + r * DNNOPT_COLUMNS, taken + r * (DNNOPT_SPAN / DNNOPT_WINDOW_COLUMNS));
        }
#else
        if (n + DNNOPT_COLUMNS <= n_end) {
          for (int r = 0; r < height; ++r) DNNOPT_STORE_RUN(z, m + r, n, DNNOPT_COLUMNS, tile + r * DNNOPT_COLUMNS);
        } else {
#if DNNOPT_B_STRAIGHT
          float* from = tile + skipped;
#else
          float* from = tile;
#endif
          for (int r = 0; r < height; ++r) DNNOPT_STORE_RUN(z, m + r, n, n_end - n, from + r * DNNOPT_COLUMNS);
        }
#endif
      }
    }
    k_begin += count;
  } while (k_begin < inner);
#if DNNOPT_WINDOW_COLUMNS
  for (int m = m_begin; m < m_end; ++m)
    for (int n = n_begin / DNNOPT_WINDOW_COLUMNS; n < n_end / DNNOPT_WINDOW_COLUMNS; ++n)
      dnnopt_store_window(DNNOPT_ARGUMENTS, z, m, n, DNNOPT_FINISH(windows[(m - m_begin) * (DNNOPT_SPAN / DNNOPT_WINDOW_COLUMNS) + n - n_begin / DNNOPT_WINDOW_COLUMNS]));
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
