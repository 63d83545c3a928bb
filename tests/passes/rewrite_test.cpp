// Every rewriting rule alone, driven by the tables: both sides agree on random tensors, and the rule stays off where
// its domain ends.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <catch2/catch.hpp>

#include <dnnopt/counter_random.hpp>
#include <dnnopt/ops/reshape.hpp>
#include <dnnopt/ops/standard.hpp>
#include <dnnopt/passes/rewrite.hpp>
#include <dnnopt/passes/rewriting/edit.hpp>
#include <dnnopt/passes/verify.hpp>
#include <dnnopt/reference/evaluate_node.hpp>

namespace {

using namespace dnnopt;
using namespace dnnopt::rewriting;

/// What an example says of one variable.
struct operand {
  dtype type = dtype::float32;
  bool positive = false;
  bool constant = false;
  std::optional<double> number;
  std::optional<std::vector<std::int64_t>> list;
  dim_list dims{3, 4};
};

std::vector<std::int64_t> integers_in(std::string_view text) {
  std::vector<std::int64_t> out;
  const std::string copy(text);
  const char* at = copy.c_str();
  while (*at != 0) {
    char* end = nullptr;
    const std::int64_t v = std::strtoll(at, &end, 10);
    if (end == at) {
      ++at;
      continue;
    }
    out.push_back(v);
    at = end;
  }
  return out;
}

operand parse_operand(std::string_view text) {
  operand o;
  const auto take = [&](char c) {
    if (text.empty() || text[0] != c) return false;
    text.remove_prefix(1);
    return true;
  };
  o.constant = take('#');
  if (!text.empty() && text[0] == '[') {
    o.list = integers_in(text);
    o.type = dtype::int64;
    return o;
  }
  if (take('i')) o.type = dtype::int64;
  if (take('u')) o.type = dtype::uint64;
  if (take('b')) o.type = dtype::boolean;
  if (take('=')) {
    o.number = std::strtod(std::string(text).c_str(), nullptr);
    o.dims.clear();
    return o;
  }
  o.positive = take('+');
  o.dims.clear();
  while (!text.empty()) {
    const std::size_t x = text.find('x');
    o.dims.push_back(std::strtoll(std::string(text.substr(0, x)).c_str(), nullptr, 10));
    text.remove_prefix(x == std::string_view::npos ? text.size() : x + 1);
  }
  return o;
}

/// An example or counterexample: operands and attributes by name.
std::map<std::string, std::string, std::less<>> parse_example(std::string_view text) {
  std::map<std::string, std::string, std::less<>> out;
  while (!text.empty()) {
    const std::size_t space = text.find(' ');
    const std::string_view one = text.substr(0, space);
    const std::size_t equal = one.find('=');
    if (equal != std::string_view::npos) out.emplace(one.substr(0, equal), one.substr(equal + 1));
    text.remove_prefix(space == std::string_view::npos ? text.size() : space + 1);
  }
  return out;
}

tensor random_tensor(const operand& o, std::uint64_t seed) {
  const auto count = static_cast<std::uint64_t>(element_count(o.dims));
  std::vector<double> numbers;
  if (o.list) return tensor::of<std::int64_t>({static_cast<std::int64_t>(o.list->size())}, *o.list);
  for (std::uint64_t i = 0; i < count; ++i) {
    const double unit = static_cast<double>(counter_random(seed, 0).uniform(i));
    if (o.number)
      numbers.push_back(*o.number);
    else if (o.type == dtype::float32)
      numbers.push_back(o.positive ? 0.5 + unit : 4 * unit - 2);
    else if (o.type == dtype::boolean)
      numbers.push_back(unit < 0.5 ? 0 : 1);
    else
      numbers.push_back(std::floor(unit * 40) + 1);
  }
  return tensor_of(o.type, o.dims, numbers);
}

/// The graph of a rule's pattern under an example.
struct pattern_graph {
  graph g;
  std::vector<tensor> inputs;
  std::set<std::string> unread;  ///< keys of the example that nothing took

