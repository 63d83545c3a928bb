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
// Hooks: dnnopt_store, and those of operands (panel_packing.cl).

#ifndef DNNOPT_ROWS
// Stand-alone.
#include "panel_packing.cl"
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

// From a block to the next, in whole register tiles: less than blocks may have where extents that only a run tells would
// leave cores without one.
#ifndef DNNOPT_STEP_ROWS
#define DNNOPT_STEP_ROWS DNNOPT_BLOCK_ROWS
#endif
#ifndef DNNOPT_STEP_COLUMNS
#define DNNOPT_STEP_COLUMNS DNNOPT_SPAN
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
