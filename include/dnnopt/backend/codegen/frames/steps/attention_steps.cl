#ifdef __cplusplus
R"CLC(
#endif
// Attention of halves in matrix steps (see matrix_steps.cl), with both products in one launch: a work-group computes 16 rows
// of one head for each of its waves. Keys and values come in blocks of DNNOPT_KEYS; while one block is used the next is on
// its way. The softmax runs along (Milakov and Gimelshein, "Online normalizer calculation for softmax", 2018), in float. A
// wave's scores lie among its work-items as a step leaves sums, which is how the next step wants its first operand, so
// weights go from one product to the other in registers, each as the sum of two halves: rounded to one, they would be off
// by more than a result that a model declares as a half may be.
//
// Hooks: dnnopt_score(z, i, j, product) scales and masks (-INFINITY hides). dnnopt_store(z, i, d, value), or
// dnnopt_store4(z, i, quarter, results) where DNNOPT_STORE_WIDTH is 4. Where DNNOPT_QUERY_COPY (DNNOPT_KEY_COPY,
// DNNOPT_VALUE_COPY) is 8, 4 or 2, dnnopt_address_query(z, i, d) and so on return where that many neighbours of a row lie;
// where it is 0, dnnopt_load_query(z, i, d) returns one element, which saturates as a half.

#ifndef DNNOPT_PARAMETERS
// Stand-alone: heads one after the other, no mask, steps in plain OpenCL C.
#include "providers/step_plain.cl"
#define dnnopt_within_half(value) clamp(value, -65504.0f, 65504.0f)
static inline float dnnopt_widened(float bits) {
  const uint stored = as_uint(bits);
  return vload_half(0, (const __private half*)&stored);
}
#define DNNOPT_PARAMETERS __global const half* b0, __global const half* b1, __global const half* b2, __global float* b3, const int p0, const int p1
#define DNNOPT_KERNEL_PARAMETERS DNNOPT_PARAMETERS
#define DNNOPT_ARGUMENTS b0, b1, b2, b3, p0, p1
#define DNNOPT_QUERY_COUNT p0
#define DNNOPT_KEY_COUNT p1
#define DNNOPT_SIZE 64
#define DNNOPT_VALUE_SIZE 64
#define DNNOPT_WAVES 2
#define DNNOPT_KEYS 32
#define DNNOPT_QUERY_COPY 8
#define DNNOPT_KEY_COPY 8
#define DNNOPT_VALUE_COPY 8
static inline __global const half* dnnopt_address_query(DNNOPT_PARAMETERS, const int z, const int i, const int d) { return b0 + (z * p0 + i) * 64 + d; }
static inline __global const half* dnnopt_address_key(DNNOPT_PARAMETERS, const int z, const int j, const int d) { return b1 + (z * p1 + j) * 64 + d; }
static inline __global const half* dnnopt_address_value(DNNOPT_PARAMETERS, const int z, const int j, const int d) { return b2 + (z * p1 + j) * 64 + d; }
static inline float dnnopt_score(DNNOPT_PARAMETERS, const int z, const int i, const int j, float value) { return value * 0.125f; }
static inline void dnnopt_store(DNNOPT_PARAMETERS, const int z, const int i, const int d, float value) { b3[(z * p0 + i) * 64 + d] = value; }
#endif
#ifndef DNNOPT_STORE_WIDTH
#define DNNOPT_STORE_WIDTH 1
#endif

#define DNNOPT_UNROLLED(i, count) _Pragma("unroll") for (int i = 0; i < (count); ++i)
#define DNNOPT_ITEMS (DNNOPT_WAVES * 32)
#define DNNOPT_ROWS (DNNOPT_WAVES * 16)
// Steps along a row, and its chunks in local memory: a power of two.
#define DNNOPT_STEPS_OF(size) (((size) + 15) / 16)
#define DNNOPT_LINE_OF(size) ((size) <= 16 ? 2 : (size) <= 32 ? 4 : (size) <= 64 ? 8 : 16)
#define DNNOPT_LINE DNNOPT_LINE_OF(DNNOPT_SIZE)
#define DNNOPT_VALUE_LINE DNNOPT_LINE_OF(DNNOPT_VALUE_SIZE)
#define DNNOPT_VALUE_STEPS DNNOPT_STEPS_OF(DNNOPT_VALUE_SIZE)
#define DNNOPT_KEY_STEPS (DNNOPT_KEYS / 16)
#define DNNOPT_QUERY_CHUNKS (DNNOPT_ROWS * DNNOPT_LINE)
#define DNNOPT_KEY_CHUNKS (DNNOPT_KEYS * DNNOPT_LINE)
#define DNNOPT_STAGE_CHUNKS (DNNOPT_KEYS * (DNNOPT_LINE + DNNOPT_VALUE_LINE))
// A wave's rows on their way to the store.
#define DNNOPT_KEPT_PITCH (DNNOPT_VALUE_STEPS * 16 + 8)
#define DNNOPT_KEPT_CHUNKS (DNNOPT_WAVES * 16 * DNNOPT_KEPT_PITCH / 4)
#define DNNOPT_TILE_CHUNKS (DNNOPT_QUERY_CHUNKS + 2 * DNNOPT_STAGE_CHUNKS)
#define DNNOPT_MEMORY_CHUNKS (DNNOPT_TILE_CHUNKS > DNNOPT_KEPT_CHUNKS ? DNNOPT_TILE_CHUNKS : DNNOPT_KEPT_CHUNKS)
#define DNNOPT_MOST_STEPS (DNNOPT_VALUE_STEPS > DNNOPT_KEY_STEPS ? DNNOPT_VALUE_STEPS : DNNOPT_KEY_STEPS)

