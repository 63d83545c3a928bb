#ifdef __cplusplus
R"CLC(
#endif
// The tiles of a product in matrix steps (matrix_steps.cl): their sizes, where elements lie in them, and how both operands
// come there.
//
// A tile is lines of chunks of 16 bytes, DNNOPT_CHUNK_ELEMENTS each. Lines are the operand's rows (columns of b) and run
// along k where DNNOPT_A_INNER_FIRST (DNNOPT_B_INNER_FIRST) is 1, else they are its inner elements. Chunks of a line are
// exchanged so that the lines which are read together have them in different banks. Of a provider of bytes
// (DNNOPT_STEP_BYTES) lines run along k always; what is not copied comes there as byte_operands.cl says, and
// DNNOPT_A_INNER_FIRST (DNNOPT_B_INNER_FIRST) says how the operand lies in memory.
//
// Hooks: either of two for each operand. Where DNNOPT_A_COPY (DNNOPT_B_COPY) is not 0 (8, 4 or 2 halves;
// 4, 2 or 1 floats; 16, 8 or 4 bytes), dnnopt_address_a(z, m, k) (dnnopt_address_b(z, k, n)) returns where that many elements lie that are
// neighbours along a line, within the matrix or beyond it together. DNNOPT_A_ADVANCE (DNNOPT_B_ADVANCE), where it is
// defined, is by how many elements such an address moves on from one tile to the next; then it is asked for once. Where
// DNNOPT_B_TESTED is 1, dnnopt_within_b(z, k, n) says whether there are such elements, for which zeros stand else. Where
// the copy is 0 but DNNOPT_A_CODES (DNNOPT_B_CODES) is 4, dnnopt_codes_a(z, m, k) (dnnopt_codes_b(z, k, n)) returns where
// four codes lie that are such neighbours, natural numbers where DNNOPT_A_NATURAL (DNNOPT_B_NATURAL) is 1, of which
// DNNOPT_A_ZERO_CODE (DNNOPT_B_ZERO_CODE) is the zero point: halves are what differs from it. Where DNNOPT_B_GATHERED is 1
// too, dnnopt_gather_b(z, k, quarter) returns four codes of neighbouring columns instead. Where DNNOPT_A_CODES is 1,
// dnnopt_load_a(z, m, k) returns one code as the bits of a float, for what makes halves of it would, behind the test of
// each element's place, keep loads from being under way together. Where both are 0,
// dnnopt_load_a(z, m, k) (dnnopt_load_b(z, k, n)) returns one element, as its bits in the lower half of a
// float where DNNOPT_A_BITS (DNNOPT_B_BITS) is 1; what is computed and beyond the largest half becomes that where
// DNNOPT_A_SATURATES (DNNOPT_B_SATURATES) is 1.

#ifndef DNNOPT_PARAMETERS
// Stand-alone: plain row-major matrices of halves, their rows multiples of eight, and steps in plain OpenCL C.
#include "providers/step_plain.cl"
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
// A multiple of DNNOPT_STEP_INNER, at most 64; of bytes 128.
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
// So many neighbouring codes of a byte each are loaded at once: 4 or 1.
#ifndef DNNOPT_A_ZERO_CODE
#define DNNOPT_A_ZERO_CODE 0
#endif
#ifndef DNNOPT_B_ZERO_CODE
#define DNNOPT_B_ZERO_CODE 0
#endif
#ifndef DNNOPT_A_CODES
#define DNNOPT_A_CODES 0
#endif
#ifndef DNNOPT_B_CODES
#define DNNOPT_B_CODES 0
#endif
#ifndef DNNOPT_B_GATHERED
#define DNNOPT_B_GATHERED 0
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

// 1: a provider's sums are right only where they are finite.
#ifndef DNNOPT_STEP_WANTS_FINITE
#define DNNOPT_STEP_WANTS_FINITE 0
#endif
// 1: elements are bytes.
#ifndef DNNOPT_STEP_BYTES
#define DNNOPT_STEP_BYTES 0
#endif
#define DNNOPT_STEP_INNER (2 * DNNOPT_CHUNK_ELEMENTS)
// Elements of a word of 32 bits.
#define DNNOPT_WORD_ELEMENTS (DNNOPT_CHUNK_ELEMENTS / 4)

// 1: the provider multiplies from local memory.
#ifndef DNNOPT_FROM_TILES
#define DNNOPT_FROM_TILES 0
#endif

