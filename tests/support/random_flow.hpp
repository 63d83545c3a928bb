// Random networks of nested control flow, the same for the same seed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include <dnnopt/named_tensors.hpp>

#include "flow_network.hpp"

namespace dnnopt::testing {

/// Grows a network of values of rank 2 whose dims may be 0, by operators and by If, Loop and Scan to a depth of three.
class random_flow {
 public:
  explicit random_flow(unsigned seed) : random_(seed) {}

  [[nodiscard]] model make() {
    flow_scope main;
    const shape dims{main.inner().expressions().symbol("n"), main.inner().expressions().symbol("m")};
    flow_values values{main.input(dtype::float32, dims, "x"), main.input(dtype::float32, shape{3, 4}, "y")};
    trips_ = main.input(dtype::int64, shape{}, "trips");
    for (std::size_t k = 2 + pick(3); k != 0; --k) values.push_back(grow(main, values));
    const flow_values made = control(main, values, 0);
    values.insert(values.end(), made.begin(), made.end());
    for (std::size_t k = 1 + pick(2); k != 0; --k) values.push_back(grow(main, values));
    for (const flow_value& v : made) main.output(v);
    main.output(values.back());
    return main.finish();
  }

  /// Inputs of a run, of other dims and paths for other seeds.
  [[nodiscard]] static named_tensors inputs(unsigned seed) {
    std::mt19937 random(seed);
    const auto matrix = [&](std::int64_t rows, std::int64_t columns) {
      tensor t(dtype::float32, {rows, columns});
      for (float& x : t.mutable_data<float>()) x = static_cast<float>(random() % 4001) / 2000.0F - 1.0F;
      return t;
    };
    const auto dim = [&] { return static_cast<std::int64_t>(random() % 5); };
    const std::int64_t rows = dim();
    const std::int64_t columns = dim();
    named_tensors all;
    all.add("x", matrix(rows, columns));
    all.add("y", matrix(3, 4));
    all.add("trips", tensor::scalar(static_cast<std::int64_t>(random() % 4)));
    return all;
  }

 private:
  std::size_t pick(std::size_t count) { return random_() % count; }
  flow_value any(const flow_values& values) { return values[pick(values.size())]; }
  static attribute_map with(std::string name, attribute value) {
    attribute_map attributes;
    attributes.set(std::move(name), std::move(value));
    return attributes;
  }

  /// One element that sums the value up, as a matrix where `matrix`.
  flow_value sum(flow_scope& s, const flow_value& v, bool matrix) {
    return s.node("ReduceSum", {s.node("Tanh", {v})}, with("keepdims", std::int64_t{matrix}));
  }
  /// States what one turn gives, as exporters do: a stack of nothing has these dims.
  static void declare(flow_scope& s, const flow_value& v) {
    s.inner().facts(v.id).type = dtype::float32;
    s.inner().facts(v.id).dims = shape{1};
  }
  flow_value condition(flow_scope& s, const flow_values& values) {
    const float limit = static_cast<float>(pick(9)) / 3.7F - 1.1F;
    return s.node("Less", {sum(s, any(values), false), s.scalar(limit)});
  }