  /// `vanishing`: what dims of inputs are this are one symbol, which is 0 in `inputs`.
  pattern_graph(const compiled_rule& rule, std::string_view example, std::size_t mutated = SIZE_MAX,
                std::int64_t vanishing = -1) {
    const op_info* identity = &op_row<ops::identity_op>;
    auto known = parse_example(example);
    std::set<std::string> taken;
    std::map<std::string, value_id> variables;
    std::vector<value_id> made;
    const term& t = rule.pattern;
    const dtype numbers = number_type(rule, known);
    for (std::size_t i = 0; i < t.nodes.size(); ++i) {
      const term_node& n = t.nodes[i];
      const std::string name(n.name);
      if (n.kind == term_node::form::number) {
        const double other = numbers == dtype::boolean ? 1 - n.number : n.number * 1.5 + 0.25;
        const double changed = i == mutated ? other : n.number;
        made.push_back(g.add_constant("n" + std::to_string(i),
                                      tensor_of(numbers, number_dims(known, taken), number_list(known, changed))));
      } else if (n.kind == term_node::form::integers) {
        std::vector<std::int64_t> list = n.integers;
        for (std::int64_t& v : list) v += i == mutated ? 1 : 0;
        made.push_back(g.add_constant("n" + std::to_string(i),
                                      tensor::of<std::int64_t>({static_cast<std::int64_t>(list.size())}, list)));
      } else if (n.kind == term_node::form::variable) {
        const auto given = known.find(name);
        if (given != known.end()) taken.insert(name);
        if (n.optional && given == known.end()) {
          made.push_back(no_value);
          continue;
        }
        auto [at, added] = variables.emplace(i == mutated ? name + "'" : name, no_value);
        if (added) {
          operand o = given == known.end() ? operand{} : parse_operand(given->second);
          shape dims = to_shape(o.dims);
          if (!o.constant && !o.list)
            for (std::size_t k = 0; k < dims.size(); ++k)
              if (o.dims[k] == vanishing) dims[k] = g.expressions().symbol("n"), o.dims[k] = 0;
          const tensor content = random_tensor(o, 1000 + g.value_count());
          if (o.constant || o.list) {
            at->second = g.add_constant(at->first, content);
          } else {
            at->second = g.add_input(at->first, content.type(), dims);
            inputs.push_back(content);
          }
        }
        made.push_back(at->second);
      } else {
        std::vector<value_id> read;
        for (const std::size_t child : n.children) read.push_back(made[child]);
        while (!read.empty() && read.back() == no_value) read.pop_back();
        const value_id out = g.add_value("v" + std::to_string(i));
        const node_id id = g.add_node(*rule.pattern_ops[i], "node" + std::to_string(i), read, {out},
                                      attributes_of(rule, n, known, taken));
        infer_outputs(g, id);
        made.push_back(out);
      }
    }
    // A graph output must keep its own name, so that a rule could not put an input in its place.
    g.add_output(append(g, *identity, "out", {made.back()}));
    for (const auto& [key, text] : known)
      if (!taken.contains(key) && key != "number") unread.insert(key);
  }

