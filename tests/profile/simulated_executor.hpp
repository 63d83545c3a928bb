// Owns a stand-in for an executor: launches on an in-order device whose clock is the host's plus a constant and a
// drift.
#ifndef DNNOPT_TESTS_PROFILE_SIMULATED_EXECUTOR_HPP
#define DNNOPT_TESTS_PROFILE_SIMULATED_EXECUTOR_HPP

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <dnnopt/profile/profiler.hpp>

namespace dnnopt::profile {

struct simulated_executor {
  profiler& profile;
  std::int64_t device_offset_ns = 123'456'789'000;
  double device_rate = 1.00002;
  std::vector<std::uint32_t> launches{};
  std::uint32_t wait_launch = 0;
  std::uint32_t upload_launch = 0;
  std::uint32_t host_launch = 0;
  std::size_t events_created = 0;
  std::int64_t event_cost_ns = 0;
  std::int64_t origin_ns = host_now_ns();

  explicit simulated_executor(profiler& into, std::size_t kernels = 4) : profile(into) {
    for (std::size_t i = 0; i < kernels; ++i) {
      const std::string number = std::to_string(i);
      launch_info info;
      info.name = "conv_" + number;
      info.ops = {{"Conv_" + number, "Conv"}, {"Relu_" + number, "Relu"}};
      info.attributes = "kernel=3x3 channels=" + std::to_string(8 * (i + 1));
      info.shapes = "1x8x8x8->1x8x8x8";
      info.layout = "buffer";
      launches.push_back(profile.describe(info));
    }
    wait_launch = profile.describe({.name = "wait", .work = work_class::not_of_model});
    upload_launch = profile.describe({.name = "upload x", .work = work_class::not_of_model});
    host_launch = profile.describe({.name = "Shape_0", .ops = {{"Shape_0", "Shape"}}, .work = work_class::shape});
  }

  [[nodiscard]] std::int64_t device(std::int64_t host_ns) const {
    return host_ns + device_offset_ns +
           static_cast<std::int64_t>((device_rate - 1.0) * static_cast<double>(host_ns - origin_ns));
  }

  static void until(std::int64_t host_ns) {
    while (host_now_ns() < host_ns) {
    }
  }

  /// Kernel i takes (i + 1) * 4 us of device time.
  void run() {
    run_recorder recorder = profile.begin_run();
    std::int64_t free_at = host_now_ns();
    const auto command = [&](std::uint32_t launch, event_kind kind, std::int64_t busy_ns) {
      const bool timed = recorder.timed(kind);
      const std::int64_t begin = host_now_ns();
      until(begin + 500);
      const std::int64_t queued = host_now_ns();
      until(queued + 500);
      const std::int64_t start = std::max(free_at, queued + 1500);
      free_at = start + busy_ns;
      if (!timed) return;
      ++events_created;
      until(host_now_ns() + event_cost_ns);
      raw_event event;
      event.launch = launch;
      event.kind = kind;
      event.queued_ns = device(queued);
      event.submit_ns = device(queued + 200);
      event.start_ns = device(start);
      event.end_ns = device(free_at);
      event.host_begin_ns = begin;
      event.host_end_ns = host_now_ns();
      event.gws = {64, 8, 1};
      event.lws = {8, 8, 1};
      event.bytes = 4096;
      event.flops = 100'000;
      recorder.record(event);
    };
    const auto interval = [&](std::uint32_t launch, event_kind kind, std::int64_t busy_ns) {
      const bool timed = recorder.timed(kind);
      raw_event event;
      event.launch = launch;
      event.kind = kind;
      event.host_begin_ns = host_now_ns();
      until(event.host_begin_ns + busy_ns);
      event.host_end_ns = host_now_ns();
      if (timed) recorder.record(event);
    };
    command(upload_launch, event_kind::upload, 2000);
    interval(host_launch, event_kind::host_operator, 3000);
    for (std::size_t i = 0; i < launches.size(); ++i)
      command(launches[i], event_kind::kernel, static_cast<std::int64_t>(i + 1) * 4000);
    interval(wait_launch, event_kind::wait, std::max<std::int64_t>(0, free_at - host_now_ns()));
  }
};

}  // namespace dnnopt::profile

#endif  // DNNOPT_TESTS_PROFILE_SIMULATED_EXECUTOR_HPP
