// Shapes and numbers at the border of what operators allow, found by random operators, against the reference backend.
#include <catch2/catch.hpp>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <dnnopt/backend/measure/opened_device.hpp>
#include <dnnopt/dnnopt.hpp>

#include "../support/shared_device.hpp"
#include "../support/small_network.hpp"

using namespace dnnopt;
using dnnopt::testing::network;

namespace {

session on_device(const model& m, kernel_form form = kernel_form::native) {
  compile_options options;
  options.opened = dnnopt::testing::shared_device();
  options.form = form;
  options.require_device = true;
  return compile(m, options);
}

named_tensors expected(const model& m, const named_tensors& inputs) {
  compile_options options;
  options.device = "reference";
  return compile(m, options).run(inputs);
}

void check_same(const model& m, session& s, const named_tensors& inputs) {
  const named_tensors want = expected(m, inputs);
  const named_tensors got = s.run(inputs);
  REQUIRE(got.size() == want.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    REQUIRE(got[i].dims() == want[i].dims());
    if (want[i].type() == dtype::float32) {
      // Bits of what is no number are the driver's choice, all others count: 0 is not -0.
      const auto same = [](float a, float b) {
        return (a != a && b != b) || std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b);
      };
      CHECK(std::ranges::equal(got[i].data<float>(), want[i].data<float>(), same));
      continue;
    }
    CHECK(std::equal(got[i].bytes().begin(), got[i].bytes().end(), want[i].bytes().begin(), want[i].bytes().end()));
  }
}

index_expr symbol(network& n, const std::string& name) { return n.g.expressions().symbol(name); }

}  // namespace

TEST_CASE("an output whose size data decide may grow from one run to the next") {
  network n;
  const value_id in = n.input("x", {17, symbol(n, "b")});
  const model m = n.finish(n.node("NonZero", {in}));
  session s = on_device(m);
  for (const std::size_t zeros : {16U, 3U, 0U, 9U}) {
    tensor x(dtype::float32, {17, 2});
    const auto to = x.mutable_data<float>();
    for (std::size_t i = zeros; i < to.size(); ++i) to[i] = 1.0F;
    CAPTURE(zeros);
    check_same(m, s, {{"x", x}});
  }
}

TEST_CASE("more shapes than bindings that are kept come and go, some without elements") {
  network n;
  const value_id in = n.input("x", {symbol(n, "a"), 12});
  const value_id product = n.node("MatMul", {in, n.weights({12, 5})});
  const model m = n.finish(n.node("Softmax", {n.node("Add", {product, n.weights({5})})}));
  session s = on_device(m);
  for (int turn = 0; turn < 2; ++turn)
    for (std::int64_t rows = 0; rows < 12; ++rows) {
      CAPTURE(turn, rows);
      const named_tensors inputs{{"x", dnnopt::testing::ramp({rows, 12})}};
      const named_tensors want = expected(m, inputs);
      const named_tensors got = s.run(inputs);
      REQUIRE(got[0].dims() == want[0].dims());
      for (std::size_t i = 0; i < static_cast<std::size_t>(want[0].size()); ++i)
        CHECK(got[0].data<float>()[i] == Approx(want[0].data<float>()[i]).margin(1e-6));
    }
}

