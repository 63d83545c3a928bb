// What events of commands waited for have too much, learned from kernels seen both ways.
#include <catch2/catch.hpp>

#include <cmath>
#include <cstddef>
#include <random>

#include <dnnopt/profile/waiting/waiting_fit.hpp>

using namespace dnnopt::profile;

namespace {

constexpr event_bias measured{.busy_ns = 2700.0, .starved_ns = 5200.0, .pause_ns = 1300.0, .deep_ns = 3300.0};

/// Events of 30 kernels: their times, and `truth` too much where the device waited.
struct session {
  waiting_fit fit{measured};
  std::mt19937_64 random{7};
  waiting_line truth{4900.0, 0.6};
  double applied = 0.0;  // parts of the last launch
  double late_sum = 0.0;

  double time(std::size_t launch) const { return 900.0 + 500.0 * static_cast<double>(launch); }
  void event(std::size_t launch, bool waited) {
    std::normal_distribution<double> noise(0.0, waited ? 500.0 : 250.0), lateness(200.0, 800.0);
    if (!waited) {
      fit.add_present(launch, time(launch) + noise(random));
      return;
    }
    const double late = lateness(random);
    const double part = fit.line().part(late);
    fit.add_waited(launch, late, time(launch) + truth.part(late) + noise(random), time(launch) + 300.0);
    fit.note(launch, late, part, 2.0);
    applied = part;
    late_sum = late;
  }
};

}  // namespace

TEST_CASE("what waiting adds is learned from kernels seen both ways", "[profile][clock]") {
  session few;
  for (int run = 0; run < 14; ++run)
    for (std::size_t launch = 0; launch < 30; ++launch) few.event(launch, few.random() % 5 < 3);
  few.fit.solve();
  CHECK(std::abs(few.fit.line().at_usual_ns - 4900.0) < 150.0);
  CHECK(std::abs(few.fit.line().slope - 0.6) < 0.2);

  session many;
  for (int run = 0; run < 3000; ++run)
    for (std::size_t launch = 0; launch < 30; ++launch) many.event(launch, many.random() % 5 < 3);
  CHECK(std::abs(many.fit.line().at_usual_ns - 4900.0) < 15.0);
  CHECK(std::abs(many.fit.line().slope - 0.6) < 0.02);
  CHECK(many.fit.samples() > 50'000);
}

TEST_CASE("without kernels seen both ways the line stays as it was measured", "[profile][clock]") {
  session always;
  for (int run = 0; run < 100; ++run)
    for (std::size_t launch = 0; launch < 30; ++launch) always.event(launch, launch % 2 == 0);
  always.fit.solve();
  CHECK(always.fit.line().at_usual_ns == 5200.0);
  CHECK(always.fit.line().slope == 1.0);
  CHECK(always.fit.samples() == 0);
  waiting_fit nothing;  // of a device whose events cost nothing
  nothing.solve();
  CHECK(nothing.line().part(0.0) == 0.0);
  CHECK(nothing.line().slope == 1.0);
  CHECK(waiting_fit{}.correction(3, 1.0) == 0.0);
}

TEST_CASE("commands far from the line do not move it", "[profile][clock]") {
  session some;
  for (int run = 0; run < 100; ++run)
    for (std::size_t launch = 0; launch < 30; ++launch) {
      some.event(launch, some.random() % 5 < 3);
      if (run % 10 == 9) some.fit.add_waited(launch, 0.0, some.time(launch) + 20'000.0, some.time(launch));
      if (run % 10 == 4) some.fit.add_waited(launch, 9000.0, some.time(launch) + 5000.0, some.time(launch));
    }
  some.fit.solve();
  CHECK(std::abs(some.fit.line().at_usual_ns - 4900.0) < 60.0);
  CHECK(std::abs(some.fit.line().slope - 0.6) < 0.08);
}

TEST_CASE("a mean is put right by what was learned after its samples", "[profile][clock]") {
  session one;
  one.event(29, true);
  const double before = one.applied;
  const double late = one.late_sum;
  for (int run = 0; run < 50; ++run)
    for (std::size_t launch = 0; launch < 29; ++launch) one.event(launch, one.random() % 5 < 3);
  one.fit.solve();
  // Half of the launch's weight was waited for.
  CHECK(std::abs(one.fit.correction(29, 4.0) - 0.5 * (before - one.fit.line().part(late))) < 1e-6);
  CHECK(one.fit.correction(29, 4.0) > 0.0);
  CHECK(one.fit.correction(1000, 4.0) == 0.0);
}
