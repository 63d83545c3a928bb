// Owns sequences of commands that are enqueued again and again: recorded where the device can, enqueued one by one
// where not, behind one interface.
//
// A device records runs of kernels (cl_khr_command_buffer, cl_qcom_recordable_queues); copies, fills and transfers
// between them are enqueued as usual. With an event sink nothing is replayed from a recording, for that gives no event
// per kernel.
#ifndef DNNOPT_BACKEND_OPENCL_RECORDING_HPP
#define DNNOPT_BACKEND_OPENCL_RECORDING_HPP

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dnnopt/backend/opencl/command_queue.hpp>
#include <dnnopt/backend/opencl/context.hpp>
#include <dnnopt/backend/opencl/kernel_launch.hpp>
#include <dnnopt/backend/opencl/loader.hpp>
#include <dnnopt/backend/opencl/status.hpp>
#include <dnnopt/device_info.hpp>
#include <dnnopt/error.hpp>

namespace dnnopt::opencl {

enum class recording_method : std::uint8_t {
  plain,             ///< each command enqueued; needs nothing
  command_buffer,    ///< cl_khr_command_buffer
  recordable_queue,  ///< cl_qcom_recordable_queues
};

/// "plain", "command buffer" or "recordable queue".
[[nodiscard]] constexpr std::string_view name_of(recording_method method) noexcept {
  constexpr std::string_view names[] = {"plain", "command buffer", "recordable queue"};
  return names[static_cast<std::size_t>(method)];
}

/// The method that the device's extensions offer.
[[nodiscard]] inline recording_method offered_method(const device_info& info) noexcept {
  if (info.command_buffers) return recording_method::command_buffer;
  if (info.recordable_queues) return recording_method::recordable_queue;
  return recording_method::plain;
}

/// The method to use: the offered one when the measured host time per launch falls by a tenth or more, else plain.
[[nodiscard]] inline recording_method best_method(const device_info& info, const device_facts& facts) noexcept {
  const bool pays = facts.recorded_launch_us > 0 && facts.recorded_launch_us <= 0.9 * facts.launch_us;
  return pays ? offered_method(info) : recording_method::plain;
}

/// The address of an extension function of a platform; null when there is none.
using function_finder = std::function<void*(const char* name)>;

/// Asks the platform, then the library for a plain symbol (Qualcomm exports its own that way).
[[nodiscard]] inline function_finder platform_functions(const cl::Platform& platform) {
  return [platform](const char* name) -> void* {
    void* address = ::clGetExtensionFunctionAddressForPlatform(platform(), name);
#ifndef DNNOPT_LINK_OPENCL
    if (address == nullptr && library().found) address = detail::functions().symbol(name);
#endif
    return address;
  };
}

/// What recording needs of the driver beyond OpenCL itself; given by a test instead of the device's own.
struct recording_driver {
  function_finder find;
  std::function<cl::CommandQueue(cl_command_queue_properties)> make_queue;
};

namespace detail {

/// One run of kernels that the device keeps.
class recorded_run {
 public:
  virtual ~recorded_run() = default;
  /// Enqueues the run on the queue that it was recorded for.
  virtual cl_int enqueue(command_queue& queue) = 0;
};

[[noreturn]] inline void lacks_function(std::string_view extension, std::string_view name) {
  throw error(errc::unsupported,
              "the platform lists " + std::string(extension) + " but has no function " + std::string(name));
}

template <class F>
void find_function(F& function, const function_finder& find, std::string_view extension, const char* name) {
  function = reinterpret_cast<F>(find(name));
  if (function == nullptr) lacks_function(extension, name);
}

/// The functions of cl_khr_command_buffer that a run of kernels needs; these have been the same since its version
/// 0.9.0.
struct command_buffer_functions {
  clCreateCommandBufferKHR_fn create = nullptr;
  clFinalizeCommandBufferKHR_fn finalize = nullptr;
  clReleaseCommandBufferKHR_fn release = nullptr;
  clEnqueueCommandBufferKHR_fn enqueue = nullptr;
  clCommandNDRangeKernelKHR_fn kernel = nullptr;

