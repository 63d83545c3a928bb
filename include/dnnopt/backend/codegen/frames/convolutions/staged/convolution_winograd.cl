#ifdef __cplusplus
R"CLC(
#endif
// Convolution with windows of 3 x 3 and stride 1 by Winograd's minimal filtering (Lavin & Gray 2016, section 4.1) on devices
// whose work-items run one after the other with wide vectors (CPUs). A tile of DNNOPT_TILE x DNNOPT_TILE results takes
// DNNOPT_POINTS = (DNNOPT_TILE + 2)^2 products per pair of channels:
//
//   result = A^T [ sum over c of (G weight(m, c) G^T) * (B^T x(c) B) ] A
//
// One work-item per block of the result, which does all three steps, so that what lies between them stays in its cache. For
// DNNOPT_BLOCK_CHANNELS channels at a time it transforms the tiles of its block of the image, lanes being channels; then
// multiplies, lanes being output channels, DNNOPT_ROWS tiles by DNNOPT_VECTORS vectors in registers; then transforms the
// sums back, lanes being output channels. Lanes of channels have no remainder where planes are small or odd. What is read of
// the image, and what is written, is transposed in squares of DNNOPT_VECTOR elements.
//
// The polynomials are taken at 0, +-3/4, +-3/2 and infinity for tiles of 4: 0, +-1, +-2 scaled by 3/4, for a third of the
// error; all coefficients of A and B are floats. For tiles of 2 they are taken at 0, +-1 and infinity.
//
// Hooks: dnnopt_load_x(z, c, d, h, w) and dnnopt_store(z, m, position, result), z counting images. The transformed weights
// lie at DNNOPT_A: panels of DNNOPT_COLUMNS output channels, (point, channel) in each.

#ifndef DNNOPT_PARAMETERS
// Stand-alone: padding of one, tiles of 4, weights of one panel.
#define DNNOPT_PARAMETERS __global const float* b0, __global const float* b1, __global float* b2, const int p0, const int p1
#define DNNOPT_KERNEL_PARAMETERS DNNOPT_PARAMETERS
#define DNNOPT_ARGUMENTS b0, b1, b2, p0, p1
#define DNNOPT_M 8
#define DNNOPT_C 4
#define DNNOPT_PH 1
#define DNNOPT_PW 1
#define DNNOPT_IH 8
#define DNNOPT_IW 8
#define DNNOPT_OH 8
#define DNNOPT_OW 8
#define DNNOPT_A b1
static inline float dnnopt_load_x(DNNOPT_PARAMETERS, const int z, const int c, const int d, const int h, const int w) { return b0[((z * 4 + c) * 8 + h) * 8 + w]; }
static inline void dnnopt_store(DNNOPT_PARAMETERS, const int z, const int m, const int n, float value) { b2[(z * 8 + m) * 64 + n] = value; }
#endif
#ifndef DNNOPT_TILE
#define DNNOPT_TILE 4
#endif
#ifndef DNNOPT_ROWS
#define DNNOPT_ROWS 6
#endif
#ifndef DNNOPT_VECTOR
#define DNNOPT_VECTOR 8
#endif
#ifndef DNNOPT_VECTORS
#define DNNOPT_VECTORS 1
#endif
// Of a block: output channels (a multiple of DNNOPT_COLUMNS), tiles above one another and beside each other; and channels
// that are transformed at a time (all, or a multiple of DNNOPT_VECTOR).
#ifndef DNNOPT_BLOCK_ROWS
#define DNNOPT_BLOCK_ROWS 8
#endif
// Whether a run tells the extents of the image: blocks of tiles have one size whatever they are.
#ifndef DNNOPT_RUN_EXTENTS
#define DNNOPT_RUN_EXTENTS 0
#endif
#ifndef DNNOPT_TILES_HIGH
#define DNNOPT_TILES_HIGH 1
#endif
#ifndef DNNOPT_TILES_WIDE
#define DNNOPT_TILES_WIDE 2
#endif
#ifndef DNNOPT_BLOCK_CHANNELS
#define DNNOPT_BLOCK_CHANNELS 4
#endif
// Rows of the image that are read before they are transposed.
#ifndef DNNOPT_STAGE_ROWS
#define DNNOPT_STAGE_ROWS 4
#endif
// Results are reduced in windows that lie side by side, as in convolution_shifts.cl: DNNOPT_WINDOW_ROWS divides DNNOPT_TILE, and
// DNNOPT_WINDOW_COLUMNS the columns of a block, unless that has whole rows. dnnopt_store returns what is taken, and
// dnnopt_store_window(z, m, window, value) ends a window.
#ifndef DNNOPT_WINDOW_COLUMNS
#define DNNOPT_WINDOW_COLUMNS 0
#endif

