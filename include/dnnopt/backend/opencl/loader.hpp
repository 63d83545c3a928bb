// Owns the way to OpenCL: finds libOpenCL at run time and defines the cl* entry points that CL/opencl.hpp calls.
//
// Included in place of CL/opencl.hpp (or beside it, in any order), it lets a program use OpenCL without linking
// libOpenCL. Every entry point is an inline function of hidden visibility that forwards through one constant table per
// process; the operating system's loader fills it at the first call. Hidden, so that the OpenCL library and its drivers
// never see our names. DNNOPT_LINK_OPENCL (always set on Windows) turns all of this off: the program then links
// libOpenCL itself.
//
// Order of search: the file that the environment variable DNNOPT_OPENCL_LIBRARY names and nothing else; the program's
// own libOpenCL if it has one (linked or preloaded); the platform's usual names.
#ifndef DNNOPT_BACKEND_OPENCL_LOADER_HPP
#define DNNOPT_BACKEND_OPENCL_LOADER_HPP

// Without CMake nobody states OpenCL's version, and its header would print a note.
#ifndef CL_HPP_TARGET_OPENCL_VERSION
#define CL_HPP_TARGET_OPENCL_VERSION 300
#endif
#ifndef CL_HPP_MINIMUM_OPENCL_VERSION
#define CL_HPP_MINIMUM_OPENCL_VERSION 200
#endif
#ifndef CL_TARGET_OPENCL_VERSION
#define CL_TARGET_OPENCL_VERSION 300
#endif

#include <CL/opencl.hpp>

#include <string>

#include <dnnopt/error.hpp>

#if defined(_WIN32) && !defined(DNNOPT_LINK_OPENCL)
#define DNNOPT_LINK_OPENCL 1
#endif

#ifndef DNNOPT_LINK_OPENCL

#include <dlfcn.h>

#include <cstdlib>
#include <tuple>
#include <type_traits>

// clang-format off
// X(name, number of parameters), by the OpenCL version that brought the function.
#define DNNOPT_OPENCL_1_2(X) \
  X(clGetPlatformIDs, 3) X(clGetPlatformInfo, 5) X(clGetDeviceIDs, 5) X(clGetDeviceInfo, 5) X(clCreateSubDevices, 5) \
  X(clRetainDevice, 1) X(clReleaseDevice, 1) X(clCreateContext, 6) X(clCreateContextFromType, 5) \
  X(clRetainContext, 1) X(clReleaseContext, 1) X(clGetContextInfo, 5) X(clRetainCommandQueue, 1) \
  X(clReleaseCommandQueue, 1) X(clGetCommandQueueInfo, 5) X(clCreateBuffer, 5) X(clCreateSubBuffer, 5) \
  X(clCreateImage, 6) X(clRetainMemObject, 1) X(clReleaseMemObject, 1) X(clGetSupportedImageFormats, 6) \
  X(clGetMemObjectInfo, 5) X(clGetImageInfo, 5) X(clSetMemObjectDestructorCallback, 3) X(clRetainSampler, 1) \
  X(clReleaseSampler, 1) X(clGetSamplerInfo, 5) X(clCreateProgramWithSource, 5) X(clCreateProgramWithBinary, 7) \
  X(clCreateProgramWithBuiltInKernels, 5) X(clRetainProgram, 1) X(clReleaseProgram, 1) X(clBuildProgram, 6) \
  X(clCompileProgram, 9) X(clLinkProgram, 9) X(clUnloadPlatformCompiler, 1) X(clGetProgramInfo, 5) \
  X(clGetProgramBuildInfo, 6) X(clCreateKernel, 3) X(clCreateKernelsInProgram, 4) X(clRetainKernel, 1) \
  X(clReleaseKernel, 1) X(clSetKernelArg, 4) X(clGetKernelInfo, 5) X(clGetKernelArgInfo, 6) \
  X(clGetKernelWorkGroupInfo, 6) X(clWaitForEvents, 2) X(clGetEventInfo, 5) X(clCreateUserEvent, 2) \
  X(clRetainEvent, 1) X(clReleaseEvent, 1) X(clSetUserEventStatus, 2) X(clSetEventCallback, 4) \
  X(clGetEventProfilingInfo, 5) X(clFlush, 1) X(clFinish, 1) X(clEnqueueReadBuffer, 9) X(clEnqueueReadBufferRect, 14) \
  X(clEnqueueWriteBuffer, 9) X(clEnqueueWriteBufferRect, 14) X(clEnqueueFillBuffer, 9) X(clEnqueueCopyBuffer, 9) \
  X(clEnqueueCopyBufferRect, 13) X(clEnqueueReadImage, 11) X(clEnqueueWriteImage, 11) X(clEnqueueFillImage, 8) \
  X(clEnqueueCopyImage, 9) X(clEnqueueCopyImageToBuffer, 9) X(clEnqueueCopyBufferToImage, 9) \
  X(clEnqueueMapBuffer, 10) X(clEnqueueMapImage, 12) X(clEnqueueUnmapMemObject, 6) X(clEnqueueMigrateMemObjects, 7) \
  X(clEnqueueNDRangeKernel, 9) X(clEnqueueNativeKernel, 10) X(clEnqueueMarkerWithWaitList, 4) \
  X(clEnqueueBarrierWithWaitList, 4) X(clGetExtensionFunctionAddressForPlatform, 2)

