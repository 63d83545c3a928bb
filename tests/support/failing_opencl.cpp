// Owns an OpenCL library in which one call fails: calls that can fail are counted, the n-th does nothing and answers
// with an error, and references to objects are counted, so that a test can say what a failure left behind.
//
// DNNOPT_OPENCL_LIBRARY=<this library> makes dnnopt use it. It knows nothing of dnnopt. All else is libOpenCL's.
#define CL_TARGET_OPENCL_VERSION 300
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#include <CL/cl.h>
#include <dlfcn.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <type_traits>
#include <utility>

namespace {

std::atomic<long> left{0};  // calls until the one that fails; 0 and less: none does
std::atomic<long> calls{0};
std::atomic<const char*> failed{nullptr};
std::atomic<long> references[8];

enum kind { contexts, queues, memory, programs, kernels, events, maps, addresses };

/// Whether this call is the one.
bool fails(const char* name) {
  ++calls;
  if (left.load() <= 0 || left.fetch_sub(1) != 1) return false;
  failed = name;
  return true;
}
/// libOpenCL's function, which this library stands before.
template <class Function>
Function* real(const char* name) {
  void* const found = ::dlsym(RTLD_NEXT, name);
  if (found == nullptr) {
    std::fprintf(stderr, "failing_opencl: no %s behind this one\n", name);
    std::abort();
  }
  return reinterpret_cast<Function*>(found);
}
void count(kind of, bool made) { references[of] += made ? 1 : 0; }

}  // namespace