#define DNNOPT_WAVES (DNNOPT_WAVE_ROWS * DNNOPT_WAVE_COLUMNS)
#define DNNOPT_ITEMS (DNNOPT_WAVES * 32)
#define DNNOPT_TILE_ROWS (DNNOPT_WAVE_ROWS * DNNOPT_ROW_STEPS * 16)
#define DNNOPT_TILE_COLUMNS (DNNOPT_WAVE_COLUMNS * DNNOPT_COLUMN_STEPS * 16)
#define DNNOPT_A_CHUNKS (DNNOPT_TILE_ROWS * DNNOPT_TILE_INNER / DNNOPT_CHUNK_ELEMENTS)
#define DNNOPT_B_CHUNKS (DNNOPT_TILE_COLUMNS * DNNOPT_TILE_INNER / DNNOPT_CHUNK_ELEMENTS)
#define DNNOPT_STAGE_CHUNKS (DNNOPT_A_CHUNKS + DNNOPT_B_CHUNKS)
// Whether lines run along k, and the chunks of a line.
#define DNNOPT_A_ALONG_K (DNNOPT_A_INNER_FIRST || DNNOPT_STEP_BYTES)
#define DNNOPT_B_ALONG_K (DNNOPT_B_INNER_FIRST || DNNOPT_STEP_BYTES)
#define DNNOPT_A_LINE ((DNNOPT_A_ALONG_K ? DNNOPT_TILE_INNER : DNNOPT_TILE_ROWS) / DNNOPT_CHUNK_ELEMENTS)
#define DNNOPT_B_LINE ((DNNOPT_B_ALONG_K ? DNNOPT_TILE_INNER : DNNOPT_TILE_COLUMNS) / DNNOPT_CHUNK_ELEMENTS)
#define DNNOPT_UNROLLED(i, count) _Pragma("unroll") for (int i = 0; i < (count); ++i)

// Waves that multiply together, and the first row of a wave's step i in the tile.
#define DNNOPT_TOGETHER (DNNOPT_FROM_TILES ? 4 : 1)
#define DNNOPT_WAVE_ROW(i) ((wave_row / DNNOPT_TOGETHER * DNNOPT_TOGETHER * DNNOPT_ROW_STEPS + (i) * DNNOPT_TOGETHER + wave_row % DNNOPT_TOGETHER) * 16)
#if DNNOPT_FROM_TILES
#define DNNOPT_CHUNK(line, chunk, chunks, inner_first) dnnopt_panel_chunk(line, chunk, chunks, DNNOPT_TILE_INNER)
#define DNNOPT_LINE_PITCH(chunks) ((chunks) < 8 ? (chunks) : 8)
// Whole kibibytes are how far apart lines are exchanged alike.
#define DNNOPT_ALIGNED __attribute__((aligned(1024)))
#else
#define DNNOPT_CHUNK(line, chunk, chunks, inner_first) \
  ((inner_first) ? dnnopt_chunk(line, chunk, chunks) : dnnopt_chunk_across(line, chunk, chunks))
#define DNNOPT_LINE_PITCH(chunks) (chunks)
#define DNNOPT_ALIGNED
#endif

// A wave's sums on their way to the store, of at most four steps side by side at once: rows of floats, eight more keep eight
// neighbouring rows in different banks.
#define DNNOPT_KEPT_STEPS (DNNOPT_COLUMN_STEPS < 4 ? DNNOPT_COLUMN_STEPS : 4)
#define DNNOPT_KEPT_PITCH (DNNOPT_KEPT_STEPS * 16 + 8)
#define DNNOPT_KEPT_CHUNKS (DNNOPT_WAVES * 16 * DNNOPT_KEPT_PITCH / 4)
#define DNNOPT_MEMORY_CHUNKS (DNNOPT_STAGES * DNNOPT_STAGE_CHUNKS > DNNOPT_KEPT_CHUNKS ? DNNOPT_STAGES * DNNOPT_STAGE_CHUNKS : DNNOPT_KEPT_CHUNKS)

#if DNNOPT_WORD_ELEMENTS == 2
// Two halves of two floats.
static inline uint dnnopt_two_halves(float low, float high, const int saturates) {
  ushort2 bits;
  vstore_half_rte(saturates ? dnnopt_within_half(low) : low, 0, (__private half*)&bits);
  vstore_half_rte(saturates ? dnnopt_within_half(high) : high, 1, (__private half*)&bits);
  return (uint)bits.x | (uint)bits.y << 16;
}
#define DNNOPT_TWO_BITS(low, high) ((as_uint(low) & 0xffffu) | as_uint(high) << 16)
#endif

