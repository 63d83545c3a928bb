// Owns nnPerf's dynamic fitting: the device clock followed by least squares over groups of enqueue stamps.
#ifndef DNNOPT_PROFILE_CLOCKS_CLOCK_REGRESSION_HPP
#define DNNOPT_PROFILE_CLOCKS_CLOCK_REGRESSION_HPP

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include <dnnopt/profile/clocks/clock_map.hpp>
#include <dnnopt/profile/line_moments.hpp>

namespace dnnopt::profile {

/// Settings of `dynamic_fit`.
struct dynamic_fit_options {
  std::size_t group_size = 16;       ///< k: pairs per fit; the paper's number of kernels that the device runs at once
  std::size_t injected_kernels = 3;  ///< empty kernels whose pairs give the first fit and gate (Eq. 2)
  double gate_sigmas = 2.0;          ///< two-sigma rule
  double step_sigmas = 4.0;          ///< one or two groups' means this many standard errors off are a frequency step
  double usual_drift = 200e-6;       ///< what oscillators differ by; bursts too short to tell a slope are held to it
  double tick_ns = 1.0;              ///< resolution of the device clock, CL_DEVICE_PROFILING_TIMER_RESOLUTION
  std::size_t kept_segments =
      4096;             ///< groups remembered for mapping events of the past, at least 8; then they are joined
  std::size_t lag = 4;  ///< groups on either side that the mapping of the past averages over
};

/// nnPerf's dynamic fitting strategy (section 3.2.2, Algorithm 1): pairs come in groups of k; each is gated against the
/// current fit, each full group refits by least squares, and an event is mapped by one multiply-add.
///
/// Corrected against the printed listing:
/// - Line 5 compares the raw difference of the two clocks with sigma, which is an epoch (1e18 ns); here the residual to
/// the
///   fit is compared, as the text says of delta.
/// - Line 6 pops before it pushes, from a queue that starts empty and is emptied at each fit; here a group is filled
/// and cleared.
/// - n is counted in the accepted branch only where it refits, so a frequency step, which puts every pair outside the
/// gate,
///   would keep the old fit for ever; here rejected pairs fill the group too, and a group with more than half of them
///   is refitted from its own medians.
/// - Sigma taken from accepted pairs shrinks to 0.88 of itself at each update (a normal distribution cut at two sigma)
/// until
///   nothing passes; here sigma is 1.4826 times the median absolute deviation of all pairs of the group.
/// - Predict is undefined before the first fit; the injected kernels give offset and sigma, with slope 0, since three
/// launches
///   some microseconds apart tell no slope.
/// - Each fit uses its group alone, which makes the slope as noisy as one group (several microseconds at its end for 2
/// us of
///   jitter); here former groups count with fading weight. Four fading rates run side by side and the one that has
///   predicted best is used, so a steady clock is averaged long and a wandering one is followed.
/// - A group may be one burst of enqueues some microseconds long, whose own slope is noise that the next inference,
/// some
///   milliseconds later, would meet a thousandfold; so the slope is held to the former one like a ridge regression, by
///   the drift that is usual, or after a step by the drift that the step shows.
/// - An enqueue call that took long says less: pairs weigh by the inverse square of their interval, for its half is
/// what
///   their middle may err by. Where in the call the stamp is taken is learned too, from the growth of the middles'
///   residual with the call's length, so that a longer call does not look like a step; the middle of a call of the
///   usual length is what the offset refers to, so half of that length bounds its error.
/// - One bad group is an interruption of the host; only a second one in succession makes a step.
class dynamic_fit final : public clock_method {
 public:
  /// @pre 2 <= options.injected_kernels <= options.group_size.
  explicit dynamic_fit(dynamic_fit_options options = {}) : options_(options) {
    group_.reserve(2 * options_.group_size);
    suspects_.reserve(2 * options_.group_size);
    scratch_.reserve(2 * options_.group_size);
    slope_spread_ = options_.usual_drift;
  }

  [[nodiscard]] std::string_view name() const noexcept override { return "dynamic fitting"; }

