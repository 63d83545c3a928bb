// The reference backend's run of graphs: order, bodies, containers, observers, default inputs and errors.
#include <cmath>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <catch2/catch.hpp>

#include <dnnopt/ops/all.hpp>
#include <dnnopt/ops/standard.hpp>
#include <dnnopt/reference/evaluator.hpp>

namespace {

using namespace dnnopt;
using reference::host_value;
using floats = std::vector<float>;
using ints = std::vector<std::int64_t>;

tensor vector_of(const floats& values) { return tensor::of<float>({static_cast<std::int64_t>(values.size())}, values); }
floats content(const tensor& t) { return {t.data<float>().begin(), t.data<float>().end()}; }

/// The operator of docs/reference/scalar_expressions.md.
struct scaled_tanh : dnnopt::ops::unary<scaled_tanh> {
  static constexpr std::string_view domain = "my.company";
  static constexpr std::string_view name = "ScaledTanh";
  static constexpr std::string_view scalar = "{scale=1} * tanh(x0)";
};
static_assert(dnnopt::Operator<scaled_tanh>);

struct unknown_op : ops::identity_op {
  static constexpr std::string_view name = "Unknown";
  static constexpr std::string_view domain = "com.example";
};

/// A graph under construction over the standard operators.
struct builder {
  op_set ops = standard_ops();
  graph g;

  builder() = default;
  explicit builder(std::shared_ptr<expr_context> context) : g(std::move(context)) {}
  value_id input(const std::string& name, dtype type = dtype::float32) { return g.add_input(name, type, std::nullopt); }
  value_id node(const std::string& op, std::vector<value_id> inputs, attribute_map attributes = {}) {
    const value_id out = g.add_value(op + std::to_string(g.value_count()));
    g.add_node(ops.at("", op), op, std::move(inputs), {out}, std::move(attributes));
    return out;
  }
};

attribute_map with(std::string name, attribute value) {
  attribute_map map;
  map.set(std::move(name), std::move(value));
  return map;
}

template <class F>
std::optional<errc> code_of(F f, std::string* text = nullptr) {
  try {
    f();
  } catch (const error& e) {
    if (text != nullptr) *text = e.what();
    return e.code();
  }
  return std::nullopt;
}

}  // namespace

TEST_CASE("a graph is evaluated in dependence order and told node by node") {
  builder b;
  const value_id x = b.input("x");
  const value_id out = b.node("Concat", {b.node("Neg", {x}), x}, with("axis", std::int64_t{0}));
  b.g.add_output(out);
  std::vector<std::string> seen;
  reference::evaluate_options options;
  options.observer = [&](const reference::node_evaluation& e) {
    seen.push_back(std::string(e.owner.node_at(e.id).op->name) + "@" + std::to_string(e.depth));
    CHECK(e.end >= e.begin);
    CHECK(e.outputs.size() == 1);
  };
  const std::vector<tensor> inputs{vector_of({1, -2})};
  CHECK(content(reference::evaluate(b.g, inputs, options)[0]) == floats{-1, 2, 1, -2});
  CHECK(seen == std::vector<std::string>{"Neg@0", "Concat@0"});
}

TEST_CASE("an input with a constant value need not be given") {
  builder b;
  const value_id x = b.input("x");
  b.g.make_constant(x, vector_of({3}));
  b.g.add_output(b.node("Neg", {x}));
  CHECK(content(reference::evaluate(b.g, {})[0]) == floats{-3});
  const std::vector<tensor> given{vector_of({5})};
  CHECK(content(reference::evaluate(b.g, given)[0]) == floats{-5});
}