#define DNNOPT_JOIN_(a, b) a##b
#define DNNOPT_JOIN(a, b) DNNOPT_JOIN_(a, b)
#define DNNOPT_FLOATS DNNOPT_JOIN(float, DNNOPT_VECTOR)
#define DNNOPT_LOAD_FLOATS DNNOPT_JOIN(vload, DNNOPT_VECTOR)
#define DNNOPT_STORE_FLOATS DNNOPT_JOIN(vstore, DNNOPT_VECTOR)
#define DNNOPT_COLUMNS (DNNOPT_VECTOR * DNNOPT_VECTORS)
#define DNNOPT_SIDE (DNNOPT_TILE + 2)
#define DNNOPT_POINTS (DNNOPT_SIDE * DNNOPT_SIDE)
#define DNNOPT_VECTORS_OF(n) (((n) + DNNOPT_VECTOR - 1) / DNNOPT_VECTOR)
// An odd number of vectors, so that neighbouring rows do not share the sets of a cache.
#define DNNOPT_ODD_VECTORS(n) ((DNNOPT_VECTORS_OF(n) | 1) * DNNOPT_VECTOR)
#define DNNOPT_TILES_DOWN ((DNNOPT_OH + DNNOPT_TILE - 1) / DNNOPT_TILE)
#define DNNOPT_TILES_ACROSS ((DNNOPT_OW + DNNOPT_TILE - 1) / DNNOPT_TILE)
#define DNNOPT_BLOCKS_ACROSS ((DNNOPT_TILES_ACROSS + DNNOPT_TILES_WIDE - 1) / DNNOPT_TILES_WIDE)
#define DNNOPT_TILES ((DNNOPT_TILES_HIGH * DNNOPT_TILES_WIDE + DNNOPT_ROWS - 1) / DNNOPT_ROWS * DNNOPT_ROWS)
#define DNNOPT_PITCH DNNOPT_ODD_VECTORS(DNNOPT_BLOCK_CHANNELS)
#define DNNOPT_IMAGE_ROWS (DNNOPT_TILES_HIGH * DNNOPT_TILE + 2)
#define DNNOPT_IMAGE_COLUMNS (DNNOPT_TILES_WIDE * DNNOPT_TILE + 2)
#define DNNOPT_LINE DNNOPT_ODD_VECTORS(DNNOPT_STAGE_ROWS * DNNOPT_IMAGE_COLUMNS)
// Results of a row of tiles, with what the last square spills.
#if DNNOPT_RUN_EXTENTS
#define DNNOPT_WHOLE_ROWS 0
#elif DNNOPT_TILES_WIDE * DNNOPT_TILE >= DNNOPT_OW
#define DNNOPT_WHOLE_ROWS 1
#else
#define DNNOPT_WHOLE_ROWS 0
#endif
#if DNNOPT_WHOLE_ROWS
#define DNNOPT_WIDTH DNNOPT_OW
#else
#define DNNOPT_WIDTH (DNNOPT_TILES_WIDE * DNNOPT_TILE)
#endif
#define DNNOPT_RESULTS DNNOPT_ODD_VECTORS(DNNOPT_TILE * DNNOPT_WIDTH + DNNOPT_VECTOR)

