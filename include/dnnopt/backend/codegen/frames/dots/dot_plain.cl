#ifdef __cplusplus
R"CLC(
#endif
// Dot products of four bytes each in plain OpenCL C: what every device can do, and what others are held against.
//
//   dnnopt_dot<lanes>(sums, natural, whole): to each of `sums` is added the dot product of the four bytes of the int in
//   the same lane of `natural`, taken as 0 .. 255, and of `whole`, taken as -128 .. 127. Sums wrap around.
static inline int4 dnnopt_dot4(const int4 sums, const int4 natural, const int4 whole) {
  return sums + (natural & 255) * ((whole << 24) >> 24) + ((natural >> 8) & 255) * ((whole << 16) >> 24) + ((natural >> 16) & 255) * ((whole << 8) >> 24) + ((natural >> 24) & 255) * (whole >> 24);
}
static inline int8 dnnopt_dot8(const int8 sums, const int8 natural, const int8 whole) {
  return sums + (natural & 255) * ((whole << 24) >> 24) + ((natural >> 8) & 255) * ((whole << 16) >> 24) + ((natural >> 16) & 255) * ((whole << 8) >> 24) + ((natural >> 24) & 255) * (whole >> 24);
}
static inline int16 dnnopt_dot16(const int16 sums, const int16 natural, const int16 whole) {
  return sums + (natural & 255) * ((whole << 24) >> 24) + ((natural >> 8) & 255) * ((whole << 16) >> 24) + ((natural >> 16) & 255) * ((whole << 8) >> 24) + ((natural >> 24) & 255) * (whole >> 24);
}
#ifdef __cplusplus
)CLC"
#endif
