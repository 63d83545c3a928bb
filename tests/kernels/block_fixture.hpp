// Owns graphs of a few nodes for the kernel tests: grown by name, planned by the fusion pass, run block by block.
#ifndef DNNOPT_TESTS_KERNELS_BLOCK_FIXTURE_HPP
#define DNNOPT_TESTS_KERNELS_BLOCK_FIXTURE_HPP

#include "kernel_fixture.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dnnopt/passes/fuse.hpp>
#include <dnnopt/passes/rdp.hpp>
#include <dnnopt/reference/evaluate_node.hpp>

namespace dnnopt::testing {

/// A graph of a few nodes, grown by name.
struct blocks : kernel_bench {
  graph g;
  std::vector<tensor> inputs;
  std::uint32_t seed = 1;
  symbol_values symbols;  ///< what symbolic dims are in a run

  value_id input(dim_list dims) {
    ++seed;
    inputs.push_back(random_tensor(dtype::float32, dims, seed));
    return g.add_input("x" + std::to_string(inputs.size()), dtype::float32, to_shape(dims));
  }
  value_id constant(dim_list dims) {
    ++seed;
    return g.add_constant("c" + std::to_string(seed), random_tensor(dtype::float32, std::move(dims), seed));
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

  /// Every value by the reference backend.
  [[nodiscard]] std::vector<tensor> evaluate_all() const {
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
    return all;
  }

  /// Runs one block on the device with what the reference computed before it, and compares what it stores. Returns the
  /// versions of its kernels without those that pack weights.
  std::vector<std::string> check_block(const codegen::block_view& view, device_form form,
                                       const std::vector<tensor>& all) {
    const auto stored = [&](value_id v) {
      return std::find(view.outputs.begin(), view.outputs.end(), v) != view.outputs.end();
    };
    std::vector<std::pair<value_id, tensor>> values;
    for (value_id v = 0; v < g.value_count(); ++v)
      if (!all[v].empty()) values.emplace_back(v, stored(v) ? tensor(all[v].type(), all[v].dims()) : all[v]);
    std::vector<std::string> ran = run(view, form, values, symbols);
    std::erase(ran, "pack");
    for (const auto& [v, content] : values)
      if (stored(v)) {
        INFO("value " << g.value_at(v).name);
        CHECK(relative_difference(content, all[v]) <= tolerance_of(all[v].type()));
      }
    return ran;
  }

  /// Plans, and says whether there are kernels for all as one block. Fails the test where there are several blocks.
  [[nodiscard]] bool one_block_lowers(device_form form) {
    rdp{}.run(g);
    fuse_blocks{}.run(g);
    REQUIRE(g.blocks().size() == 1);
    const fused_block& block = g.blocks()[0];
    const device_info facts = info(form);
    return codegen::can_lower({g, block.members, block.outputs, block.anchor}, codegen::default_lower_options(&facts));
  }

  /// Plans, runs each block in turn, and compares every value that a block stores. `versions` are the kernels that must
  /// have run, without those that pack weights.
  void check(device_form form, const std::vector<std::string>& versions) {
    rdp{}.run(g);
    fuse_blocks{}.run(g);
    const std::vector<tensor> all = evaluate_all();
    std::vector<std::string> ran;
    for (const fused_block& block : g.blocks())
      for (const std::string& one : check_block({g, block.members, block.outputs, block.anchor}, form, all))
        ran.push_back(one);
    CHECK(ran == versions);
  }
};

/// Attributes of a square window on two dims.
[[nodiscard]] inline attribute_map window(std::int64_t size, std::int64_t pad, std::int64_t stride,
                                          std::int64_t group) {
  attribute_map a;
  a.set("kernel_shape", std::vector<std::int64_t>{size, size});
  a.set("pads", std::vector<std::int64_t>{pad, pad, pad, pad});
  a.set("strides", std::vector<std::int64_t>{stride, stride});
  a.set("group", group);
  return a;
}

}  // namespace dnnopt::testing

#endif  // DNNOPT_TESTS_KERNELS_BLOCK_FIXTURE_HPP
