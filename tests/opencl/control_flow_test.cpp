// Control flow on the device: bodies as programs of their own, against the reference backend.
#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <dnnopt/backend/measure/opened_device.hpp>
#include <dnnopt/backend/run/executor.hpp>
#include <dnnopt/dnnopt.hpp>
#include <dnnopt/reference/evaluator.hpp>

#include "../support/flow_network.hpp"
#include "../support/random_flow.hpp"
#include "../support/shared_device.hpp"
#include "../support/small_network.hpp"
#include "runtime_fixture.hpp"

using namespace dnnopt;
using dnnopt::opencl::testing::code;
using dnnopt::opencl::testing::code_of;
using dnnopt::testing::flow_scope;
using dnnopt::testing::flow_value;
using dnnopt::testing::flow_values;
using dnnopt::testing::ramp;
using dnnopt::testing::random_flow;
using dnnopt::testing::shared_device;

namespace {

session on_device(const model& m, kernel_form form = kernel_form::native, precision stored = precision::fp32,
                  bool poison = false, std::shared_ptr<opened_device> device = shared_device(),
                  std::string passes = "default") {
  compile_options options;
  options.passes = std::move(passes);
  options.opened = std::move(device);
  options.form = form;
  options.precision = stored;
  options.poison_freed = poison;
  options.require_device = true;
  return compile(m, options);
}

/// What the reference backend says of the model as it was written.
std::vector<tensor> expected(const model& m, const named_tensors& inputs) {
  std::vector<tensor> ordered;
  for (const value_id in : m.main.inputs()) ordered.push_back(inputs[m.main.value_at(in).name]);
  return reference::evaluate(m.main, ordered);
}

/// Where the two differ, or nothing.
std::string difference(const named_tensors& got, const std::vector<tensor>& want, float tolerance = 1e-4F) {
  if (got.size() != want.size()) return "number of outputs";
  for (std::size_t i = 0; i < want.size(); ++i) {
    const std::string at = "output " + std::to_string(i) + " ";
    if (got[i].type() != want[i].type()) return at + "type";
    // A stack of nothing has the dims that are known of its parts; the reference backend has those that are declared.
    if (got[i].size() == 0 && want[i].size() == 0 && got[i].dims().size() == want[i].dims().size()) continue;
    if (got[i].dims() != want[i].dims()) return at + to_string(got[i].dims()) + " not " + to_string(want[i].dims());
    if (want[i].type() != dtype::float32) {
      if (!std::ranges::equal(got[i].bytes(), want[i].bytes())) return at + "bytes";
      continue;
    }
    const auto a = got[i].data<float>();
    const auto b = want[i].data<float>();
    for (std::size_t k = 0; k < a.size(); ++k) {
      if (std::isnan(a[k]) && std::isnan(b[k])) continue;
      if (a[k] == b[k]) continue;
      if (!(std::fabs(a[k] - b[k]) <= tolerance * (1 + std::fabs(b[k]))))
        return at + "element " + std::to_string(k) + ": " + std::to_string(a[k]) + " not " + std::to_string(b[k]);
    }
  }
  return {};
}

attribute_map with(std::string name, attribute value) {
  attribute_map attributes;
  attributes.set(std::move(name), std::move(value));
  return attributes;
}

constexpr kernel_form both_forms[] = {kernel_form::vectors, kernel_form::groups};

}  // namespace

