// Owns what an executor tells while it runs; an executor without an observer creates no OpenCL event.
#ifndef DNNOPT_BACKEND_RUN_OBSERVER_HPP
#define DNNOPT_BACKEND_RUN_OBSERVER_HPP

#include <cstddef>
#include <cstdint>
#include <string_view>

#include <dnnopt/backend/opencl/command_queue.hpp>

namespace dnnopt {

struct node;
struct program;

/// Sees one run. Functions are called on the executing thread, in order.
class run_observer {
 public:
  /// `within` is a copy on the device, of an output that was bound to memory in which no kernel writes it.
  enum class direction : std::uint8_t { upload, download, within };

  virtual ~run_observer() = default;
  /// Asked before the run; where false, nothing else is called in it, and it uses the queue without profiling.
  [[nodiscard]] virtual bool observes() const { return true; }
  /// Asked before the run; where false no sink is ever returned, and the run's commands go to the queue without
  /// profiling, on which host times are those of runs that nobody observes.
  [[nodiscard]] virtual bool wants_events() const { return true; }
  /// Kernel `k` of step `s` is enqueued next; its event goes to the sink, or to nobody where null is returned.
  [[nodiscard]] virtual opencl::event_sink* kernel(std::size_t s, std::size_t k, std::uint64_t flops,
                                                   std::uint64_t bytes) = 0;
  /// How often kernel `k` of step `s` is enqueued: once, unless time is measured by repeating it or leaving it out;
  /// outputs have no meaning then. `kernel` is asked for each time.
  [[nodiscard]] virtual std::size_t launches(std::size_t s, std::size_t k) {
    static_cast<void>(s);
    static_cast<void>(k);
    return 1;
  }
  /// Kernel `k` of step `s` has its turn on `queue`; what is enqueued there now precedes it. Called once, before
  /// `launches`.
  virtual void before(std::size_t s, std::size_t k, opencl::command_queue& queue) {
    static_cast<void>(s);
    static_cast<void>(k);
    static_cast<void>(queue);
  }
  /// A transfer is enqueued next; its event goes to the sink, or to nobody unless told.
  [[nodiscard]] virtual opencl::event_sink* transfer(direction way) {
    static_cast<void>(way);
    return nullptr;
  }
  /// Node `by` of what is run enters its body `key`, of which `executed` is the program: what sees the body until it is
  /// left. The body's commands go to the queue of the run. Where null is returned nobody does.
  [[nodiscard]] virtual run_observer* body(const node& by, std::string_view key, const program& executed) {
    static_cast<void>(by);
    static_cast<void>(key);
    static_cast<void>(executed);
    return nullptr;
  }
  /// The host clock in nanoseconds, for the begin of an interval; whoever takes intervals gives it.
  [[nodiscard]] virtual std::int64_t now() const { return 0; }
  /// The host operator of step `s` ran from `begin` to now.
  virtual void host_operator(std::size_t s, std::int64_t begin) {
    static_cast<void>(s);
    static_cast<void>(begin);
  }
  /// The host waited for the device from `begin` to now.
  virtual void waited(std::int64_t begin) { static_cast<void>(begin); }
};

}  // namespace dnnopt

#endif  // DNNOPT_BACKEND_RUN_OBSERVER_HPP
