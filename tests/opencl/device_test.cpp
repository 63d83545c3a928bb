// OpenCL devices: status names, enumeration, limits, choice by specification.
#include <cstdlib>
#include <string>

#include <dnnopt/backend/opencl/device.hpp>
#include <dnnopt/device_info_json.hpp>

#include <catch2/catch.hpp>

#include "runtime_fixture.hpp"

using namespace dnnopt;
using namespace dnnopt::opencl;
using testing::code;
using testing::code_of;

static_assert(status_name(CL_SUCCESS) == "CL_SUCCESS");
static_assert(status_name(CL_INVALID_KERNEL_ARGS) == "CL_INVALID_KERNEL_ARGS");
static_assert(status_name(CL_INVALID_COMMAND_BUFFER_KHR) == "CL_INVALID_COMMAND_BUFFER_KHR");
static_assert(status_name(CL_PLATFORM_NOT_FOUND_KHR) == "CL_PLATFORM_NOT_FOUND_KHR");
static_assert(status_name(12345) == "unknown OpenCL status");
static_assert(status_code(CL_MEM_OBJECT_ALLOCATION_FAILURE) == errc::out_of_device_memory);
static_assert(status_code(CL_OUT_OF_RESOURCES) == errc::out_of_device_memory);
static_assert(status_code(CL_INVALID_VALUE) == errc::opencl_call);

TEST_CASE("a failed status becomes an error with call, name, number and detail") {
  std::string text;
  CHECK(code_of([] { check(CL_INVALID_VALUE, "clFoo", [] { return std::string("17 bytes"); }); }, &text) ==
        code(errc::opencl_call));
  CHECK(text == "[dnnopt.403] clFoo failed: CL_INVALID_VALUE (-30), 17 bytes");
  CHECK(code_of([] { check(CL_SUCCESS, "clFoo"); }) == 0);
  CHECK(code_of([] { check_wait(CL_OUT_OF_RESOURCES, "clFinish"); }) == code(errc::opencl_call));
}

TEST_CASE("every device states its limits") {
  const std::vector<device> devices = list_devices();
  REQUIRE(!devices.empty());
  for (std::size_t i = 0; i < devices.size(); ++i) {
    const device_info& info = devices[i].info;
    CAPTURE(info.name, info.platform);
    CHECK(info.index == i);
    CHECK(!info.name.empty());
    CHECK(!info.driver_version.empty());
    CHECK(info.version.substr(0, 7) == "OpenCL ");
    CHECK(info.version_major >= 1);
    CHECK(info.compute_units >= 1);
    CHECK(info.max_allocation_bytes > 0);
    CHECK(info.max_allocation_bytes <= info.global_memory_bytes);
    CHECK(info.local_memory_bytes >= 1024);
    CHECK(info.max_work_group_size >= 1);
    CHECK(info.max_work_item_sizes[0] >= 1);
    CHECK(info.base_address_alignment_bytes >= 16);
    CHECK(info.preferred_widths.float_width >= 1);
    CHECK(info.fp64 == (info.preferred_widths.double_width > 0));
    CHECK(info.has_extension(info.extensions.front()));
    CHECK(!info.has_extension("cl_khr_"));
    if (info.images.supported) {
      CHECK(info.images.max_width_2d >= 2048);
      CHECK(info.images.max_array_layers >= 256);
      CHECK(info.images.max_buffer_texels >= 2048);
      CHECK(info.images.max_read_arguments >= 8);
    }
  }
}

TEST_CASE("a device is chosen by number or part of its name") {
  std::vector<device_info> infos(3);
  infos[0].name = "Small CPU";
  infos[0].platform = "Portable";
  infos[1].name = "Big GPU 9000";
  infos[1].vendor = "Acme";
  infos[2].name = "acme cpu";
  infos[2].platform = "Other";
  CHECK(match_device(infos, "opencl") == 0);
  CHECK(match_device(infos, "opencl:") == 0);
  CHECK(match_device(infos, "opencl:2") == 2);
  CHECK(match_device(infos, "opencl:gpu") == 1);
  CHECK(match_device(infos, "opencl:GPU 9") == 1);
  // A name goes before a vendor, also of an earlier device.
  CHECK(match_device(infos, "opencl:ACME") == 2);
  CHECK(match_device(infos, "opencl:other") == 2);
  // A number that is no index may still be a part of a name.
  CHECK(match_device(infos, "opencl:9000") == 1);
  std::string text;
  CHECK(code_of([&] { (void)match_device(infos, "opencl:7"); }, &text) == code(errc::unknown_device));
  CHECK(text.find("opencl:1 = Big GPU 9000") != std::string::npos);
  CHECK(code_of([&] { (void)match_device(infos, "cuda"); }) == code(errc::unknown_device));
  CHECK(code_of([&] { (void)match_device(infos, "openclx"); }) == code(errc::unknown_device));
  CHECK(code_of([] { (void)match_device({}, "opencl"); }) == code(errc::opencl_unavailable));
}

TEST_CASE("the chosen device is the listed one") {
  const std::vector<device> devices = list_devices();
  const device chosen = select_device("opencl:" + std::to_string(devices.size() - 1));
  CHECK(chosen.info.index == devices.size() - 1);
  CHECK(chosen.handle() == devices.back().handle());
}

TEST_CASE("the environment says which device plain opencl is") {
  const char* const before = std::getenv("DNNOPT_OPENCL_DEVICE");
  const std::string kept = before == nullptr ? "" : before;
  const std::size_t last = list_devices().size() - 1;
  ::setenv("DNNOPT_OPENCL_DEVICE", std::to_string(last).c_str(), 1);
  CHECK(select_device("opencl").info.index == last);
  ::setenv("DNNOPT_OPENCL_DEVICE", "no such device", 1);
  CHECK(code_of([] { (void)select_device("opencl"); }) == code(errc::unknown_device));
  CHECK(select_device("opencl:0").info.index == 0);
  if (before == nullptr)
    ::unsetenv("DNNOPT_OPENCL_DEVICE");
  else
    ::setenv("DNNOPT_OPENCL_DEVICE", kept.c_str(), 1);
}

TEST_CASE("a device prints as JSON") {
  const device_info info = select_device("opencl").info;
  const nlohmann::json json = info;
  CHECK(json.at("name") == info.name);
  CHECK(json.at("spec") == "opencl:" + std::to_string(info.index));
  CHECK(json.at("images").at("supported") == info.images.supported);
  CHECK(json.at("max_work_item_sizes").size() == 3);
  CHECK(json.at("extensions").size() == info.extensions.size());
  CHECK(nlohmann::json::parse(json.dump()) == json);
  CHECK(nlohmann::json(device_facts{}).at("images_fast_fp32") == false);
}
