#ifdef __cplusplus
R"CLC(
#endif
// Operands of products of bytes (dot_panels.cl, whose text stands behind this one): what the frame is told, and how
// elements of either operand become quads in panels, in local memory.

#ifndef DNNOPT_PARAMETERS
// Stand-alone: plain row-major matrices.
#define DNNOPT_PARAMETERS __global const uchar* b0, __global const char* b1, __global int* b2, const int p0, const int p1, const int p2
#define DNNOPT_KERNEL_PARAMETERS DNNOPT_PARAMETERS
#define DNNOPT_ARGUMENTS b0, b1, b2, p0, p1, p2
#define DNNOPT_M p0
#define DNNOPT_N p1
#define DNNOPT_K p2
#define DNNOPT_QUADS ((p2 + 3) / 4)
static inline int dnnopt_load_a(DNNOPT_PARAMETERS, const int z, const int m, const int k) { return b0[(z * p0 + m) * p2 + k]; }
static inline int dnnopt_load_b(DNNOPT_PARAMETERS, const int z, const int k, const int n) { return b1[(z * p2 + k) * p1 + n]; }
static inline void dnnopt_store(DNNOPT_PARAMETERS, const int z, const int m, const int n, int value) { b2[(z * p0 + m) * p1 + n] = value; }
#include "dot_plain.cl"
#endif
#ifndef DNNOPT_ROWS
#define DNNOPT_ROWS 8
#endif
#ifndef DNNOPT_VECTOR
#define DNNOPT_VECTOR 16
#endif
#ifndef DNNOPT_VECTORS
#define DNNOPT_VECTORS 2
#endif
// Rows and columns of the result per work-item, and quads packed at a time.
#ifndef DNNOPT_BLOCK_ROWS
#define DNNOPT_BLOCK_ROWS 64
#endif
#ifndef DNNOPT_BLOCK_COLUMNS
#define DNNOPT_BLOCK_COLUMNS 128
#endif
#ifndef DNNOPT_BLOCK_INNER
#define DNNOPT_BLOCK_INNER 256
#endif
#ifndef DNNOPT_ONE_INNER_BLOCK
#define DNNOPT_ONE_INNER_BLOCK 0
#endif
#ifndef DNNOPT_STEP_ROWS
#define DNNOPT_STEP_ROWS DNNOPT_BLOCK_ROWS
#endif
#ifndef DNNOPT_STEP_COLUMNS
#define DNNOPT_STEP_COLUMNS DNNOPT_BLOCK_COLUMNS
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
// Rows of the image that a work-item keeps as quads, and their width; 0: patches are read from the image.
#ifndef DNNOPT_IMAGE_ROWS
#define DNNOPT_IMAGE_ROWS 0
#endif
// Whether all columns are in whole panels.
#ifndef DNNOPT_WHOLE_PANELS
#define DNNOPT_WHOLE_PANELS 0
#endif
#ifndef DNNOPT_A_NATURAL
#define DNNOPT_A_NATURAL 1
#endif
#ifndef DNNOPT_A_FLIP
#define DNNOPT_A_FLIP 0
#endif
#ifndef DNNOPT_B_FLIP
#define DNNOPT_B_FLIP 0
#endif
// Whether zero points may be other than 0, and whether those of b differ between columns.
#ifndef DNNOPT_A_ZERO
#define DNNOPT_A_ZERO 0
#endif
#ifndef DNNOPT_B_ZERO
#define DNNOPT_B_ZERO 0
#endif
#ifndef DNNOPT_B_ZERO_EACH
#define DNNOPT_B_ZERO_EACH 0
#endif

