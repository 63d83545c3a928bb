#ifdef __cplusplus
R"CLC(
#endif
// What all providers of a matrix step share: where things lie. A step multiplies 16 rows of a by 16 columns of b, 32 bytes
// of each: 16 halves, or 8 floats. Work-item `lane` of 32 holds, with r = lane / 4 and c = lane % 4, as words of 32 bits (two
// halves, or one float) in the components x, y, z, w:
//   of a, rows r, r + 8, r, r + 8 at the inner word c, for z and w c + 4;
//   of b, columns r, r, r + 8, r + 8 at the inner word c, for y and w c + 4;
//   of the sums, row r (for s = 2, 3, 6, 7: r + 8), column 2 * c + s % 2 (from s = 4 on: 2 * c + 8 + s % 2).

#define DNNOPT_STEP_SUM_ROW(lane, s) ((lane) / 4 + ((s) & 2) * 4)
#define DNNOPT_STEP_SUM_COLUMN(lane, s) ((lane) % 4 * 2 + ((s) & 1) + ((s) & 4) * 2)

// The place of a chunk of 16 bytes in a tile of lines of `chunks` each (2, 4, or more that are a multiple of 8): eight
// neighbouring lines have their chunks of one number in different banks of local memory.
static inline int dnnopt_chunk(const int line, const int chunk, const int chunks) {
  return line * chunks + (chunk ^ (chunks >= 8 ? line & 7 : chunks == 4 ? line >> 1 & 3 : line >> 2 & 1));
}

// The same where lines run on in panels of eight chunks, each panel with all `lines`: what steps that read whole tiles want.
static inline int dnnopt_panel_chunk(const int line, const int chunk, const int chunks, const int lines) {
  return chunks <= 8 ? dnnopt_chunk(line, chunk, chunks) : chunk / 8 * lines * 8 + dnnopt_chunk(line, chunk % 8, 8);
}

static inline float dnnopt_step_plus(float x, float y) { return x + y; }
#ifdef __cplusplus
)CLC"
#endif
