// Owns the expansions of com.microsoft's activations, with a bias or without, and of activations that other operators
// name by an attribute.
#ifndef DNNOPT_ONNX_CONTRIB_ACTIVATION_HPP
#define DNNOPT_ONNX_CONTRIB_ACTIVATION_HPP

#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <dnnopt/onnx/contrib/expansion.hpp>

namespace dnnopt::onnx::contrib {

/// The GELU of `v` by the error function, or by the hyperbolic tangent.
inline value_id add_gelu(expansion& x, value_id v, bool by_tanh, value_id target = no_value) {
  return x.add("Gelu", {v}, with({{"approximate", std::string(by_tanh ? "tanh" : "none")}}), target);
}

/// Writes activation `name` of `v` to `target`. `parameters` are those of the ONNX operator of that name in the order
/// of its attributes (alpha, beta), for Clip the limits; missing ones have the operator's defaults. Errors: unsupported
/// for a name that ONNX Runtime does not fuse.
inline void add_named_activation(expansion& x, const std::string& name, const std::vector<float>& parameters,
                                 value_id v, value_id target) {
  attribute_map a;
  if (parameters.size() > 0) a.set("alpha", parameters[0]);
  if (parameters.size() > 1) a.set("beta", parameters[1]);
  if (name.empty()) {
    x.add("Identity", {v}, {}, target);
  } else if (name == "Relu" || name == "Tanh" || name == "Sigmoid" || name == "Softsign" || name == "HardSwish") {
    x.add(name, {v}, {}, target);
  } else if (name == "LeakyRelu" || name == "Elu" || name == "ThresholdedRelu" || name == "HardSigmoid") {
    x.add(name, {v}, std::move(a), target);
  } else if (name == "Clip" && parameters.size() == 2) {
    x.add("Clip", {v, x.number(v, static_cast<double>(parameters[0])), x.number(v, static_cast<double>(parameters[1]))},
          {}, target);
  } else if (name == "Softplus" || name == "Gelu") {
    x.add(name, {v}, {}, target);
  } else {
    x.refuse("activation '" + name + "' with " + std::to_string(parameters.size()) + " parameters");
  }
}

inline void expand_gelu(expansion& x) { add_gelu(x, x.in(0), false, x.out(0)); }
inline void expand_bias_gelu(expansion& x) { add_gelu(x, x.add("Add", {x.in(0), x.in(1)}), false, x.out(0)); }
inline void expand_fast_gelu(expansion& x) {
  add_gelu(x, x.has(1) ? x.add("Add", {x.in(0), x.in(1)}) : x.in(0), true, x.out(0));
}
inline void expand_quick_gelu(expansion& x) {
  x.give(0, "Swish", {x.in(0)}, with({{"alpha", x.attributes().get_float("alpha", 1.702F)}}));
}
inline void expand_bias_add(expansion& x) { x.give(0, "Add", {x.add("Add", {x.in(0), x.in(1)}), x.in(2)}); }
/// The first half of x + bias along the last axis, times the GELU of the second half.
inline void expand_bias_split_gelu(expansion& x) {
  const std::vector<value_id> halves = x.split(x.add("Add", {x.in(0), x.in(1)}), -1, 2);
  x.give(0, "Mul", {halves[0], add_gelu(x, halves[1], false)});
}
/// The identity of data + bias + residual: ratio counts in training alone.
inline void expand_bias_dropout(expansion& x) {
  if (x.has(4)) {
    const value_facts& training = x.facts(x.in(4));
    if (!training.is_constant() || integers_of(training.constant) != std::vector<std::int64_t>{0})
      x.refuse("training_mode that is not known to be false");
  }
  const value_id sum = x.has(2) ? x.add("Add", {x.in(0), x.in(1)}) : x.give(0, "Add", {x.in(0), x.in(1)});
  if (x.has(2)) x.give(0, "Add", {sum, x.in(2)});
  if (x.out(1) != no_value) (void)x.add_many("Dropout", {sum}, {}, {no_value, x.out(1)});
}
/// x + y * gate.
inline void expand_gated_add(expansion& x) {
  x.refuse_input(3, "gate_weight");
  x.give(0, "Add", {x.in(0), x.add("Mul", {x.in(1), x.in(2)})});
}

inline constexpr std::array activation_rows{
    contrib_row{"com.microsoft", "BiasAdd", {3, 3}, expand_bias_add},
    contrib_row{"com.microsoft", "BiasDropout", {2, 5, 1, 2}, expand_bias_dropout},
    contrib_row{"com.microsoft", "BiasGelu", {2, 2}, expand_bias_gelu},
    contrib_row{"com.microsoft", "BiasSplitGelu", {2, 2}, expand_bias_split_gelu},
    contrib_row{"com.microsoft", "FastGelu", {1, 2}, expand_fast_gelu},
    contrib_row{"com.microsoft", "GatedAdd", {3, 4}, expand_gated_add},
    contrib_row{"com.microsoft", "Gelu", {1, 1}, expand_gelu},
    contrib_row{"com.microsoft", "QuickGelu", {1, 1}, expand_quick_gelu},
};

}  // namespace dnnopt::onnx::contrib

#endif  // DNNOPT_ONNX_CONTRIB_ACTIVATION_HPP