TEST_CASE("results are stored where long expressions of sizes lead") {
  for (const kernel_form form : {kernel_form::vectors, kernel_form::groups}) {
    network n;
    const auto number = [&](std::int64_t v) {
      tensor t(dtype::int64, {1});
      t.mutable_data<std::int64_t>()[0] = v;
      return n.g.add_constant("n" + std::to_string(n.g.value_count()), std::move(t));
    };
    const value_id x = n.input("x", {symbol(n, "a"), symbol(n, "b"), 4});
    const value_id sizes = n.node("Shape", {x});
    const value_id a = n.node("Gather", {sizes, number(0)});
    const value_id b = n.node("Gather", {sizes, number(1)});
    // A size of more operations than an index is written out for.
    value_id size = b;
    for (std::int64_t k = 1; k < 12; ++k)
      size = n.node("Max", {n.node("Min", {n.node("Add", {n.node("Mul", {size, a}), number(-k)}),
                                           n.node("Add", {n.node("Mul", {b, number(k)}), a})}),
                            b});
    const value_id wide = n.node("Expand", {n.node("ReduceMax", {x, number(1)}), n.concat({a, size, number(4)}, 0)});
    const value_id product = n.node("MatMul", {wide, n.weights({4, 8})});
    attribute_map order;
    order.set("perm", std::vector<std::int64_t>{1, 0, 2});
    const value_id turned = n.node("Transpose", {n.node("Softmax", {product})}, order);
    n.g.add_output(turned);
    const model m = n.finish(n.node("Mul", {n.node("Sigmoid", {product}), product}));
    session s = on_device(m, form);
    for (const dim_list& dims : {dim_list{2, 3, 4}, dim_list{3, 1, 4}, dim_list{1, 5, 4}}) {
      CAPTURE(dims);
      const named_tensors inputs{{"x", dnnopt::testing::ramp(dims)}};
      const named_tensors want = expected(m, inputs);
      const named_tensors got = s.run(inputs);
      for (std::size_t k = 0; k < 2; ++k) {
        REQUIRE(got[k].dims() == want[k].dims());
        for (std::size_t i = 0; i < static_cast<std::size_t>(want[k].size()); ++i)
          CHECK(got[k].data<float>()[i] == Approx(want[k].data<float>()[i]).margin(1e-5));
      }
    }
  }
}

// The quotient by 0 was -1 on a GPU; PoCL's compiler happens to give 0.
TEST_CASE("the mean of integers over no elements is 0, as the reference has it") {
  for (const kernel_form form : {kernel_form::vectors, kernel_form::groups}) {
    network n;
    const value_id in = n.g.add_input("x", dtype::int32, shape{symbol(n, "a"), symbol(n, "b")});
    attribute_map along;
    along.set("axes", std::vector<std::int64_t>{1});
    const model m = n.finish(n.node("ReduceMean", {in, n.g.add_constant("axes", tensor::of<std::int64_t>({1}, {1}))}));
    session s = on_device(m, form);
    check_same(m, s, {{"x", tensor(dtype::int32, {3, 0})}});
    check_same(m, s, {{"x", tensor::of<std::int32_t>({1, 3}, {7, 8, -1})}});
  }
}

TEST_CASE("Mean of infinite operands is infinite") {
  const float infinity = std::numeric_limits<float>::infinity();
  network n;
  std::vector<value_id> operands;
  for (const char* name : {"a", "b", "c"}) operands.push_back(n.input(name, {4}));
  const model m = n.finish(n.node("Mean", operands));
  session s = on_device(m);
  check_same(m, s,
             {{"a", tensor::of<float>({4}, {infinity, 1, infinity, -infinity})},
              {"b", tensor::of<float>({4}, {infinity, 2, 4, 4})},
              {"c", tensor::of<float>({4}, {8, 3, -infinity, 4})}});
}

TEST_CASE("windows that the input does not fill have no output where ceil_mode rounds up to 0") {
  network n;
  const value_id in = n.input("x", {1, 1, symbol(n, "w")});
  attribute_map window;
  window.set("kernel_shape", std::vector<std::int64_t>{5});
  window.set("strides", std::vector<std::int64_t>{2});
  window.set("ceil_mode", std::int64_t{1});
  const model m = n.finish(n.node("MaxPool", {in}, window));
  session s = on_device(m);
  for (const std::int64_t width : {2, 4, 5, 8}) {
    CAPTURE(width);
    check_same(m, s, {{"x", dnnopt::testing::ramp({1, 1, width})}});
  }
  try {
    (void)s.run({{"x", dnnopt::testing::ramp({1, 1, 1})}});
    FAIL("a window of 5 over 1 element has -1 outputs");
  } catch (const error& e) {
    CHECK(e.code() == errc::shape_mismatch);
  }
}

TEST_CASE("windows with computed padding take an input without elements") {
  network n;
  const value_id in = n.input("x", {1, 1, symbol(n, "w"), 0});
  attribute_map window;
  window.set("kernel_shape", std::vector<std::int64_t>{3, 1});
  window.set("auto_pad", std::string("SAME_UPPER"));
  const model m = n.finish(n.node("AveragePool", {in}, window));
  session s = on_device(m);
  for (const std::int64_t width : {0, 1, 4}) check_same(m, s, {{"x", tensor(dtype::float32, {1, 1, width, 0})}});
}

