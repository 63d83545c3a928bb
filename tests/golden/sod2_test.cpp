// The worked figures of SoD2 (ASPLOS 2024): operator classes in Fig. 1, forward and backward propagation in Fig. 3,
// fusion with and without known broadcasts in Fig. 4, partition at nac tensors in section 4.3.
#include "figure.hpp"

#include <dnnopt/backend/program/storages.hpp>
#include <dnnopt/backend/program/subgraphs.hpp>

#include <catch2/catch.hpp>

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

using namespace dnnopt;
using namespace dnnopt::testing;

TEST_CASE("SoD2 Fig. 1a: Shape, Gather, Range, BiasAdd: values of shapes decide shapes", "[golden]") {
  figure f;
  const value_id x = f.input("x", {f["a"], f["b"]});
  const value_id dims = f.node("Shape", {x});
  const value_id rows = f.node("Gather", {dims, f.number(0)});
  const value_id range = f.node("Range", {f.number(0), rows, f.number(1)});
  const value_id sum = f.node("Add", {range, f.numbers({7})});
  f.g.add_output(sum);
  rdp{}.run(f.g);
  CHECK(f.dynamism(dims) == dynamism_class::isdo);
  CHECK(f.dynamism(rows) == dynamism_class::isdos);
  // By its row the values decide; inferred values make it one whose shapes do.
  CHECK(f.ops.at("", "Range").dynamism == dynamism_class::isvdos);
  CHECK(f.dynamism(range) == dynamism_class::isdos);
  CHECK(f.elements(dims) == "a, b");
  CHECK(f.elements(rows) == "a");
  CHECK(f.dims(range) == "[a]");
  CHECK(f.dims(sum) == "[a]");
  CHECK(f.late() == 0);
}

TEST_CASE("SoD2 Fig. 1b: Conv, Reduce, ArgMax, GlobalPooling: shapes follow from shapes", "[golden]") {
  figure f;
  const value_id x = f.input("x", {f["n"], 3, f["h"], f["w"]});
  attribute_map same = with("pads", std::vector<std::int64_t>{1, 1, 1, 1});
  const value_id filtered = f.node("Conv", {x, f.weights({8, 3, 3, 3})}, same);
  const value_id reduced = f.node("ReduceSum", {filtered, f.numbers({1})});
  const value_id largest = f.node("ArgMax", {reduced}, with("axis", std::int64_t{2}));
  const value_id pooled = f.node("GlobalAveragePool", {f.node("Cast", {largest}, with("to", std::int64_t{1}))});
  f.g.add_output(pooled);
  rdp{}.run(f.g);
  for (const value_id v : {filtered, largest, pooled}) CHECK(f.dynamism(v) == dynamism_class::isdos);
  CHECK(f.dims(filtered) == "[n, 8, h, w]");
  CHECK(f.dims(reduced) == "[n, 1, h, w]");
  CHECK(f.dims(largest) == "[n, 1, 1, w]");
  CHECK(f.dims(pooled) == "[n, 1, 1, 1]");
  CHECK(f.late() == 0);
}

TEST_CASE("SoD2 Fig. 1c: TopK of a product, its k from data", "[golden]") {
  figure f;
  const value_id counts = f.input("counts", {f["c"], 4}, dtype::int64);
  const value_id total = f.node("ReduceMax", {counts}, with("keepdims", std::int64_t{1}));
  const value_id k = f.node("Reshape", {f.node("Gather", {total, f.number(0)}), f.numbers({1})});
  const value_id product = f.node("MatMul", {f.input("x", {f["a"], f["b"]}), f.input("y", {f["b"], f["d"]})});
  const value_id sums = f.node("ReduceSum", {product, f.numbers({0})}, with("keepdims", std::int64_t{0}));
  const std::vector<value_id> top = f.node("TopK", {sums, k}, 2);
  const value_id out = f.node("Sigmoid", {top[0]});
  f.g.add_output(out);
  rdp{}.run(f.g);
  CHECK(f.dynamism(top[0]) == dynamism_class::isvdos);
  CHECK(f.dims(sums) == "[d]");
  // One symbol that only execution tells, shared by both outputs of TopK and by what follows.
  CHECK(f.late() == 1);
  CHECK(f.dims(out) == f.dims(top[0]));
  CHECK(f.dims(out) != "[d]");

  // The same with a constant k: a less dynamic class, and nothing left to find out.
  f.g.set_node_input(f.g.value_at(top[0]).producer, 1, f.numbers({5}));
  figure constant = f;
  for (const value_id v : {top[0], top[1], out}) constant.g.facts(v).dims.reset();
  rdp{}.run(constant.g);
  CHECK(constant.dynamism(top[0]) == dynamism_class::isdos);
  CHECK(constant.dims(out) == "[5]");
  CHECK(constant.late() == 0);
}

