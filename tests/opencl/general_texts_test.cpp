// Kernels that differ in numbers alone: which texts become one, and that one computes what each did.
#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <dnnopt/backend/measure/opened_device.hpp>
#include <dnnopt/backend/run/built_kernels.hpp>
#include <dnnopt/backend/run/executor.hpp>
#include <dnnopt/dnnopt.hpp>

#include "../support/small_network.hpp"
#include "runtime_fixture.hpp"

using namespace dnnopt;
using dnnopt::opencl::testing::temporary_folder;
using dnnopt::testing::network;
using dnnopt::testing::ramp;

namespace {

/// A plan as generators write it: definitions, and a kernel of one statement.
codegen::kernel_plan plan_of(const std::string& statement, const std::string& before = {},
                             const std::string& attribute = {}) {
  codegen::kernel_plan plan;
  plan.source = std::string(kernels::prelude) +
                "#define DNNOPT_PARAMETERS __global const float* b0, __global float* b1\n"
                "#define DNNOPT_KERNEL_PARAMETERS __global const float* restrict b0, __global float* restrict b1\n"
                "#define DNNOPT_ARGUMENTS b0, b1\n" +
                before + "__kernel " + attribute + "void dnnopt_kernel(DNNOPT_KERNEL_PARAMETERS) {\n  " + statement +
                "\n}\n";
  return plan;
}

std::vector<codegen::general_text> texts_of(const std::vector<codegen::kernel_plan>& plans) {
  std::vector<const codegen::kernel_plan*> pointers;
  for (const codegen::kernel_plan& plan : plans) pointers.push_back(&plan);
  return codegen::general_texts(pointers);
}

std::string kernel_of(const codegen::general_text& text) { return text.source.substr(kernels::prelude.size()); }

/// Whether both stay what they are.
bool stay(const codegen::kernel_plan& a, const codegen::kernel_plan& b) {
  const auto texts = texts_of({a, b});
  return texts[0].source == a.source.str() && texts[1].source == b.source.str() && texts[0].numbers.empty() &&
         texts[1].numbers.empty();
}

/// Weights of several extents to pack, each twice as wide as the last.
model some_model() {
  network n;
  value_id h = n.input("x", {1, 16, 12, 12});
  for (std::int64_t channels = 16; channels < 128; channels *= 2)
    h = n.node("Relu", {n.node("Conv", {h, n.weights({2 * channels, channels, 1, 1})})});
  return n.finish(n.node("Softmax", {n.node("Flatten", {n.node("GlobalAveragePool", {h})})}));
}

std::size_t distinct(const kernels_to_build& kernels) {
  std::set<std::pair<std::size_t, std::string>> entries;
  for (const joined_kernel& one : kernels.places) entries.emplace(one.program, one.entry);
  return entries.size();
}

}  // namespace

TEST_CASE("texts that differ in numbers alone become one, with an argument for each number that differs") {
  const auto texts = texts_of({plan_of("if (i < 12) b1[i % 12 + 7] = b0[i / 3] * 1e-12f + 2.5f;"),
                               plan_of("if (i < 20) b1[i % 20 + 7] = b0[i / 4] * 1e-12f + 2.5f;"),
                               plan_of("if (i < 20) b1[i % 20 + 7] = b0[i / 4] * 1e-12f + 2.5f;")});
  CHECK(texts[0].source == texts[1].source);
  CHECK(texts[1].source == texts[2].source);
  CHECK(texts[0].numbers == std::vector<std::int32_t>{12, 3});
  CHECK(texts[1].numbers == std::vector<std::int32_t>{20, 4});
  CHECK(kernel_of(texts[0]) ==
        "#define DNNOPT_PARAMETERS __global const float* b0, __global float* b1, const int dnnopt_number_0, "
        "const int dnnopt_number_1\n"
        "#define DNNOPT_KERNEL_PARAMETERS __global const float* restrict b0, __global float* restrict b1, "
        "const int dnnopt_number_0, const int dnnopt_number_1\n"
        "#define DNNOPT_ARGUMENTS b0, b1, dnnopt_number_0, dnnopt_number_1\n"
        "__kernel void dnnopt_kernel(DNNOPT_KERNEL_PARAMETERS) {\n"
        "  if (i < dnnopt_number_0) b1[i % dnnopt_number_0 + 7] = b0[i / dnnopt_number_1] * 1e-12f + 2.5f;\n}\n");
}

