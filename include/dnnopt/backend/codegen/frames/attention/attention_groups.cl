#ifdef __cplusplus
R"CLC(
#endif
// Attention in one launch on devices whose work-items run in step: a work-group computes one row of one head. Each
// work-item has a key of a block of DNNOPT_GROUP keys, then elements of the result. The softmax runs along (Milakov and
// Gimelshein, "Online normalizer calculation for softmax", 2018).
//
// Hooks: dnnopt_load_query(z, i, d), dnnopt_load_key(z, j, d), dnnopt_load_value(z, j, d), where z counts (batch, head);
// dnnopt_score(z, i, j, product), which scales and masks (-INFINITY hides); dnnopt_store(z, i, d, value).

#ifndef DNNOPT_PARAMETERS
// Stand-alone: heads one after the other, no mask.
#define DNNOPT_PARAMETERS __global const float* b0, __global const float* b1, __global const float* b2, __global float* b3, const int p0, const int p1
#define DNNOPT_KERNEL_PARAMETERS DNNOPT_PARAMETERS
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
// Work-items per row; a power of two.
#ifndef DNNOPT_GROUP
#define DNNOPT_GROUP 64
#endif

#define DNNOPT_OWN ((DNNOPT_VALUE_SIZE + DNNOPT_GROUP - 1) / DNNOPT_GROUP)

__kernel __attribute__((reqd_work_group_size(DNNOPT_GROUP, 1, 1))) void dnnopt_kernel(DNNOPT_KERNEL_PARAMETERS) {
  __local float query[DNNOPT_SIZE];
  __local float weights[DNNOPT_GROUP];
  __local float shared[DNNOPT_GROUP];
  const int z = (int)get_group_id(1);
  const int i = (int)get_group_id(0);
  const int item = (int)get_local_id(0);
  for (int d = item; d < DNNOPT_SIZE; d += DNNOPT_GROUP) query[d] = dnnopt_load_query(DNNOPT_ARGUMENTS, z, i, d);
  float result[DNNOPT_OWN];
  for (int o = 0; o < DNNOPT_OWN; ++o) result[o] = 0.0f;
  float top = -INFINITY;
  float sum = 0.0f;
  for (int begin = 0; begin < DNNOPT_KEY_COUNT; begin += DNNOPT_GROUP) {
    const int j = begin + item;
    // Also ends the readings of the block before.
    barrier(CLK_LOCAL_MEM_FENCE);
    float score = -INFINITY;
    if (j < DNNOPT_KEY_COUNT) {
      float product = 0.0f;
      for (int d = 0; d < DNNOPT_SIZE; ++d) product = fma(query[d], dnnopt_load_key(DNNOPT_ARGUMENTS, z, j, d), product);
      score = dnnopt_score(DNNOPT_ARGUMENTS, z, i, j, product);
    }
    shared[item] = score;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int half_group = DNNOPT_GROUP / 2; half_group > 0; half_group /= 2) {
      if (item < half_group) shared[item] = fmax(shared[item], shared[item + half_group]);
      barrier(CLK_LOCAL_MEM_FENCE);
    }
    const float greatest = fmax(top, shared[0]);
    const float weight = score == -INFINITY ? 0.0f : exp(score - greatest);
    const float factor = top == -INFINITY ? 0.0f : exp(top - greatest);
    top = greatest;
    barrier(CLK_LOCAL_MEM_FENCE);
    weights[item] = weight;
    shared[item] = weight;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int half_group = DNNOPT_GROUP / 2; half_group > 0; half_group /= 2) {
      if (item < half_group) shared[item] += shared[item + half_group];
      barrier(CLK_LOCAL_MEM_FENCE);
    }
    sum = sum * factor + shared[0];
    const int count = min(DNNOPT_GROUP, (int)(DNNOPT_KEY_COUNT)-begin);
    for (int o = 0; o < DNNOPT_OWN; ++o) {
      const int d = item + o * DNNOPT_GROUP;
      if (d < DNNOPT_VALUE_SIZE) {
        float own = result[o] * factor;
        for (int k = 0; k < count; ++k) own = fma(weights[k], dnnopt_load_value(DNNOPT_ARGUMENTS, z, begin + k, d), own);
        result[o] = own;
      }
    }
  }
  const float factor = sum == 0.0f ? 0.0f : 1.0f / sum;
  for (int o = 0; o < DNNOPT_OWN; ++o) {
    const int d = item + o * DNNOPT_GROUP;
    if (d < DNNOPT_VALUE_SIZE) dnnopt_store(DNNOPT_ARGUMENTS, z, i, d, result[o] * factor);
  }
}
#ifdef __cplusplus
)CLC"
#endif
