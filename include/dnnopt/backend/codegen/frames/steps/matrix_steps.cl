#ifdef __cplusplus
R"CLC(
#endif
// Matrix product of halves with sums in float, in matrix steps: a wave of 32 neighbouring work-items multiplies 16 x 16 by
// 16 x 16 elements at once, each work-item holding eight halves of either operand and eight sums. The text of a provider
// (step_plain.cl, step_mma_sync.cl) stands before this one and says how. A work-group computes a tile of the result, its
// waves DNNOPT_ROW_STEPS by DNNOPT_COLUMN_STEPS steps each, from tiles of both operands that lie in local memory as
// halves. There are DNNOPT_STAGES of each: while one is multiplied, the others are on their way.
//
//   result(z, m, n) = sum over k of a(z, m, k) * b(z, k, n);   dnnopt_store(z, m, n, result)
//
// A tile is lines of chunks of eight halves. Lines are the operand's rows (columns of b) and run along k where
// DNNOPT_A_INNER_FIRST (DNNOPT_B_INNER_FIRST) is 1, else they are its inner elements. Chunks of a line are exchanged so that
// eight neighbouring lines have the same chunk in different banks.
//
// Where DNNOPT_FROM_TILES is 1 the provider (tiles_plain.cl, tiles_wgmma.cl) multiplies from local memory, four waves
// together: they have 64 rows one below the other, and lines longer than eight chunks are parted into panels of so many.
// It may still multiply while what follows runs, until dnnopt_await_tile_steps().
//
// Hooks: dnnopt_store and either of two for each operand. Where DNNOPT_A_COPY (DNNOPT_B_COPY) is 8, 4 or 2,
// dnnopt_address_a(z, m, k) (dnnopt_address_b(z, k, n)) returns where that many halves lie that are neighbours along a
// line, within the matrix or beyond it together. DNNOPT_A_ADVANCE (DNNOPT_B_ADVANCE), where it is defined, is by how many
// halves such an address moves on from one tile to the next; then it is asked for once. Where DNNOPT_B_TESTED is 1,
// dnnopt_within_b(z, k, n) says whether there are such halves, for which zeros stand else. Where the copy is 0, dnnopt_load_a(z, m, k)
// (dnnopt_load_b(z, k, n)) returns one element, as its bits in the lower half of a float where DNNOPT_A_BITS
// (DNNOPT_B_BITS) is 1; what is computed and beyond the largest half becomes that where DNNOPT_A_SATURATES
// (DNNOPT_B_SATURATES) is 1.
// DNNOPT_STORE_ALONG 1 (rows) or 2 (columns): instead of dnnopt_store, dnnopt_store4(z, quarter, n, results) stores four
// rows 4 * quarter .. of a column, or dnnopt_store4(z, m, quarter, results) four columns of a row.
// DNNOPT_SPLITS > 1: that many work-groups share the inner elements, DNNOPT_SPLIT_INNER each, and
// dnnopt_store_partial4(split, z, m, quarter, results) keeps four columns of their sums apart, of the last ones also those
// beyond the matrix.

