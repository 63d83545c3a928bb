#ifdef __cplusplus
R"CLC(
#endif
// Matrix product on devices whose work-items run in step and share local memory (GPUs): a work-group computes a tile of
// the result, its work-items DNNOPT_ITEM_ROWS by DNNOPT_ITEM_COLUMNS elements each, from tiles of both operands that it
// loads to local memory together. There are two of each: while one is used, the next is on its way in registers.
//
//   result(z, m, n) = sum over k of a(z, m, k) * b(z, k, n);   dnnopt_store(z, m, n, result)
//
// Hooks: dnnopt_load_a(z, m, k), dnnopt_load_b(z, k, n), dnnopt_store. Where DNNOPT_A_WIDTH (DNNOPT_B_WIDTH) is 4,
// dnnopt_load4_a (dnnopt_load4_b) returns four neighbours in memory, which are within the matrix or beyond it together.
// Where DNNOPT_A_BITS (DNNOPT_B_BITS) is 1, loads return halves as they are stored: dnnopt_load_a their bits in the lower
// half of a float, dnnopt_load4_a a uint2. They are widened when they are kept in local memory, because compilers put a
// conversion right behind its load, where the product of the tile at hand would wait for it.
// DNNOPT_STORE_ALONG 1 (rows) or 2 (columns): instead dnnopt_store4(z, quarter, n, results) stores four rows 4 * quarter ..
// of a column, or dnnopt_store4(z, m, quarter, results) four columns of a row.
// DNNOPT_SPLITS > 1: that many work-groups share the inner elements, DNNOPT_SPLIT_INNER each, and
// dnnopt_store_partial4(split, z, m, quarter, results) keeps four columns of their sums apart, of the last ones also those
// beyond the matrix.
// DNNOPT_TEAMS > 1: a work-group has so many teams of work-items, each with tiles of its own for its part of the inner
// elements; in the end they add their sums through local memory. A work-item has 4 x 4 elements then.
// DNNOPT_HALF_PRODUCTS 1: products are of halves and are summed in halves for DNNOPT_TILE_INNER elements, then in floats,
// so that what a sum loses does not grow with its length. 2: floats that are rounded after each step stand for halves, for
// tests on devices without arithmetic in halves (whose compilers may define the extension's macro nevertheless).

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
static inline float4 dnnopt_load4_a(DNNOPT_PARAMETERS, const int z, const int m, const int k) { return vload4(0, b0 + (z * p0 + m) * p2 + k); }
static inline float4 dnnopt_load4_b(DNNOPT_PARAMETERS, const int z, const int k, const int n) { return vload4(0, b1 + (z * p2 + k) * p1 + n); }
static inline void dnnopt_store(DNNOPT_PARAMETERS, const int z, const int m, const int n, float value) { b2[(z * p0 + m) * p1 + n] = value; }
#endif
#ifndef DNNOPT_GROUP_ROWS
#define DNNOPT_GROUP_ROWS 16
#endif
#ifndef DNNOPT_GROUP_COLUMNS
#define DNNOPT_GROUP_COLUMNS 16
#endif
// Multiples of 4.
#ifndef DNNOPT_ITEM_ROWS
#define DNNOPT_ITEM_ROWS 4
#endif
#ifndef DNNOPT_ITEM_COLUMNS
#define DNNOPT_ITEM_COLUMNS 4
#endif
// A multiple of 4 such that the work-items share the loads of either tile evenly.
#ifndef DNNOPT_TILE_INNER
#define DNNOPT_TILE_INNER 16
#endif
// Whether neighbours of an operand in memory are neighbours in k rather than in its other index; 2: four neighbours in k
// are one texel, and next to it lies the texel of the next element of the other index.
#ifndef DNNOPT_A_INNER_FIRST
#define DNNOPT_A_INNER_FIRST 1
#endif
#ifndef DNNOPT_B_INNER_FIRST
#define DNNOPT_B_INNER_FIRST 0
#endif
#ifndef DNNOPT_A_WIDTH
#define DNNOPT_A_WIDTH 1
#endif
#ifndef DNNOPT_B_WIDTH
#define DNNOPT_B_WIDTH 1
#endif
#ifndef DNNOPT_A_BITS
#define DNNOPT_A_BITS 0
#endif
#ifndef DNNOPT_B_BITS
#define DNNOPT_B_BITS 0
#endif
#ifndef DNNOPT_SPLITS
#define DNNOPT_SPLITS 1
#endif
#ifndef DNNOPT_TEAMS
#define DNNOPT_TEAMS 1
#endif
#ifndef DNNOPT_STORE_ALONG
#define DNNOPT_STORE_ALONG 0
#endif
#ifndef DNNOPT_HALF_PRODUCTS
#define DNNOPT_HALF_PRODUCTS 0
#endif

