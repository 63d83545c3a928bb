// Owns the way through other memory between two launches, so that caches hold what an inference leaves there.
#ifndef DNNOPT_BACKEND_MEASURE_RUNS_CACHE_SWEEP_HPP
#define DNNOPT_BACKEND_MEASURE_RUNS_CACHE_SWEEP_HPP

#include <cstddef>
#include <cstdint>

#include <dnnopt/backend/opencl/context.hpp>

namespace dnnopt {

/// What a sweep does to the memory that it goes through. What an inference has besides a kernel's own is mostly weights
/// on large caches, which are read, and mostly intermediate tensors on small ones, which are written too.
enum class sweep_access : std::uint8_t { read, write };

/// Goes through memory of its own, so that what a kernel finds in caches is what the rest of an inference left there
/// and not its own former run.
class cache_sweep {
 public:
  /// Errors: opencl_call; out_of_device_memory.
  cache_sweep(const opencl::context& where, std::size_t bytes, sweep_access access)
      : queue_(where.make_queue()), items_((bytes / 16 / group + 1) * group) {
    const char* source = access == sweep_access::write
                             ? "__kernel void dnnopt_sweep(__global float4* x) { x[get_global_id(0)] += 1.0f; }"
                             : "__kernel void dnnopt_sweep(__global float4* x) {\n"
                               "  const float4 v = x[get_global_id(0)];\n"
                               "  if (v.x + v.y + v.z + v.w == 1.25e38f) x[get_global_id(0)] = 0.0f;\n"  // never
                               "}";
    const cl_device_id device = where.where().handle();
    cl_int status = CL_SUCCESS;
    program_ = cl::Program(::clCreateProgramWithSource(where.handle(), 1, &source, nullptr, &status), false);
    opencl::check(status, "clCreateProgramWithSource");
    opencl::check(::clBuildProgram(program_(), 1, &device, "", nullptr, nullptr), "clBuildProgram");
    kernel_ = cl::Kernel(::clCreateKernel(program_(), "dnnopt_sweep", &status), false);
    opencl::check(status, "clCreateKernel");
    memory_ = cl::Buffer(::clCreateBuffer(where.handle(), CL_MEM_READ_WRITE, items_ * 16, nullptr, &status), false);
    opencl::check(status, "clCreateBuffer");
    const cl_mem memory = memory_();
    opencl::check(::clSetKernelArg(kernel_(), 0, sizeof(memory), &memory), "clSetKernelArg");
    const cl_float zero = 0.0F;
    opencl::check(
        ::clEnqueueFillBuffer(queue_.handle(), memory, &zero, sizeof zero, 0, items_ * 16, 0, nullptr, nullptr),
        "clEnqueueFillBuffer");
    queue_.finish();
  }
  cache_sweep(const cache_sweep&) = delete;
  cache_sweep& operator=(const cache_sweep&) = delete;

  /// Sweeps and waits for the end of it.
  void run() {
    enqueue(queue_);
    queue_.finish();
  }
  /// Enqueues a sweep.
  void enqueue(opencl::command_queue& queue) {
    queue.launch(kernel_(), {1, {items_, 1, 1}, {group, 0, 0}}, "dnnopt_sweep");
  }

 private:
  static constexpr std::size_t group = 64;

  opencl::command_queue queue_;
  std::size_t items_;
  cl::Program program_;
  cl::Kernel kernel_;
  cl::Buffer memory_;
};

}  // namespace dnnopt

#endif  // DNNOPT_BACKEND_MEASURE_RUNS_CACHE_SWEEP_HPP
