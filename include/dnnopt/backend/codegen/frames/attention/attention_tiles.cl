#ifdef __cplusplus
R"CLC(
#endif
// Attention in one launch on devices whose work-items run in step and share local memory: a work-group computes DNNOPT_ROWS
// rows of one head. It has DNNOPT_SPLITS teams of DNNOPT_ROWS * 2 work-items; the teams take blocks of 32 keys in turn and
// join their results in the end, which fills the device where rows and heads are few. Each work-item has four rows by four
// columns of the scores, then four rows by vectors of the result. The softmax runs along (Milakov and Gimelshein, "Online
// normalizer calculation for softmax", 2018): each work-item turns its own scores into weights and keeps their sum, and the
// greatest score of a row is found by its eight work-items together. While a block is used the next is on its way in
// registers, where they hold it: the values of a block beside its keys, the keys of the next block beside the values.
//
// Hooks: dnnopt_load_query(z, i, d), dnnopt_load_key(z, j, d), dnnopt_load_value(z, j, d), where z counts (batch, head);
// where DNNOPT_QUERY_WIDTH (DNNOPT_KEY_WIDTH, DNNOPT_VALUE_WIDTH) is 4, dnnopt_load4_query(z, i, quarter) and so on return
// elements 4 * quarter .. of a row. dnnopt_score(z, i, j, product) scales and masks (-INFINITY hides).
// dnnopt_store(z, i, d, value), or dnnopt_store4(z, i, quarter, results) where DNNOPT_STORE_WIDTH is 4.

#ifndef DNNOPT_PARAMETERS
// Stand-alone: heads one after the other, no mask.
#define DNNOPT_PARAMETERS __global const float* b0, __global const float* b1, __global const float* b2, __global float* b3, const int p0, const int p1
#define DNNOPT_KERNEL_PARAMETERS DNNOPT_PARAMETERS
#define DNNOPT_ARGUMENTS b0, b1, b2, b3, p0, p1
#define DNNOPT_QUERY_COUNT p0
#define DNNOPT_KEY_COUNT p1
#define DNNOPT_SIZE 64
#define DNNOPT_VALUE_SIZE 64
#define DNNOPT_ROWS 16
#define DNNOPT_SPLITS 2
static inline float dnnopt_load_query(DNNOPT_PARAMETERS, const int z, const int i, const int d) { return b0[(z * p0 + i) * 64 + d]; }
static inline float dnnopt_load_key(DNNOPT_PARAMETERS, const int z, const int j, const int d) { return b1[(z * p1 + j) * 64 + d]; }
static inline float dnnopt_load_value(DNNOPT_PARAMETERS, const int z, const int j, const int d) { return b2[(z * p1 + j) * 64 + d]; }
static inline float dnnopt_score(DNNOPT_PARAMETERS, const int z, const int i, const int j, float value) { return value * 0.125f; }
static inline void dnnopt_store(DNNOPT_PARAMETERS, const int z, const int i, const int d, float value) { b3[(z * p0 + i) * 64 + d] = value; }
#endif
#ifndef DNNOPT_QUERY_WIDTH
#define DNNOPT_QUERY_WIDTH 1
#endif
#ifndef DNNOPT_KEY_WIDTH
#define DNNOPT_KEY_WIDTH 1
#endif
#ifndef DNNOPT_VALUE_WIDTH
#define DNNOPT_VALUE_WIDTH 1
#endif
#ifndef DNNOPT_STORE_WIDTH
#define DNNOPT_STORE_WIDTH 1
#endif
#define DNNOPT_UNROLLED(i, count) _Pragma("unroll") for (int i = 0; i < (count); ++i)
// Vectors of 4 from one row to the next; one more keeps neighbouring rows in different banks.
#define DNNOPT_PITCH 9
#define DNNOPT_ROW_PITCH (DNNOPT_ROWS / 4 + 1)
#define DNNOPT_VALUE_VECTORS ((DNNOPT_VALUE_SIZE + 31) / 32)
#define DNNOPT_VALUE_PITCH (DNNOPT_VALUE_VECTORS * 8 + 1)
#define DNNOPT_BLOCK (DNNOPT_SIZE * DNNOPT_PITCH > 32 * DNNOPT_VALUE_PITCH ? DNNOPT_SIZE * DNNOPT_PITCH : 32 * DNNOPT_VALUE_PITCH)
#define DNNOPT_TEAM (DNNOPT_ROWS * 2)
#define DNNOPT_ITEMS (DNNOPT_TEAM * DNNOPT_SPLITS)
// Vectors of a row that neighbouring work-items take side by side, before they go on to the next row.
#define DNNOPT_ABREAST (DNNOPT_SIZE % 16 == 0 ? 4 : DNNOPT_SIZE % 8 == 0 ? 2 : 1)
// The floats of a block that a work-item brings, and how many of them registers hold beside sums and results.
#define DNNOPT_HELD 64
#define DNNOPT_KEYS_AHEAD (32 * DNNOPT_SIZE <= DNNOPT_HELD * DNNOPT_TEAM)
#define DNNOPT_VALUES_AHEAD (32 * DNNOPT_VALUE_VECTORS * 32 <= DNNOPT_HELD * DNNOPT_TEAM)

