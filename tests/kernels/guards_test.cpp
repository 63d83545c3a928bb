// Guards and symbolic broadcasting: what only a run tells is decided in the run, and what is unlawful is refused before
// anything is enqueued.
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <catch2/catch.hpp>

#include <dnnopt/guard.hpp>
#include <dnnopt/passes/derive_guards.hpp>
#include <dnnopt/session.hpp>

#include "support/small_network.hpp"

namespace {

using namespace dnnopt;
using dnnopt::testing::network;
using dnnopt::testing::ramp;

value_id symbolic(network& n, const char* name, std::vector<const char*> dims) {
  shape s;
  for (const char* dim : dims) s.push_back(n.g.expressions().symbol(dim));
  return n.input(name, std::move(s));
}

std::string refusal(const model& m, const char* device, const std::vector<std::pair<std::string, tensor>>& inputs) {
  session s = compile(m, {.device = device});
  named_tensors given;
  for (const auto& [name, t] : inputs) given.add(name, t);
  try {
    (void)s.run(given);
  } catch (const error& e) {
    CHECK(e.code() == errc::shape_mismatch);
    return e.what();
  }
  return {};
}

/// What compile says of a model that it refuses, or nothing.
std::string refusal_of_compile(const model& m, const char* device) {
  try {
    (void)compile(m, {.device = device});
  } catch (const error& e) {
    CHECK(e.code() == errc::shape_mismatch);
    return e.what();
  }
  return {};
}

/// The same model in one session per device over several shapes: outputs are those of the reference backend.
void agree(const model& m, const std::vector<std::vector<std::pair<std::string, tensor>>>& runs) {
  session host = compile(m, {.device = "reference"});
  session device = compile(m, {.device = "opencl"});
  for (const auto& inputs : runs) {
    named_tensors given;
    for (const auto& [name, t] : inputs) given.add(name, t);
    const named_tensors right = host.run(given);
    const named_tensors got = device.run(given);
    CAPTURE(to_string(inputs.front().second.dims()), to_string(inputs.back().second.dims()));
    REQUIRE(got[0].dims() == right[0].dims());
    const auto a = got[0].data<float>();
    const auto b = right[0].data<float>();
    for (std::size_t i = 0; i < b.size(); ++i) REQUIRE(a[i] == Approx(b[i]).margin(1e-5));
  }
}

}  // namespace

TEST_CASE("broadcast_dim is associative, commutative, idempotent and right for zeros and ones", "[guard]") {
  expr_context context;
  const index_expr a = context.symbol("a");
  const index_expr b = context.symbol("b");
  const index_expr c = context.symbol("c");
  const index_expr ab = broadcast_dim(a, b);
  CHECK(ab == broadcast_dim(b, a));
  CHECK(broadcast_dim(ab, a) == ab);
  CHECK(broadcast_dim(ab, ab) == ab);
  CHECK(broadcast_dim(ab, c) == broadcast_dim(a, broadcast_dim(c, b)));
  for (const auto& [x, y, z] : {std::array{0, 1, 0}, std::array{1, 0, 0}, std::array{1, 7, 7}, std::array{7, 1, 7},
                                std::array{7, 7, 7}, std::array{1, 1, 1}, std::array{0, 0, 0}}) {
    symbol_values values;
    values.bind(*a.as_symbol(), x);
    values.bind(*b.as_symbol(), y);
    CHECK(ab.evaluate(values) == z);
  }
}

TEST_CASE("a guard is proved, refuted or left for the run", "[guard]") {
  expr_context context;
  const index_expr a = context.symbol("a");
  const index_expr b = context.symbol("b");
  using enum guard_relation;
  CHECK(guard::proved(equal, a, a) == true);
  CHECK(guard::proved(equal, a, a + 1) == false);
  CHECK(guard::proved(equal, a, b) == std::nullopt);
  CHECK(guard::proved(broadcasts, a, 1) == true);
  CHECK(guard::proved(broadcasts, a + 2, a + 4) == false);
  CHECK(guard::proved(broadcasts, a + 1, a + 3) == std::nullopt);  // 1 and 3
  CHECK(guard::proved(expands, a + 2, a) == false);
  CHECK(guard::proved(at_least, a, 0) == true);
  CHECK(guard::proved(at_least, -1, a) == false);
  CHECK(guard::proved(multiple, a * 6, 3) == true);
  CHECK(guard::proved(multiple, a, 3) == std::nullopt);
  CHECK(guard::holds(multiple, 0, 0));
  CHECK_FALSE(guard::holds(multiple, 4, 0));
}

