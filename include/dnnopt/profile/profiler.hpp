// Owns the profiler: what an executor reports to, and the writer thread behind it.
#ifndef DNNOPT_PROFILE_PROFILER_HPP
#define DNNOPT_PROFILE_PROFILER_HPP

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <limits>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <dnnopt/profile/clocks/clock_sync.hpp>
#include <dnnopt/profile/clocks/host_clock.hpp>
#include <dnnopt/profile/event_queue.hpp>
#include <dnnopt/profile/events.hpp>
#include <dnnopt/profile/monitor.hpp>
#include <dnnopt/profile/recorded_events.hpp>
#include <dnnopt/profile/report/report.hpp>

namespace dnnopt::profile {

/// Settings of `profiler`.
struct profiler_options {
  profile_mode mode = profile_mode::full;
  monitor_options monitor{};
  clock_sync_options clock{};
  std::size_t queue_capacity = std::size_t{1} << 14;  ///< events that may wait for the writer before drops are counted
  std::size_t kept_events = std::size_t{1} << 16;     ///< newest events kept for timelines; statistics cover all
  std::size_t kept_runs = 4096;
  std::size_t injected_kernels = 3;  ///< empty kernels before the first inference (nnPerf's injector)
};

class profiler;

/// One inference as its executing thread sees it. Not shared between threads; move-only, for it ends once.
class run_recorder {
 public:
  run_recorder() = default;
  run_recorder(run_recorder&& other) noexcept { *this = std::move(other); }
  run_recorder& operator=(run_recorder&& other) noexcept {
    end();
    owner_ = std::exchange(other.owner_, nullptr);
    sample_ = other.sample_;
    run_ = other.run_;
    begin_ns_ = other.begin_ns_;
    launches_ = other.launches_;
    asked_ = other.asked_;
    timed_ = other.timed_;
    return *this;
  }
  ~run_recorder() { end(); }

  /// Announces the next command or interval; true where it must carry an event (or clock reads) and be recorded.
  [[nodiscard]] bool timed(event_kind kind) noexcept {
    if (owner_ == nullptr) return false;
    if (counts_as_kernel(kind)) ++launches_;
    ++asked_;
    if (sample_.taken) ++timed_;
    return sample_.taken;
  }
  /// Number of the inference.
  [[nodiscard]] std::uint32_t run() const noexcept { return run_; }
  /// False where nothing of this inference will be timed: it need not announce its commands, and may use a queue
  /// without profiling, whose launches cost less on some drivers.
  [[nodiscard]] bool taken() const noexcept { return owner_ != nullptr && sample_.taken; }
  /// What a timed command stands for; goes into raw_event::weight where the event is recorded by a callback.
  [[nodiscard]] float weight() const noexcept { return sample_.weight; }
  /// Hands over a finished event of this run; sets its run and weight. Never blocks.
  void record(raw_event event) noexcept;
  /// Ends the inference. Called by the destructor too. With `wake` false the writer is not woken: for an executor that
  /// hands over the run's events afterwards and then calls profiler::wake_writer.
  void end(bool wake = true) noexcept;

 private:
  friend class profiler;
  profiler* owner_ = nullptr;
  run_sample sample_{};
  std::uint32_t run_ = 0;
  std::int64_t begin_ns_ = 0;
  std::uint32_t launches_ = 0;  // what the contract counts as kernels
  std::uint32_t asked_ = 0;     // all commands and intervals
  std::uint32_t timed_ = 0;
};

/// Collects events of any number of threads without delaying them: `record` copies one record into a lock-free queue,
/// and a writer thread synchronizes clocks, keeps statistics and calls observers. A profiler whose mode is off does
/// nothing and starts no thread.
class profiler {
 public:
  explicit profiler(profiler_options options = {})
      : options_(std::move(options)),
        queue_(enabled() ? options_.queue_capacity : 2),
        sampler_(options_.monitor),
        recorded_(options_.mode, options_.clock, {options_.kept_events, options_.kept_runs}) {
    if (enabled()) {
      recorded_.refresh_clock();
      writer_ = std::thread([this] { write(); });
    }
  }
  profiler(const profiler&) = delete;
  profiler& operator=(const profiler&) = delete;
  /// Waits until all that was recorded has been written.
  ~profiler() {
    if (!writer_.joinable()) return;
    {
      const std::lock_guard lock(wake_mutex_);
      stopping_ = true;
    }
    wake_.notify_one();
    writer_.join();
  }