#if DNNOPT_HALF_PRODUCTS == 1
#pragma OPENCL EXTENSION cl_khr_fp16 : enable
#define DNNOPT_FACTOR half
#define DNNOPT_FACTOR4 half4
#define DNNOPT_TO_FACTOR(value) convert_half(value)
#define DNNOPT_TO_FACTOR4(value) convert_half4(value)
#define DNNOPT_FROM_FACTOR4(value) convert_float4(value)
#define DNNOPT_MULTIPLY_ADD(x, y, z) fma(x, y, z)
#else
#define DNNOPT_FACTOR float
#define DNNOPT_FACTOR4 float4
#define DNNOPT_TO_FACTOR(value) (value)
#define DNNOPT_TO_FACTOR4(value) (value)
#define DNNOPT_FROM_FACTOR4(value) (value)
#if DNNOPT_HALF_PRODUCTS
#define DNNOPT_MULTIPLY_ADD(x, y, z) dnnopt_widened4(dnnopt_narrowed4(fma(x, y, z)))
#else
#define DNNOPT_MULTIPLY_ADD(x, y, z) fma(x, y, z)
#endif
#endif

#define DNNOPT_TILE_ROWS (DNNOPT_GROUP_ROWS * DNNOPT_ITEM_ROWS)
#define DNNOPT_TILE_COLUMNS (DNNOPT_GROUP_COLUMNS * DNNOPT_ITEM_COLUMNS)
#define DNNOPT_ITEMS (DNNOPT_GROUP_ROWS * DNNOPT_GROUP_COLUMNS)
// Vectors of 4 from one inner element to the next; one more keeps neighbouring ones in different banks.
#define DNNOPT_A_PITCH (DNNOPT_TILE_ROWS / 4 + 1)
#define DNNOPT_B_PITCH (DNNOPT_TILE_COLUMNS / 4 + 1)
#define DNNOPT_A_LOADS (DNNOPT_TILE_ROWS * DNNOPT_TILE_INNER / DNNOPT_ITEMS / DNNOPT_A_WIDTH)
#define DNNOPT_B_LOADS (DNNOPT_TILE_COLUMNS * DNNOPT_TILE_INNER / DNNOPT_ITEMS / DNNOPT_B_WIDTH)
#define DNNOPT_UNROLLED(i, count) _Pragma("unroll") for (int i = 0; i < (count); ++i)
// What a load returns, what becomes of it at once, and what is kept of it.
#if DNNOPT_A_WIDTH == 4
#define DNNOPT_A_LOAD dnnopt_load4_a
#define DNNOPT_A_KEPT DNNOPT_FACTOR4
#else
#define DNNOPT_A_LOAD dnnopt_load_a
#define DNNOPT_A_KEPT DNNOPT_FACTOR
#endif
#if DNNOPT_A_BITS && DNNOPT_A_WIDTH == 4
#define DNNOPT_A_TYPE uint2
#define DNNOPT_TO_A(value) (value)
#define DNNOPT_WIDEN_A dnnopt_widened4
#elif DNNOPT_A_BITS
#define DNNOPT_A_TYPE float
#define DNNOPT_TO_A(value) (value)
#define DNNOPT_WIDEN_A dnnopt_widened
#else
#define DNNOPT_A_TYPE DNNOPT_A_KEPT
#define DNNOPT_WIDEN_A(value) (value)
#if DNNOPT_A_WIDTH == 4
#define DNNOPT_TO_A DNNOPT_TO_FACTOR4
#else
#define DNNOPT_TO_A DNNOPT_TO_FACTOR
#endif
#endif
#if DNNOPT_B_WIDTH == 4
#define DNNOPT_B_LOAD dnnopt_load4_b
#define DNNOPT_B_KEPT DNNOPT_FACTOR4
#else
#define DNNOPT_B_LOAD dnnopt_load_b
#define DNNOPT_B_KEPT DNNOPT_FACTOR
#endif
#if DNNOPT_B_BITS && DNNOPT_B_WIDTH == 4
#define DNNOPT_B_TYPE uint2
#define DNNOPT_TO_B(value) (value)
#define DNNOPT_WIDEN_B dnnopt_widened4
#elif DNNOPT_B_BITS
#define DNNOPT_B_TYPE float
#define DNNOPT_TO_B(value) (value)
#define DNNOPT_WIDEN_B dnnopt_widened
#else
#define DNNOPT_B_TYPE DNNOPT_B_KEPT
#define DNNOPT_WIDEN_B(value) (value)
#if DNNOPT_B_WIDTH == 4
#define DNNOPT_TO_B DNNOPT_TO_FACTOR4
#else
#define DNNOPT_TO_B DNNOPT_TO_FACTOR
#endif
#endif

