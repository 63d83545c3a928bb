// Owns when a command began that the device had to wait for.
#ifndef DNNOPT_PROFILE_COMMAND_ARRIVAL_HPP
#define DNNOPT_PROFILE_COMMAND_ARRIVAL_HPP

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <dnnopt/profile/clock_map.hpp>
#include <dnnopt/profile/event_bias.hpp>
#include <dnnopt/profile/events.hpp>
#include <dnnopt/profile/statistics.hpp>

namespace dnnopt::profile {

/// Tells commands that the device waited for apart: START is stamped when a command's first part has arrived, and it
/// runs when its enqueue call has handed over the last one. So the later the call returned after START, the more of
/// START to END is waiting, nanosecond for nanosecond.
///
/// Device and host are compared at the offset at which an empty kernel is QUEUED when its call begins: no enqueue tells
/// the true one to a microsecond, but this one is found again to a fifth of that, here as by the measurement of
/// `event_bias::arrival_ns`. It is followed from then on, for the clocks drift apart, by how long after their calls'
/// begin other commands are QUEUED, each launch compared with itself. Used from one thread.
class command_arrival {
 public:
  /// Empty kernels that tell the offset: the median's deviation is then a fifth of a microsecond at most.
  static constexpr std::size_t probes_wanted = 32;

  /// Takes the enqueue of an empty kernel, from before the first command. O(probes).
  void probe(const clock_pair& pair) {
    if (probes_.empty()) base_ = pair.device_ns - pair.host_begin_ns;
    probes_.push_back(static_cast<double>(pair.device_ns - pair.host_begin_ns - base_));
    std::vector<double> sorted = probes_;
    offset_ = exact_quantile(sorted, 0.5);
  }

  /// What the event of a command has too much. By the pause before it alone where nothing else is known, and where its
  /// call returned after it had run: the host was interrupted on its way back then. Constant time.
  [[nodiscard]] double part(const event_bias& bias, const raw_event& of) {
    const double by_pause = bias.of(static_cast<double>(of.pause_ns), of.behind);
    if (!bias.arrival_ns || probes_.empty()) return by_pause;
    follow(of);
    const double whole = static_cast<double>(of.end_ns - of.start_ns);
    const double late = static_cast<double>(of.host_end_ns - of.start_ns + base_) + offset_;
    const double waited = late + *bias.arrival_ns;
    // A call's return varies, so that a short kernel may seem to end before it began.
    if (waited > whole + 0.25 * bias.starved_ns) return by_pause;
    return std::max(waited, bias.present(of.behind));
  }

 private:
  struct usual_delay {
    int count = 0;
    double ns = 0.0;  // from the call's begin to QUEUED, beyond an empty kernel's
  };

  void follow(const raw_event& of) {
    constexpr int learned = 8;
    if (of.launch >= launches_.size()) launches_.resize(of.launch + std::size_t{1});
    usual_delay& usual = launches_[of.launch];
    const double delay = static_cast<double>(of.queued_ns - of.host_begin_ns - base_) - offset_;
    if (usual.count < learned) {
      ++usual.count;
      usual.ns += (delay - usual.ns) / usual.count;
      return;
    }
    // A hiccup within a call says nothing of the clocks.
    offset_ += std::clamp(delay - usual.ns, -1000.0, 1000.0) / 64.0;
  }

  std::vector<double> probes_;
  std::int64_t base_ = 0;
  double offset_ = 0.0;
  std::vector<usual_delay> launches_;
};

}  // namespace dnnopt::profile

#endif  // DNNOPT_PROFILE_COMMAND_ARRIVAL_HPP
