// Measures how the time of the whole pipeline, source generation included, grows with the graph: repeated swin and
// inception blocks of 1,000 to 100,000 nodes, or of a model. Seconds are processor time of one thread, without reading
// the model, and without a device, whose compiler is not part of them.
//
// usage: pipeline_time [NODES or MODEL.onnx ...]; exit status 1 where ten times the nodes take more than 13 times the
// time.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <exception>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dnnopt/backend/program/make_program.hpp>
#include <dnnopt/dnnopt.hpp>

namespace {

using dnnopt::value_id;
using ints = std::vector<std::int64_t>;
using attribute_list = std::vector<std::pair<std::string, dnnopt::attribute>>;

/// Blocks as exporters write them: [1, 16, 8, 8] in and out.
class network {
 public:
  explicit network(std::size_t nodes) : ops_(dnnopt::standard_ops()) {
    g_.name = "repeated_blocks";
    g_.opsets[""] = 17;
    value_id x = g_.add_input("x", dnnopt::dtype::float32, dnnopt::to_shape(ints{1, 16, 8, 8}));
    for (std::size_t block = 0; g_.node_count() < nodes; ++block)
      x = block % 2 == 0 ? swin(x, block % 4 == 0) : inception(x);
    g_.add_output(x);
  }
  [[nodiscard]] dnnopt::model model() const { return {g_, ops_, {}, {}, {}, 0}; }

 private:
  std::string name(std::string_view prefix) { return std::string(prefix) + "_" + std::to_string(counter_++); }
  value_id add(std::string_view op, std::vector<value_id> inputs, const attribute_list& attributes = {}) {
    const value_id out = g_.add_value(name("v"));
    dnnopt::attribute_map map;
    for (const auto& [key, value] : attributes) map.set(key, value);
    g_.add_node(ops_.at("", op), name(op), std::move(inputs), {out}, std::move(map));
    return out;
  }
  value_id weights(const ints& dims) {
    dnnopt::tensor t(dnnopt::dtype::float32, dims);
    for (float& v : t.mutable_data<float>()) {
      state_ = state_ * 6364136223846793005U + 1442695040888963407U;
      v = static_cast<float>(state_ >> 40) / static_cast<float>(1 << 24) - 0.5F;
    }
    return g_.add_constant(name("w"), std::move(t));
  }
  value_id integers(const ints& values) {
    return g_.add_constant(name("i"),
                           dnnopt::tensor::of<std::int64_t>({static_cast<std::int64_t>(values.size())}, values));
  }
  value_id number(float value) { return g_.add_constant(name("n"), dnnopt::tensor::scalar(value)); }

  value_id product(value_id x, std::int64_t from, std::int64_t to) {
    return add("Add", {weights({to}), add("MatMul", {x, weights({from, to})})});
  }
  value_id reshape(value_id x, const ints& dims) { return add("Reshape", {x, integers(dims)}); }
  value_id transpose(value_id x, const ints& perm) { return add("Transpose", {x}, {{"perm", perm}}); }
  value_id normalized(value_id x) {
    const value_id mean = add("ReduceMean", {x, integers({-1})}, {{"keepdims", std::int64_t{1}}});
    const value_id centred = add("Sub", {x, mean});
    const value_id variance =
        add("ReduceMean", {add("Pow", {centred, number(2)}), integers({-1})}, {{"keepdims", std::int64_t{1}}});
    const value_id row = add("Div", {centred, add("Sqrt", {add("Add", {variance, number(1e-5F)})})});
    return add("Add", {add("Mul", {row, weights({16})}), weights({16})});
  }
  value_id rolled(value_id x, std::int64_t by) {
    for (const std::int64_t axis : {1, 2}) {
      const value_id tail = add("Slice", {x, integers({by}), integers({1 << 30}), integers({axis})});
      const value_id head = add("Slice", {x, integers({0}), integers({by}), integers({axis})});
      x = add("Concat", {tail, head}, {{"axis", axis}});
    }
    return x;
  }

  value_id swin(value_id image, bool shifts) {
    const value_id x = transpose(image, {0, 2, 3, 1});
    value_id y = normalized(x);
    if (shifts) y = rolled(y, 2);
    // Windows of 4x4.
    y = reshape(transpose(reshape(y, {1, 2, 4, 2, 4, 16}), {0, 1, 3, 2, 4, 5}), {4, 16, 16});
    const value_id heads = transpose(reshape(product(y, 16, 48), {4, 16, 3, 2, 8}), {2, 0, 3, 1, 4});
    std::vector<value_id> parts;
    for (const std::int64_t part : {0, 1, 2})
      parts.push_back(add("Gather", {heads, g_.add_constant(name("i"), dnnopt::tensor::scalar(part))},
                          {{"axis", std::int64_t{0}}}));
    const value_id query = add("Mul", {parts[0], number(0.35355338F)});
    const value_id scores =
        add("Add", {add("MatMul", {query, transpose(parts[1], {0, 1, 3, 2})}), weights({1, 2, 16, 16})});
    const value_id sums = add("MatMul", {add("Softmax", {scores}, {{"axis", std::int64_t{-1}}}), parts[2]});
    y = product(reshape(transpose(sums, {0, 2, 1, 3}), {4, 16, 16}), 16, 16);
    y = reshape(transpose(reshape(y, {1, 2, 2, 4, 4, 16}), {0, 1, 3, 2, 4, 5}), {1, 8, 8, 16});
    if (shifts) y = rolled(y, 6);
    const value_id sum = add("Add", {x, y});
    const value_id wide = product(normalized(sum), 16, 32);
    const value_id erf = add("Erf", {add("Div", {wide, number(1.4142135F)})});
    const value_id active = add("Mul", {add("Mul", {wide, add("Add", {erf, number(1)})}), number(0.5F)});
    return transpose(add("Add", {sum, product(active, 32, 16)}), {0, 3, 1, 2});
  }

