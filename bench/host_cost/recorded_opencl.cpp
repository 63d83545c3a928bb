// Owns an OpenCL library that records launches and transfers at the API and enqueues them again in a bare loop. It
// defines the functions that enqueue them, forwards to libOpenCL, and leaves all other functions to libOpenCL.
//
// DNNOPT_OPENCL_LIBRARY=<this library> makes dnnopt use it. It knows nothing of dnnopt.
#define CL_TARGET_OPENCL_VERSION 300
#include "recorded_opencl.hpp"

#include <CL/cl.h>
#include <dlfcn.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace {

enum class command_kind : std::uint8_t { launch, write, read };

/// One command with its arguments; plain data, so that a replay reads nothing but this.
struct command {
  command_kind kind;
  cl_command_queue queue;
  cl_kernel kernel;
  cl_uint dimensions;
  bool has_local;
  std::array<std::size_t, 3> global;
  std::array<std::size_t, 3> local;
  cl_mem memory;
  std::size_t offset;
  std::size_t bytes;
  void* host;
};

bool recording = false;
std::vector<command> commands;

/// The function of libOpenCL behind the one of the same name here.
template <class Function>
Function* next(const char* name) {
  void* const found = ::dlsym(RTLD_NEXT, name);
  if (found == nullptr) {
    std::fprintf(stderr, "libOpenCL has no %s\n", name);
    std::abort();
  }
  return reinterpret_cast<Function*>(found);
}

decltype(&clEnqueueNDRangeKernel) launch_of_driver() {
  static const auto function = next<decltype(clEnqueueNDRangeKernel)>("clEnqueueNDRangeKernel");
  return function;
}
decltype(&clEnqueueWriteBuffer) write_of_driver() {
  static const auto function = next<decltype(clEnqueueWriteBuffer)>("clEnqueueWriteBuffer");
  return function;
}
decltype(&clEnqueueReadBuffer) read_of_driver() {
  static const auto function = next<decltype(clEnqueueReadBuffer)>("clEnqueueReadBuffer");
  return function;
}

}  // namespace

extern "C" {

cl_int clEnqueueNDRangeKernel(cl_command_queue queue, cl_kernel kernel, cl_uint dimensions, const size_t* offset,
                              const size_t* global, const size_t* local, cl_uint waits, const cl_event* wait_for,
                              cl_event* event) {
  if (recording) {
    command made{command_kind::launch, queue, kernel, dimensions, local != nullptr, {}, {}, nullptr, 0, 0, nullptr};
    for (cl_uint d = 0; d < dimensions; ++d) {
      made.global[d] = global[d];
      made.local[d] = local == nullptr ? 0 : local[d];
    }
    commands.push_back(made);
  }
  return launch_of_driver()(queue, kernel, dimensions, offset, global, local, waits, wait_for, event);
}

cl_int clEnqueueWriteBuffer(cl_command_queue queue, cl_mem memory, cl_bool blocking, size_t offset, size_t bytes,
                            const void* host, cl_uint waits, const cl_event* wait_for, cl_event* event) {
  if (recording)
    commands.push_back(
        {command_kind::write, queue, nullptr, 0, false, {}, {}, memory, offset, bytes, const_cast<void*>(host)});
  return write_of_driver()(queue, memory, blocking, offset, bytes, host, waits, wait_for, event);
}

cl_int clEnqueueReadBuffer(cl_command_queue queue, cl_mem memory, cl_bool blocking, size_t offset, size_t bytes,
                           void* host, cl_uint waits, const cl_event* wait_for, cl_event* event) {
  if (recording)
    commands.push_back({command_kind::read, queue, nullptr, 0, false, {}, {}, memory, offset, bytes, host});
  return read_of_driver()(queue, memory, blocking, offset, bytes, host, waits, wait_for, event);
}

void recorded_opencl_record(int on) {
  recording = on != 0;
  if (recording) commands.clear();
}

std::size_t recorded_opencl_commands() { return commands.size(); }

int recorded_opencl_replay() {
  const auto launch = launch_of_driver();
  const auto write = write_of_driver();
  const auto read = read_of_driver();
  cl_int first = CL_SUCCESS;
  for (const command& c : commands) {
    cl_int status = CL_SUCCESS;
    if (c.kind == command_kind::launch)
      status = launch(c.queue, c.kernel, c.dimensions, nullptr, c.global.data(), c.has_local ? c.local.data() : nullptr,
                      0, nullptr, nullptr);
    else if (c.kind == command_kind::write)
      status = write(c.queue, c.memory, CL_FALSE, c.offset, c.bytes, c.host, 0, nullptr, nullptr);
    else
      status = read(c.queue, c.memory, CL_FALSE, c.offset, c.bytes, c.host, 0, nullptr, nullptr);
    if (first == CL_SUCCESS) first = status;
  }
  if (!commands.empty()) {
    const cl_int status = ::clFinish(commands.front().queue);
    if (first == CL_SUCCESS) first = status;
  }
  return first;
}
}
