#ifdef __cplusplus
R"CLC(
#endif
// Elements of matrix steps are floats.

#ifndef DNNOPT_STEP_SUM_ROW
// Stand-alone.
#include "step_places.cl"
#endif
#define dnnopt_element float
#define DNNOPT_CHUNK_ELEMENTS 4

// The place of a chunk in a tile whose lines are inner elements: a wave reads eight neighbouring words of each of four
// lines, so four neighbouring lines have their pairs of chunks in different banks of local memory.
static inline int dnnopt_chunk_across(const int line, const int chunk, const int chunks) {
  return line * chunks + (chunk ^ (chunks >= 8 ? (line & 3) * 2 : chunks == 4 ? line & 2 : 0));
}
#ifdef __cplusplus
)CLC"
#endif