TEST_CASE("SoD2 Fig. 1d: Add, Switch, branches, Combine: equal branches merge, others are nac", "[golden]") {
  const auto branched = [](figure& f, std::string_view second) {
    const value_id x = f.input("x", {1, 4, f["h"], f["w"]});
    const value_id sum = f.node("Add", {x, f.weights({1, 4, 1, 1})});
    const value_id condition = f.input("condition", {}, dtype::boolean);
    const auto body = [&](std::string_view op, attribute_map attributes) {
      auto made = std::make_shared<graph>(f.g.shared_expressions());
      const value_id in = made->add_input("in", dtype::float32, *f.g.facts(x).dims);
      const value_id out = made->add_value("out");
      std::vector<value_id> inputs{in};
      if (op == "Add") inputs.push_back(made->add_constant("bias", tensor(dtype::float32, {1, 4, 1, 1})));
      made->add_node(f.ops.at("", op), "inner", std::move(inputs), {out}, std::move(attributes));
      made->add_output(out);
      return subgraph(made);
    };
    attribute_map pool;
    pool.set("kernel_shape", std::vector<std::int64_t>{2, 2});
    pool.set("strides", std::vector<std::int64_t>{2, 2});
    attribute_map branches;
    branches.set("then_branch", body("Softmax", {}));
    branches.set("else_branch", body(second, second == "Add" ? attribute_map() : pool));
    const value_id combined = f.g.add_value("combined");
    const node_id branch = f.g.add_node(f.ops.at("", "If"), "branch", {condition, sum}, {combined}, branches);
    f.g.set_captured_begin(branch, 1);
    f.g.add_output(combined);
    rdp{}.run(f.g);
    return combined;
  };
  figure equal;
  const value_id merged = branched(equal, "Add");
  CHECK(equal.dynamism(merged) == dynamism_class::edo);
  CHECK(equal.dims(merged) == "[1, 4, h, w]");
  CHECK(equal.late() == 0);

  figure different;
  const value_id open = branched(different, "MaxPool");
  REQUIRE(different.g.facts(open).dims);
  const shape& dims = *different.g.facts(open).dims;
  CHECK(dims[0] == index_expr(1));
  CHECK(dims[1] == index_expr(4));
  CHECK(different.late() == 2);
}

TEST_CASE("SoD2 Fig. 3a: forward: a shape's smallest dim limits TopK", "[golden]") {
  figure f;
  const value_id x = f.input("x", {f["a"], f["b"]});
  const value_id soft = f.node("Softmax", {x});
  const value_id dims = f.node("Shape", {soft});
  const value_id least = f.node("ReduceMin", {dims}, with("keepdims", std::int64_t{1}));
  const std::vector<value_id> top = f.node("TopK", {soft, least}, 2);
  f.g.add_output(top[0]);
  rdp{}.run(f.g);
  CHECK(f.dims(soft) == "[a, b]");          // S1
  CHECK(f.dims(dims) == "[2]");             // S2
  CHECK(f.elements(dims) == "a, b");        // V2
  CHECK(f.dims(least) == "[1]");            // S3
  CHECK(f.elements(least) == "min(a, b)");  // V3
  CHECK(f.dims(top[0]) == "[a, min(a, b)]");
  CHECK(f.dims(top[1]) == "[a, min(a, b)]");  // S4
  CHECK(f.late() == 0);
}

TEST_CASE("SoD2 Fig. 3b: backward: a known end tells an unknown beginning", "[golden]") {
  figure f;
  const value_id x = f.g.add_input("x", dtype::float32, {});
  f.g.facts(x).dims.reset();
  const value_id turned = f.node("Transpose", {x}, with("perm", std::vector<std::int64_t>{1, 0}));
  const value_id left = f.node("Relu", {f.input("s2", {2 * f["a"], 2 * f["c"]})});
  const value_id product = f.node("MatMul", {left, turned});
  f.g.facts(product).dims = shape{2 * f["a"], 4 * f["b"]};
  f.g.add_output(product);
  rdp{}.run(f.g);
  CHECK(f.dims(left) == "[2*a, 2*c]");     // S3 = S2
  CHECK(f.dims(turned) == "[2*c, 4*b]");   // S1
  CHECK(f.dims(x) == "[4*b, 2*c]");        // S0
  CHECK(f.dims(product) == "[2*a, 4*b]");  // S4
}