#ifndef DNNOPT_PARAMETERS
// Stand-alone: plain row-major matrices, their rows multiples of eight, and steps in plain OpenCL C.
#include "step_plain.cl"
#define dnnopt_within_half(value) clamp(value, -65504.0f, 65504.0f)
#define DNNOPT_PARAMETERS __global const half* b0, __global const half* b1, __global float* b2, const int p0, const int p1, const int p2
#define DNNOPT_KERNEL_PARAMETERS DNNOPT_PARAMETERS
#define DNNOPT_ARGUMENTS b0, b1, b2, p0, p1, p2
#define DNNOPT_M p0
#define DNNOPT_N p1
#define DNNOPT_K p2
#define DNNOPT_A_COPY 8
#define DNNOPT_B_COPY 8
static inline __global const half* dnnopt_address_a(DNNOPT_PARAMETERS, const int z, const int m, const int k) { return b0 + (z * p0 + m) * p2 + k; }
static inline __global const half* dnnopt_address_b(DNNOPT_PARAMETERS, const int z, const int k, const int n) { return b1 + (z * p2 + k) * p1 + n; }
static inline void dnnopt_store(DNNOPT_PARAMETERS, const int z, const int m, const int n, float value) { b2[(z * p0 + m) * p1 + n] = value; }
#endif
#ifndef DNNOPT_WAVE_ROWS
#define DNNOPT_WAVE_ROWS 2
#endif
#ifndef DNNOPT_WAVE_COLUMNS
#define DNNOPT_WAVE_COLUMNS 2
#endif
// Powers of two, as the waves.
#ifndef DNNOPT_ROW_STEPS
#define DNNOPT_ROW_STEPS 2
#endif
#ifndef DNNOPT_COLUMN_STEPS
#define DNNOPT_COLUMN_STEPS 2
#endif
// 16, 32 or 64.
#ifndef DNNOPT_TILE_INNER
#define DNNOPT_TILE_INNER 32
#endif
// 2 at least.
#ifndef DNNOPT_STAGES
#define DNNOPT_STAGES 2
#endif
#ifndef DNNOPT_A_INNER_FIRST
#define DNNOPT_A_INNER_FIRST 1
#endif
#ifndef DNNOPT_B_INNER_FIRST
#define DNNOPT_B_INNER_FIRST 0
#endif
#ifndef DNNOPT_A_COPY
#define DNNOPT_A_COPY 0
#endif
#ifndef DNNOPT_B_COPY
#define DNNOPT_B_COPY 0
#endif
#ifndef DNNOPT_A_BITS
#define DNNOPT_A_BITS 0
#endif
#ifndef DNNOPT_B_BITS
#define DNNOPT_B_BITS 0
#endif
#ifndef DNNOPT_A_SATURATES
#define DNNOPT_A_SATURATES 0
#endif
#ifndef DNNOPT_B_SATURATES
#define DNNOPT_B_SATURATES 0
#endif
#ifndef DNNOPT_B_TESTED
#define DNNOPT_B_TESTED 0
#endif
#ifndef DNNOPT_SPLITS
#define DNNOPT_SPLITS 1
#endif
// 1: the inner elements are a multiple of those of a tile.
#ifndef DNNOPT_WHOLE_TILES
#define DNNOPT_WHOLE_TILES 0
#endif
#ifndef DNNOPT_STORE_ALONG
#define DNNOPT_STORE_ALONG 0
#endif

// 1: the provider multiplies from local memory.
#ifndef DNNOPT_FROM_TILES
#define DNNOPT_FROM_TILES 0
#endif

#define DNNOPT_WAVES (DNNOPT_WAVE_ROWS * DNNOPT_WAVE_COLUMNS)
#define DNNOPT_ITEMS (DNNOPT_WAVES * 32)
#define DNNOPT_TILE_ROWS (DNNOPT_WAVE_ROWS * DNNOPT_ROW_STEPS * 16)
#define DNNOPT_TILE_COLUMNS (DNNOPT_WAVE_COLUMNS * DNNOPT_COLUMN_STEPS * 16)
#define DNNOPT_A_CHUNKS (DNNOPT_TILE_ROWS * DNNOPT_TILE_INNER / 8)
#define DNNOPT_B_CHUNKS (DNNOPT_TILE_COLUMNS * DNNOPT_TILE_INNER / 8)
#define DNNOPT_STAGE_CHUNKS (DNNOPT_A_CHUNKS + DNNOPT_B_CHUNKS)
// Chunks of a line.
#define DNNOPT_A_LINE ((DNNOPT_A_INNER_FIRST ? DNNOPT_TILE_INNER : DNNOPT_TILE_ROWS) / 8)
#define DNNOPT_B_LINE ((DNNOPT_B_INNER_FIRST ? DNNOPT_TILE_INNER : DNNOPT_TILE_COLUMNS) / 8)
#define DNNOPT_UNROLLED(i, count) _Pragma("unroll") for (int i = 0; i < (count); ++i)

// Waves that multiply together, and the first row of a wave's step i in the tile.
#define DNNOPT_TOGETHER (DNNOPT_FROM_TILES ? 4 : 1)
#define DNNOPT_WAVE_ROW(i) ((wave_row / DNNOPT_TOGETHER * DNNOPT_TOGETHER * DNNOPT_ROW_STEPS + (i) * DNNOPT_TOGETHER + wave_row % DNNOPT_TOGETHER) * 16)
#if DNNOPT_FROM_TILES
#define DNNOPT_CHUNK(line, chunk, chunks) dnnopt_panel_chunk(line, chunk, chunks, DNNOPT_TILE_INNER)
#define DNNOPT_LINE_PITCH(chunks) ((chunks) < 8 ? (chunks) : 8)
// Whole kibibytes are how far apart lines are exchanged alike.
#define DNNOPT_ALIGNED __attribute__((aligned(1024)))
#else
#define DNNOPT_CHUNK dnnopt_chunk
#define DNNOPT_LINE_PITCH(chunks) (chunks)
#define DNNOPT_ALIGNED
#endif

