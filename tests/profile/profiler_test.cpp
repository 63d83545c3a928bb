#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <random>
#include <set>
#include <thread>
#include <vector>

#include <catch2/catch.hpp>

#include <dnnopt/profile/profiler.hpp>

#include "simulated_executor.hpp"

using namespace dnnopt::profile;

TEST_CASE("the queue keeps order, refuses when full and counts what it refused", "[profile][queue]") {
  event_queue<int> queue(3);
  CHECK(queue.capacity() == 4);
  for (int i = 0; i < 6; ++i) CHECK(queue.push(i) == (i < 4));
  CHECK(queue.dropped() == 2);
  int value = -1;
  for (int i = 0; i < 4; ++i) {
    REQUIRE(queue.pop(value));
    CHECK(value == i);
  }
  CHECK_FALSE(queue.pop(value));
  CHECK(queue.push(9));
}

TEST_CASE("no record is lost or doubled between threads", "[profile][queue]") {
  event_queue<std::uint64_t> queue(256);
  constexpr std::uint64_t each = 20000;
  std::atomic<int> running{3};
  std::vector<std::thread> producers;
  for (std::uint64_t p = 0; p < 3; ++p)
    producers.emplace_back([&, p] {
      for (std::uint64_t i = 0; i < each; ++i)
        while (!queue.push(p * each + i)) std::this_thread::yield();
      --running;
    });
  std::vector<std::uint64_t> next{0, each, 2 * each};
  std::uint64_t taken = 0;
  std::uint64_t value = 0;
  bool ordered = true;
  while (taken < 3 * each) {
    if (!queue.pop(value)) {
      std::this_thread::yield();
      continue;
    }
    ordered = ordered && next[value / each] == value;
    next[value / each] = value + 1;
    ++taken;
  }
  for (std::thread& t : producers) t.join();
  CHECK(ordered);
  CHECK_FALSE(queue.pop(value));
}

TEST_CASE("full mode reports every command on the host clock", "[profile]") {
  profiler profile;
  simulated_executor executor(profile);
  for (int i = 0; i < 40; ++i) executor.run();
  const profile_report report = profile.report();
  CHECK(report.kernels == 4);
  CHECK(report.runs == 40);
  CHECK(report.dropped == 0);
  CHECK(report.events.size() == 40 * 7);
  CHECK(report.run_events.size() == 40);
  REQUIRE(report.by_kernel.size() == 5);
  CHECK(report.by_other.size() == 2);
  CHECK(report.clock.violations == 0);
  CHECK(report.by_kernel.front().name == "conv_3");
  for (const statistic_row& row : report.by_kernel) {
    CHECK(row.count == 40);
    CHECK(row.calls == Approx(1.0));
    if (row.type != "Conv") continue;
    const double expected = 4000.0 * (row.name.back() - '0' + 1);
    CHECK(row.mean_ns == Approx(expected).epsilon(0.01));
    CHECK(row.p50_ns == Approx(expected).epsilon(0.03));
    CHECK(row.flops_per_second == Approx(1e5 / expected * 1e9).epsilon(0.02));
    CHECK(row.ops.size() == 2);
  }
  CHECK(report.by_kernel.back().cumulative == Approx(1.0));
  // Operators: one per anchor, and the host's.
  CHECK(report.by_operator.size() == 5);
  for (const kernel_event& event : report.events) {
    CHECK(event.queued_ns <= event.submit_ns);
    CHECK(event.submit_ns <= event.start_ns);
    CHECK(event.start_ns <= event.end_ns);
    CHECK(event.queued_ns >= event.host_begin_ns);
    if (event.kind == event_kind::kernel) CHECK(event.queued_ns <= event.host_end_ns + 3000);
  }
}

