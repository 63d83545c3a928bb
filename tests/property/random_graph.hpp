// Owns graphs of operators drawn at random from a seed, for tests that compare a graph before and after passes.
#ifndef DNNOPT_TESTS_PROPERTY_RANDOM_GRAPH_HPP
#define DNNOPT_TESTS_PROPERTY_RANDOM_GRAPH_HPP

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dnnopt/graph.hpp>
#include <dnnopt/model.hpp>
#include <dnnopt/ops/standard.hpp>
#include <dnnopt/passes/rdp.hpp>

namespace testing {

/// Grows a graph operator by operator; shapes come from rdp's transfer as each is added.
class random_graph {
 public:
  explicit random_graph(std::uint32_t seed) : random_(seed), ops_(dnnopt::standard_ops()) {
    g_.name = "random_" + std::to_string(seed);
    g_.opsets[""] = 21;
    const int inputs = pick(1, 3);
    for (int i = 0; i < inputs; ++i) {
      dnnopt::dim_list dims;
      const int rank = pick(2, 4);
      for (int k = 0; k < rank; ++k) dims.push_back(extents_[static_cast<std::size_t>(pick(0, 7))]);
      values_.push_back({g_.add_input("x" + std::to_string(i), dnnopt::dtype::float32, dnnopt::to_shape(dims)), dims});
    }
    const int count = pick(5, 60);
    for (int i = 0; i < count; ++i) add_one();
    finish();
  }

  [[nodiscard]] dnnopt::model model() const { return {g_, ops_, {}, {}, {}, 0}; }
  [[nodiscard]] std::vector<dnnopt::tensor> inputs() {
    std::vector<dnnopt::tensor> made;
    for (const dnnopt::value_id id : g_.inputs()) made.push_back(reals(dims_of(id), -1.0F, 1.0F));
    return made;
  }

 private:
  struct drawn {
    dnnopt::value_id id;
    dnnopt::dim_list dims;
  };
  using ints = std::vector<std::int64_t>;
  static constexpr std::array<std::int64_t, 8> extents_{1, 2, 3, 4, 5, 7, 8, 12};

  int pick(int low, int high) { return std::uniform_int_distribution<int>(low, high)(random_); }
  bool coin() { return pick(0, 1) == 1; }
  /// Later values are likelier, so that chains grow; now and then an early one makes a branch.
  drawn any() {
    const int last = static_cast<int>(values_.size()) - 1;
    return values_[static_cast<std::size_t>(pick(0, 2) == 0 ? pick(0, last) : pick(std::max(0, last - 2), last))];
  }
  dnnopt::dim_list dims_of(dnnopt::value_id id) const {
    dnnopt::dim_list dims;
    for (const dnnopt::index_expr& d : *g_.facts(id).dims) dims.push_back(d.constant());
    return dims;
  }
  dnnopt::tensor reals(const dnnopt::dim_list& dims, float low, float high) {
    dnnopt::tensor t(dnnopt::dtype::float32, dims);
    for (float& v : t.mutable_data<float>()) v = std::uniform_real_distribution<float>(low, high)(random_);
    return t;
  }
  dnnopt::value_id constant(const dnnopt::dim_list& dims, float low = -0.5F, float high = 0.5F) {
    return g_.add_constant(name("c"), reals(dims, low, high));
  }
  dnnopt::value_id integers(const ints& values) {
    dnnopt::tensor t(dnnopt::dtype::int64, {static_cast<std::int64_t>(values.size())});
    std::copy(values.begin(), values.end(), t.mutable_data<std::int64_t>().begin());
    return g_.add_constant(name("i"), std::move(t));
  }
  std::string name(std::string_view prefix) { return std::string(prefix) + std::to_string(counter_++); }

  std::vector<dnnopt::value_id> add(std::string_view op, std::vector<dnnopt::value_id> inputs,
                                    dnnopt::attribute_map attributes = {}, std::size_t outputs = 1) {
    std::vector<dnnopt::value_id> made;
    for (std::size_t i = 0; i < outputs; ++i) made.push_back(g_.add_value(name("v")));
    const dnnopt::node_id id = g_.add_node(ops_.at("", op), name(op), std::move(inputs), made, std::move(attributes));
    const dnnopt::facts_of_node facts(g_, id);
    std::vector<dnnopt::value_facts> out(outputs);
    g_.node_at(id).op->infer(*facts, out);
    for (std::size_t i = 0; i < outputs; ++i) {
      g_.facts(made[i]) = out[i];
      const dnnopt::dim_list dims = dims_of(made[i]);
      std::int64_t count = 1;
      for (const std::int64_t d : dims) count *= d;
      if (count <= 20000) values_.push_back({made[i], dims});
    }
    return made;
  }
  static dnnopt::attribute_map with(std::string key, dnnopt::attribute held) {
    dnnopt::attribute_map a;
    a.set(std::move(key), std::move(held));
    return a;
  }

