#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include <catch2/catch.hpp>

#include <dnnopt/profile/clocks/clock_regression.hpp>
#include <dnnopt/profile/clocks/clock_sync.hpp>
#include <dnnopt/profile/clocks/simulated_clock.hpp>
#include <dnnopt/profile/statistics.hpp>
#include <dnnopt/profile/waiting/command_arrival.hpp>

using namespace dnnopt::profile;

namespace {

simulated_clock_options rough_clock() {
  simulated_clock_options options;
  options.offset_ns = 1.8e9;
  options.drift_ppm = 100.0;
  options.wander_ns = 200e3;
  options.jitter_ns = 2000.0;
  options.outlier_share = 0.02;
  options.outlier_ns = 50e3;
  options.tick_ns = 1000;
  return options;
}

struct errors {
  std::vector<double> streamed;
  std::vector<double> past;
};

errors follow(simulated_clock& clock, dynamic_fit& fit, double gap_ns, int launches) {
  std::mt19937_64 random(7);
  std::uniform_real_distribution<double> around(0.5, 1.5);
  errors result;
  std::vector<std::pair<double, std::int64_t>> starts;
  double now = 1e6;
  for (int i = 0; i < launches; ++i) {
    now += gap_ns * around(random);
    fit.add(clock.enqueue(now));
    const double start = now + 30e3 * around(random);
    const std::int64_t device = clock.stamp(start);
    if (!fit.ready()) continue;
    result.streamed.push_back(std::abs(static_cast<double>(fit.map()(device)) - start));
    starts.emplace_back(start, device);
  }
  for (const auto& [start, device] : starts)
    result.past.push_back(std::abs(static_cast<double>(fit.map_past(device)(device)) - start));
  return result;
}

}  // namespace

TEST_CASE("line moments fit a line exactly and fade", "[profile][clock]") {
  line_moments line;
  for (int i = 0; i < 10; ++i) line.add(i, 3.0 + 0.5 * i);
  CHECK(line.slope() == Approx(0.5));
  CHECK(line.at(100.0) == Approx(53.0));
  line.fade(0.0);
  line.add(0.0, 1.0);
  line.add(2.0, 5.0);
  CHECK(line.slope() == Approx(2.0));
  CHECK(line.at(0.0) == Approx(1.0));
}

TEST_CASE("an affine map keeps nanoseconds at wall-clock epochs", "[profile][clock]") {
  const affine_clock_map map{1'800'000'000'123'456'789, -1'799'999'999'000'000'000, 0.0, 0.5};
  CHECK(map(1'800'000'000'123'456'790) == 1'123'456'790);
  CHECK(map(1'800'000'000'123'456'791) - map(1'800'000'000'123'456'790) == 1);
}

TEST_CASE("dynamic fitting follows a rough clock within a microsecond", "[profile][clock]") {
  const double gap = GENERATE(50e3, 200e3, 1e6, 4e6);
  const std::uint64_t seed = GENERATE(1u, 2u, 3u);
  simulated_clock_options options = rough_clock();
  options.seed = seed;
  simulated_clock clock(options);
  dynamic_fit fit({.tick_ns = 1000.0});
  errors e = follow(clock, fit, gap, 20000);
  CAPTURE(gap, seed, fit.outliers(), fit.sigma());
  CHECK(exact_quantile(e.streamed, 0.9) <= 1000.0);
  CHECK(exact_quantile(e.past, 0.9) <= 700.0);
  CHECK(fit.outliers() >= 200);
  CHECK(fit.sigma() == Approx(2000.0).margin(600.0));
}

TEST_CASE("dynamic fitting recovers from a frequency step within two groups", "[profile][clock]") {
  const double ppm = GENERATE(150.0, -1000.0, 10000.0, -50000.0);
  const double gap = GENERATE(50e3, 200e3, 1e6);
  std::vector<double> third;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    simulated_clock_options options = rough_clock();
    options.wander_ns = 0.0;
    options.seed = seed;
    options.steps = {{gap * 1600.0, ppm}};
    simulated_clock clock(options);
    dynamic_fit fit({.tick_ns = 1000.0});
    std::vector<std::pair<double, std::int64_t>> starts;
    // Launches are spread within their gap: equal gaps would meet the tick at one phase and measure that instead.
    std::mt19937_64 random(seed);
    std::uniform_real_distribution<double> within(0.0, 0.5);
    for (int i = 1; i < 1600 + 16 * 6; ++i) {
      const double now = gap * (i + within(random));
      fit.add(clock.enqueue(now));
      const double start = now + 20e3 + 1e3 * within(random);
      if (i > 1600 + 32 && i <= 1600 + 48) starts.emplace_back(start, clock.stamp(start));
    }
    for (const auto& [start, device] : starts)
      third.push_back(std::abs(static_cast<double>(fit.map_past(device)(device)) - start));
  }
  CAPTURE(ppm, gap);
  // A step of 1000 ppm moves a group by less than two deviations of the jitter: half of it passes before it shows.
  CHECK(exact_quantile(third, 0.9) <= 1300.0);
}

