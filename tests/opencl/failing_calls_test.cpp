// Every OpenCL call of a small model fails once, in both wait modes: an error that names it, nothing left behind, the
// session right afterwards or dead for good, and the next session right.
#include <catch2/catch.hpp>

#include <cstdlib>
#include <string>

#include "../support/failing_calls.hpp"
#include "../support/small_network.hpp"

#if !defined(DNNOPT_LINK_OPENCL) && defined(DNNOPT_FAILING_OPENCL)

using namespace dnnopt;
using dnnopt::testing::network;
using dnnopt::testing::ramp;

namespace {

/// A convolution, a pool, a product and determinants, over a symbolic batch.
model convolution_to_determinants() {
  network n;
  attribute_map window, pool, flat;
  window.set("pads", std::vector<std::int64_t>{1, 1, 1, 1});
  pool.set("kernel_shape", std::vector<std::int64_t>{2, 2});
  pool.set("strides", std::vector<std::int64_t>{2, 2});
  flat.set("axis", std::int64_t{1});
  const value_id x = n.input("x", shape{n.g.expressions().symbol("batch"), 3, 8, 8});
  const value_id y =
      n.node("MaxPool", {n.node("Relu", {n.node("Conv", {x, n.weights({4, 3, 3, 3}, 0.3F)}, window)})}, pool);
  const value_id square = n.node("MatMul", {n.node("Flatten", {y}, flat), n.weights({64, 16}, 0.1F)});
  const value_id matrices =
      n.node("Reshape", {square, n.g.add_constant("to", tensor::of<std::int64_t>({3}, {-1, 4, 4}))});
  return n.finish(n.node("Relu", {n.node("Det", {matrices})}));
}

}  // namespace

TEST_CASE("every OpenCL call of a model may fail") {
  const std::string name = "every OpenCL call of a model may fail";
  if (std::getenv("DNNOPT_TEST_FAILING") == nullptr) {
    CHECK(std::system((std::string("DNNOPT_TEST_FAILING=1 DNNOPT_OPENCL_LIBRARY='") + DNNOPT_FAILING_OPENCL +
                       "' /proc/$PPID/exe '" + name + "'")
                          .c_str()) == 0);
    return;
  }
  const ::testing::failing_library library(DNNOPT_FAILING_OPENCL);
  const model m = convolution_to_determinants();
  for (const wait_mode wait : {wait_mode::blocking, wait_mode::spinning}) {
    INFO(name_of(wait));
    compile_options options;
    options.wait = wait;
    options.programs.on_disk = false;
    const ::testing::failing_calls trial(library, m, named_tensors({{"x", ramp({2, 3, 8, 8})}}), options);
    const long all = trial.count();
    REQUIRE(all > 60);
    ::testing::call_table table;
    // Each call costs two sessions: one of nine here.
    const char* const part = std::getenv("DNNOPT_TEST_CALLS");
    const long step = part == nullptr ? 9 : std::atol(part);
    for (long n = 1; n <= all; n += step) trial.fail(n, table);
    for (const std::string& fault : table.faults) FAIL_CHECK(fault);
    std::size_t refused = 0;
    for (const auto& [call, counts] : table.rows)
      refused += counts[static_cast<std::size_t>(::testing::call_outcome::refused_run)] +
                 counts[static_cast<std::size_t>(::testing::call_outcome::refused_compile)];
    CHECK(refused * 4 > table.calls);
    std::printf("%s\n%s", std::string(name_of(wait)).c_str(), table.str().c_str());
  }
}

#endif
