// What the profiler costs on the hot path: mapping a stamp, one group's fit, handing over an event.
//
// fit_of_one_group prints the percentiles of single fits (nnPerf Table 4: p90 of 3.2 to 4.3 us); map_one_stamp is the
// multiply-add that each kernel pays. Run: profile_bench
#include <benchmark/benchmark.h>

#include <cstdint>
#include <vector>

#include <dnnopt/profile/clock_regression.hpp>
#include <dnnopt/profile/profiler.hpp>
#include <dnnopt/profile/simulated_clock.hpp>
#include <dnnopt/profile/statistics.hpp>

using namespace dnnopt::profile;

namespace {

simulated_clock_options rough_clock() {
  simulated_clock_options options;
  options.offset_ns = 1.8e18;
  options.drift_ppm = 100.0;
  options.wander_ns = 200e3;
  options.jitter_ns = 2000.0;
  options.outlier_share = 0.02;
  options.outlier_ns = 50e3;
  options.tick_ns = 1000;
  return options;
}

void map_one_stamp(benchmark::State& state) {
  affine_clock_map map{1'000'000, -500'000, 1e-4, 0.5};
  std::int64_t stamp = 1'000'000;
  for (auto _ : state) {
    benchmark::DoNotOptimize(map);
    stamp += 50'000;
    benchmark::DoNotOptimize(map(stamp));
  }
}
BENCHMARK(map_one_stamp);

void fit_of_one_group(benchmark::State& state) {
  simulated_clock clock(rough_clock());
  const auto group = static_cast<std::size_t>(state.range(0));
  dynamic_fit fit({.group_size = group, .tick_ns = 1000.0});
  double now = 0.0;
  std::vector<double> samples;
  std::vector<clock_pair> pairs(group);
  for (auto _ : state) {
    state.PauseTiming();
    for (clock_pair& pair : pairs) pair = clock.enqueue(now += 100e3);
    for (std::size_t i = 0; i + 1 < group; ++i) fit.add(pairs[i]);
    state.ResumeTiming();
    const std::int64_t begin = host_now_ns();
    fit.add(pairs.back());
    samples.push_back(static_cast<double>(host_now_ns() - begin));
  }
  state.counters["p50_ns"] = exact_quantile(samples, 0.5);
  state.counters["p90_ns"] = exact_quantile(samples, 0.9);
  state.counters["p99_ns"] = exact_quantile(samples, 0.99);
  state.counters["fits"] = static_cast<double>(fit.fits());
}
BENCHMARK(fit_of_one_group)->Arg(8)->Arg(16)->Arg(64);

void add_a_pair_to_all_methods(benchmark::State& state) {
  simulated_clock clock(rough_clock());
  clock_synchronizer sync({.tick_ns = 1000});
  sync.refresh();
  double now = 0.0;
  std::vector<clock_pair> pairs;
  for (int i = 0; i < 1 << 16; ++i) pairs.push_back(clock.enqueue(now += 100e3));
  std::size_t at = 0;
  for (auto _ : state) {
    if (at == pairs.size()) {
      state.PauseTiming();
      at = 0;
      for (clock_pair& pair : pairs) pair = clock.enqueue(now += 100e3);
      state.ResumeTiming();
    }
    benchmark::DoNotOptimize(sync.add(pairs[at++]));
  }
}
BENCHMARK(add_a_pair_to_all_methods);

// What the inference thread pays per event beyond the driver's own cost; the writer drains on another core meanwhile.
void record_an_event(benchmark::State& state) {
  profiler profile({.queue_capacity = std::size_t{1} << 20});
  const std::uint32_t launch = profile.describe({.name = "k", .ops = {{"n", "Conv"}}});
  raw_event event;
  event.launch = launch;
  event.kind = event_kind::host_operator;
  for (auto _ : state) profile.record(event);
  state.counters["dropped"] = static_cast<double>(profile.dropped());
}
BENCHMARK(record_an_event)->Iterations(200000);

void begin_and_end_a_run(benchmark::State& state) {
  const auto mode = static_cast<profile_mode>(state.range(0));
  profiler profile({.mode = mode, .queue_capacity = std::size_t{1} << 20});
  for (auto _ : state) {
    run_recorder run = profile.begin_run();
    for (int i = 0; i < 60; ++i) benchmark::DoNotOptimize(run.timed(event_kind::kernel));
    run.end();
  }
}
BENCHMARK(begin_and_end_a_run)
    ->Arg(static_cast<int>(profile_mode::off))
    ->Arg(static_cast<int>(profile_mode::monitor))
    ->Iterations(50000);

}  // namespace