namespace {

/// Compares random graphs of control flow with the reference, as many as DNNOPT_FLOW_GRAPHS says, else `usual`, from
/// the seed DNNOPT_FLOW_FROM on.
void check_random_flow(const std::shared_ptr<opened_device>& device, unsigned usual) {
  const char* const wanted = std::getenv("DNNOPT_FLOW_GRAPHS");
  const char* const begin = std::getenv("DNNOPT_FLOW_FROM");
  const unsigned from = begin == nullptr ? 0 : static_cast<unsigned>(std::atoi(begin));
  const unsigned graphs = wanted == nullptr ? usual : static_cast<unsigned>(std::atoi(wanted));
  for (unsigned seed = from; seed < from + graphs; ++seed) {
    const model m = random_flow(seed).make();
    // What dies too early shows where freed memory is poisoned.
    session s = on_device(m, both_forms[seed % 2], precision::fp32, seed % 3 != 0, device);
    for (unsigned run = 0; run < 2; ++run) {
      INFO("seed " << seed << ", run " << run);
      const named_tensors inputs = random_flow::inputs(2 * seed + run);
      CHECK(difference(s.run(inputs), expected(m, inputs)) == "");
      CHECK(s.host_ops() == 0);
    }
  }
}

}  // namespace

TEST_CASE("random nested control flow is right on the device", "[control_flow]") {
  check_random_flow(shared_device(), 80);
}

TEST_CASE("arenas of addresses serve control flow where a driver lets no object follow an address", "[control_flow]") {
  if (std::getenv("DNNOPT_TEST_WORK_ITEMS") == nullptr) {
    CHECK(std::system("DNNOPT_TEST_WORK_ITEMS=4096 DNNOPT_OPENCL_LIBRARY='" DNNOPT_LIMITED_OPENCL
                      "' /proc/$PPID/exe 'arenas of addresses serve control flow*'") == 0);
    return;
  }
  opencl::device device = opencl::select_device("opencl");
  if (!device.info.shared_virtual_memory) {
    WARN("left out: the device has no memory of addresses");
    return;
  }
  device.info.type = device_type::gpu;
  device.info.host_unified_memory = false;
  opencl::program_cache_options programs;
  programs.on_disk = false;
  check_random_flow(std::make_shared<opened_device>(device, programs), 40);
}

namespace {

/// The figures of a body of the model's own nodes.
body_figures figures_of(const session& s, std::string_view key) {
  for (const auto& [at, entry] : s.executor()->bodies().all())
    if (at.second == key) return entry.figures;
  return {};
}

/// All passes but the one that takes branches which an input alone decides: these stay bodies.
constexpr const char* bodies_stay = "default,-inline_branches";

/// Checks a run on both device forms, with such branches taken and as bodies, and that no operator ran on the host.
void check_runs(const model& m, const std::vector<named_tensors>& runs,
                const std::vector<std::string>& passes_lists = {"default", bodies_stay}) {
  for (const kernel_form form : both_forms)
    for (const std::string& passes : passes_lists) {
      session s = on_device(m, form, precision::fp32, false, shared_device(), passes);
      for (std::size_t i = 0; i < runs.size(); ++i) {
        INFO("form " << static_cast<int>(form) << ", passes " << passes << ", run " << i);
        CHECK(difference(s.run(runs[i]), expected(m, runs[i])) == "");
        CHECK(s.host_ops() == 0);
      }
    }
}

flow_value symbolic_input(flow_scope& s, std::string name) {
  return s.input(dtype::float32, shape{s.inner().expressions().symbol("n"), 4}, std::move(name));
}

tensor flag(bool value) { return tensor::scalar(value); }
tensor count(std::int64_t value) { return tensor::scalar(value); }

}  // namespace