static inline uint dnnopt_two_halves(float low, float high) {
  ushort2 bits;
  vstore_half_rte(dnnopt_within_half(low), 0, (__private half*)&bits);
  vstore_half_rte(dnnopt_within_half(high), 1, (__private half*)&bits);
  return (uint)bits.x | (uint)bits.y << 16;
}

// Brings rows from `first` on to lines of `line_chunks` chunks from chunk `base` on: all steps of a row, zeros beyond it.
#define DNNOPT_COPY_ROWS(operand, width, base, rows, line_chunks, size, first, count)                                  \
  DNNOPT_UNROLLED(move, ((rows) * DNNOPT_STEPS_OF(size) * (16 / (width)) + DNNOPT_ITEMS - 1) / DNNOPT_ITEMS) {         \
    const int e = item + move * DNNOPT_ITEMS;                                                                          \
    const int line = e / (DNNOPT_STEPS_OF(size) * (16 / (width)));                                                     \
    const int along = e % (DNNOPT_STEPS_OF(size) * (16 / (width))) * (width);                                          \
    if (line < (rows))                                                                                                 \
      dnnopt_copy(tiles, ((base) + dnnopt_chunk(line, along / 8, line_chunks)) * 8 + along % 8,                        \
                  dnnopt_address_##operand(DNNOPT_ARGUMENTS, z, (first) + line, along), width,                         \
                  (first) + line < (count) && along < (size));                                                         \
  }
#define DNNOPT_LOAD_ROWS(operand, base, rows, line_chunks, size, first, count)                                         \
  for (int e = item; e < (rows) * DNNOPT_STEPS_OF(size) * 8; e += DNNOPT_ITEMS) {                                      \
    const int line = e / (DNNOPT_STEPS_OF(size) * 8);                                                                  \
    const int along = e % (DNNOPT_STEPS_OF(size) * 8) * 2;                                                             \
    const bool within = (first) + line < (count);                                                                      \
    const float low = within && along < (size) ? dnnopt_load_##operand(DNNOPT_ARGUMENTS, z, (first) + line, along) : 0.0f; \
    const float high = within && along + 1 < (size) ? dnnopt_load_##operand(DNNOPT_ARGUMENTS, z, (first) + line, along + 1) : 0.0f; \
    ((__local uint*)memory)[(((base) + dnnopt_chunk(line, along / 8, line_chunks)) * 8 + along % 8) / 2] = dnnopt_two_halves(low, high); \
  }
#if DNNOPT_QUERY_COPY
#define DNNOPT_BRING_QUERIES DNNOPT_COPY_ROWS(query, DNNOPT_QUERY_COPY, 0, DNNOPT_ROWS, DNNOPT_LINE, DNNOPT_SIZE, i_begin, DNNOPT_QUERY_COUNT)
#else
#define DNNOPT_BRING_QUERIES DNNOPT_LOAD_ROWS(query, 0, DNNOPT_ROWS, DNNOPT_LINE, DNNOPT_SIZE, i_begin, DNNOPT_QUERY_COUNT)
#endif
#if DNNOPT_KEY_COPY
#define DNNOPT_BRING_KEYS(base, first) DNNOPT_COPY_ROWS(key, DNNOPT_KEY_COPY, base, DNNOPT_KEYS, DNNOPT_LINE, DNNOPT_SIZE, first, DNNOPT_KEY_COUNT)
#else
#define DNNOPT_BRING_KEYS(base, first) DNNOPT_LOAD_ROWS(key, base, DNNOPT_KEYS, DNNOPT_LINE, DNNOPT_SIZE, first, DNNOPT_KEY_COUNT)
#endif
#if DNNOPT_VALUE_COPY
#define DNNOPT_BRING_VALUES(base, first) DNNOPT_COPY_ROWS(value, DNNOPT_VALUE_COPY, base, DNNOPT_KEYS, DNNOPT_VALUE_LINE, DNNOPT_VALUE_SIZE, first, DNNOPT_KEY_COUNT)
#else
#define DNNOPT_BRING_VALUES(base, first) DNNOPT_LOAD_ROWS(value, base, DNNOPT_KEYS, DNNOPT_VALUE_LINE, DNNOPT_VALUE_SIZE, first, DNNOPT_KEY_COUNT)
#endif

