// Owns the expansions of ONNX's preview domains: attention with modifiers as subgraphs, and the steps of training.
#ifndef DNNOPT_ONNX_CONTRIB_PREVIEW_HPP
#define DNNOPT_ONNX_CONTRIB_PREVIEW_HPP

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <dnnopt/onnx/contrib/expansion.hpp>

namespace dnnopt::onnx::contrib {

/// Keys or values with as many heads as the queries have: each is shared by a run of query heads.
inline value_id heads_for_queries(expansion& x, value_id v, value_id queries) {
  const value_id of_queries = x.dim(queries, 1);
  const value_id own = x.dim(v, 1);
  if (x.facts(of_queries).is_constant() && x.facts(own).is_constant() &&
      integers_of(x.facts(of_queries).constant) == integers_of(x.facts(own).constant))
    return v;
  const value_id batch = x.dim(v, 0);
  const value_id length = x.dim(v, 2);
  const value_id size = x.dim(v, 3);
  const value_id repeats = x.add("Div", {of_queries, own});
  const value_id expanded = x.add("Expand", {x.unsqueeze(v, {2}), x.list({batch, own, repeats, length, size})});
  return x.add("Reshape", {expanded, x.list({batch, of_queries, length, size})});
}

/// FlexAttention. Source: the operator's function body in ONNX.
inline void expand_flex_attention(expansion& x) {
  const value_id queries = x.in(0);
  const dtype type = x.type(queries);
  const auto stated = x.attributes().get_int("softmax_precision", 0);
  const dtype precise = stated != 0              ? static_cast<dtype>(stated)
                        : type == dtype::float64 ? dtype::float64
                                                 : dtype::float32;
  const value_id keys = heads_for_queries(x, x.in(1), queries);
  const value_id values = heads_for_queries(x, x.in(2), queries);
  // Both factors take the root of the scale, which keeps their product within the element type's range.
  value_id root = no_value;
  if (x.attributes().contains("scale")) {
    root = x.add("Sqrt", {x.constant("scale", tensor::scalar(x.attributes().get_float("scale", 1.0F)))});
  } else {
    const value_id size = x.cast(x.add("Squeeze", {x.dim(queries, 3)}), dtype::float32);
    root = x.add("Sqrt", {x.add("Reciprocal", {x.add("Sqrt", {size})})});
  }
  root = x.cast(root, type);
  const value_id turned = x.transpose(x.add("Mul", {keys, root}), {0, 1, 3, 2});
  value_id scores = x.cast(x.add("MatMul", {x.add("Mul", {queries, root}), turned}), precise);
  scores = x.apply_body("score_mod", scores, 3);
  value_id shares = x.add("Softmax", {scores}, with({{"axis", std::int64_t{3}}}));
  shares = x.apply_body("prob_mod", shares, 3);
  x.cast(x.add("MatMul", {shares, x.cast(values, precise)}), type, x.out(0));
}

/// What the steps of training share: their rate and count, and the tensors of each variable in turn.
struct training_step {
  training_step(expansion& e, std::size_t states) : x(e), per_variable(states), count((e.input_count() - 2) / states) {
    if ((e.input_count() - 2) % states != 0)
      throw error(errc::bad_arity, std::to_string(e.input_count()) + " inputs where each variable has " +
                                       std::to_string(states) + " beside the rate and the count");
    // All but the gradients are given anew.
    if (e.output_count() != count * (states - 1))
      throw error(errc::bad_arity,
                  std::to_string(e.output_count()) + " outputs of " + std::to_string(count * (states - 1)));
  }
  /// Tensor `which` (variable, gradient, states in order) of variable `v`.
  [[nodiscard]] value_id of(std::size_t which, std::size_t v) const { return x.in(2 + which * count + v); }
  [[nodiscard]] value_id number(double value) const { return x.number(x.in(2), value); }
  [[nodiscard]] value_id attribute(const char* name, float fallback) const {
    return number(static_cast<double>(x.attributes().get_float(name, fallback)));
  }
  [[nodiscard]] value_id rate() const { return x.cast(x.in(0), x.type(x.in(2))); }
  [[nodiscard]] value_id step() const { return x.cast(x.in(1), x.type(x.in(2))); }
  [[nodiscard]] value_id begun() const { return x.add("Greater", {x.in(1), x.integer(0)}); }
  /// norm_coefficient * X + G.
  [[nodiscard]] value_id regularized(std::size_t v) const {
    return x.add("Add", {x.add("Mul", {attribute("norm_coefficient", 0.0F), of(0, v)}), of(1, v)});
  }
  /// rate * old + share * recent, written to `to`.
  value_id blend(value_id old_share, value_id old, value_id share, value_id recent, value_id to) const {
    return x.add("Add", {x.add("Mul", {old_share, old}), x.add("Mul", {share, recent})}, {}, to);
  }

