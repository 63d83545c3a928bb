#ifdef __cplusplus
R"CLC(
#endif
// Product of matrices of bytes on devices whose work-items run one after the other with wide vectors (CPUs): one
// work-item per block of the result, as in matrix_panels.cl, over dot products of four bytes.
//
//   result(z, m, n) = sum over k of (a(z, m, k) - zero_a(z, m)) * (b(z, k, n) - zero_b(z, n))
//
// in int, which wraps around; dnnopt_store(z, m, n, result). Four neighbours in k are the bytes of one int, a quad; what
// is missing of the last one is 0 in both operands. The sum of products of the bytes as they are is corrected:
//
//   sum over k of a * b - zero_b * (sum of a) - zero_a * (sum of b) + K * zero_a * zero_b
//
// Hooks: dnnopt_load_a(z, m, k), dnnopt_load_b(z, k, n) (or dnnopt_load_x(z, c, d, h, w) of a convolution, whose quads
// are four channels of one window element), dnnopt_zero_a(z, m), dnnopt_zero_b(z, n), dnnopt_store, and
// dnnopt_dot<lanes> of a provider. One operand's bytes count as 0 .. 255 and the other's as -128 .. 127: where both are
// of one kind, the bits of DNNOPT_A_FLIP or DNNOPT_B_FLIP turn one over, and the zero points are those of what comes
// out. DNNOPT_A_PACKED, DNNOPT_B_PACKED: the operand lies in memory at DNNOPT_A or DNNOPT_B, in the order of panels.

