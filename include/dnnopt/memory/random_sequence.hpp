// Owns the small random generator of the planners: the same sequence for a seed on every platform.
#ifndef DNNOPT_MEMORY_RANDOM_SEQUENCE_HPP
#define DNNOPT_MEMORY_RANDOM_SEQUENCE_HPP

#include <cstddef>
#include <cstdint>

namespace dnnopt::memory::detail {

/// xorshift64* after Vigna.
class random_sequence {
 public:
  explicit random_sequence(std::uint64_t seed) : state_(seed * 0x9E3779B97F4A7C15ULL + 0x632BE59BD9B4E019ULL) {}
  std::uint64_t operator()() {
    state_ ^= state_ >> 12U;
    state_ ^= state_ << 25U;
    state_ ^= state_ >> 27U;
    return state_ * 0x2545F4914F6CDD1DULL;
  }
  /// A number below `bound` (> 0).
  std::size_t below(std::size_t bound) { return static_cast<std::size_t>((*this)() >> 11U) % bound; }

 private:
  std::uint64_t state_;
};

}  // namespace dnnopt::memory::detail

#endif  // DNNOPT_MEMORY_RANDOM_SEQUENCE_HPP
