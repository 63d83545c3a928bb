// What every element of an operator would reduce again is reduced once, with the numbers of the operator itself.
#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

#include <dnnopt/dnnopt.hpp>
#include <dnnopt/passes/rdp.hpp>
#include <dnnopt/passes/share_reductions.hpp>
#include <dnnopt/passes/verify.hpp>
#include <dnnopt/reference/elements.hpp>
#include <dnnopt/reference/evaluator.hpp>

#include <support/onnx_writer.hpp>
#include <support/written_model.hpp>

#include "../support/shared_device.hpp"

using namespace dnnopt;
using dnnopt::testing::shared_device;
namespace written = dnnopt_tests;

namespace {

/// y, scale and zero point of x, of which `outputs` are the model's own.
model quantizing(const std::vector<std::string>& dims, const std::vector<std::string>& outputs) {
  std::vector<written::message> infos;
  for (const std::string& name : outputs) infos.push_back(written::untyped(name));
  return written::loaded(written::model(written::graph(
      {written::node("DynamicQuantizeLinear", {"x"}, {"y", "scale", "zero"})}, {written::info("x", 1, dims)}, infos)));
}

enum class content { mixed, above, below, equal };

tensor numbers(dim_list dims, content of) {
  tensor t(dtype::float32, std::move(dims));
  float k = 0.0F;
  for (float& v : t.mutable_data<float>()) {
    k += 1.0F;
    const float wave = std::sin(k * 1.7F) * 3.1F;
    v = of == content::equal ? 0.0F : of == content::mixed ? wave : of == content::above ? wave + 9.0F : wave - 9.0F;
  }
  return t;
}

/// Calls `check` with a session of each form, in which nothing may run on the host.
template <class Check>
void on_both_forms(const model& m, const Check& check) {
  for (const kernel_form form : {kernel_form::vectors, kernel_form::groups}) {
    CAPTURE(static_cast<int>(form));
    compile_options options;
    options.opened = shared_device();
    options.form = form;
    options.require_device = true;
    session s = compile(m, options);
    check(s);
  }
}

constexpr content contents[] = {content::mixed, content::above, content::below, content::equal};

}  // namespace

TEST_CASE("the split of DynamicQuantizeLinear gives the same bytes, whichever outputs are read") {
  for (const std::vector<std::string>& outputs :
       {std::vector<std::string>{"y", "scale", "zero"}, {"y"}, {"scale"}, {"zero", "y"}}) {
    const model m = quantizing({"N", "300"}, outputs);
    graph split = m.main;
    (void)rdp{}.run(split);
    CHECK(share_reductions{}.run(split).edits == 1);
    verify(split, share_reductions::name);
    CHECK(share_reductions{}.run(split).edits == 0);
    for (const content of : contents)
      for (const std::int64_t rows : {3, 1}) {
        const tensor x = numbers({rows, 300}, of);
        const std::vector<tensor> want = reference::evaluate(m.main, std::vector{x});
        const std::vector<tensor> got = reference::evaluate(split, std::vector{x});
        REQUIRE(got.size() == want.size());
        for (std::size_t i = 0; i < got.size(); ++i) CHECK(std::ranges::equal(got[i].bytes(), want[i].bytes()));
      }
  }
  // What one kernel does sooner stays, however many dims it has.
  for (const std::string& rows : {std::string("1"), std::string("16")}) {
    graph few = quantizing({rows, "16"}, {"y"}).main;
    (void)rdp{}.run(few);
    CHECK(share_reductions{}.run(few).edits == 0);
  }
}

TEST_CASE("DynamicQuantizeLinear on the device is exact at any size, none and one among them") {
  const model m = quantizing({"N", "L"}, {"y", "scale", "zero"});
  on_both_forms(m, [&](session& s) {
    for (const dim_list& dims : {dim_list{3, 300}, dim_list{1, 1}, dim_list{0, 5}, dim_list{4, 0}, dim_list{7, 1021}})
      for (const content of : contents) {
        CAPTURE(dims, static_cast<int>(of));
        const tensor x = numbers(dims, of);
        const std::vector<tensor> want = reference::evaluate(m.main, std::vector{x});
        const named_tensors got = s.run({{"x", x}});
        REQUIRE(got.size() == 3);
        for (std::size_t i = 0; i < 3; ++i) {
          INFO("output " << i);
          CHECK(got[i].dims() == want[i].dims());
          CHECK(std::ranges::equal(got[i].bytes(), want[i].bytes()));
        }
      }
  });
}