  value_id convolution(value_id x, std::int64_t from, std::int64_t to, std::int64_t size) {
    const value_id y = add("Conv", {x, weights({to, from, size, size})},
                           {{"kernel_shape", ints{size, size}}, {"pads", ints(4, size / 2)}});
    const value_id variance = g_.add_constant(
        name("w"), dnnopt::tensor::of<float>({to}, std::vector<float>(static_cast<std::size_t>(to), 1.0F)));
    return add("Relu", {add("BatchNormalization", {y, weights({to}), weights({to}), weights({to}), variance})});
  }
  value_id inception(value_id x) {
    const value_id first = convolution(x, 16, 4, 1);
    const value_id second = convolution(convolution(x, 16, 4, 1), 4, 4, 3);
    const value_id third = convolution(convolution(convolution(x, 16, 4, 1), 4, 4, 3), 4, 4, 3);
    const value_id pooled = add("AveragePool", {x}, {{"kernel_shape", ints{3, 3}}, {"pads", ints{1, 1, 1, 1}}});
    return add("Concat", {first, second, third, convolution(pooled, 16, 4, 1)}, {{"axis", std::int64_t{1}}});
  }

  dnnopt::op_set ops_;
  dnnopt::graph g_;
  std::size_t counter_ = 0;
  std::uint64_t state_ = 1;
};

/// Seconds of this process's one thread: other programs on the machine do not count.
double seconds_now() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

/// Passes and lowering of one model; prints a row and what takes the most.
double measure(const dnnopt::model& m) {
  dnnopt::compile_options options;
  dnnopt::compile_report report;
  const double begin = seconds_now();
  double last = begin;
  std::map<std::string, double> by_part;
  const auto lap = [&](const std::string& part) {
    const double now = seconds_now();
    by_part[part] += now - std::exchange(last, now);
  };
  options.after_pass = [&](const dnnopt::graph&, const dnnopt::pass_report& pass) { lap(pass.name); };
  const auto g = std::make_shared<const dnnopt::graph>(dnnopt::optimize(m, options, report));
  const dnnopt::program made = dnnopt::make_program(g, dnnopt::codegen::default_lower_options(nullptr), false);
  lap("source generation");
  const double total = last - begin;
  std::size_t kernels = 0;
  for (const dnnopt::placed_node& step : made.steps) kernels += step.lowered.kernels.size();
  std::vector<std::pair<double, std::string>> sorted;
  for (const auto& [part, seconds] : by_part) sorted.emplace_back(seconds, part);
  std::sort(sorted.rbegin(), sorted.rend());
  std::printf("| %zu | %zu | %.3f | %.1f |", m.main.node_count(), kernels, total,
              total / static_cast<double>(m.main.node_count()) * 1e6);
  for (std::size_t i = 0; i < std::min<std::size_t>(sorted.size(), 6); ++i)
    std::printf("%s %s %.3f", i == 0 ? "" : ",", sorted[i].second.c_str(), sorted[i].first);
  std::printf(" |\n");
  std::fflush(stdout);
  return total;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    std::vector<std::size_t> sizes;
    std::vector<std::string> models;
    for (int i = 1; i < argc; ++i) {
      if (std::string_view(argv[i]).ends_with(".onnx"))
        models.emplace_back(argv[i]);
      else
        sizes.push_back(std::strtoul(argv[i], nullptr, 10));
    }
    if (sizes.empty() && models.empty()) sizes = {1000, 10000, 100000};
    std::printf("| nodes | kernels | seconds | us per node | most of it |\n|---|---|---|---|---|\n");
    for (const std::string& file : models) (void)measure(dnnopt::load(file));
    std::map<std::size_t, double> seconds;
    for (const std::size_t nodes : sizes) seconds[nodes] = measure(network(nodes).model());
    bool slow = false;
    for (const auto& [nodes, time] : seconds)
      if (const auto tenth = seconds.find(nodes / 10); tenth != seconds.end()) {
        const double ratio = time / tenth->second;
        std::printf("%zu over %zu nodes: %.1f\n", nodes, nodes / 10, ratio);
        slow = slow || (nodes >= 100000 && ratio > 13);
      }
    return slow ? 1 : 0;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 2;
  }
}
