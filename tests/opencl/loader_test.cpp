// The run-time loader: a machine without OpenCL gets a message, never a crash.
#include <dnnopt/backend/opencl/device.hpp>

#include <catch2/catch.hpp>

#include <cstdlib>

#include "runtime_fixture.hpp"

using namespace dnnopt;
using namespace dnnopt::opencl;
using testing::code;
using testing::code_of;

TEST_CASE("the library is found") {
  const library_info found = library();
  CHECK(found.found);
  CHECK(!found.name.empty());
}

#if !defined(DNNOPT_LINK_OPENCL) && defined(__linux__)

namespace {

/// Runs the test case `name` of this executable in a process that looks for OpenCL in `file` alone.
int run_with_library(const std::string& file, const std::string& name) {
  return std::system(("DNNOPT_OPENCL_LIBRARY='" + file + "' /proc/$PPID/exe '" + name + "' >/dev/null 2>&1").c_str());
}

}  // namespace

TEST_CASE("without an OpenCL library every call says so") {
  if (std::getenv("DNNOPT_OPENCL_LIBRARY") == nullptr) {
    CHECK(run_with_library("/no/such/libOpenCL.so", "without an OpenCL library every call says so") == 0);
    // A library that is none of OpenCL is as good as none.
    CHECK(run_with_library("libm.so.6", "without an OpenCL library every call says so") == 0);
    return;
  }
  const library_info found = library();
  REQUIRE(!found.found);
  CHECK(found.reason.find(std::getenv("DNNOPT_OPENCL_LIBRARY")) != std::string::npos);
  std::string text;
  CHECK(code_of([] { (void)list_devices(); }, &text) == code(errc::opencl_unavailable));
  CHECK(text.find("no OpenCL library") != std::string::npos);
  CHECK(text.find(found.reason) != std::string::npos);
  CHECK(code_of([] { (void)select_device("opencl"); }) == code(errc::opencl_unavailable));
  // The C and the C++ interface answer as OpenCL does.
  cl_uint count = 7;
  CHECK(clGetPlatformIDs(0, nullptr, &count) == CL_PLATFORM_NOT_FOUND_KHR);
  cl_int status = CL_SUCCESS;
  CHECK(clCreateContext(nullptr, 0, nullptr, nullptr, nullptr, &status) == nullptr);
  CHECK(status == CL_PLATFORM_NOT_FOUND_KHR);
  CHECK(clCreateBuffer(nullptr, 0, 1, nullptr, nullptr) == nullptr);
  std::vector<cl::Platform> platforms;
  CHECK(cl::Platform::get(&platforms) != CL_SUCCESS);
  CHECK(platforms.empty());
}

TEST_CASE("a library that is named is the one that is used") {
  if (std::getenv("DNNOPT_OPENCL_LIBRARY") == nullptr) {
    CHECK(run_with_library("libOpenCL.so.1", "a library that is named is the one that is used") == 0);
    return;
  }
  CHECK(library().name == std::getenv("DNNOPT_OPENCL_LIBRARY"));
  CHECK(!list_devices().empty());
}

#endif