  explicit command_buffer_functions(const function_finder& find) {
    constexpr std::string_view extension = "cl_khr_command_buffer";
    find_function(create, find, extension, "clCreateCommandBufferKHR");
    find_function(finalize, find, extension, "clFinalizeCommandBufferKHR");
    find_function(release, find, extension, "clReleaseCommandBufferKHR");
    find_function(enqueue, find, extension, "clEnqueueCommandBufferKHR");
    find_function(kernel, find, extension, "clCommandNDRangeKernelKHR");
  }
};

class command_buffer_run : public recorded_run {
 public:
  command_buffer_run(const command_buffer_functions& functions, const context& where, const command_queue& queue,
                     std::span<const prepared_launch* const> launches)
      : functions_(functions) {
    const auto abilities = query_device<cl_bitfield>(where.where().handle(), CL_DEVICE_COMMAND_BUFFER_CAPABILITIES_KHR);
    simultaneous_ = (abilities & CL_COMMAND_BUFFER_CAPABILITY_SIMULTANEOUS_USE_KHR) != 0;
    const cl_command_buffer_properties_khr properties[] = {
        CL_COMMAND_BUFFER_FLAGS_KHR,
        cl_command_buffer_properties_khr{simultaneous_ ? CL_COMMAND_BUFFER_SIMULTANEOUS_USE_KHR : 0u}, 0};
    const cl_command_queue handle = queue.handle();
    cl_int status = CL_SUCCESS;
    buffer_ = functions_.create(1, &handle, properties, &status);
    check(status, "clCreateCommandBufferKHR");
    try {
      cl_sync_point_khr last = 0;
      bool first = true;
      for (const prepared_launch* launch : launches) {
        const launch_size& size = launch->size();
        if (size.empty()) continue;
        cl_sync_point_khr point = 0;
        check(functions_.kernel(buffer_, nullptr, nullptr, launch->kernel()(), size.dimensions, nullptr,
                                size.global.data(), size.local[0] == 0 ? nullptr : size.local.data(), first ? 0 : 1,
                                first ? nullptr : &last, &point, nullptr),
              "clCommandNDRangeKernelKHR", [&] { return "kernel '" + launch->name() + "'"; });
        last = point;
        first = false;
      }
      check(functions_.finalize(buffer_), "clFinalizeCommandBufferKHR");
    } catch (...) {
      functions_.release(buffer_);
      throw;
    }
  }
  command_buffer_run(const command_buffer_run&) = delete;
  command_buffer_run& operator=(const command_buffer_run&) = delete;
  ~command_buffer_run() override { functions_.release(buffer_); }

  cl_int enqueue(command_queue& queue) override {
    // Without simultaneous use a replay must not start before the one before it has ended.
    if (!simultaneous_ && std::exchange(pending_, true)) queue.finish();
    return functions_.enqueue(0, nullptr, buffer_, 0, nullptr, nullptr);
  }

 private:
  command_buffer_functions functions_;
  cl_command_buffer_khr buffer_ = nullptr;
  bool simultaneous_ = false;
  bool pending_ = false;
};

/// cl_qcom_recordable_queues: kernels enqueued on a queue with the recordable property between "new" and "end" form a
/// recording. No public header declares it; sizes and offsets of parameters are Qualcomm's.
struct recordable_queue_functions {
  using recording = struct qcom_recording*;
  recording(CL_API_CALL* create)(cl_command_queue, cl_int*) = nullptr;
  cl_int(CL_API_CALL* end)(recording) = nullptr;
  cl_int(CL_API_CALL* release)(recording) = nullptr;
  /// Queue, recording, then four (count, array) pairs that change arguments, offsets, global and local sizes of single
  /// kernels, then the wait list and the event.
  cl_int(CL_API_CALL* enqueue)(cl_command_queue, recording, std::size_t, const void*, std::size_t, const void*,
                               std::size_t, const void*, std::size_t, const void*, cl_uint, const cl_event*,
                               cl_event*) = nullptr;

