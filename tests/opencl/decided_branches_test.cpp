// Branches whose condition dims of the inputs decide: a program for each set of answers, with nothing on the host.
#include <catch2/catch.hpp>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include <dnnopt/backend/opencl/context.hpp>
#include <dnnopt/dnnopt.hpp>
#include <dnnopt/graph_io.hpp>

#include <support/onnx_writer.hpp>
#include <support/written_model.hpp>

#include "../support/shared_device.hpp"

using namespace dnnopt;
using dnnopt::testing::shared_device;
using dnnopt_tests::loaded;
namespace written = dnnopt_tests;

namespace {

/// What exporters write for `x.squeeze(axis)`: the other rank where the dim is not 1.
written::message squeeze(const std::string& x, const std::string& axis) {
  return written::graph({written::node("Squeeze", {x, axis}, {"less"})}, {}, {written::untyped("less")});
}
written::message keep(const std::string& x) {
  return written::graph({written::node("Identity", {x}, {"same"})}, {}, {written::untyped("same")});
}
std::vector<written::message> asks(const std::string& x, std::int64_t axis, const std::string& condition) {
  return {written::node("Shape", {x}, {condition + "_dim"},
                        {written::int_attribute("start", axis), written::int_attribute("end", axis + 1)}),
          written::node("Equal", {condition + "_dim", "one"}, {condition})};
}
written::message branches(const std::string& condition, const std::string& out, const written::message& taken,
                          const written::message& other) {
  return written::node(
      "If", {condition}, {out},
      {written::graph_attribute("then_branch", taken), written::graph_attribute("else_branch", other)});
}

/// Softmax along the last dim of Relu(x) [N, L], squeezed where L is 1.
model squeezed_where_one() {
  std::vector<written::message> nodes{written::node("Relu", {"x"}, {"r"})};
  for (const auto& one : asks("r", 1, "c")) nodes.push_back(one);
  nodes.push_back(branches("c", "s", squeeze("r", "one"), keep("r")));
  nodes.push_back(written::node("Softmax", {"s"}, {"y"}));
  return loaded(written::model(written::graph(nodes, {written::info("x", 1, {"N", "L"})}, {written::untyped("y")},
                                              {written::int_tensor("one", {1})})));
}

tensor numbers(dim_list dims) {
  tensor t(dtype::float32, std::move(dims));
  float next = -1.0F;
  for (float& v : t.mutable_data<float>()) v = next += 0.37F;
  return t;
}

struct both {
  session device;
  session reference;
  explicit both(const model& m, bool require_device, std::size_t programs = 8)
      : device(compile(m, options(require_device, programs))), reference(compile(m, on_reference())) {}
  static compile_options options(bool require_device, std::size_t programs) {
    compile_options o;
    o.opened = shared_device();
    o.require_device = require_device;
    o.specialized_programs = programs;
    return o;
  }
  static compile_options on_reference() {
    compile_options o;
    o.device = "reference";
    return o;
  }
  void check(const tensor& x) {
    CAPTURE(x.dims());
    named_tensors inputs;
    inputs.add("x", x);
    const named_tensors got = device.run(inputs);
    const named_tensors want = reference.run(inputs);
    REQUIRE(got.size() == want.size());
    REQUIRE(got[0].dims() == want[0].dims());
    for (std::size_t i = 0; i < static_cast<std::size_t>(want[0].size()); ++i)
      CHECK(got[0].data<float>()[i] == Approx(want[0].data<float>()[i]).margin(1e-6));
  }
};

}  // namespace

TEST_CASE("a branch that a dim decides is taken at compile time, for all dims that take it") {
  const model m = squeezed_where_one();
  for (const bool require_device : {false, true}) {
    CAPTURE(require_device);
    both s(m, require_device);
    for (const std::int64_t length : {5, 7, 2}) {
      s.check(numbers({3, length}));
      CHECK(s.device.host_ops() == 0);
    }
    CHECK(s.device.report().specialized_programs == 1);
    CHECK(s.device.report().decided_conditions.size() == 1);
    for (const std::int64_t rows : {4, 2}) {
      s.check(numbers({rows, 1}));
      CHECK(s.device.host_ops() == 0);
    }
    CHECK(s.device.report().specialized_programs == 2);
    s.check(numbers({0, 1}));
    s.check(numbers({2, 0}));
    s.check(numbers({6, 3}));
    CHECK(s.device.report().specialized_programs == 2);
    CHECK(s.device.report().decided_conditions.size() == 1);
  }
}