__kernel __attribute__((reqd_work_group_size(DNNOPT_ITEMS, 1, 1))) void dnnopt_kernel(DNNOPT_KERNEL_PARAMETERS) {
  __local uint4 memory[DNNOPT_MEMORY_CHUNKS];
#if DNNOPT_STEP_EXCHANGES
  __local uint4 exchange[DNNOPT_ITEMS * (1 + DNNOPT_MOST_STEPS)];
#endif
  const int z = (int)get_group_id(1);
  const int i_begin = (int)get_group_id(0) * DNNOPT_ROWS;
  const int item = (int)get_local_id(0);
  const int lane = item % 32;
  const int wave = item / 32;
  dnnopt_tiles tiles = dnnopt_tiles_at(memory);
  DNNOPT_BRING_QUERIES
  DNNOPT_BRING_KEYS(DNNOPT_QUERY_CHUNKS, 0)
  DNNOPT_BRING_VALUES(DNNOPT_QUERY_CHUNKS + DNNOPT_KEY_CHUNKS, 0)
  dnnopt_end_copies();
  dnnopt_await_copies(0);
  barrier(CLK_LOCAL_MEM_FENCE);
  uint4 query[DNNOPT_STEPS_OF(DNNOPT_SIZE)];
  DNNOPT_UNROLLED(d, DNNOPT_STEPS_OF(DNNOPT_SIZE)) query[d] = dnnopt_step_a(tiles, 0, wave * 16, 2 * d, DNNOPT_LINE, lane);
  float result[1][DNNOPT_VALUE_STEPS][8];
  DNNOPT_UNROLLED(v, DNNOPT_VALUE_STEPS) DNNOPT_UNROLLED(s, 8) result[0][v][s] = 0.0f;
  // Of a work-item's two rows: the greatest score so far, and the sum of this work-item's weights.
  float top[2] = {-INFINITY, -INFINITY};
  float sum[2] = {0.0f, 0.0f};
  int stage = DNNOPT_QUERY_CHUNKS;
  for (int begin = 0; begin < DNNOPT_KEY_COUNT; begin += DNNOPT_KEYS) {
    const int next_stage = 2 * DNNOPT_QUERY_CHUNKS + DNNOPT_STAGE_CHUNKS - stage;
    if (begin + DNNOPT_KEYS < DNNOPT_KEY_COUNT) {
      DNNOPT_BRING_KEYS(next_stage, begin + DNNOPT_KEYS)
      DNNOPT_BRING_VALUES(next_stage + DNNOPT_KEY_CHUNKS, begin + DNNOPT_KEYS)
    }
    dnnopt_end_copies();
    float scores[1][DNNOPT_KEY_STEPS][8];
    DNNOPT_UNROLLED(j, DNNOPT_KEY_STEPS) DNNOPT_UNROLLED(s, 8) scores[0][j][s] = 0.0f;
    DNNOPT_UNROLLED(d, DNNOPT_STEPS_OF(DNNOPT_SIZE)) {
      uint4 a[1];
      uint4 b[DNNOPT_KEY_STEPS];
      a[0] = query[d];
      DNNOPT_UNROLLED(j, DNNOPT_KEY_STEPS) b[j] = dnnopt_step_b(tiles, stage, 16 * j, 2 * d, DNNOPT_LINE, lane);
      DNNOPT_MULTIPLY_STEPS(scores, a, b, 1, DNNOPT_KEY_STEPS)
    }
    float greatest[2] = {top[0], top[1]};
    DNNOPT_UNROLLED(step, DNNOPT_KEY_STEPS) DNNOPT_UNROLLED(s, 8) {
      const int i = i_begin + wave * 16 + DNNOPT_STEP_SUM_ROW(lane, s);
      const int j = begin + step * 16 + DNNOPT_STEP_SUM_COLUMN(lane, s);
      float score = -INFINITY;
      if (i < DNNOPT_QUERY_COUNT && j < DNNOPT_KEY_COUNT) score = dnnopt_score(DNNOPT_ARGUMENTS, z, i, j, scores[0][step][s]);
      scores[0][step][s] = score;
      greatest[s / 2 % 2] = fmax(greatest[s / 2 % 2], score);
    }
    float shift[2];
    DNNOPT_UNROLLED(r, 2) {
      DNNOPT_STEP_ALONG_ROW(fmax, greatest[r])
      // A row of which nothing has been seen yet has no greatest score.
      shift[r] = greatest[r] == -INFINITY ? 0.0f : greatest[r];
      const float factor = exp(top[r] - shift[r]);
      top[r] = greatest[r];
      sum[r] *= factor;
      DNNOPT_UNROLLED(v, DNNOPT_VALUE_STEPS) {
        DNNOPT_UNROLLED(s, 8) if (s / 2 % 2 == r) result[0][v][s] *= factor;
      }
    }
    DNNOPT_UNROLLED(step, DNNOPT_KEY_STEPS) {
      float weights[8];
      DNNOPT_UNROLLED(s, 8) {
        weights[s] = exp(scores[0][step][s] - shift[s / 2 % 2]);
        sum[s / 2 % 2] += weights[s];
      }
      uint4 b[DNNOPT_VALUE_STEPS];
      DNNOPT_UNROLLED(v, DNNOPT_VALUE_STEPS) b[v] = dnnopt_step_b_across(tiles, stage + DNNOPT_KEY_CHUNKS, 16 * step, 2 * v, DNNOPT_VALUE_LINE, lane);
      DNNOPT_UNROLLED(part, 2) {
        uint halves[4];
        DNNOPT_UNROLLED(pair, 4) {
          halves[pair] = dnnopt_two_halves(weights[2 * pair], weights[2 * pair + 1]);
          weights[2 * pair] -= dnnopt_widened(as_float(halves[pair] & 0xffffu));
          weights[2 * pair + 1] -= dnnopt_widened(as_float(halves[pair] >> 16));
        }
        uint4 a[1];
        a[0] = (uint4)(halves[0], halves[1], halves[2], halves[3]);
        DNNOPT_MULTIPLY_STEPS(result, a, b, 1, DNNOPT_VALUE_STEPS)
      }
    }
    stage = next_stage;
    dnnopt_await_copies(0);
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  float factor[2];
  DNNOPT_UNROLLED(r, 2) {
    DNNOPT_STEP_ALONG_ROW(dnnopt_step_plus, sum[r])
    factor[r] = sum[r] == 0.0f ? 0.0f : 1.0f / sum[r];
  }
  // Through local memory, so that work-items get neighbours of a row.
  __local float* kept = (__local float*)memory + wave * 16 * DNNOPT_KEPT_PITCH;
  DNNOPT_UNROLLED(v, DNNOPT_VALUE_STEPS) DNNOPT_UNROLLED(s, 8) {
    kept[DNNOPT_STEP_SUM_ROW(lane, s) * DNNOPT_KEPT_PITCH + v * 16 + DNNOPT_STEP_SUM_COLUMN(lane, s)] = result[0][v][s] * factor[s / 2 % 2];
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  DNNOPT_UNROLLED(q, 2 * DNNOPT_VALUE_STEPS) {
    const int e = q * 32 + lane;
    const int row = e / (4 * DNNOPT_VALUE_STEPS);
    const int d = e % (4 * DNNOPT_VALUE_STEPS) * 4;
    const int i = i_begin + wave * 16 + row;
    const float4 results = *(__local const float4*)(kept + row * DNNOPT_KEPT_PITCH + d);
    if (i < DNNOPT_QUERY_COUNT) {
#if DNNOPT_STORE_WIDTH == 4
      if (d < DNNOPT_VALUE_SIZE) dnnopt_store4(DNNOPT_ARGUMENTS, z, i, d / 4, results);
#else
      if (d < DNNOPT_VALUE_SIZE) dnnopt_store(DNNOPT_ARGUMENTS, z, i, d, results.x);
      if (d + 1 < DNNOPT_VALUE_SIZE) dnnopt_store(DNNOPT_ARGUMENTS, z, i, d + 1, results.y);
      if (d + 2 < DNNOPT_VALUE_SIZE) dnnopt_store(DNNOPT_ARGUMENTS, z, i, d + 2, results.z);
      if (d + 3 < DNNOPT_VALUE_SIZE) dnnopt_store(DNNOPT_ARGUMENTS, z, i, d + 3, results.w);
#endif
    }
  }
}
#ifdef __cplusplus
)CLC"
#endif