  static constexpr cl_command_queue_properties queue_property = cl_command_queue_properties{1} << 30;

  explicit recordable_queue_functions(const function_finder& find) {
    constexpr std::string_view extension = "cl_qcom_recordable_queues";
    find_function(create, find, extension, "clNewRecordingQCOM");
    find_function(end, find, extension, "clEndRecordingQCOM");
    find_function(release, find, extension, "clReleaseRecordingQCOM");
    find_function(enqueue, find, extension, "clEnqueueRecordingQCOM");
  }
};

class recordable_queue_run : public recorded_run {
 public:
  /// `recorder` is a queue with the recordable property; its commands are not executed.
  recordable_queue_run(const recordable_queue_functions& functions, const cl::CommandQueue& recorder,
                       std::span<const prepared_launch* const> launches)
      : functions_(functions), recorder_(recorder) {
    cl_int status = CL_SUCCESS;
    recording_ = functions_.create(recorder_(), &status);
    check(status, "clNewRecordingQCOM");
    try {
      for (const prepared_launch* launch : launches) {
        const launch_size& size = launch->size();
        if (size.empty()) continue;
        check(::clEnqueueNDRangeKernel(recorder_(), launch->kernel()(), size.dimensions, nullptr, size.global.data(),
                                       size.local[0] == 0 ? nullptr : size.local.data(), 0, nullptr, nullptr),
              "clEnqueueNDRangeKernel", [&] { return "recording kernel '" + launch->name() + "'"; });
      }
      check(functions_.end(recording_), "clEndRecordingQCOM");
    } catch (...) {
      functions_.release(recording_);
      throw;
    }
  }
  recordable_queue_run(const recordable_queue_run&) = delete;
  recordable_queue_run& operator=(const recordable_queue_run&) = delete;
  ~recordable_queue_run() override { functions_.release(recording_); }

  cl_int enqueue(command_queue& queue) override {
    return functions_.enqueue(queue.handle(), recording_, 0, nullptr, 0, nullptr, 0, nullptr, 0, nullptr, 0, nullptr,
                              nullptr);
  }

 private:
  recordable_queue_functions functions_;
  cl::CommandQueue recorder_;
  recordable_queue_functions::recording recording_ = nullptr;
};

}  // namespace detail

/// A command that is not a kernel: a function that enqueues exactly one on the given queue.
using other_command = std::function<void(command_queue&, event_sink*)>;

/// A finished sequence, replayed as often as wanted. Arguments and sizes are those of the time it was made: after a
/// change make a new one. Launches and memory must outlive it. Move-only.
class recording {
 public:
  recording() = default;
  recording(recording&&) noexcept = default;
  recording& operator=(recording&&) noexcept = default;

  [[nodiscard]] recording_method method() const noexcept { return method_; }
  /// Commands of one replay.
  [[nodiscard]] std::size_t commands() const noexcept { return steps_.size(); }

  /// Enqueues the whole sequence on `queue`: without a sink by the device's recording (then it must be the queue that
  /// it was made for, else errc::invalid_argument), with a sink command by command on any queue of the context.
  void replay(command_queue& queue, event_sink* sink = nullptr) {
    const bool recorded = sink == nullptr && method_ != recording_method::plain;
    if (recorded && queue.handle() != queue_) {
      throw error(errc::invalid_argument, "a recording is replayed on another queue than it was made for");
    }
    for (std::size_t i = 0; i < steps_.size();) {
      const step& one = steps_[i];
      if (recorded && one.run != nullptr) {
        command_record record;
        record.kind = command_kind::recording;
        command_counts added;
        added.recordings = 1;
        added.kernels = one.run_length;
        queue.enqueue(record, "the replay of a recording", added, nullptr,
                      [&](cl_event*) { return one.run->enqueue(queue); });
        i += one.run_length;
        continue;
      }
      if (one.launch != nullptr) {
        one.launch->enqueue(queue, sink);
      } else {
        one.other(queue, sink);
      }
      ++i;
    }
  }

