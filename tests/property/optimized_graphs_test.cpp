// Random graphs give the same outputs with and without passes, on the reference backend and as kernels; the verifier
// holds after every pass, and what is optimized once more stays the same.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include <dnnopt/graph_io.hpp>
#include <dnnopt/passes/verify.hpp>
#include <dnnopt/session.hpp>

#include "property/random_graph.hpp"

namespace {

/// How many graphs: what the environment says, for long runs, or the number that belongs to every test run.
std::uint32_t graph_count(const char* variable, std::uint32_t usual) {
  const char* const given = std::getenv(variable);
  return given == nullptr ? usual : static_cast<std::uint32_t>(std::strtoul(given, nullptr, 10));
}
std::uint32_t first_seed() { return graph_count("DNNOPT_FIRST_SEED", 1); }

dnnopt::named_tensors named(const dnnopt::graph& g, const std::vector<dnnopt::tensor>& inputs) {
  dnnopt::named_tensors result;
  for (std::size_t i = 0; i < inputs.size(); ++i) result.add(g.value_at(g.inputs()[i]).name, inputs[i]);
  return result;
}

/// The largest difference against the largest magnitude; where one has NaN or infinity, the other must have the same.
double difference(const dnnopt::tensor& expected, const dnnopt::tensor& found) {
  const auto a = expected.data<float>();
  const auto b = found.data<float>();
  REQUIRE(a.size() == b.size());
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
  testing::random_graph made(seed);
  const dnnopt::model m = made.model();
  const std::vector<dnnopt::tensor> inputs = made.inputs();
  dnnopt::compile_options plain;
  plain.device = "reference";
  plain.passes = "none";
  const dnnopt::named_tensors expected = dnnopt::compile(m, plain).run(named(m.main, inputs));
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
  INFO("seed " << seed << " on " << device);
  dnnopt::session s = dnnopt::compile(m, optimizing);
  CHECK(broken == "");
  const dnnopt::named_tensors found = s.run(named(m.main, inputs));
  for (const auto& [name, content] : expected) {
    INFO("output " << name);
    REQUIRE(found.find(name) != nullptr);
    CHECK(difference(content, *found.find(name)) < 2e-4);
  }
  if (device == "reference") {
    dnnopt::compile_report first;
    dnnopt::compile_report second;
    dnnopt::model once = m;
    once.main = dnnopt::optimize(m, optimizing, first);
    CHECK(dnnopt::to_string(once.main) == dnnopt::to_string(dnnopt::optimize(once, optimizing, second)));
  }
}

}  // namespace

TEST_CASE("random graphs keep their outputs under passes") {
  const std::uint32_t begin = first_seed();
  for (std::uint32_t seed = begin; seed < begin + graph_count("DNNOPT_RANDOM_GRAPHS", 200); ++seed)
    compare(seed, "reference");
}

TEST_CASE("random graphs keep their outputs as fused kernels") {
  const std::uint32_t begin = first_seed();
  for (std::uint32_t seed = begin; seed < begin + graph_count("DNNOPT_RANDOM_KERNEL_GRAPHS", 30); ++seed)
    compare(seed, "opencl");
}
