#ifdef __cplusplus
R"CLC(
#endif
// Attention in one launch on devices whose work-items run in step and share local memory: 64 work-items compute 32 rows of
// one head, reading keys and values in blocks of 32. Each has four rows by four columns of the scores, then four rows by
// vectors of the result. The softmax runs along (Milakov and Gimelshein, "Online normalizer calculation for softmax", 2018);
// one work-item per row keeps its greatest score and its sum.
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
static inline float dnnopt_load_query(DNNOPT_PARAMETERS, const int z, const int i, const int d) { return b0[(z * p0 + i) * 64 + d]; }
static inline float dnnopt_load_key(DNNOPT_PARAMETERS, const int z, const int j, const int d) { return b1[(z * p1 + j) * 64 + d]; }
static inline float dnnopt_load_value(DNNOPT_PARAMETERS, const int z, const int j, const int d) { return b2[(z * p1 + j) * 64 + d]; }
static inline float dnnopt_score(DNNOPT_PARAMETERS, const int z, const int i, const int j, float value) { return value * 0.125f; }
static inline void dnnopt_store(DNNOPT_PARAMETERS, const int z, const int i, const int d, float value) { b3[(z * p0 + i) * 64 + d] = value; }
#endif
#define DNNOPT_UNROLLED(i, count) _Pragma("unroll") for (int i = 0; i < (count); ++i)
// Vectors of 4 from one row to the next; one more keeps neighbouring rows in different banks.
#define DNNOPT_PITCH 9
#define DNNOPT_VALUE_VECTORS ((DNNOPT_VALUE_SIZE + 31) / 32)
#define DNNOPT_VALUE_PITCH (DNNOPT_VALUE_VECTORS * 8 + 1)
#define DNNOPT_BLOCK (DNNOPT_SIZE * DNNOPT_PITCH > 32 * DNNOPT_VALUE_PITCH ? DNNOPT_SIZE * DNNOPT_PITCH : 32 * DNNOPT_VALUE_PITCH)

__kernel __attribute__((reqd_work_group_size(64, 1, 1))) void dnnopt_kernel(DNNOPT_PARAMETERS) {
  __local float4 query[DNNOPT_SIZE * DNNOPT_PITCH];
  // Keys, then values of a block.
  __local float4 block[DNNOPT_BLOCK];
  __local float4 scores[32 * DNNOPT_PITCH];
  __local float4 factors[8];
  const int z = (int)get_group_id(1);
  const int first = (int)get_group_id(0) * 32;
  const int item = (int)get_local_id(0);
  const int row = item / 8;
  const int column = item % 8;
  for (int e = item; e < 32 * DNNOPT_SIZE; e += 64) {
    const int d = e % DNNOPT_SIZE;
    const int i = e / DNNOPT_SIZE;
    ((__local float*)query)[d * (DNNOPT_PITCH * 4) + i] = first + i < DNNOPT_QUERY_COUNT ? dnnopt_load_query(DNNOPT_ARGUMENTS, z, first + i, d) : 0.0f;
  }
  float4 result[4][DNNOPT_VALUE_VECTORS];
  DNNOPT_UNROLLED(r, 4) DNNOPT_UNROLLED(v, DNNOPT_VALUE_VECTORS) result[r][v] = (float4)(0.0f);
  float top = -INFINITY;
  float sum = 0.0f;
  for (int begin = 0; begin < DNNOPT_KEY_COUNT; begin += 32) {
    // Also ends the readings of the values before.
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int e = item; e < 32 * DNNOPT_SIZE; e += 64) {
      const int d = e % DNNOPT_SIZE;
      const int j = e / DNNOPT_SIZE;
      ((__local float*)block)[d * (DNNOPT_PITCH * 4) + j] = begin + j < DNNOPT_KEY_COUNT ? dnnopt_load_key(DNNOPT_ARGUMENTS, z, begin + j, d) : 0.0f;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    float4 products[4];
    DNNOPT_UNROLLED(r, 4) products[r] = (float4)(0.0f);
    _Pragma("unroll 8") for (int d = 0; d < DNNOPT_SIZE; ++d) {
      const float4 a = query[d * DNNOPT_PITCH + row];
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
        ((__local float*)scores)[(column * 4 + c) * (DNNOPT_PITCH * 4) + row * 4 + r] = score;
      }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int e = item; e < 32 * DNNOPT_VALUE_VECTORS * 32; e += 64) {
      const int d = e % (DNNOPT_VALUE_VECTORS * 32);
      const int j = e / (DNNOPT_VALUE_VECTORS * 32);
      ((__local float*)block)[j * (DNNOPT_VALUE_PITCH * 4) + d] = begin + j < DNNOPT_KEY_COUNT && d < DNNOPT_VALUE_SIZE ? dnnopt_load_value(DNNOPT_ARGUMENTS, z, begin + j, d) : 0.0f;
    }
    if (item < 32) {
      __local float* own = (__local float*)scores + item;
      float greatest = top;
      for (int j = 0; j < 32; ++j) greatest = fmax(greatest, own[j * (DNNOPT_PITCH * 4)]);
      // A row of which nothing has been seen yet.
      const float shift = greatest == -INFINITY ? 0.0f : greatest;
      const float factor = top == -INFINITY ? 0.0f : exp(top - shift);
      float added = 0.0f;
      for (int j = 0; j < 32; ++j) {
        const float weight = exp(own[j * (DNNOPT_PITCH * 4)] - shift);
        own[j * (DNNOPT_PITCH * 4)] = weight;
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
      const float4 weight = scores[j * DNNOPT_PITCH + row];
      DNNOPT_UNROLLED(v, DNNOPT_VALUE_VECTORS) {
        const float4 x = block[j * DNNOPT_VALUE_PITCH + v * 8 + column];
        result[0][v] = fma((float4)(weight.x), x, result[0][v]);
        result[1][v] = fma((float4)(weight.y), x, result[1][v]);
        result[2][v] = fma((float4)(weight.z), x, result[2][v]);
        result[3][v] = fma((float4)(weight.w), x, result[3][v]);
      }
    }
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  if (item < 32) ((__local float*)factors)[item] = sum == 0.0f ? 0.0f : 1.0f / sum;
  barrier(CLK_LOCAL_MEM_FENCE);
  DNNOPT_UNROLLED(r, 4) {
    const int i = first + row * 4 + r;
    if (i < DNNOPT_QUERY_COUNT) {
      const float factor = ((__local float*)factors)[row * 4 + r];
      DNNOPT_UNROLLED(v, DNNOPT_VALUE_VECTORS) {
        const float own[4] = {result[r][v].x, result[r][v].y, result[r][v].z, result[r][v].w};
        DNNOPT_UNROLLED(c, 4) {
          const int d = (v * 8 + column) * 4 + c;
          if (d < DNNOPT_VALUE_SIZE) dnnopt_store(DNNOPT_ARGUMENTS, z, i, d, own[c] * factor);
        }
      }
    }
  }
}
#ifdef __cplusplus
)CLC"
#endif
