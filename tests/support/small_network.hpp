// A network that a test writes down operator by operator.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dnnopt/model.hpp>
#include <dnnopt/ops/standard.hpp>

namespace dnnopt::testing {

/// float32 elements from -1 to 1, up and up again.
inline tensor ramp(dim_list dims) {
  tensor t(dtype::float32, std::move(dims));
  float next = -1;
  for (float& x : t.mutable_data<float>()) {
    x = next;
    next = next > 1 ? -1 : next + 0.013F;
  }
  return t;
}

/// A graph under construction; values are float32 and shapes come from shape propagation.
struct network {
  op_set ops = standard_ops();
  graph g;

  value_id input(std::string name, shape dims) { return g.add_input(std::move(name), dtype::float32, std::move(dims)); }
  value_id node(std::string_view op, std::vector<value_id> inputs, attribute_map attributes = {}) {
    const std::string name = std::string(op) + std::to_string(g.node_count());
    const value_id out = g.add_value(name);
    g.add_node(ops.at("", op), name, std::move(inputs), {out}, std::move(attributes));
    return out;
  }
  value_id concat(std::vector<value_id> inputs, std::int64_t axis) {
    attribute_map attributes;
    attributes.set("axis", axis);
    return node("Concat", std::move(inputs), attributes);
  }
  /// A constant of seeded numbers from -factor to factor.
  value_id weights(dim_list dims, float factor = 1) {
    tensor t(dtype::float32, std::move(dims));
    std::mt19937 random(static_cast<unsigned>(g.value_count()));
    for (float& x : t.mutable_data<float>()) x = factor * (static_cast<float>(random() % 2000) / 1000.0F - 1.0F);
    return g.add_constant("w" + std::to_string(g.value_count()), std::move(t));
  }
  model finish(value_id output) {
    g.name = "test";
    g.add_output(output);
    model m;
    m.main = g;
    m.ops = ops;
    return m;
  }
};

}  // namespace dnnopt::testing