// A wave's sums on their way to the store, of at most four steps side by side at once: rows of floats, eight more keep eight
// neighbouring rows in different banks.
#define DNNOPT_KEPT_STEPS (DNNOPT_COLUMN_STEPS < 4 ? DNNOPT_COLUMN_STEPS : 4)
#define DNNOPT_KEPT_PITCH (DNNOPT_KEPT_STEPS * 16 + 8)
#define DNNOPT_KEPT_CHUNKS (DNNOPT_WAVES * 16 * DNNOPT_KEPT_PITCH / 4)
#define DNNOPT_MEMORY_CHUNKS (DNNOPT_STAGES * DNNOPT_STAGE_CHUNKS > DNNOPT_KEPT_CHUNKS ? DNNOPT_STAGES * DNNOPT_STAGE_CHUNKS : DNNOPT_KEPT_CHUNKS)

// Two halves of two floats.
static inline uint dnnopt_two_halves(float low, float high, const int saturates) {
  ushort2 bits;
  vstore_half_rte(saturates ? dnnopt_within_half(low) : low, 0, (__private half*)&bits);
  vstore_half_rte(saturates ? dnnopt_within_half(high) : high, 1, (__private half*)&bits);
  return (uint)bits.x | (uint)bits.y << 16;
}
#define DNNOPT_TWO_BITS(low, high) ((as_uint(low) & 0xffffu) | as_uint(high) << 16)

// Where the halves that a work-item moves to a tile lie in it: number i of so many per line, `width` each. Where the lines
// of its moves are multiples of eight apart, chunks are exchanged alike in all of them, and places differ by constants.
#define DNNOPT_PER_LINE(line_chunks, width) ((line_chunks) * (8 / (width)))
#define DNNOPT_ALIKE(line_chunks, width) (DNNOPT_ITEMS % (8 * DNNOPT_PER_LINE(line_chunks, width)) == 0)
#define DNNOPT_PLACE(i, line_chunks, width)                                                                        \
  const int first = DNNOPT_ALIKE(line_chunks, width) ? item : item + (i) * DNNOPT_ITEMS;                           \
  const int later = DNNOPT_ALIKE(line_chunks, width) ? (i) * (DNNOPT_ITEMS / DNNOPT_PER_LINE(line_chunks, width)) : 0; \
  const int line = first / DNNOPT_PER_LINE(line_chunks, width) + later;                                            \
  const int along = first % DNNOPT_PER_LINE(line_chunks, width) * (width);                                         \
  const int place = (DNNOPT_CHUNK(line - later, along / 8, line_chunks) + later * DNNOPT_LINE_PITCH(line_chunks)) * 8 + along % 8;
#define DNNOPT_MOVES(chunks, width) (((chunks) * (8 / (width)) + DNNOPT_ITEMS - 1) / DNNOPT_ITEMS)
// Whether the last move is one of all work-items.
#define DNNOPT_MOVED(chunks, width) ((chunks) * (8 / (width)) % DNNOPT_ITEMS == 0 || item + i * DNNOPT_ITEMS < (chunks) * (8 / (width)))

#define DNNOPT_A_AT                                                        \
  const int m = m_begin + (DNNOPT_A_INNER_FIRST ? line : along);           \
  const int k = k_begin + (DNNOPT_A_INNER_FIRST ? along : line);
#define DNNOPT_B_AT                                                        \
  const int n = n_begin + (DNNOPT_B_INNER_FIRST ? line : along);           \
  const int k = k_begin + (DNNOPT_B_INNER_FIRST ? along : line);

#if DNNOPT_WHOLE_TILES
#define DNNOPT_WITHIN_K 1
#else
#define DNNOPT_WITHIN_K k < k_end
#endif

#if DNNOPT_A_COPY
#ifdef DNNOPT_A_ADVANCE
#define DNNOPT_BEGIN_A                                                          \
  __global const half* a_from[DNNOPT_MOVES(DNNOPT_A_CHUNKS, DNNOPT_A_COPY)]; \
  DNNOPT_UNROLLED(i, DNNOPT_MOVES(DNNOPT_A_CHUNKS, DNNOPT_A_COPY)) {          \
    const int k_begin = k_first;                                                  \
    DNNOPT_PLACE(i, DNNOPT_A_LINE, DNNOPT_A_COPY)                              \
    DNNOPT_A_AT                                                                 \
    a_from[i] = dnnopt_address_a(DNNOPT_ARGUMENTS, z, m, k);                 \
    (void)place;                                                                  \
  }