 private:
  friend class command_recorder;
  struct step {
    const prepared_launch* launch = nullptr;
    other_command other;
    std::unique_ptr<detail::recorded_run> run;  ///< at the first launch of a recorded run
    std::size_t run_length = 0;
  };
  std::vector<step> steps_;
  recording_method method_ = recording_method::plain;
  cl_command_queue queue_ = nullptr;
};

/// Collects a sequence.
class command_recorder {
 public:
  /// The launch must stay where it is as long as the recording lives.
  void add(const prepared_launch& launch) {
    recording::step step;
    step.launch = &launch;
    steps_.push_back(std::move(step));
  }
  void add(other_command other) {
    recording::step step;
    step.other = std::move(other);
    steps_.push_back(std::move(step));
  }

  /// Makes the recording for `queue` and leaves this empty. Runs of fewer than `shortest_run` kernels are not worth
  /// recording. Errors: unsupported when the device lacks the method, and what OpenCL refuses. `find` is for
  /// tests.
  [[nodiscard]] recording finish(const context& where, const command_queue& queue, recording_method method,
                                 std::size_t shortest_run = 2, recording_driver driver = {}) {
    recording result;
    result.steps_ = std::exchange(steps_, {});
    result.method_ = method;
    result.queue_ = queue.handle();
    if (method == recording_method::plain) return result;
    const device_info& info = where.info();
    if (!driver.find) {
      if (method == recording_method::command_buffer ? !info.command_buffers : !info.recordable_queues) {
        throw error(errc::unsupported, "device '" + info.name + "' has no " + std::string(name_of(method)));
      }
      driver.find = platform_functions(where.where().platform);
      driver.make_queue = [&where](cl_command_queue_properties bits) { return where.make_raw_queue(bits); };
    }
    const maker make(where, queue, method, driver);
    std::vector<recording::step>& steps = result.steps_;
    for (std::size_t i = 0; i < steps.size();) {
      std::vector<const prepared_launch*> run;
      while (i + run.size() < steps.size() && steps[i + run.size()].launch != nullptr) {
        run.push_back(steps[i + run.size()].launch);
      }
      if (run.size() >= std::max<std::size_t>(1, shortest_run)) {
        steps[i].run = make(run);
        steps[i].run_length = run.size();
      }
      i += std::max<std::size_t>(1, run.size());
    }
    return result;
  }

 private:
  /// Makes runs by one method; the functions are looked up once.
  class maker {
   public:
    maker(const context& where, const command_queue& queue, recording_method method, const recording_driver& driver)
        : where_(&where), queue_(&queue) {
      if (method == recording_method::command_buffer) {
        command_buffer_ = std::make_unique<detail::command_buffer_functions>(driver.find);
        return;
      }
      recordable_ = std::make_unique<detail::recordable_queue_functions>(driver.find);
      recorder_ = driver.make_queue(detail::recordable_queue_functions::queue_property);
    }

    std::unique_ptr<detail::recorded_run> operator()(std::span<const prepared_launch* const> run) const {
      if (command_buffer_ != nullptr) {
        return std::make_unique<detail::command_buffer_run>(*command_buffer_, *where_, *queue_, run);
      }
      return std::make_unique<detail::recordable_queue_run>(*recordable_, recorder_, run);
    }

   private:
    const context* where_;
    const command_queue* queue_;
    std::unique_ptr<detail::command_buffer_functions> command_buffer_;
    std::unique_ptr<detail::recordable_queue_functions> recordable_;
    cl::CommandQueue recorder_;
  };

  std::vector<recording::step> steps_;
};

}  // namespace dnnopt::opencl

#endif  // DNNOPT_BACKEND_OPENCL_RECORDING_HPP