#if DNNOPT_EPILOGUE
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

// log2(DNNOPT_VECTOR) times the two halves of the rows are interleaved, row by row and element by element.
static inline void dnnopt_transpose(DNNOPT_FLOATS* rows) {
  _Pragma("unroll") for (int step = 1; step < DNNOPT_VECTOR; step *= 2) {
    DNNOPT_FLOATS zipped[DNNOPT_VECTOR];
    _Pragma("unroll") for (int i = 0; i < DNNOPT_VECTOR / 2; ++i) {
      zipped[2 * i].even = rows[i].lo;
      zipped[2 * i].odd = rows[i + DNNOPT_VECTOR / 2].lo;
      zipped[2 * i + 1].even = rows[i].hi;
      zipped[2 * i + 1].odd = rows[i + DNNOPT_VECTOR / 2].hi;
    }
    _Pragma("unroll") for (int i = 0; i < DNNOPT_VECTOR; ++i) rows[i] = zipped[i];
  }
}

#if DNNOPT_TILE == 4
#define DNNOPT_P 0.75f
#define DNNOPT_Q 1.5f
#define DNNOPT_PP (DNNOPT_P * DNNOPT_P)
#define DNNOPT_QQ (DNNOPT_Q * DNNOPT_Q)
// B^T x, in place.
static inline void dnnopt_to_points(DNNOPT_FLOATS* x) {
  const DNNOPT_FLOATS even_p = fma((DNNOPT_FLOATS)(-DNNOPT_QQ), x[2], x[4]);
  const DNNOPT_FLOATS even_q = fma((DNNOPT_FLOATS)(-DNNOPT_PP), x[2], x[4]);
  const DNNOPT_FLOATS odd_p = fma((DNNOPT_FLOATS)(-DNNOPT_QQ), x[1], x[3]);
  const DNNOPT_FLOATS odd_q = fma((DNNOPT_FLOATS)(-DNNOPT_PP), x[1], x[3]);
  x[0] = fma((DNNOPT_FLOATS)(DNNOPT_PP * DNNOPT_QQ), x[0], fma((DNNOPT_FLOATS)(-DNNOPT_PP - DNNOPT_QQ), x[2], x[4]));
  x[5] = fma((DNNOPT_FLOATS)(DNNOPT_PP * DNNOPT_QQ), x[1], fma((DNNOPT_FLOATS)(-DNNOPT_PP - DNNOPT_QQ), x[3], x[5]));
  x[1] = fma((DNNOPT_FLOATS)(DNNOPT_P), odd_p, even_p);
  x[2] = fma((DNNOPT_FLOATS)(-DNNOPT_P), odd_p, even_p);
  x[3] = fma((DNNOPT_FLOATS)(DNNOPT_Q), odd_q, even_q);
  x[4] = fma((DNNOPT_FLOATS)(-DNNOPT_Q), odd_q, even_q);
}
// A^T x, in place.
static inline void dnnopt_from_points(DNNOPT_FLOATS* x) {
  const DNNOPT_FLOATS even_p = x[1] + x[2];
  const DNNOPT_FLOATS odd_p = x[1] - x[2];
  const DNNOPT_FLOATS even_q = x[3] + x[4];
  const DNNOPT_FLOATS odd_q = x[3] - x[4];
  x[0] = x[0] + even_p + even_q;
  x[1] = fma((DNNOPT_FLOATS)(DNNOPT_P), odd_p, DNNOPT_Q * odd_q);
  x[2] = fma((DNNOPT_FLOATS)(DNNOPT_PP), even_p, DNNOPT_QQ * even_q);
  x[3] = fma((DNNOPT_FLOATS)(DNNOPT_P * DNNOPT_PP), odd_p, fma((DNNOPT_FLOATS)(DNNOPT_Q * DNNOPT_QQ), odd_q, x[5]));
}
#else
static inline void dnnopt_to_points(DNNOPT_FLOATS* x) {
  const DNNOPT_FLOATS one = x[1];
  x[0] = x[0] - x[2];
  x[3] = x[3] - one;
  x[1] = x[2] + one;
  x[2] = x[2] - one;
}
static inline void dnnopt_from_points(DNNOPT_FLOATS* x) {
  const DNNOPT_FLOATS even = x[1] + x[2];
  x[1] = x[1] - x[2] + x[3];
  x[0] = x[0] + even;
}
#endif

