#ifdef __cplusplus
R"CLC(
#endif
// Two products of matrices, the second of what the first becomes (linear attention), on devices with wide vectors: one
// work-item per matrix, or per share of the second product's columns. The small result of the first stays in its memory.
//
//   small(m, i)  = dnnopt_small(z, m, i, sum over t of rows(z, m, t) * inner(z, i, t))
//   result(m, n) = sum over i of small(m, i) * columns(z, i, n);   dnnopt_store(z, m, n, result)
//
// Hooks: dnnopt_load_rows(z, m, t), dnnopt_load_inner(z, i, t), dnnopt_small(z, m, i, value), dnnopt_load_columns(z, i, n),
// dnnopt_store.

#ifndef DNNOPT_PARAMETERS
// Stand-alone: plain row-major matrices, 196 rows to sum over and 196 columns.
#define DNNOPT_PARAMETERS __global const float* b0, __global const float* b1, __global const float* b2, __global float* b3
#define DNNOPT_KERNEL_PARAMETERS DNNOPT_PARAMETERS
#define DNNOPT_ARGUMENTS b0, b1, b2, b3
#define DNNOPT_M 33
#define DNNOPT_I 32
#define DNNOPT_T 196
#define DNNOPT_N 196
static inline float dnnopt_load_rows(DNNOPT_PARAMETERS, const int z, const int m, const int t) { return b0[(z * 33 + m) * 196 + t]; }
static inline float dnnopt_load_inner(DNNOPT_PARAMETERS, const int z, const int i, const int t) { return b1[(z * 32 + i) * 196 + t]; }
static inline float dnnopt_small(DNNOPT_PARAMETERS, const int z, const int m, const int i, float value) { return value; }
static inline float dnnopt_load_columns(DNNOPT_PARAMETERS, const int z, const int i, const int n) { return b2[(z * 32 + i) * 196 + n]; }
static inline void dnnopt_store(DNNOPT_PARAMETERS, const int z, const int m, const int n, float value) { b3[(z * 33 + m) * 196 + n] = value; }
#endif
// A register tile of rows and vectors, elements of t that are staged at a time, and columns of a work-item.
#ifndef DNNOPT_ROWS
#define DNNOPT_ROWS 6
#endif
#ifndef DNNOPT_VECTOR
#define DNNOPT_VECTOR 8
#endif
#ifndef DNNOPT_VECTORS
#define DNNOPT_VECTORS 2
#endif
#ifndef DNNOPT_BLOCK_INNER
#define DNNOPT_BLOCK_INNER 128
#endif
#ifndef DNNOPT_SHARE
#define DNNOPT_SHARE DNNOPT_N
#endif
// Whether the second product reads anything else than the first one's sums: dnnopt_small is called.
#ifndef DNNOPT_SMALL_CHANGES
#define DNNOPT_SMALL_CHANGES 0
#endif
// Whether neighbours in memory are neighbours in t of inner(z, i, t), and in i of columns(z, i, n).
#ifndef DNNOPT_T_FIRST
#define DNNOPT_T_FIRST 1
#endif
#ifndef DNNOPT_I_FIRST
#define DNNOPT_I_FIRST 0
#endif

#define DNNOPT_JOIN_(a, b) a##b
#define DNNOPT_JOIN(a, b) DNNOPT_JOIN_(a, b)
#define DNNOPT_FLOATS DNNOPT_JOIN(float, DNNOPT_VECTOR)
#define DNNOPT_LOAD_FLOATS DNNOPT_JOIN(vload, DNNOPT_VECTOR)
#define DNNOPT_STORE_FLOATS DNNOPT_JOIN(vstore, DNNOPT_VECTOR)
#define DNNOPT_COLUMNS (DNNOPT_VECTOR * DNNOPT_VECTORS)
#define DNNOPT_PANELS_OF(extent) (((extent) + DNNOPT_COLUMNS - 1) / DNNOPT_COLUMNS)
// Rows of small lie so far apart.
#define DNNOPT_PITCH (DNNOPT_PANELS_OF(DNNOPT_I) * DNNOPT_COLUMNS)
#define DNNOPT_SMALL_ROWS ((DNNOPT_M + DNNOPT_ROWS - 1) / DNNOPT_ROWS * DNNOPT_ROWS)

// Fills a panel of DNNOPT_COLUMNS columns by `count` inner elements, inner elements outermost, with load(inner, column);
// columns from `width` on are zero. `inner_first` tells which of them are neighbours in memory.
#define DNNOPT_FILL_PANEL(panel, count, width, inner_first, load)                                                    \
  if (inner_first) {                                                                                                 \
    for (int column = 0; column < (width); ++column)                                                                 \
      for (int inner = 0; inner < (count); ++inner) (panel)[inner * DNNOPT_COLUMNS + column] = load(inner, column);  \
  } else {                                                                                                           \
    for (int inner = 0; inner < (count); ++inner)                                                                    \
      for (int column = 0; column < (width); ++column) (panel)[inner * DNNOPT_COLUMNS + column] = load(inner, column); \
  }                                                                                                                  \
  for (int column = (width); column < DNNOPT_COLUMNS; ++column)                                                      \
    for (int inner = 0; inner < (count); ++inner) (panel)[inner * DNNOPT_COLUMNS + column] = 0.0f;