TEST_CASE("beyond the programs that are kept, branches that dims decide run in the general one") {
  const model m = squeezed_where_one();
  both s(m, false, 1);
  s.check(numbers({3, 4}));
  CHECK(s.device.host_ops() == 0);
  s.check(numbers({3, 1}));
  CHECK(s.device.host_ops() > 0);
  s.check(numbers({3, 6}));
  CHECK(s.device.host_ops() == 0);
}

TEST_CASE("without the pass that takes branches they stay bodies of one program") {
  const model m = squeezed_where_one();
  compile_options options = both::options(false, 8);
  options.passes = "none";
  session s = compile(m, options);
  for (const std::int64_t length : {5, 1, 6}) {
    named_tensors inputs;
    inputs.add("x", numbers({3, length}));
    const named_tensors want = compile(m, both::on_reference()).run(inputs);
    const named_tensors got = s.run(inputs);
    REQUIRE(got[0].dims() == want[0].dims());
    for (std::size_t i = 0; i < static_cast<std::size_t>(want[0].size()); ++i)
      CHECK(got[0].data<float>()[i] == Approx(want[0].data<float>()[i]).margin(1e-6));
  }
  CHECK(s.report().specialized_programs == 0);
  CHECK(s.report().decided_conditions.empty());
}

TEST_CASE("where memory is for one program, the one for other branches makes room") {
  // Beside the branches a product with a constant of 1 MiB, which each program holds.
  std::vector<written::message> nodes = asks("x", 1, "c");
  nodes.push_back(branches("c", "s", squeeze("x", "one"), keep("x")));
  nodes.push_back(written::node("Softmax", {"s"}, {"y"}));
  nodes.push_back(written::node("MatMul", {"v", "w"}, {"z"}));
  const model m = loaded(written::model(written::graph(
      nodes, {written::info("x", 1, {"N", "L"}), written::info("v", 1, {"N", "256"})},
      {written::untyped("y"), written::untyped("z")},
      {written::int_tensor("one", {1}), written::float_tensor("w", {256, 1024}, std::vector<float>(262144, 0.5F))})));
  const auto run = [&](session& s, std::int64_t length) {
    named_tensors inputs;
    inputs.add("x", numbers({3, length}));
    inputs.add("v", numbers({3, 256}));
    return s.run(inputs);
  };
  const auto on_own_device = [&](std::uint64_t limit) {
    compile_options options;
    options.memory_limit = limit;
    return compile(m, options);
  };
  std::uint64_t one = 0;
  std::vector<named_tensors> want;
  for (const std::int64_t length : {5, 1}) {
    session s = on_own_device(0);
    want.push_back(run(s, length));
    one = std::max<std::uint64_t>(one, s.context()->memory().figures().peak_bytes);
  }
  session s = on_own_device(one + 65536);
  for (const std::size_t turn : {0U, 1U, 0U, 1U}) {
    const named_tensors got = run(s, turn == 0 ? 5 : 1);
    REQUIRE(got.size() == 2);
    for (std::size_t i = 0; i < 2; ++i) CHECK(std::ranges::equal(got[i].bytes(), want[turn][i].bytes()));
    CHECK(s.host_ops() == 0);
  }
  CHECK(s.report().specialized_programs == 4);
}

TEST_CASE("conditions that a taken branch brings to light are decided too") {
  // The other branch asks for N, which only shows where L is not 1.
  std::vector<written::message> inner = asks("x", 0, "d");
  inner.push_back(branches("d", "inner", squeeze("x", "zero"), keep("x")));
  std::vector<written::message> nodes = asks("x", 1, "c");
  nodes.push_back(branches("c", "s", squeeze("x", "one"), written::graph(inner, {}, {written::untyped("inner")})));
  nodes.push_back(written::node("Softmax", {"s"}, {"y"}));
  const model m =
      loaded(written::model(written::graph(nodes, {written::info("x", 1, {"N", "L"})}, {written::untyped("y")},
                                           {written::int_tensor("one", {1}), written::int_tensor("zero", {0})})));
  both s(m, false);
  std::size_t programs = 0;
  for (const dim_list& dims : {dim_list{3, 4}, dim_list{3, 1}, dim_list{1, 4}, dim_list{1, 1}}) {
    s.check(numbers(dims));
    CHECK(s.device.host_ops() == 0);
    // Whether N is 1 is asked only where L is not.
    programs += dims == dim_list{1, 1} ? 0 : 1;
    CHECK(s.device.report().specialized_programs == programs);
  }
  CHECK(s.device.report().decided_conditions.size() == 2);
}

