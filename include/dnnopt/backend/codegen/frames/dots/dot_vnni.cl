#ifdef __cplusplus
R"CLC(
#endif
// Dot products of four bytes each by AVX-512 VNNI (Intel 64 and IA-32 Architectures Software Developer's Manual,
// VPDPBUSD), as dot_plain.cl states them. Compilers of OpenCL C know no name for the instruction, so it stands as text.
static inline int4 dnnopt_dot4(int4 sums, const int4 natural, const int4 whole) {
  __asm__("vpdpbusd %2, %1, %0" : "+v"(sums) : "v"(natural), "v"(whole));
  return sums;
}
static inline int8 dnnopt_dot8(int8 sums, const int8 natural, const int8 whole) {
  __asm__("vpdpbusd %2, %1, %0" : "+v"(sums) : "v"(natural), "v"(whole));
  return sums;
}
static inline int16 dnnopt_dot16(int16 sums, const int16 natural, const int16 whole) {
  __asm__("vpdpbusd %2, %1, %0" : "+v"(sums) : "v"(natural), "v"(whole));
  return sums;
}
#ifdef __cplusplus
)CLC"
#endif
