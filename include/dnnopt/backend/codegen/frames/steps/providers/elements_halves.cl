#ifdef __cplusplus
R"CLC(
#endif
// Elements of matrix steps are halves. Where lines are inner elements, chunks are read whole as well, and exchanged alike.

#define dnnopt_element half
#define DNNOPT_CHUNK_ELEMENTS 8
#define dnnopt_chunk_across dnnopt_chunk
#ifdef __cplusplus
)CLC"
#endif
