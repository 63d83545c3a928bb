// Owns random numbers that depend on a seed, a stream and an index alone: the same on every machine and in any order.
#ifndef DNNOPT_COUNTER_RANDOM_HPP
#define DNNOPT_COUNTER_RANDOM_HPP

#include <cstdint>

namespace dnnopt {

/// A stream of random numbers by index. Integer arithmetic and exact float steps only, so that no math library shows.
class counter_random {
 public:
  /// Streams of different `stream` under one seed are independent.
  constexpr counter_random(std::uint64_t seed, std::uint64_t stream) noexcept
      : key_(mix(mix(seed + golden) ^ (stream * odd + golden))) {}

  /// 64 uniform bits.
  [[nodiscard]] constexpr std::uint64_t bits(std::uint64_t index) const noexcept {
    return mix(key_ + (index + 1) * golden);
  }
  /// Uniform in [0, 1), a multiple of 2^-24.
  [[nodiscard]] constexpr float uniform(std::uint64_t index) const noexcept {
    return static_cast<float>(bits(index) >> 40) * 0x1p-24f;
  }
  /// Uniform among 0 .. count - 1, count positive and below 2^32.
  [[nodiscard]] constexpr std::int64_t below(std::uint64_t index, std::int64_t count) const noexcept {
    return static_cast<std::int64_t>((bits(index) >> 32) * static_cast<std::uint64_t>(count) >> 32);
  }
  /// Near normal: mean 0, deviation 1, never beyond 3.47 (the sum of four uniform numbers).
  [[nodiscard]] constexpr float normal(std::uint64_t index) const noexcept {
    const std::uint64_t b = bits(index);
    const auto sum = static_cast<std::int32_t>((b & 0xFFFF) + (b >> 16 & 0xFFFF) + (b >> 32 & 0xFFFF) + (b >> 48));
    // Four uniform numbers on 0 .. 65535 have mean 131070 and deviation 65536 * sqrt(4 / 12).
    return static_cast<float>(sum - 131070) * (1.7320508f / 65536.0f);
  }

 private:
  static constexpr std::uint64_t golden = 0x9E3779B97F4A7C15;
  static constexpr std::uint64_t odd = 0xD1342543DE82EF95;

  // The finalizer of SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014).
  static constexpr std::uint64_t mix(std::uint64_t z) noexcept {
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9;
    z = (z ^ z >> 27) * 0x94D049BB133111EB;
    return z ^ z >> 31;
  }

  std::uint64_t key_;
};

}  // namespace dnnopt

#endif  // DNNOPT_COUNTER_RANDOM_HPP