#define DNNOPT_JOIN_(a, b) a##b
#define DNNOPT_JOIN(a, b) DNNOPT_JOIN_(a, b)
#define DNNOPT_INTS DNNOPT_JOIN(int, DNNOPT_VECTOR)
#define DNNOPT_LOAD_INTS DNNOPT_JOIN(vload, DNNOPT_VECTOR)
#define DNNOPT_STORE_INTS DNNOPT_JOIN(vstore, DNNOPT_VECTOR)
#define DNNOPT_COLUMNS (DNNOPT_VECTOR * DNNOPT_VECTORS)
#define DNNOPT_ROW_PANELS ((DNNOPT_BLOCK_ROWS + DNNOPT_ROWS - 1) / DNNOPT_ROWS)
#define DNNOPT_COLUMN_PANELS ((DNNOPT_BLOCK_COLUMNS + DNNOPT_COLUMNS - 1) / DNNOPT_COLUMNS)
// Ones in all bytes, and four bytes as a quad.
#define DNNOPT_ONES 0x01010101
#define DNNOPT_QUAD(a, b, c, d) ((int)(uchar)(a) | (int)(uchar)(b) << 8 | (int)(uchar)(c) << 16 | (int)(uchar)(d) << 24)
// Products of quads of a with quads of b, and sums of the bytes of either.
#if DNNOPT_A_NATURAL
#define DNNOPT_DOT(sums, a, b) DNNOPT_JOIN(dnnopt_dot, DNNOPT_VECTOR)(sums, a, b)
#define DNNOPT_TOTAL_A(sums, a) dnnopt_dot16(sums, a, (int16)(DNNOPT_ONES))
#else
#define DNNOPT_DOT(sums, a, b) DNNOPT_JOIN(dnnopt_dot, DNNOPT_VECTOR)(sums, b, a)
#define DNNOPT_TOTAL_A(sums, a) dnnopt_dot16(sums, (int16)(DNNOPT_ONES), a)
#endif
// Stores `count` elements of row m from column n on.
#if DNNOPT_EPILOGUE
#if DNNOPT_EPILOGUE_REAL
#define DNNOPT_KEPT(value) as_int(value)
#define DNNOPT_FROM_KEPT(value) as_float(value)
#else
#define DNNOPT_KEPT(value) (int)(value)
#define DNNOPT_FROM_KEPT(value) (value)
#endif
// What is read of the memory that is written is read before: a loop that does both is not taken as vectors.
#define DNNOPT_STORE_RUN(z, m, n, count, values) \
  do { \
    for (int lane = 0; lane < (count); ++lane) (values)[lane] = DNNOPT_KEPT(dnnopt_epilogue(DNNOPT_ARGUMENTS, z, m, (n) + lane, (values)[lane])); \
    for (int lane = 0; lane < (count); ++lane) dnnopt_put(DNNOPT_ARGUMENTS, z, m, (n) + lane, DNNOPT_FROM_KEPT((values)[lane])); \
  } while (0)
#else
#define DNNOPT_STORE_RUN(z, m, n, count, values) \
  for (int lane = 0; lane < (count); ++lane) dnnopt_store(DNNOPT_ARGUMENTS, z, m, (n) + lane, (values)[lane])
#endif
#define DNNOPT_TOTAL_B(sums, b) DNNOPT_DOT(sums, (DNNOPT_INTS)(DNNOPT_ONES), b)

#if !DNNOPT_A_PACKED
// Rows m_begin .. m_end - 1 of quads q_begin .. q_begin + count - 1, in panels of DNNOPT_ROWS rows, quads outermost.
static inline void dnnopt_pack_a(DNNOPT_PARAMETERS, __local int* packed, const int z, const int m_begin, const int m_end, const int q_begin, const int count) {
  const int inner = DNNOPT_K;
  // Quads that are whole.
  const int whole = clamp(inner / 4 - q_begin, 0, count);
  for (int m = m_begin; m < m_end; m += DNNOPT_ROWS) {
    __local int* panel = packed + (m - m_begin) / DNNOPT_ROWS * (DNNOPT_ROWS * count);
    for (int r = 0; r < DNNOPT_ROWS; ++r) {
      if (m + r < m_end) {
        for (int q = 0; q < whole; ++q) {
          const int k = (q_begin + q) * 4;
          panel[q * DNNOPT_ROWS + r] = DNNOPT_QUAD(dnnopt_load_a(DNNOPT_ARGUMENTS, z, m + r, k), dnnopt_load_a(DNNOPT_ARGUMENTS, z, m + r, k + 1), dnnopt_load_a(DNNOPT_ARGUMENTS, z, m + r, k + 2), dnnopt_load_a(DNNOPT_ARGUMENTS, z, m + r, k + 3)) ^ (DNNOPT_A_FLIP * DNNOPT_ONES);
        }
        for (int q = whole; q < count; ++q) {
          uint quad = 0;
          for (int k = (q_begin + q) * 4, bits = 0; k < inner; ++k, bits += 8) quad |= (uint)(uchar)(dnnopt_load_a(DNNOPT_ARGUMENTS, z, m + r, k) ^ DNNOPT_A_FLIP) << bits;
          panel[q * DNNOPT_ROWS + r] = (int)quad;
        }
      } else {
        for (int q = 0; q < count; ++q) panel[q * DNNOPT_ROWS + r] = 0;
      }
    }
  }
}
#endif

