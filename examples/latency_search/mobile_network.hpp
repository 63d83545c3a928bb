// Owns networks like those of Once-for-all (Cai et al. 2020): MobileNetV3 with a choice of depth, kernel and expansion
// in each block, built as graphs.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dnnopt/dnnopt.hpp>

namespace search {

/// What is chosen for one block.
struct block_choice {
  int kernel = 3;
  int expansion = 3;
  friend auto operator<=>(const block_choice&, const block_choice&) = default;
};

/// A network: for each stage the blocks that are in it.
using architecture = std::vector<std::vector<block_choice>>;

/// What is given of a stage.
struct stage {
  std::int64_t channels = 0;
  std::int64_t stride = 1;
  bool squeeze = false;  ///< squeeze and excitation
  bool swish = false;    ///< HardSwish in place of Relu
};

/// The space of networks.
struct space {
  std::int64_t resolution = 224;
  std::int64_t stem = 16;
  std::vector<stage> stages{
      {24, 2, false, false}, {40, 2, true, false}, {80, 2, false, true}, {112, 1, true, true}, {160, 2, true, true}};
  std::int64_t last_expansion = 960;
  std::int64_t features = 1280;
  std::int64_t classes = 1000;
  std::size_t least_depth = 2;
  std::size_t most_depth = 4;
  std::vector<int> kernels{3, 5, 7};
  std::vector<int> expansions{3, 4, 6};
};

/// Builds one graph; weights are random, for time does not depend on them.
class network_builder {
 public:
  network_builder() { model_.ops = dnnopt::standard_ops(); }

  /// A tensor of channels x side x side.
  struct plane {
    dnnopt::value_id id = dnnopt::no_value;
    std::int64_t channels = 0;
    std::int64_t side = 0;
  };

  plane input(std::int64_t channels, std::int64_t side) {
    return {graph().add_input("x", dnnopt::dtype::float32, dnnopt::shape{1, channels, side, side}), channels, side};
  }
  void output(const plane& p) { graph().add_output(p.id); }

  plane convolution(const plane& in, std::int64_t channels, std::int64_t kernel, std::int64_t stride,
                    std::int64_t groups = 1) {
    using list = std::vector<std::int64_t>;
    const std::int64_t pad = kernel / 2;
    dnnopt::attribute_map attributes;
    attributes.set("kernel_shape", list{kernel, kernel});
    attributes.set("strides", list{stride, stride});
    attributes.set("pads", list{pad, pad, pad, pad});
    attributes.set("group", groups);
    const std::int64_t reads = in.channels / groups;
    const auto weights =
        constant({channels, reads, kernel, kernel}, 1.0F / static_cast<float>(reads * kernel * kernel));
    return {apply("Conv", {in.id, weights, constant({channels}, 0.1F)}, std::move(attributes)), channels,
            (in.side + stride - 1) / stride};
  }
  plane activation(const plane& in, bool swish) {
    return {apply(swish ? "HardSwish" : "Relu", {in.id}), in.channels, in.side};
  }
  plane squeeze(const plane& in) {
    const std::int64_t narrow = (in.channels / 4 + 7) / 8 * 8;
    const plane mean{apply("GlobalAveragePool", {in.id}), in.channels, 1};
    const plane reduced = activation(convolution(mean, narrow, 1, 1), false);
    const plane wide = convolution(reduced, in.channels, 1, 1);
    dnnopt::attribute_map slope;
    slope.set("alpha", 1.0F / 6.0F);
    const auto gate = apply("HardSigmoid", {wide.id}, std::move(slope));
    return {apply("Mul", {in.id, gate}), in.channels, in.side};
  }
  /// An inverted residual block.
  plane block(const plane& in, const stage& of, const block_choice& choice, std::int64_t stride) {
    const std::int64_t wide = in.channels * choice.expansion;
    plane at = activation(convolution(in, wide, 1, 1), of.swish);
    at = activation(convolution(at, wide, choice.kernel, stride, wide), of.swish);
    if (of.squeeze) at = squeeze(at);
    at = convolution(at, of.channels, 1, 1);
    if (stride == 1 && in.channels == of.channels) at.id = apply("Add", {at.id, in.id});
    return at;
  }
  /// The first convolution with a block without expansion.
  plane stem(const plane& in, const space& of) {
    plane at = activation(convolution(in, of.stem, 3, 2), true);
    const plane inside = activation(convolution(at, of.stem, 3, 1, of.stem), false);
    plane out = convolution(inside, of.stem, 1, 1);
    out.id = apply("Add", {out.id, at.id});
    return out;
  }
  /// From the last stage to the classes.
  plane head(const plane& in, const space& of) {
    plane at = activation(convolution(in, of.last_expansion, 1, 1), true);
    at = {apply("GlobalAveragePool", {at.id}), at.channels, 1};
    at = activation(convolution(at, of.features, 1, 1), true);
    return convolution(at, of.classes, 1, 1);
  }
  plane network(const space& of, const architecture& chosen) {
    plane at = stem(input(3, of.resolution), of);
    for (std::size_t s = 0; s < of.stages.size(); ++s)
      for (std::size_t b = 0; b < chosen[s].size(); ++b)
        at = block(at, of.stages[s], chosen[s][b], b == 0 ? of.stages[s].stride : 1);
    return head(at, of);
  }

  [[nodiscard]] dnnopt::model take() && { return std::move(model_); }

 private:
  dnnopt::graph& graph() { return model_.main; }

  dnnopt::value_id constant(dnnopt::dim_list dims, float scale) {
    std::vector<float> content(static_cast<std::size_t>(dnnopt::element_count(dims)));
    std::uniform_real_distribution<float> uniform(-scale, scale);
    for (float& v : content) v = uniform(random_);
    return graph().add_constant(name("weights"), dnnopt::tensor::of<float>(std::move(dims), content));
  }
  dnnopt::value_id apply(std::string_view op, std::vector<dnnopt::value_id> inputs,
                         dnnopt::attribute_map attributes = {}) {
    const std::string made = name(op);
    const auto out = graph().add_value(made);
    graph().add_node(model_.ops.at("", op), made, std::move(inputs), {out}, std::move(attributes));
    return out;
  }
  std::string name(std::string_view kind) { return std::string(kind) + "_" + std::to_string(count_++); }

  dnnopt::model model_;
  std::mt19937 random_{1};
  std::size_t count_ = 0;
};

/// Stands in for accuracy: it grows with kernels, expansions and depth, less with each further one, and more in late
/// stages, as Once-for-all reports of its networks. A number to search by, not a measured accuracy.
[[nodiscard]] inline double accuracy_proxy(const architecture& chosen) {
  double sum = 0.0;
  for (std::size_t s = 0; s < chosen.size(); ++s) {
    double share = 1.0 + 0.15 * static_cast<double>(s);
    for (const block_choice& b : chosen[s]) {
      sum += share * (0.35 * std::log2(static_cast<double>(b.expansion)) + 0.1 * (b.kernel - 3) / 2.0);
      share *= 0.75;
    }
  }
  return 68.0 + 10.0 * (1.0 - std::exp(-sum / 6.0));
}

/// "34.54.36/..." : kernel and expansion of each block, stages separated.
[[nodiscard]] inline std::string to_string(const architecture& chosen) {
  std::string text;
  for (std::size_t s = 0; s < chosen.size(); ++s) {
    if (s > 0) text += "/";
    for (std::size_t b = 0; b < chosen[s].size(); ++b)
      text += (b > 0 ? "." : "") + std::to_string(chosen[s][b].kernel) + std::to_string(chosen[s][b].expansion);
  }
  return text;
}

}  // namespace search
