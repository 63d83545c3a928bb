// Owns an OpenCL device made ready: its context and its programs, which sessions may share.
#ifndef DNNOPT_BACKEND_MEASURE_OPENED_DEVICE_HPP
#define DNNOPT_BACKEND_MEASURE_OPENED_DEVICE_HPP

#include <filesystem>
#include <mutex>
#include <optional>
#include <string_view>
#include <utility>

#include <dnnopt/backend/measure/facts/dot_facts.hpp>
#include <dnnopt/backend/measure/facts/driver_programs.hpp>
#include <dnnopt/backend/measure/facts/quick_facts.hpp>
#include <dnnopt/backend/measure/facts/step_facts.hpp>
#include <dnnopt/backend/measure/facts/stored_facts.hpp>
#include <dnnopt/backend/opencl/context.hpp>
#include <dnnopt/backend/opencl/device.hpp>
#include <dnnopt/backend/opencl/program_cache.hpp>

namespace dnnopt {

/// An OpenCL device made ready: its context and its programs. Sessions may share one.
struct opened_device {
  explicit opened_device(std::string_view spec, opencl::program_cache_options programs_options = {})
      : opened_device(opencl::select_device(spec), std::move(programs_options)) {}
  explicit opened_device(opencl::device chosen, opencl::program_cache_options programs_options = {})
      : context(std::move(chosen)),
        programs(context, with_driver(programs_options)),
        facts_folder_(folder_of(programs_options)) {}

  opencl::context context;
  opencl::program_cache programs;

  /// What is measured of the device, at the first call: from the file beside the programs, or now (facts_of in
  /// device_facts.hpp, a few seconds, in a context of its own). Errors: those of devices. Several threads may call it.
  [[nodiscard]] const device_facts& facts() {
    const std::lock_guard lock(mutex_);
    if (!facts_) {
      opencl::context measured(context.where());
      facts_ = opencl::facts_of(measured, facts_folder_);
    }
    return *facts_;
  }
  /// What multiplies on the device in matrix steps: from the file beside the programs, or found out now
  /// (steps_of in step_facts.hpp: two small kernels for each provider). Errors: those of devices. Several threads
  /// may call it.
  [[nodiscard]] const codegen::step_providers& steps() {
    const std::lock_guard lock(mutex_);
    if (!steps_) {
      opencl::context measured(context.where());
      steps_ = opencl::steps_of(measured, facts_folder_);
    }
    return *steps_;
  }
  /// What multiplies bytes on the device: found out at the first call by two small kernels for each provider that the
  /// processor has (dot_facts.hpp), whose programs are kept with the others. Errors: those of devices. Several threads
  /// may call it.
  [[nodiscard]] const codegen::integer_dot& dot() {
    const std::lock_guard lock(mutex_);
    if (dot_ == nullptr) dot_ = &opencl::measure_integer_dot(context, programs);
    return *dot_;
  }
  /// Whether kernels that are in no cache are worth compiling without the driver's optimizer at first: as the last
  /// quick start on this device found (quick_facts.hpp); yes before there was one. Several threads may call it.
  [[nodiscard]] bool quick_pays() {
    const std::lock_guard lock(mutex_);
    if (!quick_) quick_ = opencl::read_quick_facts(context.info(), facts_folder_).value_or(opencl::quick_facts{0, 1});
    return quick_->pays();
  }
  /// What a quick start found, for those to come. Several threads may call it.
  void learn(const opencl::quick_facts& found) {
    const std::lock_guard lock(mutex_);
    quick_ = found;
    opencl::write_quick_facts(context.info(), facts_folder_, found);
  }
  /// Takes `known` for what would be measured. Precondition: nobody holds what facts() returned.
  void set_facts(const device_facts& known) {
    const std::lock_guard lock(mutex_);
    facts_ = known;
  }

 private:
  [[nodiscard]] opencl::program_cache_options with_driver(opencl::program_cache_options options) const {
    if (!options.driver_keeps) options.driver_keeps = [this] { return opencl::driver_keeps_programs(context); };
    return options;
  }
  [[nodiscard]] static std::filesystem::path folder_of(const opencl::program_cache_options& options) {
    return options.on_disk ? options.folder : std::filesystem::path();
  }

  std::mutex mutex_;  // guards facts_, steps_, quick_ and dot_
  const codegen::integer_dot* dot_ = nullptr;
  std::optional<device_facts> facts_;
  std::optional<codegen::step_providers> steps_;
  std::optional<opencl::quick_facts> quick_;
  std::filesystem::path facts_folder_;
};

}  // namespace dnnopt

#endif  // DNNOPT_BACKEND_MEASURE_OPENED_DEVICE_HPP
