#ifdef __cplusplus
R"CLC(
#endif
// Recurrent layers (RNN, GRU, LSTM): one work-group per image and direction goes through all steps. States lie in local
// memory; each work-item computes some hidden units, and waits where the next step (or a GRU's candidate) needs all.
//
// Hooks: dnnopt_load_x(t, z, k), dnnopt_load_w(d, g, k), dnnopt_load_r(d, g, j), dnnopt_load_bias(d, g) with the
// recurrent biases behind the others, dnnopt_load_length(z), dnnopt_first_state(d, z, j), dnnopt_first_cell(d, z, j),
// dnnopt_peephole(d, p), dnnopt_f, dnnopt_g, dnnopt_h(d, x): the activations; dnnopt_limit(x): the clip.
// DNNOPT_STORE_Y(t, d, z, j, value), DNNOPT_STORE_STATE(d, z, j, value), DNNOPT_STORE_CELL: what is stored.

#ifndef DNNOPT_GATES
// How many gate matrices are stacked: 1 RNN, 3 GRU, 4 LSTM.
#define DNNOPT_GATES 4
#endif
#ifndef DNNOPT_PARAMETERS
// Stand-alone: one image, one direction, no biases.
#define DNNOPT_PARAMETERS __global const float* b0, __global const float* b1, __global const float* b2, __global float* b3, const int p0
#define DNNOPT_KERNEL_PARAMETERS DNNOPT_PARAMETERS
#define DNNOPT_ARGUMENTS b0, b1, b2, b3, p0
#define DNNOPT_STEPS p0
#define DNNOPT_HIDDEN 8
#define DNNOPT_INPUTS 8
#define DNNOPT_BACKWARDS(d) 0
#define DNNOPT_VARIANT 0
#define DNNOPT_STORE_Y(t, d, z, j, value) b3[(t) * DNNOPT_HIDDEN + (j)] = value
#define DNNOPT_STORE_STATE(d, z, j, value)
#define DNNOPT_STORE_CELL(d, z, j, value)
static inline float dnnopt_load_x(DNNOPT_PARAMETERS, const int t, const int z, const int k) { return b0[t * DNNOPT_INPUTS + k]; }
static inline float dnnopt_load_w(DNNOPT_PARAMETERS, const int d, const int g, const int k) { return b1[g * DNNOPT_INPUTS + k]; }
static inline float dnnopt_load_r(DNNOPT_PARAMETERS, const int d, const int g, const int j) { return b2[g * DNNOPT_HIDDEN + j]; }
static inline float dnnopt_load_bias(DNNOPT_PARAMETERS, const int d, const int g) { return 0.0f; }
static inline int dnnopt_load_length(DNNOPT_PARAMETERS, const int z) { return p0; }
static inline float dnnopt_first_state(DNNOPT_PARAMETERS, const int d, const int z, const int j) { return 0.0f; }
static inline float dnnopt_first_cell(DNNOPT_PARAMETERS, const int d, const int z, const int j) { return 0.0f; }
static inline float dnnopt_peephole(DNNOPT_PARAMETERS, const int d, const int p) { return 0.0f; }
static inline float dnnopt_f(const int d, const float x) { return 1.0f / (1.0f + exp(-x)); }
static inline float dnnopt_g(const int d, const float x) { return tanh(x); }
static inline float dnnopt_h(const int d, const float x) { return tanh(x); }
static inline float dnnopt_limit(const float x) { return x; }
#endif

// Sums run in lanes side by side, so that they vectorize without reordering.
#define DNNOPT_LANES 8
#define DNNOPT_ROWS (DNNOPT_GATES * DNNOPT_HIDDEN)

static inline float dnnopt_from_input(DNNOPT_PARAMETERS, const int d, const int g, const int t, const int z) {
  float lanes[DNNOPT_LANES];
  for (int l = 0; l < DNNOPT_LANES; ++l) lanes[l] = 0.0f;
  const int whole = DNNOPT_INPUTS / DNNOPT_LANES * DNNOPT_LANES;
  for (int k = 0; k < whole; k += DNNOPT_LANES)
    for (int l = 0; l < DNNOPT_LANES; ++l) lanes[l] = fma(dnnopt_load_w(DNNOPT_ARGUMENTS, d, g, k + l), dnnopt_load_x(DNNOPT_ARGUMENTS, t, z, k + l), lanes[l]);
  for (int k = whole; k < DNNOPT_INPUTS; ++k) lanes[k - whole] = fma(dnnopt_load_w(DNNOPT_ARGUMENTS, d, g, k), dnnopt_load_x(DNNOPT_ARGUMENTS, t, z, k), lanes[k - whole]);
  float total = dnnopt_load_bias(DNNOPT_ARGUMENTS, d, g);
  for (int l = 0; l < DNNOPT_LANES; ++l) total += lanes[l];
  return total;
}

static inline float dnnopt_from_state(DNNOPT_PARAMETERS, const int d, const int g, __local const float* state) {
  float lanes[DNNOPT_LANES];
  for (int l = 0; l < DNNOPT_LANES; ++l) lanes[l] = 0.0f;
  const int whole = DNNOPT_HIDDEN / DNNOPT_LANES * DNNOPT_LANES;
  for (int j = 0; j < whole; j += DNNOPT_LANES)
    for (int l = 0; l < DNNOPT_LANES; ++l) lanes[l] = fma(dnnopt_load_r(DNNOPT_ARGUMENTS, d, g, j + l), state[j + l], lanes[l]);
  for (int j = whole; j < DNNOPT_HIDDEN; ++j) lanes[j - whole] = fma(dnnopt_load_r(DNNOPT_ARGUMENTS, d, g, j), state[j], lanes[j - whole]);
  float total = dnnopt_load_bias(DNNOPT_ARGUMENTS, d, DNNOPT_ROWS + g);
  for (int l = 0; l < DNNOPT_LANES; ++l) total += lanes[l];
  return total;
}

