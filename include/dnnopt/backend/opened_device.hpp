// Owns an OpenCL device made ready: its context and its programs, which sessions may share.
#ifndef DNNOPT_BACKEND_OPENED_DEVICE_HPP
#define DNNOPT_BACKEND_OPENED_DEVICE_HPP

#include <string_view>
#include <utility>

#include <dnnopt/backend/device.hpp>
#include <dnnopt/backend/opencl_context.hpp>
#include <dnnopt/backend/program_cache.hpp>

namespace dnnopt {

/// An OpenCL device made ready: its context and its programs. Sessions may share one.
struct opened_device {
  explicit opened_device(std::string_view spec, opencl::program_cache_options programs_options = {})
      : opened_device(opencl::select_device(spec), std::move(programs_options)) {}
  explicit opened_device(opencl::device chosen, opencl::program_cache_options programs_options = {})
      : context(std::move(chosen)), programs(context, std::move(programs_options)) {}

  opencl::context context;
  opencl::program_cache programs;
};

}  // namespace dnnopt

#endif  // DNNOPT_BACKEND_OPENED_DEVICE_HPP
