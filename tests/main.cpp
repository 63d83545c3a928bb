// Owns main() of every test executable, and the line that tells how to repeat a failed property test.
#define CATCH_CONFIG_MAIN
#include <catch2/catch.hpp>
#include <cstdio>

namespace {

struct seed_on_failure : Catch::TestEventListenerBase {
  using TestEventListenerBase::TestEventListenerBase;

  void testCaseEnded(const Catch::TestCaseStats& stats) override {
    if (stats.totals.testCases.failed != 0)
      std::fprintf(stderr, "failed: \"%s\"; repeat with --rng-seed %u\n", stats.testInfo.name.c_str(),
                   Catch::rngSeed());
  }
};

}  // namespace

CATCH_REGISTER_LISTENER(seed_on_failure)
