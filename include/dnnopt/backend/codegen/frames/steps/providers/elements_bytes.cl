#ifdef __cplusplus
R"CLC(
#endif
// Elements of matrix steps are codes of a byte each, natural numbers where DNNOPT_A_NATURAL (DNNOPT_B_NATURAL) is 1, and
// their sums are whole numbers. Lines of tiles run along inner elements always (byte_operands.cl).

#ifndef DNNOPT_STEP_SUM_ROW
// Stand-alone.
#include "step_places.cl"
#endif
#define DNNOPT_STEP_BYTES 1
#define dnnopt_element char
#define dnnopt_sum int
#define DNNOPT_CHUNK_ELEMENTS 16
#define dnnopt_chunk_across dnnopt_chunk
#ifdef __cplusplus
)CLC"
#endif
