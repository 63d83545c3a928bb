#ifdef __cplusplus
R"CLC(
#endif
// The panels of a product on devices with wide vectors (matrix_panels.cl): their sizes, and how both operands come there.
//
// A panel of a is DNNOPT_ROWS rows, one of b DNNOPT_COLUMNS columns, with the inner elements k outermost, so that the
// product reads both one after the other. Columns of b are those of a matrix, patches of an image, or what windows of
// planes are reduced to.
//
// Hooks: dnnopt_load_a(z, m, k), dnnopt_load_b(z, k, n) (or dnnopt_load_x(z, c, d, h, w) of a convolution).
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
#ifdef __cplusplus
)CLC"
#endif