// `rows` rows of channel c from (h, w) on, one after the other, `columns` of each; zero in padding.
static inline void dnnopt_read_rows(DNNOPT_PARAMETERS, __local float* to, const int z, const int c, const int h, const int w, const int rows, const int columns) {
  const int first = min(max(-w, 0), columns);
  const int last = min(max(DNNOPT_IW - w, first), columns);
  for (int i = 0; i < rows; ++i, to += columns) {
    const int inside = h + i >= 0 && h + i < DNNOPT_IH;
    const int begin = inside ? first : columns;
    const int end = inside ? last : columns;
    for (int j = 0; j < begin; ++j) to[j] = 0.0f;
    for (int j = begin; j < end; ++j) to[j] = dnnopt_load_x(DNNOPT_ARGUMENTS, z, c, 0, h + i, w + j);
    for (int j = end; j < columns; ++j) to[j] = 0.0f;
  }
}

// Transforms the tiles, `high` by `wide`, of channels c_begin .. c_begin + count - 1; (h, w) is the block's first element of
// the padded image. The channels that fill the last vector are zero.
static inline void dnnopt_transform(DNNOPT_PARAMETERS, __local float* points, __local float* staged, __local float* lines, const int z, const int c_begin, const int count, const int h, const int w, const int high, const int wide) {
  const int rows = high * DNNOPT_TILE + 2;
  const int columns = wide * DNNOPT_TILE + 2;
  for (int c = 0; c < count; c += DNNOPT_VECTOR) {
    const int channels = min(DNNOPT_VECTOR, count - c);
    for (int row = 0; row < rows; row += DNNOPT_STAGE_ROWS) {
      const int some = min(DNNOPT_STAGE_ROWS, rows - row);
      for (int lane = 0; lane < channels; ++lane)
        dnnopt_read_rows(DNNOPT_ARGUMENTS, lines + lane * DNNOPT_LINE, z, c_begin + c + lane, h + row - DNNOPT_PH, w - DNNOPT_PW, some, columns);
      for (int lane = channels; lane < DNNOPT_VECTOR; ++lane)
        for (int j = 0; j < some * columns; ++j) lines[lane * DNNOPT_LINE + j] = 0.0f;
      for (int j = 0; j < some * columns; j += DNNOPT_VECTOR) {
        DNNOPT_FLOATS square[DNNOPT_VECTOR];
        _Pragma("unroll") for (int i = 0; i < DNNOPT_VECTOR; ++i) square[i] = DNNOPT_LOAD_FLOATS(0, lines + i * DNNOPT_LINE + j);
        dnnopt_transpose(square);
        _Pragma("unroll") for (int i = 0; i < DNNOPT_VECTOR; ++i) DNNOPT_STORE_FLOATS(square[i], row * columns + j + i, staged);
      }
    }
    for (int t = 0; t < high * wide; ++t) {
      __local const float* image = staged + (t / wide * columns + t % wide) * (DNNOPT_TILE * DNNOPT_VECTOR);
      __local float* to = points + t * DNNOPT_PITCH + c;
      DNNOPT_FLOATS x[DNNOPT_SIDE][DNNOPT_SIDE];
      _Pragma("unroll") for (int j = 0; j < DNNOPT_SIDE; ++j) {
        DNNOPT_FLOATS column[DNNOPT_SIDE];
        _Pragma("unroll") for (int i = 0; i < DNNOPT_SIDE; ++i) column[i] = DNNOPT_LOAD_FLOATS(i * columns + j, image);
        dnnopt_to_points(column);
        _Pragma("unroll") for (int i = 0; i < DNNOPT_SIDE; ++i) x[i][j] = column[i];
      }
      _Pragma("unroll") for (int i = 0; i < DNNOPT_SIDE; ++i) {
        dnnopt_to_points(x[i]);
        _Pragma("unroll") for (int j = 0; j < DNNOPT_SIDE; ++j) DNNOPT_STORE_FLOATS(x[i][j], 0, to + (i * DNNOPT_SIDE + j) * (DNNOPT_TILES * DNNOPT_PITCH));
      }
    }
  }
}

