// Owns the choice among clock synchronizations by measured residual, the unwrapping of device stamps, and the ordering
// of mapped events.
#ifndef DNNOPT_PROFILE_CLOCKS_CLOCK_SYNC_HPP
#define DNNOPT_PROFILE_CLOCKS_CLOCK_SYNC_HPP

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <dnnopt/profile/clocks/clock_anchored.hpp>
#include <dnnopt/profile/clocks/clock_map.hpp>
#include <dnnopt/profile/clocks/clock_regression.hpp>
#include <dnnopt/profile/clocks/host_clock.hpp>
#include <dnnopt/profile/events.hpp>
#include <dnnopt/profile/statistics.hpp>

namespace dnnopt::profile {

/// Makes a device clock that wraps grow for ever. The period may be unknown: the first wrap shows it, as the host's
/// time that passed plus the jump back, rounded to a power of two of ticks where that is within 20 ppm.
class clock_unwrapper {
 public:
  explicit clock_unwrapper(std::int64_t tick_ns = 1, std::int64_t period_ns = 0)
      : tick_ns_(std::max<std::int64_t>(tick_ns, 1)), period_ns_(period_ns) {}

  /// Takes a stamp that is not older than the former one, with the host time of its enqueue; returns it unwrapped.
  std::int64_t follow(std::int64_t device_ns, std::int64_t host_ns) noexcept {
    if (started_ && device_ns < raw_ - jump_ns) {
      if (period_ns_ == 0) period_ns_ = rounded((host_ns - host_) + (raw_ - device_ns));
      base_ += period_ns_;
    }
    started_ = true;
    raw_ = device_ns;
    host_ = host_ns;
    return base_ + device_ns;
  }

  /// A stamp of the same command as the latest followed one, which may lie behind a wrap.
  [[nodiscard]] std::int64_t beside(std::int64_t device_ns) const noexcept {
    return period_ns_ != 0 && device_ns < raw_ - jump_ns ? base_ + period_ns_ + device_ns : base_ + device_ns;
  }
  /// The period, 0 while unknown.
  [[nodiscard]] std::int64_t period_ns() const noexcept { return period_ns_; }

 private:
  /// Stamps of commands overlap by less; clocks wrap after more.
  static constexpr std::int64_t jump_ns = 1'000'000'000;

  [[nodiscard]] std::int64_t rounded(std::int64_t period) const noexcept {
    const double ticks = static_cast<double>(period) / static_cast<double>(tick_ns_);
    const double power = std::exp2(std::round(std::log2(ticks)));
    return std::abs(ticks / power - 1.0) < 20e-6 ? static_cast<std::int64_t>(power) * tick_ns_ : period;
  }

  std::int64_t tick_ns_;
  std::int64_t period_ns_;
  bool started_ = false;
  std::int64_t raw_ = 0;
  std::int64_t host_ = 0;
  std::int64_t base_ = 0;
};

/// Settings of `clock_synchronizer`.
struct clock_sync_options {
  std::int64_t tick_ns = 1;         ///< resolution of the device clock
  std::int64_t wrap_period_ns = 0;  ///< period of the device clock, 0 if unknown or none
  std::size_t group_size = 16;      ///< of the dynamic fitting
  std::int64_t anchor_every_ns = 100'000'000;
  bool known_clocks = true;  ///< try the host's clocks plus a constant
  bool regression = true;    ///< try dynamic fitting
  device_timer timer{};      ///< try the driver's timer
  event_bias bias{};         ///< by which END - START of a kernel's event is too long
};

/// Feeds all methods with the same pairs, measures each before it has seen the pair, and maps with the one that errs
/// least. Used from one thread.
class clock_synchronizer {
 public:
  explicit clock_synchronizer(clock_sync_options options = {})
      : options_(std::move(options)), unwrapper_(options_.tick_ns, options_.wrap_period_ns) {
    if (options_.known_clocks)
      for (const known_clock clock : known_clocks) {
        auto method = std::make_unique<known_clock_offset>(clock, options_.tick_ns);
        known_.push_back(method.get());
        methods_.push_back({std::move(method)});
      }
    if (options_.timer) {
      auto method = std::make_unique<bracketed_timer>();
      bracketed_ = method.get();
      methods_.push_back({std::move(method)});
    }
    if (options_.regression) {
      dynamic_fit_options fit;
      fit.group_size = options_.group_size;
      fit.tick_ns = static_cast<double>(options_.tick_ns);
      methods_.push_back({std::make_unique<dynamic_fit>(fit)});
    }
  }

  /// Adds a method of the caller's own, preferred less than those before it where they err alike.
  void add_method(std::unique_ptr<clock_method> method) { methods_.push_back({std::move(method)}); }

