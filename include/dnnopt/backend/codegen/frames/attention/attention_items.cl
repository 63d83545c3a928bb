#ifdef __cplusplus
R"CLC(
#endif
// Attention in one launch on devices with wide vectors: one work-item computes DNNOPT_QUERIES rows of one head, reading
// keys and values in blocks of DNNOPT_KEYS. Both products keep a tile in registers: DNNOPT_ROWS rows by two vectors of
// scores, then half as many rows by four vectors of the result. The softmax runs along (Milakov and Gimelshein, "Online
// normalizer calculation for softmax", 2018): its greatest score and sum so far are kept, and the result is rescaled when a
// greater score comes.
//
// Hooks: dnnopt_load_query(z, i, d), dnnopt_load_key(z, j, d), dnnopt_load_value(z, j, d), where z counts (batch, head);
// dnnopt_score(z, i, j, product), which scales and masks (-INFINITY hides); dnnopt_store(z, i, d, value).

#ifndef DNNOPT_PARAMETERS
// Stand-alone: heads one after the other, no mask.
#define dnnopt_exp_float exp
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
// A multiple of DNNOPT_ROWS.
#ifndef DNNOPT_QUERIES
#define DNNOPT_QUERIES 24
#endif
// A multiple of 32.
#ifndef DNNOPT_KEYS
#define DNNOPT_KEYS 64
#endif
// Even.
#ifndef DNNOPT_ROWS
#define DNNOPT_ROWS 12
#endif

// Rows of values and of the result are padded to whole vectors.
#define DNNOPT_VALUE_PITCH ((DNNOPT_VALUE_SIZE + 15) / 16 * 16)
#define DNNOPT_HALF_ROWS (DNNOPT_ROWS / 2)
#define DNNOPT_UNROLLED(i, count) _Pragma("unroll") for (int i = 0; i < (count); ++i)