TEST_CASE("inputs are checked against their declarations") {
  builder b;
  const value_id x = b.g.add_input("x", dtype::float32, shape{b.g.expressions().symbol("n"), 2});
  b.g.add_output(b.node("Neg", {x}));
  const auto run = [&](std::vector<tensor> inputs) { (void)reference::evaluate(b.g, inputs); };
  CHECK(code_of([&] { run({}); }) == errc::missing_input);
  CHECK(code_of([&] { run({tensor(dtype::int64, {1, 2})}); }) == errc::type_mismatch);
  CHECK(code_of([&] { run({tensor(dtype::float32, {1, 3})}); }) == errc::shape_mismatch);
  CHECK(code_of([&] { run({tensor(dtype::float32, {2})}); }) == errc::shape_mismatch);
  CHECK(code_of([&] { run({tensor(dtype::float32, {1, 2}), tensor(dtype::float32, {1})}); }) == errc::invalid_argument);
  CHECK_FALSE(code_of([&] { run({tensor(dtype::float32, {7, 2})}); }));
}

TEST_CASE("errors name node and operator") {
  builder b;
  const value_id x = b.input("x");
  const value_id out = b.g.add_value("out");
  b.g.add_node(b.ops.at("", "Gather"), "lookup", {x, b.g.add_constant("i", tensor::scalar<std::int64_t>(9))}, {out});
  b.g.add_output(out);
  const std::vector<tensor> inputs{vector_of({1, 2})};
  std::string text;
  CHECK(code_of([&] { (void)reference::evaluate(b.g, inputs); }, &text) == errc::invalid_argument);
  CHECK(text == "[dnnopt.101] node 'lookup' (Gather): index 9 is outside a dim of 2");
}

TEST_CASE("what no function computes is unsupported by name") {
  builder b;
  const value_id x = b.input("x");
  const value_id out = b.g.add_value("out");
  b.g.add_node(op_row<unknown_op>, "n", {x}, {out});
  b.g.add_output(out);
  const std::vector<tensor> inputs{vector_of({1})};
  std::string text;
  CHECK(code_of([&] { (void)reference::evaluate(b.g, inputs); }, &text) == errc::unsupported);
  CHECK(text.find("'Unknown' of domain 'com.example'") != std::string::npos);
}

TEST_CASE("If runs the branch that its condition names, with captured values") {
  builder b;
  const value_id condition = b.input("condition", dtype::boolean);
  const value_id x = b.input("x");
  attribute_map attributes;
  for (const bool taken : {true, false}) {
    builder branch(b.g.shared_expressions());
    const value_id captured = branch.input("x");
    branch.g.add_output(branch.node(taken ? "Neg" : "Abs", {captured}));
    attributes.set(taken ? "then_branch" : "else_branch", std::make_shared<const graph>(branch.g));
  }
  const value_id out = b.g.add_value("out");
  const node_id id = b.g.add_node(b.ops.at("", "If"), "choose", {condition, x}, {out}, attributes);
  b.g.set_captured_begin(id, 1);
  b.g.add_output(out);
  std::vector<std::string> seen;
  reference::evaluate_options options;
  options.observer = [&](const reference::node_evaluation& e) {
    seen.push_back(std::string(e.owner.node_at(e.id).op->name) + "@" + std::to_string(e.depth));
  };
  for (const bool taken : {true, false}) {
    seen.clear();
    const std::vector<tensor> inputs{tensor::scalar(taken), vector_of({-4})};
    CHECK(content(reference::evaluate(b.g, inputs, options)[0]) == floats{4});
    CHECK(seen == std::vector<std::string>{taken ? "Neg@1" : "Abs@1", "If@0"});
  }
}