// Deprecated functions that CL/opencl.hpp calls for devices older than OpenCL 2.0, and those of cl_gl.h.
#define DNNOPT_OPENCL_OLD(X) \
  X(clCreateImage2D, 8) X(clCreateImage3D, 10) X(clEnqueueMarker, 2) X(clEnqueueWaitForEvents, 3) \
  X(clEnqueueBarrier, 1) X(clUnloadCompiler, 0) X(clGetExtensionFunctionAddress, 1) X(clCreateCommandQueue, 4) \
  X(clCreateSampler, 5) X(clEnqueueTask, 5) X(clCreateFromGLBuffer, 4) X(clCreateFromGLTexture, 6) \
  X(clCreateFromGLRenderbuffer, 4) X(clGetGLObjectInfo, 3) X(clGetGLTextureInfo, 5) X(clEnqueueAcquireGLObjects, 6) \
  X(clEnqueueReleaseGLObjects, 6) X(clCreateFromGLTexture2D, 6) X(clCreateFromGLTexture3D, 6)

#ifdef CL_VERSION_2_0
#define DNNOPT_OPENCL_2_0(X) \
  X(clCreateCommandQueueWithProperties, 4) X(clCreatePipe, 6) X(clGetPipeInfo, 5) X(clSVMAlloc, 4) X(clSVMFree, 2) \
  X(clCreateSamplerWithProperties, 3) X(clSetKernelArgSVMPointer, 3) X(clSetKernelExecInfo, 4) X(clEnqueueSVMFree, 8) \
  X(clEnqueueSVMMemcpy, 8) X(clEnqueueSVMMemFill, 8) X(clEnqueueSVMMap, 8) X(clEnqueueSVMUnmap, 5)
#else
#define DNNOPT_OPENCL_2_0(X)
#endif
#ifdef CL_VERSION_2_1
#define DNNOPT_OPENCL_2_1(X) \
  X(clSetDefaultDeviceCommandQueue, 3) X(clGetDeviceAndHostTimer, 3) X(clGetHostTimer, 2) X(clCreateProgramWithIL, 4) \
  X(clCloneKernel, 2) X(clGetKernelSubGroupInfo, 8) X(clEnqueueSVMMigrateMem, 8)
#else
#define DNNOPT_OPENCL_2_1(X)
#endif
#ifdef CL_VERSION_2_2
#define DNNOPT_OPENCL_2_2(X) X(clSetProgramReleaseCallback, 3) X(clSetProgramSpecializationConstant, 4)
#else
#define DNNOPT_OPENCL_2_2(X)
#endif
#ifdef CL_VERSION_3_0
#define DNNOPT_OPENCL_3_0(X) \
  X(clSetContextDestructorCallback, 3) X(clCreateBufferWithProperties, 6) X(clCreateImageWithProperties, 7)
#else
#define DNNOPT_OPENCL_3_0(X)
#endif
#define DNNOPT_OPENCL_ALL(X) \
  DNNOPT_OPENCL_1_2(X) DNNOPT_OPENCL_OLD(X) DNNOPT_OPENCL_2_0(X) DNNOPT_OPENCL_2_1(X) DNNOPT_OPENCL_2_2(X) \
  DNNOPT_OPENCL_3_0(X)