TEST_CASE("bursts too short to tell a slope do not tilt the fit", "[profile][clock]") {
  const double pause = GENERATE(1e6, 20e6, 200e6);
  const std::int64_t tick = GENERATE(std::int64_t{1}, std::int64_t{1000});
  const double jitter = GENERATE(200.0, 2000.0);
  simulated_clock_options options = rough_clock();
  options.drift_ppm = 20.0;
  options.jitter_ns = jitter;
  options.tick_ns = tick;
  simulated_clock clock(options);
  dynamic_fit fit({.tick_ns = static_cast<double>(tick)});
  std::vector<double> errors;
  double now = 1e6;
  for (int burst = 0; burst < 400; ++burst, now += pause)
    for (int i = 0; i < 50; ++i) {
      now += 3000.0;
      fit.add(clock.enqueue(now));
      const double start = now + 20e3 * i;
      if (burst > 2) errors.push_back(std::abs(static_cast<double>(fit.map()(clock.stamp(start))) - start));
    }
  CAPTURE(pause, tick, jitter, fit.steps());
  CHECK(exact_quantile(errors, 0.9) <= 1000.0);
  // Bursts meet a coarse tick at one phase each, and what that errs by tilts the line over the pause.
  CHECK(exact_quantile(errors, 0.99) <= 10000.0);
}

TEST_CASE("the past stays mapped when more groups have passed than are kept", "[profile][clock]") {
  simulated_clock_options options = rough_clock();
  options.wander_ns = 0.0;
  simulated_clock clock(options);
  dynamic_fit fit({.tick_ns = 1000.0, .kept_segments = 64});
  errors e = follow(clock, fit, 100e3, 30000);
  CHECK(exact_quantile(e.past, 0.9) <= 700.0);
  CHECK(exact_quantile(e.past, 1.0) <= 4000.0);
}

TEST_CASE("a long enqueue call does not spoil the first fit", "[profile][clock]") {
  dynamic_fit fit;
  fit.add({1'000'000, 1'060'000, 500'001'000});  // the stamp is taken at the beginning of a call of 60 us
  fit.add({1'060'000, 1'062'000, 500'061'000});
  fit.add({1'062'000, 1'064'000, 500'063'000});
  REQUIRE(fit.ready());
  CHECK(static_cast<double>(fit.map()(500'100'000)) == Approx(1'100'000.0).margin(200.0));
}

TEST_CASE("the stamp's place within the call is learned", "[profile][clock]") {
  const double place = GENERATE(0.0, 0.3, 1.0);
  std::mt19937_64 random(13);
  std::exponential_distribution<double> extra(1.0 / 2000.0);
  dynamic_fit fit;
  double now = 0.0;
  for (int i = 0; i < 2000; ++i) {
    now += 50e3;
    const double length = 2000.0 + extra(random);
    const double begin = now - place * length;
    fit.add({static_cast<std::int64_t>(begin), static_cast<std::int64_t>(begin + length),
             static_cast<std::int64_t>(now) + 7'000'000});
  }
  CHECK(fit.stamp_position() == Approx(place).margin(0.06));
  // Half of the usual call, 2 us and little more, bounds the error.
  CHECK(static_cast<double>(fit.map()(107'000'000)) == Approx(100e6).margin(1500.0));
}