TEST_CASE("comparisons of dims are expressions, which conditions of them join") {
  // Softmax of x [N, L] where not (L < N or L == 2), else of its rows' sums.
  std::vector<written::message> nodes{
      written::node("Shape", {"x"}, {"n"}, {written::int_attribute("start", 0), written::int_attribute("end", 1)}),
      written::node("Shape", {"x"}, {"l"}, {written::int_attribute("start", 1)}),
      written::node("Less", {"l", "n"}, {"less"}),
      written::node("Equal", {"l", "two"}, {"equal"}),
      written::node("Or", {"less", "equal"}, {"either"}),
      written::node("Not", {"either"}, {"c"})};
  const auto reduced =
      written::graph({written::node("ReduceSum", {"x", "one"}, {"sums"}, {written::int_attribute("keepdims", 0)})}, {},
                     {written::untyped("sums")});
  nodes.push_back(branches("c", "s", keep("x"), reduced));
  nodes.push_back(written::node("Softmax", {"s"}, {"y"}));
  const model m =
      loaded(written::model(written::graph(nodes, {written::info("x", 1, {"N", "L"})}, {written::untyped("y")},
                                           {written::int_tensor("one", {1}), written::int_tensor("two", {2})})));
  both s(m, false);
  for (std::int64_t rows = 0; rows < 5; ++rows)
    for (std::int64_t length = 1; length < 5; ++length) {
      s.check(numbers({rows, length}));
      CHECK(s.device.host_ops() == 0);
    }
  CHECK(s.device.report().specialized_programs == 2);
}

TEST_CASE("branches that data decide stay bodies") {
  const written::message m = written::model(written::graph(
      {written::node("ReduceSum", {"x"}, {"sum"}, {written::int_attribute("keepdims", 0)}),
       written::node("Greater", {"sum", "limit"}, {"c"}),
       branches("c", "y", keep("x"),
                written::graph({written::node("Neg", {"x"}, {"less"})}, {}, {written::untyped("less")}))},
      {written::info("x", 1, {"N"})}, {written::untyped("y")}, {written::float_tensor("limit", {}, {-0.7F})}));
  compile_options options;
  options.opened = shared_device();
  session s = compile(loaded(m), options);
  for (const std::int64_t count : {3, 1, 0}) {
    named_tensors inputs;
    inputs.add("x", numbers({count}));
    const named_tensors got = s.run(inputs);
    REQUIRE(got[0].size() == count);
    if (count > 0) CHECK(got[0].data<float>()[0] == Approx(count == 3 ? 0.63F : -0.63F));
  }
  CHECK(s.report().decided_conditions.empty());
}

namespace {

/// -x where `condition`, which `nodes` compute from the input `mode` of `type` (ONNX's number), else x.
model negated_where(std::vector<written::message> nodes, std::int32_t type, const std::vector<std::string>& dims = {}) {
  nodes.push_back(branches("condition", "y",
                           written::graph({written::node("Neg", {"x"}, {"less"})}, {}, {written::untyped("less")}),
                           keep("x")));
  return loaded(written::model(written::graph(nodes, {written::info("x", 1, {"N"}), written::info("mode", type, dims)},
                                              {written::untyped("y")}, {written::int_tensor("rate", {16000})})));
}

/// The first element of y for x[0] = -0.63 and this mode.
float first(session& s, const tensor& mode) {
  named_tensors inputs;
  inputs.add("x", numbers({3}));
  inputs.add("mode", mode);
  return s.run(inputs)[0].data<float>()[0];
}

}  // namespace