// Adds the products of `count` channels, for one panel of output channels; the first channels begin the sums.
static inline void dnnopt_multiply(__local const float* points, __global const float* weights, __local float* sums, const int tiles, const int count, const int begins) {
  for (int p = 0; p < DNNOPT_POINTS; ++p) {
    for (int t = 0; t < tiles; t += DNNOPT_ROWS) {
      __local const float* x = points + (p * DNNOPT_TILES + t) * DNNOPT_PITCH;
      __global const float* a = weights + p * (DNNOPT_C * DNNOPT_COLUMNS);
      __local float* kept = sums + (p * DNNOPT_TILES + t) * DNNOPT_COLUMNS;
      DNNOPT_FLOATS sum[DNNOPT_ROWS][DNNOPT_VECTORS];
#if DNNOPT_BLOCK_CHANNELS < DNNOPT_C
      if (!begins) {
        _Pragma("unroll") for (int r = 0; r < DNNOPT_ROWS; ++r)
          _Pragma("unroll") for (int v = 0; v < DNNOPT_VECTORS; ++v) sum[r][v] = DNNOPT_LOAD_FLOATS(r * DNNOPT_VECTORS + v, kept);
      } else
#endif
      {
        _Pragma("unroll") for (int r = 0; r < DNNOPT_ROWS; ++r)
          _Pragma("unroll") for (int v = 0; v < DNNOPT_VECTORS; ++v) sum[r][v] = (DNNOPT_FLOATS)(0.0f);
      }
      for (int c = 0; c < count; ++c) {
        DNNOPT_FLOATS column[DNNOPT_VECTORS];
        _Pragma("unroll") for (int v = 0; v < DNNOPT_VECTORS; ++v) column[v] = DNNOPT_LOAD_FLOATS(v, a);
        _Pragma("unroll") for (int r = 0; r < DNNOPT_ROWS; ++r)
          _Pragma("unroll") for (int v = 0; v < DNNOPT_VECTORS; ++v) sum[r][v] = fma((DNNOPT_FLOATS)(x[r * DNNOPT_PITCH + c]), column[v], sum[r][v]);
        a += DNNOPT_COLUMNS;
      }
      _Pragma("unroll") for (int r = 0; r < DNNOPT_ROWS; ++r)
        _Pragma("unroll") for (int v = 0; v < DNNOPT_VECTORS; ++v) DNNOPT_STORE_FLOATS(sum[r][v], r * DNNOPT_VECTORS + v, kept);
    }
  }
}