// Part e of what is brought: where it stands, its load, and its place in local memory. Queries and keys stand there by
// element, then row; values by row, then element.
#if DNNOPT_QUERY_WIDTH == 4
#define DNNOPT_QUERY_PARTS (DNNOPT_ROWS * DNNOPT_SIZE / 4)
#define DNNOPT_BRING_QUERY(e)                                                                              \
  const int quarter = e % DNNOPT_ABREAST + e / (DNNOPT_ABREAST * DNNOPT_ROWS) * DNNOPT_ABREAST;            \
  const int i = e / DNNOPT_ABREAST % DNNOPT_ROWS;                                                          \
  const float4 brought = first + i < DNNOPT_QUERY_COUNT ? dnnopt_load4_query(DNNOPT_ARGUMENTS, z, first + i, quarter) : (float4)(0.0f); \
  __local float* to = (__local float*)query + 4 * quarter * (DNNOPT_ROW_PITCH * 4) + i;                    \
  to[0 * DNNOPT_ROW_PITCH * 4] = brought.x;                                                                \
  to[1 * DNNOPT_ROW_PITCH * 4] = brought.y;                                                                \
  to[2 * DNNOPT_ROW_PITCH * 4] = brought.z;                                                                \
  to[3 * DNNOPT_ROW_PITCH * 4] = brought.w;
#else
#define DNNOPT_QUERY_PARTS (DNNOPT_ROWS * DNNOPT_SIZE)
#define DNNOPT_BRING_QUERY(e)                                                                              \
  const int d = e % DNNOPT_SIZE;                                                                           \
  const int i = e / DNNOPT_SIZE;                                                                           \
  ((__local float*)query)[d * (DNNOPT_ROW_PITCH * 4) + i] = first + i < DNNOPT_QUERY_COUNT ? dnnopt_load_query(DNNOPT_ARGUMENTS, z, first + i, d) : 0.0f;
#endif
#if DNNOPT_KEY_WIDTH == 4
#define DNNOPT_KEY_TYPE float4
#define DNNOPT_KEY_PARTS (8 * DNNOPT_SIZE)
#define DNNOPT_KEY_PLACE(e)                                                                                \
  const int quarter = (e) % DNNOPT_ABREAST + (e) / (DNNOPT_ABREAST * 32) * DNNOPT_ABREAST;                 \
  const int j = (e) / DNNOPT_ABREAST % 32;
