// Owns the folding of batch normalization into the convolution before it, or into a factor and an addend.
#ifndef DNNOPT_PASSES_FOLDING_FOLD_BATCH_NORMALIZATION_HPP
#define DNNOPT_PASSES_FOLDING_FOLD_BATCH_NORMALIZATION_HPP

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dnnopt/graph.hpp>
#include <dnnopt/ops/arithmetic.hpp>
#include <dnnopt/ops/convolution.hpp>
#include <dnnopt/ops/normalization.hpp>
#include <dnnopt/passes/pass.hpp>
#include <dnnopt/passes/rewriting/edit.hpp>

namespace dnnopt {

/// Before: y = BatchNormalization(Conv(x, W, b), scale, B, mean, var), all parameters constant float32.
/// After:  y = Conv(x, W', b') with k = scale / sqrt(var + epsilon), W' = k W per output channel, b' = k (b - mean) +
/// B. Behind anything else than a convolution that only it reads: y = x k + (B - k mean), with k and the addend shaped
/// to the channels of x. Conditions: inference form, x float32. Parameters are computed in double.
struct fold_batch_normalization {
  static constexpr std::string_view name = "fold_batch_normalization";

  pass_result run(graph& g) const {
    pass_result result;
    for (const node_id id : g.topological_order()) {
      const node& n = g.node_at(id);
      if (n.op != &op_row<ops::batch_normalization_op> || n.attributes.get_int("training_mode", 0) != 0) continue;
      if (n.outputs.size() != 1 && n.outputs[1] != no_value) continue;
      const value& data = g.value_at(n.inputs[0]);
      const bool alone = data.producer != no_node && data.uses.size() == 1 && !g.is_output(n.inputs[0]);
      if ((alone && g.node_at(data.producer).op == &op_row<ops::conv_op> && fold(g, data.producer, id)) ||
          take_apart(g, id))
        ++result.edits;
    }
    return result;
  }

 private:
  static std::optional<std::vector<double>> numbers(const graph& g, value_id id) {
    if (id == no_value || !g.facts(id).is_constant() || g.facts(id).type != dtype::float32) return std::nullopt;
    const auto data = g.facts(id).constant.data<float>();
    return std::vector<double>(data.begin(), data.end());
  }

  static bool take_apart(graph& g, node_id norm) {
    const std::vector<value_id> inputs = g.node_at(norm).inputs;
    const auto scale = numbers(g, inputs[1]);
    const auto shift = numbers(g, inputs[2]);
    const auto mean = numbers(g, inputs[3]);
    const auto variance = numbers(g, inputs[4]);
    const auto dims = g.facts(inputs[0]).dims;
    // Parameters may be of another type than the data; what they become is added to the data as it is.
    if (g.facts(inputs[0]).type != dtype::float32) return false;
    if (!scale || !shift || !mean || !variance || !dims || dims->size() < 2) return false;
    const std::size_t channels = scale->size();
    if (!((*dims)[1] == index_expr(static_cast<std::int64_t>(channels))) || shift->size() != channels ||
        mean->size() != channels || variance->size() != channels)
      return false;
    const double epsilon = static_cast<double>(g.node_at(norm).attributes.get_float("epsilon", 1e-5F));
    dim_list shaped(dims->size() - 1, 1);
    shaped[0] = static_cast<std::int64_t>(channels);
    tensor factor(dtype::float32, shaped);
    tensor addend(dtype::float32, shaped);
    const auto factors = factor.mutable_data<float>();
    const auto addends = addend.mutable_data<float>();
    for (std::size_t c = 0; c < channels; ++c) {
      const double k = (*scale)[c] / std::sqrt((*variance)[c] + epsilon);
      factors[c] = static_cast<float>(k);
      addends[c] = static_cast<float>((*shift)[c] - k * (*mean)[c]);
    }
    const std::string node_name = g.node_at(norm).name;
    const value_id out = g.node_at(norm).outputs[0];
    const std::string prefix = g.value_at(out).name;
    const value_id k = g.add_constant(prefix + ".scale", std::move(factor));
    const value_id b = g.add_constant(prefix + ".shift", std::move(addend));
    const value_id scaled = g.add_value(prefix + ".scaled", dtype::float32, dims);
    g.remove_node(norm);
    g.add_node(op_row<ops::mul_op>, node_name + ".scale", {inputs[0], k}, {scaled});
    g.add_node(op_row<ops::add_op>, node_name, {scaled, b}, {out});
    return true;
  }

  static bool fold(graph& g, node_id conv, node_id norm) {
    const std::vector<value_id> parameters = g.node_at(norm).inputs;
    const auto scale = numbers(g, parameters[1]);
    const auto shift = numbers(g, parameters[2]);
    const auto mean = numbers(g, parameters[3]);
    const auto variance = numbers(g, parameters[4]);
    std::vector<value_id> inputs = g.node_at(conv).inputs;
    const value_id weights = inputs[1];
    if (!scale || !shift || !mean || !variance || !g.facts(weights).is_constant() ||
        g.facts(weights).type != dtype::float32)
      return false;
    const tensor& w = g.facts(weights).constant;
    const auto channels = static_cast<std::size_t>(w.dims().at(0));
    if (scale->size() != channels || shift->size() != channels || mean->size() != channels ||
        variance->size() != channels)
      return false;
    std::vector<double> bias(channels, 0.0);
    if (inputs.size() > 2 && inputs[2] != no_value) {
      const auto given = numbers(g, inputs[2]);
      if (!given || given->size() != channels) return false;
      bias = *given;
    }
    const double epsilon = static_cast<double>(g.node_at(norm).attributes.get_float("epsilon", 1e-5F));
    tensor folded_weights(dtype::float32, w.dims());
    tensor folded_bias(dtype::float32, {static_cast<std::int64_t>(channels)});
    const auto from = w.data<float>();
    const auto to = folded_weights.mutable_data<float>();
    const auto to_bias = folded_bias.mutable_data<float>();
    const std::size_t row = channels == 0 ? 0 : from.size() / channels;
    for (std::size_t c = 0; c < channels; ++c) {
      const double k = (*scale)[c] / std::sqrt((*variance)[c] + epsilon);
      for (std::size_t i = 0; i < row; ++i)
        to[c * row + i] = static_cast<float>(k * static_cast<double>(from[c * row + i]));
      to_bias[c] = static_cast<float>(k * (bias[c] - (*mean)[c]) + (*shift)[c]);
    }
    const std::string prefix = g.node_at(conv).name;
    inputs.resize(3, no_value);
    // Several convolutions may share weights.
    inputs[1] =
        g.add_constant(rewriting::fresh_value_name(g, g.value_at(weights).name + ".folded"), std::move(folded_weights));
    inputs[2] = g.add_constant(prefix + ".bias.folded", std::move(folded_bias));
    g.set_node_inputs(conv, std::move(inputs));
    const value_id between = g.node_at(conv).outputs[0];
    const value_id out = g.node_at(norm).outputs[0];
    g.remove_node(norm);
    g.move_output(between, out);
    return true;
  }
};

static_assert(Pass<fold_batch_normalization>);

}  // namespace dnnopt

#endif  // DNNOPT_PASSES_FOLDING_FOLD_BATCH_NORMALIZATION_HPP
