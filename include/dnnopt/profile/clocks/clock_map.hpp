// Owns the types that every clock synchronization shares: stamp pairs, the affine map, its report, and the method's
// interface.
#ifndef DNNOPT_PROFILE_CLOCKS_CLOCK_MAP_HPP
#define DNNOPT_PROFILE_CLOCKS_CLOCK_MAP_HPP

#include <cstdint>
#include <string>
#include <string_view>

namespace dnnopt::profile {

/// A device stamp and the interval of the host clock within which the device (or its driver) took it.
struct clock_pair {
  std::int64_t host_begin_ns = 0;
  std::int64_t host_end_ns = 0;
  std::int64_t device_ns = 0;

  [[nodiscard]] constexpr std::int64_t host_middle_ns() const noexcept {
    return host_begin_ns + (host_end_ns - host_begin_ns) / 2;
  }
};

/// Device time to host time: host = device + offset + slope * (device - reference), slope being the drift. Integers
/// carry the epochs, for a double near 1.8e18 ns resolves only 256 ns.
struct affine_clock_map {
  std::int64_t reference_ns = 0;  ///< device time at which `offset_ns` holds
  std::int64_t offset_ns = 0;     ///< host minus device at the reference
  double slope = 0.0;             ///< change of the offset per device nanosecond
  double fraction_ns = 0.0;       ///< part of the offset below a nanosecond

  /// One multiply-add (nnPerf section 3.2.2) and the integer offset.
  [[nodiscard]] std::int64_t operator()(std::int64_t device_ns) const noexcept {
    const std::int64_t since = device_ns - reference_ns;
    return device_ns + offset_ns + static_cast<std::int64_t>(slope * static_cast<double>(since) + fraction_ns);
  }
};

/// What is told about a synchronization.
struct clock_report {
  std::string method = "none";
  double offset_ns = 0.0;  ///< host minus device at the last pair
  double drift_ppm = 0.0;  ///< parts per million by which the host clock gains on the device's
  double residual_p50_ns =
      0.0;  ///< of |predicted host time - middle of the enqueue interval|, before the pair was used
  double residual_p90_ns = 0.0;
  std::uint64_t pairs = 0;     ///< pairs of stamps seen
  std::uint64_t outliers = 0;  ///< pairs that the gate kept out of the fit
  std::uint64_t violations =
      0;  ///< events whose stamps were out of order, or before their enqueue, and had to be moved
  std::uint64_t violations_as_stamped = 0;  ///< those of them whose stamps the device had given out of order
  std::int64_t moved_most_ns = 0;           ///< farthest that one of them was moved
};

/// A way to map device time to host time. Methods are fed in order of enqueue, from one thread.
class clock_method {
 public:
  clock_method() = default;
  clock_method(const clock_method&) = delete;
  clock_method& operator=(const clock_method&) = delete;
  virtual ~clock_method() = default;

  [[nodiscard]] virtual std::string_view name() const noexcept = 0;
  /// Takes a pair of stamps.
  virtual void add(const clock_pair& pair) = 0;
  /// True as soon as `map` may be used.
  [[nodiscard]] virtual bool ready() const noexcept = 0;
  /// The map for events at and after the latest pair.
  [[nodiscard]] virtual affine_clock_map map() const noexcept = 0;
  /// The map for events around a device time of the past, where a method knows better than its latest map.
  [[nodiscard]] virtual affine_clock_map map_past(std::int64_t) const noexcept { return map(); }
  /// True where the device is taken to read a clock of the host as it is, so that nothing is estimated.
  [[nodiscard]] virtual bool exact() const noexcept { return false; }
  /// Pairs kept out of the fit.
  [[nodiscard]] virtual std::uint64_t outliers() const noexcept { return 0; }
};

}  // namespace dnnopt::profile

#endif  // DNNOPT_PROFILE_CLOCKS_CLOCK_MAP_HPP