#define DNNOPT_KEY_LOAD(begin) ((begin) + j < DNNOPT_KEY_COUNT ? dnnopt_load4_key(DNNOPT_ARGUMENTS, z, (begin) + j, quarter) : (float4)(0.0f))
#define DNNOPT_KEY_KEEP(from)                                                                              \
  {                                                                                                        \
    __local float* to = (__local float*)block + 4 * quarter * (DNNOPT_PITCH * 4) + j;                      \
    to[0 * DNNOPT_PITCH * 4] = (from).x;                                                                   \
    to[1 * DNNOPT_PITCH * 4] = (from).y;                                                                   \
    to[2 * DNNOPT_PITCH * 4] = (from).z;                                                                   \
    to[3 * DNNOPT_PITCH * 4] = (from).w;                                                                   \
  }
#else
#define DNNOPT_KEY_TYPE float
#define DNNOPT_KEY_PARTS (32 * DNNOPT_SIZE)
#define DNNOPT_KEY_PLACE(e)                                                                                \
  const int d = (e) % DNNOPT_SIZE;                                                                         \
  const int j = (e) / DNNOPT_SIZE;
#define DNNOPT_KEY_LOAD(begin) ((begin) + j < DNNOPT_KEY_COUNT ? dnnopt_load_key(DNNOPT_ARGUMENTS, z, (begin) + j, d) : 0.0f)
#define DNNOPT_KEY_KEEP(from) ((__local float*)block)[d * (DNNOPT_PITCH * 4) + j] = from;
#endif
#if DNNOPT_VALUE_WIDTH == 4
#define DNNOPT_VALUE_TYPE float4
#define DNNOPT_VALUE_PARTS (32 * DNNOPT_VALUE_VECTORS * 8)
#define DNNOPT_VALUE_PLACE(e)                                                                              \
  const int quarter = (e) % (DNNOPT_VALUE_VECTORS * 8);                                                    \
  const int j = (e) / (DNNOPT_VALUE_VECTORS * 8);
#define DNNOPT_VALUE_LOAD(begin) ((begin) + j < DNNOPT_KEY_COUNT && 4 * quarter < DNNOPT_VALUE_SIZE ? dnnopt_load4_value(DNNOPT_ARGUMENTS, z, (begin) + j, quarter) : (float4)(0.0f))
#define DNNOPT_VALUE_KEEP(from) block[j * DNNOPT_VALUE_PITCH + quarter] = from;
#else
#define DNNOPT_VALUE_TYPE float
#define DNNOPT_VALUE_PARTS (32 * DNNOPT_VALUE_VECTORS * 32)
#define DNNOPT_VALUE_PLACE(e)                                                                              \
  const int d = (e) % (DNNOPT_VALUE_VECTORS * 32);                                                         \
  const int j = (e) / (DNNOPT_VALUE_VECTORS * 32);
#define DNNOPT_VALUE_LOAD(begin) ((begin) + j < DNNOPT_KEY_COUNT && d < DNNOPT_VALUE_SIZE ? dnnopt_load_value(DNNOPT_ARGUMENTS, z, (begin) + j, d) : 0.0f)
#define DNNOPT_VALUE_KEEP(from) ((__local float*)block)[j * (DNNOPT_VALUE_PITCH * 4) + d] = from;
#endif
#define DNNOPT_KEY_LOADS ((DNNOPT_KEY_PARTS + DNNOPT_TEAM - 1) / DNNOPT_TEAM)
#define DNNOPT_VALUE_LOADS ((DNNOPT_VALUE_PARTS + DNNOPT_TEAM - 1) / DNNOPT_TEAM)
// The parts of an item, of which 16 are asked for before the first is needed.
#define DNNOPT_EACH_PART(e, count, items, item) _Pragma("unroll 16") for (int dnnopt_turn = 0, e = (item); dnnopt_turn < ((count) + (items) - 1) / (items); ++dnnopt_turn, e += (items)) if (e < (count))
#define DNNOPT_KEY_PART(t) DNNOPT_KEY_PLACE(item + (t) * DNNOPT_TEAM)
#define DNNOPT_VALUE_PART(t) DNNOPT_VALUE_PLACE(item + (t) * DNNOPT_TEAM)
#define DNNOPT_IS_PART(t, parts) ((parts) % DNNOPT_TEAM == 0 || item + (t) * DNNOPT_TEAM < (parts))

