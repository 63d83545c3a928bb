#ifdef __cplusplus
R"CLC(
#endif
// Non-maximum suppression: one work-group per image and class takes the best box that is left, and drops those that overlap
// it, until enough are taken or none is left. Each work-item sees to every DNNOPT_GROUP-th box.
//
// Hooks: dnnopt_load_box(z, i, k), dnnopt_load_score(z, c, i), dnnopt_most(), dnnopt_overlap(), dnnopt_least(); scratch
// DNNOPT_LEFT (a byte for each box of each image and class), DNNOPT_TAKEN (an int for each), DNNOPT_FOUND (an int for each
// image and class).

#ifndef DNNOPT_GROUP
#define DNNOPT_GROUP 4
#endif
#ifndef DNNOPT_PARAMETERS
// Stand-alone: boxes by their corners, without limits.
#define DNNOPT_PARAMETERS __global const float* b0, __global const float* b1, __global uchar* b2, __global int* b3, __global int* b4, const int p0
#define DNNOPT_KERNEL_PARAMETERS DNNOPT_PARAMETERS
#define DNNOPT_ARGUMENTS b0, b1, b2, b3, b4, p0
#define DNNOPT_BOXES p0
#define DNNOPT_CLASSES 1
#define DNNOPT_LEFT b2
#define DNNOPT_TAKEN b3
#define DNNOPT_FOUND b4
#define DNNOPT_CENTERED 0
#define DNNOPT_LIMITED 0
static inline float dnnopt_load_box(DNNOPT_PARAMETERS, const int z, const int i, const int k) { return b0[(z * p0 + i) * 4 + k]; }
static inline float dnnopt_load_score(DNNOPT_PARAMETERS, const int z, const int c, const int i) { return b1[z * p0 + i]; }
static inline long dnnopt_most(DNNOPT_PARAMETERS) { return 8; }
static inline float dnnopt_overlap(DNNOPT_PARAMETERS) { return 0.5f; }
static inline float dnnopt_least(DNNOPT_PARAMETERS) { return 0.0f; }
#endif

// Low y and x, high y and x.
static inline float4 dnnopt_corners(DNNOPT_PARAMETERS, const int z, const int i) {
  const float a = dnnopt_load_box(DNNOPT_ARGUMENTS, z, i, 0);
  const float b = dnnopt_load_box(DNNOPT_ARGUMENTS, z, i, 1);
  const float c = dnnopt_load_box(DNNOPT_ARGUMENTS, z, i, 2);
  const float d = dnnopt_load_box(DNNOPT_ARGUMENTS, z, i, 3);
#if DNNOPT_CENTERED
  return (float4)(b - d / 2.0f, a - c / 2.0f, b + d / 2.0f, a + c / 2.0f);
#else
  return (float4)(fmin(a, c), fmin(b, d), fmax(a, c), fmax(b, d));
#endif
}

static inline int dnnopt_overlaps(const float4 a, const float4 b, const float threshold) {
#pragma OPENCL FP_CONTRACT OFF
  const float height = fmin(a.z, b.z) - fmax(a.x, b.x);
  const float width = fmin(a.w, b.w) - fmax(a.y, b.y);
  if (height <= 0.0f || width <= 0.0f) return 0;
  const float common = height * width;
  const float area_a = (a.z - a.x) * (a.w - a.y);
  const float area_b = (b.z - b.x) * (b.w - b.y);
  const float both = area_a + area_b - common;
  if (area_a <= 0.0f || area_b <= 0.0f || both <= 0.0f) return 0;
  return common / both > threshold;
}

__kernel __attribute__((reqd_work_group_size(DNNOPT_GROUP, 1, 1))) void dnnopt_kernel(DNNOPT_KERNEL_PARAMETERS) {
  const int lane = (int)get_local_id(0);
  const int pair = (int)get_group_id(0);
  const int z = pair / DNNOPT_CLASSES;
  const int c = pair % DNNOPT_CLASSES;
  __global uchar* left = DNNOPT_LEFT + (size_t)pair * DNNOPT_BOXES;
  __global int* taken = DNNOPT_TAKEN + (size_t)pair * DNNOPT_BOXES;
  __local float scores[DNNOPT_GROUP];
  __local int boxes[DNNOPT_GROUP];
  const long most = dnnopt_most(DNNOPT_ARGUMENTS);
  const float threshold = dnnopt_overlap(DNNOPT_ARGUMENTS);
  for (int i = lane; i < DNNOPT_BOXES; i += DNNOPT_GROUP) {
#if DNNOPT_LIMITED
    left[i] = (uchar)(dnnopt_load_score(DNNOPT_ARGUMENTS, z, c, i) > dnnopt_least(DNNOPT_ARGUMENTS));
#else
    left[i] = 1;
#endif
  }
  int found = 0;
  int more = most > 0;
  while (more) {
    float score = 0.0f;
    int box = -1;
    for (int i = lane; i < DNNOPT_BOXES; i += DNNOPT_GROUP) {
      if (left[i] == 0) continue;
      const float own = dnnopt_load_score(DNNOPT_ARGUMENTS, z, c, i);
      if (box < 0 || own > score) {
        score = own;
        box = i;
      }
    }
    scores[lane] = score;
    boxes[lane] = box;
    barrier(CLK_LOCAL_MEM_FENCE);
    // Of equal scores the first box is taken.
    for (int width = DNNOPT_GROUP / 2; width > 0; width /= 2) {
      if (lane < width) {
        const int other = boxes[lane + width];
        const int own = boxes[lane];
        if (other >= 0 && (own < 0 || scores[lane + width] > scores[lane] || (scores[lane + width] == scores[lane] && other < own))) {
          scores[lane] = scores[lane + width];
          boxes[lane] = other;
        }
      }
      barrier(CLK_LOCAL_MEM_FENCE);
    }
    const int best = boxes[0];
    barrier(CLK_LOCAL_MEM_FENCE);
    if (best >= 0) {
      if (lane == 0) taken[found] = best;
      ++found;
      const float4 corners = dnnopt_corners(DNNOPT_ARGUMENTS, z, best);
      for (int i = lane; i < DNNOPT_BOXES; i += DNNOPT_GROUP)
        if (left[i] != 0 && (i == best || dnnopt_overlaps(corners, dnnopt_corners(DNNOPT_ARGUMENTS, z, i), threshold))) left[i] = 0;
    }
    more = best >= 0 && found < most;
  }
  if (lane == 0) DNNOPT_FOUND[pair] = found;
}
#ifdef __cplusplus
)CLC"
#endif