// Where load number i of a work-item lies in a tile: `outer` is a row of a or a column of b.
#define DNNOPT_PLACE(i, inner_first, extent, width)                                                  \
  const int e = item + (i) * DNNOPT_ITEMS;                                                           \
  const int k = (inner_first) == 2 ? e / (extent) * (width) : (inner_first) ? e % (DNNOPT_TILE_INNER / (width)) * (width) : e / ((extent) / (width)); \
  const int outer = (inner_first) == 2 ? e % (extent) : (inner_first) ? e / (DNNOPT_TILE_INNER / (width)) : e % ((extent) / (width)) * (width);

#define DNNOPT_FETCH(k_begin)                                                                                            \
  DNNOPT_UNROLLED(i, DNNOPT_A_LOADS) {                                                                                   \
    DNNOPT_PLACE(i, DNNOPT_A_INNER_FIRST, DNNOPT_TILE_ROWS, DNNOPT_A_WIDTH)                                              \
    a_next[i] = m_begin + outer < DNNOPT_M && (k_begin) + k < k_end ? DNNOPT_TO_A(DNNOPT_A_LOAD(DNNOPT_ARGUMENTS, z, m_begin + outer, (k_begin) + k)) : (DNNOPT_A_TYPE)(0); \
  }                                                                                                                      \
  DNNOPT_UNROLLED(i, DNNOPT_B_LOADS) {                                                                                   \
    DNNOPT_PLACE(i, DNNOPT_B_INNER_FIRST, DNNOPT_TILE_COLUMNS, DNNOPT_B_WIDTH)                                           \
    b_next[i] = n_begin + outer < DNNOPT_N && (k_begin) + k < k_end ? DNNOPT_TO_B(DNNOPT_B_LOAD(DNNOPT_ARGUMENTS, z, (k_begin) + k, n_begin + outer)) : (DNNOPT_B_TYPE)(0); \
  }

