#ifdef __cplusplus
R"CLC(
#endif
// What providers in plain OpenCL C share: a wave's work-items put their shares of both operands into local memory, and each
// makes its sums of them by the provider's dnnopt_step_sum.

// Where it is 1, the kernel has __local uint4 exchange[], as many for each work-item as steps have operands.
#define DNNOPT_STEP_EXCHANGES 1
#define DNNOPT_MULTIPLY_STEPS(sum, a, b, rows, columns)                                                            \
  {                                                                                                                \
    __local uint4* shares = exchange + item * ((rows) + (columns));                                                \
    for (int i = 0; i < (rows); ++i) shares[i] = a[i];                                                             \
    for (int j = 0; j < (columns); ++j) shares[(rows) + j] = b[j];                                                 \
    barrier(CLK_LOCAL_MEM_FENCE);                                                                                  \
    __local const uint4* of_wave = exchange + (item - lane) * ((rows) + (columns));                                \
    for (int i = 0; i < (rows); ++i)                                                                               \
      for (int j = 0; j < (columns); ++j)                                                                          \
        for (int s = 0; s < 8; ++s)                                                                                \
          sum[i][j][s] = dnnopt_step_sum(of_wave + i, of_wave + (rows) + j, (rows) + (columns), lane, s, sum[i][j][s]); \
    barrier(CLK_LOCAL_MEM_FENCE);                                                                                  \
  }
#ifdef __cplusplus
)CLC"
#endif
