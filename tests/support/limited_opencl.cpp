// Owns an OpenCL library whose kernel objects allow few work-items in a work-group, as registers make those of many
// GPUs do: as many as the environment variable DNNOPT_TEST_WORK_ITEMS says. All else is libOpenCL's.
//
// DNNOPT_OPENCL_LIBRARY=<this library> makes dnnopt use it.
#define CL_TARGET_OPENCL_VERSION 300
#include <CL/cl.h>
#include <dlfcn.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

extern "C" cl_int clGetKernelWorkGroupInfo(cl_kernel kernel, cl_device_id device, cl_kernel_work_group_info what,
                                           std::size_t size, void* to, std::size_t* needed) {
  static const auto real =
      reinterpret_cast<decltype(&clGetKernelWorkGroupInfo)>(::dlsym(RTLD_NEXT, "clGetKernelWorkGroupInfo"));
  const char* const most = std::getenv("DNNOPT_TEST_WORK_ITEMS");
  if (real == nullptr || most == nullptr) {
    std::fprintf(stderr, "no clGetKernelWorkGroupInfo behind this one, or DNNOPT_TEST_WORK_ITEMS is not set\n");
    std::abort();
  }
  const cl_int status = real(kernel, device, what, size, to, needed);
  if (status != CL_SUCCESS || to == nullptr || what != CL_KERNEL_WORK_GROUP_SIZE) return status;
  auto& allowed = *static_cast<std::size_t*>(to);
  allowed = std::min<std::size_t>(allowed, std::strtoul(most, nullptr, 10));
  return status;
}