TEST_CASE("a step that puts every pair outside the gate does not hold the fit for ever", "[profile][clock]") {
  simulated_clock_options options;
  options.offset_ns = 5e9;
  options.jitter_ns = 100.0;
  simulated_clock clock(options);
  dynamic_fit fit;
  for (int i = 1; i <= 160; ++i) fit.add(clock.enqueue(i * 1e5));
  options.offset_ns = 5e9 + 1e6;
  simulated_clock moved(options);
  for (int i = 161; i <= 192; ++i) fit.add(moved.enqueue(i * 1e5));
  CHECK(fit.steps() >= 1);
  const double now = 193e5;
  CHECK(static_cast<double>(fit.map()(moved.stamp(now))) == Approx(now).margin(400.0));
}

TEST_CASE("three injected kernels give the first fit", "[profile][clock]") {
  simulated_clock clock({.offset_ns = 1e12, .jitter_ns = 500.0});
  dynamic_fit fit;
  fit.add(clock.enqueue(1e6));
  fit.add(clock.enqueue(1.01e6));
  CHECK_FALSE(fit.ready());
  fit.add(clock.enqueue(1.02e6));
  REQUIRE(fit.ready());
  CHECK(static_cast<double>(fit.map()(clock.stamp(1.1e6))) == Approx(1.1e6).margin(2000.0));
  CHECK(fit.gate() > 0.0);
}

TEST_CASE("the gate does not shrink on a clock of constant noise", "[profile][clock]") {
  simulated_clock clock({.jitter_ns = 1000.0});
  dynamic_fit fit;
  for (int i = 1; i <= 50000; ++i) fit.add(clock.enqueue(i * 1e5));
  CHECK(fit.sigma() == Approx(1000.0).margin(350.0));
  CHECK(static_cast<double>(fit.outliers()) / 50000.0 < 0.1);
}

TEST_CASE("a wrapping clock is unwrapped without its period being known", "[profile][clock]") {
  const std::int64_t period = std::int64_t{1} << 32;
  simulated_clock clock({.offset_ns = 4e9, .jitter_ns = 300.0, .wrap_ns = period});
  clock_synchronizer sync({.known_clocks = false});
  double worst = 0.0;
  for (int i = 1; i <= 20000; ++i) {
    const double now = i * 1e6;  // 20 s, wraps four times
    sync.add(clock.enqueue(now));
    if (i < 64) continue;
    raw_event raw;
    raw.queued_ns = clock.stamp(now);
    raw.submit_ns = clock.stamp(now + 1e3);
    raw.start_ns = clock.stamp(now + 20e3);
    raw.end_ns = clock.stamp(now + 500e3);
    const kernel_event event = sync.to_host(raw);
    worst = std::max(worst, std::abs(static_cast<double>(event.start_ns) - (now + 20e3)));
    CHECK(event.end_ns - event.start_ns == Approx(480e3).margin(10.0));
  }
  CHECK(worst < 2000.0);
  CHECK(sync.report().violations == 0);
}

TEST_CASE("a wrap period is learned to the power of two", "[profile][clock]") {
  clock_unwrapper unwrapper;
  const std::int64_t period = std::int64_t{1} << 33;
  CHECK(unwrapper.follow(period - 1'000'000, 5'000'000) == period - 1'000'000);
  CHECK(unwrapper.follow(1'000'000, 7'003'000) == period + 1'000'000);
  CHECK(unwrapper.period_ns() == period);
  CHECK(unwrapper.beside(2'000'000) == period + 2'000'000);
}

