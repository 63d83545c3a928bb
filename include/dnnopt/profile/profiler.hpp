// Owns the profiler: what an executor reports to, the writer thread behind it, and the making of the report.
#ifndef DNNOPT_PROFILE_PROFILER_HPP
#define DNNOPT_PROFILE_PROFILER_HPP

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <dnnopt/error.hpp>
#include <dnnopt/profile/clocks/clock_sync.hpp>
#include <dnnopt/profile/clocks/host_clock.hpp>
#include <dnnopt/profile/command_arrival.hpp>
#include <dnnopt/profile/event_queue.hpp>
#include <dnnopt/profile/events.hpp>
#include <dnnopt/profile/monitor.hpp>
#include <dnnopt/profile/report/report.hpp>
#include <dnnopt/profile/report/report_rows.hpp>
#include <dnnopt/profile/statistics.hpp>
#include <dnnopt/profile/waiting_fit.hpp>

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
        clock_(options_.clock),
        waiting_(options_.clock.bias),
        sampler_(options_.monitor) {
    if (enabled()) {
      clock_.refresh();
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

  /// Registers what stays the same of a launch and returns its number; an equal description gets the number it had.
  [[nodiscard]] std::uint32_t describe(launch_info info) {
    if (!info.ops.empty() && info.anchor >= info.ops.size())
      throw error(errc::invalid_argument, "launch '" + info.name + "' has anchor " + std::to_string(info.anchor) +
                                              " of " + std::to_string(info.ops.size()) + " operators");
    std::string key = info.name;
    for (const operator_ref& op : info.ops) key += '\x1f' + op.name;
    key += '\x1e' + info.attributes + '\x1e' + info.shapes + '\x1e' + info.layout;
    const std::lock_guard lock(state_mutex_);
    const auto [found, added] =
        launch_numbers_.try_emplace(std::move(key), static_cast<std::uint32_t>(launches_.size()));
    if (added) launches_.emplace_back().info = std::move(info);
    return found->second;
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
  static constexpr std::uint32_t run_launch = std::numeric_limits<std::uint32_t>::max();
  static constexpr std::uint32_t probe_launch = run_launch - 1;
  static constexpr std::uint32_t arrival_launch = run_launch - 2;
  /// Clocks drift apart by some microseconds in a second, evenly.
  static constexpr std::int64_t arrival_period_ns = 100'000'000;

  /// Sums per operator of a run whose events have not all come yet.
  struct open_run {
    std::map<std::string, double> operators;
    std::uint64_t seen = 0;
    std::uint64_t expected = std::numeric_limits<std::uint64_t>::max();
  };
  struct delivery {
    bool is_run = false;
    kernel_event event{};
    run_event run{};
    const launch_info* info = nullptr;
  };

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
          clock_.refresh();
          raw_event event;
          while (deliveries.size() < 256) {
            if (!queue_.pop(event)) {
              emptied = true;
              break;
            }
            process(event, deliveries);
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

  void process(const raw_event& raw, std::vector<delivery>& deliveries) {
    if (raw.launch == run_launch) {
      finish_run(raw, deliveries);
      return;
    }
    if (raw.launch == probe_launch) {
      clock_.add({raw.host_begin_ns, raw.host_end_ns, raw.queued_ns});
      return;
    }
    if (raw.launch == arrival_launch) {
      arrivals_.probe(raw.host_end_ns, clock_.beside(raw.end_ns));
      return;
    }
    if (raw.launch >= launches_.size()) {
      ++unknown_;
      return;
    }
    raw_event timed = raw;
    raw_event unwrapped = raw;
    arrival seen;
    if (has_device_stamps(raw.kind)) {
      unwrapped.queued_ns = clock_.add({raw.host_begin_ns, raw.host_end_ns, raw.queued_ns});
      unwrapped.submit_ns = clock_.beside(raw.submit_ns);
      unwrapped.start_ns = clock_.beside(raw.start_ns);
      unwrapped.end_ns = clock_.beside(raw.end_ns);
      const auto [former, first] = former_ends_.try_emplace(raw.queue, unwrapped.end_ns);
      if (!first) {
        unwrapped.pause_ns = std::max<std::int64_t>(0, unwrapped.start_ns - former->second);
        former->second = std::max(former->second, unwrapped.end_ns);
      }
      // Of commands repeated back to back one event has the last one's call, and the first one's START.
      if (counts_as_kernel(raw.kind) && raw.repeats == 1) {
        seen = arrivals_.judge(options_.clock.bias, waiting_.line(), unwrapped);
        unwrapped.bias_ns = static_cast<float>(seen.part_ns);
      }
      timed.pause_ns = unwrapped.pause_ns;
      timed.bias_ns = unwrapped.bias_ns;
    }
    const kernel_event event = clock_.to_host(timed);
    recorded_launch& launch = launches_[raw.launch];
    launch.kind = raw.kind;
    const double duration = event.duration_ns();
    launch.durations.add(duration, raw.weight);
    if (counts_as_kernel(raw.kind)) {
      double weight = raw.weight;
      if (options_.mode == profile_mode::monitor) {
        weight *= seen.certainty();
        launch.certain.add(duration, weight);
      }
      if (seen.late_ns) waiting_.note(raw.launch, *seen.late_ns, seen.part_ns, weight);
      learn(raw.launch, seen, static_cast<double>(unwrapped.end_ns - unwrapped.start_ns),
            launch.durations.moments().mean());
    }
    launch.flops_and_bytes[0].add(static_cast<double>(raw.flops));
    launch.flops_and_bytes[1].add(static_cast<double>(raw.bytes));
    if (!launch.info.ops.empty() && options_.mode == profile_mode::full) {
      open_run& open = open_runs_[raw.run];
      open.operators[launch.info.ops[launch.info.anchor].name] += duration;
    }
    if (options_.mode == profile_mode::full) {
      open_run& open = open_runs_[raw.run];
      ++open.seen;
      close_if_complete(raw.run, open);
    }
    kept_.push_back(unwrapped);
    if (kept_.size() > options_.kept_events) {
      kept_.pop_front();
      ++discarded_;
    }
    deliveries.push_back({false, event, {}, &launch.info});
  }

  /// Tells what events of commands waited for have too much. An interrupted call says nothing of others.
  void learn(std::uint32_t launch, const arrival& seen, double whole_ns, double usual_ns) {
    if (seen.interrupted) return;
    if (seen.present) waiting_.add_present(launch, whole_ns - seen.part_ns);
    if (seen.late_ns) waiting_.add_waited(launch, *seen.late_ns, whole_ns, usual_ns);
  }

  void finish_run(const raw_event& raw, std::vector<delivery>& deliveries) {
    const run_event run{raw.run, raw.host_begin_ns, raw.host_end_ns};
    e2e_.add(static_cast<double>(run.end_ns - run.begin_ns));
    if (raw.weight > 0.0F) {  // else it was not taken and announced nothing
      kernels_ = static_cast<std::size_t>(raw.bytes);
      launches_per_run_.add(static_cast<double>(raw.bytes));
    }
    runs_.push_back(run);
    if (runs_.size() > options_.kept_runs) runs_.pop_front();
    if (options_.mode == profile_mode::full) {
      open_run& open = open_runs_[raw.run];
      open.expected = raw.flops;
      close_if_complete(raw.run, open);
      // Drops leave runs incomplete; their sums would be too small, so they are let go.
      while (open_runs_.size() > 64) open_runs_.erase(open_runs_.begin());
    }
    deliveries.push_back({true, {}, run, nullptr});
  }

  void close_if_complete(std::uint32_t number, open_run& open) {
    if (open.seen < open.expected) return;
    for (const auto& [name, sum] : open.operators) operators_[name].add(sum);
    open_runs_.erase(number);
  }

  profiler_options options_;
  event_queue<raw_event> queue_;
  std::atomic<std::uint32_t> next_run_{0};
  std::atomic<std::int64_t> last_arrival_ns_{std::numeric_limits<std::int64_t>::min() / 2};

  std::mutex sampler_mutex_;  // guards the sampler; taken once per run
  clock_synchronizer clock_;
  command_arrival arrivals_;
  waiting_fit waiting_;
  monitor_sampler sampler_;
  double measured_event_cost_ = 0.0;

  std::mutex state_mutex_;  // guards all that follows, up to the wake-up part
  std::map<std::string, std::uint32_t> launch_numbers_;
  std::deque<recorded_launch> launches_;
  std::vector<std::shared_ptr<observer>> observers_;
  std::deque<raw_event> kept_;
  std::deque<run_event> runs_;
  std::map<std::uint32_t, open_run> open_runs_;
  std::map<std::uint8_t, std::int64_t> former_ends_;  // by queue, of its latest command; unwrapped
  std::map<std::string, series> operators_;
  series e2e_;
  running_moments launches_per_run_;
  std::size_t kernels_ = 0;
  std::uint64_t discarded_ = 0;
  std::uint64_t unknown_ = 0;  // events of launches that were never described

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
  profile_report result;
  const std::lock_guard lock(state_mutex_);
  result.mode = options_.mode;
  result.kernels = kernels_;
  result.runs = e2e_.count();
  result.e2e = make_row(e2e_);
  result.e2e.name = "end to end";
  result.e2e.total_ns = result.e2e.mean_ns;
  result.dropped = queue_.dropped() + unknown_;
  result.discarded = discarded_;
  {
    const std::lock_guard sampling(sampler_mutex_);
    result.event_cost_ns = options_.mode == profile_mode::monitor ? sampler_.event_cost_ns() : measured_event_cost_;
    result.overhead = options_.mode == profile_mode::monitor ? sampler_.overhead() : 0.0;
  }

  result.bias = options_.clock.bias;
  waiting_.solve();
  result.waiting = waiting_.line();
  result.waiting_samples = waiting_.samples();
  add_rows(result, launches_, operators_, waiting_);

  result.run_events.assign(runs_.begin(), runs_.end());
  std::size_t kernels = 0, starved = 0, deep = 0;
  for (const raw_event& raw : kept_) {
    result.events.push_back(clock_.place(raw, raw.queued_ns, raw.submit_ns, raw.start_ns, raw.end_ns,
                                         clock_.map_past(raw.start_ns), false));
    if (!counts_as_kernel(raw.kind)) continue;
    ++kernels;
    const bool waited = result.bias.waited(static_cast<double>(result.events.back().bias_ns));
    starved += waited ? 1 : 0;
    deep += !waited && result.bias.deep(raw.behind) ? 1 : 0;
  }
  std::stable_sort(result.events.begin(), result.events.end(),
                   [](const kernel_event& a, const kernel_event& b) { return a.host_begin_ns < b.host_begin_ns; });
  result.origin_ns =
      result.events.empty() ? (runs_.empty() ? 0 : runs_.front().begin_ns) : result.events.front().host_begin_ns;
  for (const run_event& run : result.run_events) {
    if (!result.events.empty() && run.end_ns < result.events.front().host_begin_ns) continue;
    result.origin_ns = std::min(result.origin_ns, run.begin_ns);
    break;
  }
  result.starved = static_cast<double>(starved) / static_cast<double>(std::max<std::size_t>(kernels, 1));
  result.deep = static_cast<double>(deep) / static_cast<double>(std::max<std::size_t>(kernels, 1));
  result.split = mean_split(result.run_events, result.events);
  result.clock = clock_.report();
  result.clock_candidates = clock_.candidates();
  // One snapshot per inference: readers of a trace apply the latest one and do not interpolate.
  std::uint32_t snapshot_run = std::numeric_limits<std::uint32_t>::max();
  for (const raw_event& raw : kept_) {
    if (!has_device_stamps(raw.kind) || raw.run == snapshot_run) continue;
    snapshot_run = raw.run;
    result.clock_snapshots.emplace_back(clock_.map_past(raw.queued_ns)(raw.queued_ns), raw.queued_ns);
  }
  return result;
}

}  // namespace dnnopt::profile

#endif  // DNNOPT_PROFILE_PROFILER_HPP
