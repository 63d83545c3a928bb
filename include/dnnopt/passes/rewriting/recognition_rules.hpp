// Owns the rules that recognise operators which exporters take apart: activations, normalizations, softmax.
#ifndef DNNOPT_PASSES_REWRITING_RECOGNITION_RULES_HPP
#define DNNOPT_PASSES_REWRITING_RECOGNITION_RULES_HPP

#include <array>

#include <dnnopt/passes/rewriting/rule.hpp>

namespace dnnopt::rewriting {

/// Definitions read from right to left.
inline constexpr std::array recognition_rules{
    // x * 0.5 * (1 + erf(x / sqrt 2)), in the three ways to multiply and the two to divide.
    detail::recognition("gelu_erf_1", "Mul(Mul(x, Add(Erf(Div(x, 1.4142135624)), 1)), 0.5)", "Gelu(x)"),
    detail::recognition("gelu_erf_2", "Mul(x, Mul(Add(Erf(Div(x, 1.4142135624)), 1), 0.5))", "Gelu(x)"),
    detail::recognition("gelu_erf_3", "Mul(Mul(x, 0.5), Add(Erf(Div(x, 1.4142135624)), 1))", "Gelu(x)"),
    detail::recognition("gelu_erf_4", "Mul(Mul(x, Add(Erf(Mul(x, 0.7071067812)), 1)), 0.5)", "Gelu(x)"),
    detail::recognition("gelu_erf_5", "Mul(x, Mul(Add(Erf(Mul(x, 0.7071067812)), 1), 0.5))", "Gelu(x)"),
    detail::recognition("gelu_erf_6", "Mul(Mul(x, 0.5), Add(Erf(Mul(x, 0.7071067812)), 1))", "Gelu(x)"),
    // x * 0.5 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 x^3))).
    detail::recognition("gelu_tanh_1",
                        "Mul(Mul(x, 0.5), Add(Tanh(Mul(Add(x, Mul(Pow(x, 3), 0.044715)), 0.7978845608)), 1))",
                        "Gelu{approximate=\"tanh\"}(x)"),
    detail::recognition("gelu_tanh_2",
                        "Mul(Mul(x, Add(Tanh(Mul(Add(x, Mul(Pow(x, 3), 0.044715)), 0.7978845608)), 1)), 0.5)",
                        "Gelu{approximate=\"tanh\"}(x)"),
    detail::recognition("gelu_tanh_3",
                        "Mul(x, Mul(Add(Tanh(Mul(Add(x, Mul(Pow(x, 3), 0.044715)), 0.7978845608)), 1), 0.5))",
                        "Gelu{approximate=\"tanh\"}(x)"),
    detail::recognition("gelu_tanh_4",
                        "Mul(Mul(x, 0.5), Add(Tanh(Mul(Add(x, Mul(Mul(Mul(x, x), x), 0.044715)), 0.7978845608)), 1))",
                        "Gelu{approximate=\"tanh\"}(x)"),
    detail::recognition("gelu_tanh_5",
                        "Mul(Mul(x, Add(Tanh(Mul(Add(x, Mul(Mul(Mul(x, x), x), 0.044715)), 0.7978845608)), 1)), 0.5)",
                        "Gelu{approximate=\"tanh\"}(x)"),
    detail::recognition("gelu_tanh_6",
                        "Mul(x, Mul(Add(Tanh(Mul(Add(x, Mul(Mul(Mul(x, x), x), 0.044715)), 0.7978845608)), 1), 0.5))",
                        "Gelu{approximate=\"tanh\"}(x)"),
    detail::recognition("gelu_tanh_7",
                        "Mul(Mul(x, 0.5), Add(Tanh(Mul(Mul(x, 0.7978845608), Add(Mul(Mul(x, 0.044715), x), 1))), 1))",
                        "Gelu{approximate=\"tanh\"}(x)"),
    detail::recognition("gelu_tanh_8",
                        "Mul(Mul(x, Add(Tanh(Mul(Mul(x, 0.7978845608), Add(Mul(Mul(x, 0.044715), x), 1))), 1)), 0.5)",
                        "Gelu{approximate=\"tanh\"}(x)"),
    detail::recognition("gelu_tanh_9",
                        "Mul(x, Mul(Add(Tanh(Mul(Mul(x, 0.7978845608), Add(Mul(Mul(x, 0.044715), x), 1))), 1), 0.5))",
                        "Gelu{approximate=\"tanh\"}(x)"),
    // Gates and their kin.
    detail::recognition("swish", "Mul(x, Sigmoid(x))", "Swish(x)"),
    detail::recognition("swish_scaled", "Mul(x, Sigmoid(Mul(x, a)))", "Swish{alpha=$value(a)}(x)",
                        "constant(a), scalar(a)", "a=#=1.702", "a=#4"),
    detail::recognition("swish_quotient", "Div(x, Add(Exp(Neg(x)), 1))", "Swish(x)", "floating(x)"),
    detail::recognition("sigmoid_reciprocal", "Reciprocal(Add(Exp(Neg(x)), 1))", "Sigmoid(x)"),
    detail::recognition("sigmoid_quotient", "Div(1, Add(Exp(Neg(x)), 1))", "Sigmoid(x)", "floating(x)"),
    detail::recognition("hard_sigmoid_div", "Div(Clip(Add(x, 3), 0, 6), 6)",
                        "HardSigmoid{alpha=0.1666666667, beta=0.5}(x)", "floating(x)"),
    detail::recognition("hard_sigmoid_mul", "Mul(Clip(Add(x, 3), 0, 6), 0.1666666667)",
                        "HardSigmoid{alpha=0.1666666667, beta=0.5}(x)"),
    detail::recognition("hard_swish", "Mul(x, HardSigmoid{alpha=0.1666666667, beta?=0.5}(x))", "HardSwish(x)"),
    detail::recognition("hard_swish_div", "Div(Mul(x, Clip(Add(x, 3), 0, 6)), 6)", "HardSwish(x)", "floating(x)"),
    detail::recognition("softplus", "Log(Add(Exp(x), 1))", "Softplus(x)", "", "", "", meaning::changed),
    detail::recognition("mish", "Mul(x, Tanh(Softplus(x)))", "Mish(x)"),
    detail::recognition("softsign", "Div(x, Add(Abs(x), 1))", "Softsign(x)", "floating(x)", "", "", meaning::changed),
    detail::recognition("leaky_relu", "Max(x, Mul(x, a))", "LeakyRelu{alpha=$value(a)}(x)",
                        "constant(a), scalar(a), above(a, 0), below(a, 1), floating(x)", "a=#=0.1", "a=#=1.5"),
    // (x - mean) / sqrt(variance + e) * w + b over the last axis.
    detail::recognition("layer_normalization_1",
                        "Add(Mul(Div(Sub(x, ReduceMean:m(x, ?i)), Sqrt(Add(ReduceMean:v(Pow(Sub(x, ReduceMean:n(x, "
                        "?i)), 2), ?j), e))), w), b)",
                        "LayerNormalization{axis=-1, epsilon=$value(e)}(x, w, b)",
                        "scalar(e), last_axis(m), last_axis(n), last_axis(v), row_of(w, x), row_of(b, x)",
                        "i=#[-1] j=#[-1] e=#=0.001 w=4 b=4", "i=#[0] j=#[0] e=#=0.001 w=4 b=4"),
    detail::recognition("layer_normalization_2",
                        "Add(Mul(Div(Sub(x, ReduceMean:m(x, ?i)), Sqrt(Add(ReduceMean:v(Mul(Sub(x, ReduceMean:n(x, "
                        "?i)), Sub(x, ReduceMean:o(x, ?i))), ?j), e))), w), b)",
                        "LayerNormalization{axis=-1, epsilon=$value(e)}(x, w, b)",
                        "scalar(e), last_axis(m), last_axis(n), last_axis(v), row_of(w, x), row_of(b, x), last_axis(o)",
                        "i=#[-1] j=#[-1] e=#=0.001 w=4 b=4", "i=#[0] j=#[0] e=#=0.001 w=4 b=4"),
    detail::recognition("layer_normalization_3",
                        "Add(Mul(Mul(Sub(x, ReduceMean:m(x, ?i)), Reciprocal(Sqrt(Add(ReduceMean:v(Pow(Sub(x, "
                        "ReduceMean:n(x, ?i)), 2), ?j), e)))), w), b)",
                        "LayerNormalization{axis=-1, epsilon=$value(e)}(x, w, b)",
                        "scalar(e), last_axis(m), last_axis(n), last_axis(v), row_of(w, x), row_of(b, x)",
                        "i=#[-1] j=#[-1] e=#=0.001 w=4 b=4", "i=#[0] j=#[0] e=#=0.001 w=4 b=4"),
    detail::recognition("rms_normalization_1", "Mul(Div(x, Sqrt(Add(ReduceMean:m(Pow(x, 2), ?i), e))), w)",
                        "RMSNormalization{axis=-1, epsilon=$value(e)}(x, w)", "scalar(e), last_axis(m), row_of(w, x)",
                        "i=#[-1] e=#=0.001 w=4", "i=#[0] e=#=0.001 w=4"),
    detail::recognition("rms_normalization_2", "Mul(Mul(x, Reciprocal(Sqrt(Add(ReduceMean:m(Pow(x, 2), ?i), e)))), w)",
                        "RMSNormalization{axis=-1, epsilon=$value(e)}(x, w)", "scalar(e), last_axis(m), row_of(w, x)",
                        "i=#[-1] e=#=0.001 w=4", "i=#[0] e=#=0.001 w=4"),
    detail::recognition("rms_normalization_3", "Mul(Mul(x, Reciprocal(Sqrt(Add(ReduceMean:m(Mul(x, x), ?i), e)))), w)",
                        "RMSNormalization{axis=-1, epsilon=$value(e)}(x, w)", "scalar(e), last_axis(m), row_of(w, x)",
                        "i=#[-1] e=#=0.001 w=4", "i=#[0] e=#=0.001 w=4"),
    detail::recognition("rms_normalization_4", "Mul(Mul(x, Div(1, Sqrt(Add(ReduceMean:m(Pow(x, 2), ?i), e)))), w)",
                        "RMSNormalization{axis=-1, epsilon=$value(e)}(x, w)", "scalar(e), last_axis(m), row_of(w, x)",
                        "i=#[-1] e=#=0.001 w=4", "i=#[0] e=#=0.001 w=4"),
    detail::recognition("group_normalization",
                        "Add(Mul(Reshape(InstanceNormalization:n(Reshape:r(x, s), 1, 0), t), w), b)",
                        "GroupNormalization{num_groups=$dim(r, 1), epsilon=$of(n, epsilon)}(x, Squeeze(w), Squeeze(b))",
                        "rank(r, 3), known_dim(r, 1), same_dim(r, x, 0), channels_of(w, x), channels_of(b, x), "
                        "constant(w), constant(b), !dim(x, 1, 1)",
                        "x=2x4x3x5 s=#[2,2,30] t=#[2,4,3,5] w=#4x1x1 b=#4x1x1 n.epsilon=0.01 number=2",
                        "x=2x4x3x5 s=#[4,1,30] t=#[2,4,3,5] w=#4x1x1 b=#4x1x1 n.epsilon=0.01 number=1"),
    // Softmax.
    detail::recognition("softmax",
                        "Div(Exp(Sub(x, ReduceMax:m(x, ?i))), ReduceSum:s(Exp(Sub(x, ReduceMax:n(x, ?i))), ?j))",
                        "Softmax{axis=-1}(x)", "last_axis(m), last_axis(n), last_axis(s), floating(x)",
                        "i=#[-1] j=#[-1]", "i=#[0] j=#[0]"),
    // The places of a vector, as exporters write them whose opsets have no Range.
    with_told_dims(detail::recognition("range_non_zero", "NonZero(ConstantOfShape:c(s))",
                                       "Unsqueeze(Range(0, Squeeze(s), 1), [0])", "rank(c, 1), told(s), filled(c)",
                                       "s=#[5] c.value=#=1", "s=#[5] c.value=#=0")),
    detail::recognition("log_softmax", "Log(Softmax:s(x))", "LogSoftmax:s(x)", "", "", "", meaning::changed),
};

}  // namespace dnnopt::rewriting

#endif  // DNNOPT_PASSES_REWRITING_RECOGNITION_RULES_HPP