TEST_CASE("Reshape of a tensor without elements by dims that are known at run time alone") {
  network n;
  const value_id in = n.input("x", {symbol(n, "a"), 0, symbol(n, "b")});
  const value_id dims = n.g.add_input("dims", dtype::int64, shape{3});
  const model m = n.finish(n.node("Reshape", {in, dims}));
  session s = on_device(m);
  check_same(m, s, {{"x", tensor(dtype::float32, {2, 0, 5})}, {"dims", tensor::of<std::int64_t>({3}, {7, 0, 9})}});
}

TEST_CASE("RoiAlign of regions whose corners are exchanged has no samples") {
  network n;
  const value_id in = n.input("x", {1, 2, 6, 6});
  const value_id regions = n.input("regions", {2, 4});
  const value_id entries = n.g.add_input("entries", dtype::int64, shape{2});
  for (const char* mode : {"avg", "max"}) {
    network own = n;
    attribute_map how;
    how.set("mode", std::string(mode));
    const model m = own.finish(own.node("RoiAlign", {in, regions, entries}, how));
    session s = on_device(m);
    check_same(m, s,
               {{"x", dnnopt::testing::ramp({1, 2, 6, 6})},
                {"regions", tensor::of<float>({2, 4}, {4, 5, 1, 2, 1, 4, 3, 2})},
                {"entries", tensor::of<std::int64_t>({2}, {0, 0})}});
  }
}

TEST_CASE("dims outside of their range are refused, and what holds within it is not asked") {
  network n;
  const value_id in = n.input("x", {symbol(n, "rows"), symbol(n, "columns")});
  attribute_map window;
  window.set("axis", std::int64_t{1});
  window.set("num_outputs", std::int64_t{4});
  const value_id first = n.g.add_value("first");
  std::vector<value_id> parts{first};
  for (const char* name : {"second", "third", "fourth"}) parts.push_back(n.g.add_value(name));
  n.g.add_node(n.ops.at("", "Split"), "Split", {in}, parts, window);
  const model m = n.finish(n.node("Add", {parts[0], parts[3]}));
  for (const char* device : {"reference", "opencl"}) {
    compile_options options;
    options.device = device;
    options.ranges = {{"rows", {2, 5}}, {"columns", {8, 64, 8}}};
    session s = compile(m, options);
    CHECK(s.optimized().guards().empty());
    for (const dim_list& dims : {dim_list{2, 8}, dim_list{5, 64}, dim_list{3, 24}}) {
      const named_tensors inputs{{"x", dnnopt::testing::ramp(dims)}};
      const named_tensors want = expected(m, inputs);
      const named_tensors got = s.run(inputs);
      REQUIRE(got[0].dims() == want[0].dims());
      CHECK(std::equal(got[0].bytes().begin(), got[0].bytes().end(), want[0].bytes().begin(), want[0].bytes().end()));
    }
    for (const dim_list& dims : {dim_list{1, 8}, dim_list{6, 8}, dim_list{2, 72}, dim_list{2, 0}, dim_list{2, 12}}) {
      CAPTURE(device, dims);
      try {
        (void)s.run({{"x", dnnopt::testing::ramp(dims)}});
        FAIL("dims outside of their range");
      } catch (const error& e) {
        CHECK(e.code() == errc::shape_mismatch);
      }
    }
    // Another session of the model has ranges of its own.
    options.ranges = {{"rows", {1, 1}}};
    session other = compile(m, options);
    CHECK(other.run({{"x", dnnopt::testing::ramp({1, 4})}})[0].dims() == dim_list{1, 1});
    options.ranges = {{"rows", {3, 2}}};
    CHECK_THROWS_AS(compile(m, options), error);
    // A number that is stated lies in the range that is stated as well.
    options.ranges = {{"rows", {1, 4}}};
    options.dims = {{"rows", 5}};
    CHECK_THROWS_AS(compile(m, options), error);
    options.dims = {};
    options.shapes = {{"x", {5, 8}}};
    CHECK_THROWS_AS(compile(m, options), error);
    options.shapes = {{"x", {4, 8}}};
    CHECK(compile(m, options).run({{"x", dnnopt::testing::ramp({4, 8})}})[0].dims() == dim_list{4, 2});
    options.shapes = {};
    options.ranges = {{"depth", {1, 2}}};
    CHECK_THROWS_AS(compile(m, options), error);
  }
}

