// Owns runs in which one kernel is enqueued more than once, or each carries an event behind a long kernel.
#ifndef DNNOPT_BACKEND_MEASURE_RUNS_COPIED_KERNEL_RUN_HPP
#define DNNOPT_BACKEND_MEASURE_RUNS_COPIED_KERNEL_RUN_HPP

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include <dnnopt/backend/measure/event_timer.hpp>
#include <dnnopt/backend/measure/kernel_injector.hpp>
#include <dnnopt/backend/opencl/context.hpp>
#include <dnnopt/backend/run/observer.hpp>
#include <dnnopt/profile/clocks/host_clock.hpp>
#include <dnnopt/profile/statistics.hpp>

namespace dnnopt {

/// Keeps the event of one command.
class one_event final : public opencl::event_sink {
 public:
  void on_command(const opencl::command_record&, cl::Event event) override { event_ = std::move(event); }
  void clear() noexcept { event_ = cl::Event(); }
  /// END in nanoseconds of the device's clock, of a command that is done.
  [[nodiscard]] std::int64_t end_ns() const {
    profile::raw_event raw;
    profile::read_event_stamps(event_, raw);
    return raw.end_ns;
  }

 private:
  cl::Event event_;
};

/// A run in which one kernel is enqueued more than once and nothing else is timed, but for the ends of the first and
/// the last command where the run begins with a long kernel.
class copied_kernel_run final : public run_observer, private opencl::event_sink {
 public:
  /// `holding`, where given, is prepared to hold the device; each run then begins with it, so that the host, which may
  /// need longer to enqueue a short kernel than the device to run it, does not show in what a copy adds.
  /// `launches` is how many kernels the program has.
  explicit copied_kernel_run(profile::kernel_injector* holding = nullptr, std::size_t launches = 0) noexcept
      : holding_(holding), launches_(launches) {}
  /// Kernel `k` of step `s` is enqueued `copies` times more; where `timed`, all of them but the first carry events, and
  /// the other kernels too unless there is a long one.
  void choose(std::size_t s, std::size_t k, std::size_t copies, bool timed = false) noexcept {
    step_ = s;
    kernel_ = k;
    copies_ = copies;
    timed_ = timed;
    begun_ns_ = last_ns_ = 0;
    seen_ = position_ = following_ = 0;
    hold_.clear();
    end_.clear();
    forget_times();
  }
  void before(std::size_t, std::size_t, opencl::command_queue& queue) override {
    if (holding_ == nullptr || begun_ns_ != 0) return;
    holding_->hold(queue, timed_ ? nullptr : &hold_);
    begun_ns_ = profile::host_now_ns();
  }
  [[nodiscard]] std::size_t launches(std::size_t s, std::size_t k) override {
    chosen_ = s == step_ && k == kernel_;
    first_ = true;
    ++position_;
    if (chosen_) following_ = launches_ - std::min(launches_, position_);
    return chosen_ ? 1 + copies_ : 1;
  }
  [[nodiscard]] opencl::event_sink* kernel(std::size_t, std::size_t, std::uint64_t, std::uint64_t) override {
    if (holding_ != nullptr) last_ns_ = profile::host_now_ns();
    if (timed_) {
      is_copy_ = chosen_ && !std::exchange(first_, false);
      return is_copy_ || holding_ == nullptr ? this : nullptr;
    }
    return holding_ != nullptr && ++seen_ == launches_ + copies_ ? &end_ : nullptr;
  }

  /// Host nanoseconds from the long kernel's enqueue to the last kernel's; 0 without a long kernel.
  [[nodiscard]] double host_ns() const noexcept { return static_cast<double>(last_ns_ - begun_ns_); }

  /// Device nanoseconds from the long kernel's end to the last kernel's; call after a run that is not timed.
  [[nodiscard]] double device_ns() const { return static_cast<double>(end_.end_ns() - hold_.end_ns()); }