  /// Takes a pair. Constant time; every `group_size` pairs one fit, O(group_size).
  void add(const clock_pair& pair) override {
    if (seen_ == 0) {
      origin_device_ = pair.device_ns;
      origin_offset_ = pair.host_middle_ns() - pair.device_ns;
    }
    ++seen_;
    const double x = static_cast<double>(pair.device_ns - origin_device_);
    const double middle = static_cast<double>(pair.host_middle_ns() - pair.device_ns - origin_offset_);
    const double length = std::max(1.0, static_cast<double>(pair.host_end_ns - pair.host_begin_ns));
    if (ready_) usual_length_ = length < usual_length_ ? 0.9 * usual_length_ + 0.1 * length : usual_length_ * 1.01;
    const double weight = weight_of(length);
    const double usual = usual_length();
    const double y = middle - position_ * (std::min(length, 5.0 * usual) - usual);
    group_.push_back({x, y, middle, length, weight, true});
    if (!ready_) {
      if (group_.size() >= std::min(options_.injected_kernels, options_.group_size)) cold_start();
      return;
    }
    sample& latest = group_.back();
    latest.accepted = std::abs(y - predict(x)) <=
                      options_.gate_sigmas * std::sqrt(sigma_ * sigma_ * (1.0 / weight + uncertainty(x)) + phase());
    if (!latest.accepted) ++outliers_;
    if (group_.size() >= options_.group_size) refit();
  }

  [[nodiscard]] bool ready() const noexcept override { return ready_; }
  [[nodiscard]] std::uint64_t outliers() const noexcept override { return outliers_; }

  /// The map of the latest fit.
  [[nodiscard]] affine_clock_map map() const noexcept override { return map_of(intercept_, slope_); }

  /// Where in the enqueue call the device takes its stamp, from 0 (begin) to 1 (end), as far as calls of different
  /// lengths have told; a half while unknown.
  [[nodiscard]] double stamp_position() const noexcept { return 0.5 - position_; }

  /// Half width of the gate in nanoseconds, next to the samples of the fit; it widens with the distance from them.
  [[nodiscard]] double gate() const noexcept { return options_.gate_sigmas * sigma_; }
  /// Robust standard deviation of the measurement offset in nanoseconds.
  [[nodiscard]] double sigma() const noexcept { return sigma_; }
  /// Fits made.
  [[nodiscard]] std::uint64_t fits() const noexcept { return fits_; }
  /// Frequency steps or jumps found.
  [[nodiscard]] std::uint64_t steps() const noexcept { return steps_; }

  /// The map for events of the past around a device time: least squares over the event's own group and up to `lag`
  /// groups on either side of it with no step between; for times after the latest group the latest fit. O(log segments
  /// + lag).
  [[nodiscard]] affine_clock_map map_past(std::int64_t device_ns) const noexcept override {
    const double x = static_cast<double>(device_ns - origin_device_);
    const auto found = std::lower_bound(segments_.begin(), segments_.end(), x,
                                        [](const segment& s, double value) { return s.last_x < value; });
    if (found == segments_.end()) return map();
    line_moments around;
    for (auto s = found; s != segments_.end() && s->era == found->era && s - found <= lag(); ++s)
      around.merge(s->group);
    for (auto s = found; s != segments_.begin() && (s - 1)->era == found->era && found - (s - 1) <= lag();) {
      --s;
      around.merge(s->group);
    }
    if (around.weight <= 0.0) return map();
    const double slope = held_slope(around, found->slope, found->hold);
    return map_of(around.mean_y - slope * around.mean_x, slope);
  }

 private:
  struct sample {
    double x;
    double y;       ///< host less device, at the stamp's place in the call
    double middle;  ///< the same at the call's middle
    double length;  ///< of the enqueue call
    double weight;
    bool accepted;
  };
  struct segment {
    double last_x;
    line_moments group;
    double slope;  ///< that its fit was held to
    double hold;
    std::uint64_t era;  ///< number of the frequency
  };
  /// Weight that former groups keep at each new group, and how well the fits that came of it have predicted.
  struct candidate {
    double keep;
    line_moments history{};
    double error = 0.0;
  };

