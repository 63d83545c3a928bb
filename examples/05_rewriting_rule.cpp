// Rewrites a graph by dnnopt's tables of rules and by a rule of its own, and prints it before and after.
#include <dnnopt/graph_io.hpp>
#include <dnnopt/ops/standard.hpp>
#include <dnnopt/passes/rewrite.hpp>
#include <dnnopt/passes/rewriting/edit.hpp>
#include <dnnopt/passes/verify.hpp>

#include <array>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

int main() {
  const dnnopt::op_set ops = dnnopt::standard_ops();

  // An exporter's gelu, then DNNFusion's common factor, then a cosine that our own rule knows.
  dnnopt::graph g;
  g.name = "rewritten";
  const auto x = g.add_input("x", dnnopt::dtype::float32, dnnopt::shape{g.expressions().symbol("batch"), 4});
  const auto y = g.add_input("y", dnnopt::dtype::float32, dnnopt::shape{g.expressions().symbol("batch"), 4});
  const auto apply = [&](const char* op, std::vector<dnnopt::value_id> inputs) {
    return dnnopt::rewriting::append(g, ops.at("", op), op, std::move(inputs));
  };
  const auto number = [&](const char* name, float v) { return g.add_constant(name, dnnopt::tensor::scalar(v)); };
  const auto one = number("one", 1.0F);
  const auto erf = apply("Erf", {apply("Div", {x, number("root_of_two", 1.41421356F)})});
  const auto gelu = apply("Mul", {apply("Mul", {x, apply("Add", {erf, one})}), number("half", 0.5F)});
  const auto sum = apply("Add", {apply("Mul", {gelu, x}), apply("Mul", {gelu, y})});
  const auto cosine = apply("Cos", {sum});
  const auto sine = apply("Sin", {sum});
  g.add_output(apply("Add", {apply("Mul", {cosine, cosine}), apply("Mul", {sine, sine})}));
  g.add_output(sum);
  std::printf("%s\n", dnnopt::to_string(g).c_str());

  for (const auto& [rule, times] : dnnopt::recognize{&ops}.run(g).rules)
    std::printf("recognize: %s fired %zu times\n", rule.c_str(), times);
  for (const auto& [rule, times] : dnnopt::rewrite{&ops}.run(g).rules)
    std::printf("rewrite: %s fired %zu times\n", rule.c_str(), times);

  // cos^2 + sin^2 = 1, as a table of one rule. Where x is infinite or NaN the left side is NaN, so that the rule
  // changes the meaning; Expand keeps the shape that readers see.
  using dnnopt::rewriting::meaning;
  using dnnopt::rewriting::rewrite_rule;
  using dnnopt::rewriting::rule_family;
  constexpr std::array table{
      rewrite_rule{.name = "pythagoras",
                   .family = rule_family::distributive,
                   .property = "trigonometry",
                   .pattern = "Add(Mul(Cos(a), Cos(a)), Mul(Sin(a), Sin(a)))",
                   .replacement = "Expand(1, Shape(a))",
                   .condition = "floating(a)",
                   .floating_point = meaning::changed},
  };
  for (const auto& [rule, times] : dnnopt::apply_rules(g, table, ops).rules)
    std::printf("own table: %s fired %zu times\n", rule.c_str(), times);
  g.compact();
  dnnopt::verify(g, "own table");
  std::printf("\n%s", dnnopt::to_string(g).c_str());
}
