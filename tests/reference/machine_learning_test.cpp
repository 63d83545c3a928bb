// Operators of ai.onnx.ml on the reference backend: what models of exporters do not show, and attributes that
// contradict each other. The models of bench/ml hold the rest against ONNX Runtime.
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <catch2/catch.hpp>

#include <dnnopt/graph_io.hpp>
#include <dnnopt/ops/standard.hpp>
#include <dnnopt/reference/evaluator.hpp>
#include <dnnopt/reference/table.hpp>

namespace {

using namespace dnnopt;
using ints = std::vector<std::int64_t>;
using reals = std::vector<float>;
using words = std::vector<std::string>;
using named = std::vector<std::pair<const char*, attribute>>;

std::vector<std::string> run(const char* op, const tensor& x, const named& attributes, std::size_t outputs = 1) {
  attribute_map map;
  for (const auto& [name, held] : attributes) map.set(name, held);
  std::vector<std::string> result;
  for (const tensor& t : reference::evaluate_operator(standard_ops().at("ai.onnx.ml", op), map, {&x, 1}, outputs))
    result.push_back(to_string(t));
  return result;
}
named joined(named first, const named& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}
tensor column(const reals& values) { return tensor::of<float>({static_cast<std::int64_t>(values.size()), 1}, values); }
tensor strings(const words& values) {
  tensor t(dtype::string, {static_cast<std::int64_t>(values.size())});
  t.mutable_strings() = values;
  return t;
}

/// One node that compares feature 0 with 0.5, with leaves 1 where it holds and 2 where not.
named stump(const std::string& mode, std::int64_t when_true = 1) {
  return {{"nodes_treeids", ints{0, 0, 0}},      {"nodes_nodeids", ints{0, 1, 2}},
          {"nodes_featureids", ints{0, 0, 0}},   {"nodes_modes", words{mode, "LEAF", "LEAF"}},
          {"nodes_values", reals{0.5F, 0, 0}},   {"nodes_truenodeids", ints{when_true, 0, 0}},
          {"nodes_falsenodeids", ints{2, 0, 0}}, {"nodes_missing_value_tracks_true", ints{1, 0, 0}}};
}
named regressor(const std::string& mode, const ints& targets = {0, 0}) {
  return joined(stump(mode), {{"target_treeids", ints{0, 0}},
                              {"target_nodeids", ints{1, 2}},
                              {"target_ids", targets},
                              {"target_weights", reals{10, 20}}});
}
named classifier(const ints& classes, const reals& weights) {
  return joined(stump("BRANCH_LT"), {{"class_treeids", ints{0, 0}},
                                     {"class_nodeids", ints{1, 2}},
                                     {"class_ids", classes},
                                     {"class_weights", weights},
                                     {"classlabels_int64s", ints{5, 9}}});
}

}  // namespace

TEST_CASE("every comparison of a tree's node, and where missing values go", "[ml]") {
  const tensor x = column({0.25F, 0.5F, 0.75F, std::numeric_limits<float>::quiet_NaN()});
  CHECK(run("TreeEnsembleRegressor", x, regressor("BRANCH_LEQ"))[0] == "float32 4x1 [10, 10, 20, 10]");
  CHECK(run("TreeEnsembleRegressor", x, regressor("BRANCH_LT"))[0] == "float32 4x1 [10, 20, 20, 10]");
  CHECK(run("TreeEnsembleRegressor", x, regressor("BRANCH_GTE"))[0] == "float32 4x1 [20, 10, 10, 10]");
  CHECK(run("TreeEnsembleRegressor", x, regressor("BRANCH_GT"))[0] == "float32 4x1 [20, 20, 10, 10]");
  CHECK(run("TreeEnsembleRegressor", x, regressor("BRANCH_EQ"))[0] == "float32 4x1 [20, 10, 20, 10]");
  CHECK(run("TreeEnsembleRegressor", x, regressor("BRANCH_NEQ"))[0] == "float32 4x1 [10, 20, 10, 10]");
}

