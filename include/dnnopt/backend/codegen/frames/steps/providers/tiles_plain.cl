#ifdef __cplusplus
R"CLC(
#endif
// Provider of matrix steps that read whole tiles, in plain OpenCL C: what others are held against. The text of
// step_plain.cl stands before this one: copies are its.

#ifndef dnnopt_tiles
// Stand-alone.
#include "step_plain.cl"
#endif
static inline void dnnopt_show_tiles(void) {}
static inline void dnnopt_await_tile_steps(void) {}

static inline float dnnopt_tile_element(dnnopt_tiles tiles, const int base, const int outer, const int inner, const int inner_first, const int chunks, const int lines) {
  const int line = inner_first ? outer : inner;
  const int along = inner_first ? inner : outer;
  const ushort bits = tiles[(base + dnnopt_panel_chunk(line, along / 8, chunks, lines)) * 8 + along % 8];
  return vload_half(0, (const __private half*)&bits);
}
#define DNNOPT_MULTIPLY_TILES(sum, a_base, b_base)                                                                       \
  for (int i = 0; i < DNNOPT_ROW_STEPS; ++i)                                                                             \
    for (int j = 0; j < DNNOPT_COLUMN_STEPS; ++j)                                                                        \
      for (int s = 0; s < 8; ++s) {                                                                                      \
        const int row = DNNOPT_WAVE_ROW(i) + DNNOPT_STEP_SUM_ROW(lane, s);                                               \
        const int column = (wave_column * DNNOPT_COLUMN_STEPS + j) * 16 + DNNOPT_STEP_SUM_COLUMN(lane, s);               \
        float total = sum[i][j][s];                                                                                      \
        for (int k = 0; k < DNNOPT_TILE_INNER; ++k)                                                                      \
          total = fma(dnnopt_tile_element(tiles, (a_base), row, k, DNNOPT_A_INNER_FIRST, DNNOPT_A_LINE, DNNOPT_TILE_INNER), \
                      dnnopt_tile_element(tiles, (b_base), column, k, DNNOPT_B_INNER_FIRST, DNNOPT_B_LINE, DNNOPT_TILE_INNER), total); \
        sum[i][j][s] = total;                                                                                            \
      }
#ifdef __cplusplus
)CLC"
#endif