__kernel __attribute__((reqd_work_group_size(DNNOPT_ITEMS, 1, 1))) void dnnopt_kernel(DNNOPT_KERNEL_PARAMETERS) {
  __local float4 query[DNNOPT_SIZE * DNNOPT_ROW_PITCH];
  // Keys, then values of a team's block.
  __local float4 blocks[DNNOPT_SPLITS * DNNOPT_BLOCK];
  __local float4 all_weights[DNNOPT_SPLITS * 32 * DNNOPT_ROW_PITCH];
  // What each of a row's eight work-items knows of it, for four rows: a greatest score, in the end a sum.
  __local float4 all_shares[DNNOPT_SPLITS * 8 * DNNOPT_ROWS / 4];
  __local float4 tops[DNNOPT_SPLITS * DNNOPT_ROWS / 4];
  const int z = (int)get_group_id(1);
  const int first = (int)get_group_id(0) * DNNOPT_ROWS;
  const int team = (int)get_local_id(0) / DNNOPT_TEAM;
  const int item = (int)get_local_id(0) % DNNOPT_TEAM;
  // Down the rows in pairs, as in matrix_tiles.cl.
  const int row = item / 16 * 2 + item % 2;
  const int column = item % 16 / 2;
  __local float4* block = blocks + team * DNNOPT_BLOCK;
  __local float4* weights = all_weights + team * (32 * DNNOPT_ROW_PITCH);
  __local float4* shares = all_shares + team * (8 * DNNOPT_ROWS / 4);
#if DNNOPT_KEYS_AHEAD
  DNNOPT_KEY_TYPE keys_next[DNNOPT_KEY_LOADS];
  DNNOPT_UNROLLED(t, DNNOPT_KEY_LOADS) {
    DNNOPT_KEY_PART(t)
    keys_next[t] = DNNOPT_IS_PART(t, DNNOPT_KEY_PARTS) ? DNNOPT_KEY_LOAD(team * 32) : (DNNOPT_KEY_TYPE)(0.0f);
  }
#endif
  DNNOPT_EACH_PART(e, DNNOPT_QUERY_PARTS, DNNOPT_ITEMS, (int)get_local_id(0)) { DNNOPT_BRING_QUERY(e) }
  float4 result[4][DNNOPT_VALUE_VECTORS];
  DNNOPT_UNROLLED(r, 4) DNNOPT_UNROLLED(v, DNNOPT_VALUE_VECTORS) result[r][v] = (float4)(0.0f);
  // Of the four rows: the greatest score so far, and the sum of this work-item's weights.
  float4 top = (float4)(-INFINITY);
  float4 sum = (float4)(0.0f);
  for (int turn = 0; turn < DNNOPT_KEY_COUNT; turn += 32 * DNNOPT_SPLITS) {
    // A team whose block lies behind the last key goes along with scores that hide all.
    const int begin = turn + team * 32;
    // Also ends the readings of the values before.
    barrier(CLK_LOCAL_MEM_FENCE);
#if DNNOPT_KEYS_AHEAD
    DNNOPT_UNROLLED(t, DNNOPT_KEY_LOADS) if (DNNOPT_IS_PART(t, DNNOPT_KEY_PARTS)) {
      DNNOPT_KEY_PART(t)
      DNNOPT_KEY_KEEP(keys_next[t])
    }
#else
    DNNOPT_EACH_PART(e, DNNOPT_KEY_PARTS, DNNOPT_TEAM, item) {
      DNNOPT_KEY_PLACE(e)
      const DNNOPT_KEY_TYPE brought = DNNOPT_KEY_LOAD(begin);
      DNNOPT_KEY_KEEP(brought)
    }
#endif
    barrier(CLK_LOCAL_MEM_FENCE);
#if DNNOPT_VALUES_AHEAD
    DNNOPT_VALUE_TYPE values_next[DNNOPT_VALUE_LOADS];
    DNNOPT_UNROLLED(t, DNNOPT_VALUE_LOADS) {
      DNNOPT_VALUE_PART(t)
      values_next[t] = DNNOPT_IS_PART(t, DNNOPT_VALUE_PARTS) ? DNNOPT_VALUE_LOAD(begin) : (DNNOPT_VALUE_TYPE)(0.0f);
    }
#endif
    // By column: the products, then the scores, then the weights of four rows.
    float4 own[4];
    DNNOPT_UNROLLED(c, 4) own[c] = (float4)(0.0f);
    _Pragma("unroll 8") for (int d = 0; d < DNNOPT_SIZE; ++d) {
      const float4 a = query[d * DNNOPT_ROW_PITCH + row];
      const float4 b = block[d * DNNOPT_PITCH + column];
      own[0] = fma(a, (float4)(b.x), own[0]);
      own[1] = fma(a, (float4)(b.y), own[1]);
      own[2] = fma(a, (float4)(b.z), own[2]);
      own[3] = fma(a, (float4)(b.w), own[3]);
    }
    DNNOPT_UNROLLED(c, 4) {
      const int j = begin + column * 4 + c;
      float scores[4] = {own[c].x, own[c].y, own[c].z, own[c].w};
      DNNOPT_UNROLLED(r, 4) {
        const int i = first + row * 4 + r;
        float score = -INFINITY;
        if (i < DNNOPT_QUERY_COUNT && j < DNNOPT_KEY_COUNT) score = dnnopt_score(DNNOPT_ARGUMENTS, z, i, j, scores[r]);
        scores[r] = score;
      }
      own[c] = (float4)(scores[0], scores[1], scores[2], scores[3]);
    }
    shares[column * (DNNOPT_ROWS / 4) + row] = fmax(fmax(own[0], own[1]), fmax(own[2], own[3]));
    barrier(CLK_LOCAL_MEM_FENCE);
#if DNNOPT_VALUES_AHEAD
    DNNOPT_UNROLLED(t, DNNOPT_VALUE_LOADS) if (DNNOPT_IS_PART(t, DNNOPT_VALUE_PARTS)) {
      DNNOPT_VALUE_PART(t)
      DNNOPT_VALUE_KEEP(values_next[t])
    }
#else
    DNNOPT_EACH_PART(e, DNNOPT_VALUE_PARTS, DNNOPT_TEAM, item) {
      DNNOPT_VALUE_PLACE(e)
      const DNNOPT_VALUE_TYPE brought = DNNOPT_VALUE_LOAD(begin);
      DNNOPT_VALUE_KEEP(brought)
    }
#endif
    float4 greatest = top;
    DNNOPT_UNROLLED(c, 8) greatest = fmax(greatest, shares[c * (DNNOPT_ROWS / 4) + row]);
    // A row of which nothing has been seen yet has no greatest score.
    const float4 shift = select(greatest, (float4)(0.0f), greatest == (float4)(-INFINITY));
    const float4 factor = exp(top - shift);
    sum *= factor;
    DNNOPT_UNROLLED(c, 4) {
      const float4 weight = exp(own[c] - shift);
      weights[(column * 4 + c) * DNNOPT_ROW_PITCH + row] = weight;
      sum += weight;
    }
    top = greatest;
    barrier(CLK_LOCAL_MEM_FENCE);
#if DNNOPT_KEYS_AHEAD
    DNNOPT_UNROLLED(t, DNNOPT_KEY_LOADS) {
      DNNOPT_KEY_PART(t)
      keys_next[t] = DNNOPT_IS_PART(t, DNNOPT_KEY_PARTS) ? DNNOPT_KEY_LOAD(begin + 32 * DNNOPT_SPLITS) : (DNNOPT_KEY_TYPE)(0.0f);
    }
#endif
    DNNOPT_UNROLLED(v, DNNOPT_VALUE_VECTORS) {
      result[0][v] *= factor.x;
      result[1][v] *= factor.y;
      result[2][v] *= factor.z;
      result[3][v] *= factor.w;
    }
    _Pragma("unroll 8") for (int j = 0; j < 32; ++j) {
      const float4 weight = weights[j * DNNOPT_ROW_PITCH + row];
      DNNOPT_UNROLLED(v, DNNOPT_VALUE_VECTORS) {
        const float4 x = block[j * DNNOPT_VALUE_PITCH + v * 8 + column];
        result[0][v] = fma((float4)(weight.x), x, result[0][v]);
        result[1][v] = fma((float4)(weight.y), x, result[1][v]);
        result[2][v] = fma((float4)(weight.z), x, result[2][v]);
        result[3][v] = fma((float4)(weight.w), x, result[3][v]);
      }
    }
  }
  // The last greatest scores have been read before the last barrier.
  shares[column * (DNNOPT_ROWS / 4) + row] = sum;
  if (column == 0) tops[team * (DNNOPT_ROWS / 4) + row] = top;
  barrier(CLK_LOCAL_MEM_FENCE);
  // A team's share of a row: its sums as seen from the greatest score of all teams.
  float4 greatest = (float4)(-INFINITY);
  DNNOPT_UNROLLED(t, DNNOPT_SPLITS) greatest = fmax(greatest, tops[t * (DNNOPT_ROWS / 4) + row]);
  const float4 shift = select(greatest, (float4)(0.0f), greatest == (float4)(-INFINITY));
  float4 total = (float4)(0.0f);
  DNNOPT_UNROLLED(t, DNNOPT_SPLITS) {
    float4 part = (float4)(0.0f);
    DNNOPT_UNROLLED(c, 8) part += all_shares[(t * 8 + c) * (DNNOPT_ROWS / 4) + row];
    total += part * exp(tops[t * (DNNOPT_ROWS / 4) + row] - shift);
  }
  const float4 factor = select(exp(top - shift) / total, (float4)(0.0f), total == (float4)(0.0f));
  DNNOPT_UNROLLED(v, DNNOPT_VALUE_VECTORS) {
    result[0][v] *= factor.x;
    result[1][v] *= factor.y;
    result[2][v] *= factor.z;
    result[3][v] *= factor.w;
  }
#if DNNOPT_SPLITS > 1
  // The first team gathers; the blocks are free.
  if (team != 0) DNNOPT_UNROLLED(r, 4) DNNOPT_UNROLLED(v, DNNOPT_VALUE_VECTORS) block[(row * 4 + r) * DNNOPT_VALUE_PITCH + v * 8 + column] = result[r][v];
  barrier(CLK_LOCAL_MEM_FENCE);
  if (team != 0) return;
  for (int t = 1; t < DNNOPT_SPLITS; ++t)
    DNNOPT_UNROLLED(r, 4) DNNOPT_UNROLLED(v, DNNOPT_VALUE_VECTORS) result[r][v] += blocks[t * DNNOPT_BLOCK + (row * 4 + r) * DNNOPT_VALUE_PITCH + v * 8 + column];
#endif
  DNNOPT_UNROLLED(r, 4) {
    const int i = first + row * 4 + r;
    if (i < DNNOPT_QUERY_COUNT) DNNOPT_UNROLLED(v, DNNOPT_VALUE_VECTORS) {
#if DNNOPT_STORE_WIDTH == 4
      if ((v * 8 + column) * 4 < DNNOPT_VALUE_SIZE) dnnopt_store4(DNNOPT_ARGUMENTS, z, i, v * 8 + column, result[r][v]);
#else
      const float stored[4] = {result[r][v].x, result[r][v].y, result[r][v].z, result[r][v].w};
      DNNOPT_UNROLLED(c, 4) {
        const int d = (v * 8 + column) * 4 + c;
        if (d < DNNOPT_VALUE_SIZE) dnnopt_store(DNNOPT_ARGUMENTS, z, i, d, stored[c]);
      }
#endif
    }
  }
}
#ifdef __cplusplus
)CLC"
#endif