__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void dnnopt_kernel(DNNOPT_KERNEL_PARAMETERS) {
  const int z = (int)get_global_id(1);
  const int first = (int)get_global_id(0) * DNNOPT_QUERIES;
  const int queries = min(DNNOPT_QUERIES, (int)(DNNOPT_QUERY_COUNT)-first);
  __local float query[DNNOPT_QUERIES * DNNOPT_SIZE];
  __local float keys[DNNOPT_SIZE * DNNOPT_KEYS];
  __local float values[DNNOPT_KEYS * DNNOPT_VALUE_PITCH];
  __local float scores[DNNOPT_QUERIES * DNNOPT_KEYS];
  __local float result[DNNOPT_QUERIES * DNNOPT_VALUE_PITCH];
  float top[DNNOPT_QUERIES];
  float sum[DNNOPT_QUERIES];
  for (int i = 0; i < DNNOPT_QUERIES; ++i) {
    top[i] = -INFINITY;
    sum[i] = 0.0f;
  }
  for (int i = 0; i < queries; ++i)
    for (int d = 0; d < DNNOPT_SIZE; ++d) query[i * DNNOPT_SIZE + d] = dnnopt_load_query(DNNOPT_ARGUMENTS, z, first + i, d);
  for (int i = queries * DNNOPT_SIZE; i < DNNOPT_QUERIES * DNNOPT_SIZE; ++i) query[i] = 0.0f;
  for (int i = 0; i < DNNOPT_QUERIES * DNNOPT_VALUE_PITCH; ++i) result[i] = 0.0f;
  for (int begin = 0; begin < DNNOPT_KEY_COUNT; begin += DNNOPT_KEYS) {
    const int count = min(DNNOPT_KEYS, (int)(DNNOPT_KEY_COUNT)-begin);
    for (int j = 0; j < count; ++j) {
      for (int d = 0; d < DNNOPT_SIZE; ++d) keys[d * DNNOPT_KEYS + j] = dnnopt_load_key(DNNOPT_ARGUMENTS, z, begin + j, d);
      for (int d = 0; d < DNNOPT_VALUE_SIZE; ++d) values[j * DNNOPT_VALUE_PITCH + d] = dnnopt_load_value(DNNOPT_ARGUMENTS, z, begin + j, d);
      for (int d = DNNOPT_VALUE_SIZE; d < DNNOPT_VALUE_PITCH; ++d) values[j * DNNOPT_VALUE_PITCH + d] = 0.0f;
    }
    if (count < DNNOPT_KEYS) {
      for (int d = 0; d < DNNOPT_SIZE; ++d)
        for (int j = count; j < DNNOPT_KEYS; ++j) keys[d * DNNOPT_KEYS + j] = 0.0f;
    }
    for (int i = 0; i < queries; i += DNNOPT_ROWS)
      for (int j = 0; j < count; j += 32) {
        __local const float* a = query + i * DNNOPT_SIZE;
        __local const float* b = keys + j;
        float16 tile[DNNOPT_ROWS][2];
        DNNOPT_UNROLLED(r, DNNOPT_ROWS) {
          tile[r][0] = (float16)(0.0f);
          tile[r][1] = (float16)(0.0f);
        }
        for (int d = 0; d < DNNOPT_SIZE; ++d) {
          const float16 b0_ = vload16(0, b);
          const float16 b1_ = vload16(1, b);
          DNNOPT_UNROLLED(r, DNNOPT_ROWS) {
            const float16 own = (float16)(a[r * DNNOPT_SIZE]);
            tile[r][0] = fma(own, b0_, tile[r][0]);
            tile[r][1] = fma(own, b1_, tile[r][1]);
          }
          ++a;
          b += DNNOPT_KEYS;
        }
        __local float* to = scores + i * DNNOPT_KEYS + j;
        DNNOPT_UNROLLED(r, DNNOPT_ROWS) {
          vstore16(tile[r][0], 0, to + r * DNNOPT_KEYS);
          vstore16(tile[r][1], 1, to + r * DNNOPT_KEYS);
        }
      }
    for (int i = 0; i < queries; ++i) {
      __local float* row = scores + i * DNNOPT_KEYS;
      if (count == DNNOPT_KEYS) {
        for (int j = 0; j < DNNOPT_KEYS; ++j) row[j] = dnnopt_score(DNNOPT_ARGUMENTS, z, first + i, begin + j, row[j]);
      } else {
        for (int j = 0; j < count; ++j) row[j] = dnnopt_score(DNNOPT_ARGUMENTS, z, first + i, begin + j, row[j]);
        for (int j = count; j < DNNOPT_KEYS; ++j) row[j] = -INFINITY;
      }
      float16 most = vload16(0, row);
      for (int v = 1; v < DNNOPT_KEYS / 16; ++v) {
        const float16 x = vload16(v, row);
        most = select(most, x, x > most);
      }
      const float8 most8 = select(most.lo, most.hi, most.hi > most.lo);
      const float4 most4 = select(most8.lo, most8.hi, most8.hi > most8.lo);
      const float greatest = fmax(fmax(fmax(most4.x, most4.y), fmax(most4.z, most4.w)), top[i]);
      if (greatest == -INFINITY) {
        // Nothing of the row has been seen yet.
        for (int j = 0; j < DNNOPT_KEYS; ++j) row[j] = 0.0f;
        continue;
      }
      for (int j = 0; j < DNNOPT_KEYS; ++j) row[j] = dnnopt_exp_float(row[j] - greatest);
      float16 added = vload16(0, row);
      for (int v = 1; v < DNNOPT_KEYS / 16; ++v) added += vload16(v, row);
      const float8 added8 = added.lo + added.hi;
      const float4 added4 = added8.lo + added8.hi;
      const float factor = top[i] == -INFINITY ? 0.0f : exp(top[i] - greatest);
      if (begin > 0 && factor != 1.0f)
        for (int d = 0; d < DNNOPT_VALUE_PITCH; ++d) result[i * DNNOPT_VALUE_PITCH + d] *= factor;
      top[i] = greatest;
      sum[i] = sum[i] * factor + ((added4.x + added4.y) + (added4.z + added4.w));
    }
    // Four vectors at a time, as far as a row has them, then single ones.
    for (int i = 0; i < queries; i += DNNOPT_HALF_ROWS) {
      int d = 0;
      for (; d + 64 <= DNNOPT_VALUE_PITCH; d += 64) {
        __local const float* weight = scores + i * DNNOPT_KEYS;
        __local const float* from = values + d;
        float16 tile[DNNOPT_HALF_ROWS][4];
        DNNOPT_UNROLLED(r, DNNOPT_HALF_ROWS) DNNOPT_UNROLLED(v, 4) tile[r][v] = vload16(v, result + (i + r) * DNNOPT_VALUE_PITCH + d);
        for (int j = 0; j < count; ++j) {
          float16 x[4];
          DNNOPT_UNROLLED(v, 4) x[v] = vload16(v, from);
          DNNOPT_UNROLLED(r, DNNOPT_HALF_ROWS) {
            const float16 own = (float16)(weight[r * DNNOPT_KEYS]);
            DNNOPT_UNROLLED(v, 4) tile[r][v] = fma(own, x[v], tile[r][v]);
          }
          ++weight;
          from += DNNOPT_VALUE_PITCH;
        }
        DNNOPT_UNROLLED(r, DNNOPT_HALF_ROWS) DNNOPT_UNROLLED(v, 4) vstore16(tile[r][v], v, result + (i + r) * DNNOPT_VALUE_PITCH + d);
      }
      for (; d + 32 <= DNNOPT_VALUE_PITCH; d += 32) {
        __local const float* weight = scores + i * DNNOPT_KEYS;
        __local const float* from = values + d;
        float16 tile[DNNOPT_HALF_ROWS][2];
        DNNOPT_UNROLLED(r, DNNOPT_HALF_ROWS) DNNOPT_UNROLLED(v, 2) tile[r][v] = vload16(v, result + (i + r) * DNNOPT_VALUE_PITCH + d);
        for (int j = 0; j < count; ++j) {
          float16 x[2];
          DNNOPT_UNROLLED(v, 2) x[v] = vload16(v, from);
          DNNOPT_UNROLLED(r, DNNOPT_HALF_ROWS) {
            const float16 own = (float16)(weight[r * DNNOPT_KEYS]);
            DNNOPT_UNROLLED(v, 2) tile[r][v] = fma(own, x[v], tile[r][v]);
          }
          ++weight;
          from += DNNOPT_VALUE_PITCH;
        }
        DNNOPT_UNROLLED(r, DNNOPT_HALF_ROWS) DNNOPT_UNROLLED(v, 2) vstore16(tile[r][v], v, result + (i + r) * DNNOPT_VALUE_PITCH + d);
      }
      for (; d < DNNOPT_VALUE_PITCH; d += 16) {
        __local const float* weight = scores + i * DNNOPT_KEYS;
        __local const float* from = values + d;
        float16 tile[DNNOPT_HALF_ROWS];
        DNNOPT_UNROLLED(r, DNNOPT_HALF_ROWS) tile[r] = vload16(0, result + (i + r) * DNNOPT_VALUE_PITCH + d);
        for (int j = 0; j < count; ++j) {
          const float16 x = vload16(0, from);
          DNNOPT_UNROLLED(r, DNNOPT_HALF_ROWS) tile[r] = fma((float16)(weight[r * DNNOPT_KEYS]), x, tile[r]);
          ++weight;
          from += DNNOPT_VALUE_PITCH;
        }
        DNNOPT_UNROLLED(r, DNNOPT_HALF_ROWS) vstore16(tile[r], 0, result + (i + r) * DNNOPT_VALUE_PITCH + d);
      }
    }
  }
  for (int i = 0; i < queries; ++i) {
    const float factor = sum[i] == 0.0f ? 0.0f : 1.0f / sum[i];
    for (int d = 0; d < DNNOPT_VALUE_SIZE; ++d) dnnopt_store(DNNOPT_ARGUMENTS, z, first + i, d, result[i * DNNOPT_VALUE_PITCH + d] * factor);
  }
}
#ifdef __cplusplus
)CLC"
#endif
