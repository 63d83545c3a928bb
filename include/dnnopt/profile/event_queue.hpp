// Owns the bounded lock-free queue between the threads that finish events and the one that writes them.
#ifndef DNNOPT_PROFILE_EVENT_QUEUE_HPP
#define DNNOPT_PROFILE_EVENT_QUEUE_HPP

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <vector>

namespace dnnopt::profile {

/// Bounded queue for any number of producers and consumers, without locks: every cell carries the turn in which it may
/// be written or read next. A full queue refuses and counts, so a slow reader never delays a producer. Memory is taken
/// once.
template <class T>
class event_queue {
  static_assert(std::is_trivially_copyable_v<T>, "event_queue carries records that can be copied byte by byte");

 public:
  /// Holds at least `capacity` records (rounded up to a power of two, at least 2).
  explicit event_queue(std::size_t capacity)
      : cells_(std::bit_ceil(capacity < 2 ? std::size_t{2} : capacity)), mask_(cells_.size() - 1) {
    for (std::size_t i = 0; i < cells_.size(); ++i) cells_[i].turn.store(i, std::memory_order_relaxed);
  }

  /// Appends a record; false, and one more drop, when the queue is full. Wait-free but for contention on one counter.
  bool push(const T& value) noexcept {
    std::size_t at = head_.load(std::memory_order_relaxed);
    for (;;) {
      cell& c = cells_[at & mask_];
      const std::size_t turn = c.turn.load(std::memory_order_acquire);
      if (turn == at) {
        if (head_.compare_exchange_weak(at, at + 1, std::memory_order_relaxed)) {
          c.value = value;
          c.turn.store(at + 1, std::memory_order_release);
          return true;
        }
      } else if (turn < at) {
        // The cell still holds a record of the former round; if no reader moved meanwhile, the queue is full.
        if (head_.load(std::memory_order_relaxed) == at) {
          dropped_.fetch_add(1, std::memory_order_relaxed);
          return false;
        }
        at = head_.load(std::memory_order_relaxed);
      } else {
        at = head_.load(std::memory_order_relaxed);
      }
    }
  }

  /// Takes the oldest record; false when none is ready.
  bool pop(T& value) noexcept {
    std::size_t at = tail_.load(std::memory_order_relaxed);
    for (;;) {
      cell& c = cells_[at & mask_];
      const std::size_t turn = c.turn.load(std::memory_order_acquire);
      if (turn == at + 1) {
        if (tail_.compare_exchange_weak(at, at + 1, std::memory_order_relaxed)) {
          value = c.value;
          c.turn.store(at + mask_ + 1, std::memory_order_release);
          return true;
        }
      } else if (turn < at + 1) {
        return false;
      } else {
        at = tail_.load(std::memory_order_relaxed);
      }
    }
  }

  [[nodiscard]] std::size_t capacity() const noexcept { return cells_.size(); }
  /// Records that were refused because the queue was full.
  [[nodiscard]] std::uint64_t dropped() const noexcept { return dropped_.load(std::memory_order_relaxed); }
  /// Records inside, exact only while nobody pushes or pops.
  [[nodiscard]] std::size_t size() const noexcept {
    const std::size_t head = head_.load(std::memory_order_relaxed);
    const std::size_t tail = tail_.load(std::memory_order_relaxed);
    return head >= tail ? head - tail : 0;
  }

 private:
  struct cell {
    std::atomic<std::size_t> turn{0};
    T value{};
    cell() = default;
    cell(const cell& other) : turn(other.turn.load(std::memory_order_relaxed)), value(other.value) {}
  };

  std::vector<cell> cells_;
  std::size_t mask_;
  alignas(64) std::atomic<std::size_t> head_{0};
  alignas(64) std::atomic<std::size_t> tail_{0};
  alignas(64) std::atomic<std::uint64_t> dropped_{0};
};

}  // namespace dnnopt::profile

#endif  // DNNOPT_PROFILE_EVENT_QUEUE_HPP