  /// Reads the anchors that are due. Called between inferences; costs some microseconds when due, else nothing.
  void refresh() {
    const std::int64_t now = host_now_ns();
    if (anchored_ && now - last_anchor_ns_ < options_.anchor_every_ns) return;
    anchored_ = true;
    last_anchor_ns_ = now;
    if (!known_.empty()) {
      const host_clock_anchor anchor = read_host_clock_anchor();
      for (known_clock_offset* method : known_) method->add_anchor(anchor);
    }
    if (bracketed_ != nullptr)
      if (const auto anchor = read_bracketed(options_.timer)) bracketed_->add_anchor(*anchor);
  }

  /// Takes the enqueue of a command: its host interval and its QUEUED stamp. Returns the stamp unwrapped.
  std::int64_t add(const clock_pair& raw) {
    clock_pair pair = raw;
    pair.device_ns = unwrapper_.follow(raw.device_ns, raw.host_begin_ns);
    for (entry& e : methods_) {
      if (e.method->ready()) e.measure(e.method->map()(pair.device_ns), pair, options_.tick_ns);
      e.method->add(pair);
    }
    lengths_.add(static_cast<double>(pair.host_end_ns - pair.host_begin_ns));
    ++pairs_;
    if ((pairs_ & (pairs_ - 1)) == 0 || pairs_ % 64 == 0) choose();
    if (latest_ != nullptr && latest_->ready()) last_device_ns_ = pair.device_ns;
    return pair.device_ns;
  }

  /// True once some method is ready.
  [[nodiscard]] bool ready() const noexcept { return latest_ != nullptr; }
  /// The chosen method's map; identity before the first pair.
  [[nodiscard]] affine_clock_map map() const noexcept {
    return latest_ == nullptr ? affine_clock_map{} : latest_->map();
  }
  /// The chosen method's map for the past around an unwrapped device time.
  [[nodiscard]] affine_clock_map map_past(std::int64_t device_ns) const noexcept {
    return latest_ == nullptr ? affine_clock_map{} : latest_->map_past(device_ns);
  }

  /// A stamp of the command that `add` was just called for, unwrapped.
  [[nodiscard]] std::int64_t beside(std::int64_t device_ns) const noexcept { return unwrapper_.beside(device_ns); }

  /// Maps a command that `add` was just called for: all four stamps by one map, so their order stays.
  [[nodiscard]] kernel_event to_host(const raw_event& raw) {
    return place(raw, unwrapper_.beside(raw.queued_ns), unwrapper_.beside(raw.submit_ns),
                 unwrapper_.beside(raw.start_ns), unwrapper_.beside(raw.end_ns), map());
  }

  /// Method, offset, drift and residuals of the chosen method.
  [[nodiscard]] clock_report report() const {
    clock_report result;
    result.pairs = pairs_;
    result.violations = violations_;
    result.violations_as_stamped = violations_as_stamped_;
    result.moved_most_ns = moved_most_ns_;
    if (latest_ == nullptr) return result;
    result.method = std::string(latest_->name());
    const affine_clock_map chosen = latest_->map();
    result.offset_ns = static_cast<double>(chosen(last_device_ns_) - last_device_ns_);
    result.drift_ppm = chosen.slope * 1e6;
    result.outliers = latest_->outliers();
    for (const entry& e : methods_)
      if (e.method.get() == latest_) {
        result.residual_p50_ns = e.absolute.quantile(0.5);
        result.residual_p90_ns = e.absolute.quantile(0.9);
      }
    return result;
  }

  /// The residuals of every method that was ready, in order of preference: what the choice was made from.
  [[nodiscard]] std::vector<clock_report> candidates() const {
    std::vector<clock_report> all;
    for (const entry& e : methods_) {
      clock_report one;
      one.method = std::string(e.method->name());
      one.pairs = e.count;
      one.outliers = e.method->outliers();
      one.residual_p50_ns = e.absolute.quantile(0.5);
      one.residual_p90_ns = e.absolute.quantile(0.9);
      if (e.method->ready()) {
        const affine_clock_map one_map = e.method->map();
        one.offset_ns = static_cast<double>(one_map(last_device_ns_) - last_device_ns_);
        one.drift_ppm = one_map.slope * 1e6;
      }
      all.push_back(std::move(one));
    }
    return all;
  }

