// Owns the rules that move constant factors and addends into the weights of convolutions and matrix products.
#ifndef DNNOPT_PASSES_REWRITING_LINEAR_RULES_HPP
#define DNNOPT_PASSES_REWRITING_LINEAR_RULES_HPP

#include <array>

#include <dnnopt/passes/rewriting/rule.hpp>

namespace dnnopt::rewriting {

/// Products and convolutions are linear in their weights: factors and addends per output channel are computed before
/// execution. Weights that reach the limits of their type may overflow, so that the rules count as changing meaning.
inline constexpr std::array linear_rules{
    detail::associative("product_scaled", "Mul(MatMul(x, w), c)", "MatMul(x, Mul(w, c))",
                        "constant(w), constant(c), row_of(c, w), rank(w, 2)", "x=2x3x4 w=#4x5 c=#5",
                        "x=2x3x4 w=#4x5 c=5", meaning::changed),
    detail::associative("product_scaled_by_number", "Mul(MatMul(x, w), c)", "MatMul(x, Mul(w, c))",
                        "constant(w), constant(c), single(c), rank(c, 0)", "x=2x3x4 w=#4x5 c=#=0.3",
                        "x=2x3x4 w=4x5 c=#=0.3", meaning::changed),
    detail::associative("product_divided_by_number", "Div(MatMul(x, w), c)", "MatMul(x, Div(w, c))",
                        "constant(w), constant(c), single(c), rank(c, 0), floating(w)", "x=2x3x4 w=#4x5 c=#=0.3",
                        "x=2x3x4 w=4x5 c=#=0.3", meaning::changed),
    detail::distributive("product_and_bias_scaled", "Mul(Add(MatMul(x, w), b), c)",
                         "Add(MatMul(x, Mul(w, c)), Mul(b, c))",
                         "constant(w), constant(b), constant(c), row_of(c, w), row_of(b, w), rank(w, 2)",
                         "x=2x3x4 w=#4x5 b=#5 c=#5", "x=2x3x4 w=#4x5 b=5 c=#5", meaning::changed),
    detail::distributive("product_and_bias_scaled_by_number", "Mul(Add(MatMul(x, w), b), c)",
                         "Add(MatMul(x, Mul(w, c)), Mul(b, c))",
                         "constant(w), constant(b), constant(c), single(c), rank(c, 0), row_of(b, w)",
                         "x=2x3x4 w=#4x5 b=#5 c=#=0.3", "x=2x3x4 w=#4x5 b=5 c=#=0.3", meaning::changed),
    detail::distributive("product_and_bias_divided_by_number", "Div(Add(MatMul(x, w), b), c)",
                         "Add(MatMul(x, Div(w, c)), Div(b, c))",
                         "constant(w), constant(b), constant(c), single(c), rank(c, 0), row_of(b, w), floating(w)",
                         "x=2x3x4 w=#4x5 b=#5 c=#=0.3", "x=2x3x4 w=#4x5 b=5 c=#=0.3", meaning::changed),
    // Layer scale: the factor of a channel that a Transpose has moved to dim 1.
    detail::distributive(
        "product_and_bias_scaled_by_channel", "Mul(Transpose:t{perm=[0, 3, 1, 2]}(Add(MatMul(x, w), b)), c)",
        "Transpose:t(Add(MatMul(x, Mul(w, Squeeze(c))), Mul(b, Squeeze(c))))",
        "constant(w), constant(b), constant(c), channels_of(c, t), row_of(b, w), rank(w, 2), !dim(t, 1, 1)",
        "x=1x2x3x4 w=#4x5 b=#5 c=#1x5x1x1", "x=1x2x3x4 w=#4x5 b=#5 c=#1x1x1x3", meaning::changed),
    // Convolutions.
    detail::associative("convolution_scaled_1d", "Mul(Conv:k(x, w), c)",
                        "Conv:k(x, Mul(w, Unsqueeze(Squeeze(c), [1, 2])))",
                        "constant(w), constant(c), rank(w, 3), channels_of(c, k), !dim(w, 0, 1)",
                        "x=1x4x7 w=#6x4x3 c=#6x1", "x=1x4x7 w=#6x4x3 c=6x1", meaning::changed),
    detail::distributive("convolution_and_bias_scaled_1d", "Mul(Conv:k(x, w, b), c)",
                         "Conv:k(x, Mul(w, Unsqueeze(Squeeze(c), [1, 2])), Mul(b, Squeeze(c)))",
                         "constant(w), constant(b), constant(c), rank(w, 3), channels_of(c, k), !dim(w, 0, 1)",
                         "x=1x4x7 w=#6x4x3 b=#6 c=#1x6x1", "x=1x4x7 w=#6x4x3 b=6 c=#6x1", meaning::changed),
    detail::associative("convolution_scaled_2d", "Mul(Conv:k(x, w), c)",
                        "Conv:k(x, Mul(w, Unsqueeze(Squeeze(c), [1, 2, 3])))",
                        "constant(w), constant(c), rank(w, 4), channels_of(c, k), !dim(w, 0, 1)",
                        "x=1x4x5x6 w=#6x4x3x3 c=#6x1x1", "x=1x4x5x6 w=#6x4x3x3 c=6x1x1", meaning::changed),
    detail::distributive("convolution_and_bias_scaled_2d", "Mul(Conv:k(x, w, b), c)",
                         "Conv:k(x, Mul(w, Unsqueeze(Squeeze(c), [1, 2, 3])), Mul(b, Squeeze(c)))",
                         "constant(w), constant(b), constant(c), rank(w, 4), channels_of(c, k), !dim(w, 0, 1)",
                         "x=1x4x5x6 w=#6x4x3x3 b=#6 c=#1x6x1x1", "x=1x4x5x6 w=#6x4x3x3 b=6 c=#6x1x1", meaning::changed),
    detail::associative("convolution_scaled_3d", "Mul(Conv:k(x, w), c)",
                        "Conv:k(x, Mul(w, Unsqueeze(Squeeze(c), [1, 2, 3, 4])))",
                        "constant(w), constant(c), rank(w, 5), channels_of(c, k), !dim(w, 0, 1)",
                        "x=1x4x4x5x6 w=#6x4x3x3x3 c=#6x1x1x1", "x=1x4x4x5x6 w=#6x4x3x3x3 c=6x1x1x1", meaning::changed),
    detail::distributive("convolution_and_bias_scaled_3d", "Mul(Conv:k(x, w, b), c)",
                         "Conv:k(x, Mul(w, Unsqueeze(Squeeze(c), [1, 2, 3, 4])), Mul(b, Squeeze(c)))",
                         "constant(w), constant(b), constant(c), rank(w, 5), channels_of(c, k), !dim(w, 0, 1)",
                         "x=1x4x4x5x6 w=#6x4x3x3x3 b=#6 c=#1x6x1x1x1", "x=1x4x4x5x6 w=#6x4x3x3x3 b=6 c=#6x1x1x1",
                         meaning::changed),
    detail::associative("convolution_scaled_by_number", "Mul(Conv:k(x, w), c)", "Conv:k(x, Mul(w, c))",
                        "constant(w), constant(c), single(c), rank(c, 0)", "x=1x4x5x6 w=#6x4x3x3 c=#=0.3",
                        "x=1x4x5x6 w=6x4x3x3 c=#=0.3", meaning::changed),
    detail::distributive("convolution_and_bias_scaled_by_number", "Mul(Conv:k(x, w, b), c)",
                         "Conv:k(x, Mul(w, c), Mul(b, c))",
                         "constant(w), constant(b), constant(c), single(c), rank(c, 0)",
                         "x=1x4x5x6 w=#6x4x3x3 b=#6 c=#=0.3", "x=1x4x5x6 w=6x4x3x3 b=#6 c=#=0.3", meaning::changed),
    detail::associative("convolution_takes_addend", "Add(Conv:k(x, w), c)", "Conv:k(x, w, Squeeze(c))",
                        "constant(c), channels_of(c, k), !dim(w, 0, 1)", "x=1x4x5x6 w=#6x4x3x3 c=#6x1x1",
                        "x=1x4x5x6 w=#6x4x3x3 c=6x1x1", meaning::changed),
    detail::associative("convolution_bias_takes_addend", "Add(Conv:k(x, w, b), c)", "Conv:k(x, w, Add(b, Squeeze(c)))",
                        "constant(b), constant(c), channels_of(c, k), !dim(w, 0, 1)",
                        "x=1x4x5x6 w=#6x4x3x3 b=#6 c=#6x1x1", "x=1x4x5x6 w=#6x4x3x3 b=#6 c=6x1x1", meaning::changed),
    detail::associative("convolution_bias_takes_number", "Add(Conv:k(x, w, b), c)", "Conv:k(x, w, Add(b, c))",
                        "constant(b), constant(c), single(c), rank(c, 0)", "x=1x4x5x6 w=#6x4x3x3 b=#6 c=#=0.3",
                        "x=1x4x5x6 w=#6x4x3x3 b=6 c=#=0.3", meaning::changed),
};

}  // namespace dnnopt::rewriting

#endif  // DNNOPT_PASSES_REWRITING_LINEAR_RULES_HPP