TEST_CASE("a branch has a program and launches only once it is taken", "[control_flow]") {
  flow_scope main;
  const flow_value take = main.input(dtype::boolean, shape{}, "take");
  const flow_value x = symbolic_input(main, "x");
  const flow_value doubled = main.node("Add", {x, x});
  main.output(main.branches(
      take, 1, [&](flow_scope& b) { b.output(b.node("Tanh", {doubled})); },
      [&](flow_scope& b) {
        b.output(b.node("Concat", {doubled, x}, with("axis", std::int64_t{0})));
      })[0]);
  const model m = main.finish();
  session s = on_device(m, kernel_form::native, precision::fp32, false, shared_device(), bodies_stay);
  CHECK(s.report().body_programs == 0);
  const named_tensors yes{{"take", flag(true)}, {"x", ramp({3, 4})}};
  const named_tensors no{{"take", flag(false)}, {"x", ramp({5, 4})}};
  CHECK(difference(s.run(yes), expected(m, yes)) == "");
  CHECK(s.report().body_programs == 1);
  CHECK(figures_of(s, "then_branch").entered == 1);
  CHECK(figures_of(s, "then_branch").kernels == 1);
  CHECK(figures_of(s, "else_branch").programs == 0);
  CHECK(figures_of(s, "else_branch").kernels == 0);
  CHECK(s.host_ops() == 0);
  // Both values go up, the result comes back, and of the condition nothing: the host gave it.
  CHECK(s.executor()->figures().downloads == 1);
  CHECK(difference(s.run(no), expected(m, no)) == "");
  CHECK(difference(s.run(yes), expected(m, yes)) == "");
  CHECK(s.report().body_programs == 2);
  CHECK(figures_of(s, "then_branch").entered == 2);
  CHECK(figures_of(s, "else_branch").entered == 1);
  // The branch that the reader is told of has what was counted.
  const std::vector<body_row> bodies = s.bodies();
  REQUIRE(bodies.size() == 2);
  const body_row& other = bodies[bodies[0].body == "else_branch" ? 0 : 1];
  CHECK((other.op == "If" && other.depth == 0 && other.alternatives == 1));
  CHECK((other.programs == 1 && other.entered == 1 && other.kernels == 1 && other.host_ops == 0));
  const std::vector<placement_row> rows = s.placements();
  CHECK(std::any_of(rows.begin(), rows.end(), [](const auto& row) { return row.op == "If" && row.where == "bodies"; }));
}

TEST_CASE("a loop reads back its condition and nothing else", "[control_flow]") {
  flow_scope main;
  const flow_value limit = main.input(dtype::float32, shape{}, "limit");
  const flow_value trips = main.input(dtype::int64, shape{}, "trips");
  const flow_value x = symbolic_input(main, "x");
  const flow_values made = main.loop(trips, {}, {x}, 2, [&](flow_scope& b) {
    (void)b.input(dtype::int64, shape{});
    (void)b.input(dtype::boolean, shape{});
    const flow_value state = b.input();
    const flow_value next = b.node("Add", {state, b.scalar(1)});
    const flow_value largest = b.node("ReduceMax", {next}, with("keepdims", std::int64_t{0}));
    b.output(b.node("Less", {largest, limit}));
    b.output(next);
    b.output(largest);
  });
  main.output(made[0]);
  main.output(made[1]);
  const model m = main.finish();
  const auto inputs = [](float most, std::int64_t turns) {
    return named_tensors{{"limit", tensor::scalar(most)}, {"trips", count(turns)}, {"x", ramp({6, 4})}};
  };
  session s = on_device(m);
  const named_tensors six = inputs(5, 100);
  CHECK(difference(s.run(six), expected(m, six)) == "");
  const std::size_t turns = figures_of(s, "body").entered;
  CHECK(turns == 6);
  // Two outputs, and a condition for each turn.
  CHECK(s.executor()->figures().downloads == turns + 2);
  const named_tensors three = inputs(1000, 3);
  CHECK(difference(s.run(three), expected(m, three)) == "");
  CHECK(figures_of(s, "body").entered == turns + 3);
  // After the last turn that the count allows nobody asks.
  CHECK(s.executor()->figures().downloads == 2 + 2);
  CHECK(s.host_ops() == 0);
  check_runs(m, {six, three, inputs(0, 0), inputs(-5, 4)});
}