 private:
  static dtype number_type(const compiled_rule& rule, const std::map<std::string, std::string, std::less<>>& known) {
    for (const term_node& n : rule.pattern.nodes)
      if (n.kind == term_node::form::variable)
        if (const auto given = known.find(n.name); given != known.end() && n.name == "x")
          return parse_operand(given->second).type;
    return dtype::float32;
  }
  static dim_list number_dims(const std::map<std::string, std::string, std::less<>>& known, std::set<std::string>&) {
    const auto given = known.find("number");
    return given == known.end() ? dim_list{} : dim_list(integers_in(given->second));
  }
  static std::vector<double> number_list(const std::map<std::string, std::string, std::less<>>& known, double v) {
    const auto given = known.find("number");
    return std::vector<double>(given == known.end() ? 1 : static_cast<std::size_t>(integers_in(given->second)[0]), v);
  }
  static attribute_map attributes_of(const compiled_rule& rule, const term_node& n,
                                     const std::map<std::string, std::string, std::less<>>& known,
                                     std::set<std::string>& taken) {
    attribute_map out;
    (void)rule;
    for (const attribute_term& one : n.attributes) {
      if (one.or_absent) continue;
      switch (one.kind) {
        case attribute_term::form::integer:
          out.set(std::string(one.key), one.integer);
          break;
        case attribute_term::form::real:
          out.set(std::string(one.key), static_cast<float>(one.real));
          break;
        case attribute_term::form::text:
          out.set(std::string(one.key), std::string(one.text));
          break;
        default:
          out.set(std::string(one.key), one.integers);
      }
    }
    for (const auto& [key, text] : known) {
      const std::size_t dot = key.find('.');
      if (dot == std::string::npos || n.label.empty() || key.substr(0, dot) != n.label) continue;
      taken.insert(key);
      const std::string attribute_name = key.substr(dot + 1);
      if (text[0] == '[')
        out.set(attribute_name, integers_in(text));
      else if (text.starts_with("#="))
        out.set(attribute_name, tensor::of<float>({1}, {std::strtof(text.c_str() + 2, nullptr)}));
      else if (text.find('.') != std::string::npos)
        out.set(attribute_name, std::strtof(text.c_str(), nullptr));
      else
        out.set(attribute_name, std::int64_t{std::strtoll(text.c_str(), nullptr, 10)});
    }
    return out;
  }
};

std::vector<rewrite_rule> all_rules() {
  std::vector<rewrite_rule> rules = algebraic_rules();
  for (const rewrite_rule& rule : export_rules())
    if (rule.family != rule_family::commutative) rules.push_back(rule);
  return rules;
}

std::size_t fired(graph& g, const rewrite_rule& rule, const op_set& ops, rewrite_options options = {}) {
  return apply_rules(g, std::span(&rule, 1), ops, options).edits;
}

bool close(const tensor& a, const tensor& b) {
  if (a.type() != b.type() || a.dims() != b.dims()) return false;
  const auto x = numbers_of(a);
  const auto y = numbers_of(b);
  if (!x || !y) return false;
  for (std::size_t i = 0; i < x->size(); ++i) {
    const double difference = std::abs((*x)[i] - (*y)[i]);
    const bool same = (*x)[i] == (*y)[i] || (std::isnan((*x)[i]) && std::isnan((*y)[i]));
    const bool near = std::isfinite(difference) && difference <= 1e-4 * (1 + std::abs((*x)[i]));
    if (!near && !same) return false;
  }
  return true;
}

}  // namespace

TEST_CASE("the families hold the rules that DNNFusion counts, under names of their own") {
  std::map<rule_family, std::size_t> count;
  std::set<std::string_view> names;
  for (const rewrite_rule& rule : all_rules()) {
    ++count[rule.family];
    INFO(rule.name);
    CHECK(names.insert(rule.name).second);
  }
  CHECK(count[rule_family::associative] >= 45);
  CHECK(count[rule_family::distributive] >= 38);
  CHECK(count[rule_family::commutative] >= 66);
  CHECK(count[rule_family::recognition] >= 30);
}

TEST_CASE("every rule fires on its example and both sides agree") {
  const op_set ops = standard_ops();
  const std::vector<rewrite_rule> rules = all_rules();
  const std::vector<compiled_rule> compiled = compile_rules(rules, ops);
  for (std::size_t i = 0; i < rules.size(); ++i) {
    INFO(rules[i].name << ": " << rules[i].pattern << " -> " << rules[i].replacement);
    pattern_graph example(compiled[i], rules[i].example);
    CHECK(example.unread.empty());
    const std::vector<tensor> before = reference::evaluate(example.g, example.inputs);
    CHECK(fired(example.g, rules[i], ops) >= 1);
    CHECK_NOTHROW(verify(example.g, rules[i].name));
    const std::vector<tensor> after = reference::evaluate(example.g, example.inputs);
    CHECK(close(before[0], after[0]));
    // A second run finds nothing more to do.
    CHECK(fired(example.g, rules[i], ops) == 0);
  }
}

TEST_CASE("rules hold where a run finds a dim to be 0") {
  const op_set ops = standard_ops();
  const std::vector<rewrite_rule> rules = all_rules();
  const std::vector<compiled_rule> compiled = compile_rules(rules, ops);
  std::size_t compared = 0;
  for (std::size_t i = 0; i < rules.size(); ++i)
    for (std::int64_t extent = 1; extent <= 8; ++extent) {
      INFO(rules[i].name << ": " << rules[i].pattern << " -> " << rules[i].replacement << ", dims of " << extent);
      std::vector<tensor> before;
      std::optional<pattern_graph> example;
      try {
        example.emplace(compiled[i], rules[i].example, SIZE_MAX, extent);
        before = reference::evaluate(example->g, example->inputs);
      } catch (const error&) {
        continue;  // the example's attributes or constants need the dim
      }
      if (std::none_of(example->inputs.begin(), example->inputs.end(), [](const tensor& t) {
            return std::find(t.dims().begin(), t.dims().end(), 0) != t.dims().end();
          }))
        continue;
      if (fired(example->g, rules[i], ops) == 0) continue;
      CHECK_NOTHROW(verify(example->g, rules[i].name));
      std::vector<tensor> after;
      CHECK_NOTHROW(after = reference::evaluate(example->g, example->inputs));
      if (!after.empty()) CHECK(close(before[0], after[0]));
      ++compared;
    }
  CHECK(compared >= 100);
}