#define DNNOPT_FROM_A a_from[i]
#define DNNOPT_STEP_ON_A a_from[i] += DNNOPT_A_ADVANCE;
#else
#define DNNOPT_BEGIN_A
#define DNNOPT_FROM_A dnnopt_address_a(DNNOPT_ARGUMENTS, z, m, k)
#define DNNOPT_STEP_ON_A
#endif
#define DNNOPT_COPY_A(stage)                                                                                       \
  DNNOPT_UNROLLED(i, DNNOPT_MOVES(DNNOPT_A_CHUNKS, DNNOPT_A_COPY)) {                                             \
    DNNOPT_PLACE(i, DNNOPT_A_LINE, DNNOPT_A_COPY)                                                                 \
    DNNOPT_A_AT                                                                                                    \
    if (DNNOPT_MOVED(DNNOPT_A_CHUNKS, DNNOPT_A_COPY)) {                                                          \
      dnnopt_copy(tiles, (stage) * DNNOPT_STAGE_CHUNKS * 8 + place, DNNOPT_FROM_A, DNNOPT_A_COPY, m < DNNOPT_M && DNNOPT_WITHIN_K); \
      DNNOPT_STEP_ON_A                                                                                             \
    }                                                                                                               \
  }
#define DNNOPT_FETCH_A
#define DNNOPT_KEEP_A(stage)
#else
#define DNNOPT_BEGIN_A
#define DNNOPT_COPY_A(stage)
#define DNNOPT_FETCH_A                                                                                                \
  DNNOPT_UNROLLED(i, DNNOPT_MOVES(DNNOPT_A_CHUNKS, 2)) {                                                              \
    DNNOPT_PLACE(i, DNNOPT_A_LINE, 2)                                                                                 \
    DNNOPT_A_AT                                                                                                       \
    const int m2 = DNNOPT_A_INNER_FIRST ? m : m + 1;                                                                  \
    const int k2 = DNNOPT_A_INNER_FIRST ? k + 1 : k;                                                                  \
    const bool in = DNNOPT_MOVED(DNNOPT_A_CHUNKS, 2);                                                                 \
    a_next[2 * i] = in && m < DNNOPT_M && k < k_end ? dnnopt_load_a(DNNOPT_ARGUMENTS, z, m, k) : 0.0f;                \
    a_next[2 * i + 1] = in && m2 < DNNOPT_M && k2 < k_end ? dnnopt_load_a(DNNOPT_ARGUMENTS, z, m2, k2) : 0.0f;        \
  }
#if DNNOPT_A_BITS
#define DNNOPT_TWO_A DNNOPT_TWO_BITS
#else
#define DNNOPT_TWO_A(low, high) dnnopt_two_halves(low, high, DNNOPT_A_SATURATES)
#endif
#define DNNOPT_KEEP_A(stage)                                                                                          \
  DNNOPT_UNROLLED(i, DNNOPT_MOVES(DNNOPT_A_CHUNKS, 2)) {                                                              \
    DNNOPT_PLACE(i, DNNOPT_A_LINE, 2)                                                                                 \
    if (DNNOPT_MOVED(DNNOPT_A_CHUNKS, 2))                                                                             \
      ((__local uint*)(memory + (stage) * DNNOPT_STAGE_CHUNKS))[place / 2] = DNNOPT_TWO_A(a_next[2 * i], a_next[2 * i + 1]); \
  }
#endif

#if DNNOPT_B_TESTED
#define DNNOPT_WITHIN_B dnnopt_within_b(DNNOPT_ARGUMENTS, z, k, n)
#else
#define DNNOPT_WITHIN_B 1
#endif
#if DNNOPT_B_COPY
#ifdef DNNOPT_B_ADVANCE
#define DNNOPT_BEGIN_B                                                          \
  __global const half* b_from[DNNOPT_MOVES(DNNOPT_B_CHUNKS, DNNOPT_B_COPY)]; \
  DNNOPT_UNROLLED(i, DNNOPT_MOVES(DNNOPT_B_CHUNKS, DNNOPT_B_COPY)) {          \
    const int k_begin = k_first;                                                  \
    DNNOPT_PLACE(i, DNNOPT_B_LINE, DNNOPT_B_COPY)                              \
    DNNOPT_B_AT                                                                 \
    b_from[i] = dnnopt_address_b(DNNOPT_ARGUMENTS, z, k, n);                 \
    (void)place;                                                                  \
  }
