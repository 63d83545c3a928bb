// What the profiler costs on the hot path: mapping a stamp, one group's fit, handing over an event.
//
// rough_clock/GAP_US prints the error of mapped starts on a simulated device (200 us of wander, 100 ppm, 2 us of
// jitter, 2% outliers of 50 us, ticks of 1 us, groups of 16), and clock_step/PPM the error in the third group after a
// frequency step. fit_of_one_group prints the percentiles of single fits (nnPerf Table 4: p90 of 3.2 to 4.3 us);
// map_one_stamp is the multiply-add that each kernel pays. Run: profile_bench
#include <benchmark/benchmark.h>

#include <cmath>
#include <cstdint>
#include <random>
#include <utility>
#include <vector>

#include <dnnopt/profile/clocks/clock_regression.hpp>
#include <dnnopt/profile/clocks/simulated_clock.hpp>
#include <dnnopt/profile/profiler.hpp>
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

void rough_clock_followed(benchmark::State& state) {
  const double gap = static_cast<double>(state.range(0)) * 1e3;
  std::vector<double> errors;
  for (auto _ : state) {
    simulated_clock clock(rough_clock());
    dynamic_fit fit({.tick_ns = 1000.0});
    std::mt19937_64 random(7);
    std::uniform_real_distribution<double> around(0.5, 1.5);
    double now = 1e6;
    for (int i = 0; i < 20000; ++i) {
      fit.add(clock.enqueue(now += gap * around(random)));
      const double start = now + 30e3 * around(random);
      const std::int64_t device = clock.stamp(start);
      if (fit.ready()) errors.push_back(std::abs(static_cast<double>(fit.map()(device)) - start));
    }
  }
  state.counters["p50_ns"] = exact_quantile(errors, 0.5);
  state.counters["p90_ns"] = exact_quantile(errors, 0.9);
}
BENCHMARK(rough_clock_followed)->Name("rough_clock")->Arg(50)->Arg(200)->Arg(1000)->Arg(4000)->Iterations(1);

void clock_after_a_step(benchmark::State& state) {
  std::vector<double> errors;
  for (auto _ : state)
    for (std::uint64_t seed = 1; seed <= 60; ++seed) {
      simulated_clock_options options = rough_clock();
      options.wander_ns = 0.0;
      options.seed = seed;
      options.steps = {{200e3 * 1600.0, static_cast<double>(state.range(0))}};
      simulated_clock clock(options);
      dynamic_fit fit({.tick_ns = 1000.0});
      // Launches are spread within their gap: equal gaps would meet the tick at one phase and measure that instead.
      std::mt19937_64 random(seed);
      std::uniform_real_distribution<double> within(0.0, 0.5);
      std::vector<std::pair<double, std::int64_t>> starts;
      for (int i = 1; i < 1600 + 16 * 6; ++i) {
        const double now = 200e3 * (i + within(random));
        fit.add(clock.enqueue(now));
        const double start = now + 20e3 + 1e3 * within(random);
        if (i > 1600 + 32 && i <= 1600 + 48) starts.emplace_back(start, clock.stamp(start));
      }
      for (const auto& [start, device] : starts)
        errors.push_back(std::abs(static_cast<double>(fit.map_past(device)(device)) - start));
    }
  state.counters["p50_ns"] = exact_quantile(errors, 0.5);
  state.counters["p90_ns"] = exact_quantile(errors, 0.9);
}
BENCHMARK(clock_after_a_step)->Name("clock_step")->Arg(150)->Arg(-1000)->Arg(10000)->Arg(-50000)->Iterations(1);

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