TEST_CASE("leaves of several targets, their aggregates, base values and transforms", "[ml]") {
  const tensor x = column({0.25F, 0.75F});
  const named two = joined(regressor("BRANCH_LEQ", {0, 1}), {{"n_targets", std::int64_t{2}}});
  CHECK(run("TreeEnsembleRegressor", x, joined(two, {{"base_values", reals{1, 2}}}))[0] ==
        "float32 2x2 [11, 2, 1, 22]");
  CHECK(run("TreeEnsembleRegressor", x, joined(two, {{"aggregate_function", std::string("MIN")}}))[0] ==
        "float32 2x2 [10, 0, 0, 20]");
  // The only target is transformed by PROBIT alone, as in ONNX Runtime.
  CHECK(run("TreeEnsembleRegressor", x,
            joined(regressor("BRANCH_LEQ"), {{"post_transform", std::string("LOGISTIC")}}))[0] ==
        "float32 2x1 [10, 20]");
}

TEST_CASE("a leaf votes once for an only target and as often as it is given for one of several", "[ml]") {
  const tensor x = column({0.25F, 0.75F});
  const named thrice = joined(stump("BRANCH_LEQ"), {{"target_treeids", ints{0, 0, 0, 0}},
                                                    {"target_nodeids", ints{1, 1, 1, 2}},
                                                    {"target_ids", ints{0, 0, 0, 0}},
                                                    {"target_weights", reals{3, 1, 4, 20}}});
  for (const char* how : {"SUM", "AVERAGE", "MIN", "MAX"})
    CHECK(run("TreeEnsembleRegressor", x, joined(thrice, {{"aggregate_function", std::string(how)}}))[0] ==
          "float32 2x1 [3, 20]");
  CHECK(run("TreeEnsembleRegressor", x, joined(thrice, {{"n_targets", std::int64_t{2}}}))[0] ==
        "float32 2x2 [8, 0, 20, 0]");
}

TEST_CASE("two classes that leaves vote for by one score", "[ml]") {
  const tensor x = column({0.25F, 0.75F});
  const auto probabilities = run("TreeEnsembleClassifier", x, classifier({0, 0}, {0.25F, 0.75F}), 2);
  CHECK(probabilities[0] == "int64 2 [5, 9]");
  CHECK(probabilities[1] == "float32 2x2 [0.75, 0.25, 0.25, 0.75]");
  const auto margins = run("TreeEnsembleClassifier", x, classifier({0, 0}, {-2, 3}), 2);
  CHECK(margins[0] == "int64 2 [5, 9]");
  CHECK(margins[1] == "float32 2x2 [2, -2, -3, 3]");
  // Where leaves vote for both, the larger score decides.
  const auto both = run("TreeEnsembleClassifier", x, classifier({0, 1}, {2, 3}), 2);
  CHECK(both[0] == "int64 2 [5, 9]");
  CHECK(both[1] == "float32 2x2 [2, 0, 0, 3]");
}

TEST_CASE("trees that contradict themselves are refused", "[ml]") {
  const tensor x = column({0.25F});
  const auto refused = [&](named a, const char* text) {
    CHECK_THROWS_WITH(run("TreeEnsembleRegressor", x, a), Catch::Contains(text));
  };
  const named leaves{
      {"target_treeids", ints{0}}, {"target_nodeids", ints{2}}, {"target_ids", ints{0}}, {"target_weights", reals{1}}};
  refused(joined(stump("BRANCH_LEQ", 0), leaves), "circle");
  refused(joined(stump("BRANCH_LEQ", 7), leaves), "no node 7");
  refused(joined(stump("BRANCH_ALMOST"), leaves), "BRANCH_ALMOST");
  refused(regressor("BRANCH_LEQ", {0, 3}), "target 3 of 1");
  named short_list = regressor("BRANCH_LEQ");
  short_list[4].second = reals{0.5F};
  refused(short_list, "nodes_values");
  named wide = regressor("BRANCH_LEQ");
  wide[2].second = ints{4, 0, 0};
  refused(wide, "feature 4 of rows of 1");
}