TEST_CASE("loops that never run give what they were given, and empty stacks", "[control_flow]") {
  flow_scope main;
  const flow_value trips = main.input(dtype::int64, shape{}, "trips");
  const flow_value go = main.input(dtype::boolean, shape{}, "go");
  const flow_value x = symbolic_input(main, "x");
  const flow_value before = main.node("Tanh", {x});
  const flow_values made = main.loop(trips, go, {before}, 2, [&](flow_scope& b) {
    (void)b.input(dtype::int64, shape{});
    const flow_value going = b.input(dtype::boolean, shape{});
    const flow_value state = b.input();
    b.output(going);
    b.output(b.node("Neg", {state}));
    const flow_value part = b.node("ReduceSum", {state, b.list({0})}, with("keepdims", std::int64_t{0}));
    b.inner().facts(part.id).type = dtype::float32;
    b.inner().facts(part.id).dims = shape{4};
    b.output(part);
  });
  main.output(main.node("Add", {made[0], x}));
  main.output(made[1]);
  const auto inputs = [](std::int64_t turns, bool going, std::int64_t rows) {
    return named_tensors{{"trips", count(turns)}, {"go", flag(going)}, {"x", ramp({rows, 4})}};
  };
  const model m = main.finish();
  check_runs(m, {inputs(0, true, 2), inputs(3, false, 2), inputs(3, true, 2), inputs(2, true, 0), inputs(-1, true, 3)});
  session s = on_device(m);
  (void)s.run(inputs(0, true, 2));
  CHECK(s.report().body_programs == 0);
  CHECK(s.run(inputs(3, false, 2))[1].dims() == dim_list{0, 4});
}

TEST_CASE("If in Loop in If, with values captured across all of them", "[control_flow]") {
  flow_scope main;
  const flow_value take = main.input(dtype::boolean, shape{}, "take");
  const flow_value x = symbolic_input(main, "x");
  const flow_value far = main.node("Sigmoid", {x});
  main.output(main.branches(
      take, 1,
      [&](flow_scope& outer) {
        const flow_value near = outer.node("Mul", {far, outer.scalar(3)});
        outer.output(outer.loop(outer.number(4), {}, {x}, 1, [&](flow_scope& body) {
          const flow_value turn = body.input(dtype::int64, shape{});
          const flow_value going = body.input(dtype::boolean, shape{});
          const flow_value state = body.input();
          const flow_value even = body.node("Equal", {body.node("Mod", {turn, body.number(2)}), body.number(0)});
          body.output(going);
          body.output(body.branches(
              even, 1,
              [&](flow_scope& b) {
                b.output(b.node("Add", {state, near}));
              },
              [&](flow_scope& b) {
                b.output(b.node("Sub", {state, b.node("Mul", {far, x})}));
              })[0]);
        })[0]);
      },
      [&](flow_scope& b) { b.output(x); })[0]);
  const model m = main.finish();
  std::vector<named_tensors> runs;
  for (const std::int64_t rows : {3, 7, 1, 0})
    for (const bool taken : {true, false}) runs.push_back({{"take", flag(taken)}, {"x", ramp({rows, 4})}});
  check_runs(m, runs);
}

TEST_CASE("what bodies hand through outlives its last reader around", "[control_flow]") {
  flow_scope main;
  const flow_value take = main.input(dtype::boolean, shape{}, "take");
  const flow_value trips = main.input(dtype::int64, shape{}, "trips");
  const flow_value x = symbolic_input(main, "x");
  const flow_value first = main.node("Exp", {main.node("Softmax", {x})});
  const flow_value second = main.node("Tanh", {main.node("Softmax", {main.node("Neg", {x})})});
  const flow_value kept = main.branches(
      take, 1, [&](flow_scope& b) { b.output(first); }, [&](flow_scope& b) { b.output(b.node("Neg", {first})); })[0];
  const flow_value looped = main.loop(trips, {}, {second}, 1, [&](flow_scope& b) {
    (void)b.input(dtype::int64, shape{});
    const flow_value going = b.input(dtype::boolean, shape{});
    const flow_value state = b.input();
    b.output(going);
    b.output(b.node("Add", {state, second}));
  })[0];
  // Nothing reads `first` and `second` any more while these are computed.
  flow_value last = main.node("Softmax", {x});
  for (int k = 0; k < 4; ++k) last = main.node("Softmax", {main.node("Exp", {last})});
  main.output(last);
  main.output(main.node("Softmax", {main.node("Add", {kept, looped})}));
  const model m = main.finish();
  for (const kernel_form form : both_forms) {
    session s = on_device(m, form, precision::fp32, true);
    for (const bool taken : {true, false})
      for (const std::int64_t turns : {0, 2}) {
        const named_tensors inputs{{"take", flag(taken)}, {"trips", count(turns)}, {"x", ramp({5, 4})}};
        CHECK(difference(s.run(inputs), expected(m, inputs)) == "");
      }
  }
}

