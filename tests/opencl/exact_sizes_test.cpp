// Sizes that models compute in floating point: quotients beside the arithmetic of floats itself, graphs as exporters
// write them, and what a run refuses.
#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <dnnopt/dnnopt.hpp>
#include <dnnopt/ops/arithmetic.hpp>
#include <dnnopt/ops/exact_quotient.hpp>
#include <dnnopt/ops/unary_math.hpp>
#include <dnnopt/passes/derive_guards.hpp>
#include <dnnopt/passes/exact_sizes.hpp>
#include <dnnopt/passes/rdp.hpp>
#include <dnnopt/reference/evaluator.hpp>

#include "../support/shared_device.hpp"
#include "../support/small_network.hpp"

using namespace dnnopt;
using dnnopt::testing::network;
using dnnopt::testing::ramp;
using dnnopt::testing::shared_device;

namespace {

/// A number of floating point beside what it is followed as.
struct followed {
  float held;
  exact_quotient exact;
};

std::optional<followed> applied(std::uint32_t which, const followed& x, float number) {
  const exact_quotient c{static_cast<std::int64_t>(number * 4), 4, 0};
  const exact_quotient whole{static_cast<std::int64_t>(number), 1, 0};
  const std::vector<exact_quotient> with_whole{x.exact, whole};
  std::optional<exact_quotient> exact;
  float held = 0;
  switch (which) {
    case 0:
      held = x.held + std::trunc(number), exact = ops::add_op::exact(with_whole);
      break;
    case 1:
      held = x.held - number, exact = ops::sub_op::exact(std::vector<exact_quotient>{x.exact, c});
      break;
    case 2:
      held = x.held * number, exact = ops::mul_op::exact(std::vector<exact_quotient>{x.exact, c});
      break;
    case 3:
      held = x.held / number, exact = ops::div_op::exact(std::vector<exact_quotient>{x.exact, c});
      break;
    case 4:
      held = std::ceil(x.held), exact = ops::ceil_op::exact(std::vector<exact_quotient>{x.exact});
      break;
    case 5:
      held = std::floor(x.held), exact = ops::floor_op::exact(std::vector<exact_quotient>{x.exact});
      break;
    case 6:
      held = -x.held, exact = ops::neg_op::exact(std::vector<exact_quotient>{x.exact});
      break;
    default:
      held = std::max(x.held, std::trunc(number)), exact = ops::max_op::exact(with_whole);
  }
  return exact ? std::optional(followed{held, *exact}) : std::nullopt;
}

struct sized_network : network {
  value_id number(float held) {
    return g.add_constant("c" + std::to_string(g.value_count()), tensor::scalar<float>(held));
  }
  value_id integers(std::vector<std::int64_t> held) {
    const auto count = static_cast<std::int64_t>(held.size());
    return g.add_constant("i" + std::to_string(g.value_count()), tensor::of<std::int64_t>({count}, held));
  }
  value_id cast(value_id x, dtype to) {
    attribute_map attributes;
    attributes.set("to", static_cast<std::int64_t>(to));
    return node("Cast", {x}, attributes);
  }
  /// Dim `axis` of a value, of rank 1, in float.
  value_id dim(value_id x, std::int64_t axis) {
    return cast(node("Gather", {node("Shape", {x}), integers({axis})}), dtype::float32);
  }
};

/// x (1 x 2 x width) with as many columns before as a window of 4 with stride 3 wants in all, the SAME of TensorFlow:
/// max((ceil(width / 3) - 1) * 3 + 4 - width, 0).
model same_padded() {
  sized_network n;
  const index_expr width = n.g.expressions().symbol("width", {1, unbounded});
  const value_id x = n.input("x", {1, 2, width});
  const value_id dim = n.dim(x, 2);
  const value_id places = n.node("Ceil", {n.node("Div", {dim, n.number(3)})});
  const value_id reach = n.node("Mul", {n.node("Sub", {places, n.number(1)}), n.number(3)});
  const value_id wanted = n.node("Sub", {n.node("Add", {reach, n.number(4)}), dim});
  const value_id before = n.cast(n.node("Max", {wanted, n.number(0)}), dtype::int64);
  const value_id pads = n.concat({n.integers({0, 0}), before, n.integers({0, 0, 0})}, 0);
  return n.finish(n.node("Relu", {n.node("Pad", {x, pads})}));
}

}  // namespace

