#ifdef __cplusplus
R"CLC(
#endif
// Attention in one launch on devices with wide vectors: one work-item computes DNNOPT_QUERIES rows of one head, reading
// keys and values in blocks of DNNOPT_KEYS. The softmax runs along (Milakov and Gimelshein, "Online normalizer calculation
// for softmax", 2018): its greatest score and sum so far are kept, and the result is rescaled when a greater score comes.
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
#ifndef DNNOPT_QUERIES
#define DNNOPT_QUERIES 8
#endif
// A multiple of 16.
#ifndef DNNOPT_KEYS
#define DNNOPT_KEYS 32
#endif

__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void dnnopt_kernel(DNNOPT_PARAMETERS) {
  const int z = (int)get_global_id(1);
  const int first = (int)get_global_id(0) * DNNOPT_QUERIES;
  const int queries = min(DNNOPT_QUERIES, (int)(DNNOPT_QUERY_COUNT)-first);
  __local float query[DNNOPT_QUERIES * DNNOPT_SIZE];
  __local float keys[DNNOPT_SIZE * DNNOPT_KEYS];
  __local float values[DNNOPT_KEYS * DNNOPT_VALUE_SIZE];
  __local float result[DNNOPT_QUERIES * DNNOPT_VALUE_SIZE];
  float score[DNNOPT_KEYS];
  float top[DNNOPT_QUERIES];
  float sum[DNNOPT_QUERIES];
  for (int i = 0; i < DNNOPT_QUERIES; ++i) {
    top[i] = -INFINITY;
    sum[i] = 0.0f;
    for (int d = 0; d < DNNOPT_VALUE_SIZE; ++d) result[i * DNNOPT_VALUE_SIZE + d] = 0.0f;
  }
  for (int i = 0; i < queries; ++i)
    for (int d = 0; d < DNNOPT_SIZE; ++d) query[i * DNNOPT_SIZE + d] = dnnopt_load_query(DNNOPT_ARGUMENTS, z, first + i, d);
  for (int begin = 0; begin < DNNOPT_KEY_COUNT; begin += DNNOPT_KEYS) {
    const int count = min(DNNOPT_KEYS, (int)(DNNOPT_KEY_COUNT)-begin);
    for (int j = 0; j < count; ++j) {
      for (int d = 0; d < DNNOPT_SIZE; ++d) keys[d * DNNOPT_KEYS + j] = dnnopt_load_key(DNNOPT_ARGUMENTS, z, begin + j, d);
      for (int d = 0; d < DNNOPT_VALUE_SIZE; ++d) values[j * DNNOPT_VALUE_SIZE + d] = dnnopt_load_value(DNNOPT_ARGUMENTS, z, begin + j, d);
    }
    for (int j = count; j < DNNOPT_KEYS; ++j)
      for (int d = 0; d < DNNOPT_SIZE; ++d) keys[d * DNNOPT_KEYS + j] = 0.0f;
    for (int i = 0; i < queries; ++i) {
      float16 products[DNNOPT_KEYS / 16];
      for (int v = 0; v < DNNOPT_KEYS / 16; ++v) products[v] = (float16)(0.0f);
      for (int d = 0; d < DNNOPT_SIZE; ++d)
        for (int v = 0; v < DNNOPT_KEYS / 16; ++v) products[v] = fma((float16)(query[i * DNNOPT_SIZE + d]), vload16(v, keys + d * DNNOPT_KEYS), products[v]);
      for (int v = 0; v < DNNOPT_KEYS / 16; ++v) vstore16(products[v], v, score);
      float greatest = top[i];
      for (int j = 0; j < count; ++j) {
        score[j] = dnnopt_score(DNNOPT_ARGUMENTS, z, first + i, begin + j, score[j]);
        greatest = fmax(greatest, score[j]);
      }
      // Nothing of the row has been seen yet.
      if (greatest == -INFINITY) continue;
      for (int j = count; j < DNNOPT_KEYS; ++j) score[j] = -INFINITY;
      for (int v = 0; v < DNNOPT_KEYS / 16; ++v) vstore16(exp(vload16(v, score) - greatest), v, score);
      const float factor = top[i] == -INFINITY ? 0.0f : exp(top[i] - greatest);
      top[i] = greatest;
      float added = 0.0f;
      for (int j = 0; j < count; ++j) added += score[j];
      sum[i] = sum[i] * factor + added;
      __local float* row = result + i * DNNOPT_VALUE_SIZE;
      for (int d = 0; d < DNNOPT_VALUE_SIZE; ++d) row[d] *= factor;
      for (int j = 0; j < count; ++j) {
        const float weight = score[j];
        for (int d = 0; d < DNNOPT_VALUE_SIZE; ++d) row[d] = fma(weight, values[j * DNNOPT_VALUE_SIZE + d], row[d]);
      }
    }
  }
  for (int i = 0; i < queries; ++i) {
    const float factor = sum[i] == 0.0f ? 0.0f : 1.0f / sum[i];
    for (int d = 0; d < DNNOPT_VALUE_SIZE; ++d) dnnopt_store(DNNOPT_ARGUMENTS, z, first + i, d, result[i * DNNOPT_VALUE_SIZE + d] * factor);
  }
}
#ifdef __cplusplus
)CLC"
#endif