  [[nodiscard]] bool enabled() const noexcept { return options_.mode != profile_mode::off; }
  [[nodiscard]] profile_mode mode() const noexcept { return options_.mode; }

  /// Registers what stays the same of a launch and returns its number (recorded_events::describe).
  [[nodiscard]] std::uint32_t describe(launch_info info) {
    const std::lock_guard lock(state_mutex_);
    return recorded_.describe(std::move(info));
  }

  /// Adds an observer; it sees what is recorded from now on.
  void add_observer(std::shared_ptr<observer> sees) {
    const std::lock_guard lock(state_mutex_);
    observers_.push_back(std::move(sees));
  }
  /// Tells observers of a pass or a build, on the calling thread.
  void notify(const pass_event& event) {
    for (const auto& o : observers()) o->on_pass(event);
  }
  void notify(const compile_event& event) {
    for (const auto& o : observers()) o->on_compile(event);
  }

  /// Starts an inference.
  [[nodiscard]] run_recorder begin_run() noexcept {
    run_recorder recorder;
    if (!enabled()) return recorder;
    recorder.owner_ = this;
    recorder.run_ = next_run_.fetch_add(1, std::memory_order_relaxed);
    if (options_.mode == profile_mode::monitor) {
      const std::lock_guard lock(sampler_mutex_);
      recorder.sample_ = sampler_.next_run();
    }
    recorder.begin_ns_ = host_now_ns();
    return recorder;
  }

  /// Hands over a finished event, from any thread and also from a driver's callback. Never blocks: a full queue counts
  /// a drop.
  void record(const raw_event& event) noexcept {
    if (!enabled()) return;
    const bool stored = queue_.push(event);
    if (!stored || queue_.size() * 2 > queue_.capacity()) wake_.notify_one();
  }

  /// Empty kernels that the executor should enqueue and report by `record_probe` before the first inference.
  [[nodiscard]] std::size_t probes_wanted() const noexcept { return enabled() ? options_.injected_kernels : 0; }
  /// The stamps of an empty kernel: they feed the clock and nothing else.
  void record_probe(const clock_pair& pair) noexcept {
    raw_event event;
    event.launch = probe_launch;
    event.host_begin_ns = pair.host_begin_ns;
    event.host_end_ns = pair.host_end_ns;
    event.queued_ns = pair.device_ns;
    record(event);
  }

  /// Whether an empty kernel that the device waits for should be shown to `record_arrival` now, after an inference that
  /// was timed and before its events are handed over: then it tells how long commands of that inference were waited
  /// for. False where that makes no difference, or where one was seen a tenth of a second ago.
  [[nodiscard]] bool wants_arrival() const noexcept {
    return enabled() && options_.clock.bias.arrival_ns &&
           host_now_ns() - last_arrival_ns_.load(std::memory_order_relaxed) >= arrival_period_ns;
  }
  /// When the enqueue call of such a kernel returned, and its END on the device's clock.
  void record_arrival(std::int64_t host_end_ns, std::int64_t end_ns) noexcept {
    raw_event event;
    event.launch = arrival_launch;
    event.host_end_ns = host_end_ns;
    event.end_ns = end_ns;
    last_arrival_ns_.store(host_end_ns, std::memory_order_relaxed);
    record(event);
  }

  /// What was done after an inference that was timed, for the profiler alone; `monitor` counts it.
  void add_collection_time(std::int64_t nanoseconds) noexcept {
    if (options_.mode != profile_mode::monitor) return;
    const std::lock_guard lock(sampler_mutex_);
    sampler_.observe_collection(static_cast<double>(nanoseconds));
  }

  /// A direct measurement of what timing one command costs; `monitor` starts from it.
  void set_event_cost(double nanoseconds) noexcept {
    const std::lock_guard lock(sampler_mutex_);
    sampler_.set_event_cost(nanoseconds);
    measured_event_cost_ = nanoseconds;
  }

  /// Has the writer look for events at once. That is a system call: full mode pays it so that observers see events
  /// soon, in other modes this does nothing and the writer keeps its own period.
  void wake_writer() noexcept {
    if (options_.mode == profile_mode::full) wake_.notify_one();
  }

  /// Waits until everything recorded before the call has reached statistics and observers.
  void flush() {
    if (!writer_.joinable()) return;
    std::unique_lock lock(wake_mutex_);
    const std::uint64_t ticket = ++flush_wanted_;
    wake_.notify_one();
    flushed_.wait(lock, [&] { return flush_done_ >= ticket; });
  }

