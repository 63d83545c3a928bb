#ifdef __cplusplus
R"CLC(
#endif
// Softmax, normalizations and reductions on devices with wide vectors: one work-item computes whole rows, reading each
// in blocks into private memory. A row that fits in one block is read once.
//
// Hooks: dnnopt_load(row, column), dnnopt_store(row, column, value), and for reductions dnnopt_store(row, value).
// DNNOPT_FAMILY: 0 softmax, 1 logarithm of softmax, 2 normalization by mean and deviation, 3 by root mean square, 4 by a
// p-norm, 5 reduction.

#ifndef DNNOPT_FAMILY
#define DNNOPT_FAMILY 0
#endif
#ifndef DNNOPT_PARAMETERS
// Stand-alone: rows of a matrix.
#define DNNOPT_PARAMETERS __global const float* b0, __global float* b1, const int p0, const int p1
#define DNNOPT_KERNEL_PARAMETERS DNNOPT_PARAMETERS
#define DNNOPT_ARGUMENTS b0, b1, p0, p1
#define DNNOPT_ROWS p0
#define DNNOPT_LENGTH p1
static inline float dnnopt_load(DNNOPT_PARAMETERS, const int row, const int column) { return b0[row * p1 + column]; }
#if DNNOPT_FAMILY == 5
static inline void dnnopt_store(DNNOPT_PARAMETERS, const int row, float value) { b1[row] = value; }
#else
static inline void dnnopt_store(DNNOPT_PARAMETERS, const int row, const int column, float value) { b1[row * p1 + column] = value; }
#endif
#endif
#ifndef DNNOPT_ROWS_PER_ITEM
#define DNNOPT_ROWS_PER_ITEM 1
#endif
// Elements read at a time; a multiple of 16.
#ifndef DNNOPT_BLOCK
#define DNNOPT_BLOCK 1024
#endif
// What a step of softmax (difference, exponential, sum) is rounded to. Rounding is for one element at a time.
#ifndef DNNOPT_STEP
#define DNNOPT_STEP(x) (x)
#define DNNOPT_STEP16(x) (x)
#else
static inline float16 dnnopt_step16(float16 value) {
  float each[16];
  vstore16(value, 0, each);
  for (int l = 0; l < 16; ++l) each[l] = DNNOPT_STEP(each[l]);
  return vload16(0, each);
}
#define DNNOPT_STEP16(x) dnnopt_step16(x)
#endif
#ifndef DNNOPT_EPSILON
#define DNNOPT_EPSILON 1e-5f
#endif
// What a p-norm of DNNOPT_POWER sums and makes of the sum.
#ifndef DNNOPT_NORM_TERM
#define DNNOPT_NORM_TERM(x) ((x) * (x))
#define DNNOPT_NORM_ROOT(x) sqrt(x)
#endif
// A reduction: how it starts, takes an element, combines two partial results, and ends.
#ifndef DNNOPT_FIRST
#define DNNOPT_FIRST 0.0f
#define DNNOPT_TAKE(a, x) ((a) + (x))
#define DNNOPT_COMBINE(a, x) ((a) + (x))
#define DNNOPT_FINISH(a) (a)
#endif
// Where a normalization also stores its statistics.
#ifndef DNNOPT_STORE_MEAN
#define DNNOPT_STORE_MEAN(row, mean)
#endif
#ifndef DNNOPT_STORE_INVERSE
#define DNNOPT_STORE_INVERSE(row, inverse)
#endif

#define DNNOPT_LANES 16

// Sixteen partial results, one per lane, so that the sum vectorizes without reordering.
#define DNNOPT_OVER_ROW(FIRST, TAKE, COMBINE, RESULT)                                                                     \
  {                                                                                                                       \
    float lanes[DNNOPT_LANES];                                                                                            \
    for (int l = 0; l < DNNOPT_LANES; ++l) lanes[l] = FIRST;                                                              \
    for (int begin = 0; begin < length; begin += DNNOPT_BLOCK) {                                                          \
      const int count = min(DNNOPT_BLOCK, length - begin);                                                                \
      if (length > DNNOPT_BLOCK || !loaded) {                                                                             \
        for (int j = 0; j < count; ++j) block[j] = dnnopt_load(DNNOPT_ARGUMENTS, row, begin + j);                         \
        loaded = 1;                                                                                                       \
      }                                                                                                                   \
      const int whole = count / DNNOPT_LANES * DNNOPT_LANES;                                                              \
      for (int j = 0; j < whole; j += DNNOPT_LANES)                                                                       \
        for (int l = 0; l < DNNOPT_LANES; ++l) lanes[l] = TAKE(lanes[l], block[j + l]);                                   \
      for (int j = whole; j < count; ++j) lanes[j - whole] = TAKE(lanes[j - whole], block[j]);                            \
    }                                                                                                                     \
    RESULT = lanes[0];                                                                                                    \
    for (int l = 1; l < DNNOPT_LANES; ++l) RESULT = COMBINE(RESULT, lanes[l]);                                            \
  }

#define DNNOPT_LARGER(a, x) ((x) > (a) ? (x) : (a))
#define DNNOPT_PLUS(a, x) ((a) + (x))
#define DNNOPT_PLUS_SQUARE(a, x) fma(x, x, a)
#define DNNOPT_PLUS_DEVIATION(a, x) ((a) + ((x) - mean) * ((x) - mean))
#define DNNOPT_PLUS_NORM_TERM(a, x) ((a) + DNNOPT_NORM_TERM(x))

