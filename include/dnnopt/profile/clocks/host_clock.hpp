// Owns the reading of the host's clocks: the steady clock that every timeline uses, and the other clocks a device may
// follow.
#ifndef DNNOPT_PROFILE_CLOCKS_HOST_CLOCK_HPP
#define DNNOPT_PROFILE_CLOCKS_HOST_CLOCK_HPP

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string_view>

#if defined(__unix__) || defined(__APPLE__)
#include <time.h>
#endif

namespace dnnopt::profile {

/// Nanoseconds of the host clock of every timeline (std::chrono::steady_clock: monotonic, read through the vDSO on
/// Linux, nnPerf section 3.2.1). Only differences have a meaning.
[[nodiscard]] inline std::int64_t host_now_ns() noexcept {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

/// Clocks of the host that an OpenCL driver is known to stamp its events with.
enum class known_clock : std::uint8_t { monotonic, monotonic_raw, realtime };

inline constexpr std::array<known_clock, 3> known_clocks{known_clock::monotonic, known_clock::monotonic_raw,
                                                         known_clock::realtime};

[[nodiscard]] constexpr std::string_view to_string(known_clock clock) noexcept {
  switch (clock) {
    case known_clock::monotonic:
      return "CLOCK_MONOTONIC";
    case known_clock::monotonic_raw:
      return "CLOCK_MONOTONIC_RAW";
    case known_clock::realtime:
      return "CLOCK_REALTIME";
  }
  return "unknown";
}

/// Nanoseconds of one of the known clocks. Where the system lacks the raw clock, the steady clock stands in for it.
[[nodiscard]] inline std::int64_t read_known_clock(known_clock clock) noexcept {
#if defined(__unix__) || defined(__APPLE__)
  clockid_t id = CLOCK_MONOTONIC;
  if (clock == known_clock::realtime) id = CLOCK_REALTIME;
#if defined(CLOCK_MONOTONIC_RAW)
  if (clock == known_clock::monotonic_raw) id = CLOCK_MONOTONIC_RAW;
#endif
  timespec now{};
  ::clock_gettime(id, &now);
  return static_cast<std::int64_t>(now.tv_sec) * 1'000'000'000 + static_cast<std::int64_t>(now.tv_nsec);
#else
  if (clock == known_clock::realtime)
    return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::system_clock::now().time_since_epoch())
        .count();
  return host_now_ns();
#endif
}

/// One reading of the known clocks at one moment of the steady clock: the middle of two steady reads.
struct host_clock_anchor {
  std::int64_t host_ns = 0;
  std::array<std::int64_t, known_clocks.size()> clock_ns{};
};

/// Reads all known clocks, each between two steady reads; of `tries` readings the one with the narrowest bracket is
/// kept, for an interrupt between the reads widens it. Cost: about 0.2 us per try.
[[nodiscard]] inline host_clock_anchor read_host_clock_anchor(int tries = 5) noexcept {
  host_clock_anchor anchor;
  anchor.host_ns = host_now_ns();
  for (std::size_t i = 0; i < known_clocks.size(); ++i) {
    std::int64_t narrowest = 0;
    for (int t = 0; t < tries; ++t) {
      const std::int64_t before = host_now_ns();
      const std::int64_t other = read_known_clock(known_clocks[i]);
      const std::int64_t after = host_now_ns();
      if (t == 0 || after - before < narrowest) {
        narrowest = after - before;
        anchor.clock_ns[i] = other - ((before + after) / 2 - anchor.host_ns);
      }
    }
  }
  return anchor;
}

}  // namespace dnnopt::profile

#endif  // DNNOPT_PROFILE_CLOCKS_HOST_CLOCK_HPP