TEST_CASE("an input that does nothing but decide a branch needs one program for each answer") {
  const model m = negated_where({written::node("Equal", {"mode", "rate"}, {"condition"})}, 7);
  for (const bool require_device : {false, true}) {
    session s = compile(m, both::options(require_device, 8));
    for (const std::int64_t rate : {std::int64_t{16000}, std::int64_t{8000}, std::int64_t{44100}, std::int64_t{16000},
                                    std::int64_t{-1}, std::numeric_limits<std::int64_t>::max()}) {
      CAPTURE(rate);
      CHECK(first(s, tensor::scalar(rate)) == Approx(rate == 16000 ? 0.63F : -0.63F));
      CHECK(s.host_ops() == 0);
    }
    CHECK(s.report().specialized_programs == 2);
    CHECK(s.report().specialized_inputs.empty());
    CHECK(s.report().decided_conditions.size() == 1);
    // Its distance to the rate is no int64.
    CHECK_THROWS_AS(first(s, tensor::scalar(std::numeric_limits<std::int64_t>::min())), error);
    CHECK(first(s, tensor::scalar(std::int64_t{16000})) == Approx(0.63F));
  }
}

TEST_CASE("a boolean input of one element that decides a branch is asked for its answer") {
  const model m = negated_where({written::node("Not", {"mode"}, {"condition"})}, 9, {"1"});
  session s = compile(m, both::options(true, 8));
  for (const bool mode : {true, false, true, false}) {
    tensor given(dtype::boolean, {1});
    given.mutable_data<bool>()[0] = mode;
    CHECK(first(s, given) == Approx(mode ? -0.63F : 0.63F));
    CHECK(s.host_ops() == 0);
  }
  CHECK(s.report().specialized_programs == 2);
}

TEST_CASE("what wraps around, or is data beside, is no condition of an input's number") {
  // 2 * mode as int32, of which half the range wraps around to 16000.
  const model sum = negated_where(
      {written::node("Cast", {"rate"}, {"r"}, {written::int_attribute("to", 6)}),
       written::node("Add", {"mode", "mode"}, {"twice"}), written::node("Equal", {"twice", "r"}, {"condition"})},
      6);
  session s = compile(sum, both::options(false, 8));
  const std::int32_t wrapped = std::numeric_limits<std::int32_t>::min() + 8000;
  CHECK(first(s, tensor::scalar(wrapped)) == Approx(0.63F));
  CHECK(first(s, tensor::scalar(std::int32_t{8000})) == Approx(0.63F));
  CHECK(first(s, tensor::scalar(std::int32_t{8001})) == Approx(-0.63F));
  CHECK(s.report().decided_conditions.empty());
  const model cast = negated_where({written::node("Cast", {"rate"}, {"r"}, {written::int_attribute("to", 6)}),
                                    written::node("Cast", {"mode"}, {"m"}, {written::int_attribute("to", 6)}),
                                    written::node("Equal", {"m", "r"}, {"condition"})},
                                   7);
  session t = compile(cast, both::options(false, 8));
  CHECK(first(t, tensor::scalar((std::int64_t{1} << 32) + 16000)) == Approx(0.63F));
  CHECK(first(t, tensor::scalar(std::int64_t{16001})) == Approx(-0.63F));
  CHECK(t.report().decided_conditions.empty());
}

TEST_CASE("an input that decides a branch and lies in the caller's memory is read there") {
  const model m = negated_where({written::node("Equal", {"mode", "rate"}, {"condition"})}, 7);
  session s = compile(m, both::options(false, 8));
  CHECK(first(s, tensor::scalar(std::int64_t{16000})) == Approx(0.63F));
  opencl::context& where = shared_device()->context;
  const opencl::device_buffer memory = where.memory().allocate(8, "mode");
  opencl::command_queue queue = where.make_queue();
  s.bind("mode", memory.handle());
  named_tensors inputs;
  inputs.add("x", numbers({3}));
  for (const std::int64_t rate : {16000, 8000, 16000}) {
    const tensor mode = tensor::scalar(rate);
    queue.upload(memory, mode.bytes());
    queue.finish();
    CHECK(s.run(inputs)[0].data<float>()[0] == Approx(rate == 16000 ? 0.63F : -0.63F));
  }
}
