// Random operators give on a device, in both forms of kernels, what the reference backend computes.
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include <dnnopt/backend/measure/opened_device.hpp>

#include "property/operator_cases.hpp"

namespace {

std::uint64_t number_of(const char* variable, std::uint64_t usual) {
  const char* const given = std::getenv(variable);
  return given == nullptr ? usual : std::strtoull(given, nullptr, 10);
}

}  // namespace

TEST_CASE("random operators give the same on a device in both forms") {
  const auto device =
      std::make_shared<dnnopt::opened_device>("opencl", dnnopt::opencl::program_cache_options{.on_disk = false});
  testing::case_checker checker(device, {dnnopt::kernel_form::vectors, dnnopt::kernel_form::groups},
                                [](const std::string& line) { FAIL_CHECK(line); });
  const std::uint64_t first = number_of("DNNOPT_FIRST_SEED", 1);
  const std::uint64_t count = number_of("DNNOPT_RANDOM_OPERATORS", 48);
  constexpr std::uint64_t together = 16;
  for (std::uint64_t at = first; at < first + count; at += together) {
    std::vector<testing::operator_case> cases;
    for (std::uint64_t seed = at; seed < std::min(at + together, first + count); ++seed)
      cases.push_back(testing::drawn_case(seed));
    checker.check(cases);
  }
  CHECK(checker.counts.cases * 4 > count * 3);
  CHECK(checker.counts.runs > 3 * checker.counts.cases);
}

TEST_CASE("a seed draws one model at several shapes") {
  std::size_t several = 0;
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    const testing::operator_case c = testing::drawn_case(seed);
    several += c.variants.size() > 1 ? 1 : 0;
    for (const testing::drawn_operator& v : c.variants) REQUIRE(testing::detail::same_model(c.variants[0], v));
    REQUIRE(testing::detail::same_model(c.variants[0], testing::drawn_case(seed).variants[0]));
  }
  CHECK(several > 150);
}