// Adds the products of `count` inner elements of DNNOPT_ROWS rows, `pitch` apart, and a panel of columns to a tile.
static inline void dnnopt_add_products(DNNOPT_FLOATS sum[DNNOPT_ROWS][DNNOPT_VECTORS], __local const float* a, const int pitch, __local const float* panel, const int count) {
  for (int k = 0; k < count; ++k) {
    DNNOPT_FLOATS column[DNNOPT_VECTORS];
    _Pragma("unroll") for (int v = 0; v < DNNOPT_VECTORS; ++v) column[v] = DNNOPT_LOAD_FLOATS(k * DNNOPT_VECTORS + v, panel);
    _Pragma("unroll") for (int r = 0; r < DNNOPT_ROWS; ++r)
      _Pragma("unroll") for (int v = 0; v < DNNOPT_VECTORS; ++v) sum[r][v] = fma((DNNOPT_FLOATS)(a[r * pitch + k]), column[v], sum[r][v]);
  }
}

__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void dnnopt_kernel(DNNOPT_KERNEL_PARAMETERS) {
  __local float small[DNNOPT_SMALL_ROWS * DNNOPT_PITCH];
  __local float rows[DNNOPT_ROWS * DNNOPT_BLOCK_INNER];
  __local float panels[DNNOPT_PITCH * DNNOPT_BLOCK_INNER];
  __local float panel[DNNOPT_I * DNNOPT_COLUMNS];
  float tile[DNNOPT_ROWS * DNNOPT_COLUMNS];
  DNNOPT_FLOATS sum[DNNOPT_ROWS][DNNOPT_VECTORS];
  const int z = (int)get_global_id(2);
  const int length = DNNOPT_T;
  int t_begin = 0;
  do {
    const int count = min(DNNOPT_BLOCK_INNER, length - t_begin);
#define DNNOPT_LOAD_INNER(inner, column) dnnopt_load_inner(DNNOPT_ARGUMENTS, z, i + (column), t_begin + (inner))
    for (int i = 0; i < DNNOPT_I; i += DNNOPT_COLUMNS) {
      DNNOPT_FILL_PANEL(panels + i * DNNOPT_BLOCK_INNER, count, min(DNNOPT_COLUMNS, DNNOPT_I - i), DNNOPT_T_FIRST, DNNOPT_LOAD_INNER)
    }
    for (int m = 0; m < DNNOPT_M; m += DNNOPT_ROWS) {
      const int height = min(DNNOPT_ROWS, DNNOPT_M - m);
      for (int r = 0; r < height; ++r)
        for (int t = 0; t < count; ++t) rows[r * DNNOPT_BLOCK_INNER + t] = dnnopt_load_rows(DNNOPT_ARGUMENTS, z, m + r, t_begin + t);
      for (int r = height; r < DNNOPT_ROWS; ++r)
        for (int t = 0; t < count; ++t) rows[r * DNNOPT_BLOCK_INNER + t] = 0.0f;
      for (int i = 0; i < DNNOPT_I; i += DNNOPT_COLUMNS) {
        __local float* kept = small + m * DNNOPT_PITCH + i;
        _Pragma("unroll") for (int r = 0; r < DNNOPT_ROWS; ++r)
          _Pragma("unroll") for (int v = 0; v < DNNOPT_VECTORS; ++v) sum[r][v] = t_begin == 0 ? (DNNOPT_FLOATS)(0.0f) : DNNOPT_LOAD_FLOATS(v, kept + r * DNNOPT_PITCH);
        dnnopt_add_products(sum, rows, DNNOPT_BLOCK_INNER, panels + i * DNNOPT_BLOCK_INNER, count);
        _Pragma("unroll") for (int r = 0; r < DNNOPT_ROWS; ++r)
          _Pragma("unroll") for (int v = 0; v < DNNOPT_VECTORS; ++v) DNNOPT_STORE_FLOATS(sum[r][v], v, kept + r * DNNOPT_PITCH);
      }
    }
    t_begin += count;
  } while (t_begin < length);
#if DNNOPT_SMALL_CHANGES
  for (int m = 0; m < DNNOPT_M; ++m)
    for (int i = 0; i < DNNOPT_I; ++i) small[m * DNNOPT_PITCH + i] = dnnopt_small(DNNOPT_ARGUMENTS, z, m, i, small[m * DNNOPT_PITCH + i]);
#endif

  const int n_begin = (int)get_global_id(0) * DNNOPT_SHARE;
  const int n_end = min(n_begin + DNNOPT_SHARE, (int)(DNNOPT_N));
#define DNNOPT_LOAD_COLUMN(inner, column) dnnopt_load_columns(DNNOPT_ARGUMENTS, z, (inner), n + (column))
  for (int n = n_begin; n < n_end; n += DNNOPT_COLUMNS) {
    const int width = min(DNNOPT_COLUMNS, n_end - n);
    DNNOPT_FILL_PANEL(panel, DNNOPT_I, width, DNNOPT_I_FIRST, DNNOPT_LOAD_COLUMN)
    for (int m = 0; m < DNNOPT_M; m += DNNOPT_ROWS) {
      _Pragma("unroll") for (int r = 0; r < DNNOPT_ROWS; ++r)
        _Pragma("unroll") for (int v = 0; v < DNNOPT_VECTORS; ++v) sum[r][v] = (DNNOPT_FLOATS)(0.0f);
      dnnopt_add_products(sum, small + m * DNNOPT_PITCH, DNNOPT_PITCH, panel, DNNOPT_I);
      _Pragma("unroll") for (int r = 0; r < DNNOPT_ROWS; ++r)
        _Pragma("unroll") for (int v = 0; v < DNNOPT_VECTORS; ++v) DNNOPT_STORE_FLOATS(sum[r][v], r * DNNOPT_VECTORS + v, tile);
      const int height = min(DNNOPT_ROWS, DNNOPT_M - m);
      for (int r = 0; r < height; ++r)
        for (int j = 0; j < width; ++j) dnnopt_store(DNNOPT_ARGUMENTS, z, m + r, n + j, tile[r * DNNOPT_COLUMNS + j]);
    }
  }
}
#ifdef __cplusplus
)CLC"
#endif
