// Owns the rules that bring exporters' spellings to one form: operators that do nothing, operands in order, synonyms.
#ifndef DNNOPT_PASSES_REWRITING_CANONICALIZATION_RULES_HPP
#define DNNOPT_PASSES_REWRITING_CANONICALIZATION_RULES_HPP

#include <array>

#include <dnnopt/passes/rewriting/rule.hpp>

namespace dnnopt::rewriting {

namespace detail {
constexpr rewrite_rule canonical(std::string_view name, std::string_view property, std::string_view pattern,
                                 std::string_view replacement, std::string_view condition = "",
                                 progress ends = progress::lowers_work) {
  return {name, rule_family::canonicalization, property, pattern, replacement, condition, meaning::kept, ends};
}
}  // namespace detail

/// A rule whose replacement is `x` fires only where x has the type and shape of what it replaces.
inline constexpr std::array canonicalization_rules{
    detail::canonical("cast_to_same", "identity", "Cast(x)", "x"),
    detail::canonical("cast_like", "synonym", "CastLike(x, y)", "Cast{to=$type(y)}(x)", "typed(y)",
                      progress::normal_form),
    detail::canonical("dropout", "identity", "Dropout(x, ?r)", "x"),
    detail::canonical("dropout_off", "identity", "Dropout(x, ?r, 0)", "x"),
    detail::canonical("expand_to_same", "identity", "Expand(x, s)", "x"),
    detail::canonical("tile_once", "identity", "Tile(x, 1)", "x"),
    detail::canonical("pad_nothing", "identity", "Pad(x, 0, ?v, ?a)", "x"),
    detail::canonical("resize_by_one", "identity", "Resize:r(x, ?o, ?s, ?z)", "x", "resizes_by_one(r)"),
    detail::canonical("add_zero", "neutral element", "Add(x, 0)", "x"),
    detail::canonical("subtract_zero", "neutral element", "Sub(x, 0)", "x"),
    detail::canonical("multiply_by_one", "neutral element", "Mul(x, 1)", "x"),
    detail::canonical("divide_by_one", "neutral element", "Div(x, 1)", "x"),
    detail::canonical("power_of_one", "neutral element", "Pow(x, 1)", "x"),
    detail::canonical("or_false", "neutral element", "Or(x, 0)", "x"),
    detail::canonical("and_true", "neutral element", "And(x, 1)", "x"),
    detail::canonical("clip_from_zero", "synonym", "Clip(x, 0)", "Relu(x)", "signed(x)"),
    detail::canonical("max_with_zero", "synonym", "Max(x, 0)", "Relu(x)", "signed(x)"),
    detail::canonical("max_of_one", "synonym", "Max(x)", "x"),
    detail::canonical("min_of_one", "synonym", "Min(x)", "x"),
    detail::canonical("sum_of_one", "synonym", "Sum(x)", "x"),
    detail::canonical("mean_of_one", "synonym", "Mean(x)", "x"),
    detail::canonical("sum_of_two", "synonym", "Sum(x, y)", "Add(x, y)", "", progress::normal_form),
    detail::canonical("constant_addend_last", "commutative", "Add!(c, x)", "Add(x, c)", "misplaced(c, x)",
                      progress::normal_form),
    detail::canonical("constant_factor_last", "commutative", "Mul!(c, x)", "Mul(x, c)", "misplaced(c, x)",
                      progress::normal_form),
    detail::canonical("constant_maximum_last", "commutative", "Max!(c, x)", "Max(x, c)", "misplaced(c, x)",
                      progress::normal_form),
    detail::canonical("constant_minimum_last", "commutative", "Min!(c, x)", "Min(x, c)", "misplaced(c, x)",
                      progress::normal_form),
};

}  // namespace dnnopt::rewriting

#endif  // DNNOPT_PASSES_REWRITING_CANONICALIZATION_RULES_HPP