// clang-format on

#if defined(__GNUC__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
#endif

namespace dnnopt::opencl::detail {

/// Addresses of the OpenCL functions; a function that the library lacks stays null.
struct function_table {
#define DNNOPT_OPENCL_MEMBER(name, arity) decltype(&::name) name = nullptr;
  DNNOPT_OPENCL_ALL(DNNOPT_OPENCL_MEMBER)
#undef DNNOPT_OPENCL_MEMBER
  std::string library;  ///< file loaded, or "the program itself"; empty when there is none
  std::string failure;  ///< why there is none: what was tried and what the system said

  /// The library's own symbol, null when it has none; for extension functions that are exported as plain symbols.
  [[nodiscard]] void* symbol(const char* name) const noexcept { return ::dlsym(handle, name); }

  void* handle = nullptr;  ///< of dlopen; kept for the life of the process, for drivers hold threads of their own
};

/// Opens `name` and keeps it when it exports OpenCL; else adds the reason to `table.failure`.
inline bool open_library(function_table& table, const char* name) {
  ::dlerror();
  void* handle = ::dlopen(name, RTLD_NOW | RTLD_LOCAL);
  if (handle != nullptr && ::dlsym(handle, "clGetPlatformIDs") != nullptr) {
    table.handle = handle;
    table.library = name;
    return true;
  }
  const char* reason = handle != nullptr ? "it exports no clGetPlatformIDs" : ::dlerror();
  if (handle != nullptr) ::dlclose(handle);
  if (!table.failure.empty()) table.failure += "; ";
  table.failure += std::string(name) + ": " + (reason != nullptr ? reason : "cannot be opened");
  return false;
}

inline function_table load_functions() {
  function_table table;
  if (const char* chosen = std::getenv("DNNOPT_OPENCL_LIBRARY"); chosen != nullptr && *chosen != '\0') {
    open_library(table, chosen);
  } else if (::dlsym(RTLD_DEFAULT, "clGetPlatformIDs") != nullptr) {
    table.handle = RTLD_DEFAULT;
    table.library = "the program itself";
  } else {
#if defined(__APPLE__)
    constexpr const char* names[] = {"/System/Library/Frameworks/OpenCL.framework/OpenCL", "libOpenCL.dylib"};
#elif defined(__ANDROID__)
    constexpr const char* names[] = {
      "libOpenCL.so",
      "libGLES_mali.so",
      "libPVROCL.so",
      "libmali.so",
#if defined(__LP64__)
      "/vendor/lib64/libOpenCL.so",
      "/system/vendor/lib64/libOpenCL.so",
      "/system/lib64/libOpenCL.so",
      "/vendor/lib64/egl/libGLES_mali.so",
      "/system/vendor/lib64/egl/libGLES_mali.so",
      "/vendor/lib64/libPVROCL.so",
#else
      "/vendor/lib/libOpenCL.so",
      "/system/vendor/lib/libOpenCL.so",
      "/system/lib/libOpenCL.so",
      "/vendor/lib/egl/libGLES_mali.so",
      "/system/vendor/lib/egl/libGLES_mali.so",
      "/vendor/lib/libPVROCL.so",
#endif
    };
#else
    constexpr const char* names[] = {"libOpenCL.so.1", "libOpenCL.so"};
#endif
    for (const char* name : names) {
      if (open_library(table, name)) break;
    }
  }
  if (table.library.empty()) return table;
#define DNNOPT_OPENCL_RESOLVE(name, arity) table.name = reinterpret_cast<decltype(&::name)>(table.symbol(#name));
  DNNOPT_OPENCL_ALL(DNNOPT_OPENCL_RESOLVE)
#undef DNNOPT_OPENCL_RESOLVE
  return table;
}

/// The process's table: constant once filled, filled once by the first caller (thread-safe), never emptied.
inline const function_table& functions() {
  static const function_table table = load_functions();
  return table;
}

/// A parameter that takes the status; null for others. No templates: this is parsed wherever OpenCL is.
inline cl_int* status_in(cl_int* parameter) noexcept { return parameter; }
inline cl_int* status_in(...) noexcept { return nullptr; }

template <class F>
struct signature;
template <class R, class... A>
struct signature<R(CL_API_CALL*)(A...)> {
  using result = R;
  template <std::size_t I>
  using parameter = std::tuple_element_t<I, std::tuple<A...>>;