TEST_CASE("increasing functions stay before maxima of what may be nothing") {
  const float infinity = std::numeric_limits<float>::infinity();
  for (const kernel_form form : {kernel_form::vectors, kernel_form::groups})
    for (const std::string function : {"Relu", "Exp", "Tanh", "Neg"}) {
      CAPTURE(function);
      network n;
      const value_id in = n.input("x", {symbol(n, "a")});
      const model m = n.finish(n.node("ReduceMax", {n.node(function, {in})}));
      session s = on_device(m, form);
      const named_tensors of_nothing = s.run({{"x", tensor(dtype::float32, {0})}});
      CHECK(of_nothing[0].data<float>()[0] == -infinity);
      check_same(m, s, {{"x", tensor::of<float>({3}, {0, 1, 0.5F})}});
    }
}

TEST_CASE("logarithms of no integers are cut as processors cut infinity") {
  for (const kernel_form form : {kernel_form::vectors, kernel_form::groups})
    for (const std::string op : {"ReduceLogSum", "ReduceLogSumExp"}) {
      CAPTURE(op);
      network n;
      const model m = n.finish(n.node(op, {n.g.add_input("x", dtype::int32, shape{symbol(n, "a"), 5})}));
      session s = on_device(m, form);
      const named_tensors of_nothing = s.run({{"x", tensor(dtype::int32, {0, 5})}});
      CHECK(of_nothing[0].data<std::int32_t>()[0] == std::numeric_limits<std::int32_t>::min());
      check_same(m, s, {{"x", tensor::of<std::int32_t>({1, 5}, {7, 8, 3, 2, 1})}});
    }
}

TEST_CASE("nothing is repeated by counts that a run tells") {
  for (const kernel_form form : {kernel_form::vectors, kernel_form::groups}) {
    network n;
    const value_id counts = n.g.add_input("counts", dtype::int64, shape{symbol(n, "rank")});
    const value_id nothing = n.g.add_constant("nothing", tensor(dtype::float32, {0, 0, 0}));
    const model m = n.finish(n.node("Tile", {nothing, counts}));
    session s = on_device(m, form);
    check_same(m, s, {{"counts", tensor::of<std::int64_t>({3}, {1, 2, 3})}});
  }
}

TEST_CASE("Clip from zero makes the largest number of infinity") {
  network n;
  const value_id in = n.input("x", {3});
  const model m = n.finish(n.node("Clip", {in, n.g.add_constant("low", tensor::of<float>({}, {0}))}));
  session s = on_device(m);
  const named_tensors got = s.run({{"x", tensor::of<float>({3}, {std::numeric_limits<float>::infinity(), -1, 2})}});
  CHECK(got[0].data<float>()[0] == std::numeric_limits<float>::max());
  CHECK(got[0].data<float>()[1] == 0);
  CHECK(got[0].data<float>()[2] == 2);
}

TEST_CASE("Expand and Resize to sizes that a run tells are no identities") {
  for (const kernel_form form : {kernel_form::vectors, kernel_form::groups}) {
    network n;
    const value_id in = n.input("x", {5, 2, 1});
    const value_id sizes = n.g.add_input("sizes", dtype::int64, shape{3});
    const model m = n.finish(n.node("Abs", {n.node("Expand", {in, sizes})}));
    session s = on_device(m, form);
    for (const std::int64_t last : {17, 1}) {
      const named_tensors inputs{{"x", dnnopt::testing::ramp({5, 2, 1})},
                                 {"sizes", tensor::of<std::int64_t>({3}, {1, 2, last})}};
      // The reference backend's session has the same rules.
      CHECK(s.run(inputs)[0].dims() == dim_list{5, 2, last});
      check_same(m, s, inputs);
    }
  }
}
