// Owns the watch over long runs: rolling percentiles per kernel and the detection of when, and which, kernels moved.
#ifndef DNNOPT_PROFILE_LONG_RUN_HPP
#define DNNOPT_PROFILE_LONG_RUN_HPP

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <dnnopt/profile/events.hpp>
#include <dnnopt/profile/statistics.hpp>
#include <dnnopt/profile/telemetry.hpp>

namespace dnnopt::profile {

/// The newest samples of a series, in constant memory.
class rolling_window {
 public:
  /// @pre capacity > 0.
  explicit rolling_window(std::size_t capacity = 128) : capacity_(capacity) {}
  void add(double value) {
    if (values_.size() < capacity_)
      values_.push_back(value);
    else
      values_[next_] = value;
    next_ = (next_ + 1) % capacity_;
  }
  /// Exact percentile of the window; zero when empty. O(capacity).
  [[nodiscard]] double quantile(double q) const {
    if (values_.empty()) return 0.0;
    std::vector<double> copy = values_;
    return exact_quantile(copy, q);
  }
  [[nodiscard]] std::size_t size() const noexcept { return values_.size(); }

 private:
  std::size_t capacity_;
  std::size_t next_ = 0;
  std::vector<double> values_;
};

/// Settings of `shift_detector`.
struct shift_options {
  std::size_t baseline = 48;      ///< samples from which the usual time and its spread are learned
  double slack = 0.75;            ///< deviations below this many spreads do not count
  double threshold = 14.0;        ///< summed deviations, in spreads, that make a shift
  double largest = 4.0;           ///< one sample counts at most as this many spreads
  double smallest_change = 0.05;  ///< relative change of the median below which a shift is no shift
};

/// Finds lasting changes of a series by a two-sided cumulative sum (Page 1954) over the logarithm of its samples,
/// scaled by median and median absolute deviation of a baseline. A single outlier counts little; a change of one spread
/// is found after some tens of samples, one of several spreads after a few.
class shift_detector {
 public:
  explicit shift_detector(shift_options options = {}) : options_(options) { learned_.reserve(options_.baseline); }

  struct shift {
    double before = 0.0;  ///< median of the baseline
    double after = 0.0;   ///< median of the samples that built up the change
  };

  /// Takes a sample (positive); tells of a shift at the sample that makes it certain, and starts a new baseline.
  std::optional<shift> add(double value) {
    const double x = std::log(std::max(value, 1e-9));
    if (learned_.size() < options_.baseline) {
      learned_.push_back(x);
      if (learned_.size() == options_.baseline) learn();
      return std::nullopt;
    }
    const double z = std::clamp((x - median_) / spread_, -options_.largest, options_.largest);
    for (side& s : sides_) {
      const double sum = s.sum + s.sign * z - options_.slack;
      if (sum <= 0.0) {
        s.sum = 0.0;
        s.samples.clear();
        continue;
      }
      s.sum = sum;
      if (s.samples.size() < 256) s.samples.push_back(x);
      if (s.sum < options_.threshold) continue;
      std::vector<double> copy = s.samples;
      const double after = exact_quantile(copy, 0.5);
      const shift found{std::exp(median_), std::exp(after)};
      const bool real = std::abs(after - median_) > std::log1p(options_.smallest_change);
      s.sum = 0.0;
      s.samples.clear();
      if (!real) continue;
      learned_.clear();
      for (side& other : sides_) {
        other.sum = 0.0;
        other.samples.clear();
      }
      return found;
    }
    return std::nullopt;
  }

 private:
  struct side {
    double sign;
    double sum = 0.0;
    std::vector<double> samples{};
  };

  void learn() {
    std::vector<double> copy = learned_;
    median_ = exact_quantile(copy, 0.5);
    for (double& x : copy) x = std::abs(x - median_);
    // A half per cent is the least spread: a device that repeats itself to the tick would call any change a shift.
    spread_ = std::max(0.005, 1.4826 * exact_quantile(copy, 0.5));
  }

  shift_options options_;
  double median_ = 0.0;
  double spread_ = 1.0;
  std::vector<double> learned_;
  side sides_[2] = {{1.0}, {-1.0}};
};

/// A lasting change of a kernel's, or of the whole inference's, time.
struct shift_record {
  std::int64_t at_ns = 0;  ///< host clock of the event that made it certain
  std::uint32_t run = 0;
  std::string name;  ///< kernel, or "end to end"
  double before_ns = 0.0;
  double after_ns = 0.0;
  telemetry_sample telemetry{};  ///< clock, temperature and power then, where they can be read
};

/// Settings of `long_run_monitor`.
struct long_run_options {
  std::size_t window = 128;        ///< samples of the rolling percentiles
  std::size_t kept_shifts = 1024;  ///< newest records kept
  shift_options shift{};
};

/// Observer for long runs: rolling percentiles of every kernel and of end to end, and a record of shifts. Its memory
/// does not grow with time. May be asked from any thread.
class long_run_monitor final : public observer {
 public:
  /// `telemetry` is read when a shift is found; it may be empty.
  explicit long_run_monitor(long_run_options settings = {}, std::function<telemetry_sample()> telemetry = {})
      : options_(settings), telemetry_(std::move(telemetry)), e2e_(settings) {}

  void on_kernel(const kernel_event& event, const launch_info& info) override {
    if (event.kind == event_kind::wait) return;
    const std::lock_guard lock(mutex_);
    track& t = kernels_.try_emplace(info.name, options_).first->second;
    take(t, event.duration_ns(), info.name, event.run, event.end_ns);
  }
  void on_run(const run_event& run) override {
    const std::lock_guard lock(mutex_);
    take(e2e_, static_cast<double>(run.end_ns - run.begin_ns), "end to end", run.run, run.end_ns);
  }

  /// Rolling percentile of a kernel in nanoseconds; zero for a name never seen. "end to end" is the whole inference.
  [[nodiscard]] double quantile(const std::string& name, double q) const {
    const std::lock_guard lock(mutex_);
    if (name == "end to end") return e2e_.window.quantile(q);
    const auto found = kernels_.find(name);
    return found == kernels_.end() ? 0.0 : found->second.window.quantile(q);
  }
  /// The shifts found so far, oldest first.
  [[nodiscard]] std::vector<shift_record> shifts() const {
    const std::lock_guard lock(mutex_);
    return shifts_;
  }

 private:
  struct track {
    explicit track(const long_run_options& settings) : window(settings.window), detector(settings.shift) {}
    rolling_window window;
    shift_detector detector;
  };

  void take(track& t, double ns, const std::string& name, std::uint32_t run, std::int64_t at_ns) {
    t.window.add(ns);
    const auto found = t.detector.add(ns);
    if (!found) return;
    shift_record record{at_ns, run, name, found->before, found->after, {}};
    if (telemetry_) record.telemetry = telemetry_();
    if (shifts_.size() >= options_.kept_shifts) shifts_.erase(shifts_.begin());
    shifts_.push_back(std::move(record));
  }

  long_run_options options_;
  std::function<telemetry_sample()> telemetry_;
  mutable std::mutex mutex_;
  track e2e_;
  std::map<std::string, track> kernels_;
  std::vector<shift_record> shifts_;
};

}  // namespace dnnopt::profile

#endif  // DNNOPT_PROFILE_LONG_RUN_HPP