TEST_CASE("the parts of end-to-end time add up", "[profile]") {
  run_event run{7, 1000, 11000};
  std::vector<kernel_event> events(5);
  for (kernel_event& e : events) e.run = 7;
  events[0].kind = event_kind::upload;  // 1000..2000
  events[0].host_begin_ns = 1000, events[0].host_end_ns = 2000;
  events[0].start_ns = 1200, events[0].end_ns = 1900;
  events[1].kind = event_kind::kernel;  // enqueue 2000..3000, runs 2500..6000
  events[1].host_begin_ns = 2000, events[1].host_end_ns = 3000;
  events[1].start_ns = 2500, events[1].end_ns = 6000;
  events[2].kind = event_kind::host_operator;  // 6000..7000
  events[2].host_begin_ns = 6000, events[2].host_end_ns = 7000;
  events[3].kind = event_kind::wait;  // 3000..6500, seen only where nothing else is
  events[3].host_begin_ns = 3000, events[3].host_end_ns = 8000;
  events[4].kind = event_kind::kernel;  // of another run
  events[4].run = 8;
  events[4].start_ns = 8000, events[4].end_ns = 9000;
  const time_split split = split_run(run, events);
  CHECK(split.e2e_ns == 10000);
  CHECK(split.copy_ns == 1000);
  CHECK(split.enqueue_ns == 500);
  CHECK(split.enqueue_overlapped_ns == 1000);
  CHECK(split.gpu_ns == 3500);
  CHECK(split.host_operator_ns == 1000);
  CHECK(split.wait_ns == 1000);
  CHECK(split.unexplained_ns == 3000);
}

TEST_CASE("a simulated executor's time is explained", "[profile]") {
  profiler profile;
  simulated_executor executor(profile, 20);
  for (int i = 0; i < 30; ++i) executor.run();
  const profile_report report = profile.report();
  const time_split& split = report.split;
  CHECK(split.runs == 30);
  CHECK(split.gpu_ns + split.copy_ns + split.host_operator_ns + split.enqueue_ns + split.wait_ns +
            split.unexplained_ns ==
        Approx(split.e2e_ns));
  CHECK(split.unexplained_ns < 0.1 * split.e2e_ns);
}

TEST_CASE("a profiler that is off times nothing", "[profile]") {
  profiler profile({.mode = profile_mode::off});
  simulated_executor executor(profile);
  for (int i = 0; i < 10; ++i) executor.run();
  CHECK(executor.events_created == 0);
  CHECK(profile.probes_wanted() == 0);
  CHECK(profile.report().events.empty());
}