// Transforms the sums of a row of tiles back, for one vector of output channels: `width` results of each of its rows, which
// follow one another in each lane's line. Squares are written from the last to the first and rows in their order, so that
// what a square spills beyond its row is written over.
static inline void dnnopt_back(__local const float* sums, float* lines, const int wide, const int width) {
  for (int first = (wide - 1) / (DNNOPT_VECTOR / DNNOPT_TILE) * (DNNOPT_VECTOR / DNNOPT_TILE); first >= 0; first -= DNNOPT_VECTOR / DNNOPT_TILE) {
    DNNOPT_FLOATS y[DNNOPT_TILE][DNNOPT_VECTOR];
    for (int t = 0; t < DNNOPT_VECTOR / DNNOPT_TILE; ++t) {
      __local const float* from = sums + min(first + t, wide - 1) * DNNOPT_COLUMNS;
      DNNOPT_FLOATS x[DNNOPT_SIDE][DNNOPT_SIDE];
      _Pragma("unroll") for (int j = 0; j < DNNOPT_SIDE; ++j) {
        DNNOPT_FLOATS column[DNNOPT_SIDE];
        _Pragma("unroll") for (int i = 0; i < DNNOPT_SIDE; ++i) column[i] = DNNOPT_LOAD_FLOATS(0, from + (i * DNNOPT_SIDE + j) * (DNNOPT_TILES * DNNOPT_COLUMNS));
        dnnopt_from_points(column);
        _Pragma("unroll") for (int i = 0; i < DNNOPT_TILE; ++i) x[i][j] = column[i];
      }
      _Pragma("unroll") for (int i = 0; i < DNNOPT_TILE; ++i) {
        dnnopt_from_points(x[i]);
        _Pragma("unroll") for (int j = 0; j < DNNOPT_TILE; ++j) y[i][t * DNNOPT_TILE + j] = x[i][j];
      }
    }
    for (int i = 0; i < DNNOPT_TILE; ++i) {
      DNNOPT_FLOATS square[DNNOPT_VECTOR];
      _Pragma("unroll") for (int j = 0; j < DNNOPT_VECTOR; ++j) square[j] = y[i][j];
      dnnopt_transpose(square);
      _Pragma("unroll") for (int lane = 0; lane < DNNOPT_VECTOR; ++lane) DNNOPT_STORE_FLOATS(square[lane], 0, lines + lane * DNNOPT_RESULTS + i * width + first * DNNOPT_TILE);
    }
  }
}

#if DNNOPT_WINDOW_COLUMNS
#define DNNOPT_WINDOWS_WIDE (DNNOPT_RUN_WIDTH / DNNOPT_WINDOW_COLUMNS)
// Reduces the windows in `rows` rows of `width` results from (h, w) on.
static inline void dnnopt_store_windows(DNNOPT_PARAMETERS, const int z, const int m, const int h, const int w, const int rows, const int width, const float* values) {
  const int wide = (min(w + width, DNNOPT_RUN_WIDTH) - w) / DNNOPT_WINDOW_COLUMNS;
  const int high = min(h + rows, DNNOPT_RUN_ROWS * DNNOPT_WINDOW_ROWS) / DNNOPT_WINDOW_ROWS - h / DNNOPT_WINDOW_ROWS;
  float taken[DNNOPT_WIDTH / DNNOPT_WINDOW_COLUMNS + 1];
  for (int i = 0; i < high; ++i) {
    for (int j = 0; j < wide; ++j) {
      float a = DNNOPT_FIRST;
      _Pragma("unroll") for (int k = 0; k < DNNOPT_WINDOW_ROWS * DNNOPT_WINDOW_COLUMNS; ++k) {
        const int row = i * DNNOPT_WINDOW_ROWS + k / DNNOPT_WINDOW_COLUMNS;
        const int column = j * DNNOPT_WINDOW_COLUMNS + k % DNNOPT_WINDOW_COLUMNS;
        const float x = dnnopt_store(DNNOPT_ARGUMENTS, z, m, (h + row) * DNNOPT_OW + w + column, values[row * width + column]);
        a = DNNOPT_TAKE(a, x);
      }
      taken[j] = DNNOPT_FINISH(a);
    }
    const int window = (h / DNNOPT_WINDOW_ROWS + i) * DNNOPT_WINDOWS_WIDE + w / DNNOPT_WINDOW_COLUMNS;
    for (int j = 0; j < wide; ++j) dnnopt_store_window(DNNOPT_ARGUMENTS, z, m, window + j, taken[j]);
  }
}
#endif