  [[nodiscard]] std::ptrdiff_t lag() const noexcept { return static_cast<std::ptrdiff_t>(options_.lag); }
  [[nodiscard]] double predict(double x) const noexcept { return intercept_ + slope_ * x; }

  [[nodiscard]] double usual_length() const noexcept { return std::max(usual_length_, 1.0); }
  [[nodiscard]] double weight_of(double length) const noexcept {
    const double ratio = usual_length_ / length;
    return usual_length_ > 0.0 ? std::min(1.0, ratio * ratio) : 1.0;
  }

  /// Variance of the tick's phase. Equally spaced enqueues meet the tick at one phase, so averaging a group does not
  /// lessen it.
  [[nodiscard]] double phase() const noexcept { return options_.tick_ns * options_.tick_ns / 12.0; }

  /// Weight of the former slope, in units of squared x.
  [[nodiscard]] double hold() const noexcept { return (sigma_ / slope_spread_) * (sigma_ / slope_spread_); }
  [[nodiscard]] static double held_slope(const line_moments& m, double slope, double hold) noexcept {
    return (m.sxy + hold * slope) / (m.sxx + hold);
  }

  /// Variance of the prediction at x, in units of the samples' variance.
  [[nodiscard]] double uncertainty(double x) const noexcept {
    if (used_.weight <= 0.0) return 0.0;
    return 1.0 / used_.weight + (x - used_.mean_x) * (x - used_.mean_x) / (used_.sxx + hold());
  }

  /// Residual of a call's middle per nanosecond of its length: a half less the stamp's position. Held to zero by a
  /// spread of 0.3, for calls of one length do not tell.
  [[nodiscard]] double position_slope() const noexcept {
    return std::clamp(held_slope(positions_, 0.0, (sigma_ / 0.3) * (sigma_ / 0.3)), -0.5, 0.5);
  }

  [[nodiscard]] affine_clock_map map_of(double intercept, double slope) const noexcept {
    const double whole = std::floor(intercept);
    return {origin_device_, origin_offset_ + static_cast<std::int64_t>(whole), slope, intercept - whole + 0.5};
  }

  [[nodiscard]] double sigma_floor() const noexcept { return std::max(1.0, options_.tick_ns / std::sqrt(12.0)); }

  /// Median of scratch_, which is reordered.
  [[nodiscard]] double median_of_scratch() noexcept {
    const auto middle = scratch_.begin() + static_cast<std::ptrdiff_t>(scratch_.size() / 2);
    std::nth_element(scratch_.begin(), middle, scratch_.end());
    return *middle;
  }

  /// Eq. 2 with weights: one of three injected kernels is often the first of its program, and its call long.
  void cold_start() {
    usual_length_ = group_.front().length;
    for (const sample& s : group_) usual_length_ = std::min(usual_length_, s.length);
    double total = 0.0;
    double middle = 0.0;
    for (sample& s : group_) {
      s.weight = weight_of(s.length);
      total += s.weight;
      middle += (s.y - middle) * s.weight / total;
    }
    double squares = 0.0;
    for (const sample& s : group_) squares += s.weight * (s.y - middle) * (s.y - middle);
    sigma_ = std::max(sigma_floor(), std::sqrt(squares / total));
    intercept_ = middle;
    slope_ = 0.0;
    ready_ = true;
  }

  /// Robust line through the group: slope between the medians of its halves (three points of a group bear it), then the
  /// median of what is left. Used where the former fit says nothing about the group.
  void fit_medians(double& intercept, double& slope) {
    const std::size_t half = group_.size() / 2;
    const auto median = [&](std::size_t from, std::size_t to, double sample::*member) {
      scratch_.clear();
      for (std::size_t i = from; i < to; ++i) scratch_.push_back(group_[i].*member);
      return median_of_scratch();
    };
    const double x0 = median(0, half, &sample::x);
    const double y0 = median(0, half, &sample::y);
    const double x1 = median(half, group_.size(), &sample::x);
    const double y1 = median(half, group_.size(), &sample::y);
    slope = x1 > x0 ? (y1 - y0) / (x1 - x0) : 0.0;
    scratch_.clear();
    for (const sample& s : group_) scratch_.push_back(s.y - slope * s.x);
    intercept = median_of_scratch();
  }

