// Owns the interface of the counting OpenCL library: what it says about memory objects beside OpenCL's own functions.
#ifndef DNNOPT_BENCH_COUNTED_OPENCL_HPP
#define DNNOPT_BENCH_COUNTED_OPENCL_HPP

#include <cstddef>
#include <cstdint>

extern "C" {

/// A memory object with bytes of its own: no sub-buffer and no image over a buffer.
struct counted_object {
  std::uint64_t bytes;  ///< CL_MEM_SIZE
  int transferred;      ///< whether the host wrote or read it, or a part of it, since the last mark
};

/// Begins a phase: objects alive now are old ones, the peak is what is alive now, nothing is transferred.
void counted_opencl_mark();
/// Bytes of all objects alive.
std::uint64_t counted_opencl_live_bytes();
/// The most bytes alive at one time since the last mark.
std::uint64_t counted_opencl_peak_bytes();
/// Writes up to `most` objects made since the last mark and alive now; returns how many there are.
std::size_t counted_opencl_new_objects(counted_object* into, std::size_t most);
}

#endif  // DNNOPT_BENCH_COUNTED_OPENCL_HPP