TEST_CASE("the work of DynamicQuantizeLinear grows with its elements, not with their square") {
  // A million elements, which a search for each of them would take minutes for.
  const model m = quantizing({"1024", "1024"}, {"y"});
  compile_options options;
  options.opened = shared_device();
  session s = compile(m, options);
  const tensor x = numbers({1024, 1024}, content::mixed);
  const named_tensors got = s.run({{"x", x}});
  CHECK(std::ranges::equal(got[0].bytes(), reference::evaluate(m.main, std::vector{x})[0].bytes()));
}

namespace {

/// y of one node over x, and constants behind it.
model one_node(const std::string& op, const std::vector<std::string>& dims,
               std::initializer_list<written::message> attributes, const std::vector<std::int64_t>& axis = {}) {
  std::vector<std::string> inputs{"x"};
  std::vector<written::message> constants;
  if (!axis.empty()) {
    inputs.emplace_back("axis");
    constants.push_back(written::int_tensor("axis", axis));
  }
  return written::loaded(
      written::model(written::graph({written::node(op, inputs, {"y"}, attributes)}, {written::info("x", 1, dims)},
                                    {written::untyped("y")}, constants)));
}

/// Checks a model on the device in both forms, and that the pass does something, or nothing.
void check(const model& m, const dim_list& dims, std::size_t edits) {
  CAPTURE(dims);
  graph shared = m.main;
  (void)rdp{}.run(shared);
  CHECK(share_reductions{}.run(shared).edits == edits);
  verify(shared, share_reductions::name);
  // Small integers, which any order adds up to the same.
  tensor x(dtype::float32, dims);
  std::int64_t k = 0;
  for (float& v : x.mutable_data<float>()) v = static_cast<float>(++k * 7 % 11 - 5);
  const tensor want = reference::evaluate(m.main, std::vector{x})[0];
  on_both_forms(m, [&](session& s) {
    const named_tensors got = s.run({{"x", x}});
    REQUIRE(got[0].dims() == want.dims());
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < want.data<float>().size(); ++i)
      wrong += std::abs(got[0].data<float>()[i] - want.data<float>()[i]) <= 2e-4F ? 0U : 1U;
    CHECK(wrong == 0);
  });
}

}  // namespace

TEST_CASE("running totals of many elements are those of blocks and what comes before") {
  for (const std::int64_t exclusive : {0, 1})
    for (const std::int64_t reverse : {0, 1}) {
      const auto how = {written::int_attribute("exclusive", exclusive), written::int_attribute("reverse", reverse)};
      CAPTURE(exclusive, reverse);
      check(one_node("CumSum", {"320"}, how, {0}), {320}, 1);
      check(one_node("CumSum", {"257"}, how, {0}), {257}, 1);
      check(one_node("CumSum", {"N", "1031", "3"}, how, {1}), {2, 1031, 3}, 1);
      check(one_node("CumSum", {"2", "300", "N"}, how, {-2}), {2, 300, 5}, 1);
      check(one_node("CumSum", {"9001"}, how, {0}), {9001}, 1);
      check(one_node("CumSum", {"256", "2"}, how, {0}), {256, 2}, 0);
      check(one_node("CumSum", {"2", "300", "M", "N"}, how, {1}), {2, 300, 2, 2}, 0);
      check(one_node("CumSum", {"2", "N"}, how, {1}), {2, 300}, 0);
      // A dim that may be 0 leaves nothing to tell the last one by.
      check(one_node("CumSum", {"M", "300", "N"}, how, {1}), {0, 300, 4}, 0);
      check(one_node("CumSum", {"N", "300"}, how, {1}), {0, 300}, 1);
      check(one_node("CumSum", {"2", "300", "N"}, how, {1}), {2, 300, 0}, 1);
    }
}

