// Blocks that the fusion pass plans, as kernels in both forms, against the reference: what stands before a product,
// what reduces a convolution's planes, and products of one vector.
#include "kernel_fixture.hpp"

#include <catch2/catch.hpp>

#include <optional>

#include <dnnopt/passes/fuse.hpp>
#include <dnnopt/passes/rdp.hpp>
#include <dnnopt/reference/evaluate_node.hpp>

using namespace dnnopt;
using namespace dnnopt::testing;

namespace {

tensor f32(dim_list dims, std::uint32_t seed) { return random_tensor(dtype::float32, std::move(dims), seed); }

/// A graph of a few nodes, grown by name.
struct blocks : kernel_bench {
  graph g;
  std::vector<tensor> inputs;
  std::uint32_t seed = 1;

  value_id input(dim_list dims) {
    inputs.push_back(f32(dims, ++seed));
    return g.add_input("x" + std::to_string(inputs.size()), dtype::float32, to_shape(dims));
  }
  value_id constant(dim_list dims) {
    ++seed;
    return g.add_constant("c" + std::to_string(seed), f32(std::move(dims), seed));
  }
  value_id integers(std::vector<std::int64_t> held) {
    tensor t(dtype::int64, {static_cast<std::int64_t>(held.size())});
    std::copy(held.begin(), held.end(), t.mutable_data<std::int64_t>().begin());
    return g.add_constant("i" + std::to_string(++seed), std::move(t));
  }
  value_id add(std::string_view op, std::vector<value_id> in, attribute_map attributes = {}) {
    ++seed;
    const value_id out = g.add_value("v" + std::to_string(seed));
    g.add_node(ops().at("", op), std::string(op) + std::to_string(seed), std::move(in), {out}, std::move(attributes));
    return out;
  }
  static attribute_map with(std::string key, attribute held) {
    attribute_map a;
    a.set(std::move(key), std::move(held));
    return a;
  }

  /// Plans, runs each block in turn, and compares every value that a block stores. `versions` are the kernels that must
  /// have run, without those that pack weights.
  void check(device_form form, const std::vector<std::string>& versions) {
    rdp{}.run(g);
    fuse_blocks{}.run(g);
    std::vector<tensor> all(g.value_count());
    for (std::size_t i = 0; i < inputs.size(); ++i) all[g.inputs()[i]] = inputs[i];
    for (value_id v = 0; v < g.value_count(); ++v)
      if (g.facts(v).is_constant()) all[v] = g.facts(v).constant;
    for (const node_id id : g.topological_order()) {
      std::vector<tensor> in;
      for (const value_id v : g.node_at(id).inputs) in.push_back(v == no_value ? tensor() : all[v]);
      std::vector<tensor> out = reference::evaluate_node(g, id, in);
      for (std::size_t o = 0; o < out.size(); ++o) all[g.node_at(id).outputs[o]] = out[o];
    }
    std::vector<std::string> ran;
    for (const fused_block& block : g.blocks()) {
      const codegen::block_view view{g, block.members, block.outputs, block.anchor};
      std::vector<std::pair<value_id, tensor>> values;
      for (value_id v = 0; v < g.value_count(); ++v) {
        const bool stored = std::find(block.outputs.begin(), block.outputs.end(), v) != block.outputs.end();
        if (!all[v].empty()) values.emplace_back(v, stored ? tensor(all[v].type(), all[v].dims()) : all[v]);
      }
      for (const std::string& version : run(view, form, values))
        if (version != "pack") ran.push_back(version);
      for (const auto& [v, content] : values)
        if (std::find(block.outputs.begin(), block.outputs.end(), v) != block.outputs.end()) {
          INFO("value " << g.value_at(v).name);
          CHECK(relative_difference(content, all[v]) <= tolerance_of(dtype::float32));
        }
    }
    CHECK(ran == versions);
  }
};

attribute_map window(std::int64_t size, std::int64_t pad, std::int64_t stride, std::int64_t group) {
  attribute_map a;
  a.set("kernel_shape", std::vector<std::int64_t>{size, size});
  a.set("pads", std::vector<std::int64_t>{pad, pad, pad, pad});
  a.set("strides", std::vector<std::int64_t>{stride, stride});
  a.set("group", group);
  return a;
}

}  // namespace

TEST_CASE_METHOD(blocks, "a normalization of rows runs in the product that reads it") {
  for (const std::string_view norm : {"LayerNormalization", "RMSNormalization"}) {
    for (const std::int64_t length : {7, 33, 300}) {
      g = graph();
      inputs.clear();
      const value_id x = input({2, 13, length});
      std::vector<value_id> in{x, constant({length})};
      if (norm == "LayerNormalization") in.push_back(constant({length}));
      const value_id normal = add(norm, in, with("axis", std::int64_t{-1}));
      const value_id product = add("MatMul", {normal, constant({length, 21})});
      g.add_output(add("Relu", {add("Add", {product, constant({21})})}));
      check(device_form::vectors, {"matrix_panels_packed"});
    }
  }
}

TEST_CASE_METHOD(blocks, "rows of a normalization are found through views") {
  const value_id x = input({1, 6, 6, 8});
  const value_id normal = add("LayerNormalization", {x, constant({8}), constant({8})}, with("axis", std::int64_t{-1}));
  const value_id padded = add("Pad", {normal, integers({0, 1, 0, 0, 0, 0, 1, 0})});
  const value_id cut = add("Reshape", {padded, integers({1, 7, 7, 8})});
  g.add_output(add("MatMul", {cut, constant({8, 15})}));
  check(device_form::vectors, {"matrix_panels_packed"});
}

TEST_CASE_METHOD(blocks, "planes are reduced by the convolution that computes them") {
  struct row {
    std::int64_t channels, outputs, size, pad, group, extent;
    const char* version;
  };
  for (const row& r :
       {row{5, 11, 1, 0, 1, 7, "convolution_panels_packed"}, row{4, 6, 3, 1, 1, 13, "convolution_panels_packed"},
        row{6, 6, 3, 1, 6, 15, "window_planes"}, row{6, 6, 5, 2, 6, 56, "window_planes"}}) {
    g = graph();
    inputs.clear();
    const value_id x = input({2, r.channels, r.extent, r.extent});
    const value_id y =
        add("Conv", {x, constant({r.outputs, r.channels / r.group, r.size, r.size}), constant({r.outputs})},
            window(r.size, r.pad, 1, r.group));
    const value_id active = add("HardSwish", {y});
    g.add_output(active);
    g.add_output(add("GlobalAveragePool", {active}));
    check(device_form::vectors, {r.version});
  }
}

TEST_CASE_METHOD(blocks, "two products of one vector run as one kernel") {
  for (const device_form form : {device_form::vectors, device_form::groups}) {
    for (const std::int64_t channels : {1, 19, 130}) {
      g = graph();
      inputs.clear();
      const value_id x = input({3, channels, 1, 1});
      const value_id first =
          add("Relu", {add("Conv", {x, constant({9, channels, 1, 1}), constant({9})}, window(1, 0, 1, 1))});
      const value_id second =
          add("Conv", {first, constant({channels, 9, 1, 1}), constant({channels})}, window(1, 0, 1, 1));
      g.add_output(add("Sigmoid", {second}));
      check(form, {"vector_chain"});
    }
  }
}