TEST_CASE("numbers of which the language or the device wants constants stay") {
  const auto twice = [](const auto& text_of) {
    return stay(plan_of(text_of(std::string("2"))), plan_of(text_of(std::string("4"))));
  };
  CHECK(twice([](const std::string& n) { return "float sums[" + n + "]; sums[0] = b0[0];"; }));
  CHECK(twice([](const std::string& n) { return "__local float* sums[3][" + n + "];"; }));
  CHECK(twice([](const std::string& n) { return "switch (i) { case " + n + ": break; }"; }));
  CHECK(twice([](const std::string& n) { return "b1[i] = b0[i] * 1e-" + n + ";"; }));
  CHECK(twice([](const std::string& n) { return "b1[i] = b0[i] * 0." + n + "f;"; }));
  CHECK(twice([](const std::string& n) { return "vstore" + n + "(v.s" + n + ", i, b1);"; }));
  CHECK(twice([](const std::string& n) { return "b1[i] = 0x" + n + "1;"; }));
  CHECK(twice([](const std::string& n) { return "b1[i] = 2147483648" + n + ";"; }));
  CHECK(stay(plan_of("b1[0] = 1;", "#define DNNOPT_M 2\n"), plan_of("b1[0] = 1;", "#define DNNOPT_M 4\n")));
  CHECK(stay(plan_of("b1[0] = 2;", "#if DNNOPT_M\n#endif\n"), plan_of("b1[0] = 4;", "#if DNNOPT_M\n#endif\n")));
  const std::string helper = "static inline int dnnopt_twice(int i) { return i * ";
  CHECK(stay(plan_of("b1[0] = 1;", helper + "2; }\n"), plan_of("b1[0] = 1;", helper + "4; }\n")));
  CHECK(stay(plan_of("b1[0] = 1;", {}, "__attribute__((reqd_work_group_size(2, 1, 1))) "),
             plan_of("b1[0] = 1;", {}, "__attribute__((reqd_work_group_size(4, 1, 1))) ")));
  // Other work-groups, options or extensions make other kernels.
  codegen::kernel_plan other = plan_of("b1[0] = 4;");
  other.options = "-DDNNOPT_OTHER";
  CHECK(stay(plan_of("b1[0] = 2;"), other));
  other = plan_of("b1[0] = 4;");
  other.source = "#pragma OPENCL EXTENSION cl_khr_fp64 : enable\n" + other.source.str();
  CHECK(stay(plan_of("b1[0] = 2;"), other));
}

TEST_CASE("a quick start has fewer kernels, which compute what the optimized ones do") {
  const model m = some_model();
  const tensor x = ramp({1, 16, 12, 12});
  for (const kernel_form form : {kernel_form::vectors, kernel_form::groups}) {
    const temporary_folder folder;
    const opencl::program_cache_options programs = opencl::testing::kept_by_driver(folder);
    compile_options options;
    options.opened = std::make_shared<opened_device>("opencl", programs);
    options.form = form;
    options.first_start = first_start::quick;
    session quick = compile(m, options);
    const tensor first = quick.run({{"x", x}}).begin()->second;
    REQUIRE(quick.executor()->figures().quick_kernels);
    options.first_start = first_start::optimized;
    options.opened = std::make_shared<opened_device>("opencl", programs);
    session optimized = compile(m, options);
    const tensor expected = optimized.run({{"x", x}}).begin()->second;
    const program& p = optimized.executor()->executed();
    const std::size_t general = distinct(kernels_of(p, true));
    const std::size_t specific = distinct(kernels_of(p));
    CHECK((form == kernel_form::vectors ? general < specific : general <= specific));
    REQUIRE(first.dims() == expected.dims());
    for (std::size_t i = 0; i < first.data<float>().size(); ++i)
      CHECK(std::abs(first.data<float>()[i] - expected.data<float>()[i]) <= 1e-5F);
  }
}
