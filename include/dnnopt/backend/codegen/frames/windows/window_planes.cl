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
// and d are 0. Where DNNOPT_FLAT is 1, dnnopt_load_flat(z, i) and dnnopt_store_flat(z, m, i, result) stand in for the
// first and the last, where i counts the elements of a plane. DNNOPT_FAMILY: 0 weighted sum, 1 greatest, 2 sum.

#ifndef DNNOPT_FAMILY
#define DNNOPT_FAMILY 0
#endif
#ifndef DNNOPT_PARAMETERS
// Stand-alone: depthwise, 3x3, padding of one, 56 x 56.
#define DNNOPT_PARAMETERS __global const float* b0, __global const float* b1, __global float* b2, const int p0
#define DNNOPT_KERNEL_PARAMETERS DNNOPT_PARAMETERS
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
// Where extents are known only to a run, local memory has elements for the most that any takes, DNNOPT_CAPACITY, and
// blocks of at most DNNOPT_SPAN columns lie side by side, DNNOPT_ACROSS of DNNOPT_COLUMNS columns each. 0: a block holds
// whole rows.
#ifndef DNNOPT_SPAN
#define DNNOPT_SPAN 0
#endif
#ifndef DNNOPT_ACROSS
#define DNNOPT_ACROSS 1
#endif
#ifndef DNNOPT_COLUMNS
#define DNNOPT_COLUMNS DNNOPT_OW
#endif
// 1: rows whose elements are no multiple of a vector are loaded, and their results finished, as one run of elements, so
// that no row ends in single ones. Whole rows alone are.
#ifndef DNNOPT_FLAT
#define DNNOPT_FLAT 0
#endif
// Planes are reduced as well: dnnopt_store returns what is taken, and dnnopt_store_total(z, m, value) ends a plane.
#ifndef DNNOPT_TOTALS
#define DNNOPT_TOTALS 0
#endif

#define DNNOPT_PHASES_H (DNNOPT_SH < (DNNOPT_KH - 1) * DNNOPT_DH + 1 ? DNNOPT_SH : (DNNOPT_KH - 1) * DNNOPT_DH + 1)
#define DNNOPT_PHASES_W (DNNOPT_SW < (DNNOPT_KW - 1) * DNNOPT_DW + 1 ? DNNOPT_SW : (DNNOPT_KW - 1) * DNNOPT_DW + 1)
// Rows and columns that the last window of a block reaches beyond its own.
#define DNNOPT_BELOW ((DNNOPT_KH - 1) * DNNOPT_DH / DNNOPT_SH)
#define DNNOPT_BESIDE ((DNNOPT_KW - 1) * DNNOPT_DW / DNNOPT_SW)
#define DNNOPT_LANES (16 * DNNOPT_UNROLL)
// Rows of large windows are a loop: written out, drivers take minutes for them.
#if DNNOPT_KH * DNNOPT_KW > 128
#define DNNOPT_EACH_WINDOW_ROW _Pragma("unroll 1")
#else
#define DNNOPT_EACH_WINDOW_ROW _Pragma("unroll")
#endif
#if DNNOPT_KW > 128
#define DNNOPT_EACH_WINDOW_COLUMN _Pragma("unroll 8")
#else
#define DNNOPT_EACH_WINDOW_COLUMN _Pragma("unroll")
#endif
// Elements of phases and of results, and of one row of input with its padding, as far as any window reaches, and what a
// pair of vectors reads beyond.
#if DNNOPT_SPAN
#define DNNOPT_STAGED (DNNOPT_CAPACITY + DNNOPT_PHASES_H * DNNOPT_PHASES_W * DNNOPT_BEHIND)
#define DNNOPT_RESULTS (DNNOPT_CAPACITY / (DNNOPT_PHASES_H * DNNOPT_PHASES_W + 1))
#define DNNOPT_LINE ((DNNOPT_SPAN + DNNOPT_BESIDE) * DNNOPT_SW + 32)
#else
#define DNNOPT_STAGED (DNNOPT_PHASES_H * DNNOPT_PHASES_W * (DNNOPT_ROWS + DNNOPT_BELOW) * (DNNOPT_COLUMNS + DNNOPT_BESIDE))
#define DNNOPT_RESULTS (DNNOPT_ROWS * (DNNOPT_COLUMNS + DNNOPT_BESIDE))
#define DNNOPT_LINE ((DNNOPT_COLUMNS + DNNOPT_BESIDE) * DNNOPT_SW + 32)
#endif
// Behind a phase there is room for what the last vector of its last row writes, so that no row ends in single elements.
// Where extents are known, those are copied without a loop.
#define DNNOPT_BEHIND (DNNOPT_SPAN ? 16 : 0)
// Rows of the image that a block reads.
#define DNNOPT_FLAT_ROWS ((DNNOPT_ROWS - 1 + DNNOPT_BELOW) * DNNOPT_SH + DNNOPT_PHASES_H)
#if DNNOPT_FAMILY == 1
#define DNNOPT_PADDING (-INFINITY)
#else
#define DNNOPT_PADDING 0.0f
#endif

