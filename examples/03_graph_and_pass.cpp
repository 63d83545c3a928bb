// Builds a graph in code, runs dnnopt's passes over it and one pass of its own, and prints it before and after.
#include <dnnopt/dnnopt.hpp>
#include <dnnopt/graph_io.hpp>
#include <dnnopt/passes/verify.hpp>
#include <dnnopt/reference/evaluate_node.hpp>

#include <cstdio>
#include <string>
#include <string_view>

namespace {

/// Before: Mul(x, 2). After: Add(x, x). Only for a scalar two, so that the output's shape is the input's.
struct double_by_adding {
  static constexpr std::string_view name = "double_by_adding";
  const dnnopt::op_set& ops;

  dnnopt::pass_result run(dnnopt::graph& g) const {
    dnnopt::pass_result result;
    for (const dnnopt::node_id id : g.topological_order()) {
      const dnnopt::node& n = g.node_at(id);
      if (n.op != ops.find("", "Mul")) continue;
      const dnnopt::tensor& factor = g.facts(n.inputs[1]).constant;
      if (factor.type() != dnnopt::dtype::float32 || factor.rank() != 0 || factor.data<float>()[0] != 2.0F) continue;
      g.set_node_op(id, ops.at("", "Add"), {});
      g.set_node_input(id, 1, n.inputs[0]);
      ++result.edits;
    }
    return result;
  }
};
static_assert(dnnopt::Pass<double_by_adding>);

}  // namespace

int main() {
  const dnnopt::op_set ops = dnnopt::standard_ops();

  // y = Relu(Identity(x) * (0.5 + 1.5)), with a symbolic batch.
  dnnopt::graph g;
  g.name = "doubled";
  const auto x = g.add_input("x", dnnopt::dtype::float32, dnnopt::shape{g.expressions().symbol("batch"), 4});
  const auto half = g.add_constant("half", dnnopt::tensor::scalar(0.5F));
  const auto rest = g.add_constant("rest", dnnopt::tensor::scalar(1.5F));
  const auto apply = [&](std::string_view op, std::vector<dnnopt::value_id> inputs, std::string output) {
    const auto made = g.add_value(output);
    g.add_node(ops.at("", op), output, std::move(inputs), {made});
    return made;
  };
  const auto same = apply("Identity", {x}, "same");
  const auto factor = apply("Add", {half, rest}, "factor");
  const auto scaled = apply("Mul", {same, factor}, "scaled");
  g.add_output(apply("Relu", {scaled}, "y"));
  std::printf("%s\n", dnnopt::to_string(g).c_str());

  dnnopt::pass_environment environment;
  environment.evaluate = &dnnopt::reference::evaluate_node;
  for (const auto& report :
       dnnopt::run_passes(g, dnnopt::pass_names("rdp,fold_constants,remove_identity"), environment))
    std::printf("%s: %zu edits\n", report.name.c_str(), report.edits);
  std::printf("double_by_adding: %zu edits\n", double_by_adding{ops}.run(g).edits);
  g.compact();
  dnnopt::verify(g, "double_by_adding");
  std::printf("\n%s", dnnopt::to_string(g).c_str());
}
