// Owns the check of random graphs: with all passes against the graph as it is, at every shape that was drawn, as one
// session and in every form of kernels.
#ifndef DNNOPT_TESTS_PROPERTY_GRAPH_CASES_HPP
#define DNNOPT_TESTS_PROPERTY_GRAPH_CASES_HPP

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <dnnopt/graph_io.hpp>
#include <dnnopt/passes/verify.hpp>
#include <dnnopt/session.hpp>

#include "property/random_patterns.hpp"

namespace testing {

/// The inputs of a graph in one trial.
[[nodiscard]] inline dnnopt::named_tensors inputs_of(const dnnopt::graph& g, const trial& t) {
  dnnopt::named_tensors result;
  for (const dnnopt::value_id id : g.inputs()) result.add(g.value_at(id).name, t.plain[id]);
  return result;
}

/// The largest difference against the largest magnitude, 0 or 1e30 for integers and truth values; where one has NaN or
/// infinity, the other must have the same; 1e30 for other types or dims.
[[nodiscard]] inline double relative_difference(const dnnopt::tensor& expected, const dnnopt::tensor& found) {
  if (expected.type() != found.type() || expected.dims() != found.dims()) return 1e30;
  if (expected.type() != dtype::float32) {
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
    if (std::isnan(x) != std::isnan(y)) return 1e30;
    largest = std::max(largest, std::abs(x - y));
    magnitude = std::max(magnitude, std::abs(x));
  }
  return largest / magnitude;
}

/// Calls `tell` with a line for every output that differs by more than rounding, and for every error.
class graph_checker {
 public:
  using teller = std::function<void(const std::string&)>;
  explicit graph_checker(teller tell) : tell_(std::move(tell)) {}

  /// Compiles `m` as `options` say, with the verifier behind each pass, and runs every trial on the one session;
  /// expects what the reference backend computes of `expected` without passes.
  void check(const std::string& what, const dnnopt::model& expected, const dnnopt::model& m,
             const std::vector<trial>& trials, dnnopt::compile_options options) const {
    try {
      std::string broken;
      options.after_pass = [&](const dnnopt::graph& g, const dnnopt::pass_report& pass) {
        try {
          dnnopt::verify(g, pass.name);
        } catch (const dnnopt::error& e) {
          if (broken.empty()) broken = e.what();
        }
      };
      dnnopt::compile_options plain;
      plain.device = "reference";
      plain.passes = "none";
      dnnopt::session expecting = dnnopt::compile(expected, plain);
      dnnopt::session session = dnnopt::compile(m, options);
      if (!broken.empty()) tell_(what + ": " + broken);
      for (std::size_t t = 0; t < trials.size(); ++t) {
        const dnnopt::named_tensors inputs = inputs_of(expected.main, trials[t]);
        const dnnopt::named_tensors wanted = expecting.run(inputs);
        const dnnopt::named_tensors found = session.run(inputs);
        for (std::size_t i = 0; i < wanted.size(); ++i) {
          const double apart = relative_difference(wanted[i], found[i]);
          if (!(apart < 2e-4))
            tell_(what + ", trial " + std::to_string(t) + ", output " + std::to_string(i) + " '" +
                  expected.main.value_at(expected.main.outputs()[i]).name + "' differs by " + std::to_string(apart));
        }
      }
    } catch (const std::exception& e) {
      tell_(what + ": " + e.what());
    }
  }

 private:
  teller tell_;
};

}  // namespace testing

#endif  // DNNOPT_TESTS_PROPERTY_GRAPH_CASES_HPP
