#ifdef __cplusplus
R"CLC(
#endif
// How codes of bytes that are not copied come to the tiles of a product in matrix steps (step_operands.cl), whose lines run
// along inner elements: in words of four inner elements of a line.
//
// Where DNNOPT_A_CODES (DNNOPT_B_CODES) is 4, four neighbouring lines are loaded at once for each of four inner elements: a
// block, which is turned on its way to local memory. Where it is 1, elements are loaded one by one.

#ifndef DNNOPT_TILE_ROWS
// Stand-alone.
#include "step_operands.cl"
#endif
#if DNNOPT_STEP_BYTES
#ifndef DNNOPT_A_NATURAL
#define DNNOPT_A_NATURAL 0
#endif
#ifndef DNNOPT_B_NATURAL
#define DNNOPT_B_NATURAL 0
#endif
// Words of a line.
#define DNNOPT_LINE_WORDS (DNNOPT_TILE_INNER / 4)
#define DNNOPT_PUT_WORD(chunk_begin, line, word, codes) \
  ((__local uint*)memory)[((chunk_begin) + dnnopt_chunk(line, (word) / 4, DNNOPT_LINE_WORDS / 4)) * 4 + (word) % 4] = codes;
#define DNNOPT_SHARES(count) (((count) + DNNOPT_ITEMS - 1) / DNNOPT_ITEMS)
// Whether share i of so many is one of this work-item.
#define DNNOPT_HAS_SHARE(count) ((count) % DNNOPT_ITEMS == 0 || item + i * DNNOPT_ITEMS < (count))

// Neighbouring work-items have neighbouring words of a line, or words of neighbouring lines.
#define DNNOPT_WORD_PLACE(i, lines, inner_first)                                            \
  const int number = item + (i) * DNNOPT_ITEMS;                                             \
  const int line = (inner_first) ? number / DNNOPT_LINE_WORDS : number % (lines);           \
  const int word = (inner_first) ? number % DNNOPT_LINE_WORDS : number / (lines);
#define DNNOPT_FETCH_WORDS(next, lines, inner_first, outer_at, inside, loaded, outside)     \
  DNNOPT_UNROLLED(i, DNNOPT_SHARES((lines) * DNNOPT_LINE_WORDS)) {                          \
    DNNOPT_WORD_PLACE(i, lines, inner_first)                                                \
    outer_at                                                                                \
    const bool in = DNNOPT_HAS_SHARE((lines) * DNNOPT_LINE_WORDS) && inside;                \
    DNNOPT_UNROLLED(e, 4) {                                                                 \
      const int k = k_begin + 4 * word + e;                                                 \
      next[4 * i + e] = in && k < k_end ? as_uint(loaded) : (uint)(outside);                \
    }                                                                                       \
  }
#define DNNOPT_KEEP_WORDS(next, chunk_begin, lines, inner_first)                            \
  DNNOPT_UNROLLED(i, DNNOPT_SHARES((lines) * DNNOPT_LINE_WORDS)) {                          \
    DNNOPT_WORD_PLACE(i, lines, inner_first)                                                \
    const uint codes = (next[4 * i] & 0xffu) | (next[4 * i + 1] & 0xffu) << 8 | (next[4 * i + 2] & 0xffu) << 16 | next[4 * i + 3] << 24; \
    if (DNNOPT_HAS_SHARE((lines) * DNNOPT_LINE_WORDS)) DNNOPT_PUT_WORD(chunk_begin, line, word, codes) \
  }

// Four neighbouring work-items have neighbouring blocks across lines, the next four those of the next words: so the words
// that they keep at once lie in sixteen banks of local memory.
#define DNNOPT_BLOCKS_ACROSS 4
#define DNNOPT_BLOCK_PLACE(i, lines)                                                        \
  const int number = item + (i) * DNNOPT_ITEMS;                                             \
  const int line = 4 * (number % DNNOPT_BLOCKS_ACROSS +                              \
                        number / (DNNOPT_BLOCKS_ACROSS * DNNOPT_LINE_WORDS) * DNNOPT_BLOCKS_ACROSS); \
  const int word = number / DNNOPT_BLOCKS_ACROSS % DNNOPT_LINE_WORDS;
#define DNNOPT_FETCH_BLOCKS(next, lines, outer_at, inside, loaded, outside)                 \
  DNNOPT_UNROLLED(i, DNNOPT_SHARES((lines) / 4 * DNNOPT_LINE_WORDS)) {                      \
    DNNOPT_BLOCK_PLACE(i, lines)                                                            \
    outer_at                                                                                \
    const bool in = DNNOPT_HAS_SHARE((lines) / 4 * DNNOPT_LINE_WORDS) && inside;            \
    DNNOPT_UNROLLED(e, 4) {                                                                 \
      const int k = k_begin + 4 * word + e;                                                 \
      next[4 * i + e] = in && k < k_end ? loaded : DNNOPT_CODES_OF(outside);                \
    }                                                                                       \
  }