  /// An operator on some of the values; every one of them takes any dims.
  flow_value grow(flow_scope& s, const flow_values& values) {
    const flow_value v = any(values);
    switch (pick(9)) {
      case 0:
        return s.node("Sigmoid", {v});
      case 1:
        return s.node("Neg", {v});
      case 2:
        return s.node("Transpose", {v}, with("perm", std::vector<std::int64_t>{1, 0}));
      case 3:
        return s.node("Add", {v, sum(s, any(values), true)});
      case 4:
        return s.node("Mul", {v, s.scalar(0.75F)});
      case 5:  // one row more, where there is a row
        return s.node("Concat", {v, s.node("Slice", {v, s.list({0}), s.list({1}), s.list({0})})},
                      with("axis", std::int64_t{0}));
      case 6:  // one column less
        return s.node("Slice", {v, s.list({1}), s.list({1000}), s.list({1})});
      case 7:
        return s.node("MatMul", {v, s.node("Transpose", {v}, with("perm", std::vector<std::int64_t>{1, 0}))});
      default:
        return s.node("Reshape", {s.node("Tanh", {v}), s.node("Shape", {v})});
    }
  }
  /// Values in the scope: those around, and some computed from them.
  flow_values inside(flow_scope& s, flow_values values, std::size_t depth) {
    for (std::size_t k = 1 + pick(2); k != 0; --k) {
      if (depth < 3 && pick(3) == 0) {
        const flow_values made = control(s, values, depth);
        values.insert(values.end(), made.begin(), made.end());
      } else {
        values.push_back(grow(s, values));
      }
    }
    return values;
  }
  flow_values control(flow_scope& s, const flow_values& values, std::size_t depth) {
    switch (pick(3)) {
      case 0:
        return branches(s, values, depth);
      case 1:
        return loop(s, values, depth);
      default:
        return scan(s, values, depth);
    }
  }
  flow_values branches(flow_scope& s, const flow_values& values, std::size_t depth) {
    const std::size_t outputs = 1 + pick(2);
    const auto fill = [&](flow_scope& branch) {
      const flow_values own = inside(branch, values, depth + 1);
      for (std::size_t o = 0; o < outputs; ++o) branch.output(o == 0 ? own.back() : any(own));
    };
    return s.branches(condition(s, values), outputs, fill, fill);
  }
  flow_values loop(flow_scope& s, const flow_values& values, std::size_t depth) {
    flow_values carried{any(values), any(values)};
    carried.resize(1 + pick(2));
    const bool stacks = pick(2) == 0;
    const bool by_data = pick(2) == 0;
    const flow_value trips = pick(2) == 0 ? trips_ : s.number(static_cast<std::int64_t>(pick(4)));
    const flow_value first = pick(3) == 0 ? condition(s, values) : flow_value{};
    const std::size_t outputs = carried.size() + (stacks ? 1 : 0);
    return s.loop(trips, first, carried, outputs, [&](flow_scope& body) {
      const flow_value turn = body.input(dtype::int64, shape{});
      const flow_value going = body.input(dtype::boolean, shape{});
      flow_values own = values;
      for (std::size_t k = 0; k < carried.size(); ++k) own.push_back(body.input());
      const flow_values states(own.end() - static_cast<std::ptrdiff_t>(carried.size()), own.end());
      own.push_back(body.node("Add", {states[0], body.node("Cast", {turn}, with("to", std::int64_t{1}))}));
      const flow_values made = inside(body, own, depth + 1);
      body.output(by_data ? condition(body, made) : going);
      for (std::size_t k = 0; k < carried.size(); ++k) body.output(k == 0 ? made.back() : any(made));
      if (!stacks) return;
      const flow_value part = body.node("Reshape", {sum(body, any(made), true), body.list({1})});
      declare(body, part);
      body.output(part);
    });
  }
  flow_values scan(flow_scope& s, const flow_values& values, std::size_t depth) {
    const flow_value state = any(values);
    const flow_value scanned = any(values);
    attribute_map attributes;
    attributes.set("scan_input_axes", std::vector<std::int64_t>{pick(2) == 0 ? 0 : -1});
    attributes.set("scan_input_directions", std::vector<std::int64_t>{static_cast<std::int64_t>(pick(2))});
    attributes.set("scan_output_axes", std::vector<std::int64_t>{static_cast<std::int64_t>(pick(2))});
    attributes.set("scan_output_directions", std::vector<std::int64_t>{static_cast<std::int64_t>(pick(2))});
    return s.scan(
        {state}, {scanned}, 2,
        [&](flow_scope& body) {
          flow_values own = values;
          own.push_back(body.input());
          const flow_value slice = body.input();
          own.push_back(body.node("Unsqueeze", {slice, body.list({0})}));
          const flow_values made = inside(body, own, depth + 1);
          body.output(made.back());
          const flow_value part = body.node(
              "Reshape", {body.node("Add", {sum(body, any(made), true), sum(body, slice, false)}), body.list({1})});
          declare(body, part);
          body.output(part);
        },
        std::move(attributes));
  }

  std::mt19937 random_;
  flow_value trips_;
};

}  // namespace dnnopt::testing