TEST_CASE("Hardmax and MeanVarianceNormalization of many elements find out once what all need") {
  for (const std::int64_t axis : {0, 1, -1}) {
    check(one_node("Hardmax", {"260", "N", "270"}, {written::int_attribute("axis", axis)}), {260, 2, 270},
          axis == 1 ? 0 : 1);
    check(one_node("Hardmax", {"10", "12", "11"}, {written::int_attribute("axis", axis)}), {10, 12, 11}, 0);
  }
  check(one_node("Hardmax", {"2", "L"}, {}), {2, 0}, 0);
  check(one_node("Hardmax", {"N", "300"}, {}), {0, 300}, 1);
  check(one_node("MeanVarianceNormalization", {"2", "C", "20", "W"}, {}), {2, 3, 20, 30}, 1);
  check(one_node("MeanVarianceNormalization", {"2", "C", "20", "W"}, {}), {2, 3, 20, 0}, 1);
  check(one_node("MeanVarianceNormalization", {"2", "3", "20", "30"}, {written::ints_attribute("axes", {-1, 1})}),
        {2, 3, 20, 30}, 0);
  check(one_node("MeanVarianceNormalization", {"2", "9", "20", "30"}, {written::ints_attribute("axes", {-1, 1})}),
        {2, 9, 20, 30}, 1);
}

TEST_CASE("BatchNormalization in training mode finds the statistics of a channel once") {
  struct setting {
    std::int64_t type;
    std::vector<std::string> dims;
    dim_list given;
    std::size_t edits;
  };
  const setting settings[] = {{1, {"3", "C", "H", "20"}, {3, 4, 11, 20}, 1},
                              {1, {"N", "2"}, {700, 2}, 1},
                              {1, {"N"}, {500}, 1},
                              {10, {"2", "3", "150"}, {2, 3, 150}, 1},
                              {11, {"2", "3", "150"}, {2, 3, 150}, 1},
                              {1, {"2", "3", "50"}, {2, 3, 50}, 0},
                              {1, {"2", "C", "W"}, {2, 0, 300}, 1},
                              // Nothing has no mean: what runs on is NaN.
                              {1, {"3", "C", "H", "20"}, {3, 4, 0, 20}, 1}};
  for (const setting& one : settings) {
    CAPTURE(one.type, one.given);
    const std::int64_t channels = one.given.size() > 1 ? one.given[1] : 1;
    const std::string extent = one.dims.size() > 1 ? one.dims[1] : "1";
    std::vector<written::message> infos{written::info("x", one.type, one.dims)};
    // Statistics keep their own type.
    for (const char* const name : {"scale", "shift"}) infos.push_back(written::info(name, one.type, {extent}));
    for (const char* const name : {"mean", "variance"}) infos.push_back(written::info(name, 1, {extent}));
    const model m = written::loaded(written::model(written::graph(
        {written::node("BatchNormalization", {"x", "scale", "shift", "mean", "variance"}, {"y", "m", "v"},
                       {written::int_attribute("training_mode", 1), written::float_attribute("momentum", 0.75F),
                        written::float_attribute("epsilon", 0.01F)})},
        infos, {written::untyped("y"), written::untyped("m"), written::untyped("v")})));
    graph shared = m.main;
    (void)rdp{}.run(shared);
    CHECK(share_reductions{}.run(shared).edits == one.edits);
    verify(shared, share_reductions::name);
    const auto typed = [&](dim_list dims, content of) {
      const tensor drawn = numbers(std::move(dims), of);
      return reference::store_all<double>(static_cast<dtype>(one.type), drawn.dims(),
                                          reference::load_all<double>(drawn));
    };
    const std::vector<tensor> given{typed(one.given, content::mixed), typed({channels}, content::mixed),
                                    typed({channels}, content::above), numbers({channels}, content::mixed),
                                    numbers({channels}, content::above)};
    const std::vector<tensor> want = reference::evaluate(m.main, given);
    on_both_forms(m, [&](session& s) {
      const named_tensors got = s.run(
          {{"x", given[0]}, {"scale", given[1]}, {"shift", given[2]}, {"mean", given[3]}, {"variance", given[4]}});
      REQUIRE(got.size() == 3);
      for (std::size_t o = 0; o < 3; ++o) {
        INFO("output " << o);
        CHECK(got[o].type() == want[o].type());
        REQUIRE(got[o].dims() == want[o].dims());
        const std::vector<double> a = reference::load_all<double>(got[o]);
        const std::vector<double> b = reference::load_all<double>(want[o]);
        const double tolerance = one.type == 10 && o == 0 ? 0.02 : 2e-5;
        std::size_t wrong = 0;
        for (std::size_t i = 0; i < a.size(); ++i)
          wrong += std::abs(a[i] - b[i]) <= tolerance || (std::isnan(a[i]) && std::isnan(b[i])) ? 0U : 1U;
        CHECK(wrong == 0);
      }
    });
  }
}