// Bytes x and x + 1 of two words, those of the first before those of the second.
#define DNNOPT_PAIRS(first, second, x) \
  (((first) >> 8 * (x) & 0xffu) | ((second) >> 8 * (x) & 0xffu) << 8 | ((first) >> (8 * (x) + 8) & 0xffu) << 16 | ((second) >> (8 * (x) + 8) & 0xffu) << 24)
#define DNNOPT_KEEP_BLOCKS(next, chunk_begin, lines)                                        \
  DNNOPT_UNROLLED(i, DNNOPT_SHARES((lines) / 4 * DNNOPT_LINE_WORDS)) {                      \
    DNNOPT_BLOCK_PLACE(i, lines)                                                            \
    if (DNNOPT_HAS_SHARE((lines) / 4 * DNNOPT_LINE_WORDS)) {                                \
      DNNOPT_UNROLLED(two, 2) {                                                             \
        const uint early = DNNOPT_PAIRS(next[4 * i], next[4 * i + 1], 2 * two);             \
        const uint late = DNNOPT_PAIRS(next[4 * i + 2], next[4 * i + 3], 2 * two);          \
        DNNOPT_PUT_WORD(chunk_begin, line + 2 * two, word, (early & 0xffffu) | late << 16)  \
        DNNOPT_PUT_WORD(chunk_begin, line + 2 * two + 1, word, early >> 16 | (late & 0xffff0000u)) \
      }                                                                                     \
    }                                                                                       \
  }

#if !DNNOPT_A_COPY
#define DNNOPT_BEGIN_A
#define DNNOPT_COPY_A(stage)
#if DNNOPT_A_CODES == 4
#define DNNOPT_FETCH_A                                                                      \
  DNNOPT_FETCH_BLOCKS(a_next, DNNOPT_TILE_ROWS, const int m = m_begin + line;, m < DNNOPT_M, \
                      *(__global const uint*)dnnopt_codes_a(DNNOPT_ARGUMENTS, z, m, k), DNNOPT_A_ZERO_CODE)
#define DNNOPT_KEEP_A(stage) DNNOPT_KEEP_BLOCKS(a_next, (stage) * DNNOPT_STAGE_CHUNKS, DNNOPT_TILE_ROWS)
#else
#define DNNOPT_FETCH_A                                                                      \
  DNNOPT_FETCH_WORDS(a_next, DNNOPT_TILE_ROWS, DNNOPT_A_INNER_FIRST, const int m = m_begin + line;, m < DNNOPT_M, \
                     dnnopt_load_a(DNNOPT_ARGUMENTS, z, m, k), DNNOPT_A_ZERO_CODE)
#define DNNOPT_KEEP_A(stage) DNNOPT_KEEP_WORDS(a_next, (stage) * DNNOPT_STAGE_CHUNKS, DNNOPT_TILE_ROWS, DNNOPT_A_INNER_FIRST)
#endif
#endif

#if !DNNOPT_B_COPY
#define DNNOPT_BEGIN_B
#define DNNOPT_COPY_B(stage)
#if DNNOPT_B_CODES == 4
#if DNNOPT_B_GATHERED
#define DNNOPT_FOUR_CODES_B dnnopt_gather_b(DNNOPT_ARGUMENTS, z, k, n / 4)
#else
#define DNNOPT_FOUR_CODES_B *(__global const uint*)dnnopt_codes_b(DNNOPT_ARGUMENTS, z, k, n)
#endif
#define DNNOPT_FETCH_B                                                                      \
  DNNOPT_FETCH_BLOCKS(b_next, DNNOPT_TILE_COLUMNS, const int n = n_begin + line;, n < DNNOPT_N, DNNOPT_FOUR_CODES_B, DNNOPT_B_ZERO_CODE)
#define DNNOPT_KEEP_B(stage) DNNOPT_KEEP_BLOCKS(b_next, (stage) * DNNOPT_STAGE_CHUNKS + DNNOPT_A_CHUNKS, DNNOPT_TILE_COLUMNS)
#else
#define DNNOPT_FETCH_B                                                                      \
  DNNOPT_FETCH_WORDS(b_next, DNNOPT_TILE_COLUMNS, DNNOPT_B_INNER_FIRST, const int n = n_begin + line;, n < DNNOPT_N, \
                     dnnopt_load_b(DNNOPT_ARGUMENTS, z, k, n), DNNOPT_B_ZERO_CODE)
#define DNNOPT_KEEP_B(stage) \
  DNNOPT_KEEP_WORDS(b_next, (stage) * DNNOPT_STAGE_CHUNKS + DNNOPT_A_CHUNKS, DNNOPT_TILE_COLUMNS, DNNOPT_B_INNER_FIRST)
#endif
#endif
#endif
#ifdef __cplusplus
)CLC"
#endif