  /// Lets the events of the former run go.
  void forget_times() noexcept {
    events_.clear();
    others_.clear();
  }
  /// Nanoseconds of all kernels but the copies, START to END, without a long kernel; call after a run that is timed.
  [[nodiscard]] double others_ns() const {
    double sum = 0.0;
    profile::raw_event raw;
    for (const cl::Event& event : others_) {
      profile::read_event_stamps(event, raw);
      sum += static_cast<double>(raw.end_ns - raw.start_ns);
    }
    return sum;
  }
  /// Adds what is left of START to END of the timed copies without `bias`, and END to the next one's START, in
  /// nanoseconds; call after the run.
  void take_times(const profile::event_bias& bias, std::vector<double>& times, std::vector<double>& gaps) {
    profile::raw_event raw;
    for (std::size_t i = 0; i < events_.size(); ++i) {
      const std::int64_t former = raw.end_ns;
      profile::read_event_stamps(events_[i], raw);
      // Behind a long kernel all of the run is in the queue.
      const auto behind = static_cast<std::int32_t>(events_.size() - 1 - i + following_);
      const double pause = i > 0 ? static_cast<double>(raw.start_ns - former) : -1.0;
      times.push_back(profile::without_bias(static_cast<double>(raw.end_ns - raw.start_ns), bias.of(pause, behind)));
      if (i > 0) gaps.push_back(pause);
    }
    events_.clear();
  }

 private:
  void on_command(const opencl::command_record&, cl::Event event) override {
    (is_copy_ ? events_ : others_).push_back(std::move(event));
  }

  profile::kernel_injector* holding_;
  std::size_t launches_;
  one_event hold_, end_;
  std::size_t seen_ = 0;
  std::size_t position_ = 0;   // of the kernel that is enqueued, among the program's
  std::size_t following_ = 0;  // kernels of the program behind the chosen one
  std::int64_t begun_ns_ = 0;
  std::int64_t last_ns_ = 0;
  std::size_t step_ = static_cast<std::size_t>(-1);
  std::size_t kernel_ = 0;
  std::size_t copies_ = 0;
  bool timed_ = false;
  bool chosen_ = false;
  bool first_ = true;
  bool is_copy_ = false;
  std::vector<cl::Event> events_;  // of copies
  std::vector<cl::Event> others_;
};

/// A run that waits behind a long kernel and in which each kernel carries an event.
class timed_run final : public run_observer, private opencl::event_sink {
 public:
  /// `holding` must be prepared to hold the device.
  explicit timed_run(profile::kernel_injector& holding) noexcept : holding_(&holding) {}
  /// Forgets the former run.
  void clear() noexcept {
    begun_ns_ = last_ns_ = 0;
    events_.clear();
  }
  void before(std::size_t, std::size_t, opencl::command_queue& queue) override {
    if (begun_ns_ != 0) return;
    holding_->hold(queue);
    begun_ns_ = profile::host_now_ns();
  }
  [[nodiscard]] opencl::event_sink* kernel(std::size_t, std::size_t, std::uint64_t, std::uint64_t) override {
    last_ns_ = profile::host_now_ns();
    return this;
  }
  /// Host nanoseconds from the long kernel's enqueue to the last kernel's.
  [[nodiscard]] double host_ns() const noexcept { return static_cast<double>(last_ns_ - begun_ns_); }
  /// What is left of START to END of each kernel in nanoseconds without `bias`; call after the run. Adds the pauses
  /// between them.
  [[nodiscard]] std::vector<double> times(const profile::event_bias& bias, std::vector<double>& pauses) const {
    std::vector<double> result;
    profile::raw_event raw;
    for (std::size_t i = 0; i < events_.size(); ++i) {
      const std::int64_t former = raw.end_ns;
      profile::read_event_stamps(events_[i], raw);
      const double pause = former == 0 ? -1.0 : static_cast<double>(raw.start_ns - former);
      if (former != 0) pauses.push_back(pause);
      const auto behind = static_cast<std::int32_t>(events_.size() - 1 - i);
      result.push_back(profile::without_bias(static_cast<double>(raw.end_ns - raw.start_ns), bias.of(pause, behind)));
    }
    return result;
  }

 private:
  void on_command(const opencl::command_record&, cl::Event event) override { events_.push_back(std::move(event)); }

  profile::kernel_injector* holding_;
  std::int64_t begun_ns_ = 0;
  std::int64_t last_ns_ = 0;
  std::vector<cl::Event> events_;
};

}  // namespace dnnopt

#endif  // DNNOPT_BACKEND_MEASURE_RUNS_COPIED_KERNEL_RUN_HPP
