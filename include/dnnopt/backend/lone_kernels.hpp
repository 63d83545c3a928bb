// Owns the profiling of a program's kernels one by one, none of them in an inference, into a latency table.
#ifndef DNNOPT_BACKEND_LONE_KERNELS_HPP
#define DNNOPT_BACKEND_LONE_KERNELS_HPP

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <dnnopt/backend/opencl_context.hpp>
#include <dnnopt/backend/profiled_run.hpp>
#include <dnnopt/backend/program.hpp>
#include <dnnopt/backend/run_observer.hpp>
#include <dnnopt/profile/event_timer.hpp>
#include <dnnopt/profile/host_clock.hpp>
#include <dnnopt/profile/latency_table.hpp>
#include <dnnopt/profile/statistics.hpp>

namespace dnnopt {

/// Keys of a program's launches in order of execution: what a latency table predicts it by. Needs no device.
[[nodiscard]] inline std::vector<profile::latency_key> launch_keys(
    const program& p, const std::string& device, profile::latency_level level = profile::latency_level::kernel) {
  std::vector<profile::latency_key> keys;
  for (const placed_node& step : p.steps)
    for (std::size_t k = 0; k < step.lowered.kernels.size(); ++k)
      keys.push_back(profile::key_of(describe_launch(p, step, k), device, level));
  return keys;
}

/// Goes through memory of its own, so that what a kernel finds in caches is what the rest of an inference left there
/// and not its own former run.
class cache_sweep {
 public:
  /// Errors: opencl_call; out_of_device_memory.
  cache_sweep(const opencl::context& where, std::size_t bytes) : queue_(where.make_queue()), items_(bytes / 16 + 1) {
    const char* source = "__kernel void dnnopt_sweep(__global float4* x) { x[get_global_id(0)] += 1.0f; }";
    const cl_device_id device = where.where().handle();
    cl_int status = CL_SUCCESS;
    program_ = cl::Program(::clCreateProgramWithSource(where.handle(), 1, &source, nullptr, &status), false);
    opencl::check(status, "clCreateProgramWithSource");
    opencl::check(::clBuildProgram(program_(), 1, &device, "", nullptr, nullptr), "clBuildProgram");
    kernel_ = cl::Kernel(::clCreateKernel(program_(), "dnnopt_sweep", &status), false);
    opencl::check(status, "clCreateKernel");
    memory_ = cl::Buffer(::clCreateBuffer(where.handle(), CL_MEM_READ_WRITE, items_ * 16, nullptr, &status), false);
    opencl::check(status, "clCreateBuffer");
    const cl_mem memory = memory_();
    opencl::check(::clSetKernelArg(kernel_(), 0, sizeof(memory), &memory), "clSetKernelArg");
  }
  /// Sweeps and waits for the end of it.
  void run() {
    queue_.launch(kernel_(), {1, {items_, 1, 1}, {0, 0, 0}}, "dnnopt_sweep");
    queue_.finish();
  }

 private:
  opencl::command_queue queue_;
  std::size_t items_;
  cl::Program program_;
  cl::Kernel kernel_;
  cl::Buffer memory_;
};

/// A run in which one kernel is enqueued several times and all others are left out. Counts host time by the calls.
class lone_kernel_run final : public run_observer, private opencl::event_sink {
 public:
  /// Leaves out all kernels until `choose`. `sweep`, where given, runs before each timed launch.
  explicit lone_kernel_run(cache_sweep* sweep = nullptr) : sweep_(sweep) {}
  /// Kernel `k` of step `s` is enqueued `warm` times without events, then `timed` times with them.
  void choose(std::size_t s, std::size_t k, std::size_t warm, std::size_t timed) {
    step_ = s;
    kernel_ = k;
    warm_ = warm;
    timed_ = timed;
    seen_ = 0;
    enqueued_.clear();
  }

  [[nodiscard]] std::size_t launches(std::size_t s, std::size_t k) override {
    if (first_ns_ == 0) first_ns_ = profile::host_now_ns();
    return s == step_ && k == kernel_ ? warm_ + timed_ : 0;
  }
  [[nodiscard]] opencl::event_sink* kernel(std::size_t, std::size_t, std::uint64_t, std::uint64_t) override {
    enqueued_.push_back(profile::host_now_ns());
    if (seen_++ < warm_) return nullptr;
    if (sweep_ != nullptr) sweep_->run();
    return this;
  }
  [[nodiscard]] opencl::event_sink* transfer(direction) override { return nullptr; }
  [[nodiscard]] std::int64_t now() const override { return 0; }
  void host_operator(std::size_t, std::int64_t) override {}
  void waited(std::int64_t) override {}