  /// Maps four unwrapped stamps by one map and puts them and the enqueue interval in order; `count` tells whether what
  /// had to be moved is counted (once per event).
  [[nodiscard]] kernel_event place(const raw_event& raw, std::int64_t queued, std::int64_t submit, std::int64_t start,
                                   std::int64_t end, const affine_clock_map& to_host, bool count = true) {
    kernel_event event;
    event.run = raw.run;
    event.launch = raw.launch;
    event.kind = raw.kind;
    event.queue = raw.queue;
    event.repeats = raw.repeats;
    event.weight = raw.weight;
    event.host_begin_ns = raw.host_begin_ns;
    event.host_end_ns = raw.host_end_ns;
    event.gws = raw.gws;
    event.lws = raw.lws;
    event.bytes = raw.bytes;
    event.flops = raw.flops;
    if (!has_device_stamps(raw.kind)) {
      event.queued_ns = event.submit_ns = event.start_ns = raw.host_begin_ns;
      event.end_ns = raw.host_end_ns;
      return event;
    }
    if (counts_as_kernel(raw.kind))
      event.bias_ns = raw.bias_ns >= 0.0F
                          ? raw.bias_ns
                          : static_cast<float>(options_.bias.of(static_cast<double>(raw.pause_ns), raw.behind));
    event.device_start_ns = start;
    event.device_end_ns = end;
    event.queued_ns = to_host(queued);
    event.submit_ns = to_host(submit);
    event.start_ns = to_host(start);
    event.end_ns = to_host(end);
    const bool as_stamped = submit < queued || start < submit || end < start;
    // A command cannot have been queued before the call that queued it; a tick's width is the stamp's own uncertainty.
    const std::int64_t too_early = raw.host_begin_ns - event.queued_ns;
    const bool moved = as_stamped || too_early > std::max<std::int64_t>(options_.tick_ns, 1000);
    if (moved && count) {
      ++violations_;
      violations_as_stamped_ += as_stamped ? 1 : 0;
      moved_most_ns_ = std::max({moved_most_ns_, too_early, queued - submit, submit - start, start - end});
    }
    event.queued_ns = std::max(event.queued_ns, raw.host_begin_ns);
    event.submit_ns = std::max(event.submit_ns, event.queued_ns);
    event.start_ns = std::max(event.start_ns, event.submit_ns);
    event.end_ns = std::max(event.end_ns, event.start_ns);
    return event;
  }

 private:
  struct entry {
    std::unique_ptr<clock_method> method;
    quantile_sketch absolute{};  ///< |residual| against the middle of the call
    quantile_sketch outside{};   ///< distance outside the call
    quantile_sketch spread{};    ///< |residual - its running mean|
    double mean = 0.0;
    std::uint64_t count = 0;

    void measure(std::int64_t mapped, const clock_pair& pair, std::int64_t tick_ns) {
      const double residual = static_cast<double>(mapped - pair.host_middle_ns());
      ++count;
      mean += (residual - mean) / static_cast<double>(std::min<std::uint64_t>(count, 256));
      absolute.add(std::abs(residual));
      spread.add(std::abs(residual - mean));
      const std::int64_t beyond =
          std::max({pair.host_begin_ns - tick_ns - mapped, mapped - pair.host_end_ns - tick_ns, std::int64_t{0}});
      outside.add(static_cast<double>(beyond));
      // What a method did long ago says little of a clock that has changed since.
      if (count % 4096 == 0)
        for (quantile_sketch* sketch : {&absolute, &spread, &outside}) sketch->fade(0.25);
    }
    /// Being outside the call is wrong for certain; spreading is the method's own noise on top of the driver's.
    [[nodiscard]] double badness() const noexcept { return outside.quantile(0.9) + spread.quantile(0.9); }
  };

  /// A method that estimates nothing comes first. An earlier method keeps its place unless a later one errs less by a
  /// fifth, by more than half a tick and by more than a quarter of the usual enqueue call: where in the call the device
  /// took its stamp is not known, so smaller differences say nothing.
  void choose() {
    const entry* best = nullptr;
    const double margin = std::max(0.5 * static_cast<double>(options_.tick_ns), 0.25 * lengths_.quantile(0.5));
    for (const entry& e : methods_)
      if (best == nullptr && e.method->ready() && e.method->exact()) best = &e;
    for (const entry& e : methods_) {
      if (!e.method->ready()) continue;
      if (best == nullptr ||
          (e.count >= 64 && e.badness() < 0.8 * best->badness() && e.badness() + margin < best->badness()))
        best = &e;
    }
    latest_ = best == nullptr ? nullptr : best->method.get();
  }

  clock_sync_options options_;
  clock_unwrapper unwrapper_;
  std::vector<entry> methods_;
  quantile_sketch lengths_;  // of enqueue calls
  std::vector<known_clock_offset*> known_;
  bracketed_timer* bracketed_ = nullptr;
  const clock_method* latest_ = nullptr;
  bool anchored_ = false;
  std::int64_t last_anchor_ns_ = 0;
  std::int64_t last_device_ns_ = 0;
  std::uint64_t pairs_ = 0;
  std::uint64_t violations_ = 0;
  std::uint64_t violations_as_stamped_ = 0;
  std::int64_t moved_most_ns_ = 0;
};

}  // namespace dnnopt::profile

#endif  // DNNOPT_PROFILE_CLOCKS_CLOCK_SYNC_HPP
