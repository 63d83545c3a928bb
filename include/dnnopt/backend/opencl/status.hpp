// Owns the names of OpenCL status codes and their mapping to dnnopt::error.
//
// Light on purpose: it takes plain integers, so that code without an OpenCL header can print a status.
#ifndef DNNOPT_BACKEND_OPENCL_STATUS_HPP
#define DNNOPT_BACKEND_OPENCL_STATUS_HPP

#include <string>
#include <string_view>
#include <type_traits>

#include <dnnopt/error.hpp>

namespace dnnopt::opencl {

namespace detail {

struct status_row {
  int status;
  std::string_view name;
};

inline constexpr status_row status_rows[] = {
    {0, "CL_SUCCESS"},
    {-1, "CL_DEVICE_NOT_FOUND"},
    {-2, "CL_DEVICE_NOT_AVAILABLE"},
    {-3, "CL_COMPILER_NOT_AVAILABLE"},
    {-4, "CL_MEM_OBJECT_ALLOCATION_FAILURE"},
    {-5, "CL_OUT_OF_RESOURCES"},
    {-6, "CL_OUT_OF_HOST_MEMORY"},
    {-7, "CL_PROFILING_INFO_NOT_AVAILABLE"},
    {-8, "CL_MEM_COPY_OVERLAP"},
    {-9, "CL_IMAGE_FORMAT_MISMATCH"},
    {-10, "CL_IMAGE_FORMAT_NOT_SUPPORTED"},
    {-11, "CL_BUILD_PROGRAM_FAILURE"},
    {-12, "CL_MAP_FAILURE"},
    {-13, "CL_MISALIGNED_SUB_BUFFER_OFFSET"},
    {-14, "CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST"},
    {-15, "CL_COMPILE_PROGRAM_FAILURE"},
    {-16, "CL_LINKER_NOT_AVAILABLE"},
    {-17, "CL_LINK_PROGRAM_FAILURE"},
    {-18, "CL_DEVICE_PARTITION_FAILED"},
    {-19, "CL_KERNEL_ARG_INFO_NOT_AVAILABLE"},
    {-30, "CL_INVALID_VALUE"},
    {-31, "CL_INVALID_DEVICE_TYPE"},
    {-32, "CL_INVALID_PLATFORM"},
    {-33, "CL_INVALID_DEVICE"},
    {-34, "CL_INVALID_CONTEXT"},
    {-35, "CL_INVALID_QUEUE_PROPERTIES"},
    {-36, "CL_INVALID_COMMAND_QUEUE"},
    {-37, "CL_INVALID_HOST_PTR"},
    {-38, "CL_INVALID_MEM_OBJECT"},
    {-39, "CL_INVALID_IMAGE_FORMAT_DESCRIPTOR"},
    {-40, "CL_INVALID_IMAGE_SIZE"},
    {-41, "CL_INVALID_SAMPLER"},
    {-42, "CL_INVALID_BINARY"},
    {-43, "CL_INVALID_BUILD_OPTIONS"},
    {-44, "CL_INVALID_PROGRAM"},
    {-45, "CL_INVALID_PROGRAM_EXECUTABLE"},
    {-46, "CL_INVALID_KERNEL_NAME"},
    {-47, "CL_INVALID_KERNEL_DEFINITION"},
    {-48, "CL_INVALID_KERNEL"},
    {-49, "CL_INVALID_ARG_INDEX"},
    {-50, "CL_INVALID_ARG_VALUE"},
    {-51, "CL_INVALID_ARG_SIZE"},
    {-52, "CL_INVALID_KERNEL_ARGS"},
    {-53, "CL_INVALID_WORK_DIMENSION"},
    {-54, "CL_INVALID_WORK_GROUP_SIZE"},
    {-55, "CL_INVALID_WORK_ITEM_SIZE"},
    {-56, "CL_INVALID_GLOBAL_OFFSET"},
    {-57, "CL_INVALID_EVENT_WAIT_LIST"},
    {-58, "CL_INVALID_EVENT"},
    {-59, "CL_INVALID_OPERATION"},
    {-60, "CL_INVALID_GL_OBJECT"},
    {-61, "CL_INVALID_BUFFER_SIZE"},
    {-62, "CL_INVALID_MIP_LEVEL"},
    {-63, "CL_INVALID_GLOBAL_WORK_SIZE"},
    {-64, "CL_INVALID_PROPERTY"},
    {-65, "CL_INVALID_IMAGE_DESCRIPTOR"},
    {-66, "CL_INVALID_COMPILER_OPTIONS"},
    {-67, "CL_INVALID_LINKER_OPTIONS"},
    {-68, "CL_INVALID_DEVICE_PARTITION_COUNT"},
    {-69, "CL_INVALID_PIPE_SIZE"},
    {-70, "CL_INVALID_DEVICE_QUEUE"},
    {-71, "CL_INVALID_SPEC_ID"},
    {-72, "CL_MAX_SIZE_RESTRICTION_EXCEEDED"},
    {-1000, "CL_INVALID_GL_SHAREGROUP_REFERENCE_KHR"},
    {-1001, "CL_PLATFORM_NOT_FOUND_KHR"},
    {-1057, "CL_DEVICE_PARTITION_FAILED_EXT"},
    {-1058, "CL_INVALID_PARTITION_COUNT_EXT"},
    {-1059, "CL_INVALID_PARTITION_NAME_EXT"},
    {-1092, "CL_EGL_RESOURCE_NOT_ACQUIRED_KHR"},
    {-1093, "CL_INVALID_EGL_OBJECT_KHR"},
    {-1108, "CL_COMMAND_TERMINATED_ITSELF_WITH_FAILURE_ARM"},
    {-1121, "CL_CONTEXT_TERMINATED_KHR"},
    {-1138, "CL_INVALID_COMMAND_BUFFER_KHR"},
    {-1139, "CL_INVALID_SYNC_POINT_WAIT_LIST_KHR"},
    {-1140, "CL_INCOMPATIBLE_COMMAND_QUEUE_KHR"},
    {-1141, "CL_INVALID_MUTABLE_COMMAND_KHR"},
    {-1142, "CL_INVALID_SEMAPHORE_KHR"},
    {-9999, "an illegal read or write of a kernel (NVIDIA)"},
};

}  // namespace detail

/// Name of an OpenCL status as cl.h and cl_ext.h spell it, "unknown OpenCL status" for others. O(rows).
[[nodiscard]] constexpr std::string_view status_name(int status) noexcept {
  for (const detail::status_row& row : detail::status_rows) {
    if (row.status == status) return row.name;
  }
  return "unknown OpenCL status";
}

/// The error code that a failed call gets: memory and size limits, a missing platform, or any other failure.
[[nodiscard]] constexpr errc status_code(int status) noexcept {
  switch (status) {
    case -4:   // CL_MEM_OBJECT_ALLOCATION_FAILURE
    case -5:   // CL_OUT_OF_RESOURCES
    case -6:   // CL_OUT_OF_HOST_MEMORY
    case -40:  // CL_INVALID_IMAGE_SIZE
    case -61:  // CL_INVALID_BUFFER_SIZE
      return errc::out_of_device_memory;
    case -1:     // CL_DEVICE_NOT_FOUND
    case -1001:  // CL_PLATFORM_NOT_FOUND_KHR
      return errc::opencl_unavailable;
    default:
      return errc::opencl_call;
  }
}

/// Throws dnnopt::error of `code` with "<call> failed: <status name> (<status>), <detail>".
[[noreturn]] inline void throw_status(errc code, int status, std::string_view call, std::string_view detail) {
  std::string text(call);
  text += " failed: ";
  text += status_name(status);
  text += " (" + std::to_string(status) + ")";
  if (!detail.empty()) {
    text += ", ";
    text += detail;
  }
  throw error(code, text);
}

/// Returns when `status` is CL_SUCCESS, else throws by status_code(). `detail` is text, or a function giving text that
/// is called on failure only: put the sizes and names there.
template <class Detail = std::string_view>
void check(int status, std::string_view call, const Detail& detail = {}) {
  if (status == 0) return;
  if constexpr (std::is_invocable_v<const Detail&>) {
    throw_status(status_code(status), status, call, detail());
  } else {
    throw_status(status_code(status), status, call, detail);
  }
}

/// As check(), for calls that wait on earlier commands: their failures belong to those commands, so CL_OUT_OF_RESOURCES
/// (which some drivers give for an invalid access of a kernel) is errc::opencl_call here.
inline void check_wait(int status, std::string_view call, std::string_view detail = {}) {
  if (status == 0) return;
  std::string text(detail);
  if (!text.empty()) text += "; ";
  text += "a command enqueued before may have failed (out of memory, or an access outside of its buffers)";
  throw_status(errc::opencl_call, status, call, text);
}

}  // namespace dnnopt::opencl

#endif  // DNNOPT_BACKEND_OPENCL_STATUS_HPP
