#ifdef __cplusplus
R"CLC(
#endif
// Softmax, normalizations and reductions on devices whose work-items run in step: a work-group computes
// DNNOPT_GROUP_ROWS rows, DNNOPT_GROUP work-items each, whose elements are DNNOPT_GROUP apart; partial results meet in
// local memory. With DNNOPT_OWN > 0 a row has at most DNNOPT_OWN * DNNOPT_GROUP elements, which are read once and kept.
// With DNNOPT_VECTOR 4 (and DNNOPT_OWN > 0) what is said of elements holds for vectors of four neighbours.
//
// Hooks: dnnopt_load(row, column), dnnopt_store(row, column, value), and for reductions dnnopt_store(row, value). With
// DNNOPT_VECTOR 4 dnnopt_load4(row, column) and dnnopt_store4(row, column, values), columns multiples of four.
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
// Work-items per row; a power of two.
#ifndef DNNOPT_GROUP
#define DNNOPT_GROUP 64
#endif
#ifndef DNNOPT_GROUP_ROWS
#define DNNOPT_GROUP_ROWS 1
#endif
#ifndef DNNOPT_OWN
#define DNNOPT_OWN 0
#endif
#ifndef DNNOPT_VECTOR
#define DNNOPT_VECTOR 1
#endif
// What a step of softmax (difference, exponential, sum) is rounded to.
#ifndef DNNOPT_STEP
#define DNNOPT_STEP(x) (x)
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

// Runs BODY for each of the work-item's elements: `j` is its column, `x` its value, DNNOPT_KEEP(v) replaces it.
// DNNOPT_STORE_EACH stores an expression of `x` and `j` for each.
#if DNNOPT_VECTOR == 4
#define DNNOPT_KEEP(v) kept[o] = (v)
#define DNNOPT_FOR_EACH(BODY)                                      \
  _Pragma("unroll") for (int o = 0; o < 4 * DNNOPT_OWN; ++o) {   \
    const int j = (item + o / 4 * DNNOPT_GROUP) * 4 + o % 4;       \
    if (j < length) {                                              \
      const float x = kept[o];                                     \
      BODY;                                                        \
    }                                                              \
  }
#define DNNOPT_STORE_EACH(EXPRESSION)                                            \
  _Pragma("unroll") for (int v = 0; v < DNNOPT_OWN; ++v) {                     \
    const int first = (item + v * DNNOPT_GROUP) * 4;                             \
    if (first < length) {                                                        \
      float4 four;                                                               \
      {                                                                          \
        const float x = kept[4 * v];                                             \
        four.x = EXPRESSION;                                                     \
      }                                                                          \
      {                                                                          \
        const float x = kept[4 * v + 1];                                         \
        four.y = EXPRESSION;                                                     \
      }                                                                          \
      {                                                                          \
        const float x = kept[4 * v + 2];                                         \
        four.z = EXPRESSION;                                                     \
      }                                                                          \
      {                                                                          \
        const float x = kept[4 * v + 3];                                         \
        four.w = EXPRESSION;                                                     \
      }                                                                          \
      dnnopt_store4(DNNOPT_ARGUMENTS, row, first, four);                         \
    }                                                                            \
  }
#elif DNNOPT_OWN > 0
#define DNNOPT_KEEP(v) kept[o] = (v)
#define DNNOPT_FOR_EACH(BODY)                                \
  _Pragma("unroll") for (int o = 0; o < DNNOPT_OWN; ++o) { \
    const int j = item + o * DNNOPT_GROUP;                   \
    if (j < length) {                                        \
      const float x = kept[o];                               \
      BODY;                                                  \
    }                                                        \
  }
#else
#define DNNOPT_KEEP(v)
#define DNNOPT_FOR_EACH(BODY)                                    \
  for (int j = item; j < length; j += DNNOPT_GROUP) {            \
    const float x = dnnopt_load(DNNOPT_ARGUMENTS, row, j); \
    BODY;                                                        \
  }
#endif
#if DNNOPT_VECTOR == 1
#define DNNOPT_STORE_EACH(EXPRESSION) DNNOPT_FOR_EACH(dnnopt_store(DNNOPT_ARGUMENTS, row, j, EXPRESSION))
#endif

