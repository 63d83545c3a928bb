#ifdef __cplusplus
R"CLC(
#endif
// Provider of matrix steps of bytes in plain OpenCL C, for every device: what others are held against.

#ifndef dnnopt_element
// Stand-alone.
#include "elements_bytes.cl"
#include "step_exchange.cl"
#endif
#define dnnopt_tiles __local uchar*
static inline dnnopt_tiles dnnopt_tiles_at(__local uint4* memory) { return (__local uchar*)memory; }

// `width` bytes from `from`, or zeros where it is not `within` the matrix, to byte `place` of the tiles.
static inline void dnnopt_copy(dnnopt_tiles tiles, const int place, __global const char* from, const int width, const bool within) {
  for (int i = 0; i < width; ++i) tiles[place + i] = within ? (uchar)from[i] : (uchar)0;
}
static inline void dnnopt_end_copies(void) {}
#define dnnopt_await_copies(stages)

static inline uint dnnopt_step_word(dnnopt_tiles tiles, const int base, const int line, const int along, const int chunks) {
  return ((__local const uint*)tiles)[(base + dnnopt_chunk(line, along / 4, chunks)) * 4 + along % 4];
}
// A work-item's share of 16 lines from `line` on, of the tile whose first chunk is `base`, and the two chunks from `chunk`
// on.
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

static inline int dnnopt_step_code(const uint word, const int e, const int natural) {
  const uchar code = (uchar)(word >> 8 * e);
  return natural ? (int)code : (int)as_char(code);
}
// Sum number s of work-item `lane` of a wave whose shares of a and b stand at these places, those of one work-item `apart`.
static inline int dnnopt_step_sum_of(__local const uint4* a, __local const uint4* b, const int apart, const int lane, const int s, int sum, const int a_natural, const int b_natural) {
  const int row = DNNOPT_STEP_SUM_ROW(lane, s);
  const int column = DNNOPT_STEP_SUM_COLUMN(lane, s);
  for (int k = 0; k < 8; ++k) {
    const uint4 from_a = a[(row % 8 * 4 + k % 4) * apart];
    const uint4 from_b = b[(column % 8 * 4 + k % 4) * apart];
    const uint word_a = k < 4 ? (row < 8 ? from_a.x : from_a.y) : (row < 8 ? from_a.z : from_a.w);
    const uint word_b = k < 4 ? (column < 8 ? from_b.x : from_b.z) : (column < 8 ? from_b.y : from_b.w);
    for (int e = 0; e < 4; ++e) sum += dnnopt_step_code(word_a, e, a_natural) * dnnopt_step_code(word_b, e, b_natural);
  }
  return sum;
}
#define dnnopt_step_sum(a, b, apart, lane, s, sum) dnnopt_step_sum_of(a, b, apart, lane, s, sum, DNNOPT_A_NATURAL, DNNOPT_B_NATURAL)
#ifdef __cplusplus
)CLC"
#endif
