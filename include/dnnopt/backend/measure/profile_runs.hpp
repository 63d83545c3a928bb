// Owns the profile of some inferences: every command timed, on one clock.
#ifndef DNNOPT_BACKEND_MEASURE_PROFILE_RUNS_HPP
#define DNNOPT_BACKEND_MEASURE_PROFILE_RUNS_HPP

#include <cstddef>
#include <functional>

#include <dnnopt/backend/measure/kernel_injector.hpp>
#include <dnnopt/backend/measure/profiled_run.hpp>
#include <dnnopt/backend/opencl/context.hpp>
#include <dnnopt/backend/program/program.hpp>
#include <dnnopt/backend/run/observer.hpp>
#include <dnnopt/profile/profiler.hpp>

namespace dnnopt {

/// Calls `run(observer)`, one inference of `executed` in `context`, `runs` times with its commands timed, and tells
/// what the profiler found. Precondition: one inference ran before, so that programs are compiled. Errors: those of
/// `run` and of devices.
[[nodiscard]] inline profile::profile_report profile_runs(const opencl::context& context, const program& executed,
                                                          const std::function<void(run_observer*)>& run,
                                                          std::size_t runs,
                                                          profile::profile_mode mode = profile::profile_mode::full) {
  profile::profiler_options options;
  options.mode = mode;
  options.clock = profile::clock_options_of(context.where().handle());
  opencl::command_queue probe_queue = context.make_queue({true, 0});
  profile::kernel_injector injector(context.handle(), context.where().handle());
  options.clock.bias = injector.measure_event_bias(probe_queue);
  profile::profiler profiler(options);
  injector.inject(probe_queue, profiler, profiler.probes_wanted());
  profiler.set_event_cost(injector.measure_event_cost(probe_queue));
  profiled_run observer(profiler, executed);
  observer.follow_arrivals(injector, probe_queue);
  for (std::size_t i = 0; i < runs; ++i) {
    observer.begin();
    run(&observer);
    observer.end();
  }
  profile::profile_report report = profiler.report();
  report.device = context.info().name;
  return report;
}

}  // namespace dnnopt

#endif  // DNNOPT_BACKEND_MEASURE_PROFILE_RUNS_HPP