TEST_CASE("Loop carries values, stacks outputs, and gives empty stacks for no trips") {
  builder body;
  const value_id trip = body.input("trip", dtype::int64);
  const value_id going = body.input("going", dtype::boolean);
  const value_id total = body.input("total");
  const value_id step = body.input("step");
  (void)trip;
  const value_id sum = body.node("Add", {total, step});
  body.g.facts(sum).type = dtype::float32;
  body.g.facts(sum).dims = shape{1};
  body.g.add_output(body.node("Identity", {going}));
  body.g.add_output(sum);
  body.g.add_output(sum);
  builder b;
  const value_id trips = b.input("trips", dtype::int64);
  const value_id start = b.input("start");
  const value_id outer = b.input("outer");
  const value_id last = b.g.add_value("last");
  const value_id all = b.g.add_value("all");
  const node_id id = b.g.add_node(b.ops.at("", "Loop"), "loop", {trips, no_value, start, outer}, {last, all},
                                  with("body", std::make_shared<const graph>(body.g)));
  b.g.set_captured_begin(id, 3);
  b.g.add_output(last);
  b.g.add_output(all);
  const auto run = [&](std::int64_t count) {
    const std::vector<tensor> inputs{tensor::scalar(count), vector_of({1}), vector_of({2})};
    return reference::evaluate(b.g, inputs);
  };
  const auto three = run(3);
  CHECK(content(three[0]) == floats{7});
  CHECK(three[1].dims() == dim_list{3, 1});
  CHECK(content(three[1]) == floats{3, 5, 7});
  const auto none = run(0);
  CHECK(content(none[0]) == floats{1});
  CHECK(none[1].dims() == dim_list{0, 1});
}

TEST_CASE("Scan walks its inputs forwards or backwards") {
  builder body;
  const value_id state = body.input("state");
  const value_id part = body.input("part");
  const value_id sum = body.node("Add", {state, part});
  body.g.add_output(sum);
  body.g.add_output(sum);
  for (const bool backwards : {false, true}) {
    builder b;
    const value_id start = b.input("start");
    const value_id x = b.input("x");
    attribute_map attributes = with("body", std::make_shared<const graph>(body.g));
    attributes.set("num_scan_inputs", std::int64_t{1});
    if (backwards) attributes.set("scan_input_directions", ints{1});
    const value_id last = b.g.add_value("last");
    const value_id sums = b.g.add_value("sums");
    b.g.add_node(b.ops.at("", "Scan"), "scan", {start, x}, {last, sums}, attributes);
    b.g.add_output(last);
    b.g.add_output(sums);
    const std::vector<tensor> inputs{vector_of({0}), tensor::of<float>({3, 1}, floats{1, 2, 4})};
    const auto out = reference::evaluate(b.g, inputs);
    CHECK(content(out[0]) == floats{7});
    CHECK(content(out[1]) == (backwards ? floats{4, 6, 7} : floats{1, 3, 7}));
  }
}

TEST_CASE("sequences and optionals pass between nodes") {
  builder b;
  const value_id x = b.input("x");
  const value_id pair = b.node("SequenceConstruct", {x, b.node("Neg", {x})});
  const value_id longer =
      b.node("SequenceInsert", {pair, x, b.g.add_constant("zero", tensor::scalar<std::int64_t>(0))});
  b.g.add_output(b.node("SequenceLength", {longer}));
  b.g.add_output(b.node("SequenceAt", {longer, b.g.add_constant("last", tensor::scalar<std::int64_t>(-1))}));
  b.g.add_output(b.node("ConcatFromSequence", {longer}, with("axis", std::int64_t{0})));
  b.g.add_output(b.node("OptionalHasElement", {b.node("Optional", {pair})}));
  const std::vector<tensor> inputs{vector_of({1, 2})};
  const auto out = reference::evaluate(b.g, inputs);
  CHECK(out[0].data<std::int64_t>()[0] == 3);
  CHECK(content(out[1]) == floats{-1, -2});
  CHECK(content(out[2]) == floats{1, 2, 1, 2, -1, -2});
  CHECK(out[3].data<bool>()[0]);
  b.g.add_output(pair);
  CHECK(code_of([&] { (void)reference::evaluate(b.g, inputs); }) == errc::unsupported);
  CHECK(reference::evaluator().run(b.g, {inputs.begin(), inputs.end()}).back().items.size() == 2);
}

