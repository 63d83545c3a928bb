#ifdef __cplusplus
R"CLC(
#endif
// Matrix product on devices whose work-items run one after the other with wide vectors (CPUs): one work-item per block of
// the result. It packs panels of the operands so that the inner loop reads both one after the other, and keeps a tile of
// DNNOPT_ROWS rows by DNNOPT_VECTORS vectors in registers. Convolutions are the product of weights and image patches.
//
//   result(z, m, n) = sum over k of a(z, m, k) * b(z, k, n);   dnnopt_store(z, m, n, result)
//
// Hooks: dnnopt_load_a(z, m, k), dnnopt_load_b(z, k, n) (or dnnopt_load_x(z, c, d, h, w) of a convolution), dnnopt_store.
// DNNOPT_A_PACKED, DNNOPT_B_PACKED: the operand lies packed in memory at DNNOPT_A or DNNOPT_B, in the order of panels.

#ifndef DNNOPT_PARAMETERS
// Stand-alone: plain row-major matrices.
#define DNNOPT_PARAMETERS __global const float* restrict b0, __global const float* restrict b1, __global float* restrict b2, const int p0, const int p1, const int p2
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
// Whether neighbours of b in memory are neighbours in k rather than in n.
#ifndef DNNOPT_B_INNER_FIRST
#define DNNOPT_B_INNER_FIRST 0
#endif
#ifndef DNNOPT_CONVOLUTION
#define DNNOPT_CONVOLUTION 0
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
#if DNNOPT_TOTALS
#define DNNOPT_STORE(z, m, n, value) totals[(m) - m_begin] = DNNOPT_TAKE(totals[(m) - m_begin], dnnopt_store(DNNOPT_ARGUMENTS, z, m, n, value))
#else
#define DNNOPT_STORE(z, m, n, value) dnnopt_store(DNNOPT_ARGUMENTS, z, m, n, value)
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
#define DNNOPT_ROW_PANELS ((DNNOPT_BLOCK_ROWS + DNNOPT_ROWS - 1) / DNNOPT_ROWS)
#define DNNOPT_COLUMN_PANELS ((DNNOPT_BLOCK_COLUMNS + DNNOPT_COLUMNS - 1) / DNNOPT_COLUMNS)

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
    for (int l = 0; l < 16; ++l) lanes[l] += dnnopt_row_load(DNNOPT_ARGUMENTS, z, m, k + l);
  for (int k = whole; k < length; ++k) lanes[k - whole] += dnnopt_row_load(DNNOPT_ARGUMENTS, z, m, k);
  for (int l = 0; l < 16; ++l) mean += lanes[l];
  mean /= (float)length;
#endif
  for (int l = 0; l < 16; ++l) lanes[l] = 0.0f;
  for (int k = 0; k < whole; k += 16)
    for (int l = 0; l < 16; ++l) {
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

#if !DNNOPT_B_PACKED && !DNNOPT_CONVOLUTION
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

#if !DNNOPT_B_PACKED && DNNOPT_CONVOLUTION
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
    const int filled = (n_end - n_begin) % DNNOPT_COLUMNS;
    if (filled != 0) {
      __local float* to = packed + ((n_end - n_begin) / DNNOPT_COLUMNS * count + k) * DNNOPT_COLUMNS;
      for (int j = filled; j < DNNOPT_COLUMNS; ++j) to[j] = 0.0f;
    }
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

__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void dnnopt_kernel(DNNOPT_PARAMETERS) {
  const int z = (int)get_global_id(2);
  const int m_begin = (int)get_global_id(1) * DNNOPT_BLOCK_ROWS;
  const int n_begin = (int)get_global_id(0) * DNNOPT_SPAN;
  const int m_end = min(m_begin + DNNOPT_BLOCK_ROWS, (int)(DNNOPT_M));
  const int n_end = min(n_begin + DNNOPT_SPAN, (int)(DNNOPT_N));
  const int inner = DNNOPT_K;
#if !DNNOPT_A_PACKED
  __local float a_block[DNNOPT_ROW_PANELS * DNNOPT_ROWS * DNNOPT_BLOCK_INNER];
#endif
#if !DNNOPT_B_PACKED
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
  float totals[DNNOPT_ROW_PANELS * DNNOPT_ROWS];
  for (int m = m_begin; m < m_end; ++m) totals[m - m_begin] = DNNOPT_FIRST;
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
#if !DNNOPT_B_PACKED && DNNOPT_CONVOLUTION
    for (int window_row = 0; window_row < DNNOPT_WINDOW_ROWS; ++window_row)
      dnnopt_pack_b(DNNOPT_ARGUMENTS, b_block + window_row * DNNOPT_SPAN * count, z, n_begin, n_end, k_begin, count, window_row);
#elif !DNNOPT_B_PACKED
    dnnopt_pack_b(DNNOPT_ARGUMENTS, b_block, z, n_begin, n_end, k_begin, count);
#endif
    for (int window_row = 0; window_row < DNNOPT_WINDOW_ROWS; ++window_row)
    for (int n = n_begin; n < n_end; n += DNNOPT_COLUMNS) {
#if DNNOPT_B_PACKED
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
#if DNNOPT_B_PACKED
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
        for (int k = 0; k < count; ++k) {
          DNNOPT_FLOATS column[DNNOPT_VECTORS];
          _Pragma("unroll") for (int v = 0; v < DNNOPT_VECTORS; ++v) column[v] = DNNOPT_LOAD_FLOATS(v, b);
          _Pragma("unroll") for (int r = 0; r < DNNOPT_ROWS; ++r)
            _Pragma("unroll") for (int v = 0; v < DNNOPT_VECTORS; ++v) sum[r][v] = fma((DNNOPT_FLOATS)(a[r]), column[v], sum[r][v]);
          a += DNNOPT_ROWS;
          b += DNNOPT_COLUMNS;
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
          for (int r = 0; r < height; ++r)
            for (int j = 0; j < DNNOPT_COLUMNS; ++j) DNNOPT_STORE(z, m + r, n + j, tile[r * DNNOPT_COLUMNS + j]);
        } else {
          for (int r = 0; r < height; ++r)
            for (int j = 0; j < n_end - n; ++j) DNNOPT_STORE(z, m + r, n + j, tile[r * DNNOPT_COLUMNS + j]);
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
  for (int m = m_begin; m < m_end; ++m) dnnopt_store_total(DNNOPT_ARGUMENTS, z, m, DNNOPT_FINISH(totals[m - m_begin]));
#endif
}
#ifdef __cplusplus
)CLC"
#endif