TEST_CASE("unequal symbols are refused by name before anything runs", "[guard][opencl]") {
  for (const char* device : {"reference", "opencl"}) {
    CAPTURE(device);
    network add;
    const value_id sum = add.node("Add", {symbolic(add, "x", {"rows"}), symbolic(add, "y", {"width"})});
    const model added = add.finish(sum);
    CHECK(refusal(added, device, {{"x", ramp({3})}, {"y", ramp({1})}}).empty());
    const std::string text = refusal(added, device, {{"x", ramp({3})}, {"y", ramp({4})}});
    CHECK(text.find("Add") != std::string::npos);
    CHECK(text.find("rows = 3") != std::string::npos);
    CHECK(text.find("width = 4") != std::string::npos);

    network product;
    const value_id c =
        product.node("MatMul", {symbolic(product, "x", {"m", "k"}), symbolic(product, "y", {"depth", "n"})});
    CHECK(refusal(product.finish(c), device, {{"x", ramp({2, 3})}, {"y", ramp({4, 2})}}).find("depth = 4") !=
          std::string::npos);

    network joined;
    const value_id j = joined.concat({symbolic(joined, "x", {"a", "b"}), symbolic(joined, "y", {"c", "d"})}, 0);
    CHECK(refusal(joined.finish(j), device, {{"x", ramp({2, 3})}, {"y", ramp({2, 3})}}).empty());
    network unequal;
    const value_id u = unequal.concat({symbolic(unequal, "x", {"a", "b"}), symbolic(unequal, "y", {"c", "d"})}, 0);
    CHECK_FALSE(refusal(unequal.finish(u), device, {{"x", ramp({2, 3})}, {"y", ramp({2, 4})}}).empty());
  }
}

TEST_CASE("a reshape whose elements do not fit is refused, also where two dims are negative", "[guard][opencl]") {
  for (const char* device : {"reference", "opencl"}) {
    CAPTURE(device);
    network n;
    const value_id x = symbolic(n, "x", {"a", "b"});
    const value_id to = n.g.add_constant("to", tensor::of<std::int64_t>({2}, {4, -1}));
    const model m = n.finish(n.node("Reshape", {x, to}));
    CHECK(refusal(m, device, {{"x", ramp({2, 6})}}).empty());
    CHECK_FALSE(refusal(m, device, {{"x", ramp({3, 3})}}).empty());
  }
}

TEST_CASE("symbolic operands broadcast as the run's dims say, in one session", "[guard][opencl]") {
  const auto binary = [](std::string_view op, std::vector<const char*> a, std::vector<const char*> b) {
    network n;
    const value_id out = n.node(op, {symbolic(n, "x", std::move(a)), symbolic(n, "y", std::move(b))});
    return n.finish(n.node("Relu", {out}));
  };
  agree(binary("Sub", {"a", "b"}, {"c", "d"}), {{{"x", ramp({3, 4})}, {"y", ramp({3, 4})}},
                                                {{"x", ramp({1, 4})}, {"y", ramp({3, 1})}},
                                                {{"x", ramp({3, 1})}, {"y", ramp({1, 4})}},
                                                {{"x", ramp({1, 1})}, {"y", ramp({5, 7})}}});
  agree(binary("MatMul", {"a", "m", "k"}, {"b", "k2", "n"}), {{{"x", ramp({2, 3, 4})}, {"y", ramp({2, 4, 5})}},
                                                              {{"x", ramp({1, 3, 4})}, {"y", ramp({2, 4, 5})}},
                                                              {{"x", ramp({2, 3, 4})}, {"y", ramp({1, 4, 5})}},
                                                              {{"x", ramp({2, 1, 1})}, {"y", ramp({2, 1, 5})}}});
}

TEST_CASE("constant indices outside of their dim are refused when the model is compiled") {
  // Many indices have no symbolic value; they are looked at all the same.
  for (const std::int64_t count : {3, 5000})
    for (const std::int64_t wrong : {8, 3000000, -9}) {
      CAPTURE(count, wrong);
      for (const char* const op : {"Gather", "ScatterND"}) {
        const bool scatters = std::string(op) == "ScatterND";
        network n;
        const value_id x = n.input("x", {8, 4});
        tensor indices(dtype::int64, scatters ? dim_list{count, 1} : dim_list{count});
        for (std::int64_t& i : indices.mutable_data<std::int64_t>()) i = -8;
        indices.mutable_data<std::int64_t>()[static_cast<std::size_t>(count) - 1] = wrong;
        std::vector<value_id> inputs{x, n.g.add_constant("indices", indices)};
        if (scatters) inputs.push_back(n.weights({count, 4}));
        const model m = n.finish(n.node(op, inputs));
        for (const char* const device : {"reference", "opencl"}) CHECK_FALSE(refusal_of_compile(m, device).empty());
      }
    }
}

