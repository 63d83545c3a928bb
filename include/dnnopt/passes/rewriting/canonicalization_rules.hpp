// Owns the rules that bring exporters' spellings to one form: operators that do nothing, synonyms.
#ifndef DNNOPT_PASSES_REWRITING_CANONICALIZATION_RULES_HPP
#define DNNOPT_PASSES_REWRITING_CANONICALIZATION_RULES_HPP

#include <array>

#include <dnnopt/passes/rewriting/rule.hpp>

namespace dnnopt::rewriting {

/// A rule whose replacement is `x` fires only where x has the type and shape of what it replaces.
inline constexpr std::array canonicalization_rules{
    detail::canonical("cast_to_same", "identity", "Cast:c(x)", "x", "", "c.to=1", "c.to=11"),
    detail::canonical("cast_like", "synonym", "CastLike:c(x, y)", "Cast:c{to=$type(y)}(x)", "typed(y)", "y=i2", "",
                      progress::normal_form),
    detail::canonical("dropout", "identity", "Dropout(x, ?r)", "x"),
    detail::canonical("dropout_off", "identity", "Dropout(x, ?r, 0)", "x", "", "r=#=0.5"),
    detail::canonical("expand_to_same", "identity", "Expand(x, s)", "x", "", "s=#[3,4]", "s=#[2,3,4]"),
    detail::canonical("tile_once", "identity", "Tile(x, [1, 1])", "x"),
    detail::canonical("pad_nothing", "identity", "Pad(x, [0, 0, 0, 0], ?v, ?a)", "x"),
    detail::canonical("resize_by_one", "identity", "Resize:r(x, ?o, ?s, ?z)", "x", "resizes_by_one(r)",
                      "x=1x2x3x4 z=#[1,2,3,4]", "x=1x2x3x4 z=#[1,2,6,8]"),
    detail::canonical("reshape_of_reshape", "composition", "Reshape(Reshape(x, s), t)", "Reshape(x, t)", "constant(t)",
                      "s=#[2,6] t=#[4,3]", "s=#[2,6] t=#[0,-1]"),
    detail::canonical("add_zero", "neutral element", "Add(x, 0)", "x"),
    detail::canonical("subtract_zero", "neutral element", "Sub(x, 0)", "x"),
    detail::canonical("multiply_by_one", "neutral element", "Mul(x, 1)", "x"),
    detail::canonical("divide_by_one", "neutral element", "Div(x, 1)", "x"),
    detail::canonical("power_of_one", "neutral element", "Pow(x, 1)", "x"),
    detail::canonical("or_false", "neutral element", "Or(x, 0)", "x", "", "x=b3x4"),
    detail::canonical("and_true", "neutral element", "And(x, 1)", "x", "", "x=b3x4"),
    detail::canonical("not_twice", "involution", "Not(Not(x))", "x", "", "x=b3x4"),
    detail::canonical("negated_twice", "involution", "Neg(Neg(x))", "x"),
    detail::canonical("max_with_zero", "synonym", "Max(x, 0)", "Relu(x)", "signed(x)", "", "x=u3x4"),
    detail::canonical("max_of_one", "synonym", "Max(x)", "x"),
    detail::canonical("min_of_one", "synonym", "Min(x)", "x"),
    detail::canonical("sum_of_one", "synonym", "Sum(x)", "x"),
    detail::canonical("mean_of_one", "synonym", "Mean(x)", "x"),
    detail::canonical("sum_of_two", "synonym", "Sum(x, y)", "Add(x, y)", "", "", "", progress::normal_form),
};

}  // namespace dnnopt::rewriting

#endif  // DNNOPT_PASSES_REWRITING_CANONICALIZATION_RULES_HPP
