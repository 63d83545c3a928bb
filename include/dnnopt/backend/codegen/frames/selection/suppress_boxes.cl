#ifdef __cplusplus
R"CLC(
#endif
// Non-maximum suppression: one work-group per image and class goes through the boxes from the highest score on (of equal
// scores the first box first) and takes each that overlaps none taken before, until enough are taken.
//
// Where DNNOPT_GROUP is 1, one work-item sorts the boxes by merging and holds each against those taken, sixteen at a time, of
// which it asks exactly only where one may overlap. Else another kernel has written the boxes in their order to DNNOPT_SORTED,
// and a work-group takes as many as it has work-items at a time: each is first held against all taken before, then against
// those of its own block.
//
// Hooks: dnnopt_load_box(z, i, k), dnnopt_load_score(z, c, i), dnnopt_most(), dnnopt_overlap(), dnnopt_least(); scratch
// DNNOPT_SORTED and DNNOPT_TAKEN (an int for each box of each image and class), DNNOPT_FOUND (an int for each image and
// class), and where DNNOPT_GROUP is 1 DNNOPT_MERGED (as DNNOPT_SORTED) and DNNOPT_KEPT (four floats for each box).

#ifndef DNNOPT_GROUP
#define DNNOPT_GROUP 4
#endif
#ifndef DNNOPT_PARAMETERS
// Stand-alone: boxes by their corners, without limits.
#include "box_order.cl"
#define dnnopt_quotient(a, b) ((a) / (b))
#define DNNOPT_PARAMETERS __global const float* b0, __global const float* b1, __global int* b2, __global int* b3, __global int* b4, __global int* b5, __global float* b6, const int p0
#define DNNOPT_KERNEL_PARAMETERS DNNOPT_PARAMETERS
#define DNNOPT_ARGUMENTS b0, b1, b2, b3, b4, b5, b6, p0
#define DNNOPT_BOXES p0
#define DNNOPT_CLASSES 1
#define DNNOPT_SORTED b2
#define DNNOPT_TAKEN b3
#define DNNOPT_FOUND b4
#define DNNOPT_MERGED b5
#define DNNOPT_KEPT b6
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
  return dnnopt_quotient(common, both) > threshold;
}

static inline int dnnopt_may_be_taken(DNNOPT_PARAMETERS, const int z, const int c, const int i) {
#if DNNOPT_LIMITED
  return dnnopt_load_score(DNNOPT_ARGUMENTS, z, c, i) > dnnopt_least(DNNOPT_ARGUMENTS);
#else
  return 1;
#endif
}

#if DNNOPT_GROUP == 1
// Sorts what may be taken of `from`, `count` boxes, and returns where the boxes lie then: `from` or `to`.
static inline __global const int* dnnopt_sort(DNNOPT_PARAMETERS, const int z, const int c, __global int* from,
                                              __global int* to, const int count) {
  for (int width = 1; width < count; width *= 2) {
    for (int begin = 0; begin < count; begin += 2 * width) {
      const int middle = min(begin + width, count);
      const int end = min(begin + 2 * width, count);
      int a = begin;
      int b = middle;
      for (int i = begin; i < end; ++i) {
        int second = b < end;
        if (second && a < middle) {
          const uint early = dnnopt_order_key(dnnopt_load_score(DNNOPT_ARGUMENTS, z, c, from[a]));
          const uint late = dnnopt_order_key(dnnopt_load_score(DNNOPT_ARGUMENTS, z, c, from[b]));
          second = late > early;
        }
        to[i] = second ? from[b++] : from[a++];
      }
    }
    __global int* const sorted = to;
    to = from;
    from = sorted;
  }
  return from;
}

// Whether one of `count` kept boxes, whose corners lie in four planes, overlaps another.
static inline int dnnopt_overlaps_any(__global const float* kept, const int plane, const int count, const float4 box,
                                      const float threshold) {
  __global const float* low_x = kept + plane;
  __global const float* high_y = low_x + plane;
  __global const float* high_x = high_y + plane;
  for (int begin = 0; begin < count; begin += 16) {
    const int end = min(begin + 16, count);
    if (end - begin == 16) {
      const int16 near = (vload16(0, high_y + begin) > box.x) & (vload16(0, kept + begin) < box.z) &
                         (vload16(0, high_x + begin) > box.y) & (vload16(0, low_x + begin) < box.w);
      if (!any(near)) continue;
    }
    for (int i = begin; i < end; ++i)
      if (dnnopt_overlaps((float4)(kept[i], low_x[i], high_y[i], high_x[i]), box, threshold)) return 1;
  }
  return 0;
}