TEST_CASE("operands of a rank that an operator does not know are refused when the model is compiled") {
  const auto integers_in = [](network& n, const char* name, dim_list dims) {
    return n.g.add_input(name, dtype::int64, to_shape(dims));
  };
  for (const char* const device : {"reference", "opencl"}) {
    CAPTURE(device);
    network regions;
    const model aligned = regions.finish(regions.node(
        "RoiAlign", {regions.input("x", {1, 8, 8}), regions.input("r", {3, 4}), integers_in(regions, "i", {3})}));
    CHECK(refusal_of_compile(aligned, device).find("RoiAlign") != std::string::npos);
    network scattered;
    const model placed = scattered.finish(scattered.node(
        "ScatterND", {scattered.input("x", {4}), integers_in(scattered, "i", {}), scattered.input("u", {})}));
    CHECK(refusal_of_compile(placed, device).find("ScatterND") != std::string::npos);
    network turned;
    attribute_map heads;
    heads.set("num_heads", std::int64_t{2});
    const model rotated = turned.finish(
        turned.node("RotaryEmbedding",
                    {turned.input("x", {1, 2, 8}), turned.input("c", {4, 2}), turned.input("s", {4, 2})}, heads));
    CHECK(refusal_of_compile(rotated, device).find("RotaryEmbedding") != std::string::npos);
  }
}

TEST_CASE("a bound of Clip that has one dim clips a scalar") {
  for (const char* const device : {"reference", "opencl"}) {
    network n;
    const value_id low = n.g.add_constant("low", tensor::of<float>({1}, std::vector<float>{-0.25F}));
    session s = compile(n.finish(n.node("Clip", {n.input("x", {}), low})), {.device = device});
    named_tensors given;
    given.add("x", tensor::scalar<float>(-3.0F));
    CHECK(s.run(given)[0].data<float>()[0] == -0.25F);
  }
}

TEST_CASE("an index that a run gives into a dim of 0 is refused") {
  network n;
  const value_id x = symbolic(n, "x", {"rows"});
  const value_id at = n.g.add_input("at", dtype::int64, shape{n.g.expressions().symbol("places")});
  const model m = n.finish(n.node("Gather", {x, at}));
  const tensor first = tensor::of<std::int64_t>({1}, std::vector<std::int64_t>{0});
  CHECK(refusal(m, "opencl", {{"x", ramp({3})}, {"at", first}}).empty());
  CHECK(refusal(m, "opencl", {{"x", ramp({0})}, {"at", tensor(dtype::int64, {0})}}).empty());
  CHECK(refusal(m, "opencl", {{"x", ramp({0})}, {"at", first}}).find("rows") != std::string::npos);
}

namespace {

value_id first_axis(network& n) {
  return n.g.add_constant("axis" + std::to_string(n.g.value_count()),
                          tensor::of<std::int64_t>({1}, std::vector<std::int64_t>{0}));
}
value_id as_float(network& n, value_id x) {
  attribute_map to;
  to.set("to", static_cast<std::int64_t>(dtype::float32));
  return n.node("Cast", {x}, to);
}

/// A vector of the places 0, 1, ... as long as dim `axis` of `x`, as exporters without Range write it.
value_id places_of(network& n, value_id x, std::int64_t axis) {
  attribute_map dim;
  dim.set("start", axis);
  dim.set("end", axis + 1);
  attribute_map one;
  one.set("value", tensor::of<std::int64_t>({1}, std::vector<std::int64_t>{1}));
  const value_id filled = n.node("ConstantOfShape", {n.node("Shape", {x}, dim)}, one);
  return n.node("Squeeze", {n.node("NonZero", {filled}), first_axis(n)});
}

tensor integers(const std::vector<std::int64_t>& numbers) {
  return tensor::of<std::int64_t>({static_cast<std::int64_t>(numbers.size())}, numbers);
}

}  // namespace