#if !DNNOPT_B_PACKED && !DNNOPT_CONVOLUTION
// An element of b, turned over, at its place in a quad; 0 beyond the last one.
static inline uint dnnopt_byte_b(DNNOPT_PARAMETERS, const int z, const int k, const int n) {
  return k < (int)(DNNOPT_K) ? (uint)(uchar)(dnnopt_load_b(DNNOPT_ARGUMENTS, z, k, n) ^ DNNOPT_B_FLIP) << (k % 4 * 8) : 0u;
}

// Columns n_begin .. n_end - 1 in panels of DNNOPT_COLUMNS columns, quads outermost.
static inline void dnnopt_pack_b(DNNOPT_PARAMETERS, __local int* packed, const int z, const int n_begin, const int n_end, const int q_begin, const int count) {
  const int whole = clamp((int)(DNNOPT_K) / 4 - q_begin, 0, count);
  for (int n = n_begin; n < n_end; n += DNNOPT_COLUMNS) {
    __local int* panel = packed + (n - n_begin) / DNNOPT_COLUMNS * (DNNOPT_COLUMNS * count);
    const int width = min(DNNOPT_COLUMNS, n_end - n);
#if DNNOPT_B_INNER_FIRST
    for (int j = 0; j < width; ++j)
      for (int q = 0; q < whole; ++q) {
        const int k = (q_begin + q) * 4;
        panel[q * DNNOPT_COLUMNS + j] =
#else
    for (int q = 0; q < whole; ++q)
      for (int j = 0; j < width; ++j) {
        const int k = (q_begin + q) * 4;
        panel[q * DNNOPT_COLUMNS + j] =
#endif
            DNNOPT_QUAD(dnnopt_load_b(DNNOPT_ARGUMENTS, z, k, n + j), dnnopt_load_b(DNNOPT_ARGUMENTS, z, k + 1, n + j), dnnopt_load_b(DNNOPT_ARGUMENTS, z, k + 2, n + j), dnnopt_load_b(DNNOPT_ARGUMENTS, z, k + 3, n + j)) ^ (DNNOPT_B_FLIP * DNNOPT_ONES);
      }
    for (int q = whole; q < count; ++q)
      for (int j = 0; j < width; ++j) {
        const int k = (q_begin + q) * 4;
        panel[q * DNNOPT_COLUMNS + j] = (int)(dnnopt_byte_b(DNNOPT_ARGUMENTS, z, k, n + j) | dnnopt_byte_b(DNNOPT_ARGUMENTS, z, k + 1, n + j) | dnnopt_byte_b(DNNOPT_ARGUMENTS, z, k + 2, n + j) | dnnopt_byte_b(DNNOPT_ARGUMENTS, z, k + 3, n + j));
      }
    for (int j = width; j < DNNOPT_COLUMNS; ++j)
      for (int q = 0; q < count; ++q) panel[q * DNNOPT_COLUMNS + j] = 0;
  }
}
#endif

#if DNNOPT_CONVOLUTION
// Quads of channels in each window element.
#define DNNOPT_CHANNEL_QUADS ((DNNOPT_CHANNELS + 3) / 4)

#if DNNOPT_IMAGE_ROWS
// The image's rows that positions n_begin .. n_end - 1 read, with what lies in the padding, as quads of channels:
// [quad][row][DNNOPT_IMAGE_WIDTH]. So four channels of an element become a quad once, however many windows hold it.
static inline void dnnopt_keep_image(DNNOPT_PARAMETERS, __local int* kept, const int z, const int n_begin, const int n_end) {
#if DNNOPT_B_ZERO
  const int padding = (int)(uchar)dnnopt_zero_b(DNNOPT_ARGUMENTS, z, 0) * DNNOPT_ONES;
#else
  const int padding = 0;
#endif
  const int top = n_begin / DNNOPT_OW * DNNOPT_SH - DNNOPT_PH;
  const int rows = (n_end - 1) / DNNOPT_OW * DNNOPT_SH - DNNOPT_PH + (DNNOPT_KH - 1) * DNNOPT_DH + 1 - top;
  for (int q = 0; q < DNNOPT_CHANNEL_QUADS; ++q) {
    const int c = q * 4;
    const int channels = min(4, DNNOPT_CHANNELS - c);
    const int there = (int)(0xffffffffu >> (32 - 8 * channels));
    for (int row = 0; row < rows; ++row) {
      const int h = top + row;
      const bool within = h >= 0 && h < DNNOPT_IH;
      const int first = within ? clamp(DNNOPT_PW, 0, DNNOPT_IMAGE_WIDTH) : DNNOPT_IMAGE_WIDTH;
      const int last = within ? clamp(DNNOPT_IW + DNNOPT_PW, first, DNNOPT_IMAGE_WIDTH) : DNNOPT_IMAGE_WIDTH;
      __local int* to = kept + (q * DNNOPT_IMAGE_ROWS + row) * DNNOPT_IMAGE_WIDTH;
      for (int j = 0; j < first; ++j) to[j] = padding & there;
      for (int j = last; j < DNNOPT_IMAGE_WIDTH; ++j) to[j] = padding & there;
      if (channels == 4) {
        for (int j = first; j < last; ++j)
          to[j] = DNNOPT_QUAD(dnnopt_load_x(DNNOPT_ARGUMENTS, z, c, 0, h, j - DNNOPT_PW), dnnopt_load_x(DNNOPT_ARGUMENTS, z, c + 1, 0, h, j - DNNOPT_PW), dnnopt_load_x(DNNOPT_ARGUMENTS, z, c + 2, 0, h, j - DNNOPT_PW), dnnopt_load_x(DNNOPT_ARGUMENTS, z, c + 3, 0, h, j - DNNOPT_PW)) ^ (DNNOPT_B_FLIP * DNNOPT_ONES);
      } else {
        for (int j = first; j < last; ++j) to[j] = 0;
        for (int r = 0; r < channels; ++r)
          for (int j = first; j < last; ++j) to[j] |= (int)((uint)(uchar)(dnnopt_load_x(DNNOPT_ARGUMENTS, z, c + r, 0, h, j - DNNOPT_PW) ^ DNNOPT_B_FLIP) << (8 * r));
      }
    }
  }
}

// Sixteen quads of a row, from one on, by the stride; those beyond what is asked for are anything.
static inline int16 dnnopt_kept_quads(__local const int* from) {
  if (DNNOPT_SW == 1) return vload16(0, from);
  if (DNNOPT_SW == 2) return (int16)(vload16(0, from).even, vload16(1, from).even);
  int16 quads;
  for (int j = 0; j < 16; ++j) ((int*)&quads)[j] = from[j * DNNOPT_SW];
  return quads;
}

// Patches as columns: quads count (window element, four channels), n counts output positions. Sixteen quads are written
// at once, those beyond a run of positions in one output row over what follows in the order of writing.
static inline void dnnopt_pack_b(DNNOPT_PARAMETERS, __local int* packed, __local const int* kept, const int n_begin, const int n_end, const int q_begin, const int count) {
  int from[DNNOPT_COLUMNS];
  int at[DNNOPT_COLUMNS];
  int length[DNNOPT_COLUMNS];
  for (int n = n_begin; n < n_end; n += DNNOPT_COLUMNS) {
    const int n_last = min(n + DNNOPT_COLUMNS, n_end);
    int runs = 0;
    for (int position = n; position < n_last; position += length[runs - 1]) {
      const int ow = position % DNNOPT_OW;
      from[runs] = (position / DNNOPT_OW - n_begin / DNNOPT_OW) * DNNOPT_SH * DNNOPT_IMAGE_WIDTH + ow * DNNOPT_SW;
      at[runs] = position - n;
      length[runs] = min(DNNOPT_OW - ow, n_last - position);
      ++runs;
    }
    __local int* panel = packed + (n - n_begin) * count;
    for (int q = q_begin; q < q_begin + count; ++q) {
      const int element = q / DNNOPT_CHANNEL_QUADS;
      const int channel = q - element * DNNOPT_CHANNEL_QUADS;
      __local const int* row = kept + (channel * DNNOPT_IMAGE_ROWS + element / DNNOPT_KW * DNNOPT_DH) * DNNOPT_IMAGE_WIDTH + element % DNNOPT_KW * DNNOPT_DW;
      __local int* to = panel + (q - q_begin) * DNNOPT_COLUMNS;
      for (int r = 0; r < runs; ++r)
        for (int j = 0; j < length[r]; j += 16) vstore16(dnnopt_kept_quads(row + from[r] + j * DNNOPT_SW), 0, to + at[r] + j);
    }
    for (int q = 0; n_last - n < DNNOPT_COLUMNS && q < count; ++q)
      for (int j = n_last - n; j < DNNOPT_COLUMNS; ++j) panel[q * DNNOPT_COLUMNS + j] = 0;
  }
}
#else
// Image patches as columns: quads count (window element, four channels), n counts output positions. Runs of positions in
// one output row read the image one after the other; what lies in the padding is the image's zero point.
static inline void dnnopt_pack_b(DNNOPT_PARAMETERS, __local int* packed, const int z, const int n_begin, const int n_end, const int q_begin, const int count) {
#if DNNOPT_B_ZERO
  const int padding = (int)(uchar)dnnopt_zero_b(DNNOPT_ARGUMENTS, z, 0) * DNNOPT_ONES;
#else
  const int padding = 0;
#endif
  for (int q = q_begin; q < q_begin + count;) {
    const int element = q / DNNOPT_CHANNEL_QUADS;
    const int q_end = min((element + 1) * DNNOPT_CHANNEL_QUADS, q_begin + count);
    const int kw = element % DNNOPT_KW;
    const int kh = element / DNNOPT_KW % DNNOPT_KH;
    const int kd = element / DNNOPT_KW / DNNOPT_KH;
    int n = n_begin;
    int ow = n % DNNOPT_OW;
    int oh = n / DNNOPT_OW % DNNOPT_OH;
    int od = n / DNNOPT_OW / DNNOPT_OH;
    while (n < n_end) {
      const int column = (n - n_begin) % DNNOPT_COLUMNS;
      const int run = min(min(DNNOPT_OW - ow, n_end - n), DNNOPT_COLUMNS - column);
      const int d = od * DNNOPT_SD + kd * DNNOPT_DD - DNNOPT_PD;
      const int h = oh * DNNOPT_SH + kh * DNNOPT_DH - DNNOPT_PH;
      const int w = ow * DNNOPT_SW + kw * DNNOPT_DW - DNNOPT_PW;
      int first = w < 0 ? min((-w + DNNOPT_SW - 1) / DNNOPT_SW, run) : 0;
      int last = w < DNNOPT_IW ? min((DNNOPT_IW - w + DNNOPT_SW - 1) / DNNOPT_SW, run) : 0;
      if (d < 0 || d >= DNNOPT_ID || h < 0 || h >= DNNOPT_IH || last < first) {
        first = run;
        last = run;
      }
      for (int at = q; at < q_end; ++at) {
        const int c = (at - element * DNNOPT_CHANNEL_QUADS) * 4;
        const int channels = min(4, DNNOPT_CHANNELS - c);
        // The bytes of channels that there are.
        const int there = (int)(0xffffffffu >> (32 - 8 * channels));
        __local int* to = packed + ((n - n_begin) / DNNOPT_COLUMNS * count + at - q_begin) * DNNOPT_COLUMNS + column;
        for (int j = 0; j < first; ++j) to[j] = padding & there;
        for (int j = last; j < run; ++j) to[j] = padding & there;
        if (channels == 4) {
          for (int j = first; j < last; ++j)
            to[j] = DNNOPT_QUAD(dnnopt_load_x(DNNOPT_ARGUMENTS, z, c, d, h, w + j * DNNOPT_SW), dnnopt_load_x(DNNOPT_ARGUMENTS, z, c + 1, d, h, w + j * DNNOPT_SW), dnnopt_load_x(DNNOPT_ARGUMENTS, z, c + 2, d, h, w + j * DNNOPT_SW), dnnopt_load_x(DNNOPT_ARGUMENTS, z, c + 3, d, h, w + j * DNNOPT_SW)) ^ (DNNOPT_B_FLIP * DNNOPT_ONES);
        } else {
          for (int j = first; j < last; ++j) to[j] = 0;
          for (int r = 0; r < channels; ++r)
            for (int j = first; j < last; ++j) to[j] |= (int)((uint)(uchar)(dnnopt_load_x(DNNOPT_ARGUMENTS, z, c + r, d, h, w + j * DNNOPT_SW) ^ DNNOPT_B_FLIP) << (8 * r));
        }
      }
      n += run;
      ow += run;
      if (ow == DNNOPT_OW) {
        ow = 0;
        if (++oh == DNNOPT_OH) {
          oh = 0;
          ++od;
        }
      }
    }
    q = q_end;
  }
  const int columns = n_end - n_begin;
  const int filled = columns % DNNOPT_COLUMNS;
  for (int q = 0; filled != 0 && q < count; ++q)
    for (int j = filled; j < DNNOPT_COLUMNS; ++j) packed[(columns / DNNOPT_COLUMNS * count + q) * DNNOPT_COLUMNS + j] = 0;
}
#endif
#endif
#ifdef __cplusplus
)CLC"
#endif
