// Owns the stream of random numbers of the reference backend: the Mersenne Twister as NumPy's legacy generator uses it.
#ifndef DNNOPT_REFERENCE_UNIFORM_STREAM_HPP
#define DNNOPT_REFERENCE_UNIFORM_STREAM_HPP

#include <cmath>
#include <cstdint>
#include <random>

namespace dnnopt::reference {

/// Numbers in [0, 1) with 53 random bits; the same seed gives the same numbers as numpy.random.seed and random_sample.
class uniform_stream {
 public:
  explicit uniform_stream(std::uint32_t seed) : engine_(seed) {}

  [[nodiscard]] double next() {
    const double high = static_cast<double>(engine_() >> 5U);
    const double low = static_cast<double>(engine_() >> 6U);
    return (high * 67108864.0 + low) / 9007199254740992.0;
  }

 private:
  std::mt19937 engine_;
};

}  // namespace dnnopt::reference

#endif  // DNNOPT_REFERENCE_UNIFORM_STREAM_HPP