TEST_CASE("a driver that stamps with a host clock is recognised by measurement", "[profile][clock]") {
  const known_clock clock = GENERATE(known_clock::monotonic, known_clock::monotonic_raw, known_clock::realtime);
  const std::int64_t constant = GENERATE(std::int64_t{0}, std::int64_t{-987'654'321'000});
  clock_synchronizer sync;
  std::int64_t worst = 0;
  for (int i = 0; i < 200; ++i) {
    sync.refresh();
    clock_pair pair;
    pair.host_begin_ns = host_now_ns();
    while (host_now_ns() - pair.host_begin_ns < 1500) {
    }
    const std::int64_t before = host_now_ns();
    pair.device_ns = read_known_clock(clock) + constant;
    const std::int64_t after = host_now_ns();
    pair.host_end_ns = after;
    sync.add(pair);
    const std::int64_t mapped = sync.map()(pair.device_ns);
    if (i > 100) worst = std::max({worst, before - mapped, mapped - after});
  }
  const clock_report report = sync.report();
  CAPTURE(to_string(clock), constant, report.method);
  // The constant is bounded by the call's length; a clock without one is exact.
  CHECK(worst < (constant == 0 ? 1000 : 2500));
  CHECK(report.method.find("CLOCK") == 0);
  if (constant == 0 && clock == known_clock::realtime) CHECK(report.method == "CLOCK_REALTIME");
}

TEST_CASE("a drifting device is not taken for a host clock", "[profile][clock]") {
  simulated_clock clock(rough_clock());
  clock_synchronizer sync({.tick_ns = 1000});
  sync.refresh();
  for (int i = 1; i <= 2000; ++i) sync.add(clock.enqueue(i * 1e6));
  CHECK(sync.report().method == "dynamic fitting");
  CHECK(sync.report().drift_ppm == Approx(-100.0).margin(30.0));
  CHECK(sync.report().residual_p90_ns == Approx(3300.0).margin(1200.0));
}

TEST_CASE("a driver's device timer is bracketed and preferred to fitting", "[profile][clock]") {
  const std::int64_t start = host_now_ns();
  const auto device_now = [start] { return static_cast<std::int64_t>((host_now_ns() - start) * 3 / 2); };
  clock_synchronizer sync(
      {.anchor_every_ns = 0, .timer = [&]() -> std::optional<std::int64_t> { return device_now(); }});
  for (int i = 0; i < 300; ++i) {
    sync.refresh();
    const std::int64_t begin = host_now_ns();
    const std::int64_t device = device_now();
    sync.add({begin, host_now_ns(), device});
  }
  CHECK(sync.report().method == "bracketed device timer");
  const std::int64_t host = host_now_ns();
  const std::int64_t mapped = sync.map()(device_now());
  CHECK(std::abs(mapped - host) < 20'000);
  CHECK(sync.report().drift_ppm == Approx(-1e6 / 3.0).epsilon(0.05));
}

TEST_CASE("mapped events stay in order and what had to be moved is counted", "[profile][clock]") {
  clock_synchronizer sync;
  const affine_clock_map same{};
  raw_event raw;
  raw.host_begin_ns = 100'000;
  raw.host_end_ns = 105'000;
  const kernel_event good = sync.place(raw, 101'000, 102'000, 103'000, 104'000, same);
  CHECK(good.start_ns == 103'000);
  CHECK(sync.report().violations == 0);
  const kernel_event backwards = sync.place(raw, 101'000, 102'000, 101'500, 101'200, same);
  CHECK(backwards.queued_ns <= backwards.submit_ns);
  CHECK(backwards.submit_ns <= backwards.start_ns);
  CHECK(backwards.start_ns <= backwards.end_ns);
  CHECK(sync.report().violations == 1);
  CHECK(sync.report().violations_as_stamped == 1);
  CHECK(sync.report().moved_most_ns == 500);
  const kernel_event early = sync.place(raw, 50'000, 60'000, 101'500, 101'600, same);
  CHECK(early.queued_ns == 100'000);
  CHECK(early.submit_ns == 100'000);
  CHECK(sync.report().violations == 2);
  CHECK(sync.report().violations_as_stamped == 1);
  CHECK(sync.report().moved_most_ns == 50'000);
}

TEST_CASE("an event's own bias is taken off its duration, never all of it", "[profile][clock]") {
  clock_synchronizer sync({.bias = {.busy_ns = 1500.0, .starved_ns = 3000.0, .pause_ns = 1000.0}});
  raw_event raw;
  CHECK(sync.place(raw, 0, 0, 10'000, 20'000, {}).duration_ns() == 8500.0);
  CHECK(sync.place(raw, 0, 0, 10'000, 12'000, {}).duration_ns() == 500.0);
  CHECK(sync.place(raw, 0, 0, 10'000, 11'600, {}).duration_ns() == 160.0);
  CHECK(sync.place(raw, 0, 0, 10'000, 11'000, {}).duration_ns() == 100.0);
  raw.pause_ns = 1200;
  CHECK(sync.place(raw, 0, 0, 10'000, 20'000, {}).duration_ns() == 8500.0);
  raw.pause_ns = 1300;
  CHECK(sync.place(raw, 0, 0, 10'000, 20'000, {}).duration_ns() == 7000.0);
  raw.pause_ns = -1;
  raw.repeats = 5;
  CHECK(sync.place(raw, 0, 0, 10'000, 21'500, {}).duration_ns() == 2000.0);
  raw.kind = event_kind::upload;
  raw.repeats = 1;
  CHECK(sync.place(raw, 0, 0, 10'000, 20'000, {}).duration_ns() == 10000.0);
}

TEST_CASE("what is behind a command decides its event's bias, unless the device waited for it", "[profile][clock]") {
  const event_bias bias{
      .busy_ns = 1000.0, .starved_ns = 4000.0, .pause_ns = 1000.0, .deep_ns = 1600.0, .depth = 9, .launch_ns = 0.0};
  CHECK(bias.of(1000.0) == 1000.0);
  CHECK(bias.of(1000.0, 8) == 1000.0);
  CHECK(bias.of(1000.0, 9) == 1600.0);
  CHECK(bias.of(-1.0, 40) == 1600.0);
  CHECK(bias.of(2000.0, 40) == 4000.0);
  const event_bias indifferent{.busy_ns = 1000.0, .deep_ns = 1600.0};
  CHECK(indifferent.of(1000.0, 40) == 1000.0);
}

/// A command of `whole` nanoseconds whose call returned `late` nanoseconds after START, by clocks that agree.
raw_event command_of(std::int64_t whole, std::int64_t pause, std::int32_t behind, std::int64_t late,
                     std::int64_t start = 1'795'406'158'000'000'000) {
  raw_event of;
  of.start_ns = start;
  of.end_ns = start + whole;
  of.pause_ns = pause;
  of.behind = behind;
  of.host_end_ns = start + late;
  return of;
}

/// By the line that the bias was measured with.
double part_of(command_arrival& arrivals, const event_bias& bias, const raw_event& of) {
  return arrivals.judge(bias, {bias.starved_ns, 1.0}, of).part_ns;
}

TEST_CASE("of commands that the device waited for, a later call's has more that is not execution", "[profile][clock]") {
  const event_bias bias{.busy_ns = 2000.0, .starved_ns = 4000.0, .pause_ns = 1000.0, .deep_ns = 3000.0, .depth = 9};
  command_arrival arrival;
  // Too few to say what is usual: the pause alone.
  CHECK(part_of(arrival, bias, command_of(20'000, 5000, 0, 90'000)) == 4000.0);
  CHECK(part_of(arrival, bias, command_of(20'000, 1100, 0, -30'000)) == 2000.0);
  // Half a millisecond that the clocks are apart is in what is usual.
  for (int i = 0; i < 64; ++i) (void)part_of(arrival, bias, command_of(20'000, 5000, 0, 500'000 + 100 * (i % 5 - 2)));
  CHECK(part_of(arrival, bias, command_of(20'000, 5000, 0, 500'000)) == 4000.0);
  CHECK(part_of(arrival, bias, command_of(20'000, 5000, 0, 506'000)) == 10'000.0);
  CHECK(part_of(arrival, bias, command_of(20'000, 5000, 0, 499'000)) == 3000.0);
  // There in time, whatever the pause says: its call returned long before START, or it waited less than its own part.
  CHECK(part_of(arrival, bias, command_of(20'000, 5000, 0, 440'000)) == 2000.0);
  CHECK(part_of(arrival, bias, command_of(20'000, 1500, 9, 498'500)) == 3000.0);
  // A short kernel that ran as soon as it could.
  CHECK(part_of(arrival, bias, command_of(20'000, 5000, 0, 515'900)) == 19'900.0);
  // The host was interrupted after the command had been handed over.
  CHECK(part_of(arrival, bias, command_of(20'000, 5000, 0, 600'000)) == 4000.0);
  CHECK(part_of(arrival, bias, command_of(20'000, 1000, 9, 600'000)) == 3000.0);
  CHECK(bias.waited(4000.0));
  CHECK_FALSE(bias.waited(3000.0));

  // Clocks that drift apart by 10 ns from one command to the next.
  command_arrival drifting;
  for (int i = 0; i < 1000; ++i) {
    const double part = part_of(drifting, bias, command_of(20'000, 5000, 0, 10 * i));
    CHECK(part >= 4000.0);
    CHECK(part < 4400.0);
  }
  // Half a second between inferences, in which the clocks drift apart by 30 us either way: what was usual before is
  // not what is usual now, and the first commands go by the pause.
  command_arrival rare;
  std::int64_t start = 1'795'406'158'000'000'000;
  for (const std::int64_t apart : {0LL, 30'000LL, -30'000LL, 0LL}) {
    start += 500'000'000;
    for (int i = 0; i < 40; ++i) {
      const std::int64_t own = 4000 + 500 * (i % 3 - 1);
      const double part = part_of(rare, bias, command_of(20'000, 5000, 0, apart + own, start + 30'000 * i));
      CHECK(std::abs(part - static_cast<double>(own)) <= (i < 16 ? 500.0 : 0.0));
    }
  }
  // Where events cost nothing there is nothing to tell apart.
  command_arrival nothing;
  for (int i = 0; i < 100; ++i) CHECK(part_of(nothing, {}, command_of(20'000, 5000, 0, 100 * i)) == 0.0);
}

TEST_CASE("an empty kernel tells how long commands were waited for where all calls are slower", "[profile][clock]") {
  // On idle devices calls return 1 us after START here, and an empty kernel ENDs 6 us after its call.
  event_bias bias{.busy_ns = 2000.0, .starved_ns = 4000.0, .pause_ns = 1000.0, .deep_ns = 3000.0, .depth = 9};
  bias.arrival_ns = 7000.0;
  for (const std::int64_t apart : {0LL, 1'795'406'158'000'000'000LL, -40'000LL}) {
    const auto seen = [&](std::int64_t late) {
      raw_event of = command_of(20'000, 5000, 0, late);
      of.host_end_ns += apart;
      return of;
    };
    command_arrival arrival;
    // Without a probe, what is usual is taken for what was usual when the part was measured.
    for (int i = 0; i < 64; ++i) (void)part_of(arrival, bias, seen(2500));
    CHECK(part_of(arrival, bias, seen(2500)) == 4000.0);
    arrival.probe(1'000'000 + apart, 1'006'000);
    CHECK(part_of(arrival, bias, seen(2500)) == 5500.0);
    CHECK(part_of(arrival, bias, seen(1000)) == 4000.0);
    CHECK(part_of(arrival, bias, seen(-9000)) == 2000.0);
    // The clocks drift apart by 3 us until the next probe.
    arrival.probe(1'000'000 + apart, 1'003'000);
    CHECK(part_of(arrival, bias, seen(5500)) == 5500.0);
  }
  // Between probes the clocks drift apart by 5 us a second, which sixteen of them tell, one in eight being 30 us off.
  command_arrival drifting;
  for (int i = 0; i < 16; ++i)
    drifting.probe(1'000'000 + 100'000'000LL * i, 1'006'000 + 100'000'500LL * i + (i % 8 == 3 ? 30'000 : 0));
  raw_event late = command_of(20'000, 5000, 0, 1000, 1'590'999'000);
  late.start_ns += 7950;
  late.end_ns += 7950;
  CHECK(std::abs(part_of(drifting, bias, late) - 4000.0) < 1.0);
  // A device whose bias was measured without one goes by what is usual.
  bias.arrival_ns.reset();
  command_arrival arrival;
  arrival.probe(1'000'000, 1'006'000);
  for (int i = 0; i < 64; ++i) (void)part_of(arrival, bias, command_of(20'000, 5000, 0, 2500));
  CHECK(part_of(arrival, bias, command_of(20'000, 5000, 0, 2500)) == 4000.0);
}

TEST_CASE("commands waited for are less certain than others, and those of interrupted calls hardly at all",
          "[profile][clock]") {
  const event_bias bias{.busy_ns = 2000.0, .starved_ns = 4000.0, .pause_ns = 1000.0};
  const auto lasting = [](std::int64_t call) {
    raw_event of = command_of(20'000, 5000, 0, 0);
    of.host_begin_ns = of.host_end_ns - call;
    return of;
  };
  command_arrival arrivals;
  const auto judged = [&](const event_bias& by, std::int64_t call, std::int64_t pause) {
    raw_event of = lasting(call);
    of.pause_ns = pause;
    return arrivals.judge(by, {by.starved_ns, 1.0}, of);
  };
  // What is usual is not known yet.
  CHECK_FALSE(judged(bias, 90'000, 1000).interrupted);
  for (int i = 0; i < 100; ++i) (void)judged(bias, 7500 + 20 * (i % 50), 1000);
  const arrival there = judged(bias, 9000, 1000);
  const arrival waited = judged(bias, 9000, 1900);
  const arrival interrupted = judged(bias, 12'000, 1000);
  CHECK_FALSE(there.waited);
  CHECK(waited.waited);
  CHECK(interrupted.interrupted);
  CHECK(there.certainty() == 1.0);
  CHECK((waited.certainty() > 0.0 && waited.certainty() < there.certainty()));
  CHECK((interrupted.certainty() > 0.0 && interrupted.certainty() < waited.certainty()));
  CHECK(judged(bias, 12'000, 1900).certainty() == interrupted.certainty());
  // A host that became slower for good.
  for (int i = 0; i < 3000; ++i) (void)judged(bias, 15'000, 1000);
  CHECK_FALSE(judged(bias, 16'000, 1000).interrupted);
  // Where events cost nothing a call's length says nothing.
  for (int i = 0; i < 100; ++i) CHECK(judged({}, i < 50 ? 1000 : 90'000, 1000).certainty() == 1.0);
}

TEST_CASE("ordering holds for every event of a rough clock", "[profile][clock][property]") {
  simulated_clock clock(rough_clock());
  clock_synchronizer sync({.tick_ns = 1000, .known_clocks = false});
  std::mt19937_64 random(11);
  std::exponential_distribution<double> wait(1e-5);
  double now = 0.0;
  for (int i = 0; i < 5000; ++i) {
    now += 1e4 + wait(random);
    const clock_pair pair = clock.enqueue(now);
    sync.add(pair);
    raw_event raw;
    raw.host_begin_ns = pair.host_begin_ns;
    raw.host_end_ns = pair.host_end_ns;
    raw.queued_ns = pair.device_ns;
    raw.submit_ns = clock.stamp(now + 500.0);
    raw.start_ns = clock.stamp(now + 3000.0);
    raw.end_ns = clock.stamp(now + 9000.0);
    const kernel_event event = sync.to_host(raw);
    REQUIRE(event.queued_ns <= event.submit_ns);
    REQUIRE(event.submit_ns <= event.start_ns);
    REQUIRE(event.start_ns <= event.end_ns);
    REQUIRE(event.queued_ns >= raw.host_begin_ns);
  }
}
