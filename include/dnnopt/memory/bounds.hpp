// Owns the lower bounds of memory plans: the largest live sum and the positional maxima.
#ifndef DNNOPT_MEMORY_BOUNDS_HPP
#define DNNOPT_MEMORY_BOUNDS_HPP

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

#include <dnnopt/memory/usage.hpp>

namespace dnnopt::memory {

namespace detail {

/// A buffer begins or ends; at one time ends come first, for lifetimes are half-open.
struct lifetime_event {
  std::int64_t time;
  bool begins;
  std::uint32_t buffer;
};

/// Events of all buffers of positive size in order of time. O(n log n).
[[nodiscard]] inline std::vector<lifetime_event> lifetime_events(std::span<const buffer_usage> usages) {
  std::vector<lifetime_event> events;
  events.reserve(2 * usages.size());
  for (std::size_t i = 0; i < usages.size(); ++i) {
    if (usages[i].size == 0) continue;
    events.push_back({usages[i].lower, true, static_cast<std::uint32_t>(i)});
    events.push_back({usages[i].upper, false, static_cast<std::uint32_t>(i)});
  }
  std::sort(events.begin(), events.end(), [](const lifetime_event& a, const lifetime_event& b) {
    if (a.time != b.time) return a.time < b.time;
    if (a.begins != b.begins) return !a.begins;
    return a.buffer < b.buffer;
  });
  return events;
}

}  // namespace detail

/// Lower bound of any arena: the largest sum of the sizes alive at one time (TensorFlow Lite's maximal breadth), with
/// sizes rounded up to the greatest common divisor g of all alignments; the topmost buffer of a time need not be
/// rounded, so the largest rounding among those alive is given back. O(n log n + live sets when g > 1).
[[nodiscard]] inline std::int64_t largest_live_sum(std::span<const buffer_usage> usages) {
  std::int64_t common = 0;
  for (const buffer_usage& usage : usages) {
    if (usage.size > 0) common = std::gcd(common, usage.alignment);
  }
  common = std::max<std::int64_t>(common, 1);
  const auto events = detail::lifetime_events(usages);
  std::int64_t best = 0;
  std::int64_t sum = 0;
  std::vector<std::uint32_t> live;
  for (std::size_t e = 0; e < events.size(); ++e) {
    const buffer_usage& usage = usages[events[e].buffer];
    const std::int64_t rounded = align_up(usage.size, common);
    if (!events[e].begins) {
      sum -= rounded;
      if (common > 1) live.erase(std::find(live.begin(), live.end(), events[e].buffer));
      continue;
    }
    sum += rounded;
    if (common > 1) live.push_back(events[e].buffer);
    if (e + 1 < events.size() && events[e + 1].begins) continue;
    if (sum <= best) continue;
    std::int64_t slack = 0;
    for (const std::uint32_t buffer : live) {
      slack = std::max(slack, align_up(usages[buffer].size, common) - usages[buffer].size);
    }
    best = std::max(best, sum - slack);
  }
  return best;
}

/// The k-th entry is the largest, over all times, of the k-th largest size alive (Pisarchyk and Lee 2020, section 3).
/// Their sum is a lower bound of any shared objects. O(n log n + n * live) time.
[[nodiscard]] inline std::vector<std::int64_t> positional_maxima(std::span<const buffer_usage> usages) {
  std::vector<std::int64_t> maxima;
  std::vector<std::int64_t> live;  // descending
  const auto greater = [](std::int64_t a, std::int64_t b) { return a > b; };
  for (const auto& event : detail::lifetime_events(usages)) {
    const std::int64_t size = usages[event.buffer].size;
    const auto at = std::lower_bound(live.begin(), live.end(), size, greater);
    if (!event.begins) {
      live.erase(at);
      continue;
    }
    const auto first = static_cast<std::size_t>(at - live.begin());
    live.insert(at, size);
    maxima.resize(std::max(maxima.size(), live.size()), 0);
    for (std::size_t k = first; k < live.size(); ++k) maxima[k] = std::max(maxima[k], live[k]);
  }
  return maxima;
}

/// Lower bound of shared objects: the sum of the positional maxima.
[[nodiscard]] inline std::int64_t shared_objects_lower_bound(std::span<const buffer_usage> usages) {
  const auto maxima = positional_maxima(usages);
  return std::accumulate(maxima.begin(), maxima.end(), std::int64_t{0});
}

/// The buffers alive at the first time where the largest live sum is reached: those that make the peak. O(n log n).
[[nodiscard]] inline std::vector<std::size_t> peak_buffers(std::span<const buffer_usage> usages) {
  std::int64_t best = -1;
  std::int64_t sum = 0;
  std::int64_t when = 0;
  for (const auto& event : detail::lifetime_events(usages)) {
    sum += event.begins ? usages[event.buffer].size : -usages[event.buffer].size;
    if (sum > best) {
      best = sum;
      when = event.time;
    }
  }
  std::vector<std::size_t> peak;
  for (std::size_t i = 0; i < usages.size(); ++i) {
    if (usages[i].size > 0 && usages[i].lower <= when && when < usages[i].upper) peak.push_back(i);
  }
  return peak;
}

}  // namespace dnnopt::memory

#endif  // DNNOPT_MEMORY_BOUNDS_HPP
