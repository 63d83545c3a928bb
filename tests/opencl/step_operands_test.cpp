// Operands of products in tiles and matrix steps whose elements do not lie where the kernel's only load is.
#include <catch2/catch.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <dnnopt/backend/run/executor.hpp>
#include <dnnopt/dnnopt.hpp>
#include <dnnopt/reference/evaluator.hpp>

#include "../support/shared_device.hpp"
#include "../support/small_network.hpp"

using namespace dnnopt;
using dnnopt::testing::network;
using dnnopt::testing::shared_device;

namespace {

/// MatMul(OneHot(x, 3, [-0.5, 1]), weights), where x of float32 or float16 is cast to its indices. The numbers of a
/// one-hot element stand in the source, and all that its kernel loads is an index, of which neighbours are neighbours.
model of_one_hot(dtype type, std::int64_t axis, dim_list dims, dim_list weights) {
  network n;
  shape symbolic(dims.begin(), dims.end());
  value_id index = n.g.add_input("x", type, std::move(symbolic));
  if (type != dtype::int64) {
    attribute_map to;
    to.set("to", static_cast<std::int64_t>(dtype::int64));
    index = n.node("Cast", {index}, to);
  }
  attribute_map along;
  along.set("axis", axis);
  const value_id depth = n.g.add_constant("depth", tensor::scalar(std::int64_t{3}));
  const value_id values = n.g.add_constant("values", tensor::of<float>({2}, std::vector<float>{-0.5F, 1}));
  return n.finish(n.node("MatMul", {n.node("OneHot", {index, depth, values}, along), n.weights(std::move(weights))}));
}

tensor indices(dtype type, dim_list dims) {
  tensor t(type, std::move(dims));
  for (std::size_t i = 0; i < static_cast<std::size_t>(t.size()); ++i) {
    const auto index = static_cast<std::int64_t>(i * 7 % 5) - 1;
    if (type == dtype::int64) t.mutable_data<std::int64_t>()[i] = index;
    if (type == dtype::float32) t.mutable_data<float>()[i] = static_cast<float>(index);
    if (type == dtype::float16) t.mutable_data<float16>()[i] = float16(static_cast<float>(index));
  }
  return t;
}

}  // namespace

TEST_CASE("what an index is loaded from is not what the operand of a product lies in") {
  struct row {
    std::int64_t axis;
    dim_list dims;
    dim_list weights;
  };
  for (const char* const steps : {"none", "plain", "plain_floats"})
    for (const precision stored : {precision::fp32, precision::fp16})
      for (const dtype type : {dtype::int64, dtype::float32, dtype::float16})
        for (const row& r : {row{0, {8}, {8, 4}}, row{-1, {7, 5}, {3, 4}}, row{0, {2, 16}, {16, 24}}}) {
          CAPTURE(steps, static_cast<int>(stored), name_of(type), r.axis, r.dims);
          const model m = of_one_hot(type, r.axis, r.dims, r.weights);
          compile_options options;
          options.opened = shared_device();
          options.form = kernel_form::groups;
          options.matrix_steps = steps;
          options.precision = stored;
          options.require_device = true;
          session s = compile(m, options);
          if (stored == precision::fp32) {
            const auto& kernels = s.executor()->executed().steps.back().lowered.kernels;
            const bool in_steps = std::string(steps) == "plain_floats";
            CHECK(kernels.front().version == (in_steps ? "matrix_steps" : "matrix_tiles"));
          }
          const tensor x = indices(type, r.dims);
          const tensor want = reference::evaluate(m.main, std::vector{x})[0];
          const tensor got = s.run({{"x", x}})[0];
          REQUIRE(got.dims() == want.dims());
          const float most = stored == precision::fp32 ? 1e-5F : 1e-2F;
          for (std::size_t i = 0; i < static_cast<std::size_t>(want.size()); ++i) {
            const float difference = std::fabs(got.data<float>()[i] - want.data<float>()[i]);
            if (!(difference <= most)) FAIL("element " << i << " differs by " << difference);
          }
        }
}
