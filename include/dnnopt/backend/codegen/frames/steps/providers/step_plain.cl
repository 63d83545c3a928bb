#ifdef __cplusplus
R"CLC(
#endif
// Provider of matrix steps in plain OpenCL C, for every device: what neighbouring work-items hold passes through local
// memory. It is what others are held against, and not meant to be fast.

#ifndef DNNOPT_STEP_SUM_ROW
// Stand-alone.
#include "step_places.cl"
#endif
#ifndef dnnopt_element
#include "elements_halves.cl"
#endif
#ifndef DNNOPT_STEP_EXCHANGES
#include "step_exchange.cl"
#endif
#define dnnopt_tiles __local ushort*
static inline dnnopt_tiles dnnopt_tiles_at(__local uint4* memory) { return (__local ushort*)memory; }

// `width` halves from `from`, or zeros where it is not `within` the matrix, to half `place` of the tiles.
static inline void dnnopt_copy(dnnopt_tiles tiles, const int place, __global const half* from, const int width, const bool within) {
  for (int i = 0; i < width; ++i) tiles[place + i] = within ? ((__global const ushort*)from)[i] : (ushort)0;
}
static inline void dnnopt_end_copies(void) {}
#define dnnopt_await_copies(stages)

static inline uint dnnopt_step_pair(dnnopt_tiles tiles, const int base, const int line, const int along, const int chunks) {
  const int at = (base + dnnopt_chunk(line, along / 8, chunks)) * 8 + along % 8;
  return tiles[at] | (uint)tiles[at + 1] << 16;
}
static inline uint dnnopt_step_pair_across(dnnopt_tiles tiles, const int base, const int line, const int along, const int chunks) {
  return tiles[(base + dnnopt_chunk(line, along / 8, chunks)) * 8 + along % 8] |
         (uint)tiles[(base + dnnopt_chunk(line + 1, along / 8, chunks)) * 8 + along % 8] << 16;
}
// A work-item's share of 16 lines from `line` on, of the tile whose first chunk is `base`, and the two chunks from `chunk`
// on; across: lines are inner elements. That of b is not made of that of a: PoCL 3.1 computes it wrongly then.
static inline uint4 dnnopt_step_a(dnnopt_tiles tiles, const int base, const int line, const int chunk, const int chunks, const int lane) {
  const int r = line + lane / 4;
  const int c = chunk * 8 + lane % 4 * 2;
  return (uint4)(dnnopt_step_pair(tiles, base, r, c, chunks), dnnopt_step_pair(tiles, base, r + 8, c, chunks),
                 dnnopt_step_pair(tiles, base, r, c + 8, chunks), dnnopt_step_pair(tiles, base, r + 8, c + 8, chunks));
}
static inline uint4 dnnopt_step_b(dnnopt_tiles tiles, const int base, const int line, const int chunk, const int chunks, const int lane) {
  const int r = line + lane / 4;
  const int c = chunk * 8 + lane % 4 * 2;
  return (uint4)(dnnopt_step_pair(tiles, base, r, c, chunks), dnnopt_step_pair(tiles, base, r, c + 8, chunks),
                 dnnopt_step_pair(tiles, base, r + 8, c, chunks), dnnopt_step_pair(tiles, base, r + 8, c + 8, chunks));
}
static inline uint4 dnnopt_step_a_across(dnnopt_tiles tiles, const int base, const int line, const int chunk, const int chunks, const int lane) {
  const int r = chunk * 8 + lane / 4;
  const int c = line + lane % 4 * 2;
  return (uint4)(dnnopt_step_pair_across(tiles, base, c, r, chunks), dnnopt_step_pair_across(tiles, base, c, r + 8, chunks),
                 dnnopt_step_pair_across(tiles, base, c + 8, r, chunks), dnnopt_step_pair_across(tiles, base, c + 8, r + 8, chunks));
}
static inline uint4 dnnopt_step_b_across(dnnopt_tiles tiles, const int base, const int line, const int chunk, const int chunks, const int lane) {
  const int r = chunk * 8 + lane / 4;
  const int c = line + lane % 4 * 2;
  return (uint4)(dnnopt_step_pair_across(tiles, base, c, r, chunks), dnnopt_step_pair_across(tiles, base, c + 8, r, chunks),
                 dnnopt_step_pair_across(tiles, base, c, r + 8, chunks), dnnopt_step_pair_across(tiles, base, c + 8, r + 8, chunks));
}

static inline float dnnopt_step_half(const uint pair, const int second) {
  const ushort bits = (ushort)(second ? pair >> 16 : pair);
  return vload_half(0, (const __private half*)&bits);
}
// Sum number s of work-item `lane` of a wave whose shares of a and b stand at these places, those of one work-item `apart`.
static inline float dnnopt_step_sum(__local const uint4* a, __local const uint4* b, const int apart, const int lane, const int s, float sum) {
  const int row = DNNOPT_STEP_SUM_ROW(lane, s);
  const int column = DNNOPT_STEP_SUM_COLUMN(lane, s);
  for (int k = 0; k < 16; ++k) {
    const uint4 from_a = a[(row % 8 * 4 + k % 8 / 2) * apart];
    const uint4 from_b = b[(column % 8 * 4 + k % 8 / 2) * apart];
    const uint pair_a = k < 8 ? (row < 8 ? from_a.x : from_a.y) : (row < 8 ? from_a.z : from_a.w);
    const uint pair_b = k < 8 ? (column < 8 ? from_b.x : from_b.z) : (column < 8 ? from_b.y : from_b.w);
    sum = fma(dnnopt_step_half(pair_a, k & 1), dnnopt_step_half(pair_b, k & 1), sum);
  }
  return sum;
}
// `x` becomes op of the values that the four work-items with sums of the same row have.
#define DNNOPT_STEP_ALONG_ROW(op, x)                                                         \
  {                                                                                          \
    ((__local float*)exchange)[item] = x;                                                    \
    barrier(CLK_LOCAL_MEM_FENCE);                                                            \
    for (int other = 1; other < 4; ++other) x = op(x, ((__local float*)exchange)[item ^ other]); \
    barrier(CLK_LOCAL_MEM_FENCE);                                                            \
  }
#ifdef __cplusplus
)CLC"
#endif
