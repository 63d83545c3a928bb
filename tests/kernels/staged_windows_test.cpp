// Reductions of windows before the pointwise convolution that alone reads them, as one kernel, against the reference.
#include "block_fixture.hpp"

using namespace dnnopt;
using namespace dnnopt::testing;

namespace {

attribute_map pooled(std::vector<std::int64_t> size, std::int64_t stride, std::int64_t pad) {
  attribute_map a;
  a.set("strides", std::vector<std::int64_t>(size.size(), stride));
  a.set("pads", std::vector<std::int64_t>(2 * size.size(), pad));
  a.set("kernel_shape", std::move(size));
  return a;
}

}  // namespace

TEST_CASE_METHOD(blocks, "windows are reduced once by the pointwise convolution that reads them") {
  struct row {
    dim_list dims;
    std::string pool;
    attribute_map attributes;
    std::int64_t outputs;
  };
  attribute_map ceiling = pooled({3, 3}, 2, 0);
  ceiling.set("ceil_mode", std::int64_t{1});
  attribute_map counted = pooled({3, 3}, 2, 1);
  counted.set("count_include_pad", std::int64_t{1});
  attribute_map spread = pooled({3, 2}, 1, 1);
  spread.set("dilations", std::vector<std::int64_t>{2, 1});
  // Odd extents, several images, windows that reach beyond, more channels than a block of inner elements, one and three
  // spatial dims, windows side by side.
  const auto r = GENERATE_COPY(
      row{{1, 5, 27, 29}, "MaxPool", pooled({3, 3}, 2, 0), 7}, row{{2, 3, 14, 37}, "MaxPool", ceiling, 16},
      row{{3, 9, 9, 11}, "AveragePool", pooled({3, 3}, 2, 1), 5}, row{{1, 4, 12, 12}, "AveragePool", counted, 3},
      row{{1, 6, 13, 40}, "MaxPool", spread, 33}, row{{1, 300, 7, 7}, "MaxPool", pooled({3, 3}, 1, 1), 70},
      row{{2, 6, 41}, "MaxPool", pooled({5}, 3, 2), 4}, row{{1, 3, 5, 6, 7}, "MaxPool", pooled({3, 3, 3}, 1, 1), 8},
      row{{1, 4, 20, 66}, "AveragePool", pooled({2, 2}, 2, 0), 9});
  CAPTURE(r.pool, r.dims, r.outputs);
  // What stands before and behind the pool is the same kernel's.
  const value_id planes = add("Neg", {input(r.dims)});
  const value_id reduced = add("Relu", {add(r.pool, {planes}, r.attributes)});
  dim_list weights{r.outputs, r.dims[1]};
  weights.resize(r.dims.size(), 1);
  g.add_output(add("Relu", {add("Conv", {reduced, constant(weights), constant({r.outputs})})}));
  check(device_form::vectors, {"convolution_panels_packed"});
}

TEST_CASE_METHOD(blocks, "parts side by side are windowed and multiplied in one kernel") {
  const value_id parts = add("Concat", {input({2, 3, 15, 15}), input({2, 5, 15, 15})}, with("axis", std::int64_t{1}));
  g.add_output(add("Conv", {add("MaxPool", {parts}, pooled({3, 3}, 2, 0)), constant({6, 8, 1, 1})}));
  check(device_form::vectors, {"convolution_panels_packed"});
}

TEST_CASE_METHOD(blocks, "windows of planes whose extents only a run tells are reduced by their reader") {
  const index_expr side = g.expressions().symbol("side");
  symbols.bind(*side.as_symbol(), 17);
  inputs.push_back(random_tensor(dtype::float32, {2, 4, 17, 17}, 5));
  const value_id x = g.add_input("x", dtype::float32, shape{2, 4, side, side});
  const std::string pool = GENERATE("MaxPool", "AveragePool");
  g.add_output(add("Conv", {add(pool, {x}, pooled({3, 3}, 2, 1)), constant({6, 4, 1, 1})}));
  check(device_form::vectors, {"convolution_panels_packed"});
}

TEST_CASE_METHOD(blocks, "windows that others read, or that more than one position reads, stay apart") {
  const value_id x = input({1, 4, 15, 15});
  const value_id reduced = add("MaxPool", {x}, pooled({3, 3}, 2, 0));
  const std::string why = GENERATE("a second reader", "a window of three", "a group", "a stride", "an output");
  CAPTURE(why);
  if (why == "a second reader") {
    g.add_output(add("Conv", {reduced, constant({6, 4, 1, 1})}));
    g.add_output(add("Conv", {reduced, constant({5, 4, 1, 1})}));
    check(device_form::vectors, {"window_planes", "convolution_panels_packed", "convolution_panels_packed"});
  } else if (why == "a window of three") {
    g.add_output(add("Conv", {reduced, constant({6, 4, 3, 3})}, window(3, 1, 1, 1)));
    check(device_form::vectors, {"window_planes", "convolution_shifts"});
  } else if (why == "a group") {
    g.add_output(add("Conv", {reduced, constant({6, 2, 1, 1})}, window(1, 0, 1, 2)));
    check(device_form::vectors, {"window_planes", "convolution_panels_packed"});
  } else if (why == "a stride") {
    g.add_output(add("Conv", {reduced, constant({6, 4, 1, 1})}, window(1, 0, 2, 1)));
    check(device_form::vectors, {"window_planes", "convolution_shifts"});
  } else {
    g.add_output(add("Conv", {reduced, constant({6, 4, 1, 1})}));
    g.add_output(reduced);
    check(device_form::vectors, {"window_planes", "convolution_panels_packed"});
  }
}

TEST_CASE_METHOD(blocks, "a device of work-groups has no kernel for windows before a convolution") {
  const value_id reduced = add("MaxPool", {input({1, 4, 15, 15})}, pooled({3, 3}, 2, 0));
  g.add_output(add("Conv", {reduced, constant({6, 4, 1, 1})}));
  CHECK_FALSE(one_block_lowers(device_form::groups));
}
