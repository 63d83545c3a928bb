#ifdef __cplusplus
R"CLC(
#endif
// Matrix product on devices whose work-items run in step and share local memory (GPUs): a work-group computes a tile of
// the result, its work-items DNNOPT_ITEM_ROWS by DNNOPT_ITEM_COLUMNS elements each, from tiles of both operands that it
// loads to local memory together.
//
//   result(z, m, n) = sum over k of a(z, m, k) * b(z, k, n);   dnnopt_store(z, m, n, result)

#ifndef DNNOPT_PARAMETERS
// Stand-alone: plain row-major matrices.
#define DNNOPT_PARAMETERS __global const float* restrict b0, __global const float* restrict b1, __global float* restrict b2, const int p0, const int p1, const int p2
#define DNNOPT_ARGUMENTS b0, b1, b2, p0, p1, p2
#define DNNOPT_M p0
#define DNNOPT_N p1
#define DNNOPT_K p2
static inline float dnnopt_load_a(DNNOPT_PARAMETERS, const int z, const int m, const int k) { return b0[(z * p0 + m) * p2 + k]; }
static inline float dnnopt_load_b(DNNOPT_PARAMETERS, const int z, const int k, const int n) { return b1[(z * p2 + k) * p1 + n]; }
static inline void dnnopt_store(DNNOPT_PARAMETERS, const int z, const int m, const int n, float value) { b2[(z * p0 + m) * p1 + n] = value; }
#endif
#ifndef DNNOPT_GROUP_ROWS
#define DNNOPT_GROUP_ROWS 16
#endif
#ifndef DNNOPT_GROUP_COLUMNS
#define DNNOPT_GROUP_COLUMNS 16
#endif
#ifndef DNNOPT_ITEM_ROWS
#define DNNOPT_ITEM_ROWS 4
#endif
#ifndef DNNOPT_ITEM_COLUMNS
#define DNNOPT_ITEM_COLUMNS 4
#endif
#ifndef DNNOPT_TILE_INNER
#define DNNOPT_TILE_INNER 16
#endif
// Whether neighbours of an operand in memory are neighbours in k rather than in its other index.
#ifndef DNNOPT_A_INNER_FIRST
#define DNNOPT_A_INNER_FIRST 1
#endif
#ifndef DNNOPT_B_INNER_FIRST
#define DNNOPT_B_INNER_FIRST 0
#endif

#define DNNOPT_TILE_ROWS (DNNOPT_GROUP_ROWS * DNNOPT_ITEM_ROWS)
#define DNNOPT_TILE_COLUMNS (DNNOPT_GROUP_COLUMNS * DNNOPT_ITEM_COLUMNS)
#define DNNOPT_ITEMS (DNNOPT_GROUP_ROWS * DNNOPT_GROUP_COLUMNS)

// Rows of a are normalized first: 1 by mean and deviation, 2 by root mean square. Then dnnopt_row_load(z, m, k) is the
// element before, and dnnopt_load_a takes the moments of the row as well.
#ifndef DNNOPT_ROW_MOMENTS
#define DNNOPT_ROW_MOMENTS 0
#endif
#if DNNOPT_ROW_MOMENTS
#define DNNOPT_LOAD_ROW(z, m, k, i) dnnopt_load_a(DNNOPT_ARGUMENTS, z, m, k, moments[i])
// Work-items that share a row read neighbours of it.
#define DNNOPT_TEAM (DNNOPT_ITEMS < 32 ? DNNOPT_ITEMS : 32)
#define DNNOPT_TEAMS (DNNOPT_ITEMS / DNNOPT_TEAM)
#else
#define DNNOPT_LOAD_ROW(z, m, k, i) dnnopt_load_a(DNNOPT_ARGUMENTS, z, m, k)
#endif

// Rows of the result are reduced as well: dnnopt_store returns what is taken, and dnnopt_store_total(z, m, value) ends a
// row. Then a tile holds all columns.
#ifndef DNNOPT_TOTALS
#define DNNOPT_TOTALS 0
#endif

__kernel __attribute__((reqd_work_group_size(DNNOPT_GROUP_COLUMNS, DNNOPT_GROUP_ROWS, 1))) void dnnopt_kernel(DNNOPT_PARAMETERS) {
  // One more column keeps neighbouring rows in different banks.
  __local float a_tile[DNNOPT_TILE_INNER][DNNOPT_TILE_ROWS + 1];
  __local float b_tile[DNNOPT_TILE_INNER][DNNOPT_TILE_COLUMNS + 1];
  const int z = (int)get_group_id(2);
  const int m_begin = (int)get_group_id(1) * DNNOPT_TILE_ROWS;
  const int n_begin = (int)get_group_id(0) * DNNOPT_TILE_COLUMNS;
  const int row = (int)get_local_id(1);
  const int column = (int)get_local_id(0);
  const int item = row * DNNOPT_GROUP_COLUMNS + column;
#if DNNOPT_ROW_MOMENTS
  __local float2 moments[DNNOPT_TILE_ROWS];
  __local float team_sums[DNNOPT_ITEMS];
  for (int first = 0; first < DNNOPT_TILE_ROWS; first += DNNOPT_TEAMS) {
    const int own = first + item / DNNOPT_TEAM;
    const int m = min(m_begin + own, (int)(DNNOPT_M) - 1);
    const int lane = item % DNNOPT_TEAM;
    const bool leads = lane == 0 && own < DNNOPT_TILE_ROWS && item < DNNOPT_TEAMS * DNNOPT_TEAM;
    float mean = 0.0f;
#if DNNOPT_ROW_MOMENTS == 1
    float total = 0.0f;
    for (int k = lane; k < DNNOPT_K; k += DNNOPT_TEAM) total += dnnopt_row_load(DNNOPT_ARGUMENTS, z, m, k);
    team_sums[item] = total;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int l = 0; l < DNNOPT_TEAM; ++l) mean += team_sums[min(item - lane + l, DNNOPT_ITEMS - 1)];
    mean /= (float)(DNNOPT_K);
    barrier(CLK_LOCAL_MEM_FENCE);
#endif
    float squares = 0.0f;
    for (int k = lane; k < DNNOPT_K; k += DNNOPT_TEAM) {
      const float d = dnnopt_row_load(DNNOPT_ARGUMENTS, z, m, k) - mean;
      squares = fma(d, d, squares);
    }
    team_sums[item] = squares;
    barrier(CLK_LOCAL_MEM_FENCE);
    if (leads) {
      float all = 0.0f;
      for (int l = 0; l < DNNOPT_TEAM; ++l) all += team_sums[item + l];
      moments[own] = (float2)(mean, 1.0f / sqrt(all / (float)(DNNOPT_K) + DNNOPT_EPSILON));
    }
    barrier(CLK_LOCAL_MEM_FENCE);
  }