namespace {
struct counting_observer final : observer {
  std::atomic<int> kernels{0}, runs{0}, passes{0}, builds{0};
  std::atomic<bool> hold{false};
  void on_pass(const pass_event&) override { ++passes; }
  void on_compile(const compile_event&) override { ++builds; }
  void on_kernel(const kernel_event&, const launch_info&) override {
    ++kernels;
    while (hold) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  void on_run(const run_event&) override { ++runs; }
};
}  // namespace

TEST_CASE("observers see passes, builds, kernels and runs", "[profile]") {
  profiler profile;
  const auto seen = std::make_shared<counting_observer>();
  profile.add_observer(seen);
  profile.notify(pass_event{"fuse", 0, 1, 2});
  profile.notify(compile_event{"conv", 0, 1, 2, false});
  simulated_executor executor(profile);
  for (int i = 0; i < 5; ++i) executor.run();
  profile.flush();
  CHECK(seen->passes == 1);
  CHECK(seen->builds == 1);
  CHECK(seen->kernels == 35);
  CHECK(seen->runs == 5);
}

TEST_CASE("a sink that blocks loses only counted events and does not delay inference", "[profile]") {
  profiler profile({.queue_capacity = 64});
  const auto seen = std::make_shared<counting_observer>();
  seen->hold = true;
  profile.add_observer(seen);
  simulated_executor executor(profile);
  for (int i = 0; i < 400; ++i) executor.run();
  CHECK(profile.dropped() > 0);
  const std::uint64_t dropped = profile.dropped();
  CHECK(seen->kernels <= 1);
  seen->hold = false;
  const profile_report report = profile.report();
  // Every record was either seen or counted: 7 events and 1 end per run.
  CHECK(report.dropped == dropped);
  CHECK(static_cast<std::uint64_t>(seen->kernels + seen->runs) + dropped == 400u * 8u);
}

TEST_CASE("events arrive within an inference's time of their run", "[profile]") {
  profiler profile;
  const auto seen = std::make_shared<counting_observer>();
  profile.add_observer(seen);
  simulated_executor executor(profile);
  int late = 0;
  for (int i = 1; i <= 20; ++i) {
    executor.run();
    const std::int64_t ended = host_now_ns();
    while (seen->runs < i && host_now_ns() - ended < 2'000'000'000) std::this_thread::yield();
    late += host_now_ns() - ended > 20'000'000;
  }
  CHECK(seen->runs == 20);
  CHECK(late <= 4);
}

TEST_CASE("memory stays bounded while statistics cover all runs", "[profile]") {
  profiler profile({.kept_events = 100, .kept_runs = 10});
  simulated_executor executor(profile);
  for (int i = 0; i < 200; ++i) {
    executor.run();
    if (i % 20 == 0) profile.flush();
  }
  const profile_report report = profile.report();
  CHECK(report.events.size() == 100);
  CHECK(report.run_events.size() == 10);
  CHECK(report.discarded == 200 * 7 - 100);
  CHECK(report.by_kernel.front().count == 200);
  CHECK(report.runs == 200);
}

TEST_CASE("callbacks from other threads are recorded", "[profile]") {
  profiler profile;
  const std::uint32_t launch = profile.describe({.name = "k", .ops = {{"n", "Conv"}}});
  run_recorder recorder = profile.begin_run();
  std::vector<std::thread> callbacks;
  // One after the other, however soon the threads follow each other. A kernel starts behind its call: where the clocks
  // are taken to be some nanoseconds apart, a start at the call's very beginning would be held to that, and the end
  // not.
  std::int64_t begin = host_now_ns();
  for (int i = 0; i < 4; ++i, begin += 2000) {
    REQUIRE(recorder.timed(event_kind::kernel));
    raw_event event;
    event.launch = launch;
    event.run = recorder.run();
    event.weight = recorder.weight();
    event.host_begin_ns = event.queued_ns = event.submit_ns = begin;
    event.host_end_ns = event.start_ns = begin + 500;
    event.end_ns = event.start_ns + 1000;
    callbacks.emplace_back([&profile, event] { profile.record(event); });
  }
  recorder.end();
  for (std::thread& t : callbacks) t.join();
  const profile_report report = profile.report();
  CHECK(report.by_kernel.at(0).calls == 4.0);
  CHECK(report.by_operator.at(0).count == 1);
  CHECK(report.by_operator.at(0).mean_ns == Approx(4000.0).epsilon(0.01));
}

// An inference of these tests is a few host calls long. What its events may cost is far more than that, so that how
// many are taken does not depend on how busy the machine is.
static constexpr monitor_options spends_freely{.budget = 1e6, .run_cost_ns = 0.0, .most_probability = 0.5};

TEST_CASE("a sample's mean counts commands that the device waited for less", "[profile][monitor]") {
  for (const profile_mode mode : {profile_mode::monitor, profile_mode::full}) {
    CAPTURE(mode);
    profiler profile({.mode = mode,
                      .monitor = spends_freely,
                      .clock = {.bias = {.busy_ns = 1000.0, .starved_ns = 3000.0, .pause_ns = 1000.0}}});
    const std::uint32_t launch = profile.describe({.name = "k", .ops = {{"n", "Conv"}}});
    std::int64_t ended = host_now_ns();
    double sum = 0.0, weights = 0.0, count = 0.0;
    for (int taken = 0, run = 0; taken < 100 && run < 100'000; ++run) {
      run_recorder recorder = profile.begin_run();
      if (!recorder.timed(event_kind::kernel)) continue;
      const bool waited = taken++ % 2 == 1;
      raw_event event;
      event.launch = launch;
      event.host_begin_ns = event.queued_ns = event.submit_ns = ended;
      event.start_ns = ended + (waited ? 2000 : 1000);
      event.end_ns = ended = event.start_ns + (waited ? 13'500 : 11'000);
      event.host_end_ns = event.host_begin_ns + 500;
      const double weight =
          static_cast<double>(recorder.weight()) * (waited && mode == profile_mode::monitor ? 0.5 : 1.0);
      sum += weight * (waited ? 10'500.0 : 10'000.0);
      weights += weight;
      ++count;
      recorder.record(event);
    }
    REQUIRE(count == 100.0);
    const profile_report report = profile.report();
    CHECK(report.by_kernel.at(0).mean_ns == Approx(sum / weights).margin(1.0));
  }
}

TEST_CASE("a profile learns what waiting adds to an event", "[profile]") {
  // Measured between empty calls as 3 us and one for each that a call is later; in these inferences 2.6 and a half.
  event_bias bias{.busy_ns = 1000.0, .starved_ns = 3000.0, .pause_ns = 1000.0};
  bias.arrival_ns = 1000.0;  // the usual return of a call after START, both clocks being one here
  for (const profile_mode mode : {profile_mode::monitor, profile_mode::full}) {
    CAPTURE(mode);
    profiler profile({.mode = mode, .monitor = spends_freely, .clock = {.bias = bias}});
    std::vector<std::uint32_t> launches;
    for (const char* name : {"a", "b", "c", "d"})
      launches.push_back(profile.describe({.name = name, .ops = {{name, "Conv"}}}));
    std::int64_t ended = host_now_ns();
    profile.record_arrival(ended, ended);
    for (int taken = 0, run = 0; taken < 200 && run < 100'000; ++run) {
      run_recorder recorder = profile.begin_run();
      if (!recorder.taken()) continue;
      ++taken;
      for (std::size_t k = 0; k < launches.size(); ++k) {
        REQUIRE(recorder.timed(event_kind::kernel));
        const bool waited = (static_cast<std::size_t>(taken) + k) % 3 != 0;
        const std::int64_t late = waited ? 100 * ((taken * 7 + static_cast<int>(k)) % 15) - 500 : -9000;
        raw_event event;
        event.launch = launches[k];
        event.start_ns = ended + (waited ? 4000 : 1000);
        event.host_end_ns = event.start_ns + 1000 + late;
        event.host_begin_ns = event.queued_ns = event.submit_ns = event.host_end_ns - 10'000;
        event.end_ns = ended =
            event.start_ns + 5000 * static_cast<std::int64_t>(k + 1) + (waited ? 2600 + late / 2 : 1000);
        recorder.record(event);
      }
    }
    const profile_report report = profile.report();
    CHECK(report.waiting.at_usual_ns == Approx(2600.0).margin(10.0));
    CHECK(report.waiting.slope == Approx(0.5).margin(0.02));
    CHECK(report.waiting_samples > 300);
    REQUIRE(report.by_kernel.size() == 4);
    for (std::size_t k = 0; k < 4; ++k) {
      CHECK(report.by_kernel[k].mean_ns == Approx(5000.0 * static_cast<double>(4 - k)).margin(10.0));
      CHECK(report.by_operator[k].mean_ns == Approx(5000.0 * static_cast<double>(4 - k)).margin(10.0));
    }
    CHECK(report.by_type.at(0).mean_ns == Approx(12'500.0).margin(10.0));
  }
}

TEST_CASE("equal descriptions share a number and a wrong anchor is refused", "[profile]") {
  profiler profile;
  const auto a = profile.describe({.name = "k", .ops = {{"n", "Conv"}}});
  CHECK(profile.describe({.name = "k", .ops = {{"n", "Conv"}}}) == a);
  CHECK(profile.describe({.name = "k", .ops = {{"m", "Conv"}}}) != a);
  CHECK_THROWS_AS(profile.describe({.name = "j", .ops = {{"n", "Conv"}}, .anchor = 1}), dnnopt::error);
  CHECK(profile.describe({.name = "j", .ops = {{"n", "Conv"}}, .anchor = 0}) !=
        profile.describe({.name = "i", .ops = {{"n", "Conv"}}}));
}

TEST_CASE("an event of no described launch is counted, not hidden", "[profile]") {
  profiler profile;
  raw_event event;
  event.launch = 77;
  profile.record(event);
  CHECK(profile.report().dropped == 1);
}

TEST_CASE("monitor takes every inference alike and keeps to its budget", "[profile][monitor]") {
  monitor_sampler sampler({.budget = 0.01, .event_cost_ns = 5000.0, .run_cost_ns = 0.0, .seed = 3});
  constexpr std::size_t launches = 60;
  // By the position in a period of the application that a sampler with equal distances might follow.
  std::vector<double> weights(8, 0.0);
  double time = 0.0, cost = 0.0;
  constexpr int runs = 400000;
  for (int r = 0; r < runs; ++r) {
    const run_sample sample = sampler.next_run();
    const std::size_t timed = sample.taken ? launches : 0;
    if (sample.taken) weights[static_cast<std::size_t>(r) % 8] += static_cast<double>(sample.weight);
    const double extra = static_cast<double>(timed) * 7000.0;  // what an event really costs here
    const double run = 1.2e6 + extra;
    sampler.observe(run, launches, timed);
    if (r > runs / 2) {
      time += run;
      cost += extra;
    }
  }
  for (const double w : weights) CHECK(w / runs * 8.0 == Approx(1.0).epsilon(0.12));
  CHECK(sampler.event_cost_ns() == Approx(7000.0).epsilon(0.05));
  CHECK(cost / (time - cost) == Approx(0.01).epsilon(0.06));

  // What follows an inference for its times alone counts as well; one interrupted call does not silence the sampler.
  const double before = sampler.probability();
  for (int i = 0; i < 200; ++i) sampler.observe_collection(60 * 7000.0);
  CHECK(sampler.probability() == Approx(0.5 * before).epsilon(0.02));
  CHECK(sampler.overhead() == Approx(0.01).epsilon(0.02));
  sampler.observe_collection(1e12);
  CHECK(sampler.probability() > 0.4 * before);
}

TEST_CASE("noise of inferences is not taken for what events cost", "[profile][monitor]") {
  // A processor that others use too: inferences differ by a fifth, an event costs a microsecond.
  monitor_sampler sampler({.budget = 0.0025, .event_cost_ns = 8000.0, .run_cost_ns = 0.0, .seed = 5});
  sampler.set_event_cost(700.0);
  constexpr std::size_t launches = 50;
  constexpr double event_ns = 1000.0;
  std::mt19937_64 random(7);
  std::normal_distribution<double> noise(0.0, 0.12 * 10e6);
  double pace = 0.0;  // stays alike for a few inferences
  std::size_t taken = 0;
  for (int r = 0; r < 10000; ++r) {
    const std::size_t timed = sampler.next_run().taken ? launches : 0;
    taken += timed > 0 ? 1 : 0;
    pace = 0.7 * pace + noise(random);
    sampler.observe(10e6 + pace + noise(random) + static_cast<double>(timed) * event_ns, launches, timed);
  }
  CHECK(sampler.event_cost_ns() < 4.0 * event_ns);
  // Half of the 10,000 inferences could be timed within the budget.
  const double spent = static_cast<double>(taken) * launches * event_ns / (1e4 * 10e6);
  CHECK(spent < 0.003);
  CHECK(spent > 0.0008);
}

TEST_CASE("a costly event is learned whatever its first measurement was", "[profile][monitor]") {
  // The pace halves and doubles over hundreds of inferences, which must not count as events.
  monitor_sampler sampler({.budget = 0.0025, .event_cost_ns = 8000.0, .run_cost_ns = 0.0, .seed = 3});
  sampler.set_event_cost(1000.0);
  constexpr std::size_t launches = 50;
  constexpr double event_ns = 9000.0;
  std::mt19937_64 random(11);
  std::normal_distribution<double> noise(0.0, 0.01);
  for (int r = 0; r < 40000; ++r) {
    const std::size_t timed = sampler.next_run().taken ? launches : 0;
    const double pace = (1.5 + 0.5 * std::sin(r * 0.01)) * (1.0 + noise(random));
    sampler.observe(10e6 * pace + static_cast<double>(timed) * event_ns, launches, timed);
  }
  CHECK(sampler.event_cost_ns() == Approx(event_ns).epsilon(0.2));
}

TEST_CASE("monitor converges to the statistics of full", "[profile][monitor]") {
  profiler profile({.mode = profile_mode::monitor, .monitor = {.budget = 0.05, .event_cost_ns = 3000.0}});
  simulated_executor executor(profile, 3);
  executor.event_cost_ns = 3000;
  for (int i = 0; i < 12000; ++i) executor.run();
  const profile_report report = profile.report();
  CHECK(report.runs == 12000);
  // A sample of the six that each inference could have; how large depends on what an event turns out to cost here.
  CHECK(executor.events_created < 12000u * 5u);
  CHECK(executor.events_created > 60u);
  CHECK(report.overhead < 0.06);
  for (const statistic_row& row : report.by_kernel) {
    if (row.type != "Conv") continue;
    const double expected = 4000.0 * (row.name.back() - '0' + 1);
    CHECK(row.mean_ns == Approx(expected).epsilon(0.05));
    CHECK(row.calls == 1.0);
    CHECK(row.mean_interval_ns.lower <= row.mean_ns);
    CHECK(row.mean_interval_ns.upper >= row.mean_ns);
  }
}