// Every work-item of a row ends with the result; the barrier at the start lets the last reading of `shared` finish. Few
// work-items meet in two steps of about the square root each, with two barriers; many by halves, with a barrier for each
// (on an H200 the two steps take 12% off a LayerNormalization with 32 work-items for a row and add 3% with 128).
#if DNNOPT_GROUP <= 8
#define DNNOPT_MEET(COMBINE, OWN, RESULT)                                    \
  {                                                                          \
    barrier(CLK_LOCAL_MEM_FENCE);                                            \
    shared[item] = OWN;                                                      \
    barrier(CLK_LOCAL_MEM_FENCE);                                            \
    float all = shared[0];                                                   \
    for (int p = 1; p < DNNOPT_GROUP; ++p) all = COMBINE(all, shared[p]);    \
    RESULT = all;                                                            \
  }
#elif DNNOPT_GROUP <= 64
#define DNNOPT_PARTS (DNNOPT_GROUP < 8 ? DNNOPT_GROUP : 8)
#define DNNOPT_MEET(COMBINE, OWN, RESULT)                                            \
  {                                                                                  \
    barrier(CLK_LOCAL_MEM_FENCE);                                                    \
    shared[item] = OWN;                                                              \
    barrier(CLK_LOCAL_MEM_FENCE);                                                    \
    if (item < DNNOPT_PARTS) {                                                       \
      float part = shared[item];                                                     \
      for (int p = item + DNNOPT_PARTS; p < DNNOPT_GROUP; p += DNNOPT_PARTS)         \
        part = COMBINE(part, shared[p]);                                             \
      shared[item] = part;                                                           \
    }                                                                                \
    barrier(CLK_LOCAL_MEM_FENCE);                                                    \
    float all = shared[0];                                                           \
    for (int p = 1; p < DNNOPT_PARTS; ++p) all = COMBINE(all, shared[p]);            \
    RESULT = all;                                                                    \
  }
#else
#define DNNOPT_MEET(COMBINE, OWN, RESULT)                                                       \
  {                                                                                             \
    barrier(CLK_LOCAL_MEM_FENCE);                                                               \
    shared[item] = OWN;                                                                         \
    barrier(CLK_LOCAL_MEM_FENCE);                                                               \
    for (int half_group = DNNOPT_GROUP / 2; half_group > 0; half_group /= 2) {                  \
      if (item < half_group) shared[item] = COMBINE(shared[item], shared[item + half_group]);   \
      barrier(CLK_LOCAL_MEM_FENCE);                                                             \
    }                                                                                           \
    RESULT = shared[0];                                                                         \
  }
#endif
#define DNNOPT_OVER_ROW(FIRST, TAKE, COMBINE, RESULT) \
  {                                                   \
    float own = FIRST;                                \
    DNNOPT_FOR_EACH(own = TAKE(own, x))               \
    DNNOPT_MEET(COMBINE, own, RESULT)                 \
  }

#define DNNOPT_LARGER(a, x) fmax(a, x)
#define DNNOPT_PLUS(a, x) ((a) + (x))
#define DNNOPT_PLUS_NORM_TERM(a, x) dnnopt_plus_norm_term(a, x)

static inline float dnnopt_plus_norm_term(float a, float x) { return a + DNNOPT_NORM_TERM(x); }
static inline float dnnopt_plus_square(float a, float x) { return fma(x, x, a); }
static inline float dnnopt_take(float a, float x) { return DNNOPT_TAKE(a, x); }
static inline float dnnopt_combine(float a, float x) { return DNNOPT_COMBINE(a, x); }

