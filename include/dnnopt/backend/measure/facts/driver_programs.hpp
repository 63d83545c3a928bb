// Owns the finding out of whether a driver keeps compiled programs by itself.
#ifndef DNNOPT_BACKEND_MEASURE_FACTS_DRIVER_PROGRAMS_HPP
#define DNNOPT_BACKEND_MEASURE_FACTS_DRIVER_PROGRAMS_HPP

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <random>
#include <string>

#include <dnnopt/backend/opencl/context.hpp>

namespace dnnopt::opencl {

namespace detail {

/// Seconds of a small program that nobody compiled before, on its ways through a driver.
struct driver_program_times {
  double first = 0;     ///< to build it and to launch its kernel
  double again = 0;     ///< the same of another program of the same text, the less of two
  double binaries = 0;  ///< to be given the binary of that one

  /// Whether the driver keeps what it compiled and compiles anew to give a binary. On a driver that other threads keep
  /// busy the times tell less, and the answer may be no where it should be yes: the file then holds binaries too.
  [[nodiscard]] bool are_kept() const noexcept { return again < first / 2 && binaries > first / 6; }
};

inline constexpr const char* driver_probe = R"CLC(
kernel void dnnopt_probe(global float* x) {
  float4 sum = NONCE;
  for (int i = 0; i < 8; ++i) sum += vload4(i & 1, x) * sum;
  vstore4(sum, 0, x);
}
)CLC";

/// What it takes; all zero where the driver refuses something, which then is found by who needs it.
[[nodiscard]] inline driver_program_times time_driver_programs(const context& where) {
  using clock = std::chrono::steady_clock;
  std::random_device random;
  const std::string options = "-DNONCE=" + std::to_string(random()) + ".0f -w";
  const cl_device_id id = where.where().handle();
  const cl::CommandQueue queue = where.make_raw_queue(0);
  cl_int status = CL_SUCCESS;
  const cl::Memory memory(::clCreateBuffer(where.handle(), CL_MEM_READ_WRITE, 64, nullptr, &status), false);
  bool works = status == CL_SUCCESS;
  cl::Program program;
  const auto timed = [&](const auto& what) {
    const clock::time_point begin = clock::now();
    works = works && what();
    return std::chrono::duration<double>(clock::now() - begin).count();
  };
  const auto build_and_launch = [&] {
    const char* text = driver_probe;
    program = cl::Program(::clCreateProgramWithSource(where.handle(), 1, &text, nullptr, &status), false);
    if (status != CL_SUCCESS || ::clBuildProgram(program(), 1, &id, options.c_str(), nullptr, nullptr) != CL_SUCCESS)
      return false;
    const cl::Kernel kernel(::clCreateKernel(program(), "dnnopt_probe", &status), false);
    const cl_mem argument = memory();
    const std::size_t one = 1;
    return status == CL_SUCCESS && ::clSetKernelArg(kernel(), 0, sizeof argument, &argument) == CL_SUCCESS &&
           ::clEnqueueNDRangeKernel(queue(), kernel(), 1, nullptr, &one, &one, 0, nullptr, nullptr) == CL_SUCCESS &&
           ::clFinish(queue()) == CL_SUCCESS;
  };
  driver_program_times times;
  times.first = timed(build_and_launch);
  times.again = std::min(timed(build_and_launch), timed(build_and_launch));
  times.binaries = timed([&] {
    std::size_t size = 0;
    if (::clGetProgramInfo(program(), CL_PROGRAM_BINARY_SIZES, sizeof size, &size, nullptr) != CL_SUCCESS) return false;
    std::string binary(size, '\0');
    auto* bytes = reinterpret_cast<unsigned char*>(binary.data());
    return size == 0 || ::clGetProgramInfo(program(), CL_PROGRAM_BINARIES, sizeof bytes, &bytes, nullptr) == CL_SUCCESS;
  });
  return works ? times : driver_program_times{};
}

}  // namespace detail

/// Whether binaries of this driver's programs are not worth asking for: it compiles anew to give one, while a text that
/// it compiled before is ready at once, because it keeps what it compiled. Found out at a process's first call for a
/// device, by the times of a small program that nobody compiled before. Several threads may call it.
[[nodiscard]] inline bool driver_keeps_programs(const context& where) {
  static std::mutex mutex;
  static std::map<cl_device_id, bool> known;
  const std::lock_guard lock(mutex);
  const auto [place, fresh] = known.try_emplace(where.where().handle(), false);
  if (fresh) place->second = detail::time_driver_programs(where).are_kept();
  return place->second;
}

}  // namespace dnnopt::opencl

#endif  // DNNOPT_BACKEND_MEASURE_FACTS_DRIVER_PROGRAMS_HPP