#define DNNOPT_KEEP_1(tile, pitch, inner_first, from) ((__local DNNOPT_FACTOR*)(tile))[k * (pitch) * 4 + outer] = from;
#define DNNOPT_KEEP_4(tile, pitch, inner_first, from)                   \
  if (inner_first) {                                                    \
    ((__local DNNOPT_FACTOR*)(tile))[(k + 0) * (pitch) * 4 + outer] = (from).x; \
    ((__local DNNOPT_FACTOR*)(tile))[(k + 1) * (pitch) * 4 + outer] = (from).y; \
    ((__local DNNOPT_FACTOR*)(tile))[(k + 2) * (pitch) * 4 + outer] = (from).z; \
    ((__local DNNOPT_FACTOR*)(tile))[(k + 3) * (pitch) * 4 + outer] = (from).w; \
  } else {                                                              \
    (tile)[k * (pitch) + outer / 4] = from;                             \
  }
#if DNNOPT_A_WIDTH == 4
#define DNNOPT_KEEP_A DNNOPT_KEEP_4
#else
#define DNNOPT_KEEP_A DNNOPT_KEEP_1
#endif
#if DNNOPT_B_WIDTH == 4
#define DNNOPT_KEEP_B DNNOPT_KEEP_4
#else
#define DNNOPT_KEEP_B DNNOPT_KEEP_1
#endif

#define DNNOPT_KEEP(which)                                                                            \
  DNNOPT_UNROLLED(i, DNNOPT_A_LOADS) {                                                                \
    DNNOPT_PLACE(i, DNNOPT_A_INNER_FIRST, DNNOPT_TILE_ROWS, DNNOPT_A_WIDTH)                           \
    const DNNOPT_A_KEPT kept = DNNOPT_WIDEN_A(a_next[i]);                                             \
    DNNOPT_KEEP_A(a_tile + (which) * (DNNOPT_TILE_INNER * DNNOPT_A_PITCH), DNNOPT_A_PITCH, DNNOPT_A_INNER_FIRST, kept) \
  }                                                                                                   \
  DNNOPT_UNROLLED(i, DNNOPT_B_LOADS) {                                                                \
    DNNOPT_PLACE(i, DNNOPT_B_INNER_FIRST, DNNOPT_TILE_COLUMNS, DNNOPT_B_WIDTH)                        \
    const DNNOPT_B_KEPT kept = DNNOPT_WIDEN_B(b_next[i]);                                             \
    DNNOPT_KEEP_B(b_tile + (which) * (DNNOPT_TILE_INNER * DNNOPT_B_PITCH), DNNOPT_B_PITCH, DNNOPT_B_INNER_FIRST, kept) \
  }

// Vectors of a team's tiles, and of the sums that it keeps in their place.
#define DNNOPT_A_VECTORS (2 * DNNOPT_TILE_INNER * DNNOPT_A_PITCH)
#define DNNOPT_B_VECTORS (2 * DNNOPT_TILE_INNER * DNNOPT_B_PITCH)
#define DNNOPT_TILE_BYTES (DNNOPT_TEAMS * (DNNOPT_A_VECTORS + DNNOPT_B_VECTORS) * (int)sizeof(DNNOPT_FACTOR4))
#define DNNOPT_KEPT_BYTES (DNNOPT_TEAMS * DNNOPT_ITEMS * DNNOPT_ITEM_ROWS * 16)