TEST_CASE("no rule fires outside its domain") {
  const op_set ops = standard_ops();
  const std::vector<rewrite_rule> rules = all_rules();
  const std::vector<compiled_rule> compiled = compile_rules(rules, ops);
  std::string without_case;
  for (std::size_t i = 0; i < rules.size(); ++i) {
    INFO(rules[i].name << ": " << rules[i].pattern << " with " << rules[i].counterexample);
    std::size_t cases = 0;
    if (!rules[i].counterexample.empty()) {
      pattern_graph outside(compiled[i], rules[i].counterexample);
      CHECK(fired(outside.g, rules[i], ops) == 0);
      ++cases;
    }
    // Other numbers than the pattern's, and other values where it reads one twice.
    std::set<std::string_view> seen;
    for (std::size_t k = 0; k < compiled[i].pattern.nodes.size(); ++k) {
      const term_node& n = compiled[i].pattern.nodes[k];
      const bool repeated = n.kind == term_node::form::variable && !n.optional && !seen.insert(n.name).second;
      if (n.kind != term_node::form::number && n.kind != term_node::form::integers && !repeated) continue;
      pattern_graph outside(compiled[i], rules[i].example, k);
      INFO("node " << k << " of the pattern changed");
      CHECK(fired(outside.g, rules[i], ops) == 0);
      ++cases;
    }
    // A rule that always holds must still tell its operators from others.
    if (cases == 0) {
      compiled_rule other = compiled[i];
      std::size_t inner = SIZE_MAX;
      for (const std::size_t operands : {std::size_t{1}, std::size_t{2}})
        for (std::size_t k = 0; k < other.pattern_ops.size() && inner == SIZE_MAX; ++k)
          if (other.pattern_ops[k] != nullptr && other.pattern.nodes[k].children.size() == operands) inner = k;
      if (inner == SIZE_MAX) {
        without_case += " " + std::string(rules[i].name);
        continue;
      }
      const term_node& changed = other.pattern.nodes[inner];
      const char* instead = "Identity";
      if (changed.children.size() == 2) {
        const auto known = parse_example(rules[i].example);
        const auto second = known.find(other.pattern.nodes[changed.children[1]].name);
        const dtype type = second == known.end() ? dtype::float32 : parse_operand(second->second).type;
        instead = type == dtype::int64     ? "Gather"
                  : type != dtype::boolean ? "PRelu"
                  : changed.name == "Xor"  ? "And"
                                           : "Xor";
      }
      other.pattern_ops[inner] = &ops.at("", instead);
      other.pattern.nodes[inner].attributes.clear();
      pattern_graph outside(other, rules[i].example);
      CHECK(fired(outside.g, rules[i], ops) == 0);
    }
  }
  // A rule without a case outside its domain needs a counterexample in its row.
  CHECK(without_case == "");
}

TEST_CASE("rules that change overflow, infinities or NaN can be switched off") {
  const op_set ops = standard_ops();
  const std::vector<rewrite_rule> rules = all_rules();
  const std::vector<compiled_rule> compiled = compile_rules(rules, ops);
  for (std::size_t i = 0; i < rules.size(); ++i) {
    if (rules[i].floating_point != meaning::changed) continue;
    INFO(rules[i].name);
    pattern_graph example(compiled[i], rules[i].example);
    CHECK(fired(example.g, rules[i], ops, {.change_meaning = false}) == 0);
  }
}

