#ifdef __cplusplus
R"CLC(
#endif
// Provider of matrix steps of floats in plain OpenCL C, for every device: what neighbouring work-items hold passes through
// local memory. It is what others are held against, and not meant to be fast.

#ifndef dnnopt_element
// Stand-alone.
#include "elements_floats.cl"
#include "step_exchange.cl"
#endif
#define dnnopt_tiles __local uint*
static inline dnnopt_tiles dnnopt_tiles_at(__local uint4* memory) { return (__local uint*)memory; }
// Not needed here, but what it stands for is tested with this provider.
#define DNNOPT_STEP_WANTS_FINITE 1

// `width` floats from `from`, or zeros where it is not `within` the matrix, to float `place` of the tiles.
static inline void dnnopt_copy(dnnopt_tiles tiles, const int place, __global const float* from, const int width, const bool within) {
  for (int i = 0; i < width; ++i) tiles[place + i] = within ? as_uint(from[i]) : 0u;
}
static inline void dnnopt_end_copies(void) {}
#define dnnopt_await_copies(stages)

static inline uint dnnopt_step_word(dnnopt_tiles tiles, const int base, const int line, const int along, const int chunks) {
  return tiles[(base + dnnopt_chunk(line, along / 4, chunks)) * 4 + along % 4];
}
static inline uint dnnopt_step_word_across(dnnopt_tiles tiles, const int base, const int line, const int along, const int chunks) {
  return tiles[(base + dnnopt_chunk_across(line, along / 4, chunks)) * 4 + along % 4];
}
// A work-item's share of 16 lines from `line` on, of the tile whose first chunk is `base`, and the two chunks from `chunk`
// on; across: lines are inner elements, eight from `line` on, and chunks four.
static inline uint4 dnnopt_step_a(dnnopt_tiles tiles, const int base, const int line, const int chunk, const int chunks, const int lane) {
  const int r = line + lane / 4;
  const int c = chunk * 4 + lane % 4;
  return (uint4)(dnnopt_step_word(tiles, base, r, c, chunks), dnnopt_step_word(tiles, base, r + 8, c, chunks),
                 dnnopt_step_word(tiles, base, r, c + 4, chunks), dnnopt_step_word(tiles, base, r + 8, c + 4, chunks));
}
static inline uint4 dnnopt_step_b(dnnopt_tiles tiles, const int base, const int line, const int chunk, const int chunks, const int lane) {
  const int r = line + lane / 4;
  const int c = chunk * 4 + lane % 4;
  return (uint4)(dnnopt_step_word(tiles, base, r, c, chunks), dnnopt_step_word(tiles, base, r, c + 4, chunks),
                 dnnopt_step_word(tiles, base, r + 8, c, chunks), dnnopt_step_word(tiles, base, r + 8, c + 4, chunks));
}
static inline uint4 dnnopt_step_a_across(dnnopt_tiles tiles, const int base, const int line, const int chunk, const int chunks, const int lane) {
  const int r = chunk * 4 + lane / 4;
  const int c = line + lane % 4;
  return (uint4)(dnnopt_step_word_across(tiles, base, c, r, chunks), dnnopt_step_word_across(tiles, base, c, r + 8, chunks),
                 dnnopt_step_word_across(tiles, base, c + 4, r, chunks), dnnopt_step_word_across(tiles, base, c + 4, r + 8, chunks));
}
static inline uint4 dnnopt_step_b_across(dnnopt_tiles tiles, const int base, const int line, const int chunk, const int chunks, const int lane) {
  const int r = chunk * 4 + lane / 4;
  const int c = line + lane % 4;
  return (uint4)(dnnopt_step_word_across(tiles, base, c, r, chunks), dnnopt_step_word_across(tiles, base, c + 4, r, chunks),
                 dnnopt_step_word_across(tiles, base, c, r + 8, chunks), dnnopt_step_word_across(tiles, base, c + 4, r + 8, chunks));
}

// Sum number s of work-item `lane` of a wave whose shares of a and b stand at these places, those of one work-item `apart`.
static inline float dnnopt_step_sum(__local const uint4* a, __local const uint4* b, const int apart, const int lane, const int s, float sum) {
  const int row = DNNOPT_STEP_SUM_ROW(lane, s);
  const int column = DNNOPT_STEP_SUM_COLUMN(lane, s);
  for (int k = 0; k < 8; ++k) {
    const uint4 from_a = a[(row % 8 * 4 + k % 4) * apart];
    const uint4 from_b = b[(column % 8 * 4 + k % 4) * apart];
    const uint word_a = k < 4 ? (row < 8 ? from_a.x : from_a.y) : (row < 8 ? from_a.z : from_a.w);
    const uint word_b = k < 4 ? (column < 8 ? from_b.x : from_b.z) : (column < 8 ? from_b.y : from_b.w);
    sum = fma(as_float(word_a), as_float(word_b), sum);
  }
  return sum;
}
#ifdef __cplusplus
)CLC"
#endif
