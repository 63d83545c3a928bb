#ifdef __cplusplus
R"CLC(
#endif
// Attention in one launch on devices whose work-items run in step and share local memory: a work-group computes DNNOPT_ROWS
// rows of one head. It has DNNOPT_SPLITS teams of DNNOPT_ROWS * 2 work-items; the teams take blocks of 32 keys in turn and
// join their results in the end, which fills the device where rows and heads are few. Each work-item has four rows by four
// columns of the scores, then four rows by vectors of the result. The softmax runs along (Milakov and Gimelshein, "Online
// normalizer calculation for softmax", 2018); one work-item per row and team keeps its greatest score and its sum.
//
// Hooks: dnnopt_load_query(z, i, d), dnnopt_load_key(z, j, d), dnnopt_load_value(z, j, d), where z counts (batch, head);
// dnnopt_score(z, i, j, product), which scales and masks (-INFINITY hides); dnnopt_store(z, i, d, value).

#ifndef DNNOPT_PARAMETERS
// Stand-alone: heads one after the other, no mask.
#define DNNOPT_PARAMETERS __global const float* restrict b0, __global const float* restrict b1, __global const float* restrict b2, __global float* restrict b3, const int p0, const int p1
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
#define DNNOPT_UNROLLED(i, count) _Pragma("unroll") for (int i = 0; i < (count); ++i)
// Vectors of 4 from one row to the next; one more keeps neighbouring rows in different banks.
#define DNNOPT_PITCH 9
#define DNNOPT_ROW_PITCH (DNNOPT_ROWS / 4 + 1)
#define DNNOPT_VALUE_VECTORS ((DNNOPT_VALUE_SIZE + 31) / 32)
#define DNNOPT_VALUE_PITCH (DNNOPT_VALUE_VECTORS * 8 + 1)
#define DNNOPT_BLOCK (DNNOPT_SIZE * DNNOPT_PITCH > 32 * DNNOPT_VALUE_PITCH ? DNNOPT_SIZE * DNNOPT_PITCH : 32 * DNNOPT_VALUE_PITCH)
#define DNNOPT_TEAM (DNNOPT_ROWS * 2)
#define DNNOPT_ITEMS (DNNOPT_TEAM * DNNOPT_SPLITS)
// Elements that an item brings to local memory, all asked for before the first is needed.
#define DNNOPT_BRING(e, count, items, item) _Pragma("unroll 16") for (int dnnopt_turn = 0, e = (item); dnnopt_turn < ((count) + (items) - 1) / (items); ++dnnopt_turn, e += (items)) if (e < (count))