#define DNNOPT_FROM_B b_from[i]
#define DNNOPT_STEP_ON_B b_from[i] += DNNOPT_B_ADVANCE;
#else
#define DNNOPT_BEGIN_B
#define DNNOPT_FROM_B dnnopt_address_b(DNNOPT_ARGUMENTS, z, k, n)
#define DNNOPT_STEP_ON_B
#endif
#define DNNOPT_COPY_B(stage)                                                                                       \
  DNNOPT_UNROLLED(i, DNNOPT_MOVES(DNNOPT_B_CHUNKS, DNNOPT_B_COPY)) {                                             \
    DNNOPT_PLACE(i, DNNOPT_B_LINE, DNNOPT_B_COPY)                                                                 \
    DNNOPT_B_AT                                                                                                    \
    if (DNNOPT_MOVED(DNNOPT_B_CHUNKS, DNNOPT_B_COPY)) {                                                          \
      dnnopt_copy(tiles, ((stage) * DNNOPT_STAGE_CHUNKS + DNNOPT_A_CHUNKS) * 8 + place, DNNOPT_FROM_B, DNNOPT_B_COPY, n < DNNOPT_N && DNNOPT_WITHIN_K && DNNOPT_WITHIN_B); \
      DNNOPT_STEP_ON_B                                                                                             \
    }                                                                                                               \
  }
#define DNNOPT_FETCH_B
#define DNNOPT_KEEP_B(stage)
#else
#define DNNOPT_BEGIN_B
#define DNNOPT_COPY_B(stage)
#define DNNOPT_FETCH_B                                                                                                \
  DNNOPT_UNROLLED(i, DNNOPT_MOVES(DNNOPT_B_CHUNKS, 2)) {                                                              \
    DNNOPT_PLACE(i, DNNOPT_B_LINE, 2)                                                                                 \
    DNNOPT_B_AT                                                                                                       \
    const int n2 = DNNOPT_B_INNER_FIRST ? n : n + 1;                                                                  \
    const int k2 = DNNOPT_B_INNER_FIRST ? k + 1 : k;                                                                  \
    const bool in = DNNOPT_MOVED(DNNOPT_B_CHUNKS, 2);                                                                 \
    b_next[2 * i] = in && n < DNNOPT_N && k < k_end ? dnnopt_load_b(DNNOPT_ARGUMENTS, z, k, n) : 0.0f;                \
    b_next[2 * i + 1] = in && n2 < DNNOPT_N && k2 < k_end ? dnnopt_load_b(DNNOPT_ARGUMENTS, z, k2, n2) : 0.0f;        \
  }
#if DNNOPT_B_BITS
#define DNNOPT_TWO_B DNNOPT_TWO_BITS
#else
#define DNNOPT_TWO_B(low, high) dnnopt_two_halves(low, high, DNNOPT_B_SATURATES)
#endif
#define DNNOPT_KEEP_B(stage)                                                                                          \
  DNNOPT_UNROLLED(i, DNNOPT_MOVES(DNNOPT_B_CHUNKS, 2)) {                                                              \
    DNNOPT_PLACE(i, DNNOPT_B_LINE, 2)                                                                                 \
    if (DNNOPT_MOVED(DNNOPT_B_CHUNKS, 2))                                                                             \
      ((__local uint*)(memory + (stage) * DNNOPT_STAGE_CHUNKS + DNNOPT_A_CHUNKS))[place / 2] = DNNOPT_TWO_B(b_next[2 * i], b_next[2 * i + 1]); \
  }
#endif

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
  float sum[DNNOPT_ROW_STEPS][DNNOPT_COLUMN_STEPS][8];
  DNNOPT_UNROLLED(i, DNNOPT_ROW_STEPS) DNNOPT_UNROLLED(j, DNNOPT_COLUMN_STEPS) DNNOPT_UNROLLED(s, 8) sum[i][j][s] = 0.0f;
#if !DNNOPT_A_COPY
  float a_next[2 * DNNOPT_MOVES(DNNOPT_A_CHUNKS, 2)];
