#ifdef __cplusplus
R"CLC(
#endif
// Matrix product of halves or floats with sums in float, in matrix steps: a wave of 32 neighbouring work-items multiplies
// 16 x DNNOPT_STEP_INNER by DNNOPT_STEP_INNER x 16 elements at once, each work-item holding 16 bytes of either operand and
// eight sums. The text of a provider (step_plain.cl, step_mma_sync.cl, ...) stands before this one and says how, and of
// what type dnnopt_element is. A work-group computes a tile of the result, its waves DNNOPT_ROW_STEPS by
// DNNOPT_COLUMN_STEPS steps each, from tiles of both operands that lie in local memory. There are DNNOPT_STAGES of each:
// while one is multiplied, the others are on their way.
//
//   result(z, m, n) = sum over k of a(z, m, k) * b(z, k, n);   dnnopt_store(z, m, n, result)
//
// Where DNNOPT_FROM_TILES is 1 the provider (tiles_plain.cl, tiles_wgmma.cl) multiplies from local memory, four waves
// together: they have 64 rows one below the other, and lines longer than eight chunks are parted into panels of so many.
// It may still multiply while what follows runs, until dnnopt_await_tile_steps().
//
// Where DNNOPT_STEP_BYTES is 1, elements are codes of bytes and DNNOPT_STEP_INNER is 32. What codes mean is how much they
// differ from zero points, which a unit that multiplies bytes is not told. Where DNNOPT_A_SHIFTED (DNNOPT_B_SHIFTED) is 1, the
// zero point of an operand may be another code than 0, and its product with the total of the other's codes is taken from each
// sum.
//
// Hooks: dnnopt_store, and those of operands (step_operands.cl).
// DNNOPT_STORE_ALONG 1 (rows) or 2 (columns): instead of dnnopt_store, dnnopt_store4(z, quarter, n, results) stores four
// rows 4 * quarter .. of a column, or dnnopt_store4(z, m, quarter, results) four columns of a row. Where DNNOPT_EPILOGUE4 is 1,
// dnnopt_put4 stores what dnnopt_epilogue4, with the same arguments, makes of the results: a DNNOPT_FINISHED4.
// DNNOPT_SPLITS > 1: that many work-groups share the inner elements, DNNOPT_SPLIT_INNER each, and
// dnnopt_store_partial4(split, z, m, quarter, results) keeps four columns of their sums apart, of the last ones also those
// beyond the matrix.

#ifndef DNNOPT_TILE_ROWS
// Stand-alone.
#include "step_operands.cl"
#endif

#ifndef dnnopt_sum
#define dnnopt_sum float
#endif
#ifndef DNNOPT_A_SHIFTED
#define DNNOPT_A_SHIFTED 0
#endif
#ifndef DNNOPT_B_SHIFTED
#define DNNOPT_B_SHIFTED 0
#endif
// Totals of rows of a and of columns of b are their products with ones, and lie where sums do.
#if DNNOPT_B_SHIFTED
#define DNNOPT_BEGIN_A_TOTALS                                                                        \
  int a_total[DNNOPT_ROW_STEPS][1][8];                                                               \
  DNNOPT_UNROLLED(i, DNNOPT_ROW_STEPS) DNNOPT_UNROLLED(s, 8) a_total[i][0][s] = 0;
#define DNNOPT_ADD_A_TOTALS                                                                          \
  {                                                                                                  \
    const uint4 ones[1] = {(uint4)(0x01010101u)};                                                    \
    DNNOPT_MULTIPLY_STEPS(a_total, a, ones, DNNOPT_ROW_STEPS, 1)                                     \
  }
// Only these of a work-item's totals of a row: the others repeat them.
#define DNNOPT_SHIFT_B(i, s) - (DNNOPT_B_ZERO_CODE) * a_total[i][0][(s) & 2]
#else
#define DNNOPT_BEGIN_A_TOTALS
#define DNNOPT_ADD_A_TOTALS
#define DNNOPT_SHIFT_B(i, s)
#endif
#if DNNOPT_A_SHIFTED
#define DNNOPT_BEGIN_B_TOTALS                                                                        \
  int b_total[1][DNNOPT_COLUMN_STEPS][8];                                                            \
  DNNOPT_UNROLLED(j, DNNOPT_COLUMN_STEPS) DNNOPT_UNROLLED(s, 8) b_total[0][j][s] = 0;
