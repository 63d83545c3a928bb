#ifdef __cplusplus
R"CLC(
#endif
// The numbers of a Mersenne Twister (Matsumoto and Nishimura, 1998) in their order: one work-item writes 53 random bits for
// each of DNNOPT_COUNT numbers in [0, 1), as NumPy's legacy generator makes them of two draws.

#ifndef DNNOPT_PARAMETERS
#define DNNOPT_PARAMETERS __global ulong* b0, const int p0
#define DNNOPT_KERNEL_PARAMETERS DNNOPT_PARAMETERS
#define DNNOPT_ARGUMENTS b0, p0
#define DNNOPT_STREAM b0
#define DNNOPT_COUNT p0
#define DNNOPT_SEED 0
#endif

static inline void dnnopt_twist(__private uint* state) {
  for (int i = 0; i < 624; ++i) {
    const uint y = (state[i] & 0x80000000u) | (state[(i + 1) % 624] & 0x7fffffffu);
    state[i] = state[(i + 397) % 624] ^ (y >> 1) ^ ((y & 1u) ? 0x9908b0dfu : 0u);
  }
}

static inline uint dnnopt_tempered(uint y) {
  y ^= y >> 11;
  y ^= (y << 7) & 0x9d2c5680u;
  y ^= (y << 15) & 0xefc60000u;
  return y ^ (y >> 18);
}

__kernel void dnnopt_kernel(DNNOPT_KERNEL_PARAMETERS) {
  uint state[624];
  state[0] = (uint)DNNOPT_SEED;
  for (int i = 1; i < 624; ++i) state[i] = 1812433253u * (state[i - 1] ^ (state[i - 1] >> 30)) + (uint)i;
  int at = 624;
  for (int i = 0; i < DNNOPT_COUNT; ++i) {
    // 624 is even: both draws are of one state.
    if (at == 624) {
      dnnopt_twist(state);
      at = 0;
    }
    const ulong high = dnnopt_tempered(state[at]) >> 5;
    const ulong low = dnnopt_tempered(state[at + 1]) >> 6;
    at += 2;
    DNNOPT_STREAM[i] = (high << 26) | low;
  }
}
#ifdef __cplusplus
)CLC"
#endif