// What holds elements on their way: codes are no numbers of floats, of which a compiler may change such as are none.
#if DNNOPT_A_CODES
#define DNNOPT_A_HELD uint
#else
#define DNNOPT_A_HELD float
#endif
#if DNNOPT_B_CODES
#define DNNOPT_B_HELD uint
#else
#define DNNOPT_B_HELD float
#endif
#if DNNOPT_A_CODES || DNNOPT_B_CODES
// Four codes of a number.
#define DNNOPT_CODES_OF(number) ((uint)((number) & 0xff) * 0x01010101u)
#endif
#if (DNNOPT_A_CODES || DNNOPT_B_CODES) && !DNNOPT_STEP_BYTES
// The bits of the two halves that codes are without their zero point.
static inline uint dnnopt_two_differences(const int low, const int high, const int zero) {
  return DNNOPT_TWO_BITS(dnnopt_bits_of_code((float)(low - zero)), dnnopt_bits_of_code((float)(high - zero)));
}
// What the lower two of four codes are.
static inline uint dnnopt_two_codes(const uint codes, const int natural, const int zero) {
  const int low = natural ? (int)(codes & 0xffu) : (int)as_char((uchar)codes);
  const int high = natural ? (int)(codes >> 8 & 0xffu) : (int)as_char((uchar)(codes >> 8));
  return dnnopt_two_differences(low, high, zero);
}
#endif

// Where the elements that a work-item moves to a tile lie in it: number i of so many per line, `width` each. Where the lines
// of its moves are multiples of eight apart, chunks are exchanged alike in all of them, and places differ by constants.
#define DNNOPT_PER_LINE(line_chunks, width) ((line_chunks) * (DNNOPT_CHUNK_ELEMENTS / (width)))
#define DNNOPT_ALIKE(line_chunks, width) (DNNOPT_ITEMS % (8 * DNNOPT_PER_LINE(line_chunks, width)) == 0)
#define DNNOPT_PLACE(i, line_chunks, width, inner_first)                                                           \
  const int first = DNNOPT_ALIKE(line_chunks, width) ? item : item + (i) * DNNOPT_ITEMS;                           \
  const int later = DNNOPT_ALIKE(line_chunks, width) ? (i) * (DNNOPT_ITEMS / DNNOPT_PER_LINE(line_chunks, width)) : 0; \
  const int line = first / DNNOPT_PER_LINE(line_chunks, width) + later;                                            \
  const int along = first % DNNOPT_PER_LINE(line_chunks, width) * (width);                                         \
  const int chunk_place = DNNOPT_CHUNK(line - later, along / DNNOPT_CHUNK_ELEMENTS, line_chunks, inner_first);     \
  const int place =                                                                                                \
      (chunk_place + later * DNNOPT_LINE_PITCH(line_chunks)) * DNNOPT_CHUNK_ELEMENTS + along % DNNOPT_CHUNK_ELEMENTS;
#define DNNOPT_PIECES(chunks, width) ((chunks) * (DNNOPT_CHUNK_ELEMENTS / (width)))
#define DNNOPT_MOVES(chunks, width) ((DNNOPT_PIECES(chunks, width) + DNNOPT_ITEMS - 1) / DNNOPT_ITEMS)
// Whether the last move is one of all work-items.
#define DNNOPT_MOVED(chunks, width) \
  (DNNOPT_PIECES(chunks, width) % DNNOPT_ITEMS == 0 || item + i * DNNOPT_ITEMS < DNNOPT_PIECES(chunks, width))

#define DNNOPT_A_AT                                                        \
  const int m = m_begin + (DNNOPT_A_INNER_FIRST ? line : along);           \
  const int k = k_begin + (DNNOPT_A_INNER_FIRST ? along : line);
#define DNNOPT_B_AT                                                        \
  const int n = n_begin + (DNNOPT_B_INNER_FIRST ? line : along);           \
  const int k = k_begin + (DNNOPT_B_INNER_FIRST ? along : line);

// Fetches four neighbouring codes for each move of a work-item, and keeps them as four halves in a stage of the tiles.
#define DNNOPT_FETCH_CODES(next, chunks, line_chunks, inner_first, index, inside, codes, zero)        \
  DNNOPT_UNROLLED(i, DNNOPT_MOVES(chunks, 4)) {                                                       \
    DNNOPT_PLACE(i, line_chunks, 4, inner_first)                                                      \
    index                                                                                             \
    const bool in = DNNOPT_MOVED(chunks, 4) && inside && k < k_end;                                   \
    next[i] = in ? codes : DNNOPT_CODES_OF(zero);                                                     \
    (void)place;                                                                                      \
  }