__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void dnnopt_kernel(DNNOPT_KERNEL_PARAMETERS) {
  // The last vectors begin at the last lane at most, as far right as a window reaches.
  __local float staged[DNNOPT_STAGED + DNNOPT_LANES + DNNOPT_BESIDE];
  __local float result[DNNOPT_RESULTS + DNNOPT_LANES];
#if DNNOPT_FLAT
  // Rows without gaps, of the image and of results; a vector reads or writes beyond the last.
  __local float image[DNNOPT_FLAT_ROWS * DNNOPT_IW + 16];
  __local float finished[DNNOPT_ROWS * DNNOPT_OW + 16];
#endif
  const int block_rows = DNNOPT_ROWS;
  const int block_columns = DNNOPT_COLUMNS;
  const int blocks = DNNOPT_BLOCKS;
  const int pitch = block_columns + DNNOPT_BESIDE;
  const int phase = (block_rows + DNNOPT_BELOW) * pitch + DNNOPT_BEHIND;
  const int planes = DNNOPT_PLANES;
  const int plane_begin = (int)get_global_id(1) * planes;
  const int plane_end = min(plane_begin + planes, (int)(DNNOPT_Z * DNNOPT_M));
  for (int plane = plane_begin; plane < plane_end; ++plane) {
    const int z = plane / DNNOPT_M;
    const int m = plane % DNNOPT_M;
#if DNNOPT_TOTALS
    // Taken in lanes side by side, so that the loop vectorizes.
    float lanes[16];
    for (int l = 0; l < 16; ++l) lanes[l] = DNNOPT_FIRST;
#endif
    for (int block = 0; block < blocks; ++block) {
    const int number = (int)get_global_id(0) * blocks + block;
#if DNNOPT_SPAN
    const int across = DNNOPT_ACROSS;
    const int row_begin = number / across * block_rows;
    const int column_begin = number % across * block_columns;
#else
    const int row_begin = number * block_rows;
    const int column_begin = 0;
#endif
    const int rows = min(block_rows, (int)(DNNOPT_OH) - row_begin);
    const int columns = min(block_columns, (int)(DNNOPT_OW) - column_begin);
    // Where the image begins in a row that is staged, and where it ends.
    const int left = DNNOPT_PW - column_begin * DNNOPT_SW;
    const int right = DNNOPT_IW + left;
    const int in_rows = rows + DNNOPT_BELOW;
#if DNNOPT_FLAT
    const int image_begin = max(row_begin * DNNOPT_SH - DNNOPT_PH, 0);
    const int image_end = min((row_begin + in_rows - 1) * DNNOPT_SH + DNNOPT_PHASES_H - DNNOPT_PH, DNNOPT_IH);
    for (int i = image_begin * DNNOPT_IW; i < image_end * DNNOPT_IW; ++i) image[i - image_begin * DNNOPT_IW] = dnnopt_load_flat(DNNOPT_ARGUMENTS, z, i);
#endif
    for (int ph = 0; ph < DNNOPT_PHASES_H; ++ph)
      for (int i = 0; i < in_rows; ++i) {
        const int h = (row_begin + i) * DNNOPT_SH + ph - DNNOPT_PH;
        __local float* to = staged + ph * DNNOPT_PHASES_W * phase + i * pitch;
        if (h < 0 || h >= DNNOPT_IH) {
          for (int pw = 0; pw < DNNOPT_PHASES_W; ++pw)
            for (int j = 0; j < pitch; ++j) to[pw * phase + j] = DNNOPT_PADDING;
          continue;
        }
#if DNNOPT_SW == 1
        const int first = clamp(left, 0, pitch);
        const int last = clamp(right, first, pitch);
        for (int j = 0; j < first; ++j) to[j] = DNNOPT_PADDING;
#if DNNOPT_FLAT
        // What vectors write beyond a row is overwritten by the next one, or lies behind the last.
        for (int j = first; j < last; j += 16) vstore16(vload16(0, image + (h - image_begin) * DNNOPT_IW + j - left), 0, to + j);
#else
        for (int j = first; j < last; ++j) to[j] = dnnopt_load_x(DNNOPT_ARGUMENTS, z, 0, 0, h, j - left);
#endif
        for (int j = last; j < pitch; ++j) to[j] = DNNOPT_PADDING;
#else
        float line[DNNOPT_LINE + DNNOPT_FLAT * 16];
        const int line_end = pitch * DNNOPT_SW + 32;
        const int first = clamp(left, 0, line_end);
        const int last = clamp(right, first, line_end);
        for (int j = 0; j < first; ++j) line[j] = DNNOPT_PADDING;
#if DNNOPT_FLAT
        for (int j = first; j < last; j += 16) vstore16(vload16(0, image + (h - image_begin) * DNNOPT_IW + j - left), 0, line + j);
#else
        for (int j = first; j < last; ++j) line[j] = dnnopt_load_x(DNNOPT_ARGUMENTS, z, 0, 0, h, j - left);
#endif
        for (int j = last; j < line_end; ++j) line[j] = DNNOPT_PADDING;
#if DNNOPT_SW == 2
        // What the last vectors write beyond the row is overwritten by the next row or lies behind the plane.
        for (int j = 0; j < pitch; j += 16) {
          const float16 a = vload16(0, line + 2 * j);
          const float16 b = vload16(0, line + min(2 * j + 16, line_end - 16));
          if (DNNOPT_BEHIND >= 16 || j + 16 <= pitch) {
            vstore16((float16)(a.even, b.even), 0, to + j);
            if (DNNOPT_PHASES_W > 1) vstore16((float16)(a.odd, b.odd), 0, to + phase + j);
          } else {
            for (int k = 0; k < pitch - j; ++k)
              for (int pw = 0; pw < DNNOPT_PHASES_W; ++pw) to[pw * phase + j + k] = line[2 * (j + k) + pw];
          }
        }
#else
        for (int pw = 0; pw < DNNOPT_PHASES_W; ++pw)
          for (int j = 0; j < pitch; ++j) to[pw * phase + j] = line[j * DNNOPT_SW + pw];
#endif
#endif
      }
#if DNNOPT_FAMILY == 0
    float weights[DNNOPT_KH * DNNOPT_KW];
    for (int kh = 0; kh < DNNOPT_KH; ++kh)
      for (int kw = 0; kw < DNNOPT_KW; ++kw) weights[kh * DNNOPT_KW + kw] = dnnopt_load_weight(DNNOPT_ARGUMENTS, z, m, 0, 0, kh, kw);
#endif
    for (int lane = 0; lane < rows * pitch; lane += DNNOPT_LANES) {
      float16 sum[DNNOPT_UNROLL];
      _Pragma("unroll") for (int u = 0; u < DNNOPT_UNROLL; ++u) sum[u] = (float16)(DNNOPT_PADDING);
      DNNOPT_EACH_WINDOW_ROW for (int kh = 0; kh < DNNOPT_KH; ++kh) {
        DNNOPT_EACH_WINDOW_COLUMN for (int kw = 0; kw < DNNOPT_KW; ++kw) {
          __local const float* from = staged + (kh * DNNOPT_DH % DNNOPT_SH * DNNOPT_PHASES_W + kw * DNNOPT_DW % DNNOPT_SW) * phase + kh * DNNOPT_DH / DNNOPT_SH * pitch + kw * DNNOPT_DW / DNNOPT_SW + lane;
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
#if DNNOPT_FLAT
    for (int r = 0; r < rows; ++r)
      for (int j = 0; j < DNNOPT_OW; j += 16) vstore16(vload16(0, result + r * pitch + j), 0, finished + r * DNNOPT_OW + j);
#if DNNOPT_TOTALS
    for (int i = 0; i < rows * DNNOPT_OW; i += 16)
      for (int l = 0; l < min(16, rows * DNNOPT_OW - i); ++l) {
        const float x = dnnopt_store_flat(DNNOPT_ARGUMENTS, z, m, row_begin * DNNOPT_OW + i + l, finished[i + l]);
        lanes[l] = DNNOPT_TAKE(lanes[l], x);
      }
#else
    for (int i = 0; i < rows * DNNOPT_OW; ++i) dnnopt_store_flat(DNNOPT_ARGUMENTS, z, m, row_begin * DNNOPT_OW + i, finished[i]);
#endif
#else
    for (int r = 0; r < rows; ++r)
#if DNNOPT_TOTALS
      for (int j = 0; j < columns; j += 16)
        for (int l = 0; l < min(16, columns - j); ++l) {
          const float x = dnnopt_store(DNNOPT_ARGUMENTS, z, m, 0, row_begin + r, column_begin + j + l, result[r * pitch + j + l]);
          lanes[l] = DNNOPT_TAKE(lanes[l], x);
        }
#else
      for (int j = 0; j < columns; ++j) dnnopt_store(DNNOPT_ARGUMENTS, z, m, 0, row_begin + r, column_begin + j, result[r * pitch + j]);
#endif
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