TEST_CASE("state that grows in each turn, and shapes that captured values tell", "[control_flow]") {
  flow_scope main;
  const flow_value trips = main.input(dtype::int64, shape{}, "trips");
  const flow_value x = symbolic_input(main, "x");
  const flow_value dims = main.node("Shape", {x});
  const flow_values made = main.loop(trips, {}, {x}, 1, [&](flow_scope& b) {
    (void)b.input(dtype::int64, shape{});
    const flow_value going = b.input(dtype::boolean, shape{});
    const flow_value state = b.input();
    // As large as the outer value, by its dims.
    const flow_value more = b.node("Expand", {b.scalar(0.5F), dims});
    b.output(going);
    b.output(b.node("Concat", {state, more}, with("axis", std::int64_t{0})));
  });
  main.output(main.node("Neg", {made[0]}));
  const auto inputs = [](std::int64_t turns, std::int64_t rows) {
    return named_tensors{{"trips", count(turns)}, {"x", ramp({rows, 4})}};
  };
  check_runs(main.finish(), {inputs(12, 3), inputs(2, 5), inputs(0, 2), inputs(12, 3), inputs(3, 0)});
}

TEST_CASE("sizes that depend on the number of the turn", "[control_flow]") {
  flow_scope main;
  const flow_value trips = main.input(dtype::int64, shape{}, "trips");
  const flow_value x = symbolic_input(main, "x");
  const flow_values made = main.loop(trips, {}, {main.scalar(0), x}, 2, [&](flow_scope& b) {
    const flow_value turn = b.input(dtype::int64, shape{});
    const flow_value going = b.input(dtype::boolean, shape{});
    const flow_value total = b.input();
    const flow_value rows = b.input();
    const flow_value end = b.node("Unsqueeze", {b.node("Add", {turn, b.number(1)}), b.list({0})});
    // In the body, and in a branch of the body.
    const flow_value front = b.node("Slice", {x, b.list({0}), end, b.list({0})});
    const flow_value odd = b.node("Equal", {b.node("Mod", {turn, b.number(2)}), b.number(1)});
    const flow_value part = b.branches(
        odd, 1,
        [&](flow_scope& s) {
          s.output(s.node("Slice", {x, s.list({0}), end, s.list({1})}));
        },
        [&](flow_scope& s) { s.output(front); })[0];
    b.output(going);
    b.output(b.node("Add", {total, b.node("ReduceSum", {part}, with("keepdims", std::int64_t{0}))}));
    b.output(b.node("Concat", {rows, front}, with("axis", std::int64_t{0})));
  });
  main.output(made[0]);
  main.output(made[1]);
  const auto inputs = [](std::int64_t turns, std::int64_t rows) {
    return named_tensors{{"trips", count(turns)}, {"x", ramp({rows, 4})}};
  };
  check_runs(main.finish(), {inputs(3, 3), inputs(6, 5), inputs(0, 2), inputs(2, 0)});
}