__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void dnnopt_kernel(DNNOPT_KERNEL_PARAMETERS) {
  const int row_begin = (int)get_global_id(0) * DNNOPT_ROWS_PER_ITEM;
  const int row_end = min(row_begin + DNNOPT_ROWS_PER_ITEM, (int)(DNNOPT_ROWS));
  const int length = DNNOPT_LENGTH;
  float block[DNNOPT_BLOCK];
  for (int row = row_begin; row < row_end; ++row) {
    int loaded = 0;
#if DNNOPT_FAMILY == 5
    float sum;
    DNNOPT_OVER_ROW(DNNOPT_FIRST, DNNOPT_TAKE, DNNOPT_COMBINE, sum)
    dnnopt_store(DNNOPT_ARGUMENTS, row, DNNOPT_FINISH(sum));
#elif DNNOPT_FAMILY == 0 || DNNOPT_FAMILY == 1
    float top;
    DNNOPT_OVER_ROW(-INFINITY, DNNOPT_LARGER, DNNOPT_LARGER, top)
    float16 sums = (float16)(0.0f);
    float rest = 0.0f;
    for (int begin = 0; begin < length; begin += DNNOPT_BLOCK) {
      const int count = min(DNNOPT_BLOCK, length - begin);
      if (length > DNNOPT_BLOCK)
        for (int j = 0; j < count; ++j) block[j] = dnnopt_load(DNNOPT_ARGUMENTS, row, begin + j);
      const int whole = count / DNNOPT_LANES * DNNOPT_LANES;
      for (int j = 0; j < whole; j += DNNOPT_LANES) {
#if DNNOPT_FAMILY == 0
        const float16 e = DNNOPT_STEP16(exp(DNNOPT_STEP16(vload16(0, block + j) - top)));
        vstore16(e, 0, block + j);
        sums += e;
#else
        sums += exp(vload16(0, block + j) - top);
#endif
      }
      for (int j = whole; j < count; ++j) {
        const float e = DNNOPT_STEP(exp(DNNOPT_STEP(block[j] - top)));
#if DNNOPT_FAMILY == 0
        block[j] = e;
#endif
        rest += e;
      }
    }
    const float8 s8 = sums.lo + sums.hi;
    const float4 s4 = s8.lo + s8.hi;
    const float sum = rest + ((s4.x + s4.y) + (s4.z + s4.w));
#if DNNOPT_FAMILY == 0
    const float factor = 1.0f / DNNOPT_STEP(sum);
#else
    // Small beside a large element: a sum with it would lose digits.
    const float shift = log(sum);
#endif
    for (int begin = 0; begin < length; begin += DNNOPT_BLOCK) {
      const int count = min(DNNOPT_BLOCK, length - begin);
#if DNNOPT_FAMILY == 0
      if (length > DNNOPT_BLOCK)
        for (int j = 0; j < count; ++j) block[j] = DNNOPT_STEP(exp(DNNOPT_STEP(dnnopt_load(DNNOPT_ARGUMENTS, row, begin + j) - top)));
      for (int j = 0; j < count; ++j) dnnopt_store(DNNOPT_ARGUMENTS, row, begin + j, block[j] * factor);
#else
      if (length > DNNOPT_BLOCK)
        for (int j = 0; j < count; ++j) block[j] = dnnopt_load(DNNOPT_ARGUMENTS, row, begin + j);
      for (int j = 0; j < count; ++j) dnnopt_store(DNNOPT_ARGUMENTS, row, begin + j, block[j] - top - shift);
#endif
    }
#else
#if DNNOPT_FAMILY == 2
    float mean;
    DNNOPT_OVER_ROW(0.0f, DNNOPT_PLUS, DNNOPT_PLUS, mean)
    mean /= (float)length;
    float factor;
    DNNOPT_OVER_ROW(0.0f, DNNOPT_PLUS_DEVIATION, DNNOPT_PLUS, factor)
    factor = 1.0f / sqrt(factor / (float)length + DNNOPT_EPSILON);
    DNNOPT_STORE_MEAN(row, mean);
    DNNOPT_STORE_INVERSE(row, factor);
#elif DNNOPT_FAMILY == 3
    const float mean = 0.0f;
    float factor;
    DNNOPT_OVER_ROW(0.0f, DNNOPT_PLUS_SQUARE, DNNOPT_PLUS, factor)
    factor = 1.0f / sqrt(factor / (float)length + DNNOPT_EPSILON);
#else
    const float mean = 0.0f;
    float factor;
    DNNOPT_OVER_ROW(0.0f, DNNOPT_PLUS_NORM_TERM, DNNOPT_PLUS, factor)
    factor = factor == 0.0f ? 0.0f : 1.0f / DNNOPT_NORM_ROOT(factor);
#endif
    for (int begin = 0; begin < length; begin += DNNOPT_BLOCK) {
      const int count = min(DNNOPT_BLOCK, length - begin);
      if (length > DNNOPT_BLOCK)
        for (int j = 0; j < count; ++j) block[j] = dnnopt_load(DNNOPT_ARGUMENTS, row, begin + j);
      for (int j = 0; j < count; ++j) dnnopt_store(DNNOPT_ARGUMENTS, row, begin + j, (block[j] - mean) * factor);
    }
#endif
  }
}
#ifdef __cplusplus
)CLC"
#endif
