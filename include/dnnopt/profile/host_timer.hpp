// Owns the scope timer of host intervals: operators on the reference backend and waits.
#ifndef DNNOPT_PROFILE_HOST_TIMER_HPP
#define DNNOPT_PROFILE_HOST_TIMER_HPP

#include <cstdint>

#include <dnnopt/profile/clocks/host_clock.hpp>
#include <dnnopt/profile/events.hpp>
#include <dnnopt/profile/profiler.hpp>

namespace dnnopt::profile {

/// Records the interval from construction to destruction, where the run times it. To be put around the evaluation of an
/// operator alone, after its inputs have been prepared (nnPerf section 3.1.2).
class host_timer {
 public:
  /// `run` must outlive the timer.
  host_timer(run_recorder& run, std::uint32_t launch, event_kind kind, std::uint64_t bytes = 0,
             std::uint64_t flops = 0) noexcept {
    if (!run.timed(kind)) return;
    run_ = &run;
    event_.launch = launch;
    event_.kind = kind;
    event_.bytes = bytes;
    event_.flops = flops;
    event_.host_begin_ns = host_now_ns();
  }
  host_timer(const host_timer&) = delete;
  host_timer& operator=(const host_timer&) = delete;
  ~host_timer() {
    if (run_ == nullptr) return;
    event_.host_end_ns = host_now_ns();
    run_->record(event_);
  }

 private:
  run_recorder* run_ = nullptr;
  raw_event event_{};
};

}  // namespace dnnopt::profile

#endif  // DNNOPT_PROFILE_HOST_TIMER_HPP