#endif
#if !DNNOPT_B_COPY
  float b_next[2 * DNNOPT_MOVES(DNNOPT_B_CHUNKS, 2)];
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
    DNNOPT_UNROLLED(s, DNNOPT_TILE_INNER / 16) {
      uint4 a[DNNOPT_ROW_STEPS];
      uint4 b[DNNOPT_COLUMN_STEPS];
      DNNOPT_UNROLLED(i, DNNOPT_ROW_STEPS) {
        const int row = DNNOPT_WAVE_ROW(i);
#if DNNOPT_A_INNER_FIRST
        a[i] = dnnopt_step_a(tiles, stage * DNNOPT_STAGE_CHUNKS, row, 2 * s, DNNOPT_A_LINE, lane);
#else
        a[i] = dnnopt_step_a_across(tiles, stage * DNNOPT_STAGE_CHUNKS, 16 * s, row / 8, DNNOPT_A_LINE, lane);
#endif
      }
      DNNOPT_UNROLLED(j, DNNOPT_COLUMN_STEPS) {
        const int column = (wave_column * DNNOPT_COLUMN_STEPS + j) * 16;
#if DNNOPT_B_INNER_FIRST
        b[j] = dnnopt_step_b(tiles, stage * DNNOPT_STAGE_CHUNKS + DNNOPT_A_CHUNKS, column, 2 * s, DNNOPT_B_LINE, lane);
#else
        b[j] = dnnopt_step_b_across(tiles, stage * DNNOPT_STAGE_CHUNKS + DNNOPT_A_CHUNKS, 16 * s, column / 8, DNNOPT_B_LINE, lane);
#endif
      }
      DNNOPT_MULTIPLY_STEPS(sum, a, b, DNNOPT_ROW_STEPS, DNNOPT_COLUMN_STEPS)
    }
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
      kept[DNNOPT_STEP_SUM_ROW(lane, s) * DNNOPT_KEPT_PITCH + j * 16 + DNNOPT_STEP_SUM_COLUMN(lane, s)] = sum[i][part * DNNOPT_KEPT_STEPS + j][s];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    const int row_begin = m_begin + DNNOPT_WAVE_ROW(i);
    const int column_begin = n_begin + (wave_column * DNNOPT_COLUMN_STEPS + part * DNNOPT_KEPT_STEPS) * 16;
    DNNOPT_UNROLLED(q, 2 * DNNOPT_KEPT_STEPS) {
      const int e = q * 32 + lane;
#if DNNOPT_SPLITS == 1 && DNNOPT_STORE_ALONG == 1
      const int column = e % (16 * DNNOPT_KEPT_STEPS);
      const int row = e / (16 * DNNOPT_KEPT_STEPS) * 4;
      __local const float* from = kept + row * DNNOPT_KEPT_PITCH + column;
      const float4 results = (float4)(from[0], from[DNNOPT_KEPT_PITCH], from[2 * DNNOPT_KEPT_PITCH], from[3 * DNNOPT_KEPT_PITCH]);
      if (row_begin + row < DNNOPT_M && column_begin + column < DNNOPT_N)
        dnnopt_store4(DNNOPT_ARGUMENTS, z, (row_begin + row) / 4, column_begin + column, results);
#else
      const int row = e / (4 * DNNOPT_KEPT_STEPS);
      const int column = e % (4 * DNNOPT_KEPT_STEPS) * 4;
      const float4 results = *(__local const float4*)(kept + row * DNNOPT_KEPT_PITCH + column);
      const int m = row_begin + row;
      const int n = column_begin + column;
      if (m < DNNOPT_M) {
#if DNNOPT_SPLITS > 1
        if (n < DNNOPT_N) dnnopt_store_partial4(DNNOPT_ARGUMENTS, split, z, m, n / 4, results);
#elif DNNOPT_STORE_ALONG == 2
        if (n < DNNOPT_N) dnnopt_store4(DNNOPT_ARGUMENTS, z, m, n / 4, results);
#else
        if (n < DNNOPT_N) dnnopt_store(DNNOPT_ARGUMENTS, z, m, n, results.x);
        if (n + 1 < DNNOPT_N) dnnopt_store(DNNOPT_ARGUMENTS, z, m, n + 1, results.y);
        if (n + 2 < DNNOPT_N) dnnopt_store(DNNOPT_ARGUMENTS, z, m, n + 2, results.z);
        if (n + 3 < DNNOPT_N) dnnopt_store(DNNOPT_ARGUMENTS, z, m, n + 3, results.w);
#endif
      }
#endif
    }
  }
}
#ifdef __cplusplus
)CLC"
#endif