#define REAL(name)                                            \
  ([] {                                                       \
    static auto* const found = real<decltype(::name)>(#name); \
    return found;                                             \
  }())
/// A function that answers with a status.
#define STATUS(name, code, parameters, arguments) \
  extern "C" cl_int CL_API_CALL name parameters { return fails(#name) ? (code) : REAL(name) arguments; }
/// One that is waited in: what was enqueued is done before the answer, as a device that was lost writes no more.
#define WAITS(name, parameters, arguments)        \
  extern "C" cl_int CL_API_CALL name parameters { \
    const bool fail = fails(#name);               \
    const cl_int status = REAL(name) arguments;   \
    return fail ? CL_OUT_OF_RESOURCES : status;   \
  }
/// One that enqueues a command, with an event where one is asked for.
#define COMMAND(name, parameters, arguments)                 \
  extern "C" cl_int CL_API_CALL name parameters {            \
    if (fails(#name)) return CL_OUT_OF_RESOURCES;            \
    const cl_int result = REAL(name) arguments;              \
    count(events, result == CL_SUCCESS && event != nullptr); \
    return result;                                           \
  }
/// One that makes an object.
#define MAKES(of, type, name, code, parameters, arguments) \
  extern "C" type CL_API_CALL name parameters {            \
    if (fails(#name)) {                                    \
      if (status != nullptr) *status = (code);             \
      return nullptr;                                      \
    }                                                      \
    const auto made = REAL(name) arguments;                \
    count(of, made != nullptr);                            \
    return made;                                           \
  }
#define REFERENCES(of, type, retain, release)       \
  extern "C" cl_int CL_API_CALL retain(type one) {  \
    const cl_int status = REAL(retain)(one);        \
    count(of, status == CL_SUCCESS);                \
    return status;                                  \
  }                                                 \
  extern "C" cl_int CL_API_CALL release(type one) { \
    --references[of];                               \
    return REAL(release)(one);                      \
  }

extern "C" {
/// From now on the n-th call that can fail does; 0: none. The count of calls begins anew.
void failing_opencl_fail(long n) {
  failed = nullptr;
  calls = 0;
  left = n;
}
long failing_opencl_calls() { return calls; }
/// The function that failed, or null.
const char* failing_opencl_failed() { return failed; }
/// References held of the kinds above, in their order; nothing for numbers beyond them.
long failing_opencl_references(int of) { return of >= 0 && of < 8 ? references[of].load() : -1; }
}

REFERENCES(contexts, cl_context, clRetainContext, clReleaseContext)
REFERENCES(queues, cl_command_queue, clRetainCommandQueue, clReleaseCommandQueue)
REFERENCES(memory, cl_mem, clRetainMemObject, clReleaseMemObject)
REFERENCES(programs, cl_program, clRetainProgram, clReleaseProgram)
REFERENCES(kernels, cl_kernel, clRetainKernel, clReleaseKernel)
REFERENCES(events, cl_event, clRetainEvent, clReleaseEvent)

MAKES(contexts, cl_context, clCreateContext, CL_OUT_OF_HOST_MEMORY,
      (const cl_context_properties* properties, cl_uint number, const cl_device_id* devices,
       void(CL_CALLBACK* tell)(const char*, const void*, size_t, void*), void* user, cl_int* status),
      (properties, number, devices, tell, user, status))
MAKES(queues, cl_command_queue, clCreateCommandQueueWithProperties, CL_OUT_OF_RESOURCES,
      (cl_context context, cl_device_id device, const cl_queue_properties* properties, cl_int* status),
      (context, device, properties, status))
MAKES(queues, cl_command_queue, clCreateCommandQueue, CL_OUT_OF_RESOURCES,
      (cl_context context, cl_device_id device, cl_command_queue_properties bits, cl_int* status),
      (context, device, bits, status))
MAKES(memory, cl_mem, clCreateBuffer, CL_MEM_OBJECT_ALLOCATION_FAILURE,
      (cl_context context, cl_mem_flags flags, size_t size, void* host, cl_int* status),
      (context, flags, size, host, status))
MAKES(memory, cl_mem, clCreateSubBuffer, CL_OUT_OF_RESOURCES,
      (cl_mem buffer, cl_mem_flags flags, cl_buffer_create_type type, const void* region, cl_int* status),
      (buffer, flags, type, region, status))
MAKES(memory, cl_mem, clCreateImage, CL_MEM_OBJECT_ALLOCATION_FAILURE,
      (cl_context context, cl_mem_flags flags, const cl_image_format* format, const cl_image_desc* description,
       void* host, cl_int* status),
      (context, flags, format, description, host, status))
MAKES(programs, cl_program, clCreateProgramWithSource, CL_OUT_OF_HOST_MEMORY,
      (cl_context context, cl_uint number, const char** texts, const size_t* lengths, cl_int* status),
      (context, number, texts, lengths, status))
MAKES(programs, cl_program, clCreateProgramWithBinary, CL_INVALID_BINARY,
      (cl_context context, cl_uint number, const cl_device_id* devices, const size_t* lengths,
       const unsigned char** texts, cl_int* each, cl_int* status),
      (context, number, devices, lengths, texts, each, status))
MAKES(kernels, cl_kernel, clCreateKernel, CL_OUT_OF_RESOURCES, (cl_program program, const char* name, cl_int* status),
      (program, name, status))

extern "C" void* CL_API_CALL clSVMAlloc(cl_context context, cl_svm_mem_flags flags, size_t size, cl_uint alignment) {
  if (fails("clSVMAlloc")) return nullptr;
  void* const made = REAL(clSVMAlloc)(context, flags, size, alignment);
  count(addresses, made != nullptr);
  return made;
}
extern "C" void CL_API_CALL clSVMFree(cl_context context, void* one) {
  references[addresses] -= one != nullptr ? 1 : 0;
  REAL(clSVMFree)(context, one);
}
extern "C" void* CL_API_CALL clEnqueueMapBuffer(cl_command_queue queue, cl_mem buffer, cl_bool blocking,
                                                cl_map_flags flags, size_t offset, size_t size, cl_uint waits,
                                                const cl_event* list, cl_event* event, cl_int* status) {
  if (fails("clEnqueueMapBuffer")) {
    if (status != nullptr) *status = CL_MAP_FAILURE;
    return nullptr;
  }
  void* const mapped =
      REAL(clEnqueueMapBuffer)(queue, buffer, blocking, flags, offset, size, waits, list, event, status);
  count(maps, mapped != nullptr);
  count(events, mapped != nullptr && event != nullptr);
  return mapped;
}
extern "C" cl_int CL_API_CALL clEnqueueUnmapMemObject(cl_command_queue queue, cl_mem object, void* mapped,
                                                      cl_uint waits, const cl_event* list, cl_event* event) {
  // What was refused stays mapped: nothing can unmap it again.
  const bool fail = fails("clEnqueueUnmapMemObject");
  --references[maps];
  const cl_int status = REAL(clEnqueueUnmapMemObject)(queue, object, mapped, waits, list, event);
  if (!fail) count(events, status == CL_SUCCESS && event != nullptr);
  return fail ? CL_OUT_OF_RESOURCES : status;
}

STATUS(clGetPlatformIDs, CL_OUT_OF_HOST_MEMORY, (cl_uint number, cl_platform_id* to, cl_uint* count),
       (number, to, count))
STATUS(clGetDeviceIDs, CL_OUT_OF_RESOURCES,
       (cl_platform_id platform, cl_device_type type, cl_uint number, cl_device_id* to, cl_uint* count),
       (platform, type, number, to, count))
STATUS(clGetDeviceInfo, CL_OUT_OF_RESOURCES,
       (cl_device_id device, cl_device_info what, size_t size, void* to, size_t* needed),
       (device, what, size, to, needed))
STATUS(clGetSupportedImageFormats, CL_OUT_OF_RESOURCES,
       (cl_context context, cl_mem_flags flags, cl_mem_object_type type, cl_uint number, cl_image_format* to,
        cl_uint* count),
       (context, flags, type, number, to, count))
STATUS(clBuildProgram, CL_BUILD_PROGRAM_FAILURE,
       (cl_program program, cl_uint number, const cl_device_id* devices, const char* options,
        void(CL_CALLBACK* tell)(cl_program, void*), void* user),
       (program, number, devices, options, tell, user))
STATUS(clGetProgramInfo, CL_OUT_OF_RESOURCES,
       (cl_program program, cl_program_info what, size_t size, void* to, size_t* needed),
       (program, what, size, to, needed))
STATUS(clGetKernelWorkGroupInfo, CL_OUT_OF_RESOURCES,
       (cl_kernel kernel, cl_device_id device, cl_kernel_work_group_info what, size_t size, void* to, size_t* needed),
       (kernel, device, what, size, to, needed))
STATUS(clGetMemObjectInfo, CL_OUT_OF_RESOURCES,
       (cl_mem object, cl_mem_info what, size_t size, void* to, size_t* needed), (object, what, size, to, needed))
STATUS(clSetMemObjectDestructorCallback, CL_OUT_OF_RESOURCES,
       (cl_mem object, void(CL_CALLBACK* tell)(cl_mem, void*), void* user), (object, tell, user))
STATUS(clSetKernelArg, CL_OUT_OF_RESOURCES, (cl_kernel kernel, cl_uint index, size_t size, const void* value),
       (kernel, index, size, value))
STATUS(clSetKernelArgSVMPointer, CL_OUT_OF_RESOURCES, (cl_kernel kernel, cl_uint index, const void* value),
       (kernel, index, value))
extern "C" cl_int CL_API_CALL clGetEventInfo(cl_event event, cl_event_info what, size_t size, void* to,
                                             size_t* needed) {
  // Who polls asks one event again and again: once counts for all.
  static thread_local cl_event last = nullptr;
  if (event != std::exchange(last, event) && fails("clGetEventInfo")) return CL_OUT_OF_RESOURCES;
  return REAL(clGetEventInfo)(event, what, size, to, needed);
}
STATUS(clGetEventProfilingInfo, CL_OUT_OF_RESOURCES,
       (cl_event event, cl_profiling_info what, size_t size, void* to, size_t* needed), (event, what, size, to, needed))
WAITS(clFinish, (cl_command_queue queue), (queue))
WAITS(clFlush, (cl_command_queue queue), (queue))
WAITS(clWaitForEvents, (cl_uint number, const cl_event* list), (number, list))
COMMAND(clEnqueueNDRangeKernel,
        (cl_command_queue queue, cl_kernel kernel, cl_uint dimensions, const size_t* offset, const size_t* global,
         const size_t* local, cl_uint waits, const cl_event* list, cl_event* event),
        (queue, kernel, dimensions, offset, global, local, waits, list, event))
COMMAND(clEnqueueReadBuffer,
        (cl_command_queue queue, cl_mem buffer, cl_bool blocking, size_t offset, size_t size, void* host, cl_uint waits,
         const cl_event* list, cl_event* event),
        (queue, buffer, blocking, offset, size, host, waits, list, event))
COMMAND(clEnqueueWriteBuffer,
        (cl_command_queue queue, cl_mem buffer, cl_bool blocking, size_t offset, size_t size, const void* host,
         cl_uint waits, const cl_event* list, cl_event* event),
        (queue, buffer, blocking, offset, size, host, waits, list, event))
COMMAND(clEnqueueCopyBuffer,
        (cl_command_queue queue, cl_mem from, cl_mem to, size_t from_offset, size_t to_offset, size_t size,
         cl_uint waits, const cl_event* list, cl_event* event),
        (queue, from, to, from_offset, to_offset, size, waits, list, event))
COMMAND(clEnqueueCopyBufferRect,
        (cl_command_queue queue, cl_mem from, cl_mem to, const size_t* from_origin, const size_t* to_origin,
         const size_t* region, size_t from_row, size_t from_slice, size_t to_row, size_t to_slice, cl_uint waits,
         const cl_event* list, cl_event* event),
        (queue, from, to, from_origin, to_origin, region, from_row, from_slice, to_row, to_slice, waits, list, event))
COMMAND(clEnqueueFillBuffer,
        (cl_command_queue queue, cl_mem buffer, const void* pattern, size_t pattern_size, size_t offset, size_t size,
         cl_uint waits, const cl_event* list, cl_event* event),
        (queue, buffer, pattern, pattern_size, offset, size, waits, list, event))
COMMAND(clEnqueueMarkerWithWaitList, (cl_command_queue queue, cl_uint waits, const cl_event* list, cl_event* event),
        (queue, waits, list, event))
COMMAND(clEnqueueSVMMemcpy,
        (cl_command_queue queue, cl_bool blocking, void* to, const void* from, size_t size, cl_uint waits,
         const cl_event* list, cl_event* event),
        (queue, blocking, to, from, size, waits, list, event))
COMMAND(clEnqueueSVMMemFill,
        (cl_command_queue queue, void* to, const void* pattern, size_t pattern_size, size_t size, cl_uint waits,
         const cl_event* list, cl_event* event),
        (queue, to, pattern, pattern_size, size, waits, list, event))
