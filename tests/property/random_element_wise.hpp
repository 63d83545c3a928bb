// Owns the element-wise operators, comparisons and integers that random graphs grow by.
#ifndef DNNOPT_TESTS_PROPERTY_RANDOM_ELEMENT_WISE_HPP
#define DNNOPT_TESTS_PROPERTY_RANDOM_ELEMENT_WISE_HPP

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "property/random_graph.hpp"

namespace testing {

/// Something that a graph can grow by, and how often next to others.
struct growth_row {
  std::string_view name;
  int weight;
  void (*grow)(random_graph&);
};

inline bool is_boolean(const drawn& v) { return v.type == dtype::boolean; }
inline bool is_int64(const drawn& v) { return v.type == dtype::int64; }
inline bool is_real(const drawn& v) { return v.type == dtype::float32; }

/// Something that broadcasts with `x`: a value, a constant, a number. `within`: to the dims of x.
inline value_id other_operand(random_graph& r, const drawn& x, bool within = false) {
  const float low = -0.5F;
  const float high = 0.5F;
  switch (r.pick(0, 5)) {
    case 0:
      return r.constant(r.spread_dims(x), low, high);
    case 1:
      if (r.coin()) return r.number(r.coin() ? high : 0.25F);
      return r.number_of_rank(high, within ? x.dims.size() : static_cast<std::size_t>(r.pick(1, 4)));
    case 2:
      if (const auto y = r.find(
              [&](const drawn& v) { return v.type == x.type && (within ? r.spreads(v, x) : r.broadcast(v, x, true)); }))
        return y->id;
      return x.id;
    case 3:
      if (const auto y = r.find(
              [&](const drawn& v) { return v.type == x.type && (within ? r.spreads(v, x) : r.broadcast(v, x)); }))
        return y->id;
      return x.id;
    default:
      // The same shape: residual additions and gates.
      return r.find([&](const drawn& v) { return v.type == x.type && v.dims == x.dims; })->id;
  }
}

inline void grow_function(random_graph& r) {
  const auto x = r.real();
  if (!x) return;
  static constexpr std::array names{
      "Relu", "Sigmoid",  "Tanh",  "Abs",  "Neg",      "Erf",   "HardSwish",  "Softplus", "Gelu",  "Mish", "Swish",
      "Sin",  "Softsign", "Cos",   "Exp",  "Sqrt",     "Log",   "Reciprocal", "Atan",     "Asinh", "Sinh", "Cosh",
      "Ceil", "Floor",    "Round", "Sign", "Identity", "Atanh", "Asin",       "Acos",     "Tan",   "Acosh"};
  r.add(names[static_cast<std::size_t>(r.pick(0, static_cast<int>(names.size()) - 1))], {x->id});
}

inline void grow_function_with_attributes(random_graph& r) {
  const auto x = r.real();
  if (!x) return;
  const float alpha = r.one_of({0.1F, 0.25F, 1.0F});
  switch (r.pick(0, 10)) {
    case 0:
      r.add("LeakyRelu", {x->id}, {{"alpha", alpha}});
      return;
    case 1:
      r.add("Elu", {x->id}, {{"alpha", alpha}});
      return;
    case 2:
      r.add("Celu", {x->id}, {{"alpha", alpha}});
      return;
    case 3:
      r.add("Selu", {x->id});
      return;
    case 4:
      r.add("HardSigmoid", {x->id}, {{"alpha", alpha}, {"beta", 0.5F}});
      return;
    case 5:
      r.add("Gelu", {x->id}, {{"approximate", r.coin() ? "tanh" : "none"}});
      return;
    case 6:
      r.add("Shrink", {x->id}, {{"bias", alpha}, {"lambd", alpha}});
      return;
    case 7: {
      std::vector<value_id> limits{x->id, r.number(-0.3F)};
      if (r.coin()) limits[1] = dnnopt::no_value;
      if (r.coin() || limits[1] == dnnopt::no_value) limits.push_back(r.number(0.4F));
      r.add("Clip", limits);
      return;
    }
    case 8: {
      dnnopt::dim_list dims;
      for (const auto& d : x->dims) dims.push_back(d.is_constant() && r.coin() ? d.constant() : 1);
      r.add("PRelu", {x->id, r.constant(dims)});
      return;
    }
    case 9:
      r.add("Dropout", {x->id});
      return;
    default:
      r.add("Swish", {x->id}, {{"alpha", alpha}});
      return;
  }
}

/// A function on where it is smooth: square roots, logarithms and powers of what is positive, divisors apart from 0.
inline void grow_guarded(random_graph& r) {
  const auto x = r.real();
  if (!x) return;
  const value_id positive = r.add_inner("Add", {r.add_inner("Abs", {x->id}).id, r.number(0.5F)}).id;
  switch (r.pick(0, 5)) {
    case 0:
      r.add("Sqrt", {positive});
      return;
    case 1:
      r.add("Log", {positive});
      return;
    case 2:
      r.add("Reciprocal", {positive});
      return;
    case 3:
      r.add("Pow", {positive, r.number(r.one_of({0.5F, 1.5F, 2.0F, 3.0F, -1.0F}))});
      return;
    case 4:
      r.add("Div", {r.number(1.0F), r.add_inner("Sqrt", {positive}).id});
      return;
    default:
      r.add("Div", {other_operand(r, *x), positive});
      return;
  }
}

inline void grow_binary(random_graph& r) {
  const auto x =
      r.find([](const drawn& v) { return is_real(v) || (v.type != dtype::boolean && v.type != dtype::float32); });
  if (!x) return;
  if (!is_real(*x)) {
    const auto y = r.find([&](const drawn& v) { return v.type == x->type && r.broadcast(v, *x); });
    r.add(r.one_of<std::string_view>({"Add", "Mul", "Sub", "Max", "Min"}), {x->id, y->id});
    return;
  }
  std::vector<value_id> operands{x->id, other_operand(r, *x)};
  if (r.coin()) std::swap(operands[0], operands[1]);
  const auto op =
      r.one_of<std::string_view>({"Add", "Add", "Add", "Mul", "Mul", "Mul", "Sub", "Sub", "Max", "Min", "Div", "Pow"});
  if (op == "Pow") operands = {x->id, r.number(r.one_of({2.0F, 3.0F, 1.0F}))};
  r.add(op, operands);
}

inline void grow_variadic(random_graph& r) {
  const auto x = r.real();
  if (!x) return;
  std::vector<value_id> operands{x->id};
  for (int k = r.pick(0, 3); k > 0; --k) operands.push_back(other_operand(r, *x, true));
  if (r.rarely(4)) operands.push_back(other_operand(r, *x));
  r.add(r.one_of<std::string_view>({"Sum", "Mean", "Max", "Min"}), operands);
}

/// x times a function of itself, and what else activations are made of.
inline void grow_activation_pattern(random_graph& r) {
  const auto x = r.real();
  if (!x) return;
  const auto times = [&](value_id a, value_id b) { return r.coin() ? std::vector{a, b} : std::vector{b, a}; };
  switch (r.pick(0, 6)) {
    case 0:
      r.add("Mul", times(x->id, r.add_inner("Sigmoid", {x->id}).id));
      return;
    case 1: {  // GELU by erf
      const value_id scaled = r.coin() ? r.add_inner("Div", {x->id, r.number(1.4142135F)}).id
                                       : r.add_inner("Mul", {x->id, r.number(0.70710678F)}).id;
      const value_id sum = r.add_inner("Add", times(r.add_inner("Erf", {scaled}).id, r.number(1))).id;
      if (r.coin())
        r.add("Mul", times(r.add_inner("Mul", times(x->id, sum)).id, r.number(0.5F)));
      else
        r.add("Mul", times(r.add_inner("Mul", times(x->id, r.number(0.5F))).id, sum));
      return;
    }
    case 2: {  // GELU by tanh
      const value_id cube = r.add_inner("Pow", {x->id, r.number(3)}).id;
      const value_id sum = r.add_inner("Add", {x->id, r.add_inner("Mul", times(cube, r.number(0.044715F))).id}).id;
      const value_id turned = r.add_inner("Tanh", {r.add_inner("Mul", times(sum, r.number(0.7978845608F))).id}).id;
      const value_id half = r.add_inner("Mul", times(x->id, r.number(0.5F))).id;
      r.add("Mul", times(half, r.add_inner("Add", times(turned, r.number(1))).id));
      return;
    }
    case 3: {  // HardSwish
      const value_id clipped =
          r.add_inner("Clip", {r.add_inner("Add", {x->id, r.number(3)}).id, r.number(0), r.number(6)}).id;
      if (r.coin())
        r.add("Div", {r.add_inner("Mul", times(x->id, clipped)).id, r.number(6)});
      else
        r.add("Mul", times(x->id, r.add_inner("Div", {clipped, r.number(6)}).id));
      return;
    }
    case 4:
      r.add("Mul", times(x->id, r.add_inner("HardSigmoid", {x->id}, {{"alpha", 1.0F / 6}, {"beta", 0.5F}}).id));
      return;
    case 5:  // Mish
      r.add("Mul", times(x->id, r.add_inner("Tanh", {r.add_inner("Softplus", {x->id}).id}).id));
      return;
    default:  // Softplus
      r.add("Log", {r.add_inner("Add", times(r.add_inner("Exp", {x->id}).id, r.number(1))).id});
      return;
  }
}

inline void grow_selection(random_graph& r) {
  const auto x = r.real();
  if (!x) return;
  value_id condition = dnnopt::no_value;
  if (const auto held = r.find([&](const drawn& v) { return is_boolean(v) && r.spreads(v, *x); }); held && r.coin())
    condition = held->id;
  else
    condition = r.add(r.one_of<std::string_view>({"Greater", "GreaterOrEqual", "Less", "LessOrEqual", "Equal"}),
                      {x->id, other_operand(r, *x, true)})[0]
                    .id;
  r.add("Where", {condition, r.coin() ? x->id : other_operand(r, *x, true), other_operand(r, *x)});
}

inline void grow_logic(random_graph& r) {
  const auto x = r.find(is_boolean);
  if (!x) {
    if (const auto v = r.real()) r.add(r.one_of<std::string_view>({"IsNaN", "IsInf"}), {v->id});
    return;
  }
  switch (r.pick(0, 3)) {
    case 0:
      r.add("Not", {x->id});
      return;
    case 1:
      r.add("Cast", {x->id}, {{"to", std::int64_t{r.coin() ? 1 : 7}}});
      return;
    default: {
      const auto y = r.find([&](const drawn& v) { return is_boolean(v) && r.broadcast(v, *x); });
      r.add(r.one_of<std::string_view>({"And", "Or", "Xor"}), {x->id, y->id});
      return;
    }
  }
}

inline void grow_integers(random_graph& r) {
  const auto x = r.find(is_int64);
  if (!x) return;
  const value_id two = r.hold(dnnopt::tensor::scalar<std::int64_t>(r.pick(2, 5)));
  switch (r.pick(0, 8)) {
    case 0:
      r.add("Mod", {x->id, two});
      return;
    case 1:
      r.add("Div", {r.add_inner("Abs", {x->id}).id, two});
      return;
    case 2:
      r.add("Cast", {x->id}, {{"to", std::int64_t{1}}});
      return;
    case 3:
      r.add("Cast", {r.add_inner("Cast", {x->id}, {{"to", std::int64_t{6}}}).id}, {{"to", std::int64_t{7}}});
      return;
    case 4:
      r.add("Equal", {x->id, two});
      return;
    case 5:
      r.add("OneHot",
            {r.add_inner("Mod", {x->id, two}).id, two,
             r.hold(dnnopt::tensor::of<float>({2}, std::vector<float>{-0.5F, 1.0F}))},
            {{"axis", std::int64_t{-1}}});
      return;
    case 6:
      r.add("Where", {r.add_inner("Less", {x->id, two}).id, x->id, two});
      return;
    case 7: {  // Embedding
      const value_id rows = r.add_inner("Mod", {x->id, r.hold(dnnopt::tensor::scalar<std::int64_t>(8))}).id;
      r.add("Gather", {r.constant({8, r.extent()}), rows});
      return;
    }
    default:
      r.add(r.one_of<std::string_view>({"Add", "Mul", "Sub", "Max", "Min", "BitwiseAnd"}), {x->id, two});
      return;
  }
}

inline constexpr std::array element_wise_rows{
    growth_row{"function", 8, grow_function},
    growth_row{"function with attributes", 4, grow_function_with_attributes},
    growth_row{"guarded function", 4, grow_guarded},
    growth_row{"binary", 14, grow_binary},
    growth_row{"variadic", 2, grow_variadic},
    growth_row{"activation", 4, grow_activation_pattern},
    growth_row{"selection", 3, grow_selection},
    growth_row{"logic", 2, grow_logic},
    growth_row{"integers", 3, grow_integers},
};

}  // namespace testing

#endif  // DNNOPT_TESTS_PROPERTY_RANDOM_ELEMENT_WISE_HPP