TEST_CASE("an inner node with another reader stays, and the rule fires only where that still pays") {
  const op_set ops = standard_ops();
  graph g;
  const value_id a = g.add_input("a", dtype::float32, shape{3, 4});
  const value_id b = g.add_input("b", dtype::float32, shape{3, 4});
  const auto node = [&](const char* op, std::vector<value_id> inputs) { return append(g, ops.at("", op), op, inputs); };
  const value_id left = node("Exp", {a});
  const value_id right = node("Exp", {b});
  const value_id product = node("Mul", {left, right});
  g.add_output(product);
  SECTION("both exponentials are read elsewhere: three operations would become four") {
    g.add_output(left);
    g.add_output(right);
    CHECK(apply_rules(g, associative_rules, ops).rules.count("exponentials_join") == 0);
  }
  SECTION("nothing else reads them") {
    CHECK(apply_rules(g, associative_rules, ops).rules.at("exponentials_join") == 1);
  }
}

TEST_CASE("a rule of one's own that lowers no work is told") {
  const op_set ops = standard_ops();
  const auto graph_of = [&] {
    graph g;
    const value_id a = g.add_input("a", dtype::float32, shape{4});
    const value_id b = g.add_input("b", dtype::float32, shape{4});
    g.add_output(append(g, ops.at("", "Add"), "sum", {a, b}));
    return g;
  };
  rewrite_rule rule{.name = "turned",
                    .family = rule_family::commutative,
                    .property = "commutative",
                    .pattern = "Add(a, b)",
                    .replacement = "Sub(a, Neg(b))",
                    .condition = ""};
  graph g = graph_of();
  const pass_result idle = apply_rules(g, std::span(&rule, 1), ops);
  CHECK(idle.edits == 0);
  REQUIRE(idle.remarks.size() == 1);
  CHECK_THAT(idle.remarks[0], Catch::Contains("rule 'turned' matches 1 time and lowers no work"));
  // Where it matches nothing there is nothing to tell.
  rule.pattern = "Mul(a, b)";
  CHECK(apply_rules(g, std::span(&rule, 1), ops).remarks.empty());
}

TEST_CASE("symbolic shapes: a rule fires where dims are provably equal") {
  const op_set ops = standard_ops();
  graph g;
  const index_expr n = g.expressions().symbol("n");
  const index_expr k = g.expressions().symbol("k");
  const value_id a = g.add_input("a", dtype::float32, shape{n, 4});
  const value_id b = g.add_input("b", dtype::float32, shape{n, 4});
  const value_id c = g.add_input("c", dtype::float32, shape{k, 4});
  const auto node = [&](const char* op, std::vector<value_id> inputs) { return append(g, ops.at("", op), op, inputs); };
  // (a - b) + b is a whatever n is; (a - c) + c is a only where k is 1 or n.
  g.add_output(node("Neg", {node("Add", {node("Sub", {a, b}), b})}));
  g.add_output(node("Neg", {node("Add", {node("Sub", {a, c}), c})}));
  CHECK(apply_rules(g, associative_rules, ops).rules.at("addend_cancels_subtrahend") == 1);
}

TEST_CASE("a conversion that takes its type from another tensor keeps its attributes") {
  const op_set ops = standard_ops();
  graph g;
  const value_id a = g.add_input("a", dtype::float32, shape{4});
  const value_id b = g.add_input("b", dtype::float8e4m3fn, shape{1});
  const value_id c = append(g, ops.at("", "CastLike"), "like", {a, b});
  g.add_output(c);
  const node_id like = g.value_at(c).producer;
  g.attributes(like).set("saturate", std::int64_t{0});
  CHECK(apply_rules(g, canonicalization_rules, ops).rules.at("cast_like") == 1);
  const node& made = g.node_at(g.value_at(g.outputs()[0]).producer);
  CHECK(made.op->name == "Cast");
  CHECK(made.attributes.get_int("to", 0) == static_cast<std::int64_t>(dtype::float8e4m3fn));
  CHECK(made.attributes.get_int("saturate", 1) == 0);
}

TEST_CASE("the largest reduction is applied first") {
  const op_set ops = standard_ops();
  constexpr std::array table{
      rewriting::detail::associative("small", "Add(Add(x, y), z)", "Add(x, z)"),
      rewriting::detail::associative("large", "Mul(Add(Add(x, y), z), 2)", "Mul(x, 2)"),
  };
  graph g;
  const value_id x = g.add_input("x", dtype::float32, shape{4});
  const auto node = [&](const char* op, std::vector<value_id> inputs) { return append(g, ops.at("", op), op, inputs); };
  const value_id two = g.add_constant("two", tensor::scalar<float>(2));
  g.add_output(node("Mul", {node("Add", {node("Add", {x, x}), x}), two}));
  const pass_result result = apply_rules(g, table, ops);
  CHECK(result.rules.size() == 1);
  CHECK(result.rules.at("large") == 1);
}