__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void dnnopt_kernel(DNNOPT_KERNEL_PARAMETERS) {
  const int pair = (int)get_group_id(0);
  const int z = pair / DNNOPT_CLASSES;
  const int c = pair % DNNOPT_CLASSES;
  const size_t own = (size_t)pair * DNNOPT_BOXES;
  __global int* candidates = DNNOPT_SORTED + own;
  __global int* taken = DNNOPT_TAKEN + own;
  __global float* kept = DNNOPT_KEPT + 4 * own;
  int count = 0;
  for (int i = 0; i < DNNOPT_BOXES; ++i)
    if (dnnopt_may_be_taken(DNNOPT_ARGUMENTS, z, c, i)) candidates[count++] = i;
  __global const int* sorted = dnnopt_sort(DNNOPT_ARGUMENTS, z, c, candidates, DNNOPT_MERGED + own, count);
  const long most = dnnopt_most(DNNOPT_ARGUMENTS);
  const float threshold = dnnopt_overlap(DNNOPT_ARGUMENTS);
  int found = 0;
  for (int at = 0; at < count && found < most; ++at) {
    const int box = sorted[at];
    const float4 corners = dnnopt_corners(DNNOPT_ARGUMENTS, z, box);
    if (dnnopt_overlaps_any(kept, DNNOPT_BOXES, found, corners, threshold)) continue;
    taken[found] = box;
    kept[found] = corners.x;
    kept[found + DNNOPT_BOXES] = corners.y;
    kept[found + 2 * DNNOPT_BOXES] = corners.z;
    kept[found + 3 * DNNOPT_BOXES] = corners.w;
    ++found;
  }
  DNNOPT_FOUND[pair] = found;
}
#else
__kernel __attribute__((reqd_work_group_size(DNNOPT_GROUP, 1, 1))) void dnnopt_kernel(DNNOPT_KERNEL_PARAMETERS) {
  __local float4 held[DNNOPT_GROUP];
  __local int state[DNNOPT_GROUP];
  const int lane = (int)get_local_id(0);
  const int pair = (int)get_group_id(0);
  const int z = pair / DNNOPT_CLASSES;
  const int c = pair % DNNOPT_CLASSES;
  __global const int* sorted = DNNOPT_SORTED + (size_t)pair * DNNOPT_BOXES;
  __global int* taken = DNNOPT_TAKEN + (size_t)pair * DNNOPT_BOXES;
  int count = 0;
  for (int i = lane; i < DNNOPT_BOXES; i += DNNOPT_GROUP) count += dnnopt_may_be_taken(DNNOPT_ARGUMENTS, z, c, i);
  state[lane] = count;
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int width = DNNOPT_GROUP / 2; width > 0; width /= 2) {
    if (lane < width) state[lane] += state[lane + width];
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  count = state[0];
  barrier(CLK_LOCAL_MEM_FENCE);
  const long most = dnnopt_most(DNNOPT_ARGUMENTS);
  const float threshold = dnnopt_overlap(DNNOPT_ARGUMENTS);
  int found = 0;
  for (int begin = 0; begin < count && found < most; begin += DNNOPT_GROUP) {
    const int box = begin + lane < count ? sorted[begin + lane] : -1;
    const float4 corners = box >= 0 ? dnnopt_corners(DNNOPT_ARGUMENTS, z, box) : (float4)(0.0f);
    int left = box >= 0;
    for (int tile = 0; tile < found; tile += DNNOPT_GROUP) {
      const int size = min(DNNOPT_GROUP, found - tile);
      if (lane < size) held[lane] = dnnopt_corners(DNNOPT_ARGUMENTS, z, taken[tile + lane]);
      barrier(CLK_LOCAL_MEM_FENCE);
      for (int i = 0; i < size && left; ++i) left = !dnnopt_overlaps(held[i], corners, threshold);
      barrier(CLK_LOCAL_MEM_FENCE);
    }
    held[lane] = corners;
    state[lane] = left;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int i = 0; i < DNNOPT_GROUP && found < most; ++i) {
      // All read the same, for what is written meanwhile stands behind it.
      if (state[i] == 0) continue;
      if (lane == i) taken[found] = box;
      ++found;
      if (lane > i && state[lane] != 0 && dnnopt_overlaps(held[i], corners, threshold)) state[lane] = 0;
      barrier(CLK_LOCAL_MEM_FENCE);
    }
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
  }
  if (lane == 0) DNNOPT_FOUND[pair] = found;
}
#endif
#ifdef __cplusplus
)CLC"
#endif