#define DNNOPT_ADD_B_TOTALS                                                                          \
  {                                                                                                  \
    const uint4 ones[1] = {(uint4)(0x01010101u)};                                                    \
    DNNOPT_MULTIPLY_STEPS(b_total, ones, b, 1, DNNOPT_COLUMN_STEPS)                                  \
  }
#define DNNOPT_SHIFT_A(j, s) - (DNNOPT_A_ZERO_CODE) * b_total[0][j][(s) & 5]
#else
#define DNNOPT_BEGIN_B_TOTALS
#define DNNOPT_ADD_B_TOTALS
#define DNNOPT_SHIFT_A(j, s)
#endif
// Elements beyond the matrices are zero points on both sides.
#if DNNOPT_A_SHIFTED && DNNOPT_B_SHIFTED
#define DNNOPT_SHIFT_BOTH + count * DNNOPT_TILE_INNER * (DNNOPT_A_ZERO_CODE) * (DNNOPT_B_ZERO_CODE)
#else
#define DNNOPT_SHIFT_BOTH
#endif
#if DNNOPT_STEP_BYTES
#define DNNOPT_RESULT(i, j, s) (float)(sum[i][j][s] DNNOPT_SHIFT_B(i, s) DNNOPT_SHIFT_A(j, s) DNNOPT_SHIFT_BOTH)
#else
#define DNNOPT_RESULT(i, j, s) sum[i][j][s]
#endif

#define DNNOPT_EACH_SUM \
  DNNOPT_UNROLLED(i, DNNOPT_ROW_STEPS) DNNOPT_UNROLLED(j, DNNOPT_COLUMN_STEPS) DNNOPT_UNROLLED(s, 8)
// Where a provider's sums are cut as they are added, those of a tile begin at zero, in so many parts as it says.
#ifdef DNNOPT_STEP_CUTS
#define DNNOPT_PART_COUNT DNNOPT_STEP_CUTS(DNNOPT_ROW_STEPS, DNNOPT_COLUMN_STEPS)
#define DNNOPT_PARTS part
#define DNNOPT_BEGIN_PARTS                                                  \
  float part[DNNOPT_PART_COUNT][DNNOPT_ROW_STEPS][DNNOPT_COLUMN_STEPS][8]; \
  DNNOPT_UNROLLED(p, DNNOPT_PART_COUNT) DNNOPT_EACH_SUM part[p][i][j][s] = 0.0f;
#define DNNOPT_END_PARTS DNNOPT_UNROLLED(p, DNNOPT_PART_COUNT) DNNOPT_EACH_SUM sum[i][j][s] += part[p][i][j][s];
#else
#define DNNOPT_PARTS sum
#define DNNOPT_BEGIN_PARTS
#define DNNOPT_END_PARTS
#endif

#if DNNOPT_STEP_WANTS_FINITE
#if DNNOPT_A_COPY
#define DNNOPT_ELEMENT_A *dnnopt_address_a(DNNOPT_ARGUMENTS, z, m, k)
#else
#define DNNOPT_ELEMENT_A dnnopt_load_a(DNNOPT_ARGUMENTS, z, m, k)
#endif
#if DNNOPT_B_COPY
#define DNNOPT_ELEMENT_B (DNNOPT_WITHIN_B ? *dnnopt_address_b(DNNOPT_ARGUMENTS, z, k, n) : 0.0f)
#else
#define DNNOPT_ELEMENT_B dnnopt_load_b(DNNOPT_ARGUMENTS, z, k, n)
#endif
// The sum of a result, or what products of floats make of it where the steps' sum is no number.
static inline float dnnopt_settled(DNNOPT_PARAMETERS, const int z, const int m, const int n, const int k_first, const int k_end, float sum) {
  if (isfinite(sum) || m >= DNNOPT_M || n >= DNNOPT_N) return sum;
  sum = 0.0f;
  for (int k = k_first; k < k_end; ++k) sum = fma(DNNOPT_ELEMENT_A, DNNOPT_ELEMENT_B, sum);
  return sum;
}
#define DNNOPT_SETTLED(m, n, sum) dnnopt_settled(DNNOPT_ARGUMENTS, z, m, n, k_first, k_end, sum)
#else
#define DNNOPT_SETTLED(m, n, sum) sum
#endif