  /// START to END of the timed launches in nanoseconds; call after the run.
  [[nodiscard]] std::vector<double> take_times() {
    std::vector<double> times;
    profile::raw_event raw;
    for (const cl::Event& event : events_) {
      profile::read_event_stamps(event, raw);
      times.push_back(static_cast<double>(raw.end_ns - raw.start_ns));
    }
    events_.clear();
    return times;
  }
  /// Host nanoseconds from one enqueue without an event to the next.
  [[nodiscard]] std::vector<double> enqueue_times() const {
    std::vector<double> times;
    for (std::size_t i = 1; i < std::min(warm_, enqueued_.size()); ++i)
      times.push_back(static_cast<double>(enqueued_[i] - enqueued_[i - 1]));
    return times;
  }
  /// Host clock when the first kernel's turn came, zero before; forgotten by the call.
  [[nodiscard]] std::int64_t take_first_ns() noexcept { return std::exchange(first_ns_, 0); }

 private:
  void on_command(const opencl::command_record&, cl::Event event) override { events_.push_back(std::move(event)); }

  cache_sweep* sweep_;
  std::size_t step_ = static_cast<std::size_t>(-1);
  std::size_t kernel_ = 0;
  std::size_t warm_ = 0;
  std::size_t timed_ = 0;
  std::size_t seen_ = 0;
  std::int64_t first_ns_ = 0;
  std::vector<cl::Event> events_;
  std::vector<std::int64_t> enqueued_;
};

/// How lone kernels are timed.
struct lone_kernel_options {
  std::size_t warm = 3;
  std::size_t timed = 15;
  std::size_t rounds = 3;
  double event_bias_ns = 0.0;   ///< as kernel_injector::measure_event_bias tells it
  std::size_t sweep_bytes = 0;  ///< other memory gone through before each timed launch; 0: caches stay warm
  profile::latency_level level = profile::latency_level::kernel;  ///< operator_ for a program without fusion
};

/// What an inference costs besides its kernels: from runs that enqueue none (transfers and waiting), from launches
/// without events (the host's part) and from empty kernels behind a long one (the device's part). `run` is one
/// inference of the executor that executes `p`, with the observer it is given; it must have run once before. Errors:
/// those of `run`; opencl_call.
[[nodiscard]] inline profile::launch_model measure_launches(const opencl::context& where, const program& p,
                                                            const std::function<void(run_observer*)>& run) {
  lone_kernel_run lone;
  profile::launch_model found;
  opencl::command_queue queue = where.make_queue({true, 0});
  profile::kernel_injector injector(where.handle(), where.where().handle());
  found.gap_ns = injector.measure_gap(queue);

  std::vector<double> before, after;
  for (int i = 0; i < 25; ++i) {
    (void)lone.take_first_ns();
    const std::int64_t begin = profile::host_now_ns();
    run(&lone);
    const std::int64_t end = profile::host_now_ns();
    const std::int64_t first = std::max(lone.take_first_ns(), begin);
    if (i < 5) continue;
    before.push_back(static_cast<double>(first - begin));
    after.push_back(static_cast<double>(end - first));
  }
  found.prologue_ns = profile::exact_quantile(before, 0.5);
  found.epilogue_ns = profile::exact_quantile(after, 0.5);

  for (std::size_t s = 0; s < p.steps.size(); ++s) {
    if (p.steps[s].lowered.kernels.empty()) continue;
    std::vector<double> enqueues;
    for (int i = 0; i < 5; ++i) {
      lone.choose(s, 0, 33, 0);
      run(&lone);
      for (const double ns : lone.enqueue_times()) enqueues.push_back(ns);
    }
    found.enqueue_ns = profile::exact_quantile(enqueues, 0.5);
    break;
  }
  return found;
}

/// Profiles the kernels whose keys `into` lacks, one by one. `run` as above. Kernels that wait for a host operator's
/// sizes are timed with those of the former run. Errors: those of `run`; opencl_call.
inline void measure_lone_kernels(const opencl::context& where, const program& p,
                                 const std::function<void(run_observer*)>& run, profile::latency_table& into,
                                 const lone_kernel_options& options = {}) {
  std::optional<cache_sweep> sweep;
  if (options.sweep_bytes != 0) sweep.emplace(where, options.sweep_bytes);
  lone_kernel_run lone(sweep ? &*sweep : nullptr);
  for (std::size_t s = 0; s < p.steps.size(); ++s)
    for (std::size_t k = 0; k < p.steps[s].lowered.kernels.size(); ++k) {
      const profile::latency_key key =
          profile::key_of(describe_launch(p, p.steps[s], k), where.info().name, options.level);
      // Kernels of one step share its key; each adds its time to the mean that they are predicted by.
      if (k == 0 && into.find(key)) break;
      profile::series times;
      for (std::size_t round = 0; round < options.rounds; ++round) {
        lone.choose(s, k, options.warm, options.timed);
        run(&lone);
        for (const double ns : lone.take_times()) times.add(std::max(ns - options.event_bias_ns, 0.5 * ns));
      }
      into.add(key, profile::entry_of(times));
    }
}

}  // namespace dnnopt

#endif  // DNNOPT_BACKEND_LONE_KERNELS_HPP