__kernel void dnnopt_kernel(DNNOPT_KERNEL_PARAMETERS) {
  const int first = (int)get_local_id(0);
  const int group = (int)get_local_size(0);
  const int z = (int)get_group_id(1);
  const int d = (int)get_group_id(2);
  // The state of this step and of the next, which take turns.
  __local float states[2 * DNNOPT_HIDDEN];
#if DNNOPT_GATES == 4
  __local float cells[DNNOPT_HIDDEN];
#endif
#if DNNOPT_GATES == 3
  __local float gated[DNNOPT_HIDDEN];
  __local float update[DNNOPT_HIDDEN];
#endif
  const int length = clamp((int)dnnopt_load_length(DNNOPT_ARGUMENTS, z), 0, (int)(DNNOPT_STEPS));
  for (int u = first; u < DNNOPT_HIDDEN; u += group) {
    states[u] = dnnopt_first_state(DNNOPT_ARGUMENTS, d, z, u);
#if DNNOPT_GATES == 4
    cells[u] = dnnopt_first_cell(DNNOPT_ARGUMENTS, d, z, u);
#endif
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int step = 0; step < length; ++step) {
    const int t = DNNOPT_BACKWARDS(d) ? length - 1 - step : step;
    __local const float* now = states + step % 2 * DNNOPT_HIDDEN;
    __local float* next = states + (step + 1) % 2 * DNNOPT_HIDDEN;
#if DNNOPT_GATES == 1
    for (int u = first; u < DNNOPT_HIDDEN; u += group)
      next[u] = dnnopt_f(d, dnnopt_limit(dnnopt_from_input(DNNOPT_ARGUMENTS, d, u, t, z) + dnnopt_from_state(DNNOPT_ARGUMENTS, d, u, now)));
#elif DNNOPT_GATES == 3
    for (int u = first; u < DNNOPT_HIDDEN; u += group) {
      update[u] = dnnopt_f(d, dnnopt_limit(dnnopt_from_input(DNNOPT_ARGUMENTS, d, u, t, z) + dnnopt_from_state(DNNOPT_ARGUMENTS, d, u, now)));
      const int g = DNNOPT_HIDDEN + u;
      const float reset = dnnopt_f(d, dnnopt_limit(dnnopt_from_input(DNNOPT_ARGUMENTS, d, g, t, z) + dnnopt_from_state(DNNOPT_ARGUMENTS, d, g, now)));
#if DNNOPT_VARIANT
      gated[u] = reset;
#else
      gated[u] = reset * now[u];
#endif
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int u = first; u < DNNOPT_HIDDEN; u += group) {
      const int g = 2 * DNNOPT_HIDDEN + u;
#if DNNOPT_VARIANT
      const float state = gated[u] * dnnopt_from_state(DNNOPT_ARGUMENTS, d, g, now);
#else
      const float state = dnnopt_from_state(DNNOPT_ARGUMENTS, d, g, gated);
#endif
      const float candidate = dnnopt_g(d, dnnopt_limit(dnnopt_from_input(DNNOPT_ARGUMENTS, d, g, t, z) + state));
      next[u] = (1.0f - update[u]) * candidate + update[u] * now[u];
    }
#else
    for (int u = first; u < DNNOPT_HIDDEN; u += group) {
      float gates[4];
      for (int i = 0; i < 4; ++i) {
        const int g = i * DNNOPT_HIDDEN + u;
        gates[i] = dnnopt_from_input(DNNOPT_ARGUMENTS, d, g, t, z) + dnnopt_from_state(DNNOPT_ARGUMENTS, d, g, now);
      }
      const float input = dnnopt_f(d, dnnopt_limit(gates[0] + dnnopt_peephole(DNNOPT_ARGUMENTS, d, u) * cells[u]));
#if DNNOPT_VARIANT
      const float forget = 1.0f - input;
#else
      const float forget = dnnopt_f(d, dnnopt_limit(gates[2] + dnnopt_peephole(DNNOPT_ARGUMENTS, d, 2 * DNNOPT_HIDDEN + u) * cells[u]));
#endif
      const float cell = forget * cells[u] + input * dnnopt_g(d, dnnopt_limit(gates[3]));
      const float output = dnnopt_f(d, dnnopt_limit(gates[1] + dnnopt_peephole(DNNOPT_ARGUMENTS, d, DNNOPT_HIDDEN + u) * cell));
      cells[u] = cell;
      next[u] = output * dnnopt_h(d, cell);
    }
#endif
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int u = first; u < DNNOPT_HIDDEN; u += group) DNNOPT_STORE_Y(t, d, z, u, next[u]);
  }
  for (int t = length; t < DNNOPT_STEPS; ++t)
    for (int u = first; u < DNNOPT_HIDDEN; u += group) DNNOPT_STORE_Y(t, d, z, u, 0.0f);
  for (int u = first; u < DNNOPT_HIDDEN; u += group) {
    DNNOPT_STORE_STATE(d, z, u, states[length % 2 * DNNOPT_HIDDEN + u]);
#if DNNOPT_GATES == 4
    DNNOPT_STORE_CELL(d, z, u, cells[u]);
#endif
  }
}
#ifdef __cplusplus
)CLC"
#endif