TEST_CASE("a body that symbols leave to the host gets programs for the dims that come", "[control_flow]") {
  flow_scope main;
  const flow_value take = main.input(dtype::boolean, shape{}, "take");
  const flow_value x = symbolic_input(main, "x");
  main.output(main.branches(
      take, 1,
      [&](flow_scope& b) {
        // As exporters write a squeeze: with one row the rank falls.
        const flow_value rows = b.node("Gather", {b.node("Shape", {x}), b.number(0)});
        const flow_value one = b.node("Equal", {rows, b.number(1)});
        const flow_value less = b.branches(
            one, 1,
            [&](flow_scope& s) {
              s.output(s.node("Squeeze", {x, s.list({0})}));
            },
            [&](flow_scope& s) { s.output(s.node("Tanh", {x})); })[0];
        b.output(b.node("ReduceSum", {b.node("Mul", {less, less})}, with("keepdims", std::int64_t{0})));
      },
      [&](flow_scope& b) { b.output(b.node("ReduceMax", {x}, with("keepdims", std::int64_t{0}))); })[0]);
  main.output(main.node("Not", {take}));  // or the branch would be taken before there is a body
  const model m = main.finish();
  std::vector<named_tensors> runs;
  for (std::int64_t rows = 1; rows < 12; ++rows) runs.push_back({{"take", flag(true)}, {"x", ramp({rows, 4})}});
  runs.insert(runs.end(), {runs[0], runs[3], {{"take", flag(false)}, {"x", ramp({3, 4})}}});
  check_runs(m, runs, {"default"});
  // Without --require-device the general program serves what comes after eight, and says what it leaves to the host.
  compile_options options;
  options.opened = shared_device();
  session s = compile(m, options);
  for (std::size_t i = 0; i < runs.size(); ++i) {
    CHECK(difference(s.run(runs[i]), expected(m, runs[i])) == "");
    CHECK((s.host_ops() != 0) == (i >= 8 && i < 11));
  }
}

TEST_CASE("scans along any axes, from both ends", "[control_flow]") {
  for (const std::int64_t in_axis : {0, 1, -1})
    for (const std::int64_t out_axis : {0, 1, -1})
      for (const std::int64_t backwards : {0, 1}) {
        flow_scope main;
        const flow_value x = main.input(dtype::float32, shape{3, main.inner().expressions().symbol("n")}, "x");
        const flow_value y = main.node("Tanh", {x});
        const flow_value start = main.constant(tensor::scalar(0.25F));
        attribute_map attributes;
        attributes.set("scan_input_axes", std::vector<std::int64_t>{in_axis, in_axis});
        attributes.set("scan_input_directions", std::vector<std::int64_t>{backwards, 1 - backwards});
        attributes.set("scan_output_axes", std::vector<std::int64_t>{out_axis});
        attributes.set("scan_output_directions", std::vector<std::int64_t>{1 - backwards});
        const flow_values made = main.scan(
            {start}, {x, y}, 2,
            [&](flow_scope& b) {
              const flow_value state = b.input();
              const flow_value first = b.input();
              const flow_value second = b.input();
              const flow_value both = b.node("Mul", {first, second});
              b.output(b.node("ReduceSum", {b.node("Add", {both, state})}, with("keepdims", std::int64_t{0})));
              b.output(b.node("Sub", {both, state}));
            },
            attributes);
        main.output(made[0]);
        main.output(made[1]);
        INFO("axes " << in_axis << ", " << out_axis << ", backwards " << backwards);
        check_runs(main.finish(), {{{"x", ramp({3, 5})}}, {{"x", ramp({3, 2})}}});
      }
}