TEST_CASE("labels in every form, with defaults", "[ml]") {
  CHECK(run("LabelEncoder", strings({"b", "q"}), {{"classes_strings", words{"a", "b"}}})[0] == "int64 2 [1, -1]");
  CHECK(run("LabelEncoder", tensor::of<std::int64_t>({2}, ints{1, 7}), {{"classes_strings", words{"a", "b"}}})[0] ==
        "string 2 [\"b\", \"_Unused\"]");
  const float nan = std::numeric_limits<float>::quiet_NaN();
  CHECK(run("LabelEncoder", tensor::of<float>({3}, reals{nan, 2, 3}),
            {{"keys_floats", reals{2, nan}}, {"values_int64s", ints{20, 30}}, {"default_int64", std::int64_t{7}}})[0] ==
        "int64 3 [30, 20, 7]");
  CHECK(run("CategoryMapper", strings({"y", "z"}),
            {{"cats_strings", words{"x", "y"}}, {"cats_int64s", ints{3, 4}}})[0] == "int64 2 [4, -1]");
  CHECK_THROWS_WITH(run("LabelEncoder", strings({"b"}), {{"keys_int64s", ints{1}}, {"values_int64s", ints{2}}}),
                    Catch::Contains("keys of int64"));
  CHECK_THROWS_WITH(
      run("LabelEncoder", strings({"b"}), {{"keys_strings", words{"b", "c"}}, {"values_int64s", ints{2}}}),
      Catch::Contains("2 keys and 1 values"));
}

TEST_CASE("an element of no category is an error or zeros", "[ml]") {
  const named cats{{"cats_int64s", ints{3, 4}}};
  const tensor x = tensor::of<float>({2}, reals{4, 9});
  CHECK(run("OneHotEncoder", x, joined(cats, {{"zeros", std::int64_t{1}}}))[0] == "float32 2x2 [0, 1, 0, 0]");
  CHECK_THROWS_WITH(run("OneHotEncoder", x, joined(cats, {{"zeros", std::int64_t{0}}})), Catch::Contains("element 1"));
}

TEST_CASE("maps from and to tensors", "[ml]") {
  const op_set ops = standard_ops();
  graph g;
  const value_id x = g.add_input("x", dtype::float32, shape{2, 2});
  const value_id maps = g.add_value("maps");
  attribute_map labels;
  labels.set("classlabels_strings", words{"no", "yes"});
  g.add_node(ops.at("ai.onnx.ml", "ZipMap"), "zip", {x}, {maps}, labels);
  g.add_output(maps);
  const tensor rows = tensor::of<float>({2, 2}, reals{1, 2, 3, 4});
  const reference::host_value out = reference::evaluator().run(g, {rows}).at(0);
  CHECK(out.kind == value_kind::sequence);
  CHECK(out.element == value_kind::map);
  REQUIRE(out.items.size() == 4);
  CHECK(to_string(out.items[2]) == "string 2 [\"no\", \"yes\"]");
  CHECK(to_string(out.items[3]) == "float32 2 [3, 4]");

  graph d;
  const value_id map = d.add_value("map");
  d.facts(map).kind = value_kind::map;
  d.set_inputs({map});
  const value_id y = d.add_value("y");
  attribute_map vocabulary;
  vocabulary.set("string_vocabulary", words{"yes", "maybe", "no"});
  d.add_node(ops.at("ai.onnx.ml", "DictVectorizer"), "d", {map}, {y}, vocabulary);
  d.add_output(y);
  const auto vector = reference::evaluator().run(d, {reference::host_value::map(out.items[2], out.items[3])});
  CHECK(to_string(vector.at(0).content) == "float32 1x3 [4, 0, 3]");
}