__kernel __attribute__((reqd_work_group_size(DNNOPT_GROUP_COLUMNS, DNNOPT_GROUP_ROWS, DNNOPT_TEAMS))) void dnnopt_kernel(DNNOPT_KERNEL_PARAMETERS) {
#if DNNOPT_TEAMS > 1
  __local float4 memory[(DNNOPT_TILE_BYTES > DNNOPT_KEPT_BYTES ? DNNOPT_TILE_BYTES : DNNOPT_KEPT_BYTES) / 16];
  const int team = (int)get_local_id(2);
  __local DNNOPT_FACTOR4* a_tile = (__local DNNOPT_FACTOR4*)memory + team * (DNNOPT_A_VECTORS + DNNOPT_B_VECTORS);
  __local DNNOPT_FACTOR4* b_tile = a_tile + DNNOPT_A_VECTORS;
#else
  __local DNNOPT_FACTOR4 a_tile[DNNOPT_A_VECTORS];
  __local DNNOPT_FACTOR4 b_tile[DNNOPT_B_VECTORS];
#endif
#if DNNOPT_SPLITS > 1
  const int split = (int)get_group_id(2) % DNNOPT_SPLITS;
  const int z = (int)get_group_id(2) / DNNOPT_SPLITS;
  const int k_split = split * DNNOPT_SPLIT_INNER;
  const int k_split_end = min(k_split + DNNOPT_SPLIT_INNER, (int)(DNNOPT_K));
#else
  const int z = (int)get_group_id(2);
  const int k_split = 0;
  const int k_split_end = DNNOPT_K;
#endif
#if DNNOPT_TEAMS > 1
  // All teams take as many steps, for they meet at barriers; what lies beyond the end is zero.
  const int team_inner = (k_split_end - k_split + DNNOPT_TEAMS * DNNOPT_TILE_INNER - 1) / (DNNOPT_TEAMS * DNNOPT_TILE_INNER) * DNNOPT_TILE_INNER;
  const int k_first = k_split + team * team_inner;
  const int k_last = k_first + team_inner;
  const int k_end = min(k_last, k_split_end);
#else
  const int k_first = k_split;
  const int k_last = k_split_end;
  const int k_end = k_split_end;
#endif
  const int m_begin = (int)get_group_id(1) * DNNOPT_TILE_ROWS;
  const int n_begin = (int)get_group_id(0) * DNNOPT_TILE_COLUMNS;
  const int item = (int)get_local_id(1) * DNNOPT_GROUP_COLUMNS + (int)get_local_id(0);
  // Down the tile in pairs: every eight neighbours, two rows by four columns, read a third fewer different elements of the
  // tiles than eight in a row would, and devices serve an access to local memory by so many work-items at a time.
  const int row = item / (2 * DNNOPT_GROUP_COLUMNS) * 2 + item % 2;
  const int column = item % (2 * DNNOPT_GROUP_COLUMNS) / 2;
  float4 sum[DNNOPT_ITEM_ROWS][DNNOPT_ITEM_COLUMNS / 4];
  DNNOPT_UNROLLED(i, DNNOPT_ITEM_ROWS) DNNOPT_UNROLLED(j, DNNOPT_ITEM_COLUMNS / 4) sum[i][j] = (float4)(0.0f);
  DNNOPT_A_TYPE a_next[DNNOPT_A_LOADS];
  DNNOPT_B_TYPE b_next[DNNOPT_B_LOADS];
  DNNOPT_FETCH(k_first)
  DNNOPT_KEEP(0)
  barrier(CLK_LOCAL_MEM_FENCE);
  int which = 0;
  for (int k_begin = k_first; k_begin < k_last; k_begin += DNNOPT_TILE_INNER) {
    const int more = k_begin + DNNOPT_TILE_INNER < k_last;
    if (more) {
      DNNOPT_FETCH(k_begin + DNNOPT_TILE_INNER)
    }
    __local const DNNOPT_FACTOR4* a_from = a_tile + which * (DNNOPT_TILE_INNER * DNNOPT_A_PITCH) + row;
    __local const DNNOPT_FACTOR4* b_from = b_tile + which * (DNNOPT_TILE_INNER * DNNOPT_B_PITCH) + column;
#if DNNOPT_HALF_PRODUCTS
    DNNOPT_FACTOR4 part[DNNOPT_ITEM_ROWS][DNNOPT_ITEM_COLUMNS / 4];
    DNNOPT_UNROLLED(i, DNNOPT_ITEM_ROWS) DNNOPT_UNROLLED(j, DNNOPT_ITEM_COLUMNS / 4) part[i][j] = (DNNOPT_FACTOR4)(0.0f);
#define DNNOPT_PART part
#else
#define DNNOPT_PART sum
#endif
    DNNOPT_UNROLLED(k, DNNOPT_TILE_INNER) {
      DNNOPT_FACTOR4 a[DNNOPT_ITEM_ROWS / 4];
      DNNOPT_FACTOR4 b[DNNOPT_ITEM_COLUMNS / 4];
      DNNOPT_UNROLLED(i, DNNOPT_ITEM_ROWS / 4) a[i] = a_from[k * DNNOPT_A_PITCH + i * DNNOPT_GROUP_ROWS];
      DNNOPT_UNROLLED(j, DNNOPT_ITEM_COLUMNS / 4) b[j] = b_from[k * DNNOPT_B_PITCH + j * DNNOPT_GROUP_COLUMNS];
      DNNOPT_UNROLLED(i, DNNOPT_ITEM_ROWS / 4) DNNOPT_UNROLLED(j, DNNOPT_ITEM_COLUMNS / 4) {
        DNNOPT_PART[4 * i + 0][j] = DNNOPT_MULTIPLY_ADD((DNNOPT_FACTOR4)(a[i].x), b[j], DNNOPT_PART[4 * i + 0][j]);
        DNNOPT_PART[4 * i + 1][j] = DNNOPT_MULTIPLY_ADD((DNNOPT_FACTOR4)(a[i].y), b[j], DNNOPT_PART[4 * i + 1][j]);
        DNNOPT_PART[4 * i + 2][j] = DNNOPT_MULTIPLY_ADD((DNNOPT_FACTOR4)(a[i].z), b[j], DNNOPT_PART[4 * i + 2][j]);
        DNNOPT_PART[4 * i + 3][j] = DNNOPT_MULTIPLY_ADD((DNNOPT_FACTOR4)(a[i].w), b[j], DNNOPT_PART[4 * i + 3][j]);
      }
    }
#if DNNOPT_HALF_PRODUCTS
    DNNOPT_UNROLLED(i, DNNOPT_ITEM_ROWS) DNNOPT_UNROLLED(j, DNNOPT_ITEM_COLUMNS / 4) sum[i][j] += DNNOPT_FROM_FACTOR4(part[i][j]);
#endif
    if (more) {
      which ^= 1;
      DNNOPT_KEEP(which)
      barrier(CLK_LOCAL_MEM_FENCE);
    }
  }
#if DNNOPT_SPLITS > 1
#define DNNOPT_STORE_ROW(m, quarter, results) dnnopt_store_partial4(DNNOPT_ARGUMENTS, split, z, m, quarter, results)
#elif DNNOPT_STORE_ALONG == 2
#define DNNOPT_STORE_ROW(m, quarter, results) dnnopt_store4(DNNOPT_ARGUMENTS, z, m, quarter, results)
#endif
#if DNNOPT_TEAMS > 1
  // Each team ends some of the four rows, or columns, of all items.
  barrier(CLK_LOCAL_MEM_FENCE);
  __local float4* kept = memory + item;
  DNNOPT_UNROLLED(i, 4) kept[(team * 4 + i) * DNNOPT_ITEMS] = sum[i][0];
  barrier(CLK_LOCAL_MEM_FENCE);
#if DNNOPT_SPLITS == 1 && DNNOPT_STORE_ALONG == 1
  const int quarter = m_begin / 4 + row;
  for (int c = team; c < 4; c += DNNOPT_TEAMS) {
    const int n = n_begin + column * 4 + c;
    float totals[4] = {0.0f, 0.0f, 0.0f, 0.0f};
    DNNOPT_UNROLLED(t, DNNOPT_TEAMS) DNNOPT_UNROLLED(i, 4) totals[i] += ((__local const float*)(kept + (t * 4 + i) * DNNOPT_ITEMS))[c];
    if (4 * quarter < DNNOPT_M && n < DNNOPT_N) dnnopt_store4(DNNOPT_ARGUMENTS, z, quarter, n, (float4)(totals[0], totals[1], totals[2], totals[3]));
  }
#else
  for (int i = team; i < 4; i += DNNOPT_TEAMS) {
    const int m = m_begin + row * 4 + i;
    const int n = n_begin + column * 4;
    float4 total = kept[i * DNNOPT_ITEMS];
    DNNOPT_UNROLLED(t, DNNOPT_TEAMS - 1) total += kept[((t + 1) * 4 + i) * DNNOPT_ITEMS];
    if (m < DNNOPT_M) {
#ifdef DNNOPT_STORE_ROW
      if (n < DNNOPT_N) DNNOPT_STORE_ROW(m, n / 4, total);
#else
      if (n < DNNOPT_N) dnnopt_store(DNNOPT_ARGUMENTS, z, m, n, total.x);
      if (n + 1 < DNNOPT_N) dnnopt_store(DNNOPT_ARGUMENTS, z, m, n + 1, total.y);
      if (n + 2 < DNNOPT_N) dnnopt_store(DNNOPT_ARGUMENTS, z, m, n + 2, total.z);
      if (n + 3 < DNNOPT_N) dnnopt_store(DNNOPT_ARGUMENTS, z, m, n + 3, total.w);
#endif
    }
  }
#endif
#elif defined(DNNOPT_STORE_ROW)
  DNNOPT_UNROLLED(i, DNNOPT_ITEM_ROWS) {
    const int m = m_begin + (i / 4 * DNNOPT_GROUP_ROWS + row) * 4 + i % 4;
    if (m < DNNOPT_M) {
      DNNOPT_UNROLLED(j, DNNOPT_ITEM_COLUMNS / 4) {
        const int quarter = n_begin / 4 + j * DNNOPT_GROUP_COLUMNS + column;
        if (4 * quarter < DNNOPT_N) DNNOPT_STORE_ROW(m, quarter, sum[i][j]);
      }
    }
  }
#elif DNNOPT_STORE_ALONG == 1
  DNNOPT_UNROLLED(i, DNNOPT_ITEM_ROWS / 4) {
    const int quarter = m_begin / 4 + i * DNNOPT_GROUP_ROWS + row;
    if (4 * quarter < DNNOPT_M) {
      DNNOPT_UNROLLED(j, DNNOPT_ITEM_COLUMNS / 4) {
        const int n = n_begin + (j * DNNOPT_GROUP_COLUMNS + column) * 4;
#define DNNOPT_STORE_COLUMN(c, part) \
  if (n + (c) < DNNOPT_N) dnnopt_store4(DNNOPT_ARGUMENTS, z, quarter, n + (c), (float4)(sum[4 * i][j].part, sum[4 * i + 1][j].part, sum[4 * i + 2][j].part, sum[4 * i + 3][j].part));
        DNNOPT_STORE_COLUMN(0, x)
        DNNOPT_STORE_COLUMN(1, y)
        DNNOPT_STORE_COLUMN(2, z)
        DNNOPT_STORE_COLUMN(3, w)
      }
    }
  }
#else
  DNNOPT_UNROLLED(i, DNNOPT_ITEM_ROWS) {
    const int m = m_begin + (i / 4 * DNNOPT_GROUP_ROWS + row) * 4 + i % 4;
    if (m < DNNOPT_M) {
      DNNOPT_UNROLLED(j, DNNOPT_ITEM_COLUMNS / 4) {
        int n = n_begin + (j * DNNOPT_GROUP_COLUMNS + column) * 4;
        if (n < DNNOPT_N) dnnopt_store(DNNOPT_ARGUMENTS, z, m, n, sum[i][j].x);
        ++n;
        if (n < DNNOPT_N) dnnopt_store(DNNOPT_ARGUMENTS, z, m, n, sum[i][j].y);
        ++n;
        if (n < DNNOPT_N) dnnopt_store(DNNOPT_ARGUMENTS, z, m, n, sum[i][j].z);
        ++n;
        if (n < DNNOPT_N) dnnopt_store(DNNOPT_ARGUMENTS, z, m, n, sum[i][j].w);
      }
    }
  }
#endif
}
#ifdef __cplusplus
)CLC"
#endif