#define DNNOPT_KEEP_CODES(next, chunk_begin, chunks, line_chunks, inner_first, natural, zero)         \
  DNNOPT_UNROLLED(i, DNNOPT_MOVES(chunks, 4)) {                                                       \
    DNNOPT_PLACE(i, line_chunks, 4, inner_first)                                                      \
    if (DNNOPT_MOVED(chunks, 4)) {                                                                    \
      __local uint* to = (__local uint*)(memory + chunk_begin) + place / 2;                           \
      to[0] = dnnopt_two_codes(next[i], natural, zero);                                               \
      to[1] = dnnopt_two_codes(next[i] >> 16, natural, zero);                                         \
    }                                                                                                 \
  }

#if DNNOPT_WHOLE_TILES
#define DNNOPT_WITHIN_K 1
#else
#define DNNOPT_WITHIN_K k < k_end
#endif

#if DNNOPT_A_COPY
#ifdef DNNOPT_A_ADVANCE
#define DNNOPT_BEGIN_A                                                          \
  __global const dnnopt_element* a_from[DNNOPT_MOVES(DNNOPT_A_CHUNKS, DNNOPT_A_COPY)]; \
  DNNOPT_UNROLLED(i, DNNOPT_MOVES(DNNOPT_A_CHUNKS, DNNOPT_A_COPY)) {          \
    const int k_begin = k_first;                                                  \
    DNNOPT_PLACE(i, DNNOPT_A_LINE, DNNOPT_A_COPY, DNNOPT_A_INNER_FIRST)                              \
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
    DNNOPT_PLACE(i, DNNOPT_A_LINE, DNNOPT_A_COPY, DNNOPT_A_INNER_FIRST)                                                                 \
    DNNOPT_A_AT                                                                                                    \
    if (DNNOPT_MOVED(DNNOPT_A_CHUNKS, DNNOPT_A_COPY)) {                                                          \
      dnnopt_copy(tiles, (stage) * DNNOPT_STAGE_CHUNKS * DNNOPT_CHUNK_ELEMENTS + place, DNNOPT_FROM_A, DNNOPT_A_COPY, m < DNNOPT_M && DNNOPT_WITHIN_K); \
      DNNOPT_STEP_ON_A                                                                                             \
    }                                                                                                               \
  }
#define DNNOPT_FETCH_A
#define DNNOPT_KEEP_A(stage)
#elif DNNOPT_STEP_BYTES
// As byte_operands.cl says.
#elif DNNOPT_A_CODES == 4
#define DNNOPT_BEGIN_A
#define DNNOPT_COPY_A(stage)
#define DNNOPT_FETCH_A \
  DNNOPT_FETCH_CODES(a_next, DNNOPT_A_CHUNKS, DNNOPT_A_LINE, DNNOPT_A_INNER_FIRST, DNNOPT_A_AT, m < DNNOPT_M, *(__global const uint*)dnnopt_codes_a(DNNOPT_ARGUMENTS, z, m, k), DNNOPT_A_ZERO_CODE)
#define DNNOPT_KEEP_A(stage) \
  DNNOPT_KEEP_CODES(a_next, (stage) * DNNOPT_STAGE_CHUNKS, DNNOPT_A_CHUNKS, DNNOPT_A_LINE, DNNOPT_A_INNER_FIRST, DNNOPT_A_NATURAL, DNNOPT_A_ZERO_CODE)
#else
#define DNNOPT_BEGIN_A
#define DNNOPT_COPY_A(stage)
#define DNNOPT_FETCH_A                                                                                                \
  DNNOPT_UNROLLED(i, DNNOPT_MOVES(DNNOPT_A_CHUNKS, DNNOPT_WORD_ELEMENTS)) {                                           \
    DNNOPT_PLACE(i, DNNOPT_A_LINE, DNNOPT_WORD_ELEMENTS, DNNOPT_A_INNER_FIRST)                                        \
    DNNOPT_A_AT                                                                                                       \
    const bool in = DNNOPT_MOVED(DNNOPT_A_CHUNKS, DNNOPT_WORD_ELEMENTS);                                              \
    DNNOPT_FETCH_ONE_A(DNNOPT_WORD_ELEMENTS * i, m, k)                                                                \
    DNNOPT_FETCH_NEXT_A                                                                                               \
    (void)place;                                                                                                      \
  }
