// Sizes that only data tell and nothing but shapes reads, and sizes that exporters write in a roundabout way.
#include <catch2/catch.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <dnnopt/dnnopt.hpp>
#include <dnnopt/passes/rdp.hpp>
#include <dnnopt/reference/evaluator.hpp>

#include "../support/shared_device.hpp"
#include "../support/small_network.hpp"

using namespace dnnopt;
using dnnopt::testing::network;
using dnnopt::testing::ramp;
using dnnopt::testing::shared_device;

namespace {

struct counted_network : network {
  value_id x = input("x", {7, 3});
  value_id keep = g.add_input("keep", dtype::boolean, shape{7});
  value_id integers(std::vector<std::int64_t> held) {
    const auto count = static_cast<std::int64_t>(held.size());
    return g.add_constant("i" + std::to_string(g.value_count()), tensor::of<std::int64_t>({count}, held));
  }
  value_id compressed() {
    attribute_map rows;
    rows.set("axis", std::int64_t{0});
    return node("Compress", {x, keep}, rows);
  }
  value_id sliced() { return node("Slice", {compressed(), integers({1}), integers({5}), integers({0})}); }
};

tensor flags(std::uint32_t bits) {
  tensor t(dtype::boolean, {7});
  for (std::size_t i = 0; i < 7; ++i) t.mutable_data<bool>()[i] = (bits >> i & 1U) != 0;
  return t;
}

}  // namespace

TEST_CASE("a size that data tell is known where shapes alone read it") {
  using maker = std::function<value_id(counted_network&)>;
  const auto [name, made] = GENERATE(table<std::string, maker>({
      {"places", [](counted_network& n) { return n.node("Shape", {n.node("NonZero", {n.keep})}); }},
      {"rows", [](counted_network& n) { return n.node("Shape", {n.compressed()}); }},
      {"zeros", [](counted_network& n) { return n.node("ConstantOfShape", {n.node("Shape", {n.sliced()})}); }},
      {"more",
       [](counted_network& n) {
         return n.node("Add", {n.node("Shape", {n.concat({n.compressed(), n.x}, 0)}), n.integers({1})});
       }},
      {"expanded",
       [](counted_network& n) {
         return n.node("Expand", {n.node("Relu", {n.integers({4, 5, 6})}), n.node("Shape", {n.compressed()})});
       }},
      {"counted", [](counted_network& n) { return n.node("Size", {n.node("NonZero", {n.x})}); }},
  }));
  const kernel_form form = GENERATE(kernel_form::vectors, kernel_form::groups);
  CAPTURE(name, static_cast<int>(form));
  counted_network n;
  const model m = n.finish(made(n));
  compile_options options;
  options.opened = shared_device();
  options.form = form;
  session s = compile(m, options);
  for (const std::uint32_t bits : {0U, 1U, 0x55U, 0x7fU}) {
    const tensor x = ramp({7, 3});
    const tensor want = reference::evaluate(m.main, std::vector{x, flags(bits)})[0];
    const tensor got = s.run({{"x", x}, {"keep", flags(bits)}})[0];
    CHECK(are_same(got, want));
  }
}

TEST_CASE("how often dims are repeated is known from a OneHot of it") {
  network n;
  const index_expr batch = n.g.expressions().symbol("batch", {1, unbounded});
  const index_expr points = n.g.expressions().symbol("points", {1, unbounded});
  const auto integers = [&](std::vector<std::int64_t> held, dim_list dims) {
    return n.g.add_constant("i" + std::to_string(n.g.value_count()),
                            tensor::of<std::int64_t>(std::move(dims), std::move(held)));
  };
  const value_id x = n.input("x", {batch, 2});
  const value_id y = n.input("y", {batch, points});
  const value_id count = n.node("Gather", {n.node("Shape", {y}), integers({1}, {1})});
  const value_id repeats =
      n.node("OneHot", {integers({0}, {1}), integers({2}, {1}), n.concat({integers({1}, {1}), count}, 0)});
  const value_id tiled = n.node("Tile", {x, n.node("Reshape", {repeats, integers({-1}, {1})})});
  n.g.add_output(tiled);
  (void)rdp{}.run(n.g);
  REQUIRE(n.g.facts(tiled).dims.has_value());
  CHECK(*n.g.facts(tiled).dims == shape{batch * points, 2});
}

TEST_CASE("a OneHot whose indices are floats says nothing of its elements") {
  network n;
  tensor indices(dtype::float32, {2});
  indices.mutable_data<float>()[1] = 1;
  const value_id places = n.g.add_constant("places", indices);
  const value_id depth = n.g.add_constant("depth", tensor::scalar<std::int64_t>(3));
  const value_id held = n.g.add_constant("held", tensor::of<std::int64_t>({2}, std::vector<std::int64_t>{0, 5}));
  const value_id marked = n.node("OneHot", {places, depth, held});
  n.g.add_output(marked);
  CHECK_NOTHROW(rdp{}.run(n.g));
  CHECK(*n.g.facts(marked).dims == shape{2, 3});
  CHECK_FALSE(n.g.facts(marked).elements.has_value());
}