__kernel __attribute__((reqd_work_group_size(DNNOPT_GROUP * DNNOPT_GROUP_ROWS, 1, 1))) void dnnopt_kernel(DNNOPT_KERNEL_PARAMETERS) {
  __local float shared_rows[DNNOPT_GROUP_ROWS * DNNOPT_GROUP];
  const int item = (int)get_local_id(0) % DNNOPT_GROUP;
  const int group_row = (int)get_local_id(0) / DNNOPT_GROUP;
  __local float* shared = shared_rows + group_row * DNNOPT_GROUP;
  const int row = (int)get_group_id(0) * DNNOPT_GROUP_ROWS + group_row;
  // Work-items beyond the last row meet the others at the barriers, without elements.
  const int length = row < DNNOPT_ROWS ? DNNOPT_LENGTH : 0;
#if DNNOPT_VECTOR == 4
  float kept[4 * DNNOPT_OWN];
  _Pragma("unroll") for (int v = 0; v < DNNOPT_OWN; ++v) {
    const int first = (item + v * DNNOPT_GROUP) * 4;
    const float4 four = first < length ? dnnopt_load4(DNNOPT_ARGUMENTS, row, first) : (float4)(0.0f);
    kept[4 * v] = four.x;
    kept[4 * v + 1] = four.y;
    kept[4 * v + 2] = four.z;
    kept[4 * v + 3] = four.w;
  }
#elif DNNOPT_OWN > 0
  float kept[DNNOPT_OWN];
  _Pragma("unroll") for (int o = 0; o < DNNOPT_OWN; ++o) {
    const int j = item + o * DNNOPT_GROUP;
    kept[o] = j < length ? dnnopt_load(DNNOPT_ARGUMENTS, row, j) : 0.0f;
  }
#endif
#if DNNOPT_FAMILY == 5
  float sum;
  DNNOPT_OVER_ROW(DNNOPT_FIRST, dnnopt_take, dnnopt_combine, sum)
  if (item == 0 && row < DNNOPT_ROWS) dnnopt_store(DNNOPT_ARGUMENTS, row, DNNOPT_FINISH(sum));
#elif DNNOPT_FAMILY == 0 || DNNOPT_FAMILY == 1
  float top;
  DNNOPT_OVER_ROW(-INFINITY, DNNOPT_LARGER, DNNOPT_LARGER, top)
  float sum;
  {
    float own = 0.0f;
#if DNNOPT_FAMILY == 0
    DNNOPT_FOR_EACH(const float e = DNNOPT_STEP(exp(DNNOPT_STEP(x - top))); own += e; DNNOPT_KEEP(e))
#else
    DNNOPT_FOR_EACH(own += exp(x - top))
#endif
    DNNOPT_MEET(DNNOPT_PLUS, own, sum)
  }
#if DNNOPT_FAMILY == 0
  const float factor = 1.0f / DNNOPT_STEP(sum);
#if DNNOPT_OWN > 0
  DNNOPT_STORE_EACH(x * factor)
#else
  DNNOPT_STORE_EACH(DNNOPT_STEP(exp(DNNOPT_STEP(x - top))) * factor)
#endif
#else
  // Small beside a large element: a sum with it would lose digits.
  const float shift = log(sum);
  DNNOPT_STORE_EACH(x - top - shift)
#endif
#else
#if DNNOPT_FAMILY == 2
  float mean;
  DNNOPT_OVER_ROW(0.0f, DNNOPT_PLUS, DNNOPT_PLUS, mean)
  mean /= (float)(DNNOPT_LENGTH);
  float factor;
  {
    float own = 0.0f;
    DNNOPT_FOR_EACH(own = fma(x - mean, x - mean, own))
    DNNOPT_MEET(DNNOPT_PLUS, own, factor)
  }
  factor = 1.0f / sqrt(factor / (float)(DNNOPT_LENGTH) + DNNOPT_EPSILON);
  if (item == 0 && row < DNNOPT_ROWS) {
    DNNOPT_STORE_MEAN(row, mean);
    DNNOPT_STORE_INVERSE(row, factor);
  }
#elif DNNOPT_FAMILY == 3
  const float mean = 0.0f;
  float factor;
  DNNOPT_OVER_ROW(0.0f, dnnopt_plus_square, DNNOPT_PLUS, factor)
  factor = 1.0f / sqrt(factor / (float)(DNNOPT_LENGTH) + DNNOPT_EPSILON);
#else
  const float mean = 0.0f;
  float factor;
  DNNOPT_OVER_ROW(0.0f, DNNOPT_PLUS_NORM_TERM, DNNOPT_PLUS, factor)
  factor = factor == 0.0f ? 0.0f : 1.0f / DNNOPT_NORM_ROOT(factor);
#endif
  DNNOPT_STORE_EACH((x - mean) * factor)
#endif
}
#ifdef __cplusplus
)CLC"
#endif