#define DNNOPT_FETCH_ONE_A(e, m, k)                                                                                   \
  a_next[e] = in && (m) < DNNOPT_M && (k) < k_end ? DNNOPT_A_ELEMENT(dnnopt_load_a(DNNOPT_ARGUMENTS, z, m, k)) : DNNOPT_A_OUTSIDE;
#if DNNOPT_A_CODES
#define DNNOPT_A_ELEMENT(loaded) as_uint(loaded)
#define DNNOPT_A_OUTSIDE (uint)(DNNOPT_A_ZERO_CODE)
#else
#define DNNOPT_A_ELEMENT(loaded) loaded
#define DNNOPT_A_OUTSIDE 0.0f
#endif
#if DNNOPT_WORD_ELEMENTS == 1
#define DNNOPT_FETCH_NEXT_A
#define DNNOPT_WORD_A(i) as_uint(a_next[i])
#else
#define DNNOPT_FETCH_NEXT_A \
  DNNOPT_FETCH_ONE_A(2 * i + 1, m + !DNNOPT_A_INNER_FIRST, k + DNNOPT_A_INNER_FIRST)
#if DNNOPT_A_CODES
#define DNNOPT_WORD_A(i) dnnopt_two_differences((int)a_next[2 * (i)], (int)a_next[2 * (i) + 1], DNNOPT_A_ZERO_CODE)
#elif DNNOPT_A_BITS
#define DNNOPT_WORD_A(i) DNNOPT_TWO_BITS(a_next[2 * (i)], a_next[2 * (i) + 1])
#else
#define DNNOPT_WORD_A(i) dnnopt_two_halves(a_next[2 * (i)], a_next[2 * (i) + 1], DNNOPT_A_SATURATES)
#endif
#endif
#define DNNOPT_KEEP_A(stage)                                                                                          \
  DNNOPT_UNROLLED(i, DNNOPT_MOVES(DNNOPT_A_CHUNKS, DNNOPT_WORD_ELEMENTS)) {                                           \
    DNNOPT_PLACE(i, DNNOPT_A_LINE, DNNOPT_WORD_ELEMENTS, DNNOPT_A_INNER_FIRST)                                        \
    if (DNNOPT_MOVED(DNNOPT_A_CHUNKS, DNNOPT_WORD_ELEMENTS))                                                          \
      ((__local uint*)(memory + (stage) * DNNOPT_STAGE_CHUNKS))[place / DNNOPT_WORD_ELEMENTS] = DNNOPT_WORD_A(i);     \
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
  __global const dnnopt_element* b_from[DNNOPT_MOVES(DNNOPT_B_CHUNKS, DNNOPT_B_COPY)]; \
  DNNOPT_UNROLLED(i, DNNOPT_MOVES(DNNOPT_B_CHUNKS, DNNOPT_B_COPY)) {          \
    const int k_begin = k_first;                                                  \
    DNNOPT_PLACE(i, DNNOPT_B_LINE, DNNOPT_B_COPY, DNNOPT_B_INNER_FIRST)                              \
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
    DNNOPT_PLACE(i, DNNOPT_B_LINE, DNNOPT_B_COPY, DNNOPT_B_INNER_FIRST)                                                                 \
    DNNOPT_B_AT                                                                                                    \
    if (DNNOPT_MOVED(DNNOPT_B_CHUNKS, DNNOPT_B_COPY)) {                                                          \
      dnnopt_copy(tiles, ((stage) * DNNOPT_STAGE_CHUNKS + DNNOPT_A_CHUNKS) * DNNOPT_CHUNK_ELEMENTS + place, DNNOPT_FROM_B, DNNOPT_B_COPY, n < DNNOPT_N && DNNOPT_WITHIN_K && DNNOPT_WITHIN_B); \
      DNNOPT_STEP_ON_B                                                                                             \
    }                                                                                                               \
  }
#define DNNOPT_FETCH_B
#define DNNOPT_KEEP_B(stage)
#elif DNNOPT_STEP_BYTES
// As byte_operands.cl says.
#elif DNNOPT_B_CODES == 4
#define DNNOPT_BEGIN_B
#define DNNOPT_COPY_B(stage)
#if DNNOPT_B_GATHERED
#define DNNOPT_FOUR_CODES_B dnnopt_gather_b(DNNOPT_ARGUMENTS, z, k, n / 4)
#else
#define DNNOPT_FOUR_CODES_B *(__global const uint*)dnnopt_codes_b(DNNOPT_ARGUMENTS, z, k, n)
#endif
#define DNNOPT_FETCH_B \
  DNNOPT_FETCH_CODES(b_next, DNNOPT_B_CHUNKS, DNNOPT_B_LINE, DNNOPT_B_INNER_FIRST, DNNOPT_B_AT, n < DNNOPT_N, DNNOPT_FOUR_CODES_B, DNNOPT_B_ZERO_CODE)
#define DNNOPT_KEEP_B(stage) \
  DNNOPT_KEEP_CODES(b_next, (stage) * DNNOPT_STAGE_CHUNKS + DNNOPT_A_CHUNKS, DNNOPT_B_CHUNKS, DNNOPT_B_LINE, DNNOPT_B_INNER_FIRST, DNNOPT_B_NATURAL, DNNOPT_B_ZERO_CODE)
#else
#define DNNOPT_BEGIN_B
#define DNNOPT_COPY_B(stage)
#define DNNOPT_FETCH_B                                                                                                \
  DNNOPT_UNROLLED(i, DNNOPT_MOVES(DNNOPT_B_CHUNKS, DNNOPT_WORD_ELEMENTS)) {                                           \
    DNNOPT_PLACE(i, DNNOPT_B_LINE, DNNOPT_WORD_ELEMENTS, DNNOPT_B_INNER_FIRST)                                        \
    DNNOPT_B_AT                                                                                                       \
    const bool in = DNNOPT_MOVED(DNNOPT_B_CHUNKS, DNNOPT_WORD_ELEMENTS);                                              \
    DNNOPT_FETCH_ONE_B(DNNOPT_WORD_ELEMENTS * i, n, k)                                                                \
    DNNOPT_FETCH_NEXT_B                                                                                               \
    (void)place;                                                                                                      \
  }
#define DNNOPT_FETCH_ONE_B(e, n, k)                                                                                   \
  b_next[e] = in && (n) < DNNOPT_N && (k) < k_end ? DNNOPT_B_ELEMENT(dnnopt_load_b(DNNOPT_ARGUMENTS, z, k, n)) : DNNOPT_B_OUTSIDE;
#if DNNOPT_B_CODES
#define DNNOPT_B_ELEMENT(loaded) as_uint(loaded)
#define DNNOPT_B_OUTSIDE (uint)(DNNOPT_B_ZERO_CODE)
#else
#define DNNOPT_B_ELEMENT(loaded) loaded
#define DNNOPT_B_OUTSIDE 0.0f
#endif
#if DNNOPT_WORD_ELEMENTS == 1
#define DNNOPT_FETCH_NEXT_B
#define DNNOPT_WORD_B(i) as_uint(b_next[i])
#else
#define DNNOPT_FETCH_NEXT_B \
  DNNOPT_FETCH_ONE_B(2 * i + 1, n + !DNNOPT_B_INNER_FIRST, k + DNNOPT_B_INNER_FIRST)
#if DNNOPT_B_CODES
#define DNNOPT_WORD_B(i) dnnopt_two_differences((int)b_next[2 * (i)], (int)b_next[2 * (i) + 1], DNNOPT_B_ZERO_CODE)
#elif DNNOPT_B_BITS
#define DNNOPT_WORD_B(i) DNNOPT_TWO_BITS(b_next[2 * (i)], b_next[2 * (i) + 1])
#else
#define DNNOPT_WORD_B(i) dnnopt_two_halves(b_next[2 * (i)], b_next[2 * (i) + 1], DNNOPT_B_SATURATES)
#endif
#endif
#define DNNOPT_KEEP_B(stage)                                                                                          \
  DNNOPT_UNROLLED(i, DNNOPT_MOVES(DNNOPT_B_CHUNKS, DNNOPT_WORD_ELEMENTS)) {                                           \
    DNNOPT_PLACE(i, DNNOPT_B_LINE, DNNOPT_WORD_ELEMENTS, DNNOPT_B_INNER_FIRST)                                        \
    if (DNNOPT_MOVED(DNNOPT_B_CHUNKS, DNNOPT_WORD_ELEMENTS))                                                          \
      ((__local uint*)(memory + (stage) * DNNOPT_STAGE_CHUNKS + DNNOPT_A_CHUNKS))[place / DNNOPT_WORD_ELEMENTS] = DNNOPT_WORD_B(i);\
  }
#endif
#ifdef __cplusplus
)CLC"
#endif