// Four results number e of those that a wave keeps at once, at row m and column n of the result: rows of a column, or columns of
// a row.
#if DNNOPT_SPLITS == 1 && DNNOPT_STORE_ALONG == 1
#define DNNOPT_FOUR_AT(e)                                                   \
  const int row = (e) / (16 * DNNOPT_KEPT_STEPS) * 4;                       \
  const int column = (e) % (16 * DNNOPT_KEPT_STEPS);                        \
  DNNOPT_FOUR_FROM
#define DNNOPT_SETTLED4(m, n, from)                                                                                           \
  (float4)(DNNOPT_SETTLED(m, n, from[0]), DNNOPT_SETTLED(m + 1, n, from[DNNOPT_KEPT_PITCH]),                                  \
           DNNOPT_SETTLED(m + 2, n, from[2 * DNNOPT_KEPT_PITCH]), DNNOPT_SETTLED(m + 3, n, from[3 * DNNOPT_KEPT_PITCH]))
#define DNNOPT_PLACE_OF_FOUR(m, n) (m) / 4, n
#else
#define DNNOPT_FOUR_AT(e)                                                   \
  const int row = (e) / (4 * DNNOPT_KEPT_STEPS);                            \
  const int column = (e) % (4 * DNNOPT_KEPT_STEPS) * 4;                     \
  DNNOPT_FOUR_FROM
#define DNNOPT_SETTLED4(m, n, from)                                                                                  \
  (float4)(DNNOPT_SETTLED(m, n, from[0]), DNNOPT_SETTLED(m, n + 1, from[1]), DNNOPT_SETTLED(m, n + 2, from[2]), \
           DNNOPT_SETTLED(m, n + 3, from[3]))
#define DNNOPT_PLACE_OF_FOUR(m, n) m, (n) / 4
#endif
#define DNNOPT_FOUR_FROM                                                    \
  __local const float* from = kept + row * DNNOPT_KEPT_PITCH + column;      \
  const int m = row_begin + row;                                            \
  const int n = column_begin + column;                                      \
  (void)from;

// Whether four results are within the matrix. Where all tiles are whole there is no test, which would keep the loads of one
// four from being on the way with those of the next.
#define DNNOPT_INSIDE_M ((DNNOPT_M) % DNNOPT_TILE_ROWS == 0 || m < DNNOPT_M)
#define DNNOPT_INSIDE_N ((DNNOPT_N) % DNNOPT_TILE_COLUMNS == 0 || n < DNNOPT_N)

// How many fours a work-item finishes before it stores them. A store between loads of what may be the same memory keeps a
// compiler from having more than one of these on the way.
#define DNNOPT_FOURS (DNNOPT_KEPT_STEPS < 2 ? 2 : 4)

