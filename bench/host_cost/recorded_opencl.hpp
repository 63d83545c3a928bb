// Owns the interface of the recording OpenCL library: what was enqueued, to be enqueued again by a bare loop.
#ifndef DNNOPT_BENCH_RECORDED_OPENCL_HPP
#define DNNOPT_BENCH_RECORDED_OPENCL_HPP

#include <cstddef>

extern "C" {

/// Forgets what was recorded and records every command from now on, or stops recording. Kernels, memory objects and
/// host memory must stay as they are until the last replay.
void recorded_opencl_record(int on);
/// Commands recorded: launches, writes, reads.
std::size_t recorded_opencl_commands();
/// Enqueues all of them as they were, without flushes between, and finishes their queue. Returns OpenCL's first error.
int recorded_opencl_replay();
}

#endif  // DNNOPT_BENCH_RECORDED_OPENCL_HPP
