// Random graphs give the same outputs with and without passes, on the reference backend and as kernels; the verifier
// holds after every pass, and what is optimized once more stays the same.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include <dnnopt/graph_io.hpp>
#include <dnnopt/passes/verify.hpp>
#include <dnnopt/session.hpp>

#include "property/random_patterns.hpp"

namespace {

/// How many graphs: what the environment says, for long runs, or the number that belongs to every test run.
std::uint32_t graph_count(const char* variable, std::uint32_t usual) {
  const char* const given = std::getenv(variable);
  return given == nullptr ? usual : static_cast<std::uint32_t>(std::strtoul(given, nullptr, 10));
}
std::uint32_t first_seed() { return graph_count("DNNOPT_FIRST_SEED", 1); }

dnnopt::named_tensors inputs_of(const dnnopt::graph& g, const testing::trial& t) {
  dnnopt::named_tensors result;
  for (const dnnopt::value_id id : g.inputs()) result.add(g.value_at(id).name, t.plain[id]);
  return result;
}

/// The largest difference against the largest magnitude, 0 or 1e30 for integers and truth values; where one has NaN or
/// infinity, the other must have the same.
double difference(const dnnopt::tensor& expected, const dnnopt::tensor& found) {
  REQUIRE(expected.type() == found.type());
  REQUIRE(expected.dims() == found.dims());
  if (expected.type() != dnnopt::dtype::float32) {
    const auto a = expected.bytes();
    const auto b = found.bytes();
    return std::equal(a.begin(), a.end(), b.begin()) ? 0 : 1e30;
  }
  const auto a = expected.data<float>();
  const auto b = found.data<float>();
  double largest = 0;
  double magnitude = 1e-3;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const auto x = static_cast<double>(a[i]);
    const auto y = static_cast<double>(b[i]);
    if (std::isnan(x) && std::isnan(y)) continue;
    if (std::isinf(x) && x == y) continue;
    largest = std::max(largest, std::abs(x - y));
    if (std::isnan(x) != std::isnan(y)) return 1e30;
    magnitude = std::max(magnitude, std::abs(x));
  }
  return largest / magnitude;
}

void compare(std::uint32_t seed, const std::string& device) {
  INFO("seed " << seed << " on " << device);
  const testing::random_graph made = testing::grown_graph(seed);
  const dnnopt::model m = made.model();
  dnnopt::compile_options plain;
  plain.device = "reference";
  plain.passes = "none";
  dnnopt::session expecting = dnnopt::compile(m, plain);
  dnnopt::compile_options optimizing;
  optimizing.device = device;
  optimizing.require_device = device != "reference";
  std::string broken;
  optimizing.after_pass = [&](const dnnopt::graph& g, const dnnopt::pass_report& pass) {
    try {
      dnnopt::verify(g, pass.name);
    } catch (const dnnopt::error& e) {
      if (broken.empty()) broken = e.what();
    }
  };
  const auto run = [&](dnnopt::session& s, const testing::trial& t) {
    const dnnopt::named_tensors inputs = inputs_of(m.main, t);
    const dnnopt::named_tensors expected = expecting.run(inputs);
    const dnnopt::named_tensors found = s.run(inputs);
    for (const auto& [name, content] : expected) {
      INFO("output " << name);
      REQUIRE(found.find(name) != nullptr);
      CHECK(difference(content, *found.find(name)) < 2e-4);
    }
  };
  dnnopt::session s = dnnopt::compile(m, optimizing);
  CHECK(broken == "");
  // Where dims are symbols, one program serves all trials, and one is made for the first trial's numbers.
  for (const testing::trial& t : made.trials()) run(s, t);
  if (made.trials().size() > 1 && seed % 4 == 0) {
    dnnopt::compile_options bound = optimizing;
    for (const dnnopt::value_id id : m.main.inputs())
      bound.shapes[m.main.value_at(id).name] = made.trials()[0].plain[id].dims();
    dnnopt::session fixed = dnnopt::compile(m, bound);
    run(fixed, made.trials()[0]);
  }
  if (device == "reference") {
    dnnopt::compile_report first;
    dnnopt::compile_report second;
    dnnopt::model once = m;
    once.main = dnnopt::optimize(m, optimizing, first);
    CHECK(dnnopt::to_string(once.main) == dnnopt::to_string(dnnopt::optimize(once, optimizing, second)));
  }
}

/// Graphs from the first seed on; one that fails does not hide the next.
void compare_all(std::uint32_t count, const std::string& device) {
  for (std::uint32_t seed = first_seed(); seed < first_seed() + count; ++seed) {
    try {
      compare(seed, device);
    } catch (const std::exception& e) {
      FAIL_CHECK("seed " << seed << " on " << device << ": " << e.what());
    }
  }
}

}  // namespace

TEST_CASE("random graphs keep their outputs under passes") {
  compare_all(graph_count("DNNOPT_RANDOM_GRAPHS", 200), "reference");
}

TEST_CASE("random graphs keep their outputs as fused kernels") {
  compare_all(graph_count("DNNOPT_RANDOM_KERNEL_GRAPHS", 30), "opencl");
}
