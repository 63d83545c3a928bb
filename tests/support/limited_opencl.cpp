// Owns an OpenCL library that is stricter than those at hand, as drivers of GPUs are. Kernel objects allow few
// work-items in a work-group, as registers make those of many GPUs do: as many as the environment variable
// DNNOPT_TEST_WORK_ITEMS says. An argument that was an address once and becomes an object makes launches fail, as with
// NVIDIA's driver. All else is libOpenCL's.
//
// DNNOPT_OPENCL_LIBRARY=<this library> makes dnnopt use it.
#define CL_TARGET_OPENCL_VERSION 300
#include <CL/cl.h>
#include <dlfcn.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <set>

namespace {

template <class Function>
Function real(const char* name) {
  void* const found = ::dlsym(RTLD_NEXT, name);
  if (found == nullptr) {
    std::fprintf(stderr, "no %s behind this library\n", name);
    std::abort();
  }
  return reinterpret_cast<Function>(found);
}

struct argument_kinds {
  std::set<cl_uint> addresses;  // that were one at any time
  std::set<cl_uint> objects;    // and are none any more
};
std::mutex mutex;
std::map<cl_kernel, argument_kinds> kinds;

}  // namespace

extern "C" cl_int clSetKernelArgSVMPointer(cl_kernel kernel, cl_uint index, const void* address) {
  static const auto set = real<decltype(&clSetKernelArgSVMPointer)>("clSetKernelArgSVMPointer");
  const std::lock_guard lock(mutex);
  kinds[kernel].addresses.insert(index);
  kinds[kernel].objects.erase(index);
  return set(kernel, index, address);
}

extern "C" cl_int clSetKernelArg(cl_kernel kernel, cl_uint index, std::size_t size, const void* value) {
  static const auto set = real<decltype(&clSetKernelArg)>("clSetKernelArg");
  const std::lock_guard lock(mutex);
  if (const auto known = kinds.find(kernel); known != kinds.end() && known->second.addresses.contains(index))
    known->second.objects.insert(index);
  return set(kernel, index, size, value);
}

extern "C" cl_int clReleaseKernel(cl_kernel kernel) {
  static const auto release = real<decltype(&clReleaseKernel)>("clReleaseKernel");
  const std::lock_guard lock(mutex);
  kinds.erase(kernel);
  return release(kernel);
}

extern "C" cl_int clEnqueueNDRangeKernel(cl_command_queue queue, cl_kernel kernel, cl_uint dimensions,
                                         const std::size_t* offset, const std::size_t* global, const std::size_t* local,
                                         cl_uint waits, const cl_event* wait_list, cl_event* event) {
  static const auto enqueue = real<decltype(&clEnqueueNDRangeKernel)>("clEnqueueNDRangeKernel");
  {
    const std::lock_guard lock(mutex);
    if (const auto known = kinds.find(kernel); known != kinds.end() && !known->second.objects.empty())
      return CL_INVALID_KERNEL_ARGS;
  }
  return enqueue(queue, kernel, dimensions, offset, global, local, waits, wait_list, event);
}

extern "C" cl_int clGetKernelWorkGroupInfo(cl_kernel kernel, cl_device_id device, cl_kernel_work_group_info what,
                                           std::size_t size, void* to, std::size_t* needed) {
  static const auto ask = real<decltype(&clGetKernelWorkGroupInfo)>("clGetKernelWorkGroupInfo");
  const char* const most = std::getenv("DNNOPT_TEST_WORK_ITEMS");
  if (most == nullptr) {
    std::fprintf(stderr, "DNNOPT_TEST_WORK_ITEMS is not set\n");
    std::abort();
  }
  const cl_int status = ask(kernel, device, what, size, to, needed);
  if (status != CL_SUCCESS || to == nullptr || what != CL_KERNEL_WORK_GROUP_SIZE) return status;
  auto& allowed = *static_cast<std::size_t*>(to);
  allowed = std::min<std::size_t>(allowed, std::strtoul(most, nullptr, 10));
  return status;
}
