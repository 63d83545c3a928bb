// Owns runs in which one kernel stands alone, in a stream of its own, or others stand for all.
#ifndef DNNOPT_BACKEND_MEASURE_RUNS_LONE_KERNEL_RUNS_HPP
#define DNNOPT_BACKEND_MEASURE_RUNS_LONE_KERNEL_RUNS_HPP

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include <dnnopt/backend/measure/event_timer.hpp>
#include <dnnopt/backend/measure/kernel_injector.hpp>
#include <dnnopt/backend/measure/runs/cache_sweep.hpp>
#include <dnnopt/backend/opencl/context.hpp>
#include <dnnopt/backend/run/observer.hpp>
#include <dnnopt/profile/clocks/host_clock.hpp>
#include <dnnopt/profile/statistics.hpp>

namespace dnnopt {

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

  [[nodiscard]] bool wants_events() const override { return timed_ > 0; }
  [[nodiscard]] std::size_t launches(std::size_t s, std::size_t k) override {
    return s == step_ && k == kernel_ ? warm_ + timed_ : 0;
  }
  [[nodiscard]] opencl::event_sink* kernel(std::size_t, std::size_t, std::uint64_t, std::uint64_t) override {
    enqueued_.push_back(profile::host_now_ns());
    if (seen_++ < warm_) return nullptr;
    if (sweep_ != nullptr) sweep_->run();
    return this;
  }

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

 private:
  void on_command(const opencl::command_record&, cl::Event event) override { events_.push_back(std::move(event)); }

  cache_sweep* sweep_;
  std::size_t step_ = static_cast<std::size_t>(-1);
  std::size_t kernel_ = 0;
  std::size_t warm_ = 0;
  std::size_t timed_ = 0;
  std::size_t seen_ = 0;
  std::vector<cl::Event> events_;
  std::vector<std::int64_t> enqueued_;
};

/// A run in which one kernel is enqueued many times behind a long one, which hides the host, and all others are left
/// out. The first and the last of them carry events.
class streamed_kernel_run final : public run_observer, private opencl::event_sink {
 public:
  /// `injector` must be prepared to hold the device. `sweep`, where given, is enqueued before each launch but the
  /// first.
  explicit streamed_kernel_run(profile::kernel_injector& injector, cache_sweep* sweep = nullptr)
      : injector_(&injector), sweep_(sweep) {}
  /// Kernel `k` of step `s` is enqueued `launches` times. @pre launches >= 2.
  void choose(std::size_t s, std::size_t k, std::size_t launches) {
    step_ = s;
    kernel_ = k;
    launches_ = launches;
    enqueued_.clear();
    events_.clear();
  }

  void before(std::size_t s, std::size_t k, opencl::command_queue& queue) override {
    if (s != step_ || k != kernel_) return;
    queue_ = &queue;
    injector_->hold(queue);
    held_ns_ = profile::host_now_ns();
  }
  [[nodiscard]] std::size_t launches(std::size_t s, std::size_t k) override {
    return s == step_ && k == kernel_ ? launches_ : 0;
  }
  [[nodiscard]] opencl::event_sink* kernel(std::size_t, std::size_t, std::uint64_t, std::uint64_t) override {
    if (sweep_ != nullptr && !enqueued_.empty()) sweep_->enqueue(*queue_);
    enqueued_.push_back(profile::host_now_ns());
    return enqueued_.size() == 1 || enqueued_.size() == launches_ ? this : nullptr;
  }

  /// Device nanoseconds from the end of the first launch to the end of the last one; call after the run.
  [[nodiscard]] double device_ns() const {
    profile::raw_event first, last;
    profile::read_event_stamps(events_.at(0), first);
    profile::read_event_stamps(events_.at(1), last);
    return static_cast<double>(last.end_ns - first.end_ns);
  }
  /// Host nanoseconds from the long kernel's enqueue to the begin of the last one's.
  [[nodiscard]] double host_ns() const { return static_cast<double>(enqueued_.back() - held_ns_); }
  /// Host nanoseconds from one enqueue without an event to the next one.
  [[nodiscard]] std::vector<double> enqueue_times() const {
    std::vector<double> times;
    for (std::size_t i = 2; i + 1 < enqueued_.size(); ++i)
      times.push_back(static_cast<double>(enqueued_[i] - enqueued_[i - 1]));
    return times;
  }

 private:
  void on_command(const opencl::command_record&, cl::Event event) override { events_.push_back(std::move(event)); }

  profile::kernel_injector* injector_;
  cache_sweep* sweep_;
  opencl::command_queue* queue_ = nullptr;
  std::size_t step_ = static_cast<std::size_t>(-1);
  std::size_t kernel_ = 0;
  std::size_t launches_ = 0;
  std::int64_t held_ns_ = 0;
  std::vector<std::int64_t> enqueued_;
  std::vector<cl::Event> events_;
};

/// A run in which the injector's kernels stand for all of the program's: what an inference is without its kernels.
/// Enqueues without events, on the queue of runs that nobody observes.
class substituted_run final : public run_observer {
 public:
  explicit substituted_run(profile::kernel_injector& injector) : injector_(&injector) {}
  /// The next run enqueues `count` kernels: long ones, as the injector was prepared for, or empty ones.
  void choose(std::size_t count, bool long_ones) noexcept {
    count_ = count;
    long_ = long_ones;
    first_ns_ = 0;
  }
  void before(std::size_t, std::size_t, opencl::command_queue& queue) override {
    if (first_ns_ != 0) return;
    first_ns_ = profile::host_now_ns();
    for (std::size_t i = 0; i < count_; ++i) long_ ? injector_->hold(queue) : injector_->launch_empty(queue);
  }
  [[nodiscard]] bool wants_events() const override { return false; }
  [[nodiscard]] std::size_t launches(std::size_t, std::size_t) override { return 0; }
  [[nodiscard]] opencl::event_sink* kernel(std::size_t, std::size_t, std::uint64_t, std::uint64_t) override {
    return nullptr;
  }

  /// Host clock when the first kernel's turn came; zero where the program has no kernel.
  [[nodiscard]] std::int64_t first_ns() const noexcept { return first_ns_; }

 private:
  profile::kernel_injector* injector_;
  std::size_t count_ = 0;
  bool long_ = false;
  std::int64_t first_ns_ = 0;
};

}  // namespace dnnopt

#endif  // DNNOPT_BACKEND_MEASURE_RUNS_LONE_KERNEL_RUNS_HPP