#ifndef DNNOPT_QUADS
// Stand-alone.
#include "dot_operands.cl"
#endif
__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void dnnopt_kernel(DNNOPT_KERNEL_PARAMETERS) {
  const int z = (int)get_global_id(2);
  const int step_rows = DNNOPT_STEP_ROWS;
  const int step_columns = DNNOPT_STEP_COLUMNS;
  const int m_begin = (int)get_global_id(1) * step_rows;
  const int n_begin = (int)get_global_id(0) * step_columns;
  const int m_end = min(m_begin + step_rows, (int)(DNNOPT_M));
  const int n_end = min(n_begin + step_columns, (int)(DNNOPT_N));
  const int quads = DNNOPT_QUADS;
  // Sums of rows are taken of sixteen at once, of which a panel may have fewer.
#if !DNNOPT_A_PACKED
  __local int a_block[DNNOPT_ROW_PANELS * DNNOPT_ROWS * DNNOPT_BLOCK_INNER + 16];
#endif
#if !DNNOPT_B_PACKED
  __local int b_block[DNNOPT_COLUMN_PANELS * DNNOPT_COLUMNS * DNNOPT_BLOCK_INNER + (DNNOPT_IMAGE_ROWS ? 16 : 0)];
#endif
#if DNNOPT_IMAGE_ROWS
  __local int kept[DNNOPT_CHANNEL_QUADS * DNNOPT_IMAGE_ROWS * DNNOPT_IMAGE_WIDTH + 16 * DNNOPT_SW];
  dnnopt_keep_image(DNNOPT_ARGUMENTS, kept, z, n_begin, n_end);
#endif
#if !DNNOPT_ONE_INNER_BLOCK
  __local int partial[DNNOPT_ROW_PANELS * DNNOPT_ROWS * DNNOPT_COLUMN_PANELS * DNNOPT_COLUMNS];
#endif
  int tile[DNNOPT_ROWS * DNNOPT_COLUMNS];
  int q_begin = 0;
  do {
    const int count = min(DNNOPT_BLOCK_INNER, quads - q_begin);
#if !DNNOPT_A_PACKED
    dnnopt_pack_a(DNNOPT_ARGUMENTS, a_block, z, m_begin, m_end, q_begin, count);
#endif
#if DNNOPT_IMAGE_ROWS
    dnnopt_pack_b(DNNOPT_ARGUMENTS, b_block, kept, n_begin, n_end, q_begin, count);
#elif !DNNOPT_B_PACKED
    dnnopt_pack_b(DNNOPT_ARGUMENTS, b_block, z, n_begin, n_end, q_begin, count);
#endif
    for (int n = n_begin; n < n_end; n += DNNOPT_COLUMNS) {
      for (int m = m_begin; m < m_end; m += DNNOPT_ROWS) {
#if DNNOPT_A_PACKED
        __global const int* a = (__global const int*)DNNOPT_A + ((DNNOPT_A_BATCH) * (((DNNOPT_M) + DNNOPT_ROWS - 1) / DNNOPT_ROWS) + m / DNNOPT_ROWS) * (quads * DNNOPT_ROWS) + q_begin * DNNOPT_ROWS;
#else
        __local const int* a = a_block + (m - m_begin) * count;
#endif
#if DNNOPT_B_PACKED
        __global const int* b = (__global const int*)DNNOPT_B + ((DNNOPT_B_BATCH) * (((DNNOPT_N) + DNNOPT_COLUMNS - 1) / DNNOPT_COLUMNS) + n / DNNOPT_COLUMNS) * (quads * DNNOPT_COLUMNS) + q_begin * DNNOPT_COLUMNS;
#else
        __local const int* b = b_block + (n - n_begin) * count;
#endif
        DNNOPT_INTS sum[DNNOPT_ROWS][DNNOPT_VECTORS];
        _Pragma("unroll") for (int r = 0; r < DNNOPT_ROWS; ++r)
          _Pragma("unroll") for (int v = 0; v < DNNOPT_VECTORS; ++v) sum[r][v] = (DNNOPT_INTS)(0);
#if DNNOPT_B_ZERO
        int16 a_totals = (int16)(0);
#endif
#if DNNOPT_A_ZERO
        DNNOPT_INTS b_totals[DNNOPT_VECTORS];
        _Pragma("unroll") for (int v = 0; v < DNNOPT_VECTORS; ++v) b_totals[v] = (DNNOPT_INTS)(0);
#endif
        for (int q = 0; q < count; ++q) {
          DNNOPT_INTS column[DNNOPT_VECTORS];
          _Pragma("unroll") for (int v = 0; v < DNNOPT_VECTORS; ++v) column[v] = DNNOPT_LOAD_INTS(v, b);
#if DNNOPT_B_ZERO
          a_totals = DNNOPT_TOTAL_A(a_totals, vload16(0, a));
#endif
#if DNNOPT_A_ZERO
          _Pragma("unroll") for (int v = 0; v < DNNOPT_VECTORS; ++v) b_totals[v] = DNNOPT_TOTAL_B(b_totals[v], column[v]);
#endif
          _Pragma("unroll") for (int r = 0; r < DNNOPT_ROWS; ++r)
            _Pragma("unroll") for (int v = 0; v < DNNOPT_VECTORS; ++v) sum[r][v] = DNNOPT_DOT(sum[r][v], (DNNOPT_INTS)(a[r]), column[v]);
          a += DNNOPT_ROWS;
          b += DNNOPT_COLUMNS;
        }
#if DNNOPT_A_ZERO || DNNOPT_B_ZERO
        // Elements that these quads hold.
#if DNNOPT_CONVOLUTION
        const int held = q_begin == 0 ? DNNOPT_CHANNELS * DNNOPT_KD * DNNOPT_KH * DNNOPT_KW : 0;
#else
        const int held = q_begin == 0 ? (int)(DNNOPT_K) : 0;
#endif
#endif
#if DNNOPT_B_ZERO
        int a_total[16];
        vstore16(a_totals, 0, a_total);
        DNNOPT_INTS b_zero[DNNOPT_VECTORS];
#if DNNOPT_B_ZERO_EACH
        int zeros[DNNOPT_COLUMNS];
        for (int j = 0; j < DNNOPT_COLUMNS; ++j) zeros[j] = dnnopt_zero_b(DNNOPT_ARGUMENTS, z, min(n + j, (int)(DNNOPT_N) - 1));
        _Pragma("unroll") for (int v = 0; v < DNNOPT_VECTORS; ++v) b_zero[v] = DNNOPT_LOAD_INTS(v, zeros);
#else
        _Pragma("unroll") for (int v = 0; v < DNNOPT_VECTORS; ++v) b_zero[v] = (DNNOPT_INTS)((int)dnnopt_zero_b(DNNOPT_ARGUMENTS, z, 0));
#endif
        _Pragma("unroll") for (int r = 0; r < DNNOPT_ROWS; ++r)
          _Pragma("unroll") for (int v = 0; v < DNNOPT_VECTORS; ++v) sum[r][v] -= b_zero[v] * a_total[r];
#endif
#if DNNOPT_A_ZERO
        _Pragma("unroll") for (int r = 0; r < DNNOPT_ROWS; ++r) {
          const int a_zero = dnnopt_zero_a(DNNOPT_ARGUMENTS, z, min(m + r, (int)(DNNOPT_M) - 1));
          _Pragma("unroll") for (int v = 0; v < DNNOPT_VECTORS; ++v) {
            sum[r][v] -= a_zero * b_totals[v];
#if DNNOPT_B_ZERO
            sum[r][v] += held * a_zero * b_zero[v];
#endif
          }
        }
#endif
#if !DNNOPT_ONE_INNER_BLOCK
        __local int* sums = partial + (m - m_begin) * (DNNOPT_COLUMN_PANELS * DNNOPT_COLUMNS) + (n - n_begin) * DNNOPT_ROWS;
        if (q_begin != 0) {
          _Pragma("unroll") for (int r = 0; r < DNNOPT_ROWS; ++r)
            _Pragma("unroll") for (int v = 0; v < DNNOPT_VECTORS; ++v) sum[r][v] += DNNOPT_LOAD_INTS(r * DNNOPT_VECTORS + v, sums);
        }
        if (q_begin + count < quads) {
          _Pragma("unroll") for (int r = 0; r < DNNOPT_ROWS; ++r)
            _Pragma("unroll") for (int v = 0; v < DNNOPT_VECTORS; ++v) DNNOPT_STORE_INTS(sum[r][v], r * DNNOPT_VECTORS + v, sums);
          continue;
        }
#endif
        _Pragma("unroll") for (int r = 0; r < DNNOPT_ROWS; ++r)
          _Pragma("unroll") for (int v = 0; v < DNNOPT_VECTORS; ++v) DNNOPT_STORE_INTS(sum[r][v], r * DNNOPT_VECTORS + v, tile);
        const int height = min(DNNOPT_ROWS, m_end - m);
        if (DNNOPT_WHOLE_PANELS || n + DNNOPT_COLUMNS <= n_end) {
          for (int r = 0; r < height; ++r) DNNOPT_STORE_RUN(z, m + r, n, DNNOPT_COLUMNS, tile + r * DNNOPT_COLUMNS);
        } else {
          for (int r = 0; r < height; ++r) DNNOPT_STORE_RUN(z, m + r, n, n_end - n, tile + r * DNNOPT_COLUMNS);
        }
      }
    }
    q_begin += count;
  } while (q_begin < quads);
}
#ifdef __cplusplus
)CLC"
#endif
