// Owns an OpenCL library that counts device memory at the API: it defines the functions that make memory objects and
// transfer them, forwards to libOpenCL, and leaves all other functions to libOpenCL, on which it depends.
//
// DNNOPT_OPENCL_LIBRARY=<this library> makes dnnopt use it. It knows nothing of dnnopt.
#define CL_TARGET_OPENCL_VERSION 300
#define CL_USE_DEPRECATED_OPENCL_1_1_APIS
#include "counted_opencl.hpp"

#include <CL/cl.h>
#include <dlfcn.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>

namespace {

struct known_object {
  std::uint64_t bytes = 0;
  std::uint64_t phase = 0;
  bool transferred = false;
};

/// What is alive. Objects are entered when they are made and leave with OpenCL's destructor callback.
class ledger {
 public:
  void enter(const void* object, std::uint64_t bytes) {
    const std::lock_guard<std::mutex> lock(mutex_);
    objects_[object] = {bytes, phase_, false};
    live_ += bytes;
    peak_ = std::max(peak_, live_);
  }
  void enter_part(const void* part, const void* whole) {
    const std::lock_guard<std::mutex> lock(mutex_);
    wholes_[part] = whole;
  }
  void leave(const void* object) {
    const std::lock_guard<std::mutex> lock(mutex_);
    wholes_.erase(object);
    const auto found = objects_.find(object);
    if (found == objects_.end()) return;
    live_ -= found->second.bytes;
    objects_.erase(found);
  }
  void transferred(const void* object) {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (auto part = wholes_.find(object); part != wholes_.end(); part = wholes_.find(object)) object = part->second;
    const auto found = objects_.find(object);
    if (found != objects_.end()) found->second.transferred = true;
  }
  void mark() {
    const std::lock_guard<std::mutex> lock(mutex_);
    ++phase_;
    peak_ = live_;
    for (auto& [object, known] : objects_) known.transferred = false;
  }
  std::uint64_t live() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return live_;
  }
  std::uint64_t peak() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return peak_;
  }
  std::size_t new_objects(counted_object* into, std::size_t most) {
    const std::lock_guard<std::mutex> lock(mutex_);
    std::size_t count = 0;
    for (const auto& [object, known] : objects_) {
      if (known.phase != phase_) continue;
      if (count < most) into[count] = {known.bytes, known.transferred ? 1 : 0};
      ++count;
    }
    return count;
  }

 private:
  std::mutex mutex_;
  std::map<const void*, known_object> objects_;
  std::map<const void*, const void*> wholes_;
  std::uint64_t live_ = 0;
  std::uint64_t peak_ = 0;
  std::uint64_t phase_ = 0;
};

/// Never destroyed: drivers call back from threads of their own until the process ends.
ledger& book() {
  static ledger* const all = new ledger;
  return *all;
}

template <class Function>
Function* real(const char* name) {
  static void* const library = ::dlopen("libOpenCL.so.1", RTLD_NOW | RTLD_LOCAL);
  void* const found = library == nullptr ? nullptr : ::dlsym(library, name);
  if (found == nullptr) {
    std::fprintf(stderr, "counted_opencl: libOpenCL.so.1 has no %s\n", name);
    std::abort();
  }
  return reinterpret_cast<Function*>(found);
}
#define COUNTED_REAL(name) real<decltype(::name)>(#name)

void CL_CALLBACK destroyed(cl_mem object, void*) { book().leave(object); }

cl_mem watched(cl_mem object, bool counts, cl_mem whole = nullptr) {
  if (object == nullptr) return object;
  if (counts) {
    std::size_t bytes = 0;
    COUNTED_REAL(clGetMemObjectInfo)(object, CL_MEM_SIZE, sizeof bytes, &bytes, nullptr);
    book().enter(object, bytes);
  } else if (whole != nullptr) {
    book().enter_part(object, whole);
  }
  COUNTED_REAL(clSetMemObjectDestructorCallback)(object, &destroyed, nullptr);
  return object;
}

}  // namespace