  /// Calls `function`; when the library lacks it, answers as OpenCL itself would: the status as result or in the
  /// last parameter where that is `cl_int*`.
  static R forward(R(CL_API_CALL* function)(A...), cl_int missing, A... arguments) {
    if (function != nullptr) return function(arguments...);
    cl_int* last = nullptr;
    ((last = status_in(arguments)), ...);
    if (last != nullptr) *last = missing;
    if constexpr (std::is_same_v<R, cl_int>) {
      return missing;
    } else if constexpr (!std::is_void_v<R>) {
      return nullptr;
    }
  }
};

/// Status of a call to a function that is not there: no library at all, or a library older than the function.
inline cl_int missing_status(const function_table& table) noexcept {
  return table.library.empty() ? CL_PLATFORM_NOT_FOUND_KHR : CL_INVALID_OPERATION;
}

}  // namespace dnnopt::opencl::detail

#define DNNOPT_OPENCL_P(name, i) ::dnnopt::opencl::detail::signature<decltype(&::name)>::parameter<i> a##i
#define DNNOPT_OPENCL_P0(n)
#define DNNOPT_OPENCL_P1(n) DNNOPT_OPENCL_P(n, 0)
#define DNNOPT_OPENCL_P2(n) DNNOPT_OPENCL_P1(n), DNNOPT_OPENCL_P(n, 1)
#define DNNOPT_OPENCL_P3(n) DNNOPT_OPENCL_P2(n), DNNOPT_OPENCL_P(n, 2)
#define DNNOPT_OPENCL_P4(n) DNNOPT_OPENCL_P3(n), DNNOPT_OPENCL_P(n, 3)
#define DNNOPT_OPENCL_P5(n) DNNOPT_OPENCL_P4(n), DNNOPT_OPENCL_P(n, 4)
#define DNNOPT_OPENCL_P6(n) DNNOPT_OPENCL_P5(n), DNNOPT_OPENCL_P(n, 5)
#define DNNOPT_OPENCL_P7(n) DNNOPT_OPENCL_P6(n), DNNOPT_OPENCL_P(n, 6)
#define DNNOPT_OPENCL_P8(n) DNNOPT_OPENCL_P7(n), DNNOPT_OPENCL_P(n, 7)
#define DNNOPT_OPENCL_P9(n) DNNOPT_OPENCL_P8(n), DNNOPT_OPENCL_P(n, 8)
#define DNNOPT_OPENCL_P10(n) DNNOPT_OPENCL_P9(n), DNNOPT_OPENCL_P(n, 9)
#define DNNOPT_OPENCL_P11(n) DNNOPT_OPENCL_P10(n), DNNOPT_OPENCL_P(n, 10)
#define DNNOPT_OPENCL_P12(n) DNNOPT_OPENCL_P11(n), DNNOPT_OPENCL_P(n, 11)
#define DNNOPT_OPENCL_P13(n) DNNOPT_OPENCL_P12(n), DNNOPT_OPENCL_P(n, 12)
#define DNNOPT_OPENCL_P14(n) DNNOPT_OPENCL_P13(n), DNNOPT_OPENCL_P(n, 13)
#define DNNOPT_OPENCL_A0
#define DNNOPT_OPENCL_A1 , a0
#define DNNOPT_OPENCL_A2 DNNOPT_OPENCL_A1, a1
#define DNNOPT_OPENCL_A3 DNNOPT_OPENCL_A2, a2
#define DNNOPT_OPENCL_A4 DNNOPT_OPENCL_A3, a3
#define DNNOPT_OPENCL_A5 DNNOPT_OPENCL_A4, a4
#define DNNOPT_OPENCL_A6 DNNOPT_OPENCL_A5, a5
#define DNNOPT_OPENCL_A7 DNNOPT_OPENCL_A6, a6
#define DNNOPT_OPENCL_A8 DNNOPT_OPENCL_A7, a7
#define DNNOPT_OPENCL_A9 DNNOPT_OPENCL_A8, a8
#define DNNOPT_OPENCL_A10 DNNOPT_OPENCL_A9, a9
#define DNNOPT_OPENCL_A11 DNNOPT_OPENCL_A10, a10
#define DNNOPT_OPENCL_A12 DNNOPT_OPENCL_A11, a11
#define DNNOPT_OPENCL_A13 DNNOPT_OPENCL_A12, a12
#define DNNOPT_OPENCL_A14 DNNOPT_OPENCL_A13, a13
#define DNNOPT_OPENCL_DEFINE(name, arity)                                                                              \
  extern "C" inline                                                                                                    \
      __attribute__((visibility("hidden"))) ::dnnopt::opencl::detail::signature<decltype(&::name)>::result CL_API_CALL \
      name(DNNOPT_OPENCL_P##arity(name)) {                                                                             \
    const auto& table = ::dnnopt::opencl::detail::functions();                                                         \
    return ::dnnopt::opencl::detail::signature<decltype(&::name)>::forward(                                            \
        table.name, ::dnnopt::opencl::detail::missing_status(table) DNNOPT_OPENCL_A##arity);                           \
  }

DNNOPT_OPENCL_ALL(DNNOPT_OPENCL_DEFINE)

#if defined(__GNUC__)
#pragma GCC diagnostic pop
#endif

#undef DNNOPT_OPENCL_DEFINE
#undef DNNOPT_OPENCL_P
#undef DNNOPT_OPENCL_P0
#undef DNNOPT_OPENCL_P1
#undef DNNOPT_OPENCL_P2
#undef DNNOPT_OPENCL_P3
#undef DNNOPT_OPENCL_P4
#undef DNNOPT_OPENCL_P5
#undef DNNOPT_OPENCL_P6
#undef DNNOPT_OPENCL_P7
#undef DNNOPT_OPENCL_P8
#undef DNNOPT_OPENCL_P9
#undef DNNOPT_OPENCL_P10
#undef DNNOPT_OPENCL_P11
#undef DNNOPT_OPENCL_P12
#undef DNNOPT_OPENCL_P13
#undef DNNOPT_OPENCL_P14
#undef DNNOPT_OPENCL_A0
#undef DNNOPT_OPENCL_A1
#undef DNNOPT_OPENCL_A2
#undef DNNOPT_OPENCL_A3
#undef DNNOPT_OPENCL_A4
#undef DNNOPT_OPENCL_A5
#undef DNNOPT_OPENCL_A6
#undef DNNOPT_OPENCL_A7
#undef DNNOPT_OPENCL_A8
#undef DNNOPT_OPENCL_A9
#undef DNNOPT_OPENCL_A10
#undef DNNOPT_OPENCL_A11
#undef DNNOPT_OPENCL_A12
#undef DNNOPT_OPENCL_A13
#undef DNNOPT_OPENCL_A14
#undef DNNOPT_OPENCL_ALL
#undef DNNOPT_OPENCL_1_2
#undef DNNOPT_OPENCL_OLD
#undef DNNOPT_OPENCL_2_0
#undef DNNOPT_OPENCL_2_1
#undef DNNOPT_OPENCL_2_2
#undef DNNOPT_OPENCL_3_0

#endif  // DNNOPT_LINK_OPENCL

namespace dnnopt::opencl {

/// Where the OpenCL functions come from, found at the first call and the same for the life of the process.
struct library_info {
  bool found = false;
  std::string name;    ///< file that was loaded, "the program itself", or "linked" under DNNOPT_LINK_OPENCL
  std::string reason;  ///< when not found: every name tried with the system's answer
};

/// Loads the OpenCL library when that has not happened yet and says which; never throws an OpenCL error.
[[nodiscard]] inline library_info library() {
#ifdef DNNOPT_LINK_OPENCL
  return {true, "linked", {}};
#else
  const detail::function_table& table = detail::functions();
  return {!table.library.empty(), table.library, table.failure};
#endif
}

/// Errors: opencl_unavailable with every name tried when the machine has no OpenCL library.
inline void require_library() {
  const library_info found = library();
  if (!found.found) {
    throw error(errc::opencl_unavailable,
                "no OpenCL library on this machine (" + found.reason +
                    "); install the ICD loader (Debian: ocl-icd-libopencl1) and a driver, or use device 'reference'");
  }
}

}  // namespace dnnopt::opencl

#endif  // DNNOPT_BACKEND_OPENCL_LOADER_HPP