__kernel __attribute__((reqd_work_group_size(DNNOPT_ITEMS, 1, 1))) void dnnopt_kernel(DNNOPT_KERNEL_PARAMETERS) {
  __local uint4 memory[DNNOPT_MEMORY_CHUNKS] DNNOPT_ALIGNED;
#if DNNOPT_STEP_EXCHANGES && !DNNOPT_FROM_TILES
  __local uint4 exchange[DNNOPT_ITEMS * (DNNOPT_ROW_STEPS + DNNOPT_COLUMN_STEPS)];
#endif
#if DNNOPT_SPLITS > 1
  const int split = (int)get_group_id(2) % DNNOPT_SPLITS;
  const int z = (int)get_group_id(2) / DNNOPT_SPLITS;
  const int k_first = split * DNNOPT_SPLIT_INNER;
  const int k_end = min(k_first + DNNOPT_SPLIT_INNER, (int)(DNNOPT_K));
#else
  const int z = (int)get_group_id(2);
  const int k_first = 0;
  const int k_end = DNNOPT_K;
#endif
  const int m_begin = (int)get_group_id(1) * DNNOPT_TILE_ROWS;
  const int n_begin = (int)get_group_id(0) * DNNOPT_TILE_COLUMNS;
  const int item = (int)get_local_id(0);
  const int lane = item % 32;
  const int wave = item / 32;
  const int wave_row = wave / (DNNOPT_TOGETHER * DNNOPT_WAVE_COLUMNS) * DNNOPT_TOGETHER + wave % DNNOPT_TOGETHER;
  const int wave_column = wave / DNNOPT_TOGETHER % DNNOPT_WAVE_COLUMNS;
  dnnopt_tiles tiles = dnnopt_tiles_at(memory);
  const int count = (k_end - k_first + DNNOPT_TILE_INNER - 1) / DNNOPT_TILE_INNER;
  dnnopt_sum sum[DNNOPT_ROW_STEPS][DNNOPT_COLUMN_STEPS][8];
  DNNOPT_EACH_SUM sum[i][j][s] = 0;
  DNNOPT_BEGIN_A_TOTALS
  DNNOPT_BEGIN_B_TOTALS
#if !DNNOPT_A_COPY
  DNNOPT_A_HELD a_next[DNNOPT_WORD_ELEMENTS * DNNOPT_MOVES(DNNOPT_A_CHUNKS, DNNOPT_WORD_ELEMENTS)];
#endif
#if !DNNOPT_B_COPY
  DNNOPT_B_HELD b_next[DNNOPT_WORD_ELEMENTS * DNNOPT_MOVES(DNNOPT_B_CHUNKS, DNNOPT_WORD_ELEMENTS)];
#endif
  DNNOPT_BEGIN_A
  DNNOPT_BEGIN_B
  for (int t = 0; t < DNNOPT_STAGES - 1; ++t) {
    const int k_begin = k_first + t * DNNOPT_TILE_INNER;
    if (t < count) {
      DNNOPT_COPY_A(t)
      DNNOPT_COPY_B(t)
      DNNOPT_FETCH_A
      DNNOPT_FETCH_B
      DNNOPT_KEEP_A(t)
      DNNOPT_KEEP_B(t)
    }
    dnnopt_end_copies();
  }
  int stage = 0;
  int next_stage = DNNOPT_STAGES - 1;
  for (int t = 0; t < count; ++t) {
    // All copies but those of the stages after this one have arrived, and nobody reads any more of the stage before.
    dnnopt_await_copies(DNNOPT_STAGES - 2);
#if DNNOPT_FROM_TILES
    dnnopt_show_tiles();
#endif
    barrier(CLK_LOCAL_MEM_FENCE);
#if DNNOPT_FROM_TILES
    DNNOPT_MULTIPLY_TILES(sum, stage * DNNOPT_STAGE_CHUNKS, stage * DNNOPT_STAGE_CHUNKS + DNNOPT_A_CHUNKS)
#endif
    const int k_begin = k_first + (t + DNNOPT_STAGES - 1) * DNNOPT_TILE_INNER;
    const bool more = t + DNNOPT_STAGES - 1 < count;
    if (more) {
      DNNOPT_COPY_A(next_stage)
      DNNOPT_COPY_B(next_stage)
      DNNOPT_FETCH_A
      DNNOPT_FETCH_B
    }
    dnnopt_end_copies();
#if !DNNOPT_FROM_TILES
    DNNOPT_BEGIN_PARTS
    DNNOPT_UNROLLED(s, DNNOPT_TILE_INNER / DNNOPT_STEP_INNER) {
      uint4 a[DNNOPT_ROW_STEPS];
      uint4 b[DNNOPT_COLUMN_STEPS];
      DNNOPT_UNROLLED(i, DNNOPT_ROW_STEPS) {
        const int row = DNNOPT_WAVE_ROW(i);
#if DNNOPT_A_ALONG_K
        a[i] = dnnopt_step_a(tiles, stage * DNNOPT_STAGE_CHUNKS, row, 2 * s, DNNOPT_A_LINE, lane);
#else
        a[i] = dnnopt_step_a_across(tiles, stage * DNNOPT_STAGE_CHUNKS, DNNOPT_STEP_INNER * s, row / DNNOPT_CHUNK_ELEMENTS, DNNOPT_A_LINE, lane);
#endif
      }
      DNNOPT_UNROLLED(j, DNNOPT_COLUMN_STEPS) {
        const int column = (wave_column * DNNOPT_COLUMN_STEPS + j) * 16;
#if DNNOPT_B_ALONG_K
        b[j] = dnnopt_step_b(tiles, stage * DNNOPT_STAGE_CHUNKS + DNNOPT_A_CHUNKS, column, 2 * s, DNNOPT_B_LINE, lane);
#else
        b[j] = dnnopt_step_b_across(tiles, stage * DNNOPT_STAGE_CHUNKS + DNNOPT_A_CHUNKS, DNNOPT_STEP_INNER * s, column / DNNOPT_CHUNK_ELEMENTS, DNNOPT_B_LINE, lane);
#endif
      }
      DNNOPT_MULTIPLY_STEPS(DNNOPT_PARTS, a, b, DNNOPT_ROW_STEPS, DNNOPT_COLUMN_STEPS)
      DNNOPT_ADD_A_TOTALS
      DNNOPT_ADD_B_TOTALS
    }
    DNNOPT_END_PARTS
#endif
    if (more) {
      DNNOPT_KEEP_A(next_stage)
      DNNOPT_KEEP_B(next_stage)
    }
#if DNNOPT_FROM_TILES
    dnnopt_await_tile_steps();
#endif
    stage = stage == DNNOPT_STAGES - 1 ? 0 : stage + 1;
    next_stage = next_stage == DNNOPT_STAGES - 1 ? 0 : next_stage + 1;
  }
  // Through local memory, so that work-items get neighbours of a row, or of a column, and store them together.
  __local float* kept = (__local float*)memory + wave * 16 * DNNOPT_KEPT_PITCH;
  DNNOPT_UNROLLED(i, DNNOPT_ROW_STEPS) DNNOPT_UNROLLED(part, DNNOPT_COLUMN_STEPS / DNNOPT_KEPT_STEPS) {
    barrier(CLK_LOCAL_MEM_FENCE);
    DNNOPT_UNROLLED(j, DNNOPT_KEPT_STEPS) DNNOPT_UNROLLED(s, 8) {
      kept[DNNOPT_STEP_SUM_ROW(lane, s) * DNNOPT_KEPT_PITCH + j * 16 + DNNOPT_STEP_SUM_COLUMN(lane, s)] = DNNOPT_RESULT(i, part * DNNOPT_KEPT_STEPS + j, s);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    const int row_begin = m_begin + DNNOPT_WAVE_ROW(i);
    const int column_begin = n_begin + (wave_column * DNNOPT_COLUMN_STEPS + part * DNNOPT_KEPT_STEPS) * 16;
#if DNNOPT_SPLITS == 1 && DNNOPT_STORE_ALONG && DNNOPT_EPILOGUE4
    DNNOPT_UNROLLED(some, 2 * DNNOPT_KEPT_STEPS / DNNOPT_FOURS) {
      DNNOPT_FINISHED4 finished[DNNOPT_FOURS];
      DNNOPT_UNROLLED(f, DNNOPT_FOURS) {
        DNNOPT_FOUR_AT((some * DNNOPT_FOURS + f) * 32 + lane)
        const float4 results = DNNOPT_SETTLED4(m, n, from);
        if (DNNOPT_INSIDE_M && DNNOPT_INSIDE_N) finished[f] = dnnopt_epilogue4(DNNOPT_ARGUMENTS, z, DNNOPT_PLACE_OF_FOUR(m, n), results);
      }
      DNNOPT_UNROLLED(f, DNNOPT_FOURS) {
        DNNOPT_FOUR_AT((some * DNNOPT_FOURS + f) * 32 + lane)
        if (DNNOPT_INSIDE_M && DNNOPT_INSIDE_N) dnnopt_put4(DNNOPT_ARGUMENTS, z, DNNOPT_PLACE_OF_FOUR(m, n), finished[f]);
      }
    }
#else
    DNNOPT_UNROLLED(q, 2 * DNNOPT_KEPT_STEPS) {
      DNNOPT_FOUR_AT(q * 32 + lane)
      const float4 results = DNNOPT_SETTLED4(m, n, from);
      if (DNNOPT_INSIDE_M) {
#if DNNOPT_SPLITS == 1 && DNNOPT_STORE_ALONG
        if (DNNOPT_INSIDE_N) dnnopt_store4(DNNOPT_ARGUMENTS, z, DNNOPT_PLACE_OF_FOUR(m, n), results);
#elif DNNOPT_SPLITS > 1
        if (DNNOPT_INSIDE_N) dnnopt_store_partial4(DNNOPT_ARGUMENTS, split, z, m, n / 4, results);
#else
        if (n < DNNOPT_N) dnnopt_store(DNNOPT_ARGUMENTS, z, m, n, results.x);
        if (n + 1 < DNNOPT_N) dnnopt_store(DNNOPT_ARGUMENTS, z, m, n + 1, results.y);
        if (n + 2 < DNNOPT_N) dnnopt_store(DNNOPT_ARGUMENTS, z, m, n + 2, results.z);
        if (n + 3 < DNNOPT_N) dnnopt_store(DNNOPT_ARGUMENTS, z, m, n + 3, results.w);
#endif
      }
    }
#endif
  }
}
#ifdef __cplusplus
)CLC"
#endif
