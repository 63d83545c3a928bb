// Generated weights and inputs: what decides them, that they repeat, and that signals keep their size.
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <unistd.h>

#include <catch2/catch.hpp>

#include <dnnopt/ops/standard.hpp>
#include <dnnopt/zoo/choose_dims.hpp>
#include <dnnopt/zoo/generate_inputs.hpp>
#include <dnnopt/zoo/generate_weights.hpp>

#include <support/onnx_writer.hpp>

namespace {

using namespace dnnopt;
namespace w = dnnopt_tests;
using onnx::weight_role;

import_options options(bool zeros) {
  import_options o;
  o.ops = standard_ops();
  if (zeros) o.missing_data = onnx::missing_data::zeros;
  return o;
}

w::message external(std::string_view name, const std::vector<std::int64_t>& dims, std::int64_t offset) {
  return w::external_tensor(name, dims,
                            {w::entry("location", "m.weights"), w::entry("offset", std::to_string(offset))});
}

/// ids -> table -> norm -> matrix product + bias, and an image through a convolution with stored statistics.
w::message network() {
  return w::model(w::graph(
      {w::node("Gather", {"table", "ids"}, {"rows"}), w::node("LayerNormalization", {"rows", "ls", "lb"}, {"normed"}),
       w::node("Transpose", {"m"}, {"mt"}, {w::ints_attribute("perm", {1, 0})}),
       w::node("MatMul", {"normed", "mt"}, {"product"}), w::node("Add", {"bias", "product"}, {"y"}),
       w::node("Conv", {"image", "k", "kb"}, {"conv"}),
       w::node("BatchNormalization", {"conv", "bs", "bb", "bm", "bv"}, {"z"}), w::node("Mul", {"z", "gamma"}, {"out"}),
       w::node("GlobalAveragePool", {"out"}, {"pooled"}), w::node("Conv", {"pooled", "gate"}, {"g"}),
       w::node("Sigmoid", {"g"}, {"open"})},
      {w::info("ids", 7, {"1", "5"}), w::info("image", 1, {"1", "32", "9", "9"}), w::info("mask", 7, {"1", "5"}),
       w::info("lengths", 7, {"1"})},
      {w::untyped("y"), w::untyped("out"), w::untyped("open")},
      {external("table", {100, 16}, 0), external("ls", {16}, 6400), external("lb", {16}, 6464),
       external("m", {8, 16}, 6528), external("bias", {8}, 7040), external("k", {64, 32, 3, 3}, 7104),
       external("kb", {64}, 80832), external("bs", {64}, 81088), external("bb", {64}, 81344),
       external("bm", {64}, 81600), external("bv", {64}, 81856), external("gamma", {64, 1, 1}, 82112),
       external("gate", {64, 64, 1, 1}, 82368)}));
}

struct folder {
  std::filesystem::path path =
      std::filesystem::temp_directory_path() / ("dnnopt_generate_" + std::to_string(::getpid()));
  folder() {
    std::filesystem::create_directories(path);
    std::ofstream(path / "m.onnx", std::ios::binary) << network().data;
  }
  folder(const folder&) = delete;
  folder& operator=(const folder&) = delete;
  ~folder() { std::filesystem::remove_all(path); }
};

std::string content(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::uint64_t hash(const std::string& bytes) {
  std::uint64_t h = 0xcbf29ce484222325;
  for (const char c : bytes) h = (h ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return h;
}

}  // namespace

TEST_CASE("random numbers depend on seed, stream and index alone", "[generate]") {
  const counter_random a(1, 2);
  CHECK(a.bits(7) == counter_random(1, 2).bits(7));
  CHECK(a.bits(7) != counter_random(2, 2).bits(7));
  CHECK(a.bits(7) != counter_random(1, 3).bits(7));
  CHECK(a.bits(0) == 0xcb137d8f0e457ca7);
  double sum = 0;
  double squares = 0;
  double uniform = 0;
  int beyond = 0;
  constexpr std::uint64_t count = 100000;
  for (std::uint64_t i = 0; i < count; ++i) {
    const double z = static_cast<double>(a.normal(i));
    sum += z;
    squares += z * z;
    uniform += static_cast<double>(a.uniform(i));
    beyond += static_cast<int>(std::abs(z) > 3.47);
    const std::int64_t die = a.below(i, 6);
    if (die < 0 || die > 5) FAIL("out of range");
  }
  CHECK(beyond == 0);
  CHECK(sum / count == Approx(0).margin(0.02));
  CHECK(squares / count == Approx(1).epsilon(0.02));
  CHECK(uniform / count == Approx(0.5).epsilon(0.02));
}

TEST_CASE("what reads a weight decides how it is made", "[generate]") {
  const imported_model model = import_model(network().bytes(), {}, options(true));
  const std::vector<planned_weight> plans = plan_weights(model, false);
  const auto plan = [&](std::string_view name) {
    for (const planned_weight& p : plans)
      if (p.name == name) return p.plan;
    FAIL("no plan for " << name);
    return onnx::weight_plan{};
  };
  CHECK(plan("table").role == weight_role::table);
  CHECK(plan("table").deviation == 1);
  CHECK(plan("ls").role == weight_role::scale);
  CHECK(plan("ls").mean == 1);
  CHECK(plan("lb").role == weight_role::shift);
  CHECK(plan("m").role == weight_role::factors);
  CHECK(plan("m").deviation == Approx(0.25).epsilon(0.02));  // 1 / sqrt(16 inputs of power 1)
  CHECK(plan("bias").role == weight_role::bias);
  CHECK(plan("bias").deviation == Approx(0.1).epsilon(0.02));
  CHECK(plan("k").role == weight_role::factors);
  CHECK(plan("k").deviation == Approx(2 / std::sqrt(32.0 * 9)).epsilon(0.02));
  CHECK(plan("k").row == 288);
  CHECK(plan("bs").role == weight_role::scale);
  CHECK(plan("bb").role == weight_role::shift);
  CHECK(plan("bm").role == weight_role::mean);
  CHECK(plan("bv").role == weight_role::variance);
  CHECK(plan("bv").mean > 0.9f);
  CHECK(plan("bv").mean - 3.47f * plan("bv").deviation > 0);
  CHECK(plan("gamma").role == weight_role::scale);
  // A gate stays half open: its factors are small.
  CHECK(plan("gate").role == weight_role::factors);
  CHECK(plan("gate").deviation < 0.1f);
}

TEST_CASE("weights that only a branch reads are made by what the branch does with them", "[generate]") {
  const w::message taken = w::graph({w::node("Conv", {"image", "k"}, {"conv"}),
                                     w::node("BatchNormalization", {"conv", "bs", "bb", "bm", "bv"}, {"t"})},
                                    {}, {w::untyped("t")}, {});
  const w::message left = w::graph({w::node("Identity", {"image"}, {"e"})}, {}, {w::untyped("e")}, {});
  const w::message m =
      w::model(w::graph({w::node("If", {"open"}, {"out"},
                                 {w::graph_attribute("then_branch", taken), w::graph_attribute("else_branch", left)}),
                         w::node("MatMul", {"out", "m"}, {"y"})},
                        {w::info("open", 9, {}), w::info("image", 1, {"1", "32", "9", "9"})}, {w::untyped("y")},
                        {external("k", {64, 32, 3, 3}, 0), external("bs", {64}, 73728), external("bb", {64}, 73984),
                         external("bm", {64}, 74240), external("bv", {64}, 74496), external("m", {9, 9}, 74752)}));
  const imported_model model = import_model(m.bytes(), {}, options(true));
  for (const planned_weight& p : plan_weights(model, false)) {
    INFO(p.name);
    const bool factors = p.name == "k" || p.name == "m";
    CHECK(p.plan.role == (factors          ? weight_role::factors
                          : p.name == "bs" ? weight_role::scale
                          : p.name == "bb" ? weight_role::shift
                          : p.name == "bm" ? weight_role::mean
                                           : weight_role::variance));
    if (p.name == "k") CHECK(p.plan.deviation == Approx(2 / std::sqrt(32.0 * 9)).epsilon(0.02));
    if (p.name == "bv") CHECK(p.plan.mean - 3.47f * p.plan.deviation > 0);
  }
}

TEST_CASE("the same seed writes the same file, on every machine", "[generate]") {
  const folder f;
  weight_options seven;
  seven.seed = 7;
  CHECK(generate_weights(f.path / "m.onnx", options(false), seven) == 98752);
  const std::string first = content(f.path / "m.weights");
  CHECK(first.size() == 98752);
  CHECK(hash(first) == 0x741deffd843afb14);
  // It exists now, so nothing is missing.
  weight_options eight;
  eight.seed = 8;
  CHECK(generate_weights(f.path / "m.onnx", options(false), eight) == 0);
  CHECK(content(f.path / "m.weights") == first);
  eight.overwrite = true;
  CHECK(generate_weights(f.path / "m.onnx", options(false), eight) == 98752);
  CHECK(content(f.path / "m.weights") != first);

  const imported_model model = import_model(f.path / "m.onnx", options(false));
  for (value_id id = 0; id < model.main.value_count(); ++id) {
    const value& v = model.main.value_at(id);
    if (v.name != "k") continue;
    const auto k = v.facts.constant.data<float>();
    for (std::size_t row = 0; row < 64; ++row) {
      double squares = 0;
      for (std::size_t i = 0; i < 288; ++i) {
        squares += static_cast<double>(k[row * 288 + i]) * static_cast<double>(k[row * 288 + i]);
      }
      INFO("row " << row);
      CHECK(squares == Approx(4).epsilon(0.01));  // every output has the power aimed at
    }
  }
}

TEST_CASE("a model whose missing data is integers is refused", "[generate]") {
  const w::message ids = w::tensor_of("i", 7, {2}).with(13, w::entry("location", "i.bin")).number(14, 1);
  const w::message m =
      w::model(w::graph({w::node("Gather", {"x", "i"}, {"y"})}, {w::info("x")}, {w::untyped("y")}, {ids}));
  const imported_model model = import_model(m.bytes(), {}, options(true));
  CHECK_THROWS_AS(plan_weights(model, false), error);
}

TEST_CASE("inputs are made by what the graph does with them", "[generate]") {
  const graph g = import_onnx(network().bytes(), {}, options(true));
  const std::vector<tensor> inputs = generate_inputs(g, 3);
  REQUIRE(inputs.size() == 4);
  CHECK(kind_of_input(g, g.inputs()[0]) == input_kind::ids);
  CHECK(kind_of_input(g, g.inputs()[1]) == input_kind::numbers);
  CHECK(kind_of_input(g, g.inputs()[2]) == input_kind::ones);
  CHECK(kind_of_input(g, g.inputs()[3]) == input_kind::lengths);
  for (const std::int64_t id : inputs[0].data<std::int64_t>()) CHECK((id >= 0 && id < 100));
  double squares = 0;
  for (const float v : inputs[1].data<float>()) squares += static_cast<double>(v) * static_cast<double>(v);
  CHECK(std::sqrt(squares / static_cast<double>(inputs[1].size())) == Approx(1).epsilon(0.4));
  for (const std::int64_t one : inputs[2].data<std::int64_t>()) CHECK(one == 1);
  CHECK(inputs[3].data<std::int64_t>()[0] == 5);
  const std::vector<tensor> again = generate_inputs(g, 3);
  const std::vector<tensor> other = generate_inputs(g, 4);
  CHECK(std::equal(again[1].bytes().begin(), again[1].bytes().end(), inputs[1].bytes().begin()));
  CHECK_FALSE(std::equal(other[1].bytes().begin(), other[1].bytes().end(), inputs[1].bytes().begin()));
}

TEST_CASE("inputs of symbolic dims take their sizes from bindings", "[generate]") {
  const w::message m =
      w::model(w::graph({w::node("Relu", {"x"}, {"y"})}, {w::info("x", 10, {"n", "3"})}, {w::untyped("y")}));
  const graph g = import_onnx(m.bytes(), {}, options(false));
  symbol_values values;
  CHECK_THROWS_AS(generate_inputs(g, 0, values), error);
  values.bind(*g.expressions().find("n"), 4);
  const std::vector<tensor> inputs = generate_inputs(g, 0, values);
  CHECK(inputs.at(0).dims() == dim_list{4, 3});
  CHECK(inputs[0].type() == dtype::float16);
}

TEST_CASE("sizes of generated inputs meet what the graph needs of them", "[generate]") {
  const auto chosen = [](const w::message& m, const dim_ranges& ranges = {}) {
    return choose_dims(import_onnx(m.bytes(), {}, options(false)), ranges);
  };
  const auto network_of = [](std::initializer_list<w::message> nodes, const std::vector<w::message>& inputs,
                             const std::vector<w::message>& weights = {}) {
    return w::model(w::graph(nodes, inputs, {w::untyped("y")}, weights));
  };
  // Nothing is asked of a batch; a product asks for its inner dim.
  const w::message product = network_of({w::node("MatMul", {"x", "m"}, {"y"})}, {w::info("x", 1, {"batch", "inner"})},
                                        {w::float_tensor("m", {6, 1}, {1, 2, 3, 4, 5, 6})});
  CHECK(chosen(product) == dim_bindings{{"batch", 1}, {"inner", 6}});
  // Within a range; a range that holds no lawful number has no answer.
  CHECK(chosen(product, {{"batch", {5, 9, 4}}}) == dim_bindings{{"batch", 8}, {"inner", 6}});
  CHECK(chosen(product, {{"inner", {7, 9, 1}}}) == std::nullopt);
  // A window of 4 over 2 on each side of an image, which is as large as images are; one over a row, the least.
  const std::vector<w::message> kernel{w::float_tensor("k", {1, 1, 4, 4}, std::vector<float>(16, 1.0f))};
  const w::message image =
      network_of({w::node("Conv", {"x", "k"}, {"y"})}, {w::info("x", 1, {"n", "1", "height", "width"})}, kernel);
  CHECK(chosen(image) == dim_bindings{{"n", 1}, {"height", 224}, {"width", 224}});
  const w::message sound = network_of({w::node("Conv", {"x", "k"}, {"y"})}, {w::info("x", 1, {"1", "1", "samples"})},
                                      {w::float_tensor("k", {1, 1, 4}, {1, 1, 1, 1})});
  CHECK(chosen(sound) == dim_bindings{{"samples", 4}});
  // Two inputs that must agree, with a size that is known of one of them through a sum of both.
  const w::message sum = network_of(
      {w::node("Concat", {"a", "b"}, {"c"}, {w::int_attribute("axis", 0)}), w::node("MatMul", {"c", "m"}, {"y"})},
      {w::info("a", 1, {"i"}), w::info("b", 1, {"j"})}, {w::float_tensor("m", {6, 1}, {1, 2, 3, 4, 5, 6})});
  CHECK(chosen(sum) == dim_bindings{{"i", 1}, {"j", 5}});
  // No tensor is empty where that can be had: what stands behind the first element.
  const w::message rest = network_of({w::node("Slice", {"x", "one", "many"}, {"y"})}, {w::info("x", 1, {"n"})},
                                     {w::int_tensor("one", {1}), w::int_tensor("many", {9})});
  CHECK(chosen(rest) == dim_bindings{{"n", 2}});
  const w::message none = network_of({w::node("Slice", {"x", "one", "many"}, {"y"})}, {w::info("x", 1, {"1", "n"})},
                                     {w::int_tensor("one", {1}), w::int_tensor("many", {9})});
  CHECK(chosen(none) == dim_bindings{{"n", 1}});
  CHECK(chosen(network_of({w::node("Relu", {"x"}, {"y"})}, {w::info("x", 1, {"2", "3"})})) == dim_bindings{});
}

TEST_CASE("a single integer is what the graph compares it with, and its branch has its say", "[generate]") {
  const auto convolved = [](const std::string& name, const std::string& kernel, std::int64_t taps) {
    return w::graph({w::node("Conv", {"x", kernel}, {name})}, {}, {w::untyped(name)},
                    {w::float_tensor(kernel, {1, 1, taps}, std::vector<float>(static_cast<std::size_t>(taps), 1.0f))});
  };
  const w::message m =
      w::model(w::graph({w::node("Equal", {"rate", "fast"}, {"is_fast"}),
                         w::node("If", {"is_fast"}, {"y"},
                                 {w::graph_attribute("then_branch", convolved("a", "ka", 16)),
                                  w::graph_attribute("else_branch", convolved("b", "kb", 64))})},
                        {w::info("x", 1, {"1", "1", "samples"}), w::info("rate", 7, {})}, {w::untyped("y")},
                        {w::tensor_of("fast", w::int64_type, {}).text(9, w::raw(std::vector<std::int64_t>{16000}))}));
  const graph g = import_onnx(m.bytes(), {}, options(false));
  CHECK(generated_constant(g, g.inputs()[1]) == 16000);
  CHECK(choose_dims(g) == dim_bindings{{"samples", 16}});
  symbol_values values;
  values.bind(*g.expressions().find("samples"), 16);
  CHECK(generate_inputs(g, 0, values).at(1).data<std::int64_t>()[0] == 16000);
}