  expansion& x;
  std::size_t per_variable;
  std::size_t count;
};

inline void expand_adagrad(expansion& x) {
  const training_step s(x, 3);
  const value_id decay = x.add("Mul", {s.step(), s.attribute("decay_factor", 0.0F)});
  const value_id rate = x.add("Div", {s.rate(), x.add("Add", {s.number(1.0), decay})});
  for (std::size_t v = 0; v < s.count; ++v) {
    const value_id g = s.regularized(v);
    const value_id h = x.add("Add", {s.of(2, v), x.add("Mul", {g, g})}, {}, x.out(s.count + v));
    const value_id root = x.add("Add", {x.add("Sqrt", {h}), s.attribute("epsilon", 1e-6F)});
    x.give(v, "Sub", {s.of(0, v), x.add("Div", {x.add("Mul", {rate, g}), root})});
  }
}

inline void expand_adam(expansion& x) {
  const training_step s(x, 4);
  const auto alpha = static_cast<double>(x.attributes().get_float("alpha", 0.9F));
  const auto beta = static_cast<double>(x.attributes().get_float("beta", 0.999F));
  const auto rest = [&](double share) {
    return x.add("Sub", {s.number(1.0), x.add("Pow", {s.number(share), s.step()})});
  };
  const value_id later = x.add("Div", {x.add("Mul", {s.rate(), x.add("Sqrt", {rest(beta)})}), rest(alpha)});
  const value_id rate = x.add("Where", {s.begun(), later, s.rate()});
  const double kept = 1.0 - static_cast<double>(x.attributes().get_float("norm_coefficient_post", 0.0F));
  for (std::size_t v = 0; v < s.count; ++v) {
    const value_id g = s.regularized(v);
    const value_id mean = s.blend(s.number(alpha), s.of(2, v), s.number(1.0 - alpha), g, x.out(s.count + v));
    const value_id square =
        s.blend(s.number(beta), s.of(3, v), s.number(1.0 - beta), x.add("Mul", {g, g}), x.out(2 * s.count + v));
    const value_id root = x.add("Add", {x.add("Sqrt", {square}), s.attribute("epsilon", 1e-6F)});
    const value_id moved = x.add("Sub", {s.of(0, v), x.add("Div", {x.add("Mul", {rate, mean}), root})});
    x.give(v, "Mul", {s.number(kept), moved});
  }
}

/// Errors: bad_attribute for a mode that is neither standard nor nesterov.
inline void expand_momentum(expansion& x) {
  const training_step s(x, 3);
  const std::string mode = x.attributes().require<std::string>("mode");
  if (mode != "standard" && mode != "nesterov") throw error(errc::bad_attribute, "mode '" + mode + "'");
  const value_id share = x.add("Where", {s.begun(), s.attribute("beta", 1.0F), s.number(1.0)});
  for (std::size_t v = 0; v < s.count; ++v) {
    const value_id g = s.regularized(v);
    const value_id moved = s.blend(s.attribute("alpha", 0.0F), s.of(2, v), share, g, x.out(s.count + v));
    const value_id direction =
        mode == "standard" ? moved : x.add("Add", {g, x.add("Mul", {s.attribute("alpha", 0.0F), moved})});
    x.give(v, "Sub", {s.of(0, v), x.add("Mul", {s.rate(), direction})});
  }
}

inline constexpr std::array preview_rows{
    contrib_row{"ai.onnx.preview", "FlexAttention", {3, variadic}, expand_flex_attention},
    contrib_row{"ai.onnx.preview.training", "Adagrad", {5, variadic, 1, variadic}, expand_adagrad},
    contrib_row{"ai.onnx.preview.training", "Adam", {6, variadic, 1, variadic}, expand_adam},
    contrib_row{"ai.onnx.preview.training", "Momentum", {5, variadic, 1, variadic}, expand_momentum},
};

}  // namespace dnnopt::onnx::contrib

#endif  // DNNOPT_ONNX_CONTRIB_PREVIEW_HPP