__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void dnnopt_kernel(DNNOPT_KERNEL_PARAMETERS) {
  const int z = (int)get_global_id(2);
  const int m_begin = (int)get_global_id(1) * DNNOPT_BLOCK_ROWS;
  const int m_end = min(m_begin + DNNOPT_BLOCK_ROWS, (int)(DNNOPT_M));
  const int row = (int)get_global_id(0) / DNNOPT_BLOCKS_ACROSS * DNNOPT_TILES_HIGH;
  const int column = (int)get_global_id(0) % DNNOPT_BLOCKS_ACROSS * DNNOPT_TILES_WIDE;
  const int high = min(DNNOPT_TILES_HIGH, DNNOPT_TILES_DOWN - row);
  const int wide = min(DNNOPT_TILES_WIDE, DNNOPT_TILES_ACROSS - column);
  const int width = min(wide * DNNOPT_TILE, DNNOPT_OW - column * DNNOPT_TILE);
  __local float points[DNNOPT_POINTS * DNNOPT_TILES * DNNOPT_PITCH];
  __local float staged[(DNNOPT_IMAGE_ROWS * DNNOPT_IMAGE_COLUMNS + DNNOPT_VECTOR) * DNNOPT_VECTOR];
  __local float lines[DNNOPT_VECTOR * DNNOPT_LINE];
  __local float sums[(DNNOPT_BLOCK_CHANNELS < DNNOPT_C ? DNNOPT_BLOCK_ROWS / DNNOPT_COLUMNS : 1) * DNNOPT_POINTS * DNNOPT_TILES * DNNOPT_COLUMNS];
  float results[DNNOPT_VECTOR * DNNOPT_RESULTS];
  // Tiles that fill the last rows of registers.
  for (int p = 0; p < DNNOPT_POINTS; ++p)
    for (int i = high * wide * DNNOPT_PITCH; i < DNNOPT_TILES * DNNOPT_PITCH; ++i) points[p * DNNOPT_TILES * DNNOPT_PITCH + i] = 0.0f;
  for (int c_begin = 0; c_begin < DNNOPT_C; c_begin += DNNOPT_BLOCK_CHANNELS) {
    const int count = min(DNNOPT_BLOCK_CHANNELS, DNNOPT_C - c_begin);
    dnnopt_transform(DNNOPT_ARGUMENTS, points, staged, lines, z, c_begin, count, row * DNNOPT_TILE, column * DNNOPT_TILE, high, wide);
    for (int m = m_begin; m < m_end; m += DNNOPT_COLUMNS) {
      __local float* own = sums + (DNNOPT_BLOCK_CHANNELS < DNNOPT_C ? (m - m_begin) * (DNNOPT_POINTS * DNNOPT_TILES) : 0);
      dnnopt_multiply(points, DNNOPT_A + (m / DNNOPT_COLUMNS * (DNNOPT_POINTS * DNNOPT_C) + c_begin) * DNNOPT_COLUMNS, own, high * wide, count, c_begin == 0);
      if (c_begin + count < DNNOPT_C) continue;
      for (int t = 0; t < high; ++t) {
        const int h = (row + t) * DNNOPT_TILE;
        const int rows = min(DNNOPT_TILE, DNNOPT_OH - h);
        for (int v = 0; v < DNNOPT_VECTORS; ++v) {
          dnnopt_back(own + t * wide * DNNOPT_COLUMNS + v * DNNOPT_VECTOR, results, wide, width);
          const int lanes = min(DNNOPT_VECTOR, m_end - m - v * DNNOPT_VECTOR);
          for (int i = 0; i < lanes; ++i) {
            float* line = results + i * DNNOPT_RESULTS;
            const int channel = m + v * DNNOPT_VECTOR + i;
#if DNNOPT_WINDOW_COLUMNS
            dnnopt_store_windows(DNNOPT_ARGUMENTS, z, channel, h, column * DNNOPT_TILE, rows, width, line);
#elif DNNOPT_WHOLE_ROWS
            DNNOPT_STORE_RUN(z, channel, h * DNNOPT_OW, rows * DNNOPT_OW, line);
#else
            for (int r = 0; r < rows; ++r) DNNOPT_STORE_RUN(z, channel, (h + r) * DNNOPT_OW + column * DNNOPT_TILE, width, line + r * width);
#endif
          }
        }
      }
    }
  }
}
#ifdef __cplusplus
)CLC"
#endif