extern "C" {

void counted_opencl_mark() { book().mark(); }
std::uint64_t counted_opencl_live_bytes() { return book().live(); }
std::uint64_t counted_opencl_peak_bytes() { return book().peak(); }
std::size_t counted_opencl_new_objects(counted_object* into, std::size_t most) {
  return book().new_objects(into, most);
}

cl_mem CL_API_CALL clCreateBuffer(cl_context context, cl_mem_flags flags, size_t size, void* host, cl_int* status) {
  return watched(COUNTED_REAL(clCreateBuffer)(context, flags, size, host, status), true);
}
cl_mem CL_API_CALL clCreateBufferWithProperties(cl_context context, const cl_mem_properties* properties,
                                                cl_mem_flags flags, size_t size, void* host, cl_int* status) {
  return watched(COUNTED_REAL(clCreateBufferWithProperties)(context, properties, flags, size, host, status), true);
}
cl_mem CL_API_CALL clCreateSubBuffer(cl_mem buffer, cl_mem_flags flags, cl_buffer_create_type type, const void* region,
                                     cl_int* status) {
  return watched(COUNTED_REAL(clCreateSubBuffer)(buffer, flags, type, region, status), false, buffer);
}
cl_mem CL_API_CALL clCreateImage(cl_context context, cl_mem_flags flags, const cl_image_format* format,
                                 const cl_image_desc* description, void* host, cl_int* status) {
  cl_mem const whole = description == nullptr ? nullptr : description->mem_object;
  return watched(COUNTED_REAL(clCreateImage)(context, flags, format, description, host, status), whole == nullptr,
                 whole);
}
cl_mem CL_API_CALL clCreateImageWithProperties(cl_context context, const cl_mem_properties* properties,
                                               cl_mem_flags flags, const cl_image_format* format,
                                               const cl_image_desc* description, void* host, cl_int* status) {
  cl_mem const whole = description == nullptr ? nullptr : description->mem_object;
  return watched(
      COUNTED_REAL(clCreateImageWithProperties)(context, properties, flags, format, description, host, status),
      whole == nullptr, whole);
}
cl_mem CL_API_CALL clCreateImage2D(cl_context context, cl_mem_flags flags, const cl_image_format* format, size_t width,
                                   size_t height, size_t pitch, void* host, cl_int* status) {
  return watched(COUNTED_REAL(clCreateImage2D)(context, flags, format, width, height, pitch, host, status), true);
}
cl_mem CL_API_CALL clCreateImage3D(cl_context context, cl_mem_flags flags, const cl_image_format* format, size_t width,
                                   size_t height, size_t depth, size_t row, size_t slice, void* host, cl_int* status) {
  return watched(COUNTED_REAL(clCreateImage3D)(context, flags, format, width, height, depth, row, slice, host, status),
                 true);
}
cl_mem CL_API_CALL clCreatePipe(cl_context context, cl_mem_flags flags, cl_uint packet, cl_uint most,
                                const cl_pipe_properties* properties, cl_int* status) {
  return watched(COUNTED_REAL(clCreatePipe)(context, flags, packet, most, properties, status), true);
}
void* CL_API_CALL clSVMAlloc(cl_context context, cl_svm_mem_flags flags, size_t size, cl_uint alignment) {
  void* const made = COUNTED_REAL(clSVMAlloc)(context, flags, size, alignment);
  if (made != nullptr) book().enter(made, size);
  return made;
}
void CL_API_CALL clSVMFree(cl_context context, void* memory) {
  book().leave(memory);
  COUNTED_REAL(clSVMFree)(context, memory);
}

cl_int CL_API_CALL clEnqueueWriteBuffer(cl_command_queue queue, cl_mem buffer, cl_bool blocking, size_t offset,
                                        size_t size, const void* host, cl_uint waits, const cl_event* list,
                                        cl_event* event) {
  book().transferred(buffer);
  return COUNTED_REAL(clEnqueueWriteBuffer)(queue, buffer, blocking, offset, size, host, waits, list, event);
}
cl_int CL_API_CALL clEnqueueReadBuffer(cl_command_queue queue, cl_mem buffer, cl_bool blocking, size_t offset,
                                       size_t size, void* host, cl_uint waits, const cl_event* list, cl_event* event) {
  book().transferred(buffer);
  return COUNTED_REAL(clEnqueueReadBuffer)(queue, buffer, blocking, offset, size, host, waits, list, event);
}
}