  /// 1.4826 times the median absolute residual of the whole group.
  [[nodiscard]] double group_sigma(double intercept, double slope) {
    scratch_.clear();
    for (const sample& s : group_) scratch_.push_back(std::abs(s.y - intercept - slope * s.x));
    return std::max(sigma_floor(), 1.4826 * median_of_scratch());
  }

  [[nodiscard]] line_moments accepted_moments(std::size_t from, std::size_t to) const noexcept {
    line_moments moments;
    for (std::size_t i = from; i < to; ++i)
      if (group_[i].accepted) moments.add(group_[i].x, group_[i].y, group_[i].weight);
    return moments;
  }

  /// Halves the memory of the past by joining neighbours of one frequency: all of it stays covered, more coarsely.
  void thin_segments() {
    std::size_t kept = 0;
    for (std::size_t i = 0; i < segments_.size(); ++kept) {
      segment joined = segments_[i++];
      if (i < segments_.size() && segments_[i].era == joined.era) {
        line_moments both = joined.group;
        both.merge(segments_[i].group);
        joined = segments_[i++];
        joined.group = both;
      }
      segments_[kept] = joined;
    }
    segments_.erase(segments_.begin() + static_cast<std::ptrdiff_t>(kept), segments_.end());
    // A clock that steps all the time leaves no neighbours to join: then the oldest go.
    if (kept * 4 > options_.kept_segments * 3)
      segments_.erase(segments_.begin(), segments_.begin() + static_cast<std::ptrdiff_t>(kept / 2));
  }

  /// Whether the group contradicts the fit: most of it lies outside the gate, or the mean of its accepted pairs,
  /// `fresh`, is too far off, alone or with the former group's.
  [[nodiscard]] bool contradicts(const line_moments& fresh) {
    const double error = fresh.weight > 0.0 ? fresh.mean_y - predict(fresh.mean_x) : 0.0;
    const auto taken = std::count_if(group_.begin(), group_.end(), [](const sample& s) { return s.accepted; });
    const bool mostly_rejected = static_cast<std::size_t>(taken) * 2 < group_.size();
    const double deviation =
        fits_ > 0 && fresh.weight > 0.0
            ? error / std::sqrt(sigma_ * sigma_ * (1.0 / fresh.weight + uncertainty(fresh.mean_x)) + phase())
            : 0.0;
    const bool shifted = std::abs(deviation) > options_.step_sigmas;
    const bool drifting = std::abs(deviation + last_deviation_) > options_.step_sigmas * std::sqrt(2.0);
    last_deviation_ = deviation;
    return mostly_rejected || shifted || drifting;
  }

  /// Begins another frequency, or the first: the clock has changed, and only the groups since tell how it runs now.
  /// Gives the moments of the latest group's accepted pairs.
  [[nodiscard]] line_moments begin_era() {
    ++steps_;
    last_deviation_ = 0.0;
    const std::size_t step_at = suspects_.size();
    suspects_.insert(suspects_.end(), group_.begin(), group_.end());
    group_.swap(suspects_);
    const double since = group_[group_.size() / 2].x - (segments_.empty() ? 0.0 : segments_.back().last_x);
    double intercept = 0.0;
    double slope = 0.0;
    fit_medians(intercept, slope);
    const double off = intercept + slope * group_[group_.size() / 2].x - predict(group_[group_.size() / 2].x);
    // The step's size over the time since the clock was last known bounds what a slope may have changed by.
    const double sigma = group_sigma(intercept, slope);
    for (sample& s : group_)
      s.accepted = std::abs(s.y - intercept - slope * s.x) <= std::max(options_.gate_sigmas * sigma, sigma_floor());
    line_moments fresh = accepted_moments(0, group_.size());
    // Only the offset has jumped, unless another slope explains these groups better by four deviations.
    const double turn = fresh.slope() - slope_;
    const bool turned = turn * turn * fresh.sxx > 16.0 * sigma * sigma;
    slope_spread_ = std::max(options_.usual_drift, turned && since > 0.0 ? 4.0 * std::abs(off) / since : 0.0);
    // A jump that a usual error of the drift would make in the time since is one: the last good group then stays in
    // the fit, and the line through both corrects the slope.
    line_moments since_step = fresh;
    if (!turned && !segments_.empty() && std::abs(off) <= 5.0 * options_.usual_drift * since)
      since_step.merge(segments_.back().group);
    for (candidate& c : candidates_) {
      c.history = since_step;
      c.error = 0.0;
    }
    if (step_at > 0) {
      // The suspected group keeps a segment of its own, so that events of its time are mapped by both.
      segments_.push_back({group_[step_at - 1].x, accepted_moments(0, step_at), slope_, hold(), steps_});
      fresh = accepted_moments(step_at, group_.size());
    }
    return fresh;
  }

