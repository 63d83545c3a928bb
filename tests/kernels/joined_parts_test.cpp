// Pointwise convolutions that read the parts of a concatenation where they lie, against the reference.
#include "block_fixture.hpp"

using namespace dnnopt;
using namespace dnnopt::testing;

namespace {

/// Whether the last block's kernel reads rows of several places.
bool reads_parts(const blocks& of) {
  const fused_block& block = of.g.blocks().back();
  const device_info facts = of.info(device_form::vectors);
  const codegen::lowered_node lowered =
      codegen::lower({of.g, block.members, block.outputs, block.anchor}, codegen::default_lower_options(&facts));
  return lowered.kernels.back().source.str().find("#define DNNOPT_B_PARTS 1\n") != std::string::npos;
}

}  // namespace

TEST_CASE_METHOD(blocks, "a pointwise convolution reads the parts of a concatenation where they lie") {
  struct row {
    std::int64_t images;
    std::vector<std::int64_t> channels;
    dim_list plane;
    std::int64_t outputs;
  };
  // Parts of one channel, of more than a block of inner elements, odd planes, several images, one to three dims.
  const auto r = GENERATE(row{1, {3, 5}, {9, 11}, 7}, row{2, {4, 1, 6}, {8, 8}, 13}, row{3, {2, 2}, {67}, 5},
                          row{1, {40, 300}, {7, 7}, 30}, row{2, {1, 2, 3, 4}, {3, 5, 7}, 25});
  std::vector<value_id> parts;
  std::int64_t together = 0;
  for (const std::int64_t channels : r.channels) {
    dim_list dims{r.images, channels};
    dims.insert(dims.end(), r.plane.begin(), r.plane.end());
    parts.push_back(input(dims));
    together += channels;
  }
  CAPTURE(r.images, r.channels, r.plane, r.outputs);
  const value_id joined = add("Concat", parts, with("axis", std::int64_t{1}));
  dim_list weights{r.outputs, together};
  weights.resize(2 + r.plane.size(), 1);
  g.add_output(add("Relu", {add("Conv", {joined, constant(weights), constant({r.outputs})})}));
  check(device_form::vectors, {"convolution_panels_packed"});
  CHECK(reads_parts(*this));
}

TEST_CASE_METHOD(blocks, "one value may be two parts, and a part may be a constant") {
  const value_id x = input({1, 6, 9, 9});
  const value_id joined = add("Concat", {x, constant({1, 2, 9, 9}), x}, with("axis", std::int64_t{1}));
  g.add_output(add("Conv", {joined, constant({5, 14, 1, 1})}));
  check(device_form::vectors, {"convolution_panels_packed"});
  CHECK(reads_parts(*this));
}

TEST_CASE_METHOD(blocks, "parts that are computed as they are read, or stand along another axis, are packed") {
  const std::string why = GENERATE("a part is computed", "another axis", "groups", "planes smaller than a panel");
  CAPTURE(why);
  const value_id x = input({2, 4, 9, 9});
  if (why == "a part is computed") {
    const value_id joined = add("Concat", {add("Neg", {x}), x}, with("axis", std::int64_t{1}));
    g.add_output(add("Conv", {joined, constant({6, 8, 1, 1})}));
  } else if (why == "another axis") {
    const value_id joined = add("Concat", {x, input({2, 4, 3, 9})}, with("axis", std::int64_t{2}));
    g.add_output(add("Conv", {joined, constant({6, 4, 1, 1})}));
  } else if (why == "groups") {
    const value_id joined = add("Concat", {x, input({2, 4, 9, 9})}, with("axis", std::int64_t{1}));
    g.add_output(add("Conv", {joined, constant({6, 4, 1, 1})}, window(1, 0, 1, 2)));
  } else {
    const value_id joined = add("Concat", {input({2, 4, 1, 1}), input({2, 1, 1, 1})}, with("axis", std::int64_t{1}));
    g.add_output(add("Conv", {joined, constant({6, 5, 1, 1})}));
  }
  check(device_form::vectors, {"convolution_panels_packed"});
  CHECK_FALSE(reads_parts(*this));
}
