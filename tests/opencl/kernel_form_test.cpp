#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>
#include <set>
#include <string>

#include <dnnopt/backend/measure/opened_device.hpp>
#include <dnnopt/backend/measure/tuning_store.hpp>
#include <dnnopt/backend/run/executor.hpp>
#include <dnnopt/dnnopt.hpp>

#include "runtime_fixture.hpp"
#include "support/small_network.hpp"

namespace dnnopt::testing {
namespace {

/// A convolution, a product of more rows than a matrix is read once for, and a softmax: kinds that have kernels of both
/// forms.
model convolution_and_product() {
  network n;
  const value_id x = n.input("x", {index_expr(3), index_expr(3), index_expr(9), index_expr(9)});
  const value_id y = n.node("Conv", {x, n.weights({8, 3, 3, 3}, 0.2F)});
  attribute_map flat;
  flat.set("axis", std::int64_t{1});
  return n.finish(n.node("Softmax", {n.node("MatMul", {n.node("Flatten", {y}, flat), n.weights({392, 5}, 0.1F)})}));
}

std::set<std::string> versions_of(const session& s) {
  std::set<std::string> versions;
  for (const placed_node& step : s.executor()->executed().steps)
    for (const codegen::kernel_plan& plan : step.lowered.kernels) versions.insert(std::string(plan.version));
  return versions;
}

compile_options in_form(kernel_form form) {
  static const auto device = std::make_shared<opened_device>("opencl", opencl::program_cache_options{.on_disk = false});
  compile_options options;
  options.opened = device;
  options.form = form;
  return options;
}

}  // namespace

TEST_CASE("sessions of one device have the form of kernels that each asks for") {
  const model m = convolution_and_product();
  const tensor x = ramp({3, 3, 9, 9});
  compile_options reference;
  reference.device = "reference";
  const tensor want = compile(m, reference).run({{"x", x}})[0];
  session vectors = compile(m, in_form(kernel_form::vectors));
  session groups = compile(m, in_form(kernel_form::groups));
  CHECK(vectors.report().form == kernel_form::vectors);
  CHECK(groups.report().form == kernel_form::groups);
  CHECK(compile(m, in_form(kernel_form::native)).report().form == kernel_form::native);
  CHECK(std::ranges::any_of(versions_of(vectors), [](const auto& one) { return one.starts_with("matrix_panels"); }));
  CHECK(versions_of(groups).contains("matrix_tiles"));
  CHECK(versions_of(groups).contains("convolution_tiles"));
  for (const std::string& one : versions_of(groups)) CHECK_FALSE(one.ends_with("_panels"));
  for (session* s : {&vectors, &groups}) {
    const tensor got = s->run({{"x", x}})[0];
    for (std::size_t i = 0; i < want.data<float>().size(); ++i)
      REQUIRE(std::fabs(got.data<float>()[i] - want.data<float>()[i]) <= 1e-5F);
  }
}

TEST_CASE("what is tuned in one form is not taken in another") {
  device_info device;
  device.name = "one";
  tuning_store store;
  store.table_of(with_form(device, kernel_form::groups)).set("row_items s", {4});
  CHECK(store.find(device) == nullptr);
  CHECK(store.find(with_form(device, kernel_form::vectors)) == nullptr);
  CHECK(store.find(with_form(device, kernel_form::groups)) != nullptr);
  CHECK(tuning_store::key_of(with_form(device, kernel_form::native)) == tuning_store::key_of(device));
}

TEST_CASE("what has no known rank falls back to the host in every form") {
  network n;
  const value_id x = n.input("x", {index_expr(128), index_expr(160)});
  const value_id dims = n.g.add_input("dims", dtype::int64, shape{n.g.expressions().symbol("rank")});
  const model m = n.finish(n.node("Transpose", {n.node("Relu", {n.node("Reshape", {x, dims})})}));
  tensor to(dtype::int64, {2});
  to.mutable_data<std::int64_t>()[0] = 64;
  to.mutable_data<std::int64_t>()[1] = 320;
  const named_tensors inputs({{"x", ramp({128, 160})}, {"dims", to}});
  compile_options reference;
  reference.device = "reference";
  const tensor want = compile(m, reference).run(inputs)[0];
  for (const kernel_form form : {kernel_form::vectors, kernel_form::groups}) {
    session s = compile(m, in_form(form));
    const tensor got = s.run(inputs)[0];
    CHECK(got.dims() == dim_list{320, 64});
    CHECK(std::equal(got.bytes().begin(), got.bytes().end(), want.bytes().begin(), want.bytes().end()));
  }
}

TEST_CASE("programs of the provider that others are held against are not kept on disk") {
  const opencl::testing::temporary_folder folder;
  const model m = convolution_and_product();
  compile_options options;
  options.opened = std::make_shared<opened_device>("opencl", opencl::program_cache_options{.folder = folder.path()});
  options.form = kernel_form::groups;
  options.precision = precision::fp16;
  for (const bool kept : {false, true}) {
    options.matrix_steps = kept ? "none" : "plain";
    {
      session s = compile(m, options);
      (void)s.run({{"x", ramp({3, 3, 9, 9})}});
    }
    CHECK(std::filesystem::exists(options.opened->programs.file()) == kept);
  }
}

}  // namespace dnnopt::testing
