#ifdef __cplusplus
R"CLC(
#endif
// Softmax, normalizations and reductions on devices whose work-items run in step: a work-group computes one row, its
// work-items elements DNNOPT_GROUP apart, and partial results meet in local memory.
//
// Hooks: dnnopt_load(row, column), dnnopt_store(row, column, value), and for reductions dnnopt_store(row, value).
// DNNOPT_FAMILY: 0 softmax, 1 logarithm of softmax, 2 normalization by mean and deviation, 3 by root mean square, 4 by a
// p-norm, 5 reduction.

#ifndef DNNOPT_FAMILY
#define DNNOPT_FAMILY 0
#endif
#ifndef DNNOPT_PARAMETERS
// Stand-alone: rows of a matrix.
#define DNNOPT_PARAMETERS __global const float* restrict b0, __global float* restrict b1, const int p0, const int p1
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
// Work-items per row; a power of two.
#ifndef DNNOPT_GROUP
#define DNNOPT_GROUP 64
#endif
#ifndef DNNOPT_EPSILON
#define DNNOPT_EPSILON 1e-5f
#endif
#ifndef DNNOPT_NORM_TERM
#define DNNOPT_NORM_TERM(x) ((x) * (x))
#define DNNOPT_NORM_ROOT(x) sqrt(x)
#endif
#ifndef DNNOPT_FIRST
#define DNNOPT_FIRST 0.0f
#define DNNOPT_TAKE(a, x) ((a) + (x))
#define DNNOPT_COMBINE(a, x) ((a) + (x))
#define DNNOPT_FINISH(a) (a)
#endif
#ifndef DNNOPT_STORE_MEAN
#define DNNOPT_STORE_MEAN(row, mean)
#endif
#ifndef DNNOPT_STORE_INVERSE
#define DNNOPT_STORE_INVERSE(row, inverse)
#endif

// Every work-item ends with the result; the barrier at the start lets the last reading of `shared` finish.
#define DNNOPT_OVER_ROW(FIRST, TAKE, COMBINE, RESULT)                                                                     \
  {                                                                                                                       \
    float own = FIRST;                                                                                                    \
    for (int j = item; j < length; j += DNNOPT_GROUP) own = TAKE(own, dnnopt_load(DNNOPT_ARGUMENTS, row, j));             \
    barrier(CLK_LOCAL_MEM_FENCE);                                                                                         \
    shared[item] = own;                                                                                                   \
    barrier(CLK_LOCAL_MEM_FENCE);                                                                                         \
    for (int half_group = DNNOPT_GROUP / 2; half_group > 0; half_group /= 2) {                                            \
      if (item < half_group) shared[item] = COMBINE(shared[item], shared[item + half_group]);                             \
      barrier(CLK_LOCAL_MEM_FENCE);                                                                                       \
    }                                                                                                                     \
    RESULT = shared[0];                                                                                                   \
  }

#define DNNOPT_LARGER(a, x) fmax(a, x)
#define DNNOPT_PLUS(a, x) ((a) + (x))
#define DNNOPT_PLUS_EXPONENTIAL(a, x) ((a) + exp((x) - top))
#define DNNOPT_PLUS_NORM_TERM(a, x) dnnopt_plus_norm_term(a, x)

static inline float dnnopt_plus_norm_term(float a, float x) { return a + DNNOPT_NORM_TERM(x); }
static inline float dnnopt_plus_square(float a, float x) { return fma(x, x, a); }
static inline float dnnopt_take(float a, float x) { return DNNOPT_TAKE(a, x); }
static inline float dnnopt_combine(float a, float x) { return DNNOPT_COMBINE(a, x); }

__kernel __attribute__((reqd_work_group_size(DNNOPT_GROUP, 1, 1))) void dnnopt_kernel(DNNOPT_PARAMETERS) {
  __local float shared[DNNOPT_GROUP];
  const int row = (int)get_group_id(0);
  const int item = (int)get_local_id(0);
  const int length = DNNOPT_LENGTH;
#if DNNOPT_FAMILY == 5
  float sum;
  DNNOPT_OVER_ROW(DNNOPT_FIRST, dnnopt_take, dnnopt_combine, sum)
  if (item == 0) dnnopt_store(DNNOPT_ARGUMENTS, row, DNNOPT_FINISH(sum));
#elif DNNOPT_FAMILY == 0 || DNNOPT_FAMILY == 1
  float top;
  DNNOPT_OVER_ROW(-INFINITY, DNNOPT_LARGER, DNNOPT_LARGER, top)
  float sum;
  DNNOPT_OVER_ROW(0.0f, DNNOPT_PLUS_EXPONENTIAL, DNNOPT_PLUS, sum)
#if DNNOPT_FAMILY == 0
  const float factor = 1.0f / sum;
  for (int j = item; j < length; j += DNNOPT_GROUP)
    dnnopt_store(DNNOPT_ARGUMENTS, row, j, exp(dnnopt_load(DNNOPT_ARGUMENTS, row, j) - top) * factor);
#else
  const float shift = top + log(sum);
  for (int j = item; j < length; j += DNNOPT_GROUP)
    dnnopt_store(DNNOPT_ARGUMENTS, row, j, dnnopt_load(DNNOPT_ARGUMENTS, row, j) - shift);
#endif
#else
#if DNNOPT_FAMILY == 2
  float mean;
  DNNOPT_OVER_ROW(0.0f, DNNOPT_PLUS, DNNOPT_PLUS, mean)
  mean /= (float)length;
  float factor = 0.0f;
  {
    float own = 0.0f;
    for (int j = item; j < length; j += DNNOPT_GROUP) {
      const float deviation = dnnopt_load(DNNOPT_ARGUMENTS, row, j) - mean;
      own = fma(deviation, deviation, own);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    shared[item] = own;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int half_group = DNNOPT_GROUP / 2; half_group > 0; half_group /= 2) {
      if (item < half_group) shared[item] += shared[item + half_group];
      barrier(CLK_LOCAL_MEM_FENCE);
    }
    factor = 1.0f / sqrt(shared[0] / (float)length + DNNOPT_EPSILON);
  }
  if (item == 0) {
    DNNOPT_STORE_MEAN(row, mean);
    DNNOPT_STORE_INVERSE(row, factor);
  }
#elif DNNOPT_FAMILY == 3
  const float mean = 0.0f;
  float factor;
  DNNOPT_OVER_ROW(0.0f, dnnopt_plus_square, DNNOPT_PLUS, factor)
  factor = 1.0f / sqrt(factor / (float)length + DNNOPT_EPSILON);
#else
  const float mean = 0.0f;
  float factor;
  DNNOPT_OVER_ROW(0.0f, DNNOPT_PLUS_NORM_TERM, DNNOPT_PLUS, factor)
  factor = factor == 0.0f ? 0.0f : 1.0f / DNNOPT_NORM_ROOT(factor);
#endif
  for (int j = item; j < length; j += DNNOPT_GROUP)
    dnnopt_store(DNNOPT_ARGUMENTS, row, j, (dnnopt_load(DNNOPT_ARGUMENTS, row, j) - mean) * factor);
#endif
}
#ifdef __cplusplus
)CLC"
#endif