  void add_one() {
    const drawn x = any();
    const auto rank = static_cast<int>(x.dims.size());
    const auto last = static_cast<std::size_t>(std::max(rank - 1, 0));
    switch (pick(0, 21)) {
      case 0:
      case 1: {
        static constexpr std::array<std::string_view, 8> unary{"Relu", "Sigmoid", "Tanh",      "Abs",
                                                               "Neg",  "Erf",     "HardSwish", "Softplus"};
        add(unary[static_cast<std::size_t>(pick(0, 7))], {x.id});
        return;
      }
      case 2:
      case 3: {
        static constexpr std::array<std::string_view, 5> binary{"Add", "Mul", "Sub", "Max", "Min"};
        const std::string_view op = binary[static_cast<std::size_t>(pick(0, 4))];
        std::vector<dnnopt::value_id> same;
        for (const drawn& v : values_)
          if (v.dims == x.dims) same.push_back(v.id);
        add(op, {x.id, same[static_cast<std::size_t>(pick(0, static_cast<int>(same.size()) - 1))]});
        return;
      }
      case 4: {
        // A constant that spreads over some dims.
        dnnopt::dim_list dims = x.dims;
        for (std::int64_t& d : dims)
          if (coin()) d = 1;
        const dnnopt::value_id c = constant(dims);
        if (coin())
          add("Add", {x.id, c});
        else
          add("Mul", {c, x.id});
        return;
      }
      case 5: {
        if (rank < 2) return;
        ints perm;
        for (int k = 0; k < rank; ++k) perm.push_back(k);
        std::shuffle(perm.begin(), perm.end(), random_);
        add("Transpose", {x.id}, with("perm", perm));
        return;
      }
      case 6: {
        // Neighbouring dims joined, or one cut in two.
        ints dims(x.dims.begin(), x.dims.end());
        const auto k = static_cast<std::size_t>(pick(0, static_cast<int>(last)));
        if (rank == 0) return;
        if (coin() && k + 1 < dims.size()) {
          dims[k] *= dims[k + 1];
          dims.erase(dims.begin() + static_cast<std::ptrdiff_t>(k) + 1);
        } else if (dims.size() < 5) {
          const std::int64_t part = dims[k] % 2 == 0 ? 2 : dims[k] % 3 == 0 ? 3 : 1;
          dims[k] /= part;
          dims.insert(dims.begin() + static_cast<std::ptrdiff_t>(k), part);
        }
        add("Reshape", {x.id, integers(dims)});
        return;
      }
      case 7: {
        if (rank == 0) return;
        const auto k = static_cast<std::size_t>(pick(0, static_cast<int>(last)));
        if (x.dims[k] < 2) return;
        const std::int64_t begin = pick(0, static_cast<int>(x.dims[k]) - 1);
        const std::int64_t end = pick(static_cast<int>(begin) + 1, static_cast<int>(x.dims[k]));
        const std::int64_t step = pick(1, 2);
        add("Slice", {x.id, integers(ints{begin}), integers(ints{end}), integers(ints{static_cast<std::int64_t>(k)}),
                      integers(ints{step})});
        return;
      }
      case 8: {
        std::vector<dnnopt::value_id> same;
        for (const drawn& v : values_)
          if (v.dims == x.dims) same.push_back(v.id);
        if (rank == 0 || x.dims[last] > 64) return;
        add("Concat", {x.id, same[static_cast<std::size_t>(pick(0, static_cast<int>(same.size()) - 1))]},
            with("axis", std::int64_t{pick(0, static_cast<int>(last))}));
        return;
      }
      case 9: {
        for (std::size_t k = 0; k < x.dims.size(); ++k)
          if (x.dims[k] % 2 == 0) {
            dnnopt::attribute_map a = with("axis", static_cast<std::int64_t>(k));
            a.set("num_outputs", std::int64_t{2});
            add("Split", {x.id}, std::move(a), 2);
            return;
          }
        return;
      }
      case 10: {
        if (rank == 0) return;
        ints pads(2 * x.dims.size(), 0);
        pads[static_cast<std::size_t>(pick(0, 2 * rank - 1))] = pick(1, 2);
        add("Pad", {x.id, integers(pads)});
        return;
      }
      case 11: {
        // A gather by constant indices.
        if (rank == 0) return;
        const auto k = static_cast<std::size_t>(pick(0, static_cast<int>(last)));
        ints indices;
        for (int i = pick(1, 4); i > 0; --i) indices.push_back(pick(0, static_cast<int>(x.dims[k]) - 1));
        add("Gather", {x.id, integers(indices)}, with("axis", static_cast<std::int64_t>(k)));
        return;
      }
      case 12:
      case 13: {
        if (rank < 2) return;
        const std::int64_t columns = extents_[static_cast<std::size_t>(pick(1, 7))];
        const auto made = add("MatMul", {x.id, constant({x.dims[last], columns})});
        if (coin()) add("Add", {made[0], constant({columns})});
        return;
      }
      case 14: {
        // Two values as matrices.
        if (rank < 2) return;
        ints perm;
        for (int k = 0; k < rank; ++k) perm.push_back(k);
        std::swap(perm[last], perm[last - 1]);
        const auto turned = add("Transpose", {x.id}, with("perm", perm));
        add("MatMul", {x.id, turned[0]});
        return;
      }
      case 15:
      case 16: {
        if (rank != 4 || x.dims[1] > 32) return;
        const std::int64_t size = coin() && x.dims[2] >= 3 && x.dims[3] >= 3 ? 3 : 1;
        const bool depthwise = pick(0, 3) == 0;
        const std::int64_t outputs = depthwise ? x.dims[1] : extents_[static_cast<std::size_t>(pick(1, 7))];
        dnnopt::attribute_map a;
        a.set("group", depthwise ? x.dims[1] : std::int64_t{1});
        const std::int64_t pad = size == 3 && coin() ? 1 : 0;
        a.set("pads", ints{pad, pad, pad, pad});
        const std::int64_t stride = pick(1, 2);
        a.set("strides", ints{stride, stride});
        a.set("kernel_shape", ints{size, size});
        add("Conv", {x.id, constant({outputs, depthwise ? 1 : x.dims[1], size, size}), constant({outputs})},
            std::move(a));
        return;
      }
      case 17: {
        if (rank != 4 || x.dims[2] < 2 || x.dims[3] < 2) return;
        dnnopt::attribute_map a = with("kernel_shape", ints{2, 2});
        if (coin()) a.set("strides", ints{2, 2});
        add(coin() ? "MaxPool" : "AveragePool", {x.id}, std::move(a));
        return;
      }
      case 18: {
        if (rank == 4 && coin()) {
          add("GlobalAveragePool", {x.id});
          return;
        }
        if (rank == 0) return;
        static constexpr std::array<std::string_view, 4> reductions{"ReduceMean", "ReduceSum", "ReduceMax",
                                                                    "ReduceMin"};
        dnnopt::attribute_map a = with("keepdims", std::int64_t{pick(0, 1)});
        add(reductions[static_cast<std::size_t>(pick(0, 3))], {x.id, integers(ints{pick(0, static_cast<int>(last))})},
            std::move(a));
        return;
      }
      case 19:
        if (rank == 0) return;
        add("Softmax", {x.id}, with("axis", std::int64_t{pick(0, static_cast<int>(last))}));
        return;
      case 20: {
        if (rank == 0) return;
        const auto made = add("LayerNormalization", {x.id, constant({x.dims[last]}), constant({x.dims[last]})},
                              with("axis", std::int64_t{-1}));
        // What transformers do with it.
        if (rank >= 2 && coin()) add("MatMul", {made[0], constant({x.dims[last], 6})});
        return;
      }
      default: {
        // A gate: x times a function of itself.
        const auto gate = add("Sigmoid", {x.id});
        add("Mul", {x.id, gate[0]});
        return;
      }
    }
  }

  /// What nobody reads is an output, and some of what somebody does.
  void finish() {
    for (const drawn& v : values_) {
      const dnnopt::value& held = g_.value_at(v.id);
      if (held.producer == dnnopt::no_node) continue;
      if (held.uses.empty() || pick(0, 14) == 0) g_.add_output(v.id);
    }
    if (g_.outputs().empty()) add("Relu", {values_[0].id});
    if (g_.outputs().empty()) g_.add_output(values_.back().id);
  }

  std::mt19937 random_;
  dnnopt::op_set ops_;
  dnnopt::graph g_;
  std::vector<drawn> values_;
  std::size_t counter_ = 0;
};

}  // namespace testing

#endif  // DNNOPT_TESTS_PROPERTY_RANDOM_GRAPH_HPP