TEST_CASE("quotients say what chains of floats come to, up to the digits that floats have") {
  std::mt19937 random(20261129);
  std::size_t rounded = 0;
  std::size_t near_the_bounds = 0;
  for (int chain = 0; chain < 200000; ++chain) {
    const bool large = random() % 4 == 0;
    const auto start = static_cast<std::int64_t>(random() % (large ? 1U << 24U : 5000U));
    followed x{static_cast<float>(start), {start, 1, 0}};
    std::string text = std::to_string(start);
    const int length = 1 + static_cast<int>(random() % 8);
    for (int i = 0; i < length; ++i) {
      const std::uint32_t which = random() % 8;
      const float number = static_cast<float>(1 + random() % 48) / (random() % 3 == 0 ? 4.0F : 1.0F);
      const std::optional<followed> next = applied(which, x, number);
      if (!next) break;
      // The bounds of exact_sizes.
      const std::int64_t limit = std::int64_t{1} << (is_exact(next->exact) ? 24U : 21U);
      if (std::abs(next->exact.numerator.constant()) > limit) break;
      x = *next;
      text += " " + std::to_string(which) + ":" + std::to_string(number);
    }
    const std::optional<index_expr> cut = ops::truncated_quotient(x.exact.numerator, x.exact.divisor);
    REQUIRE(cut.has_value());
    if (cut->constant() != static_cast<std::int64_t>(x.held)) {
      CAPTURE(text, x.held, x.exact.divisor, x.exact.rounded);
      REQUIRE(cut->constant() == static_cast<std::int64_t>(x.held));
    }
    rounded += is_exact(x.exact) ? 0 : 1;
    near_the_bounds += std::abs(x.exact.numerator.constant()) > (is_exact(x.exact) ? 1 << 23 : 1 << 20) ? 1 : 0;
  }
  CHECK(rounded > 10000);
  CHECK(near_the_bounds > 1000);
}

TEST_CASE("a size that is computed in floats is an expression over dims, and its digits are a guard") {
  model m = same_padded();
  (void)rdp{}.run(m.main);
  const shape& padded = *m.main.facts(m.main.outputs()[0]).dims;
  REQUIRE(padded.size() == 3);
  const auto width = m.main.expressions().find("width");
  REQUIRE(width.has_value());
  for (std::int64_t w = 1; w < 40; ++w) {
    symbol_values values;
    values.bind(*width, w);
    CHECK(padded[2].try_evaluate(values) == w + std::max<std::int64_t>(((w + 2) / 3 - 1) * 3 + 4 - w, 0));
  }
  const std::vector<guard> guards = derive_guards(m.main);
  const auto holds = [&](std::int64_t w) {
    symbol_values values;
    values.bind(*width, w);
    std::vector<bool> checked;
    try {
      check_guards(guards, values, checked);
      return true;
    } catch (const error& e) {
      CHECK(e.code() == errc::shape_mismatch);
      CHECK(std::string(e.what()).find("what floating point counts exactly") != std::string::npos);
      return false;
    }
  };
  CHECK(holds(1));
  CHECK(holds(2000000));
  CHECK_FALSE(holds(20000000));
}

TEST_CASE("a session computes sizes in floats without the host, for every shape") {
  const model m = same_padded();
  compile_options options;
  options.opened = shared_device();
  options.require_device = true;
  session s = compile(m, options);
  CHECK(s.host_ops() == 0);
  for (const std::int64_t width : {1, 2, 3, 4, 5, 9, 64, 1000}) {
    const tensor x = ramp({1, 2, width});
    const tensor want = reference::evaluate(m.main, std::vector{x})[0];
    const tensor got = s.run({{"x", x}})[0];
    CHECK(are_same(got, want));
  }
}

TEST_CASE("numbers that are no quotients, or of data, are not followed") {
  sized_network n;
  const index_expr width = n.g.expressions().symbol("width", {1, unbounded});
  const value_id x = n.input("x", {width});
  const value_id dim = n.dim(x, 0);
  const std::vector<value_id> values{n.node("Sqrt", {dim}),
                                     n.node("Mul", {n.node("Div", {dim, n.number(3)}), n.number(3)}),
                                     n.node("Mul", {dim, n.number(0.1F)}), n.node("Div", {n.number(100), dim}),
                                     n.node("Mul", {dim, n.node("ReduceMax", {x})})};
  std::vector<value_id> sizes;
  for (const value_id v : values) sizes.push_back(n.cast(v, dtype::int64));
  // Numbers that 64 bits cannot hold.
  value_id huge = dim;
  for (int i = 0; i < 4; ++i) huge = n.node("Mul", {huge, n.number(536870912)});
  sizes.push_back(n.cast(huge, dtype::int64));
  const value_id halved = n.cast(n.node("Mul", {dim, n.number(0.5F)}), dtype::int32);
  const value_id narrow = n.cast(dim, dtype::int8);
  n.g.add_output(n.concat(sizes, 0));
  n.g.add_output(halved);
  n.g.add_output(narrow);
  (void)rdp{}.run(n.g);
  for (const value_id v : sizes) CHECK_FALSE(n.g.facts(v).elements.has_value());
  CHECK_FALSE(n.g.facts(narrow).elements.has_value());
  REQUIRE(n.g.facts(halved).elements.has_value());
  CHECK(n.g.facts(halved).elements->front() == floordiv(width, 2));
}