  /// Notes how well each candidate has predicted the group, and adds the group to its history.
  void follow(const line_moments& fresh) noexcept {
    for (candidate& c : candidates_) {
      if (c.history.weight > 0.0) {
        const double off =
            fresh.mean_y - c.history.mean_y - held_slope(c.history, slope_, hold()) * (fresh.mean_x - c.history.mean_x);
        c.error = 0.7 * c.error + 0.3 * off * off;
      }
      c.history.fade(c.keep);
      c.history.merge(fresh);
    }
  }

  /// Takes the line and the deviation of the candidate that has predicted best.
  void take_best_candidate() {
    const candidate& best = *std::min_element(candidates_.begin(), candidates_.end(),
                                              [](const candidate& a, const candidate& b) { return a.error < b.error; });
    used_ = best.history;
    slope_ = held_slope(used_, slope_, hold());
    slope_spread_ = std::max(options_.usual_drift, 0.8 * slope_spread_);
    intercept_ = used_.mean_y - slope_ * used_.mean_x;
    const double sigma = group_sigma(intercept_, slope_);
    sigma_ = fits_ == 0 ? sigma : 0.9 * sigma_ + 0.1 * sigma;
    ++fits_;
  }

  /// Learns from the group where in its call a stamp is taken.
  void learn_position() noexcept {
    positions_.fade(0.98);
    for (const sample& s : group_)
      if (s.accepted && s.length < 5.0 * usual_length_) positions_.add(s.length, s.middle - predict(s.x), s.weight);
    position_ = position_slope();
  }

  /// Fits anew to a full group; the first one that contradicts the fit is only suspected.
  void refit() {
    line_moments fresh = accepted_moments(0, group_.size());
    const bool bad = contradicts(fresh);
    if (bad && !suspected_ && fits_ > 0) {
      suspects_ = group_;
      suspected_ = true;
      group_.clear();
      return;
    }
    if (bad)
      fresh = begin_era();
    else
      follow(fresh);
    const double former_slope = slope_;
    take_best_candidate();
    learn_position();
    if (segments_.size() >= std::max<std::size_t>(8, options_.kept_segments)) thin_segments();
    segments_.push_back({group_.back().x, fresh, former_slope, hold(), steps_});
    group_.clear();
    suspects_.clear();
    suspected_ = false;
  }

  dynamic_fit_options options_;
  std::int64_t origin_device_ = 0;
  std::int64_t origin_offset_ = 0;
  bool ready_ = false;
  double intercept_ = 0.0;
  double slope_ = 0.0;
  double sigma_ = 1.0;
  double last_deviation_ = 0.0;
  double slope_spread_ = 0.0;
  double usual_length_ = 0.0;
  line_moments positions_;
  double position_ = 0.0;
  line_moments used_;
  std::uint64_t seen_ = 0;
  std::uint64_t outliers_ = 0;
  std::uint64_t fits_ = 0;
  std::uint64_t steps_ = 0;
  std::array<candidate, 4> candidates_{{{0.98}, {0.9}, {0.6}, {0.0}}};
  std::vector<sample> group_;
  std::vector<sample> suspects_;
  bool suspected_ = false;
  std::vector<double> scratch_;
  std::vector<segment> segments_;
};

}  // namespace dnnopt::profile

#endif  // DNNOPT_PROFILE_CLOCKS_CLOCK_REGRESSION_HPP