TEST_CASE("halves stay inside of bodies, and what is handed to them is whole", "[control_flow]") {
  flow_scope main;
  const flow_value x = symbolic_input(main, "x");
  const flow_value before = main.node("MatMul", {x, main.constant(ramp({4, 128}))});
  const flow_values made = main.loop(main.number(3), {}, {main.node("Relu", {before})}, 1, [&](flow_scope& b) {
    (void)b.input(dtype::int64, shape{});
    const flow_value going = b.input(dtype::boolean, shape{});
    const flow_value state = b.input();
    b.output(going);
    b.output(b.node("Tanh", {b.node("MatMul", {state, b.constant(ramp({128, 128}))})}));
  });
  main.output(main.node("Exp", {made[0]}));
  const model m = main.finish();
  const named_tensors inputs{{"x", ramp({6, 4})}};
  for (const kernel_form form : both_forms) {
    session s = on_device(m, form, precision::fp16);
    CHECK(difference(s.run(inputs), expected(m, inputs), 2e-2F) == "");
  }
}

TEST_CASE("a size that data decide inside of a body is held against what its operators need", "[control_flow]") {
  flow_scope net;
  const flow_value x = net.input(dtype::float32, shape{6}, "x");
  const flow_value open =
      net.node("Greater", {net.node("ReduceSum", {x}, with("keepdims", std::int64_t{0})), net.scalar(-1000)});
  const flow_values out = net.branches(
      open, 1,
      [&](flow_scope& body) {
        const flow_value found = body.node("NonZero", {x});
        const flow_value places = body.node("Cast", {found}, with("to", std::int64_t{1}));
        body.output(body.node("Add", {places, body.constant(ramp({1, 3}))}));
      },
      [&](flow_scope& body) {
        body.output(body.constant(ramp({1, 3})));
      });
  net.output(out[0]);
  const model m = net.finish();
  for (const kernel_form form : both_forms) {
    session s = on_device(m, form);
    const auto input = [](std::vector<float> content) {
      return named_tensors{{"x", tensor::of<float>({6}, std::move(content))}};
    };
    const named_tensors three = input({1, 0, 2, 0, 3, 0});
    CHECK(difference(s.run(three), expected(m, three)) == "");
    CHECK_THROWS_AS(s.run(input({1, 2, 2, 0, 3, 0})), error);
    CHECK(difference(s.run(three), expected(m, three)) == "");
  }
}

namespace {

/// A window of 7 over what an exporter's squeeze of one row leaves: a branch that constants decide, once they are
/// folded.
flow_value windowed(flow_scope& b, const flow_value& x) {
  const flow_value rows = b.node("Unsqueeze", {x, b.list({0})});
  const flow_value count = b.node("Gather", {b.node("Shape", {rows}), b.number(0)});
  const flow_value less = b.branches(
      b.node("Equal", {count, b.number(1)}), 1,
      [&](flow_scope& s) {
        s.output(s.node("Squeeze", {rows, s.list({0})}));
      },
      [&](flow_scope& s) { s.output(s.node("Tanh", {rows})); })[0];
  const flow_value sums = b.node("Conv", {less, b.constant(ramp({1, 1, 7}))});
  return b.node("ReduceSum", {sums, b.list({2})});
}

}  // namespace

TEST_CASE("conditions behind a branch that folding decides are checked", "[control_flow]") {
  const bool within = GENERATE(false, true);
  CAPTURE(within);
  flow_scope net;
  const flow_value take = net.input(dtype::boolean, shape{}, "take");
  const flow_value x = net.input(dtype::float32, shape{1, 1, net.inner().expressions().symbol("n")}, "x");
  net.output(!within ? windowed(net, x)
                     : net.branches(
                           take, 1, [&](flow_scope& b) { b.output(windowed(b, x)); },
                           [&](flow_scope& b) {
                             b.output(b.node("ReduceMax", {x, b.list({2})}));
                           })[0]);
  const model m = net.finish();
  for (const kernel_form form : both_forms) {
    session s = on_device(m, form);
    const auto input = [](std::int64_t n) { return named_tensors{{"take", flag(true)}, {"x", ramp({1, 1, n})}}; };
    CHECK(difference(s.run(input(9)), expected(m, input(9))) == "");
    CHECK_THROWS_AS(s.run(input(3)), error);
    CHECK(difference(s.run(input(12)), expected(m, input(12))) == "");
  }
}