TEST_CASE("an operator with nothing but an expression is computed from it") {
  builder b;
  b.ops.add<scaled_tanh>();
  const value_id x = b.input("x");
  const value_id out = b.g.add_value("out");
  attribute_map attributes;
  attributes.set("scale", 2.0F);
  b.g.add_node(b.ops.at("my.company", "ScaledTanh"), "own", {x}, {out}, attributes);
  b.g.facts(out).type = dtype::float32;
  b.g.add_output(out);
  const floats got = content(reference::evaluate(b.g, std::vector<tensor>{vector_of({-1, 0, 0.5F})})[0]);
  CHECK(got == floats{2 * std::tanh(-1.0F), 0, 2 * std::tanh(0.5F)});
}

TEST_CASE("scalar expressions are read as OpenCL C reads them") {
  const auto value = [](const std::string& text, std::vector<double> operands = {}) {
    return reference::scalar_expression(text)(operands);
  };
  CHECK(value("1 + 2 * 3 - 4 / 2.0f") == 5);
  CHECK(value("-(x0 - x1) * 2", {1, 4}) == 6);
  CHECK(value("x0 > 0 ? x0 : x0 < -1 ? -1 : 0.5f", {-3}) == -1);
  CHECK(value("x0 > 0 ? x0 : x0 < -1 ? -1 : 0.5f", {2}) == 2);
  CHECK(value("!x0 || x1 && 0", {0, 1}) == 1);
  CHECK(value("5 & 3 | 8") == 9);
  CHECK(value("1 <= 1 != 0") == 1);
  CHECK(value("(int)(7 / 2.0f) % 2") == 1);
  CHECK(value("fmax(x0, 1e-3f) + min(2, x1)", {0, 5}) == 2.001);
  CHECK(value("dnnopt_clip(x0, -1, 1)", {3}) == 1);
  CHECK(value("select(1.0f, 2.0f, isnan(x0))", {std::nan("")}) == 2);
  CHECK(value("clamp(tanh(x0) * 100, 0.0f, 6.0f)", {1}) == 6);
  for (const char* wrong : {"", "1 +", "(1", "frob(1)", "sin(1, 2)", "y", "1 2", "x0 ? 1", "sin"}) {
    INFO(wrong);
    CHECK(code_of([&] { (void)value(wrong); }) == errc::unsupported);
  }
}

TEST_CASE("expressions broadcast their operands, and integers have no fraction") {
  const op_info* const add = standard_ops().find("", "Add");
  op_info own = *add;
  own.scalar = "x0 + {weight=10} * x1 + {has2}";
  own.scalar_integer = "x0 / x1";
  const tensor column = tensor::of<float>({2, 1}, floats{1, 2});
  const std::vector<tensor> mixed{column, vector_of({0, 1, 2})};
  const tensor got = reference::evaluate_expression(own, {}, mixed, dtype::float32);
  CHECK(got.dims() == dim_list{2, 3});
  CHECK(content(got) == floats{1, 11, 21, 2, 12, 22});
  const std::vector<tensor> whole{tensor::of<std::int64_t>({2}, ints{7, -7}), tensor::scalar<std::int64_t>(2)};
  const tensor divided = reference::evaluate_expression(own, {}, whole, dtype::int64);
  CHECK(divided.data<std::int64_t>()[0] == 3);
  CHECK(divided.data<std::int64_t>()[1] == -3);
}

TEST_CASE("every operator of ai.onnx is computed, held as a container, or runs bodies") {
  const op_set ops = standard_ops();
  for (const op_info* op : ops.rows()) {
    INFO(std::string(op->name));
    bool known = reference::find_evaluation(*op) != nullptr;
    for (const reference::container_row& row : reference::container_rows) known = known || row.name == op->name;
    for (const reference::container_row& row : reference::ml::map_rows) known = known || row.name == op->name;
    for (const reference::control_flow_row& row : reference::control_flow_rows) known = known || row.name == op->name;
    CHECK(known);
  }
}