// What data decide has a symbol that its node binds. Whoever removes the node leaves the conditions with what it was.
TEST_CASE("conditions on sizes that data decide outlive the nodes that decided them", "[guard][opencl]") {
  for (const char* device : {"reference", "opencl"}) {
    CAPTURE(device);
    const auto three_and = [&](const model& m, std::int64_t length) {
      return refusal(m, device, {{"x", tensor::of<float>({4}, std::vector<float>{1, 0, 2, 3})}, {"y", ramp({length})}});
    };
    {
      network merged;  // of two equal nodes one stays
      const value_id x = symbolic(merged, "x", {"length"});
      const value_id y = symbolic(merged, "y", {"other"});
      merged.g.add_output(merged.node("NonZero", {x}));
      const value_id places = merged.node("Squeeze", {merged.node("NonZero", {x}), first_axis(merged)});
      const model m = merged.finish(merged.node("Add", {as_float(merged, places), y}));
      CHECK(three_and(m, 3).empty());
      CHECK_FALSE(three_and(m, 2).empty());
    }
    {
      network folded;  // what is constant is no node any more
      const value_id given = folded.g.add_constant("given", integers({5, 0, 7, 8}));
      const value_id places = folded.node("Squeeze", {folded.node("NonZero", {given}), first_axis(folded)});
      const value_id x = symbolic(folded, "x", {"length"});
      const value_id sum = folded.node("Add", {as_float(folded, places), symbolic(folded, "y", {"other"})});
      const model m = folded.finish(folded.concat({sum, x}, 0));
      CHECK(three_and(m, 3).empty());
      CHECK_FALSE(three_and(m, 2).empty());
      const session s = compile(m, {.device = device});
      for (const node_id id : s.optimized().topological_order()) CHECK(s.optimized().node_at(id).op->name != "NonZero");
    }
    {
      network counted;  // places of a vector are a Range
      const value_id x = symbolic(counted, "x", {"length"});
      const value_id y = symbolic(counted, "y", {"other"});
      const model m = counted.finish(counted.node(
          "Add", {as_float(counted, places_of(counted, x, 0)), as_float(counted, places_of(counted, y, 0))}));
      CHECK(three_and(m, 4).empty());
      CHECK(three_and(m, 3).find("length = 4") != std::string::npos);
    }
  }
}

TEST_CASE("a position along a dim that a run finds empty is refused", "[guard][opencl]") {
  for (const char* device : {"reference", "opencl"}) {
    CAPTURE(device);
    network n;
    const model m = n.finish(n.node("ArgMax", {symbolic(n, "x", {"rows", "columns"})}));
    CHECK(refusal(m, device, {{"x", ramp({3, 2})}}).empty());
    CHECK(refusal(m, device, {{"x", ramp({0, 0})}}).empty());
    CHECK_FALSE(refusal(m, device, {{"x", ramp({0, 2})}}).empty());
    network late;  // as many rows as x has elements other than 0
    const value_id x = symbolic(late, "x", {"length"});
    attribute_map flat;
    flat.set("keepdims", std::int64_t{0});
    const value_id places = late.node("Squeeze", {late.node("NonZero", {x}), first_axis(late)});
    const model counted = late.finish(late.node("ArgMax", {as_float(late, places)}, flat));
    CHECK(refusal(counted, device, {{"x", tensor::of<float>({3}, std::vector<float>{0, 2, 3})}}).empty());
    CHECK_FALSE(refusal(counted, device, {{"x", tensor::of<float>({3}, std::vector<float>{0, 0, 0})}}).empty());
  }
}

TEST_CASE("a dim that a run finds to be 0 does not stand where Reshape's 0 copies another", "[guard][opencl]") {
  const auto turned = [](std::int64_t allow) {
    network n;
    const value_id x = symbolic(n, "x", {"rows", "columns"});
    const auto size = [&](std::int64_t axis) {
      attribute_map dim;
      dim.set("start", axis);
      dim.set("end", axis + 1);
      return n.node("Shape", {x}, dim);
    };
    attribute_map zero;
    zero.set("allowzero", allow);
    return n.finish(n.node("Reshape", {x, n.concat({size(1), size(0)}, 0)}, zero));
  };
  for (const char* device : {"reference", "opencl"}) {
    CAPTURE(device);
    CHECK(refusal(turned(0), device, {{"x", ramp({3, 2})}}).empty());
    CHECK(refusal(turned(0), device, {{"x", ramp({0, 0})}}).empty());
    CHECK(refusal(turned(0), device, {{"x", ramp({0, 2})}}).find("Reshape") != std::string::npos);
    CHECK(refusal(turned(1), device, {{"x", ramp({0, 2})}}).empty());
  }
}

TEST_CASE("an axis whose length a run finds unchanged is not interpolated", "[guard][opencl]") {
  // tf_half_pixel_for_nn is the one mode whose coordinate of an unchanged length is another element's.
  network n;
  const value_id x = symbolic(n, "x", {"a", "b", "c", "d"});
  const value_id sizes = n.g.add_constant("sizes", tensor::of<std::int64_t>({4}, {2, 2, 2, 3}));
  attribute_map how;
  how.set("mode", std::string("linear"));
  how.set("coordinate_transformation_mode", std::string("tf_half_pixel_for_nn"));
  agree(n.finish(n.node("Resize", {x, no_value, no_value, sizes}, how)), {{{"x", ramp({2, 2, 1, 1})}},
                                                                          {{"x", ramp({2, 2, 2, 3})}},
                                                                          {{"x", ramp({2, 2, 2, 2})}},
                                                                          {{"x", ramp({2, 2, 4, 3})}}});
}