__kernel __attribute__((reqd_work_group_size(DNNOPT_ITEMS, 1, 1))) void dnnopt_kernel(DNNOPT_PARAMETERS) {
  __local float4 query[DNNOPT_SIZE * DNNOPT_ROW_PITCH];
  // Keys, then values of a team's block.
  __local float4 blocks[DNNOPT_SPLITS * DNNOPT_BLOCK];
  __local float4 all_scores[DNNOPT_SPLITS * 32 * DNNOPT_ROW_PITCH];
  __local float4 all_factors[DNNOPT_SPLITS * DNNOPT_ROWS / 4];
  __local float tops[DNNOPT_SPLITS * DNNOPT_ROWS];
  __local float sums[DNNOPT_SPLITS * DNNOPT_ROWS];
  const int z = (int)get_group_id(1);
  const int first = (int)get_group_id(0) * DNNOPT_ROWS;
  const int team = (int)get_local_id(0) / DNNOPT_TEAM;
  const int item = (int)get_local_id(0) % DNNOPT_TEAM;
  const int row = item / 8;
  const int column = item % 8;
  __local float4* block = blocks + team * DNNOPT_BLOCK;
  __local float4* scores = all_scores + team * (32 * DNNOPT_ROW_PITCH);
  __local float4* factors = all_factors + team * (DNNOPT_ROWS / 4);
  DNNOPT_BRING(e, DNNOPT_ROWS * DNNOPT_SIZE, DNNOPT_ITEMS, (int)get_local_id(0)) {
    const int d = e % DNNOPT_SIZE;
    const int i = e / DNNOPT_SIZE;
    ((__local float*)query)[d * (DNNOPT_ROW_PITCH * 4) + i] = first + i < DNNOPT_QUERY_COUNT ? dnnopt_load_query(DNNOPT_ARGUMENTS, z, first + i, d) : 0.0f;
  }
  float4 result[4][DNNOPT_VALUE_VECTORS];
  DNNOPT_UNROLLED(r, 4) DNNOPT_UNROLLED(v, DNNOPT_VALUE_VECTORS) result[r][v] = (float4)(0.0f);
  float top = -INFINITY;
  float sum = 0.0f;
  for (int turn = 0; turn < DNNOPT_KEY_COUNT; turn += 32 * DNNOPT_SPLITS) {
    // A team whose block lies behind the last key goes along with scores that hide all.
    const int begin = turn + team * 32;
    // Also ends the readings of the values before.
    barrier(CLK_LOCAL_MEM_FENCE);
    DNNOPT_BRING(e, 32 * DNNOPT_SIZE, DNNOPT_TEAM, item) {
      const int d = e % DNNOPT_SIZE;
      const int j = e / DNNOPT_SIZE;
      ((__local float*)block)[d * (DNNOPT_PITCH * 4) + j] = begin + j < DNNOPT_KEY_COUNT ? dnnopt_load_key(DNNOPT_ARGUMENTS, z, begin + j, d) : 0.0f;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    float4 products[4];
    DNNOPT_UNROLLED(r, 4) products[r] = (float4)(0.0f);
    _Pragma("unroll 8") for (int d = 0; d < DNNOPT_SIZE; ++d) {
      const float4 a = query[d * DNNOPT_ROW_PITCH + row];
      const float4 b = block[d * DNNOPT_PITCH + column];
      products[0] = fma((float4)(a.x), b, products[0]);
      products[1] = fma((float4)(a.y), b, products[1]);
      products[2] = fma((float4)(a.z), b, products[2]);
      products[3] = fma((float4)(a.w), b, products[3]);
    }
    DNNOPT_UNROLLED(r, 4) {
      const int i = first + row * 4 + r;
      const float own[4] = {products[r].x, products[r].y, products[r].z, products[r].w};
      DNNOPT_UNROLLED(c, 4) {
        const int j = begin + column * 4 + c;
        float score = -INFINITY;
        if (i < DNNOPT_QUERY_COUNT && j < DNNOPT_KEY_COUNT) score = dnnopt_score(DNNOPT_ARGUMENTS, z, i, j, own[c]);
        ((__local float*)scores)[(column * 4 + c) * (DNNOPT_ROW_PITCH * 4) + row * 4 + r] = score;
      }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    DNNOPT_BRING(e, 32 * DNNOPT_VALUE_VECTORS * 32, DNNOPT_TEAM, item) {
      const int d = e % (DNNOPT_VALUE_VECTORS * 32);
      const int j = e / (DNNOPT_VALUE_VECTORS * 32);
      ((__local float*)block)[j * (DNNOPT_VALUE_PITCH * 4) + d] = begin + j < DNNOPT_KEY_COUNT && d < DNNOPT_VALUE_SIZE ? dnnopt_load_value(DNNOPT_ARGUMENTS, z, begin + j, d) : 0.0f;
    }
    if (item < DNNOPT_ROWS) {
      __local float* own = (__local float*)scores + item;
      float greatest = top;
      _Pragma("unroll") for (int j = 0; j < 32; ++j) greatest = fmax(greatest, own[j * (DNNOPT_ROW_PITCH * 4)]);
      // A row of which nothing has been seen yet.
      const float shift = greatest == -INFINITY ? 0.0f : greatest;
      const float factor = top == -INFINITY ? 0.0f : exp(top - shift);
      float added = 0.0f;
      _Pragma("unroll 8") for (int j = 0; j < 32; ++j) {
        const float weight = exp(own[j * (DNNOPT_ROW_PITCH * 4)] - shift);
        own[j * (DNNOPT_ROW_PITCH * 4)] = weight;
        added += weight;
      }
      sum = sum * factor + added;
      top = greatest;
      ((__local float*)factors)[item] = factor;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    const float4 factor = factors[row];
    DNNOPT_UNROLLED(v, DNNOPT_VALUE_VECTORS) {
      result[0][v] *= factor.x;
      result[1][v] *= factor.y;
      result[2][v] *= factor.z;
      result[3][v] *= factor.w;
    }
    _Pragma("unroll 8") for (int j = 0; j < 32; ++j) {
      const float4 weight = scores[j * DNNOPT_ROW_PITCH + row];
      DNNOPT_UNROLLED(v, DNNOPT_VALUE_VECTORS) {
        const float4 x = block[j * DNNOPT_VALUE_PITCH + v * 8 + column];
        result[0][v] = fma((float4)(weight.x), x, result[0][v]);
        result[1][v] = fma((float4)(weight.y), x, result[1][v]);
        result[2][v] = fma((float4)(weight.z), x, result[2][v]);
        result[3][v] = fma((float4)(weight.w), x, result[3][v]);
      }
    }
  }
  if (item < DNNOPT_ROWS) {
    tops[team * DNNOPT_ROWS + item] = top;
    sums[team * DNNOPT_ROWS + item] = sum;
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  // A team's share of a row: its sums as seen from the greatest score of all teams.
  if (item < DNNOPT_ROWS) {
    float greatest = -INFINITY;
    DNNOPT_UNROLLED(t, DNNOPT_SPLITS) greatest = fmax(greatest, tops[t * DNNOPT_ROWS + item]);
    const float shift = greatest == -INFINITY ? 0.0f : greatest;
    float total = 0.0f;
    DNNOPT_UNROLLED(t, DNNOPT_SPLITS) total += sums[t * DNNOPT_ROWS + item] * exp(tops[t * DNNOPT_ROWS + item] - shift);
    ((__local float*)factors)[item] = total == 0.0f ? 0.0f : exp(top - shift) / total;
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  const float4 factor = factors[row];
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
      const float own[4] = {result[r][v].x, result[r][v].y, result[r][v].z, result[r][v].w};
      DNNOPT_UNROLLED(c, 4) {
        const int d = (v * 8 + column) * 4 + c;
        if (d < DNNOPT_VALUE_SIZE) dnnopt_store(DNNOPT_ARGUMENTS, z, i, d, own[c]);
      }
    }
  }
}
#ifdef __cplusplus
)CLC"
#endif