TEST_CASE("the graphs of DNNFusion's Fig. 2") {
  const op_set ops = standard_ops();
  graph g;
  const auto input = [&](const char* name, std::int64_t rows, std::int64_t columns) {
    return g.add_input(name, dtype::float32, shape{rows, columns});
  };
  const value_id a = input("A", 3, 5);
  const value_id b = input("B", 5, 4);
  const value_id c = input("C", 3, 4);
  const auto node = [&](const char* op, std::vector<value_id> inputs) { return append(g, ops.at("", op), op, inputs); };
  const value_id product = node("MatMul", {a, b});
  const auto count = [&](const char* op) {
    std::size_t n = 0;
    for (const node_id id : g.nodes()) n += g.node_at(id).op->name == op ? 1 : 0;
    return n;
  };
  SECTION("(a): the product's reciprocal times that of itself times C") {
    // The print's (A B)^-2 C ought to be (A B)^-2 C^-1. With reciprocals joined as well there is one of all.
    const value_id left = node("Reciprocal", {product});
    g.add_output(node("Mul", {left, node("Reciprocal", {node("Mul", {product, c})})}));
    const pass_result result = apply_rules(g, algebraic_rules(), ops);
    CHECK(result.rules.count("reciprocals_join") + result.rules.count("reciprocal_of_product") >= 1);
    CHECK(count("Reciprocal") == 1);
    CHECK(count("Mul") == 2);
    CHECK(count("MatMul") == 1);
  }
  SECTION("(b): two products with C and D") {
    const value_id d = input("D", 3, 4);
    g.add_output(node("Add", {node("Mul", {product, c}), node("Mul", {product, d})}));
    const pass_result result = apply_rules(g, algebraic_rules(), ops);
    CHECK(result.rules.at("common_factor") == 1);
    CHECK(count("Mul") == 1);
    CHECK(count("Add") == 1);
  }
}

TEST_CASE("the graph is cut at operators that no rule mentions") {
  const op_set ops = standard_ops();
  const std::vector<rewrite_rule> rules = algebraic_rules();
  const std::vector<compiled_rule> compiled = compile_rules(rules, ops);
  graph g;
  value_id x = g.add_input("x", dtype::float32, shape{3, 4});
  for (const char* op : {"Exp", "Neg", "Softmax", "Exp", "Det", "Neg"}) {
    if (std::string_view(op) == "Det") continue;
    x = append(g, ops.at("", op), op, {x});
  }
  g.add_output(x);
  const auto parts = engine(compiled, {}).partitions(g);
  REQUIRE(parts.size() == 2);
  CHECK(parts[0].size() == 2);
  CHECK(parts[1].size() == 2);
}

TEST_CASE("a rule's text is checked") {
  const op_set ops = standard_ops();
  const auto compile = [&](const char* pattern, const char* replacement) {
    const rewrite_rule rule = rewriting::detail::associative("one", pattern, replacement);
    (void)compile_rules(std::span(&rule, 1), ops);
  };
  CHECK_NOTHROW(compile("Add(x, 0)", "x"));
  CHECK_THROWS_AS(compile("Add(x, 0", "x"), error);
  CHECK_THROWS_AS(compile("Add(x, 0)", "y"), error);
  CHECK_THROWS_AS(compile("Nonsense(x)", "x"), error);
  CHECK_THROWS_AS(compile("x", "x"), error);
}

TEST_CASE("a constant that a type holds is that number alone") {
  using dnnopt::dtype;
  using dnnopt::rewriting::is_rounded;
  const auto single = [](float v) { return static_cast<double>(v); };
  CHECK(is_rounded(1, 1, dtype::float32));
  CHECK_FALSE(is_rounded(single(0.99999905F), 1, dtype::float32));
  CHECK_FALSE(is_rounded(single(0.50000006F), 0.5, dtype::float32));
  CHECK_FALSE(is_rounded(0.9995117, 1, dtype::float16));
  CHECK(is_rounded(single(0.7071068F), 0.70710678118654752, dtype::float32));
  CHECK(is_rounded(single(0.70710671F), 0.70710678118654752, dtype::float32));
  CHECK(is_rounded(0.70703125, 0.70710678118654752, dtype::float16));
}