  /// Events lost because the writer, or an observer in it, was slower than the executor.
  [[nodiscard]] std::uint64_t dropped() const noexcept { return queue_.dropped(); }

  /// Flushes and tells all that was measured so far. O(events kept * log).
  [[nodiscard]] profile_report report();

 private:
  friend class run_recorder;
  /// Clocks drift apart by some microseconds in a second, evenly.
  static constexpr std::int64_t arrival_period_ns = 100'000'000;

  [[nodiscard]] std::vector<std::shared_ptr<observer>> observers() {
    const std::lock_guard lock(state_mutex_);
    return observers_;
  }

  void end_run(const run_recorder& recorder, bool wake) noexcept {
    const std::int64_t end_ns = host_now_ns();
    if (options_.mode == profile_mode::monitor) {
      const std::lock_guard lock(sampler_mutex_);
      sampler_.observe(static_cast<double>(end_ns - recorder.begin_ns_), recorder.asked_, recorder.timed_);
    }
    raw_event event;
    event.launch = run_launch;
    event.run = recorder.run_;
    event.host_begin_ns = recorder.begin_ns_;
    event.host_end_ns = end_ns;
    event.bytes = recorder.launches_;
    event.weight = recorder.sample_.weight;
    event.flops = recorder.timed_;
    record(event);
    if (wake) wake_writer();
  }

  void write() {
    std::vector<delivery> deliveries;
    for (;;) {
      bool emptied = false;
      while (!emptied) {
        deliveries.clear();
        {
          const std::lock_guard lock(state_mutex_);
          recorded_.refresh_clock();
          raw_event event;
          while (deliveries.size() < 256) {
            if (!queue_.pop(event)) {
              emptied = true;
              break;
            }
            recorded_.add(event, deliveries);
          }
        }
        if (!deliveries.empty())
          for (const auto& o : observers())
            for (const delivery& d : deliveries) {
              if (d.is_run)
                o->on_run(d.run);
              else
                o->on_kernel(d.event, *d.info);
            }
      }
      std::unique_lock lock(wake_mutex_);
      // A flush is done when a drain that began after it has found the queue empty.
      if (flush_seen_ > flush_done_) {
        flush_done_ = flush_seen_;
        flushed_.notify_all();
      }
      if (flush_wanted_ > flush_seen_) {
        flush_seen_ = flush_wanted_;
        continue;
      }
      if (stopping_) {
        if (std::exchange(drained_after_stop_, true)) return;
        continue;
      }
      wake_.wait_for(lock, std::chrono::milliseconds(20));
    }
  }

  profiler_options options_;
  event_queue<raw_event> queue_;
  std::atomic<std::uint32_t> next_run_{0};
  std::atomic<std::int64_t> last_arrival_ns_{std::numeric_limits<std::int64_t>::min() / 2};

  std::mutex sampler_mutex_;  // guards the sampler; taken once per run
  monitor_sampler sampler_;
  double measured_event_cost_ = 0.0;

  std::mutex state_mutex_;  // guards what is recorded, and the observers
  recorded_events recorded_;
  std::vector<std::shared_ptr<observer>> observers_;

  std::mutex wake_mutex_;
  std::condition_variable wake_;
  std::condition_variable flushed_;
  std::uint64_t flush_wanted_ = 0;
  std::uint64_t flush_seen_ = 0;
  std::uint64_t flush_done_ = 0;
  bool stopping_ = false;
  bool drained_after_stop_ = false;
  std::thread writer_;
};

inline void run_recorder::record(raw_event event) noexcept {
  if (owner_ == nullptr) return;
  event.run = run_;
  event.weight = sample_.weight;
  owner_->record(event);
}

inline void run_recorder::end(bool wake) noexcept {
  if (owner_ == nullptr) return;
  owner_->end_run(*this, wake);
  owner_ = nullptr;
}

inline profile_report profiler::report() {
  flush();
  const std::lock_guard lock(state_mutex_);
  profile_report result = recorded_.report();
  result.dropped += queue_.dropped();
  const std::lock_guard sampling(sampler_mutex_);
  const bool sampled = options_.mode == profile_mode::monitor;
  result.event_cost_ns = sampled ? sampler_.event_cost_ns() : measured_event_cost_;
  result.overhead = sampled ? sampler_.overhead() : 0.0;
  return result;
}

}  // namespace dnnopt::profile

#endif  // DNNOPT_PROFILE_PROFILER_HPP