#endif
  float sum[DNNOPT_ITEM_ROWS][DNNOPT_ITEM_COLUMNS];
  for (int i = 0; i < DNNOPT_ITEM_ROWS; ++i)
    for (int j = 0; j < DNNOPT_ITEM_COLUMNS; ++j) sum[i][j] = 0.0f;
  for (int k_begin = 0; k_begin < DNNOPT_K; k_begin += DNNOPT_TILE_INNER) {
    for (int e = item; e < DNNOPT_TILE_ROWS * DNNOPT_TILE_INNER; e += DNNOPT_ITEMS) {
#if DNNOPT_A_INNER_FIRST
      const int k = e % DNNOPT_TILE_INNER;
      const int m = e / DNNOPT_TILE_INNER;
#else
      const int m = e % DNNOPT_TILE_ROWS;
      const int k = e / DNNOPT_TILE_ROWS;
#endif
      a_tile[k][m] = m_begin + m < DNNOPT_M && k_begin + k < DNNOPT_K ? DNNOPT_LOAD_ROW(z, m_begin + m, k_begin + k, m) : 0.0f;
    }
    for (int e = item; e < DNNOPT_TILE_COLUMNS * DNNOPT_TILE_INNER; e += DNNOPT_ITEMS) {
#if DNNOPT_B_INNER_FIRST
      const int k = e % DNNOPT_TILE_INNER;
      const int n = e / DNNOPT_TILE_INNER;
#else
      const int n = e % DNNOPT_TILE_COLUMNS;
      const int k = e / DNNOPT_TILE_COLUMNS;
#endif
      b_tile[k][n] = n_begin + n < DNNOPT_N && k_begin + k < DNNOPT_K ? dnnopt_load_b(DNNOPT_ARGUMENTS, z, k_begin + k, n_begin + n) : 0.0f;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int k = 0; k < DNNOPT_TILE_INNER; ++k) {
      float a[DNNOPT_ITEM_ROWS];
      float b[DNNOPT_ITEM_COLUMNS];
      for (int i = 0; i < DNNOPT_ITEM_ROWS; ++i) a[i] = a_tile[k][row + i * DNNOPT_GROUP_ROWS];
      for (int j = 0; j < DNNOPT_ITEM_COLUMNS; ++j) b[j] = b_tile[k][column + j * DNNOPT_GROUP_COLUMNS];
      for (int i = 0; i < DNNOPT_ITEM_ROWS; ++i)
        for (int j = 0; j < DNNOPT_ITEM_COLUMNS; ++j) sum[i][j] = fma(a[i], b[j], sum[i][j]);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
  }
#if DNNOPT_TOTALS
  __local float shares[DNNOPT_GROUP_ROWS][DNNOPT_GROUP_COLUMNS];
  for (int i = 0; i < DNNOPT_ITEM_ROWS; ++i) {
    const int m = m_begin + row + i * DNNOPT_GROUP_ROWS;
    float share = DNNOPT_FIRST;
    for (int j = 0; j < DNNOPT_ITEM_COLUMNS; ++j) {
      const int n = n_begin + column + j * DNNOPT_GROUP_COLUMNS;
      if (m < DNNOPT_M && n < DNNOPT_N) share = DNNOPT_TAKE(share, dnnopt_store(DNNOPT_ARGUMENTS, z, m, n, sum[i][j]));
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    shares[row][column] = share;
    barrier(CLK_LOCAL_MEM_FENCE);
    if (column == 0 && m < DNNOPT_M) {
      for (int j = 1; j < DNNOPT_GROUP_COLUMNS; ++j) share = DNNOPT_COMBINE(share, shares[row][j]);
      dnnopt_store_total(DNNOPT_ARGUMENTS, z, m, DNNOPT_FINISH(share));
    }
  }
#else
  for (int i = 0; i < DNNOPT_ITEM_ROWS; ++i)
    for (int j = 0; j < DNNOPT_ITEM_COLUMNS; ++j) {
      const int m = m_begin + row + i * DNNOPT_GROUP_ROWS;
      const int n = n_begin + column + j * DNNOPT_GROUP_COLUMNS;
      if (m < DNNOPT_M && n < DNNOPT_N) dnnopt_store(DNNOPT_ARGUMENTS, z, m, n, sum[i][j]);
    }
#endif
}
#ifdef __cplusplus
)CLC"
#endif