TEST_CASE("SoD2 Fig. 4: a known broadcast leaves one fused version", "[golden]") {
  figure f;
  const value_id a = f.input("a", {f["i"], 1, 1});
  const value_id b = f.input("b", {f["i"], f["j"], f["k"]});
  const value_id sum = f.node("Add", {f.node("Sigmoid", {a}), b});
  f.g.add_output(sum);
  const program p = placed(f.g);
  CHECK(f.g.node_count() == 2);
  // Computed once per row and stored, or within the one kernel: never a version for each of the 2^3 broadcasts.
  REQUIRE(p.kernel_count() <= 2);
  std::size_t adding = 0;
  for (const placed_node& step : p.steps)
    for (const codegen::kernel_plan& plan : step.lowered.kernels) {
      const bool adds = std::any_of(step.members.begin(), step.members.end(),
                                    [&](node_id id) { return p.g->node_at(id).op->name == "Add"; });
      if (!adds) continue;
      ++adding;
      // The operand is read at [i, 0, 0]: the index holds the row alone, by no comparison of dims.
      const std::string body = plan.source.str().substr(plan.source.str().find("__kernel"));
      INFO(body);
      CHECK(body.find('?') == std::string::npos);
      CHECK(body.find("b0[dnnopt_over(i, over0)]") != std::string::npos);
      REQUIRE(plan.divisors.size() == 1);
      CHECK(plan.divisors[0] == f["j"] * f["k"]);
    }
  CHECK(adding == 1);

  // Equal expressions license the fusion although no dim is a number.
  figure equal;
  const value_id x = equal.input("x", {equal["i"], equal["j"], equal["k"]});
  const value_id y = equal.input("y", {equal["i"], equal["j"], equal["k"]});
  equal.g.add_output(equal.node("Add", {equal.node("Sigmoid", {x}), y}));
  CHECK(placed(equal.g).kernel_count() == 1);
}

TEST_CASE("SoD2 section 4.3: a program is cut where only execution tells sizes", "[golden]") {
  figure f;
  const value_id x = f.input("x", {16, 16});
  const value_id h = f.node("Softmax", {f.node("MatMul", {x, f.weights({16, 16})})});
  const value_id found = f.node("NonZero", {f.node("Relu", {h})});
  const value_id picked = f.node("Softmax", {f.node("Cast", {found}, with("to", std::int64_t{1}))});
  f.g.add_output(picked);
  f.g.add_output(f.node("Softmax", {f.node("Transpose", {h}, with("perm", std::vector<std::int64_t>{1, 0}))}));
  const program p = placed(f.g);
  const std::vector<program_subgraph> parts = subgraphs_of(p);
  const subgraph_counts counts = count_subgraphs(parts);
  CHECK(counts.known == 1);
  CHECK(counts.nac == 1);
  CHECK(counts.mixed_1 == 1);
  CHECK(counts.mixed_2_4 + counts.mixed_5_8 == 0);
  std::size_t steps = 0;
  std::size_t launches = 0;
  for (const program_subgraph& part : parts) {
    steps += part.steps.size();
    launches += part.launches;
    CHECK(part.versions == (part.sizes == subgraph_class::nac ? 0U : 1U));
  }
  CHECK(launches == p.kernel_count());
  CHECK(steps == static_cast<std::size_t>(std::count_if(p.steps.begin(), p.steps.end(), [](const placed_node& s) {
          return s.where == placement::device || is_on_host(s.where);
        })));
}

TEST_CASE("SoD2 section 4.3: who needs a size that a launch decides is ordered behind it", "[golden]") {
  // The conversion reads no tensor, only an expression of the size that NonZero finds.
  figure f;
  const value_id found = f.node("NonZero", {f.node("Relu", {f.input("x", {16, 16})})});
  f.g.add_output(f.node("Cast", {found}, with("to", std::int64_t{1})));
  f.g.add_output(f.node("Sqrt", {f.node("Cast", {f.node("Shape", {found})}, with("to", std::int64_t{1}))}));
  const program p = placed(f.g);
  const memory::order_graph order = order_graph_of(p, storages_of(p), symbol_values());
  std::vector<bool> behind(p.steps.size(), false);
  bool reads_size = false;
  for (std::size_t s = 0; s < p.steps.size(); ++s) {
    const std::string_view op = f.g.node_at(p.steps[s].id).op->name;
    behind[s] = op == "NonZero";
    for (const std::uint32_t before : order.operations[s].after) behind[s] = behind[s] || behind[before];
    if (op != "Sqrt" || p.steps[s].where != placement::device) continue;
    reads_size = true;
    CHECK(behind[s]);
  }
  CHECK(reads_size);
}

TEST_CASE("SoD2 section 4.3: sizes that grow apart call for several orders", "[golden]") {
  // Two branches, each wide in another symbol; which one is to run first depends on which is larger.
  figure f;
  const index_expr a = f["a"];
  const index_expr b = f["b"];
  const auto reduced = [&](value_id v) { return f.node("MatMul", {v, f.weights({64, 1})}); };
  const value_id x = f.input("x", {a, 8});
  const value_id y = f.input("y", {b, 8});
  const value_id wide_x = f.node("MatMul", {x, f.weights({8, 64})});
  const value_id wide_y = f.node("MatMul", {y, f.weights({8, 64})});
  f.g.add_output(f.node("Concat", {f.node("Softmax", {reduced(wide_x)}), f.node("Softmax", {reduced(wide_y)})},
                        with("axis", std::int64_t{0})));
  const std::vector<program_subgraph> parts = subgraphs_of(placed(f.g));
  REQUIRE(parts.size() == 1);
  CHECK(parts[0].sizes == subgraph_class::mixed);
  CHECK(parts[0].versions >= 2);
  CHECK(parts[0].versions <= 4);
  CHECK(count_subgraphs(parts).mixed_2_4 == 1);
}
